(** Rounding that is bounded (docs/rounding.md): the recurrences for sums, Linear, GCN and ReLU in the standard model, and that a lead of more than twice the bound has
    the class of exact arithmetic. Coq's real numbers bring axioms (assumptions-reals.txt lists them), so this file stands apart: nothing else imports it. *)
From Coq Require Import Reals Lra Lia Psatz Arith List Permutation.
Import ListNotations.
Open Scope R_scope.

(** gamma_k = k u / (1 - k u). *)
Definition gamma (u : R) (k : nat) : R := INR k * u / (1 - INR k * u).

(** The exact sum of a list. *)
Definition total (l : list R) : R := fold_right Rplus 0 l.
(** The sum of absolute values. *)
Definition size (l : list R) : R := total (map Rabs l).

(** The standard model: the exact result times 1 + d, plus t where results are taken for zero. *)
Definition rounded (u eta exact found : R) : Prop :=
  exists d t, Rabs d <= u /\ Rabs t <= eta /\ found = exact * (1 + d) + t.

(** What a term has become after r operations: those that make its weight, and its product. *)
Definition after (u eta : R) (r : nat) (exact found : R) : Prop :=
  Rabs (found - exact) <= ((1 + u) ^ r - 1) * Rabs exact + INR r * (1 + u) ^ r * eta.

(** A sum of terms in any order and any blocks: a tree. Each term has gone through r operations before. *)
Inductive summed (u eta : R) (r : nat) : list R -> R -> Prop :=
| summed_none : summed u eta r [] 0
| summed_term exact found : after u eta r exact found -> summed u eta r [exact] found
| summed_both l left right a b c :
    Permutation l (left ++ right) -> left <> [] -> right <> [] ->
    summed u eta r left a -> summed u eta r right b -> rounded u eta (a + b) c -> summed u eta r l c.

(** Rows are functions; n is the number of entries. *)
Definition row := nat -> R.
(** The sum of the first n entries. *)
Fixpoint tot (n : nat) (x : row) : R := match n with O => 0 | S n' => tot n' x + x n' end.
(** The Euclidean norm. *)
Definition norm (n : nat) (x : row) : R := sqrt (tot n (fun i => x i * x i)).
(** The difference of two rows. *)
Definition minus (x y : row) : row := fun i => x i - y i.

(** The two numbers that go along with a row: h is exact, g was computed. *)
Definition bounded (n : nat) (m e : R) (h g : row) : Prop := norm n h <= m /\ norm n (minus g h) <= e.

(** A linear layer without its bias. *)
Definition times (k : nat) (W : nat -> row) (x : row) : row := fun i => tot k (fun j => W i j * x j).
(** The absolute values of its weights. *)
Definition positive (W : nat -> row) : nat -> row := fun i j => Rabs (W i j).
(** The products that are added up for one entry. *)
Definition terms (k : nat) (W : nat -> row) (x : row) (i : nat) : list R := map (fun j => W i j * x j) (seq 0 k).

(** Terms that are zero are added exactly, so they need not be counted. *)
Definition not_zero (x : R) : bool := if Req_EM_T x 0 then false else true.

(** ReLU, entry by entry. *)
Definition relu (x : row) : row := fun i => Rmax (x i) 0.

(** A neighbour: the weight of its edge, its exact row and the computed one, and their bounds. *)
Record neighbour := Neighbour { weight : R; exact_row : row; computed_row : row; its_size : R; its_error : R }.
(** Weights are not negative, and the bounds of the row hold. *)
Definition fair (n : nat) (v : neighbour) : Prop := 0 <= weight v /\ bounded n (its_size v) (its_error v) (exact_row v) (computed_row v).
(** A weighted sum over neighbours of one of their numbers. *)
Definition weighted (f : neighbour -> R) (vs : list neighbour) : R := total (map (fun v => weight v * f v) vs).

(** The sum over neighbours of an entry of their rows, and what is added up for it: the bias and the products. *)
Definition added (vs : list neighbour) (pick : neighbour -> row) : row := fun i => total (map (fun v => weight v * pick v i) vs).
(** What is added up for an entry: the bias and the products. *)
Definition gcn_terms (vs : list neighbour) (bias : row) (i : nat) : list R := bias i :: map (fun v => weight v * computed_row v i) vs.

(** Proofs *)

Lemma total_app l l' : total (l ++ l') = total l + total l'.
Proof. induction l as [|x l IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma total_perm l l' : Permutation l l' -> total l = total l'.
Proof. induction 1; simpl; lra. Qed.

Lemma size_app l l' : size (l ++ l') = size l + size l'.
Proof. unfold size. rewrite map_app. apply total_app. Qed.

Lemma size_perm l l' : Permutation l l' -> size l = size l'.
Proof. intro H. apply total_perm, Permutation_map, H. Qed.

Lemma size_pos l : 0 <= size l.
Proof. unfold size. induction l as [|x l IH]; simpl; [lra|]. pose proof (Rabs_pos x). lra. Qed.

Lemma total_size l : Rabs (total l) <= size l.
Proof.
  unfold size. induction l as [|x l IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma pow_up x n m : 1 <= x -> (n <= m)%nat -> x ^ n <= x ^ m.
Proof. intros; apply Rle_pow; auto. Qed.

Lemma pow_least x n : 1 <= x -> 1 <= x ^ n.
Proof. intro H. pose proof (pow_up x 0 n H ltac:(lia)). simpl in H0. lra. Qed.

(** (1 + u)^k <= 1 / (1 - k u). *)
Lemma pow_inverse u k : 0 <= u -> INR k * u < 1 -> (1 + u) ^ k * (1 - INR k * u) <= 1.
Proof.
  intros Hu. induction k as [|k IH]; intro H; [simpl; lra|].
  rewrite S_INR in *. assert (K : INR k * u < 1) by lra. specialize (IH K). pose proof (pos_INR k).
  pose proof (pow_least (1 + u) k ltac:(lra)).
  simpl. assert (D : (1 + u) * (1 - (INR k + 1) * u) <= 1 - INR k * u) by nra.
  replace ((1 + u) * (1 + u) ^ k * (1 - (INR k + 1) * u)) with ((1 + u) ^ k * ((1 + u) * (1 - (INR k + 1) * u))) by ring.
  eapply Rle_trans; [apply Rmult_le_compat_l; [lra|apply D]|]. lra.
Qed.

Lemma pow_gamma u k : 0 <= u -> INR k * u < 1 -> (1 + u) ^ k - 1 <= gamma u k.
Proof.
  intros Hu H. pose proof (pow_inverse u k Hu H) as P. unfold gamma.
  apply (Rmult_le_reg_r (1 - INR k * u)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.

Lemma pow_two u k : 0 <= u -> INR k * u <= 1 / 2 -> (1 + u) ^ k <= 2.
Proof.
  intros Hu H. pose proof (pow_inverse u k Hu ltac:(lra)) as P. pose proof (pow_least (1 + u) k ltac:(lra)). nra.
Qed.

Lemma summed_length u eta r l s : summed u eta r l s -> l = [] -> s = 0.
Proof.
  destruct 1 as [|x y H|l left right a b c P L R HL HR Hc]; intro E; [reflexivity|discriminate|].
  subst. apply Permutation_nil in P. destruct left; [congruence|discriminate].
Qed.

(** A product is one operation; a further product with a factor of at most 1 is one more. *)
Theorem product_after u eta x y : 0 <= u -> 0 <= eta -> rounded u eta x y -> after u eta 1 x y.
Proof.
  intros Hu He [d [t [Hd [Ht E]]]]. unfold after. simpl. replace (y - x) with (x * d + t) by (rewrite E; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult. pose proof (Rabs_pos x). assert (Rabs x * Rabs d <= Rabs x * u) by (apply Rmult_le_compat_l; auto). nra.
Qed.

(** The lemma about sums: a product with a factor of at most 1 is one operation more. *)
Theorem scaled_after u eta r c x y z : 0 <= u -> 0 <= eta -> Rabs c <= 1 -> after u eta r x y -> rounded u eta (c * y) z -> after u eta (S r) (c * x) z.
Proof.
  intros Hu He Hc H [d [t [Hd [Ht E]]]]. unfold after in *. rewrite S_INR. change ((1 + u) ^ S r) with ((1 + u) * (1 + u) ^ r).
  set (X := (1 + u) ^ r) in *. assert (1 <= X) by (apply pow_least; lra). pose proof (pos_INR r). pose proof (Rabs_pos c). pose proof (Rabs_pos x).
  replace (z - c * x) with (c * (y - x) * (1 + d) + (c * x * d + t)) by (rewrite E; ring).
  eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|]. rewrite !Rabs_mult.
  assert (D : Rabs (1 + d) <= 1 + u) by (eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra).
  assert (A : Rabs c * Rabs (y - x) * Rabs (1 + d) <= Rabs c * ((X - 1) * Rabs x + INR r * X * eta) * (1 + u)).
  { apply Rmult_le_compat; auto using Rabs_pos; [apply Rmult_le_pos; apply Rabs_pos|apply Rmult_le_compat_l; auto]. }
  assert (B : Rabs c * Rabs x * Rabs d <= Rabs c * Rabs x * u) by (apply Rmult_le_compat_l; auto; apply Rmult_le_pos; auto).
  assert (F : Rabs c * (INR r * X * eta) <= INR r * X * eta) by (rewrite <- (Rmult_1_l (INR r * X * eta)) at 2; apply Rmult_le_compat_r; auto; apply Rmult_le_pos; [nra|auto]).
  assert (G : eta <= (1 + u) * X * eta) by (rewrite <- (Rmult_1_l eta) at 1; apply Rmult_le_compat_r; [lra|nra]).
  assert (K : (1 + u) * (Rabs c * (INR r * X * eta)) <= (1 + u) * (INR r * X * eta)) by (apply Rmult_le_compat_l; lra).
  replace (Rabs c * ((X - 1) * Rabs x + INR r * X * eta) * (1 + u)) with ((1 + u) * (X - 1) * (Rabs c * Rabs x) + (1 + u) * (Rabs c * (INR r * X * eta))) in A by ring.
  replace (((1 + u) * X - 1) * (Rabs c * Rabs x)) with ((1 + u) * (X - 1) * (Rabs c * Rabs x) + u * (Rabs c * Rabs x)) by ring.
  replace ((INR r + 1) * ((1 + u) * X) * eta) with ((1 + u) * (INR r * X * eta) + (1 + u) * X * eta) by ring. lra.
Qed.

(** A sum in any order, before gamma: each term goes through at most r + (number of terms - 1) operations. *)
Lemma summed_error u eta r l s : 0 <= u -> 0 <= eta -> (1 <= r)%nat -> summed u eta r l s ->
  Rabs (s - total l) <= ((1 + u) ^ (length l + r - 1) - 1) * size l + INR (r * length l + length l - 1) * (1 + u) ^ (length l + r - 1) * eta.
Proof.
  intros Hu He Hr. induction 1 as [|x y H|l left right a b c P L R HL IL HR IR [d [t [Hd [Ht Hc]]]]].
  - unfold size; simpl. rewrite Rminus_0_r, Rabs_R0. replace (r * 0)%nat with 0%nat by lia. simpl. lra.
  - unfold size; simpl length. replace (1 + r - 1)%nat with r by lia. replace (r * 1 + 1 - 1)%nat with r by lia. simpl total. rewrite !Rplus_0_r. apply H.
  - rewrite (total_perm _ _ P), (size_perm _ _ P), (Permutation_length P), total_app, size_app, app_length.
    assert (1 <= length left)%nat by (destruct left; [congruence|simpl; lia]). assert (1 <= length right)%nat by (destruct right; [congruence|simpl; lia]).
    set (p := length left) in *. set (q := length right) in *.
    set (N := (p + q + r - 2)%nat). replace (p + q + r - 1)%nat with (S N) by lia.
    assert (Pa : (1 + u) ^ (p + r - 1) <= (1 + u) ^ N) by (apply pow_up; [lra|lia]).
    assert (Pb : (1 + u) ^ (q + r - 1) <= (1 + u) ^ N) by (apply pow_up; [lra|lia]).
    pose proof (pow_least (1 + u) N ltac:(lra)) as PN.
    pose proof (size_pos left) as SL. pose proof (size_pos right) as SR. pose proof (total_size left) as TL. pose proof (total_size right) as TR.
    set (X := (1 + u) ^ N) in *. set (A := INR (r * p + p - 1)) in *. set (B := INR (r * q + q - 1)) in *.
    assert (HA : 0 <= A) by apply pos_INR. assert (HB : 0 <= B) by apply pos_INR.
    assert (IL' : Rabs (a - total left) <= (X - 1) * size left + A * X * eta).
    { eapply Rle_trans; [apply IL|]. apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|]. apply Rmult_le_compat_r; auto. apply Rmult_le_compat_l; auto. }
    assert (IR' : Rabs (b - total right) <= (X - 1) * size right + B * X * eta).
    { eapply Rle_trans; [apply IR|]. apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|]. apply Rmult_le_compat_r; auto. apply Rmult_le_compat_l; auto. }
    clear IL IR Pa Pb. change ((1 + u) ^ S N) with ((1 + u) * X).
    set (Y := (X - 1) * (size left + size right) + (A + B) * X * eta).
    assert (S1 : Rabs (a + b - (total left + total right)) <= Y).
    { replace (a + b - (total left + total right)) with ((a - total left) + (b - total right)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. unfold Y. lra. }
    assert (S2 : Rabs (a + b) <= Y + (size left + size right)).
    { replace (a + b) with ((a + b - (total left + total right)) + (total left + total right)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rabs_triang (total left) (total right)). lra. }
    replace (c - (total left + total right)) with ((a + b - (total left + total right)) + ((a + b) * d + t)) by (rewrite Hc; ring).
    eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|]. rewrite Rabs_mult.
    assert (S3 : Rabs (a + b) * Rabs d <= (Y + (size left + size right)) * u) by (apply Rmult_le_compat; auto using Rabs_pos).
    assert (G : INR (r * (p + q) + (p + q) - 1) = A + B + 1).
    { unfold A, B. rewrite <- plus_INR. change 1 with (INR 1). rewrite <- plus_INR. f_equal. nia. }
    rewrite G. set (T := size left + size right) in *.
    assert (E : Y + ((Y + T) * u + eta) <= ((1 + u) * X - 1) * T + (A + B + 1) * ((1 + u) * X) * eta).
    { unfold Y. assert (eta <= (1 + u) * X * eta) by (rewrite <- (Rmult_1_l eta) at 1; apply Rmult_le_compat_r; [lra|nra]).
      replace ((A + B + 1) * ((1 + u) * X) * eta) with ((1 + u) * ((A + B) * X * eta) + (1 + u) * X * eta) by ring.
      replace (((1 + u) * X - 1) * T) with ((1 + u) * ((X - 1) * T) + u * T) by ring. lra. }
    lra.
Qed.

(** The lemma about sums of docs/proofs.md, for k operations: in any order, blocking or number of threads. *)
Theorem sum_error u eta r l s k : 0 <= u -> 0 <= eta -> (1 <= r)%nat -> (length l + r - 1 <= k)%nat -> INR k * u <= 1 / 2 -> summed u eta r l s ->
  Rabs (s - total l) <= gamma u k * size l + 2 * INR (r * length l + length l) * eta.
Proof.
  intros Hu He Hr Hk Hs H. eapply Rle_trans; [apply (summed_error u eta r l s); auto|].
  pose proof (pow_up (1 + u) _ _ ltac:(lra) Hk) as P. pose proof (pow_gamma u k Hu ltac:(lra)). pose proof (pow_two u k Hu Hs). pose proof (size_pos l).
  pose proof (pow_least (1 + u) (length l + r - 1) ltac:(lra)).
  apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|]. apply Rmult_le_compat_r; auto. rewrite (Rmult_comm 2).
  apply Rmult_le_compat; [apply pos_INR|lra|apply le_INR; lia|lra].
Qed.

Lemma total_not_zero l : total (filter not_zero l) = total l.
Proof. induction l as [|x l IH]; simpl; auto. unfold not_zero at 1. destruct (Req_EM_T x 0); simpl; rewrite IH; lra. Qed.

Lemma size_not_zero l : size (filter not_zero l) = size l.
Proof.
  unfold size. induction l as [|x l IH]; simpl; auto. unfold not_zero at 1. destruct (Req_EM_T x 0) as [->|N]; simpl; rewrite IH; [rewrite Rabs_R0|]; lra.
Qed.

(** Norms *)
Lemma tot_ext n x y : (forall i, (i < n)%nat -> x i = y i) -> tot n x = tot n y.
Proof. induction n as [|n IH]; intro H; simpl; auto. rewrite IH, H; auto; intros; apply H; lia. Qed.

Lemma tot_le n x y : (forall i, (i < n)%nat -> x i <= y i) -> tot n x <= tot n y.
Proof. induction n as [|n IH]; intro H; simpl; [lra|]. apply Rplus_le_compat; [apply IH; intros; apply H; lia|apply H; lia]. Qed.

Lemma tot_pos n x : (forall i, 0 <= x i) -> 0 <= tot n x.
Proof. intro H. induction n as [|n IH]; simpl; [lra|]. pose proof (H n). lra. Qed.

Lemma tot_plus n x y : tot n (fun i => x i + y i) = tot n x + tot n y.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma tot_scale n c x : tot n (fun i => c * x i) = c * tot n x.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma tot_total n x : tot n x = total (map x (seq 0 n)).
Proof. induction n as [|n IH]; auto. rewrite seq_S, map_app, total_app, <- IH. simpl. lra. Qed.

Lemma squares_pos n (x : row) : 0 <= tot n (fun i => x i * x i).
Proof. apply tot_pos. intro i. apply Rle_0_sqr. Qed.

Lemma norm_pos n x : 0 <= norm n x.
Proof. apply sqrt_pos. Qed.

Lemma norm_square n x : norm n x * norm n x = tot n (fun i => x i * x i).
Proof. apply sqrt_sqrt, squares_pos. Qed.

Lemma cauchy_schwarz n (x y : row) : tot n (fun i => x i * y i) * tot n (fun i => x i * y i) <= tot n (fun i => x i * x i) * tot n (fun i => y i * y i).
Proof.
  induction n as [|n IH]; simpl; [lra|].
  set (s := tot n (fun i => x i * y i)) in *. set (P := tot n (fun i => x i * x i)) in *. set (Q := tot n (fun i => y i * y i)) in *.
  assert (0 <= P) by apply squares_pos. assert (0 <= Q) by apply squares_pos. set (a := x n). set (b := y n).
  assert (M : 2 * (s * (a * b)) <= P * (b * b) + Q * (a * a)).
  { assert (0 <= P * (b * b) + Q * (a * a)) by nra.
    destruct (Rle_lt_dec (2 * (s * (a * b))) 0); [lra|].
    apply Rsqr_incr_0_var; auto. unfold Rsqr.
    assert ((s * s) * ((a * b) * (a * b)) <= (P * Q) * ((a * b) * (a * b))) by (apply Rmult_le_compat_r; [apply Rle_0_sqr|auto]).
    pose proof (Rle_0_sqr (P * (b * b) - Q * (a * a))) as D. unfold Rsqr in D. nra. }
  nra.
Qed.

Lemma norm_triangle n x y : norm n (fun i => x i + y i) <= norm n x + norm n y.
Proof.
  pose proof (norm_pos n x). pose proof (norm_pos n y). apply Rsqr_incr_0_var; [|lra]. unfold Rsqr.
  rewrite norm_square. rewrite (tot_ext n _ (fun i => (x i * x i + y i * y i) + 2 * (x i * y i))) by (intros; ring).
  rewrite tot_plus, tot_plus, tot_scale, <- !norm_square.
  assert (tot n (fun i => x i * y i) <= norm n x * norm n y).
  { destruct (Rle_lt_dec (tot n (fun i => x i * y i)) 0); [nra|]. apply Rsqr_incr_0_var; [|nra]. unfold Rsqr.
    eapply Rle_trans; [apply cauchy_schwarz|]. rewrite <- !norm_square. nra. }
  nra.
Qed.

Lemma norm_below n x y : (forall i, (i < n)%nat -> Rabs (x i) <= Rabs (y i)) -> norm n x <= norm n y.
Proof.
  intro H. apply sqrt_le_1; try apply squares_pos. apply tot_le. intros i Hi. specialize (H i Hi).
  pose proof (Rsqr_le_abs_1 (x i) (y i) H) as S. unfold Rsqr in S. exact S.
Qed.

Lemma norm_scale n c x : 0 <= c -> norm n (fun i => c * x i) = c * norm n x.
Proof.
  intro H. unfold norm. rewrite (tot_ext n _ (fun i => (c * c) * (x i * x i))) by (intros; ring). rewrite tot_scale, sqrt_mult_alt, sqrt_square; auto. nra.
Qed.

Lemma norm_constant n c : 0 <= c -> norm n (fun _ => c) = c * sqrt (INR n).
Proof.
  intro H. unfold norm. assert (E : tot n (fun _ => c * c) = (c * c) * INR n).
  { induction n as [|n IH]; [simpl; lra|]. simpl tot. rewrite IH, S_INR. lra. }
  rewrite E, sqrt_mult_alt, sqrt_square; auto. nra.
Qed.

Lemma norm_ext n x y : (forall i, (i < n)%nat -> x i = y i) -> norm n x = norm n y.
Proof. intro H. unfold norm. f_equal. apply tot_ext. intros i Hi. rewrite H; auto. Qed.

Lemma computed_norm n m e h g : bounded n m e h g -> norm n g <= m + e.
Proof.
  intros [H1 H2]. rewrite (norm_ext n g (fun i => h i + minus g h i)) by (intros; unfold minus; ring).
  eapply Rle_trans; [apply norm_triangle|]. lra.
Qed.

(** What was computed bounds the exact row, too: m may be the smaller of two bounds. *)
Theorem observed_bounded n m e h g : bounded n m e h g -> bounded n (Rmin m (norm n g + e)) e h g.
Proof.
  intros [H1 H2]. split; auto. apply Rmin_glb; auto.
  rewrite (norm_ext n h (fun i => g i + (-1) * minus g h i)) by (intros; unfold minus; ring).
  eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat_l.
  eapply Rle_trans; [|apply H2]. apply norm_below. intros. replace (-1 * minus g h i) with (- minus g h i) by ring. rewrite Rabs_Ropp. lra.
Qed.

(** ReLU rounds nothing. *)
Theorem relu_bounded n m e h g : bounded n m e h g -> bounded n m e (relu h) (relu g).
Proof.
  intros [H1 H2]. split.
  - eapply Rle_trans; [|apply H1]. apply norm_below. intros. unfold relu. unfold Rmax. destruct (Rle_dec (h i) 0); unfold Rabs; repeat destruct Rcase_abs; lra.
  - eapply Rle_trans; [|apply H2]. apply norm_below. intros. unfold minus, relu, Rmax.
    destruct (Rle_dec (g i) 0), (Rle_dec (h i) 0); unfold Rabs; repeat destruct Rcase_abs; lra.
Qed.

(** Linear: s bounds the weight, a its absolute values; at most k entries of each sum are not zero. *)
Theorem linear_bounded u eta inputs outputs k W s a m e h g out :
  0 <= u -> 0 <= eta -> INR k * u <= 1 / 2 -> 0 <= s -> 0 <= a ->
  (forall v, norm outputs (times inputs W v) <= s * norm inputs v) ->
  (forall v, norm outputs (times inputs (positive W) (fun j => Rabs (v j))) <= a * norm inputs v) ->
  (forall i, (i < outputs)%nat -> (length (filter not_zero (terms inputs W g i)) <= k)%nat /\ summed u eta 1 (filter not_zero (terms inputs W g i)) (out i)) ->
  bounded inputs m e h g ->
  bounded outputs (s * m) (s * e + gamma u k * (a * (m + e)) + 4 * INR k * eta * sqrt (INR outputs)) (times inputs W h) out.
Proof.
  intros Hu He Hk Hs Ha HS HA Hout B. pose proof (computed_norm _ _ _ _ _ B) as HG. destruct B as [H1 H2]. split.
  - eapply Rle_trans; [apply HS|]. apply Rmult_le_compat_l; auto.
  - rewrite (norm_ext outputs _ (fun i => times inputs W (minus g h) i + (out i - times inputs W g i))).
    2: { intros i Hi. unfold minus, times.
         assert (E : tot inputs (fun j => W i j * (g j - h j)) = tot inputs (fun j => W i j * g j) + (-1) * tot inputs (fun j => W i j * h j)).
         { rewrite <- tot_scale, <- tot_plus. apply tot_ext. intros; ring. }
         rewrite E. ring. }
    eapply Rle_trans; [apply norm_triangle|]. rewrite Rplus_assoc. apply Rplus_le_compat.
    { eapply Rle_trans; [apply HS|]. apply Rmult_le_compat_l; auto. }
    assert (G0 : 0 <= gamma u k) by (pose proof (pow_gamma u k Hu ltac:(lra)); pose proof (pow_least (1 + u) k ltac:(lra)); lra).
    assert (K0 : 0 <= 4 * INR k * eta) by (pose proof (pos_INR k); nra).
    rewrite <- (norm_constant outputs _ K0).
    eapply Rle_trans; [apply (norm_below _ _ (fun i => gamma u k * times inputs (positive W) (fun j => Rabs (g j)) i + 4 * INR k * eta))|].
    + intros i Hi. destruct (Hout i Hi) as [L C].
      assert (T0 : 0 <= times inputs (positive W) (fun j => Rabs (g j)) i).
      { apply tot_pos. intro j. unfold positive. apply Rmult_le_pos; apply Rabs_pos. }
      rewrite (Rabs_pos_eq (_ + _)) by nra.
      pose proof (sum_error u eta 1 (filter not_zero (terms inputs W g i)) (out i) k Hu He ltac:(lia) ltac:(lia) Hk C) as E. rewrite total_not_zero, size_not_zero in E.
      replace (total (terms inputs W g i)) with (times inputs W g i) in E by (unfold times, terms; apply tot_total).
      replace (size (terms inputs W g i)) with (times inputs (positive W) (fun j => Rabs (g j)) i) in E.
      2: { unfold times, terms, size. rewrite tot_total, map_map. f_equal. apply map_ext. intro j. unfold positive. rewrite Rabs_mult. reflexivity. }
      eapply Rle_trans; [apply E|]. apply Rplus_le_compat_l. apply Rmult_le_compat_r; auto.
      rewrite Nat.mul_1_l, plus_INR. pose proof (le_INR _ _ L). lra.
    + eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat_r. rewrite norm_scale by auto. apply Rmult_le_compat_l; auto.
      eapply Rle_trans; [apply HA|]. apply Rmult_le_compat_l; auto.
Qed.

Lemma norm_added n vs pick f : (forall v, In v vs -> 0 <= weight v /\ norm n (pick v) <= f v) -> norm n (added vs pick) <= weighted f vs.
Proof.
  induction vs as [|v vs IH]; intro H.
  - unfold added, weighted. simpl. rewrite norm_constant; lra.
  - destruct (H v (or_introl eq_refl)) as [W N]. unfold added, weighted. simpl.
    eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat; [rewrite norm_scale by auto; apply Rmult_le_compat_l; auto|].
    apply IH. intros; apply H; right; auto.
Qed.

(** GCN, SAGE and GIN: a weighted sum over neighbours (with the node itself among them) and a bias. Each term goes through r operations before it is added. *)
Theorem gcn_bounded u eta n r k vs bias beta out :
  0 <= u -> 0 <= eta -> (1 <= r)%nat -> (length vs + r <= k)%nat -> INR k * u <= 1 / 2 -> norm n bias <= beta ->
  (forall v, In v vs -> fair n v) ->
  (forall i, (i < n)%nat -> summed u eta r (gcn_terms vs bias i) (out i)) ->
  bounded n (weighted its_size vs + beta)
    (weighted its_error vs + gamma u k * (weighted (fun v => its_size v + its_error v) vs + beta) + 2 * INR ((r + 1) * (length vs + 1)) * eta * sqrt (INR n))
    (fun i => added vs exact_row i + bias i) out.
Proof.
  intros Hu He Hr Hk Hs HB HF Hout. split.
  - eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat; auto. apply norm_added. intros v Hv. destruct (HF v Hv) as [W [H1 H2]]. auto.
  - rewrite (norm_ext n _ (fun i => added vs (fun v => minus (computed_row v) (exact_row v)) i + (out i - (added vs computed_row i + bias i)))).
    2: { intros i Hi. unfold minus, added. assert (E : total (map (fun v => weight v * (computed_row v i - exact_row v i)) vs)
           = total (map (fun v => weight v * computed_row v i) vs) - total (map (fun v => weight v * exact_row v i) vs)).
         { clear. induction vs as [|v vs IH]; simpl; [lra|]. rewrite IH. lra. } rewrite E. ring. }
    eapply Rle_trans; [apply norm_triangle|]. rewrite Rplus_assoc. apply Rplus_le_compat.
    { apply norm_added. intros v Hv. destruct (HF v Hv) as [W [H1 H2]]. auto. }
    assert (G0 : 0 <= gamma u k) by (pose proof (pow_gamma u k Hu ltac:(lra)); pose proof (pow_least (1 + u) k ltac:(lra)); lra).
    set (c := 2 * INR ((r + 1) * (length vs + 1)) * eta).
    assert (K0 : 0 <= c) by (unfold c; pose proof (pos_INR ((r + 1) * (length vs + 1))); nra).
    rewrite <- (norm_constant n _ K0).
    eapply Rle_trans; [apply (norm_below _ _ (fun i => gamma u k * (added vs (fun v j => Rabs (computed_row v j)) i + Rabs (bias i)) + c))|].
    + intros i Hi. pose proof (sum_error u eta r (gcn_terms vs bias i) (out i) k Hu He Hr ltac:(unfold gcn_terms; simpl; rewrite map_length; lia) Hs (Hout i Hi)) as E.
      assert (Z : size (gcn_terms vs bias i) = added vs (fun v j => Rabs (computed_row v j)) i + Rabs (bias i)).
      { unfold gcn_terms, size, added. simpl. rewrite map_map. rewrite Rplus_comm. f_equal. f_equal. apply map_ext_in. intros v Hv.
        rewrite Rabs_mult, (Rabs_pos_eq (weight v)); auto. apply (HF v Hv). }
      rewrite <- Z. pose proof (size_pos (gcn_terms vs bias i)). rewrite (Rabs_pos_eq (_ + _)) by nra.
      replace (added vs computed_row i + bias i) with (total (gcn_terms vs bias i)) by (unfold gcn_terms, added; simpl; ring).
      eapply Rle_trans; [apply E|]. apply Rplus_le_compat_l. unfold c. apply Rmult_le_compat_r; auto. apply Rmult_le_compat_l; [lra|].
      apply le_INR. unfold gcn_terms. simpl length. rewrite map_length. nia.
    + eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat_r. rewrite norm_scale by auto. apply Rmult_le_compat_l; auto.
      eapply Rle_trans; [apply norm_triangle|]. apply Rplus_le_compat.
      * apply norm_added. intros v Hv. destruct (HF v Hv) as [W BV]. split; auto.
        eapply Rle_trans; [|apply (computed_norm _ _ _ _ _ BV)]. apply norm_below. intros. rewrite Rabs_Rabsolu. lra.
      * eapply Rle_trans; [|apply HB]. apply norm_below. intros. rewrite Rabs_Rabsolu. lra.
Qed.

Lemma within x b : Rabs x <= b -> - b <= x <= b.
Proof. unfold Rabs. destruct Rcase_abs; lra. Qed.

(** A lead of more than twice the bound has the class of exact arithmetic. *)
Theorem lead_decides (classes : nat) (z found : row) bound a :
  (forall k, (k < classes)%nat -> Rabs (found k - z k) <= bound) -> (a < classes)%nat ->
  (forall k, (k < classes)%nat -> k <> a -> found a - found k > 2 * bound) ->
  forall k, (k < classes)%nat -> k <> a -> z a > z k.
Proof.
  intros H Ha L k Hk N. pose proof (H a Ha) as A. pose proof (H k Hk) as B. specialize (L k Hk N).
  apply within in A. apply within in B. lra.
Qed.

(** A lead of more than four times the bound is found on every machine. *)
Theorem lead_on_every_machine (classes : nat) (z found other : row) bound a :
  (forall k, (k < classes)%nat -> Rabs (found k - z k) <= bound) -> (forall k, (k < classes)%nat -> Rabs (other k - z k) <= bound) -> (a < classes)%nat ->
  (forall k, (k < classes)%nat -> k <> a -> found a - found k > 4 * bound) ->
  forall k, (k < classes)%nat -> k <> a -> other a > other k.
Proof.
  intros H H' Ha L k Hk N. pose proof (H a Ha) as A. pose proof (H k Hk) as B. pose proof (H' a Ha) as A'. pose proof (H' k Hk) as B'. specialize (L k Hk N).
  apply within in A. apply within in B. apply within in A'. apply within in B'. lra.
Qed.

(** One entry of a row is at most its norm: so bounds in the Euclidean norm bound every logit. *)
Lemma entry_below_norm n x i : (i < n)%nat -> Rabs (x i) <= norm n x.
Proof.
  intro H. rewrite <- (sqrt_Rsqr_abs (x i)). apply sqrt_le_1; [apply Rle_0_sqr|apply squares_pos|]. unfold Rsqr.
  induction n as [|n IH]; [lia|]. simpl. destruct (Nat.eq_dec i n) as [->|N].
  - pose proof (squares_pos n x). lra.
  - specialize (IH ltac:(lia)). pose proof (Rle_0_sqr (x n)) as S. unfold Rsqr in S. lra.
Qed.

(** A single logit is a product with a single row of a weight: both of its norms are that of the row. *)
Theorem logit_norms inputs W v :
  norm 1 (times inputs W v) <= norm inputs (W O) * norm inputs v /\
  norm 1 (times inputs (positive W) (fun j => Rabs (v j))) <= norm inputs (W O) * norm inputs v.
Proof.
  assert (C : forall x y : row, norm 1 (fun _ => tot inputs (fun j => x j * y j)) <= norm inputs x * norm inputs y).
  { intros x y. pose proof (norm_pos inputs x). pose proof (norm_pos inputs y). apply Rsqr_incr_0_var; [|nra]. unfold Rsqr. rewrite norm_square. simpl. rewrite Rplus_0_l.
    eapply Rle_trans; [apply cauchy_schwarz|]. rewrite <- !norm_square. nra. }
  assert (A : forall x : row, norm inputs (fun j => Rabs (x j)) = norm inputs x).
  { intro x. unfold norm. f_equal. apply tot_ext. intros. rewrite <- Rabs_mult. apply Rabs_pos_eq, Rle_0_sqr. }
  split.
  - rewrite (norm_ext 1 _ (fun _ => tot inputs (fun j => W O j * v j))); [apply C|]. intros i Hi. replace i with O by lia. reflexivity.
  - rewrite (norm_ext 1 _ (fun _ => tot inputs (fun j => Rabs (W O j) * Rabs (v j)))); [|intros i Hi; replace i with O by lia; reflexivity].
    rewrite <- (A (W O)), <- (A v). apply C.
Qed.
