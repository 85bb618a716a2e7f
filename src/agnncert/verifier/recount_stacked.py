"""Counts stacked votes again: derives every statement of a file about them, in code of its own.

Targets with the same number of neighbours are looked at together, as one table with an axis for the neighbours. All
numbers of lost neighbours are looked at together, too: one after the other, a file of some megabytes takes half a
minute. A stated radius is not searched for: it is right if the label holds at that size and not at the next one.
"""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.stacked.record import MOST_NEW, STEPS, StackedRecord
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.leaders import may_win

LARGEST_STATED = 9_999
LARGEST_NEIGHBOURS = 2**31  # larger stated numbers of new neighbours must be infinite
MOST_ODDS = 2**29  # factors of odds above this count as infinite
BLOCK = 2**19  # leads that are computed together


@dataclass(frozen=True)
class NewEdges:
    """What an attacker makes of added edges, as factors of their number.

    Attributes:
        neighbours: 1 if each of them brings a neighbour, by which a mean is divided, else 0.
        votes: 1 if each of them takes as much from the lead as a vote can, else 0.
    """

    neighbours: int
    votes: int


def _uses_of_new_edges(record: StackedRecord) -> list[NewEdges]:
    """Returns what an attacker may make of added edges: a mean depends on how many neighbours there are."""
    if not record.pseudo:
        return [NewEdges(neighbours=0, votes=1)]
    uses = [NewEdges(neighbours=0, votes=0), NewEdges(neighbours=1, votes=1)]
    if record.by_edge:  # the other direction of a pair alters its vote, and brings no neighbour
        uses.append(NewEdges(neighbours=0, votes=1))
    return uses


@dataclass(frozen=True)
class DegreeTable:
    """Targets with ``d`` neighbours each: ``n`` of them, with ``C`` classes. Numbers are in steps, see ``STEPS``.

    Attributes:
        record: Scores and votes of all targets.
        rows: Which targets these are, shape ``[n]``.
        label: The class whose lead is asked about: the winner, unless another one is asked for, shape ``[n]``.
        prior_lead: Lead of the label over each class by the prior, shape ``[n, C]``.
        neighbour_lead: What the neighbours give the label over each class, largest first, shape ``[n, C, d]``.
        pseudo_lead: The same for the pseudo-count, shape ``[n, C]``.
        most_given: The most that one neighbour can give each class over the label, shape ``[n, C]``.
        doubt: What other machines may take from the votes by rounding, shape ``[n, C]``.
        votes: Vote of each neighbour for each class, shape ``[n, C, d]``.
        votes_for_label: Vote of each neighbour for the label, shape ``[n, d]``.
    """

    record: StackedRecord
    rows: IntArray
    label: IntArray
    prior_lead: IntArray
    neighbour_lead: IntArray
    pseudo_lead: IntArray
    most_given: IntArray
    doubt: IntArray
    votes: IntArray
    votes_for_label: IntArray

    def part(self, chosen: BoolArray) -> "DegreeTable":
        """Returns the table of some of the targets, a mask of shape ``[n]``."""
        arrays = {each.name: getattr(self, each.name)[chosen] for each in fields(self) if each.name != "record"}
        return DegreeTable(record=self.record, **arrays)

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.rows)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.prior_lead.shape[1])

    @property
    def degree(self) -> int:
        """Number of neighbours of each target."""
        return int(self.neighbour_lead.shape[2])

    @cached_property
    def is_label(self) -> BoolArray:
        """Which class is the label of each target, shape ``[n, C]``."""
        return np.asarray(np.arange(self.num_classes) == self.label[:, None])

    @cached_property
    def lead_needed(self) -> IntArray:
        """With which lead the label stays ahead of each class, shape ``[n, C]``: of itself with any."""
        wins_ties = np.arange(self.num_classes) < self.label[:, None]
        return np.where(self.is_label, np.iinfo(np.int64).min, wins_ties)

    @cached_property
    def certain_prior_lead(self) -> IntArray:
        """Lead by the prior on every machine, shape ``[n, C]``."""
        return self.prior_lead - 2 * self.record.slack

    @cached_property
    def certain_vote_lead(self) -> IntArray:
        """Lead by all votes, those of the pseudo-count included, on every machine, shape ``[n, C]``."""
        return np.asarray(self.pseudo_lead + self.neighbour_lead.sum(axis=2) - self.doubt)

    @cached_property
    def lead_of_first(self) -> IntArray:
        """Lead by the first 0, 1, ... d neighbours, which give most, shape ``[n, C, d + 1]``."""
        return _sums(self.neighbour_lead)

    @cached_property
    def cost(self) -> IntArray:
        """The most that a new or altered neighbour takes from the lead, more where gates are rounded, ``[n, C]``."""
        return self.most_given + self.record.slack * STEPS * self.record.gated

    def divisor(self, neighbours: IntArray | int) -> IntArray | int:
        """Returns what votes are divided by, times ``STEPS``: it follows the number of neighbours in a mean only."""
        if self.record.pseudo:
            return self.record.pseudo + STEPS * neighbours
        return STEPS

    def is_ahead(self, lead: IntArray) -> BoolArray:
        """Tells of which classes the label stays ahead, given its lead over each, shape ``[n, C]``."""
        return np.asarray(lead >= self.lead_needed)

    def survives(
        self, new: FloatArray | float, lost: FloatArray | float, altered: FloatArray | float, together: bool = False
    ) -> BoolArray:
        """Tells which classes each label survives with new, lost and altered neighbours, shape ``[n, C]``.

        Args:
            new: Number of new neighbours; with ``together``, of new and lost ones in all.
            lost: Number of lost neighbours.
            altered: Number of neighbours with another vote.
            together: Whether each lost neighbour leaves one new one less.
        """
        most_new = _for_each(self.num_targets, new)
        most_lost = _for_each(self.num_targets, lost)
        num_altered = _for_each(self.num_targets, altered)
        survives = np.ones(self.prior_lead.shape, dtype=bool)
        most = int(min(most_lost.max(initial=0), self.degree))
        at_once = max(1, BLOCK // max(1, self.prior_lead.size))
        for first in range(0, most + 1, at_once):
            num_lost = np.arange(first, min(first + at_once, most + 1))
            num_new = most_new[:, None] - num_lost * together
            is_allowed = most_lost[:, None] >= num_lost
            survived = self._survives_exactly(num_lost, num_new, num_altered) | ~is_allowed[:, None, :]
            survives &= survived.all(axis=2)
        return survives | self.is_label

    def _survives_exactly(self, num_lost: IntArray, num_new: FloatArray, num_altered: FloatArray) -> BoolArray:
        """Tells which classes each label survives with ``L`` numbers of lost neighbours, shape ``[n, C, L]``.

        Those that give the label most are lost and altered. New ones may be used in several ways, and up to
        ``MOST_NEW`` of them are counted. Where there may be more, one more must not help the rival.

        Args:
            num_lost: How many neighbours are lost, shape ``[L]``.
            num_new: How many are new in each of these cases, shape ``[n, L]``.
            num_altered: How many are altered, as far as there are others, shape ``[n]``.
        """
        altered = np.minimum(num_altered[:, None], self.degree - num_lost).astype(np.int64)  # [n, L]
        place = (num_lost + altered)[:, None, :]
        taken = np.take_along_axis(self.lead_of_first, place, axis=2)
        cost = self.cost[:, :, None]
        prior_lead = self.certain_prior_lead[:, :, None]
        vote_lead = self.certain_vote_lead[:, :, None] - taken - altered[:, None, :] * cost
        is_endless = num_new > MOST_NEW
        new = np.where(is_endless | (num_new < 0), 0, num_new).astype(np.int64)[:, None, :]
        survives = np.ones(taken.shape, dtype=bool)
        for use in _uses_of_new_edges(self.record):
            divisor = self.divisor(self.degree - num_lost + new * use.neighbours)
            lead = prior_lead * divisor + vote_lead - new * use.votes * cost
            survives &= lead >= self.lead_needed[:, :, None]
            if is_endless.any():
                growth_of_divisor = STEPS * use.neighbours if self.record.pseudo else 0
                growth_of_lead = prior_lead * growth_of_divisor - use.votes * cost
                survives &= (growth_of_lead >= 0) | ~is_endless[:, None, :]
        return survives

    def survives_any(self, size: IntArray) -> BoolArray:
        """Tells which classes each label survives with ``size`` changes of neighbours of any kind, ``[n, C]``."""
        # What one neighbour more adds to the divisor, times the lead by the prior.
        by_divisor = self.certain_prior_lead * (STEPS if self.record.pseudo else 0)
        new = np.clip(self.cost - by_divisor, self.cost if self.record.by_edge else 0, None)
        touched = self.neighbour_lead + np.where(by_divisor > self.cost, by_divisor, self.cost)[:, :, None]
        surplus = _sums(np.clip(touched - new[:, :, None], 0, None))  # of touched neighbours over as many new ones
        most = np.minimum(size, self.degree)
        harm = size[:, None] * new + surplus[np.arange(self.num_targets), :, most]
        lead = self.certain_prior_lead * self.divisor(self.degree) + self.certain_vote_lead
        return self.is_ahead(lead - harm)

    def survives_second(self, edges: FloatArray | float, nodes: float) -> BoolArray:
        """Tells which classes each label survives if neighbours' neighbours count too, shape ``[n, C]``.

        Args:
            edges: Number of edges added or deleted anywhere, for each target.
            nodes: Number of nodes that come, go or change; one that changes counts twice.
        """
        lead = self.certain_prior_lead * STEPS + self.neighbour_lead.sum(axis=2) - self.doubt
        if not self.record.gate.any():  # votes are not used
            return self.is_ahead(lead)
        num_edges = _for_each(self.num_targets, edges)
        is_endless = (num_edges > MOST_NEW) | (nodes > MOST_NEW)
        num_nodes = 0 if nodes > MOST_NEW else int(nodes)
        num_changes = np.where(is_endless, 0, num_edges).astype(np.int64) + num_nodes
        lead = lead - (num_changes * STEPS * STEPS)[:, None]
        if num_nodes:
            lead = lead - STEPS * self._pulled(num_nodes).sum(axis=2)
        return self.is_ahead(lead) & (~is_endless[:, None] | self.is_label)

    def _pulled(self, nodes: int) -> IntArray:
        """Returns how far nodes can move the vote of each neighbour from the label to each class, ``[n, C, d]``.

        Nodes multiply the odds of a class by a bounded factor. Another machine may read each vote in its own way, so
        label and class are bounded apart.
        """
        of_label = self.votes_for_label[:, None, :]
        least_of_label = np.clip(of_label - self.record.slack, 0, None)
        most_of_class = np.clip(self.votes + self.record.slack + 1, None, STEPS)
        factor = _odds(self.record.second, nodes)
        if factor > MOST_ODDS:
            return np.asarray(of_label + STEPS - self.votes)
        kept = STEPS * (STEPS * least_of_label) // (STEPS * least_of_label + factor * (STEPS - least_of_label))
        won = STEPS * (factor * most_of_class) // (factor * most_of_class + STEPS * (STEPS - most_of_class))
        return np.asarray(of_label - kept + won - self.votes)


def _for_each(num_targets: int, number: FloatArray | float) -> FloatArray:
    """Returns one number for each target."""
    return np.broadcast_to(np.asarray(number, dtype=np.float64), (num_targets,))


def _sums(values: IntArray) -> IntArray:
    """Returns the sums of the first 0, 1, ... d values along the last axis, shape ``[n, C, d + 1]``."""
    nothing = np.zeros((*values.shape[:2], 1), dtype=np.int64)
    return np.concatenate([nothing, np.cumsum(values, axis=2)], axis=2)


def _odds(second: int, nodes: int) -> int:
    """Returns at least ``exp(second * nodes / STEPS)``, times ``STEPS``, or any number above ``MOST_ODDS``.

    With x = second / STEPS, exp(x) is at most 1 / (1 - x / 1024) to the power of 1024. Every step rounds up.
    """
    beyond = MOST_ODDS + 1
    power = _divide_up(2**54, 2**26 - second)  # in steps of 2**-28
    for _ in range(10):
        power = _divide_up(power * power, 2**28)
    power = _divide_up(power, 2**12)  # exp(x), and later its squares, in steps of 1 / STEPS
    total = STEPS
    for bit in reversed(f"{nodes:b}"):
        if bit == "1":
            total = beyond if power > MOST_ODDS else min(_divide_up(total * power, STEPS), beyond)
        power = min(_divide_up(power * power, STEPS), beyond)
    return total


def _divide_up(a: int, b: int) -> int:
    return -(-a // b)


def tables_of(record: StackedRecord) -> list[DegreeTable]:
    """Returns the targets, by their number of neighbours."""
    degree = np.diff(record.indptr)
    return [_table(record, np.flatnonzero(degree == d), int(d)) for d in np.unique(degree)]


def _table(record: StackedRecord, rows: IntArray, degree: int, label: int | None = None) -> DegreeTable:
    """Returns the table of targets with ``degree`` neighbours each, about the winner or about the class ``label``."""
    each = np.arange(len(rows))
    listed = record.indptr[rows][:, None] + np.arange(degree)
    votes = np.moveaxis(record.table[record.which[listed]].astype(np.int64), 1, 2)  # [n, C, d]
    prior = record.prior[rows]
    gate = record.gate[rows]
    pseudo_votes = np.array(record.pseudo_votes if record.pseudo else [0] * record.num_classes, dtype=np.int64)
    if label is None:
        divisor = record.pseudo + STEPS * degree if record.pseudo else STEPS
        score = prior * divisor + gate * (pseudo_votes + votes.sum(axis=2))
        labels = np.asarray(score.argmax(axis=1))
    else:
        labels = np.full(len(rows), label)
    weighted = gate[:, :, None] * votes
    weighted_lead = weighted[each, labels][:, None, :] - weighted
    weighted_pseudo = gate * pseudo_votes
    return DegreeTable(
        record=record,
        rows=rows,
        label=labels,
        prior_lead=prior[each, labels][:, None] - prior,
        neighbour_lead=-np.sort(-weighted_lead, axis=2),  # descending
        pseudo_lead=weighted_pseudo[each, labels][:, None] - weighted_pseudo,
        most_given=gate * STEPS,
        doubt=_doubt(record, gate, gate[each, labels], degree),
        votes=votes,
        votes_for_label=votes[each, labels],
    )


def _doubt(record: StackedRecord, gate: IntArray, gate_of_label: IntArray, degree: int) -> IntArray:
    """Returns what other machines may take from a lead by rounding votes and gates, shape ``[n, C]``."""
    slack = record.slack
    by_votes = degree * (gate_of_label[:, None] + gate) * slack
    if not record.gated:
        return by_votes
    by_gates = degree * 2 * (STEPS * slack + slack * slack)
    by_pseudo_count = 2 * slack * sum(record.pseudo_votes)
    return by_votes + by_gates + by_pseudo_count


def label_is(record: StackedRecord, tables: list[DegreeTable]) -> IntArray:
    """Returns the winner of each target, shape ``[n]``."""
    label = np.zeros(record.num_targets, dtype=np.int64)
    for table in tables:
        label[table.rows] = table.label
    return label


def right_radius(tables: list[DegreeTable], stated: IntArray, structure: bool) -> BoolArray:
    """Tells whether each stated radius, or structure radius, is the largest size that the label survives, ``[n]``.

    The radius of a mean may be a smaller one: files that were made before it was exact state such radii.
    """
    right = np.zeros(len(stated), dtype=bool)
    for table in tables:
        radius = stated[table.rows]
        is_possible = (radius >= -1) & (radius <= LARGEST_STATED)
        size = np.clip(radius, 0, LARGEST_STATED)
        next_size = np.clip(radius + 1, 0, LARGEST_STATED + 1)
        survives = (radius < 0) | _survives_size(table, size, structure)
        survives_more = (radius < LARGEST_STATED) & _survives_size(table, next_size, structure)
        may_be_less = bool(table.record.pseudo) and not structure
        right[table.rows] = is_possible & survives & (may_be_less | ~survives_more)
    return right


def _survives_size(table: DegreeTable, size: IntArray, structure: bool) -> BoolArray:
    """Tells which labels survive this many changes, shape ``[n]``; with ``structure``, no change alters a neighbour."""
    if table.record.second:
        return _survives_size_second(table, size, nodes_per_change=1 if structure else 2)
    if structure:
        number = size.astype(np.float64)
        return _all(table.survives(number, number, 0, together=True))
    return _all(table.survives_any(size))


def _survives_size_second(table: DegreeTable, size: IntArray, nodes_per_change: int) -> BoolArray:
    """As :func:`_survives_size`, if neighbours' neighbours count too. Each change counts as this many nodes."""
    survives = np.zeros(table.num_targets, dtype=bool)
    for number in np.unique(size):
        of_number = size == number
        survives[of_number] = _all(table.part(of_number).survives_second(0, nodes_per_change * int(number)))
    return survives


def _all(survived: BoolArray) -> BoolArray:
    return np.asarray(survived.all(axis=1))


def holds(
    record: StackedRecord, tables: list[DegreeTable], budget: Budget, add_edges: FloatArray | None = None
) -> BoolArray:
    """Tells whether each target survives a budget, shape ``[n]``.

    Args:
        record: Scores and votes of all targets.
        tables: The targets.
        budget: What the attacker may do.
        add_edges: Numbers of added edges to use instead of that of the budget, one for each target.
    """
    require_trusted_training(budget)
    answer = np.zeros(record.num_targets, dtype=bool)
    if budget.target_features:
        return answer
    for table in tables:
        edges = budget.add_edges if add_edges is None else add_edges[table.rows]
        answer[table.rows] = _all(_survives(table, budget, edges))
    return answer


def _survives(table: DegreeTable, budget: Budget, add_edges: FloatArray | float) -> BoolArray:
    """Tells which classes each label survives under a budget with this many added edges, shape ``[n, C]``."""
    joined_nodes = budget.inject_nodes if budget.edges_per_injected > 0 else 0
    if table.record.second:
        nodes = joined_nodes + budget.delete_nodes + 2 * budget.change_features
        return table.survives_second(add_edges + budget.delete_edges, nodes)
    altered = budget.change_features
    if table.record.by_edge:
        altered = altered + budget.change_edges
    return table.survives(add_edges + joined_nodes, budget.delete_edges + budget.delete_nodes, altered)


def stays_ahead(
    record: StackedRecord, tables: list[DegreeTable], budget: Budget, leader: int | None = None
) -> BoolArray:
    """Tells which classes each label survives under a budget, or another class does, shape ``[n, C]``.

    Args:
        record: Scores and votes of all targets.
        tables: The targets.
        budget: What the attacker may do.
        leader: A class to ask about instead of the label.
    """
    require_trusted_training(budget)
    answer = np.zeros((record.num_targets, record.num_classes), dtype=bool)
    if budget.target_features:
        return answer
    for table in tables:
        led = table if leader is None else _table(record, table.rows, table.degree, leader)
        answer[table.rows] = _survives(led, budget, budget.add_edges)
    return answer


def possible(record: StackedRecord, budget: Budget) -> BoolArray:
    """Tells which classes may win under a budget, shape ``[n, C]``."""
    tables = tables_of(record)
    label = label_is(record, tables)
    return may_win(label, record.num_classes, lambda leader: stays_ahead(record, tables, budget, leader))


def but_additions(record: StackedRecord) -> Budget:
    """Returns a budget of any number of deletions and changes. Without ids, no node is deleted."""
    return Budget(
        delete_edges=math.inf,
        change_edges=math.inf,
        delete_nodes=math.inf if record.ids == "node_id" else 0,
        change_features=math.inf,
    )


def right_neighbours(
    record: StackedRecord, tables: list[DegreeTable], rest: Budget, stated: npt.NDArray[Any]
) -> BoolArray:
    """Tells whether each stated number of added edges is the largest that is survived on top of ``rest``, ``[n]``."""
    is_whole = (stated >= -1) & (stated == np.floor(stated)) & (stated <= LARGEST_NEIGHBOURS)
    is_infinite = stated == np.inf
    is_possible = is_whole | is_infinite
    number = np.where(is_possible, stated, -1)
    survives = (number < 0) | holds(record, tables, rest, np.maximum(number, 0))
    survives_more = ~is_infinite & holds(record, tables, rest, np.maximum(number + 1, 0))
    return np.asarray(is_possible & survives & ~survives_more)


def broken(record: StackedRecord, budget: Budget, fails: BoolArray, radius: IntArray, structure: IntArray) -> int:
    """Returns how many targets one attacked graph breaks at most: the cheapest ones first.

    Args:
        record: Scores and votes of all targets.
        budget: What the attacker may do.
        fails: Which targets fail one by one, shape ``[n]``.
        radius: Radius of each target, shape ``[n]``. One change more is what it takes to break a target.
        structure: The same without changes that alter a neighbour, shape ``[n]``.
    """
    if record.second or budget.target_features:
        return int(fails.sum())
    changed_edges = budget.change_edges if record.by_edge else 0
    is_altering = budget.change_features + changed_edges > 0
    needed = (radius if is_altering else structure)[fails] + 1
    left = _changes_at_targets(record, budget, changed_edges)
    number = 0
    for price in np.sort(needed).tolist():
        left -= price
        if left < 0:
            break
        number += 1
    return number


def _changes_at_targets(record: StackedRecord, budget: Budget, changed_edges: float) -> float:
    """Returns at how many places an attacker can change the neighbours of targets, added up over all targets."""
    nodes = min(budget.delete_nodes + budget.change_features, len(record.targets_per_node))
    by_nodes = int(record.targets_per_node[: int(nodes)].sum(dtype=np.int64))
    by_edges = 2 * (budget.add_edges + budget.delete_edges + changed_edges)
    if budget.inject_nodes == 0 or budget.edges_per_injected == 0:
        return by_edges + by_nodes  # 0 times infinity is NaN
    return by_edges + by_nodes + budget.inject_nodes * budget.edges_per_injected
