(** The checker as OCaml. Numbers become OCaml's 63-bit integers, and ints.ml stops the program where a result would not fit (Overflow.v, docs/trust.md).
    Classes are counted from 0, and are small. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZInt ZArith List.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker StackedChecker Excluded Prices PoisonedGraphs LabelVotes LabelChecker JointChecker PairVotes Contest.
Extraction Language OCaml.
Extract Inductive nat => int [ "0" "(fun n -> n + 1)" ] "(fun zero succ n -> if n = 0 then zero () else succ (n - 1))".
(* Numbers are written as sums and products of ints.ml, too, so that no other arithmetic is left: a browser has no 63-bit integers. *)
Extract Inductive BinNums.positive => int [ "Ints.twice_and_one" "Ints.twice" "1" ]
  "(fun f2p1 f2p f1 p -> if p <= 1 then f1 () else if Ints.twice (Ints.half p) = p then f2p (Ints.half p) else f2p1 (Ints.half p))".
Extract Inductive BinNums.Z => int [ "0" "" "Ints.opp" ] "(fun f0 fp fn z -> if z = 0 then f0 () else if z > 0 then fp z else fn (Ints.opp z))".
Extract Constant Pos.add => "Ints.add".
Extract Constant Pos.succ => "(fun p -> Ints.add p 1)".
Extract Constant Pos.sub => "(fun n m -> if n <= m then 1 else Ints.sub n m)".
Extract Constant Pos.mul => "Ints.mul".
Extract Inlined Constant Nat.eqb => "(fun (x : int) y -> x = y)".
Extract Inlined Constant Nat.ltb => "(fun (x : int) y -> x < y)".
Extract Inlined Constant Z.add => "Ints.add".
Extract Inlined Constant Z.sub => "Ints.sub".
Extract Inlined Constant Z.mul => "Ints.mul".
Extract Inlined Constant Z.opp => "Ints.opp".
Extract Inlined Constant Z.abs => "Ints.abs".
Extract Inlined Constant Z.div => "Ints.div".
Extract Inlined Constant Z.eqb => "(fun (x : int) y -> x = y)".
Extract Inlined Constant Z.leb => "(fun (x : int) y -> x <= y)".
Extract Inlined Constant Z.ltb => "(fun (x : int) y -> x < y)".
Extract Inlined Constant Z.min => "(fun (x : int) y -> if x <= y then x else y)".
Extract Inlined Constant Z.max => "(fun (x : int) y -> if x >= y then x else y)".
Extract Inlined Constant Z.div2 => "Ints.half".
Extraction "checker.ml" count_target holds right_radius right_structure_radius right_new_neighbours need touch_need broken_at_most
  left_for_new left_for_touches count_stacked stacked_holds right_stacked_radius right_stacked_structure right_stacked_neighbours
  stacked_need stacked_broken without_changes dearer right_price count_classes cannot_get count_duels stacked_cannot_get
  weigh poisoned_target poisoned_holds right_poisoned_radius poisoned_broken
  label_weights count_labels labels_hold right_label_radius labels_cannot_get
  voter_settings count_joint joint_holds right_joint_radius joint_cannot_get
  pairs_hold right_pairs_radius right_pairs_structure right_pairs_neighbours pairs_cannot_get
  stays_ok excludes_ok broken_ok amount with_tables.
