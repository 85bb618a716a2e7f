(* What LabelVotes.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Labels changed before training (docs/proofs.md, Theorem 14): each entry of the training labels adds a whole number, fixed without the labels, to
    the score of the class that it names. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote StackedVote.
Import ListNotations.
Open Scope Z_scope.

(** The sum of f over the first n entries. *)
Fixpoint over (n : nat) (f : nat -> Z) : Z := match n with O => 0 | S m => over m f + f m end.

(** What a certificate knows of one target. Entries are numbered from 0. [weight]: what an entry adds to its class, computed without any label;
    [audited]: this entry cannot be changed; [advance]: what each class has in advance; [asked]: the target abstains below this lead. *)
Record label_votes := LabelVotes {
  entries : nat; weight : nat -> Z; audited : nat -> bool; advance : nat -> Z; asked : Z
}.

Section Target.
  Variable V : label_votes.

  (** W_u if u is labelled k, else 0. None is no label. *)
  Definition given_to (y : nat -> vote) (k u : nat) : Z := if beq (y u) (Some k) then weight V u else 0.

  (** score_k(y) *)
  Definition label_score (y : nat -> vote) (k : nat) : Z := advance V k + over (entries V) (given_to y k).

  (** lead_k(y) = score_a - score_k - [k < a] *)
  Definition label_lead (y : nat -> vote) (a k : nat) : Z := label_score y a - label_score y k - tie k a.

  (** a is the label, and the target does not abstain. *)
  Definition decided (y : nat -> vote) (C a : nat) : Prop :=
    is_label (label_score y) C a /\ forall k, (k < C)%nat -> k <> a -> asked V <= label_lead y a k.

  (** phi_u(c) = W_u ([c = a] - [c = k]) *)
  Definition tilt (y : nat -> vote) (a k u : nat) : Z := given_to y a u - given_to y k u.

  (** cost_u(k) = |W_u| + W_u ([y_u = a] - [y_u = k]); an audited label costs nothing, because it stays. *)
  Definition label_cost (y : nat -> vote) (a k u : nat) : Z := if audited V u then 0 else Z.abs (weight V u) + tilt y a k u.

  (** The costs of all entries. *)
  Definition label_costs (y : nat -> vote) (a k : nat) : list Z := map (label_cost y a k) (seq 0 (entries V)).

  (** The entry is another one now. *)
  Definition is_changed (y y' : nat -> vote) (u : nat) : bool := negb (beq (y' u) (y u)).

  (** Which entries are. *)
  Definition changed_entries (y y' : nat -> vote) : list nat := filter (is_changed y y') (seq 0 (entries V)).

  (** y' is y after an attack: audited labels stay. *)
  Definition spares_audited (y y' : nat -> vote) : Prop := forall u, (u < entries V)%nat -> audited V u = true -> y' u = y u.

  (** At most r entries are changed, added or removed. *)
  Definition poisoned (r : nat) (y y' : nat -> vote) : Prop := spares_audited y y' /\ (length (changed_entries y y') <= r)%nat.

  (** Theorem 14, the test: the r largest costs sum to at most the lead, less what an abstention asks for. *)
  Definition withstands_labels (y : nat -> vote) (C a r : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> forall D, Permutation D (label_costs y a k) -> falling D -> top r D <= label_lead y a k - asked V.

  (** What the changed entries cost an attacker who pays [price] for each. *)
  Definition paid (price : nat -> Z) (y y' : nat -> vote) : Z := plus (map price (changed_entries y y')).

  (** Prices, the test: q times the loss is at most p times the total, and what each entry brings beyond p / q of its price. *)
  Definition withstands_prices (price : nat -> Z) (total : Z) (y : nat -> vote) (C a : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists p q, 0 <= p /\ 0 < q
      /\ p * total + over (entries V) (fun u => Z.max 0 (q * label_cost y a k u - p * price u)) <= q * (label_lead y a k - asked V).

  (** Theorem 14, one rival: r changed entries take at most the r largest costs from the lead. *)
  Theorem label_lead_bound y y' a k r D : a <> k -> poisoned r y y' -> Permutation D (label_costs y a k) -> falling D ->
    label_lead y a k - top r D <= label_lead y' a k.

  (** Theorem 14, "if": the label stays, and no abstention takes its place, whatever r entries say. *)
  Theorem label_votes_sound y C a r : (a < C)%nat -> 0 <= asked V -> withstands_labels y C a r ->
    forall y', poisoned r y y' -> decided y' C a.

  (** Theorem 14, "only if": if the r largest costs are more than the lead over some class, then r entries that say a or k change the label, or bring
      about an abstention. No entry that had a label loses it. *)
  Theorem label_votes_exact y C a r k D : (k < C)%nat -> k <> a -> Permutation D (label_costs y a k) -> falling D ->
    label_lead y a k - asked V < top r D ->
    exists y', poisoned r y y' /\ (forall u, y' u = y u \/ y' u = Some a \/ y' u = Some k) /\ ~ decided y' C a.

  (** Prices: a bound. Whoever spends at most the total, however the entries are priced, does not change the label. *)
  Theorem label_prices_sound price total y C a : (a < C)%nat -> 0 <= asked V -> withstands_prices price total y C a ->
    forall y', spares_audited y y' -> paid price y y' <= total -> decided y' C a.
End Target.
