"""The nodes of a live graph: their ids, keys, features and order, in numbered slots that are used again."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import INT64, LONGEST_NEW_ID, Id, is_odd, order_of
from agnncert.errors import IdError, SettingsError
from agnncert.graphs.perturbation import keys_of
from agnncert_live.rows import grown

Array = npt.NDArray[Any]

COLUMNS = {"born": np.int64, "key": np.int64, "tie": np.int64, "home": np.int64, "graph": np.int32, "alive": np.bool_}


@dataclass(frozen=True)
class NewNodes:
    """Which nodes events may add.

    Attributes:
        pattern: A regular expression that the whole id must match, such as ``"acc-[0-9]{6}"``; None for any id.
        known_only: Whether events may add no node at all.

    Raises:
        SettingsError: The pattern is no regular expression.
    """

    pattern: str | None = None
    known_only: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise SettingsError(
                f"the pattern of ids, {self.pattern!r:.60}, is no regular expression: {error}."
            ) from None

    def require(self, name: Id) -> None:
        """Raises IdError if events may not add a node of this id."""
        text = str(name)
        if is_odd(text):
            raise IdError(
                f"{text!r:.60} is no id for a new node: an id has at most {LONGEST_NEW_ID:,} characters that can be "
                "printed, and no blanks around it."
            )
        if self.known_only:
            raise IdError(f"there is no node {text!r:.60}, and this live graph takes no new ones.")
        if self.pattern is not None and re.fullmatch(self.pattern, text) is None:
            raise IdError(f"{text!r:.60} is no id for a new node: expected {self.pattern}.")


class Nodes:
    """The nodes of one graph, or of several. A *slot* is a position in arrays. Slots of deleted nodes are used again.

    Attributes:
        slot_of: For each graph, the slots by id.
        born: When a node came, as a running number. Rows of the graph are in this order.
        key: Its 64-bit key.
        tie: Its number among the nodes of its graph that share its key, in the order of ids.
        home: Group of the node itself, where a division gives it one.
        graph: Which of the graphs it belongs to. It is 0 in the node task.
        alive: Whether there is a node in this slot.
        x: Features, one row per slot.
        with_ids: Whether each graph has ids of its own. If not, row numbers stand in, and nothing can be deleted.
        count: How many slots were ever used.
        next_born: The running number of the next node.
        free: Slots of deleted nodes that may be used again.
    """

    born: Array
    key: Array
    tie: Array
    home: Array
    graph: Array
    alive: Array

    def __init__(self, names: list[list[Id]], keys: Array, x: Array, with_ids: list[bool]) -> None:
        sizes = [len(names_of_graph) for names_of_graph in names]
        self.count = sum(sizes)
        for column, dtype in COLUMNS.items():
            setattr(self, column, np.zeros(self.count, dtype=dtype))
        self._name: list[Id | None] = []
        self.slot_of: list[dict[Id, int]] = []
        for names_of_graph in names:
            first = len(self._name)
            self.slot_of.append({name: first + place for place, name in enumerate(names_of_graph)})
            self._name.extend(names_of_graph)
        self.born[:] = np.arange(self.count)
        self.key[:] = keys
        self.graph[:] = np.repeat(np.arange(len(sizes)), sizes)
        self.alive[:] = True
        self.x = x
        self.with_ids = with_ids
        self.next_born = self.count
        self.free: list[int] = []
        self._hashed_slots: dict[tuple[int, int], list[int]] = {}  # of ids that are no int64, by graph and key
        for slot in range(self.count):
            self._note_hashed(slot)
        for graph, key in list(self._hashed_slots):
            self._rank_ties(graph, key)

    def name(self, slot: int) -> Id:
        """Returns the id of the node in a slot, also of one that was deleted in the present batch."""
        name = self._name[slot]
        if name is None:
            raise RuntimeError(f"slot {slot} holds no node. This is a mistake of the library.")
        return name

    def find(self, graph: int, name: Id) -> int | None:
        """Returns the slot of a node, or None if there is none of this id."""
        return self.slot_of[graph].get(name)

    def add(self, graph: int, name: Id, row: Array) -> int:
        """Adds a node after all others and returns its slot."""
        slot = self._free_slot()
        self._name[slot] = name
        self.slot_of[graph][name] = slot
        self.born[slot] = self.next_born
        self.graph[slot] = graph
        self.alive[slot] = True
        self.key[slot] = keys_of([name])[0]
        self.tie[slot] = 0
        self.x[slot] = row
        self.next_born += 1
        self._note_hashed(slot)
        key = int(self.key[slot])
        if (graph, key) in self._hashed_slots:
            self._rank_ties(graph, key)
        return slot

    def _free_slot(self) -> int:
        if self.free:
            return self.free.pop()
        slot = self.count
        self.count += 1
        for column in (*COLUMNS, "x"):
            setattr(self, column, grown(getattr(self, column), self.count))
        self._name.append(None)
        return slot

    def hide(self, slot: int) -> None:
        """Deletes a node. Its slot stays its own until :meth:`release`, so that :meth:`show` can bring it back."""
        self.alive[slot] = False
        del self.slot_of[int(self.graph[slot])][self.name(slot)]

    def show(self, slot: int) -> None:
        """Brings back a deleted node as it was."""
        self.alive[slot] = True
        self.slot_of[int(self.graph[slot])][self.name(slot)] = slot

    def release(self, slot: int) -> None:
        """Lets the slot of a deleted node be used again."""
        place = (int(self.graph[slot]), int(self.key[slot]))
        if not _is_key(self.name(slot)):
            self._hashed_slots[place].remove(slot)
            if not self._hashed_slots[place]:
                del self._hashed_slots[place]
        self._name[slot] = None
        self.free.append(slot)

    def in_order(self) -> Array:
        """Returns the slots of all living nodes in the order of rows: graph by graph, the oldest node first."""
        slots = np.flatnonzero(self.alive[: self.count])
        return slots[np.lexsort([self.born[slots], self.graph[slots]])]

    def rows(self) -> Array:
        """Returns the row of each slot among all living nodes, shape ``[count]``. Other slots have row 0."""
        row = np.zeros(self.count, dtype=np.int64)
        living = self.in_order()
        row[living] = np.arange(len(living))
        return row

    def _note_hashed(self, slot: int) -> None:
        if not _is_key(self.name(slot)):
            place = (int(self.graph[slot]), int(self.key[slot]))
            self._hashed_slots.setdefault(place, []).append(slot)

    def _rank_ties(self, graph: int, key: int) -> None:
        """Numbers the nodes that share a key, in the order of their ids."""
        sharing = [slot for slot in self._hashed_slots[graph, key] if self.alive[slot]]
        same_number = self.slot_of[graph].get(key)
        if same_number is not None:
            sharing.append(same_number)
        sharing.sort(key=lambda slot: order_of(self.name(slot)))
        for rank, slot in enumerate(sharing):
            self.tie[slot] = rank


def _is_key(name: Id) -> bool:
    """Whether an id is its own 64-bit key; texts and larger numbers are hashed."""
    return isinstance(name, int) and name in INT64
