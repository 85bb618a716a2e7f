"""What a verifier knows about a theorem: what an attack does to votes, and what it says about targets."""

from abc import ABC, abstractmethod
from typing import ClassVar

from agnncert.certificates.votes import BoolArray, FloatArray
from agnncert.verifier.effects import Attack, Changes, Limits
from agnncert.verifier.piles import Piles


class Recount(ABC):
    """One theorem of ``docs/proofs.md``, stated a second time.

    It spells out what the division covers, instead of reading it from the facts that claims are written from.

    Attributes:
        covers_target: Whether the target's own features may change.
        by_neighbours: Whether every vote beyond the reached ones costs a new neighbour of the target.
    """

    covers_target: ClassVar[bool] = False
    by_neighbours: ClassVar[bool] = False

    @abstractmethod
    def effect(self, piles: Piles, attack: Attack) -> Limits | Changes:
        """Returns what an attack can do to the votes of each target: limits on those that move, or changes.

        Whether the target may change, and nodes without ids may go, is asked elsewhere.
        """


def of_any_tier(moved: FloatArray, covered: BoolArray) -> Limits:
    """Returns the limits of votes that may be in any tier."""
    return Limits(moved, moved, moved, covered)
