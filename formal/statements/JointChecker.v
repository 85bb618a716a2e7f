(* What JointChecker.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The checker for labels and edges together (docs/proofs.md, Theorem 17): the program that is extracted, and what its answers establish. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote StackedVote Checker CheckerProofs StackedChecker LabelVotes LabelChecker LabelsAndEdges.
Import ListNotations.
Open Scope Z_scope.

(** The settings of voters, which do not abstain. *)
Definition voter_settings (s : label_settings) : label_settings := LabelSettings (l_classes s) (l_advance s) 0.

(** 1 if the class is k. *)
Definition is_class (k c : nat) : Z := if Nat.eqb c k then 1 else 0.

(** Theorem 17: score_k of a target with these labels and neighbours. *)
Definition joint_score_of (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) (k : nat) : Z :=
  full_score s l k + q * sum label_counted (fun c => is_class k (v_label c)) near.

(** The label: the best score, the smaller class on a tie. *)
Definition joint_elected (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) : nat :=
  match l_classes s with O => O | S m => best_from (joint_score_of s q l near) 1 m 0 (joint_score_of s q l near O) end.

(** A target, counted: what a neighbour's vote counts, what labels say against each rival, and the neighbours. *)
Record joint_counted := JointCounted { j_made : bool; j_label : nat; j_each : Z; j_rivals : list label_rival; j_near : list label_counted }.

(** Counts a target from the labels that it reads, what a neighbour's vote counts, and its neighbours, each counted from its own labels. *)
Definition count_joint (s : label_settings) (q : Z) (l : list label_entry) (near : list label_counted) : joint_counted :=
  let a := joint_elected s q l near in
  JointCounted ((0 <=? l_asked s) && (0 <=? q)) a q (map (label_against s l a) (filter (fun k => negb (Nat.eqb k a)) (seq 0 (l_classes s)))) near.

(** [a] - [k] of a neighbour whose vote so many changed labels leave as it is; else it is at worst for k. *)
Definition leaning (f : lim) (a k : nat) (c : label_counted) : Z :=
  if labels_hold c f then is_class a (v_label c) - is_class k (v_label c) else -1.

(** Neighbours that vote for a whatever these labels say. *)
Definition sure_for (f : lim) (a : nat) (near : list label_counted) : Z :=
  sum label_counted (fun c => if labels_hold c f then is_class a (v_label c) else 0) near.

(** What is left of the lead over a rival after f changed labels. *)
Definition joint_left (f : lim) (c : joint_counted) (r : label_rival) : Z :=
  v_lead r - first_sum f (v_costs r) 0 + j_each c * sum label_counted (leaning f (j_label c) (v_class r)) (j_near c).

(** The lead stays if so many neighbours come and so many go. *)
Definition joint_lead_stays (f new lost : lim) (c : joint_counted) (r : label_rival) : bool :=
  if j_each c =? 0 then 0 <=? joint_left f c r
  else match new with Some x => (x + cap lost (sure_for f (j_label c) (j_near c))) * j_each c <=? joint_left f c r | None => false end.

(** Theorem 17: the target holds. *)
Definition joint_holds (c : joint_counted) (f new lost : lim) : bool := j_made c && forallb (joint_lead_stays f new lost c) (j_rivals c).

(** Any mix of x changed labels and neighbours. *)
Fixpoint any_mix (fuel : nat) (c : joint_counted) (f x : Z) : bool :=
  match fuel with O => true | S m => joint_holds c (Some f) (Some (x - f)) (Some 0) && any_mix m c (f + 1) x end.

(** The stated radius is the largest that is proved. *)
Definition right_joint_radius (c : joint_counted) (entries x : Z) : bool :=
  is_largest (fun x => any_mix (Z.to_nat (x + 1)) c 0 x) (if j_each c =? 0 then entries else x + 1) x.

(** The same target with class a in the place of its label. *)
Definition led_by (a : nat) (c : joint_counted) : joint_counted := JointCounted (j_made c) a (j_each c) (j_rivals c) (j_near c).

(** Classes that may get past the label. *)
Definition joint_may_pass (c : joint_counted) (f new lost : lim) : list nat :=
  map v_class (filter (fun r => negb (joint_lead_stays f new lost c r)) (j_rivals c)).

(** Whether the target cannot get class k: the label stays ahead of it, or another class that may get past the label. *)
Definition joint_is_out (s : label_settings) (l : list label_entry) (c : joint_counted) (f new lost : lim) (k : nat) : bool :=
  j_made c && (existsb (fun r => Nat.eqb (v_class r) k && joint_lead_stays f new lost c r) (j_rivals c)
    || (negb (Nat.eqb k (j_label c))
        && existsb (fun j => negb (Nat.eqb j k) && joint_lead_stays f new lost (led_by j c) (label_against (not_asked s) l j k))
             (joint_may_pass c f new lost))).

(** For each class whether the target, counted from the labels that it reads, cannot get it. *)
Definition joint_cannot_get (s : label_settings) (l : list label_entry) (c : joint_counted) (f new lost : lim) : list bool :=
  map (joint_is_out s l c f new lost) (seq 0 (l_classes s)).

(** ---- What it means ---- *)
Section File.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  (** What a file says of one target: its entries, those of every node, which have the same labels, and the neighbours. *)
  Variable s : label_settings.
  Variable q : Z.
  Variable l : list label_entry.
  Variable theirs : key -> list label_entry.
  Variable N : list key.
  Hypothesis same_labels : forall u, length (theirs u) = length l
    /\ forall i, e_label (entry_at (theirs u) i) = e_label (entry_at l i) /\ e_audited (entry_at (theirs u) i) = e_audited (entry_at l i).

  (** What a node votes for if the training labels are y. *)
  Definition casts (y : nat -> vote) (u : key) : vote := Some (best (label_score (votes_in (voter_settings s) (theirs u)) y) (l_classes s)).

  (** The same target in the words of Theorem 17. *)
  Definition joint_in : joint key := Joint key (votes_in s l) N q casts.

  (** The neighbours, each counted from its own labels. *)
  Definition near_counted : list label_counted := map (fun u => count_labels (voter_settings s) (theirs u)) N.

  (** The target, counted. *)
  Definition target_counted : joint_counted := count_joint s q l near_counted.

  (** Neighbours that came and that went. *)
  Definition moved_within (new lost : lim) (N' : list key) : Prop :=
    NoDup N /\ NoDup N' /\ within (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N)) N'))) new
    /\ within (Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N))) lost.

  (** The lead of a over k. *)
  Definition joint_lead (y : nat -> vote) (N' : list key) (a k : nat) : Z :=
    joint_score key joint_in y N' a - joint_score key joint_in y N' k - tie k a.

  (** Theorem 17: a target that passes keeps its label, and does not abstain, whatever labels are changed and whichever neighbours come and go. *)
  Theorem checked_joint f new lost : (0 < l_classes s)%nat -> joint_holds target_counted f new lost = true ->
    forall y' N', poisoned_by f s l y' -> moved_within new lost N' ->
      is_label (joint_score key joint_in y' N') (l_classes s) (j_label target_counted)
      /\ forall k, (k < l_classes s)%nat -> k <> j_label target_counted -> l_asked s <= joint_lead y' N' (j_label target_counted) k.

  (** The radius: no n changed labels and x - n new neighbours change the label. *)
  Theorem checked_joint_radius x n : (0 < l_classes s)%nat -> 0 <= n <= x -> right_joint_radius target_counted (Z.of_nat (length l)) x = true ->
    forall y' N', poisoned_by (Some n) s l y' -> moved_within (Some (x - n)) (Some 0) N' ->
      is_label (joint_score key joint_in y' N') (l_classes s) (j_label target_counted).

  (** A class that is left out does not win. *)
  Theorem checked_joint_excluded f new lost k : (0 < l_classes s)%nat -> nth k (joint_cannot_get s l target_counted f new lost) false = true ->
    forall y' N', poisoned_by f s l y' -> moved_within new lost N' -> ~ is_label (joint_score key joint_in y' N') (l_classes s) k.
End File.
