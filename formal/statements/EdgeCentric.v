(* What EdgeCentric.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
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
  Variable h : id -> id -> nat. (* any hash of a pair *)
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

  (** Section 4, Only new neighbours count, edge-centric: a vote changes only where v has an edge before or after. *)
  Theorem only_edges G G' i y :
    well_formed G -> well_formed G' -> node G' v = node G v ->
    ~ ereached G i -> ~ ereached G' i -> (f (esub i G) v y <-> f (esub i G') v y).
  Variables (A : attack id) (G G' : graph).
  Hypothesis L : leads A G G'.
  Hypothesis spared : spares A v.

  (** Theorem 3: the groups of edges that the attack brings, adds, deletes or changes, A tau + e+ + e- + e~ of them. *)
  Definition edge_groups : list nat :=
    map edge_group (brought A) ++ map edge_group (added A) ++ map edge_group (deleted A) ++ map edge_group (changed A).
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
