(* What PairVotes.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Decisions about pairs of nodes (docs/proofs.md, Theorems 18 and 19): a score of the pair's own features, and a bounded vote of each common neighbour.
    Counting is that of Theorem 10. New is only who votes, and how many votes a change of the graph reaches. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates StackedVote StackedChecker StackedProofs StackedGraph
  Excluded ExcludedProofs Prices.
Import ListNotations.
Open Scope Z_scope.

(** Who votes: common neighbours of both nodes; these, and the neighbours of each node as well; those whom the first node trusts, about the second one. *)
Inductive pair_rule := Common | Both | Trusted.

(** Theorem 18: votes that one pair of nodes, and one node, reach at most. *)
Definition votes_of_edge (r : pair_rule) : Z := match r with Both => 2 | _ => 1 end.

(** Theorem 18: a node is a neighbour of each of the two, and of both. *)
Definition votes_of_node (r : pair_rule) : Z := match r with Both => 3 | _ => 1 end.

(** Theorem 18: injected nodes that can vote. A common neighbour needs two edges. *)
Definition voting_newcomers (r : pair_rule) (B : budget) : lim :=
  match r with
  | Common => if match edges_per_injected B with Some t => t <? 2 | None => false end then Some 0 else joined_nodes B
  | _ => joined_nodes B
  end.

(** Theorems 18 and 19: the budget of Theorem 10 that says how many votes come, go and are altered. [blind]: votes read nothing of the node that votes, so
    that its features count for nothing. *)
Definition pair_budget (r : pair_rule) (blind : bool) (B : budget) : budget :=
  let edge n := lmul (Some (votes_of_edge r)) n in
  let vertex n := lmul (Some (votes_of_node r)) n in
  match r with
  | Trusted => Budget (add_edges B) (delete_edges B) (change_edges B) (Some 0) (Some 0) (Some 0) (Some 0) None
  | _ => Budget (edge (add_edges B)) (edge (delete_edges B)) (Some 0) (vertex (voting_newcomers r B)) None (vertex (delete_nodes B)) (vertex (if blind then Some 0 else change_features B)) None
  end.

(** What a file about pairs has to say besides: votes are added up, and they read values of edges where the first node trusts. *)
Definition fits_rule (r : pair_rule) (s : stacked_settings) : bool :=
  (x_second s =? 0) && (x_pseudo s =? 0) && Bool.eqb (x_by_edge s) (match r with Trusted => true | _ => false end).

(** Theorems 18 and 19: the target holds against a budget. *)
Definition pairs_hold (r : pair_rule) (blind : bool) (s : stacked_settings) (c : stacked_counted) (q : query) : bool :=
  fits_rule r s && stacked_holds s c (pair_budget r blind (clip_budget (fst q)), snd q).

(** The stated radius is the largest that is proved: so many edges and other nodes, changed in whatever way. *)
Definition right_pairs_radius (r : pair_rule) (blind : bool) (s : stacked_settings) (c : stacked_counted) (x : Z) : bool :=
  fits_rule r s && is_largest (fun x => if blind then stacked_test s c true (Some (votes_of_node r * x)) (Some (votes_of_node r * x)) (Some 0)
                                        else any_stacked_test s c (votes_of_node r * x)) largest_stated x.

(** The same against edges and nodes that come and go. *)
Definition right_pairs_structure (r : pair_rule) (s : stacked_settings) (c : stacked_counted) (x : Z) : bool :=
  fits_rule r s && is_largest (fun x => stacked_test s c true (Some (votes_of_node r * x)) (Some (votes_of_node r * x)) (Some 0)) largest_stated x.

(** For each class whether the target cannot get it. *)
Definition pairs_cannot_get (r : pair_rule) (blind : bool) (s : stacked_settings) (t : stacked_target) (q : query) : list bool :=
  map (fun out => fits_rule r s && out) (stacked_cannot_get s (count_stacked s t) (count_duels s t) (pair_budget r blind (clip_budget (fst q)), snd q)).

(** Whose neighbour a node is in a vote of its own. *)
Inductive seat := AtFirst | AtSecond | AtBoth.

Section Pairs.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables u v : id.
  (** The masked pairs, whatever arcs they have: no vote sees them. The pair (u, v) itself needs no mask. *)
  Variable masked : id -> id -> bool.

  (** j is a neighbour of x: an arc joins them, in whichever direction, and the pair is not masked. *)
  Definition near_to (G : graph) (x j : id) : Prop := joined_to id F W x G j /\ masked x j = false /\ masked j x = false.

  (** A vote is named by a node and by whose neighbour it is. *)
  Definition voter : Type := (seat * id)%type.

  (** Theorem 18, who votes on (u, v). With [sides] neighbours of one of them have votes as well. *)
  Definition votes_in (sides : bool) (G : graph) (x : voter) : Prop :=
    snd x <> u /\ snd x <> v
    /\ match fst x with
       | AtFirst => sides = true /\ near_to G u (snd x)
       | AtSecond => sides = true /\ near_to G v (snd x)
       | AtBoth => near_to G u (snd x) /\ near_to G v (snd x)
       end.

  (** N lists all votes, each once. *)
  Definition lists_voters (sides : bool) (N : list voter) (G : graph) : Prop := NoDup N /\ forall x, In x N <-> votes_in sides G x.

  (** The attack spares both nodes; only deletions separate a neighbour from them (Theorem 10). *)
  Record pair_attack (A : attack id) (G G' : graph) : Prop := {
    pa_leads : leads A G G'; pa_strict : strict id F W A G G'; pa_pairs : deletes_pairs A G';
    pa_first : only_deletions_separate id F W u A G G'; pa_second : only_deletions_separate id F W v A G G';
    pa_u : spares A u; pa_v : spares A v
  }.

  (** G' is an attacked graph. *)
  Definition pair_attacked (B : budget) (G G' : graph) : Prop := exists A, pair_attack A G G' /\ affords id_eq B A.

  (** The votes that a pair of nodes reaches: none if it is (u, v) itself, or if it is neither at u nor at v. *)
  Definition at_node (x : id) (p : id * id) : bool := if id_eq (fst p) x then true else if id_eq (snd p) x then true else false.

  (** Weights: [w] of the vote of a neighbour of one of the two, [gamma] of that of a common neighbour. *)
  Definition weight (w gamma : Z) (x : voter) : Z := match fst x with AtBoth => gamma | _ => w end.

  (** score_k(u, v) *)
  Definition pair_score (w gamma : Z) (p : nat -> Z) (N : list voter) (b : voter -> nat -> Z) (k : nat) : Z := p k + sum voter (fun x => weight w gamma x * b x k) N.

  (** The pairs that matter: those at one of the two nodes and not at the other. *)
  Definition near_pairs (l : list (id * id)) : list (id * id) := filter (fun p => xorb (at_node u p) (at_node v p)) l.
  (** [reads G x y]: some machine may read the vote x as y; [own G y]: its score of the pair's own features. The prior reads features of u and v alone. *)
  Variables (reads : graph -> voter -> (nat -> Z) -> Prop) (own_score : graph -> (nat -> Z) -> Prop).

  (** What Theorem 18 asks of votes and prior: no more than one vote, of the features of the voter, of u and of v. *)
  Record pair_model : Prop := {
    pm_vote : forall G x y, reads G x y -> is_vote vote_steps y;
    pm_local : forall G G' x y, node G' (snd x) = node G (snd x) -> node G' u = node G u -> node G' v = node G v -> (reads G x y <-> reads G' x y);
    pm_own : forall G G' y, node G' u = node G u -> node G' v = node G v -> (own_score G y <-> own_score G' y)
  }.

  (** Votes read nothing of the node that votes, but whose neighbour it is. *)
  Definition reads_nothing : Prop := forall G G' x y, node G' u = node G u -> node G' v = node G v -> (reads G x y <-> reads G' x y).

  (** The numbers in the certificate are those of G, to within the slack. *)
  Record pair_faithful (sides : bool) (V : stacked_votes voter) (G : graph) : Prop := {
    pf_steps : st_steps _ V = vote_steps;
    pf_lists : lists_voters sides (neighbours _ V) G;
    pf_votes : forall x, In x (neighbours _ V) -> forall y, reads G x y -> forall k, near (slack _ V) (vote_of _ V x k) (y k);
    pf_own : forall y, own_score G y -> forall k, near (slack _ V) (p_of _ V k) (y k)
  }.

  (** What a machine may read on G; the factors of the votes are those of the file. *)
  Definition pair_reading (sides : bool) (V : stacked_votes voter) (G : graph) (N : list voter) (b : voter -> nat -> Z) (p g : nat -> Z) : Prop :=
    lists_voters sides N G /\ (forall x, In x N -> reads G x (b x)) /\ own_score G p /\ (forall k, g k = g_of _ V k).

  (** Theorem 18: r pairs at one of u and v that come or go take S (w + gamma) each from the lead of a over k, and n nodes that come or go, of any degree,
      S (2 w + gamma) each. Pairs elsewhere, and (u, v) itself, take nothing. No features change. *)
  Theorem pairs_lead :
    forall (S w gamma : Z) (p : nat -> Z) (ballot : graph -> voter -> nat -> Z) (A : attack id) (G G' : graph) (N N' : list voter) (a k : nat),
      u <> v -> a <> k -> 0 <= w -> 0 <= gamma -> (forall H x, is_vote S (ballot H x)) ->
      (forall H H' x, node H' (snd x) = node H (snd x) -> node H' u = node H u -> node H' v = node H v -> forall c, ballot H' x c = ballot H x c) ->
      pair_attack A G G' -> altered A = [] -> lists_voters true N G -> lists_voters true N' G' ->
      pair_score w gamma p N (ballot G) a - pair_score w gamma p N (ballot G) k
        - S * (w + gamma) * Z.of_nat (length (near_pairs (added A)) + length (near_pairs (deleted A)))
        - S * (2 * w + gamma) * Z.of_nat (length (joined A) + length (removed A))
      <= pair_score w gamma p N' (ballot G') a - pair_score w gamma p N' (ballot G') k.
End Pairs.

(** Whether neighbours of one of the two nodes vote as well. *)
Definition sides_of (r : pair_rule) : bool := match r with Both => true | _ => false end.

Section FileOfPairs.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (u v : id) (masked : id -> id -> bool).
  Variables (reads : graph id F W -> voter id -> (nat -> Z) -> Prop) (own_score : graph id F W -> (nat -> Z) -> Prop).
  Variables (r : pair_rule) (blind : bool) (s : stacked_settings) (t : stacked_target) (V : stacked_votes (voter id)) (G : graph id F W).
  Hypothesis some_class : (0 < x_classes s)%nat.
  Hypothesis apart : u <> v.
  Hypothesis of_neighbours : r <> Trusted.
  Hypothesis same : stands_for V s t.
  Hypothesis model : pair_model id F W u v reads own_score.
  Hypothesis sees_nothing : blind = true -> reads_nothing id F W u v reads.
  Hypothesis faithful : pair_faithful id F W u v masked reads own_score (sides_of r) V G.
  Variables (G' : graph id F W) (N' : list (voter id)) (b : voter id -> nat -> Z) (p g : nat -> Z).
  Hypothesis read : pair_reading id F W u v masked reads own_score (sides_of r) V G' N' b p g.

  Let c := count_stacked s t.

  (** Theorem 18 for a budget: if the checker says that a pair holds, its label stays. *)
  Theorem pairs_certificate B own : pairs_hold r blind s c (B, own) = true -> pair_attacked id F W id_eq u v B G G' ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b = y_label c.

  (** Theorem 18, the radius: x edges and other nodes, changed in whatever way and in any mix. *)
  Theorem pairs_radius x A : right_pairs_radius r blind s c x = true -> 0 <= x -> pair_attack id F W u v A G G' ->
    Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A) + (if blind then 0 else length (altered A))) <= x ->
    stacked_label (voter id) V (x_classes s) p g N' b = y_label c.

  (** Theorem 18, the radius against edges and nodes that come and go. *)
  Theorem pairs_structure x A : right_pairs_structure r s c x = true -> 0 <= x -> pair_attack id F W u v A G G' -> altered A = [] ->
    Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A)) <= x ->
    stacked_label (voter id) V (x_classes s) p g N' b = y_label c.

  (** Theorem 12 (c) with Theorem 18: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
  Theorem pairs_excluded B own k : nth k (pairs_cannot_get r blind s t (B, own)) false = true -> pair_attacked id F W id_eq u v B G G' ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b <> k.

  (** Theorem 13 with Theorem 18: an attack that costs less than the stated price leaves the label as it is. *)
  Theorem pairs_price P X own : dearer (pairs_hold r blind s c) P X = true -> paid id_eq P X own (fun B => pair_attacked id F W id_eq u v B G G') ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b = y_label c.
End FileOfPairs.

(** ---- Theorem 19: whom the first node trusts ---- *)
Section TrustedContacts.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Notation graph := (graph id F W).
  Variables u v : id.
  Variable masked : id -> id -> bool.
  (** Which values of an arc u -> j make j a contact of u. *)
  Variable trusts : W -> bool.

  (** j is a contact of u. *)
  Definition contact (G : graph) (j : id) : Prop := (exists w, arc G u j = Some w /\ trusts w = true) /\ masked u j = false /\ masked j u = false.

  (** Theorem 19, who votes on (u, v): a contact of u with an arc to v. An arc from v to it does not count. *)
  Definition speaks (G : graph) (j : id) : Prop := j <> u /\ j <> v /\ contact G j /\ arc G j v <> None /\ masked j v = false /\ masked v j = false.

  (** N lists all of them, each once. *)
  Definition lists_contacts (N : list id) (G : graph) : Prop := NoDup N /\ forall j, In j N <-> speaks G j.

  (** The arcs that leave u are out of reach, and so are its contacts; both nodes are spared. *)
  Record trusted_attack (A : attack id) (G G' : graph) : Prop := {
    ta_leads : leads A G G'; ta_strict : strict id F W A G G'; ta_pairs : deletes_pairs A G';
    ta_own : forall x, arc G' u x = arc G u x;
    ta_contacts : forall j, contact G j -> ~ In j (removed A) /\ ~ In j (altered A);
    ta_u : spares A u; ta_v : spares A v
  }.

  (** G' is an attacked graph. *)
  Definition trusted_attacked (B : budget) (G G' : graph) : Prop := exists A, trusted_attack A G G' /\ affords id_eq B A.
  (** [reads G j y]: some machine may read the vote of j as y; [own_score G y]: its score of the pair, which may read the arcs that leave u. *)
  Variables (reads : graph -> id -> (nat -> Z) -> Prop) (own_score : graph -> (nat -> Z) -> Prop).

  (** What Theorem 19 asks of votes and prior. *)
  Record trusted_model : Prop := {
    tm_vote : forall G j y, reads G j y -> is_vote vote_steps y;
    tm_local : forall G G' j y, node G' j = node G j -> node G' u = node G u -> node G' v = node G v -> arc G' u j = arc G u j -> arc G' j v = arc G j v -> (reads G j y <-> reads G' j y);
    tm_own : forall G G' y, node G' u = node G u -> node G' v = node G v -> (forall x, arc G' u x = arc G u x) -> (own_score G y <-> own_score G' y)
  }.

  (** The numbers in the certificate are those of G, to within the slack. *)
  Record trusted_faithful (V : stacked_votes id) (G : graph) : Prop := {
    tf_steps : st_steps _ V = vote_steps;
    tf_lists : lists_contacts (neighbours _ V) G;
    tf_votes : forall j, In j (neighbours _ V) -> forall y, reads G j y -> forall k, near (slack _ V) (vote_of _ V j k) (y k);
    tf_own : forall y, own_score G y -> forall k, near (slack _ V) (p_of _ V k) (y k)
  }.

  (** What a machine may read on G; the factors of the votes are those of the file. *)
  Definition trusted_reading (V : stacked_votes id) (G : graph) (N : list id) (b : id -> nat -> Z) (p g : nat -> Z) : Prop :=
    lists_contacts N G /\ (forall j, In j N -> reads G j (b j)) /\ own_score G p /\ (forall k, g k = g_of _ V k).
End TrustedContacts.

Section FileOfTrusted.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (u v : id) (masked : id -> id -> bool) (trusts : W -> bool).
  Variables (reads : graph id F W -> id -> (nat -> Z) -> Prop) (own_score : graph id F W -> (nat -> Z) -> Prop).
  Variables (blind : bool) (s : stacked_settings) (t : stacked_target) (V : stacked_votes id) (G : graph id F W).
  Hypothesis some_class : (0 < x_classes s)%nat.
  Hypothesis same : stands_for V s t.
  Hypothesis model : trusted_model id F W u v reads own_score.
  Hypothesis faithful : trusted_faithful id F W u v masked trusts reads own_score V G.
  Variables (G' : graph id F W) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z).
  Hypothesis read : trusted_reading id F W u v masked trusts reads own_score V G' N' b p g.

  Let c := count_stacked s t.

  (** Theorem 19 for a budget: if the checker says that a pair holds, its label stays. The budget may have any number of injected nodes. *)
  Theorem trusted_certificate B own : pairs_hold Trusted blind s c (B, own) = true -> trusted_attacked id F W id_eq u v masked trusts B G G' ->
    own = false /\ stacked_label id V (x_classes s) p g N' b = y_label c.

  (** Theorem 19, the radius: x pairs that are added, deleted and changed, and any number of injected nodes. *)
  Theorem trusted_radius x A : right_pairs_radius Trusted false s c x = true -> 0 <= x -> trusted_attack id F W u v masked trusts A G G' ->
    Z.of_nat (length (added A) + length (deleted A) + length (changed A)) <= x -> stacked_label id V (x_classes s) p g N' b = y_label c.

  (** Theorem 19, the radius against pairs that are added and deleted. *)
  Theorem trusted_structure x A : right_pairs_structure Trusted s c x = true -> 0 <= x -> trusted_attack id F W u v masked trusts A G G' -> changed A = [] ->
    Z.of_nat (length (added A) + length (deleted A)) <= x -> stacked_label id V (x_classes s) p g N' b = y_label c.

  (** Theorem 12 (c) with Theorem 19: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
  Theorem trusted_excluded B own k : nth k (pairs_cannot_get Trusted blind s t (B, own)) false = true -> trusted_attacked id F W id_eq u v masked trusts B G G' ->
    own = false /\ stacked_label id V (x_classes s) p g N' b <> k.

  (** Theorem 13 with Theorem 19: an attack that costs less than the stated price leaves the label as it is. *)
  Theorem trusted_price P X own : dearer (pairs_hold Trusted blind s c) P X = true -> paid id_eq P X own (fun B => trusted_attacked id F W id_eq u v masked trusts B G G') ->
    own = false /\ stacked_label id V (x_classes s) p g N' b = y_label c.
End FileOfTrusted.
