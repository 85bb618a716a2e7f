(** Gated features, node task (docs/proofs.md, Theorem 5): the target's own features may change too. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric.
Import ListNotations.
Open Scope Z_scope.

Section Gated.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables (T : nat) (h : id -> nat).
  Variable f : model id (option F) W.            (* None: features that are not shown *)
  Hypothesis f_local : local f.
  Variable v : id.

  (** The divisions, gated: the subgraph of group i shows the features of the nodes of group i alone. *)
  Definition gate (i : nat) (H : graph) : Graph.graph id (option F) W :=
    Graph (fun x => match node H x with None => None | Some c => Some (if Nat.eqb (h x) i then Some c else None) end) (arc H).

  (** A target abstains where it has neither an incoming arc nor its own features. *)
  Definition gated (i : nat) : model id F W := fun H w y =>
    ((hears H w \/ h w = i) /\ f (gate i H) w y) \/ (~ (hears H w \/ h w = i) /\ y = None).

  Notation sub := (sub id F W h).

  (** The certificate speaks the truth about G: T groups, stable votes read alike, no incoming arc where a vote is not marked as reached, and
      the vote of v's own group is listed. *)
  Record tfaithful (V : votes) (G : graph) : Prop := {
    tgroups_ok : groups V = T;
    tcast_ok : forall i, (i < T)%nat -> stable V i = true -> forall y, gated i (sub i G) v y -> y = cast V i;
    ttier_ok : forall i, (i < T)%nat -> tier_of V i <> Reached -> ~ reached id F W h v G i;
    tunlisted_ok : forall i, (i < T)%nat -> tier_of V i = Unlisted -> h v <> i
  }.
  (** What a machine may read on G: one vote of v in each group. *)
  Definition treading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> gated i (sub i G) v (r i).

  (** The attack without the change of the target's own features, which is charged to o and not to r. *)
  Definition but_target (A : attack id) : attack id :=
    Attack id (added A) (deleted A) (changed A) (injected A) (brought A) (removed A) (remove id_eq v (altered A)).

  (** As [attacked]; the target stays, and its own features may change if [own]; but no arc gets another value thereby. *)
  Definition tattacked (own : bool) (B : budget) (G G' : graph) : Prop :=
    exists A, leads A G G' /\ arcs_by (but_target A) G G' /\ affords id_eq B (but_target A) /\ ~ In v (injected A) /\ ~ In v (removed A)
      /\ (own = false -> ~ In v (altered A)) /\ node G v <> None /\ node G' v <> None.

  (** n0, n1 as in Theorem 4 plus o; n2 as in Theorem 4. *)
  Definition gated_reach_of (own : bool) (reached : Z) (B : budget) : reach :=
    let n := node_reach_of reached B in let o := Some (if own then 1 else 0) in
    Reach (ladd (all n) o) (ladd (beyond n) o) (unlisted n).
  (** Theorem 5: n0, n1, n2 of a budget, with |S(v)| taken from the marks. *)
  Definition gated_reach (own : bool) (V : votes) (B : budget) : reach := gated_reach_of own (num_reached V) B.

  (** ---- Proofs ---- *)

  Lemma gate_well_formed i (H : graph) : well_formed H -> well_formed (gate i H).
  Proof.
    intros w x y a; destruct (w x y a) as [b c]; simpl; split;
      [destruct (node H x)|destruct (node H y)]; congruence.
  Qed.

  Lemma gated_local i : local (gated i).
  Proof.
    intros G G' u K y w w' Kv k k' [n s].
    assert (Q : hears G u <-> hears G' u).
    { split; intros [x a].
      - assert (Kx : K x) by (apply (k x u); auto). exists x; rewrite s; auto.
      - assert (Kx : K x) by (apply (k' x u); auto). exists x; rewrite <- s; auto. }
    assert (E : f (gate i G) u y <-> f (gate i G') u y).
    { apply (f_local (gate i G) (gate i G') u K); auto using gate_well_formed.
      split; [intros x Kx; simpl; rewrite n; auto|intros x z Kx Kz; simpl; auto]. }
    unfold gated; tauto.
  Qed.

  Section Attack.
    Variables (own : bool) (A : attack id) (G G' : graph) (B : budget).
    Hypothesis L : leads A G G'.
    Hypothesis L4 : arcs_by (but_target A) G G'.
    Hypothesis v1 : ~ In v (injected A).
    Hypothesis v2 : ~ In v (removed A).
    Hypothesis v3 : own = false -> ~ In v (altered A).
    Hypothesis here : node G v <> None.
    Hypothesis here' : node G' v <> None.

    (** G' with the target's features as they were in G: the attacked graph of Theorem 4. *)
    Definition restored : graph := Graph (fun x => if id_eq x v then node G v else node G' x) (arc G').

    Lemma restored_leads : leads (but_target A) G restored.
    Proof.
      destruct L as [w w' n fr br ar]; split; simpl; auto.
      - intros x y a; simpl in a; destruct (w' x y a); simpl; destruct (id_eq x v), (id_eq y v); subst; auto.
      - intro x; destruct (id_eq x v) as [->|N]; auto. destruct (n x) as [|[|[|I]]]; auto.
        right; right; right; apply in_in_remove; auto.
    Qed.

    Lemma restored_spares : spares (but_target A) v.
    Proof. repeat split; simpl; auto. apply remove_In. Qed.

    Lemma hidden i y : h v <> i \/ own = false -> (gated i (sub i restored) v y <-> gated i (sub i G') v y).
    Proof.
      intro N. assert (E : f (gate i (sub i restored)) v y <-> f (gate i (sub i G')) v y).
      { apply (f_local _ _ v (fun _ => True)); auto.
        - apply gate_well_formed, keep_well_formed, (after_ok _ _ _ _ _ _ restored_leads).
        - apply gate_well_formed, keep_well_formed, (after_ok _ _ _ _ _ _ L).
        - intros x z _ _; exact I.
        - intros x z _ _; exact I.
        - split; [|intros; reflexivity]. intros x _; simpl.
          destruct (id_eq x v) as [->|]; [|auto].
          destruct N as [N|N].
          + destruct (Nat.eqb_spec (h v) i); [contradiction|]. destruct (node G v), (node G' v); auto; contradiction.
          + assert (Q : node G' v = node G v).
            { destruct (nodes_ok _ _ _ _ _ _ L v) as [|[|[|]]]; auto; exfalso; auto. apply (v3 N); auto. }
            rewrite Q; auto. }
      unfold gated, hears in *. simpl in *. tauto.
    Qed.

    Variable V : votes.
    Hypothesis afforded : affords id_eq B (but_target A).
    Hypothesis true_votes : tfaithful V G.
    Variable r : nat -> vote.
    Hypothesis r_read : treading G' r.

    Notation news := (new_groups id id_eq h v (but_target A)).
    Notation pairs := (pair_groups id id_eq h v (but_target A)).
    Notation nodes := (node_groups id h (but_target A)).
    Let mine : list nat := if own then [h v] else [].
    Let at_reached : list nat := filter (fun i => teq (tier_of V i) Reached) (seq 0 T).
    Let nodes_reached : list nat := filter (fun i => if in_dec Nat.eq_dec i nodes then true else false) at_reached.

    Lemma not_mine i : ~ In i mine -> h v <> i \/ own = false.
    Proof. unfold mine; destruct own; auto; simpl; left; intro; apply H; auto. Qed.

    Lemma t_beyond i : (i < T)%nat -> stable V i = true -> tier_of V i <> Reached ->
      ~ In i news -> h v <> i \/ own = false -> r i = cast V i.
    Proof.
      intros Hi Hs Ht N1 N2; apply (tcast_ok _ _ true_votes i Hi Hs).
      apply (charged_beyond id F W id_eq h (gated i) (gated_local i) v (but_target A) G restored restored_leads restored_spares); auto.
      - apply (ttier_ok _ _ true_votes i Hi Ht).
      - apply hidden; auto.
    Qed.

    Lemma gated_moves : moves V (gated_reach own V B) r.
    Proof.
      apply (Moves V _ r ((news ++ pairs ++ nodes_reached) ++ mine) (news ++ mine) news); rewrite ?(tgroups_ok _ _ true_votes).
      - intros i Hi Hs. destruct (in_dec Nat.eq_dec i ((news ++ pairs ++ nodes_reached) ++ mine)) as [|N]; auto; right.
        rewrite !in_app_iff in N. assert (N4 := not_mine i ltac:(tauto)).
        destruct (tier_of V i) eqn:Et; [|apply t_beyond; auto; try congruence; tauto|apply t_beyond; auto; try congruence; tauto].
        apply (tcast_ok _ _ true_votes i Hi Hs).
        apply (charged id F W id_eq h (gated i) (gated_local i) v (but_target A) G restored restored_leads restored_spares); [tauto|tauto| |].
        + intro I; apply N; left; right; right; apply filter_In; split.
          * apply filter_In; split; [apply in_seq; lia|rewrite Et; auto].
          * destruct (in_dec Nat.eq_dec i nodes); [auto|contradiction].
        + apply hidden; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i (news ++ mine)) as [|N]; auto; right.
        rewrite in_app_iff in N; apply t_beyond; auto; apply not_mine; auto.
      - intros i Hi Hs Ht. destruct (in_dec Nat.eq_dec i news) as [|N]; auto; right.
        apply t_beyond; auto; [congruence|left; apply (tunlisted_ok _ _ true_votes i Hi Ht)].
      - pose proof (few_new id F W id_eq h v (but_target A) G restored restored_leads B afforded) as F1.
        assert (F2 : few pairs (ladd (delete_edges B) (change_edges B))).
        { apply few_app; apply few_map; [apply (few_deleted _ _ _ _ afforded)|apply (few_changed _ _ _ _ afforded)]. }
        assert (F3 : few nodes_reached (lmin (touched_nodes B) (Some (num_reached V)))).
        { assert (Q : (length nodes_reached <= length nodes)%nat /\ (length nodes_reached <= length at_reached)%nat).
          { split; apply NoDup_incl_length; try apply NoDup_filter, NoDup_filter, seq_NoDup.
            - intros i Hi; apply filter_In in Hi; destruct Hi as [_ Hi].
              destruct (in_dec Nat.eq_dec i nodes); [auto|discriminate].
            - intros i Hi; apply filter_In in Hi; tauto. }
          assert (N : few nodes (touched_nodes B)).
          { apply few_app; apply few_map; [apply (few_removed _ _ _ _ afforded)|apply (few_altered _ _ _ _ afforded)]. }
          assert (E : Z.of_nat (length at_reached) = num_reached V).
          { unfold num_reached, at_reached; rewrite num_filter, (tgroups_ok _ _ true_votes); auto. }
          unfold few, within in *; destruct (touched_nodes B); simpl; lia. }
        assert (F4 : few mine (Some (if own then 1 else 0))) by (unfold few, mine; destruct own; simpl; lia).
        pose proof (few_app _ _ _ _ (few_app _ _ _ _ F1 (few_app _ _ _ _ F2 F3)) F4) as H.
        unfold few, within, gated_reach, gated_reach_of, node_reach, node_reach_of, touched_edges in *; simpl.
        destruct (joined_nodes B), (add_edges B), (delete_edges B), (change_edges B),
          (lmin (touched_nodes B) (Some (num_reached V))); simpl in *; auto; lia.
      - apply few_app; [apply (few_new id F W id_eq h v (but_target A) G restored restored_leads B afforded)|].
        unfold few, mine; destruct own; simpl; lia.
      - apply (few_new id F W id_eq h v (but_target A) G restored restored_leads B afforded).
    Qed.
  End Attack.
End Gated.

(** Theorem 5, the certificate with gated features: local model, votes that are those of G, the test of Theorem 2 passed with n0, n1, n2 of Theorem
    5. Then the label of v is a on every attacked graph G' within the budget, the target's own features changed too if [own]. That no edge value is
    computed from them stands in [tattacked]. *)
Theorem gated_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (h : id -> nat)
         (f : model id (option F) W) (v : id) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat)
         (own : bool) (B : budget),
    local f ->
    tfaithful id F W T h f v V G ->
    withstands V C P 0 a (gated_reach own V B) ->
    forall (G' : graph id F W) (r : nat -> vote),
      tattacked id F W id_eq v own B G G' ->
      treading id F W T h f v G' r ->
      voted C T P r = a.
Proof.
  intros id F W id_eq T h f v G V C P a own B Lf Hv Hw G' r [A [L [L4 [Ha [v1 [v2 [v3 [h1 h2]]]]]]]] Hr.
  rewrite <- (tgroups_ok _ _ _ _ _ _ _ _ _ Hv).
  apply (vote_sound V C P P 0 a (gated_reach own V B) r); auto; [intros; lia|].
  eapply gated_moves; eauto.
Qed.
