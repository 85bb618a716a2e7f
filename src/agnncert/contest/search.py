"""Looks for prices, and for plays where there are none. No verdict that a statement holds depends on this module.

What moves can take from a lead is an assignment of moves to units under limits, each of which lies within another one
or apart from it. It is solved exactly, by better and better assignments along paths in what is left of the limits; the
values of the limits at the end are prices with which nothing is lost. Where limits cross, some are left out here: then
prices are only a bound, and a play may be none.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agnncert.contest.checker import affords, only, shared_moves
from agnncert.contest.form import Amount, BrokenAtMost, Budget, Contest, Excludes, Need, Stays, Target, Vector
from agnncert.contest.leads import Allowance, Losses, allowance, bears, losses
from agnncert.contest.plays import Hit, Play, gives_label, objections, scores_after, takes_label

Limits = Sequence[tuple[tuple[str, ...], Amount]]
OUTSIDE = -1  # the node outside of all limits


@dataclass
class Found:
    """The most that was taken from a lead, and prices which show that it is no more.

    Attributes:
        taken: What was taken.
        prices: A price for each limit; None if more than the lead was taken.
        spent: How often a move was spent on units of a place in ``Losses.units``.
        new: How often a move was spent without a unit.
    """

    taken: int
    prices: Vector | None
    spent: dict[tuple[int, str], int] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)


def best_prices(found: Losses, limits: Limits) -> Found:
    """Returns the most that moves can take from a lead, or a play that takes more than the lead."""
    if found.lead < 0:
        return Found(0, None)
    return _Assignment(found, limits).solve()


class _Step(NamedTuple):
    """From one limit to another (or outside), with a gain for each move that goes this way.

    Attributes:
        start: The limit under which one more move is spent.
        end: The limit under which one move less is spent.
        gain: What it takes from the lead.
        room: How often it can be done.
        on: Place of the units on which it happens; ``_NEW`` without a unit; ``_LIMIT`` if a move that a limit allows
            counts under the limit around it, too.
    """

    start: int
    end: int
    gain: int
    room: float
    on: int


_NEW, _LIMIT = -1, -2


class _Assignment:
    def __init__(self, found: Losses, limits: Limits) -> None:
        self.found = found
        self.caps = [math.inf if most is None else most for _, most in limits]
        self.parent, kept = _nested([set(moves) for moves, _ in limits])
        inner: dict[str, int] = {}
        for place in sorted(kept, key=lambda place: -len(limits[place][0])):
            inner |= dict.fromkeys(limits[place][0], place)  # the smallest limit comes last
        self.kept = kept
        self.used = dict.fromkeys(kept, 0)
        # The best move of each innermost limit: moves of one limit cost the same.
        self.options = [_best_of_limits(harm, inner) for _, harm in found.units]
        self.fees = _best_of_limits(found.fees, inner)
        # Rows of units that some limit reaches, those that lose most to its best move first.
        self.rows: dict[int, list[int]] = {}
        for row, options in enumerate(self.options):
            for place in options:
                self.rows.setdefault(place, []).append(row)
        for place, rows in self.rows.items():
            rows.sort(key=lambda row: -self.options[row][place][0])
        self.flow: list[dict[int, int]] = [{} for _ in found.units]
        self.slack = [count for count, _ in found.units]
        self.new = dict.fromkeys(self.fees, 0)

    def solve(self) -> Found:
        taken = 0
        while taken <= self.found.lead:
            path = self._best_path()
            gain = sum(step.gain for step in path)
            if gain <= 0:
                return Found(taken, self._prices(), *self._played())
            enough = -(-(self.found.lead + 1 - taken) // gain)
            times = int(min(enough, min(step.room for step in path)))
            for step in path:
                self._take(step, times)
            taken += times * gain
        return Found(taken, None, *self._played())

    def _steps(self) -> list[_Step]:
        """The best step between any two limits."""
        best: dict[tuple[int, int], _Step] = {}
        for step in (*self._steps_without_units(), *self._steps_on_units()):
            other = best.get((step.start, step.end))
            if step.room > 0 and (other is None or step.gain > other.gain):
                best[step.start, step.end] = step
        return list(best.values())

    def _steps_without_units(self) -> Iterator[_Step]:
        for place in self.kept:
            around = self.parent[place]
            yield _Step(around, place, 0, self.caps[place] - self.used[place], _LIMIT)
            yield _Step(place, around, 0, self.used[place], _LIMIT)
        for place, (fee, _) in self.fees.items():
            yield _Step(place, OUTSIDE, fee, math.inf, _NEW)
            yield _Step(OUTSIDE, place, -fee, self.new[place], _NEW)

    def _steps_on_units(self) -> Iterator[_Step]:
        for place, rows in self.rows.items():
            row = next((row for row in rows if self.slack[row]), None)
            if row is not None:
                yield _Step(place, OUTSIDE, self.options[row][place][0], self.slack[row], row)
        for row, flow in enumerate(self.flow):
            options = self.options[row]
            for other, times in flow.items():
                yield _Step(OUTSIDE, other, -options[other][0], times, row)
                for place, (harm, _) in options.items():
                    if place != other:
                        yield _Step(place, other, harm - options[other][0], times, row)

    def _best_path(self) -> list[_Step]:
        """The way from outside to outside that gains most. There is no way round that gains anything."""
        steps = self._steps()
        reached: dict[int, tuple[int, list[_Step]]] = {}
        for step in steps:
            if step.start == OUTSIDE and step.gain > reached.get(step.end, (-math.inf, []))[0]:
                reached[step.end] = step.gain, [step]
        for _ in self.kept:
            changed = False
            for step in steps:
                if step.start == OUTSIDE or step.start not in reached:
                    continue
                gain, path = reached[step.start]
                if gain + step.gain > reached.get(step.end, (-math.inf, []))[0]:
                    reached[step.end] = gain + step.gain, [*path, step]
                    changed = True
            if not changed:
                break
        return reached.get(OUTSIDE, (0, []))[1]

    def _take(self, step: _Step, times: int) -> None:
        if step.on == _LIMIT:
            inward = self.parent.get(step.end, None) == step.start and step.end != OUTSIDE
            self.used[step.end if inward else step.start] += times if inward else -times
            return
        counted = self.new if step.on == _NEW else self.flow[step.on]
        if step.start != OUTSIDE:
            counted[step.start] = counted.get(step.start, 0) + times
        if step.end != OUTSIDE:
            counted[step.end] -= times
        if step.on == _NEW:
            return
        if not counted.get(step.end, 1):
            del counted[step.end]
        if step.end == OUTSIDE:
            self.slack[step.on] -= times
        if step.start == OUTSIDE:
            self.slack[step.on] += times

    def _prices(self) -> Vector:
        """What one more move under each limit would be worth, beyond what it costs under the limits around it."""
        steps = self._steps()
        worth = dict.fromkeys(self.kept, -math.inf) | {OUTSIDE: 0}
        for _ in range(len(self.kept) + 1):
            for step in steps:
                if step.start != OUTSIDE:
                    worth[step.start] = max(worth[step.start], step.gain + worth[step.end])
        full: dict[int, int] = {OUTSIDE: 0}
        for place in sorted(self.kept, key=self._depth):
            full[place] = int(max(worth[place], full[self.parent[place]]))
        return tuple(
            full[place] - full[self.parent[place]] if place in self.kept else 0 for place in range(len(self.caps))
        )

    def _depth(self, place: int) -> int:
        depth = 0
        while (place := self.parent[place]) != OUTSIDE:
            depth += 1
        return depth

    def _played(self) -> tuple[dict[tuple[int, str], int], dict[str, int]]:
        spent = {
            (row, self.options[row][place][1]): times
            for row, flow in enumerate(self.flow)
            for place, times in flow.items()
        }
        new = {self.fees[place][1]: times for place, times in self.new.items() if times}
        return spent, new


def _best_of_limits(worth: Mapping[str, int], inner: Mapping[str, int]) -> dict[int, tuple[int, str]]:
    """Returns what the best move of each innermost limit takes, if it takes anything."""
    best: dict[int, tuple[int, str]] = {}
    for move, takes in worth.items():
        if takes > 0 and takes > best.get(inner[move], (0, ""))[0]:
            best[inner[move]] = takes, move
    return best


def _nested(sets: list[set[str]]) -> tuple[dict[int, int], list[int]]:
    """Returns the limit around each limit, and which of them are kept: those that cross no larger one."""
    order = sorted(range(len(sets)), key=lambda place: (-len(sets[place]), place))
    kept: list[int] = []
    parent: dict[int, int] = {}
    for place in order:
        if any(sets[place] & sets[other] and not sets[place] <= sets[other] for other in kept):
            continue
        around = [other for other in kept if sets[place] <= sets[other]]
        parent[place] = min(around, key=lambda other: (len(sets[other]), -kept.index(other)), default=OUTSIDE)
        kept.append(place)
    return parent, kept


# ---- Statements ----


def rows_of(contest: Contest, target: Target, allowed: Allowance) -> tuple[Vector, ...] | None:
    """Returns prices with which a target keeps its label, a row for each class; None if it may not."""
    weights = only(target.label, len(contest.classes))
    rows: list[Vector] = []
    for rival in range(len(contest.classes)):
        if rival == target.label:
            rows.append(())
            continue
        found = losses(contest, target, weights, rival, allowed.phase, give=-contest.least_lead)
        prices = _prices(found, allowed.limits)
        if prices is None:
            return None
        rows.append(prices)
    return tuple(rows)


def _prices(found: Losses, limits: Limits) -> Vector | None:
    """Returns prices with which a lead lasts, the simplest first."""
    nothing = (0,) * len(limits)
    if bears(found, limits, nothing):
        return nothing
    prices = best_prices(found, limits).prices
    return prices if prices is not None and bears(found, limits, prices) else None


def stays(contest: Contest, target: int, attacker: str, budget: Budget) -> Stays | None:
    """Returns the statement that a target keeps its label, with prices; None if none are found."""
    one = contest.targets[target]
    rows = rows_of(contest, one, allowance(contest.attackers[attacker], budget, one))
    return None if rows is None else Stays(target, attacker, budget, rows)


def excludes(contest: Contest, target: int, attacker: str, budget: Budget, rival: int) -> Excludes | None:
    """Returns the statement that a class does not win, with weights and prices; None if none are found."""
    one = contest.targets[target]
    allowed = allowance(contest.attackers[attacker], budget, one)
    for weights in _mixtures(contest, one, rival):
        give = sum(weights) * contest.least_lead
        found = losses(contest, one, weights, rival, allowed.phase, give=give)
        prices = _prices(found, allowed.limits)
        if prices is not None:
            return Excludes(target, attacker, budget, rival, weights, prices)
    return None


def _mixtures(contest: Contest, target: Target, rival: int) -> Iterator[Vector]:
    """Yields classes that may stay ahead of another one together. Any weights would be sound.

    Single classes first; then the first 2, 3, ... of some orders: by the score that is left if the attacker takes all
    units of some pools away.
    """
    classes = len(contest.classes)
    others = [c for c in range(classes) if c != rival]
    yield from (only(c, classes) for c in sorted(others, key=lambda c: -target.scores[c]))
    seen = set()
    for pools in range(len(target.pools) + 1):
        left = list(target.scores)
        for pool in target.pools[:pools]:
            for unit in pool.units:
                left = [number - unit.count * max(0, adds) for number, adds in zip(left, unit.adds, strict=True)]
        order = sorted(others, key=lambda c: (-left[c] - (c < rival), c))
        for size in range(2, len(others) + 1):
            chosen = frozenset(order[:size])
            if chosen not in seen:
                seen.add(chosen)
                yield tuple(int(c in chosen) for c in range(classes))


def broken_at_most(contest: Contest, attacker: str, budget: Budget) -> BrokenAtMost | None:
    """Returns how many targets one attack may break, with prices; None if the attacker shares nothing."""
    one = contest.attackers[attacker]
    if one.shared is None:
        return None
    total = shared_moves(contest, attacker, budget)
    needs = [
        need
        for place, target in enumerate(contest.targets)
        if (need := _need(contest, place, allowance(one, budget, target), one.shared.moves, total)) is not None
    ]
    prices = [0] * (len(contest.targets) - len(needs)) + sorted(need.moves for need in needs if need.moves is not None)
    return BrokenAtMost(attacker, budget, affords(prices, total), tuple(needs))


def _need(contest: Contest, place: int, allowed: Allowance, moves: tuple[str, ...], total: Amount) -> Need | None:
    """Returns how many shared moves a target needs to fall; None if it falls without any."""
    target = contest.targets[place]

    def rows(spent: int) -> tuple[Vector, ...] | None:
        return rows_of(contest, target, Allowance((*allowed.limits, (moves, spent)), allowed.phase))

    whole = rows_of(contest, target, allowed)
    if whole is not None:
        return Need(place, None, whole)
    bearable = rows(0)
    if bearable is None:
        return None
    low, high = 0, 1
    while (total is None or high <= total) and (found := rows(high)) is not None:
        low, bearable, high = high, found, 2 * high
    if total is not None:
        high = min(high, total + 1)
    while high > low + 1:
        middle = (low + high) // 2
        if (found := rows(middle)) is None:
            high = middle
        else:
            low, bearable = middle, found
    return Need(place, low + 1, bearable)


# ---- Plays ----


def play_against(
    contest: Contest, target: Target, allowed: Allowance, rival: int, weights: Vector | None = None
) -> Play | None:
    """Returns a play that refutes a statement, counted again; None if none is found.

    Args:
        contest: All that the file says.
        target: The target.
        allowed: What the budget allows.
        rival: The class that is to catch up with the label or, with weights, to win.
        weights: Those of the statement that the class does not win.
    """
    of_label = only(target.label, len(contest.classes))
    tried = [of_label] if weights is None else [weights, *_mixtures(contest, target, rival)]
    for each in tried:
        give = -contest.least_lead if weights is None else sum(each) * contest.least_lead
        found = losses(contest, target, each, rival, allowed.phase, give=give)
        best = best_prices(found, allowed.limits)
        play = _as_play(contest, target, allowed, (each, rival), best)
        if objections(contest, target, allowed, play):
            continue
        if takes_label(contest, target, play) if weights is None else gives_label(contest, play, target):
            return play
    return None


def _as_play(contest: Contest, target: Target, allowed: Allowance, against: tuple[Vector, int], best: Found) -> Play:
    """Turns what was spent on rows of units into a play: units whose phase is over become what they can."""
    weights, rival = against
    hits: list[Hit] = []
    places = [(p, u) for p, pool in enumerate(target.pools) for u in range(len(pool.units))]
    for row, (p, u) in enumerate(places):
        hit = {move: times for (at, move), times in best.spent.items() if at == row and times}
        hits += [Hit(p, u, times, move) for move, times in hit.items()]
        left = target.pools[p].units[u].count - sum(hit.values())
        free = Hit(p, u, left, None)
        alone = Play((free,), (), rival)
        if left and not objections(contest, target, allowed, alone) and _takes(target, alone, weights):
            hits.append(free)
    return Play(tuple(hits), tuple(best.new.items()), rival)


def _takes(target: Target, play: Play, weights: Vector) -> bool:
    """Returns whether a play makes the lead smaller."""
    after, doubt = scores_after(target, play)
    before, doubt_before = scores_after(target, Play((), (), play.favoured))
    change = [b - d - (x - y) for b, d, x, y in zip(after, doubt, before, doubt_before, strict=True)]
    rise = after[play.favoured] + doubt[play.favoured]
    rise -= before[play.favoured] + doubt_before[play.favoured]
    return sum(weight * number for weight, number in zip(weights, change, strict=True)) < sum(weights) * rise
