"""Flips of edges and of binary features: drawing them, making noisy graphs of them, and counting predictions on these.

This is the noise of RS and of sparsity-aware RS, for the node and the graph task.

Randomized smoothing by flips: RS of structure (Wang et al., KDD 2021; Jia et al., WWW 2020) and sparsity-aware RS
(Bojchevski et al., ICML 2020), whose additions are rarer than its deletions.

Unlike the released code of RS: an entry is flipped with the certified probability ``1 - beta``, not with half of
it, tests are strict, and noise on the target's row is not passed off as a guarantee for the whole graph.

Unlike the released code of sparsity-aware RS: regions of edges and features together are sorted before use, the rival
is the worst of all classes, tests are strict, and added edges are distributed exactly as the certificate assumes.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.union import CHUNK_ROWS
from agnncert.engine.votes import EngineName
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.noise import FlipNoise
from agnncert_peers.sampling import BatchedCalls, Pairs, pair_at, place_of_pair, require_simple, runs, successes
from agnncert_peers.smoothing import Smoothing

_BATCH_WORK = 4_000_000  # coins and edges of one batch: a few dozen megabytes of working memory
_LARGEST_BATCH = 1000
_MOST_FLIPS = 50_000_000  # in one noisy graph
_CHUNK_NUMBERS = 2**25  # noisy features that the model sees at once


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
        """The flips of copies ``first`` to ``last - 1``, renumbered from 0."""
        return Flips(*(_part(rows, first, last) for rows in (self.deleted, self.added, self.entries)))


def _part(rows: IntArray, first: int, last: int) -> IntArray:
    here = rows[:, slice(*np.searchsorted(rows[0], [first, last]))].copy()
    here[0] -= first
    return here


class Flippable:
    """A graph, or a joined set of graphs, on which flips are drawn; never between different graphs.

    Args:
        graph: A canonical graph.
        noise: Probabilities of flips.
    """

    def __init__(self, graph: CanonicalGraph, noise: FlipNoise) -> None:
        self.graph, self.noise = graph, noise
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
        self._is_one = graph.x.reshape(-1).numpy() == 1 if noise.on_features else np.empty(0, dtype=bool)
        self._ones = np.flatnonzero(self._is_one)

    @property
    def expected_flips(self) -> float:
        """How many flips one copy of the whole graph has on average."""
        noise = self.noise
        edges = len(self.pairs) * noise.p_delete + self.num_places * noise.p_add
        entries = len(self._ones) * noise.p_delete_feature + self.graph.x.numel() * noise.p_add_feature
        return float(edges + entries)

    def draw(self, rng: np.random.Generator, copies: int) -> Flips:
        """Flips of all pairs and all feature entries in a number of independent copies."""
        copy, pair = _split(successes(rng, copies * len(self.pairs), self.noise.p_delete), len(self.pairs))
        deleted = np.stack([copy, pair])
        # Every pair gets a coin for addition; those of pairs that are joined already are ignored.
        copy, place = _split(successes(rng, copies * self.num_places, self.noise.p_add), self.num_places)
        block = np.searchsorted(self._first_place, place, side="right") - 1
        low, high = pair_at(place - self._first_place[block])
        low, high = low + self._start[block], high + self._start[block]
        free = ~self._joined(low, high)
        return Flips(deleted, np.stack([copy, low, high])[:, free], self._draw_entries(rng, copies))

    def draw_rows(self, rng: np.random.Generator, samples: int, rows: IntArray) -> Flips:
        """Flips of pairs with the target; copy ``s * len(rows) + t`` is sample ``s`` for ``rows[t]``."""
        copies, num_nodes = samples * len(rows), self.pairs.num_nodes
        start, pair = self._incident
        degree = start[rows + 1] - start[rows]
        # Coins of existing edges, laid out copy by copy.
        copy = np.repeat(np.arange(copies), np.tile(degree, samples))
        here = pair[np.tile(runs(start[rows], degree), samples)]
        gone = successes(rng, len(copy), self.noise.p_delete)
        deleted = np.stack([copy[gone], here[gone]])
        copy, other = _split(successes(rng, copies * num_nodes, self.noise.p_add), num_nodes)
        target = rows[copy % len(rows)] if copies else copy
        low, high = np.minimum(target, other), np.maximum(target, other)
        free = (low != high) & ~self._joined(low, high)
        return Flips(deleted, np.stack([copy, low, high])[:, free], np.empty((2, 0), dtype=np.int64))

    @cached_property
    def _incident(self) -> tuple[IntArray, IntArray]:
        """Pairs at each node: where its run begins, and the runs."""
        ends = np.concatenate([self.pairs.low, self.pairs.high])
        order = np.argsort(ends, kind="stable")
        start = np.searchsorted(ends[order], np.arange(self.pairs.num_nodes + 1))
        return start, order % max(len(self.pairs), 1)

    @cached_property
    def _places(self) -> IntArray:
        return np.sort(place_of_pair(self.pairs.low, self.pairs.high))

    def _joined(self, low: IntArray, high: IntArray) -> BoolArray:
        place = place_of_pair(low, high)
        at = np.searchsorted(self._places, place)
        return np.asarray(np.append(self._places, -1)[at] == place)

    def _draw_entries(self, rng: np.random.Generator, copies: int) -> IntArray:
        if not self.noise.on_features:
            return np.empty((2, 0), dtype=np.int64)
        size = self.graph.x.numel()
        copy, one = _split(successes(rng, copies * len(self._ones), self.noise.p_delete_feature), len(self._ones))
        gone = copy * size + self._ones[one]
        new = successes(rng, copies * size, self.noise.p_add_feature)
        flipped = np.sort(np.concatenate([gone, new[~self._is_one[new % size]]]))
        return np.stack(_split(flipped, size))

    def edges(self, flips: Flips, copies: int) -> tuple[IntArray, IntArray]:
        """Edges of the union of noisy copies, in canonical order, and which edge of the graph each is.

        Added edges have no original: -1.
        """
        base = self.graph.edge_index.numpy()
        kept = np.ones((copies, base.shape[1]), dtype=bool)
        which, arc = self.pairs.arcs(flips.deleted[1])
        kept[flips.deleted[0][which], arc] = False
        copy, arc = kept.nonzero()
        ends = base[:, arc]
        if flips.added.shape[1]:
            new_copy, low, high = flips.added
            copy = np.concatenate([copy, new_copy, new_copy])
            ends = np.concatenate([ends, np.stack([low, high]), np.stack([high, low])], axis=1)
            arc = np.concatenate([arc, np.full(2 * len(low), -1)])
            order = np.lexsort([self._rank[ends[0]], self._rank[ends[1]], copy])
            copy, ends, arc = copy[order], ends[:, order], arc[order]
        return ends + copy * self.pairs.num_nodes, arc

    def features(self, flips: Flips, copies: int, dtype: torch.dtype) -> Tensor:
        """Features of all copies, one below the other."""
        x: Tensor = self.graph.x.to(dtype).repeat(copies, 1)
        flat = x.view(-1)
        place = torch.from_numpy(flips.entries[0] * self.graph.x.numel() + flips.entries[1])
        flat[place] = 1 - flat[place]
        return x


def require_binary(x: Tensor) -> None:
    """Refuses features other than 0 and 1: flips are not defined on them.

    Raises:
        GraphError: Naming the first one.
    """
    other = ((x != 0) & (x != 1)).nonzero()
    if len(other):
        row, column = other[0].tolist()
        raise GraphError(
            f"noise on features flips zeros and ones, but {len(other)} entries are neither (first: row "
            f"{row}, column {column}, value {float(x[row, column]):g}). Use binary features, such as "
            "(x > 0).float(), for training and certifying."
        )


def _split(flat: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The copy, and the position in it, of each position in a row of copies of this size."""
    copy, position = np.divmod(flat, max(size, 1))
    return copy, position


def _ranks(graph: CanonicalGraph) -> IntArray:
    """Position of each node in the order of its id, within its graph."""
    key = graph.node_key.numpy()
    batch = graph.graph_of_node.numpy()
    rank = np.empty(len(key), dtype=np.int64)
    rank[np.lexsort([key, batch])] = np.arange(len(key))
    return rank


class FlipSampler:
    """Draws flips and counts the predictions of the targets.

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        rows: Node task: rows of the targets. Graph task: all graphs, in order.
        noise: Probabilities of flips.
        naive: Run the model on one noisy graph at a time, for models that mix what is evaluated together.
    """

    def __init__(
        self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, noise: FlipNoise, naive: bool = False
    ) -> None:
        self.graph, self.rows, self.noise = graph, rows, noise
        self.num_targets, self.num_classes = len(rows), call.num_classes
        self.by_row = noise.where == "target row"
        self._flippable = Flippable(graph, noise)
        self._calls = BatchedCalls(call, graph)
        self._naive = naive
        if self.by_row and call.task == "graph":
            raise SettingsError('where="target row" is for node classification: a graph has no row. Use where="graph".')
        check_flippable(self._flippable, call.edge_inputs)
        self.batch = int(np.clip(_BATCH_WORK / self._work(), 1, _LARGEST_BATCH))

    def _work(self) -> float:
        """Coins and edges of one sample, about."""
        copies = max(self.num_targets, 1) if self.by_row else 1
        flips = self.graph.num_nodes * self.noise.p_add if self.by_row else self._flippable.expected_flips
        return float(copies * (flips + 16) + self.graph.num_edges)

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Class counts of the samples ``first`` to ``last - 1`` of one batch."""
        if self.by_row:
            per_sample, flips = self.num_targets, self._flippable.draw_rows(rng, self.batch, self.rows)
        else:
            per_sample, flips = 1, self._flippable.draw(rng, self.batch)
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        for begin, end in self._chunks(first * per_sample, last * per_sample):
            target, label = self._predictions(flips.part(begin, end), begin, end)
            np.add.at(counts, (target, label), 1)
        return counts

    def _chunks(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """First copy and end of each run of copies that the model sees at once."""
        step = CHUNK_ROWS // self.graph.num_nodes
        if self.noise.on_features:
            step = min(step, _CHUNK_NUMBERS // self.graph.x.numel())
        step = 1 if self._naive else max(1, step)
        for start in range(begin, end, step):
            yield start, min(start + step, end)

    def _predictions(self, flips: Flips, begin: int, end: int) -> tuple[IntArray, IntArray]:
        """Targets and predictions in copies ``begin`` to ``end - 1``."""
        copies = end - begin
        if self.graph.task == "graph":
            return np.tile(np.arange(self.num_targets), copies), self._labels_of_graphs(flips, copies)
        label = self._labels(flips, copies, None).reshape(copies, -1)
        if self.by_row:
            target = np.arange(begin, end) % self.num_targets
            return target, label[np.arange(copies), self.rows[target]]
        return np.tile(np.arange(self.num_targets), copies), label[:, self.rows].ravel()

    def _labels_of_graphs(self, flips: Flips, copies: int) -> IntArray:
        batch = self.graph.graph_of_node.numpy()
        if not self._naive:
            return self._labels(flips, copies, np.concatenate([batch + k * self.num_targets for k in range(copies)]))
        ends, arc = self._flippable.edges(flips, 1)
        x = self._flippable.features(flips, 1, self._calls.call.dtype)
        return np.concatenate([self._label_of_one(x, ends, arc, k) for k in range(self.num_targets)])

    def _label_of_one(self, x: Tensor, ends: IntArray, arc: IntArray, index: int) -> IntArray:
        """Prediction for one graph of a single noisy copy, evaluated by itself."""
        start, stop = np.searchsorted(self.graph.graph_of_node.numpy(), [index, index + 1])
        inside = (ends[0] >= start) & (ends[0] < stop)
        values, alone = self._calls.values(arc[inside]), np.zeros(stop - start, dtype=np.int64)
        return self._calls.labels_of(x[start:stop], ends[:, inside] - start, values, alone)

    def _labels(self, flips: Flips, copies: int, batch: IntArray | None) -> IntArray:
        ends, arc = self._flippable.edges(flips, copies)
        values = self._calls.values(arc)
        if self.noise.on_features:
            x = self._flippable.features(flips, copies, self._calls.call.dtype)
            return self._calls.labels_of(x, ends, values, batch)
        node = np.tile(np.arange(self.graph.num_nodes), copies)
        return self._calls.labels(node, ends, values, batch)


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


class FlipDefence(Smoothing):
    """A defence that votes over graphs with flipped edges and features."""

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, Tensor | None]:
        flippable = Flippable(graph, self.noise(int(graph.x.size(1))))
        check_flippable(flippable)
        flips = flippable.draw(rng, 1)
        ends, arc = flippable.edges(flips, 1)
        parts: dict[str, Tensor | None] = {"edge_index": torch.from_numpy(ends)}
        for name, value in graph.edge_values.items():
            # Added edges have no weights and attributes, so then no edge keeps its own.
            parts[name] = None if flippable.noise.p_add > 0 else value[torch.from_numpy(arc)]
        if flippable.noise.on_features:
            parts["x"] = flippable.features(flips, 1, graph.x.dtype)
        return parts

    @abstractmethod
    def noise(self, num_features: int) -> FlipNoise:
        """The noise, for nodes with ``num_features`` features."""

    def _sampler(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> FlipSampler:
        return FlipSampler(call, graph, rows, self.noise(int(graph.x.size(1))), naive)

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        # The proof needs only that the output is a function of the graph. The fast engine, which evaluates many graphs
        # at once, needs a model that looks at a node only through the edges that lead to it.
        if "edges" not in report.fit_for:
            raise ModelContractError(str(report))
        if engine == "fast" and not report.ok:
            raise ModelContractError(
                f'{report}\nThis defence can certify the model all the same, one noisy graph at a time: engine="naive".'
            )


@dataclass(frozen=True)
class RS(FlipDefence):
    """Votes over graphs in which every pair of nodes is flipped with probability ``1 - beta``.

    Covers edges added or deleted, counted together. With ``beta=0.8`` a fifth of all pairs without an edge
    get one: use small graphs, or ``SparseRS``.

    Attributes:
        beta: Probability that a pair keeps its state, above 1/2 and below 1.
        where: ``"graph"``: all pairs are noisy, and edges anywhere are covered. ``"target row"`` (node
            task): only pairs with the target are, as in the released code; then only edges *at the target*
            are covered, samples are drawn for each target apart, and budgets of edges, which may lie
            anywhere, do not hold. Read the radius, or ask ``certificate.evidence.holds_flips``.

    Example:
        >>> RS(beta=0.8).noise(1).unit
        'edge added or deleted'
    """

    method: ClassVar[str] = "rs"

    beta: float = 0.8
    where: str = "graph"

    def __post_init__(self) -> None:
        number = isinstance(self.beta, (int, float)) and not isinstance(self.beta, bool)
        if not number or not 0.5 < self.beta < 1:
            raise SettingsError(
                f"beta={self.beta!r}: the probability to keep a pair must lie between 1/2 (noise that says "
                "nothing about the graph) and 1 (no noise, nothing certified), such as 0.8."
            )
        super().__post_init__()

    def noise(self, num_features: int) -> FlipNoise:
        """The noise; features stay as they are."""
        return FlipNoise(p_add=1 - self.beta, p_delete=1 - self.beta, where=self.where)


@dataclass(frozen=True)
class SparseRS(FlipDefence):
    """Votes over graphs with a few edges added and many deleted, and likewise entries of binary features.

    Covers edges added and deleted, each with its own number, and flipped feature entries
    (``certificate.evidence.holds_flips``), alone and together. Node and graph classification.

    Attributes:
        p_add: Probability that a pair without an edge gets one.
        p_delete: Probability that an edge is deleted.
        p_add_feature: Probability that a feature entry 0 becomes 1.
        p_delete_feature: Probability that a feature entry 1 becomes 0.

    Example:
        >>> SparseRS(p_add=0, p_delete=0, p_add_feature=0.01, p_delete_feature=0.6).noise(1433).on_edges
        False
    """

    method: ClassVar[str] = "sparse-rs"

    p_add: float = 0.001
    p_delete: float = 0.4
    p_add_feature: float = 0.0
    p_delete_feature: float = 0.0

    def noise(self, num_features: int) -> FlipNoise:
        """The noise, for nodes with ``num_features`` features."""
        return FlipNoise(self.p_add, self.p_delete, self.p_add_feature, self.p_delete_feature, num_features)
