(** GNNCert-E, -N and -EN (docs/proofs.md, section 3, "GNNCert"): edges, features, or both are divided, nodes are not. The model
    may be any function of the graph that it is shown; it need not be local. The attacker neither injects nor deletes nodes. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated.
Import ListNotations.
Open Scope Z_scope.

(** A grid of H rows and W columns: e rows and c columns cover H W - (H - e)+ (W - c)+ cells. *)
Definition grid_moved (H W : Z) (e c : lim) : lim :=
  let rest (n : Z) (m : lim) := match m with Some x => Z.max (n - x) 0 | None => 0 end in
  Some (H * W - rest H e * rest W c).

Section Gnncert.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable T : nat.

  (** What is read for a target, or for a whole graph: any relation between a graph and votes that sees nothing but nodes
      and arcs. *)
  Definition shown_model (E : Type) := Graph.graph id E W -> vote -> Prop.
  (** The model sees nothing but nodes and arcs. *)
  Definition sees_only (E : Type) (g : shown_model E) : Prop :=
    forall G G' y, (forall x, node G' x = node G x) -> (forall x z, arc G' x z = arc G x z) -> (g G y <-> g G' y).

  (** The attack leaves nodes alone but for the features of those that are altered, and no arc gets another value thereby. *)
  Definition edges_and_features (A : attack id) (G G' : graph) : Prop :=
    (forall x, node G' x = node G x \/ (In x (altered A) /\ node G x <> None /\ node G' x <> None))
    /\ (forall x y, arc G' x y = arc G x y \/ listed x y (added A) \/ listed x y (deleted A) \/ listed x y (changed A)).

  (** Row i of the grid has the edges of group i, column j shows the features of group j. *)
  Variables (he : id -> id -> nat) (hf : id -> nat).
  Hypothesis he_sym : forall x y, he x y = he y x.
  (** What the model is shown in row i and column j. *)
  Definition cell (i j : nat) (G : graph) : Graph.graph id (option F) W := gate id F W hf j (esub id F W he i G).

  (** The pairs that are charged to e+, e- and e~. *)
  Definition pairs_of (A : attack id) : list (id * id) := added A ++ deleted A ++ changed A.

  Lemma row_same A G G' i : edges_and_features A G G' -> ~ In i (map (edge_group id he) (pairs_of A)) ->
    forall x z, arc (esub id F W he i G') x z = arc (esub id F W he i G) x z.
  Proof.
    intros [_ H] N x z. destruct (Nat.eq_dec (he x z) i) as [E|E]; [rewrite !esub_in by auto|rewrite !esub_out by auto; auto].
    unfold pairs_of in N; rewrite !map_app, !in_app_iff in N.
    assert (Q : forall l, listed x z l -> In i (map (edge_group id he) l)).
    { intros l P. apply (pair_edge id he he_sym i x z); auto. }
    destruct (H x z) as [|[P|[P|P]]]; auto; exfalso; apply Q in P; tauto.
  Qed.

  Lemma column_same A G G' j : edges_and_features A G G' -> ~ In j (map hf (altered A)) ->
    forall i x, node (cell i j G') x = node (cell i j G) x.
  Proof.
    intros [H _] N i x; simpl. destruct (H x) as [->|[I [n n']]]; auto.
    destruct (Nat.eqb_spec (hf x) j) as [E|E].
    - exfalso; apply N, in_map_iff; exists x; auto.
    - destruct (node G' x), (node G x); auto; contradiction.
  Qed.

  (** What the votes are, and that the certificate knows them: [look i] is what the model is shown for vote i. *)
  Section Votes.
    Variables (E : Type) (g : shown_model E) (look : nat -> graph -> Graph.graph id E W).
    (** The certificate speaks the truth about G: T votes, and stable ones are read alike on every machine. *)
    Definition shown_faithful (V : votes) (G : graph) : Prop :=
      groups V = T /\ forall i, (i < T)%nat -> stable V i = true -> forall y, g (look i G) y -> y = cast V i.
    (** What a machine may read on G: one vote of each subgraph that is shown. *)
    Definition shown_reading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> g (look i G) (r i).

    Lemma shown_moves V G G' r (l : list nat) n : sees_only E g -> shown_faithful V G -> shown_reading G' r -> few l n ->
      (forall i, (i < T)%nat -> ~ In i l -> (forall x, node (look i G') x = node (look i G) x)
                                    /\ (forall x z, arc (look i G') x z = arc (look i G) x z)) ->
      moves V (Reach n n n) r.
    Proof.
      intros S [VT VC] R Fl H.
      assert (K : forall i, (i < groups V)%nat -> stable V i = true -> In i l \/ r i = cast V i).
      { rewrite VT; intros i Hi Hs; destruct (in_dec Nat.eq_dec i l) as [|N]; auto; right.
        destruct (H i Hi N) as [a b]. apply (VC i Hi Hs). apply (S (look i G) (look i G')); auto. }
      apply (Moves V _ r l l l); auto.
    Qed.
  End Votes.
End Gnncert.

Arguments edges_and_features {id F W}.

Lemma gnncert_e_moves (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (he : id -> id -> nat) (g : shown_model id W F)
  (G : graph id F W) (V : votes) (B : budget) (A : attack id) (G' : graph id F W) (r : nat -> vote) :
  (forall x y, he x y = he y x) -> sees_only id W F g -> shown_faithful id F W T F g (esub id F W he) V G ->
  edges_and_features A G G' -> altered A = [] -> affords id_eq B A -> shown_reading id F W T F g (esub id F W he) G' r ->
  moves V (Reach (touched_edges B) (touched_edges B) (touched_edges B)) r.
Proof.
  intros Hh S Hv HA HN Ha Hr.
  apply (shown_moves id F W T F g (esub id F W he) V G G' r (map (edge_group id he) (pairs_of id A)) _ S); auto.
  - apply few_map; unfold pairs_of, touched_edges. apply few_app; [apply Ha|]. apply few_app; apply Ha.
  - intros i Hi N; split.
    + intro x; simpl. destruct HA as [HA _]; destruct (HA x) as [|[I _]]; auto. rewrite HN in I; contradiction.
    + eapply row_same; eauto.
Qed.

(** GNNCert-E: vote i is read from all nodes and the edges of group i. n0 = n1 = n2 = e+ + e- + e~. *)
Theorem gnncert_e_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (he : id -> id -> nat)
         (g : shown_model id W F) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget),
    (forall x y, he x y = he y x) ->
    sees_only id W F g ->
    shown_faithful id F W T F g (esub id F W he) V G ->
    withstands V C P 0 a (Reach (touched_edges B) (touched_edges B) (touched_edges B)) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> altered A = [] -> affords id_eq B A ->
      shown_reading id F W T F g (esub id F W he) G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T he g G V C P a B Hh S Hv Hw A G' r HA HN Ha Hr.
  rewrite <- (proj1 Hv). eapply vote_sound; [exact Hw|intros; lia|]. eapply gnncert_e_moves; eauto.
Qed.

Lemma gnncert_n_moves (id F W : Type) (T : nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W) (V : votes) (features : lim)
  (A : attack id) (G' : graph id F W) (r : nat -> vote) :
  sees_only id W (option F) g -> shown_faithful id F W T (option F) g (gate id F W hf) V G ->
  edges_and_features A G G' -> (forall x y, arc G' x y = arc G x y) -> few (altered A) features ->
  shown_reading id F W T (option F) g (gate id F W hf) G' r ->
  moves V (Reach features features features) r.
Proof.
  intros S Hv HA HE Ha Hr.
  apply (shown_moves id F W T (option F) g (gate id F W hf) V G G' r (map hf (altered A)) _ S); auto.
  - apply few_map; auto.
  - intros j Hj N; split; [|simpl; auto].
    exact (column_same id F W (fun _ _ => O) hf A G G' j HA N O).
Qed.

(** GNNCert-N: vote j is read from the whole graph with the features of group j. n0 = n1 = n2 = r + o: the target's own
    features count like those of any node. *)
Theorem gnncert_n_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (hf : id -> nat)
         (g : shown_model id W (option F)) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (features : lim),
    sees_only id W (option F) g ->
    shown_faithful id F W T (option F) g (gate id F W hf) V G ->
    withstands V C P 0 a (Reach features features features) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> (forall x y, arc G' x y = arc G x y) -> few (altered A) features ->
      shown_reading id F W T (option F) g (gate id F W hf) G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T hf g G V C P a features S Hv Hw A G' r HA HE Ha Hr.
  rewrite <- (proj1 Hv). eapply vote_sound; [exact Hw|intros; lia|]. eapply gnncert_n_moves; eauto.
Qed.

(** Of H W cells no more than those of some rows and columns. *)
Definition covered_cells (H W : nat) (rows columns : list nat) : list nat :=
  flat_map (fun i => map (fun j => (i * W + j)%nat)
    (filter (fun j => (if in_dec Nat.eq_dec i rows then true else false) || (if in_dec Nat.eq_dec j columns then true else false))
            (seq 0 W))) (seq 0 H).

Lemma filter_in_count (l : list nat) n : (length (filter (fun i => if in_dec Nat.eq_dec i l then true else false) (seq 0 n)) <= length l)%nat.
Proof.
  apply NoDup_incl_length; [apply NoDup_filter, seq_NoDup|]. intros i I; apply filter_In in I; destruct I as [_ I].
  destruct (in_dec Nat.eq_dec i l); [auto|discriminate].
Qed.

Lemma covered_count H W rows columns :
  exists p q : Z, 0 <= p <= Z.of_nat H /\ 0 <= q <= Z.of_nat W /\ p <= Z.of_nat (length rows) /\ q <= Z.of_nat (length columns)
    /\ Z.of_nat (length (covered_cells H W rows columns)) = Z.of_nat H * Z.of_nat W - (Z.of_nat H - p) * (Z.of_nat W - q).
Proof.
  set (inr := fun i => if in_dec Nat.eq_dec i rows then true else false).
  set (inc := fun j => if in_dec Nat.eq_dec j columns then true else false).
  exists (Z.of_nat (length (filter inr (seq 0 H)))), (Z.of_nat (length (filter inc (seq 0 W)))).
  assert (LE : forall p n, (length (filter p (seq 0 n)) <= n)%nat).
  { intros p n; rewrite <- (seq_length n 0) at 2. generalize (seq 0 n); induction l as [|x l IH]; simpl; [lia|]; destruct (p x); simpl; lia. }
  split; [split; [lia|apply Nat2Z.inj_le, LE]|]. split; [split; [lia|apply Nat2Z.inj_le, LE]|].
  split; [apply Nat2Z.inj_le, filter_in_count|]. split; [apply Nat2Z.inj_le, filter_in_count|].
  unfold covered_cells. fold inc.
  assert (Q : forall l, Z.of_nat (length (flat_map (fun i => map (fun j => (i * W + j)%nat) (filter (fun j => inr i || inc j) (seq 0 W))) l))
     = Z.of_nat (length l) * Z.of_nat W - (Z.of_nat (length l) - Z.of_nat (length (filter inr l))) * (Z.of_nat W - Z.of_nat (length (filter inc (seq 0 W))))).
  { induction l as [|i l IH]; [simpl; lia|].
    cbn [flat_map filter]; rewrite app_length, map_length, Nat2Z.inj_add, IH; clear IH.
    change (length (i :: l)) with (S (length l)); rewrite (Nat2Z.inj_succ (length l)).
    destruct (inr i).
    - assert (E : filter (fun _ => true) (seq 0 W) = seq 0 W).
      { generalize (seq 0 W); induction l0 as [|x l0 IH0]; simpl; [auto|rewrite IH0; auto]. }
      change (filter (fun j => true || inc j) (seq 0 W)) with (filter (fun _ : nat => true) (seq 0 W)).
      rewrite E, seq_length. change (length (i :: filter inr l)) with (S (length (filter inr l))). rewrite Nat2Z.inj_succ; unfold Z.succ; ring.
    - rewrite (filter_ext (fun j => false || inc j) inc) by auto. unfold Z.succ; ring. }
  rewrite Q, !seq_length; auto.
Qed.

Lemma gnncert_en_moves (id F W : Type) (H K : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W)
  (V : votes) (B : budget) (features : lim) (A : attack id) (G' : graph id F W) (r : nat -> vote) :
  let look i := cell id F W he hf (i / K) (i mod K) in
  let n := grid_moved (Z.of_nat H) (Z.of_nat K) (touched_edges B) features in
  (0 < K)%nat -> (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
  shown_faithful id F W (H * K) (option F) g look V G ->
  edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) -> few (changed A) (change_edges B) -> few (altered A) features ->
  shown_reading id F W (H * K) (option F) g look G' r ->
  moves V (Reach n n n) r.
Proof.
  intros look n HK Hh S Hv HA f1 f2 f3 f4 Hr.
  set (rows := map (edge_group id he) (pairs_of id A)). set (columns := map hf (altered A)).
  assert (FR : few rows (touched_edges B)).
  { apply few_map; unfold pairs_of, touched_edges. apply few_app; [auto|]. apply few_app; auto. }
  assert (FC : few columns features) by (apply few_map; auto).
  apply (shown_moves id F W (H * K) (option F) g look V G G' r (covered_cells H K rows columns) n S); auto.
  - destruct (covered_count H K rows columns) as [p [q [Hp [Hq [Hr1 [Hc1 E]]]]]].
    unfold few, within, n, grid_moved in *. rewrite E.
    assert (M : forall h w p0 q0, 0 <= p0 <= h - p -> 0 <= q0 <= w - q -> p0 * q0 <= (h - p) * (w - q)) by (intros; nia).
    destruct (touched_edges B) as [e|], features as [c|]; cbv beta iota.
    + specialize (M (Z.of_nat H) (Z.of_nat K) (Z.max (Z.of_nat H - e) 0) (Z.max (Z.of_nat K - c) 0) ltac:(lia) ltac:(lia)). lia.
    + specialize (M (Z.of_nat H) (Z.of_nat K) (Z.max (Z.of_nat H - e) 0) 0 ltac:(lia) ltac:(lia)). lia.
    + specialize (M (Z.of_nat H) (Z.of_nat K) 0 (Z.max (Z.of_nat K - c) 0) ltac:(lia) ltac:(lia)). lia.
    + specialize (M (Z.of_nat H) (Z.of_nat K) 0 0 ltac:(lia) ltac:(lia)). lia.
  - intros i Hi N.
    assert (I0 : (i / K < H)%nat) by (apply Nat.div_lt_upper_bound; lia).
    assert (J0 : (i mod K < K)%nat) by (apply Nat.mod_upper_bound; lia).
    assert (E0 : i = (i / K * K + i mod K)%nat) by (rewrite (Nat.div_mod i K) at 1; lia).
    assert (Q : ~ In (i / K)%nat rows /\ ~ In (i mod K)%nat columns).
    { split; intro I; apply N; unfold covered_cells; apply in_flat_map; exists (i / K)%nat; (split; [apply in_seq; lia|]);
        apply in_map_iff; exists (i mod K)%nat; (split; [auto|]); apply filter_In; (split; [apply in_seq; lia|]).
      - destruct (in_dec Nat.eq_dec (i / K)%nat rows); [auto|contradiction].
      - destruct (in_dec Nat.eq_dec (i mod K)%nat columns); [apply orb_true_r|contradiction]. }
    destruct Q as [Q1 Q2]. split.
    + intro x. apply (column_same id F W he hf A G G' (i mod K) HA Q2 (i / K)).
    + intros x z. exact (row_same id F W he hf Hh A G G' (i / K) HA Q1 x z).
Qed.

(** GNNCert-EN: vote i W + j is read from the edges of group i and the features of group j.
    n0 = n1 = n2 = H W - (H - e)+ (W - r - o)+. *)
Theorem gnncert_en_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (height width : nat) (he : id -> id -> nat) (hf : id -> nat)
         (g : shown_model id W (option F)) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget) (features : lim),
    let look i := cell id F W he hf (i / width) (i mod width) in
    let n := grid_moved (Z.of_nat height) (Z.of_nat width) (touched_edges B) features in
    (0 < width)%nat ->
    (forall x y, he x y = he y x) ->
    sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look V G ->
    withstands V C P 0 a (Reach n n n) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) ->
      few (changed A) (change_edges B) -> few (altered A) features ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted C (height * width) P r = a.
Proof.
  intros id F W id_eq H K he hf g G V C P a B features look n HK Hh S Hv Hw A G' r HA f1 f2 f3 f4 Hr.
  rewrite <- (proj1 Hv). eapply vote_sound; [exact Hw|intros; lia|]. eapply gnncert_en_moves; eauto.
Qed.
