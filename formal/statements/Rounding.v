(* What Rounding.v claims: its definitions and final statements, without proofs. Written by statements.py. *)
(** Rounding that is bounded (docs/rounding.md): the recurrences for sums, Linear, GCN and ReLU in the standard model, and that a lead of more than twice the bound has
    the class of exact arithmetic. Coq's real numbers bring axioms (assumptions-reals.txt lists them), so this file stands apart: nothing else imports it. *)
From Coq Require Import Reals Lra Lia Psatz Arith List Permutation.
Import ListNotations.
Open Scope R_scope.

(** gamma_k = k u / (1 - k u). *)
Definition gamma (u : R) (k : nat) : R := INR k * u / (1 - INR k * u).

(** The exact sum of a list. *)
Definition total (l : list R) : R := fold_right Rplus 0 l.

(** The sum of absolute values. *)
Definition size (l : list R) : R := total (map Rabs l).

(** The standard model: the exact result times 1 + d, plus t where results are taken for zero. *)
Definition rounded (u eta exact found : R) : Prop :=
  exists d t, Rabs d <= u /\ Rabs t <= eta /\ found = exact * (1 + d) + t.

(** What a term has become after r operations: those that make its weight, and its product. *)
Definition after (u eta : R) (r : nat) (exact found : R) : Prop :=
  Rabs (found - exact) <= ((1 + u) ^ r - 1) * Rabs exact + INR r * (1 + u) ^ r * eta.

(** A sum of terms in any order and any blocks: a tree. Each term has gone through r operations before. *)
Inductive summed (u eta : R) (r : nat) : list R -> R -> Prop :=
| summed_none : summed u eta r [] 0
| summed_term exact found : after u eta r exact found -> summed u eta r [exact] found
| summed_both l left right a b c :
    Permutation l (left ++ right) -> left <> [] -> right <> [] ->
    summed u eta r left a -> summed u eta r right b -> rounded u eta (a + b) c -> summed u eta r l c.

(** Rows are functions; n is the number of entries. *)
Definition row := nat -> R.

(** The sum of the first n entries. *)
Fixpoint tot (n : nat) (x : row) : R := match n with O => 0 | S n' => tot n' x + x n' end.

(** The Euclidean norm. *)
Definition norm (n : nat) (x : row) : R := sqrt (tot n (fun i => x i * x i)).

(** The difference of two rows. *)
Definition minus (x y : row) : row := fun i => x i - y i.

(** The two numbers that go along with a row: h is exact, g was computed. *)
Definition bounded (n : nat) (m e : R) (h g : row) : Prop := norm n h <= m /\ norm n (minus g h) <= e.

(** A linear layer without its bias. *)
Definition times (k : nat) (W : nat -> row) (x : row) : row := fun i => tot k (fun j => W i j * x j).

(** The absolute values of its weights. *)
Definition positive (W : nat -> row) : nat -> row := fun i j => Rabs (W i j).

(** The products that are added up for one entry. *)
Definition terms (k : nat) (W : nat -> row) (x : row) (i : nat) : list R := map (fun j => W i j * x j) (seq 0 k).

(** Terms that are zero are added exactly, so they need not be counted. *)
Definition not_zero (x : R) : bool := if Req_EM_T x 0 then false else true.

(** ReLU, entry by entry. *)
Definition relu (x : row) : row := fun i => Rmax (x i) 0.

(** A neighbour: the weight of its edge, its exact row and the computed one, and their bounds. *)
Record neighbour := Neighbour { weight : R; exact_row : row; computed_row : row; its_size : R; its_error : R }.

(** Weights are not negative, and the bounds of the row hold. *)
Definition fair (n : nat) (v : neighbour) : Prop := 0 <= weight v /\ bounded n (its_size v) (its_error v) (exact_row v) (computed_row v).

(** A weighted sum over neighbours of one of their numbers. *)
Definition weighted (f : neighbour -> R) (vs : list neighbour) : R := total (map (fun v => weight v * f v) vs).

(** The sum over neighbours of an entry of their rows, and what is added up for it: the bias and the products. *)
Definition added (vs : list neighbour) (pick : neighbour -> row) : row := fun i => total (map (fun v => weight v * pick v i) vs).

(** What is added up for an entry: the bias and the products. *)
Definition gcn_terms (vs : list neighbour) (bias : row) (i : nat) : list R := bias i :: map (fun v => weight v * computed_row v i) vs.

(** A product is one operation; a further product with a factor of at most 1 is one more. *)
Theorem product_after u eta x y : 0 <= u -> 0 <= eta -> rounded u eta x y -> after u eta 1 x y.

(** The lemma about sums: a product with a factor of at most 1 is one operation more. *)
Theorem scaled_after u eta r c x y z : 0 <= u -> 0 <= eta -> Rabs c <= 1 -> after u eta r x y -> rounded u eta (c * y) z -> after u eta (S r) (c * x) z.

(** The lemma about sums of docs/proofs.md, for k operations: in any order, blocking or number of threads. *)
Theorem sum_error u eta r l s k : 0 <= u -> 0 <= eta -> (1 <= r)%nat -> (length l + r - 1 <= k)%nat -> INR k * u <= 1 / 2 -> summed u eta r l s ->
  Rabs (s - total l) <= gamma u k * size l + 2 * INR (r * length l + length l) * eta.

(** What was computed bounds the exact row, too: m may be the smaller of two bounds. *)
Theorem observed_bounded n m e h g : bounded n m e h g -> bounded n (Rmin m (norm n g + e)) e h g.

(** ReLU rounds nothing. *)
Theorem relu_bounded n m e h g : bounded n m e h g -> bounded n m e (relu h) (relu g).

(** Linear: s bounds the weight, a its absolute values; at most k entries of each sum are not zero. *)
Theorem linear_bounded u eta inputs outputs k W s a m e h g out :
  0 <= u -> 0 <= eta -> INR k * u <= 1 / 2 -> 0 <= s -> 0 <= a ->
  (forall v, norm outputs (times inputs W v) <= s * norm inputs v) ->
  (forall v, norm outputs (times inputs (positive W) (fun j => Rabs (v j))) <= a * norm inputs v) ->
  (forall i, (i < outputs)%nat -> (length (filter not_zero (terms inputs W g i)) <= k)%nat /\ summed u eta 1 (filter not_zero (terms inputs W g i)) (out i)) ->
  bounded inputs m e h g ->
  bounded outputs (s * m) (s * e + gamma u k * (a * (m + e)) + 4 * INR k * eta * sqrt (INR outputs)) (times inputs W h) out.

(** GCN, SAGE and GIN: a weighted sum over neighbours (with the node itself among them) and a bias. Each term goes through r operations before it is added. *)
Theorem gcn_bounded u eta n r k vs bias beta out :
  0 <= u -> 0 <= eta -> (1 <= r)%nat -> (length vs + r <= k)%nat -> INR k * u <= 1 / 2 -> norm n bias <= beta ->
  (forall v, In v vs -> fair n v) ->
  (forall i, (i < n)%nat -> summed u eta r (gcn_terms vs bias i) (out i)) ->
  bounded n (weighted its_size vs + beta)
    (weighted its_error vs + gamma u k * (weighted (fun v => its_size v + its_error v) vs + beta) + 2 * INR ((r + 1) * (length vs + 1)) * eta * sqrt (INR n))
    (fun i => added vs exact_row i + bias i) out.

(** A lead of more than twice the bound has the class of exact arithmetic. *)
Theorem lead_decides (classes : nat) (z found : row) bound a :
  (forall k, (k < classes)%nat -> Rabs (found k - z k) <= bound) -> (a < classes)%nat ->
  (forall k, (k < classes)%nat -> k <> a -> found a - found k > 2 * bound) ->
  forall k, (k < classes)%nat -> k <> a -> z a > z k.

(** A lead of more than four times the bound is found on every machine. *)
Theorem lead_on_every_machine (classes : nat) (z found other : row) bound a :
  (forall k, (k < classes)%nat -> Rabs (found k - z k) <= bound) -> (forall k, (k < classes)%nat -> Rabs (other k - z k) <= bound) -> (a < classes)%nat ->
  (forall k, (k < classes)%nat -> k <> a -> found a - found k > 4 * bound) ->
  forall k, (k < classes)%nat -> k <> a -> other a > other k.

(** A single logit is a product with a single row of a weight: both of its norms are that of the row. *)
Theorem logit_norms inputs W v :
  norm 1 (times inputs W v) <= norm inputs (W O) * norm inputs v /\
  norm 1 (times inputs (positive W) (fun j => Rabs (v j))) <= norm inputs (W O) * norm inputs v.
