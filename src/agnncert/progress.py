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
ReportProgress = Callable[[float], None]  # takes the fraction of a step that is done


def follow(progress: OnProgress | None, what: str, total: float) -> ReportProgress:
    """A function that takes the fraction of a step that is done, and passes it on with the time that is left."""
    begin, steps = time.perf_counter(), int(total) if math.isfinite(total) else 100

    last = -1

    def report_progress(fraction: float) -> None:
        nonlocal last
        done = round(fraction * steps)
        if progress is not None and done != last:
            last = done
            left = (time.perf_counter() - begin) * (1 - fraction) / fraction if fraction else math.nan
            progress(Progress(what, done, steps, left))

    return report_progress
