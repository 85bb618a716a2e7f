"""Checks the statements of a contest with the program that is extracted from the proofs in Coq (``Contest.v``).

    python -m formal.extracted_contest FILE

``make formal`` builds the program. This module reads the file as ``agnncert check`` does, hands the numbers over and
prints which statements follow. The exit status is 0 if all do, 1 if some do not, and 2 if the program or the file is
missing or is no contest.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agnncert.contest.checker import check, wrong_form
from agnncert.contest.file import read_contest
from agnncert.contest.form import (
    Amount,
    Attacker,
    BrokenAtMost,
    Budget,
    Contest,
    Effect,
    Excludes,
    Factors,
    Limit,
    Pool,
    Statement,
    Stays,
    Target,
    Vector,
)
from agnncert.errors import AgnncertError, SettingsError
from formal.extracted import run_checker

CONTEST = 104  # the code of contests in main.ml
ANY = -1  # any number, and no phase
STAYS, EXCLUDES, BROKEN = range(3)


def ask_contest(contest: Contest) -> list[bool]:
    """Returns which statements of a contest follow, by the program extracted from Coq.

    Raises:
        SettingsError: The program is not built, or a number does not fit into 63 bits.
    """
    lines = run_checker([list(_stream(contest))])
    if not lines or lines[-1] != ["targets", str(len(contest.targets))]:
        raise SettingsError("the extracted checker did not get to its end: run `make formal` again.")
    return [line[1] == "true" for line in lines if line[0] == "statement"]


def _stream(contest: Contest) -> Iterator[int]:
    """Yields the numbers that main.ml reads, in its order. Names become places."""
    moves = {name: place for place, name in enumerate(contest.moves)}
    yield from (CONTEST, "doubt" not in contest.extensions, contest.least_lead, len(contest.classes))
    yield len(contest.attackers)
    for attacker in contest.attackers.values():
        yield from _attacker(attacker, moves)
    yield len(contest.targets)
    for target in contest.targets:
        yield from _target(target, moves)
    yield len(contest.statements)
    names = list(contest.attackers)
    for statement in contest.statements:
        attacker = contest.attackers[statement.attacker]
        yield from _statement(statement, names.index(statement.attacker), attacker)


def _attacker(attacker: Attacker, moves: Mapping[str, int]) -> Iterator[int]:
    counts = {name: place for place, name in enumerate(attacker.counts)}
    tables = _tables_of(attacker)
    yield len(attacker.limits)
    for limit in attacker.limits:
        yield from _limit(limit, moves, counts)
        yield len(limit.tables)
        for name, factors in limit.tables.items():
            yield tables.index(name)
            yield from _factors(factors, counts)
    yield from _factors(attacker.phase, counts)
    yield attacker.shared is not None
    if attacker.shared is not None:
        yield from _limit(attacker.shared, moves, counts)


def _tables_of(attacker: Attacker) -> list[str]:
    return sorted({name for limit in attacker.limits for name in limit.tables})


def _limit(limit: Limit, moves: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[int]:
    yield from _list([moves[move] for move in limit.moves])
    yield from _factors(limit.at_most, counts)


def _factors(factors: Factors, counts: Mapping[str, int]) -> Iterator[int]:
    yield len(factors)
    for count, factor in factors.items():
        yield from (counts[count], factor)


def _target(target: Target, moves: Mapping[str, int]) -> Iterator[int]:
    yield from (target.label, *target.scores, *target.fixed)
    yield from target.doubt or (0,) * len(target.scores)
    yield len(target.pools)
    for pool in target.pools:
        yield from _pool(pool, moves)
    yield from _effects(target.new, moves)
    yield len(target.tables)
    for name in sorted(target.tables):
        yield from _list(target.tables[name])


def _pool(pool: Pool, moves: Mapping[str, int]) -> Iterator[int]:
    yield from _effects(pool.hit_by, moves)
    yield len(pool.units)
    for unit in pool.units:
        yield from (unit.count, *unit.adds, unit.doubt, _amount(unit.until))
    yield pool.free is not None
    if pool.free is not None:
        yield from _effect(pool.free)


def _effects(effects: Mapping[str, Effect], moves: Mapping[str, int]) -> Iterator[int]:
    yield len(effects)
    for move, effect in effects.items():
        yield moves[move]
        yield from _effect(effect)


def _effect(effect: Effect) -> Iterator[int]:
    yield from (*effect.adds, *effect.cap, effect.doubt)


def _statement(statement: Statement, attacker: int, of: Attacker) -> Iterator[int]:
    budget = _budget(statement.budget, of)
    if isinstance(statement, Stays):
        yield from (STAYS, attacker, *budget, statement.target)
        yield from _rows(statement.prices)
    elif isinstance(statement, Excludes):
        yield from (EXCLUDES, attacker, *budget, statement.target, statement.rival)
        yield from (*_list(statement.weights), *_list(statement.prices))
    elif isinstance(statement, BrokenAtMost):
        yield from (BROKEN, attacker, *budget, statement.number, len(statement.needs))
        for need in statement.needs:
            yield from (need.target, _amount(need.moves))
            yield from _rows(need.prices)


def _budget(budget: Budget, attacker: Attacker) -> list[int]:
    return [len(attacker.counts), *(_amount(budget[count]) for count in attacker.counts)]


def _amount(number: Amount) -> int:
    return ANY if number is None else number


def _rows(rows: Sequence[Vector]) -> Iterator[int]:
    yield len(rows)
    for row in rows:
        yield from _list(row)


def _list(numbers: Sequence[int]) -> Iterator[int]:
    yield len(numbers)
    yield from numbers


def main() -> int:
    """Checks the file that the command line names, and prints which statements follow."""
    parser = argparse.ArgumentParser(prog="python -m formal.extracted_contest", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="a contest")
    try:
        contest = read_contest(parser.parse_args().file)
        wrong = wrong_form(contest)
        followed = [] if wrong else ask_contest(contest)
    except AgnncertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    refused = {failure.statement for failure in check(contest)} if not wrong else set()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    for place, follows in enumerate(followed):
        if follows == (place in refused):
            print(f"statement {place}: agnncert check and the extracted checker do not agree")
        elif not follows:
            print(f"statement {place} does not follow")
    print(f"{sum(followed)} of {len(contest.statements)} statements follow")
    return 0 if followed and all(followed) and not refused else 1


if __name__ == "__main__":
    sys.exit(main())
