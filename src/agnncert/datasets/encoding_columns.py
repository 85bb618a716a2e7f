"""``Column``: how one column of a table becomes features, fitted to the training part; and columns of dates."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import Table, shortlist
from agnncert.errors import DatasetError

KINDS = ("number", "category", "date")
MOST_CATEGORIES = 30  # of a column, the most frequent ones; a column with more that are all rare is refused
OTHER = "other"  # feature of a category that has not been seen
MISSING = "missing"  # feature of a missing entry
DAYS_OF_YEAR = 365.25
MICROSECONDS_OF_DAY = 86_400_000_000
Matrix = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes:
        name: The column.
        kind: ``"number"``: as it is. ``"category"``: one feature for each category, and one for all others.
            ``"date"``: years since the first day. ``"list"``: numbers of a list, as they are.
        gaps: Whether entries were missing in the training part: then a feature marks missing entries.
        fill: Number or date: the median of the training part, which stands in for missing entries.
        first: Date: the first day of the training part, in days since 1970.
        categories: The categories of the training part, at most 30, the most frequent ones.
    """

    name: str
    kind: str
    gaps: bool = False
    fill: float = 0.0
    first: float = 0.0
    categories: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: Table, name: str, kind: str | None, rows: npt.NDArray[np.int64]) -> Self:
        """Returns the column as the training rows show it.

        Args:
            table: The table.
            name: The column.
            kind: One of ``KINDS``. ``None`` finds it out.
            rows: The training rows.

        Raises:
            DatasetError: It is text, but no category.
        """
        values = table.frame[name].iloc[rows]
        if len(values) and isinstance(values.iloc[0], np.ndarray):
            return cls(name, "list")
        kind = kind or kind_of(values)
        if kind == "category":
            return cls.of_counts(table, name, Counter(texts_of(values)))
        return cls.of_numbers(name, kind, numbers_of(values, kind))

    @classmethod
    def of_numbers(cls, name: str, kind: str, numbers: Numbers) -> Self:
        """Returns a column of numbers or days as training rows show it; NaN where an entry is missing."""
        finite = numbers[np.isfinite(numbers)]
        gaps = bool(np.isnan(numbers).any())
        if not len(finite):
            return cls(name, kind, gaps)
        first = float(finite.min()) if kind == "date" else 0.0
        return cls(name, kind, gaps, float(np.median(finite)), first)

    @classmethod
    def of_counts(cls, table: Table, name: str, texts: Mapping[str, int]) -> Self:
        """Returns a column of categories, the most frequent ones.

        Args:
            table: What an error is about.
            name: The column.
            texts: How many training rows say what; missing entries are ``""``.

        Raises:
            DatasetError: It is text, but no category.
        """
        counts = {text: count for text, count in texts.items() if text}
        total = sum(counts.values())
        if len(counts) > max(MOST_CATEGORIES, total / 10):
            raise table.error(
                f'column "{name}" has {len(counts):,} different texts in {total:,} training rows: an id or free '
                f"text is no category. Leave it out with features=[...] (--set feature=NAME,NAME)."
            )
        by_frequency = sorted(counts, key=lambda text: (-counts[text], text))
        categories = tuple(sorted(by_frequency[:MOST_CATEGORIES]))
        return cls(name, "category", gaps=bool(texts.get("")), categories=categories)

    @property
    def features(self) -> list[str]:
        """Names of the features that it becomes."""
        if self.kind == "category":
            names = [f"{self.name}={word}" for word in (*self.categories, OTHER)]
        else:
            names = [self.name]
        if self.gaps:
            names.append(f"{self.name}={MISSING}")
        return names

    @property
    def titles(self) -> list[str]:
        """Names of the features for readers: that of a date says from which day its years count."""
        if self.kind != "date":
            return self.features
        day = date(1970, 1, 1) + timedelta(days=math.floor(self.first))
        return [f"{self.name} (years since {day})", *self.features[1:]]

    def encode(self, table: Table) -> Matrix:
        """Returns the features of every row.

        Raises:
            DatasetError: There is no such column, or an entry is no number, no date or infinite.
        """
        return self.encode_exactly(table).astype(np.float32)

    def encode_exactly(self, table: Table) -> Numbers:
        """Returns the features of every row as ``encode`` does, in double precision."""
        table.require(self.name)
        if self.kind == "list":
            return table.numbers([self.name], "feature").astype(np.float64)
        if self.kind == "category":
            return self.marks([self.place(text) for text in texts_of(table.frame[self.name])])
        return self._encode_numbers(table)

    def encode_entry(self, entry: str | float | None) -> Numbers:
        """Returns the features of one entry as ``encode_exactly`` does for a row, shape ``[1, width]``.

        Raises:
            DatasetError: It is no number, no date or infinite.
        """
        if self.kind == "category":
            return self.marks([self.place("" if entry is None else text_of(entry))])
        if self.kind == "list":
            raise DatasetError(f'column "{self.name}" holds lists, and one entry is none.')
        number = self.fill if entry is None else number_of(entry, self.kind)
        if not math.isfinite(number):
            raise DatasetError(f'column "{self.name}" says {entry!r:.60}: expected a finite {self.kind}.')
        return self._filled(np.array([number]), np.array([entry is None]))

    def place(self, text: str) -> int:
        """Returns the place of a category among the features. Missing ones without a place count as others."""
        other = len(self.categories)
        if not text:
            return other + 1 if self.gaps else other
        return self._places.get(text, other)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {category: k for k, category in enumerate(self.categories)}

    def marks(self, places: Sequence[int] | npt.NDArray[np.int64]) -> Numbers:
        """Returns a row for each category, with a 1 at its place."""
        width = len(self.categories) + (2 if self.gaps else 1)
        return np.asarray(np.eye(width)[np.asarray(places, dtype=np.int64)])

    def encode_numbers(self, numbers: Numbers) -> Numbers:
        """Returns the features of numbers or days, NaN where an entry is missing, as ``encode_exactly`` does."""
        is_empty = np.isnan(numbers)
        return self._filled(np.where(is_empty, self.fill, numbers), is_empty)

    def _encode_numbers(self, table: Table) -> Numbers:
        values = table.frame[self.name]
        numbers = numbers_of(values, self.kind)
        is_empty = values.isna().to_numpy()
        bad = np.flatnonzero(~np.isfinite(numbers) & ~is_empty)
        if len(bad):
            rows = [table.start + int(row) + 1 for row in bad]
            raise table.error(
                f'column "{self.name}" says "{values.iloc[bad[0]]!s:.60}" in {shortlist(rows, "row")}: expected a '
                f"finite {self.kind}. Correct it, or make the column a category (--set encode={self.name}=category)."
            )
        return self._filled(np.where(is_empty, self.fill, numbers), is_empty)

    def _filled(self, numbers: Numbers, is_empty: npt.NDArray[np.bool_]) -> Numbers:
        """Returns the features of numbers or days, in which nothing is missing any more."""
        if self.kind == "date":
            numbers = (numbers - self.first) / DAYS_OF_YEAR
        columns = [numbers, is_empty] if self.gaps else [numbers]
        return np.column_stack(columns).astype(np.float64)


def fit_columns(
    table: Table, names: Sequence[str], kinds: Mapping[str, str], rows: npt.NDArray[np.int64]
) -> tuple[Column, ...]:
    """Returns the columns as the training rows show them, or raises DatasetError with all problems of all columns."""
    columns = []
    errors = []
    for name in names:
        try:
            columns.append(Column.fit(table, name, kinds.get(name), rows))
        except DatasetError as error:
            errors.append(str(error))
    if errors:
        raise DatasetError("\n".join(errors))
    return tuple(columns)


def encoded(table: Table, columns: Sequence[Column]) -> Matrix:
    """Returns all features of a table, or raises DatasetError with all problems of all columns."""
    features = []
    errors = []
    for column in columns:
        try:
            features.append(column.encode(table))
        except DatasetError as error:
            errors.append(str(error))
    if errors:
        raise DatasetError("\n".join(errors))
    if not features:
        return np.zeros((len(table), 0), dtype=np.float32)
    return np.hstack(features)


@dataclass(frozen=True)
class Moments:
    """A column of dates or numbers.

    Attributes:
        numbers: Days since 1970, or the numbers as they are.
        are_dates: Whether it holds dates.
    """

    numbers: npt.NDArray[np.float64]
    are_dates: bool


def moments(table: Table, name: str) -> Moments:
    """Returns a column of dates or numbers, or raises DatasetError if an entry is neither."""
    table.require(name)
    values = table.frame[name]
    are_dates = kind_of(values) != "number"
    numbers = numbers_of(values, "date" if are_dates else "number")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        rows = shortlist([table.start + int(row) + 1 for row in bad], "row")
        raise table.error(
            f'column "{name}" is no date and no number in {rows} (the first says "{values.iloc[bad[0]]!s:.60}"): write '
            "it as 2027-12-31 or 2027-12-31T23:59:59, or use another column."
        )
    return Moments(numbers, are_dates)


def times(table: Table, name: str) -> npt.NDArray[np.float64]:
    """Returns a column of dates or numbers, for an order in time, or raises DatasetError if an entry is neither."""
    return moments(table, name).numbers


def kind_of(values: Any) -> str:
    """Returns what a column holds: numbers, dates (ISO 8601), or else categories."""
    if values.dtype.kind in "iufb":
        return "number"
    if values.dtype.kind == "M":
        return "date"
    entries = values.dropna()
    for kind in ("number", "date"):
        if np.isfinite(numbers_of(entries, kind)).all():
            return kind
    return "category"


def numbers_of(values: Any, kind: str) -> npt.NDArray[np.float64]:
    """Returns numbers, or days since 1970, or NaN where an entry is missing or neither."""
    import pandas as pd

    if kind == "number":
        return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64)
    if values.dtype.kind == "M":
        moments = pd.to_datetime(values, errors="coerce", utc=True)
    else:
        moments = pd.to_datetime(values.astype("string"), errors="coerce", utc=True, format="ISO8601")
    microseconds = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(microseconds=1)
    return np.asarray(microseconds, dtype=np.float64) / MICROSECONDS_OF_DAY


def number_of(entry: str | float, kind: str) -> float:
    """Returns one entry as a number, or as days since 1970; NaN if it is neither. A column gives the same."""
    if kind == "date":
        moment = moment_of(entry)
        return math.nan if moment is None else moment / MICROSECONDS_OF_DAY
    try:
        return math.nan if isinstance(entry, str) and "_" in entry else float(entry)
    except (ValueError, OverflowError):
        return math.nan


def moment_of(entry: str | float) -> int | None:
    """Returns a date (ISO 8601) in microseconds since 1970, in UTC unless it says otherwise; None if it is none."""
    import pandas as pd

    if not isinstance(entry, str):
        return None
    try:
        moment = datetime.fromisoformat(entry)
    except ValueError:  # pandas knows more ways to write a date
        days = numbers_of(pd.Series([entry]), "date")[0]
        return round(days * MICROSECONDS_OF_DAY) if math.isfinite(days) else None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def texts_of(values: Any) -> list[str]:
    """Returns entries as text, missing ones as ``""``, and whole numbers without a decimal point."""
    gaps = values.isna().tolist()
    return ["" if gap else text_of(value) for value, gap in zip(values.tolist(), gaps, strict=True)]


def text_of(value: object) -> str:
    """Returns an entry as a category: whole numbers without a decimal point, texts without blanks around them."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
