"""Hubs: injected nodes joined to as many targets as the budget allows. One attacked graph, many targets."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from agnncert.attacks.adversarial_features import Arsenal
from agnncert.attacks.edits import gap
from agnncert.attacks.injected_ids import FreshIds
from agnncert.attacks.problem import Ballots, Scene
from agnncert.attacks.results import AttackResult
from agnncert.divisions import NodeCentric
from agnncert.errors import BudgetError, SettingsError
from agnncert.graphs.perturbation import Id, Perturbation
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget

PAIRED_IDS = 64  # ids to try where each has a group of its own with every target


def hubs(
    scene: Scene, targets: Any, budget: Budget, *, seed: int = 0, arsenal: Arsenal | None = None
) -> list[AttackResult]:
    """Attacks many nodes with one perturbation for each class that they are pushed to.

    Every hub is joined to all targets of which the same class is the closest rival (to the weakest of them, if
    ``edges_per_injected`` is finite), under an id that leads to ballots which are still to be moved. Results that
    share a class share their perturbation: the graph is the same, and its cost is that of all of it.

    Args:
        scene: Model, data and division; node task, built-in division.
        targets: Rows, a mask, or ``None`` for all.
        budget: How many hubs, and how many edges each.
        seed: Seed of what is sampled.
        arsenal: Features to use; made anew when not given.
    """
    if scene.task == "graph":
        raise SettingsError(
            'hubs attack many nodes of one graph; whole graphs are attacked one by one with "injection".'
        )
    if not isinstance(budget, Budget):
        raise BudgetError("hubs attack all targets at once, with one budget for all of them.")
    rows = scene.rows(targets)
    before = scene.votes(rows)
    labels = np.array([scene.winner(ballots) for ballots in before])
    gaps = np.array([_gaps(scene, ballots) for ballots in before]).reshape(len(rows), -1)
    rival = gaps.argmin(axis=1)
    arsenal = Arsenal.of(scene, seed) if arsenal is None else arsenal
    found: dict[int, AttackResult] = {}
    for k in np.unique(rival):
        here = np.flatnonzero(rival == k)
        here = here[np.argsort(gaps[here, k], kind="stable")]  # the weakest first
        wiring = _join(scene, rows[here], before[here], labels[here], int(k), budget)
        results = max(
            (_shouted(scene, rows[here], before[here], wiring, look) for look in _looks(arsenal, int(k), wiring)),
            key=lambda some: (sum(r.succeeded for r in some), sum(r.ballots_moved for r in some)),
        )
        found.update(zip(here.tolist(), results, strict=True))
    return [found[k] for k in range(len(rows))]


def _looks(arsenal: Arsenal, rival: int, wiring: Perturbation) -> list[list[float]]:
    """Features to give to the hubs. Many layers divide a message by the sender's degree, so hubs may have to shout."""
    plain = arsenal.lists[arsenal.best[rival][0]]
    volume = 10 * math.sqrt(1 + len(wiring.add_edges))
    return [plain, [volume * value for value in plain]] if wiring.inject_nodes else [plain]


def _shouted(
    scene: Scene, rows: IntArray, before: Ballots, wiring: Perturbation, look: list[float]
) -> list[AttackResult]:
    """Results of hubs that all look alike."""
    change = replace(wiring, inject_nodes=dict.fromkeys(wiring.inject_nodes, look))
    after = scene.recast_whole(rows.tolist(), change)
    return scene.results([(int(row), change) for row in rows], before, "hubs", after)


def _gaps(scene: Scene, ballots: Ballots) -> list[int]:
    label, counts = scene.winner(ballots), scene.counts(ballots)
    far = 2 * scene.num_groups + 2
    return [far if k == label else gap(counts, label, k) for k in range(len(counts))]


def _join(scene: Scene, rows: IntArray, before: Ballots, labels: IntArray, rival: int, budget: Budget) -> Perturbation:
    """The hubs that push ``rows`` to ``rival`` and their edges, without features."""
    count = int(min(budget.inject_nodes, scene.num_groups))
    reach = int(min(budget.edges_per_injected, len(rows)))
    if not count or not reach:
        return Perturbation()
    served = rows[:reach]
    some = 16 * scene.num_groups if isinstance(scene.division, NodeCentric) else max(PAIRED_IDS, count)
    fresh = FreshIds(scene.graph.node_key, scene.has_ids(), some)
    groups = _groups(scene, fresh, served)
    worth = (before[:reach] == labels[:reach, None]).astype(float) + (before[:reach] != rival)
    picked: list[int] = []
    for turn in range(count):
        value = np.take_along_axis(worth, groups.T, axis=1).sum(axis=0)  # [num_ids]
        value[picked] = -1
        pick = int(value.argmax()) if fresh.chosen else turn
        worth[np.arange(reach), groups[pick]] = 0
        picked.append(pick)
    ids = scene.ids()
    new: Sequence[Id] = [int(fresh.ids[pick]) for pick in picked]
    return Perturbation(
        inject_nodes=dict.fromkeys(new, ()),  # features come later
        add_edges=[(hub, ids[int(row)]) for hub in new for row in served],
    )


def _groups(scene: Scene, fresh: FreshIds, rows: IntArray) -> IntArray:
    """Group in which a hub under each id would reach each target, shape ``[num_ids, len(rows)]``."""
    division = scene.built_in()
    if isinstance(division, NodeCentric):
        return np.repeat(fresh.node_groups(division)[:, None], len(rows), axis=1)
    return fresh.pair_groups(division, scene.graph.node_key[torch.from_numpy(rows)])
