(* What Counterexamples.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Clauses that cannot be dropped: without them the theorem is false, shown by a graph of two nodes. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric.
Import ListNotations.
Open Scope Z_scope.

(** A. A changed pair that gets a second direction. G has the arc 0 -> 1 only, G' both; the budget has one changed edge.
    Every other clause of [leads] holds, the test says yes, and the label of 0 flips. *)
Definition one_way_graph : graph nat unit unit :=
  Graph (fun x => if Nat.ltb x 2 then Some tt else None) (fun x y => if Nat.eqb x 0 && Nat.eqb y 1 then Some tt else None).

(** The attacked graph G' of A. *)
Definition two_way_graph : graph nat unit unit :=
  Graph (node one_way_graph) (fun x y => if (Nat.eqb x 0 && Nat.eqb y 1) || (Nat.eqb x 1 && Nat.eqb y 0) then Some tt else None).

(** Class 1 if the node hears anybody, class 0 otherwise. *)
Definition hears_any : model nat unit unit := fun G v y => (hears G v /\ y = Some 1%nat) \/ (~ hears G v /\ y = Some 0%nat).

(** A division with one group. *)
Definition all_in_group_0 (_ : nat) : nat := 0.

(** The one vote of node 0 in G: class 0, without an incoming arc. *)
Definition votes_before : votes := Votes 1 (fun _ => Some 0%nat) (fun _ => true) (fun _ => Unlisted).

(** Section 1: read as a changed edge, a pair that gains its second direction would make Theorem 4 false. *)
Theorem changed_pairs_must_not_turn :
  let B := Budget (Some 0) (Some 0) (Some 1) (Some 0) (Some 0) (Some 0) (Some 0) None in
  let A := Attack nat [] [] [(0, 1)%nat] [] [] [] [] in
  local hears_any
  /\ faithful nat unit unit 1 all_in_group_0 hears_any 0%nat votes_before one_way_graph
  /\ withstands votes_before 2 (fun _ => 0) 0 0 (node_reach votes_before B)
  /\ affords Nat.eq_dec B A /\ spares A 0%nat
  /\ well_formed one_way_graph /\ well_formed two_way_graph
  /\ (forall x, node two_way_graph x = node one_way_graph x)
  /\ (forall x y, arc two_way_graph x y = arc one_way_graph x y \/ listed x y (changed A))
  /\ reading nat unit unit 1 all_in_group_0 hears_any 0%nat two_way_graph (fun _ => Some 1%nat)
  /\ voted 2 1 (fun _ => 0) (fun _ => Some 1%nat) = 1%nat.

(** B. The paper's Theorems 7 and 8 without "the target is spared": one node, no edge, three groups; the model reads the
    node's own features. One altered node, M = 1, and all three votes change. *)
Definition lone (c : nat) : graph nat nat unit := Graph (fun x => if Nat.eqb x 0 then Some c else None) (fun _ _ => None).

(** The model of B: the vote is the node's own feature. *)
Definition own_features (G : graph nat nat unit) (v : nat) : vote := node G v.

(** Section 5, Own features: one altered node, the target itself, changes every vote. *)
Theorem target_must_be_spared :
  let A := Attack nat [] [] [] [] [] [] [0%nat] in
  local (fun G v y => y = own_features G v)
  /\ leads A (lone 0) (lone 1) /\ affords Nat.eq_dec (Budget (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 1) None) A
  /\ radius_ok 2 3 (fun i => own_features (sub nat nat unit all_in_group_0 i (lone 0)) 0) 0 1
  /\ voted 2 3 (fun _ => 0) (fun i => own_features (sub nat nat unit all_in_group_0 i (lone 0)) 0%nat) = 0%nat
  /\ voted 2 3 (fun _ => 0) (fun i => own_features (sub nat nat unit all_in_group_0 i (lone 1)) 0%nat) = 1%nat.
