(** Graphs with a group for each node, or for each pair, T = infinity (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph GraphTask PerNeighbourVote PerNeighbour PerPair.
Import ListNotations.
Open Scope Z_scope.

(** Node-centric: new A, touched d + r, altered r, turned 0. *)
Definition gnode_touches (B : budget) : touches :=
  Touches (inject_nodes B) (ladd (delete_nodes B) (change_features B)) (change_features B) (Some 0).

(** Edge-centric: new A tau + e+, touched e- + e~ + D(d + r), altered e~ + D(r), turned e+. *)
Definition gpair_touches (degrees : lim -> lim) (B : budget) : touches :=
  Touches (ladd (injected_edges B) (add_edges B))
          (ladd (ladd (delete_edges B) (change_edges B)) (degrees (touched_nodes B)))
          (ladd (change_edges B) (degrees (change_features B))) (add_edges B).

Section PerNode.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable g : gmodel id F W.
  Hypothesis g_ext : extensional id F W g.

  (** The group of u: that node, and no arc. *)
  Definition alone (u : id) (G : graph) : graph := Graph (fun x => if id_eq x u then node G x else None) (fun _ _ => None).
  (** S: the nodes of G, each once. *)
  Definition lists_nodes (S : list id) (G : graph) : Prop := NoDup S /\ forall u, In u S <-> node G u <> None.

  (** A deleted node is gone, unless its id is injected again. *)
  Definition nodes_go (A : attack id) (G' : graph) : Prop := forall x, In x (removed A) -> node G' x = None \/ In x (injected A).
  (** Section 1, Attack, graph task, with what Theorem 9 asks in addition. *)
  Definition nodes_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ only_injected id F W A G G' /\ nodes_go A G' /\ affords id_eq B A.

  (** The certificate speaks the truth about G: it lists the nodes, and stable votes are read alike on every machine. *)
  Record nfaithful (V : own_votes id) (G : graph) : Prop := {
    nlists_ok : lists_nodes (cast_by _ V) G;
    ncast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, g (alone u G) y -> y = own_cast _ V u
  }.
  (** What a machine may read on G: the votes of its nodes. *)
  Definition nreading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_nodes S G /\ forall u, In u S -> g (alone u G) (r u).

  Lemma node_attack_moves A G G' B V S' r : leads A G G' -> only_injected id F W A G G' -> nodes_go A G' -> affords id_eq B A ->
    nfaithful V G -> nreading G' S' r -> own_moves id V (gnode_touches B) S' r.
  Proof.
    intros L L3 L4 Ha [[NS HS] HC] [[NS' HS'] HR].
    apply (OwnMoves id V _ S' r (injected A) (removed A) (altered A) []); unfold gnode_touches; simpl.
    - split; [|intros u Hu|contradiction].
      + intros u Hu; destruct (in_dec id_eq u (altered A)) as [|NA]; auto.
        destruct (in_dec id_eq u (removed A)) as [IR|NR].
        { right; right; left; split; auto. destruct (L4 u IR) as [E|]; auto. right; rewrite HS'; auto. }
        assert (n : node G' u = node G u).
        { destruct (nodes_ok _ _ _ _ _ _ L u) as [|[I|[|]]]; auto; try contradiction.
          apply HS in Hu; destruct (fresh_ok _ _ _ _ _ _ L u I); contradiction. }
        assert (I' : In u S') by (apply HS'; rewrite n; apply HS; auto).
        right; right; right; split; auto; intro St. apply (HC u Hu St).
        apply (g_ext (alone u G) (alone u G')); auto. intro x; simpl; destruct (id_eq x u) as [->|]; auto.
      + destruct (in_dec id_eq u (cast_by _ V)) as [|N]; auto; right. apply HS' in Hu.
        apply L3; auto. destruct (node G u) eqn:E; auto. exfalso; apply N, HS; congruence.
    - rewrite app_nil_r; apply Ha.
    - apply few_app; apply Ha.
    - apply Ha.
    - unfold few; simpl; lia.
  Qed.
End PerNode.

Section PerPairOfGraph.
  Variables (id F W key : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Hypothesis key_eq : forall p q : key, {p = q} + {p <> q}.
  Notation graph := (graph id F W).
  Variable g : gmodel id F W.
  Hypothesis g_ext : extensional id F W g.

  (** Every unordered pair has a name. *)
  Variable name : id -> id -> key.
  Hypothesis name_sym : forall x y, name x y = name y x.
  Hypothesis name_inj : forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x').

  (** The group of a pair: its two ends, and its arcs. *)
  Definition both (x y : id) (G : graph) : graph :=
    Graph (fun z => if id_eq z x then node G z else if id_eq z y then node G z else None)
          (fun z w => if id_eq z x then if id_eq w y then arc G z w else if id_eq z y then if id_eq w x then arc G z w else None else None
                      else if id_eq z y then if id_eq w x then arc G z w else None else None).
  (** x and y share an edge. *)
  Definition has_pair (G : graph) (x y : id) : Prop := arc G x y <> None \/ arc G y x <> None.
  (** [counts]: which pairs are counted at all; self-loops are, or are not. *)
  Variable counts : id -> id -> Prop.
  (** S: the names of all pairs of G, each once. *)
  Definition lists_all (S : list key) (G : graph) : Prop :=
    NoDup S /\ forall p, In p S <-> exists x y, counts x y /\ p = name x y /\ has_pair G x y.

  (** Section 1, Attack, graph task, with what Theorem 9 asks in addition; a deleted pair loses all its arcs. *)
  Definition all_pairs_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ affords id_eq B A.

  (** The certificate speaks the truth about G: it lists the pairs, stable votes are read alike, and pairs with one direction only are marked. *)
  Record gpfaithful (V : own_votes key) (G : graph) : Prop := {
    gplists_ok : lists_all (cast_by _ V) G;
    gpcast_ok : forall x y, In (name x y) (cast_by _ V) -> own_stable _ V (name x y) = true ->
      forall b, g (both x y G) b -> b = own_cast _ V (name x y);
    gpway_ok : forall x y, In (name x y) (cast_by _ V) -> arc G x y = None \/ arc G y x = None -> one_way _ V (name x y) = true
  }.
  (** What a machine may read on G: the votes of its pairs. *)
  Definition gpreading (G : graph) (S : list key) (r : key -> vote) : Prop :=
    lists_all S G /\ forall x y, In (name x y) S -> g (both x y G) (r (name x y)).

  (** D(k): k nodes have at most this many pairs. *)
  Definition degrees_ok (G : graph) (degrees : lim -> lim) : Prop :=
    forall (ws : list id) (k : lim), few ws k ->
      exists l : list key, few l (degrees k) /\ forall w y, In w ws -> has_pair G w y -> In (name w y) l.

  (** ---- Proofs ---- *)

  (** The name of a pair. *)
  Definition named (p : id * id) : key := name (fst p) (snd p).
  Lemma named_in x y l : listed x y l -> In (name x y) (map named l).
  Proof.
    intros [I|I]; apply in_map_iff; [exists (x, y)|exists (y, x)]; split; auto; unfold named; simpl; auto.
  Qed.
  Lemma has_sym G x y : has_pair G x y -> has_pair G y x.
  Proof. unfold has_pair; tauto. Qed.

  Lemma both_same G G' x y b : node G' x = node G x -> node G' y = node G y -> arc G' x y = arc G x y -> arc G' y x = arc G y x ->
    (g (both x y G) b <-> g (both x y G') b).
  Proof.
    intros n n' a a'; apply g_ext; simpl.
    - intro z; destruct (id_eq z x) as [->|]; auto; destruct (id_eq z y) as [->|]; auto.
    - intros z w; destruct (id_eq z x) as [->|]; [destruct (id_eq w y) as [->|]; auto; destruct (id_eq x y) as [E|]; auto;
        destruct (id_eq w x) as [->|]; auto; subst; auto|].
      destruct (id_eq z y) as [->|]; auto; destruct (id_eq w x) as [->|]; auto.
  Qed.

  Section Attack.
    Variables (A : attack id) (G G' : graph) (B : budget) (V : own_votes key) (S' : list key) (r : key -> vote) (degrees : lim -> lim).
    Hypothesis L : leads A G G'.
    Hypothesis L2 : strict id F W A G G'.
    Hypothesis L3 : deletes_pairs A G'.
    Hypothesis Ha : affords id_eq B A.
    Hypothesis Hv : gpfaithful V G.
    Hypothesis Hr : gpreading G' S' r.
    Hypothesis Hd : degrees_ok G degrees.
    Variable someone : id.   (* any id: a budget is then not negative *)

    (** An added pair that was there and stays: it gains its second direction. *)
    Definition turns_pair (p : id * id) : bool :=
      mem key key_eq (named p) (cast_by _ V) && one_way _ V (named p)
      && negb (mem id id_eq (fst p) (removed A)) && negb (mem id id_eq (snd p) (removed A))
      && negb (mem key key_eq (named p) (map named (deleted A))).
    (** Theorem 9: the pairs that are turned, among the e+ added ones. *)
    Definition gp_turned : list key := map named (filter turns_pair (added A)).
    (** Theorem 9: the new pairs, A tau + e+ with the turned ones. *)
    Definition gp_new : list key := map named (brought A) ++ map named (filter (fun p => negb (turns_pair p)) (added A)).

    Lemma mem_false {X} (e : forall p q : X, {p = q} + {p <> q}) u l : ~ In u l -> mem X e u l = false.
    Proof. intro; apply not_true_iff_false; rewrite mem_true; auto. Qed.

    Lemma gp_added x y : listed x y (added A) -> (forall p, named p = name x y -> turns_pair p = false) -> In (name x y) gp_new.
    Proof.
      intros P H; apply in_app_iff; right; apply in_map_iff; destruct P as [P|P]; [exists (x, y)|exists (y, x)];
        (split; [unfold named; simpl; auto|apply filter_In; split; auto]); rewrite H; auto; unfold named; simpl; auto.
    Qed.
    Lemma gp_brought x y : listed x y (brought A) -> In (name x y) gp_new.
    Proof. intro P; apply in_app_iff; left; apply named_in; auto. Qed.

    Lemma gp_gone x y : (forall p, named p = name x y -> turns_pair p = false) ->
      (arc G' x y = None \/ listed x y (brought A) \/ listed x y (added A)) ->
      (arc G' y x = None \/ listed y x (brought A) \/ listed y x (added A)) ->
      In (name x y) gp_new \/ ~ In (name x y) S'.
    Proof.
      intros T0 H1 H2. destruct Hr as [[_ HS'] _]. destruct (in_dec key_eq (name x y) S') as [I|]; auto; left.
      destruct (proj1 (HS' _) I) as [x' [y' [_ [E h']]]].
      assert (h : has_pair G' x y) by (destruct (name_inj _ _ _ _ E) as [[-> ->]|[-> ->]]; auto; apply has_sym; auto).
      assert (Q : listed x y (brought A) \/ listed x y (added A)) by (unfold listed in *; destruct h as [h|h]; tauto).
      destruct Q as [Q|Q]; [apply gp_brought; auto|apply gp_added; auto].
    Qed.

    Lemma gp_moves : own_moves key V (gpair_touches degrees B) S' r.
    Proof.
      destruct (Hd (removed A ++ altered A) (touched_nodes B)) as [l0 [Fl0 Hl0]].
      { apply few_app; apply Ha. }
      destruct (Hd (altered A) (change_features B)) as [la [Fla Hla]]; [apply Ha|].
      set (l := nodup key_eq l0).
      assert (Fl : few l (degrees (touched_nodes B))).
      { assert (length l <= length l0)%nat by (apply NoDup_incl_length; [apply NoDup_nodup|intros p I; apply nodup_In in I; auto]).
        revert Fl0; unfold few, within; destruct (degrees (touched_nodes B)); auto; lia. }
      set (inla := fun p => mem key key_eq p la).
      set (lr := filter inla l). set (rest := filter (fun p => negb (inla p)) l).
      assert (Flr : few lr (degrees (change_features B))).
      { assert (length lr <= length la)%nat.
        { apply NoDup_incl_length; [apply NoDup_filter, NoDup_nodup|]. intros p I; apply filter_In in I; destruct I as [_ I]; apply mem_true in I; auto. }
        revert Fla; unfold few, within; destruct (degrees (change_features B)); auto; lia. }
      assert (SP := split_filter inla l : (length lr + length rest = length l)%nat).
      destruct Hv as [[NS HS] HC HW]. destruct Hr as [[NS' HS'] HR].
      apply (OwnMoves key V _ S' r gp_new (map named (deleted A) ++ rest) (map named (changed A) ++ lr) gp_turned); unfold gpair_touches; simpl.
      - split.
        + intros p Hp. destruct (proj1 (HS p) Hp) as [x [y [cc [-> h]]]].
          destruct (in_dec key_eq (name x y) (map named (changed A))) as [IC|NC]; [left; apply in_app_iff; auto|].
          assert (nx : node G x <> None /\ node G y <> None).
          { destruct h as [h|h]; destruct (before_ok _ _ _ _ _ _ L _ _ h); auto. }
          destruct (in_dec key_eq (name x y) lr) as [IL|NL]; [left; apply in_app_iff; auto|].
          assert (NLl : forall w z, In w (altered A) -> has_pair G w z -> name x y = name w z -> False).
          { intros w z Iw hw E; apply NL, filter_In; split; [apply nodup_In; rewrite E; apply (Hl0 w z); auto; apply in_app_iff; auto|].
            unfold inla; apply mem_true; rewrite E; apply (Hla w z); auto. }
          assert (NX : ~ In x (altered A)) by (intro I; apply (NLl x y); auto).
          assert (NY : ~ In y (altered A)) by (intro I; apply (NLl y x); auto; apply has_sym; auto).
          assert (REST : forall w z, In w (removed A) -> has_pair G w z -> name x y = name w z -> In (name x y) rest).
          { intros w z Iw hw E; assert (Il : In (name x y) l) by (apply nodup_In; rewrite E; apply (Hl0 w z); auto; apply in_app_iff; auto).
            apply filter_In; split; auto. destruct (inla (name x y)) eqn:Ei; auto. exfalso; apply NL, filter_In; auto. }
          destruct (in_dec id_eq x (removed A)) as [IX|NRX].
          { right; right; left; split; [apply in_app_iff; right; apply (REST x y); auto|]. apply gp_gone.
            - intros [a b] E; unfold named in E; simpl in E; unfold turns_pair; simpl.
              assert (M1 : mem id id_eq x (removed A) = true) by (apply mem_true; auto).
              destruct (name_inj _ _ _ _ E) as [[-> ->]|[-> ->]]; rewrite M1; simpl; rewrite ?andb_false_r; auto.
            - apply (gone_ok _ _ _ _ _ _ L2); auto.
            - apply (gone_ok _ _ _ _ _ _ L2); auto. }
          destruct (in_dec id_eq y (removed A)) as [IY|NRY].
          { right; right; left; split; [apply in_app_iff; right; apply (REST y x); auto; apply has_sym; auto|]. apply gp_gone.
            - intros [a b] E; unfold named in E; simpl in E; unfold turns_pair; simpl.
              assert (M1 : mem id id_eq y (removed A) = true) by (apply mem_true; auto).
              destruct (name_inj _ _ _ _ E) as [[-> ->]|[-> ->]]; rewrite M1; simpl; rewrite ?andb_false_r; auto.
            - apply (gone_ok _ _ _ _ _ _ L2); auto.
            - apply (gone_ok _ _ _ _ _ _ L2); auto. }
          destruct (in_dec key_eq (name x y) (map named (deleted A))) as [ID|ND].
          { assert (ID' : listed x y (deleted A)).
            { apply in_map_iff in ID; destruct ID as [[a b] [E I]]; unfold named in E; simpl in E.
              destruct (name_inj _ _ _ _ E) as [[-> ->]|[-> ->]]; [left|right]; auto. }
            right; right; left; split; [apply in_app_iff; auto|]. apply gp_gone.
            - intros p E; unfold turns_pair. rewrite E.
              assert (M1 : mem key key_eq (name x y) (map named (deleted A)) = true) by (apply mem_true; auto).
              rewrite M1; simpl; apply andb_false_r.
            - destruct (L3 x y ID') as [|[|]]; auto.
            - destruct (L3 y x) as [|[|]]; auto. unfold listed in *; tauto. }
          assert (N1 : node G' x = node G x).
          { destruct (nodes_ok _ _ _ _ _ _ L x) as [|[I|[|]]]; auto; try contradiction.
            destruct (fresh_ok _ _ _ _ _ _ L x I); tauto. }
          assert (N2 : node G' y = node G y).
          { destruct (nodes_ok _ _ _ _ _ _ L y) as [|[I|[|]]]; auto; try contradiction.
            destruct (fresh_ok _ _ _ _ _ _ L y I); tauto. }
          assert (SAME : arc G' x y = arc G x y -> arc G' y x = arc G y x ->
                    In (name x y) S' /\ (own_stable _ V (name x y) = true -> r (name x y) = own_cast _ V (name x y))).
          { intros E E'; assert (I' : In (name x y) S') by (apply HS'; exists x, y; split; auto; split; auto; unfold has_pair; rewrite E, E'; auto).
            split; auto; intro St. apply (HC x y Hp St), (both_same G G'); auto. }
          assert (NB : forall a b, (a = x /\ b = y) \/ (a = y /\ b = x) -> ~ listed a b (brought A)).
          { intros a b E P.
            assert (Q : In x (injected A) \/ In y (injected A)).
            { destruct P as [P|P]; apply (brings_ok _ _ _ _ _ _ L) in P; destruct E as [[-> ->]|[-> ->]]; auto. }
            destruct Q as [Q|Q]; destruct (fresh_ok _ _ _ _ _ _ L _ Q); tauto. }
          assert (ARC : forall a b, (a = x /\ b = y) \/ (a = y /\ b = x) ->
                    arc G' a b = arc G a b \/ (listed a b (added A) /\ arc G a b = None)).
          { intros a b E. assert (Nm : name a b = name x y) by (destruct E as [[-> ->]|[-> ->]]; auto).
            destruct (arcs_ok _ _ _ _ _ _ L a b) as [|[P|[[P _]|[[P _]|[P|[[P _]|[P _]]]]]]]; auto.
            - destruct (added_ok _ _ _ _ _ _ L2 a b P) as [|[|[Q|[Q|Q]]]]; auto; exfalso.
              + apply ND; rewrite <- Nm; apply named_in; auto.
              + destruct E as [[-> ->]|[-> ->]]; auto.
              + destruct E as [[-> ->]|[-> ->]]; auto.
            - exfalso; apply ND; rewrite <- Nm; apply named_in; auto.
            - exfalso; apply NC; rewrite <- Nm; apply named_in; auto.
            - exfalso; apply (NB a b); auto.
            - exfalso; destruct E as [[-> ->]|[-> ->]]; tauto.
            - exfalso; destruct E as [[-> ->]|[-> ->]]; tauto. }
          assert (TURN : forall a b, (a = x /\ b = y) \/ (a = y /\ b = x) -> listed a b (added A) -> arc G a b = None -> In (name x y) gp_turned).
          { intros a b E P E0.
            assert (W1 : one_way _ V (name x y) = true) by (apply HW; auto; destruct E as [[-> ->]|[-> ->]]; auto).
            assert (TT : forall p, named p = name x y -> turns_pair p = true).
            { intros [c d] Ep; unfold turns_pair; rewrite Ep, W1; unfold named in Ep; simpl in Ep; simpl.
              assert (M1 : mem key key_eq (name x y) (cast_by _ V) = true) by (apply mem_true; auto).
              rewrite M1, (mem_false key_eq (name x y) (map named (deleted A))) by auto.
              destruct (name_inj _ _ _ _ Ep) as [[-> ->]|[-> ->]]; rewrite !mem_false by auto; auto. }
            unfold gp_turned; apply in_map_iff; destruct P as [P|P]; [exists (a, b)|exists (b, a)];
              (assert (En : named (a, b) = name x y) by (unfold named; simpl; destruct E as [[-> ->]|[-> ->]]; auto));
              (assert (En' : named (b, a) = name x y) by (unfold named in *; simpl in *; rewrite name_sym; auto));
              (split; [auto|apply filter_In; split; auto]). }
          destruct (ARC x y) as [E1|[P1 E1]]; [auto| |right; left; apply (TURN x y); auto].
          destruct (ARC y x) as [E2|[P2 E2]]; [auto| |right; left; apply (TURN y x); auto].
          right; right; right; auto.
        + intros p Hp; destruct (in_dec key_eq p (cast_by _ V)) as [|NI]; auto; right.
          destruct (proj1 (HS' p) Hp) as [x [y [cc [-> h]]]].
          assert (Z0 : ~ has_pair G x y) by (intro E; apply NI, HS; exists x, y; auto).
          assert (T0 : forall p, named p = name x y -> turns_pair p = false).
          { intros p E; unfold turns_pair; rewrite E, mem_false; auto. }
          unfold has_pair in *. destruct h as [h|h].
          * destruct (arcs_ok _ _ _ _ _ _ L x y) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try (exfalso; tauto).
            -- exfalso; rewrite E in h; tauto.
            -- apply gp_added; auto.
            -- apply gp_brought; auto.
          * destruct (arcs_ok _ _ _ _ _ _ L y x) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try (exfalso; tauto).
            -- exfalso; rewrite E in h; tauto.
            -- apply gp_added; auto; unfold listed in *; tauto.
            -- apply gp_brought; unfold listed in *; tauto.
        + intros p Hp; unfold gp_turned in Hp; apply in_map_iff in Hp; destruct Hp as [q [<- Hq]].
          apply filter_In in Hq; destruct Hq as [_ Hq]; unfold turns_pair in Hq.
          repeat (apply andb_prop in Hq; destruct Hq as [Hq ?]); auto.
      - pose proof (few_app _ _ _ _ (few_brought_all id F W id_eq A B G G' someone L Ha) (few_added _ _ _ _ Ha)) as H.
        pose proof (split_filter turns_pair (added A)) as E.
        revert H; unfold few, gp_new, gp_turned; rewrite !app_length, !map_length.
        replace (length (brought A) + length (filter (fun p => negb (turns_pair p)) (added A)) + length (filter turns_pair (added A)))%nat
          with (length (brought A) + length (added A))%nat by lia. auto.
      - pose proof (few_deleted _ _ _ _ Ha) as h1; pose proof (few_changed _ _ _ _ Ha) as h2.
        revert h1 h2 Fl; unfold few, within; rewrite !app_length, !map_length.
        destruct (delete_edges B), (change_edges B), (degrees (touched_nodes B)); simpl; auto; lia.
      - apply few_app; [apply few_map; apply Ha|auto].
      - pose proof (few_added _ _ _ _ Ha) as H. pose proof (split_filter turns_pair (added A)) as E.
        revert H; unfold few, within, gp_turned; rewrite map_length; destruct (add_edges B); auto; lia.
    Qed.
  End Attack.
End PerPairOfGraph.

(** Theorem 9, graphs with a group for each node: if the votes are those of G and pass the test with A new, d + r touched and r altered votes,
    the label of the graph is a on every attacked graph G' within the budget. *)
Theorem per_node_graph_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (g : gmodel id F W)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (y0 : vote) (a : nat) (B : budget),
    extensional id F W g ->
    nfaithful id F W id_eq g V G ->
    own_withstands id V C P 0 y0 a (gnode_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      nodes_attacked id F W id_eq B G G' ->
      nreading id F W id_eq g G' S' r ->
      own_voted id C P y0 S' r = a.
Proof.
  intros id F W id_eq g G V C P y0 a B Lg Hv Hw G' S' r [A [L [L3 [L4 Ha]]]] Hr.
  apply (own_vote_sound id id_eq V C P P 0 y0 a (gnode_touches B) S' r); auto.
  - apply (nlists_ok _ _ _ _ _ _ _ Hv).
  - apply Hr.
  - intros; lia.
  - eapply node_attack_moves; eauto.
Qed.

(** Theorem 9, graphs with a group for each pair: the same with A tau + e+ new, e- + e~ + D(d + r) touched, e~ + D(r) altered and e+ turned
    votes. *)
Theorem per_pair_graph_certificate :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id)
         (G : graph id F W) (V : own_votes key) (C : nat) (P : nat -> Z) (y0 : vote) (a : nat) (B : budget) (degrees : lim -> lim),
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g ->
    gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G degrees ->
    own_withstands key V C P 0 y0 a (gpair_touches degrees B) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      all_pairs_attacked id F W id_eq B G G' ->
      gpreading id F W key id_eq g name counts G' S' r ->
      own_voted key C P y0 S' r = a.
Proof.
  intros id F W key id_eq key_eq g name counts someone G V C P y0 a B degrees Hs Hi Lg Hv Hd Hw G' S' r [A [L [L2 [L3 Ha]]]] Hr.
  apply (own_vote_sound key key_eq V C P P 0 y0 a (gpair_touches degrees B) S' r); auto.
  - apply (gplists_ok _ _ _ _ _ _ _ _ _ _ Hv).
  - apply Hr.
  - intros; lia.
  - eapply gp_moves; eauto.
Qed.
