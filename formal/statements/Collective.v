(* What Collective.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Many targets, one attacked graph (docs/proofs.md, Theorem 7), node-centric division. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric.
Import ListNotations.
Open Scope Z_scope.

Section Collective.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (T : nat) (h : id -> nat) (f : model id F W).
  Hypothesis f_local : local f.

  (** The pair p has v as an end. *)
  Definition at_ (v : id) (p : id * id) : bool :=
    if id_eq (fst p) v then true else if id_eq (snd p) v then true else false.
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.

  (** Pairs through which v may have gained a neighbour. *)
  Definition gained (v : id) : list (id * id) := filter (at_ v) (added A) ++ filter (at_ v) (brought A).
  Variable B : budget.
  Hypothesis afforded : affords id_eq B A.

  (** Below need(v) votes beyond the reached ones the label of v holds. *)
  Definition needs (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (need : Z) : Prop :=
    withstands V C P doubt a (Reach (all (node_reach V B)) (Some (need - 1)) (Some (need - 1))).

  (** A sum over targets, as in Theorem 7: what all broken targets needed together. *)
  Fixpoint total_of (g : id -> Z) (l : list id) : Z := match l with [] => 0 | v :: l' => g v + total_of g l' end.
End Collective.

(** Theorem 7: the broken targets' needs fit into 2 e+ + A tau. *)
Theorem collective_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> nat) (f : model id F W)
         (G : graph id F W) (B : budget) (C : nat)
         (V : id -> votes) (P : id -> nat -> Z) (doubt : id -> Z) (label : id -> nat) (need : id -> Z) (someone : id),
    local f ->
    forall (A : attack id) (G' : graph id F W) (r : id -> nat -> vote) (P' : id -> nat -> Z) (broken : list id),
      leads A G G' -> affords id_eq B A -> NoDup broken ->
      (forall v, In v broken ->
         spares A v /\ faithful id F W T h f v (V v) G /\ reading id F W T h f v G' (r v)
         /\ needs B (V v) C (P v) (doubt v) (label v) (need v)
         /\ (forall k, (k < C)%nat -> k <> label v -> P v (label v) - P v k - doubt v <= P' v (label v) - P' v k)
         /\ voted C T (P' v) (r v) <> label v) ->
      within (total_of id need broken) (ladd (lmul (Some 2) (add_edges B)) (injected_edges B)).
