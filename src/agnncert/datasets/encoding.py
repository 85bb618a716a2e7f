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

from agnncert.datasets.columns import Table
from agnncert.datasets.encoding_columns import KINDS, Column, kind_of, times
from agnncert.datasets.event_summary import EventSummary
from agnncert.errors import DatasetError, did_you_mean
from agnncert.storage import parse_json

FORMAT = "agnncert-encoding-1"
FITTED = "encoding_fitted"  # attribute of data whose encoding was fitted to its own training part
SECONDS_OF_DAY = 86_400.0


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table of nodes, of a table of edges, and of a table of pairs, become features.

    Attributes:
        nodes: The columns of the table of nodes, in the order of the features.
        edges: Those of the table of edges, in the order of ``edge_attr``, or those of a table of events.
        events: How events become values of edges. None if edges were read from a table of edges.
        pairs: The columns of a table of pairs, in the order of ``edge_label_attr``.
    """

    nodes: tuple[Column, ...]
    edges: tuple[Column, ...] = ()
    events: EventSummary | None = None
    pairs: tuple[Column, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of the features of a node."""
        return [name for column in self.nodes for name in column.features]

    @property
    def edge_names(self) -> list[str]:
        """Names of the values of an edge of a table of edges, for readers."""
        return [name for column in self.edges for name in column.titles]

    @property
    def digest(self) -> str:
        """sha256 of everything in it, which is part of the claim of a certificate."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Returns the encoding as text, which ``from_json`` reads."""
        content: dict[str, Any] = {"format": FORMAT, "nodes": _plain(self.nodes), "edges": _plain(self.edges)}
        if self.events is not None:
            content["events"] = self.events.to_json()
        if self.pairs:
            content["pairs"] = _plain(self.pairs)
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Returns the encoding that ``to_json`` wrote, or raises DatasetError if the text is none."""
        try:
            stored = parse_json(text)
            if stored.pop("format") != FORMAT or set(stored) - {"events", "pairs"} != {"nodes", "edges"}:
                raise ValueError("it is of another format")
            nodes = tuple(_column(column) for column in stored["nodes"])
            edges = tuple(_column(column) for column in stored["edges"])
            events = EventSummary.from_json(stored["events"], edges) if "events" in stored else None
            pairs = tuple(_column(column) for column in stored.get("pairs", ()))
        except (DatasetError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DatasetError(f"this is no encoding of a table: {error}.") from error
        return cls(nodes, edges, events, pairs)


def require_no_fitted_encoding(data: object, defence: str, why: str) -> None:
    """Refuses features by an encoding that was fitted to training rows which may be poisoned.

    Args:
        data: The graph or graph set.
        defence: Name of the defence, for the message.
        why: How an attacker changes these rows, in words for the message.

    Raises:
        DatasetError: The encoding was fitted to this very data.
    """
    if not getattr(data, FITTED, False):
        return
    raise DatasetError(
        "the encoding that makes features of this table was fitted to its training part. "
        f"{defence} certifies against poisoned training data: {why}, and with it the features of all. Fit it "
        "once on rows that you trust, and pass it: load_tables(…, encode=trusted.encoding), or --set "
        "encode=FILE with the encoding.json of an earlier run. Or use columns of numbers without gaps."
    )


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
    is_number = kind_of(table.frame[name]) == "number"
    if less_than:
        clock = None if is_number else Clock(start=0.0, unit=SECONDS_OF_DAY)
        return np.asarray(times(table, name) < limit_of(trusted, limit, clock))
    if not is_number:
        raise no_marks(table, name)
    return np.asarray(times(table, name) > 0)


def no_marks(table: Table, name: str) -> DatasetError:
    """Returns the error that a column does not say which edges are trusted."""
    return table.error(f'column "{name}" holds no marks, 0 or 1. All before a date: trusted="{name}<2018-03-17".')


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
