(** Stacked votes, one level (docs/proofs.md, "Stacked votes"): real-valued ballots of neighbours, here whole numbers of a unit. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote PerNeighbourVote.
Import ListNotations.
Open Scope Z_scope.

(** Ballots are written in units: [unit] of them are one vote. A ballot gives no class less than nothing, and all classes together one vote. *)
Section Stacked.
  Variable key : Type.
  Hypothesis key_eq : forall x y : key, {x = y} + {x <> y}.
  Variable unit : Z.
  Hypothesis unit_pos : 0 <= unit.
  Definition is_ballot (b : nat -> Z) : Prop := (forall k, 0 <= b k) /\ (forall j k, j <> k -> b j + b k <= unit).

  (** Score of class k: the prior s, and the ballots of all neighbours. *)
  Definition stacked (s : nat -> Z) (N : list key) (b : key -> nat -> Z) (k : nat) : Z := s k + sum key (fun j => b j k) N.

  (** Theorem N1, corollary: r neighbours that come or go, whichever they are, move a margin by no more than r votes. *)
  Theorem stacked_sound :
    forall (C : nat) (s : nat -> Z) (N N' : list key) (b : key -> nat -> Z) (a : nat) (r : Z),
      NoDup N -> NoDup N' -> (forall j, In j (N ++ N') -> is_ballot (b j)) ->
      (a < C)%nat ->
      (forall k, (k < C)%nat -> k <> a -> r * unit + stacked s N b k + tie k a <= stacked s N b a) ->
      amount key (fun j => negb (mem key key_eq j N')) N + amount key (fun j => negb (mem key key_eq j N)) N' <= r ->
      best (stacked s N' b) C = a.
  Proof.
    intros C s N N' b a r HN HN' HB Ha HM HR. apply label_is_best; split; auto; intros k Hk K; specialize (HM k Hk K).
    assert (D : forall j, In j (N ++ N') -> - unit <= b j a - b j k <= unit).
    { intros j I; destruct (HB j I) as [P Q]; specialize (Q a k (not_eq_sym K)). pose proof (P a); pose proof (P k); lia. }
    assert (S : forall M k, stacked s M b k = s k + sum key (fun j => b j k) M) by reflexivity. rewrite !S in *.
    set (d := fun j => b j a - b j k).
    assert (SD : forall M, sum key (fun j => b j a) M - sum key (fun j => b j k) M = sum key d M).
    { intro M; unfold d; induction M as [|j M IH]; simpl; lia. }
    assert (SPLIT : forall M M', sum key d M = sum key (fun j => if mem key key_eq j M' then d j else 0) M
                                              + sum key (fun j => if mem key key_eq j M' then 0 else d j) M).
    { intros M M'; induction M as [|j M IH]; simpl; [auto|]. destruct (mem key key_eq j M'); lia. }
    assert (COMMON : sum key (fun j => if mem key key_eq j N' then d j else 0) N = sum key (fun j => if mem key key_eq j N then d j else 0) N').
    { rewrite !sum_filter. apply sum_perm, Permutation.NoDup_Permutation; try apply NoDup_filter; auto.
      intro j; rewrite !filter_In, !mem_true; tauto. }
    assert (OUT : forall M M', incl M (N ++ N') ->
       Z.abs (sum key (fun j => if mem key key_eq j M' then 0 else d j) M) <= unit * amount key (fun j => negb (mem key key_eq j M')) M).
    { intros M M' I; unfold amount; induction M as [|j M IH]; [simpl; lia|]. cbn [sum].
      assert (IH' := IH (fun u J => I u (or_intror J))). specialize (D j (I j (or_introl eq_refl))). unfold d at 1.
      destruct (mem key key_eq j M'); cbn [negb bit]; nia. }
    pose proof (OUT N N' ltac:(intros u J; apply in_app_iff; auto)) as O1. pose proof (OUT N' N ltac:(intros u J; apply in_app_iff; auto)) as O2.
    pose proof (SPLIT N N') as S1. pose proof (SPLIT N' N) as S2. pose proof (SD N) as D1. pose proof (SD N') as D2.
    set (x := amount key (fun j => negb (mem key key_eq j N')) N) in *. set (y := amount key (fun j => negb (mem key key_eq j N)) N') in *.
    assert (unit * (x + y) <= r * unit) by nia. lia.
  Qed.
End Stacked.
