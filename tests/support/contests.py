"""Small random contests, and every play on them: what the form says, word by word, without prices."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from agnncert.contest import search
from agnncert.contest.form import (
    Amount,
    Attacker,
    Claim,
    Contest,
    Effect,
    Limit,
    Pool,
    Target,
    Unit,
    leader,
)
from agnncert.contest.leads import Allowance
from tests.support.paths import PROJECT

CLAIM = Claim("votes of toys", "a test", "this file", ("nothing",))
MOVES = {"a": "a move", "b": "another move", "c": "a third one"}


def random_contest(rng: np.random.Generator, extensions: tuple[str, ...] = ()) -> Contest:
    """One attacker, one to three moves, one to three targets, few units."""
    classes, moves = int(rng.integers(1, 5)), list(MOVES)[: int(rng.integers(1, 4))]
    big = int(rng.choice([1, 2, 5, 40]))
    counts = {f"n_{move}": f"times of {move}" for move in moves} | {"any": "all of them", "steps": "phase or table"}
    limits = [Limit((move,), {f"n_{move}": 1}) for move in moves]
    tables = {"reach": {"steps": 1}} if "tables" in extensions else {}
    limits[0] = replace(limits[0], tables=tables)
    limits.append(Limit(tuple(moves), {"any": int(rng.integers(1, 3)), "steps": 2}))
    shared = Limit(tuple(moves[:2]), {"any": 1}) if "together" in extensions else None
    phase = {"steps": 1} if "phase" in extensions else {}
    attacker = Attacker(counts, tuple(limits), phase, shared)
    targets = [
        _random_target(rng, (classes, big), moves, extensions, f"t{place}") for place in range(int(rng.integers(1, 4)))
    ]
    least_lead = int(rng.integers(0, 4)) if "abstention" in extensions else 0
    every = {move: MOVES[move] for move in moves}
    names = tuple(f"class {k}" for k in range(classes))
    return Contest(CLAIM, extensions, names, every, {"all": attacker}, tuple(targets), (), least_lead)


def _random_target(
    rng: np.random.Generator, size: tuple[int, int], moves: list[str], extensions: tuple[str, ...], name: str
) -> Target:
    classes, big = size

    def vector(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(x) for x in rng.integers(low, high + 1, classes))

    def effect() -> Effect:
        plain = rng.random() < 0.5
        adds = (0,) * classes if plain else vector(-big, big)
        doubt = int(rng.integers(0, 2)) if "doubt" in extensions else 0
        return Effect(adds, vector(0, big), doubt)

    pools = []
    left = int(rng.integers(0, 5))
    while left:
        number = int(rng.integers(1, left + 1))
        left -= number
        units = []
        while number:
            count = int(rng.integers(1, number + 1))
            number -= count
            until = int(rng.integers(0, 3)) if "phase" in extensions and rng.random() < 0.6 else None
            doubt = int(rng.integers(0, 3)) if "doubt" in extensions else 0
            units.append(Unit(count, vector(-big, big), doubt, until))
        hit_by = {move: effect() for move in moves if rng.random() < 0.7}
        free = effect() if "phase" in extensions else None
        if not hit_by and free is None:
            hit_by = {moves[0]: effect()}
        pools.append(Pool(hit_by, tuple(units), free))
    fixed = list(vector(0, 3 * big))
    fixed[int(rng.integers(classes))] += int(rng.integers(0, 8 * big))
    sums = list(fixed)
    for unit in (unit for pool in pools for unit in pool.units):
        sums = [total + unit.count * x for total, x in zip(sums, unit.adds, strict=True)]
    new = {move: effect() for move in moves if rng.random() < 0.3}
    doubt = vector(0, 2) if "doubt" in extensions else (0,) * classes
    tables = {"reach": tuple(sorted(vector(0, 3)))} if "tables" in extensions else {}
    scores = tuple(sums)
    return Target(name, leader(scores), scores, tuple(fixed), tuple(pools), new, doubt, tables)


def random_budget(rng: np.random.Generator, contest: Contest) -> dict[str, Amount]:
    """Few of everything; now and then any number of something."""
    sizes = [0, 0, 1, 1, 2, 3, None]
    return {name: sizes[int(rng.integers(len(sizes)))] for name in contest.attackers["all"].counts}


def outcomes(
    target: Target, allowed: Allowance, rival: int, many: int = 60
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yields scores and their doubts after every play whose caps all go to one class.

    A move that brings something new is spent on it never, up to three times, or ``many`` times.
    """
    units = [(pool, unit) for pool in target.pools for unit in pool.units for _ in range(unit.count)]
    start = tuple(
        target.doubt[k] + sum(unit.count * unit.doubt for pool in target.pools for unit in pool.units)
        for k in range(len(target.scores))
    )
    ways: list[list[tuple[str | None, Effect | None]]] = []
    for pool, unit in units:
        over = unit.until is not None and (allowed.phase is None or unit.until < allowed.phase)
        free = [(None, pool.free)] if over else []
        ways.append([(None, None), *free, *pool.hit_by.items()])
    for chosen in itertools.product(*ways):
        spent = {move: 0 for moves, _ in allowed.limits for move in moves}
        scores, doubt = list(target.scores), list(start)
        for (_, unit), (move, effect) in zip(units, chosen, strict=True):
            if effect is None:
                continue
            if move is not None:
                spent[move] += 1
            for k, (new, old) in enumerate(zip(effect.adds, unit.adds, strict=True)):
                scores[k] += new - old
                doubt[k] += effect.doubt - unit.doubt
            scores[rival] += effect.cap[rival]
        if not _within(spent, allowed):
            continue
        for times in itertools.product(*([0, 1, 2, 3, many] for _ in target.new)):
            more = dict(spent)
            after, unsure = list(scores), list(doubt)
            for (move, effect), number in zip(target.new.items(), times, strict=True):
                more[move] += number
                after = [x + number * y for x, y in zip(after, effect.adds, strict=True)]
                unsure = [x + number * effect.doubt for x in unsure]
                after[rival] += number * effect.cap[rival]
            if _within(more, allowed):
                yield tuple(after), tuple(unsure)


def _within(spent: dict[str, int], allowed: Allowance) -> bool:
    return all(most is None or sum(spent[move] for move in moves) <= most for moves, most in allowed.limits)


def falls(contest: Contest, target: Target, allowed: Allowance) -> bool:
    """Whether some play makes the label's lead over some class too small."""
    label = target.label
    for rival in range(len(contest.classes)):
        if rival == label:
            continue
        for scores, doubt in outcomes(target, allowed, rival):
            lead = scores[label] - scores[rival] - doubt[label] - doubt[rival]
            if lead - (rival < label) < contest.least_lead:
                return True
    return False


def can_win(contest: Contest, target: Target, allowed: Allowance, rival: int) -> bool:
    """Whether some play gives a class the label."""
    for scores, doubt in outcomes(target, allowed, rival):
        best = scores[rival] + doubt[rival]
        rest = [(scores[k] - doubt[k] + contest.least_lead, k) for k in range(len(scores)) if k != rival]
        if all(best > other or (best == other and rival < k) for other, k in rest):
            return True
    return False


def seven_models() -> dict[str, Any]:
    """Returns the file of docs/commands/check.md: 7 models of which 5 vote for class 0, and one poisoned sample."""
    page = (PROJECT / "docs" / "commands" / "check.md").read_text(encoding="utf-8")
    block = re.search(r'```json title="seven-models.json"\n(.*?)```', page, re.DOTALL)
    assert block is not None
    value: dict[str, Any] = json.loads(block[1])
    return value


def with_everything() -> Contest:
    """A contest that uses every extension, with statements of every kind."""
    counts = {"altered": "units altered", "new": "units added"}
    limits = (Limit(("alter",), {}, {"reach": {"altered": 1}}), Limit(("add",), {"new": 1}))
    attacker = Attacker(counts, limits, {"new": 1}, Limit(("alter",), {"altered": 1}))
    hit_by = {"alter": Effect((0, 0, 0), (2, 2, 2), 1)}
    units = (Unit(1, (2, 0, 0), 1, 2), Unit(5, (2, 0, 0), 1, None), Unit(1, (0, 2, 0), 1, None))
    pool = Pool(hit_by, units, Effect((0, 0, 0), (2, 2, 2), 0))
    new = {"add": Effect((0, 0, 0), (1, 1, 1), 0)}
    one = Target("one", 0, (24, 2, 0), (12, 0, 0), (pool,), new, (1, 0, 0), {"reach": (1, 2)})
    two = replace(one, name="two", scores=(26, 2, 0), fixed=(14, 0, 0))
    moves = {"alter": "a unit is altered", "add": "a unit is added"}
    extensions = ("abstention", "doubt", "phase", "tables", "together")
    contest = Contest(CLAIM, extensions, ("a", "b", "c"), moves, {"all": attacker}, (one, two), (), 1)
    said = (
        search.stays(contest, 0, "all", {"altered": 0, "new": 3}),
        search.excludes(contest, 0, "all", {"altered": 2, "new": 1}, 2),
        search.broken_at_most(contest, "all", {"altered": 2, "new": 1}),
    )
    return replace(contest, statements=tuple(each for each in said if each is not None))
