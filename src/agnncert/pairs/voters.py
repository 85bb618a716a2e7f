"""Who votes on a pair, and along which edges: the graph, without the pairs that are masked."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graphs.graph import CanonicalGraph

COMMON, FIRST, SECOND = range(3)  # seats: whose neighbour the node is that votes


@dataclass(frozen=True)
class Voters:
    """The votes on ``n`` pairs, ``m`` in all, ordered by pair.

    Attributes:
        owner: Number of the pair, shape ``[m]``.
        node: Row of the node that votes, shape ``[m]``.
        seat: COMMON, FIRST or SECOND, shape ``[m]``.
    """

    owner: IntArray
    node: IntArray
    seat: IntArray

    def indptr(self, number: int) -> IntArray:
        """Returns where the votes of each of so many pairs begin, and where the last ones end, shape ``[n + 1]``."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.owner, minlength=number))]).astype(np.int64)


def unmasked(graph: CanonicalGraph, masked: IntArray) -> BoolArray:
    """Returns which arcs join no masked pair, in either direction, shape ``[num_edges]``.

    Args:
        graph: The graph.
        masked: The masked pairs, shape ``[k, 2]``.
    """
    src, dst = graph.edge_index.long().numpy()
    keys = np.minimum(src, dst) * graph.num_nodes + np.maximum(src, dst)
    hidden = masked.min(axis=1, initial=graph.num_nodes) * graph.num_nodes + masked.max(axis=1, initial=0)
    return ~np.isin(keys, hidden)


def neighbours_of_pairs(graph: CanonicalGraph, ends: IntArray, kept: BoolArray, both: bool) -> Voters:
    """Returns the common neighbours of each pair and, with ``both``, the neighbours of each of its nodes as well.

    Args:
        graph: The graph, without self-loops.
        ends: The pairs, shape ``[n, 2]``.
        kept: Which arcs are seen, shape ``[num_edges]``.
        both: Whether neighbours of one node vote, too.
    """
    src, dst = graph.edge_index.long().numpy()[:, kept]
    joined = _matrix(np.concatenate([src, dst]), np.concatenate([dst, src]), graph.num_nodes)
    first, second = joined[ends[:, 0]], joined[ends[:, 1]]
    parts = [_entries(first.multiply(second), COMMON)]
    if both:
        parts += [_entries(first, FIRST), _entries(second, SECOND)]
    return _ordered(parts, ends)


def contacts_of_pairs(graph: CanonicalGraph, ends: IntArray, kept: BoolArray, trusted: BoolArray) -> Voters:
    """Returns, for each pair (u, v), the contacts of u that have an edge to v.

    Args:
        graph: The graph, without self-loops.
        ends: The pairs, shape ``[n, 2]``.
        kept: Which arcs are seen, shape ``[num_edges]``.
        trusted: Which arcs make their second node a contact of their first, shape ``[num_edges]``.
    """
    src, dst = graph.edge_index.long().numpy()
    contacts = _matrix(src[kept & trusted], dst[kept & trusted], graph.num_nodes)
    reversed_arcs = _matrix(dst[kept], src[kept], graph.num_nodes)
    return _ordered([_entries(contacts[ends[:, 0]].multiply(reversed_arcs[ends[:, 1]]), COMMON)], ends)


def _matrix(row: IntArray, column: IntArray, size: int) -> sparse.csr_matrix:
    """Returns a matrix with 1 at each named place, however often it is named."""
    ones: npt.NDArray[np.int64] = np.ones(len(row), dtype=np.int64)
    matrix = sparse.coo_matrix((ones, (row, column)), shape=(size, size)).tocsr()
    matrix.data[:] = 1
    return matrix


def _entries(matrix: sparse.csr_matrix, seat: int) -> Voters:
    entries = matrix.tocoo()
    return Voters(
        entries.row.astype(np.int64), entries.col.astype(np.int64), np.full(len(entries.row), seat, dtype=np.int64)
    )


def _ordered(parts: list[Voters], ends: IntArray) -> Voters:
    """Returns the votes by pair, seat and node. The two nodes of a pair have no vote on it."""
    owner = np.concatenate([part.owner for part in parts])
    node = np.concatenate([part.node for part in parts])
    seat = np.concatenate([part.seat for part in parts])
    other = (node != ends[owner, 0]) & (node != ends[owner, 1])
    owner, node, seat = owner[other], node[other], seat[other]
    order = np.lexsort((node, seat, owner))
    return Voters(owner[order], node[order], seat[order])
