(* What Overflow.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
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

(** A sum that passes its test is the true sum. *)
Theorem sum_checked x y : fits x -> fits y -> ~ sum_is_wrong x y (wrap (x + y)) -> wrap (x + y) = x + y.

(** A difference that passes its test is the true difference. *)
Theorem difference_checked x y : fits x -> fits y -> ~ difference_is_wrong x y (wrap (x - y)) -> wrap (x - y) = x - y.

(** A product of small numbers, or one that passes its test, is the true product. *)
Theorem product_checked x y :
  fits x -> fits y -> (small x /\ small y) \/ (x <> 0 /\ product_is_right x y (wrap (x * y))) -> wrap (x * y) = x * y.
