"""Counts votes of training labels again (Theorem 14 of ``docs/proofs.md``).

This module shares no code with ``labels.evidence``: for each target and rival it sorts the costs of all labels and adds
them up from the largest on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import BudgetError
from agnncert.labels.record import STEPS, LabelRecord
from agnncert.verifier.blocks import cut

PAIRS_AT_ONCE = 2**22  # targets times candidates whose costs are sorted at the same time


@dataclass(frozen=True)
class Recounted:
    """What follows from the votes of all targets.

    Attributes:
        label: The class with the best score, or the one that others are compared with instead, shape ``[n]``.
        needed: Fewest changed labels after which each class is no longer behind it by as much as it has to be,
            infinite if there is no such number and for the class itself, shape ``[n, C]``.
    """

    label: IntArray
    needed: FloatArray


def recount(record: LabelRecord, leader: int | None = None) -> Recounted:
    """Derives label and numbers of changed labels of every target.

    Args:
        record: The votes of labels.
        leader: Compares others with this class instead of the label. Then they only have to be behind it.
    """
    blocks = [_recount_block(record, rows, leader) for rows in _blocks(record)]
    if not blocks:
        return Recounted(np.zeros(0, dtype=np.int64), np.zeros((0, record.num_classes)))
    labels, needed = zip(*blocks, strict=True)
    return Recounted(np.concatenate(labels), np.concatenate(needed))


def _blocks(record: LabelRecord) -> Iterator[IntArray]:
    """Yields the positions of some targets at a time."""
    targets = np.arange(record.num_targets)
    for block in cut(np.full(len(targets), max(1, record.num_candidates)), PAIRS_AT_ONCE):
        yield targets[block]


def _recount_block(record: LabelRecord, rows: IntArray, leader: int | None) -> tuple[IntArray, FloatArray]:
    weight = weights_of(record, rows)
    score = np.empty((len(rows), record.num_classes), dtype=np.int64)
    for k, advance in enumerate(record.advance):
        score[:, k] = advance + weight[:, record.label_of == k].sum(axis=1)
    if leader is None:
        label, asked = np.argmax(score, axis=1), record.least_lead  # the first of several that are equal
    else:
        label, asked = np.full(len(rows), leader), 0
    best = score[np.arange(len(rows)), label]
    says_label = record.label_of[None, :] == label[:, None]
    needed = np.full(score.shape, np.inf)
    for k in range(record.num_classes):
        loss = np.abs(weight) + np.where(says_label, weight, 0) - np.where(record.label_of == k, weight, 0)
        loss[:, record.audited] = 0
        distance = best - score[:, k] - (k < label) - asked
        needed[:, k] = _how_many(loss, distance)
        needed[label == k, k] = np.inf
    return label, needed


def weights_of(record: LabelRecord, rows: IntArray) -> IntArray:
    """Returns the weight of each candidate for some targets, in steps, shape ``[b, m]``."""
    if record.weights.shape[1]:
        weight = record.weights[rows].astype(np.int64)
    else:
        # Sums of fewer than 2**12 products of numbers below 2**15: exact in float64, in any order.
        product = np.matmul(record.left[rows].astype(np.float64), record.right.astype(np.float64).T)
        whole = product.astype(np.int64) * STEPS // record.cap[rows][:, None]
        weight = np.minimum(np.maximum(whole, -STEPS), STEPS)
    for place, own in enumerate(record.own[rows].tolist()):
        if own >= 0:
            weight[place, own] = 0
    return weight


def _how_many(loss: IntArray, distance: IntArray) -> FloatArray:
    """Returns how many of the largest losses sum to more than a distance, infinite if all do not, shape ``[b]``."""
    descending = -np.sort(-loss.astype(np.int16), axis=1, kind="stable")
    total = np.cumsum(descending, axis=1, dtype=np.int64)
    fitting = (total <= distance[:, None]).sum(axis=1)
    number = np.where(fitting == loss.shape[1], np.inf, fitting + 1.0)
    return np.where(distance < 0, 0.0, number)


def changed_labels(record: LabelRecord, budget: Budget) -> float:
    """Returns how many labels an attack changes, at most all candidates; NaN if it changes anything else.

    Raises:
        BudgetError: It changes training data in a way that such a file proves nothing about, or labels and graph.
    """
    of_graph = [name for name in COUNTS if name != "edges_per_injected" and getattr(budget, name) > 0]
    changes_graph = bool(of_graph) or budget.target_features
    flipped = budget.flip_labels
    others = budget.add_labels + budget.remove_labels
    if budget.poison_graphs or (others and record.candidates == "labelled"):
        raise BudgetError(f"{budget}: such a certificate proves nothing about this kind of poisoned training data.")
    if not changes_graph:
        return min(flipped + others, float(record.num_candidates))
    if flipped or others:
        raise BudgetError(f"{budget}: such a certificate proves nothing about labels and graph together.")
    return np.nan


def stays_ahead(counted: Recounted, number: float) -> BoolArray:
    """Tells of which classes each label stays ahead if so many labels change, ``[n, C]``. NaN is anything else."""
    return np.asarray(counted.needed > number)
