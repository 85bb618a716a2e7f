(** What it establishes that the checker leaves out a class (docs/proofs.md, Theorem 12): on no attacked graph within the budget, and on no machine, is it the
    label. One theorem for each rule, with the hypotheses of CheckedCertificates.v, StackedGraph.v and TwoLevelsGraph.v. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair OwnGroupsOfGraphs Checker CheckerProofs
  CheckedCertificates StackedVote StackedChecker StackedProofs StackedGraph TwoLevels TwoLevelsGraph Possible PossibleOwn Excluded.
Import ListNotations.
Open Scope Z_scope.

(** What the program says of class k, votes. *)
Definition left_out (s : settings) (t : target) (q : query) (k : nat) : bool :=
  nth k (cannot_get s (count_target s t) (count_classes s t) q) false.
(** The same of stacked votes. *)
Definition stacked_left_out (s : stacked_settings) (t : stacked_target) (q : query) (k : nat) : bool :=
  nth k (stacked_cannot_get s (count_stacked s t) (count_duels s t) q) false.

(** ---- Proofs ---- *)

Lemma total_add {A} (f : A -> Z) l : forall n, total f l n = n + total f l 0.
Proof. induction l as [|x l IH]; intro n; cbn [total]; [lia|]. rewrite IH, (IH (0 + f x)). lia. Qed.
Lemma total_classes {A} (f : A -> Z) (g : nat -> A) C : total f (map g (seq 0 C)) 0 = over_classes (fun j => f (g j)) C.
Proof.
  induction C as [|C IH]; [reflexivity|]. rewrite seq_S, map_app. cbn [map over_classes Nat.add].
  assert (E : forall l m n, total f (l ++ m) n = total f m (total f l n)) by (clear; induction l as [|x l IH]; intros m n; simpl; auto).
  rewrite E, IH. cbn [total]. reflexivity.
Qed.
Lemma over_ext f g C : (forall j, (j < C)%nat -> f j = g j) -> over_classes f C = over_classes g C.
Proof. induction C as [|C IH]; intro H; [reflexivity|]. cbn [over_classes]. rewrite IH by (intros; apply H; lia). rewrite H by lia. reflexivity. Qed.
Lemma fits_within x n : within x n -> fits_in x n = true.
Proof. unfold within, fits_in; destruct n as [m|]; auto. intro; apply Z.leb_le; auto. Qed.
Lemma all_classes {A} (p : A -> bool) (g : nat -> A) C : (forall j, (j < C)%nat -> p (g j) = true) -> forallb p (map g (seq 0 C)) = true.
Proof. intro H. apply forallb_forall. intros x I. apply in_map_iff in I; destruct I as [j [<- I]]. apply in_seq in I. apply H; lia. Qed.

Lemma nth_class {A} (f : nat -> A) C d k : (k < C)%nat -> nth k (map f (seq 0 C)) d = f k.
Proof. intro H. rewrite (nth_indep _ d (f O)) by (rewrite map_length, seq_length; auto). rewrite (map_nth f), seq_nth; auto. Qed.
Lemma nth_map {A} (f : nat -> A) C (d : nat -> A) : map f (seq 0 C) = map (fun j => nth j (map f (seq 0 C)) (d j)) (seq 0 C).
Proof. apply map_ext_in. intros j I. apply in_seq in I. rewrite nth_class by lia. reflexivity. Qed.

Section CountedClasses.
  Variables (s : settings) (t : target).
  Hypothesis ok : well_made s t = true.
  Hypothesis some_class : (0 < num_classes s)%nat.
  Let v := count_classes s t.
  Let C := num_classes s.

  (** What the program counts for class j. *)
  Definition counted_class (j : nat) : standing_of := nth j (z_classes v) (Standing j 0 0 0 0 0).

  Lemma classes_are : z_classes v = map counted_class (seq 0 C).
  Proof. unfold counted_class, v, count_classes; cbn [z_classes]. apply nth_map. Qed.

  (** --- Votes in tiers --- *)
  Let V := votes_of s t.
  Record counts_class (k : nat) (z : standing_of) : Prop := {   (* the numbers of Theorem 12 (a) and (b) *)
    q_class : z_class z = k;
    q_sure : z_sure z = prior_certain s t k + standing V k;
    q_0 : z_0 z = for_class V k Reached; q_1 : z_1 z = for_class V k Unreached; q_2 : z_2 z = for_class V k Unlisted;
    q_not_0 : z_all_0 v - z_0 z = not_for V k Reached; q_not_1 : z_all_1 v - z_1 z = not_for V k Unreached; q_not_2 : z_all_2 v - z_2 z = not_for V k Unlisted;
    q_way : z_way z = o_way Z (own_votes_of t) k; q_way_not : z_ways v - z_way z = o_way_not Z (own_votes_of t) k
  }.

  Lemma class_counted k : (k < C)%nat -> counts_class k (counted_class k).
  Proof.
    intro Hk. unfold counted_class, v, count_classes; cbn [z_classes].
    rewrite nth_class by exact Hk.
    split; unfold v, count_classes; cbn [z_class z_sure z_0 z_1 z_2 z_way z_all_0 z_all_1 z_all_2 z_ways]; auto;
      rewrite ?count_r0, ?count_w, ?choices_size, ?size_add; cbn [length]; rewrite ?Z.add_0_r, ?Z.add_0_l; change (Z.of_nat (length (listed_votes t))) with (len (listed_votes t)).
    - unfold V; rewrite (V_standing s t ok some_class). lia.
    - unfold V; rewrite (V_for s t ok some_class); auto.
    - unfold V; rewrite (V_for s t ok some_class); auto.
    - unfold V; rewrite (V_for s t ok some_class); auto.
    - unfold V; rewrite (V_not s t ok some_class); auto.
    - unfold V; rewrite (V_not s t ok some_class); auto.
    - unfold V; rewrite (V_not s t ok some_class); auto.
    - rewrite (O_way s t ok some_class); auto.
    - rewrite (O_way_not s t ok some_class); auto.
  Qed.
  Lemma unsure_is : z_unsure v = conceded V + prior_doubt s t.
  Proof.
    unfold v, count_classes; cbn [z_unsure]. rewrite !choices_size, size_add. cbn [length]. rewrite !Z.add_0_r, Z.add_0_l. change (Z.of_nat (length (listed_votes t))) with (len (listed_votes t)).
    unfold V; rewrite (V_conceded s t ok some_class). lia.
  Qed.

  (** Theorem 12 (a): a class that is possible passes the program's test. *)
  Theorem can_win_complete n k : (k < C)%nat ->
    possible V C (prior_certain s t) (prior_doubt s t) n k -> can_win n v (counted_class k) = true.
  Proof.
    intros Hk [H1 H2 H3 H4]. pose proof (class_counted k Hk) as K. unfold can_win.
    set (won_ := limit3 n _ _ _).
    assert (W : won_ = won V n k).
    { unfold won_, won, limit, limit3. rewrite (q_not_0 _ _ K), (q_not_1 _ _ K), (q_not_2 _ _ K). reflexivity. }
    assert (N : forall j, (j < C)%nat -> short_of v (counted_class k) (Some won_) (counted_class j) = must_lose V (prior_certain s t) (prior_doubt s t) n k j).
    { intros j Hj. pose proof (class_counted j Hj) as J. unfold short_of, ahead_of, must_lose. rewrite (q_class _ _ K), (q_class _ _ J), (q_sure _ _ K), (q_sure _ _ J), unsure_is, W.
      destruct (Nat.eqb j k); [reflexivity|]. f_equal. lia. }
    rewrite classes_are, map_map, !total_classes. cbn [fst snd].
    assert (F : forall j, (j < C)%nat -> z_0 (counted_class j) = for_class V j Reached /\ z_1 (counted_class j) = for_class V j Unreached /\ z_2 (counted_class j) = for_class V j Unlisted)
      by (intros j Hj; pose proof (class_counted j Hj) as J; split; [apply J|split; apply J]).
    repeat (apply andb_true_intro; split).
    - apply all_classes. intros j Hj. cbn [fst snd]. rewrite (N j Hj). destruct (F j Hj) as [F0 [F1 F2]]; rewrite ?F0, ?F1, ?F2. apply Z.leb_le. auto.
    - apply fits_within. erewrite over_ext; [exact H2|]. intros j Hj. apply N; auto.
    - apply fits_within. erewrite over_ext; [exact H3|]. intros j Hj. cbv beta. rewrite (N j Hj). destruct (F j Hj) as [F0 [F1 F2]]; rewrite ?F0, ?F1, ?F2. reflexivity.
    - apply fits_within. erewrite over_ext; [exact H4|]. intros j Hj. cbv beta. rewrite (N j Hj). destruct (F j Hj) as [F0 [F1 F2]]; rewrite ?F0, ?F1, ?F2. reflexivity.
  Qed.

  (** --- A group for each neighbour --- *)
  Let O := own_votes_of t.

  (** The program counts empty groups among all groups, and those that are not stable for k: j is ahead by no more than in Theorem 12. *)
  Lemma own_ahead_is j k : own_groups s = true -> j <> k ->
    prior_certain s t j + standing V j + tie j k - (prior_certain s t k + standing V k) - (conceded V + prior_doubt s t) <= own_ahead Z O (own_prior s t) (prior_doubt s t) (empty_casts s) k j.
  Proof.
    intros own N. destruct (ok_parts s t ok) as [A [_ [_ E]]]; specialize (E own). pose proof (ascends_len _ _ _ A) as B.
    assert (L0 : 0 <= len (listed_votes t)) by (unfold len; lia).
    unfold own_ahead, own_standing, V, O. rewrite !(V_standing s t ok some_class), (V_conceded s t ok some_class), !(O_for s t ok some_class), (O_unstable s t ok some_class).
    cbn [cast_by own_votes_of]. rewrite map_length. change (Z.of_nat (length (listed_votes t))) with (len (listed_votes t)).
    unfold prior_certain, class_prior_of, own_prior; rewrite own; cbn [andb]. unfold default_for; rewrite E.
    assert (NB : beq (empty_casts s) (Some j) = true -> beq (empty_casts s) (Some k) = true -> False) by (rewrite !beq_true; congruence).
    destruct (beq (empty_casts s) (Some j)), (beq (empty_casts s) (Some k)); try (exfalso; auto; fail); destruct (is_stable (default_vote t)); lia.
  Qed.

  (** Theorem 12 (b): a class that is possible passes the program's test. *)
  Theorem own_can_win_complete n k : own_groups s = true -> (k < C)%nat ->
    own_possible Z O C (own_prior s t) (prior_doubt s t) (empty_casts s) n k -> own_can_win (empty_casts s) n v (counted_class k) = true.
  Proof.
    intros G Hk [H1 H2 H3]. pose proof (class_counted k Hk) as K. unfold own_can_win. rewrite (q_class _ _ K).
    set (y0 := empty_casts s) in *. set (D := prior_doubt s t) in *. set (P := own_prior s t) in *.
    assert (FK : forall j, (j < C)%nat -> z_0 (counted_class j) + z_1 (counted_class j) = o_for Z O j).
    { intros j Hj. pose proof (class_counted j Hj) as J. rewrite (q_0 _ _ J), (q_1 _ _ J). unfold V, O; rewrite !(V_for s t ok some_class), (O_for s t ok some_class). reflexivity. }
    assert (NK : z_all_0 v - z_0 (counted_class k) + (z_all_1 v - z_1 (counted_class k)) = o_not Z O k).
    { rewrite (q_not_0 _ _ K), (q_not_1 _ _ K). unfold V, O; rewrite !(V_not s t ok some_class), (O_not s t ok some_class). reflexivity. }
    rewrite NK, (q_way_not _ _ K). fold O. set (alt := cap (t_altered n) (o_not Z O k)) in *.
    assert (W : (if beq y0 (Some k) then Some (cap (ladd (t_touched n) (Some (cap (t_turned n) (o_way_not Z O k)))) (o_not Z O k)) else ladd (t_new n) (Some alt)) = own_won Z O y0 n k) by reflexivity.
    rewrite W.
    assert (A : forall j, (j < C)%nat -> j <> k -> ahead_of v (counted_class k) (counted_class j) <= own_ahead Z O P D y0 k j).
    { intros j Hj N. pose proof (class_counted j Hj) as J. unfold ahead_of. rewrite (q_class _ _ K), (q_class _ _ J), (q_sure _ _ K), (q_sure _ _ J), unsure_is.
      pose proof (own_ahead_is j k G N) as Q. unfold own_ahead in *. fold O y0 P D in Q. lia. }
    assert (N : forall j, (j < C)%nat -> short_of v (counted_class k) (own_won Z O y0 n k) (counted_class j) <= own_need Z O P D y0 n k j).
    { intros j Hj. pose proof (class_counted j Hj) as J. unfold short_of, own_need. rewrite (q_class _ _ K), (q_class _ _ J). destruct (Nat.eqb_spec j k) as [|NE]; [lia|].
      specialize (A j Hj NE). destruct (own_won Z O y0 n k); lia. }
    assert (Y : forall j, (j < C)%nat -> beq y0 (Some (z_class (counted_class j))) = beq y0 (Some j)) by (intros j Hj; rewrite (q_class _ _ (class_counted j Hj)); reflexivity).
    set (need' := fun j => if beq y0 (Some j) then 0 else short_of v (counted_class k) (own_won Z O y0 n k) (counted_class j)).
    set (turn' := fun j => if beq y0 (Some j) then 0 else Z.min (o_way Z O j) (need' j)).
    assert (LOSE : total snd (map (fun j => (j, if beq y0 (Some (z_class j)) then 0 else short_of v (counted_class k) (own_won Z O y0 n k) j)) (z_classes v)) 0 = over_classes need' C).
    { rewrite classes_are, map_map, total_classes. cbn [fst snd]. apply over_ext. intros j Hj. rewrite (Y j Hj). reflexivity. }
    assert (TURN : total (fun p => if beq y0 (Some (z_class (fst p))) then 0 else Z.min (z_way (fst p)) (snd p))
                     (map (fun j => (j, if beq y0 (Some (z_class j)) then 0 else short_of v (counted_class k) (own_won Z O y0 n k) j)) (z_classes v)) 0 = over_classes turn' C).
    { rewrite classes_are, map_map, total_classes. cbn [fst snd]. apply over_ext. intros j Hj. rewrite (Y j Hj), (q_way _ _ (class_counted j Hj)). reflexivity. }
    rewrite LOSE, TURN.
    (* what must be lost, and what of it can be turned, is no more than Theorem 12 has, and falls together *)
    assert (LESS : forall c, (c <= C)%nat ->
        let f := fun j => if beq y0 (Some j) then 0 else own_need Z O P D y0 n k j in let g := fun j => if beq y0 (Some j) then 0 else Z.min (o_way Z O j) (own_need Z O P D y0 n k j) in
        over_classes need' c <= over_classes f c /\ over_classes turn' c <= over_classes g c /\ over_classes g c - over_classes turn' c <= over_classes f c - over_classes need' c).
    { cbv zeta. induction c as [|c IH]; intro Hc; cbn [over_classes]; [lia|]. specialize (IH ltac:(lia)). pose proof (N c ltac:(lia)) as Nc. unfold turn', need' in *. destruct (beq y0 (Some c)); lia. }
    specialize (LESS C (le_n C)). cbv zeta in LESS. fold (own_lose Z O C P D y0 n k) (own_turn Z O C P D y0 n k) in LESS. destruct LESS as [L1 [L2 L3]].
    repeat (apply andb_true_intro; split).
    - rewrite classes_are, map_map. apply all_classes. intros j Hj. cbn [fst snd]. rewrite (Y j Hj), (FK j Hj). apply Z.leb_le. destruct (beq y0 (Some j)) eqn:E.
      + unfold o_for. rewrite amount_filter. lia.
      + etransitivity; [apply (N j Hj)|]. apply H1; auto. intro Q. apply beq_false in E. contradiction.
    - apply fits_within. revert H2; unfold within, cap. destruct (t_touched n), (t_turned n); auto; lia.
    - destruct (t_new n) as [new|] eqn:EN; [|reflexivity]. rewrite classes_are. apply all_classes. intros j Hj. rewrite (Y j Hj), (q_class _ _ (class_counted j Hj)).
      destruct (beq y0 (Some j)) eqn:E; cbn [negb orb]; [|reflexivity]. destruct (Nat.eqb_spec j k) as [|NE]; [reflexivity|]. cbn [orb].
      rewrite (FK j Hj). specialize (A j Hj NE). apply beq_true in E. destruct (H3 j new Hj E NE eq_refl) as [Q1 Q2]. fold alt in Q1, Q2. apply andb_true_intro; split; apply Z.leb_le; lia.
  Qed.
End CountedClasses.

(** ---- What the program leaves out, votes ---- *)

(** Counts do not depend on how keys are numbered. *)
Lemma numbered_possible (key : Type) (t : target) (V : own_votes key) : numbered t V ->
  forall C P d y n k, own_possible key V C P d y n k -> own_possible Z (own_votes_of t) C P d y n k.
Proof.
  intros N C P d y n k. destruct (numbered_counts _ _ _ N) as [F [O [W [WN _]]]].
  assert (U : o_unstable _ V = o_unstable _ (own_votes_of t)) by apply (numbered_amount _ _ _ N (fun _ s _ => negb s)).
  assert (ST : forall j, own_standing _ V P y j = own_standing _ (own_votes_of t) P y j) by (intro j; unfold own_standing; rewrite F, (numbered_length _ _ _ N); reflexivity).
  assert (WO : own_won _ V y n k = own_won _ (own_votes_of t) y n k) by (unfold own_won; rewrite O, WN; reflexivity).
  assert (AH : forall j, own_ahead _ V P d y k j = own_ahead _ (own_votes_of t) P d y k j) by (intro j; unfold own_ahead; rewrite !ST, U; reflexivity).
  assert (NE : forall j, own_need _ V P d y n k j = own_need _ (own_votes_of t) P d y n k j) by (intro j; unfold own_need; rewrite WO, AH; reflexivity).
  assert (LO : own_lose _ V C P d y n k = own_lose _ (own_votes_of t) C P d y n k) by (unfold own_lose; apply over_ext; intros j _; rewrite NE; reflexivity).
  assert (TU : own_turn _ V C P d y n k = own_turn _ (own_votes_of t) C P d y n k) by (unfold own_turn; apply over_ext; intros j _; rewrite NE, W; reflexivity).
  intros [H1 H2 H3]. split.
  - intros j Hj NY. rewrite <- NE, <- F. auto.
  - rewrite <- LO, <- TU. auto.
  - intros y' nn Hy EY NK EN. rewrite <- AH, <- F, <- O, <- LO. apply (H3 y' nn); auto.
Qed.

(** A class that is left out does not win, whatever votes move within the limits of the budget. *)
Theorem left_out_sound :
  forall (s : settings) (t : target) (B : budget) (own : bool) (k : nat),
    own_groups s = false -> (0 < num_classes s)%nat -> left_out s t (B, own) k = true ->
    exists n, reach_of s (count_target s t) (clip_budget B) own = Some n /\ num_reached (votes_of s t) = num_reached_in (count_target s t)
      /\ forall (r : nat -> vote) (P' : nat -> Z), moves (votes_of s t) n r ->
           (forall a j, prior_certain s t a - prior_certain s t j - prior_doubt s t <= P' a - P' j) ->
           voted (num_classes s) (groups (votes_of s t)) P' r <> k.
Proof.
  intros s t B own k O HC H. unfold left_out, cannot_get in H. rewrite O in H. cbn [fst snd] in H.
  assert (Hk : (k < num_classes s)%nat).
  { destruct (Nat.lt_ge_cases k (num_classes s)) as [|L]; auto. rewrite nth_overflow in H; [discriminate|].
    destruct (reach_of s (count_target s t) (clip_budget B) own); rewrite map_length, classes_are, map_length, seq_length; auto. }
  destruct (reach_of s (count_target s t) (clip_budget B) own) as [n|] eqn:E; rewrite classes_are, map_map, nth_class in H by auto; [|discriminate].
  apply andb_prop in H; destruct H as [H H3]. apply andb_prop in H; destruct H as [H1 H2].
  change (well_made s t = true) in H1. pose proof (class_counted s t H1 HC k Hk) as K. rewrite (q_class _ _ _ _ K), label_counted in H2. apply negb_true_iff, Nat.eqb_neq in H2.
  exists n. split; auto. split; [apply V_reached; auto|]. intros r P' M HP W. apply orb_true_iff in H3; destruct H3 as [H3|H3].
  - destruct (holds_test s t B own O HC H3) as [n' [E' [Hw _]]]. rewrite E in E'. injection E' as <-. apply H2. rewrite <- W. apply (vote_sound (votes_of s t) _ _ P' _ _ n r Hw); auto.
  - apply negb_true_iff in H3. rewrite (can_win_complete s t H1 HC n k Hk) in H3; [discriminate|]. apply (winner_is_possible (votes_of s t) _ _ _ n k r P' M); auto.
Qed.

(** The same where every neighbour has a group of its own. *)
Theorem own_left_out_sound :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (V : own_votes key) (B : budget) (own : bool) (k : nat),
    own_groups s = true -> (0 < num_classes s)%nat -> left_out s t (B, own) k = true -> numbered t V -> NoDup (cast_by _ V) ->
    own = false /\ exists n, touches_of s (count_target s t) (clip_budget B) false = Some n
      /\ forall (S' : list key) (r : key -> vote) (P' : nat -> Z), NoDup S' -> own_moves key V n S' r ->
           (forall a j, own_prior s t a - own_prior s t j - prior_doubt s t <= P' a - P' j) ->
           own_voted key (num_classes s) P' (empty_casts s) S' r <> k.
Proof.
  intros key key_eq s t V B own k O HC H N ND. unfold left_out, cannot_get in H. rewrite O in H. cbn [fst snd] in H.
  assert (Hk : (k < num_classes s)%nat).
  { destruct (Nat.lt_ge_cases k (num_classes s)) as [|L]; auto. rewrite nth_overflow in H; [discriminate|].
    destruct (touches_of s (count_target s t) (clip_budget B) own); rewrite map_length, classes_are, map_length, seq_length; auto. }
  destruct (touches_of s (count_target s t) (clip_budget B) own) as [n|] eqn:E; rewrite classes_are, map_map, nth_class in H by auto; [|discriminate].
  destruct own; [discriminate|]. split; auto. exists n; split; auto. intros S' r P' NS M HP W.
  apply andb_prop in H; destruct H as [H H3]. apply andb_prop in H; destruct H as [H1 H2].
  change (well_made s t = true) in H1. pose proof (class_counted s t H1 HC k Hk) as K. rewrite (q_class _ _ _ _ K), label_counted in H2. apply negb_true_iff, Nat.eqb_neq in H2.
  apply orb_true_iff in H3; destruct H3 as [H3|H3].
  - destruct (holds_own_test s t B false O HC H3) as [n' [E' Hw]]. rewrite E in E'. injection E' as <-. apply (numbered_withstands _ _ _ N) in Hw.
    apply H2. rewrite <- W. apply (own_vote_sound key key_eq V _ _ P' _ _ _ n S' r ND NS Hw); auto.
  - apply negb_true_iff in H3. rewrite (own_can_win_complete s t H1 HC n k O Hk) in H3; [discriminate|]. apply (numbered_possible _ _ _ N).
    apply (own_winner_is_possible key key_eq V _ _ _ _ n k S' r P'); auto.
Qed.

(** ---- One theorem for each rule ---- *)

(** Theorem 12 (a) with Theorem 3: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_edge_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByEdge -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    covers id F W (Z.to_nat (num_groups s)) h v G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> ereading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.
Proof.
  intros id F W id_eq s t B own k h f v G R0 R1 HC H Hh Lf Hf Hc G' r P' Ha Hr HP.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  apply Hw; [|intros; apply prior_read_doubt; auto]. destruct (attacked_clip id_eq _ _ _ _ Ha) as [A [L [Ha' Hs]]].
  apply (eattack_moves id F W id_eq _ h Hh f Lf v A G G' L Hs (clip_budget B) _ _ Ha' Hf Hc r Hr).
Qed.

(** Theorem 12 (a) with Theorem 4: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByNode -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local f ->
    faithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> reading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.
Proof.
  intros id F W id_eq s t B own k h f v G R0 R1 HC H Lf Hf G' r P' Ha Hr HP.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1, <- HR in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  apply Hw; [|intros; apply prior_read_doubt; auto]. destruct (attacked_clip id_eq _ _ _ _ Ha) as [A [L [Ha' Hs]]].
  apply (attack_moves id F W id_eq _ h f Lf v A G G' L Hs (clip_budget B) Ha' _ Hf r Hr).
Qed.

(** Theorem 12 (a) with Theorem 5: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gated :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (f : model id (option F) W) (v : id) (G : graph id F W),
    rule s = ByGatedNode -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    local f ->
    tfaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      tattacked id F W id_eq v own B G G' -> treading id F W (Z.to_nat (num_groups s)) h f v G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k h f v G R0 HC D H Lf Hf G' r Ha Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, <- HR in E.
  destruct ((keeps_ids s || is_zero (delete_nodes (clip_budget B))) && negb (of_graphs s)); [|discriminate]; injection E as <-.
  apply Hw; [|intros; lia]. destruct Ha as [A [L [L4 [Ha [v1 [v2 [v3 [h1 h2]]]]]]]]. apply affords_clip in Ha.
  change (moves (votes_of s t) (gated_reach own (votes_of s t) (clip_budget B)) r). eapply gated_moves; eauto.
Qed.

(** Theorem 12 (a) with Theorem 6, edge-centric: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_edge_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> id -> nat) (g : gmodel id F W) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, h x y = h y x) ->
    egfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> egreading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k h g G someone R0 R1 HC D H Hh Hf Hc G' r [A [L [L3 Ha]]] Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  apply Hw; [|intros; lia]. apply affords_clip in Ha. eapply egattack_moves; eauto.
Qed.

(** Theorem 12 (a) with Theorem 6, node-centric, without self-loops: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g ->
    gfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k h g G R0 R1 HC D H Lg Hf Hl G' r [A [L [L3 Ha]]] Hl' Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  apply Hw; [|intros; lia]. apply affords_clip in Ha. apply (gattack_moves id F W id_eq _ g Lg h A G G' L L3 _ _ r Ha Hr); auto.
Qed.

(** Theorem 12 (a) with Theorem 6, node-centric, self-loops kept: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_node_centric_graph_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g ->
    gfaithful_loops id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k h g G R0 R1 HC D H Lg Hf G' r [A [L [L3 Ha]]] Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  apply Hw; [|intros; lia]. apply affords_clip in Ha. apply (gattack_moves_loops id F W id_eq _ g Lg h A G G' L L3 _ _ r Ha Hr Hf).
Qed.

(** Theorem 12 (a), GNNCert-E: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_e :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (he : id -> id -> nat) (g : shown_model id W F) (G : graph id F W),
    rule s = GnncertE -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, he x y = he y x) -> sees_only id W F g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) F g (esub id F W he) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> affords id_eq B A -> shown_reading id F W (Z.to_nat (num_groups s)) F g (esub id F W he) G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k he g G R0 HC D H Hh S Hf A G' r HA Ha Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E. apply affords_clip in Ha.
  destruct (no_nodes (clip_budget B)); [|discriminate]. destruct (is_zero (change_features (clip_budget B))) eqn:Z1; [|discriminate].
  destruct own; [discriminate|]. destruct (keeps_ids s || _); [|discriminate]. simpl in E; injection E as <-. split; auto.
  apply Hw; [|intros; lia]. apply (gnncert_e_moves id F W id_eq _ he g G _ (clip_budget B) A G' r Hh S Hf HA); auto.
  pose proof (few_altered _ _ _ _ Ha) as FA. unfold few, within, is_zero in *. destruct (change_features (clip_budget B)); [|discriminate].
  apply Z.leb_le in Z1. destruct (altered A); auto; simpl in FA; lia.
Qed.

(** Theorem 12 (a), GNNCert-N: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_n :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    rule s = GnncertN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    sees_only id W (option F) g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (pairs_of id A) (touched_edges B) -> few (altered A) (with_own own B) ->
      shown_reading id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k hf g G R0 HC D H S Hf A G' r HA Fp Fa Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E.
  destruct (no_nodes (clip_budget B)); [|discriminate]. destruct (is_zero (touched_edges (clip_budget B))) eqn:Z1; [|discriminate].
  destruct (negb (own && of_graphs s)); [|discriminate]. destruct (keeps_ids s || _); [|discriminate]. simpl in E; injection E as <-.
  apply Hw; [|intros; lia]. eapply gnncert_n_moves; eauto; [eapply no_pair_changes; eauto|apply few_with_own; auto].
Qed.

(** Theorem 12 (a), GNNCert-EN: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_gnncert_en :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (height width : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    let look i := cell id F W he hf (i / width) (i mod width) in
    rule s = GnncertEN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    edge_groups s = Z.of_nat height -> feature_groups s = Z.of_nat width -> num_groups s = Z.of_nat (height * width) -> (0 < width)%nat ->
    left_out s t (B, own) k = true ->
    (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) -> few (changed A) (change_edges B) ->
      few (altered A) (with_own own B) ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted (num_classes s) (height * width) (prior_certain s t) r <> k.
Proof.
  intros id F W id_eq s t B own k height width he hf g G look R0 HC D E1 E2 E3 Hpos H Hh S Hf A G' r HA f1 f2 f3 Fa Hr.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E.
  destruct (no_nodes (clip_budget B)); [|discriminate].
  destruct (negb (own && of_graphs s)); [|discriminate]. destruct (keeps_ids s || _); [|discriminate]. simpl andb in E; injection E as <-.
  rewrite E1, E2 in Hw. replace (height * width)%nat with (groups (votes_of s t)) by apply (proj1 Hf).
  apply Hw; [|intros; lia]. eapply gnncert_en_moves; eauto using few_clip; try (apply few_clip; assumption). apply few_with_own; auto.
Qed.

(** Theorem 12 (a), a user's own division: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_stated :
  forall (s : settings) (t : target) (B : budget) (own : bool) (k : nat),
    rule s = AsStated -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    exists n, at_prices (price s) (own_price s) (clip_budget B) own = Some n
      /\ forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
           (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
           few moved n -> prior_read s t P' ->
           voted (num_classes s) (Z.to_nat (num_groups s)) P' r <> k.
Proof.
  intros s t B own k R0 HC H.
  destruct (left_out_sound s t B own k) as [n [E [HR Hw]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E. destruct (at_prices (price s) (own_price s) (clip_budget B) own) as [m|]; [|discriminate].
  exists m; split; auto; intros r P' moved Hm Fm HP.
  destruct ((keeps_ids s || _) && _); [|discriminate]; injection E as <-.
  apply Hw; [|intros; apply prior_read_doubt; auto]. apply (Moves _ _ r moved moved moved); auto.
Qed.

(** Theorem 12 (b), a group for each neighbour: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_neighbour :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local f -> numbered t V -> ofaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' -> oreading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r <> k.
Proof.
  intros id F W id_eq s t B own k f v G V R0 R1 HC H Lf N Hf G' S' r P' [A [L [L2 [Ha Hs]]]] Hr HP. apply affords_clip in Ha.
  destruct (own_left_out_sound id id_eq s t V B own k) as [-> [n [E Hw]]]; auto; [unfold own_groups; rewrite R0; auto|apply (olists_ok _ _ _ _ _ _ _ _ Hf)|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-.
  apply Hw; [apply Hr| |intros; apply own_prior_read_doubt; auto]. apply (own_attack_moves id F W id_eq f Lf v A G G' L L2 Hs _ V S' r Ha Hf Hr).
Qed.

(** Theorem 12 (b), a group for each pair: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_pair :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByPair -> of_graphs s = false -> (0 < num_classes s)%nat ->
    left_out s t (B, own) k = true ->
    local_undirected f -> numbered t V -> pfaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' -> preading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r <> k.
Proof.
  intros id F W id_eq s t B own k f v G V R0 R1 HC H Lf N Hf G' S' r P' [A [L [L2 [L3 [Ha Hs]]]]] Hr HP. apply affords_clip in Ha.
  destruct (own_left_out_sound id id_eq s t V B own k) as [-> [n [E Hw]]]; auto; [unfold own_groups; rewrite R0; auto|apply (plists_ok _ _ _ _ _ _ _ _ Hf)|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-.
  apply Hw; [apply Hr| |intros; apply own_prior_read_doubt; auto]. apply (pair_attack_moves id F W id_eq f Lf v A G G' L L2 L3 Hs _ V S' r Ha Hf Hr).
Qed.

(** Theorem 12 (b), graphs, a group for each node: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_node_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (g : gmodel id F W) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    extensional id F W g -> numbered t V -> nfaithful id F W id_eq g V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' -> nreading id F W id_eq g G' S' r ->
      own = false /\ own_voted id (num_classes s) (own_prior s t) (empty_casts s) S' r <> k.
Proof.
  intros id F W id_eq s t B own k g G V R0 R1 HC D H Lg N Hf G' S' r [A [L [L3 [L4 Ha]]]] Hr. apply affords_clip in Ha.
  destruct (own_left_out_sound id id_eq s t V B own k) as [-> [n [E Hw]]]; auto; [unfold own_groups; rewrite R0; auto|apply (nlists_ok _ _ _ _ _ _ _ Hf)|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-.
  apply Hw; [apply Hr| |intros; lia]. eapply node_attack_moves; eauto.
Qed.

(** Theorem 12 (b), graphs, a group for each pair: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_per_pair_graph :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (s : settings) (t : target) (B : budget) (own : bool) (k : nat)
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id) (G : graph id F W) (V : own_votes key),
    rule s = ByPair -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    left_out s t (B, own) k = true ->
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g -> numbered t V -> gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G (row (cover_row t)) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' -> gpreading id F W key id_eq g name counts G' S' r ->
      own = false /\ own_voted key (num_classes s) (own_prior s t) (empty_casts s) S' r <> k.
Proof.
  intros id F W key id_eq key_eq s t B own k g name counts someone G V R0 R1 HC D H Hs Hi Lg N Hf Hd G' S' r [A [L [L2 [L3 Ha]]]] Hr. apply affords_clip in Ha.
  destruct (own_left_out_sound key key_eq s t V B own k) as [-> [n [E Hw]]]; auto; [unfold own_groups; rewrite R0; auto|apply (gplists_ok _ _ _ _ _ _ _ _ _ _ Hf)|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-.
  apply Hw; [apply Hr| |intros; lia]. eapply gp_moves; eauto.
Qed.

(** ---- Stacked votes ---- *)

Lemma beaten (score : nat -> Z) C j k : (j < C)%nat -> j <> k -> score k + tie k j <= score j -> best score C <> k.
Proof.
  intros Hj N H E. assert (L : is_label score C k) by (rewrite <- E; apply best_is_label; lia). destruct L as [_ L]. specialize (L j Hj N).
  assert (tie j k + tie k j = 1) by (unfold tie; destruct (Nat.ltb_spec j k), (Nat.ltb_spec k j); lia). lia.
Qed.

(** What it takes that the program leaves out k: a class j whose lead over k stays. *)
Lemma stacked_left_out_by s t B own k : (0 < x_classes s)%nat -> stacked_left_out s t (B, own) k = true ->
  own = false /\ sensible_file s t = true /\ (k < x_classes s)%nat /\ exists j, (j < x_classes s)%nat /\ j <> k
    /\ let r := against s t (size (x_rows t) 0) (column j (x_rows t)) j k in let D := clip_budget B in
       if x_second s =? 0 then lead_stays s (y_degree (count_stacked s t)) false (new_in D) (lost_in D) (altered_in s D) r = true
       else second_lead_stays s (edges_in D) (nodes_in D) (grown_by s (nodes_in D)) (column j (x_rows t)) r = true.
Proof.
  intros HC H. unfold stacked_left_out, stacked_cannot_get, count_duels in H. cbn [fst snd] in H.
  assert (Hk : (k < x_classes s)%nat).
  { destruct (Nat.lt_ge_cases k (x_classes s)) as [|L]; auto. rewrite nth_overflow in H; [discriminate|]. destruct (x_second s =? 0); rewrite !map_length, seq_length; auto. }
  assert (G : forall behind : list Z * stacked_rival -> bool, nth k (map (fun p => y_made (count_stacked s t) && negb own && negb (Nat.eqb (fst p) (y_label (count_stacked s t))) && existsb behind (snd p))
      (map (fun k => (k, map (fun p => (snd p, against s t (size (x_rows t) 0) (snd p) (fst p) k)) (filter (fun p => negb (Nat.eqb (fst p) k)) (map (fun j => (j, column j (x_rows t))) (seq 0 (x_classes s))))))
        (seq 0 (x_classes s)))) false = true ->
    own = false /\ sensible_file s t = true /\ exists j, (j < x_classes s)%nat /\ j <> k /\ behind (column j (x_rows t), against s t (size (x_rows t) 0) (column j (x_rows t)) j k) = true).
  { clear H. intros behind H. rewrite map_map, nth_class in H by auto. cbn [fst snd] in H. apply andb_prop in H; destruct H as [H H4]. apply andb_prop in H; destruct H as [H H3]. apply andb_prop in H; destruct H as [H1 H2].
    split; [destruct own; auto; discriminate|]. split; [exact H1|]. apply existsb_exists in H4. destruct H4 as [p [I Hb]]. apply in_map_iff in I; destruct I as [q [<- I]]. apply filter_In in I; destruct I as [I NK].
    apply in_map_iff in I; destruct I as [j [<- I]]. cbn [fst snd] in *. apply in_seq in I. apply negb_true_iff, Nat.eqb_neq in NK. exists j. split; [lia|]. split; auto. }
  destruct (x_second s =? 0); apply G in H; destruct H as [H1 [H2 H3]]; auto.
Qed.

(** Theorem 12 (c) with Theorem 10: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_stacked :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : graph id F W -> id -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (k : nat),
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    stacked_left_out s t (B, own) k = true ->
    stacked_model id F W v vote_steps reads (by_edge _ V) -> sfaithful id F W v vote_steps reads V G ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      stacked_attacked id F W id_eq v B G G' -> sreading id F W v reads G' N' b -> stacked_reading id V p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b <> k.
Proof.
  intros id F W id_eq v reads s t V G B own k HC H2 St H Mo Fa G' N' b p g [A [L [L2 [L3 [L4 [Ha Sp]]]]]] Rd Re.
  destruct (stacked_left_out_by s t B own k HC H) as [-> [M [Hk [j [Hj [N LS]]]]]]. split; auto. cbv zeta in LS. rewrite H2 in LS. cbn [Z.eqb] in LS.
  pose proof (all_few id F W id_eq v vote_steps reads A G G' L V Mo (clip_budget B) (affords_clip id_eq _ _ Ha)) as [F1 [F2 F3]].
  rewrite (f_by_edge _ _ _ St) in F3.
  apply (beaten _ _ j k Hj N). eapply (lead_stays_sound id id_eq V s t St M HC false); [apply (against_counted id V s t St HC)|exact LS|auto|auto|auto|exact Re| |].
  - eapply attack_changes; eauto. eapply (all_lists id F W id_eq v A G G'); eauto.
  - unfold within_numbers. repeat split; auto; discriminate.
Qed.

(** Theorem 12 (c) with Theorem 11, two levels: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
Theorem excluded_two_levels :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (k : nat),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t ->
    stacked_left_out s t (B, own) k = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) <> k.
Proof.
  intros id F W id_eq v reads exact s t V G B own k HC H2 St H Mo Sr G' N' b p [A [By Ha]] Rd P.
  destruct (stacked_left_out_by s t B own k HC H) as [-> [M [Hk [j [Hj [N LS]]]]]]. split; auto. cbv zeta in LS. rewrite (proj2 (Z.eqb_neq _ _) H2) in LS.
  pose proof (against_counted id V s t St HC j k) as R. destruct (x_used s) eqn:HU.
  - destruct (second_lead_is id s t V HC H2 St _ _ j k _ M HU Hj Hk R LS) as (e & n & E1 & E2 & T).
    destruct (amounts_fit id F W id_eq v (clip_budget B) A G G' By (affords_clip id_eq _ _ Ha)) as [F1 F2]. rewrite E1, E2 in *. cbn [ladd within] in *.
    destruct (fits s t H2 M) as [_ FS]. pose proof (slack_pos _ _ (file_sensible id V s t St M)) as SP. rewrite (f_slack _ _ _ St) in SP.
    eapply (two_levels_excluded id F W id_eq v reads exact s V G G' A j k n e N' b p); eauto; try lia. apply St.
  - apply (beaten _ _ j k Hj N). unfold two_score. rewrite !Z.add_0_r. eapply (unused_lead id V s t St); eauto.
Qed.
