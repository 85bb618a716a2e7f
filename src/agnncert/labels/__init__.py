"""Votes of training labels: a defence against labels that were changed before training.

``record`` holds what a certificate counts, ``evidence`` proves with it (Theorem 14 of ``docs/proofs.md``), ``claim``
says it in words. ``vectors`` and ``weights`` compute the votes from the graph, without a label. ``defence`` has
``LabelVotes``.
"""
