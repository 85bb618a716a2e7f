"""What every noise must answer: class bounds and a budget in, yes or no out.

FlipNoise (flips.py)          entries of a binary adjacency and of binary features flip: RS, sparsity-aware RS
DeletionNoise (deletions.py)  edges and nodes are deleted: Bi-RS
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Self

from agnncert.errors import SettingsError
from agnncert.proof.ballots import BoolArray, IntArray
from agnncert.proof.budget import COUNTS, Budget
from agnncert.proof.claim import noise_unit
from agnncert.proof.samples.bounds import ClassBounds


class Noise(ABC):
    """A random change of the input, and what a vote over it withstands. Subclasses are frozen dataclasses.

    Attributes:
        kind: Name of this kind of noise in files.
    """

    kind: ClassVar[str]

    @property
    def unit(self) -> str:
        """What one step of the radius counts."""
        return noise_unit(self.settings())

    @abstractmethod
    def radius(self, bounds: ClassBounds) -> IntArray:
        """The largest size, in this unit, that each target withstands, shape ``[n]``; -1 if it abstains."""

    @abstractmethod
    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Whether each target keeps its label against ``budget``; False where nothing is proved."""

    def settings(self) -> dict[str, Any]:
        """Kind and parameters as JSON can store them; infinity becomes "inf"."""
        values = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind} | {name: "inf" if value == math.inf else value for name, value in values.items()}

    @classmethod
    def load(cls, settings: Mapping[str, Any]) -> Self:
        """Noise from its parameters, as in :meth:`settings`.

        Raises:
            SettingsError: A parameter is missing, unknown or senseless.
        """
        try:
            return cls(**{name: math.inf if value == "inf" else value for name, value in settings.items()})
        except TypeError as error:
            raise SettingsError(f"these are not the parameters of {cls.kind} noise: {error}.") from None


def goes_beyond(budget: Budget, *covered: str) -> bool:
    """Whether the budget allows something outside the ``covered`` fields.

    Example:
        >>> goes_beyond(Budget(add_edges=1, edges_per_injected=9), "add_edges")
        False
    """
    # Without injected nodes it does not matter how many edges each might bring.
    effective = [name for name in COUNTS if name != "edges_per_injected" or budget.inject_nodes]
    return any(getattr(budget, name) > 0 for name in (*effective, "target_features") if name not in covered)


def check_probability(name: str, value: float, why_not_one: str = "") -> None:
    """Raises ``SettingsError`` unless ``value`` is a probability; 1 is refused if there is a reason against it."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise SettingsError(f"{name}={value!r}: expected a probability from 0 to 1.")
    if value == 1 and why_not_one:
        raise SettingsError(f"{name}=1: {why_not_one}")
