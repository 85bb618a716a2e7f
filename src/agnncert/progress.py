"""The one progress callback: every function with ``progress=`` calls it with a ``Progress``."""

import math
import time
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


def follow(progress: OnProgress | None, what: str, total: float) -> Callable[[float], None]:
    """A function that is told which share of a step is done, and passes that on with the time that is left."""
    begin, steps = time.perf_counter(), int(total) if math.isfinite(total) else 100

    told = -1

    def tell(share: float) -> None:
        nonlocal told
        done = round(share * steps)
        if progress is not None and done != told:
            told = done
            left = (time.perf_counter() - begin) * (1 - share) / share if share else math.nan
            progress(Progress(what, done, steps, left))

    return tell
