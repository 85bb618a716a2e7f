(** Poisoned training graphs (docs/proofs.md, Theorem 15): models that are trained apart, nested with a division of the test graph. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph GraphTask Checker CheckerProofs CheckedCertificates.
Import ListNotations.
Open Scope Z_scope.

(** ---- What a file says ---- *)

(** The votes of all models in one view (subgraph) of a target: the class, or None for an abstention, and whether it is stable. *)
Definition in_view := list (vote * bool).
(** Stable votes for class k. *)
Fixpoint sure_for (k : nat) (l : in_view) : Z :=
  match l with [] => 0 | (y, st) :: l' => (if st && beq y (Some k) then 1 else 0) + sure_for k l' end.
(** Votes that are not stable, which count for every rival. *)
Fixpoint unsure (l : in_view) : Z := match l with [] => 0 | (_, st) :: l' => (if st then 0 else 1) + unsure l' end.
(** What the models of a view elect. *)
Definition elected (C : nat) (l : in_view) : nat := best (fun k => sure_for k l) C.
(** How many votes the elected class b leads k by. *)
Definition lead_over (b k : nat) (l : in_view) : Z := sure_for b l - sure_for k l - unsure l - tie k b.
(** The least of the numbers f k of the classes other than b, and of m. *)
Fixpoint least_of (f : nat -> Z) (b C : nat) (m : Z) : Z :=
  match C with O => m | S k => let x := least_of f b k m in if Nat.eqb k b then x else Z.min (f k) x end.
(** M of a view: how many models may be poisoned without another class being elected there; negative if rounding alone may do that. *)
Definition bears (C : nat) (l : in_view) : Z :=
  least_of (fun k => lead_over (elected C l) k l / 2) (elected C l) C (Z.of_nat (length l)).

(** A view, weighed: its group, its tier, the elected class, and M. *)
Record view := View { v_group : Z; v_tier : tier; v_class : nat; v_bears : Z }.
(** Weighs the votes of a view. *)
Definition weigh (C : nat) (g : Z) (t : tier) (l : in_view) : view := View g t (elected C l) (bears C l).
(** n is at most x. *)
Definition fits (n : lim) (x : Z) : bool := match n with Some m => m <=? x | None => false end.
(** The vote of a view where n training graphs are poisoned: stable if its M is not less than n. *)
Definition entry_of (n : lim) (v : view) : Z * entry := (v_group v, Entry (Some (v_class v)) (fits n (v_bears v)) (v_tier v) false).
(** A view in which the graph has nothing abstains, whoever was trained on what. *)
Definition nothing : entry := Entry None true Unlisted false.
(** The target of the checker where n training graphs are poisoned. *)
Definition poisoned_target (n : lim) (views : list view) (cover : list Z) : target :=
  Target (map (entry_of n) views) nothing None true cover.
(** n poisoned training graphs and nothing else: the radius of such certificates. *)
Definition untouched : budget := Budget (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) None.
(** Whether the label holds against n poisoned training graphs and a budget for the test graph. *)
Definition poisoned_holds (s : settings) (views : list view) (cover : list Z) (n : lim) (q : query) : bool :=
  holds s (count_target s (poisoned_target n views cover)) q.
(** The stated radius is the largest number of poisoned training graphs against which the label holds. *)
Definition right_poisoned_radius (s : settings) (views : list view) (cover : list Z) (models x : Z) : bool :=
  is_largest (fun n => poisoned_holds s views cover (Some n) (untouched, false)) models x.

(** At most this many targets break, of those that do not hold one by one: one at most if the training graphs are as they were, because one test graph is
    attacked at a time; poisoned models may break all of them. *)
Definition poisoned_broken (n : lim) (fails : Z) : Z := match n with Some m => if m <=? 0 then Z.min 1 fails else fails | None => fails end.

(** ---- Training ---- *)

Section Training.
  Variables (key sample id F W : Type).
  Notation graph := (graph id F W).
  (** A training set: the graph, with its label, of each id; None where there is none. *)
  Definition dataset := key -> option sample.
  (** At most n training graphs are inserted, deleted or altered. One that gets another id is deleted and inserted: two. *)
  Definition poisoned (n : lim) (D D' : dataset) : Prop :=
    exists l : list key, few l n /\ forall x, ~ In x l -> D' x = D x.
  (** [train i D]: model i, trained on D, on all machines at once. *)
  Definition learner := nat -> dataset -> gmodel id F W.
  (** Model i reads nothing but the training graphs of part i, and a graph's part depends on its id alone. *)
  Definition isolated (part : key -> nat) (train : learner) : Prop :=
    forall i D D', (forall x, part x = i -> D' x = D x) -> forall G y, train i D' G y -> train i D G y.

  Variables (M C : nat) (part : key -> nat) (train : learner).
  (** A graph without nodes. *)
  Definition is_empty (G : graph) : Prop := forall x, node G x = None.
  (** What the models elect on a graph; on one without nodes they abstain. *)
  Definition ensemble (D : dataset) : gmodel id F W := fun G y =>
    (is_empty G /\ y = None)
    \/ (~ is_empty G /\ exists r, (forall i, (i < M)%nat -> train i D G (r i)) /\ y = Some (voted C M (fun _ => 0) r)).
  (** The same after n training graphs were poisoned. *)
  Definition poisoned_ensemble (n : lim) (D : dataset) : gmodel id F W := fun G y =>
    exists D', poisoned n D D' /\ ensemble D' G y.

  (** The file tells the truth about the models' votes on a graph H. *)
  Definition true_votes (D : dataset) (H : graph) (l : in_view) : Prop :=
    length l = M /\ forall i, (i < M)%nat -> snd (nth i l (None, false)) = true -> forall y, train i D H y -> y = fst (nth i l (None, false)).
  (** The file tells the truth about view i, whose graph is H: it is listed with the models' votes, or H has no node. *)
  Definition true_view (D : dataset) (views : list view) (i : Z) (H : graph) : Prop :=
    match find (fun v => i =? v_group v) views with
    | Some v => ~ is_empty H /\ exists l, true_votes D H l /\ v_class v = elected C l /\ v_bears v = bears C l
    | None => is_empty H
    end.

  (** ---- Proofs ---- *)

  (** The votes of a view as Theorem 2 has them. *)
  Definition model_votes (l : in_view) : votes :=
    Votes (length l) (fun i => fst (nth i l (None, false))) (fun i => snd (nth i l (None, false))) (fun _ => Reached).

  Lemma num_shift m p : num (S m) p = (if p 0%nat then 1 else 0) + num m (fun i => p (S i)).
  Proof. induction m as [|m IH]; [simpl; lia|]. change (num (S (S m)) p) with (num (S m) p + (if p (S m) then 1 else 0)). rewrite IH. simpl num. lia. Qed.
  Lemma sure_is_standing k l : sure_for k l = standing (model_votes l) k.
  Proof.
    unfold standing, model_votes; cbn [groups cast stable]. induction l as [|[y st] l IH]; [reflexivity|].
    cbn [length]. rewrite num_shift. cbn [sure_for nth fst snd]. rewrite IH. reflexivity.
  Qed.
  Lemma unsure_is_conceded l : unsure l = conceded (model_votes l).
  Proof.
    unfold conceded, model_votes; cbn [groups stable]. induction l as [|[y st] l IH]; [reflexivity|].
    cbn [length]. rewrite num_shift. cbn [unsure nth snd]. rewrite IH. destruct st; reflexivity.
  Qed.
  Lemma least_of_le f b m : forall c k, (k < c)%nat -> k <> b -> least_of f b c m <= f k.
  Proof.
    induction c as [|c IH]; [lia|]; intros k Hk N; cbn [least_of].
    destruct (Nat.eq_dec k c) as [->|D]; [destruct (Nat.eqb_spec c b); [contradiction|lia]|].
    specialize (IH k ltac:(lia) N). destruct (Nat.eqb c b); lia.
  Qed.

  Section Stay.
    Hypothesis alone : isolated part train.
    Hypothesis some_class : (0 < C)%nat.

    (** Theorem 15, one view: n poisoned graphs do not change what is elected where M is at least n. *)
    Theorem view_stays (D D' : dataset) (H : graph) (l : in_view) (n : Z) (y : vote) :
      true_votes D H l -> ~ is_empty H -> n <= bears C l -> poisoned (Some n) D D' -> ensemble D' H y -> y = Some (elected C l).
    Proof.
      intros [E V] NE B [p [Fp P]] [[X _]|[_ [r [R ->]]]]; [contradiction|]. f_equal. rewrite <- E.
      change (length l) with (groups (model_votes l)).
      apply (vote_sound (model_votes l) C (fun _ => 0) (fun _ => 0) 0 (elected C l) (Reach (Some n) (Some n) (Some n)) r).
      - split; [apply best_is_label; auto|]. intros k Hk N.
        assert (L : 2 * n <= lead_over (elected C l) k l).
        { pose proof (least_of_le (fun k => lead_over (elected C l) k l / 2) (elected C l) (Z.of_nat (length l)) C k Hk N) as Q.
          unfold bears in B. cbv beta in Q. pose proof (Z.mul_div_le (lead_over (elected C l) k l) 2 ltac:(lia)). lia. }
        assert (Q : forall x, limit (Reach (Some n) (Some n) (Some n)) x <= n) by (intro x; unfold limit; simpl; lia).
        pose proof (Q (for_class (model_votes l) (elected C l))); pose proof (Q (not_for (model_votes l) k)).
        unfold margin; unfold lead_over in L; rewrite !sure_is_standing, unsure_is_conceded in L. lia.
      - intros; lia.
      - assert (S0 : forall i, (i < groups (model_votes l))%nat -> stable (model_votes l) i = true -> In i (map part p) \/ r i = cast (model_votes l) i).
        { cbn [groups stable cast model_votes]. rewrite E. intros i Hi Hs. destruct (in_dec Nat.eq_dec i (map part p)) as [|N]; auto; right.
          apply (V i Hi Hs), (alone i D D'); auto. intros x Hx; apply P; intro I; apply N, in_map_iff; exists x; auto. }
        assert (F0 : within (Z.of_nat (length (map part p))) (Some n)) by (rewrite map_length; exact Fp).
        apply (Moves _ _ r (map part p) (map part p) (map part p)); auto.
    Qed.

    Lemma entry_of_view n views i :
      entry_at (map (entry_of n) views) nothing i
      = match find (fun v => i =? v_group v) views with Some v => snd (entry_of n v) | None => nothing end.
    Proof. induction views as [|v views IH]; [reflexivity|]. cbn [map entry_at find entry_of]. destruct (i =? v_group v); auto. Qed.

    (** What the checker takes for stable is read alike after n training graphs were poisoned. *)
    Theorem poisoned_vote (D : dataset) (views : list view) (n : lim) (i : Z) (H : graph) (y : vote) :
      true_view D views i H -> is_stable (entry_at (map (entry_of n) views) nothing i) = true ->
      poisoned_ensemble n D H y -> y = choice (entry_at (map (entry_of n) views) nothing i).
    Proof.
      rewrite entry_of_view; unfold true_view. destruct (find _ views) as [v|].
      - intros [NE [l [V [E B]]]] S0 [D' [P X]]. cbn in *. destruct n as [n|]; [|discriminate]. cbn in S0; apply Z.leb_le in S0.
        rewrite E. apply (view_stays D D' H l n); auto. rewrite <- B; exact S0.
      - intros E _ [D' [_ [[_ ->]|[X _]]]]; [reflexivity|contradiction].
    Qed.
  End Stay.

  Lemma ensemble_extensional n D : (forall i D', extensional id F W (train i D')) -> extensional id F W (poisoned_ensemble n D).
  Proof.
    intros X G G' y Hn Ha.
    assert (E : is_empty G <-> is_empty G') by (split; intros Q x; [rewrite Hn|rewrite <- Hn]; auto).
    assert (Q : forall D' i z, train i D' G z <-> train i D' G' z) by (intros; apply X; auto).
    split; intros [D' [P [[Y ->]|[Y [r [R ->]]]]]]; exists D'; split; auto; [left|right|left|right]; split; auto; try tauto;
      try (exists r; split; auto; intros i Hi; apply Q; auto).
  Qed.
End Training.

(** What a machine reads, whichever of the n poisoned training sets the models saw. *)
Definition read_poisoned {key sample id F W} (M C : nat) (train : learner key sample id F W) (n : lim) (D : dataset key sample)
    (views : nat) (sub : nat -> graph id F W -> Prop) (r : nat -> vote) : Prop :=
  exists D', poisoned key sample n D D' /\ forall i, (i < views)%nat -> exists H, sub i H /\ ensemble key sample id F W M C train D' H (r i).

(** Theorem 15, node-centric, graphs without self-loops: where the checker says yes to n and B, the label is that of the file after n
    training graphs were inserted, deleted or altered and the test graph was changed within B. *)
Theorem poisoned_node_centric :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> nat) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train -> (forall i D', extensional id F W (train i D')) ->
    (forall i, (i < Z.to_nat (num_groups s))%nat ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) (gsub id F W h i G)) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached ->
       forall x y, h x = i -> h y = i -> node G x <> None -> node G y <> None -> x = y) ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => H = gsub id F W h i G') r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros key sample id F W id_eq M part train D s views cover n B own h G R0 R1 HC H I X V t HT HL G' r Ha HL' [D' [P Hr]].
  apply (checked_node_centric_graph id F W id_eq s t B own h (poisoned_ensemble key sample id F W M (num_classes s) train n D) G) with (G' := G'); auto.
  - apply ensemble_extensional; auto.
  - split; auto.
    + intros i Hi Hs y Hy. apply (poisoned_vote key sample id F W M (num_classes s) part train I HC D views n (Z.of_nat i) (gsub id F W h i G) y); auto.
    + intros i Hi Hu x Hx. specialize (V i Hi); unfold true_view in V. cbn [votes_of tier_of] in Hu. unfold t, poisoned_target in Hu; cbn [listed_votes default_vote] in Hu.
      rewrite entry_of_view in Hu. destruct (find _ views) as [v|] eqn:Ef.
      * exfalso. unfold poisoned_holds in H. apply find_some in Ef. destruct Ef as [Ef _].
        assert (MM : well_made s t = true) by (unfold holds, own_groups in H; rewrite R0 in H; destruct (reach_of _ _ _ _); [eapply test_made; eauto|discriminate]).
        unfold well_made in MM; rewrite !andb_true_iff in MM; destruct MM as [[[_ MM] _] _]. rewrite forallb_forall in MM.
        specialize (MM (entry_of n v) (in_map _ _ _ Ef)). cbn in Hu, MM. rewrite Hu in MM; discriminate.
      * specialize (V x). cbn in V. rewrite Hx, Nat.eqb_refl in V; exact V.
  - intros i Hi. destruct (Hr i Hi) as [H0 [-> E]]. exists D'; auto.
Qed.

(** Theorem 15, node-centric, self-loops kept. *)
Theorem poisoned_node_centric_with_loops :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> nat) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train -> (forall i D', extensional id F W (train i D')) ->
    (forall i, (i < Z.to_nat (num_groups s))%nat ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) (gsub id F W h i G)) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached -> forall x, h x = i -> node G x = None) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => H = gsub id F W h i G') r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros key sample id F W id_eq M part train D s views cover n B own h G R0 R1 HC H I X V t HT G' r Ha [D' [P Hr]].
  apply (checked_node_centric_graph_with_loops id F W id_eq s t B own h (poisoned_ensemble key sample id F W M (num_classes s) train n D) G) with (G' := G'); auto.
  - apply ensemble_extensional; auto.
  - split; auto.
    intros i Hi Hs y Hy. apply (poisoned_vote key sample id F W M (num_classes s) part train I HC D views n (Z.of_nat i) (gsub id F W h i G) y); auto.
  - intros i Hi. destruct (Hr i Hi) as [H0 [-> E]]. exists D'; auto.
Qed.

(** Theorem 15, edge-centric. *)
Theorem poisoned_edge_centric :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> id -> nat) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train ->
    (forall x y, h x y = h y x) ->
    (forall i H, (i < Z.to_nat (num_groups s))%nat -> is_sub id F W h i G H ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) H) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached -> forall x y, arcs_of id F W h i G x y = None) ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row cover) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => is_sub id F W h i G' H) r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros key sample id F W id_eq M part train D s views cover n B own h G someone R0 R1 HC H I Hh V t HT HR G' r Ha [D' [P Hr]].
  apply (checked_edge_centric_graph id F W id_eq s t B own h (poisoned_ensemble key sample id F W M (num_classes s) train n D) G someone) with (G' := G'); auto.
  - split; auto.
    intros i Hi Hs y [H0 [S0 Hy]]. apply (poisoned_vote key sample id F W M (num_classes s) part train I HC D views n (Z.of_nat i) H0 y); auto.
  - intros i Hi. destruct (Hr i Hi) as [H0 [S0 E]]. exists H0; split; auto. exists D'; auto.
Qed.

(** Theorem 15, the radius: n poisoned training graphs, the test graph as it is, in any division. *)
Theorem poisoned_radius :
  forall (s : settings) (views : list view) (cover : list Z) (models x : Z), 0 <= x ->
    right_poisoned_radius s views cover models x = true ->
    poisoned_holds s views cover (Some x) (untouched, false) = true.
Proof.
  intros s views cover models x Hx H; unfold right_poisoned_radius, is_largest in H. destruct (Z.ltb_spec x 0); [lia|].
  rewrite !andb_true_iff in H; apply H.
Qed.
