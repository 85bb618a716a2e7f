(* The extracted checker for the scripts of a report: each function is handed to JavaScript under its name. Not verified, and without arithmetic of its own.
   A list of JavaScript [a, b] arrives as [0, a, b]; -1 stands for any number, and for no class. *)
open Checker

external export : string -> 'a -> unit = "agnncert_export"

let lim n = if n < 0 then None else Some n
(* Not List.map, which needs a stack as high as the list is long. *)
let lims a = let rec go i l = if i < 0 then l else go (i - 1) (lim a.(i) :: l) in go (Array.length a - 1) []
let of_lim = function Some n -> n | None -> -1
let choice k = if k < 0 then None else Some k
let flag n = n = 1
let number b = if b then 1 else 0
let neighbours x = if x = -10 then None else Some x (* -10 is any number; -1 says that nothing is proved *)

let budget b =
  let at i = lim b.(i) in
  { add_edges = at 0; delete_edges = at 1; change_edges = at 2; inject_nodes = at 3; edges_per_injected = at 4;
    delete_nodes = at 5; change_features = at 6; edges_in_all = None }
let query b own = (budget b, flag own)

(* ---- Votes of subgraphs ---- *)

let divisions = [| ByEdge; ByNode; ByGatedNode; GnncertE; GnncertN; GnncertEN; ByNeighbour; ByPair; AsStated |]

let settings division flags numbers prior price =
  { rule = divisions.(division); of_graphs = flag flags.(0); keeps_ids = flag flags.(1);
    num_groups = numbers.(0); num_classes = numbers.(1); class_prior = Array.to_list prior; no_edge_prior = numbers.(2);
    empty_casts = choice numbers.(3); edge_groups = numbers.(4); feature_groups = numbers.(5);
    price = budget price; own_price = lim price.(7) }

(* Listed votes: groups in ascending order, classes, and flags (1 stable, 2 reached, 4 one-way). *)
let count s groups classes flags cover defaults =
  let rec listed i l = if i < 0 then l else
    let f = flags.(i) in
    let e = { choice = choice classes.(i); is_stable = f land 1 = 1; its_tier = (if f land 2 = 2 then Reached else Unreached); has_one_way = f land 4 = 4 } in
    listed (i - 1) ((groups.(i), e) :: l) in
  let default_vote = { choice = choice defaults.(0); is_stable = flag defaults.(1); its_tier = Unlisted; has_one_way = false } in
  count_target s { listed_votes = listed (Array.length groups - 1) []; cover_row = Array.to_list cover; default_vote;
                   no_edge_choice = choice defaults.(2); no_edge_stable = flag defaults.(3) }

let () =
  export "query" query;
  export "settings" settings;
  export "count" count;
  export "label" (fun c -> if c.made then c.label else -1);
  export "covered" (fun s c q ->
    let b, own = q in
    number (if own_groups s then touches_of s c b own <> None else reach_of s c b own <> None));
  export "holds" (fun s c q -> number (holds s c q));
  export "radius" (fun s c r -> number (right_radius s c r));
  export "structureRadius" (fun s c r -> number (right_structure_radius s c r));
  export "newNeighbours" (fun s c x -> number (right_new_neighbours s c (neighbours x)));
  export "need" (fun s c q -> of_lim (need s c q));
  export "touchNeed" (fun s c q -> if own_groups s && not s.of_graphs then of_lim (touch_need s c q) else 0);
  export "broken" (fun s q sizes needs touch_needs hubs ->
    let hubs = Array.to_list hubs in
    let p = Hints.first_too_dear needs (left_for_new q) and p2 = Hints.first_too_dear touch_needs (left_for_touches hubs q) in
    broken_at_most s q sizes.(0) sizes.(1) (lims needs) p hubs (lims touch_needs) p2)

(* ---- Stacked votes, and those about pairs of nodes ---- *)

let stacked_settings flags numbers pseudo_votes =
  { x_classes = numbers.(0); x_computed = flag flags.(0); x_by_edge = flag flags.(1); x_ids = flag flags.(2); x_pseudo = numbers.(1);
    x_pseudo_votes = Array.to_list pseudo_votes; x_slack = numbers.(2); x_second = numbers.(3); x_used = flag flags.(3) }
let stacked_target prior gate rows = { x_prior = Array.to_list prior; x_gate = Array.to_list gate; x_rows = (let rec go i l = if i < 0 then l else go (i - 1) (Array.to_list rows.(i) :: l) in go (Array.length rows - 1) []) }
let rules = [| Common; Both; Trusted |]

let () =
  export "stackedSettings" stacked_settings;
  export "stackedCount" (fun s prior gate rows -> count_stacked s (stacked_target prior gate rows));
  export "stackedLabel" (fun c -> if c.y_made then c.y_label else -1);
  export "stackedHolds" (fun s c q -> number (stacked_holds s c q));
  export "stackedRadius" (fun s c r -> number (right_stacked_radius s c r));
  export "stackedStructureRadius" (fun s c r -> number (right_stacked_structure s c r));
  export "stackedNewNeighbours" (fun s c x -> number (right_stacked_neighbours s c (neighbours x)));
  export "stackedNeed" (fun s c q radius structure -> of_lim (stacked_need s c q radius structure));
  export "stackedBroken" (fun s q fails needs hubs ->
    let hubs = Array.to_list hubs in
    let p = Hints.first_too_dear needs (left_for_touches hubs (without_changes s q)) in
    stacked_broken s q fails (lims needs) p hubs);
  export "pairsHold" (fun rule blind s c q -> number (pairs_hold rules.(rule) (flag blind) s c q));
  export "pairsRadius" (fun rule blind s c r -> number (right_pairs_radius rules.(rule) (flag blind) s c r));
  export "pairsStructureRadius" (fun rule s c r -> number (right_pairs_structure rules.(rule) s c r));
  export "pairsNewNeighbours" (fun rule blind s c x -> number (right_pairs_neighbours rules.(rule) (flag blind) s c (neighbours x)))
