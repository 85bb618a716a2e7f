(** The edge-centric division, node task (docs/proofs.md, Theorem 3; paper, Theorems 2 to 5). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph.
Import ListNotations.
Open Scope Z_scope.

Section EdgeCentric.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).

  Variable T : nat.
  Variable h : id -> id -> nat.                 (* any hash of a pair *)
  Hypothesis h_sym : forall x y, h x y = h y x.
  Variable f : model id F W.
  Hypothesis f_local : local_undirected f.
  Variable v : id.

  (** The divisions, edge-centric: the subgraph of group i has all nodes, and the edges whose hash names i. *)
  Definition esub (i : nat) (G : graph) : graph := keep (fun x y => Nat.eqb (h x y) i) G.

  (** S(v): the groups in which v has an edge, whichever way it points. *)
  Definition ereached (G : graph) (i : nat) : Prop := has_edge (esub i G) v.

  (** v's connected component. *)
  Inductive component (G : graph) : id -> Prop :=
  | itself : component G v
  | onward x y : component G x -> arc G x y <> None \/ arc G y x <> None -> component G y.

  (** The certificate speaks the truth about G: T groups, stable votes read alike on every machine, and v has no edge in a group that is not
      marked as reached. *)
  Record efaithful (V : votes) (G : graph) : Prop := {
    egroups_ok : groups V = T;
    ecast_ok : forall i, (i < T)%nat -> stable V i = true -> forall y, f (esub i G) v y -> y = cast V i;
    etier_ok : forall i, (i < T)%nat -> tier_of V i <> Reached -> ~ ereached G i
  }.

  (** What a machine may read on G: one vote of v in each group. *)
  Definition ereading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> f (esub i G) v (r i).

  (** A cover table is right: k other nodes lie in v's component in at most cover(k) groups, those of [l]. *)
  Definition covers (G : graph) (cover : lim -> lim) : Prop :=
    forall (ws : list id) (k : lim), ~ In v ws -> few ws k ->
      exists l : list nat, few l (cover k)
        /\ forall i w, (i < T)%nat -> In w ws -> component (esub i G) w -> In i l.

  (** n0 = A tau + e+ + e- + e~ + Cov(d + r), n1 = n2 = A' + e+ *)
  Definition edge_reach (cover : lim -> lim) (B : budget) : reach :=
    let new := ladd (joined_nodes B) (add_edges B) in
    Reach (ladd (injected_edges B) (ladd (touched_edges B) (cover (touched_nodes B)))) new new.

  (** The one group to which an edge belongs. *)
  Definition edge_group (p : id * id) : nat := h (fst p) (snd p).

  (** ---- Proofs ---- *)

  Lemma esub_arc i G x y : arc (esub i G) x y <> None -> h x y = i /\ arc G x y <> None.
  Proof. simpl; destruct (Nat.eqb_spec (h x y) i); [auto|congruence]. Qed.

  Lemma esub_in i (G : graph) x y : h x y = i -> arc (esub i G) x y = arc G x y.
  Proof. simpl; intros <-; rewrite Nat.eqb_refl; auto. Qed.

  Lemma esub_out i (G : graph) x y : h x y <> i -> arc (esub i G) x y = None.
  Proof. simpl; intro H; destruct (Nat.eqb_spec (h x y) i); [contradiction|auto]. Qed.

  Lemma pair_edge i x y l : h x y = i -> listed x y l -> In i (map edge_group l).
  Proof.
    intros Hx [I|I]; apply in_map_iff; [exists (x, y)|exists (y, x)]; split; auto; unfold edge_group; simpl.
    rewrite h_sym; auto.
  Qed.

  (** Section 4, Only new neighbours count, edge-centric: a vote changes only where v has an edge before or after. *)
  Theorem only_edges G G' i y :
    well_formed G -> well_formed G' -> node G' v = node G v ->
    ~ ereached G i -> ~ ereached G' i -> (f (esub i G) v y <-> f (esub i G') v y).
  Proof.
    intros w w' n q q'. apply (f_local (esub i G) (esub i G') v (fun x => x = v)); try apply keep_well_formed; auto.
    - intros x z a [-> | ->]; exfalso; apply q; [exists z|exists x]; auto.
    - intros x z a [-> | ->]; exfalso; apply q'; [exists z|exists x]; auto.
    - split; [intros x E; rewrite E; exact n|].
      intros x z -> ->. destruct (arc (esub i G') v v) eqn:E'.
      + exfalso; apply q'; exists v; left; congruence.
      + destruct (arc (esub i G) v v) eqn:E; auto. exfalso; apply q; exists v; left; congruence.
  Qed.

  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis spared : spares A v.

  (** Theorem 3: the groups of edges that the attack brings, adds, deletes or changes, A tau + e+ + e- + e~ of them. *)
  Definition edge_groups : list nat :=
    map edge_group (brought A) ++ map edge_group (added A) ++ map edge_group (deleted A) ++ map edge_group (changed A).

  (** Groups of new edges at v: added ones, and one for each injected node. *)
  Definition enew : list nat := map (fun w => h w v) (joined A) ++ map edge_group (added A).

  Lemma component_old i x : component (esub i G) x -> x = v \/ node G x <> None.
  Proof.
    intro H; destruct H as [|x y _ [a|a]]; auto; right; apply esub_arc in a; destruct a as [_ a];
      destruct (before_ok _ _ _ _ _ _ L _ _ a); auto.
  Qed.

  Lemma echarged i y :
    ~ In i edge_groups -> (forall w, In w (removed A ++ altered A) -> ~ component (esub i G) w) ->
    (f (esub i G) v y <-> f (esub i G') v y).
  Proof.
    unfold edge_groups; rewrite !in_app_iff; intros N H.
    set (K := component (esub i G)).
    assert (OLD : forall x, K x -> ~ In x (injected A) /\ ~ In x (removed A) /\ ~ In x (altered A)).
    { intros x Kx.
      assert (D : ~ In x (removed A)) by (intro I; apply (H x); auto; apply in_app_iff; auto).
      assert (R : ~ In x (altered A)) by (intro I; apply (H x); auto; apply in_app_iff; auto).
      repeat split; auto. intro I; destruct (fresh_ok _ _ _ _ _ _ L x I) as [E|E]; auto.
      destruct (component_old i x Kx) as [->|O]; [apply (proj1 spared)|]; auto. }
    assert (AR : forall x z, h x z = i -> K x \/ K z -> arc G' x z = arc G x z).
    { intros x z Hx Kz; destruct (arcs_ok _ _ _ _ _ _ L x z) as [|[P|[[P _]|[[P _]|[P|[[P E]|[P E]]]]]]]; auto.
      - apply (pair_edge i) in P; tauto.
      - apply (pair_edge i) in P; tauto.
      - apply (pair_edge i) in P; tauto.
      - apply (pair_edge i) in P; tauto.
      - rewrite E; destruct (arc G x z) eqn:Eg; auto; exfalso.
        assert (a : arc (esub i G) x z <> None) by (rewrite esub_in; congruence).
        assert (B : K x /\ K z) by (destruct Kz as [Kx|Kz]; split; auto; [apply (onward _ x)|apply (onward _ z)]; auto).
        destruct B as [Kx K0]; destruct (OLD x Kx) as [_ [? _]], (OLD z K0) as [_ [? _]]; tauto.
      - exfalso. assert (a : arc (esub i G) x z <> None) by (rewrite esub_in; congruence).
        assert (B : K x /\ K z) by (destruct Kz as [Kx|Kz]; split; auto; [apply (onward _ x)|apply (onward _ z)]; auto).
        destruct B as [Kx K0]; destruct (OLD x Kx) as [_ [_ ?]], (OLD z K0) as [_ [_ ?]]; tauto. }
    apply (f_local (esub i G) (esub i G') v K).
    - apply keep_well_formed, (before_ok _ _ _ _ _ _ L).
    - apply keep_well_formed, (after_ok _ _ _ _ _ _ L).
    - apply itself.
    - intros x z a [Kx|Kz]; split; auto; [apply (onward _ x)|apply (onward _ z)]; auto.
    - intros x z a Kxz; destruct (esub_arc _ _ _ _ a) as [Hx a']; rewrite AR in a' by auto.
      assert (a2 : arc (esub i G) x z <> None) by (rewrite esub_in; auto).
      destruct Kxz as [Kx|Kz]; split; auto; [apply (onward _ x)|apply (onward _ z)]; auto.
    - split.
      + intros x Kx; change (node G' x = node G x); destruct (OLD x Kx) as [? [? ?]].
        destruct (nodes_ok _ _ _ _ _ _ L x) as [|[|[|]]]; auto; contradiction.
      + intros x z Kx Kz; destruct (Nat.eq_dec (h x z) i); [rewrite !esub_in; auto|rewrite !esub_out; auto].
  Qed.

  Lemma echarged_beyond i y : ~ ereached G i -> ~ In i enew -> (f (esub i G) v y <-> f (esub i G') v y).
  Proof.
    intros q N. apply only_edges; auto.
    - apply (before_ok _ _ _ _ _ _ L).
    - apply (after_ok _ _ _ _ _ _ L).
    - apply (spared_node id F W A); auto.
    - unfold enew in N; rewrite in_app_iff in N.
      assert (BR : forall x, h x v = i -> In (x, v) (brought A) \/ In (v, x) (brought A) -> False).
      { intros x Hx [I|I].
        - apply N; left; apply in_map_iff; exists x; split; auto; apply (joined_in id F W _ _ _ _ _ L I).
        - apply (proj1 spared), (brings_ok _ _ _ _ _ _ L _ _ I). }
      intros [x [a|a]]; destruct (esub_arc _ _ _ _ a) as [Hx a'].
      + assert (Z0 : ~ arc G x v <> None) by (intro E; apply q; exists x; left; rewrite esub_in; auto).
        destruct (arcs_ok _ _ _ _ _ _ L x v) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]]; try contradiction.
        * rewrite P in a'; contradiction.
        * apply N; right; apply (pair_edge i x v); auto.
        * apply (BR x Hx); destruct P; auto.
      + assert (Z0 : ~ arc G v x <> None) by (intro E; apply q; exists x; right; rewrite esub_in; auto).
        destruct (arcs_ok _ _ _ _ _ _ L v x) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]]; try contradiction.
        * rewrite P in a'; contradiction.
        * apply N; right; apply (pair_edge i v x); auto.
        * apply (BR x); [rewrite h_sym; auto|destruct P; auto].
  Qed.

  Variables (B : budget) (V : votes) (cover : lim -> lim).
  Hypothesis afforded : affords id_eq B A.
  Hypothesis true_votes : efaithful V G.
  Hypothesis true_cover : covers G cover.
  Variable r : nat -> vote.
  Hypothesis r_read : ereading G' r.

  Lemma few_enew : few enew (ladd (joined_nodes B) (add_edges B)).
  Proof.
    apply few_app; apply few_map; [apply (few_joined id F W id_eq A B G G' v); auto|apply (few_added _ _ _ _ afforded)].
  Qed.

  Lemma eattack_moves : moves V (edge_reach cover B) r.
  Proof.
    assert (NV : ~ In v (removed A ++ altered A)) by (destruct spared as [? [? ?]]; rewrite in_app_iff; tauto).
    assert (FN : few (removed A ++ altered A) (touched_nodes B)).
    { apply few_app; [apply (few_removed _ _ _ _ afforded)|apply (few_altered _ _ _ _ afforded)]. }
    destruct (true_cover _ _ NV FN) as [l [Fl Hl]].
    apply (Moves V _ r (edge_groups ++ l) enew enew).
    - rewrite (egroups_ok _ _ true_votes); intros i Hi Hs.
      destruct (in_dec Nat.eq_dec i edge_groups) as [I1|N1]; [left; rewrite !in_app_iff; auto|].
      destruct (in_dec Nat.eq_dec i l) as [I2|N2]; [left; rewrite !in_app_iff; auto|].
      right; apply (ecast_ok _ _ true_votes i Hi Hs). apply echarged; auto.
      intros w Iw Cw; apply N2, (Hl i w); auto.
    - rewrite (egroups_ok _ _ true_votes); intros i Hi Hs Ht.
      destruct (in_dec Nat.eq_dec i enew) as [I1|N1]; [left; auto|right].
      apply (ecast_ok _ _ true_votes i Hi Hs). apply echarged_beyond; auto. apply (etier_ok _ _ true_votes i Hi Ht).
    - rewrite (egroups_ok _ _ true_votes); intros i Hi Hs Ht.
      destruct (in_dec Nat.eq_dec i enew) as [I1|N1]; [left; auto|right].
      apply (ecast_ok _ _ true_votes i Hi Hs). apply echarged_beyond; auto. apply (etier_ok _ _ true_votes i Hi); congruence.
    - pose proof (few_map edge_group _ _ (few_brought_all id F W id_eq A B G G' v L afforded)) as H1.
      pose proof (few_map edge_group _ _ (few_added _ _ _ _ afforded)) as H2.
      pose proof (few_map edge_group _ _ (few_deleted _ _ _ _ afforded)) as H3.
      pose proof (few_map edge_group _ _ (few_changed _ _ _ _ afforded)) as H4.
      pose proof (few_app _ _ _ _ (few_app _ _ _ _ H1 (few_app _ _ _ _ H2 (few_app _ _ _ _ H3 H4))) Fl) as H.
      fold edge_groups in H. unfold few, within, edge_reach, touched_edges in *; simpl.
      destruct (injected_edges B), (add_edges B), (delete_edges B), (change_edges B), (cover (touched_nodes B));
        simpl in *; auto; lia.
    - exact few_enew.
    - exact few_enew.
  Qed.
End EdgeCentric.

(** Theorem 3, the certificate of the edge-centric division, node task: with a hash that does not depend on the order of the two ids, a model that
    is local (directions ignored), votes and cover table that are those of G, and the test of Theorem 2 passed with n0, n1, n2 of Theorem 3, the
    label of v is a on every attacked graph G' within the budget B, on every machine. *)
Theorem edge_centric_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y})
         (T : nat) (h : id -> id -> nat) (f : model id F W) (v : id)
         (G : graph id F W) (V : votes) (cover : lim -> lim)
         (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (B : budget),
    (forall x y, h x y = h y x) ->
    local_undirected f ->
    efaithful id F W T h f v V G ->
    covers id F W T h v G cover ->
    withstands V C P doubt a (edge_reach cover B) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' ->
      ereading id F W T h f v G' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      voted C T P' r = a.
Proof.
  intros id F W id_eq T h f v G V cover C P doubt a B Hh Lf Hv Hc Hw G' r P' [A [L [Ha Hs]]] Hr HP.
  rewrite <- (egroups_ok _ _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P' doubt a (edge_reach cover B) r); auto.
  apply (eattack_moves id F W id_eq T h Hh f Lf v A G G' L Hs B V cover Ha Hv Hc r Hr).
Qed.

