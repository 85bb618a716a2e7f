"""Theorem 13: the least price of an attack that lets a class beat the label. Pure functions.

Every kind of change has a price, and each change does to the votes what the theorems say. What is asked for is the
cheapest set of changes that closes a margin. The price of x changes of one kind is x times its price. With the theorems
the rest is a sum of a few terms, each of which bends at a few whole numbers, so only these have to be tried.

There are three families of divisions: votes in tiers (:func:`cheapest_in_tiers`), divisions in which any vote may move
(:func:`cheapest_of_number`), and a group for each neighbour (:func:`cheapest_touches`). What moving a vote costs under
a theorem is said by its object in ``divided.theorems``.

``recount_prices`` finds the same by trying one number of changes after the other.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.proving.theorems import REACHED, UNLISTED, UNREACHED, Counts, Facts

PriceOfNumber = Callable[[IntArray], FloatArray]  # the price of moving this many votes, whichever


def pay(price: float, amount: ArrayLike) -> FloatArray:
    """Returns what this many changes cost. None cost nothing, and infinitely many cost an infinite amount."""
    amount = np.asarray(amount, dtype=np.float64)
    if price == 0:  # zero times infinity would be NaN
        return np.where(amount == np.inf, np.inf, 0.0)
    if price == math.inf:
        return np.where(amount > 0, np.inf, 0.0)
    return np.where(amount > 0, price * amount, 0.0)


def priced_budgets(prices: Prices) -> Iterator[tuple[Budget, float]]:
    """Yields a budget of one change for each kind of change, and its price. Edges of a new node are paid for by one."""
    no_change = Budget(edges_per_injected=0)
    for name in PRICED:
        yield no_change.but(**{name: 1}), getattr(prices, name)
    yield Budget(inject_nodes=1, edges_per_injected=1), prices.inject_nodes + prices.injected_edges
    yield Budget(target_features=True), prices.target_features


@dataclass(frozen=True)
class Rival:
    """A class k that is to beat the label of each of ``n`` targets.

    Attributes:
        k: The class.
        lacking: Votes by which it has to gain on the label, shape ``[n]``. Not positive if it may win as it is.
        for_label: Stable votes for the label by tier, shape ``[3, n]``.
        others: Stable votes not for k by tier, those for the label included, shape ``[3, n]``.
    """

    k: int
    lacking: FloatArray
    for_label: FloatArray
    others: FloatArray

    @classmethod
    def of(cls, counts: Counts, k: int) -> "Rival":
        """Returns class k as a rival of every target.

        Targets whose label is k have an entry, too, which means nothing and is to be overwritten.
        """
        everyone = np.arange(len(counts.label))
        return cls(
            k=k,
            lacking=counts.margin[:, k].astype(np.float64) + 1,
            for_label=counts.votes[:, everyone, counts.label].astype(np.float64),
            others=(counts.size - counts.votes[:, :, k]).astype(np.float64),
        )


def numbers_to_try(price: float, most: float) -> Sequence[int]:
    """Returns how many changes of a kind to try: none if nobody can pay, none or all if they are free."""
    if math.isinf(price):
        return (0,)
    if price == 0:
        return (0, int(most))
    return range(int(most) + 1)


# Votes in tiers


@dataclass(frozen=True)
class Offer:
    """What an attacker can buy where votes are in tiers. A vote that moves costs one of these.

    Attributes:
        strong: Price of moving any vote.
        weak: Price of moving a reached one.
        middle: Price of moving one that is not unlisted.
        node: Price of a node that moves as many reached votes as the reach table says.
        fixed: What must be paid in any case.
        least: The fewest strong changes.
        own_group: Whether the vote of the target's own group is moved, which is what ``fixed`` is paid for.
    """

    strong: float
    weak: float
    middle: float = math.inf
    node: float = math.inf
    fixed: float = 0.0
    least: int = 0
    own_group: bool = False


def cheapest_in_tiers(rival: Rival, offer: Offer, facts: Facts) -> FloatArray:
    """Returns the least price at which the rival beats the label of each target, shape ``[n]``.

    The price is infinite where the rival cannot win by what is on offer.
    """
    if math.isinf(offer.fixed):
        return np.full(len(rival.lacking), np.inf)
    if offer.own_group:
        rival = replace(rival, for_label=_own_group_reached(rival.for_label), others=_own_group_reached(rival.others))
    if math.isfinite(offer.middle):
        return _cheapest_with_injected_nodes(rival, offer) + offer.fixed
    return _cheapest_with_nodes(rival, offer, facts) + offer.fixed


def _own_group_reached(votes: FloatArray) -> FloatArray:
    """Returns votes by tier, with the vote of the target's own group, which is listed but not reached, as reached."""
    return np.stack([votes[REACHED] + votes[UNREACHED], 0 * votes[UNREACHED], votes[UNLISTED]])


def _cheapest_with_injected_nodes(rival: Rival, offer: Offer) -> FloatArray:
    """Returns the least price where unlisted votes take injected nodes, and unreached ones any nodes, shape ``[n]``."""
    best = np.full(len(rival.lacking), np.inf)
    most = np.minimum(rival.others[UNLISTED], rival.lacking).max(initial=0)
    for injected in numbers_to_try(offer.strong, most):
        price_of_injected = pay(offer.strong, injected)
        if (price_of_injected >= best).all():
            break
        votes = _Movable(
            lacking=rival.lacking,
            weak_for_label=rival.for_label[REACHED],
            weak_others=rival.others[REACHED],
            strong_for_label=_unlisted_by_nodes(rival.for_label, injected),
            strong_others=_unlisted_by_nodes(rival.others, injected),
        )
        # All nodes are priced as those that need not be injected; the difference is made up for.
        price = _cheapest_mix(votes, offer.middle, offer.weak, already_moved=0, least=injected)
        best = np.minimum(best, price + price_of_injected - pay(offer.middle, injected))
    return best


def _unlisted_by_nodes(votes: FloatArray, injected: int) -> FloatArray:
    """Returns how many votes that are not reached this many injected nodes, and any others, can move, shape ``[n]``."""
    return np.asarray(votes[UNREACHED] + np.minimum(votes[UNLISTED], injected))


def _cheapest_with_nodes(rival: Rival, offer: Offer, facts: Facts) -> FloatArray:
    """Returns the least price where a node moves as many reached votes as the reach table says, shape ``[n]``."""
    best = np.full(len(rival.lacking), np.inf)
    votes = _Movable(
        lacking=rival.lacking,
        weak_for_label=rival.for_label[REACHED],
        weak_others=rival.others[REACHED],
        strong_for_label=rival.for_label[UNREACHED] + rival.for_label[UNLISTED],
        strong_others=rival.others[UNREACHED] + rival.others[UNLISTED],
    )
    nodes_in_table = np.diff(facts.reach_ptr)
    for nodes in numbers_to_try(offer.node, nodes_in_table.max(initial=0)):
        price_of_nodes = pay(offer.node, nodes)
        # More nodes than the table of a target has reach no more, and what costs as much as is known to suffice is not
        # tried.
        reach_more = (nodes_in_table >= nodes) | (offer.node == 0)
        here = np.flatnonzero(reach_more & (price_of_nodes < best))
        if not len(here):
            break
        moved = facts.reached_by(np.full(len(nodes_in_table), float(nodes)))[here] + offer.own_group
        price = _cheapest_mix(votes.of(here), offer.strong, offer.weak, moved, offer.least)
        best[here] = np.minimum(best[here], price + price_of_nodes)
    return best


@dataclass(frozen=True)
class _Movable:
    """Votes that move by a weak or a strong change, each of shape ``[n]``.

    Attributes:
        lacking: Votes by which the rival has to gain.
        weak_for_label: Votes for the label that a weak change moves.
        weak_others: Votes not for the rival that a weak change moves.
        strong_for_label: Votes for the label that only a strong change moves.
        strong_others: Votes not for the rival that only a strong change moves.
    """

    lacking: FloatArray
    weak_for_label: FloatArray
    weak_others: FloatArray
    strong_for_label: FloatArray
    strong_others: FloatArray

    def of(self, targets: IntArray) -> "_Movable":
        """Returns the votes of some targets."""
        return _Movable(
            self.lacking[targets],
            self.weak_for_label[targets],
            self.weak_others[targets],
            self.strong_for_label[targets],
            self.strong_others[targets],
        )


def _cheapest_mix(
    votes: _Movable, strong: float, weak: float, already_moved: FloatArray | int, least: int
) -> FloatArray:
    """Returns the least price of strong and weak changes that gain what is lacking, shape ``[n]``.

    With x strong ones, at most weak_for_label + min(x, strong_for_label) votes of the label can move, and so of the
    others. Of all that move, x are strong ones, ``already_moved`` are paid for, and the remaining are weak ones. Their
    number bends where two of the terms below are equal.

    Args:
        votes: The votes.
        strong: Price of a strong change.
        weak: Price of a weak one.
        already_moved: Votes that move in any case.
        least: The fewest strong changes.
    """
    half = np.ceil(votes.lacking / 2)
    missing = votes.lacking - votes.weak_for_label - votes.weak_others  # what weak changes alone do not gain
    half_missing = np.ceil(missing / 2)
    by_strong = np.where(half_missing <= votes.strong_for_label, half_missing, missing - votes.strong_for_label)
    fewest = np.maximum(np.maximum(by_strong, 0), least)
    alone = votes.lacking - votes.weak_for_label  # votes that must move if no strong change moves one of the label
    half_alone = (alone - already_moved) / 2
    bends = (
        fewest,
        votes.strong_for_label,
        alone - half,
        half - already_moved,
        np.floor(half_alone),
        np.ceil(half_alone),
        alone - votes.strong_for_label - already_moved,
    )
    num_strong = np.maximum(np.stack(bends), fewest)
    num_moved = np.maximum(half, alone - np.minimum(num_strong, votes.strong_for_label))
    num_weak = num_moved - num_strong - already_moved
    best = (pay(strong, num_strong) + pay(weak, num_weak)).min(axis=0)
    return np.where(missing <= votes.strong_for_label + votes.strong_others, best, np.inf)


# Divisions in which any vote may move


def cheapest_of_number(rival: Rival, price_of: PriceOfNumber) -> FloatArray:
    """Returns the same as :func:`cheapest_in_tiers`, given the price of moving a number of votes, whichever."""
    for_label = rival.for_label.sum(axis=0)
    others = rival.others.sum(axis=0)
    needed = np.maximum(np.ceil(rival.lacking / 2), rival.lacking - for_label)
    number = np.clip(needed, 0, others).astype(np.int64)
    return np.where(rival.lacking <= for_label + others, price_of(number), np.inf)


# A group for each neighbour


@dataclass(frozen=True)
class TouchPrices:
    """What it costs to touch one vote where every neighbour has its own group.

    Attributes:
        new: Price of a new vote.
        lost: Price of one that goes.
        altered: Price of one that becomes anything.
        turned: Price of one that becomes anything, of a pair with one direction.
    """

    new: float
    lost: float
    altered: float
    turned: float = math.inf


@dataclass(frozen=True)
class Touchable:
    """Votes by whose change a rival gains where every neighbour has its own group.

    Attributes:
        lacking: Votes by which the rival has to gain, shape ``[n]``.
        for_label: Votes for the label, shape ``[n]``. One gains two if it becomes the rival's, and one if it goes.
        others: Votes for neither of the two, shape ``[n]``. One gains one if it becomes the rival's.
        one_way_for_label: Votes for the label of pairs that have one direction only, shape ``[n]``.
        one_way_others: Votes for neither of the two of such pairs, shape ``[n]``.
        empty_for_rival: Whether empty groups vote for the rival.
        empty_for_label: Whether empty groups vote for the label of each target, shape ``[n]``.
    """

    lacking: FloatArray
    for_label: FloatArray
    others: FloatArray
    one_way_for_label: FloatArray
    one_way_others: FloatArray
    empty_for_rival: bool
    empty_for_label: BoolArray

    @classmethod
    def of(cls, rival: Rival, counts: Counts, facts: Facts) -> "Touchable":
        """Returns the votes by which a rival gains."""
        one_way_for_label = np.zeros(len(rival.lacking))
        one_way_others = np.zeros(len(rival.lacking))
        if facts.one_way is not None and facts.one_way_size is not None:
            one_way_for_label += np.take_along_axis(facts.one_way, counts.label[:, None], axis=1)[:, 0]
            one_way_others += facts.one_way_size - facts.one_way[:, rival.k] - one_way_for_label
        return cls(
            lacking=rival.lacking,
            for_label=rival.for_label[REACHED],
            others=rival.others[REACHED] - rival.for_label[REACHED],
            one_way_for_label=one_way_for_label,
            one_way_others=one_way_others,
            empty_for_rival=rival.k == facts.absent,
            empty_for_label=counts.label == facts.absent,
        )

    def after_altering(self, number: FloatArray) -> "Touchable":
        """Returns what is left once this many votes became the rival's, those for the label first."""
        from_label = np.minimum(number, self.for_label)
        from_others = np.minimum(number - from_label, self.others)
        return replace(
            self,
            lacking=self.lacking - 2 * from_label - from_others,
            for_label=self.for_label - from_label,
            others=self.others - from_others,
        )

    def after_removing(self, number: FloatArray) -> "Touchable":
        """Returns what is left once this many votes became those of empty groups, those for the label first.

        Where empty groups vote for the label, that gains nothing.
        """
        if self.empty_for_rival:
            return self.after_altering(number)
        gone = np.where(self.empty_for_label, 0, np.minimum(number, self.for_label))
        # The removed votes may still be altered.
        return replace(self, lacking=self.lacking - gone, for_label=self.for_label - gone, others=self.others + gone)


def cheapest_touches(votes: Touchable, prices: TouchPrices) -> FloatArray:
    """Returns the least price of new, lost, altered and turned votes that gain what is lacking, shape ``[n]``."""
    if votes.empty_for_rival:
        return _cheapest_for_class_of_empty_groups(votes, prices)

    def usual_rest(twos: int, left: FloatArray) -> FloatArray:
        supplies = [
            _Supply(prices.new, np.inf),
            _Supply(prices.lost, votes.for_label - twos),
            _Supply(prices.altered, votes.others),
        ]
        return _price_of_ones(left, supplies)

    usual = _cheapest_twos(votes, prices.altered, prices.turned, usual_rest)
    if not votes.empty_for_label.any():
        return usual

    # Empty groups vote for the label: what is new gains two, and what goes gains nothing.
    def rest(twos: int, left: FloatArray) -> FloatArray:
        return _price_of_new_twos(left, prices.new, prices.altered, votes.others)

    return np.where(votes.empty_for_label, _cheapest_twos(votes, prices.altered, math.inf, rest), usual)


def _cheapest_for_class_of_empty_groups(votes: Touchable, prices: TouchPrices) -> FloatArray:
    """Returns the least price where what goes becomes the rival's, and what is new gains nothing, shape ``[n]``."""
    touched = min(prices.altered, prices.lost)
    one_way_others = np.minimum(votes.one_way_others, votes.others)
    supplies = [_Supply(touched, votes.others), _Supply(prices.turned, one_way_others)]

    def rest(twos: int, left: FloatArray) -> FloatArray:
        return _price_of_ones(left, supplies, room=votes.others)

    return _cheapest_twos(votes, touched, prices.turned, rest)


def _cheapest_twos(
    votes: Touchable, altered: float, turned: float, price_of_rest: Callable[[int, FloatArray], FloatArray]
) -> FloatArray:
    """Returns the least price over all numbers of votes that gain two: those of the label that become the rival's.

    Args:
        votes: The votes.
        altered: Price of a vote of the label that becomes the rival's.
        turned: The same for a pair that has one direction only.
        price_of_rest: Gives the price of gaining what is left, after this many votes that gain two.
    """
    num_targets = len(votes.lacking)
    turnable = np.minimum(votes.one_way_for_label, votes.for_label)
    most = np.minimum(votes.for_label, np.ceil(np.maximum(votes.lacking, 0) / 2)).max(initial=0)
    best = np.full(num_targets, np.inf)
    for twos in range(int(most) + 1):
        by_turning = np.minimum(turnable, twos) if turned < altered else np.zeros(num_targets)
        price = pay(turned, by_turning) + pay(altered, twos - by_turning)
        price = price + price_of_rest(twos, np.maximum(votes.lacking - 2 * twos, 0))
        best = np.minimum(best, np.where(twos <= votes.for_label, price, np.inf))
    return best


class _Supply(NamedTuple):
    """Changes that gain one each.

    Attributes:
        price: Price of one.
        most: The largest number of them, for all targets or of shape ``[n]``.
    """

    price: float
    most: FloatArray | float


def _price_of_ones(left: FloatArray, supplies: list[_Supply], room: FloatArray | float = math.inf) -> FloatArray:
    """Returns the least price of changes that gain one each, shape ``[n]``. It is infinite if there are too few.

    Args:
        left: How many are needed, shape ``[n]``.
        supplies: The kinds of changes that can be bought.
        room: The largest number of changes of all kinds together.
    """
    price = np.zeros(len(left))
    for supply in sorted(supplies, key=lambda supply: supply.price):
        taken = np.maximum(np.minimum(np.minimum(left, supply.most), room), 0)
        price = price + pay(supply.price, taken)
        left = left - taken
        room = room - taken
    return np.where(left > 0, np.inf, price)


def _price_of_new_twos(left: FloatArray, new: float, altered: float, others: FloatArray) -> FloatArray:
    """Returns the least price of a gain by new votes, which gain two each, and altered others, which gain one."""
    none = np.zeros(len(left))
    most = np.minimum(left, others)
    best = np.full(len(left), np.inf)
    for ones in (none, np.minimum(1, most), most, np.maximum(most - 1, 0)):
        best = np.minimum(best, pay(altered, ones) + pay(new, np.ceil((left - ones) / 2)))
    return best
