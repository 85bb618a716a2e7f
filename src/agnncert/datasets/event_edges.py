"""``edges_of_events``: events in the order of edges become edges with totals and values, some at a time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.datasets.event_summary import Events, EventSummary
from agnncert.datasets.staged_events import EventRows

Whole = npt.NDArray[np.int64]
MakeArray = Callable[[str, tuple[int, ...], str], npt.NDArray[Any]]  # name, shape, type -> an array to be filled
Read = Callable[[EventRows], Events]


def new_array(name: str, shape: tuple[int, ...], kind: str) -> npt.NDArray[Any]:
    """Returns an array in memory."""
    return np.empty(shape, dtype=kind)


def edges_of_events(
    summary: EventSummary, events: Iterable[EventRows], read: Read, num_edges: int, has_marks: bool, make: MakeArray
) -> dict[str, npt.NDArray[Any]]:
    """Returns ``edge_index``, ``edge_totals`` and ``edge_attr``.

    Args:
        summary: How events become values.
        events: All events, each twice, in the order of edges (``StagedEvents.by_edge``).
        read: Returns events as numbers.
        num_edges: Number of directed edges.
        has_marks: Whether edges are marked as trusted.
        make: Makes the arrays.

    Raises:
        DatasetError: A sum is too large.
    """
    width = summary.width * (2 if summary.directed else 1) + has_marks
    arrays = {
        "edge_index": make("edge_index", (2, num_edges), "int64"),
        "edge_totals": make("edge_totals", (num_edges, summary.num_totals), "int64"),
        "edge_attr": make("edge_attr", (num_edges, width), "float32"),
    }
    first = 0
    held: _Edges | None = None
    for rows in events:
        edges = _edges(summary, rows, read(rows))
        if held is not None:
            edges = held.followed_by(edges, summary)
        first = edges.write(summary, arrays, first, len(edges) - 1, has_marks)
        held = edges.last()
    if held is not None:
        held.write(summary, arrays, first, 1, has_marks)
    return arrays


@dataclass(frozen=True)
class _Edges:
    """Some edges.

    Attributes:
        ends: Rows of both nodes, shape ``[2, n]``.
        totals: The totals of each, shape ``[n, 1, num_totals]``, or with those of the way back ``[n, 2, num_totals]``.
        marks: Which of them are trusted.
    """

    ends: Whole
    totals: Whole
    marks: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.marks)

    def last(self) -> "_Edges":
        """Returns the last edge, of which more events may come."""
        return _Edges(self.ends[:, -1:].copy(), self.totals[-1:].copy(), self.marks[-1:].copy())

    def followed_by(self, more: "_Edges", summary: EventSummary) -> "_Edges":
        """Returns one edge and those that come next, the first of which may be the same one."""
        if (self.ends[:, 0] == more.ends[:, 0]).all():
            more.totals[0] = summary.merged(self.totals[0], more.totals[0])
            more.marks[0] |= self.marks[0]
            return more
        return _Edges(
            np.concatenate([self.ends, more.ends], axis=1),
            np.concatenate([self.totals, more.totals]),
            np.concatenate([self.marks, more.marks]),
        )

    def write(
        self, summary: EventSummary, arrays: dict[str, npt.NDArray[Any]], first: int, number: int, has_marks: bool
    ) -> int:
        """Writes some edges to the arrays of all, from a place on, and returns the place behind them."""
        end = first + number
        totals = self.totals[:number]
        arrays["edge_index"][:, first:end] = self.ends[:, :number]
        arrays["edge_totals"][first:end] = totals[:, 0]
        values = summary.edge_values(totals)
        arrays["edge_attr"][first:end, : summary.width * values.shape[1]] = values.reshape(number, -1)
        if has_marks:
            arrays["edge_attr"][first:end, -1] = self.marks[:number]
        return end


def _edges(summary: EventSummary, rows: EventRows, events: Events) -> _Edges:
    """Returns the edges of consecutive events."""
    ends = np.stack([rows.whole("s"), rows.whole("t")])
    is_new = np.append(True, (ends[:, 1:] != ends[:, :-1]).any(axis=0))
    edge = np.cumsum(is_new) - 1
    ways = 2 if summary.directed else 1
    group = 2 * edge + rows.whole("back") if summary.directed else edge
    part = summary.part_totals(events, group)
    starts = np.flatnonzero(is_new)
    totals = np.zeros((ways * len(starts), summary.num_totals), dtype=np.int64)
    totals[part.groups] = part.totals
    marks = np.logical_or.reduceat(rows.whole("is_trusted") > 0, starts)
    return _Edges(ends[:, starts], totals.reshape(len(starts), ways, -1), marks)
