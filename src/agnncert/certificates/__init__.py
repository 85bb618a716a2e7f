"""What prover and verifier both read: budgets, ids, votes, rules, claims and the file format. No torch, no scipy."""
