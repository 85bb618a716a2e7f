(** What the answers of the checker for stacked votes establish (docs/proofs.md, Theorem 10): whatever an attack within the numbers and a machine
    within the slack make of scores and votes, the label is the one that the checker derives. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation Mergesort Sorted.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker CheckerProofs StackedVote StackedChecker.
Import ListNotations.
Open Scope Z_scope.

(** The numbers of a file are those of a target V. *)
Record stands_for {key : Type} (V : stacked_votes key) (s : stacked_settings) (t : stacked_target) : Prop := {
  f_once : NoDup (neighbours _ V);
  f_rows : Forall2 (fun u row => forall k, vote_of _ V u k = at_class k row) (neighbours _ V) (x_rows t);
  f_p : forall k, p_of _ V k = at_class k (x_prior t);
  f_g : forall k, g_of _ V k = at_class k (x_gate t);
  f_q : forall k, q_of _ V k = at_class k (x_pseudo_votes s);
  f_all : q_all _ V = plus (x_pseudo_votes s);
  f_steps : st_steps _ V = vote_steps; f_pseudo : pseudo _ V = x_pseudo s; f_slack : slack _ V = x_slack s;
  f_computed : computed _ V = x_computed s; f_by_edge : by_edge _ V = x_by_edge s
}.

(** ---- Proofs ---- *)

Lemma add_up_plus l : forall n, add_up l n = n + plus l.
Proof. induction l as [|x l IH]; intro n; simpl; [lia|rewrite IH; lia]. Qed.
Lemma size_length {A} (l : list A) : forall n, size l n = n + Z.of_nat (length l).
Proof. induction l as [|x l IH]; intro n; [simpl; lia|]. cbn [size length]; rewrite IH; lia. Qed.
Lemma at_class_pos l k : none_negative l = true -> 0 <= at_class k l.
Proof.
  unfold none_negative, at_class; intro H. destruct (Nat.lt_ge_cases k (length l)) as [L|L]; [|rewrite nth_overflow by auto; lia].
  rewrite forallb_forall in H. apply Z.leb_le, H, nth_In; auto.
Qed.
Lemma plus_pos l : none_negative l = true -> 0 <= plus l.
Proof. induction l as [|x l IH]; simpl; intro H; [lia|]. apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1; specialize (IH H2); lia. Qed.
Lemma at_class_le l : none_negative l = true -> forall k, at_class k l <= plus l.
Proof.
  induction l as [|x l IH]; intros H k; unfold at_class in *; [destruct k; simpl; lia|]. simpl in H; apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1.
  pose proof (plus_pos l H2). specialize (IH H2). destruct k as [|k]; simpl; [lia|]. specialize (IH k); lia.
Qed.
Lemma two_classes l : none_negative l = true -> forall j k, j <> k -> at_class j l + at_class k l <= plus l.
Proof.
  induction l as [|x l IH]; intros H j k N; [unfold at_class; destruct j, k; simpl; lia|].
  simpl in H; apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1.
  destruct j as [|j], k as [|k]; [contradiction| | |]; unfold at_class in *; simpl.
  - pose proof (at_class_le l H2 k) as Q; unfold at_class in Q; lia.
  - pose proof (at_class_le l H2 j) as Q; unfold at_class in Q; lia.
  - specialize (IH H2 j k ltac:(lia)). lia.
Qed.

Section Sound.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variables (V : stacked_votes key) (s : stacked_settings) (t : stacked_target).
  Hypothesis same : stands_for V s t.
  Hypothesis made : sensible_file s t = true.
  Hypothesis some_class : (0 < x_classes s)%nat.
  Let c := count_stacked s t.
  Let a := y_label c.

  Lemma parts : (forall row, In row (x_rows t) -> none_negative row = true /\ plus row <= vote_steps)
    /\ none_negative (x_gate t) = true /\ none_negative (x_pseudo_votes s) = true /\ 0 <= x_slack s /\ 0 <= x_pseudo s
    /\ length (x_gate t) = x_classes s /\ (x_by_edge s = true -> forall g, In g (x_gate t) -> g = at_class 0 (x_gate t)).
  Proof.
    pose proof made as M; unfold sensible_file in M. apply andb_prop in M; destruct M as [M _].
    apply andb_prop in M; destruct M as [M M7]. apply andb_prop in M; destruct M as [M M6]. apply andb_prop in M; destruct M as [M M5].
    apply andb_prop in M; destruct M as [M M4]. apply andb_prop in M; destruct M as [M M3]. apply andb_prop in M; destruct M as [M M2].
    apply Z.leb_le in M4, M5. apply Nat.eqb_eq in M6. split; [|repeat split; auto].
    - intros row I. rewrite forallb_forall in M; specialize (M row I); apply andb_prop in M; destruct M as [Q1 Q2]; apply Z.leb_le in Q2; rewrite add_up_plus in Q2. split; auto; lia.
    - intros E g I. rewrite E in M7; simpl in M7. rewrite forallb_forall in M7; apply Z.eqb_eq, M7; auto.
  Qed.

  Lemma file_sensible : sensible key V.
  Proof.
    destruct parts as (P1 & P2 & P3 & P4 & P5 & P6 & P7). destruct same. split.
    - rewrite f_steps0; reflexivity.
    - rewrite f_slack0; auto.
    - rewrite f_pseudo0; auto.
    - intro k; rewrite f_g0; apply at_class_pos; auto.
    - intro k; rewrite f_q0; apply at_class_pos; auto.
    - intros j k N; rewrite !f_q0, f_all0; apply two_classes; auto.
    - auto.
    - intros u I. rewrite f_steps0. clear - f_rows0 I P1. induction f_rows0 as [|w row N rows H F IH]; [contradiction|].
      destruct I as [<-|I]; [|apply IH; auto; intros; apply P1; right; auto].
      destruct (P1 row (or_introl eq_refl)) as [Q1 Q2]. split; [intro k; rewrite H; apply at_class_pos; auto|].
      intros j k N'; rewrite !H; etransitivity; [apply two_classes; auto|auto].
  Qed.

  Lemma gates_alike j k : (j < x_classes s)%nat -> (k < x_classes s)%nat -> by_edge _ V = true -> g_of _ V j = g_of _ V k.
  Proof.
    intros Ha Hk E. destruct parts as (P1 & P2 & P3 & P4 & P5 & P6 & P7). rewrite (f_by_edge _ _ _ same) in E. rewrite !(f_g _ _ _ same).
    rewrite <- P6 in Ha, Hk. unfold at_class at 1 2. rewrite (P7 E _ (nth_In _ 0 Ha)), (P7 E _ (nth_In _ 0 Hk)); reflexivity.
  Qed.

  Lemma rows_sum k : sum key (fun u => vote_of _ V u k) (neighbours _ V) = plus (column k (x_rows t)).
  Proof. pose proof (f_rows _ _ _ same) as F. unfold column. induction F as [|u row N rows H F IH]; [reflexivity|]. simpl; rewrite H, IH; reflexivity. Qed.
  Lemma rows_length : Z.of_nat (length (neighbours _ V)) = size (x_rows t) 0.
  Proof. clear - same. rewrite size_length. pose proof (f_rows _ _ _ same) as F. induction F as [|u row N rows H F IH]; [reflexivity|]. cbn [length]; lia. Qed.
  Lemma gives_deltas j k : gives (at_class j (x_gate t)) (column j (x_rows t)) (at_class k (x_gate t)) (column k (x_rows t)) = deltas key V j k.
  Proof.
    unfold deltas, delta, column. rewrite !(f_g _ _ _ same). pose proof (f_rows _ _ _ same) as F. induction F as [|u row N rows H F IH]; [reflexivity|].
    cbn [map gives]. rewrite IH, !H. reflexivity.
  Qed.
  Lemma divided_is d : divided s d = divisor key V d.
  Proof. unfold divided, divisor. rewrite (f_pseudo _ _ _ same), (f_steps _ _ _ same). reflexivity. Qed.
  Lemma when_bit b x : when b x = bit_of b * x.
  Proof. clear; unfold when, bit_of; destruct b; lia. Qed.

  (** Theorem 10: the label is the class with the best score of the numbers in the file, the smaller on a tie. *)
  Theorem stacked_label_is : a = stacked_label key V (x_classes s) (p_of _ V) (g_of _ V) (neighbours _ V) (vote_of _ V).
  Proof.
    unfold a, c, count_stacked; cbn [y_label]. unfold stacked_best, stacked_label. destruct (x_classes s) as [|m] eqn:E; [lia|].
    match goal with |- best_from ?f _ _ _ _ = _ => change (best_from f 1 m 0 (f O) = best (stacked key V (p_of _ V) (g_of _ V) (neighbours _ V) (vote_of _ V)) (1 + m)) end.
    rewrite best_from_best; [|cbn [best]; rewrite Z.ltb_irrefl; auto|lia]. apply best_ext; intro k.
    unfold stacked_score, stacked, pseudo_at. rewrite <- divided_is, rows_length, rows_sum, add_up_plus, (f_p _ _ _ same), (f_g _ _ _ same), (f_q _ _ _ same), (f_pseudo _ _ _ same). reflexivity.
  Qed.
  Lemma label_small : (a < x_classes s)%nat.
  Proof. rewrite stacked_label_is. apply best_is_label; auto. Qed.

  Lemma sort_falls l : falling (DescendingSort.sort l).
  Proof.
    assert (S : StronglySorted (fun x y => is_true (Descending.leb x y)) (DescendingSort.sort l)).
    { apply DescendingSort.StronglySorted_sort. intros x y z; unfold is_true, Descending.leb; rewrite !Z.leb_le; lia. }
    induction S as [|x l' S IH F]; simpl; auto. split; auto. intros y I. rewrite Forall_forall in F. specialize (F y I). unfold is_true, Descending.leb in F. apply Z.leb_le; auto.
  Qed.

  (** What the program counts for class j against k. *)
  Record counted_as (j k : nat) (r : stacked_rival) : Prop := {
    r_ahead : y_ahead r = ahead key V j k; r_given : y_given r = given key V j k; r_most : y_most r = most_given key V k;
    r_perm : Permutation (y_sorted r) (deltas key V j k); r_falls : falling (y_sorted r); r_tie : y_tie r = tie k j;
    r_votes : y_votes r = column k (x_rows t)
  }.
  Lemma against_counted j k : counted_as j k (against s t (size (x_rows t) 0) (column j (x_rows t)) j k).
  Proof.
    split; unfold against; cbn [y_ahead y_given y_most y_sorted y_tie y_votes]; auto.
    - unfold ahead. rewrite !(f_p _ _ _ same), (f_slack _ _ _ same). reflexivity.
    - unfold given, doubt_pseudo, doubt_each, degree. rewrite gives_deltas, add_up_plus, !when_bit, rows_length, !add_up_plus.
      unfold deltas. rewrite plus_sum, !(f_g _ _ _ same), !(f_q _ _ _ same), (f_pseudo _ _ _ same), (f_slack _ _ _ same), (f_computed _ _ _ same), (f_steps _ _ _ same), (f_all _ _ _ same).
      rewrite !Z.add_0_l. reflexivity.
    - unfold most_given. rewrite when_bit, (f_g _ _ _ same), (f_slack _ _ _ same), (f_computed _ _ _ same), (f_steps _ _ _ same). reflexivity.
    - rewrite gives_deltas. symmetry; apply DescendingSort.Permuted_sort.
    - apply sort_falls.
  Qed.
  Lemma rival_counted k : (k < x_classes s)%nat -> k <> a -> exists r, In r (y_rivals c) /\ counted_as a k r.
  Proof.
    intros Hk N. unfold c, count_stacked; cbn [y_rivals]. eexists; split.
    - apply in_map, filter_In; split; [apply in_seq; split; [apply Nat.le_0_l|exact Hk]|]. apply negb_true_iff, Nat.eqb_neq. exact N.
    - change (stacked_best s t) with a. apply against_counted.
  Qed.

  Lemma degree_is : y_degree c = degree key V.
  Proof. unfold c, count_stacked, degree; cbn [y_degree]. symmetry; apply rows_length. Qed.
  Lemma most_pos k : 0 <= most_given key V k.
  Proof.
    pose proof file_sensible as F. pose proof (steps_pos _ _ F); pose proof (slack_pos _ _ F); pose proof (g_pos _ _ F k). unfold most_given, bit_of. destruct (computed key V); nia.
  Qed.
  Lemma delta_low j k : forall y, In y (deltas key V j k) -> - most_given key V k <= y.
  Proof.
    intros y I. unfold deltas in I; apply in_map_iff in I; destruct I as [u [<- I]]. pose proof file_sensible as F.
    destruct (votes_ok _ _ F u I) as [B1 B2]. pose proof (B1 j); pose proof (B1 k). pose proof (B1 (S k)). specialize (B2 k (S k) ltac:(lia)).
    pose proof (steps_pos _ _ F); pose proof (slack_pos _ _ F); pose proof (g_pos _ _ F k); pose proof (g_pos _ _ F j).
    unfold delta, most_given, bit_of. assert (g_of key V k * vote_of key V u k <= g_of key V k * st_steps key V) by nia. assert (0 <= g_of key V j * vote_of key V u j) by nia. destruct (computed key V); nia.
  Qed.

  (** One rival, one number of lost neighbours: what is looked at suffices for every division of what is new. *)
  Lemma bears_sound j k r new l m taken i u m' taken' : counted_as j k r ->
    bears s (y_degree c) r new l m taken = true ->
    0 <= i -> 0 <= u -> within (i + u) new -> (by_edge key V = false -> u = 0) ->
    taken' + m' * most_given key V k <= taken + m * most_given key V k ->
    tie k j <= lead_at key V j k l m' i (i + u) taken'.
  Proof.
    intros R H Hi Hu Hn Hb Hm. destruct R as [R1 R2 R3 _ _ R4 _]. pose proof (most_pos k) as MP.
    unfold bears, stacked_lead, divided in H. rewrite R1, R2, R3, R4, degree_is in H. rewrite <- (f_by_edge _ _ _ same), <- (f_pseudo _ _ _ same) in H.
    unfold lead_at. unfold divisor in *. set (M := most_given key V k) in *. set (A := ahead key V j k) in *. set (g := given key V j k) in *. set (d := degree key V) in *.
    rewrite !(f_steps _ _ _ same) in *. clearbody M A g d.
    assert (K : forall n', match new with Some n => if n <=? most_new then new else None | None => None end = Some n' -> new = Some n').
    { intros n' E; destruct new as [n|]; [|discriminate]. destruct (n <=? most_new); congruence. }
    destruct (match new with Some n => if n <=? most_new then new else None | None => None end) as [n|] eqn:En.
    - specialize (K n eq_refl); subst new; simpl in Hn.
      destruct (pseudo key V =? 0).
      + apply Z.leb_le in H. assert ((i + u) * M <= n * M) by nia. lia.
      + apply andb_prop in H; destruct H as [H H3]; apply andb_prop in H; destruct H as [H1 H2]. apply Z.leb_le in H1, H2.
        set (al := A * vote_steps - M). assert (E1 : forall x, A * (pseudo key V + vote_steps * (d - l + x)) = A * (pseudo key V + vote_steps * (d - l + 0)) + x * (al + M)) by (intro x; unfold al; ring).
        rewrite (E1 i). rewrite (E1 n) in H2. set (f := A * (pseudo key V + vote_steps * (d - l + 0))) in *. clearbody f al. clear E1.
        destruct (by_edge key V) eqn:Eb.
        * simpl in H3; apply Z.leb_le in H3.
          destruct (Z.le_gt_cases al (- M)) as [Q|Q].
          -- assert (n * al <= i * al - u * M) by nia. lia.
          -- assert (- n * M <= i * al - u * M) by nia. lia.
        * rewrite (Hb eq_refl) in *. destruct (Z.le_gt_cases 0 al); [assert (0 <= i * al) by nia|assert (n * al <= i * al) by nia]; lia.
    - apply andb_prop in H; destruct H as [H1 H2]. apply Z.leb_le in H1. destruct (pseudo key V =? 0).
      + apply Z.leb_le in H2. assert (M = 0) by lia. subst M. lia.
      + apply andb_prop in H2; destruct H2 as [H2 H3]. apply Z.leb_le in H2.
        set (al := A * vote_steps - M) in *. assert (0 <= al) by (unfold al; lia).
        replace (A * (pseudo key V + vote_steps * (d - l + i))) with (A * (pseudo key V + vote_steps * (d - l + 0)) + i * (al + M)) by (unfold al; ring).
        set (f := A * (pseudo key V + vote_steps * (d - l + 0))) in *. clearbody f al. assert (0 <= i * al) by nia.
        destruct (by_edge key V) eqn:Eb; [simpl in H3; apply Z.leb_le in H3; assert (M = 0) by lia; subst M|rewrite (Hb eq_refl) in *]; lia.
  Qed.

  (** [take] and [each_lost] look at all sums of the largest. *)
  Lemma take_spec D : forall n m x, exists j, (j <= length D)%nat /\ take n D m x = (m + Z.of_nat j, x + plus (firstn j D), skipn j D)
    /\ (j = length D \/ match n with Some n' => n' <= Z.of_nat j | None => False end).
  Proof.
    induction D as [|y D IH]; intros n m x.
    - exists O; simpl. split; [lia|]. split; [do 2 f_equal; lia|]. auto.
    - destruct n as [n|].
      + cbn [take]. destruct (Z.leb_spec n 0).
        * exists O; simpl. split; [lia|]. split; [f_equal; f_equal; lia|]. right; lia.
        * destruct (IH (Some (n - 1)) (m + 1) (x + y)) as [j [J1 [J2 J3]]]. exists (S j). split; [simpl; lia|]. split; [rewrite J2; cbn [firstn plus skipn]; f_equal; f_equal; lia|].
          destruct J3 as [->|J3]; [left; auto|right; lia].
      + cbn [take]. destruct (IH None (m + 1) (x + y)) as [j [J1 [J2 J3]]]. exists (S j). split; [simpl; lia|]. split; [rewrite J2; cbn [firstn plus skipn]; f_equal; f_equal; lia|].
        destruct J3 as [->|[]]; left; auto.
  Qed.
  Lemma each_lost_spec ok fuel : forall lost l m x rest, each_lost ok fuel lost l m x rest = true ->
    forall n, (n <= length fuel)%nat -> (match lost with Some q => n = O \/ l + Z.of_nat n <= q | None => True end) ->
      ok (l + Z.of_nat n) (m - Z.max 0 (Z.of_nat n - Z.of_nat (length rest))) (x + plus (firstn n rest)) = true.
  Proof.
    assert (Z0 : forall l m x (rest : list Z), ok l m x = true ->
      ok (l + Z.of_nat 0) (m - Z.max 0 (Z.of_nat 0 - Z.of_nat (length rest))) (x + plus (firstn 0 rest)) = true).
    { intros l m x rest H. change (plus (firstn 0 rest)) with 0. replace (l + Z.of_nat 0) with l by lia.
      replace (m - Z.max 0 (Z.of_nat 0 - Z.of_nat (length rest))) with m by lia. replace (x + 0) with x by lia. exact H. }
    induction fuel as [|y fuel IH]; intros lost l m x rest H n L Q; cbn [each_lost] in H; apply andb_prop in H; destruct H as [H1 H2].
    - simpl in L; replace n with O by lia. auto.
    - destruct n as [|n]; [auto|].
      assert (E : (match lost with Some n => n <=? l | None => false end) = false) by (destruct lost; auto; destruct Q as [Q|Q]; [discriminate|]; apply Z.leb_gt; lia).
      rewrite E in H2. simpl in L.
      assert (Q' : match lost with Some q => n = O \/ l + 1 + Z.of_nat n <= q | None => True end) by (destruct lost; auto; right; destruct Q as [Q|Q]; [discriminate|lia]).
      destruct rest as [|w rest].
      + specialize (IH lost (l + 1) (m - 1) x [] H2 n ltac:(lia) Q'). rewrite firstn_nil in *. cbn [length plus] in *.
        replace (l + Z.of_nat (S n)) with (l + 1 + Z.of_nat n) by lia. replace (m - Z.max 0 (Z.of_nat (S n) - Z.of_nat 0)) with (m - 1 - Z.max 0 (Z.of_nat n - Z.of_nat 0)) by lia. auto.
      + specialize (IH lost (l + 1) m (x + w) rest H2 n ltac:(lia) Q'). cbn [length firstn plus].
        replace (l + Z.of_nat (S n)) with (l + 1 + Z.of_nat n) by lia. replace (Z.of_nat (S n) - Z.of_nat (S (length rest))) with (Z.of_nat n - Z.of_nat (length rest)) by lia.
        replace (x + (w + plus (firstn n rest))) with (x + w + plus (firstn n rest)) by lia. auto.
  Qed.

  Lemma looked_at ok D alt lost l : (let '(m, x, rest) := take alt D 0 0 in each_lost ok D lost 0 m x rest) = true ->
    0 <= l <= Z.of_nat (length D) -> within l lost ->
    exists m, ok l m (top (Z.to_nat (l + m)) D) = true /\ 0 <= m /\ l + m <= Z.of_nat (length D)
      /\ forall m', within m' alt -> l + m' <= Z.of_nat (length D) -> m' <= m.
  Proof.
    intros H Hl Hw. destruct (take_spec D alt 0 0) as [j [J1 [J2 J3]]]. rewrite J2 in H.
    pose proof (each_lost_spec ok D lost 0 (0 + Z.of_nat j) (0 + plus (firstn j D)) (skipn j D) H (Z.to_nat l) ltac:(lia)) as E.
    rewrite skipn_length, Z2Nat.id in E by lia.
    specialize (E ltac:(destruct lost; simpl in *; auto; right; lia)). rewrite !Z.add_0_l in E.
    exists (Z.of_nat j - Z.max 0 (l - Z.of_nat (length D - j))). split; [|split; [lia|split; [lia|]]].
    - replace (top (Z.to_nat (l + (Z.of_nat j - Z.max 0 (l - Z.of_nat (length D - j))))) D) with (plus (firstn j D) + plus (firstn (Z.to_nat l) (skipn j D))); [exact E|].
      unfold top. rewrite <- plus_app. f_equal.
      destruct (Nat.le_gt_cases (Z.to_nat l) (length D - j)) as [Q|Q].
      + replace (Z.to_nat (l + (Z.of_nat j - Z.max 0 (l - Z.of_nat (length D - j))))) with (j + Z.to_nat l)%nat by lia.
        transitivity (firstn (j + Z.to_nat l) (firstn j D ++ skipn j D)); [|rewrite firstn_skipn; auto].
        rewrite firstn_app, firstn_length. replace (Nat.min j (length D)) with j by lia. rewrite (firstn_all2 (n := (j + Z.to_nat l)%nat)) by (rewrite firstn_length; lia).
        f_equal. f_equal. lia.
      + replace (Z.to_nat (l + (Z.of_nat j - Z.max 0 (l - Z.of_nat (length D - j))))) with (length D) by lia. rewrite firstn_all.
        rewrite (firstn_all2 (n := Z.to_nat l)) by (rewrite skipn_length; lia). apply firstn_skipn.
    - intros m' Hm' Hl'. destruct J3 as [->|J3]; [lia|]. destruct alt as [n|]; [|contradiction]. simpl in Hm'. lia.
  Qed.

  (** What may come, go and change; with [together], new and lost ones within one number. *)
  Definition within_numbers (together : bool) (new lost alt : lim) (n r m : Z) : Prop :=
    within r lost /\ within m alt /\ within n new /\ (together = true -> within (n + r) new).

  (** The lead of j over one class k, whatever an attack within the numbers does. *)
  Lemma lead_stays_sound together new lost alt j k r (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (new_ rem_ alt_ turn_ : list key) :
    counted_as j k r -> lead_stays s (y_degree c) together new lost alt r = true -> (j < x_classes s)%nat -> (k < x_classes s)%nat -> k <> j ->
    stacked_reading key V p g -> stacked_changes key V N' b j new_ rem_ alt_ turn_ ->
    within_numbers together new lost alt (Z.of_nat (length (new_ ++ turn_))) (Z.of_nat (length rem_)) (Z.of_nat (length alt_)) ->
    stacked key V p g N' b k + tie k j <= stacked key V p g N' b j.
  Proof.
    intros R H Hj Hk N read ch [W1 [W2 [W3 W4]]].
    destruct (stacked_lead_sound key key_eq V N' b p g j k new_ rem_ alt_ turn_ file_sensible read ch N (gates_alike j k Hj Hk)) as (l & m & u & i & L1 & L2 & L3 & L4 & L5 & L6 & L7 & L8 & L9 & LD).
    specialize (LD (y_sorted r) (r_perm _ _ _ R) (r_falls _ _ _ R)).
    assert (LEN : Z.of_nat (length (y_sorted r)) = degree key V) by (rewrite (Permutation_length (r_perm _ _ _ R)); unfold deltas, degree; rewrite map_length; auto).
    pose proof (looked_at _ (y_sorted r) alt lost l H ltac:(lia) ltac:(destruct lost; simpl in *; auto; lia)) as [m2 [E [M1 [M2 M3]]]].
    specialize (M3 m ltac:(destruct alt; simpl in *; auto; lia) ltac:(lia)).
    match type of LD with lead_at _ _ _ _ _ _ ?i (?i + ?u) _ <= _ => assert (T : tie k j <= lead_at key V j k l m i (i + u) (top (Z.to_nat (l + m)) (y_sorted r))) end.
    { eapply bears_sound; [exact R|exact E|auto|auto| |auto|].
      - unfold new_at. destruct together; [|destruct new; simpl in *; auto; lia]. specialize (W4 eq_refl). destruct new; simpl in *; auto; lia.
      - pose proof (top_more (y_sorted r) (Z.to_nat (l + m)) (Z.to_nat (l + m2)) (most_given key V k)) as TM.
        assert (TM' := TM ltac:(intros y Iy; apply (delta_low j), (Permutation_in y (r_perm _ _ _ R)); auto) ltac:(lia) ltac:(lia)). rewrite !Z2Nat.id in TM' by lia. lia. }
    lia.
  Qed.

  (** Theorem 10: where the checker's test passes, the label stays with so many new, lost, altered and turned neighbours. *)
  Theorem stacked_test_sound together new lost alt (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (new_ rem_ alt_ turn_ : list key) :
    stacked_test s c together new lost alt = true ->
    stacked_reading key V p g -> stacked_changes key V N' b a new_ rem_ alt_ turn_ ->
    within_numbers together new lost alt (Z.of_nat (length (new_ ++ turn_))) (Z.of_nat (length rem_)) (Z.of_nat (length alt_)) ->
    stacked_label key V (x_classes s) p g N' b = a.
  Proof.
    intros H read ch W. unfold stacked_label. apply label_is_best; split; [apply label_small|]. intros k Hk N.
    destruct (rival_counted k Hk N) as [r [I R]].
    unfold stacked_test in H; apply andb_prop in H; destruct H as [_ H]. rewrite forallb_forall in H. specialize (H r I).
    eapply lead_stays_sound; eauto. apply label_small.
  Qed.

  Lemma best_part_more D : forall n x, x <= best_part n D x.
  Proof. clear. induction D as [|y D IH]; intros n x; cbn [best_part]; [lia|]. destruct (n <=? 0); [lia|]. destruct (Z.leb_spec y 0); [lia|]. specialize (IH (n - 1) (x + y)); lia. Qed.
  Lemma best_part_top D : falling D -> forall n x j, Z.of_nat j <= n -> x + top j D <= best_part n D x.
  Proof.
    clear. unfold top. induction D as [|y D IH]; intros F n x j J; [rewrite firstn_nil; simpl; lia|].
    destruct j as [|j]; [pose proof (best_part_more (y :: D) n x); simpl firstn; cbn [plus]; lia|].
    destruct F as [F1 F2]. cbn [best_part firstn plus]. destruct (Z.leb_spec n 0); [lia|]. destruct (Z.leb_spec y 0).
    - assert (Q : forall l, (forall z, In z l -> z <= 0) -> plus l <= 0) by (clear; induction l as [|z l IH]; intro H; simpl; [lia|]; pose proof (H z (or_introl eq_refl)); specialize (IH (fun w I => H w (or_intror I))); lia).
      assert (plus (firstn j D) <= 0); [|lia]. apply Q; intros z I. assert (In z D) by (rewrite <- (firstn_skipn j D); apply in_app_iff; auto). specialize (F1 z H1); lia.
    - specialize (IH F2 (n - 1) (x + y) j ltac:(lia)). lia.
  Qed.

  Lemma falling_map c0 D : falling D -> falling (map (Z.add c0) D).
  Proof.
    clear. induction D as [|y D IH]; simpl; auto. intros [F1 F2]; split; auto.
    intros z I; apply in_map_iff in I; destruct I as [w [<- I]]. specialize (F1 w I); lia.
  Qed.
  Lemma top_map c0 D : forall j, (j <= length D)%nat -> top j (map (Z.add c0) D) = top j D + Z.of_nat j * c0.
  Proof.
    clear. unfold top. induction D as [|y D IH]; intros [|j] J; simpl length in J; try (simpl; lia).
    cbn [map firstn plus]. rewrite IH by lia. lia.
  Qed.

  (** Theorem 10, the radius: x changes of whatever kind. *)
  Theorem any_stacked_sound x (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (new_ rem_ alt_ turn_ : list key) :
    any_stacked_test s c x = true ->
    stacked_reading key V p g -> stacked_changes key V N' b a new_ rem_ alt_ turn_ ->
    Z.of_nat (length (new_ ++ turn_)) + Z.of_nat (length rem_) + Z.of_nat (length alt_) <= x ->
    stacked_label key V (x_classes s) p g N' b = a.
  Proof.
    intros H read ch W. unfold stacked_label. apply label_is_best; split; [apply label_small|]. intros k Hk N.
    destruct (rival_counted k Hk N) as [r [I R]].
    unfold any_stacked_test in H; apply andb_prop in H; destruct H as [_ H]. rewrite forallb_forall in H. specialize (H r I).
    destruct (stacked_lead_sound key key_eq V N' b p g a k new_ rem_ alt_ turn_ file_sensible read ch N (gates_alike a k label_small Hk)) as (l & m & i & u & L1 & L2 & L3 & L4 & L5 & L6 & L7 & L8 & L9 & LD).
    specialize (LD (y_sorted r) (r_perm _ _ _ R) (r_falls _ _ _ R)).
    assert (LEN : Z.of_nat (length (y_sorted r)) = degree key V) by (rewrite (Permutation_length (r_perm _ _ _ R)); unfold deltas, degree; rewrite map_length; auto).
    cbv zeta in H. apply Z.leb_le in H.
    set (fresh := cost_of_new s r) in *. set (touched := cost_of_touched s r) in *.
    pose proof (best_part_top _ (falling_map (touched - fresh) _ (r_falls _ _ _ R)) x 0 (Z.to_nat (l + m)) ltac:(lia)) as BP.
    rewrite top_map in BP by lia. rewrite Z2Nat.id in BP by lia.
    set (B := by_divisor s r) in *.
    assert (DIV : ahead key V a k * divisor key V (degree key V - l + i) = ahead key V a k * divisor key V (degree key V) + B * (i - l)).
    { unfold B, by_divisor, divisor. rewrite (r_ahead _ _ _ R), <- (f_pseudo _ _ _ same), (f_steps _ _ _ same). destruct (pseudo key V =? 0); ring. }
    pose proof (most_pos k) as MP. unfold lead_at in LD. rewrite DIV in LD.
    rewrite (r_ahead _ _ _ R), (r_given _ _ _ R), (r_tie _ _ _ R), degree_is, divided_is in H.
    assert (C1 : most_given key V k - B <= fresh) by (unfold fresh, cost_of_new; rewrite (r_most _ _ _ R); apply Z.le_max_l).
    assert (C2 : 0 <= fresh) by (unfold fresh, cost_of_new; rewrite (r_most _ _ _ R); destruct (x_by_edge s); lia).
    assert (C3 : u * most_given key V k <= u * fresh).
    { destruct (by_edge key V) eqn:E; [|rewrite (L9 eq_refl); lia].
      assert (most_given key V k <= fresh); [|nia]. unfold fresh, cost_of_new. rewrite (r_most _ _ _ R), <- (f_by_edge _ _ _ same), E. apply Z.le_max_r. }
    assert (C4 : most_given key V k <= touched) by (unfold touched, cost_of_touched; rewrite (r_most _ _ _ R); apply Z.le_max_l).
    assert (C5 : B <= touched) by (unfold touched, cost_of_touched; apply Z.le_max_r).
    clearbody fresh touched B. set (M := most_given key V k) in *. clearbody M.
    assert (T1 : 0 <= (x - l - m - i - u) * fresh) by nia.
    assert (T2 : 0 <= i * (fresh - M + B)) by nia.
    assert (T3 : 0 <= l * (touched - B)) by nia.
    assert (T4 : 0 <= m * (touched - M)) by nia.
    nia.
  Qed.
End Sound.

(** A stated radius passes the test, in a mean, too, where it may be smaller than the largest. *)
Lemma stated_radius_passes s c x : right_stacked_radius s c x = true -> 0 <= x ->
  (if x_second s =? 0 then any_stacked_test s c x else second_test s c (Some 0) (Some (2 * x))) = true.
Proof.
  intros H X. unfold right_stacked_radius, is_largest, is_proved in H; cbv zeta in H. destruct (Z.ltb_spec x 0); [lia|].
  destruct (x_pseudo s =? 0); apply andb_prop in H; destruct H as [H H2]; [apply andb_prop in H; apply H|exact H2].
Qed.
