(** The cover table (docs/proofs.md, after Theorem 3): the sum of the k largest single reaches bounds what k nodes reach together. The
    same argument bounds the pairs of k nodes, D(k), and the targets next to k nodes, N(k) (Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph EdgeCentric GraphTask PerNeighbourVote OwnGroupsOfGraphs Checker.
Import ListNotations.
Open Scope Z_scope.

(** The sum of a list. *)
Fixpoint total (l : list Z) : Z := match l with [] => 0 | x :: l' => x + total l' end.

(** Descending, none negative. *)
Fixpoint descends (l : list Z) : Prop :=
  match l with [] => True | x :: l' => 0 <= x /\ (forall y, In y l' -> y <= x) /\ descends l' end.

(** The sum of the k largest single reaches. *)
Definition largest (k : nat) (sizes : list Z) : Z := total (firstn k sizes).

(** Entry k of a row: what all nodes reach anyway, and the k largest reaches, but no more than there is. *)
Definition top (all base : Z) (sizes : list Z) (k : Z) : Z := Z.min all (base + largest (Z.to_nat k) sizes).

(** [tb] is a row made in this way: entry k - 1 is at least [top] of k, and the last entry all that is reached. *)
Definition made_from (tb : list Z) (all base : Z) (sizes : list Z) : Prop :=
  (forall k, (k < length tb)%nat -> top all base sizes (Z.of_nat (S k)) <= nth k tb 0) /\ all <= last tb 0.

(** ---- Proofs ---- *)

Lemma total_app l l' : total (l ++ l') = total l + total l'.
Proof. induction l; simpl; lia. Qed.
Lemma total_perm l l' : Permutation l l' -> total l = total l'.
Proof. induction 1; simpl; lia. Qed.
Lemma descends_nonneg l : descends l -> forall x, In x l -> 0 <= x.
Proof. induction l as [|y l IH]; simpl; [contradiction|]; intros [H [_ D]] x [<-|I]; auto. Qed.
Lemma firstn_step m x l : 0 <= x -> (forall y, In y l -> y <= x) -> total (firstn (S m) l) <= x + total (firstn m l).
Proof.
  revert m; induction l as [|y l IH]; intros m Hx H; [simpl; rewrite firstn_nil; simpl; lia|].
  destruct m as [|m]; [simpl; specialize (H y (or_introl eq_refl)); lia|].
  change (firstn (S (S m)) (y :: l)) with (y :: firstn (S m) l); change (firstn (S m) (y :: l)) with (y :: firstn m l).
  cbn [total]. specialize (IH m Hx (fun z I => H z (or_intror I))). lia.
Qed.
Lemma largest_mono l k k' : descends l -> (k <= k')%nat -> largest k l <= largest k' l.
Proof.
  revert k k'; induction l as [|x l IH]; intros k k' D L; unfold largest in *; [rewrite !firstn_nil; lia|].
  destruct k as [|k], k' as [|k']; simpl; try lia; destruct D as [H [_ D]].
  - assert (0 <= total (firstn k' l)) by (specialize (IH 0%nat k' D ltac:(lia)); simpl in IH; lia). lia.
  - specialize (IH k k' D ltac:(lia)); lia.
Qed.

(** No part of a list weighs more than as many of the largest. *)
Lemma part_le_largest l : descends l -> forall part rest, Permutation l (part ++ rest) -> total part <= largest (length part) l.
Proof.
  unfold largest; induction l as [|x l IH]; intros D part rest P.
  - apply Permutation_nil in P; apply app_eq_nil in P; destruct P as [-> _]; simpl; lia.
  - destruct D as [Hx [Hm D]].
    assert (I : In x (part ++ rest)) by (apply (Permutation_in x P); left; auto).
    apply in_app_iff in I; destruct I as [I|I]; apply in_split in I; destruct I as [a [b ->]].
    + assert (Q : Permutation l ((a ++ b) ++ rest)).
      { apply (Permutation_cons_inv (a := x)). etransitivity; [exact P|]. rewrite <- !app_assoc; simpl. symmetry; apply Permutation_middle. }
      specialize (IH D _ _ Q). rewrite app_length in *; simpl length. rewrite Nat.add_succ_r; cbn [firstn total].
      rewrite total_app in *; cbn [total]. lia.
    + assert (Q : Permutation l (part ++ (a ++ b))).
      { apply (Permutation_cons_inv (a := x)). etransitivity; [exact P|]. rewrite !app_assoc. symmetry; apply Permutation_middle. }
      specialize (IH D _ _ Q). destruct (length part) as [|m]; [simpl in *; lia|].
      change (firstn (S m) (x :: l)) with (x :: firstn m l); cbn [total].
      pose proof (firstn_step m x l Hx Hm). lia.
Qed.

Section Reach.
  Variables (id X : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Hypothesis X_eq : forall x y : X, {x = y} + {x <> y}.
  Variables (reach : id -> list X) (ids : list id) (sizes : list Z).
  Hypothesis ids_once : NoDup ids.
  Hypothesis sizes_are : Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids).
  Hypothesis sizes_descend : descends sizes.

  Lemma flat_length l : Z.of_nat (length (flat_map reach l)) = total (map (fun w => Z.of_nat (length (reach w))) l).
  Proof. clear; induction l as [|w l IH]; simpl; auto; rewrite app_length; lia. Qed.

  (** What some nodes of the list reach, one after the other. *)
  Lemma some_reach ws : NoDup ws -> incl ws ids -> Z.of_nat (length (flat_map reach ws)) <= largest (length ws) sizes.
  Proof.
    intros N I; rewrite flat_length.
    set (rest := filter (fun w => if in_dec id_eq w ws then false else true) ids).
    assert (P : Permutation ids (ws ++ rest)).
    { apply NoDup_Permutation; auto.
      - unfold rest; clear -N ids_once.
        assert (D : forall l, NoDup l -> NoDup (ws ++ filter (fun w => if in_dec id_eq w ws then false else true) l)).
        { intros l Nl. induction N as [|w ws Hw N IH] in l, Nl |- *.
          - simpl. apply NoDup_filter; auto.
          - cbn [app]; constructor.
            + rewrite in_app_iff, filter_In; intros [J|[_ J]]; [contradiction|].
              revert J; destruct (in_dec id_eq w (w :: ws)) as [|K]; [discriminate|intros _; apply K; left; auto].
            + specialize (IH _ (NoDup_filter (fun z => if id_eq z w then false else true) Nl)).
              match type of IH with NoDup (ws ++ ?a) => match goal with |- NoDup (_ ++ ?b) => replace b with a; auto end end.
              clear; induction l as [|z l IHl]; auto; cbn [filter].
              destruct (id_eq z w) as [->|Nz].
              * destruct (in_dec id_eq w (w :: ws)) as [|K]; [auto|exfalso; apply K; left; auto].
              * cbn [filter]. destruct (in_dec id_eq z ws) as [J|J], (in_dec id_eq z (w :: ws)) as [K|K]; rewrite ?IHl; auto.
                -- exfalso; apply K; right; auto.
                -- exfalso; destruct K as [K|K]; [congruence|contradiction]. }
        apply D; auto.
      - intro w; rewrite in_app_iff; unfold rest; rewrite filter_In; split.
        + intro J; destruct (in_dec id_eq w ws); auto.
        + intros [J|[J _]]; auto. }
    pose proof (part_le_largest sizes sizes_descend (map (fun w => Z.of_nat (length (reach w))) ws) (map (fun w => Z.of_nat (length (reach w))) rest)) as Q.
    rewrite <- map_app in Q. rewrite map_length in Q. apply Q. etransitivity; [exact sizes_are|]. apply Permutation_map; auto.
  Qed.

  (** k nodes together. Only what is in [S] counts; [base] is reached by any node. *)
  Lemma top_bounds (base S : list X) (ws : list id) (k : Z) : ws <> [] -> Z.of_nat (length ws) <= k ->
    exists l : list X, Z.of_nat (length l) <= top (Z.of_nat (length S)) (Z.of_nat (length base)) sizes k
      /\ forall w i, In w ws -> In i S -> In i base \/ (In w ids /\ In i (reach w)) -> In i l.
  Proof.
    intros E L. set (ws' := nodup id_eq (filter (fun w => if in_dec id_eq w ids then true else false) ws)).
    set (l := filter (fun i => if in_dec X_eq i S then true else false) (nodup X_eq (base ++ flat_map reach ws'))).
    exists l; split.
    - assert (L1 : (length l <= length S)%nat).
      { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros i I; apply filter_In in I; destruct I as [_ I].
        destruct (in_dec X_eq i S); [auto|discriminate]. }
      assert (L2 : (length l <= length (base ++ flat_map reach ws'))%nat).
      { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros i I; apply filter_In in I; destruct I as [I _]; apply nodup_In in I; auto. }
      assert (L3 : (length ws' <= length ws)%nat).
      { apply NoDup_incl_length; [apply NoDup_nodup|]. intros w I; apply nodup_In, filter_In in I; tauto. }
      assert (L4 : Z.of_nat (length (flat_map reach ws')) <= largest (length ws') sizes).
      { apply some_reach; [apply NoDup_nodup|]. intros w I; apply nodup_In, filter_In in I; destruct I as [_ I].
        destruct (in_dec id_eq w ids); [auto|discriminate]. }
      pose proof (largest_mono sizes (length ws') (Z.to_nat k) sizes_descend ltac:(lia)).
      rewrite app_length in L2. unfold top. lia.
    - intros w i Iw IS H; apply filter_In; split; [|destruct (in_dec X_eq i S); auto].
      apply nodup_In, in_app_iff. destruct H as [H|[Hw H]]; auto. right; apply in_flat_map; exists w; split; auto.
      apply nodup_In, filter_In; split; auto. destruct (in_dec id_eq w ids); auto.
  Qed.

  (** The row of a file is a cover table. *)
  Lemma row_bounds (tb : list Z) (base S : list X) :
    made_from tb (Z.of_nat (length S)) (Z.of_nat (length base)) sizes ->
    forall (ws : list id) (k : lim), few ws k ->
      exists l : list X, few l (row tb k) /\ forall w i, In w ws -> In i S -> In i base \/ (In w ids /\ In i (reach w)) -> In i l.
  Proof.
    intros [M1 M2] ws k Fk. destruct ws as [|w0 ws0] eqn:Ew.
    { exists []; split; [|contradiction]. unfold few, within, row; simpl.
      assert (P : 0 <= last tb 0) by lia. assert (R : forall n, 0 <= row_at tb n).
      { assert (Q : forall j, (j < length tb)%nat -> 0 <= nth j tb 0).
        { intros j Hj; specialize (M1 j Hj). unfold top in M1.
          assert (0 <= largest (Z.to_nat (Z.of_nat (Datatypes.S j))) sizes).
          { pose proof (largest_mono sizes 0 (Z.to_nat (Z.of_nat (Datatypes.S j))) sizes_descend ltac:(lia)) as G; exact G. }
          lia. }
        clear -Q. induction tb as [|c tb IH]; intro n; simpl; [lia|].
        destruct tb as [|c' tb]; [apply (Q 0%nat); simpl; lia|]. destruct (n <=? 1); [apply (Q 0%nat); simpl; lia|].
        apply IH; intros j Hj; apply (Q (Datatypes.S j)); simpl in *; lia. }
      destruct k as [k|]; [destruct (k <=? 0)|]; auto; lia. }
    rewrite <- Ew in *. assert (NE : ws <> []) by (rewrite Ew; discriminate).
    assert (R : forall n, 1 <= n -> top (Z.of_nat (length S)) (Z.of_nat (length base)) sizes n <= row_at tb n).
    { clear -M1 M2. intros n Hn.
      assert (Q : forall tb off, (forall j, (j < length tb)%nat -> top (Z.of_nat (length S)) (Z.of_nat (length base)) sizes (off + Z.of_nat (Datatypes.S j)) <= nth j tb 0) ->
                Z.of_nat (length S) <= last tb 0 -> forall n, 1 <= n -> top (Z.of_nat (length S)) (Z.of_nat (length base)) sizes (off + n) <= row_at tb n).
      { clear. induction tb as [|c tb IH]; intros off M1 M2 n Hn; [simpl in *; unfold top; lia|].
        cbn [row_at]. destruct tb as [|c' tb]; [simpl in M2; unfold top; lia|].
        destruct (Z.leb_spec n 1).
        - replace n with (Z.of_nat 1) by lia. apply (M1 0%nat); simpl; lia.
        - replace (off + n) with ((off + 1) + (n - 1)) by lia. apply IH; [|exact M2|lia].
          intros j Hj. specialize (M1 (Datatypes.S j) ltac:(simpl in *; lia)).
          replace (off + 1 + Z.of_nat (Datatypes.S j)) with (off + Z.of_nat (Datatypes.S (Datatypes.S j))) by lia. exact M1. }
      apply (Q tb 0); auto. }
    destruct k as [k|].
    - assert (Hk : 1 <= k) by (unfold few, within in Fk; rewrite Ew in Fk; simpl length in Fk; lia).
      destruct (top_bounds base S ws k NE Fk) as [l [L H]]. exists l; split; auto.
      unfold few, within, row. destruct (Z.leb_spec k 0); [lia|]. specialize (R k Hk); lia.
    - destruct (top_bounds base S ws (Z.of_nat (length ws)) NE ltac:(lia)) as [l [L H]]. exists l; split; auto.
      unfold few, within, row. unfold top in L. lia.
  Qed.
End Reach.

(** Theorem 3's table: [reach w] are the groups in which w is known to lie in v's component, [base] those whose components were not looked into,
    and every group in which v's component has another node is one in which v has an edge. *)
Theorem cover_table :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> id -> nat) (v : id) (G : graph id F W)
         (reach : id -> list nat) (ids : list id) (sizes : list Z) (base S : list nat) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) (Z.of_nat (length base)) sizes ->
    (forall i w, (i < T)%nat -> w <> v -> component id F W v (esub id F W h i G) w ->
       In i S /\ (In i base \/ (In w ids /\ In i (reach w)))) ->
    covers id F W T h v G (row tb).
Proof.
  intros id F W id_eq T h v G reach ids sizes base S tb N P D M H ws k Nv Fk.
  destruct (row_bounds id nat id_eq Nat.eq_dec reach ids sizes N P D tb base S M ws k Fk) as [l [L Q]].
  exists l; split; auto; intros i w Hi Iw C. destruct (H i w Hi) as [IS R]; auto; [congruence|]. eauto.
Qed.

(** The same for graphs (Theorem 6): a node reaches the groups in which it has an edge. *)
Theorem graph_cover_table :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> id -> nat) (G : graph id F W)
         (reach : id -> list nat) (ids : list id) (sizes : list Z) (S : list nat) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) 0 sizes ->
    (forall i w, (i < T)%nat -> has id F W h i G w -> In i S /\ In w ids /\ In i (reach w)) ->
    gcovers id F W T h G (row tb).
Proof.
  intros id F W id_eq T h G reach ids sizes S tb N P D M H ws k Fk.
  destruct (row_bounds id nat id_eq Nat.eq_dec reach ids sizes N P D tb [] S M ws k Fk) as [l [L Q]].
  exists l; split; auto; intros i w Hi Iw C. destruct (H i w Hi C) as [IS [A B]]. eauto.
Qed.

(** Theorem 9, D(k): the pairs of k nodes, from the degrees. *)
Theorem degree_table :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (name : id -> id -> key) (G : graph id F W) (reach : id -> list key) (ids : list id) (sizes : list Z) (S : list key) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) 0 sizes ->
    (forall w y, has_pair id F W G w y -> In (name w y) S /\ In w ids /\ In (name w y) (reach w)) ->
    degrees_ok id F W key name G (row tb).
Proof.
  intros id F W key id_eq key_eq name G reach ids sizes S tb N P D M H ws k Fk.
  destruct (row_bounds id key id_eq key_eq reach ids sizes N P D tb [] S M ws k Fk) as [l [L Q]].
  exists l; split; auto; intros w y Iw C. destruct (H w y C) as [IS [A B]]. eauto.
Qed.
