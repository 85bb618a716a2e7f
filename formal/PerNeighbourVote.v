(** The vote where every neighbour, or pair, casts a vote of its own (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph.
Import ListNotations.
Open Scope Z_scope.

Section PerNeighbourVote.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  (** u is in the list. *)
  Definition mem (u : key) (l : list key) : bool := if in_dec key_eq u l then true else false.

  (** A sum over a list of votes. *)
  Fixpoint sum (g : key -> Z) (l : list key) : Z := match l with [] => 0 | u :: l' => g u + sum g l' end.
  (** How many of a list satisfy p. *)
  Definition bit (b : bool) : Z := if b then 1 else 0.
  (** How many of a list satisfy p. *)
  Definition amount (p : key -> bool) (l : list key) : Z := sum (fun u => bit (p u)) l.

  (** Empty groups cast y0 (None: they abstain). They are beyond number, so a vote that is cast is one of y0 less. *)
  Definition own_score (P : nat -> Z) (y0 : vote) (S : list key) (b : key -> vote) (k : nat) : Z :=
    P k + amount (fun u => beq (b u) (Some k)) S - (if beq y0 (Some k) then Z.of_nat (length S) else 0).

  (** Section 1, Vote, with T infinite: the label. *)
  Definition own_voted C P y0 S b : nat := best (own_score P y0 S b) C.

  (** What a certificate knows of one target: who casts a vote (the set S), the votes, which are stable, and which pairs have one direction
      only. *)
  Record own_votes := OwnVotes { cast_by : list key; own_cast : key -> vote; own_stable : key -> bool; one_way : key -> bool }.

  (** new, touched, altered, turned *)
  Record touches := Touches { t_new : lim; t_touched : lim; t_altered : lim; t_turned : lim }.

  Section Counts.
    Variable V : own_votes.
    (** c(k): stable votes for k. *)
    Definition o_for (k : nat) : Z := amount (fun u => own_stable V u && beq (own_cast V u) (Some k)) (cast_by V).
    (** |S| - c(k), of the stable votes: those that are not for k. *)
    Definition o_not (k : nat) : Z := amount (fun u => own_stable V u && negb (beq (own_cast V u) (Some k))) (cast_by V).
    (** u: unstable votes, conceded beforehand. *)
    Definition o_unstable : Z := amount (fun u => negb (own_stable V u)) (cast_by V).
    (** Stable votes for k of pairs with one direction only: a second one may turn them. *)
    Definition o_way (k : nat) : Z := amount (fun u => own_stable V u && one_way V u && beq (own_cast V u) (Some k)) (cast_by V).
    (** The same of votes that are not for k. *)
    Definition o_way_not (k : nat) : Z :=
      amount (fun u => own_stable V u && one_way V u && negb (beq (own_cast V u) (Some k))) (cast_by V).
    (** Theorem 9: margin(k), with prior, doubt, conceded votes, and one vote of y0 less for each vote that is cast. *)
    Definition o_margin (P : nat -> Z) (doubt : Z) (y0 : vote) (a k : nat) : Z :=
      P a - P k - doubt + o_for a - o_for k - o_unstable - tie k a
      + (if beq y0 (Some k) then Z.of_nat (length (cast_by V)) else 0)
      - (if beq y0 (Some a) then Z.of_nat (length (cast_by V)) else 0).
    (** The most that a rival gains. [over n x extra]: votes among x that n touch, and of the others those turned. *)
    Definition over (n t : lim) (x ways : Z) : Z := cap n x + cap t (Z.min ways (x - cap n x)).
    (** Theorem 9: the most that rival k gains on a, one formula each for y0 = a, y0 = k, and any other y0. *)
    Definition gain (y0 : vote) (n : touches) (a k : nat) : lim :=
      if beq y0 (Some a) then ladd (Some (cap (t_altered n) (o_for a) + cap (t_altered n) (o_not k))) (lmul (Some 2) (t_new n))
      else if beq y0 (Some k) then
        Some (over (t_touched n) (t_turned n) (o_for a) (o_way a) + over (t_touched n) (t_turned n) (o_not k) (o_way_not k))
      else ladd (Some (over (t_touched n) (t_turned n) (o_for a) (o_way a) + cap (t_altered n) (o_not k))) (t_new n).
    (** x is at least n; never, where n is infinite. *)
    Definition at_least (x : Z) (n : lim) : Prop := match n with Some m => m <= x | None => False end.
    (** Theorem 9, the test: every margin is at least what the rival gains. *)
    Definition own_withstands (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (n : touches) : Prop :=
      (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> at_least (o_margin P doubt y0 a k) (gain y0 n a k).
  End Counts.

  (** S' and r are what is cast and read after an attack that adds, removes, alters and turns the votes in four lists.
      A key in [rem] may come back as a new one. *)
  Record own_changes (V : own_votes) (S' : list key) (r : key -> vote) (new rem alt turn : list key) : Prop := {
    old_ok : forall u, In u (cast_by V) -> In u alt \/ In u turn \/ (In u rem /\ (In u new \/ ~ In u S'))
             \/ (In u S' /\ (own_stable V u = true -> r u = own_cast V u));
    new_ok : forall u, In u S' -> In u (cast_by V) \/ In u new;
    turn_ok : forall u, In u turn -> one_way V u = true
  }.

  (** The same within limits. *)
  Inductive own_moves (V : own_votes) (n : touches) (S' : list key) (r : key -> vote) : Prop :=
  | OwnMoves (new rem alt turn : list key) (_ : own_changes V S' r new rem alt turn)
      (_ : few (new ++ turn) (t_new n)) (_ : few (rem ++ alt) (t_touched n)) (_ : few alt (t_altered n))
      (_ : few turn (t_turned n)).

  (** x changes of any kind: the most that a rival gains. Without [altering], edges and nodes are added and deleted only. *)
  Definition any_gain (V : own_votes) (y0 : vote) (altering : bool) (x : Z) (a k : nat) : Z :=
    if beq y0 (Some a) then 2 * x
    else if beq y0 (Some k) then Z.min x (o_for V a) + Z.min x (o_not V k)
    else x + Z.min x (if altering then o_for V a else o_way V a).
  (** Theorem 9, the radii: x changes leave every margin at 0 or more. *)
  Definition own_radius_ok (V : own_votes) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (altering : bool) (a : nat) (x : Z) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> any_gain V y0 altering x a k <= o_margin V P doubt y0 a k.

  (** x changes at one target, within limits: at most [twos] of them gain a rival two, the others one. *)
  Definition twos (V : own_votes) (y0 : vote) (n : touches) (a k : nat) : lim :=
    let kept := if beq y0 (Some k) then t_touched n else t_altered n in
    let t := Some (cap (ladd kept (Some (cap (t_turned n) (o_way V a)))) (o_for V a)) in
    if beq y0 (Some a) then ladd t (t_new n) else t.
  (** Theorem 9, many targets: within the budget, x changes at this target leave every margin at 0 or more. *)
  Definition own_touches_ok (V : own_votes) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (a : nat) (x : Z) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a ->
      at_least (o_margin V P doubt y0 a k) (gain V y0 n a k)
      \/ x + cap (twos V y0 n a k) x <= o_margin V P doubt y0 a k.

  (** ---- Proofs ---- *)

  Lemma mem_true (u : key) (l : list key) : mem u l = true <-> In u l.
  Proof. unfold mem; destruct (in_dec key_eq u l); split; intro; auto; discriminate. Qed.

  Lemma sum_perm (g : key -> Z) (l l' : list key) : Permutation l l' -> sum g l = sum g l'.
  Proof. induction 1; simpl; lia. Qed.

  Lemma sum_filter (g : key -> Z) (p : key -> bool) l : sum (fun u => if p u then g u else 0) l = sum g (filter p l).
  Proof. induction l as [|u l IH]; simpl; auto; destruct (p u); simpl; lia. Qed.

  Lemma sum_within (g : key -> Z) S U : NoDup S -> NoDup U -> incl S U -> sum (fun u => if mem u S then g u else 0) U = sum g S.
  Proof.
    intros HS HU I; rewrite sum_filter; apply sum_perm, NoDup_Permutation; auto using NoDup_filter.
    intro u; rewrite filter_In, mem_true; split; [tauto|auto].
  Qed.

  Lemma sum_le (g g' : key -> Z) l : (forall u, In u l -> g u <= g' u) -> sum g l <= sum g' l.
  Proof.
    induction l as [|u l IH]; simpl; intro H; [lia|].
    pose proof (H u (or_introl eq_refl)); assert (sum g l <= sum g' l) by (apply IH; auto); lia.
  Qed.

  Lemma amount_filter (p : key -> bool) l : amount p l = Z.of_nat (length (filter p l)).
  Proof. unfold amount, bit; induction l as [|u l IH]; simpl; auto; destruct (p u); simpl length; lia. Qed.

  Lemma amount_list (p : key -> bool) S l : NoDup S -> (forall u, In u S -> p u = true -> In u l) -> amount p S <= Z.of_nat (length l).
  Proof.
    intros N H; rewrite amount_filter; apply Nat2Z.inj_le, NoDup_incl_length; [apply NoDup_filter; auto|].
    intros u Hu; apply filter_In in Hu; destruct Hu; auto.
  Qed.

  Lemma amount_le (p q : key -> bool) S : (forall u, In u S -> p u = true -> q u = true) -> amount p S <= amount q S.
  Proof.
    intro H; apply sum_le; intros u Hu; specialize (H u Hu); unfold bit; destruct (p u); [rewrite H; auto|destruct (q u)]; lia.
  Qed.

  Lemma amount_or (p q r0 : key -> bool) S : (forall u, p u = true -> q u = true \/ r0 u = true) -> amount p S <= amount q S + amount r0 S.
  Proof.
    intro H; unfold amount; induction S as [|u S IH]; simpl; [lia|]; specialize (H u); unfold bit in *.
    destruct (p u); [destruct H as [-> | ->]; auto|]; destruct (q u), (r0 u); lia.
  Qed.

  Lemma over_bound (way : key -> bool) S (X : key -> bool) l1 l2 m t : NoDup S ->
    few l1 m -> few l2 t -> (forall u, In u l2 -> way u = true) ->
    amount (fun u => X u && (mem u l1 || mem u l2)) S
      <= over m t (amount X S) (amount (fun u => X u && way u) S).
  Proof.
    intros NS F1 F2 HO.
    assert (A0 : amount (fun u => X u && (mem u l1 || mem u l2)) S <= amount X S).
    { apply amount_le; intros u _; destruct (X u); auto. }
    assert (A1 : amount (fun u => X u && mem u l1) S <= Z.of_nat (length l1)).
    { apply amount_list; auto; intros u _ H; apply andb_prop in H; apply mem_true; tauto. }
    assert (A2 : amount (fun u => X u && mem u l2) S <= Z.of_nat (length l2)).
    { apply amount_list; auto; intros u _ H; apply andb_prop in H; apply mem_true; tauto. }
    assert (A3 : amount (fun u => X u && mem u l2) S <= amount (fun u => X u && way u) S).
    { apply amount_le; intros u _ H; apply andb_prop in H; destruct H as [-> H]; apply HO, mem_true, H. }
    assert (A4 : amount (fun u => X u && mem u l1) S <= amount X S).
    { apply amount_le; intros u _; destruct (X u); auto. }
    assert (A5 : amount (fun u => X u && (mem u l1 || mem u l2)) S
                 <= amount (fun u => X u && mem u l1) S + amount (fun u => X u && mem u l2) S).
    { apply amount_or; intro u; destruct (X u), (mem u l1), (mem u l2); auto. }
    unfold few, within, over, cap in *; destruct m, t; lia.
  Qed.

  Lemma cap_bound S (X : key -> bool) l1 l2 m : NoDup S -> few l1 m ->
    amount (fun u => X u && (mem u l1 || mem u l2)) S <= cap m (amount X S) + Z.of_nat (length l2).
  Proof.
    intros NS F1.
    assert (A1 : amount (fun u => X u && mem u l1) S <= Z.of_nat (length l1)).
    { apply amount_list; auto; intros u _ H; apply andb_prop in H; apply mem_true; tauto. }
    assert (A2 : amount (fun u => X u && mem u l2) S <= Z.of_nat (length l2)).
    { apply amount_list; auto; intros u _ H; apply andb_prop in H; apply mem_true; tauto. }
    assert (A4 : amount (fun u => X u && mem u l1) S <= amount X S).
    { apply amount_le; intros u _; destruct (X u); auto. }
    assert (A5 : amount (fun u => X u && (mem u l1 || mem u l2)) S
                 <= amount (fun u => X u && mem u l1) S + amount (fun u => X u && mem u l2) S).
    { apply amount_or; intro u; destruct (X u), (mem u l1), (mem u l2); auto. }
    unfold few, within, cap in *; destruct m; lia.
  Qed.

  Section Proof.
    Variables (V : own_votes) (n : touches) (S' : list key) (r : key -> vote).
    Hypothesis NS : NoDup (cast_by V).
    Hypothesis NS' : NoDup S'.
    Let S := cast_by V.
    Variables new rem alt turn : list key.
    Hypothesis h_old : forall u, In u S -> In u alt \/ In u turn \/ (In u rem /\ (In u new \/ ~ In u S'))
             \/ (In u S' /\ (own_stable V u = true -> r u = own_cast V u)).
    Hypothesis h_new : forall u, In u S' -> In u S \/ In u new.
    Hypothesis h_turn : forall u, In u turn -> one_way V u = true.
    Variables (a k : nat) (y0 : vote).
    Hypothesis ak : a <> k.

    Let st u := own_stable V u.
    Let b u := own_cast V u.
    Let alpha := bit (beq y0 (Some a)).
    Let kappa := bit (beq y0 (Some k)).
    Let w (y : vote) := bit (beq y (Some a)) - bit (beq y (Some k)) - alpha + kappa.
    Let hit u := mem u alt || mem u turn.
    Let hit_a u := st u && beq (b u) (Some a) && (if beq y0 (Some a) then hit u else hit u || mem u rem).
    Let hit_k u := st u && negb (beq (b u) (Some k)) && (if beq y0 (Some k) then hit u || mem u rem else hit u).
    Let base u := if st u then w (b u) else - 1 - alpha + kappa.

    Lemma w_low y : - 1 - alpha + kappa <= w y.
    Proof. unfold w, bit; destruct (beq y (Some a)), (beq y (Some k)); lia. Qed.

    Lemma not_both y : beq y (Some a) = true -> beq y (Some k) = true -> False.
    Proof. rewrite !beq_true; congruence. Qed.

    Lemma pointwise u :
      (if mem u S then base u - bit (hit_a u) - bit (hit_k u) else 0) - (1 + alpha - kappa) * bit (mem u new)
      <= (if mem u S' then w (r u) else 0).
    Proof.
      pose proof (w_low (r u)) as W. pose proof (not_both (b u)) as NB. pose proof (not_both y0) as N0.
      unfold base, hit_a, hit_k, hit, w, alpha, kappa, bit in *.
      destruct (mem u S) eqn:MS.
      - apply mem_true in MS. destruct (h_old u MS) as [H|[H|[[H H']|[H H']]]].
        + apply mem_true in H; rewrite H; simpl.
          destruct (st u), (beq (b u) (Some a)), (beq (b u) (Some k)), (beq y0 (Some a)), (beq y0 (Some k)), (mem u new), (mem u S');
            simpl; try (exfalso; auto; fail); lia.
        + apply mem_true in H; rewrite H, orb_true_r; simpl.
          destruct (st u), (beq (b u) (Some a)), (beq (b u) (Some k)), (beq y0 (Some a)), (beq y0 (Some k)), (mem u new), (mem u S');
            simpl; try (exfalso; auto; fail); lia.
        + apply mem_true in H; rewrite H, orb_true_r.
          assert (X : mem u new = true \/ mem u S' = false).
          { destruct H' as [H'|H']; [left; apply mem_true; auto|right; apply not_true_iff_false; rewrite mem_true; auto]. }
          destruct X as [-> | ->];
          destruct (mem u alt || mem u turn), (st u), (beq (b u) (Some a)), (beq (b u) (Some k)), (beq y0 (Some a)), (beq y0 (Some k));
            try destruct (mem u new); try destruct (mem u S'); simpl; try (exfalso; auto; fail); lia.
        + apply mem_true in H; rewrite H. destruct (st u) eqn:Es.
          * rewrite (H' Es). fold (b u).
            destruct (mem u alt || mem u turn), (mem u rem), (beq (b u) (Some a)), (beq (b u) (Some k)), (beq y0 (Some a)), (beq y0 (Some k)), (mem u new);
              simpl; try (exfalso; auto; fail); lia.
          * simpl. destruct (beq y0 (Some a)), (beq y0 (Some k)), (mem u new); simpl; try (exfalso; auto; fail); lia.
      - destruct (mem u S') eqn:MS'.
        + apply mem_true in MS'. destruct (h_new u MS') as [H|H]; [apply mem_true in H; congruence|].
          apply mem_true in H; rewrite H. destruct (beq y0 (Some a)), (beq y0 (Some k)); simpl; try (exfalso; auto; fail); lia.
        + destruct (beq y0 (Some a)), (beq y0 (Some k)), (mem u new); simpl; try (exfalso; auto; fail); lia.
    Qed.

    Lemma sum_sub3 g1 g2 g3 l : sum (fun u => g1 u - g2 u - g3 u) l = sum g1 l - sum g2 l - sum g3 l.
    Proof. induction l; simpl; lia. Qed.

    Lemma new_le U : NoDup U -> sum (fun u => (1 + alpha - kappa) * bit (mem u new)) U <= (1 + alpha - kappa) * Z.of_nat (length new).
    Proof.
      intro NU. assert (E : sum (fun u => (1 + alpha - kappa) * bit (mem u new)) U = (1 + alpha - kappa) * amount (fun u => mem u new) U).
      { unfold amount; generalize (1 + alpha - kappa); clear; intro c; induction U as [|u U IH]; simpl; [ring|rewrite IH; ring]. }
      rewrite E. assert (amount (fun u => mem u new) U <= Z.of_nat (length new)).
      { apply amount_list; auto; intros u _ H; apply mem_true; auto. }
      assert (0 <= 1 + alpha - kappa) by (unfold alpha, kappa, bit; destruct (beq y0 (Some a)), (beq y0 (Some k)); lia).
      nia.
    Qed.

    Lemma total :
      sum base S - amount hit_a S - amount hit_k S - (1 + alpha - kappa) * Z.of_nat (length new) <= sum (fun u => w (r u)) S'.
    Proof.
      set (U := nodup key_eq (S ++ S')).
      assert (NU : NoDup U) by apply NoDup_nodup.
      assert (IS : incl S U) by (intros u H; apply nodup_In, in_app_iff; auto).
      assert (IS' : incl S' U) by (intros u H; apply nodup_In, in_app_iff; auto).
      rewrite <- (sum_within (fun u => w (r u)) S' U NS' NU IS').
      pose proof (sum_le _ _ U (fun u _ => pointwise u)) as H.
      assert (E : sum (fun u => (if mem u S then base u - bit (hit_a u) - bit (hit_k u) else 0) - (1 + alpha - kappa) * bit (mem u new)) U
                  = sum (fun u => if mem u S then base u - bit (hit_a u) - bit (hit_k u) else 0) U
                    - sum (fun u => (1 + alpha - kappa) * bit (mem u new)) U).
      { clear; generalize (1 + alpha - kappa); intro c; induction U as [|u l IH]; simpl; [ring|rewrite IH; ring]. }
      rewrite E in H. pose proof (new_le U NU) as HN.
      rewrite (sum_within (fun u => base u - bit (hit_a u) - bit (hit_k u)) S U NS NU IS), sum_sub3 in H.
      unfold amount; lia.
    Qed.

    Lemma base_sum_of l : sum base l
      = amount (fun u => own_stable V u && beq (own_cast V u) (Some a)) l
        - amount (fun u => own_stable V u && beq (own_cast V u) (Some k)) l
        - amount (fun u => negb (own_stable V u)) l + (kappa - alpha) * Z.of_nat (length l).
    Proof.
      unfold amount; induction l as [|u l IH]; [simpl; ring|].
      simpl sum; simpl length; rewrite IH, Nat2Z.inj_succ; unfold Z.succ, base, w, st, b.
      destruct (own_stable V u), (beq (own_cast V u) (Some a)), (beq (own_cast V u) (Some k)); cbn [bit negb andb]; ring.
    Qed.

    Lemma base_sum : sum base S = o_for V a - o_for V k - o_unstable V + (kappa - alpha) * Z.of_nat (length S).
    Proof. exact (base_sum_of S). Qed.

    Lemma lead_own P : own_score P y0 S' r a - own_score P y0 S' r k = P a - P k + sum (fun u => w (r u)) S'.
    Proof.
      unfold own_score, amount, w, alpha, kappa. clear. 
      assert (E : forall l, sum (fun u => bit (beq (r u) (Some a)) - bit (beq (r u) (Some k)) - bit (beq y0 (Some a)) + bit (beq y0 (Some k))) l
        = sum (fun u => bit (beq (r u) (Some a))) l - sum (fun u => bit (beq (r u) (Some k))) l
          + (bit (beq y0 (Some k)) - bit (beq y0 (Some a))) * Z.of_nat (length l)).
      { induction l as [|u l IH]; [simpl; ring|]; simpl sum; rewrite IH; simpl length; rewrite Nat2Z.inj_succ; unfold Z.succ; ring. }
      rewrite E; unfold bit; destruct (beq y0 (Some a)), (beq y0 (Some k)); lia.
    Qed.

  End Proof.

  Lemma amount_ext p q l : (forall u, p u = q u) -> amount p l = amount q l.
  Proof. intro H; unfold amount; induction l; simpl; rewrite ?H; lia. Qed.

  (** How much the lead over k falls: by votes of a that are hit, by votes that become k's, and by new ones. *)
  Section Loss.
    Variables (V : own_votes) (S' : list key) (r : key -> vote) (new rem alt turn : list key).
    Hypothesis NS : NoDup (cast_by V).
    Hypothesis NS' : NoDup S'.
    Hypothesis M : own_changes V S' r new rem alt turn.
    Variables (y0 : vote) (a k : nat).
    Hypothesis ak : k <> a.
    Let hit (with_rem : bool) u := mem u alt || mem u turn || (with_rem && mem u rem).
    (** Votes that a loses. *)
    Definition lost_by_a : Z :=
      amount (fun u => own_stable V u && beq (own_cast V u) (Some a) && hit (negb (beq y0 (Some a))) u) (cast_by V).
    (** Votes that k wins. *)
    Definition won_by_k : Z :=
      amount (fun u => own_stable V u && negb (beq (own_cast V u) (Some k)) && hit (beq y0 (Some k)) u) (cast_by V).
    (** What one new vote is worth to k: it replaces a vote of y0. *)
    Definition worth : Z := if beq y0 (Some a) then 2 else if beq y0 (Some k) then 0 else 1.

    Lemma own_loss P P' doubt :
      P a - P k - doubt <= P' a - P' k ->
      o_margin V P doubt y0 a k + tie k a - lost_by_a - won_by_k - worth * Z.of_nat (length new)
        <= own_score P' y0 S' r a - own_score P' y0 S' r k.
    Proof.
      intro HP. destruct M as [h1 h2 h3]. assert (N' := not_eq_sym ak).
      pose proof (total V S' r NS NS' new rem alt turn h1 h2 a k y0 N') as T0.
      pose proof (lead_own S' r a k y0 P') as L0.
      pose proof (base_sum V a k y0) as B0.
      cbv beta zeta in T0, L0, B0. rewrite B0 in T0.
      match type of L0 with _ = _ + ?s => set (W := s) in *; clearbody W end.
      unfold lost_by_a, won_by_k, worth, hit, o_margin.
      assert (NB : beq y0 (Some a) = true -> beq y0 (Some k) = true -> False) by (rewrite !beq_true; congruence).
      rewrite (amount_ext _ (fun u => own_stable V u && beq (own_cast V u) (Some a) &&
          (if beq y0 (Some a) then mem u alt || mem u turn else mem u alt || mem u turn || mem u rem))).
      2: { intro u; destruct (beq y0 (Some a)); simpl; rewrite ?orb_false_r; auto. }
      rewrite (amount_ext (fun u => own_stable V u && negb (beq (own_cast V u) (Some k)) && (mem u alt || mem u turn || beq y0 (Some k) && mem u rem))
        (fun u => own_stable V u && negb (beq (own_cast V u) (Some k)) &&
          (if beq y0 (Some k) then mem u alt || mem u turn || mem u rem else mem u alt || mem u turn))).
      2: { intro u; destruct (beq y0 (Some k)); simpl; rewrite ?orb_false_r; auto. }
      unfold bit in T0.
      destruct (beq y0 (Some a)) eqn:Ea, (beq y0 (Some k)) eqn:Ek; try (exfalso; auto; fail); cbv beta iota in T0; lia.
    Qed.

    (** What is hit is no more than is there, and no more than hits. *)
    Lemma hit_list (X : key -> bool) (l : list key) :
      amount (fun u => X u && mem u l) (cast_by V) <= Z.min (Z.of_nat (length l)) (amount X (cast_by V)).
    Proof using NS.
      clear -NS.
      assert (amount (fun u => X u && mem u l) (cast_by V) <= Z.of_nat (length l)).
      { apply amount_list; auto; intros u _ H; apply andb_prop in H; apply mem_true; tauto. }
      assert (amount (fun u => X u && mem u l) (cast_by V) <= amount X (cast_by V)).
      { apply amount_le; intros u _; destruct (X u); auto. }
      lia.
    Qed.
    Lemma hit_turn (X : key -> bool) :
      amount (fun u => X u && mem u turn) (cast_by V) <= amount (fun u => X u && one_way V u) (cast_by V).
    Proof using M.
      clear -M.
      apply amount_le; intros u _ H; apply andb_prop in H; destruct H as [-> H]; apply (turn_ok _ _ _ _ _ _ _ M), mem_true, H.
    Qed.
    Lemma hit_sum (X : key -> bool) b :
      amount (fun u => X u && hit b u) (cast_by V)
        <= amount (fun u => X u && mem u alt) (cast_by V) + amount (fun u => X u && mem u turn) (cast_by V)
           + (if b then amount (fun u => X u && mem u rem) (cast_by V) else 0).
    Proof using key_eq.
      clear -key_eq.
      etransitivity; [apply (amount_or _ (fun u => X u && (mem u alt || mem u turn)) (fun u => b && (X u && mem u rem)))|].
      { intro u; unfold hit; destruct (X u), (mem u alt), (mem u turn), b, (mem u rem); auto. }
      pose proof (amount_or (fun u => X u && (mem u alt || mem u turn)) (fun u => X u && mem u alt) (fun u => X u && mem u turn) (cast_by V)
        ltac:(intro u; destruct (X u), (mem u alt), (mem u turn); auto)).
      destruct b; simpl; [lia|].
      assert (amount (fun _ => false) (cast_by V) = 0) by (unfold amount, bit; clear; induction (cast_by V); simpl; lia). lia.
    Qed.
    Lemma hit_all (X : key -> bool) b : amount (fun u => X u && hit b u) (cast_by V) <= amount X (cast_by V).
    Proof using key_eq.
      clear -key_eq. apply amount_le; intros u _; destruct (X u); auto. Qed.
  End Loss.

  (** Within limits the loss is no more than the gain of Theorem 9. *)
  Lemma own_gain_bound V n new rem alt turn S' r : NoDup (cast_by V) -> own_changes V S' r new rem alt turn ->
    forall y0 a k, k <> a ->
    few (new ++ turn) (t_new n) -> few (rem ++ alt) (t_touched n) -> few alt (t_altered n) -> few turn (t_turned n) ->
    within (lost_by_a V rem alt turn y0 a + won_by_k V rem alt turn y0 k + worth y0 a k * Z.of_nat (length new)) (gain V y0 n a k).
  Proof.
    intros NS [_ _ h3] y0 a k N f1 f2 f3 f4.
    assert (F1 : few (alt ++ rem) (t_touched n)).
    { revert f2; unfold few; rewrite !app_length; intro; replace (length alt + length rem)%nat with (length rem + length alt)%nat by lia; auto. }
    set (Xa := fun u => own_stable V u && beq (own_cast V u) (Some a)).
    set (Xk := fun u => own_stable V u && negb (beq (own_cast V u) (Some k))).
    pose proof (over_bound (one_way V) (cast_by V) Xa (alt ++ rem) turn _ _ NS F1 f4 h3) as Oa.
    pose proof (over_bound (one_way V) (cast_by V) Xk (alt ++ rem) turn _ _ NS F1 f4 h3) as Ok.
    pose proof (cap_bound (cast_by V) Xa alt turn _ NS f3) as Ca.
    pose proof (cap_bound (cast_by V) Xk alt turn _ NS f3) as Ck.
    assert (M3 : forall u, mem u (alt ++ rem) || mem u turn = (mem u alt || mem u turn) || mem u rem).
    { intro u; apply eq_true_iff_eq; rewrite !orb_true_iff, !mem_true, in_app_iff; tauto. }
    rewrite (amount_ext (fun u => Xa u && one_way V u) (fun u => own_stable V u && one_way V u && beq (own_cast V u) (Some a))) in Oa
      by (intro u; unfold Xa; destruct (own_stable V u), (one_way V u), (beq (own_cast V u) (Some a)); auto).
    rewrite (amount_ext (fun u => Xk u && one_way V u) (fun u => own_stable V u && one_way V u && negb (beq (own_cast V u) (Some k)))) in Ok
      by (intro u; unfold Xk; destruct (own_stable V u), (one_way V u), (beq (own_cast V u) (Some k)); auto).
    rewrite (amount_ext _ (fun u => Xa u && (mem u alt || mem u turn || true && mem u rem))) in Oa by (intro u; rewrite M3; auto).
    rewrite (amount_ext _ (fun u => Xk u && (mem u alt || mem u turn || true && mem u rem))) in Ok by (intro u; rewrite M3; auto).
    rewrite (amount_ext _ (fun u => Xa u && (mem u alt || mem u turn || false && mem u rem))) in Ca by (intro u; simpl; rewrite orb_false_r; auto).
    rewrite (amount_ext _ (fun u => Xk u && (mem u alt || mem u turn || false && mem u rem))) in Ck by (intro u; simpl; rewrite orb_false_r; auto).
    change (amount Xa (cast_by V)) with (o_for V a) in *; change (amount Xk (cast_by V)) with (o_not V k) in *.
    change (amount (fun u => own_stable V u && one_way V u && beq (own_cast V u) (Some a)) (cast_by V)) with (o_way V a) in *.
    change (amount (fun u => own_stable V u && one_way V u && negb (beq (own_cast V u) (Some k))) (cast_by V)) with (o_way_not V k) in *.
    unfold few, within in f1; rewrite app_length in f1.
    unfold lost_by_a, won_by_k, worth, gain, within. fold (Xa).
    assert (NB : beq y0 (Some a) = true -> beq y0 (Some k) = true -> False) by (rewrite !beq_true; congruence).
    unfold Xa, Xk in Oa, Ok, Ca, Ck.
    destruct (beq y0 (Some a)) eqn:Ea, (beq y0 (Some k)) eqn:Ek; try (exfalso; auto; fail); cbn [negb].
    - destruct (t_new n); cbn [ladd lmul Z.leb Z.compare]; [lia|exact I].
    - lia.
    - destruct (t_new n); cbn [ladd]; [lia|exact I].
  Qed.

  (** Theorem 9, the radii: x changes of any kind leave the label as it is. *)
  Theorem own_radius_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (altering : bool) (a : nat) (x : Z)
           (S' : list key) (r : key -> vote) (new rem alt turn : list key),
      NoDup (cast_by V) -> NoDup S' ->
      own_radius_ok V C P doubt y0 altering a x ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_changes V S' r new rem alt turn ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
      (altering = false -> alt = []) ->
      own_voted C P' y0 S' r = a.
  Proof.
    intros V C P P' doubt y0 altering a x S' r new rem alt turn NS NS' [Ha H] HP M L A.
    apply label_is_best; split; auto; intros k Hk N.
    specialize (H k Hk N); specialize (HP k Hk N).
    pose proof (own_loss V S' r new rem alt turn NS NS' M y0 a k N P P' doubt HP) as Q.
    unfold any_gain, lost_by_a, won_by_k, worth in *. rewrite !app_length in L.
    set (Xa := fun u => own_stable V u && beq (own_cast V u) (Some a)) in *.
    set (Xk := fun u => own_stable V u && negb (beq (own_cast V u) (Some k))) in *.
    change (o_for V a) with (amount Xa (cast_by V)) in *; change (o_not V k) with (amount Xk (cast_by V)) in *.
    assert (W : amount (fun u => Xa u && one_way V u) (cast_by V) = o_way V a).
    { apply amount_ext; intro u; unfold Xa; destruct (own_stable V u), (one_way V u), (beq (own_cast V u) (Some a)); auto. }
    pose proof (hit_turn V S' r new rem alt turn M Xa) as Ht.
    pose proof (hit_list V NS Xa alt); pose proof (hit_list V NS Xa turn); pose proof (hit_list V NS Xa rem).
    pose proof (hit_list V NS Xk alt); pose proof (hit_list V NS Xk turn); pose proof (hit_list V NS Xk rem).
    assert (EA : altering = false -> amount (fun u => Xa u && mem u alt) (cast_by V) <= 0).
    { intro E; rewrite (A E) in *; simpl in *; lia. }
    pose proof (hit_all V rem alt turn Xa false) as A1; pose proof (hit_sum V rem alt turn Xa false) as S1.
    pose proof (hit_all V rem alt turn Xa true) as A2; pose proof (hit_sum V rem alt turn Xa true) as S2.
    pose proof (hit_sum V rem alt turn Xk false) as S3; pose proof (hit_sum V rem alt turn Xk true) as S4.
    pose proof (hit_all V rem alt turn Xk true) as A4.
    assert (D : amount (fun u => Xa u && (mem u alt || mem u turn || true && mem u rem)) (cast_by V)
        <= amount (fun u => Xa u && (mem u alt || mem u turn || false && mem u rem)) (cast_by V) + amount (fun u => Xa u && mem u rem) (cast_by V)).
    { apply amount_or; intro u; destruct (Xa u), (mem u alt), (mem u turn), (mem u rem); auto. }
    subst Xa Xk; cbv beta iota in *.
    destruct (beq y0 (Some a)) eqn:Ea, (beq y0 (Some k)) eqn:Ek; cbn [negb] in Q.
    - rewrite beq_true in Ea, Ek; congruence.
    - lia.
    - lia.
    - destruct altering; [|specialize (EA eq_refl)]; lia.
  Qed.

  (** Theorem 9, many targets: x changes within limits leave the label as it is. *)
  Theorem own_touches_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (a : nat) (x : Z)
           (S' : list key) (r : key -> vote) (new rem alt turn : list key),
      NoDup (cast_by V) -> NoDup S' ->
      own_touches_ok V C P doubt y0 n a x ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_changes V S' r new rem alt turn ->
      few (new ++ turn) (t_new n) -> few (rem ++ alt) (t_touched n) -> few alt (t_altered n) -> few turn (t_turned n) ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
      own_voted C P' y0 S' r = a.
  Proof.
    intros V C P P' doubt y0 n a x S' r new rem alt turn NS NS' [Ha H] HP M f1 f2 f3 f4 L.
    apply label_is_best; split; auto; intros k Hk N.
    specialize (H k Hk N); specialize (HP k Hk N).
    pose proof (own_loss V S' r new rem alt turn NS NS' M y0 a k N P P' doubt HP) as Q.
    destruct H as [H|H].
    { pose proof (own_gain_bound V n new rem alt turn S' r NS M y0 a k N f1 f2 f3 f4) as G.
      unfold at_least, within in *; destruct (gain V y0 n a k); [lia|contradiction]. }
    unfold twos, lost_by_a, won_by_k, worth in *. rewrite !app_length in L.
    set (Xa := fun u => own_stable V u && beq (own_cast V u) (Some a)) in *.
    set (Xk := fun u => own_stable V u && negb (beq (own_cast V u) (Some k))) in *.
    change (o_for V a) with (amount Xa (cast_by V)) in *.
    assert (W : amount (fun u => Xa u && one_way V u) (cast_by V) = o_way V a).
    { apply amount_ext; intro u; unfold Xa; destruct (own_stable V u), (one_way V u), (beq (own_cast V u) (Some a)); auto. }
    pose proof (hit_turn V S' r new rem alt turn M Xa) as Ht.
    pose proof (hit_list V NS Xa alt); pose proof (hit_list V NS Xa turn); pose proof (hit_list V NS Xa rem).
    pose proof (hit_list V NS Xk alt); pose proof (hit_list V NS Xk turn); pose proof (hit_list V NS Xk rem).
    unfold few, within in f1, f2, f3, f4; rewrite app_length in f1, f2.
    pose proof (hit_all V rem alt turn Xa false) as A1; pose proof (hit_sum V rem alt turn Xa false) as S1.
    pose proof (hit_all V rem alt turn Xa true) as A2; pose proof (hit_sum V rem alt turn Xa true) as S2.
    pose proof (hit_sum V rem alt turn Xk false) as S3; pose proof (hit_sum V rem alt turn Xk true) as S4.
    cbv beta iota in S1, S2, S3, S4.
    assert (D : amount (fun u => Xa u && (mem u alt || mem u turn || true && mem u rem)) (cast_by V)
        <= amount (fun u => Xa u && (mem u alt || mem u turn || false && mem u rem)) (cast_by V) + amount (fun u => Xa u && mem u rem) (cast_by V)).
    { apply amount_or; intro u; destruct (Xa u), (mem u alt), (mem u turn), (mem u rem); auto. }
    subst Xa Xk; cbv beta iota in *.
    destruct (beq y0 (Some a)) eqn:Ea, (beq y0 (Some k)) eqn:Ek; cbn [negb] in Q.
    - rewrite beq_true in Ea, Ek; congruence.
    - destruct (t_new n), (t_altered n), (t_turned n); cbn [ladd cap] in H; lia.
    - destruct (t_touched n), (t_turned n); cbn [ladd cap] in H; lia.
    - destruct (t_altered n), (t_turned n); cbn [ladd cap] in H; lia.
  Qed.

  (** Theorem 9, the vote: whatever an attack within the touches and a machine within the tolerance make of it. *)
  Theorem own_vote_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (n : touches)
           (S' : list key) (r : key -> vote),
      NoDup (cast_by V) -> NoDup S' ->
      own_withstands V C P doubt y0 a n ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_moves V n S' r ->
      own_voted C P' y0 S' r = a.
  Proof.
    intros V C P P' doubt y0 a n S' r NS NS' [Ha H] HP [new rem alt turn M f1 f2 f3 f4].
    apply label_is_best; split; auto; intros k Hk N.
    specialize (H k Hk N); specialize (HP k Hk N).
    pose proof (own_loss V S' r new rem alt turn NS NS' M y0 a k N P P' doubt HP) as Q.
    pose proof (own_gain_bound V n new rem alt turn S' r NS M y0 a k N f1 f2 f3 f4) as G.
    unfold at_least, within in *; destruct (gain V y0 n a k); [lia|contradiction].
  Qed.
End PerNeighbourVote.
