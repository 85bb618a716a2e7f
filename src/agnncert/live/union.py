"""The disjoint union of all subgraphs, kept while the graph changes.

As in :class:`~agnncert.divisions.base.Pieces`, a *cell* is one subgraph, and a *copy* is a node in a cell. An arc of
the graph lies in one cell, between two copies, so an event opens, closes or joins a few copies and leaves the rest
alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.live.nodes import grown
from agnncert.live.rows import Rows

Array = npt.NDArray[Any]
OUTSIDE = -1  # the cell of arcs that lie in no subgraph


class Union:
    """Copies and the arcs between them, in slots that are used again.

    Attributes:
        cell: Cell of each copy.
        node: Slot of the node it is a copy of.
        source: Copy that each arc leaves.
        head: Copy that each arc enters.
        values: What arcs carry, by name, one row per arc.
        arriving: Arcs that enter each copy.
        leaving: Arcs that leave each copy.
        of_node: Copies of each node.
        members: Copies in each cell, if somebody asks for them; cells are then numbered from 0 on.
    """

    def __init__(
        self, cell: Array, node: Array, ends: Array, values: dict[str, Array], num_nodes: int, num_cells: int = 0
    ) -> None:
        copies, arcs = len(cell), ends.shape[1]
        self.cell, self.node = cell.astype(np.int64), node.astype(np.int32)
        self.source, self.head = ends.astype(np.int32)
        self.values = values
        self.arriving, self.leaving = _rows_of(self.head, copies), _rows_of(self.source, copies)
        self.of_node = _rows_of(self.node, num_nodes)
        inside = np.flatnonzero(self.cell != OUTSIDE) if num_cells else np.zeros(0, dtype=np.int64)
        self.members = _rows_of(self.cell[inside], num_cells, inside) if num_cells else None
        self.num_copies, self.num_arcs = copies, arcs  # slots that were ever used
        self.free_copies: list[int] = []
        self.free_arcs: list[int] = []

    def find(self, cell: int, node: int) -> int:
        """The copy of a node in a cell; -1 if there is none."""
        copies = self.of_node[node]
        here = (self.cell[copies] == cell).nonzero()[0]
        return int(copies[here[0]]) if len(here) else -1

    def open(self, cell: int, node: int) -> int:
        """A new copy of a node in a cell, without arcs."""
        copy = self.free_copies.pop() if self.free_copies else self.num_copies
        if copy == self.num_copies:
            self.num_copies += 1
            if copy >= len(self.cell):
                self.cell, self.node = grown(self.cell, copy + 1), grown(self.node, copy + 1)
                self.arriving.grow(len(self.cell))
                self.leaving.grow(len(self.cell))
        self.cell[copy], self.node[copy] = cell, node
        self.of_node.append(node, copy)
        if self.members is not None and cell != OUTSIDE:
            self.members.append(cell, copy)
        return copy

    def close(self, copy: int) -> None:
        """Forgets a copy that has no arcs."""
        self.of_node.remove(int(self.node[copy]), copy)
        if self.members is not None and self.cell[copy] != OUTSIDE:
            self.members.remove(int(self.cell[copy]), copy)
        self.free_copies.append(copy)

    def join(self, source: int, head: int, values: dict[str, Any]) -> int:
        """A new arc between two copies of one cell."""
        arc = self.free_arcs.pop() if self.free_arcs else self.num_arcs
        if arc == self.num_arcs:
            self.num_arcs += 1
            if arc >= len(self.source):
                self.source, self.head = grown(self.source, arc + 1), grown(self.head, arc + 1)
                self.values = {name: grown(value, arc + 1) for name, value in self.values.items()}
        self.source[arc], self.head[arc] = source, head
        for name, value in values.items():
            self.values[name][arc] = value
        self.leaving.append(source, arc)
        self.arriving.append(head, arc)
        return arc

    def part(self, arc: int) -> None:
        """Removes an arc."""
        self.leaving.remove(int(self.source[arc]), arc)
        self.arriving.remove(int(self.head[arc]), arc)
        self.free_arcs.append(arc)

    def between(self, source: int, head: int) -> Array:
        """Arcs from one copy to another."""
        if source < 0 or head < 0:
            return np.zeros(0, dtype=np.int32)
        if self.leaving.length[source] <= self.arriving.length[head]:
            arcs = self.leaving[source]
            return np.asarray(arcs[self.head[arcs] == head])
        arcs = self.arriving[head]
        return np.asarray(arcs[self.source[arcs] == source])

    def is_empty(self, copies: Array) -> Array:
        """Which of some copies have no arcs."""
        empty: Array = (self.arriving.length[copies] == 0) & (self.leaving.length[copies] == 0)
        return empty

    def live_arcs(self) -> Array:
        """All arcs there are."""
        here = np.ones(self.num_arcs, dtype=bool)
        here[self.free_arcs] = False
        return np.flatnonzero(here)

    def live_copies(self) -> Array:
        """All copies there are."""
        here = np.ones(self.num_copies, dtype=bool)
        here[self.free_copies] = False
        return np.flatnonzero(here)


def _rows_of(owner: Array, count: int, things: Array | None = None) -> Rows:
    """What each of ``count`` owners has among things, which are numbered when not given."""
    order = np.argsort(owner, kind="stable")
    return Rows(np.bincount(owner, minlength=count), order if things is None else things[order])
