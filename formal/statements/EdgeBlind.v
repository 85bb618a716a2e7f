(* What EdgeBlind.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Training that reads no edge (docs/proofs.md, Theorem 16): a certificate about edges then holds for edges that are changed at any time. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph PerNeighbour PerPair Checker StackedVote StackedChecker StackedProofs StackedGraph.
Import ListNotations.
Open Scope Z_scope.

Section EdgeBlind.
  Variables (id F W theta : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).

  (** What training makes of a graph: weights, scaling, number of epochs, everything that is fixed afterwards. The features of a labelled node include
      its class. *)
  Definition training := graph -> theta.

  (** Training reads the labelled nodes and nothing else: no arc, no node without a label. *)
  Definition edge_blind (labelled : id -> Prop) (learn : training) : Prop :=
    forall G G', (forall x, labelled x -> node G' x = node G x) -> learn G' = learn G.

  (** Before training, any edges and any nodes without a label were changed. *)
  Definition before_training (labelled : id -> Prop) (G G0 : graph) : Prop :=
    exists A, leads A G G0 /\ forall x, labelled x -> spares A x.

  (** Theorem 16: training is the same, whatever was done to edges and to nodes without a label. *)
  Theorem edge_blind_same labelled learn G G0 :
    edge_blind labelled learn -> before_training labelled G G0 -> learn G0 = learn G.

  (** Theorem 16, any model: what holds for the trained model on every attacked graph holds whatever graph it was trained on. *)
  Theorem edge_blind_any labelled learn (decides : theta -> graph -> id -> nat -> Prop) (reachable : graph -> Prop) v a G G0 G' k :
    edge_blind labelled learn -> before_training labelled G G0 ->
    (forall H j, reachable H -> decides (learn G) H v j -> j = a) -> reachable G' ->
    decides (learn G0) G' v k -> k = a.
End EdgeBlind.

(** Theorem 16, stacked votes: where the checker says yes to a budget, the label is that of the file on every attacked graph within it, also if the models
    were trained on another graph: any edges and any nodes without a label may have been changed before. *)
Theorem edge_blind_certificate :
  forall (id F W theta : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (labelled : id -> Prop) (learn : training id F W theta)
         (votes_read : theta -> graph id F W -> id -> (nat -> Z) -> Prop) (scores_read : theta -> graph id F W -> (nat -> Z) -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (B : budget) (own : bool),
    edge_blind id F W theta labelled learn ->
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    stacked_holds s (count_stacked s t) (B, own) = true ->
    stacked_model id F W v vote_steps (votes_read (learn G)) (by_edge _ V) -> sfaithful id F W v vote_steps (votes_read (learn G)) V G ->
    (forall G' p g, stacked_attacked id F W id_eq v B G G' -> scores_read (learn G) G' p g -> stacked_reading id V p g) ->
    forall (G0 G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      before_training id F W labelled G G0 -> stacked_attacked id F W id_eq v B G G' ->
      sreading id F W v (votes_read (learn G0)) G' N' b -> scores_read (learn G0) G' p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b = y_label (count_stacked s t).

(** Training that looks at one arc, and a model that says what it saw: fixed, it withstands every change of the graph, and one edge before training
    changes its label. So the hypothesis cannot be dropped. *)
Definition sees_an_arc (G : graph nat unit unit) : nat := match arc G 0%nat 1%nat with Some _ => 1%nat | None => 0%nat end.

(** Theorem 16 needs its hypothesis. *)
Theorem one_training_edge :
  exists (G G0 : graph nat unit unit) (A : attack nat), leads A G G0 /\ length (added A) = 1%nat /\ (forall x, spares A x) /\ sees_an_arc G <> sees_an_arc G0.
