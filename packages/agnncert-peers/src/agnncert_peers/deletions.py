"""Predictions under deletion noise (Bi-RS), at the cost of the few edges that survive it.

With 80 % of the edges and 90 % of the nodes deleted, one edge in 500 survives. The prediction of a node without a
surviving edge is known: it is the one without edges. The survivors form tiny components. Most are single edges, of
which there are only as many as the graph has edges, so each is evaluated once for all samples. The other components of
many samples go through the model side by side in one disjoint union.

Bi-RS, node-aware bi-smoothing (Lai et al., IEEE S&P 2024), with a sampler and tests that are sound.

In the released code an edge is deleted with the node at one of its ends, but not with the node at the other, and the
test treats dependent events as independent. Both make radii too large. Here a deleted node loses all its edges, and the
test is sound unless the unsound one is asked for.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.votes import EngineName
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.noise import DeletionNoise
from agnncert_peers.sampling import BatchedCalls, Pairs, runs, successes
from agnncert_peers.smoothing import Smoothing

# Coins and candidate edges of one batch: a few dozen megabytes of working memory.
_BATCH_WORK = 4_000_000
_LARGEST_BATCH = 1000


def draw_survivors(
    rng: np.random.Generator, pairs: Pairs, noise: DeletionNoise, samples: int
) -> tuple[IntArray, IntArray]:
    """Edges that survive in a number of samples: the sample and the pair of each, ascending by sample.

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
    return start[kept] // pairs.num_nodes, pair[kept]


class DeletionSampler:
    """Draws deletions and counts the predictions of the target nodes.

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph.
        rows: Rows of the target nodes.
        noise: Probabilities of deletion.
        naive: Run the model on the whole graph for every sample, as the method is defined; for comparison.
    """

    def __init__(
        self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, noise: DeletionNoise, naive: bool = False
    ) -> None:
        self.pairs = Pairs.of(graph)
        self.noise = noise
        self.rows = rows
        self.num_targets, self.num_classes = len(rows), call.num_classes
        touched = graph.num_nodes + len(self.pairs) * (1 - noise.p_node)
        self.batch = int(np.clip(_BATCH_WORK / touched, 1, _LARGEST_BATCH))
        self._naive = naive
        self._calls = BatchedCalls(call, graph)
        self._target_of = np.full(graph.num_nodes, -1, dtype=np.int64)
        self._target_of[rows] = np.arange(len(rows))
        self._no_edge = self._calls.no_edge()
        # Predictions at both ends of every pair that survives alone; -1 where not needed so far.
        self._alone = np.full((len(self.pairs), 2), -1, dtype=np.int64)

    def draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Surviving edges of a whole batch: the sample and the pair of each, ascending by sample."""
        return draw_survivors(rng, self.pairs, self.noise, self.batch)

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Class counts of the samples ``first`` to ``last - 1`` of one batch."""
        sample, pair = self.draw(rng)
        chosen = slice(*np.searchsorted(sample, [first, last]))
        sample, pair = sample[chosen], pair[chosen]
        if self._naive:
            return self._count_naively(sample, pair, range(first, last))
        return self._count(sample, pair, last - first)

    def _count_naively(self, sample: IntArray, pair: IntArray, samples: range) -> IntArray:
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        everyone = np.arange(self.pairs.num_nodes)
        for index in samples:
            here = slice(*np.searchsorted(sample, [index, index + 1]))
            arc = np.sort(self.pairs.arcs(pair[here])[1])
            label = self._calls.labels(everyone, self._calls.edge_index[:, arc], self._calls.values(arc))
            counts[np.arange(self.num_targets), label[self.rows]] += 1
        return counts

    def _count(self, sample: IntArray, pair: IntArray, num_samples: int) -> IntArray:
        """Class counts: every target votes as without edges, except in samples where it keeps an edge."""
        pairs = self.pairs
        ends = np.stack([pairs.low[pair], pairs.high[pair]]) + sample * pairs.num_nodes
        copy, place, degree = np.unique(ends, return_inverse=True, return_counts=True)
        place = place.reshape(ends.shape)
        label = np.full(len(copy), -1, dtype=np.int64)
        alone = (degree[place] == 1).all(axis=0)
        seen = alone & (self._target_of[np.stack([pairs.low[pair], pairs.high[pair]])] >= 0).any(axis=0)
        label[place[:, seen]] = self._labels_alone(pair[seen]).T
        self._label_larger(label, copy, place[:, ~alone], pair[~alone])
        counts = np.zeros(self.num_targets * self.num_classes, dtype=np.int64)
        target = np.arange(self.num_targets) * self.num_classes
        counts[target + self._no_edge[self.rows]] = num_samples
        node = copy % pairs.num_nodes
        owner = self._target_of[node]
        voter = owner >= 0
        owner, node, label = owner[voter] * self.num_classes, node[voter], label[voter]
        counts += np.bincount(owner + label, minlength=len(counts))
        counts -= np.bincount(owner + self._no_edge[node], minlength=len(counts))
        return counts.reshape(self.num_targets, self.num_classes)

    def _labels_alone(self, pair: IntArray) -> IntArray:
        """Predictions at both ends of components that are one pair, shape ``[len(pair), 2]``."""
        new = np.unique(pair[self._alone[pair, 0] < 0])
        if len(new):
            ends = np.stack([self.pairs.low[new], self.pairs.high[new]], axis=1)
            place = np.arange(2 * len(new)).reshape(-1, 2)
            self._alone[new] = self._evaluate(ends.ravel(), place.T, new, np.arange(len(new)).repeat(2)).reshape(-1, 2)
        return self._alone[pair]

    def _label_larger(self, label: IntArray, copy: IntArray, place: IntArray, pair: IntArray) -> None:
        """Fills in the predictions of all copies in the given components, where a target is among them."""
        wanted = self._in_component_of_target(copy, place)
        place, pair = place[:, wanted[place[0]]], pair[wanted[place[0]]]
        involved, local = np.unique(place, return_inverse=True)
        if len(involved):
            sample, node = np.divmod(copy[involved], self.pairs.num_nodes)
            label[involved] = self._evaluate(node, local.reshape(place.shape), pair, sample)
        label[label < 0] = 0  # copies in no component of a target, whose label nobody reads

    def _in_component_of_target(self, copy: IntArray, place: IntArray) -> BoolArray:
        ones, size = np.ones(place.shape[1], dtype=np.int8), len(copy)
        _, component = connected_components(coo_matrix((ones, (place[0], place[1])), (size, size)), directed=False)
        wanted = np.zeros(size + 1, dtype=bool)
        wanted[component[self._target_of[copy % self.pairs.num_nodes] >= 0]] = True
        return np.asarray(wanted[component])

    def _evaluate(self, node: IntArray, place: IntArray, pair: IntArray, part: IntArray) -> IntArray:
        """Predictions of all copies in a union; ``part`` ascends, ``place`` holds the ends of each pair."""
        which, arc = self.pairs.arcs(pair)
        order = np.lexsort([arc, part[place[0, which]]])  # each part sees its edges in the order of the graph
        which, arc = which[order], arc[order]
        forward = self._calls.edge_index[0, arc] == node[place[0, which]]
        ends = np.where(forward, place[:, which], place[::-1, which])
        return self._calls.labels_in_parts(node, ends, arc, part)


@dataclass(frozen=True)
class BiRS(Smoothing):
    """Votes over graphs in which most edges and nodes are deleted; withstands injected nodes.

    Node classification only. Covers nodes injected with any features and a limited number of edges each,
    and nothing else.

    Attributes:
        p_edge: Probability that an edge is deleted on its own.
        p_node: Probability that all edges of a node are deleted; its features stay.
        test: ``"B2"``, ``"B1"`` or ``"sharp"`` (never weaker than either), all sound; or ``"legacy-unsound"``, the
            released test, to compare with published numbers. It certifies labels that can be flipped.
        edges_per_injected: How many edges a node may bring in the unit of the radius. Budgets state their own number.

    Example:
        >>> BiRS(p_edge=0.8, p_node=0.9)
        BiRS(p_edge=0.8, p_node=0.9, test='B2', edges_per_injected=5)
    """

    method: ClassVar[str] = "bi-rs"

    p_edge: float = 0.8
    p_node: float = 0.9
    test: str = "B2"
    edges_per_injected: float = 5

    def noise(self, num_features: int) -> DeletionNoise:
        """The noise; the number of features does not matter to it."""
        return DeletionNoise(self.p_edge, self.p_node, self.test, self.edges_per_injected)

    def drawn(self) -> dict[str, float]:
        """The settings that samples depend on. The test is not one of them: one sample serves all tests."""
        return {"p_edge": self.p_edge, "p_node": self.p_node}

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        pairs = Pairs.of(graph)
        _, pair = draw_survivors(rng, pairs, self.noise(1), 1)
        part = graph.with_edges(torch.from_numpy(np.sort(pairs.arcs(pair)[1])))
        return {"edge_index": part.edge_index, **part.edge_values}

    def _sampler(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> DeletionSampler:
        if call.task == "graph":
            raise SettingsError(
                "BiRS is for node classification: an injected node takes part in the readout of a graph even "
                "when noise has deleted its edges. Pass one graph and target nodes."
            )
        return DeletionSampler(call, graph, rows, self.noise(1), naive)

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        if "nodes" not in report.fit_for:  # an injected node whose edges are all deleted must change no prediction
            raise ModelContractError(str(report))
