"""The tables of a live graph: growing rows, nodes, the disjoint union of all subgraphs, and the division edge by edge.

A *cell* is one subgraph, and a *copy* is a node in a cell, as in :class:`~agnncert.divisions.base.DisjointUnion`. An
edge of the graph lies in one cell, between two copies, so an event changes a few copies and leaves the others alone.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import INT64, Id, order_of
from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.errors import DivisionError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.perturbation import keys_of

Array = npt.NDArray[Any]

_FIRST_ROOM = 4


class Rows:
    """Many short rows of int32 in one array. A row that outgrows its room moves to the end, into twice the room.

    The order within a row means nothing. Memory stays within a constant factor of what the rows hold: when more than
    half of the array is room that nobody uses, all rows are packed anew.
    """

    def __init__(self, lengths: Array, values: Array) -> None:
        self.length = lengths.astype(np.int32)
        self._room = self.length.copy()
        self._start = np.cumsum(lengths, dtype=np.int64) - lengths
        self._pool = values.astype(np.int32)
        self._top = len(values)  # from here on the array is free
        self._unused = 0  # entries below the top that belong to no row any more

    def __getitem__(self, row: int) -> Array:
        """The numbers in one row; a view, valid until the next change."""
        start = self._start[row]
        return self._pool[start : start + self.length[row]]

    def gather(self, rows: Array) -> tuple[Array, Array]:
        """The numbers in some rows, one row after the other, and how many each has."""
        lengths = self.length[rows].astype(np.int64)
        before = np.cumsum(lengths) - lengths
        place = np.repeat(self._start[rows] - before, lengths) + np.arange(int(lengths.sum()))
        return self._pool[place], lengths

    def grow(self, count: int) -> None:
        """Makes room for rows up to ``count``; new ones are empty."""
        more = count - len(self.length)
        if more > 0:
            for name in ("length", "_room", "_start"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros(more, dtype=array.dtype)]))

    def append(self, row: int, value: int) -> None:
        """Puts a number into a row."""
        length = int(self.length[row])
        if length == self._room[row]:
            self._move(row, max(_FIRST_ROOM, 2 * length))
        self._pool[self._start[row] + length] = value
        self.length[row] = length + 1

    def remove(self, row: int, value: int) -> None:
        """Takes a number, which must be there, out of a row."""
        start, last = int(self._start[row]), int(self.length[row]) - 1
        inside = self._pool[start : start + last + 1]
        inside[int((inside == value).argmax())] = inside[last]
        self.length[row] = last

    def _move(self, row: int, room: int) -> None:
        if self._top + room > len(self._pool):
            if 2 * self._unused > self._top:
                self._pack()
            longer = np.empty(max(16, self._top + room + self._top // 4), dtype=np.int32)
            longer[: self._top] = self._pool[: self._top]
            self._pool = longer
        start, length = int(self._start[row]), int(self.length[row])
        self._pool[self._top : self._top + length] = self._pool[start : start + length]
        self._unused += int(self._room[row])
        self._start[row], self._room[row] = self._top, room
        self._top += room

    def _pack(self) -> None:
        everything = np.arange(len(self.length))
        values, lengths = self.gather(everything)
        self._pool, self._room = values, self.length.copy()
        self._start = np.cumsum(lengths) - lengths
        self._top, self._unused = len(values), 0


COLUMNS = {"born": np.int64, "key": np.int64, "tie": np.int64, "home": np.int64, "graph": np.int32, "alive": np.bool_}


def grown(array: Array, count: int) -> Array:
    """The array with room for at least ``count`` rows, zeros in new ones; a quarter more than asked for."""
    if len(array) >= count:
        return array
    longer = np.zeros((count + count // 4 + 8, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class Nodes:
    """Who the nodes are. A *slot* is a position in arrays; slots of deleted nodes are used again.

    Attributes:
        name: Id of each slot in canonical form.
        slot_of: For each graph, the slots by id.
        born: When a node came, as a running number: rows of the graph are in this order.
        key: Its 64-bit key.
        tie: Its number among the nodes of its graph that share its key, in the order of ids.
        home: Group of the node itself, where a division gives it one.
        graph: Which of the graphs it belongs to; 0 in the node task.
        alive: Whether there is a node in this slot.
        x: Features, one row per slot.
        with_ids: Whether each graph has ids of its own; if not, row numbers stand in, and nothing can be deleted.
    """

    born: Array
    key: Array
    tie: Array
    home: Array
    graph: Array
    alive: Array

    def __init__(self, names: list[list[Id]], keys: Array, x: Array, with_ids: list[bool]) -> None:
        sizes = [len(one) for one in names]
        total = sum(sizes)
        for column, dtype in COLUMNS.items():
            setattr(self, column, np.zeros(total, dtype=dtype))
        self.name: list[Id | None] = [name for one in names for name in one]
        starts = np.cumsum([0, *sizes])
        self.slot_of = [
            dict(zip(one, range(start, start + len(one)), strict=True))
            for one, start in zip(names, starts[:-1].tolist(), strict=True)
        ]
        self.born[:] = np.arange(total)
        self.key[:] = keys
        self.graph[:] = np.repeat(np.arange(len(sizes)), sizes)
        self.alive[:] = True
        self.x = x
        self.with_ids = with_ids
        self.count = total  # slots that were ever used
        self.next_born = total
        self.free: list[int] = []
        self._texts: dict[tuple[int, int], list[int]] = {}  # slots of ids that are no int64, by graph and key
        for slot, name in enumerate(self.name):
            if name is not None and not _is_key(name):
                self._texts.setdefault((int(self.graph[slot]), int(self.key[slot])), []).append(slot)
        for graph, key in list(self._texts):
            self._rank_ties(graph, key)

    def find(self, graph: int, name: Id) -> int | None:
        """The slot of a node, if there is one of this id."""
        return self.slot_of[graph].get(name)

    def add(self, graph: int, name: Id, row: Array) -> int:
        """Adds a node after all others."""
        slot = self.free.pop() if self.free else self.count
        if slot == self.count:
            self.count += 1
            for column in (*COLUMNS, "x"):
                setattr(self, column, grown(getattr(self, column), self.count))
            self.name.append(None)
        self.name[slot], self.slot_of[graph][name] = name, slot
        self.born[slot], self.graph[slot], self.alive[slot] = self.next_born, graph, True
        self.key[slot], self.tie[slot] = keys_of([name])[0], 0
        self.x[slot] = row
        self.next_born += 1
        key = int(self.key[slot])
        if not _is_key(name):
            self._texts.setdefault((graph, key), []).append(slot)
        if (graph, key) in self._texts:
            self._rank_ties(graph, key)
        return slot

    def hide(self, slot: int) -> None:
        """A node dies; its slot stays its own until :meth:`release`, so that it can come back by :meth:`show`."""
        self.alive[slot] = False
        del self.slot_of[int(self.graph[slot])][self.name[slot]]  # type: ignore[arg-type]

    def show(self, slot: int) -> None:
        """A node that died comes back as it was."""
        self.alive[slot] = True
        self.slot_of[int(self.graph[slot])][self.name[slot]] = slot  # type: ignore[index]

    def release(self, slot: int) -> None:
        """The slot of a dead node may be used again."""
        name, place = self.name[slot], (int(self.graph[slot]), int(self.key[slot]))
        if name is not None and not _is_key(name):
            self._texts[place].remove(slot)
            if not self._texts[place]:
                del self._texts[place]
        self.name[slot] = None
        self.free.append(slot)

    def in_order(self) -> Array:
        """Slots of all living nodes, in the order of rows: graph by graph, the oldest first."""
        slots = np.flatnonzero(self.alive[: self.count])
        return slots[np.lexsort([self.born[slots], self.graph[slots]])]

    def _rank_ties(self, graph: int, key: int) -> None:
        sharing = [slot for slot in self._texts[graph, key] if self.alive[slot]]
        whole = self.slot_of[graph].get(key)
        sharing += [] if whole is None else [whole]
        for rank, slot in enumerate(sorted(sharing, key=lambda slot: order_of(self.name[slot]))):  # type: ignore[arg-type]
            self.tie[slot] = rank


def _is_key(name: Id) -> bool:
    return isinstance(name, int) and name in INT64


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


@dataclass(frozen=True)
class Cells:
    """The cell of a single edge, and which copies vote: the same as ``division.groups`` and ``division.pieces`` say.

    Cells are numbered as in ``DisjointUnion``. With one group per neighbour, slots of nodes number the cells, because
    rows change when nodes are added and deleted.

    Attributes:
        division: The division.
        task: ``"node"`` or ``"graph"``.
    """

    division: Any
    task: Task

    def __post_init__(self) -> None:
        if (
            type(self.division) not in (EdgeCentric, PerEdge, NodeCentric, GatedNodeCentric, PerNeighbour)
            or self.division.edges_only
        ):
            raise DivisionError(
                f"{self.division} cannot be kept current event by event: use EdgeCentric or NodeCentric."
            )

    @property
    def by_pair(self) -> bool:
        """Whether edges are divided by their pair of nodes."""
        return bool(self.division.family == "edge-centric")

    @property
    def own_groups(self) -> bool:
        """Whether every neighbour has a group of its own."""
        return bool(self.division.is_per_neighbour)

    @property
    def on_graphs(self) -> bool:
        """Whether graphs are classified."""
        return self.task == "graph"

    @property
    def gated(self) -> bool:
        """Whether features are visible in a node's own group only."""
        return self.division.gates_features and not self.on_graphs

    @property
    def keeps_loops(self) -> bool:
        """Whether self-loops are edges like others."""
        return bool(self.division.self_loops)

    @property
    def at_home(self) -> bool:
        """Whether every node has a copy in its own cell, also without arcs."""
        return self.gated or (self.on_graphs and not self.by_pair)

    def group_of_key(self, key: int) -> int:
        """Group of a node, where nodes are hashed; 0 elsewhere."""
        if self.by_pair or self.own_groups:
            return 0
        return _hashed(self.division.hash, b"agn-node", key) % int(self.division.num_groups)

    def of_node(self, nodes: Nodes, node: int) -> int:
        """The cell of a node's own group."""
        if self.own_groups:
            return node
        return int(nodes.graph[node]) * self._stride + int(nodes.home[node])

    def of_arc(self, nodes: Nodes, source: int, head: int) -> int:
        """The cell of an arc."""
        if self.by_pair:
            if self.own_groups:
                return (min(source, head) << 32) | max(source, head)
            low, high = sorted((int(nodes.key[source]) % 2**64, int(nodes.key[head]) % 2**64))
            group = _hashed(self.division.hash, b"agn-edge", low, high) % int(self.division.num_groups)
            return int(nodes.graph[source]) * self._stride + group
        cell = self.of_node(nodes, source)
        return OUTSIDE if self.on_graphs and cell != self.of_node(nodes, head) else cell

    @property
    def _stride(self) -> int:
        return int(self.division.num_groups) if self.on_graphs else 0

    def votes(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Which copies cast a vote of their own (graph task: are in a subgraph that does)."""
        if self.on_graphs:
            inside: Array = union.cell[copies] != OUTSIDE
            return inside & (nodes.alive[union.node[copies]] if self.at_home else ~union.is_empty(copies))
        if self.by_pair:
            return ~union.is_empty(copies)
        hears: Array = union.arriving.length[copies] > 0
        return hears | self.is_home(nodes, union, copies) if self.gated else hears

    def is_home(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Which copies lie in their node's own cell; only where nodes are hashed."""
        node = union.node[copies]
        home: Array = (nodes.home[node] == union.cell[copies]) & nodes.alive[node]
        return home

    def layout(self, graph: CanonicalGraph) -> tuple[Array, Array, Array, Array]:
        """Copies and arcs of a whole canonical graph, whose rows are the slots.

        Returns:
            Cell and node of each copy, the copies that each arc joins, and which edge of the graph each arc is.
        """
        groups = self.division.groups(graph)
        union = self.division.disjoint_union(graph, groups)
        cell, node, ends, edge = (
            part.numpy() for part in (union.subgraph_index, union.node, union.edge_index, union.edge)
        )
        if self.own_groups and self.by_pair:
            pair = np.sort(node[ends], axis=0).astype(np.int64)
            cell = np.empty(len(node), dtype=np.int64)
            cell[ends] = (pair[0] << 32) | pair[1]
        elif self.own_groups and self.on_graphs:
            cell = node.astype(np.int64)
        if self.on_graphs and not self.by_pair:  # arcs between groups: in the graph, in no subgraph
            out = np.flatnonzero(groups.numpy() < 0)
            lonely, where = np.unique(graph.edge_index[:, out].numpy(), return_inverse=True)
            ends = np.concatenate([ends, where.reshape(2, -1) + len(cell)], axis=1)
            cell = np.concatenate([cell, np.full(len(lonely), OUTSIDE)])
            node, edge = np.concatenate([node, lonely]), np.concatenate([edge, out])
        return cell, node, ends, edge

    def num_groups(self, graph: CanonicalGraph) -> int:
        """How many groups the graph has now."""
        return int(self.division.num_groups_in(graph))


def _hashed(name: str, tag: bytes, *keys: int) -> int:
    """As ``hashing.first8``, of one message."""
    message = tag + b"".join([(key % 2**64).to_bytes(8, "little") for key in keys])
    return int.from_bytes(hashlib.new(name, message, usedforsecurity=False).digest()[:8], "little")
