(* Whole numbers of the extracted checker in a browser. There an OCaml integer is a number of JavaScript, which runtime.js adds, subtracts and multiplies
   without a limit: as a double where that is exact, and as a BigInt beyond. So nothing wraps around, and nothing has to be stopped. *)
external add : int -> int -> int = "agnncert_add"
external sub : int -> int -> int = "agnncert_sub"
external mul : int -> int -> int = "agnncert_mul"
external div : int -> int -> int = "agnncert_div"
external half : int -> int = "agnncert_half"
let opp x = sub 0 x
let abs x = if x < 0 then opp x else x
(* How Coq writes numbers: 1, 2p and 2p + 1. *)
let twice p = add p p
let twice_and_one p = add (add p p) 1
