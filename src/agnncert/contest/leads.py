"""The inequality: what moves take from a lead is bounded by any prices of the limits.

Class k wins only if no class c beats it. With weights w_c >= 0 of the other classes, let the *lead* over k be
``sum_c w_c (score_c - score_k)``, and |w| the sum of the weights. A unit that adds v contributes
``sum_c w_c v_c - |w| v_k``, and if the attacker replaces it by an effect, the effect's cap for k counts against the
lead. A move that hits a unit takes its *harm*, the difference of the two. A move that brings something new takes its
*fee*.

Let limit l allow A_l moves and have a price y_l >= 0, and let the price of a move be the sum over the limits that it
has to respect. If no fee exceeds the price of its move, then

    what is taken  <=  sum_l A_l y_l  +  sum over units of max(0, harm - price of the move, for each move).

Proof: a move that hits a unit takes harm <= price + max(0, harm - price), each unit is hit once at most, and a move
without a unit takes fee <= price. The prices of all moves that are spent add up to ``sum_l y_l (moves spent under l)``,
which is no more than ``sum_l A_l y_l``. (Weak duality of an assignment problem.)

So prices are all that a proof has to state, and whoever found them need not be trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agnncert.contest.form import Amount, Attacker, Budget, Contest, Effect, Factors, Limit, Target, Vector


@dataclass(frozen=True)
class Allowance:
    """What a budget allows against one target.

    Attributes:
        limits: Moves, and how many of them may be spent in all; None: any number.
        phase: The phase that the attack reaches; None: beyond every phase.
    """

    limits: tuple[tuple[tuple[str, ...], Amount], ...]
    phase: Amount


@dataclass(frozen=True)
class Losses:
    """What there is to be taken from one lead.

    Attributes:
        lead: What may be taken without harm; below 0 the lead does not exist.
        units: How many units are alike, and the harm of each move that can hit them.
        fees: What each move takes that is spent without a unit.
    """

    lead: int
    units: tuple[tuple[int, Mapping[str, int]], ...]
    fees: Mapping[str, int]


def amount(factors: Factors, budget: Budget) -> Amount:
    """Returns the sum of counts times factors; None if one of them is any number."""
    total = 0
    for count, factor in factors.items():
        number = budget[count]
        if number is None and factor:
            return None
        total += (number or 0) * factor
    return total


def amount_of(limit: Limit, budget: Budget, target: Target) -> Amount:
    """Returns how many moves a limit allows against this target."""
    total = amount(limit.at_most, budget)
    for name, factors in limit.tables.items():
        if total is None:
            return None
        total += read_table(target.tables[name], amount(factors, budget))
    return total


def read_table(values: Vector, place: Amount) -> int:
    """Returns the entry for so many changes: 0 for none, the last one for more than there are entries."""
    if place == 0 or not values:
        return 0
    last = len(values) if place is None else min(place, len(values))
    return values[last - 1]


def allowance(attacker: Attacker, budget: Budget, target: Target) -> Allowance:
    """Returns what a budget allows against a target."""
    limits = tuple((limit.moves, amount_of(limit, budget, target)) for limit in attacker.limits)
    return Allowance(limits, amount(attacker.phase, budget))


def losses(contest: Contest, target: Target, weights: Vector, rival: int, phase: Amount, *, give: int = 0) -> Losses:
    """Returns what moves take from the lead of some classes over another one.

    Args:
        contest: All that the file says.
        target: The target.
        weights: How much the lead of each class counts. That of the rival itself is 0.
        rival: The class over which the others lead.
        phase: The phase; None: beyond every phase.
        give: What the lead is allowed to fall below 0, or has to stay above it if negative.
    """
    size = sum(weights)
    lead = _worth(weights, rival, target.scores) + _tie(contest, weights, rival) - 1 + give
    for place, doubt in enumerate(target.doubt):
        lead -= (size if place == rival else weights[place]) * doubt
    units = []
    for pool in target.pools:
        left = {move: _contributes(weights, rival, effect) for move, effect in pool.hit_by.items()}
        for unit in pool.units:
            stands = _worth(weights, rival, unit.adds) - 2 * size * unit.doubt
            lead -= unit.count * 2 * size * unit.doubt
            free = 0
            if pool.free is not None and unit.until is not None and (phase is None or unit.until < phase):
                free = max(0, stands - _contributes(weights, rival, pool.free))
            lead -= unit.count * free
            units.append((unit.count, {move: stands - worth - free for move, worth in left.items()}))
    fees = {move: -_contributes(weights, rival, effect) for move, effect in target.new.items()}
    return Losses(lead, tuple(units), fees)


def _worth(weights: Vector, rival: int, adds: Vector) -> int:
    """What a vector adds to the lead."""
    for_others = sum(weight * number for weight, number in zip(weights, adds, strict=True))
    return for_others - sum(weights) * adds[rival]


def _contributes(weights: Vector, rival: int, effect: Effect) -> int:
    """What an effect adds to the lead if the attacker does his worst: all of the cap goes to the rival."""
    return _worth(weights, rival, effect.adds) - sum(weights) * (effect.cap[rival] + 2 * effect.doubt)


def _tie(contest: Contest, weights: Vector, rival: int) -> int:
    """What ties are worth: a smaller class beats the rival on equal scores, so a rival that wins is 1 ahead of it.

    With doubt, scores need not be whole, and being ahead by less is enough: then only one tie counts.
    """
    smaller = sum(weights[:rival])
    return min(1, smaller) if "doubt" in contest.extensions else smaller


def price_of(move: str, limits: Sequence[tuple[tuple[str, ...], Amount]], prices: Vector) -> int:
    """Returns the price of a move: the sum over the limits that name it."""
    return sum(price for (moves, _), price in zip(limits, prices, strict=True) if move in moves)


def bears(found: Losses, limits: Sequence[tuple[tuple[str, ...], Amount]], prices: Vector) -> bool:
    """Returns whether these prices show that the lead bears whatever the limits allow."""
    of_move = {move: price_of(move, limits, prices) for moves, _ in limits for move in moves}
    if any(price < 0 for price in prices) or any(fee > of_move[move] for move, fee in found.fees.items()):
        return False
    taken = 0
    for (_, allowed), price in zip(limits, prices, strict=True):
        if allowed is None and price:
            return False
        taken += (allowed or 0) * price
    for count, harm in found.units:
        taken += count * max([0, *(worst - of_move[move] for move, worst in harm.items())])
    return taken <= found.lead
