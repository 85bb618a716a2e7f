"""``Encoding``: columns of a table as features, by numbers that are fitted on the training part and then frozen.

Each row is encoded by itself. If categories, medians or first days were taken from all rows, one changed node could
change the features of all others, which no certificate covers. An encoding is stored in the run folder, its digest is
part of the claim, and ``load_tables(…, encode=data.encoding)`` reads another table in the same way.
"""

import hashlib
import json
import math
import os
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

FORMAT = "agnncert-encoding-1"
KINDS = ("number", "category", "date")
MOST_CATEGORIES = 30  # of a column, the most frequent ones; a column with more that are all rare is refused
OTHER, MISSING = "other", "missing"  # features of a category that has not been seen, and of no entry
DAYS_OF_YEAR = 365.25
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
        """The column as the training ``rows`` show it; ``kind`` is found out if it is not given."""
        values = table.frame[name].iloc[rows]
        if len(values) and isinstance(values.iloc[0], np.ndarray):
            return cls(name, "list")
        kind = kind or _kind(values)
        if kind == "category":
            return cls._categories(table, name, _texts(values))
        numbers = _numbers(values, kind)
        known = numbers[np.isfinite(numbers)]
        first = float(known.min()) if kind == "date" and len(known) else 0.0
        return cls(name, kind, bool(np.isnan(numbers).any()), float(np.median(known)) if len(known) else 0.0, first)

    @classmethod
    def _categories(cls, table: Table, name: str, texts: list[str]) -> Self:
        known = [text for text in texts if text]
        words, counts = np.unique(known, return_counts=True) if known else (np.zeros(0, str), np.zeros(0, int))
        if len(words) > max(MOST_CATEGORIES, len(known) / 10):
            raise table.error(
                f'column "{name}" has {len(words):,} different texts in {len(known):,} training rows: an id or free '
                f"text is no category. Leave it out with features=[...] (--set feature=NAME,NAME)."
            )
        order = np.lexsort((words, -counts))[:MOST_CATEGORIES]
        return cls(name, "category", len(known) < len(texts), categories=tuple(sorted(words[order].tolist())))

    @property
    def features(self) -> list[str]:
        """Names of the features that it becomes."""
        if self.kind == "category":
            words = [*self.categories, OTHER, *([MISSING] if self.gaps else [])]
            return [f"{self.name}={word}" for word in words]
        return [self.name, *([f"{self.name}={MISSING}"] if self.gaps else [])]

    def encode(self, table: Table) -> Matrix:
        """The features of every row.

        Raises:
            DatasetError: There is no such column, or an entry is no number, no date or infinite.
        """
        table.require(self.name)
        if self.kind == "list":
            return table.numbers([self.name], "feature")
        values = table.frame[self.name]
        if self.kind == "category":
            place = {word: k for k, word in enumerate(self.categories)}
            other = len(self.categories)
            column = np.array([place.get(text, other if text else other + self.gaps) for text in _texts(values)], int)
            return np.asarray(np.eye(other + 1 + self.gaps, dtype=np.float32)[column])
        numbers, empty = _numbers(values, self.kind), values.isna().to_numpy()
        bad = np.flatnonzero(~np.isfinite(numbers) & ~empty)
        if len(bad):
            rows = [table.start + int(row) + 1 for row in bad]
            raise table.error(
                f'column "{self.name}" says "{values.iloc[bad[0]]!s:.60}" in {shortlist(rows, "row")}: expected a '
                f"finite {self.kind}. Correct it, or make the column a category (--set encode={self.name}=category)."
            )
        filled = np.where(empty, self.fill, numbers)
        filled = (filled - self.first) / DAYS_OF_YEAR if self.kind == "date" else filled
        return np.column_stack([filled, *([empty] if self.gaps else [])]).astype(np.float32)


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
        """sha256 of everything in it; part of the claim of a certificate."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The encoding as text, which ``from_json`` reads."""
        content = {"format": FORMAT, "nodes": _plain(self.nodes), "edges": _plain(self.edges)}
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The encoding that ``to_json`` wrote; raises DatasetError if it is none."""
        try:
            stored = json.loads(text)
            if stored.pop("format") != FORMAT or set(stored) != {"nodes", "edges"}:
                raise ValueError("it is of another format")
            parts = {part: tuple(_column(one) for one in stored[part]) for part in ("nodes", "edges")}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DatasetError(f"this is no encoding of a table: {error}.") from error
        return cls(**parts)


def encoding_of(data: Any) -> Encoding | None:
    """The encoding of some data, which is text if the data was read from a folder on disk; None if it has none."""
    found = getattr(data, "encoding", None)
    return Encoding.from_json(found) if isinstance(found, str) else found


Encode = str | Mapping[str, str] | Encoding | os.PathLike[str] | None


def encoding_named(encode: Encode) -> Encoding | dict[str, str] | None:
    """A ready encoding, or the kinds of columns that are stated (all others are found out); None for no encoding.

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
        kinds = dict(
            (name.strip(), kind.strip()) for name, _, kind in (word.rpartition("=") for word in encode.split(","))
        )
    else:
        try:
            return Encoding.from_json(Path(encode).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(
                f'encode="{encode}": expected "auto", column=kind with commas between them, or the file of an encoding '
                f"({getattr(error, 'strerror', None) or error})."
            ) from error
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise DatasetError(f'encode: column "{name}" is to be a "{kind}": {did_you_mean(str(kind), KINDS)}')
    return kinds


def fit_columns(
    table: Table, names: Sequence[str], kinds: Mapping[str, str], rows: npt.NDArray[np.int64]
) -> tuple[Column, ...]:
    """The columns as the training rows show them; raises DatasetError with all problems of all columns."""
    found, wrong = [], []
    for name in names:
        try:
            found.append(Column.fit(table, name, kinds.get(name), rows))
        except DatasetError as error:
            wrong.append(str(error))
    if wrong:
        raise DatasetError("\n".join(wrong))
    return tuple(found)


def encoded(table: Table, columns: Sequence[Column]) -> Matrix:
    """All features of a table; raises DatasetError with all problems of all columns."""
    parts, wrong = [], []
    for column in columns:
        try:
            parts.append(column.encode(table))
        except DatasetError as error:
            wrong.append(str(error))
    if wrong:
        raise DatasetError("\n".join(wrong))
    return np.hstack(parts) if parts else np.zeros((len(table), 0), dtype=np.float32)


def times(table: Table, name: str) -> npt.NDArray[np.float64]:
    """A column of dates or numbers, for an order in time; raises DatasetError if an entry is neither."""
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
    """Which rows are trusted: those where a column is positive, or before a number or date, as in ``"day<2018-03-17"``.

    Raises:
        DatasetError: There is no such column, or it holds something else.
    """
    name, before, limit = (part.strip() for part in trusted.partition("<"))
    table.require(name)
    is_number = _kind(table.frame[name]) == "number"
    if not before and not is_number:
        raise table.error(f'column "{name}" holds no marks, 0 or 1. All before a date: trusted="{name}<2018-03-17".')
    clock = None if is_number else (0.0, 86_400.0)
    return np.asarray(times(table, name) < limit_of(trusted, limit, clock) if before else times(table, name) > 0)


def limit_of(trusted: str, limit: str, clock: tuple[float, float] | None) -> float:
    """The number that ``limit`` stands for, in the unit of its column.

    Args:
        trusted: The whole text, for messages.
        limit: What stands behind ``<``.
        clock: Column of times: the second of Unix time from which it counts, and its unit in seconds. None: numbers.

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
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if clock is None:
        raise DatasetError(
            f'trusted="{trusted}": the column holds numbers, so compare it with one. This date is {seconds:.0f} in '
            "seconds since 1970."
        )
    return (seconds - clock[0]) / clock[1]


def _kind(values: Any) -> str:
    """What a column holds: numbers, dates (ISO 8601), or else categories."""
    if values.dtype.kind in "iufb":
        return "number"
    known = values.dropna()
    if values.dtype.kind == "M":
        return "date"
    return next((kind for kind in ("number", "date") if np.isfinite(_numbers(known, kind)).all()), "category")


def _numbers(values: Any, kind: str) -> npt.NDArray[np.float64]:
    """Numbers, or days since 1970; NaN where an entry is missing or neither."""
    import pandas as pd

    if kind == "number":
        return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64)
    texts = values if values.dtype.kind == "M" else values.astype("string")
    moments = pd.to_datetime(texts, errors="coerce", utc=True, format=None if values.dtype.kind == "M" else "ISO8601")
    return np.asarray((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)


def _texts(values: Any) -> list[str]:
    """Entries as text; missing ones as ``""``, and whole numbers without a decimal point."""
    gaps = values.isna().tolist()
    return ["" if gap else _text(value) for value, gap in zip(values.tolist(), gaps, strict=True)]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _plain(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [{**asdict(column), "categories": list(column.categories)} for column in columns]


def _column(stored: dict[str, Any]) -> Column:
    column = Column(**{**stored, "categories": tuple(stored["categories"])})
    texts = all(isinstance(text, str) for text in (column.name, *column.categories))
    if not texts or column.kind not in (*KINDS, "list") or not isinstance(column.gaps, bool):
        raise ValueError(f"a column is {stored!r:.99}")
    if not (math.isfinite(column.fill) and math.isfinite(column.first)):
        raise ValueError(f'a number of column "{column.name}" is not finite')
    return column
