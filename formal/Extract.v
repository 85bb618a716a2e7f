(** The checker as OCaml. Numbers become OCaml's 63-bit ints: Checker.clip keeps those of a budget below 2^30, and a file's
    own numbers are below 2^31, so that sums and products stay below 2^62 (docs/trust.md). *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZInt ZArith List.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker.
Extraction Language OCaml.
Extract Inductive nat => int [ "0" "(fun n -> n + 1)" ] "(fun zero succ n -> if n = 0 then zero () else succ (n - 1))".
Extract Inlined Constant Nat.eqb => "(fun (x : int) y -> x = y)".
Extract Inlined Constant Nat.ltb => "(fun (x : int) y -> x < y)".
Extract Inlined Constant Z.add => "(+)".
Extract Inlined Constant Z.sub => "(-)".
Extract Inlined Constant Z.mul => "( * )".
Extract Inlined Constant Z.eqb => "(fun (x : int) y -> x = y)".
Extract Inlined Constant Z.leb => "(fun (x : int) y -> x <= y)".
Extract Inlined Constant Z.ltb => "(fun (x : int) y -> x < y)".
Extract Inlined Constant Z.min => "(fun (x : int) y -> if x <= y then x else y)".
Extract Inlined Constant Z.max => "(fun (x : int) y -> if x >= y then x else y)".
Extract Inlined Constant Pos.succ => "(fun x -> x + 1)".
Extract Inlined Constant Z.abs => "abs".
Extract Inlined Constant Z.div2 => "(fun x -> x asr 1)".
Extract Constant Z.div => "fun x y -> if x >= 0 then x / y else - ((y - 1 - x) / y)".   (* y > 0 in all calls *)
Extraction "checker.ml" count_target holds right_radius right_structure_radius right_new_neighbours need touch_need broken_at_most
  left_for_new left_for_touches.
