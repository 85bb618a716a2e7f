"""Evidence of label votes, and what Theorem 14 derives from it.

Costs are whole numbers from 0 to 254, so that the r largest of them are added up from how often each number occurs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import BudgetError
from agnncert.labels.record import STEPS, LabelRecord
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import Evidence

ENTRIES_AT_ONCE = 2**23  # targets times candidates in one block
NEVER = np.iinfo(np.int64).max  # no number of changed labels is enough
OF_LABELS: tuple[str, ...] = ("flip_labels", "add_labels", "remove_labels")
VALUES = 2 * STEPS + 1  # of a weight, and of a cost


@dataclass(frozen=True, repr=False)
class LabelEvidence(LabelRecord, Evidence):
    """Votes of training labels, and the answers that Theorem 14 gives. Fields are as in :class:`LabelRecord`."""

    kind: ClassVar[str] = "labels"
    training_fields: ClassVar[tuple[str, ...]] = OF_LABELS
    entries_at_once: ClassVar[int] = ENTRIES_AT_ONCE

    def __repr__(self) -> str:
        return f"LabelEvidence({self.num_targets:,} targets, {self.num_candidates:,} candidates)"

    def require_labels(self, budget: Budget) -> None:
        """Refuses attacks on training data that are not covered.

        Raises:
            BudgetError: Says which field is refused, and why.
        """
        if self.candidates == "labelled" and (budget.add_labels or budget.remove_labels):
            raise BudgetError(
                f"{budget}: these weights follow from which nodes are labelled, so that a label that is added or "
                'removed changes all of them. Use LabelVotes(candidates="all"), or ask about flip_labels alone.'
            )
        budget.require_trusted_training(OF_LABELS)

    def require_budget(self, budget: Budget) -> None:
        """Refuses attacks on training data that are not covered, and attacks on labels and graph together.

        Raises:
            BudgetError: Says which field is refused, and why.
        """
        self.require_labels(budget)
        if budget.training_fields and _changes_graph(budget):
            raise BudgetError(
                f"{budget}: nothing is proved about labels and graph together. These weights follow from edges and "
                "features, so that both have to be trusted: ask about labels alone, or use "
                "LabelVotes(neighbour_votes=…), whose weights read no edge."
            )

    @property
    def counts(self) -> IntArray:
        """Score of each class in steps, shape ``[n, C]``."""
        return self._scores_and_costs[0]

    @property
    def fewest(self) -> IntArray:
        """Fewest changed labels with which each class gets past the label; ``NEVER`` if none do, shape ``[n, C]``."""
        return self._scores_and_costs[1]

    @cached_property
    def _scores_and_costs(self) -> tuple[IntArray, IntArray]:
        """Scores, and the fewest changed labels with which each class gets past the label, both ``[n, C]``."""
        shape = (self.num_targets, self.num_classes)
        scores, fewest = np.zeros(shape, dtype=np.int64), np.full(shape, NEVER)
        for rows in self.blocks:
            scores[rows], fewest[rows] = self._count(rows, ~self.audited)
        return scores, fewest

    @property
    def entries_per_target(self) -> int:
        """One weight for each candidate."""
        return max(self.num_candidates, 1)

    @property
    def largest_radius(self) -> int:
        """No more labels change than there are candidates."""
        return self.num_candidates

    def radius(self) -> IntArray:
        """Returns the largest number of changed labels that leave a label, shape ``[n]``; faster, as it is counted."""
        return np.asarray(np.minimum(self.fewest.min(axis=1) - 1, self.largest_radius))

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved about such attacks: nothing about a graph that changes."""
        return not _changes_graph(budget)

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead without abstaining (Theorem 14), shape ``[b, C]``.

        Another class stays ahead of those that never get past it, whether or not the target abstains.
        """
        changed = self.changed_labels(attack) if isinstance(attack, Budget) else attack
        fewest = self.fewest[rows] if leader is None else self._count(rows, ~self.audited, leader)[1]
        return np.asarray(fewest > min(changed, self.num_candidates))

    def changed_labels(self, budget: Budget) -> float:
        """Returns how many labels an attack changes: no more than there are candidates."""
        return min(budget.flip_labels + budget.add_labels + budget.remove_labels, self.num_candidates)

    def prices_of_rivals(self, rows: Rows, prices: Prices, rivals: Sequence[int]) -> FloatArray:
        """Returns a price below which no attack brings each rival past the label, shape ``[b, R]``.

        The price is exact if all labels that can be changed have the same price, else a bound (fractional knapsack).

        Args:
            rows: The ``b`` targets.
            prices: What each kind of change costs. A label costs its own price times that.
            rivals: The ``R`` classes.
        """
        price = self.price_of_entries(prices)
        finite = price[np.isfinite(price)]
        if len(finite) and (finite == finite[0]).all() and finite[0] > 0:
            fewest = self._count(rows, np.isfinite(price))[1]
            cost = np.where(fewest == NEVER, np.inf, fewest.astype(np.float64) * finite[0])
        else:
            cost = self._fractional(rows, price)
        return np.asarray(cost[:, list(rivals)])

    def price_of_entries(self, prices: Prices) -> FloatArray:
        """Returns what changing each entry costs; infinite if it cannot be changed, shape ``[m]``."""
        removed = prices.remove_labels if self.candidates == "all" else math.inf
        if self.candidates == "labelled" and min(prices.add_labels, prices.remove_labels) < math.inf:
            raise BudgetError("labels that are added or removed have a price, but only flips are proved about here.")
        each = np.where(self.label_of >= 0, min(prices.flip_labels, removed), prices.add_labels)
        return np.where(self.audited, np.inf, each * self.price)

    def _fractional(self, rows: Rows, price: FloatArray) -> FloatArray:
        """Returns the least price at which parts of entries could get each class past the label, ``[b, C]``."""
        movable = np.isfinite(price)
        free = price == 0
        paid = movable & ~free
        weights = self._weights(rows)
        scores = self._scores(weights)
        label = scores.argmax(axis=1)
        leads = self._leads(scores, label) - self.least_lead
        cost = np.full(scores.shape, np.inf)
        for k in range(self.num_classes):
            gain = self._costs(weights, label, k)
            missing = leads[:, k] + 1 - gain[:, free].sum(axis=1)
            cost[:, k] = _knapsack(gain[:, paid], price[paid], missing)
            cost[label == k, k] = np.inf
        return cost

    def _costs(self, weights: npt.NDArray[np.int16], label: IntArray, k: int) -> IntArray:
        """Returns ``|W| + W ([y = label] - [y = k])`` of each entry, shape ``[b, m]``."""
        side = (self.label_of == label[:, None]).astype(np.int64) - (self.label_of == k)
        return np.asarray(np.abs(weights) + weights * side, dtype=np.int64)

    def usual_budgets(self) -> tuple[Budget, ...]:
        """Returns the budgets about which a file makes statements when none are given."""
        flips = tuple(Budget(flip_labels=number) for number in (1, 2, 5, 10, 20, 40))
        if self.candidates == "labelled":
            return flips
        return (*flips, Budget(flip_labels=5, add_labels=5, remove_labels=5))

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Loads evidence from a file, which is not trusted."""
        return super().load(tensors, settings)

    def weights_apart(self, other: "LabelEvidence") -> tuple[int, int]:
        """Returns how far the weights of two records about the same targets differ, in steps.

        Returns:
            The largest difference of one weight, and the largest sum of the differences of one target.
        """
        of_one = of_target = 0
        for part in self.blocks:
            difference = np.abs(self._weights(part) - other._weights(part))
            of_one = max(of_one, int(difference.max(initial=0)))
            of_target = max(of_target, int(difference.sum(axis=1, dtype=np.int64).max(initial=0)))
        return of_one, of_target

    def _weights(self, part: Rows) -> npt.NDArray[np.int16]:
        """Returns the weight of each candidate for some targets, shape ``[b, m]``."""
        if self.weights.shape[1]:
            weights = self.weights[part].astype(np.int16)
        else:
            products = self.left[part].astype(np.float64) @ self.right.T.astype(np.float64)  # whole, below 2**42
            steps = np.floor_divide(products.astype(np.int64) * STEPS, self.cap[part, None])
            weights = np.clip(steps, -STEPS, STEPS).astype(np.int16)
        own = self.own[part]
        inside = np.flatnonzero(own >= 0)
        weights[inside, own[inside]] = 0
        return weights

    def _scores(self, weights: npt.NDArray[np.int16]) -> IntArray:
        """Returns the score of each class, shape ``[b, C]``."""
        given = self.label_of[:, None] == np.arange(self.num_classes)
        votes = weights.astype(np.float64) @ given.astype(np.float64)  # whole, and far below 2**53
        return np.asarray(votes.astype(np.int64) + np.array(self.advance))

    def _leads(self, scores: IntArray, label: IntArray) -> IntArray:
        """Returns by how much a class leads each other one, shape ``[b, C]``: below 0 it is not ahead."""
        best = np.take_along_axis(scores, label[:, None], axis=1)
        wins_tie = np.arange(self.num_classes) < label[:, None]
        return np.asarray(best - scores - wins_tie)

    def _count(self, rows: Rows, movable: BoolArray, leader: int | None = None) -> tuple[IntArray, IntArray]:
        """Returns scores, and how many of the movable labels have to change before a class gets past the label.

        Args:
            rows: The ``b`` targets.
            movable: Which labels can be changed, shape ``[m]``.
            leader: Counts until classes get past this one instead.

        Returns:
            Both of shape ``[b, C]``; :data:`NEVER` where no number is enough, and for the label or leader itself.
        """
        weights = self._weights(rows)
        scores = self._scores(weights)
        label = scores.argmax(axis=1) if leader is None else np.full(len(scores), leader)
        leads = self._leads(scores, label) - (self.least_lead if leader is None else 0)
        numbers = self._numbers_by_value(weights, movable)
        fewest = np.full(scores.shape, NEVER)
        for k in range(self.num_classes):
            others = np.flatnonzero(label != k)
            costs = _costs_by_value(numbers[others], label[others], k)
            fewest[others, k] = _fewest_above(costs, leads[others, k])
        return scores, fewest

    def costs_by_value(self, rows: IntArray, label: IntArray) -> IntArray:
        """Returns how many labels that can be changed have each cost against each class, shape ``[b, C, 255]``.

        Args:
            rows: Numbers of some targets, shape ``[b]``.
            label: The class that each of them is to keep, shape ``[b]``; what is returned about it means nothing.
        """
        numbers = self._numbers_by_value(self._weights(rows), ~self.audited)
        return np.stack([_costs_by_value(numbers, label, k) for k in range(self.num_classes)], axis=1)

    def _numbers_by_value(self, weights: npt.NDArray[np.int16], movable: BoolArray) -> IntArray:
        """Returns how many movable entries have each label and weight, shape ``[b, C + 1, 255]``; label -1 first."""
        length = (self.num_classes + 1) * VALUES
        offset = (self.label_of[movable].astype(np.int64) + 1) * VALUES + STEPS
        place = weights[:, movable].astype(np.int64) + offset
        place += np.arange(len(weights))[:, None] * length
        numbers = np.bincount(place.ravel(), minlength=len(weights) * length)
        return numbers.reshape(len(weights), self.num_classes + 1, VALUES)


def _changes_graph(budget: Budget) -> bool:
    """Tells whether an attack changes edges, nodes or features."""
    changed = [name for name in COUNTS if name != "edges_per_injected" and getattr(budget, name)]
    return bool(changed) or budget.target_features


def _costs_by_value(numbers: IntArray, label: IntArray, k: int) -> IntArray:
    """Returns how many entries have each cost against class k, shape ``[b, 255]``.

    Args:
        numbers: How many entries have each label and weight, shape ``[b, C + 1, 255]``.
        label: The label of each target, shape ``[b]``.
        k: The rival.
    """
    above = numbers[:, :, STEPS + 1 :]  # weights from 1 to 127
    below = numbers[:, :, STEPS - 1 :: -1]  # weights from -1 to -127
    rows = np.arange(len(label))
    own_above = above[rows, label + 1]
    either = above + below
    others = either.sum(axis=1) - either[rows, label + 1] - either[:, k + 1]
    costs = np.zeros((len(label), VALUES), dtype=np.int64)
    costs[:, 1 : STEPS + 1] += others
    costs[:, 2::2] += own_above + below[:, k + 1]
    return costs


def _fewest_above(costs: IntArray, lead: IntArray) -> IntArray:
    """Returns how many of the largest costs sum to more than the lead, shape ``[b]``; 0 if it is negative.

    Args:
        costs: How many entries have each cost, shape ``[b, 255]``.
        lead: The lead, shape ``[b]``.
    """
    value = np.arange(VALUES)
    number = costs[:, ::-1].cumsum(axis=1)[:, ::-1]  # entries that cost at least so much
    total = (costs * value)[:, ::-1].cumsum(axis=1)[:, ::-1]
    is_enough = total > lead[:, None]
    at = VALUES - 1 - is_enough[:, ::-1].argmax(axis=1)  # the largest cost down to which all of them are enough
    rows = np.arange(len(lead))
    dearer = np.minimum(at + 1, VALUES - 1)
    is_last = at == VALUES - 1
    number_before = np.where(is_last, 0, number[rows, dearer])
    total_before = np.where(is_last, 0, total[rows, dearer])
    more = (lead - total_before) // np.maximum(at, 1) + 1
    fewest = np.where(is_enough.any(axis=1), number_before + more, NEVER)
    return np.where(lead < 0, 0, fewest)


def _knapsack(gain: IntArray, price: FloatArray, missing: IntArray) -> FloatArray:
    """Returns the price of the cheapest parts of entries that gain as much as is missing, shape ``[b]``.

    Args:
        gain: What each entry gains, shape ``[b, m]``.
        price: What each entry costs, positive, shape ``[m]``.
        missing: What has to be gained, shape ``[b]``.
    """
    order = np.argsort(-gain / price, axis=1, kind="stable")
    gained = np.take_along_axis(gain, order, axis=1).cumsum(axis=1)
    paid = price[order].cumsum(axis=1)
    is_enough = gained >= missing[:, None]
    answer = np.full(len(gain), np.inf)
    if not gain.shape[1]:
        return np.where(missing <= 0, 0.0, answer)
    rows = np.flatnonzero(is_enough.any(axis=1))
    at = is_enough[rows].argmax(axis=1)
    last = order[rows, at]
    too_much = gained[rows, at] - missing[rows]
    share = too_much / np.maximum(gain[rows, last], 1)
    answer[rows] = paid[rows, at] - share * price[last]
    # One part in a thousand million less: sums of prices are rounded, and a bound must not be too large.
    return np.where(missing <= 0, 0.0, np.maximum(answer, 0.0) * (1 - 1e-9))
