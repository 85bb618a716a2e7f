"""Evidence about labels and edges together, and what Theorem 17 derives from it.

For each rival, f changed labels leave a *slack* of the lead: less the f largest costs of the target's own labels, and
with every neighbour against it whose own label f changed labels might change. Each new or lost neighbour then takes at
most its vote from the slack.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import BudgetError
from agnncert.labels.evidence import NEVER, OF_LABELS, VALUES, LabelEvidence
from agnncert.labels.joint_record import KIND, JointRecord
from agnncert.proving.blocks import Rows, listed_of
from agnncert.proving.evidence import Evidence
from agnncert.proving.prices import pay

COSTS_AT_ONCE = 2**22  # targets times classes times costs, or targets times labels, in one block
_NOT_COVERED = ("inject_nodes", "delete_nodes", "change_features")


class Slack(NamedTuple):
    """What is left after some labels were changed, for ``b`` targets.

    Attributes:
        lead: Lead over each class, shape ``[b, C]``; ``NEVER`` for the label itself.
        for_label: Neighbours that vote for the label whichever labels were changed, shape ``[b]``.
    """

    lead: IntArray
    for_label: IntArray

    def after(self, added: float, deleted: float, each: int) -> BoolArray:
        """Returns whether the label stays ahead of each class if neighbours come and go, shape ``[b, C]``.

        Args:
            added: New neighbours.
            deleted: Lost neighbours: only those that vote for the label are missed.
            each: What the vote of a neighbour counts, in steps.
        """
        if not each:
            return self.lead >= 0
        lost = np.minimum(deleted, self.for_label)
        return np.asarray(self.lead >= each * (added + lost)[:, None])


@dataclass(frozen=True)
class Costs:
    """Costs of labels from 0 to 254, in descending order.

    Attributes:
        number: How many labels cost at least so much, and none cost 255, shape ``[…, 256]``.
        total: The sum of their costs, shape ``[…, 256]``.
    """

    number: IntArray
    total: IntArray

    @classmethod
    def of(cls, by_value: IntArray) -> "Costs":
        """Returns costs of which it is known how many have each value, shape ``[…, 255]``."""
        none_dearer = np.zeros((*by_value.shape[:-1], 1), dtype=np.int64)
        descending = by_value[..., ::-1]
        number = np.concatenate([none_dearer, descending.cumsum(axis=-1)], axis=-1)[..., ::-1]
        totals = (descending * np.arange(VALUES)[::-1]).cumsum(axis=-1)
        return cls(number, np.concatenate([none_dearer, totals], axis=-1)[..., ::-1])

    def largest(self, labels: float) -> IntArray:
        """Returns the sum of so many of the largest costs, or of all of them if there are fewer."""
        least = (self.number[..., 1:-1] >= labels).sum(axis=-1)[..., None]  # the cost of the last label that is changed
        dearer = np.take_along_axis(self.number, least + 1, axis=-1)
        paid = np.take_along_axis(self.total, least + 1, axis=-1)
        more = (np.minimum(labels, self.number[..., :1]) - dearer).astype(np.int64)
        return np.asarray((paid + more * least)[..., 0])

    def fewest_above(self, lead: IntArray) -> FloatArray:
        """Returns how many of the largest costs sum to more than a lead, infinite if all do not; 0 if it is negative.

        Args:
            lead: The lead, of the shape of what the costs are of.
        """
        least = (self.total[..., 1:-1] > lead[..., None]).sum(axis=-1)[..., None]  # the cost of the last of them
        dearer = np.take_along_axis(self.number, least + 1, axis=-1)[..., 0]
        paid = np.take_along_axis(self.total, least + 1, axis=-1)[..., 0]
        more = (lead - paid) // np.maximum(least[..., 0], 1) + 1
        fewest = np.where(least[..., 0] > 0, dearer + more, np.inf)
        return np.where(lead < 0, 0.0, fewest)


@dataclass(frozen=True)
class _Block:
    """Some targets, and what there is to count for them.

    Attributes:
        label: Their labels, or the class whose lead is counted instead, shape ``[b]``.
        lead: Its lead over each class by label votes alone, ``[b, C]``; a label's is less what an abstention asks for.
        costs: Costs of the labels against each class, of shape ``[b, C]``.
        owner: Number of the target in this block whose neighbour it is, shape ``[e]``.
        cast: Class that each neighbour votes for, shape ``[e]``.
        fewest: Fewest changed labels that can change this, shape ``[e]``.
        each: What the vote of a neighbour counts, in steps.
        num_labels: How many labels there are.
    """

    label: IntArray
    lead: IntArray
    costs: Costs
    owner: IntArray
    cast: IntArray
    fewest: IntArray
    each: int
    num_labels: int

    def slack(self, labels: float) -> Slack:
        """Returns what is left after so many labels were changed."""
        num_targets, num_classes = self.lead.shape
        steady = self.fewest > labels
        place = self.owner[steady] * num_classes + self.cast[steady]
        votes = np.bincount(place, minlength=num_targets * num_classes).reshape(num_targets, num_classes)
        unsteady = np.bincount(self.owner[~steady], minlength=num_targets)
        for_label = np.take_along_axis(votes, self.label[:, None], axis=1)
        lead = self.lead - self.costs.largest(labels) + self.each * (for_label - votes - unsteady[:, None])
        np.put_along_axis(lead, self.label[:, None], NEVER, axis=1)
        return Slack(lead, for_label[:, 0])

    def fewest_changes(self) -> FloatArray:
        """Returns the fewest changed labels and edges, in any mix, with which each class gets past the label."""
        if not self.each:
            needed = self.costs.fewest_above(self.lead)
        else:
            needed = np.full(self.lead.shape, np.inf)
            for labels in range(self.num_labels + 1):
                lead = self.slack(labels).lead
                edges = np.where(lead < 0, 0, lead // self.each + 1)
                needed = np.minimum(needed, labels + edges)
                needed[np.arange(len(needed)), self.label] = -1
                if (needed <= labels + 1).all():  # further labels alone are as many
                    break
        needed[np.arange(len(needed)), self.label] = np.inf
        return needed


@dataclass(frozen=True, repr=False)
class JointEvidence(JointRecord, Evidence):
    """Votes of labels and neighbours, and the answers of Theorem 17. Fields are as in :class:`JointRecord`."""

    voters: LabelEvidence

    kind: ClassVar[str] = KIND
    class_of_voters: ClassVar[type[LabelEvidence]] = LabelEvidence
    training_fields: ClassVar[tuple[str, ...]] = OF_LABELS
    entries_at_once: ClassVar[int] = COSTS_AT_ONCE

    def __repr__(self) -> str:
        return f"JointEvidence({self.num_targets:,} targets, {self.voters.num_candidates:,} candidates)"

    def require_budget(self, budget: Budget) -> None:
        """Refuses attacks on training data that are not covered, and attacks on labels and nodes together.

        Raises:
            BudgetError: Says which field is refused, and why.
        """
        self.voters.require_labels(budget)
        if budget.training_fields and not self.covers(budget):
            raise BudgetError(
                f"{budget}: nothing is proved about labels together with nodes or features. The weights of labels "
                "follow from the features of all nodes, so that these have to be trusted: ask about labels and edges."
            )

    @property
    def only_target_matters(self) -> bool:
        """True: a neighbour's vote comes from features and labels, so only the target's own edges say who votes."""
        return True

    def covers(self, budget: Budget) -> bool:
        """Returns whether anything is proved about such attacks: nothing about nodes and features that change."""
        return not any(getattr(budget, name) for name in _NOT_COVERED) and not budget.target_features

    @property
    def counts(self) -> IntArray:
        """Score of each class in steps, shape ``[n, C]``."""
        place = self.owner * self.num_classes + self._cast[self.neighbour]
        votes = np.bincount(place, minlength=self.num_targets * self.num_classes)
        votes = votes.reshape(self.num_targets, self.num_classes)
        return np.asarray(self.voters.counts[self.target] + self.neighbour_steps * votes)

    @property
    def _cast(self) -> IntArray:
        """Class that each voter votes for, shape ``[v]``."""
        return np.asarray(self.voters.counts.argmax(axis=1))

    def no_edge_scores(self) -> IntArray:
        """Returns the scores of label votes alone, shape ``[n, C]``."""
        return self.voters.counts[self.target]

    def no_edge_labels(self) -> IntArray:
        """Returns the labels of label votes alone, shape ``[n]``."""
        return np.asarray(self.no_edge_scores().argmax(axis=1))

    @property
    def entries_per_target(self) -> int:
        """The costs against each class by their value, or the weights of the labels they are counted from."""
        return max(self.num_classes * VALUES, self.voters.num_candidates)

    def radius(self) -> IntArray:
        """Returns the largest number of changed labels and edges, in any mix, that cannot change a label, ``[n]``.

        It is counted, which is faster, and has no limit.
        """
        fewest = self._fewest_changes.min(axis=1, initial=np.inf)
        radius = np.minimum(fewest - 1, self.voters.num_candidates if not self.neighbour_steps else np.inf)
        return np.asarray(radius, dtype=np.int64)

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead without abstaining (Theorem 17), shape ``[b, C]``.

        Another class stays ahead of those that never get past it, whether or not the target abstains.
        """
        is_leader: BoolArray = np.asarray(np.arange(self.num_classes) == self.leaders(rows, leader)[:, None])
        if leader is None and not isinstance(attack, Budget):
            return (self._fewest_changes[rows] > attack) | is_leader
        block = self._block(rows) if leader is None else self._new_block(rows, leader)
        if not isinstance(attack, Budget):
            return (block.fewest_changes() > attack) | is_leader
        slack = block.slack(self.voters.changed_labels(attack))
        return slack.after(attack.add_edges, attack.delete_edges, self.neighbour_steps) | is_leader

    def prices_of_rivals(self, rows: Rows, prices: Prices, rivals: Sequence[int]) -> FloatArray:
        """Returns a price below which no attack brings each rival past the label, shape ``[b, R]``.

        Every label counts at the price of the cheapest one that can be changed, so that this is a bound.

        Args:
            rows: The ``b`` targets.
            prices: What each kind of change costs.
            rivals: The ``R`` classes.
        """
        of_labels = self.voters.price_of_entries(prices)
        cheapest_label = float(of_labels.min(initial=np.inf))
        return self._price_of(self._block(rows), cheapest_label, prices)[:, list(rivals)]

    def _price_of(self, block: _Block, label_price: float, prices: Prices) -> FloatArray:
        """Returns the least price of labels and edges with which each class gets past the label, shape ``[b, C]``."""
        cost = np.full(block.lead.shape, np.inf)
        most = int((~self.voters.audited).sum()) if label_price < math.inf else 0
        for labels in range(most + 1) if label_price else (0, most):
            slack = block.slack(labels)
            paid = pay(label_price, labels)
            cost = np.minimum(cost, paid + _price_of_edges(slack, self.neighbour_steps, prices))
            if (cost <= paid).all(where=slack.lead != NEVER) or (slack.lead < 0).all(where=slack.lead != NEVER):
                break
        return cost

    def usual_budgets(self) -> tuple[Budget, ...]:
        """Returns the budgets about which a file makes statements when none are given."""
        of_labels = tuple(Budget(flip_labels=number) for number in (1, 5, 20))
        of_edges = (Budget(add_edges=1), Budget(add_edges=2, delete_edges=2), Budget(delete_edges=math.inf))
        both = (Budget(flip_labels=1, add_edges=1), Budget(flip_labels=5, add_edges=1, delete_edges=1))
        if self.voters.candidates == "labelled":
            return (*of_labels, *of_edges, *both)
        return (*of_labels, *of_edges, *both, Budget(flip_labels=5, add_labels=5, remove_labels=5, add_edges=1))

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Loads evidence from a file, which is not trusted."""
        return super().load(tensors, settings)

    @cached_property
    def _fewest_changes(self) -> FloatArray:
        """Fewest changed labels and edges, in any mix, with which each class gets past the label, shape ``[n, C]``."""
        return self.in_blocks(lambda rows: self._block(rows).fewest_changes(), np.float64, self.num_classes)

    @cached_property
    def _last_block(self) -> dict[tuple[int, int], _Block]:
        return {}

    def _block(self, rows: Rows) -> _Block:
        """Returns what there is to count for some targets. That of the last block is kept for further questions."""
        if not isinstance(rows, slice):
            return self._new_block(rows)
        ends = (rows.start, rows.stop)
        if ends not in self._last_block:
            self._last_block.clear()
            self._last_block[ends] = self._new_block(rows)
        return self._last_block[ends]

    def _new_block(self, rows: Rows, leader: int | None = None) -> _Block:
        """Counts some targets: what their label leads by without abstaining, or what this class leads by."""
        numbers = self._numbers(rows)
        listed, owner = listed_of(self.indptr, numbers)
        label = self.leaders(numbers, leader)
        targets = self.target[numbers]
        scores = self.voters.counts[targets]
        best = np.take_along_axis(scores, label[:, None], axis=1)
        wins_tie = np.arange(self.num_classes) < label[:, None]
        near = self.neighbour[listed]
        return _Block(
            label=label,
            lead=best - scores - wins_tie - (self.least_lead if leader is None else 0),
            costs=Costs.of(self.voters.costs_by_value(targets, label)),
            owner=owner,
            cast=self._cast[near],
            fewest=self.voters.fewest.min(axis=1, initial=NEVER)[near],
            each=self.neighbour_steps,
            num_labels=self.voters.num_candidates,
        )


def _price_of_edges(slack: Slack, each: int, prices: Prices) -> FloatArray:
    """Returns the least price of edges with which each class gets past the label, shape ``[b, C]``."""
    if not each:
        return np.where(slack.lead < 0, 0.0, np.inf)
    needed = np.where(slack.lead < 0, 0, slack.lead // each + 1)
    needed[slack.lead == NEVER] = 0
    lost = np.minimum(needed, slack.for_label[:, None]) if prices.delete_edges < prices.add_edges else 0
    price = pay(prices.delete_edges, lost) + pay(prices.add_edges, needed - lost)
    return np.where(slack.lead == NEVER, np.inf, price)
