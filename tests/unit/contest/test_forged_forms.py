"""Forms with which other checkers of this kind were deceived: each false statement is refused, its true twin accepted.

A prototype that searched for prices in 64-bit numbers, and took flags of a file on trust, accepted all of these.
"""

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.contest import search
from agnncert.contest.checker import check, wrong_form
from agnncert.contest.file import from_json, to_json
from agnncert.contest.form import EXTENSIONS, BrokenAtMost, Contest, Excludes, Stays
from agnncert.contest.leads import allowance
from agnncert.contest.verdict import check_contest
from tests.support.contests import can_win, falls, random_budget, random_contest

Json = Any
ONE, OTHER, DEEP = "one", "other", "deep"


def form(
    units: list[Json],
    effects: dict[str, Json],
    *,
    new: dict[str, Json] | None = None,
    lead: int = 0,
) -> Json:
    """Two classes, and a count and a limit for each move. The target has one pool for all its units."""
    moves = sorted({*effects, *(new or {})})
    limits = [{"moves": [move], "at_most": {move: 1}} for move in moves]
    attacker: Json = {"counts": {move: f"times of {move}" for move in moves}, "limits": limits}
    pool: Json = {"hit_by": effects, "units": units}
    scores = [lead + sum(u["count"] * u["adds"][0] for u in units), sum(u["count"] * u["adds"][1] for u in units)]
    return {
        "format": "contest",
        "version": 1,
        "claim": {"defence": "a toy", "author": "a forger", "reference": "none", "assumes": []},
        "extensions": [],
        "classes": ["right", "wrong"],
        "moves": {move: f"does {move}" for move in moves},
        "attackers": {"forger": attacker},
        "targets": [
            {
                "name": "t",
                "label": 0,
                "scores": scores,
                "fixed": [lead, 0],
                "pools": [pool] if units else [],
                "new": new or {},
            }
        ],
        "statements": [],
    }


def stays(value: Json, budget: dict[str, Any], prices: list[int]) -> Json:
    said = {"says": "stays", "target": 0, "attacker": "forger", "budget": budget, "prices": [[], prices]}
    return value | {"statements": [said]}


def holds(value: Json, tmp_path: Path) -> bool:
    file = tmp_path / "contest.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    return check_contest(file).holds


def cap(number: int, adds: tuple[int, int] = (0, 0)) -> Json:
    return {"adds": list(adds), "cap": [0, number]}


def votes(count: int, adds: tuple[int, int] = (1, 0), **more: Any) -> Json:
    return {"count": count, "adds": list(adds), **more}


def phased(units: list[Json], effects: dict[str, Json], *, free: Json, lead: int) -> Json:
    """The same with a count of phases, in which units become something for nothing, and new votes."""
    value = form(units, effects, new={ONE: cap(1)}, lead=lead)
    value["extensions"] = ["phase"]
    value["attackers"]["forger"] |= {"phase": {DEEP: 1}}
    value["attackers"]["forger"]["counts"][DEEP] = "phases"
    value["targets"][0]["pools"][0]["free"] = free
    return value


TEN = form([votes(10)], {ONE: cap(1)})
HUGE = 2**53 - 1
# Name -> the form, a budget and prices that show it, and a budget that is one move too large.
EXACT: dict[str, tuple[Json, dict[str, Any], list[int], dict[str, Any]]] = {
    "ten votes": (TEN, {ONE: 5}, [2], {ONE: 6}),
    "a lead of 2**33 is no infinite radius": (
        form([], {}, new={ONE: cap(1)}, lead=2**33),
        {ONE: 2**33},
        [1],
        {ONE: 2**33 + 1},
    ),
    **{
        f"a lead of 2**{power} and any tried price": (
            form([votes(1, (0, 2**40))], {OTHER: cap(1)}, new={ONE: cap(1)}, lead=2**power),
            {ONE: 2**power - 2**40 - 1, OTHER: 1},
            [1, 0],
            {ONE: 2**power - 2**40 + 1, OTHER: 1},
        )
        for power in (44, 46, 48, 50)
    },
    "a cap of the largest number": (form([], {}, new={ONE: cap(HUGE)}, lead=HUGE), {ONE: 1}, [HUGE], {ONE: 2}),
    "a new unit of minus the largest number": (
        form([], {}, new={ONE: cap(0, (-HUGE, 0))}, lead=HUGE),
        {ONE: 1},
        [HUGE],
        {ONE: 2},
    ),
    "two huge fees": (
        form([], {}, new={ONE: cap(2**31), OTHER: cap(2**31)}, lead=2**52),
        {ONE: 2**20, OTHER: 2**20},
        [2**31, 2**31],
        {ONE: 2**20, OTHER: 2**20 + 1},
    ),
    "counts of 2**52": (form([votes(2**52)], {ONE: cap(1)}), {ONE: 2**51}, [2], {ONE: 2**51 + 1}),
    "an effect that takes more than a cap": (
        form([votes(10)], {ONE: {"adds": [0, 9], "cap": [0, 0]}}),
        {ONE: 1},
        [10],
        {ONE: 2},
    ),
    "a unit past its phase, hit by a worse move": (
        phased([votes(1, until=0)], {OTHER: cap(100)}, free=cap(0), lead=100),
        {ONE: 0, DEEP: 1, OTHER: 1},
        [1, 100],
        {ONE: 1, DEEP: 1, OTHER: 1},
    ),
    "a unit past its phase, which the free move does not hit": (
        phased([votes(100, until=0)], {OTHER: cap(1)}, free=cap(1), lead=100),
        {ONE: 0, DEEP: 1, OTHER: 100},
        [1, 0],
        {ONE: 1, DEEP: 1, OTHER: 100},
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_largest_budget_is_accepted_and_one_move_more_refused(name: str, tmp_path) -> None:
    value, budget, prices, too_large = EXACT[name]
    assert holds(stays(value, budget, prices), tmp_path)
    for tried in (prices, [0] * len(prices), [1] * len(prices), [HUGE] * len(prices), [price + 1 for price in prices]):
        assert not holds(stays(value, too_large, tried), tmp_path)
    everything = dict.fromkeys(budget, "any")
    for tried in (prices, [0] * len(prices)):
        assert not holds(stays(value, everything, tried), tmp_path)


# ---- Any change of a true file: what is still accepted is true, by trying every play. ----


def places(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the way to each part of a file."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in ((*path, key), *places(part, (*path, key)))]


def at(value: Json, path: tuple[Any, ...]) -> Json:
    for key in path:
        value = value[key]
    return value


def altered(rng: np.random.Generator, value: Json) -> Json:
    """Returns a file with one to three changes: other numbers, parts that are gone, doubled, or taken from elsewhere.

    Most forgers keep what is added up in order, and most of them change numbers of statements, limits or effects.
    """
    value = copy.deepcopy(value)
    for _ in range(int(rng.integers(1, 4))):
        ways = places(value)
        if rng.random() < 0.7:
            ways = [way for way in ways if isinstance(at(value, way), int) and not {"scores", "label"} & {*way}]
        path = ways[int(rng.integers(len(ways)))]
        part, around, key = at(value, path), at(value, path[:-1]), path[-1]
        how = rng.random()
        if isinstance(part, int) and not isinstance(part, bool) and how < 0.8:
            around[key] = int(rng.choice([0, 1, part + 1, part - 1, 2 * part, -part, 3, 2**53 - 1]))
        elif how < 0.85:
            other = ways[int(rng.integers(len(ways)))]
            around[key] = copy.deepcopy(at(value, other))
        elif how < 0.93 and isinstance(around, list):
            around.insert(key, copy.deepcopy(part))
        else:
            del around[key]
    if rng.random() < 0.8:
        add_up(value)
    return value


def add_up(value: Json) -> None:
    """Makes the scores and labels of a file those of its units, if they can be added up."""
    try:
        for target in value["targets"]:
            sums = list(target["fixed"])
            for unit in (unit for pool in target["pools"] for unit in pool["units"]):
                sums = [total + unit["count"] * x for total, x in zip(sums, unit["adds"], strict=True)]
            target.update(scores=sums, label=max(range(len(sums)), key=lambda k: (sums[k], -k)))
    except (KeyError, TypeError, ValueError):
        return


def is_true(contest: Contest, statement: Any) -> bool:
    """Whether no play refutes a statement about one target."""
    target = contest.targets[statement.target]
    allowed = allowance(contest.attackers[statement.attacker], statement.budget, target)
    if isinstance(statement, Stays):
        return not falls(contest, target, allowed)
    assert isinstance(statement, Excludes)
    return not can_win(contest, target, allowed, statement.rival)


def is_small(contest: Contest) -> bool:
    """Whether all plays can be tried."""
    units = [sum(unit.count for pool in target.pools for unit in pool.units) for target in contest.targets]
    return max(units) <= 6 and all(len(target.new) <= 2 for target in contest.targets)


@pytest.mark.parametrize("seed", range(8))
def test_a_forger_who_changes_a_true_file_states_nothing_false(seed: int) -> None:
    rng, seen = np.random.default_rng(1_000 + seed), Counter[str]()
    for _ in range(12):
        contest = random_contest(rng, tuple(name for name in EXTENSIONS if rng.random() < 0.3))
        budget = random_budget(rng, contest)
        found = [search.stays(contest, place, "all", budget) for place in range(len(contest.targets))]
        found += [search.excludes(contest, 0, "all", budget, k) for k in range(len(contest.classes))]
        true = to_json(Contest(**{**contest.__dict__, "statements": tuple(each for each in found if each)}))
        for _ in range(60):
            if not true["statements"]:
                break
            try:
                forged = from_json(altered(rng, true))
            except ValueError:
                seen["not read"] += 1
                continue
            if wrong_form(forged):
                seen["contradicts itself"] += 1
                continue
            failed = {failure.statement for failure in check(forged)}
            seen["refused"] += len(failed)
            for place, statement in enumerate(forged.statements):
                if place not in failed and not isinstance(statement, BrokenAtMost) and is_small(forged):
                    assert is_true(forged, statement), forged
                    seen["true"] += 1
    assert min(seen[what] for what in ("not read", "contradicts itself", "refused", "true")) > 5, seen
