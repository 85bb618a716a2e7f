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

    (** ---- Proofs ---- *)

    Lemma leans_range y a k u : a <> k -> -1 <= leans y a k u <= 1.
    Proof.
      intro N. unfold leans, bit. destruct (beq (votes_for J y u) (Some a)), (beq (votes_for J y u) (Some k)); lia.
    Qed.
    Lemma leans_sum y a k l : sum key (bit y a) l - sum key (bit y k) l = sum key (leans y a k) l.
    Proof. induction l as [|u l IH]; [reflexivity|]. cbn [sum]. unfold leans at 1. lia. Qed.
    Lemma sum_at_most_length f l : (forall u, In u l -> f u <= 1) -> sum key f l <= Z.of_nat (length l).
    Proof.
      induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun w I => H w (or_intror I))).
      specialize (H u (or_introl eq_refl)). lia.
    Qed.
    Lemma sum_at_least_length f l : (forall u, In u l -> -1 <= f u) -> - Z.of_nat (length l) <= sum key f l.
    Proof.
      induction l as [|u l IH]; intro H; [simpl; lia|]. cbn [sum length]. specialize (IH (fun w I => H w (or_intror I))).
      specialize (H u (or_introl eq_refl)). lia.
    Qed.

    (** Neighbours that come or go take one each. *)
    Lemma moved_sum d e N N' : (forall u, -1 <= d u <= 1) -> neighbours_moved e N N' -> sum key d N - e <= sum key d N'.
    Proof.
      intros R [HN [HN' F]].
      set (here := fun u => mem key key_eq u N). set (there := fun u => mem key key_eq u N').
      pose proof (sum_split key d there N) as S1. pose proof (sum_split key d here N') as S2.
      assert (E : sum key d (filter here N') = sum key d (filter there N)).
      { apply sum_perm. apply NoDup_Permutation; try (apply NoDup_filter; assumption).
        intro u. rewrite !filter_In. unfold here, there. rewrite !(mem_true key key_eq). tauto. }
      pose proof (sum_at_most_length d (filter (fun u => negb (there u)) N) (fun u _ => proj2 (R u))).
      pose proof (sum_at_least_length d (filter (fun u => negb (here u)) N') (fun u _ => proj1 (R u))).
      unfold here, there in *. lia.
    Qed.

    (** Neighbours that are not steady are at worst for the rival. *)
    Lemma steady_sum f sure y y' a k : a <> k -> poisoned (own J) f y y' -> (forall u, In u (near J) -> sure u = true -> steady f y u) ->
      sum key (leans y a k) (filter sure (near J)) - Z.of_nat (length (filter (fun u => negb (sure u)) (near J))) <= sum key (leans y' a k) (near J).
    Proof.
      intros N P H. pose proof (sum_split key (leans y' a k) sure (near J)) as S.
      assert (E : sum key (leans y' a k) (filter sure (near J)) = sum key (leans y a k) (filter sure (near J))).
      { assert (Q : forall u, In u (filter sure (near J)) -> leans y' a k u = leans y a k u).
        { intros u I. apply filter_In in I. destruct I as [I Hs]. unfold leans, bit. rewrite (H u I Hs y' P). reflexivity. }
        clear -Q. induction (filter sure (near J)) as [|u l IH]; [reflexivity|]. cbn [sum]. rewrite (Q u (or_introl eq_refl)), IH; auto.
        intros w I; apply Q; right; auto. }
      pose proof (sum_at_least_length (leans y' a k) (filter (fun u => negb (sure u)) (near J)) (fun u _ => proj1 (leans_range y' a k u N))). lia.
    Qed.

    (** Theorem 17: f changed labels and e neighbours that come or go leave the label as it is. *)
    Theorem labels_and_edges_sound (f : nat) (e : Z) (sure : key -> bool) (y y' : nat -> vote) (N' : list key) (C a : nat) :
      0 <= each J -> withstands_both f e sure y C a ->
      (forall u, In u (near J) -> sure u = true -> steady f y u) ->
      poisoned (own J) f y y' -> neighbours_moved e (near J) N' ->
      best (joint_score y' N') C = a.
    Proof.
      intros Q [Ha H] St P M. apply label_is_best; split; auto. intros k Hk N.
      destruct (falling_exists (label_costs (own J) y a k)) as [D [PD FD]]. specialize (H k Hk N D PD FD).
      pose proof (label_lead_bound (own J) y y' a k f D (not_eq_sym N) P PD FD) as L.
      pose proof (steady_sum f sure y y' a k (not_eq_sym N) P St) as S1.
      pose proof (moved_sum (leans y' a k) e (near J) N' (fun u => leans_range y' a k u (not_eq_sym N)) M) as S2.
      unfold joint_score. pose proof (leans_sum y' a k N') as E. unfold label_lead in L. unfold label_lead in H. nia.
    Qed.
  End Target.
End Joint.

(** Where Theorem 14 proves that a neighbour's own label withstands f changed labels, its vote is steady: the hypothesis above. *)
Theorem certified_is_steady :
  forall (key : Type) (J : joint key) (u : key) (theirs : label_votes) (f C : nat) (y : nat -> vote) (c : nat),
    entries theirs = entries (own key J) -> (forall i, audited theirs i = audited (own key J) i) ->
    0 <= asked theirs -> (c < C)%nat -> withstands_labels theirs y C c f ->
    (forall y' b, decided theirs y' C b -> votes_for key J y' u = Some b) ->
    decided theirs y C c -> steady key J f y u.
Proof.
  intros key J u theirs f C y c E A M L W R D y' P.
  assert (P' : poisoned theirs f y y').
  { destruct P as [P1 P2]. split; [intros i Hi Ai; apply P1; [rewrite <- E; auto|rewrite <- A; auto]|].
    unfold changed_entries in *. rewrite E; exact P2. }
  rewrite (R y' c (label_votes_sound theirs y C c f L M W y' P')), (R y c D). reflexivity.
Qed.
