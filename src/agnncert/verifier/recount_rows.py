"""Counts the features of append-only scores a second time, row by row, in plain Python.

This module shares no code with ``append.evaluate`` and ``append.ledger``, and needs no numpy. It is slower, so that it
counts for some targets what the other program counts for all. Numbers are Python's own, so that none can overflow.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from typing import Any, NamedTuple

from agnncert.append.program import LIMIT, Expression, Program, Source
from agnncert.append.tables import TreeTables

Interval = tuple[int, int]
_GATHERED = ("sum", "max", "partners", "burst")


class Row(NamedTuple):
    """A row of the ledger: who sends it, who gets it, and its values by name."""

    source: int
    target: int
    values: dict[str, int]


class RowByRow:
    """Features of accounts, counted row by row.

    Args:
        program: What is counted.
        judge: The trees of the judge.
        threat: What an attacker may append, for bounds after deletions.
        edges: Source, target and values of each edge of the graph.
        features: Features of each account of the graph.
        known: The accounts that were known to be positive at training time.
    """

    def __init__(
        self,
        program: Program,
        judge: TreeTables,
        threat: str,
        edges: Iterable[tuple[int, int, Sequence[float]]],
        features: Sequence[Sequence[float]],
        known: Iterable[int],
    ) -> None:
        self.program = program
        self.threat = threat
        self.judge = _plain(judge)
        self.known = set(known)
        self.features = features
        self.sent: dict[int, list[Row]] = defaultdict(list)
        self.got: dict[int, list[Row]] = defaultdict(list)
        self.kept: dict[tuple[Any, ...], Any] = {}
        self.attributes = {source.name: source for source in program.attributes}
        for source, target, values in edges:
            is_there = program.present < 0 or values[program.present] > 0
            if source == target or not is_there:
                continue
            row = Row(source, target, {each.name: _read(each, values) for each in program.columns})
            self.sent[source].append(row)
            self.got[target].append(row)

    def table(self, account: int) -> list[int]:
        """Returns all features of an account."""
        return [self.value(feature, account) for feature in self.program.features]

    def lowered(self, account: int, deletions: int) -> list[int]:
        """Returns a lower bound of each feature after so many deletions and any rows that may be appended."""
        return [self.bounds(feature, account, deletions, True, False)[0] for feature in self.program.features]

    # Values.

    def value(self, expression: Expression, account: int) -> int:
        """Returns an expression of an account."""
        key = (expression, account)
        if key not in self.kept:
            self.kept[key] = self._value(expression, account)
        return int(self.kept[key])

    def _value(self, expression: Expression, account: int) -> int:
        name = expression[0]
        if name == "attribute":
            return _read(self.attributes[expression[1]], self.features[account])
        if name == "known":
            return int(account in self.known)
        if name in _GATHERED:
            way = expression[1]
            rows = self._rows(account, way)
            counted = [self.of_row(expression[2], row, way) for row in rows]
            return self._gathered(expression, rows, counted, way)
        return _apply(expression, [self.value(part, account) for part in expression[1:] if isinstance(part, tuple)])

    def of_row(self, expression: Expression, row: Row, way: str) -> int:
        """Returns an expression of a row, seen by the account that gets it or by the one that sends it."""
        name = expression[0]
        if name == "column":
            return row.values[expression[1]]
        if name == "far":
            return self.value(expression[1], row.source if way == "in" else row.target)
        if name == "when":
            return self.of_row(expression[2], row, way) if expression[1] == way else 0
        if name == "judge":
            read = [self.of_row(each, row, way) for each in self.program.judged]
            return min(sum(_leaf(self.judge, root, read) for root in self.judge.roots), LIMIT)
        return _apply(expression, [self.of_row(part, row, way) for part in expression[1:] if isinstance(part, tuple)])

    def _rows(self, account: int, way: str) -> list[Row]:
        return (self.got if way == "in" else self.sent).get(account, [])

    def _gathered(self, expression: Expression, rows: list[Row], counted: list[int], way: str) -> int:
        name = expression[0]
        if name == "sum":
            return min(sum(counted), LIMIT)
        if name == "max":
            return max(counted, default=0)
        if name == "partners":
            return min(sum(self._by_partner(rows, counted, way, largest=True).values()), LIMIT)
        times = sorted(row.values[self.program.time] for row, one in zip(rows, counted, strict=True) if one >= 1)
        window = min(expression[3], LIMIT)
        return max((sum(first <= time <= first + window for time in times) for first in times), default=0)

    def _by_partner(self, rows: list[Row], counted: list[int], way: str, largest: bool) -> dict[int, int]:
        found: dict[int, int] = {}
        for row, number in zip(rows, counted, strict=True):
            partner = row.source if way == "in" else row.target
            old = found.get(partner, 0)
            found[partner] = max(old, number) if largest else min(old + number, LIMIT)
        return found

    # Bounds after deletions.

    def bounds(self, expression: Expression, account: int, m: int, is_target: bool, frozen: bool) -> Interval:
        """Returns between which numbers an expression of an account lies after m deletions and any appended rows."""
        key = (expression, account, m, is_target, frozen)
        if key not in self.kept:
            self.kept[key] = self._bounds(expression, account, m, is_target, frozen)
        found: Interval = self.kept[key]
        return found

    def _bounds(self, expression: Expression, account: int, m: int, is_target: bool, frozen: bool) -> Interval:
        name = expression[0]
        if name in ("attribute", "known"):
            value = self.value(expression, account)
            return value, value
        if name in _GATHERED:
            high = self.value(expression, account) if frozen and not is_target else LIMIT
            return self._least(expression, account, m, is_target, frozen), high
        inner = [self.bounds(part, account, m, is_target, frozen) for part in expression[1:] if isinstance(part, tuple)]
        return _between(expression, inner)

    def _least(self, expression: Expression, account: int, m: int, is_target: bool, frozen: bool) -> int:
        name, way = expression[0], expression[1]
        rows = self._rows(account, way)
        settled = frozen or (is_target and self.threat == "ledger" and way == "in")
        counted = [self.of_row(expression[2], row, way) for row in rows]
        lowest = [self.row_bounds(expression[2], row, way, m, settled)[0] for row in rows]
        lowest = [min(low, number) for low, number in zip(lowest, counted, strict=True)]
        if name == "burst":
            counted, lowest = [int(x >= 1) for x in counted], [int(x >= 1) for x in lowest]
        take_largest = name in ("max", "partners")
        here = self._by_partner(rows, counted, way, take_largest)
        least = self._by_partner(rows, lowest, way, take_largest)
        is_local = not self._looks_further(expression[2])
        if name == "max":
            sure = _nth(list(least.values()), m)
            return max(sure, _nth(list(here.values()), 2 * m)) if is_local else sure
        base = here if is_local else least
        start = sum(base.values())
        if name == "burst":
            start = self._gathered(expression, rows, counted if is_local else lowest, way)
        lost = sum(sorted(base.values(), reverse=True)[:m])
        if is_local:
            lost += sum(sorted((here[u] - least[u] for u in here), reverse=True)[:m])
        return min(max(start - lost, 0), LIMIT)

    def row_bounds(self, expression: Expression, row: Row, way: str, m: int, settled: bool) -> Interval:
        """Returns between which numbers an expression of a row lies that is still there."""
        name = expression[0]
        if name == "column":
            value = row.values[expression[1]]
            growth = self.program.growth(expression[1])
            if settled or self.threat == "fresh" or growth == "fixed":
                return value, value
            return (0 if growth == "moves" else value), LIMIT
        if name == "far":
            partner = row.source if way == "in" else row.target
            frozen = settled and _is_own_writing(expression[1])
            return self.bounds(expression[1], partner, m, False, frozen)
        if name == "when":
            return self.row_bounds(expression[2], row, way, m, settled) if expression[1] == way else (0, 0)
        if name == "judge":
            read = [self.row_bounds(each, row, way, m, settled) for each in self.program.judged]
            return min(sum(_least_leaf(self.judge, root, read) for root in self.judge.roots), LIMIT), LIMIT
        inner = [self.row_bounds(part, row, way, m, settled) for part in expression[1:] if isinstance(part, tuple)]
        return _between(expression, inner)

    @cache  # noqa: B019 - lives as long as one check
    def _looks_further(self, expression: Expression) -> bool:
        """Whether a row counts at its far end what that account gathers from far ends of its own."""
        if expression[0] == "judge":
            return any(self._looks_further(each) for each in self.program.judged)
        if expression[0] == "far" and _gathers_what_others_gather(expression[1]):
            return True
        return any(self._looks_further(part) for part in expression[1:] if isinstance(part, tuple))


def _gathers_what_others_gather(expression: Expression) -> bool:
    if expression[0] == "far" and _gathers(expression[1]):
        return True
    return any(_gathers_what_others_gather(part) for part in expression[1:] if isinstance(part, tuple))


def _gathers(expression: Expression) -> bool:
    return expression[0] in _GATHERED or any(_gathers(part) for part in expression[1:] if isinstance(part, tuple))


def _is_own_writing(expression: Expression) -> bool:
    if expression[0] == "far" or (expression[0] in _GATHERED and expression[1] == "in"):
        return False
    return all(_is_own_writing(part) for part in expression[1:] if isinstance(part, tuple))


def _nth(values: list[int], number: int) -> int:
    ordered = sorted(values, reverse=True)
    return ordered[number] if number < len(ordered) else 0


def _read(source: Source, values: Sequence[float]) -> int:
    number = 1.0 if source.place < 0 else float(values[source.place])
    return _whole(source, number)


@lru_cache(maxsize=2**20)
def _whole(source: Source, number: float) -> int:
    """Returns a number of the graph as a whole number, in decimal arithmetic."""
    if source.decode and abs(number) > 60:
        return LIMIT if number * source.sign > 0 else 0
    if not source.decode:
        scaled = round(max(-float(LIMIT), min(float(LIMIT), number * source.sign * source.unit)))
        return max(0, min(LIMIT, scaled + source.shift))
    with localcontext() as context:
        context.prec = 45
        grown = Decimal(number).exp()
        plain = grown if source.decode == "exp" else (grown - Decimal(-number).exp()) / 2
        rounded = int((plain * source.sign * Decimal(source.unit)).to_integral_value())
    return max(0, min(LIMIT, rounded + source.shift))


def _apply(expression: Expression, values: list[int]) -> int:
    """Returns an operation of whole numbers from 0 to ``LIMIT``."""
    limits = [part for part in expression[1:] if isinstance(part, int)]
    return int(_RULES[expression[0]](values, limits))


def _multiple(value: int, step: int, slack: int) -> bool:
    over = value % step
    return value > slack and (over <= slack or step - over <= slack)


def _times(values: list[int]) -> int:
    product = 1
    for value in values:
        product = min(product * value, LIMIT)
    return product


_RULES: dict[str, Callable[[list[int], list[int]], int]] = {
    "number": lambda _, limits: limits[0],
    "at_least": lambda values, limits: values[0] >= limits[0],
    "below": lambda values, limits: values[0] < limits[0],
    "between": lambda values, limits: limits[0] <= values[0] < limits[1],
    "multiple": lambda values, limits: _multiple(values[0], limits[0], limits[1]),
    "above": lambda values, limits: max(0, values[0] - limits[0]),
    "cap": lambda values, limits: min(values[0], limits[0]),
    "quotient": lambda values, _: values[0] // max(1, values[1]),
    "add": lambda values, _: min(sum(values), LIMIT),
    "times": lambda values, _: _times(values),
    "least": lambda values, _: min(values),
    "most": lambda values, _: max(values),
}


def _between(expression: Expression, inner: list[Interval]) -> Interval:
    """Returns between which numbers the result of an operation lies."""
    name = expression[0]
    limits = [part for part in expression[1:] if isinstance(part, int)]
    if name == "below":
        return int(inner[0][1] < limits[0]), int(inner[0][0] < limits[0])
    if name == "between":
        low, high = inner[0]
        return int(low >= limits[0] and high < limits[1]), int(high >= limits[0] and low < limits[1])
    if name == "multiple":
        low, high = inner[0]
        return (0, 1) if low != high else (_apply(expression, [low]),) * 2
    if name == "quotient":
        (low, high), (least, most) = inner
        return _apply(expression, [low, most]), _apply(expression, [high, least])
    return _apply(expression, [low for low, _ in inner]), _apply(expression, [high for _, high in inner])


class _Plain(NamedTuple):
    """Trees as lists of Python numbers."""

    roots: list[int]
    column: list[int]
    threshold: list[int]
    left: list[int]
    right: list[int]
    worth: list[int]


def _plain(trees: TreeTables) -> _Plain:
    parts = (trees.column, trees.threshold, trees.left, trees.right, trees.worth)
    return _Plain(trees.start[:-1].tolist(), *(part.tolist() for part in parts))


def _leaf(trees: _Plain, node: int, read: list[int]) -> int:
    while trees.column[node] >= 0:
        goes_left = read[trees.column[node]] <= trees.threshold[node]
        node = trees.left[node] if goes_left else trees.right[node]
    return trees.worth[node]


def _least_leaf(trees: _Plain, node: int, read: list[Interval]) -> int:
    """Returns the least worth of a leaf that numbers between these bounds can lead to."""
    if trees.column[node] < 0:
        return trees.worth[node]
    column, threshold = trees.column[node], trees.threshold[node]
    low, high = read[column]
    ways = []
    if low <= threshold:
        ways.append(_least_within(trees, trees.left[node], read, (low, min(high, threshold)), column))
    if high > threshold:
        ways.append(_least_within(trees, trees.right[node], read, (max(low, threshold + 1), high), column))
    return min(ways)


def _least_within(trees: _Plain, node: int, read: list[Interval], bounds: Interval, column: int) -> int:
    """Returns the same below a node that only numbers between these bounds of a column can reach."""
    before, read[column] = read[column], bounds
    least = _least_leaf(trees, node, read)
    read[column] = before
    return least
