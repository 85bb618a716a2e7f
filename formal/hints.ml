(* A hint for [affordable], which the checker does not rely on: the first need, in ascending order, that does not fit any more; 0 if all fit.
   Needs are numbers, -1 for those that nothing meets. *)
let first_too_dear needs left = match left with
  | None -> 0
  | Some left ->
      let prices = Array.copy needs in
      Array.sort (fun (x : int) y -> if x < y then -1 else if x > y then 1 else 0) prices;
      let rec go i left = if i = Array.length prices then 0 else if prices.(i) < 0 then go (i + 1) left
        else if prices.(i) > left then prices.(i) else go (i + 1) (Ints.sub left prices.(i)) in
      go 0 left
