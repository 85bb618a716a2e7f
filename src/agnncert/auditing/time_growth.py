"""How the time of a computation grows with its size, so that an audit can avoid what would take very long."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

STEEP = 1.5  # exponent from which on time grows much faster than the graph
MOST_SECONDS = 2.0  # of one evaluation
RATIO = 4  # between the two sizes that are measured


@dataclass(frozen=True)
class TimeGrowth:
    """Time as a power of the size.

    Attributes:
        size: A size.
        seconds: Time for that size.
        exponent: The power with which time grows.
    """

    size: int
    seconds: float
    exponent: float

    def predicted(self, size: int) -> float:
        """Returns the seconds that another size would take."""
        return self.seconds * math.pow(size / self.size, self.exponent)


def growth_of_time(run: Callable[[int], None], size: int) -> TimeGrowth:
    """Measures the processor time of a computation at two sizes, each twice, and takes the shorter times.

    Processor time hardly depends on what else the machine does, so that a busy machine does not shrink an audit.

    Args:
        run: The computation. It takes its size.
        size: The larger of the two sizes. The other is a quarter of it.
    """
    smaller = _seconds(run, size // RATIO)
    larger = _seconds(run, size)
    return TimeGrowth(size, larger, math.log(larger / smaller) / math.log(RATIO))


def _seconds(run: Callable[[int], None], size: int) -> float:
    times = []
    for _ in range(2):
        start = process_time()
        run(size)
        times.append(process_time() - start)
    return max(min(times), 1e-9)
