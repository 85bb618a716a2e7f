"""``EventSummary``: how the events between two nodes, such as payments, become the values of one edge.

Values are kept as totals, to which one more event can be added: a live graph that adds events one by one has the values
that a table with all of them gives. The values of an edge depend on the events of its own pair alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import Table
from agnncert.datasets.encoding_columns import Column, encoded, moments
from agnncert.errors import DatasetError, did_you_mean

WAYS = ("count", "sum", "mean", "last", "max", "min")
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
Groups = npt.NDArray[np.int64]


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
    """Events as numbers.

    Attributes:
        quantities: What is read of each event, by quantity, shape ``[m, width]``.
        time: Time of each, in the unit of the column, shape ``[m]``. Zeros if events have no time.
    """

    quantities: Mapping[Quantity, Numbers]
    time: Numbers


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
    """

    values: tuple[str, ...]
    time: str | None
    has_dates: bool
    directed: bool
    columns: tuple[Column, ...]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The values of an edge."""
        return tuple(Term.parse(text) for text in self.values)

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

    @property
    def width(self) -> int:
        """Number of values of one direction."""
        return len(self.names)

    @property
    def num_totals(self) -> int:
        """Number of totals of one direction."""
        return int(self._totals[-1].place.stop)

    def read(self, table: Table) -> Events:
        """Returns the rows of a table of events as numbers.

        Raises:
            DatasetError: A column is missing, or an entry makes no sense.
        """
        matrix = encoded(table, self.columns)
        time = self._times(table)
        quantities = {}
        for quantity in self.quantities:
            numbers = self._numbers(time, quantity.column, matrix)
            quantities[quantity] = signed_log(numbers) if quantity.is_log else numbers
        return Events(quantities, time)

    def _times(self, table: Table) -> Numbers:
        if self.time is None:
            return np.zeros(len(table))
        read = moments(table, self.time)
        if read.are_dates != self.has_dates and len(table):
            wanted = "dates, as in 2027-12-31T23:59:59" if self.has_dates else "numbers"
            raise table.error(f'column "{self.time}" held {wanted} in training, and holds something else here.')
        return read.numbers

    def _numbers(self, time: Numbers, name: str, matrix: npt.NDArray[np.float32]) -> Numbers:
        first = 0
        for column in self.columns:
            if column.name == name:
                return matrix[:, first : first + len(column.features)].astype(np.float64)
            first += len(column.features)
        return clock_features(time, name)

    def totals(self, events: Events, groups: Groups, num_groups: int) -> Numbers:
        """Returns the totals of each group of events, shape ``[num_groups, num_totals]``.

        Args:
            events: The events, in the order of time. They are added up in this order.
            groups: Group of each event.
            num_groups: Number of groups.
        """
        totals = np.zeros((num_groups, self.num_totals))
        last = np.full(num_groups, -1)
        last[groups] = np.arange(len(groups))  # of repeated places, the last one stays
        has_events = last >= 0
        for total in self._totals:
            place = totals[:, total.place]
            if total.way == "count":
                place[:, 0] = np.bincount(groups, minlength=num_groups)
            elif total.way == "time":
                place[has_events, 0] = events.time[last[has_events]]
            else:
                assert total.quantity is not None
                place[:] = _combined(total.way, events.quantities[total.quantity], groups, last)
        return totals

    def added(self, totals: Numbers, event: Events) -> Numbers:
        """Returns the totals of one direction with one more event."""
        new = totals.copy()
        is_first = totals[0] == 0
        is_last = is_first or all(
            event.time[0] >= totals[total.place][0] for total in self._totals if total.way == "time"
        )
        for total in self._totals:
            old = totals[total.place]
            if total.way == "count":
                new[total.place] = old + 1
            elif total.way == "time":
                new[total.place] = event.time[0] if is_last else old
            else:
                assert total.quantity is not None
                number = event.quantities[total.quantity][0]
                if total.way == "sum":
                    new[total.place] = old + number
                elif total.way == "last":
                    new[total.place] = number if is_last else old
                elif is_first:
                    new[total.place] = number
                else:
                    new[total.place] = np.maximum(old, number) if total.way == "max" else np.minimum(old, number)
        return new

    def edge_values(self, totals: Numbers) -> npt.NDArray[np.float32]:
        """Returns the values that totals stand for, shape ``[…, width]``; zeros where there is no event."""
        count = totals[..., :1]
        place_of = {(total.way, total.quantity): total.place for total in self._totals}
        columns = []
        for term in self.terms:
            if term.quantity is None:
                value = count
            elif term.way == "mean":
                value = totals[..., place_of["sum", term.quantity]] / np.maximum(count, 1)
            else:
                value = totals[..., place_of[term.way, term.quantity]]
            columns.append(signed_log(value) if term.is_log else value)
        return np.concatenate(columns, axis=-1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as JSON values. The columns stand beside it, see ``Encoding``."""
        return {"values": list(self.values), "time": self.time, "has_dates": self.has_dates, "directed": self.directed}

    @classmethod
    def from_json(cls, stated: Any, columns: tuple[Column, ...]) -> Self:
        """Returns the summary that ``to_json`` wrote.

        Raises:
            ValueError: It makes no sense.
        """
        values = stated["values"]
        time = stated["time"]
        are_texts = isinstance(values, list) and values and all(isinstance(text, str) for text in values)
        are_truths = type(stated["directed"]) is bool and type(stated["has_dates"]) is bool
        if not are_texts or not are_truths or not (time is None or isinstance(time, str)):
            raise ValueError("what it says about events makes no sense")
        summary = cls(tuple(values), time, stated["has_dates"], stated["directed"], columns)
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


def _combined(way: str, numbers: Numbers, groups: Groups, last: Groups) -> Numbers:
    """Returns the sum, largest, smallest or last number of each group, zeros where there is none."""
    num_groups = len(last)
    has_events = last >= 0
    result = np.zeros((num_groups, numbers.shape[1]))
    if way == "last":
        result[has_events] = numbers[last[has_events]]
        return result
    if way == "sum":
        for k in range(numbers.shape[1]):  # one after the other, as events that come one by one are added
            result[:, k] = np.bincount(groups, weights=numbers[:, k], minlength=num_groups)
        return result
    ufunc = np.maximum if way == "max" else np.minimum
    result[has_events] = -np.inf if way == "max" else np.inf
    ufunc.at(result, groups, numbers)
    return result


def signed_log(numbers: Numbers) -> Numbers:
    """Returns log(1 + x), and -log(1 - x) of negative numbers."""
    return np.asarray(np.sign(numbers) * np.log1p(np.abs(numbers)))


def clock_features(days: Numbers, name: str) -> Numbers:
    """Returns the hour of each event as a point on a circle, or its day of the week as seven marks.

    Args:
        days: Days since 1970, in UTC.
        name: ``"hour"`` or ``"weekday"``.
    """
    day = np.floor(days)
    if name == WEEKDAY:
        return np.asarray(np.eye(7)[((day + _THURSDAY) % 7).astype(int)])
    angle = 2 * np.pi * (days - day)
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
