(** Possible classes where every neighbour, or pair, has a group of its own, and of stacked votes (docs/proofs.md, Theorem 12 (b) and (c)): a class that wins passes the
    test. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair OwnGroupsOfGraphs Possible.
Import ListNotations.
Open Scope Z_scope.

Section OwnPossible.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Notation mem := (mem key key_eq).
  Notation amount := (amount key).
  Variables (V : own_votes key) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (k : nat).
  Notation S := (cast_by key V).

  (** s(j), with all votes of empty groups counted from 0 *)
  Definition own_standing (j : nat) : Z := P j + o_for key V j - (if beq y0 (Some j) then Z.of_nat (length S) else 0).
  (** m: the most votes that k can win; N = |S| - c(k) is [o_not]. *)
  Definition own_won : lim :=
    if beq y0 (Some k) then Some (cap (ladd (t_touched n) (Some (cap (t_turned n) (o_way_not key V k)))) (o_not key V k))
    else ladd (t_new n) (Some (cap (t_altered n) (o_not key V k))).
  (** How far j is ahead of k, unstable votes and doubt counted for k. *)
  Definition own_ahead (j : nat) : Z := own_standing j + tie j k - own_standing k - o_unstable key V - doubt.
  (** need(j), 0 where m is infinite *)
  Definition own_need (j : nat) : Z :=
    if Nat.eqb j k then 0 else match own_won with Some m => Z.max 0 (own_ahead j - m) | None => 0 end.
  (** D, and what can be turned of it: sums over j <> y0 *)
  Definition own_lose : Z := over_classes (fun j => if beq y0 (Some j) then 0 else own_need j) C.
  (** What can be turned of D. *)
  Definition own_turn : Z := over_classes (fun j => if beq y0 (Some j) then 0 else Z.min (o_way key V j) (own_need j)) C.
  (** Theorem 12 (b): the conditions under which k is possible. *)
  Record own_possible : Prop := {
    own_can_lose : forall j, (j < C)%nat -> y0 <> Some j -> own_need j <= o_for key V j;
    own_lose_all : within (own_lose - cap (t_turned n) own_turn) (t_touched n);
    own_empty_class : forall y new, (y < C)%nat -> y0 = Some y -> y <> k -> t_new n = Some new ->
      let z := own_ahead y - (new + cap (t_altered n) (o_not key V k)) - new in
      z <= o_for key V y /\ z + own_lose <= cap (t_altered n) (o_not key V k)
  }.

  (** ---- Proofs ---- *)

  Variables (S' : list key) (r : key -> vote) (P' : nat -> Z).
  Hypothesis once : NoDup S.
  Hypothesis once' : NoDup S'.
  Hypothesis prior_ok : forall j, (j < C)%nat -> j <> k -> P j - P k - doubt <= P' j - P' k.
  Hypothesis wins : own_voted key C P' y0 S' r = k.

  Section Lists.
    Variables (new rem alt turn : list key).
    Hypothesis M : own_changes key V S' r new rem alt turn.
    Hypothesis gone : forall u, In u rem -> In u new \/ ~ In u S'.   (* what does not go is not listed *)
    Hypothesis few_new : few (new ++ turn) (t_new n).
    Hypothesis few_touched : few (rem ++ alt) (t_touched n).
    Hypothesis few_altered : few alt (t_altered n).
    Hypothesis few_turned : few turn (t_turned n).

    Notation st u := (own_stable key V u).
    Notation is j u := (beq (own_cast key V u) (Some j)).
    Let A_ u := mem u alt.
    Let T_ u := negb (mem u alt) && mem u turn.
    Let R_ u := negb (mem u alt) && negb (mem u turn) && mem u rem.
    (* of one class, and of all classes but k *)
    Let al j := amount (fun u => st u && A_ u && is j u) S.
    Let tu j := amount (fun u => st u && T_ u && is j u) S.
    Let re j := amount (fun u => st u && R_ u && is j u) S.
    Let aln := amount (fun u => st u && negb (is k u) && A_ u) S.
    Let tun := amount (fun u => st u && negb (is k u) && T_ u) S.
    Let ren := amount (fun u => st u && negb (is k u) && R_ u) S.

    Lemma amount_pos p l : 0 <= amount p l.
    Proof. unfold PerNeighbourVote.amount, bit; induction l as [|u l IH]; simpl; [lia|]. destruct (p u); lia. Qed.
    Lemma amount_in p (l m : list key) : NoDup l -> (forall u, In u l -> p u = true -> In u m) -> amount p l <= Z.of_nat (length m).
    Proof.
      intros ND H. assert (E : amount p l = Z.of_nat (length (filter p l))).
      { unfold PerNeighbourVote.amount, bit. clear. induction l as [|u l IH]; [reflexivity|]. cbn [sum filter]. destruct (p u); cbn [length]; lia. }
      rewrite E. apply Nat2Z.inj_le, NoDup_incl_length; [apply NoDup_filter; auto|]. intros u I; apply filter_In in I; destruct I; auto.
    Qed.
    Lemma amount_mono p q l : (forall u, p u = true -> q u = true) -> amount p l <= amount q l.
    Proof.
      intro H; unfold PerNeighbourVote.amount, bit; induction l as [|u l IH]; simpl; [lia|]. pose proof (H u) as H0. destruct (p u), (q u); try lia; discriminate (H0 eq_refl).
    Qed.
    (** Different classes have different votes. *)
    Lemma over_amount (q : nat -> bool) (p : key -> bool) l :
      over_classes (fun j => if q j then amount (fun u => p u && is j u) l else 0) C <= amount (fun u => p u && match own_cast key V u with Some j => q j | None => false end) l.
    Proof.
      induction l as [|u l IH].
      - simpl. assert (Q : forall c, over_classes (fun j => if q j then 0 else 0) c <= 0) by (clear; induction c as [|c IH]; simpl; [lia|destruct (q c); lia]). apply Q.
      - assert (E : forall c, over_classes (fun j => if q j then amount (fun u => p u && is j u) (u :: l) else 0) c
                  = over_classes (fun j => if q j then bit (p u && is j u) else 0) c + over_classes (fun j => if q j then amount (fun u => p u && is j u) l else 0) c).
        { clear; induction c as [|c IH]; simpl; [lia|]. rewrite IH. unfold PerNeighbourVote.amount; simpl. destruct (q c); lia. }
        rewrite E. assert (O : over_classes (fun j => if q j then bit (p u && is j u) else 0) C <= bit (p u && match own_cast key V u with Some j => q j | None => false end)).
        { clear. destruct (own_cast key V u) as [i|]; unfold bit.
          - assert (Q : forall c, over_classes (fun j => if q j then (if p u && beq (Some i) (Some j) then 1 else 0) else 0) c <= (if p u && q i && Nat.ltb i c then 1 else 0)).
            { induction c as [|c IH]; cbn [over_classes]; [destruct (p u && q i); simpl; lia|]. cbn [beq] in *. destruct (Nat.eq_dec i c) as [E|NE].
              - rewrite <- E in *. rewrite Nat.eqb_refl. rewrite Nat.ltb_irrefl in IH. rewrite (proj2 (Nat.ltb_lt i (Datatypes.S i)) (Nat.lt_succ_diag_r i)). destruct (p u), (q i); cbn [andb] in *; lia.
              - rewrite (proj2 (Nat.eqb_neq i c) NE), andb_false_r. replace (Nat.ltb i (Datatypes.S c)) with (Nat.ltb i c); [destruct (q c); lia|].
                destruct (Nat.ltb_spec i c), (Nat.ltb_spec i (Datatypes.S c)); auto; lia. }
            specialize (Q C). etransitivity; [exact Q|]. destruct (p u && q i), (Nat.ltb i C); cbn [andb]; lia.
          - assert (Q : forall c, over_classes (fun j => if q j then (if p u && beq None (Some j) then 1 else 0) else 0) c <= 0).
            { induction c as [|c IH]; cbn [over_classes]; [lia|]. assert (X : (if q c then if p u && beq None (Some c) then 1 else 0 else 0) = 0) by (cbn [beq]; rewrite andb_false_r; destruct (q c); auto). lia. }
            specialize (Q C). etransitivity; [exact Q|]. rewrite andb_false_r. lia. }
        unfold PerNeighbourVote.amount in *; simpl. lia.
    Qed.

    Lemma is_winner j : (j < C)%nat -> j <> k -> own_score key P' y0 S' r j + tie j k <= own_score key P' y0 S' r k.
    Proof. intros Hj N. assert (L : is_label (own_score key P' y0 S' r) C k) by (rewrite <- wins; apply best_is_label; lia). destruct L as [_ L]. apply L; auto. Qed.

    Lemma parts_of j : j <> k -> al j + tu j + re j <= o_for key V j.
    Proof.
      intros _. unfold al, tu, re, o_for, A_, T_, R_, PerNeighbourVote.amount, bit. clear. induction S as [|u l IH]; cbn [sum]; [lia|].
      destruct (own_stable key V u), (is j u), (mem u alt), (mem u turn), (mem u rem); cbn [andb orb negb] in *; lia.
    Qed.
    Lemma parts_not : aln + tun + ren <= o_not key V k.
    Proof.
      unfold aln, tun, ren, o_not, A_, T_, R_, PerNeighbourVote.amount, bit. clear. induction S as [|u l IH]; cbn [sum]; [lia|].
      destruct (own_stable key V u), (is k u), (mem u alt), (mem u turn), (mem u rem); cbn [andb orb negb] in *; lia.
    Qed.

    (** What class j lost, k won and new votes brought is no less than j was ahead. *)
    Lemma falls_behind j : (j < C)%nat -> j <> k -> y0 <> Some j ->
      own_ahead j <= al j + tu j + re j + (aln + tun + (if beq y0 (Some k) then ren else 0)) + (if beq y0 (Some k) then 0 else Z.of_nat (length new)).
    Proof.
      intros Hj N NY. pose proof (own_loss key key_eq V S' r new rem alt turn once once' M y0 j k (not_eq_sym N) P P' doubt (prior_ok j Hj N)) as L. pose proof (is_winner j Hj N) as W.
      assert (BJ : beq y0 (Some j) = false) by (apply beq_false; auto). unfold o_margin, worth in L. rewrite BJ in L. unfold own_ahead, own_standing. rewrite BJ.
      assert (E1 : lost_by_a key key_eq V rem alt turn y0 j <= al j + tu j + re j).
      { unfold lost_by_a. rewrite BJ. unfold al, tu, re, A_, T_, R_, PerNeighbourVote.amount, bit. clear. induction S as [|u l IH]; cbn [sum]; [lia|].
        destruct (own_stable key V u), (is j u), (mem u alt), (mem u turn), (mem u rem); cbn [andb orb negb] in *; lia. }
      assert (E2 : won_by_k key key_eq V rem alt turn y0 k <= aln + tun + (if beq y0 (Some k) then ren else 0)).
      { unfold won_by_k. unfold aln, tun, ren, A_, T_, R_, PerNeighbourVote.amount, bit. clear. destruct (beq y0 (Some k)); (induction S as [|u l IH]; cbn [sum]; [lia|];
        destruct (own_stable key V u), (is k u), (mem u alt), (mem u turn), (mem u rem); cbn [andb orb negb] in *; lia). }
      destruct (beq y0 (Some k)); lia.
    Qed.

    Lemma few_parts : Z.of_nat (length new) + tun <= Z.of_nat (length (new ++ turn)) /\ within aln (t_altered n) /\ within (aln + ren) (t_touched n) /\ within tun (t_turned n)
      /\ tun <= o_way_not key V k.
    Proof.
      assert (T1 : tun <= Z.of_nat (length turn)).
      { apply amount_in; auto. intros u _ H. unfold T_ in H. apply (mem_true key key_eq). destruct (mem u turn); auto. rewrite !andb_false_r in H; discriminate. }
      assert (A1 : aln <= Z.of_nat (length alt)).
      { apply amount_in; auto. intros u _ H. unfold A_ in H. apply (mem_true key key_eq). destruct (mem u alt); auto. rewrite !andb_false_r in H; discriminate. }
      assert (R1 : aln + ren <= Z.of_nat (length (rem ++ alt))).
      { assert (E : aln + ren <= amount (fun u => st u && negb (is k u) && (A_ u || R_ u)) S).
        { unfold aln, ren, A_, R_, PerNeighbourVote.amount, bit. clear. induction S as [|u l IH]; cbn [sum]; [lia|]. destruct (own_stable key V u), (is k u), (mem u alt), (mem u turn), (mem u rem); cbn [andb orb negb] in *; lia. }
        etransitivity; [exact E|]. apply amount_in; auto. intros u _ H. apply in_app_iff. apply andb_prop in H; destruct H as [_ H]. apply orb_true_iff in H; destruct H as [H|H].
        - right; apply (mem_true key key_eq); auto.
        - left; apply (mem_true key key_eq). unfold R_ in H. apply andb_prop in H; apply H. }
      rewrite app_length. repeat split.
      - lia.
      - revert few_altered; unfold few, within; destruct (t_altered n); auto; lia.
      - revert few_touched; unfold few, within; destruct (t_touched n); auto; lia.
      - revert few_turned; unfold few, within; destruct (t_turned n); auto; lia.
      - unfold tun, o_way_not. apply amount_mono. intros u H. apply andb_prop in H; destruct H as [H1 H2]. unfold T_ in H2. apply andb_prop in H2; destruct H2 as [_ H2].
        apply (mem_true key key_eq) in H2. apply (turn_ok _ _ _ _ _ _ _ _ M) in H2. rewrite H2. apply andb_prop in H1; destruct H1 as [-> ->]; auto.
    Qed.

    Lemma need_lost j : (j < C)%nat -> y0 <> Some j -> own_need j <= al j + tu j + re j.
    Proof.
      intros Hj NY. assert (POS : 0 <= al j + tu j + re j) by (unfold al, tu, re; pose proof (amount_pos (fun u => st u && A_ u && is j u) S); pose proof (amount_pos (fun u => st u && T_ u && is j u) S); pose proof (amount_pos (fun u => st u && R_ u && is j u) S); lia).
      unfold own_need. destruct (Nat.eqb_spec j k) as [|N]; auto. destruct own_won as [m|] eqn:EM; [|auto].
      pose proof (falls_behind j Hj N NY) as F. destruct few_parts as (F1 & F2 & F3 & F4 & F5). pose proof parts_not as PN. unfold own_won in EM.
      assert (0 <= aln) by apply amount_pos. assert (0 <= tun) by apply amount_pos. assert (0 <= ren) by apply amount_pos.
      destruct (beq y0 (Some k)).
      - injection EM as <-. assert (aln + tun + ren <= cap (ladd (t_touched n) (Some (cap (t_turned n) (o_way_not key V k)))) (o_not key V k)); [|lia].
        unfold cap, within, ladd in *. destruct (t_touched n), (t_turned n); lia.
      - destruct (t_new n) as [nn|] eqn:EN; [|discriminate]. cbn [ladd] in EM. injection EM as <-. unfold few, within in few_new.
        assert (aln <= cap (t_altered n) (o_not key V k)) by (unfold cap, within in *; destruct (t_altered n); lia). lia.
    Qed.

    Lemma lose_sum : own_lose <= over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then al j else 0) C
        + over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then re j else 0) C
        + over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then Z.min (tu j) (own_need j) else 0) C.
    Proof.
      unfold own_lose. assert (Q : forall c, (c <= C)%nat -> over_classes (fun j => if beq y0 (Some j) then 0 else own_need j) c
        <= over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then al j else 0) c + over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then re j else 0) c
          + over_classes (fun j => if negb (beq y0 (Some j)) && negb (Nat.eqb j k) then Z.min (tu j) (own_need j) else 0) c); [|apply Q; lia].
      induction c as [|c IH]; intro Hc; cbn [over_classes]; [lia|]. specialize (IH ltac:(lia)).
      destruct (beq y0 (Some c)) eqn:EB; cbn [negb andb]; [lia|]. apply beq_false in EB. pose proof (need_lost c ltac:(lia) EB) as NL.
      assert (A0 : 0 <= al c) by apply amount_pos. assert (R0 : 0 <= re c) by apply amount_pos. assert (T0 : 0 <= tu c) by apply amount_pos.
      assert (N0 : 0 <= own_need c) by (unfold own_need; destruct (Nat.eqb c k), own_won; lia).
      destruct (Nat.eqb_spec c k) as [E|E]; cbn [negb]; [unfold own_need at 2; rewrite (proj2 (Nat.eqb_eq c k) E); lia|lia].
    Qed.

    Let others_of u := match own_cast key V u with Some j => negb (beq y0 (Some j)) && negb (Nat.eqb j k) | None => false end.

    (** Where empty groups cast a class y other than k: what goes is one more for it. *)
    Lemma empty_falls y : (y < C)%nat -> y0 = Some y -> y <> k ->
      own_ahead y <= (al y + tu y) + (aln + tun) + 2 * Z.of_nat (length new) - amount (fun u => st u && R_ u && others_of u) S.
    Proof.
      intros Hy EY N. pose proof (is_winner y Hy N) as W. pose proof (prior_ok y Hy N) as PO.
      assert (B1 : beq y0 (Some y) = true) by (apply beq_true; auto). assert (B2 : beq y0 (Some k) = false) by (apply beq_false; congruence).
      unfold own_score in W. rewrite B1, B2 in W. unfold own_ahead, own_standing. rewrite B1, B2.
      set (g := fun u => bit (beq (r u) (Some y)) - bit (beq (r u) (Some k)) - 1).
      set (base := fun u => if mem u alt || mem u turn || negb (st u) then -2 else if mem u rem then 0 else bit (is y u) - bit (is k u) - 1).
      assert (GS : forall l, amount (fun u => beq (r u) (Some y)) l - amount (fun u => beq (r u) (Some k)) l - Z.of_nat (length l) = sum key g l).
      { clear; intro l; unfold PerNeighbourVote.amount, g. induction l as [|u l IH]; [reflexivity|]. cbn [sum length]. lia. }
      assert (G2 : forall u, -2 <= g u) by (intro u; unfold g, bit; destruct (beq (r u) (Some y)), (beq (r u) (Some k)); lia).
      assert (BN : forall u, base u <= 0) by (intro u; unfold base, bit; destruct (mem u alt || mem u turn || negb (st u)), (mem u rem), (is y u), (is k u); lia).
      set (old := fun u => mem u S && negb (mem u new)).
      assert (SP : sum key g S' = sum key g (filter old S') + sum key g (filter (fun u => negb (old u)) S')).
      { clear; induction S' as [|u l IH]; [reflexivity|]. cbn [sum filter]. destruct (old u); cbn [negb sum]; lia. }
      assert (LOW : forall l, -2 * Z.of_nat (length l) <= sum key g l) by (induction l as [|u l IH]; [simpl; lia|]; cbn [sum length]; pose proof (G2 u); lia).
      assert (NEWS : (length (filter (fun u => negb (old u)) S') <= length new)%nat).
      { apply NoDup_incl_length; [apply NoDup_filter; auto|]. intros u I; apply filter_In in I; destruct I as [I H]. unfold old in H. apply negb_true_iff, andb_false_iff in H. destruct H as [H|H].
        - destruct (new_ok _ _ _ _ _ _ _ _ M u I) as [J|J]; auto. apply (mem_true key key_eq) in J. congruence.
        - apply negb_false_iff, (mem_true key key_eq) in H; auto. }
      assert (KEEP : sum key base (filter old S') <= sum key g (filter old S')).
      { assert (Q : forall l, incl l (filter old S') -> sum key base l <= sum key g l); [|apply Q, incl_refl].
        induction l as [|u l IH]; intro HI; [simpl; lia|]. cbn [sum]. specialize (IH (fun x K => HI x (or_intror K))). assert (B : base u <= g u); [|lia].
        pose proof (HI u (or_introl eq_refl)) as I. apply filter_In in I; destruct I as [I H]. unfold old in H. apply andb_prop in H; destruct H as [H1 H2]. apply (mem_true key key_eq) in H1. apply negb_true_iff in H2.
        assert (NN : ~ In u new) by (intro K; apply (mem_true key key_eq) in K; congruence).
        pose proof (G2 u) as GU. unfold base. destruct (mem u alt) eqn:EA; [simpl; auto|]. destruct (mem u turn) eqn:ET; [simpl; auto|]. destruct (own_stable key V u) eqn:ES; [|simpl; auto]. cbn [orb negb].
        destruct (mem u rem) eqn:ER.
        - exfalso. apply (mem_true key key_eq) in ER. destruct (gone u ER); contradiction.
        - destruct (old_ok _ _ _ _ _ _ _ _ M u H1) as [K|[K|[[K _]|[_ K]]]]; try (apply (mem_true key key_eq) in K; congruence). rewrite <- (K ES). unfold g; lia. }
      assert (SUB : sum key base S <= sum key base (filter old S')).
      { set (in' := fun u => mem u (filter old S')). assert (E : sum key base S = sum key base (filter in' S) + sum key base (filter (fun u => negb (in' u)) S)).
        { assert (GEN : forall (p : key -> bool) l, sum key base l = sum key base (filter p l) + sum key base (filter (fun u => negb (p u)) l)); [|apply GEN].
          clear; intros p l; induction l as [|u l IH]; [reflexivity|]. cbn [sum filter]. destruct (p u); cbn [negb sum]; lia. }
        assert (E2 : sum key base (filter in' S) = sum key base (filter old S')).
        { apply sum_perm. apply NoDup_Permutation; try (apply NoDup_filter; auto). intro u; rewrite !filter_In. unfold in'. rewrite (mem_true key key_eq), filter_In. unfold old; rewrite andb_true_iff, (mem_true key key_eq). tauto. }
        assert (E3 : forall l, sum key base l <= 0) by (induction l as [|u l IH]; cbn [sum]; [lia|]; pose proof (BN u); lia). pose proof (E3 (filter (fun u => negb (in' u)) S)). lia. }
      assert (BASE : o_for key V y - o_for key V k - Z.of_nat (length S) - o_unstable key V - (al y + tu y) - (aln + tun) + amount (fun u => st u && R_ u && others_of u) S <= sum key base S).
      { assert (NB : forall u, is y u = true -> is k u = true -> False) by (intros u X1 X2; apply beq_true in X1, X2; congruence).
        assert (OT : forall u, others_of u = true -> is y u = false /\ is k u = false).
        { intros u H. unfold others_of in H. destruct (own_cast key V u) as [j|]; [|discriminate]. apply andb_prop in H; destruct H as [X1 X2]. apply negb_true_iff in X1, X2. rewrite EY in X1. cbn [beq] in *. split; [rewrite Nat.eqb_sym; auto|auto]. }
        unfold o_for, o_unstable, al, tu, aln, tun, A_, T_, R_, PerNeighbourVote.amount. clear - NB OT. induction S as [|u l IH]; [simpl; lia|]. cbn [sum length]. unfold base at 1.
        pose proof (NB u) as N1. pose proof (OT u) as O1. unfold bit in *.
        destruct (own_stable key V u), (is y u), (is k u), (mem u alt), (mem u turn), (mem u rem), (others_of u); cbn [andb orb negb] in *; try (exfalso; auto; fail); try (destruct (O1 eq_refl); discriminate); lia. }
      pose proof (GS S') as GS'. pose proof (LOW (filter (fun u => negb (old u)) S')) as LO. lia.
    Qed.

    Lemma own_winner : own_possible.
    Proof.
      assert (PN := parts_not). destruct few_parts as (F1 & F2 & F3 & F4 & F5).
      set (q := fun j => negb (beq y0 (Some j)) && negb (Nat.eqb j k)).
      assert (OA : over_classes (fun j => if q j then al j else 0) C <= amount (fun u => st u && A_ u && others_of u) S) by exact (over_amount q (fun u => st u && A_ u) S).
      assert (OR : over_classes (fun j => if q j then re j else 0) C <= amount (fun u => st u && R_ u && others_of u) S) by exact (over_amount q (fun u => st u && R_ u) S).
      assert (OT : over_classes (fun j => if q j then tu j else 0) C <= amount (fun u => st u && T_ u && others_of u) S) by exact (over_amount q (fun u => st u && T_ u) S).
      assert (LS : own_lose <= over_classes (fun j => if q j then al j else 0) C + over_classes (fun j => if q j then re j else 0) C
                + over_classes (fun j => if q j then Z.min (tu j) (own_need j) else 0) C) by exact lose_sum.
      assert (NK : forall u, others_of u = true -> negb (is k u) = true).
      { intros u HH. unfold others_of in HH. destruct (own_cast key V u) as [j|]; [|discriminate]. apply andb_prop in HH; apply HH. }
      assert (TM : over_classes (fun j => if q j then Z.min (tu j) (own_need j) else 0) C <= over_classes (fun j => if q j then tu j else 0) C) by (apply over_le; intros j _; destruct (q j); lia).
      assert (N0 : forall j, 0 <= own_need j) by (intro j; unfold own_need; destruct (Nat.eqb j k), own_won; lia).
      split.
      - intros j Hj NY. pose proof (need_lost j Hj NY). destruct (Nat.eq_dec j k) as [->|N]; [unfold own_need; rewrite Nat.eqb_refl; unfold o_for; apply amount_pos|]. pose proof (parts_of j N). lia.
      - assert (TT : over_classes (fun j => if q j then Z.min (tu j) (own_need j) else 0) C <= cap (t_turned n) own_turn).
        { assert (X1 : over_classes (fun j => if q j then Z.min (tu j) (own_need j) else 0) C <= own_turn).
          { apply over_le; intros j _. unfold q. destruct (beq y0 (Some j)); cbn [negb andb]; [lia|].
            assert (W0 : 0 <= o_way key V j) by apply amount_pos. pose proof (N0 j). destruct (Nat.eqb_spec j k); cbn [negb]; [lia|].
            assert (tu j <= o_way key V j); [|lia]. unfold tu, o_way. apply amount_mono. intros u HH. apply andb_prop in HH; destruct HH as [HH H3]. apply andb_prop in HH; destruct HH as [H1 H2].
            unfold T_ in H2. apply andb_prop in H2; destruct H2 as [_ H2]. apply (mem_true key key_eq) in H2. apply (turn_ok _ _ _ _ _ _ _ _ M) in H2. rewrite H1, H2, H3; auto. }
          assert (X2 : over_classes (fun j => if q j then Z.min (tu j) (own_need j) else 0) C <= tun).
          { etransitivity; [exact TM|]. etransitivity; [exact OT|]. apply amount_mono. intros u HH. apply andb_prop in HH; destruct HH as [HH H3]. apply NK in H3. apply andb_prop in HH; destruct HH as [-> ->]. rewrite H3; auto. }
          unfold cap, within in *. destruct (t_turned n); lia. }
        assert (RA : over_classes (fun j => if q j then al j else 0) C + over_classes (fun j => if q j then re j else 0) C <= aln + ren).
        { assert (over_classes (fun j => if q j then al j else 0) C <= aln) by (etransitivity; [exact OA|]; apply amount_mono; intros u HH; apply andb_prop in HH; destruct HH as [HH H3]; apply NK in H3; apply andb_prop in HH; destruct HH as [-> ->]; rewrite H3; auto).
          assert (over_classes (fun j => if q j then re j else 0) C <= ren) by (etransitivity; [exact OR|]; apply amount_mono; intros u Q; apply andb_prop in Q; destruct Q as [Q Q3]; apply NK in Q3; apply andb_prop in Q; destruct Q as [-> ->]; rewrite Q3; auto). lia. }
        unfold within in *. destruct (t_touched n); auto. lia.
      - intros y nn Hy EY N EN z. pose proof (empty_falls y Hy EY N) as EF. unfold few, within in few_new. rewrite EN in few_new. rewrite app_length in *.
        assert (TL : tun <= Z.of_nat (length turn)) by lia.
        assert (CA : aln <= cap (t_altered n) (o_not key V k)).
        { assert (0 <= tun) by apply amount_pos. assert (0 <= ren) by apply amount_pos. unfold cap, within in *. destruct (t_altered n); lia. }
        assert (B1 : beq y0 (Some y) = true) by (apply beq_true; auto).
        assert (SPLIT : forall p, amount (fun u => st u && p u && is y u) S + amount (fun u => st u && p u && others_of u) S <= amount (fun u => st u && negb (is k u) && p u) S).
        { intro p. assert (OT' : forall u, others_of u = true -> is y u = false).
          { intros u HH. unfold others_of in HH. destruct (own_cast key V u) as [j|]; [|discriminate]. apply andb_prop in HH; destruct HH as [X1 _]. apply negb_true_iff in X1. rewrite EY in X1. cbn [beq] in *. rewrite Nat.eqb_sym; auto. }
          assert (YK : forall u, is y u = true -> is k u = false) by (intros u X; apply beq_true in X; apply beq_false; congruence).
          unfold PerNeighbourVote.amount, bit. clear - OT' YK NK. induction S as [|u l IH]; [simpl; lia|]. cbn [sum]. pose proof (OT' u) as X1. pose proof (YK u) as X2. pose proof (NK u) as X3.
          destruct (own_stable key V u), (p u), (is y u), (is k u), (others_of u); cbn [andb negb] in *; try (discriminate (X1 eq_refl)); try (discriminate (X2 eq_refl)); try (discriminate (X3 eq_refl)); lia. }
        pose proof (SPLIT A_) as SA. pose proof (SPLIT T_) as ST. fold (al y) aln in SA. fold (tu y) tun in ST.
        assert (R0 : 0 <= amount (fun u => st u && R_ u && others_of u) S) by apply amount_pos.
        assert (O0 : 0 <= amount (fun u => st u && A_ u && others_of u) S) by apply amount_pos. assert (O1 : 0 <= amount (fun u => st u && T_ u && others_of u) S) by apply amount_pos.
        assert (AY : al y <= o_for key V y).
        { unfold al, o_for. apply amount_mono. intros u HH. apply andb_prop in HH; destruct HH as [HH ->]. apply andb_prop in HH; destruct HH as [-> _]; auto. }
        unfold z. split; lia.
    Qed.
  End Lists.

  (** Theorem 12 (b): whatever class wins is a possible one. *)
  Theorem own_winner_is_possible : own_moves key V n S' r -> own_possible.
  Proof.
    intros [new rem alt turn M F1 F2 F3 F4]. set (rem' := filter (fun u => mem u new || negb (mem u S')) rem).
    apply (own_winner new rem' alt turn); auto.
    - destruct M as [h1 h2 h3]. split; auto. intros u I. destruct (h1 u I) as [K|[K|[[K1 K2]|K]]]; auto. right; right; left. split; auto. unfold rem'. apply filter_In; split; auto.
      destruct K2 as [K2|K2]; [apply (mem_true key key_eq) in K2; rewrite K2; auto|]. destruct (mem u S') eqn:E; [apply (mem_true key key_eq) in E; contradiction|rewrite orb_true_r; auto].
    - intros u I. unfold rem' in I; apply filter_In in I; destruct I as [_ H]. apply orb_true_iff in H; destruct H as [H|H]; [left; apply (mem_true key key_eq); auto|right].
      intro K. apply (mem_true key key_eq) in K. rewrite K in H; discriminate.
    - assert (LE : (length (rem' ++ alt) <= length (rem ++ alt))%nat) by (rewrite !app_length; unfold rem'; clear; induction rem as [|u l IH]; simpl; [lia|]; destruct (mem u new || negb (mem u S')); simpl; lia).
      revert F2; unfold few, within; destruct (t_touched n); auto; lia.
  Qed.
End OwnPossible.

From Agnncert Require Import StackedVote StackedChecker TwoLevels TwoLevelsGraph.

(** Theorem 12 (c): where class j stays ahead of k, whatever an attack within the numbers does, k does not win. j need not be the label. *)
Theorem stacked_excluded :
  forall (key : Type) (key_eq : forall x y : key, {x = y} + {x <> y}) (V : stacked_votes key) (C : nat) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (j k : nat)
         (new rem alt turn : list key) (D : list Z),
    sensible key V -> stacked_reading key V p g -> stacked_changes key V N' b j new rem alt turn -> (j < C)%nat -> k <> j -> (by_edge _ V = true -> g_of _ V j = g_of _ V k) ->
    Permutation D (deltas key V j k) -> falling D ->
    (forall l m i t, 0 <= l -> 0 <= m -> 0 <= t -> 0 <= i -> l + m <= degree key V -> l <= Z.of_nat (length rem) -> m <= Z.of_nat (length alt) ->
       i + t <= Z.of_nat (length (new ++ turn)) -> (by_edge _ V = false -> t = 0) -> tie k j <= lead_at key V j k l m i (i + t) (top (Z.to_nat (l + m)) D)) ->
    stacked_label key V C p g N' b <> k.
Proof.
  intros key key_eq V C N' b p g j k new rem alt turn D ok read ch Hj N gates PD FD H E.
  destruct (stacked_lead_sound key key_eq V N' b p g j k new rem alt turn ok read ch N gates) as (l & m & i & t & K1 & K2 & K3 & K4 & K5 & K6 & K7 & K8 & K9 & LA).
  specialize (LA D PD FD). specialize (H l m i t K1 K2 K3 K4 K5 K6 K7 K8 K9).
  assert (L : is_label (stacked key V p g N' b) C k) by (rewrite <- E; apply best_is_label; lia). destruct L as [_ L]. specialize (L j Hj (not_eq_sym N)).
  assert (tie j k + tie k j = 1) by (unfold tie; destruct (Nat.ltb_spec j k), (Nat.ltb_spec k j); lia). lia.
Qed.

(** Theorem 12 (c), the same with two levels (Theorem 11): n nodes and e edges, as the attack has them. *)
Theorem two_levels_excluded :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (V : stacked_votes id) (G G' : graph id F W) (A : attack id) (j k : nat) (n e : Z) (N' : list id)
         (b : id -> nat -> Z) (p : nat -> Z),
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) -> 0 <= x_slack s <= 3 -> (j < x_classes s)%nat -> (k < x_classes s)%nat -> k <> j ->
    two_levels_by id F W v A G G' -> two_reading id F W v reads G (neighbours _ V) (vote_of _ V) -> two_reading id F W v reads G' N' b ->
    slack _ V = x_slack s -> (forall c, near (slack _ V) (p_of _ V c) (p c)) -> nodes_moved id A <= n -> nodes_moved id A + edges_moved id A <= n + e ->
    tie k j <= p_of _ V j - p_of _ V k - 2 * x_slack s + sum id (kept id s V j k n) (neighbours _ V) - 2 * x_slack s * Z.of_nat (length (neighbours _ V)) - vote_steps * (n + e) ->
    best (two_score id true p N' b) (x_classes s) <> k.
Proof.
  intros id F W id_eq v reads exact s V G G' A j k n e N' b p Mo Sl Hj Hk N By Sr Rd ES P HN HE T E.
  pose proof (two_levels_lead id F W id_eq v reads exact A G G' By s V N' b j k n Mo Sl Hj Hk N Sr Rd HN) as LD.
  assert (L : is_label (two_score id true p N' b) (x_classes s) k) by (rewrite <- E; apply best_is_label; lia). destruct L as [_ L]. specialize (L j Hj (not_eq_sym N)). unfold two_score in L.
  assert (DIFF : forall l, sum id (fun u => b u j - b u k) l = sum id (fun u => b u j) l - sum id (fun u => b u k) l) by (clear; induction l as [|u l IH]; cbn [sum]; lia).
  rewrite DIFF in LD. destruct (P j) as [Pj _], (P k) as [_ Pk]. rewrite ES in *.
  assert (tie j k + tie k j = 1) by (unfold tie; destruct (Nat.ltb_spec j k), (Nat.ltb_spec k j); lia). unfold vote_steps in *. lia.
Qed.
