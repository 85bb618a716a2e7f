(* Reads the numbers of a certificate from standard input (extracted.py writes them: 64-bit integers, little-endian),
   asks the extracted checker about every statement, and prints how many are wrong. Not verified, and without arithmetic of its own
   but for [first_too_dear], a hint that the checker does not rely on. A number that does not fit into 63 bits stops it. *)
open Checker

let block n = let b = Bytes.create (8 * n) in really_input stdin b 0 (8 * n); 
  fun i -> let x = Bytes.get_int64_le b (8 * i) in let n = Int64.to_int x in if Int64.of_int n = x then n else Ints.overflow ()
let int () = block 1 0
let many n read = List.init n (fun _ -> read ())
let flag () = int () = 1
let lim_of n = if n < 0 then None else Some n
let lim () = lim_of (int ())
let choice_of k = if k = 0 then None else Some (k - 1)  (* 0 is an abstention *)
let vote () = choice_of (int () + 1)
let vote_of k = choice_of (k + 1)  (* -1 is no class *)

let budget () =
  let add_edges = lim () in let delete_edges = lim () in let change_edges = lim () in
  let inject_nodes = lim () in let edges_per_injected = lim () in
  let delete_nodes = lim () in let change_features = lim () in
  { add_edges; delete_edges; change_edges; inject_nodes; edges_per_injected; delete_nodes; change_features; edges_in_all = None }

let divisions = [| ByEdge; ByNode; ByGatedNode; GnncertE; GnncertN; GnncertEN; ByNeighbour; ByPair; AsStated |]

let settings code =
  let rule = divisions.(code) in let of_graphs = flag () in let keeps_ids = flag () in
  let num_groups = int () in let num_classes = int () in
  let class_prior = many (int ()) int in let no_edge_prior = int () in let empty_casts = vote () in
  let edge_groups = int () in let feature_groups = int () in
  let price = budget () in let own_price = lim () in
  { rule; of_graphs; keeps_ids; num_groups; num_classes; class_prior; no_edge_prior; empty_casts; edge_groups;
    feature_groups; price; own_price }

let entry code = { choice = choice_of (code lsr 4); is_stable = code land 1 = 1;
                   its_tier = (if code land 2 = 2 then Reached else Unreached); has_one_way = code land 4 = 4 }

(* Growing rows of limits, -1 for infinite. *)
type rows = { mutable used : int; mutable room : int array }
let append r n =
  if r.used = Array.length r.room then r.room <- Array.append r.room (Array.make (max 1024 r.used) 0);
  r.room.(r.used) <- (match n with Some x -> x | None -> -1); r.used <- r.used + 1
let to_list r = let l = ref [] in for i = r.used - 1 downto 0 do l := lim_of r.room.(i) :: !l done; !l

(* A hint that the checker does not rely on, see hints.ml. *)
let first_too_dear r left = Hints.first_too_dear (Array.sub r.room 0 r.used) left

(* Budgets, and whether it is asked who cannot get which label. *)
let queries () =
  let l = many (int ()) (fun () -> let b = budget () in let own = flag () in ((b, own), flag ())) in
  (Array.of_list (List.map fst l), Array.of_list (List.map snd l))
(* For each budget that is asked about and each class, how many targets cannot get it. *)
let fresh_excluded ask classes = Array.map (fun asked -> Array.make (if asked then classes else 0) 0) ask
let note_excluded excluded ask cannot queries =
  Array.iteri (fun i q -> if ask.(i) then List.iteri (fun k out -> if out then excluded.(i).(k) <- excluded.(i).(k) + 1) (cannot q)) queries
let print_budget wrong broken excluded =
  Printf.printf "budget %d %d" wrong broken; Array.iter (Printf.printf " %d") excluded; print_newline ()
(* Prices, and whether a stated price is the least one (1) or a price that suffices (0). *)
let prices () = Array.of_list (many (int ()) (fun () ->
  let p_inject = lim () in let p_edge = lim () in let p_add = lim () in let p_delete = lim () in let p_change = lim () in
  let p_remove = lim () in let p_alter = lim () in let p_own = lim () in
  ({ p_inject; p_edge; p_add; p_delete; p_change; p_remove; p_alter; p_own }, flag ())))
let note_prices wrong asked stated n j ok =
  Array.iteri (fun i (p, least) -> if not ((if least then right_price else dearer) ok p (lim_of (stated (i * n + j)))) then wrong.(i) <- wrong.(i) + 1) asked
let print_prices = Array.iter (Printf.printf "price %d\n")
let print_wrong = Array.iteri (fun i n -> Printf.printf "%s %d\n" [| "label"; "radius"; "new_neighbours"; "structure_radius" |].(i) n)

let check_votes code =
  let s = settings code in
  let queries, ask = queries () in
  let asked = prices () in
  let wrong_price = Array.make (Array.length asked) 0 in
  let structure = flag () in
  let hubs = many (int ()) int in
  let m = Array.length queries in
  let fresh () = Array.init m (fun _ -> { used = 0; room = [||] }) in
  let needs = fresh () and touch_needs = fresh () and fails = Array.make m 0 and wrong_budget = Array.make m 0 in
  let wrong = Array.make 4 0 and targets = ref 0 in
  let touches = own_groups s && not s.of_graphs in
  let excluded = fresh_excluded ask s.num_classes and asks = Array.exists Fun.id ask in
  let rec chunks () =
    let n = int () in
    if n > 0 then begin
      let default = block n in let no_edge = block n in let stated_label = block n in let radius = block n in
      let neighbours = block n in let structure_radius = block n in let num_listed = block n in let num_cover = block n in
      let listed = block (int ()) in let cover = block (int ()) in let stated = block (n * m) in let stated_price = block (n * Array.length asked) in
      let next = ref 0 and next_row = ref 0 in
      for j = 0 to n - 1 do
        let rec take i l = if i < !next then l else
          let code = listed i in take (i - 1) ((code asr 20, entry (code land 0xfffff)) :: l) in
        let last = !next + num_listed j in
        let listed_votes = take (last - 1) [] in
        next := last;
        let cover_row = List.init (num_cover j) (fun i -> cover (!next_row + i)) in
        next_row := !next_row + num_cover j;
        let d = default j and e = no_edge j in
        let t = { listed_votes; cover_row; no_edge_choice = choice_of (e asr 1); no_edge_stable = e land 1 = 1;
                  default_vote = { choice = choice_of (d asr 1); is_stable = d land 1 = 1; its_tier = Unlisted; has_one_way = false } } in
        let c = count_target s t in
        let note i right = if not right then wrong.(i) <- wrong.(i) + 1 in
        note 0 (c.made && c.label = stated_label j);
        note 1 (right_radius s c (radius j));
        note 2 (right_new_neighbours s c (let x = neighbours j in if x = -10 then None else Some x));
        if structure then note 3 (right_structure_radius s c (structure_radius j));
        Array.iteri (fun i q ->
          let h = holds s c q in
          if not h then fails.(i) <- fails.(i) + 1;
          if h <> (stated (i * n + j) = 1) then wrong_budget.(i) <- wrong_budget.(i) + 1;
          if not s.of_graphs then append needs.(i) (need s c q);
          if touches then append touch_needs.(i) (touch_need s c q)) queries;
        if asks then note_excluded excluded ask (cannot_get s c (count_classes s t)) queries;
        note_prices wrong_price asked stated_price n j (holds s c)
      done;
      targets := !targets + n;
      chunks ()
    end in
  chunks ();
  print_wrong wrong;
  Array.iteri (fun i q ->
    let p = first_too_dear needs.(i) (left_for_new q) and p2 = first_too_dear touch_needs.(i) (left_for_touches hubs q) in
    let broken = broken_at_most s q !targets fails.(i) (to_list needs.(i)) p hubs (to_list touch_needs.(i)) p2 in
    print_budget wrong_budget.(i) broken excluded.(i)) queries;
  print_prices wrong_price;
  Printf.printf "targets %d\n" !targets

(* Stacked votes: a table of different votes, and for each target the rows of its neighbours. Files about pairs of nodes have the same numbers, and a rule
   that says who votes. *)
type statements = {
  holds_ : stacked_settings -> stacked_counted -> query -> bool; radius_ : stacked_settings -> stacked_counted -> int -> bool;
  structure_ : stacked_settings -> stacked_counted -> int -> bool; neighbours_ : stacked_settings -> stacked_counted -> int option -> bool;
  cannot_ : stacked_settings -> stacked_target -> stacked_counted -> query -> bool list }
let of_nodes = { holds_ = stacked_holds; radius_ = right_stacked_radius; structure_ = right_stacked_structure; neighbours_ = right_stacked_neighbours;
                 cannot_ = (fun s t c -> stacked_cannot_get s c (count_duels s t)) }
let of_pairs rule blind = { holds_ = pairs_hold rule blind; radius_ = right_pairs_radius rule blind; structure_ = right_pairs_structure rule;
                      neighbours_ = right_pairs_neighbours rule blind; cannot_ = (fun s t _ -> pairs_cannot_get rule blind s t) }
let rules = [| Common; Both; Trusted |]

let check_stacked in_pairs =
  let about = if in_pairs then (let rule = rules.(int ()) in of_pairs rule (flag ())) else of_nodes in
  let x_classes = int () in let x_computed = flag () in let x_by_edge = flag () in let x_ids = flag () in let x_pseudo = int () in
  let x_pseudo_votes = many (int ()) int in let x_slack = int () in let x_second = int () in let x_used = flag () in
  let s = { x_classes; x_computed; x_by_edge; x_ids; x_pseudo; x_pseudo_votes; x_slack; x_second; x_used } in
  let queries, ask = queries () in
  let asked = prices () in
  let wrong_price = Array.make (Array.length asked) 0 in
  let hubs = many (int ()) int in
  let of_block b j = List.init x_classes (fun k -> b (j * x_classes + k)) in
  let rows = int () in
  let table = let b = block (rows * x_classes) in Array.init rows (of_block b) in
  let m = Array.length queries in
  let needs = Array.init m (fun _ -> { used = 0; room = [||] }) and fails = Array.make m 0 and wrong_budget = Array.make m 0 in
  let wrong = Array.make 4 0 and targets = ref 0 in
  let excluded = fresh_excluded ask x_classes and asks = Array.exists Fun.id ask in
  let rec chunks () =
    let n = int () in
    if n > 0 then begin
      let prior = block (n * x_classes) in let gate = block (n * x_classes) in let stated_label = block n in let radius = block n in
      let neighbours = block n in let structure = block n in let degree = block n in
      let which = block (int ()) in let stated = block (n * m) in let stated_price = block (n * Array.length asked) in
      let next = ref 0 in
      for j = 0 to n - 1 do
        let x_rows = List.init (degree j) (fun i -> table.(which (!next + i))) in
        next := !next + degree j;
        let t = { x_prior = of_block prior j; x_gate = of_block gate j; x_rows } in
        let c = count_stacked s t in
        let note i right = if not right then wrong.(i) <- wrong.(i) + 1 in
        note 0 (c.y_made && c.y_label = stated_label j);
        note 1 (about.radius_ s c (radius j));
        note 2 (about.neighbours_ s c (let x = neighbours j in if x = -10 then None else Some x));
        note 3 (about.structure_ s c (structure j));
        Array.iteri (fun i q ->
          let h = about.holds_ s c q in
          if not h then fails.(i) <- fails.(i) + 1;
          if h <> (stated (i * n + j) = 1) then wrong_budget.(i) <- wrong_budget.(i) + 1;
          if not in_pairs then append needs.(i) (stacked_need s c q (radius j) (structure j))) queries;
        if asks then note_excluded excluded ask (about.cannot_ s t c) queries;
        note_prices wrong_price asked stated_price n j (about.holds_ s c)
      done;
      targets := !targets + n;
      chunks ()
    end in
  chunks ();
  print_wrong wrong;
  Array.iteri (fun i q ->
    let p = first_too_dear needs.(i) (left_for_touches hubs (without_changes s q)) in
    let broken = if in_pairs then fails.(i) else stacked_broken s q fails.(i) (to_list needs.(i)) p hubs in
    print_budget wrong_budget.(i) broken excluded.(i)) queries;
  print_prices wrong_price;
  Printf.printf "targets %d\n" !targets

(* Models that were trained apart (PoisonedGraphs.v): the votes of all models in every view, and for each budget how many training graphs are poisoned. *)
let check_poisoned () =
  let s = settings (int ()) in
  let queries, ask = queries () in
  let _ = prices () in
  let poisoned = Array.init (Array.length queries) (fun _ -> lim ()) in
  let models = int () in
  let m = Array.length queries in
  let fails = Array.make m 0 and wrong_budget = Array.make m 0 and wrong = Array.make 4 0 and targets = ref 0 in
  let excluded = fresh_excluded ask s.num_classes in
  let rec chunks () =
    let n = int () in
    if n > 0 then begin
      let stated_label = block n in let radius = block n in let neighbours = block n in
      let num_views = block n in let num_cover = block n in
      let total = int () in let view_code = block total in let vote_code = block (total * models) in
      let cover = block (int ()) in let stated = block (n * m) in
      let next = ref 0 and next_row = ref 0 in
      for j = 0 to n - 1 do
        let view v =
          let votes = List.init models (fun i -> let code = vote_code (v * models + i) in (choice_of (code asr 1), code land 1 = 1)) in
          weigh s.num_classes (view_code v asr 1) (if view_code v land 1 = 1 then Reached else Unreached) votes in
        let views = List.init (num_views j) (fun i -> view (!next + i)) in
        next := !next + num_views j;
        let cover_row = List.init (num_cover j) (fun i -> cover (!next_row + i)) in
        next_row := !next_row + num_cover j;
        let note i right = if not right then wrong.(i) <- wrong.(i) + 1 in
        let c = count_target s (poisoned_target (Some 0) views cover_row) in
        note 0 (c.made && c.label = stated_label j);
        note 1 (right_poisoned_radius s views cover_row models (radius j));
        note 2 (right_new_neighbours s c (let x = neighbours j in if x = -10 then None else Some x));
        Array.iteri (fun i q ->
          let h = poisoned_holds s views cover_row poisoned.(i) q in
          if not h then fails.(i) <- fails.(i) + 1;
          if h <> (stated (i * n + j) = 1) then wrong_budget.(i) <- wrong_budget.(i) + 1;
          if ask.(i) then begin
            let t = poisoned_target poisoned.(i) views cover_row in
            let out = cannot_get s (count_target s t) (count_classes s t) q in
            List.iteri (fun k is_out -> if is_out then excluded.(i).(k) <- excluded.(i).(k) + 1) out
          end) queries
      done;
      targets := !targets + n;
      chunks ()
    end in
  chunks ();
  print_wrong wrong;
  Array.iteri (fun i _ -> print_budget wrong_budget.(i) (poisoned_broken poisoned.(i) fails.(i)) excluded.(i)) queries;
  Printf.printf "targets %d\n" !targets

(* Votes of training labels (LabelChecker.v): each entry has a label and perhaps a row of factors; for each budget how many entries may change, -1 for any
   number, -2 if it is about anything else. *)
let check_labels () =
  let l_classes = int () in let l_advance = many l_classes int in let l_asked = int () in
  let s = { l_classes; l_advance; l_asked } in
  let factored = flag () in let steps = int () in let width = int () in
  let entries = int () in
  let label = block entries in let audited = block entries in
  let row b j = List.init width (fun i -> b (j * width + i)) in
  let rows = if factored then let b = block (entries * width) in List.init entries (row b) else [] in
  let budgets = Array.of_list (many (int ()) (fun () -> let changes = int () in (changes, flag ()))) in
  let ask = Array.map snd budgets in
  let m = Array.length budgets in
  let fails = Array.make m 0 and wrong_budget = Array.make m 0 and wrong = Array.make 4 0 and targets = ref 0 in
  let excluded = fresh_excluded ask l_classes in
  let rec chunks () =
    let n = int () in
    if n > 0 then begin
      let stated_label = block n in let radius = block n in
      let own = block n in let cap = block n in
      let factors = block (n * (if factored then width else entries)) in
      let stated = block (n * m) in
      for j = 0 to n - 1 do
        let weights = if factored then label_weights steps (cap j) (own j) (row factors j) rows 0
          else List.init entries (fun u -> factors (j * entries + u)) in
        let entry u w = { e_weight = w; e_label = vote_of (label u); e_audited = audited u = 1 } in
        let l = List.mapi entry weights in
        let c = count_labels s l in
        let note i right = if not right then wrong.(i) <- wrong.(i) + 1 in
        note 0 (c.v_made && c.v_label = stated_label j);
        note 1 (right_label_radius c entries (radius j));
        Array.iteri (fun i (changes, _) ->
          let h = changes >= -1 && labels_hold c (lim_of changes) in
          if not h then fails.(i) <- fails.(i) + 1;
          if h <> (stated (i * n + j) = 1) then wrong_budget.(i) <- wrong_budget.(i) + 1;
          if ask.(i) && changes >= -1 then
            List.iteri (fun k out -> if out then excluded.(i).(k) <- excluded.(i).(k) + 1) (labels_cannot_get s l c (lim_of changes))) budgets
      done;
      targets := !targets + n;
      chunks ()
    end in
  chunks ();
  print_wrong wrong;
  Array.iteri (fun i _ -> print_budget wrong_budget.(i) fails.(i) excluded.(i)) budgets;
  Printf.printf "targets %d\n" !targets

(* Votes of labels and neighbours (JointChecker.v): label votes of all voters, then targets with the positions of their neighbours among the voters;
   for each budget how many labels, new and lost neighbours, -1 for any number, and -2 labels if it is about anything else. *)
let check_joint () =
  let l_classes = int () in let l_advance = many l_classes int in let l_asked = int () in
  let s = { l_classes; l_advance; l_asked } in
  let each = int () in
  let factored = flag () in let steps = int () in let width = int () in
  let entries = int () in
  let label = block entries in let audited = block entries in
  let row b j = List.init width (fun i -> b (j * width + i)) in
  let rows = if factored then let b = block (entries * width) in List.init entries (row b) else [] in
  let voters = int () in
  let own = block voters in let cap = block voters in
  let factors = block (voters * (if factored then width else entries)) in
  let entries_of j =
    let weights = if factored then label_weights steps (cap j) (own j) (row factors j) rows 0
      else List.init entries (fun u -> factors (j * entries + u)) in
    List.mapi (fun u w -> { e_weight = w; e_label = vote_of (label u); e_audited = audited u = 1 }) weights in
  let counted = Array.init voters (fun j -> lazy (count_labels (voter_settings s) (entries_of j))) in
  let budgets = Array.of_list (many (int ()) (fun () ->
    let labels = int () in let added = lim () in let deleted = lim () in ((labels, added, deleted), flag ()))) in
  let ask = Array.map snd budgets in
  let m = Array.length budgets in
  let fails = Array.make m 0 and wrong_budget = Array.make m 0 and wrong = Array.make 4 0 in
  let excluded = fresh_excluded ask l_classes in
  let n = int () in
  let stated_label = block n in let radius = block n in let target = block n in
  let indptr = block (n + 1) in let neighbour = block (indptr n) in
  let stated = block (n * m) in
  for j = 0 to n - 1 do
    let near = List.init (indptr (j + 1) - indptr j) (fun i -> Lazy.force counted.(neighbour (indptr j + i))) in
    let l = entries_of (target j) in
    let c = count_joint s each l near in
    let note i right = if not right then wrong.(i) <- wrong.(i) + 1 in
    note 0 (c.j_made && c.j_label = stated_label j);
    note 1 (right_joint_radius c entries (radius j));
    Array.iteri (fun i ((labels, added, deleted), _) ->
      let h = labels >= -1 && joint_holds c (lim_of labels) added deleted in
      if not h then fails.(i) <- fails.(i) + 1;
      if h <> (stated (i * n + j) = 1) then wrong_budget.(i) <- wrong_budget.(i) + 1;
      if ask.(i) && labels >= -1 then
        List.iteri (fun k out -> if out then excluded.(i).(k) <- excluded.(i).(k) + 1) (joint_cannot_get s l c (lim_of labels) added deleted)) budgets
  done;
  print_wrong wrong;
  Array.iteri (fun i _ -> print_budget wrong_budget.(i) fails.(i) excluded.(i)) budgets;
  Printf.printf "targets %d\n" n

(* Contests (Contest.v): attackers, targets and statements of a file; -1 stands for any number, for no phase, and for what all targets do not share.
   One line for each statement says whether it follows. *)
let check_contest () =
  let whole = flag () in let least_lead = int () in let g = { whole; least_lead } in
  let classes = int () in
  let vector () = many classes int in
  let e () = let e_adds = vector () in let e_cap = vector () in let e_doubt = int () in { e_adds; e_cap; e_doubt } in
  let hits () = many (int ()) (fun () -> let m = int () in (m, e ())) in
  let factors () = many (int ()) (fun () -> let i = int () in (i, int ())) in
  let moves () = many (int ()) int in
  let attackers = Array.of_list (many (int ()) (fun () ->
    let limits = many (int ()) (fun () ->
      let m = moves () in let at_most = factors () in
      (m, at_most, many (int ()) (fun () -> let table = int () in (table, factors ())))) in
    let phase = factors () in
    let shared = if flag () then (let m = moves () in Some (m, factors ())) else None in
    (limits, phase, shared))) in
  let unit_ () = let u_count = int () in let u_adds = vector () in let u_doubt = int () in { u_count; u_adds; u_doubt; u_until = lim () } in
  let pool () =
    let p_hit_by = hits () in let p_units = many (int ()) unit_ in
    { p_hit_by; p_units; p_free = if flag () then Some (e ()) else None } in
  let targets = Array.of_list (many (int ()) (fun () ->
    let d_label = int () in let d_scores = vector () in let d_fixed = vector () in let d_doubt = vector () in
    let d_pools = many (int ()) pool in let d_new = hits () in
    let tables = Array.of_list (many (int ()) (fun () -> many (int ()) int)) in
    ({ d_label; d_scores; d_fixed; d_pools; d_new; d_doubt }, tables))) in
  let allowed (limits, phase, _) budget (_, tables) =
    { limits = List.map (fun (m, at_most, read) ->
        (m, with_tables (List.map (fun (table, f) -> (tables.(table), amount f budget)) read) (amount at_most budget))) limits;
      phase = amount phase budget } in
  let rows () = many (int ()) moves in
  let statement () =
    let kind = int () in let attacker = attackers.(int ()) in let budget = many (int ()) lim in
    match kind with
    | 0 -> let t = targets.(int ()) in let prices = rows () in stays_ok g classes (fst t) (allowed attacker budget t) prices
    | 1 -> let t = targets.(int ()) in let k = int () in let w = moves () in let prices = moves () in
           excludes_ok g classes (fst t) (allowed attacker budget t) k w prices
    | _ ->
        let number = int () in
        let needs = many (int ()) (fun () ->
          let t = targets.(int ()) in let n_moves = lim () in let n_prices = rows () in
          { n_target = fst t; n_allowed = allowed attacker budget t; n_moves; n_prices }) in
        let _, _, shared = attacker in
        match shared with
        | None -> false
        | Some (m, at_most) ->
            let total = amount at_most budget in
            let row = { used = 0; room = [||] } in
            List.iter (fun n -> append row n.n_moves) needs;
            let p = first_too_dear row total in
            broken_ok g classes m total needs (Array.length targets - List.length needs) number p in
  let statements = int () in
  for _ = 1 to statements do Printf.printf "statement %b\n" (statement ()) done;
  Printf.printf "targets %d\n" (Array.length targets)

let code_of_poisoned = 100
let code_of_labels = 101
let code_of_pairs = 102
let code_of_joint = 103
let code_of_contest = 104

let () =
  set_binary_mode_in stdin true;
  try
    let code = int () in
    if code = Array.length divisions then check_stacked false else if code = code_of_pairs then check_stacked true
    else if code = code_of_poisoned then check_poisoned ()
    else if code = code_of_labels then check_labels () else if code = code_of_joint then check_joint ()
    else if code = code_of_contest then check_contest () else check_votes code
  with Ints.Too_large -> prerr_endline "a number does not fit into 63 bits"; exit 3
