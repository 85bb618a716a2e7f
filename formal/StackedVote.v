(** Stacked votes, one level (docs/proofs.md, Theorem 10): a score of the target's own features, and a bounded vote of each neighbour. All numbers
    are whole; [S] steps are one vote. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote.
Import ListNotations.
Open Scope Z_scope.

(** A vote gives no class less than nothing, and any two classes together no more than one vote. *)
Definition is_vote (S : Z) (b : nat -> Z) : Prop := (forall k, 0 <= b k) /\ (forall j k, j <> k -> b j + b k <= S).

(** x is computed again on some machine, as y. *)
Definition near (slack x y : Z) : Prop := x - slack <= y <= x + slack.

(** Sum of the x largest numbers of a list that descends. *)
Fixpoint plus (l : list Z) : Z := match l with [] => 0 | x :: l' => x + plus l' end.
(** The sum of the first x numbers. *)
Definition top (x : nat) (l : list Z) : Z := plus (firstn x l).
(** The list descends. *)
Fixpoint falling (l : list Z) : Prop := match l with [] => True | x :: l' => (forall y, In y l' -> y <= x) /\ falling l' end.

Section Stacked.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.

  (** What a certificate knows of one target. [pseudo] is the pseudo-count kappa of a mean, 0 in a sum; [q_of] its votes.
      [computed]: gates are computed, so that a machine may round them differently; [by_edge]: votes read values of edges. *)
  Record stacked_votes := StackedVotes {
    st_steps : Z; neighbours : list key; vote_of : key -> nat -> Z; p_of : nat -> Z; g_of : nat -> Z;
    pseudo : Z; q_of : nat -> Z; q_all : Z; slack : Z; computed : bool; by_edge : bool
  }.

  (** What Theorem 10 asks of the numbers: none negative, and each neighbour has one vote at most. *)
  Record sensible (V : stacked_votes) : Prop := {
    steps_pos : 0 < st_steps V; slack_pos : 0 <= slack V; pseudo_pos : 0 <= pseudo V;
    g_pos : forall k, 0 <= g_of V k; q_pos : forall k, 0 <= q_of V k; q_sum : forall j k, j <> k -> q_of V j + q_of V k <= q_all V;
    once : NoDup (neighbours V); votes_ok : forall u, In u (neighbours V) -> is_vote (st_steps V) (vote_of V u)
  }.

  (** D: the divisor, with d neighbours. *)
  Definition divisor (V : stacked_votes) (d : Z) : Z := if pseudo V =? 0 then st_steps V else pseudo V + st_steps V * d.
  (** score_k times D, of the votes b of the neighbours N. *)
  Definition stacked (V : stacked_votes) (p g : nat -> Z) (N : list key) (b : key -> nat -> Z) (k : nat) : Z :=
    p k * divisor V (Z.of_nat (length N)) + g k * ((if pseudo V =? 0 then 0 else q_of V k) + sum key (fun u => b u k) N).
  (** The label: the best score, the smaller class on a tie. *)
  Definition stacked_label (V : stacked_votes) (C : nat) (p g : nat -> Z) (N : list key) (b : key -> nat -> Z) : nat :=
    best (stacked V p g N b) C.

  Section Against.
    Variable V : stacked_votes.
    (** d: the number of neighbours in G. *)
    Definition degree : Z := Z.of_nat (length (neighbours V)).
    (** delta_j = g_a b_a(j) - g_k b_k(j) *)
    Definition delta (a k : nat) (u : key) : Z := g_of V a * vote_of V u a - g_of V k * vote_of V u k.
    (** delta_j of all neighbours. *)
    Definition deltas (a k : nat) : list Z := map (delta a k) (neighbours V).
    (** 1 if true, 0 if not. *)
    Definition bit_of (b : bool) : Z := if b then 1 else 0.
    (** cap = g_k S, and what a computed gate may add to it *)
    Definition most_given (k : nat) : Z := g_of V k * st_steps V + bit_of (computed V) * (slack V * st_steps V).
    (** What rounding takes from the vote of a neighbour, and from the pseudo-count. *)
    Definition doubt_each (a k : nat) : Z :=
      (g_of V a + g_of V k) * slack V + bit_of (computed V) * (2 * (st_steps V * slack V + slack V * slack V)).
    (** What rounding takes from the pseudo-count's votes. *)
    Definition doubt_pseudo : Z := bit_of (computed V) * (2 * slack V * q_all V).
    (** p_a - p_k, less what rounding takes *)
    Definition ahead (a k : nat) : Z := p_of V a - p_of V k - 2 * slack V.
    (** The part that no attack changes, and the sum of delta. *)
    Definition given (a k : nat) : Z :=
      (if pseudo V =? 0 then 0 else g_of V a * q_of V a - g_of V k * q_of V k - doubt_pseudo)
      + sum key (delta a k) (neighbours V) - degree * doubt_each a k.
    (** The lead, times D', with l lost and m altered neighbours, [grows] more of them, and [pays] new or turned ones;
        [taken] is the sum of the m + l largest delta. *)
    Definition lead_at (a k : nat) (l m grows pays taken : Z) : Z :=
      ahead a k * divisor V (degree - l + grows) + given a k - taken - (pays + m) * most_given k.
  End Against.

  (** The new neighbours N' and what is read of their votes, after an attack that brings, takes away, alters and turns
      (gives a second direction) neighbours. A neighbour that was taken away may come back as a new one. *)
  Record stacked_changes (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (a : nat) (new rem alt turn : list key) : Prop := {
    s_once : NoDup N';
    s_votes : forall u, In u N' -> is_vote (st_steps V) (b u);
    s_old : forall u, In u (neighbours V) ->
      (In u rem /\ (In u new \/ ~ In u N'))
      \/ (In u N' /\ In u alt)
      \/ (In u N' /\ In u turn /\ by_edge V = true /\ exists c, (forall k, near (slack V) (vote_of V u k) (c k))
            /\ forall k, k <> a -> c a - c k - st_steps V <= b u a - b u k)
      \/ (In u N' /\ forall k, near (slack V) (vote_of V u k) (b u k));
    s_new : forall u, In u N' -> In u (neighbours V) \/ In u new
  }.

  (** Prior and gates as some machine reads them. *)
  Record stacked_reading (V : stacked_votes) (p g : nat -> Z) : Prop := {
    p_near : forall k, near (slack V) (p_of V k) (p k);
    g_near : forall k, 0 <= g k /\ near (bit_of (computed V) * slack V) (g_of V k) (g k)
  }.

  (** ---- Proofs ---- *)

  Lemma plus_app l l' : plus (l ++ l') = plus l + plus l'.
  Proof. induction l; simpl; lia. Qed.
  Lemma plus_perm l l' : Permutation l l' -> plus l = plus l'.
  Proof. induction 1; simpl; lia. Qed.
  Lemma plus_sum (d : key -> Z) l : plus (map d l) = sum key d l.
  Proof. induction l; simpl; lia. Qed.

  (** No part of a list weighs more than as many of the largest. *)
  Lemma part_le_top D : falling D -> forall part rest, Permutation D (part ++ rest) -> plus part <= top (length part) D.
  Proof.
    unfold top; induction D as [|x D IH]; intros F part rest P.
    - apply Permutation_nil in P; apply app_eq_nil in P; destruct P as [-> _]; simpl; lia.
    - destruct F as [Hm F]. assert (I : In x (part ++ rest)) by (apply (Permutation_in x P); left; auto).
      apply in_app_iff in I; destruct I as [I|I]; apply in_split in I; destruct I as [u [w ->]].
      + assert (Q : Permutation D ((u ++ w) ++ rest)).
        { apply (Permutation_cons_inv (a := x)). etransitivity; [exact P|]. rewrite <- !app_assoc; simpl. symmetry; apply Permutation_middle. }
        specialize (IH F _ _ Q). rewrite app_length in *; simpl length. rewrite Nat.add_succ_r; cbn [firstn plus].
        rewrite plus_app in *; cbn [plus]. lia.
      + destruct part as [|y part]; [simpl; lia|]. cbn [length firstn plus].
        assert (Iy : In y (x :: D)) by (apply (Permutation_in y (Permutation_sym P)); left; auto).
        assert (y <= x) by (destruct Iy as [<-|Iy]; [lia|auto]).
        assert (Q : Permutation D (part ++ (u ++ y :: w))).
        { apply (Permutation_cons_inv (a := x)). etransitivity; [exact P|]. simpl. rewrite app_assoc.
          etransitivity; [apply perm_skip, Permutation_app_comm|]. simpl. etransitivity; [apply perm_swap|]. apply perm_skip.
          rewrite (app_assoc part u (y :: w)). rewrite <- (Permutation_middle (part ++ u) w y). apply perm_skip, Permutation_app_comm. }
        specialize (IH F _ _ Q). lia.
  Qed.

  Lemma top_more D x x' low : (forall y, In y D -> - low <= y) -> (x <= x')%nat -> (x' <= length D)%nat ->
    top x D + Z.of_nat x * low <= top x' D + Z.of_nat x' * low.
  Proof.
    unfold top; revert x x'; induction D as [|y D IH]; intros x x' H1 H2 H3; simpl in H3; [replace x with O by lia; replace x' with O by lia; lia|].
    destruct x' as [|x']; [replace x with O by lia; lia|]. destruct x as [|x].
    - specialize (IH O x' ltac:(intros; apply H1; right; auto) ltac:(lia) ltac:(lia)). specialize (H1 y (or_introl eq_refl)). cbn [firstn plus] in *. lia.
    - specialize (IH x x' ltac:(intros; apply H1; right; auto) ltac:(lia) ltac:(lia)). cbn [firstn plus] in *. lia.
  Qed.

  Lemma sum_split (d : key -> Z) (p : key -> bool) l : sum key d l = sum key d (filter p l) + sum key d (filter (fun u => negb (p u)) l).
  Proof. induction l as [|u l IH]; simpl; auto. destruct (p u); simpl; lia. Qed.
  Lemma length_split {X} (p : X -> bool) (l : list X) : (length l = length (filter p l) + length (filter (fun u => negb (p u)) l))%nat.
  Proof. induction l as [|u l IH]; simpl; auto. destruct (p u); simpl; lia. Qed.
  Lemma filter_split {X} (p : X -> bool) (l : list X) : Permutation l (filter p l ++ filter (fun u => negb (p u)) l).
  Proof.
    induction l as [|u l IH]; simpl; auto. destruct (p u); simpl; [apply perm_skip; auto|].
    etransitivity; [apply perm_skip, IH|apply Permutation_middle].
  Qed.
  Lemma sum_at_least (d : key -> Z) c l : (forall u, In u l -> c <= d u) -> c * Z.of_nat (length l) <= sum key d l.
  Proof.
    induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun w I => H w (or_intror I))).
    specialize (H u (or_introl eq_refl)). lia.
  Qed.
  Lemma few_of (l m : list key) : NoDup l -> (forall u, In u l -> In u m) -> Z.of_nat (length l) <= Z.of_nat (length m).
  Proof. intros N I; apply Nat2Z.inj_le, NoDup_incl_length; auto. Qed.

  Section Counting.
    Variables (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (a k : nat) (new rem alt turn : list key).
    Hypothesis ok : sensible V.
    Hypothesis read : stacked_reading V p g.
    Hypothesis ch : stacked_changes V N' b a new rem alt turn.
    Hypothesis apart : k <> a.
    Hypothesis gates_ok : by_edge V = true -> g_of V a = g_of V k.   (* gates of classes may differ only where votes read no edges *)
    Let N := neighbours V.
    Notation ST := (st_steps V).
    Notation sl := (slack V).
    Notation mem := (mem key key_eq).

    (** The classes of neighbours, each in one of them: those gone (perhaps back as new), altered, turned, kept; and the new ones. *)
    Definition is_gone (u : key) : bool := mem u rem && (mem u new || negb (mem u N')).
    (** Altered, and not gone. *)
    Definition is_alt (u : key) : bool := negb (is_gone u) && mem u alt.
    (** Turned, and neither gone nor altered. *)
    Definition is_turn (u : key) : bool := negb (is_gone u) && negb (mem u alt) && (mem u turn && by_edge V).
    Let gone := filter is_gone N.
    Let stay := filter (fun u => negb (is_gone u)) N.
    Let come := filter (fun u => negb (mem u stay)) N'.

    (** What u gives a over k, after the attack. *)
    Let after (u : key) : Z := g a * b u a - g k * b u k.

    Lemma mem_false u l : mem u l = false <-> ~ In u l.
    Proof. rewrite <- not_true_iff_false, (mem_true key key_eq). tauto. Qed.

    Lemma stays_in u : In u stay -> In u N'.
    Proof.
      unfold stay; rewrite filter_In; intros [I E]; apply negb_true_iff in E. destruct (s_old _ _ _ _ _ _ _ _ ch u I) as [[R K]|[[K _]|[[K _]|[K _]]]]; auto.
      exfalso; unfold is_gone in E. apply (mem_true key key_eq) in R; rewrite R in E; simpl in E. apply orb_false_iff in E; destruct E as [E1 E2].
      apply mem_false in E1. apply negb_false_iff, (mem_true key key_eq) in E2. tauto.
    Qed.

    Lemma come_new u : In u come -> In u new.
    Proof.
      unfold come; rewrite filter_In; intros [I E]; apply negb_true_iff, mem_false in E.
      destruct (s_new _ _ _ _ _ _ _ _ ch u I) as [J|J]; auto.
      destruct (is_gone u) eqn:Eg.
      - unfold is_gone in Eg; apply andb_prop in Eg; destruct Eg as [_ Eg]; apply orb_true_iff in Eg; destruct Eg as [Eg|Eg]; [apply (mem_true key key_eq); auto|].
        apply negb_true_iff, mem_false in Eg; contradiction.
      - exfalso; apply E; unfold stay; apply filter_In; rewrite Eg; auto.
    Qed.

    Lemma stays_perm : Permutation N' (stay ++ come).
    Proof.
      unfold come. etransitivity; [apply (filter_split (fun u => mem u stay))|]. apply Permutation_app_tail.
      apply NoDup_Permutation; [apply NoDup_filter, (s_once _ _ _ _ _ _ _ _ ch)|unfold stay; apply NoDup_filter, (once _ ok)|].
      intro u; rewrite filter_In, (mem_true key key_eq). split; [tauto|]. intro I; split; auto. apply stays_in; auto.
    Qed.

    (** Reading a vote of steps 0 to S with a gate. *)
    Lemma given_worst u : In u N' -> - most_given V k <= after u.
    Proof.
      intro I. destruct (s_votes _ _ _ _ _ _ _ _ ch u I) as [B1 B2]. destruct (g_near _ _ _ read a) as [G1 _], (g_near _ _ _ read k) as [G2 [_ G3]].
      pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym apart)). pose proof (steps_pos _ ok). pose proof (slack_pos _ ok). pose proof (g_pos _ ok k).
      unfold after, most_given. set (gs := bit_of (computed V) * sl) in *.
      assert (g k * b u k <= (g_of V k + gs) * ST) by (unfold gs; nia). assert (0 <= g a * b u a) by nia. unfold gs in *; nia.
    Qed.

    (** A vote that is read again. *)
    Lemma read_again (c : nat -> Z) u : In u N -> (forall j, 0 <= c j <= ST) -> (forall j, near sl (vote_of V u j) (c j)) ->
      delta V a k u - doubt_each V a k <= g a * c a - g k * c k.
    Proof.
      intros I C R. destruct (votes_ok _ ok u I) as [B1 B2]. destruct (g_near _ _ _ read a) as [G1 [G2 G3]], (g_near _ _ _ read k) as [G4 [G5 G6]].
      pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym apart)). pose proof (steps_pos _ ok). pose proof (slack_pos _ ok).
      pose proof (g_pos _ ok k); pose proof (g_pos _ ok a). pose proof (C a); pose proof (C k). destruct (R a) as [R1 R2], (R k) as [R3 R4].
      unfold delta, doubt_each. set (gs := bit_of (computed V) * sl) in *. assert (0 <= gs) by (unfold gs, bit_of; destruct (computed V); lia).
      assert (X1 : g_of V a * vote_of V u a - g_of V a * sl - gs * ST <= g a * c a).
      { assert (g_of V a * (vote_of V u a - sl) <= g_of V a * c a) by nia. assert ((g_of V a - gs) * c a <= g a * c a) by nia. nia. }
      assert (X2 : g k * c k <= g_of V k * vote_of V u k + g_of V k * sl + gs * ST).
      { assert (g_of V k * c k <= g_of V k * (vote_of V u k + sl)) by nia. assert (g k * c k <= (g_of V k + gs) * c k) by nia. nia. }
      unfold gs in *. unfold bit_of in *; destruct (computed V); nia.
    Qed.

    Lemma vote_range y : is_vote ST y -> forall j, 0 <= y j <= ST.
    Proof. intros [B1 B2] j; pose proof (B1 j). pose proof (B1 (Datatypes.S j)). specialize (B2 j (Datatypes.S j) ltac:(lia)). lia. Qed.

    Lemma turned_worst u : In u N -> In u N' -> by_edge V = true ->
      (exists c, (forall j, near sl (vote_of V u j) (c j)) /\ c a - c k - ST <= b u a - b u k) ->
      delta V a k u - doubt_each V a k - most_given V k <= after u.
    Proof.
      intros I I' E [c [C T]]. destruct (s_votes _ _ _ _ _ _ _ _ ch u I') as [B1 B2]. destruct (g_near _ _ _ read a) as [G1 [G2 G3]], (g_near _ _ _ read k) as [G4 [G5 G6]].
      pose proof (gates_ok E) as GE. pose proof (B1 a); pose proof (B1 k). specialize (B2 a k (not_eq_sym apart)).
      pose proof (steps_pos _ ok) as SP. pose proof (slack_pos _ ok) as LP.
      destruct (C a) as [C1 C2], (C k) as [C3 C4]. pose proof (g_pos _ ok k) as GP. unfold after, delta, doubt_each, most_given. set (gs := bit_of (computed V) * sl) in *. rewrite GE in *.
      set (G := g_of V k) in *. assert (0 <= gs) by (unfold gs, bit_of; destruct (computed V); lia).
      assert (X1 : G * b u a - gs * b u a <= g a * b u a) by nia. assert (X2 : g k * b u k <= G * b u k + gs * b u k) by nia.
      assert (X3 : gs * b u a + gs * b u k <= gs * ST) by nia.
      assert (X4 : G * (c a - c k - ST) <= G * (b u a - b u k)) by nia.
      assert (X5 : G * (vote_of V u a - vote_of V u k - 2 * sl) <= G * (c a - c k)) by nia.
      unfold gs in *. unfold bit_of in *; destruct (computed V); nia.
    Qed.

    (** How many of each kind. *)
    Let nl := Z.of_nat (length gone).
    Let na := Z.of_nat (length (filter is_alt stay)).
    Let nt := Z.of_nat (length (filter is_turn stay)).
    Let ni := Z.of_nat (length come).

    (** The lead after the attack, from the numbers of the four kinds. *)
    Lemma lead_after_changes D : Permutation D (deltas V a k) -> falling D ->
      lead_at V a k nl na ni (ni + nt) (top (Z.to_nat (nl + na)) D) <= stacked V p g N' b a - stacked V p g N' b k.
    Proof.
      intros PD FD.
      assert (LEN : Z.of_nat (length N') = degree V - nl + ni).
      { rewrite (Permutation_length stays_perm), app_length. unfold degree. fold N. rewrite (length_split is_gone N). fold gone. unfold stay, nl, ni. lia. }
      assert (SUM : sum key (fun u => b u a) N' * g a - sum key (fun u => b u k) N' * g k = sum key after stay + sum key after come).
      { rewrite <- (sum_perm key _ _ _ (Permutation_sym stays_perm)) by exact key_eq.
        rewrite <- (sum_perm key (fun u => b u k) _ _ (Permutation_sym stays_perm)) by exact key_eq.
        rewrite <- !plus_sum, !map_app, !plus_app, !plus_sum. unfold after.
        assert (Q : forall l, sum key (fun u => g a * b u a - g k * b u k) l = sum key (fun u => b u a) l * g a - sum key (fun u => b u k) l * g k)
          by (clear; induction l as [|u l IH]; simpl; lia). rewrite !Q; lia. }
      (* each kind *)
      assert (K1 : - most_given V k * ni <= sum key after come).
      { unfold ni; apply sum_at_least; intros u I; apply given_worst. unfold come in I; apply filter_In in I; apply I. }
      assert (STAY : sum key after stay >= sum key (delta V a k) stay - sum key (delta V a k) (filter is_alt stay)
                     - (na + nt) * most_given V k - Z.of_nat (length stay) * doubt_each V a k).
      { assert (DP : 0 <= doubt_each V a k).
        { unfold doubt_each. pose proof (g_pos _ ok a); pose proof (g_pos _ ok k); pose proof (slack_pos _ ok); pose proof (steps_pos _ ok). unfold bit_of; destruct (computed V); nia. }
        assert (MP : 0 <= most_given V k).
        { unfold most_given. pose proof (g_pos _ ok k); pose proof (slack_pos _ ok); pose proof (steps_pos _ ok). unfold bit_of; destruct (computed V); nia. }
        assert (IN : forall u, In u stay -> In u N /\ is_gone u = false) by (intros u I; unfold stay in I; apply filter_In in I; destruct I as [I E]; apply negb_true_iff in E; auto).
        assert (G : forall l, incl l stay -> sum key after l >= sum key (delta V a k) l - sum key (delta V a k) (filter is_alt l)
                     - (Z.of_nat (length (filter is_alt l)) + Z.of_nat (length (filter is_turn l))) * most_given V k - Z.of_nat (length l) * doubt_each V a k).
        { induction l as [|u l IH]; intro I; [simpl; lia|]. specialize (IH (fun w J => I w (or_intror J))). pose proof (I u (or_introl eq_refl)) as Iu.
          destruct (IN u Iu) as [IuN Eg]. pose proof (stays_in u Iu) as Iu'. cbn [sum filter length].
          destruct (is_alt u) eqn:Ea.
          - assert (is_turn u = false) as -> by (unfold is_alt, is_turn in *; destruct (is_gone u), (mem u alt); simpl in *; auto; discriminate).
            pose proof (given_worst u Iu'). cbn [sum length]. lia.
          - destruct (is_turn u) eqn:Et; cbn [length].
            + unfold is_turn in Et; apply andb_prop in Et; destruct Et as [_ Et]; apply andb_prop in Et; destruct Et as [Et Eb].
              assert (W : delta V a k u - doubt_each V a k - most_given V k <= after u).
              { destruct (s_old _ _ _ _ _ _ _ _ ch u IuN) as [[R K]|[[_ K]|[[_ [_ [_ [c [C T]]]]]|[_ K]]]].
                - exfalso. unfold is_gone in Eg. apply (mem_true key key_eq) in R; rewrite R in Eg; simpl in Eg. apply orb_false_iff in Eg; destruct Eg as [E1 E2].
                  apply mem_false in E1. apply negb_false_iff, (mem_true key key_eq) in E2. tauto.
                - exfalso. unfold is_alt in Ea; rewrite Eg in Ea; simpl in Ea. apply mem_false in Ea; contradiction.
                - apply turned_worst; auto. exists c; split; auto.
                - pose proof (read_again (b u) u IuN (vote_range _ (s_votes _ _ _ _ _ _ _ _ ch u Iu')) K). fold (after u) in H. lia. }
              lia.
            + assert (W : delta V a k u - doubt_each V a k <= after u).
              { destruct (s_old _ _ _ _ _ _ _ _ ch u IuN) as [[R K]|[[_ K]|[[_ [T [E _]]]|[_ K]]]].
                - exfalso. unfold is_gone in Eg. apply (mem_true key key_eq) in R; rewrite R in Eg; simpl in Eg. apply orb_false_iff in Eg; destruct Eg as [E1 E2].
                  apply mem_false in E1. apply negb_false_iff, (mem_true key key_eq) in E2. tauto.
                - exfalso. unfold is_alt in Ea; rewrite Eg in Ea; simpl in Ea. apply mem_false in Ea; contradiction.
                - exfalso. unfold is_turn, is_alt in Et, Ea; rewrite Eg in Et, Ea; simpl in Et, Ea. rewrite Ea, E in Et. apply (mem_true key key_eq) in T; rewrite T in Et; discriminate.
                - apply (read_again (b u) u IuN); auto. apply vote_range, (s_votes _ _ _ _ _ _ _ _ ch u Iu'). }
              lia. }
        apply (G stay (incl_refl _)). }
      (* what is gone or altered weighs no more than as many of the largest *)
      assert (TOP : sum key (delta V a k) gone + sum key (delta V a k) (filter is_alt stay) <= top (Z.to_nat (nl + na)) D).
      { assert (PP : Permutation D (map (delta V a k) (gone ++ filter is_alt stay) ++ map (delta V a k) (filter (fun u => negb (is_alt u)) stay))).
        { etransitivity; [exact PD|]. unfold deltas. rewrite <- map_app, <- app_assoc. apply Permutation_map. fold N.
          etransitivity; [apply (filter_split is_gone)|]. apply Permutation_app_head. apply filter_split. }
        pose proof (part_le_top D FD _ _ PP) as T. rewrite map_length, app_length, map_app, plus_app, !plus_sum in T.
        replace (Z.to_nat (nl + na)) with (length gone + length (filter is_alt stay))%nat by (unfold nl, na; lia). exact T. }
      assert (SN : sum key (delta V a k) N = sum key (delta V a k) gone + sum key (delta V a k) stay) by apply sum_split.
      assert (LS : Z.of_nat (length stay) <= degree V).
      { unfold degree; fold N; rewrite (length_split is_gone N). fold stay. lia. }
      (* prior and pseudo-count *)
      assert (DV : 0 <= divisor V (Z.of_nat (length N'))).
      { unfold divisor. pose proof (steps_pos _ ok); pose proof (pseudo_pos _ ok). destruct (pseudo V =? 0); nia. }
      destruct (p_near _ _ _ read a) as [P1 _], (p_near _ _ _ read k) as [_ P2].
      assert (PR : ahead V a k * divisor V (Z.of_nat (length N')) <= (p a - p k) * divisor V (Z.of_nat (length N'))) by (unfold ahead; nia).
      assert (QR : (if pseudo V =? 0 then 0 else g_of V a * q_of V a - g_of V k * q_of V k - doubt_pseudo V)
                   <= g a * (if pseudo V =? 0 then 0 else q_of V a) - g k * (if pseudo V =? 0 then 0 else q_of V k)).
      { destruct (pseudo V =? 0); [lia|]. destruct (g_near _ _ _ read a) as [G1 [G2 G3]], (g_near _ _ _ read k) as [G4 [G5 G6]].
        pose proof (q_pos _ ok a); pose proof (q_pos _ ok k); pose proof (q_sum _ ok a k (not_eq_sym apart)). pose proof (slack_pos _ ok). unfold doubt_pseudo. set (gs := bit_of (computed V) * sl) in *.
        assert (0 <= gs) by (unfold gs, bit_of; destruct (computed V); lia).
        assert (g_of V a * q_of V a - gs * q_of V a <= g a * q_of V a) by nia. assert (g k * q_of V k <= g_of V k * q_of V k + gs * q_of V k) by nia.
        unfold gs in *; unfold bit_of in *; destruct (computed V); nia. }
      unfold stacked, lead_at, given. rewrite LEN in *. unfold N in SN.
      set (qa := if pseudo V =? 0 then 0 else q_of V a) in *. set (qk := if pseudo V =? 0 then 0 else q_of V k) in *.
      assert (DE : Z.of_nat (length stay) * doubt_each V a k <= degree V * doubt_each V a k).
      { assert (0 <= doubt_each V a k); [|nia]. unfold doubt_each. pose proof (g_pos _ ok a); pose proof (g_pos _ ok k); pose proof (slack_pos _ ok); pose proof (steps_pos _ ok). unfold bit_of; destruct (computed V); nia. }
      lia.
    Qed.

    Lemma kinds_within :
      0 <= nl /\ 0 <= na /\ 0 <= nt /\ 0 <= ni /\ nl + na <= degree V
      /\ nl <= Z.of_nat (length rem) /\ na <= Z.of_nat (length alt) /\ ni + nt <= Z.of_nat (length (new ++ turn))
      /\ (by_edge V = false -> nt = 0).
    Proof.
      assert (NN : NoDup N) by apply (once _ ok). assert (NS : NoDup stay) by (apply NoDup_filter; auto).
      assert (A1 : nl <= Z.of_nat (length rem)).
      { apply few_of; [apply NoDup_filter; auto|]. intros u I; unfold gone in I; apply filter_In in I; destruct I as [_ I].
        unfold is_gone in I; apply andb_prop in I; apply (mem_true key key_eq), I. }
      assert (A2 : na <= Z.of_nat (length alt)).
      { apply few_of; [apply NoDup_filter; auto|]. intros u I; apply filter_In in I; destruct I as [_ I]. unfold is_alt in I; apply andb_prop in I; apply (mem_true key key_eq), I. }
      assert (A3 : nt <= Z.of_nat (length turn)).
      { apply few_of; [apply NoDup_filter; auto|]. intros u I; apply filter_In in I; destruct I as [_ I]. unfold is_turn in I; apply andb_prop in I; destruct I as [_ I].
        apply andb_prop in I; apply (mem_true key key_eq), I. }
      assert (A4 : ni <= Z.of_nat (length new)).
      { apply few_of; [apply NoDup_filter, (s_once _ _ _ _ _ _ _ _ ch)|]. intros u I; apply come_new; auto. }
      assert (A5 : nl + na <= degree V).
      { unfold nl, na, degree. fold N. rewrite (length_split is_gone N). fold gone stay. rewrite (length_split is_alt stay). lia. }
      rewrite app_length. repeat split; try (unfold nl, na, nt, ni; lia).
      intro E; unfold nt. assert (Q : filter is_turn stay = []); [|rewrite Q; reflexivity].
      clear -E; induction stay as [|u l IH]; simpl; auto. unfold is_turn at 1; rewrite E, !andb_false_r; auto.
    Qed.
  End Counting.

  (** Theorem 10: with i new, t turned, l lost and m altered neighbours the lead is at least [lead_at], whichever they are. *)
  Theorem stacked_lead_sound :
    forall (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (a k : nat) (new rem alt turn : list key),
      sensible V -> stacked_reading V p g -> stacked_changes V N' b a new rem alt turn -> k <> a -> (by_edge V = true -> g_of V a = g_of V k) ->
      exists l m i t,
        0 <= l /\ 0 <= m /\ 0 <= t /\ 0 <= i /\ l + m <= degree V
        /\ l <= Z.of_nat (length rem) /\ m <= Z.of_nat (length alt) /\ i + t <= Z.of_nat (length (new ++ turn)) /\ (by_edge V = false -> t = 0)
        /\ forall D, Permutation D (deltas V a k) -> falling D ->
             lead_at V a k l m i (i + t) (top (Z.to_nat (l + m)) D) <= stacked V p g N' b a - stacked V p g N' b k.
  Proof.
    intros V N' b p g a k new rem alt turn ok read ch apart gates.
    pose proof (lead_after_changes V N' b p g a k new rem alt turn ok read ch apart gates) as LA. cbv zeta in LA.
    destruct (kinds_within V N' b p a k new rem alt turn ok ch apart) as (K1 & K2 & K3 & K4 & K5 & K6 & K7 & K8 & K9).
    eexists _, _, _, _. exact (conj K1 (conj K2 (conj K3 (conj K4 (conj K5 (conj K6 (conj K7 (conj K8 (conj K9 LA))))))))).
  Qed.
End Stacked.
