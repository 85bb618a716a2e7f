(** Contests: what the checker accepts is what no play changes (docs/contest.md). Contest.v has the definitions. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker Broken Contest.
Import ListNotations.
Open Scope Z_scope.

(** ---- Proofs ---- *)

(** The lead of weighted classes over one that gets [xk], of values that a function gives. *)
Fixpoint lead_from (i : nat) (w : list Z) (x : nat -> Z) (xk : Z) : Z :=
  match w with [] => 0 | a :: w' => a * (x i - xk) + lead_from (S i) w' x xk end.
(** The lead over class k. *)
Definition lead (w : list Z) (k : nat) (x : nat -> Z) : Z := lead_from 0 w x (x k).

Lemma lead_shift w : forall i j x y xk, (forall n, x (i + n)%nat = y (j + n)%nat) -> lead_from i w x xk = lead_from j w y xk.
Proof.
  induction w as [|a w IH]; intros i j x y xk E; [reflexivity|]. cbn [lead_from].
  rewrite (IH (S i) (S j) x y). { specialize (E 0%nat); rewrite !Nat.add_0_r in E; rewrite E; reflexivity. }
  intro n. specialize (E (S n)); rewrite !Nat.add_succ_r in E; exact E.
Qed.
Lemma lead_same w x y k : (forall c, x c = y c) -> lead w k x = lead w k y.
Proof. intro E; unfold lead; rewrite (E k); apply lead_shift; intro; apply E. Qed.
Lemma lead_plus w : forall i x y xk yk, lead_from i w (fun c => x c + y c) (xk + yk) = lead_from i w x xk + lead_from i w y yk.
Proof. induction w as [|a w IH]; intros; [reflexivity|]; cbn [lead_from]; rewrite IH; ring. Qed.
Lemma lead_line w : forall i (D s t : Z) v vk, lead_from i w (fun c => D * v c + s) (D * vk + t) = D * lead_from i w v vk + size w * (s - t).
Proof. induction w as [|a w IH]; intros; [cbn; ring|]; cbn [lead_from size fold_right]; rewrite IH; unfold size; ring. Qed.
Lemma lead_least w : (forall a, In a w -> 0 <= a) -> forall i x y xk yk, (forall c, y c <= x c) -> xk <= yk -> lead_from i w y yk <= lead_from i w x xk.
Proof.
  induction w as [|a w IH]; intros P i x y xk yk L K; [reflexivity|]. cbn [lead_from].
  assert (0 <= a) by (apply P; left; reflexivity).
  assert (lead_from (S i) w y yk <= lead_from (S i) w x xk) by (apply IH; auto; intros; apply P; right; auto).
  specialize (L i). nia.
Qed.
Lemma worth_is w : forall v k, worth w v k = lead_from 0 w (at_class v) k.
Proof.
  induction w as [|a w IH]; intros v k; [reflexivity|]. destruct v as [|x v]; cbn [worth lead_from]; rewrite IH; f_equal; apply lead_shift;
    intro n; unfold at_class; simpl; destruct n; reflexivity.
Qed.
Lemma worth_of_is w k v : worth_of w k v = lead w k (at_class v).
Proof. apply worth_is. Qed.
Lemma doubts_is w : forall d k, doubts w d k = - lead_from 0 w (fun c => - at_class d c) k.
Proof.
  induction w as [|a w IH]; intros d k; [reflexivity|].
  destruct d as [|x d]; cbn [doubts lead_from]; rewrite IH; [rewrite (lead_shift w 0 1 (fun c => - at_class [] c) (fun c => - at_class [] c))|
    rewrite (lead_shift w 0 1 (fun c => - at_class d c) (fun c => - at_class (x :: d) c))]; unfold at_class; simpl; try ring;
    intro n; destruct n; reflexivity.
Qed.
Lemma size_positive w : (forall a, In a w -> 0 <= a) -> 0 <= size w.
Proof. induction w as [|a w IH]; intro P; [reflexivity|]; cbn [size fold_right]. assert (0 <= a) by (apply P; left; auto).
  assert (0 <= size w) by (apply IH; intros; apply P; right; auto). unfold size in *; lia. Qed.

(** ---- One unit ---- *)

Section Lead.
  Variables (w : list Z) (k : nat) (D : Z).
  Hypothesis weights : forall a, In a w -> 0 <= a.
  Hypothesis parts : 0 < D.

  Lemma effect_lead e x : of_effect D e x -> D * contributes w k e <= lead w k x.
  Proof.
    intros [extra [off [E [O X]]]]. unfold contributes, lead. rewrite worth_of_is; unfold lead.
    pose proof (lead_line w 0 D (- (D * e_doubt e)) (D * at_class (e_cap e) k + D * e_doubt e) (at_class (e_adds e)) (at_class (e_adds e) k)) as L.
    assert (B : lead_from 0 w (fun c => D * at_class (e_adds e) c + - (D * e_doubt e)) (D * at_class (e_adds e) k + (D * at_class (e_cap e) k + D * e_doubt e))
                <= lead_from 0 w x (x k)).
    { apply lead_least; auto. { intro c; rewrite X; specialize (E c); specialize (O c); lia. } rewrite X; specialize (E k); specialize (O k); lia. }
    rewrite L in B. eapply Z.le_trans; [|exact B]. apply Z.eq_le_incl; ring.
  Qed.
  Lemma unit_lead u x : of_unit D u x -> D * stands w k u <= lead w k x.
  Proof.
    intros [off [O X]]. unfold stands. rewrite worth_of_is; unfold lead.
    pose proof (lead_line w 0 D (- (D * u_doubt u)) (D * u_doubt u) (at_class (u_adds u)) (at_class (u_adds u) k)) as L.
    assert (B : lead_from 0 w (fun c => D * at_class (u_adds u) c + - (D * u_doubt u)) (D * at_class (u_adds u) k + D * u_doubt u) <= lead_from 0 w x (x k)).
    { apply lead_least; auto. { intro c; rewrite X; specialize (O c); lia. } rewrite X; specialize (O k); lia. }
    rewrite L in B. eapply Z.le_trans; [|exact B]. apply Z.eq_le_incl; ring.
  Qed.

  Lemma most_positive l : 0 <= most l.
  Proof. induction l as [|a l IH]; [reflexivity|]. change (most (a :: l)) with (Z.max a (most l)). lia. Qed.
  Lemma most_is l x : In x l -> x <= most l.
  Proof. induction l as [|a l IH]; intros I; [contradiction|]. change (most (a :: l)) with (Z.max a (most l)). destruct I as [->|I]; [lia|]. specialize (IH I). lia. Qed.
  Lemma free_positive q p u : 0 <= free_loss w k q p u.
  Proof. unfold free_loss; destruct (p_free p); [destruct (is_over q u)|]; lia. Qed.

  Variable price : nat -> Z.
  (** What a spent move costs. *)
  Definition cost (d : done) : Z := match fst d with Some m => price m | None => 0 end.

  Lemma fate_lead q p u d : fate D q p u (fst d) (snd d) ->
    D * (stands w k u - free_loss w k q p u - beyond_price w k q price p u - cost d) <= lead w k (snd d).
  Proof.
    unfold cost. pose proof (free_positive q p u) as F.
    assert (B : 0 <= beyond_price w k q price p u) by apply most_positive.
    destruct (fst d) as [m|]; intro H; simpl in H.
    - destruct H as [e [I H]]. apply effect_lead in H. eapply Z.le_trans; [|exact H]. apply Z.mul_le_mono_nonneg_l; [lia|].
      assert (M : stands w k u - contributes w k e - free_loss w k q p u - price m <= beyond_price w k q price p u).
      { apply most_is. change (stands w k u - contributes w k e - free_loss w k q p u - price m)
          with ((fun h => stands w k u - contributes w k (snd h) - free_loss w k q p u - price (fst h)) (m, e)). apply in_map; exact I. }
      lia.
    - destruct H as [H|[O [e [E H]]]].
      + apply unit_lead in H. eapply Z.le_trans; [|exact H]. apply Z.mul_le_mono_nonneg_l; lia.
      + apply effect_lead in H. eapply Z.le_trans; [|exact H]. apply Z.mul_le_mono_nonneg_l; [lia|].
        assert (stands w k u - contributes w k e <= free_loss w k q p u) by (unfold free_loss; rewrite E, O; lia). lia.
  Qed.

  (** Sums over what stands. *)
  Definition leads_of (l : list done) : Z := fold_right (fun d n => lead w k (snd d) + n) 0 l.
  (** What the moves cost that were spent. *)
  Definition costs_of (l : list done) : Z := fold_right (fun d n => cost d + n) 0 l.
  Lemma leads_cons d l : leads_of (d :: l) = lead w k (snd d) + leads_of l.
  Proof. reflexivity. Qed.
  Lemma costs_cons d l : costs_of (d :: l) = cost d + costs_of l.
  Proof. reflexivity. Qed.
  Lemma leads_app a b : leads_of (a ++ b) = leads_of a + leads_of b.
  Proof. induction a as [|d a IH]; [reflexivity|]. change ((d :: a) ++ b) with (d :: (a ++ b)). rewrite !leads_cons, IH; ring. Qed.
  Lemma costs_app a b : costs_of (a ++ b) = costs_of a + costs_of b.
  Proof. induction a as [|d a IH]; [reflexivity|]. change ((d :: a) ++ b) with (d :: (a ++ b)). rewrite !costs_cons, IH; ring. Qed.
  Lemma sum_lead l : lead w k (sum_at l) = leads_of l.
  Proof.
    induction l as [|d l IH].
    - cbn. unfold lead, sum_at; cbn. assert (Z0 : forall i, lead_from i w (fun _ => 0) 0 = 0).
      { clear. induction w as [|a w' IH]; intro i; [reflexivity|]; cbn; rewrite IH; ring. } apply Z0.
    - rewrite leads_cons, <- IH. unfold lead. rewrite <- lead_plus. reflexivity.
  Qed.

  Lemma row_lead q p u l : fates D q p u l ->
    D * (u_count u * (stands w k u - free_loss w k q p u - beyond_price w k q price p u) - costs_of l) <= leads_of l.
  Proof.
    intros [N F]. rewrite <- N. clear N. induction F as [|d l H F IH]; [cbn; lia|].
    apply fate_lead in H. rewrite leads_cons, costs_cons. cbn [length]. rewrite Nat2Z.inj_succ.
    set (z := stands w k u - free_loss w k q p u - beyond_price w k q price p u) in *.
    replace (D * (Z.succ (Z.of_nat (length l)) * z - (cost d + costs_of l)))
      with (D * (z - cost d) + D * (Z.of_nat (length l) * z - costs_of l)) by ring. lia.
  Qed.

  (** What all units add at worst, before moves are paid for. *)
  Definition units_left (q : lim) (rs : list (pool * unit_kind)) : Z :=
    fold_right (fun r n => u_count (snd r) * (stands w k (snd r) - free_loss w k q (fst r) (snd r) - beyond_price w k q price (fst r) (snd r)) + n) 0 rs.
  Lemma rows_lead q rs hit : Forall2 (fun r l => fates D q (fst r) (snd r) l) rs hit ->
    D * (units_left q rs - costs_of (concat hit)) <= leads_of (concat hit).
  Proof.
    induction 1 as [|r l rs hit H F IH]; [cbn; lia|]. cbn [concat]. rewrite leads_app, costs_app. apply row_lead in H.
    cbn [units_left fold_right]. unfold units_left in IH.
    match goal with |- D * (?a + ?b - (?c + ?e)) <= _ => replace (D * (a + b - (c + e))) with (D * (a - c) + D * (b - e)) by ring end. lia.
  Qed.
  Lemma new_lead t new : forallb (fun h => - contributes w k (snd h) <=? price (fst h)) (d_new t) = true -> Forall (brought D t) new ->
    - D * costs_of new <= leads_of new.
  Proof.
    intros P F. induction F as [|d new H F IH]; [cbn; lia|]. rewrite leads_cons, costs_cons.
    unfold brought in H; unfold cost. destruct (fst d) as [m|]; [|contradiction]. destruct H as [e [I H]]. apply effect_lead in H.
    rewrite forallb_forall in P. specialize (P _ I). apply Z.leb_le in P. cbn [fst snd] in P. nia.
  Qed.

  Lemma off_lead d off : (forall c, - (D * at_class d c) <= off c <= D * at_class d c) -> - (D * doubts w d (at_class d k)) <= lead w k off.
  Proof.
    intro O. rewrite doubts_is. unfold lead.
    pose proof (lead_line w 0 D 0 0 (fun c => - at_class d c) (at_class d k)) as L.
    assert (B : lead_from 0 w (fun c => D * - at_class d c + 0) (D * at_class d k + 0) <= lead_from 0 w off (off k)).
    { apply lead_least; auto. { intro c; specialize (O c); lia. } specialize (O k); lia. }
    rewrite L in B. eapply Z.le_trans; [|exact B]. apply Z.eq_le_incl; ring.
  Qed.
End Lead.

(** ---- What moves cost ---- *)

Lemma times_cons m d l : times m (d :: l) = (if is_spent m d then 1 else 0) + times m l.
Proof. unfold times; cbn [filter]; destruct (is_spent m d); [cbn [length]; rewrite Nat2Z.inj_succ|]; lia. Qed.
Lemma times_app m a b : times m (a ++ b) = times m a + times m b.
Proof. unfold times; rewrite filter_app, app_length, Nat2Z.inj_add; reflexivity. Qed.

Lemma costs_are_paid lims : forall prices total l, paid lims prices = Some total ->
  (forall moves n, In (moves, n) lims -> within (times moves l) n) -> costs_of (price_of lims prices) l <= total.
Proof.
  induction lims as [|[moves n] lims IH]; intros prices total l P W.
  - destruct prices; [|discriminate]. injection P as <-. clear W. induction l as [|d l IH]; [reflexivity|].
    rewrite costs_cons. unfold cost. destruct (fst d); cbn [price_of] in *; unfold price_of in *; lia.
  - destruct prices as [|y prices]; [discriminate|]. cbn [paid] in P. destruct (paid lims prices) as [rest|] eqn:R; [|discriminate].
    assert (S0 : costs_of (price_of ((moves, n) :: lims) (y :: prices)) l = y * times moves l + costs_of (price_of lims prices) l).
    { clear. induction l as [|d l IH]; [cbn; unfold times; cbn; ring|]. rewrite !costs_cons, IH, times_cons.
      unfold cost, is_spent. destruct (fst d) as [m|]; [|ring]. cbn [price_of]. destruct (existsb (Nat.eqb m) moves); ring. }
    rewrite S0. specialize (IH prices rest l R (fun ms x I => W ms x (or_intror I))).
    assert (T : 0 <= times moves l) by (unfold times; lia). specialize (W moves n (or_introl eq_refl)).
    destruct n as [a|].
    + destruct (Z.leb_spec 0 y); [|discriminate]. injection P as <-. cbn [within] in W. nia.
    + destruct (Z.eqb_spec y 0); [|discriminate]. injection P as <-. subst y. lia.
Qed.

(** ---- The inequality ---- *)

Lemma sized_is C v : sized C v = true -> length v = C.
Proof. apply Nat.eqb_eq. Qed.
Lemma nothing_there v c : (length v <= c)%nat -> at_class v c = 0.
Proof. apply nth_overflow. Qed.
Lemma positive_is v : positive v = true -> forall a, In a v -> 0 <= a.
Proof. unfold positive; rewrite forallb_forall; intros P a I; specialize (P a I); apply Z.leb_le in P; exact P. Qed.

(** What all units add to a class. *)
Definition units_add (rs : list (pool * unit_kind)) (c : nat) : Z := fold_right (fun r n => u_count (snd r) * at_class (u_adds (snd r)) c + n) 0 rs.

Section Statement.
  Variables (C : nat) (t : decision).
  Hypothesis form : sound_form C t = true.

  Lemma scores_add_up c : at_class (d_scores t) c = at_class (d_fixed t) c + units_add (rows t) c.
  Proof.
    unfold sound_form in form. repeat rewrite andb_true_iff in form. destruct form as [[[[[[[[[S F] _] _] A] _] _] U] _] _].
    destruct (Nat.lt_ge_cases c C) as [L|G].
    - rewrite forallb_forall in A. specialize (A c). apply Z.eqb_eq. apply A. apply in_seq; lia.
    - apply sized_is in S, F. rewrite !nothing_there by lia. assert (H : units_add (rows t) c = 0); [|lia].
      clear -U G. induction (rows t) as [|r rs IH]; [reflexivity|]. cbn [forallb] in U. apply andb_true_iff in U as [U1 U2].
      cbn [units_add fold_right]. unfold units_add in IH. rewrite IH by auto. unfold sound_unit in U1. repeat rewrite andb_true_iff in U1.
      destruct U1 as [[S _] _]. apply sized_is in S. rewrite nothing_there by lia. ring.
  Qed.
  Lemma label_is_class : (d_label t < C)%nat.
  Proof.
    unfold sound_form in form. repeat rewrite andb_true_iff in form. destruct form as [[[[[[[[[_ _] _] _] _] L] _] _] _] _].
    apply Nat.ltb_lt; exact L.
  Qed.

  (** Prices that bear show that no play takes more from the lead than it has. *)
  Theorem bears_sound w k give allowed prices D hit new off :
    (forall a, In a w -> 0 <= a) -> 0 < D -> bears t w k give allowed prices = true -> play D t allowed hit new off ->
    - (D * give) <= lead w k (score D t hit new off).
  Proof.
    intros P Dp B Y. unfold bears in B. destruct (paid (limits allowed) prices) as [total|] eqn:T; [|discriminate].
    apply andb_true_iff in B as [N B]. apply Z.leb_le in B. set (price := price_of (limits allowed) prices) in *.
    pose proof (rows_lead w k D P Dp price (phase allowed) (rows t) hit (y_rows _ _ _ _ _ _ Y)) as R.
    pose proof (new_lead w k D P Dp price t new N (y_new _ _ _ _ _ _ Y)) as M.
    pose proof (off_lead w k D P (d_doubt t) off (y_off _ _ _ _ _ _ Y)) as O.
    pose proof (costs_are_paid (limits allowed) prices total _ T (y_limits _ _ _ _ _ _ Y)) as Q.
    fold price in Q. rewrite costs_app in Q.
    assert (E : lead w k (score D t hit new off) = D * lead w k (at_class (d_fixed t)) + lead w k off + leads_of w k (concat hit ++ new)).
    { rewrite <- sum_lead. unfold lead. set (S := sum_at (concat hit ++ new)). set (fx := at_class (d_fixed t)).
      transitivity (lead_from 0 w (fun c => D * fx c + 0 + off c + S c) (D * fx k + 0 + off k + S k)).
      { unfold score. fold S fx. replace (D * fx k + 0 + off k + S k) with (D * fx k + off k + S k) by ring. apply lead_shift; intro c. fold S fx; cbn [Nat.add]. ring. }
      rewrite (lead_plus w 0 (fun c => D * fx c + 0 + off c) S), (lead_plus w 0 (fun c => D * fx c + 0) off), lead_line. ring. }
    rewrite E, leads_app. clear E.
    assert (S0 : worth_of w k (d_scores t) = lead w k (at_class (d_fixed t)) + lead w k (units_add (rows t))).
    { rewrite worth_of_is. unfold lead. rewrite <- lead_plus, <- scores_add_up. apply lead_shift; intro c; apply scores_add_up. }
    assert (U : units_left w k price (phase allowed) (rows t) = lead w k (units_add (rows t)) - units_take w k (phase allowed) price t).
    { unfold units_take, units_left. clear. induction (rows t) as [|r rs IH].
      - cbn. unfold lead, units_add; cbn. assert (Z0 : forall i, lead_from i w (fun _ => 0) 0 = 0).
        { induction w as [|a w' IH]; intro i; [reflexivity|]; cbn; rewrite IH; ring. } rewrite Z0; ring.
      - cbn [fold_right]. rewrite IH. clear IH.
        assert (X : lead w k (units_add (r :: rs)) = u_count (snd r) * worth_of w k (u_adds (snd r)) + lead w k (units_add rs)).
        { rewrite worth_of_is. unfold lead.
          pose proof (lead_line w 0 (u_count (snd r)) 0 0 (at_class (u_adds (snd r))) (at_class (u_adds (snd r)) k)) as L.
          replace (u_count (snd r) * lead_from 0 w (at_class (u_adds (snd r))) (at_class (u_adds (snd r)) k)) with
            (lead_from 0 w (fun c => u_count (snd r) * at_class (u_adds (snd r)) c + 0) (u_count (snd r) * at_class (u_adds (snd r)) k + 0)) by (rewrite L; ring).
          rewrite <- lead_plus.
          replace (units_add (r :: rs) k) with (u_count (snd r) * at_class (u_adds (snd r)) k + 0 + units_add rs k) by (unfold units_add; cbn [fold_right]; ring).
          apply lead_shift; intro c. unfold units_add; cbn [fold_right Nat.add]. ring. }
        rewrite X. unfold stands. ring. }
    rewrite U in R. rewrite S0 in B. nia.
  Qed.
End Statement.

Lemma only_positive C a : forall b, In b (only C a) -> 0 <= b.
Proof. unfold only; intros b I; apply in_map_iff in I as [c [<- _]]; destruct (c =? a)%nat; lia. Qed.
Lemma only_lead a x xk : forall n i, lead_from i (map (fun c => if Nat.eqb c a then 1 else 0) (seq i n)) x xk
  = if andb (i <=? a)%nat (a <? i + n)%nat then x a - xk else 0.
Proof.
  induction n as [|n IH]; intro i; cbn [seq map lead_from].
  - destruct (Nat.leb_spec i a), (Nat.ltb_spec a (i + 0)); cbn [andb]; lia.
  - rewrite IH. destruct (Nat.eqb_spec i a) as [->|N].
    + destruct (Nat.leb_spec (S a) a), (Nat.leb_spec a a), (Nat.ltb_spec a (a + S n)); cbn [andb]; lia.
    + destruct (Nat.leb_spec (S i) a), (Nat.leb_spec i a), (Nat.ltb_spec a (S i + n)), (Nat.ltb_spec a (i + S n)); cbn [andb]; lia.
Qed.
Lemma only_first a : forall n i k, first_of k (map (fun c => if Nat.eqb c a then 1 else 0) (seq i n))
  = if andb (i <=? a)%nat (andb (a <? i + n)%nat (a <? i + k)%nat) then 1 else 0.
Proof.
  induction n as [|n IH]; intros i k; cbn [seq map].
  - replace (first_of k []) with 0 by (destruct k; reflexivity). destruct (Nat.leb_spec i a), (Nat.ltb_spec a (i + 0)); cbn [andb]; lia.
  - destruct k as [|k]; cbn [first_of].
    + destruct (Nat.leb_spec i a), (Nat.ltb_spec a (i + S n)), (Nat.ltb_spec a (i + 0)); cbn [andb]; lia.
    + rewrite IH. destruct (Nat.eqb_spec i a) as [->|N].
      * destruct (Nat.leb_spec (S a) a), (Nat.leb_spec a a), (Nat.ltb_spec a (a + S n)), (Nat.ltb_spec a (a + S k)); cbn [andb]; lia.
      * destruct (Nat.leb_spec (S i) a), (Nat.leb_spec i a), (Nat.ltb_spec a (S i + n)), (Nat.ltb_spec a (i + S n)), (Nat.ltb_spec a (S i + k)), (Nat.ltb_spec a (i + S k)); cbn [andb]; lia.
Qed.

Lemma parts_positive g D : in_parts g D -> 0 < D.
Proof. unfold in_parts; destruct (whole g); lia. Qed.

(** A target about which "stays" is accepted keeps its label against every play that the budget allows. *)
Theorem stays_sound g C t allowed prices D hit new off :
  stays_ok g C t allowed prices = true -> in_parts g D -> play D t allowed hit new off ->
  forall k, (k < C)%nat -> k <> d_label t -> leads_over g D (score D t hit new off) (d_label t) k.
Proof.
  intros S I Y k L N. unfold stays_ok in S. apply andb_true_iff in S as [S B]. apply andb_true_iff in S as [F _].
  rewrite forallb_forall in B. specialize (B k (proj2 (in_seq _ _ _) (conj (Nat.le_0_l k) L))).
  apply orb_true_iff in B as [B|B]; [apply Nat.eqb_eq in B; contradiction|].
  pose proof (parts_positive g D I) as Dp. pose proof (label_is_class C t F) as A.
  pose proof (bears_sound C t F _ _ _ _ _ D hit new off (only_positive C (d_label t)) Dp B Y) as H.
  unfold lead, only in H. rewrite only_lead in H.
  assert (T : tie g (map (fun c => if (c =? d_label t)%nat then 1 else 0) (seq 0 C)) k = if (d_label t <? k)%nat then 1 else 0).
  { unfold tie. rewrite only_first. cbn [Nat.add]. destruct (Nat.leb_spec 0 (d_label t)), (Nat.ltb_spec (d_label t) C), (Nat.ltb_spec (d_label t) k), (whole g); cbn; lia. }
  fold (only C (d_label t)) in T. unfold only in T. rewrite T in H. cbn [Nat.add] in H.
  destruct (Nat.leb_spec 0 (d_label t)), (Nat.ltb_spec (d_label t) C); try lia. cbn [andb] in H.
  unfold leads_over. destruct (Nat.ltb_spec (d_label t) k), (Nat.ltb_spec k (d_label t)); nia.
Qed.

Lemma winner_lead g D s k xk : forall w i, (forall a, In a w -> 0 <= a) -> xk = s k ->
  (forall n, (n < length w)%nat -> (i + n)%nat <> k -> s k - s (i + n)%nat >= D * least_lead g /\ ((i + n < k)%nat -> s k - s (i + n)%nat > D * least_lead g)) ->
  ((i <= k)%nat -> at_class w (k - i) = 0) ->
  lead_from i w s xk <= - (D * least_lead g * size w) - (if (i <=? k)%nat then first_of (k - i) w else 0).
Proof.
  induction w as [|a w IH]; intros i P X H K.
  - cbn [lead_from size fold_right]. destruct (i <=? k)%nat, (k - i)%nat; cbn; lia.
  - cbn [lead_from size fold_right]. assert (Pa : 0 <= a) by (apply P; left; auto).
    assert (IH' : lead_from (S i) w s xk <= - (D * least_lead g * size w) - (if (S i <=? k)%nat then first_of (k - S i) w else 0)).
    { apply IH; auto. { intros; apply P; right; auto. }
      { intros n Ln Nn. specialize (H (S n)). rewrite Nat.add_succ_r in H. apply H; cbn [length]; lia. }
      intro G. specialize (K (Nat.le_trans _ _ _ (Nat.le_succ_diag_r i) G)). unfold at_class in *. replace (k - i)%nat with (S (k - S i)) in K by lia. exact K. }
    unfold size in *. specialize (H 0%nat). rewrite Nat.add_0_r in H. cbn [length] in H.
    destruct (Nat.eq_dec i k) as [E|E].
    + subst i. specialize (K (Nat.le_refl k)). rewrite Nat.sub_diag in K. cbn in K. subst a.
      destruct (Nat.leb_spec k k); [|lia]. rewrite Nat.sub_diag. cbn [first_of].
      destruct (Nat.leb_spec (S k) k); [lia|]. lia.
    + specialize (H (Nat.lt_0_succ _) E). destruct H as [H1 H2]. subst xk.
      destruct (Nat.leb_spec i k) as [G|G].
      * destruct (Nat.leb_spec (S i) k) as [G2|G2]; [|lia]. replace (k - i)%nat with (S (k - S i)) by lia. cbn [first_of].
        specialize (H2 ltac:(lia)). nia.
      * destruct (Nat.leb_spec (S i) k); [lia|]. nia.
Qed.
Lemma first_positive w : (forall a, In a w -> 0 <= a) -> forall k, 0 <= first_of k w.
Proof. induction w as [|a w IH]; intros P k; destruct k; cbn [first_of]; try lia. assert (0 <= a) by (apply P; left; auto).
  assert (0 <= first_of k w) by (apply IH; intros; apply P; right; auto). lia. Qed.

(** A class about which "excludes" is accepted does not win, whatever play the budget allows. *)
Theorem excludes_sound g C t allowed k w prices D hit new off :
  excludes_ok g C t allowed k w prices = true -> in_parts g D -> play D t allowed hit new off ->
  ~ may_win g D C (score D t hit new off) k.
Proof.
  intros S I Y W. unfold excludes_ok in S. repeat rewrite andb_true_iff in S. destruct S as [[[[[F Z0] P] Q] K] B].
  pose proof (positive_is w P) as P'. apply sized_is in Z0. apply Z.ltb_lt in Q. apply Z.eqb_eq in K.
  pose proof (parts_positive g D I) as Dp.
  pose proof (bears_sound C t F w k _ allowed prices D hit new off P' Dp B Y) as H.
  unfold lead in H.
  pose proof (winner_lead g D (score D t hit new off) k _ w 0 P' eq_refl) as L. cbn [Nat.add] in L. rewrite Nat.sub_0_r in L.
  specialize (L (fun n Ln Nn => W n (eq_ind _ (fun x => (n < x)%nat) Ln _ Z0) Nn) (fun _ => K)).
  destruct (Nat.leb_spec 0 k); [|lia]. pose proof (first_positive w P' k) as F0.
  unfold tie in H. unfold in_parts in I. destruct (whole g); [subst D; nia|].
  assert (D * (1 - Z.min 1 (first_of k w)) <= - first_of k w) by nia.
  destruct (Z.min_spec 1 (first_of k w)) as [[E M]|[E M]]; rewrite M in *; nia.
Qed.

(** ---- Many targets ---- *)

(** Where "broken_at_most" is accepted, plays on all targets whose shared moves fit together break no more of them. *)
Theorem broken_sound g C shared total needs free number p D hit new off (nobody : demand) :
  broken_ok g C shared total needs free number p = true -> in_parts g D ->
  (forall i, (i < length needs)%nat -> let n := nth i needs nobody in play D (n_target n) (n_allowed n) (hit i) (new i) (off i)) ->
  within (sum nat (fun i => times shared (concat (hit i) ++ new i)) (seq 0 (length needs))) total ->
  forall broken, NoDup broken ->
  (forall i, In i broken -> (i < length needs)%nat /\ let t := n_target (nth i needs nobody) in
     exists k, (k < C)%nat /\ k <> d_label t /\ ~ leads_over g D (score D t (hit i) (new i) (off i)) (d_label t) k) ->
  Z.of_nat (length broken) + free <= number.
Proof.
  intros S I Y W broken once B. unfold broken_ok in S. repeat rewrite andb_true_iff in S. destruct S as [[F S] A]. apply Z.leb_le in A.
  rewrite forallb_forall in S.
  set (price := fun i => n_moves (nth i needs nobody)).
  assert (K : forall i, In i broken -> exists x, price i = Some x /\ x <= times shared (concat (hit i) ++ new i)).
  { intros i Ii. destruct (B i Ii) as [Li [k [Lk [Nk H]]]]. specialize (Y i Li). cbn zeta in Y, H.
    set (n := nth i needs nobody) in *. assert (In n needs) as In_n by (apply nth_In; auto). specialize (S n In_n).
    unfold demand_ok in S. apply andb_true_iff in S as [S1 S2]. unfold price. fold n. unfold within_demand in S2.
    destruct (n_moves n) as [x|] eqn:E.
    - exists x; split; auto. destruct (Z.le_gt_cases x (times shared (concat (hit i) ++ new i))) as [G|G]; [exact G|exfalso].
      apply H. eapply stays_sound; [exact S2|exact I| |auto|auto]. destruct Y as [Y1 Y2 Y3 Y4]. constructor; auto.
      intros moves m Im. cbn [limits] in Im. apply in_app_iff in Im as [Im|[Im|[]]]; [apply Y4; auto|]. injection Im as <- <-. cbn [within]. lia.
    - exfalso. apply H. eapply stays_sound; [exact S2|exact I|exact Y|auto|auto]. }
  assert (E : map price (seq 0 (length needs)) = map n_moves needs).
  { unfold price. clear. induction needs as [|n l IH]; [reflexivity|]. cbn [length seq map]. f_equal.
    rewrite <- seq_shift, map_map. exact IH. }
  assert (Q : Z.of_nat (length broken) <= affordable p total (map price (seq 0 (length needs)))).
  { apply (affordable_sound nat Nat.eq_dec price (seq 0 (length needs)) broken); auto.
    - apply seq_NoDup.
    - intros i Ii. apply in_seq. destruct (B i Ii); lia.
    - intros i Ii. destruct (K i Ii) as [x [Ex _]]; exists x; exact Ex.
    - destruct total as [m|]; [|exact Logic.I]. cbn [within] in *.
      eapply Z.le_trans; [|exact W].
      eapply Z.le_trans; [apply (sum_le nat _ (fun i => times shared (concat (hit i) ++ new i)))|].
      + intros i Ii. destruct (K i Ii) as [x [Ex Lx]]. rewrite Ex; exact Lx.
      + apply (part_sum nat Nat.eq_dec); auto using seq_NoDup.
        { intros i Ii. apply in_seq. destruct (B i Ii); lia. }
        intro i; unfold times; lia. }
  rewrite E in Q. lia.
Qed.
