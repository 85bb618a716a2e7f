"""Ceilings: what no classifier of a statistic can certify on some graphs, and a reference for votes of neighbours.

**Ceilings are proved.** If two graphs of different classes can be brought to the same value of a statistic by x changes
each, no classifier of that statistic is correct and certified against x on both. Join such graphs: those that are
certified correctly contain no two that are joined, so of every pair in a matching at least one is lost. Hence at most
``n - matching`` of n graphs can be certified correctly. With two classes this is exact for the statistic (Koenig).

The statistic here is how many nodes of each type a graph has. Let p be what one graph has more than the other, by type,
and m what it has less. Both reach a common histogram with x changes each if and only if

    injected nodes alone              max(|p|, |m|) <= x       inject what the other has more
    other features alone              |p| = |m| <= 2x          each change turns one node into another type; halve p
    injected and deleted nodes        |p| + |m| <= 2x          halve the way
    injected nodes, other features    the same as below, and ||p| - |m|| <= x, which the smaller one must inject
    any changes of nodes              max(|p|, |m|) <= 2x      pairs of p and m are altered, the rest comes or goes

and edges change nothing. True labels of the very graphs are used, so a learner reaches less, and a high ceiling only
says that nothing is excluded. A classifier that also reads edges is not bounded.

**References are not proved.** :func:`votes_reference` is what votes would certify that know the true classes of all
neighbours, with the best weight of the node's own prediction, chosen with true labels too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from agnncert.certificates.votes import FloatArray, IntArray

if TYPE_CHECKING:
    from torch_geometric.data import Data

Changes = Literal["injected", "features", "structure", "kept", "any", "edges"]
MOST_TYPES = 100  # of nodes; with more, features are no types
REACH = 8.0  # weights of a node's own prediction that are tried: 2 ** -3 to 2 ** REACH, and any
_AT_ONCE = 2**24


def type_counts(graphs: Sequence["Data"]) -> IntArray:
    """Counts the nodes of each type in each graph, shape ``[n, types]``. Equal feature rows are one type."""
    rows = np.concatenate([graph.x.numpy() for graph in graphs])
    _, kind = np.unique(rows, axis=0, return_inverse=True)
    owner = np.repeat(np.arange(len(graphs)), [graph.num_nodes for graph in graphs])
    counts = np.zeros((len(graphs), int(kind.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(counts, (owner, kind.ravel()), 1)
    return counts


def few_type_counts(graphs: Sequence["Data"]) -> IntArray | None:
    """Counts as :func:`type_counts`; None if there are more than ``MOST_TYPES``: hardly any two rows are equal."""
    known: set[bytes] = set()
    for graph in graphs:
        known.update(row.tobytes() for row in np.unique(graph.x.numpy(), axis=0))
        if len(known) > MOST_TYPES:
            return None
    return type_counts(graphs)


def ceiling(counts: IntArray, y: IntArray, sizes: Sequence[int], changes: Changes = "any") -> list[float]:
    """Bounds the share of graphs that any classifier of these counts can certify correctly, for each size.

    Args:
        counts: The statistic of each graph, shape ``[n, types]``; one column for the number of nodes alone.
        y: True classes, shape ``[n]``.
        sizes: Numbers of changes.
        changes: ``"injected"`` nodes, ``"features"`` of nodes, ``"structure"``: nodes injected or deleted, ``"kept"``:
            nodes injected or given other features, ``"any"`` of these, or ``"edges"``, which do not change the
            statistic.

    Example:
        >>> ceiling(np.array([[1], [2], [4], [9]]), np.array([0, 1, 0, 1]), [0, 1, 3], "structure")
        [1.0, 0.75, 0.5]
    """
    classes = np.unique(y)
    lost = np.zeros(len(sizes), dtype=np.int64)
    # A matching between a class and the rest bounds all; of two classes one is enough.
    tried = classes[:1] if len(classes) == 2 else classes
    for k in tried:
        cost = _changes_each(counts[y == k], counts[y != k], changes)
        for place, size in enumerate(sizes):
            match = maximum_bipartite_matching(csr_array(cost <= size), perm_type="column")
            lost[place] = max(lost[place], int((match >= 0).sum()))
    return [float(1 - number / len(y)) for number in lost]


def _changes_each(mine: IntArray, others: IntArray, changes: Changes) -> IntArray:
    """Returns how many changes each of two graphs needs until both have the same counts, shape ``[a, b]``."""
    found = np.zeros((len(mine), len(others)), dtype=np.int64)
    step = max(1, _AT_ONCE // max(1, others.size))
    for first in range(0, len(mine), step):
        apart = mine[first : first + step, None, :] - others[None]
        more = np.maximum(apart, 0).sum(axis=2)
        less = np.maximum(-apart, 0).sum(axis=2)
        never = 2**15 - 1
        found[first : first + step] = {
            "injected": np.maximum(more, less),
            "features": np.where(more == less, (more + 1) // 2, never),
            "structure": (more + less + 1) // 2,
            "kept": np.maximum(abs(more - less), (np.maximum(more, less) + 1) // 2),
            "any": (np.maximum(more, less) + 1) // 2,
            "edges": np.where(more + less == 0, 0, never),
        }[changes]
    return found


def votes_reference(own: FloatArray, votes: FloatArray, y: IntArray, sizes: Sequence[int]) -> list[float]:
    """Computes what one vote per neighbour would certify with the best weight of a node's own prediction.

    This is no bound.

    Args:
        own: Log-probabilities of a model without edges, shape ``[n, C]``.
        votes: How many neighbours of each node are of each class, shape ``[n, C]``.
        y: True classes, shape ``[n]``.
        sizes: Numbers of neighbours that come or go.
    """
    everyone = np.arange(len(y))
    best = np.zeros(len(sizes))
    for weight in (*2.0 ** np.arange(-3, REACH + 1, 0.5), 1e9):
        lead = weight * own + votes
        rival = lead.copy()
        rival[everyone, y] = -np.inf
        margin = lead[everyone, y] - rival.max(axis=1)
        best = np.maximum(best, [(margin > size).mean() for size in sizes])
    return [float(share) for share in best]
