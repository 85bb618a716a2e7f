"""``FlipSampler``: counts the predictions of a model on graphs with flipped edges and features."""

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.union import CHUNK_ROWS
from agnncert.errors import SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.flippable import Flippable, Flips, check_flippable
from agnncert_peers.noisy_union import NoisyUnion

_BATCH_WORK = 4_000_000  # coins and edges of one batch: a few dozen megabytes of working memory
_LARGEST_BATCH = 1000
_CHUNK_NUMBERS = 2**25  # noisy features that the model sees at once


class FlipSampler:
    """Draws flips and counts the predictions of the targets.

    Args:
        bound_model: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        rows: Node task: rows of the targets. Graph task: all graphs, in order.
        noise: Probabilities of flips.
        naive: Run the model on one noisy graph at a time, for models that mix what is evaluated together.
    """

    def __init__(
        self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, noise: FlipNoise, naive: bool = False
    ) -> None:
        self.graph = graph
        self.rows = rows
        self.noise = noise
        self.num_targets = len(rows)
        self.num_classes = bound_model.num_classes
        self.by_row = noise.where == "target row"
        self._flippable = Flippable(graph, noise)
        self._union = NoisyUnion(bound_model, graph)
        self._naive = naive
        if self.by_row and bound_model.task == "graph":
            raise SettingsError('where="target row" is for node classification: a graph has no row. Use where="graph".')
        check_flippable(self._flippable, bound_model.edge_inputs)
        self.batch = int(np.clip(_BATCH_WORK / self._work(), 1, _LARGEST_BATCH))

    def _work(self) -> float:
        """Returns about how many coins and edges one sample has."""
        if self.by_row:
            coins_of_row = self.graph.num_nodes * self.noise.p_add
            return float(max(self.num_targets, 1) * (coins_of_row + 16) + self.graph.num_edges)
        return float(self._flippable.expected_flips + 16 + self.graph.num_edges)

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Counts the classes of the samples ``first`` to ``last - 1`` of one batch."""
        if self.by_row:
            copies_per_sample = self.num_targets
            flips = self._flippable.draw_rows(rng, self.batch, self.rows)
        else:
            copies_per_sample = 1
            flips = self._flippable.draw(rng, self.batch)
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        for begin, end in self._chunks(first * copies_per_sample, last * copies_per_sample):
            target, label = self._predictions(flips.part(begin, end), begin, end)
            np.add.at(counts, (target, label), 1)
        return counts

    def _chunks(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields the first copy and the end of each run of copies that the model sees at once."""
        step = self._copies_at_once()
        for start in range(begin, end, step):
            yield start, min(start + step, end)

    def _copies_at_once(self) -> int:
        if self._naive:
            return 1
        step = CHUNK_ROWS // self.graph.num_nodes
        if self.noise.on_features:
            step = min(step, _CHUNK_NUMBERS // self.graph.x.numel())
        return max(1, step)

    def _predictions(self, flips: Flips, begin: int, end: int) -> tuple[IntArray, IntArray]:
        """Returns targets and predictions in copies ``begin`` to ``end - 1``."""
        copies = end - begin
        if self.graph.task == "graph":
            return np.tile(np.arange(self.num_targets), copies), self._labels_of_graphs(flips, copies)
        label = self._labels(flips, copies, None).reshape(copies, -1)
        if self.by_row:
            target = np.arange(begin, end) % self.num_targets
            return target, label[np.arange(copies), self.rows[target]]
        return np.tile(np.arange(self.num_targets), copies), label[:, self.rows].ravel()

    def _labels_of_graphs(self, flips: Flips, copies: int) -> IntArray:
        if self._naive:
            return self._labels_one_by_one(flips)
        graph_of_node = self.graph.graph_of_node.numpy()
        batch = np.concatenate([graph_of_node + k * self.num_targets for k in range(copies)])
        return self._labels(flips, copies, batch)

    def _labels_one_by_one(self, flips: Flips) -> IntArray:
        """Returns the prediction for each graph of a single noisy copy, evaluated by itself."""
        ends, arc = self._flippable.edges(flips, 1)
        x = self._flippable.features(flips, 1, self._union.bound_model.dtype)
        return np.concatenate([self._label_of_one(x, ends, arc, k) for k in range(self.num_targets)])

    def _label_of_one(self, x: Tensor, ends: IntArray, arc: IntArray, index: int) -> IntArray:
        start, stop = np.searchsorted(self.graph.graph_of_node.numpy(), [index, index + 1])
        inside = (ends[0] >= start) & (ends[0] < stop)
        values = self._union.values(arc[inside])
        alone = np.zeros(stop - start, dtype=np.int64)
        return self._union.labels_of(x[start:stop], ends[:, inside] - start, values, batch=alone)

    def _labels(self, flips: Flips, copies: int, batch: IntArray | None) -> IntArray:
        ends, arc = self._flippable.edges(flips, copies)
        values = self._union.values(arc)
        if self.noise.on_features:
            x = self._flippable.features(flips, copies, self._union.bound_model.dtype)
            return self._union.labels_of(x, ends, values, batch=batch)
        node = np.tile(np.arange(self.graph.num_nodes), copies)
        return self._union.labels(node, ends, values, batch=batch)
