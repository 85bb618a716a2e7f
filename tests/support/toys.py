"""A kind of evidence that nothing in the library knows: the least that a kind has to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import PREMISES, Claim
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence

TOY_UNIT = "stone {thrown} at a node"


@dataclass(frozen=True)
class ToyEvidence(Evidence):
    """The leader wins, and each added edge takes one point from its lead. Nothing else is covered."""

    kind: ClassVar[str] = "toy"

    points: np.ndarray

    @property
    def num_targets(self) -> int:
        return len(self.points)

    @property
    def counts(self) -> np.ndarray:
        return self.points

    def label_and_radius(self) -> tuple[np.ndarray, np.ndarray]:
        ordered = np.sort(self.points, axis=1)
        return self.points.argmax(axis=1), ordered[:, -1] - ordered[:, -2] - 1

    def holds(self, budget: Budget) -> np.ndarray:
        if budget != Budget(add_edges=budget.add_edges):
            return np.zeros(self.num_targets, dtype=bool)
        return self.label_and_radius()[1] >= budget.add_edges

    def possible(self, at: Budget | float) -> np.ndarray:
        label, radius = self.label_and_radius()
        holds = self.holds(at) if isinstance(at, Budget) else radius >= at
        return ~holds[:, None] | (np.arange(self.points.shape[1]) == label[:, None])

    def cheapest(self, prices: Prices, label: int | None = None) -> np.ndarray:
        return np.zeros(self.num_targets)

    def broken_at_most(self, budget: Budget, among: np.ndarray | None = None) -> int:
        return int((~self.holds(budget) & (True if among is None else among)).sum())

    def tensors(self) -> dict[str, np.ndarray]:
        return {"points": self.points}

    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def load(cls, tensors: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Self:
        return cls(tensors["points"])


def toy_certificate(num_targets: int = 30) -> Certificate:
    """A certificate of that kind for nodes, whose radii differ. Some counts are negative."""
    points = np.random.default_rng(4).integers(-3, 9, size=(num_targets, 3))
    points[np.arange(num_targets), np.arange(num_targets) % 3] += 12
    claim = Claim(
        task="node",
        method="toys",
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=TOY_UNIT,
        covers=("Edges added.",),
        assumes=(*PREMISES, "Points are points."),
        not_proved=("Anything about injected nodes.",),
    )
    return Certificate(claim, ToyEvidence(points), np.arange(num_targets))
