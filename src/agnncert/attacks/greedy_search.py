"""The attack that uses the division and the votes, on one target at a time.

``greedy`` tries single edits, each in the subgraphs that it touches. For each of the closest rivals it combines the
edits with the largest gain and votes on the attacked graph. With one subgraph per neighbour, edge or node, every edit
changes another vote, so gains add up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from agnncert.attacks.candidates import AdversarialFeatures, GraphMoves, NodeMoves, UnusedIds, with_ids
from agnncert.attacks.edits import Edit, TriedEdit, VoteQueue, perturbation_of
from agnncert.attacks.problem import AttackResult, Problem, VoteTable, best_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray
from agnncert.graphs.perturbation import Perturbation

TARGETS_AT_ONCE = 64
NUM_RIVALS = 2  # classes that a target is pushed to
MOST_TRIED = 64  # edits of one kind that are tried against one target
MOST_FEATURES = 6


def greedy(
    problem: Problem,
    targets: Any,
    budget: Budget | Sequence[Budget],
    *,
    seed: int = 0,
    features: AdversarialFeatures | None = None,
) -> list[AttackResult]:
    """Attacks each target separately with the edits that gain the most votes.

    Args:
        problem: Model, data and a built-in division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed of the random samples.
        features: Features to use. Defaults to ``AdversarialFeatures.of(problem, seed)``.
    """
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    before = problem.votes(rows)
    if problem.per_neighbour:
        attack: Callable[..., list[AttackResult]] = partial(_greedy_per_neighbour, problem, seed)
    else:
        features = AdversarialFeatures.of(problem, seed) if features is None else features
        moves = NodeMoves(problem, features) if problem.task == "node" else GraphMoves(problem, features, seed)
        attack = _Search(moves).attack
    parts = [slice(start, start + TARGETS_AT_ONCE) for start in range(0, len(rows), TARGETS_AT_ONCE)]
    return [result for part in parts for result in attack(rows[part], before[part], budgets[part])]


class _Search:
    """Attacks several targets at a time, so that the model runs on their edits in one batch."""

    def __init__(self, moves: NodeMoves | GraphMoves) -> None:
        self.problem, self.moves = moves.problem, moves
        self.queue = VoteQueue(moves.problem, moves.features.features)

    def attack(self, rows: IntArray, before: VoteTable, budgets: Sequence[Budget]) -> list[AttackResult]:
        """One result for each target."""
        targets = rows.tolist()
        rivals = [_rivals(self.problem, votes) for votes in before]
        tried = self._try(targets, rivals, budgets)
        plans = [self._plans(*target) for target in zip(targets, tried, before, rivals, budgets, strict=True)]
        first = [(row, changes[0]) for row, changes in zip(targets, plans, strict=True)]
        results = self.problem.results(first, before, "greedy")
        # If the first rival does not win, the second is tried.
        again = [k for k, result in enumerate(results) if not result.succeeded and len(plans[k]) > 1]
        second = self.problem.results([(targets[k], plans[k][1]) for k in again], before[again], "greedy")
        for k, result in zip(again, second, strict=True):
            results[k] = best_of([results[k], result])
        return results

    def _try(
        self, rows: Sequence[int], rivals: Sequence[Sequence[int]], budgets: Sequence[Budget]
    ) -> list[list[TriedEdit]]:
        """Edits of every target with the votes that they lead to."""
        queued = []
        for row, against, budget in zip(rows, rivals, budgets, strict=True):
            subgraphs = self.moves.subgraphs(row)
            queued.append(
                [
                    (edit, {group: self.queue.add(subgraphs, group, row, edit) for group in groups})
                    for edit, groups in self.moves.candidates(row, against, budget)
                ]
            )
        votes = self.queue.cast()
        return [
            [TriedEdit(edit, {group: votes[place] for group, place in places.items()}) for edit, places in edits]
            for edits in queued
        ]

    def _plans(
        self, row: int, tried: Sequence[TriedEdit], before: VoteTable, rivals: Sequence[int], budget: Budget
    ) -> list[Perturbation]:
        """One perturbation for each rival, the most promising first."""
        label, gaps, votes = self.problem.winner(before), self.problem.gaps(before), before.tolist()
        ids = self.problem.ids(row)
        ranked = []
        for rival in rivals:
            usable = with_ids(self.moves, row, tried, votes, label, rival, budget)
            edits, gain = _choose(usable, votes, label, rival, budget)
            edits = self.moves.unused_ids(row).without_gaps(_leave_a_node(edits, len(ids)))
            ranked.append((gain - gaps[rival], perturbation_of(edits, ids, self.moves.features.lists)))
        ranked.sort(key=lambda item: -item[0])
        return [change for _, change in ranked]


def _rivals(problem: Problem, votes: VoteTable) -> list[int]:
    """The classes closest to winning."""
    order = np.argsort(problem.gaps(votes), kind="stable")[:-1]  # the winner comes last
    return order[:NUM_RIVALS].tolist()  # type: ignore[no-any-return]


def _choose(
    tried: Iterable[TriedEdit], before: Sequence[int], label: int, rival: int, budget: Budget
) -> tuple[list[Edit], int]:
    """The edits with the largest gain per unit within the budget, at most one for each vote, and their total gain.

    Edits without gain use up the rest of the budget: several edits together may do more than each alone.
    """
    left = {"target_features": float(budget.target_features)}
    priced = [(attempt.gain(before, label, rival), attempt) for attempt in tried if attempt.votes]
    priced = [(gain, attempt) for gain, attempt in priced if gain >= 0]
    priced.sort(key=lambda item: -item[0] / item[1].edit.units)
    groups_taken, nodes_deleted, nodes_used = set[int](), set[int](), set[int]()
    picked, total = [], 0
    for gain, attempt in priced:
        edit, groups = attempt.edit, attempt.votes.keys()
        if edit.units > left.setdefault(edit.field, getattr(budget, edit.field)) or groups_taken & groups:
            continue
        if nodes_deleted & edit.nodes or nodes_used.intersection(edit.delete_nodes):
            continue
        left[edit.field] -= edit.units
        groups_taken |= groups
        nodes_deleted.update(edit.delete_nodes)
        nodes_used |= edit.nodes
        picked.append(edit)
        total += gain
    return picked, total


def _leave_a_node(edits: list[Edit], num_nodes: int) -> list[Edit]:
    """The edits without so many deletions that no node would be left."""
    deleting = [edit for edit in edits if edit.delete_nodes]
    return [edit for edit in edits if edit not in deleting[num_nodes - 1 :]]


@dataclass(frozen=True)
class Step:
    """One edit: the budget field that it spends, the ids that no other edit may touch, and the change."""

    field: str
    about: frozenset[Id]
    change: dict[str, Any]


def _greedy_per_neighbour(
    problem: Problem, seed: int, rows: IntArray, before: VoteTable, budgets: Sequence[Budget]
) -> list[AttackResult]:
    searches = [_PerNeighbourSearch(problem, seed, *target) for target in zip(rows.tolist(), budgets, strict=True)]
    after = problem.recast([(one.row, Perturbation(**step.change)) for one in searches for step in one.steps])
    plans, first = [], 0
    for one, votes in zip(searches, before, strict=True):
        alone, first = after[first : first + len(one.steps)], first + len(one.steps)
        plans += [(one.row, one.plan(alone, votes, rival)) for rival in _rivals(problem, votes)]
    count = len(plans) // len(rows)  # rivals of each target
    results = problem.results(plans, before.repeat(count, axis=0), "greedy")
    return [best_of(results[start : start + count]) for start in range(0, len(plans), count)]


class _PerNeighbourSearch:
    """The edits of one target, with one subgraph per neighbour, edge or node."""

    def __init__(self, problem: Problem, seed: int, row: int, budget: Budget) -> None:
        self.problem, self.row, self.budget, self.random = problem, row, budget, np.random.default_rng([seed, row])
        self.ids, graph = problem.ids(row), problem.graph_of(row)
        self.target = row if problem.task == "node" else None
        self.target_id = {self.ids[row]} if problem.task == "node" else set()
        arcs = graph.edge_index if self.target is None else graph.edge_index[:, (graph.edge_index == row).any(0)]
        self.pairs = sorted({(min(u, v), max(u, v)) for u, v in arcs.t().tolist()})
        self.joined = {frozenset(pair) for pair in self.pairs}
        features = [10 * graph.x.amax(0), 10 * graph.x.amin(0), -10 * graph.x.amax(0), *graph.x[: MOST_FEATURES - 3]]
        self.features = [row.tolist() for row in features]
        nodes = {u for pair in self.pairs for u in pair} if self.target is not None else range(len(self.ids))
        self.nodes = [u for u in sorted(nodes) if u != self.target]
        self.unused = UnusedIds(graph.node_key, problem.has_ids(row), 4 * MOST_TRIED)
        self.steps = list(self._steps())

    def _steps(self) -> Iterator[Step]:
        """Edits to try separately."""
        for u, v in self._some(self.pairs):
            pair, both = (self.ids[u], self.ids[v]), frozenset((self.ids[u], self.ids[v])) - self.target_id
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
                both = frozenset((self.ids[u], self.ids[v])) - self.target_id
                yield Step("add_edges", both, {"add_edges": [(self.ids[u], self.ids[v])]})
        if self.budget.inject_nodes:
            for features in self.features:
                yield Step("inject_nodes", frozenset(), self._injected(features, self.unused.ids.tolist()[:1]))

    def plan(self, alone: VoteTable, before: VoteTable, rival: int) -> Perturbation:
        """The combination of the edits with the largest gain for a rival."""
        label = self.problem.winner(before)
        gains = (alone[:, rival] - alone[:, label]) - (before[rival] - before[label])
        left = {name: getattr(self.budget, name) for name in {step.field for step in self.steps}}
        taken: set[Id] = set()
        deleted = 0
        merged: dict[str, Any] = {"inject_nodes": {}, "change_features": {}}
        for place in np.argsort(-gains, kind="stable").tolist():
            step = self.steps[place]
            if left[step.field] < 1 or gains[place] < 0 or step.about & taken:
                continue
            if step.field == "delete_nodes" and self.target is None and deleted + 1 >= len(self.ids):
                continue
            number, change = 1, step.change
            if step.field == "inject_nodes":
                number = int(min(left[step.field], len(self.unused.ids)))
                (features,) = step.change["inject_nodes"].values()
                change = self._injected(features, self.unused.ids.tolist()[:number])
            left[step.field] -= number
            taken |= step.about
            deleted += step.field == "delete_nodes"
            for name, value in change.items():
                merged[name] = {**merged[name], **value} if isinstance(value, dict) else [*merged.get(name, []), *value]
        return Perturbation(**merged)

    def _injected(self, features: Sequence[float], ids: Sequence[Id]) -> dict[str, Any]:
        """Injected nodes with these ids, each joined to the target, or to nodes of the graph if edges cast votes."""
        new = {"inject_nodes": {name: features for name in ids}}
        needs_edge = self.target is not None or self.problem.division.family == "edge-centric"
        if not needs_edge or not self.budget.edges_per_injected:
            return new
        ends = [self.row] if self.target is not None else list(range(len(self.ids)))
        ends = ends[: int(min(self.budget.edges_per_injected, len(ends)))]
        return {**new, "add_edges": [(name, self.ids[u]) for name in ids for u in ends]}

    def _free_pairs(self) -> Iterator[tuple[int, int]]:
        size = len(self.ids)
        for v in self._some(range(size)):
            u = self.target if self.target is not None else int(self.random.integers(size))
            if u != v and frozenset((u, v)) not in self.joined:
                yield u, v

    def _some(self, items: Sequence[Any]) -> list[Any]:
        return [items[k] for k in self.random.permutation(len(items))[:MOST_TRIED].tolist()]
