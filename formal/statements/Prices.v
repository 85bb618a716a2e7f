(* What Prices.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Prices (docs/proofs.md, Theorem 13): an attack that costs less than a stated price changes no label. The program, which is extracted, tries all amounts that cost
    less; it speaks of every rule, because it only asks whether a target holds against a budget. *)
From Coq Require Import List Arith ZArith Lia Bool.
From Agnncert Require Import Vote Graph NodeCentric EdgeCentric Gated GraphTask Gnncert PerNeighbourVote PerNeighbour PerPair OwnGroupsOfGraphs Checker CheckerProofs
  CheckedCertificates StackedVote StackedChecker StackedProofs StackedGraph TwoLevelsGraph.
Import ListNotations.
Open Scope Z_scope.

(** p+, p-, p=, p_A, p_B, p_d, p_r and p_o, in whole units; None: nobody can pay it. *)
Record prices := Prices {
  p_add : lim; p_delete : lim; p_change : lim; p_inject : lim; p_edge : lim; p_remove : lim; p_alter : lim; p_own : lim
}.

(** What m changes of one kind cost; none cost nothing. *)
Definition pay (p : lim) (m : Z) : lim := if m <=? 0 then Some 0 else match p with Some q => Some (q * m) | None => None end.

(** Theorem 13: what amounts of all kinds cost together. *)
Fixpoint pay_all (ps : list lim) (ms : list Z) : lim :=
  match ps, ms with p :: ps', m :: ms' => ladd (pay p m) (pay_all ps' ms') | _, _ => Some 0 end.

(** It costs less than X; what nobody can pay is never cheaper. *)
Definition cheaper (c X : lim) : Prop := match c, X with Some a, Some b => a < b | Some _, None => True | None, _ => False end.

(** The prices in the order in which amounts are tried. *)
Definition kinds (P : prices) : list lim := [p_inject P; p_edge P; p_add P; p_delete P; p_change P; p_remove P; p_alter P].

(** The budget of such amounts: e+, e-, e~, A, d, r, and B edges of injected nodes in all. *)
Definition in_order (l : list lim) : budget :=
  match l with [i; e; a; d; c; r; f] => Budget a d c i None r f e | _ => Budget None None None None None None None None end.

(** A price is not negative. *)
Definition affordable_price (p : lim) : bool := match p with Some q => 0 <=? q | None => true end.

(** All numbers from i to i + n. *)
Fixpoint upto (n : nat) (i : Z) (ok : Z -> bool) : bool := ok i && match n with O => true | S n' => upto n' (i + 1) ok end.

(** All kinds that follow cost nothing, or nobody can pay them. *)
Definition is_last (ps : list lim) : bool := forallb (fun p => match p with Some q => q <=? 0 | None => true end) ps.

(** Amounts of each kind that cost less than X together: of the last kind as many as can be paid, of a kind that costs nothing any number. *)
Fixpoint all_amounts (ps : list lim) (X : lim) (ok : list lim -> bool) : bool :=
  match ps with
  | [] => ok []
  | p :: ps' =>
      match p with
      | None => all_amounts ps' X (fun l => ok (Some 0 :: l))
      | Some q =>
          if q <=? 0 then all_amounts ps' X (fun l => ok (None :: l))
          else match X with
               | None => all_amounts ps' X (fun l => ok (None :: l))
               | Some x => let most := (x - 1) / q in
                           if is_last ps' then all_amounts ps' (Some x) (fun l => ok (Some most :: l))
                           else upto (Z.to_nat most) 0 (fun i => all_amounts ps' (Some (x - q * i)) (fun l => ok (Some i :: l)))
               end
      end
  end.

(** No amounts that cost less than X break the target: [ok] says what holds. *)
Definition dearer (ok : query -> bool) (P : prices) (X : lim) : bool :=
  let costs n := match X with Some x => x <=? n | None => false end in
  forallb affordable_price (p_own P :: kinds P)
  && (costs 0 || all_amounts (kinds P) X (fun l => ok (in_order l, false)))
  && match p_own P with
     | None => true
     | Some o => costs o || all_amounts (kinds P) (match X with Some x => Some (x - o) | None => None end) (fun l => ok (in_order l, true))
     end.

(** What an attack costs; [own]: the target's features change, too. *)
Definition cost {id} (P : prices) (A : attack id) (own : bool) : lim :=
  let n {T} (l : list T) := Z.of_nat (length l) in
  ladd (pay_all (kinds P) [n (injected A); n (brought A); n (added A); n (deleted A); n (changed A); n (removed A); n (altered A)])
       (pay (p_own P) (if own then 1 else 0)).

(** Theorem 13: an attack that costs less than X is within a budget against which the target holds. *)
Theorem price_is_budget {id} (id_eq : forall x y : id, {x = y} + {x <> y}) (ok : query -> bool) (P : prices) (X : lim) (A : attack id) (own : bool) :
  dearer ok P X = true -> cheaper (cost P A own) X -> exists B, affords id_eq B A /\ ok (B, own) = true.

(** [allowed B]: the attack is one of those that a certificate for the budget B speaks of. An attack that costs less than X is one for every budget that it is within. *)
Definition paid {id} (id_eq : forall x y : id, {x = y} + {x <> y}) (P : prices) (X : lim) (own : bool) (allowed : budget -> Prop) : Prop :=
  exists A : attack id, cheaper (cost P A own) X /\ forall B, affords id_eq B A -> allowed B.

(** Theorem 13 for Theorem 3: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_edge_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByEdge -> of_graphs s = false -> (0 < num_classes s)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    (forall x y, h x y = h y x) -> local_undirected f ->
    efaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    covers id F W (Z.to_nat (num_groups s)) h v G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      paid id_eq P X own (fun B => attacked id_eq B v G G') -> ereading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Theorem 13 for Theorem 4: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_node_centric :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> nat) (f : model id F W) (v : id) (G : graph id F W),
    rule s = ByNode -> of_graphs s = false -> (0 < num_classes s)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    local f ->
    faithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote) (P' : nat -> Z),
      paid id_eq P X own (fun B => attacked id_eq B v G G') -> reading id F W (Z.to_nat (num_groups s)) h f v G' r -> prior_read s t P' ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.

(** Theorem 13 for Theorem 5: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_gated :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> nat) (f : model id (option F) W) (v : id) (G : graph id F W),
    rule s = ByGatedNode -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    local f ->
    tfaithful id F W (Z.to_nat (num_groups s)) h f v (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      paid id_eq P X own (fun B => tattacked id F W id_eq v own B G G') -> treading id F W (Z.to_nat (num_groups s)) h f v G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for Theorem 6, edge-centric: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_edge_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> id -> nat) (g : gmodel id F W) (G : graph id F W) (someone : id),
    rule s = ByEdge -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    (forall x y, h x y = h y x) ->
    egfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    gcovers id F W (Z.to_nat (num_groups s)) h G (row (cover_row t)) ->
    forall (G' : graph id F W) (r : nat -> vote),
      paid id_eq P X own (fun B => gattacked id F W id_eq B G G') -> egreading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for Theorem 6, node-centric, without self-loops: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_node_centric_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    extensional id F W g ->
    gfaithful id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    loopless id F W G ->
    forall (G' : graph id F W) (r : nat -> vote),
      paid id_eq P X own (fun B => gattacked id F W id_eq B G G') -> loopless id F W G' -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for Theorem 6, node-centric, self-loops kept: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_node_centric_graph_with_loops :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (h : id -> nat) (g : gmodel id F W) (G : graph id F W),
    rule s = ByNode -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    extensional id F W g ->
    gfaithful_loops id F W (Z.to_nat (num_groups s)) g h (votes_of s t) G ->
    forall (G' : graph id F W) (r : nat -> vote),
      paid id_eq P X own (fun B => gattacked id F W id_eq B G G') -> greading id F W (Z.to_nat (num_groups s)) g h G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for Theorem 9, a group for each neighbour: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_per_neighbour :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = false -> (0 < num_classes s)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    local f -> numbered t V -> ofaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      paid id_eq P X own (fun B => strictly_attacked id F W id_eq v B G G') -> oreading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.

(** Theorem 13 for Theorem 9, a group for each pair: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_per_pair :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (f : model id F W) (v : id) (G : graph id F W) (V : own_votes id),
    rule s = ByPair -> of_graphs s = false -> (0 < num_classes s)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    local_undirected f -> numbered t V -> pfaithful id F W id_eq f v V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote) (P' : nat -> Z),
      paid id_eq P X own (fun B => pairs_attacked id F W id_eq v B G G') -> preading id F W id_eq f v G' S' r -> own_prior_read s t P' ->
      own = false /\ own_voted id (num_classes s) P' (empty_casts s) S' r = label_of s t.

(** Theorem 13 for Theorem 9, graphs, a group for each node: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_per_node_graph :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (g : gmodel id F W) (G : graph id F W) (V : own_votes id),
    rule s = ByNeighbour -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    extensional id F W g -> numbered t V -> nfaithful id F W id_eq g V G ->
    forall (G' : graph id F W) (S' : list id) (r : id -> vote),
      paid id_eq P X own (fun B => nodes_attacked id F W id_eq B G G') -> nreading id F W id_eq g G' S' r ->
      own = false /\ own_voted id (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.

(** Theorem 13 for Theorem 9, graphs, a group for each pair: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_per_pair_graph :
  forall (id F W key : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (key_eq : forall p q : key, {p = q} + {p <> q})
         (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (g : gmodel id F W) (name : id -> id -> key) (counts : id -> id -> Prop) (someone : id) (G : graph id F W) (V : own_votes key),
    rule s = ByPair -> of_graphs s = true -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    (forall x y, name x y = name y x) ->
    (forall x y x' y', name x y = name x' y' -> (x = x' /\ y = y') \/ (x = y' /\ y = x')) ->
    extensional id F W g -> numbered t V -> gpfaithful id F W key id_eq g name counts V G ->
    degrees_ok id F W key name G (row (cover_row t)) ->
    forall (G' : graph id F W) (S' : list key) (r : key -> vote),
      paid id_eq P X own (fun B => all_pairs_attacked id F W id_eq B G G') -> gpreading id F W key id_eq g name counts G' S' r ->
      own = false /\ own_voted key (num_classes s) (own_prior s t) (empty_casts s) S' r = label_of s t.

(** Theorem 13 for GNNCert-E: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_gnncert_e :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (he : id -> id -> nat) (g : shown_model id W F) (G : graph id F W),
    rule s = GnncertE -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    (forall x y, he x y = he y x) -> sees_only id W F g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) F g (esub id F W he) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> paid id_eq P X own (fun B => affords id_eq B A) -> shown_reading id F W (Z.to_nat (num_groups s)) F g (esub id F W he) G' r ->
      own = false /\ voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for Theorem 10: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_stacked :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : graph id F W -> id -> (nat -> Z) -> Prop)
         (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (P : prices) (X : lim) (own : bool),
    (0 < x_classes s)%nat -> x_second s = 0 -> stands_for V s t ->
    dearer (stacked_holds s (count_stacked s t)) P X = true ->
    stacked_model id F W v vote_steps reads (by_edge _ V) -> sfaithful id F W v vote_steps reads V G ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z),
      paid id_eq P X own (fun B => stacked_attacked id F W id_eq v B G G') -> sreading id F W v reads G' N' b -> stacked_reading id V p g ->
      own = false /\ stacked_label id V (x_classes s) p g N' b = y_label (count_stacked s t).

(** Theorem 13 for Theorem 11: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_two_levels :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (v : id) (reads : option F -> list (option F) -> (nat -> Z) -> Prop)
         (exact : option F -> list (option F) -> nat -> Z) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W) (P : prices) (X : lim) (own : bool),
    (0 < x_classes s)%nat -> x_second s <> 0 -> stands_for V s t ->
    dearer (stacked_holds s (count_stacked s t)) P X = true ->
    two_level_model F reads exact (x_classes s) (x_second s) (x_slack s) ->
    two_reading id F W v reads G (neighbours _ V) (vote_of _ V) ->
    forall (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p : nat -> Z),
      paid id_eq P X own (fun B => two_levels_attacked id F W id_eq v B G G') -> two_reading id F W v reads G' N' b -> (forall k, near (slack _ V) (p_of _ V k) (p k)) ->
      own = false /\ best (two_score id (x_used s) p N' b) (x_classes s) = y_label (count_stacked s t).

(** Theorem 13 for GNNCert-N: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_gnncert_n :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    rule s = GnncertN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    dearer (holds s (count_target s t)) P X = true ->
    sees_only id W (option F) g ->
    shown_faithful id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> paid id_eq P X own (fun B => few (pairs_of id A) (touched_edges B) /\ few (altered A) (with_own own B)) ->
      shown_reading id F W (Z.to_nat (num_groups s)) (option F) g (gate id F W hf) G' r ->
      voted (num_classes s) (Z.to_nat (num_groups s)) (prior_certain s t) r = label_of s t.

(** Theorem 13 for GNNCert-EN: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_gnncert_en :
  forall (id F W : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool)
         (height width : nat) (he : id -> id -> nat) (hf : id -> nat) (g : shown_model id W (option F)) (G : graph id F W),
    let look i := cell id F W he hf (i / width) (i mod width) in
    rule s = GnncertEN -> (0 < num_classes s)%nat -> prior_doubt s t = 0 ->
    edge_groups s = Z.of_nat height -> feature_groups s = Z.of_nat width -> num_groups s = Z.of_nat (height * width) -> (0 < width)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    (forall x y, he x y = he y x) -> sees_only id W (option F) g ->
    shown_faithful id F W (height * width) (option F) g look (votes_of s t) G ->
    forall (A : attack id) (G' : graph id F W) (r : nat -> vote),
      edges_and_features A G G' -> paid id_eq P X own (fun B => few (added A) (add_edges B) /\ few (deleted A) (delete_edges B) /\ few (changed A) (change_edges B) /\ few (altered A) (with_own own B)) ->
      shown_reading id F W (height * width) (option F) g look G' r ->
      voted (num_classes s) (height * width) (prior_certain s t) r = label_of s t.

(** Theorem 13 for a user's own division, with stated prices: an attack that costs less than the stated price leaves the label as it is. *)
Theorem price_stated :
  forall (id : Type) (id_eq : forall x y : id, {x = y} + {x <> y}) (s : settings) (t : target) (P : prices) (X : lim) (own : bool),
    rule s = AsStated -> (0 < num_classes s)%nat ->
    dearer (holds s (count_target s t)) P X = true ->
    forall (r : nat -> vote) (P' : nat -> Z) (moved : list nat),
      (forall i, (i < Z.to_nat (num_groups s))%nat -> stable (votes_of s t) i = true -> In i moved \/ r i = cast (votes_of s t) i) ->
      paid id_eq P X own (fun B => forall n, at_prices (price s) (own_price s) (clip_budget B) own = Some n -> few moved n) -> prior_read s t P' ->
      voted (num_classes s) (Z.to_nat (num_groups s)) P' r = label_of s t.
