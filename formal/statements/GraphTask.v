(* What GraphTask.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
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
