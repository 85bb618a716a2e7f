(** Theorem 21: scores that appended rows can only raise.
    Expressions, their evaluation on a ledger, their types under three threats, trees and the leaf test, and bounds after
    deletions. Values are whole numbers from 0 to [LIMIT]; [clamp] says so once for every operation. *)
From Coq Require Import List ZArith Lia Bool Arith Permutation.
Import ListNotations.
Open Scope Z_scope.

(** * Ledgers *)

(** Rows into an account, or out of it. *)
Inductive way := In_ | Out_.
(** A row: who sends it, who receives it, and its columns. *)
Record row := { source : nat; target : nat; column : nat -> Z }.
Record ledger := { rows : list row; attribute : nat -> nat -> Z }.   (* of an account, by number *)

(** The largest value. *)
Definition LIMIT := 2 ^ 36.
(** A number, cut to the values there are. *)
Definition clamp (z : Z) := Z.max 0 (Z.min z LIMIT).
(** The account at which a row is gathered. *)
Definition near_end (w : way) (r : row) := match w with In_ => target r | Out_ => source r end.
(** The account at the other end of a row. *)
Definition far_end (w : way) (r : row) := match w with In_ => source r | Out_ => target r end.
(** The rows into or out of an account. *)
Definition rows_of (G : ledger) (a : nat) (w : way) := filter (fun r => (near_end w r =? a)%nat) (rows G).

(** * Trees *)

(** Left where a column is at most the limit. *)
Inductive tree := Leaf (worth : Z) | Node (j : nat) (limit : Z) (left right : tree).

(** The worth of the leaf that some features reach. *)
Fixpoint score (t : tree) (x : list Z) : Z :=
  match t with
  | Leaf worth => worth
  | Node j limit l r => if nth j x 0 <=? limit then score l x else score r x
  end.
(** The score of several trees: the sum of theirs. *)
Definition total_score (ts : list tree) (x : list Z) := fold_right Z.add 0 (map (fun t => score t x) ts).

(** A path to a leaf: columns, limits, and whether it went left. *)
Definition path := list (nat * Z * bool).
(** All leaves: the path to each, and its worth. *)
Fixpoint leaves (t : tree) : list (path * Z) :=
  match t with
  | Leaf worth => [([], worth)]
  | Node j limit l r =>
      map (fun q => ((j, limit, true) :: fst q, snd q)) (leaves l) ++
      map (fun q => ((j, limit, false) :: fst q, snd q)) (leaves r)
  end.

(** No row of leaf A lies below one of leaf B, because of column j: A wants more than a limit, B no more than a smaller one;
    or the column is fixed, and the other way round. *)
Definition clash (rises : nat -> bool) (A B : path) : bool :=
  existsb (fun a => existsb (fun b =>
    let '(j, la, left_a) := a in let '(k, lb, left_b) := b in
    (j =? k)%nat && ((negb left_a && left_b && (lb <=? la)) ||
                     (negb (rises j) && left_a && negb left_b && (la <=? lb)))) B) A.
(** A leaf that is worth more than another clashes with it: no rise leads from the first to the second. *)
Definition leaf_test (rises : nat -> bool) (t : tree) : bool :=
  forallb (fun A => forallb (fun B => (snd A <=? snd B) || clash rises (fst A) (fst B)) (leaves t)) (leaves t).

(** * Expressions *)

(** Operations on one value. *)
Inductive op1 := AtLeast (k : Z) | Below (k : Z) | Between (low high : Z) | Multiple (k slack : Z) | Above (k : Z) | Cap (k : Z).
(** Operations on two values. *)
Inductive op2 := Add | Times | Least | Most | Quotient.

(** What is computed of an account, and of a row as one of its ends sees it. *)
Inductive account_expr :=
  | ANumber (k : Z) | AAttribute (j : nat)
  | ASum (w : way) (e : row_expr) | AMax (w : way) (e : row_expr)
  | APartners (w : way) (e : row_expr) | ABurst (w : way) (e : row_expr) (time : nat) (window : Z)
  | AOne (o : op1) (a : account_expr) | ATwo (o : op2) (a b : account_expr)
with row_expr :=
  | RNumber (k : Z) | RColumn (j : nat) | RFar (a : account_expr) | RWhen (w : way) (e : row_expr)
  | RJudge (ts : list tree) (es : row_exprs)
  | ROne (o : op1) (e : row_expr) | RTwo (o : op2) (e f : row_expr)
with row_exprs := RNil | RCons (e : row_expr) (es : row_exprs).

(** 1 if true, else 0. *)
Definition bit (b : bool) : Z := if b then 1 else 0.
(** What an operation makes of one value. *)
Definition run1 (o : op1) (x : Z) : Z :=
  match o with
  | AtLeast k => bit (k <=? x)
  | Below k => bit (x <? k)
  | Between low high => bit ((low <=? x) && (x <? high))
  | Multiple k slack => bit (((x mod k <=? slack) || (k - x mod k <=? slack)) && (slack <? x))
  | Above k => clamp (x - k)
  | Cap k => clamp (Z.min x k)
  end.
(** What an operation makes of two values. *)
Definition run2 (o : op2) (x y : Z) : Z :=
  match o with
  | Add => clamp (x + y)
  | Times => clamp (x * y)
  | Least => Z.min x y
  | Most => Z.max x y
  | Quotient => clamp (x / Z.max y 1)
  end.

(** The sum of some values. *)
Definition sum (l : list Z) := fold_right Z.add 0 l.
(** The largest of some values, or 0. *)
Definition largest (l : list Z) := fold_right Z.max 0 l.
(** The accounts at the far ends of some rows, each once. *)
Definition partners (w : way) (l : list row) := nodup Nat.eq_dec (map (far_end w) l).
(** The rows whose far end is u. *)
Definition with_partner (w : way) (u : nat) (l : list row) := filter (fun r => (far_end w r =? u)%nat) l.
(** A row within the window of time that begins at [first]. *)
Definition in_window (time : nat) (window first : Z) (r : row) :=
  (first <=? column r time) && (column r time <=? first + window).

Section Evaluation.
  Variable G : ledger.
  (** What an expression is worth at an account, and at a row. *)
  Fixpoint value (e : account_expr) (a : nat) {struct e} : Z :=
    match e with
    | ANumber k => clamp k
    | AAttribute j => clamp (attribute G a j)
    | ASum w e => clamp (sum (map (fun r => row_value e w r) (rows_of G a w)))
    | AMax w e => largest (map (fun r => row_value e w r) (rows_of G a w))
    | APartners w e => clamp (sum (map (fun u =>
        largest (map (fun r => row_value e w r) (with_partner w u (rows_of G a w)))) (partners w (rows_of G a w))))
    | ABurst w e time window => clamp (largest (map (fun first =>
        sum (map (fun r => bit ((1 <=? row_value e w r) && in_window time window (column first time) r)) (rows_of G a w)))
        (rows_of G a w)))
    | AOne o e => run1 o (value e a)
    | ATwo o e f => run2 o (value e a) (value f a)
    end
  with row_value (e : row_expr) (w : way) (r : row) {struct e} : Z :=
    match e with
    | RNumber k => clamp k
    | RColumn j => clamp (column r j)
    | RFar e => value e (far_end w r)
    | RWhen v e => match v, w with In_, In_ | Out_, Out_ => row_value e w r | _, _ => 0 end
    | RJudge ts es => clamp (total_score ts (row_values es w r))
    | ROne o e => run1 o (row_value e w r)
    | RTwo o e f => run2 o (row_value e w r) (row_value f w r)
    end
  with row_values (es : row_exprs) (w : way) (r : row) {struct es} : list Z :=
    match es with
    | RNil => []
    | RCons e es => row_value e w r :: row_values es w r
    end.
End Evaluation.

(** * Threats *)

(** Fresh: rows are only new. Grow: old rows may grow too. Ledger: as Grow, but whoever has paid the target changes and adds no row. *)
Inductive threat := Fresh | Grow | Ledger.
Inductive growth := Fixed | Rises | Moves.      (* what may become of a column of an old row *)

Section Threats.
  Variable grows_as : nat -> growth.
  Variable T : threat.
  Variable v : nat.                              (* the target *)

  (** An account has sent the target a row. *)
  Definition pays (G : ledger) (u : nat) := exists r, In r (rows G) /\ source r = u /\ target r = v.
  (** A row after an attack: columns stay, rise or move as is stated of each. *)
  Definition grown (r r' : row) := forall j,
    match grows_as j with Fixed => column r' j = column r j | Rises => column r j <= column r' j | Moves => True end.

  (** G' is G after an attack: every old row is still there, and rows were appended. *)
  Record reached (old : nat -> Prop) (G G' : ledger) (up : row -> row) (new : list row) : Prop := {
    all_rows : Permutation (rows G') (map up (rows G) ++ new);
    same_ends : forall r, In r (rows G) -> source (up r) = source r /\ target (up r) = target r;
    old_ends : forall r, In r (rows G) -> old (source r) /\ old (target r);
    old_target : old v;
    same_attributes : forall a, old a -> attribute G' a = attribute G a;
    old_rows : forall r, In r (rows G) ->
      match T with
      | Fresh => up r = r
      | Grow => grown r (up r)
      | Ledger => grown r (up r) /\ (pays G (source r) -> up r = r)
      end;
    new_rows : forall r, In r new ->
      match T with
      | Fresh | Grow => True   (* also a second row between two accounts, as long as the old one stays as it is *)
      | Ledger => ~ pays G (source r)
      end }.

  (** * Types *)

  (** What an attack can do to a value: nothing, raise it, or lower it; [None] stands for anything. *)
  Inductive pol := Same | Up | Down.
  (** The type where more of a value means less of the result. *)
  Definition flip (p : option pol) := match p with Some Same => Some Same | Some Up => Some Down | Some Down => Some Up | None => None end.
  (** The type of a result that rises with two values. *)
  Definition join (p q : option pol) :=
    match p, q with
    | Some Same, r | r, Some Same => r
    | Some Up, Some Up => Some Up
    | Some Down, Some Down => Some Down
    | _, _ => None
    end.
  (** The type of an operation on one value. *)
  Definition type1 (o : op1) (p : option pol) :=
    match o with
    | Below _ => flip p
    | Between _ _ | Multiple _ _ => match p with Some Same => Some Same | _ => None end
    | _ => p
    end.
  (** The type of an operation on two values. *)
  Definition type2 (o : op2) (p q : option pol) := match o with Quotient => join p (flip q) | _ => join p q end.
  (** Under Ledger, rows into the target stay as they are. *)
  Definition settled (near : bool) (w : way) := match T, near, w with Ledger, true, In_ => true | _, _, _ => false end.
  (** The type of a column of an old row. *)
  Definition column_type (j : nat) :=
    match T, grows_as j with Fresh, _ | _, Fixed => Some Same | _, Rises => Some Up | _, Moves => None end.
  (** The type of what is gathered over rows: it rises if no row falls, since new rows add to it. *)
  Definition gathered (p : option pol) := match p with Some Same | Some Up => Some Up | _ => None end.

  (** Written by the account itself: attributes, and rows that it has sent. *)
  Fixpoint of_row_only (e : row_expr) : bool :=
    match e with
    | RFar _ => false
    | RWhen _ e | ROne _ e => of_row_only e
    | RTwo _ e f => of_row_only e && of_row_only f
    | RJudge _ es => all_of_row_only es
    | _ => true
    end
  with all_of_row_only (es : row_exprs) : bool :=
    match es with RNil => true | RCons e es => of_row_only e && all_of_row_only es end.
  (** An expression that reads only attributes of an account and rows that it has sent. *)
  Fixpoint only_sent (e : account_expr) : bool :=
    match e with
    | ANumber _ | AAttribute _ => true
    | ASum w e | AMax w e | APartners w e | ABurst w e _ _ => match w with Out_ => of_row_only e | In_ => false end
    | AOne _ e => only_sent e
    | ATwo _ e f => only_sent e && only_sent f
    end.

  (** The type says that the value does not fall. *)
  Definition no_fall (p : option pol) := match p with Some Same | Some Up => true | _ => false end.
  (** Whether the leaf test has to expect that a column rises. *)
  Definition rising (ps : list (option pol)) (j : nat) := match nth j ps (Some Same) with Some Same => false | _ => true end.

  (** The type of an expression at an account (the target, if [near]), and at a row that it gathers. *)
  Fixpoint type (near : bool) (e : account_expr) : option pol :=
    match e with
    | ANumber _ | AAttribute _ => Some Same
    | ASum w e | AMax w e | APartners w e => gathered (row_type near w e)
    | ABurst w e time _ =>
        match (if settled near w then Some Same else column_type time) with
        | Some Same => gathered (row_type near w e)
        | _ => None
        end
    | AOne o e => type1 o (type near e)
    | ATwo o e f => type2 o (type near e) (type near f)
    end
  with row_type (near : bool) (w : way) (e : row_expr) : option pol :=
    match e with
    | RNumber _ => Some Same
    | RColumn j => if settled near w then Some Same else column_type j
    | RFar e => if settled near w && only_sent e then Some Same else type false e
    | RWhen u e => match u, w with In_, In_ | Out_, Out_ => row_type near w e | _, _ => Some Same end
    | RJudge ts es =>
        let ps := row_types near w es in
        if forallb no_fall ps && forallb (leaf_test (rising ps)) ts then Some Up else None
    | ROne o e => type1 o (row_type near w e)
    | RTwo o e f => type2 o (row_type near w e) (row_type near w f)
    end
  with row_types (near : bool) (w : way) (es : row_exprs) : list (option pol) :=
    match es with RNil => [] | RCons e es => row_type near w e :: row_types near w es end.

  (** What a type says of a value before and after an attack. *)
  Definition obeys (p : option pol) (x x' : Z) :=
    match p with Some Same => x' = x | Some Up => x <= x' | Some Down => x' <= x | None => True end.

(** Proofs *)

End Threats.

Lemma clamp_range z : 0 <= clamp z <= LIMIT.
Proof. unfold clamp, LIMIT. lia. Qed.
Lemma clamp_grows x y : x <= y -> clamp x <= clamp y.
Proof. unfold clamp. lia. Qed.
Lemma bit_range b : 0 <= bit b <= 1.
Proof. destruct b; simpl; lia. Qed.

Lemma largest_at_least_0 l : 0 <= largest l.
Proof. induction l; simpl; lia. Qed.
Lemma in_largest x l : In x l -> x <= largest l.
Proof. induction l; simpl; [tauto|]. intros [->|I]; [lia|]. specialize (IHl I). lia. Qed.
Lemma largest_below l m : 0 <= m -> (forall x, In x l -> x <= m) -> largest l <= m.
Proof. intros P. induction l; simpl; intros B; [lia|]. assert (a <= m) by (apply B; now left).
  assert (largest l <= m) by (apply IHl; intros; apply B; now right). lia. Qed.
Lemma sum_at_least_0 l : (forall x, In x l -> 0 <= x) -> 0 <= sum l.
Proof. induction l; simpl; intros B; [lia|]. assert (0 <= a) by (apply B; now left).
  assert (0 <= sum l) by (apply IHl; intros; apply B; now right). lia. Qed.
Lemma sum_app l m : sum (l ++ m) = sum l + sum m.
Proof. induction l; simpl; lia. Qed.
Lemma sum_permuted l m : Permutation l m -> sum l = sum m.
Proof. induction 1; simpl; lia. Qed.
Lemma sum_map_le {A} (f g : A -> Z) l : (forall x, In x l -> f x <= g x) -> sum (map f l) <= sum (map g l).
Proof. induction l; simpl; intros B; [lia|]. assert (f a <= g a) by (apply B; now left).
  assert (sum (map f l) <= sum (map g l)) by (apply IHl; intros; apply B; now right). lia. Qed.

Lemma permuted_filter {A} (p : A -> bool) l m : Permutation l m -> Permutation (filter p l) (filter p m).
Proof.
  induction 1; simpl; auto.
  - destruct (p x); auto.
  - destruct (p x), (p y); auto. apply perm_swap.
  - eapply perm_trans; eauto.
Qed.

(** What is gathered over rows that stayed and rows that came. *)
Definition became {A} (up : A -> A) (l l' new : list A) := Permutation l' (map up l ++ new).

Lemma became_filtered {A} (p : A -> bool) up l l' new :
  became up l l' new -> (forall r, In r l -> p (up r) = p r) -> became up (filter p l) (filter p l') (filter p new).
Proof.
  intros B E. unfold became. apply (permuted_filter p) in B. rewrite filter_app in B.
  assert (F : filter p (map up l) = map up (filter p l)).
  { clear B. induction l as [|a l IH]; simpl; auto. rewrite E by (now left).
    assert (forall r, In r l -> p (up r) = p r) by (intros; apply E; now right). destruct (p a); simpl; rewrite IH; auto. }
  now rewrite F in B.
Qed.

Lemma sum_became {A} (f f' : A -> Z) up l l' new :
  became up l l' new -> (forall r, In r l -> f r <= f' (up r)) -> (forall r, 0 <= f' r) ->
  sum (map f l) <= sum (map f' l').
Proof.
  intros B L P. rewrite (sum_permuted _ _ (Permutation_map f' B)), map_app, sum_app, map_map.
  assert (sum (map f l) <= sum (map (fun x => f' (up x)) l)) by (apply sum_map_le; auto).
  assert (0 <= sum (map f' new)). { apply sum_at_least_0. intros x I. apply in_map_iff in I as (r & <- & _). auto. } lia.
Qed.

Lemma largest_became {A} (f f' : A -> Z) up l l' new :
  became up l l' new -> (forall r, In r l -> f r <= f' (up r)) -> largest (map f l) <= largest (map f' l').
Proof.
  intros B L. apply largest_below; [apply largest_at_least_0|]. intros x I. apply in_map_iff in I as (r & <- & I).
  apply Z.le_trans with (f' (up r)); [auto|]. apply in_largest, in_map.
  eapply Permutation_in; [apply Permutation_sym, B|]. apply in_or_app. left. now apply in_map.
Qed.

Lemma sum_of_more {A} (f f' : A -> Z) l : forall l', NoDup l -> incl l l' ->
  (forall x, In x l -> f x <= f' x) -> (forall x, 0 <= f' x) -> sum (map f l) <= sum (map f' l').
Proof.
  induction l as [|a l IH]; intros l' N I L P; simpl.
  - apply sum_at_least_0. intros x J. apply in_map_iff in J as (r & <- & _). auto.
  - inversion N; subst. destruct (in_split a l') as (l1 & l2 & ->); [apply I; now left|].
    assert (S : sum (map f l) <= sum (map f' (l1 ++ l2))).
    { apply IH; auto; [|intros; apply L; now right]. intros x J. assert (K : In x (l1 ++ a :: l2)) by (apply I; now right).
      apply in_app_or in K. apply in_or_app. destruct K as [K|[->|K]]; auto. contradiction. }
    assert (f a <= f' a) by (apply L; now left). rewrite map_app, sum_app in *. simpl. lia.
Qed.

(** Nothing is negative. *)
Lemma run1_range o x : 0 <= run1 o x.
Proof. destruct o; simpl; try apply bit_range; apply clamp_range. Qed.
Lemma run2_range o x y : 0 <= x -> 0 <= y -> 0 <= run2 o x y.
Proof. destruct o; simpl; intros; try apply clamp_range; lia. Qed.

Scheme account_ind := Induction for account_expr Sort Prop
  with row_ind := Induction for row_expr Sort Prop
  with rows_ind := Induction for row_exprs Sort Prop.
Combined Scheme expressions_ind from account_ind, row_ind, rows_ind.

Lemma not_negative G :
  (forall e a, 0 <= value G e a) /\ (forall e w r, 0 <= row_value G e w r) /\ (forall es : row_exprs, True).
Proof.
  apply expressions_ind; simpl; intros; auto;
    try apply clamp_range; try apply largest_at_least_0; try apply run1_range; try (apply run2_range; auto).
  destruct w, w0; auto; lia.
Qed.
(** No value of an account is negative. *)
Definition value_at_least_0 G := proj1 (not_negative G).
(** No value of a row is negative. *)
Definition row_at_least_0 G := proj1 (proj2 (not_negative G)).

(** Trees. *)
Definition follows (x : list Z) (p : path) :=
  forall j limit left, In (j, limit, left) p -> if (left : bool) then nth j x 0 <= limit else limit < nth j x 0.

Lemma a_leaf_is_reached t x : exists p, In (p, score t x) (leaves t) /\ follows x p.
Proof.
  induction t as [w|j limit l IHl r IHr]; simpl.
  - exists []. split; [now left|]. intros ? ? ? [].
  - destruct (Z.leb_spec (nth j x 0) limit) as [H|H].
    + destruct IHl as (p & I & F). exists ((j, limit, true) :: p). split.
      * apply in_or_app. left. apply in_map_iff. now exists (p, score l x).
      * intros k m b [E|K]; [injection E as <- <- <-; exact H | exact (F _ _ _ K)].
    + destruct IHr as (p & I & F). exists ((j, limit, false) :: p). split.
      * apply in_or_app. right. apply in_map_iff. now exists (p, score r x).
      * intros k m b [E|K]; [injection E as <- <- <-; exact H | exact (F _ _ _ K)].
Qed.

Lemma no_clash rises x x' A B :
  follows x A -> follows x' B ->
  (forall j, if rises j : bool then nth j x 0 <= nth j x' 0 else nth j x' 0 = nth j x 0) -> clash rises A B = false.
Proof.
  intros FA FB L. apply not_true_is_false. intros C. unfold clash in C.
  apply existsb_exists in C as ([[j la] left_a] & IA & C). apply existsb_exists in C as ([[k lb] left_b] & IB & C).
  apply andb_prop in C as [E C]. apply Nat.eqb_eq in E. subst k.
  specialize (FA _ _ _ IA). specialize (FB _ _ _ IB). specialize (L j). apply orb_prop in C.
  destruct C as [C|C].
  - apply andb_prop in C as [C D]. apply andb_prop in C as [C1 C2]. apply Z.leb_le in D.
    destruct left_a, left_b; try discriminate. destruct (rises j); lia.
  - apply andb_prop in C as [C D]. apply andb_prop in C as [C C2]. apply andb_prop in C as [C0 C1]. apply Z.leb_le in D.
    destruct left_a, left_b; try discriminate. destruct (rises j); [discriminate|]. lia.
Qed.

(** The leaf test: a tree that passes cannot fall where columns rise or stay. *)
Theorem tree_rises rises t x x' :
  leaf_test rises t = true ->
  (forall j, if rises j : bool then nth j x 0 <= nth j x' 0 else nth j x' 0 = nth j x 0) -> score t x <= score t x'.
Proof.
  intros H L. destruct (a_leaf_is_reached t x) as (A & IA & FA), (a_leaf_is_reached t x') as (B & IB & FB).
  unfold leaf_test in H. rewrite forallb_forall in H. specialize (H _ IA). rewrite forallb_forall in H.
  specialize (H _ IB). simpl in H. apply orb_prop in H as [H|H]; [now apply Z.leb_le|].
  rewrite (no_clash _ _ _ _ _ FA FB L) in H. discriminate.
Qed.

Lemma trees_rise rises ts x x' :
  forallb (leaf_test rises) ts = true ->
  (forall j, if rises j : bool then nth j x 0 <= nth j x' 0 else nth j x' 0 = nth j x 0) ->
  total_score ts x <= total_score ts x'.
Proof.
  intros H L. unfold total_score. induction ts as [|t ts IH]; simpl in *; [lia|]. apply andb_prop in H as [H1 H2].
  specialize (IH H2). pose proof (tree_rises _ _ _ _ H1 L). lia.
Qed.

(** Operations obey their types. *)
Lemma run1_obeys o p x x' : 0 <= x -> 0 <= x' -> obeys p x x' -> obeys (type1 o p) (run1 o x) (run1 o x').
Proof.
  intros P P' H. destruct o; destruct p as [[| |]|]; simpl in *; auto; try subst; auto; unfold bit, clamp;
    repeat match goal with |- context [?a <=? ?b] => destruct (Z.leb_spec a b) | |- context [?a <? ?b] => destruct (Z.ltb_spec a b) end; lia.
Qed.

Lemma run2_obeys o p q x x' y y' : 0 <= x -> 0 <= x' -> 0 <= y -> 0 <= y' ->
  obeys p x x' -> obeys q y y' -> obeys (type2 o p q) (run2 o x y) (run2 o x' y').
Proof.
  intros Px Px' Py Py' H K.
  assert (M : forall a b c d, 0 <= a <= b -> 0 <= c <= d -> a * c <= b * d) by (intros; nia).
  assert (D : forall a b c d, 0 <= a <= b -> 0 <= d <= c -> a / Z.max c 1 <= b / Z.max d 1).
  { intros. apply Z.le_trans with (b / Z.max c 1); [apply Z.div_le_mono; lia | apply Z.div_le_compat_l; lia]. }
  destruct o; destruct p as [[| |]|]; destruct q as [[| |]|]; simpl in *; auto; subst; auto;
    try (apply clamp_grows); try lia; try (apply M; lia); try (apply D; lia).
Qed.

Lemma gathered_up p : gathered p = Some Up -> p = Some Same \/ p = Some Up.
Proof. destruct p as [[| |]|]; simpl; intros; try discriminate; auto. Qed.
Lemma gathered_cases p : gathered p = Some Up \/ gathered p = None.
Proof. destruct p as [[| |]|]; simpl; auto. Qed.
Lemma obeys_le p x x' : gathered p = Some Up -> obeys p x x' -> x <= x'.
Proof. intros H O. destruct (gathered_up _ H) as [->| ->]; simpl in O; lia. Qed.

(** The four ways to gather. [keep] says what is known of rows that were there. *)
Section Gather.
  Variables (w : way) (up : row -> row) (l l' new : list row) (f f' : row -> Z).
  Hypothesis B : became up l l' new.
  Hypothesis ends : forall r, In r l -> far_end w (up r) = far_end w r.
  Hypothesis L : forall r, In r l -> f r <= f' (up r).
  Hypothesis P : forall r, 0 <= f' r.

  Lemma partners_became :
    sum (map (fun u => largest (map f (with_partner w u l))) (partners w l)) <=
    sum (map (fun u => largest (map f' (with_partner w u l'))) (partners w l')).
  Proof.
    apply sum_of_more.
    - apply NoDup_nodup.
    - intros u I. unfold partners in *. apply nodup_In in I. apply nodup_In. apply in_map_iff in I as (r & <- & I).
      rewrite <- (ends r I). apply in_map. eapply Permutation_in; [apply Permutation_sym, B|]. apply in_or_app. left. now apply in_map.
    - intros u _. apply largest_became with up (with_partner w u new).
      + apply became_filtered; [exact B|]. intros r I. now rewrite ends.
      + intros r I. apply L. now apply filter_In in I.
    - intros. apply largest_at_least_0.
  Qed.

  Variables (time : nat) (window : Z).
  Hypothesis times : forall r, In r l -> column (up r) time = column r time.
  (** 1 if a row counts and lies in the window that begins at the time of [first]. *)
  Definition in_burst (g : row -> Z) (first r : row) := bit ((1 <=? g r) && in_window time window (column first time) r).
  Lemma bursts_became :
    largest (map (fun first => sum (map (in_burst f first) l)) l) <=
    largest (map (fun first => sum (map (in_burst f' first) l')) l').
  Proof.
    apply largest_became with up new; [exact B|]. intros first I. apply sum_became with up new; [exact B| |].
    - intros r J. unfold in_burst, in_window. rewrite (times r J), (times first I). specialize (L r J).
      destruct (Z.leb_spec 1 (f r)); simpl; [|apply bit_range]. destruct (Z.leb_spec 1 (f' (up r))); [simpl; lia|lia].
    - intros r. apply bit_range.
  Qed.
End Gather.

Lemma became_itself {A} (l l' : list A) : Permutation l' l -> became (fun r => r) l l' [].
Proof. intros H. unfold became. now rewrite map_id, app_nil_r. Qed.

(** What an account wrote itself follows from its rows and attributes. *)
Lemma row_only_same G G' :
  (forall e : account_expr, True) /\
  (forall e, of_row_only e = true -> forall w r, row_value G' e w r = row_value G e w r) /\
  (forall es, all_of_row_only es = true -> forall w r, row_values G' es w r = row_values G es w r).
Proof.
  apply expressions_ind; simpl; intros; auto; try discriminate.
  - destruct w, w0; auto.
  - now rewrite H.
  - now rewrite H.
  - apply andb_prop in H1 as [X Y]. now rewrite H, H0.
  - apply andb_prop in H1 as [X Y]. now rewrite H, H0.
Qed.

Section Soundness.
  Variable grows_as : nat -> growth.
  Variable T : threat.
  Variable v : nat.
  Variable old : nat -> Prop.
  Variables (G G' : ledger) (up : row -> row) (new : list row).
  Hypothesis attack : reached grows_as T v old G G' up new.

  Lemma near_stays w r : In r (rows G) -> near_end w (up r) = near_end w r.
  Proof. intros I. destruct (same_ends _ _ _ _ _ _ _ _ attack r I). now destruct w. Qed.
  Lemma far_stays w r : In r (rows G) -> far_end w (up r) = far_end w r.
  Proof. intros I. destruct (same_ends _ _ _ _ _ _ _ _ attack r I). now destruct w. Qed.

  Lemma rows_became w a :
    became up (rows_of G a w) (rows_of G' a w) (filter (fun r => (near_end w r =? a)%nat) new).
  Proof. apply became_filtered; [apply (all_rows _ _ _ _ _ _ _ _ attack)|]. intros r I. now rewrite near_stays. Qed.

  Lemma in_rows w a r : In r (rows_of G a w) -> In r (rows G) /\ near_end w r = a.
  Proof. intros I. apply filter_In in I as [I E]. apply Nat.eqb_eq in E. auto. Qed.

  (** A present payer of the target has sent what he has sent. *)
  Lemma sent_stays u : T = Ledger -> pays v G u -> Permutation (rows_of G' u Out_) (rows_of G u Out_).
  Proof.
    intros E S. pose proof (rows_became Out_ u) as B. unfold became in B.
    assert (N : filter (fun r => (near_end Out_ r =? u)%nat) new = []).
    { destruct (filter _ new) as [|r l] eqn:F; auto. exfalso. assert (I : In r (r :: l)) by now left. rewrite <- F in I.
      apply filter_In in I as [I K]. apply Nat.eqb_eq in K. simpl in K. pose proof (new_rows _ _ _ _ _ _ _ _ attack r I) as X.
      rewrite E in X. subst u. contradiction. }
    rewrite N, app_nil_r in B. replace (map up (rows_of G u Out_)) with (rows_of G u Out_) in B; auto.
    rewrite <- map_id at 1. apply map_ext_in. intros r I. apply in_rows in I as [I K]. simpl in K. subst u.
    pose proof (old_rows _ _ _ _ _ _ _ _ attack r I) as X. rewrite E in X. symmetry. now apply X.
  Qed.

  Lemma frozen e : T = Ledger -> only_sent e = true -> forall u, pays v G u -> old u -> value G' e u = value G e u.
  Proof.
    intros E. induction e; simpl; intros O u S K; auto.
    - now rewrite (same_attributes _ _ _ _ _ _ _ _ attack).
    - destruct w; [discriminate|]. pose proof (sent_stays u E S) as Pm.
      rewrite (map_ext _ _ (proj1 (proj2 (row_only_same G G')) e O Out_)).
      f_equal. apply sum_permuted, Permutation_map, Pm.
    - destruct w; [discriminate|]. pose proof (sent_stays u E S) as Pm.
      rewrite (map_ext _ _ (proj1 (proj2 (row_only_same G G')) e O Out_)).
      apply Z.le_antisymm; eapply largest_became with (up := fun r => r) (new := []); intros; try lia; apply became_itself; auto using Permutation_sym.
    - destruct w; [discriminate|]. pose proof (sent_stays u E S) as Pm.
      assert (X : forall k l, map (fun r => row_value G' e Out_ r) (with_partner Out_ k l) = map (fun r => row_value G e Out_ r) (with_partner Out_ k l))
        by (intros; apply map_ext, (proj1 (proj2 (row_only_same G G')) e O Out_)).
      f_equal. rewrite (map_ext _ (fun k => largest (map (fun r => row_value G e Out_ r) (with_partner Out_ k (rows_of G' u Out_))))) by (intros; now rewrite X).
      apply Z.le_antisymm; eapply partners_became with (up := fun r => r) (new := []); intros; auto; try lia; try apply row_at_least_0;
        apply became_itself; auto using Permutation_sym.
    - destruct w; [discriminate|]. pose proof (sent_stays u E S) as Pm. f_equal.
      assert (X : forall r, row_value G' e Out_ r = row_value G e Out_ r) by (apply (proj1 (proj2 (row_only_same G G')) e O Out_)).
      rewrite (map_ext _ (fun first => sum (map (in_burst time window (fun r => row_value G e Out_ r) first) (rows_of G' u Out_))))
        by (intros; f_equal; apply map_ext; intros; unfold in_burst; now rewrite X).
      apply Z.le_antisymm; eapply (bursts_became (fun r => r)) with (new := []); intros; auto; try lia;
        apply became_itself; auto using Permutation_sym.
    - now rewrite (IHe O u S K).
    - apply andb_prop in O as [O1 O2]. now rewrite (IHe1 O1 u S K), (IHe2 O2 u S K).
  Qed.

  Lemma settled_payer near w r : In r (rows G) -> (near = true -> near_end w r = v) -> settled T near w = true ->
    T = Ledger /\ w = In_ /\ pays v G (source r).
  Proof.
    unfold settled. intros I N S. destruct T, near, w; try discriminate. repeat split. exists r. repeat split; auto.
  Qed.

  Lemma settled_stays near w r : In r (rows G) -> (near = true -> near_end w r = v) -> settled T near w = true -> up r = r.
  Proof.
    intros I N S. destruct (settled_payer _ _ _ I N S) as (E & _ & Q). pose proof (old_rows _ _ _ _ _ _ _ _ attack r I) as X.
    rewrite E in X. now apply X.
  Qed.

  Lemma column_obeys r j : In r (rows G) -> obeys (column_type grows_as T j) (column r j) (column (up r) j).
  Proof.
    intros I. pose proof (old_rows _ _ _ _ _ _ _ _ attack r I) as X. unfold column_type.
destruct T.
    - simpl. now rewrite X.
    - destruct (grows_as j) eqn:E; simpl; auto; specialize (X j); now rewrite E in X.
    - destruct X as [X _]. destruct (grows_as j) eqn:E; simpl; auto; specialize (X j); now rewrite E in X.
  Qed.

  Arguments gathered : simpl never.
  Arguments type1 : simpl never.
  Arguments type2 : simpl never.
  Arguments run1 : simpl never.
  Arguments run2 : simpl never.

  Lemma type_sum near w e : type grows_as T near (ASum w e) = gathered (row_type grows_as T near w e).
  Proof. reflexivity. Qed.
  Lemma type_max near w e : type grows_as T near (AMax w e) = gathered (row_type grows_as T near w e).
  Proof. reflexivity. Qed.
  Lemma type_partners near w e : type grows_as T near (APartners w e) = gathered (row_type grows_as T near w e).
  Proof. reflexivity. Qed.
  Lemma type_burst near w e time window : type grows_as T near (ABurst w e time window) =
    match (if settled T near w then Some Same else column_type grows_as T time) with
    | Some Same => gathered (row_type grows_as T near w e) | _ => None end.
  Proof. reflexivity. Qed.
  Lemma type_one near o e : type grows_as T near (AOne o e) = type1 o (type grows_as T near e).
  Proof. reflexivity. Qed.
  Lemma type_two near o e f : type grows_as T near (ATwo o e f) = type2 o (type grows_as T near e) (type grows_as T near f).
  Proof. reflexivity. Qed.
  Lemma type_column near w j : row_type grows_as T near w (RColumn j) = if settled T near w then Some Same else column_type grows_as T j.
  Proof. reflexivity. Qed.
  Lemma type_far near w e : row_type grows_as T near w (RFar e) =
    if settled T near w && only_sent e then Some Same else type grows_as T false e.
  Proof. reflexivity. Qed.
  Lemma type_judge near w ts es : row_type grows_as T near w (RJudge ts es) =
    if forallb no_fall (row_types grows_as T near w es) && forallb (leaf_test (rising (row_types grows_as T near w es))) ts then Some Up else None.
  Proof. reflexivity. Qed.
  Lemma type_row_one near w o e : row_type grows_as T near w (ROne o e) = type1 o (row_type grows_as T near w e).
  Proof. reflexivity. Qed.
  Lemma type_row_two near w o e f : row_type grows_as T near w (RTwo o e f) = type2 o (row_type grows_as T near w e) (row_type grows_as T near w f).
  Proof. reflexivity. Qed.

  (** Types say the truth: each value after an attack obeys its type. *)
  Theorem types_hold :
    (forall e near a, (near = true -> a = v) -> old a ->
       obeys (type grows_as T near e) (value G e a) (value G' e a)) /\
    (forall e near w r, In r (rows G) -> (near = true -> near_end w r = v) ->
       obeys (row_type grows_as T near w e) (row_value G e w r) (row_value G' e w (up r))) /\
    (forall es near w r, In r (rows G) -> (near = true -> near_end w r = v) -> forall j,
       obeys (nth j (row_types grows_as T near w es) (Some Same)) (nth j (row_values G es w r) 0) (nth j (row_values G' es w (up r)) 0)).
  Proof.
    assert (gather : forall near e w a, (near = true -> a = v) ->
        (forall r, In r (rows G) -> (near = true -> near_end w r = v) ->
           obeys (row_type grows_as T near w e) (row_value G e w r) (row_value G' e w (up r))) ->
        gathered (row_type grows_as T near w e) = Some Up ->
        forall r, In r (rows_of G a w) -> row_value G e w r <= row_value G' e w (up r)).
    { intros near e w a N H Q r I. apply in_rows in I as [I K]. apply (obeys_le _ _ _ Q), H; auto. intros M. rewrite K. auto. }
    apply expressions_ind; simpl.
    - intros. reflexivity.
    - intros j near a _ O. simpl. now rewrite (same_attributes _ _ _ _ _ _ _ _ attack).
    - intros w e IH near a N O. rewrite type_sum. destruct (gathered_cases (row_type grows_as T near w e)) as [Q|Q]; rewrite Q; simpl; auto.
      apply clamp_grows. eapply sum_became; [apply rows_became|eapply gather; eauto|]. intros; apply row_at_least_0.
    - intros w e IH near a N O. rewrite type_max. destruct (gathered_cases (row_type grows_as T near w e)) as [Q|Q]; rewrite Q; simpl; auto.
      eapply largest_became; [apply rows_became|]. eapply gather; eauto.
    - intros w e IH near a N O. rewrite type_partners. destruct (gathered_cases (row_type grows_as T near w e)) as [Q|Q]; rewrite Q; simpl; auto.
      apply clamp_grows. eapply partners_became; [apply rows_became| |eapply gather; eauto].
      intros r I. apply in_rows in I as [I _]. now apply far_stays.
    - intros w e IH time window near a N O. rewrite type_burst.
      destruct (if settled T near w then Some Same else column_type grows_as T time) as [[| |]|] eqn:S; simpl; auto.
      destruct (gathered_cases (row_type grows_as T near w e)) as [Q|Q]; rewrite Q; simpl; auto.
      apply clamp_grows. eapply (bursts_became up); [apply rows_became|eapply gather; eauto|].
      intros r I. apply in_rows in I as [I K]. destruct (settled T near w) eqn:Z.
      + rewrite (settled_stays near w r I); auto. intros M. rewrite K. auto.
      + pose proof (column_obeys r time I) as C. now rewrite S in C.
    - intros o e IH near a N O. rewrite type_one. apply run1_obeys; auto; apply value_at_least_0.
    - intros o e IHe f IHf near a N O. rewrite type_two. apply run2_obeys; auto; apply value_at_least_0.
    - intros. reflexivity.
    - intros j near w r I N. rewrite type_column. destruct (settled T near w) eqn:S; simpl.
      + now rewrite (settled_stays near w r I N S).
      + pose proof (column_obeys r j I) as C. destruct (column_type grows_as T j) as [[| |]|]; simpl in *; auto; try (now rewrite C); now apply clamp_grows.
    - intros e IH near w r I N. rewrite type_far, (far_stays w r I).
      assert (O : old (far_end w r)) by (destruct (old_ends _ _ _ _ _ _ _ _ attack r I); now destruct w).
      destruct (settled T near w) eqn:S; simpl; [|apply IH; auto; discriminate].
      destruct (only_sent e) eqn:E; simpl; [|apply IH; auto; discriminate].
      destruct (settled_payer near w r I N S) as (X & -> & Q). apply frozen; auto.
    - intros u e IH near w r I N. destruct u, w; [exact (IH near In_ r I N) | reflexivity | reflexivity | exact (IH near Out_ r I N)].
    - intros ts es IH near w r I N. rewrite type_judge.
      destruct (forallb no_fall (row_types grows_as T near w es) && forallb (leaf_test (rising (row_types grows_as T near w es))) ts) eqn:C; simpl; auto.
      apply andb_prop in C as [F H]. apply clamp_grows. apply trees_rise with (rising (row_types grows_as T near w es)); auto.
      intros j. specialize (IH near w r I N j). unfold rising. rewrite forallb_forall in F.
      destruct (nth_in_or_default j (row_types grows_as T near w es) (Some Same)) as [K|K].
      + specialize (F _ K). destruct (nth j (row_types grows_as T near w es) (Some Same)) as [[| |]|]; simpl in *; auto; discriminate.
      + rewrite K in IH |- *. exact IH.
    - intros o e IH near w r I N. rewrite type_row_one. apply run1_obeys; auto; apply row_at_least_0.
    - intros o e IHe f IHf near w r I N. rewrite type_row_two. apply run2_obeys; auto; apply row_at_least_0.
    - intros near w r I N j. now destruct j.
    - intros e IHe es IHes near w r I N j. destruct j as [|j]; [exact (IHe near w r I N) | exact (IHes near w r I N j)].
  Qed.

  (** The certificate: features of the target that cannot fall, and trees that pass the leaf test. Who is flagged stays flagged. *)
  Definition features_of (X : ledger) (fs : list account_expr) := map (fun e => value X e v) fs.
  (** The types of the features of the target. *)
  Definition types_of (fs : list account_expr) := map (type grows_as T true) fs.

  (** Features of which none falls, and trees that pass the leaf test: no attack lowers the score. *)
  Theorem score_rises fs ts :
    forallb no_fall (types_of fs) = true -> forallb (leaf_test (rising (types_of fs))) ts = true ->
    total_score ts (features_of G fs) <= total_score ts (features_of G' fs).
  Proof.
    intros F H. apply trees_rise with (rising (types_of fs)); auto. intros j. unfold rising, types_of, features_of in *.
    revert j F. clear H. induction fs as [|e fs IH]; intros j F; [now destruct j|]. simpl in F. apply andb_prop in F as [F1 F2].
    destruct j as [|j]; [|exact (IH j F2)]. simpl.
    pose proof (proj1 types_hold e true v (fun _ => eq_refl) (old_target _ _ _ _ _ _ _ _ attack)) as O.
    destruct (type grows_as T true e) as [[| |]|]; simpl in *; auto; discriminate.
  Qed.

  (** A target whose score is above the threshold stays above it after every attack. *)
  Theorem stays_flagged fs ts threshold :
    forallb no_fall (types_of fs) = true -> forallb (leaf_test (rising (types_of fs))) ts = true ->
    threshold < total_score ts (features_of G fs) -> threshold < total_score ts (features_of G' fs).
  Proof. intros F H S. pose proof (score_rises fs ts F H). lia. Qed.
End Soundness.

(** * Deletions *)

(** [t] is at least the sum of any [m] values of [f] over [U]: so is the sum of the [m] largest. *)
Definition tops (m : nat) (f : nat -> Z) (U : list nat) (t : Z) :=
  forall l, NoDup l -> incl l U -> (length l <= m)%nat -> sum (map f l) <= t.

Lemma sum_minus (f g : nat -> Z) l : sum (map (fun u => f u - g u) l) = sum (map f l) - sum (map g l).
Proof. induction l; simpl; lia. Qed.

Lemma sum_split (f : nat -> Z) (p : nat -> bool) l : sum (map f l) = sum (map f (filter p l)) + sum (map f (filter (fun u => negb (p u)) l)).
Proof. induction l as [|a l IH]; simpl; [lia|]. destruct (p a); simpl; lia. Qed.

(** Whether a number is in a list. *)
Definition mem (l : list nat) (u : nat) := existsb (Nat.eqb u) l.
Lemma mem_in l u : mem l u = true <-> In u l.
Proof. unfold mem. rewrite existsb_exists. split; [intros (x & I & E); apply Nat.eqb_eq in E; now subst | intros I; exists u; split; auto; apply Nat.eqb_refl]. Qed.

(** Sums over partners after m deletions: D are partners that are lost (their pair was deleted, or they were bought), S
    those whose far end has changed, at most two for each deletion that does not meet the target. *)
Theorem deletions_bound_sums m X low y U D S t t' :
  NoDup U -> (forall u, In u U -> 0 <= low u <= X u) -> (forall u, In u U -> 0 <= y u) ->
  NoDup (D ++ S) -> incl (D ++ S) U -> (length D <= m)%nat -> (length S <= 2 * (m - length D))%nat ->
  (forall u, In u U -> ~ In u D -> ~ In u S -> X u <= y u) ->
  (forall u, In u S -> low u <= y u) ->
  tops m X U t -> tops m (fun u => X u - low u) U t' ->
  sum (map X U) - t - t' <= sum (map y U).
Proof.
  intros NU LX PY ND I LD LS Keep Low Top Top'.
  set (S1 := firstn m S). set (S2 := skipn m S). assert (ES : S = S1 ++ S2) by (symmetry; apply firstn_skipn).
  assert (L1 : (length S1 <= m)%nat) by (unfold S1; rewrite firstn_length; lia).
  assert (L2 : (length S2 <= m - length D)%nat) by (unfold S2; rewrite skipn_length; lia).
  assert (N2 : NoDup (D ++ S2)).
  { rewrite ES in ND. clear - ND. induction D as [|d D IH]; simpl in *.
    - induction S1 as [|s S1 IH]; simpl in *; auto. inversion ND; auto.
    - inversion ND; subst. constructor; auto. intros K. apply H1. apply in_app_or in K. apply in_or_app. destruct K; auto. right. apply in_or_app. auto. }
  assert (N1 : NoDup S1).
  { rewrite ES in ND. clear - ND. induction D as [|d D IH]; simpl in *; [|inversion ND; auto].
    induction S1 as [|s S1 IH]; simpl in *; constructor; inversion ND; subst; auto. intros K. apply H1. apply in_or_app. auto. }
  assert (I2 : incl (D ++ S2) U).
  { intros u K. apply I. rewrite ES. apply in_app_or in K. apply in_or_app. destruct K; auto. right. apply in_or_app. auto. }
  assert (I1 : incl S1 U). { intros u K. apply I. rewrite ES. apply in_or_app. right. apply in_or_app. auto. }
  assert (T2 : sum (map X (D ++ S2)) <= t) by (apply Top; auto; rewrite app_length; lia).
  assert (T1 : sum (map (fun u => X u - low u) S1) <= t') by (apply Top'; auto).
  (* what is lost, partner by partner *)
  set (lost := fun u => (if mem (D ++ S2) u then X u else 0) + (if mem S1 u then X u - low u else 0)).
  assert (A : sum (map X U) - sum (map lost U) <= sum (map y U)).
  { rewrite <- sum_minus. apply sum_map_le. intros u K. unfold lost. specialize (LX u K). specialize (PY u K).
    destruct (mem (D ++ S2) u) eqn:M2; destruct (mem S1 u) eqn:M1; try lia.
    - apply mem_in in M1. assert (low u <= y u) by (apply Low; rewrite ES; apply in_or_app; auto). lia.
    - assert (X u <= y u); [|lia]. apply Keep; auto; intros Q.
      + assert (mem (D ++ S2) u = true) by (apply mem_in, in_or_app; auto). congruence.
      + rewrite ES in Q. apply in_app_or in Q as [Q|Q].
        * apply mem_in in Q. congruence.
        * assert (mem (D ++ S2) u = true) by (apply mem_in, in_or_app; auto). congruence. }
  assert (B : forall (g : nat -> Z) l, NoDup l -> incl l U -> sum (map (fun u => if mem l u then g u else 0) U) = sum (map g l)).
  { intros g l Nl Il. rewrite (sum_split _ (mem l)).
    assert (Z0 : sum (map (fun u => if mem l u then g u else 0) (filter (fun u => negb (mem l u)) U)) = 0).
    { clear. induction U as [|a V IH]; simpl; auto. destruct (mem l a) eqn:E; simpl; auto. rewrite E. exact IH. }
    rewrite Z0, Z.add_0_r. transitivity (sum (map g (filter (mem l) U))).
    - f_equal. apply map_ext_in. intros u K. apply filter_In in K as [_ K]. now rewrite K.
    - apply sum_permuted, Permutation_map. apply NoDup_Permutation; auto; [now apply NoDup_filter|].
      intros u. rewrite filter_In, mem_in. split; [tauto|]. intros K. split; auto. }
  assert (C : sum (map lost U) = sum (map X (D ++ S2)) + sum (map (fun u => X u - low u) S1)).
  { rewrite <- (B X (D ++ S2)), <- (B (fun u => X u - low u) S1); auto. unfold lost. clear.
    induction U; simpl; lia. }
  lia.
Qed.

(** Where a deletion may change what all partners count, all of them are at their lower bounds. *)
Theorem deletions_bound_all m low y U D t :
  NoDup U -> (forall u, In u U -> 0 <= low u) -> (forall u, In u U -> 0 <= y u) -> NoDup D -> incl D U -> (length D <= m)%nat ->
  (forall u, In u U -> ~ In u D -> low u <= y u) -> tops m low U t -> sum (map low U) - t <= sum (map y U).
Proof.
  intros NU L Py ND I LD Keep Top.
  replace t with (t + 0) by lia.
  enough (sum (map low U) - t - 0 <= sum (map y U)) by lia.
  apply (deletions_bound_sums m low low y U D [] t 0); auto.
  - intros u K. specialize (L u K). lia.
  - now rewrite app_nil_r.
  - now rewrite app_nil_r.
  - simpl. lia.
  - intros u [].
  - intros l _ _ _. clear. induction l; simpl; lia.
Qed.

(** The largest over partners after m deletions. *)
Theorem deletions_bound_largest (X low y : nat -> Z) U D S b c :
  (forall u, In u U -> 0 <= y u) -> incl (D ++ S) U ->
  (forall u, In u U -> ~ In u D -> ~ In u S -> X u <= y u) -> (forall u, In u U -> ~ In u D -> low u <= y u) ->
  (* more partners than are lost or changed reach b; more than are lost reach c even at their lower bounds *)
  (b <= 0 \/ exists l, NoDup l /\ incl l U /\ (length (D ++ S) < length l)%nat /\ forall u, In u l -> b <= X u) ->
  (c <= 0 \/ exists l, NoDup l /\ incl l U /\ (length D < length l)%nat /\ forall u, In u l -> c <= low u) ->
  Z.max b c <= largest (map y U).
Proof.
  intros P I Keep Low Hb Hc.
  assert (pick : forall l d : list nat, NoDup l -> (length d < length l)%nat -> exists u, In u l /\ ~ In u d).
  { intros l d N L. destruct (Exists_dec (fun u => ~ In u d) l) as [E|E].
    - intros u. destruct (in_dec Nat.eq_dec u d); [now right|now left]. 
    - now apply Exists_exists in E.
    - exfalso. assert (incl l d). { intros u K. destruct (in_dec Nat.eq_dec u d); auto. exfalso. apply E, Exists_exists. eauto. }
      pose proof (NoDup_incl_length N H). lia. }
  pose proof (largest_at_least_0 (map y U)).
  assert (b <= largest (map y U)).
  { destruct Hb as [?|(l & N & J & L & B)]; [lia|]. destruct (pick l (D ++ S) N L) as (u & K & Q).
    apply Z.le_trans with (y u); [|apply in_largest, in_map; auto]. apply Z.le_trans with (X u); auto. apply Keep; auto; intros ?; apply Q, in_or_app; auto. }
  assert (c <= largest (map y U)).
  { destruct Hc as [?|(l & N & J & L & B)]; [lia|]. destruct (pick l D N L) as (u & K & Q).
    apply Z.le_trans with (y u); [|apply in_largest, in_map; auto]. apply Z.le_trans with (low u); auto. }
  lia.
Qed.

(** All features at their bounds at once is a corner that no attack falls below: the score there bounds the score. *)
Theorem corner_bounds rises ts x low :
  forallb (leaf_test rises) ts = true ->
  (forall j, if rises j : bool then nth j low 0 <= nth j x 0 else nth j x 0 = nth j low 0) ->
  total_score ts low <= total_score ts x.
Proof. intros. now apply trees_rise with rises. Qed.

(** * Framing *)

(** If rows that flag the target exist, they can be appended to any ledger, and flag it there as well: who may append
    anything can frame everybody whose attributes do not prevent it. *)
Definition joined (H G : ledger) := {| rows := rows H ++ rows G; attribute := attribute H |}.

(** Rows that flag the target flag it in front of any ledger as well. *)
Theorem everybody_can_be_framed grows_as v H G fs ts threshold :
  forallb no_fall (types_of grows_as Grow fs) = true ->
  forallb (leaf_test (rising (types_of grows_as Grow fs))) ts = true ->
  threshold < total_score ts (features_of v H fs) -> threshold < total_score ts (features_of v (joined H G) fs).
Proof.
  apply stays_flagged with (old := fun _ => True) (up := fun r => r) (new := rows G). constructor; simpl; auto.
  - rewrite map_id. apply Permutation_refl.
  - intros r I j. destruct (grows_as j); auto. apply Z.le_refl.
Qed.
