(* What TwoLevelsGraph.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Two levels of stacked votes on graphs (docs/proofs.md, Theorem 11): whatever an attack within the budget does to a graph, it is counted by the test. Edges
    anywhere, nodes of any degree, nodes with other features. What an edge and what nodes do to one vote are hypotheses about whole numbers here
    ([two_level_model]); TwoLevelsReal.v proves them of the softmax. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckedCertificates OwnBroken StackedVote StackedChecker
  StackedProofs StackedGraph TwoLevels.
Import ListNotations.
Open Scope Z_scope.

Section Model.
  Variable F : Type.
  (** The vote of a node with features f, whose neighbours have the features xs: [reads f xs y] if some machine may read it as y, [exact f xs] what a machine
      without errors reads. Nothing else enters a vote. *)
  Variable reads : option F -> list (option F) -> (nat -> Z) -> Prop.
  Variable exact : option F -> list (option F) -> nat -> Z.
  Variables (C : nat) (w sl : Z).
  Notation lead_in y j k := (y j - y k).

  (** - machines read every vote to within the slack, one without errors is one of them, and the order of neighbours does not matter;
      - [t_edge]: one neighbour more moves every lead in a vote by half a vote less 6 steps at most;
      - [t_nodes]: if n neighbours come or go, a vote stays between lo and hi of what was stored. *)
  Record two_level_model : Prop := {
    t_vote : forall f xs y, reads f xs y -> is_vote vote_steps y;
    t_exact : forall f xs, reads f xs (exact f xs);
    t_near : forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near sl (y k) (y' k);
    t_order : forall f xs xs', Permutation xs xs' -> (forall y, reads f xs y -> reads f xs' y) /\ forall k, exact f xs k = exact f xs' k;
    t_edge : forall f xs x j k, (j < C)%nat -> (k < C)%nat -> j <> k ->
      2 * Z.abs (lead_in (exact f (x :: xs)) j k - lead_in (exact f xs) j k) <= vote_steps - 12;
    t_nodes : forall f common gone come n own j, (j < C)%nat -> 0 < n -> Z.of_nat (length gone + length come) <= n -> 0 <= own <= vote_steps ->
      near sl own (exact f (common ++ gone) j) ->
      lowest (grown w n) sl own <= exact f (common ++ come) j <= highest (grown w n) sl own
  }.
End Model.

Section TwoLevelsGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Notation lists u N G := (lists_pairs id F W u N G). (* N(u) *)

  (** Only deletions separate two nodes, wherever they are. *)
  Definition deletions_separate (A : attack id) (G G' : graph) : Prop :=
    forall x y, joined_to id F W x G y -> ~ listed y x (deleted A) -> ~ In x (removed A) -> ~ In y (removed A) -> joined_to id F W x G' y.

  (** G' arises from G by the attack A, with what Theorem 11 asks in addition; the target v is spared. *)
  Definition two_levels_by (v : id) (A : attack id) (G G' : graph) : Prop :=
    leads A G G' /\ strict id F W A G G' /\ deletions_separate A G G' /\ spares A v.

  (** Section 1, Attack: such an A fits the budget. *)
  Definition two_levels_attacked (v : id) (B : budget) (G G' : graph) : Prop :=
    exists A, two_levels_by v A G G' /\ affords id_eq B A.

  (** n: nodes that come or go, an altered one twice; and edges that are added or deleted. *)
  Definition nodes_moved (A : attack id) : Z := Z.of_nat (length (joined A) + length (removed A) + 2 * length (altered A)).

  (** e+ + e- of the attack. *)
  Definition edges_moved (A : attack id) : Z := Z.of_nat (length (added A) + length (deleted A)).
  Variable v : id.
  Variable reads : option F -> list (option F) -> (nat -> Z) -> Prop.
  Variable exact : option F -> list (option F) -> nat -> Z.

  (** What some machine reads on G: the neighbours of v, and the vote of each, of its features and those of its neighbours. *)
  Definition vote_read (G : graph) (u : id) (y : nat -> Z) : Prop := exists N, lists u N G /\ reads (node G u) (map (node G) N) y.

  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition two_reading (G : graph) (N : list id) (b : id -> nat -> Z) : Prop := lists v N G /\ forall u, In u N -> vote_read G u (b u).

  (** The score of class k: the prior, and the votes of the neighbours, if they are used at all. *)
  Definition two_score (used : bool) (p : nat -> Z) (N : list id) (b : id -> nat -> Z) (k : nat) : Z :=
    p k + (if used then sum id (fun u => b u k) N else 0).
  (** ---- Proofs ---- *)
  Variables (A : attack id) (G G' : graph).
  Hypothesis by_attack : two_levels_by v A G G'.
  Notation mem := (mem id id_eq).
  Notation here := (here id id_eq).

  Let L : leads A G G' := proj1 by_attack.

  Let L2 : strict id F W A G G' := proj1 (proj2 by_attack).

  Let L4 : deletions_separate A G G' := proj1 (proj2 (proj2 by_attack)).

  Let spared : spares A v := proj2 (proj2 (proj2 by_attack)).

  Section Counting.
    Variables (s : stacked_settings) (V : stacked_votes id) (N' : list id) (b : id -> nat -> Z) (a k : nat) (n : Z).

    Let C := x_classes s.

    Let sl := x_slack s.
    Hypothesis model : two_level_model F reads exact C (x_second s) sl.
    Hypothesis slack_fits : 0 <= sl <= 3.
    Hypothesis here_a : (a < C)%nat.
    Hypothesis here_k : (k < C)%nat.
    Hypothesis differ : k <> a.

    Let N := neighbours _ V.

    Let own u := vote_of _ V u a - vote_of _ V u k.
    (** The stored votes are what some machine reads on G. *)
    Hypothesis stored : two_reading G N (vote_of _ V).
    Hypothesis read : two_reading G' N' b.
    Hypothesis n_enough : nodes_moved A <= n.

    (** What is left of the lead in a vote after nodes came and went. *)
    Definition kept (u : id) : Z :=
      if n <=? 0 then own u
      else lowest (grown (x_second s) n) sl (vote_of _ V u a) - highest (grown (x_second s) n) sl (vote_of _ V u k).

    (** Theorem 11: the lead in the votes falls by no more than what stays of each vote says, one vote for each node and each edge, and the slack. *)
    Theorem two_levels_lead :
      sum id kept N - 2 * sl * Z.of_nat (length N) - vote_steps * (nodes_moved A + edges_moved A) <= sum id (fun u => b u a - b u k) N'.
  End Counting.
End TwoLevelsGraph.

(** ---- The checker ---- *)
Section CheckedGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop) (exact : option F -> list (option F) -> nat -> Z).
  Variables (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W).
  Hypothesis some_class : (0 < x_classes s)%nat.
  Hypothesis two_levels : x_second s <> 0.
  Hypothesis same : stands_for V s t.
  Hypothesis model : two_level_model F reads exact (x_classes s) (x_second s) (x_slack s).
  Hypothesis stored : two_reading id F W v reads G (neighbours _ V) (vote_of _ V).

  Let c := count_stacked s t.

  Let a := y_label c.

  (** Theorem 11, the test for e edges and n nodes, and any attack with no more nodes, and no more of both together. *)
  Theorem two_levels_test_sound (edges nodes : lim) (A : attack id) (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z) :
    second_test s c edges nodes = true -> two_levels_by id F W v A G G' ->
    within (nodes_moved id A) nodes -> within (nodes_moved id A + edges_moved id A) (ladd edges nodes) ->
    two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
    best (two_score id (x_used s) p N' b) (x_classes s) = a.
End CheckedGraph.

(** Theorem 11 for a budget: if the checker says that a target holds, its label stays. *)
Theorem two_levels_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).

(** Theorem 11, the radius: x changes of any kind, of which a node with other features is worth two nodes; and [structure]: edges and nodes that come and go alone. *)
Theorem two_levels_radius :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (x : Z) (structure : bool),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t -> 0 <= x ->
    (if structure then right_stacked_structure s (count_stacked s t) x else right_stacked_radius s (count_stacked s t) x) = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (A : attack id) (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_by id F W v A G G' -> (structure = true -> altered A = []) ->
      Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A) + length (altered A)) <= x ->
      two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).
