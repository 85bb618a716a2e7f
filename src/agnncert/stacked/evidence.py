"""Stacked votes: what follows from a score and a list of bounded votes (Theorems 10 and 11). Pure functions.

For a target with label a and a rival k, let delta_j = gate_a vote_a(j) - gate_k vote_k(j) be what neighbour j gives a
over k, and cap = gate_k S the most that any neighbour can give k over a. All numbers are whole, in 1/S^2 votes.
A neighbour that is new costs the label at most ``cap``, one that is lost ``delta_j``, one that is altered
``cap + delta_j``. With i new, l lost and m altered neighbours the lead of a over k, times the divisor D of the votes,
is at least

    (prior_a - prior_k) D' + gate (pseudo_a - pseudo_k) + sum delta - (i + m) cap - (the m + l largest delta)

where D' = S in a sum and pseudo + S (d + i - l) in a mean. This is linear in i, so only no new neighbour and all of
them have to be looked at; every l is looked at. The label holds if the lead stays positive (or zero, if a wins ties),
also after ``slack`` steps of rounding on another machine are taken from every number that was computed.

``recount_stacked`` does the same a second time, in code that imports nothing from here.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.proving.evidence import Evidence
from agnncert.proving.prices import pay
from agnncert.proving.theorems import largest_amount, most_affordable
from agnncert.stacked.record import MOST_NEW, STEPS, StackedRecord

MOST_STATED = 9_999  # largest radius that is stated; answers about budgets can be larger
MOST_NODES = 64  # nodes whose price is found exactly where votes have two levels
ONE, LARGEST_ODDS = 2**16, 2**29  # of factors of odds: parts of one, and the largest that is not taken for infinite
BLOCK = 2**20  # listed votes times classes that are looked at together


@dataclass(frozen=True)
class Touched:
    """How many neighbours of each target an attacker can touch; each is a number or an array of shape ``[n]``.

    Attributes:
        new: New neighbours.
        lost: Lost neighbours.
        altered: Neighbours whose vote changes.
        shared: Whether ``new`` is what all three have in common: each lost neighbour leaves one new one less.
    """

    new: Any
    lost: Any
    altered: Any = 0
    shared: bool = False


class Rival(NamedTuple):
    """What a class k lacks to win instead of the label, for ``n`` targets.

    Attributes:
        k: The class.
        prior: Lead of the label in the prior, shape ``[n]``.
        votes: Lead of the label in the votes, shape ``[n]``.
        cap: The most that a new or altered neighbour gives k over the label, with rounding of k's gate, shape ``[n]``.
        running: Sum of the x largest delta of target j, at ``indptr[j] + j + x``.
        positive: How many delta are positive, shape ``[n]``.
    """

    k: int
    prior: IntArray
    votes: IntArray
    cap: IntArray
    running: IntArray
    positive: IntArray


class Leads:
    """The votes of some targets, sorted so that the worst attack can be read off; ``n`` targets, ``C`` classes.

    Args:
        counts: The votes.
        label: Asks about this class of each target instead of the winner.
    """

    def __init__(self, counts: StackedRecord, label: int | None = None) -> None:
        self.counts, n = counts, counts.num_targets
        self.everyone, self.degree = np.arange(n), counts.degree
        self.owner = np.repeat(self.everyone, self.degree)
        self.cast = counts.table[counts.which].astype(np.int64)
        sums = np.zeros((n, counts.num_classes), dtype=np.int64)
        np.add.at(sums, self.owner, self.cast)
        pseudo = np.array(counts.pseudo_votes or [0] * counts.num_classes, dtype=np.int64)
        self.numerator = counts.gate * (sums + pseudo)
        self.score = counts.prior * self.divisor(self.degree)[:, None] + self.numerator
        winner = self.score.argmax(axis=1)  # ties go to the smaller class
        self.label = winner if label is None else np.full_like(winner, label)

    @property
    def is_label(self) -> BoolArray:
        """Marks each target's label among the classes, shape ``[n, C]``."""
        return np.asarray(np.arange(self.counts.num_classes) == self.label[:, None])

    def divisor(self, degree: IntArray) -> IntArray:
        """What the sum of votes is divided by, given the number of neighbours."""
        if self.counts.pseudo:
            return self.counts.pseudo + STEPS * degree
        return np.full_like(degree, STEPS)

    @cached_property
    def rivals(self) -> "list[Rival]":
        """What each class lacks to win, for all targets."""
        counts, mine = self.counts, (self.everyone, self.label)
        own_prior, own_votes, own_gate = counts.prior[mine], self.numerator[mine], counts.gate[mine]
        own_cast = own_gate[self.owner] * self.cast[np.arange(len(self.owner)), self.label[self.owner]]
        found = []
        for k in range(counts.num_classes):
            delta = own_cast - counts.gate[self.owner, k] * self.cast[:, k]
            width = 2 * int(np.abs(delta).max(initial=0)) + 1
            if counts.num_targets * width < 2**62:  # one sort of whole numbers is faster; owners stay where they are
                delta = self.owner * width - np.sort(self.owner * width - delta)
            else:
                delta = delta[np.lexsort((-delta, self.owner))]
            positive = np.bincount(self.owner[delta > 0], minlength=counts.num_targets)
            lead, cap = own_votes - self.numerator[:, k], (counts.gate[:, k] + counts.slack * counts.gated) * STEPS
            found.append(Rival(k, own_prior - counts.prior[:, k], lead, cap, self._running(delta), positive))
        return found

    def _running(self, delta: IntArray) -> IntArray:
        first = self.counts.indptr[:-1]
        padded = np.insert(delta, first, 0)  # a zero before those of each target
        total = np.cumsum(padded)
        starts = first + self.everyone
        return np.asarray(total - np.repeat(total[starts] if len(total) else total, self.degree + 1))

    def withstands(self, touched: Touched) -> BoolArray:
        """Whether each target keeps its label whatever is done to so many neighbours, shape ``[n]``."""
        return np.asarray(self.stays_ahead(touched).all(axis=1))

    def stays_ahead(self, touched: Touched) -> BoolArray:
        """Of which classes the label stays ahead whatever is done to so many neighbours, ``[n, C]``; of itself, too."""
        counts, n = self.counts, self.counts.num_targets
        new, lost, altered = (np.broadcast_to(np.asarray(v, dtype=np.float64), (n,)) for v in
                              (touched.new, touched.lost, touched.altered))  # fmt: skip
        most = np.minimum(lost, self.degree).astype(np.int64)
        owner = np.repeat(self.everyone, most + 1)
        gone = np.arange(len(owner)) - np.repeat(np.cumsum(most + 1) - most - 1, most + 1)  # 0 to most, each target
        come = np.maximum(new[owner] - gone, 0) if touched.shared else new[owner]
        many = come > MOST_NEW
        arriving: IntArray = np.where(many, 0, come).astype(np.int64)
        other = np.minimum(altered[owner], self.degree[owner] - gone).astype(np.int64)
        place = counts.indptr[owner] + owner + gone + other
        good, kept = np.ones((n, counts.num_classes), dtype=bool), self.degree[owner] - gone
        cases = [(self.divisor(kept + growth), price + other) for growth, price in self._growths(arriving)]
        for k, prior, votes, cap, running, _ in self.rivals:
            base, safe = votes[owner] - running[place] - self._slack(k)[owner], prior[owner] - 2 * counts.slack
            ties = (self.label <= k)[owner]  # the label wins a tie against larger classes
            for divisor, paid in cases:
                lead = safe * divisor + base - paid * cap[owner]
                held = (lead > 0) | ((lead == 0) & ties)
                good[owner[~held], k] = False
            slope = self._slope(prior - 2 * counts.slack, cap)[owner]
            good[owner[many & (slope < 0)], k] = False
        return good | self.is_label

    def _growths(self, come: IntArray) -> list[tuple[IntArray, IntArray]]:
        """How many neighbours a target gains, and for how many of them the attacker pays: the cases to look at."""
        none = np.zeros_like(come)
        if not self.counts.pseudo:
            return [(none, come)]
        cases = [(none, none), (come, come)]
        # A new edge in the other direction of an old pair changes a vote by at most cap, and adds no neighbour.
        return [*cases, (none, come)] if self.counts.by_edge else cases

    def _slope(self, prior: IntArray, cap: IntArray) -> IntArray:
        """What one more new neighbour adds to the lead."""
        grown = prior * STEPS - cap if self.counts.pseudo else -cap
        return np.minimum(grown, -cap) if self.counts.by_edge else grown

    def _slack(self, k: int) -> IntArray:
        """What rounding on another machine may take from the votes of a target, shape ``[n]``."""
        counts, s = self.counts, self.counts.slack
        gates = counts.gate[self.everyone, self.label] + counts.gate[:, k]
        gate_slack = 2 * (STEPS * s + s * s) * counts.gated
        pseudo = sum(counts.pseudo_votes) * s * 2 * counts.gated
        return np.asarray(self.degree * (gates * s + gate_slack) + pseudo)

    def any_radius(self) -> IntArray:
        """How many changes of neighbours, of whatever kind, each target withstands, shape ``[n]``.

        A change costs at most ``cap`` and, for different neighbours, the largest positive delta. In a mean the divisor
        may be anything from that of no old neighbour to that of all new ones, so the bound need not be exact.
        """
        return self._search(lambda size: self.stays_ahead_of_any(size).all(axis=1))

    def structure_radius(self) -> IntArray:
        """How many neighbours may come and go, shape ``[n]``."""
        return self._search(lambda size: self.withstands(Touched(size, size, shared=True)))

    def _search(self, holds: Any) -> IntArray:
        return np.minimum(largest_amount(holds, self.counts.num_targets), MOST_STATED).astype(np.int64)

    def stays_ahead_of_any(self, size: FloatArray) -> BoolArray:
        """As :meth:`stays_ahead`, for ``size`` changes of neighbours of whatever kind, shape ``[n, C]``."""
        counts = self.counts
        many = size > MOST_NEW
        number = np.where(many, 0, size).astype(np.int64)
        touched = np.minimum(np.where(many, self.degree, number), self.degree)
        good = self.is_label
        for k, prior, votes, cap, running, positive in self.rivals:
            top = running[counts.indptr[:-1] + self.everyone + np.minimum(touched, positive)]
            base, safe = votes - top - self._slack(k) - number * cap, prior - 2 * counts.slack
            held = np.ones(counts.num_targets, dtype=bool)
            for degree in (self.degree - touched, self.degree + number):
                lead = safe * self.divisor(degree) + base
                held &= (lead > 0) | ((lead == 0) & (self.label <= k))
            good[:, k] |= held & ~(many & (np.minimum(self._slope(safe, cap), -cap) < 0))
        return good

    def withstands_second(self, edges: FloatArray, nodes: float) -> BoolArray:
        """With two levels: whether each target keeps its label against edges anywhere and nodes, shape ``[n]``."""
        return np.asarray(self.stays_ahead_second(edges, nodes).all(axis=1))

    def stays_ahead_second(self, edges: FloatArray, nodes: float) -> BoolArray:
        """As :meth:`stays_ahead`, with two levels and against edges anywhere and nodes, shape ``[n, C]``.

        An edge anywhere costs at most one vote. A node that comes or goes costs one vote and what it moves the votes of
        all neighbours; see :func:`moved_by_nodes`.
        """
        counts = self.counts
        edges = np.broadcast_to(edges, (counts.num_targets,))
        many, used = (edges > MOST_NEW) | (nodes > MOST_NEW), bool(counts.gate.any())
        price = np.where(many, 0, edges).astype(np.int64) * STEPS**2
        good = self.is_label
        for k in range(counts.num_classes):
            lead = self.lead_second(k, 0 if nodes > MOST_NEW else int(nodes)) - price * used
            good[:, k] |= ((lead > 0) | ((lead == 0) & (self.label <= k))) & ~(many & used)
        return good

    def lead_second(self, k: int, nodes: int) -> IntArray:
        """With two levels: the lead over class ``k`` after so many nodes came or went, shape ``[n]``."""
        counts, rival = self.counts, self.rivals[k]
        lead = (rival.prior - 2 * counts.slack) * STEPS + rival.votes - self._slack(k)
        if nodes and counts.gate.any():
            mine = self.cast[np.arange(len(self.owner)), self.label[self.owner]]
            loss = moved_by_nodes(mine, self.cast[:, k], counts.second, nodes, counts.slack)
            lead = lead - nodes * STEPS**2
            np.subtract.at(lead, self.owner, loss * STEPS)
        return np.asarray(lead)

    def cheapest(self, k: int, new: float, lost: float, altered: float) -> FloatArray:
        """The least price at which class ``k`` may get ahead of the label, shape ``[n]``; infinite if at none.

        With q lost and altered neighbours, the lead depends on their number and on that of new and altered ones. So
        for each q the fewest of the latter are known; as many of them as are cheaper are altered ones.

        Args:
            k: The class.
            new: Price of a new neighbour.
            lost: Price of a lost one.
            altered: Price of one whose vote changes.
        """
        counts, rival = self.counts, self.rivals[k]
        owner = np.repeat(self.everyone, self.degree + 1)
        touched = np.arange(len(owner)) - counts.indptr[owner] - owner  # 0 to all, for each target
        safe = (rival.prior - 2 * counts.slack)[owner]
        lead = safe * self.divisor(self.degree[owner] - touched) + (rival.votes - self._slack(k))[owner] - rival.running
        step = self._slope(safe, rival.cap[owner])
        surplus = lead - (k < self.label[owner])  # the rival wins once this is negative
        steps = np.where(step < 0, surplus // -np.minimum(step, -1) + 1.0, np.inf)
        needed = np.where(surplus < 0, 0.0, steps)
        # In a mean, altering instead of losing a neighbour may help the label: then only so many are altered.
        spare = np.where(step > 0, (-surplus - 1) // np.maximum(step, 1), touched)
        best, most = np.full(len(owner), np.inf), np.clip(spare, 0, touched).astype(np.float64)
        for other in (np.zeros(len(owner)), np.minimum(most, needed), most):
            price = pay(altered, other) + pay(lost, touched - other) + pay(new, needed - other)
            best = np.minimum(best, price)
        cheapest = np.full(counts.num_targets, np.inf)
        np.minimum.at(cheapest, owner, best)
        return cheapest

    def cheapest_second(self, k: int, edge: float, node: float, features: float) -> FloatArray:
        """As :meth:`cheapest`, with two levels; for more than 64 nodes a bound.

        Args:
            k: The class.
            edge: Price of an edge that is added or deleted, anywhere.
            node: Price of a node that comes or goes.
            features: Price of other features, which count as two nodes.
        """
        best, counts = np.full(len(self.label), np.inf), self.counts
        used = bool(counts.gate.any())
        for nodes in range(MOST_NODES + 2):
            pairs = np.arange(nodes // 2 + 1)
            price = float((pay(features, pairs) + pay(node, nodes - 2 * pairs)).min())
            price = min(price, float(pay(features, (nodes + 1) // 2)))
            if not math.isfinite(price) or (nodes and not used):
                break
            if nodes > MOST_NODES:
                return np.asarray(np.minimum(best, price))
            surplus = self.lead_second(k, nodes) - (k < self.label)
            edges = np.where(surplus < 0, 0.0, surplus // STEPS**2 + 1.0 if used else np.inf)
            best = np.minimum(best, price + pay(edge, edges))
            if (surplus < 0).all():
                break
        return best


def moved_by_nodes(own: IntArray, rival: IntArray, second: int, nodes: int, slack: int) -> IntArray:
    """Steps by which ``nodes`` nodes that come or go can move votes from the label to a rival, shape ``[m]``.

    They multiply the odds p / (1 - p) of each class by at most exp(second * nodes), or divide it. A vote may have been
    read ``slack`` steps higher or lower, and lies less than one step above what is read.
    """
    factor = grown_odds(second, nodes)
    low, high = np.maximum(own - slack, 0), np.minimum(rival + slack + 1, STEPS)
    if factor is None:
        return np.asarray(own - rival + STEPS)
    fallen = STEPS * low * ONE // (low * ONE + factor * (STEPS - low))
    risen = STEPS * factor * high // (factor * high + ONE * (STEPS - high))
    return np.asarray(own - rival - fallen + risen)


def grown_odds(second: int, nodes: int) -> int | None:
    """exp(second * nodes / STEPS) in parts of 1 / ONE, rounded up; None if it is too large to matter.

    exp(y) <= 1 / (1 - y) is used for a small y, and its powers are rounded up: whole numbers, alike on every machine.
    """
    once = -(-(2**54) // (2**26 - second))
    for _ in range(10):
        once = -(-once * once // 2**28)
    base: int | None = -(-once // 2**12)
    power: int | None = ONE
    while nodes:
        power, base, nodes = _product(power, base) if nodes % 2 else power, _product(base, base), nodes // 2
    return power


def _product(x: int | None, y: int | None) -> int | None:
    if x is None or y is None:
        return None
    product = -(-x * y // ONE)
    return product if product <= LARGEST_ODDS else None


@dataclass(frozen=True)
class StackedEvidence(StackedRecord, Evidence):
    """Stacked votes, and the answers that follow from them; fields as in :class:`StackedRecord`."""

    kind: ClassVar[str] = "stacked"
    possible_takes_long: ClassVar[bool] = True

    @property
    def counts_neighbours(self) -> bool:
        """Whether every neighbour's vote may be an attacker's; those of trusted edges are not."""
        return self.trusted < 0

    @cached_property
    def counts(self) -> IntArray:
        """Score of each class in steps, rounded down, shape ``[n, C]``."""
        scores = np.zeros(self.prior.shape, dtype=np.int64)
        for part, leads in self._leads:
            scores[part] = leads.score // leads.divisor(leads.degree)[:, None]
        return scores

    def count_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the scores in votes, a column of shape ``[n]`` for each class, called ``score_0`` and so on."""
        return {f"score_{k}": scores / STEPS for k, scores in enumerate(self.counts.T)}

    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """Class with the largest score, and how many changes of any kind it withstands."""
        label, radius = (np.zeros(self.num_targets, dtype=np.int64) for _ in range(2))
        for part, leads in self._leads:
            label[part] = leads.label
            radius[part] = self._second_radius(leads, 2) if self.second else leads.any_radius()
        return label, radius

    def structure_radius(self) -> IntArray:
        """How many edges and nodes may be added or deleted in all, shape ``[n]``."""
        radius = np.zeros(self.num_targets, dtype=np.int64)
        for part, leads in self._leads:
            radius[part] = self._second_radius(leads, 1) if self.second else leads.structure_radius()
        return radius

    def _second_radius(self, leads: Leads, nodes_each: int) -> IntArray:
        """As a search, with so many nodes that come or go for each change: altering one is deleting and injecting."""
        radius = np.full(leads.counts.num_targets, -1, dtype=np.int64)
        size, going = 0, np.ones(len(radius), dtype=bool)
        while going.any() and size <= MOST_STATED:
            going &= leads.withstands_second(np.zeros(1), nodes_each * size)
            radius[going] = size
            if going.any() and bool(leads.withstands_second(np.full(1, np.inf), np.inf)[going].all()):
                radius[going] = MOST_STATED
                break
            size += 1
        return radius

    def holds(self, budget: Budget) -> BoolArray:
        """Whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``."""
        answer = np.zeros(self.num_targets, dtype=bool)
        if budget.target_features:
            return answer
        for part, leads in self._leads:
            answer[part] = self._stays_ahead(leads, budget).all(axis=1)
        return answer

    def possible(self, at: Budget | float) -> BoolArray:
        """Which classes may win under an attack, shape ``[n, C]``; all if the target's own features may change.

        A class is possible if an attack can bring it ahead of the label, and some attack, perhaps another one, ahead of
        each other class. So this is a bound, for two classes as exact as Theorem 10.
        """
        if isinstance(at, Budget) and at.target_features:
            return np.ones(self.prior.shape, dtype=bool)
        answer = np.zeros(self.prior.shape, dtype=bool)
        for part, leads in self._leads:
            found = ~self._stays_ahead(leads, at) | leads.is_label
            several = np.flatnonzero(found.sum(axis=1) > 2)
            some = self.part(part.start + several)
            for k in range(self.num_classes if len(several) else 0):
                behind = self._stays_ahead(Leads(some, k), at) & (np.arange(self.num_classes) != k)
                found[several] &= ~behind | leads.is_label[several]
            answer[part] = found
        return answer

    def holds_each(self, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """As :meth:`holds`, but ``field`` of the budget differs by target, ``amounts`` of shape ``[n]``."""
        if rest.target_features:
            return np.zeros(self.num_targets, dtype=bool)
        if self.second or field == "edges_per_injected":
            return super().holds_each(rest, field, amounts)
        answer = np.zeros(self.num_targets, dtype=bool)
        for part, leads in self._leads:
            each = {name: getattr(rest, name) for name in COUNTS} | {field: amounts[part]}
            answer[part] = self._stays_ahead(leads, SimpleNamespace(**each)).all(axis=1)
        return answer

    def _stays_ahead(self, leads: Leads, budget: Any) -> BoolArray:
        if isinstance(budget, (int, float)):  # a size in the unit of the radius
            if budget < 0:
                return np.ones(leads.score.shape, dtype=bool)
            if self.second:
                return leads.stays_ahead_second(np.zeros(1), 2 * math.ceil(min(budget, MOST_NEW + 1)))
            return leads.stays_ahead_of_any(np.full(len(leads.label), np.ceil(budget)))
        joined = budget.inject_nodes if budget.edges_per_injected else 0
        if self.second:
            # Copies and values of edges are not read. A node without edges is no neighbour of anybody.
            nodes = joined + budget.delete_nodes + 2 * budget.change_features
            return leads.stays_ahead_second(np.array([budget.add_edges + budget.delete_edges]), nodes)
        altered = budget.change_features + (budget.change_edges if self.by_edge else 0)
        lost = budget.delete_edges + budget.delete_nodes
        return leads.stays_ahead(Touched(budget.add_edges + joined, lost, altered))

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """A price that every attack costs at least which changes the label of a target, shape ``[n]`` (Theorem 13).

        Exact in the votes of a sum, and of a mean that reads no edge values; elsewhere a bound.
        """
        p, joined = prices, prices.inject_nodes + prices.injected_edges
        altered, answer = (
            min(p.change_features, p.change_edges if self.by_edge else math.inf),
            np.zeros(self.num_targets),
        )
        for part, leads in self._leads:
            best = np.full(len(leads.label), float(p.target_features))  # nothing is proved about it
            for k in range(self.num_classes) if label is None else [label]:
                if self.second:
                    edge, node = min(p.add_edges, p.delete_edges), min(joined, p.delete_nodes)
                    price = leads.cheapest_second(k, edge, node, p.change_features)
                else:
                    price = leads.cheapest(k, min(p.add_edges, joined), min(p.delete_edges, p.delete_nodes), altered)
                price[leads.label == k] = np.inf if label is None else 0.0
                best = np.minimum(best, price)
            answer[part] = best
        return answer

    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """How many targets one attacked graph can break at most.

        A change at one pair touches its two ends, a node that is deleted or altered touches its neighbours. A target
        breaks only if as many of its neighbours are touched as its radius says, and one more.
        """
        fails = ~self.holds(budget)
        fails &= True if among is None else among
        if self.second or budget.target_features:
            return int(fails.sum())
        altered = budget.change_features + (budget.change_edges if self.by_edge else 0)
        prices = (self.label_and_radius()[1] if altered else self.structure_radius())[fails] + 1
        pairs = budget.add_edges + budget.delete_edges + (budget.change_edges if self.by_edge else 0)
        targets_per_node = self.targets_per_node[
            : int(min(len(self.targets_per_node), budget.delete_nodes + budget.change_features))
        ]
        touches = 2 * pairs + budget.injected_edges + float(targets_per_node.sum(dtype=np.int64))
        return most_affordable(prices.astype(np.float64), touches)

    @cached_property
    def _leads(self) -> list[tuple[slice, Leads]]:
        ends = np.searchsorted(self.indptr, np.arange(0, len(self.which) + BLOCK, BLOCK // self.num_classes))
        cuts = np.unique(np.concatenate([[0], np.minimum(ends, self.num_targets), [self.num_targets]])).tolist()
        parts = [slice(first, last) for first, last in pairwise(cuts)]
        return [(part, Leads(self.part(np.arange(part.start, part.stop)))) for part in parts]
