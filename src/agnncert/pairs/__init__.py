"""Decisions about pairs of nodes: votes of common neighbours, and of contacts whom one node trusts."""
