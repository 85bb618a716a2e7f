(* What StackedGraph.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Stacked votes of an attacked graph (docs/proofs.md, Theorem 10, "Budgets"): which neighbours come, go and change, and that no more do so than the
    budget says. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates StackedVote StackedChecker StackedProofs.
Import ListNotations.
Open Scope Z_scope.

Section StackedGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable v : id.

  (** Neighbours share an edge with v, in either direction ([joined_to]). Only deletions separate them: a changed edge keeps one of its arcs, and so do
      the edges of a node with other features. *)
  Definition only_deletions_separate (A : attack id) (G G' : graph) : Prop :=
    forall u, joined_to id F W v G u -> ~ listed u v (deleted A) -> ~ In u (removed A) -> joined_to id F W v G' u.

  (** Section 1, Attack, with what Theorems 9 and 10 ask in addition; the target v is spared. *)
  Definition stacked_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ only_deletions_separate A G G' /\ affords id_eq B A /\ spares A v.
  (** [reads G u y]: some machine may read the vote of u for v as y. A vote is a function of the features of u and, if votes read edges, of the two
      arcs between u and v; a second direction makes it the mean of the old vote and a new one ([turned_vote] below). *)
  Variable S : Z.
  Variable reads : graph -> id -> (nat -> Z) -> Prop.

  (** Theorem 10, what is asked of the votes: each is at most one vote, local, and moves by no more than one vote where a pair is turned. *)
  Record stacked_model (edges : bool) : Prop := {
    m_vote : forall G u y, reads G u y -> is_vote S y;
    m_local : forall G G' u y, node G' u = node G u -> (edges = true -> arc G' u v = arc G u v /\ arc G' v u = arc G v u) ->
      (reads G u y <-> reads G' u y);
    m_turned : forall G G' u y, node G' u = node G u ->
      (arc G u v = None /\ arc G' v u = arc G v u) \/ (arc G v u = None /\ arc G' u v = arc G u v) -> joined_to id F W v G u ->
      reads G' u y -> exists c, reads G u c /\ forall j k, j <> k -> c j - c k - S <= y j - y k
  }.

  (** The numbers in the certificate are those of G, to within the slack. *)
  Record sfaithful (V : stacked_votes id) (G : graph) : Prop := {
    s_steps : st_steps _ V = S;
    s_lists : lists_pairs id F W v (neighbours _ V) G;
    s_votes : forall u, In u (neighbours _ V) -> forall y, reads G u y -> forall k, near (slack _ V) (vote_of _ V u k) (y k)
  }.

  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition sreading (G : graph) (N : list id) (b : id -> nat -> Z) : Prop :=
    lists_pairs id F W v N G /\ forall u, In u N -> reads G u (b u).
  (** ---- Proofs ---- *)
  Notation other := (other id id_eq v).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.
  Hypothesis L3 : deletes_pairs A G'.
  Hypothesis L4 : only_deletions_separate A G G'.
  Hypothesis spared : spares A v.
  Variables (V : stacked_votes id) (N' : list id) (b : id -> nat -> Z) (a : nat).
  Hypothesis model : stacked_model (by_edge _ V).
  Hypothesis faithful : sfaithful V G.
  Hypothesis read : sreading G' N' b.

  (** A neighbour that stays, and whose pair is added: it is turned. *)
  Definition stays_joined (u : id) : bool :=
    mem id id_eq u (neighbours _ V) && negb (mem id id_eq u (removed A)) && (if listed_dec id id_eq u v (deleted A) then false else true).

  (** Theorem 10: new neighbours, A' + e+ with the turned ones. *)
  Definition s_new : list id := joined A ++ filter (fun u => negb (stays_joined u)) (map other (added A)).
End StackedGraph.

(** Theorem 10, a new direction of an old pair: before, the vote of a pair is that of its one direction, X / M rounded down; after, the mean of both. The lead of j over k falls by
    no more than one vote, also after rounding. *)
Theorem turned_vote :
  forall (S M Xj Xk Yj Yk : Z),
    0 < M -> Z.even S = true -> 0 <= Xk -> Xj + Xk <= S * M -> 0 <= Yj -> 0 <= Yk -> Yj + Yk <= S * M ->
    Xj / M - Xk / M - S <= (Xj + Yj) / (2 * M) - (Xk + Yk) / (2 * M).

(** Theorem 10 for a budget: if the checker says that a target holds, its label stays. *)
Theorem stacked_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : graph id F W -> id -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool),
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    stacked_model id F W v vote_steps reads (by_edge _ V) -> sfaithful id F W v vote_steps reads V G ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      stacked_attacked id F W id_eq v B G G' -> sreading id F W v reads G' N' b -> stacked_reading id V p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b = y_label (count_stacked s t).
