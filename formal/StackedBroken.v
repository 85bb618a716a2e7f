(** How many targets one attacked graph breaks, of stacked votes (docs/proofs.md, Theorem 10, "Many targets"): a broken target was touched as often as its
    radius says, and once more; a pair touches two targets, a node those that it is next to. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates CoverTable Broken
  OwnBroken StackedVote StackedChecker StackedProofs StackedGraph.
Import ListNotations.
Open Scope Z_scope.

Section StackedBroken.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.
  Hypothesis L3 : deletes_pairs A G'.
  Variable s : stacked_settings.
  Hypothesis one_level : x_second s = 0.
  Hypothesis some_class : (0 < x_classes s)%nat.
  Variable q : query.
  Hypothesis spared_features : snd q = false.
  Hypothesis afforded : affords id_eq (fst q) A.

  (** The changes at v: pairs of v, and deleted or altered neighbours. Changed pairs count if votes read edges. *)
  Definition touches_at (v : id) (N : list id) : Z :=
    Z.of_nat (length (here id id_eq v (brought A)) + length (here id id_eq v (added A)) + length (here id id_eq v (deleted A))
              + (if x_by_edge s then length (here id id_eq v (changed A)) else 0) + length (filter (fun u => mem id id_eq u N) (touched_ids id id_eq A))).

  Section Target.
    Variables (v : id) (reads : graph -> id -> (nat -> Z) -> Prop) (t : stacked_target) (V : stacked_votes id).
    Variables (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z) (radius structure : Z).
    Hypothesis spared : spares A v.
    Hypothesis L4 : only_deletions_separate id F W v A G G'.
    Hypothesis same : stands_for V s t.
    Hypothesis model : stacked_model id F W v vote_steps reads (by_edge _ V).
    Hypothesis faithful : sfaithful id F W v vote_steps reads V G.
    Hypothesis read : sreading id F W v reads G' N' b.
    Hypothesis machine : stacked_reading id V p g.
    Let c := count_stacked s t.
    Hypothesis made : y_made c = true.
    Hypothesis radius_right : right_stacked_radius s c radius = true.
    Hypothesis structure_right : right_stacked_structure s c structure = true.
    Hypothesis is_broken : stacked_label id V (x_classes s) p g N' b <> y_label c.
    Notation other := (other id id_eq v).
    Let N := neighbours id V.
    Let stays := stays_joined id id_eq v A V.

    Let f_new : list id := nodup id_eq (map other (here id id_eq v (brought A))) ++ filter (fun u => negb (stays u)) (map other (here id id_eq v (added A))).
    Let f_turn : list id := filter stays (map other (here id id_eq v (added A))).
    Let gone_ (u : id) : bool := mem id id_eq u (removed A) && mem id id_eq u N.
    Let alt_ (u : id) : bool := negb (mem id id_eq u (removed A)) && mem id id_eq u N.
    Let f_rem : list id := filter gone_ (touched_ids id id_eq A) ++ map other (here id id_eq v (deleted A)).
    Let f_alt : list id := filter alt_ (touched_ids id id_eq A) ++ (if x_by_edge s then map other (here id id_eq v (changed A)) else []).

    Lemma fine_lists : stacked_lists id id_eq v A V f_new f_rem f_alt f_turn.
    Proof.
      assert (TI : forall u, In u (touched_ids id id_eq A) <-> In u (altered A) \/ In u (removed A)) by (intro u; unfold touched_ids; rewrite nodup_In, in_app_iff; tauto).
      split; intros.
      - apply in_app_iff; left; apply nodup_In, other_here; auto.
      - apply in_app_iff; right; apply filter_In; split; [apply other_here; auto|unfold stays; rewrite H1; auto].
      - apply filter_In; split; [apply other_here; auto|auto].
      - apply in_app_iff; left; apply filter_In; split; [apply TI; auto|]. unfold gone_. apply andb_true_intro; split; apply mem_true; auto.
      - apply in_app_iff; right; apply other_here; auto.
      - apply in_app_iff; left; apply filter_In; split; [apply TI; auto|]. unfold alt_. apply andb_true_intro; split; [|apply mem_true; auto].
        apply negb_true_iff, not_true_iff_false; rewrite mem_true; auto.
      - apply in_app_iff; right. rewrite <- (f_by_edge _ _ _ same), H0. apply other_here; auto.
    Qed.

    Lemma fine_total : Z.of_nat (length (f_new ++ f_turn)) + Z.of_nat (length f_rem) + Z.of_nat (length f_alt) <= touches_at v N.
    Proof.
      assert (B : (length (nodup id_eq (map other (here id id_eq v (brought A)))) <= length (here id id_eq v (brought A)))%nat).
      { rewrite <- (map_length other). apply NoDup_incl_length; [apply NoDup_nodup|]. intros u I; apply nodup_In in I; auto. }
      pose proof (split_filter stays (map other (here id id_eq v (added A)))) as ST. rewrite map_length in ST.
      assert (SP : forall l, (length (filter gone_ l) + length (filter alt_ l) = length (filter (fun u => mem id id_eq u N) l))%nat).
      { unfold gone_, alt_. clear; induction l as [|u l IH]; simpl; auto. destruct (mem id id_eq u (removed A)), (mem id id_eq u N); simpl; lia. }
      specialize (SP (touched_ids id id_eq A)). unfold touches_at, f_new, f_turn, f_rem, f_alt. rewrite !app_length, !map_length.
      destruct (x_by_edge s); [rewrite map_length|cbn [length]]; lia.
    Qed.

    (** Theorem 10, many targets: a broken target was touched as often as the checker says. *)
    Theorem stacked_need_sound : exists x, stacked_need s c q radius structure = Some x /\ x <= touches_at v N.
    Proof.
      assert (M : sensible_file s t = true) by exact made.
      pose proof (attack_changes id F W id_eq v vote_steps reads A G G' L L2 L3 L4 spared V N' b (y_label c) model faithful read _ _ _ _ fine_lists) as CH.
      unfold stacked_need. destruct (stacked_holds s c q) eqn:H.
      { exfalso. apply is_broken. destruct q as [B own]; cbn [snd fst] in *.
        eapply (stacked_certificate id F W id_eq v reads s t V G B own some_class one_level same H model faithful G' N' b p g); auto.
        exists A; repeat (split; auto). }
      eexists; split; [reflexivity|]. pose proof fine_total as FT.
      assert (NN : forall l : list id, 0 <= Z.of_nat (length l)) by (intro; lia).
      set (B := clip_budget (fst (without_changes s q))).
      destruct (is_zero (change_features B) && is_zero (change_edges B)) eqn:EZ.
      - destruct (Z.le_gt_cases (structure + 1) (touches_at v N)) as [|Q]; auto. exfalso. apply is_broken.
        unfold right_stacked_structure, is_largest in structure_right. rewrite one_level in structure_right; cbn [Z.eqb] in structure_right.
        destruct (Z.ltb_spec structure 0) as [X|X]; [pose proof (NN (f_new ++ f_turn)); pose proof (NN f_rem); pose proof (NN f_alt); lia|].
        apply andb_prop in structure_right; destruct structure_right as [S1 _]. apply andb_prop in S1; destruct S1 as [_ S1].
        eapply (stacked_test_sound id id_eq V s t same M some_class true); [exact S1|exact machine|exact CH|].
        assert (Z0 : f_alt = []).
        { apply andb_prop in EZ; destruct EZ as [Z1 Z2]. unfold B, without_changes in Z1, Z2; cbn [clip_budget change_features change_edges fst] in Z1, Z2.
          assert (E1 : altered A = []).
          { pose proof (few_altered _ _ _ _ (affords_clip id_eq _ _ afforded)) as F7. cbn [clip_budget change_features] in F7. unfold is_zero in Z1. destruct (clip (change_features (fst q))) as [m|]; [|discriminate].
            apply Z.leb_le in Z1. unfold few in F7; simpl in F7. destruct (altered A); auto; simpl in F7; lia. }
          assert (E2 : x_by_edge s = true -> changed A = []).
          { intro E; rewrite E in Z2. pose proof (few_changed _ _ _ _ (affords_clip id_eq _ _ afforded)) as F3. cbn [clip_budget change_edges] in F3. unfold is_zero in Z2. destruct (clip (change_edges (fst q))) as [m|]; [|discriminate].
            apply Z.leb_le in Z2. unfold few in F3; simpl in F3. destruct (changed A); auto; simpl in F3; lia. }
          unfold f_alt. assert (E3 : filter alt_ (touched_ids id id_eq A) = []).
          { assert (K : forall u, In u (touched_ids id id_eq A) -> alt_ u = false).
            { intros u I; unfold touched_ids in I; rewrite E1 in I; simpl in I; apply nodup_In in I. unfold alt_. apply (mem_true id id_eq) in I; rewrite I; auto. }
            revert K; generalize (touched_ids id id_eq A) as l; induction l as [|u l IH]; intro K; simpl; auto. rewrite (K u (or_introl eq_refl)). apply IH; intros; apply K; right; auto. }
          rewrite E3. destruct (x_by_edge s); [rewrite (E2 eq_refl); reflexivity|reflexivity]. }
        rewrite Z0 in *. cbn [length Z.of_nat] in *. unfold within_numbers, within. repeat split; lia.
      - destruct (Z.le_gt_cases (radius + 1) (touches_at v N)) as [|Q]; auto. exfalso. apply is_broken.
        destruct (Z.ltb_spec radius 0) as [X|X]; [pose proof (NN (f_new ++ f_turn)); pose proof (NN f_rem); pose proof (NN f_alt); lia|].
        pose proof (stated_radius_passes _ _ _ radius_right X) as S1. rewrite one_level in S1; cbn [Z.eqb] in S1.
        eapply (any_stacked_sound id id_eq V s t same M some_class radius); [exact S1|exact machine|exact CH|]. lia.
    Qed.
  End Target.

  (** ---- All targets ---- *)

  Variables (targets broken : list id) (neighbours_of : id -> list id).
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.
  Hypothesis all_spared : forall v, In v broken -> spares A v.
  Variables (hubs : list Z) (ids : list id).
  Hypothesis ids_once : NoDup ids.
  Hypothesis hubs_are : Permutation hubs (map (fun w => Z.of_nat (length (next_to id id_eq targets neighbours_of w))) ids).
  Hypothesis hubs_descend : descends hubs.
  Hypothesis hubs_all : forall w, In w (touched_ids id id_eq A) -> next_to id id_eq targets neighbours_of w <> [] -> In w ids.
  Variable someone : id.

  Lemma touches_fit : within (total_of id (fun v => touches_at v (neighbours_of v)) broken) (left_for_touches hubs (without_changes s q)).
  Proof.
    pose proof (affords_clip id_eq _ _ afforded) as Ha.
    pose proof (next_to_touched id id_eq A targets neighbours_of hubs ids ids_once hubs_are hubs_descend hubs_all _ Ha) as NT.
    pose proof (swap id id_eq targets broken neighbours_of broken_once among (touched_ids id id_eq A)) as SW.
    assert (T2 : forall l, total_of id (fun v => Z.of_nat (length (here id id_eq v l))) broken <= 2 * Z.of_nat (length l)).
    { intro l; apply (total_filter id id_eq l broken 2). intros p _; apply total_at; auto. }
    assert (T1 : total_of id (fun v => Z.of_nat (length (here id id_eq v (brought A)))) broken <= 1 * Z.of_nat (length (brought A))).
    { apply (total_filter id id_eq (brought A) broken 1). intros [x y] I; apply (total_brought id id_eq (fun _ => O)); auto. simpl; intro J.
      apply (proj1 (all_spared x J)), (brings_ok _ _ _ _ _ _ L x y I). }
    pose proof (T2 (added A)); pose proof (T2 (deleted A)); pose proof (T2 (changed A)).
    assert (E : total_of id (fun v => touches_at v (neighbours_of v)) broken
       <= total_of id (fun v => Z.of_nat (length (here id id_eq v (brought A)))) broken + total_of id (fun v => Z.of_nat (length (here id id_eq v (added A)))) broken
         + total_of id (fun v => Z.of_nat (length (here id id_eq v (deleted A)))) broken
         + (if x_by_edge s then total_of id (fun v => Z.of_nat (length (here id id_eq v (changed A)))) broken else 0)
         + total_of id (fun v => Z.of_nat (length (filter (fun u => mem id id_eq u (neighbours_of v)) (touched_ids id id_eq A)))) broken).
    { unfold touches_at; clear; destruct (x_by_edge s); (induction broken as [|v l IH]; [simpl; lia|]; cbn [total_of]; lia). }
    pose proof (few_brought_all id F W id_eq A _ G G' someone L Ha) as F2.
    pose proof (few_added _ _ _ _ Ha) as F1. pose proof (few_deleted _ _ _ _ Ha) as F3. pose proof (few_changed _ _ _ _ Ha) as F4.
    assert (SQ : sparing (without_changes s q) = fst (without_changes s q)) by (unfold sparing, without_changes; cbn [fst snd]; rewrite spared_features; auto).
    unfold left_for_touches. rewrite SQ.
    change (injected_edges (clip_budget (fst (without_changes s q)))) with (injected_edges (clip_budget (fst q))).
    change (touched_nodes (clip_budget (fst (without_changes s q)))) with (touched_nodes (clip_budget (fst q))).
    set (ie := injected_edges (clip_budget (fst q))) in *. set (sf := sum_first (touched_nodes (clip_budget (fst q))) hubs 0) in *. clearbody ie sf.
    unfold touched_edges, without_changes, few, within, ladd, lmul in *. cbn [clip_budget add_edges delete_edges change_edges fst] in *.
    destruct (clip (add_edges (fst q))) as [e|]; [|exact I]. destruct (clip (delete_edges (fst q))) as [e1|]; [|exact I].
    destruct (x_by_edge s).
    - destruct (clip (change_edges (fst q))) as [e2|]; [|exact I]. destruct ie; [lia|exact I].
    - cbn [clip]. change (huge <=? 0) with false. cbv iota. destruct ie; [lia|exact I].
  Qed.

  (** Theorem 10, many targets: no more targets break than the checker says; every broken target has its need, from [stacked_need_sound]. *)
  Theorem stacked_broken_bound (price : id -> lim) (fails p : Z) :
    (forall v, In v broken -> exists x, price v = Some x /\ x <= touches_at v (neighbours_of v)) ->
    Z.of_nat (length broken) <= stacked_broken s q fails (map price targets) p hubs.
  Proof.
    intro H. unfold stacked_broken. rewrite one_level, spared_features. cbn [Z.eqb andb negb].
    apply (affordable_sound id id_eq price targets broken); auto.
    - intros v I; destruct (H v I) as [x [E _]]; eauto.
    - pose proof touches_fit as TF.
      assert (Q : sum id (fun v => match price v with Some x => x | None => 0 end) broken <= total_of id (fun v => touches_at v (neighbours_of v)) broken).
      { clear -H. induction broken as [|v l IH]; [simpl; lia|]. cbn [sum total_of]. destruct (H v (or_introl eq_refl)) as [x [E K]]; rewrite E.
        specialize (IH (fun u J => H u (or_intror J))). lia. }
      unfold within in *; destruct (left_for_touches hubs (without_changes s q)); [lia|exact I].
  Qed.
End StackedBroken.
