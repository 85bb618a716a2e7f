"""How many of the targets that were kept for a threshold may be flagged, so that a rate is guaranteed.

*Theorem.* Let n targets of other classes and those to come be exchangeable, with one score each. Flag
what scores above the (k+1)-th largest of the n. If P(Bin(n, a) <= k) <= 1 - c, then with probability
c at least, over the draw of the n targets, a target to come is flagged with probability a at most.

*Proof.* Let q be the largest number with P(score >= q) >= a; then P(score > t) <= a for every t >= q.
The threshold lies below q only if at most k of the n scores are at least q. Each of them is with
probability a at least, independently, so this happens with probability P(Bin(n, a) <= k) at most. Ties
only help. (Of exchangeable targets in an infinite sequence the same holds given their distribution.)

The sum is computed in floating point and rounded up; the verifier computes it again in decimal
numbers of 50 digits (``verifier/recount_threshold``).
"""

import math
from collections.abc import Iterator

# Relative error of a sum of terms exp(lgamma(...)), with much to spare up to a million targets.
_SLACK = 1e-6


def most_flagged(kept: int, rate: float, confidence: float) -> int:
    """Returns how many of the kept targets may be flagged; -1 if there are too few to guarantee the rate.

    Args:
        kept: Number of targets of other classes that were kept.
        rate: The rate that is to be guaranteed, above 0 and below 1.
        confidence: With which probability, from .5 to below 1.

    Example:
        >>> [most_flagged(n, 0.1, 0.95) for n in (28, 29, 45, 46, 100)]
        [-1, 0, 0, 1, 4]
    """
    most = -1
    below = 0.0
    for k, term in enumerate(_terms(kept, rate)):
        below += term
        if below * (1 + _SLACK) > 1 - confidence:
            break
        most = k
    return most


def _terms(trials: int, rate: float) -> Iterator[float]:
    """Yields P(Bin(trials, rate) = k) for k = 0, 1, … up to the mean: the sum up to it exceeds a half."""
    last = min(trials, math.ceil(trials * rate) + 1)
    for k in range(last + 1):
        yield _term(k, trials, rate)


def _term(k: int, trials: int, rate: float) -> float:
    """Returns P(Bin(trials, rate) = k)."""
    chosen = math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
    return math.exp(chosen + k * math.log(rate) + (trials - k) * math.log1p(-rate))


def needed(rate: float, confidence: float) -> int:
    """Returns how many targets have to be kept at least to guarantee a rate.

    Example:
        >>> [needed(rate, 0.95) for rate in (0.1, 0.05, 0.01)]
        [29, 59, 299]
    """
    number = max(1, math.ceil(math.log(1 - confidence) / math.log1p(-rate)) - 2)
    while most_flagged(number, rate, confidence) < 0:
        number += 1
    return number


def largest_rate(hits: int, cases: int, confidence: float) -> float:
    """Returns the largest rate that is compatible with so many hits: an upper bound, wrong with 1 - confidence.

    Example:
        >>> round(largest_rate(0, 29, 0.95), 3), round(largest_rate(5, 50, 0.95), 3)
        (0.098, 0.199)
    """
    if hits >= cases:
        return 1.0
    low, high = hits / cases, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        below = sum(_term(k, cases, rate) for k in range(hits + 1))
        low, high = (rate, high) if below > 1 - confidence else (low, rate)
    return high


def smallest_rate(kept: int, confidence: float) -> float:
    """Returns the smallest rate that some number of kept targets can guarantee, if none of them is flagged.

    Example:
        >>> round(smallest_rate(29, 0.95), 3)
        0.098
    """
    return 1.0 - (1 - confidence) ** (1 / kept) if kept else 1.0
