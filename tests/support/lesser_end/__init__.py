"""A division of somebody's own with a theorem of its own, as ``docs/extending.md`` says.

An edge belongs to the group of the lesser of its two ids. Every subgraph has all nodes, so only edges are covered.
"""
