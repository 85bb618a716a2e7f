(* What Broken.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** How many targets one attacked graph breaks, as the checker counts it (docs/proofs.md, Theorem 7): both divisions and gated features,
    with targets that are themselves deleted or altered. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated Collective PerNeighbourVote Checker CheckerProofs CheckedCertificates.
Import ListNotations.
Open Scope Z_scope.

(** ---- What fits into a sum ---- *)
Section Affordable.
  Variable id : Type.
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (price_of : id -> lim) (targets broken : list id).
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.

  Let cost (v : id) : Z := match price_of v with Some x => x | None => 0 end.

  (** Theorem 7, the cheapest targets that fit: if the broken targets' needs fit, there are no more of them than [affordable] says. *)
  Theorem affordable_sound p left :
    (forall v, In v broken -> exists x, price_of v = Some x) ->
    within (sum id cost broken) left ->
    Z.of_nat (length broken) <= affordable p left (map price_of targets).
End Affordable.

(** Theorem 7, need(v): a broken target needed at least as many votes beyond the reached ones as the checker says. *)
Theorem need_sound :
  forall (s : settings) (t : target) (q : query) (r : nat -> vote) (P' : nat -> Z) (g : list nat),
    (rule s = ByEdge \/ rule s = ByNode \/ rule s = ByGatedNode) -> (0 < num_classes s)%nat ->
    (forall n, reach_of s (count_target s t) (clip_budget (sparing q)) false = Some n ->
       well_made s t = true -> moves (votes_of s t) n r) ->
    (forall i, (i < groups (votes_of s t))%nat -> stable (votes_of s t) i = true -> tier_of (votes_of s t) i <> Reached ->
       In i g \/ r i = cast (votes_of s t) i) ->
    prior_read s t P' ->
    voted (num_classes s) (groups (votes_of s t)) P' r <> label_of s t ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length g).

(** ---- The bound ---- *)
Section Bound.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (s : settings) (file : id -> target) (targets : list id) (q : query).
  Hypothesis nodes : of_graphs s = false.
  Hypothesis once : NoDup targets.

  Let c v := count_target s (file v).

  (** Theorem 7: need(v) of every target, the fewest votes outside S(v) that must change before its label can fall. *)
  Definition needs_of : list lim := map (fun v => need s (c v) q) targets.

  (** Theorem 7: how many targets do not hold one by one. *)
  Definition fails_of : Z := amount id (fun v => negb (holds s (c v) q)) targets.
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Variable someone : id. (* any id: a budget is then not negative *)
  Variable broken : list id.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.
  (** Why a target is broken: it is gone, or altered and does not hold; or it is spared and has gained neighbours. *)
  Hypothesis why : forall v, In v broken ->
    (snd q = true /\ In v (removed A)) \/ (snd q = true /\ In v (altered A) /\ holds s (c v) q = false)
    \/ (spares A v /\ exists k, need s (c v) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v))).

  Let gone v := if in_dec id_eq v (removed A) then true else false.

  (** Theorem 7: no more targets break than the checker says; p is any number. *)
  Theorem broken_bound p hubs touch_needs p2 :
    (own_groups s = true -> snd q = false -> Z.of_nat (length broken) <= affordable p2 (left_for_touches hubs q) touch_needs) ->
    Z.of_nat (length broken) <= broken_at_most s q (Z.of_nat (length targets)) fails_of needs_of p hubs touch_needs p2.
End Bound.

(** ---- Each division ---- *)
Section Divisions.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (s : settings) (t : target) (q : query) (v : id) (A : attack id) (G G' : graph id F W) (r : nat -> vote) (P' : nat -> Z).
  Hypothesis HC : (0 < num_classes s)%nat.
  Hypothesis L : leads A G G'.
  Hypothesis afforded : affords id_eq (sparing q) A.
  Hypothesis spared : spares A v.
  Hypothesis HP : prior_read s t P'.

  Let T := Z.to_nat (num_groups s).
  Hypothesis HB : voted (num_classes s) T P' r <> label_of s t.

  (** Theorem 7, node-centric: a spared target whose label changed has gained as many neighbours as it needs. *)
  Theorem node_centric_need (h : id -> nat) (f : model id F W) :
    rule s = ByNode -> of_graphs s = false -> local f ->
    faithful id F W T h f v (votes_of s t) G -> reading id F W T h f v G' r ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).

  (** Theorem 7, edge-centric: the same. *)
  Theorem edge_centric_need (h : id -> id -> nat) (f : model id F W) :
    rule s = ByEdge -> of_graphs s = false -> (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W T h f v (votes_of s t) G -> covers id F W T h v G (row (cover_row t)) -> ereading id F W T h f v G' r ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).

  (** Theorem 7, gated features: the same, for a target that is spared. *)
  Theorem gated_need (h : id -> nat) (f : model id (option F) W) :
    rule s = ByGatedNode -> of_graphs s = false -> local f ->
    tfaithful id F W T h f v (votes_of s t) G -> treading id F W T h f v G' r -> node G v <> None -> node G' v <> None ->
    exists k, need s (count_target s t) q = Some k /\ k <= Z.of_nat (length (gained id id_eq A v)).
End Divisions.
