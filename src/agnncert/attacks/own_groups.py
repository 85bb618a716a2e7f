"""The greedy attack where every neighbour, pair or node has a group of its own (``num_groups=math.inf``).

There each edit touches a ballot of its own, so what edits gain adds up: all of them are tried one by one, and those
that gain a rival most are put together, as many of each kind as the budget allows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agnncert.attacks.injected_ids import UnusedIds
from agnncert.attacks.problem import Ballots, Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.divisions import EdgeCentric
from agnncert.graphs.perturbation import Perturbation
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget
from agnncert.proof.ids import Id

MOST_TRIED = 64  # edits of one kind that are tried against one target
MOST_FEATURES = 6


@dataclass(frozen=True)
class Step:
    """One edit: the budget field that it spends, and what it says; ``about`` names what no other edit may touch."""

    field: str
    about: frozenset[Id]
    change: dict[str, Any]


def greedy_own_groups(
    problem: Problem, rows: IntArray, budgets: Sequence[Budget], kind: str, seed: int, num_rivals: int
) -> list[AttackResult]:
    """Attacks every target by itself; arguments as those of ``greedy``."""
    results = []
    for row, ballots, budget in zip(rows.tolist(), problem.votes(rows), budgets, strict=True):
        search = _Search(problem, row, budget, np.random.default_rng([seed, row]))
        steps = list(search.steps())
        alone = problem.recast([(row, Perturbation(**step.change)) for step in steps])
        rivals = np.argsort(problem.gaps(ballots), kind="stable")[:-1][:num_rivals].tolist()
        plans = [(row, search.plan(steps, alone, ballots, rival)) for rival in rivals]
        results.append(best_of(problem.results(plans, np.stack([ballots] * len(plans)), kind)))
    return results


class _Search:
    """What can be done to one target."""

    def __init__(self, problem: Problem, row: int, budget: Budget, random: np.random.Generator) -> None:
        self.problem, self.row, self.budget, self.random = problem, row, budget, random
        self.ids, graph = problem.ids(row), problem.graph_of(row)
        self.target = row if problem.task == "node" else None
        arcs = graph.edge_index.t().tolist()
        at_target = [pair for pair in {(min(u, v), max(u, v)) for u, v in arcs} if self.target in (None, *pair)]
        self.pairs = sorted(at_target)
        self.joined = {frozenset(arc) for arc in arcs}
        features = [10 * graph.x.amax(0), 10 * graph.x.amin(0), -10 * graph.x.amax(0), *graph.x[: MOST_FEATURES - 3]]
        self.features = [row.tolist() for row in features]
        nodes = {u for pair in self.pairs for u in pair} if self.target is not None else range(len(self.ids))
        self.nodes = [u for u in sorted(nodes) if u != self.target]
        self.unused = UnusedIds(graph.node_key, problem.has_ids(row), 4 * MOST_TRIED)

    def steps(self) -> Iterator[Step]:
        """Edits to try, each by itself."""
        for u, v in self._some(self.pairs):
            pair, both = (self.ids[u], self.ids[v]), frozenset((self.ids[u], self.ids[v])) - {self._name()}
            if self.budget.delete_edges:
                yield Step("delete_edges", both, {"delete_edges": [pair]})
            for value in self.problem.extreme_edge_values() if self.budget.change_edges else []:
                yield Step("change_edges", both, {"change_edges": [(*pair, value)]})
        for u in self._some(self.nodes):
            name = self.ids[u]
            if self.budget.delete_nodes and (self.target is not None or len(self.ids) > 1):
                yield Step("delete_nodes", frozenset([name]), {"delete_nodes": [name]})
            for features in self.features if self.budget.change_features else []:
                yield Step("change_features", frozenset([name]), {"change_features": {name: features}})
        if self.budget.add_edges:
            for u, v in self._free_pairs():
                both = frozenset((self.ids[u], self.ids[v])) - {self._name()}
                yield Step("add_edges", both, {"add_edges": [(self.ids[u], self.ids[v])]})
        if self.budget.inject_nodes:
            for features in self.features:
                yield Step("inject_nodes", frozenset(), self._injected(features, self.unused.ids.tolist()[:1]))

    def plan(self, steps: Sequence[Step], alone: Ballots, before: Ballots, rival: int) -> Perturbation:
        """The edits that gain a rival most, put together."""
        label = self.problem.winner(before)
        gains = (alone[:, rival] - alone[:, label]) - (before[rival] - before[label])
        left = {name: getattr(self.budget, name) for name in {step.field for step in steps}}
        taken: set[Id] = set()
        deleted = 0
        merged: dict[str, Any] = {"inject_nodes": {}, "change_features": {}}
        for place in np.argsort(-gains, kind="stable").tolist():
            step = steps[place]
            if left[step.field] < 1 or gains[place] < 0 or step.about & taken:
                continue
            if step.field == "delete_nodes" and self.target is None and deleted + 1 >= len(self.ids):
                continue
            number = int(min(left[step.field], len(self.unused.ids))) if step.field == "inject_nodes" else 1
            left[step.field] -= number
            taken |= step.about
            deleted += step.field == "delete_nodes"
            again = step.field == "inject_nodes"
            change = (
                self._injected(self._features_of(step), self.unused.ids.tolist()[:number]) if again else step.change
            )
            for name, value in change.items():
                merged[name] = {**merged[name], **value} if isinstance(value, dict) else [*merged.get(name, []), *value]
        return Perturbation(**merged)

    def _injected(self, features: Sequence[float], ids: Sequence[Id]) -> dict[str, Any]:
        """Nodes under these ids, each joined to the target, or to a node of the graph if edges count there."""
        new = {"inject_nodes": {name: features for name in ids}}
        needs_edge = self.target is not None or isinstance(self.problem.division, EdgeCentric)
        if not needs_edge or not self.budget.edges_per_injected:
            return new
        ends = [self.row] if self.target is not None else list(range(len(self.ids)))
        ends = ends[: int(min(self.budget.edges_per_injected, len(ends)))]
        return {**new, "add_edges": [(name, self.ids[u]) for name in ids for u in ends]}

    def _features_of(self, step: Step) -> Sequence[float]:
        (features,) = step.change["inject_nodes"].values()
        return features  # type: ignore[no-any-return]

    def _free_pairs(self) -> Iterator[tuple[int, int]]:
        size = len(self.ids)
        for v in self._some(range(size)):
            u = self.target if self.target is not None else int(self.random.integers(size))
            if u != v and frozenset((u, v)) not in self.joined:
                yield u, v

    def _some(self, items: Sequence[Any]) -> list[Any]:
        return [items[k] for k in self.random.permutation(len(items))[:MOST_TRIED].tolist()]

    def _name(self) -> Id | None:
        return None if self.target is None else self.ids[self.target]
