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

  Lemma listed_at x v l : listed x v l -> listed x v (filter (at_ v) l).
  Proof.
    intros [I|I]; [left|right]; apply filter_In; split; auto; unfold at_; simpl.
    - destruct (id_eq x v), (id_eq v v); auto.
    - destruct (id_eq v v); [auto|contradiction].
  Qed.

  Lemma beyond_gained v i y : spares A v -> ~ reached id F W h v G i -> ~ In i (map (pair_group id id_eq h v) (gained v)) ->
    (f (sub id F W h i G) v y <-> f (sub id F W h i G') v y).
  Proof.
    intros spared q N. apply only_neighbours; auto.
    - apply (before_ok _ _ _ _ _ _ L).
    - apply (after_ok _ _ _ _ _ _ L).
    - apply (spared_node id F W A); auto.
    - intros [x a]; destruct (sub_arc _ _ _ _ _ _ _ _ a) as [Hx a'].
      assert (Z0 : ~ arc G x v <> None) by (intro E; apply q; exists x; rewrite sub_in; auto).
      unfold gained in N; rewrite map_app, in_app_iff in N.
      destruct (arcs_ok _ _ _ _ _ _ L x v) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]]; try contradiction.
      + rewrite P in a'; contradiction.
      + apply N; left; apply (pair_heard id id_eq h v i x v); auto using listed_at.
      + apply N; right; apply (pair_heard id id_eq h v i x v); auto using listed_at.
  Qed.

  Variable B : budget.
  Hypothesis afforded : affords id_eq B A.

  (** Below need(v) votes beyond the reached ones the label of v holds. *)
  Definition needs (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (need : Z) : Prop :=
    withstands V C P doubt a (Reach (all (node_reach V B)) (Some (need - 1)) (Some (need - 1))).

  Lemma broken_gained v V C P P' doubt a need r :
    spares A v -> faithful id F W T h f v V G -> reading id F W T h f v G' r ->
    needs V C P doubt a need ->
    (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
    voted C T P' r <> a -> need <= Z.of_nat (length (gained v)).
  Proof.
    intros S Hf Hr Hn HP Hb. destruct (Z.le_gt_cases need (Z.of_nat (length (gained v)))) as [|Q]; auto; exfalso; apply Hb.
    rewrite <- (groups_ok _ _ _ _ _ _ _ _ _ Hf).
    eapply vote_sound; [exact Hn|exact HP|].
    pose proof (attack_moves id F W id_eq T h f f_local v A G G' L S B afforded V Hf r Hr) as M.
    destruct M as [l0 l1 l2 h0 _ _ g0 _ _].
    assert (K : forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i <> Reached ->
      In i (map (pair_group id id_eq h v) (gained v)) \/ r i = cast V i).
    { rewrite (groups_ok _ _ _ _ _ _ _ _ _ Hf); intros i Hi Hs Ht.
      destruct (in_dec Nat.eq_dec i (map (pair_group id id_eq h v) (gained v))) as [|N]; auto; right.
      apply (cast_ok _ _ _ _ _ _ _ _ _ Hf i Hi Hs), beyond_gained; auto. apply (tier_ok _ _ _ _ _ _ _ _ _ Hf i Hi Ht). }
    apply (Moves V _ r l0 (map (pair_group id id_eq h v) (gained v)) (map (pair_group id id_eq h v) (gained v))); auto.
    - intros i Hi Hs Ht; apply K; auto; congruence.
    - simpl; rewrite map_length; lia.
    - simpl; rewrite map_length; lia.
  Qed.

  (** A sum over targets, as in Theorem 7: what all broken targets needed together. *)
  Fixpoint total_of (g : id -> Z) (l : list id) : Z := match l with [] => 0 | v :: l' => g v + total_of g l' end.

  Lemma total_le g g' l : (forall v, In v l -> g v <= g' v) -> total_of g l <= total_of g' l.
  Proof.
    induction l as [|v l IH]; simpl; intro H; [lia|].
    pose proof (H v (or_introl eq_refl)); assert (total_of g l <= total_of g' l) by auto; lia.
  Qed.

  Lemma total_at p l : NoDup l -> total_of (fun v => if at_ v p then 1 else 0) l <= 2.
  Proof.
    assert (O : forall x l, NoDup l -> total_of (fun v => if id_eq x v then 1 else 0) l <= 1).
    { intros x m; induction m as [|v m IH]; simpl; intro N; [lia|]; inversion N as [|? ? N1 N2]; subst.
      destruct (id_eq x v) as [->|]; [|specialize (IH N2); lia].
      assert (E : total_of (fun w => if id_eq v w then 1 else 0) m <= 0).
      { clear -N1; induction m as [|w m IH]; simpl in *; [lia|]; destruct (id_eq v w); [exfalso; auto|]. apply IH; auto. }
      lia. }
    intro N. transitivity (total_of (fun v => if id_eq (fst p) v then 1 else 0) l + total_of (fun v => if id_eq (snd p) v then 1 else 0) l).
    - clear N; induction l as [|v l IH]; simpl; [lia|]. unfold at_ at 1; destruct (id_eq (fst p) v), (id_eq (snd p) v); lia.
    - pose proof (O (fst p) l N); pose proof (O (snd p) l N); lia.
  Qed.

  Lemma total_brought p l : NoDup l -> ~ In (fst p) l -> total_of (fun v => if at_ v p then 1 else 0) l <= 1.
  Proof.
    intros N NI; induction l as [|v l IH]; simpl; [lia|]; inversion N as [|? ? N1 N2]; subst.
    simpl in NI. assert (I2 : ~ In (fst p) l) by tauto. specialize (IH N2 I2).
    unfold at_ at 1; destruct (id_eq (fst p) v); [exfalso; auto|].
    destruct (id_eq (snd p) v) as [E|]; [|lia].
    assert (Q : total_of (fun w => if at_ w p then 1 else 0) l <= 0).
    { clear -N1 I2 E; induction l as [|w l IH]; simpl in *; [lia|]. unfold at_ at 1.
      destruct (id_eq (fst p) w); [exfalso; auto|]; destruct (id_eq (snd p) w); [exfalso; subst; auto|].
      assert (total_of (fun u => if at_ u p then 1 else 0) l <= 0) by (apply IH; auto). lia. }
    lia.
  Qed.

  Lemma total_filter ps l c : (forall p, In p ps -> total_of (fun v => if at_ v p then 1 else 0) l <= c) ->
    total_of (fun v => Z.of_nat (length (filter (at_ v) ps))) l <= c * Z.of_nat (length ps).
  Proof.
    induction ps as [|p ps IH]; intro H.
    - simpl; clear; induction l; simpl; lia.
    - assert (E : total_of (fun v => Z.of_nat (length (filter (at_ v) (p :: ps)))) l
                = total_of (fun v => if at_ v p then 1 else 0) l + total_of (fun v => Z.of_nat (length (filter (at_ v) ps))) l).
      { clear; induction l as [|v l IH]; simpl; auto. simpl in IH; rewrite IH. destruct (at_ v p); simpl length; lia. }
      rewrite E. pose proof (H p (or_introl eq_refl)). assert (IH' := IH (fun q I => H q (or_intror I))).
      simpl length; nia.
  Qed.

  Lemma gained_total l : NoDup l -> (forall v, In v l -> spares A v) ->
    total_of (fun v => Z.of_nat (length (gained v))) l <= 2 * Z.of_nat (length (added A)) + Z.of_nat (length (brought A)).
  Proof.
    intros N S.
    assert (E : total_of (fun v => Z.of_nat (length (gained v))) l
       = total_of (fun v => Z.of_nat (length (filter (at_ v) (added A)))) l
         + total_of (fun v => Z.of_nat (length (filter (at_ v) (brought A)))) l).
    { unfold gained; clear; induction l as [|v l IH]; simpl; auto; rewrite app_length; lia. }
    pose proof (total_filter (added A) l 2 (fun p _ => total_at p l N)) as H1.
    assert (H2 : total_of (fun v => Z.of_nat (length (filter (at_ v) (brought A)))) l <= 1 * Z.of_nat (length (brought A))).
    { apply total_filter; intros [x y] I; apply total_brought; auto. simpl; intro J.
      apply (proj1 (S x J)), (brings_ok _ _ _ _ _ _ L x y I). }
    lia.
  Qed.
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
Proof.
  intros id F W id_eq T h f G B C V P doubt label need someone Lf A G' r P' broken L Ha N H.
  assert (Q : total_of id need broken <= 2 * Z.of_nat (length (added A)) + Z.of_nat (length (brought A))).
  { transitivity (total_of id (fun v => Z.of_nat (length (gained id id_eq A v))) broken).
    - apply total_le; intros v I; destruct (H v I) as [S [Hf [Hr [Hn [HP Hb]]]]].
      eapply broken_gained; eauto.
    - eapply gained_total; eauto. intros v I; apply (H v I). }
  pose proof (few_brought_all id F W id_eq A B G G' someone L Ha) as F2.
  pose proof (few_added _ _ _ _ Ha) as F1. unfold few, within, ladd, lmul in *.
  destruct (add_edges B) as [e|]; [|exact I].
  destruct (injected_edges B) as [t|]; [lia|exact I].
Qed.
