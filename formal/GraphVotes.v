(** Graph votes (docs/proofs.md, Theorems 22 and 23): a score of what is trusted, and one bounded vote for each item that may change. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote StackedVote LabelVotes.
Import ListNotations.
Open Scope Z_scope.

(** What a certificate knows of one graph. Items are numbered from 0. [advance]: what each class has in advance, from what is trusted;
    [says]: what an item in a state gives to a class; [states]: how many states an item may take. *)
Record graph_votes := GraphVotes {
  items : nat; given : nat -> Z; says : nat -> nat -> nat -> Z; states : nat -> nat
}.

Section Items.
  Variable G : graph_votes.

  (** score_k(s), where s is the state of each item *)
  Definition graph_score (s : nat -> nat) (k : nat) : Z := given G k + over (items G) (fun i => says G i (s i) k).
  (** lead_k(s) = score_a - score_k - [k < a] *)
  Definition graph_lead (s : nat -> nat) (a k : nat) : Z := graph_score s a - graph_score s k - tie k a.
  (** What an item in a state does for a against k. *)
  Definition speaks (a k i x : nat) : Z := says G i x a - says G i x k.
  (** [low] is the least of that over the states of each item. *)
  Definition is_low (a k : nat) (low : nat -> Z) : Prop := forall i, (i < items G)%nat ->
    (forall x, (x < states G i)%nat -> low i <= speaks a k i x) /\ exists x, (x < states G i)%nat /\ speaks a k i x = low i.
  (** f_i = u(z_i, s_i) - min over the states *)
  Definition loss (low : nat -> Z) (s : nat -> nat) (a k i : nat) : Z := speaks a k i (s i) - low i.
  (** The losses of the items of one group: edges that are there, and pairs that are apart, are counted apart. *)
  Definition members (group : nat -> bool) (b : bool) : list nat := filter (fun i => eqb (group i) b) (seq 0 (items G)).
  (** What each item of a group may lose at most. *)
  Definition losses (group : nat -> bool) (b : bool) (low : nat -> Z) (s : nat -> nat) (a k : nat) : list Z := map (loss low s a k) (members group b).

  (** The items of a group that are in another state now. *)
  Definition moved (group : nat -> bool) (b : bool) (s s' : nat -> nat) : list nat := filter (fun i => negb (s' i =? s i)%nat) (members group b).
  (** s' is s after an attack that changes at most m items of one group and m' of the other, to any states. *)
  Definition attacked_items (group : nat -> bool) (m m' : nat) (s s' : nat -> nat) : Prop :=
    (forall i, (i < items G)%nat -> (s' i < states G i)%nat) /\ (length (moved group true s s') <= m)%nat /\ (length (moved group false s s') <= m')%nat.

  (** Theorem 22, the test: the m largest losses of one group and the m' largest of the other sum to at most the lead. *)
  Definition withstands_items (group : nat -> bool) (s : nat -> nat) (C a m m' : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists low D D', is_low a k low
      /\ Permutation D (losses group true low s a k) /\ falling D /\ Permutation D' (losses group false low s a k) /\ falling D'
      /\ top m D + top m' D' <= graph_lead s a k.

End Items.

(** Where nodes come and go, only their types and their number count. [by_size]: what a number of nodes gives to a class; [of_type]: what a node
    of a type gives; [types]: how many types there are. *)
Record node_votes := NodeVotes { by_size : nat -> nat -> Z; of_type : nat -> nat -> Z; types : nat }.

Section Nodes.
  Variable N : node_votes.

  (** score_k of a graph whose nodes have these types *)
  Definition node_score (l : list nat) (k : nat) : Z := by_size N (length l) k + plus (map (fun t => of_type N t k) l).
  (** lead_k = score_a - score_k - [k < a] *)
  Definition node_lead (l : list nat) (a k : nat) : Z := node_score l a - node_score l k - tie k a.
  (** What a node of a type does for a against k. *)
  Definition backs (a k t : nat) : Z := of_type N t a - of_type N t k.
  (** What a number of nodes does for a against k. *)
  Definition size_lead (a k n : nat) : Z := by_size N n a - by_size N n k.
  (** [low] is the least vote of a type, for a against k. *)
  Definition is_lowest (a k : nat) (low : Z) : Prop :=
    (forall t, (t < types N)%nat -> low <= backs a k t) /\ exists t, (t < types N)%nat /\ backs a k t = low.

  (** l' is l after i injections, d deletions and r alterations. Edges are not read, so that any may change. *)
  Definition attacked_by (i d r : nat) (l l' : list nat) : Prop := exists kept gone came,
    Permutation l (kept ++ gone) /\ Permutation l' (kept ++ came) /\ length gone = (d + r)%nat /\ length came = (i + r)%nat
    /\ forall t, In t came -> (t < types N)%nat.
  (** At most so many of each. *)
  Definition attacked_within (i d r : nat) (l l' : list nat) : Prop :=
    exists i' d' r', (i' <= i)%nat /\ (d' <= d)%nat /\ (r' <= r)%nat /\ attacked_by i' d' r' l l'.
  (** At most m of all kinds together. *)
  Definition attacked_in_all (m : nat) (l l' : list nat) : Prop := exists i d r, (i + d + r <= m)%nat /\ attacked_by i d r l l'.

  (** What i injections, d deletions and r alterations take at most from the lead. D: votes for a against k, the largest first. *)
  Definition node_fall (D : list Z) (low : Z) (n a k i d r : nat) : Z :=
    size_lead a k n - size_lead a k (n - (d + r) + (i + r)) + top (d + r) D - Z.of_nat (i + r) * low.
  (** Theorem 23, the test, for a set of numbers of changes. *)
  Definition withstands_nodes (l : list nat) (C a : nat) (may : nat -> nat -> nat -> Prop) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists low D, is_lowest a k low /\ Permutation D (map (backs a k) l) /\ falling D
      /\ forall i d r, may i d r -> (d + r <= length l)%nat -> node_fall D low (length l) a k i d r <= node_lead l a k.
End Nodes.

(** ---- Proofs ---- *)

Section ItemProofs.
  Variable G : graph_votes.

  Lemma graph_lead_sum s a k : graph_lead G s a k = given G a - given G k - tie k a + over (items G) (fun i => speaks G a k i (s i)).
  Proof.
    unfold graph_lead, graph_score, speaks.
    assert (E : over (items G) (fun i => says G i (s i) a) - over (items G) (fun i => says G i (s i) k)
      = over (items G) (fun i => says G i (s i) a - says G i (s i) k)) by apply over_diff. lia.
  Qed.

  Lemma over_members n (group : nat -> bool) f :
    over n f = plus (map f (filter (fun i => eqb (group i) true) (seq 0 n))) + plus (map f (filter (fun i => eqb (group i) false) (seq 0 n))).
  Proof.
    induction n; [reflexivity|]. rewrite seq_S, !filter_app, !map_app, !plus_app. simpl over. rewrite IHn. simpl filter.
    destruct (group n); simpl; lia.
  Qed.

  Lemma plus_filter (f : nat -> Z) (p : nat -> bool) l :
    plus (map f l) = plus (map f (filter p l)) + plus (map f (filter (fun i => negb (p i)) l)).
  Proof. induction l; simpl; [lia|]. destruct (p a); simpl; lia. Qed.

  Lemma split_map (f : nat -> Z) (p : nat -> bool) l :
    Permutation (map f l) (map f (filter p l) ++ map f (filter (fun i => negb (p i)) l)).
  Proof. rewrite <- map_app. apply Permutation_map. apply filter_split. Qed.

  (** What an attack takes from the votes of one group. *)
  Lemma group_falls group b low s s' a k D m :
    (forall i, (i < items G)%nat -> low i <= speaks G a k i (s' i)) -> (forall i, (i < items G)%nat -> low i <= speaks G a k i (s i)) ->
    (length (moved G group b s s') <= m)%nat -> Permutation D (losses G group b low s a k) -> falling D ->
    plus (map (fun i => speaks G a k i (s i)) (members G group b)) - top m D <= plus (map (fun i => speaks G a k i (s' i)) (members G group b)).
  Proof.
    intros Low Low0 L P F.
    assert (In_items : forall i, In i (members G group b) -> (i < items G)%nat).
    { intros i I. unfold members in I. apply filter_In in I. destruct I as [I _]. apply in_seq in I. lia. }
    pose (changed := fun i => negb (s' i =? s i)%nat).
    assert (T : plus (map (loss G low s a k) (filter changed (members G group b))) <= top m D).
    { assert (Pos : forall z, In z D -> 0 <= z).
      { intros z I. apply (Permutation_in z P) in I. unfold losses in I. apply in_map_iff in I. destruct I as [i [<- I]].
        specialize (Low0 i (In_items i I)). unfold loss. lia. }
      pose proof (part_le_top D F _ _ (Permutation_trans P (split_map (loss G low s a k) changed (members G group b)))) as T.
      rewrite map_length in T. fold changed in L. unfold moved in L. fold changed in L. pose proof (top_grows D _ _ Pos L). lia. }
    rewrite (plus_filter (fun i => speaks G a k i (s i)) changed), (plus_filter (fun i => speaks G a k i (s' i)) changed).
    assert (Same : map (fun i => speaks G a k i (s' i)) (filter (fun i => negb (changed i)) (members G group b))
      = map (fun i => speaks G a k i (s i)) (filter (fun i => negb (changed i)) (members G group b))).
    { apply map_ext_in. intros i I. apply filter_In in I. destruct I as [_ I]. unfold changed in I. rewrite negb_involutive in I.
      apply Nat.eqb_eq in I. rewrite I. reflexivity. }
    rewrite Same.
    assert (Fall : plus (map (fun i => speaks G a k i (s i)) (filter changed (members G group b)))
      - plus (map (loss G low s a k) (filter changed (members G group b)))
      <= plus (map (fun i => speaks G a k i (s' i)) (filter changed (members G group b)))).
    { assert (H : forall i, In i (filter changed (members G group b)) -> (i < items G)%nat).
      { intros i I. apply filter_In in I. apply In_items. tauto. }
      clear T Same. revert H. generalize (filter changed (members G group b)) as l. induction l as [|i l IH]; intro H; simpl; [lia|].
      specialize (IH (fun j J => H j (or_intror J))). specialize (Low i (H i (or_introl eq_refl))). unfold loss at 1. lia. }
    lia.
  Qed.

  (** Theorem 22, "if". *)
  Theorem graph_votes_sound group s C a m m' : (a < C)%nat -> (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    withstands_items G group s C a m m' -> forall s', attacked_items G group m m' s s' -> is_label (graph_score G s') C a.
  Proof.
    intros L Fits H s' [Fits' [M M']]. split; auto. intros k Lk Nk.
    destruct (H k Lk Nk) as [low [D [D' [Low [P [F [P' [F' T]]]]]]]].
    assert (Low0 : forall z, (forall i, (i < items G)%nat -> (z i < states G i)%nat) -> forall i, (i < items G)%nat -> low i <= speaks G a k i (z i)).
    { intros z Z i I. destruct (Low i I) as [B _]. apply B, Z, I. }
    pose proof (group_falls group true low s s' a k D m (Low0 s' Fits') (Low0 s Fits) M P F) as E.
    pose proof (group_falls group false low s s' a k D' m' (Low0 s' Fits') (Low0 s Fits) M' P' F') as E'.
    assert (0 <= graph_lead G s' a k); [|unfold graph_lead in *; lia].
    rewrite graph_lead_sum in T. rewrite graph_lead_sum. rewrite (over_members (items G) group) in T. rewrite (over_members (items G) group).
    unfold members in E, E'. lia.
  Qed.

  (** The listed items, each in the state with its least vote. *)
  Lemma worst_states low s a k : is_low G a k low -> (forall i, (i < items G)%nat -> (s i < states G i)%nat) -> forall part, NoDup part ->
    (forall i, In i part -> (i < items G)%nat) -> exists s', (forall i, (i < items G)%nat -> (s' i < states G i)%nat)
      /\ (forall i, ~ In i part -> s' i = s i) /\ graph_lead G s' a k = graph_lead G s a k - plus (map (loss G low s a k) part).
  Proof.
    intros Low Fits part. induction part as [|i part IH]; intros U I.
    - exists s. repeat split; auto. simpl. lia.
    - inversion U as [|? ? X U']; subst. destruct (IH U' (fun j J => I j (or_intror J))) as [z [Z [Same E]]].
      assert (Li : (i < items G)%nat) by (apply I; left; auto). destruct (Low i Li) as [_ [x [Lx Ex]]].
      exists (fun j => if (j =? i)%nat then x else z j). split; [|split].
      + intros j J. destruct (Nat.eqb_spec j i) as [->|_]; auto.
      + intros j J. destruct (Nat.eqb_spec j i) as [->|_]; [elim J; left; auto|]. apply Same. intro Q. apply J. right. auto.
      + rewrite graph_lead_sum in E |- *. cbn [map plus].
        assert (T : forall n, (i < n)%nat -> over n (fun j => speaks G a k j (if (j =? i)%nat then x else z j))
          = over n (fun j => speaks G a k j (z j)) - loss G low s a k i).
        { induction n; intro Q; [lia|]. cbn [over]. destruct (Nat.eq_dec i n) as [->|D].
          - assert (over n (fun j => speaks G a k j (if (j =? n)%nat then x else z j)) = over n (fun j => speaks G a k j (z j))) as ->.
            { apply over_eq. intros j J. destruct (Nat.eqb_spec j n); [lia|auto]. }
            rewrite Nat.eqb_refl. rewrite (Same n X). unfold loss. lia.
          - rewrite IHn by lia. destruct (Nat.eqb_spec n i); [lia|]. lia. }
        rewrite (T (items G) Li). lia.
  Qed.

  (** Theorem 22, "only if": if the largest losses are more than a lead, changing these items brings the rival ahead. *)
  Theorem graph_votes_exact group s C a m m' k low D D' : (k < C)%nat -> k <> a -> is_low G a k low ->
    (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    Permutation D (losses G group true low s a k) -> falling D -> Permutation D' (losses G group false low s a k) -> falling D' ->
    graph_lead G s a k < top m D + top m' D' -> exists s', attacked_items G group m m' s s' /\ ~ is_label (graph_score G s') C a.
  Proof.
    intros Lk Nk Low Fits P F P' F' T. unfold losses in P, P'.
    apply Permutation_map_inv in P. destruct P as [order [-> Q]]. apply Permutation_map_inv in P'. destruct P' as [order' [-> Q']].
    assert (U : forall b o, Permutation (members G group b) o -> NoDup o).
    { intros b o R. apply (Permutation_NoDup R). apply NoDup_filter, seq_NoDup. }
    assert (Sub : forall b o x i, Permutation (members G group b) o -> In i (firstn x o) -> In i (members G group b)).
    { intros b o x i R I. apply (Permutation_in i (Permutation_sym R)). rewrite <- (firstn_skipn x o). apply in_app_iff. auto. }
    pose (part := firstn m order ++ firstn m' order').
    assert (Short : forall (o : list nat) x, NoDup o -> NoDup (firstn x o)).
    { intros o x R. rewrite <- (firstn_skipn x o) in R. clear -R. induction (firstn x o) as [|y l IH]; [constructor|].
      cbn in R. inversion R as [|? ? Y Z]; subst. constructor; auto. intro I. apply Y, in_app_iff. auto. }
    assert (Apart : forall i, In i (members G group true) -> ~ In i (members G group false)).
    { intros i I J. unfold members in I, J. apply filter_In in I. apply filter_In in J. destruct I as [_ I], J as [_ J]. destruct (group i); discriminate. }
    assert (Up : NoDup part).
    { unfold part. pose proof (Short order m (U true order Q)) as A1. pose proof (Short order' m' (U false order' Q')) as A2.
      assert (Dis : forall i, In i (firstn m order) -> ~ In i (firstn m' order')).
      { intros i I J. apply (Apart i); [apply (Sub true order m i Q I)|apply (Sub false order' m' i Q' J)]. }
      revert A1 Dis. generalize (firstn m order) as l. induction l as [|i l IH]; intros A1 Dis; [exact A2|].
      inversion A1 as [|? ? Y Z]; subst. cbn. constructor.
      - rewrite in_app_iff. intros [J|J]; [auto|]. apply (Dis i (or_introl eq_refl) J).
      - apply IH; auto. intros j J. apply Dis. right. auto. }
    assert (In_part : forall i, In i part -> (i < items G)%nat).
    { intros i I. unfold part in I. apply in_app_iff in I. destruct I as [I|I]; [apply (Sub true order m i Q) in I|apply (Sub false order' m' i Q') in I];
      unfold members in I; apply filter_In in I; destruct I as [I _]; apply in_seq in I; lia. }
    destruct (worst_states low s a k Low Fits part Up In_part) as [s' [Fits' [Same E]]].
    exists s'. split.
    - split; auto.
      assert (Count : forall b o x, Permutation (members G group b) o ->
        (forall i, In i (members G group b) -> In i part -> In i (firstn x o)) -> (length (moved G group b s s') <= x)%nat).
      { intros b o x R H. apply Nat.le_trans with (length (firstn x o)); [|apply firstn_le_length]. apply NoDup_incl_length.
        - unfold moved. apply NoDup_filter. unfold members. apply NoDup_filter, seq_NoDup.
        - intros i I. unfold moved in I. apply filter_In in I. destruct I as [I J]. apply H; auto.
          destruct (in_dec Nat.eq_dec i part) as [K|K]; auto. rewrite (Same i K), Nat.eqb_refl in J. discriminate. }
      split; [apply (Count true order m Q)|apply (Count false order' m' Q')]; intros i I J; unfold part in J; apply in_app_iff in J; destruct J as [J|J]; auto; exfalso.
      + apply (Apart i I). apply (Sub false order' m' i Q' J).
      + apply (Apart i); auto. apply (Sub true order m i Q J).
    - intros [_ H]. specialize (H k Lk Nk). unfold part in E. rewrite map_app, plus_app in E. unfold top in T. rewrite !firstn_map in T.
      unfold graph_lead in *. lia.
  Qed.

  (** One kind of change: the "n largest losses" of a file. *)
  Corollary graph_votes_one_kind s C a m : (a < C)%nat -> (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    withstands_items G (fun _ => true) s C a m 0 ->
    forall s', (forall i, (i < items G)%nat -> (s' i < states G i)%nat) ->
      (length (filter (fun i => negb (s' i =? s i)%nat) (seq 0 (items G))) <= m)%nat -> is_label (graph_score G s') C a.
  Proof.
    intros L Fits H s' Fits' M. apply (graph_votes_sound (fun _ => true) s C a m 0 L Fits H). split; auto.
    assert (E : forall l : list nat, filter (fun _ : nat => eqb true true) l = l) by (induction l as [|i l IH]; [reflexivity|cbn in *; rewrite IH; reflexivity]).
    assert (E0 : forall l : list nat, filter (fun _ : nat => eqb true false) l = []) by (induction l as [|i l IH]; [reflexivity|cbn in *; rewrite IH; reflexivity]).
    unfold moved, members.
    rewrite E, E0. split; auto.
  Qed.
End ItemProofs.

Section NodeProofs.
  Variable N : node_votes.

  Lemma plus_backs l a k : plus (map (fun t => of_type N t a) l) - plus (map (fun t => of_type N t k) l) = plus (map (backs N a k) l).
  Proof. unfold backs. induction l; simpl; lia. Qed.

  Lemma node_lead_sum l a k : node_lead N l a k = size_lead N a k (length l) - tie k a + plus (map (backs N a k) l).
  Proof. unfold node_lead, node_score, size_lead. pose proof (plus_backs l a k). lia. Qed.

  Lemma plus_low a k low l : (forall t, In t l -> low <= backs N a k t) -> Z.of_nat (length l) * low <= plus (map (backs N a k) l).
  Proof.
    induction l as [|t l IH]; intro H; [simpl; lia|]. specialize (IH (fun x I => H x (or_intror I))). specialize (H t (or_introl eq_refl)).
    cbn [length map plus]. rewrite Nat2Z.inj_succ. lia.
  Qed.

  (** One number of each kind of change takes no more than its fall. *)
  Lemma nodes_fall l l' a k i d r low D : is_lowest N a k low -> Permutation D (map (backs N a k) l) -> falling D -> attacked_by N i d r l l' ->
    node_lead N l a k - node_fall N D low (length l) a k i d r <= node_lead N l' a k.
  Proof.
    intros [Low _] P F [kept [gone [came [Pl [Pl' [Lg [Lc Fit]]]]]]]. rewrite !node_lead_sum. unfold node_fall.
    pose proof (Permutation_length Pl) as E. pose proof (Permutation_length Pl') as E'. rewrite app_length in E, E'.
    assert (Sum : plus (map (backs N a k) l) = plus (map (backs N a k) kept) + plus (map (backs N a k) gone)).
    { rewrite <- plus_app, <- map_app. apply plus_perm, Permutation_map, Pl. }
    assert (Sum' : plus (map (backs N a k) l') = plus (map (backs N a k) kept) + plus (map (backs N a k) came)).
    { rewrite <- plus_app, <- map_app. apply plus_perm, Permutation_map, Pl'. }
    assert (T : plus (map (backs N a k) gone) <= top (d + r) D).
    { rewrite <- Lg, <- (map_length (backs N a k) gone). apply (part_le_top D F _ (map (backs N a k) kept)).
      rewrite <- map_app. etransitivity; [exact P|]. apply Permutation_map. etransitivity; [exact Pl|apply Permutation_app_comm]. }
    pose proof (plus_low a k low came (fun t I => Low t (Fit t I))) as B. rewrite Lc in B.
    replace (length l - (d + r) + (i + r))%nat with (length l') by lia. lia.
  Qed.

  (** Theorem 23, "if", for each set of numbers of changes. *)
  Theorem node_votes_sound l C a (may : nat -> nat -> nat -> Prop) : (a < C)%nat -> withstands_nodes N l C a may ->
    forall l' i d r, may i d r -> attacked_by N i d r l l' -> is_label (node_score N l') C a.
  Proof.
    intros L H l' i d r M A. split; auto. intros k Lk Nk. destruct (H k Lk Nk) as [low [D [Low [P [F T]]]]].
    assert (Room : (d + r <= length l)%nat).
    { destruct A as [kept [gone [came [Pl [_ [Lg _]]]]]]. apply Permutation_length in Pl. rewrite app_length in Pl. lia. }
    specialize (T i d r M Room). pose proof (nodes_fall l l' a k i d r low D Low P F A). unfold node_lead in *. lia.
  Qed.

  (** So many changes of each kind. *)
  Corollary node_votes_within l C a i d r : (a < C)%nat -> withstands_nodes N l C a (fun i' d' r' => (i' <= i)%nat /\ (d' <= d)%nat /\ (r' <= r)%nat) ->
    forall l', attacked_within N i d r l l' -> is_label (node_score N l') C a.
  Proof. intros L H l' [i' [d' [r' [A [B [E K]]]]]]. apply (node_votes_sound l C a _ L H l' i' d' r'); auto. Qed.
  (** So many changes in all, of any kind. *)
  Corollary node_votes_in_all l C a m : (a < C)%nat -> withstands_nodes N l C a (fun i d r => (i + d + r <= m)%nat) ->
    forall l', attacked_in_all N m l l' -> is_label (node_score N l') C a.
  Proof. intros L H l' [i [d [r [A B]]]]. apply (node_votes_sound l C a _ L H l' i d r); auto. Qed.

  (** Theorem 23, "only if": if the fall is more than the lead, these changes bring the rival ahead. *)
  Theorem node_votes_exact l C a k low D i d r : (k < C)%nat -> k <> a -> is_lowest N a k low -> Permutation D (map (backs N a k) l) -> falling D ->
    (d + r <= length l)%nat -> node_lead N l a k < node_fall N D low (length l) a k i d r ->
    exists l', attacked_by N i d r l l' /\ ~ is_label (node_score N l') C a.
  Proof.
    intros Lk Nk [Low [t [Lt Et]]] P F Room T. apply Permutation_map_inv in P. destruct P as [order [-> Q]].
    pose (gone := firstn (d + r) order). pose (kept := skipn (d + r) order). pose (came := repeat t (i + r)).
    assert (Pl : Permutation l (kept ++ gone)).
    { etransitivity; [exact Q|]. unfold kept, gone. etransitivity; [|apply Permutation_app_comm]. rewrite firstn_skipn. reflexivity. }
    pose proof (Permutation_length Q) as Len.
    assert (Lg : length gone = (d + r)%nat) by (unfold gone; rewrite firstn_length; lia).
    assert (A : attacked_by N i d r l (kept ++ came)).
    { exists kept, gone, came. repeat split; auto; [unfold came; apply repeat_length|].
      intros x I. unfold came in I. apply repeat_spec in I. subst. auto. }
    exists (kept ++ came). split; auto. intros [_ H]. specialize (H k Lk Nk).
    assert (node_lead N (kept ++ came) a k = node_lead N l a k - node_fall N (map (backs N a k) order) low (length l) a k i d r); [|unfold node_lead in *; lia].
    rewrite !node_lead_sum. unfold node_fall, top. rewrite firstn_map. fold gone.
    assert (Sum : plus (map (backs N a k) l) = plus (map (backs N a k) kept) + plus (map (backs N a k) gone)).
    { rewrite <- plus_app, <- map_app. apply plus_perm, Permutation_map, Pl. }
    assert (Low' : forall n, plus (map (backs N a k) (repeat t n)) = Z.of_nat n * low).
    { induction n; [reflexivity|]. cbn [repeat map plus]. rewrite IHn, Nat2Z.inj_succ. lia. }
    rewrite map_app, plus_app, app_length, Sum. unfold came at 2. rewrite Low'. unfold came. rewrite repeat_length.
    apply Permutation_length in Pl. rewrite app_length in Pl. replace (length l - (d + r) + (i + r))%nat with (length kept + (i + r))%nat by lia. lia.
  Qed.
End NodeProofs.
