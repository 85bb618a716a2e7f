"""Finds a second time which classes an attack can make win.

This module shares no code with ``proving.possible``. Where that has closed sums, this one plays the vote: it takes
votes from one class after the other, the least limited ones first, and looks at what is left of each limit.
"""

from dataclasses import dataclass

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN, BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.verifier.blocks import cut
from agnncert.verifier.effects import Changes, Limits
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import (
    NUM_TIERS,
    REACHED,
    UNLISTED,
    UNREACHED,
    Part,
    Totals,
    bundle_votes,
    class_of_empty_groups,
    count_by_target,
    prior_of,
    sort_part,
)

ENTRIES_AT_ONCE = 2**17


@dataclass(frozen=True)
class ClassVotes:
    """Votes of ``n`` targets for each of ``C`` classes.

    Attributes:
        certain: Votes of each class on every machine: stable ones, and those of the prior, shape ``[n, C]``.
        stable: Stable votes by tier and class, shape ``[3, n, C]``.
        one_way: Stable votes of pairs that have one direction only, by class, shape ``[n, C]``.
        totals: Votes of each target, whatever their class.
    """

    certain: IntArray
    stable: IntArray
    one_way: IntArray
    totals: Totals

    def to_lose(self, k: int, won: FloatArray) -> FloatArray:
        """Returns the votes that each class must lose for class k to win, shape ``[n, C]``; not above 0 if none.

        Args:
            k: The class. It also gets all votes in doubt.
            won: Votes that it wins, shape ``[n]``.
        """
        of_k = self.certain[:, k] + self.totals.in_doubt + won
        wins_ties = np.arange(self.certain.shape[1]) < k
        to_lose = self.certain + wins_ties - of_k[:, None]
        to_lose[:, k] = 0
        return np.asarray(to_lose)


def of_votes(record: VoteRecord, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    num_classes = record.votes.num_classes
    answer = np.zeros((record.num_targets, num_classes), dtype=bool)
    for targets in cut(np.full(record.num_targets, num_classes), ENTRIES_AT_ONCE):
        part = Part(record, targets)
        answer[part.targets] = _of_part(part, budget)
    return answer


def _of_part(part: Part, budget: Budget) -> BoolArray:
    piles = sort_part(part)
    limits = limits_under(piles, budget)
    votes = _count_by_class(part)
    possible = np.zeros((part.num_targets, part.num_classes), dtype=bool)
    for k in range(part.num_classes):
        if isinstance(limits, Limits):
            wins = _wins_by_moving(votes, limits, k)
        elif k == class_of_empty_groups(part.record):
            wins = _empty_groups_win(votes, limits, k)
        else:
            wins = _wins_by_changes(votes, limits, k, class_of_empty_groups(part.record))
        possible[:, k] = wins | ~limits.covered | (piles.label == k)
    return possible


def _count_by_class(part: Part) -> ClassVotes:
    n = part.num_targets
    bundles = bundle_votes(part)
    by_class = np.zeros((NUM_TIERS, n, part.num_classes + 1), dtype=np.int64)  # the last column: those that abstain
    np.add.at(by_class, (bundles.tier, bundles.target, bundles.choice), bundles.num_stable)
    stable = by_class[:, :, :-1]
    one_way = np.zeros((n, part.num_classes + 1), dtype=np.int64)
    np.add.at(one_way, (bundles.target, bundles.choice), bundles.num_stable_one_way)

    every_target = np.repeat(np.arange(n), part.num_classes)
    every_class = np.tile(np.arange(part.num_classes), n)
    prior = prior_of(part, every_target, every_class).certain.reshape(n, part.num_classes)
    return ClassVotes(
        certain=stable.sum(axis=0) + prior,
        stable=stable,
        one_way=one_way[:, :-1],
        totals=count_by_target(part, bundles),
    )


def _wins_by_moving(votes: ClassVotes, limits: Limits, k: int) -> BoolArray:
    """Tells whether class k can win where votes move within three nested limits, shape ``[n]``."""
    of_others = votes.totals.stable - votes.stable[:, :, k]
    won, _ = _take(of_others, limits, of_others.sum(axis=0))
    wanted = np.maximum(votes.to_lose(k, won), 0)
    wins = np.ones(len(won), dtype=bool)
    left = limits
    for j in range(wanted.shape[1]):
        taken, left = _take(votes.stable[:, :, j], left, wanted[:, j])
        wins &= taken == wanted[:, j]
    return wins


def _take(votes: IntArray, limits: Limits, wanted: IntArray | FloatArray) -> tuple[FloatArray, Limits]:
    """Takes votes, the reached ones first. Returns how many could be taken, and what is left of the limits.

    Args:
        votes: The votes that are there, by tier, shape ``[3, n]``.
        limits: How many votes can move.
        wanted: How many votes to take, shape ``[n]``.
    """
    taken = np.zeros(len(wanted))
    left = limits
    for tier in (REACHED, UNREACHED, UNLISTED):
        moved = np.minimum(np.minimum(votes[tier], wanted - taken), left.within(tier))
        left = left.after(tier, moved)
        taken = taken + moved
    return taken, left


@dataclass(frozen=True)
class Losses:
    """What other classes must lose, so that a class wins, shape ``[n]`` each.

    Attributes:
        number: Votes that they lose in all.
        turnable: How many of these an added edge can turn.
        exist: Whether each class has as many votes as it must lose.
    """

    number: FloatArray
    turnable: FloatArray
    exist: BoolArray


def _losses(votes: ClassVotes, changes: Changes, to_lose: FloatArray) -> Losses:
    wanted = np.maximum(to_lose, 0)
    one_way = np.minimum(votes.one_way, wanted).sum(axis=1)
    return Losses(
        number=wanted.sum(axis=1),
        turnable=np.minimum(one_way, changes.turned),
        exist=(wanted <= votes.stable[REACHED]).all(axis=1),
    )


def _empty_groups_win(votes: ClassVotes, changes: Changes, k: int) -> BoolArray:
    """Tells whether class k can win if empty groups vote for it: every vote that goes is one more for it, ``[n]``."""
    of_others = votes.totals.stable[REACHED] - votes.stable[REACHED][:, k]
    turnable = np.minimum(changes.turned, votes.totals.one_way - votes.one_way[:, k])
    won = np.minimum(of_others, changes.touched + turnable)
    losses = _losses(votes, changes, votes.to_lose(k, won))
    return np.asarray(losses.exist & (losses.number <= changes.touched + losses.turnable))


def _wins_by_changes(votes: ClassVotes, changes: Changes, k: int, empty: int) -> BoolArray:
    """Tells whether class k can win where every neighbour has a vote of its own, shape ``[n]``.

    Args:
        votes: The votes.
        changes: What the attacker can do.
        k: A class that empty groups do not vote for.
        empty: The class that they vote for, or ``ABSTAIN``.
    """
    of_others = votes.totals.stable[REACHED] - votes.stable[REACHED][:, k]
    altered = np.minimum(changes.altered, of_others)
    to_lose = votes.to_lose(k, altered + changes.new)
    if empty == ABSTAIN:
        losses = _losses(votes, changes, to_lose)
    else:
        but_empty = to_lose.copy()
        but_empty[:, empty] = 0
        losses = _losses(votes, changes, but_empty)
    lost_otherwise = np.maximum(losses.number - altered, 0)  # by votes that go, or by turning instead of adding
    wins = np.asarray(losses.exist & (lost_otherwise <= changes.touched - altered + losses.turnable))
    if empty == ABSTAIN:
        return wins
    # What goes is one vote more for the class of empty groups, what is new one less. What is turned is not new.
    still_to_lose = to_lose[:, empty] - changes.new + lost_otherwise
    left_to_alter = altered - np.minimum(altered, losses.number)
    return np.asarray(wins & (still_to_lose <= np.minimum(left_to_alter, votes.stable[REACHED][:, empty])))
