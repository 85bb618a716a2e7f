(* What OwnGroupsOfGraphs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Graphs with a group for each node, or for each pair, T = infinity (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph GraphTask PerNeighbourVote PerNeighbour PerPair.
Import ListNotations.
Open Scope Z_scope.

(** Node-centric: new A, touched d + r, altered r, turned 0. *)
Definition gnode_touches (B : budget) : touches :=
  Touches (inject_nodes B) (ladd (delete_nodes B) (change_features B)) (change_features B) (Some 0).

(** Edge-centric: new A tau + e+, touched e- + e~ + D(d + r), altered e~ + D(r), turned e+. *)
Definition gpair_touches (degrees : lim -> lim) (B : budget) : touches :=
  Touches (ladd (injected_edges B) (add_edges B))
          (ladd (ladd (delete_edges B) (change_edges B)) (degrees (touched_nodes B)))
          (ladd (change_edges B) (degrees (change_features B))) (add_edges B).

Section PerNode.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable g : gmodel id F W.
  Hypothesis g_ext : extensional id F W g.

  (** The group of u: that node, and no arc. *)
  Definition alone (u : id) (G : graph) : graph := Graph (fun x => if id_eq x u then node G x else None) (fun _ _ => None).

  (** S: the nodes of G, each once. *)
  Definition lists_nodes (S : list id) (G : graph) : Prop := NoDup S /\ forall u, In u S <-> node G u <> None.

  (** A deleted node is gone, unless its id is injected again. *)
  Definition nodes_go (A : attack id) (G' : graph) : Prop := forall x, In x (removed A) -> node G' x = None \/ In x (injected A).

  (** Section 1, Attack, graph task, with what Theorem 9 asks in addition. *)
  Definition nodes_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ only_injected id F W A G G' /\ nodes_go A G' /\ affords id_eq B A.

  (** The certificate speaks the truth about G: it lists the nodes, and stable votes are read alike on every machine. *)
  Record nfaithful (V : own_votes id) (G : graph) : Prop := {
    nlists_ok : lists_nodes (cast_by _ V) G;
    ncast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, g (alone u G) y -> y = own_cast _ V u
  }.

  (** What a machine may read on G: the votes of its nodes. *)
  Definition nreading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_nodes S G /\ forall u, In u S -> g (alone u G) (r u).
End PerNode.

Section PerPairOfGraph.
  Variables (id F W key : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Hypothesis key_eq : forall p q : key, {p = q} + {p <> q}.
  Notation graph := (graph id F W).
  Variable g : gmodel id F W.
  Hypothesis g_ext : extensional id F W g.
  (** Every unordered pair has a name. *)
  Variable name : id -> id -> key.
  Hypothesis name_sym : forall x y, name x y = name y x.
  Hypothesis name_inj : forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x').

  (** The group of a pair: its two ends, and its arcs. *)
  Definition both (x y : id) (G : graph) : graph :=
    Graph (fun z => if id_eq z x then node G z else if id_eq z y then node G z else None)
          (fun z w => if id_eq z x then if id_eq w y then arc G z w else if id_eq z y then if id_eq w x then arc G z w else None else None
                      else if id_eq z y then if id_eq w x then arc G z w else None else None).

  (** x and y share an edge. *)
  Definition has_pair (G : graph) (x y : id) : Prop := arc G x y <> None \/ arc G y x <> None.
  (** [counts]: which pairs are counted at all; self-loops are, or are not. *)
  Variable counts : id -> id -> Prop.

  (** S: the names of all pairs of G, each once. *)
  Definition lists_all (S : list key) (G : graph) : Prop :=
    NoDup S /\ forall p, In p S <-> exists x y, counts x y /\ p = name x y /\ has_pair G x y.

  (** Section 1, Attack, graph task, with what Theorem 9 asks in addition; a deleted pair loses all its arcs. *)
  Definition all_pairs_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ affords id_eq B A.

  (** The certificate speaks the truth about G: it lists the pairs, stable votes are read alike, and pairs with one direction only are marked. *)
  Record gpfaithful (V : own_votes key) (G : graph) : Prop := {
    gplists_ok : lists_all (cast_by _ V) G;
    gpcast_ok : forall x y, In (name x y) (cast_by _ V) -> own_stable _ V (name x y) = true ->
      forall b, g (both x y G) b -> b = own_cast _ V (name x y);
    gpway_ok : forall x y, In (name x y) (cast_by _ V) -> arc G x y = None \/ arc G y x = None -> one_way _ V (name x y) = true
  }.

  (** What a machine may read on G: the votes of its pairs. *)
  Definition gpreading (G : graph) (S : list key) (r : key -> vote) : Prop :=
    lists_all S G /\ forall x y, In (name x y) S -> g (both x y G) (r (name x y)).

  (** D(k): k nodes have at most this many pairs. *)
  Definition degrees_ok (G : graph) (degrees : lim -> lim) : Prop :=
    forall (ws : list id) (k : lim), few ws k ->
      exists l : list key, few l (degrees k) /\ forall w y, In w ws -> has_pair G w y -> In (name w y) l.

  (** The name of a pair. *)
  Definition named (p : id * id) : key := name (fst p) (snd p).
End PerPairOfGraph.

(** Theorem 9, graphs with a group for each node: if the votes are those of G and pass the test with A new, d + r touched and r altered votes,
    the label of the graph is a on every attacked graph G' within the budget. *)
Theorem per_node_graph_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (g : gmodel id F W)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (y0 : vote) (a : nat) (B : budget),
    extensional id F W g ->
    nfaithful id F W id_eq g V G ->
    own_withstands id V C P 0 y0 a (gnode_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' ->
      nreading id F W id_eq g G' S' r ->
      own_voted id C P y0 S' r = a.

(** Theorem 9, graphs with a group for each pair: the same with A tau + e+ new, e- + e~ + D(d + r) touched, e~ + D(r) altered and e+ turned
    votes. *)
Theorem per_pair_graph_certificate :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id)
         (G : graph id F W) (V : own_votes key) (C : nat) (P : nat -> Z) (y0 : vote) (a : nat) (B : budget) (degrees : lim -> lim),
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g ->
    gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G degrees ->
    own_withstands key V C P 0 y0 a (gpair_touches degrees B) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' ->
      gpreading id F W key id_eq g name counts G' S' r ->
      own_voted key C P y0 S' r = a.
