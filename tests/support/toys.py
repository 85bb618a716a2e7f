"""A kind of evidence that nothing in the library knows: the least that a kind has to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import PREMISES, Claim
from agnncert.proving.blocks import Rows
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence

TOY_UNIT = "stone {thrown} at a node"


@dataclass(frozen=True)
class ToyEvidence(Evidence):
    """The leader wins, and each added edge takes one point from its lead. Nothing else is covered."""

    kind: ClassVar[str] = "toy"

    points: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        return self.points

    def covers(self, budget: Budget) -> bool:
        return budget == Budget(add_edges=budget.add_edges)

    def stays_ahead(self, rows: Rows, attack: Budget | float, leader: int | None = None) -> np.ndarray:
        taken = attack.add_edges if isinstance(attack, Budget) else attack
        leading = self.leaders(rows, leader)[:, None]
        leads = np.take_along_axis(self.points[rows], leading, axis=1) - self.points[rows]
        return (leads > taken) | (np.arange(self.num_classes) == leading)

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
