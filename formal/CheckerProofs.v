(** What an answer of the checker establishes: the hypotheses of the certificates that are about numbers. What is left are those about
    the graph and the model: that the file tells the truth about them ([faithful]), and that the model is local. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair
  OwnGroupsOfGraphs Checker.
Import ListNotations.
Open Scope Z_scope.

(** 1 if true, 0 if not. *)
Definition b2z (b : bool) : Z := if b then 1 else 0.

(** How many listed votes satisfy q. *)
Fixpoint listed_with (q : entry -> bool) (l : list (Z * entry)) : Z :=
  match l with [] => 0 | (_, e) :: l' => b2z (q e) + listed_with q l' end.
(** The number of listed votes. *)
Definition len (l : list (Z * entry)) : Z := Z.of_nat (length l).

(** The votes that a file means. *)
Fixpoint entry_at (l : list (Z * entry)) (d : entry) (i : Z) : entry :=
  match l with [] => d | (g, e) :: l' => if i =? g then e else entry_at l' d i end.
(** The votes of Theorem 2 that a file states: listed votes, and the default of all other groups. *)
Definition votes_of (s : settings) (t : target) : votes :=
  let at_ i := entry_at (listed_votes t) (default_vote t) (Z.of_nat i) in
  Votes (Z.to_nat (num_groups s)) (fun i => choice (at_ i)) (fun i => is_stable (at_ i)) (fun i => its_tier (at_ i)).
(** The same where every neighbour, pair or node has a group of its own: the group is its key. *)
Definition own_votes_of (t : target) : own_votes Z :=
  let at_ g := entry_at (listed_votes t) (default_vote t) g in
  OwnVotes Z (map fst (listed_votes t)) (fun g => choice (at_ g)) (fun g => is_stable (at_ g)) (fun g => has_one_way (at_ g)).
(** The prior where empty groups are beyond number. *)
Definition own_prior (s : settings) (t : target) (k : nat) : Z :=
  nth k (class_prior s) 0 + (if no_edge_stable t && beq (no_edge_choice t) (Some k) then no_edge_prior s else 0).

(** ---- Counting ---- *)

Lemma count_add k l n : count k l n = n + count k l 0.
Proof.
  revert n; induction l as [|y l IH]; intro n; simpl; [lia|]. rewrite IH, (IH (match y with Some j => _ | None => _ end)).
  destruct y as [j|]; [destruct (Nat.eqb j k)|]; lia.
Qed.
Lemma size_add {A} (l : list A) n : size l n = n + Z.of_nat (length l).
Proof. revert n; induction l as [|x l IH]; intro n; [simpl; lia|]. cbn [size length]; rewrite IH; lia. Qed.

Lemma listed_ext q q' l : (forall e, q e = q' e) -> listed_with q l = listed_with q' l.
Proof. intro H; induction l as [|[g e] l IH]; simpl; [auto|rewrite H, IH; auto]. Qed.
Lemma listed_ext_in q q' l : (forall p, In p l -> q (snd p) = q' (snd p)) -> listed_with q l = listed_with q' l.
Proof.
  intro H; induction l as [|[g e] l IH]; simpl; [auto|]. rewrite IH by (intros; apply H; right; auto).
  specialize (H (g, e) (or_introl eq_refl)); simpl in H; rewrite H; auto.
Qed.

Lemma choices_count k q l found :
  count k (choices q l found) 0 = listed_with (fun e => q e && beq (choice e) (Some k)) l + count k found 0.
Proof.
  revert found; induction l as [|[g e] l IH]; intro found; [simpl; lia|]. cbn [choices listed_with]; rewrite IH.
  destruct (q e); [|simpl; lia]. cbn [count]; rewrite (count_add k found (match choice e with Some j => _ | None => _ end)).
  destruct (choice e) as [j|]; cbn [beq andb]; [destruct (Nat.eqb j k)|]; cbn [b2z]; lia.
Qed.
Lemma choices_size q l found : size (choices q l found) 0 = listed_with q l + Z.of_nat (length found).
Proof.
  revert found; induction l as [|[g e] l IH]; intro found; [simpl; rewrite size_add; lia|]. cbn [choices listed_with]; rewrite IH.
  destruct (q e); simpl length; simpl b2z; lia.
Qed.

Lemma num_update T p j (x : bool) : (j < T)%nat ->
  num T (fun i => if Nat.eqb i j then x else p i) = num T p - b2z (p j) + b2z x.
Proof.
  induction T as [|m IH]; [lia|]; intro H; simpl.
  destruct (Nat.eqb_spec m j) as [->|N].
  - rewrite (num_ext j (fun i => if Nat.eqb i j then x else p i) p).
    + unfold b2z; destruct (p j), x; lia.
    + intros i Hi; destruct (Nat.eqb_spec i j); [lia|auto].
  - rewrite IH by lia; destruct (p m); lia.
Qed.

Lemma entry_absent l d i low high : ascends low high l = true -> i < low -> entry_at l d i = d.
Proof.
  revert low; induction l as [|[g e] l IH]; simpl; intros low H Hi; auto.
  apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1.
  destruct (Z.eqb_spec i g); [lia|]. apply (IH (g + 1)); auto; lia.
Qed.

Lemma ascends_len l low high : ascends low high l = true -> low + len l <= high.
Proof.
  unfold len; revert low; induction l as [|[g e] l IH]; simpl; intros low H; [apply Z.leb_le in H; lia|].
  apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1; apply IH in H2; lia.
Qed.

Lemma num_const T (x : bool) : num T (fun _ => x) = Z.of_nat T * b2z x.
Proof. induction T as [|m IH]; [reflexivity|]; change (num m (fun _ => x) + b2z x = Z.of_nat (S m) * b2z x); rewrite IH; lia. Qed.

Lemma num_entries q d high l low : 0 <= low -> ascends low high l = true ->
  num (Z.to_nat high) (fun i => q (entry_at l d (Z.of_nat i))) = listed_with q l + (high - len l) * b2z (q d).
Proof.
  revert low; induction l as [|[g e] l IH]; intros low H0 H.
  - simpl in *; apply Z.leb_le in H. rewrite num_const; rewrite Z2Nat.id by lia; unfold len; simpl; lia.
  - simpl in H; apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1.
    pose proof (ascends_len _ _ _ H2) as Hh. assert (0 <= len l) by (unfold len; lia).
    rewrite (num_ext _ _ (fun i => if Nat.eqb i (Z.to_nat g) then q e else q (entry_at l d (Z.of_nat i)))).
    + rewrite num_update by lia.
      rewrite (IH (g + 1)) by (auto; lia).
      rewrite (entry_absent l d (Z.of_nat (Z.to_nat g)) (g + 1) high) by (auto; lia).
      cbn [listed_with]. unfold len; cbn [length]; rewrite Nat2Z.inj_succ; unfold Z.succ; ring.
    + intros i Hi; simpl.
      destruct (Z.eqb_spec (Z.of_nat i) g), (Nat.eqb_spec i (Z.to_nat g)); auto; lia.
Qed.

(** ---- The label as cast ---- *)

Lemma best_from_best score left : forall k b, b = best score k -> (0 < k)%nat ->
  best_from score k left b (score b) = best score (k + left).
Proof.
  induction left as [|left IH]; intros k b E H; simpl; [rewrite Nat.add_0_r; auto|].
  replace (k + S left)%nat with (S k + left)%nat by lia.
  destruct (score b <? score k) eqn:L; apply IH; try lia; simpl; rewrite <- E, L; auto.
Qed.
Lemma best_ext s s' C : (forall k, s k = s' k) -> best s C = best s' C.
Proof. intro H; induction C as [|m IH]; simpl; auto. rewrite IH, !H; auto. Qed.

Lemma label_of_best s t : (0 < num_classes s)%nat ->
  label_of s t = best (fun k => prior_cast s t k + count k (choices (fun _ => true) (listed_votes t) []) 0
                                + default_for k t (num_groups s - size (listed_votes t) 0)) (num_classes s).
Proof.
  intro H; unfold label_of; destruct (num_classes s) as [|m]; [lia|].
  match goal with |- _ = best ?f _ => change (best_from f 1 m 0 (f O) = best f (1 + m)) end.
  apply best_from_best; [|lia]. cbn [best]; rewrite Z.ltb_irrefl; auto.
Qed.

(** Section 1, Vote: the label is the winner of the votes as cast, the smaller class on a tie. *)
Theorem label_is_voted s t : (0 < num_classes s)%nat -> ascends 0 (num_groups s) (listed_votes t) = true ->
  label_of s t = voted (num_classes s) (groups (votes_of s t)) (prior_cast s t) (cast (votes_of s t)).
Proof.
  intros H A; rewrite label_of_best by auto; apply best_ext; intro k. unfold score; cbn [groups cast votes_of].
  rewrite (num_entries (fun e => beq (choice e) (Some k)) (default_vote t) (num_groups s) (listed_votes t) 0) by (auto; lia).
  rewrite choices_count, size_add; simpl; unfold default_for, len.
  destruct (beq (choice (default_vote t)) (Some k)); simpl b2z; lia.
Qed.

Lemma label_lt s t : (0 < num_classes s)%nat -> (label_of s t < num_classes s)%nat.
Proof. intro H; rewrite label_of_best by auto; apply best_is_label; auto. Qed.

(** ---- A target, counted ---- *)

Section Counted.
  Variables (s : settings) (t : target).
  Let l := listed_votes t.
  Let d := default_vote t.
  Let c := count_target s t.
  Let a := label_of s t.
  Let T := num_groups s.
  Hypothesis ok : well_made s t = true.
  Hypothesis some_class : (0 < num_classes s)%nat.

  Let st_for k tr e := is_stable e && beq (choice e) (Some k) && teq (its_tier e) tr.
  Let k0 k := listed_with (st_for k Reached) l.
  Let k1 k := listed_with (st_for k Unreached) l.
  Let s0 := listed_with (fun e => is_stable e && teq (its_tier e) Reached) l.
  Let s1 := listed_with (fun e => is_stable e && teq (its_tier e) Unreached) l.
  Let s2 := if is_stable d then T - len l else 0.
  Let k2 k := default_for k t s2.
  Let w k := listed_with (fun e => is_stable e && has_one_way e && beq (choice e) (Some k)) l.
  Let sw := listed_with (fun e => is_stable e && has_one_way e) l.

  Lemma ok_parts : ascends 0 T l = true /\ (forall p, In p l -> its_tier (snd p) <> Unlisted) /\ its_tier d = Unlisted
    /\ (own_groups s = true -> choice d = empty_casts s).
  Proof.
    unfold well_made in ok. apply andb_prop in ok; destruct ok as [H1 H4]. apply andb_prop in H1; destruct H1 as [H1 H3].
    apply andb_prop in H1; destruct H1 as [H1 H2]. split; [exact H1|]. split; [|split].
    - intros p Hp E. rewrite forallb_forall in H2; specialize (H2 p Hp); rewrite E in H2; discriminate.
    - unfold d; destruct (its_tier (default_vote t)); auto; discriminate.
    - intro E; rewrite E in H4; simpl in H4; apply beq_true in H4; auto.
  Qed.

  (** What [count_target] counts against k. *)
  Definition the_rival (k : nat) : rival :=
    Rival k (prior_certain s t a + k0 a + k1 a + k2 a - (T - s0 - s1 - s2) - prior_doubt s t
             - prior_certain s t k - k0 k - k1 k - k2 k - tie k a)
          (s0 - k0 k) (s1 - k1 k) (s2 - k2 k) (sw - w k).

  Lemma count_r0 k tr : count k (choices (fun e => is_stable e && teq (its_tier e) tr) l []) 0 = listed_with (st_for k tr) l.
  Proof.
    rewrite choices_count; simpl; rewrite Z.add_0_r; apply listed_ext; intro e; unfold st_for.
    destruct (is_stable e), (teq (its_tier e) tr), (beq (choice e) (Some k)); auto.
  Qed.
  Lemma count_w k : count k (choices (fun e => is_stable e && has_one_way e) l []) 0 = w k.
  Proof. rewrite choices_count; simpl; rewrite Z.add_0_r; auto. Qed.

  Lemma counted_is : c = Counted true a (k0 a) (k1 a) (k2 a) (w a)
    (map the_rival (filter (fun k => negb (Nat.eqb k a)) (seq 0 (num_classes s))))
    (listed_with (fun e => teq (its_tier e) Reached) l) (cover_row t).
  Proof.
    unfold c, count_target. fold l d a. rewrite ok, !count_r0, !choices_size, count_w, size_add.
    cbn [length]. rewrite !Z.add_0_r.
    change (Z.of_nat (length l)) with (len l). rewrite Z.add_0_l. fold T s2.
    f_equal. apply map_ext; intro k. unfold the_rival. rewrite !count_r0, count_w.
    fold s0 s1 sw. unfold k0, k1, k2. reflexivity.
  Qed.

  Lemma rivals_all (p : rival -> bool) : forallb p (rivals c) = true ->
    forall k, (k < num_classes s)%nat -> k <> a -> p (the_rival k) = true.
  Proof.
    rewrite counted_is; cbn [rivals]; rewrite forallb_forall; intros H k Hk N; apply H, in_map, filter_In.
    split; [apply in_seq; lia|]. destruct (Nat.eqb_spec k a); [contradiction|auto].
  Qed.

  (** Tiers of listed votes. *)
  Lemma tiers_split q : listed_with q l
    = listed_with (fun e => q e && teq (its_tier e) Reached) l + listed_with (fun e => q e && teq (its_tier e) Unreached) l.
  Proof.
    destruct ok_parts as [_ [H _]]. revert H; generalize l; induction l0 as [|[g e] l0 IH]; intro H; [reflexivity|]; cbn [listed_with].
    rewrite IH by (intros p Hp; apply H; right; auto). specialize (H (g, e) (or_introl eq_refl)); simpl in H.
    destruct (its_tier e) eqn:Et; [| |contradiction]; destruct (q e); cbn [b2z andb teq]; lia.
  Qed.
  Lemma none_unlisted q : listed_with (fun e => q e && teq (its_tier e) Unlisted) l = 0.
  Proof.
    destruct ok_parts as [_ [H _]]. revert H; generalize l; induction l0 as [|[g e] l0 IH]; intro H; [reflexivity|]; cbn [listed_with].
    rewrite IH by (intros p Hp; apply H; right; auto). specialize (H (g, e) (or_introl eq_refl)); simpl in H.
    destruct (its_tier e) eqn:Et; [| |contradiction]; destruct (q e); cbn [b2z andb teq]; lia.
  Qed.

  (** --- Theorem 2 --- *)
  Let V := votes_of s t.

  Lemma num_V q : num (groups V) (fun i => q (entry_at l d (Z.of_nat i))) = listed_with q l + (T - len l) * b2z (q d).
  Proof. destruct ok_parts as [A _]; apply (num_entries q d T l 0); auto; lia. Qed.

  Lemma V_for k tr : for_class V k tr = match tr with Reached => k0 k | Unreached => k1 k | Unlisted => k2 k end.
  Proof.
    destruct ok_parts as [A [_ [D _]]]. unfold for_class, V.
    change (num (groups V) (fun i => st_for k tr (entry_at l d (Z.of_nat i))) = match tr with Reached => k0 k | Unreached => k1 k | Unlisted => k2 k end).
    rewrite num_V. unfold st_for at 2; rewrite D. destruct tr; cbn [teq].
    - rewrite andb_false_r; simpl b2z. unfold k0; lia.
    - rewrite andb_false_r; simpl b2z. unfold k1; lia.
    - unfold st_for; rewrite none_unlisted, andb_true_r. unfold k2, default_for, s2; fold d.
      destruct (is_stable d), (beq (choice d) (Some k)); simpl b2z; lia.
  Qed.
  Lemma V_not k tr : not_for V k tr = match tr with Reached => s0 - k0 k | Unreached => s1 - k1 k | Unlisted => s2 - k2 k end.
  Proof.
    destruct ok_parts as [A [_ [D _]]]. unfold not_for, V.
    set (q := fun e => is_stable e && negb (beq (choice e) (Some k)) && teq (its_tier e) tr).
    change (num (groups V) (fun i => q (entry_at l d (Z.of_nat i))) = match tr with Reached => s0 - k0 k | Unreached => s1 - k1 k | Unlisted => s2 - k2 k end).
    rewrite num_V. assert (Q : listed_with q l = listed_with (fun e => is_stable e && teq (its_tier e) tr) l - listed_with (st_for k tr) l).
    { unfold q, st_for; clear; induction l as [|[g e] l0 IH]; [reflexivity|]; cbn [listed_with]; rewrite IH.
      destruct (is_stable e), (beq (choice e) (Some k)), (teq (its_tier e) tr); cbn [b2z andb negb]; lia. }
    rewrite Q. unfold q at 1; rewrite D. destruct tr; cbn [teq].
    - rewrite andb_false_r; simpl b2z; unfold s0, k0; lia.
    - rewrite andb_false_r; simpl b2z; unfold s1, k1; lia.
    - unfold st_for; rewrite !none_unlisted, andb_true_r. unfold k2, default_for, s2; fold d.
      destruct (is_stable d), (beq (choice d) (Some k)); simpl b2z; lia.
  Qed.
  Lemma V_standing k : standing V k = k0 k + k1 k + k2 k.
  Proof.
    unfold standing, V. change (num (groups V) (fun i => (fun e => is_stable e && beq (choice e) (Some k)) (entry_at l d (Z.of_nat i))) = k0 k + k1 k + k2 k).
    rewrite num_V, tiers_split. unfold k0, k1, k2, st_for, default_for, s2; fold d.
    destruct (is_stable d), (beq (choice d) (Some k)); simpl b2z; lia.
  Qed.
  Lemma unstable_listed : listed_with (fun e => negb (is_stable e)) l = len l - s0 - s1.
  Proof.
    pose proof (tiers_split is_stable) as E. fold s0 s1 in E.
    assert (listed_with (fun e => negb (is_stable e)) l + listed_with is_stable l = len l).
    { unfold len; clear; induction l as [|[g e] l0 IH]; [simpl; auto|].
      cbn [listed_with length]; rewrite Nat2Z.inj_succ. destruct (is_stable e); cbn [negb b2z]; lia. }
    lia.
  Qed.
  Lemma V_conceded : conceded V = T - s0 - s1 - s2.
  Proof.
    unfold conceded, V. change (num (groups V) (fun i => (fun e => negb (is_stable e)) (entry_at l d (Z.of_nat i))) = T - s0 - s1 - s2).
    rewrite num_V, unstable_listed. unfold s2. destruct (is_stable d); simpl b2z; lia.
  Qed.
  Lemma V_reached : num_reached V = num_reached_in c.
  Proof.
    destruct ok_parts as [_ [_ [D _]]]. rewrite counted_is; cbn [num_reached_in]. unfold num_reached, V.
    change (num (groups V) (fun i => (fun e => teq (its_tier e) Reached) (entry_at l d (Z.of_nat i))) = listed_with (fun e => teq (its_tier e) Reached) l).
    rewrite num_V, D; simpl b2z; lia.
  Qed.

  Lemma c_label : label c = a. Proof. rewrite counted_is; auto. Qed.
  Lemma c_for_0 : for_0 c = k0 a. Proof. rewrite counted_is; auto. Qed.
  Lemma c_for_1 : for_1 c = k1 a. Proof. rewrite counted_is; auto. Qed.
  Lemma c_for_2 : for_2 c = k2 a. Proof. rewrite counted_is; auto. Qed.
  Lemma rival_lead n k :
    limit3 n (k0 a) (k1 a) (k2 a) + limit3 n (not_0 (the_rival k)) (not_1 (the_rival k)) (not_2 (the_rival k)) <= lead (the_rival k) ->
    cap (all n) (k0 a + cap (beyond n) (k1 a + cap (unlisted n) (k2 a)))
    + cap (all n) (s0 - k0 k + cap (beyond n) (s1 - k1 k + cap (unlisted n) (s2 - k2 k)))
    <= prior_certain s t a + (k0 a + k1 a + k2 a) - prior_certain s t k - (k0 k + k1 k + k2 k) - (T - s0 - s1 - s2) - prior_doubt s t - tie k a.
  Proof.
    unfold limit3, the_rival; cbn [not_0 not_1 not_2 lead]. generalize (k0 a) (k1 a) (k2 a) (k0 k) (k1 k) (k2 k). intros. lia.
  Qed.

  (** The test that the checker makes is that of Theorem 2. *)
  Theorem test_sound n : test c n = true ->
    withstands V (num_classes s) (prior_certain s t) (prior_doubt s t) (label c) n.
  Proof.
    intro H; unfold test in H; apply andb_prop in H; destruct H as [_ H].
    pose proof (rivals_all _ H) as K; clear H. rewrite c_label. split; [apply label_lt; auto|].
    intros k Hk N; specialize (K k Hk N); apply Z.leb_le in K. rewrite c_for_0, c_for_1, c_for_2 in K.
    unfold limit, margin; rewrite !V_for, !V_not, !V_standing, V_conceded. exact (rival_lead n k K).
  Qed.

  (** --- Theorem 9 --- *)
  Let O := own_votes_of t.
  Hypothesis own : own_groups s = true.

  Lemma ascends_nodup low high (m : list (Z * entry)) : ascends low high m = true -> NoDup (map fst m) /\ forall g, In g (map fst m) -> low <= g.
  Proof.
    revert low; induction m as [|[g e] m IH]; simpl; intros low H; [split; [constructor|contradiction]|].
    apply andb_prop in H; destruct H as [H1 H2]; apply Z.leb_le in H1; destruct (IH _ H2) as [N B].
    split; [constructor; auto; intro I; specialize (B g I); lia|]. intros x [<-|I]; [auto|specialize (B x I); lia].
  Qed.
  Lemma own_nodup : NoDup (cast_by Z O).
  Proof. destruct ok_parts as [A _]; apply (ascends_nodup _ _ _ A). Qed.

  Lemma amount_O q : amount Z (fun g => q (entry_at l d g)) (map fst l) = listed_with q l.
  Proof.
    destruct ok_parts as [A _]; destruct (ascends_nodup _ _ _ A) as [N _]; fold l in N. clear -N. revert N.
    generalize l; induction l0 as [|[g e] m IH]; intro N; [reflexivity|]. inversion N as [|? ? N1 N2]; subst.
    unfold amount in *; cbn [map fst sum listed_with entry_at]. rewrite Z.eqb_refl. unfold bit at 1; fold (b2z (q e)). f_equal.
    rewrite <- (IH N2). clear IH. assert (E : forall u, In u (map fst m) -> (u =? g) = false).
    { intros u Hu; destruct (Z.eqb_spec u g); auto; subst; contradiction. }
    revert E; generalize (map fst m) as us; induction us as [|u us IH]; intro E; [reflexivity|]; cbn [sum].
    rewrite E by (left; auto). rewrite IH by (intros; apply E; right; auto). auto.
  Qed.

  Lemma O_for k : o_for Z O k = k0 k + k1 k.
  Proof.
    unfold o_for, O. change (amount Z (fun g => (fun e => is_stable e && beq (choice e) (Some k)) (entry_at l d g)) (map fst l) = k0 k + k1 k).
    rewrite amount_O, tiers_split; auto.
  Qed.
  Lemma O_not k : o_not Z O k = s0 - k0 k + (s1 - k1 k).
  Proof.
    unfold o_not, O. change (amount Z (fun g => (fun e => is_stable e && negb (beq (choice e) (Some k))) (entry_at l d g)) (map fst l) = s0 - k0 k + (s1 - k1 k)).
    rewrite amount_O. assert (listed_with (fun e => is_stable e && negb (beq (choice e) (Some k))) l
      = listed_with is_stable l - listed_with (fun e => is_stable e && beq (choice e) (Some k)) l).
    { clear; induction l as [|[g e] l0 IH]; [reflexivity|]; cbn [listed_with]; rewrite IH. destruct (is_stable e), (beq (choice e) (Some k)); cbn [b2z andb negb]; lia. }
    rewrite H, (tiers_split is_stable), (tiers_split (fun e => is_stable e && beq (choice e) (Some k))).
    fold s0 s1. unfold k0, k1, st_for. lia.
  Qed.
  Lemma O_unstable : o_unstable Z O = len l - s0 - s1.
  Proof.
    unfold o_unstable, O. change (amount Z (fun g => (fun e => negb (is_stable e)) (entry_at l d g)) (map fst l) = len l - s0 - s1).
    rewrite amount_O; apply unstable_listed.
  Qed.
  Lemma O_way k : o_way Z O k = w k.
  Proof.
    unfold o_way, O. change (amount Z (fun g => (fun e => is_stable e && has_one_way e && beq (choice e) (Some k)) (entry_at l d g)) (map fst l) = w k).
    rewrite amount_O; auto.
  Qed.
  Lemma O_way_not k : o_way_not Z O k = sw - w k.
  Proof.
    unfold o_way_not, O. change (amount Z (fun g => (fun e => is_stable e && has_one_way e && negb (beq (choice e) (Some k))) (entry_at l d g)) (map fst l) = sw - w k).
    rewrite amount_O. unfold sw, w; clear; induction l as [|[g e] l0 IH]; [reflexivity|]; cbn [listed_with]; rewrite IH.
    destruct (is_stable e), (has_one_way e), (beq (choice e) (Some k)); cbn [b2z andb negb]; lia.
  Qed.

  Lemma O_margin k : k <> a -> lead (the_rival k) <= o_margin Z O (own_prior s t) (prior_doubt s t) (empty_casts s) a k.
  Proof.
    intro N. destruct ok_parts as [A [_ [_ E]]]; specialize (E own). pose proof (ascends_len _ _ _ A) as B.
    assert (L0 : 0 <= len l) by (unfold len; lia).
    unfold the_rival, o_margin; cbn [lead]. rewrite !O_for, O_unstable.
    change (Z.of_nat (length (cast_by Z O))) with (Z.of_nat (length (map fst l))); rewrite map_length; change (Z.of_nat (length l)) with (len l).
    unfold prior_certain, class_prior_of, own_prior; rewrite own; cbn [andb].
    unfold k2, default_for, s2; fold d; rewrite E.
    assert (NB : beq (empty_casts s) (Some a) = true -> beq (empty_casts s) (Some k) = true -> False) by (rewrite !beq_true; congruence).
    destruct (beq (empty_casts s) (Some a)), (beq (empty_casts s) (Some k)); try (exfalso; auto; fail); destruct (is_stable d); lia.
  Qed.

  Lemma gain_same n k : gain_in (empty_casts s) n c (the_rival k) = gain Z O (empty_casts s) n a k.
  Proof.
    rewrite counted_is. unfold gain_in, gain, for_own, not_own, the_rival; cbn [label its_class for_0 for_1 not_0 not_1 way_for way_not].
    rewrite !O_for, !O_not, !O_way, !O_way_not. reflexivity.
  Qed.

  Lemma any_same altering x k : any_gain_in (empty_casts s) altering x c (the_rival k) = any_gain Z O (empty_casts s) altering x a k.
  Proof.
    rewrite counted_is. unfold any_gain_in, any_gain, for_own, not_own, the_rival; cbn [label its_class for_0 for_1 not_0 not_1 way_for].
    rewrite !O_for, !O_not, !O_way. reflexivity.
  Qed.

  (** The test that the checker makes is that of Theorem 9. *)
  Theorem own_test_sound n : own_test (empty_casts s) c n = true ->
    own_withstands Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) (label c) n.
  Proof.
    intro H; unfold own_test in H; apply andb_prop in H; destruct H as [_ H].
    pose proof (rivals_all _ H) as K. rewrite c_label.
    split; [apply label_lt; auto|]. intros k Hk N; specialize (K k Hk N); apply negb_true_iff in K.
    rewrite gain_same in K. pose proof (O_margin k N) as M.
    unfold lt_lim in K; unfold at_least; destruct (gain Z O (empty_casts s) n a k); [apply Z.ltb_ge in K; lia|discriminate].
  Qed.
  (** The test that the checker makes for a radius is that of Theorem 9. *)
  Theorem any_test_sound altering x : any_test (empty_casts s) altering c x = true ->
    own_radius_ok Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) altering (label c) x.
  Proof.
    intro H; unfold any_test in H; apply andb_prop in H; destruct H as [_ H].
    pose proof (rivals_all _ H) as K. rewrite c_label.
    split; [apply label_lt; auto|]. intros k Hk N; specialize (K k Hk N); apply Z.leb_le in K.
    pose proof (O_margin k N) as M. rewrite any_same in K. lia.
  Qed.
  (** The test that the checker makes for many targets is that of Theorem 9. *)
  Theorem touch_test_sound n x : touch_test (empty_casts s) n c x = true ->
    own_touches_ok Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) n (label c) x.
  Proof.
    intro H; unfold touch_test in H; apply andb_prop in H; destruct H as [_ H].
    pose proof (rivals_all _ H) as K. rewrite c_label.
    split; [apply label_lt; auto|]. intros k Hk N; specialize (K k Hk N). cbv beta in K.
    pose proof (O_margin k N) as M. apply orb_prop in K; destruct K as [K|K].
    - left. apply negb_true_iff in K. rewrite gain_same in K.
      unfold lt_lim in K; unfold at_least; destruct (gain Z O (empty_casts s) n a k); [apply Z.ltb_ge in K; lia|discriminate].
    - right. apply Z.leb_le in K. assert (E : twos_in (empty_casts s) n c (the_rival k) = twos Z O (empty_casts s) n a k).
      { rewrite counted_is; unfold twos_in, twos, for_own, the_rival; cbn [label its_class for_0 for_1 way_for]. rewrite O_for, O_way; auto. }
      rewrite E in K; lia.
  Qed.
End Counted.
