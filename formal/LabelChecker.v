(** The checker for votes of training labels (docs/proofs.md, Theorem 14): the program that is extracted, and what its answers establish. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation Sorted.
From Agnncert Require Import Vote StackedVote Checker CheckerProofs StackedChecker LabelVotes.
Import ListNotations.
Open Scope Z_scope.

(** ---- Weights, from factors; no label is among the arguments ---- *)

(** The product of two rows. *)
Fixpoint dot (a b : list Z) (n : Z) : Z := match a, b with x :: a', y :: b' => dot a' b' (n + x * y) | _, _ => n end.
(** x, but no more than s and no less than -s. *)
Definition clamped (s x : Z) : Z := Z.max (- s) (Z.min s x).
(** W = clamp(floor(A B s / cap)). *)
Definition whole_weight (s cap : Z) (a b : list Z) : Z := clamped s (dot a b 0 * s / cap).
(** The weights of all entries for one target. Its own entry, at position [own] if there is one, weighs nothing. *)
Fixpoint label_weights (s cap own : Z) (a : list Z) (rows : list (list Z)) (i : Z) : list Z :=
  match rows with
  | [] => []
  | b :: rows' => (if i =? own then 0 else whole_weight s cap a b) :: label_weights s cap own a rows' (i + 1)
  end.

(** ---- What a file says ---- *)

(** Settings of a file: classes, what each has in advance, and the lead below which a target abstains. *)
Record label_settings := LabelSettings { l_classes : nat; l_advance : list Z; l_asked : Z }.
(** An entry of the training labels as one target sees it: its weight, its class if it has one, and whether it was audited. *)
Record label_entry := LabelEntry { e_weight : Z; e_label : vote; e_audited : bool }.

(** ---- Counting ---- *)

(** Theorem 14: score_k. *)
Fixpoint score_of (k : nat) (l : list label_entry) (n : Z) : Z :=
  match l with [] => n | e :: l' => score_of k l' (if beq (e_label e) (Some k) then n + e_weight e else n) end.
(** Theorem 14: cost_u(k). *)
Definition cost_of (a k : nat) (e : label_entry) : Z :=
  if e_audited e then 0
  else Z.abs (e_weight e) + ((if beq (e_label e) (Some a) then e_weight e else 0) - (if beq (e_label e) (Some k) then e_weight e else 0)).
(** What counts against a rival: the class, the lead over it less what an abstention asks for, and the costs, largest first. *)
Record label_rival := LabelRival { v_class : nat; v_lead : Z; v_costs : list Z }.
(** A target, counted. *)
Record label_counted := LabelCounted { v_made : bool; v_label : nat; v_rivals : list label_rival }.

(** The score of class k with what it has in advance. *)
Definition full_score (s : label_settings) (l : list label_entry) (k : nat) : Z := score_of k l (at_class k (l_advance s)).
(** The label: the best score, the smaller class on a tie. *)
Definition label_elected (s : label_settings) (l : list label_entry) : nat :=
  match l_classes s with O => O | S m => best_from (full_score s l) 1 m 0 (full_score s l O) end.
(** The numbers of Theorem 14 against class k. *)
Definition label_against (s : label_settings) (l : list label_entry) (a k : nat) : label_rival :=
  LabelRival k (full_score s l a - full_score s l k - tie k a - l_asked s) (DescendingSort.sort (map (cost_of a k) l)).
(** The label, and what counts against every other class. *)
Definition count_labels (s : label_settings) (l : list label_entry) : label_counted :=
  let a := label_elected s l in
  LabelCounted (0 <=? l_asked s) a (map (label_against s l a) (filter (fun k => negb (Nat.eqb k a)) (seq 0 (l_classes s)))).

(** ---- Statements ---- *)

(** The sum of the first n numbers; None is all of them. *)
Fixpoint first_sum (n : lim) (l : list Z) (taken : Z) : Z :=
  match l with
  | [] => taken
  | x :: l' => match n with
               | Some m => if m <=? 0 then taken else first_sum (Some (m - 1)) l' (taken + x)
               | None => first_sum None l' (taken + x)
               end
  end.
(** The lead over one rival stays, whatever n entries say. *)
Definition label_lead_stays (n : lim) (r : label_rival) : bool := first_sum n (v_costs r) 0 <=? v_lead r.
(** Theorem 14: the target holds against n changed entries. *)
Definition labels_hold (c : label_counted) (n : lim) : bool := v_made c && forallb (label_lead_stays n) (v_rivals c).
(** The stated radius is the largest that is proved; no more entries change than there are. *)
Definition right_label_radius (c : label_counted) (entries x : Z) : bool := is_largest (fun x => labels_hold c (Some x)) entries x.
(** The same settings for a class that only has to be ahead, whether or not the target abstains. *)
Definition not_asked (s : label_settings) : label_settings := LabelSettings (l_classes s) (l_advance s) 0.
(** Classes that may get past the label. *)
Definition may_pass (c : label_counted) (n : lim) : list nat := map v_class (filter (fun r => negb (label_lead_stays n r)) (v_rivals c)).
(** Whether the target cannot get class k: the label stays ahead of it, or another class that may get past the label. *)
Definition label_is_out (s : label_settings) (l : list label_entry) (c : label_counted) (n : lim) (k : nat) : bool :=
  v_made c && (existsb (fun r => Nat.eqb (v_class r) k && label_lead_stays n r) (v_rivals c)
    || (negb (Nat.eqb k (v_label c))
        && existsb (fun j => negb (Nat.eqb j k) && label_lead_stays n (label_against (not_asked s) l j k)) (may_pass c n))).
(** For each class whether the target, counted from its entries, cannot get it. *)
Definition labels_cannot_get (s : label_settings) (l : list label_entry) (c : label_counted) (n : lim) : list bool :=
  map (label_is_out s l c n) (seq 0 (l_classes s)).

(** ---- What it means ---- *)

(** The entry at a position; beyond the last one there is none. *)
Definition entry_at (l : list label_entry) (u : nat) : label_entry := nth u l (LabelEntry 0 None true).
(** The training labels of a file. *)
Definition labels_in (l : list label_entry) (u : nat) : vote := e_label (entry_at l u).
(** The same target in the words of Theorem 14. *)
Definition votes_in (s : label_settings) (l : list label_entry) : label_votes :=
  LabelVotes (length l) (fun u => e_weight (entry_at l u)) (fun u => e_audited (entry_at l u)) (fun k => at_class k (l_advance s)) (l_asked s).
(** At most n entries change, and audited ones stay. *)
Definition poisoned_by (n : lim) (s : label_settings) (l : list label_entry) (y' : nat -> vote) : Prop :=
  spares_audited (votes_in s l) (labels_in l) y' /\ within (Z.of_nat (length (changed_entries (votes_in s l) (labels_in l) y'))) n.

(** ---- Proofs ---- *)

Lemma first_sum_top l : forall n taken, first_sum (Some (Z.of_nat n)) l taken = taken + top n l.
Proof.
  unfold top. induction l as [|x l IH]; intros n taken; [rewrite firstn_nil; simpl; lia|]. cbn [first_sum].
  destruct n as [|n]; [simpl; lia|]. replace (Z.of_nat (S n) <=? 0) with false by (symmetry; apply Z.leb_gt; lia).
  replace (Z.of_nat (S n) - 1) with (Z.of_nat n) by lia. rewrite IH. cbn [firstn plus]. lia.
Qed.
Lemma first_sum_all l : forall taken, first_sum None l taken = taken + top (length l) l.
Proof. unfold top. induction l as [|x l IH]; intro taken; cbn [first_sum]; [simpl; lia|]. rewrite IH. cbn [length firstn plus]. lia. Qed.

Lemma sorted_falls l : falling (DescendingSort.sort l).
Proof.
  pose proof (DescendingSort.StronglySorted_sort l) as S.
  assert (T : RelationClasses.Transitive (fun x y : Z => is_true (Descending.leb x y))).
  { intros x y z. unfold is_true, Descending.leb. rewrite !Z.leb_le. lia. }
  specialize (S T). induction S as [|x m S IH H]; simpl; auto. split; auto.
  intros y I. rewrite Forall_forall in H. specialize (H y I). unfold is_true, Descending.leb in H. apply Z.leb_le in H. auto.
Qed.

Lemma over_shift n f : over (S n) f = f O + over n (fun u => f (S u)).
Proof. induction n; [simpl; lia|]. change (over (S (S n)) f) with (over (S n) f + f (S n)). rewrite IHn. simpl. lia. Qed.
Lemma score_of_sum k l : forall n, score_of k l n = n + over (length l) (fun u => if beq (labels_in l u) (Some k) then e_weight (entry_at l u) else 0).
Proof.
  induction l as [|e l IH]; intro n; [simpl; lia|]. cbn [score_of length]. rewrite IH, over_shift.
  unfold labels_in, entry_at. cbn [nth]. destruct (beq (e_label e) (Some k)); lia.
Qed.
Lemma full_score_is s l k : full_score s l k = label_score (votes_in s l) (labels_in l) k.
Proof. unfold full_score. rewrite score_of_sum. unfold label_score, given_to. simpl. auto. Qed.

Lemma map_by_position {X} (f : label_entry -> X) l : map f l = map (fun u => f (entry_at l u)) (seq 0 (length l)).
Proof.
  unfold entry_at. induction l as [|e l IH]; auto. cbn [map length seq nth]. f_equal. rewrite IH at 1. rewrite <- seq_shift, map_map. auto.
Qed.
Lemma costs_are s l a k : map (cost_of a k) l = label_costs (votes_in s l) (labels_in l) a k.
Proof. rewrite map_by_position. unfold label_costs. simpl. apply map_ext. intro u. unfold cost_of, label_cost, tilt, given_to. simpl. auto. Qed.

Lemma elected_is_best s l : (0 < l_classes s)%nat -> label_elected s l = best (label_score (votes_in s l) (labels_in l)) (l_classes s).
Proof.
  intro H. unfold label_elected. destruct (l_classes s) as [|m]; [lia|].
  assert (E : forall f g, (forall k, f k = g k) -> forall C, best f C = best g C).
  { intros f g F. induction C as [|C IH]; simpl; auto. rewrite IH, !F. auto. }
  rewrite (best_from_best (full_score s l) m 1 0) by (simpl; try lia; destruct (_ <? _); auto). apply E. intro k. apply full_score_is.
Qed.

Lemma rival_in s l k : (k < l_classes s)%nat -> k <> label_elected s l -> In (label_against s l (label_elected s l) k) (v_rivals (count_labels s l)).
Proof.
  intros L N. simpl. apply in_map. apply filter_In. split; [apply in_seq; lia|]. destruct (Nat.eqb_spec k (label_elected s l)); auto.
Qed.
Lemma rivals_are s l r : In r (v_rivals (count_labels s l)) ->
  exists k, (k < l_classes s)%nat /\ k <> label_elected s l /\ r = label_against s l (label_elected s l) k.
Proof.
  simpl. intro I. apply in_map_iff in I. destruct I as [k [<- I]]. apply filter_In in I. destruct I as [I N]. apply in_seq in I.
  exists k. repeat split; [lia|]. intros ->. rewrite Nat.eqb_refl in N. discriminate.
Qed.

(** How many entries an attacker may change at most: those that the limit allows, and no more than there are. *)
Lemma poisoned_lim n s l y' : poisoned_by n s l y' ->
  exists r, poisoned (votes_in s l) r (labels_in l) y' /\ (forall D, length D = length l -> first_sum n D 0 = top r D).
Proof.
  intros [A W]. destruct n as [m|].
  - simpl in W. exists (Z.to_nat m). split; [split; auto; lia|]. intros D _. rewrite <- (Z2Nat.id m) at 1 by lia. rewrite first_sum_top. lia.
  - exists (length l). split; [split; auto|].
    + unfold changed_entries. simpl. rewrite <- (seq_length (length l) 0) at 2. rewrite (length_split (is_changed (labels_in l) y') (seq 0 (length l))). lia.
    + intros D E. rewrite first_sum_all, E. lia.
Qed.
Lemma sort_length l : length (DescendingSort.sort l) = length l.
Proof. apply Permutation_length. symmetry. apply DescendingSort.Permuted_sort. Qed.
Lemma lead_is s l a k : v_lead (label_against s l a k) = label_lead (votes_in s l) (labels_in l) a k - l_asked s.
Proof. simpl. unfold label_lead. rewrite !full_score_is. lia. Qed.
Lemma lead_means n s l a k y' : k <> a -> label_lead_stays n (label_against s l a k) = true ->
  poisoned_by n s l y' -> l_asked s <= label_lead (votes_in s l) y' a k.
Proof.
  intros N H P. destruct (poisoned_lim n s l y' P) as [r [Q E]]. unfold label_lead_stays in H. rewrite lead_is in H. cbn [v_costs label_against] in H.
  apply Z.leb_le in H. rewrite E in H by (rewrite sort_length, map_length; auto). rewrite (costs_are s l) in H.
  pose proof (label_lead_bound (votes_in s l) (labels_in l) y' a k r _ (not_eq_sym N) Q
    (Permutation_sym (DescendingSort.Permuted_sort _)) (sorted_falls _)). lia.
Qed.
Lemma stays_means n s l k y' : k <> label_elected s l -> label_lead_stays n (label_against s l (label_elected s l) k) = true ->
  poisoned_by n s l y' -> l_asked s <= label_lead (votes_in s l) y' (label_elected s l) k.
Proof. apply lead_means. Qed.

(** Theorem 14: a target that passes keeps its label, and does not abstain, whatever the changed entries say. *)
Theorem checked_labels s l n : (0 < l_classes s)%nat -> labels_hold (count_labels s l) n = true ->
  forall y', poisoned_by n s l y' -> decided (votes_in s l) y' (l_classes s) (label_elected s l).
Proof.
  intros C H y' P. unfold labels_hold in H. apply andb_prop in H. destruct H as [M H]. cbn [v_made count_labels] in M. apply Z.leb_le in M.
  assert (A : (label_elected s l < l_classes s)%nat).
  { rewrite elected_is_best by auto. apply (best_is_label _ _ C). }
  assert (S : forall k, (k < l_classes s)%nat -> k <> label_elected s l -> l_asked s <= label_lead (votes_in s l) y' (label_elected s l) k).
  { intros k L N. rewrite forallb_forall in H. specialize (H _ (rival_in s l k L N)). eapply stays_means; eauto. }
  split; auto. apply lead_elects; auto. intros k L N. specialize (S k L N). lia.
Qed.

(** Theorem 14, the other direction: a target that does not pass is changed, or made to abstain, by so many entries. *)
Theorem checked_labels_exact s l r : (0 < l_classes s)%nat -> 0 <= l_asked s -> labels_hold (count_labels s l) (Some (Z.of_nat r)) = false ->
  exists y', poisoned (votes_in s l) r (labels_in l) y'
    /\ (forall u, y' u = labels_in l u \/ exists k, (k < l_classes s)%nat /\ y' u = Some k) /\ ~ decided (votes_in s l) y' (l_classes s) (label_elected s l).
Proof.
  intros C M H. unfold labels_hold in H. cbn [v_made count_labels] in H. rewrite (proj2 (Z.leb_le _ _) M) in H. cbn [andb] in H.
  assert (A : (label_elected s l < l_classes s)%nat) by (rewrite elected_is_best by auto; apply (best_is_label _ _ C)).
  assert (E : exists x, In x (v_rivals (count_labels s l)) /\ label_lead_stays (Some (Z.of_nat r)) x = false).
  { clear -H. change (forallb (label_lead_stays (Some (Z.of_nat r))) (v_rivals (count_labels s l)) = false) in H.
    induction (v_rivals (count_labels s l)) as [|x m IH]; [discriminate|]. simpl in H. destruct (label_lead_stays (Some (Z.of_nat r)) x) eqn:Q.
    - destruct (IH H) as [z [I Z]]. exists z. split; auto. right; auto.
    - exists x. split; auto. left; auto. }
  destruct E as [x [I X]]. apply rivals_are in I. destruct I as [k [L [N ->]]]. unfold label_lead_stays in X. rewrite lead_is in X. cbn [v_costs label_against] in X.
  rewrite first_sum_top, (costs_are s l) in X. apply Z.leb_gt in X.
  destruct (label_votes_exact (votes_in s l) (labels_in l) (l_classes s) (label_elected s l) r k _ L N
    (Permutation_sym (DescendingSort.Permuted_sort _)) (sorted_falls _) ltac:(simpl asked; lia)) as [y' [P [Y D]]].
  exists y'. split; auto. split; auto. intro u. destruct (Y u) as [E|[E|E]]; eauto.
Qed.

(** The radius: no x entries, whatever they say, change the label. *)
Theorem checked_label_radius s l x : (0 < l_classes s)%nat -> 0 <= x -> right_label_radius (count_labels s l) (Z.of_nat (length l)) x = true ->
  forall y', poisoned_by (Some x) s l y' -> decided (votes_in s l) y' (l_classes s) (label_elected s l).
Proof.
  intros C L H. unfold right_label_radius, is_largest in H. destruct (Z.ltb_spec x 0); [lia|].
  apply andb_prop in H. destruct H as [H _]. apply andb_prop in H. destruct H as [_ H]. apply checked_labels; auto.
Qed.

(** A class that is left out does not win, whatever the changed entries say. *)
Theorem checked_labels_excluded s l n k : (0 < l_classes s)%nat -> nth k (labels_cannot_get s l (count_labels s l) n) false = true ->
  forall y', poisoned_by n s l y' -> ~ is_label (label_score (votes_in s l) y') (l_classes s) k.
Proof.
  intros C H y' P [Lk B].
  assert (A : (label_elected s l < l_classes s)%nat) by (rewrite elected_is_best by auto; apply (best_is_label _ _ C)).
  unfold labels_cannot_get in H. rewrite (nth_indep _ false (label_is_out s l (count_labels s l) n O)) in H by (rewrite map_length, seq_length; auto).
  rewrite map_nth, seq_nth in H by auto. cbn [plus] in H. unfold label_is_out in H. apply andb_prop in H. destruct H as [M H].
  cbn [v_made count_labels] in M. apply Z.leb_le in M. apply orb_prop in H. destruct H as [H|H].
  - apply existsb_exists in H. destruct H as [r [I H]]. apply andb_prop in H. destruct H as [E H]. apply rivals_are in I.
    destruct I as [j [Lj [N ->]]]. simpl v_class in E. apply Nat.eqb_eq in E. subst j.
    pose proof (stays_means n s l k y' N H P) as S. specialize (B _ A (not_eq_sym N)). unfold label_lead in S.
    unfold tie in *. destruct (Nat.ltb_spec k (label_elected s l)), (Nat.ltb_spec (label_elected s l) k); lia.
  - apply andb_prop in H. destruct H as [_ H]. apply existsb_exists in H. destruct H as [j [I H]].
    apply andb_prop in H. destruct H as [E H]. apply negb_true_iff, Nat.eqb_neq in E.
    apply in_map_iff in I. destruct I as [r [<- I]]. apply filter_In in I. destruct I as [I _]. apply rivals_are in I.
    destruct I as [j [Lj [_ ->]]]. simpl v_class in *.
    assert (Q : 0 <= label_lead (votes_in s l) y' j k) by (apply (lead_means n (not_asked s) l j k y' (not_eq_sym E) H); exact P).
    specialize (B j Lj E). unfold label_lead in Q. unfold tie in *. destruct (Nat.ltb_spec k j), (Nat.ltb_spec j k); lia.
Qed.
