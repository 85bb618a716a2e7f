"""Blocks of targets: answers are computed for some targets at a time, so that memory is bounded."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import IntArray

Rows = slice | IntArray  # which targets: consecutive ones, or their numbers


def cut_into_blocks(entries: npt.ArrayLike, num_targets: int, at_once: int) -> list[slice]:
    """Cuts ``n`` targets into blocks of consecutive ones. Each block has one target at least.

    Args:
        entries: How many numbers are looked at for a target, the same for all or one for each, shape ``[n]``.
        num_targets: Number of targets ``n``.
        at_once: About how many numbers a block may have. Only a block's last target goes beyond.

    Example:
        >>> cut_into_blocks(3, 5, at_once=6)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if not num_targets:
        return []
    of_each = np.broadcast_to(np.asarray(entries, dtype=np.int64), (num_targets,))
    before = np.cumsum(of_each) - of_each
    starts = np.flatnonzero(np.diff(before // at_once)) + 1
    edges = [0, *starts.tolist(), num_targets]
    return [slice(first, last) for first, last in pairwise(edges)]


def listed_of(indptr: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Returns which entries of the lists belong to some targets, and to which place among these, both ``[e]``.

    Args:
        indptr: Entries of target ``j`` are ``indptr[j]:indptr[j + 1]``.
        numbers: Numbers of the targets, shape ``[b]``.
    """
    number_of_entries = indptr[numbers + 1] - indptr[numbers]
    place = np.repeat(np.arange(len(numbers)), number_of_entries)
    before = np.cumsum(number_of_entries) - number_of_entries
    return np.arange(len(place)) + (indptr[numbers] - before)[place], place
