"""The one progress callback: what a long step tells whoever waits for it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a step is.

    Attributes:
        what: What is being done.
        done: Units of work finished.
        total: Units of work in all.
        seconds_left: Expected time until the end; NaN if nothing is known about it.
        detail: Something worth knowing, such as the loss.
    """

    what: str
    done: int
    total: int
    seconds_left: float
    detail: str = ""


OnProgress = Callable[[Progress], None]
