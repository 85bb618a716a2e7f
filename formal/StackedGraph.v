(** Stacked votes of an attacked graph (docs/proofs.md, Theorem 10, "Budgets"): which neighbours come, go and change, and that no more do so than the
    budget says. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates StackedVote StackedChecker StackedProofs.
Import ListNotations.
Open Scope Z_scope.

Section StackedGraph.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable v : id.

  (** Neighbours share an edge with v, in either direction ([joined_to]). Only deletions separate them: a changed edge keeps one of its arcs, and so do
      the edges of a node with other features. *)
  Definition only_deletions_separate (A : attack id) (G G' : graph) : Prop :=
    forall u, joined_to id F W v G u -> ~ listed u v (deleted A) -> ~ In u (removed A) -> joined_to id F W v G' u.
  (** Section 1, Attack, with what Theorems 9 and 10 ask in addition; the target v is spared. *)
  Definition stacked_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ only_deletions_separate A G G' /\ affords id_eq B A /\ spares A v.

  (** [reads G u y]: some machine may read the vote of u for v as y. A vote is a function of the features of u and, if votes read edges, of the two
      arcs between u and v; a second direction makes it the mean of the old vote and a new one ([turned_vote] below). *)
  Variable S : Z.
  Variable reads : graph -> id -> (nat -> Z) -> Prop.
  (** Theorem 10, what is asked of the votes: each is at most one vote, local, and moves by no more than one vote where a pair is turned. *)
  Record stacked_model (edges : bool) : Prop := {
    m_vote : forall G u y, reads G u y -> is_vote S y;
    m_local : forall G G' u y, node G' u = node G u -> (edges = true -> arc G' u v = arc G u v /\ arc G' v u = arc G v u) ->
      (reads G u y <-> reads G' u y);
    m_turned : forall G G' u y, node G' u = node G u ->
      (arc G u v = None /\ arc G' v u = arc G v u) \/ (arc G v u = None /\ arc G' u v = arc G u v) -> joined_to id F W v G u ->
      reads G' u y -> exists c, reads G u c /\ forall j k, j <> k -> c j - c k - S <= y j - y k
  }.

  (** The numbers in the certificate are those of G, to within the slack. *)
  Record sfaithful (V : stacked_votes id) (G : graph) : Prop := {
    s_steps : st_steps _ V = S;
    s_lists : lists_pairs id F W v (neighbours _ V) G;
    s_votes : forall u, In u (neighbours _ V) -> forall y, reads G u y -> forall k, near (slack _ V) (vote_of _ V u k) (y k)
  }.
  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition sreading (G : graph) (N : list id) (b : id -> nat -> Z) : Prop :=
    lists_pairs id F W v N G /\ forall u, In u N -> reads G u (b u).

  (** ---- Proofs ---- *)

  Notation other := (other id id_eq v).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.
  Hypothesis L3 : deletes_pairs A G'.
  Hypothesis L4 : only_deletions_separate A G G'.
  Hypothesis spared : spares A v.
  Variables (V : stacked_votes id) (N' : list id) (b : id -> nat -> Z) (a : nat).
  Hypothesis model : stacked_model (by_edge _ V).
  Hypothesis faithful : sfaithful V G.
  Hypothesis read : sreading G' N' b.

  (** A neighbour that stays, and whose pair is added: it is turned. *)
  Definition stays_joined (u : id) : bool :=
    mem id id_eq u (neighbours _ V) && negb (mem id id_eq u (removed A)) && (if listed_dec id id_eq u v (deleted A) then false else true).
  (** Lists of pairs of v in the attack: all of them, or some that contain what concerns v. *)
  Record stacked_lists (new rem alt turn : list id) : Prop := {
    l_brought : forall u, u <> v -> listed u v (brought A) -> In u new;
    l_added : forall u, u <> v -> listed u v (added A) -> stays_joined u = false -> In u new;
    l_turn : forall u, u <> v -> listed u v (added A) -> stays_joined u = true -> In u turn;
    l_removed : forall u, In u (neighbours _ V) -> In u (removed A) -> In u rem;
    l_deleted : forall u, u <> v -> listed u v (deleted A) -> In u rem;
    l_altered : forall u, In u (neighbours _ V) -> In u (altered A) -> ~ In u (removed A) -> In u alt;
    l_changed : forall u, u <> v -> by_edge _ V = true -> listed u v (changed A) -> In u alt
  }.

  Lemma no_brought u : In u (neighbours _ V) -> ~ In u (removed A) -> ~ listed u v (brought A).
  Proof.
    intros I NR [P|P]; pose proof (brings_ok _ _ _ _ _ _ L _ _ P) as Q.
    - destruct (fresh_ok _ _ _ _ _ _ L u Q) as [E|E]; [|contradiction].
      apply (proj2 (s_lists _ _ faithful)) in I; destruct I as [_ [a0|a0]]; destruct (before_ok _ _ _ _ _ _ L _ _ a0); contradiction.
    - apply (proj1 spared); auto.
  Qed.

  Lemma attack_changes new rem alt turn : stacked_lists new rem alt turn -> stacked_changes id V N' b a new rem alt turn.
  Proof.
    intros [lb la lt lr ld lal lc]. destruct read as [[NN' HN'] HR]. destruct (s_lists _ _ faithful) as [NN HN]. destruct spared as [sv1 [sv2 sv3]].
    assert (BACK : forall u, In u (neighbours _ V) -> stays_joined u = false -> (forall x z, (x = u /\ z = v) \/ (x = v /\ z = u) ->
              arc G' x z = None \/ listed x z (brought A) \/ listed x z (added A)) -> In u new \/ ~ In u N').
    { intros u I SJ H0. destruct (in_dec id_eq u N') as [I'|]; auto; left. destruct (proj1 (HN' u) I') as [N [a'|a']].
      - destruct (H0 u v) as [E|[E|E]]; auto; contradiction.
      - destruct (H0 v u) as [E|[E|E]]; auto; [contradiction|apply lb|apply la]; auto; apply listed_sym; auto. }
    split; auto.
    - intros u I; rewrite (s_steps _ _ faithful). apply (m_vote _ model G' u), HR; auto.
    - intros u I. destruct (proj1 (HN u) I) as [N J].
      destruct (in_dec id_eq u (removed A)) as [IR|NR].
      { left; split; [auto|]. apply BACK; auto.
        - unfold stays_joined. assert (E : mem id id_eq u (removed A) = true) by (apply mem_true; auto). rewrite E; simpl; rewrite andb_false_r; auto.
        - intros x z [[-> ->]|[-> ->]]; destruct (gone_ok _ _ _ _ _ _ L2 _ _ (or_introl IR : In u (removed A) \/ In v (removed A))) as [E|[E|E]]; auto;
            destruct (gone_ok _ _ _ _ _ _ L2 v u (or_intror IR)) as [E'|[E'|E']]; auto. }
      destruct (listed_dec id id_eq u v (deleted A)) as [ID|ND].
      { left; split; [auto|]. apply BACK; auto.
        - unfold stays_joined; destruct (listed_dec id id_eq u v (deleted A)); [apply andb_false_r|contradiction].
        - intros x z [[-> ->]|[-> ->]]; [destruct (L3 u v ID) as [|[|]]|destruct (L3 v u (listed_sym id _ _ _ ID)) as [|[|]]]; auto. }
      assert (I' : In u N') by (apply HN', (L4 u); auto; split; auto). right.
      destruct (in_dec id_eq u (altered A)) as [IA|NA]; [left; auto|].
      assert (nu : node G u <> None) by (destruct J as [J|J]; destruct (before_ok _ _ _ _ _ _ L _ _ J); auto).
      assert (n : node G' u = node G u).
      { destruct (nodes_ok _ _ _ _ _ _ L u) as [|[Q|[|]]]; auto; try contradiction. destruct (fresh_ok _ _ _ _ _ _ L u Q); contradiction. }
      destruct (by_edge id V) eqn:EB.
      2: { right; right; split; auto. apply (s_votes _ _ faithful u I). apply (m_local _ model G G'); [exact n|intro Q; congruence|apply HR; auto]. }
      destruct (listed_dec id id_eq u v (changed A)) as [IC|NC]; [left; auto|].
      pose proof (no_brought u I NR) as NB.
      assert (SAME : forall x z, (x = u /\ z = v) \/ (x = v /\ z = u) -> arc G' x z = arc G x z \/ (listed u v (added A) /\ arc G x z = None)).
      { intros x z Q. assert (SY : forall l, listed x z l -> listed u v l) by (intros l P; destruct Q as [[-> ->]|[-> ->]]; auto; apply listed_sym; auto).
        destruct (arcs_ok _ _ _ _ _ _ L x z) as [|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; try (apply SY in P; contradiction).
        - destruct (added_ok _ _ _ _ _ _ L2 x z P) as [E|[E|[E|E]]]; [right; auto|auto|apply SY in E; contradiction|]. exfalso; destruct Q as [[-> ->]|[-> ->]]; destruct E; contradiction.
        - destruct Q as [[-> ->]|[-> ->]]; destruct P; contradiction.
        - destruct Q as [[-> ->]|[-> ->]]; destruct P; contradiction. }
      assert (KEPT : arc G' u v = arc G u v -> arc G' v u = arc G v u -> In u N' /\ forall k, near (slack _ V) (vote_of _ V u k) (b u k)).
      { intros E1 E2; split; auto. apply (s_votes _ _ faithful u I). apply (m_local _ model G G'); [exact n|auto|apply HR; auto]. }
      assert (TURN : listed u v (added A) -> (arc G u v = None /\ arc G' v u = arc G v u) \/ (arc G v u = None /\ arc G' u v = arc G u v) ->
                     In u N' /\ In u turn /\ true = true /\ exists c, (forall k, near (slack _ V) (vote_of _ V u k) (c k)) /\ forall k, k <> a -> c a - c k - st_steps _ V <= b u a - b u k).
      { intros P Q. split; auto. split. { apply lt; auto. unfold stays_joined. assert (M1 : mem id id_eq u (neighbours _ V) = true) by (apply mem_true; auto).
          assert (M2 : mem id id_eq u (removed A) = false) by (apply not_true_iff_false; rewrite mem_true; auto). rewrite M1, M2. destruct (listed_dec id id_eq u v (deleted A)); [contradiction|auto]. }
        split; auto. destruct (m_turned _ model G G' u (b u) n Q (proj1 (HN u) I) (HR u I')) as [c [C1 C2]]. exists c; split; [apply (s_votes _ _ faithful u I); auto|].
        intros k K; rewrite (s_steps _ _ faithful). apply C2; auto. }
      destruct (SAME u v (or_introl (conj eq_refl eq_refl))) as [E1|[P1 E1]]; destruct (SAME v u (or_intror (conj eq_refl eq_refl))) as [E2|[P2 E2]].
      + right; right; apply KEPT; auto.
      + right; left; apply TURN; auto.
      + right; left; apply TURN; auto.
      + exfalso; destruct J; contradiction.
    - intros u I'. destruct (in_dec id_eq u (neighbours _ V)) as [|NI]; auto; right. destruct (proj1 (HN' u) I') as [N a'].
      assert (Z1 : ~ arc G u v <> None) by (intro E; apply NI, HN; split; auto). assert (Z2 : ~ arc G v u <> None) by (intro E; apply NI, HN; split; auto).
      assert (SJ : stays_joined u = false).
      { unfold stays_joined. assert (M1 : mem id id_eq u (neighbours _ V) = false) by (apply not_true_iff_false; rewrite mem_true; auto). rewrite M1; auto. }
      destruct a' as [a'|a'].
      + destruct (arcs_ok _ _ _ _ _ _ L u v) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction; auto. rewrite E in a'; contradiction.
      + destruct (arcs_ok _ _ _ _ _ _ L v u) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction; try (apply listed_sym in P); auto. rewrite E in a'; contradiction.
  Qed.

  (** Theorem 10: neighbours whose pair gains its second direction. *)
  Definition s_turned : list id := filter stays_joined (map other (added A)).
  (** Theorem 10: new neighbours, A' + e+ with the turned ones. *)
  Definition s_new : list id := joined A ++ filter (fun u => negb (stays_joined u)) (map other (added A)).
  (** Theorem 10: lost neighbours, d + e- of them. *)
  Definition s_removed : list id := removed A ++ map other (deleted A).
  (** Theorem 10: altered neighbours, r of them, and e~ if votes read edges. *)
  Definition s_altered : list id := altered A ++ (if by_edge _ V then map other (changed A) else []).

  Lemma all_lists : stacked_lists s_new s_removed s_altered s_turned.
  Proof.
    unfold s_new, s_turned, s_removed, s_altered. split; intros.
    - apply in_app_iff; left; apply (brought_new id F W v A G G' L spared u); auto.
    - apply in_app_iff; right; apply filter_In; split; [apply (other_in id id_eq v); auto|rewrite H1; auto].
    - apply filter_In; split; auto; apply (other_in id id_eq v); auto.
    - apply in_app_iff; auto.
    - apply in_app_iff; right; apply (other_in id id_eq v); auto.
    - apply in_app_iff; auto.
    - apply in_app_iff; right; rewrite H0; apply (other_in id id_eq v); auto.
  Qed.

  Lemma all_few B : affords id_eq B A ->
    few (s_new ++ s_turned) (ladd (joined_nodes B) (add_edges B)) /\ few s_removed (ladd (delete_edges B) (delete_nodes B))
    /\ few s_altered (ladd (change_features B) (if by_edge _ V then change_edges B else Some 0)).
  Proof.
    intro Ha. pose proof (few_joined id F W id_eq A B G G' v L Ha) as FJ. destruct Ha as [f1 f2 f3 f4 f5 f6 f7 f8]. split; [|split].
    - pose proof (few_app _ _ _ _ FJ (few_map other _ _ f1)) as H. revert H; unfold few, s_new, s_turned; rewrite !app_length, map_length.
      pose proof (split_filter stays_joined (map other (added A))) as E; rewrite map_length in E.
      replace (length (joined A) + length (filter (fun u => negb (stays_joined u)) (map other (added A))) + length (filter stays_joined (map other (added A))))%nat
        with (length (joined A) + length (added A))%nat by lia. auto.
    - unfold s_removed. revert f2 f6; unfold few, within; rewrite app_length, map_length. destruct (delete_edges B), (delete_nodes B); simpl; auto; lia.
    - unfold s_altered. apply few_app; auto. destruct (by_edge id V); [apply few_map; auto|unfold few; simpl; lia].
  Qed.
End StackedGraph.

(** Theorem 10, a new direction of an old pair: before, the vote of a pair is that of its one direction, X / M rounded down; after, the mean of both. The lead of j over k falls by
    no more than one vote, also after rounding. *)
Theorem turned_vote :
  forall (S M Xj Xk Yj Yk : Z),
    0 < M -> Z.even S = true -> 0 <= Xk -> Xj + Xk <= S * M -> 0 <= Yj -> 0 <= Yk -> Yj + Yk <= S * M ->
    Xj / M - Xk / M - S <= (Xj + Yj) / (2 * M) - (Xk + Yk) / (2 * M).
Proof.
  intros S M Xj Xk Yj Yk HM HS HX HXS HY1 HY2 HYS.
  assert (A1 : Xj / M / 2 <= (Xj + Yj) / (2 * M)).
  { rewrite Z.div_div by lia. rewrite (Z.mul_comm M 2). apply Z.div_le_mono; lia. }
  assert (A2 : (Xk + Yk) / (2 * M) <= (Xk / M + S) / 2).
  { replace (Xk / M + S) with ((Xk + S * M) / M) by (rewrite Z.div_add by lia; auto). rewrite Z.div_div by lia. rewrite (Z.mul_comm M 2). apply Z.div_le_mono; lia. }
  assert (A3 : Xj / M <= S) by (apply Z.div_le_upper_bound; lia). assert (A4 : 0 <= Xk / M) by (apply Z.div_pos; lia).
  apply Z.even_spec in HS; destruct HS as [h ->]. rewrite (Z.add_comm (Xk / M)), (Z.mul_comm 2 h), Z.div_add_l in A2 by lia.
  pose proof (Z.div_mod (Xj / M) 2 ltac:(lia)). pose proof (Z.mod_pos_bound (Xj / M) 2 ltac:(lia)). pose proof (Z.div_mod (Xk / M) 2 ltac:(lia)). pose proof (Z.mod_pos_bound (Xk / M) 2 ltac:(lia)). lia.
Qed.

(** Theorem 10 for a budget: if the checker says that a target holds, its label stays. *)
Theorem stacked_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : graph id F W -> id -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool),
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    stacked_model id F W v vote_steps reads (by_edge _ V) -> sfaithful id F W v vote_steps reads V G ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      stacked_attacked id F W id_eq v B G G' -> sreading id F W v reads G' N' b -> stacked_reading id V p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b = y_label (count_stacked s t).
Proof.
  intros id F W id_eq v reads s t V G B own HC H2 St H Mo Fa G' N' b p g [A [L [L2 [L3 [L4 [Ha Sp]]]]]] Rd Re.
  unfold stacked_holds in H; rewrite H2 in H; cbn [fst snd Z.eqb] in H. destruct own; [discriminate|]. split; auto.
  assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
  pose proof (all_few id F W id_eq v vote_steps reads A G G' L V Mo (clip_budget B) (affords_clip id_eq _ _ Ha)) as [F1 [F2 F3]].
  rewrite (f_by_edge _ _ _ St) in F3.
  eapply (stacked_test_sound id id_eq V s t St M HC false); [exact H|exact Re| |].
  - eapply attack_changes; eauto. eapply (all_lists id F W id_eq v A G G'); eauto.
  - unfold within_numbers. repeat split; auto; discriminate.
Qed.
