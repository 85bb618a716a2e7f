(* What TwoLevelsReal.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The inequalities of Theorem 11 (docs/proofs.md) about real numbers: what an edge, and what nodes, can do to a softmax. Coq's real numbers bring axioms
    (assumptions-reals.txt lists them), so this file stands apart: nothing else imports it, and the extracted program does not contain it. TwoLevels.v has
    what is proved here as hypotheses about whole numbers. *)
From Coq Require Import Reals Lra Lia Psatz ZArith List Permutation.
From Agnncert Require Import Vote Graph StackedVote StackedChecker StackedProofs TwoLevelsGraph.
Import ListNotations.
Open Scope R_scope.

(** softmax_j - softmax_k, from the exponentials A of j, B of k and C of all others together. *)
Definition apart (A B C : R) : R := (A - B) / (A + B + C).

(** Theorem 11 (a): logits of a neighbour move by w b with b >= 0 and sum at most 1, so that those of j, k and the others move by x, y and at most z with
    x + y + z <= w: the lead of j over k in its vote moves by at most w / 2. *)
Theorem edge_moves_half :
  forall (A B C C' w x y z : R),
    0 < A -> 0 < B -> 0 <= C -> 0 <= x -> 0 <= y -> 0 <= z -> x + y + z <= w -> C <= C' -> C' <= C * exp z ->
    Rabs (apart (A * exp x) (B * exp y) C' - apart A B C) <= w / 2.

(** Theorem 11 (a), rounded down to whole steps of one vote, with w S <= S - 16: twice the movement is at most S - 12, which is what [t_edge] of TwoLevelsGraph.v asks. *)
Theorem edge_moves_half_rounded :
  forall (S w pj pk qj qk : R) (uj uk vj vk : Z),
    w * S <= S - 16 -> 0 <= S -> Rabs ((qj - qk) - (pj - pk)) <= w / 2 ->
    IZR uj <= S * pj < IZR uj + 1 -> IZR uk <= S * pk < IZR uk + 1 -> IZR vj <= S * qj < IZR vj + 1 -> IZR vk <= S * qk < IZR vk + 1 ->
    2 * Rabs (IZR ((vj - vk) - (uj - uk))) <= S - 12.

(** Theorem 11 (b): n summands come or go; each multiplies odds by a factor from exp(-w) to exp w. [E]: the exponential of the class, [R]: those of all others
    together. The share p = E / (E + R) then stays between p / (p + g (1 - p)) and g p / (g p + 1 - p) for every g >= exp(w n). *)
Theorem odds_bound :
  forall (E Q E' Q' g : R),
    0 < E -> 0 < Q -> 0 < E' -> 0 < Q' -> 1 <= g -> E' / Q' <= g * (E / Q) -> E / Q <= g * (E' / Q') ->
    let p := E / (E + Q) in
    p / (p + g * (1 - p)) <= E' / (E' + Q') <= g * p / (g * p + (1 - p)).

(** Theorem 11 (b), one summand: the logit of the class grows by x, those of the others by something from 0 to z, with x + z <= w. *)
Theorem one_summand :
  forall (E Q Q' w x z : R),
    0 < E -> 0 < Q -> 0 <= x -> 0 <= z -> x + z <= w -> Q <= Q' -> Q' <= Q * exp z ->
    (E * exp x) / Q' <= exp w * (E / Q) /\ E / Q <= exp w * ((E * exp x) / Q').

(** exp(y) is at most 1 / (1 - y), and a square of an upper bound bounds the square: how [grown] of StackedChecker.v is made. *)
Theorem exp_at_most y : 0 <= y < 1 -> exp y <= / (1 - y).

(** Upper bounds of two powers multiply. *)
Theorem exp_products x y X Y : exp x <= X -> exp y <= Y -> exp (x + y) <= X * Y.

(** a / U is an upper bound of exp(x). *)
Definition bounds (U : Z) (x : R) (a : Z) : Prop := exp x * IZR U <= IZR a.

(** Theorem 11 (b), in steps: [grown w n] is no less than exp(w n), in its units. *)
Theorem grown_right w n r : (0 <= w < 65536)%Z -> (0 <= n)%Z -> grown w n = Some r -> exp (IZR n * (IZR w / 65536)) <= IZR r / 65536.

(** Theorem 11 (b), in steps: what is read of the label's vote is at least [lowest], of a rival's at most [highest], if the shares are within the bounds of [odds_bound]. *)
Theorem lowest_right (r own sl : Z) (p p' : R) :
  (65536 <= r)%Z -> (own <= vote_steps)%Z -> (0 <= sl)%Z -> 0 <= p <= 1 -> IZR (own - sl) <= 65536 * p ->
  p / (p + IZR r / 65536 * (1 - p)) <= p' -> 0 <= p' -> IZR (lowest (Some r) sl own) <= 65536 * p'.

(** Theorem 11 (b), in steps, for a rival: what is read of its vote is at most [highest]. *)
Theorem highest_right (r theirs sl u : Z) (p p' : R) :
  (65536 <= r)%Z -> (0 <= theirs)%Z -> (0 <= sl)%Z -> 0 <= p <= 1 -> 65536 * p <= IZR (theirs + sl + 1) ->
  p' <= IZR r / 65536 * p / (IZR r / 65536 * p + (1 - p)) -> IZR u <= 65536 * p' -> (u <= highest (Some r) sl theirs)%Z.

(** A sum of n real numbers. *)
Fixpoint Rsum (g : nat -> R) (n : nat) : R := match n with O => 0 | S m => Rsum g m + g m end.

Section Softmax.
  Variable F : Type.
  (** z: logits of the C classes and of abstaining, which is number C; b0: the first votes, at least 0 and together at most 1; [weight] is the factor w, of which the
      file states an upper bound [w] in steps. *)
  Variables (C : nat) (z b0 : option F -> nat -> R) (weight : R) (w sl : Z).
  Hypothesis first_pos : forall x k, 0 <= b0 x k.
  Hypothesis first_sum : forall x, Rsum (b0 x) C <= 1.
  Hypothesis weight_pos : 0 <= weight.
  Hypothesis weight_stated : weight <= IZR w / 65536.
  Hypothesis w_small : (0 <= w <= vote_steps - 16)%Z.
  Hypothesis sl_pos : (0 <= sl)%Z.

  (** The first vote of a node for class k; none for abstaining. *)
  Definition first (x : option F) (k : nat) : R := if Nat.ltb k C then b0 x k else 0.

  (** The first votes of all neighbours for class k. *)
  Fixpoint heard (xs : list (option F)) (k : nat) : R := match xs with [] => 0 | x :: xs' => first x k + heard xs' k end.

  (** exp of the logits, and softmax *)
  Definition power (f : option F) (xs : list (option F)) (k : nat) : R := exp (z f k + weight * heard xs k).

  (** The share of class k in the softmax. *)
  Definition share (f : option F) (xs : list (option F)) (k : nat) : R := power f xs k / Rsum (power f xs) (S C).

  (** b(j) in whole steps, rounded down *)
  Definition softmax_vote (f : option F) (xs : list (option F)) (k : nat) : Z := if Nat.ltb k C then Int_part (65536 * share f xs k) else 0%Z.

  (** The sum over all classes but j and k. *)
  Definition others (f : option F) (xs : list (option F)) (j k : nat) : R := Rsum (fun i => if Nat.eqb i k then 0 else if Nat.eqb i j then 0 else power f xs i) (S C).

  (** Theorem 11: whoever computes these votes to within the slack has a model of two levels. *)
  Theorem softmax_model (reads : option F -> list (option F) -> (nat -> Z) -> Prop) :
    (forall f xs y, reads f xs y -> is_vote vote_steps y) ->
    (forall f xs, reads f xs (softmax_vote f xs)) ->
    (forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near sl (y k) (y' k)) ->
    (forall f xs xs' y, Permutation xs xs' -> reads f xs y -> reads f xs' y) ->
    two_level_model F reads softmax_vote C w sl.
End Softmax.

(** Theorem 11 of the page: votes are softmax of z + w (sum of b0), rounded down and read to within the slack, and the checker says that a target holds. *)
Theorem softmax_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (z b0 : option F -> nat -> R) (weight : R)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool) (reads : option F -> list (option F) -> (nat -> Z) -> Prop),
    (forall x k, 0 <= b0 x k) -> (forall x, Rsum (b0 x) (x_classes s) <= 1) -> 0 <= weight -> weight <= IZR (x_second s) / 65536 ->
    (forall f xs y, reads f xs y -> is_vote vote_steps y) ->
    (forall f xs, reads f xs (softmax_vote F (x_classes s) z b0 weight f xs)) ->
    (forall f xs y y', reads f xs y -> reads f xs y' -> forall k, near (x_slack s) (y k) (y' k)) ->
    (forall f xs xs' y, Permutation xs xs' -> reads f xs y -> reads f xs' y) ->
    (0 < x_classes s)%nat -> x_second s <> 0%Z -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      two_levels_attacked id F W id_eq v B G G' -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).
