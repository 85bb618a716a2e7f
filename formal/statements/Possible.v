(* What Possible.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Possible classes (docs/proofs.md, Theorem 12): a class that fails the test cannot be made to win. Votes in tiers, with conceded ones and a prior. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote.
Import ListNotations.
Open Scope Z_scope.

Section Possible.
  Variables (V : votes) (C : nat) (P : nat -> Z) (doubt : Z) (n : reach) (k : nat).

  (** m: the most votes that k can win. *)
  Definition won : Z := limit n (not_for V k).

  (** need(j) = max(0, s(j) + [j < k] - s(k) - u - m): votes that j must lose. *)
  Definition must_lose (j : nat) : Z :=
    if Nat.eqb j k then 0
    else Z.max 0 (P j + standing V j + tie j k - P k - standing V k - conceded V - doubt - won).

  (** A sum over the first c classes. *)
  Fixpoint over_classes (f : nat -> Z) (c : nat) : Z := match c with O => 0 | S c' => over_classes f c' + f c' end.

  (** The conditions under which k is possible. *)
  Record possible : Prop := {
    can_lose : forall j, (j < C)%nat -> must_lose j <= for_class V j Reached + for_class V j Unreached + for_class V j Unlisted;
    lose_all : within (over_classes must_lose C) (all n);
    lose_beyond : within (over_classes (fun j => Z.max 0 (must_lose j - for_class V j Reached)) C) (beyond n);
    lose_unlisted : within (over_classes (fun j => Z.max 0 (must_lose j - for_class V j Reached - for_class V j Unreached)) C) (unlisted n)
  }.
  Variables (r : nat -> vote) (P' : nat -> Z).
  Hypothesis M : moves V n r.
  Hypothesis prior_ok : forall j, (j < C)%nat -> j <> k -> P j - P k - doubt <= P' j - P' k.
  Hypothesis wins : voted C (groups V) P' r = k.

  Let T := groups V.

  Let ch i := stable V i && negb (beq (r i) (cast V i)).

  Let x t j := num T (fun i => ch i && teq (tier_of V i) t && beq (cast V i) (Some j)).

  (** Theorem 12 (a): whatever class wins is a possible one. *)
  Theorem winner_is_possible : possible.
End Possible.
