(* What Checker.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The checker: derives every statement of a certificate again from the numbers in its file. This file is the program that
    is extracted; CheckerProofs.v shows what its answers establish. Each target is counted once; a budget then costs a few
    operations for each class. *)
From Coq Require Import List Arith ZArith Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair
  OwnGroupsOfGraphs.
Import ListNotations.
Open Scope Z_scope.

(** The divisions of the page (section 3), GNNCert's three, those of Theorem 9, and a user's own with stated prices. *)
Inductive division := ByEdge | ByNode | ByGatedNode | GnncertE | GnncertN | GnncertEN | ByNeighbour | ByPair | AsStated.

(** Settings of a file, the same for all targets.
    - [keeps_ids]: nodes have ids; otherwise row numbers stand in for them, and nodes must not be deleted;
    - [class_prior], [no_edge_prior]: votes that are there from the start, for each class, and for the no_edge prediction;
    - [empty_casts]: what empty groups cast where every neighbour has a group of its own;
    - [edge_groups], [feature_groups]: the sides of GNNCert-EN's grid;
    - [price], [own_price]: votes that one unit of each budget moves in a user's own division; None: not covered. *)
Record settings := Settings {
  rule : division; of_graphs : bool; keeps_ids : bool; num_groups : Z; num_classes : nat;
  class_prior : list Z; no_edge_prior : Z; empty_casts : vote;
  edge_groups : Z; feature_groups : Z; price : budget; own_price : lim
}.

(** One vote: the class, whether it is stable, its tier, whether its pair has one direction only. *)
Record entry := Entry { choice : vote; is_stable : bool; its_tier : tier; has_one_way : bool }.

(** One target: the listed votes with their groups in ascending order, the vote that all other groups cast, the
    no_edge prediction (None if no prior follows it), and the row of the cover table: entry k - 1 bounds what k nodes
    reach, the last one holds for more. *)
Record target := Target {
  listed_votes : list (Z * entry); default_vote : entry;
  no_edge_choice : vote; no_edge_stable : bool; cover_row : list Z
}.

(** A budget, and whether the target's own features may change. *)
Definition query : Type := budget * bool.

(** Groups come in ascending order, from low on and below high: none is listed twice. *)
Fixpoint ascends (low high : Z) (l : list (Z * entry)) : bool :=
  match l with [] => low <=? high | (g, _) :: l' => (low <=? g) && ascends (g + 1) high l' end.

(** Every neighbour, pair or node has a group of its own (Theorem 9). *)
Definition own_groups (s : settings) : bool := match rule s with ByNeighbour | ByPair => true | _ => false end.

(** Groups ascend, listed votes are not in the third tier and all others are; where every neighbour has a group of its
    own, empty groups cast what is said. *)
Definition well_made (s : settings) (t : target) : bool :=
  ascends 0 (num_groups s) (listed_votes t)
  && forallb (fun p => negb (teq (its_tier (snd p)) Unlisted)) (listed_votes t)
  && teq (its_tier (default_vote t)) Unlisted
  && (negb (own_groups s) || beq (choice (default_vote t)) (empty_casts s)).

(** The choices of those listed votes that satisfy q. *)
Fixpoint choices (q : entry -> bool) (l : list (Z * entry)) (found : list vote) : list vote :=
  match l with
  | [] => found
  | (_, e) :: l' => choices q l' (if q e then choice e :: found else found)
  end.

(** c(k), of a list of votes. *)
Fixpoint count (k : nat) (l : list vote) (n : Z) : Z :=
  match l with
  | [] => n
  | y :: l' => count k l' (match y with Some j => if Nat.eqb j k then n + 1 else n | None => n end)
  end.

(** The length of a list. *)
Fixpoint size {A} (l : list A) (n : Z) : Z := match l with [] => n | _ :: l' => size l' (n + 1) end.

(** What counts against a rival: [lead] is its margin, [not_0], [not_1], [not_2] are the stable votes of each tier that
    are not for it, [way_not] those of them whose pair has one direction only. *)
Record rival := Rival { its_class : nat; lead : Z; not_0 : Z; not_1 : Z; not_2 : Z; way_not : Z }.

(** A target, counted: the label as cast, its stable votes in each tier, those of one-way pairs, the rivals, and how many
    votes are reached, stable or not. *)
Record counted := Counted {
  made : bool; label : nat; for_0 : Z; for_1 : Z; for_2 : Z; way_for : Z; rivals : list rival;
  num_reached_in : Z; cover_in : list Z
}.

(** Votes of class k from the start: as cast here, certain ones, and how many are in doubt. *)
Definition class_prior_of (s : settings) (k : nat) : Z :=
  nth k (class_prior s) 0 - (if own_groups s && beq (empty_casts s) (Some k) then num_groups s else 0).

(** The prior of class k as it was cast (Theorem 8). *)
Definition prior_cast (s : settings) (t : target) (k : nat) : Z :=
  class_prior_of s k + (if beq (no_edge_choice t) (Some k) then no_edge_prior s else 0).

(** The prior of class k that no machine reads otherwise (Theorem 8). *)
Definition prior_certain (s : settings) (t : target) (k : nat) : Z :=
  class_prior_of s k + (if no_edge_stable t && beq (no_edge_choice t) (Some k) then no_edge_prior s else 0).

(** The doubt of Theorem 8: |w| where the no_edge prediction is not stable. *)
Definition prior_doubt (s : settings) (t : target) : Z := if no_edge_stable t then 0 else Z.abs (no_edge_prior s).

(** The best score, the smaller class on a tie. *)
Fixpoint best_from (score : nat -> Z) (k left : nat) (b : nat) (sb : Z) : nat :=
  match left with
  | O => b
  | S left' => let sk := score k in
      if sb <? sk then best_from score (S k) left' k sk else best_from score (S k) left' b sb
  end.

(** What n unlisted votes give class k. *)
Definition default_for (k : nat) (t : target) (n : Z) : Z := if beq (choice (default_vote t)) (Some k) then n else 0.

(** Section 1, Vote: the label, the class with the most votes, the smaller index on a tie. *)
Definition label_of (s : settings) (t : target) : nat :=
  let cast := choices (fun _ => true) (listed_votes t) [] in
  let rest := num_groups s - size (listed_votes t) 0 in
  let score k := prior_cast s t k + count k cast 0 + default_for k t rest in
  match num_classes s with O => O | S m => best_from score 1 m 0 (score O) end.

(** All numbers of Theorems 2 and 9 that no budget changes. *)
Definition count_target (s : settings) (t : target) : counted :=
  let l := listed_votes t in
  let a := label_of s t in
  let r0 := choices (fun e => is_stable e && teq (its_tier e) Reached) l [] in
  let r1 := choices (fun e => is_stable e && teq (its_tier e) Unreached) l [] in
  let ways := choices (fun e => is_stable e && has_one_way e) l [] in
  let s0 := size r0 0 in let s1 := size r1 0 in let sw := size ways 0 in
  let s2 := if is_stable (default_vote t) then num_groups s - size l 0 else 0 in
  let a0 := count a r0 0 in let a1 := count a r1 0 in let a2 := default_for a t s2 in
  let own := prior_certain s t a + a0 + a1 + a2 - (num_groups s - s0 - s1 - s2) - prior_doubt s t in
  let against k :=
    let k0 := count k r0 0 in let k1 := count k r1 0 in let k2 := default_for k t s2 in
    Rival k (own - prior_certain s t k - k0 - k1 - k2 - tie k a) (s0 - k0) (s1 - k1) (s2 - k2) (sw - count k ways 0) in
  Counted (well_made s t) a a0 a1 a2 (count a ways 0)
    (map against (filter (fun k => negb (Nat.eqb k a)) (seq 0 (num_classes s))))
    (size (choices (fun e => teq (its_tier e) Reached) l []) 0) (cover_row t).

(** Numbers from 2^30 on count as infinite, so that all others are far from the largest number of a machine. *)
Definition huge : Z := 1073741824.

(** A number of the budget, infinite if it is huge. *)
Definition clip (n : lim) : lim := match n with Some a => if huge <=? a then None else n | None => None end.

(** The budget with such numbers: it allows no less. *)
Definition clip_budget (B : budget) : budget :=
  Budget (clip (add_edges B)) (clip (delete_edges B)) (clip (change_edges B)) (clip (inject_nodes B))
         (clip (edges_per_injected B)) (clip (delete_nodes B)) (clip (change_features B)) (clip (edges_in_all B)).

(** The bound that a row of the cover table states for k nodes. Walks along the row: k itself may be huge. *)
Fixpoint row_at (cover : list Z) (k : Z) : Z :=
  match cover with
  | [] => 0
  | [c] => c
  | c :: rest => if k <=? 1 then c else row_at rest (k - 1)
  end.

(** Cov(k) of Theorem 3, from the row of the file. *)
Definition row (cover : list Z) (k : lim) : lim :=
  match k with
  | None => Some (last cover 0)
  | Some k => if k <=? 0 then Some 0 else Some (row_at cover k)
  end.

(** The budget allows none of these. *)
Definition is_zero (n : lim) : bool := match n with Some a => a <=? 0 | None => false end.

(** A = d = 0: GNNCert divides edges and features, not nodes. *)
Definition no_nodes (B : budget) : bool := is_zero (inject_nodes B) && is_zero (delete_nodes B).

(** n0 = n1 = n2 = n. *)
Definition same (n : lim) : reach := Reach n n n.

(** o: 1 if the target's own features may change. *)
Definition one_if (own : bool) : lim := Some (if own then 1 else 0).

(** Votes that a budget moves at stated prices; None if something is not covered. *)
Definition priced (p amount : lim) (rest : option lim) : option lim :=
  match rest with
  | None => None
  | Some moved => match p with
                  | None => if is_zero amount then Some moved else None
                  | Some _ => Some (ladd (lmul (clip p) amount) moved)
                  end
  end.

(** Votes that a budget moves in a user's own division: the sum over its fields. *)
Definition at_prices (p : budget) (own_p : lim) (B : budget) (own : bool) : option lim :=
  priced (add_edges p) (add_edges B) (priced (delete_edges p) (delete_edges B) (priced (change_edges p) (change_edges B)
    (priced (inject_nodes p) (inject_nodes B) (priced (edges_per_injected p) (clip (injected_edges B))
      (priced (delete_nodes p) (delete_nodes B) (priced (change_features p) (change_features B)
        (priced own_p (one_if own) (Some (Some 0))))))))).

(** How many votes a budget can move, by the theorem of the division; None where nothing is proved. *)
Definition reach_of (s : settings) (c : counted) (B : budget) (own : bool) : option reach :=
  let ids_ok := keeps_ids s || is_zero (delete_nodes B) in
  let when b n := if (b : bool) then Some n else None in
  match rule s with
  | ByEdge =>
      if of_graphs s then when (ids_ok && negb own) (gedge_reach (row (cover_in c)) B)
      else when (ids_ok && negb own) (edge_reach (row (cover_in c)) B)
  | ByNode =>
      if of_graphs s then when (ids_ok && negb own) (gnode_reach B)
      else when (ids_ok && negb own) (node_reach_of (num_reached_in c) B)
  | ByGatedNode => when (ids_ok && negb (of_graphs s)) (gated_reach_of own (num_reached_in c) B)
  | GnncertE => when (no_nodes B && is_zero (change_features B) && negb own && ids_ok) (same (touched_edges B))
  | GnncertN => when (no_nodes B && is_zero (touched_edges B) && negb (own && of_graphs s) && ids_ok)
                     (same (ladd (change_features B) (one_if own)))
  | GnncertEN => when (no_nodes B && negb (own && of_graphs s) && ids_ok)
                      (same (grid_moved (edge_groups s) (feature_groups s) (touched_edges B) (ladd (change_features B) (one_if own))))
  | AsStated => match at_prices (price s) (own_price s) B own with
                | Some n => when (ids_ok && negb (own && of_graphs s)) (same n)
                | None => None
                end
  | ByNeighbour | ByPair => None
  end.

(** The same where every neighbour has a group of its own. *)
Definition touches_of (s : settings) (c : counted) (B : budget) (own : bool) : option touches :=
  if own then None else
  match rule s, of_graphs s with
  | ByNeighbour, false => Some (own_touches B)
  | ByPair, false => Some (pair_touches B)
  | ByNeighbour, true => Some (gnode_touches B)
  | ByPair, true => Some (gpair_touches (row (cover_in c)) B)
  | _, _ => None
  end.

(** Theorem 2: limit(x) = min(n0, x0 + min(n1, x1 + min(n2, x2))). *)
Definition limit3 (n : reach) (x0 x1 x2 : Z) : Z := cap (all n) (x0 + cap (beyond n) (x1 + cap (unlisted n) x2)).

(** Theorem 2. *)
Definition test (c : counted) (n : reach) : bool :=
  let lost := limit3 n (for_0 c) (for_1 c) (for_2 c) in
  made c && forallb (fun k => lost + limit3 n (not_0 k) (not_1 k) (not_2 k) <=? lead k) (rivals c).

(** Theorem 9: stable votes for the label. *)
Definition for_own (c : counted) : Z := for_0 c + for_1 c.

(** Theorem 9: stable votes that are not for the rival. *)
Definition not_own (k : rival) : Z := not_0 k + not_1 k.

(** x is less than n. *)
Definition lt_lim (x : Z) (n : lim) : bool := match n with Some m => x <? m | None => true end.

(** Theorem 9: the most that a rival gains. *)
Definition gain_in (y0 : vote) (n : touches) (c : counted) (k : rival) : lim :=
  if beq y0 (Some (label c)) then
    ladd (Some (cap (t_altered n) (for_own c) + cap (t_altered n) (not_own k))) (lmul (Some 2) (t_new n))
  else if beq y0 (Some (its_class k)) then
    Some (over (t_touched n) (t_turned n) (for_own c) (way_for c) + over (t_touched n) (t_turned n) (not_own k) (way_not k))
  else ladd (Some (over (t_touched n) (t_turned n) (for_own c) (way_for c) + cap (t_altered n) (not_own k))) (t_new n).

(** Theorem 9, the test. *)
Definition own_test (y0 : vote) (c : counted) (n : touches) : bool :=
  made c && forallb (fun k => negb (lt_lim (lead k) (gain_in y0 n c k))) (rivals c).

(** x changes of any kind; of edges and nodes added and deleted alone if not [altering]. *)
Definition any_gain_in (y0 : vote) (altering : bool) (x : Z) (c : counted) (k : rival) : Z :=
  if beq y0 (Some (label c)) then 2 * x
  else if beq y0 (Some (its_class k)) then Z.min x (for_own c) + Z.min x (not_own k)
  else x + Z.min x (if altering then for_own c else way_for c).

(** Theorem 9, the test of the radii. *)
Definition any_test (y0 : vote) (altering : bool) (c : counted) (x : Z) : bool :=
  made c && forallb (fun k => any_gain_in y0 altering x c k <=? lead k) (rivals c).

(** Whether a target holds against a budget. *)
Definition holds (s : settings) (c : counted) (q : query) : bool :=
  let B := clip_budget (fst q) in
  if own_groups s then match touches_of s c B (snd q) with Some n => own_test (empty_casts s) c n | None => false end
  else match reach_of s c B (snd q) with Some n => test c n | None => false end.

(** x is the largest number that passes, -1 if not even 0 does; no more is stated than [most]. *)
Definition is_largest (passes : Z -> bool) (most x : Z) : bool :=
  if x <? 0 then (x =? -1) && negb (passes 0)
  else (x <=? most) && passes x && ((x =? most) || negb (passes (x + 1))).

(** Theorem 1 (Theorem 9 with own groups): the stated radius is the largest that is proved. *)
Definition right_radius (s : settings) (c : counted) (x : Z) : bool :=
  if own_groups s then is_largest (any_test (empty_casts s) true c) (num_groups s) x
  else is_largest (fun x => test c (same (Some x))) (num_groups s) x.

(** Any deletions, any features of other nodes, any values of edges, and this many new neighbours (None: any number). *)
Definition anything_and (s : settings) (new : lim) : query :=
  (Budget new None None (Some 0) (Some 0) (if keeps_ids s then None else Some 0) None None, false).

(** Section 4, Only new neighbours count: the stated number is the largest that is proved. *)
Definition right_new_neighbours (s : settings) (c : counted) (x : lim) : bool :=
  if of_graphs s then match x with Some n => n =? -1 | None => false end
  else match x with
       | None => holds s c (anything_and s None)
       | Some n => is_largest (fun n => holds s c (anything_and s (Some n))) (n + 1) n
       end.

(** The least number that does not pass, if [low] passes. *)
Fixpoint least (fuel : nat) (passes : Z -> bool) (low high : Z) : Z :=
  match fuel with
  | O => low + 1
  | S fuel' => if high <=? low + 1 then low + 1
               else let mid := Z.div2 (low + high) in
                    if passes mid then least fuel' passes mid high else least fuel' passes low mid
  end.

(** Halvings, more than a number of the machine has bits. *)
Definition steps : nat := 64%nat.

(** The least number that does not pass; 0 if 0 does not. *)
Definition least_failing (passes : Z -> bool) (high : Z) : Z :=
  if passes 0 then least steps passes 0 high else 0.

(** With altered targets there is one altered node more, and the other targets are spared. *)
Definition sparing (q : query) : budget :=
  let B := fst q in
  if snd q then Budget (add_edges B) (delete_edges B) (change_edges B) (inject_nodes B) (edges_per_injected B)
                       (delete_nodes B) (ladd (change_features B) (Some 1)) (edges_in_all B)
  else B.

(** 2^40, where the search for the fewest changes ends. *)
Definition large : Z := 1099511627776.

(** The fewest new neighbours with which a target breaks, the whole budget spent on it; None if nothing breaks it. *)
Definition need (s : settings) (c : counted) (q : query) : lim :=
  let B := clip_budget (sparing q) in
  if own_groups s then
    match touches_of s c B false with
    | None => Some 0
    | Some n =>
        if own_test (empty_casts s) c n then None
        else Some (least_failing (fun x => own_test (empty_casts s) c
               (Touches (lmin (t_new n) (Some x)) (t_touched n) (t_altered n) (lmin (t_turned n) (Some x)))) large)
    end
  else match reach_of s c B false with
       | None => Some 0
       | Some n =>
           if test c n then None
           else match rule s with
                | ByEdge | ByNode | ByGatedNode =>
                    Some (least_failing (fun x => test c (Reach (all n) (lmin (beyond n) (Some x)) (lmin (unlisted n) (Some x))))
                            (num_groups s + 1))
                | _ => Some 0
                end
       end.

(** The fewest new, removed and altered votes with which it breaks, where every neighbour has a group of its own. *)
Definition twos_in (y0 : vote) (n : touches) (c : counted) (k : rival) : lim :=
  let ways := cap (t_turned n) (way_for c) in
  let kept := if beq y0 (Some (its_class k)) then t_touched n else t_altered n in
  let twos := Some (cap (ladd kept (Some ways)) (for_own c)) in
  if beq y0 (Some (label c)) then ladd twos (t_new n) else twos.

(** Theorem 9, many targets: x changes at this target do not break it. *)
Definition touch_test (y0 : vote) (n : touches) (c : counted) (x : Z) : bool :=
  made c && forallb (fun k => negb (lt_lim (lead k) (gain_in y0 n c k)) || (x + cap (twos_in y0 n c k) x <=? lead k)) (rivals c).

(** Theorem 9, many targets: the fewest changes with which a target breaks. *)
Definition touch_need (s : settings) (c : counted) (q : query) : lim :=
  match touches_of s c (clip_budget (sparing q)) false with
  | None => Some 0
  | Some n => if own_test (empty_casts s) c n then None
              else Some (least_failing (touch_test (empty_casts s) n c) large)
  end.

(** Of a list of needs, how many are below p, and their sum; and how many are finite. *)
Fixpoint below (p : Z) (l : list lim) (number total : Z) : Z * Z :=
  match l with
  | [] => (number, total)
  | Some x :: l' => if x <? p then below p l' (number + 1) (total + x) else below p l' number total
  | None :: l' => below p l' number total
  end.

(** How many targets can break at all. *)
Fixpoint finite (l : list lim) (n : Z) : Z :=
  match l with [] => n | Some _ :: l' => finite l' (n + 1) | None :: l' => finite l' n end.

(** At most this many targets have needs that fit into [left]. Right for whatever p; sharp if p is the need of the first
    target that does not fit. *)
Definition affordable (p : Z) (left : lim) (needs : list lim) : Z :=
  match left with
  | Some m => if 0 <? p then
                let '(number, total) := below p needs 0 0 in Z.min (finite needs 0) (number + (m - total) / p)
              else finite needs 0
  | None => finite needs 0
  end.

(** N(k) of Theorem 9: the sum of the k largest numbers of targets next to one node. *)
Fixpoint sum_first (k : lim) (l : list Z) (n : Z) : Z :=
  match l with
  | [] => n
  | x :: l' => match k with
               | None => sum_first None l' (n + x)
               | Some j => if j <=? 0 then n else sum_first (Some (j - 1)) l' (n + x)
               end
  end.

(** What the broken targets' needs must fit into: 2 e+ + A tau, and 2 (e+ + e- + e~) + A tau + N(d + r). *)
Definition left_for_new (q : query) : lim :=
  let B := clip_budget (sparing q) in ladd (lmul (Some 2) (add_edges B)) (injected_edges B).

(** Theorem 9, many targets: the second sum. *)
Definition left_for_touches (hubs : list Z) (q : query) : lim :=
  let B := clip_budget (sparing q) in
  ladd (lmul (Some 2) (touched_edges B)) (ladd (injected_edges B) (Some (sum_first (touched_nodes B) hubs 0))).

(** At most this many targets break in one attacked graph. [targets]: how many there are; [fails]: how many do not hold one
    by one; [p], [p2]: as in [affordable]; [touch_needs]: where every neighbour has a group of its own. *)
Definition broken_at_most (s : settings) (q : query) (targets fails : Z) (needs : list lim) (p : Z)
    (hubs : list Z) (touch_needs : list lim) (p2 : Z) : Z :=
  if of_graphs s then Z.min 1 fails
  else
    let B := clip_budget (fst q) in
    let bought := affordable p (left_for_new q) needs in
    let bought := if own_groups s && negb (snd q)
                  then Z.min bought (affordable p2 (left_for_touches hubs q) touch_needs) else bought in
    let themselves := if snd q then ladd (delete_nodes B) (lmin (ladd (change_features B) (Some 1)) (Some fails)) else Some 0 in
    cap (ladd (Some bought) themselves) targets.
