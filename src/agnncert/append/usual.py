"""``usual_program``: features for tables of edges, payments, ratings and events, with limits from the training graph.

It writes down many features. The types then throw out what a threat forbids.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from agnncert.append.ledger import whole_numbers
from agnncert.append.polarity import NotMonotone, row_type, sorted_by_types
from agnncert.append.program import LIMIT, Expression, Program, Source, Threat
from agnncert.errors import DatasetError

Floats = npt.NDArray[np.float64]
ONE: Expression = ("number", 1)
DEGREES = (2, 3, 5, 10, 30, 100)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
FEW_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
WINDOWS = (0.02, 0.1, 0.5)  # shares of the time that 90 % of the rows span, in percent
MOST_ATTRIBUTES = 40
MOST_AMOUNTS = 2  # columns of amounts that are counted together with other columns
TIMES = ("time", "timestamp", "date", "moment")
COUNTS = ("count", "transactions", "n_transactions", "payments", "events")


@dataclass
class Table:
    """What the usual program is written from: the edges and accounts of a training graph.

    Attributes:
        ends: Source and target of each edge.
        values: Values of edges, one column each; without columns if there are none.
        names: Names of these columns.
        x: Features of accounts.
        scales: For some columns by name, of which function the graph holds the inverse: "sinh" or "exp".
        rises: Names of columns that can only rise when more is paid between the same accounts.
        repeated: How the values of rows of one pair were joined: "sum", "max", "mean" or "min"; empty if unknown.
        x_names: Names of the features of accounts.
    """

    ends: npt.NDArray[np.int64]
    values: Floats
    names: Sequence[str]
    x: Floats
    scales: Mapping[str, str] = field(default_factory=dict)
    rises: Sequence[str] = ()
    repeated: str = ""
    x_names: Sequence[str] = ()


@dataclass(frozen=True)
class _Column:
    """A column of rows, or of accounts.

    Attributes:
        source: How it is read.
        role: "amount", "count", "mark" (0 or 1), "time", or "other" for amounts that are only counted by themselves.
        cuts: Whole numbers between which values of the training graph lie.
    """

    source: Source
    role: str
    cuts: tuple[int, ...]

    @property
    def name(self) -> str:
        """What expressions call it."""
        return self.source.name

    @property
    def read(self) -> Expression:
        """The column as an expression of rows."""
        return ("column", self.source.name)


def usual_program(table: Table, threat: Threat) -> Program:
    """Returns the features that a threat leaves, for a graph like this one.

    Raises:
        DatasetError: It cannot be told who sends a row.
    """
    names, is_back, present = _directions(table)
    require_senders(table, threat)
    is_row = table.ends[0] != table.ends[1]
    if present >= 0:
        is_row &= table.values[:, present] > 0
    ends, values = table.ends[:, is_row], table.values[is_row]
    has_parallel = len(np.unique(ends, axis=1).T) < ends.shape[1]
    reader = _Columns(table, values, has_parallel)
    columns = _few_amounts([each for k, name in enumerate(names) for each in reader.column(k, name)])
    attributes = list(_attributes(table))
    sources = tuple(_growing(column.source, table, has_parallel) for column in columns)
    columns = [replace(column, source=source) for column, source in zip(columns, sources, strict=True)]
    times = [column for column in columns if column.role == "time"]
    base = Program(
        columns=sources,
        features=(("sum", "in", ONE),),
        attributes=tuple(each.source for each in attributes),
        present=present,
        time=times[0].name if times else "",
    )
    ways = ("in",) if not is_back and _is_symmetric(ends) else ("in", "out")
    writer = _Writer(ways, columns, attributes, has_parallel, threat)
    wide = base.but(features=tuple(dict.fromkeys(writer.features())))
    kept = sorted_by_types(wide, threat).kept
    return wide.but(features=kept, judged=tuple(_judged(writer, wide, threat)))


def _directions(table: Table) -> tuple[list[str], bool, int]:
    """Returns the columns of one direction, whether edges also hold those of the other, and which one tells it."""
    own = [name for name in table.names if f"{name}, back" in table.names]
    is_back = bool(own) and len(own) * 2 == len(table.names)
    names = own if is_back else list(table.names)
    return names, is_back, _present(table, names) if is_back else -1


def require_senders(table: Table, threat: Threat) -> None:
    """Refuses a graph of which it cannot be told who sends a row, and the threat needs it.

    Raises:
        DatasetError: Says what to change.
    """
    _, is_back, present = _directions(table)
    if is_back and present < 0:
        raise DatasetError(
            f'edges hold the values of both directions, and "{table.names[0]}", the first column, is not positive '
            "exactly where there is a row: a row cannot be told from its opposite. Put a column of ones first, such as "
            "the number of rows."
        )
    if threat == "ledger" and not is_back and len(table.ends[0]) and _is_undirected(table.ends, table.values):
        raise DatasetError(
            'the edges have no direction, so nobody is the payer whom the threat "ledger" restrains: pass '
            'threat="fresh" (new pairs only) or threat="grow", or keep who sent a row (directed=True in load_tables).'
        )


def _few_amounts(columns: list[_Column]) -> list[_Column]:
    """Returns the columns, of which few are amounts: these are counted together with others, the rest one by one."""
    amounts = [column for column in columns if column.role == "amount"]
    chosen = [column for column in amounts if _is_total(column.name)] or amounts
    kept = {column.name for column in (amounts if len(amounts) <= MOST_AMOUNTS else chosen[:MOST_AMOUNTS])}
    return [
        replace(column, role="other", cuts=column.cuts[1::3])
        if column.role == "amount" and column.name not in kept
        else column
        for column in columns
    ]


def _is_total(name: str) -> bool:
    return bool(re.match(r"(log\()?(sum|max|count)\b", name)) or "amount" in name.lower()


def _judged(writer: "_Writer", program: Program, threat: Threat) -> Iterator[Expression]:
    """Yields what the judge of rows may read: what can only rise, or stays, seen from the ways that it is seen."""
    for expression in dict.fromkeys(writer.judged()):
        seen: list[Expression] = [expression]
        if threat == "ledger" and len(writer.ways) == 2:
            seen = [("when", way, expression) for way in writer.ways]
        for each in seen:
            try:
                types = {row_type(each, program, threat, way) for way in ("in", "out")} - {"="}
            except NotMonotone:
                continue
            if types <= {"+"}:
                yield each


class _Columns:
    """Describes columns of edges by the values that they have in the training graph."""

    def __init__(self, table: Table, values: Floats, has_parallel: bool) -> None:
        self.table = table
        self.values = values

    def column(self, place: int, name: str) -> Iterator[_Column]:
        """Yields a column; two of them, for positive and negative numbers, if there are both."""
        stored = self.values[:, place]
        if len(stored) == 0 or (stored == stored[0]).all():
            return
        decode = self.table.scales.get(name, "exp" if name.startswith("log(") else "")
        role = _role(name, stored)
        if role == "time":
            yield _time(name, place, stored)
            return
        signs = (1, -1) if (stored < 0).any() and not decode else (1,)
        for sign in signs:
            label = name if sign == 1 else f"{name} below 0"
            is_grown = name.startswith("log(")  # the logarithm of one more, so that nothing becomes 0
            unit = _unit(stored * sign, decode)
            source = Source(label, place, unit, decode, sign, shift=-int(unit) if is_grown else 0)
            whole = whole_numbers(stored, source)
            if (whole == whole[0]).all():
                continue
            yield _Column(source, "mark" if whole.max() <= 1 else role, _cuts(whole[whole > 0], SHARES))


def _role(name: str, stored: Floats) -> str:
    words = set(re.split(r"[^a-z_]+", name.lower()))
    if words & set(TIMES):
        return "time"
    if words & set(COUNTS):
        return "count"
    return "amount"


def _time(name: str, place: int, stored: Floats) -> _Column:
    """Returns a column of times, in parts of a hundred thousandth of the time that most rows span."""
    first, last = np.quantile(stored, [0.05, 0.95])
    unit = 100_000 / max(float(last - first), 1e-9)
    shift = int(np.clip(-np.floor(stored.min() * unit), -LIMIT, LIMIT)) + 1
    source = Source(name, place, unit, shift=shift)
    return _Column(source, "time", _cuts(whole_numbers(stored, source), SHARES))


def _unit(stored: Floats, decode: str) -> float:
    """Returns a power of ten in which most positive values are 10 or more, and whole numbers stay what they are."""
    positive = np.abs(stored[stored > 0])
    if len(positive) == 0:
        return 1.0
    if decode:
        positive = (np.sinh if decode == "sinh" else np.exp)(np.minimum(positive, 50))
        if np.abs(positive - np.rint(positive)).max() < 1e-3:
            return 1.0
    elif np.array_equal(positive, np.rint(positive)):
        return 1.0
    small, large = np.quantile(positive, [0.05, 0.999])
    unit = 1.0
    while small * unit < 10 and large * unit < LIMIT / 2**14 and unit < 1e6:
        unit *= 10
    return unit


def _cuts(whole: npt.NDArray[np.int64], shares: Sequence[float]) -> tuple[int, ...]:
    if len(whole) == 0:
        return ()
    return tuple(int(cut) for cut in np.unique(np.quantile(whole, shares).astype(np.int64)) if cut > 0)


def _growing(source: Source, table: Table, has_parallel: bool) -> Source:
    """Says what may become of a column in an old row: rows that may be repeated stay as they were written.

    Raises:
        DatasetError: A column is said to rise that was joined by its mean or its least value.
    """
    if has_parallel:
        return source
    said, falls = source.name in table.rises, table.repeated in ("mean", "min")
    if said and falls:
        raise DatasetError(
            f'rises names "{source.name}", and rows of a pair are joined by their {table.repeated}, which a further '
            'row can lower: leave it out, or join them by their sum (repeated="sum").'
        )
    is_named = source.name in {"amount", *COUNTS} or re.match(r"(log\()?(sum|max|count)\b", source.name)
    has_negative = source.decode != "exp" and bool((table.values[:, source.place] < 0).any())  # a sum may fall
    grows = said or (is_named and not falls and not has_negative)
    return replace(source, growth="rises" if grows and source.sign == 1 else "moves")


def _present(table: Table, names: Sequence[str]) -> int:
    """Returns a column that is positive in the direction of a row and 0 in the other; -1 if the first is none."""
    half = len(names)
    own, back = table.values[:, :half], table.values[:, half:]
    is_sign = (own[:, 0] >= 0).all() and ((own[:, 0] > 0) | (back[:, 0] > 0)).all()
    return 0 if is_sign and not own[own[:, 0] == 0].any() else -1


def _is_undirected(ends: npt.NDArray[np.int64], values: Floats) -> bool:
    """Tells whether each edge is there in both directions, with the same values."""
    if not _is_symmetric(ends):
        return False
    there = np.unique(np.column_stack([ends.T, values]), axis=0)
    return np.array_equal(there, np.unique(np.column_stack([ends[::-1].T, values]), axis=0))


def _is_symmetric(ends: npt.NDArray[np.int64]) -> bool:
    there = np.unique(ends, axis=1)
    return np.array_equal(there, np.unique(ends[::-1], axis=1))


def _attributes(table: Table) -> Iterator[_Column]:
    """Yields the features of accounts that differ, those that differ between most accounts first."""
    x = table.x
    spread = [len(np.unique(x[:, k][:5000])) for k in range(x.shape[1])]
    order = sorted(range(x.shape[1]), key=lambda k: -spread[k])
    for k in sorted(order[:MOST_ATTRIBUTES]):
        stored = x[:, k]
        if (stored == stored[0]).all():
            continue
        unit = 1.0 if np.array_equal(stored, np.rint(stored)) else 1e4
        lowest = float(np.clip(np.floor(stored.min() * unit), -LIMIT / 4, LIMIT / 4))
        name = table.x_names[k] if k < len(table.x_names) else f"feature {k}"
        source = Source(name, k, unit, shift=int(-lowest))
        yield _Column(source, "amount", _cuts(whole_numbers(stored, source), FEW_SHARES))


class _Writer:
    """Writes the features of a table, some of which a threat may forbid."""

    def __init__(
        self,
        ways: tuple[str, ...],
        columns: Sequence[_Column],
        attributes: Sequence[_Column],
        has_parallel: bool,
        threat: Threat,
    ) -> None:
        self.ways = ways
        self.columns = columns
        self.attributes = attributes
        self.threat = threat
        self.gathers = "partners" if has_parallel else "sum"
        self.has_parallel = has_parallel
        self.degree: dict[str, Expression] = {way: (self.gathers, way, ONE) for way in ways}

    def features(self) -> Iterator[Expression]:
        """Yields features of accounts."""
        for attribute in self.attributes:
            yield ("attribute", attribute.name)
        yield from self._sizes()
        for way in self.ways:
            for expression in self._of_rows(way):
                yield ("sum", way, expression)
                if self.has_parallel:
                    yield ("partners", way, expression)
            yield from self._totals(way)
            yield from self._bursts(way)
        yield from self._known()

    def judged(self) -> Iterator[Expression]:
        """Yields what a judge of rows may read."""
        yield ("when", "in", ONE)
        for column in self.columns:
            yield column.read
            if column.role == "amount":
                yield from self._rounds(column)
        yield from self._each()
        for value in self._far_values():
            yield ("far", value)

    def _sizes(self) -> Iterator[Expression]:
        for way in self.ways:
            yield ("sum", way, ONE)
            if self.has_parallel:
                yield self.degree[way]
        if len(self.ways) == 2:
            both = tuple(self.degree[way] for way in self.ways)
            yield ("add", *both)
            yield ("least", *both)

    def _of_rows(self, way: str) -> Iterator[Expression]:
        """Yields what is counted of rows that are seen one way."""
        amounts = [column for column in self.columns if column.role == "amount"]
        for column in self.columns:
            yield from self._of_column(column)
        yield from self._with_far(amounts)
        singles = self._singles()
        for single in singles:
            yield single
            for column in amounts:
                for cut in column.cuts[2::4]:
                    yield ("least", single, ("at_least", column.read, cut))
                for mark in self._rounds(column):
                    yield ("least", single, mark)
        if way == "in" and self.threat == "ledger":
            yield from self._about_payers(singles, amounts)

    def _of_column(self, column: _Column) -> Iterator[Expression]:
        read = column.read
        if column.role == "mark":
            yield read
            return
        for cut in column.cuts:
            yield ("at_least", read, cut)
        for low, high in zip((0, *column.cuts), (*column.cuts, LIMIT), strict=True):
            yield ("between", read, low, high)
        for cut in column.cuts[1::3]:
            yield ("below", read, cut)
        if column.role == "amount":
            yield from self._rounds(column)

    def _rounds(self, column: _Column) -> Iterator[Expression]:
        """Yields marks of round amounts."""
        unit = int(column.source.unit)
        for step in (100 * unit, unit, unit // 10, unit // 100):
            if step >= 10:
                yield ("multiple", column.read, step, 2 if step >= 1000 and unit > 1 else 0)

    def _singles(self) -> list[Expression]:
        """Returns marks of rows that stand for one event."""
        counts = [column for column in self.columns if column.role == "count"]
        return [("between", column.read, 0, 2) for column in counts]

    def _each(self) -> Iterator[Expression]:
        """Yields amounts per event."""
        for count in self.columns:
            for amount in self.columns:
                if count.role == "count" and amount.role == "amount":
                    yield ("quotient", amount.read, count.read)

    def _far_values(self) -> Iterator[Expression]:
        """Yields what is known of accounts at the other end."""
        yield from self.degree.values()
        for column in self.columns:
            if column.role in ("amount", "count"):
                for way in self.ways:
                    yield ("sum", way, column.read)
                    yield ("max", way, column.read)
        for attribute in self.attributes:
            yield ("attribute", attribute.name)

    def _with_far(self, amounts: Sequence[_Column]) -> Iterator[Expression]:
        for degree in self.degree.values():
            yield from (("at_least", ("far", degree), least) for least in DEGREES)
            for column in amounts:
                yield from self._amounts_and_degrees(column, degree)
        for column in amounts:
            for way in self.ways:
                total: Expression = ("far", ("sum", way, column.read))
                yield from (("at_least", total, min(10 * cut, LIMIT)) for cut in column.cuts[-3:])
        for attribute in self.attributes:
            far = ("far", ("attribute", attribute.name))
            for cut in attribute.cuts:
                yield ("at_least", far, cut)
                yield ("below", far, cut)

    def _amounts_and_degrees(self, column: _Column, degree: Expression) -> Iterator[Expression]:
        for cut in column.cuts[1::3]:
            for least in (2, 10):
                busy: Expression = ("at_least", ("far", degree), least)
                yield ("least", ("at_least", column.read, cut), busy)
                yield ("least", ("below", column.read, cut), busy)

    def _about_payers(self, singles: list[Expression], amounts: Sequence[_Column]) -> Iterator[Expression]:
        """Yields what a payer sent, which he alone writes: anything about it may be counted."""
        degree = self.degree.get("out")
        if degree is None:
            return
        limits: list[tuple[Expression, tuple[int, ...]]] = [(degree, (2, 3, 4, 6, 11, 31, 101))]
        for column in self.columns:
            if column.role in ("amount", "count"):
                cuts = column.cuts[2::3]
                limits.append((("sum", "out", column.read), tuple(5 * cut for cut in cuts)))
                limits.append((("max", "out", column.read), cuts))
        for value, cuts in limits:
            for k, cut in enumerate(cuts):
                small: Expression = ("below", ("far", value), min(cut, LIMIT))
                yield small
                if k % 2 == 0:
                    yield from (("least", small, single) for single in singles)
                    for column in amounts:
                        middle = column.cuts[len(column.cuts) // 2] if column.cuts else 1
                        yield ("least", small, ("at_least", column.read, middle))

    def _totals(self, way: str) -> Iterator[Expression]:
        for column in self.columns:
            if column.role != "time":
                yield ("sum", way, column.read)
                yield ("max", way, column.read)
        for degree in self.degree.values():
            yield ("max", way, ("far", degree))
            yield ("sum", way, ("far", degree))
        for column in self.columns:
            if column.role == "amount" and column.cuts:
                cut = column.cuts[len(column.cuts) // 2]
                large = ("at_least", column.read, cut)
                yield ("max", way, ("times", large, ("far", self.degree[self.ways[0]])))

    def _bursts(self, way: str) -> Iterator[Expression]:
        if not any(column.role == "time" for column in self.columns):
            return
        for share in WINDOWS:
            yield ("burst", way, ONE, round(share * 1000))
        for column in self.columns:
            if column.role == "amount" and column.cuts:
                large = ("at_least", column.read, column.cuts[len(column.cuts) // 2])
                yield ("burst", way, large, round(WINDOWS[1] * 1000))

    def _known(self) -> Iterator[Expression]:
        """Yields how near accounts are that were known to be positive when the model was trained."""
        known: Expression = ("far", ("known",))
        for way in self.ways:
            yield ("sum", way, known)
            for side in self.ways:
                near: Expression = ("far", ("sum", side, known))
                yield from (("sum", way, ("at_least", near, least)) for least in (1, 2, 5))
