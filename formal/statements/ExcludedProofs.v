(* What ExcludedProofs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** What it establishes that the checker leaves out a class (docs/proofs.md, Theorem 12): on no attacked graph within the budget, and on no machine, is it the
    label. One theorem for each rule, with the hypotheses of CheckedCertificates.v, StackedGraph.v and TwoLevelsGraph.v. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair OwnGroupsOfGraphs Checker CheckerProofs
  CheckedCertificates StackedVote StackedChecker StackedProofs StackedGraph TwoLevels TwoLevelsGraph Possible PossibleOwn Excluded.
Import ListNotations.
Open Scope Z_scope.

(** What the program says of class k, votes. *)
Definition left_out (s : settings) (t : target) (q : query) (k : nat) : bool :=
  nth k (cannot_get s (count_target s t) (count_classes s t) q) false.

(** The same of stacked votes. *)
Definition stacked_left_out (s : stacked_settings) (t : stacked_target) (q : query) (k : nat) : bool :=
  nth k (stacked_cannot_get s (count_stacked s t) (count_duels s t) q) false.

Section CountedClasses.
  Variables (s : settings) (t : target).
  Hypothesis ok : well_made s t = true.
  Hypothesis some_class : (0 < num_classes s)%nat.

  Let v := count_classes s t.

  Let C := num_classes s.

  (** What the program counts for class j. *)
  Definition counted_class (j : nat) : standing_of := nth j (z_classes v) (Standing j 0 0 0 0 0).

  (** --- Votes in tiers --- *)
  Let V := votes_of s t.

  (** Theorem 12 (a): a class that is possible passes the program's test. *)
  Theorem can_win_complete n k : (k < C)%nat ->
    possible V C (prior_certain s t) (prior_doubt s t) n k -> can_win n v (counted_class k) = true.

  (** --- A group for each neighbour --- *)
  Let O := own_votes_of t.

  (** Theorem 12 (b): a class that is possible passes the program's test. *)
  Theorem own_can_win_complete n k : own_groups s = true -> (k < C)%nat ->
    own_possible Z O C (own_prior s t) (prior_doubt s t) (empty_casts s) n k -> own_can_win (empty_casts s) n v (counted_class k) = true.
End CountedClasses.

(** A class that is left out does not win, whatever votes move within the limits of the budget. *)
Theorem left_out_sound :
  forall (s : settings) (t : target) (B : budget) (own : bool) (k : nat),
    own_groups s = false -> (0 < num_classes s)%nat -> left_out s t (B, own) k = true ->
    exists n, reach_of s (count_target s t) (clip_budget B) own = Some n /\ num_reached (votes_of s t) = num_reached_in (count_target s t)
      /\ forall (r : nat -> vote) (P' : nat -> Z), moves (votes_of s t) n r ->
           (forall a j, prior_certain s t a - prior_certain s t j - prior_doubt s t <= P' a - P' j) ->
           voted (num_classes s) (groups (votes_of s t)) P' r <> k.

(** The same where every neighbour has a group of its own. *)
Theorem own_left_out_sound :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (V : own_votes key) (B : budget) (own : bool) (k : nat),
    own_groups s = true -> (0 < num_classes s)%nat -> left_out s t (B, own) k = true -> numbered t V -> NoDup (cast_by _ V) ->
    own = false /\ exists n, touches_of s (count_target s t) (clip_budget B) false = Some n
      /\ forall (S' : list key) (r : key -> vote) (P' : nat -> Z), NoDup S' -> own_moves key V n S' r ->
           (forall a j, own_prior s t a - own_prior s t j - prior_doubt s t <= P' a - P' j) ->
           own_voted key (num_classes s) P' (empty_casts s) S' r <> k.

(** Theorem 12 (a) with Theorem 3: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_edge_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByEdge -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    covers id F W (Z.to_nat (num_groups s)) h v G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> ereading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.

(** Theorem 12 (a) with Theorem 4: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByNode -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local f ->
    faithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> reading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.

(** Theorem 12 (a) with Theorem 5: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gated :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (f : model id (option F) W) (v : id) (G : graph id F W),
    rule s = ByGatedNode -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    local f ->
    tfaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      tattacked id F W id_eq v own B G G' -> treading id F W (Z.to_nat (num_groups s)) h f v G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a) with Theorem 6, edge-centric: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_edge_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> id -> nat) (g : gmodel id F W) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, h x y = h y x) ->
    egfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> egreading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a) with Theorem 6, node-centric, without self-loops: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g ->
    gfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a) with Theorem 6, node-centric, self-loops kept: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric_graph_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g ->
    gfaithful_loops id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a), GNNCert-E: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_e :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (he : id -> id -> nat) (g : shown_model id W F) (G : graph id F W),
    rule s = GnncertE -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, he x y = he y x) -> sees_only id W F g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) F g (esub id F W he) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> affords id_eq B A -> shown_reading id F W (Z.to_nat (num_groups s)) F g (esub id F W he) G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a), GNNCert-N: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_n :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    rule s = GnncertN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    sees_only id W (option F) g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (pairs_of id A) (touched_edges B) -> few (altered A) (with_own own B) ->
      shown_reading id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.

(** Theorem 12 (a), GNNCert-EN: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_en :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (height width : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    let look i := cell id F W he hf (i / width) (i mod width) in
    rule s = GnncertEN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    edge_groups s = Z.of_nat height -> feature_groups s = Z.of_nat width -> num_groups s = Z.of_nat (height * width) -> (0 < width)%nat ->
    left_out s t (B, own) k = true ->
    (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) -> few (changed A) (change_edges B) ->
      few (altered A) (with_own own B) ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted (num_classes s) (height * width) (prior_certain s t) r <> k.

(** Theorem 12 (a), a user's own division: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_stated :
  forall (s : settings) (t : target) (B : budget) (own : bool) (k : nat),
    rule s = AsStated -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    exists n, at_prices (price s) (own_price s) (clip_budget B) own = Some n
      /\ forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
           (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
           few moved n -> prior_read s t P' ->
           voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.

(** Theorem 12 (b), a group for each neighbour: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_neighbour :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local f -> numbered t V -> ofaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' -> oreading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r <> k.

(** Theorem 12 (b), a group for each pair: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_pair :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByPair -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local_undirected f -> numbered t V -> pfaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' -> preading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r <> k.

(** Theorem 12 (b), graphs, a group for each node: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_node_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (g : gmodel id F W) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g -> numbered t V -> nfaithful id F W id_eq g V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' -> nreading id F W id_eq g G' S' r ->
      own = false /\ own_voted id (num_classes s) (own_prior s t) (empty_casts s) S' r <> k.

(** Theorem 12 (b), graphs, a group for each pair: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_pair_graph :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id) (G : graph id F W) (V : own_votes key),
    rule s = ByPair -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g -> numbered t V -> gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G (row (cover_row t)) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' -> gpreading id F W key id_eq g name counts G' S' r ->
      own = false /\ own_voted key (num_classes s) (own_prior s t) (empty_casts s) S' r <> k.

(** Theorem 12 (c) with Theorem 10: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_stacked :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : graph id F W -> id -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (k : nat),
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    stacked_left_out s t (B, own) k = true ->
    stacked_model id F W v vote_steps reads (by_edge _ V) -> sfaithful id F W v vote_steps reads V G ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      stacked_attacked id F W id_eq v B G G' -> sreading id F W v reads G' N' b -> stacked_reading id V p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b <> k.

(** Theorem 12 (c) with Theorem 11, two levels: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_two_levels :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (k : nat),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t ->
    stacked_left_out s t (B, own) k = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) <> k.
