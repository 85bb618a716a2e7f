(* What GraphVotes.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Graph votes (docs/proofs.md, Theorems 22 and 23): a score of what is trusted, and one bounded vote for each item that may change. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote StackedVote LabelVotes.
Import ListNotations.
Open Scope Z_scope.

(** What a certificate knows of one graph. Items are numbered from 0. [advance]: what each class has in advance, from what is trusted;
    [says]: what an item in a state gives to a class; [states]: how many states an item may take. *)
Record graph_votes := GraphVotes {
  items : nat; given : nat -> Z; says : nat -> nat -> nat -> Z; states : nat -> nat
}.

Section Items.
  Variable G : graph_votes.

  (** score_k(s), where s is the state of each item *)
  Definition graph_score (s : nat -> nat) (k : nat) : Z := given G k + over (items G) (fun i => says G i (s i) k).

  (** lead_k(s) = score_a - score_k - [k < a] *)
  Definition graph_lead (s : nat -> nat) (a k : nat) : Z := graph_score s a - graph_score s k - tie k a.

  (** What an item in a state does for a against k. *)
  Definition speaks (a k i x : nat) : Z := says G i x a - says G i x k.

  (** [low] is the least of that over the states of each item. *)
  Definition is_low (a k : nat) (low : nat -> Z) : Prop := forall i, (i < items G)%nat ->
    (forall x, (x < states G i)%nat -> low i <= speaks a k i x) /\ exists x, (x < states G i)%nat /\ speaks a k i x = low i.

  (** f_i = u(z_i, s_i) - min over the states *)
  Definition loss (low : nat -> Z) (s : nat -> nat) (a k i : nat) : Z := speaks a k i (s i) - low i.

  (** The losses of the items of one group: edges that are there, and pairs that are apart, are counted apart. *)
  Definition members (group : nat -> bool) (b : bool) : list nat := filter (fun i => eqb (group i) b) (seq 0 (items G)).

  (** What each item of a group may lose at most. *)
  Definition losses (group : nat -> bool) (b : bool) (low : nat -> Z) (s : nat -> nat) (a k : nat) : list Z := map (loss low s a k) (members group b).

  (** The items of a group that are in another state now. *)
  Definition moved (group : nat -> bool) (b : bool) (s s' : nat -> nat) : list nat := filter (fun i => negb (s' i =? s i)%nat) (members group b).

  (** s' is s after an attack that changes at most m items of one group and m' of the other, to any states. *)
  Definition attacked_items (group : nat -> bool) (m m' : nat) (s s' : nat -> nat) : Prop :=
    (forall i, (i < items G)%nat -> (s' i < states G i)%nat) /\ (length (moved group true s s') <= m)%nat /\ (length (moved group false s s') <= m')%nat.

  (** Theorem 22, the test: the m largest losses of one group and the m' largest of the other sum to at most the lead. *)
  Definition withstands_items (group : nat -> bool) (s : nat -> nat) (C a m m' : nat) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists low D D', is_low a k low
      /\ Permutation D (losses group true low s a k) /\ falling D /\ Permutation D' (losses group false low s a k) /\ falling D'
      /\ top m D + top m' D' <= graph_lead s a k.
End Items.

(** Where nodes come and go, only their types and their number count. [by_size]: what a number of nodes gives to a class; [of_type]: what a node
    of a type gives; [types]: how many types there are. *)
Record node_votes := NodeVotes { by_size : nat -> nat -> Z; of_type : nat -> nat -> Z; types : nat }.

Section Nodes.
  Variable N : node_votes.

  (** score_k of a graph whose nodes have these types *)
  Definition node_score (l : list nat) (k : nat) : Z := by_size N (length l) k + plus (map (fun t => of_type N t k) l).

  (** lead_k = score_a - score_k - [k < a] *)
  Definition node_lead (l : list nat) (a k : nat) : Z := node_score l a - node_score l k - tie k a.

  (** What a node of a type does for a against k. *)
  Definition backs (a k t : nat) : Z := of_type N t a - of_type N t k.

  (** What a number of nodes does for a against k. *)
  Definition size_lead (a k n : nat) : Z := by_size N n a - by_size N n k.

  (** [low] is the least vote of a type, for a against k. *)
  Definition is_lowest (a k : nat) (low : Z) : Prop :=
    (forall t, (t < types N)%nat -> low <= backs a k t) /\ exists t, (t < types N)%nat /\ backs a k t = low.

  (** l' is l after i injections, d deletions and r alterations. Edges are not read, so that any may change. *)
  Definition attacked_by (i d r : nat) (l l' : list nat) : Prop := exists kept gone came,
    Permutation l (kept ++ gone) /\ Permutation l' (kept ++ came) /\ length gone = (d + r)%nat /\ length came = (i + r)%nat
    /\ forall t, In t came -> (t < types N)%nat.

  (** At most so many of each. *)
  Definition attacked_within (i d r : nat) (l l' : list nat) : Prop :=
    exists i' d' r', (i' <= i)%nat /\ (d' <= d)%nat /\ (r' <= r)%nat /\ attacked_by i' d' r' l l'.

  (** At most m of all kinds together. *)
  Definition attacked_in_all (m : nat) (l l' : list nat) : Prop := exists i d r, (i + d + r <= m)%nat /\ attacked_by i d r l l'.

  (** What i injections, d deletions and r alterations take at most from the lead. D: votes for a against k, the largest first. *)
  Definition node_fall (D : list Z) (low : Z) (n a k i d r : nat) : Z :=
    size_lead a k n - size_lead a k (n - (d + r) + (i + r)) + top (d + r) D - Z.of_nat (i + r) * low.

  (** Theorem 23, the test, for a set of numbers of changes. *)
  Definition withstands_nodes (l : list nat) (C a : nat) (may : nat -> nat -> nat -> Prop) : Prop :=
    forall k, (k < C)%nat -> k <> a -> exists low D, is_lowest a k low /\ Permutation D (map (backs a k) l) /\ falling D
      /\ forall i d r, may i d r -> (d + r <= length l)%nat -> node_fall D low (length l) a k i d r <= node_lead l a k.
End Nodes.

(** ---- Proofs ---- *)
Section ItemProofs.
  Variable G : graph_votes.

  (** Theorem 22, "if". *)
  Theorem graph_votes_sound group s C a m m' : (a < C)%nat -> (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    withstands_items G group s C a m m' -> forall s', attacked_items G group m m' s s' -> is_label (graph_score G s') C a.

  (** Theorem 22, "only if": if the largest losses are more than a lead, changing these items brings the rival ahead. *)
  Theorem graph_votes_exact group s C a m m' k low D D' : (k < C)%nat -> k <> a -> is_low G a k low ->
    (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    Permutation D (losses G group true low s a k) -> falling D -> Permutation D' (losses G group false low s a k) -> falling D' ->
    graph_lead G s a k < top m D + top m' D' -> exists s', attacked_items G group m m' s s' /\ ~ is_label (graph_score G s') C a.

  (** One kind of change: the "n largest losses" of a file. *)
  Corollary graph_votes_one_kind s C a m : (a < C)%nat -> (forall i, (i < items G)%nat -> (s i < states G i)%nat) ->
    withstands_items G (fun _ => true) s C a m 0 ->
    forall s', (forall i, (i < items G)%nat -> (s' i < states G i)%nat) ->
      (length (filter (fun i => negb (s' i =? s i)%nat) (seq 0 (items G))) <= m)%nat -> is_label (graph_score G s') C a.
End ItemProofs.

Section NodeProofs.
  Variable N : node_votes.

  (** Theorem 23, "if", for each set of numbers of changes. *)
  Theorem node_votes_sound l C a (may : nat -> nat -> nat -> Prop) : (a < C)%nat -> withstands_nodes N l C a may ->
    forall l' i d r, may i d r -> attacked_by N i d r l l' -> is_label (node_score N l') C a.

  (** So many changes of each kind. *)
  Corollary node_votes_within l C a i d r : (a < C)%nat -> withstands_nodes N l C a (fun i' d' r' => (i' <= i)%nat /\ (d' <= d)%nat /\ (r' <= r)%nat) ->
    forall l', attacked_within N i d r l l' -> is_label (node_score N l') C a.

  (** So many changes in all, of any kind. *)
  Corollary node_votes_in_all l C a m : (a < C)%nat -> withstands_nodes N l C a (fun i d r => (i + d + r <= m)%nat) ->
    forall l', attacked_in_all N m l l' -> is_label (node_score N l') C a.

  (** Theorem 23, "only if": if the fall is more than the lead, these changes bring the rival ahead. *)
  Theorem node_votes_exact l C a k low D i d r : (k < C)%nat -> k <> a -> is_lowest N a k low -> Permutation D (map (backs N a k) l) -> falling D ->
    (d + r <= length l)%nat -> node_lead N l a k < node_fall N D low (length l) a k i d r ->
    exists l', attacked_by N i d r l l' /\ ~ is_label (node_score N l') C a.
End NodeProofs.
