(* What ContestProofs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Contests: what the checker accepts is what no play changes (docs/contest.md). Contest.v has the definitions. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker Broken Contest.
Import ListNotations.
Open Scope Z_scope.

(** The lead of weighted classes over one that gets [xk], of values that a function gives. *)
Fixpoint lead_from (i : nat) (w : list Z) (x : nat -> Z) (xk : Z) : Z :=
  match w with [] => 0 | a :: w' => a * (x i - xk) + lead_from (S i) w' x xk end.

(** The lead over class k. *)
Definition lead (w : list Z) (k : nat) (x : nat -> Z) : Z := lead_from 0 w x (x k).

(** ---- One unit ---- *)
Section Lead.
  Variables (w : list Z) (k : nat) (D : Z).
  Hypothesis weights : forall a, In a w -> 0 <= a.
  Hypothesis parts : 0 < D.
  Variable price : nat -> Z.

  (** What a spent move costs. *)
  Definition cost (d : done) : Z := match fst d with Some m => price m | None => 0 end.
End Lead.

Section Statement.
  Variables (C : nat) (t : decision).
  Hypothesis form : sound_form C t = true.

  (** Prices that bear show that no play takes more from the lead than it has. *)
  Theorem bears_sound w k give allowed prices D hit new off :
    (forall a, In a w -> 0 <= a) -> 0 < D -> bears t w k give allowed prices = true -> play D t allowed hit new off ->
    - (D * give) <= lead w k (score D t hit new off).
End Statement.

(** A target about which "stays" is accepted keeps its label against every play that the budget allows. *)
Theorem stays_sound g C t allowed prices D hit new off :
  stays_ok g C t allowed prices = true -> in_parts g D -> play D t allowed hit new off ->
  forall k, (k < C)%nat -> k <> d_label t -> leads_over g D (score D t hit new off) (d_label t) k.

(** A class about which "excludes" is accepted does not win, whatever play the budget allows. *)
Theorem excludes_sound g C t allowed k w prices D hit new off :
  excludes_ok g C t allowed k w prices = true -> in_parts g D -> play D t allowed hit new off ->
  ~ may_win g D C (score D t hit new off) k.

(** Where "broken_at_most" is accepted, plays on all targets whose shared moves fit together break no more of them. *)
Theorem broken_sound g C shared total needs free number p D hit new off (nobody : demand) :
  broken_ok g C shared total needs free number p = true -> in_parts g D ->
  (forall i, (i < length needs)%nat -> let n := nth i needs nobody in play D (n_target n) (n_allowed n) (hit i) (new i) (off i)) ->
  within (sum nat (fun i => times shared (concat (hit i) ++ new i)) (seq 0 (length needs))) total ->
  forall broken, NoDup broken ->
  (forall i, In i broken -> (i < length needs)%nat /\ let t := n_target (nth i needs nobody) in
     exists k, (k < C)%nat /\ k <> d_label t /\ ~ leads_over g D (score D t (hit i) (new i) (off i)) (d_label t) k) ->
  Z.of_nat (length broken) + free <= number.
