(* What CheckerProofs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** What an answer of the checker establishes: the hypotheses of the certificates that are about numbers. What is left are those about
    the graph and the model: that the file tells the truth about them ([faithful]), and that the model is local. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair
  OwnGroupsOfGraphs Checker.
Import ListNotations.
Open Scope Z_scope.

(** 1 if true, 0 if not. *)
Definition b2z (b : bool) : Z := if b then 1 else 0.

(** How many listed votes satisfy q. *)
Fixpoint listed_with (q : entry -> bool) (l : list (Z * entry)) : Z :=
  match l with [] => 0 | (_, e) :: l' => b2z (q e) + listed_with q l' end.

(** The number of listed votes. *)
Definition len (l : list (Z * entry)) : Z := Z.of_nat (length l).

(** The votes that a file means. *)
Fixpoint entry_at (l : list (Z * entry)) (d : entry) (i : Z) : entry :=
  match l with [] => d | (g, e) :: l' => if i =? g then e else entry_at l' d i end.

(** The votes of Theorem 2 that a file states: listed votes, and the default of all other groups. *)
Definition votes_of (s : settings) (t : target) : votes :=
  let at_ i := entry_at (listed_votes t) (default_vote t) (Z.of_nat i) in
  Votes (Z.to_nat (num_groups s)) (fun i => choice (at_ i)) (fun i => is_stable (at_ i)) (fun i => its_tier (at_ i)).

(** The same where every neighbour, pair or node has a group of its own: the group is its key. *)
Definition own_votes_of (t : target) : own_votes Z :=
  let at_ g := entry_at (listed_votes t) (default_vote t) g in
  OwnVotes Z (map fst (listed_votes t)) (fun g => choice (at_ g)) (fun g => is_stable (at_ g)) (fun g => has_one_way (at_ g)).

(** The prior where empty groups are beyond number. *)
Definition own_prior (s : settings) (t : target) (k : nat) : Z :=
  nth k (class_prior s) 0 + (if no_edge_stable t && beq (no_edge_choice t) (Some k) then no_edge_prior s else 0).

(** Section 1, Vote: the label is the winner of the votes as cast, the smaller class on a tie. *)
Theorem label_is_voted s t : (0 < num_classes s)%nat -> ascends 0 (num_groups s) (listed_votes t) = true ->
  label_of s t = voted (num_classes s) (groups (votes_of s t)) (prior_cast s t) (cast (votes_of s t)).

(** ---- A target, counted ---- *)
Section Counted.
  Variables (s : settings) (t : target).

  Let l := listed_votes t.

  Let d := default_vote t.

  Let c := count_target s t.

  Let a := label_of s t.

  Let T := num_groups s.
  Hypothesis ok : well_made s t = true.
  Hypothesis some_class : (0 < num_classes s)%nat.

  Let st_for k tr e := is_stable e && beq (choice e) (Some k) && teq (its_tier e) tr.

  Let k0 k := listed_with (st_for k Reached) l.

  Let k1 k := listed_with (st_for k Unreached) l.

  Let s0 := listed_with (fun e => is_stable e && teq (its_tier e) Reached) l.

  Let s1 := listed_with (fun e => is_stable e && teq (its_tier e) Unreached) l.

  Let s2 := if is_stable d then T - len l else 0.

  Let k2 k := default_for k t s2.

  Let w k := listed_with (fun e => is_stable e && has_one_way e && beq (choice e) (Some k)) l.

  Let sw := listed_with (fun e => is_stable e && has_one_way e) l.

  (** --- Theorem 2 --- *)
  Let V := votes_of s t.

  (** The test that the checker makes is that of Theorem 2. *)
  Theorem test_sound n : test c n = true ->
    withstands V (num_classes s) (prior_certain s t) (prior_doubt s t) (label c) n.

  (** --- Theorem 9 --- *)
  Let O := own_votes_of t.
  Hypothesis own : own_groups s = true.

  (** The test that the checker makes is that of Theorem 9. *)
  Theorem own_test_sound n : own_test (empty_casts s) c n = true ->
    own_withstands Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) (label c) n.

  (** The test that the checker makes for a radius is that of Theorem 9. *)
  Theorem any_test_sound altering x : any_test (empty_casts s) altering c x = true ->
    own_radius_ok Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) altering (label c) x.

  (** The test that the checker makes for many targets is that of Theorem 9. *)
  Theorem touch_test_sound n x : touch_test (empty_casts s) n c x = true ->
    own_touches_ok Z O (num_classes s) (own_prior s t) (prior_doubt s t) (empty_casts s) n (label c) x.
End Counted.
