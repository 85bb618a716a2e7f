"""The prover: from votes, or counts of noisy predictions, to a certificate. Never imports the verifier; no torch."""
