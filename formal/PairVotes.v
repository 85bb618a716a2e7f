(** Decisions about pairs of nodes (docs/proofs.md, Theorems 18 and 19): a score of the pair's own features, and a bounded vote of each common neighbour.
    Counting is that of Theorem 10. New is only who votes, and how many votes a change of the graph reaches. *)
From Coq Require Import List Arith ZArith Lia Bool Permutation.
From Agnncert Require Import Vote Graph PerNeighbourVote PerNeighbour PerPair Checker CheckerProofs CheckedCertificates StackedVote StackedChecker StackedProofs StackedGraph
  Excluded ExcludedProofs Prices.
Import ListNotations.
Open Scope Z_scope.

(** ---- What the checker computes ---- *)

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
(** The stated number of added edges is the largest that is proved, whatever is deleted and changed besides. *)
Definition right_pairs_neighbours (r : pair_rule) (blind : bool) (s : stacked_settings) (c : stacked_counted) (x : lim) : bool :=
  let passes new := pairs_hold r blind s c (Budget new None None (Some 0) (Some 0) (if x_ids s then None else Some 0) None None, false) in
  match x with None => passes None | Some n => is_largest (fun n => passes (Some n)) (n + 1) n end.
(** For each class whether the target cannot get it. *)
Definition pairs_cannot_get (r : pair_rule) (blind : bool) (s : stacked_settings) (t : stacked_target) (q : query) : list bool :=
  map (fun out => fits_rule r s && out) (stacked_cannot_get s (count_stacked s t) (count_duels s t) (pair_budget r blind (clip_budget (fst q)), snd q)).

(** ---- Who votes ---- *)

(** Whose neighbour a node is in a vote of its own. *)
Inductive seat := AtFirst | AtSecond | AtBoth.
(** Two seats are the same, or not. *)
Definition seat_eq : forall x y : seat, {x = y} + {x <> y}. decide equality. Defined.

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
  (** Two votes are the same, or not. *)
  Definition voter_eq : forall x y : voter, {x = y} + {x <> y}.
  Proof. decide equality. apply seat_eq. Defined.
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
  (** Its votes: that of the other end. *)
  Definition reached_by (sides : bool) (p : id * id) : list voter :=
    match at_node u p, at_node v p with
    | true, false => let j := other id id_eq u p in if sides then [(AtFirst, j); (AtBoth, j)] else [(AtBoth, j)]
    | false, true => let j := other id id_eq v p in if sides then [(AtSecond, j); (AtBoth, j)] else [(AtBoth, j)]
    | _, _ => []
    end.
  (** The votes of a node. *)
  Definition held_by (sides : bool) (j : id) : list voter := if sides then [(AtFirst, j); (AtSecond, j); (AtBoth, j)] else [(AtBoth, j)].
  (** The votes that come, go and are altered. *)
  Definition come_in (sides two : bool) (A : attack id) : list voter := flat_map (reached_by sides) (added A) ++ (if two then flat_map (held_by sides) (joined A) else []).
  (** Votes that go. *)
  Definition go_in (sides : bool) (A : attack id) : list voter := flat_map (reached_by sides) (deleted A) ++ flat_map (held_by sides) (removed A).
  (** Votes that are altered. *)
  Definition altered_by (sides : bool) (A : attack id) : list voter := flat_map (held_by sides) (altered A).

  (** ---- Theorem 18, in plain numbers ---- *)

  (** Weights: [w] of the vote of a neighbour of one of the two, [gamma] of that of a common neighbour. *)
  Definition weight (w gamma : Z) (x : voter) : Z := match fst x with AtBoth => gamma | _ => w end.
  (** score_k(u, v) *)
  Definition pair_score (w gamma : Z) (p : nat -> Z) (N : list voter) (b : voter -> nat -> Z) (k : nat) : Z := p k + sum voter (fun x => weight w gamma x * b x k) N.
  (** The pairs that matter: those at one of the two nodes and not at the other. *)
  Definition near_pairs (l : list (id * id)) : list (id * id) := filter (fun p => xorb (at_node u p) (at_node v p)) l.

  (** ---- Votes as machines read them ---- *)

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

  (** ---- Proofs ---- *)

  Lemma near_dec G x j : near_to G x j \/ ~ near_to G x j.
  Proof.
    unfold near_to, joined_to. destruct (id_eq j x); [right; tauto|]. destruct (masked x j), (masked j x); try (right; intros [_ [A B]]; discriminate).
    destruct (arc G j x) as [w|] eqn:E1; [left; repeat split; auto; left; congruence|].
    destruct (arc G x j) as [w|] eqn:E2; [left; repeat split; auto; right; congruence|right; intros [[_ [H|H]] _]; congruence].
  Qed.

  Section Attacked.
    Variables (A : attack id) (G G' : graph).
    Hypothesis apart : u <> v.
    Hypothesis PA : pair_attack A G G'.
    Let L := pa_leads _ _ _ PA.
    Let L2 := pa_strict _ _ _ PA.
    Let L3 := pa_pairs _ _ _ PA.

    Lemma reached sides x y j l : (x = u /\ y = v) \/ (x = v /\ y = u) -> j <> u -> j <> v -> listed j x l ->
      In (AtBoth, j) (flat_map (reached_by sides) l) /\ (sides = true -> In ((if id_eq x u then AtFirst else AtSecond), j) (flat_map (reached_by sides) l)).
    Proof.
      intros XY N1 N2 Hl.
      assert (K : forall p, p = (j, x) \/ p = (x, j) -> In (AtBoth, j) (reached_by sides p) /\ (sides = true -> In ((if id_eq x u then AtFirst else AtSecond), j) (reached_by sides p))).
      { intros p Hp. assert (AU : at_node u p = if id_eq x u then true else false).
        { destruct Hp as [->| ->]; unfold at_node; cbn [fst snd]; destruct (id_eq j u), (id_eq x u); auto; contradiction. }
        assert (AV : at_node v p = if id_eq x v then true else false).
        { destruct Hp as [->| ->]; unfold at_node; cbn [fst snd]; destruct (id_eq j v), (id_eq x v); auto; contradiction. }
        assert (OT : other id id_eq x p = j).
        { destruct Hp as [->| ->]; unfold other; cbn [fst snd]; [destruct (id_eq x x); congruence|]. destruct (id_eq j x); congruence. }
        unfold reached_by; rewrite AU, AV. destruct XY as [[-> ->]|[-> ->]].
        - destruct (id_eq u u); [|contradiction]. destruct (id_eq u v); [contradiction|]. rewrite OT. destruct sides; simpl; split; auto; discriminate.
        - destruct (id_eq v u); [congruence|]. destruct (id_eq v v); [|contradiction]. rewrite OT. destruct sides; simpl; split; auto; discriminate. }
      destruct Hl as [I|I]; [specialize (K (j, x) (or_introl eq_refl))|specialize (K (x, j) (or_intror eq_refl))]; destruct K as [K1 K2];
        (split; [|intro E; specialize (K2 E)]); apply in_flat_map; eexists; split; eauto.
    Qed.

    Lemma brought_by x j : spares A x -> listed j x (brought A) -> In (j, x) (brought A) /\ In j (injected A).
    Proof.
      intros [S1 _] [I|I]; pose proof (brings_ok _ _ _ _ _ _ L _ _ I); [auto|contradiction].
    Qed.

    (** A neighbour that is new, or that was taken away and is back. *)
    Lemma new_link x j : spares A x -> near_to G' x j -> (~ near_to G x j \/ In j (removed A) \/ listed j x (deleted A)) -> listed j x (added A) \/ listed j x (brought A).
    Proof.
      intros Sx [[N [a|a]] [M1 M2]] H.
      - destruct H as [H|[H|H]].
        + destruct (arcs_ok _ _ _ _ _ _ L j x) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; try contradiction;
            exfalso; apply H; (split; [split; [auto|left; congruence]|auto]).
        + destruct (gone_ok _ _ _ _ _ _ L2 j x (or_introl H)) as [E|[E|E]]; auto; contradiction.
        + destruct (L3 j x H) as [E|[E|E]]; auto; contradiction.
      - assert (SY : forall l, listed x j l -> listed j x l) by (intros l [P|P]; [right|left]; auto).
        destruct H as [H|[H|H]].
        + destruct (arcs_ok _ _ _ _ _ _ L x j) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto; try contradiction;
            exfalso; apply H; (split; [split; [auto|right; congruence]|auto]).
        + destruct (gone_ok _ _ _ _ _ _ L2 x j (or_intror H)) as [E|[E|E]]; auto; contradiction.
        + destruct (L3 x j ltac:(destruct H; [right|left]; auto)) as [E|[E|E]]; auto; contradiction.
    Qed.

    (** All links of an injected node are new. *)
    Lemma injected_link x j : spares A x -> In j (injected A) -> near_to G' x j -> listed j x (added A) \/ listed j x (brought A).
    Proof.
      intros Sx I N. apply new_link; auto. destruct (fresh_ok _ _ _ _ _ _ L j I) as [E|E]; [left|auto].
      intros [[_ [a|a]] _]; destruct (before_ok _ _ _ _ _ _ L _ _ a); contradiction.
    Qed.

    Lemma held sides j l : In j l -> In (AtBoth, j) (flat_map (held_by sides) l) /\ (sides = true -> In (AtFirst, j) (flat_map (held_by sides) l) /\ In (AtSecond, j) (flat_map (held_by sides) l)).
    Proof.
      intro I. split; [|intro E; split]; apply in_flat_map; exists j; split; auto; unfold held_by; [destruct sides|rewrite E|rewrite E]; simpl; auto.
    Qed.

    (** Two edges are enough, and one is not: without [two] every injected node brings one edge at most. *)
    Definition two_or_one (two : bool) : Prop := two = true \/ forall w, (length (brings id_eq A w) <= 1)%nat.

    Lemma two_edges j : In (j, u) (brought A) -> In (j, v) (brought A) -> (2 <= length (brings id_eq A j))%nat.
    Proof.
      intros I J. change 2%nat with (length [(j, u); (j, v)]). apply NoDup_incl_length.
      - constructor; [simpl; intros [E|[]]; congruence|constructor; [simpl; tauto|constructor]].
      - intros p [<-|[<-|[]]]; unfold brings; apply filter_In; split; auto; cbn [fst]; destruct (id_eq j j); auto.
    Qed.

    Lemma comes sides two x : (sides = true -> two = true) -> two_or_one two -> votes_in sides G' x ->
      (In (snd x) (removed A) \/ ~ votes_in sides G x \/ (fst x <> AtSecond /\ listed (snd x) u (deleted A)) \/ (fst x <> AtFirst /\ listed (snd x) v (deleted A))) ->
      In x (come_in sides two A).
    Proof.
      intros ST TW [N1 [N2 H]] C. destruct x as [s j]; cbn [fst snd] in *. pose proof (pa_u _ _ _ PA) as SU. pose proof (pa_v _ _ _ PA) as SV. unfold come_in. rewrite in_app_iff.
      assert (JN : forall x, spares A x -> listed j x (brought A) -> In j (joined A)).
      { intros x Sx B. destruct (brought_by x j Sx B) as [B1 _]. apply (joined_in id F W A G G' j x L B1). }
      destruct s.
      - destruct H as [E H]. rewrite (ST E).
        assert (Q : listed j u (added A) \/ listed j u (brought A)).
        { apply new_link; auto. destruct C as [C|[C|[[_ C]|[C _]]]]; auto; try congruence; left. intro K; apply C; split; [auto|split; [auto|split; auto]]. }
        destruct Q as [Q|Q]; [left|right].
        + pose proof (proj2 (reached sides u v j _ (or_introl (conj eq_refl eq_refl)) N1 N2 Q) E) as R. destruct (id_eq u u); [auto|contradiction].
        + apply (held sides j _ (JN u SU Q)); auto.
      - destruct H as [E H]. rewrite (ST E).
        assert (Q : listed j v (added A) \/ listed j v (brought A)).
        { apply new_link; auto. destruct C as [C|[C|[[C _]|[_ C]]]]; auto; try congruence; left. intro K; apply C; split; [auto|split; [auto|split; auto]]. }
        destruct Q as [Q|Q]; [left|right].
        + pose proof (proj2 (reached sides v u j _ (or_intror (conj eq_refl eq_refl)) N1 N2 Q) E) as R. destruct (id_eq v u); [congruence|auto].
        + apply (held sides j _ (JN v SV Q)); auto.
      - destruct H as [HU HV].
        assert (AD : listed j u (added A) \/ listed j v (added A) -> In (AtBoth, j) (flat_map (reached_by sides) (added A))).
        { intros [Q|Q]; [apply (proj1 (reached sides u v j _ (or_introl (conj eq_refl eq_refl)) N1 N2 Q))|apply (proj1 (reached sides v u j _ (or_intror (conj eq_refl eq_refl)) N1 N2 Q))]. }
        assert (BR : In j (injected A) -> In (AtBoth, j) (flat_map (reached_by sides) (added A)) \/ In (AtBoth, j) (if two then flat_map (held_by sides) (joined A) else [])).
        { intro I. destruct (injected_link u j SU I HU) as [Q|Q]; [left; auto|]. destruct (injected_link v j SV I HV) as [Q'|Q']; [left; auto|]. right.
          destruct two; [apply (proj1 (held sides j _ (JN u SU Q)))|]. destruct TW as [TW|TW]; [discriminate|].
          pose proof (two_edges j (proj1 (brought_by u j SU Q)) (proj1 (brought_by v j SV Q'))). specialize (TW j); lia. }
        assert (ONE : forall x, spares A x -> (x = u \/ x = v) -> near_to G' x j -> ~ near_to G x j \/ In j (removed A) \/ listed j x (deleted A) ->
                  In (AtBoth, j) (flat_map (reached_by sides) (added A)) \/ In (AtBoth, j) (if two then flat_map (held_by sides) (joined A) else [])).
        { intros x Sx X Hx Cx. destruct (new_link x j Sx Hx Cx) as [Q|Q]; [left; apply AD; destruct X as [->| ->]; auto|]. apply BR, (proj2 (brought_by x j Sx Q)). }
        destruct C as [C|[C|[[_ C]|[_ C]]]].
        + apply (ONE u); auto.
        + destruct (near_dec G u j) as [KU|KU]; [|apply (ONE u); auto]. destruct (near_dec G v j) as [KV|KV]; [|apply (ONE v); auto].
          exfalso; apply C; split; [auto|split; [auto|split; auto]].
        + apply (ONE u); auto.
        + apply (ONE v); auto.
    Qed.

    Lemma stays_near x j : (x = u \/ x = v) -> near_to G x j -> ~ listed j x (deleted A) -> ~ In j (removed A) -> near_to G' x j.
    Proof.
      intros X [J M] D R. split; auto. destruct X as [->| ->]; [apply (pa_first _ _ _ PA)|apply (pa_second _ _ _ PA)]; auto.
    Qed.

    (** A vote stays, or its node is removed, or a pair that it needs is deleted. *)
    Lemma stays_or sides x : votes_in sides G x ->
      In (snd x) (removed A) \/ (fst x <> AtSecond /\ listed (snd x) u (deleted A)) \/ (fst x <> AtFirst /\ listed (snd x) v (deleted A)) \/ (votes_in sides G' x /\ ~ In (snd x) (removed A)).
    Proof.
      destruct x as [s j]; intros [N1 [N2 H]]; cbn [fst snd] in *.
      destruct (in_dec id_eq j (removed A)) as [R|R]; auto. right.
      destruct s.
      - destruct (listed_dec id id_eq j u (deleted A)); [left; split; [discriminate|auto]|]. right; right. destruct H as [E H]. split; [|auto]. split; [auto|split; [auto|split; [auto|apply (stays_near u); auto]]].
      - destruct (listed_dec id id_eq j v (deleted A)); [right; left; split; [discriminate|auto]|]. right; right. destruct H as [E H]. split; [|auto]. split; [auto|split; [auto|split; [auto|apply (stays_near v); auto]]].
      - destruct (listed_dec id id_eq j u (deleted A)); [left; split; [discriminate|auto]|]. destruct (listed_dec id id_eq j v (deleted A)); [right; left; split; [discriminate|auto]|].
        right; right. destruct H as [HU HV]. split; [|auto]. split; [auto|split; [auto|split; [apply (stays_near u)|apply (stays_near v)]; auto]].
    Qed.

    Lemma goes sides x : votes_in sides G x ->
      In (snd x) (removed A) \/ (fst x <> AtSecond /\ listed (snd x) u (deleted A)) \/ (fst x <> AtFirst /\ listed (snd x) v (deleted A)) -> In x (go_in sides A).
    Proof.
      destruct x as [s j]; intros [N1 [N2 H]] C; cbn [fst snd] in *. unfold go_in; rewrite in_app_iff. destruct C as [C|[[S C]|[S C]]].
      - right. destruct s; [destruct H as [E _]; apply (held sides j _ C); auto|destruct H as [E _]; apply (held sides j _ C); auto|apply (held sides j _ C)].
      - left. destruct (reached sides u v j _ (or_introl (conj eq_refl eq_refl)) N1 N2 C) as [K1 K2]. destruct (id_eq u u); [|contradiction].
        destruct s; [apply K2, H|congruence|auto].
      - left. destruct (reached sides v u j _ (or_intror (conj eq_refl eq_refl)) N1 N2 C) as [K1 K2]. destruct (id_eq v u); [congruence|].
        destruct s; [congruence|apply K2, H|auto].
    Qed.

    Lemma node_kept x : spares A x -> node G' x = node G x.
    Proof. apply (spared_node id F W A G G' x L). Qed.

    (** Theorem 18: the votes of an attacked graph are those of G but for the ones that come, go and are altered. *)
    Lemma pair_changes sides two blind V N' b p g a : (blind = true -> reads_nothing) -> pair_model -> pair_faithful sides V G -> pair_reading sides V G' N' b p g -> (sides = true -> two = true) -> two_or_one two ->
      stacked_changes voter V N' b a (come_in sides two A) (go_in sides A) (if blind then [] else altered_by sides A) [].
    Proof.
      intros BL M Fa [[NN' HN'] [HR _]] ST TW. destruct (pf_lists _ _ _ Fa) as [NN HN].
      assert (NU := node_kept u (pa_u _ _ _ PA)). assert (NV := node_kept v (pa_v _ _ _ PA)).
      split; auto.
      - intros x I. rewrite (pf_steps _ _ _ Fa). apply (pm_vote M G' x), HR; auto.
      - intros x I. pose proof (proj1 (HN x) I) as VI.
        assert (GONE : In (snd x) (removed A) \/ (fst x <> AtSecond /\ listed (snd x) u (deleted A)) \/ (fst x <> AtFirst /\ listed (snd x) v (deleted A)) ->
                  In x (go_in sides A) /\ (In x (come_in sides two A) \/ ~ In x N')).
        { intro C. pose proof (goes sides x VI C) as Q. split; auto. destruct (in_dec voter_eq x N') as [I'|]; auto. left. apply comes; auto. { apply HN'; auto. } tauto. }
        destruct (stays_or sides x VI) as [C|[C|[C|[V' R]]]]; [left; auto|left; auto|left; auto|]. right.
        assert (I' : In x N') by (apply HN'; auto).
        destruct blind.
        { right; right; split; auto. apply (pf_votes _ _ _ Fa x I). apply (BL eq_refl G G'); auto. }
        destruct (in_dec id_eq (snd x) (altered A)) as [AL|AL].
        { left; split; auto. unfold altered_by. destruct x as [s j]; cbn [snd] in *. destruct VI as [_ [_ H]]; cbn [fst snd] in H. destruct s; [destruct H as [E _]|destruct H as [E _]|]; apply (held sides j _ AL); auto. }
        right; right; split; auto. apply (pf_votes _ _ _ Fa x I). apply (pm_local M G G'); auto.
        destruct (nodes_ok _ _ _ _ _ _ L (snd x)) as [|[Q|[|]]]; auto; try contradiction. exfalso.
        destruct (fresh_ok _ _ _ _ _ _ L _ Q) as [E|E]; [|contradiction]. destruct x as [s j]; cbn [fst snd] in *. destruct VI as [_ [_ H]]; cbn [fst snd] in H.
        assert (X : exists z, near_to G z j) by (destruct s; [exists u; apply H|exists v; apply H|exists u; apply H]).
        destruct X as [z [[_ [a0|a0]] _]]; destruct (before_ok _ _ _ _ _ _ L _ _ a0); contradiction.
      - intros x I'. destruct (in_dec voter_eq x (neighbours _ V)) as [|NI]; auto. right.
        assert (NV' : ~ votes_in sides G x) by (intro K; apply NI, HN; auto). apply comes; auto; apply HN'; auto.
    Qed.

    Lemma own_read sides V N' b p g : pair_model -> pair_faithful sides V G -> 0 <= slack _ V -> (forall k, 0 <= g_of _ V k) -> pair_reading sides V G' N' b p g -> stacked_reading voter V p g.
    Proof.
      intros M Fa SL GP [_ [_ [Ho Hg]]]. split; intro k.
      - apply (pf_own _ _ _ Fa). apply (pm_own M G G'); auto; apply node_kept; [apply (pa_u _ _ _ PA)|apply (pa_v _ _ _ PA)].
      - rewrite Hg. split; auto. unfold near, bit_of. destruct (computed _ V); lia.
    Qed.
  End Attacked.

  (** ---- How many ---- *)

  Lemma flat_few {X Y} (f : X -> list Y) c l : (forall x, (length (f x) <= c)%nat) -> (length (flat_map f l) <= c * length l)%nat.
  Proof. intro H; induction l as [|x l IH]; simpl; [lia|]. rewrite app_length. specialize (H x). lia. Qed.
  Lemma reached_few sides p : (length (reached_by sides p) <= if sides then 2 else 1)%nat.
  Proof. unfold reached_by. destruct (at_node u p), (at_node v p), sides; simpl; lia. Qed.
  Lemma held_few sides j : (length (held_by sides j) <= if sides then 3 else 1)%nat.
  Proof. unfold held_by; destruct sides; simpl; lia. Qed.

  (** The number of votes, for any number of changes. *)
  Lemma come_few sides two A : (length (come_in sides two A) <= (if sides then 2 else 1) * length (added A) + (if two then (if sides then 3 else 1) * length (joined A) else 0))%nat.
  Proof.
    unfold come_in. rewrite app_length. pose proof (flat_few (reached_by sides) _ (added A) (reached_few sides)).
    destruct two; [pose proof (flat_few (held_by sides) _ (joined A) (held_few sides)); lia|simpl length; lia].
  Qed.
  Lemma go_few sides A : (length (go_in sides A) <= (if sides then 2 else 1) * length (deleted A) + (if sides then 3 else 1) * length (removed A))%nat.
  Proof.
    unfold go_in. rewrite app_length. pose proof (flat_few (reached_by sides) _ (deleted A) (reached_few sides)). pose proof (flat_few (held_by sides) _ (removed A) (held_few sides)). lia.
  Qed.
  Lemma altered_few sides A : (length (altered_by sides A) <= (if sides then 3 else 1) * length (altered A))%nat.
  Proof. apply flat_few, held_few. Qed.

  (** ---- Theorem 18, in plain numbers ---- *)

  Lemma sum_part (c : voter -> Z) l : NoDup l -> forall m, incl l m -> (forall x, In x m -> 0 <= c x) -> sum voter c l <= sum voter c m.
  Proof.
    induction l as [|x l IH]; intros ND m I P; cbn [sum].
    - clear -P. induction m as [|y m IH]; cbn [sum]; [lia|]. specialize (IH (fun z J => P z (or_intror J))). pose proof (P y (or_introl eq_refl)). lia.
    - inversion ND as [|? ? NX NL]; subst. destruct (in_split x m (I x (or_introl eq_refl))) as [m1 [m2 ->]].
      assert (Q : sum voter c (m1 ++ x :: m2) = c x + sum voter c (m1 ++ m2)) by (apply (sum_perm voter c (m1 ++ x :: m2) (x :: m1 ++ m2)); symmetry; apply Permutation_middle).
      rewrite Q. assert (sum voter c l <= sum voter c (m1 ++ m2)); [|lia]. apply IH; auto.
      + intros y J. assert (K : In y (m1 ++ x :: m2)) by (apply I; right; auto). rewrite in_app_iff in *; destruct K as [K|[<-|K]]; auto; contradiction.
      + intros y J; apply P. rewrite in_app_iff in *; simpl; tauto.
  Qed.
  Lemma sum_app (c : voter -> Z) l m : sum voter c (l ++ m) = sum voter c l + sum voter c m.
  Proof. induction l as [|x l IH]; simpl; lia. Qed.
  Lemma sum_le_of (f c : voter -> Z) l : (forall x, In x l -> f x <= c x) -> sum voter f l <= sum voter c l.
  Proof. induction l as [|x l IH]; intro H; cbn [sum]; [lia|]. specialize (IH (fun y J => H y (or_intror J))). specialize (H x (or_introl eq_refl)). lia. Qed.
  Lemma sum_minus (f c : voter -> Z) l : sum voter (fun x => f x - c x) l = sum voter f l - sum voter c l.
  Proof. induction l as [|x l IH]; cbn [sum]; lia. Qed.

  (** What two lists that differ in few votes add up to. *)
  Lemma sums_apart (f f' c : voter -> Z) (N N' come go : list voter) : NoDup N -> NoDup N' -> (forall x, 0 <= c x) ->
    (forall x, In x N -> f x <= c x) -> (forall x, In x N' -> - c x <= f' x) ->
    (forall x, In x N -> (In x go /\ (In x come \/ ~ In x N')) \/ (In x N' /\ f' x = f x)) -> (forall x, In x N' -> In x N \/ In x come) ->
    sum voter f N - sum voter c go - sum voter c come <= sum voter f' N'.
  Proof.
    intros D D' C1 B B' OLD NEW.
    assert (DEC : forall x, In x N -> {In x N' /\ f' x = f x} + {In x go /\ (In x come \/ ~ In x N')}).
    { intros x I. destruct (in_dec voter_eq x N') as [I'|I']; [|right; destruct (OLD x I) as [|[K _]]; [auto|contradiction]].
      destruct (Z.eq_dec (f' x) (f x)); [left; auto|right]. destruct (OLD x I) as [|[_ K]]; [auto|contradiction]. }
    set (keeps := fun x => if in_dec voter_eq x N then if in_dec voter_eq x N' then if Z.eq_dec (f' x) (f x) then true else false else false else false).
    assert (KT : forall x, keeps x = true <-> In x N /\ In x N' /\ f' x = f x).
    { intro x; unfold keeps. destruct (in_dec voter_eq x N), (in_dec voter_eq x N'), (Z.eq_dec (f' x) (f x)); split; intro H; try discriminate; try tauto. }
    assert (S1 : sum voter f N = sum voter f (filter keeps N) + sum voter f (filter (fun x => negb (keeps x)) N)) by (apply sum_split).
    assert (S2 : sum voter f' N' = sum voter f' (filter keeps N') + sum voter f' (filter (fun x => negb (keeps x)) N')) by (apply sum_split).
    assert (P : Permutation (filter keeps N) (filter keeps N')) by (apply NoDup_Permutation; try (apply NoDup_filter; auto); intro x; rewrite !filter_In, KT; tauto).
    assert (E : sum voter f' (filter keeps N') = sum voter f (filter keeps N)).
    { rewrite <- (sum_perm voter f' _ _ P). assert (Q : forall l, (forall x, In x l -> f' x = f x) -> sum voter f' l = sum voter f l).
      { clear; induction l as [|x l IH]; intro H; cbn [sum]; auto. rewrite IH by (intros; apply H; right; auto). rewrite (H x (or_introl eq_refl)); auto. }
      apply Q; intros x I; apply filter_In in I; destruct I as [_ I]; apply KT in I; tauto. }
    assert (G1 : sum voter f (filter (fun x => negb (keeps x)) N) <= sum voter c go).
    { transitivity (sum voter c (filter (fun x => negb (keeps x)) N)).
      - apply sum_le_of; intros x I; apply filter_In in I; apply B; tauto.
      - apply sum_part; auto; [apply NoDup_filter; auto|]. intros x I; apply filter_In in I; destruct I as [I K]. destruct (DEC x I) as [[I' Q]|[Q _]]; auto.
        exfalso. assert (keeps x = true) by (apply KT; auto). rewrite H in K; discriminate. }
    assert (G2 : - sum voter c come <= sum voter f' (filter (fun x => negb (keeps x)) N')).
    { assert (sum voter (fun x => - f' x) (filter (fun x => negb (keeps x)) N') <= sum voter c come).
      { transitivity (sum voter c (filter (fun x => negb (keeps x)) N')).
        - apply sum_le_of; intros x I; apply filter_In in I; destruct I as [I _]. specialize (B' x I). lia.
        - apply sum_part; auto; [apply NoDup_filter; auto|]. intros x I; apply filter_In in I; destruct I as [I K].
          destruct (NEW x I) as [J|]; auto. destruct (DEC x J) as [[I' Q]|[_ [Q|Q]]]; auto; [|contradiction].
          exfalso. assert (keeps x = true) by (apply KT; auto). rewrite H in K; discriminate. }
      assert (Q : forall l, sum voter (fun x => - f' x) l = - sum voter f' l) by (clear; induction l as [|x l IH]; cbn [sum]; lia). rewrite Q in H. lia. }
    lia.
  Qed.

  Lemma cost_of_pairs S w gamma l : 0 <= w -> 0 <= gamma -> 0 <= S ->
    sum voter (fun x => S * weight w gamma x) (flat_map (reached_by true) l) <= S * (w + gamma) * Z.of_nat (length (near_pairs l)).
  Proof.
    intros Hw Hg HS. induction l as [|p l IH]; [simpl; lia|]. cbn [flat_map]. rewrite sum_app. unfold near_pairs in *; cbn [filter]. unfold reached_by at 1.
    destruct (at_node u p), (at_node v p); cbn [xorb sum length weight fst]; nia.
  Qed.
  Lemma cost_of_nodes S w gamma l : 0 <= w -> 0 <= gamma -> 0 <= S ->
    sum voter (fun x => S * weight w gamma x) (flat_map (held_by true) l) <= S * (2 * w + gamma) * Z.of_nat (length l).
  Proof.
    intros Hw Hg HS. induction l as [|p l IH]; [simpl; lia|]. cbn [flat_map held_by]. rewrite sum_app. cbn [sum length weight fst]. nia.
  Qed.

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
  Proof.
    intros S w gamma p ballot A G G' N N' a k apart AK Hw Hg BV LOC PA NA [ND HN] [ND' HN'].
    assert (HS : 0 <= S) by (destruct (BV G (AtBoth, u)) as [B1 B2]; pose proof (B1 a); pose proof (B1 k); specialize (B2 a k AK); lia).
    set (lead := fun H (x : voter) => weight w gamma x * ballot H x a - weight w gamma x * ballot H x k).
    assert (WP : forall x, 0 <= weight w gamma x) by (intros [[] j]; simpl; auto).
    assert (BD : forall H x, - (S * weight w gamma x) <= lead H x <= S * weight w gamma x).
    { intros H x. destruct (BV H x) as [B1 B2]. pose proof (B1 a); pose proof (B1 k). specialize (B2 a k AK). specialize (WP x). unfold lead. nia. }
    pose proof (sums_apart (lead G) (lead G') (fun x => S * weight w gamma x) N N' (come_in true true A) (go_in true A) ND ND') as Q.
    assert (R : sum voter (lead G) N - sum voter (fun x => S * weight w gamma x) (go_in true A) - sum voter (fun x => S * weight w gamma x) (come_in true true A) <= sum voter (lead G') N').
    { apply Q.
      - intro x; specialize (WP x); nia.
      - intros x _; apply BD.
      - intros x _; apply BD.
      - intros x I. pose proof (proj1 (HN x) I) as VI.
        assert (GONE : In (snd x) (removed A) \/ (fst x <> AtSecond /\ listed (snd x) u (deleted A)) \/ (fst x <> AtFirst /\ listed (snd x) v (deleted A)) ->
                  In x (go_in true A) /\ (In x (come_in true true A) \/ ~ In x N')).
        { intro C. split; [eapply goes; eauto|]. destruct (in_dec voter_eq x N') as [I'|]; auto. left. apply (comes A G G' apart PA); auto; [left; auto|apply HN'; auto|tauto]. }
        destruct (stays_or A G G' PA true x VI) as [C|[C|[C|[V' R]]]]; [left; auto|left; auto|left; auto|]. right. split; [apply HN'; auto|].
        unfold lead. rewrite !(LOC G G' x); auto.
        all: try (apply (node_kept A G G' PA); [apply (pa_u _ _ _ PA)]). all: try (apply (node_kept A G G' PA); apply (pa_v _ _ _ PA)).
        all: destruct (nodes_ok _ _ _ _ _ _ (pa_leads _ _ _ PA) (snd x)) as [|[J|[|J]]]; auto; try contradiction; try (rewrite NA in J; contradiction); exfalso;
          destruct (fresh_ok _ _ _ _ _ _ (pa_leads _ _ _ PA) _ J) as [E|E]; [|contradiction]; destruct x as [s j]; cbn [fst snd] in *; destruct VI as [_ [_ H]]; cbn [fst snd] in H;
          (assert (X : exists z, near_to G z j) by (destruct s; [exists u; apply H|exists v; apply H|exists u; apply H]));
          destruct X as [z [[_ [a0|a0]] _]]; destruct (before_ok _ _ _ _ _ _ (pa_leads _ _ _ PA) _ _ a0); contradiction.
      - intros x I'. destruct (in_dec voter_eq x N) as [|NI]; auto. right. assert (NV' : ~ votes_in true G x) by (intro K; apply NI, HN; auto).
        apply (comes A G G' apart PA); auto; [left; auto|apply HN'; auto]. }
    unfold come_in, go_in in R. rewrite !sum_app in R.
    pose proof (cost_of_pairs S w gamma (added A) Hw Hg HS). pose proof (cost_of_pairs S w gamma (deleted A) Hw Hg HS).
    pose proof (cost_of_nodes S w gamma (joined A) Hw Hg HS). pose proof (cost_of_nodes S w gamma (removed A) Hw Hg HS).
    unfold pair_score. unfold lead in R. rewrite !sum_minus in R. rewrite !Nat2Z.inj_add. nia.
  Qed.
End Pairs.

(** Whether neighbours of one of the two nodes vote as well. *)
Definition sides_of (r : pair_rule) : bool := match r with Both => true | _ => false end.
(** Whether injected nodes have two edges. *)
Definition two_of (r : pair_rule) (B : budget) : bool :=
  match r with Common => negb match edges_per_injected B with Some t => t <? 2 | None => false end | _ => true end.

Lemma few_times {X Y} (c : nat) (l : list X) (m : list Y) n : (0 < c)%nat -> (length l <= c * length m)%nat -> few m n -> few l (lmul (Some (Z.of_nat c)) n).
Proof. unfold few, within, lmul. intros C H Hm. destruct n as [x|]; [nia|]. destruct (Z.leb_spec (Z.of_nat c) 0); [lia|auto]. Qed.
Lemma few_joined_in {X} (l : list X) e d c n x y : few l n -> few l (joined_nodes (Budget e d c n None x y None)).
Proof.
  unfold few, within, joined_nodes, injected_edges; cbn [inject_nodes edges_per_injected edges_in_all]. destruct n as [m|]; cbn [lmul lmin]; auto.
  intro H. destruct (Z.leb_spec m 0); cbn [lmin]; lia.
Qed.
Lemma few_part {X} (l m : list X) n : (length l <= length m)%nat -> few m n -> few l n.
Proof. unfold few, within; destruct n; auto; lia. Qed.
Lemma few_sum {X Y Z0} (l : list X) (m : list Y) (k : list Z0) n n' : (length l <= length m + length k)%nat -> few m n -> few k n' -> few l (ladd n n').
Proof. unfold few, within, ladd; destruct n, n'; auto; lia. Qed.

Section Numbers.
  Variables (id F W : Type).
  Hypothesis id_eq : forall x y : id, {x = y} + {x <> y}.
  Variables (u v : id) (masked : id -> id -> bool).
  Variables (A : attack id) (G G' : graph id F W).
  Hypothesis PA : pair_attack id F W u v A G G'.

  (** Theorem 18: no more votes come, go and are altered than the budget of Theorem 10 says. *)
  Lemma pair_few r blind B : r <> Trusted -> affords id_eq B A ->
    few (come_in id id_eq u v (sides_of r) (two_of r B) A) (new_in (clip_budget (pair_budget r blind B)))
    /\ few (go_in id id_eq u v (sides_of r) A) (lost_in (clip_budget (pair_budget r blind B)))
    /\ few (if blind then [] else altered_by id (sides_of r) A) (change_features (clip_budget (pair_budget r blind B))).
  Proof.
    intros NR Ha. pose proof (few_joined id F W id_eq A B G G' u (pa_leads _ _ _ _ _ _ _ _ PA) Ha) as FJ. destruct Ha as [f1 f2 f3 f4 f5 f6 f7 f8].
    pose proof (come_few id id_eq u v (sides_of r) (two_of r B) A) as C1. pose proof (go_few id id_eq u v (sides_of r) A) as C2. pose proof (altered_few id (sides_of r) A) as C3.
    assert (E : exists e d : nat, (0 < e)%nat /\ (0 < d)%nat /\ Z.of_nat e = votes_of_edge r /\ Z.of_nat d = votes_of_node r
              /\ e = (if sides_of r then 2 else 1)%nat /\ d = (if sides_of r then 3 else 1)%nat).
    { destruct r; [exists 1%nat, 1%nat|exists 2%nat, 3%nat|contradiction]; simpl; repeat split; lia. }
    destruct E as (e & d & e0 & d0 & Ee & Ed & Ee' & Ed'). rewrite <- Ee', <- Ed' in *.
    assert (FA : few (flat_map (reached_by id id_eq u v (sides_of r)) (added A)) (lmul (Some (votes_of_edge r)) (add_edges B))).
    { rewrite <- Ee. apply (few_times e _ (added A)); auto. rewrite Ee'. apply flat_few, reached_few. }
    assert (FN : few (if two_of r B then flat_map (held_by id (sides_of r)) (joined A) else []) (lmul (Some (votes_of_node r)) (voting_newcomers r B))).
    { rewrite <- Ed. destruct (two_of r B) eqn:ET.
      - apply (few_times d _ (joined A)); auto; [rewrite Ed'; apply flat_few, held_few|]. unfold two_of in ET; unfold voting_newcomers; destruct r; auto. apply negb_true_iff in ET; rewrite ET; auto.
      - apply (few_times d _ (@nil id)); auto; [simpl; lia|]. unfold two_of in ET; unfold voting_newcomers; destruct r; try discriminate. apply negb_false_iff in ET; rewrite ET. unfold few, within; simpl; lia. }
    assert (FD : few (flat_map (reached_by id id_eq u v (sides_of r)) (deleted A)) (lmul (Some (votes_of_edge r)) (delete_edges B))).
    { rewrite <- Ee. apply (few_times e _ (deleted A)); auto. rewrite Ee'. apply flat_few, reached_few. }
    assert (FR : few (flat_map (held_by id (sides_of r)) (removed A)) (lmul (Some (votes_of_node r)) (delete_nodes B))).
    { rewrite <- Ed. apply (few_times d _ (removed A)); auto. rewrite Ed'. apply flat_few, held_few. }
    assert (FL : few (if blind then [] else altered_by id (sides_of r) A) (lmul (Some (votes_of_node r)) (if blind then Some 0 else change_features B))).
    { rewrite <- Ed. destruct blind; [apply (few_times d _ (@nil id)); auto; [simpl; lia|unfold few, within; simpl; lia]|apply (few_times d _ (altered A)); auto]. }
    destruct r; try contradiction; unfold new_in, lost_in, pair_budget, clip_budget; cbn [add_edges delete_edges change_edges inject_nodes edges_per_injected delete_nodes change_features edges_in_all];
      change (clip None) with (@None Z); (split; [|split; [|apply few_clip; auto]]).
    all: first [ eapply few_sum; [unfold come_in; rewrite app_length, Nat.add_comm; apply Nat.le_refl|apply few_joined_in, few_clip; exact FN|apply few_clip; exact FA]
               | unfold go_in; apply few_app; apply few_clip; auto ].
  Qed.

  Lemma two_enough r B : r <> Trusted -> affords id_eq B A -> two_or_one id id_eq A (two_of r B).
  Proof.
    intros NR Ha. unfold two_or_one, two_of. destruct r; auto. destruct (edges_per_injected B) as [t|] eqn:E; auto. destruct (Z.ltb_spec t 2) as [T|T]; auto.
    right; intro w. pose proof (few_brought _ _ _ _ Ha w) as Q. rewrite E in Q. unfold few, within in Q. lia.
  Qed.
  Lemma two_sides r B : sides_of r = true -> two_of r B = true.
  Proof. destruct r; simpl; auto; discriminate. Qed.
End Numbers.

Lemma left_out_of_pairs r blind s t B own k : nth k (pairs_cannot_get r blind s t (B, own)) false = true -> fits_rule r s = true /\ stacked_left_out s t (pair_budget r blind (clip_budget B), own) k = true.
Proof.
  intro H. unfold pairs_cannot_get in H; cbn [fst snd] in H. unfold stacked_left_out. set (l := stacked_cannot_get _ _ _ _) in *. clearbody l. destruct (fits_rule r s).
  - split; auto. rewrite (map_ext _ (fun out => out)) in H by auto. rewrite map_id in H; auto.
  - exfalso. assert (Q : forall m j, nth j (map (fun out => false && out) m) false = false) by (clear; induction m as [|x m IH]; intros [|j]; simpl; auto). rewrite Q in H; discriminate.
Qed.

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

  Lemma rule_facts : fits_rule r s = true -> x_second s = 0 /\ x_by_edge s = false.
  Proof.
    unfold fits_rule; intro H. apply andb_prop in H; destruct H as [H H3]. apply andb_prop in H; destruct H as [H1 _]. apply Z.eqb_eq in H1.
    split; auto. destruct r; try contradiction; destruct (x_by_edge s); auto; discriminate.
  Qed.

  Lemma machine_reads A : sensible_file s t = true -> pair_attack id F W u v A G G' -> stacked_reading (voter id) V p g.
  Proof.
    intros M PA. pose proof (file_sensible (voter id) V s t same M) as OK. eapply (own_read id F W u v masked reads own_score A G G'); eauto; [apply (slack_pos _ _ OK)|apply (g_pos _ _ OK)].
  Qed.

  (** Theorem 18 for a budget: if the checker says that a pair holds, its label stays. *)
  Theorem pairs_certificate B own : pairs_hold r blind s c (B, own) = true -> pair_attacked id F W id_eq u v B G G' ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H [A [PA Ha]]. unfold pairs_hold in H; cbn [fst snd] in H. apply andb_prop in H; destruct H as [FR H]. destruct (rule_facts FR) as [H2 HB].
    unfold stacked_holds in H; cbn [fst snd] in H. rewrite H2 in H; cbn [Z.eqb] in H. destruct own; [discriminate|]. split; auto.
    assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
    pose proof (affords_clip id_eq _ _ Ha) as Hc. destruct (pair_few id F W id_eq u v A G G' PA r blind (clip_budget B) of_neighbours Hc) as [F1 [F2 F3]].
    eapply (stacked_test_sound (voter id) (voter_eq id id_eq) V s t same M some_class false); [exact H|eapply machine_reads; eauto| |].
    - eapply (pair_changes id F W id_eq u v masked reads own_score A G G' apart PA (sides_of r) (two_of r (clip_budget B)) blind); eauto; [apply two_sides|apply (two_enough id id_eq A); auto].
    - rewrite app_nil_r. unfold within_numbers, altered_in. rewrite HB. repeat split; auto; [|discriminate].
      revert F3; unfold few, ladd. destruct (change_features (clip_budget (pair_budget r blind (clip_budget B)))); simpl; auto; lia.
  Qed.

  (** Theorem 18, the radius: x edges and other nodes, changed in whatever way and in any mix. *)
  Theorem pairs_radius x A : right_pairs_radius r blind s c x = true -> 0 <= x -> pair_attack id F W u v A G G' ->
    Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A) + (if blind then 0 else length (altered A))) <= x ->
    stacked_label (voter id) V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H X PA Q. unfold right_pairs_radius, is_largest in H. apply andb_prop in H; destruct H as [_ H].
    destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]. apply andb_prop in H; destruct H as [_ H].
    pose proof (come_few id id_eq u v (sides_of r) true A) as C1. pose proof (go_few id id_eq u v (sides_of r) A) as C2. pose proof (altered_few id (sides_of r) A) as C3.
    assert (CH : stacked_changes (voter id) V N' b (y_label c) (come_in id id_eq u v (sides_of r) true A) (go_in id id_eq u v (sides_of r) A) (if blind then [] else altered_by id (sides_of r) A) []).
    { eapply (pair_changes id F W id_eq u v masked reads own_score A G G' apart PA (sides_of r) true blind); eauto. left; auto. }
    destruct blind.
    - assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
      eapply (stacked_test_sound (voter id) (voter_eq id id_eq) V s t same M some_class true); [exact H|eapply machine_reads; eauto|exact CH|].
      rewrite app_nil_r. unfold within_numbers, within. simpl length in *. destruct r; try contradiction; cbn [sides_of votes_of_node] in *; repeat split; lia.
    - assert (M : sensible_file s t = true) by (unfold any_stacked_test in H; apply andb_prop in H; apply H).
      eapply (any_stacked_sound (voter id) (voter_eq id id_eq) V s t same M some_class _); [exact H|eapply machine_reads; eauto|exact CH|].
      rewrite app_nil_r. destruct r; try contradiction; cbn [sides_of votes_of_node] in *; lia.
  Qed.

  (** Theorem 18, the radius against edges and nodes that come and go. *)
  Theorem pairs_structure x A : right_pairs_structure r s c x = true -> 0 <= x -> pair_attack id F W u v A G G' -> altered A = [] ->
    Z.of_nat (length (added A) + length (deleted A) + length (joined A) + length (removed A)) <= x ->
    stacked_label (voter id) V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H X PA NA Q. unfold right_pairs_structure, is_largest in H. apply andb_prop in H; destruct H as [_ H].
    destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]. apply andb_prop in H; destruct H as [_ H].
    assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
    eapply (stacked_test_sound (voter id) (voter_eq id id_eq) V s t same M some_class true); [exact H|eapply machine_reads; eauto| |].
    - eapply (pair_changes id F W id_eq u v masked reads own_score A G G' apart PA (sides_of r) true blind); eauto. left; auto.
    - rewrite app_nil_r. pose proof (come_few id id_eq u v (sides_of r) true A) as C1. pose proof (go_few id id_eq u v (sides_of r) A) as C2.
      unfold altered_by; rewrite NA. unfold within_numbers, within. simpl length. destruct blind; simpl length; destruct r; try contradiction; cbn [sides_of votes_of_node] in *; repeat split; lia.
  Qed.

  (** Theorem 12 (c) with Theorem 18: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
  Theorem pairs_excluded B own k : nth k (pairs_cannot_get r blind s t (B, own)) false = true -> pair_attacked id F W id_eq u v B G G' ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b <> k.
  Proof.
    intros H [A [PA Ha]].
    pose proof (left_out_of_pairs r blind s t B own k H) as H'.
    destruct H' as [FR LO]. destruct (rule_facts FR) as [H2 HB].
    destruct (stacked_left_out_by s t _ own k some_class LO) as [-> [M [Hk [j [Hj [N LS]]]]]]. split; auto. cbv zeta in LS. rewrite H2 in LS. cbn [Z.eqb] in LS.
    pose proof (affords_clip id_eq _ _ Ha) as Hc. destruct (pair_few id F W id_eq u v A G G' PA r blind (clip_budget B) of_neighbours Hc) as [F1 [F2 F3]].
    apply (beaten _ _ j k Hj N). eapply (lead_stays_sound (voter id) (voter_eq id id_eq) V s t same M some_class false); [apply (against_counted (voter id) V s t same some_class)|exact LS|auto|auto|auto|eapply machine_reads; eauto| |].
    - eapply (pair_changes id F W id_eq u v masked reads own_score A G G' apart PA (sides_of r) (two_of r (clip_budget B)) blind); eauto; [apply two_sides|apply (two_enough id id_eq A); auto].
    - rewrite app_nil_r. unfold within_numbers, altered_in. rewrite HB. repeat split; auto; [|discriminate].
      revert F3; unfold few, ladd. destruct (change_features (clip_budget (pair_budget r blind (clip_budget B)))); simpl; auto; lia.
  Qed.

  (** Theorem 13 with Theorem 18: an attack that costs less than the stated price leaves the label as it is. *)
  Theorem pairs_price P X own : dearer (pairs_hold r blind s c) P X = true -> paid id_eq P X own (fun B => pair_attacked id F W id_eq u v B G G') ->
    own = false /\ stacked_label (voter id) V (x_classes s) p g N' b = y_label c.
  Proof. intros D Q. destruct (price_sound _ _ _ _ _ _ D Q) as [B [? ?]]. eapply pairs_certificate; eauto. Qed.
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
  (** Votes that come, go and are altered: of pairs at v alone. *)
  Definition to_second (l : list (id * id)) : list id := map (other id id_eq v) l.

  (** ---- Proofs ---- *)

  Section Attacked.
    Variables (A : attack id) (G G' : graph) (V : stacked_votes id) (N' : list id) (b : id -> nat -> Z) (p g : nat -> Z) (a : nat).
    Hypothesis TA : trusted_attack A G G'.
    Hypothesis model : trusted_model.
    Hypothesis faithful : trusted_faithful V G.
    Hypothesis read : trusted_reading V G' N' b p g.
    Let L := ta_leads _ _ _ TA.

    (** A contact whose arc to v was taken away by a change of the pair counts as one with the vote 0. *)
    Definition silenced (j : id) : bool := negb (mem id id_eq j N') && (if listed_dec id id_eq j v (deleted A) then false else true).
    (** All that speak, and the silenced. *)
    Definition speakers : list id := N' ++ filter silenced (neighbours _ V).
    (** Their votes. *)
    Definition spoken (j : id) (k : nat) : Z := if mem id id_eq j N' then b j k else 0.

    Lemma contact_kept j : contact G' j <-> contact G j.
    Proof. unfold contact. rewrite (ta_own _ _ _ TA). tauto. Qed.
    Lemma contact_there j : contact G j -> node G j <> None /\ ~ In j (injected A).
    Proof.
      intro C. destruct (ta_contacts _ _ _ TA j C) as [R _]. destruct C as [[w [E _]] _].
      assert (nj : node G j <> None) by (destruct (before_ok _ _ _ _ _ _ L u j ltac:(congruence)); auto). split; auto.
      intro I. destruct (fresh_ok _ _ _ _ _ _ L j I); contradiction.
    Qed.
    Lemma contact_same j : contact G j -> node G' j = node G j.
    Proof.
      intro C. destruct (contact_there j C) as [_ NI]. destruct (ta_contacts _ _ _ TA j C) as [R NA]. destruct (nodes_ok _ _ _ _ _ _ L j) as [|[|[|]]]; auto; contradiction.
    Qed.
    Lemma no_bringer j : contact G j -> ~ listed j v (brought A).
    Proof.
      intros C [I|I]; pose proof (brings_ok _ _ _ _ _ _ L _ _ I) as Q; [apply (contact_there j C); auto|apply (proj1 (ta_v _ _ _ TA)); auto].
    Qed.

    (** The arc of a contact to v differs only if the pair was added, deleted or changed. *)
    Lemma arc_of_contact j : contact G j -> arc G' j v = arc G j v \/ (arc G j v = None /\ listed j v (added A)) \/ listed j v (deleted A) \/ (listed j v (changed A) /\ arc G j v <> None).
    Proof.
      intro C. destruct (ta_contacts _ _ _ TA j C) as [R NA]. destruct (ta_v _ _ _ TA) as [V1 [V2 V3]].
      destruct (arcs_ok _ _ _ _ _ _ L j v) as [E|[P|[[P E]|[[P E]|[P|[[P E]|[P E]]]]]]]; auto.
      - destruct (added_ok _ _ _ _ _ _ (ta_strict _ _ _ TA) j v P) as [E|[E|[E|[E|E]]]]; auto; contradiction.
      - destruct (no_bringer j C P).
      - destruct P; contradiction.
      - destruct P; contradiction.
    Qed.

    Lemma speakers_once : NoDup (neighbours _ V) -> NoDup N' -> NoDup speakers.
    Proof.
      intros D D'. unfold speakers. revert D'. assert (X : forall j, In j (filter silenced (neighbours _ V)) -> ~ In j N').
      { intros j I K. apply filter_In in I; destruct I as [_ I]. unfold silenced in I. apply (mem_true id id_eq) in K. rewrite K in I; discriminate. }
      revert X. assert (DF : NoDup (filter silenced (neighbours _ V))) by (apply NoDup_filter; auto). revert DF. generalize (filter silenced (neighbours _ V)) as m.
      intros m DF X D'. clear -DF X D'. induction N' as [|x l IH]; simpl; auto. inversion D'; subst. constructor.
      - rewrite in_app_iff; intros [|K]; [contradiction|]. apply (X x K); left; auto.
      - apply IH; auto. intros j I K; apply (X j I); right; auto.
    Qed.

    Lemma spoken_sum k : sum id (fun j => spoken j k) speakers = sum id (fun j => b j k) N'.
    Proof.
      unfold speakers. assert (SA : forall (f : id -> Z) l m, sum id f (l ++ m) = sum id f l + sum id f m) by (intros f l m; induction l as [|x l IH]; simpl; lia).
      rewrite SA. assert (Z1 : forall m, (forall j, In j m -> mem id id_eq j N' = false) -> sum id (fun j => spoken j k) m = 0).
      { induction m as [|x m IH]; intro H; cbn [sum]; auto. rewrite IH by (intros; apply H; right; auto). unfold spoken. rewrite (H x (or_introl eq_refl)); auto. }
      rewrite (Z1 (filter silenced (neighbours _ V))). 2: { intros j I; apply filter_In in I; destruct I as [_ I]. unfold silenced in I. destruct (mem id id_eq j N'); auto; discriminate. }
      assert (Z2 : forall l, (forall j, In j l -> In j N') -> sum id (fun j => spoken j k) l = sum id (fun j => b j k) l).
      { induction l as [|x l IH]; intro H; cbn [sum]; auto. rewrite IH by (intros; apply H; right; auto). unfold spoken. assert (M : mem id id_eq x N' = true) by (apply mem_true, H; left; auto). rewrite M; auto. }
      rewrite Z2; auto. lia.
    Qed.

    (** Theorem 19: which votes come, go and are altered. *)
    Lemma trusted_changes : stacked_changes id V speakers spoken a (to_second (added A)) (to_second (deleted A)) (to_second (changed A)) [].
    Proof.
      destruct read as [[D' HN'] [HR _]]. destruct (tf_lists _ _ faithful) as [D HN].
      assert (NU := spared_node id F W A G G' u L (ta_u _ _ _ TA)). assert (NV := spared_node id F W A G G' v L (ta_v _ _ _ TA)).
      assert (OT : forall j l, j <> v -> listed j v l -> In j (to_second l)) by (intros j l N H; apply (other_in id id_eq v); auto).
      split.
      - apply speakers_once; auto.
      - intros j I. rewrite (tf_steps _ _ faithful). unfold spoken. destruct (mem id id_eq j N') eqn:M.
        + apply (tm_vote model G' j), HR, (mem_true id id_eq); auto.
        + split; intros; unfold vote_steps; lia.
      - intros j I. destruct (proj1 (HN j) I) as [N1 [N2 [C [AV MK]]]].
        destruct (listed_dec id id_eq j v (deleted A)) as [ID|ND].
        { left; split; [auto|]. destruct (in_dec id_eq j speakers) as [I'|]; auto. left. unfold speakers in I'; apply in_app_iff in I'. destruct I' as [I'|I'].
          - destruct (proj1 (HN' j) I') as [_ [_ [_ [AV' _]]]]. destruct (ta_pairs _ _ _ TA j v ID) as [E|[E|E]]; auto; [contradiction|destruct (no_bringer j C E)].
          - apply filter_In in I'; destruct I' as [_ I']. unfold silenced in I'. destruct (listed_dec id id_eq j v (deleted A)); [rewrite andb_false_r in I'; discriminate|contradiction]. }
        assert (I' : In j speakers).
        { unfold speakers; apply in_app_iff. destruct (in_dec id_eq j N') as [|NI]; auto. right; apply filter_In; split; auto. unfold silenced.
          assert (M : mem id id_eq j N' = false) by (apply not_true_iff_false; rewrite mem_true; auto). rewrite M. destruct (listed_dec id id_eq j v (deleted A)); auto. }
        right. destruct (listed_dec id id_eq j v (changed A)) as [IC|NC]; [left; auto|]. right; right. split; auto.
        destruct (arc_of_contact j C) as [E|[[E _]|[E|[E _]]]]; try contradiction.
        assert (IN : In j N') by (apply HN'; unfold speaks; rewrite E, contact_kept; auto).
        unfold spoken. assert (M : mem id id_eq j N' = true) by (apply mem_true; auto). rewrite M. apply (tf_votes _ _ faithful j I).
        apply (tm_local model G G'); auto; [apply contact_same; auto|apply (ta_own _ _ _ TA)].
      - intros j I. unfold speakers in I; apply in_app_iff in I. destruct I as [I|I]; [|apply filter_In in I; tauto].
        destruct (in_dec id_eq j (neighbours _ V)) as [|NI]; auto. right. destruct (proj1 (HN' j) I) as [N1 [N2 [C [AV MK]]]]. apply contact_kept in C.
        apply OT; auto. destruct (arc_of_contact j C) as [E|[[E P]|[P|[P E]]]]; auto.
        + exfalso; apply NI, HN. unfold speaks. rewrite <- E. auto.
        + destruct (ta_pairs _ _ _ TA j v P) as [Q|[Q|Q]]; auto; [contradiction|destruct (no_bringer j C Q)].
        + exfalso; apply NI, HN. unfold speaks; auto.
    Qed.

    Lemma trusted_machine : 0 <= slack _ V -> (forall k, 0 <= g_of _ V k) -> stacked_reading id V p g.
    Proof.
      intros SL GP. destruct read as [_ [_ [Ho Hg]]]. split; intro k.
      - apply (tf_own _ _ faithful). apply (tm_own model G G'); auto; [apply (spared_node id F W A G G' u L), (ta_u _ _ _ TA)|apply (spared_node id F W A G G' v L), (ta_v _ _ _ TA)|apply (ta_own _ _ _ TA)].
      - rewrite Hg. split; auto. unfold near, bit_of. destruct (computed _ V); lia.
    Qed.

    Lemma label_of_speakers C : (0 < C)%nat -> pseudo _ V = 0 -> stacked_label id V C p g speakers spoken = stacked_label id V C p g N' b.
    Proof.
      intros HC HP. unfold stacked_label. apply label_is_best. pose proof (best_is_label (stacked id V p g N' b) C HC) as [Q1 Q2]. split; auto.
      assert (E : forall k, stacked id V p g speakers spoken k = stacked id V p g N' b k) by (intro k; unfold stacked, divisor; rewrite HP; cbn [Z.eqb]; rewrite spoken_sum; auto).
      intros k Hk N. rewrite !E. apply Q2; auto.
    Qed.

    Lemma second_few l n : few l n -> few (to_second l) n.
    Proof. apply few_map. Qed.
  End Attacked.
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

  Lemma trusted_rule : fits_rule Trusted s = true -> x_second s = 0 /\ x_by_edge s = true /\ pseudo _ V = 0.
  Proof.
    unfold fits_rule; intro H. apply andb_prop in H; destruct H as [H H3]. apply andb_prop in H; destruct H as [H1 H2]. apply Z.eqb_eq in H1, H2.
    rewrite (f_pseudo _ _ _ same). repeat split; auto. destruct (x_by_edge s); auto; discriminate.
  Qed.
  Lemma trusted_reads A : sensible_file s t = true -> trusted_attack id F W u v masked trusts A G G' -> stacked_reading id V p g.
  Proof.
    intros M TA. pose proof (file_sensible id V s t same M) as OK. eapply (trusted_machine id F W u v masked trusts reads own_score A G G'); eauto; [apply (slack_pos _ _ OK)|apply (g_pos _ _ OK)].
  Qed.

  (** Theorem 19: no more votes come, go and are altered than pairs are added, deleted and changed. Nodes count for nothing. *)
  Lemma trusted_few A B : affords id_eq B A ->
    let D := clip_budget (pair_budget Trusted blind B) in
    few (to_second id id_eq v (added A)) (new_in D) /\ few (to_second id id_eq v (deleted A)) (lost_in D) /\ few (to_second id id_eq v (changed A)) (ladd (change_features D) (change_edges D)).
  Proof.
    intros [f1 f2 f3 f4 f5 f6 f7 f8]. cbv zeta. unfold pair_budget, clip_budget, new_in, lost_in, joined_nodes, injected_edges.
    cbn [add_edges delete_edges change_edges inject_nodes edges_per_injected delete_nodes change_features edges_in_all]. change (clip (Some 0)) with (Some 0). change (clip None) with (@None Z). cbn [lmul lmin].
    pose proof (few_clip _ _ (few_map (other id id_eq v) _ _ f1)) as g1. pose proof (few_clip _ _ (few_map (other id id_eq v) _ _ f2)) as g2. pose proof (few_clip _ _ (few_map (other id id_eq v) _ _ f3)) as g3.
    unfold to_second. revert g1 g2 g3. unfold few, within, ladd. destruct (clip (add_edges B)), (clip (delete_edges B)), (clip (change_edges B)); simpl; intros; repeat split; auto; lia.
  Qed.

  (** Theorem 19 for a budget: if the checker says that a pair holds, its label stays. The budget may have any number of injected nodes. *)
  Theorem trusted_certificate B own : pairs_hold Trusted blind s c (B, own) = true -> trusted_attacked id F W id_eq u v masked trusts B G G' ->
    own = false /\ stacked_label id V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H [A [TA Ha]]. unfold pairs_hold in H; cbn [fst snd] in H. apply andb_prop in H; destruct H as [FR H]. destruct (trusted_rule FR) as [H2 [HB HP]].
    unfold stacked_holds in H; cbn [fst snd] in H. rewrite H2 in H; cbn [Z.eqb] in H. destruct own; [discriminate|]. split; auto.
    assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
    destruct (trusted_few A (clip_budget B) (affords_clip id_eq _ _ Ha)) as [F1 [F2 F3]].
    rewrite <- (label_of_speakers id id_eq v A V N' b p g (x_classes s) some_class HP).
    eapply (stacked_test_sound id id_eq V s t same M some_class false); [exact H|eapply trusted_reads; eauto| |].
    - eapply (trusted_changes id F W id_eq u v masked trusts reads own_score A G G'); eauto.
    - rewrite app_nil_r. unfold within_numbers, altered_in. rewrite HB. repeat split; auto; discriminate.
  Qed.

  (** Theorem 19, the radius: x pairs that are added, deleted and changed, and any number of injected nodes. *)
  Theorem trusted_radius x A : right_pairs_radius Trusted false s c x = true -> 0 <= x -> trusted_attack id F W u v masked trusts A G G' ->
    Z.of_nat (length (added A) + length (deleted A) + length (changed A)) <= x -> stacked_label id V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H X TA Q. unfold right_pairs_radius, is_largest in H. apply andb_prop in H; destruct H as [FR H]. destruct (trusted_rule FR) as [H2 [HB HP]].
    destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]. apply andb_prop in H; destruct H as [_ H].
    assert (M : sensible_file s t = true) by (unfold any_stacked_test in H; apply andb_prop in H; apply H).
    rewrite <- (label_of_speakers id id_eq v A V N' b p g (x_classes s) some_class HP).
    eapply (any_stacked_sound id id_eq V s t same M some_class _); [exact H|eapply trusted_reads; eauto| |].
    - eapply (trusted_changes id F W id_eq u v masked trusts reads own_score A G G'); eauto.
    - rewrite app_nil_r. unfold to_second; rewrite !map_length. cbn [votes_of_node]. lia.
  Qed.

  (** Theorem 19, the radius against pairs that are added and deleted. *)
  Theorem trusted_structure x A : right_pairs_structure Trusted s c x = true -> 0 <= x -> trusted_attack id F W u v masked trusts A G G' -> changed A = [] ->
    Z.of_nat (length (added A) + length (deleted A)) <= x -> stacked_label id V (x_classes s) p g N' b = y_label c.
  Proof.
    intros H X TA NC Q. unfold right_pairs_structure, is_largest in H. apply andb_prop in H; destruct H as [FR H]. destruct (trusted_rule FR) as [H2 [HB HP]].
    destruct (Z.ltb_spec x 0); [lia|]. apply andb_prop in H; destruct H as [H _]. apply andb_prop in H; destruct H as [_ H].
    assert (M : sensible_file s t = true) by (unfold stacked_test in H; apply andb_prop in H; apply H).
    rewrite <- (label_of_speakers id id_eq v A V N' b p g (x_classes s) some_class HP).
    eapply (stacked_test_sound id id_eq V s t same M some_class true); [exact H|eapply trusted_reads; eauto| |].
    - eapply (trusted_changes id F W id_eq u v masked trusts reads own_score A G G'); eauto.
    - rewrite app_nil_r. unfold to_second; rewrite NC, !map_length. cbn [votes_of_node]. unfold within_numbers, within. simpl length. repeat split; lia.
  Qed.

  (** Theorem 12 (c) with Theorem 19: where the checker leaves out k, it is the label of no attacked graph within the budget. *)
  Theorem trusted_excluded B own k : nth k (pairs_cannot_get Trusted blind s t (B, own)) false = true -> trusted_attacked id F W id_eq u v masked trusts B G G' ->
    own = false /\ stacked_label id V (x_classes s) p g N' b <> k.
  Proof.
    intros H [A [TA Ha]]. destruct (left_out_of_pairs Trusted blind s t B own k H) as [FR LO]. destruct (trusted_rule FR) as [H2 [HB HP]].
    destruct (stacked_left_out_by s t _ own k some_class LO) as [-> [M [Hk [j [Hj [N LS]]]]]]. split; auto. cbv zeta in LS. rewrite H2 in LS. cbn [Z.eqb] in LS.
    destruct (trusted_few A (clip_budget B) (affords_clip id_eq _ _ Ha)) as [F1 [F2 F3]].
    rewrite <- (label_of_speakers id id_eq v A V N' b p g (x_classes s) some_class HP). unfold stacked_label.
    apply (beaten _ _ j k Hj N). eapply (lead_stays_sound id id_eq V s t same M some_class false); [apply (against_counted id V s t same some_class)|exact LS|auto|auto|auto|eapply trusted_reads; eauto| |].
    - eapply (trusted_changes id F W id_eq u v masked trusts reads own_score A G G'); eauto.
    - rewrite app_nil_r. unfold within_numbers, altered_in. rewrite HB. repeat split; auto; discriminate.
  Qed.

  (** Theorem 13 with Theorem 19: an attack that costs less than the stated price leaves the label as it is. *)
  Theorem trusted_price P X own : dearer (pairs_hold Trusted blind s c) P X = true -> paid id_eq P X own (fun B => trusted_attacked id F W id_eq u v masked trusts B G G') ->
    own = false /\ stacked_label id V (x_classes s) p g N' b = y_label c.
  Proof. intros D Q. destruct (price_sound _ _ _ _ _ _ D Q) as [B [? ?]]. eapply trusted_certificate; eauto. Qed.
End FileOfTrusted.
