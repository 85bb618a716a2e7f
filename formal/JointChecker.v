(** The checker for labels and edges together (docs/proofs.md, Theorem 17): the program that is extracted, and what its answers establish. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote StackedVote Checker CheckerProofs StackedChecker LabelVotes LabelChecker LabelsAndEdges.
Import ListNotations.
Open Scope Z_scope.

(** ---- Counting ---- *)

(** The settings of voters, which do not abstain. *)
Definition voter_settings (s : label_settings) : label_settings := LabelSettings (l_classes s) (l_advance s) 0.
(** 1 if the class is k. *)
Definition is_class (k c : nat) : Z := if Nat.eqb c k then 1 else 0.
(** Theorem 17: score_k of a target with these labels and neighbours. *)
Definition joint_score_of (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) (k : nat) : Z :=
  full_score s l k + q * sum label_counted (fun c => is_class k (v_label c)) near.
(** The label: the best score, the smaller class on a tie. *)
Definition joint_elected (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) : nat :=
  match l_classes s with O => O | S m => best_from (joint_score_of s q l near) 1 m 0 (joint_score_of s q l near O) end.
(** A target, counted: what a neighbour's vote counts, what labels say against each rival, and the neighbours. *)
Record joint_counted := JointCounted { j_made : bool; j_label : nat; j_each : Z; j_rivals : list label_rival; j_near : list label_counted }.
(** Counts a target from the labels that it reads, what a neighbour's vote counts, and its neighbours, each counted from its own labels. *)
Definition count_joint (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) : joint_counted :=
  let a := joint_elected s q l near in
  JointCounted ((0 <=? l_asked s) && (0 <=? q)) a q (map (label_against s l a) (filter (fun k => negb (Nat.eqb k a)) (seq 0 (l_classes s)))) near.

(** ---- Statements ---- *)

(** [a] - [k] of a neighbour whose vote so many changed labels leave as it is; else it is at worst for k. *)
Definition leaning (f : lim) (a k : nat) (c : label_counted) : Z :=
  if labels_hold c f then is_class a (v_label c) - is_class k (v_label c) else -1.
(** Neighbours that vote for a whatever these labels say. *)
Definition sure_for (f : lim) (a : nat) (near : list label_counted) : Z :=
  sum label_counted (fun c => if labels_hold c f then is_class a (v_label c) else 0) near.
(** What is left of the lead over a rival after f changed labels. *)
Definition joint_left (f : lim) (c : joint_counted) (r : label_rival) : Z :=
  v_lead r - first_sum f (v_costs r) 0 + j_each c * sum label_counted (leaning f (j_label c) (v_class r)) (j_near c).
(** The lead stays if so many neighbours come and so many go. *)
Definition joint_lead_stays (f new lost : lim) (c : joint_counted) (r : label_rival) : bool :=
  if j_each c =? 0 then 0 <=? joint_left f c r
  else match new with Some x => (x + cap lost (sure_for f (j_label c) (j_near c))) * j_each c <=? joint_left f c r | None => false end.
(** Theorem 17: the target holds. *)
Definition joint_holds (c : joint_counted) (f new lost : lim) : bool := j_made c && forallb (joint_lead_stays f new lost c) (j_rivals c).
(** Any mix of x changed labels and neighbours. *)
Fixpoint any_mix (fuel : nat) (c : joint_counted) (f x : Z) : bool :=
  match fuel with O => true | S m => joint_holds c (Some f) (Some (x - f)) (Some 0) && any_mix m c (f + 1) x end.
(** The stated radius is the largest that is proved. *)
Definition right_joint_radius (c : joint_counted) (entries x : Z) : bool :=
  is_largest (fun x => any_mix (Z.to_nat (x + 1)) c 0 x) (if j_each c =? 0 then entries else x + 1) x.
(** The same target with class a in the place of its label. *)
Definition led_by (a : nat) (c : joint_counted) : joint_counted := JointCounted (j_made c) a (j_each c) (j_rivals c) (j_near c).
(** Classes that may get past the label. *)
Definition joint_may_pass (c : joint_counted) (f new lost : lim) : list nat :=
  map v_class (filter (fun r => negb (joint_lead_stays f new lost c r)) (j_rivals c)).
(** Whether the target cannot get class k: the label stays ahead of it, or another class that may get past the label. *)
Definition joint_is_out (s : label_settings) (l : list label_entry) (c : joint_counted) (f new lost : lim) (k : nat) : bool :=
  j_made c && (existsb (fun r => Nat.eqb (v_class r) k && joint_lead_stays f new lost c r) (j_rivals c)
    || (negb (Nat.eqb k (j_label c))
        && existsb (fun j => negb (Nat.eqb j k) && joint_lead_stays f new lost (led_by j c) (label_against (not_asked s) l j k))
             (joint_may_pass c f new lost))).
(** For each class whether the target, counted from the labels that it reads, cannot get it. *)
Definition joint_cannot_get (s : label_settings) (l : list label_entry) (c : joint_counted) (f new lost : lim) : list bool :=
  map (joint_is_out s l c f new lost) (seq 0 (l_classes s)).

(** ---- What it means ---- *)

Section File.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  (** What a file says of one target: its entries, those of every node, which have the same labels, and the neighbours. *)
  Variable s : label_settings.
  Variable q : Z.
  Variable l : list label_entry.
  Variable theirs : key -> list label_entry.
  Variable N : list key.
  Hypothesis same_labels : forall u, length (theirs u) = length l
    /\ forall i, e_label (entry_at (theirs u) i) = e_label (entry_at l i) /\ e_audited (entry_at (theirs u) i) = e_audited (entry_at l i).

  (** What a node votes for if the training labels are y. *)
  Definition casts (y : nat -> vote) (u : key) : vote := Some (best (label_score (votes_in (voter_settings s) (theirs u)) y) (l_classes s)).
  (** The same target in the words of Theorem 17. *)
  Definition joint_in : joint key := Joint key (votes_in s l) N q casts.
  (** The neighbours, each counted from its own labels. *)
  Definition near_counted : list label_counted := map (fun u => count_labels (voter_settings s) (theirs u)) N.
  (** The target, counted. *)
  Definition target_counted : joint_counted := count_joint s q l near_counted.
  (** Neighbours that came and that went. *)
  Definition moved_within (new lost : lim) (N' : list key) : Prop :=
    NoDup N /\ NoDup N' /\ within (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N)) N'))) new
    /\ within (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N))) lost.
  (** The lead of a over k. *)
  Definition joint_lead (y : nat -> vote) (N' : list key) (a k : nat) : Z :=
    joint_score key joint_in y N' a - joint_score key joint_in y N' k - tie k a.

  (** ---- Proofs ---- *)

  Lemma score_ext V y y' k : (forall i, y i = y' i) -> label_score V y k = label_score V y' k.
  Proof. intro E. unfold label_score. f_equal. apply over_eq. intros i _. unfold given_to. rewrite E. auto. Qed.
  Lemma best_ext f g C : (forall k, f k = g k) -> best f C = best g C.
  Proof. intro E. induction C as [|C IH]; simpl; auto. rewrite IH, !E. auto. Qed.
  Lemma labels_same u i : labels_in (theirs u) i = labels_in l i.
  Proof. unfold labels_in. apply (same_labels u). Qed.

  Lemma cast_now u : (0 < l_classes s)%nat -> casts (labels_in l) u = Some (v_label (count_labels (voter_settings s) (theirs u))).
  Proof.
    intro C. unfold casts. f_equal. simpl. rewrite elected_is_best by auto. simpl. apply best_ext. intro k. apply score_ext.
    intro i. symmetry. apply labels_same.
  Qed.

  Lemma poisoned_theirs u f y' : poisoned_by f s l y' -> poisoned_by f (voter_settings s) (theirs u) y'.
  Proof.
    intros [A W]. destruct (same_labels u) as [L E]. split.
    - intros i Hi Au. rewrite labels_same. apply A; simpl in *; [lia|]. rewrite <- (proj2 (E i)). auto.
    - assert (Q : changed_entries (votes_in (voter_settings s) (theirs u)) (labels_in (theirs u)) y' = changed_entries (votes_in s l) (labels_in l) y').
      { unfold changed_entries. simpl. rewrite L. apply filter_ext. intro i. unfold is_changed. rewrite labels_same. auto. }
      rewrite Q. auto.
  Qed.

  (** Where the checker finds that a neighbour withstands f changed labels, its vote stays. *)
  Lemma holds_is_steady u f y' : (0 < l_classes s)%nat -> labels_hold (count_labels (voter_settings s) (theirs u)) f = true ->
    poisoned_by f s l y' -> casts y' u = Some (v_label (count_labels (voter_settings s) (theirs u))).
  Proof.
    intros C H P. destruct (checked_labels (voter_settings s) (theirs u) f C H y' (poisoned_theirs u f y' P)) as [D _].
    unfold casts. f_equal. apply label_is_best in D. exact D.
  Qed.

  Lemma sum_map (h : label_counted -> Z) L :
    sum label_counted h (map (fun u => count_labels (voter_settings s) (theirs u)) L) = sum key (fun u => h (count_labels (voter_settings s) (theirs u))) L.
  Proof. induction L as [|u L IH]; simpl; auto. rewrite IH. auto. Qed.

  Lemma sum_le (g h : key -> Z) L : (forall u, In u L -> g u <= h u) -> sum key g L <= sum key h L.
  Proof.
    induction L as [|u L IH]; intro H; [simpl; lia|]. cbn [sum]. specialize (IH (fun w I => H w (or_intror I))). specialize (H u (or_introl eq_refl)). lia.
  Qed.

  (** Those that went take at most as many votes as they are, and as were sure. *)
  Lemma gone_at_most (w sure : key -> Z) p L : (forall u, w u <= sure u) -> (forall u, 0 <= sure u <= 1) ->
    sum key w (filter p L) <= Z.min (Z.of_nat (length (filter p L))) (sum key sure L).
  Proof.
    intros W S. apply Z.min_glb.
    - apply (sum_at_most_length key w). intros u _. specialize (W u). specialize (S u). lia.
    - induction L as [|u L IH]; [simpl; lia|]. cbn [filter]. destruct (p u); cbn [sum]; specialize (W u); specialize (S u); lia.
  Qed.

  (** Neighbours come and go: w bounds what each of the old ones is worth. *)
  Lemma moved_by_kind (d w sure : key -> Z) N' : (forall u, -1 <= d u) -> (forall u, In u N -> w u <= d u) -> (forall u, w u <= sure u) ->
    (forall u, 0 <= sure u <= 1) -> NoDup N -> NoDup N' ->
    sum key w N - Z.of_nat (length (filter (fun u => negb (mem key key_eq u N)) N'))
      - Z.min (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N))) (sum key sure N) <= sum key d N'.
  Proof.
    intros D W S S1 HN HN'.
    set (here := fun u => mem key key_eq u N). set (there := fun u => mem key key_eq u N').
    pose proof (sum_split key w there N) as P1. pose proof (sum_split key d here N') as P2.
    assert (E : sum key d (filter here N') = sum key d (filter there N)).
    { apply sum_perm. apply NoDup_Permutation; try (apply NoDup_filter; assumption).
      intro u. rewrite !filter_In. unfold here, there. rewrite !(mem_true key key_eq). tauto. }
    pose proof (sum_le w d (filter there N)) as K. specialize (K (fun u I => W u (proj1 (proj1 (filter_In _ _ _) I)))).
    pose proof (gone_at_most w sure (fun u => negb (there u)) N S S1) as G.
    pose proof (sum_at_least_length key d (filter (fun u => negb (here u)) N') (fun u _ => D u)) as F.
    unfold here, there in *. lia.
  Qed.

  Lemma is_class_bit k c : is_class k c = if beq (Some c) (Some k) then 1 else 0.
  Proof. unfold is_class, beq. destruct (Nat.eqb_spec c k); auto. Qed.
  Lemma sum_bits k L : (0 < l_classes s)%nat ->
    sum key (fun u => is_class k (v_label (count_labels (voter_settings s) (theirs u)))) L = sum key (LabelsAndEdges.bit key joint_in (labels_in l) k) L.
  Proof.
    intro C. induction L as [|u L IH]; [reflexivity|]. cbn [sum]. rewrite IH. f_equal. unfold LabelsAndEdges.bit. simpl votes_for.
    rewrite cast_now by auto. apply is_class_bit.
  Qed.

  Lemma joint_elected_is_best : (0 < l_classes s)%nat ->
    j_label target_counted = best (joint_score key joint_in (labels_in l) N) (l_classes s).
  Proof.
    intro C. simpl. unfold joint_elected. destruct (l_classes s) as [|m] eqn:Hm; [lia|].
    rewrite (best_from_best (joint_score_of s q l near_counted) m 1 0) by (simpl; try lia; destruct (_ <? _); auto).
    apply best_ext. intro k. unfold joint_score_of, joint_score. rewrite full_score_is. f_equal. simpl each. f_equal.
    unfold near_counted. rewrite sum_map. simpl near. rewrite <- sum_bits by (rewrite Hm; lia). auto.
  Qed.

  (** Theorem 17, one class that is to stay ahead, and one rival: the lead that is left is not lost. *)
  Lemma joint_lead_means f new lost ask a k y' N' : (k < l_classes s)%nat -> k <> a -> 0 <= q ->
    joint_lead_stays f new lost (led_by a target_counted) (label_against (LabelSettings (l_classes s) (l_advance s) ask) l a k) = true ->
    poisoned_by f s l y' -> moved_within new lost N' -> ask <= joint_lead y' N' a k.
  Proof.
    intros Lk Ne Q H P [HN [HN' [Wn Wl]]].
    assert (C : (0 < l_classes s)%nat) by lia.
    destruct (poisoned_lim f s l y' P) as [r [R E]].
    pose proof (label_lead_bound (votes_in s l) (labels_in l) y' a k r _ (not_eq_sym Ne) R
      (Permutation_sym (DescendingSort.Permuted_sort _)) (sorted_falls _)) as B.
    set (d := leans key joint_in y' a k).
    set (w := fun u => leaning f a k (count_labels (voter_settings s) (theirs u))).
    set (sure := fun u => if labels_hold (count_labels (voter_settings s) (theirs u)) f then is_class a (v_label (count_labels (voter_settings s) (theirs u))) else 0).
    assert (M : sum key w N - Z.of_nat (length (filter (fun u => negb (mem key key_eq u N)) N'))
      - Z.min (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N))) (sum key sure N) <= sum key d N').
    { apply moved_by_kind; auto.
      - intro u. apply (leans_range key joint_in y' a k u (not_eq_sym Ne)).
      - intros u _. unfold w, leaning. destruct (labels_hold (count_labels (voter_settings s) (theirs u)) f) eqn:Hu.
        + unfold d, leans, LabelsAndEdges.bit. simpl votes_for. rewrite (holds_is_steady u f y' C Hu P). rewrite !is_class_bit. lia.
        + apply (leans_range key joint_in y' a k u (not_eq_sym Ne)).
      - intro u. unfold w, sure, leaning, is_class. destruct (labels_hold _ f); [|lia].
        destruct (Nat.eqb _ a), (Nat.eqb _ k); lia.
      - intro u. unfold sure, is_class. destruct (labels_hold _ f); [destruct (Nat.eqb _ a); lia|lia]. }
    assert (T : joint_lead y' N' a k = label_lead (votes_in s l) y' a k + q * sum key d N').
    { unfold joint_lead, joint_score, d. rewrite <- (leans_sum key joint_in y' a k N'). unfold label_lead. simpl each. simpl own. lia. }
    rewrite T. unfold joint_lead_stays in H. cbn [led_by j_each j_label j_near target_counted count_joint] in H.
    assert (F : joint_left f (led_by a target_counted) (label_against (LabelSettings (l_classes s) (l_advance s) ask) l a k)
      = label_lead (votes_in s l) (labels_in l) a k - ask - top r (DescendingSort.sort (label_costs (votes_in s l) (labels_in l) a k)) + q * sum key w N).
    { unfold joint_left. rewrite lead_is. cbn [v_costs v_class label_against]. rewrite E by (rewrite sort_length, map_length; auto).
      rewrite (costs_are s l). cbn [led_by j_each j_label j_near target_counted count_joint]. unfold near_counted. rewrite sum_map. reflexivity. }
    rewrite F in H.
    assert (S : sure_for f a near_counted = sum key sure N).
    { unfold sure_for, near_counted. rewrite sum_map. reflexivity. }
    destruct (Z.eqb_spec q 0) as [->|Nq].
    - apply Z.leb_le in H. lia.
    - destruct new as [x|]; [|discriminate]. apply Z.leb_le in H. simpl in Wn. simpl j_near in H. rewrite S in H.
      assert (G : Z.min (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N))) (sum key sure N) <= cap lost (sum key sure N)).
      { destruct lost as [m|]; simpl in *; lia. }
      assert (K : q * sum key w N - (x + cap lost (sum key sure N)) * q <= q * sum key d N') by nia.
      lia.
  Qed.

  Lemma joint_stays_means f new lost k y' N' : (k < l_classes s)%nat -> k <> j_label target_counted -> 0 <= q ->
    joint_lead_stays f new lost target_counted (label_against s l (j_label target_counted) k) = true ->
    poisoned_by f s l y' -> moved_within new lost N' -> l_asked s <= joint_lead y' N' (j_label target_counted) k.
  Proof. intros Lk Ne Q H. apply (joint_lead_means f new lost (l_asked s) (j_label target_counted) k y' N' Lk Ne Q). exact H. Qed.

  Lemma target_is_class : (0 < l_classes s)%nat -> (j_label target_counted < l_classes s)%nat.
  Proof. intro C. rewrite joint_elected_is_best by auto. apply (best_is_label _ _ C). Qed.
  Lemma rival_counted k : (k < l_classes s)%nat -> k <> j_label target_counted ->
    In (label_against s l (j_label target_counted) k) (j_rivals target_counted).
  Proof.
    intros L Ne. simpl. apply in_map. apply filter_In. split; [apply in_seq; lia|].
    destruct (Nat.eqb_spec k (joint_elected s q l near_counted)); auto.
  Qed.

  (** Theorem 17: a target that passes keeps its label, and does not abstain, whatever labels are changed and whichever neighbours come and go. *)
  Theorem checked_joint f new lost : (0 < l_classes s)%nat -> joint_holds target_counted f new lost = true ->
    forall y' N', poisoned_by f s l y' -> moved_within new lost N' ->
      is_label (joint_score key joint_in y' N') (l_classes s) (j_label target_counted)
      /\ forall k, (k < l_classes s)%nat -> k <> j_label target_counted -> l_asked s <= joint_lead y' N' (j_label target_counted) k.
  Proof.
    intros C H y' N' P M. unfold joint_holds in H. apply andb_prop in H. destruct H as [Md H].
    cbn [j_made target_counted count_joint] in Md. apply andb_prop in Md. destruct Md as [M1 M2]. apply Z.leb_le in M1. apply Z.leb_le in M2.
    assert (S : forall k, (k < l_classes s)%nat -> k <> j_label target_counted -> l_asked s <= joint_lead y' N' (j_label target_counted) k).
    { intros k L Ne. rewrite forallb_forall in H. specialize (H _ (rival_counted k L Ne)). eapply joint_stays_means; eauto. }
    split; auto. split; [apply target_is_class; auto|]. intros k L Ne. specialize (S k L Ne). unfold joint_lead in S.
    unfold tie in *. destruct (Nat.ltb_spec k (j_label target_counted)); lia.
  Qed.

  Lemma any_mix_means c x : forall fuel f n, any_mix fuel c f x = true -> f <= n < f + Z.of_nat fuel -> joint_holds c (Some n) (Some (x - n)) (Some 0) = true.
  Proof.
    induction fuel as [|m IH]; intros f n H L; [lia|]. cbn [any_mix] in H. apply andb_prop in H. destruct H as [H1 H2].
    destruct (Z.eq_dec n f) as [->|Ne]; auto. apply (IH (f + 1)); auto. lia.
  Qed.

  (** The radius: no n changed labels and x - n new neighbours change the label. *)
  Theorem checked_joint_radius x n : (0 < l_classes s)%nat -> 0 <= n <= x -> right_joint_radius target_counted (Z.of_nat (length l)) x = true ->
    forall y' N', poisoned_by (Some n) s l y' -> moved_within (Some (x - n)) (Some 0) N' ->
      is_label (joint_score key joint_in y' N') (l_classes s) (j_label target_counted).
  Proof.
    intros C L H y' N' P M. unfold right_joint_radius, is_largest in H. destruct (Z.ltb_spec x 0); [lia|].
    apply andb_prop in H. destruct H as [H _]. apply andb_prop in H. destruct H as [_ H].
    apply (checked_joint (Some n) (Some (x - n)) (Some 0) C); auto.
    apply (any_mix_means _ _ _ _ n H). rewrite Z2Nat.id by lia. lia.
  Qed.

  (** A class that is left out does not win. *)
  Theorem checked_joint_excluded f new lost k : (0 < l_classes s)%nat -> nth k (joint_cannot_get s l target_counted f new lost) false = true ->
    forall y' N', poisoned_by f s l y' -> moved_within new lost N' -> ~ is_label (joint_score key joint_in y' N') (l_classes s) k.
  Proof.
    intros C H y' N' P M [Lk B]. unfold joint_cannot_get in H.
    rewrite (nth_indep _ false (joint_is_out s l target_counted f new lost O)) in H by (rewrite map_length, seq_length; auto).
    rewrite map_nth, seq_nth in H by auto. cbn [plus] in H. unfold joint_is_out in H. apply andb_prop in H. destruct H as [Md H].
    cbn [j_made target_counted count_joint] in Md. apply andb_prop in Md. destruct Md as [M1 M2]. apply Z.leb_le in M1. apply Z.leb_le in M2.
    assert (R : forall r, In r (j_rivals target_counted) -> exists j, (j < l_classes s)%nat /\ j <> j_label target_counted /\ r = label_against s l (j_label target_counted) j).
    { intros r I. cbn [j_rivals target_counted count_joint] in I. apply in_map_iff in I. destruct I as [j [<- I]]. apply filter_In in I.
      destruct I as [I Ne]. apply in_seq in I. exists j. repeat split; [lia|]. intros ->. cbn [j_label target_counted count_joint] in Ne.
      rewrite Nat.eqb_refl in Ne. discriminate. }
    apply orb_prop in H. destruct H as [H|H].
    - apply existsb_exists in H. destruct H as [r [I H]]. apply andb_prop in H. destruct H as [E H]. destruct (R r I) as [j [Lj [Nk ->]]].
      cbn [v_class label_against] in E. apply Nat.eqb_eq in E. subst j.
      pose proof (joint_stays_means f new lost k y' N' Lk Nk M2 H P M) as S.
      specialize (B _ (target_is_class C) (not_eq_sym Nk)). unfold joint_lead in S.
      unfold tie in *. destruct (Nat.ltb_spec k (j_label target_counted)), (Nat.ltb_spec (j_label target_counted) k); lia.
    - apply andb_prop in H. destruct H as [_ H]. apply existsb_exists in H. destruct H as [j [I H]].
      apply andb_prop in H. destruct H as [E H]. apply negb_true_iff, Nat.eqb_neq in E.
      unfold joint_may_pass in I. apply in_map_iff in I. destruct I as [r [V I]]. apply filter_In in I. destruct I as [I _].
      destruct (R r I) as [j' [Lj [_ ->]]]. cbn [v_class label_against] in V. subst j'.
      pose proof (joint_lead_means f new lost 0 j k y' N' Lk (not_eq_sym E) M2 H P M) as S.
      specialize (B j Lj E). unfold joint_lead in S. unfold tie in *. destruct (Nat.ltb_spec k j), (Nat.ltb_spec j k); lia.
  Qed.
End File.
