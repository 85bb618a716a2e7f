(** Possible classes (docs/proofs.md, Theorem 12): a class that fails the test cannot be made to win. Votes in tiers, with conceded ones and a prior. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote.
Import ListNotations.
Open Scope Z_scope.

Section Possible.
  Variables (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (n : reach) (k : nat).

  (** m: the most votes that k can win. *)
  Definition won : Z := limit n (not_for V k).
  (** need(j) = max(0, s(j) + [j < k] - s(k) - u - m): votes that j must lose. *)
  Definition must_lose (j : nat) : Z :=
    if Nat.eqb j k then 0
    else Z.max 0 (P j + standing V j + tie j k - P k - standing V k - conceded V - doubt - won).
  (** A sum over the first c classes. *)
  Fixpoint over_classes (f : nat -> Z) (c : nat) : Z := match c with O => 0 | S c' => over_classes f c' + f c' end.
  (** The conditions under which k is possible. *)
  Record possible : Prop := {
    can_lose : forall j, (j < C)%nat -> must_lose j <= for_class V j Reached + for_class V j Unreached + for_class V j Unlisted;
    lose_all : within (over_classes must_lose C) (all n);
    lose_beyond : within (over_classes (fun j => Z.max 0 (must_lose j - for_class V j Reached)) C) (beyond n);
    lose_unlisted : within (over_classes (fun j => Z.max 0 (must_lose j - for_class V j Reached - for_class V j Unreached)) C) (unlisted n)
  }.

  (** ---- Proofs ---- *)

  Lemma over_le f g c : (forall j, (j < c)%nat -> f j <= g j) -> over_classes f c <= over_classes g c.
  Proof. induction c as [|c IH]; intro H; simpl; [lia|]. pose proof (H c ltac:(lia)). assert (over_classes f c <= over_classes g c) by (apply IH; intros; apply H; lia). lia. Qed.

  (** Votes for different classes are different votes. *)
  Lemma over_num (p : nat -> bool) (b : nat -> vote) T c : over_classes (fun j => num T (fun i => p i && beq (b i) (Some j))) c <= num T p.
  Proof.
    assert (E : forall T, over_classes (fun j => num T (fun i => p i && beq (b i) (Some j))) c
                  = num T (fun i => p i && match b i with Some j => Nat.ltb j c | None => false end)).
    { induction c as [|c IH]; intro T0; cbn [over_classes].
      - assert (Q : num T0 (fun i => p i && match b i with Some j => Nat.ltb j 0 | None => false end) = num T0 (fun _ => false)).
        { apply num_ext; intros i _. destruct (b i) as [j|]; [destruct j; simpl|]; rewrite andb_false_r; auto. }
        rewrite Q; clear; induction T0; simpl; lia.
      - rewrite IH. clear IH. induction T0 as [|m IH]; [reflexivity|]. cbn [num]. rewrite <- IH.
        destruct (p m); cbn [andb]; [|lia]. destruct (b m) as [j|]; cbn [beq]; [|lia].
        destruct (Nat.eqb_spec j c), (Nat.ltb_spec j c), (Nat.ltb_spec j (S c)); lia. }
    rewrite E. apply num_le; intros i _ H; apply andb_prop in H; apply H.
  Qed.

  Variables (r : nat -> vote) (P' : nat -> Z).
  Hypothesis M : moves V n r.
  Hypothesis prior_ok : forall j, (j < C)%nat -> j <> k -> P j - P k - doubt <= P' j - P' k.
  Hypothesis wins : voted C (groups V) P' r = k.
  Let T := groups V.
  Let ch i := stable V i && negb (beq (r i) (cast V i)).
  Let x t j := num T (fun i => ch i && teq (tier_of V i) t && beq (cast V i) (Some j)).

  Lemma lost_of j : (j < C)%nat -> j <> k -> must_lose j <= x Reached j + x Unreached j + x Unlisted j.
  Proof.
    intros Hj N. unfold must_lose. destruct (Nat.eqb_spec j k) as [|_]; [contradiction|].
    assert (X0 : forall t, 0 <= x t j) by (intro; apply num_nonneg). pose proof (X0 Reached); pose proof (X0 Unreached); pose proof (X0 Unlisted).
    assert (XS : x Reached j + x Unreached j + x Unlisted j = num T (fun i => ch i && beq (cast V i) (Some j))).
    { unfold x. clear. induction T as [|m IH]; [reflexivity|]. cbn [num]. rewrite <- IH. destruct (ch m), (tier_of V m), (beq (cast V m) (Some j)); simpl; lia. }
    (* what k has, and what j keeps *)
    assert (A1 : num T (fun i => beq (r i) (Some k)) <= standing V k + conceded V + num T (fun i => ch i && negb (beq (cast V i) (Some k)))).
    { unfold standing, conceded. fold T. clear -k. induction T as [|m IH]; [simpl; lia|]. cbn [num]. unfold ch at 2.
      destruct (stable V m), (beq (cast V m) (Some k)) eqn:E1, (beq (r m) (Some k)) eqn:E2, (beq (r m) (cast V m)) eqn:E3; cbn [andb negb]; try lia.
      exfalso. apply beq_true in E2, E3. rewrite E2 in E3. rewrite <- E3 in E1. apply beq_false in E1; congruence. }
    assert (A2 : standing V j - num T (fun i => ch i && beq (cast V i) (Some j)) <= num T (fun i => beq (r i) (Some j))).
    { unfold standing. fold T. clear -j. induction T as [|m IH]; [simpl; lia|]. cbn [num]. unfold ch at 2.
      destruct (stable V m), (beq (cast V m) (Some j)) eqn:E1, (beq (r m) (Some j)) eqn:E2, (beq (r m) (cast V m)) eqn:E3; cbn [andb negb]; try lia.
      exfalso. apply beq_true in E1, E3. rewrite E1 in E3. apply beq_false in E2; congruence. }
    pose proof (moved_within V n r M (fun i => negb (beq (cast V i) (Some k)))) as A3. fold T in A3.
    change (num T (fun i => ch i && negb (beq (cast V i) (Some k))) <= won) in A3.
    assert (L : is_label (score T P' r) C k).
    { rewrite <- wins. apply best_is_label. lia. }
    destruct L as [_ L]. specialize (L j Hj N). unfold score in L. specialize (prior_ok j Hj N). lia.
  Qed.

  (** Theorem 12 (a): whatever class wins is a possible one. *)
  Theorem winner_is_possible : possible.
  Proof.
    assert (CX : forall j t, x t j <= for_class V j t).
    { intros j t; apply num_le; intros i _; unfold ch. destruct (stable V i), (beq (cast V i) (Some j)), (teq (tier_of V i) t), (beq (r i) (cast V i)); simpl; auto; discriminate. }
    assert (X0 : forall t j, 0 <= x t j) by (intros; apply num_nonneg).
    assert (F0 : forall j t, 0 <= for_class V j t) by (intros; apply num_nonneg).
    assert (NE : forall j, (j < C)%nat -> must_lose j <= x Reached j + x Unreached j + x Unlisted j).
    { intros j Hj. destruct (Nat.eq_dec j k) as [->|N]; [|apply lost_of; auto]. unfold must_lose; rewrite Nat.eqb_refl.
      pose proof (X0 Reached k); pose proof (X0 Unreached k); pose proof (X0 Unlisted k); lia. }
    assert (TOT : forall q, over_classes (fun j => num T (fun i => ch i && q i && beq (cast V i) (Some j))) C <= num T (fun i => ch i && q i)) by (intro; apply over_num).
    destruct M as [l0 l1 l2 h0 h1 h2 f0 f1 f2].
    assert (B0 : num T (fun i => ch i && true) <= Z.of_nat (length l0)).
    { apply num_list; intros i Hi Hc. rewrite andb_true_r in Hc. unfold ch in Hc; apply andb_prop in Hc; destruct Hc as [Hs Hr]. apply negb_true_iff, beq_false in Hr. destruct (h0 i Hi Hs); auto; contradiction. }
    assert (B1 : num T (fun i => ch i && negb (teq (tier_of V i) Reached)) <= Z.of_nat (length l1)).
    { apply num_list; intros i Hi Hc. apply andb_prop in Hc; destruct Hc as [Hc Ht]. unfold ch in Hc; apply andb_prop in Hc; destruct Hc as [Hs Hr]. apply negb_true_iff, beq_false in Hr.
      destruct (h1 i Hi Hs); auto; try contradiction. intro E; rewrite E in Ht; discriminate. }
    assert (B2 : num T (fun i => ch i && teq (tier_of V i) Unlisted) <= Z.of_nat (length l2)).
    { apply num_list; intros i Hi Hc. apply andb_prop in Hc; destruct Hc as [Hc Ht]. unfold ch in Hc; apply andb_prop in Hc; destruct Hc as [Hs Hr]. apply negb_true_iff, beq_false in Hr.
      destruct (h2 i Hi Hs); auto; try contradiction. destruct (tier_of V i); auto; discriminate. }
    assert (S0 : forall j, x Reached j + x Unreached j + x Unlisted j = num T (fun i => ch i && true && beq (cast V i) (Some j))).
    { intro j; unfold x. clear. induction T as [|m IH]; [reflexivity|]. cbn [num]. rewrite <- IH. destruct (ch m), (tier_of V m), (beq (cast V m) (Some j)); simpl; lia. }
    assert (S1 : forall j, x Unreached j + x Unlisted j = num T (fun i => ch i && negb (teq (tier_of V i) Reached) && beq (cast V i) (Some j))).
    { intro j; unfold x. clear. induction T as [|m IH]; [reflexivity|]. cbn [num]. rewrite <- IH. destruct (ch m), (tier_of V m), (beq (cast V m) (Some j)); simpl; lia. }
    assert (W : forall a b m, a <= b -> within b m -> within a m) by (clear; intros a b [m|]; simpl; lia || auto).
    split.
    - intros j Hj. specialize (NE j Hj). pose proof (CX j Reached); pose proof (CX j Unreached); pose proof (CX j Unlisted). lia.
    - apply (W _ (Z.of_nat (length l0))); auto. etransitivity; [|exact B0]. etransitivity; [|apply (TOT (fun _ => true))]. apply over_le; intros j Hj. rewrite <- S0; auto.
    - apply (W _ (Z.of_nat (length l1))); auto. etransitivity; [|exact B1]. etransitivity; [|apply (TOT (fun i => negb (teq (tier_of V i) Reached)))].
      apply over_le; intros j Hj. cbv beta. rewrite <- S1. specialize (NE j Hj). pose proof (CX j Reached); pose proof (X0 Unreached j); pose proof (X0 Unlisted j). lia.
    - apply (W _ (Z.of_nat (length l2))); auto. etransitivity; [|exact B2]. etransitivity; [|apply (TOT (fun i => teq (tier_of V i) Unlisted))].
      apply over_le; intros j Hj. cbv beta. specialize (NE j Hj). pose proof (CX j Reached); pose proof (CX j Unreached); pose proof (X0 Unlisted j). unfold x at 3 in NE. fold (x Unlisted j). unfold x in *. lia.
  Qed.
End Possible.
