(* What AppendOnly.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Theorem 21: scores that appended rows can only raise.
    Expressions, their evaluation on a ledger, their types under three threats, trees and the leaf test, and bounds after
    deletions. Values are whole numbers from 0 to [LIMIT]; [clamp] says so once for every operation. *)
From Coq Require Import List ZArith Lia Bool Arith Permutation.
Import ListNotations.
Open Scope Z_scope.

(** Rows into an account, or out of it. *)
Inductive way := In_ | Out_.

(** A row: who sends it, who receives it, and its columns. *)
Record row := { source : nat; target : nat; column : nat -> Z }.

Record ledger := { rows : list row; attribute : nat -> nat -> Z }. (* of an account, by number *)

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

(** Fresh: rows are only new. Grow: old rows may grow too. Ledger: as Grow, but whoever has paid the target changes and adds no row. *)
Inductive threat := Fresh | Grow | Ledger.

Inductive growth := Fixed | Rises | Moves. (* what may become of a column of an old row *)

Section Threats.
  Variable grows_as : nat -> growth.
  Variable T : threat.
  Variable v : nat. (* the target *)

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

(** What is gathered over rows that stayed and rows that came. *)
Definition became {A} (up : A -> A) (l l' new : list A) := Permutation l' (map up l ++ new).

(** The leaf test: a tree that passes cannot fall where columns rise or stay. *)
Theorem tree_rises rises t x x' :
  leaf_test rises t = true ->
  (forall j, if rises j : bool then nth j x 0 <= nth j x' 0 else nth j x' 0 = nth j x 0) -> score t x <= score t x'.

Section Soundness.
  Variable grows_as : nat -> growth.
  Variable T : threat.
  Variable v : nat.
  Variable old : nat -> Prop.
  Variables (G G' : ledger) (up : row -> row) (new : list row).
  Hypothesis attack : reached grows_as T v old G G' up new.
  Arguments gathered : simpl never.
  Arguments type1 : simpl never.
  Arguments type2 : simpl never.
  Arguments run1 : simpl never.
  Arguments run2 : simpl never.

  (** Types say the truth: each value after an attack obeys its type. *)
  Theorem types_hold :
    (forall e near a, (near = true -> a = v) -> old a ->
       obeys (type grows_as T near e) (value G e a) (value G' e a)) /\
    (forall e near w r, In r (rows G) -> (near = true -> near_end w r = v) ->
       obeys (row_type grows_as T near w e) (row_value G e w r) (row_value G' e w (up r))) /\
    (forall es near w r, In r (rows G) -> (near = true -> near_end w r = v) -> forall j,
       obeys (nth j (row_types grows_as T near w es) (Some Same)) (nth j (row_values G es w r) 0) (nth j (row_values G' es w (up r)) 0)).

  (** The certificate: features of the target that cannot fall, and trees that pass the leaf test. Who is flagged stays flagged. *)
  Definition features_of (X : ledger) (fs : list account_expr) := map (fun e => value X e v) fs.

  (** The types of the features of the target. *)
  Definition types_of (fs : list account_expr) := map (type grows_as T true) fs.

  (** Features of which none falls, and trees that pass the leaf test: no attack lowers the score. *)
  Theorem score_rises fs ts :
    forallb no_fall (types_of fs) = true -> forallb (leaf_test (rising (types_of fs))) ts = true ->
    total_score ts (features_of G fs) <= total_score ts (features_of G' fs).

  (** A target whose score is above the threshold stays above it after every attack. *)
  Theorem stays_flagged fs ts threshold :
    forallb no_fall (types_of fs) = true -> forallb (leaf_test (rising (types_of fs))) ts = true ->
    threshold < total_score ts (features_of G fs) -> threshold < total_score ts (features_of G' fs).
End Soundness.

(** [t] is at least the sum of any [m] values of [f] over [U]: so is the sum of the [m] largest. *)
Definition tops (m : nat) (f : nat -> Z) (U : list nat) (t : Z) :=
  forall l, NoDup l -> incl l U -> (length l <= m)%nat -> sum (map f l) <= t.

(** Whether a number is in a list. *)
Definition mem (l : list nat) (u : nat) := existsb (Nat.eqb u) l.

(** Sums over partners after m deletions: D are partners that are lost (their pair was deleted, or they were bought), S
    those whose far end has changed, at most two for each deletion that does not meet the target. *)
Theorem deletions_bound_sums m X low y U D S t t' :
  NoDup U -> (forall u, In u U -> 0 <= low u <= X u) -> (forall u, In u U -> 0 <= y u) ->
  NoDup (D ++ S) -> incl (D ++ S) U -> (length D <= m)%nat -> (length S <= 2 * (m - length D))%nat ->
  (forall u, In u U -> ~ In u D -> ~ In u S -> X u <= y u) ->
  (forall u, In u S -> low u <= y u) ->
  tops m X U t -> tops m (fun u => X u - low u) U t' ->
  sum (map X U) - t - t' <= sum (map y U).

(** Where a deletion may change what all partners count, all of them are at their lower bounds. *)
Theorem deletions_bound_all m low y U D t :
  NoDup U -> (forall u, In u U -> 0 <= low u) -> (forall u, In u U -> 0 <= y u) -> NoDup D -> incl D U -> (length D <= m)%nat ->
  (forall u, In u U -> ~ In u D -> low u <= y u) -> tops m low U t -> sum (map low U) - t <= sum (map y U).

(** The largest over partners after m deletions. *)
Theorem deletions_bound_largest (X low y : nat -> Z) U D S b c :
  (forall u, In u U -> 0 <= y u) -> incl (D ++ S) U ->
  (forall u, In u U -> ~ In u D -> ~ In u S -> X u <= y u) -> (forall u, In u U -> ~ In u D -> low u <= y u) ->
  (* more partners than are lost or changed reach b; more than are lost reach c even at their lower bounds *)
  (b <= 0 \/ exists l, NoDup l /\ incl l U /\ (length (D ++ S) < length l)%nat /\ forall u, In u l -> b <= X u) ->
  (c <= 0 \/ exists l, NoDup l /\ incl l U /\ (length D < length l)%nat /\ forall u, In u l -> c <= low u) ->
  Z.max b c <= largest (map y U).

(** All features at their bounds at once is a corner that no attack falls below: the score there bounds the score. *)
Theorem corner_bounds rises ts x low :
  forallb (leaf_test rises) ts = true ->
  (forall j, if rises j : bool then nth j low 0 <= nth j x 0 else nth j x 0 = nth j low 0) ->
  total_score ts low <= total_score ts x.

(** If rows that flag the target exist, they can be appended to any ledger, and flag it there as well: who may append
    anything can frame everybody whose attributes do not prevent it. *)
Definition joined (H G : ledger) := {| rows := rows H ++ rows G; attribute := attribute H |}.

(** Rows that flag the target flag it in front of any ledger as well. *)
Theorem everybody_can_be_framed grows_as v H G fs ts threshold :
  forallb no_fall (types_of grows_as Grow fs) = true ->
  forallb (leaf_test (rising (types_of grows_as Grow fs))) ts = true ->
  threshold < total_score ts (features_of v H fs) -> threshold < total_score ts (features_of v (joined H G) fs).
