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


Budgets = Callable[[int], Iterable[Budget]]


def one_unit(counts: Counted) -> Budgets:
    """The budgets of a size that is counted in nodes added and deleted, or in edges."""
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
        """Training and validation graphs, both parts with the same weight; raises DatasetError if one is missing.

        The weights within a part are those of the measure, "accuracy" or "balanced".
        """
        parts = [labels.part_rows(data, name).numpy() for name in ("train", "val")]
        rows, y = np.concatenate(parts), graph_classes(data).numpy()
        weight = np.concatenate([target_weights(y[part], measure) / len(parts) for part in parts])
        return cls(GraphSizes.of([data[int(row)] for row in rows]), y[rows], weight)


def size_rule(data: Any, size: int, counts: Counted = "edges", budgets: Budgets | None = None) -> SizeRule:
    """The best classifier by size only for a target perturbation size.

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
    reached = []
    for near in window(size):
        spans = [graphs.sizes.span(counts, budget) for budget in (budgets or one_unit(counts))(near)]
        reached.append((np.min([low for low, _ in spans], axis=0), np.max([high for _, high in spans], axis=0)))
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


def size_alone(study: Study, certificate: Certificate, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Graph task: certified accuracy of the size alone, by size, in the unit of the division; chosen for each size.

    Edges are counted for an edge-centric vote and nodes for a node-centric one, so that one unit of the radius changes
    the count by one. Empty for other divisions, or without a training and a validation part.
    """
    parts = [part_rows(study.ready, name) for name in ("train", "val")]
    counts = certificate.evidence.counted_things()
    if study.task == "node" or counts is None:
        return {}
    if any(rows is None or not len(rows) for rows in parts) or study.chosen.truth is None:
        return {}
    graphs, targets = SizedGraphs.of(study.data), GraphSizes.of([study.data[int(row)] for row in study.targets])

    def certified(size: int) -> float:
        rule = size_rule(graphs, size, counts)
        return measures_by_size(study, targets, rule, one_unit(counts)(size)).accuracy

    return {BY_SIZE: {size: certified(size) for size in sizes}}


def measures_by_size(study: Study, targets: GraphSizes, rule: SizeRule, budgets: Iterable[Budget]) -> Measures:
    """The measures of a rule on the targets of a study, against the worst of some budgets."""
    holds = [rule.withstands(targets, budget) for budget in budgets]
    return measures_of(study, rule.label(targets), np.all(holds, axis=0))
