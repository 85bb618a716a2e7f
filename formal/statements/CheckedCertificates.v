(* What CheckedCertificates.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The checker says yes: the label holds. One theorem for each rule. Their hypotheses are what a verifier without graph and model takes on trust:
    the file tells the truth about the graph and the votes, and the model is local (or, for graphs, ignores numbering). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair
  OwnGroupsOfGraphs Checker CheckerProofs.
Import ListNotations.
Open Scope Z_scope.

(** What a machine uses as prior: votes for each class, and votes for the no_edge prediction, read as y. *)
Definition prior_read (s : settings) (t : target) (P' : nat -> Z) : Prop :=
  exists y, (no_edge_stable t = true -> y = no_edge_choice t)
    /\ forall k, P' k = class_prior_of s k + for_no_edge (no_edge_prior s) y k.

(** The same where empty groups have no number, so that their votes are no part of the prior. *)
Definition own_prior_read (s : settings) (t : target) (P' : nat -> Z) : Prop :=
  exists y, (no_edge_stable t = true -> y = no_edge_choice t)
    /\ forall k, P' k = nth k (class_prior s) 0 + for_no_edge (no_edge_prior s) y k.

(** The listed votes of a file are those of keys of another kind, neighbours or pairs, under some numbering of these. *)
Definition numbered {key} (t : target) (V : own_votes key) : Prop :=
  exists number : key -> Z, map number (cast_by _ V) = map fst (listed_votes t)
    /\ forall u, In u (cast_by _ V) ->
         own_cast _ V u = own_cast _ (own_votes_of t) (number u) /\ own_stable _ V u = own_stable _ (own_votes_of t) (number u)
         /\ one_way _ V u = one_way _ (own_votes_of t) (number u).

(** Theorem 3: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_edge_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByEdge -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    covers id F W (Z.to_nat (num_groups s)) h v G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> ereading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Theorem 4: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_node_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByNode -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local f ->
    faithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> reading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Theorem 5: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gated :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (f : model id (option F) W) (v : id) (G : graph id F W),
    rule s = ByGatedNode -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    local f ->
    tfaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      tattacked id F W id_eq v own B G G' -> treading id F W (Z.to_nat (num_groups s)) h f v G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 6, edge-centric: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_edge_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> id -> nat) (g : gmodel id F W) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, h x y = h y x) ->
    egfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> egreading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 6, node-centric, without self-loops: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_node_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g ->
    gfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 6, node-centric, self-loops kept: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_node_centric_graph_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g ->
    gfaithful_loops id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** GNNCert: a node without edges in an attack that [affords] nothing for nodes. *)
Theorem checked_gnncert_e :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (he : id -> id -> nat) (g : shown_model id W F) (G : graph id F W),
    rule s = GnncertE -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, he x y = he y x) -> sees_only id W F g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) F g (esub id F W he) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> affords id_eq B A -> shown_reading id F W (Z.to_nat (num_groups s)) F g (esub id F W he) G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** [own]: then one altered node more, the target, is allowed for. *)
Definition with_own (own : bool) (B : budget) : lim := ladd (change_features B) (one_if own).

(** GNNCert-N: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gnncert_n :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    rule s = GnncertN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    sees_only id W (option F) g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (pairs_of id A) (touched_edges B) -> few (altered A) (with_own own B) ->
      shown_reading id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** GNNCert-EN: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gnncert_en :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (height width : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    let look i := cell id F W he hf (i / width) (i mod width) in
    rule s = GnncertEN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    edge_groups s = Z.of_nat height -> feature_groups s = Z.of_nat width -> num_groups s = Z.of_nat (height * width) -> (0 < width)%nat ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) -> few (changed A) (change_edges B) ->
      few (altered A) (with_own own B) ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted (num_classes s) (height * width) (prior_certain s t) r = label_of s t.

(** Theorem 2 for a user's own division: if it moves no more votes than its prices say, the label holds. *)
Theorem checked_stated :
  forall (s : settings) (t : target) (B : budget) (own : bool),
    rule s = AsStated -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    exists n, at_prices (price s) (own_price s) (clip_budget B) own = Some n
      /\ forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
           (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
           few moved n -> prior_read s t P' ->
           voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Theorem 1, the radius: no x votes, whichever they are, change the label. *)
Theorem checked_radius :
  forall (s : settings) (t : target) (x : Z),
    own_groups s = false -> (0 < num_classes s)%nat -> 0 <= x -> right_radius s (count_target s t) x = true ->
    forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
      (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
      Z.of_nat (length moved) <= x -> prior_read s t P' ->
      voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Section 4, Only new neighbours count: statements about new neighbours are answers for one budget. *)
Theorem checked_new_neighbours :
  forall (s : settings) (c : counted) (n : lim), of_graphs s = false -> within 0 n ->
    right_new_neighbours s c n = true -> holds s c (anything_and s n) = true.

(** Theorem 9, a group for each neighbour: where the checker says yes to a budget, the voted label on every attacked graph within it is the label
    of the file. *)
Theorem checked_per_neighbour :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local f -> numbered t V -> ofaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' -> oreading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.

(** Theorem 9, a group for each pair: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the
    file. *)
Theorem checked_per_pair :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByPair -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local_undirected f -> numbered t V -> pfaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' -> preading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.

(** Theorem 9, graphs, a group for each node: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_per_node_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (g : gmodel id F W) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g -> numbered t V -> nfaithful id F W id_eq g V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' -> nreading id F W id_eq g G' S' r ->
      own = false /\ own_voted id (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.

(** Theorem 9, graphs, a group for each pair: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_per_pair_graph :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (s : settings) (t : target) (B : budget) (own : bool)
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id) (G : graph id F W) (V : own_votes key),
    rule s = ByPair -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g -> numbered t V -> gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G (row (cover_row t)) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' -> gpreading id F W key id_eq g name counts G' S' r ->
      own = false /\ own_voted key (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.

(** Theorem 9, the radius where every neighbour has a group of its own: x votes that come, go, or become anything; without [altering],
    votes that come, go, or are turned. *)
Theorem checked_own_radius :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (V : own_votes key) (altering : bool) (x : Z),
    own_groups s = true -> (0 < num_classes s)%nat -> 0 <= x ->
    is_largest (any_test (empty_casts s) altering (count_target s t)) (num_groups s) x = true ->
    numbered t V -> NoDup (cast_by _ V) ->
    forall (S' : list key) (r : key -> vote) (P' : nat -> Z) (new rem alt turn : list key),
      NoDup S' -> own_changes key V S' r new rem alt turn ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x -> (altering = false -> alt = []) ->
      own_prior_read s t P' ->
      own_voted key (num_classes s) P' (empty_casts s) S' r = label_of s t.
