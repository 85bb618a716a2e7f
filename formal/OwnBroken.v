(** How many targets one attacked graph breaks where every neighbour, or pair, has a group of its own (docs/proofs.md, Theorem 9, "Many
    targets"): need(v) in new neighbours, and the second sum with need2(v) in new, removed and altered votes. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates
  CoverTable Broken.
Import ListNotations.
Open Scope Z_scope.

(** Theorem 9, many targets: a broken target needed at least as many new votes, and at least as many votes touched, as the checker says. *)
Theorem own_need_sound :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (q : query) (V : own_votes key)
         (S' : list key) (r : key -> vote) (P' : nat -> Z) (new rem alt turn : list key) (g x : Z) (n : touches),
    own_groups s = true -> (0 < num_classes s)%nat ->
    touches_of s (count_target s t) (clip_budget (sparing q)) false = Some n ->
    numbered t V -> NoDup (cast_by _ V) -> NoDup S' -> own_changes key V S' r new rem alt turn ->
    few (new ++ turn) (t_new n) -> few (rem ++ alt) (t_touched n) -> few alt (t_altered n) -> few turn (t_turned n) ->
    Z.of_nat (length (new ++ turn)) <= g -> Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
    own_prior_read s t P' ->
    own_voted key (num_classes s) P' (empty_casts s) S' r <> label_of s t ->
    (exists k, need s (count_target s t) q = Some k /\ k <= g) /\ (exists k, touch_need s (count_target s t) q = Some k /\ k <= x).
Proof.
  intros key key_eq s t q V S' r P' new rem alt turn g x n O HC E N NV NS M f1 f2 f3 f4 Lg Lx HP HB.
  assert (DP : forall k, (k < num_classes s)%nat -> k <> label_of s t ->
             own_prior s t (label_of s t) - own_prior s t k - prior_doubt s t <= P' (label_of s t) - P' k).
  { intros; apply own_prior_read_doubt; auto. }
  assert (SOUND : forall m, own_test (empty_casts s) (count_target s t) m = true ->
     few (new ++ turn) (t_new m) -> few (rem ++ alt) (t_touched m) -> few alt (t_altered m) -> few turn (t_turned m) -> False).
  { intros m Ht g1 g2 g3 g4. apply HB.
    pose proof (own_test_sound s t (own_test_made _ _ _ _ Ht) HC O m Ht) as K. rewrite label_counted in K.
    apply (own_vote_sound key key_eq V _ (own_prior s t) P' (prior_doubt s t) _ _ m S' r); auto; [eapply numbered_withstands; eauto|].
    apply (OwnMoves key V m S' r new rem alt turn); auto. }
  destruct (own_test (empty_casts s) (count_target s t) n) eqn:Et; [exfalso; apply (SOUND n); auto|]. split.
  - unfold need; rewrite O, E, Et. eexists; split; [reflexivity|].
    match goal with |- least_failing ?p _ <= _ => set (passes := p) end.
    destruct (least_failing_ok passes large) as [K|K]; [rewrite K; lia|].
    destruct (Z.le_gt_cases (least_failing passes large) g) as [|Q]; [auto|exfalso].
    set (k := least_failing passes large) in *. unfold passes in K. apply (SOUND _ K); cbn [t_new t_touched t_altered t_turned]; auto.
    + unfold few, within in *; destruct (t_new n); simpl; lia.
    + unfold few, within in *; rewrite app_length in Lg; destruct (t_turned n); simpl; lia.
  - unfold touch_need; rewrite E, Et. eexists; split; [reflexivity|].
    set (passes := touch_test (empty_casts s) n (count_target s t)).
    destruct (least_failing_ok passes large) as [K|K]; [rewrite K; lia|].
    destruct (Z.le_gt_cases (least_failing passes large) x) as [|Q]; [auto|exfalso]. apply HB.
    unfold passes in K. assert (W : well_made s t = true) by (unfold touch_test in K; apply andb_prop in K; apply K).
    pose proof (touch_test_sound s t W HC O n _ K) as R. rewrite label_counted in R.
    apply (own_touches_sound key key_eq V (num_classes s) (own_prior s t) P' (prior_doubt s t) (empty_casts s) n (label_of s t)
             (least_failing passes large - 1) S' r new rem alt turn); auto; [eapply numbered_touches; eauto|lia].
Qed.

Section OwnBroken.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.

  (** The pairs of a list that have v as an end. *)
  Definition here (v : id) (l : list (id * id)) : list (id * id) := filter (at_ id id_eq v) l.
  (** Deleted and altered nodes, one that is both counted once. *)
  Definition touched_ids : list id := nodup id_eq (altered A ++ removed A).
  (** The changes at v: pairs of v, and deleted or altered neighbours. *)
  Definition changes_at (v : id) (S : list id) : Z :=
    Z.of_nat (length (here v (brought A)) + length (here v (added A)) + length (here v (deleted A)) + length (here v (changed A))
              + length (filter (fun u => mem id id_eq u S) touched_ids)).

  Section Target.
    Variable v : id.
    Hypothesis spared : spares A v.
    Variable V : own_votes id.
    Notation other := (other id id_eq v).
    Let S := cast_by id V.
    (** Altered votes of v: of altered neighbours and changed pairs. *)
    Definition fine_alt : list id :=
      filter (fun u => mem id id_eq u (altered A) && mem id id_eq u S) touched_ids ++ map other (here v (changed A)).
    (** Votes of v that go: of deleted neighbours and deleted pairs. *)
    Definition fine_rem : list id :=
      filter (fun u => negb (mem id id_eq u (altered A)) && mem id id_eq u S) touched_ids ++ map other (here v (deleted A)).
    (** Injected neighbours of v, each once. *)
    Definition fine_brought : list id := nodup id_eq (map other (here v (brought A))).

    Lemma other_here u l : u <> v -> listed u v l -> In u (map other (here v l)).
    Proof. intros N P; apply (other_in id id_eq v); auto; apply listed_at; auto. Qed.

    Lemma here_le l : (length (here v l) <= length l)%nat.
    Proof. unfold here; induction l as [|p l IH]; simpl; auto; destruct (at_ id id_eq v p); simpl; lia. Qed.

    Lemma brought_few B : affords id_eq B A -> few fine_brought (joined_nodes B).
    Proof.
      intro Ha. pose proof (few_joined id F W id_eq A B G G' v L Ha) as J.
      assert (K : (length fine_brought <= length (joined A))%nat).
      { apply NoDup_incl_length; [apply NoDup_nodup|]. intros u I; apply nodup_In, in_map_iff in I; destruct I as [[x y] [E I]].
        apply filter_In in I; destruct I as [I Av]. unfold PerNeighbour.other, at_ in *; simpl in *.
        pose proof (joined_in id F W A G G' x y L I) as Jx. pose proof (brings_ok _ _ _ _ _ _ L x y I) as Bx.
        destruct (id_eq y v); [subst; auto|]. destruct (id_eq x v) as [->|]; [|discriminate]. exfalso; apply (proj1 spared); auto. }
      revert J; unfold few, within; destruct (joined_nodes B); auto; lia.
    Qed.
    Lemma brought_le : (length fine_brought <= length (here v (brought A)))%nat.
    Proof.
      rewrite <- (map_length other). apply NoDup_incl_length; [apply NoDup_nodup|]. intros u I; apply nodup_In in I; auto.
    Qed.

    Lemma split_touched : (length (filter (fun u => mem id id_eq u (altered A) && mem id id_eq u S) touched_ids)
        + length (filter (fun u => negb (mem id id_eq u (altered A)) && mem id id_eq u S) touched_ids)
        = length (filter (fun u => mem id id_eq u S) touched_ids))%nat.
    Proof.
      generalize touched_ids as l; induction l as [|u l IH]; simpl; auto.
      destruct (mem id id_eq u (altered A)), (mem id id_eq u S); simpl; lia.
    Qed.
    Lemma touched_le : (length (filter (fun u => mem id id_eq u S) touched_ids) <= length (removed A) + length (altered A))%nat.
    Proof.
      assert (length (filter (fun u => mem id id_eq u S) touched_ids) <= length (altered A ++ removed A))%nat.
      { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros u I; apply filter_In in I; destruct I as [I _]; apply nodup_In in I; auto. }
      rewrite app_length in H; lia.
    Qed.
    Lemma alt_le : (length (filter (fun u => mem id id_eq u (altered A) && mem id id_eq u S) touched_ids) <= length (altered A))%nat.
    Proof.
      apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros u I; apply filter_In in I; destruct I as [_ I].
      apply andb_prop in I; apply (mem_true id id_eq); apply I.
    Qed.

    Lemma fine_few B : affords id_eq B A ->
      few (fine_rem ++ fine_alt) (t_touched (own_touches B)) /\ few fine_alt (t_altered (own_touches B)).
    Proof.
      intros [f1 f2 f3 f4 f5 f6 f7 f8]. pose proof split_touched as E; pose proof touched_le as T; pose proof alt_le as T2.
      pose proof (here_le (deleted A)) as D; pose proof (here_le (changed A)) as C.
      unfold few, within, own_touches, fine_rem, fine_alt in *; simpl; rewrite !app_length, !map_length.
      split; destruct (delete_nodes B), (delete_edges B), (change_features B), (change_edges B); simpl; auto; lia.
    Qed.

    Lemma fine_in_alt u : In u S -> In u (altered A) -> In u fine_alt.
    Proof.
      intros I J; apply in_app_iff; left; apply filter_In; split; [apply nodup_In, in_app_iff; auto|].
      apply andb_true_intro; split; apply mem_true; auto.
    Qed.
    Lemma fine_in_rem u : In u S -> In u (removed A) -> ~ In u (altered A) -> In u fine_rem.
    Proof.
      intros I J K; apply in_app_iff; left; apply filter_In; split; [apply nodup_In, in_app_iff; auto|].
      apply andb_true_intro; split; [|apply mem_true; auto]. apply negb_true_iff, not_true_iff_false; rewrite mem_true; auto.
    Qed.

    Variables (s : settings) (t : target) (q : query) (S' : list id) (r : id -> vote) (P' : nat -> Z).
    Hypothesis HC : (0 < num_classes s)%nat.
    Hypothesis nodes : of_graphs s = false.
    Hypothesis afforded : affords id_eq (sparing q) A.
    Hypothesis named : numbered t V.
    Hypothesis HP : own_prior_read s t P'.
    Hypothesis HB : own_voted id (num_classes s) P' (empty_casts s) S' r <> label_of s t.

    (** Theorem 9, many targets: a broken target has gained the neighbours that it needs, and has the changes that it needs. *)
    Definition both_needs : Prop :=
      (exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)))
      /\ (exists k, touch_need s (count_target s t) q = Some k /\ k <= changes_at v S).

    (** Theorem 9, many targets, a group for each neighbour: a broken target had both its needs. *)
    Theorem per_neighbour_need (f : model id F W) :
      rule s = ByNeighbour -> local f -> ofaithful id F W id_eq f v V G -> oreading id F W id_eq f v G' S' r -> both_needs.
    Proof.
      intros R0 Lf Hf Hr. pose proof (affords_clip id_eq _ _ afforded) as Ha. pose proof (fine_few _ Ha) as [F1 F2].
      pose proof brought_le as BL. pose proof split_touched as SP.
      apply (own_need_sound id id_eq s t q V S' r P' (fine_brought ++ map other (here v (added A))) fine_rem fine_alt []
               _ _ (own_touches (clip_budget (sparing q)))); auto.
      - unfold own_groups; rewrite R0; auto.
      - unfold touches_of; rewrite R0, nodes; auto.
      - apply (olists_ok _ _ _ _ _ _ _ _ Hf).
      - apply Hr.
      - apply (own_attack_changes id F W id_eq f Lf v A G G' L L2 spared V S' r Hf Hr). split.
        + intros u N [P|P]; apply in_app_iff; [left; apply nodup_In|right]; apply other_here; auto.
        + exact fine_in_rem.
        + intros u N P; apply in_app_iff; right; apply other_here; auto.
        + exact fine_in_alt.
        + intros u N P; apply in_app_iff; right; apply other_here; auto.
      - rewrite app_nil_r. apply few_app; [apply brought_few; auto|]. pose proof (few_added _ _ _ _ Ha) as H.
        pose proof (here_le (added A)). revert H; unfold few, within; rewrite map_length; destruct (add_edges _); auto; lia.
      - unfold few; simpl; lia.
      - unfold gained; fold (here v (added A)) (here v (brought A)). rewrite app_nil_r, !app_length, map_length; lia.
      - unfold changes_at, fine_rem, fine_alt. fold S. rewrite !app_length, !map_length; cbn [length]; lia.
    Qed.

    Hypothesis L3 : deletes_pairs A G'.
    (** Theorem 9, many targets, a group for each pair: the same. *)
    Theorem per_pair_need (f : model id F W) :
      rule s = ByPair -> local_undirected f -> pfaithful id F W id_eq f v V G -> preading id F W id_eq f v G' S' r -> both_needs.
    Proof.
      intros R0 Lf Hf Hr. pose proof (affords_clip id_eq _ _ afforded) as Ha. pose proof (fine_few _ Ha) as [F1 F2].
      pose proof brought_le as BL. pose proof split_touched as SP.
      set (turns_ := turns id id_eq v A V).
      pose proof (split_filter turns_ (map other (here v (added A)))) as ST. rewrite map_length in ST. pose proof (here_le (added A)) as HA.
      apply (own_need_sound id id_eq s t q V S' r P' (fine_brought ++ filter (fun u => negb (turns_ u)) (map other (here v (added A)))) fine_rem fine_alt
               (filter turns_ (map other (here v (added A)))) _ _ (pair_touches (clip_budget (sparing q)))); auto.
      - unfold own_groups; rewrite R0; auto.
      - unfold touches_of; rewrite R0, nodes; auto.
      - apply (plists_ok _ _ _ _ _ _ _ _ Hf).
      - apply Hr.
      - apply (pair_attack_changes id F W id_eq f Lf v A G G' L L2 L3 spared V S' r Hf Hr). split; intros.
        + apply in_app_iff; left; apply nodup_In, other_here; auto.
        + apply in_app_iff; right; apply filter_In; split; [apply other_here; auto|unfold turns_; rewrite H1; auto].
        + apply filter_In; split; [apply other_here; auto|auto].
        + apply fine_in_rem; auto.
        + apply in_app_iff; right; apply other_here; auto.
        + apply fine_in_alt; auto.
        + apply in_app_iff; right; apply other_here; auto.
        + apply filter_In in H; apply H.
      - pose proof (few_app _ _ _ _ (brought_few _ Ha) (few_map other _ _ (few_added _ _ _ _ Ha))) as H.
        revert H; unfold few, within, pair_touches; simpl; rewrite !app_length, map_length.
        destruct (ladd _ _); auto; lia.
      - pose proof (few_added _ _ _ _ Ha) as H. revert H; unfold few, within, pair_touches; cbn [t_turned]. destruct (add_edges (clip_budget (sparing q))); auto; lia.
      - unfold gained; fold (here v (added A)) (here v (brought A)). rewrite !app_length; lia.
      - unfold changes_at, fine_rem, fine_alt. fold S. rewrite !app_length, !map_length; lia.
    Qed.
  End Target.

  (** ---- The second sum ---- *)

  Variables (targets broken : list id) (neighbours : id -> list id).   (* S of each target *)
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.
  Hypothesis all_spared : forall v, In v broken -> spares A v.

  (** The targets next to w. *)
  Definition next_to (w : id) : list id := filter (fun v => mem id id_eq w (neighbours v)) targets.

  (** N: [hubs] are the numbers of targets next to each node, the largest first; zeros may be left out. *)
  Variables (hubs : list Z) (ids : list id).
  Hypothesis ids_once : NoDup ids.
  Hypothesis hubs_are : Permutation hubs (map (fun w => Z.of_nat (length (next_to w))) ids).
  Hypothesis hubs_descend : descends hubs.
  Hypothesis hubs_all : forall w, In w touched_ids -> next_to w <> [] -> In w ids.

  Lemma sum_first_is k l : forall n, sum_first k l n = n + match k with None => CoverTable.total l | Some j => largest (Z.to_nat j) l end.
  Proof.
    revert k; induction l as [|x l IH]; intros k n; [simpl; destruct k as [j|]; unfold largest; rewrite ?firstn_nil; simpl; lia|].
    cbn [sum_first]. destruct k as [j|].
    - destruct (Z.leb_spec j 0); [replace (Z.to_nat j) with 0%nat by lia; unfold largest; simpl; lia|].
      rewrite IH. replace (Z.to_nat j) with (Datatypes.S (Z.to_nat (j - 1))) by lia. unfold largest; cbn [firstn CoverTable.total]; lia.
    - rewrite IH; cbn [CoverTable.total]; lia.
  Qed.

  Lemma swap l : total_of id (fun v => Z.of_nat (length (filter (fun u => mem id id_eq u (neighbours v)) l))) broken
    <= Z.of_nat (length (flat_map next_to l)).
  Proof.
    induction l as [|w l IH].
    - simpl; clear; induction broken; simpl; lia.
    - cbn [flat_map]; rewrite app_length, Nat2Z.inj_add.
      assert (E : total_of id (fun v => Z.of_nat (length (filter (fun u => mem id id_eq u (neighbours v)) (w :: l)))) broken
        = total_of id (fun v => if mem id id_eq w (neighbours v) then 1 else 0) broken
          + total_of id (fun v => Z.of_nat (length (filter (fun u => mem id id_eq u (neighbours v)) l))) broken).
      { clear; induction broken as [|v m IH]; [reflexivity|]. cbn [total_of]; rewrite IH; cbn [filter].
        destruct (mem id id_eq w (neighbours v)); cbn [length]; lia. }
      assert (K : total_of id (fun v => if mem id id_eq w (neighbours v) then 1 else 0) broken <= Z.of_nat (length (next_to w))).
      { assert (Q : total_of id (fun v => if mem id id_eq w (neighbours v) then 1 else 0) broken
                    = Z.of_nat (length (filter (fun v => mem id id_eq w (neighbours v)) broken))).
        { clear; induction broken as [|v m IH]; [reflexivity|]. cbn [total_of filter]; rewrite IH. destruct (mem id id_eq w (neighbours v)); cbn [length]; lia. }
        rewrite Q; apply Nat2Z.inj_le, NoDup_incl_length; [apply NoDup_filter; auto|].
        intros v I; apply filter_In in I; apply filter_In; split; [apply among|]; apply I. }
      rewrite E; lia.
  Qed.

  Lemma next_to_touched B : affords id_eq B A ->
    Z.of_nat (length (flat_map next_to touched_ids)) <= sum_first (touched_nodes B) hubs 0.
  Proof.
    intro Ha. rewrite sum_first_is, Z.add_0_l.
    set (ws := filter (fun w => if in_dec id_eq w ids then true else false) touched_ids).
    assert (E : forall l, (forall w, In w l -> next_to w <> [] -> In w ids) ->
       length (flat_map next_to l) = length (flat_map next_to (filter (fun w => if in_dec id_eq w ids then true else false) l))).
    { clear; induction l as [|w l IH]; intro H; simpl; auto. rewrite app_length, IH by (intros; apply H; [right|]; auto).
      destruct (in_dec id_eq w ids) as [|N]; simpl; [rewrite app_length; auto|].
      destruct (next_to w) eqn:En; auto. exfalso; apply N, H; [left; auto|rewrite En; discriminate]. }
    rewrite (E touched_ids hubs_all). fold ws.
    assert (NW : NoDup ws) by (apply NoDup_filter, NoDup_nodup).
    assert (IW : incl ws ids).
    { intros w I; apply filter_In in I; destruct I as [_ I]; destruct (in_dec id_eq w ids); [auto|discriminate]. }
    pose proof (some_reach id id id_eq next_to ids hubs ids_once hubs_are hubs_descend ws NW IW) as K.
    assert (LW : (length ws <= length (removed A) + length (altered A))%nat).
    { assert (length ws <= length (altered A ++ removed A))%nat.
      { apply NoDup_incl_length; auto. intros w I; apply filter_In in I; destruct I as [I _]; apply nodup_In in I; auto. }
      rewrite app_length in H; lia. }
    pose proof (few_app _ _ _ _ (few_removed _ _ _ _ Ha) (few_altered _ _ _ _ Ha)) as FN.
    unfold few, within in FN; rewrite app_length in FN. change (ladd (delete_nodes B) (change_features B)) with (touched_nodes B) in FN.
    destruct (touched_nodes B) as [j|].
    - pose proof (largest_mono hubs (length ws) (Z.to_nat j) hubs_descend ltac:(lia)). lia.
    - assert (largest (length ws) hubs <= CoverTable.total hubs); [|lia].
      assert (T0 : CoverTable.total hubs = largest (length hubs) hubs) by (unfold largest; rewrite firstn_all; auto).
      rewrite T0. destruct (Nat.le_gt_cases (length ws) (length hubs)) as [Q|Q]; [apply largest_mono; auto|].
      unfold largest; rewrite !firstn_all2 by lia; lia.
  Qed.

  Variable q : query.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Variable someone : id.   (* any id: a budget is then not negative *)

  (** Theorem 9, many targets: the changes at all broken targets together are at most 2 (e+ + e- + e~) + A tau + N(d + r). *)
  Theorem changes_fit : within (total_of id (fun v => changes_at v (neighbours v)) broken) (left_for_touches hubs q).
  Proof.
    pose proof (affords_clip id_eq _ _ afforded) as Ha.
    pose proof (next_to_touched _ Ha) as NT. pose proof (swap touched_ids) as SW.
    assert (T2 : forall l, total_of id (fun v => Z.of_nat (length (here v l))) broken <= 2 * Z.of_nat (length l)).
    { intro l; apply (total_filter id id_eq l broken 2). intros p _; apply total_at; auto. }
    assert (T1 : total_of id (fun v => Z.of_nat (length (here v (brought A)))) broken <= 1 * Z.of_nat (length (brought A))).
    { apply (total_filter id id_eq (brought A) broken 1). intros [x y] I; apply (total_brought id id_eq (fun _ => O)); auto. simpl; intro J.
      apply (proj1 (all_spared x J)), (brings_ok _ _ _ _ _ _ L x y I). }
    pose proof (T2 (added A)); pose proof (T2 (deleted A)); pose proof (T2 (changed A)).
    assert (E : total_of id (fun v => changes_at v (neighbours v)) broken
       = total_of id (fun v => Z.of_nat (length (here v (brought A)))) broken + total_of id (fun v => Z.of_nat (length (here v (added A)))) broken
         + total_of id (fun v => Z.of_nat (length (here v (deleted A)))) broken + total_of id (fun v => Z.of_nat (length (here v (changed A)))) broken
         + total_of id (fun v => Z.of_nat (length (filter (fun u => mem id id_eq u (neighbours v)) touched_ids))) broken).
    { unfold changes_at; clear; induction broken as [|v l IH]; [reflexivity|]; cbn [total_of]; rewrite IH; lia. }
    pose proof (few_brought_all id F W id_eq A _ G G' someone L Ha) as F2.
    pose proof (few_added _ _ _ _ Ha) as F1. pose proof (few_deleted _ _ _ _ Ha) as F3. pose proof (few_changed _ _ _ _ Ha) as F4.
    unfold left_for_touches, touched_edges, few, within, ladd, lmul in *. rewrite E.
    destruct (add_edges (clip_budget (sparing q))) as [e|]; [|exact I]. destruct (delete_edges (clip_budget (sparing q))) as [e1|]; [|exact I].
    destruct (change_edges (clip_budget (sparing q))) as [e2|]; [|exact I].
    destruct (injected_edges (clip_budget (sparing q))) as [x|]; [lia|exact I].
  Qed.

  (** Theorem 9, many targets: both sums. Every broken target has its two needs, from [per_neighbour_need] or [per_pair_need]. *)
  Theorem own_broken_bound (s : settings) (file : id -> target) (p p2 : Z) :
    of_graphs s = false -> snd q = false ->
    (forall v, In v broken ->
       (exists k, need s (count_target s (file v)) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)))
       /\ (exists k, touch_need s (count_target s (file v)) q = Some k /\ k <= changes_at v (neighbours v))) ->
    Z.of_nat (length broken) <= broken_at_most s q (Z.of_nat (length targets)) (fails_of id s file targets q)
      (needs_of id s file targets q) p hubs (map (fun v => touch_need s (count_target s (file v)) q) targets) p2.
  Proof.
    intros nodes Own H.
    apply (broken_bound id F W id_eq s file targets q nodes once A G G' L afforded someone broken broken_once among).
    - intros v I; right; right; split; auto. apply (H v I).
    - intros _ _. apply (affordable_sound id id_eq (fun v => touch_need s (count_target s (file v)) q) targets broken); auto.
      + intros v I; destruct (H v I) as [_ [k [E _]]]; exists k; auto.
      + pose proof changes_fit as CF.
        assert (Q : sum id (fun v => match touch_need s (count_target s (file v)) q with Some x => x | None => 0 end) broken
                    <= total_of id (fun v => changes_at v (neighbours v)) broken).
        { clear -H. induction broken as [|v l IH]; [simpl; lia|]. cbn [sum total_of].
          destruct (H v (or_introl eq_refl)) as [_ [k [E K]]]; rewrite E.
          assert (sum id (fun v => match touch_need s (count_target s (file v)) q with Some x => x | None => 0 end) l
                  <= total_of id (fun v => changes_at v (neighbours v)) l) by (apply IH; intros u I; apply H; right; auto). lia. }
        unfold within in *; destruct (left_for_touches hubs q); [lia|exact I].
  Qed.
End OwnBroken.
