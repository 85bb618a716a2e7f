"""Files that somebody wrote to deceive: each is refused, and none crashes the checker."""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agnncert.contest.file import write_contest
from agnncert.contest.verdict import check_contest
from agnncert.errors import CertificateError
from tests.support.contests import seven_models, with_everything

Json = Any


def votes() -> Json:
    """7 models of which 5 vote for class 0, and one poisoned sample."""
    return seven_models()


def target(value: Json) -> Json:
    return value["targets"][0]


def pool(value: Json) -> Json:
    return target(value)["pools"][0]


def effect(value: Json) -> Json:
    return pool(value)["hit_by"]["poison"]


def says(value: Json) -> Json:
    return value["statements"][0]


def limit(value: Json) -> Json:
    return value["attackers"]["poisoner"]["limits"][0]


def put(place: Callable[[Json], Json], name: Any, content: Any) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        place(value)[name] = content

    return change


def drop(place: Callable[[Json], Json], name: Any) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        del place(value)[name]

    return change


def one_more(place: Callable[[Json], Json], name: str) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        place(value)[name] += 1

    return change


def every(*changes: Callable[[Json], None]) -> Callable[[Json], None]:
    def change(value: Json) -> None:
        for each in changes:
            each(value)

    return change


def root(value: Json) -> Json:
    return value


def larger_budget(value: Json) -> None:
    says(value)["budget"]["poisoned"] = 2


def fewer_units(value: Json) -> None:
    """One vote of five is listed, and the score says five."""
    pool(value)["units"][0]["count"] = 1


def third_class(value: Json) -> None:
    """A third class to which one hit gives 9: no flag says that all rivals are alike."""
    value["classes"].append("other")
    target(value).update(scores=[5, 2, 0], fixed=[0, 0, 0])
    effect(value).update(adds=[0, 0, 0], cap=[1, 1, 9])
    for unit in pool(value)["units"]:
        unit["adds"].append(0)
    says(value)["prices"] = [[], [2], [2]]


def second_limit(value: Json) -> None:
    """A limit more, whose price pays for everything and costs nothing, because nothing is allowed by it."""
    value["attackers"]["poisoner"]["limits"].append({"moves": ["other"], "at_most": {}})
    value["moves"]["other"] = "nothing"
    pool(value)["hit_by"]["other"] = {"adds": [0, 0], "cap": [0, 0]}
    says(value)["budget"]["poisoned"] = 7
    says(value)["prices"] = [[], [0, 1000]]


def unlimited(value: Json) -> None:
    """Any number of poisoned samples, paid at a price."""
    says(value)["budget"]["poisoned"] = "any"


def new_votes(value: Json) -> None:
    """New votes whose fee no price covers."""
    target(value)["new"] = {"poison": {"adds": [0, 0], "cap": [3, 3]}}


def huge_new_vote(value: Json) -> None:
    target(value)["new"] = {"poison": {"adds": [-(2**53 - 1), 0], "cap": [0, 2**53 - 1]}}


def wrap_around(value: Json) -> None:
    """256 kinds of units, each 2**52 times worth 2**52: more than 2**63 and than 2**64."""
    units = [{"count": 2**52, "adds": [2**52, 0]} for _ in range(256)]
    pool(value)["units"] = units
    total = 256 * 2**104
    target(value).update(scores=[total, 0], fixed=[0, 0])


def wrap_in_the_sum(value: Json) -> None:
    """The same with a fixed part that brings the true sum back to a number that a file may hold."""
    pool(value)["units"] = [{"count": 2**12, "adds": [2**52, 0]}, {"count": 1, "adds": [0, 1]}]
    target(value).update(scores=[1, 1], fixed=[1, 0])  # 2**64 + 1 is 1 in 64 bits


CASES: dict[str, Callable[[Json], None]] = {
    # Numbers
    "a float": put(effect, "cap", [0.4, 1]),
    "a float that is whole": put(says, "target", 0.0),
    "a number with an exponent": put(effect, "cap", [1e0, 1]),
    "a negative cap": put(effect, "cap", [0, -1]),
    "a cap of 2**62": put(effect, "cap", [0, 2**62]),
    "a cap of 2**63 - 1": put(effect, "cap", [0, 2**63 - 1]),
    "an effect of -2**63": put(effect, "adds", [-(2**63), 0]),
    "a negative count of units": put(lambda v: pool(v)["units"][0], "count", -5),
    "no unit of a kind": put(lambda v: pool(v)["units"][0], "count", 0),
    "true for a number": put(lambda v: pool(v)["units"][0], "count", True),
    "a number in a text": put(says, "target", "0"),
    "a negative price": put(says, "prices", [[], [-2]]),
    "a negative budget": put(lambda v: says(v)["budget"], "poisoned", -1),
    "half a budget": put(lambda v: says(v)["budget"], "poisoned", 0.5),
    "an infinite budget": put(lambda v: says(v)["budget"], "poisoned", math.inf),
    "a budget that is no number": put(lambda v: says(v)["budget"], "poisoned", math.nan),
    "an infinite price": put(says, "prices", [[], [math.inf]]),
    "a budget in words": put(lambda v: says(v)["budget"], "poisoned", "inf"),
    "a negative factor": put(lambda v: limit(v)["at_most"], "poisoned", -1),
    "a factor of 0": put(lambda v: limit(v)["at_most"], "poisoned", 0),
    "a negative target": put(says, "target", -1),
    "a target that is not there": put(says, "target", 1),
    "sums beyond 2**63": wrap_around,
    "sums that come back": wrap_in_the_sum,
    # Names
    "an unknown field of the file": put(root, "alike", True),
    "an unknown field of a target": put(target, "special", [1]),
    "an unknown field of an effect": put(effect, "leaves", [0, 0]),
    "an unknown field of a unit": put(lambda v: pool(v)["units"][0], "own", 1),
    "an unknown field of a statement": put(says, "radius", 9),
    "an unknown field of a budget": put(lambda v: says(v)["budget"], "poison", 1),
    "a misspelt field of a budget": put(says, "budget", {"poisond": 1}),
    "a budget without a field": put(says, "budget", {}),
    "a statement of another kind": put(says, "says", "holds"),
    "a statement of an extension that is not listed": put(says, "says", "broken_at_most"),
    "an unknown extension": put(root, "extensions", ["alike"]),
    "an extension twice": put(root, "extensions", ["doubt", "doubt"]),
    "an extension that is listed and not used": put(root, "extensions", ["doubt"]),
    "a field of an extension that is not listed": put(root, "least_lead", 0),
    "another format": put(root, "format", "ledger"),
    "another version": put(root, "version", 2),
    "a version that is true": put(root, "version", True),
    "no version": drop(root, "version"),
    "no prices": drop(says, "prices"),
    "no cap": drop(effect, "cap"),
    "no claim": drop(root, "claim"),
    "an empty claim": put(lambda v: v["claim"], "reference", " "),
    "a count that means nothing": put(lambda v: v["attackers"]["poisoner"]["counts"], "poisoned", ""),
    # Forms that contradict themselves
    "units that are missing": fewer_units,
    "scores that are no sums": put(target, "scores", [10**6, 2]),
    "a label that does not lead": put(target, "label", 1),
    "a label that is no class": put(target, "label", 2),
    "a pool that nothing hits": put(pool, "hit_by", {}),
    "a pool without units": lambda v: target(v)["pools"].append({"hit_by": pool(v)["hit_by"], "units": []}),
    "a move that is not listed": put(lambda v: pool(v)["hit_by"], "poisn", {"adds": [0, 0], "cap": [1, 1]}),
    "a move that does nothing": put(lambda v: v["moves"], "other", "something"),
    "a move that no limit names": every(
        put(lambda v: v["moves"], "other", "something"),
        put(lambda v: pool(v)["hit_by"], "other", {"adds": [0, 0], "cap": [9, 9]}),
    ),
    "a limit on a move that is not there": put(limit, "moves", ["poisn"]),
    "a limit on no move": put(limit, "moves", []),
    "a limit that names a move twice": put(limit, "moves", ["poison", "poison"]),
    "a count that nothing reads": every(
        put(lambda v: v["attackers"]["poisoner"]["counts"], "edges", "edges that are added"),
        put(lambda v: says(v)["budget"], "edges", 1),
    ),
    "a count that is read and not there": put(limit, "at_most", {"edges": 1, "poisoned": 1}),
    "no moves": every(
        put(root, "moves", {}),
        put(lambda v: v["attackers"]["poisoner"], "limits", []),
        put(lambda v: v["attackers"]["poisoner"], "counts", {}),
        put(target, "pools", []),
        put(target, "fixed", [5, 2]),
        put(says, "budget", {}),
        put(says, "prices", [[], []]),
    ),
    "no targets": every(put(root, "targets", []), put(root, "statements", [])),
    "no statements": put(root, "statements", []),
    "a target twice, once with another form": lambda v: v["targets"].append(target(v) | {"pools": [], "fixed": [5, 2]}),
    "no classes": put(root, "classes", []),
    "two classes of one name": put(root, "classes", ["genuine", "genuine"]),
    "a vector too short": put(effect, "cap", [1]),
    "an attacker that is not there": put(says, "attacker", "nobody"),
    # Statements that do not follow
    "a budget too large": larger_budget,
    "prices too low": put(says, "prices", [[], [0]]),
    "prices too high": put(says, "prices", [[], [5]]),
    "a price too many": put(says, "prices", [[], [2, 0]]),
    "a price for the label": put(says, "prices", [[0], [2]]),
    "a row too few": put(says, "prices", [[]]),
    "rows for other classes": put(says, "prices", [[2], []]),
    "a cap that is larger for another class": third_class,
    "an effect that is worse than stated prices": put(effect, "adds", [0, 9]),
    "a limit whose price pays for another move": second_limit,
    "any number of moves at a price": unlimited,
    "any number of moves at no price": every(unlimited, put(says, "prices", [[], [0]])),
    "new votes above their price": new_votes,
    "a huge new vote": huge_new_vote,
}


def refused(value: Json, tmp_path: Path) -> str:
    file = tmp_path / "contest.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    verdict = check_contest(file)
    assert not verdict.holds
    assert verdict.reasons
    assert "refused" in str(verdict)
    return verdict.reasons[0]


def test_the_file_that_the_hostile_ones_alter_is_accepted(tmp_path) -> None:
    (tmp_path / "contest.json").write_text(json.dumps(votes()), encoding="utf-8")
    assert check_contest(tmp_path / "contest.json").holds


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_is_refused(name: str, tmp_path) -> None:
    value = votes()
    CASES[name](value)
    refused(value, tmp_path)


EXTENDED: dict[str, Callable[[Json], None]] = {
    "a negative least lead": put(root, "least_lead", -1000),
    "an infinite least lead": put(root, "least_lead", math.inf),
    "a least lead that prices do not bear": put(root, "least_lead", 9),
    "a negative doubt of a target": put(target, "doubt", [-100, 0, 0]),
    "a negative doubt of a unit": put(lambda v: pool(v)["units"][0], "doubt", -1),
    "a negative doubt of an effect": put(lambda v: pool(v)["hit_by"]["alter"], "doubt", -1),
    "a larger doubt": put(target, "doubt", [9, 0, 0]),
    "a table that decreases": put(target, "tables", {"reach": [2, 1]}),
    "a negative table": put(target, "tables", {"reach": [-1, 1]}),
    "a table that is missing": put(target, "tables", {}),
    "a table that no limit reads": put(target, "tables", {"reach": [1, 1], "other": [1]}),
    "a table that reaches more": put(target, "tables", {"reach": [3, 3]}),
    "a table whose last entry reaches more": put(target, "tables", {"reach": [1, 9]}),
    "a phase that ends before the first": put(lambda v: pool(v)["units"][0], "until", -5),
    "a phase that ends with a half": put(lambda v: pool(v)["units"][0], "until", 0.5),
    "units that fall for nothing": put(lambda v: pool(v)["units"][1], "until", 0),
    "a phase that ends in nothing": put(pool, "free", None),
    "a pool that does not say what becomes of it": drop(pool, "free"),
    "a free effect that is worse": put(lambda v: pool(v)["free"], "cap", [0, 40, 0]),
    "a count of phases that is not there": put(lambda v: v["attackers"]["all"], "phase", {"steps": 1}),
    "no shared moves": put(lambda v: v["attackers"]["all"], "shared", None),
    "shared moves that tables limit": put(
        lambda v: v["attackers"]["all"],
        "shared",
        {"moves": ["alter"], "at_most": {"altered": 1}, "tables": {"reach": {"altered": 1}}},
    ),
    "more shared moves": put(lambda v: v["attackers"]["all"]["shared"], "at_most", {"altered": 9}),
    "fewer targets fall": put(lambda v: v["statements"][-1], "number", 0),
    "a need that is too large": put(lambda v: v["statements"][-1]["needs"][0], "moves", 9),
    "a need that is one too large": one_more(lambda v: v["statements"][-1]["needs"][0], "moves"),
    "a need of nothing": put(lambda v: v["statements"][-1]["needs"][0], "moves", 0),
    "a target that needs no moves at all": put(lambda v: v["statements"][-1]["needs"][0], "moves", None),
    "a target that needs something twice": lambda v: v["statements"][-1]["needs"].append(
        copy.deepcopy(v["statements"][-1]["needs"][0])
    ),
    "a weight of the class itself": put(lambda v: v["statements"][1], "weights", [1, 0, 1]),
    "a weight that prices do not bear": put(lambda v: v["statements"][1], "weights", [1, 1, 0]),
    "no weights": put(lambda v: v["statements"][1], "weights", [0, 0, 0]),
    "negative weights": put(lambda v: v["statements"][1], "weights", [2, 0, -1]),
    "weights too few": put(lambda v: v["statements"][1], "weights", [1, 0]),
    "a class that can win": every(
        put(lambda v: v["statements"][1], "class", 1), put(lambda v: v["statements"][1], "weights", [1, 0, 0])
    ),
    "the label is excluded": every(
        put(lambda v: v["statements"][1], "class", 0), put(lambda v: v["statements"][1], "weights", [0, 1, 0])
    ),
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Json:
    file = tmp_path_factory.mktemp("contest") / "contest.json"
    write_contest(file, with_everything())
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_file_with_all_extensions_is_accepted(extended, tmp_path) -> None:
    (tmp_path / "contest.json").write_text(json.dumps(extended), encoding="utf-8")
    verdict = check_contest(tmp_path / "contest.json")
    assert verdict.holds, verdict


@pytest.mark.parametrize("name", EXTENDED)
def test_a_hostile_file_with_extensions_is_refused(name: str, extended, tmp_path) -> None:
    value = copy.deepcopy(extended)
    EXTENDED[name](value)
    refused(value, tmp_path)


TEXTS = {
    "no JSON": "{",
    "an empty file": "",
    "a list": "[]",
    "a name that stands twice": '{"format": "contest", "format": "contest"}',
    "no number of JSON": '{"format": "contest", "version": NaN}',
    "nesting without end": "[" * 100_000,
    "a number of 5,000 digits": '{"format": "contest", "version": ' + "9" * 5_000 + "}",
    "commands to the screen": '{"format": "contest", "version": "\\u001b[2J"}',
    "half a character": '{"format": "\\ud800"}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_no_contest_is_refused(name: str, tmp_path) -> None:
    file = tmp_path / "contest.json"
    file.write_text(TEXTS[name], encoding="utf-8")
    verdict = check_contest(file)
    assert not verdict.holds
    assert str(verdict).isprintable() or "\n" in str(verdict)


def test_bytes_that_are_no_text_are_refused(tmp_path) -> None:
    (tmp_path / "contest.json").write_bytes(b"\xff\xfe")
    assert not check_contest(tmp_path / "contest.json").holds


def test_a_count_that_stands_twice_in_a_budget_is_refused(tmp_path) -> None:
    text = json.dumps(votes()).replace('{"poisoned": 1}, "prices"', '{"poisoned": 9, "poisoned": 1}, "prices"')
    (tmp_path / "contest.json").write_text(text, encoding="utf-8")
    assert "stands twice" in check_contest(tmp_path / "contest.json").reasons[0]


def test_a_file_that_takes_too_long_is_refused_before_it_is_checked(tmp_path) -> None:
    value = votes()
    pool(value)["units"] = [{"count": 1, "adds": [1, 0]}] * 30_000
    target(value).update(scores=[30_000, 0])
    value["statements"] = [copy.deepcopy(says(value)) for _ in range(10_000)]
    assert "steps" in refused(value, tmp_path)


def test_a_file_that_is_missing_is_an_error(tmp_path) -> None:
    with pytest.raises(CertificateError, match="there is no file"):
        check_contest(tmp_path / "nothing.json")
