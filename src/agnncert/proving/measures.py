"""Measures per class that no attack can push further: recall, precision, false positive rate, balanced accuracy.

Accuracy says little where one class is rare: the constant answer "fine" is right for 97 % of all accounts if 3 % are
fraud. Here every target has a set of *possible* labels: those that some attack within a budget may give it
(``Certificate.possible``). Of each class c are counted

    support            targets whose true class is c
    true positives     of these, the ones with no other possible label than c
    false positives    targets of other classes for which c is possible

Recall is then at least true positives / support, the false positive rate at most false positives / targets of other
classes, and precision at least true positives / (true positives + false positives). An attacker who chooses a possible
label for each target by itself reaches all of these bounds at once (``docs/proofs.md``, "Measures per class").
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError
from agnncert.proving.words import LOWER, UPPER, plain_percent

MEASURES = ("accuracy", "balanced")
RARE = 0.15  # of an equal share: a class is rare below 7.5 % of two classes, or 1.5 % of ten


@dataclass(frozen=True, eq=False)
class Measures:
    """What no attack within a budget can push further, for each of C classes; ``print`` shows it as a table.

    Attributes:
        support: Targets of each class, shape ``[C]``.
        true_positives: Targets of each class that keep this label, at least, shape ``[C]``.
        false_positives: Targets of other classes that may get this label, at most, shape ``[C]``.
        correct: Targets of all classes that keep their correct label, at least.
    """

    support: IntArray
    true_positives: IntArray
    false_positives: IntArray
    correct: int

    @property
    def num_targets(self) -> int:
        """Number of targets with a true class."""
        return int(self.support.sum())

    @cached_property
    def recall(self) -> FloatArray:
        """Share of each class that keeps its label, at least, shape ``[C]``; NaN for a class without targets."""
        return _share(self.true_positives, self.support)

    @cached_property
    def precision(self) -> FloatArray:
        """Share of each label that is correct, at least, shape ``[C]``; NaN if no target may get this label."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @cached_property
    def false_positive_rate(self) -> FloatArray:
        """Share of all other classes that may get this label, at most, ``[C]``; NaN if there are no others."""
        return _share(self.false_positives, self.num_targets - self.support)

    @property
    def accuracy(self) -> float:
        """Share of targets that keep their correct label, at least."""
        return self.correct / self.num_targets

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that have targets, at least: every class counts the same."""
        return float(np.nanmean(self.recall))

    @property
    def majority_share(self) -> float:
        """Share of the most frequent class: the accuracy of a constant answer, which no attack changes."""
        return float(self.support.max() / self.num_targets)

    @property
    def rarest(self) -> int:
        """The class with the fewest targets, at least one; ties go to the smaller number."""
        return int(np.where(self.support > 0, self.support, self.num_targets + 1).argmin())

    @property
    def warning(self) -> str:
        """A sentence if the accuracy is below that of the most frequent class; else empty."""
        if self.correct >= self.support.max():
            return ""
        return f"below the most frequent class alone ({plain_percent(self.majority_share, LOWER)})"

    def __str__(self) -> str:
        lines = [f"{'class':>5} {'targets':>9} {'recall':>9} {'precision':>10} {'false positives':>16}"]
        for k in np.flatnonzero(self.support):
            recall = plain_percent(self.recall[k], LOWER)
            precision = plain_percent(self.precision[k], LOWER)
            false_positives = plain_percent(self.false_positive_rate[k], UPPER)
            lines.append(f"{k:>5} {self.support[k]:>9,} {recall:>9} {precision:>10} {false_positives:>16}")
        balanced = plain_percent(self.balanced_accuracy, LOWER)
        lines.append(f"balanced accuracy {balanced}, accuracy {plain_percent(self.accuracy, LOWER)}")
        if self.warning:
            lines[-1] += f": {self.warning}"
        return "\n".join(lines)


def _share(part: IntArray, whole: IntArray) -> FloatArray:
    """Returns ``part / whole``, NaN where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def own_or_any(label: IntArray, holds: BoolArray, num_classes: int) -> BoolArray:
    """Returns the possible labels of predictions that have no votes, shape ``[n, num_classes]``.

    A label that holds is the only possible one. Where it does not hold, all classes are possible.

    Args:
        label: Label of each target, shape ``[n]``.
        holds: Whether it holds, shape ``[n]``.
        num_classes: Number of classes.
    """
    return np.asarray(~holds[:, None] | (label[:, None] == np.arange(num_classes)))


def measured(possible: BoolArray, truth: IntArray) -> Measures:
    """Computes the measures of targets from their possible labels.

    Args:
        possible: Which labels some attack may give each target, shape ``[n, C]``.
        truth: True classes, shape ``[n]``. Targets without a true class have a negative one, and do not count.

    Raises:
        SettingsError: No target has a true class, or one is C or larger.

    Example:
        >>> measures = measured(np.array([[1, 0], [1, 1], [0, 1], [1, 0]], dtype=bool), np.array([0, 0, 1, 1]))
        >>> measures.recall, measures.precision, measures.false_positive_rate
        (array([0.5, 0.5]), array([0.5, 0.5]), array([0.5, 0.5]))
    """
    has_truth = truth >= 0
    possible = possible[has_truth]
    truth = truth[has_truth]
    num_classes = possible.shape[1]
    if not len(truth):
        raise SettingsError("none of the targets has a true class: nothing can be correct.")
    if truth.max() >= num_classes:
        raise SettingsError(f"a target has the true class {truth.max():g}, but there are only {num_classes} classes.")
    is_class = truth[:, None] == np.arange(num_classes)
    stays_correct = (possible & is_class).any(axis=1) & (possible.sum(axis=1) == 1)
    return Measures(
        support=is_class.sum(axis=0),
        true_positives=(is_class & stays_correct[:, None]).sum(axis=0),
        false_positives=(possible & ~is_class).sum(axis=0),
        correct=int(stays_correct.sum()),
    )


def rare_class(count: IntArray) -> int | None:
    """Returns the rarest class if it has less than ``RARE`` of an equal share, else None.

    Classes without any targets do not count.

    Args:
        count: Targets of each class, shape ``[C]``.

    Example:
        >>> rare_class(np.array([93, 7])), rare_class(np.array([92, 8]))
        (1, None)
    """
    classes = np.flatnonzero(count)
    if not len(classes):
        return None
    rarest = int(classes[count[classes].argmin()])
    if count[rarest] * len(classes) >= RARE * count.sum():
        return None
    return rarest


def target_weights(truth: IntArray, measure: str) -> FloatArray:
    """Returns the weight of each target in a measure, shape ``[n]``. The sum of the weights is 1.

    All targets weigh the same in ``"accuracy"``, and all classes weigh the same in every other measure.

    Example:
        >>> target_weights(np.array([0, 0, 0, 1]), "balanced").tolist()
        [0.16666666666666666, 0.16666666666666666, 0.16666666666666666, 0.5]
    """
    if measure == "accuracy" or not len(truth):
        return np.full(len(truth), 1 / max(1, len(truth)))
    count = np.bincount(truth)
    return np.asarray(1 / (np.count_nonzero(count) * count[truth]))


def rate_of(measure: str) -> float | None:
    """Returns the false positive rate of a measure such as ``"recall@0.01"``.

    It is None for ``"accuracy"`` and ``"balanced"``.

    Raises:
        SettingsError: It is no measure.
    """
    if measure in MEASURES:
        return None
    recall = re.fullmatch(r"recall@(0?\.\d+)", measure)
    if recall is None:
        raise SettingsError(
            f'measure="{measure}": expected "accuracy", "balanced", or "recall@0.01": the recall of the rarer of two '
            "classes at this false positive rate."
        )
    return float(recall[1])
