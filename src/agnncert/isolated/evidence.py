"""``IsolatedEvidence``: votes of models that were trained apart, and what follows from them (Theorem 15).

In each view the models elect a class, and as many models may be poisoned as their votes bear (Theorem 1). For n
poisoned training graphs, the views that bear fewer count as votes that are not stable; the rest is the theorem about
changes of the test graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.divided.evidence import VoteEvidence
from agnncert.isolated.record import IsolatedRecord
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import Evidence

KIND = "isolated"


@dataclass(frozen=True, repr=False)
class IsolatedEvidence(Evidence):
    """Votes of models that were trained apart, and the answers of Theorem 15.

    Attributes:
        record: The votes.
    """

    record: IsolatedRecord

    kind: ClassVar[str] = KIND
    training_fields: ClassVar[tuple[str, ...]] = ("poison_graphs",)

    def __repr__(self) -> str:
        record = self.record
        return (
            f"IsolatedEvidence({self.num_targets:,} targets, {self.num_classes} classes, {record.num_models} models, "
            f"{record.num_groups} views)"
        )

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return self.record.num_targets

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.record.num_classes

    @property
    def num_predictions(self) -> int:
        """A prediction of each model on each view."""
        return self.record.num_models * self.record.num_groups

    @cached_property
    def elected(self) -> npt.NDArray[np.int16]:
        """The class that the models elect in each view, the smaller one on a tie, shape ``[m]``."""
        return np.asarray(self._sure_votes.argmax(axis=1), dtype=np.int16)

    @cached_property
    def bears(self) -> IntArray:
        """How many models may be altered in each view without another class being elected there, shape ``[m]``.

        It is negative where rounding alone may do that.
        """
        sure = self._sure_votes
        elected = self.elected.astype(np.int64)[:, None]
        classes = np.arange(self.num_classes)
        unsure = (~self.record.stable).sum(axis=1)[:, None]
        lead = np.take_along_axis(sure, elected, axis=1) - sure - unsure - (classes < elected)
        rivals = np.where(classes == elected, 2 * self.record.num_models, lead)
        return np.asarray(rivals.min(axis=1) // 2)

    @cached_property
    def _sure_votes(self) -> IntArray:
        """Stable votes for each class in each view, shape ``[m, C]``."""
        sure = np.zeros((len(self.record.group), self.num_classes), dtype=np.int64)
        for k in range(self.num_classes):
            sure[:, k] = ((self.record.vote == k) & self.record.stable).sum(axis=1)
        return sure

    @cached_property
    def _kept(self) -> dict[float, VoteEvidence]:
        return {}

    def under(self, poison_graphs: float) -> VoteEvidence:
        """Returns the votes of the views where so many training graphs are poisoned.

        Views that bear fewer are not stable, so that they count for every rival.
        """
        if poison_graphs not in self._kept:
            record = self.record.views(self.elected, self.bears >= poison_graphs)
            values = {each.name: getattr(record, each.name) for each in fields(VoteRecord)}
            self._kept[poison_graphs] = VoteEvidence(**values)
        return self._kept[poison_graphs]

    @property
    def counts(self) -> IntArray:
        """Views that vote for each class, shape ``[n, C]``."""
        return self.under(0).counts

    def check_claim(self, claim: Claim) -> None:
        """Checks that a claim names the task, the kind of ids and the number of views.

        Raises:
            CertificateError: The claim says something else than the votes.
        """
        self.under(0).check_claim(claim)

    def labels(self) -> IntArray:
        """Returns the class with most views, shape ``[n]``."""
        return self.under(0).labels()

    @property
    def largest_radius(self) -> int:
        """No more training graphs are poisoned than there are models."""
        return self.record.num_models

    @property
    def entries_per_target(self) -> int:
        """None: the votes of the views are cut into blocks themselves."""
        return 0

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead, with poisoned training graphs, shape ``[b, C]``."""
        poisoned, at_test_time = _split(attack)
        return self.under(poisoned).stays_ahead(rows, at_test_time, leader)

    def keeps_label(self, rows: Rows, attack: Budget | float, rival: int | None = None) -> BoolArray:
        """Returns which labels stay, shape ``[b]``; faster, as only rivals that matter are looked at."""
        if rival is not None:
            return super().keeps_label(rows, attack, rival)
        poisoned, at_test_time = _split(attack)
        return self.under(poisoned).holds(at_test_time)[rows]

    def covers(self, budget: Budget) -> bool:
        """Returns whether the theorem about the test graph says something about such changes."""
        return self.under(0).covers(_split(budget)[1])

    def possible(self, at: Budget | float) -> BoolArray:
        """Returns which classes an attack can make win, shape ``[n, C]``; sharper, as Theorem 12 is exact in the votes.

        Args:
            at: What the attacker may do, or a number of poisoned training graphs.
        """
        if not isinstance(at, Budget) and at < 0:
            return self._is_label(slice(None))
        poisoned, at_test_time = _split(at)
        return self.under(poisoned).possible(at_test_time)

    def cheapest(self, prices: Prices, label: int | None = None) -> FloatArray:
        """Returns what every change of a test graph costs at least that changes its label, shape ``[n]``.

        Training graphs have no price: they are as they were. So Theorem 13 is exact for the test graph.
        """
        return self.under(0).cheapest(prices, label)

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Returns how many targets one attack can break at most: one test graph, unless training is poisoned."""
        return int(fails.sum()) if budget.poison_graphs else int(fails.any())

    def usual_budgets(self) -> tuple[Budget, ...]:
        """Returns the budgets about which a file makes statements when none are given."""
        poisoned = tuple(Budget(poison_graphs=number) for number in (1, 2, 5, 10, 20))
        if self.record.num_groups == 1:
            return poisoned
        both = (Budget(poison_graphs=1, add_edges=1), Budget(poison_graphs=1, change_features=1))
        return (*poisoned, *both, Budget(add_edges=1, delete_edges=1))

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array that :meth:`load` needs, by name."""
        return self.record.tensors()

    def settings(self) -> dict[str, Any]:
        """Returns everything else that :meth:`load` needs, as JSON values."""
        return self.record.settings()

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Loads evidence from :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted."""
        return cls(IsolatedRecord.load(tensors, settings))


def _split(attack: Budget | float) -> tuple[float, Budget]:
    """Returns how many training graphs are poisoned, and what changes at test time."""
    if isinstance(attack, Budget):
        return attack.poison_graphs, attack.but(poison_graphs=0)
    return attack, Budget()
