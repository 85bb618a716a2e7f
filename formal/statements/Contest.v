(* What Contest.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Contests (docs/contest.md): what a file says about the scores of a decision, what an attacker may do to them, and what the checker
    computes from prices. No proofs are in this file; ContestProofs.v has them. *)
From Coq Require Import List Arith ZArith Bool.
From Agnncert Require Import Vote Graph Checker.
Import ListNotations.
Open Scope Z_scope.

(** What a move leaves or brings: what it adds for certain, what it may add on top to each class, and by how much rounding may move it. *)
Record effect := Effect { e_adds : list Z; e_cap : list Z; e_doubt : Z }.

(** [u_count] units that are alike; after phase [u_until] each of them may have become what its pool says. *)
Record unit_kind := Units { u_count : Z; u_adds : list Z; u_doubt : Z; u_until : lim }.

(** Units that are hit by the same moves. *)
Record pool := Pool { p_hit_by : list (nat * effect); p_units : list unit_kind; p_free : option effect }.

(** One decision. *)
Record decision := Decision { d_label : nat; d_scores : list Z; d_fixed : list Z; d_pools : list pool; d_new : list (nat * effect); d_doubt : list Z }.

(** What a budget allows: of the moves in each list so many in all (None: any number), and which phase it reaches (None: beyond all). *)
Record allowance := Allowance { limits : list (list nat * lim); phase : lim }.

(** Whether all scores are whole numbers (no doubt), and by how much a label has to lead. *)
Record rules := Rules { whole : bool; least_lead : Z }.

(** The number of a class in a vector. *)
Definition at_class (v : list Z) (c : nat) : Z := nth c v 0.

(** Scores are counted in parts: [D] parts are 1. Without doubt D is 1. A value of every class that an effect may have. *)
Definition of_effect (D : Z) (e : effect) (x : nat -> Z) : Prop :=
  exists extra off, (forall c, 0 <= extra c <= D * at_class (e_cap e) c) /\ (forall c, - (D * e_doubt e) <= off c <= D * e_doubt e) /\
    forall c, x c = D * at_class (e_adds e) c + extra c + off c.

(** A value of a unit that stands. *)
Definition of_unit (D : Z) (u : unit_kind) (x : nat -> Z) : Prop :=
  exists off, (forall c, - (D * u_doubt u) <= off c <= D * u_doubt u) /\ forall c, x c = D * at_class (u_adds u) c + off c.

(** The phase of a unit is over. *)
Definition is_over (p : lim) (u : unit_kind) : bool :=
  match u_until u, p with Some n, Some q => n <? q | Some _, None => true | None, _ => false end.

(** What becomes of one unit: a move that was spent on it, if any, and its value afterwards. *)
Definition fate (D : Z) (q : lim) (p : pool) (u : unit_kind) (spent : option nat) (x : nat -> Z) : Prop :=
  match spent with
  | Some m => exists e, In (m, e) (p_hit_by p) /\ of_effect D e x
  | None => of_unit D u x \/ (is_over q u = true /\ exists e, p_free p = Some e /\ of_effect D e x)
  end.

(** A move that was spent, if any, and what stands there. *)
Definition done := (option nat * (nat -> Z))%type.

(** What becomes of units that are alike. *)
Definition fates (D : Z) (q : lim) (p : pool) (u : unit_kind) (l : list done) : Prop :=
  Z.of_nat (length l) = u_count u /\ Forall (fun d => fate D q p u (fst d) (snd d)) l.

(** All units of a decision, with their pools. *)
Definition rows (t : decision) : list (pool * unit_kind) := flat_map (fun p => map (fun u => (p, u)) (p_units p)) (d_pools t).

(** What is new. *)
Definition brought (D : Z) (t : decision) (d : done) : Prop :=
  match fst d with Some m => exists e, In (m, e) (d_new t) /\ of_effect D e (snd d) | None => False end.

(** How often moves of a list were spent. *)
Definition is_spent (moves : list nat) (d : done) : bool :=
  match fst d with Some m => existsb (Nat.eqb m) moves | None => false end.

(** How many of them were spent. *)
Definition times (moves : list nat) (l : list done) : Z := Z.of_nat (length (filter (is_spent moves) l)).

(** The value of a class, over all that stands. *)
Definition sum_at (l : list done) (c : nat) : Z := fold_right (fun d n => snd d c + n) 0 l.

(** A play: what becomes of the units of each row, what is new, and by how much rounding moves the scores. All limits are respected. *)
Record play (D : Z) (t : decision) (w : allowance) (hit : list (list done)) (new : list done) (off : nat -> Z) : Prop := {
  y_rows : Forall2 (fun r l => fates D (phase w) (fst r) (snd r) l) (rows t) hit;
  y_new : Forall (brought D t) new;
  y_off : forall c, - (D * at_class (d_doubt t) c) <= off c <= D * at_class (d_doubt t) c;
  y_limits : forall moves n, In (moves, n) (limits w) -> within (times moves (concat hit ++ new)) n }.

(** The score of a class after a play. *)
Definition score (D : Z) (t : decision) (hit : list (list done)) (new : list done) (off : nat -> Z) (c : nat) : Z :=
  D * at_class (d_fixed t) c + off c + sum_at (concat hit ++ new) c.

(** The label is ahead of class k by as much as it has to be: one more of a smaller class. *)
Definition leads_over (g : rules) (D : Z) (s : nat -> Z) (a k : nat) : Prop :=
  s a - s k >= D * (least_lead g + (if (k <? a)%nat then 1 else 0)).

(** Class k may be the label among C classes: no class is ahead of it, and of smaller ones it is ahead. *)
Definition may_win (g : rules) (D : Z) (C : nat) (s : nat -> Z) (k : nat) : Prop :=
  forall c, (c < C)%nat -> c <> k -> s k - s c >= D * least_lead g /\ ((c < k)%nat -> s k - s c > D * least_lead g).

(** In which parts scores are counted. *)
Definition in_parts (g : rules) (D : Z) : Prop := if whole g then D = 1 else 0 < D.

(** What a vector adds to the lead of weighted classes over a class that gets [k]. *)
Fixpoint worth (w v : list Z) (k : Z) : Z :=
  match w with
  | [] => 0
  | a :: w' => match v with [] => a * (0 - k) + worth w' [] k | x :: v' => a * (x - k) + worth w' v' k end
  end.

(** The sum of the weights. *)
Definition size (w : list Z) : Z := fold_right Z.add 0 w.

(** What a vector adds to the lead over class k. *)
Definition worth_of (w : list Z) (k : nat) (v : list Z) : Z := worth w v (at_class v k).

(** What an effect adds to the lead at worst. *)
Definition contributes (w : list Z) (k : nat) (e : effect) : Z :=
  worth_of w k (e_adds e) - size w * (at_class (e_cap e) k + 2 * e_doubt e).

(** What a unit adds to the lead at worst, as long as it stands. *)
Definition stands (w : list Z) (k : nat) (u : unit_kind) : Z := worth_of w k (u_adds u) - 2 * size w * u_doubt u.

(** What it may take from the lead without a move. *)
Definition free_loss (w : list Z) (k : nat) (q : lim) (p : pool) (u : unit_kind) : Z :=
  match p_free p with
  | Some e => if is_over q u then Z.max 0 (stands w k u - contributes w k e) else 0
  | None => 0
  end.

(** The price of a move: the sum over all limits that name it. *)
Fixpoint price_of (limits : list (list nat * lim)) (prices : list Z) (m : nat) : Z :=
  match limits, prices with
  | (moves, _) :: l, y :: p => (if existsb (Nat.eqb m) moves then y else 0) + price_of l p m
  | _, _ => 0
  end.

(** The largest of some numbers, and of 0. *)
Definition most (l : list Z) : Z := fold_right Z.max 0 l.

(** What the moves that can hit a unit take beyond their prices, at most. *)
Definition beyond_price (w : list Z) (k : nat) (q : lim) (price : nat -> Z) (p : pool) (u : unit_kind) : Z :=
  most (map (fun h => stands w k u - contributes w k (snd h) - free_loss w k q p u - price (fst h)) (p_hit_by p)).

(** What rounding may take from the lead, beside that of units. *)
Fixpoint doubts (w d : list Z) (k : Z) : Z :=
  match w with
  | [] => 0
  | a :: w' => match d with [] => a * k + doubts w' [] k | x :: d' => a * (x + k) + doubts w' d' k end
  end.

(** What units take without a move, and beyond prices; and what rounding takes from them. *)
Definition units_take (w : list Z) (k : nat) (q : lim) (price : nat -> Z) (t : decision) : Z :=
  fold_right (fun r n => u_count (snd r) * (2 * size w * u_doubt (snd r) + free_loss w k q (fst r) (snd r)
                           + beyond_price w k q price (fst r) (snd r)) + n) 0 (rows t).

(** What all limits cost; None if one that allows any number has a price. *)
Fixpoint paid (limits : list (list nat * lim)) (prices : list Z) : lim :=
  match limits, prices with
  | [], [] => Some 0
  | (_, n) :: l, y :: p =>
      match paid l p, n with
      | Some rest, Some a => if 0 <=? y then Some (a * y + rest) else None
      | Some rest, None => if y =? 0 then Some rest else None
      | None, _ => None
      end
  | _, _ => None
  end.

(** Prices show that a lead stays at least [- give]. *)
Definition bears (t : decision) (w : list Z) (k : nat) (give : Z) (allowed : allowance) (prices : list Z) : bool :=
  let price := price_of (limits allowed) prices in
  match paid (limits allowed) prices with
  | None => false
  | Some total =>
      forallb (fun h => - contributes w k (snd h) <=? price (fst h)) (d_new t)
      && (total + units_take w k (phase allowed) price t <=?
          worth_of w k (d_scores t) - doubts w (d_doubt t) (at_class (d_doubt t) k) + give)
  end.

(** Weights that count class a only. *)
Definition only (C a : nat) : list Z := map (fun c => if Nat.eqb c a then 1 else 0) (seq 0 C).

(** How much smaller classes have to be beaten by: what ties are worth. *)
Fixpoint first_of (k : nat) (w : list Z) : Z :=
  match k, w with S k', a :: w' => a + first_of k' w' | _, _ => 0 end.

(** What ties are worth: without doubt each of them, with doubt one at most. *)
Definition tie (g : rules) (w : list Z) (k : nat) : Z :=
  if whole g then first_of k w else Z.min 1 (first_of k w).

(** All vectors have C numbers, counts and doubts are not negative, and the scores are those of the parts. *)
Definition sized (C : nat) (v : list Z) : bool := Nat.eqb (length v) C.

(** No number is negative. *)
Definition positive (v : list Z) : bool := forallb (fun x => 0 <=? x) v.

(** An effect has a number for each class, and caps and doubt are not negative. *)
Definition sound_effect (C : nat) (e : effect) : bool :=
  sized C (e_adds e) && sized C (e_cap e) && positive (e_cap e) && (0 <=? e_doubt e).

(** Units have a number for each class, and are not a negative number of units. *)
Definition sound_unit (C : nat) (u : unit_kind) : bool := sized C (u_adds u) && (0 <=? u_count u) && (0 <=? u_doubt u).

(** The score of a class is its fixed part and all units. *)
Definition adds_up (t : decision) (c : nat) : bool :=
  at_class (d_scores t) c =? at_class (d_fixed t) c + fold_right (fun r n => u_count (snd r) * at_class (u_adds (snd r)) c + n) 0 (rows t).

(** Class a is not behind class c, and ahead of it if c is smaller. *)
Definition wins (s : list Z) (a c : nat) : bool :=
  Nat.eqb c a || (if (c <? a)%nat then at_class s c <? at_class s a else at_class s c <=? at_class s a).

(** The form of a target does not contradict itself. *)
Definition sound_form (C : nat) (t : decision) : bool :=
  sized C (d_scores t) && sized C (d_fixed t) && sized C (d_doubt t) && positive (d_doubt t)
  && forallb (adds_up t) (seq 0 C) && (d_label t <? C)%nat && forallb (wins (d_scores t) (d_label t)) (seq 0 C)
  && forallb (fun r => sound_unit C (snd r)) (rows t)
  && forallb (fun p => forallb (fun h => sound_effect C (snd h)) (p_hit_by p)
                       && match p_free p with Some e => sound_effect C e | None => true end) (d_pools t)
  && forallb (fun h => sound_effect C (snd h)) (d_new t).

(** The statement "stays": prices for each class other than the label. *)
Definition stays_ok (g : rules) (C : nat) (t : decision) (allowed : allowance) (prices : list (list Z)) : bool :=
  sound_form C t && Nat.eqb (length prices) C &&
  forallb (fun k => Nat.eqb k (d_label t) ||
    bears t (only C (d_label t)) k (tie g (only C (d_label t)) k - 1 - least_lead g) allowed (nth k prices []))
    (seq 0 C).

(** The statement "excludes": weights of other classes, and prices. *)
Definition excludes_ok (g : rules) (C : nat) (t : decision) (allowed : allowance) (k : nat) (w prices : list Z) : bool :=
  sound_form C t && sized C w && positive w && (0 <? size w) && (at_class w k =? 0)
  && bears t w k (tie g w k - 1 + size w * least_lead g) allowed prices.

(** The sum of counts times factors; None is any number. *)
Fixpoint amount (factors : list (nat * Z)) (budget : list lim) : lim :=
  match factors with
  | [] => Some 0
  | (i, f) :: l =>
      match amount l budget, nth i budget None with
      | Some n, Some x => Some (f * x + n)
      | Some n, None => if f =? 0 then Some n else None
      | None, _ => None
      end
  end.

(** What is said about one of several targets: what a budget allows there, and if it needs shared moves, how many; the prices. *)
Record demand := Demand { n_target : decision; n_allowed : allowance; n_moves : lim; n_prices : list (list Z) }.

(** What may be spent on a target that does not fall: one shared move less than it needs. *)
Definition within_demand (shared : list nat) (n : demand) : allowance :=
  match n_moves n with
  | Some x => Allowance (limits (n_allowed n) ++ [(shared, Some (x - 1))]) (phase (n_allowed n))
  | None => n_allowed n
  end.

(** What is said about a target follows. *)
Definition demand_ok (g : rules) (C : nat) (shared : list nat) (n : demand) : bool :=
  (match n_moves n with Some x => 1 <=? x | None => true end) && stays_ok g C (n_target n) (within_demand shared n) (n_prices n).

(** The statement "broken_at_most": [free] targets about which nothing is said, [p] a hint as in [affordable]. *)
Definition broken_ok (g : rules) (C : nat) (shared : list nat) (total : lim) (needs : list demand) (free number p : Z) : bool :=
  (0 <=? free) && forallb (demand_ok g C shared) needs && (affordable p total (map n_moves needs) + free <=? number).
