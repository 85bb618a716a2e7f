"""From counts of noisy predictions to bounds: on class probabilities, and on what an attack can make of them.

**Class probabilities** (Clopper and Pearson, 1934). The label is chosen on one set of samples and its probability
bounded on another. Choosing and bounding on the same samples would favour the luckiest class, and the bounds would
not hold with the stated probability.

**The worst that any classifier can do under noise** (Neyman and Pearson, 1933). A smoothed classifier is known only
through a probability ``p`` that some event has under the noise around the clean input. Split the space of noisy inputs
into regions on which the ratio between the noise around the clean and around the perturbed input is constant, with
masses ``P_i`` and ``Q_i``. The event's probability around the perturbed input is least if it fills regions in order of
decreasing ``P_i / Q_i``, and greatest in the opposite order. Both answers are piecewise linear in ``p`` and attained,
so they cannot be improved.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray

# Against 40 digits, scipy's inverse was off by less than 3e-13 for up to a million samples; moving every bound outwards
# by more than that keeps it a bound. For ten million samples and alpha = 1e-30 it was off by 2e-12: see _corrected.
_ROUNDING = 1e-12


def lower_bound(successes: IntArray, trials: int, alpha: float) -> FloatArray:
    """Returns a probability that the true one falls below with probability ``alpha`` at most (one-sided, exact).

    Args:
        successes: Successes among ``trials`` independent ones, any shape.
        trials: Number of trials.
        alpha: Error probability.

    Example:
        >>> lower_bound(np.array([0, 90, 100]), 100, 0.05).round(4)
        array([0.    , 0.8363, 0.9705])
    """
    k = np.asarray(successes, dtype=np.float64)
    bound = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, alpha), 0.0)
    return np.maximum(_corrected(bound, k, trials, alpha) - _ROUNDING, 0.0)


def _corrected(bound: FloatArray, k: FloatArray, trials: int, alpha: float) -> FloatArray:
    """Returns the bound, found by bisection where the inverse is too high by more than the margin.

    The probability of this many successes is accurate where its inverse is not.
    """

    def too_high(p: FloatArray) -> BoolArray:
        return np.asarray((p > 0) & (betainc(np.maximum(k, 1), trials - k + 1, p) > alpha))

    wrong = too_high(np.maximum(bound - _ROUNDING, 0.0))
    if not wrong.any():
        return bound
    low = np.zeros(bound.shape)
    high = bound
    for _ in range(60):
        middle = (low + high) / 2
        is_too_high = too_high(middle)
        low = np.where(is_too_high, low, middle)
        high = np.where(is_too_high, middle, high)
    return np.where(wrong, low, bound)


def upper_bound(successes: IntArray, trials: int, alpha: float) -> FloatArray:
    """Returns a probability that the true one exceeds with probability ``alpha`` at most (one-sided, exact).

    Example:
        >>> upper_bound(np.array([0, 10, 100]), 100, 0.05).round(4)
        array([0.0295, 0.1637, 1.    ])
    """
    return 1.0 - lower_bound(trials - np.asarray(successes), trials, alpha)


@dataclass(frozen=True)
class ClassBounds:
    """What the samples say about each of ``n`` targets.

    Attributes:
        label: The class chosen on the selection samples, shape ``[n]``.
        top: Lower bound on the probability of that class under noise, shape ``[n]``.
        other: Upper bound on the probability of every other class, shape ``[n]``.
        each: The same for each class, shape ``[n, C]``; the chosen one has none, and is given 0.
        silent: Column r: lower bound on the probability that noise intercepts all messages of the r nodes that reach
            each target most often; of more nodes, the last column. Shape ``[n, m]``; only for noise that intercepts.
    """

    label: IntArray
    top: FloatArray
    other: FloatArray
    silent: FloatArray | None = None
    each: FloatArray | None = None

    def against(self, k: int) -> "ClassBounds":
        """Returns the bounds as if class ``k`` were the only rival."""
        if self.each is None:
            return self
        return replace(self, other=self.each[:, k])

    @property
    def abstains(self) -> BoolArray:
        """Whether the samples do not tell that the chosen class is the most probable one, shape ``[n]``."""
        return np.asarray(self.top <= self.other)


def class_bounds(selection: IntArray, estimation: IntArray, alpha: float) -> ClassBounds:
    """Returns the label and class bounds of each target, which hold together with probability ``1 - alpha``.

    Args:
        selection: Class counts of the samples that choose the label, shape ``[n, classes]``; ties go to the
            smaller class.
        estimation: Class counts of other, independent samples, same shape, equally many for all targets.
        alpha: Error probability of all bounds of one target together.

    Example:
        >>> bounds = class_bounds(np.array([[9, 1], [5, 5]]), np.array([[990, 10], [480, 520]]), alpha=0.01)
        >>> bounds.label, bounds.top.round(3), bounds.abstains
        (array([0, 0]), array([0.98 , 0.443]), array([False,  True]))
    """
    num_targets, num_classes = estimation.shape
    trials = int(estimation[0].sum()) if num_targets else 1
    label = selection.argmax(axis=1)
    chosen = np.arange(num_classes) == label[:, None]
    # Two classes need one bound, because their probabilities sum to 1. More need one bound per class.
    share = alpha if num_classes <= 2 else alpha / num_classes
    top = lower_bound(estimation[chosen], trials, share)
    each = np.where(chosen, 0.0, (1.0 - top)[:, None])
    if num_classes > 2:
        # The rival is the worst of all other classes, not the runner-up of the selection samples.
        each = np.minimum(each, upper_bound(estimation, trials, share))
    other = each.max(axis=1) if num_classes > 1 else 1.0 - top
    return ClassBounds(label, top, other, each=each)


# Larger attacks are not evaluated. Up to this size masses are accurate to 1e-12, and no useful noise withstands it.
LARGEST_FLIPS = 2000


@dataclass(frozen=True)
class Regions:
    """Regions sorted by decreasing ratio of their masses, so that the most clean ones come first.

    Attributes:
        clean: Mass of each region under the noise around the clean input.
        perturbed: Its mass under the noise around the perturbed input.
        log_ratio: Logarithm of ``clean / perturbed`` from the formula, hence correct even where a mass underflows;
            infinite where one of the masses is zero.
    """

    clean: FloatArray
    perturbed: FloatArray
    log_ratio: FloatArray

    def low(self, p: FloatArray) -> FloatArray:
        """Returns the least probability around the perturbed input of an event that has ``p`` around the clean one.

        The answer is rounded downwards: masses are accurate to 1e-12, so ``p`` and the answer are lowered by that.
        """
        x, y = _path(self.clean, self.perturbed)
        first = np.concatenate([[True], np.diff(x) > 0])  # where mass is too small to show, take the smaller answer
        answer = np.interp(np.asarray(p) - _ROUNDING, x[first], y[first])
        beyond = np.maximum(np.asarray(p) - x[-1], 0.0)
        return np.asarray(np.clip(answer - beyond - _ROUNDING, 0.0, 1.0))

    def up(self, p: FloatArray) -> FloatArray:
        """Returns the greatest probability around the perturbed input of such an event, rounded upwards."""
        x, y = _path(self.clean[::-1], self.perturbed[::-1])
        last = np.concatenate([np.diff(x) > 0, [True]])
        answer = np.interp(np.asarray(p) + _ROUNDING, x[last], y[last])
        beyond = np.maximum(np.asarray(p) - x[-1], 0.0)
        return np.asarray(np.clip(answer + beyond + _ROUNDING, 0.0, 1.0))

    def certifies(self, top: FloatArray, other: FloatArray) -> npt.NDArray[np.bool_]:
        """Tells whether a class of probability at least ``top`` still beats all others, each at most ``other``."""
        return np.asarray(self.low(top) > self.up(other))


def _path(clean: FloatArray, perturbed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns the corners of the curve from probability to probability when regions are filled in the given order."""
    x = np.concatenate([[0.0], np.cumsum(clean)])
    y = np.concatenate([[0.0], np.cumsum(perturbed)])
    return x, y


@lru_cache(maxsize=4096)
def flip_regions(added: int, deleted: int, p_add: float, p_delete: float) -> Regions:
    """Returns the regions of noise that flips 0 to 1 with ``p_add`` and 1 to 0 with ``p_delete``, entry by entry.

    Only the entries in which the inputs differ matter, and of them only how many agree with the perturbed input.

    Args:
        added: Entries that are 0 in the clean and 1 in the perturbed input.
        deleted: Entries that are 1 in the clean and 0 in the perturbed input.
        p_add: Probability that noise turns a 0 into a 1.
        p_delete: Probability that noise turns a 1 into a 0; ``p_add + p_delete < 1``.

    Example:
        >>> flip_regions(1, 0, p_add=0.2, p_delete=0.2).low(np.array([0.875])).round(6)
        array([0.5])
    """
    if p_add == 0 or p_delete == 0:
        return _one_sided(added, deleted, p_add, p_delete)
    clean = np.convolve(_binomial(added, p_add), _binomial(deleted, p_delete))
    perturbed = np.convolve(_binomial(added, 1 - p_delete), _binomial(deleted, 1 - p_add))
    agreeing = np.arange(added + deleted + 1)
    ratio_of_ones = math.log(p_add) - math.log1p(-p_delete)
    ratio_of_zeros = math.log(p_delete) - math.log1p(-p_add)
    log_ratio = (agreeing - deleted) * ratio_of_ones + (agreeing - added) * ratio_of_zeros
    return _frozen(clean, perturbed, log_ratio)


def _one_sided(added: int, deleted: int, p_add: float, p_delete: float) -> Regions:
    """Returns the regions of noise in one direction only: some outcomes are possible around one of the inputs alone.

    With ``p_add = 0`` a 1 at a deleted entry rules out the perturbed input, and a 1 at an added entry rules out the
    clean input; only samples with zeros at all these entries are possible around both. With ``p_delete = 0`` it is
    the other way round.
    """
    if p_add == 0:
        undecided_clean = p_delete**deleted
        undecided_perturbed = p_delete**added
    else:
        undecided_clean = p_add**added
        undecided_perturbed = p_add**deleted
    masses = [(1 - undecided_clean, 0.0), (undecided_clean, undecided_perturbed), (0.0, 1 - undecided_perturbed)]
    kept = [(p, q) for p, q in masses if p > 0 or q > 0]
    clean, perturbed = np.array(kept).T
    with np.errstate(divide="ignore"):
        return _frozen(clean, perturbed, np.log(clean) - np.log(perturbed))


def _binomial(trials: int, p: float) -> FloatArray:
    """Returns the probabilities of 0 … ``trials`` successes, by repeated squaring of the generating polynomial.

    All terms are positive, so nothing cancels: the relative error stays below about ``trials`` roundings. The
    alternating recursion of the released code gives negative probabilities from about 100 entries on.
    """
    result = np.ones(1)
    power = np.array([1 - p, p])
    while trials:
        if trials & 1:
            result = np.convolve(result, power)
        trials >>= 1
        if trials:
            power = np.convolve(power, power)
    return result


def joint_regions(first: Regions, second: Regions) -> Regions:
    """Returns the regions of two independent noises at once, such as on edges and on features.

    Products of regions are not sorted, so they are sorted again. The released joint certificate does not, and its
    answers are too optimistic.
    """
    clean = np.multiply.outer(first.clean, second.clean).ravel()
    perturbed = np.multiply.outer(first.perturbed, second.perturbed).ravel()
    with np.errstate(invalid="ignore"):  # inf - inf: possible around neither input, dropped below
        log_ratio = np.add.outer(first.log_ratio, second.log_ratio).ravel()
    order = np.argsort(-log_ratio, kind="stable")
    order = order[~np.isnan(log_ratio[order])]
    return _frozen(clean[order], perturbed[order], log_ratio[order])


def _frozen(clean: FloatArray, perturbed: FloatArray, log_ratio: FloatArray) -> Regions:
    for array in (clean, perturbed, log_ratio):
        array.setflags(write=False)  # tables are shared through the cache
    return Regions(clean, perturbed, log_ratio)
