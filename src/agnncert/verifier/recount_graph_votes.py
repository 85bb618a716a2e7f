"""Derives every statement about graph votes a second time (Theorems 22 and 23), for the verifier.

This module shares no code with ``graph_votes.evidence``. Of each target and pair of classes it makes a list of
losses, one for each item, largest first, and lets an attacker change one item after the other. Where nodes come
and go it follows each number of deleted, injected and altered nodes, one node after the other.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graph_votes.record import GraphRecord

LARGEST_STATED = 9_999
LARGEST_STATED_OF_NODES = 100


class Target:
    """The score of one target, item by item."""

    def __init__(self, record: GraphRecord, number: int) -> None:
        self._record = record
        entries = range(int(record.indptr[number]), int(record.indptr[number + 1]))
        self._items = [(int(record.context[k]), int(record.state[k]), int(record.number[k])) for k in entries]
        self._size = int(record.size[number]) if record.trusted == "none" else 0
        score = [int(value) for value in record.prior[number]]
        for context, state, times in self._items:
            for k in range(record.num_classes):
                score[k] += times * int(record.table[context, state, k])
        if record.trusted == "none":
            last = len(record.by_size) - 1
            for k in range(record.num_classes):
                score[k] += int(record.by_size[min(self._size, last), k])
        self.score = score
        self.label = score.index(max(score))

    def lead(self, leader: int, rival: int) -> int:
        """Returns how many steps the rival has to catch up to get past a class."""
        return self.score[leader] - self.score[rival] - (1 if rival < leader else 0)

    def survives(self, leader: int, rival: int, attack: Budget | int) -> bool:
        """Tells whether a class stays ahead of a rival, under an attack that is covered."""
        lead = self.lead(leader, rival)
        if lead < 0:
            return False
        if self._record.trusted == "none":
            if isinstance(attack, int):
                return self._survives_nodes(lead, leader, rival, attack)
            return self._survives_budget(lead, leader, rival, attack)
        joined, apart = (self._losses(leader, rival, state) for state in (1, 0))
        if self._record.trusted == "nodes" and isinstance(attack, Budget):
            of_deleting = _sum_of_first(joined, attack.delete_edges)
            return of_deleting + _sum_of_first(apart, attack.add_edges) <= lead
        every = self._losses(leader, rival, None)
        changed = attack if isinstance(attack, int) else attack.change_features
        return _sum_of_first(every, changed) <= lead

    def _losses(self, leader: int, rival: int, wanted: int | None) -> list[tuple[int, int]]:
        """Returns how much items can take from a lead, and how many items each; the largest first."""
        losses = []
        for context, state, times in self._items:
            if wanted is not None and state != wanted:
                continue
            votes = [int(row[leader]) - int(row[rival]) for row in self._record.table[context]]
            losses.append((votes[state] - min(votes), times))
        return sorted(losses, reverse=True)

    # Where nodes come and go.

    def _votes(self, leader: int, rival: int) -> Iterator[int]:
        """Yields the vote of each node, the one first that speaks most for the leader."""
        votes = [int(row[leader]) - int(row[rival]) for row in self._record.table[0]]
        listed = sorted(((votes[state], times) for _, state, times in self._items), reverse=True)
        return chain.from_iterable(repeat(vote, times) for vote, times in listed)

    def _least(self, leader: int, rival: int) -> int:
        return min(int(row[leader]) - int(row[rival]) for row in self._record.table[0])

    def _of_size(self, size: int, leader: int, rival: int) -> int:
        row = self._record.by_size[min(size, len(self._record.by_size) - 1)]
        return int(row[leader]) - int(row[rival])

    def _survives_nodes(self, lead: int, leader: int, rival: int, changes: int) -> bool:
        """Tells whether a lead survives any mix of that many changes of nodes."""
        for gone in range(min(changes, self._size) + 1):
            left = changes - gone
            for injected in range(left + 1):
                if not self._survives_mix(lead, leader, rival, (gone, injected, left - injected)):
                    return False
        return True

    def _survives_mix(self, lead: int, leader: int, rival: int, mix: tuple[int, int, int]) -> bool:
        """Tells whether a lead survives a number of deleted and injected nodes, and up to some altered ones."""
        deleted, injected, altered = mix
        before = self._of_size(self._size, leader, rival)
        least = self._least(leader, rival)
        lead += self._of_size(self._size - deleted + injected, leader, rival) - before + injected * least
        for place, vote in zip(range(deleted + altered), self._votes(leader, rival), strict=False):
            lead -= vote if place < deleted else max(vote - least, 0)
        return lead >= 0

    def _survives_budget(self, lead: int, leader: int, rival: int, budget: Budget) -> bool:
        """Tells whether a lead survives limits on each kind of change of nodes."""
        altered = int(min(budget.change_features, self._size))
        if math.isinf(budget.inject_nodes) and self._least(leader, rival) < 0:
            return False
        settled = len(self._record.by_size) + self._size  # more new nodes alter the score of the size no further
        numbers = set(range(int(min(budget.inject_nodes, settled)) + 1))
        if math.isfinite(budget.inject_nodes):
            numbers.add(int(budget.inject_nodes))
        for deleted in range(int(min(budget.delete_nodes, self._size)) + 1):
            for injected in numbers:
                if not self._survives_mix(lead, leader, rival, (deleted, injected, altered)):
                    return False
        return True


def _sum_of_first(losses: list[tuple[int, int]], most: float) -> int:
    """Returns the sum of the largest losses of that many items."""
    total = 0
    for loss, times in losses:
        if most <= 0:
            break
        total += loss * int(min(times, most))
        most -= times
    return total


class Recount:
    """All targets of a record, counted again."""

    def __init__(self, record: GraphRecord) -> None:
        self.record = record

    @cached_property
    def targets(self) -> list[Target]:
        """The targets, in order."""
        return [Target(self.record, number) for number in range(self.record.num_targets)]

    def label(self) -> IntArray:
        """Returns the label of each target, shape ``[n]``."""
        return np.array([target.label for target in self.targets], dtype=np.int64)

    def stays_ahead(self, budget: Budget, leader: int | None) -> BoolArray:
        """Returns of which classes each label stays ahead, shape ``[n, C]``."""
        ahead = np.ones((self.record.num_targets, self.record.num_classes), dtype=bool)
        if not is_covered(self.record, budget):
            return np.zeros_like(ahead)
        for row, target in zip(ahead, self.targets, strict=True):
            first = target.label if leader is None else leader
            for rival in range(self.record.num_classes):
                row[rival] = rival == first or target.survives(first, rival, budget)
        return ahead

    def right_radius(self, stated: IntArray) -> BoolArray:
        """Tells whether each stated radius is the largest number of changes that a label survives, shape ``[n]``."""
        of_nodes = self.record.trusted == "none"
        largest = LARGEST_STATED_OF_NODES if of_nodes else LARGEST_STATED

        def keeps(target: Target, changes: int) -> bool:
            rivals = (rival for rival in range(self.record.num_classes) if rival != target.label)
            return all(target.survives(target.label, rival, changes) for rival in rivals)

        def is_right(target: Target, radius: int) -> bool:
            if not 0 <= radius <= largest or not keeps(target, radius):
                return False
            return radius == largest or not keeps(target, radius + 1)

        pairs = zip(self.targets, stated.tolist(), strict=True)
        return np.array([is_right(target, radius) for target, radius in pairs], dtype=bool)


def is_covered(record: GraphRecord, budget: Budget) -> bool:
    """Tells whether anything is proved about a budget: nothing if it changes what is trusted."""
    nodes = budget.inject_nodes > 0 or budget.delete_nodes > 0
    edges = budget.add_edges > 0 or budget.delete_edges > 0
    return {
        "structure": not nodes and not edges,
        "nodes": not nodes and not budget.change_features > 0,
        "count": not nodes,
        "none": True,
    }[record.trusted]
