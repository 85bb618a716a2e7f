(* What PerNeighbour.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Node-centric with a group for each neighbour, T = infinity, node task (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote.
Import ListNotations.
Open Scope Z_scope.

Section PerNeighbour.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable f : model id F W.
  Hypothesis f_local : local f.
  Variable v : id.

  (** The group of u: the arcs that leave u, self-loops dropped. *)
  Definition osub (u : id) (G : graph) : graph :=
    keep (fun x y => if id_eq x u then if id_eq x y then false else true else false) G.

  (** S: the neighbours that send v messages. *)
  Definition lists_neighbours (S : list id) (G : graph) : Prop :=
    NoDup S /\ forall u, In u S <-> u <> v /\ arc G u v <> None.

  (** What Theorem 9 needs of an attack besides [leads]: a removed node takes its arcs along, and under its old id brings
      new ones only; an added pair leaves an arc that is there as it is, unless the pair is deleted too. *)
  Record strict (A : attack id) (G G' : graph) : Prop := {
    gone_ok : forall x y, In x (removed A) \/ In y (removed A) ->
      arc G' x y = None \/ listed x y (brought A) \/ listed x y (added A);
    added_ok : forall x y, listed x y (added A) ->
      arc G x y = None \/ arc G' x y = arc G x y \/ listed x y (deleted A) \/ In x (removed A) \/ In y (removed A)
  }.

  (** Section 1, Attack, with what Theorem 9 asks in addition; the target v is spared. *)
  Definition strictly_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict A G G' /\ affords id_eq B A /\ spares A v.

  (** The certificate speaks the truth about G: it lists the neighbours that send v messages, and stable votes are read alike on every machine. *)
  Record ofaithful (V : own_votes id) (G : graph) : Prop := {
    olists_ok : lists_neighbours (cast_by _ V) G;
    ocast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, f (osub u G) v y -> y = own_cast _ V u
  }.

  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition oreading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_neighbours S G /\ forall u, In u S -> f (osub u G) v (r u).

  (** new n+ = A' + e+, touched n = d + e- + r + e~, altered n~ = r + e~, turned 0 *)
  Definition own_touches (B : budget) : touches :=
    Touches (ladd (joined_nodes B) (add_edges B))
            (ladd (ladd (delete_nodes B) (delete_edges B)) (ladd (change_features B) (change_edges B)))
            (ladd (change_features B) (change_edges B)) (Some 0).

  (** The end of a pair of v that is not v. *)
  Definition other (p : id * id) : id := if id_eq (snd p) v then fst p else snd p.
End PerNeighbour.

(** Theorem 9, a group for each neighbour, node task: local model, votes that are those of G, and the test passed with new, touched and altered
    votes of the budget. Then the label of v is a on every attacked graph G' within the budget. *)
Theorem per_neighbour_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (f : model id F W) (v : id)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (B : budget),
    local f ->
    ofaithful id F W id_eq f v V G ->
    own_withstands id V C P doubt y0 a (own_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' ->
      oreading id F W id_eq f v G' S' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_voted id C P' y0 S' r = a.
