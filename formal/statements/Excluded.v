(* What Excluded.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Who cannot get which label (docs/proofs.md, Theorem 12): the program that is extracted. ExcludedProofs.v shows what its answers establish. A class is
    left out only where a proof says that it cannot win; the label itself is never left out, and nothing is where a budget is not covered. *)
From Coq Require Import List Arith ZArith Bool.
From Agnncert Require Import Vote Graph PerNeighbourVote Checker StackedChecker.
Import ListNotations.
Open Scope Z_scope.

(** One class: its votes that are sure, s(j); its stable votes in each tier; those of them whose pair has one direction only. *)
Record standing_of := Standing { z_class : nat; z_sure : Z; z_0 : Z; z_1 : Z; z_2 : Z; z_way : Z }.

(** All classes of a target; how many votes are stable in each tier, and of one-way pairs, abstentions included; u, the votes that any class may claim. *)
Record contest := Contest { z_classes : list standing_of; z_all_0 : Z; z_all_1 : Z; z_all_2 : Z; z_ways : Z; z_unsure : Z }.

(** All numbers of Theorem 12 (a) and (b) that no budget changes. *)
Definition count_classes (s : settings) (t : target) : contest :=
  let l := listed_votes t in
  let r0 := choices (fun e => is_stable e && teq (its_tier e) Reached) l [] in
  let r1 := choices (fun e => is_stable e && teq (its_tier e) Unreached) l [] in
  let ways := choices (fun e => is_stable e && has_one_way e) l [] in
  let s0 := size r0 0 in let s1 := size r1 0 in
  let s2 := if is_stable (default_vote t) then num_groups s - size l 0 else 0 in
  let class k :=
    let k0 := count k r0 0 in let k1 := count k r1 0 in let k2 := default_for k t s2 in
    Standing k (prior_certain s t k + k0 + k1 + k2) k0 k1 k2 (count k ways 0) in
  Contest (map class (seq 0 (num_classes s))) s0 s1 s2 (size ways 0)
    (num_groups s - s0 - s1 - s2 + prior_doubt s t).

(** A sum over the classes. *)
Fixpoint total {A} (f : A -> Z) (l : list A) (n : Z) : Z := match l with [] => n | x :: l' => total f l' (n + f x) end.

(** x is at most n. *)
Definition fits_in (x : Z) (n : lim) : bool := match n with Some m => x <=? m | None => true end.

(** How far j is ahead of k, all that is unsure counted for k. *)
Definition ahead_of (v : contest) (k j : standing_of) : Z := z_sure j + tie (z_class j) (z_class k) - z_sure k - z_unsure v.

(** need(j): votes that j must lose for k to win, if k wins [won]; 0 if that is infinite. *)
Definition short_of (v : contest) (k : standing_of) (won : lim) (j : standing_of) : Z :=
  if Nat.eqb (z_class j) (z_class k) then 0 else match won with Some m => Z.max 0 (ahead_of v k j - m) | None => 0 end.

(** Theorem 12 (a): whether k can be made to win. *)
Definition can_win (n : reach) (v : contest) (k : standing_of) : bool :=
  let won := limit3 n (z_all_0 v - z_0 k) (z_all_1 v - z_1 k) (z_all_2 v - z_2 k) in
  let needs := map (fun j => (j, short_of v k (Some won) j)) (z_classes v) in
  forallb (fun p => snd p <=? z_0 (fst p) + z_1 (fst p) + z_2 (fst p)) needs
  && fits_in (total snd needs 0) (all n)
  && fits_in (total (fun p => Z.max 0 (snd p - z_0 (fst p))) needs 0) (beyond n)
  && fits_in (total (fun p => Z.max 0 (snd p - z_0 (fst p) - z_1 (fst p))) needs 0) (unlisted n).

(** Theorem 12 (b): whether k can be made to win, where every neighbour has a group of its own. *)
Definition own_can_win (y0 : vote) (n : touches) (v : contest) (k : standing_of) : bool :=
  let others := z_all_0 v - z_0 k + (z_all_1 v - z_1 k) in
  let altered := cap (t_altered n) others in
  let won := if beq y0 (Some (z_class k)) then Some (cap (ladd (t_touched n) (Some (cap (t_turned n) (z_ways v - z_way k)))) others)
             else ladd (t_new n) (Some altered) in
  let needs := map (fun j => (j, if beq y0 (Some (z_class j)) then 0 else short_of v k won j)) (z_classes v) in
  let lose := total snd needs 0 in
  let turn := total (fun p => if beq y0 (Some (z_class (fst p))) then 0 else Z.min (z_way (fst p)) (snd p)) needs 0 in
  forallb (fun p => snd p <=? z_0 (fst p) + z_1 (fst p)) needs
  && fits_in (lose - cap (t_turned n) turn) (t_touched n)
  && match t_new n with
     | None => true
     | Some new => forallb (fun j => negb (beq y0 (Some (z_class j))) || Nat.eqb (z_class j) (z_class k)
                     || (let z := ahead_of v k j - (new + altered) - new in (z <=? z_0 j + z_1 j) && (z + lose <=? altered))) (z_classes v)
     end.

(** For each class whether the target cannot get it, whatever an attack within the budget does. *)
Definition cannot_get (s : settings) (c : counted) (v : contest) (q : query) : list bool :=
  let B := clip_budget (fst q) in
  let but_label (wins : standing_of -> bool) :=
    let kept := holds s c q in
    map (fun k => made c && negb (Nat.eqb (z_class k) (label c)) && (kept || negb (wins k))) (z_classes v) in
  if own_groups s then match touches_of s c B (snd q) with
                       | Some n => but_label (own_can_win (empty_casts s) n v)
                       | None => map (fun _ => false) (z_classes v)
                       end
  else match reach_of s c B (snd q) with
       | Some n => but_label (can_win n v)
       | None => map (fun _ => false) (z_classes v)
       end.

(** For each class k, what counts against it for every other class j: the votes of the neighbours for j, and the numbers of Theorem 10. *)
Definition count_duels (s : stacked_settings) (t : stacked_target) : list (nat * list (list Z * stacked_rival)) :=
  let d := size (x_rows t) 0 in
  let columns := map (fun j => (j, column j (x_rows t))) (seq 0 (x_classes s)) in
  let duel k (p : nat * list Z) := (snd p, against s t d (snd p) (fst p) k) in
  map (fun k => (k, map (duel k) (filter (fun p => negb (Nat.eqb (fst p) k)) columns))) (seq 0 (x_classes s)).

(** Theorem 12 (c): for each class whether the target cannot get it, since some other class stays ahead of it. *)
Definition stacked_cannot_get (s : stacked_settings) (c : stacked_counted) (duels : list (nat * list (list Z * stacked_rival))) (q : query) : list bool :=
  let B := clip_budget (fst q) in
  let but_label (behind : list Z * stacked_rival -> bool) :=
    map (fun p => y_made c && negb (snd q) && negb (Nat.eqb (fst p) (y_label c)) && existsb behind (snd p)) duels in
  if x_second s =? 0 then
    let new := new_in B in let lost := lost_in B in let altered := altered_in s B in
    but_label (fun p => lead_stays s (y_degree c) false new lost altered (snd p))
  else
    let edges := edges_in B in let nodes := nodes_in B in let g := grown_by s nodes in
    but_label (fun p => second_lead_stays s edges nodes g (fst p) (snd p)).
