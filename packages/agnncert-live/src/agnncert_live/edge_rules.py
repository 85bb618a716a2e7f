"""``EdgeRules``: how values of edges were made from a table, so that events are treated as training treated rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import Table
from agnncert.datasets.encoding import Encoding, encoding_of
from agnncert.datasets.encoding_columns import encoded
from agnncert.datasets.event_keys import key_text
from agnncert.datasets.event_summary import Events, EventSummary
from agnncert.datasets.events import unlisted_features
from agnncert.defence import Defence
from agnncert.errors import DatasetError, GraphError, SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph

Array = npt.NDArray[Any]
Result = TypeVar("Result")

REPEATED = ("sum", "mean", "max", "min")  # what becomes of the values of repeated edges
COUNT = "edge_count"  # of the data: how many rows of the table each edge stands for
TOTALS = "edge_totals"  # of the data: what the events of each edge add up to
KEPT_BESIDE = (COUNT, TOTALS)  # what is kept of each edge, and read by no model


@dataclass(frozen=True)
class EdgeRules:
    """How the values of edges were made.

    The data says so: ``data.both_directions`` (found out when not given), ``data.repeated``, ``data.encoding`` and
    ``data.class_names``.

    Attributes:
        halves: Number of values of each direction, if each row of ``edge_attr`` holds the values of its own direction
            and then those of the other one (``agnncert.datasets.relations.both_directions``); 0 if not.
        has_mark: Whether the last column of ``edge_attr`` marks trusted edges. Events need not state it: a new edge is
            not trusted, and a changed one keeps its mark.
        repeated: How the values of several rows of the same edge are combined: ``"sum"``, ``"mean"``, ``"max"`` or
            ``"min"``; None if the data does not say.
        encoding: How columns of tables become features and values of edges; None if the data does not say.
        class_names: Names of the classes; empty if they have none.
    """

    halves: int = 0
    has_mark: bool = False
    repeated: str | None = None
    encoding: Encoding | None = None
    class_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any, graph: CanonicalGraph, defence: Defence) -> "EdgeRules":
        """Returns the rules of a graph.

        Args:
            data: The graph as the user gave it.
            graph: The same in canonical form.
            defence: The defence, which knows the column of trusted edges.

        Raises:
            SettingsError: ``data.repeated`` or ``data.both_directions`` makes no sense.
        """
        repeated = getattr(data, "repeated", None)
        if repeated is not None and repeated not in REPEATED:
            raise SettingsError(f"data.repeated={repeated!r:.60}: {did_you_mean(str(repeated), REPEATED)}")
        names = getattr(data, "class_names", None)
        return cls(
            halves=_halves(data, graph, defence),
            has_mark=_has_mark(graph, defence),
            repeated=repeated,
            encoding=encoding_of(data),
            class_names=() if names is None else tuple(str(name) for name in names),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the rules as JSON values, as a journal keeps them."""
        return {
            "halves": self.halves,
            "has_mark": self.has_mark,
            "repeated": self.repeated,
            "encoding": None if self.encoding is None else self.encoding.to_json(),
            "class_names": list(self.class_names),
        }

    @classmethod
    def from_json(cls, stated: Any) -> "EdgeRules":
        """Returns the rules that a journal states, which is not trusted.

        Raises:
            ValueError: They make no sense.
        """
        halves = stated["halves"]
        repeated = stated["repeated"]
        names = stated["class_names"]
        has_mark = stated["has_mark"]
        is_sound = type(halves) is int and halves >= 0 and repeated in (None, *REPEATED) and type(has_mark) is bool
        if not is_sound or not all(isinstance(name, str) for name in names):
            raise ValueError("its statements about edges make no sense")
        encoding = None if stated["encoding"] is None else Encoding.from_json(stated["encoding"])
        return cls(halves, has_mark, repeated, encoding, tuple(names))

    def describe(self, data: Any) -> None:
        """Writes the rules to data, so that whoever reads the data knows them too."""
        if self.halves:
            data.both_directions = True
        if self.repeated is not None:
            data.repeated = self.repeated
        if self.encoding is not None:
            data.encoding = self.encoding
        if self.class_names:
            data.class_names = list(self.class_names)

    @property
    def events(self) -> EventSummary | None:
        """How events become values of edges; None if edges are no events."""
        return None if self.encoding is None else self.encoding.events

    def read_event(self, columns: Mapping[str, Any]) -> Events:
        """Returns one event as numbers.

        Raises:
            GraphError: A column is missing or unknown, or an entry makes no sense.
        """
        assert self.events is not None
        _require_columns(self.events.column_names, columns)
        try:
            return self.events.read_entries(columns)
        except DatasetError as error:
            raise _not_encoded(error) from error

    def key_of(self, columns: Mapping[str, Any]) -> str | None:
        """Returns the key of an event; None if events have no keys.

        Raises:
            GraphError: It is no key.
        """
        if self.events is None or self.events.key is None:
            return None
        try:
            return key_text(columns[self.events.key])
        except DatasetError as error:
            raise GraphError(str(error)) from error

    @cached_property
    def unlisted_row(self) -> list[float] | None:
        """The features of a node that only events name; None if edges are no events."""
        if self.encoding is None or self.encoding.events is None:
            return None
        row: list[float] = unlisted_features(self.encoding)[0].tolist()
        return row

    def encode(self, kind: str, columns: Mapping[str, Any]) -> list[float]:
        """Returns the values that columns of an event stand for, by the encoding of the training table.

        Args:
            kind: Kind of the event: of a node, or of an edge.
            columns: Entries by the names of the columns.

        Raises:
            GraphError: There is no encoding, a column is missing or unknown, or an entry makes no sense.
        """
        if self.encoding is None:
            raise GraphError(
                "the event has columns, but the graph was not made with an encoding: send the values as they are in "
                "the graph, as value."
            )
        known = self.encoding.edges if kind.endswith("edge") else self.encoding.nodes
        names = [column.name for column in known]
        row: list[float] = _read(lambda table: encoded(table, known), names, columns)[0].tolist()
        return row

    def combine(self, old: Array, count: float, value: Array) -> Array:
        """Returns the values of ``count`` rows of a table, and of one more, as training combines them.

        Raises:
            GraphError: It is not known how, or how many rows there were.
        """
        if self.repeated is None:
            raise GraphError(
                "the graph does not say how repeated edges are combined: set data.repeated to "
                f"{', '.join(REPEATED[:-1])} or {REPEATED[-1]}, or send change_edge."
            )
        if self.repeated == "max":
            return np.maximum(old, value)
        if self.repeated == "min":
            return np.minimum(old, value)
        exact = old.astype(np.float64)
        if self.repeated == "sum":
            return (exact + value).astype(old.dtype)
        if math.isnan(count):
            raise GraphError(
                f"the graph does not say how many rows each edge stands for, which a mean depends on: set data.{COUNT}."
            )
        return ((exact * count + value) / (count + 1)).astype(old.dtype)


def _has_mark(graph: CanonicalGraph, defence: Defence) -> bool:
    attributes = graph.edge_values.get("edge_attr")
    if attributes is None or attributes.dim() != 2 or "edge_weight" in graph.edge_values:
        return False
    return defence.trusted_column() == attributes.size(1) - 1


def _halves(data: Any, graph: CanonicalGraph, defence: Defence) -> int:
    """Returns the number of values of one direction, or 0 if rows do not hold both directions."""
    encoding = encoding_of(data)
    if encoding is not None and encoding.events is not None:
        return encoding.events.width if encoding.events.directed else 0
    stated = getattr(data, "both_directions", None)
    attributes = graph.edge_values.get("edge_attr")
    if stated is False or attributes is None or attributes.dim() != 2:
        if stated:
            raise SettingsError("data.both_directions: the graph has no rows of edge_attr.")
        return 0
    trusted = defence.trusted_column()
    width = attributes.size(1) - (trusted is not None)
    if trusted is not None and trusted != width:
        return 0
    if width % 2:
        if stated:
            raise SettingsError(f"data.both_directions: edge_attr has {width} columns, which are no two halves.")
        return 0
    rows = attributes.numpy()
    if _is_swapped(graph.edge_index.numpy(), rows, width // 2):
        return width // 2
    if stated:
        raise SettingsError("data.both_directions: the two rows of a pair do not hold the same values swapped.")
    return 0


def _is_swapped(edge_index: Array, rows: Array, halves: int) -> bool:
    """Whether each pair is joined once in both directions, by rows whose halves are swapped, and not all alike."""
    if not halves or not rows.shape[0]:
        return False
    num_nodes = int(edge_index.max()) + 1
    keys = edge_index[0] * num_nodes + edge_index[1]
    reversed_keys = edge_index[1] * num_nodes + edge_index[0]
    order = np.argsort(keys)
    reversed_order = np.argsort(reversed_keys)
    if len(np.unique(keys)) < len(keys) or not np.array_equal(keys[order], reversed_keys[reversed_order]):
        return False
    swapped = swap_halves(rows, halves)
    return np.array_equal(rows[order], swapped[reversed_order]) and not np.array_equal(rows, swapped)


def swap_halves(rows: Array, halves: int) -> Array:
    """Returns rows as the other direction holds them: the two halves exchanged, further columns as they are."""
    first = rows[..., :halves]
    second = rows[..., halves : 2 * halves]
    return np.concatenate([second, first, rows[..., 2 * halves :]], axis=-1)


def _read(read: Callable[[Table], Result], names: list[str], columns: Mapping[str, Any]) -> Result:
    """Returns what a reader makes of one row of a table.

    Args:
        read: Reads a table.
        names: The columns that the row must have.
        columns: Entries by the names of the columns.

    Raises:
        GraphError: A column is missing or unknown, or an entry makes no sense.
    """
    import pandas as pd

    _require_columns(names, columns)
    frame = pd.DataFrame({name: pd.Series([columns[name]]) for name in names}, index=[0])
    try:
        return read(Table(Path("event"), frame))
    except (DatasetError, TypeError, ValueError, OverflowError) as error:
        raise _not_encoded(error) from error


def _require_columns(names: list[str], columns: Mapping[str, Any]) -> None:
    """Raises GraphError if an event lacks a column, or has an unknown one."""
    for name in columns:
        if name not in names:
            raise GraphError(f"the encoding has no column {name!r:.60}: {did_you_mean(str(name)[:40], names)}")
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise GraphError(f"the event lacks the column {lacking[0]!r}: null stands for a missing entry.")


def _not_encoded(error: Exception) -> GraphError:
    return GraphError(f"the columns of the event cannot be encoded: {error!s:.200}")
