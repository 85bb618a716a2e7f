(* What PerPair.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Edge-centric with a group for each pair, T = infinity, node task (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour.
Import ListNotations.
Open Scope Z_scope.

(** A deleted pair loses both directions. One direction of two that goes is a changed pair. *)
Definition deletes_pairs {id F W} (A : attack id) (G' : graph id F W) : Prop :=
  forall x y, listed x y (deleted A) -> arc G' x y = None \/ listed x y (added A) \/ listed x y (brought A).

(** new n+ = A' + e+, touched n = d + e- + r + e~, altered n~ = r + e~, turned t = e+ *)
Definition pair_touches (B : budget) : touches :=
  let n := own_touches B in Touches (t_new n) (t_touched n) (t_altered n) (add_edges B).

Section PerPair.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable f : model id F W.
  Hypothesis f_local : local_undirected f.
  Variable v : id.

  (** The group of the pair {u, v}: its arcs, whichever way they point. A pair of v is named by its other end. *)
  Definition psub (u : id) (G : graph) : graph :=
    keep (fun x y => if id_eq x u then if id_eq y v then true else false
                     else if id_eq x v then if id_eq y u then true else false else false) G.

  (** u shares an edge with v, whichever way it points. *)
  Definition joined_to (G : graph) (u : id) : Prop := u <> v /\ (arc G u v <> None \/ arc G v u <> None).

  (** S: the pairs of v, each named by its other end, once. *)
  Definition lists_pairs (S : list id) (G : graph) : Prop := NoDup S /\ forall u, In u S <-> joined_to G u.

  (** Section 1, Attack, with what Theorem 9 asks in addition; a deleted pair loses all its arcs; the target v is spared. *)
  Definition pairs_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ affords id_eq B A /\ spares A v.

  (** The certificate speaks the truth about G: it lists the pairs of v, stable votes are read alike on every machine, and pairs with one
      direction only are marked. *)
  Record pfaithful (V : own_votes id) (G : graph) : Prop := {
    plists_ok : lists_pairs (cast_by _ V) G;
    pcast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, f (psub u G) v y -> y = own_cast _ V u;
    pway_ok : forall u, In u (cast_by _ V) -> arc G u v = None \/ arc G v u = None -> one_way _ V u = true
  }.

  (** What a machine may read on G: the votes of v's pairs. *)
  Definition preading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_pairs S G /\ forall u, In u S -> f (psub u G) v (r u).
  (** ---- Proofs ---- *)
  Notation other := (other id id_eq v).
End PerPair.

(** Theorem 9, a group for each pair, node task: model local along edges, votes that are those of G, and the test passed with new, touched, altered
    and turned votes of the budget. Then the label of v is a on every attacked graph G' within the budget. *)
Theorem per_pair_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (f : model id F W) (v : id)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (B : budget),
    local_undirected f ->
    pfaithful id F W id_eq f v V G ->
    own_withstands id V C P doubt y0 a (pair_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' ->
      preading id F W id_eq f v G' S' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_voted id C P' y0 S' r = a.
