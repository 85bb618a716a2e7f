"""Random draws whose cost is proportional to what they change.

Noise deletes or adds each edge independently of all others: one coin is tossed for each pair of nodes. Nearly all coins
change nothing, so only those that do are drawn.
"""

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import IntArray

# What samples are drawn for. Each stage has random numbers of its own.
SELECTION = 0
ESTIMATION = 1
TRAINING = 2


def stream(seed: int, stage: int, batch: int) -> np.random.Generator:
    """Returns the random numbers of one batch, which depend on these three numbers and on nothing drawn before."""
    return np.random.default_rng(np.random.SeedSequence([seed, stage, batch]))


def successes(rng: np.random.Generator, length: int, p: float) -> IntArray:
    """Returns the positions of the successes in ``length`` independent trials, each with probability ``p``, ascending.

    The distance from one success to the next is geometric, so only successes are drawn and the cost is proportional to
    their number. They are distributed exactly as those of ``length`` separate coins, which they would not be if
    a number of positions were drawn and duplicates rejected.

    Example:
        >>> successes(np.random.default_rng(0), 5, 1.0)
        array([0, 1, 2, 3, 4])
    """
    if p <= 0 or length <= 0:
        return np.empty(0, dtype=np.int64)
    if p >= 1:
        return np.arange(length, dtype=np.int64)
    parts: list[IntArray] = []
    last = -1
    while last < length:
        expected = (length - last) * p
        steps = rng.geometric(p, size=int(expected + 4 * np.sqrt(expected) + 16))
        steps = np.minimum(steps, length + 1)  # how far a step leads past the end does not matter, but it may overflow
        parts.append(last + np.cumsum(steps))
        last = int(parts[-1][-1])
    positions = np.concatenate(parts)
    return positions[: np.searchsorted(positions, length)]


def pair_at(place: IntArray) -> tuple[IntArray, IntArray]:
    """Returns the pair ``i < j`` at each place of the list (0,1), (0,2), (1,2), (0,3), (1,3), (2,3), …

    The first ``n (n - 1) / 2`` places are the pairs of ``n`` nodes.

    Example:
        >>> pair_at(np.arange(6))
        (array([0, 0, 1, 0, 1, 2]), array([1, 2, 2, 3, 3, 3]))
    """
    j = ((1 + np.sqrt(8.0 * place + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > place  # the square root may be off by one either way
    j += (j + 1) * j // 2 <= place
    i = place - j * (j - 1) // 2
    return i, j


def place_of_pair(i: IntArray, j: IntArray) -> IntArray:
    """Returns the place of the pair ``i < j`` in the list of ``pair_at``."""
    return np.asarray(j * (j - 1) // 2 + i)


def runs(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> IntArray:
    """Returns runs ``starts[k], starts[k] + 1, …`` of ``counts[k]`` numbers each, one after the other.

    Example:
        >>> runs(np.array([5, 9]), np.array([2, 3]))
        array([ 5,  6,  9, 10, 11])
    """
    ends = np.cumsum(counts)
    total = int(counts.sum())
    shift = starts - (ends - counts)  # from the place in the result to the number there
    return np.asarray(np.repeat(shift, counts) + np.arange(total))
