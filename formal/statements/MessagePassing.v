(* What MessagePassing.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Networks that pass messages along incoming arcs are local: the hypothesis of all certificates, by construction. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph.

Section MessagePassing.
  Variables (id F W S M : Type).
  Notation graph := (graph id F W).

  (** What a node hears: of each sender the value of the arc and the sender's state. Any aggregation whatever, as long as
      it sees nothing else; degrees of senders (GCN) are states of an earlier layer. *)
  Definition inbox := id -> option (W * S).
  Variable start : option F -> S.
  Variable gather : nat -> inbox -> M.
  Hypothesis gather_ext : forall t b b', (forall y, b y = b' y) -> gather t b = gather t b'.
  Variable update : nat -> S -> M -> S.
  Variable readout : S -> vote.

  (** What a node knows after t layers. *)
  Fixpoint state (G : graph) (t : nat) (x : id) : S :=
    match t with
    | O => start (node G x)
    | Datatypes.S t' => update t' (state G t' x)
        (gather t' (fun y => match arc G y x with None => None | Some w => Some (w, state G t' y) end))
    end.

  (** The network as a model: its vote for v after the last layer. *)
  Definition network (layers : nat) : model id F W := fun G v y => y = readout (state G layers v).

  (** Section 1, Model: such a network is local, along incoming arcs, on every graph. *)
  Theorem message_passing_local layers : local (network layers).
End MessagePassing.
