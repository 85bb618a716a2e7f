(** Two levels of stacked votes on graphs (docs/proofs.md, Theorem 11): whatever an attack within the budget does to a graph, it is counted by the test. Edges
    anywhere, nodes of any degree, nodes with other features. What an edge and what nodes do to one vote are hypotheses about whole numbers here
    ([two_level_model]); TwoLevelsReal.v proves them of the softmax. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckedCertificates OwnBroken StackedVote StackedChecker
  StackedProofs StackedGraph TwoLevels.
Import ListNotations.
Open Scope Z_scope.

Section Model.
  Variable F : Type.
  (** The vote of a node with features f, whose neighbours have the features xs: [reads f xs y] if some machine may read it as y, [exact f xs] what a machine
      without errors reads. Nothing else enters a vote. *)
  Variable reads : option F -> list (option F) -> (nat -> Z) -> Prop.
  Variable exact : option F -> list (option F) -> nat -> Z.
  Variables (C : nat) (w sl : Z).
  Notation lead_in y j k := (y j - y k).

  (** - machines read every vote to within the slack, one without errors is one of them, and the order of neighbours does not matter;
      - [t_edge]: one neighbour more moves every lead in a vote by half a vote less 6 steps at most;
      - [t_nodes]: if n neighbours come or go, a vote stays between lo and hi of what was stored. *)
  Record two_level_model : Prop := {
    t_vote : forall f xs y, reads f xs y -> is_vote vote_steps y;
    t_exact : forall f xs, reads f xs (exact f xs);
    t_near : forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near sl (y k) (y' k);
    t_order : forall f xs xs', Permutation xs xs' -> (forall y, reads f xs y -> reads f xs' y) /\ forall k, exact f xs k = exact f xs' k;
    t_edge : forall f xs x j k, (j < C)%nat -> (k < C)%nat -> j <> k ->
      2 * Z.abs (lead_in (exact f (x :: xs)) j k - lead_in (exact f xs) j k) <= vote_steps - 12;
    t_nodes : forall f common gone come n own j, (j < C)%nat -> 0 < n -> Z.of_nat (length gone + length come) <= n -> 0 <= own <= vote_steps ->
      near sl own (exact f (common ++ gone) j) ->
      lowest (grown w n) sl own <= exact f (common ++ come) j <= highest (grown w n) sl own
  }.
End Model.

Section TwoLevelsGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Notation lists u N G := (lists_pairs id F W u N G).   (* N(u) *)

  (** Only deletions separate two nodes, wherever they are. *)
  Definition deletions_separate (A : attack id) (G G' : graph) : Prop :=
    forall x y, joined_to id F W x G y -> ~ listed y x (deleted A) -> ~ In x (removed A) -> ~ In y (removed A) -> joined_to id F W x G' y.
  (** G' arises from G by the attack A, with what Theorem 11 asks in addition; the target v is spared. *)
  Definition two_levels_by (v : id) (A : attack id) (G G' : graph) : Prop :=
    leads A G G' /\ strict id F W A G G' /\ deletions_separate A G G' /\ spares A v.
  (** Section 1, Attack: such an A fits the budget. *)
  Definition two_levels_attacked (v : id) (B : budget) (G G' : graph) : Prop :=
    exists A, two_levels_by v A G G' /\ affords id_eq B A.

  (** n: nodes that come or go, an altered one twice; and edges that are added or deleted. *)
  Definition nodes_moved (A : attack id) : Z := Z.of_nat (length (joined A) + length (removed A) + 2 * length (altered A)).
  (** e+ + e- of the attack. *)
  Definition edges_moved (A : attack id) : Z := Z.of_nat (length (added A) + length (deleted A)).

  Variable v : id.
  Variable reads : option F -> list (option F) -> (nat -> Z) -> Prop.
  Variable exact : option F -> list (option F) -> nat -> Z.

  (** What some machine reads on G: the neighbours of v, and the vote of each, of its features and those of its neighbours. *)
  Definition vote_read (G : graph) (u : id) (y : nat -> Z) : Prop := exists N, lists u N G /\ reads (node G u) (map (node G) N) y.
  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition two_reading (G : graph) (N : list id) (b : id -> nat -> Z) : Prop := lists v N G /\ forall u, In u N -> vote_read G u (b u).
  (** The score of class k: the prior, and the votes of the neighbours, if they are used at all. *)
  Definition two_score (used : bool) (p : nat -> Z) (N : list id) (b : id -> nat -> Z) (k : nat) : Z :=
    p k + (if used then sum id (fun u => b u k) N else 0).

  (** ---- Proofs ---- *)

  Variables (A : attack id) (G G' : graph).
  Hypothesis by_attack : two_levels_by v A G G'.
  Notation mem := (mem id id_eq).
  Notation here := (here id id_eq).
  Let L : leads A G G' := proj1 by_attack.
  Let L2 : strict id F W A G G' := proj1 (proj2 by_attack).
  Let L4 : deletions_separate A G G' := proj1 (proj2 (proj2 by_attack)).
  Let spared : spares A v := proj2 (proj2 (proj2 by_attack)).

  Lemma memF u l : mem u l = false <-> ~ In u l.
  Proof. rewrite <- not_true_iff_false, (mem_true id id_eq). tauto. Qed.

  (** The neighbours of a node that the attack leaves alone: those that stay, those that go and come with nodes, and those that go and come with edges. *)
  Record split (u : id) (N N' stay gone gone_e come come_e : list id) : Prop := {
    sp_old : Permutation N (stay ++ gone ++ gone_e);
    sp_new : Permutation N' (stay ++ come ++ come_e);
    sp_same : forall i, In i stay -> node G' i = node G i;
    sp_gone : (length gone <= length (removed A) + length (altered A))%nat;
    sp_come : (length come <= length (joined A) + length (altered A))%nat;
    sp_gone_e : forall i, In i gone_e -> listed i u (deleted A) /\ i <> u;
    sp_come_e : forall i, In i come_e -> listed i u (added A) /\ i <> u;
    sp_stays : forall i, In i N -> In i N' -> ~ In i (removed A) -> ~ In i (altered A) -> In i stay;
    sp_unmoved : forall i, In i stay -> ~ In i (removed A) /\ ~ In i (altered A)
  }.

  Lemma filter_two {X} (p q : X -> bool) (l : list X) :
    Permutation l (filter p l ++ filter (fun i => negb (p i) && q i) l ++ filter (fun i => negb (p i) && negb (q i)) l).
  Proof.
    etransitivity; [apply (filter_split p)|]. apply Permutation_app_head. etransitivity; [apply (filter_split q)|].
    assert (E : forall r (m : list X), filter r (filter (fun u => negb (p u)) m) = filter (fun i => negb (p i) && r i) m).
    { clear; intros r m; induction m as [|x m IH]; simpl; auto. destruct (p x); simpl; auto. destruct (r x); simpl; rewrite IH; auto. }
    rewrite !E. reflexivity.
  Qed.

  Lemma split_exists u N N' : lists u N G -> lists u N' G' -> ~ In u (injected A) -> ~ In u (removed A) -> ~ In u (altered A) ->
    exists stay gone gone_e come come_e, split u N N' stay gone gone_e come come_e.
  Proof.
    intros [NN HN] [NN' HN'] U1 U2 U3.
    set (bad := fun i => mem i (removed A) || mem i (altered A)).
    assert (BAD : forall i, bad i = true <-> In i (removed A) \/ In i (altered A)) by (intro i; unfold bad; rewrite orb_true_iff, !(mem_true id id_eq); tauto).
    assert (BADF : forall i, bad i = false <-> ~ In i (removed A) /\ ~ In i (altered A)) by (intro i; rewrite <- not_true_iff_false, BAD; tauto).
    set (keep_old := fun i => negb (bad i) && mem i N'). set (keep_new := fun i => negb (bad i) && mem i N).
    set (by_node := fun i => mem i (altered A) || mem i (joined A)).
    set (stay := filter keep_old N).
    assert (ST : Permutation (filter keep_new N') stay).
    { apply NoDup_Permutation; try (apply NoDup_filter; auto). intro i; unfold stay, keep_old, keep_new; rewrite !filter_In, !andb_true_iff, !(mem_true id id_eq). tauto. }
    exists stay, (filter (fun i => negb (keep_old i) && bad i) N), (filter (fun i => negb (keep_old i) && negb (bad i)) N),
      (filter (fun i => negb (keep_new i) && by_node i) N'), (filter (fun i => negb (keep_new i) && negb (by_node i)) N').
    assert (FEW : forall (l : list id) (p : id -> bool) (m : list id), NoDup l -> (forall i, In i l -> p i = true -> In i m) -> (length (filter p l) <= length m)%nat).
    { clear; intros l p m H1 H2; apply NoDup_incl_length; [apply NoDup_filter; auto|]. intros i I; apply filter_In in I; destruct I; auto. }
    assert (PRESENT : forall i, In i N -> node G i <> None).
    { intros i I; apply HN in I; destruct I as [_ [a|a]]; destruct (before_ok _ _ _ _ _ _ L _ _ a); auto. }
    split.
    - apply filter_two.
    - etransitivity; [apply (filter_two keep_new by_node)|]. apply Permutation_app_tail; auto.
    - intros i I; unfold stay, keep_old in I; apply filter_In in I; destruct I as [I K]; apply andb_prop in K; destruct K as [K _]. apply negb_true_iff, BADF in K. destruct K as [K1 K2].
      destruct (nodes_ok _ _ _ _ _ _ L i) as [E|[E|[E|E]]]; auto; try contradiction. destruct (fresh_ok _ _ _ _ _ _ L i E) as [Q|Q]; [|contradiction]. exfalso; apply (PRESENT i); auto.
    - rewrite <- app_length. apply FEW; auto. intros i _ H; apply andb_prop in H; destruct H as [_ H]; apply BAD in H. apply in_app_iff; auto.
    - rewrite <- app_length. apply FEW; auto. intros i _ H; apply andb_prop in H; destruct H as [_ H]. unfold by_node in H; apply orb_true_iff in H; rewrite !(mem_true id id_eq) in H. apply in_app_iff; tauto.
    - intros i I; apply filter_In in I; destruct I as [I H]; apply andb_prop in H; destruct H as [H1 H2]. apply negb_true_iff in H1, H2. apply BADF in H2 as [K1 K2].
      pose proof (proj1 (HN i) I) as J. split; [|apply J]. destruct (listed_dec id id_eq i u (deleted A)) as [|ND]; auto. exfalso.
      assert (I' : In i N') by (apply HN'; apply (L4 u i); auto). unfold keep_old in H1. apply (mem_true id id_eq) in I'. rewrite I' in H1.
      assert (B0 : bad i = false) by (apply BADF; auto). rewrite B0 in H1; discriminate.
    - intros i I; apply filter_In in I; destruct I as [I H]; apply andb_prop in H; destruct H as [H1 H2]. apply negb_true_iff in H1, H2.
      unfold by_node in H2; apply orb_false_iff in H2; destruct H2 as [NA NJ]; apply memF in NA, NJ. destruct (proj1 (HN' i) I) as [NE J]. split; auto.
      assert (BR : forall x z, (x = i /\ z = u) \/ (x = u /\ z = i) -> listed x z (brought A) -> False).
      { intros x z Q P. assert (P' : listed i u (brought A)) by (destruct Q as [[-> ->]|[-> ->]]; [auto|apply listed_sym; auto]).
        destruct P' as [P'|P']; [apply NJ, (joined_in id F W A G G' i u L P')|apply U1, (brings_ok _ _ _ _ _ _ L _ _ P')]. }
      assert (WHY : forall x z, (x = i /\ z = u) \/ (x = u /\ z = i) -> arc G' x z <> None -> listed i u (added A)).
      { intros x z Q a. assert (SY : listed x z (added A) -> listed i u (added A)) by (intro P; destruct Q as [[-> ->]|[-> ->]]; [auto|apply listed_sym; auto]).
        destruct (in_dec id_eq i (removed A)) as [IR|NR].
        - destruct (gone_ok _ _ _ _ _ _ L2 x z) as [E|[E|E]]; [destruct Q as [[-> ->]|[-> ->]]; auto|contradiction|exfalso; eapply BR; eauto|auto].
        - assert (NI : ~ In i N).
          { intro K. unfold keep_new in H1. apply (mem_true id id_eq) in K. rewrite K in H1. assert (B0 : bad i = false) by (apply BADF; auto). rewrite B0 in H1; discriminate. }
          assert (Z0 : arc G x z = None).
          { destruct (arc G x z) eqn:E; auto. exfalso; apply NI, HN; split; auto. destruct Q as [[-> ->]|[-> ->]]; rewrite E; [left|right]; congruence. }
          destruct (arcs_ok _ _ _ _ _ _ L x z) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction; auto.
          + rewrite E in a; contradiction.
          + exfalso; eapply BR; eauto. }
      destruct J as [J|J]; [apply (WHY i u (or_introl (conj eq_refl eq_refl)) J)|apply (WHY u i (or_intror (conj eq_refl eq_refl)) J)].
    - intros i I I' K1 K2. unfold stay, keep_old; apply filter_In; split; auto. apply andb_true_iff; split; [apply negb_true_iff, BADF; auto|apply (mem_true id id_eq); auto].
    - intros i I; unfold stay, keep_old in I; apply filter_In in I; destruct I as [_ K]; apply andb_prop in K; destruct K as [K _]. apply negb_true_iff, BADF in K; auto.
  Qed.

  (** How many pairs with u, but not with v, an attack adds and deletes. *)
  Definition away (l : list (id * id)) : list (id * id) := filter (fun p => negb (at_ id id_eq v p)) l.
  Lemma away_listed i u l : i <> v -> u <> v -> listed i u l -> listed i u (away l).
  Proof.
    intros Ni Nu [P|P]; [left|right]; unfold away; apply filter_In; split; auto; unfold at_; simpl; destruct (id_eq i v), (id_eq u v); auto; contradiction.
  Qed.
  Lemma few_pairs u (ids : list id) l : NoDup ids -> (forall i, In i ids -> listed i u l /\ i <> u) -> (length ids <= length (here u l))%nat.
  Proof.
    intros ND H. rewrite <- (map_length (other id id_eq u) (here u l)). apply NoDup_incl_length; auto. intros i I; destruct (H i I). apply other_here; auto.
  Qed.

  Section Counting.
    Variables (s : stacked_settings) (V : stacked_votes id) (N' : list id) (b : id -> nat -> Z) (a k : nat) (n : Z).
    Let C := x_classes s.
    Let sl := x_slack s.
    Hypothesis model : two_level_model F reads exact C (x_second s) sl.
    Hypothesis slack_fits : 0 <= sl <= 3.
    Hypothesis here_a : (a < C)%nat.
    Hypothesis here_k : (k < C)%nat.
    Hypothesis differ : k <> a.
    Let N := neighbours _ V.
    Let own u := vote_of _ V u a - vote_of _ V u k.
    (** The stored votes are what some machine reads on G. *)
    Hypothesis stored : two_reading G N (vote_of _ V).
    Hypothesis read : two_reading G' N' b.
    Hypothesis n_enough : nodes_moved A <= n.

    (** What is left of the lead in a vote after nodes came and went. *)
    Definition kept (u : id) : Z :=
      if n <=? 0 then own u
      else lowest (grown (x_second s) n) sl (vote_of _ V u a) - highest (grown (x_second s) n) sl (vote_of _ V u k).

    Lemma edges_move f l xs : 2 * Z.abs ((exact f (l ++ xs) a - exact f (l ++ xs) k) - (exact f xs a - exact f xs k)) <= Z.of_nat (length l) * (vote_steps - 12).
    Proof.
      unfold vote_steps in *. induction l as [|x l IH]; cbn [app length]; [lia|]. pose proof (t_edge _ _ _ _ _ _ model f (l ++ xs) x a k here_a here_k (not_eq_sym differ)) as E. unfold vote_steps in E. lia.
    Qed.

    Lemma vote_range u : In u N -> 0 <= vote_of _ V u a <= vote_steps /\ 0 <= vote_of _ V u k <= vote_steps.
    Proof.
      intro I. destruct (proj2 stored u I) as [M [_ R]]. destruct (t_vote _ _ _ _ _ _ model _ _ _ R) as [B1 B2].
      pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym differ)). lia.
    Qed.
    Lemma kept_small u : In u N -> kept u <= vote_steps.
    Proof.
      intro I. destruct (vote_range u I) as [Ra Rk]. unfold kept, own. destruct (n <=? 0); [lia|].
      pose proof (low_small (grown (x_second s) n) sl (vote_of _ V u a) ltac:(lia) ltac:(lia)). pose proof (high_large (grown (x_second s) n) sl (vote_of _ V u k) ltac:(lia) ltac:(lia)). lia.
    Qed.

    (** A neighbour of v that stays: its vote on G', as any machine reads it. *)
    Lemma stays_near stay gone gone_e come come_e u : split v N N' stay gone gone_e come come_e -> In u stay ->
      2 * kept u - 4 * sl - vote_steps * Z.of_nat (length (here u (away (added A))) + length (here u (away (deleted A)))) <= 2 * (b u a - b u k).
    Proof.
      intros SP I. pose proof (Permutation_sym (sp_old _ _ _ _ _ _ _ _ SP)) as P1. pose proof (Permutation_sym (sp_new _ _ _ _ _ _ _ _ SP)) as P2.
      assert (IN : In u N) by (apply (Permutation_in u P1), in_app_iff; auto). assert (IN' : In u N') by (apply (Permutation_in u P2), in_app_iff; auto).
      pose proof (sp_same _ _ _ _ _ _ _ _ SP u I) as SAME. destruct (sp_unmoved _ _ _ _ _ _ _ _ SP u I) as [U2 U3].
      destruct (proj1 stored) as [_ HN]. destruct (proj1 read) as [_ HN']. pose proof (proj1 (HN u) IN) as J. pose proof (proj1 (HN' u) IN') as J'.
      assert (U1 : ~ In u (injected A)).
      { intro Q. destruct (fresh_ok _ _ _ _ _ _ L u Q) as [E|E]; [|contradiction]. destruct J as [_ [a0|a0]]; destruct (before_ok _ _ _ _ _ _ L _ _ a0); contradiction. }
      destruct (proj2 stored u IN) as [M [LM RM]]. destruct (proj2 read u IN') as [M' [LM' RM']]. rewrite SAME in RM'.
      destruct (split_exists u M M' LM LM' U1 U2 U3) as (st & go & goe & co & coe & [Q1 Q2 Q3 Q4 Q5 Q6 Q7 Q8 Q9]).
      assert (VS : In v st).
      { destruct J as [Ju J], J' as [_ J']. apply Q8; [apply LM|apply LM'|apply spared|apply spared]; (split; [congruence|tauto]). }
      assert (ND : NoDup (st ++ go ++ goe)) by (apply (Permutation_NoDup Q1), LM). assert (ND' : NoDup (st ++ co ++ coe)) by (apply (Permutation_NoDup Q2), LM').
      assert (SEP : forall (l m : list id) i, NoDup (l ++ m) -> In i l -> ~ In i m).
      { clear; induction l as [|x l IH]; intros m i H; [contradiction|]. inversion H as [|? ? N1 N2]; subst. intros [->|I]; [intro K; apply N1, in_app_iff; auto|auto]. }
      assert (TAIL : forall (l m : list id), NoDup (l ++ m) -> NoDup m) by (clear; induction l as [|x l IH]; intros m H; auto; inversion H; auto).
      assert (E1 : (length goe <= length (here u (away (deleted A))))%nat).
      { apply few_pairs; [apply (TAIL go), (TAIL st); auto|]. intros i K; destruct (Q6 i K) as [X1 X2]; split; auto. apply away_listed; auto; [|destruct J; auto].
        intros ->. apply (SEP _ _ v ND VS), in_app_iff; auto. }
      assert (E2 : (length coe <= length (here u (away (added A))))%nat).
      { apply few_pairs; [apply (TAIL co), (TAIL st); auto|]. intros i K; destruct (Q7 i K) as [X1 X2]; split; auto. apply away_listed; auto; [|destruct J; auto].
        intros ->. apply (SEP _ _ v ND' VS), in_app_iff; auto. }
      set (f := node G u) in *. set (g := fun l => map (node G) l). set (g' := fun l => map (node G') l).
      assert (GS : g' st = g st) by (apply map_ext_in; auto).
      (* before, after the nodes, and after the edges *)
      assert (X0 : Permutation (g M) ((g st ++ g goe) ++ g go)).
      { unfold g. rewrite (Permutation_map (node G) Q1), !map_app, <- app_assoc. apply Permutation_app_head, Permutation_app_comm. }
      assert (X1 : Permutation (g' M') (g' coe ++ (g st ++ g' co))).
      { unfold g'. rewrite (Permutation_map (node G') Q2), !map_app. fold (g' st) (g' co) (g' coe). rewrite GS, app_assoc. apply Permutation_app_comm. }
      assert (X2 : Permutation ((g st ++ g goe) ++ g' co) (g goe ++ (g st ++ g' co))).
      { rewrite !app_assoc. apply Permutation_app_tail, Permutation_app_comm. }
      pose proof (edges_move f (g' coe) (g st ++ g' co)) as M1. pose proof (edges_move f (g goe) (g st ++ g' co)) as M2.
      pose proof (proj2 (t_order _ _ _ _ _ _ model f _ _ X1)) as O1. pose proof (proj2 (t_order _ _ _ _ _ _ model f _ _ X2)) as O2. pose proof (proj2 (t_order _ _ _ _ _ _ model f _ _ X0)) as O0.
      rewrite <- !O1 in M1. rewrite <- !O2 in M2. unfold g, g' in M1, M2. rewrite map_length in M1, M2. fold (g goe) (g' coe) in M1, M2. fold (g st) (g' co) (g' M') in M1, M2.
      pose proof (t_near _ _ _ _ _ _ model f _ _ _ (t_exact _ _ _ _ _ _ model f (g' M')) RM') as NB. destruct (NB a) as [NB1 _], (NB k) as [_ NB2].
      pose proof (t_near _ _ _ _ _ _ model f _ _ _ RM (t_exact _ _ _ _ _ _ model f (g M))) as NV.
      unfold kept. destruct (Z.leb_spec n 0) as [Z0|Z0].
      - assert (ZR : (length go = 0 /\ length co = 0)%nat) by (unfold nodes_moved in n_enough; lia). destruct ZR as [ZG ZC]. apply length_zero_iff_nil in ZG, ZC. subst go co.
        unfold g, g' in *; cbn [map] in *. rewrite !app_nil_r in *.
        destruct (Nat.eq_dec (length goe + length coe) 0) as [Z1|Z1].
        + assert (ZE : goe = [] /\ coe = []) by (split; apply length_zero_iff_nil; lia). destruct ZE as [-> ->]. cbn [map app] in *. rewrite ?app_nil_r in *.
          assert (SM : reads f (map (node G) M) (b u)).
          { apply (proj1 (t_order _ _ _ _ _ _ model f _ _ (Permutation_sym X0))). apply (proj1 (t_order _ _ _ _ _ _ model f _ _ X1)). exact RM'. }
          pose proof (t_near _ _ _ _ _ _ model f _ _ _ RM SM) as NR. destruct (NR a) as [NR1 _], (NR k) as [_ NR2]. unfold own. fold sl. unfold vote_steps. lia.
        + rewrite <- !O0 in M2. destruct (NV a) as [NV1 _], (NV k) as [_ NV2]. unfold own, vote_steps in *. lia.
      - assert (CN : Z.of_nat (length (g go) + length (g' co)) <= n) by (unfold g, g'; rewrite !map_length; unfold nodes_moved in n_enough; lia).
        destruct (vote_range u IN) as [Ra Rk].
        pose proof (NV a) as NVa. pose proof (NV k) as NVk. rewrite O0 in NVa, NVk.
        pose proof (t_nodes _ _ _ _ _ _ model f _ _ (g' co) n _ a here_a Z0 CN Ra NVa) as [T1 _].
        pose proof (t_nodes _ _ _ _ _ _ model f _ _ (g' co) n _ k here_k Z0 CN Rk NVk) as [_ T2].
        unfold vote_steps in *. lia.
    Qed.

    (** Theorem 11: the lead in the votes falls by no more than what stays of each vote says, one vote for each node and each edge, and the slack. *)
    Theorem two_levels_lead :
      sum id kept N - 2 * sl * Z.of_nat (length N) - vote_steps * (nodes_moved A + edges_moved A) <= sum id (fun u => b u a - b u k) N'.
    Proof.
      destruct (split_exists v N N' (proj1 stored) (proj1 read) (proj1 spared) (proj1 (proj2 spared)) (proj2 (proj2 spared))) as (st & go & goe & co & coe & SP).
      pose proof SP as [Q1 Q2 Q3 Q4 Q5 Q6 Q7 _ _].
      rewrite (sum_perm id (fun u => b u a - b u k) _ _ Q2), (sum_perm id kept _ _ Q1). rewrite (Permutation_length Q1).
      assert (APP : forall (d : id -> Z) l m, sum id d (l ++ m) = sum id d l + sum id d m) by (clear; intros d l m; induction l; simpl; lia).
      rewrite !APP, !app_length.
      assert (IN : forall u, In u (go ++ goe) -> In u N) by (intros u I; apply (Permutation_in u (Permutation_sym Q1)), in_app_iff; auto).
      assert (IN' : forall u, In u (co ++ coe) -> In u N') by (intros u I; apply (Permutation_in u (Permutation_sym Q2)), in_app_iff; auto).
      assert (LOST : forall l, (forall u, In u l -> In u N) -> sum id kept l <= vote_steps * Z.of_nat (length l)).
      { induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun x K => H x (or_intror K))). pose proof (kept_small u (H u (or_introl eq_refl))). unfold vote_steps in *. lia. }
      assert (CAME : forall l, (forall u, In u l -> In u N') -> - vote_steps * Z.of_nat (length l) <= sum id (fun u => b u a - b u k) l).
      { induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun x K => H x (or_intror K))).
        destruct (proj2 read u (H u (or_introl eq_refl))) as [M [_ R]]. destruct (t_vote _ _ _ _ _ _ model _ _ _ R) as [B1 B2]. pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym differ)). lia. }
      pose proof (LOST go (fun u I => IN u (in_or_app _ _ _ (or_introl I)))). pose proof (LOST goe (fun u I => IN u (in_or_app _ _ _ (or_intror I)))).
      pose proof (CAME co (fun u I => IN' u (in_or_app _ _ _ (or_introl I)))). pose proof (CAME coe (fun u I => IN' u (in_or_app _ _ _ (or_intror I)))).
      assert (TAIL : forall (l m : list id), NoDup (l ++ m) -> NoDup m) by (clear; induction l as [|x l IH]; intros m H; auto; inversion H; auto).
      assert (HEAD : forall (l m : list id), NoDup (l ++ m) -> NoDup l).
      { clear; induction l as [|x l IH]; intros m H; [constructor|]. inversion H; subst. constructor; [rewrite in_app_iff in *; tauto|eauto]. }
      assert (ND : NoDup (st ++ go ++ goe)) by (apply (Permutation_NoDup Q1), stored). assert (ND' : NoDup (st ++ co ++ coe)) by (apply (Permutation_NoDup Q2), read).
      (* edges that are not at v touch two neighbours, edges at v bring or take one *)
      assert (STAY : 2 * sum id kept st - 4 * sl * Z.of_nat (length st)
                - vote_steps * (total_of id (fun u => Z.of_nat (length (here u (away (added A))))) st + total_of id (fun u => Z.of_nat (length (here u (away (deleted A))))) st)
                <= 2 * sum id (fun u => b u a - b u k) st).
      { assert (Q : forall l, incl l st -> 2 * sum id kept l - 4 * sl * Z.of_nat (length l)
                - vote_steps * (total_of id (fun u => Z.of_nat (length (here u (away (added A))))) l + total_of id (fun u => Z.of_nat (length (here u (away (deleted A))))) l)
                <= 2 * sum id (fun u => b u a - b u k) l).
        { induction l as [|u l IH]; intro HI; [simpl; lia|]. cbn [sum length total_of]. specialize (IH (fun x K => HI x (or_intror K))). pose proof (stays_near _ _ _ _ _ u SP (HI u (or_introl eq_refl))). unfold vote_steps in *. lia. }
        apply Q, incl_refl. }
      assert (T2 : forall l, total_of id (fun u => Z.of_nat (length (here u l))) st <= 2 * Z.of_nat (length l)).
      { intro l; apply (total_filter id id_eq l st 2). intros p _; apply total_at. apply (HEAD _ _ ND). }
      pose proof (T2 (away (added A))) as TA. pose proof (T2 (away (deleted A))) as TD.
      assert (GE : (length goe <= length (here v (deleted A)))%nat) by (apply few_pairs; [apply (TAIL go), (TAIL st); auto|auto]).
      assert (CE : (length coe <= length (here v (added A)))%nat) by (apply few_pairs; [apply (TAIL co), (TAIL st); auto|auto]).
      pose proof (length_split (at_ id id_eq v) (added A)) as SA. pose proof (length_split (at_ id id_eq v) (deleted A)) as SD. fold (away (added A)) in SA. fold (away (deleted A)) in SD.
      fold (here v (added A)) in SA. fold (here v (deleted A)) in SD.
      assert (SLP : 0 <= sl * Z.of_nat (length go + length goe)) by nia.
      unfold nodes_moved, edges_moved. unfold vote_steps in *. lia.
    Qed.
  End Counting.
End TwoLevelsGraph.

(** ---- The checker ---- *)

Section CheckedGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop) (exact : option F -> list (option F) -> nat -> Z).
  Variables (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W).
  Hypothesis some_class : (0 < x_classes s)%nat.
  Hypothesis two_levels : x_second s <> 0.
  Hypothesis same : stands_for V s t.
  Hypothesis model : two_level_model F reads exact (x_classes s) (x_second s) (x_slack s).
  Hypothesis stored : two_reading id F W v reads G (neighbours _ V) (vote_of _ V).
  Let c := count_stacked s t.
  Let a := y_label c.

  Lemma fits : sensible_file s t = true -> 0 <= x_second s <= vote_steps - 16 /\ x_slack s <= 3.
  Proof.
    intro M. unfold sensible_file in M; apply andb_prop in M; destruct M as [_ M]. apply orb_true_iff in M; destruct M as [M|M]; [apply Z.eqb_eq in M; contradiction|].
    apply andb_prop in M; destruct M as [_ M]; apply andb_prop in M; destruct M as [_ M]. unfold two_levels_fit in M.
    apply andb_prop in M; destruct M as [M M3]; apply andb_prop in M; destruct M as [M1 M2]. apply Z.leb_le in M1, M2, M3. auto.
  Qed.

  (** What the program finds of class j against k is the lead of Theorem 11, after n nodes and e edges. *)
  Lemma second_lead_is (edges nodes : lim) (j k : nat) (r : stacked_rival) :
    sensible_file s t = true -> x_used s = true -> (j < x_classes s)%nat -> (k < x_classes s)%nat -> counted_as id V t j k r ->
    second_lead_stays s edges nodes (grown_by s nodes) (column j (x_rows t)) r = true ->
    exists e n, edges = Some e /\ nodes = Some n
      /\ tie k j <= p_of _ V j - p_of _ V k - 2 * x_slack s + sum id (kept id s V j k n) (neighbours _ V) - 2 * x_slack s * Z.of_nat (length (neighbours _ V)) - vote_steps * (n + e).
  Proof.
    intros M HU Hj Hk R H. destruct (two_levels_file id V s t same some_class M two_levels HU) as [P0 [C0 GS]].
    unfold second_lead_stays, grown_by in H. cbv zeta in H. rewrite HU in H.
    apply andb_prop in H; destruct H as [AB H]. apply Z.leb_le in H. apply negb_true_iff, orb_false_iff in AB; destruct AB as [AB1 AB2].
    destruct edges as [e|]; [|discriminate]. destruct nodes as [n|]; [|discriminate]. exists e, n. split; auto. split; auto. cbn [finite_or_0 ladd within] in *.
    rewrite (r_ahead _ _ _ _ _ _ R), (r_given _ _ _ _ _ _ R), (r_tie _ _ _ _ _ _ R), (r_votes _ _ _ _ _ _ R) in H.
    assert (GV : given id V j k = vote_steps * sum id (fun u => vote_of _ V u j - vote_of _ V u k) (neighbours _ V) - degree id V * (2 * vote_steps * slack _ V)).
    { unfold given, doubt_each, delta. rewrite P0, C0, !GS by auto. cbn [Z.eqb bit_of].
      assert (Q : forall l, sum id (fun u => vote_steps * vote_of _ V u j - vote_steps * vote_of _ V u k) l = vote_steps * sum id (fun u => vote_of _ V u j - vote_of _ V u k) l)
        by (clear; induction l as [|u l IH]; [simpl; lia|]; cbn [sum]; rewrite IH; lia).
      rewrite Q. ring. }
    rewrite GV in H. unfold degree in H. rewrite (f_slack _ _ _ same) in H.
    assert (KEPT : sum id (kept id s V j k n) (neighbours _ V) = sum id (fun u => vote_of _ V u j - vote_of _ V u k) (neighbours _ V)
              - (if n <=? 0 then 0 else pulled (grown (x_second s) n) (x_slack s) (column j (x_rows t)) (column k (x_rows t)) 0)).
    { unfold kept. destruct (n <=? 0); [lia|]. rewrite (pulled_sum id V s t same).
      assert (Q : forall l, sum id (fun u => lowest (grown (x_second s) n) (x_slack s) (vote_of _ V u j) - highest (grown (x_second s) n) (x_slack s) (vote_of _ V u k)) l
                 = sum id (fun u => vote_of _ V u j - vote_of _ V u k) l
                   - (0 + sum id (fun u => vote_of _ V u j - vote_of _ V u k - lowest (grown (x_second s) n) (x_slack s) (vote_of _ V u j) + highest (grown (x_second s) n) (x_slack s) (vote_of _ V u k)) l))
        by (clear; induction l as [|u l IH]; simpl in *; lia).
      apply Q. }
    pose proof (tie_range k j). unfold ahead in H. rewrite (f_slack _ _ _ same) in H.
    set (X := sum id (kept id s V j k n) (neighbours id V)) in *.
    set (PL := if n <=? 0 then 0 else pulled (grown (x_second s) n) (x_slack s) (column j (x_rows t)) (column k (x_rows t)) 0) in *.
    assert (H' : tie k j <= vote_steps * (p_of id V j - p_of id V k - 2 * x_slack s + X - 2 * x_slack s * Z.of_nat (length (neighbours id V)) - vote_steps * (n + e))).
    { rewrite KEPT. unfold PL. clear - H. set (ln := Z.of_nat (length (neighbours id V))) in *. clearbody ln. unfold vote_steps in *. destruct (n <=? 0); nia. }
    unfold vote_steps in *. lia.
  Qed.

  (** Theorem 11, the test for e edges and n nodes, and any attack with no more nodes, and no more of both together. *)
  Theorem two_levels_test_sound (edges nodes : lim) (A : attack id) (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z) :
    second_test s c edges nodes = true -> two_levels_by id F W v A G G' ->
    within (nodes_moved id A) nodes -> within (nodes_moved id A + edges_moved id A) (ladd edges nodes) ->
    two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
    best (two_score id (x_used s) p N' b) (x_classes s) = a.
  Proof.
    intros H By HN HE Rd P.
    assert (M : sensible_file s t = true) by (unfold second_test in H; apply andb_prop in H; apply H).
    destruct (x_used s) eqn:HU.
    2: { transitivity (best p (x_classes s)); [|exact (unused_votes id V s t same some_class edges nodes p H two_levels HU P)]. unfold two_score.
         assert (E : forall f g, (forall k, f k = g k) -> best f (x_classes s) = best g (x_classes s)) by (clear; intros f g E; induction (x_classes s) as [|m IH]; simpl; auto; rewrite IH, !E; auto).
         apply E; intro k; lia. }
    pose proof (file_sensible id V s t same M) as SF. destruct (fits M) as [FW FS]. pose proof (slack_pos _ _ SF) as SP. rewrite (f_slack _ _ _ same) in SP.
    apply label_is_best; split; [apply (label_small id V s t same some_class)|]. intros k Hk N.
    destruct (rival_counted id V s t same some_class k Hk N) as [r [I R]]. fold c a in R.
    unfold second_test in H; apply andb_prop in H; destruct H as [_ H]. rewrite forallb_forall in H. specialize (H r I).
    destruct (second_lead_is edges nodes a k r M HU (label_small id V s t same some_class) Hk R H) as (e & n & -> & -> & T). cbn [ladd within] in *.
    pose proof (two_levels_lead id F W id_eq v reads exact A G G' By s V N' b a k n model ltac:(lia) (label_small id V s t same some_class) Hk N stored Rd HN) as LD.
    assert (DIFF : forall l, sum id (fun u => b u a - b u k) l = sum id (fun u => b u a) l - sum id (fun u => b u k) l) by (clear; induction l as [|u l IH]; simpl; lia).
    rewrite DIFF in LD. destruct (P a) as [Pa _], (P k) as [_ Pk]. rewrite (f_slack _ _ _ same) in *. unfold two_score. unfold vote_steps in *. lia.
  Qed.
End CheckedGraph.

(** The amounts that a budget allows. *)
Lemma amounts_fit (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (B : budget) (A : attack id) (G G' : graph id F W) : two_levels_by id F W v A G G' -> affords id_eq B A ->
  within (nodes_moved id A) (nodes_in B) /\ within (nodes_moved id A + edges_moved id A) (ladd (edges_in B) (nodes_in B)).
Proof.
  intros By Ha. pose proof (few_joined id F W id_eq A _ G G' v (proj1 By) Ha) as FJ. destruct Ha as [f1 f2 _ _ _ f6 f7 _].
  unfold few, within, nodes_moved, edges_moved, edges_in, nodes_in in *.
  split; destruct (joined_nodes B), (delete_nodes B), (change_features B) as [r|], (add_edges B), (delete_edges B); cbn [ladd lmul Z.leb Z.compare]; auto; lia.
Qed.

(** Theorem 11 for a budget: if the checker says that a target holds, its label stays. *)
Theorem two_levels_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).
Proof.
  intros id F W id_eq v reads exact s t V G B own HC H2 St H Mo Sr G' N' b p [A [By Ha]] Rd P.
  unfold stacked_holds in H; destruct (Z.eqb_spec (x_second s) 0) as [|_]; [contradiction|]. cbn [fst snd] in H. destruct own; [discriminate|]. split; auto.
  destruct (amounts_fit id F W id_eq v (clip_budget B) A G G' By (affords_clip id_eq _ _ Ha)) as [F1 F2].
  eapply two_levels_test_sound; eauto.
Qed.

(** Theorem 11, the radius: x changes of any kind, of which a node with other features is worth two nodes; and [structure]: edges and nodes that come and go alone. *)
Theorem two_levels_radius :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (x : Z) (structure : bool),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t -> 0 <= x ->
    (if structure then right_stacked_structure s (count_stacked s t) x else right_stacked_radius s (count_stacked s t) x) = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (A : attack id) (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_by id F W v A G G' -> (structure = true -> altered A = []) ->
      Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A) + length (altered A)) <= x ->
      two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).
Proof.
  intros id F W id_eq v reads exact s t V G x structure HC H2 St Hx H Mo Sr A G' N' b p By Al Hl Rd P.
  assert (E2 : (x_second s =? 0) = false) by (apply Z.eqb_neq; auto).
  assert (T : second_test s (count_stacked s t) (Some 0) (Some (if structure then x else 2 * x)) = true).
  { destruct structure.
    - unfold right_stacked_structure, is_largest in H; rewrite E2 in H; destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]; apply andb_prop in H; apply H.
    - pose proof (stated_radius_passes _ _ _ H Hx) as S. rewrite E2 in S; exact S. }
  eapply two_levels_test_sound; eauto; unfold nodes_moved, edges_moved; cbn [ladd within].
  - destruct structure; [rewrite (Al eq_refl) in Hl |- *; cbn [length] in *|]; lia.
  - destruct structure; [rewrite (Al eq_refl) in Hl |- *; cbn [length] in *|]; lia.
Qed.
