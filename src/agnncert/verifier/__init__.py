"""The verifier: derives every statement of a certificate file a second time. Never imports the prover; numpy only."""
