"""Predictions under flips of edges and features (RS, sparsity-aware RS), for the node and the graph task."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from agnncert.baselines.flips import Flippable, Flips
from agnncert.baselines.pairs import require_simple
from agnncert.baselines.unions import Unions
from agnncert.engines.call import Caller
from agnncert.engines.fast import CHUNK_ROWS
from agnncert.errors import GraphError, SettingsError
from agnncert.smoothing import FlipNoise
from agnncert.votes import IntArray

_BATCH_WORK = 4_000_000
_LARGEST_BATCH = 1000
_MOST_FLIPS = 50_000_000
_CHUNK_NUMBERS = 2**25


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
        self, call: Caller, graph: Data, rows: IntArray, noise: FlipNoise, naive: bool = False
    ) -> None:
        self.graph, self.rows, self.noise = graph, rows, noise
        self.num_targets, self.num_classes = len(rows), call.num_classes
        self.by_row = noise.where == "target row"
        self._flippable = Flippable(graph, noise)
        self._unions = Unions(call, graph)
        self._naive = naive
        if self.by_row and call.task == "graph":
            raise SettingsError(
                'where="target row" is for node classification: a graph has no row. Use where="graph".'
            )
        check_flippable(self._flippable, call.takes)
        self.batch = int(np.clip(_BATCH_WORK / self._work(), 1, _LARGEST_BATCH))

    def _work(self) -> float:
        copies = max(self.num_targets, 1) if self.by_row else 1
        flips = self.graph.num_nodes * self.noise.p_add if self.by_row else self._flippable.expected_flips
        return float(copies * (flips + 16) + self.graph.num_edges)

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Class counts of the samples ``first`` to ``last - 1`` of one batch."""
        per_sample = self.num_targets if self.by_row else 1
        flips = (
            self._flippable.draw_rows(rng, self.batch, self.rows)
            if self.by_row
            else self._flippable.draw(rng, self.batch)
        )
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        for begin, end in self._chunks(first * per_sample, last * per_sample):
            target, label = self._predictions(flips.part(begin, end), begin, end)
            np.add.at(counts, (target, label), 1)
        return counts

    def _chunks(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        rows = self.graph.num_nodes
        step = max(1, CHUNK_ROWS // rows)
        if self.noise.on_features:
            step = max(1, min(step, _CHUNK_NUMBERS // self.graph.x.numel()))
        step = 1 if self._naive else step
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
        batch = self.graph.batch.numpy()
        if not self._naive:
            return self._labels(
                flips, copies, np.concatenate([batch + k * self.num_targets for k in range(copies)])
            )
        ends, arc = self._flippable.edges(flips, 1)
        x = self._flippable.features(flips, 1, self._unions.call.dtype)
        return np.concatenate([self._label_of_one(x, ends, arc, k) for k in range(self.num_targets)])

    def _label_of_one(self, x: Tensor, ends: IntArray, arc: IntArray, index: int) -> IntArray:
        """Prediction for one graph of a single noisy copy, evaluated by itself."""
        start, stop = np.searchsorted(self.graph.batch.numpy(), [index, index + 1])
        inside = (ends[0] >= start) & (ends[0] < stop)
        values, alone = self._unions.values(arc[inside]), np.zeros(stop - start, dtype=np.int64)
        return self._unions.labels_of(x[start:stop], ends[:, inside] - start, values, alone)

    def _labels(self, flips: Flips, copies: int, batch: IntArray | None) -> IntArray:
        ends, arc = self._flippable.edges(flips, copies)
        values = self._unions.values(arc)
        if self.noise.on_features:
            x = self._flippable.features(flips, copies, self._unions.call.dtype)
            return self._unions.labels_of(x, ends, values, batch)
        node = np.tile(np.arange(self.graph.num_nodes), copies)
        return self._unions.labels(node, ends, values, batch)


def check_flippable(flippable: Flippable, values: Sequence[str] = ()) -> None:
    """Refuse what cannot be drawn: directed graphs, values of added edges, too many flips.

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
            f"this noise adds edges, which have no {' or '.join(values)}: drop it from the data, or use "
            "p_add=0."
        )
    if noise.where == "graph" and flippable.expected_flips > _MOST_FLIPS:
        raise SettingsError(
            f"one noisy graph would have about {flippable.expected_flips:.3g} flips, of "
            f"{flippable.num_places:.3g} pairs of nodes: too many to evaluate. Lower the probability of "
            "additions, or take a smaller graph."
        )
