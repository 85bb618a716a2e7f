(* What StackedChecker.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The checker for stacked votes (docs/proofs.md, Theorems 10 and 11): the program that is extracted. StackedProofs.v shows what its answers
    establish. *)
From Coq Require Import List Arith ZArith Bool Mergesort Orders.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker.
Import ListNotations.
Open Scope Z_scope.

(** Steps of one vote; and more new neighbours than [most_new] count as any number. *)
Definition vote_steps : Z := 65536.

(** More new neighbours than this count as any number. *)
Definition most_new : Z := 65536.

(** No larger radius is stated. *)
Definition largest_stated : Z := 9999.

(** Settings of a file. [x_second]: factor of the neighbours' neighbours in steps, 0 with one level; [x_used]: not all gates are 0. *)
Record stacked_settings := StackedSettings {
  x_classes : nat; x_computed : bool; x_by_edge : bool; x_ids : bool; x_pseudo : Z; x_pseudo_votes : list Z; x_slack : Z;
  x_second : Z; x_used : bool
}.

(** One target: prior and gate of each class, and the vote of each neighbour. *)
Record stacked_target := StackedTarget { x_prior : list Z; x_gate : list Z; x_rows : list (list Z) }.

(** The number of class k. *)
Definition at_class (k : nat) (l : list Z) : Z := nth k l 0.

(** The sum of a list. *)
Fixpoint add_up (l : list Z) (n : Z) : Z := match l with [] => n | x :: l' => add_up l' (n + x) end.

(** The votes of all neighbours for class k. *)
Definition column (k : nat) (rows : list (list Z)) : list Z := map (at_class k) rows.

(** No number is negative. *)
Definition none_negative (l : list Z) : bool := forallb (fun x => 0 <=? x) l.

(** With two levels: the factor is at most one vote less 16 steps, and few steps are misread. *)
Definition two_levels_fit (s : stacked_settings) : bool := (0 <=? x_second s) && (x_second s <=? vote_steps - 16) && (x_slack s <=? 3).

(** Votes are no less than nothing and no more than one vote; gates and the pseudo-count are not negative, and gates of a model that reads edges
    are all alike. With two levels all gates are one vote, or all are nothing, and there is no pseudo-count. *)
Definition sensible_file (s : stacked_settings) (t : stacked_target) : bool :=
  forallb (fun row => none_negative row && (add_up row 0 <=? vote_steps)) (x_rows t)
  && none_negative (x_gate t) && none_negative (x_pseudo_votes s) && (0 <=? x_slack s) && (0 <=? x_pseudo s)
  && (length (x_gate t) =? x_classes s)%nat
  && (negb (x_by_edge s) || forallb (fun g => g =? at_class 0 (x_gate t)) (x_gate t))
  && ((x_second s =? 0) || ((x_pseudo s =? 0) && negb (x_computed s)
      && (forallb (fun g => g =? (if x_used s then vote_steps else 0)) (x_gate t) && two_levels_fit s))).

(** Theorem 10: the divisor D with d neighbours; one vote in a sum. *)
Definition divided (s : stacked_settings) (d : Z) : Z := if x_pseudo s =? 0 then vote_steps else x_pseudo s + vote_steps * d.

(** Theorem 10: the pseudo-count's votes for class k, 0 in a sum. *)
Definition pseudo_at (s : stacked_settings) (k : nat) : Z := if x_pseudo s =? 0 then 0 else at_class k (x_pseudo_votes s).

(** Theorem 10: score_k times D. *)
Definition stacked_score (s : stacked_settings) (t : stacked_target) (d : Z) (k : nat) : Z :=
  at_class k (x_prior t) * divided s d + at_class k (x_gate t) * (pseudo_at s k + add_up (column k (x_rows t)) 0).

(** The label: the best score, the smaller class on a tie. *)
Definition stacked_best (s : stacked_settings) (t : stacked_target) : nat :=
  let score := stacked_score s t (size (x_rows t) 0) in
  match x_classes s with O => O | S m => best_from score 1 m 0 (score O) end.

Module Descending <: TotalLeBool.

  (** Whole numbers, *)
  Definition t := Z.
End Descending.
Module DescendingSort := Sort Descending.

(** What counts against a rival: [y_ahead] and [y_given] are its distance in the prior and in the votes, [y_most] the most that one neighbour gives it,
    [y_sorted] what each neighbour gives the label over it, largest first, [y_tie] 1 if it wins a tie, [y_votes] the votes of the neighbours for it. *)
Record stacked_rival := StackedRival {
  y_ahead : Z; y_given : Z; y_most : Z; y_sorted : list Z; y_tie : Z; y_votes : list Z
}.

(** A target, counted: its label, its degree, the votes for the label, and the rivals. *)
Record stacked_counted := StackedCounted {
  y_made : bool; y_label : nat; y_degree : Z; y_own : list Z; y_rivals : list stacked_rival
}.

(** x, or 0. *)
Definition when (b : bool) (x : Z) : Z := if b then x else 0.

(** Theorem 10: delta_j = g_a b_a(j) - g_k b_k(j) of each neighbour. *)
Fixpoint gives (g : Z) (own : list Z) (g' : Z) (theirs : list Z) : list Z :=
  match own, theirs with x :: own', y :: theirs' => g * x - g' * y :: gives g own' g' theirs' | _, _ => [] end.

(** What counts for class a against k: all numbers of Theorem 10 that no budget changes. [own]: the votes of the d neighbours for a. *)
Definition against (s : stacked_settings) (t : stacked_target) (d : Z) (own : list Z) (a k : nat) : stacked_rival :=
  let ga := at_class a (x_gate t) in
  let gk := at_class k (x_gate t) in
  let sl := x_slack s in
  let theirs := column k (x_rows t) in
  let delta := gives ga own gk theirs in
  let each := (ga + gk) * sl + when (x_computed s) (2 * (vote_steps * sl + sl * sl)) in
  let extra := if x_pseudo s =? 0 then 0
               else ga * at_class a (x_pseudo_votes s) - gk * at_class k (x_pseudo_votes s)
                    - when (x_computed s) (2 * sl * add_up (x_pseudo_votes s) 0) in
  StackedRival (at_class a (x_prior t) - at_class k (x_prior t) - 2 * sl) (extra + add_up delta 0 - d * each)
    (gk * vote_steps + when (x_computed s) (sl * vote_steps)) (DescendingSort.sort delta) (tie k a) theirs.

(** The label, and what counts for it against every other class. *)
Definition count_stacked (s : stacked_settings) (t : stacked_target) : stacked_counted :=
  let d := size (x_rows t) 0 in
  let a := stacked_best s t in
  let own := column a (x_rows t) in
  StackedCounted (sensible_file s t) a d own (map (against s t d own a) (filter (fun k => negb (Nat.eqb k a)) (seq 0 (x_classes s)))).

(** Theorem 10: the lead, times D', with l lost and m altered neighbours; taken is the sum of the largest delta. *)
Definition stacked_lead (s : stacked_settings) (d : Z) (k : stacked_rival) (l m grows pays taken : Z) : Z :=
  y_ahead k * divided s (d - l + grows) + y_given k - taken - (pays + m) * y_most k.

(** The lead is linear in the numbers of new and of turned neighbours, so that none, all new, and all turned have to be looked at. *)
Definition bears (s : stacked_settings) (d : Z) (k : stacked_rival) (new : lim) (l m taken : Z) : bool :=
  let ok grows pays := y_tie k <=? stacked_lead s d k l m grows pays taken in
  let sum := x_pseudo s =? 0 in
  match match new with Some n => if n <=? most_new then new else None | None => None end with
  | Some n => if sum then ok 0 n else ok 0 0 && ok n n && (negb (x_by_edge s) || ok 0 n)
  | None => ok 0 0 && (if sum then y_most k <=? 0
                       else (y_most k <=? y_ahead k * vote_steps) && (negb (x_by_edge s) || (y_most k <=? 0)))
  end.

(** The first n of a list: how many, their sum, and the rest. *)
Fixpoint take (n : lim) (l : list Z) (m taken : Z) : Z * Z * list Z :=
  match l with
  | [] => (m, taken, [])
  | x :: l' => match n with
               | Some n' => if n' <=? 0 then (m, taken, l) else take (Some (n' - 1)) l' (m + 1) (taken + x)
               | None => take None l' (m + 1) (taken + x)
               end
  end.

(** Every number l of lost neighbours, up to [lost] and as long as there is one in [fuel]. *)
Fixpoint each_lost (ok : Z -> Z -> Z -> bool) (fuel : list Z) (lost : lim) (l m taken : Z) (rest : list Z) : bool :=
  ok l m taken
  && match fuel with
     | [] => true
     | _ :: fuel' =>
         if match lost with Some n => n <=? l | None => false end then true
         else match rest with
              | x :: rest' => each_lost ok fuel' lost (l + 1) m (taken + x) rest'
              | [] => each_lost ok fuel' lost (l + 1) (m - 1) taken []
              end
     end.

(** With [together], each lost neighbour leaves one new one less. *)
Definition new_at (together : bool) (new : lim) (l : Z) : lim :=
  if together then match new with Some n => Some (Z.max 0 (n - l)) | None => None end else new.

(** Theorem 10: the lead over one rival stays, with so many new, lost and altered neighbours. *)
Definition lead_stays (s : stacked_settings) (d : Z) (together : bool) (new lost alt : lim) (k : stacked_rival) : bool :=
  let '(m, taken, rest) := take alt (y_sorted k) 0 0 in
  each_lost (fun l m taken => bears s d k (new_at together new l) l m taken) (y_sorted k) lost 0 m taken rest.

(** Theorem 10, the test: every lead stays. *)
Definition stacked_test (s : stacked_settings) (c : stacked_counted) (together : bool) (new lost alt : lim) : bool :=
  y_made c && forallb (lead_stays s (y_degree c) together new lost alt) (y_rivals c).

(** x changes of any kind. *)
Fixpoint best_part (n : Z) (l : list Z) (taken : Z) : Z :=
  match l with
  | [] => taken
  | x :: l' => if n <=? 0 then taken else if x <=? 0 then taken else best_part (n - 1) l' (taken + x)
  end.

(** Theorem 10, the radius. What one neighbour more adds to the lead by the prior, *)
Definition by_divisor (s : stacked_settings) (k : stacked_rival) : Z := if x_pseudo s =? 0 then 0 else y_ahead k * vote_steps.

(** the most that a new one takes from the lead, *)
Definition cost_of_new (s : stacked_settings) (k : stacked_rival) : Z :=
  Z.max (y_most k - by_divisor s k) (if x_by_edge s then y_most k else 0).

(** and what a lost or an altered one takes beside its delta. *)
Definition cost_of_touched (s : stacked_settings) (k : stacked_rival) : Z := Z.max (y_most k) (by_divisor s k).

(** Every lead stays after x changes of any kind. *)
Definition any_stacked_test (s : stacked_settings) (c : stacked_counted) (x : Z) : bool :=
  y_made c && forallb (fun k =>
    let new := cost_of_new s k in
    let surplus := map (Z.add (cost_of_touched s k - new)) (y_sorted k) in
    y_tie k <=? y_ahead k * divided s (y_degree c) + y_given k - x * new - best_part x surplus 0) (y_rivals c).

(** exp(w n / vote_steps), rounded up to whole numbers of 1 / [grown_unit]; None if it is above [largest_grown], and then it counts as infinite.
    exp(y) is at most 1 / (1 - y); this is taken for y = w / 2^26 and squared ten times, in units of 1 / [fine_unit]. Then the power n. *)
Definition grown_unit : Z := 65536.

(** Units in which squares are taken. *)
Definition fine_unit : Z := 268435456.

(** Factors above this count as infinite. *)
Definition largest_grown : Z := 536870912.

(** x / y, rounded up. *)
Definition up_div (x y : Z) : Z := (x + y - 1) / y.

(** x squared n times, rounded up each time. *)
Fixpoint fine_squares (n : nat) (x : Z) : Z := match n with O => x | S n' => fine_squares n' (up_div (x * x) fine_unit) end.

(** Theorem 11: e^w, rounded up. *)
Definition grown_once (w : Z) : Z := up_div (fine_squares 10 (up_div (fine_unit * 67108864) (67108864 - w))) 4096.

(** A product of two factors, rounded up. *)
Definition grown_mul (x y : lim) : lim :=
  match x, y with
  | Some a, Some b => let c := up_div (a * b) grown_unit in if largest_grown <? c then None else Some c
  | _, _ => None
  end.

(** g times the power n of a factor, rounded up. *)
Fixpoint grown_power (fuel : nat) (base : lim) (n : Z) (g : lim) : lim :=
  if n <=? 0 then g
  else match fuel with
       | O => None
       | S fuel' => let half := n / 2 in grown_power fuel' (grown_mul base base) half (if n - 2 * half =? 0 then g else grown_mul g base)
       end.

(** Theorem 11: e^(w n), rounded up. *)
Definition grown (w n : Z) : lim := grown_power 40 (Some (grown_once w)) n (Some grown_unit).

(** The vote for the label after its odds were divided by g, and that for a rival after its odds were multiplied, in steps; each may have been read
    [sl] steps higher or lower, and lies less than a step above what is read. *)
Definition lowest (g : lim) (sl own : Z) : Z :=
  let x := Z.max 0 (own - sl) in
  match g with None => 0 | Some g => Z.min x ((vote_steps * (x * grown_unit)) / (x * grown_unit + g * (vote_steps - x))) end.

(** The same for a rival: no more than this is read. *)
Definition highest (g : lim) (sl theirs : Z) : Z :=
  let x := Z.min vote_steps (theirs + sl + 1) in
  match g with None => vote_steps | Some g => Z.max x ((vote_steps * (g * x)) / (g * x + grown_unit * (vote_steps - x))) end.

(** loss_j(n), of all neighbours *)
Fixpoint pulled (g : lim) (sl : Z) (own theirs : list Z) (n : Z) : Z :=
  match own, theirs with
  | x :: own', y :: theirs' => pulled g sl own' theirs' (n + (x - y - lowest g sl x + highest g sl y))
  | _, _ => n
  end.

(** More than the program counts: as good as any number. *)
Definition above (n : lim) : bool := match n with Some x => most_new <? x | None => true end.

(** The number, if it is finite. *)
Definition finite_or_0 (n : lim) : Z := match n with Some x => x | None => 0 end.

(** Theorem 11: how far the odds in a vote grow with so many nodes. *)
Definition grown_by (s : stacked_settings) (nodes : lim) : lim :=
  let n := finite_or_0 nodes in if n <=? 0 then None else grown (x_second s) n.

(** Theorem 11: the lead over one rival stays, with so many edges and nodes that come or go; [g] as in [grown_by]. *)
Definition second_lead_stays (s : stacked_settings) (edges nodes g : lim) (own : list Z) (k : stacked_rival) : bool :=
  let e := finite_or_0 edges in
  let n := finite_or_0 nodes in
  let lead := y_ahead k * vote_steps + y_given k in
  if x_used s then
    negb (above edges || above nodes)
    && (y_tie k <=? lead - (e + n) * (vote_steps * vote_steps)
                    - (if n <=? 0 then 0 else vote_steps * pulled g (x_slack s) own (y_votes k) 0))
  else y_tie k <=? lead.

(** Theorem 11, the test: every lead stays. *)
Definition second_test (s : stacked_settings) (c : stacked_counted) (edges nodes : lim) : bool :=
  let g := grown_by s nodes in
  y_made c && forallb (second_lead_stays s edges nodes g (y_own c)) (y_rivals c).

(** new = A' + e+, lost = e- + d, altered = r, and e~ if votes read edges *)
Definition new_in (B : budget) : lim := ladd (joined_nodes B) (add_edges B).

(** Theorem 10: lost neighbours. *)
Definition lost_in (B : budget) : lim := ladd (delete_edges B) (delete_nodes B).

(** Theorem 10: altered neighbours. *)
Definition altered_in (s : stacked_settings) (B : budget) : lim := ladd (change_features B) (if x_by_edge s then change_edges B else Some 0).

(** Theorem 11: edges that come or go, *)
Definition edges_in (B : budget) : lim := ladd (add_edges B) (delete_edges B).

(** and nodes, an altered one twice. *)
Definition nodes_in (B : budget) : lim := ladd (joined_nodes B) (ladd (delete_nodes B) (lmul (Some 2) (change_features B))).

(** Theorems 10 and 11: the target holds against a budget. *)
Definition stacked_holds (s : stacked_settings) (c : stacked_counted) (q : query) : bool :=
  let B := clip_budget (fst q) in
  if snd q then false
  else if x_second s =? 0 then stacked_test s c false (new_in B) (lost_in B) (altered_in s B)
  else second_test s c (edges_in B) (nodes_in B).

(** x passes, or nothing is stated; no more is stated than [most]. *)
Definition is_proved (passes : Z -> bool) (most x : Z) : bool := if x <? 0 then x =? -1 else (x <=? most) && passes x.

(** Theorems 10 and 11: the stated radius is the largest that is proved, against changes of any kind. In a mean it may be a smaller one. *)
Definition right_stacked_radius (s : stacked_settings) (c : stacked_counted) (x : Z) : bool :=
  let passes x := if x_second s =? 0 then any_stacked_test s c x else second_test s c (Some 0) (Some (2 * x)) in
  if x_pseudo s =? 0 then is_largest passes largest_stated x else is_proved passes largest_stated x.

(** The same against edges and nodes that come and go. *)
Definition right_stacked_structure (s : stacked_settings) (c : stacked_counted) (x : Z) : bool :=
  is_largest (fun x => if x_second s =? 0 then stacked_test s c true (Some x) (Some x) (Some 0) else second_test s c (Some 0) (Some x)) largest_stated x.

(** A broken target was touched as often as its radius says, and once more. [radius]: against any changes; [structure]: against edges and nodes that
    come and go. Changed edges count only if votes read them. *)
Definition without_changes (s : stacked_settings) (q : query) : query :=
  let B := fst q in
  (Budget (add_edges B) (delete_edges B) (if x_by_edge s then change_edges B else Some 0) (inject_nodes B) (edges_per_injected B) (delete_nodes B)
     (change_features B) (edges_in_all B), snd q).

(** Theorem 10, many targets: the fewest changes with which a target breaks. *)
Definition stacked_need (s : stacked_settings) (c : stacked_counted) (q : query) (radius structure : Z) : lim :=
  if stacked_holds s c q then None
  else let B := clip_budget (fst (without_changes s q)) in
       Some ((if is_zero (change_features B) && is_zero (change_edges B) then structure else radius) + 1).

(** Theorem 10, many targets: at most this many break in one attacked graph. *)
Definition stacked_broken (s : stacked_settings) (q : query) (fails : Z) (needs : list lim) (p : Z) (hubs : list Z) : Z :=
  if (x_second s =? 0) && negb (snd q) then affordable p (left_for_touches hubs (without_changes s q)) needs else fails.
