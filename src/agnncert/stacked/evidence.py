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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import LARGEST_RADIUS, Evidence, PageRules
from agnncert.proving.prices import pay
from agnncert.proving.theorems import Amounts, largest_amount, most_affordable
from agnncert.proving.words import Subject, Words
from agnncert.stacked.record import MOST_NEW, STEPS, StackedRecord
from agnncert.stacked.words import stacked_words

MOST_NODES = 64  # nodes whose price is found exactly where votes have two levels
ONE = 2**16  # parts of one, in which factors of odds are counted
LARGEST_ODDS = 2**29  # the largest factor of odds that is not taken for infinite
MOST_IN_PAGE = 1_000_000  # listed votes in a page
MOST_NODES_IN_PAGE = 4_096
BLOCK = 2**20  # listed votes times classes that are looked at together


@dataclass(frozen=True)
class Touched:
    """How many neighbours of each target an attacker can touch. Each is a number or an array of shape ``[n]``.

    Attributes:
        new: New neighbours.
        lost: Lost neighbours.
        altered: Neighbours whose vote changes.
        shared: Whether ``new`` is what new and lost ones have in common: each lost neighbour leaves one new one less.
    """

    new: FloatArray | float
    lost: FloatArray | float
    altered: FloatArray | float = 0
    shared: bool = False


class Rival(NamedTuple):
    """What a class k lacks to win instead of the label, for ``n`` targets.

    Attributes:
        k: The class.
        prior: Lead of the label in the prior, shape ``[n]``.
        votes: Lead of the label in the votes, shape ``[n]``.
        cap: The most that a new or altered neighbour gives k over the label, with rounding of k's gate, shape ``[n]``.
        sum_of_largest: Sum of the x largest delta of target j, at ``indptr[j] + j + x``.
        cost_of_new: The most that a new neighbour takes from the lead, shape ``[n]``.
        cost_of_touched: What a lost or an altered one takes beside its delta, the larger of both, shape ``[n]``.
        num_worth: How many neighbours are worth more to an attacker than as many new ones, shape ``[n]``.
    """

    k: int
    prior: IntArray
    votes: IntArray
    cap: IntArray
    sum_of_largest: IntArray
    cost_of_new: IntArray
    cost_of_touched: IntArray
    num_worth: IntArray


class Growth(NamedTuple):
    """A case of new neighbours, for some targets.

    Attributes:
        gained: How many neighbours a target has more, which the divisor of a mean counts.
        paid: How many of the new neighbours give all they can to the rival.
    """

    gained: IntArray
    paid: IntArray


class Leads:
    """The votes of some targets, sorted so that the worst attack can be read off.

    There are ``n`` targets, ``m`` neighbours and ``C`` classes.

    Args:
        record: The votes.
        label: Asks about this class of each target. Defaults to the winner.

    Attributes:
        degree: Number of neighbours of each target, shape ``[n]``.
        owner: Target of each neighbour, shape ``[m]``.
        vote: Vote of each neighbour, shape ``[m, C]``.
        numerator: Votes of each class, times its gate, shape ``[n, C]``.
        score: Score of each class, times the divisor, shape ``[n, C]``.
        label: The class that is asked about, shape ``[n]``.
    """

    def __init__(self, record: StackedRecord, label: int | None = None) -> None:
        self.record = record
        self.everyone = np.arange(record.num_targets)
        self.degree = record.degree
        self.owner = np.repeat(self.everyone, self.degree)
        self.vote = record.table[record.which].astype(np.int64)
        sums = np.zeros((record.num_targets, record.num_classes), dtype=np.int64)
        np.add.at(sums, self.owner, self.vote)
        pseudo_votes = np.array(record.pseudo_votes or [0] * record.num_classes, dtype=np.int64)
        self.numerator = record.gate * (sums + pseudo_votes)
        self.score = record.prior * self.divisor(self.degree)[:, None] + self.numerator
        winner = self.score.argmax(axis=1)  # ties go to the smaller class
        self.label = winner if label is None else np.full_like(winner, label)

    @property
    def is_label(self) -> BoolArray:
        """Marks each target's label among the classes, shape ``[n, C]``."""
        return np.asarray(np.arange(self.record.num_classes) == self.label[:, None])

    def divisor(self, degree: IntArray) -> IntArray:
        """Returns what the sum of votes is divided by, given the number of neighbours."""
        if self.record.pseudo:
            return self.record.pseudo + STEPS * degree
        return np.full_like(degree, STEPS)

    @cached_property
    def rivals(self) -> list[Rival]:
        """What each class lacks to win, for all targets."""
        record = self.record
        prior_of_label = record.prior[self.everyone, self.label]
        votes_of_label = self.numerator[self.everyone, self.label]
        gate_of_label = record.gate[self.everyone, self.label]
        given_to_label = gate_of_label[self.owner] * self._vote_for_label
        rivals = []
        for k in range(record.num_classes):
            delta = self._largest_first(given_to_label - record.gate[self.owner, k] * self.vote[:, k])
            prior = prior_of_label - record.prior[:, k]
            cap = (record.gate[:, k] + record.slack * record.gated) * STEPS
            growth = self._safe(prior) * STEPS * bool(record.pseudo)
            cost_of_new = np.maximum(-self._slope(self._safe(prior), cap), 0)
            cost_of_touched = np.maximum(cap, growth)
            is_worth_more = delta > (cost_of_new - cost_of_touched)[self.owner]
            rival = Rival(
                k=k,
                prior=prior,
                votes=votes_of_label - self.numerator[:, k],
                cap=cap,
                sum_of_largest=self._sums_of_largest(delta),
                cost_of_new=cost_of_new,
                cost_of_touched=cost_of_touched,
                num_worth=np.bincount(self.owner[is_worth_more], minlength=record.num_targets),
            )
            rivals.append(rival)
        return rivals

    @property
    def _vote_for_label(self) -> IntArray:
        """Vote of each neighbour for the label of its target, shape ``[m]``."""
        return np.asarray(self.vote[np.arange(len(self.owner)), self.label[self.owner]])

    def _largest_first(self, delta: IntArray) -> IntArray:
        """Sorts the values of each target, the largest first, shape ``[m]``. Owners stay where they are."""
        width = 2 * int(np.abs(delta).max(initial=0)) + 1
        if self.record.num_targets * width < 2**62:  # one sort of whole numbers is faster
            return np.asarray(self.owner * width - np.sort(self.owner * width - delta))
        return np.asarray(delta[np.lexsort((-delta, self.owner))])

    def _sums_of_largest(self, delta: IntArray) -> IntArray:
        """Returns the sum of the first x values of target j, at ``indptr[j] + j + x``, shape ``[m + n]``."""
        first = self.record.indptr[:-1]
        padded = np.insert(delta, first, 0)  # a zero before those of each target
        total = np.cumsum(padded)
        if not len(total):
            return total
        before = total[first + self.everyone]
        return np.asarray(total - np.repeat(before, self.degree + 1))

    def withstands(self, touched: Touched) -> BoolArray:
        """Returns whether each target keeps its label whatever is done to this many neighbours, shape ``[n]``."""
        return np.asarray(self.stays_ahead(touched).all(axis=1))

    def stays_ahead(self, touched: Touched) -> BoolArray:
        """Returns of which classes the label stays ahead whatever is done to this many neighbours, shape ``[n, C]``.

        The label counts as ahead of itself.
        """
        # One entry for each target and each number of lost neighbours.
        owner, num_lost = self._numbers_of_lost(self._per_target(touched.lost))
        kept = self.degree[owner] - num_lost
        most_new = self._per_target(touched.new)[owner]
        if touched.shared:
            most_new = np.maximum(most_new - num_lost, 0)
        unlimited = most_new > MOST_NEW
        num_new: IntArray = np.where(unlimited, 0, most_new).astype(np.int64)
        num_altered = np.minimum(self._per_target(touched.altered)[owner], kept).astype(np.int64)
        entry = self.record.indptr[owner] + owner + num_lost + num_altered
        cases = []
        for growth in self._growths(num_new):
            cases.append((self.divisor(kept + growth.gained), growth.paid + num_altered))
        ahead = np.ones((self.record.num_targets, self.record.num_classes), dtype=bool)
        for rival in self.rivals:
            prior = self._safe_prior(rival)
            votes = rival.votes[owner] - rival.sum_of_largest[entry] - self._slack(rival.k)[owner]
            for divisor, num_for_rival in cases:
                lead = prior[owner] * divisor + votes - num_for_rival * rival.cap[owner]
                held = self._is_ahead(lead, rival.k, owner)
                ahead[owner[~held], rival.k] = False
            slope = self._slope(prior, rival.cap)[owner]
            ahead[owner[unlimited & (slope < 0)], rival.k] = False
        return ahead | self.is_label

    def _per_target(self, amount: FloatArray | float) -> FloatArray:
        return np.broadcast_to(np.asarray(amount, dtype=np.float64), (self.record.num_targets,))

    def _numbers_of_lost(self, lost: FloatArray) -> tuple[IntArray, IntArray]:
        """Returns every number of lost neighbours, from 0 to the most, of each target, and whose it is."""
        most = np.minimum(lost, self.degree).astype(np.int64)
        owner = np.repeat(self.everyone, most + 1)
        first = np.cumsum(most + 1) - (most + 1)
        return owner, np.arange(len(owner)) - np.repeat(first, most + 1)

    def _safe_prior(self, rival: Rival) -> IntArray:
        """Returns the lead in the prior that is left after rounding on another machine, shape ``[n]``."""
        return self._safe(rival.prior)

    def _safe(self, prior: IntArray) -> IntArray:
        return prior - 2 * self.record.slack

    def _is_ahead(self, lead: IntArray, k: int, owner: IntArray | None = None) -> BoolArray:
        """Returns whether the label is ahead of class k with this lead. It wins a tie against larger classes.

        Args:
            lead: Lead of the label.
            k: The class.
            owner: Whose lead it is. Defaults to that of each target.
        """
        wins_ties = self.label <= k
        if owner is not None:
            wins_ties = wins_ties[owner]
        return np.asarray((lead > 0) | ((lead == 0) & wins_ties))

    def _growths(self, num_new: IntArray) -> list[Growth]:
        """Returns the cases of this many new neighbours that have to be looked at."""
        none = np.zeros_like(num_new)
        if not self.record.pseudo:
            return [Growth(none, num_new)]
        growths = [Growth(none, none), Growth(num_new, num_new)]
        if self.record.by_edge:
            # A new edge in the other direction of an old pair changes a vote by at most cap, and adds no neighbour.
            growths.append(Growth(none, num_new))
        return growths

    def _slope(self, prior: IntArray, cap: IntArray) -> IntArray:
        """Returns what one more new neighbour adds to the lead."""
        slope = prior * STEPS - cap if self.record.pseudo else -cap
        if self.record.by_edge:
            return np.minimum(slope, -cap)
        return slope

    def _slack(self, k: int) -> IntArray:
        """Returns what rounding on another machine may take from the votes of a target, shape ``[n]``."""
        record = self.record
        slack = record.slack
        gates = record.gate[self.everyone, self.label] + record.gate[:, k]
        by_gates = 2 * (STEPS * slack + slack * slack) * record.gated
        by_pseudo = sum(record.pseudo_votes) * slack * 2 * record.gated
        return np.asarray(self.degree * (gates * slack + by_gates) + by_pseudo)

    def any_radius(self) -> IntArray:
        """Returns how many changes of neighbours, of whatever kind, each target withstands, shape ``[n]``.

        In a mean, a neighbour more or less also changes what the prior counts for. The lead is linear in the numbers of
        new, lost and altered neighbours, so that each change has a cost of its own, and the dearest ones are chosen.
        """
        return self._search(lambda size: np.asarray(self.stays_ahead_of_any(size).all(axis=1)))

    def structure_radius(self) -> IntArray:
        """Returns how many neighbours may come and go, shape ``[n]``."""
        return self._search(lambda size: self.withstands(Touched(size, size, shared=True)))

    def _search(self, holds: Callable[[FloatArray], BoolArray]) -> IntArray:
        largest = largest_amount(holds, self.record.num_targets)
        return np.minimum(largest, LARGEST_RADIUS).astype(np.int64)

    def stays_ahead_of_any(self, size: FloatArray) -> BoolArray:
        """Returns of which classes the label stays ahead after ``size`` changes of neighbours, shape ``[n, C]``.

        The changes may be of any kinds.

        Args:
            size: Number of changes for each target, shape ``[n]``.
        """
        unlimited = size > MOST_NEW
        number = np.where(unlimited, self.degree, size).astype(np.int64)
        most_touched = np.minimum(number, self.degree)
        ahead = self.is_label
        for rival in self.rivals:
            num_touched = np.minimum(most_touched, rival.num_worth)
            entry = self.record.indptr[:-1] + self.everyone + num_touched
            taken = rival.sum_of_largest[entry] + num_touched * rival.cost_of_touched
            taken += (number - num_touched) * rival.cost_of_new
            before = self._safe_prior(rival) * self.divisor(self.degree) + rival.votes - self._slack(rival.k)
            held = self._is_ahead(before - taken, rival.k)
            ahead[:, rival.k] |= held & ~(unlimited & (rival.cost_of_new > 0))
        return ahead

    def withstands_second(self, edges: FloatArray, nodes: float) -> BoolArray:
        """Returns whether each target keeps its label with two levels, against edges anywhere and nodes, ``[n]``."""
        return np.asarray(self.stays_ahead_second(edges, nodes).all(axis=1))

    def stays_ahead_second(self, edges: FloatArray, nodes: float) -> BoolArray:
        """Returns of which classes the label stays ahead with two levels, against edges anywhere and nodes, ``[n, C]``.

        An edge anywhere costs at most one vote. A node that comes or goes costs one vote and what it moves the votes of
        all neighbours, which :func:`moved_by_nodes` says.
        """
        edges = np.broadcast_to(edges, (self.record.num_targets,))
        unlimited = (edges > MOST_NEW) | (nodes > MOST_NEW)
        num_nodes = 0 if nodes > MOST_NEW else int(nodes)
        price = np.where(unlimited, 0, edges).astype(np.int64) * STEPS**2
        votes_count = bool(self.record.gate.any())
        ahead = self.is_label
        for k in range(self.record.num_classes):
            lead = self.lead_second(k, num_nodes) - price * votes_count
            ahead[:, k] |= self._is_ahead(lead, k) & ~(unlimited & votes_count)
        return ahead

    def lead_second(self, k: int, nodes: int) -> IntArray:
        """Returns the lead over class ``k`` with two levels, after this many nodes came or went, shape ``[n]``."""
        record = self.record
        rival = self.rivals[k]
        lead = self._safe_prior(rival) * STEPS + rival.votes - self._slack(k)
        if nodes and record.gate.any():
            loss = moved_by_nodes(self._vote_for_label, self.vote[:, k], record.second, nodes, record.slack)
            lead = lead - nodes * STEPS**2
            np.subtract.at(lead, self.owner, loss * STEPS)
        return np.asarray(lead)

    def cheapest(self, k: int, new: float, lost: float, altered: float) -> FloatArray:
        """Returns the least price at which class ``k`` may get ahead of the label, shape ``[n]``; infinite if at none.

        With q lost and altered neighbours, the lead depends on their number and on that of new and altered ones. So
        for each q the fewest of the latter are known. As many of them as are cheaper are altered ones.

        Args:
            k: The class.
            new: Price of a new neighbour.
            lost: Price of a lost one.
            altered: Price of one whose vote changes.
        """
        rival = self.rivals[k]
        # One entry for each target and each number of its neighbours that are lost or altered.
        owner = np.repeat(self.everyone, self.degree + 1)
        touched = np.arange(len(owner)) - self.record.indptr[owner] - owner
        prior = self._safe_prior(rival)[owner]
        votes = (rival.votes - self._slack(k))[owner] - rival.sum_of_largest
        lead = prior * self.divisor(self.degree[owner] - touched) + votes
        slope = self._slope(prior, rival.cap[owner])
        surplus = lead - (k < self.label[owner])  # the rival wins once this is negative
        steps = np.where(slope < 0, surplus // -np.minimum(slope, -1) + 1.0, np.inf)
        needed = np.where(surplus < 0, 0.0, steps)
        # In a mean, altering instead of losing a neighbour may help the label: then only that many are altered.
        spare = np.where(slope > 0, (-surplus - 1) // np.maximum(slope, 1), touched)
        most_altered = np.clip(spare, 0, touched).astype(np.float64)
        best = np.full(len(owner), np.inf)
        for num_altered in (np.zeros(len(owner)), np.minimum(most_altered, needed), most_altered):
            price = pay(altered, num_altered) + pay(lost, touched - num_altered) + pay(new, needed - num_altered)
            best = np.minimum(best, price)
        cheapest = np.full(self.record.num_targets, np.inf)
        np.minimum.at(cheapest, owner, best)
        return cheapest

    def cheapest_second(self, k: int, edge: float, node: float, features: float) -> FloatArray:
        """Returns the same as :meth:`cheapest`, with two levels. For more than 64 nodes the price is a bound.

        Args:
            k: The class.
            edge: Price of an edge that is added or deleted, anywhere.
            node: Price of a node that comes or goes.
            features: Price of other features, which count as two nodes.
        """
        best = np.full(len(self.label), np.inf)
        votes_count = bool(self.record.gate.any())
        for nodes in range(MOST_NODES + 2):
            price = _price_of_nodes(nodes, node, features)
            if not math.isfinite(price) or (nodes and not votes_count):
                break
            if nodes > MOST_NODES:
                return np.asarray(np.minimum(best, price))
            surplus = self.lead_second(k, nodes) - (k < self.label)
            edges_needed = surplus // STEPS**2 + 1.0 if votes_count else np.full(len(surplus), np.inf)
            edges_needed = np.where(surplus < 0, 0.0, edges_needed)
            best = np.minimum(best, price + pay(edge, edges_needed))
            if (surplus < 0).all():
                break
        return best


def _price_of_nodes(nodes: int, node: float, features: float) -> float:
    """Returns the least price of this many nodes that come or go. A node with other features counts as two."""
    pairs = np.arange(nodes // 2 + 1)
    mixed = (pay(features, pairs) + pay(node, nodes - 2 * pairs)).min()
    by_features = pay(features, (nodes + 1) // 2)
    return min(float(mixed), float(by_features))


def moved_by_nodes(own: IntArray, rival: IntArray, second: int, nodes: int, slack: int) -> IntArray:
    """Returns the steps by which ``nodes`` nodes that come or go can move votes from the label to a rival, ``[m]``.

    They multiply the odds p / (1 - p) of each class by at most exp(second * nodes), or divide it. A vote may have been
    read ``slack`` steps higher or lower, and lies less than one step above what is read.

    Args:
        own: Vote of each neighbour for the label, in steps, shape ``[m]``.
        rival: Its vote for the rival, in steps, shape ``[m]``.
        second: Factor of the neighbours' neighbours, in steps.
        nodes: How many nodes come or go.
        slack: Steps by which another machine may compute a vote differently.
    """
    factor = grown_odds(second, nodes)
    if factor is None:
        return np.asarray(own - rival + STEPS)
    low = np.maximum(own - slack, 0)
    high = np.minimum(rival + slack + 1, STEPS)
    fallen = STEPS * low * ONE // (low * ONE + factor * (STEPS - low))
    risen = STEPS * factor * high // (factor * high + ONE * (STEPS - high))
    return np.asarray(own - rival - fallen + risen)


def grown_odds(second: int, nodes: int) -> int | None:
    """Returns exp(second * nodes / STEPS) in parts of 1 / ONE, rounded up. It is None if it is too large to matter.

    exp(y) <= 1 / (1 - y) is used for a small y, and its powers are rounded up. All numbers are whole, so that the
    result is the same on every machine.
    """
    once = -(-(2**54) // (2**26 - second))
    for _ in range(10):
        once = -(-once * once // 2**28)
    base: int | None = -(-once // 2**12)
    power: int | None = ONE
    while nodes:
        if nodes % 2:
            power = _product(power, base)
        base = _product(base, base)
        nodes = nodes // 2
    return power


def _product(x: int | None, y: int | None) -> int | None:
    """Returns the product of two factors in parts of 1 / ONE, rounded up. It is None if it is too large to matter."""
    if x is None or y is None:
        return None
    product = -(-x * y // ONE)
    if product > LARGEST_ODDS:
        return None
    return product


@dataclass(frozen=True, repr=False)
class StackedEvidence(StackedRecord, Evidence):
    """Stacked votes, and the answers that follow from them. Fields are as in :class:`StackedRecord`."""

    kind: ClassVar[str] = "stacked"
    possible_takes_long: ClassVar[bool] = True
    entries_at_once: ClassVar[int] = BLOCK

    def __repr__(self) -> str:
        num_targets, num_classes = self.prior.shape
        return f"StackedEvidence({num_targets:,} targets, {num_classes} classes)"

    @property
    def largest_finite(self) -> float:
        """``MOST_NEW`` new neighbours: more of them count as any number."""
        return MOST_NEW

    @property
    def counts_neighbours(self) -> bool:
        """Whether every neighbour's vote may be an attacker's; those of trusted edges are not."""
        return self.trusted < 0

    @property
    def only_target_matters(self) -> bool:
        """Whether votes depend on their own node alone: with two levels they depend on its neighbours, too."""
        return not self.second

    @property
    def judges_known_changes(self) -> bool:
        """Whether no edge is trusted: which ones are is in the graph, not in the votes."""
        return self.trusted < 0

    @property
    def entries_per_target(self) -> IntArray:
        """One number for each class and neighbour, and one for the target itself."""
        return self.num_classes * (self.degree + 1)

    @cached_property
    def counts(self) -> IntArray:
        """Score of each class in steps, rounded down, shape ``[n, C]``."""

        def scores(rows: Rows) -> IntArray:
            leads = self._leads(rows)
            return np.asarray(leads.score // leads.divisor(leads.degree)[:, None])

        return self.in_blocks(scores, np.int64, self.num_classes)

    def labels(self) -> IntArray:
        """Returns the class with the largest score, shape ``[n]``. Scores are compared before they are rounded."""
        return self.in_blocks(lambda rows: self._leads(rows).label, np.int64)

    def count_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the scores in votes, a column of shape ``[n]`` for each class, called ``score_0`` and so on."""
        return {f"score_{k}": scores / STEPS for k, scores in enumerate(self.counts.T)}

    def radius(self) -> IntArray:
        """Returns how many changes of any kind each label withstands, shape ``[n]``; faster than asking about sizes."""

        def radius(rows: Rows) -> IntArray:
            leads = self._leads(rows)
            # A node that is altered counts as one that is deleted and one that is injected.
            return _radius_second(leads, nodes_per_change=2) if self.second else leads.any_radius()

        return self.in_blocks(radius, np.int64)

    def structure_radius(self) -> IntArray:
        """Returns how many edges and nodes may be added or deleted in all, shape ``[n]``."""

        def radius(rows: Rows) -> IntArray:
            leads = self._leads(rows)
            return _radius_second(leads, nodes_per_change=1) if self.second else leads.structure_radius()

        return self.in_blocks(radius, np.int64)

    def may_state(self, name: str, stated: IntArray, derived: IntArray) -> bool:
        """Returns whether a file may state these numbers.

        The radius of a mean may be a smaller one: files that were made before it was exact state such radii.
        """
        if name != "radius" or not self.pseudo:
            return super().may_state(name, stated, derived)
        return stated.shape == derived.shape and bool((stated <= derived).all())

    @property
    def reads_graph(self) -> bool:
        """Whether votes of neighbours count for some target."""
        return self.uses_votes

    def no_edge_labels(self) -> IntArray | None:
        """Returns the class with the largest score of each target without edges, shape ``[n]``.

        It is None if some edges are trusted, because their votes are a part of the prior.
        """
        scores = self.no_edge_scores()
        return None if scores is None else np.asarray(scores.argmax(axis=1))

    def no_edge_scores(self) -> IntArray | None:
        """Returns the score of each class for each target without edges, times a number, shape ``[n, C]``."""
        if self.trusted >= 0:
            return None
        if not self.pseudo:
            return self.prior
        return np.asarray(self.prior * self.pseudo + self.gate * np.array(self.pseudo_votes))

    def page_rules(self) -> PageRules | None:
        """Returns the scores and votes, with which a page counts again.

        It is None if the votes are too many for a page, or if thousands of nodes would have to be tried for one answer.
        """
        if _matter_beyond(self.second, MOST_NODES_IN_PAGE) or len(self.which) > MOST_IN_PAGE:
            return None
        presets: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
            ("Three new edges", {"add_edges": 3}, ()),
            ("Three fake accounts, any edges", {"inject_nodes": 3}, ("edges_per_injected",)),
            ("Three edges deleted", {"delete_edges": 3}, ()),
        ]
        if self.by_edge:
            presets.append(("Three edges with other values", {"change_edges": 3}, ()))
        return PageRules(
            "stacked",
            {
                "prior": self.prior.ravel(),
                "gate": self.gate.ravel(),
                "num_votes": self.degree,
                "which": self.which,
                "table": self.table.ravel(),
                "targets_per_node": self.targets_per_node,
            },
            tuple(presets),
        )

    def words(self, subject: Subject) -> Words:
        """Returns the words for stacked votes, and for a model that does not use them."""
        return stacked_words(self, subject)

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved: everything is covered but changed features of the target itself."""
        return not budget.target_features

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead under an attack, as Theorem 10 or 11 says, ``[b, C]``."""
        leads = self._leads(rows, leader)
        if isinstance(attack, Budget):
            return self._stays_ahead(leads, Amounts.of(attack))
        return self._stays_ahead_of_size(leads, attack)

    def hold_each(self, rows: Rows, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """Returns which labels hold against budgets whose ``field`` differs by target, ``[b]``; all are asked at once.

        Args:
            rows: The ``b`` targets.
            rest: The budget without that field.
            field: Name of a field of the budget that counts something.
            amounts: Amount of that field for each target, shape ``[b]``.
        """
        if self.second or field == "edges_per_injected" or not self.covers(rest):
            return super().hold_each(rows, rest, field, amounts)
        attack = Amounts.of(rest, field, amounts)
        return np.asarray(self._stays_ahead(self._leads(rows), attack).all(axis=1))

    def _stays_ahead(self, leads: Leads, attack: Amounts) -> BoolArray:
        """Returns of which classes the label stays ahead under an attack, shape ``[n, C]``.

        With two levels the attack is the same for all targets.
        """
        joined = np.where(attack.edges_per_injected > 0, attack.inject_nodes, 0.0)  # others are nobody's neighbours
        if self.second:
            # Copies and values of edges are not read.
            nodes = joined + attack.delete_nodes + 2 * attack.change_features
            return leads.stays_ahead_second(attack.add_edges + attack.delete_edges, float(nodes))
        altered = attack.change_features
        if self.by_edge:
            altered = altered + attack.change_edges
        lost = attack.delete_edges + attack.delete_nodes
        return leads.stays_ahead(Touched(attack.add_edges + joined, lost, altered))

    def _stays_ahead_of_size(self, leads: Leads, size: float) -> BoolArray:
        """Returns of which classes the label stays ahead under attacks of a size, in the unit of the radius."""
        if self.second:
            return leads.stays_ahead_second(np.zeros(1), 2 * math.ceil(min(size, MOST_NEW + 1)))
        return leads.stays_ahead_of_any(np.full(len(leads.label), np.ceil(size)))

    def prices_of_rivals(self, rows: Rows, prices: Prices, rivals: Sequence[int]) -> FloatArray:
        """Returns the least price at which each rival may get ahead of the label, shape ``[b, R]`` (Theorem 13).

        The price is exact in the votes of a sum, and of a mean that reads no edge values. Elsewhere it is a bound.

        Args:
            rows: The ``b`` targets.
            prices: What each kind of change costs.
            rivals: The ``R`` classes.
        """
        leads = self._leads(rows)
        return np.stack([self._price_of_rival(leads, k, prices) for k in rivals], axis=1)

    def _price_of_rival(self, leads: Leads, k: int, prices: Prices) -> FloatArray:
        """Returns the least price at which class ``k`` may get ahead of the label, shape ``[n]``."""
        joined = prices.inject_nodes + prices.injected_edges
        if self.second:
            edge = min(prices.add_edges, prices.delete_edges)
            node = min(joined, prices.delete_nodes)
            return leads.cheapest_second(k, edge, node, prices.change_features)
        altered = prices.change_features
        if self.by_edge:
            altered = min(altered, prices.change_edges)
        new = min(prices.add_edges, joined)
        lost = min(prices.delete_edges, prices.delete_nodes)
        return leads.cheapest(k, new, lost, altered)

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Returns how many targets one attacked graph can break at most; sharper, as a change touches few targets.

        A change at one pair touches its two ends, a node that is deleted or altered touches its neighbours. A target
        breaks only if as many of its neighbours are touched as its radius says, and one more.

        Args:
            budget: What the attacker may do, all of it in one graph.
            fails: Which of the targets that count do not hold one by one, shape ``[n]``.
        """
        if self.second or budget.target_features:
            return super().most_broken(budget, fails)
        changed_pairs = budget.change_edges if self.by_edge else 0
        is_altering = budget.change_features or changed_pairs
        radius = self.radius() if is_altering else self.structure_radius()
        touches_needed = radius[fails] + 1
        pairs = budget.add_edges + budget.delete_edges + changed_pairs
        num_nodes = min(len(self.targets_per_node), budget.delete_nodes + budget.change_features)
        touched_by_nodes = float(self.targets_per_node[: int(num_nodes)].sum(dtype=np.int64))
        most_touched = 2 * pairs + budget.injected_edges + touched_by_nodes
        return most_affordable(touches_needed.astype(np.float64), most_touched)

    def _leads(self, rows: Rows, leader: int | None = None) -> Leads:
        """Returns the leads of the label, or of a class, over all classes; those of the labels of a block are kept."""
        if leader is not None or not isinstance(rows, slice):
            return Leads(self.part(self._numbers(rows)), leader)
        if rows.start not in self._kept:
            self._kept[rows.start] = Leads(self.part(self._numbers(rows)))
        return self._kept[rows.start]

    @cached_property
    def _kept(self) -> dict[int, Leads]:
        return {}


def _matter_beyond(second: int, nodes: int) -> bool:
    """Returns whether so many nodes still leave a vote of the second level something to lose."""
    return bool(second) and grown_odds(second, nodes) is not None


def _radius_second(leads: Leads, nodes_per_change: int) -> IntArray:
    """Returns how many changes each target withstands with two levels, shape ``[n]``, by trying one after the other.

    Args:
        leads: The votes.
        nodes_per_change: As how many nodes that come or go one change counts.
    """
    radius = np.full(leads.record.num_targets, -1, dtype=np.int64)
    holds = np.ones(len(radius), dtype=bool)
    size = 0
    while holds.any() and size <= LARGEST_RADIUS:
        holds &= leads.withstands_second(np.zeros(1), nodes_per_change * size)
        radius[holds] = size
        if holds.any() and bool(leads.withstands_second(np.full(1, np.inf), np.inf)[holds].all()):
            radius[holds] = LARGEST_RADIUS
            break
        size += 1
    return radius
