(** Graph classification (docs/proofs.md, Theorem 6). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph.
Import ListNotations.
Open Scope Z_scope.

Section GraphTask.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable T : nat.

  (** A model of whole graphs. It ignores how nodes are numbered: the same nodes and arcs, the same readings. *)
  Definition gmodel := graph -> vote -> Prop.
  (** The model sees nothing but nodes and arcs; locality is not needed. *)
  Definition extensional (g : gmodel) : Prop :=
    forall G G' y, (forall x, node G' x = node G x) -> (forall x z, arc G' x z = arc G x z) -> (g G y <-> g G' y).

  Variable g : gmodel.
  Hypothesis g_ext : extensional g.

  (** No node is the target; what comes to be was injected. *)
  Definition only_injected (A : attack id) (G G' : graph) : Prop :=
    forall x, node G x = None -> node G' x <> None -> In x (injected A).
  (** Section 1, Attack, graph task: changes that fit the budget, and only injection makes a node. *)
  Definition gattacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ only_injected A G G' /\ affords id_eq B A.

  Section Node.
    Variable h : id -> nat.
    (** The divisions, node-centric, graph task: the subgraph of group i has the nodes of its group and the edges among them. *)
    Definition gsub (i : nat) (G : graph) : graph :=
      Graph (fun x => if Nat.eqb (h x) i then node G x else None)
            (fun x y => if Nat.eqb (h x) i && Nat.eqb (h y) i then arc G x y else None).
    (** Self-loops are absent (dropped). *)
    Definition loopless (G : graph) : Prop := forall x, arc G x x = None.

    (** The certificate speaks the truth about G: a subgraph is reached if it has two nodes, and unlisted if it has none. *)
    Record gfaithful (V : votes) (G : graph) : Prop := {
      ggroups_ok : groups V = T;
      gcast_ok : forall i, (i < T)%nat -> stable V i = true -> forall y, g (gsub i G) y -> y = cast V i;
      gtier_ok : forall i, (i < T)%nat -> tier_of V i <> Reached ->
        forall x y, h x = i -> h y = i -> node G x <> None -> node G y <> None -> x = y;
      gunlisted_ok : forall i, (i < T)%nat -> tier_of V i = Unlisted -> forall x, h x = i -> node G x = None
    }.
    (** Where self-loops are kept, one node makes a subgraph reached: whatever is not reached has no node. *)
    Record gfaithful_loops (V : votes) (G : graph) : Prop := {
      lgroups_ok : groups V = T;
      lcast_ok : forall i, (i < T)%nat -> stable V i = true -> forall y, g (gsub i G) y -> y = cast V i;
      ltier_ok : forall i, (i < T)%nat -> tier_of V i <> Reached -> forall x, h x = i -> node G x = None
    }.
    (** What a machine may read on G: one vote in each group. *)
    Definition greading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> g (gsub i G) (r i).

    (** n0 = A + d + r + e+ + e- + e~, n1 = A + d + r, n2 = A *)
    Definition gnode_reach (B : budget) : reach :=
      let nodes := ladd (inject_nodes B) (touched_nodes B) in
      Reach (ladd nodes (touched_edges B)) nodes (inject_nodes B).

    Variables (A : attack id) (G G' : graph).
    Hypothesis L : leads A G G'.
    Hypothesis L3 : only_injected A G G'.

    (** Theorem 6, node-centric: an injected, deleted or altered node touches its own group. *)
    Definition gnodes : list nat := map h (injected A) ++ map h (removed A) ++ map h (altered A).
    (** Theorem 6, node-centric: an edge touches a subgraph only if both ends are of that group, so that the group of one end is enough. *)
    Definition gpairs : list nat :=
      let first p := h (fst p) in map first (added A) ++ map first (deleted A) ++ map first (changed A).

    Lemma gnode_same i x : ~ In i gnodes -> h x = i -> node G' x = node G x.
    Proof.
      unfold gnodes; rewrite !in_app_iff; intros N Hx.
      assert (Q : forall l, In x l -> In i (map h l)) by (intros l I; apply in_map_iff; exists x; auto).
      destruct (nodes_ok _ _ _ _ _ _ L x) as [|[I|[I|I]]]; auto; apply Q in I; tauto.
    Qed.

    Lemma gsame i y : (forall x, h x = i -> node G' x = node G x) ->
      (forall x z, h x = i -> h z = i -> arc G' x z = arc G x z) -> (g (gsub i G) y <-> g (gsub i G') y).
    Proof.
      intros Hn Ha; apply g_ext; simpl.
      - intro x; destruct (Nat.eqb_spec (h x) i); auto.
      - intros x z; destruct (Nat.eqb_spec (h x) i), (Nat.eqb_spec (h z) i); simpl; auto.
    Qed.

    Lemma gcharged i y : ~ In i gnodes -> ~ In i gpairs -> (g (gsub i G) y <-> g (gsub i G') y).
    Proof.
      intros N1 N2; apply gsame; [intros x; apply gnode_same; auto|].
      unfold gnodes, gpairs in *; rewrite !in_app_iff in *; intros x z Hx Hz.
      assert (Q : forall w l, h w = i -> In w l -> In i (map h l)) by (intros w l E I; apply in_map_iff; exists w; auto).
      assert (QP : forall l, listed x z l -> In i (map (fun p => h (fst p)) l)).
      { intros l [I|I]; apply in_map_iff; [exists (x, z)|exists (z, x)]; auto. }
      destruct (arcs_ok _ _ _ _ _ _ L x z) as [|[P|[[P _]|[[P _]|[P|[[[P|P] _]|[[P|P] _]]]]]]]; auto; exfalso.
      - apply QP in P; tauto.
      - apply QP in P; tauto.
      - apply QP in P; tauto.
      - destruct P as [P|P]; apply (brings_ok _ _ _ _ _ _ L), Q in P; auto.
      - apply Q in P; auto.
      - apply Q in P; auto.
      - apply Q in P; auto.
      - apply Q in P; auto.
    Qed.

    Lemma gcharged_beyond i y : loopless G -> loopless G' ->
      (forall x z, h x = i -> h z = i -> node G x <> None -> node G z <> None -> x = z) ->
      ~ In i gnodes -> (g (gsub i G) y <-> g (gsub i G') y).
    Proof.
      intros no_loops no_loops' S N; assert (Hn : forall x, h x = i -> node G' x = node G x) by (intro x; apply gnode_same; auto).
      apply gsame; auto; intros x z Hx Hz.
      assert (E : arc G x z = None).
      { destruct (arc G x z) eqn:E; auto; exfalso. destruct (before_ok _ _ _ _ _ _ L x z) as [a b]; [congruence|].
        assert (x = z) by auto; subst z; rewrite no_loops in E; discriminate. }
      assert (E' : arc G' x z = None).
      { destruct (arc G' x z) eqn:E'; auto; exfalso. destruct (after_ok _ _ _ _ _ _ L x z) as [a b]; [congruence|].
        rewrite Hn in a, b by auto. assert (x = z) by auto; subst z; rewrite no_loops' in E'; discriminate. }
      congruence.
    Qed.

    Lemma gcharged_unlisted i y : (forall x, h x = i -> node G x = None) -> ~ In i (map h (injected A)) ->
      (g (gsub i G) y <-> g (gsub i G') y).
    Proof.
      intros S N. assert (Hn : forall x, h x = i -> node G' x = None).
      { intros x Hx; destruct (node G' x) eqn:E; auto; exfalso; apply N, in_map_iff; exists x; split; auto.
        apply L3; [auto|congruence]. }
      apply gsame; [intros x Hx; rewrite S, Hn; auto|]; intros x z Hx Hz.
      assert (E : arc G x z = None).
      { destruct (arc G x z) eqn:E; auto; exfalso. destruct (before_ok _ _ _ _ _ _ L x z) as [a b]; [congruence|]; auto. }
      assert (E' : arc G' x z = None).
      { destruct (arc G' x z) eqn:E'; auto; exfalso. destruct (after_ok _ _ _ _ _ _ L x z) as [a b]; [congruence|]; auto. }
      congruence.
    Qed.

    Variables (B : budget) (V : votes) (r : nat -> vote).
    Hypothesis afforded : affords id_eq B A.
    Hypothesis r_read : greading G' r.

    Lemma gattack_moves : gfaithful V G -> loopless G -> loopless G' -> moves V (gnode_reach B) r.
    Proof.
      intros true_votes no_loops no_loops'. destruct true_votes as [GT GC GR GU]. destruct afforded as [f1 f2 f3 f4 f5 f6 f7 f8].
      assert (FN : few gnodes (ladd (inject_nodes B) (touched_nodes B))).
      { apply few_app; [|apply few_app]; apply few_map; auto. }
      apply (Moves V _ r (gnodes ++ gpairs) gnodes (map h (injected A))); rewrite ?GT.
      - intros i Hi Hs. destruct (in_dec Nat.eq_dec i (gnodes ++ gpairs)) as [|N]; auto; right.
        rewrite in_app_iff in N; apply (GC i Hi Hs), gcharged; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i gnodes) as [|N]; auto; right.
        apply (GC i Hi Hs), gcharged_beyond; auto. intros x z; apply GR; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (map h (injected A))) as [|N]; auto; right.
        apply (GC i Hi Hs), gcharged_unlisted; auto. apply (GU i Hi Ht).
      - apply few_app; auto. unfold gpairs; cbv zeta. apply few_app; [|apply few_app]; apply few_map; auto.
      - exact FN.
      - apply few_map; auto.
    Qed.

    Lemma gattack_moves_loops : gfaithful_loops V G -> moves V (gnode_reach B) r.
    Proof.
      intros [GT GC GR]. destruct afforded as [f1 f2 f3 f4 f5 f6 f7 f8].
      assert (FN : few gnodes (ladd (inject_nodes B) (touched_nodes B))).
      { apply few_app; [|apply few_app]; apply few_map; auto. }
      assert (E : forall i, (i < T)%nat -> stable V i = true -> tier_of V i <> Reached -> ~ In i (map h (injected A)) -> r i = cast V i).
      { intros i Hi Hs Ht N; apply (GC i Hi Hs), gcharged_unlisted; auto. apply (GR i Hi Ht). }
      apply (Moves V _ r (gnodes ++ gpairs) gnodes (map h (injected A))); rewrite ?GT.
      - intros i Hi Hs. destruct (in_dec Nat.eq_dec i (gnodes ++ gpairs)) as [|N]; auto; right.
        rewrite in_app_iff in N; apply (GC i Hi Hs), gcharged; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i gnodes) as [|N]; auto; right. apply E; auto.
        intro I; apply N; unfold gnodes; apply in_app_iff; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (map h (injected A))) as [|N]; auto; right. apply E; auto; congruence.
      - apply few_app; auto. unfold gpairs; cbv zeta. apply few_app; [|apply few_app]; apply few_map; auto.
      - exact FN.
      - apply few_map; auto.
    Qed.
  End Node.

  Section Edge.
    Variable h : id -> id -> nat.
    Hypothesis h_sym : forall x y, h x y = h y x.

    (** The divisions, edge-centric, graph task: the arcs of group i. *)
    Definition arcs_of (i : nat) (G : graph) (x y : id) : option W := if Nat.eqb (h x y) i then arc G x y else None.
    (** The node x has an edge in group i. *)
    Definition has (i : nat) (G : graph) (x : id) : Prop := exists y, arcs_of i G x y <> None \/ arcs_of i G y x <> None.

    (** H is the subgraph of group i: its edges, and their ends only. *)
    Definition is_sub (i : nat) (G H : graph) : Prop :=
      (forall x y, arc H x y = arcs_of i G x y)
      /\ forall x, (has i G x -> node H x = node G x) /\ (~ has i G x -> node H x = None).
    (** What may be read in group i of G. A subgraph without an edge is the empty graph; the page
        has it abstain, here it may cast any vote. *)
    Definition gread (i : nat) (G : graph) (y : vote) : Prop := exists H, is_sub i G H /\ g H y.

    (** The certificate speaks the truth about G: T groups, stable votes read alike, and a group that is not marked as reached has no edge. *)
    Record egfaithful (V : votes) (G : graph) : Prop := {
      eg_groups : groups V = T;
      eg_cast : forall i, (i < T)%nat -> stable V i = true -> forall y, gread i G y -> y = cast V i;
      eg_tier : forall i, (i < T)%nat -> tier_of V i <> Reached -> forall x y, arcs_of i G x y = None
    }.
    (** What a machine may read on G: one vote in each group. *)
    Definition egreading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> gread i G (r i).

    (** Theorem 6: Cov(k) bounds the subgraphs in which k nodes have an edge. *)
    Definition gcovers (G : graph) (cover : lim -> lim) : Prop :=
      forall (ws : list id) (k : lim), few ws k ->
        exists l : list nat, few l (cover k) /\ forall i w, (i < T)%nat -> In w ws -> has i G w -> In i l.

    (** n0 = A tau + e+ + e- + e~ + Cov(d + r), n1 = n2 = A tau + e+ *)
    Definition gedge_reach (cover : lim -> lim) (B : budget) : reach :=
      let new := ladd (injected_edges B) (add_edges B) in
      Reach (ladd new (ladd (ladd (delete_edges B) (change_edges B)) (cover (touched_nodes B)))) new new.

    Variables (A : attack id) (G G' : graph).
    Hypothesis L : leads A G G'.
    (** The one group to which an edge belongs. *)
    Definition eg (p : id * id) : nat := h (fst p) (snd p).
    (** Theorem 6, edge-centric: the groups of new edges, A tau + e+ of them. *)
    Definition eg_new : list nat := map eg (brought A) ++ map eg (added A).
    (** Theorem 6, edge-centric: the groups of deleted and changed edges, e- + e~ of them. *)
    Definition eg_old : list nat := map eg (deleted A) ++ map eg (changed A).

    Lemma eg_in i x y l : h x y = i -> listed x y l -> In i (map eg l).
    Proof.
      intros Hx [I|I]; apply in_map_iff; [exists (x, y)|exists (y, x)]; split; auto; unfold eg; simpl; rewrite h_sym; auto.
    Qed.

    Lemma eg_same i y : (forall x z, arcs_of i G' x z = arcs_of i G x z) ->
      (forall x, has i G x -> node G' x = node G x) -> (gread i G y <-> gread i G' y).
    Proof.
      intros Ha Hn.
      assert (Q : forall x, has i G x <-> has i G' x) by (intro x; split; intros [z c]; exists z; [rewrite !Ha|rewrite !Ha in c]; auto).
      split; intros [H [[a b] c]]; exists H; split; auto; split; intros.
      - rewrite a; auto.
      - destruct (b x) as [b1 b2]; split; intro q; [rewrite Hn; [apply b1|]; apply Q; auto|apply b2; rewrite Q; auto].
      - rewrite a; auto.
      - destruct (b x) as [b1 b2]; split; intro q; [rewrite <- Hn; [apply b1|]; auto; apply Q; auto|apply b2; rewrite <- Q; auto].
    Qed.

    Lemma eg_charged i y : ~ In i eg_new -> ~ In i eg_old ->
      (forall w, In w (removed A ++ altered A) -> ~ has i G w) -> (gread i G y <-> gread i G' y).
    Proof.
      unfold eg_new, eg_old; rewrite !in_app_iff; intros N1 N2 N3.
      assert (R : forall w, has i G w -> ~ In w (removed A) /\ ~ In w (altered A)).
      { intros w Hw; split; intro I; apply (N3 w); auto; apply in_app_iff; auto. }
      apply eg_same.
      - intros x z; unfold arcs_of; destruct (Nat.eqb_spec (h x z) i) as [E|]; auto.
        destruct (arcs_ok _ _ _ _ _ _ L x z) as [|[P|[[P _]|[[P _]|[P|[[P E0]|[P E0]]]]]]]; auto;
          try (apply (eg_in i) in P; tauto).
        2: { exfalso; assert (a : arcs_of i G x z <> None) by (unfold arcs_of; rewrite E, Nat.eqb_refl; congruence).
             destruct (R x (ex_intro _ z (or_introl a))), (R z (ex_intro _ x (or_intror a))); tauto. }
        rewrite E0; destruct (arc G x z) eqn:Eg; auto; exfalso.
        assert (a : arcs_of i G x z <> None) by (unfold arcs_of; rewrite E, Nat.eqb_refl; congruence).
        destruct (R x (ex_intro _ z (or_introl a))), (R z (ex_intro _ x (or_intror a))); tauto.
      - intros x Hx; destruct (R x Hx) as [r1 r2].
        destruct (nodes_ok _ _ _ _ _ _ L x) as [|[I|[|]]]; auto; try contradiction.
        destruct (fresh_ok _ _ _ _ _ _ L x I) as [E|]; [|contradiction]; exfalso.
        destruct Hx as [z [a|a]]; unfold arcs_of in a;
          match type of a with context [if ?c then _ else _] => destruct c; [|congruence] end;
          destruct (before_ok _ _ _ _ _ _ L _ _ a); contradiction.
    Qed.

    Lemma eg_charged_beyond i y : (forall x z, arcs_of i G x z = None) -> ~ In i eg_new -> (gread i G y <-> gread i G' y).
    Proof.
      unfold eg_new; rewrite in_app_iff; intros S N. apply eg_same.
      - intros x z; rewrite S; specialize (S x z); unfold arcs_of in *; destruct (Nat.eqb_spec (h x z) i) as [E|]; auto.
        destruct (arcs_ok _ _ _ _ _ _ L x z) as [E0|[P|[[P E0]|[[P E0]|[P|[[P E0]|[P E0]]]]]]]; auto; try congruence;
          apply (eg_in i) in P; tauto.
      - intros x [z [a|a]]; rewrite S in a; contradiction.
    Qed.

    Variables (B : budget) (V : votes) (cover : lim -> lim) (r : nat -> vote).
    Hypothesis afforded : affords id_eq B A.
    Hypothesis true_votes : egfaithful V G.
    Hypothesis true_cover : gcovers G cover.
    Hypothesis r_read : egreading G' r.
    Variable someone : id.   (* any id: a budget is then not negative *)

    Lemma egattack_moves : moves V (gedge_reach cover B) r.
    Proof.
      destruct true_votes as [GT GC GR].
      pose proof (few_brought_all id F W id_eq A B G G' someone L afforded) as fb.
      destruct afforded as [f1 f2 f3 f4 f5 f6 f7 f8].
      destruct (true_cover (removed A ++ altered A) (touched_nodes B)) as [l [Fl Hl]]; [apply few_app; auto|].
      assert (FN : few eg_new (ladd (injected_edges B) (add_edges B))) by (apply few_app; apply few_map; auto).
      apply (Moves V _ r (eg_new ++ eg_old ++ l) eg_new eg_new); rewrite ?GT; auto.
      - intros i Hi Hs. destruct (in_dec Nat.eq_dec i (eg_new ++ eg_old ++ l)) as [|N]; auto; right.
        rewrite !in_app_iff in N; apply (GC i Hi Hs), eg_charged; auto. intros w Iw Hw; apply N; eauto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i eg_new) as [|N]; auto; right.
        apply (GC i Hi Hs), eg_charged_beyond; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i eg_new) as [|N]; auto; right.
        apply (GC i Hi Hs), eg_charged_beyond; auto; apply GR; auto; congruence.
      - apply few_app; auto. apply few_app; auto. apply few_app; apply few_map; auto.
    Qed.
  End Edge.
End GraphTask.

(** Theorem 6, node-centric, graphs without self-loops before and after: if the votes are those of G and pass the test of Theorem 2 with n0, n1, n2
    of Theorem 6, the label of the graph is a on every attacked graph G' within the budget. *)
Theorem node_centric_graph_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> nat) (g : gmodel id F W)
         (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget),
    extensional id F W g ->
    gfaithful id F W T g h V G ->
    loopless id F W G ->
    withstands V C P 0 a (gnode_reach B) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' ->
      greading id F W T g h G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T h g G V C P a B Lg Hv Hl Hw G' r [A [L [L3 Ha]]] Hl' Hr.
  rewrite <- (ggroups_ok _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P 0 a (gnode_reach B) r); auto; [intros; lia|].
  apply (gattack_moves id F W id_eq T g Lg h A G G' L L3 B V r Ha Hr); auto.
Qed.

(** Theorem 6, node-centric: the same where self-loops are kept, in G as in G'. *)
Theorem node_centric_graph_certificate_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> nat) (g : gmodel id F W)
         (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget),
    extensional id F W g ->
    gfaithful_loops id F W T g h V G ->
    withstands V C P 0 a (gnode_reach B) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      greading id F W T g h G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T h g G V C P a B Lg Hv Hw G' r [A [L [L3 Ha]]] Hr.
  rewrite <- (lgroups_ok _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P 0 a (gnode_reach B) r); auto; [intros; lia|].
  apply (gattack_moves_loops id F W id_eq T g Lg h A G G' L L3 B V r Ha Hr Hv).
Qed.

(** Theorem 6, edge-centric: if votes and cover table are those of G and pass the test of Theorem 2 with n0, n1, n2 of Theorem 6, the label of the
    graph is a on every attacked graph G' within the budget. *)
Theorem edge_centric_graph_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> id -> nat) (g : gmodel id F W)
         (G : graph id F W) (V : votes) (cover : lim -> lim) (C : nat) (P : nat -> Z) (a : nat) (B : budget) (someone : id),
    (forall x y, h x y = h y x) ->
    egfaithful id F W T g h V G ->
    gcovers id F W T h G cover ->
    withstands V C P 0 a (gedge_reach cover B) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      egreading id F W T g h G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T h g G V cover C P a B s Hh Hv Hc Hw G' r [A [L [L3 Ha]]] Hr.
  rewrite <- (eg_groups _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P 0 a (gedge_reach cover B) r); auto; [intros; lia|].
  eapply egattack_moves; eauto.
Qed.
