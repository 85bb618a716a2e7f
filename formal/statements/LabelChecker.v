(* What LabelChecker.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The checker for votes of training labels (docs/proofs.md, Theorem 14): the program that is extracted, and what its answers establish. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation Sorted.
From Agnncert Require Import Vote StackedVote Checker CheckerProofs StackedChecker LabelVotes.
Import ListNotations.
Open Scope Z_scope.

(** The product of two rows. *)
Fixpoint dot (a b : list Z) (n : Z) : Z := match a, b with x :: a', y :: b' => dot a' b' (n + x * y) | _, _ => n end.

(** Settings of a file: classes, what each has in advance, and the lead below which a target abstains. *)
Record label_settings := LabelSettings { l_classes : nat; l_advance : list Z; l_asked : Z }.

(** An entry of the training labels as one target sees it: its weight, its class if it has one, and whether it was audited. *)
Record label_entry := LabelEntry { e_weight : Z; e_label : vote; e_audited : bool }.

(** Theorem 14: score_k. *)
Fixpoint score_of (k : nat) (l : list label_entry) (n : Z) : Z :=
  match l with [] => n | e :: l' => score_of k l' (if beq (e_label e) (Some k) then n + e_weight e else n) end.

(** Theorem 14: cost_u(k). *)
Definition cost_of (a k : nat) (e : label_entry) : Z :=
  if e_audited e then 0
  else Z.abs (e_weight e) + ((if beq (e_label e) (Some a) then e_weight e else 0) - (if beq (e_label e) (Some k) then e_weight e else 0)).

(** What counts against a rival: the class, the lead over it less what an abstention asks for, and the costs, largest first. *)
Record label_rival := LabelRival { v_class : nat; v_lead : Z; v_costs : list Z }.

(** A target, counted. *)
Record label_counted := LabelCounted { v_made : bool; v_label : nat; v_rivals : list label_rival }.

(** The score of class k with what it has in advance. *)
Definition full_score (s : label_settings) (l : list label_entry) (k : nat) : Z := score_of k l (at_class k (l_advance s)).

(** The label: the best score, the smaller class on a tie. *)
Definition label_elected (s : label_settings) (l : list label_entry) : nat :=
  match l_classes s with O => O | S m => best_from (full_score s l) 1 m 0 (full_score s l O) end.

(** The numbers of Theorem 14 against class k. *)
Definition label_against (s : label_settings) (l : list label_entry) (a k : nat) : label_rival :=
  LabelRival k (full_score s l a - full_score s l k - tie k a - l_asked s) (DescendingSort.sort (map (cost_of a k) l)).

(** The label, and what counts against every other class. *)
Definition count_labels (s : label_settings) (l : list label_entry) : label_counted :=
  let a := label_elected s l in
  LabelCounted (0 <=? l_asked s) a (map (label_against s l a) (filter (fun k => negb (Nat.eqb k a)) (seq 0 (l_classes s)))).

(** The sum of the first n numbers; None is all of them. *)
Fixpoint first_sum (n : lim) (l : list Z) (taken : Z) : Z :=
  match l with
  | [] => taken
  | x :: l' => match n with
               | Some m => if m <=? 0 then taken else first_sum (Some (m - 1)) l' (taken + x)
               | None => first_sum None l' (taken + x)
               end
  end.

(** The lead over one rival stays, whatever n entries say. *)
Definition label_lead_stays (n : lim) (r : label_rival) : bool := first_sum n (v_costs r) 0 <=? v_lead r.

(** Theorem 14: the target holds against n changed entries. *)
Definition labels_hold (c : label_counted) (n : lim) : bool := v_made c && forallb (label_lead_stays n) (v_rivals c).

(** The stated radius is the largest that is proved; no more entries change than there are. *)
Definition right_label_radius (c : label_counted) (entries x : Z) : bool := is_largest (fun x => labels_hold c (Some x)) entries x.

(** The same settings for a class that only has to be ahead, whether or not the target abstains. *)
Definition not_asked (s : label_settings) : label_settings := LabelSettings (l_classes s) (l_advance s) 0.

(** Classes that may get past the label. *)
Definition may_pass (c : label_counted) (n : lim) : list nat := map v_class (filter (fun r => negb (label_lead_stays n r)) (v_rivals c)).

(** Whether the target cannot get class k: the label stays ahead of it, or another class that may get past the label. *)
Definition label_is_out (s : label_settings) (l : list label_entry) (c : label_counted) (n : lim) (k : nat) : bool :=
  v_made c && (existsb (fun r => Nat.eqb (v_class r) k && label_lead_stays n r) (v_rivals c)
    || (negb (Nat.eqb k (v_label c))
        && existsb (fun j => negb (Nat.eqb j k) && label_lead_stays n (label_against (not_asked s) l j k)) (may_pass c n))).

(** For each class whether the target, counted from its entries, cannot get it. *)
Definition labels_cannot_get (s : label_settings) (l : list label_entry) (c : label_counted) (n : lim) : list bool :=
  map (label_is_out s l c n) (seq 0 (l_classes s)).

(** The entry at a position; beyond the last one there is none. *)
Definition entry_at (l : list label_entry) (u : nat) : label_entry := nth u l (LabelEntry 0 None true).

(** The training labels of a file. *)
Definition labels_in (l : list label_entry) (u : nat) : vote := e_label (entry_at l u).

(** The same target in the words of Theorem 14. *)
Definition votes_in (s : label_settings) (l : list label_entry) : label_votes :=
  LabelVotes (length l) (fun u => e_weight (entry_at l u)) (fun u => e_audited (entry_at l u)) (fun k => at_class k (l_advance s)) (l_asked s).

(** At most n entries change, and audited ones stay. *)
Definition poisoned_by (n : lim) (s : label_settings) (l : list label_entry) (y' : nat -> vote) : Prop :=
  spares_audited (votes_in s l) (labels_in l) y' /\ within (Z.of_nat (length (changed_entries (votes_in s l) (labels_in l) y'))) n.

(** Theorem 14: a target that passes keeps its label, and does not abstain, whatever the changed entries say. *)
Theorem checked_labels s l n : (0 < l_classes s)%nat -> labels_hold (count_labels s l) n = true ->
  forall y', poisoned_by n s l y' -> decided (votes_in s l) y' (l_classes s) (label_elected s l).

(** Theorem 14, the other direction: a target that does not pass is changed, or made to abstain, by so many entries. *)
Theorem checked_labels_exact s l r : (0 < l_classes s)%nat -> 0 <= l_asked s -> labels_hold (count_labels s l) (Some (Z.of_nat r)) = false ->
  exists y', poisoned (votes_in s l) r (labels_in l) y'
    /\ (forall u, y' u = labels_in l u \/ exists k, (k < l_classes s)%nat /\ y' u = Some k) /\ ~ decided (votes_in s l) y' (l_classes s) (label_elected s l).

(** The radius: no x entries, whatever they say, change the label. *)
Theorem checked_label_radius s l x : (0 < l_classes s)%nat -> 0 <= x -> right_label_radius (count_labels s l) (Z.of_nat (length l)) x = true ->
  forall y', poisoned_by (Some x) s l y' -> decided (votes_in s l) y' (l_classes s) (label_elected s l).

(** A class that is left out does not win, whatever the changed entries say. *)
Theorem checked_labels_excluded s l n k : (0 < l_classes s)%nat -> nth k (labels_cannot_get s l (count_labels s l) n) false = true ->
  forall y', poisoned_by n s l y' -> ~ is_label (label_score (votes_in s l) y') (l_classes s) k.
