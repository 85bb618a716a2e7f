(* What Exact.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Theorem 1's converse (docs/proofs.md, "some change of M + 1 votes elects another class") and the radius of Theorem 8. The first is not
    needed for soundness. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote.
Import ListNotations.
Open Scope Z_scope.

(** The first x places that satisfy p. *)
Definition first_of (x : Z) (p : nat -> bool) (i : nat) : bool := p i && (num i p <? x).

(** c(k) *)
Definition votes_for (T : nat) (b : nat -> vote) (k : nat) : Z := num T (fun i => beq (b i) (Some k)).

(** Theorem 1, converse: M is half the smallest margin, rounded down; then some change of M + 1 votes elects another class. There must be a
    vote and a second class. *)
Theorem radius_exact :
  forall (C T : nat) (b : nat -> vote) (M : Z),
    (2 <= C)%nat -> (1 <= T)%nat -> 0 <= M ->
    let a := voted C T (fun _ => 0) b in
    radius_ok C T b a M -> ~ radius_ok C T b a (M + 1) ->
    exists b', num T (fun i => negb (beq (b i) (b' i))) <= M + 1 /\ voted C T (fun _ => 0) b' <> a.

(** The radius of Theorem 8 is Theorem 2 with n0 = n1 = n2 = x. *)
Theorem radius_formula :
  forall (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (x : Z),
    0 <= x -> (a < C)%nat ->
    (forall k, (k < C)%nat -> k <> a ->
       Z.min x (for_class V a Reached + for_class V a Unreached + for_class V a Unlisted)
       + Z.min x (not_for V k Reached + not_for V k Unreached + not_for V k Unlisted) <= margin V P doubt a k) ->
    withstands V C P doubt a (Reach (Some x) (Some x) (Some x)).

(** How an attacker spends three nested limits: of a set with x0, x1, x2 votes in the tiers, first those that are easy to reach. *)
Definition nonnegative (n : lim) : Prop := match n with Some m => 0 <= m | None => True end.

(** What a limit allows among T votes: n, or all of them. *)
Definition most (T : nat) (n : lim) : Z := match n with Some m => Z.min m (Z.of_nat T) | None => Z.of_nat T end.

(** Theorem 2, "only if": where the test fails, votes within the limits, read as some machine may read them, and a prior within its doubt elect
    another class. *)
Theorem vote_exact :
  forall (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (n : reach),
    (0 < C)%nat -> nonnegative (all n) -> nonnegative (beyond n) -> nonnegative (unlisted n) ->
    ~ withstands V C P doubt a n ->
    exists (P' : nat -> Z) (r : nat -> vote),
      (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) /\ moves V n r /\ voted C (groups V) P' r <> a.
