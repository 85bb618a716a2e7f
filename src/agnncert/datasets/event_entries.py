"""``EntryColumn``: what a column of a table of events holds (numbers, dates or texts), found out piece by piece.

What the first piece shows is assumed, and what a later one contradicts is given up for the next kind: numbers, then
truths, then dates, then texts. So the kind of a column is that of all its entries, whatever the pieces are.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import GAPS, Table, shortlist
from agnncert.datasets.encoding_columns import (
    MICROSECONDS_OF_DAY,
    Column,
    moments,
    number_of,
    numbers_of,
    text_of,
    texts_of,
)
from agnncert.datasets.event_files import Piece
from agnncert.datasets.event_summary import order_of_times

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER, TRUTH, DATE, TEXT, WRITTEN_NUMBER = "number", "truth", "date", "text", "written number"
_TRUTHS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class OtherKindError(Exception):
    """A piece shows that a column is of another kind than the pieces before it did: all are read again."""


@dataclass(frozen=True)
class Entries:
    """Entries of one column as numbers.

    Attributes:
        numbers: Numbers, days since 1970 or, for moments, whole numbers in the order of time. NaN for a gap.
        is_bad: Which entries are neither what the column holds nor a gap.
    """

    numbers: npt.NDArray[Any]
    is_bad: Mask


@dataclass
class EntryColumn:
    """One column of a table of events, and how it is kept.

    Attributes:
        name: The column.
        place: What the store calls it.
        kinds: What it may hold, the first of which is assumed.
        is_moment: Whether it says when, so that every entry has to.
        is_ordered: Whether it is kept as whole numbers in the order of time (``order_of_times``).
    """

    name: str
    place: str
    kinds: list[str] = field(default_factory=lambda: [NUMBER, TRUTH, DATE, TEXT])
    is_moment: bool = False
    is_ordered: bool = False

    @classmethod
    def of_kind(cls, name: str, place: str, kind: str | None) -> "EntryColumn":
        """Returns a column whose kind is stated, see ``KINDS``, or is to be found out."""
        stated = {"number": [NUMBER, TRUTH], "date": [DATE], "category": [WRITTEN_NUMBER, TEXT]}
        return cls(name, place) if kind is None else cls(name, place, stated[kind])

    @classmethod
    def of_time(cls, name: str, place: str, is_ordered: bool) -> "EntryColumn":
        """Returns a column of dates or numbers."""
        return cls(name, place, [NUMBER, DATE], is_moment=True, is_ordered=is_ordered)

    @property
    def kind(self) -> str:
        """What it holds, as far as it is known: ``"number"``, ``"date"`` or ``"category"``."""
        return {NUMBER: "number", TRUTH: "number", DATE: "date"}.get(self.kinds[0], "category")

    @property
    def stored(self) -> str:
        """The type of its entries in the store, see ``reader_of``."""
        if self.is_ordered:
            return "i64"
        return "text" if self.kind == "category" else "f64"

    def read(self, piece: Piece) -> Any:
        """Returns the entries of a piece, as the store keeps them.

        Raises:
            DatasetError: An entry is not what the column is said to hold.
            OtherKindError: The column holds something else than the pieces before have shown.
        """
        entries = piece.entries[self.name].combine_chunks()
        self._refuse_lists(piece, entries)
        if self.kinds[0] == TEXT:
            return _texts(entries, piece.is_csv)
        reader: Callable[[Any, bool], Entries] = {DATE: dates, TRUTH: truths}.get(self.kinds[0], numbers)
        read = reader(entries, piece.is_csv)
        is_bad = read.is_bad | np.isnan(read.numbers) if self.is_moment else read.is_bad
        if is_bad.any():
            self._refuse(piece, is_bad)
        if self.kinds[0] == WRITTEN_NUMBER:
            return _written(entries, piece.is_csv)
        return order_of_times(read.numbers, self.kind == "date") if self.is_ordered else read.numbers

    def _refuse(self, piece: Piece, is_bad: Mask) -> None:
        """Gives up the kind that was assumed, or raises DatasetError if no other is left."""
        if len(self.kinds) > 1:
            self.kinds.pop(0)
            raise OtherKindError
        table = piece.table(self.name, with_gaps=True)
        if self.is_moment:
            moments(table, self.name)
            raise table.error(
                f'column "{self.name}" holds numbers in some rows and dates in others: write all of them in one way.'
            )
        Column(self.name, self.kind).encode_exactly(table)
        row = piece.start + int(np.flatnonzero(is_bad)[0]) + 1
        raise table.error(f'column "{self.name}" is no {self.kind} in row {row}: correct it.')

    def _refuse_lists(self, piece: Piece, entries: "pa.Array") -> None:
        import pyarrow as pa

        if pa.types.is_nested(entries.type):
            raise piece.table(self.name).error(
                f'column "{self.name}" holds {entries.type}, and an event is described by numbers, dates and texts: '
                "leave it out by naming the values of edges."
            )


def refuse_infinite(table: Table, column: EntryColumn, rows: list[tuple[int, float]]) -> None:
    """Raises DatasetError if numbers are infinite; ``rows`` are these rows, with what they say."""
    if rows:
        shown = shortlist([row for row, _ in rows], "row")
        raise table.error(
            f'column "{column.name}" says "{rows[0][1]}" in {shown}: expected a finite {column.kind}. Correct it, or '
            f"make the column a category (--set encode={column.name}=category)."
        )


def numbers(entries: "pa.Array", is_csv: bool) -> Entries:
    """Returns a column as numbers; what ``number_of`` makes of a text is what this makes of it."""
    import pyarrow as pa

    if pa.types.is_temporal(entries.type):
        return _none_of_these(entries)
    if not _are_texts(entries):
        values = entries.to_pandas()
        read = numbers_of(values, "number")
        return Entries(read, np.isnan(read) & ~values.isna().to_numpy())
    try:
        read = _as_numpy(entries.cast(pa.float64()))
    except pa.ArrowInvalid:
        entries = _with_gaps(entries, is_csv)
        try:
            read = _as_numpy(entries.cast(pa.float64()))
        except pa.ArrowInvalid:
            texts = entries.to_pylist()
            first = next((text for text in texts if text is not None), "")
            if math.isnan(number_of(first, "number")):  # a column of texts, most likely
                return Entries(np.zeros(len(texts)), _is_first(texts))
            read = np.array([math.nan if text is None else number_of(text, "number") for text in texts])
    is_text = np.isnan(read) & _as_numpy(entries.is_valid())
    if is_csv and is_text.any():
        is_text &= ~np.isin(np.asarray(entries.to_pandas(), dtype=object), GAPS)
    return Entries(read, is_text)


def _none_of_these(entries: "pa.Array") -> Entries:
    return Entries(np.zeros(len(entries)), np.ones(len(entries), dtype=bool))


def _is_first(texts: list[str | None]) -> Mask:
    """Marks the first entry that is there; the others are not looked at."""
    marks = np.zeros(len(texts), dtype=bool)
    marks[next(place for place, text in enumerate(texts) if text is not None)] = True
    return marks


def truths(entries: "pa.Array", is_csv: bool) -> Entries:
    """Returns a column of a CSV table that says true or false as numbers 1 and 0."""
    import pyarrow as pa

    if not is_csv or not _are_texts(entries):
        return _none_of_these(entries)
    coded = _with_gaps(entries, is_csv).dictionary_encode()
    known = np.array([*(_TRUTHS.get(text, math.inf) for text in coded.dictionary.to_pylist()), math.nan])
    read = known[_as_numpy(coded.indices.fill_null(pa.scalar(len(known) - 1, coded.indices.type)))]
    return Entries(read, np.isinf(read))


def dates(entries: "pa.Array", is_csv: bool) -> Entries:
    """Returns a column of dates as days since 1970; what ``moment_of`` makes of a text is what this makes of it."""
    import pyarrow as pa

    if not _are_texts(entries):
        values = entries.to_pandas()
        read = numbers_of(values, "date")
        return Entries(read, np.isnan(read) & ~values.isna().to_numpy())
    entries = _with_gaps(entries, is_csv)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            moments_read = entries.cast(kind)
        except pa.ArrowInvalid:
            continue
        read = _as_numpy(moments_read.cast(pa.int64()).cast(pa.float64(), safe=False)) / MICROSECONDS_OF_DAY
        return Entries(read, np.zeros(len(read), dtype=bool))
    read = numbers_of(entries.to_pandas(), "date")
    return Entries(read, np.isnan(read) & _as_numpy(entries.is_valid()))


def _written(entries: "pa.Array", is_csv: bool) -> "pa.Array":
    """Returns numbers as they are written as categories: without a decimal point if they are whole."""
    import pyarrow as pa

    if not is_csv:
        return _texts(entries, is_csv)
    coded = _with_gaps(entries, is_csv).dictionary_encode()
    texts = pa.array([_plain(text) for text in coded.dictionary.to_pylist()], pa.string())
    return texts.take(coded.indices)


def _plain(text: str) -> str:
    try:
        return str(int(text))
    except ValueError:
        return text_of(number_of(text, "number"))


def _texts(entries: "pa.Array", is_csv: bool) -> "pa.Array":
    """Returns categories without blanks around them, and nothing where an entry is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _are_texts(entries):
        return pa.array([text or None for text in texts_of(entries.to_pandas(integer_object_nulls=True))], pa.string())
    stripped = pc.utf8_trim_whitespace(_with_gaps(entries, is_csv))
    return pc.if_else(pc.equal(stripped, ""), None, stripped)


def _are_texts(entries: "pa.Array") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(entries.type) or pa.types.is_large_string(entries.type))


def _with_gaps(entries: "pa.Array", is_csv: bool) -> "pa.Array":
    """Returns texts with nothing where a CSV table says that an entry is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_csv:
        return entries
    return pc.if_else(pc.is_in(entries, pa.array(GAPS, entries.type)), None, entries)


def _as_numpy(entries: "pa.Array") -> npt.NDArray[Any]:
    return np.asarray(entries.to_numpy(zero_copy_only=False))
