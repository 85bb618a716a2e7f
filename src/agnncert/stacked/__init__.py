"""Stacked votes: a score of the target's own features, and one bounded vote of each neighbour."""
