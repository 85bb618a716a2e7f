(* What StackedBroken.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** How many targets one attacked graph breaks, of stacked votes (docs/proofs.md, Theorem 10, "Many targets"): a broken target was touched as often as its
    radius says, and once more; a pair touches two targets, a node those that it is next to. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph NodeCentric Collective PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates CoverTable Broken
  OwnBroken StackedVote StackedChecker StackedProofs StackedGraph.
Import ListNotations.
Open Scope Z_scope.

Section StackedBroken.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis L2 : strict id F W A G G'.
  Hypothesis L3 : deletes_pairs A G'.
  Variable s : stacked_settings.
  Hypothesis one_level : x_second s = 0.
  Hypothesis some_class : (0 < x_classes s)%nat.
  Variable q : query.
  Hypothesis spared_features : snd q = false.
  Hypothesis afforded : affords id_eq (fst q) A.

  (** The changes at v: pairs of v, and deleted or altered neighbours. Changed pairs count if votes read edges. *)
  Definition touches_at (v : id) (N : list id) : Z :=
    Z.of_nat (length (here id id_eq v (brought A)) + length (here id id_eq v (added A)) + length (here id id_eq v (deleted A))
              + (if x_by_edge s then length (here id id_eq v (changed A)) else 0) + length (filter (fun u => mem id id_eq u N) (touched_ids id id_eq A))).

  Section Target.
    Variables (v : id) (reads : graph -> id -> (nat -> Z) -> Prop) (t : stacked_target) (V : stacked_votes id).
    Variables (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z) (radius structure : Z).
    Hypothesis spared : spares A v.
    Hypothesis L4 : only_deletions_separate id F W v A G G'.
    Hypothesis same : stands_for V s t.
    Hypothesis model : stacked_model id F W v vote_steps reads (by_edge _ V).
    Hypothesis faithful : sfaithful id F W v vote_steps reads V G.
    Hypothesis read : sreading id F W v reads G' N' b.
    Hypothesis machine : stacked_reading id V p g.

    Let c := count_stacked s t.
    Hypothesis made : y_made c = true.
    Hypothesis radius_right : right_stacked_radius s c radius = true.
    Hypothesis structure_right : right_stacked_structure s c structure = true.
    Hypothesis is_broken : stacked_label id V (x_classes s) p g N' b <> y_label c.
    Notation other := (other id id_eq v).

    Let N := neighbours id V.

    Let stays := stays_joined id id_eq v A V.

    Let alt_ (u : id) : bool := negb (mem id id_eq u (removed A)) && mem id id_eq u N.

    (** Theorem 10, many targets: a broken target was touched as often as the checker says. *)
    Theorem stacked_need_sound : exists x, stacked_need s c q radius structure = Some x /\ x <= touches_at v N.
  End Target.
  (** ---- All targets ---- *)
  Variables (targets broken : list id) (neighbours_of : id -> list id).
  Hypothesis once : NoDup targets.
  Hypothesis broken_once : NoDup broken.
  Hypothesis among : incl broken targets.
  Hypothesis all_spared : forall v, In v broken -> spares A v.
  Variables (hubs : list Z) (ids : list id).
  Hypothesis ids_once : NoDup ids.
  Hypothesis hubs_are : Permutation hubs (map (fun w => Z.of_nat (length (next_to id id_eq targets neighbours_of w))) ids).
  Hypothesis hubs_descend : descends hubs.
  Hypothesis hubs_all : forall w, In w (touched_ids id id_eq A) -> next_to id id_eq targets neighbours_of w <> [] -> In w ids.
  Variable someone : id.

  (** Theorem 10, many targets: no more targets break than the checker says; every broken target has its need, from [stacked_need_sound]. *)
  Theorem stacked_broken_bound (price : id -> lim) (fails p : Z) :
    (forall v, In v broken -> exists x, price v = Some x /\ x <= touches_at v (neighbours_of v)) ->
    Z.of_nat (length broken) <= stacked_broken s q fails (map price targets) p hubs.
End StackedBroken.
