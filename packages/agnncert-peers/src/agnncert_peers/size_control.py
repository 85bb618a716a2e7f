"""A control for graphs: classifiers that look at the size only, and what they are certified against.

A graph with more than t nodes (or edges) is of one class, all others are of another, so only that number
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
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError
from agnncert.graphs.labels import graph_classes
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import Measures, target_weights
from agnncert.report.summary import BY_SIZE
from agnncert.study import Study, measures_of, part_rows
from agnncert.training import labels
from agnncert.training.rule_search import longest_middle, window

Counted = Literal["nodes", "edges"]
SIZE_ONLY: dict[Counted, str] = {"nodes": "size only, nodes", "edges": "size only, edges"}


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
    def of(cls, graphs: Sequence[Data]) -> "GraphSizes":
        """Counts nodes and edges of some graphs, without directions, copies and self-loops."""
        degrees = tuple(_degrees(graph) for graph in graphs)
        nodes = np.array([len(of_graph) for of_graph in degrees], dtype=np.int64)
        edges = np.array([of_graph.sum() // 2 for of_graph in degrees], dtype=np.int64)
        return cls(nodes, edges, degrees)

    def counted(self, counts: Counted) -> IntArray:
        """Returns the number of nodes, or of edges, shape ``[n]``."""
        return self.nodes if counts == "nodes" else self.edges

    def span(self, counts: Counted, budget: Budget) -> tuple[FloatArray, FloatArray]:
        """Returns the smallest and the largest number that an attacker can reach, each of shape ``[n]``."""
        nodes = self.nodes.astype(np.float64)
        edges = self.edges.astype(np.float64)
        if counts == "nodes":
            return nodes - np.minimum(budget.delete_nodes, nodes), nodes + budget.inject_nodes
        lost = np.full(len(edges), float(budget.delete_edges))
        if budget.delete_nodes:
            lost += [degree[: int(min(budget.delete_nodes, len(degree)))].sum() for degree in self.degrees]
        free = nodes * (nodes - 1) / 2 - edges
        most = edges + np.minimum(budget.add_edges, free) + self._brought(budget)
        return edges - np.minimum(lost, edges), np.asarray(most)

    def _brought(self, budget: Budget) -> FloatArray:
        """Returns the largest number of edges of injected nodes."""
        new = budget.inject_nodes
        if not new:
            return np.zeros(len(self.nodes))
        if math.isinf(new):
            return np.full(len(self.nodes), math.inf if budget.edges_per_injected else 0.0)
        new_pairs = new * self.nodes + new * (new - 1) / 2
        return np.asarray(np.minimum(float(budget.injected_edges), new_pairs))


def _degrees(graph: Data) -> IntArray:
    """Returns the number of different neighbours of each node, largest first."""
    num_nodes = int(graph.num_nodes)
    low = graph.edge_index.min(dim=0).values
    high = graph.edge_index.max(dim=0).values
    pairs = torch.unique((low * num_nodes + high)[low < high])
    ends = torch.cat([torch.div(pairs, num_nodes, rounding_mode="floor"), pairs % num_nodes])
    degree = torch.bincount(ends, minlength=num_nodes)
    return np.asarray(degree.sort(descending=True).values.numpy())


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
        """Returns the class of each graph, shape ``[n]``."""
        return np.where(sizes.counted(self.counts) <= self.threshold, self.low, self.high)

    def withstands(self, sizes: GraphSizes, budget: Budget) -> BoolArray:
        """Tells whether no attack within a budget changes the class of each graph, shape ``[n]``."""
        least, most = sizes.span(self.counts, budget)
        return np.asarray((self.low == self.high) | (most <= self.threshold) | (least > self.threshold))


Budgets = Callable[[int], Iterable[Budget]]


def one_unit(counts: Counted) -> Budgets:
    """Returns the budgets of a size that is counted in nodes added and deleted, or in edges."""
    if counts == "nodes":
        return lambda size: (Budget(inject_nodes=size), Budget(delete_nodes=size))
    return lambda size: (Budget(add_edges=size), Budget(delete_edges=size))


@dataclass(frozen=True)
class SizedGraphs:
    """Graphs on which a rule is chosen: their sizes, classes and weights, which sum to 1."""

    sizes: GraphSizes
    truth: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, data: Any, measure: str = "accuracy") -> "SizedGraphs":
        """Takes training and validation graphs, both parts with the same weight.

        The weights within a part are those of the measure, "accuracy" or "balanced".

        Raises:
            DatasetError: One of the parts is missing.
        """
        parts = [labels.part_rows(data, name).numpy() for name in ("train", "val")]
        rows = np.concatenate(parts)
        y = graph_classes(data).numpy()
        weight = np.concatenate([target_weights(y[part], measure) / len(parts) for part in parts])
        return cls(GraphSizes.of([data[int(row)] for row in rows]), y[rows], weight)


def size_rule(data: Any, size: int, counts: Counted = "edges", budgets: Budgets | None = None) -> SizeRule:
    """Chooses the best classifier by size only for a target perturbation size.

    It is chosen on training and validation graphs, both with the same weight, by its mean certified accuracy at the
    size and the two next to it; ties go to a constant.

    Args:
        data: A ``GraphSet`` with ``train`` and ``val``, or what ``SizedGraphs.of`` made of it.
        size: The target perturbation size.
        counts: What is counted, ``"nodes"`` or ``"edges"``.
        budgets: The attacks of a size, a function such as ``Threat.budgets``. Defaults to ``size`` nodes, or edges,
            added or deleted.

    Raises:
        DatasetError: A part is missing.
        SettingsError: ``counts`` is something else.

    Example: ``rule = size_rule(graphs, size=5)``, then ``rule.withstands(GraphSizes.of(some), Budget(add_edges=5))``.
    """
    if counts not in SIZE_ONLY:
        raise SettingsError(f'counts="{counts}": expected "nodes" or "edges".')
    graphs = data if isinstance(data, SizedGraphs) else SizedGraphs.of(data)
    budgets_of_size = budgets or one_unit(counts)
    sizes = window(size)
    least = []
    most = []
    for near in sizes:
        spans = [graphs.sizes.span(counts, budget) for budget in budgets_of_size(near)]
        least.append(np.min([low for low, _ in spans], axis=0))
        most.append(np.max([high for _, high in spans], axis=0))
    intervals = _Intervals(
        least=np.concatenate(least),
        most=np.concatenate(most),
        truth=np.tile(graphs.truth, len(sizes)),
        weight=np.tile(graphs.weight, len(sizes)) / len(sizes),
    )
    return _best_rule(counts, intervals.labelled())


@dataclass(frozen=True)
class _Intervals:
    """Numbers that an attacker can reach, for graphs of a known class.

    Attributes:
        least: The smallest number, shape ``[n]``.
        most: The largest number, shape ``[n]``.
        truth: The class, -1 if it is unknown, shape ``[n]``.
        weight: The weight, shape ``[n]``.
    """

    least: FloatArray
    most: FloatArray
    truth: IntArray
    weight: FloatArray

    def labelled(self) -> "_Intervals":
        """Returns those with a class."""
        return self.part(self.truth >= 0)

    def part(self, mask: BoolArray) -> "_Intervals":
        """Returns some of them."""
        return _Intervals(self.least[mask], self.most[mask], self.truth[mask], self.weight[mask])


def _best_rule(counts: Counted, intervals: _Intervals) -> SizeRule:
    """Finds the rule with the largest certified weight: correct, and both ends on one side of the threshold."""
    truth = intervals.truth
    weight = intervals.weight
    num_classes = int(truth.max(initial=0)) + 1
    ends = np.concatenate([intervals.most, intervals.least - 1])
    steps = np.unique(ends[np.isfinite(ends)]).astype(np.int64)
    if not len(steps):
        steps = np.zeros(1, dtype=np.int64)
    below = np.zeros((num_classes, len(steps)))
    above = np.zeros((num_classes, len(steps)))
    for label in range(num_classes):
        of_label = intervals.part(truth == label)
        below[label] = _weight_up_to(of_label.most, of_label.weight, steps)
        above[label] = of_label.weight.sum() - _weight_up_to(of_label.least, of_label.weight, steps)
    score = below.max(axis=0) + above.max(axis=0)
    total = np.bincount(truth, weight, minlength=num_classes)
    if score.max() <= total.max() + 1e-12:
        constant = int(total.argmax())
        return SizeRule(counts, 0, constant, constant, float(total.max()))
    threshold = longest_middle(steps, score)
    place = int(np.searchsorted(steps, threshold, side="right")) - 1
    low = int(below[:, place].argmax())
    high = int(above[:, place].argmax())
    return SizeRule(counts, threshold, low, high, float(score[place]))


def _weight_up_to(numbers: FloatArray, weight: FloatArray, steps: IntArray) -> FloatArray:
    """Returns the total weight of the numbers up to each step."""
    order = np.argsort(numbers, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(summed[np.searchsorted(numbers[order], steps, side="right")])


def size_alone(study: Study, certificate: Certificate, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Computes the certified accuracy of the size alone (graph task), chosen for each size of the attack.

    Edges are counted for an edge-centric vote and nodes for a node-centric one, so that one unit of the radius changes
    the count by one. The answer is empty for other divisions, or without a training and a validation part.
    """
    parts = [part_rows(study.ready, name) for name in ("train", "val")]
    counts = certificate.evidence.counted_things()
    if study.task == "node" or counts is None:
        return {}
    if any(rows is None or not len(rows) for rows in parts) or study.chosen.truth is None:
        return {}
    graphs = SizedGraphs.of(study.data)
    targets = GraphSizes.of([study.data[int(row)] for row in study.targets])

    def certified(size: int) -> float:
        rule = size_rule(graphs, size, counts)
        return measures_by_size(study, targets, rule, one_unit(counts)(size)).accuracy

    return {BY_SIZE: {size: certified(size) for size in sizes}}


def measures_by_size(study: Study, targets: GraphSizes, rule: SizeRule, budgets: Iterable[Budget]) -> Measures:
    """Returns the measures of a rule on the targets of a study, against the worst of some budgets."""
    holds = [rule.withstands(targets, budget) for budget in budgets]
    return measures_of(study, rule.label(targets), np.all(holds, axis=0))
