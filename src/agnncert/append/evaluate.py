"""Evaluates feature programs on a ledger: values, and bounds on values after deletions (Theorem 21).

Sums are sums of whole numbers, so that they do not depend on the order of rows. A sum of floats would: with numpy's
pairwise sums, a row more may make a sum smaller.
"""

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agnncert.append.ledger import Ledger, Rows, Whole
from agnncert.append.polarity import judged_types, only_sent
from agnncert.append.program import LIMIT, Expression, Program, Threat, inside, parts
from agnncert.append.trees import Trees

Mask = npt.NDArray[np.bool_]
_AGGREGATES = ("sum", "max", "partners", "burst")


class RowsSeen(NamedTuple):
    """Some rows, as the accounts see them whose value is computed.

    Attributes:
        way: Whether accounts get these rows or send them.
        rows: Their numbers in the ledger.
        owner: Place of the account that sees each row, among ``number`` accounts.
        number: Number of accounts.
    """

    way: str
    rows: Rows
    owner: Rows
    number: int


class Bounds(NamedTuple):
    """Bounds on a value: no value after the attack is below ``low``, or above ``high``."""

    low: Whole
    high: Whole


class Border(Protocol):
    """Accounts of a part of a ledger that lacks some of their rows: what is counted of them is known from elsewhere.

    Attributes:
        places: Their rows in the part.
    """

    places: Rows

    def value(self, expression: Expression) -> Whole:
        """Returns an expression of these accounts."""
        ...

    def bounds(self, expression: Expression, frozen: bool, deletions: int) -> Bounds:
        """Returns what :meth:`Lowered.of_all` says of these accounts."""
        ...


class Values:
    """Values of expressions on one ledger; each is computed once.

    Args:
        ledger: The rows.
        program: Says what the judge reads, and which column is the time.
        judge: The trees of the judge of rows; ``None`` if there is none.
        border: If the ledger is a part of a larger one, the accounts that lack rows; ``None`` if it is whole.
    """

    def __init__(
        self, ledger: Ledger, program: Program, judge: Trees | None = None, border: Border | None = None
    ) -> None:
        self.ledger = ledger
        self.program = program
        self.judge = judge
        self.border = border
        self._of_all: dict[Expression, Whole] = {}
        self._seen_by_all: dict[str, RowsSeen] = {}

    def table(self, accounts: Rows) -> Whole:
        """Returns all features of some accounts, shape ``[n, features]``."""
        seen = {way: self.seen_by(accounts, way) for way in ("in", "out")}
        kept: dict[tuple[str, Expression], Whole] = {}
        features = [self.near(each, accounts, seen, kept) for each in self.program.features]
        return np.stack(features, axis=1)

    def seen_by(self, accounts: Rows, way: str) -> RowsSeen:
        """Returns the rows of some accounts."""
        rows, owner = self.ledger.rows_of(accounts, way)
        return RowsSeen(way, rows, owner, len(accounts))

    def near(
        self,
        expression: Expression,
        accounts: Rows,
        seen: dict[str, RowsSeen],
        kept: dict[tuple[str, Expression], Whole],
    ) -> Whole:
        """Returns an expression for some accounts, reading only their own rows again."""
        key = ("", expression)
        if key in kept:
            return kept[key]
        if expression[0] in _AGGREGATES:
            rows = seen[expression[1]]
            value = self._aggregate(expression, rows, self._near_row(expression[2], rows, kept))
        elif expression[0] in ("attribute", "known"):
            value = self.of_all(expression)[accounts]
        else:
            inner = [self.near(part, accounts, seen, kept) for part in parts(expression)]
            value = operate(expression, inner, len(accounts))
        kept[key] = value
        return value

    def _near_row(self, expression: Expression, seen: RowsSeen, kept: dict[tuple[str, Expression], Whole]) -> Whole:
        key = (seen.way, expression)
        if key not in kept:
            kept[key] = self.of_rows(expression, seen, lambda part: self._near_row(part, seen, kept))
        return kept[key]

    def of_all(self, expression: Expression) -> Whole:
        """Returns an expression for all accounts."""
        if expression not in self._of_all:
            value = self._compute(expression)
            if self.border is not None and expression[0] in _AGGREGATES:
                value[self.border.places] = self.border.value(expression)
            self._of_all[expression] = value
        return self._of_all[expression]

    def counted_of_all(self) -> dict[Expression, Whole]:
        """Returns what has been counted of all accounts, since it is read at the far ends of rows, by expression."""
        return {each: value for each, value in self._of_all.items() if each[0] in _AGGREGATES}

    def _compute(self, expression: Expression) -> Whole:
        operation = expression[0]
        if operation == "attribute":
            return self.ledger.attributes[expression[1]]
        if operation == "known":
            return self.ledger.known
        if operation in _AGGREGATES:
            seen = self.all_rows(expression[1])
            return self._aggregate(expression, seen, self._row_of_all(expression[2], seen))
        inner = [self.of_all(part) for part in parts(expression)]
        return operate(expression, inner, self.ledger.num_accounts)

    def _row_of_all(self, expression: Expression, seen: RowsSeen) -> Whole:
        return self.of_rows(expression, seen, lambda part: self._row_of_all(part, seen))

    def all_rows(self, way: str) -> RowsSeen:
        """Returns all rows, seen by all accounts."""
        if way not in self._seen_by_all:
            rows = np.arange(self.ledger.num_rows)
            self._seen_by_all[way] = RowsSeen(way, rows, self.ledger.near(way), self.ledger.num_accounts)
        return self._seen_by_all[way]

    def of_rows(self, expression: Expression, seen: RowsSeen, inner: Callable[[Expression], Whole]) -> Whole:
        """Returns an expression of rows, given the values of the expressions inside it."""
        operation = expression[0]
        if operation == "column":
            return self.ledger.columns[expression[1]][seen.rows]
        if operation == "far":
            return np.asarray(self.of_all(expression[1])[self.ledger.far(seen.way)[seen.rows]])
        if operation == "when":
            return inner(expression[2]) if expression[1] == seen.way else np.zeros(len(seen.rows), dtype=np.int64)
        if operation == "judge":
            assert self.judge is not None
            return np.minimum(self.judge.score(self.judged(seen, inner)), LIMIT)
        return operate(expression, [inner(part) for part in parts(expression)], len(seen.rows))

    def judged(self, seen: RowsSeen, inner: Callable[[Expression], Whole] | None = None) -> Whole:
        """Returns the table that the judge reads of some rows, shape ``[r, judged]``."""
        kept: dict[tuple[str, Expression], Whole] = {}
        inner = inner or (lambda part: self._near_row(part, seen, kept))
        columns = [inner(each) for each in self.program.judged]
        return np.stack(columns, axis=1) if columns else np.zeros((len(seen.rows), 0), dtype=np.int64)

    def _aggregate(self, expression: Expression, seen: RowsSeen, counted: Whole) -> Whole:
        operation = expression[0]
        if operation == "sum":
            return total(counted, seen.owner, seen.number)
        if operation == "max":
            return largest(counted, seen.owner, seen.number)
        if operation == "partners":
            groups = partners_of(self.ledger, seen)
            return total(largest(counted, groups.of_row, len(groups.owner)), groups.owner, seen.number)
        times = self.ledger.columns[self.program.time][seen.rows]
        return bursts(counted, times, seen, int(expression[3]))


class Lowered:
    """Bounds on values after ``deletions`` pairs are deleted, and any rows appended that a threat allows.

    Under the threat "ledger", a deletion may also be a present payer of the target who is bought, and then sends, and
    changes what he sent, as the attacker likes.

    Args:
        values: Values on the ledger as it is.
        threat: What an attacker may append.
        deletions: How many pairs he may delete first.
    """

    def __init__(self, values: Values, threat: Threat, deletions: int) -> None:
        self.values = values
        self.ledger = values.ledger
        self.threat = threat
        self.deletions = deletions
        self._of_all: dict[tuple[Expression, bool], Bounds] = {}

    def table(self, accounts: Rows) -> Whole:
        """Returns a lower bound of every feature of some accounts, shape ``[n, features]``."""
        seen = {way: self.values.seen_by(accounts, way) for way in ("in", "out")}
        groups = {way: partners_of(self.ledger, rows) for way, rows in seen.items()}
        kept: dict[tuple[str, Expression], Whole] = {}
        bounds: dict[tuple[str, Expression], Bounds] = {}

        def of_rows(expression: Expression, rows: RowsSeen) -> Bounds:
            key = (rows.way, expression)
            if key not in bounds:
                settled = self.threat == "ledger" and rows.way == "in"
                inner = lambda part: of_rows(part, rows)  # noqa: E731
                bounds[key] = self._rows(expression, rows, settled, inner)
            return bounds[key]

        def of_accounts(expression: Expression) -> Bounds:
            if expression[0] in _AGGREGATES:
                rows = seen[expression[1]]
                counted = self.values._near_row(expression[2], rows, kept)
                low = self._aggregate(expression, rows, groups[rows.way], counted, of_rows(expression[2], rows).low)
                return Bounds(low, np.full(len(accounts), LIMIT, dtype=np.int64))
            if expression[0] in ("attribute", "known"):
                value = self.values.of_all(expression)[accounts]
                return Bounds(value, value)
            return between(expression, [of_accounts(part) for part in parts(expression)], len(accounts))

        return np.stack([of_accounts(each).low for each in self.values.program.features], axis=1)

    def of_all(self, expression: Expression, frozen: bool) -> Bounds:
        """Returns bounds for all accounts.

        Args:
            expression: The expression.
            frozen: Whether these are accounts that send nothing more, and the value follows from what they sent.
        """
        key = (expression, frozen)
        if key not in self._of_all:
            bounds = self._compute(expression, frozen)
            border = self.values.border
            if border is not None and expression[0] in _AGGREGATES:
                known = border.bounds(expression, frozen, self.deletions)
                bounds = Bounds(bounds.low.copy(), bounds.high.copy())
                bounds.low[border.places], bounds.high[border.places] = known
            self._of_all[key] = bounds
        return self._of_all[key]

    def bounds_of_all(self) -> dict[tuple[Expression, bool], Bounds]:
        """Returns the bounds of what is counted of all accounts, by expression and whether these send nothing more."""
        return {key: bounds for key, bounds in self._of_all.items() if key[0][0] in _AGGREGATES}

    def _compute(self, expression: Expression, frozen: bool) -> Bounds:
        if expression[0] in ("attribute", "known"):
            value = self.values.of_all(expression)
            return Bounds(value, value)
        if expression[0] in _AGGREGATES:
            seen = self.values.all_rows(expression[1])

            def of_rows(part: Expression) -> Bounds:
                return self._rows(part, seen, frozen, of_rows)

            value = self.values.of_all(expression)
            counted = self.values._row_of_all(expression[2], seen)
            groups = partners_of(self.ledger, seen)
            low = self._aggregate(expression, seen, groups, counted, of_rows(expression[2]).low)
            return Bounds(low, value if frozen else np.full_like(value, LIMIT))
        inner = [self.of_all(part, frozen) for part in parts(expression)]
        return between(expression, inner, self.ledger.num_accounts)

    def _rows(
        self, expression: Expression, seen: RowsSeen, settled: bool, inner: Callable[[Expression], Bounds]
    ) -> Bounds:
        """Returns bounds of an expression of rows that are still there.

        Args:
            expression: The expression.
            seen: The rows.
            settled: Whether their senders send nothing more.
            inner: Returns bounds of an expression inside it.
        """
        operation = expression[0]
        if operation == "column":
            value = self.ledger.columns[expression[1]][seen.rows]
            growth = self.values.program.growth(expression[1])
            if settled or self.threat == "fresh" or growth == "fixed":
                return Bounds(value, value)
            none = np.zeros_like(value)
            return Bounds(none if growth == "moves" else value, np.full_like(value, LIMIT))
        if operation == "far":
            frozen = settled and only_sent(expression[1])
            far = self.ledger.far(seen.way)[seen.rows]
            bounds = self.of_all(expression[1], frozen)
            return Bounds(bounds.low[far], bounds.high[far])
        if operation == "when":
            none = np.zeros(len(seen.rows), dtype=np.int64)
            return inner(expression[2]) if expression[1] == seen.way else Bounds(none, none)
        if operation == "judge":
            return self._judged(seen, inner)
        return between(expression, [inner(part) for part in parts(expression)], len(seen.rows))

    def _judged(self, seen: RowsSeen, inner: Callable[[Expression], Bounds]) -> Bounds:
        assert self.values.judge is not None
        columns = [inner(each) for each in self.values.program.judged]
        low = np.stack([column.low for column in columns], axis=1)
        high = np.stack([column.high for column in columns], axis=1)
        types = judged_types(self.values.program, self.threat)
        least = self.values.judge.least_score(low, high, [polarity == "+" for polarity in types])
        return Bounds(np.minimum(least, LIMIT), np.full(len(seen.rows), LIMIT, dtype=np.int64))

    def _aggregate(
        self, expression: Expression, seen: RowsSeen, groups: "Partners", counted: Whole, lowered: Whole
    ) -> Whole:
        """Returns a lower bound of an aggregate, from what its rows count and what they count at least."""
        operation = expression[0]
        is_local = changes_at_ends_only(expression[2], self.values.program)
        gather = total if operation in ("sum", "burst") else largest
        if operation == "burst":
            counted, lowered = (counted >= 1).astype(np.int64), (lowered >= 1).astype(np.int64)
        each = gather(counted, groups.of_row, len(groups.owner))
        least = gather(np.minimum(lowered, counted), groups.of_row, len(groups.owner))
        m = self.deletions
        if operation == "max":
            nth_least = nth_largest(least, groups.owner, seen.number, m)
            if not is_local:
                return nth_least
            return np.maximum(nth_largest(each, groups.owner, seen.number, 2 * m), nth_least)
        if operation == "burst":
            times = self.ledger.columns[self.values.program.time][seen.rows]
            window = int(expression[3])
            start = bursts(counted if is_local else lowered, times, seen, window)
            start_each = each if is_local else least
        else:
            start_each = each if is_local else least
            start = exact_total(start_each, groups.owner, seen.number)
        lost = sum_of_largest(start_each, groups.owner, seen.number, m)
        if is_local:
            lost = lost + sum_of_largest(each - least, groups.owner, seen.number, m)
        return np.asarray(np.clip(start - lost, 0, LIMIT))


def changes_at_ends_only(expression: Expression, program: Program) -> bool:
    """Whether a deleted pair changes what a row counts only if the pair has the far end of the row.

    Then one deletion changes the rows of two partners at most. It is so unless a far end counts its own far ends.
    """
    for part in inside(expression):
        if part[0] == "judge" and not all(changes_at_ends_only(each, program) for each in program.judged):
            return False
        if part[0] == "far" and any(each[0] == "far" and _gathers(each[1]) for each in inside(part[1])):
            return False
    return True


def reach_of(program: Program) -> int:
    """Returns over how many rows what happens between two accounts can matter to a feature of another one.

    Attributes matter over one row more.
    """
    return max(_reach(each, program) for each in program.features)


def _reach(expression: Expression, program: Program) -> int:
    inner = program.judged if expression[0] == "judge" else tuple(parts(expression))
    further = expression[0] == "far" and _gathers(expression[1])
    return int(further) + max((_reach(part, program) for part in inner), default=0)


def _gathers(expression: Expression) -> bool:
    return any(part[0] in _AGGREGATES for part in inside(expression))


class Partners(NamedTuple):
    """Rows joined by account and partner.

    Attributes:
        of_row: Number of the pair that each row belongs to.
        owner: The account of each pair.
    """

    of_row: Rows
    owner: Rows


def partners_of(ledger: Ledger, seen: RowsSeen) -> Partners:
    """Returns which rows are between the same two accounts."""
    far = ledger.far(seen.way)[seen.rows]
    keys, of_row = np.unique(seen.owner * ledger.num_accounts + far, return_inverse=True)
    return Partners(of_row.reshape(-1), keys // max(ledger.num_accounts, 1))


def operate(expression: Expression, inner: list[Whole], count: int) -> Whole:
    """Returns an operation that is the same for accounts and rows, of values from 0 to ``LIMIT``."""
    numbers = [part for part in expression[1:] if isinstance(part, int)]
    if expression[0] == "number":
        return np.full(count, numbers[0], dtype=np.int64)
    return _OPERATIONS[expression[0]](inner, numbers)


def _is_multiple(a: Whole, step: int, slack: int) -> Whole:
    rest = a % step
    return ((np.minimum(rest, step - rest) <= slack) & (a > slack)).astype(np.int64)


def product(left: Whole, right: Whole) -> Whole:
    """Returns the product of values, at most ``LIMIT``."""
    is_large = left > LIMIT // np.maximum(right, 1)
    return np.where(is_large, LIMIT, np.where(is_large, 0, left) * right)


_OPERATIONS: dict[str, Callable[[list[Whole], list[int]], Whole]] = {
    "at_least": lambda values, limits: (values[0] >= limits[0]).astype(np.int64),
    "below": lambda values, limits: (values[0] < limits[0]).astype(np.int64),
    "between": lambda values, limits: ((values[0] >= limits[0]) & (values[0] < limits[1])).astype(np.int64),
    "multiple": lambda values, limits: _is_multiple(values[0], limits[0], limits[1]),
    "above": lambda values, limits: np.maximum(values[0] - limits[0], 0),
    "cap": lambda values, limits: np.minimum(values[0], limits[0]),
    "quotient": lambda values, _: np.asarray(values[0] // np.maximum(values[1], 1)),
    "add": lambda values, _: reduce(lambda left, right: np.minimum(left + right, LIMIT), values),
    "times": lambda values, _: reduce(product, values),
    "least": lambda values, _: reduce(np.minimum, values),
    "most": lambda values, _: reduce(np.maximum, values),
}


def between(expression: Expression, inner: list[Bounds], count: int) -> Bounds:
    """Returns bounds of an operation from bounds of its parts."""
    operation = expression[0]
    lows, highs = [part.low for part in inner], [part.high for part in inner]
    numbers = [part for part in expression[1:] if isinstance(part, int)]
    if operation == "below":
        return Bounds(operate(expression, highs, count), operate(expression, lows, count))
    if operation == "quotient":
        low, high = (lows[0], highs[1]), (highs[0], lows[1])
        return Bounds(operate(expression, list(low), count), operate(expression, list(high), count))
    if operation == "between":
        surely = (lows[0] >= numbers[0]) & (highs[0] < numbers[1])
        perhaps = (highs[0] >= numbers[0]) & (lows[0] < numbers[1])
        return Bounds(surely.astype(np.int64), perhaps.astype(np.int64))
    if operation == "multiple":
        value = operate(expression, lows, count)
        stays = lows[0] == highs[0]
        return Bounds(np.where(stays, value, 0), np.where(stays, value, 1))
    return Bounds(operate(expression, lows, count), operate(expression, highs, count))


def exact_total(values: Whole, owner: Rows, count: int) -> Whole:
    """Returns the sum of the values of each owner; fewer than ``MOST_ROWS`` values fit into 64 bits."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, owner, values)
    return sums


def total(values: Whole, owner: Rows, count: int) -> Whole:
    """Returns the sum of the values of each owner, at most ``LIMIT``."""
    return np.minimum(exact_total(values, owner, count), LIMIT)


def largest(values: Whole, owner: Rows, count: int) -> Whole:
    """Returns the largest value of each owner, 0 without any."""
    found = np.zeros(count, dtype=np.int64)
    np.maximum.at(found, owner, values)
    return found


def bursts(counted: Whole, times: Whole, seen: RowsSeen, window: int) -> Whole:
    """Returns the most rows with ``counted`` from 1 on whose times differ by at most ``window``, for each owner."""
    kept = np.flatnonzero(counted >= 1)
    order = kept[np.lexsort((times[kept], seen.owner[kept]))]
    owner, time = seen.owner[order], times[order]
    key = owner * (2 * LIMIT + 2) + time
    last = np.searchsorted(key, key + min(window, LIMIT), side="right")
    return largest(last - np.arange(len(order)), owner, seen.number)


def _ranks(values: Whole, owner: Rows) -> tuple[Rows, Rows]:
    """Returns values in descending order within each owner, and the rank of each, from 0 on."""
    order = np.lexsort((-values, owner))
    sorted_owner = owner[order]
    first = np.searchsorted(sorted_owner, sorted_owner)
    return order, np.arange(len(order)) - first


def sum_of_largest(values: Whole, owner: Rows, count: int, number: int) -> Whole:
    """Returns the sum of the largest values of each owner, so many of them."""
    order, rank = _ranks(values, owner)
    top = order[rank < number]
    return exact_total(values[top], owner[top], count)


def nth_largest(values: Whole, owner: Rows, count: int, number: int) -> Whole:
    """Returns the value of each owner that so many others are before, 0 if there are not as many."""
    order, rank = _ranks(values, owner)
    found = np.zeros(count, dtype=np.int64)
    at = order[rank == number]
    found[owner[at]] = values[at]
    return found
