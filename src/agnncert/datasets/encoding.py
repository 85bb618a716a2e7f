"""``Encoding``: columns of a table as features, by numbers that are fitted on the training part and then frozen.

Each row is encoded by itself. If categories, medians or first days were taken from all rows, one changed node could
change the features of all others, which no certificate covers. An encoding is stored in the run folder, its digest is
part of the claim, and ``load_tables(…, encode=data.encoding)`` reads another table in the same way.
"""

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import Table, shortlist
from agnncert.errors import DatasetError, did_you_mean
from agnncert.storage import parse_json

FORMAT = "agnncert-encoding-1"
KINDS = ("number", "category", "date")
MOST_CATEGORIES = 30  # of a column, the most frequent ones; a column with more that are all rare is refused
OTHER = "other"  # feature of a category that has not been seen
MISSING = "missing"  # feature of a missing entry
DAYS_OF_YEAR = 365.25
SECONDS_OF_DAY = 86_400.0
Matrix = npt.NDArray[np.float32]


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
        kind = kind or _kind(values)
        if kind == "category":
            return cls._of_texts(table, name, _texts(values))
        numbers = _numbers(values, kind)
        finite = numbers[np.isfinite(numbers)]
        gaps = bool(np.isnan(numbers).any())
        if not len(finite):
            return cls(name, kind, gaps)
        first = float(finite.min()) if kind == "date" else 0.0
        return cls(name, kind, gaps, float(np.median(finite)), first)

    @classmethod
    def _of_texts(cls, table: Table, name: str, texts: list[str]) -> Self:
        """Returns a column of categories, the most frequent ones."""
        entries = [text for text in texts if text]
        counts = Counter(entries)
        if len(counts) > max(MOST_CATEGORIES, len(entries) / 10):
            raise table.error(
                f'column "{name}" has {len(counts):,} different texts in {len(entries):,} training rows: an id or free '
                f"text is no category. Leave it out with features=[...] (--set feature=NAME,NAME)."
            )
        by_frequency = sorted(counts, key=lambda text: (-counts[text], text))
        categories = tuple(sorted(by_frequency[:MOST_CATEGORIES]))
        return cls(name, "category", gaps=len(entries) < len(texts), categories=categories)

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

    def encode(self, table: Table) -> Matrix:
        """Returns the features of every row.

        Raises:
            DatasetError: There is no such column, or an entry is no number, no date or infinite.
        """
        table.require(self.name)
        if self.kind == "list":
            return table.numbers([self.name], "feature")
        if self.kind == "category":
            return self._encode_categories(table)
        return self._encode_numbers(table)

    def _encode_categories(self, table: Table) -> Matrix:
        """Returns one-hot rows. Without a feature for missing entries, these count as other categories."""
        number_of = {category: k for k, category in enumerate(self.categories)}
        other = len(self.categories)
        missing = other + 1 if self.gaps else other
        columns = [number_of.get(text, other if text else missing) for text in _texts(table.frame[self.name])]
        return np.asarray(np.eye(missing + 1, dtype=np.float32)[np.array(columns, int)])

    def _encode_numbers(self, table: Table) -> Matrix:
        values = table.frame[self.name]
        numbers = _numbers(values, self.kind)
        is_empty = values.isna().to_numpy()
        bad = np.flatnonzero(~np.isfinite(numbers) & ~is_empty)
        if len(bad):
            rows = [table.start + int(row) + 1 for row in bad]
            raise table.error(
                f'column "{self.name}" says "{values.iloc[bad[0]]!s:.60}" in {shortlist(rows, "row")}: expected a '
                f"finite {self.kind}. Correct it, or make the column a category (--set encode={self.name}=category)."
            )
        filled = np.where(is_empty, self.fill, numbers)
        if self.kind == "date":
            filled = (filled - self.first) / DAYS_OF_YEAR
        columns = [filled, is_empty] if self.gaps else [filled]
        return np.column_stack(columns).astype(np.float32)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table of nodes, and of a table of edges, become features.

    Attributes:
        nodes: The columns of the table of nodes, in the order of the features.
        edges: Those of the table of edges, in the order of ``edge_attr``.
    """

    nodes: tuple[Column, ...]
    edges: tuple[Column, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of the features of a node."""
        return [name for column in self.nodes for name in column.features]

    @property
    def digest(self) -> str:
        """sha256 of everything in it, which is part of the claim of a certificate."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Returns the encoding as text, which ``from_json`` reads."""
        content = {"format": FORMAT, "nodes": _plain(self.nodes), "edges": _plain(self.edges)}
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Returns the encoding that ``to_json`` wrote, or raises DatasetError if the text is none."""
        try:
            stored = parse_json(text)
            if stored.pop("format") != FORMAT or set(stored) != {"nodes", "edges"}:
                raise ValueError("it is of another format")
            nodes = tuple(_column(column) for column in stored["nodes"])
            edges = tuple(_column(column) for column in stored["edges"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DatasetError(f"this is no encoding of a table: {error}.") from error
        return cls(nodes, edges)


def encoding_of(data: object) -> Encoding | None:
    """Returns the encoding of some data, or None without one. It is text in data that was read from disk."""
    encoding: Encoding | str | None = getattr(data, "encoding", None)
    return Encoding.from_json(encoding) if isinstance(encoding, str) else encoding


Encode = str | Mapping[str, str] | Encoding | os.PathLike[str] | None


def encoding_named(encode: Encode) -> Encoding | dict[str, str] | None:
    """Returns a ready encoding, or the kinds of columns that are stated, or None for no encoding.

    Kinds of columns that are not stated are found out.

    Raises:
        DatasetError: There is no such file, or a kind is unknown.
    """
    if encode is None or isinstance(encode, Encoding):
        return encode
    if isinstance(encode, Mapping):
        kinds = dict(encode)
    elif encode == "auto":
        kinds = {}
    elif isinstance(encode, str) and "=" in encode:
        kinds = _stated_kinds(encode)
    else:
        return _read_encoding(encode)
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise DatasetError(f'encode: column "{name}" is to be a "{kind}": {did_you_mean(str(kind), KINDS)}')
    return kinds


def _stated_kinds(text: str) -> dict[str, str]:
    """Returns the kinds in a text such as ``"zip=category,day=date"``."""
    kinds = {}
    for part in text.split(","):
        name, _, kind = part.rpartition("=")
        kinds[name.strip()] = kind.strip()
    return kinds


def _read_encoding(path: str | os.PathLike[str]) -> Encoding:
    try:
        return Encoding.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f'encode="{path}": expected "auto", column=kind with commas between them, or the file of an encoding '
            f"({getattr(error, 'strerror', None) or error})."
        ) from error


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


def times(table: Table, name: str) -> npt.NDArray[np.float64]:
    """Returns a column of dates or numbers, for an order in time, or raises DatasetError if an entry is neither."""
    table.require(name)
    values = table.frame[name]
    numbers = _numbers(values, "number" if _kind(values) == "number" else "date")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        rows = shortlist([table.start + int(row) + 1 for row in bad], "row")
        raise table.error(
            f'column "{name}" is no date and no number in {rows}: fill it in as 2027-12-31, or use another column.'
        )
    return numbers


def trusted_rows(table: Table, trusted: str) -> npt.NDArray[np.bool_]:
    """Returns a mask of the trusted rows.

    Args:
        table: A table of edges.
        trusted: A column that is positive for trusted rows, or a limit, as in ``"day<2018-03-17"``.

    Raises:
        DatasetError: There is no such column, or it holds something else.
    """
    name, less_than, limit = (part.strip() for part in trusted.partition("<"))
    table.require(name)
    is_number = _kind(table.frame[name]) == "number"
    if less_than:
        clock = None if is_number else Clock(start=0.0, unit=SECONDS_OF_DAY)
        return np.asarray(times(table, name) < limit_of(trusted, limit, clock))
    if not is_number:
        raise table.error(f'column "{name}" holds no marks, 0 or 1. All before a date: trusted="{name}<2018-03-17".')
    return np.asarray(times(table, name) > 0)


@dataclass(frozen=True)
class Clock:
    """How a column counts time.

    Attributes:
        start: The second of Unix time from which it counts.
        unit: Its unit, in seconds.
    """

    start: float
    unit: float


def limit_of(trusted: str, limit: str, clock: Clock | None) -> float:
    """Returns the number that ``limit`` stands for, in the unit of its column.

    Args:
        trusted: The whole text, for messages.
        limit: What stands behind ``<``.
        clock: How the column counts time. ``None`` if it holds numbers.

    Raises:
        DatasetError: It is no date, or for numbers no number.
    """
    if clock is None:
        with suppress(ValueError):
            return float(limit)
    try:
        moment = datetime.fromisoformat(limit)
    except ValueError:
        wanted = "a number" if clock is None else "a date, as in 2018-03-17"
        raise DatasetError(f'trusted="{trusted}": expected {wanted} behind "<".') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment.timestamp()
    if clock is None:
        raise DatasetError(
            f'trusted="{trusted}": the column holds numbers, so compare it with one. This date is {seconds:.0f} in '
            "seconds since 1970."
        )
    return (seconds - clock.start) / clock.unit


def _kind(values: Any) -> str:
    """Returns what a column holds: numbers, dates (ISO 8601), or else categories."""
    if values.dtype.kind in "iufb":
        return "number"
    if values.dtype.kind == "M":
        return "date"
    entries = values.dropna()
    for kind in ("number", "date"):
        if np.isfinite(_numbers(entries, kind)).all():
            return kind
    return "category"


def _numbers(values: Any, kind: str) -> npt.NDArray[np.float64]:
    """Returns numbers, or days since 1970, or NaN where an entry is missing or neither."""
    import pandas as pd

    if kind == "number":
        return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64)
    if values.dtype.kind == "M":
        moments = pd.to_datetime(values, errors="coerce", utc=True)
    else:
        moments = pd.to_datetime(values.astype("string"), errors="coerce", utc=True, format="ISO8601")
    return np.asarray((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)


def _texts(values: Any) -> list[str]:
    """Returns entries as text, missing ones as ``""``, and whole numbers without a decimal point."""
    gaps = values.isna().tolist()
    return ["" if gap else _text(value) for value, gap in zip(values.tolist(), gaps, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _plain(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [{**asdict(column), "categories": list(column.categories)} for column in columns]


def _column(stored: dict[str, Any]) -> Column:
    column = Column(**{**stored, "categories": tuple(stored["categories"])})
    are_texts = all(isinstance(text, str) for text in (column.name, *column.categories))
    if not are_texts or column.kind not in (*KINDS, "list") or not isinstance(column.gaps, bool):
        raise ValueError(f"a column is {stored!r:.99}")
    if not (math.isfinite(column.fill) and math.isfinite(column.first)):
        raise ValueError(f'a number of column "{column.name}" is not finite')
    return column
