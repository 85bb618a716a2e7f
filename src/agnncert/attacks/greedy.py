"""Greedy against the votes: knows the division, and picks the edits that move the most ballots to a rival."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from agnncert.attacks.adversarial_features import Arsenal
from agnncert.attacks.edits import Edit, Option, choose, gap, perturbation_of
from agnncert.attacks.graph_moves import GraphMoves
from agnncert.attacks.node_moves import NodeMoves
from agnncert.attacks.problem import Ballots, Scene
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.try_edits import Trials
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.perturbation import Perturbation
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget

Moves = NodeMoves | GraphMoves

TARGETS_AT_ONCE = 64

# What attacks named after one kind of change may touch; "greedy" may touch all.
FIELDS: dict[str, tuple[str, ...]] = {
    "injection": ("inject_nodes", "edges_per_injected"),
    "deletions": ("delete_edges", "delete_nodes"),
    "features": ("change_features", "target_features"),
}


def greedy(
    scene: Scene,
    targets: Any,
    budget: Budget | Sequence[Budget],
    *,
    kind: str = "greedy",
    seed: int = 0,
    num_rivals: int = 2,
    arsenal: Arsenal | None = None,
) -> list[AttackResult]:
    """Attacks every target by itself.

    For each of the closest rivals it tries edits one by one (new neighbours, injected nodes under chosen ids,
    deletions, features), each on the subgraphs it touches, and puts together those with the largest gain.

    Args:
        scene: Model, data and division; the division must be a built-in one.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        kind: "greedy", or "injection", "deletions", "features" to use only that part of the budget.
        seed: Seed of what is sampled.
        num_rivals: How many other classes to push to.
        arsenal: Features to use; made anew when not given.
    """
    if kind != "greedy" and kind not in FIELDS:
        raise SettingsError(f'unknown attack "{kind}": {did_you_mean(str(kind), ["greedy", *FIELDS])}')
    rows = scene.rows(targets)
    allowed = [_only(one, FIELDS.get(kind)) for one in scene.budgets(budget, rows)]
    before = scene.votes(rows)
    arsenal = Arsenal.of(scene, seed) if arsenal is None else arsenal
    moves: Moves = NodeMoves(scene, arsenal) if scene.task == "node" else GraphMoves(scene, arsenal, seed)
    trials = Trials(scene.call, scene.graph, torch.cat([scene.graph.x, arsenal.features]))
    found = []
    for start in range(0, len(rows), TARGETS_AT_ONCE):
        part = slice(start, start + TARGETS_AT_ONCE)
        found += _attack(scene, moves, trials, rows[part], before[part], allowed[part], kind, num_rivals)
    return found


def _attack(
    scene: Scene,
    moves: Moves,
    trials: Trials,
    rows: IntArray,
    before: Ballots,
    budgets: Sequence[Budget],
    kind: str,
    num_rivals: int,
) -> list[AttackResult]:
    rivals = [_rivals(scene, ballots, num_rivals) for ballots in before]
    options = _options(moves, trials, rows, rivals, budgets)
    plans = [_plans(scene, moves, int(row), options[k], before[k], rivals[k], budgets[k]) for k, row in enumerate(rows)]
    results = scene.results([(int(row), plans[k][0]) for k, row in enumerate(rows)], before, kind)
    # A second rival, where the first did not win.
    again = [k for k, result in enumerate(results) if not result.succeeded and len(plans[k]) > 1]
    second = scene.results([(int(rows[k]), plans[k][1]) for k in again], before[again], kind) if again else []
    for k, result in zip(again, second, strict=True):
        results[k] = best_of([results[k], result])
    return results


def _options(
    moves: Moves, trials: Trials, rows: IntArray, rivals: Sequence[Sequence[int]], budgets: Sequence[Budget]
) -> list[list[Option]]:
    """Edits of every target with the ballots that they lead to."""
    queued = []
    for row, against, budget in zip(rows.tolist(), rivals, budgets, strict=True):
        stage = moves.stage_of(row)
        queued.append(
            [
                (edit, {group: trials.add(stage, group, row, edit) for group in groups})
                for edit, groups in moves.drafts(row, against, budget)
            ]
        )
    ballots = trials.cast()
    return [
        [Option(edit, {group: int(ballots[place]) for group, place in places.items()}) for edit, places in drafts]
        for drafts in queued
    ]


def _plans(
    scene: Scene,
    moves: Moves,
    row: int,
    options: Sequence[Option],
    before: Ballots,
    rivals: Sequence[int],
    budget: Budget,
) -> list[Perturbation]:
    """One perturbation for each rival, the most promising first."""
    label, counts, ballots = scene.winner(before), scene.counts(before), before.tolist()
    ranked = []
    for rival in rivals:
        armed = moves.armed(row, options, ballots, label, rival, budget)
        edits, gain = choose(armed, ballots, label, rival, budget)
        ids = scene.ids(row)
        edits = moves.fresh_of(row).complete(_leave_a_node(edits, len(ids)))
        change = perturbation_of(edits, ids, moves.arsenal.lists)
        ranked.append((gain - gap(counts, label, rival), change))
    ranked.sort(key=lambda item: -item[0])
    return [change for _, change in ranked]


def _leave_a_node(edits: list[Edit], num_nodes: int) -> list[Edit]:
    """A graph without nodes is no graph: one of them stays."""
    dropped = [edit for edit in edits if edit.drop]
    return [edit for edit in edits if edit not in dropped[num_nodes - 1 :]]


def _rivals(scene: Scene, ballots: Ballots, count: int) -> list[int]:
    label, counts = scene.winner(ballots), scene.counts(ballots)
    others = [k for k in range(len(counts)) if k != label]
    return sorted(others, key=lambda k: gap(counts, label, k))[:count]


def _only(budget: Budget, fields: tuple[str, ...] | None) -> Budget:
    if fields is None:
        return budget
    return replace(Budget(), **{name: getattr(budget, name) for name in fields})
