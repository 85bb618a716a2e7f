(* What StackedVote.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Stacked votes, one level (docs/proofs.md, Theorem 10): a score of the target's own features, and a bounded vote of each neighbour. All numbers
    are whole; [S] steps are one vote. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote.
Import ListNotations.
Open Scope Z_scope.

(** A vote gives no class less than nothing, and any two classes together no more than one vote. *)
Definition is_vote (S : Z) (b : nat -> Z) : Prop := (forall k, 0 <= b k) /\ (forall j k, j <> k -> b j + b k <= S).

(** x is computed again on some machine, as y. *)
Definition near (slack x y : Z) : Prop := x - slack <= y <= x + slack.

(** Sum of the x largest numbers of a list that descends. *)
Fixpoint plus (l : list Z) : Z := match l with [] => 0 | x :: l' => x + plus l' end.

(** The sum of the first x numbers. *)
Definition top (x : nat) (l : list Z) : Z := plus (firstn x l).

(** The list descends. *)
Fixpoint falling (l : list Z) : Prop := match l with [] => True | x :: l' => (forall y, In y l' -> y <= x) /\ falling l' end.

Section Stacked.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.

  (** What a certificate knows of one target. [pseudo] is the pseudo-count kappa of a mean, 0 in a sum; [q_of] its votes.
      [computed]: gates are computed, so that a machine may round them differently; [by_edge]: votes read values of edges. *)
  Record stacked_votes := StackedVotes {
    st_steps : Z; neighbours : list key; vote_of : key -> nat -> Z; p_of : nat -> Z; g_of : nat -> Z;
    pseudo : Z; q_of : nat -> Z; q_all : Z; slack : Z; computed : bool; by_edge : bool
  }.

  (** What Theorem 10 asks of the numbers: none negative, and each neighbour has one vote at most. *)
  Record sensible (V : stacked_votes) : Prop := {
    steps_pos : 0 < st_steps V; slack_pos : 0 <= slack V; pseudo_pos : 0 <= pseudo V;
    g_pos : forall k, 0 <= g_of V k; q_pos : forall k, 0 <= q_of V k; q_sum : forall j k, j <> k -> q_of V j + q_of V k <= q_all V;
    once : NoDup (neighbours V); votes_ok : forall u, In u (neighbours V) -> is_vote (st_steps V) (vote_of V u)
  }.

  (** D: the divisor, with d neighbours. *)
  Definition divisor (V : stacked_votes) (d : Z) : Z := if pseudo V =? 0 then st_steps V else pseudo V + st_steps V * d.

  (** score_k times D, of the votes b of the neighbours N. *)
  Definition stacked (V : stacked_votes) (p g : nat -> Z) (N : list key) (b : key -> nat -> Z) (k : nat) : Z :=
    p k * divisor V (Z.of_nat (length N)) + g k * ((if pseudo V =? 0 then 0 else q_of V k) + sum key (fun u => b u k) N).

  (** The label: the best score, the smaller class on a tie. *)
  Definition stacked_label (V : stacked_votes) (C : nat) (p g : nat -> Z) (N : list key) (b : key -> nat -> Z) : nat :=
    best (stacked V p g N b) C.

  Section Against.
    Variable V : stacked_votes.

    (** d: the number of neighbours in G. *)
    Definition degree : Z := Z.of_nat (length (neighbours V)).

    (** delta_j = g_a b_a(j) - g_k b_k(j) *)
    Definition delta (a k : nat) (u : key) : Z := g_of V a * vote_of V u a - g_of V k * vote_of V u k.

    (** delta_j of all neighbours. *)
    Definition deltas (a k : nat) : list Z := map (delta a k) (neighbours V).

    (** 1 if true, 0 if not. *)
    Definition bit_of (b : bool) : Z := if b then 1 else 0.

    (** cap = g_k S, and what a computed gate may add to it *)
    Definition most_given (k : nat) : Z := g_of V k * st_steps V + bit_of (computed V) * (slack V * st_steps V).

    (** What rounding takes from the vote of a neighbour, and from the pseudo-count. *)
    Definition doubt_each (a k : nat) : Z :=
      (g_of V a + g_of V k) * slack V + bit_of (computed V) * (2 * (st_steps V * slack V + slack V * slack V)).

    (** What rounding takes from the pseudo-count's votes. *)
    Definition doubt_pseudo : Z := bit_of (computed V) * (2 * slack V * q_all V).

    (** p_a - p_k, less what rounding takes *)
    Definition ahead (a k : nat) : Z := p_of V a - p_of V k - 2 * slack V.

    (** The part that no attack changes, and the sum of delta. *)
    Definition given (a k : nat) : Z :=
      (if pseudo V =? 0 then 0 else g_of V a * q_of V a - g_of V k * q_of V k - doubt_pseudo)
      + sum key (delta a k) (neighbours V) - degree * doubt_each a k.

    (** The lead, times D', with l lost and m altered neighbours, [grows] more of them, and [pays] new or turned ones;
        [taken] is the sum of the m + l largest delta. *)
    Definition lead_at (a k : nat) (l m grows pays taken : Z) : Z :=
      ahead a k * divisor V (degree - l + grows) + given a k - taken - (pays + m) * most_given k.
  End Against.

  (** The new neighbours N' and what is read of their votes, after an attack that brings, takes away, alters and turns
      (gives a second direction) neighbours. A neighbour that was taken away may come back as a new one. *)
  Record stacked_changes (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (a : nat) (new rem alt turn : list key) : Prop := {
    s_once : NoDup N';
    s_votes : forall u, In u N' -> is_vote (st_steps V) (b u);
    s_old : forall u, In u (neighbours V) ->
      (In u rem /\ (In u new \/ ~ In u N'))
      \/ (In u N' /\ In u alt)
      \/ (In u N' /\ In u turn /\ by_edge V = true /\ exists c, (forall k, near (slack V) (vote_of V u k) (c k))
            /\ forall k, k <> a -> c a - c k - st_steps V <= b u a - b u k)
      \/ (In u N' /\ forall k, near (slack V) (vote_of V u k) (b u k));
    s_new : forall u, In u N' -> In u (neighbours V) \/ In u new
  }.

  (** Prior and gates as some machine reads them. *)
  Record stacked_reading (V : stacked_votes) (p g : nat -> Z) : Prop := {
    p_near : forall k, near (slack V) (p_of V k) (p k);
    g_near : forall k, 0 <= g k /\ near (bit_of (computed V) * slack V) (g_of V k) (g k)
  }.

  Section Counting.
    Variables (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (a k : nat) (new rem alt turn : list key).
    Hypothesis ok : sensible V.
    Hypothesis read : stacked_reading V p g.
    Hypothesis ch : stacked_changes V N' b a new rem alt turn.
    Hypothesis apart : k <> a.
    Hypothesis gates_ok : by_edge V = true -> g_of V a = g_of V k. (* gates of classes may differ only where votes read no edges *)

    Let N := neighbours V.
    Notation ST := (st_steps V).
    Notation sl := (slack V).
    Notation mem := (mem key key_eq).

    (** The classes of neighbours, each in one of them: those gone (perhaps back as new), altered, turned, kept; and the new ones. *)
    Definition is_gone (u : key) : bool := mem u rem && (mem u new || negb (mem u N')).
  End Counting.

  (** Theorem 10: with i new, t turned, l lost and m altered neighbours the lead is at least [lead_at], whichever they are. *)
  Theorem stacked_lead_sound :
    forall (V : stacked_votes) (N' : list key) (b : key -> nat -> Z) (p g : nat -> Z) (a k : nat) (new rem alt turn : list key),
      sensible V -> stacked_reading V p g -> stacked_changes V N' b a new rem alt turn -> k <> a -> (by_edge V = true -> g_of V a = g_of V k) ->
      exists l m i t,
        0 <= l /\ 0 <= m /\ 0 <= t /\ 0 <= i /\ l + m <= degree V
        /\ l <= Z.of_nat (length rem) /\ m <= Z.of_nat (length alt) /\ i + t <= Z.of_nat (length (new ++ turn)) /\ (by_edge V = false -> t = 0)
        /\ forall D, Permutation D (deltas V a k) -> falling D ->
             lead_at V a k l m i (i + t) (top (Z.to_nat (l + m)) D) <= stacked V p g N' b a - stacked V p g N' b k.
End Stacked.
