"""From counts of noisy predictions to bounds on class probabilities (Clopper and Pearson, 1934).

The label is chosen on one set of samples and its probability bounded on another. Choosing and bounding on
the same samples would favour the luckiest class, and the bounds would not hold with the stated probability.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from agnncert.votes import BoolArray, IntArray

FloatArray = npt.NDArray[np.float64]

# scipy's inverse is accurate to about 1e-14; moving every bound outwards by more than that keeps it a bound.
_ROUNDING = 1e-12


def lower_bound(successes: IntArray, trials: int, alpha: float) -> FloatArray:
    """A probability that the true one falls below with probability ``alpha`` at most (one-sided, exact).

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
    return np.maximum(bound - _ROUNDING, 0.0)


def upper_bound(successes: IntArray, trials: int, alpha: float) -> FloatArray:
    """A probability that the true one exceeds with probability ``alpha`` at most (one-sided, exact).

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
    """

    label: IntArray
    top: FloatArray
    other: FloatArray

    @property
    def abstains(self) -> BoolArray:
        """Whether the samples do not tell that the chosen class is the most probable one, shape ``[n]``."""
        return np.asarray(self.top <= self.other)


def class_bounds(selection: IntArray, estimation: IntArray, alpha: float) -> ClassBounds:
    """Label and class bounds of each target; its bounds hold together with probability ``1 - alpha``.

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
    # Two classes need one bound, because the other probability is what remains. More need one bound per
    # class.
    share = alpha if num_classes <= 2 else alpha / num_classes
    top = lower_bound(estimation[chosen], trials, share)
    other = 1.0 - top
    if num_classes > 2:
        # The rival is the worst of all other classes, not the runner-up of the selection samples.
        rivals = np.where(chosen, 0.0, upper_bound(estimation, trials, share))
        other = np.minimum(other, rivals.max(axis=1))
    return ClassBounds(label, top, other)
