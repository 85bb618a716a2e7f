(** The node-centric division, node task (docs/proofs.md, Theorem 4; paper, Theorems 6 to 8). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph.
Import ListNotations.
Open Scope Z_scope.

Section NodeCentric.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).

  Variable T : nat.
  Variable h : id -> nat.                       (* any hash *)
  Variable f : model id F W.
  Hypothesis f_local : local f.
  Variable v : id.                              (* the target *)

  (** The subgraph of group i: all nodes, and the arcs that leave a node of group i. *)
  Definition sub (i : nat) (G : graph) : graph := keep (fun x _ => Nat.eqb (h x) i) G.

  (** S(v): the groups in which v has an incoming arc. *)
  Definition reached (G : graph) (i : nat) : Prop := hears (sub i G) v.

  (** The one group whose vote a pair can change. *)
  Definition pair_group (p : id * id) : nat := if id_eq (snd p) v then h (fst p) else h (snd p).

  (** The certificate speaks the truth about G: stable votes are read alike on every machine, votes that are not
      reached have no incoming arc, and [S] lists the reached groups. *)
  Record faithful (V : votes) (G : graph) : Prop := {
    groups_ok : groups V = T;
    cast_ok : forall i, (i < T)%nat -> stable V i = true -> forall y, f (sub i G) v y -> y = cast V i;
    tier_ok : forall i, (i < T)%nat -> tier_of V i <> Reached -> ~ reached G i
  }.

  (** What a machine may read on G'. *)
  Definition reading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> f (sub i G) v (r i).

  (** |S(v)|: the votes that are marked as reached. *)
  Definition num_reached (V : votes) : Z := num (groups V) (fun i => teq (tier_of V i) Reached).

  (** n0 = A' + e+ + e- + e~ + min(d + r, |S(v)|), n1 = n2 = A' + e+ *)
  Definition node_reach_of (reached : Z) (B : budget) : reach :=
    let new := ladd (joined_nodes B) (add_edges B) in
    Reach (ladd (joined_nodes B) (ladd (touched_edges B) (lmin (touched_nodes B) (Some reached)))) new new.
  (** Theorem 4: n0, n1, n2 of a budget, with |S(v)| taken from the marks. *)
  Definition node_reach (V : votes) (B : budget) : reach := node_reach_of (num_reached V) B.

  (** ---- Proofs ---- *)

  Lemma sub_arc i G x y : arc (sub i G) x y <> None -> h x = i /\ arc G x y <> None.
  Proof. simpl; destruct (Nat.eqb_spec (h x) i); [auto|congruence]. Qed.

  Lemma sub_in i (G : graph) x y : h x = i -> arc (sub i G) x y = arc G x y.
  Proof. simpl; intros <-; rewrite Nat.eqb_refl; auto. Qed.

  Lemma sub_out i (G : graph) x y : h x <> i -> arc (sub i G) x y = None.
  Proof. simpl; intro H; destruct (Nat.eqb_spec (h x) i); [contradiction|auto]. Qed.

  (** Section 4, Only new neighbours count: a vote changes only where v has an incoming arc before or after. Nothing is assumed about the attack. *)
  Theorem only_neighbours G G' i y :
    well_formed G -> well_formed G' -> node G' v = node G v ->
    ~ reached G i -> ~ reached G' i -> (f (sub i G) v y <-> f (sub i G') v y).
  Proof.
    intros w w' n q q'. apply (f_local (sub i G) (sub i G') v (fun x => x = v)); try apply keep_well_formed; auto.
    - intros x z -> a; exfalso; apply q; exists x; auto.
    - intros x z -> a; exfalso; apply q'; exists x; auto.
    - split; [intros x E; rewrite E; exact n|].
      intros x z -> ->. destruct (arc (sub i G') v v) eqn:E'.
      + exfalso; apply q'; exists v; congruence.
      + destruct (arc (sub i G) v v) eqn:E; auto. exfalso; apply q; exists v; congruence.
  Qed.

  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis spared : spares A v.

  (** The groups charged to e+ and A': added pairs, and injected nodes that have an edge. *)
  Definition new_groups : list nat := map h (joined A) ++ map pair_group (added A).
  (** The groups charged to e- and e~. *)
  Definition pair_groups : list nat := map pair_group (deleted A) ++ map pair_group (changed A).
  (** The groups charged to d and r: a node is charged for its own group alone. *)
  Definition node_groups : list nat := map h (removed A) ++ map h (altered A).

  Lemma pair_heard i x y l : h x = i -> y = v \/ h y = i -> listed x y l -> In i (map pair_group l).
  Proof.
    intros Hx Hy [I|I]; apply in_map_iff; [exists (x, y)|exists (y, x)]; split; auto; unfold pair_group; simpl.
    - destruct (id_eq y v); auto; destruct Hy; [contradiction|auto].
    - destruct (id_eq x v) as [->|]; auto; destruct Hy as [->|]; auto.
  Qed.

  Lemma pair_joined i x y : h x = i -> y = v \/ h y = i -> listed x y (brought A) -> In i (map h (joined A)).
  Proof.
    intros Hx Hy [I|I]; pose proof (joined_in id F W _ _ _ _ _ L I) as J; apply in_map_iff.
    - exists x; auto.
    - destruct Hy as [->|Hy]; [|exists y; auto].
      exfalso; apply (proj1 spared); apply (brings_ok _ _ _ _ _ _ L v x I).
  Qed.

  (** A vote that no unit of the budget is charged for does not change. *)
  Lemma charged i y :
    ~ In i new_groups -> ~ In i pair_groups -> ~ In i node_groups -> (f (sub i G) v y <-> f (sub i G') v y).
  Proof.
    unfold new_groups, pair_groups, node_groups; rewrite !in_app_iff; intros N1 N2 N3.
    assert (NJ : ~ In i (map h (joined A))) by tauto.
    assert (ND : ~ In i (map h (removed A))) by tauto.
    assert (NR : ~ In i (map h (altered A))) by tauto.
    set (K := fun x => x = v \/ (h x = i /\ ~ In x (injected A))).
    assert (KP : forall z, K z -> z = v \/ h z = i) by (intros z [?|[? _]]; auto).
    assert (NX : forall x l, ~ In i (map h l) -> h x = i -> ~ In x l).
    { intros x l Hn Hx Hi; apply Hn, in_map_iff; exists x; auto. }
    assert (AR : forall x z, h x = i -> K z -> arc G' x z = arc G x z).
    { intros x z Hx Kz; destruct (arcs_ok _ _ _ _ _ _ L x z) as [|[P|[[P _]|[[P _]|[P|[[P _]|[P _]]]]]]]; auto; exfalso.
      - apply (pair_heard i) in P; auto.
      - apply (pair_heard i) in P; auto.
      - apply (pair_heard i) in P; auto.
      - apply (pair_joined i) in P; auto.
      - destruct P as [P|P].
        + apply (NX x (removed A)); auto.
        + destruct Kz as [->|[Hz _]]; [apply (proj1 (proj2 spared)); auto|apply (NX z (removed A)); auto].
      - destruct P as [P|P].
        + apply (NX x (altered A)); auto.
        + destruct Kz as [->|[Hz _]]; [apply (proj2 (proj2 spared)); auto|apply (NX z (altered A)); auto]. }
    assert (OLD : forall x z, h x = i -> arc G x z <> None -> ~ In x (injected A)).
    { intros x z Hx a I. destruct (fresh_ok _ _ _ _ _ _ L x I) as [E|E].
      - destruct (before_ok _ _ _ _ _ _ L x z a); contradiction.
      - apply (NX x (removed A)); auto. }
    apply (f_local (sub i G) (sub i G') v K).
    - apply keep_well_formed, (before_ok _ _ _ _ _ _ L).
    - apply keep_well_formed, (after_ok _ _ _ _ _ _ L).
    - left; auto.
    - intros x z Kz a; destruct (sub_arc _ _ _ _ a) as [Hx a']; right; split; eauto.
    - intros x z Kz a; destruct (sub_arc _ _ _ _ a) as [Hx a']; right; split; auto.
      rewrite AR in a'; eauto.
    - split.
      + intros x Kx; change (node G' x = node G x).
        destruct Kx as [->|[Hx Hi]]; [apply (spared_node id F W A); auto|].
        destruct (nodes_ok _ _ _ _ _ _ L x) as [|[|[|]]]; auto; exfalso;
          [contradiction|apply (NX x (removed A)); auto|apply (NX x (altered A)); auto].
      + intros x z Kx Kz; destruct (Nat.eq_dec (h x) i) as [Hx|Hx].
        * rewrite !sub_in; auto.
        * rewrite !sub_out; auto.
  Qed.

  (** Outside S(v) only new neighbours change a vote. *)
  Lemma charged_beyond i y : ~ reached G i -> ~ In i new_groups -> (f (sub i G) v y <-> f (sub i G') v y).
  Proof.
    intros q N. apply only_neighbours; auto.
    - apply (before_ok _ _ _ _ _ _ L).
    - apply (after_ok _ _ _ _ _ _ L).
    - apply (spared_node id F W A); auto.
    - intros [x a]; destruct (sub_arc _ _ _ _ a) as [Hx a'].
      assert (Z0 : ~ arc G x v <> None) by (intro E; apply q; exists x; rewrite sub_in; auto).
      unfold new_groups in N; rewrite in_app_iff in N.
      destruct (arcs_ok _ _ _ _ _ _ L x v) as [P|[P|[[_ P]|[[_ P]|[P|[[_ P]|[_ P]]]]]]].
      + rewrite P in a'; contradiction.
      + apply N; right; apply (pair_heard i x v); auto.
      + contradiction.
      + contradiction.
      + apply N; left; apply (pair_joined i x v); auto.
      + contradiction.
      + contradiction.
  Qed.

  Variable B : budget.
  Hypothesis afforded : affords id_eq B A.

  Lemma few_new : few new_groups (ladd (joined_nodes B) (add_edges B)).
  Proof.
    apply few_app; apply few_map; [apply (few_joined id F W id_eq A B G G' v); auto|apply (few_added _ _ _ _ afforded)].
  Qed.

  Variable V : votes.
  Hypothesis true_votes : faithful V G.
  Variable r : nat -> vote.
  Hypothesis r_read : reading G' r.

  Let at_reached : list nat := filter (fun i => teq (tier_of V i) Reached) (seq 0 T).
  Let nodes_reached : list nat := filter (fun i => if in_dec Nat.eq_dec i node_groups then true else false) at_reached.

  Lemma few_nodes_reached : few nodes_reached (lmin (touched_nodes B) (Some (num_reached V))).
  Proof.
    assert (H : (length nodes_reached <= length node_groups)%nat /\ (length nodes_reached <= length at_reached)%nat).
    { split; apply NoDup_incl_length; try apply NoDup_filter, NoDup_filter, seq_NoDup.
      - intros i Hi; apply filter_In in Hi; destruct Hi as [_ Hi].
        destruct (in_dec Nat.eq_dec i node_groups); [auto|discriminate].
      - intros i Hi; apply filter_In in Hi; tauto. }
    assert (N : few node_groups (touched_nodes B)).
    { apply few_app; apply few_map; [apply (few_removed _ _ _ _ afforded)|apply (few_altered _ _ _ _ afforded)]. }
    assert (E : Z.of_nat (length at_reached) = num_reached V).
    { unfold num_reached, at_reached; rewrite num_filter, (groups_ok _ _ true_votes); auto. }
    unfold few, within in *; destruct (touched_nodes B); simpl; lia.
  Qed.

  Lemma attack_moves : moves V (node_reach V B) r.
  Proof.
    apply (Moves V _ r (new_groups ++ (map pair_group (deleted A) ++ map pair_group (changed A)) ++ nodes_reached)
                       new_groups new_groups).
    - rewrite (groups_ok _ _ true_votes); intros i Hi Hs.
      destruct (in_dec Nat.eq_dec i new_groups) as [I1|N1]; [left; rewrite !in_app_iff; auto|].
      destruct (in_dec Nat.eq_dec i pair_groups) as [I2|N2].
      { left; unfold pair_groups in I2; rewrite !in_app_iff in *; tauto. }
      destruct (in_dec Nat.eq_dec i nodes_reached) as [I3|N3]; [left; rewrite !in_app_iff; auto|].
      right; apply (cast_ok _ _ true_votes i Hi Hs).
      destruct (tier_of V i) eqn:Et.
      + apply charged; auto. intro I; apply N3, filter_In; split.
        * apply filter_In; split; [apply in_seq; lia|rewrite Et; auto].
        * destruct (in_dec Nat.eq_dec i node_groups); [auto|contradiction].
      + apply charged_beyond; auto. apply (tier_ok _ _ true_votes i Hi); congruence.
      + apply charged_beyond; auto. apply (tier_ok _ _ true_votes i Hi); congruence.
    - rewrite (groups_ok _ _ true_votes); intros i Hi Hs Ht.
      destruct (in_dec Nat.eq_dec i new_groups) as [I1|N1]; [left; auto|right].
      apply (cast_ok _ _ true_votes i Hi Hs). apply charged_beyond; auto. apply (tier_ok _ _ true_votes i Hi Ht).
    - rewrite (groups_ok _ _ true_votes); intros i Hi Hs Ht.
      destruct (in_dec Nat.eq_dec i new_groups) as [I1|N1]; [left; auto|right].
      apply (cast_ok _ _ true_votes i Hi Hs). apply charged_beyond; auto. apply (tier_ok _ _ true_votes i Hi); congruence.
    - pose proof (few_app _ _ _ _ (few_map pair_group _ _ (few_deleted _ _ _ _ afforded))
                                  (few_map pair_group _ _ (few_changed _ _ _ _ afforded))) as Hp.
      pose proof (few_app _ _ _ _ few_new (few_app _ _ _ _ Hp few_nodes_reached)) as H.
      unfold few, within, node_reach, node_reach_of, touched_edges in *; simpl.
      destruct (joined_nodes B), (add_edges B), (delete_edges B), (change_edges B),
        (lmin (touched_nodes B) (Some (num_reached V))); simpl in *; auto; lia.
    - exact few_new.
    - exact few_new.
  Qed.
End NodeCentric.

(** Theorem 4, the certificate of the node-centric division: if the votes are those of G and pass the test, then on every graph G'
    within the budget, and on every machine, the label of v is a. The prior may differ by [doubt]. *)
Theorem node_centric_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y})
         (T : nat) (h : id -> nat) (f : model id F W) (v : id)
         (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (B : budget),
    local f ->
    faithful id F W T h f v V G ->
    withstands V C P doubt a (node_reach V B) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      attacked id_eq B v G G' ->
      reading id F W T h f v G' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      voted C T P' r = a.
Proof.
  intros id F W id_eq T h f v G V C P doubt a B Lf Hv Hw G' r P' [A [L [Ha Hs]]] Hr HP.
  rewrite <- (groups_ok _ _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P' doubt a (node_reach V B) r); auto.
  apply (attack_moves id F W id_eq T h f Lf v A G G' L Hs B Ha V Hv r Hr).
Qed.


(** The paper's Theorem 7, for a model that is a function: at most |E+| + |E-| + |V+| + |V-| + |Vr| votes differ
    (and |E~| for edges of another weight, which the paper does not have). The target is spared, which the paper does
    not say. *)
Theorem paper_theorem_7 :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> nat)
         (g : graph id F W -> id -> vote) (v : id) (A : attack id) (G G' : graph id F W),
    local (fun G v y => y = g G v) ->
    leads A G G' -> spares A v ->
    num T (fun i => negb (beq (g (sub id F W h i G) v) (g (sub id F W h i G') v)))
      <= Z.of_nat (length (added A) + length (deleted A) + length (changed A)
                   + length (injected A) + length (removed A) + length (altered A)).
Proof.
  intros id F W id_eq T h g v A G G' Lg L S.
  set (l := new_groups id id_eq h v A ++ pair_groups id id_eq h v A ++ node_groups id h A).
  transitivity (Z.of_nat (length l)).
  - apply num_list; intros i Hi Hn. apply negb_true_iff, beq_false in Hn.
    destruct (in_dec Nat.eq_dec i l) as [|N]; auto; exfalso; apply Hn.
    unfold l in N; rewrite !in_app_iff in N.
    apply (charged id F W id_eq h _ Lg v A G G' L S i (g (sub id F W h i G) v)); tauto.
  - unfold l, new_groups, pair_groups, node_groups; rewrite !app_length, !map_length.
    assert (length (joined A) <= length (injected A))%nat by (unfold joined; destruct (Nat.ltb_spec (length (brought A)) (length (injected A))); rewrite ?map_length; lia).
    lia.
Qed.
