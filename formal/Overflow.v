(** Numbers of the extracted program are OCaml's 63-bit integers. ints.ml adds, subtracts and multiplies them, and stops where a result does not
    fit. Here is what that rests on: integers of a machine wrap round, and the tests of ints.ml tell whether they did. *)
From Coq Require Import ZArith Lia.
Open Scope Z_scope.

(** The largest integer is 2^62 - 1, the smallest -2^62. *)
Definition half : Z := 2 ^ 62.
(** x is an integer of the machine. *)
Definition fits (x : Z) : Prop := - half <= x < half.
(** What the machine stores instead of x. *)
Definition wrap (x : Z) : Z := (x + half) mod (2 * half) - half.

(** let add x y = let s = x + y in if (x lxor s) land (y lxor s) < 0 then overflow () else s: both signs differ from that of the sum. *)
Definition sum_is_wrong (x y s : Z) : Prop := (x < 0 <-> 0 <= s) /\ (y < 0 <-> 0 <= s).
(** let sub x y = let s = x - y in if (x lxor y) land (x lxor s) < 0 then overflow () else s *)
Definition difference_is_wrong (x y s : Z) : Prop := (x < 0 <-> 0 <= y) /\ (x < 0 <-> 0 <= s).
(** let mul x y = small numbers are multiplied at once; else let p = x * y in if p / x <> y || (x = -1 && y = min_int) then overflow () else p *)
Definition product_is_right (x y p : Z) : Prop := Z.quot p x = y /\ ~ (x = -1 /\ y = - half).
(** Numbers whose product fits in any case. *)
Definition small (x : Z) : Prop := - 2 ^ 30 <= x <= 2 ^ 30.

(** ---- Proofs ---- *)

Lemma wrap_near x : exists q, wrap x = x - q * (2 * half) /\ fits (wrap x).
Proof.
  exists ((x + half) / (2 * half)). unfold wrap, fits. pose proof (Z.div_mod (x + half) (2 * half)) as D.
  assert (H : half = 4611686018427387904) by reflexivity.
  pose proof (Z.mod_pos_bound (x + half) (2 * half)). lia.
Qed.

(** A sum that passes its test is the true sum. *)
Theorem sum_checked x y : fits x -> fits y -> ~ sum_is_wrong x y (wrap (x + y)) -> wrap (x + y) = x + y.
Proof.
  destruct (wrap_near (x + y)) as [q [E [F1 F2]]]. unfold fits, sum_is_wrong in *. rewrite E in *.
  assert (H : half = 4611686018427387904) by reflexivity. rewrite H in *. intros [A1 A2] [B1 B2] N.
  assert (q = 0 \/ q = 1 \/ q = -1) as [-> | [-> | ->]] by lia; lia.
Qed.

(** A difference that passes its test is the true difference. *)
Theorem difference_checked x y : fits x -> fits y -> ~ difference_is_wrong x y (wrap (x - y)) -> wrap (x - y) = x - y.
Proof.
  destruct (wrap_near (x - y)) as [q [E [F1 F2]]]. unfold fits, difference_is_wrong in *. rewrite E in *.
  assert (H : half = 4611686018427387904) by reflexivity. rewrite H in *. intros [A1 A2] [B1 B2] N.
  assert (q = 0 \/ q = 1 \/ q = -1) as [-> | [-> | ->]] by lia; lia.
Qed.

(** A product of small numbers, or one that passes its test, is the true product. *)
Theorem product_checked x y :
  fits x -> fits y -> (small x /\ small y) \/ (x <> 0 /\ product_is_right x y (wrap (x * y))) -> wrap (x * y) = x * y.
Proof.
  intros Fx Fy [[S1 S2]|[N [Q X]]].
  - unfold wrap. unfold small in *. assert (- 2 ^ 60 <= x * y <= 2 ^ 60) by (change (2 ^ 60) with (2 ^ 30 * 2 ^ 30); nia).
    rewrite Z.mod_small; [lia|]. assert (half = 4 * 2 ^ 60) by reflexivity. lia.
  - destruct (wrap_near (x * y)) as [q [E F]]. rewrite E in *. set (p := x * y - q * (2 * half)) in *.
    pose proof (Z.quot_rem' p x) as R. pose proof (Z.rem_bound_abs p x N) as B. rewrite Q in R.
    (* the remainder is a multiple of 2^63, and smaller than 2^62 *)
    unfold fits in *. assert (H : half = 4611686018427387904) by reflexivity. rewrite H in *.
    assert (E2 : Z.rem p x = - (q * 9223372036854775808)) by (unfold p in R at 1; lia). lia.
Qed.
