"""Which classes a target may get, if it is known which classes stay ahead of which."""

from collections.abc import Callable

import numpy as np

from agnncert.certificates.votes import BoolArray, IntArray

Relation = Callable[[int | None], BoolArray]  # of which classes the label stays ahead, or this class: [n, C]


def may_win(label: IntArray, num_classes: int, stays_ahead: Relation) -> BoolArray:
    """Names the label, and each class that may get ahead of it and of the others that may, shape ``[n, C]``.

    Args:
        label: The label of each target, shape ``[n]``.
        num_classes: Number of classes ``C``.
        stays_ahead: Of which classes each label stays ahead under an attack; with a class, of which this one does.
    """
    is_label = np.arange(num_classes) == label[:, None]
    passes = ~stays_ahead(None) | is_label
    answer = passes.copy()
    for leader in range(num_classes):
        passes_too = passes[:, leader] & (label != leader)
        if passes_too.any():
            behind = stays_ahead(leader) & passes_too[:, None]
            behind[:, leader] = False  # a class does not stay behind itself
            answer &= ~behind
    return np.asarray(answer | is_label)
