"""Controls: simple classifiers with certificates, to which defences are compared.

The *majority class* is a constant: no attack changes it. A *graph-free* model and the *prediction without edges* depend
on neither edges nor other nodes. This file proves two controls for graphs:

**Size only.** A graph with more than t nodes (or edges) is of one class, all others are of another, so only that number
matters. Let n nodes be joined in m pairs. Let the budget allow to join e+ pairs, to separate e-, to inject A nodes with
up to tau edges each, and to delete d nodes.

    nodes    from  n - min(d, n)                      to  n + A
    edges    from  m - min(m, e- + D(d))              to  m + min(e+, n(n-1)/2 - m) + min(A tau, A n + A(A-1)/2)

D(d) is the sum of the d largest degrees. *Proof.* Nodes: only injecting and deleting changes their number, each by one.
Edges: a pair is gained by joining old nodes, of which n(n-1)/2 - m pairs are not joined yet, or at an injected node;
each of these pairs is paid for by one of its injected ends, so there are at most A tau of them, and no more than there
are such pairs. Both bounds are reached: every injected node joins old nodes first, and then the next tau - n injected
ones in a circle. A pair is lost by separating it or with one of its ends, d of which have at most D(d) edges. Values,
copies and features are not counted. The label is monotone in the number, so it holds for all attacks if and only if it
is the same at both ends of the interval. This is exact, except that D(d) counts edges between deleted nodes twice.

**Bag of nodes.** Each node votes by its own features, with a prior: the division ``PerNeighbour()`` of a graph.
Its proof is that of ``proof.own_groups.per_neighbour_graph``; edges cost nothing.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.comparison.threat import BAG_OF_NODES, GRAPH_FREE, MAJORITY, NO_EDGES, UNDEFENDED
from agnncert.errors import SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import graph_classes
from agnncert.training.rule_search import longest_middle, window
from agnncert.training.setup import part_rows

Counted = Literal["nodes", "edges"]
SIZE_ONLY: dict[Counted, str] = {"nodes": "size only, nodes", "edges": "size only, edges"}
# What each control is certified against.
_OWN = "reads only the target's own features, so only a change of these can alter it"
ABOUT: dict[str, dict[Task, str]] = {
    UNDEFENDED: dict.fromkeys(("node", "graph"), "nothing is proved about it"),
    GRAPH_FREE: {
        "node": _OWN,
        "graph": "reads all nodes and no edges: edges cannot alter it, and about changes of nodes nothing is proved",
    },
    MAJORITY: dict.fromkeys(("node", "graph"), "a constant: nothing can alter it"),
    NO_EDGES: {"node": _OWN},
    SIZE_ONLY["nodes"]: {"graph": "counts nodes: each that is injected or deleted moves it by one, nothing else does"},
    SIZE_ONLY["edges"]: {
        "graph": "counts edges: each that is added or deleted moves it by one, a node by as many as it has; features "
        "do not"
    },
    BAG_OF_NODES: {
        "graph": "each node votes by its own features: one that is injected, deleted or altered costs its vote; edges "
        "cost nothing"
    },
}


@dataclass(frozen=True)
class GraphSizes:
    """Sizes of ``n`` graphs.

    Attributes:
        nodes: Number of nodes, shape ``[n]``.
        edges: Number of pairs of different nodes that are joined, shape ``[n]``.
        degrees: The degrees of each graph, largest first.
    """

    nodes: IntArray
    edges: IntArray
    degrees: tuple[IntArray, ...]

    @classmethod
    def of(cls, graphs: Sequence[Any]) -> "GraphSizes":
        """The sizes of some graphs, without directions, copies and self-loops."""
        nodes, edges, degrees = [], [], []
        for graph in graphs:
            low, high = graph.edge_index.min(dim=0).values, graph.edge_index.max(dim=0).values
            pairs = torch.unique((low * graph.num_nodes + high)[low < high])
            ends = torch.cat([torch.div(pairs, graph.num_nodes, rounding_mode="floor"), pairs % graph.num_nodes])
            nodes.append(int(graph.num_nodes))
            edges.append(len(pairs))
            degrees.append(torch.bincount(ends, minlength=int(graph.num_nodes)).sort(descending=True).values.numpy())
        return cls(np.array(nodes, dtype=np.int64), np.array(edges, dtype=np.int64), tuple(degrees))

    def counted(self, counts: Counted) -> IntArray:
        """The number of nodes, or of edges, shape ``[n]``."""
        return self.nodes if counts == "nodes" else self.edges

    def span(self, counts: Counted, budget: Budget) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest number that an attacker can reach, each of shape ``[n]``."""
        nodes, edges = self.nodes.astype(np.float64), self.edges.astype(np.float64)
        if counts == "nodes":
            return nodes - np.minimum(budget.delete_nodes, nodes), nodes + budget.inject_nodes
        lost = np.full(len(edges), float(budget.delete_edges))
        if budget.delete_nodes:
            lost += [degree[: int(min(budget.delete_nodes, len(degree)))].sum() for degree in self.degrees]
        free = nodes * (nodes - 1) / 2 - edges
        most = edges + np.minimum(budget.add_edges, free) + self._brought(budget)
        return edges - np.minimum(lost, edges), np.asarray(most)

    def _brought(self, budget: Budget) -> FloatArray:
        """The largest number of edges of injected nodes."""
        new = budget.inject_nodes
        if not new:
            return np.zeros(len(self.nodes))
        if math.isinf(new):
            return np.full(len(self.nodes), math.inf if budget.edges_per_injected else 0.0)
        return np.asarray(np.minimum(float(budget.injected_edges), new * self.nodes + new * (new - 1) / 2))


@dataclass(frozen=True)
class SizeRule:
    """A classifier by size only.

    Attributes:
        counts: What is counted, ``"nodes"`` or ``"edges"``.
        threshold: The largest number of the class ``low``.
        low: Class of graphs up to the threshold.
        high: Class of larger graphs; equal to ``low`` for a constant.
        score: Mean certified accuracy on the graphs, and at the sizes, for which it was chosen.
    """

    counts: Counted
    threshold: int
    low: int
    high: int
    score: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"always {self.low}"
        return f"{self.low} up to {self.threshold} {self.counts}, else {self.high}"

    def label(self, sizes: GraphSizes) -> IntArray:
        """Class of each graph, shape ``[n]``."""
        return np.where(sizes.counted(self.counts) <= self.threshold, self.low, self.high)

    def withstands(self, sizes: GraphSizes, budget: Budget) -> BoolArray:
        """Whether no attack within a budget changes the class of each graph, shape ``[n]``."""
        least, most = sizes.span(self.counts, budget)
        return np.asarray((self.low == self.high) | (most <= self.threshold) | (least > self.threshold))

    def radius(self, sizes: GraphSizes) -> FloatArray:
        """How many nodes or edges may be added or deleted, shape ``[n]``; ``inf`` for a constant.

        It compares with the radius of an edge-centric vote if edges are counted, and of a node-centric one if nodes
        are. It does not use that a complete graph has no room for another edge.
        """
        number = sizes.counted(self.counts)
        if self.low == self.high:
            return np.full(len(number), math.inf)
        return np.where(number <= self.threshold, self.threshold - number, number - self.threshold - 1).astype(
            np.float64
        )

    def certified_accuracy(self, graphs: Sequence[Any], truth: Any, sizes: Sequence[int]) -> FloatArray:
        """Share of correctly classified graphs whose radius is at least each size, shape ``[len(sizes)]``."""
        measured = GraphSizes.of(graphs)
        right, radius = self.label(measured) == np.asarray(truth), self.radius(measured)
        return np.array([float((right & (radius >= size)).mean()) for size in sizes])


Spans = Callable[[GraphSizes, Counted, int], tuple[FloatArray, FloatArray]]


def by_radius(sizes: GraphSizes, counts: Counted, size: int) -> tuple[FloatArray, FloatArray]:
    """The interval of :meth:`SizeRule.radius`."""
    number = sizes.counted(counts).astype(np.float64)
    return number - size, number + size


def by_budgets(budgets: Callable[[int], Iterable[Budget]]) -> Spans:
    """The interval that all budgets of a size reach; ``budgets`` is a function such as ``Threat.budgets``."""

    def spans(sizes: GraphSizes, counts: Counted, size: int) -> tuple[FloatArray, FloatArray]:
        reached = [sizes.span(counts, budget) for budget in budgets(size)]
        return np.min([low for low, _ in reached], axis=0), np.max([high for _, high in reached], axis=0)

    return spans


@dataclass(frozen=True)
class SizedGraphs:
    """Graphs on which a rule is chosen: their sizes, classes and weights, which sum to 1."""

    sizes: GraphSizes
    truth: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, data: Any) -> "SizedGraphs":
        """Training and validation graphs, both parts with the same weight; raises DatasetError if one is missing."""
        parts = [part_rows(data, name).numpy() for name in ("train", "val")]
        rows = np.concatenate(parts)
        weight = np.concatenate([np.full(len(part), 1 / len(part) / len(parts)) for part in parts])
        return cls(GraphSizes.of([data[int(row)] for row in rows]), graph_classes(data).numpy()[rows], weight)


def size_rule(data: Any, size: int, counts: Counted = "edges", spans: Spans = by_radius) -> SizeRule:
    """The best classifier by size only for a target perturbation size.

    It is chosen on training and validation graphs, both with the same weight, by its mean certified accuracy at the
    size and the two next to it; ties go to a constant.

    Args:
        data: A ``GraphSet`` with ``train`` and ``val``, or what ``SizedGraphs.of`` made of it.
        size: The target perturbation size.
        counts: What is counted, ``"nodes"`` or ``"edges"``.
        spans: The interval of numbers that an attack of a size reaches. Defaults to plus and minus ``size``.

    Raises:
        DatasetError: A part is missing.
        SettingsError: ``counts`` is something else.

    Example: ``rule = size_rule(graphs, size=5)``, then ``rule.certified_accuracy(some, truth, sizes=[0, 5])``.
    """
    if counts not in SIZE_ONLY:
        raise SettingsError(f'counts="{counts}": expected "nodes" or "edges".')
    graphs = data if isinstance(data, SizedGraphs) else SizedGraphs.of(data)
    reached = [spans(graphs.sizes, counts, near) for near in window(size)]
    least, most = (np.concatenate(ends) for ends in zip(*reached, strict=True))
    repeated = np.tile(graphs.truth, len(reached)), np.tile(graphs.weight, len(reached)) / len(reached)
    return _best_rule(counts, least, most, *repeated)


def _best_rule(counts: Counted, least: FloatArray, most: FloatArray, truth: IntArray, weight: FloatArray) -> SizeRule:
    """The rule with the largest certified weight: correct, and both ends on one side of the threshold."""
    known = truth >= 0
    least, most, truth, weight = least[known], most[known], truth[known], weight[known]
    num_classes = int(truth.max(initial=0)) + 1
    ends = np.concatenate([most, least - 1])
    steps = np.unique(ends[np.isfinite(ends)]).astype(np.int64)
    if not len(steps):
        steps = np.zeros(1, dtype=np.int64)
    below, above = np.zeros((2, num_classes, len(steps)))
    for label in range(num_classes):
        own = truth == label
        below[label] = _weight_up_to(most[own], weight[own], steps)
        above[label] = weight[own].sum() - _weight_up_to(least[own], weight[own], steps)
    score = below.max(axis=0) + above.max(axis=0)
    total = np.bincount(truth, weight, minlength=num_classes)
    if score.max() <= total.max() + 1e-12:
        constant = int(total.argmax())
        return SizeRule(counts, 0, constant, constant, float(total.max()))
    threshold = longest_middle(steps, score)
    place = int(np.searchsorted(steps, threshold, side="right")) - 1
    low, high = int(below[:, place].argmax()), int(above[:, place].argmax())
    return SizeRule(counts, threshold, low, high, float(score[place]))


def _weight_up_to(numbers: FloatArray, weight: FloatArray, steps: IntArray) -> FloatArray:
    """Total weight of the numbers up to each step."""
    order = np.argsort(numbers, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(summed[np.searchsorted(numbers[order], steps, side="right")])
