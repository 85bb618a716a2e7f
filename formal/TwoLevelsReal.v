(** The inequalities of Theorem 11 (docs/proofs.md) about real numbers: what an edge, and what nodes, can do to a softmax. Coq's real numbers bring axioms
    (assumptions-reals.txt lists them), so this file stands apart: nothing else imports it, and the extracted program does not contain it. TwoLevels.v has
    what is proved here as hypotheses about whole numbers. *)
From Coq Require Import Reals Lra Psatz.
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

(** (a): logits of a neighbour move by w b with b >= 0 and sum at most 1, so that those of j, k and the others move by x, y and at most z with
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

(** Rounded down to whole steps of one vote, with w S <= S - 16: twice the movement is at most S, which is what [edge_step] of TwoLevels.v asks. *)
Theorem edge_moves_half_rounded :
  forall (S w pj pk qj qk : R) (uj uk vj vk : Z),
    w * S <= S - 16 -> 0 <= S -> Rabs ((qj - qk) - (pj - pk)) <= w / 2 ->
    IZR uj <= S * pj < IZR uj + 1 -> IZR uk <= S * pk < IZR uk + 1 -> IZR vj <= S * qj < IZR vj + 1 -> IZR vk <= S * qk < IZR vk + 1 ->
    2 * Rabs (IZR ((vj - vk) - (uj - uk))) <= S.
Proof.
  intros S w pj pk qj qk uj uk vj vk HW HS H A1 A2 A3 A4. rewrite !minus_IZR.
  assert (M : Rabs (S * ((qj - qk) - (pj - pk))) <= S * (w / 2)) by (rewrite Rabs_mult, (Rabs_pos_eq S) by auto; apply Rmult_le_compat_l; auto).
  apply Rabs_def2b in M || (assert (M' : - (S * (w / 2)) <= S * ((qj - qk) - (pj - pk)) <= S * (w / 2)) by (split; revert M; unfold Rabs; destruct (Rcase_abs _); lra)).
  assert (K : Rabs (IZR vj - IZR vk - (IZR uj - IZR uk)) <= S * (w / 2) + 2) by (apply Rabs_le; lra). lra.
Qed.

(** (b): n summands come or go; each multiplies odds by a factor from exp(-w) to exp w. [E]: the exponential of the class, [R]: those of all others
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

(** One summand: the logit of the class grows by x, those of the others by something from 0 to z, with x + z <= w. *)
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
Theorem exp_products x y X Y : exp x <= X -> exp y <= Y -> exp (x + y) <= X * Y.
Proof. intros HX HY. rewrite exp_plus. pose proof (exp_pos x); pose proof (exp_pos y). apply Rmult_le_compat; lra. Qed.
