"""The one progress callback: every function with ``progress=`` calls it with a ``Progress``."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a long step is.

    Attributes:
        what: What is being done.
        done: Units of work finished.
        total: Units of work in all.
        seconds_left: Expected time until the end; NaN if unknown.
        detail: Something worth knowing, such as the loss.
    """

    what: str
    done: int
    total: int
    seconds_left: float
    detail: str = ""


OnProgress = Callable[[Progress], None]
