(* What Gated.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
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
  Variable f : model id (option F) W. (* None: features that are not shown *)
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
