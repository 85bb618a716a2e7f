"""``GraphEvidence``: what follows from graph votes (Theorems 22 and 23).

The lead of a label over a rival is a sum: a part that is trusted, and one vote for each item. An item that
an attacker changes loses at most what its vote is above the least vote of its states, whatever becomes of
the others. So the worst attack changes the items that can lose most.

Where nodes come and go, each deleted or altered node takes its vote along, and each injected or altered
one brings the least vote that there is; the number of nodes has a score of its own.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.graph_votes.record import GraphRecord
from agnncert.graph_votes.words import graph_words
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import LARGEST_RADIUS, Evidence
from agnncert.proving.words import Subject, Words

KIND = "graph-votes"
LARGEST_OF_NODES = 100  # changes of nodes that come and go: they are tried one number after the other
# What a budget may allow, by what is trusted. Whatever else it allows is not covered.
_COVERED = {
    "structure": ("change_features", "change_edges"),
    "nodes": ("add_edges", "delete_edges", "change_edges"),
    "count": ("add_edges", "delete_edges", "change_edges", "change_features"),
}
_CHANGES = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
JOINED = 1  # the state of a pair of nodes with an edge


@dataclass(frozen=True, repr=False)
class GraphEvidence(GraphRecord, Evidence):
    """Graph votes and the answers that follow from them. Fields are as in :class:`GraphRecord`."""

    kind: ClassVar[str] = KIND
    possible_takes_long: ClassVar[bool] = False

    def __repr__(self) -> str:
        return (
            f"GraphEvidence({self.num_targets:,} targets, {self.num_classes} classes, "
            f"trusted={self.trusted}, {len(self.context):,} kinds of items)"
        )

    # What is counted.

    @cached_property
    def owner(self) -> IntArray:
        """The target of each entry, shape ``[m]``."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.indptr))

    @cached_property
    def counts(self) -> IntArray:
        """Score of each class in steps, shape ``[n, C]``."""
        scores = self.prior.copy()
        np.add.at(scores, self.owner, self.number[:, None] * self.table[self.context, self.state])
        if self.trusted == "none":
            scores += self._of_size(self.size)
        return scores

    def _of_size(self, sizes: IntArray) -> IntArray:
        """Returns the score of numbers of nodes, shape ``[..., C]``."""
        return np.asarray(self.by_size[np.clip(sizes, 0, len(self.by_size) - 1)])

    # What is proved.

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved about such attacks: nothing where they change what is trusted."""
        if self.trusted == "none":
            return True
        return all(name in _COVERED[self.trusted] or not getattr(budget, name) for name in _CHANGES)

    @property
    def largest_radius(self) -> int:
        """The largest radius that is stated."""
        return LARGEST_OF_NODES if self.trusted == "none" else LARGEST_RADIUS

    @property
    def entries_per_target(self) -> IntArray:
        """The classes, and the items of each target."""
        return np.asarray(self.num_classes + np.diff(self.indptr))

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead (Theorems 22 and 23), shape ``[b, C]``."""
        numbers = self._numbers(rows)
        leading = self.leaders(rows, leader)
        ahead = np.ones((len(numbers), self.num_classes), dtype=bool)
        for first in np.unique(leading).tolist():
            here = leading == first
            for rival in range(self.num_classes):
                if rival != first:
                    ahead[here, rival] = self.lead_left(numbers[here], first, rival, attack) >= 0
        return ahead

    def lead_left(self, targets: IntArray, leader: int, rival: int, attack: Budget | float) -> FloatArray:
        """Returns by how much a class leads a rival under the worst attack; at least 0 if it stays ahead, ``[b]``."""
        counts = self.counts[targets]
        lead = counts[:, leader] - counts[:, rival] - int(rival < leader)  # a smaller class wins ties
        return np.asarray(lead - self._largest_fall(targets, leader, rival, attack), dtype=np.float64)

    def _largest_fall(
        self, targets: IntArray, leader: int, rival: int, attack: Budget | float
    ) -> IntArray | FloatArray:
        """Returns the largest fall of the lead of a class over a rival, shape ``[b]``."""
        if self.trusted == "none":
            return _Nodes(self, targets, leader, rival).largest_fall(attack)
        items = _Items(self, targets, leader, rival)
        if self.trusted == "nodes" and isinstance(attack, Budget):
            of_deleting = items.largest_fall(attack.delete_edges, items.is_joined)
            return of_deleting + items.largest_fall(attack.add_edges, ~items.is_joined)
        return items.largest_fall(attack.change_features if isinstance(attack, Budget) else attack)

    def counted_changes(self) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts."""
        if self.task == "node":
            return ()
        return {
            "structure": ("features",),
            "nodes": ("edges",),
            "count": ("features", "edges"),
            "none": ("any", "structure", "injected", "features", "edges"),
        }[self.trusted]

    def no_edge_labels(self) -> IntArray | None:
        """Returns None: without edges the evidence may say something else, and does not tell what."""
        return None

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Returns how many targets one attack can break: one graph of several, but any nodes of one graph."""
        failing = int(np.count_nonzero(fails))
        return failing if self.task == "node" else min(failing, 1)

    def usual_budgets(self) -> tuple[Budget, ...]:
        """Returns the budgets about which a file makes statements when none are given."""
        numbers = (1, 2, 3, 5, 10, 20)
        if self.trusted == "structure":
            features = (*numbers, math.inf)
            return tuple(Budget(change_features=number) for number in features)
        if self.trusted == "nodes":
            edges = tuple(Budget(add_edges=number, delete_edges=number) for number in (*numbers, math.inf))
            return edges
        free = Budget(add_edges=math.inf, delete_edges=math.inf, change_edges=math.inf)
        if self.trusted == "count":
            return tuple(free.but(change_features=number) for number in (0, *numbers))
        nodes = ("inject_nodes", "delete_nodes", "change_features")
        return tuple(free.but(**{name: number}) for number in (1, 2, 3) for name in nodes)

    def words(self, subject: Subject) -> Words:
        """Returns the words for graph votes."""
        return graph_words(self, subject)


class _Items:
    """What each item of some targets can lose of the lead of a class over a rival, the largest loss first."""

    def __init__(self, evidence: GraphEvidence, targets: IntArray, leader: int, rival: int) -> None:
        vote = evidence.table[:, :, leader] - evidence.table[:, :, rival]
        place = np.full(evidence.num_targets, -1)
        place[targets] = np.arange(len(targets))
        owner = place[evidence.owner]
        entries = np.flatnonzero(owner >= 0)
        context, state = evidence.context[entries], evidence.state[entries]
        loss = vote[context, state] - vote.min(axis=1, initial=LARGEST_LOSS)[context]
        order = np.lexsort((-loss, owner[entries]))
        self.num_targets = len(targets)
        self.owner = owner[entries][order]
        self.loss = loss[order]
        self.number = evidence.number[entries][order]
        self.is_joined = state[order] == JOINED

    def largest_fall(self, most: float, among: BoolArray | None = None) -> IntArray:
        """Returns the sum of the largest losses of that many items, those without loss left out, shape ``[b]``.

        Args:
            most: How many items change.
            among: Which entries may change. Defaults to all.
        """
        number = self.number if among is None else np.where(among, self.number, 0)
        if math.isfinite(most):
            upto = np.cumsum(number)
            first = np.searchsorted(self.owner, np.arange(self.num_targets))
            before = upto - number - (upto - number)[first[self.owner]]
            number = np.clip(int(most) - before, 0, number)
        fall = np.zeros(self.num_targets, dtype=np.int64)
        np.add.at(fall, self.owner, number * self.loss)
        return fall


LARGEST_LOSS = 2**22  # more than two votes can differ by


class _Nodes:
    """What deleted, altered and injected nodes can take from the lead of a class over a rival."""

    def __init__(self, evidence: GraphEvidence, targets: IntArray, leader: int, rival: int) -> None:
        vote = evidence.table[0, :, leader] - evidence.table[0, :, rival]
        score = evidence.by_size[:, leader] - evidence.by_size[:, rival]
        self.score = score
        self.size = evidence.size[targets]
        self.brought = -int(vote.min())
        place = np.full(evidence.num_targets, -1)
        place[targets] = np.arange(len(targets))
        entries = np.flatnonzero(place[evidence.owner] >= 0)
        owner = place[evidence.owner][entries]
        taken = vote[evidence.state[entries]]
        order = np.lexsort((-taken, owner))
        self._owner, self._taken = owner[order], taken[order]
        self._number = evidence.number[entries][order]
        worth = np.zeros(len(targets), dtype=np.int64)  # nodes whose vote is above the least one
        np.add.at(worth, self._owner, self._number * (self._taken + self.brought > 0))
        self.worth_altering = worth

    def largest_fall(self, attack: Budget | float) -> IntArray | FloatArray:
        """Returns the largest fall, shape ``[b]``."""
        if isinstance(attack, Budget):
            return self._fall_under(attack)
        return self._fall_of(int(min(attack, LARGEST_OF_NODES + 1)))

    def _taken_by(self, most: int) -> IntArray:
        """Returns the sum of the ``k`` largest votes of each target, ``k`` up to a number, shape ``[b, most + 1]``."""
        sums = np.zeros((len(self.size), most + 1), dtype=np.int64)
        upto = np.cumsum(self._number)
        first = np.searchsorted(self._owner, np.arange(len(self.size)))
        before = upto - self._number - (upto - self._number)[first[self._owner]]
        for k in range(1, most + 1):
            np.add.at(sums[:, k], self._owner, np.clip(k - before, 0, self._number) * self._taken)
        return sums

    def _size_score(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.score[np.clip(sizes, 0, len(self.score) - 1)])

    def _fall_of(self, changes: int) -> IntArray:
        """Returns the largest fall by that many changes of nodes, of whatever kind, shape ``[b]``."""
        rows = np.arange(len(self.size))
        most_taken = int(min(changes, self.size.max(initial=0)))
        taken = self._taken_by(most_taken)
        best = np.zeros(len(self.size), dtype=np.int64)
        for deleted in range(most_taken + 1):
            for injected in range(changes - deleted + 1):
                altered = self._altered(deleted, changes - deleted - injected)
                nodes = np.clip(deleted + altered, 0, most_taken)
                by_size = self._size_score(self.size) - self._size_score(self.size + injected - deleted)
                fall = by_size + taken[rows, nodes] + (injected + altered) * self.brought
                best = np.where(deleted <= self.size, np.maximum(best, fall), best)
        return best

    def _altered(self, deleted: int, most: float) -> IntArray:
        """Returns how many nodes are worth altering, besides those that are deleted, shape ``[b]``."""
        left = np.maximum(np.minimum(self.size, self.worth_altering) - deleted, 0)
        return np.asarray(np.minimum(left, most), dtype=np.int64)

    def _fall_under(self, budget: Budget) -> FloatArray:
        """Returns the largest fall under a budget, which may be infinite, shape ``[b]``."""
        rows = np.arange(len(self.size))
        largest = int(self.size.max(initial=0))
        most_deleted = int(min(budget.delete_nodes, largest))
        taken = self._taken_by(int(min(budget.delete_nodes + budget.change_features, largest)))
        best: FloatArray = np.zeros(len(self.size))
        for deleted in range(most_deleted + 1):
            altered = self._altered(deleted, budget.change_features)
            nodes = np.clip(deleted + altered, 0, taken.shape[1] - 1)
            by_nodes = taken[rows, nodes] + altered * self.brought + self._size_score(self.size)
            fall = by_nodes + self._by_injecting(self.size - deleted, budget.inject_nodes)
            best = np.where(deleted <= self.size, np.maximum(best, fall), best)
        return best

    def _by_injecting(self, sizes: IntArray, most: float) -> FloatArray:
        """Returns what up to so many injected nodes gain the rival, the score of the new size included, ``[b]``."""
        if self.brought > 0 and math.isinf(most):
            return np.full(len(sizes), np.inf)
        gain = np.full(len(sizes), -np.inf)
        beyond = len(self.score)  # from here on the score of the size stays as it is
        tried = range(int(min(most, beyond)) + 1)
        for injected in (*tried, *((int(most),) if math.isfinite(most) else ())):
            gain = np.maximum(gain, injected * self.brought - self._size_score(sizes + injected))
        return gain
