(* What TwoLevels.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Stacked votes with two levels (docs/proofs.md, Theorem 11): the counting. That one edge moves the votes of its ends by no more than half a vote each, and
    that nodes multiply odds by no more than exp(w n), is about real numbers: TwoLevelsReal.v proves it, with the axioms of Coq's real numbers. Here both
    are hypotheses about whole numbers. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker StackedVote StackedChecker StackedProofs.
Import ListNotations.
Open Scope Z_scope.

Section TwoLevels.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variable S : Z.
  Hypothesis S_pos : 0 < S.

  (** What a machine reads on some graph: the neighbours of the target, and their votes. *)
  Record state := State { s_near : list key; s_vote : key -> nat -> Z }.

  (** Each neighbour once, with one vote at most. *)
  Definition good (x : state) : Prop := NoDup (s_near x) /\ forall u, In u (s_near x) -> is_vote S (s_vote x u).

  (** Theorem 11: the lead of a over k. *)
  Definition lead2 (p : nat -> Z) (a k : nat) (x : state) : Z := p a - p k + sum key (fun u => s_vote x u a - s_vote x u k) (s_near x).

  (** One edge is added or deleted. At the target, its other end comes or goes, and no other vote changes. Elsewhere the neighbours stay, and only the
      votes of its two ends change, the lead of a over k by no more than half a vote in each. *)
  Inductive edge_step (a : nat) (x y : state) : Prop :=
  | AtTarget (u : key) (_ : forall w, w <> u -> (In w (s_near x) <-> In w (s_near y)))
      (_ : forall w k, w <> u -> s_vote y w k = s_vote x w k)
      (_ : forall k, In u (s_near x) -> In u (s_near y) -> s_vote y u k = s_vote x u k)
  | Elsewhere (u w : key) (_ : forall z, In z (s_near x) <-> In z (s_near y))
      (_ : forall z k, z <> u -> z <> w -> s_vote y z k = s_vote x z k)
      (_ : forall z k, z = u \/ z = w -> k <> a -> 2 * Z.abs ((s_vote y z a - s_vote y z k) - (s_vote x z a - s_vote x z k)) <= S).

  (** n edges, one after the other. *)
  Inductive edge_steps (a : nat) : nat -> state -> state -> Prop :=
  | NoStep x : edge_steps a 0 x x
  | MoreSteps n x y z : edge_steps a n x y -> good y -> good z -> edge_step a y z -> edge_steps a (Datatypes.S n) x z.

  (** n nodes come or go, those in [gone] and [come]. An altered one goes, and another one (another key) comes: two of n. A vote that stays is read as at least [low] for the label and at most
      [high] for a rival. *)
  Record node_step (a : nat) (n : Z) (low : key -> Z) (high : key -> nat -> Z) (x y : state) : Prop := {
    n_few : forall gone come, (forall u, In u gone <-> In u (s_near x) /\ ~ In u (s_near y)) -> (forall u, In u come <-> In u (s_near y) /\ ~ In u (s_near x)) ->
      NoDup gone -> NoDup come -> Z.of_nat (length gone + length come) <= n;
    n_low : forall u, In u (s_near x) -> In u (s_near y) -> low u <= s_vote y u a;
    n_high : forall u k, In u (s_near x) -> In u (s_near y) -> k <> a -> s_vote y u k <= high u k
  }.

  (** Theorem 11 (a): an edge anywhere costs at most one vote. *)
  Theorem edge_costs_one p a k x y : good x -> good y -> edge_step a x y -> k <> a -> lead2 p a k x - S <= lead2 p a k y.

  (** Theorem 11: n edges take no more than n votes from the lead. *)
  Theorem edges_cost_one_each p a k n x y : good x -> edge_steps a n x y -> k <> a -> lead2 p a k x - Z.of_nat n * S <= lead2 p a k y.

  (** Theorem 11 (b): nodes of any degree. *)
  Theorem nodes_cost p a k n low high x y : good x -> good y -> node_step a n low high x y -> k <> a ->
    (forall u, In u (s_near x) -> low u - high u k <= s_vote x u a - s_vote x u k) ->
    lead2 p a k x - n * S - sum key (fun u => (s_vote x u a - s_vote x u k) - (low u - high u k)) (s_near x) <= lead2 p a k y.
End TwoLevels.

Section Checked.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variables (V : stacked_votes key) (s : stacked_settings) (t : stacked_target).
  Hypothesis same : stands_for V s t.
  Hypothesis some_class : (0 < x_classes s)%nat.

  Let c := count_stacked s t.

  Let a := y_label c.

  (** Theorem 11 as it is checked: n nodes come or go, then m edges anywhere. [x]: what the machine that decides reads on the graph of the certificate. *)
  Theorem second_test_sound (e n : Z) (m : nat) (p : nat -> Z) (x y z : state key) :
    second_test s c (Some e) (Some n) = true -> x_second s <> 0 -> x_used s = true -> 0 <= n ->
    (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
    good key vote_steps x -> good key vote_steps y -> s_near _ x = neighbours _ V ->
    (forall u, In u (s_near _ x) -> forall k, near (slack _ V) (vote_of _ V u k) (s_vote _ x u k)) ->
    (n = 0 -> y = x) ->
    (0 < n -> node_step key a n (fun u => lowest (grown (x_second s) n) (x_slack s) (vote_of _ V u a))
                (fun u k => highest (grown (x_second s) n) (x_slack s) (vote_of _ V u k)) x y) ->
    edge_steps key vote_steps a m y z -> Z.of_nat m <= e ->
    best (fun k => p k + sum key (fun u => s_vote _ z u k) (s_near _ z)) (x_classes s) = a.

  (** Theorem 11: where no votes are used at all, nothing but the prior decides. *)
  Theorem unused_votes (e n : lim) (p : nat -> Z) :
    second_test s c e n = true -> x_second s <> 0 -> x_used s = false -> (forall k, near (slack _ V) (p_of _ V k) (p k)) -> best p (x_classes s) = a.
End Checked.
