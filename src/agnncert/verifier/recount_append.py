"""Derives again what append-only scores prove, for the verifier.

This module shares no code with ``append.polarity``, ``append.trees`` and ``append.evidence``. It asks of every
expression in which directions appended rows can move it, walks trees along their branches, and compares leaves by the
limits on their paths.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.append.program import Expression, Program
from agnncert.append.record import AppendRecord
from agnncert.append.tables import TreeTables

UP, DOWN = "up", "down"
Moves = frozenset[str]
_STILL: Moves = frozenset()
_UP: Moves = frozenset({UP})
_ANY: Moves = frozenset({UP, DOWN})


def refusals(record: AppendRecord) -> Iterator[str]:
    """Yields why appended rows could lower a score; nothing if the program and its trees prove that they cannot."""
    reader = _Mover(record.program, record.threat)
    of_features = [reader.of_account(feature, is_target=True) for feature in record.program.features]
    of_rows = [reader.of_judged(expression) for expression in record.program.judged]
    for what, found in (("feature", of_features), ("column of the judge", of_rows)):
        for number, moves in enumerate(found):
            if DOWN in moves:
                yield f"{what} {number} of the program can fall when rows are appended"
    if any(DOWN in moves for moves in (*of_features, *of_rows)):
        return
    for what, trees, of_columns in (("score", record.trees, of_features), ("judge", record.judge, of_rows)):
        number = _wrong_leaves(trees, [bool(moves) for moves in of_columns])
        if number:
            yield f"{number:,} pairs of leaves of the {what} are in the wrong order"
    if any(worth < 0 for worth in record.judge.worth.tolist()):
        yield "a leaf of the judge is worth less than 0, so that a row could lower a sum"


def scores(record: AppendRecord) -> list[npt.NDArray[np.int64]]:
    """Returns the score of each target without deletions, and bounds after 1, 2, … deletions."""
    tables = [record.features, *record.lowered]
    return [_added_up(record.trees, table) for table in tables]


class _Mover:
    """Says in which directions appended rows can move an expression."""

    def __init__(self, program: Program, threat: str) -> None:
        self.program = program
        self.threat = threat
        self.of_column: dict[str, Moves] = {}
        for column in program.columns:
            moves = {"fixed": _STILL, "rises": _UP, "moves": _ANY}[column.growth]
            self.of_column[column.name] = _STILL if threat == "fresh" else moves

    def of_judged(self, expression: Expression) -> Moves:
        """Returns how what the judge reads can move, of rows that are seen either way."""
        return self.of_row(expression, "in", True) | self.of_row(expression, "out", True)

    def of_account(self, expression: Expression, is_target: bool) -> Moves:
        """Returns how a value of an account can move."""
        name = expression[0]
        if name in ("attribute", "known", "number"):
            return _STILL
        if name in ("sum", "max", "partners", "burst"):
            counted = self.of_row(expression[2], expression[1], is_target)
            moves = _UP | (counted & {DOWN})  # rows come, and those that are there may count less
            if name == "burst" and not self._is_settled(expression[1], is_target):
                moves |= _ANY if self.of_column[self.program.time] else _STILL
            return moves
        return self._by_operation(expression, lambda part: self.of_account(part, is_target))

    def of_row(self, expression: Expression, way: str, of_target: bool) -> Moves:
        """Returns how a value of an old row can move."""
        name = expression[0]
        settled = self._is_settled(way, of_target)
        if name == "number":
            return _STILL
        if name == "column":
            return _STILL if settled else self.of_column[expression[1]]
        if name == "far":
            written_by_himself = settled and _reads_only_what_is_sent(expression[1])
            return _STILL if written_by_himself else self.of_account(expression[1], is_target=False)
        if name == "when":
            return self.of_row(expression[2], way, of_target) if expression[1] == way else _STILL
        if name == "judge":
            moves = [self.of_row(each, way, of_target) for each in self.program.judged]
            return frozenset().union(*moves)
        return self._by_operation(expression, lambda part: self.of_row(part, way, of_target))

    def _is_settled(self, way: str, of_target: bool) -> bool:
        return self.threat == "ledger" and of_target and way == "in"

    def _by_operation(self, expression: Expression, of_part: Any) -> Moves:
        name = expression[0]
        moves = [of_part(part) for part in expression[1:] if isinstance(part, tuple)]
        if name == "below":
            return _turned(moves[0])
        if name == "quotient":
            return frozenset(moves[0] | _turned(moves[1]))
        if name in ("between", "multiple"):
            return _ANY if moves[0] else _STILL
        return frozenset().union(*moves)


def _turned(moves: Moves) -> Moves:
    return frozenset({UP: DOWN, DOWN: UP}[each] for each in moves)


def _reads_only_what_is_sent(expression: Expression) -> bool:
    """Whether a value is written by an account itself: attributes, and rows that it sent."""
    name = expression[0]
    if name == "far" or (name in ("sum", "max", "partners", "burst") and expression[1] == "in"):
        return False
    return all(_reads_only_what_is_sent(part) for part in expression[1:] if isinstance(part, tuple))


class _Path(NamedTuple):
    """A leaf: above which and up to which number the values of columns lead to it, and what it is worth."""

    above: dict[int, int]
    up_to: dict[int, int]
    worth: int


def _wrong_leaves(trees: TreeTables, rises: list[bool]) -> int:
    """Returns how many pairs of leaves say that a row is worth less than one below it."""
    number = 0
    for root in trees.start[:-1].tolist():
        paths = [path for path in _paths(trees, root, {}, {}) if _exists(path)]
        paths.sort(key=lambda path: path.worth)
        for place, larger in enumerate(paths):
            for smaller in paths[:place]:
                if larger.worth > smaller.worth and _may_lie_below(larger, smaller, rises):
                    number += 1
    return number


def _paths(trees: TreeTables, node: int, above: dict[int, int], up_to: dict[int, int]) -> Iterator[_Path]:
    column = int(trees.column[node])
    if column < 0:
        yield _Path(above, up_to, int(trees.worth[node]))
        return
    limit = int(trees.threshold[node])
    least = min(limit, up_to.get(column, limit))
    yield from _paths(trees, int(trees.left[node]), above, {**up_to, column: least})
    most = max(limit, above.get(column, limit))
    yield from _paths(trees, int(trees.right[node]), {**above, column: most}, up_to)


def _exists(path: _Path) -> bool:
    return all(low < path.up_to[column] for column, low in path.above.items() if column in path.up_to)


def _may_lie_below(first: _Path, second: _Path, rises: list[bool]) -> bool:
    """Whether a row of one leaf is at most a row of another, and equal to it where columns are fixed."""
    for column, low in first.above.items():
        if column in second.up_to and low >= second.up_to[column]:
            return False
    for column, low in second.above.items():
        if not rises[column] and column in first.up_to and low >= first.up_to[column]:
            return False
    return True


def _added_up(trees: TreeTables, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the score of each row: each tree hands its rows down its branches."""
    score = np.zeros(len(table), dtype=np.int64)
    for root in trees.start[:-1].tolist():
        waiting = [(root, np.arange(len(table)))]
        while waiting:
            node, rows = waiting.pop()
            if not len(rows):
                continue
            column = int(trees.column[node])
            if column < 0:
                score[rows] += trees.worth[node]
                continue
            is_larger = table[rows, column] > trees.threshold[node]
            waiting.append((int(trees.right[node]), rows[is_larger]))
            waiting.append((int(trees.left[node]), rows[~is_larger]))
    return score
