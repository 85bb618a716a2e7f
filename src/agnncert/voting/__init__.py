"""From a model and a divided graph to ballots. A *ballot* is the class that the model predicts in one subgraph.

``auditing`` and ``probes`` decide whether a model may vote, ``call`` how it is called. Two engines cast the same
ballots: ``naive`` one subgraph at a time, as the method is defined; ``fast`` (with ``lazy_rows``) all subgraphs
side by side. ``cast`` turns ballots into votes, and ``cover`` counts how many of them k nodes can reach.
"""
