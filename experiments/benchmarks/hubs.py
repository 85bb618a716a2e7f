"""Injected nodes joined to many targets at once: the attack that collective certificates are tried with."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from agnncert.attacks import AdversarialFeatures, AttackResult, VoteProblem
from agnncert.attacks.candidates import UnusedIds, pair_groups
from agnncert.attacks.problem import OutcomeTable
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.divisions.node import NodeCentric
from agnncert.graphs.perturbation import Perturbation

IDS_TO_PAIR = 64  # ids to try in the edge-centric division, where each makes a pair with every target


def hubs(
    problem: VoteProblem, targets: Any, budget: Budget, *, seed: int = 0, features: AdversarialFeatures | None = None
) -> list[AttackResult]:
    """Attacks many nodes with one perturbation for each class that they are pushed to.

    Each hub is joined to all targets whose closest rival is the same class (to the weakest of them, if
    ``edges_per_injected`` is finite). Its id is the one whose groups hold the most votes that have not changed yet.
    Targets pushed to the same class share one attacked graph; the cost of each result is that of the whole graph.

    Args:
        problem: Model, data and a built-in division; node task.
        targets: Rows, a mask, or ``None`` for all.
        budget: How many hubs, and how many edges each.
        seed: Seed of the random samples.
        features: Features to use. Defaults to ``AdversarialFeatures.of(problem, seed)``.
    """
    rows = problem.rows(targets)
    before = problem.outcomes(rows)
    gaps = np.array([problem.gaps(votes) for votes in before]).reshape(len(rows), problem.bound_model.num_classes)
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
        attempts = []
        for scale in scales:
            row = [scale * value for value in given]
            scaled = replace(change, inject_nodes=dict.fromkeys(change.inject_nodes, row))
            after = problem.outcomes_in_whole_graph(rows[here].tolist(), scaled)
            attempts.append(_results(problem, rows[here], scaled, before[here], after))
        best = max(attempts, key=lambda outcome: (sum(r.succeeded for r in outcome), sum(r.moved for r in outcome)))
        results.update(zip(here.tolist(), best, strict=True))
    return [results[k] for k in range(len(rows))]


def _results(
    problem: VoteProblem, rows: IntArray, change: Perturbation, before: OutcomeTable, after: OutcomeTable
) -> list[AttackResult]:
    ids, cost = problem.ids(), change.cost()  # counted once: the targets share the perturbation, which may be large
    return [
        AttackResult(
            target=ids[row],
            row=row,
            kind="hubs",
            perturbation=change,
            cost=cost,
            label_before=problem.winner(old),
            label_after=problem.winner(new),
            moved=problem.moved(old, new),
        )
        for row, old, new in zip(rows.tolist(), before, after, strict=True)
    ]


def _join(problem: VoteProblem, rows: IntArray, before: OutcomeTable, rival: int, budget: Budget) -> Perturbation:
    """The hubs that push ``rows`` to ``rival`` and their edges, without features."""
    division = problem.built_in()
    count = int(min(budget.inject_nodes, problem.num_groups))
    reach = int(min(budget.edges_per_injected, len(rows)))
    if not count or not reach:
        return Perturbation()
    rows, before = rows[:reach], before[:reach]
    # Group in which a hub under each id would reach each target, shape [num_ids, len(rows)].
    if isinstance(division, NodeCentric):
        unused = UnusedIds(problem.graph.node_key, problem.has_ids(), 16 * problem.num_groups)
        groups = np.repeat(unused.node_groups(division)[:, None], len(rows), axis=1)
    else:
        unused = UnusedIds(problem.graph.node_key, problem.has_ids(), max(IDS_TO_PAIR, count))
        groups = pair_groups(division, unused.ids, problem.graph.node_key[torch.from_numpy(rows)])
    labels = np.array([[problem.winner(votes)] for votes in before])
    worth = (before == labels).astype(float) + (before != rival)  # what moving each vote would gain
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
