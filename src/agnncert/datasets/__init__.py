"""Graphs with labels and splits: the paper's datasets, two that ship with scikit-learn, and a user's own tables.

``load_dataset`` returns a ``Data`` (node classification) or a ``GraphSet`` (graph classification).
"""
