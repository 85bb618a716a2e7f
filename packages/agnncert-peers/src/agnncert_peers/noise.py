"""What every noise must answer: class bounds and a budget in, yes or no out.

``flip_noise``          entries of a binary adjacency and of binary features flip: RS, sparsity-aware RS
``deletion_noise``      edges and nodes are deleted: Bi-RS
``interception_noise``  edges and features of nodes are deleted: message-interception smoothing
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from agnncert.certificates.budget import COUNTS, TRAINING, Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import SettingsError
from agnncert_peers.bounds import ClassBounds
from agnncert_peers.sample_claim import noise_unit

ROUNDING = 1e-12  # probabilities are accurate to this; a label must lead by more
# Why no noise deletes all edges.
NO_GRAPH = "every edge would always be deleted, so the graph would never be used. Use a model without edges instead."


@dataclass(frozen=True)
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
        """Returns the largest size, in this unit, that each target is certified against; -1 if it abstains."""

    @abstractmethod
    def covered_fields(self) -> tuple[str, ...]:
        """Returns the fields of a budget about which something is proved."""

    def covers(self, budget: Budget) -> bool:
        """Tells whether anything is proved about such attacks."""
        return not goes_beyond(budget, *self.covered_fields())

    @abstractmethod
    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target keeps its label against ``budget``; False where nothing is proved."""

    def settings(self) -> dict[str, Any]:
        """Returns kind and parameters as JSON can store them; infinity becomes "inf"."""
        stored: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):
            value = getattr(self, field.name)
            stored[field.name] = "inf" if value == math.inf else value
        return stored

    @classmethod
    def load(cls, settings: Mapping[str, Any]) -> Self:
        """Makes noise from its parameters, as in :meth:`settings`.

        Raises:
            SettingsError: A parameter is missing, unknown or senseless.
        """
        parameters = {name: math.inf if value == "inf" else value for name, value in settings.items()}
        try:
            return cls(**parameters)
        except TypeError as error:
            raise SettingsError(f"these are not the parameters of {cls.kind} noise: {error}.") from None


def goes_beyond(budget: Budget, *covered: str) -> bool:
    """Tells whether the budget allows something outside the ``covered`` fields.

    Example:
        >>> goes_beyond(Budget(add_edges=1, edges_per_injected=9), "add_edges")
        False
    """
    amounts = {name: getattr(budget, name) for name in (*COUNTS, "target_features", *TRAINING)}
    if not budget.inject_nodes:  # then it does not matter how many edges each might bring
        del amounts["edges_per_injected"]
    return any(amount > 0 for name, amount in amounts.items() if name not in covered)


def check_probability(name: str, value: float, why_not_one: str = "") -> None:
    """Raises ``SettingsError`` unless ``value`` is a probability; 1 is refused if there is a reason against it."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise SettingsError(f"{name}={value!r}: expected a probability from 0 to 1.")
    if value == 1 and why_not_one:
        raise SettingsError(f"{name}=1: {why_not_one}")
