(* What NodeCentric.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
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
  Variable h : id -> nat. (* any hash *)
  Variable f : model id F W.
  Hypothesis f_local : local f.
  Variable v : id. (* the target *)

  (** The subgraph of group i: all nodes, and the arcs that leave a node of group i. *)
  Definition sub (i : nat) (G : graph) : graph := keep (fun x _ => Nat.eqb (h x) i) G.

  (** S(v): the groups in which v has an incoming arc. *)
  Definition reached (G : graph) (i : nat) : Prop := hears (sub i G) v.

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

  (** Section 4, Only new neighbours count: a vote changes only where v has an incoming arc before or after. Nothing is assumed about the attack. *)
  Theorem only_neighbours G G' i y :
    well_formed G -> well_formed G' -> node G' v = node G v ->
    ~ reached G i -> ~ reached G' i -> (f (sub i G) v y <-> f (sub i G') v y).
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
