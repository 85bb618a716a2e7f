(* What FiniteGraphs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Nothing is lost by speaking of all graphs, also infinite ones: a model that is defined, and local, on some graphs only
    (finite ones, say) extends to a local model of all graphs that reads the same votes on these. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph.

Section FiniteGraphs.
  Variables (id F W : Type) (good : graph id F W -> Prop) (f : model id F W).

  (** Section 1, Model: local on the good graphs. *)
  Definition local_among : Prop :=
    forall G G' v (K : id -> Prop) y, good G -> good G' -> well_formed G -> well_formed G' ->
      K v -> hearing K G -> hearing K G' -> same_on K G G' -> (f G v y <-> f G' v y).

  (** The model on all graphs: it reads on G what f reads on some good graph that agrees with G around v. *)
  Definition extended : model id F W := fun G v y =>
    exists H (K : id -> Prop), good H /\ well_formed H /\ K v /\ hearing K H /\ hearing K G /\ same_on K H G /\ f H v y.

  (** On good graphs the extended model reads what f reads. *)
  Theorem extended_same : local_among -> forall G v y, good G -> well_formed G -> (extended G v y <-> f G v y).

  (** The extended model is local on all graphs, so that every theorem of the page speaks of it. *)
  Theorem extended_local : local extended.
End FiniteGraphs.
