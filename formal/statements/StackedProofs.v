(* What StackedProofs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** What the answers of the checker for stacked votes establish (docs/proofs.md, Theorem 10): whatever an attack within the numbers and a machine
    within the slack make of scores and votes, the label is the one that the checker derives. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation Mergesort Sorted.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker CheckerProofs StackedVote StackedChecker.
Import ListNotations.
Open Scope Z_scope.

(** The numbers of a file are those of a target V. *)
Record stands_for {key : Type} (V : stacked_votes key) (s : stacked_settings) (t : stacked_target) : Prop := {
  f_once : NoDup (neighbours _ V);
  f_rows : Forall2 (fun u row => forall k, vote_of _ V u k = at_class k row) (neighbours _ V) (x_rows t);
  f_p : forall k, p_of _ V k = at_class k (x_prior t);
  f_g : forall k, g_of _ V k = at_class k (x_gate t);
  f_q : forall k, q_of _ V k = at_class k (x_pseudo_votes s);
  f_all : q_all _ V = plus (x_pseudo_votes s);
  f_steps : st_steps _ V = vote_steps; f_pseudo : pseudo _ V = x_pseudo s; f_slack : slack _ V = x_slack s;
  f_computed : computed _ V = x_computed s; f_by_edge : by_edge _ V = x_by_edge s
}.

Section Sound.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variables (V : stacked_votes key) (s : stacked_settings) (t : stacked_target).
  Hypothesis same : stands_for V s t.
  Hypothesis made : sensible_file s t = true.
  Hypothesis some_class : (0 < x_classes s)%nat.

  Let c := count_stacked s t.

  Let a := y_label c.

  (** Theorem 10: the label is the class with the best score of the numbers in the file, the smaller on a tie. *)
  Theorem stacked_label_is : a = stacked_label key V (x_classes s) (p_of _ V) (g_of _ V) (neighbours _ V) (vote_of _ V).

  (** What the program counts for class j against k. *)
  Record counted_as (j k : nat) (r : stacked_rival) : Prop := {
    r_ahead : y_ahead r = ahead key V j k; r_given : y_given r = given key V j k; r_most : y_most r = most_given key V k;
    r_perm : Permutation (y_sorted r) (deltas key V j k); r_falls : falling (y_sorted r); r_tie : y_tie r = tie k j;
    r_votes : y_votes r = column k (x_rows t)
  }.

  (** One rival, one number of lost neighbours: what is looked at suffices for every division of what is new. *)
  Lemma bears_sound j k r new l m taken i u m' taken' : counted_as j k r ->
    bears s (y_degree c) r new l m taken = true ->
    0 <= i -> 0 <= u -> within (i + u) new -> (by_edge key V = false -> u = 0) ->
    taken' + m' * most_given key V k <= taken + m * most_given key V k ->
    tie k j <= lead_at key V j k l m' i (i + u) taken'.

  (** What may come, go and change; with [together], new and lost ones within one number. *)
  Definition within_numbers (together : bool) (new lost alt : lim) (n r m : Z) : Prop :=
    within r lost /\ within m alt /\ within n new /\ (together = true -> within (n + r) new).

  (** Theorem 10: where the checker's test passes, the label stays with so many new, lost, altered and turned neighbours. *)
  Theorem stacked_test_sound together new lost alt (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (new_ rem_ alt_ turn_ : list key) :
    stacked_test s c together new lost alt = true ->
    stacked_reading key V p g -> stacked_changes key V N' b a new_ rem_ alt_ turn_ ->
    within_numbers together new lost alt (Z.of_nat (length (new_ ++ turn_))) (Z.of_nat (length rem_)) (Z.of_nat (length alt_)) ->
    stacked_label key V (x_classes s) p g N' b = a.

  (** Theorem 10, the radius: x changes of whatever kind. *)
  Theorem any_stacked_sound x (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (new_ rem_ alt_ turn_ : list key) :
    any_stacked_test s c x = true ->
    stacked_reading key V p g -> stacked_changes key V N' b a new_ rem_ alt_ turn_ ->
    Z.of_nat (length (new_ ++ turn_)) + Z.of_nat (length rem_) + Z.of_nat (length alt_) <= x ->
    stacked_label key V (x_classes s) p g N' b = a.
End Sound.
