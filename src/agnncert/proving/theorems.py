"""Which moves of votes cannot change the winner. Pure functions.

**The vote.** A target's votes fall into three tiers, by how hard they are to move:

    reached     the unchanged graph reaches them; anything may move them
    unreached   listed, but the graph has no edge there; edges between old nodes may not suffice
    unlisted    nothing is there; something must be added first

A division's theorem turns an attacker's budget into three nested limits (:class:`Limits`): at most ``all`` votes move,
at most ``beyond_reached`` of them outside the first tier, at most ``unlisted`` in the third.

To make class k beat the winner a, a moved vote gains 2 if it was for a, 0 if it was for k already, and 1 otherwise
(also if it abstained). The best choice under nested limits is greedy, so the gain has a closed form: the number of
votes that gain 2 and can move, plus the number of votes that gain at least 1 and can move. The label holds if for
no k the gain exceeds the margin. For given votes and limits this is exact.

Votes that are not stable (another machine might round them to another class) are counted for every rival from the
start, and an attack cannot change them any further.

**The divisions.** The object of each theorem (``divided.theorems``) turns a budget into a :class:`Limits`. In their
docstrings, v is the target and S_v the subgraphs in which v has an edge that can bring it a message. A *node* of the
budget is a deleted node or one with changed features; v itself is never deleted.

``recount`` does all of this a second time, in code that imports nothing from here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, Votes
from agnncert.certificates.voting_rule import VotingRule


@dataclass(frozen=True)
class Prior:
    """Votes that each target has from the start, and that no attack can move.

    Attributes:
        certain: For each class, the same on every machine, shape ``[n, C]`` or ``[n, 1]``.
        followed: For each target's prediction without edges, where another machine may see another one, ``[n, C]``.
        in_doubt: How many those are, shape ``[n]``.
    """

    certain: IntArray
    followed: IntArray
    in_doubt: IntArray

    @classmethod
    def none(cls, num_targets: int) -> "Prior":
        """Returns a prior without votes."""
        nothing = np.zeros((num_targets, 1), dtype=np.int64)
        return cls(nothing, nothing, np.zeros(num_targets, dtype=np.int64))

    @classmethod
    def of(
        cls,
        voting_rule: VotingRule,
        per_neighbour: bool,
        num_groups: int,
        shape: tuple[int, int],
        no_edge: npt.NDArray[Any] | None = None,
        no_edge_stable: BoolArray | None = None,
    ) -> "Prior":
        """Returns the prior of some targets.

        Args:
            voting_rule: The voting rule, with its defaults filled in.
            per_neighbour: Whether every neighbour has a group of its own.
            num_groups: Number of groups.
            shape: Number of targets n and of classes C.
            no_edge: Prediction of each target without edges, shape ``[n]``. Required if the prior follows it.
            no_edge_stable: Whether that prediction is stable, shape ``[n]``.
        """
        infinitely_many = per_neighbour and voting_rule.constant is not None and voting_rule.constant >= 0
        if not voting_rule.prior and not infinitely_many:
            return cls.none(shape[0])
        certain = np.zeros(shape, dtype=np.int64)
        followed = np.zeros(shape, dtype=np.int64)
        in_doubt = np.zeros(shape[0], dtype=np.int64)
        if voting_rule.class_prior:
            certain += np.array(voting_rule.class_prior)
        if infinitely_many:
            # There are infinitely many empty groups, all of which vote for this class. What counts is how many groups
            # are not empty.
            certain[:, voting_rule.constant] -= num_groups
        if no_edge is not None and no_edge_stable is not None:
            unstable = ~no_edge_stable
            certain[np.flatnonzero(no_edge_stable), no_edge[no_edge_stable]] += voting_rule.no_edge_prior
            followed[np.flatnonzero(unstable), no_edge[unstable]] += voting_rule.no_edge_prior
            in_doubt[unstable] = abs(voting_rule.no_edge_prior)
        return cls(certain, followed, in_doubt)

    @property
    def votes(self) -> IntArray:
        """All votes of the prior as this machine sees them, those in doubt included."""
        return self.certain + self.followed


LARGEST_AMOUNT = 2**31  # the search for the largest amount stops here, so answers can be too small, never too large

REACHED, UNREACHED, UNLISTED = range(3)


@dataclass(frozen=True)
class Counts:
    """Stable votes by tier, and what a rival lacks; ``n`` targets, ``C`` classes.

    Attributes:
        num_groups: Votes per target.
        label: Winner of all votes, stable or not. Ties go to the smaller class. Shape ``[n]``.
        votes: Stable votes per tier and class, shape ``[3, n, C]``.
        size: Stable votes per tier, abstentions included, shape ``[3, n]``.
        standing: Stable votes per class, of all tiers, shape ``[n, C]``.
        margin: How far each class is from winning: score of the winner minus score of the class (priors and stable
            votes), minus unstable votes, minus 1 if the class wins ties. Negative if those decide, ``[n, C]``.
    """

    num_groups: int
    label: IntArray
    votes: IntArray
    size: IntArray
    standing: IntArray
    margin: IntArray

    @property
    def is_label(self) -> BoolArray:
        """Marks each target's own label among the classes, shape ``[n, C]``; all other classes are rivals."""
        return np.asarray(np.arange(self.margin.shape[1]) == self.label[:, None])

    def led_by(self, leader: int) -> "Counts":
        """Returns the same votes, with the margins of one class in place of those of each label."""
        margin = self.margin
        label = self.label[:, None]
        classes = np.arange(margin.shape[1])
        conceded = -np.take_along_axis(margin, label, axis=1)
        score_below_label = margin + conceded + (classes < label)
        margin_of_leader = score_below_label - score_below_label[:, [leader]] - conceded - (classes < leader)
        return replace(self, label=np.full_like(self.label, leader), margin=margin_of_leader)

    @cached_property
    def rivals(self) -> "Rivals":
        """The rivals that matter: whoever has a stable vote and, of all others, the one closest to winning."""
        matters = self.standing > 0
        everyone = np.arange(len(self.label))
        matters[everyone, self.label] = True  # for now: it is no rival, so it must not be the idle one either
        closest = np.where(matters, np.iinfo(np.int64).max, self.margin).argmin(axis=1)
        matters[everyone, closest] = True
        matters[everyone, self.label] = False
        owner, rival = matters.nonzero()
        for_label = self.votes[:, everyone, self.label]
        others = self.size[:, owner] - self.votes[:, owner, rival]
        return Rivals(
            owner=owner,
            margin=self.margin[owner, rival],
            for_label=for_label.astype(np.float64),
            others=others.astype(np.float64),
        )


@dataclass(frozen=True)
class Rivals:
    """Classes that may win instead of a target's label, ``r`` of them.

    Attributes:
        owner: Whose rival it is, shape ``[r]``.
        margin: As in :class:`Counts`, shape ``[r]``.
        for_label: Stable votes of each target for its label, by tier, shape ``[3, n]``.
        others: Stable votes of the owner that are not for the rival, by tier, shape ``[3, r]``.
    """

    owner: IntArray
    margin: IntArray
    for_label: FloatArray
    others: FloatArray


@dataclass(frozen=True)
class Limits:
    """How many votes of each target an attacker can move, in three nested limits, each of shape ``[n]``.

    Attributes:
        all: Votes moved in total.
        beyond_reached: Votes moved among the unreached and the unlisted.
        unlisted: Votes moved among the unlisted.
        covered: False where the division proves nothing about the attack.
    """

    all: FloatArray
    beyond_reached: FloatArray
    unlisted: FloatArray
    covered: BoolArray

    @classmethod
    def of(
        cls,
        facts: "Facts",
        moved: FloatArray,
        beyond: FloatArray,
        unlisted: FloatArray,
        covered: BoolArray | bool = True,
    ) -> "Limits":
        """Returns the limits of all targets; each number holds for all of them, or is one of ``[n]``."""
        none = np.zeros(facts.num_reached.shape)
        return cls(none + moved, none + beyond, none + unlisted, (none == 0) & covered)

    def limit(self, movable: IntArray | FloatArray, of: Any = ...) -> FloatArray:
        """Returns how many of these votes can move at once.

        Args:
            movable: Votes per tier, shape ``[3, n]``, or ``[3, r]``.
            of: Whose votes these are, shape ``[r]``. Defaults to those of each target.
        """
        unlisted = np.minimum(movable[UNLISTED], self.unlisted[of])
        beyond = np.minimum(movable[UNREACHED] + unlisted, self.beyond_reached[of])
        return np.asarray(np.minimum(movable[REACHED] + beyond, self.all[of]), dtype=np.float64)


def count_votes(votes: Votes, prior: Prior | None = None) -> Counts:
    """Counts the votes by tier, adds the prior, and counts unstable votes for the rival."""
    n = votes.num_targets
    owner = votes.owner
    num_unlisted = votes.num_unlisted
    entry = owner * votes.num_classes + votes.vote  # of the table of targets and classes
    by_tier = np.zeros((3, n, votes.num_classes), dtype=np.int64)
    size = np.zeros((3, n), dtype=np.int64)
    for tier, listed in ((REACHED, votes.stable & votes.reached), (UNREACHED, votes.stable & ~votes.reached)):
        if listed.any():
            by_tier[tier] = _count_listed(votes, entry, listed)
            size[tier] = np.bincount(owner[listed], minlength=n)
    stable = np.flatnonzero(votes.default_stable & (votes.default >= 0))
    by_tier[UNLISTED, stable, votes.default[stable]] = num_unlisted[stable]
    size[UNLISTED] = np.where(votes.default_stable, num_unlisted, 0)
    all_votes = by_tier[REACHED] + by_tier[UNREACHED] + by_tier[UNLISTED]
    if not votes.stable.all():
        all_votes += _count_listed(votes, entry, ~votes.stable)
    unstable = np.flatnonzero(~votes.default_stable & (votes.default >= 0))
    all_votes[unstable, votes.default[unstable]] += num_unlisted[unstable]
    return weighed(votes.num_groups, all_votes, by_tier, size, prior or Prior.none(n))


def _count_listed(votes: Votes, entry: IntArray, listed: BoolArray) -> IntArray:
    """Counts some of the listed votes per target and class, shape ``[n, C]``. Abstentions do not count.

    Args:
        votes: The votes.
        entry: Where each listed vote counts in a flat table of targets and classes, shape ``[m]``.
        listed: Which of them to count, shape ``[m]``.
    """
    counted = listed & (votes.vote >= 0)
    if not counted.all():
        entry = entry[counted]
    counts = np.bincount(entry, minlength=votes.num_targets * votes.num_classes)
    return counts.reshape(votes.num_targets, votes.num_classes)


def weighed(
    num_groups: int, all_votes: IntArray, by_tier: IntArray, size: IntArray, prior: Prior, label: IntArray | None = None
) -> Counts:
    """Adds the prior to votes that were counted, and counts unstable votes for the rival.

    Args:
        num_groups: Votes per target.
        all_votes: All votes per class, stable or not, shape ``[n, C]``.
        by_tier: Stable votes per tier and class, shape ``[3, n, C]``.
        size: Stable votes per tier, abstentions included, shape ``[3, n]``.
        prior: Votes that are there from the start.
        label: Asks about this class of each target, shape ``[n]``. Defaults to the winner.
    """
    if label is None:
        label = (all_votes + prior.votes).argmax(axis=1)  # ties go to the smaller class …
    standing = by_tier[REACHED] + by_tier[UNREACHED] + by_tier[UNLISTED]
    conceded = num_groups - size.sum(axis=0)
    # A prior in doubt may be for any class: at worst all of it for the rival and none for the winner, or, if it is
    # negative, the other way round.
    margin = margins(standing + prior.certain, label, conceded + prior.in_doubt)
    return Counts(num_groups, label, by_tier, size, standing, margin)


def margins(score: IntArray, label: IntArray, conceded: IntArray) -> IntArray:
    """Returns how many votes each class may gain on the label without winning, shape ``[n, C]``.

    Ties go to the smaller class.

    Args:
        score: Votes per class, shape ``[n, C]``.
        label: The class that is asked about, shape ``[n]``.
        conceded: Votes that count for every rival, shape ``[n]``.
    """
    wins_ties = np.arange(score.shape[1]) < label[:, None]  # these rivals need one vote less
    margin = (score[np.arange(len(label)), label] - conceded)[:, None] - score
    margin -= wins_ties
    return np.asarray(margin)


def gain_of_changes(counts: Counts, number: int) -> IntArray:
    """Returns the most by which ``number`` changed votes close the margin of each rival, shape ``[n, C]``.

    Each changed vote gains a rival 1 unless it was for the rival, and 1 more if it was for the label.
    """
    own = np.take_along_axis(counts.standing, counts.label[:, None], axis=1)
    others = counts.size.sum(axis=0)[:, None] - counts.standing
    return np.asarray(np.minimum(number, own) + np.minimum(number, others))


def certified_radius(counts: Counts) -> IntArray:
    """Returns how many votes, whichever, may change before another class can win, shape ``[n]``.

    Of x changed votes all gain a rival 1 unless they were for it, and those that were for the winner gain 1 more. So
    the radius is the largest x with margin >= min(x, votes for the winner) + min(x, votes not for the rival). As
    long as votes for the winner last, that is half the margin, rounded down (paper, equation for the certified
    perturbation size); without a prior it always is. It is exact: some change of one vote more elects another class.
    -1 means that nothing is certified, because unstable votes may decide. If no change can elect another class, every
    vote may change.
    """
    own = np.take_along_axis(counts.standing, counts.label[:, None], axis=1)
    others = counts.size.sum(axis=0)[:, None] - counts.standing
    radius = np.maximum(counts.margin // 2, counts.margin - np.minimum(own, others))
    radius[counts.is_label | (counts.margin >= own + others)] = counts.num_groups  # nobody can gain as much
    return np.asarray(np.maximum(radius.min(axis=1), -1))


def withstands(counts: Counts, limits: Limits) -> BoolArray:
    """Returns whether each target keeps its label whichever votes within ``limits`` change, shape ``[n]``."""
    rivals = counts.rivals
    gain_two = limits.limit(rivals.for_label)
    gain_one = limits.limit(rivals.others, rivals.owner)
    withstood = np.ones(len(counts.label), dtype=bool)
    withstood[rivals.owner[rivals.margin < gain_two[rivals.owner] + gain_one]] = False
    return limits.covered & withstood


def ahead_within(counts: Counts, limits: Limits) -> BoolArray:
    """Returns of which classes each label stays ahead whichever votes within ``limits`` change, shape ``[n, C]``.

    Nothing is said where ``limits`` do not cover the attack: there it is ahead of no class.
    """
    for_label = counts.votes[:, np.arange(len(counts.label)), counts.label]
    gain_two = limits.limit(for_label)
    ahead = counts.is_label
    for k in range(ahead.shape[1]):
        ahead[:, k] |= counts.margin[:, k] >= gain_two + limits.limit(counts.size - counts.votes[:, :, k])
    return ahead & limits.covered[:, None]


def neighbours_needed(counts: Counts, limits: Limits) -> FloatArray:
    """Returns the fewest votes beyond the reached ones that must move before a target can break, shape ``[n]``.

    The number is zero where the reached votes suffice, and ``inf`` where the label holds against all of ``limits``.
    The function is meant for divisions of the node task, where each vote beyond the reached ones costs a new neighbour.

    With x of them, min(x, room) votes beyond the reached ones gain a rival 1, and as many of those for the winner 1
    more, each kind with a room of its own. So the gain grows by 2 until the smaller room is used up, then by 1 until
    the larger one is.
    """
    rivals = counts.rivals
    by_two, room_for_two = _beyond(limits, rivals.for_label)
    by_one, room_one = _beyond(limits, rivals.others, rivals.owner)
    room_two = room_for_two[rivals.owner]
    missing = rivals.margin + 1 - by_two[rivals.owner] - by_one
    smaller = np.minimum(room_two, room_one)
    larger = np.maximum(room_two, room_one)
    half = np.ceil(missing / 2)
    needed = np.maximum(np.where(half <= smaller, half, missing - smaller), 0)
    breaks = missing <= smaller + larger
    cheapest = np.full(len(counts.label), np.inf)
    np.minimum.at(cheapest, rivals.owner[breaks], needed[breaks])
    return np.where(limits.covered, cheapest, 0.0)


def _beyond(limits: Limits, movable: FloatArray, of: Any = ...) -> tuple[FloatArray, FloatArray]:
    """Returns how many of these votes can move among the reached ones, and how many more among all others."""
    whole = limits.all[of]
    reached = np.minimum(movable[REACHED], whole)
    unlisted = np.minimum(movable[UNLISTED], limits.unlisted[of])
    beyond = np.minimum(movable[UNREACHED] + unlisted, limits.beyond_reached[of])
    return reached, np.minimum(beyond, whole - reached)


def most_affordable(prices: FloatArray, money: float) -> int:
    """Returns the largest number of items that can be bought with this money.

    Example:
        >>> most_affordable(np.array([3.0, 0.0, 2.0, np.inf]), 4)
        2
    """
    finite = np.sort(prices[np.isfinite(prices)])
    return int((np.cumsum(finite) <= money).sum())


def most_affordable_of(prices: FloatArray, numbers: IntArray, money: float) -> int:
    """Returns the same, given the distinct prices, ascending and finite, and how many items have each.

    Example:
        >>> most_affordable_of(np.array([0.0, 2.0, 3.0]), np.array([1, 5, 1]), 5)
        3
    """
    bought = 0
    for price, number in zip(prices.tolist(), numbers.tolist(), strict=True):
        some = number if price == 0 or money == math.inf else min(number, int(money // price))
        bought += some
        money -= some * price if some else 0
        if some < number:
            break
    return bought


@dataclass(frozen=True)
class Amounts:
    """A budget whose fields may differ by target: each count is an array that broadcasts to ``[n]``."""

    add_edges: FloatArray
    delete_edges: FloatArray
    change_edges: FloatArray
    inject_nodes: FloatArray
    edges_per_injected: FloatArray
    delete_nodes: FloatArray
    change_features: FloatArray
    target_features: bool

    @classmethod
    def of(cls, budget: Budget, field: str | None = None, amounts: FloatArray | None = None) -> "Amounts":
        """Returns the budget, with ``field`` replaced by one amount for each target.

        Raises:
            BudgetError: It is about training data, which every theorem here trusts.
        """
        budget.require_trusted_training()
        values: dict[str, Any] = {name: np.asarray(getattr(budget, name), dtype=np.float64) for name in COUNTS}
        if field is not None:
            values[field] = amounts
        return cls(**values, target_features=budget.target_features)

    @property
    def edges(self) -> FloatArray:
        """Edges added, deleted or changed, those of injected nodes not counted."""
        return self.add_edges + self.delete_edges + self.change_edges

    @property
    def nodes(self) -> FloatArray:
        """Nodes deleted or given other features."""
        return self.delete_nodes + self.change_features

    @property
    def injected_edges(self) -> FloatArray:
        """All edges of injected nodes together."""
        return times(self.inject_nodes, self.edges_per_injected)

    @property
    def joined_nodes(self) -> FloatArray:
        """Injected nodes that have an edge at all."""
        return np.minimum(self.inject_nodes, self.injected_edges)


@dataclass(frozen=True)
class Facts:
    """What a theorem needs to know about ``n`` targets in addition to their votes.

    Attributes:
        num_reached: Reached votes of each target, shape ``[n]``.
        reach_ptr: Row of target ``j`` in ``reach`` is ``reach_ptr[j]:reach_ptr[j + 1]``, shape ``[n + 1]``.
        reach: Entry k - 1 of a row bounds the votes that the worst k nodes reach; the last one holds for more nodes.
        parameters: Whole numbers that a division's theorem refers to.
        absent: The class that empty groups vote for, -1 if they abstain. It only matters where every neighbour has a
            group of its own.
        one_way: Stable votes per class of pairs that have one direction only, shape ``[n, C]``.
        one_way_size: All stable votes of such pairs, shape ``[n]``.
        stable_ids: Whether nodes keep their identity when others are deleted; row numbers do not.
    """

    num_reached: IntArray
    reach_ptr: IntArray
    reach: npt.NDArray[np.int32]
    parameters: Mapping[str, int] = field(default_factory=dict)
    absent: int = -1
    one_way: IntArray | None = None
    one_way_size: IntArray | None = None
    stable_ids: bool = True

    def reached_by(self, nodes: FloatArray) -> FloatArray:
        """Returns the most votes that this many nodes reach, shape ``[n]``."""
        entry = np.minimum(nodes, self.reach_ptr[1:] - self.reach_ptr[:-1]).astype(np.int64)
        table = np.concatenate((self.reach, [0]))  # no nodes, or an empty row: nothing is reached
        return table[np.where(entry > 0, self.reach_ptr[:-1] + entry - 1, -1)].astype(np.float64)


def times(a: FloatArray, b: FloatArray) -> FloatArray:
    """Returns the product, where zero times infinity is zero and not NaN as in floating point."""
    some = np.asarray((a > 0) & (b > 0))
    return np.multiply(a, b, where=some, out=np.zeros(some.shape))


def largest_amount(holds: Callable[[FloatArray], BoolArray], num_targets: int) -> FloatArray:
    """Returns the largest whole amount for which each target's test holds: ``inf`` if all do, -1 if none does.

    Args:
        holds: The test, monotone, taking an amount for each target, shape ``[n]``.
        num_targets: Number of targets ``n``.

    Example:
        >>> largest_amount(lambda amounts: amounts <= np.array([5.0, -1.0, np.inf]), 3)
        array([ 5., -1., inf])
    """
    low = np.where(holds(np.zeros(num_targets)), 0.0, -1.0)
    low[(low == 0) & holds(np.full(num_targets, np.inf))] = np.inf
    high = np.where(low == 0, 1.0, low)  # from here on low holds; the search goes on for targets with low < high
    while (growing := (low < high) & holds(np.maximum(high, 0)) & (high < LARGEST_AMOUNT)).any():
        low = np.where(growing, high, low)
        high = np.where(growing, 2 * high, high)
    while (unsure := high > low + 1).any():
        middle = np.where(unsure, np.floor((np.where(unsure, low, 0) + np.where(unsure, high, 0)) / 2), low)
        good = unsure & holds(np.where(unsure, middle, 0))
        low = np.where(good, middle, low)
        high = np.where(unsure & ~good, middle, high)
    return low
