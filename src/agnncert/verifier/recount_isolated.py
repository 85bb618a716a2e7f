"""Derives every statement about models that were trained apart a second time, for the verifier.

This module shares no code with ``isolated.evidence``. In each view it lets a rival win over one model after the other,
the most harmful first, until the rival is elected; ``recount`` then counts the views.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, VoteRecord
from agnncert.isolated.record import IsolatedRecord
from agnncert.verifier import recount, recount_possible
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import sort_votes


class Views:
    """What the models elect in each view, and how many of them an attacker must alter there.

    Attributes:
        record: The votes.
        elected: The class of each view, shape ``[m]``.
        to_break: The fewest models with which another class can be elected in each view; 0 if rounding is enough, one
            more than there are models if nothing is, shape ``[m]``.
    """

    def __init__(self, record: IsolatedRecord) -> None:
        self.record = record
        self.elected = np.zeros(len(record.group), dtype=np.int16)
        self.to_break = np.zeros(len(record.group), dtype=np.int64)
        for view in range(len(record.group)):
            sure = record.vote[view][record.stable[view] & (record.vote[view] != ABSTAIN)]
            counts = np.bincount(sure, minlength=record.num_classes)
            winner = int(np.flatnonzero(counts == counts.max())[0])
            self.elected[view] = winner
            num_unsure = int(np.count_nonzero(~record.stable[view]))
            needed = [
                _models_needed(counts, winner, rival, num_unsure, record.num_models)
                for rival in range(record.num_classes)
                if rival != winner
            ]
            self.to_break[view] = min(needed, default=record.num_models + 1)

    def under(self, poison_graphs: float) -> VoteRecord:
        """Returns the votes of the views where so many training graphs are poisoned."""
        return self.record.views(self.elected, self.to_break > poison_graphs)

    def label(self) -> IntArray:
        """Returns the class with most views, shape ``[n]``."""
        return self._joined(piles.label for piles in sort_votes(self.under(0)))

    def holds(self, budget: Budget) -> BoolArray:
        """Returns whether each label holds, shape ``[n]``."""
        at_test_time = budget.but(poison_graphs=0)
        parts = sort_votes(self.under(budget.poison_graphs))
        answers = (recount.holds(piles, limits_under(piles, at_test_time)) for piles in parts)
        return self._joined(answers).astype(bool)

    def right_radius(self, stated: IntArray) -> BoolArray:
        """Tells whether each stated radius is the largest number of graphs that a label withstands, shape ``[n]``."""
        right = (stated >= -1) & (stated <= self.record.num_models)
        for number in np.unique(stated[right]):
            here = right & (stated == number)
            if number >= 0:
                right[here] &= self.holds(Budget(poison_graphs=int(number)))[here]
            if number < self.record.num_models:
                right[here] &= ~self.holds(Budget(poison_graphs=int(number) + 1))[here]
        return right

    def possible(self, budget: Budget) -> BoolArray:
        """Returns which classes each target may get, shape ``[n, num_classes]``."""
        return recount_possible.of_votes(self.under(budget.poison_graphs), budget.but(poison_graphs=0))

    def broken(self, budget: Budget, holds: BoolArray) -> int:
        """Returns how many targets can break: one test graph, or with poisoned models all that do not hold."""
        num_failing = int(np.count_nonzero(~holds))
        return num_failing if budget.poison_graphs > 0 else min(num_failing, 1)

    def _joined(self, parts: Iterator[npt.NDArray[np.generic]]) -> npt.NDArray[np.int64]:
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _models_needed(counts: IntArray, winner: int, rival: int, num_unsure: int, num_models: int) -> int:
    """Returns the fewest models that an attacker must alter for a rival to be elected in a view.

    A model that voted for the winner gains the rival two, any other that did not vote for the rival gains it one.
    """
    lead = int(counts[winner]) - int(counts[rival]) - num_unsure
    wins_at = 0 if rival < winner else -1
    needed = 0
    left_of_winner = int(counts[winner])
    left_of_others = num_models - num_unsure - left_of_winner - int(counts[rival])
    while lead > wins_at:
        needed += 1
        if left_of_winner:
            left_of_winner -= 1
            lead -= 2
        elif left_of_others:
            left_of_others -= 1
            lead -= 1
        else:
            return num_models + 1
    return needed
