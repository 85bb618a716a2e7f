(** What the statements about real numbers rest on, printed: the axioms of Coq's real numbers, and no others. *)
From Agnncert Require Import TwoLevelsReal Rounding.
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
Print Assumptions product_after.
Print Assumptions scaled_after.
Print Assumptions sum_error.
Print Assumptions linear_bounded.
Print Assumptions gcn_bounded.
Print Assumptions relu_bounded.
Print Assumptions observed_bounded.
Print Assumptions logit_norms.
Print Assumptions lead_decides.
Print Assumptions lead_on_every_machine.
