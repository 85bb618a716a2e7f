(* Whole numbers of the extracted checker. An operation whose result does not fit into 63 bits stops the program; Overflow.v proves that these tests
   notice it. *)
exception Too_large
let overflow () = raise Too_large
let add x y = let s = x + y in if (x lxor s) land (y lxor s) < 0 then overflow () else s
let sub x y = let s = x - y in if (x lxor y) land (x lxor s) < 0 then overflow () else s
let small x = x <= 0x40000000 && x >= -0x40000000
let mul x y =
  if small x && small y then x * y
  else if x = 0 then 0
  else let p = x * y in if p / x <> y || (x = -1 && y = min_int) then overflow () else p
let opp x = if x = min_int then overflow () else - x
let abs x = if x = min_int then overflow () else if x < 0 then - x else x
(* The quotient rounded down; Coq's is 0 if y is. *)
let div x y =
  if y = 0 then 0
  else if y = -1 then opp x
  else let q = x / y in if (x < 0) <> (y < 0) && q * y <> x then q - 1 else q
(* Half of a number, rounded down. *)
let half x = x asr 1
(* How Coq writes numbers: 1, 2p and 2p + 1. *)
let twice p = add p p
let twice_and_one p = add (add p p) 1
