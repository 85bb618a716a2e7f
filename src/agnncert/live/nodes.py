"""The nodes of a live graph: each has a slot for as long as it lives, under its id, its key and its place in line."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.graphs.perturbation import keys_of
from agnncert.proof.ids import INT64, Id, order_of

Array = npt.NDArray[Any]
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
        """A new node, last in line."""
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
