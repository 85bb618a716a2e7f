"""The disjoint union of all subgraphs: copies of nodes, and the arcs between them, in slots that are used again.

A *copy* is a node in one subgraph, as in :class:`~agnncert.divisions.base.DisjointUnion`. An arc is a directed edge. An
edge of the graph lies in one subgraph, between two copies, so an event changes a few copies and leaves the others
alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert_live.rows import Rows, grown

Array = npt.NDArray[Any]

OUTSIDE = -1  # the subgraph index of arcs that lie in no subgraph


class Union:
    """Copies and the arcs between them.

    Attributes:
        subgraph_index: The subgraph of each copy.
        node: Slot of the node that each copy is a copy of.
        source: Copy that each arc leaves.
        head: Copy that each arc enters.
        values: What arcs carry, by name, one row per arc.
        arriving: Arcs that enter each copy.
        leaving: Arcs that leave each copy.
        of_node: Copies of each node.
        members: Copies in each subgraph. None unless a number of subgraphs is given, which are numbered from 0 on.
        num_copies: How many slots of copies were ever used.
        num_arcs: How many slots of arcs were ever used.
        free_copies: Slots of copies that may be used again.
        free_arcs: Slots of arcs that may be used again.
    """

    def __init__(
        self,
        subgraph_index: Array,
        node: Array,
        ends: Array,
        values: dict[str, Array],
        *,
        num_nodes: int,
        num_subgraphs: int = 0,
    ) -> None:
        self.subgraph_index = subgraph_index.astype(np.int64)
        self.node = node.astype(np.int32)
        self.source = ends[0].astype(np.int32)
        self.head = ends[1].astype(np.int32)
        self.values = values
        self.num_copies = len(subgraph_index)
        self.num_arcs = int(ends.shape[1])
        self.arriving = _rows_of(self.head, self.num_copies)
        self.leaving = _rows_of(self.source, self.num_copies)
        self.of_node = _rows_of(self.node, num_nodes)
        self.members: Rows | None = None
        if num_subgraphs:
            inside = np.flatnonzero(self.subgraph_index != OUTSIDE)
            self.members = _rows_of(self.subgraph_index[inside], num_subgraphs, inside)
        self.free_copies: list[int] = []
        self.free_arcs: list[int] = []

    def find_copy(self, subgraph: int, node: int) -> int:
        """Returns the copy of a node in a subgraph, or -1 if there is none."""
        copies = self.of_node[node]
        places = (self.subgraph_index[copies] == subgraph).nonzero()[0]
        if not len(places):
            return -1
        return int(copies[places[0]])

    def add_copy(self, subgraph: int, node: int) -> int:
        """Adds a copy of a node to a subgraph, without arcs."""
        copy = self._free_copy()
        self.subgraph_index[copy] = subgraph
        self.node[copy] = node
        self.of_node.append(node, copy)
        if self.members is not None and subgraph != OUTSIDE:
            self.members.append(subgraph, copy)
        return copy

    def _free_copy(self) -> int:
        if self.free_copies:
            return self.free_copies.pop()
        copy = self.num_copies
        self.num_copies += 1
        if copy >= len(self.subgraph_index):
            self.subgraph_index = grown(self.subgraph_index, copy + 1)
            self.node = grown(self.node, copy + 1)
            self.arriving.grow(len(self.subgraph_index))
            self.leaving.grow(len(self.subgraph_index))
        return copy

    def remove_copy(self, copy: int) -> None:
        """Removes a copy that has no arcs."""
        self.of_node.remove(int(self.node[copy]), copy)
        subgraph = int(self.subgraph_index[copy])
        if self.members is not None and subgraph != OUTSIDE:
            self.members.remove(subgraph, copy)
        self.free_copies.append(copy)

    def add_arc(self, source: int, head: int, values: dict[str, Any]) -> int:
        """Adds an arc between two copies of one subgraph."""
        arc = self._free_arc()
        self.source[arc] = source
        self.head[arc] = head
        for name, value in values.items():
            self.values[name][arc] = value
        self.leaving.append(source, arc)
        self.arriving.append(head, arc)
        return arc

    def _free_arc(self) -> int:
        if self.free_arcs:
            return self.free_arcs.pop()
        arc = self.num_arcs
        self.num_arcs += 1
        if arc >= len(self.source):
            self.source = grown(self.source, arc + 1)
            self.head = grown(self.head, arc + 1)
            self.values = {name: grown(value, arc + 1) for name, value in self.values.items()}
        return arc

    def remove_arc(self, arc: int) -> None:
        """Removes an arc."""
        self.leaving.remove(int(self.source[arc]), arc)
        self.arriving.remove(int(self.head[arc]), arc)
        self.free_arcs.append(arc)

    def arcs_between(self, source: int, head: int) -> Array:
        """Returns the arcs from one copy to another; none if one of the two is -1."""
        if source < 0 or head < 0:
            return np.zeros(0, dtype=np.int32)
        if self.leaving.length[source] <= self.arriving.length[head]:
            arcs = self.leaving[source]
            return np.asarray(arcs[self.head[arcs] == head])
        arcs = self.arriving[head]
        return np.asarray(arcs[self.source[arcs] == source])

    def ends(self, arcs: Array) -> Array:
        """Returns the nodes that some arcs join, shape ``[2, m]``."""
        return np.asarray(self.node[np.stack([self.source[arcs], self.head[arcs]])], dtype=np.int64)

    def is_empty(self, copies: Array) -> Array:
        """Returns which of some copies have no arcs."""
        empty: Array = (self.arriving.length[copies] == 0) & (self.leaving.length[copies] == 0)
        return empty

    def live_arcs(self) -> Array:
        """Returns all arcs that are there."""
        is_used = np.ones(self.num_arcs, dtype=bool)
        is_used[self.free_arcs] = False
        return np.flatnonzero(is_used)

    def live_copies(self) -> Array:
        """Returns all copies that are there."""
        is_used = np.ones(self.num_copies, dtype=bool)
        is_used[self.free_copies] = False
        return np.flatnonzero(is_used)


def _rows_of(owner: Array, count: int, things: Array | None = None) -> Rows:
    """Returns the things that each of ``count`` owners has; things are numbered from 0 on unless they are given."""
    order = np.argsort(owner, kind="stable")
    lengths = np.bincount(owner, minlength=count)
    if things is None:
        return Rows(lengths, order)
    return Rows(lengths, things[order])
