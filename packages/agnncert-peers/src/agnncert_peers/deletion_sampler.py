"""``DeletionSampler``: predictions under deletion noise (Bi-RS), at the cost of the few edges that survive it.

With 80 % of the edges and 90 % of the nodes deleted, one edge in 500 survives. The prediction of a node without a
surviving edge is known: it is the one without edges. The survivors form tiny components. Most are single edges, of
which there are only as many as the graph has edges, so each is evaluated once for all samples. The other components of
many samples go through the model side by side in one disjoint union.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.draws import runs, successes
from agnncert_peers.noisy_union import NoisyUnion
from agnncert_peers.pairs import Pairs

# Coins and candidate edges of one batch: a few dozen megabytes of working memory.
_BATCH_WORK = 4_000_000
_LARGEST_BATCH = 1000


class Survivors(NamedTuple):
    """Edges that survive in a number of samples, ascending by sample.

    Attributes:
        sample: The sample of each.
        pair: The pair of each, as ``Pairs`` numbers them.
    """

    sample: IntArray
    pair: IntArray

    def part(self, first: int, last: int) -> "Survivors":
        """Returns the survivors of samples ``first`` to ``last - 1``."""
        begin, end = np.searchsorted(self.sample, [first, last])
        return Survivors(self.sample[begin:end], self.pair[begin:end])


def draw_survivors(rng: np.random.Generator, pairs: Pairs, noise: DeletionNoise, samples: int) -> Survivors:
    """Draws the edges that survive in a number of samples.

    A pair survives if its own coin and those of both its nodes do. Coins of nodes come first; only pairs
    between surviving nodes get a coin at all.
    """
    alive = successes(rng, samples * pairs.num_nodes, 1 - noise.p_node)
    is_alive = np.zeros(samples * pairs.num_nodes, dtype=bool)
    is_alive[alive] = True
    node = alive % pairs.num_nodes
    counts = pairs.first[node + 1] - pairs.first[node]
    pair = runs(pairs.first[node], counts)
    start = np.repeat(alive - node, counts)  # where the sample's coins begin
    candidate = np.flatnonzero(is_alive[start + pairs.high[pair]])
    kept = candidate[successes(rng, len(candidate), 1 - noise.p_edge)]
    return Survivors(start[kept] // pairs.num_nodes, pair[kept])


class DeletionSampler:
    """Draws deletions and counts the predictions of the target nodes.

    Args:
        bound_model: The model, bound to the graph.
        graph: A canonical graph.
        rows: Rows of the target nodes.
        noise: Probabilities of deletion.
        naive: Run the model on the whole graph for every sample, as the method is defined; for comparison.
    """

    def __init__(
        self,
        bound_model: ModelAdapter,
        graph: CanonicalGraph,
        rows: IntArray,
        noise: DeletionNoise,
        naive: bool = False,
    ) -> None:
        self.pairs = Pairs.of(graph)
        self.noise = noise
        self.rows = rows
        self.num_targets = len(rows)
        self.num_classes = bound_model.num_classes
        touched = graph.num_nodes + len(self.pairs) * (1 - noise.p_node)
        self.batch = int(np.clip(_BATCH_WORK / touched, 1, _LARGEST_BATCH))
        self._naive = naive
        self._union = NoisyUnion(bound_model, graph)
        self._target_of = np.full(graph.num_nodes, -1, dtype=np.int64)
        self._target_of[rows] = np.arange(len(rows))
        self._no_edge = self._union.no_edge()
        # Predictions at both ends of every pair that survives alone; -1 where not needed so far.
        self._alone = np.full((len(self.pairs), 2), -1, dtype=np.int64)

    def draw(self, rng: np.random.Generator) -> Survivors:
        """Draws the surviving edges of a whole batch."""
        return draw_survivors(rng, self.pairs, self.noise, self.batch)

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Counts the classes of the samples ``first`` to ``last - 1`` of one batch."""
        survivors = self.draw(rng).part(first, last)
        if self._naive:
            return self._count_naively(survivors, range(first, last))
        return self._count(survivors, last - first)

    def _count_naively(self, survivors: Survivors, samples: range) -> IntArray:
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        everyone = np.arange(self.pairs.num_nodes)
        for sample in samples:
            _, arc = self.pairs.arcs(survivors.part(sample, sample + 1).pair)
            arc = np.sort(arc)
            label = self._union.labels(everyone, self._union.edge_index[:, arc], self._union.values(arc))
            counts[np.arange(self.num_targets), label[self.rows]] += 1
        return counts

    def _count(self, survivors: Survivors, num_samples: int) -> IntArray:
        """Counts classes: every target is predicted as without edges, except in samples where it keeps an edge."""
        pairs = self.pairs
        pair = survivors.pair
        ends_in_graph = np.stack([pairs.low[pair], pairs.high[pair]])
        ends = ends_in_graph + survivors.sample * pairs.num_nodes
        copy, place, degree = np.unique(ends, return_inverse=True, return_counts=True)
        place = place.reshape(ends.shape)
        label = np.full(len(copy), -1, dtype=np.int64)
        alone = (degree[place] == 1).all(axis=0)
        at_a_target = (self._target_of[ends_in_graph] >= 0).any(axis=0)
        wanted = alone & at_a_target
        label[place[:, wanted]] = self._labels_alone(pair[wanted]).T
        self._label_larger(label, copy, place[:, ~alone], pair[~alone])
        return self._counts_of(copy % pairs.num_nodes, label, num_samples)

    def _counts_of(self, node: IntArray, label: IntArray, num_samples: int) -> IntArray:
        """Counts classes from the labels of copies that keep an edge; all others have the label without edges.

        Args:
            node: Which node each copy is of.
            label: Prediction of each copy.
            num_samples: Number of samples.
        """
        counts = np.zeros(self.num_targets * self.num_classes, dtype=np.int64)
        first_class = np.arange(self.num_targets) * self.num_classes
        counts[first_class + self._no_edge[self.rows]] = num_samples
        is_target = self._target_of[node] >= 0
        node = node[is_target]
        label = label[is_target]
        first_class_of_copy = self._target_of[node] * self.num_classes
        counts += np.bincount(first_class_of_copy + label, minlength=len(counts))
        counts -= np.bincount(first_class_of_copy + self._no_edge[node], minlength=len(counts))
        return counts.reshape(self.num_targets, self.num_classes)

    def _labels_alone(self, pair: IntArray) -> IntArray:
        """Returns the predictions at both ends of components that are one pair, shape ``[len(pair), 2]``."""
        new = np.unique(pair[self._alone[pair, 0] < 0])
        if len(new):
            ends = np.stack([self.pairs.low[new], self.pairs.high[new]], axis=1)
            place = np.arange(2 * len(new)).reshape(-1, 2)
            part = np.arange(len(new)).repeat(2)
            self._alone[new] = self._evaluate(ends.ravel(), place.T, new, part).reshape(-1, 2)
        return self._alone[pair]

    def _label_larger(self, label: IntArray, copy: IntArray, place: IntArray, pair: IntArray) -> None:
        """Fills in the predictions of all copies in the given components, where a target is among them."""
        wanted = self._in_component_of_target(copy, place)
        kept = wanted[place[0]]
        place = place[:, kept]
        involved, local = np.unique(place, return_inverse=True)
        if len(involved):
            sample, node = np.divmod(copy[involved], self.pairs.num_nodes)
            label[involved] = self._evaluate(node, local.reshape(place.shape), pair[kept], sample)
        label[label < 0] = 0  # copies in no component of a target, whose label nobody reads

    def _in_component_of_target(self, copy: IntArray, place: IntArray) -> BoolArray:
        """Tells for each copy whether a target is in its component; ``place`` holds the ends of each edge."""
        size = len(copy)
        ones = np.ones(place.shape[1], dtype=np.int8)
        adjacency = coo_matrix((ones, (place[0], place[1])), (size, size))
        _, component = connected_components(adjacency, directed=False)
        is_target = self._target_of[copy % self.pairs.num_nodes] >= 0
        has_target = np.zeros(size + 1, dtype=bool)
        has_target[component[is_target]] = True
        return np.asarray(has_target[component])

    def _evaluate(self, node: IntArray, place: IntArray, pair: IntArray, part: IntArray) -> IntArray:
        """Predicts for all copies in a union; ``part`` ascends, ``place`` holds the ends of each pair."""
        entry, arc = self.pairs.arcs(pair)
        order = np.lexsort([arc, part[place[0, entry]]])  # each part sees its edges in the order of the graph
        entry = entry[order]
        arc = arc[order]
        forward = self._union.edge_index[0, arc] == node[place[0, entry]]
        ends = np.where(forward, place[:, entry], place[::-1, entry])
        return self._union.labels_in_parts(node, ends, arc, part)
