"""Whether statements about a contest follow from it, with the prices that they state. Nothing is searched for."""

from dataclasses import dataclass

from agnncert.contest.form import (
    BrokenAtMost,
    Budget,
    Contest,
    Excludes,
    Statement,
    Stays,
    Target,
    Vector,
    contradictions,
    limits_of,
)
from agnncert.contest.leads import Allowance, allowance, amount, bears, losses

MOST_STEPS = 1_000_000_000  # units times moves times classes, over all statements: some minutes


@dataclass(frozen=True)
class Failure:
    """A statement that does not follow.

    Attributes:
        statement: Place of the statement in the list.
        reason: Why.
        target: Place of the target.
        rival: The class over which a lead is not shown to last; None if the reason is another one.
    """

    statement: int
    reason: str
    target: int | None = None
    rival: int | None = None


def check(contest: Contest) -> list[Failure]:
    """Returns which statements of a contest, which does not contradict itself, do not follow."""
    found = []
    for place, statement in enumerate(contest.statements):
        found += _failures(contest, statement, place)
    return found


def wrong_form(contest: Contest) -> list[str]:
    """Returns why nothing should be concluded from a contest: what contradicts itself, or is out of place."""
    wrong = list(contradictions(contest))
    if not contest.statements:
        wrong.append("it states nothing, so nothing follows from it")
    for place, statement in enumerate(contest.statements):
        wrong += [f"statement {place}: {what}" for what in _misplaced(contest, statement)]
    if not wrong and (steps := steps_of(contest)) > MOST_STEPS:
        wrong.append(f"checking it takes {steps:,} steps, at most {MOST_STEPS:,} are taken: state less in one file")
    return wrong


def _misplaced(contest: Contest, statement: Statement) -> list[str]:
    """Returns which names, places and lengths of a statement do not fit the contest."""
    if statement.attacker not in contest.attackers:
        return [f'there is no attacker "{statement.attacker}"']
    attacker = contest.attackers[statement.attacker]
    counts, given = sorted(attacker.counts), sorted(statement.budget)
    if counts != given:
        return [f"its budget has the counts {given}, the attacker has {counts}"]
    limits = len(attacker.limits)
    if isinstance(statement, Stays):
        return _misplaced_prices(contest, statement.target, statement.prices, limits)
    if isinstance(statement, Excludes):
        return _misplaced_weights(contest, statement, limits)
    if attacker.shared is None:
        return ["its attacker does not say which moves are shared by all targets"]
    wrong = []
    for need in statement.needs:
        prices = limits + (need.moves is not None)
        wrong += _misplaced_prices(contest, need.target, need.prices, prices)
    if len({need.target for need in statement.needs}) < len(statement.needs):
        wrong.append("it says twice what a target needs")
    return wrong


def _misplaced_prices(contest: Contest, place: int, rows: tuple[Vector, ...], prices: int) -> list[str]:
    if place >= len(contest.targets):
        return [f"there is no target {place}"]
    label = contest.targets[place].label
    expected = [0 if k == label else prices for k in range(len(contest.classes))]
    found = [len(row) for row in rows]
    return [] if found == expected else [f"its rows have {found} prices, expected {expected}"]


def _misplaced_weights(contest: Contest, statement: Excludes, prices: int) -> list[str]:
    if statement.target >= len(contest.targets):
        return [f"there is no target {statement.target}"]
    if len(statement.prices) != prices:
        return [f"it has {len(statement.prices)} prices for {prices} limits"]
    if statement.rival >= len(contest.classes):
        return [f"there is no class {statement.rival}"]
    if len(statement.weights) != len(contest.classes):
        return [f"it has {len(statement.weights)} weights for {len(contest.classes)} classes"]
    if statement.weights[statement.rival] or not any(statement.weights):
        return ["the class itself has a weight, or no other class has one"]
    return []


def steps_of(contest: Contest) -> int:
    """Returns how much there is to do: units times moves times classes, over all statements."""
    size = [sum((len(pool.hit_by) + 1) * len(pool.units) for pool in target.pools) for target in contest.targets]
    size = [(units + len(contest.moves)) * len(contest.classes) for units in size]
    steps = 0
    for statement in contest.statements:
        parts = statement.needs if isinstance(statement, BrokenAtMost) else (statement,)
        rows = 1 if isinstance(statement, Excludes) else len(contest.classes)
        limits = len(limits_of(contest.attackers[statement.attacker]))
        steps += sum((size[part.target] + limits * len(contest.moves)) * rows for part in parts)
    return steps


def _failures(contest: Contest, statement: Statement, place: int) -> list[Failure]:
    if isinstance(statement, BrokenAtMost):
        return _too_few(contest, statement, place)
    target = contest.targets[statement.target]
    allowed = allowance(contest.attackers[statement.attacker], statement.budget, target)
    if isinstance(statement, Stays):
        return [
            Failure(
                place, f"{_named(contest, rival)} may catch up with the label of {_of(target)}", statement.target, rival
            )
            for rival in may_catch_up(contest, target, allowed, statement.prices)
        ]
    if excluded(contest, target, allowed, statement):
        return []
    reason = f"{_of(target)} may get {_named(contest, statement.rival)}"
    return [Failure(place, reason, statement.target, statement.rival)]


def may_catch_up(contest: Contest, target: Target, allowed: Allowance, prices: tuple[Vector, ...]) -> list[int]:
    """Returns the classes over which the lead of the label is not shown to last."""
    weights = only(target.label, len(contest.classes))
    open_ = []
    for rival, row in enumerate(prices):
        if rival == target.label:
            continue
        found = losses(contest, target, weights, rival, allowed.phase, give=-contest.least_lead)
        if not bears(found, allowed.limits, row):
            open_.append(rival)
    return open_


def excluded(contest: Contest, target: Target, allowed: Allowance, statement: Excludes) -> bool:
    """Returns whether these weights and prices show that the class does not win."""
    give = sum(statement.weights) * contest.least_lead
    found = losses(contest, target, statement.weights, statement.rival, allowed.phase, give=give)
    return bears(found, allowed.limits, statement.prices)


def _too_few(contest: Contest, statement: BrokenAtMost, place: int) -> list[Failure]:
    """Counts how many targets the shared moves can buy, if no target costs less than it needs."""
    attacker = contest.attackers[statement.attacker]
    prices: list[int] = []  # what targets cost that fall at all
    found = []
    for need in statement.needs:
        target = contest.targets[need.target]
        allowed = allowance(attacker, statement.budget, target)
        if need.moves is not None:
            assert attacker.shared is not None  # seen to in _misplaced
            own = (attacker.shared.moves, need.moves - 1)
            allowed = Allowance((*allowed.limits, own), allowed.phase)
        if may_catch_up(contest, target, allowed, need.prices):
            found.append(Failure(place, f"{_of(target)} may need less than it says", need.target))
        elif need.moves is not None:
            prices.append(need.moves)
    if found:
        return found
    cheapest = [0] * (len(contest.targets) - len(statement.needs)) + sorted(prices)
    affordable = affords(cheapest, shared_moves(contest, statement.attacker, statement.budget))
    if affordable > statement.number:
        return [Failure(place, f"{affordable} targets may lose their label, not {statement.number} at most")]
    return []


def shared_moves(contest: Contest, attacker: str, budget: Budget) -> int | None:
    """Returns how many shared moves a budget allows on all targets together."""
    shared = contest.attackers[attacker].shared
    if shared is None or shared.tables:
        return None
    return amount(shared.at_most, budget)


def affords(prices: list[int], money: int | None) -> int:
    """Returns how many can be bought, the cheapest first."""
    if money is None:
        return len(prices)
    for number, price in enumerate(prices):
        money -= price
        if money < 0:
            return number
    return len(prices)


def only(k: int, classes: int) -> Vector:
    """Returns weights that count one class."""
    return tuple(int(c == k) for c in range(classes))


def _named(contest: Contest, k: int) -> str:
    return f'class {k} ("{contest.classes[k]}")'


def _of(target: Target) -> str:
    return f'target "{target.name}"'
