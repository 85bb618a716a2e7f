(* What PoisonedGraphs.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Poisoned training graphs (docs/proofs.md, Theorem 15): models that are trained apart, nested with a division of the test graph. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph GraphTask Checker CheckerProofs CheckedCertificates.
Import ListNotations.
Open Scope Z_scope.

(** The votes of all models in one view (subgraph) of a target: the class, or None for an abstention, and whether it is stable. *)
Definition in_view := list (vote * bool).

(** Stable votes for class k. *)
Fixpoint sure_for (k : nat) (l : in_view) : Z :=
  match l with [] => 0 | (y, st) :: l' => (if st && beq y (Some k) then 1 else 0) + sure_for k l' end.

(** Votes that are not stable, which count for every rival. *)
Fixpoint unsure (l : in_view) : Z := match l with [] => 0 | (_, st) :: l' => (if st then 0 else 1) + unsure l' end.

(** What the models of a view elect. *)
Definition elected (C : nat) (l : in_view) : nat := best (fun k => sure_for k l) C.

(** How many votes the elected class b leads k by. *)
Definition lead_over (b k : nat) (l : in_view) : Z := sure_for b l - sure_for k l - unsure l - tie k b.

(** The least of the numbers f k of the classes other than b, and of m. *)
Fixpoint least_of (f : nat -> Z) (b C : nat) (m : Z) : Z :=
  match C with O => m | S k => let x := least_of f b k m in if Nat.eqb k b then x else Z.min (f k) x end.

(** M of a view: how many models may be poisoned without another class being elected there; negative if rounding alone may do that. *)
Definition bears (C : nat) (l : in_view) : Z :=
  least_of (fun k => lead_over (elected C l) k l / 2) (elected C l) C (Z.of_nat (length l)).

(** A view, weighed: its group, its tier, the elected class, and M. *)
Record view := View { v_group : Z; v_tier : tier; v_class : nat; v_bears : Z }.

(** n is at most x. *)
Definition fits (n : lim) (x : Z) : bool := match n with Some m => m <=? x | None => false end.

(** The vote of a view where n training graphs are poisoned: stable if its M is not less than n. *)
Definition entry_of (n : lim) (v : view) : Z * entry := (v_group v, Entry (Some (v_class v)) (fits n (v_bears v)) (v_tier v) false).

(** A view in which the graph has nothing abstains, whoever was trained on what. *)
Definition nothing : entry := Entry None true Unlisted false.

(** The target of the checker where n training graphs are poisoned. *)
Definition poisoned_target (n : lim) (views : list view) (cover : list Z) : target :=
  Target (map (entry_of n) views) nothing None true cover.

(** n poisoned training graphs and nothing else: the radius of such certificates. *)
Definition untouched : budget := Budget (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) (Some 0) None.

(** Whether the label holds against n poisoned training graphs and a budget for the test graph. *)
Definition poisoned_holds (s : settings) (views : list view) (cover : list Z) (n : lim) (q : query) : bool :=
  holds s (count_target s (poisoned_target n views cover)) q.

(** The stated radius is the largest number of poisoned training graphs against which the label holds. *)
Definition right_poisoned_radius (s : settings) (views : list view) (cover : list Z) (models x : Z) : bool :=
  is_largest (fun n => poisoned_holds s views cover (Some n) (untouched, false)) models x.

(** ---- Training ---- *)
Section Training.
  Variables (key sample id F W : Type).
  Notation graph := (graph id F W).

  (** A training set: the graph, with its label, of each id; None where there is none. *)
  Definition dataset := key -> option sample.

  (** At most n training graphs are inserted, deleted or altered. One that gets another id is deleted and inserted: two. *)
  Definition poisoned (n : lim) (D D' : dataset) : Prop :=
    exists l : list key, few l n /\ forall x, ~ In x l -> D' x = D x.

  (** [train i D]: model i, trained on D, on all machines at once. *)
  Definition learner := nat -> dataset -> gmodel id F W.

  (** Model i reads nothing but the training graphs of part i, and a graph's part depends on its id alone. *)
  Definition isolated (part : key -> nat) (train : learner) : Prop :=
    forall i D D', (forall x, part x = i -> D' x = D x) -> forall G y, train i D' G y -> train i D G y.
  Variables (M C : nat) (part : key -> nat) (train : learner).

  (** A graph without nodes. *)
  Definition is_empty (G : graph) : Prop := forall x, node G x = None.

  (** What the models elect on a graph; on one without nodes they abstain. *)
  Definition ensemble (D : dataset) : gmodel id F W := fun G y =>
    (is_empty G /\ y = None)
    \/ (~ is_empty G /\ exists r, (forall i, (i < M)%nat -> train i D G (r i)) /\ y = Some (voted C M (fun _ => 0) r)).

  (** The same after n training graphs were poisoned. *)
  Definition poisoned_ensemble (n : lim) (D : dataset) : gmodel id F W := fun G y =>
    exists D', poisoned n D D' /\ ensemble D' G y.

  (** The file tells the truth about the models' votes on a graph H. *)
  Definition true_votes (D : dataset) (H : graph) (l : in_view) : Prop :=
    length l = M /\ forall i, (i < M)%nat -> snd (nth i l (None, false)) = true -> forall y, train i D H y -> y = fst (nth i l (None, false)).

  (** The file tells the truth about view i, whose graph is H: it is listed with the models' votes, or H has no node. *)
  Definition true_view (D : dataset) (views : list view) (i : Z) (H : graph) : Prop :=
    match find (fun v => i =? v_group v) views with
    | Some v => ~ is_empty H /\ exists l, true_votes D H l /\ v_class v = elected C l /\ v_bears v = bears C l
    | None => is_empty H
    end.

  Section Stay.
    Hypothesis alone : isolated part train.
    Hypothesis some_class : (0 < C)%nat.

    (** Theorem 15, one view: n poisoned graphs do not change what is elected where M is at least n. *)
    Theorem view_stays (D D' : dataset) (H : graph) (l : in_view) (n : Z) (y : vote) :
      true_votes D H l -> ~ is_empty H -> n <= bears C l -> poisoned (Some n) D D' -> ensemble D' H y -> y = Some (elected C l).

    (** What the checker takes for stable is read alike after n training graphs were poisoned. *)
    Theorem poisoned_vote (D : dataset) (views : list view) (n : lim) (i : Z) (H : graph) (y : vote) :
      true_view D views i H -> is_stable (entry_at (map (entry_of n) views) nothing i) = true ->
      poisoned_ensemble n D H y -> y = choice (entry_at (map (entry_of n) views) nothing i).
  End Stay.
End Training.

(** What a machine reads, whichever of the n poisoned training sets the models saw. *)
Definition read_poisoned {key sample id F W} (M C : nat) (train : learner key sample id F W) (n : lim) (D : dataset key sample)
    (views : nat) (sub : nat -> graph id F W -> Prop) (r : nat -> vote) : Prop :=
  exists D', poisoned key sample n D D' /\ forall i, (i < views)%nat -> exists H, sub i H /\ ensemble key sample id F W M C train D' H (r i).

(** Theorem 15, node-centric, graphs without self-loops: where the checker says yes to n and B, the label is that of the file after n
    training graphs were inserted, deleted or altered and the test graph was changed within B. *)
Theorem poisoned_node_centric :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> nat) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train -> (forall i D', extensional id F W (train i D')) ->
    (forall i, (i < Z.to_nat (num_groups s))%nat ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) (gsub id F W h i G)) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached ->
       forall x y, h x = i -> h y = i -> node G x <> None -> node G y <> None -> x = y) ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' -> loopless id F W G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => H = gsub id F W h i G') r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 15, node-centric, self-loops kept. *)
Theorem poisoned_node_centric_with_loops :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> nat) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train -> (forall i D', extensional id F W (train i D')) ->
    (forall i, (i < Z.to_nat (num_groups s))%nat ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) (gsub id F W h i G)) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached -> forall x, h x = i -> node G x = None) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => H = gsub id F W h i G') r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 15, edge-centric. *)
Theorem poisoned_edge_centric :
  forall (key sample id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (M : nat) (part : key -> nat)
         (train : learner key sample id F W) (D : dataset key sample) (s : settings) (views : list view) (cover : list Z)
         (n : lim) (B : budget) (own : bool) (h : id -> id -> nat) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat ->
    poisoned_holds s views cover n (B, own) = true ->
    isolated key sample id F W part train ->
    (forall x y, h x y = h y x) ->
    (forall i H, (i < Z.to_nat (num_groups s))%nat -> is_sub id F W h i G H ->
       true_view key sample id F W M (num_classes s) train D views (Z.of_nat i) H) ->
    let t := poisoned_target n views cover in
    (forall i, (i < Z.to_nat (num_groups s))%nat -> tier_of (votes_of s t) i <> Reached -> forall x y, arcs_of id F W h i G x y = None) ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row cover) ->
    forall (G' : graph id F W) (r : nat -> vote),
      gattacked id F W id_eq B G G' ->
      read_poisoned M (num_classes s) train n D (Z.to_nat (num_groups s)) (fun i H => is_sub id F W h i G' H) r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 15, the radius: n poisoned training graphs, the test graph as it is, in any division. *)
Theorem poisoned_radius :
  forall (s : settings) (views : list view) (cover : list Z) (models x : Z), 0 <= x ->
    right_poisoned_radius s views cover models x = true ->
    poisoned_holds s views cover (Some x) (untouched, false) = true.
