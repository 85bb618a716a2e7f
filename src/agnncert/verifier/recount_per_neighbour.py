"""Counts again where every neighbour, pair or node has a vote of its own (``T=inf``).

This module shares no code with ``proving.per_neighbour``, and works differently: instead of closed formulas it plays
the worst attack vote by vote, and searches radii and prices by bisection.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.verifier.effects import Changes, product
from agnncert.verifier.piles import REACHED, Piles, class_of_empty_groups

BEYOND_ALL = 2.0**40  # more changes than there can be votes and votes in a prior


@dataclass(frozen=True)
class EmptyGroups:
    """What empty groups vote for, as seen by each rival, shape ``[r]`` each. Both are False where they abstain.

    Attributes:
        for_label: Whether they vote for the label.
        for_rival: Whether they vote for the rival.
    """

    for_label: BoolArray
    for_rival: BoolArray


def empty_groups(piles: Piles) -> EmptyGroups:
    """Returns what empty groups vote for."""
    empty = class_of_empty_groups(piles.record)
    return EmptyGroups(for_label=piles.label[piles.owner] == empty, for_rival=piles.rival == empty)


def gain(piles: Piles, changes: Changes) -> FloatArray:
    """Returns the most that each rival gains on the label, shape ``[r]``."""
    return _gain_by_touching(piles, changes) + _gain_by_adding(piles, changes)


def _gain_by_touching(piles: Piles, changes: Changes) -> FloatArray:
    """Returns the most that each rival gains by votes that go or are altered, shape ``[r]``.

    A vote that is altered becomes one for the rival. A vote that goes becomes what empty groups vote for: nobody, the
    label or the rival. It is best to alter votes for the label first: if one of them stays or goes while a vote for
    another class is altered, exchanging the two loses nothing. If alterations are left after that, no vote for the
    label is, so other votes are altered. Of the votes that may still go, those for the label go first.
    """
    of_label = piles.for_label[REACHED]
    of_others = piles.for_others[REACHED]
    removed = changes.removed[piles.owner]
    altered = changes.altered[piles.owner]
    touched = changes.touched[piles.owner]
    label_altered = np.minimum(altered, of_label)
    others_altered = np.minimum(altered - label_altered, of_others)
    may_go = np.minimum(removed, touched - label_altered - others_altered)
    label_gone = np.minimum(may_go, of_label - label_altered)
    others_gone = np.minimum(may_go - label_gone, of_others - others_altered)

    empty = empty_groups(piles)
    by_altered = 2 * label_altered + others_altered
    by_gone = np.where(empty.for_rival, 2 * label_gone + others_gone, label_gone)
    by_gone = np.where(empty.for_label, 0, by_gone)
    return np.asarray(by_altered + by_gone)


def _gain_by_adding(piles: Piles, changes: Changes) -> FloatArray:
    """Returns the most that each rival gains by votes that come to be, or are turned instead, shape ``[r]``.

    A new vote takes the place of an empty group, so it gains two, one or nothing. Instead of adding a vote, an edge may
    turn a pair that has one direction only. A vote for the label that is turned gains two, any other one gains one.
    Votes that are removed or altered anyway gain nothing more by being turned.
    """
    empty = empty_groups(piles)
    by_new = np.where(empty.for_label, 2, np.where(empty.for_rival, 0, 1))
    new = changes.new[piles.owner]
    turned = changes.turned[piles.owner]
    touched = changes.touched[piles.owner]

    of_label = piles.for_label[REACHED]
    of_all = of_label + piles.for_others[REACHED]
    one_way_of_all = piles.one_way_for_label + piles.one_way_for_others
    label_turned = np.minimum(np.minimum(turned, piles.one_way_for_label), np.maximum(of_label - touched, 0))
    all_turned = np.minimum(np.minimum(turned, one_way_of_all), np.maximum(of_all - touched, 0))
    # What turned votes gain on top of new ones: each one that is for the label gains one more than any other.
    on_top = np.where(by_new < 2, label_turned, 0) + np.where(by_new < 1, all_turned, 0)
    return np.asarray(product(new, by_new) + on_top)


def radius(piles: Piles, altering: bool) -> IntArray:
    """Returns the certified number of changes of any kind, shape ``[n]``.

    It is -1 where another class may win already, and ``num_groups`` where no number of changes makes one win.

    Args:
        piles: The targets.
        altering: Whether changes that alter a vote count too. Without them it is the structure radius.
    """

    def wins(size: FloatArray) -> BoolArray:
        return _gain_of_any(piles, size, altering) > piles.lead

    smallest_win = _first(wins, len(piles.owner))
    may_win = np.isfinite(smallest_win)
    radius = np.full(piles.num_targets, piles.record.votes.num_groups)
    np.minimum.at(radius, piles.owner[may_win], smallest_win[may_win].astype(np.int64) - 1)
    return np.asarray(np.maximum(radius, -1))


def _gain_of_any(piles: Piles, size: FloatArray, altering: bool) -> FloatArray:
    """Returns the most that each rival gains by this many changes of whatever kind gains most, shape ``[r]``."""
    empty = empty_groups(piles)
    any_vote = altering | empty.for_rival  # if empty groups vote for the rival, a vote that goes is as good as altered
    twos = np.where(any_vote, piles.for_label[REACHED], piles.one_way_for_label)
    ones = np.where(any_vote, piles.for_others[REACHED], piles.one_way_for_others)
    # New votes, of which there may be any number, gain two, one or nothing.
    twos = np.where(empty.for_label, math.inf, twos)
    ones = np.where(empty.for_rival, ones, math.inf)
    gain_two = np.minimum(size, twos)
    gain_one = np.minimum(size - gain_two, ones)
    return 2 * gain_two + gain_one


def new_neighbours_needed(piles: Piles, changes: Changes) -> FloatArray:
    """Returns the fewest new neighbours with which each target breaks if all else is spent on it, shape ``[n]``.

    It is infinite where no number suffices, and 0 where the theorem says nothing.
    """
    by_touching = _gain_by_touching(piles, changes)

    def breaks(number: FloatArray) -> BoolArray:
        fewer = replace(changes, new=np.minimum(changes.new, number), turned=np.minimum(changes.turned, number))
        wins = by_touching + _gain_by_adding(piles, fewer) > piles.lead
        return ~changes.covered | piles.targets_of(wins)

    return _first(breaks, piles.num_targets)


def changes_needed(piles: Piles, changes: Changes) -> FloatArray:
    """Returns the fewest changes at each target that may break it, shape ``[n]``.

    Changes that may gain two come first, and all others count as gaining one. The number is infinite where the whole
    attack does not suffice, and 0 where the theorem says nothing.
    """
    empty = empty_groups(piles)
    altered = changes.altered[piles.owner]
    touched = changes.touched[piles.owner]
    new = changes.new[piles.owner]
    turned = np.minimum(changes.turned[piles.owner], piles.one_way_for_label)
    to_rival = np.where(empty.for_rival, touched, altered) + turned
    twos = np.minimum(to_rival, piles.for_label[REACHED]) + np.where(empty.for_label, new, 0)
    wins_with_all = gain(piles, changes) > piles.lead

    def wins(number: FloatArray) -> BoolArray:
        return np.asarray(wins_with_all & (number + np.minimum(number, twos) > piles.lead))

    needed = np.where(changes.covered, math.inf, 0.0)
    np.minimum.at(needed, piles.owner, _first(wins, len(piles.owner)))
    return needed


def _first(is_true: Callable[[FloatArray], BoolArray], length: int) -> FloatArray:
    """Returns the least number, from 0 on, at which each of some monotone tests is true. It is infinite if none is.

    The search is by bisection. Most numbers are small, so steps at first only double.

    Args:
        is_true: The tests: takes one number for each of them, shape ``[length]``.
        length: How many tests there are.
    """
    low = np.full(length, -1.0)  # where the test is false
    high = np.full(length, BEYOND_ALL)  # where it is true
    never = ~is_true(high)
    unsure = ~never & (high - low > 1)
    while unsure.any():
        middle = np.minimum(np.floor((low + high) / 2), 2 * low + 2)
        middle = np.where(unsure, middle, high)
        at_middle = is_true(middle)
        low = np.where(unsure & ~at_middle, middle, low)
        high = np.where(unsure & at_middle, middle, high)
        unsure = ~never & (high - low > 1)
    return np.where(never, math.inf, high)
