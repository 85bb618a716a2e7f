"""``EventSummary``: how the events between two nodes, such as payments, become the values of one edge.

Values are kept as totals, to which one more event can be added. Totals are whole numbers of a unit that is frozen with
the summary, such as one cent, so adding them up is exact: the same events give the same totals to the last bit, in
whatever order and parts they are added. The values of an edge depend on the events of its own pair alone.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.datasets.encoding_columns import MICROSECONDS_OF_DAY, Column, moment_of, number_of
from agnncert.errors import DatasetError, did_you_mean

WAYS = ("count", "sum", "mean", "last", "max", "min")
SECONDS_OF_DAY = 86_400.0
HOUR = "hour"
WEEKDAY = "weekday"
# Features of the time of an event, as if they were columns. A column of the table with such a name comes first.
CLOCK = {
    HOUR: ("sine of the hour", "cosine of the hour"),
    WEEKDAY: ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
_TERM = re.compile(r"(?P<way>[a-z]+)\((?P<inside>.+)\)")
_LOG = re.compile(r"log\((?P<inside>.+)\)")
_NO_TIME = 'name their column with event_time="…" (--set column.event_time=…).'
_THURSDAY = 3  # 1970-01-01, counted from Monday
Numbers = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

STEPS = 2.0**24  # in which logarithms, dates, marks and the clock are counted: a step is 6e-8
LARGEST = 2**53  # units that one event may have; a float holds all whole numbers below
LARGEST_SUM = 2**62  # units
_LARGEST_SEEN = 2.0**40  # units that the largest number of the training part becomes, or fewer
_MOST_DECIMALS = 12


@dataclass(frozen=True)
class Quantity:
    """What is read of each event: the features of a column, or their logarithms.

    Attributes:
        column: A column of the table, ``"hour"`` or ``"weekday"``.
        is_log: Whether logarithms are taken.
    """

    column: str
    is_log: bool = False

    def __str__(self) -> str:
        return f"log({self.column})" if self.is_log else self.column


@dataclass(frozen=True)
class Term:
    """One value of an edge, or several if its column has several features.

    Attributes:
        way: One of ``WAYS``.
        quantity: What is combined. None for the number of events.
        is_log: Whether the logarithm of the result is taken.

    Example:
        >>> Term.parse("log(sum(amount))")
        Term(way='sum', quantity=Quantity(column='amount', is_log=False), is_log=True)
        >>> str(Term.parse("mean( log(amount) )"))
        'mean(log(amount))'
    """

    way: str
    quantity: Quantity | None = None
    is_log: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the term that a text describes.

        Raises:
            DatasetError: It describes none.
        """
        whole = text.strip()
        outer = _LOG.fullmatch(whole)
        inside = outer["inside"].strip() if outer else whole
        if inside == "count":
            return cls("count", None, outer is not None)
        term = _TERM.fullmatch(inside)
        if term is None or term["way"] not in WAYS[1:]:
            hint = did_you_mean(term["way"] if term else inside, WAYS)
            raise DatasetError(
                f'the value "{text}" of an edge cannot be read: expected count, or sum, mean, last, max or min of a '
                f"column, as in mean(amount), with log(…) inside or around it. {hint}"
            )
        logged = _LOG.fullmatch(term["inside"].strip())
        name = (logged["inside"] if logged else term["inside"]).strip()
        return cls(term["way"], Quantity(name, logged is not None), outer is not None)

    def of_column(self, name: str) -> "Term":
        """Returns the same term of another column, or of one feature of its column."""
        assert self.quantity is not None
        return replace(self, quantity=replace(self.quantity, column=name))

    def __str__(self) -> str:
        plain = "count" if self.quantity is None else f"{self.way}({self.quantity})"
        return f"log({plain})" if self.is_log else plain


@dataclass(frozen=True)
class _Total:
    """One part of the totals of a pair: which columns it has, and what they are."""

    way: str  # "count", "time" (of the last event), "sum", "last", "max" or "min"
    quantity: Quantity | None
    place: slice


@dataclass(frozen=True)
class Events:
    """Events as whole numbers.

    Attributes:
        quantities: What is read of each event, by quantity, in its unit, shape ``[m, width]``.
        time: Time of each, shape ``[m]``: microseconds since 1970, or numbers in an order that is that of the column.
            Zeros if events have no time.
    """

    quantities: Mapping[Quantity, Whole]
    time: Whole

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class PartTotals:
    """Totals of some of the groups.

    Attributes:
        groups: The groups, in order.
        totals: The totals of each, shape ``[num_groups, num_totals]``.
    """

    groups: Whole
    totals: Whole


@dataclass(frozen=True)
class EventSummary:
    """How events become values of edges. It is a part of an ``Encoding``, so it is frozen with it.

    Attributes:
        values: The values of an edge, each as text, such as ``"log(sum(amount))"``. The logarithm is that of 1 + x, and
            for negative numbers minus that of 1 - x.
        time: The column of the time of an event, or None.
        has_dates: Whether that column holds dates. Else it holds numbers.
        directed: Whether the two directions of a pair have values of their own.
        columns: How columns of an event become numbers.
        decimals: Decimals to which numbers of each of these columns are added up, found in the training part.
        key: The column with a key of its own for each event, or None. Events that repeat a key count once.
    """

    values: tuple[str, ...]
    time: str | None
    has_dates: bool
    directed: bool
    columns: tuple[Column, ...]
    decimals: tuple[int, ...]
    key: str | None = None

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The values of an edge."""
        return tuple(Term.parse(text) for text in self.values)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that an event needs, beside its two nodes."""
        names = [column.name for column in self.columns]
        return [*names, *(name for name in (self.time, self.key) if name is not None)]

    @property
    def names(self) -> list[str]:
        """Names of the values of one direction, in order."""
        names = []
        for term in self.terms:
            if term.quantity is None:
                names.append(str(term))
            else:
                names += [str(term.of_column(feature)) for feature in self.features(term.quantity)]
        return names

    def features(self, quantity: Quantity) -> list[str]:
        """Returns the names of the features that a quantity consists of."""
        for column in self.columns:
            if column.name == quantity.column:
                return column.features
        return list(CLOCK[quantity.column])

    def units(self, quantity: Quantity) -> float:
        """Returns how many units a 1 is."""
        for column, decimals in zip(self.columns, self.decimals, strict=True):
            if column.name == quantity.column and column.kind == "number" and not quantity.is_log:
                return float(10.0**decimals)
        return STEPS

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """What is read of each event, each once."""
        return tuple(dict.fromkeys(term.quantity for term in self.terms if term.quantity is not None))

    @cached_property
    def _totals(self) -> tuple[_Total, ...]:
        wanted: dict[tuple[str, Quantity | None], int] = {("count", None): 1}
        for term in self.terms:
            if term.quantity is None:
                continue
            if term.way == "last":
                wanted["time", None] = 1
            way = "sum" if term.way == "mean" else term.way
            wanted[way, term.quantity] = len(self.features(term.quantity))
        totals = []
        first = 0
        for (way, quantity), width in wanted.items():
            totals.append(_Total(way, quantity, slice(first, first + width)))
            first += width
        return tuple(totals)

    @cached_property
    def width(self) -> int:
        """Number of values of one direction."""
        return len(self.names)

    @property
    def num_totals(self) -> int:
        """Number of totals of one direction."""
        return int(self._totals[-1].place.stop)

    def of_columns(
        self, features: Mapping[str, Numbers], time: Whole, row: Callable[[int], str] | None = None
    ) -> Events:
        """Returns events as numbers.

        Args:
            features: The features of each column, see ``Column.encode_exactly``.
            time: The time of each event, see ``order_of_times``; zeros if events have none.
            row: Says which row of a table an event is, for messages.

        Raises:
            DatasetError: A number is too large.
        """
        quantities = {}
        for quantity in self.quantities:
            if quantity.column in features:
                numbers = features[quantity.column]
            else:
                numbers = clock_features(time, quantity.column)
            quantities[quantity] = self._in_units(quantity, numbers, row)
        return Events(quantities, time)

    def read_entries(self, entries: Mapping[str, str | float | None]) -> Events:
        """Returns one event as ``read`` returns a row, from its entries by the names of columns.

        Raises:
            DatasetError: An entry makes no sense.
        """
        features = {column.name: column.encode_entry(entries[column.name]) for column in self.columns}
        time = 0 if self.time is None else self._moment(entries[self.time])
        return self.of_columns(features, np.array([time]))

    def _moment(self, entry: str | float | None) -> int:
        """Returns the time of one event."""
        if self.has_dates:
            moment = moment_of("" if entry is None else entry)
        else:
            number = math.nan if entry is None else number_of(entry, "number")
            moment = int(order_of_times(np.array([number]), False)[0]) if math.isfinite(number) else None
        if moment is None:
            raise DatasetError(f"{self.other_time()} It says {entry!r:.60}.")
        return moment

    def other_time(self) -> str:
        """Returns the message that times are of another kind than in training."""
        wanted = "dates, as in 2027-12-31T23:59:59" if self.has_dates else "numbers"
        return f'column "{self.time}" held {wanted} in training, and holds something else here.'

    def _in_units(self, quantity: Quantity, numbers: Numbers, row: Callable[[int], str] | None) -> Whole:
        """Returns numbers in whole units.

        Raises:
            DatasetError: One is too large.
        """
        if quantity.is_log:
            numbers = signed_log(numbers)
        units = np.rint(numbers * self.units(quantity))
        is_large = np.abs(units) >= LARGEST
        if is_large.any():
            place = int(np.flatnonzero(is_large.any(axis=1))[0])
            where = "" if row is None else f" in {row(place)}"
            raise DatasetError(
                f'column "{quantity.column}" says {numbers[place].max():.6g}{where}, far beyond all that training saw: '
                f"events are added up exactly, and one has at most {LARGEST / self.units(quantity):.3g}."
            )
        return np.asarray(units.astype(np.int64))

    def part_totals(self, events: Events, groups: Whole) -> PartTotals:
        """Returns the totals of the groups that events belong to.

        Args:
            events: The events.
            groups: Group of each.

        Raises:
            DatasetError: A sum is too large.
        """
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        totals = np.empty((len(starts), self.num_totals), dtype=np.int64)
        for total in self._totals:
            place = totals[:, total.place]
            if total.way == "count":
                place[:, 0] = np.diff(starts, append=len(order))
            elif total.way == "time":
                place[:, 0] = np.maximum.reduceat(events.time[order], starts)
            elif total.way == "last":
                assert total.quantity is not None
                rows = events.quantities[total.quantity]
                in_time = np.lexsort((*rows.T[::-1], events.time, groups))
                place[:] = rows[in_time[np.append(starts[1:], len(order)) - 1]]
            elif total.way == "sum":
                assert total.quantity is not None
                place[:] = _sums(total, events.quantities[total.quantity][order], starts)
            else:
                assert total.quantity is not None
                place[:] = _COMBINED[total.way].reduceat(events.quantities[total.quantity][order], starts, axis=0)
        return PartTotals(groups[order[starts]], totals)

    def with_event(self, totals: Whole, event: Events) -> Whole:
        """Returns the totals of one direction with one more event.

        Raises:
            DatasetError: A sum is too large.
        """
        alone = np.empty((1, self.num_totals), dtype=np.int64)
        for total in self._totals:
            place = alone[:, total.place]
            if total.way == "count":
                place[:] = 1
            elif total.way == "time":
                place[:] = event.time
            else:
                assert total.quantity is not None
                place[:] = event.quantities[total.quantity]
        return np.asarray(self.merged(totals[None], alone)[0])

    def merged(self, first: Whole, second: Whole) -> Whole:
        """Returns the totals of all events of two parts, whatever their order, shape ``[n, num_totals]``.

        Raises:
            DatasetError: A sum is too large.
        """
        merged = np.empty_like(first)
        is_later = self._is_later(first, second)
        for total in self._totals:
            one = first[:, total.place]
            other = second[:, total.place]
            if total.way in ("count", "sum"):
                merged[:, total.place] = self._summed(total, one, other)
            elif total.way == "last":
                is_larger = is_later > 0
                is_larger |= (is_later == 0) & _is_larger_row(other, one)
                merged[:, total.place] = np.where(is_larger[:, None], other, one)
            elif total.way == "time":
                merged[:, total.place] = np.maximum(one, other)
            else:
                merged[:, total.place] = _COMBINED[total.way](one, other)
        merged = np.where(first[:, :1] == 0, second, merged)
        return np.asarray(np.where(second[:, :1] == 0, first, merged))

    def _is_later(self, first: Whole, second: Whole) -> Whole:
        """Returns 1 where the last event of the second part is later, 0 where both are at one time, -1 else."""
        for total in self._totals:
            if total.way == "time":
                one = first[:, total.place][:, 0]
                other = second[:, total.place][:, 0]
                later = (other > one).astype(np.int64)
                return np.asarray(later - (other < one))
        return np.zeros(len(first), dtype=np.int64)

    def _summed(self, total: _Total, one: Whole, other: Whole) -> Whole:
        summed = one + other
        if (np.abs(summed) >= LARGEST_SUM).any():
            raise _too_large(total)
        return summed

    def edge_values(self, totals: Whole) -> npt.NDArray[np.float32]:
        """Returns the values that totals stand for, shape ``[…, width]``; zeros where there is no event."""
        count = totals[..., :1]
        place_of = {(total.way, total.quantity): total.place for total in self._totals}
        columns = []
        for term in self.terms:
            if term.quantity is None:
                value = count.astype(np.float64)
            else:
                way = "sum" if term.way == "mean" else term.way
                value = totals[..., place_of[way, term.quantity]] / self.units(term.quantity)
                if term.way == "mean":
                    value = value / np.maximum(count, 1)
            columns.append(signed_log(value) if term.is_log else value)
        return np.concatenate(columns, axis=-1).astype(np.float32)

    def digests(self, events: Events, ends: Whole) -> Whole:
        """Returns a number for each event that depends on all that is read of it.

        Args:
            events: The events.
            ends: Keys of the two nodes of each, shape ``[2, m]``.
        """
        columns = [ends[0], ends[1], events.time]
        columns += [column for rows in events.quantities.values() for column in rows.T]
        mixed = np.zeros(len(events), dtype=np.uint64)
        for column in columns:
            mixed = _mixed(mixed + column.view(np.uint64))
        return mixed.view(np.int64)

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as JSON values. The columns stand beside it, see ``Encoding``."""
        return {
            "values": list(self.values),
            "time": self.time,
            "has_dates": self.has_dates,
            "directed": self.directed,
            "decimals": list(self.decimals),
            "key": self.key,
        }

    @classmethod
    def from_json(cls, stated: Any, columns: tuple[Column, ...]) -> Self:
        """Returns the summary that ``to_json`` wrote.

        Raises:
            ValueError: It makes no sense.
        """
        values = stated["values"]
        time = stated["time"]
        key = stated["key"]
        decimals = stated["decimals"]
        are_texts = isinstance(values, list) and values and all(isinstance(text, str) for text in values)
        are_truths = type(stated["directed"]) is bool and type(stated["has_dates"]) is bool
        are_names = all(name is None or isinstance(name, str) for name in (time, key))
        are_decimals = isinstance(decimals, list) and len(decimals) == len(columns)
        if not are_texts or not are_truths or not are_names or not are_decimals:
            raise ValueError("what it says about events makes no sense")
        if not all(type(number) is int and abs(number) <= 300 for number in decimals):
            raise ValueError("its decimals make no sense")
        summary = cls(tuple(values), time, stated["has_dates"], stated["directed"], columns, tuple(decimals), key)
        summary.require_columns()
        return summary

    def require_columns(self) -> None:
        """Raises DatasetError if a value names a column that is not encoded, or needs a time that is not there."""
        known = [column.name for column in self.columns]
        for term in self.terms:
            if term.way == "last" and self.time is None:
                raise DatasetError(f'"{term}" needs to know which event is the last one: {_NO_TIME}')
            if term.quantity is None:
                continue
            name = term.quantity.column
            if name in known:
                continue
            if name not in CLOCK:
                hint = did_you_mean(name, [*known, *CLOCK])
                raise DatasetError(f'"{term}" names a column that events do not have: {hint}')
            if self.time is None:
                raise DatasetError(f'"{term}" needs the time of events: {_NO_TIME}')
            if not self.has_dates:
                raise DatasetError(
                    f'"{term}" is that of a date, and column "{self.time}" holds numbers: write times as '
                    "2027-12-31T23:59:59, or leave it out of the values."
                )


_COMBINED = {"max": np.maximum, "min": np.minimum}


def _sums(total: _Total, quantities: Whole, starts: Whole) -> Whole:
    """Returns the sum of each group, whose first row is in ``starts``, or raises DatasetError if one is too large."""
    longest = int(np.diff(starts, append=len(quantities)).max(initial=0))
    if float(np.abs(quantities).max(initial=0)) * longest >= LARGEST_SUM:  # else no sum can be
        sizes = np.add.reduceat(np.abs(quantities).astype(np.float64), starts, axis=0)
        if (sizes >= LARGEST_SUM).any():
            raise _too_large(total)
    return np.asarray(np.add.reduceat(quantities, starts, axis=0))


def _too_large(total: _Total) -> DatasetError:
    return DatasetError(f'the sum of "{total.quantity}" between two nodes is too large to be added up exactly.')


def _is_larger_row(rows: Whole, others: Whole) -> Mask:
    """Returns which rows are larger than others, by the first column in which they differ."""
    is_larger = np.zeros(len(rows), dtype=bool)
    is_equal = np.ones(len(rows), dtype=bool)
    for column, other in zip(rows.T, others.T, strict=True):
        is_larger |= is_equal & (column > other)
        is_equal &= column == other
    return is_larger


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns numbers of which every bit depends on every bit (the last step of splitmix64)."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def order_of_times(times: Numbers, are_dates: bool) -> Whole:
    """Returns times as whole numbers in the same order.

    Args:
        times: Days since 1970, or numbers.
        are_dates: Whether they are days. These become microseconds.
    """
    if are_dates:
        return np.rint(times * MICROSECONDS_OF_DAY).astype(np.int64)
    bits = (times + 0.0).view(np.int64)  # + 0.0: minus zero is zero
    return np.asarray(np.where(bits < 0, np.int64(-(2**63)) - bits, bits))


def times_in_order(order: Whole, are_dates: bool) -> Numbers:
    """Returns the times that ``order_of_times`` made whole numbers of.

    Example:
        >>> times_in_order(order_of_times(np.array([-2.5, 0.0, 7.25]), False), False)
        array([-2.5 ,  0.  ,  7.25])
    """
    if are_dates:
        return order / MICROSECONDS_OF_DAY
    return np.where(order < 0, np.int64(-(2**63)) - order, order).view(np.float64)


def decimals_of(numbers: Numbers) -> int:
    """Returns to how many decimals numbers are added up: all that they have, as far as sums have room for them.

    Example:
        >>> decimals_of(np.array([12.5, 9.99])), decimals_of(np.array([3.0, 1e15])), decimals_of(np.array([]))
        (2, -3, 0)
    """
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0:
        return 0
    room = math.floor(math.log10(_LARGEST_SEEN / largest))
    for decimals in range(min(room, _MOST_DECIMALS)):
        scaled = numbers * 10.0**decimals
        if np.allclose(scaled, np.rint(scaled), rtol=1e-12, atol=1e-6):
            return decimals
    return room


def signed_log(numbers: Numbers) -> Numbers:
    """Returns log(1 + x), and -log(1 - x) of negative numbers."""
    return np.asarray(np.sign(numbers) * np.log1p(np.abs(numbers)))


def clock_features(time: Whole, name: str) -> Numbers:
    """Returns the hour of each event as a point on a circle, or its day of the week as seven marks.

    Args:
        time: Microseconds since 1970, in UTC.
        name: ``"hour"`` or ``"weekday"``.
    """
    day, rest = np.divmod(time, MICROSECONDS_OF_DAY)
    if name == WEEKDAY:
        return np.asarray(np.eye(7)[(day + _THURSDAY) % 7])
    angle = 2 * np.pi * (rest / MICROSECONDS_OF_DAY)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def usual_values(columns: Sequence[Column], has_dates: bool) -> tuple[str, ...]:
    """Returns the values of edges if none are stated: number, amounts on a logarithmic scale, categories, clock."""
    values = ["log(count)"]
    for column in columns:
        if column.kind == "category":
            values.append(f"mean({column.name})")
        else:
            values += [f"mean(log({column.name}))", f"log(sum({column.name}))"]
    if has_dates:
        values += [f"mean({HOUR})", f"mean({WEEKDAY})"]
    return tuple(values)


def moment_number(setting: str, moment: str, are_dates: bool) -> float:
    """Returns a moment as days since 1970 or, for times that are numbers, as a number.

    Raises:
        DatasetError: It is neither a date nor a number, or not what the column holds.
    """
    if not are_dates:
        with suppress(ValueError):
            return float(moment)
        raise DatasetError(f'{setting}="{moment}": the times are numbers, so compare them with one.')
    try:
        date = datetime.fromisoformat(str(moment))
    except ValueError:
        raise DatasetError(f'{setting}="{moment}": expected a date, as in 2027-12-31 or 2027-12-31T12:00:00.') from None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return date.timestamp() / SECONDS_OF_DAY
