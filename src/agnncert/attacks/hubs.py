"""Hubs: injected nodes joined to as many targets as the budget allows. One attacked graph, many targets."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from agnncert.attacks.adversarial_features import AdversarialFeatures
from agnncert.attacks.injected_ids import UnusedIds
from agnncert.attacks.problem import Ballots, Problem
from agnncert.attacks.results import AttackResult
from agnncert.divisions import NodeCentric
from agnncert.errors import BudgetError, SettingsError
from agnncert.graphs.perturbation import Perturbation
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget

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
