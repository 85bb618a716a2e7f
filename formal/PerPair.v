(** Edge-centric with a group for each pair, T = infinity, node task (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour.
Import ListNotations.
Open Scope Z_scope.

(** A deleted pair loses both directions. One direction of two that goes is a changed pair. *)
Definition deletes_pairs {id F W} (A : attack id) (G' : graph id F W) : Prop :=
  forall x y, listed x y (deleted A) -> arc G' x y = None \/ listed x y (added A) \/ listed x y (brought A).

(** new n+ = A' + e+, touched n = d + e- + r + e~, altered n~ = r + e~, turned t = e+ *)
Definition pair_touches (B : budget) : touches :=
  let n := own_touches B in Touches (t_new n) (t_touched n) (t_altered n) (add_edges B).

Section PerPair.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable f : model id F W.
  Hypothesis f_local : local_undirected f.
  Variable v : id.

  (** The group of the pair {u, v}: its arcs, whichever way they point. A pair of v is named by its other end. *)
  Definition psub (u : id) (G : graph) : graph :=
    keep (fun x y => if id_eq x u then if id_eq y v then true else false
                     else if id_eq x v then if id_eq y u then true else false else false) G.

  (** u shares an edge with v, whichever way it points. *)
  Definition joined_to (G : graph) (u : id) : Prop := u <> v /\ (arc G u v <> None \/ arc G v u <> None).
  (** S: the pairs of v, each named by its other end, once. *)
  Definition lists_pairs (S : list id) (G : graph) : Prop := NoDup S /\ forall u, In u S <-> joined_to G u.

  (** Section 1, Attack, with what Theorem 9 asks in addition; a deleted pair loses all its arcs; the target v is spared. *)
  Definition pairs_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict id F W A G G' /\ deletes_pairs A G' /\ affords id_eq B A /\ spares A v.

  (** The certificate speaks the truth about G: it lists the pairs of v, stable votes are read alike on every machine, and pairs with one
      direction only are marked. *)
  Record pfaithful (V : own_votes id) (G : graph) : Prop := {
    plists_ok : lists_pairs (cast_by _ V) G;
    pcast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, f (psub u G) v y -> y = own_cast _ V u;
    pway_ok : forall u, In u (cast_by _ V) -> arc G u v = None \/ arc G v u = None -> one_way _ V u = true
  }.
  (** What a machine may read on G: the votes of v's pairs. *)
  Definition preading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_pairs S G /\ forall u, In u S -> f (psub u G) v (r u).

  (** ---- Proofs ---- *)

  Notation other := (other id id_eq v).

  Lemma psub_arc u G x y : arc (psub u G) x y <> None -> (x = u /\ y = v) \/ (x = v /\ y = u).
  Proof. simpl; destruct (id_eq x u), (id_eq y v), (id_eq x v), (id_eq y u); auto; congruence. Qed.

  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.
  Hypothesis L3 : deletes_pairs A G'.
  Hypothesis spared : spares A v.

  Lemma pair_same u y : node G' u = node G u -> arc G' u v = arc G u v -> arc G' v u = arc G v u ->
    (f (psub u G) v y <-> f (psub u G') v y).
  Proof.
    intros n a a'. apply (f_local (psub u G) (psub u G') v (fun x => x = u \/ x = v)).
    - apply keep_well_formed, (before_ok _ _ _ _ _ _ L).
    - apply keep_well_formed, (after_ok _ _ _ _ _ _ L).
    - auto.
    - intros x z e _; apply psub_arc in e; tauto.
    - intros x z e _; apply psub_arc in e; tauto.
    - split.
      + intros x [-> | ->]; [exact n|exact (spared_node id F W A G G' v L spared)].
      + intros x z _ _; simpl. destruct (id_eq x u) as [->|]; [destruct (id_eq z v) as [->|]; auto|].
        destruct (id_eq x v) as [->|]; [destruct (id_eq z u) as [->|]; auto|auto].
  Qed.

  Variables (B : budget) (V : own_votes id) (S' : list id) (r : id -> vote).
  Hypothesis afforded : affords id_eq B A.
  Hypothesis true_votes : pfaithful V G.
  Hypothesis r_read : preading G' S' r.

  Lemma listed_dec x y (l : list (id * id)) : {listed x y l} + {~ listed x y l}.
  Proof.
    assert (D : forall p q : id * id, {p = q} + {p <> q}) by (decide equality).
    unfold listed; destruct (in_dec D (x, y) l), (in_dec D (y, x) l); tauto.
  Defined.
  Lemma listed_sym x y (l : list (id * id)) : listed x y l -> listed y x l.
  Proof. unfold listed; tauto. Qed.

  (** A pair of v that has one direction, is neither deleted nor loses an end, and is added: it is turned. *)
  Definition turns (u : id) : bool :=
    mem id id_eq u (cast_by _ V) && one_way _ V u && negb (mem id id_eq u (removed A))
    && (if listed_dec u v (deleted A) then false else true).
  Lemma split_filter {X} (p : X -> bool) l : (length (filter p l) + length (filter (fun u => negb (p u)) l) = length l)%nat.
  Proof. clear; induction l as [|x l IH]; simpl; auto; destruct (p x); simpl; lia. Qed.

  (** What the lists of new, removed, altered and turned pairs must hold. *)
  Record pair_lists_ok (new rem alt turn : list id) : Prop := {
    pin_new : forall u, u <> v -> listed u v (brought A) -> In u new;
    pin_added : forall u, u <> v -> listed u v (added A) -> turns u = false -> In u new;
    pin_turn : forall u, u <> v -> listed u v (added A) -> turns u = true -> In u turn;
    pin_rem : forall u, In u (cast_by _ V) -> In u (removed A) -> ~ In u (altered A) -> In u rem;
    pin_rem_pair : forall u, u <> v -> listed u v (deleted A) -> In u rem;
    pin_alt : forall u, In u (cast_by _ V) -> In u (altered A) -> In u alt;
    pin_alt_pair : forall u, u <> v -> listed u v (changed A) -> In u alt;
    turn_turns : forall u, In u turn -> turns u = true
  }.

  Lemma pair_attack_changes new rem alt turn : pair_lists_ok new rem alt turn -> own_changes id V S' r new rem alt turn.
  Proof.
    intros [brought_pair added_new K3 K4 K5 K6 K7 K8].
    destruct spared as [sv1 [sv2 sv3]]. destruct true_votes as [[NS HS] HC HW]. destruct r_read as [[NS' HS'] HR].
    split.
    - intros u Hu; destruct (proj1 (HS u) Hu) as [N a].
      assert (nu : node G u <> None).
      { destruct a as [a|a]; destruct (before_ok _ _ _ _ _ _ L _ _ a); auto. }
      destruct (in_dec id_eq u (altered A)) as [IA|NA]; [left; auto|].
      destruct (listed_dec u v (changed A)) as [IC|NC].
      { left; auto. }
      assert (BACK : forall P : Prop, (listed u v (brought A) \/ listed u v (added A) -> turns u = false) ->
                (forall x z, (x = u /\ z = v) \/ (x = v /\ z = u) -> arc G' x z = None \/ listed x z (brought A) \/ listed x z (added A)) ->
                In u new \/ ~ In u S').
      { intros _ T0 H0. destruct (in_dec id_eq u S') as [I'|]; auto; left.
        assert (Q : listed u v (brought A) \/ listed u v (added A)).
        { destruct (proj1 (HS' u) I') as [_ [a'|a']].
          - destruct (H0 u v) as [E|[E|E]]; auto; contradiction.
          - destruct (H0 v u) as [E|[E|E]]; auto; [contradiction|left|right]; apply listed_sym; auto. }
        destruct Q as [Q|Q]; [apply brought_pair; auto|apply added_new; auto]. }
      destruct (in_dec id_eq u (removed A)) as [IR|NR].
      { right; right; left; split; [auto|]. apply (BACK True).
        - intros _; unfold turns. assert (E : mem id id_eq u (removed A) = true) by (apply mem_true; auto).
          rewrite E; simpl; rewrite andb_false_r; auto.
        - intros x z [[-> ->]|[-> ->]]; apply (gone_ok _ _ _ _ _ _ L2); auto. }
      destruct (listed_dec u v (deleted A)) as [ID|ND].
      { right; right; left; split; [auto|]. apply (BACK True).
        - intros _; unfold turns; destruct (listed_dec u v (deleted A)); [apply andb_false_r|contradiction].
        - intros x z [[-> ->]|[-> ->]].
          + destruct (L3 u v ID) as [|[|]]; auto.
          + destruct (L3 v u (listed_sym _ _ _ ID)) as [|[|]]; auto. }
      assert (n : node G' u = node G u).
      { destruct (nodes_ok _ _ _ _ _ _ L u) as [|[I|[|]]]; auto; try contradiction.
        destruct (fresh_ok _ _ _ _ _ _ L u I); contradiction. }
      assert (SAME : arc G' u v = arc G u v -> arc G' v u = arc G v u -> In u S' /\ (own_stable _ V u = true -> r u = own_cast _ V u)).
      { intros E E'; assert (I' : In u S') by (apply HS'; split; auto; rewrite E, E'; auto). split; auto; intro St.
        apply (HC u Hu St), pair_same; auto. }
      destruct (turns u) eqn:Et.
      { destruct (listed_dec u v (added A)) as [IP|NP].
        - right; left; auto.
        - right; right; right; apply SAME.
          + destruct (arcs_ok _ _ _ _ _ _ L u v) as [|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; exfalso; try tauto.
            destruct P as [P|P]; [|apply sv1, (brings_ok _ _ _ _ _ _ L _ _ P)].
            destruct (fresh_ok _ _ _ _ _ _ L u (brings_ok _ _ _ _ _ _ L _ _ P)); contradiction.
          + destruct (arcs_ok _ _ _ _ _ _ L v u) as [|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; exfalso; try tauto;
              try (apply listed_sym in P; contradiction).
            destruct P as [P|P]; [apply sv1, (brings_ok _ _ _ _ _ _ L _ _ P)|].
            destruct (fresh_ok _ _ _ _ _ _ L u (brings_ok _ _ _ _ _ _ L _ _ P)); contradiction. }
      (* both directions are there, or the pair is not added: an added pair leaves them as they are *)
      right; right; right; apply SAME.
      + destruct (arcs_ok _ _ _ _ _ _ L u v) as [|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; try (exfalso; tauto).
        * destruct (added_ok _ _ _ _ _ _ L2 u v P) as [E|[E|[E|[E|E]]]]; auto; try contradiction.
          exfalso. assert (W1 : one_way _ V u = true) by (apply HW; auto).
          unfold turns in Et; rewrite W1 in Et.
          assert (M1 : mem id id_eq u (cast_by _ V) = true) by (apply mem_true; auto).
          assert (M2 : mem id id_eq u (removed A) = false) by (apply not_true_iff_false; rewrite mem_true; auto).
          rewrite M1, M2 in Et; destruct (listed_dec u v (deleted A)); [contradiction|discriminate].
        * exfalso. destruct P as [P|P]; [|apply sv1, (brings_ok _ _ _ _ _ _ L _ _ P)].
          destruct (fresh_ok _ _ _ _ _ _ L u (brings_ok _ _ _ _ _ _ L _ _ P)); contradiction.
      + destruct (arcs_ok _ _ _ _ _ _ L v u) as [|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; try (exfalso; tauto);
          try (apply listed_sym in P; contradiction).
        * destruct (added_ok _ _ _ _ _ _ L2 v u P) as [E|[E|[E|[E|E]]]]; auto; try contradiction.
          2: { apply listed_sym in E; contradiction. }
          exfalso. assert (W1 : one_way _ V u = true) by (apply HW; auto).
          unfold turns in Et; rewrite W1 in Et.
          assert (M1 : mem id id_eq u (cast_by _ V) = true) by (apply mem_true; auto).
          assert (M2 : mem id id_eq u (removed A) = false) by (apply not_true_iff_false; rewrite mem_true; auto).
          rewrite M1, M2 in Et; destruct (listed_dec u v (deleted A)); [contradiction|discriminate].
        * exfalso. destruct P as [P|P]; [apply sv1, (brings_ok _ _ _ _ _ _ L _ _ P)|].
          destruct (fresh_ok _ _ _ _ _ _ L u (brings_ok _ _ _ _ _ _ L _ _ P)); contradiction.
    - intros u Hu; destruct (in_dec id_eq u (cast_by _ V)) as [|NI]; auto; right.
      destruct (proj1 (HS' u) Hu) as [N a'].
      assert (Z1 : ~ arc G u v <> None) by (intro E; apply NI, HS; split; auto).
      assert (Z2 : ~ arc G v u <> None) by (intro E; apply NI, HS; split; auto).
      assert (Et : turns u = false).
      { unfold turns. assert (M1 : mem id id_eq u (cast_by _ V) = false) by (apply not_true_iff_false; rewrite mem_true; auto).
        rewrite M1; auto. }
      destruct a' as [a'|a'].
      + destruct (arcs_ok _ _ _ _ _ _ L u v) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction.
        * rewrite E in a'; contradiction.
        * apply added_new; auto.
        * apply brought_pair; auto.
      + destruct (arcs_ok _ _ _ _ _ _ L v u) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction.
        * rewrite E in a'; contradiction.
        * apply added_new; auto; apply listed_sym; auto.
        * apply brought_pair; auto; apply listed_sym; auto.
    - intros u Hu; apply K8 in Hu; unfold turns in Hu.
      repeat (apply andb_prop in Hu; destruct Hu as [Hu ?]); auto.
  Qed.

  (** Theorem 9: pairs that gain their second direction, among the e+ added ones. *)
  Definition pair_turned : list id := filter turns (map other (added A)).
  (** Theorem 9: new pairs, of injected nodes and the other added ones. *)
  Definition pair_new : list id := joined A ++ filter (fun u => negb (turns u)) (map other (added A)).

  Lemma pair_lists : pair_lists_ok pair_new (own_removed id id_eq v A) (own_altered id id_eq v A) pair_turned.
  Proof.
    unfold pair_new, pair_turned, own_removed, own_altered. split; intros.
    - apply in_app_iff; left; apply (brought_new id F W v A G G' L spared u); auto.
    - apply in_app_iff; right; apply filter_In; split; [apply (other_in id id_eq v); auto|rewrite H1; auto].
    - apply filter_In; split; auto; apply (other_in id id_eq v); auto.
    - apply in_app_iff; auto.
    - apply in_app_iff; right; apply (other_in id id_eq v); auto.
    - apply in_app_iff; auto.
    - apply in_app_iff; right; apply (other_in id id_eq v); auto.
    - apply filter_In in H; apply H.
  Qed.

  Lemma pair_attack_moves : own_moves id V (pair_touches B) S' r.
  Proof.
    apply (OwnMoves id V _ S' r _ _ _ _ (pair_attack_changes _ _ _ _ pair_lists)); unfold own_removed, own_altered, pair_touches, own_touches; simpl.
    - pose proof (few_app _ _ _ _ (few_joined id F W id_eq A B G G' v L afforded) (few_map other _ _ (few_added _ _ _ _ afforded))) as H.
      revert H; unfold few, pair_new, pair_turned; rewrite !app_length, map_length.
      pose proof (split_filter turns (map other (added A))) as E; rewrite map_length in E.
      replace (length (joined A) + length (filter (fun u => negb (turns u)) (map other (added A))) + length (filter turns (map other (added A))))%nat
        with (length (joined A) + length (added A))%nat by lia. auto.
    - apply few_app; apply few_app; try apply few_map; apply afforded.
    - apply few_app; try apply few_map; apply afforded.
    - pose proof (few_added _ _ _ _ afforded) as H; pose proof (split_filter turns (map other (added A))) as E; rewrite map_length in E.
      revert H; unfold few, within, pair_turned; destruct (add_edges B); auto; lia.
  Qed.
End PerPair.

(** Theorem 9, a group for each pair, node task: model local along edges, votes that are those of G, and the test passed with new, touched, altered
    and turned votes of the budget. Then the label of v is a on every attacked graph G' within the budget. *)
Theorem per_pair_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (f : model id F W) (v : id)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (B : budget),
    local_undirected f ->
    pfaithful id F W id_eq f v V G ->
    own_withstands id V C P doubt y0 a (pair_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      pairs_attacked id F W id_eq v B G G' ->
      preading id F W id_eq f v G' S' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_voted id C P' y0 S' r = a.
Proof.
  intros id F W id_eq f v G V C P doubt y0 a B Lf Hv Hw G' S' r P' [A [L [L2 [L3 [Ha Hs]]]]] Hr HP.
  apply (own_vote_sound id id_eq V C P P' doubt y0 a (pair_touches B) S' r); auto.
  - apply (plists_ok _ _ _ _ _ _ _ _ Hv).
  - apply Hr.
  - apply (pair_attack_moves id F W id_eq f Lf v A G G' L L2 L3 Hs B V S' r Ha Hv Hr).
Qed.
