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
  Proof.
    intros L G v y g w; split.
    - intros [H [K [gH [wH [Kv [k [k' [s r]]]]]]]]; apply (L H G v K); auto.
    - intro r; exists G, (fun _ => True).
      assert (K1 : hearing (fun _ : id => True) G) by (intros ? ? ? ?; exact I).
      assert (K2 : same_on (fun _ : id => True) G G) by (split; auto). tauto.
  Qed.

  (** The extended model is local on all graphs, so that every theorem of the page speaks of it. *)
  Theorem extended_local : local extended.
  Proof.
    assert (Q : forall G G' v (K0 : id -> Prop) y, K0 v -> hearing K0 G -> hearing K0 G' -> same_on K0 G G' ->
                extended G v y -> extended G' v y).
    { intros G G' v K0 y K0v k0 k0' [n0 s0] [H [K [gH [wH [Kv [k [k' [[n s] r]]]]]]]].
      exists H, (fun x => K x /\ K0 x).
      split; [auto|]; split; [auto|]; split; [auto|]; split; [|split; [|split; [split|auto]]].
      - intros x z [a b] e. assert (Kx : K x) by (apply (k x z); auto). split; auto.
        apply (k0 x z); auto. rewrite s; auto.
      - intros x z [a b] e. assert (Kx : K0 x) by (apply (k0' x z); auto). split; auto.
        apply (k' x z); auto. rewrite <- s0; auto.
      - intros x [a b]; rewrite n0, n; auto.
      - intros x z [a b] [c d]; rewrite s0, s; auto. }
    intros G G' v K y w w' Kv k k' [n s]; split; apply (Q _ _ v K); auto; split; auto.
    - intros x Kx; symmetry; auto.
    - intros x z Kx Kz; symmetry; auto.
  Qed.
End FiniteGraphs.
