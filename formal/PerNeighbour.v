(** Node-centric with a group for each neighbour, T = infinity, node task (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote.
Import ListNotations.
Open Scope Z_scope.

Section PerNeighbour.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable f : model id F W.
  Hypothesis f_local : local f.
  Variable v : id.

  (** The group of u: the arcs that leave u, self-loops dropped. *)
  Definition osub (u : id) (G : graph) : graph :=
    keep (fun x y => if id_eq x u then if id_eq x y then false else true else false) G.

  (** S: the neighbours that send v messages. *)
  Definition lists_neighbours (S : list id) (G : graph) : Prop :=
    NoDup S /\ forall u, In u S <-> u <> v /\ arc G u v <> None.

  (** What Theorem 9 needs of an attack besides [leads]: a removed node takes its arcs along, and under its old id brings
      new ones only; an added pair leaves an arc that is there as it is, unless the pair is deleted too. *)
  Record strict (A : attack id) (G G' : graph) : Prop := {
    gone_ok : forall x y, In x (removed A) \/ In y (removed A) ->
      arc G' x y = None \/ listed x y (brought A) \/ listed x y (added A);
    added_ok : forall x y, listed x y (added A) ->
      arc G x y = None \/ arc G' x y = arc G x y \/ listed x y (deleted A) \/ In x (removed A) \/ In y (removed A)
  }.

  (** Section 1, Attack, with what Theorem 9 asks in addition; the target v is spared. *)
  Definition strictly_attacked (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ strict A G G' /\ affords id_eq B A /\ spares A v.

  (** The certificate speaks the truth about G: it lists the neighbours that send v messages, and stable votes are read alike on every machine. *)
  Record ofaithful (V : own_votes id) (G : graph) : Prop := {
    olists_ok : lists_neighbours (cast_by _ V) G;
    ocast_ok : forall u, In u (cast_by _ V) -> own_stable _ V u = true -> forall y, f (osub u G) v y -> y = own_cast _ V u
  }.

  (** What a machine may read on G: the votes of v's neighbours. *)
  Definition oreading (G : graph) (S : list id) (r : id -> vote) : Prop :=
    lists_neighbours S G /\ forall u, In u S -> f (osub u G) v (r u).

  (** new n+ = A' + e+, touched n = d + e- + r + e~, altered n~ = r + e~, turned 0 *)
  Definition own_touches (B : budget) : touches :=
    Touches (ladd (joined_nodes B) (add_edges B))
            (ladd (ladd (delete_nodes B) (delete_edges B)) (ladd (change_features B) (change_edges B)))
            (ladd (change_features B) (change_edges B)) (Some 0).

  (** ---- Proofs ---- *)

  (** The end of a pair of v that is not v. *)
  Definition other (p : id * id) : id := if id_eq (snd p) v then fst p else snd p.

  Lemma other_in u l : u <> v -> listed u v l -> In u (map other l).
  Proof.
    intros N [I|I]; apply in_map_iff; [exists (u, v)|exists (v, u)]; split; auto; unfold other; simpl.
    - destruct (id_eq v v); [auto|contradiction].
    - destruct (id_eq u v); [contradiction|auto].
  Qed.

  Lemma osub_arc u G x y : arc (osub u G) x y <> None -> x = u /\ x <> y /\ arc G x y <> None.
  Proof. simpl; destruct (id_eq x u); [destruct (id_eq x y); [congruence|auto]|congruence]. Qed.

  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict A G G'.
  Hypothesis spared : spares A v.

  (** v's vote of u is a function of u, v and the arc between them. *)
  Lemma own_same u y : u <> v -> node G' u = node G u -> arc G' u v = arc G u v -> (f (osub u G) v y <-> f (osub u G') v y).
  Proof.
    intros N n a. apply (f_local (osub u G) (osub u G') v (fun x => x = u \/ x = v)).
    - apply keep_well_formed, (before_ok _ _ _ _ _ _ L).
    - apply keep_well_formed, (after_ok _ _ _ _ _ _ L).
    - auto.
    - intros x z Kz a'; apply osub_arc in a'; tauto.
    - intros x z Kz a'; apply osub_arc in a'; tauto.
    - split.
      + intros x [-> | ->]; [exact n|exact (spared_node id F W A G G' v L spared)].
      + intros x z Kx Kz; simpl; destruct (id_eq x u) as [->|]; [|auto]; destruct (id_eq u z); [auto|].
        destruct Kz as [Kz | Kz]; [congruence|rewrite Kz; auto].
  Qed.

  Variables (B : budget) (V : own_votes id) (S' : list id) (r : id -> vote).
  Hypothesis afforded : affords id_eq B A.
  Hypothesis true_votes : ofaithful V G.
  Hypothesis r_read : oreading G' S' r.

  Lemma brought_new u : u <> v -> listed u v (brought A) -> In u (joined A).
  Proof.
    intros N [I|I]; [apply (joined_in id F W _ _ _ _ _ L I)|].
    exfalso; apply (proj1 spared), (brings_ok _ _ _ _ _ _ L _ _ I).
  Qed.

  (** What the lists of new, removed and altered neighbours must hold. *)
  Record lists_ok (new rem alt : list id) : Prop := {
    in_new : forall u, u <> v -> listed u v (brought A) \/ listed u v (added A) -> In u new;
    in_rem : forall u, In u (cast_by _ V) -> In u (removed A) -> ~ In u (altered A) -> In u rem;
    in_rem_pair : forall u, u <> v -> listed u v (deleted A) -> In u rem;
    in_alt : forall u, In u (cast_by _ V) -> In u (altered A) -> In u alt;
    in_alt_pair : forall u, u <> v -> listed u v (changed A) -> In u alt
  }.

  Lemma own_attack_changes new rem alt : lists_ok new rem alt -> own_changes id V S' r new rem alt [].
  Proof.
    intros [K1 K2 K3 K4 K5]. destruct spared as [sv1 [sv2 sv3]]. destruct (olists_ok _ _ true_votes) as [NS HS]. destruct r_read as [[NS' HS'] HR].
    split.
    - intros u Hu; destruct (proj1 (HS u) Hu) as [N a].
      destruct (before_ok _ _ _ _ _ _ L u v a) as [nu nv].
      destruct (in_dec id_eq u (altered A)) as [IA|NA]; [left; auto|].
      destruct (in_dec id_eq u (removed A)) as [IR|NR].
      { right; right; left; split; [auto|].
        destruct (in_dec id_eq u S') as [I'|]; [left|auto].
        destruct (proj1 (HS' u) I') as [_ a'].
        destruct (gone_ok _ _ _ L2 u v (or_introl IR)) as [E|[P|P]]; [congruence| |]; auto. }
      assert (n : node G' u = node G u).
      { destruct (nodes_ok _ _ _ _ _ _ L u) as [|[I|[|]]]; auto; try contradiction.
        destruct (fresh_ok _ _ _ _ _ _ L u I); contradiction. }
      assert (SAME : arc G' u v = arc G u v -> In u S' /\ (own_stable _ V u = true -> r u = own_cast _ V u)).
      { intro E; assert (I' : In u S') by (apply HS'; rewrite E; auto). split; auto; intro St.
        apply (ocast_ok _ _ true_votes u Hu St), own_same; auto. }
      destruct (arcs_ok _ _ _ _ _ _ L u v) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]].
      + auto 6.
      + destruct (added_ok _ _ _ L2 u v P) as [E|[E|[E|[E|E]]]]; try contradiction.
        * auto 6.
        * right; right; left; split; auto.
      + right; right; left; split; [auto|]. right; intro I'; apply HS' in I'; tauto.
      + left; auto.
      + exfalso. destruct P as [P|P]; [|apply sv1, (brings_ok _ _ _ _ _ _ L _ _ P)].
        destruct (fresh_ok _ _ _ _ _ _ L u (brings_ok _ _ _ _ _ _ L _ _ P)); contradiction.
      + exfalso; tauto.
      + exfalso; tauto.
    - intros u Hu; destruct (in_dec id_eq u (cast_by _ V)) as [|NI]; auto; right.
      destruct (proj1 (HS' u) Hu) as [N a'].
      assert (Z0 : ~ arc G u v <> None) by (intro E; apply NI, HS; auto).
      destruct (arcs_ok _ _ _ _ _ _ L u v) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; try contradiction; auto.
      rewrite E in a'; contradiction.
    - contradiction.
  Qed.

  (** Theorem 9: the new votes, A' + e+ of them. *)
  Definition own_new : list id := joined A ++ map other (added A).
  (** Theorem 9: the votes that go, d + e- of them. *)
  Definition own_removed : list id := removed A ++ map other (deleted A).
  (** Theorem 9: the votes that are altered, r + e~ of them. *)
  Definition own_altered : list id := altered A ++ map other (changed A).

  Lemma own_lists_ok : lists_ok own_new own_removed own_altered.
  Proof.
    unfold own_new, own_removed, own_altered. split; intros; apply in_app_iff; auto; try (right; apply other_in; auto; fail).
    destruct H0; [left; apply brought_new; auto|right; apply other_in; auto].
  Qed.

  Lemma own_attack_moves : own_moves id V (own_touches B) S' r.
  Proof.
    apply (OwnMoves id V _ S' r own_new own_removed own_altered [] (own_attack_changes _ _ _ own_lists_ok)); unfold own_new, own_removed, own_altered.
    - rewrite app_nil_r; apply few_app; [apply (few_joined id F W id_eq A B G G' v); auto|apply few_map, (few_added _ _ _ _ afforded)].
    - apply few_app; apply few_app; try apply few_map; apply afforded.
    - apply few_app; try apply few_map; apply afforded.
    - unfold few; simpl; lia.
  Qed.
End PerNeighbour.

(** Theorem 9, a group for each neighbour, node task: local model, votes that are those of G, and the test passed with new, touched and altered
    votes of the budget. Then the label of v is a on every attacked graph G' within the budget. *)
Theorem per_neighbour_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (f : model id F W) (v : id)
         (G : graph id F W) (V : own_votes id) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (B : budget),
    local f ->
    ofaithful id F W id_eq f v V G ->
    own_withstands id V C P doubt y0 a (own_touches B) ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      strictly_attacked id F W id_eq v B G G' ->
      oreading id F W id_eq f v G' S' r ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_voted id C P' y0 S' r = a.
Proof.
  intros id F W id_eq f v G V C P doubt y0 a B Lf Hv Hw G' S' r P' [A [L [L2 [Ha Hs]]]] Hr HP.
  apply (own_vote_sound id id_eq V C P P' doubt y0 a (own_touches B) S' r); auto.
  - apply (olists_ok _ _ _ _ _ _ _ _ Hv).
  - apply Hr.
  - apply (own_attack_moves id F W id_eq f Lf v A G G' L L2 Hs B V S' r Ha Hv Hr).
Qed.
