"""Evidence: what a certificate is derived from, whatever the defence.

A :class:`~agnncert.certificate.Certificate` is evidence plus a claim in words. Every statement it makes
(labels, radii, budgets, collective bounds) is answered by its evidence, and a file stores the evidence, so
that a reader can derive the statements again. Two kinds exist:

    BallotEvidence (ballots.py)     one ballot per target and subgraph; deterministic
    SampleEvidence (smoothing.py)   class counts under random noise; holds with a stated probability

A kind is a subclass of :class:`Evidence` and one line in ``files.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.budget import Budget
from agnncert.votes import BoolArray, IntArray

FloatArray = npt.NDArray[np.float64]

# Where the search for the largest amount stops. An answer beyond it is cut, never raised.
LARGEST_AMOUNT = 2**31


class Evidence(ABC):
    """What the statements about ``n`` targets are derived from.

    Attributes:
        kind: Name of this kind of evidence in files.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def num_targets(self) -> int:
        """Number of targets ``n``."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """Votes, or samples, per target and class, shape ``[n, num_classes]``."""

    @abstractmethod
    def label_and_radius(self) -> tuple[IntArray, IntArray]:
        """The label of each target and its certified radius, each of shape ``[n]``.

        A radius of -1 means that nothing is certified, not even the label of the unattacked graph.
        """

    @abstractmethod
    def holds(self, budget: Budget) -> BoolArray:
        """Whether each target keeps its label whatever an attacker with ``budget`` does, shape ``[n]``.

        A budget that the defence proves nothing about gives False. Must be monotone: a larger budget never
        holds where a smaller one does not.
        """

    @abstractmethod
    def broken_at_most(self, budget: Budget, among: BoolArray | None = None) -> int:
        """How many targets one attacked graph can break at most.

        Args:
            budget: What the attacker may do, all of it in one graph.
            among: Count only these targets, shape ``[n]``; all when not given.
        """

    @abstractmethod
    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that :meth:`load` needs, by name; a file stores them as they are."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything else that :meth:`load` needs, in JSON's terms (numbers, strings, lists, dicts)."""

    @classmethod
    @abstractmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Evidence from :meth:`tensors` and :meth:`settings`; they come from a file and are not trusted.

        Raises:
            CertificateError: They are not what this kind of evidence consists of.
        """

    def holds_each(self, rest: Budget, field: str, amounts: FloatArray) -> BoolArray:
        """As :meth:`holds`, but ``field`` of the budget differs by target, ``amounts`` of shape ``[n]``.

        This version asks :meth:`holds` once for each distinct amount; override it where that is slow.
        """
        answer = np.zeros(self.num_targets, dtype=bool)
        for amount in np.unique(amounts):
            here = amounts == amount
            answer[here] = self.holds(rest.but(**{field: float(amount)}))[here]
        return answer

    def largest(self, field: str, rest: Budget) -> FloatArray:
        """The largest amount of ``field`` that each target withstands on top of ``rest``, shape ``[n]``.

        ``math.inf`` where any amount is withstood, -1 where not even ``rest`` alone is.
        """
        return largest_amount(lambda amounts: self.holds_each(rest, field, amounts), self.num_targets)


def largest_amount(holds: Callable[[FloatArray], BoolArray], num_targets: int) -> FloatArray:
    """The largest whole amount for which each target's test holds; ``inf`` if all do, -1 if none does.

    Args:
        holds: The test, monotone, taking an amount for each target, shape ``[n]``.
        num_targets: Number of targets ``n``.

    Example:
        >>> largest_amount(lambda amounts: amounts <= np.array([5.0, -1.0, np.inf]), 3)
        array([ 5., -1., inf])
    """
    low = np.where(holds(np.zeros(num_targets)), 0.0, -1.0)
    low[(low == 0) & holds(np.full(num_targets, np.inf))] = np.inf
    high = np.where(low == 0, 1.0, low)  # from here on: low holds, and a target is open while low < high
    while (growing := (low < high) & holds(np.maximum(high, 0)) & (high < LARGEST_AMOUNT)).any():
        low = np.where(growing, high, low)
        high = np.where(growing, 2 * high, high)
    while (unsure := high > low + 1).any():
        middle = np.where(unsure, np.floor((np.where(unsure, low, 0) + np.where(unsure, high, 0)) / 2), low)
        good = unsure & holds(np.where(unsure, middle, 0))
        low = np.where(good, middle, low)
        high = np.where(unsure & ~good, middle, high)
    return low
