"""The greedy attack: knows the division and the votes, and picks the edits that move the most ballots to a rival.

For each of the closest rivals of a target it tries edits one by one, each in the subgraphs that it touches, puts
together those with the largest gain, and votes on the attacked graph.

The greedy attack where every neighbour, pair or node has a group of its own (``num_groups=math.inf``).

There each edit touches a ballot of its own, so what edits gain adds up: all of them are tried one by one, and those
that gain a rival most are put together, as many of each kind as the budget allows.

Hubs: injected nodes joined to as many targets as the budget allows. One attacked graph, many targets.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from agnncert.attacks.candidates import AdversarialFeatures, GraphMoves, NodeMoves, UnusedIds, with_ids
from agnncert.attacks.edits import BallotQueue, Edit, TriedEdit, perturbation_of
from agnncert.attacks.problem import Ballots, Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.errors import BudgetError, SettingsError, did_you_mean
from agnncert.graphs.perturbation import Perturbation

TARGETS_AT_ONCE = 64

# Budget fields that attacks named after one kind of change may use; "greedy" may use all.
FIELDS: dict[str, tuple[str, ...]] = {
    "injection": ("inject_nodes", "edges_per_injected"),
    "deletions": ("delete_edges", "delete_nodes"),
    "features": ("change_features", "target_features"),
}


def greedy(
    problem: Problem,
    targets: Any,
    budget: Budget | Sequence[Budget],
    *,
    kind: str = "greedy",
    seed: int = 0,
    num_rivals: int = 2,
    features: AdversarialFeatures | None = None,
) -> list[AttackResult]:
    """Attacks every target by itself with the edits that gain the most ballots.

    Args:
        problem: Model, data and division; the division must be a built-in one.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        kind: "greedy", or "injection", "deletions", "features" to use only that part of the budget.
        seed: Seed of what is sampled.
        num_rivals: How many other classes to push to.
        features: Features to use; made anew when not given.
    """
    if kind != "greedy" and kind not in FIELDS:
        raise SettingsError(f'unknown attack "{kind}": {did_you_mean(str(kind), ["greedy", *FIELDS])}')
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    if kind in FIELDS:
        budgets = [Budget(**{name: getattr(allowed, name) for name in FIELDS[kind]}) for allowed in budgets]
    if problem.own_groups:
        return greedy_per_neighbour(problem, rows, budgets, kind, seed, num_rivals)
    before = problem.votes(rows)
    features = AdversarialFeatures.of(problem, seed) if features is None else features
    moves = NodeMoves(problem, features) if problem.task == "node" else GraphMoves(problem, features, seed)
    search = _Search(moves, kind, num_rivals)
    results = []
    for start in range(0, len(rows), TARGETS_AT_ONCE):
        part = slice(start, start + TARGETS_AT_ONCE)
        results += search.attack(rows[part], before[part], budgets[part])
    return results


class _Search:
    """Attacks some targets at a time, so that their edits are tried side by side."""

    def __init__(self, moves: NodeMoves | GraphMoves, kind: str, num_rivals: int) -> None:
        self.problem, self.moves, self.kind, self.num_rivals = moves.problem, moves, kind, num_rivals
        self.queue = BallotQueue(moves.problem, moves.features.features)

    def attack(self, rows: IntArray, before: Ballots, budgets: Sequence[Budget]) -> list[AttackResult]:
        """One result for each target."""
        targets = rows.tolist()
        rivals = [self._rivals(ballots) for ballots in before]
        tried = self._try(targets, rivals, budgets)
        plans = [self._plans(*target) for target in zip(targets, tried, before, rivals, budgets, strict=True)]
        first = [(row, changes[0]) for row, changes in zip(targets, plans, strict=True)]
        results = self.problem.results(first, before, self.kind)
        # Where the first rival was not elected, the second is tried.
        again = [k for k, result in enumerate(results) if not result.succeeded and len(plans[k]) > 1]
        second = self.problem.results([(targets[k], plans[k][1]) for k in again], before[again], self.kind)
        for k, result in zip(again, second, strict=True):
            results[k] = best_of([results[k], result])
        return results

    def _rivals(self, ballots: Ballots) -> list[int]:
        """The classes closest to winning."""
        order = np.argsort(self.problem.gaps(ballots), kind="stable")[:-1]  # the winner comes last
        return order[: self.num_rivals].tolist()  # type: ignore[no-any-return]

    def _try(
        self, rows: Sequence[int], rivals: Sequence[Sequence[int]], budgets: Sequence[Budget]
    ) -> list[list[TriedEdit]]:
        """Edits of every target with the ballots that they lead to."""
        queued = []
        for row, against, budget in zip(rows, rivals, budgets, strict=True):
            subgraphs = self.moves.subgraphs(row)
            queued.append(
                [
                    (edit, {group: self.queue.add(subgraphs, group, row, edit) for group in groups})
                    for edit, groups in self.moves.candidates(row, against, budget)
                ]
            )
        ballots = self.queue.cast().tolist()
        return [
            [TriedEdit(edit, {group: ballots[place] for group, place in places.items()}) for edit, places in edits]
            for edits in queued
        ]

    def _plans(
        self, row: int, tried: Sequence[TriedEdit], before: Ballots, rivals: Sequence[int], budget: Budget
    ) -> list[Perturbation]:
        """One perturbation for each rival, the most promising first."""
        label, gaps, ballots = self.problem.winner(before), self.problem.gaps(before), before.tolist()
        ids = self.problem.ids(row)
        ranked = []
        for rival in rivals:
            usable = with_ids(self.moves, row, tried, ballots, label, rival, budget)
            edits, gain = _choose(usable, ballots, label, rival, budget)
            edits = self.moves.unused_ids(row).without_gaps(_leave_a_node(edits, len(ids)))
            ranked.append((gain - gaps[rival], perturbation_of(edits, ids, self.moves.features.lists)))
        ranked.sort(key=lambda item: -item[0])
        return [change for _, change in ranked]


def _choose(
    tried: Iterable[TriedEdit], before: Sequence[int], label: int, rival: int, budget: Budget
) -> tuple[list[Edit], int]:
    """The edits with the largest gain per unit, at most one for each ballot, until the budget is spent.

    Edits without gain fill up the budget: what several edits do together may differ from what each does alone.

    Returns:
        The edits, and their gain added up.
    """
    left = {"target_features": float(budget.target_features)}
    priced = [(attempt.gain(before, label, rival), attempt) for attempt in tried if attempt.ballots]
    priced = [(gain, attempt) for gain, attempt in priced if gain >= 0]
    priced.sort(key=lambda item: -item[0] / item[1].edit.units)
    groups_taken: set[int] = set()
    nodes_deleted: set[int] = set()
    nodes_used: set[int] = set()
    chosen, total = [], 0
    for gain, attempt in priced:
        edit, groups = attempt.edit, attempt.ballots.keys()
        if edit.units > left.setdefault(edit.field, getattr(budget, edit.field)) or groups_taken & groups:
            continue
        if nodes_deleted & edit.nodes or nodes_used.intersection(edit.delete_nodes):
            continue
        left[edit.field] -= edit.units
        groups_taken |= groups
        nodes_deleted.update(edit.delete_nodes)
        nodes_used |= edit.nodes
        chosen.append(edit)
        total += gain
    return chosen, total


def _leave_a_node(edits: list[Edit], num_nodes: int) -> list[Edit]:
    """The edits without so many deletions that no node would be left."""
    deleting = [edit for edit in edits if edit.delete_nodes]
    return [edit for edit in edits if edit not in deleting[num_nodes - 1 :]]


MOST_TRIED = 64  # edits of one kind that are tried against one target
MOST_FEATURES = 6


@dataclass(frozen=True)
class Step:
    """One edit: the budget field that it spends, and what it says; ``about`` names what no other edit may touch."""

    field: str
    about: frozenset[Id]
    change: dict[str, Any]


def greedy_per_neighbour(
    problem: Problem, rows: IntArray, budgets: Sequence[Budget], kind: str, seed: int, num_rivals: int
) -> list[AttackResult]:
    """Attacks every target by itself; arguments as those of ``greedy``."""
    results = []
    for row, ballots, budget in zip(rows.tolist(), problem.votes(rows), budgets, strict=True):
        search = _PerNeighbourSearch(problem, row, budget, np.random.default_rng([seed, row]))
        steps = list(search.steps())
        alone = problem.recast([(row, Perturbation(**step.change)) for step in steps])
        rivals = np.argsort(problem.gaps(ballots), kind="stable")[:-1][:num_rivals].tolist()
        plans = [(row, search.plan(steps, alone, ballots, rival)) for rival in rivals]
        results.append(best_of(problem.results(plans, np.stack([ballots] * len(plans)), kind)))
    return results


class _PerNeighbourSearch:
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


IDS_TO_PAIR = 64  # ids to try in the edge-centric division, where each makes a pair with every target


def hubs(
    problem: Problem, targets: Any, budget: Budget, *, seed: int = 0, features: AdversarialFeatures | None = None
) -> list[AttackResult]:
    """Attacks many nodes with one perturbation for each class that they are pushed to.

    Every hub is joined to all targets of which the same class is the closest rival (to the weakest of them, if
    ``edges_per_injected`` is finite), under an id that leads to ballots which are still to be moved. Targets pushed to
    the same class share one attacked graph, and the cost of each of their results is that of the whole graph.

    Args:
        problem: Model, data and division; node task, built-in division.
        targets: Rows, a mask, or ``None`` for all.
        budget: How many hubs, and how many edges each.
        seed: Seed of what is sampled.
        features: Features to use; made anew when not given.
    """
    if problem.task == "graph":
        raise SettingsError(
            'hubs attack many nodes of one graph; whole graphs are attacked one by one with "injection".'
        )
    if not isinstance(budget, Budget):
        raise BudgetError("hubs attack all targets at once, with one budget for all of them.")
    rows = problem.rows(targets)
    before = problem.votes(rows)
    gaps = np.array([problem.gaps(ballots) for ballots in before]).reshape(len(rows), problem.call.num_classes)
    rivals = gaps.argmin(axis=1)
    features = AdversarialFeatures.of(problem, seed) if features is None else features
    results: dict[int, AttackResult] = {}
    for rival in np.unique(rivals).tolist():
        here = np.flatnonzero(rivals == rival)
        here = here[np.argsort(gaps[here, rival], kind="stable")]  # the weakest first
        change = _join(problem, rows[here], before[here], rival, budget)
        # Also magnified features, because many layers divide a message by the sender's degree.
        scales = (1.0, 10 * math.sqrt(1 + len(change.add_edges))) if change.inject_nodes else (1.0,)
        given = features.lists[features.best[rival][0]]
        attempts = [
            _attack(problem, rows[here], before[here], change, [scale * value for value in given]) for scale in scales
        ]
        best = max(
            attempts, key=lambda outcome: (sum(r.succeeded for r in outcome), sum(r.ballots_moved for r in outcome))
        )
        results.update(zip(here.tolist(), best, strict=True))
    return [results[k] for k in range(len(rows))]


def _attack(
    problem: Problem, rows: IntArray, before: Ballots, change: Perturbation, features: list[float]
) -> list[AttackResult]:
    """Results of hubs that all have the same features."""
    change = replace(change, inject_nodes=dict.fromkeys(change.inject_nodes, features))
    after = problem.recast_whole(rows.tolist(), change)
    return problem.results([(row, change) for row in rows.tolist()], before, "hubs", after)


def _join(problem: Problem, rows: IntArray, before: Ballots, rival: int, budget: Budget) -> Perturbation:
    """The hubs that push ``rows`` to ``rival`` and their edges, without features."""
    count = int(min(budget.inject_nodes, problem.num_groups))
    reach = int(min(budget.edges_per_injected, len(rows)))
    if not count or not reach:
        return Perturbation()
    rows, before = rows[:reach], before[:reach]
    num_ids = 16 * problem.num_groups if isinstance(problem.division, NodeCentric) else max(IDS_TO_PAIR, count)
    unused = UnusedIds(problem.graph.node_key, problem.has_ids(), num_ids)
    groups = _groups(problem, unused, rows)
    labels = np.array([[problem.winner(ballots)] for ballots in before])
    worth = (before == labels).astype(float) + (before != rival)  # what moving each ballot would gain
    picked: list[int] = []
    for turn in range(count):
        value = np.take_along_axis(worth, groups.T, axis=1).sum(axis=0)  # [num_ids]
        value[picked] = -1
        pick = int(value.argmax()) if unused.any_order else turn
        worth[np.arange(reach), groups[pick]] = 0
        picked.append(pick)
    ids, hub_ids = problem.ids(), unused.ids[picked].tolist()
    return Perturbation(
        inject_nodes=dict.fromkeys(hub_ids, ()),  # features come later
        add_edges=[(hub, ids[row]) for hub in hub_ids for row in rows.tolist()],
    )


def _groups(problem: Problem, unused: UnusedIds, rows: IntArray) -> IntArray:
    """Group in which a hub under each id would reach each target, shape ``[num_ids, len(rows)]``."""
    division = problem.built_in()
    if isinstance(division, NodeCentric):
        return np.repeat(unused.node_groups(division)[:, None], len(rows), axis=1)
    return unused.pair_groups(division, problem.graph.node_key[torch.from_numpy(rows)])
