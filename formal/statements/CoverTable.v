(* What CoverTable.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The cover table (docs/proofs.md, after Theorem 3): the sum of the k largest single reaches bounds what k nodes reach together. The
    same argument bounds the pairs of k nodes, D(k), and the targets next to k nodes, N(k) (Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph EdgeCentric GraphTask PerNeighbourVote OwnGroupsOfGraphs Checker.
Import ListNotations.
Open Scope Z_scope.

(** The sum of a list. *)
Fixpoint total (l : list Z) : Z := match l with [] => 0 | x :: l' => x + total l' end.

(** Descending, none negative. *)
Fixpoint descends (l : list Z) : Prop :=
  match l with [] => True | x :: l' => 0 <= x /\ (forall y, In y l' -> y <= x) /\ descends l' end.

(** The sum of the k largest single reaches. *)
Definition largest (k : nat) (sizes : list Z) : Z := total (firstn k sizes).

(** Entry k of a row: what all nodes reach anyway, and the k largest reaches, but no more than there is. *)
Definition top (all base : Z) (sizes : list Z) (k : Z) : Z := Z.min all (base + largest (Z.to_nat k) sizes).

(** [tb] is a row made in this way: entry k - 1 is at least [top] of k, and the last entry all that is reached. *)
Definition made_from (tb : list Z) (all base : Z) (sizes : list Z) : Prop :=
  (forall k, (k < length tb)%nat -> top all base sizes (Z.of_nat (S k)) <= nth k tb 0) /\ all <= last tb 0.

(** Theorem 3's table: [reach w] are the groups in which w is known to lie in v's component, [base] those whose components were not looked into,
    and every group in which v's component has another node is one in which v has an edge. *)
Theorem cover_table :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> id -> nat) (v : id) (G : graph id F W)
         (reach : id -> list nat) (ids : list id) (sizes : list Z) (base S : list nat) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) (Z.of_nat (length base)) sizes ->
    (forall i w, (i < T)%nat -> w <> v -> component id F W v (esub id F W h i G) w ->
       In i S /\ (In i base \/ (In w ids /\ In i (reach w)))) ->
    covers id F W T h v G (row tb).

(** The same for graphs (Theorem 6): a node reaches the groups in which it has an edge. *)
Theorem graph_cover_table :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> id -> nat) (G : graph id F W)
         (reach : id -> list nat) (ids : list id) (sizes : list Z) (S : list nat) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) 0 sizes ->
    (forall i w, (i < T)%nat -> has id F W h i G w -> In i S /\ In w ids /\ In i (reach w)) ->
    gcovers id F W T h G (row tb).

(** Theorem 9, D(k): the pairs of k nodes, from the degrees. *)
Theorem degree_table :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (name : id -> id -> key) (G : graph id F W) (reach : id -> list key) (ids : list id) (sizes : list Z) (S : list key) (tb : list Z),
    NoDup ids -> Permutation sizes (map (fun w => Z.of_nat (length (reach w))) ids) -> descends sizes ->
    made_from tb (Z.of_nat (length S)) 0 sizes ->
    (forall w y, has_pair id F W G w y -> In (name w y) S /\ In w ids /\ In (name w y) (reach w)) ->
    degrees_ok id F W key name G (row tb).
