(* What Vote.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** The vote: votes, label, and when changed votes cannot change the label (docs/proofs.md, Theorems 1, 2 and 8). *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
Open Scope Z_scope.

(** A vote is a class, or None for an abstention. *)
Definition vote := option nat.

(** Two votes are the same. *)
Definition beq (x y : vote) : bool :=
  match x, y with
  | Some a, Some b => Nat.eqb a b
  | None, None => true
  | _, _ => false
  end.

(** [num T p]: how many i < T satisfy p. *)
Fixpoint num (T : nat) (p : nat -> bool) : Z :=
  match T with
  | O => 0
  | S n => num n p + (if p n then 1 else 0)
  end.

(** Class k wins a tie against a. *)
Definition tie (k a : nat) : Z := if Nat.ltb k a then 1 else 0.

(** a is the label: the best score, the smaller class on a tie. *)
Definition is_label (s : nat -> Z) (C a : nat) : Prop :=
  (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> s k + tie k a <= s a.

(** The label, computed. *)
Fixpoint best (s : nat -> Z) (C : nat) : nat :=
  match C with
  | O => O
  | S m => let a := best s m in if s a <? s m then m else a
  end.

(** Score of class k under votes b of T groups and prior P. *)
Definition score (T : nat) (P : nat -> Z) (b : nat -> vote) (k : nat) : Z :=
  P k + num T (fun i => beq (b i) (Some k)).

(** Section 1, Vote: the label that C classes and T votes b elect, with a prior P (Theorem 8). *)
Definition voted (C T : nat) (P : nat -> Z) (b : nat -> vote) : nat := best (score T P b) C.

(** Limits; None is infinite. *)
Definition lim := option Z.

(** min(n, x). *)
Definition cap (n : lim) (x : Z) : Z := match n with Some m => Z.min m x | None => x end.

(** x is at most n. *)
Definition within (x : Z) (n : lim) : Prop := match n with Some m => x <= m | None => True end.

(** Theorem 2: votes that the graph touches, votes that are cast but touched by no edge, votes where nothing is. *)
Inductive tier := Reached | Unreached | Unlisted.

(** Two tiers are the same. *)
Definition teq (s t : tier) : bool :=
  match s, t with
  | Reached, Reached | Unreached, Unreached | Unlisted, Unlisted => true
  | _, _ => false
  end.

(** Theorem 2: n0 votes change in all, n1 of them outside the first tier, n2 of them in the third. *)
Record reach := Reach { all : lim; beyond : lim; unlisted : lim }.

(** Theorem 2: limit(x) = min(n0, x0 + min(n1, x1 + min(n2, x2))), of a set with x0, x1, x2 votes in the tiers. *)
Definition limit (n : reach) (x : tier -> Z) : Z :=
  cap (all n) (x Reached + cap (beyond n) (x Unreached + cap (unlisted n) (x Unlisted))).

(** What a certificate knows of one target: T votes, which are stable, and their tiers. *)
Record votes := Votes {
  groups : nat;
  cast : nat -> vote;
  stable : nat -> bool;
  tier_of : nat -> tier
}.

Section Counts.
  Variable V : votes.

  (** c_stable(k): stable votes for class k. *)
  Definition standing (k : nat) : Z := num (groups V) (fun i => stable V i && beq (cast V i) (Some k)).

  (** u: unstable votes, which count for every rival and not for a (section 5, Rounding). *)
  Definition conceded : Z := num (groups V) (fun i => negb (stable V i)).

  (** Stable votes for class k in tier t: with k = a, the x0, x1, x2 of limit(votes for a). *)
  Definition for_class (k : nat) (t : tier) : Z :=
    num (groups V) (fun i => stable V i && beq (cast V i) (Some k) && teq (tier_of V i) t).

  (** Stable votes in tier t that are not for k: the x0, x1, x2 of limit(votes not for k). *)
  Definition not_for (k : nat) (t : tier) : Z :=
    num (groups V) (fun i => stable V i && negb (beq (cast V i) (Some k)) && teq (tier_of V i) t).

  (** margin(k) = P(a) + c(a) - P(k) - c(k) - u - doubt - [k < a] *)
  Definition margin (P : nat -> Z) (doubt : Z) (a k : nat) : Z :=
    P a + standing a - P k - standing k - conceded - doubt - tie k a.

  (** The test of Theorem 2, with conceded votes and a prior. *)
  Definition withstands (C : nat) (P : nat -> Z) (doubt : Z) (a : nat) (n : reach) : Prop :=
    (a < C)%nat /\ forall k, (k < C)%nat -> k <> a ->
      limit n (for_class a) + limit n (not_for k) <= margin P doubt a k.
End Counts.

(** r is what the vote reads after an attack that moves only what the three lists name: any vote, one outside the
    first tier, one in the third. What is not stable may be read as anything, before and after. *)
Inductive moves (V : votes) (n : reach) (r : nat -> vote) : Prop :=
| Moves (any_moved beyond_moved unlisted_moved : list nat)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> In i any_moved \/ r i = cast V i)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i <> Reached ->
         In i beyond_moved \/ r i = cast V i)
    (_ : forall i, (i < groups V)%nat -> stable V i = true -> tier_of V i = Unlisted ->
         In i unlisted_moved \/ r i = cast V i)
    (_ : within (Z.of_nat (length any_moved)) (all n))
    (_ : within (Z.of_nat (length beyond_moved)) (beyond n))
    (_ : within (Z.of_nat (length unlisted_moved)) (unlisted n)).

(** Theorem 2 (with Theorem 8 and conceded votes): if the test holds, then whatever an attack within the limits and a
    machine within the tolerance make of the votes, the label is a. P' is the prior that is used then. *)
Theorem vote_sound :
  forall (V : votes) (C : nat) (P P' : nat -> Z) (doubt : Z) (a : nat) (n : reach) (r : nat -> vote),
    withstands V C P doubt a n ->
    (forall k, (k < C)%nat -> k <> a -> P a - P k - doubt <= P' a - P' k) ->
    moves V n r ->
    voted C (groups V) P' r = a.

(** A prior of w votes for the no_edge prediction, which may be read as y here and as y' there, is in doubt by |w|. *)
Definition for_no_edge (w : Z) (y : vote) (k : nat) : Z := if beq y (Some k) then w else 0.

(** Theorem 8: whatever the no_edge prediction is read as, the prior lead of a over k falls by no more than |w|. *)
Lemma no_edge_doubt P w y a k :
  P a - P k - Z.abs w <= (P a + for_no_edge w y a) - (P k + for_no_edge w y k).

(** Theorem 1, the paper's M: T votes of a deterministic vote without prior, at most M differ. *)
Definition radius_ok (C T : nat) (b : nat -> vote) (a : nat) (M : Z) : Prop :=
  forall k, (k < C)%nat -> k <> a ->
    2 * M <= num T (fun i => beq (b i) (Some a)) - num T (fun i => beq (b i) (Some k)) - tie k a.

(** Theorem 1: if 2 M is at most every margin, any change of at most M votes leaves the label as it is. *)
Theorem radius_sound :
  forall (C T : nat) (b b' : nat -> vote) (M : Z),
    (0 < C)%nat ->
    radius_ok C T b (voted C T (fun _ => 0) b) M ->
    num T (fun i => negb (beq (b i) (b' i))) <= M ->
    voted C T (fun _ => 0) b' = voted C T (fun _ => 0) b.
