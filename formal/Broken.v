(** How many targets one attacked graph breaks, as the checker counts it (docs/proofs.md, Theorem 7): both divisions and gated features,
    with targets that are themselves deleted or altered. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated Collective PerNeighbourVote Checker CheckerProofs CheckedCertificates.
Import ListNotations.
Open Scope Z_scope.

(** ---- What fits into a sum ---- *)

Section Affordable.
  Variable id : Type.
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (price_of : id -> lim) (targets broken : list id).
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.

  Let cheap (p : Z) (v : id) : bool := match price_of v with Some x => x <? p | None => false end.
  Let cost (v : id) : Z := match price_of v with Some x => x | None => 0 end.
  Let known (v : id) : bool := match price_of v with Some _ => true | None => false end.

  Lemma below_is p l : forall n t, below p (map price_of l) n t
    = (n + amount id (cheap p) l, t + sum id (fun v => if cheap p v then cost v else 0) l).
  Proof.
    induction l as [|v l IH]; intros n t; [simpl; unfold amount; simpl; f_equal; lia|].
    cbn [map below]. unfold amount in *; cbn [sum]. unfold cheap at 1 3, cost at 1.
    destruct (price_of v) as [x|]; [destruct (x <? p)|]; rewrite IH; unfold bit; f_equal; lia.
  Qed.
  Lemma finite_is l : forall n, finite (map price_of l) n = n + amount id known l.
  Proof.
    induction l as [|v l IH]; intro n; [simpl; unfold amount; simpl; lia|]. cbn [map finite]. unfold amount in *; cbn [sum]. unfold known at 1.
    destruct (price_of v); rewrite IH; unfold bit; lia.
  Qed.

  Lemma part_sum g : (forall v, 0 <= g v) -> sum id g broken <= sum id g targets.
  Proof.
    intro H. rewrite <- (sum_within id id_eq g broken targets broken_once once among).
    apply sum_le; intros v _; specialize (H v); destruct (mem id id_eq v broken); lia.
  Qed.

  (** Theorem 7, the cheapest targets that fit: if the broken targets' needs fit, there are no more of them than [affordable] says. *)
  Theorem affordable_sound p left :
    (forall v, In v broken -> exists x, price_of v = Some x) ->
    within (sum id cost broken) left ->
    Z.of_nat (length broken) <= affordable p left (map price_of targets).
  Proof.
    intros K F.
    assert (L1 : Z.of_nat (length broken) <= finite (map price_of targets) 0).
    { rewrite finite_is. assert (E : Z.of_nat (length broken) = sum id (fun v => bit (known v)) broken).
      { clear -K. induction broken as [|v l IH]; [reflexivity|]. cbn [length sum]; rewrite Nat2Z.inj_succ.
        destruct (K v (or_introl eq_refl)) as [x E]; unfold known at 1; rewrite E; cbn [bit]. rewrite IH; [lia|]. intros u I; apply K; right; auto. }
      rewrite E; apply part_sum; intro v; unfold bit; destruct (known v); lia. }
    unfold affordable. destruct left as [m|]; [|exact L1]. destruct (Z.ltb_spec 0 p) as [P|P]; [|exact L1].
    rewrite below_is; cbn [fst snd]. rewrite !Z.add_0_l.
    apply Z.min_glb; [exact L1|]. simpl in F.
    pose proof (part_sum (fun v => if cheap p v then p - cost v else 0)) as Q.
    assert (Pos : forall v, 0 <= (if cheap p v then p - cost v else 0)).
    { intro v; unfold cheap, cost; destruct (price_of v) as [x|]; [|lia]. destruct (Z.ltb_spec x p); lia. }
    specialize (Q Pos).
    assert (E1 : sum id (fun v => if cheap p v then p - cost v else 0) targets
      = p * amount id (cheap p) targets - sum id (fun v => if cheap p v then cost v else 0) targets).
    { clear. unfold amount; induction targets as [|v l IH]; [simpl; lia|]. cbn [sum]; rewrite IH. unfold bit; destruct (cheap p v); lia. }
    assert (E2 : p * Z.of_nat (length broken) - sum id cost broken <= sum id (fun v => if cheap p v then p - cost v else 0) broken).
    { clear -K P. induction broken as [|v l IH]; [simpl; lia|]. cbn [sum length]; rewrite Nat2Z.inj_succ.
      assert (IH' : p * Z.of_nat (length l) - sum id cost l <= sum id (fun v => if cheap p v then p - cost v else 0) l) by (apply IH; intros u I; apply K; right; auto).
      destruct (K v (or_introl eq_refl)) as [x E]. unfold cheap at 1, cost at 1 3; rewrite E. destruct (Z.ltb_spec x p); lia. }
    rewrite <- Z.div_add_l by lia. apply Z.div_le_lower_bound; [auto|].
    change (amount id (cheap p) targets) with (amount id (fun v => cheap p v) targets) in *. lia.
  Qed.
End Affordable.

(** ---- Need ---- *)

Lemma least_passes fuel passes : forall low high, passes low = true -> passes (least fuel passes low high - 1) = true.
Proof.
  induction fuel as [|fuel IH]; intros low high H; cbn [least]; [replace (low + 1 - 1) with low by lia; auto|].
  destruct (high <=? low + 1); [replace (low + 1 - 1) with low by lia; auto|].
  destruct (passes (Z.div2 (low + high))) eqn:E; apply IH; auto.
Qed.
Lemma least_failing_ok passes high : least_failing passes high = 0 \/ passes (least_failing passes high - 1) = true.
Proof. unfold least_failing; destruct (passes 0) eqn:E; auto; right; apply least_passes; auto. Qed.

(** Two bounds on what moves beyond the reached votes hold together. *)
Lemma moves_meet V n r (g : list nat) x : moves V n r ->
  (forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i <> Reached -> In i g \/ r i = cast V i) ->
  Z.of_nat (length g) <= x ->
  moves V (Reach (all n) (lmin (beyond n) (Some x)) (lmin (unlisted n) (Some x))) r.
Proof.
  intros [l0 l1 l2 h0 h1 h2 f0 f1 f2] H L.
  set (meet := fun l => filter (fun i => if in_dec Nat.eq_dec i g then true else false) (nodup Nat.eq_dec l)).
  assert (M : forall l i, In i l -> In i g -> In i (meet l)).
  { intros l i I J; apply filter_In; split; [apply nodup_In; auto|]. destruct (in_dec Nat.eq_dec i g); auto. }
  assert (B : forall l m, within (Z.of_nat (length l)) m -> within (Z.of_nat (length (meet l))) (lmin m (Some x))).
  { intros l m W.
    assert (A1 : (length (meet l) <= length l)%nat).
    { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros i I; apply filter_In in I; destruct I as [I _]; apply nodup_In in I; auto. }
    assert (A2 : (length (meet l) <= length g)%nat).
    { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros i I; apply filter_In in I; destruct I as [_ I].
      destruct (in_dec Nat.eq_dec i g); [auto|discriminate]. }
    unfold within in *; destruct m; simpl; lia. }
  apply (Moves V _ r l0 (meet l1) (meet l2)); simpl; auto.
  - intros i Hi Hs Ht; destruct (h1 i Hi Hs Ht) as [I|]; auto. destruct (H i Hi Hs Ht) as [J|]; auto.
  - intros i Hi Hs Ht; destruct (h2 i Hi Hs Ht) as [I|]; auto. destruct (H i Hi Hs) as [J|]; auto; congruence.
Qed.

(** Theorem 7, need(v): a broken target needed at least as many votes beyond the reached ones as the checker says. *)
Theorem need_sound :
  forall (s : settings) (t : target) (q : query) (r : nat -> vote) (P' : nat -> Z) (g : list nat),
    (rule s = ByEdge \/ rule s = ByNode \/ rule s = ByGatedNode) -> (0 < num_classes s)%nat ->
    (forall n, reach_of s (count_target s t) (clip_budget (sparing q)) false = Some n ->
       well_made s t = true -> moves (votes_of s t) n r) ->
    (forall i, (i < groups (votes_of s t))%nat -> stable (votes_of s t) i = true -> tier_of (votes_of s t) i <> Reached ->
       In i g \/ r i = cast (votes_of s t) i) ->
    prior_read s t P' ->
    voted (num_classes s) (groups (votes_of s t)) P' r <> label_of s t ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length g).
Proof.
  intros s t q r P' g R HC M G HP HB.
  assert (O : own_groups s = false) by (unfold own_groups; destruct R as [->|[->| ->]]; auto).
  assert (SOUND : forall n, test (count_target s t) n = true -> (well_made s t = true -> moves (votes_of s t) n r) -> False).
  { intros n Ht Hm. pose proof (test_made _ _ _ Ht) as W. apply HB.
    eapply vote_sound; [apply (test_sound s t W HC n Ht)|intros; apply prior_read_doubt; auto|auto]. }
  unfold need; rewrite O. destruct (reach_of s (count_target s t) (clip_budget (sparing q)) false) as [n|]; [|exists 0; split; auto; lia].
  destruct (test (count_target s t) n) eqn:Et; [exfalso; apply (SOUND n Et); intro; apply M; auto|].
  set (passes := fun x => test (count_target s t) (Reach (all n) (lmin (beyond n) (Some x)) (lmin (unlisted n) (Some x)))).
  assert (Q : exists k, Some (least_failing passes (num_groups s + 1)) = Some k /\ k <= Z.of_nat (length g)).
  { eexists; split; [reflexivity|]. destruct (least_failing_ok passes (num_groups s + 1)) as [E|E]; [lia|].
    destruct (Z.le_gt_cases (least_failing passes (num_groups s + 1)) (Z.of_nat (length g))) as [|K]; auto; exfalso.
    apply (SOUND _ E). intro W; apply (moves_meet _ _ _ g); auto; lia. }
  unfold passes in Q. destruct R as [->|[->| ->]]; exact Q.
Qed.

(** ---- The bound ---- *)

Section Bound.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (s : settings) (file : id -> target) (targets : list id) (q : query).
  Hypothesis nodes : of_graphs s = false.
  Hypothesis once : NoDup targets.
  Let c v := count_target s (file v).
  (** Theorem 7: need(v) of every target, the fewest votes outside S(v) that must change before its label can fall. *)
  Definition needs_of : list lim := map (fun v => need s (c v) q) targets.
  (** Theorem 7: how many targets do not hold one by one. *)
  Definition fails_of : Z := amount id (fun v => negb (holds s (c v) q)) targets.

  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Variable someone : id.   (* any id: a budget is then not negative *)
  Variable broken : list id.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.

  (** Why a target is broken: it is gone, or altered and does not hold; or it is spared and has gained neighbours. *)
  Hypothesis why : forall v, In v broken ->
    (snd q = true /\ In v (removed A)) \/ (snd q = true /\ In v (altered A) /\ holds s (c v) q = false)
    \/ (spares A v /\ exists k, need s (c v) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v))).

  Let gone v := if in_dec id_eq v (removed A) then true else false.
  Let changed_ v := if in_dec id_eq v (altered A) then true else false.
  Let spared_ones := filter (fun v => negb (gone v) && negb (changed_ v)) broken.

  Lemma spared_fit : within (sum id (fun v => match need s (c v) q with Some x => x | None => 0 end) spared_ones) (left_for_new q).
  Proof.
    assert (S0 : forall v, In v spared_ones -> spares A v /\ exists k, need s (c v) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v))).
    { intros v I; apply filter_In in I; destruct I as [I E]; apply andb_prop in E; destruct E as [E1 E2].
      unfold gone, changed_ in *. destruct (in_dec id_eq v (removed A)), (in_dec id_eq v (altered A)); try discriminate.
      destruct (why v I) as [[_ K]|[[_ [K _]]|K]]; auto; contradiction. }
    assert (Q : sum id (fun v => match need s (c v) q with Some x => x | None => 0 end) spared_ones
                <= 2 * Z.of_nat (length (added A)) + Z.of_nat (length (brought A))).
    { transitivity (total_of id (fun v => Z.of_nat (length (gained id id_eq A v))) spared_ones).
      - clear -S0. induction spared_ones as [|v l IH]; [simpl; lia|]. cbn [sum total_of].
        destruct (S0 v (or_introl eq_refl)) as [_ [k [E K]]]; rewrite E.
        assert (sum id (fun v => match need s (c v) q with Some x => x | None => 0 end) l <= total_of id (fun v => Z.of_nat (length (gained id id_eq A v))) l)
          by (apply IH; intros u I; apply S0; right; auto). lia.
      - apply (gained_total id F W id_eq (fun _ => O) A G G' L); [apply NoDup_filter; auto|intros v I; apply S0; auto]. }
    pose proof (affords_clip id_eq _ _ afforded) as Ha.
    pose proof (few_brought_all id F W id_eq A _ G G' someone L Ha) as F2. pose proof (few_added _ _ _ _ Ha) as F1.
    unfold left_for_new, few, within, ladd, lmul in *.
    destruct (add_edges (clip_budget (sparing q))) as [e|]; [|exact I]. destruct (injected_edges (clip_budget (sparing q))) as [x|]; [lia|exact I].
  Qed.

  Lemma few_themselves : snd q = true ->
    within (Z.of_nat (length (filter (fun v => gone v || changed_ v) broken)))
      (ladd (delete_nodes (clip_budget (fst q))) (lmin (ladd (change_features (clip_budget (fst q))) (Some 1)) (Some fails_of))).
  Proof.
    intro Own. set (b1 := filter gone broken). set (b2 := filter (fun v => negb (gone v) && changed_ v) broken).
    assert (E : (length (filter (fun v => gone v || changed_ v) broken) = length b1 + length b2)%nat).
    { unfold b1, b2; clear; induction broken as [|v l IH]; simpl; auto. destruct (gone v), (changed_ v); simpl; lia. }
    assert (L1 : (length b1 <= length (removed A))%nat).
    { apply NoDup_incl_length; [apply NoDup_filter; auto|]. intros v I; apply filter_In in I; destruct I as [_ I]; unfold gone in I.
      destruct (in_dec id_eq v (removed A)); [auto|discriminate]. }
    assert (L2 : (length b2 <= length (altered A))%nat).
    { apply NoDup_incl_length; [apply NoDup_filter; auto|]. intros v I; apply filter_In in I; destruct I as [_ I]; apply andb_prop in I.
      destruct I as [_ I]; unfold changed_ in I. destruct (in_dec id_eq v (altered A)); [auto|discriminate]. }
    assert (L3 : Z.of_nat (length b2) <= fails_of).
    { unfold fails_of. rewrite amount_filter. apply Nat2Z.inj_le, NoDup_incl_length; [apply NoDup_filter; auto|].
      intros v I; apply filter_In in I; destruct I as [I E2]; apply andb_prop in E2; destruct E2 as [E2 E3]; unfold gone, changed_ in *.
      apply filter_In; split; auto. destruct (in_dec id_eq v (removed A)); [discriminate|].
      destruct (in_dec id_eq v (altered A)) as [IA|]; [|discriminate].
      destruct (why v I) as [[_ K]|[[_ [_ K]]|[[_ [_ K]] _]]]; [contradiction|rewrite K; auto|contradiction]. }
    pose proof (few_removed _ _ _ _ afforded) as F1. pose proof (few_altered _ _ _ _ afforded) as F2.
    apply few_clip in F1. unfold sparing in F1, F2; rewrite Own in F1, F2; cbn [delete_nodes change_features] in F1, F2.
    unfold clip_budget; cbn [delete_nodes change_features]. unfold few, within in *. rewrite E.
    assert (F3 : within (Z.of_nat (length b2)) (ladd (clip (change_features (fst q))) (Some 1))).
    { unfold clip, within, ladd in *; destruct (change_features (fst q)) as [x|]; auto. destruct (huge <=? x); auto; lia. }
    unfold within in F3. destruct (clip (delete_nodes (fst q))) as [d|], (ladd (clip (change_features (fst q))) (Some 1)) as [x|]; cbn [ladd lmin]; auto; lia.
  Qed.

  (** Theorem 7: no more targets break than the checker says; p is any number. *)
  Theorem broken_bound p hubs touch_needs p2 :
    (own_groups s = true -> snd q = false -> Z.of_nat (length broken) <= affordable p2 (left_for_touches hubs q) touch_needs) ->
    Z.of_nat (length broken) <= broken_at_most s q (Z.of_nat (length targets)) fails_of needs_of p hubs touch_needs p2.
  Proof.
    intro T2. unfold broken_at_most; rewrite nodes.
    assert (N0 : Z.of_nat (length broken) <= Z.of_nat (length targets)) by (apply Nat2Z.inj_le, NoDup_incl_length; auto).
    assert (B1 : Z.of_nat (length spared_ones) <= affordable p (left_for_new q) needs_of).
    { unfold needs_of. apply (affordable_sound id id_eq (fun v => need s (c v) q) targets spared_ones).
      - exact once.
      - apply NoDup_filter; auto.
      - intros v I; apply filter_In in I; apply among, I.
      - intros v I; apply filter_In in I; destruct I as [I E]; apply andb_prop in E; destruct E as [E1 E2]. unfold gone, changed_ in *.
        destruct (in_dec id_eq v (removed A)), (in_dec id_eq v (altered A)); try discriminate.
        destruct (why v I) as [[_ K]|[[_ [K _]]|[_ [k [K _]]]]]; try contradiction. exists k; auto.
      - exact spared_fit. }
    assert (SP : (length broken = length spared_ones + length (filter (fun v => gone v || changed_ v) broken))%nat).
    { unfold spared_ones; clear; induction broken as [|v l IH]; simpl; auto. destruct (gone v), (changed_ v); simpl; lia. }
    case_eq (snd q); intro Own.
    - cbn [negb]; rewrite andb_false_r. pose proof (few_themselves Own) as FT. unfold within in FT.
      destruct (ladd (delete_nodes (clip_budget (fst q))) _) as [x|]; cbn [ladd cap]; lia.
    - assert (Z0 : length (filter (fun v => gone v || changed_ v) broken) = 0%nat).
      { assert (NO : forall v, In v broken -> gone v || changed_ v = false).
        { intros v I; destruct (why v I) as [[K _]|[[K _]|[[K1 [K2 K3]] _]]]; try congruence. unfold gone, changed_.
          destruct (in_dec id_eq v (removed A)), (in_dec id_eq v (altered A)); auto; contradiction. }
        clear -NO. induction broken as [|v l IH]; auto. cbn [filter]. rewrite (NO v (or_introl eq_refl)). apply IH; intros; apply NO; right; auto. }
      cbn [negb]; rewrite andb_true_r. destruct (own_groups s); cbn [ladd cap].
      + specialize (T2 eq_refl Own). lia.
      + lia.
  Qed.
End Bound.

(** ---- Each division ---- *)

Section Divisions.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (s : settings) (t : target) (q : query) (v : id) (A : attack id) (G G' : graph id F W) (r : nat -> vote) (P' : nat -> Z).
  Hypothesis HC : (0 < num_classes s)%nat.
  Hypothesis L : leads A G G'.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Hypothesis spared : spares A v.
  Hypothesis HP : prior_read s t P'.
  Let T := Z.to_nat (num_groups s).
  Hypothesis HB : voted (num_classes s) T P' r <> label_of s t.

  (** Theorem 7, node-centric: a spared target whose label changed has gained as many neighbours as it needs. *)
  Theorem node_centric_need (h : id -> nat) (f : model id F W) :
    rule s = ByNode -> of_graphs s = false -> local f ->
    faithful id F W T h f v (votes_of s t) G -> reading id F W T h f v G' r ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).
  Proof.
    intros R0 R1 Lf Hf Hr. rewrite <- (map_length (pair_group id id_eq h v) (gained id id_eq A v)).
    apply (need_sound s t q r P'); auto.
    - intros n E M. unfold reach_of in E; rewrite R0, R1 in E.
      destruct (keeps_ids s || is_zero (delete_nodes (clip_budget (sparing q)))); [|discriminate]; simpl in E; injection E as <-.
      pose proof (attack_moves id F W id_eq T h f Lf v A G G' L spared (clip_budget (sparing q)) (affords_clip id_eq _ _ afforded) _ Hf r Hr) as K.
      unfold node_reach in K. rewrite (V_reached s t M HC) in K. exact K.
    - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (map (pair_group id id_eq h v) (gained id id_eq A v))) as [|N]; auto; right.
      apply (cast_ok _ _ _ _ _ _ _ _ _ Hf i Hi Hs). eapply beyond_gained; eauto. apply (tier_ok _ _ _ _ _ _ _ _ _ Hf i Hi Ht).
  Qed.

  (** Theorem 7, edge-centric: the same. *)
  Theorem edge_centric_need (h : id -> id -> nat) (f : model id F W) :
    rule s = ByEdge -> of_graphs s = false -> (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W T h f v (votes_of s t) G -> covers id F W T h v G (row (cover_row t)) -> ereading id F W T h f v G' r ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).
  Proof.
    intros R0 R1 Hh Lf Hf Hc Hr. rewrite <- (map_length (edge_group id h) (gained id id_eq A v)).
    apply (need_sound s t q r P'); auto.
    - intros n E _. unfold reach_of in E; rewrite R0, R1 in E.
      destruct (keeps_ids s || is_zero (delete_nodes (clip_budget (sparing q)))); [|discriminate]; simpl in E; injection E as <-.
      apply (eattack_moves id F W id_eq T h Hh f Lf v A G G' L spared _ _ _ (affords_clip id_eq _ _ afforded) Hf Hc r Hr).
    - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (map (edge_group id h) (gained id id_eq A v))) as [|N]; auto; right.
      apply (ecast_ok _ _ _ _ _ _ _ _ _ Hf i Hi Hs).
      assert (q0 : ~ ereached id F W h v G i) by (apply (etier_ok _ _ _ _ _ _ _ _ _ Hf i Hi Ht)).
      assert (NB : forall x, h x v = i -> listed x v (added A) \/ listed x v (brought A) -> False).
      { intros x Hx P; apply N. unfold gained; rewrite map_app, in_app_iff.
        destruct P as [P|P]; [left|right]; apply (pair_edge id h Hh i x v); auto; apply listed_at; auto. }
      apply (only_edges id F W h f Lf v G G' i (r i)); auto.
      + apply (before_ok _ _ _ _ _ _ L).
      + apply (after_ok _ _ _ _ _ _ L).
      + apply (spared_node id F W A); auto.
      + intros [x [a|a]]; destruct (esub_arc _ _ _ _ _ _ _ _ a) as [Hx a'].
        * assert (Z0 : ~ arc G x v <> None) by (intro E; apply q0; exists x; left; rewrite esub_in; auto).
          destruct (arcs_ok _ _ _ _ _ _ L x v) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]]; try contradiction; [rewrite P in a'; contradiction| |]; apply (NB x); auto.
        * assert (Z0 : ~ arc G v x <> None) by (intro E; apply q0; exists x; right; rewrite esub_in; auto).
          destruct (arcs_ok _ _ _ _ _ _ L v x) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]]; try contradiction; [rewrite P in a'; contradiction| |];
            apply (NB x); rewrite ?(Hh x v); auto; [left|right]; unfold listed in *; tauto.
  Qed.

  (** Theorem 7, gated features: the same, for a target that is spared. *)
  Theorem gated_need (h : id -> nat) (f : model id (option F) W) :
    rule s = ByGatedNode -> of_graphs s = false -> local f ->
    tfaithful id F W T h f v (votes_of s t) G -> treading id F W T h f v G' r -> node G v <> None -> node G' v <> None ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).
  Proof.
    intros R0 R1 Lf Hf Hr h1 h2. rewrite <- (map_length (pair_group id id_eq h v) (gained id id_eq A v)).
    destruct spared as [v1 [v2 v3]].
    assert (EB : but_target id id_eq v A = A).
    { unfold but_target. rewrite notin_remove by auto. destruct A; auto. }
    apply (need_sound s t q r P'); auto.
    - intros n E M. unfold reach_of in E; rewrite R0, R1 in E.
      destruct (keeps_ids s || is_zero (delete_nodes (clip_budget (sparing q)))); [|discriminate]; simpl in E; injection E as <-.
      assert (K : moves (votes_of s t) (gated_reach false (votes_of s t) (clip_budget (sparing q))) r).
      { eapply (gated_moves id F W id_eq T h f Lf v false A G G'); eauto; rewrite EB; [apply (arcs_ok _ _ _ _ _ _ L)|apply affords_clip; auto]. }
      unfold gated_reach in K. rewrite (V_reached s t M HC) in K. exact K.
    - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (map (pair_group id id_eq h v) (gained id id_eq A v))) as [|N]; auto; right.
      apply (tcast_ok _ _ _ _ _ _ _ _ _ Hf i Hi Hs).
      apply (beyond_gained id F W id_eq h (gated id F W h f i) (gated_local id F W h f Lf i) A G G' L v i (r i)); auto.
      apply (ttier_ok _ _ _ _ _ _ _ _ _ Hf i Hi Ht).
  Qed.
End Divisions.
