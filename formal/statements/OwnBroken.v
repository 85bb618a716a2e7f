(* What OwnBroken.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** How many targets one attacked graph breaks where every neighbour, or pair, has a group of its own (docs/proofs.md, Theorem 9, "Many
    targets"): need(v) in new neighbours, and the second sum with need2(v) in new, removed and altered votes. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates
  CoverTable Broken.
Import ListNotations.
Open Scope Z_scope.

(** Theorem 9, many targets: a broken target needed at least as many new votes, and at least as many votes touched, as the checker says. *)
Theorem own_need_sound :
  forall (key : Type) (key_eq : forall p q : key, {p = q} + {p <> q}) (s : settings) (t : target) (q : query) (V : own_votes key)
         (S' : list key) (r : key -> vote) (P' : nat -> Z) (new rem alt turn : list key) (g x : Z) (n : touches),
    own_groups s = true -> (0 < num_classes s)%nat ->
    touches_of s (count_target s t) (clip_budget (sparing q)) false = Some n ->
    numbered t V -> NoDup (cast_by _ V) -> NoDup S' -> own_changes key V S' r new rem alt turn ->
    few (new ++ turn) (t_new n) -> few (rem ++ alt) (t_touched n) -> few alt (t_altered n) -> few turn (t_turned n) ->
    Z.of_nat (length (new ++ turn)) <= g -> Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
    own_prior_read s t P' ->
    own_voted key (num_classes s) P' (empty_casts s) S' r <> label_of s t ->
    (exists k, need s (count_target s t) q = Some k /\ k <= g) /\ (exists k, touch_need s (count_target s t) q = Some k /\ k <= x).

Section OwnBroken.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.

  (** The pairs of a list that have v as an end. *)
  Definition here (v : id) (l : list (id * id)) : list (id * id) := filter (at_ id id_eq v) l.

  (** Deleted and altered nodes, one that is both counted once. *)
  Definition touched_ids : list id := nodup id_eq (altered A ++ removed A).

  (** The changes at v: pairs of v, and deleted or altered neighbours. *)
  Definition changes_at (v : id) (S : list id) : Z :=
    Z.of_nat (length (here v (brought A)) + length (here v (added A)) + length (here v (deleted A)) + length (here v (changed A))
              + length (filter (fun u => mem id id_eq u S) touched_ids)).

  Section Target.
    Variable v : id.
    Hypothesis spared : spares A v.
    Variable V : own_votes id.
    Notation other := (other id id_eq v).

    Let S := cast_by id V.
    Variables (s : settings) (t : target) (q : query) (S' : list id) (r : id -> vote) (P' : nat -> Z).
    Hypothesis HC : (0 < num_classes s)%nat.
    Hypothesis nodes : of_graphs s = false.
    Hypothesis afforded : affords id_eq (sparing q) A.
    Hypothesis named : numbered t V.
    Hypothesis HP : own_prior_read s t P'.
    Hypothesis HB : own_voted id (num_classes s) P' (empty_casts s) S' r <> label_of s t.

    (** Theorem 9, many targets: a broken target has gained the neighbours that it needs, and has the changes that it needs. *)
    Definition both_needs : Prop :=
      (exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)))
      /\ (exists k, touch_need s (count_target s t) q = Some k /\ k <= changes_at v S).

    (** Theorem 9, many targets, a group for each neighbour: a broken target had both its needs. *)
    Theorem per_neighbour_need (f : model id F W) :
      rule s = ByNeighbour -> local f -> ofaithful id F W id_eq f v V G -> oreading id F W id_eq f v G' S' r -> both_needs.
    Hypothesis L3 : deletes_pairs A G'.

    (** Theorem 9, many targets, a group for each pair: the same. *)
    Theorem per_pair_need (f : model id F W) :
      rule s = ByPair -> local_undirected f -> pfaithful id F W id_eq f v V G -> preading id F W id_eq f v G' S' r -> both_needs.
  End Target.
  (** ---- The second sum ---- *)
  Variables (targets broken : list id) (neighbours : id -> list id). (* S of each target *)
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.
  Hypothesis all_spared : forall v, In v broken -> spares A v.

  (** The targets next to w. *)
  Definition next_to (w : id) : list id := filter (fun v => mem id id_eq w (neighbours v)) targets.
  (** N: [hubs] are the numbers of targets next to each node, the largest first; zeros may be left out. *)
  Variables (hubs : list Z) (ids : list id).
  Hypothesis ids_once : NoDup ids.
  Hypothesis hubs_are : Permutation hubs (map (fun w => Z.of_nat (length (next_to w))) ids).
  Hypothesis hubs_descend : descends hubs.
  Hypothesis hubs_all : forall w, In w touched_ids -> next_to w <> [] -> In w ids.
  Variable q : query.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Variable someone : id. (* any id: a budget is then not negative *)

  (** Theorem 9, many targets: the changes at all broken targets together are at most 2 (e+ + e- + e~) + A tau + N(d + r). *)
  Theorem changes_fit : within (total_of id (fun v => changes_at v (neighbours v)) broken) (left_for_touches hubs q).

  (** Theorem 9, many targets: both sums. Every broken target has its two needs, from [per_neighbour_need] or [per_pair_need]. *)
  Theorem own_broken_bound (s : settings) (file : id -> target) (p p2 : Z) :
    of_graphs s = false -> snd q = false ->
    (forall v, In v broken ->
       (exists k, need s (count_target s (file v)) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)))
       /\ (exists k, touch_need s (count_target s (file v)) q = Some k /\ k <= changes_at v (neighbours v))) ->
    Z.of_nat (length broken) <= broken_at_most s q (Z.of_nat (length targets)) (fails_of id s file targets q)
      (needs_of id s file targets q) p hubs (map (fun v => touch_need s (count_target s (file v)) q) targets) p2.
End OwnBroken.
