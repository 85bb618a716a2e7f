"""``Pairs``: the joined pairs of nodes of a graph, on which random changes of edges act."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agnncert.certificates.votes import IntArray
from agnncert.errors import GraphError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.draws import runs


@dataclass(frozen=True)
class Pairs:
    """Pairs ``low < high`` of joined nodes, ascending by ``(low, high)``, and the directed edges of each.

    Attributes:
        num_nodes: Number of nodes.
        low: Smaller row of each pair, shape ``[m]``.
        high: Larger row, shape ``[m]``.
        arc: Positions in ``edge_index``, grouped by pair.
        arc_start: Edges of pair ``k`` are ``arc[arc_start[k]:arc_start[k + 1]]``, shape ``[m + 1]``.
        first: Pairs whose smaller row is ``u`` are ``first[u]:first[u + 1]``, shape ``[num_nodes + 1]``.
    """

    num_nodes: int
    low: IntArray
    high: IntArray
    arc: IntArray
    arc_start: IntArray
    first: IntArray

    @classmethod
    def of(cls, graph: CanonicalGraph) -> "Pairs":
        """Finds the pairs of a graph without self-loops."""
        source, head = graph.edge_index.numpy()
        code = np.minimum(source, head) * graph.num_nodes + np.maximum(source, head)
        arc = np.argsort(code, kind="stable")
        codes, counts = np.unique(code, return_counts=True)
        low, high = np.divmod(codes, graph.num_nodes)
        return cls(
            num_nodes=int(graph.num_nodes),
            low=low,
            high=high,
            arc=arc,
            arc_start=np.concatenate([[0], np.cumsum(counts)]),
            first=np.searchsorted(low, np.arange(graph.num_nodes + 1)),
        )

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def arc_count(self) -> IntArray:
        """Number of directed edges of each pair, shape ``[m]``."""
        return np.diff(self.arc_start)

    def arcs(self, pair: IntArray) -> tuple[IntArray, IntArray]:
        """Lists the directed edges of some pairs.

        Returns:
            Which entry of ``pair`` each directed edge belongs to, and its position in ``edge_index``.
        """
        counts = self.arc_count[pair]
        entry = np.repeat(np.arange(len(pair)), counts)
        return entry, self.arc[runs(self.arc_start[pair], counts)]


def require_simple(graph: CanonicalGraph, pairs: Pairs, what: str) -> None:
    """Refuses graphs whose adjacency is not a symmetric matrix of zeros and ones. Flips are defined on no others.

    Args:
        graph: A canonical graph.
        pairs: Its joined pairs.
        what: What needs such a graph, for the message.

    Raises:
        GraphError: Some pair is joined in one direction only, or more than once.
    """
    source, head = graph.edge_index.numpy()
    pair_of_arc = np.repeat(np.arange(len(pairs)), pairs.arc_count)
    leads_upwards = source[pairs.arc] < head[pairs.arc]
    upwards = np.bincount(pair_of_arc[leads_upwards], minlength=len(pairs))
    joined_once = (pairs.arc_count == 2) & (upwards == 1)
    bad = np.flatnonzero(~joined_once)
    if not len(bad):
        return
    first = bad[0]
    raise GraphError(
        f"{what} flips edges of an undirected graph, but {len(bad)} pair(s) are joined in one direction "
        f"only or more than once (first: rows {pairs.low[first]} and {pairs.high[first]}). Apply "
        "torch_geometric.transforms.ToUndirected() before training and certifying."
    )
