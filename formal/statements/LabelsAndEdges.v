(* What LabelsAndEdges.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Labels and edges together (docs/proofs.md, Theorem 17): votes of labels by own features (Theorem 14), and one vote of each neighbour for the class
    that its own features elect. Both budgets add. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote PerNeighbourVote StackedVote LabelVotes.
Import ListNotations.
Open Scope Z_scope.

Section Joint.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.

  (** What a certificate knows of one target: its own votes of labels, the neighbours, what a neighbour's vote counts, and what a neighbour votes for
      if the training labels are y. Weights and votes read no edge: they are the same on every graph. *)
  Record joint := Joint { own : label_votes; near : list key; each : Z; votes_for : (nat -> vote) -> key -> vote }.

  Section Target.
    Variable J : joint.

    (** 1 if the neighbour votes for k. *)
    Definition bit (y : nat -> vote) (k : nat) (u : key) : Z := if beq (votes_for J y u) (Some k) then 1 else 0.

    (** score_k(y, N) = own score + q times the neighbours that vote for k *)
    Definition joint_score (y : nat -> vote) (N : list key) (k : nat) : Z :=
      label_score (own J) y k + each J * sum key (bit y k) N.

    (** [a] - [k] of one neighbour. *)
    Definition leans (y : nat -> vote) (a k : nat) (u : key) : Z := bit y a u - bit y k u.

    (** f changed labels leave the vote of this neighbour as it is: what Theorem 14 proves where its radius is f. *)
    Definition steady (f : nat) (y : nat -> vote) (u : key) : Prop :=
      forall y', poisoned (own J) f y y' -> votes_for J y' u = votes_for J y u.

    (** e neighbours come or go. *)
    Definition neighbours_moved (e : Z) (N N' : list key) : Prop :=
      NoDup N /\ NoDup N'
      /\ Z.of_nat (length (filter (fun u => negb (mem key key_eq u N')) N) + length (filter (fun u => negb (mem key key_eq u N)) N')) <= e.

    (** Theorem 17, the test. [sure]: neighbours that are steady. *)
    Definition withstands_both (f : nat) (e : Z) (sure : key -> bool) (y : nat -> vote) (C a : nat) : Prop :=
      (a < C)%nat /\ forall k, (k < C)%nat -> k <> a -> forall D, Permutation D (label_costs (own J) y a k) -> falling D ->
        e * each J <= label_lead (own J) y a k - top f D
          + each J * sum key (leans y a k) (filter sure (near J)) - each J * Z.of_nat (length (filter (fun u => negb (sure u)) (near J))).

    (** Theorem 17: f changed labels and e neighbours that come or go leave the label as it is. *)
    Theorem labels_and_edges_sound (f : nat) (e : Z) (sure : key -> bool) (y y' : nat -> vote) (N' : list key) (C a : nat) :
      0 <= each J -> withstands_both f e sure y C a ->
      (forall u, In u (near J) -> sure u = true -> steady f y u) ->
      poisoned (own J) f y y' -> neighbours_moved e (near J) N' ->
      best (joint_score y' N') C = a.
  End Target.
End Joint.

(** Where Theorem 14 proves that a neighbour's own label withstands f changed labels, its vote is steady: the hypothesis above. *)
Theorem certified_is_steady :
  forall (key : Type) (J : joint key) (u : key) (theirs : label_votes) (f C : nat) (y : nat -> vote) (c : nat),
    entries theirs = entries (own key J) -> (forall i, audited theirs i = audited (own key J) i) ->
    0 <= asked theirs -> (c < C)%nat -> withstands_labels theirs y C c f ->
    (forall y' b, decided theirs y' C b -> votes_for key J y' u = Some b) ->
    decided theirs y C c -> steady key J f y u.
