(** The checker says yes: the label holds. One theorem for each rule. Their hypotheses are what a verifier without graph and model takes on trust:
    the file tells the truth about the graph and the votes, and the model is local (or, for graphs, ignores numbering). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair
  OwnGroupsOfGraphs Checker CheckerProofs.
Import ListNotations.
Open Scope Z_scope.

(** What a machine uses as prior: votes for each class, and votes for the no_edge prediction, read as y. *)
Definition prior_read (s : settings) (t : target) (P' : nat -> Z) : Prop :=
  exists y, (no_edge_stable t = true -> y = no_edge_choice t)
    /\ forall k, P' k = class_prior_of s k + for_no_edge (no_edge_prior s) y k.
(** The same where empty groups have no number, so that their votes are no part of the prior. *)
Definition own_prior_read (s : settings) (t : target) (P' : nat -> Z) : Prop :=
  exists y, (no_edge_stable t = true -> y = no_edge_choice t)
    /\ forall k, P' k = nth k (class_prior s) 0 + for_no_edge (no_edge_prior s) y k.

(** The listed votes of a file are those of keys of another kind, neighbours or pairs, under some numbering of these. *)
Definition numbered {key} (t : target) (V : own_votes key) : Prop :=
  exists number : key -> Z, map number (cast_by _ V) = map fst (listed_votes t)
    /\ forall u, In u (cast_by _ V) ->
         own_cast _ V u = own_cast _ (own_votes_of t) (number u) /\ own_stable _ V u = own_stable _ (own_votes_of t) (number u)
         /\ one_way _ V u = one_way _ (own_votes_of t) (number u).

(** ---- Proofs ---- *)

Lemma prior_read_doubt s t P' : prior_read s t P' -> forall a k,
  prior_certain s t a - prior_certain s t k - prior_doubt s t <= P' a - P' k.
Proof.
  intros [y [H E]] a k; rewrite !E; unfold prior_certain, prior_doubt, for_no_edge. destruct (no_edge_stable t); simpl.
  - rewrite H by auto. destruct (beq (no_edge_choice t) (Some a)), (beq (no_edge_choice t) (Some k)); lia.
  - destruct (beq y (Some a)), (beq y (Some k)); lia.
Qed.
Lemma own_prior_read_doubt s t P' : own_prior_read s t P' -> forall a k,
  own_prior s t a - own_prior s t k - prior_doubt s t <= P' a - P' k.
Proof.
  intros [y [H E]] a k; rewrite !E; unfold own_prior, prior_doubt, for_no_edge. destruct (no_edge_stable t); simpl.
  - rewrite H by auto. destruct (beq (no_edge_choice t) (Some a)), (beq (no_edge_choice t) (Some k)); lia.
  - destruct (beq y (Some a)), (beq y (Some k)); lia.
Qed.

Lemma few_clip {A} (l : list A) n : few l n -> few l (clip n).
Proof. unfold few, within, clip; destruct n as [x|]; auto; destruct (huge <=? x); auto. Qed.
Lemma affords_clip {id} (id_eq : forall x y : id, {x = y} + {x <> y}) B A : affords id_eq B A -> affords id_eq (clip_budget B) A.
Proof.
  intros [f1 f2 f3 f4 f5 f6 f7 f8]; split; simpl; try (apply few_clip; assumption). intro w; apply few_clip, f5.
Qed.
Lemma attacked_clip {id F W} (id_eq : forall x y : id, {x = y} + {x <> y}) B v (G G' : graph id F W) :
  attacked id_eq B v G G' -> attacked id_eq (clip_budget B) v G G'.
Proof. intros [A [L [H S]]]; exists A; split; [|split]; auto; apply affords_clip; auto. Qed.

Lemma test_made s t n : test (count_target s t) n = true -> well_made s t = true.
Proof. unfold test; intro H; apply andb_prop in H; apply H. Qed.
Lemma own_test_made y s t n : own_test y (count_target s t) n = true -> well_made s t = true.
Proof. unfold own_test; intro H; apply andb_prop in H; apply H. Qed.
Lemma any_test_made y b s t n : any_test y b (count_target s t) n = true -> well_made s t = true.
Proof. unfold any_test; intro H; apply andb_prop in H; apply H. Qed.
Lemma label_counted s t : label (count_target s t) = label_of s t.
Proof. reflexivity. Qed.

(** What a yes means for votes: the test of Theorem 2 was passed. *)
Lemma holds_test s t B own : own_groups s = false -> (0 < num_classes s)%nat -> holds s (count_target s t) (B, own) = true ->
  exists n, reach_of s (count_target s t) (clip_budget B) own = Some n
    /\ withstands (votes_of s t) (num_classes s) (prior_certain s t) (prior_doubt s t) (label_of s t) n
    /\ num_reached (votes_of s t) = num_reached_in (count_target s t).
Proof.
  intros O C H; unfold holds in H; rewrite O in H; cbn [fst snd] in H.
  destruct (reach_of s (count_target s t) (clip_budget B) own) as [n|]; [|discriminate].
  pose proof (test_made _ _ _ H) as M. exists n; split; auto. split; [apply test_sound; auto|apply V_reached; auto].
Qed.
Lemma holds_own_test s t B own : own_groups s = true -> (0 < num_classes s)%nat -> holds s (count_target s t) (B, own) = true ->
  exists n, touches_of s (count_target s t) (clip_budget B) own = Some n
    /\ own_withstands Z (own_votes_of t) (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) (label_of s t) n.
Proof.
  intros O C H; unfold holds in H; rewrite O in H; cbn [fst snd] in H.
  destruct (touches_of s (count_target s t) (clip_budget B) own) as [n|]; [|discriminate].
  exists n; split; auto. eapply own_test_sound; eauto using own_test_made.
Qed.

(** Counts do not depend on how keys are numbered. *)
Lemma amount_map {A B} (g : A -> B) p q l : (forall u, In u l -> q u = p (g u)) -> amount A q l = amount B p (map g l).
Proof.
  intro H; unfold amount; induction l as [|u l IH]; simpl; auto. rewrite (H u (or_introl eq_refl)), IH; auto.
  intros; apply H; right; auto.
Qed.
Section Numbered.
  Variables (key : Type) (t : target) (V : own_votes key).
  Hypothesis N : numbered t V.
  Lemma numbered_amount (p : vote -> bool -> bool -> bool) :
    amount key (fun u => p (own_cast _ V u) (own_stable _ V u) (one_way _ V u)) (cast_by _ V)
    = amount Z (fun u => p (own_cast _ (own_votes_of t) u) (own_stable _ (own_votes_of t) u) (one_way _ (own_votes_of t) u)) (cast_by _ (own_votes_of t)).
  Proof.
    destruct N as [nr [E H]]. change (cast_by Z (own_votes_of t)) with (map fst (listed_votes t)); rewrite <- E.
    apply amount_map; intros u Hu; destruct (H u Hu) as [-> [-> ->]]; auto.
  Qed.
  Lemma numbered_length : length (cast_by _ V) = length (cast_by _ (own_votes_of t)).
  Proof. destruct N as [nr [E _]]. rewrite <- (map_length nr), E; auto. Qed.
  Lemma numbered_counts : (forall k, o_for _ V k = o_for _ (own_votes_of t) k) /\ (forall k, o_not _ V k = o_not _ (own_votes_of t) k)
    /\ (forall k, o_way _ V k = o_way _ (own_votes_of t) k) /\ (forall k, o_way_not _ V k = o_way_not _ (own_votes_of t) k)
    /\ (forall P d y a k, o_margin _ V P d y a k = o_margin _ (own_votes_of t) P d y a k).
  Proof.
    assert (F : forall k, o_for _ V k = o_for _ (own_votes_of t) k) by (intro k; apply (numbered_amount (fun y s _ => s && beq y (Some k)))).
    assert (U : o_unstable _ V = o_unstable _ (own_votes_of t)) by apply (numbered_amount (fun _ s _ => negb s)).
    split; [exact F|]. split; [intro k; apply (numbered_amount (fun y s _ => s && negb (beq y (Some k))))|].
    split; [intro k; apply (numbered_amount (fun y s w => s && w && beq y (Some k)))|].
    split; [intro k; apply (numbered_amount (fun y s w => s && w && negb (beq y (Some k))))|].
    intros; unfold o_margin; rewrite !F, U, numbered_length; auto.
  Qed.
  Lemma numbered_withstands C P d y a n : own_withstands _ (own_votes_of t) C P d y a n -> own_withstands _ V C P d y a n.
  Proof.
    destruct numbered_counts as [F [O [W [WN M]]]]. intros [Ha H]; split; auto; intros k Hk K; specialize (H k Hk K).
    rewrite M; unfold gain; rewrite !F, !O, !W, !WN; exact H.
  Qed.
  Lemma numbered_radius C P d y b a x : own_radius_ok _ (own_votes_of t) C P d y b a x -> own_radius_ok _ V C P d y b a x.
  Proof.
    destruct numbered_counts as [F [O [W [WN M]]]]. intros [Ha H]; split; auto; intros k Hk K; specialize (H k Hk K).
    rewrite M; unfold any_gain; rewrite !F, !O, !W; exact H.
  Qed.
  Lemma numbered_touches C P d y n a x : own_touches_ok _ (own_votes_of t) C P d y n a x -> own_touches_ok _ V C P d y n a x.
  Proof.
    destruct numbered_counts as [F [O [W [WN M]]]]. intros [Ha H]; split; auto; intros k Hk K; specialize (H k Hk K).
    rewrite M; unfold gain, twos; rewrite !F, !O, !W, !WN; exact H.
  Qed.
End Numbered.

(** ---- One theorem for each rule ---- *)

(** Theorem 3: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_edge_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByEdge -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    covers id F W (Z.to_nat (num_groups s)) h v G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> ereading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.
Proof.
  intros id F W id_eq s t B own h f v G R0 R1 HC H Hh Lf Hf Hc G' r P' Ha Hr HP.
  destruct (holds_test s t B own) as [n [E [Hw _]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  eapply edge_centric_certificate; eauto using attacked_clip. intros; apply prior_read_doubt; auto.
Qed.

(** Theorem 4: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_node_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByNode -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local f ->
    faithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' -> reading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.
Proof.
  intros id F W id_eq s t B own h f v G R0 R1 HC H Lf Hf G' r P' Ha Hr HP.
  destruct (holds_test s t B own) as [n [E [Hw HR]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  eapply (node_centric_certificate id F W id_eq _ h f v G (votes_of s t) _ (prior_certain s t) (prior_doubt s t) _ (clip_budget B));
    eauto using attacked_clip; [|intros; apply prior_read_doubt; auto].
  unfold node_reach; rewrite HR; exact Hw.
Qed.

(** Theorem 5: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gated :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (f : model id (option F) W) (v : id) (G : graph id F W),
    rule s = ByGatedNode -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    local f ->
    tfaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      tattacked id F W id_eq v own B G G' -> treading id F W (Z.to_nat (num_groups s)) h f v G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own h f v G R0 HC D H Lf Hf G' r Ha Hr.
  destruct (holds_test s t B own) as [n [E [Hw HR]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E.
  destruct ((keeps_ids s || is_zero (delete_nodes (clip_budget B))) && negb (of_graphs s)); [|discriminate]; injection E as <-.
  rewrite D in Hw. eapply (gated_certificate id F W id_eq _ h f v G (votes_of s t) _ (prior_certain s t) _ own (clip_budget B)); eauto.
  - unfold gated_reach; rewrite HR; exact Hw.
  - destruct Ha as [A [L [L4 [Ha R]]]]; exists A; split; auto; split; auto; split; auto. apply affords_clip; auto.
Qed.

(** Theorem 6, edge-centric: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_edge_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> id -> nat) (g : gmodel id F W) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, h x y = h y x) ->
    egfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> egreading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own h g G someone R0 R1 HC D H Hh Hf Hc G' r Ha Hr.
  destruct (holds_test s t B own) as [n [E [Hw HR]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  rewrite D in Hw. eapply (edge_centric_graph_certificate id F W id_eq _ h g G _ (row (cover_row t)) _ _ _ (clip_budget B) someone); eauto.
  destruct Ha as [A [L [L3 Ha]]]; exists A; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 6, node-centric, without self-loops: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_node_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g ->
    gfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own h g G R0 R1 HC D H Lg Hf Hl G' r Ha Hl' Hr.
  destruct (holds_test s t B own) as [n [E [Hw HR]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  rewrite D in Hw. eapply (node_centric_graph_certificate id F W id_eq _ h g G _ _ _ _ (clip_budget B)); eauto.
  destruct Ha as [A [L [L3 Ha]]]; exists A; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 6, node-centric, self-loops kept: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_node_centric_graph_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g ->
    gfaithful_loops id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own h g G R0 R1 HC D H Lg Hf G' r Ha Hr.
  destruct (holds_test s t B own) as [n [E [Hw HR]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0, R1 in E. destruct own; [rewrite andb_false_r in E; discriminate E|split; auto].
  destruct (keeps_ids s || is_zero (delete_nodes (clip_budget B))); [|discriminate]; simpl in E; injection E as <-.
  rewrite D in Hw. eapply (node_centric_graph_certificate_with_loops id F W id_eq _ h g G _ _ _ _ (clip_budget B)); eauto.
  destruct Ha as [A [L [L3 Ha]]]; exists A; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** GNNCert: a node without edges in an attack that [affords] nothing for nodes. *)
Theorem checked_gnncert_e :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (he : id -> id -> nat) (g : shown_model id W F) (G : graph id F W),
    rule s = GnncertE -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, he x y = he y x) -> sees_only id W F g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) F g (esub id F W he) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> affords id_eq B A -> shown_reading id F W (Z.to_nat (num_groups s)) F g (esub id F W he) G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own he g G R0 HC D H Hh S Hf A G' r HA Ha Hr.
  destruct (holds_test s t B own) as [n [E [Hw _]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E. apply affords_clip in Ha.
  destruct (no_nodes (clip_budget B)); [|discriminate]. destruct (is_zero (change_features (clip_budget B))) eqn:Z1; [|discriminate].
  destruct own; [discriminate|]. destruct (keeps_ids s || _); [|discriminate]. simpl in E; injection E as <-. split; auto.
  rewrite D in Hw. eapply (gnncert_e_certificate id F W id_eq _ he g G _ _ _ _ (clip_budget B)); eauto.
  pose proof (few_altered _ _ _ _ Ha) as FA. unfold few, within, is_zero in *. destruct (change_features (clip_budget B)); [|discriminate].
  apply Z.leb_le in Z1. destruct (altered A); auto; simpl in FA; lia.
Qed.

(** [own]: then one altered node more, the target, is allowed for. *)
Definition with_own (own : bool) (B : budget) : lim := ladd (change_features B) (one_if own).

Lemma few_with_own {A} (l : list A) own B : few l (with_own own B) -> few l (ladd (change_features (clip_budget B)) (one_if own)).
Proof.
  unfold with_own, clip_budget, few, within, clip; simpl. destruct (change_features B) as [x|]; simpl; auto. destruct (huge <=? x); simpl; auto.
Qed.
Lemma no_pair_changes {id F W} B (A : attack id) (G G' : graph id F W) : is_zero (touched_edges (clip_budget B)) = true -> few (pairs_of id A) (touched_edges B) ->
  edges_and_features A G G' -> forall x y, arc G' x y = arc G x y.
Proof.
  intros Z1 Fp HA.
  assert (NP : pairs_of id A = []).
  { revert Z1 Fp; unfold touched_edges, clip_budget, clip, few, within, is_zero; simpl.
    destruct (add_edges B) as [x|], (delete_edges B) as [y|], (change_edges B) as [z|]; simpl;
      try (destruct (huge <=? x)); try (destruct (huge <=? y)); try (destruct (huge <=? z)); simpl; intros Z1 Fp; try discriminate.
    apply Z.leb_le in Z1; destruct (pairs_of id A); auto; simpl in Fp; lia. }
  intros x y; destruct HA as [_ HA]; destruct (HA x y) as [|K]; auto; exfalso.
  unfold pairs_of in NP; apply app_eq_nil in NP; destruct NP as [N1 N2]; apply app_eq_nil in N2; destruct N2 as [N2 N3].
  unfold listed in K; rewrite N1, N2, N3 in K; simpl in K; tauto.
Qed.

(** GNNCert-N: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gnncert_n :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    rule s = GnncertN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    sees_only id W (option F) g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (pairs_of id A) (touched_edges B) -> few (altered A) (with_own own B) ->
      shown_reading id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own hf g G R0 HC D H S Hf A G' r HA Fp Fa Hr.
  destruct (holds_test s t B own) as [n [E [Hw _]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E.
  destruct (no_nodes (clip_budget B)); [|discriminate]. destruct (is_zero (touched_edges (clip_budget B))) eqn:Z1; [|discriminate].
  destruct (negb (own && of_graphs s)); [|discriminate]. destruct (keeps_ids s || _); [|discriminate]. simpl in E; injection E as <-.
  rewrite D in Hw. eapply gnncert_n_certificate; eauto; [eapply no_pair_changes; eauto|apply few_with_own; auto].
Qed.

(** GNNCert-EN: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the file. *)
Theorem checked_gnncert_en :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (height width : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    let look i := cell id F W he hf (i / width) (i mod width) in
    rule s = GnncertEN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    edge_groups s = Z.of_nat height -> feature_groups s = Z.of_nat width -> num_groups s = Z.of_nat (height * width) -> (0 < width)%nat ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) -> few (changed A) (change_edges B) ->
      few (altered A) (with_own own B) ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted (num_classes s) (height * width) (prior_certain s t) r = label_of s t.
Proof.
  intros id F W id_eq s t B own height width he hf g G look R0 HC D E1 E2 E3 Hpos H Hh S Hf A G' r HA f1 f2 f3 Fa Hr.
  destruct (holds_test s t B own) as [n [E [Hw _]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E.
  destruct (no_nodes (clip_budget B)); [|discriminate].
  destruct (negb (own && of_graphs s)); [|discriminate]. destruct (keeps_ids s || _); [|discriminate]. simpl andb in E; injection E as <-.
  rewrite D, E1, E2 in Hw.
  eapply (gnncert_en_certificate id F W id_eq height width he hf g G _ _ _ _ (clip_budget B)
            (ladd (change_features (clip_budget B)) (one_if own)) Hpos Hh S Hf Hw A G' r HA); auto;
    try (apply few_clip; assumption).
  apply few_with_own; auto.
Qed.

(** Theorem 2 for a user's own division: if it moves no more votes than its prices say, the label holds. *)
Theorem checked_stated :
  forall (s : settings) (t : target) (B : budget) (own : bool),
    rule s = AsStated -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    exists n, at_prices (price s) (own_price s) (clip_budget B) own = Some n
      /\ forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
           (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
           few moved n -> prior_read s t P' ->
           voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.
Proof.
  intros s t B own R0 HC H.
  destruct (holds_test s t B own) as [n [E [Hw _]]]; auto; [unfold own_groups; rewrite R0; auto|].
  unfold reach_of in E; rewrite R0 in E. destruct (at_prices (price s) (own_price s) (clip_budget B) own) as [m|]; [|discriminate].
  exists m; split; auto; intros r P' moved Hm Fm HP.
  destruct ((keeps_ids s || _) && _); [|discriminate]; injection E as <-.
  change (Z.to_nat (num_groups s)) with (groups (votes_of s t)).
  eapply vote_sound; [exact Hw|intros; apply prior_read_doubt; auto|].
  apply (Moves _ _ r moved moved moved); auto.
Qed.

(** Theorem 1, the radius: no x votes, whichever they are, change the label. *)
Theorem checked_radius :
  forall (s : settings) (t : target) (x : Z),
    own_groups s = false -> (0 < num_classes s)%nat -> 0 <= x -> right_radius s (count_target s t) x = true ->
    forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
      (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
      Z.of_nat (length moved) <= x -> prior_read s t P' ->
      voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.
Proof.
  intros s t x O HC Hx H r P' moved Hm Fm HP. unfold right_radius, is_largest in H; rewrite O in H.
  destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]; apply andb_prop in H; destruct H as [_ H].
  change (Z.to_nat (num_groups s)) with (groups (votes_of s t)).
  eapply vote_sound; [apply (test_sound s t (test_made _ _ _ H) HC _ H)|intros; apply prior_read_doubt; auto|].
  apply (Moves _ _ r moved moved moved); auto.
Qed.

(** Section 4, Only new neighbours count: statements about new neighbours are answers for one budget. *)
Theorem checked_new_neighbours :
  forall (s : settings) (c : counted) (n : lim), of_graphs s = false -> within 0 n ->
    right_new_neighbours s c n = true -> holds s c (anything_and s n) = true.
Proof.
  intros s c n R W H; unfold right_new_neighbours in H; rewrite R in H. destruct n as [n|]; auto.
  unfold is_largest in H; simpl in W. destruct (Z.ltb_spec n 0); [lia|].
  apply andb_prop in H; destruct H as [H _]; apply andb_prop in H; apply H.
Qed.

Section OwnGroups.
  Variables (s : settings) (t : target) (B : budget) (own : bool).
  Hypothesis HC : (0 < num_classes s)%nat.
  Hypothesis H : holds s (count_target s t) (B, own) = true.

  Lemma own_touches_found : own_groups s = true -> own = false /\ exists n, touches_of s (count_target s t) (clip_budget B) false = Some n
    /\ own_withstands Z (own_votes_of t) (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) (label_of s t) n.
  Proof.
    intro O; destruct (holds_own_test s t B own O HC H) as [n [E Hw]]. destruct own; [discriminate|]. split; auto; exists n; auto.
  Qed.
End OwnGroups.

(** Theorem 9, a group for each neighbour: where the checker says yes to a budget, the voted label on every attacked graph within it is the label
    of the file. *)
Theorem checked_per_neighbour :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local f -> numbered t V -> ofaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' -> oreading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.
Proof.
  intros id F W id_eq s t B own f v G V R0 R1 HC H Lf N Hf G' S' r P' Ha Hr HP.
  destruct (own_touches_found s t B own HC H) as [-> [n [E Hw]]]; [unfold own_groups; rewrite R0; auto|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-. apply (numbered_withstands _ _ _ N) in Hw.
  eapply per_neighbour_certificate; eauto; [|intros; apply own_prior_read_doubt; auto].
  destruct Ha as [A [L [L2 [Ha S]]]]; exists A; split; auto; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 9, a group for each pair: where the checker says yes to a budget, the voted label on every attacked graph within it is the label of the
    file. *)
Theorem checked_per_pair :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByPair -> of_graphs s = false -> (0 < num_classes s)%nat ->
    holds s (count_target s t) (B, own) = true ->
    local_undirected f -> numbered t V -> pfaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' -> preading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.
Proof.
  intros id F W id_eq s t B own f v G V R0 R1 HC H Lf N Hf G' S' r P' Ha Hr HP.
  destruct (own_touches_found s t B own HC H) as [-> [n [E Hw]]]; [unfold own_groups; rewrite R0; auto|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-. apply (numbered_withstands _ _ _ N) in Hw.
  eapply per_pair_certificate; eauto; [|intros; apply own_prior_read_doubt; auto].
  destruct Ha as [A [L [L2 [L3 [Ha S]]]]]; exists A; split; auto; split; auto; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 9, graphs, a group for each node: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_per_node_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (B : budget) (own : bool)
         (g : gmodel id F W) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    extensional id F W g -> numbered t V -> nfaithful id F W id_eq g V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' -> nreading id F W id_eq g G' S' r ->
      own = false /\ own_voted id (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.
Proof.
  intros id F W id_eq s t B own g G V R0 R1 HC D H Lg N Hf G' S' r Ha Hr.
  destruct (own_touches_found s t B own HC H) as [-> [n [E Hw]]]; [unfold own_groups; rewrite R0; auto|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-. apply (numbered_withstands _ _ _ N) in Hw.
  rewrite D in Hw. eapply (per_node_graph_certificate id F W id_eq g G V _ _ _ _ (clip_budget B)); eauto.
  destruct Ha as [A [L [L2 [L3 Ha]]]]; exists A; split; auto; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 9, graphs, a group for each pair: where the checker says yes to a budget, the voted label on every attacked graph within it is the
    label of the file. *)
Theorem checked_per_pair_graph :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (s : settings) (t : target) (B : budget) (own : bool)
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id) (G : graph id F W) (V : own_votes key),
    rule s = ByPair -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    holds s (count_target s t) (B, own) = true ->
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g -> numbered t V -> gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G (row (cover_row t)) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' -> gpreading id F W key id_eq g name counts G' S' r ->
      own = false /\ own_voted key (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.
Proof.
  intros id F W key id_eq key_eq s t B own g name counts someone G V R0 R1 HC D H Hs Hi Lg N Hf Hd G' S' r Ha Hr.
  destruct (own_touches_found s t B own HC H) as [-> [n [E Hw]]]; [unfold own_groups; rewrite R0; auto|]. split; auto.
  unfold touches_of in E; rewrite R0, R1 in E; injection E as <-. apply (numbered_withstands _ _ _ N) in Hw.
  rewrite D in Hw.
  eapply (per_pair_graph_certificate id F W key id_eq key_eq g name counts someone G V _ _ _ _ (clip_budget B) (row (cover_row t))); eauto.
  destruct Ha as [A [L [L2 [L3 Ha]]]]; exists A; split; auto; split; auto; split; auto; apply affords_clip; auto.
Qed.

(** Theorem 9, the radius where every neighbour has a group of its own: x votes that come, go, or become anything; without [altering],
    votes that come, go, or are turned. *)
Theorem checked_own_radius :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (V : own_votes key) (altering : bool) (x : Z),
    own_groups s = true -> (0 < num_classes s)%nat -> 0 <= x ->
    is_largest (any_test (empty_casts s) altering (count_target s t)) (num_groups s) x = true ->
    numbered t V -> NoDup (cast_by _ V) ->
    forall (S' : list key) (r : key -> vote) (P' : nat -> Z) (new rem alt turn : list key),
      NoDup S' -> own_changes key V S' r new rem alt turn ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x -> (altering = false -> alt = []) ->
      own_prior_read s t P' ->
      own_voted key (num_classes s) P' (empty_casts s) S' r = label_of s t.
Proof.
  intros key key_eq s t V altering x O HC Hx H N NV S' r P' new rem alt turn NS M L A HP. unfold is_largest in H.
  destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]; apply andb_prop in H; destruct H as [_ H].
  pose proof (any_test_sound s t (any_test_made _ _ _ _ _ H) HC O altering x H) as K. rewrite label_counted in K.
  eapply own_radius_sound; eauto; [eapply numbered_radius; eauto|intros; apply own_prior_read_doubt; auto].
Qed.
