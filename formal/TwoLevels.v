(** Stacked votes with two levels (docs/proofs.md, Theorem 11): the counting. That one edge moves the votes of its ends by no more than half a vote each, and
    that nodes multiply odds by no more than exp(w n), is about real numbers: TwoLevelsReal.v proves it, with the axioms of Coq's real numbers. Here both
    are hypotheses about whole numbers. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker StackedVote StackedChecker StackedProofs.
Import ListNotations.
Open Scope Z_scope.

Section TwoLevels.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variable S : Z.
  Hypothesis S_pos : 0 < S.

  (** What a machine reads on some graph: the neighbours of the target, and their votes. *)
  Record state := State { s_near : list key; s_vote : key -> nat -> Z }.
  (** Each neighbour once, with one vote at most. *)
  Definition good (x : state) : Prop := NoDup (s_near x) /\ forall u, In u (s_near x) -> is_vote S (s_vote x u).
  (** Theorem 11: the lead of a over k. *)
  Definition lead2 (p : nat -> Z) (a k : nat) (x : state) : Z := p a - p k + sum key (fun u => s_vote x u a - s_vote x u k) (s_near x).

  (** One edge is added or deleted. At the target, its other end comes or goes, and no other vote changes. Elsewhere the neighbours stay, and only the
      votes of its two ends change, the lead of a over k by no more than half a vote in each. *)
  Inductive edge_step (a : nat) (x y : state) : Prop :=
  | AtTarget (u : key) (_ : forall w, w <> u -> (In w (s_near x) <-> In w (s_near y)))
      (_ : forall w k, w <> u -> s_vote y w k = s_vote x w k)
      (_ : forall k, In u (s_near x) -> In u (s_near y) -> s_vote y u k = s_vote x u k)
  | Elsewhere (u w : key) (_ : forall z, In z (s_near x) <-> In z (s_near y))
      (_ : forall z k, z <> u -> z <> w -> s_vote y z k = s_vote x z k)
      (_ : forall z k, z = u \/ z = w -> k <> a -> 2 * Z.abs ((s_vote y z a - s_vote y z k) - (s_vote x z a - s_vote x z k)) <= S).
  (** n edges, one after the other. *)
  Inductive edge_steps (a : nat) : nat -> state -> state -> Prop :=
  | NoStep x : edge_steps a 0 x x
  | MoreSteps n x y z : edge_steps a n x y -> good y -> good z -> edge_step a y z -> edge_steps a (Datatypes.S n) x z.

  (** n nodes come or go, those in [gone] and [come]. An altered one goes, and another one (another key) comes: two of n. A vote that stays is read as at least [low] for the label and at most
      [high] for a rival. *)
  Record node_step (a : nat) (n : Z) (low : key -> Z) (high : key -> nat -> Z) (x y : state) : Prop := {
    n_few : forall gone come, (forall u, In u gone <-> In u (s_near x) /\ ~ In u (s_near y)) -> (forall u, In u come <-> In u (s_near y) /\ ~ In u (s_near x)) ->
      NoDup gone -> NoDup come -> Z.of_nat (length gone + length come) <= n;
    n_low : forall u, In u (s_near x) -> In u (s_near y) -> low u <= s_vote y u a;
    n_high : forall u k, In u (s_near x) -> In u (s_near y) -> k <> a -> s_vote y u k <= high u k
  }.

  (** ---- Proofs ---- *)

  Lemma good_range x u a k : good x -> In u (s_near x) -> k <> a -> - S <= s_vote x u a - s_vote x u k <= S.
  Proof. intros [_ B] I N. destruct (B u I) as [B1 B2]. pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym N)). lia. Qed.

  Lemma one_change (d e : key -> Z) (N : list key) u c : NoDup N -> 0 <= c -> (forall w, w <> u -> In w N -> e w = d w) -> (In u N -> Z.abs (e u - d u) <= c) ->
    Z.abs (sum key e N - sum key d N) <= c.
  Proof.
    intros H C E U. induction N as [|w N IH]; [simpl; lia|]. inversion H as [|? ? NI H']; subst. cbn [sum]. destruct (key_eq w u) as [->|NE].
    - assert (Q : sum key e N = sum key d N).
      { clear -E NI. assert (Q : forall w, In w N -> e w = d w) by (intros w I; apply E; [intros ->; contradiction|right; auto]). clear -Q.
        induction N as [|z N IH]; [reflexivity|]. cbn [sum]. rewrite (Q z (or_introl eq_refl)), IH; auto. intros; apply Q; right; auto. }
      specialize (U (or_introl eq_refl)); lia.
    - rewrite (E w NE (or_introl eq_refl)). specialize (IH H' (fun z Z I => E z Z (or_intror I)) (fun I => U (or_intror I))). lia.
  Qed.

  (** Theorem 11 (a): an edge anywhere costs at most one vote. *)
  Theorem edge_costs_one p a k x y : good x -> good y -> edge_step a x y -> k <> a -> lead2 p a k x - S <= lead2 p a k y.
  Proof.
    intros Gx Gy [u H1 H2 H3|u w H1 H2 H3] N; unfold lead2.
    - set (N1 := filter (fun z => if key_eq z u then false else true) (s_near x)). set (N2 := filter (fun z => if key_eq z u then false else true) (s_near y)).
      assert (SP : forall (d : key -> Z) l, NoDup l -> sum key d l = sum key d (filter (fun z => if key_eq z u then false else true) l) + (if in_dec key_eq u l then d u else 0)).
      { clear; intros d l; induction l as [|z l IH]; intro ND; [reflexivity|]. inversion ND as [|? ? NI ND']; subst. cbn [sum filter]. rewrite (IH ND').
        destruct (key_eq z u) as [->|NE].
        - destruct (in_dec key_eq u l) as [|]; [contradiction|]. destruct (in_dec key_eq u (u :: l)) as [|Q]; [lia|exfalso; apply Q; left; auto].
        - cbn [sum]. destruct (in_dec key_eq u l) as [I|I], (in_dec key_eq u (z :: l)) as [J|J]; try lia.
          + exfalso; apply J; right; auto.
          + destruct J as [J|J]; [contradiction|]; contradiction. }
      rewrite (SP _ (s_near x)) by apply Gx. rewrite (SP _ (s_near y)) by apply Gy.
      assert (Q : sum key (fun z => s_vote y z a - s_vote y z k) N2 = sum key (fun z => s_vote x z a - s_vote x z k) N1).
      { transitivity (sum key (fun z => s_vote x z a - s_vote x z k) N2).
        - assert (Q : forall l, ~ In u l -> sum key (fun z => s_vote y z a - s_vote y z k) l = sum key (fun z => s_vote x z a - s_vote x z k) l).
          { clear -H2; induction l as [|z l IH]; intro NI; [reflexivity|]. cbn [sum]. rewrite IH by (intro; apply NI; right; auto). rewrite !H2 by (intros ->; apply NI; left; auto). reflexivity. }
          apply Q. unfold N2; rewrite filter_In; intros [_ E]; destruct (key_eq u u); [discriminate|congruence].
        - apply sum_perm; auto. apply NoDup_Permutation; try (apply NoDup_filter; first [apply Gx|apply Gy]).
          intro z; unfold N1, N2; rewrite !filter_In. destruct (key_eq z u) as [->|NE]; [split; intros [_ E]; discriminate|]. rewrite (H1 z NE); tauto. }
      fold N1 N2; rewrite Q.
      destruct (in_dec key_eq u (s_near x)) as [I|I], (in_dec key_eq u (s_near y)) as [J|J].
      + rewrite !H3 by auto; lia.
      + pose proof (good_range x u a k Gx I N); lia.
      + pose proof (good_range y u a k Gy J N); lia.
      + lia.
    - assert (P : sum key (fun z => s_vote y z a - s_vote y z k) (s_near y) = sum key (fun z => s_vote y z a - s_vote y z k) (s_near x)).
      { apply sum_perm; auto. apply NoDup_Permutation; [apply Gy|apply Gx|]. intro z; rewrite (H1 z); tauto. }
      rewrite P.
      set (mid := fun z => if key_eq z u then s_vote y z a - s_vote y z k else s_vote x z a - s_vote x z k).
      assert (A1 : Z.abs (sum key mid (s_near x) - sum key (fun z => s_vote x z a - s_vote x z k) (s_near x)) <= S / 2).
      { apply (one_change _ _ _ u); [apply Gx|apply Z.div_pos; lia| |].
        - intros z NE _; unfold mid; destruct (key_eq z u); [contradiction|auto].
        - intros _; unfold mid; destruct (key_eq u u); [|congruence]. apply Z.div_le_lower_bound; [lia|]. apply H3; auto. }
      assert (A2 : Z.abs (sum key (fun z => s_vote y z a - s_vote y z k) (s_near x) - sum key mid (s_near x)) <= S / 2).
      { apply (one_change _ _ _ w); [apply Gx|apply Z.div_pos; lia| |].
        - intros z NE _; unfold mid; destruct (key_eq z u) as [->|NU]; auto. rewrite !H2; auto.
        - intros _; unfold mid; destruct (key_eq w u) as [->|NU]; [rewrite Z.sub_diag; simpl; apply Z.div_pos; lia|]. apply Z.div_le_lower_bound; [lia|]. apply H3; auto. }
      pose proof (Z.div_mod S 2 ltac:(lia)). pose proof (Z.mod_pos_bound S 2 ltac:(lia)). lia.
  Qed.

  (** Theorem 11: n edges take no more than n votes from the lead. *)
  Theorem edges_cost_one_each p a k n x y : good x -> edge_steps a n x y -> k <> a -> lead2 p a k x - Z.of_nat n * S <= lead2 p a k y.
  Proof.
    intros Gx H N. induction H as [x|n x y z H IH Gy Gz E]; [lia|]. specialize (IH Gx). pose proof (edge_costs_one p a k y z Gy Gz E N). lia.
  Qed.

  (** Theorem 11 (b): nodes of any degree. *)
  Theorem nodes_cost p a k n low high x y : good x -> good y -> node_step a n low high x y -> k <> a ->
    (forall u, In u (s_near x) -> low u - high u k <= s_vote x u a - s_vote x u k) ->
    lead2 p a k x - n * S - sum key (fun u => (s_vote x u a - s_vote x u k) - (low u - high u k)) (s_near x) <= lead2 p a k y.
  Proof.
    intros Gx Gy [H1 H2 H3] N POS. unfold lead2.
    set (d := fun u => s_vote x u a - s_vote x u k). set (e := fun u => s_vote y u a - s_vote y u k).
    set (inx := fun u => mem key key_eq u (s_near x)). set (iny := fun u => mem key key_eq u (s_near y)).
    set (gone := filter (fun u => negb (iny u)) (s_near x)). set (come := filter (fun u => negb (inx u)) (s_near y)).
    assert (MF : forall u l, mem key key_eq u l = false <-> ~ In u l) by (intros u l; rewrite <- not_true_iff_false, (mem_true key key_eq); tauto).
    assert (C : Z.of_nat (length gone + length come) <= n).
    { apply H1; try (apply NoDup_filter; first [apply Gx|apply Gy]); intro u; unfold gone, come, inx, iny; rewrite filter_In, negb_true_iff, MF; tauto. }
    pose proof (sum_split key d iny (s_near x)) as S1. pose proof (sum_split key e inx (s_near y)) as S2. fold gone in S1. fold come in S2.
    assert (E1 : sum key e (filter inx (s_near y)) = sum key e (filter iny (s_near x))).
    { apply sum_perm; auto. apply NoDup_Permutation; try (apply NoDup_filter; first [apply Gx|apply Gy]). intro u; unfold inx, iny; rewrite !filter_In, !(mem_true key key_eq); tauto. }
    assert (G1 : sum key d gone <= S * Z.of_nat (length gone)).
    { assert (Q : forall l, (forall u, In u l -> d u <= S) -> sum key d l <= S * Z.of_nat (length l)).
      { clear; induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun w I => H w (or_intror I))). specialize (H u (or_introl eq_refl)). lia. }
      apply Q; intros u I; unfold gone in I; apply filter_In in I. apply (good_range x u a k Gx); auto; apply I. }
    assert (G2 : - S * Z.of_nat (length come) <= sum key e come).
    { apply sum_at_least; intros u I; unfold come in I; apply filter_In in I. apply (good_range y u a k Gy); auto; apply I. }
    assert (K : sum key (fun u => low u - high u k) (filter iny (s_near x)) <= sum key e (filter iny (s_near x))).
    { apply sum_le; intros u I; apply filter_In in I; destruct I as [I J]; apply (mem_true key key_eq) in J. unfold e. pose proof (H2 u I J); pose proof (H3 u k I J N). lia. }
    assert (L : forall l, sum key (fun u => d u - (low u - high u k)) l = sum key d l - sum key (fun u => low u - high u k) l) by (clear; induction l as [|u l IH]; simpl; lia).
    assert (PG : 0 <= sum key (fun u => d u - (low u - high u k)) gone).
    { pose proof (sum_at_least key (fun u => d u - (low u - high u k)) 0 gone) as Q. rewrite Z.mul_0_l in Q. apply Q. intros u I; unfold gone in I; apply filter_In in I; destruct I as [I _].
      specialize (POS u I). unfold d. lia. }
    pose proof (sum_split key (fun u => d u - (low u - high u k)) iny (s_near x)) as S3. fold gone in S3. pose proof (L (filter iny (s_near x))) as L1.
    change (sum key (fun u => s_vote x u a - s_vote x u k) (s_near x)) with (sum key d (s_near x)). change (sum key (fun u => s_vote y u a - s_vote y u k) (s_near y)) with (sum key e (s_near y)).
    change (sum key (fun u => s_vote x u a - s_vote x u k - (low u - high u k)) (s_near x)) with (sum key (fun u => d u - (low u - high u k)) (s_near x)). nia.
  Qed.
End TwoLevels.

(** ---- The checker ---- *)

Lemma low_small g sl own : 0 <= own -> 0 <= sl -> lowest g sl own <= Z.max 0 (own - sl).
Proof. intros; unfold lowest; destruct g; lia. Qed.
Lemma high_large g sl theirs : theirs <= vote_steps -> 0 <= sl -> Z.min vote_steps (theirs + sl + 1) <= highest g sl theirs.
Proof. intros; unfold highest; destruct g; lia. Qed.

Section Checked.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variables (V : stacked_votes key) (s : stacked_settings) (t : stacked_target).
  Hypothesis same : stands_for V s t.
  Hypothesis some_class : (0 < x_classes s)%nat.
  Let c := count_stacked s t.
  Let a := y_label c.

  Lemma pulled_sum g j k : forall n, pulled g (x_slack s) (column j (x_rows t)) (column k (x_rows t)) n
    = n + sum key (fun u => vote_of _ V u j - vote_of _ V u k - lowest g (x_slack s) (vote_of _ V u j) + highest g (x_slack s) (vote_of _ V u k)) (neighbours _ V).
  Proof.
    pose proof (f_rows _ _ _ same) as F. unfold column. clear - F. induction F as [|u row N rows H F IH]; intro n; [simpl; lia|].
    cbn [map pulled sum]. rewrite IH. rewrite !H. lia.
  Qed.

  Lemma two_levels_file : sensible_file s t = true -> x_second s <> 0 -> x_used s = true ->
    pseudo _ V = 0 /\ computed _ V = false /\ forall k, (k < x_classes s)%nat -> g_of _ V k = vote_steps.
  Proof.
    intros M H2 HU. pose proof (parts s t M) as (_ & _ & _ & _ & _ & LG & _).
    unfold sensible_file in M; apply andb_prop in M; destruct M as [_ M]. apply orb_true_iff in M; destruct M as [M|M]; [apply Z.eqb_eq in M; contradiction|].
    apply andb_prop in M; destruct M as [M M3]; apply andb_prop in M; destruct M as [M1 M2]; apply andb_prop in M3; destruct M3 as [M3 _]. apply Z.eqb_eq in M1. apply negb_true_iff in M2. rewrite HU in M3.
    rewrite (f_pseudo _ _ _ same), (f_computed _ _ _ same). split; auto. split; auto. intros k Hk; rewrite (f_g _ _ _ same). rewrite forallb_forall in M3.
    apply Z.eqb_eq, M3. unfold at_class; apply nth_In; lia.
  Qed.

  (** Theorem 11 as it is checked: n nodes come or go, then m edges anywhere. [x]: what the machine that decides reads on the graph of the certificate. *)
  Theorem second_test_sound (e n : Z) (m : nat) (p : nat -> Z) (x y z : state key) :
    second_test s c (Some e) (Some n) = true -> x_second s <> 0 -> x_used s = true -> 0 <= n ->
    (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
    good key vote_steps x -> good key vote_steps y -> s_near _ x = neighbours _ V ->
    (forall u, In u (s_near _ x) -> forall k, near (slack _ V) (vote_of _ V u k) (s_vote _ x u k)) ->
    (n = 0 -> y = x) ->
    (0 < n -> node_step key a n (fun u => lowest (grown (x_second s) n) (x_slack s) (vote_of _ V u a))
                (fun u k => highest (grown (x_second s) n) (x_slack s) (vote_of _ V u k)) x y) ->
    edge_steps key vote_steps a m y z -> Z.of_nat m <= e ->
    best (fun k => p k + sum key (fun u => s_vote _ z u k) (s_near _ z)) (x_classes s) = a.
  Proof.
    intros H H2 HU Hn P Gx Gy NX VX N0 NS ES Hm.
    assert (M : sensible_file s t = true) by (unfold second_test in H; apply andb_prop in H; apply H).
    destruct (two_levels_file M H2 HU) as [P0 [C0 GS]]. pose proof (file_sensible key V s t same M) as SF.
    apply label_is_best; split; [apply (label_small key V s t same some_class)|]. intros k Hk N.
    destruct (rival_counted key V s t same some_class k Hk N) as [r [I R]]. fold c a in R.
    assert (VS : 0 < vote_steps) by reflexivity.
    unfold second_test in H; apply andb_prop in H; destruct H as [_ H]. rewrite forallb_forall in H. specialize (H r I). unfold second_lead_stays, grown_by in H. cbv zeta in H. rewrite HU in H.
    apply andb_prop in H; destruct H as [_ H]. apply Z.leb_le in H. cbn [finite_or_0] in H.
    rewrite (r_ahead _ _ _ _ _ _ R), (r_given _ _ _ _ _ _ R), (r_tie _ _ _ _ _ _ R), (r_votes _ _ _ _ _ _ R) in H. change (y_label (count_stacked s t)) with a in H.
    pose proof (label_small key V s t same some_class) as Ha. fold c a in Ha.
    assert (GV : given key V a k = vote_steps * sum key (fun u => vote_of _ V u a - vote_of _ V u k) (neighbours _ V) - degree key V * (2 * vote_steps * slack _ V)).
    { unfold given, doubt_each, delta. rewrite P0, C0, !GS by auto. cbn [Z.eqb bit_of].
      assert (Q : forall l, sum key (fun u => vote_steps * vote_of _ V u a - vote_steps * vote_of _ V u k) l = vote_steps * sum key (fun u => vote_of _ V u a - vote_of _ V u k) l)
        by (clear; induction l as [|u l IH]; [reflexivity|]; cbn [sum]; rewrite IH; ring).
      rewrite Q. ring. }
    rewrite GV in H.
    pose proof (edges_cost_one_each key key_eq vote_steps VS p a k m y z Gy ES N) as E1.
    assert (PA : ahead key V a k <= p a - p k) by (unfold ahead; destruct (P a), (P k); lia).
    assert (FIN : vote_steps * (lead2 key p a k z) >= tie k a -> p k + sum key (fun u => s_vote _ z u k) (s_near _ z) + tie k a <= p a + sum key (fun u => s_vote _ z u a) (s_near _ z)).
    { unfold lead2. assert (Q : forall l, sum key (fun u => s_vote _ z u a - s_vote _ z u k) l = sum key (fun u => s_vote _ z u a) l - sum key (fun u => s_vote _ z u k) l)
        by (clear; induction l as [|u l IH]; simpl; lia). rewrite Q. pose proof (tie_range k a). set (X := p a - p k + _). intro G. assert (tie k a <= X); [|unfold X in *; lia].
      destruct (Z.le_gt_cases (tie k a) X); auto. exfalso. assert (X <= 0) by lia. assert (X = 0 \/ X < 0) as [X0|X0] by lia; [rewrite X0 in G; lia|]. nia. }
    apply FIN. pose proof (slack_pos _ _ SF) as SP. clear FIN.
    destruct (Z.eq_dec n 0) as [Z0|NZ].
    - rewrite (N0 Z0) in *. subst n. cbn [Z.leb] in H.
      assert (LX : ahead key V a k + sum key (fun u => vote_of _ V u a - vote_of _ V u k) (neighbours _ V) - 2 * slack _ V * degree key V <= lead2 key p a k x).
      { unfold lead2, degree. rewrite NX in *. assert (Q : forall l, incl l (neighbours _ V) ->
          sum key (fun u => vote_of _ V u a - vote_of _ V u k) l - 2 * slack _ V * Z.of_nat (length l) <= sum key (fun u => s_vote _ x u a - s_vote _ x u k) l).
        { induction l as [|u l IH]; intro J; [simpl; lia|]. cbn [sum length]. specialize (IH (fun w K => J w (or_intror K))). destruct (VX u (J u (or_introl eq_refl)) a), (VX u (J u (or_introl eq_refl)) k). lia. }
        specialize (Q _ (incl_refl _)). lia. }
      change (0 <=? 0) with true in H. cbv iota in H. nia.
    - assert (E0 : (n <=? 0) = false) by (apply Z.leb_gt; lia). rewrite E0 in H. specialize (NS ltac:(lia)).
      change (y_own c) with (column a (x_rows t)) in H. rewrite pulled_sum in H.
      set (g := grown (x_second s) n) in *.
      pose proof (nodes_cost key key_eq vote_steps VS p a k n _ _ x y Gx Gy NS N) as NC. cbv beta in NC.
      assert (POS : forall u, In u (s_near _ x) -> lowest g (x_slack s) (vote_of _ V u a) - highest g (x_slack s) (vote_of _ V u k) <= s_vote _ x u a - s_vote _ x u k).
      { intros u J. rewrite <- (f_slack _ _ _ same). pose proof J as J'. rewrite NX in J'. destruct (votes_ok _ _ SF u J') as [B1 B2]. rewrite (f_steps _ _ _ same) in B2.
        pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym N)). destruct Gx as [_ GB]. destruct (GB u J) as [D1 D2]. pose proof (D1 a); pose proof (D1 k). specialize (D2 a k (not_eq_sym N)).
        destruct (VX u J a), (VX u J k). pose proof (low_small g (slack _ V) (vote_of _ V u a) ltac:(lia) SP). pose proof (high_large g (slack _ V) (vote_of _ V u k) ltac:(lia) SP). lia. }
      specialize (NC POS). unfold lead2 at 1 in NC. rewrite NX in *.
      assert (SUM : forall l, sum key (fun u => s_vote _ x u a - s_vote _ x u k - (lowest g (x_slack s) (vote_of _ V u a) - highest g (x_slack s) (vote_of _ V u k))) l
                      = sum key (fun u => s_vote _ x u a - s_vote _ x u k) l - sum key (fun u => lowest g (x_slack s) (vote_of _ V u a) - highest g (x_slack s) (vote_of _ V u k)) l)
        by (clear; induction l as [|u l IH]; simpl; lia).
      assert (SUM2 : forall l, sum key (fun u => vote_of _ V u a - vote_of _ V u k - lowest g (x_slack s) (vote_of _ V u a) + highest g (x_slack s) (vote_of _ V u k)) l
                      = sum key (fun u => vote_of _ V u a - vote_of _ V u k) l - sum key (fun u => lowest g (x_slack s) (vote_of _ V u a) - highest g (x_slack s) (vote_of _ V u k)) l)
        by (clear; induction l as [|u l IH]; simpl; lia).
      rewrite SUM in NC. rewrite SUM2 in H.
      set (X1 := sum key (fun u => s_vote _ x u a - s_vote _ x u k) (neighbours _ V)) in *. set (X2 := sum key (fun u => lowest g (x_slack s) (vote_of _ V u a) - highest g (x_slack s) (vote_of _ V u k)) (neighbours _ V)) in *.
      set (X3 := sum key (fun u => vote_of _ V u a - vote_of _ V u k) (neighbours _ V)) in *. clearbody X1 X2 X3.
      assert (DD : 0 <= degree key V * (2 * vote_steps * slack _ V)) by (unfold degree; nia).
      assert (Q : ahead key V a k + X2 - (e + n) * vote_steps <= lead2 key p a k z) by nia. nia.
  Qed.

  (** No vote is used: the lead of j over k is that of the prior. *)
  Lemma unused_lead (e n : lim) (j k : nat) (r : stacked_rival) (p : nat -> Z) :
    sensible_file s t = true -> x_second s <> 0 -> x_used s = false -> counted_as key V t j k r ->
    second_lead_stays s e n (grown_by s n) (column j (x_rows t)) r = true -> (forall k, near (slack _ V) (p_of _ V k) (p k)) -> p k + tie k j <= p j.
  Proof.
    intros M H2 HU R H P.
    pose proof (parts s t M) as (_ & _ & _ & _ & _ & LG & _).
    assert (GS : forall k, g_of _ V k = 0).
    { intro k'; rewrite (f_g _ _ _ same). pose proof M as M'; unfold sensible_file in M'; apply andb_prop in M'; destruct M' as [_ M']. apply orb_true_iff in M'; destruct M' as [M'|M']; [apply Z.eqb_eq in M'; contradiction|].
      apply andb_prop in M'; destruct M' as [_ M3]; apply andb_prop in M3; destruct M3 as [M3 _]. rewrite HU in M3. unfold at_class. destruct (Nat.lt_ge_cases k' (length (x_gate t))) as [L|L]; [|apply nth_overflow; auto].
      rewrite forallb_forall in M3. apply Z.eqb_eq, M3, nth_In; auto. }
    assert (P0 : pseudo _ V = 0 /\ computed _ V = false).
    { rewrite (f_pseudo _ _ _ same), (f_computed _ _ _ same). unfold sensible_file in M; apply andb_prop in M; destruct M as [_ M]. apply orb_true_iff in M; destruct M as [M|M]; [apply Z.eqb_eq in M; contradiction|].
      apply andb_prop in M; destruct M as [M _]; apply andb_prop in M; destruct M as [M1 M2]. apply Z.eqb_eq in M1. apply negb_true_iff in M2. auto. }
    destruct P0 as [P0 C0]. pose proof (file_sensible key V s t same M) as SF.
    unfold second_lead_stays in H. cbv zeta in H. rewrite HU in H. apply Z.leb_le in H.
    rewrite (r_ahead _ _ _ _ _ _ R), (r_given _ _ _ _ _ _ R), (r_tie _ _ _ _ _ _ R) in H.
    assert (GV : given key V j k = 0).
    { unfold given, doubt_each, delta. rewrite P0, C0, !GS. cbn [Z.eqb bit_of]. assert (Q : forall l, sum key (fun u => 0 * vote_of _ V u j - 0 * vote_of _ V u k) l = 0) by (clear; induction l as [|u l IH]; [reflexivity|]; cbn [sum]; rewrite IH; ring). rewrite Q. ring. }
    rewrite GV in H. pose proof (tie_range k j). unfold ahead in H. destruct (P j), (P k). unfold vote_steps in H. lia.
  Qed.

  (** Theorem 11: where no votes are used at all, nothing but the prior decides. *)
  Theorem unused_votes (e n : lim) (p : nat -> Z) :
    second_test s c e n = true -> x_second s <> 0 -> x_used s = false -> (forall k, near (slack _ V) (p_of _ V k) (p k)) -> best p (x_classes s) = a.
  Proof.
    intros H H2 HU P. assert (M : sensible_file s t = true) by (unfold second_test in H; apply andb_prop in H; apply H).
    apply label_is_best; split; [apply (label_small key V s t same some_class)|]. intros k Hk N.
    destruct (rival_counted key V s t same some_class k Hk N) as [r [I R]]. fold c a in R.
    unfold second_test in H; apply andb_prop in H; destruct H as [_ H]. rewrite forallb_forall in H. specialize (H r I). eapply unused_lead; eauto.
  Qed.
End Checked.
