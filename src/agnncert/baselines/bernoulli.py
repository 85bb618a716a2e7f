"""Random draws whose cost is proportional to what they change, and ``Pairs``, the edges of a graph that they act on.

Noise deletes or adds each edge independently of all others: one coin is tossed for each pair of nodes. Nearly all coins
change nothing, so only those that do are drawn.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from agnncert.errors import GraphError
from agnncert.proof.ballots import IntArray

SELECTION, ESTIMATION, TRAINING = 0, 1, 2


def stream(seed: int, stage: int, batch: int) -> np.random.Generator:
    """The random numbers of one batch: they depend on these three numbers and on nothing drawn before."""
    return np.random.default_rng(np.random.SeedSequence([seed, stage, batch]))


def successes(rng: np.random.Generator, length: int, p: float) -> IntArray:
    """Positions of the successes in ``length`` independent trials, each with probability ``p``; ascending.

    The distance from one success to the next is geometric, so only successes are drawn and the cost is proportional to
    their number. They are distributed exactly as those of ``length`` separate coins, which they would not be if
    a number of positions were drawn and duplicates rejected.

    Example:
        >>> successes(np.random.default_rng(0), 5, 1.0)
        array([0, 1, 2, 3, 4])
    """
    if p <= 0 or length <= 0:
        return np.empty(0, dtype=np.int64)
    if p >= 1:
        return np.arange(length, dtype=np.int64)
    parts: list[IntArray] = []
    last = -1
    while last < length:
        expected = (length - last) * p
        steps = rng.geometric(p, size=int(expected + 4 * np.sqrt(expected) + 16))
        steps = np.minimum(steps, length + 1)  # how far a step leads past the end does not matter, but it may overflow
        parts.append(last + np.cumsum(steps))
        last = int(parts[-1][-1])
    positions = np.concatenate(parts)
    return positions[: np.searchsorted(positions, length)]


def pair_at(place: IntArray) -> tuple[IntArray, IntArray]:
    """The pair ``i < j`` at each place of the list (0,1), (0,2), (1,2), (0,3), (1,3), (2,3), …

    The first ``n (n - 1) / 2`` places are the pairs of ``n`` nodes.

    Example:
        >>> pair_at(np.arange(6))
        (array([0, 0, 1, 0, 1, 2]), array([1, 2, 2, 3, 3, 3]))
    """
    j = ((1 + np.sqrt(8.0 * place + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > place  # the square root may be off by one either way
    j += (j + 1) * j // 2 <= place
    return place - j * (j - 1) // 2, j


def place_of_pair(i: IntArray, j: IntArray) -> IntArray:
    """The place of the pair ``i < j`` in the list of ``pair_at``."""
    return np.asarray(j * (j - 1) // 2 + i)


def runs(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> IntArray:
    """Runs ``starts[k], starts[k] + 1, …`` of ``counts[k]`` numbers each, one after the other.

    Example:
        >>> runs(np.array([5, 9]), np.array([2, 3]))
        array([ 5,  6,  9, 10, 11])
    """
    ends = np.cumsum(counts)
    return np.asarray(np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0))


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
        return np.repeat(np.arange(len(pair)), counts), self.arc[runs(self.arc_start[pair], counts)]


def require_simple(graph: Data, pairs: Pairs, what: str) -> None:
    """Refuses graphs whose adjacency is not a symmetric matrix of zeros and ones; flips are defined on no others.

    Raises:
        GraphError: Some pair is joined in one direction only, or more than once.
    """
    source, head = graph.edge_index.numpy()
    forward = np.bincount(
        np.repeat(np.arange(len(pairs)), pairs.arc_count)[source[pairs.arc] < head[pairs.arc]], minlength=len(pairs)
    )
    bad = np.flatnonzero((pairs.arc_count != 2) | (forward != 1))
    if len(bad):
        u, v = int(pairs.low[bad[0]]), int(pairs.high[bad[0]])
        raise GraphError(
            f"{what} flips edges of an undirected graph, but {len(bad)} pair(s) are joined in one direction "
            f"only or more than once (first: rows {u} and {v}). Apply "
            "torch_geometric.transforms.ToUndirected() before training and certifying."
        )
