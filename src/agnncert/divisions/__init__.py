"""Divisions: how a graph is split into subgraphs, and how far a change reaches into them.

``base`` says what a division is; ``edge``, ``node`` and ``gnncert`` hold the built-in ones; ``named`` is the table of
their names, which imports no torch.
"""
