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
        seconds_left: Expected time until the end, or NaN if unknown.
        detail: Something worth knowing, such as the loss.
    """

    what: str
    done: int
    total: int
    seconds_left: float
    detail: str = ""


OnProgress = Callable[[Progress], None]
# What certify does before and after it computes votes.
AUDITING = "auditing the model"
CHECKING = "computing some votes again, one subgraph at a time"
ReportProgress = Callable[[float], None]  # takes the fraction of a step that is done


def tell(progress: OnProgress | None, what: str, done: int, total: int = 1) -> None:
    """Passes on how far a step is, if anybody wants to know."""
    if progress is not None:
        progress(Progress(what, done, total, math.nan))


def follow(progress: OnProgress | None, what: str, total: float) -> ReportProgress:
    """Returns a function that takes the fraction of a step that is done, and passes it on with the time that is left.

    Args:
        progress: The user's callback. Nothing is passed on without one.
        what: What is being done.
        total: Units of work in all. If it is infinite, progress counts in hundredths.
    """
    begin = time.perf_counter()
    num_units = int(total) if math.isfinite(total) else 100
    last_done = -1

    def report_progress(fraction: float) -> None:
        nonlocal last_done
        done = round(fraction * num_units)
        if progress is None or done == last_done:
            return
        last_done = done
        seconds_left = math.nan
        if fraction:
            seconds_left = (time.perf_counter() - begin) * (1 - fraction) / fraction
        progress(Progress(what, done, num_units, seconds_left))

    return report_progress
