"""The edges of a graph as unordered pairs of nodes, the things that noise acts on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch_geometric.data import Data

from agnncert.baselines.coins import expand
from agnncert.errors import GraphError
from agnncert.votes import IntArray


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
    def of(cls, graph: Data) -> "Pairs":
        """The pairs of a graph without self-loops."""
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
        """Directed edges of each pair, shape ``[m]``."""
        return np.diff(self.arc_start)

    def arcs(self, pair: IntArray) -> tuple[IntArray, IntArray]:
        """Directed edges of pairs: the entry of ``pair`` each belongs to, and its place in ``edge_index``."""
        counts = self.arc_count[pair]
        return np.repeat(np.arange(len(pair)), counts), self.arc[expand(self.arc_start[pair], counts)]


def require_simple(graph: Data, pairs: Pairs, what: str) -> None:
    """Refuse graphs that are not a symmetric 0/1 matrix, the only thing flips are defined on.

    Raises:
        GraphError: Some pair is joined in one direction only, or more than once.
    """
    source, head = graph.edge_index.numpy()
    forward = np.bincount(
        np.repeat(np.arange(len(pairs)), pairs.arc_count)[source[pairs.arc] < head[pairs.arc]],
        minlength=len(pairs),
    )
    bad = np.flatnonzero((pairs.arc_count != 2) | (forward != 1))
    if len(bad):
        u, v = int(pairs.low[bad[0]]), int(pairs.high[bad[0]])
        raise GraphError(
            f"{what} flips edges of an undirected graph, but {len(bad)} pair(s) are joined in one direction "
            f"only or more than once (first: rows {u} and {v}). Apply "
            "torch_geometric.transforms.ToUndirected() before training and certifying."
        )
