(** The inequalities of Theorem 11 (docs/proofs.md) about real numbers: what an edge, and what nodes, can do to a softmax. Coq's real numbers bring axioms
    (assumptions-reals.txt lists them), so this file stands apart: nothing else imports it, and the extracted program does not contain it. TwoLevels.v has
    what is proved here as hypotheses about whole numbers. *)
From Coq Require Import Reals Lra Lia Psatz ZArith List Permutation.
From Agnncert Require Import Vote Graph StackedVote StackedChecker StackedProofs TwoLevelsGraph.
Import ListNotations.
Open Scope R_scope.

(** The logistic increment: A / (A + Q) moves by no more than x / 4 if A is multiplied by exp x. *)
Lemma exp_bound u : 0 <= u -> 2 * (exp u - 1) <= u * (exp u + 1).
Proof.
  intro Hu. destruct (Req_dec u 0) as [->|N]; [rewrite exp_0; lra|]. assert (0 < u) by lra.
  set (f := fun t => t * (exp t + 1) - 2 * (exp t - 1)). set (f' := fun t => 1 + exp t * (t - 1)).
  assert (D : forall t, derivable_pt_lim f t (f' t)).
  { intro t. unfold f, f'.
    replace (1 + exp t * (t - 1)) with ((1 * (exp t + 1) + t * (exp t + 0)) - (0 * (exp t - 1) + 2 * (exp t - 0))) by ring.
    apply (derivable_pt_lim_minus (fun t => t * (exp t + 1)) (fun t => 2 * (exp t - 1))).
    - apply (derivable_pt_lim_mult (fun t => t) (fun t => exp t + 1)); [apply derivable_pt_lim_id|].
      apply (derivable_pt_lim_plus exp (fun _ => 1)); [apply derivable_pt_lim_exp|apply derivable_pt_lim_const].
    - apply (derivable_pt_lim_mult (fun _ => 2) (fun t => exp t - 1)); [apply derivable_pt_lim_const|].
      apply (derivable_pt_lim_minus exp (fun _ => 1)); [apply derivable_pt_lim_exp|apply derivable_pt_lim_const]. }
  destruct (MVT_cor2 f f' 0 u H (fun c _ => D c)) as [c [E [C1 C2]]].
  assert (F0 : f 0 = 0) by (unfold f; rewrite exp_0; ring).
  assert (P : 0 <= f' c).
  { unfold f'. pose proof (exp_ineq1_le (- c)). rewrite exp_Ropp in H0. pose proof (exp_pos c) as EP.
    assert (exp c * (1 + - c) <= exp c * / exp c) by (apply Rmult_le_compat_l; lra). rewrite Rinv_r in H1 by lra. lra. }
  assert (0 <= f' c * (u - 0)) by (apply Rmult_le_pos; lra). unfold f in *. lra.
Qed.

Lemma logistic A Q x : 0 < A -> 0 < Q -> 0 <= x ->
  0 <= A * exp x / (A * exp x + Q) - A / (A + Q) <= x / 4.
Proof.
  intros HA HQ Hx. set (h := exp (x / 2)). assert (E : exp x = h * h) by (unfold h; rewrite <- exp_plus; f_equal; lra).
  assert (H1 : 1 <= h) by (unfold h; pose proof (exp_ineq1_le (x / 2)); lra).
  assert (B : 2 * (h - 1) <= x / 2 * (h + 1)) by (apply exp_bound; lra).
  rewrite E. assert (P1 : 0 < A * (h * h) + Q) by nra. assert (P2 : 0 < A + Q) by lra.
  replace (A * (h * h) / (A * (h * h) + Q) - A / (A + Q)) with (A * Q * (h * h - 1) / ((A * (h * h) + Q) * (A + Q))) by (field; split; lra).
  assert (PP : 0 < (A * (h * h) + Q) * (A + Q)) by (apply Rmult_lt_0_compat; auto).
  assert (AQ : 0 < A * Q) by (apply Rmult_lt_0_compat; auto). split.
  - apply Rmult_le_pos; [apply Rmult_le_pos; [lra|nra]|left; apply Rinv_0_lt_compat; auto].
  - (* the denominator is at least A Q (h + 1)^2 *)
    assert (DN : A * Q * ((h + 1) * (h + 1)) <= (A * (h * h) + Q) * (A + Q)).
    { assert (0 <= (A * h - Q) * (A * h - Q)) by (apply Rle_0_sqr). nra. }
    apply (Rmult_le_reg_r ((A * (h * h) + Q) * (A + Q))); auto. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (S1 : A * Q * (h * h - 1) <= A * Q * (x / 4 * ((h + 1) * (h + 1)))) by (apply Rmult_le_compat_l; [lra|nra]).
    assert (S2 : x / 4 * (A * Q * ((h + 1) * (h + 1))) <= x / 4 * ((A * (h * h) + Q) * (A + Q))) by (apply Rmult_le_compat_l; lra). nra.
Qed.

(** softmax_j - softmax_k, from the exponentials A of j, B of k and C of all others together. *)
Definition apart (A B C : R) : R := (A - B) / (A + B + C).

Lemma apart_first A B C x : 0 < A -> 0 < B -> 0 <= C -> 0 <= x -> Rabs (apart (A * exp x) B C - apart A B C) <= x / 2.
Proof.
  intros HA HB HC Hx. pose proof (exp_pos x) as EP. pose proof (exp_ineq1_le x) as E1. destruct (logistic A (B + C) x HA ltac:(lra) Hx) as [L1 L2].
  assert (HX : 0 < A * exp x) by (apply Rmult_lt_0_compat; auto).
  replace (apart (A * exp x) B C - apart A B C)
    with ((1 + B / (B + C)) * (A * exp x / (A * exp x + (B + C)) - A / (A + (B + C)))) by (unfold apart; field; repeat split; lra).
  assert (F : 0 <= B / (B + C) <= 1).
  { split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|]. apply (Rmult_le_reg_r (B + C)); [lra|]. unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  rewrite Rabs_pos_eq; [|apply Rmult_le_pos; lra]. nra.
Qed.
Lemma apart_second A B C x : 0 < A -> 0 < B -> 0 <= C -> 0 <= x -> Rabs (apart A (B * exp x) C - apart A B C) <= x / 2.
Proof.
  intros HA HB HC Hx. pose proof (apart_first B A C x HB HA HC Hx) as H. rewrite <- Rabs_Ropp.
  assert (HX : 0 < B * exp x) by (apply Rmult_lt_0_compat; auto; apply exp_pos).
  replace (- (apart A (B * exp x) C - apart A B C)) with (apart (B * exp x) A C - apart B A C) by (unfold apart; field; repeat split; lra). auto.
Qed.
(** The others together grow by a factor from 1 to exp x. *)
Lemma apart_others A B C C' x : 0 < A -> 0 < B -> 0 <= C -> C <= C' -> C' <= C * exp x -> 0 <= x -> Rabs (apart A B C' - apart A B C) <= x / 2.
Proof.
  intros HA HB HC H1 H2 Hx. destruct (Req_dec C 0) as [->|N].
  { replace C' with 0 by (rewrite Rmult_0_l in H2; lra). unfold Rminus; rewrite Rplus_opp_r, Rabs_R0; lra. }
  destruct (logistic C (A + B) x ltac:(lra) ltac:(lra) Hx) as [L1 L2].
  assert (M : 0 <= C' / (C' + (A + B)) - C / (C + (A + B)) <= x / 4).
  { split.
    - replace (C' / (C' + (A + B)) - C / (C + (A + B))) with ((A + B) * (C' - C) / ((C' + (A + B)) * (C + (A + B)))) by (field; split; lra).
      apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; apply Rmult_lt_0_compat; lra].
    - apply Rle_trans with (C * exp x / (C * exp x + (A + B)) - C / (C + (A + B))); [|auto]. apply Rplus_le_compat_r.
      replace (C' / (C' + (A + B))) with (1 - (A + B) / (C' + (A + B))) by (field; lra).
      replace (C * exp x / (C * exp x + (A + B))) with (1 - (A + B) / (C * exp x + (A + B))) by (field; lra).
      apply Rplus_le_compat_l, Ropp_le_contravar. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra. }
  replace (apart A B C' - apart A B C) with (- ((A - B) / (A + B)) * (C' / (C' + (A + B)) - C / (C + (A + B)))) by (unfold apart; field; repeat split; lra).
  rewrite Rabs_mult, (Rabs_pos_eq (C' / _ - _)) by lra. rewrite Rabs_Ropp.
  assert (F : Rabs ((A - B) / (A + B)) <= 1).
  { unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ (A + B))) by (left; apply Rinv_0_lt_compat; lra).
    apply (Rmult_le_reg_r (A + B)); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. apply Rabs_le; lra. }
  pose proof (Rabs_pos ((A - B) / (A + B))). nra.
Qed.

(** Theorem 11 (a): logits of a neighbour move by w b with b >= 0 and sum at most 1, so that those of j, k and the others move by x, y and at most z with
    x + y + z <= w: the lead of j over k in its vote moves by at most w / 2. *)
Theorem edge_moves_half :
  forall (A B C C' w x y z : R),
    0 < A -> 0 < B -> 0 <= C -> 0 <= x -> 0 <= y -> 0 <= z -> x + y + z <= w -> C <= C' -> C' <= C * exp z ->
    Rabs (apart (A * exp x) (B * exp y) C' - apart A B C) <= w / 2.
Proof.
  intros A B C C' w x y z HA HB HC Hx Hy Hz Hw H1 H2.
  assert (HX : 0 < A * exp x) by (apply Rmult_lt_0_compat; auto; apply exp_pos). assert (HY : 0 < B * exp y) by (apply Rmult_lt_0_compat; auto; apply exp_pos).
  pose proof (apart_first A B C x HA HB HC Hx) as P1. pose proof (apart_second (A * exp x) B C y HX HB HC Hy) as P2. pose proof (apart_others (A * exp x) (B * exp y) C C' z HX HY HC H1 H2 Hz) as P3.
  replace (apart (A * exp x) (B * exp y) C' - apart A B C)
    with ((apart (A * exp x) (B * exp y) C' - apart (A * exp x) (B * exp y) C) + ((apart (A * exp x) (B * exp y) C - apart (A * exp x) B C) + (apart (A * exp x) B C - apart A B C))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|]. lra.
Qed.

(** Theorem 11 (a), rounded down to whole steps of one vote, with w S <= S - 16: twice the movement is at most S - 12, which is what [t_edge] of TwoLevelsGraph.v asks. *)
Theorem edge_moves_half_rounded :
  forall (S w pj pk qj qk : R) (uj uk vj vk : Z),
    w * S <= S - 16 -> 0 <= S -> Rabs ((qj - qk) - (pj - pk)) <= w / 2 ->
    IZR uj <= S * pj < IZR uj + 1 -> IZR uk <= S * pk < IZR uk + 1 -> IZR vj <= S * qj < IZR vj + 1 -> IZR vk <= S * qk < IZR vk + 1 ->
    2 * Rabs (IZR ((vj - vk) - (uj - uk))) <= S - 12.
Proof.
  intros S w pj pk qj qk uj uk vj vk HW HS H A1 A2 A3 A4. rewrite !minus_IZR.
  assert (M : Rabs (S * ((qj - qk) - (pj - pk))) <= S * (w / 2)) by (rewrite Rabs_mult, (Rabs_pos_eq S) by auto; apply Rmult_le_compat_l; auto).
  apply Rabs_def2b in M || (assert (M' : - (S * (w / 2)) <= S * ((qj - qk) - (pj - pk)) <= S * (w / 2)) by (split; revert M; unfold Rabs; destruct (Rcase_abs _); lra)).
  assert (K : Rabs (IZR vj - IZR vk - (IZR uj - IZR uk)) <= S * (w / 2) + 2) by (apply Rabs_le; lra). lra.
Qed.

(** Theorem 11 (b): n summands come or go; each multiplies odds by a factor from exp(-w) to exp w. [E]: the exponential of the class, [R]: those of all others
    together. The share p = E / (E + R) then stays between p / (p + g (1 - p)) and g p / (g p + 1 - p) for every g >= exp(w n). *)
Theorem odds_bound :
  forall (E Q E' Q' g : R),
    0 < E -> 0 < Q -> 0 < E' -> 0 < Q' -> 1 <= g -> E' / Q' <= g * (E / Q) -> E / Q <= g * (E' / Q') ->
    let p := E / (E + Q) in
    p / (p + g * (1 - p)) <= E' / (E' + Q') <= g * p / (g * p + (1 - p)).
Proof.
  intros E Q E' Q' g HE HQ HE' HQ' Hg H1 H2 p.
  assert (K1 : E' * Q <= g * (E * Q')).
  { apply (Rmult_le_compat_r (Q * Q')) in H1; [|apply Rmult_le_pos; lra]. replace (E' / Q' * (Q * Q')) with (E' * Q) in H1 by (field; lra). replace (g * (E / Q) * (Q * Q')) with (g * (E * Q')) in H1 by (field; lra). auto. }
  assert (K2 : E * Q' <= g * (E' * Q)).
  { apply (Rmult_le_compat_r (Q * Q')) in H2; [|apply Rmult_le_pos; lra]. replace (E / Q * (Q * Q')) with (E * Q') in H2 by (field; lra). replace (g * (E' / Q') * (Q * Q')) with (g * (E' * Q)) in H2 by (field; lra). auto. }
  assert (D1 : 0 < E + g * Q) by nra. assert (D2 : 0 < g * E + Q) by nra. assert (D3 : 0 < E' + Q') by lra.
  assert (P1 : 1 - p = Q / (E + Q)) by (unfold p; field; lra). rewrite P1. unfold p.
  replace (E / (E + Q) / (E / (E + Q) + g * (Q / (E + Q)))) with (E / (E + g * Q)) by (field; repeat split; lra).
  replace (g * (E / (E + Q)) / (g * (E / (E + Q)) + Q / (E + Q))) with (g * E / (g * E + Q)) by (field; repeat split; lra). split.
  - apply (Rmult_le_reg_r ((E + g * Q) * (E' + Q'))); [apply Rmult_lt_0_compat; auto|].
    replace (E / (E + g * Q) * ((E + g * Q) * (E' + Q'))) with (E * (E' + Q')) by (field; lra). replace (E' / (E' + Q') * ((E + g * Q) * (E' + Q'))) with (E' * (E + g * Q)) by (field; lra). nra.
  - apply (Rmult_le_reg_r ((g * E + Q) * (E' + Q'))); [apply Rmult_lt_0_compat; auto|].
    replace (E' / (E' + Q') * ((g * E + Q) * (E' + Q'))) with (E' * (g * E + Q)) by (field; lra). replace (g * E / (g * E + Q) * ((g * E + Q) * (E' + Q'))) with (g * E * (E' + Q')) by (field; lra). nra.
Qed.

(** Theorem 11 (b), one summand: the logit of the class grows by x, those of the others by something from 0 to z, with x + z <= w. *)
Theorem one_summand :
  forall (E Q Q' w x z : R),
    0 < E -> 0 < Q -> 0 <= x -> 0 <= z -> x + z <= w -> Q <= Q' -> Q' <= Q * exp z ->
    (E * exp x) / Q' <= exp w * (E / Q) /\ E / Q <= exp w * ((E * exp x) / Q').
Proof.
  intros E Q Q' w x z HE HQ Hx Hz Hw H1 H2. pose proof (exp_pos x); pose proof (exp_pos w); pose proof (exp_pos z).
  assert (X : exp x <= exp w) by (destruct (Req_dec x w) as [->|]; [lra|left; apply exp_increasing; lra]).
  assert (Zw : exp z <= exp w) by (destruct (Req_dec z w) as [->|]; [lra|left; apply exp_increasing; lra]).
  assert (X1 : 1 <= exp x) by (pose proof (exp_ineq1_le x); lra). assert (0 < Q') by lra. split.
  - apply (Rmult_le_reg_r (Q * Q')); [apply Rmult_lt_0_compat; auto|]. replace (E * exp x / Q' * (Q * Q')) with (E * exp x * Q) by (field; lra). replace (exp w * (E / Q) * (Q * Q')) with (exp w * E * Q') by (field; lra).
    apply Rmult_le_compat; try nra.
  - apply (Rmult_le_reg_r (Q * Q')); [apply Rmult_lt_0_compat; auto|]. replace (E / Q * (Q * Q')) with (E * Q') by (field; lra). replace (exp w * (E * exp x / Q') * (Q * Q')) with (E * (exp w * exp x * Q)) by (field; lra).
    apply Rmult_le_compat_l; [lra|]. apply Rle_trans with (Q * exp z); [auto|]. assert (Y : exp w * 1 <= exp w * exp x) by (apply Rmult_le_compat_l; lra).
    rewrite (Rmult_comm _ Q). apply Rmult_le_compat_l; lra.
Qed.

(** exp(y) is at most 1 / (1 - y), and a square of an upper bound bounds the square: how [grown] of StackedChecker.v is made. *)
Theorem exp_at_most y : 0 <= y < 1 -> exp y <= / (1 - y).
Proof.
  intros [H0 H1]. pose proof (exp_ineq1_le (- y)) as E. rewrite exp_Ropp in E. pose proof (exp_pos y). rewrite <- (Rinv_inv (exp y)).
  apply Rinv_le_contravar; lra.
Qed.
(** Upper bounds of two powers multiply. *)
Theorem exp_products x y X Y : exp x <= X -> exp y <= Y -> exp (x + y) <= X * Y.
Proof. intros HX HY. rewrite exp_plus. pose proof (exp_pos x); pose proof (exp_pos y). apply Rmult_le_compat; lra. Qed.

(** ---- The numbers of the checker ---- *)

(** a / U is an upper bound of exp(x). *)
Definition bounds (U : Z) (x : R) (a : Z) : Prop := exp x * IZR U <= IZR a.

Lemma up_div_right x y : (0 < y)%Z -> IZR x / IZR y <= IZR (up_div x y).
Proof.
  intro H. assert (Q : (x <= up_div x y * y)%Z).
  { unfold up_div. pose proof (Z.div_mod (x + y - 1) y ltac:(lia)). pose proof (Z.mod_pos_bound (x + y - 1) y H). lia. }
  apply IZR_le in Q. rewrite mult_IZR in Q. assert (0 < IZR y) by (apply (IZR_lt 0); auto). apply (Rmult_le_reg_r (IZR y)); auto.
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. auto.
Qed.
Lemma bounds_mul U x y a b : (0 < U)%Z -> bounds U x a -> bounds U y b -> bounds U (x + y) (up_div (a * b) U).
Proof.
  unfold bounds; intros H HA HB. assert (P : 0 < IZR U) by (apply (IZR_lt 0); auto). eapply Rle_trans; [|apply up_div_right; auto]. rewrite mult_IZR, exp_plus.
  apply (Rmult_le_reg_r (IZR U)); auto. replace (IZR a * IZR b / IZR U * IZR U) with (IZR a * IZR b) by (field; lra).
  replace (exp x * exp y * IZR U * IZR U) with ((exp x * IZR U) * (exp y * IZR U)) by ring. pose proof (exp_pos x); pose proof (exp_pos y).
  apply Rmult_le_compat; auto; apply Rmult_le_pos; lra.
Qed.
Lemma fine_squares_right n : forall x a, bounds fine_unit x a -> bounds fine_unit (x * 2 ^ n) (fine_squares n a).
Proof.
  induction n as [|n IH]; intros x a H; [simpl; rewrite Rmult_1_r; auto|]. cbn [fine_squares]. replace (x * 2 ^ S n) with ((x + x) * 2 ^ n) by (simpl; ring).
  apply IH, bounds_mul; auto. reflexivity.
Qed.
Lemma grown_once_right w : (0 <= w < 65536)%Z -> bounds grown_unit (IZR w / 65536) (grown_once w).
Proof.
  intros [W0 W1]. apply IZR_le in W0. pose proof (IZR_lt _ _ W1) as W2. unfold bounds, grown_once.
  assert (B : bounds fine_unit (IZR w / 67108864) (up_div (fine_unit * 67108864) (67108864 - w))).
  { unfold bounds. eapply Rle_trans; [|apply up_div_right; lia]. rewrite mult_IZR, minus_IZR.
    pose proof (exp_at_most (IZR w / 67108864) ltac:(lra)) as E. apply (Rmult_le_compat_r (IZR fine_unit)) in E; [|apply (IZR_le 0); unfold fine_unit; lia].
    eapply Rle_trans; [exact E|]. right. field. lra. }
  apply (fine_squares_right 10) in B. replace (IZR w / 67108864 * 2 ^ 10) with (IZR w / 65536) in B by (simpl; lra).
  eapply Rle_trans; [|apply up_div_right; lia]. unfold bounds in B. change (IZR fine_unit) with 268435456 in B. change (IZR grown_unit) with 65536. lra.
Qed.
Lemma grown_mul_right x y p q c : (forall a, p = Some a -> bounds grown_unit x a) -> (forall b, q = Some b -> bounds grown_unit y b) ->
  grown_mul p q = Some c -> bounds grown_unit (x + y) c.
Proof.
  intros HP HQ E. destruct p as [a|], q as [b|]; try discriminate. cbn [grown_mul] in E. destruct (largest_grown <? up_div (a * b) grown_unit)%Z; [discriminate|]. injection E as <-.
  apply bounds_mul; auto. reflexivity.
Qed.
Lemma grown_power_right fuel : forall base n g x y r, (forall a, base = Some a -> bounds grown_unit x a) -> (forall a, g = Some a -> bounds grown_unit y a) ->
  (0 <= n)%Z -> grown_power fuel base n g = Some r -> bounds grown_unit (y + IZR n * x) r.
Proof.
  induction fuel as [|fuel IH]; intros base n g x y r HB HG Hn E; cbn [grown_power] in E; destruct (Z.leb_spec n 0) as [Q|Q].
  - replace n with 0%Z by lia. rewrite Rmult_0_l, Rplus_0_r. auto.
  - discriminate.
  - replace n with 0%Z by lia. rewrite Rmult_0_l, Rplus_0_r. auto.
  - cbv zeta in E. assert (Hh : (0 <= n / 2)%Z) by (apply Z.div_pos; lia). pose proof (Z.div_mod n 2 ltac:(lia)) as D. pose proof (Z.mod_pos_bound n 2 ltac:(lia)) as MB.
    assert (HB' : forall a, grown_mul base base = Some a -> bounds grown_unit (x + x) a) by (intros a Ea; eapply grown_mul_right; eauto).
    destruct (Z.eqb_spec (n - 2 * (n / 2)) 0) as [Z0|Z0].
    + replace (y + IZR n * x) with (y + IZR (n / 2) * (x + x)); [eapply IH; eauto|]. replace n with (2 * (n / 2))%Z at 2 by lia. rewrite mult_IZR. ring.
    + replace (y + IZR n * x) with ((y + x) + IZR (n / 2) * (x + x)).
      * eapply IH; eauto. intros a Ea. eapply grown_mul_right; eauto.
      * replace n with (2 * (n / 2) + 1)%Z at 2 by lia. rewrite plus_IZR, mult_IZR. ring.
Qed.

Opaque grown_power grown_once.   (* or Qed would compute them *)
(** Theorem 11 (b), in steps: [grown w n] is no less than exp(w n), in its units. *)
Theorem grown_right w n r : (0 <= w < 65536)%Z -> (0 <= n)%Z -> grown w n = Some r -> exp (IZR n * (IZR w / 65536)) <= IZR r / 65536.
Proof.
  intros W N E. change (grown_power 40 (Some (grown_once w)) n (Some grown_unit) = Some r) in E. pose proof (grown_power_right 40 (Some (grown_once w)) n (Some grown_unit) (IZR w / 65536) 0 r) as H.
  assert (B : bounds grown_unit (0 + IZR n * (IZR w / 65536)) r).
  { apply H; auto.
    - intros a Ea; injection Ea as <-. apply grown_once_right; auto.
    - intros a Ea; injection Ea as <-. unfold bounds. rewrite exp_0. lra. }
  unfold bounds in B. rewrite Rplus_0_l in B. change (IZR grown_unit) with 65536 in B. lra.
Qed.

(** Theorem 11 (b), in steps: what is read of the label's vote is at least [lowest], of a rival's at most [highest], if the shares are within the bounds of [odds_bound]. *)
Theorem lowest_right (r own sl : Z) (p p' : R) :
  (65536 <= r)%Z -> (own <= vote_steps)%Z -> (0 <= sl)%Z -> 0 <= p <= 1 -> IZR (own - sl) <= 65536 * p ->
  p / (p + IZR r / 65536 * (1 - p)) <= p' -> 0 <= p' -> IZR (lowest (Some r) sl own) <= 65536 * p'.
Proof.
  intros Hr Ho Hs Hp HL HP HP0. unfold lowest. set (x := Z.max 0 (own - sl)). assert (X0 : (0 <= x <= 65536)%Z) by (unfold x, vote_steps in *; lia).
  assert (XP : IZR x <= 65536 * p) by (unfold x; destruct (Z.max_spec 0 (own - sl)) as [[_ ->]|[_ ->]]; lra).
  pose proof (IZR_le _ _ Hr) as Rr. destruct X0 as [X0 X1]. pose proof (IZR_le _ _ X0) as RX0. pose proof (IZR_le _ _ X1) as RX1.
  set (d := (x * grown_unit + r * (vote_steps - x))%Z). assert (D0 : (0 < d)%Z) by (unfold d, grown_unit, vote_steps; nia).
  assert (Q : IZR (vote_steps * (x * grown_unit) / d) <= 65536 * (IZR x * 65536) / IZR d).
  { pose proof (Z.mul_div_le (vote_steps * (x * grown_unit)) d D0) as M. apply IZR_le in M. rewrite !mult_IZR in M. change (IZR vote_steps) with 65536 in M. change (IZR grown_unit) with 65536 in M.
    pose proof (IZR_lt _ _ D0). apply (Rmult_le_reg_r (IZR d)); auto. unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite Rmult_comm. auto. }
  eapply Rle_trans; [apply IZR_le, Z.le_min_r|]. eapply Rle_trans; [exact Q|]. pose proof (IZR_lt _ _ D0) as RD.
  assert (DE : IZR d = IZR x * 65536 + IZR r * (65536 - IZR x)) by (unfold d; rewrite plus_IZR, !mult_IZR, minus_IZR; reflexivity).
  assert (G : 0 < p + IZR r / 65536 * (1 - p)) by nra.
  apply Rle_trans with (65536 * (p / (p + IZR r / 65536 * (1 - p)))); [|apply Rmult_le_compat_l; lra].
  apply (Rmult_le_reg_r (IZR d * (p + IZR r / 65536 * (1 - p)))); [apply Rmult_lt_0_compat; auto|].
  replace (65536 * (IZR x * 65536) / IZR d * (IZR d * (p + IZR r / 65536 * (1 - p)))) with (65536 * (IZR x * 65536) * (p + IZR r / 65536 * (1 - p))) by (field; lra).
  replace (65536 * (p / (p + IZR r / 65536 * (1 - p))) * (IZR d * (p + IZR r / 65536 * (1 - p)))) with (65536 * p * IZR d) by (field; lra).
  rewrite DE. assert (IZR r * IZR x * (1 - p) <= IZR r * p * (65536 - IZR x)) by nra. nra.
Qed.

(** Theorem 11 (b), in steps, for a rival: what is read of its vote is at most [highest]. *)
Theorem highest_right (r theirs sl u : Z) (p p' : R) :
  (65536 <= r)%Z -> (0 <= theirs)%Z -> (0 <= sl)%Z -> 0 <= p <= 1 -> 65536 * p <= IZR (theirs + sl + 1) ->
  p' <= IZR r / 65536 * p / (IZR r / 65536 * p + (1 - p)) -> IZR u <= 65536 * p' -> (u <= highest (Some r) sl theirs)%Z.
Proof.
  intros Hr Ht Hs Hp HU HP Hu. unfold highest. set (x := Z.min vote_steps (theirs + sl + 1)). assert (X0 : (0 <= x <= 65536)%Z) by (unfold x, vote_steps in *; lia).
  assert (XP : 65536 * p <= IZR x) by (unfold x; destruct (Z.min_spec vote_steps (theirs + sl + 1)) as [[_ ->]|[_ ->]]; [change (IZR vote_steps) with 65536; lra|auto]).
  pose proof (IZR_le _ _ Hr) as Rr. destruct X0 as [X0 X1]. pose proof (IZR_le _ _ X0) as RX0. pose proof (IZR_le _ _ X1) as RX1.
  set (d := (r * x + grown_unit * (vote_steps - x))%Z). assert (D0 : (0 < d)%Z) by (unfold d, grown_unit, vote_steps; nia). pose proof (IZR_lt _ _ D0) as RD.
  apply Z.le_trans with (vote_steps * (r * x) / d)%Z; [|apply Z.le_max_r]. apply Z.div_le_lower_bound; auto. apply le_IZR. rewrite !mult_IZR. change (IZR vote_steps) with 65536.
  assert (DE : IZR d = IZR r * IZR x + 65536 * (65536 - IZR x)) by (unfold d; rewrite plus_IZR, !mult_IZR, minus_IZR; reflexivity).
  assert (G : 0 < IZR r / 65536 * p + (1 - p)) by nra.
  assert (K : 65536 * p' * (IZR r / 65536 * p + (1 - p)) <= IZR r * p).
  { apply (Rmult_le_compat_r (IZR r / 65536 * p + (1 - p))) in HP; [|lra]. unfold Rdiv at 2 in HP. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in HP by lra. lra. }
  rewrite DE. apply Rle_trans with ((IZR r * IZR x + 65536 * (65536 - IZR x)) * (65536 * p')); [apply Rmult_le_compat_l; [rewrite <- DE; lra|auto]|].
  destruct (Rle_lt_dec p' 0) as [Q|Q]; [assert (0 <= IZR r * IZR x + 65536 * (65536 - IZR x)) by (rewrite <- DE; lra); nra|].
  (* r x (1 - p') >= 65536 (65536 - x) p', and the left side grows with x *)
  assert (P1 : p' <= 1).
  { apply (Rmult_le_reg_r (IZR r / 65536 * p + (1 - p))); auto. nra. }
  assert (K2 : p' * (65536 * (1 - p)) <= IZR r * p * (1 - p')) by lra.
  assert (K3 : p' * (65536 * (65536 - IZR x)) <= IZR r * IZR x * (1 - p')).
  { apply Rle_trans with (p' * (65536 * (65536 - 65536 * p))); [apply Rmult_le_compat_l; lra|].
    apply Rle_trans with (IZR r * (65536 * p) * (1 - p')); [lra|]. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
  lra.
Qed.

(** ---- The votes of the page ---- *)

(** A sum of n real numbers. *)
Fixpoint Rsum (g : nat -> R) (n : nat) : R := match n with O => 0 | S m => Rsum g m + g m end.

Section Softmax.
  Variable F : Type.
  (** z: logits of the C classes and of abstaining, which is number C; b0: the first votes, at least 0 and together at most 1; [weight] is the factor w, of which the
      file states an upper bound [w] in steps. *)
  Variables (C : nat) (z b0 : option F -> nat -> R) (weight : R) (w sl : Z).
  Hypothesis first_pos : forall x k, 0 <= b0 x k.
  Hypothesis first_sum : forall x, Rsum (b0 x) C <= 1.
  Hypothesis weight_pos : 0 <= weight.
  Hypothesis weight_stated : weight <= IZR w / 65536.
  Hypothesis w_small : (0 <= w <= vote_steps - 16)%Z.
  Hypothesis sl_pos : (0 <= sl)%Z.

  (** The first vote of a node for class k; none for abstaining. *)
  Definition first (x : option F) (k : nat) : R := if Nat.ltb k C then b0 x k else 0.
  (** The first votes of all neighbours for class k. *)
  Fixpoint heard (xs : list (option F)) (k : nat) : R := match xs with [] => 0 | x :: xs' => first x k + heard xs' k end.
  (** exp of the logits, and softmax *)
  Definition power (f : option F) (xs : list (option F)) (k : nat) : R := exp (z f k + weight * heard xs k).
  (** The share of class k in the softmax. *)
  Definition share (f : option F) (xs : list (option F)) (k : nat) : R := power f xs k / Rsum (power f xs) (S C).
  (** b(j) in whole steps, rounded down *)
  Definition softmax_vote (f : option F) (xs : list (option F)) (k : nat) : Z := if Nat.ltb k C then Int_part (65536 * share f xs k) else 0%Z.

  Lemma sum_pick g n j : (j < n)%nat -> Rsum g n = g j + Rsum (fun i => if Nat.eqb i j then 0 else g i) n.
  Proof.
    induction n as [|n IH]; intro H; [lia|]. cbn [Rsum]. destruct (Nat.eq_dec j n) as [->|N].
    - rewrite Nat.eqb_refl. assert (Q : forall m, (m <= n)%nat -> Rsum (fun i => if Nat.eqb i n then 0 else g i) m = Rsum g m).
      { induction m as [|m IHm]; intro Hm; [reflexivity|]. cbn [Rsum]. rewrite IHm by lia. destruct (Nat.eqb_spec m n); [lia|auto]. }
      rewrite Q by lia. ring.
    - rewrite IH by lia. destruct (Nat.eqb_spec n j); [lia|]. ring.
  Qed.
  Lemma sum_pos g n : (forall i, 0 <= g i) -> 0 <= Rsum g n.
  Proof. intro H; induction n as [|n IH]; cbn [Rsum]; [lra|]. pose proof (H n); lra. Qed.
  Lemma sum_le g g' n : (forall i, (i < n)%nat -> g i <= g' i) -> Rsum g n <= Rsum g' n.
  Proof. induction n as [|n IH]; intro H; cbn [Rsum]; [lra|]. pose proof (H n ltac:(lia)). assert (Rsum g n <= Rsum g' n) by (apply IH; intros; apply H; lia). lra. Qed.
  Lemma sum_times g x n : Rsum (fun i => g i * x) n = Rsum g n * x.
  Proof. induction n as [|n IH]; cbn [Rsum]; [ring|]. rewrite IH; ring. Qed.
  Lemma one_of g n i : (forall i, 0 <= g i) -> (i < n)%nat -> g i <= Rsum g n.
  Proof.
    intros H I. rewrite (sum_pick g n i I). assert (0 <= Rsum (fun i0 => if Nat.eqb i0 i then 0 else g i0) n); [|lra].
    apply sum_pos; intro m; destruct (Nat.eqb m i); [lra|auto].
  Qed.

  Lemma first_all x : Rsum (first x) (S C) <= 1.
  Proof.
    cbn [Rsum]. unfold first at 2. rewrite Nat.ltb_irrefl. apply Rle_trans with (Rsum (b0 x) C); [|apply first_sum].
    assert (Rsum (first x) C <= Rsum (b0 x) C); [|lra]. apply sum_le; intros i I; unfold first. destruct (Nat.ltb_spec i C); [lra|lia].
  Qed.
  Lemma first_nonneg x k : 0 <= first x k.
  Proof. unfold first; destruct (Nat.ltb k C); [auto|lra]. Qed.
  (** A class other than those that are left out has no more than what they leave. *)
  Lemma rest_of x j k i : (j <= C)%nat -> (k <= C)%nat -> j <> k -> (i <= C)%nat -> i <> j -> i <> k -> first x i <= 1 - first x j - first x k.
  Proof.
    intros Hj Hk N Hi N1 N2. pose proof (first_all x) as S1. rewrite (sum_pick _ (S C) j) in S1 by lia. rewrite (sum_pick _ (S C) k) in S1 by lia.
    destruct (Nat.eqb_spec k j) as [|_]; [congruence|].
    pose proof (one_of (fun i0 => if Nat.eqb i0 k then 0 else if Nat.eqb i0 j then 0 else first x i0) (S C) i) as O. cbv beta in O.
    destruct (Nat.eqb_spec i k), (Nat.eqb_spec i j); try contradiction. assert (first x i <= Rsum (fun i0 => if Nat.eqb i0 k then 0 else if Nat.eqb i0 j then 0 else first x i0) (S C)).
    { apply O; [|lia]. intro m; destruct (Nat.eqb m k), (Nat.eqb m j); try lra; apply first_nonneg. }
    lra.
  Qed.
  Lemma rest_of_one x j i : (j <= C)%nat -> (i <= C)%nat -> i <> j -> first x i <= 1 - first x j.
  Proof.
    intros Hj Hi N. pose proof (first_all x) as S1. rewrite (sum_pick _ (S C) j) in S1 by lia.
    pose proof (one_of (fun i0 => if Nat.eqb i0 j then 0 else first x i0) (S C) i) as O. cbv beta in O. destruct (Nat.eqb_spec i j); [contradiction|].
    assert (first x i <= Rsum (fun i0 => if Nat.eqb i0 j then 0 else first x i0) (S C)) by (apply O; [|lia]; intro m; destruct (Nat.eqb m j); [lra|apply first_nonneg]).
    lra.
  Qed.

  Lemma power_pos f xs k : 0 < power f xs k.
  Proof. apply exp_pos. Qed.
  Lemma power_more f x xs k : power f (x :: xs) k = power f xs k * exp (weight * first x k).
  Proof. unfold power; cbn [heard]. rewrite <- exp_plus. f_equal. ring. Qed.
  (** The sum over all classes but j and k. *)
  Definition others (f : option F) (xs : list (option F)) (j k : nat) : R := Rsum (fun i => if Nat.eqb i k then 0 else if Nat.eqb i j then 0 else power f xs i) (S C).
  (** The sum over all classes but j. *)
  Definition other_than (f : option F) (xs : list (option F)) (j : nat) : R := Rsum (fun i => if Nat.eqb i j then 0 else power f xs i) (S C).

  Lemma exp_mono x y : x <= y -> exp x <= exp y.
  Proof. intro H. destruct (Req_dec x y) as [->|]; [lra|]. left; apply exp_increasing; lra. Qed.

  Lemma share_apart f xs j k : (j < C)%nat -> (k < C)%nat -> j <> k -> share f xs j - share f xs k = apart (power f xs j) (power f xs k) (others f xs j k).
  Proof.
    intros Hj Hk N. unfold share, apart, others. rewrite (sum_pick (power f xs) (S C) j) by lia. rewrite (sum_pick _ (S C) k) by lia. destruct (Nat.eqb_spec k j) as [|_]; [congruence|].
    set (O := Rsum _ (S C)). assert (0 <= O) by (apply sum_pos; intro m; destruct (Nat.eqb m k), (Nat.eqb m j); try lra; left; apply power_pos).
    pose proof (power_pos f xs j); pose proof (power_pos f xs k). field. lra.
  Qed.

  (** (a): one neighbour more. *)
  Lemma share_moves f x xs j k : (j < C)%nat -> (k < C)%nat -> j <> k -> Rabs ((share f (x :: xs) j - share f (x :: xs) k) - (share f xs j - share f xs k)) <= weight / 2.
  Proof.
    intros Hj Hk N. rewrite !share_apart by auto. rewrite !power_more. pose proof (first_nonneg x j) as Fj; pose proof (first_nonneg x k) as Fk. pose proof (first_all x) as FA.
    rewrite (sum_pick _ (S C) j), (sum_pick _ (S C) k) in FA by lia. destruct (Nat.eqb_spec k j) as [|_]; [congruence|].
    assert (R0 : 0 <= Rsum (fun i => if Nat.eqb i k then 0 else if Nat.eqb i j then 0 else first x i) (S C)) by (apply sum_pos; intro m; destruct (Nat.eqb m k), (Nat.eqb m j); try lra; apply first_nonneg).
    apply (edge_moves_half _ _ _ _ weight (weight * first x j) (weight * first x k) (weight * (1 - first x j - first x k))); try apply power_pos; try (apply Rmult_le_pos; lra).
    - apply sum_pos; intro m; destruct (Nat.eqb m k), (Nat.eqb m j); try lra; left; apply power_pos.
    - lra.
    - apply sum_le; intros i Hi. destruct (Nat.eqb_spec i k), (Nat.eqb_spec i j); try lra. rewrite power_more. pose proof (power_pos f xs i) as PP.
      assert (1 <= exp (weight * first x i)) by (pose proof (exp_ineq1_le (weight * first x i)); pose proof (Rmult_le_pos _ _ weight_pos (first_nonneg x i)); lra). nra.
    - unfold others. rewrite <- sum_times. apply sum_le; intros i Hi. destruct (Nat.eqb_spec i k), (Nat.eqb_spec i j); try (rewrite Rmult_0_l; lra). rewrite power_more. pose proof (power_pos f xs i).
      apply Rmult_le_compat_l; [lra|]. apply exp_mono, Rmult_le_compat_l; auto. apply rest_of; auto; lia.
  Qed.

  (** (b): odds *)
  Definition odds (f : option F) (xs : list (option F)) (j : nat) : R := power f xs j / other_than f xs j.
  Lemma other_pos f xs j : (j < C)%nat -> 0 < other_than f xs j.
  Proof.
    intro H. unfold other_than. rewrite (sum_pick _ (S C) C) by lia. destruct (Nat.eqb_spec C j) as [|_]; [lia|]. pose proof (power_pos f xs C).
    assert (0 <= Rsum (fun i => if Nat.eqb i C then 0 else if Nat.eqb i j then 0 else power f xs i) (S C)); [|lra]. apply sum_pos; intro m; destruct (Nat.eqb m C), (Nat.eqb m j); try lra; left; apply power_pos.
  Qed.
  Lemma odds_one f x xs j : (j < C)%nat -> odds f (x :: xs) j <= exp weight * odds f xs j /\ odds f xs j <= exp weight * odds f (x :: xs) j.
  Proof.
    intro H. unfold odds. rewrite power_more. pose proof (first_nonneg x j) as Fj. assert (F1 : first x j <= 1) by (pose proof (rest_of_one x j C ltac:(lia) ltac:(lia) ltac:(lia)); pose proof (first_nonneg x C); lra).
    apply (one_summand _ _ _ weight (weight * first x j) (weight * (1 - first x j))); try apply power_pos; try (apply other_pos; auto); try (apply Rmult_le_pos; lra); try lra.
    - apply sum_le; intros i Hi. destruct (Nat.eqb_spec i j); try lra. rewrite power_more. pose proof (power_pos f xs i).
      assert (1 <= exp (weight * first x i)) by (pose proof (exp_ineq1_le (weight * first x i)); pose proof (Rmult_le_pos _ _ weight_pos (first_nonneg x i)); lra). nra.
    - unfold other_than. rewrite <- sum_times. apply sum_le; intros i Hi. destruct (Nat.eqb_spec i j); try (rewrite Rmult_0_l; lra). rewrite power_more. pose proof (power_pos f xs i).
      apply Rmult_le_compat_l; [lra|]. apply exp_mono, Rmult_le_compat_l; auto. apply rest_of_one; auto; lia.
  Qed.
  Lemma odds_pos f xs j : (j < C)%nat -> 0 < odds f xs j.
  Proof. intro H; unfold odds. apply Rdiv_lt_0_compat; [apply power_pos|apply other_pos; auto]. Qed.
  Lemma odds_many f l xs j : (j < C)%nat -> odds f (l ++ xs) j <= exp (INR (length l) * weight) * odds f xs j /\ odds f xs j <= exp (INR (length l) * weight) * odds f (l ++ xs) j.
  Proof.
    intro H. induction l as [|x l [I1 I2]]; [cbn [length app]; simpl INR; rewrite Rmult_0_l, exp_0; lra|]. cbn [app length]. rewrite S_INR.
    replace ((INR (length l) + 1) * weight) with (weight + INR (length l) * weight) by ring. rewrite exp_plus. destruct (odds_one f x (l ++ xs) j H) as [O1 O2]. pose proof (exp_pos weight). pose proof (exp_pos (INR (length l) * weight)). split.
    - eapply Rle_trans; [exact O1|]. rewrite Rmult_assoc. apply Rmult_le_compat_l; lra.
    - eapply Rle_trans; [exact I2|]. rewrite (Rmult_comm (exp weight)), Rmult_assoc. apply Rmult_le_compat_l; lra.
  Qed.

  Lemma heard_order xs xs' k : Permutation xs xs' -> heard xs k = heard xs' k.
  Proof. induction 1; cbn [heard]; try lra. Qed.
  Lemma power_order f xs xs' k : Permutation xs xs' -> power f xs k = power f xs' k.
  Proof. intro P; unfold power; rewrite (heard_order xs xs' k P); auto. Qed.
  Lemma sum_ext g g' n : (forall i, g i = g' i) -> Rsum g n = Rsum g' n.
  Proof. intro E; induction n as [|n IH]; cbn [Rsum]; auto. rewrite IH, E; auto. Qed.
  Lemma share_order f xs xs' k : Permutation xs xs' -> share f xs k = share f xs' k.
  Proof. intro P; unfold share. rewrite (power_order f xs xs' k P), (sum_ext (power f xs) (power f xs') (S C)); [reflexivity|]. intro; apply power_order; auto. Qed.
  Lemma odds_order f xs xs' j : Permutation xs xs' -> odds f xs j = odds f xs' j.
  Proof. intro P; unfold odds, other_than. rewrite (power_order f xs xs' j P), (sum_ext _ (fun i => if Nat.eqb i j then 0 else power f xs' i) (S C)); [reflexivity|]. intro i; destruct (Nat.eqb i j); auto; apply power_order; auto. Qed.
  Lemma exact_order f xs xs' k : Permutation xs xs' -> softmax_vote f xs k = softmax_vote f xs' k.
  Proof. intro P; unfold softmax_vote. destruct (Nat.ltb k C); auto. rewrite (share_order f xs xs' k P); auto. Qed.

  Lemma share_odds f xs j : (j < C)%nat -> share f xs j = power f xs j / (power f xs j + other_than f xs j).
  Proof. intro H; unfold share, other_than. rewrite (sum_pick (power f xs) (S C) j) by lia. reflexivity. Qed.
  Lemma share_range f xs j : (j < C)%nat -> 0 <= share f xs j <= 1.
  Proof.
    intro H. rewrite share_odds by auto. pose proof (power_pos f xs j); pose proof (other_pos f xs j H). split; [left; apply Rdiv_lt_0_compat; lra|].
    apply (Rmult_le_reg_r (power f xs j + other_than f xs j)); [lra|]. unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.
  Lemma exact_is f xs j : (j < C)%nat -> IZR (softmax_vote f xs j) <= 65536 * share f xs j < IZR (softmax_vote f xs j) + 1.
  Proof. intro H; unfold softmax_vote. destruct (Nat.ltb_spec j C); [|lia]. pose proof (base_Int_part (65536 * share f xs j)) as [B1 B2]. lra. Qed.
  Lemma exact_range f xs j : (0 <= softmax_vote f xs j <= vote_steps)%Z.
  Proof.
    destruct (Nat.lt_ge_cases j C) as [H|H]; [|unfold softmax_vote; destruct (Nat.ltb_spec j C); [lia|unfold vote_steps; lia]].
    destruct (exact_is f xs j H) as [E1 E2]. destruct (share_range f xs j H) as [S1 S2]. split.
    - assert (-1 < softmax_vote f xs j)%Z; [|lia]. apply lt_IZR. lra.
    - apply le_IZR. unfold vote_steps. lra.
  Qed.

  (** Theorem 11: whoever computes these votes to within the slack has a model of two levels. *)
  Theorem softmax_model (reads : option F -> list (option F) -> (nat -> Z) -> Prop) :
    (forall f xs y, reads f xs y -> is_vote vote_steps y) ->
    (forall f xs, reads f xs (softmax_vote f xs)) ->
    (forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near sl (y k) (y' k)) ->
    (forall f xs xs' y, Permutation xs xs' -> reads f xs y -> reads f xs' y) ->
    two_level_model F reads softmax_vote C w sl.
  Proof.
    intros H1 H2 H3 H4. split; auto.
    - intros f xs xs' P; split; [intros y R; eapply H4; eauto|intro k; apply exact_order; auto].
    - intros f xs x j k Hj Hk N. pose proof (share_moves f x xs j k Hj Hk N) as M.
      assert (WS : IZR w / 65536 * 65536 <= 65536 - 16).
      { destruct w_small as [_ W2]. apply IZR_le in W2. change (IZR (vote_steps - 16)) with 65520 in W2. lra. }
      pose proof (edge_moves_half_rounded 65536 (IZR w / 65536) (share f xs j) (share f xs k) (share f (x :: xs) j) (share f (x :: xs) k)
        (softmax_vote f xs j) (softmax_vote f xs k) (softmax_vote f (x :: xs) j) (softmax_vote f (x :: xs) k) WS ltac:(lra) ltac:(lra)
        (exact_is f xs j Hj) (exact_is f xs k Hk) (exact_is f (x :: xs) j Hj) (exact_is f (x :: xs) k Hk)) as Q.
      rewrite <- abs_IZR in Q. rewrite <- mult_IZR in Q.  apply le_IZR. rewrite minus_IZR. change (IZR vote_steps) with 65536. exact Q.
    - intros f common gone come n own j Hj Hn Hl Ho Hnear. destruct Hnear as [N1 N2].
      destruct (odds_many f gone common j Hj) as [G1 G2]. destruct (odds_many f come common j Hj) as [C1 C2].
      rewrite (odds_order f (gone ++ common) (common ++ gone) j (Permutation_app_comm _ _)) in G1, G2. rewrite (odds_order f (come ++ common) (common ++ come) j (Permutation_app_comm _ _)) in C1, C2.
      set (p := share f (common ++ gone) j). set (p' := share f (common ++ come) j).
      destruct (exact_is f (common ++ gone) j Hj) as [E1 E2]. destruct (exact_is f (common ++ come) j Hj) as [E3 E4]. fold p in E1, E2. fold p' in E3, E4.
      pose proof (share_range f (common ++ gone) j Hj) as SR. pose proof (share_range f (common ++ come) j Hj) as SR'. fold p in SR. fold p' in SR'.
      pose proof (exact_range f (common ++ come) j) as ER.
      destruct (grown w n) as [r|] eqn:GR; [|unfold lowest, highest; lia].
      pose proof (grown_right w n r ltac:(unfold vote_steps in w_small; lia) ltac:(lia) GR) as GX.
      set (g := IZR r / 65536) in *.
      set (ng := INR (length gone)) in *. set (nc := INR (length come)) in *. assert (P1 : 0 <= ng) by apply pos_INR. assert (P2 : 0 <= nc) by apply pos_INR.
      assert (LN : ng + nc <= IZR n).
      { unfold ng, nc. rewrite <- plus_INR, INR_IZR_INZ. apply IZR_le; auto. }
      assert (TOT : exp (ng * weight) * exp (nc * weight) <= g).
      { rewrite <- exp_plus. eapply Rle_trans; [|exact GX]. apply exp_mono. replace (ng * weight + nc * weight) with ((ng + nc) * weight) by ring. apply Rmult_le_compat; lra. }
      assert (G0 : 1 <= g) by (eapply Rle_trans; [|exact GX]; rewrite <- exp_0; apply exp_mono; apply Rmult_le_pos; [apply (IZR_le 0); lia|lra]).
      pose proof (odds_pos f (common ++ gone) j Hj) as OP. pose proof (odds_pos f (common ++ come) j Hj) as OP'. pose proof (exp_pos (ng * weight)) as X1. pose proof (exp_pos (nc * weight)) as X2.
      assert (K1 : odds f (common ++ come) j <= g * odds f (common ++ gone) j).
      { eapply Rle_trans; [exact C1|]. apply Rle_trans with (exp (nc * weight) * (exp (ng * weight) * odds f (common ++ gone) j)); [apply Rmult_le_compat_l; lra|].
        rewrite <- Rmult_assoc, (Rmult_comm (exp (nc * weight))). apply Rmult_le_compat_r; lra. }
      assert (K2 : odds f (common ++ gone) j <= g * odds f (common ++ come) j).
      { eapply Rle_trans; [exact G1|]. apply Rle_trans with (exp (ng * weight) * (exp (nc * weight) * odds f (common ++ come) j)); [apply Rmult_le_compat_l; lra|].
        rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra. }
      pose proof (odds_bound (power f (common ++ gone) j) (other_than f (common ++ gone) j) (power f (common ++ come) j) (other_than f (common ++ come) j) g
        (power_pos _ _ _) (other_pos _ _ _ Hj) (power_pos _ _ _) (other_pos _ _ _ Hj) G0 K1 K2) as OB. cbv zeta in OB.
      rewrite <- !share_odds in OB by auto. fold p p' in OB. destruct OB as [OB1 OB2].
      assert (R1 : (65536 <= r)%Z) by (apply le_IZR; unfold g in G0; lra).
      split.
      + pose proof (lowest_right r own sl p p' R1 ltac:(lia) sl_pos SR ltac:(apply IZR_le in N1; rewrite minus_IZR in *; lra) OB1 ltac:(lra)) as LR.
        assert (lowest (Some r) sl own < softmax_vote f (common ++ come) j + 1)%Z; [|lia]. apply lt_IZR. rewrite plus_IZR. lra.
      + apply (highest_right r own sl _ p p'); auto; try lia. apply IZR_le in N2. rewrite !plus_IZR in *. lra.
  Qed.
End Softmax.

(** Theorem 11 of the page: votes are softmax of z + w (sum of b0), rounded down and read to within the slack, and the checker says that a target holds. *)
Theorem softmax_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (z b0 : option F -> nat -> R) (weight : R)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (reads : option F -> list (option F) -> (nat -> Z) -> Prop),
    (forall x k, 0 <= b0 x k) -> (forall x, Rsum (b0 x) (x_classes s) <= 1) -> 0 <= weight -> weight <= IZR (x_second s) / 65536 ->
    (forall f xs y, reads f xs y -> is_vote vote_steps y) ->
    (forall f xs, reads f xs (softmax_vote F (x_classes s) z b0 weight f xs)) ->
    (forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near (x_slack s) (y k) (y' k)) ->
    (forall f xs xs' y, Permutation xs xs' -> reads f xs y -> reads f xs' y) ->
    (0 < x_classes s)%nat -> x_second s <> 0%Z -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).
Proof.
  intros id F W id_eq v z b0 weight s t V G B own reads B1 B2 W1 W2 R1 R2 R3 R4 HC H2 St H Sr G' N' b p At Rd P.
  assert (M : sensible_file s t = true).
  { unfold stacked_holds in H; destruct (Z.eqb_spec (x_second s) 0) as [|_]; [contradiction|]. cbn [fst snd] in H. destruct own; [discriminate|]. unfold second_test in H. apply andb_prop in H; apply H. }
  destruct (fits s t H2 M) as [FW FS]. pose proof (slack_pos _ _ (file_sensible id V s t St M)) as SP. rewrite (f_slack _ _ _ St) in SP.
  apply (two_levels_certificate id F W id_eq v reads (softmax_vote F (x_classes s) z b0 weight) s t V G B own HC H2 St H (softmax_model F (x_classes s) z b0 weight (x_second s) (x_slack s) B1 B2 W1 W2 FW SP reads R1 R2 R3 R4) Sr G' N' b p At Rd P).
Qed.
