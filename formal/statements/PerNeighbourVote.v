(* What PerNeighbourVote.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The vote where every neighbour, or pair, casts a vote of its own (docs/proofs.md, Theorem 9). *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph.
Import ListNotations.
Open Scope Z_scope.

Section PerNeighbourVote.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.

  (** u is in the list. *)
  Definition mem (u : key) (l : list key) : bool := if in_dec key_eq u l then true else false.

  (** A sum over a list of votes. *)
  Fixpoint sum (g : key -> Z) (l : list key) : Z := match l with [] => 0 | u :: l' => g u + sum g l' end.

  (** How many of a list satisfy p. *)
  Definition bit (b : bool) : Z := if b then 1 else 0.

  (** How many of a list satisfy p. *)
  Definition amount (p : key -> bool) (l : list key) : Z := sum (fun u => bit (p u)) l.

  (** Empty groups cast y0 (None: they abstain). They are beyond number, so a vote that is cast is one of y0 less. *)
  Definition own_score (P : nat -> Z) (y0 : vote) (S : list key) (b : key -> vote) (k : nat) : Z :=
    P k + amount (fun u => beq (b u) (Some k)) S - (if beq y0 (Some k) then Z.of_nat (length S) else 0).

  (** Section 1, Vote, with T infinite: the label. *)
  Definition own_voted C P y0 S b : nat := best (own_score P y0 S b) C.

  (** What a certificate knows of one target: who casts a vote (the set S), the votes, which are stable, and which pairs have one direction
      only. *)
  Record own_votes := OwnVotes { cast_by : list key; own_cast : key -> vote; own_stable : key -> bool; one_way : key -> bool }.

  (** new, touched, altered, turned *)
  Record touches := Touches { t_new : lim; t_touched : lim; t_altered : lim; t_turned : lim }.

  Section Counts.
    Variable V : own_votes.

    (** c(k): stable votes for k. *)
    Definition o_for (k : nat) : Z := amount (fun u => own_stable V u && beq (own_cast V u) (Some k)) (cast_by V).

    (** |S| - c(k), of the stable votes: those that are not for k. *)
    Definition o_not (k : nat) : Z := amount (fun u => own_stable V u && negb (beq (own_cast V u) (Some k))) (cast_by V).

    (** u: unstable votes, conceded beforehand. *)
    Definition o_unstable : Z := amount (fun u => negb (own_stable V u)) (cast_by V).

    (** Stable votes for k of pairs with one direction only: a second one may turn them. *)
    Definition o_way (k : nat) : Z := amount (fun u => own_stable V u && one_way V u && beq (own_cast V u) (Some k)) (cast_by V).

    (** The same of votes that are not for k. *)
    Definition o_way_not (k : nat) : Z :=
      amount (fun u => own_stable V u && one_way V u && negb (beq (own_cast V u) (Some k))) (cast_by V).

    (** Theorem 9: margin(k), with prior, doubt, conceded votes, and one vote of y0 less for each vote that is cast. *)
    Definition o_margin (P : nat -> Z) (doubt : Z) (y0 : vote) (a k : nat) : Z :=
      P a - P k - doubt + o_for a - o_for k - o_unstable - tie k a
      + (if beq y0 (Some k) then Z.of_nat (length (cast_by V)) else 0)
      - (if beq y0 (Some a) then Z.of_nat (length (cast_by V)) else 0).

    (** The most that a rival gains. [over n x extra]: votes among x that n touch, and of the others those turned. *)
    Definition over (n t : lim) (x ways : Z) : Z := cap n x + cap t (Z.min ways (x - cap n x)).

    (** Theorem 9: the most that rival k gains on a, one formula each for y0 = a, y0 = k, and any other y0. *)
    Definition gain (y0 : vote) (n : touches) (a k : nat) : lim :=
      if beq y0 (Some a) then ladd (Some (cap (t_altered n) (o_for a) + cap (t_altered n) (o_not k))) (lmul (Some 2) (t_new n))
      else if beq y0 (Some k) then
        Some (over (t_touched n) (t_turned n) (o_for a) (o_way a) + over (t_touched n) (t_turned n) (o_not k) (o_way_not k))
      else ladd (Some (over (t_touched n) (t_turned n) (o_for a) (o_way a) + cap (t_altered n) (o_not k))) (t_new n).

    (** x is at least n; never, where n is infinite. *)
    Definition at_least (x : Z) (n : lim) : Prop := match n with Some m => m <= x | None => False end.

    (** Theorem 9, the test: every margin is at least what the rival gains. *)
    Definition own_withstands (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (n : touches) : Prop :=
      (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> at_least (o_margin P doubt y0 a k) (gain y0 n a k).
  End Counts.

  (** S' and r are what is cast and read after an attack that adds, removes, alters and turns the votes in four lists.
      A key in [rem] may come back as a new one. *)
  Record own_changes (V : own_votes) (S' : list key) (r : key -> vote) (new rem alt turn : list key) : Prop := {
    old_ok : forall u, In u (cast_by V) -> In u alt \/ In u turn \/ (In u rem /\ (In u new \/ ~ In u S'))
             \/ (In u S' /\ (own_stable V u = true -> r u = own_cast V u));
    new_ok : forall u, In u S' -> In u (cast_by V) \/ In u new;
    turn_ok : forall u, In u turn -> one_way V u = true
  }.

  (** The same within limits. *)
  Inductive own_moves (V : own_votes) (n : touches) (S' : list key) (r : key -> vote) : Prop :=
  | OwnMoves (new rem alt turn : list key) (_ : own_changes V S' r new rem alt turn)
      (_ : few (new ++ turn) (t_new n)) (_ : few (rem ++ alt) (t_touched n)) (_ : few alt (t_altered n))
      (_ : few turn (t_turned n)).

  (** x changes of any kind: the most that a rival gains. Without [altering], edges and nodes are added and deleted only. *)
  Definition any_gain (V : own_votes) (y0 : vote) (altering : bool) (x : Z) (a k : nat) : Z :=
    if beq y0 (Some a) then 2 * x
    else if beq y0 (Some k) then Z.min x (o_for V a) + Z.min x (o_not V k)
    else x + Z.min x (if altering then o_for V a else o_way V a).

  (** Theorem 9, the radii: x changes leave every margin at 0 or more. *)
  Definition own_radius_ok (V : own_votes) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (altering : bool) (a : nat) (x : Z) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> any_gain V y0 altering x a k <= o_margin V P doubt y0 a k.

  (** x changes at one target, within limits: at most [twos] of them gain a rival two, the others one. *)
  Definition twos (V : own_votes) (y0 : vote) (n : touches) (a k : nat) : lim :=
    let kept := if beq y0 (Some k) then t_touched n else t_altered n in
    let t := Some (cap (ladd kept (Some (cap (t_turned n) (o_way V a)))) (o_for V a)) in
    if beq y0 (Some a) then ladd t (t_new n) else t.

  (** Theorem 9, many targets: within the budget, x changes at this target leave every margin at 0 or more. *)
  Definition own_touches_ok (V : own_votes) (C : nat) (P : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (a : nat) (x : Z) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a ->
      at_least (o_margin V P doubt y0 a k) (gain V y0 n a k)
      \/ x + cap (twos V y0 n a k) x <= o_margin V P doubt y0 a k.

  (** How much the lead over k falls: by votes of a that are hit, by votes that become k's, and by new ones. *)
  Section Loss.
    Variables (V : own_votes) (S' : list key) (r : key -> vote) (new rem alt turn : list key).
    Hypothesis NS : NoDup (cast_by V).
    Hypothesis NS' : NoDup S'.
    Hypothesis M : own_changes V S' r new rem alt turn.
    Variables (y0 : vote) (a k : nat).
    Hypothesis ak : k <> a.

    Let hit (with_rem : bool) u := mem u alt || mem u turn || (with_rem && mem u rem).

    (** What one new vote is worth to k: it replaces a vote of y0. *)
    Definition worth : Z := if beq y0 (Some a) then 2 else if beq y0 (Some k) then 0 else 1.
  End Loss.

  (** Theorem 9, the radii: x changes of any kind leave the label as it is. *)
  Theorem own_radius_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (altering : bool) (a : nat) (x : Z)
           (S' : list key) (r : key -> vote) (new rem alt turn : list key),
      NoDup (cast_by V) -> NoDup S' ->
      own_radius_ok V C P doubt y0 altering a x ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_changes V S' r new rem alt turn ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
      (altering = false -> alt = []) ->
      own_voted C P' y0 S' r = a.

  (** Theorem 9, many targets: x changes within limits leave the label as it is. *)
  Theorem own_touches_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (n : touches) (a : nat) (x : Z)
           (S' : list key) (r : key -> vote) (new rem alt turn : list key),
      NoDup (cast_by V) -> NoDup S' ->
      own_touches_ok V C P doubt y0 n a x ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_changes V S' r new rem alt turn ->
      few (new ++ turn) (t_new n) -> few (rem ++ alt) (t_touched n) -> few alt (t_altered n) -> few turn (t_turned n) ->
      Z.of_nat (length (new ++ rem ++ alt ++ turn)) <= x ->
      own_voted C P' y0 S' r = a.

  (** Theorem 9, the vote: whatever an attack within the touches and a machine within the tolerance make of it. *)
  Theorem own_vote_sound :
    forall (V : own_votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (y0 : vote) (a : nat) (n : touches)
           (S' : list key) (r : key -> vote),
      NoDup (cast_by V) -> NoDup S' ->
      own_withstands V C P doubt y0 a n ->
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
      own_moves V n S' r ->
      own_voted C P' y0 S' r = a.
End PerNeighbourVote.
