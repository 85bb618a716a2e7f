(* What Graph.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Graphs, attacks, budgets, local models (docs/proofs.md, section 1). *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote.
Import ListNotations.
Open Scope Z_scope.

(** Arithmetic of limits; None is infinite, and 0 times infinite is 0. *)
Definition ladd (x y : lim) : lim := match x, y with Some a, Some b => Some (a + b) | _, _ => None end.

(** min(x, y). *)
Definition lmin (x y : lim) : lim :=
  match x, y with Some a, Some b => Some (Z.min a b) | Some a, None | None, Some a => Some a | None, None => None end.

(** x times y, as in A tau. *)
Definition lmul (x y : lim) : lim :=
  match x, y with
  | Some a, Some b => Some (a * b)
  | Some a, None | None, Some a => if a <=? 0 then Some 0 else None
  | None, None => None
  end.

(** The fields of a budget. [edges_in_all] limits the edges of all injected nodes together: None where a budget speaks of each node, and B of Theorem 13
    where edges have a price. *)
Record budget := Budget {
  add_edges : lim; delete_edges : lim; change_edges : lim;
  inject_nodes : lim; edges_per_injected : lim;
  delete_nodes : lim; change_features : lim; edges_in_all : lim
}.

Definition injected_edges (B : budget) : lim := lmin (lmul (inject_nodes B) (edges_per_injected B)) (edges_in_all B). (* A tau, or B *)

Definition joined_nodes (B : budget) : lim := lmin (inject_nodes B) (injected_edges B). (* A' *)

(** e+ + e- + e~. *)
Definition touched_edges (B : budget) : lim := ladd (add_edges B) (ladd (delete_edges B) (change_edges B)).

(** d + r. *)
Definition touched_nodes (B : budget) : lim := ladd (delete_nodes B) (change_features B).

(** A list is no longer than a limit of the budget. *)
Definition few {A} (l : list A) (n : lim) : Prop := within (Z.of_nat (length l)) n.

Section Graphs.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.

  (** A node has features, an arc a value; None: it is not there. The value W of an arc stands for its weight, its
      attributes and its copies. *)
  Record graph := Graph { node : id -> option F; arc : id -> id -> option W }.

  (** Section 1, Graph: an edge joins nodes of the graph only; no arc hangs on an absent node. *)
  Definition well_formed (G : graph) : Prop :=
    forall x y, arc G x y <> None -> node G x <> None /\ node G y <> None.

  (** An unordered pair is in a list. *)
  Definition listed (x y : id) (l : list (id * id)) : Prop := In (x, y) l \/ In (y, x) l.

  (** What an attacker does. Of a pair in [brought] the first node is the injected one that brings it. *)
  Record attack := Attack {
    added : list (id * id); deleted : list (id * id); changed : list (id * id);
    injected : list id; brought : list (id * id);
    removed : list id; altered : list id
  }.

  (** Why an arc of G' may differ from that of G. The last clause is for weights computed from the features of both ends. *)
  Definition arcs_by (A : attack) (G G' : graph) : Prop := forall x y, arc G' x y = arc G x y
      \/ listed x y (added A)
      \/ (listed x y (deleted A) /\ arc G' x y = None)
      \/ (listed x y (changed A) /\ arc G x y <> None)   (* a changed pair gets no new direction *)
      \/ listed x y (brought A)
      \/ ((In x (removed A) \/ In y (removed A)) /\ arc G' x y = None)
      \/ ((In x (altered A) \/ In y (altered A)) /\ arc G x y <> None).

  (** G' arises from G by the attack A. *)
  Record leads (A : attack) (G G' : graph) : Prop := {
    before_ok : well_formed G;
    after_ok : well_formed G';
    nodes_ok : forall x, node G' x = node G x \/ In x (injected A) \/ In x (removed A) \/ In x (altered A);
    fresh_ok : forall x, In x (injected A) -> node G x = None \/ In x (removed A);
    brings_ok : forall x y, In (x, y) (brought A) -> In x (injected A);
    arcs_ok : arcs_by A G G'
  }.

  (** The edges that the injected node w brings; a budget allows tau of them. *)
  Definition brings (A : attack) (w : id) : list (id * id) :=
    filter (fun p => if id_eq w (fst p) then true else false) (brought A).

  (** Section 1, Attack: the changes of A fit the budget B, letter by letter: e+, e-, e~, A, tau, d, r; and B in all (Theorem 13). *)
  Record affords (B : budget) (A : attack) : Prop := {
    few_added : few (added A) (add_edges B);
    few_deleted : few (deleted A) (delete_edges B);
    few_changed : few (changed A) (change_edges B);
    few_injected : few (injected A) (inject_nodes B);
    few_brought : forall w, few (brings A w) (edges_per_injected B);
    few_removed : few (removed A) (delete_nodes B);
    few_altered : few (altered A) (change_features B);
    few_in_all : few (brought A) (edges_in_all B)
  }.

  (** The target stays and keeps its features. *)
  Definition spares (A : attack) (v : id) : Prop :=
    ~ In v (injected A) /\ ~ In v (removed A) /\ ~ In v (altered A).

  (** Section 1, Attack: G' is an attacked graph, it arises from G by changes that fit the budget B, and the target v is spared. *)
  Definition attacked (B : budget) (v : id) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ affords B A /\ spares A v.

  (** A model, on all machines at once: [reads G v y] if some machine may read its vote for v as y.
      A deterministic function f is the model fun G v y => y = f G v. *)
  Definition model := graph -> id -> vote -> Prop.

  (** G and G' agree on the nodes of K and on the arcs among them. *)
  Definition same_on (K : id -> Prop) (G G' : graph) : Prop :=
    (forall x, K x -> node G' x = node G x) /\ (forall x y, K x -> K y -> arc G' x y = arc G x y).

  (** K is closed under in-neighbours: from outside K no message can reach a node of K. *)
  Definition hearing (K : id -> Prop) (G : graph) : Prop := forall x y, K y -> arc G x y <> None -> K x.

  (** K is closed under edges, whichever way they point: a union of connected components. *)
  Definition touching (K : id -> Prop) (G : graph) : Prop :=
    forall x y, arc G x y <> None -> K x \/ K y -> K x /\ K y.

  (** Local along arcs: what v reads depends on any set around v that is closed under in-neighbours. *)
  Definition local (f : model) : Prop :=
    forall G G' v (K : id -> Prop) y, well_formed G -> well_formed G' ->
      K v -> hearing K G -> hearing K G' -> same_on K G G' -> (f G v y <-> f G' v y).

  (** Local along edges, whichever way they point: a weaker demand on the model. *)
  Definition local_undirected (f : model) : Prop :=
    forall G G' v (K : id -> Prop) y, well_formed G -> well_formed G' ->
      K v -> touching K G -> touching K G' -> same_on K G G' -> (f G v y <-> f G' v y).

  (** A subgraph with all nodes and the arcs that p chooses: how a division makes the subgraph of a group in the node task. *)
  Definition keep (p : id -> id -> bool) (G : graph) : graph :=
    Graph (node G) (fun x y => if p x y then arc G x y else None).

  (** The graph without edges; what a local model says on it is the no_edge prediction. *)
  Definition no_edge (G : graph) : graph := keep (fun _ _ => false) G.

  (** v has an incoming arc; v has an edge. *)
  Definition hears (G : graph) (v : id) : Prop := exists x, arc G x v <> None.

  (** v has an edge: edge-centric, the subgraph reaches it. *)
  Definition has_edge (G : graph) (v : id) : Prop := exists x, arc G x v <> None \/ arc G v x <> None.

  (** Theorem 8: a group that is empty for the target casts a constant. *)
  Definition constant_if_unheard (c : vote) (f : model) : model :=
    fun G v y => (hears G v /\ f G v y) \/ (~ hears G v /\ y = c).

  (** The same for the edge-centric division, where empty means that the target has no edge. *)
  Definition constant_if_no_edge (c : vote) (f : model) : model :=
    fun G v y => (has_edge G v /\ f G v y) \/ (~ has_edge G v /\ y = c).

  (** Theorem 8, constants of empty groups: such a model is itself local, so that Theorems 4 and 5 speak of it. *)
  Lemma constant_local c f : local f -> local (constant_if_unheard c f).

  (** Theorem 8, constants of empty groups, edge-centric: Theorem 3 speaks of it. *)
  Lemma constant_local_undirected c f : local_undirected f -> local_undirected (constant_if_no_edge c f).

  (** Section 1, Model: the no_edge prediction depends on the target's own features alone. *)
  Lemma no_edge_same f G G' v y : local_undirected f -> well_formed G -> well_formed G' ->
    node G' v = node G v -> (f (no_edge G) v y <-> f (no_edge G') v y).

  (** The injected nodes that have an edge: one for each edge, or all of them. *)
  Definition joined (A : attack) : list id := if Nat.ltb (length (brought A)) (length (injected A)) then map fst (brought A) else injected A.
End Graphs.
Arguments Graph {id F W}.
Arguments node {id F W}.
Arguments arc {id F W}.
Arguments keep {id F W}.
Arguments no_edge {id F W}.
Arguments well_formed {id F W}.
Arguments hears {id F W}.
Arguments has_edge {id F W}.
Arguments listed {id}.
Arguments added {id}.
Arguments deleted {id}.
Arguments changed {id}.
Arguments injected {id}.
Arguments brought {id}.
Arguments removed {id}.
Arguments altered {id}.
Arguments joined {id}.
Arguments same_on {id F W}.
Arguments hearing {id F W}.
Arguments touching {id F W}.
Arguments local {id F W}.
Arguments local_undirected {id F W}.
Arguments leads {id F W}.
Arguments affords {id}.
Arguments spares {id}.
Arguments attacked {id F W}.
Arguments brings {id}.
Arguments arcs_by {id F W}.
