"""The vote theorem: which changes of ballots cannot change the winner. Pure functions of numpy arrays.

A target's ballots fall into three tiers, by how hard they are to move:

    reached     the graph as it is reaches them; anything may move them
    unreached   listed, but the graph has no edge there; edges between old nodes may not suffice
    unlisted    nothing is there; something must be added first

A division's theorem turns an attacker's budget into three nested limits (:class:`Reach`): at most ``all``
ballots move, at most ``beyond_reached`` of them outside the first tier, at most ``unlisted`` in the third.

To make class k beat the winner a, a moved ballot gains 2 if it was for a, 0 if it was for k already, and 1
otherwise (also if it abstained). The attacker's best choice under nested limits is greedy, so his gain has
a closed form: the ballots that gain at least 2 which he can move, plus the ballots that gain at least 1
which he can move. The label holds if the gain never exceeds the margin. For given votes and limits this is
exact.

Ballots that are not stable (another machine might round them to another class) are conceded before anything
else: they count for every rival and cannot be moved any further.
"""

from dataclasses import dataclass

import numpy as np

from agnncert.evidence import FloatArray, largest_amount
from agnncert.votes import BoolArray, IntArray, Votes

REACHED, UNREACHED, UNLISTED = range(3)


@dataclass(frozen=True)
class Tally:
    """Stable votes by tier, and what a rival lacks; ``n`` targets, ``C`` classes.

    Attributes:
        num_groups: Ballots per target.
        label: Winner of all ballots as cast, ties to the smaller class, shape ``[n]``.
        votes: Stable votes per tier and class, shape ``[3, n, C]``.
        size: Stable ballots per tier, abstentions included, shape ``[3, n]``.
        margin: How far each class is from winning: votes of the winner minus votes of the class, minus the
            conceded ballots, minus 1 if the class wins ties. Negative if conceded ballots decide, ``[n, C]``.
    """

    num_groups: int
    label: IntArray
    votes: IntArray
    size: IntArray
    margin: IntArray

    @property
    def is_label(self) -> BoolArray:
        """Marks each target's own label, which is nobody's rival, shape ``[n, C]``."""
        return np.asarray(np.arange(self.margin.shape[1]) == self.label[:, None])


@dataclass(frozen=True)
class Reach:
    """How many ballots of each target an attacker can move, in three nested limits, each of shape ``[n]``.

    Attributes:
        all: Ballots moved in total.
        beyond_reached: Ballots moved among the unreached and the unlisted.
        unlisted: Ballots moved among the unlisted.
        covered: False where the division proves nothing about the attack.
    """

    all: FloatArray
    beyond_reached: FloatArray
    unlisted: FloatArray
    covered: BoolArray

    def limit(self, movable: IntArray) -> FloatArray:
        """How many of these ballots can move at once.

        Args:
            movable: Ballots per tier, shape ``[3, n]`` or ``[3, n, C]``.
        """
        shape = (-1,) + (1,) * (movable.ndim - 2)
        unlisted = np.minimum(movable[UNLISTED], self.unlisted.reshape(shape))
        beyond = np.minimum(movable[UNREACHED] + unlisted, self.beyond_reached.reshape(shape))
        return np.asarray(np.minimum(movable[REACHED] + beyond, self.all.reshape(shape)), dtype=np.float64)


def tally(votes: Votes) -> Tally:
    """Counts the votes by tier and concedes the unstable ones."""
    no_listed, no_default = np.zeros(len(votes.ballot), dtype=bool), np.zeros(votes.num_targets, dtype=bool)
    reached, unreached = votes.stable & votes.reached, votes.stable & ~votes.reached
    by_tier = np.stack(
        [
            votes.tally(reached, no_default),
            votes.tally(unreached, no_default),
            votes.tally(no_listed, votes.default_stable),
        ]
    )
    size = np.stack(
        [
            np.bincount(votes.owner[reached], minlength=votes.num_targets),
            np.bincount(votes.owner[unreached], minlength=votes.num_targets),
            np.where(votes.default_stable, votes.num_unlisted, 0),
        ]
    )
    label = votes.counts.argmax(axis=1)  # ties go to the smaller class …
    standing = by_tier.sum(axis=0)
    conceded = votes.num_groups - size.sum(axis=0)
    wins_ties = np.arange(votes.num_classes) < label[:, None]  # … so these rivals need one ballot less
    own = np.take_along_axis(standing, label[:, None], axis=1)
    return Tally(votes.num_groups, label, by_tier, size, own - standing - conceded[:, None] - wins_ties)


def certified_radius(tally: Tally) -> IntArray:
    """How many ballots, whichever, may change before another class can win, shape ``[n]``.

    A changed ballot closes a margin by at most 2, so the radius is half the smallest margin, rounded down
    (paper, equation for the certified perturbation size). It is exact: some change of one ballot more
    elects another class. -1 means that nothing is certified, because the conceded ballots alone may decide.
    Without a rival, every ballot may change.
    """
    if tally.margin.shape[1] == 1:
        return np.full(len(tally.label), tally.num_groups)
    smallest = np.where(tally.is_label, np.iinfo(np.int64).max, tally.margin).min(axis=1)
    return np.asarray(np.maximum(smallest // 2, -1))


def withstands(tally: Tally, reach: Reach) -> BoolArray:
    """Whether each target keeps its label whichever ballots within ``reach`` change, shape ``[n]``."""
    for_label = np.take_along_axis(tally.votes, tally.label[None, :, None], axis=2)[:, :, 0]
    gain_two = reach.limit(for_label)
    gain_one = reach.limit(tally.size[:, :, None] - tally.votes)
    safe = tally.margin >= gain_two[:, None] + gain_one
    return reach.covered & (safe | tally.is_label).all(axis=1)


def neighbours_needed(tally: Tally, reach: Reach) -> FloatArray:
    """The fewest ballots beyond the reached ones that must move before a target can break, shape ``[n]``.

    Zero where the reached ballots suffice, ``inf`` where the label holds against all of ``reach``.
    Meant for divisions of the node task, where each ballot beyond the reached ones costs a new neighbour.
    """

    def holds(moved: FloatArray) -> BoolArray:
        within = Reach(
            reach.all,
            np.minimum(reach.beyond_reached, moved),
            np.minimum(reach.unlisted, moved),
            reach.covered,
        )
        return withstands(tally, within)

    return largest_amount(holds, len(tally.label)) + 1


def most_affordable(prices: FloatArray, money: float) -> int:
    """The most items that can be bought together.

    Example:
        >>> most_affordable(np.array([3.0, 0.0, 2.0, np.inf]), 4)
        2
    """
    finite = np.sort(prices[np.isfinite(prices)])
    return int((np.cumsum(finite) <= money).sum())
