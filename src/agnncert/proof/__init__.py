"""What is proved, and how anyone checks it. Imports numpy and scipy, never torch.

    read by both   budget · ballots · rules · vote · claim · file
    proving        theorems · evidence · certificate · samples/
    checking       recount · recount_samples · check

Neither half imports anything of the other; ``docs/trust.md`` says what a verifier has to trust.
"""
