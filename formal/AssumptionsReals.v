(** What the statements about real numbers rest on, printed: the axioms of Coq's real numbers, and no others. *)
From Agnncert Require Import TwoLevelsReal.
Print Assumptions edge_moves_half.
Print Assumptions edge_moves_half_rounded.
Print Assumptions odds_bound.
Print Assumptions one_summand.
Print Assumptions exp_at_most.
Print Assumptions exp_products.
Print Assumptions grown_right.
Print Assumptions lowest_right.
Print Assumptions highest_right.
Print Assumptions softmax_model.
Print Assumptions softmax_certificate.
