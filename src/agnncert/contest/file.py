"""Contests as JSON files: reading what anybody may have written, and writing.

A file is read in one way only. A name that stands twice in an object, a name that is unknown or missing, a number that
is not whole (``3.0`` and ``1e3`` are none), too large or negative where it cannot be, and anything else that the page
about the format does not describe, is refused.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from agnncert.contest.form import (
    EXTENSIONS,
    LARGEST,
    Amount,
    Attacker,
    BrokenAtMost,
    Budget,
    Claim,
    Contest,
    Effect,
    Excludes,
    Limit,
    Need,
    Pool,
    Statement,
    Stays,
    Target,
    Unit,
    Vector,
)
from agnncert.errors import CertificateError, did_you_mean
from agnncert.storage import parse_json, visible, write_atomic

FORMAT, VERSION = "contest", 1
ANY = "any"  # a count without an end
Json = Any  # what a JSON file holds: objects, lists, texts, numbers, true, false and null
Part = TypeVar("Part")


def read_contest(path: str | PathLike[str]) -> Contest:
    """Reads a contest. Whether it contradicts itself, and what follows, is for ``checker``.

    Raises:
        CertificateError: There is no such file, or it is not written as the format says.
    """
    path = Path(path)
    if not path.is_file():
        raise CertificateError(f"there is no file {path}.")
    try:
        value = parse_json(path.read_bytes().decode("utf-8"), strict=True)
        return from_json(value)
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)[:300]
        shown = visible(reason.rstrip("."))
        raise CertificateError(f"{path} is not a contest of version {VERSION}: {shown}.") from error


def write_contest(path: str | PathLike[str], contest: Contest) -> None:
    """Writes a contest, all of it or nothing: one line for each target and each statement."""
    value = to_json(contest)
    lines = []
    for name, part in value.items():
        if name in ("targets", "statements"):
            entries = ",\n".join(_line(each) for each in part)
            lines.append(f'"{name}": [\n{entries}\n]')
        else:
            lines.append(f'"{name}": {_line(part)}')
    write_atomic(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


# ---- Reading. `where` says in messages which part of the file is meant. ----


def from_json(value: Json) -> Contest:
    """Returns the contest that a JSON value describes.

    Raises:
        ValueError: It is not written as the format says.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f'it does not say "format": "{FORMAT}"')
    if type(value.get("version")) is not int or value["version"] != VERSION:
        raise ValueError(f"it is of version {_shown(value.get('version'))}")
    extensions = tuple(_texts(value.get("extensions"), "extensions"))
    if list(extensions) != sorted(set(extensions)):
        raise ValueError("extensions are not in order, or one stands there twice")
    for name in extensions:
        if name not in EXTENSIONS:
            raise ValueError(f'the extension "{name}" is unknown: {did_you_mean(name, EXTENSIONS)}')
    return _Reader(extensions).contest(value)


class _Reader:
    """Reads the parts of a file that lists these extensions."""

    def __init__(self, extensions: tuple[str, ...]) -> None:
        self.extensions = extensions

    def fields(self, value: Json, where: str, *names: str, **extended: str) -> dict[str, Json]:
        """Returns an object that has exactly these names, and those of the extensions that the file lists."""
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {_shown(value)}, expected an object")
        expected = [*names, *(name for name, extension in extended.items() if extension in self.extensions)]
        for name in value:
            if name not in expected:
                raise ValueError(f'{where} has no field "{name}": {did_you_mean(name, expected)}')
        for name in expected:
            if name not in value:
                raise ValueError(f'{where} has no "{name}"')
        return value

    def contest(self, value: Json) -> Contest:
        names = ("format", "version", "claim", "extensions", "classes", "moves", "attackers", "targets", "statements")
        at = self.fields(value, "the file", *names, least_lead="abstention")
        claim = self.fields(at["claim"], "claim", "defence", "author", "reference", "assumes")
        return Contest(
            claim=Claim(
                defence=_text(claim["defence"], "claim.defence"),
                author=_text(claim["author"], "claim.author"),
                reference=_text(claim["reference"], "claim.reference"),
                assumes=tuple(_texts(claim["assumes"], "claim.assumes")),
            ),
            extensions=self.extensions,
            classes=tuple(_texts(at["classes"], "classes", fewest=1)),
            moves=_mapping(at["moves"], "moves", _text),
            attackers=_mapping(at["attackers"], "attackers", self.attacker),
            targets=tuple(_list(at["targets"], "targets", self.target)),
            statements=tuple(_list(at["statements"], "statements", self.statement)),
            least_lead=_whole(at.get("least_lead", 0), "least_lead"),
        )

    def attacker(self, value: Json, where: str) -> Attacker:
        at = self.fields(value, where, "counts", "limits", phase="phase", shared="together")
        shared = at.get("shared")
        return Attacker(
            counts=_mapping(at["counts"], f"{where}.counts", _text),
            limits=tuple(_list(at["limits"], f"{where}.limits", self.limit)),
            phase=_mapping(at.get("phase", {}), f"{where}.phase", _whole),
            shared=None if shared is None else self.shared(shared, f"{where}.shared"),
        )

    def limit(self, value: Json, where: str) -> Limit:
        at = self.fields(value, where, "moves", "at_most", tables="tables")
        return Limit(
            tuple(_texts(at["moves"], f"{where}.moves", fewest=1)),
            _mapping(at["at_most"], f"{where}.at_most", _whole),
            _mapping(at.get("tables", {}), f"{where}.tables", _factors),
        )

    def shared(self, value: Json, where: str) -> Limit:
        at = self.fields(value, where, "moves", "at_most")
        moves = _texts(at["moves"], f"{where}.moves", fewest=1)
        return Limit(tuple(moves), _mapping(at["at_most"], f"{where}.at_most", _whole))

    def target(self, value: Json, where: str) -> Target:
        names = ("name", "label", "scores", "fixed", "pools", "new")
        at = self.fields(value, where, *names, doubt="doubt", tables="tables")
        scores = _vector(at["scores"], f"{where}.scores")
        return Target(
            name=_text(at["name"], f"{where}.name"),
            label=_whole(at["label"], f"{where}.label"),
            scores=scores,
            fixed=_vector(at["fixed"], f"{where}.fixed"),
            pools=tuple(_list(at["pools"], f"{where}.pools", self.pool)),
            new=_mapping(at["new"], f"{where}.new", self.effect),
            doubt=_amounts(at.get("doubt", [0] * len(scores)), f"{where}.doubt"),
            tables=_mapping(at.get("tables", {}), f"{where}.tables", _amounts),
        )

    def pool(self, value: Json, where: str) -> Pool:
        at = self.fields(value, where, "hit_by", "units", free="phase")
        free = at.get("free")
        return Pool(
            _mapping(at["hit_by"], f"{where}.hit_by", self.effect),
            tuple(_list(at["units"], f"{where}.units", self.unit)),
            None if free is None else self.effect(free, f"{where}.free"),
        )

    def unit(self, value: Json, where: str) -> Unit:
        at = self.fields(value, where, "count", "adds", doubt="doubt", until="phase")
        until = at.get("until")
        return Unit(
            _whole(at["count"], f"{where}.count", least=1),
            _vector(at["adds"], f"{where}.adds"),
            _whole(at.get("doubt", 0), f"{where}.doubt"),
            None if until is None else _whole(until, f"{where}.until"),
        )

    def effect(self, value: Json, where: str) -> Effect:
        at = self.fields(value, where, "adds", "cap", doubt="doubt")
        adds, cap = _vector(at["adds"], f"{where}.adds"), _amounts(at["cap"], f"{where}.cap")
        return Effect(adds, cap, _whole(at.get("doubt", 0), f"{where}.doubt"))

    def statement(self, value: Json, where: str) -> Statement:
        says = value.get("says") if isinstance(value, dict) else None
        if says == "stays":
            at = self.fields(value, where, "says", "target", "attacker", "budget", "prices")
            prices = tuple(_list(at["prices"], f"{where}.prices", _amounts))
            return Stays(_whole(at["target"], f"{where}.target"), *self.attack(at, where), prices)
        if says == "excludes":
            names = ("says", "target", "attacker", "budget", "class", "weights", "prices")
            at = self.fields(value, where, *names)
            return Excludes(
                _whole(at["target"], f"{where}.target"),
                *self.attack(at, where),
                _whole(at["class"], f"{where}.class"),
                _amounts(at["weights"], f"{where}.weights"),
                _amounts(at["prices"], f"{where}.prices"),
            )
        if says == "broken_at_most" and "together" in self.extensions:
            at = self.fields(value, where, "says", "attacker", "budget", "number", "needs")
            needs = tuple(_list(at["needs"], f"{where}.needs", self.need))
            return BrokenAtMost(*self.attack(at, where), _whole(at["number"], f"{where}.number"), needs)
        raise ValueError(f"{where} says {_shown(says)}, which is no statement of a file with its extensions")

    def attack(self, at: dict[str, Json], where: str) -> tuple[str, Budget]:
        return _text(at["attacker"], f"{where}.attacker"), _mapping(at["budget"], f"{where}.budget", _count)

    def need(self, value: Json, where: str) -> Need:
        at = self.fields(value, where, "target", "moves", "prices")
        moves = None if at["moves"] is None else _whole(at["moves"], f"{where}.moves", least=1)
        prices = tuple(_list(at["prices"], f"{where}.prices", _amounts))
        return Need(_whole(at["target"], f"{where}.target"), moves, prices)


def _whole(value: Json, where: str, least: int = 0) -> int:
    if type(value) is not int:  # neither 3.0 nor true
        raise ValueError(f"{where} is {_shown(value)}, expected a whole number")
    if not least <= value <= LARGEST:
        raise ValueError(f"{where} is {_shown(value)}, expected a number from {least:,} to {LARGEST:,}")
    return value


def _count(value: Json, where: str) -> Amount:
    return None if value == ANY and isinstance(value, str) else _whole(value, where)


def _text(value: Json, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where} is {_shown(value)}, expected a text that says something")
    return value


def _list(value: Json, where: str, read: Callable[[Json, str], Part]) -> list[Part]:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {_shown(value)}, expected a list")
    return [read(each, f"{where}[{place}]") for place, each in enumerate(value)]


def _texts(value: Json, where: str, fewest: int = 0) -> list[str]:
    texts = _list(value, where, _text)
    if len(texts) < fewest:
        raise ValueError(f"{where} is empty")
    return texts


def _vector(value: Json, where: str) -> Vector:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {_shown(value)}, expected a list")
    return tuple(_whole(number, where, -LARGEST) for number in value)


def _amounts(value: Json, where: str) -> Vector:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {_shown(value)}, expected a list")
    return tuple(_whole(number, where) for number in value)


def _mapping(value: Json, where: str, read: Callable[[Json, str], Part]) -> dict[str, Part]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {_shown(value)}, expected an object")
    return {_text(name, f"a name in {where}"): read(each, f"{where}.{name}") for name, each in value.items()}


def _factors(value: Json, where: str) -> dict[str, int]:
    return _mapping(value, where, _whole)


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# ---- Writing ----


def to_json(contest: Contest) -> dict[str, Json]:
    """Returns what a file holds. Fields of extensions that the contest does not list are left out."""
    write = _Writer(contest.extensions)
    claim = contest.claim
    value = {
        "format": FORMAT,
        "version": VERSION,
        "claim": {
            "defence": claim.defence,
            "author": claim.author,
            "reference": claim.reference,
            "assumes": list(claim.assumes),
        },
        "extensions": list(contest.extensions),
        "classes": list(contest.classes),
        "moves": dict(contest.moves),
        "attackers": {name: write.attacker(each) for name, each in contest.attackers.items()},
    }
    value |= write.extended("abstention", least_lead=contest.least_lead)
    value["targets"] = [write.target(each) for each in contest.targets]
    value["statements"] = [write.statement(each) for each in contest.statements]
    return value


class _Writer:
    def __init__(self, extensions: Iterable[str]) -> None:
        self.extensions = extensions

    def extended(self, extension: str, **fields: Json) -> dict[str, Json]:
        return fields if extension in self.extensions else {}

    def attacker(self, attacker: Attacker) -> dict[str, Json]:
        value: dict[str, Json] = {"counts": dict(attacker.counts)}
        value["limits"] = [self.limit(limit) for limit in attacker.limits]
        value |= self.extended("phase", phase=dict(attacker.phase))
        shared = attacker.shared
        written = None if shared is None else {"moves": list(shared.moves), "at_most": dict(shared.at_most)}
        return value | self.extended("together", shared=written)

    def limit(self, limit: Limit) -> dict[str, Json]:
        tables = {name: dict(factors) for name, factors in limit.tables.items()}
        value = {"moves": list(limit.moves), "at_most": dict(limit.at_most)}
        return value | self.extended("tables", tables=tables)

    def target(self, target: Target) -> dict[str, Json]:
        value: dict[str, Json] = {"name": target.name, "label": target.label}
        value |= {"scores": list(target.scores), "fixed": list(target.fixed)}
        value |= self.extended("doubt", doubt=list(target.doubt or [0] * len(target.scores)))
        value |= self.extended("tables", tables={name: list(row) for name, row in target.tables.items()})
        value["pools"] = [self.pool(pool) for pool in target.pools]
        return value | {"new": self.effects(target.new)}

    def pool(self, pool: Pool) -> dict[str, Json]:
        free = None if pool.free is None else self.effect(pool.free)
        value = {"hit_by": self.effects(pool.hit_by), "units": [self.unit(unit) for unit in pool.units]}
        return value | self.extended("phase", free=free)

    def effects(self, effects: Mapping[str, Effect]) -> dict[str, Json]:
        return {move: self.effect(effect) for move, effect in effects.items()}

    def effect(self, effect: Effect) -> dict[str, Json]:
        value = {"adds": list(effect.adds), "cap": list(effect.cap)}
        return value | self.extended("doubt", doubt=effect.doubt)

    def unit(self, unit: Unit) -> dict[str, Json]:
        value = {"count": unit.count, "adds": list(unit.adds)}
        value |= self.extended("doubt", doubt=unit.doubt)
        return value | self.extended("phase", until=unit.until)

    def statement(self, statement: Statement) -> dict[str, Json]:
        budget = {name: ANY if number is None else number for name, number in statement.budget.items()}
        attack = {"attacker": statement.attacker, "budget": budget}
        if isinstance(statement, Stays):
            return {"says": "stays", "target": statement.target, **attack, "prices": _rows(statement.prices)}
        if isinstance(statement, Excludes):
            against = {"class": statement.rival, "weights": list(statement.weights)}
            return {
                "says": "excludes",
                "target": statement.target,
                **attack,
                **against,
                "prices": list(statement.prices),
            }
        needs = [{"target": need.target, "moves": need.moves, "prices": _rows(need.prices)} for need in statement.needs]
        return {"says": "broken_at_most", **attack, "number": statement.number, "needs": needs}


def _rows(prices: tuple[Vector, ...]) -> list[list[int]]:
    return [list(row) for row in prices]
