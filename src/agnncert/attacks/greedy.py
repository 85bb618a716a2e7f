"""The greedy attack: knows the division and the votes, and picks the edits that move the most ballots to a rival.

For each of the closest rivals of a target it tries edits one by one, each in the subgraphs that it touches, puts
together those with the largest gain, and votes on the attacked graph.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agnncert.attacks.adversarial_features import AdversarialFeatures
from agnncert.attacks.edits import BallotQueue, Edit, TriedEdit, perturbation_of
from agnncert.attacks.moves import GraphMoves, NodeMoves, with_ids
from agnncert.attacks.own_groups import greedy_own_groups
from agnncert.attacks.problem import Ballots, Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.perturbation import Perturbation
from agnncert.proof.ballots import IntArray
from agnncert.proof.budget import Budget

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
        return greedy_own_groups(problem, rows, budgets, kind, seed, num_rivals)
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
