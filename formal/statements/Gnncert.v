(* What Gnncert.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** GNNCert-E, -N and -EN (docs/proofs.md, section 3, "GNNCert"): edges, features, or both are divided, nodes are not. The model
    may be any function of the graph that it is shown; it need not be local. The attacker neither injects nor deletes nodes. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated.
Import ListNotations.
Open Scope Z_scope.

(** A grid of H rows and W columns: e rows and c columns cover H W - (H - e)+ (W - c)+ cells. *)
Definition grid_moved (H W : Z) (e c : lim) : lim :=
  let rest (n : Z) (m : lim) := match m with Some x => Z.max (n - x) 0 | None => 0 end in
  Some (H * W - rest H e * rest W c).

Section Gnncert.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variable T : nat.

  (** What is read for a target, or for a whole graph: any relation between a graph and votes that sees nothing but nodes
      and arcs. *)
  Definition shown_model (E : Type) := Graph.graph id E W -> vote -> Prop.

  (** The model sees nothing but nodes and arcs. *)
  Definition sees_only (E : Type) (g : shown_model E) : Prop :=
    forall G G' y, (forall x, node G' x = node G x) -> (forall x z, arc G' x z = arc G x z) -> (g G y <-> g G' y).

  (** The attack leaves nodes alone but for the features of those that are altered, and no arc gets another value thereby. *)
  Definition edges_and_features (A : attack id) (G G' : graph) : Prop :=
    (forall x, node G' x = node G x \/ (In x (altered A) /\ node G x <> None /\ node G' x <> None))
    /\ (forall x y, arc G' x y = arc G x y \/ listed x y (added A) \/ listed x y (deleted A) \/ listed x y (changed A)).
  (** Row i of the grid has the edges of group i, column j shows the features of group j. *)
  Variables (he : id -> id -> nat) (hf : id -> nat).
  Hypothesis he_sym : forall x y, he x y = he y x.

  (** What the model is shown in row i and column j. *)
  Definition cell (i j : nat) (G : graph) : Graph.graph id (option F) W := gate id F W hf j (esub id F W he i G).

  (** The pairs that are charged to e+, e- and e~. *)
  Definition pairs_of (A : attack id) : list (id * id) := added A ++ deleted A ++ changed A.

  (** What the votes are, and that the certificate knows them: [look i] is what the model is shown for vote i. *)
  Section Votes.
    Variables (E : Type) (g : shown_model E) (look : nat -> graph -> Graph.graph id E W).

    (** The certificate speaks the truth about G: T votes, and stable ones are read alike on every machine. *)
    Definition shown_faithful (V : votes) (G : graph) : Prop :=
      groups V = T /\ forall i, (i < T)%nat -> stable V i = true -> forall y, g (look i G) y -> y = cast V i.

    (** What a machine may read on G: one vote of each subgraph that is shown. *)
    Definition shown_reading (G : graph) (r : nat -> vote) : Prop := forall i, (i < T)%nat -> g (look i G) (r i).
  End Votes.
End Gnncert.
Arguments edges_and_features {id F W}.

(** GNNCert-E: vote i is read from all nodes and the edges of group i. n0 = n1 = n2 = e+ + e- + e~. *)
Theorem gnncert_e_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (he : id -> id -> nat)
         (g : shown_model id W F) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget),
    (forall x y, he x y = he y x) ->
    sees_only id W F g ->
    shown_faithful id F W T F g (esub id F W he) V G ->
    withstands V C P 0 a (Reach (touched_edges B) (touched_edges B) (touched_edges B)) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> altered A = [] -> affords id_eq B A ->
      shown_reading id F W T F g (esub id F W he) G' r ->
      voted C T P r = a.

(** GNNCert-N: vote j is read from the whole graph with the features of group j. n0 = n1 = n2 = r + o: the target's own
    features count like those of any node. *)
Theorem gnncert_n_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (T : nat) (hf : id -> nat)
         (g : shown_model id W (option F)) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (features : lim),
    sees_only id W (option F) g ->
    shown_faithful id F W T (option F) g (gate id F W hf) V G ->
    withstands V C P 0 a (Reach features features features) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> (forall x y, arc G' x y = arc G x y) -> few (altered A) features ->
      shown_reading id F W T (option F) g (gate id F W hf) G' r ->
      voted C T P r = a.

(** GNNCert-EN: vote i W + j is read from the edges of group i and the features of group j.
    n0 = n1 = n2 = H W - (H - e)+ (W - r - o)+. *)
Theorem gnncert_en_certificate :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (height width : nat) (he : id -> id -> nat) (hf : id -> nat)
         (g : shown_model id W (option F)) (G : graph id F W) (V : votes) (C : nat) (P : nat -> Z) (a : nat) (B : budget) (features : lim),
    let look i := cell id F W he hf (i / width) (i mod width) in
    let n := grid_moved (Z.of_nat height) (Z.of_nat width) (touched_edges B) features in
    (0 < width)%nat ->
    (forall x y, he x y = he y x) ->
    sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look V G ->
    withstands V C P 0 a (Reach n n n) ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> few (added A) (add_edges B) -> few (deleted A) (delete_edges B) ->
      few (changed A) (change_edges B) -> few (altered A) features ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted C (height * width) P r = a.
