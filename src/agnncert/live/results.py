"""What becomes of events: which were refused, and which decisions they moved."""

from dataclasses import dataclass

from agnncert.live.events import Event
from agnncert.proof.ids import Id


@dataclass(frozen=True)
class Refused:
    """An event that was refused: its place in the batch, and why."""

    index: int
    event: Event
    reason: str


@dataclass(frozen=True)
class Moved:
    """A target whose label or radius is another than before a batch.

    Attributes:
        target: Its id (graph task: its row).
        label: Label before and after; None before if the target is new.
        radius: Radius before and after; None before if the target is new.
    """

    target: Id
    label: tuple[int | None, int]
    radius: tuple[int | None, int]

    @property
    def flipped(self) -> bool:
        """Whether the label is another."""
        return self.label[0] is not None and self.label[0] != self.label[1]

    def fell_below(self, threshold: float) -> bool:
        """Whether the radius was at or above a threshold (or the target was not there) and is now below it."""
        return self.radius[1] < threshold and (self.radius[0] is None or self.radius[0] >= threshold)


@dataclass(frozen=True)
class Applied:
    """What became of a batch.

    Attributes:
        number: How many events have been applied since the live graph began, this batch included.
        events: How many events of this batch were applied.
        repeated: Whether a batch of this id had been acknowledged before: nothing was done now.
        moved: Targets whose label or radius changed, new ones included.
        gone: Ids of targets that were deleted.
        refused: Events that were left out, and why.
    """

    number: int
    events: int
    repeated: bool = False
    moved: tuple[Moved, ...] = ()
    gone: tuple[Id, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def flipped(self) -> tuple[Moved, ...]:
        """Targets whose label is another than before."""
        return tuple(one for one in self.moved if one.flipped)

    def fell_below(self, threshold: float) -> tuple[Moved, ...]:
        """Targets whose radius is below a threshold now and was not before."""
        return tuple(one for one in self.moved if one.fell_below(threshold))
