"""Divisions: how a graph is split into subgraphs, and how far a change reaches into them.

``base`` says what a division is, and what a random defence is. ``edge`` and ``node`` hold the built-in divisions,
``union`` their subgraphs side by side, and ``changes`` what a change touches. ``named`` is the table of names, which
imports no torch.
"""
