"""Attacks on append-only scores: rows are appended, and pairs of accounts deleted where the budget allows it.

A flagged account hides: it appends what fools unconstrained trees most that learned the same flags, and deletes the
pairs without which its score falls most. One that is not flagged is framed, by as few new rows as were found. What is
found is applied to the graph, and the label is computed there by the defence itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np

from agnncert.append.changes import NEW, NUMBERS, AroundAccount, Change, NewRow, Template, templates_of
from agnncert.append.evidence import as_trees
from agnncert.append.ledger import Rows, edges_of_rows
from agnncert.append.model import AppendModel, edge_table
from agnncert.append.training import TreeSettings, train_trees
from agnncert.append.trees import UNIT, Trees
from agnncert.attacks.problem import Outcome, OwnAttack
from agnncert.attacks.results import AttackResult
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.graphs.perturbation import Perturbation

KIND = "greedy"
MOST_ROWS = 200  # rows that are appended where the budget allows any number
LEARNED_FROM = 600  # accounts from which the unconstrained trees learn
_LEARNER = TreeSettings(trees=60)


class AppendProblem(ScoreProblem):
    """Attacks on accounts that append-only scores flag, or do not flag."""

    model: AppendModel
    unit = "points of the score's lead lost"

    def moved(self, before: Outcome, after: Outcome) -> float:
        """Returns how much of its lead the label lost."""
        label = self.winner(before)
        return (self._lead(before, label) - self._lead(after, label)) / UNIT

    def own_attacks(self) -> Mapping[str, OwnAttack]:
        """Returns the one attack, which draws no random numbers."""
        return {KIND: self._attack_each}

    def _attack_each(self, rows: IntArray, budgets: Sequence[Budget]) -> list[AttackResult]:
        """Returns the best attack that was found on each account."""
        before = self.outcomes(rows)
        attacks = [(row, self.attack_on(row, budget)) for row, budget in zip(rows.tolist(), budgets, strict=True)]
        return self.results(attacks, before, budgets, KIND)

    def attack_on(self, row: int, budget: Budget) -> Perturbation:
        """Returns what is done to one account within its budget."""
        around = AroundAccount(self._values, self._trees, int(row))
        others = self._others(around, budget)
        score = int(around.scores([Change()])[0])
        if score <= int(self.model.threshold):
            return self._perturbation(row, self._framed(around, others))
        gone = self._deleted(around, budget)
        return self._perturbation(row, self._hidden(around, gone, others))

    @cached_property
    def _values(self) -> Any:
        return self.model.values(self.graph)

    @cached_property
    def _trees(self) -> Trees:
        return as_trees(self.model.tables("tree_"))

    @cached_property
    def _templates(self) -> list[Template]:
        return templates_of(self._values)

    @cached_property
    def _unconstrained(self) -> Trees:
        """Trees without constraints that learned which accounts the model flags."""
        random = np.random.default_rng(0)
        total = self.graph.num_nodes
        accounts = np.sort(random.choice(total, min(LEARNED_FROM, total), replace=False))
        table = self._values.table(accounts)
        is_flagged = self._trees.score(table) > int(self.model.threshold)
        if is_flagged.all() or not is_flagged.any():
            return self._trees
        return train_trees(table, is_flagged, None, _LEARNER, seed=0)

    def _others(self, around: AroundAccount, budget: Budget) -> list[int]:
        """Returns the other ends of the rows that may be appended: old accounts without rows to it, and new ones."""
        old = int(min(budget.add_edges, MOST_ROWS))
        free = np.setdiff1d(self._busy, np.append(around.partners, around.account), assume_unique=True)
        new = int(min(budget.inject_nodes, MOST_ROWS)) if budget.edges_per_injected else 0
        return [*([NEW] * new), *(int(account) for account in free[:old])]

    @cached_property
    def _busy(self) -> Rows:
        """All accounts, those with most rows first."""
        ledger = self._values.ledger
        rows = np.bincount(np.concatenate([ledger.source, ledger.target]), minlength=ledger.num_accounts)
        return np.argsort(-rows, kind="stable")

    def _framed(self, around: AroundAccount, others: Sequence[int]) -> Change:
        """Returns the fewest rows of those that are tried that flag the account, else those that raise it most."""
        best, highest = Change(), int(self.model.threshold)
        for number in (each for each in NUMBERS if each <= len(others)):
            changes = [Change(new=_like(template, others[:number])) for template in self._templates]
            scores = around.scores(changes)
            if len(scores) and scores.max() > highest:
                return changes[int(scores.argmax())]
            best = changes[int(scores.argmax())] if len(scores) else best
        return best

    def _deleted(self, around: AroundAccount, budget: Budget) -> tuple[int, ...]:
        """Returns the partners that are deleted, each time the one without which the score falls most."""
        gone: tuple[int, ...] = ()
        left = around.partners.tolist()
        for _ in range(int(min(budget.delete_edges, len(left)))):
            scores = around.scores([Change(gone=(*gone, each)) for each in left])
            gone = (*gone, left.pop(int(scores.argmin())))
        return gone

    def _hidden(self, around: AroundAccount, gone: tuple[int, ...], others: Sequence[int]) -> Change:
        """Returns rows that lower the score most, and of those without a difference what fools other trees most."""
        changes = [Change(gone, _like(template, others)) for template in self._templates if others]
        if not changes:
            return Change(gone)
        tables = around.tables(changes)
        worth = np.lexsort((self._unconstrained.score(tables), self._trees.score(tables)))
        return changes[int(worth[0])]

    def _perturbation(self, row: int, change: Change) -> Perturbation:
        """Returns a change in the ids of the graph as given."""
        target = self._ids[row]
        deleted = [(target, self._ids[account]) for account in change.gone]
        if not change.new:
            return Perturbation(delete_edges=deleted)
        (way, like), _ = change.new[0]
        number = sum(each.other == NEW for each in change.new)
        ids = iter(list(islice(self._free_ids(), number)))
        ends = [next(ids) if each.other == NEW else self._ids[each.other] for each in change.new]
        features = self.graph.x[int(self._values.ledger.far(way)[like])].tolist()
        old = {self._ids[each.other] for each in change.new if each.other != NEW}
        return Perturbation(
            add_edges=[(end, target) if way == "in" else (target, end) for end in ends],
            delete_edges=deleted,
            inject_nodes={end: features for end in ends if end not in old},
            directed=self._is_directed,
            added_values=self._values_of(like),
        )

    def _free_ids(self) -> Iterator[int]:
        used = set(self._ids)
        return (number for number in count(len(self._ids)) if number not in used)

    @cached_property
    def _is_directed(self) -> bool:
        ends = self.graph.edge_index.numpy()
        return self.model.program.present >= 0 or not np.array_equal(
            np.unique(ends, axis=1), np.unique(ends[::-1], axis=1)
        )

    def _values_of(self, row: int) -> dict[str, Any]:
        """Returns what an edge like a row of the ledger carries in its direction, by name."""
        program = self.model.program
        edge = int(edges_of_rows(program, self.graph.edge_index.numpy(), edge_table(self.graph))[row])
        carried = {name: value[edge].double().reshape(-1) for name, value in self.graph.edge_values.items()}
        if program.present >= 0:  # the second half of the columns is about the other direction
            carried["edge_attr"][len(carried["edge_attr"]) // 2 :] = 0
        return {
            name: value.tolist() if self.graph.edge_values[name].dim() > 1 else float(value[0])
            for name, value in carried.items()
        }


def _like(template: Template, others: Sequence[int]) -> tuple[NewRow, ...]:
    return tuple(NewRow(template, other) for other in others)
