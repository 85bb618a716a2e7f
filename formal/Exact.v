(** Theorem 1's converse (docs/proofs.md, "some change of M + 1 ballots elects another class") and the radius of Theorem 8. The first is not
    needed for soundness. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote.
Import ListNotations.
Open Scope Z_scope.

(** The first x places that satisfy p. *)
Definition first_of (x : Z) (p : nat -> bool) (i : nat) : bool := p i && (num i p <? x).

Lemma num_first T x p : 0 <= x -> num T (first_of x p) = Z.min x (num T p).
Proof.
  intro Hx; induction T as [|m IH]; [simpl; lia|]. cbn [num]; rewrite IH; unfold first_of at 1.
  destruct (p m); cbn [andb]; [|lia]. destruct (Z.ltb_spec (num m p) x); lia.
Qed.
(** If k has the better score, a is not the label. *)
Lemma not_label s C a k : (k < C)%nat -> k <> a -> s a < s k + tie k a -> best s C <> a.
Proof.
  intros Hk N H E. assert (L : is_label s C (best s C)) by (apply best_is_label; lia). rewrite E in L.
  destruct L as [_ L]; specialize (L k Hk N); lia.
Qed.

(** ---- Theorem 1 ---- *)

(** c(k) *)
Definition votes_for (T : nat) (b : nat -> ballot) (k : nat) : Z := num T (fun i => beq (b i) (Some k)).

(** Hand the first x ballots of a to k. *)
Definition handed (b : nat -> ballot) (a k : nat) (x : Z) (i : nat) : ballot :=
  if first_of x (fun i => beq (b i) (Some a)) i then Some k else b i.

Lemma handed_counts T b a k x : a <> k -> 0 <= x ->
  votes_for T (handed b a k x) a = votes_for T b a - Z.min x (votes_for T b a)
  /\ votes_for T (handed b a k x) k = votes_for T b k + Z.min x (votes_for T b a).
Proof.
  intros N Hx. pose proof (num_first T x (fun i => beq (b i) (Some a)) Hx) as F. unfold votes_for in *.
  set (p := first_of x (fun i => beq (b i) (Some a))) in *.
  assert (P : forall i, p i = true -> b i = Some a) by (intros i E; unfold p, first_of in E; apply andb_prop in E; apply beq_true, E).
  rewrite <- F; clear F. clear Hx. induction T as [|m IH]; [simpl; lia|]. cbn [num]. destruct IH as [I1 I2].
  unfold handed in I1, I2 |- *; fold p in I1, I2 |- *. assert (K1 : beq (Some k) (Some a) = false) by (apply beq_false; congruence).
  assert (K2 : beq (Some k) (Some k) = true) by (apply beq_true; auto).
  destruct (p m) eqn:E.
  - rewrite (P m E), K1, K2. assert (K3 : beq (Some a) (Some a) = true) by (apply beq_true; auto).
    assert (K4 : beq (Some a) (Some k) = false) by (apply beq_false; congruence). rewrite K3, K4. split; lia.
  - destruct (beq (b m) (Some a)), (beq (b m) (Some k)); split; lia.
Qed.
Lemma handed_few T b a k x : 0 <= x -> num T (fun i => negb (beq (b i) (handed b a k x i))) <= x.
Proof.
  intro Hx. transitivity (num T (first_of x (fun i => beq (b i) (Some a)))); [|rewrite num_first; lia].
  apply num_le; intros i _ H; unfold handed in H. destruct (first_of x (fun i => beq (b i) (Some a)) i); auto.
  apply negb_true_iff, beq_false in H; exfalso; apply H; auto.
Qed.

(** Theorem 1, converse: M is half the smallest margin, rounded down; then some change of M + 1 ballots elects another class. There must be a
    ballot and a second class. *)
Theorem radius_exact :
  forall (C T : nat) (b : nat -> ballot) (M : Z),
    (2 <= C)%nat -> (1 <= T)%nat -> 0 <= M ->
    let a := voted C T (fun _ => 0) b in
    radius_ok C T b a M -> ~ radius_ok C T b a (M + 1) ->
    exists b', num T (fun i => negb (beq (b i) (b' i))) <= M + 1 /\ voted C T (fun _ => 0) b' <> a.
Proof.
  intros C T b M HC HT HM a R NR. assert (Ha : (a < C)%nat) by (apply best_is_label; lia).
  assert (W : exists k, (k < C)%nat /\ k <> a /\ votes_for T b a - votes_for T b k - tie k a < 2 * (M + 1)).
  { destruct (existsb (fun k => negb (Nat.eqb k a) && (votes_for T b a - votes_for T b k - tie k a <? 2 * (M + 1))) (seq 0 C)) eqn:E.
    - apply existsb_exists in E; destruct E as [k [I E]]; apply andb_prop in E; destruct E as [E1 E2].
      exists k; split; [apply in_seq in I; lia|]. split; [apply negb_true_iff, Nat.eqb_neq in E1; auto|apply Z.ltb_lt; auto].
    - exfalso; apply NR; intros k Hk N. destruct (Z.le_gt_cases (2 * (M + 1)) (votes_for T b a - votes_for T b k - tie k a)) as [|Q]; auto.
      exfalso; apply not_true_iff_false in E; apply E, existsb_exists; exists k; split; [apply in_seq; lia|].
      apply andb_true_intro; split; [apply negb_true_iff, Nat.eqb_neq; auto|apply Z.ltb_lt; lia]. }
  destruct W as [k [Hk [N Hm]]]. pose proof (R k Hk N) as Rk.
  change (num T (fun i => beq (b i) (Some a))) with (votes_for T b a) in Rk. change (num T (fun i => beq (b i) (Some k))) with (votes_for T b k) in Rk.
  assert (P0 : 0 <= votes_for T b a) by apply num_nonneg. assert (P1 : 0 <= votes_for T b k) by apply num_nonneg.
  pose proof (tie_range k a) as TR.
  destruct (Z.le_gt_cases (M + 1) (votes_for T b a)) as [G|G].
  - exists (handed b a k (M + 1)); split; [apply handed_few; lia|].
    destruct (handed_counts T b a k (M + 1) (not_eq_sym N) ltac:(lia)) as [E1 E2].
    apply (not_label _ C a k Hk N). unfold score. unfold votes_for in *. rewrite E1, E2. lia.
  - (* nobody voted for a: everyone abstains, and a single ballot decides *)
    assert (M = 0 /\ votes_for T b a = 0 /\ votes_for T b k = 0 /\ tie k a = 0) as [-> [Z1 [Z2 Z3]]] by lia.
    exists (fun i => if Nat.eqb i 0 then Some k else b i); split.
    + transitivity (num T (fun i => Nat.eqb i 0)).
      * apply num_le; intros i _ H. destruct (Nat.eqb i 0); auto. apply negb_true_iff, beq_false in H; exfalso; apply H; auto.
      * clear; induction T as [|m IH]; [simpl; lia|]. cbn [num]. destruct m as [|m]; [simpl; lia|]. simpl Nat.eqb; cbv iota. lia.
    + apply (not_label _ C a k Hk N). unfold score; cbv beta.
      assert (E1 : num T (fun i => beq (if Nat.eqb i 0 then Some k else b i) (Some a)) <= votes_for T b a).
      { apply num_le; intros i _ H; destruct (Nat.eqb i 0); auto. apply beq_true in H; congruence. }
      assert (E2 : 1 <= num T (fun i => beq (if Nat.eqb i 0 then Some k else b i) (Some k))).
      { clear -HT. induction T as [|m IH]; [lia|]. cbn [num]. destruct m as [|m].
        - simpl. rewrite Nat.eqb_refl; lia.
        - specialize (IH ltac:(lia)). destruct (beq _ (Some k)); lia. }
      rewrite Z1 in E1; rewrite Z3, !Z.add_0_l, Z.add_0_r. apply Z.le_lt_trans with 0; [exact E1|]. apply Z.lt_le_trans with 1; [lia|exact E2].
Qed.

(** The radius of Theorem 8 is Theorem 2 with n0 = n1 = n2 = x. *)
Theorem radius_formula :
  forall (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (x : Z),
    0 <= x -> (a < C)%nat ->
    (forall k, (k < C)%nat -> k <> a ->
       Z.min x (for_class V a Reached + for_class V a Unreached + for_class V a Unlisted)
       + Z.min x (not_for V k Reached + not_for V k Unreached + not_for V k Unlisted) <= margin V P doubt a k) ->
    withstands V C P doubt a (Reach (Some x) (Some x) (Some x)).
Proof.
  intros V C P doubt a x Hx Ha H; split; auto; intros k Hk N; specialize (H k Hk N).
  assert (Q1 : forall k t, 0 <= for_class V k t) by (intros; apply num_nonneg).
  assert (Q2 : forall k t, 0 <= not_for V k t) by (intros; apply num_nonneg).
  pose proof (Q1 a Reached); pose proof (Q1 a Unreached); pose proof (Q1 a Unlisted).
  pose proof (Q2 k Reached); pose proof (Q2 k Unreached); pose proof (Q2 k Unlisted).
  assert (L : forall z0 z1 z2, 0 <= z0 -> 0 <= z1 -> 0 <= z2 -> Z.min x (z0 + Z.min x (z1 + Z.min x z2)) = Z.min x (z0 + z1 + z2)) by (clear; intros; lia).
  unfold limit; cbn [all beyond unlisted cap]. rewrite !L by auto. exact H.
Qed.
