(** Theorem 1's converse (docs/proofs.md, "some change of M + 1 votes elects another class") and the radius of Theorem 8. The first is not
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
Definition votes_for (T : nat) (b : nat -> vote) (k : nat) : Z := num T (fun i => beq (b i) (Some k)).

(** Hand the first x votes of a to k. *)
Definition handed (b : nat -> vote) (a k : nat) (x : Z) (i : nat) : vote :=
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

(** Theorem 1, converse: M is half the smallest margin, rounded down; then some change of M + 1 votes elects another class. There must be a
    vote and a second class. *)
Theorem radius_exact :
  forall (C T : nat) (b : nat -> vote) (M : Z),
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
  - (* nobody voted for a: everyone abstains, and a single vote decides *)
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

(** ---- Theorem 2, "only if" ---- *)

(** How an attacker spends three nested limits: of a set with x0, x1, x2 votes in the tiers, first those that are easy to reach. *)
Definition nonnegative (n : lim) : Prop := match n with Some m => 0 <= m | None => True end.
(** What a limit allows among T votes: n, or all of them. *)
Definition most (T : nat) (n : lim) : Z := match n with Some m => Z.min m (Z.of_nat T) | None => Z.of_nat T end.

Lemma spend n x y : 0 <= n -> 0 <= x -> 0 <= y -> exists c e, 0 <= c <= x /\ 0 <= e <= y /\ c = Z.min n x /\ c + e = Z.min n (x + y).
Proof. intros. exists (Z.min n x), (Z.min n (x + y) - Z.min n x). lia. Qed.
Lemma split_in_two u v w : 0 <= w <= u + v -> 0 <= u -> 0 <= v -> exists p q, w = p + q /\ 0 <= p <= u /\ 0 <= q <= v.
Proof. intros. exists (Z.min u w), (w - Z.min u w). lia. Qed.

(** As many of the a0, a1, a2 votes for a as the limits allow, and then as many of the o0, o1, o2 others: both limits are attained at once. *)
Lemma greedy n0 n1 n2 a0 a1 a2 o0 o1 o2 :
  0 <= n0 -> 0 <= n1 -> 0 <= n2 -> 0 <= a0 -> 0 <= a1 -> 0 <= a2 -> 0 <= o0 -> 0 <= o1 -> 0 <= o2 ->
  exists c0 c1 c2 e0 e1 e2,
    (0 <= c0 <= a0 /\ 0 <= c1 <= a1 /\ 0 <= c2 <= a2) /\ (0 <= e0 <= o0 /\ 0 <= e1 <= o1 /\ 0 <= e2 <= o2)
    /\ c0 + c1 + c2 = Z.min n0 (a0 + Z.min n1 (a1 + Z.min n2 a2))
    /\ c0 + c1 + c2 + e0 + e1 + e2 = Z.min n0 (a0 + o0 + Z.min n1 (a1 + o1 + Z.min n2 (a2 + o2)))
    /\ c2 + e2 <= n2 /\ c1 + e1 + c2 + e2 <= n1 /\ c0 + e0 + c1 + e1 + c2 + e2 <= n0.
Proof.
  intros.
  destruct (spend n2 a2 o2) as (x2 & y2 & X2 & Y2 & E2 & F2); auto.
  destruct (spend n1 (a1 + x2) (o1 + y2)) as (x1 & y1 & X1 & Y1 & E1 & F1); try lia.
  destruct (spend n0 (a0 + x1) (o0 + y1)) as (x0 & y0 & X0 & Y0 & E0 & F0); try lia.
  destruct (split_in_two a0 x1 x0) as (c0 & r1 & -> & C0 & R1); try lia.
  destruct (split_in_two a1 x2 r1) as (c1 & c2 & -> & C1 & C2); try lia.
  destruct (split_in_two o0 y1 y0) as (e0 & s1 & -> & D0 & S1); try lia.
  destruct (split_in_two o1 y2 s1) as (e1 & e2 & -> & D1 & D2); try lia.
  exists c0, c1, c2, e0, e1, e2.
  assert (x1 + y1 <= n1) by lia. assert (x2 + y2 <= n2) by lia.
  split; [lia|]. split; [lia|]. split; [subst x1 x2; clear - E0; lia|]. split; [|lia].
  replace (c0 + (c1 + c2) + (e0 + (e1 + e2))) with (c0 + c1 + c2 + e0 + e1 + e2) in F0 by lia. rewrite F0.
  replace (a0 + x1 + (o0 + y1)) with (a0 + o0 + (x1 + y1)) by lia. rewrite F1.
  replace (a1 + x2 + (o1 + y2)) with (a1 + o1 + (x2 + y2)) by lia. rewrite F2. reflexivity.
Qed.

Section OnlyIf.
  Variables (V : votes) (n : reach).
  Hypothesis n0_ok : nonnegative (all n).
  Hypothesis n1_ok : nonnegative (beyond n).
  Hypothesis n2_ok : nonnegative (unlisted n).
  Let T := groups V.

  Lemma capped m x : nonnegative m -> 0 <= x <= Z.of_nat T -> cap m x = Z.min (most T m) x.
  Proof. destruct m; simpl; lia. Qed.

  Lemma tiers_sum (X : nat -> bool) :
    num T X = num T (fun i => X i && teq (tier_of V i) Reached) + num T (fun i => X i && teq (tier_of V i) Unreached)
              + num T (fun i => X i && teq (tier_of V i) Unlisted).
  Proof. induction T as [|m IH]; simpl; [lia|]; rewrite IH; destruct (X m), (tier_of V m); simpl; lia. Qed.

  Lemma limit_min (X : nat -> bool) :
    limit n (fun t => num T (fun i => X i && teq (tier_of V i) t))
    = Z.min (most T (all n)) (num T (fun i => X i && teq (tier_of V i) Reached)
        + Z.min (most T (beyond n)) (num T (fun i => X i && teq (tier_of V i) Unreached)
          + Z.min (most T (unlisted n)) (num T (fun i => X i && teq (tier_of V i) Unlisted)))).
  Proof.
    pose proof (tiers_sum X) as E. pose proof (num_le_all T X) as L.
    assert (Q : forall t, 0 <= num T (fun i => X i && teq (tier_of V i) t)) by (intro; apply num_nonneg).
    pose proof (Q Reached); pose proof (Q Unreached); pose proof (Q Unlisted). unfold limit.
    assert (K : forall m x, nonnegative m -> 0 <= x -> 0 <= cap m x <= x) by (clear; intros [m|] x; simpl; lia).
    pose proof (K (unlisted n) _ n2_ok (Q Unlisted)).
    assert (0 <= cap (beyond n) (num T (fun i => X i && teq (tier_of V i) Unreached) + cap (unlisted n) (num T (fun i => X i && teq (tier_of V i) Unlisted)))
            <= num T (fun i => X i && teq (tier_of V i) Unreached) + cap (unlisted n) (num T (fun i => X i && teq (tier_of V i) Unlisted)))
      by (apply K; auto; lia).
    rewrite (capped (all n)), (capped (beyond n)), (capped (unlisted n)); auto; lia.
  Qed.

  Variables (a k : nat).
  Hypothesis apart : k <> a.
  Let mine i := stable V i && beq (cast V i) (Some a).
  Let others i := stable V i && negb (beq (cast V i) (Some a)) && negb (beq (cast V i) (Some k)).
  Let rest i := stable V i && negb (beq (cast V i) (Some k)).

  Lemma rest_sum t :
    num T (fun i => rest i && teq (tier_of V i) t)
    = num T (fun i => mine i && teq (tier_of V i) t) + num T (fun i => others i && teq (tier_of V i) t).
  Proof.
    unfold rest, mine, others. induction T as [|m IH]; simpl; [lia|]; rewrite IH.
    assert (N : beq (cast V m) (Some a) = true -> beq (cast V m) (Some k) = false) by (rewrite beq_true, beq_false; congruence).
    destruct (stable V m), (beq (cast V m) (Some a)), (beq (cast V m) (Some k)), (teq (tier_of V m) t); simpl; try lia; discriminate (N eq_refl).
  Qed.

  (** A choice of so many votes of each tier and kind. *)
  Definition chosen (c e : tier -> Z) (i : nat) : bool :=
    let t := tier_of V i in
    first_of (c t) (fun i => mine i && teq (tier_of V i) t) i || first_of (e t) (fun i => others i && teq (tier_of V i) t) i.

  Lemma chosen_num (c e : tier -> Z) t :
    0 <= c t <= num T (fun i => mine i && teq (tier_of V i) t) -> 0 <= e t <= num T (fun i => others i && teq (tier_of V i) t) ->
    num T (fun i => chosen c e i && mine i && teq (tier_of V i) t) = c t
    /\ num T (fun i => chosen c e i && teq (tier_of V i) t) = c t + e t.
  Proof.
    intros Hc He.
    assert (EX : forall i, mine i && others i = false).
    { intro i; unfold mine, others; destruct (stable V i), (beq (cast V i) (Some a)); auto. }
    assert (TQ : forall i, teq (tier_of V i) t = true -> tier_of V i = t) by (intro i; destruct (tier_of V i), t; simpl; auto; discriminate).
    pose proof (num_first T (c t) (fun i => mine i && teq (tier_of V i) t) ltac:(lia)) as F1.
    pose proof (num_first T (e t) (fun i => others i && teq (tier_of V i) t) ltac:(lia)) as F2.
    rewrite Z.min_l in F1 by lia. rewrite Z.min_l in F2 by lia. split.
    - transitivity (num T (first_of (c t) (fun i => mine i && teq (tier_of V i) t))); [|exact F1]. apply num_ext; intros i _. unfold chosen.
      destruct (teq (tier_of V i) t) eqn:Et; [rewrite (TQ i Et)|unfold first_of; rewrite Et, !andb_false_r; auto].
      unfold first_of. rewrite Et, !andb_true_r. specialize (EX i). destruct (mine i), (others i); simpl in *; try discriminate; auto using andb_true_r, orb_false_r.
      + rewrite orb_false_r, andb_true_r; auto.
      + rewrite andb_false_r; auto.
    - transitivity (num T (first_of (c t) (fun i => mine i && teq (tier_of V i) t)) + num T (first_of (e t) (fun i => others i && teq (tier_of V i) t)));
        [|rewrite F1, F2; reflexivity]. clear F1 F2.
      assert (P : forall i, chosen c e i && teq (tier_of V i) t =
                  first_of (c t) (fun i => mine i && teq (tier_of V i) t) i || first_of (e t) (fun i => others i && teq (tier_of V i) t) i).
      { intro i; unfold chosen. destruct (teq (tier_of V i) t) eqn:Et; [rewrite (TQ i Et), andb_true_r; auto|unfold first_of; rewrite Et, !andb_false_r; auto]. }
      assert (D : forall i, first_of (c t) (fun i => mine i && teq (tier_of V i) t) i && first_of (e t) (fun i => others i && teq (tier_of V i) t) i = false).
      { intro i; unfold first_of; specialize (EX i). destruct (mine i), (others i); simpl in *; auto; try discriminate; rewrite ?andb_false_r; auto. }
      rewrite (num_ext T _ _ (fun i _ => P i)).
      set (p := first_of (c t) _) in *. set (q := first_of (e t) _) in *. clearbody p q. clear -D.
      induction T as [|m IH]; [reflexivity|]. cbn [num]; rewrite IH; specialize (D m). destruct (p m), (q m); simpl in *; try discriminate; lia.
  Qed.

  (** What the vote reads then: the chosen votes, and all that is not stable, are for k. *)
  Definition turned_to (X : nat -> bool) (i : nat) : vote := if negb (stable V i) || X i then Some k else cast V i.

  Lemma turned_counts (X : nat -> bool) : (forall i, X i = true -> rest i = true) ->
    num T (fun i => beq (turned_to X i) (Some a)) = standing V a - num T (fun i => X i && mine i)
    /\ num T (fun i => beq (turned_to X i) (Some k)) = standing V k + conceded V + num T X.
  Proof.
    intro HX. unfold standing, conceded, turned_to. fold T.
    assert (K1 : beq (Some k) (Some a) = false) by (apply beq_false; congruence). assert (K2 : beq (Some k) (Some k) = true) by (apply beq_true; auto).
    induction T as [|m IH]; [simpl; lia|]. cbn [num]. destruct IH as [I1 I2]; rewrite I1, I2. unfold mine. specialize (HX m). unfold rest in HX.
    destruct (stable V m), (X m); cbn [negb orb andb]; rewrite ?K1, ?K2; try (specialize (HX eq_refl)); simpl in *; try discriminate;
      destruct (beq (cast V m) (Some a)) eqn:Ea, (beq (cast V m) (Some k)) eqn:Ek; simpl in *; try discriminate; try lia;
      apply beq_true in Ea; apply beq_true in Ek; congruence.
  Qed.

  Lemma some_attack :
    exists r, moves V n r
      /\ num T (fun i => beq (r i) (Some a)) = standing V a - limit n (for_class V a)
      /\ num T (fun i => beq (r i) (Some k)) = standing V k + conceded V + limit n (not_for V k).
  Proof.
    assert (N : forall p, 0 <= num T p) by (intro; apply num_nonneg).
    assert (M : forall m, nonnegative m -> 0 <= most T m) by (intros [m|]; simpl; lia).
    destruct (greedy (most T (all n)) (most T (beyond n)) (most T (unlisted n))
      (num T (fun i => mine i && teq (tier_of V i) Reached)) (num T (fun i => mine i && teq (tier_of V i) Unreached)) (num T (fun i => mine i && teq (tier_of V i) Unlisted))
      (num T (fun i => others i && teq (tier_of V i) Reached)) (num T (fun i => others i && teq (tier_of V i) Unreached)) (num T (fun i => others i && teq (tier_of V i) Unlisted)))
      as (c0 & c1 & c2 & e0 & e1 & e2 & (B0 & B1 & B2) & (D0 & D1 & D2) & SC & SE & L2 & L1 & L0); auto.
    set (c := fun t => match t with Reached => c0 | Unreached => c1 | Unlisted => c2 end).
    set (e := fun t => match t with Reached => e0 | Unreached => e1 | Unlisted => e2 end).
    set (X := chosen c e).
    assert (Q : forall t, num T (fun i => X i && mine i && teq (tier_of V i) t) = c t /\ num T (fun i => X i && teq (tier_of V i) t) = c t + e t).
    { intros []; apply chosen_num; simpl; lia. }
    destruct (Q Reached) as [Q1 Q2], (Q Unreached) as [Q3 Q4], (Q Unlisted) as [Q5 Q6]. simpl in Q1, Q2, Q3, Q4, Q5, Q6.
    assert (XR : forall i, X i = true -> rest i = true).
    { intros i E; unfold X, chosen, first_of in E. apply orb_true_iff in E; unfold rest, mine, others in *.
      destruct E as [E|E]; apply andb_prop in E; destruct E as [E _]; apply andb_prop in E; destruct E as [E _].
      - apply andb_prop in E; destruct E as [E1 E2]; rewrite E1; simpl. apply negb_true_iff, beq_false. apply beq_true in E2; congruence.
      - apply andb_prop in E; destruct E as [E1 E2]; apply andb_prop in E1; destruct E1 as [E0 _]. rewrite E0, E2; auto. }
    pose proof (tiers_sum X) as TX. pose proof (tiers_sum (fun i => X i && mine i)) as TM. cbv beta in TM. rewrite Q2, Q4, Q6 in TX. rewrite Q1, Q3, Q5 in TM.
    assert (FA : limit n (for_class V a) = c0 + c1 + c2).
    { change (for_class V a) with (fun t => num T (fun i => mine i && teq (tier_of V i) t)). rewrite limit_min, SC; reflexivity. }
    assert (FK : limit n (not_for V k) = c0 + c1 + c2 + e0 + e1 + e2).
    { change (not_for V k) with (fun t => num T (fun i => rest i && teq (tier_of V i) t)). rewrite limit_min, !rest_sum, SE; reflexivity. }
    destruct (turned_counts X XR) as [R1 R2]. exists (turned_to X). split; [|rewrite R1, R2, FA, FK; lia].
    assert (W : forall p m, nonnegative m -> num T p <= most T m -> within (Z.of_nat (length (filter p (seq 0 T)))) m).
    { intros p [m|] Hm H; simpl; auto. rewrite <- num_filter; unfold most in H; lia. }
    assert (I : forall p i, (i < T)%nat -> p i = true -> In i (filter p (seq 0 T))) by (intros p i Hi E; apply filter_In; split; auto; apply in_seq; lia).
    assert (SAME : forall i, stable V i = true -> X i = false -> turned_to X i = cast V i) by (intros i E1 E2; unfold turned_to; rewrite E1, E2; auto).
    apply (Moves V n _ (filter X (seq 0 T)) (filter (fun i => X i && negb (teq (tier_of V i) Reached)) (seq 0 T))
                 (filter (fun i => X i && teq (tier_of V i) Unlisted) (seq 0 T))).
    - intros i Hi St; destruct (X i) eqn:E; auto.
    - intros i Hi St Ht; destruct (X i) eqn:E; auto. left; apply I; auto. rewrite E; destruct (tier_of V i); simpl; auto; congruence.
    - intros i Hi St Ht; destruct (X i) eqn:E; auto. left; apply I; auto. rewrite E, Ht; auto.
    - apply W; auto; lia.
    - apply W; auto. assert (EQ : num T (fun i => X i && negb (teq (tier_of V i) Reached)) = num T (fun i => X i && teq (tier_of V i) Unreached) + num T (fun i => X i && teq (tier_of V i) Unlisted)).
      { clear; induction T as [|m IH]; [reflexivity|]; cbn [num]; rewrite IH; destruct (X m), (tier_of V m); simpl; lia. }
      lia.
    - apply W; auto; lia.
  Qed.
End OnlyIf.

(** Theorem 2, "only if": where the test fails, votes within the limits, read as some machine may read them, and a prior within its doubt elect
    another class. *)
Theorem vote_exact :
  forall (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (n : reach),
    (0 < C)%nat -> nonnegative (all n) -> nonnegative (beyond n) -> nonnegative (unlisted n) ->
    ~ withstands V C P doubt a n ->
    exists (P' : nat -> Z) (r : nat -> vote),
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) /\ moves V n r /\ voted C (groups V) P' r <> a.
Proof.
  intros V C P doubt a n HC H0 H1 H2 NW.
  set (P' := fun k => if Nat.eqb k a then P a - doubt else P k).
  assert (HP : forall k, k <> a -> P' a - P' k = P a - P k - doubt).
  { intros k N; unfold P'; rewrite Nat.eqb_refl; destruct (Nat.eqb_spec k a); [contradiction|lia]. }
  destruct (Nat.lt_ge_cases a C) as [Ha|Ha].
  - assert (W : exists k, (k < C)%nat /\ k <> a /\ margin V P doubt a k < limit n (for_class V a) + limit n (not_for V k)).
    { set (bad := fun k => negb (Nat.eqb k a) && (margin V P doubt a k <? limit n (for_class V a) + limit n (not_for V k))).
      destruct (existsb bad (seq 0 C)) eqn:E.
      - apply existsb_exists in E; destruct E as [k [I E]]; apply andb_prop in E; destruct E as [E1 E2]. exists k; split; [apply in_seq in I; lia|].
        split; [apply negb_true_iff, Nat.eqb_neq in E1; auto|apply Z.ltb_lt; auto].
      - exfalso; apply NW; split; auto; intros k Hk N. destruct (Z.le_gt_cases (limit n (for_class V a) + limit n (not_for V k)) (margin V P doubt a k)); auto.
        exfalso; apply not_true_iff_false in E; apply E, existsb_exists; exists k; split; [apply in_seq; lia|].
        apply andb_true_intro; split; [apply negb_true_iff, Nat.eqb_neq; auto|apply Z.ltb_lt; lia]. }
    destruct W as [k [Hk [N Hm]]]. destruct (some_attack V n H0 H1 H2 a k N) as [r [M [R1 R2]]].
    exists P', r; split; [intros j _ Nj; rewrite HP; auto; lia|]. split; auto.
    apply (not_label _ C a k Hk N). unfold score. rewrite R1, R2. specialize (HP k N). unfold margin in Hm. lia.
  - exists P', (fun i => cast V i); split; [intros j _ Nj; rewrite HP; auto; lia|]. split.
    + apply (Moves V n _ [] [] []); auto.
    + intro E. assert (L : (voted C (groups V) P' (fun i => cast V i) < C)%nat) by (apply best_is_label; auto). lia.
Qed.
