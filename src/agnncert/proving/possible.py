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


def possible_classes(tally: Counts, limits: Limits) -> BoolArray:
    """Which classes can win if votes within ``limits`` change, shape ``[n, C]``; all where nothing is covered.

    Exact for given votes and limits, unless a negative prior is in doubt: of it every class but k is assumed to bear
    the whole.
    """
    answer, rows = (
        tally.is_label | ~limits.covered[:, None],
        np.flatnonzero(limits.covered & ~withstands(tally, limits)),
    )
    votes, size = tally.votes[:, rows], tally.size[:, rows]
    for k in range(answer.shape[1]):
        won = limits.limit(size - votes[:, :, k], rows)
        needed = np.maximum(_lacking(tally, rows, k, won), 0)
        # The needed votes of a class are taken from its reached ones first, as these are limited least.
        beyond = np.maximum(needed - votes[REACHED], 0)
        unlisted = np.maximum(beyond - votes[UNREACHED], 0)
        wins = (unlisted <= votes[UNLISTED]).all(axis=1) & (needed.sum(axis=1) <= limits.all[rows])
        wins &= (beyond.sum(axis=1) <= limits.beyond_reached[rows]) & (unlisted.sum(axis=1) <= limits.unlisted[rows])
        answer[rows, k] |= wins
    return answer


def possible_touches(tally: Counts, touches: Touches, facts: Facts) -> BoolArray:
    """As :func:`possible_classes`, where every neighbour has its own group and votes come and go, ``[n, C]``."""
    rows = np.flatnonzero(touches.covered & ~withstands_touches(tally, touches, facts))
    answer, votes = tally.is_label | ~touches.covered[:, None], tally.votes[REACHED][rows]
    new, touched, altered, turned = (
        part[rows] for part in (touches.new, touches.touched, touches.altered, touches.turned)
    )
    one_way = np.zeros_like(votes) if facts.one_way is None else facts.one_way[rows]
    in_one_way = np.zeros(len(rows)) if facts.one_way_size is None else facts.one_way_size[rows]
    for k in range(answer.shape[1]):
        others = tally.size[REACHED][rows] - votes[:, k]
        if k == facts.absent:  # a vote that goes is one more for k; a new one, even for k, is none more
            won = np.minimum(others, touched + np.minimum(turned, in_one_way - one_way[:, k]))
        else:
            won = new + np.minimum(altered, others)
        needed = _lacking(tally, rows, k, won)
        wins = np.ones(len(rows), dtype=bool)
        if facts.absent >= 0 and k != facts.absent:
            # Each new vote is one less for the class that empty groups cast, each that goes is one more. Only what
            # is altered lowers it, and what is altered there is not altered elsewhere.
            surplus, needed[:, facts.absent] = needed[:, facts.absent] - new, 0
            elsewhere = np.maximum(needed, 0).sum(axis=1)
            wins = (surplus <= votes[:, facts.absent]) & (surplus + elsewhere <= np.minimum(altered, others))
        needed = np.maximum(needed, 0)
        by_turning = np.minimum(turned, np.minimum(one_way, needed).sum(axis=1))
        wins &= (needed <= votes).all(axis=1) & (needed.sum(axis=1) - by_turning <= touched)
        answer[rows, k] |= wins
    return answer


def possible_by_number(tally: Counts, number: float, facts: Facts | None = None) -> BoolArray:
    """Which classes can win if this many votes change, shape ``[n, C]``: whichever, as for the radius.

    Args:
        tally: The votes.
        number: How many changes; of a fraction the next whole number, and less than 0 for the votes as they are.
        facts: Given where every neighbour has its own group and changes are of any kind. Then a class counts as
            possible if it can beat the label: sound, and exact for two classes.
    """
    if number < 0:
        return tally.is_label
    if facts is None:
        limit = np.full(len(tally.label), np.ceil(number))
        return possible_classes(tally, Limits(limit, limit, limit, np.ones(len(limit), dtype=bool)))
    gain = per_neighbour_gain(tally, facts.absent, tally.votes[REACHED], int(min(np.ceil(number), LARGEST_AMOUNT)))
    return np.asarray(tally.is_label | (tally.margin < gain))


def _lacking(tally: Counts, rows: IntArray, k: int, won: FloatArray) -> FloatArray:
    """Votes that each class must lose before k beats it, if k wins this many, shape ``[r, C]``; k itself none."""
    margin, label, classes = tally.margin[rows], tally.label[rows], np.arange(tally.margin.shape[1])
    # A margin is the distance of a class from the label, votes in doubt and ties included: taken back for all but k.
    in_doubt = -margin[np.arange(len(label)), label][:, None]
    ahead = -margin - in_doubt - (classes < label[:, None])
    lacking = ahead + (classes < k) + (margin[:, k] + (k < label) - won)[:, None]
    lacking[:, k] = 0
    return np.asarray(lacking, dtype=np.float64)
