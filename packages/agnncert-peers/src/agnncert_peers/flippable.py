"""Draws flips of edges and of binary features, and makes noisy graphs of them.

This is the noise of RS and of sparsity-aware RS, for the node and the graph task.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import GraphError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.draws import pair_at, place_of_pair, runs, successes
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.pairs import Pairs, require_simple

_MOST_FLIPS = 50_000_000  # in one noisy graph


@dataclass(frozen=True)
class Flips:
    """What noise changed in each of a number of copies of a graph; every list ascends by copy.

    Attributes:
        deleted: Copy and pair of every deleted edge, shape ``[2, d]``.
        added: Copy and both rows of every added edge, shape ``[3, a]``.
        entries: Copy and position in the flattened features of every flipped entry, shape ``[2, f]``.
    """

    deleted: IntArray
    added: IntArray
    entries: IntArray

    def part(self, first: int, last: int) -> "Flips":
        """Returns the flips of copies ``first`` to ``last - 1``, renumbered from 0."""
        return Flips(
            deleted=_part(self.deleted, first, last),
            added=_part(self.added, first, last),
            entries=_part(self.entries, first, last),
        )


def _part(rows: IntArray, first: int, last: int) -> IntArray:
    """Returns the columns of copies ``first`` to ``last - 1``, renumbered from 0; the first row holds the copies."""
    begin, end = np.searchsorted(rows[0], [first, last])
    part = rows[:, begin:end].copy()
    part[0] -= first
    return part


class Flippable:
    """A graph, or a joined set of graphs, on which flips are drawn. Nodes of different graphs are never joined.

    Args:
        graph: A canonical graph.
        noise: Probabilities of flips.
    """

    def __init__(self, graph: CanonicalGraph, noise: FlipNoise) -> None:
        self.graph = graph
        self.noise = noise
        self.pairs = Pairs.of(graph)
        sizes = graph.sizes.numpy()
        self._start = np.cumsum(sizes) - sizes
        places = sizes * (sizes - 1) // 2
        self._first_place = np.cumsum(places) - places
        self.num_places = int(places.sum())
        self._rank = _ranks(graph)
        if noise.on_features:
            require_binary(graph.x)
        # Coins for ones in the features are drawn apart from those for zeros.
        self._is_one = np.empty(0, dtype=bool)
        if noise.on_features:
            self._is_one = graph.x.reshape(-1).numpy() == 1
        self._ones = np.flatnonzero(self._is_one)

    @property
    def expected_flips(self) -> float:
        """How many flips one copy of the whole graph has on average."""
        noise = self.noise
        edges = len(self.pairs) * noise.p_delete + self.num_places * noise.p_add
        entries = len(self._ones) * noise.p_delete_feature + self.graph.x.numel() * noise.p_add_feature
        return float(edges + entries)

    def draw(self, rng: np.random.Generator, copies: int) -> Flips:
        """Draws flips of all pairs and all feature entries in a number of independent copies."""
        deleted = self._draw_deleted(rng, copies)
        added = self._draw_added(rng, copies)
        return Flips(deleted, added, self._draw_entries(rng, copies))

    def _draw_deleted(self, rng: np.random.Generator, copies: int) -> IntArray:
        num_pairs = len(self.pairs)
        copy, pair = _split(successes(rng, copies * num_pairs, self.noise.p_delete), num_pairs)
        return np.stack([copy, pair])

    def _draw_added(self, rng: np.random.Generator, copies: int) -> IntArray:
        # Every pair gets a coin for addition; those of pairs that are joined already are ignored.
        copy, place = _split(successes(rng, copies * self.num_places, self.noise.p_add), self.num_places)
        graph = np.searchsorted(self._first_place, place, side="right") - 1
        low_in_graph, high_in_graph = pair_at(place - self._first_place[graph])
        low = low_in_graph + self._start[graph]
        high = high_in_graph + self._start[graph]
        free = ~self._joined(low, high)
        return np.stack([copy, low, high])[:, free]

    def draw_rows(self, rng: np.random.Generator, samples: int, rows: IntArray) -> Flips:
        """Draws flips of pairs with the target. Copy ``s * len(rows) + t`` is sample ``s`` for ``rows[t]``."""
        deleted = self._draw_deleted_at(rng, samples, rows)
        added = self._draw_added_at(rng, samples, rows)
        return Flips(deleted, added, entries=np.empty((2, 0), dtype=np.int64))

    def _draw_deleted_at(self, rng: np.random.Generator, samples: int, rows: IntArray) -> IntArray:
        start, pair = self._incident
        degree = start[rows + 1] - start[rows]
        # Coins of existing edges, laid out copy by copy.
        copy = np.repeat(np.arange(samples * len(rows)), np.tile(degree, samples))
        pair_of_coin = pair[np.tile(runs(start[rows], degree), samples)]
        gone = successes(rng, len(copy), self.noise.p_delete)
        return np.stack([copy[gone], pair_of_coin[gone]])

    def _draw_added_at(self, rng: np.random.Generator, samples: int, rows: IntArray) -> IntArray:
        num_nodes = self.pairs.num_nodes
        copies = samples * len(rows)
        copy, other = _split(successes(rng, copies * num_nodes, self.noise.p_add), num_nodes)
        target = rows[copy % max(len(rows), 1)]
        low = np.minimum(target, other)
        high = np.maximum(target, other)
        free = (low != high) & ~self._joined(low, high)
        return np.stack([copy, low, high])[:, free]

    @cached_property
    def _incident(self) -> tuple[IntArray, IntArray]:
        """Where the list of pairs at each node begins, and these lists one after the other."""
        ends = np.concatenate([self.pairs.low, self.pairs.high])
        order = np.argsort(ends, kind="stable")
        start = np.searchsorted(ends[order], np.arange(self.pairs.num_nodes + 1))
        return start, order % max(len(self.pairs), 1)

    @cached_property
    def _joined_places(self) -> IntArray:
        """Places of the joined pairs in the list of ``pair_at``, ascending."""
        return np.sort(place_of_pair(self.pairs.low, self.pairs.high))

    def _joined(self, low: IntArray, high: IntArray) -> BoolArray:
        place = place_of_pair(low, high)
        position = np.searchsorted(self._joined_places, place)
        next_joined = np.append(self._joined_places, -1)[position]
        return np.asarray(next_joined == place)

    def _draw_entries(self, rng: np.random.Generator, copies: int) -> IntArray:
        if not self.noise.on_features:
            return np.empty((2, 0), dtype=np.int64)
        size = self.graph.x.numel()
        num_ones = len(self._ones)
        copy, one = _split(successes(rng, copies * num_ones, self.noise.p_delete_feature), num_ones)
        gone = copy * size + self._ones[one]
        tossed = successes(rng, copies * size, self.noise.p_add_feature)
        new = tossed[~self._is_one[tossed % size]]  # coins of entries that are 1 already are ignored
        flipped = np.sort(np.concatenate([gone, new]))
        return np.stack(_split(flipped, size))

    def edges(self, flips: Flips, copies: int) -> tuple[IntArray, IntArray]:
        """Returns the edges of the union of noisy copies, in canonical order, and which edge of the graph each is.

        Added edges have no original: -1.
        """
        base = self.graph.edge_index.numpy()
        kept = np.ones((copies, base.shape[1]), dtype=bool)
        deletion, deleted_arc = self.pairs.arcs(flips.deleted[1])
        kept[flips.deleted[0][deletion], deleted_arc] = False
        copy, arc = kept.nonzero()
        ends = base[:, arc]
        if not flips.added.shape[1]:
            return ends + copy * self.pairs.num_nodes, arc
        new_copy, low, high = flips.added
        copy = np.concatenate([copy, new_copy, new_copy])
        ends = np.concatenate([ends, np.stack([low, high]), np.stack([high, low])], axis=1)
        arc = np.concatenate([arc, np.full(2 * len(low), -1)])
        order = np.lexsort([self._rank[ends[0]], self._rank[ends[1]], copy])
        in_union = ends + copy * self.pairs.num_nodes
        return in_union[:, order], arc[order]

    def features(self, flips: Flips, copies: int, dtype: torch.dtype) -> Tensor:
        """Returns the features of all copies, one below the other."""
        x: Tensor = self.graph.x.to(dtype).repeat(copies, 1)
        flat = x.view(-1)
        place = torch.from_numpy(flips.entries[0] * self.graph.x.numel() + flips.entries[1])
        flat[place] = 1 - flat[place]
        return x


def require_binary(x: Tensor) -> None:
    """Refuses features other than 0 and 1, because flips are not defined on them.

    Raises:
        GraphError: Naming the first one.
    """
    other = ((x != 0) & (x != 1)).nonzero()
    if not len(other):
        return
    row, column = other[0].tolist()
    raise GraphError(
        f"noise on features flips zeros and ones, but {len(other)} entries are neither (first: row "
        f"{row}, column {column}, value {float(x[row, column]):g}). Use binary features, such as "
        "(x > 0).float(), for training and certifying."
    )


def _split(flat: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Returns the copy, and the position in it, of each position in a row of copies of this size."""
    copy, position = np.divmod(flat, max(size, 1))
    return copy, position


def _ranks(graph: CanonicalGraph) -> IntArray:
    """Returns the position of each node in the order of ids, graph by graph."""
    key = graph.node_key.numpy()
    batch = graph.graph_of_node.numpy()
    rank = np.empty(len(key), dtype=np.int64)
    rank[np.lexsort([key, batch])] = np.arange(len(key))
    return rank


def check_flippable(flippable: Flippable, values: Sequence[str] = ()) -> None:
    """Refuses what cannot be drawn: directed graphs, values of added edges, too many flips.

    Args:
        flippable: The graph and the noise.
        values: Edge values that the model takes.

    Raises:
        GraphError: The graph is not undirected, or has edge values although noise adds edges.
        SettingsError: The noise adds more edges than can be evaluated.
    """
    noise = flippable.noise
    if noise.on_edges:
        require_simple(flippable.graph, flippable.pairs, "this noise")
    if values and noise.p_add > 0:
        raise GraphError(
            f"this noise adds edges, which have no {' or '.join(values)}: drop it from the data, or use p_add=0."
        )
    if noise.where == "graph" and flippable.expected_flips > _MOST_FLIPS:
        raise SettingsError(
            f"one noisy graph would have about {flippable.expected_flips:.3g} flips, of {flippable.num_places:.3g} "
            "pairs of nodes: too many to evaluate. Lower the probability of additions, or take a smaller graph."
        )
