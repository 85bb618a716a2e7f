"""Theorem 13: the least price of an attack that lets a class beat the label. Pure functions.

Every kind of change has a price, and each change does to the votes what the theorems say. What is asked for is the
cheapest set of changes that closes a margin. The price of x changes of one kind is x times its price; with the theorems
the rest is a sum of a few terms, each of which bends at a few whole numbers. So only these have to be looked at.

``recount_prices`` finds the same by trying one number of changes after the other.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.proving.theorems import REACHED, UNLISTED, UNREACHED, Counts, Facts


def pay(price: float, amount: Any) -> FloatArray:
    """What so many changes cost; none cost nothing, and without number they cost more than anything."""
    amount = np.asarray(amount, dtype=np.float64)
    if price in (0, math.inf):  # zero times infinity would be NaN
        return np.where(amount == np.inf if price == 0 else amount > 0, np.inf, 0.0)
    return np.where(amount > 0, price * amount, 0.0)


@dataclass(frozen=True)
class Rival:
    """A class k that is to beat the label of each of ``n`` targets.

    Attributes:
        lacking: Votes by which it has to gain on the label, shape ``[n]``; not positive if it may win as it is.
        own: Stable votes for the label by tier, shape ``[3, n]``.
        others: Stable votes not for k by tier, shape ``[3, n]``.
    """

    k: int
    lacking: FloatArray
    own: FloatArray
    others: FloatArray

    @classmethod
    def of(cls, tally: Counts, k: int) -> "Rival":
        """Class k as a rival of every target; of those that have this label, too, whose answer is to be overwritten."""
        own = tally.votes[:, np.arange(len(tally.label)), tally.label].astype(np.float64)
        others = (tally.size - tally.votes[:, :, k]).astype(np.float64)
        return cls(k, tally.margin[:, k].astype(np.float64) + 1, own, others)


# Votes in tiers


@dataclass(frozen=True)
class Offer:
    """What an attacker can buy where votes lie in tiers; a vote that moves costs one of these.

    Attributes:
        strong: Price of moving any vote.
        weak: Price of moving a reached one.
        middle: Price of moving one that is not unlisted.
        node: Price of a node that moves as many reached votes as the reach table says.
        fixed: What must be paid in any case.
        least: The fewest strong ones.
        own: Whether the vote of the target's own group is moved, which is what ``fixed`` is paid for.
    """

    strong: float
    weak: float
    middle: float = math.inf
    node: float = math.inf
    fixed: float = 0.0
    least: int = 0
    own: bool = False


def offers(theorem: str, prices: Prices) -> list[Offer]:
    """All ways to attack under a rule with tiers; the cheapest attack is one of them."""
    p, node = prices, min(prices.delete_nodes, prices.change_features)
    weak, joined = min(p.delete_edges, p.change_edges), p.inject_nodes + p.injected_edges
    strong = min(p.add_edges, joined)
    if theorem == "edge-centric/node":
        # Further edges of an injected node move reached votes; the first one makes it a neighbour.
        cheap = Offer(strong, min(weak, p.injected_edges), node=node, fixed=joined - strong, least=1)
        return [Offer(strong, weak, node=node), *([cheap] if math.isfinite(joined) else [])]
    if theorem == "edge-centric/graph":
        injecting = Offer(min(p.add_edges, p.injected_edges), weak, node=node, fixed=p.inject_nodes)
        return [Offer(p.add_edges, weak, node=node), injecting]
    if theorem == "node-centric/graph":
        middle = min(node, p.inject_nodes)
        return [Offer(p.inject_nodes, min(weak, p.add_edges, middle), middle=middle)]
    plain = Offer(strong, min(weak, node, strong))
    if theorem == "gated/node":
        return [plain, Offer(plain.strong, plain.weak, fixed=p.target_features, own=True)]
    return [plain]


def cheapest_in_tiers(rival: Rival, offer: Offer, facts: Facts) -> FloatArray:
    """The least price at which the rival beats the label of each target, shape ``[n]``; infinite if at none."""
    if math.isinf(offer.fixed):
        return np.full(len(rival.lacking), np.inf)
    own, others = rival.own, rival.others
    if offer.own:  # what is listed but not reached is the vote of the target's own group: it moves, too
        own, others = (np.stack([part[0] + part[1], 0 * part[1], part[2]]) for part in (own, others))
    best = np.full(len(rival.lacking), np.inf)
    if math.isfinite(offer.middle):
        for injected in _amounts(offer.strong, np.minimum(others[UNLISTED], rival.lacking).max(initial=0)):
            if (pay(offer.strong, injected) >= best).all():
                break
            mine, rest = (part[UNREACHED] + np.minimum(part[UNLISTED], injected) for part in (own, others))
            parts = (rival.lacking, own[REACHED], others[REACHED], mine, rest)
            price = _by_new(*parts, offer.middle, offer.weak, 0, injected)
            best = np.minimum(best, price + pay(offer.strong, injected) - pay(offer.middle, injected))
        return best + offer.fixed
    beyond = np.stack([part[UNREACHED] + part[UNLISTED] for part in (own, others)])
    rows = facts.reach_ptr[1:] - facts.reach_ptr[:-1]
    for nodes in _amounts(offer.node, rows.max(initial=0)):
        # More nodes than a row has reach no more, and what costs as much as is known to suffice is not looked at.
        here = np.flatnonzero(((rows >= nodes) | (offer.node == 0)) & (pay(offer.node, nodes) < best))
        if not len(here):
            break
        moved = facts.covered_by(np.full(len(rows), float(nodes)))[here] + offer.own
        lacking, first, rest = rival.lacking[here], (own[REACHED][here], others[REACHED][here]), beyond[:, here]
        price = _by_new(lacking, *first, rest[0], rest[1], offer.strong, offer.weak, moved, offer.least)
        best[here] = np.minimum(best[here], price + pay(offer.node, nodes))
    return best + offer.fixed


def _amounts(price: float, most: float) -> Iterator[int]:
    """How many changes of a kind to try: none if nobody can pay, all if they are free."""
    if math.isinf(price):
        return iter((0,))
    return iter((0, int(most)) if price == 0 else range(int(most) + 1))


def _by_new(
    lacking: FloatArray, own: FloatArray, others: FloatArray, own_new: FloatArray, others_new: FloatArray,
    strong: float, weak: float, moved: Any, least: int,
) -> FloatArray:  # fmt: skip
    """The least price of strong and weak changes that gain what is lacking, shape ``[n]``.

    With x strong ones, at most own + min(x, own_new) votes of the label can move, and so of the others. Of all that
    move, x are strong ones, ``moved`` are paid for, and the remaining are weak ones. Their number bends where two of
    the terms below are equal.

    Args:
        lacking: Votes to gain.
        own: Reached votes for the label.
        others: Reached votes not for the rival.
        own_new: Votes for the label that take strong changes.
        others_new: The same, not for the rival.
        strong: Price of a strong change.
        weak: Price of a weak one.
        moved: Votes that move in any case.
        least: The fewest strong changes.
    """
    missing, half = lacking - own - others, np.ceil(lacking / 2)
    at_least = np.where(np.ceil(missing / 2) <= own_new, np.ceil(missing / 2), missing - own_new)
    at_least = np.maximum(np.maximum(at_least, 0), least)
    alone = lacking - own  # votes that must move if of those for the label only the reached ones do
    twice = (alone - moved) / 2
    bends = (at_least, own_new, alone - half, half - moved, np.floor(twice), np.ceil(twice), alone - own_new - moved)
    new = np.maximum(np.stack(bends), at_least)
    rest = np.maximum(half, alone - np.minimum(new, own_new)) - new - moved
    best = (pay(strong, new) + pay(weak, rest)).min(axis=0)
    return np.where(missing <= own_new + others_new, best, np.inf)


# Divisions in which any vote may move


def cheapest_of_number(rival: Rival, price_of: Callable[[IntArray], FloatArray]) -> FloatArray:
    """As :func:`cheapest_in_tiers`, given the price of moving a number of votes, whichever."""
    own, others = rival.own.sum(axis=0), rival.others.sum(axis=0)
    number = np.clip(np.maximum(np.ceil(rival.lacking / 2), rival.lacking - own), 0, others)
    return np.where(rival.lacking <= own + others, price_of(number.astype(np.int64)), np.inf)


def price_of_number(theorem: str, prices: Prices, parameters: Any, most: int) -> Callable[[IntArray], FloatArray]:
    """The price of moving a number of votes, up to ``most``, in GNNCert's divisions and users' own."""
    edges, features = min(prices.add_edges, prices.delete_edges, prices.change_edges), prices.change_features
    counts = np.arange(most + 1)
    own = prices.target_features if theorem.endswith("/node") else math.inf
    by_features = np.minimum(pay(features, counts), np.where(counts > 0, own, 0) + pay(features, counts - 1))
    if theorem.startswith("gnncert-e/"):
        return lambda number: pay(edges, number)
    if theorem.startswith("gnncert-n/"):
        return lambda number: np.asarray(by_features[number])
    if theorem.startswith("gnncert-en/"):
        height, width = parameters["edge_groups"], parameters["feature_groups"]
        rows, columns = np.arange(height + 1)[:, None], np.arange(width + 1)
        moved = (rows * width + columns * height - rows * columns).ravel()
        price = (pay(edges, rows) + by_features[columns]).ravel()
        order = np.argsort(moved, kind="stable")
        from_here = np.minimum.accumulate(price[order][::-1])[::-1]  # moving more than asked for does no harm
        return lambda number: np.asarray(from_here[np.searchsorted(moved[order], number)])
    return _knapsack(prices, parameters, most)


LARGEST_TABLE = 2**16  # votes; beyond, a change may be bought in part, which makes the price a bound


def _knapsack(prices: Prices, parameters: Any, most: int) -> Callable[[IntArray], FloatArray]:
    """The price of moving a number of votes where each kind of change moves some: that of the best mix of kinds."""
    kinds = [(getattr(prices, name), parameters[name]) for name in PRICED if parameters.get(name)]
    by_edge, by_own = parameters.get("edges_per_injected", 0), parameters.get("target_features", 0)
    starts = [(0.0, 0, kinds)]
    if by_edge:  # a node is injected before it has edges
        starts.append(
            (prices.inject_nodes, parameters.get("inject_nodes", 0), [*kinds, (prices.injected_edges, by_edge)])
        )
    if by_own:
        starts += [(fixed + prices.target_features, moved + by_own, mix) for fixed, moved, mix in starts]
    tables = [(fixed, moved, _of_mixes(mix, most)) for fixed, moved, mix in starts if math.isfinite(fixed)]

    def price_of(number: IntArray) -> FloatArray:
        return np.asarray(
            np.min([fixed + table(np.maximum(number - moved, 0)) for fixed, moved, table in tables], axis=0)
        )

    return price_of


def _of_mixes(kinds: list[tuple[float, int]], most: int) -> Callable[[IntArray], FloatArray]:
    kinds = [(price, moves) for price, moves in kinds if math.isfinite(price)]
    if most > LARGEST_TABLE:
        rate = min((price / moves for price, moves in kinds), default=math.inf)
        return lambda number: pay(rate, number)
    table = [0.0]
    for number in range(1, most + 1):
        table.append(min((price + table[max(number - moves, 0)] for price, moves in kinds), default=math.inf))
    return lambda number: np.asarray(table)[number]


# A group for each neighbour


def cheapest_per_neighbour(rival: Rival, theorem: str, prices: Prices, tally: Counts, facts: Facts) -> FloatArray:
    """As :func:`cheapest_in_tiers`, where every neighbour has its own group.

    A pair of a graph is touched by its nodes, too. Where both can be paid, and deleting a node is cheaper than to give
    it other features, it is taken for the latter: then the price is a bound.
    """
    p, price = prices, np.full(len(rival.lacking), np.inf)
    by_pair, of_graph = theorem.startswith("per-pair"), theorem.endswith("/graph")
    turned, joined = p.add_edges if by_pair else math.inf, p.inject_nodes + p.injected_edges
    if not of_graph:
        lost, altered = min(p.delete_edges, p.delete_nodes), min(p.change_edges, p.change_features)
        return _of_items(rival, min(p.add_edges, joined), lost, altered, turned, 0, tally, facts)
    if not by_pair:
        return _of_items(rival, p.inject_nodes, p.delete_nodes, p.change_features, math.inf, 0, tally, facts)
    node, rows = min(p.delete_nodes, p.change_features), np.diff(facts.reach_ptr)
    for nodes in _amounts(node, rows.max(initial=0)):
        if (pay(node, nodes) >= price).all():
            break
        touched = facts.covered_by(np.full(len(rows), float(nodes)))
        for fixed, new in ((0.0, p.add_edges), (p.inject_nodes, min(p.add_edges, p.injected_edges))):
            each = (new, p.delete_edges, p.change_edges, turned, touched)
            items = _of_items(rival, *each, tally, facts, math.isinf(p.change_features))
            price = np.minimum(price, np.where((rows >= nodes) | (node == 0), items, np.inf) + pay(node, nodes) + fixed)
    return price


def _of_items(
    rival: Rival, new: float, lost: float, altered: float, turned: float, touched: Any, tally: Counts, facts: Facts,
    going: bool = False,
) -> FloatArray:  # fmt: skip
    """The least price of new, lost, altered and turned votes, at these prices, that gain what is lacking.

    Votes of the label gain two if they become the rival's, one if they go. All numbers of twos are tried; for what
    they leave, the cheapest ones are taken.

    Args:
        rival: The rival.
        new: Price of a new vote.
        lost: Price of one that goes.
        altered: Price of one that becomes anything.
        turned: Price of one that becomes anything, of pairs with one direction.
        touched: Votes that are altered in any case, those of the label first; or that go, if ``going``.
        tally: The votes.
        facts: What empty groups cast, and which pairs have one direction.
    """
    own, others = rival.own[REACHED], rival.others[REACHED] - rival.own[REACHED]
    one_way = np.zeros((2, len(own)))
    if facts.one_way is not None and facts.one_way_size is not None:
        one_way[0] = np.take_along_axis(facts.one_way, tally.label[:, None], axis=1)[:, 0]
        one_way[1] = facts.one_way_size - facts.one_way[:, rival.k] - one_way[0]
    first = np.minimum(touched, own)
    more = np.minimum(touched - first, others)
    if going and rival.k != facts.absent:
        own, others, lacking = own - first, others + first, rival.lacking - first  # the others may still be altered
    else:
        own, others, lacking = own - first, others - more, rival.lacking - 2 * first - more
    turnable, spare = np.minimum(one_way[0], own), np.minimum(one_way[1], others)

    def search(altered: float, rest: Callable[[int, FloatArray], FloatArray], turned: float = turned) -> FloatArray:
        best = np.full(len(own), np.inf)
        for twos in range(int(np.minimum(own, np.ceil(np.maximum(lacking, 0) / 2)).max(initial=0)) + 1):
            by_turning = np.minimum(turnable, twos) if turned < altered else np.zeros(len(own))
            cost = pay(turned, by_turning) + pay(altered, twos - by_turning)
            cost = cost + rest(twos, np.maximum(lacking - 2 * twos, 0))
            best = np.minimum(best, np.where(twos <= own, cost, np.inf))
        return best

    if rival.k == facts.absent:  # what goes becomes the rival's, and what is new is no gain
        touch = min(altered, lost)
        return search(touch, lambda _, left: _fill(left, [(touch, others), (turned, spare)], others))
    usual = search(altered, lambda twos, left: _fill(left, [(new, np.inf), (lost, own - twos), (altered, others)]))
    is_label = tally.label == facts.absent
    if not is_label.any():
        return usual
    # Empty groups cast the label: what is new gains two, what goes nothing.
    if going:
        return np.where(is_label, _of_items(rival, new, lost, altered, turned, 0, tally, facts), usual)
    return np.where(is_label, search(altered, lambda _, left: _new_twos(left, new, altered, others), math.inf), usual)


def _fill(left: FloatArray, kinds: list[tuple[float, Any]], room: Any = math.inf) -> FloatArray:
    """The least price of this many changes, of kinds with a price and a largest number, ``room`` in all."""
    cost = np.zeros(len(left))
    for price, most in sorted(kinds, key=lambda kind: kind[0]):
        taken = np.maximum(np.minimum(np.minimum(left, most), room), 0)
        cost, left, room = cost + pay(price, taken), left - taken, room - taken
    return np.where(left > 0, np.inf, cost)


def _new_twos(left: FloatArray, new: float, altered: float, others: FloatArray) -> FloatArray:
    """The least price of a gain by new votes, each of which gains two, and altered ones, which gain one."""
    best, most = np.full(len(left), np.inf), np.minimum(left, others)
    for ones in (np.zeros(len(left)), np.minimum(1, most), most, np.maximum(most - 1, 0)):
        best = np.minimum(best, pay(altered, ones) + pay(new, np.ceil((left - ones) / 2)))
    return best


def priced_budgets(prices: Prices) -> Iterator[tuple[Budget, float]]:
    """One change of each kind, and its price."""
    yield from ((Budget().but(**{name: 1}), getattr(prices, name)) for name in PRICED)
    yield Budget(inject_nodes=1, edges_per_injected=1), prices.inject_nodes + prices.injected_edges
    yield Budget(target_features=True), prices.target_features
