"""Theorem 12: which classes an attack can make win, from the votes of every class. Pure functions.

A class k wins if it beats every other class, not only the label. Every vote that moves is best moved to k: it then
raises k, and lowers the class that it was for. A larger set of moved votes is never worse, and all largest sets have
the same size, so the number of votes that k wins is known. What is left to ask is whether the moved votes can be
taken from the right classes: from each class as many as it still has more than k.

``recount_possible`` does the same a second time, vote by vote, in code that imports nothing from here.
"""

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.proving.per_neighbour import Touches, per_neighbour_gain, withstands_touches
from agnncert.proving.theorems import LARGEST_AMOUNT, REACHED, UNLISTED, UNREACHED, Counts, Facts, Limits, withstands


def possible_classes(counts: Counts, limits: Limits) -> BoolArray:
    """Returns which classes can win if votes within ``limits`` change, shape ``[n, C]``; all where nothing is covered.

    The answer is exact for given votes and limits, unless a negative prior is in doubt. Every class but k is assumed to
    bear the whole of such a prior.
    """
    answer = counts.is_label | ~limits.covered[:, None]
    rows = np.flatnonzero(limits.covered & ~withstands(counts, limits))
    votes = counts.votes[:, rows]
    size = counts.size[:, rows]
    for k in range(answer.shape[1]):
        won = limits.limit(size - votes[:, :, k], rows)
        needed = np.maximum(_lacking(counts, rows, k, won), 0)
        # The needed votes of a class are taken from its reached ones first, as these are limited least.
        beyond = np.maximum(needed - votes[REACHED], 0)
        unlisted = np.maximum(beyond - votes[UNREACHED], 0)
        wins = (unlisted <= votes[UNLISTED]).all(axis=1)
        wins &= needed.sum(axis=1) <= limits.all[rows]
        wins &= beyond.sum(axis=1) <= limits.beyond_reached[rows]
        wins &= unlisted.sum(axis=1) <= limits.unlisted[rows]
        answer[rows, k] |= wins
    return answer


def possible_touches(counts: Counts, touches: Touches, facts: Facts) -> BoolArray:
    """Returns which classes can win where every neighbour has its own group and votes come and go, ``[n, C]``."""
    answer = counts.is_label | ~touches.covered[:, None]
    rows = np.flatnonzero(touches.covered & ~withstands_touches(counts, touches, facts))
    votes = counts.votes[REACHED][rows]
    new = touches.new[rows]
    touched = touches.touched[rows]
    altered = touches.altered[rows]
    turned = touches.turned[rows]
    one_way = np.zeros_like(votes) if facts.one_way is None else facts.one_way[rows]
    in_one_way = np.zeros(len(rows)) if facts.one_way_size is None else facts.one_way_size[rows]
    for k in range(answer.shape[1]):
        others = counts.size[REACHED][rows] - votes[:, k]
        if k == facts.absent:  # a vote that goes is one more for k, and a new one, even for k, is none more
            turned_to_k = np.minimum(turned, in_one_way - one_way[:, k])
            won = np.minimum(others, touched + turned_to_k)
        else:
            won = new + np.minimum(altered, others)
        needed = _lacking(counts, rows, k, won)
        wins = np.ones(len(rows), dtype=bool)
        if facts.absent >= 0 and k != facts.absent:
            # Each new vote is one less for the class that empty groups vote for, each that goes is one more. Only what
            # is altered lowers it, and what is altered there is not altered elsewhere.
            surplus = needed[:, facts.absent] - new
            needed[:, facts.absent] = 0
            elsewhere = np.maximum(needed, 0).sum(axis=1)
            wins &= surplus <= votes[:, facts.absent]
            wins &= surplus + elsewhere <= np.minimum(altered, others)
        needed = np.maximum(needed, 0)
        by_turning = np.minimum(turned, np.minimum(one_way, needed).sum(axis=1))
        wins &= (needed <= votes).all(axis=1)
        wins &= needed.sum(axis=1) - by_turning <= touched
        answer[rows, k] |= wins
    return answer


def possible_by_number(counts: Counts, number: float, facts: Facts | None = None) -> BoolArray:
    """Returns which classes can win if this many votes change, whichever these are, shape ``[n, C]``.

    Args:
        counts: The votes.
        number: How many changes. A fraction is rounded up, and less than 0 means the votes as they are.
        facts: Needed where every neighbour has its own group and changes are of any kind. A class then counts as
            possible if it can beat the label, which is sound, and exact for two classes. Defaults to None for all other
            divisions.
    """
    if number < 0:
        return counts.is_label
    if facts is None:
        limit = np.full(len(counts.label), np.ceil(number))
        return possible_classes(counts, Limits(limit, limit, limit, np.ones(len(limit), dtype=bool)))
    whole_number = int(min(np.ceil(number), LARGEST_AMOUNT))
    gain = per_neighbour_gain(counts, facts.absent, counts.votes[REACHED], whole_number)
    return np.asarray(counts.is_label | (counts.margin < gain))


def _lacking(counts: Counts, rows: IntArray, k: int, won: FloatArray) -> FloatArray:
    """Returns how many votes each class must lose before k beats it, if k wins this many, shape ``[r, C]``.

    The entry of k itself is 0.
    """
    margin = counts.margin[rows]
    label = counts.label[rows]
    classes = np.arange(counts.margin.shape[1])
    # A margin is the distance of a class from the label, votes in doubt and ties included: taken back for all but k.
    in_doubt = -margin[np.arange(len(label)), label][:, None]
    ahead = -margin - in_doubt - (classes < label[:, None])
    lacking = ahead + (classes < k) + (margin[:, k] + (k < label) - won)[:, None]
    lacking[:, k] = 0
    return np.asarray(lacking, dtype=np.float64)
