(** The vote: votes, label, and when changed votes cannot change the label (docs/proofs.md, Theorems 1, 2 and 8). *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
Open Scope Z_scope.

(** A vote is a class, or None for an abstention. *)
Definition vote := option nat.

(** Two votes are the same. *)
Definition beq (x y : vote) : bool :=
  match x, y with
  | Some a, Some b => Nat.eqb a b
  | None, None => true
  | _, _ => false
  end.

(** [num T p]: how many i < T satisfy p. *)
Fixpoint num (T : nat) (p : nat -> bool) : Z :=
  match T with
  | O => 0
  | S n => num n p + (if p n then 1 else 0)
  end.

(** Class k wins a tie against a. *)
Definition tie (k a : nat) : Z := if Nat.ltb k a then 1 else 0.

(** a is the label: the best score, the smaller class on a tie. *)
Definition is_label (s : nat -> Z) (C a : nat) : Prop :=
  (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> s k + tie k a <= s a.

(** The label, computed. *)
Fixpoint best (s : nat -> Z) (C : nat) : nat :=
  match C with
  | O => O
  | S m => let a := best s m in if s a <? s m then m else a
  end.

(** Score of class k under votes b of T groups and prior P. *)
Definition score (T : nat) (P : nat -> Z) (b : nat -> vote) (k : nat) : Z :=
  P k + num T (fun i => beq (b i) (Some k)).

(** Section 1, Vote: the label that C classes and T votes b elect, with a prior P (Theorem 8). *)
Definition voted (C T : nat) (P : nat -> Z) (b : nat -> vote) : nat := best (score T P b) C.

(** Limits; None is infinite. *)
Definition lim := option Z.
(** min(n, x). *)
Definition cap (n : lim) (x : Z) : Z := match n with Some m => Z.min m x | None => x end.
(** x is at most n. *)
Definition within (x : Z) (n : lim) : Prop := match n with Some m => x <= m | None => True end.

(** Theorem 2: votes that the graph touches, votes that are cast but touched by no edge, votes where nothing is. *)
Inductive tier := Reached | Unreached | Unlisted.
(** Two tiers are the same. *)
Definition teq (s t : tier) : bool :=
  match s, t with
  | Reached, Reached | Unreached, Unreached | Unlisted, Unlisted => true
  | _, _ => false
  end.

(** Theorem 2: n0 votes change in all, n1 of them outside the first tier, n2 of them in the third. *)
Record reach := Reach { all : lim; beyond : lim; unlisted : lim }.
(** Theorem 2: limit(x) = min(n0, x0 + min(n1, x1 + min(n2, x2))), of a set with x0, x1, x2 votes in the tiers. *)
Definition limit (n : reach) (x : tier -> Z) : Z :=
  cap (all n) (x Reached + cap (beyond n) (x Unreached + cap (unlisted n) (x Unlisted))).

(** What a certificate knows of one target: T votes, which are stable, and their tiers. *)
Record votes := Votes {
  groups : nat;
  cast : nat -> vote;
  stable : nat -> bool;
  tier_of : nat -> tier
}.

Section Counts.
  Variable V : votes.
  (** c_stable(k): stable votes for class k. *)
  Definition standing (k : nat) : Z := num (groups V) (fun i => stable V i && beq (cast V i) (Some k)).
  (** u: unstable votes, which count for every rival and not for a (section 5, Rounding). *)
  Definition conceded : Z := num (groups V) (fun i => negb (stable V i)).
  (** Stable votes for class k in tier t: with k = a, the x0, x1, x2 of limit(votes for a). *)
  Definition for_class (k : nat) (t : tier) : Z :=
    num (groups V) (fun i => stable V i && beq (cast V i) (Some k) && teq (tier_of V i) t).
  (** Stable votes in tier t that are not for k: the x0, x1, x2 of limit(votes not for k). *)
  Definition not_for (k : nat) (t : tier) : Z :=
    num (groups V) (fun i => stable V i && negb (beq (cast V i) (Some k)) && teq (tier_of V i) t).
  (** margin(k) = P(a) + c(a) - P(k) - c(k) - u - doubt - [k < a] *)
  Definition margin (P : nat -> Z) (doubt : Z) (a k : nat) : Z :=
    P a + standing a - P k - standing k - conceded - doubt - tie k a.
  (** The test of Theorem 2, with conceded votes and a prior. *)
  Definition withstands (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (n : reach) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a ->
      limit n (for_class a) + limit n (not_for k) <= margin P doubt a k.
End Counts.

(** r is what the vote reads after an attack that moves only what the three lists name: any vote, one outside the
    first tier, one in the third. What is not stable may be read as anything, before and after. *)
Inductive moves (V : votes) (n : reach) (r : nat -> vote) : Prop :=
| Moves (any_moved beyond_moved unlisted_moved : list nat)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> In i any_moved \/ r i = cast V i)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i <> Reached ->
         In i beyond_moved \/ r i = cast V i)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i = Unlisted ->
         In i unlisted_moved \/ r i = cast V i)
    (_ : within (Z.of_nat (length any_moved)) (all n))
    (_ : within (Z.of_nat (length beyond_moved)) (beyond n))
    (_ : within (Z.of_nat (length unlisted_moved)) (unlisted n)).

(** ---- Proofs ---- *)

Lemma beq_true x y : beq x y = true <-> x = y.
Proof.
  destruct x as [x|], y as [y|]; simpl; split; intro H; try discriminate; auto.
  - apply Nat.eqb_eq in H; congruence.
  - inversion H; apply Nat.eqb_refl.
Qed.

Lemma beq_false x y : beq x y = false <-> x <> y.
Proof. rewrite <- Bool.not_true_iff_false, beq_true; tauto. Qed.

Lemma tie_range k a : 0 <= tie k a <= 1.
Proof. unfold tie; destruct (Nat.ltb k a); lia. Qed.

Lemma tie_anti k a : k <> a -> tie k a + tie a k = 1.
Proof. unfold tie; intro H; destruct (Nat.ltb_spec k a), (Nat.ltb_spec a k); lia. Qed.

Lemma label_unique s C a b : is_label s C a -> is_label s C b -> a = b.
Proof.
  intros [Ha HA] [Hb HB]; destruct (Nat.eq_dec a b) as [|N]; auto.
  specialize (HA b Hb (not_eq_sym N)); specialize (HB a Ha N).
  pose proof (tie_anti a b N); lia.
Qed.

Lemma best_is_label s C : (0 < C)%nat -> is_label s C (best s C).
Proof.
  induction C as [|m IH]; [lia|]; intros _; simpl.
  destruct (Nat.eq_dec m 0) as [->|Hm].
  { simpl. rewrite Z.ltb_irrefl. split; [lia|]; intros; lia. }
  destruct IH as [IA IH]; [lia|].
  destruct (Z.ltb_spec (s (best s m)) (s m)) as [L|L]; split; try lia; intros k Hk N.
  - unfold tie. destruct (Nat.ltb_spec k m); [|lia].
    destruct (Nat.eq_dec k (best s m)) as [->|D]; [lia|].
    specialize (IH k ltac:(lia) D). pose proof (tie_range k (best s m)); lia.
  - destruct (Nat.eq_dec k m) as [->|D].
    + unfold tie. destruct (Nat.ltb_spec m (best s m)); lia.
    + apply IH; lia.
Qed.

Lemma label_is_best s C a : is_label s C a -> best s C = a.
Proof. intro H. apply (label_unique s C); auto. apply best_is_label. destruct H; lia. Qed.

Lemma num_nonneg T p : 0 <= num T p.
Proof. induction T; simpl; [lia|]; destruct (p T); lia. Qed.

Lemma num_le T p q : (forall i, (i < T)%nat -> p i = true -> q i = true) -> num T p <= num T q.
Proof.
  induction T as [|T IH]; simpl; intro H; [lia|].
  assert (num T p <= num T q) by (apply IH; intros; apply H; [lia|auto]).
  pose proof (H T ltac:(lia)). destruct (p T); [rewrite H1; auto|destruct (q T)]; lia.
Qed.

Lemma num_ext T p q : (forall i, (i < T)%nat -> p i = q i) -> num T p = num T q.
Proof.
  intro H; apply Z.le_antisymm; apply num_le; intros i Hi; rewrite (H i Hi); auto.
Qed.

Lemma num_filter T p : num T p = Z.of_nat (length (filter p (seq 0 T))).
Proof.
  induction T as [|T IH]; [reflexivity|].
  rewrite seq_S, filter_app, app_length, Nat2Z.inj_add, <- IH; simpl.
  destruct (p T); simpl; lia.
Qed.

Lemma num_list T p l : (forall i, (i < T)%nat -> p i = true -> In i l) -> num T p <= Z.of_nat (length l).
Proof.
  intro H; rewrite num_filter; apply Nat2Z.inj_le, NoDup_incl_length.
  - apply NoDup_filter, seq_NoDup.
  - intros i Hi; apply filter_In in Hi; destruct Hi as [Hi Hp]; apply in_seq in Hi; apply H; [lia|auto].
Qed.

Lemma num_le_all T p : num T p <= Z.of_nat T.
Proof. induction T as [|T IH]; simpl num; [lia|]; destruct (p T); lia. Qed.

(** Of a set X of votes no more change than its limit. *)
Section Moves.
  Variables (V : votes) (n : reach) (r : nat -> vote).
  Hypothesis M : moves V n r.

  Let T := groups V.
  Let st i := stable V i.
  Let b i := cast V i.
  Let ch i := st i && negb (beq (r i) (b i)).

  Lemma moved_within (X : nat -> bool) :
    num T (fun i => ch i && X i) <= limit n (fun t => num T (fun i => st i && X i && teq (tier_of V i) t)).
  Proof.
    destruct M as [l0 l1 l2 h0 h1 h2 f0 f1 f2].
    set (c t := num T (fun i => ch i && X i && teq (tier_of V i) t)).
    set (x t := num T (fun i => st i && X i && teq (tier_of V i) t)).
    assert (CX : forall t, c t <= x t).
    { intro t; apply num_le; intros i _; unfold ch; destruct (st i), (X i), (beq (r i) (b i)); simpl; auto; discriminate. }
    assert (S0 : num T (fun i => ch i && X i) = c Reached + c Unreached + c Unlisted).
    { unfold c; clear -V; induction T as [|m IH]; simpl; [lia|]; rewrite IH.
      destruct (ch m && X m); simpl; [destruct (tier_of V m); simpl; lia|lia]. }
    assert (S1 : c Unreached + c Unlisted = num T (fun i => ch i && X i && negb (teq (tier_of V i) Reached))).
    { unfold c; clear -V; induction T as [|m IH]; simpl; [lia|]; rewrite <- IH.
      destruct (ch m && X m); simpl; [destruct (tier_of V m); simpl; lia|lia]. }
    assert (L0 : num T (fun i => ch i && X i) <= Z.of_nat (length l0)).
    { apply num_list; intros i Hi Hc; apply andb_prop in Hc; destruct Hc as [Hc _].
      apply andb_prop in Hc; destruct Hc as [Hs Hr]; apply negb_true_iff, beq_false in Hr.
      destruct (h0 i Hi Hs); auto; contradiction. }
    assert (L1 : c Unreached + c Unlisted <= Z.of_nat (length l1)).
    { rewrite S1; apply num_list; intros i Hi Hc.
      apply andb_prop in Hc; destruct Hc as [Hc Ht]; apply andb_prop in Hc; destruct Hc as [Hc _].
      apply andb_prop in Hc; destruct Hc as [Hs Hr]; apply negb_true_iff, beq_false in Hr.
      destruct (h1 i Hi Hs); auto; try contradiction.
      intro E; rewrite E in Ht; discriminate. }
    assert (L2 : c Unlisted <= Z.of_nat (length l2)).
    { apply num_list; intros i Hi Hc.
      apply andb_prop in Hc; destruct Hc as [Hc Ht]; apply andb_prop in Hc; destruct Hc as [Hc _].
      apply andb_prop in Hc; destruct Hc as [Hs Hr]; apply negb_true_iff, beq_false in Hr.
      destruct (h2 i Hi Hs); auto; try contradiction.
      destruct (tier_of V i); auto; discriminate. }
    pose proof (CX Reached); pose proof (CX Unreached); pose proof (CX Unlisted).
    unfold limit; fold (x Reached) (x Unreached) (x Unlisted).
    destruct (all n), (beyond n), (unlisted n); simpl in *; lia.
  Qed.

  (** Pointwise: a changed vote for a loses a one and gains k one at most, a conceded one is k's. *)
  Lemma lead_upto a k m : a <> k ->
    num m (fun i => st i && beq (b i) (Some a)) - num m (fun i => st i && beq (b i) (Some k))
      - num m (fun i => negb (st i))
      - num m (fun i => ch i && beq (b i) (Some a)) - num m (fun i => ch i && negb (beq (b i) (Some k)))
    <= num m (fun i => beq (r i) (Some a)) - num m (fun i => beq (r i) (Some k)).
  Proof.
    intro N. induction m as [|m IH]; simpl; [lia|].
    assert (E : beq (r m) (Some a) = true -> beq (r m) (Some k) = true -> False).
    { rewrite !beq_true; congruence. }
    assert (E' : beq (b m) (Some a) = true -> beq (b m) (Some k) = true -> False).
    { rewrite !beq_true; congruence. }
    assert (Q : beq (r m) (b m) = true -> beq (r m) (Some a) = beq (b m) (Some a) /\ beq (r m) (Some k) = beq (b m) (Some k)).
    { rewrite beq_true; intros ->; auto. }
    unfold ch at 2 4; destruct (st m) eqn:Es, (beq (r m) (b m)) eqn:Eb; simpl;
      try (destruct (Q eq_refl) as [-> ->]);
      destruct (beq (b m) (Some a)), (beq (b m) (Some k)); try (exfalso; auto; fail);
      destruct (beq (r m) (Some a)), (beq (r m) (Some k)); try (exfalso; auto; fail); simpl; lia.
  Qed.

  Lemma lead_after a k : a <> k ->
    standing V a - standing V k - conceded V
      - num T (fun i => ch i && beq (b i) (Some a)) - num T (fun i => ch i && negb (beq (b i) (Some k)))
    <= num T (fun i => beq (r i) (Some a)) - num T (fun i => beq (r i) (Some k)).
  Proof. exact (lead_upto a k T). Qed.
End Moves.

(** Theorem 2 (with Theorem 8 and conceded votes): if the test holds, then whatever an attack within the limits and a
    machine within the tolerance make of the votes, the label is a. P' is the prior that is used then. *)
Theorem vote_sound :
  forall (V : votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (a : nat) (n : reach) (r : nat -> vote),
    withstands V C P doubt a n ->
    (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
    moves V n r ->
    voted C (groups V) P' r = a.
Proof.
  intros V C P P' doubt a n r [Ha H] HP M. apply label_is_best; split; auto.
  intros k Hk N. specialize (H k Hk N); specialize (HP k Hk N).
  pose proof (moved_within V n r M (fun i => beq (cast V i) (Some a))) as A.
  pose proof (moved_within V n r M (fun i => negb (beq (cast V i) (Some k)))) as B.
  pose proof (lead_after V r a k (not_eq_sym N)) as L.
  unfold score, margin in *. cbv beta in *.
  change (limit n (for_class V a)) with (limit n (fun t => num (groups V) (fun i => stable V i && beq (cast V i) (Some a) && teq (tier_of V i) t))) in H.
  change (limit n (not_for V k)) with (limit n (fun t => num (groups V) (fun i => stable V i && negb (beq (cast V i) (Some k)) && teq (tier_of V i) t))) in H.
  lia.
Qed.

(** A prior of w votes for the no_edge prediction, which may be read as y here and as y' there, is in doubt by |w|. *)
Definition for_no_edge (w : Z) (y : vote) (k : nat) : Z := if beq y (Some k) then w else 0.

(** Theorem 8: whatever the no_edge prediction is read as, the prior lead of a over k falls by no more than |w|. *)
Lemma no_edge_doubt P w y a k :
  P a - P k - Z.abs w <= (P a + for_no_edge w y a) - (P k + for_no_edge w y k).
Proof.
  unfold for_no_edge; destruct (beq y (Some a)), (beq y (Some k)); lia.
Qed.

(** Theorem 1, the paper's M: T votes of a deterministic vote without prior, at most M differ. *)
Definition radius_ok (C T : nat) (b : nat -> vote) (a : nat) (M : Z) : Prop :=
  forall k, (k < C)%nat -> k <> a ->
    2 * M <= num T (fun i => beq (b i) (Some a)) - num T (fun i => beq (b i) (Some k)) - tie k a.

(** Theorem 1: if 2 M is at most every margin, any change of at most M votes leaves the label as it is. *)
Theorem radius_sound :
  forall (C T : nat) (b b' : nat -> vote) (M : Z),
    (0 < C)%nat ->
    radius_ok C T b (voted C T (fun _ => 0) b) M ->
    num T (fun i => negb (beq (b i) (b' i))) <= M ->
    voted C T (fun _ => 0) b' = voted C T (fun _ => 0) b.
Proof.
  intros C T b b' M HC R D. set (a := voted C T (fun _ => 0) b) in *.
  set (V := Votes T b (fun _ => true) (fun _ => Reached)).
  set (n := Reach (Some M) (Some M) (Some M)).
  apply (vote_sound V C (fun _ => 0) (fun _ => 0) 0 a n b').
  - split. { apply best_is_label; auto. }
    intros k Hk N. specialize (R k Hk N).
    assert (L : forall x, limit n x <= M) by (intro x; unfold limit; simpl; lia).
    pose proof (L (for_class V a)); pose proof (L (not_for V k)).
    unfold margin, standing, conceded; simpl.
    assert (Z0 : num T (fun _ => false) = 0) by (clear; induction T; simpl; lia).
    rewrite Z0; lia.
  - intros; lia.
  - set (l := filter (fun i => negb (beq (b i) (b' i))) (seq 0 T)).
    assert (K : forall i, (i < T)%nat -> In i l \/ b' i = b i).
    { intros i Hi; destruct (beq (b i) (b' i)) eqn:E.
      - right; symmetry; apply beq_true; auto.
      - left; apply filter_In; split; [apply in_seq; lia|rewrite E; auto]. }
    assert (F : Z.of_nat (length l) <= M) by (unfold l; rewrite <- num_filter; auto).
    apply (Moves V n b' l l l); simpl; intros; auto.
Qed.

