"""The greedy attack, on one target at a time.

``greedy`` tries single edits. Where it is known which subgraphs of a division an edit touches, it is tried in these
alone, and for each of the closest rivals the edits with the largest gain are combined. Everywhere else edits are tried
on whole graphs (``single_edits``).
"""

from collections.abc import Callable, Iterable, Sequence

from agnncert.attacks.candidates import AdversarialFeatures, GraphMoves, NodeMoves, with_ids, without_gaps
from agnncert.attacks.edits import Edit, TriedEdit, perturbation_of
from agnncert.attacks.plain_model import GradientEdits, PlainProblem
from agnncert.attacks.problem import OutcomeTable, Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.single_edits import SingleEdits, closest_rivals
from agnncert.attacks.vote_queue import VoteQueue
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.defence import TargetChoice
from agnncert.graphs.perturbation import Perturbation

TARGETS_AT_ONCE = 64


def greedy(
    problem: Problem,
    targets: TargetChoice,
    budget: Budget | Sequence[Budget],
    *,
    seed: int = 0,
    features: AdversarialFeatures | None = None,
) -> list[AttackResult]:
    """Attacks each target separately with the edits that bring another class nearest to the label.

    Args:
        problem: Model, data and any defence.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed of the random samples. Defaults to 0.
        features: Features to use where edits are tried in subgraphs. Defaults to ``AdversarialFeatures.of(problem,
            seed)``.
    """
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    before = problem.outcomes(rows)
    attack = _search(problem, seed, features)
    results = []
    for start in range(0, len(rows), TARGETS_AT_ONCE):
        part = slice(start, start + TARGETS_AT_ONCE)
        results += attack(rows[part], before[part], budgets[part])
    return results


def _search(
    problem: Problem, seed: int, features: AdversarialFeatures | None
) -> Callable[[IntArray, OutcomeTable, Sequence[Budget]], list[AttackResult]]:
    if isinstance(problem, PlainProblem):
        return GradientEdits(problem, seed).attack
    if not problem.looks_into_subgraphs:
        return SingleEdits(problem, seed).attack
    divided = problem.subgraph_problem()
    if features is None:
        features = AdversarialFeatures.of(divided, seed)
    if problem.task == "node":
        return _Search(NodeMoves(divided, features)).attack
    return _Search(GraphMoves(divided, features, seed)).attack


class _Search:
    """Attacks several targets at a time, so that the model runs on their edits in one batch."""

    def __init__(self, moves: NodeMoves | GraphMoves) -> None:
        self.problem = moves.problem
        self.moves = moves
        self.queue = VoteQueue(moves.problem, moves.features.features)

    def attack(self, rows: IntArray, before: OutcomeTable, budgets: Sequence[Budget]) -> list[AttackResult]:
        """One result for each target."""
        targets = rows.tolist()
        rivals = [closest_rivals(self.problem, votes) for votes in before]
        tried = self._try(targets, rivals, budgets)
        plans = [self._plans(*target) for target in zip(targets, tried, before, rivals, budgets, strict=True)]
        first = [(row, changes[0]) for row, changes in zip(targets, plans, strict=True)]
        results = self.problem.results(first, before, budgets, "greedy")
        # If the first rival does not win, the second is tried.
        again = [k for k, result in enumerate(results) if not result.succeeded and len(plans[k]) > 1]
        attacks = [(targets[k], plans[k][1]) for k in again]
        second = self.problem.results(attacks, before[again], [budgets[k] for k in again], "greedy")
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
        votes = self.queue.votes()
        return [
            [TriedEdit(edit, {group: votes[place] for group, place in places.items()}) for edit, places in edits]
            for edits in queued
        ]

    def _plans(
        self, row: int, tried: Sequence[TriedEdit], before: OutcomeTable, rivals: Sequence[int], budget: Budget
    ) -> list[Perturbation]:
        """One perturbation for each rival, the most promising first."""
        label = self.problem.winner(before)
        gaps = self.problem.gaps(before)
        votes = before.tolist()
        ids = self.problem.ids(row)
        ranked = []
        for rival in rivals:
            priced = [(attempt.gain(votes, label, rival), attempt) for attempt in tried]
            usable = with_ids(self.moves, row, priced, budget)
            edits, gain = _choose(usable, votes, label, rival, budget)
            edits = without_gaps(_leave_a_node(edits, len(ids)), self.moves.unused_ids(row))
            ranked.append((gain - gaps[rival], perturbation_of(edits, ids, self.moves.features.lists)))
        ranked.sort(key=lambda item: -item[0])
        return [change for _, change in ranked]


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
    groups_taken: set[int] = set()
    nodes_deleted: set[int] = set()
    nodes_used: set[int] = set()
    picked = []
    total = 0
    for gain, attempt in priced:
        edit = attempt.edit
        groups = attempt.votes.keys()
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
