(** Labels changed before training (docs/proofs.md, Theorem 14): each entry of the training labels adds a whole number, fixed without the labels, to
    the score of the class that it names. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote StackedVote.
Import ListNotations.
Open Scope Z_scope.

(** The sum of f over the first n entries. *)
Fixpoint over (n : nat) (f : nat -> Z) : Z := match n with O => 0 | S m => over m f + f m end.

(** What a certificate knows of one target. Entries are numbered from 0. [weight]: what an entry adds to its class, computed without any label;
    [audited]: this entry cannot be changed; [advance]: what each class has in advance; [asked]: the target abstains below this lead. *)
Record label_votes := LabelVotes {
  entries : nat; weight : nat -> Z; audited : nat -> bool; advance : nat -> Z; asked : Z
}.

Section Target.
  Variable V : label_votes.

  (** W_u if u is labelled k, else 0. None is no label. *)
  Definition given_to (y : nat -> vote) (k u : nat) : Z := if beq (y u) (Some k) then weight V u else 0.
  (** score_k(y) *)
  Definition label_score (y : nat -> vote) (k : nat) : Z := advance V k + over (entries V) (given_to y k).
  (** lead_k(y) = score_a - score_k - [k < a] *)
  Definition label_lead (y : nat -> vote) (a k : nat) : Z := label_score y a - label_score y k - tie k a.
  (** a is the label, and the target does not abstain. *)
  Definition decided (y : nat -> vote) (C a : nat) : Prop :=
    is_label (label_score y) C a /\ forall k, (k < C)%nat -> k <> a -> asked V <= label_lead y a k.

  (** phi_u(c) = W_u ([c = a] - [c = k]) *)
  Definition tilt (y : nat -> vote) (a k u : nat) : Z := given_to y a u - given_to y k u.
  (** cost_u(k) = |W_u| + W_u ([y_u = a] - [y_u = k]); an audited label costs nothing, because it stays. *)
  Definition label_cost (y : nat -> vote) (a k u : nat) : Z := if audited V u then 0 else Z.abs (weight V u) + tilt y a k u.
  (** The costs of all entries. *)
  Definition label_costs (y : nat -> vote) (a k : nat) : list Z := map (label_cost y a k) (seq 0 (entries V)).

  (** The entry is another one now. *)
  Definition is_changed (y y' : nat -> vote) (u : nat) : bool := negb (beq (y' u) (y u)).
  (** Which entries are. *)
  Definition changed_entries (y y' : nat -> vote) : list nat := filter (is_changed y y') (seq 0 (entries V)).
  (** y' is y after an attack: audited labels stay. *)
  Definition spares_audited (y y' : nat -> vote) : Prop := forall u, (u < entries V)%nat -> audited V u = true -> y' u = y u.
  (** At most r entries are changed, added or removed. *)
  Definition poisoned (r : nat) (y y' : nat -> vote) : Prop := spares_audited y y' /\ (length (changed_entries y y') <= r)%nat.

  (** Theorem 14, the test: the r largest costs sum to at most the lead, less what an abstention asks for. *)
  Definition withstands_labels (y : nat -> vote) (C a r : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> forall D, Permutation D (label_costs y a k) -> falling D -> top r D <= label_lead y a k - asked V.

  (** What the changed entries cost an attacker who pays [price] for each. *)
  Definition paid (price : nat -> Z) (y y' : nat -> vote) : Z := plus (map price (changed_entries y y')).
  (** Prices, the test: q times the loss is at most p times the total, and what each entry brings beyond p / q of its price. *)
  Definition withstands_prices (price : nat -> Z) (total : Z) (y : nat -> vote) (C a : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists p q, 0 <= p /\ 0 < q
      /\ p * total + over (entries V) (fun u => Z.max 0 (q * label_cost y a k u - p * price u)) <= q * (label_lead y a k - asked V).

  (** ---- Proofs ---- *)

  Lemma over_diff n f g : over n f - over n g = over n (fun u => f u - g u).
  Proof. induction n; simpl; lia. Qed.
  Lemma over_plus n f : over n f = plus (map f (seq 0 n)).
  Proof.
    induction n; auto. rewrite seq_S, map_app, plus_app. simpl over. simpl map. simpl plus. rewrite IHn. simpl. lia.
  Qed.
  Lemma over_le n f g : (forall u, (u < n)%nat -> f u <= g u) -> over n f <= over n g.
  Proof. induction n; intro H; simpl; [lia|]. specialize (H n ltac:(lia)) as E. specialize (IHn (fun u L => H u ltac:(lia))). lia. Qed.
  Lemma over_eq n f g : (forall u, (u < n)%nat -> f u = g u) -> over n f = over n g.
  Proof. induction n; intro H; simpl; auto. rewrite IHn, (H n); auto; lia. Qed.

  Lemma lead_tilt y a k : label_lead y a k = advance V a - advance V k - tie k a + over (entries V) (tilt y a k).
  Proof. unfold label_lead, label_score, tilt. rewrite <- over_diff. lia. Qed.
  Lemma tilt_low y a k u : a <> k -> - Z.abs (weight V u) <= tilt y a k u.
  Proof. intro N. unfold tilt, given_to. destruct (beq (y u) (Some a)), (beq (y u) (Some k)); lia. Qed.
  Lemma tilt_high y a k u : a <> k -> tilt y a k u <= Z.abs (weight V u).
  Proof. intro N. unfold tilt, given_to. destruct (beq (y u) (Some a)), (beq (y u) (Some k)); lia. Qed.
  Lemma cost_pos y a k u : a <> k -> 0 <= label_cost y a k u.
  Proof. intro N. unfold label_cost. destruct (audited V u); [lia|]. pose proof (tilt_low y a k u N). lia. Qed.
  Lemma unchanged_tilt y y' a k u : y' u = y u -> tilt y' a k u = tilt y a k u.
  Proof. intro E. unfold tilt, given_to. rewrite E. auto. Qed.

  (** What an attack takes from the lead is at most what the changed entries cost. *)
  Lemma loss_at_most_cost y y' a k : a <> k -> spares_audited y y' ->
    label_lead y a k - plus (map (label_cost y a k) (changed_entries y y')) <= label_lead y' a k.
  Proof.
    intros N A. rewrite !lead_tilt. unfold changed_entries.
    assert (H : forall n, (n <= entries V)%nat ->
      over n (tilt y a k) - plus (map (label_cost y a k) (filter (is_changed y y') (seq 0 n))) <= over n (tilt y' a k)).
    { induction n; intro L; [simpl; lia|]. specialize (IHn ltac:(lia)). rewrite seq_S, filter_app, map_app, plus_app. cbn [over].
      assert (tilt y a k n - plus (map (label_cost y a k) (filter (is_changed y y') [(0 + n)%nat])) <= tilt y' a k n).
      { cbn [filter]. rewrite Nat.add_0_l. unfold is_changed at 1. destruct (beq (y' n) (y n)) eqn:B; cbn [negb map plus].
        - apply beq_true in B. rewrite (unchanged_tilt y y' a k n B). lia.
        - apply beq_false in B. unfold label_cost. destruct (audited V n) eqn:E; [specialize (A n ltac:(lia) E); contradiction|].
          pose proof (tilt_low y' a k n N). lia. }
      lia. }
    specialize (H (entries V) (le_n _)). lia.
  Qed.

  Lemma costs_split y y' a k :
    Permutation (label_costs y a k)
      (map (label_cost y a k) (changed_entries y y') ++ map (label_cost y a k) (filter (fun u => negb (is_changed y y' u)) (seq 0 (entries V)))).
  Proof. unfold label_costs, changed_entries. rewrite <- map_app. apply Permutation_map. apply filter_split. Qed.

  Lemma top_grows D x x' : (forall z, In z D -> 0 <= z) -> (x <= x')%nat -> top x D <= top x' D.
  Proof.
    unfold top. revert x x'; induction D as [|z D IH]; intros x x' P L; [rewrite !firstn_nil; lia|].
    destruct x, x'; cbn [firstn plus]; [lia| |lia|].
    - specialize (IH O x' (fun w I => P w (or_intror I)) ltac:(lia)). rewrite firstn_O in IH. specialize (P z (or_introl eq_refl)). cbn [plus] in IH. lia.
    - specialize (IH x x' (fun w I => P w (or_intror I)) ltac:(lia)). lia.
  Qed.

  (** Theorem 14, one rival: r changed entries take at most the r largest costs from the lead. *)
  Theorem label_lead_bound y y' a k r D : a <> k -> poisoned r y y' -> Permutation D (label_costs y a k) -> falling D ->
    label_lead y a k - top r D <= label_lead y' a k.
  Proof.
    intros N [A L] P F. pose proof (loss_at_most_cost y y' a k N A) as B.
    pose proof (part_le_top D F _ _ (Permutation_trans P (costs_split y y' a k))) as T. rewrite map_length in T.
    assert (Q : forall z, In z D -> 0 <= z).
    { intros z I. apply (Permutation_in z P) in I. unfold label_costs in I. apply in_map_iff in I. destruct I as [u [<- _]]. apply cost_pos; auto. }
    pose proof (top_grows D _ _ Q L). lia.
  Qed.

  (** Every list can be sorted. *)
  Lemma falling_exists l : exists D, Permutation D l /\ falling D.
  Proof.
    assert (I : forall x D, falling D -> exists E, Permutation E (x :: D) /\ falling E).
    { induction D as [|z D IH]; intro F; [exists [x]; simpl; split; auto; split; auto; intros ? []|].
      destruct F as [H F]. destruct (Z_le_dec z x) as [L|L].
      - exists (x :: z :: D). split; auto. split; [|split; auto]. intros w [<-|W]; auto. specialize (H w W). lia.
      - destruct (IH F) as [E [P G]]. exists (z :: E). split; [etransitivity; [apply perm_skip, P|apply perm_swap]|].
        split; auto. intros w W. apply (Permutation_in w P) in W. destruct W as [<-|W]; [lia|auto]. }
    induction l as [|x l [D [P F]]]; [exists []; simpl; auto|].
    destruct (I x D F) as [E [Q G]]. exists E. split; auto. etransitivity; [exact Q|apply perm_skip, P].
  Qed.

  (** Leads that are not negative elect the label. *)
  Lemma lead_elects y C a : (a < C)%nat -> (forall k, (k < C)%nat -> k <> a -> 0 <= label_lead y a k) -> is_label (label_score y) C a.
  Proof. intros L H. split; auto. intros k Lk N. specialize (H k Lk N). unfold label_lead in H. lia. Qed.

  (** Theorem 14, "if": the label stays, and no abstention takes its place, whatever r entries say. *)
  Theorem label_votes_sound y C a r : (a < C)%nat -> 0 <= asked V -> withstands_labels y C a r ->
    forall y', poisoned r y y' -> decided y' C a.
  Proof.
    intros L M H y' P.
    assert (S : forall k, (k < C)%nat -> k <> a -> asked V <= label_lead y' a k).
    { intros k Lk N. destruct (falling_exists (label_costs y a k)) as [D [PD F]]. specialize (H k Lk N D PD F).
      pose proof (label_lead_bound y y' a k r D (not_eq_sym N) P PD F). lia. }
    split; auto. apply lead_elects; auto. intros k Lk N. specialize (S k Lk N). lia.
  Qed.

  (** The entries of a list, each made to vote against a: for k if it adds, for a if it takes away. Audited ones stay. *)
  Lemma attack_exists y a k part : a <> k -> NoDup part -> (forall u, In u part -> (u < entries V)%nat) ->
    exists y', spares_audited y y' /\ (forall u, In u (changed_entries y y') -> In u part)
      /\ (forall u, y' u = y u \/ y' u = Some a \/ y' u = Some k)
      /\ label_lead y' a k = label_lead y a k - plus (map (label_cost y a k) part).
  Proof.
    intros N. induction part as [|u part IH]; intros U I.
    - exists y. repeat split; auto; [|simpl; lia]. intros u Iu. unfold changed_entries in Iu. apply filter_In in Iu. destruct Iu as [_ Iu].
      unfold is_changed in Iu. rewrite (proj2 (beq_true (y u) (y u)) eq_refl) in Iu. discriminate.
    - inversion U as [|? ? X U']; subst. destruct (IH U' (fun w W => I w (or_intror W))) as [z [A [B [Z L]]]].
      pose (now := fun w => if Nat.eqb w u then (if audited V u then y u else if 0 <=? weight V u then Some k else Some a) else z w).
      exists now.
      assert (E : z u = y u).
      { destruct (beq (z u) (y u)) eqn:Q; [apply beq_true; auto|]. exfalso. apply X, B. unfold changed_entries. apply filter_In. split.
        - apply in_seq. specialize (I u (or_introl eq_refl)). lia.
        - unfold is_changed. rewrite Q. auto. }
      split; [|split; [|split]].
      + intros w Lw Aw. unfold now. destruct (Nat.eqb_spec w u) as [->|_]; [rewrite Aw; auto|apply A; auto].
      + intros w W. unfold changed_entries in W. apply filter_In in W. destruct W as [S W]. unfold is_changed, now in W.
        destruct (Nat.eqb_spec w u) as [->|_]; [left; auto|]. right. apply B. unfold changed_entries. apply filter_In. auto.
      + intro w. unfold now. destruct (Nat.eqb_spec w u) as [->|_]; auto. destruct (audited V u); auto. destruct (0 <=? weight V u); auto.
      + cbn [map plus]. rewrite lead_tilt in *.
        assert (T : forall n, (u < n)%nat -> over n (tilt now a k) = over n (tilt z a k) - label_cost y a k u).
        { induction n; intro Lu; [lia|]. cbn [over]. destruct (Nat.eq_dec u n) as [->|Nu].
          - assert (over n (tilt now a k) = over n (tilt z a k)) as ->.
            { apply over_eq. intros w Lw. apply unchanged_tilt. unfold now. destruct (Nat.eqb_spec w n); [lia|auto]. }
            assert (tilt now a k n = tilt z a k n - label_cost y a k n); [|lia].
            unfold label_cost. rewrite (unchanged_tilt y z a k n E). unfold tilt, given_to, now. rewrite Nat.eqb_refl.
            destruct (audited V n); [lia|].
            assert (beq (Some k) (Some a) = false) as Q1 by (apply beq_false; congruence).
            assert (beq (Some a) (Some k) = false) as Q2 by (apply beq_false; congruence).
            assert (beq (Some a) (Some a) = true) as Q3 by (apply beq_true; auto).
            assert (beq (Some k) (Some k) = true) as Q4 by (apply beq_true; auto).
            destruct (Z.leb_spec 0 (weight V n)); rewrite ?Q1, ?Q2, ?Q3, ?Q4; lia.
          - rewrite IHn by lia. rewrite (unchanged_tilt z now a k n); [lia|]. unfold now. destruct (Nat.eqb_spec n u); [lia|auto]. }
        rewrite T by (apply I; left; auto). lia.
  Qed.

  (** Theorem 14, "only if": if the r largest costs are more than the lead over some class, then r entries that say a or k change the label, or bring
      about an abstention. No entry that had a label loses it. *)
  Theorem label_votes_exact y C a r k D : (k < C)%nat -> k <> a -> Permutation D (label_costs y a k) -> falling D ->
    label_lead y a k - asked V < top r D ->
    exists y', poisoned r y y' /\ (forall u, y' u = y u \/ y' u = Some a \/ y' u = Some k) /\ ~ decided y' C a.
  Proof.
    intros Lk N P F T. unfold label_costs in P. apply Permutation_map_inv in P. destruct P as [order [-> Q]].
    assert (U : NoDup (firstn r order)).
    { assert (X : NoDup (firstn r order ++ skipn r order)) by (rewrite firstn_skipn; apply (Permutation_NoDup Q), seq_NoDup).
      clear -X. induction (firstn r order) as [|x l IH]; [constructor|]. cbn in X. inversion X as [|? ? Y Z]; subst.
      constructor; auto. intro I. apply Y, in_app_iff. auto. }
    destruct (attack_exists y a k (firstn r order) (not_eq_sym N) U) as [y' [A [B [Z L]]]].
    { intros u I. rewrite <- (firstn_skipn r order) in Q. assert (J : In u (firstn r order ++ skipn r order)) by (apply in_app_iff; auto).
      clear I. rename J into I. apply (Permutation_in u (Permutation_sym Q)) in I. apply in_seq in I. lia. }
    exists y'. split; [split; auto|split; auto].
    - apply Nat.le_trans with (length (firstn r order)); [|apply firstn_le_length].
      apply NoDup_incl_length; [apply NoDup_filter, seq_NoDup|exact B].
    - intros [_ S]. specialize (S k Lk N). unfold top in T. rewrite firstn_map in T. lia.
  Qed.

  Lemma plus_le_over (cost price : nat -> Z) p q y y' : 0 <= p ->
    q * plus (map cost (changed_entries y y'))
    <= p * plus (map price (changed_entries y y')) + over (entries V) (fun u => Z.max 0 (q * cost u - p * price u)).
  Proof.
    intros H. unfold changed_entries. induction (entries V); [simpl; lia|]. rewrite seq_S, filter_app, !map_app, !plus_app. cbn [over filter].
    destruct (is_changed y y' (0 + n)); cbn [map plus]; rewrite ?Nat.add_0_l; lia.
  Qed.

  (** Prices: a bound. Whoever spends at most the total, however the entries are priced, does not change the label. *)
  Theorem label_prices_sound price total y C a : (a < C)%nat -> 0 <= asked V -> withstands_prices price total y C a ->
    forall y', spares_audited y y' -> paid price y y' <= total -> decided y' C a.
  Proof.
    intros L M H y' A B.
    assert (S : forall k, (k < C)%nat -> k <> a -> asked V <= label_lead y' a k).
    { intros k Lk N. destruct (H k Lk N) as [p [q [Hp [Hq T]]]]. pose proof (loss_at_most_cost y y' a k (not_eq_sym N) A) as X.
      pose proof (plus_le_over (label_cost y a k) price p q y y' Hp) as Y. unfold paid in B. nia. }
    split; auto. apply lead_elects; auto. intros k Lk N. specialize (S k Lk N). lia.
  Qed.
End Target.
