(* What PossibleOwn.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Possible classes where every neighbour, or pair, has a group of its own, and of stacked votes (docs/proofs.md, Theorem 12 (b) and (c)): a class that wins passes the
    test. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair OwnGroupsOfGraphs Possible.
Import ListNotations.
Open Scope Z_scope.

Section OwnPossible.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Notation mem := (mem key key_eq).
  Notation amount := (amount key).
  Variables (V : own_votes key) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (k : nat).
  Notation S := (cast_by key V).

  (** s(j), with all votes of empty groups counted from 0 *)
  Definition own_standing (j : nat) : Z := P j + o_for key V j - (if beq y0 (Some j) then Z.of_nat (length S) else 0).

  (** m: the most votes that k can win; N = |S| - c(k) is [o_not]. *)
  Definition own_won : lim :=
    if beq y0 (Some k) then Some (cap (ladd (t_touched n) (Some (cap (t_turned n) (o_way_not key V k)))) (o_not key V k))
    else ladd (t_new n) (Some (cap (t_altered n) (o_not key V k))).

  (** How far j is ahead of k, unstable votes and doubt counted for k. *)
  Definition own_ahead (j : nat) : Z := own_standing j + tie j k - own_standing k - o_unstable key V - doubt.

  (** need(j), 0 where m is infinite *)
  Definition own_need (j : nat) : Z :=
    if Nat.eqb j k then 0 else match own_won with Some m => Z.max 0 (own_ahead j - m) | None => 0 end.

  (** D, and what can be turned of it: sums over j <> y0 *)
  Definition own_lose : Z := over_classes (fun j => if beq y0 (Some j) then 0 else own_need j) C.

  (** What can be turned of D. *)
  Definition own_turn : Z := over_classes (fun j => if beq y0 (Some j) then 0 else Z.min (o_way key V j) (own_need j)) C.

  (** Theorem 12 (b): the conditions under which k is possible. *)
  Record own_possible : Prop := {
    own_can_lose : forall j, (j < C)%nat -> y0 <> Some j -> own_need j <= o_for key V j;
    own_lose_all : within (own_lose - cap (t_turned n) own_turn) (t_touched n);
    own_empty_class : forall y new, (y < C)%nat -> y0 = Some y -> y <> k -> t_new n = Some new ->
      let z := own_ahead y - (new + cap (t_altered n) (o_not key V k)) - new in
      z <= o_for key V y /\ z + own_lose <= cap (t_altered n) (o_not key V k)
  }.
  (** ---- Proofs ---- *)
  Variables (S' : list key) (r : key -> vote) (P' : nat -> Z).
  Hypothesis once : NoDup S.
  Hypothesis once' : NoDup S'.
  Hypothesis prior_ok : forall j, (j < C)%nat -> j <> k -> P j - P k - doubt <= P' j - P' k.
  Hypothesis wins : own_voted key C P' y0 S' r = k.

  (** Theorem 12 (b): whatever class wins is a possible one. *)
  Theorem own_winner_is_possible : own_moves key V n S' r -> own_possible.
End OwnPossible.
From Agnncert Require Import StackedVote StackedChecker TwoLevels TwoLevelsGraph.

(** Theorem 12 (c): where class j stays ahead of k, whatever an attack within the numbers does, k does not win. j need not be the label. *)
Theorem stacked_excluded :
  forall (key : Type) (key_eq : forall x y : key, {x = y} + {x <> y}) (V : stacked_votes key) (C : nat) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (j k : nat)
         (new rem alt turn : list key) (D : list Z),
    sensible key V -> stacked_reading key V p g -> stacked_changes key V N' b j new rem alt turn -> (j < C)%nat -> k <> j -> (by_edge _ V = true -> g_of _ V j = g_of _ V k) ->
    Permutation D (deltas key V j k) -> falling D ->
    (forall l m i t, 0 <= l -> 0 <= m -> 0 <= t -> 0 <= i -> l + m <= degree key V -> l <= Z.of_nat (length rem) -> m <= Z.of_nat (length alt) ->
       i + t <= Z.of_nat (length (new ++ turn)) -> (by_edge _ V = false -> t = 0) -> tie k j <= lead_at key V j k l m i (i + t) (top (Z.to_nat (l + m)) D)) ->
    stacked_label key V C p g N' b <> k.

(** Theorem 12 (c), the same with two levels (Theorem 11): n nodes and e edges, as the attack has them. *)
Theorem two_levels_excluded :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (V : stacked_votes id) (G G' : graph id F W) (A : attack id) (j k : nat) (n e : Z) (N' : list id)
         (b : id -> nat -> Z) (p : nat -> Z),
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) -> 0 <= x_slack s <= 3 -> (j < x_classes s)%nat -> (k < x_classes s)%nat -> k <> j ->
    two_levels_by id F W v A G G' -> two_reading id F W v reads G (neighbours _ V) (vote_of _ V) -> two_reading id F W v reads G' N' b ->
    slack _ V = x_slack s -> (forall c, near (slack _ V) (p_of _ V c) (p c)) -> nodes_moved id A <= n -> nodes_moved id A + edges_moved id A <= n + e ->
    tie k j <= p_of _ V j - p_of _ V k - 2 * x_slack s + sum id (kept id s V j k n) (neighbours _ V) - 2 * x_slack s * Z.of_nat (length (neighbours _ V)) - vote_steps * (n + e) ->
    best (two_score id true p N' b) (x_classes s) <> k.
