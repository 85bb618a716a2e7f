"""``Store``: a graph in numbered slots with its union of subgraphs; events are checked, applied and rolled back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.ids import Id, order_of
from agnncert.certificates.votes import ABSTAIN
from agnncert.errors import GraphError, IdError
from agnncert.graphs.checks import WIDE
from agnncert.graphs.perturbation import as_numbers
from agnncert_live.events import Event
from agnncert_live.nodes import Cells, Nodes, Union, grown

Array = npt.NDArray[Any]

MOST_COPIES = 1_000  # of one edge that an event can ask for
MOST_ARCS = 50_000  # that events of one batch can make by asking for copies: no batch holds up others for long


@dataclass
class Touched:
    """What a batch of events has touched so far, and how to undo it.

    Attributes:
        heads: Copies whose incoming arcs changed.
        ends: Copies at either end of a changed arc.
        features: Nodes that are new or have new features.
        born: Nodes that were added.
        died: Nodes that were added or deleted, so that they may be dead in the end.
        undo: How to undo it, step by step, the first step first.
        joined: How many arcs were made.
    """

    heads: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    features: dict[int, None] = field(default_factory=dict)
    born: dict[int, None] = field(default_factory=dict)
    died: dict[int, None] = field(default_factory=dict)
    undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = field(default_factory=list)

    joined: int = 0

    def undoes(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Notes how to undo the step that is taken next."""
        self.undo.append((function, arguments))


class Store:
    """The graph as it is.

    Attributes:
        cells: What the division does.
        nodes: Who the nodes are, and their features.
        union: Copies and arcs.
        loops: Values of self-loops that the division drops, by node; they belong to the data all the same.
        cast: Whether each copy has a vote (graph task: that of its cell).
        vote: The vote of each copy.
        stable: Whether it is beyond numerical doubt.
        close: Whether another rounding noise might decide that otherwise.
        no_edge: What each node votes without edges; with ``no_edge_stable`` and ``no_edge_close``.
    """

    def __init__(self, cells: Cells, nodes: Nodes, union: Union, kinds: dict[str, torch.dtype]) -> None:
        self.cells, self.nodes, self.union = cells, nodes, union
        self.loops: dict[int, list[dict[str, Any]]] = {}
        self.kinds = kinds  # types of numbers in the user's data, by "x" and names of edge values
        copies, slots = len(union.cell), len(nodes.alive)
        self.cast, self.stable, self.close = (np.zeros(copies, dtype=bool) for _ in range(3))
        self.vote = np.full(copies, ABSTAIN, dtype=np.int16)
        self.no_edge = np.zeros(slots, dtype=np.int16)
        self.no_edge_stable, self.no_edge_close = (np.zeros(slots, dtype=bool) for _ in range(2))
        self.pairs: Array | None = None  # how many pairs are joined in each graph, where each has a group of its own
        if cells.by_pair and cells.own_groups:
            joined = np.unique(union.cell)
            self.pairs = np.bincount(nodes.graph[joined >> 32], minlength=len(nodes.slot_of)).astype(np.float64)
        self.now = Touched()
        self.watchers: list[Callable[[int, int], None]] = []  # told before a pair changes
        self.node_watchers: list[Callable[[int, bool], None]] = []  # told of a new node, or before one changes or goes

    def apply(self, event: Event, graph: int) -> None:
        """One event, or an error and no change.

        Raises:
            GraphError: It cannot be done: says why.
        """
        if graph < 0:
            if not self.cells.on_graphs:
                raise GraphError("the event names a graph, but there is one graph only: leave it out.")
            named = "names no graph" if event.graph is None else f"names graph {event.graph}, which is not among them"
            raise GraphError(f"the event {named}: give the row of one of the {len(self.nodes.slot_of)} graphs.")
        _DOES[event.kind](self, event, graph)

    def rollback(self, mark: int = 0) -> None:
        """Undoes what was done since the batch had ``mark`` steps to undo."""
        steps = self.now.undo
        while len(steps) > mark:
            function, arguments = steps.pop()
            function(*arguments)

    def settle(self) -> Touched:
        """Ends a batch, kept or rolled back: forgets empty copies and the dead. Says what was touched."""
        done, self.now = self.now, Touched()
        dead = [node for node in done.died if not self.nodes.alive[node]]
        for node in dead:
            for copy in self.union.of_node[node].tolist():
                self._close(copy)
            self.nodes.release(node)
            self.loops.pop(node, None)
        ends = np.fromiter(done.ends, dtype=np.int64, count=len(done.ends))
        ends = ends[self.nodes.alive[self.union.node[ends]]]
        empty = ends[self.union.is_empty(ends)]
        if self.cells.at_home:
            empty = empty[~self._stays(empty)]
        for copy in empty.tolist():
            self._close(copy)
        done.died = dict.fromkeys(dead)
        return done

    def _stays(self, copies: Array) -> Array:
        """A copy in the node's own cell stays although it has no edges."""
        node, cell = self.union.node[copies].tolist(), self.union.cell[copies].tolist()
        return np.array([self.cells.of_node(self.nodes, n) == c for n, c in zip(node, cell, strict=True)], dtype=bool)

    def _open(self, cell: int, node: int) -> int:
        copy = self.union.open(cell, node)
        if copy >= len(self.cast):
            for name in ("cast", "vote", "stable", "close"):
                setattr(self, name, grown(getattr(self, name), len(self.union.cell)))
        self.cast[copy] = False
        if self.pairs is not None:
            self.pairs[self.nodes.graph[node]] += self._share(cell)
        return copy

    def _close(self, copy: int) -> None:
        if self.pairs is not None:
            self.pairs[self.nodes.graph[self.union.node[copy]]] -= self._share(int(self.union.cell[copy]))
        self.union.close(copy)

    @staticmethod
    def _share(cell: int) -> float:
        """A pair has two copies, and that of a self-loop one."""
        return 1.0 if cell >> 32 == cell & 0xFFFFFFFF else 0.5

    # What events do. Each checks everything first.

    def _find(self, graph: int, name: Id | None) -> int:
        slot = self.nodes.find(graph, name)  # type: ignore[arg-type]
        if slot is None:
            raise IdError(f"the graph has no node with id {name!r:.60}.")
        return slot

    def arcs(self, source: int, head: int) -> Array:
        """The arcs from one node to another, unless the division drops them."""
        cell = self.cells.of_arc(self.nodes, source, head)
        return self.union.between(self.union.find(cell, source), self.union.find(cell, head))

    def carried(self, u: int, v: int) -> Iterator[tuple[bool, tuple[Any, ...]]]:
        """The arcs between two nodes: whether each leads from the smaller id to the larger, and what it carries."""
        first = order_of(self.nodes.name[u]) <= order_of(self.nodes.name[v])  # type: ignore[arg-type]
        if u == v and not self.cells.keeps_loops:
            yield from ((first, tuple(plain(value) for value in one.values())) for one in self.loops.get(u, ()))
            return
        for source, head in dict.fromkeys([(u, v), (v, u)]):
            for arc in self.arcs(source, head).tolist():
                yield (source == u) == first, tuple(plain(value[arc]) for value in self.union.values.values())

    def all_arcs(self) -> tuple[Array, dict[str, Array]]:
        """The nodes that every arc joins, shape ``[2, m]``, and what it carries; dropped self-loops included."""
        union = self.union
        live = union.live_arcs()
        ends = union.node[np.stack([union.source[live], union.head[live]])].astype(np.int64)
        loops = [(node, carried) for node, listed in self.loops.items() for carried in listed]
        at = np.array([node for node, _ in loops], dtype=np.int64)
        values = {}
        for name, value in union.values.items():
            more = np.zeros((len(loops), *value.shape[1:]), dtype=value.dtype)
            for k, (_, carried) in enumerate(loops):
                more[k] = carried[name]
            values[name] = np.concatenate([value[live], more])
        return np.concatenate([ends, np.stack([at, at])], axis=1), values

    def _has(self, source: int, head: int) -> bool:
        if source == head and not self.cells.keeps_loops:
            return bool(self.loops.get(source))
        return len(self.arcs(source, head)) > 0

    def _add_edge(self, event: Event, graph: int) -> None:
        u, v = self._find(graph, event.node), self._find(graph, event.other)
        both = [(u, v)] if event.directed or u == v else [(u, v), (v, u)]
        new = [(a, b) for a, b in both if not self._has(a, b)]
        if not new:
            raise GraphError(f"cannot add the edge ({event.node!r:.60}, {event.other!r:.60}): it is there already.")
        given = 1 if event.value is None else event.value
        first = next(iter(self.union.values), None)
        if event.value is not None and first is None:
            raise GraphError("the graph has neither edge_weight nor edge_attr: an added edge takes no value.")
        carried = {name: self.edge_value(name, given if name == first else 1) for name in self.union.values}
        self._tell(u, v)
        for source, head in new:
            self._join(source, head, carried)

    def _delete_edge(self, event: Event, graph: int) -> None:
        u, v = self._find(graph, event.node), self._find(graph, event.other)
        self._require_edge(event, u, v, "delete")
        self._tell(u, v)
        self._separate(u, v)

    def _change_edge(self, event: Event, graph: int) -> None:
        u, v = self._find(graph, event.node), self._find(graph, event.other)
        self._require_edge(event, u, v, "change")
        first = next(iter(self.union.values), None)
        if first is None:
            self._set_copies(event, u, v)
            return
        value = self.edge_value(first, event.value)
        self._tell(u, v)
        for (source, head), carried in self._separate(u, v):
            self._join(source, head, {**carried, first: value})

    def _set_copies(self, event: Event, u: int, v: int) -> None:
        number = np.asarray(event.value)
        if number.shape != () or not np.isfinite(number) or number != int(number) or number < 1:
            raise GraphError(
                f"cannot give the edge ({event.node!r:.60}, {event.other!r:.60}) {event.value!r:.60} copies: expected "
                "a whole number from 1 on."
            )
        if int(number) > MOST_COPIES:
            raise GraphError(f"{int(number):,} copies of an edge are more than {MOST_COPIES:,}.")
        if self.now.joined + 2 * int(number) > MOST_ARCS:
            raise GraphError(f"a batch makes at most {MOST_ARCS:,} arcs: send the rest in another one.")
        self._tell(u, v)
        for source, head in sorted({ends for ends, _ in self._separate(u, v)}):
            for _ in range(int(number)):
                self._join(source, head, {})

    def _add_node(self, event: Event, graph: int) -> None:
        if self.nodes.find(graph, event.node) is not None:
            raise IdError(f"cannot add a node under the id {event.node!r:.60}: a living node has it.")
        living = len(self.nodes.slot_of[graph])
        if not self.nodes.with_ids[graph] and event.node != living:
            raise IdError(
                f"cannot add a node under the id {event.node!r:.60}: the graph has no node_id, so row numbers are the "
                f"ids and the next one is {living}. Use that, or give the graph ids."
            )
        row = self.feature_row(event)
        slot = self.nodes.add(graph, event.node, row)
        if len(self.nodes.alive) > len(self.no_edge):
            self.union.of_node.grow(len(self.nodes.alive))
            for name in ("no_edge", "no_edge_stable", "no_edge_close"):
                setattr(self, name, grown(getattr(self, name), len(self.nodes.alive)))
        self.nodes.home[slot] = self.cells.group_of_key(int(self.nodes.key[slot]))
        for watcher in self.node_watchers:
            watcher(slot, True)
        self.now.born[slot] = self.now.died[slot] = None  # if it is undone, it is gone like one that died
        self.now.undoes(self.nodes.hide, slot)
        if self.cells.at_home:
            copy = self._open(self.cells.of_node(self.nodes, slot), slot)
            self.now.ends.add(copy)
            self.now.heads.add(copy)
        self.now.features[slot] = None

    def _delete_node(self, event: Event, graph: int) -> None:
        slot = self._find(graph, event.node)
        if not self.nodes.with_ids[graph]:
            raise IdError(
                "cannot delete a node of a graph whose ids are row numbers: all later nodes would be renamed. Give it "
                "node_id."
            )
        if len(self.nodes.slot_of[graph]) == 1:
            raise GraphError(
                f"cannot delete the node {event.node!r:.60}: it is the last one, and a graph needs a node."
            )
        for watcher in self.node_watchers:
            watcher(slot, False)
        if self.watchers:
            for other in self.neighbours(slot).tolist():
                self._tell(slot, other)
        self._separate(slot, slot)
        copies = self.union.of_node[slot]
        arcs = np.concatenate([self.union.arriving.gather(copies)[0], self.union.leaving.gather(copies)[0]])
        for arc in arcs.tolist():  # a self-loop, which would stand here twice, is gone
            self._part(arc)
        self.nodes.hide(slot)
        self.now.undoes(self.nodes.show, slot)
        self.now.died[slot] = None
        self.now.ends.update(self.union.of_node[slot].tolist())
        if self.cells.at_home:
            self.now.heads.update(self.union.of_node[slot].tolist())

    def _change_features(self, event: Event, graph: int) -> None:
        slot = self._find(graph, event.node)
        row = self.feature_row(event)
        for watcher in self.node_watchers:
            watcher(slot, False)
        self.now.undoes(self._set_row, slot, self.nodes.x[slot].copy())
        self._set_row(slot, row)
        self.now.features[slot] = None

    def _set_row(self, slot: int, row: Array) -> None:
        self.nodes.x[slot] = row

    def neighbours(self, slot: int) -> Array:
        """Nodes that an arc joins to a node, in either direction; itself if it has a self-loop."""
        copies = self.union.of_node[slot]
        heads = self.union.node[self.union.head[self.union.leaving.gather(copies)[0]]]
        sources = self.union.node[self.union.source[self.union.arriving.gather(copies)[0]]]
        own = [slot] if self.loops.get(slot) else []
        return np.unique(np.concatenate([heads, sources, np.array(own, dtype=heads.dtype)]))

    def _require_edge(self, event: Event, u: int, v: int, what: str) -> None:
        if not self._has(u, v) and not self._has(v, u):
            raise GraphError(
                f"cannot {what} the edge ({event.node!r:.60}, {event.other!r:.60}): the graph has no such edge."
            )

    # Steps that can be undone.

    def _join(self, source: int, head: int, carried: dict[str, Any]) -> None:
        if source == head and not self.cells.keeps_loops:
            self.loops.setdefault(source, []).append(carried)
            self.now.undoes(self.loops[source].pop)
            return
        cell = self.cells.of_arc(self.nodes, source, head)
        ends = []
        for node in (source, head):
            copy = self.union.find(cell, node)
            ends.append(self._open(cell, node) if copy < 0 else copy)
        arc = self.union.join(ends[0], ends[1], carried)
        self.now.joined += 1
        self.now.undoes(self.union.part, arc)  # undone last to first, arcs find back into their slots
        self.now.ends.update(ends)
        self.now.heads.add(ends[1])

    def _separate(self, u: int, v: int) -> list[tuple[tuple[int, int], dict[str, Any]]]:
        """Removes all arcs between two nodes; says which there were, and what they carried."""
        found: list[tuple[tuple[int, int], dict[str, Any]]] = []
        if u == v and not self.cells.keeps_loops:
            old = self.loops.pop(u, [])
            self.now.undoes(self.loops.__setitem__, u, old)
            return [((u, u), carried) for carried in old]
        for source, head in dict.fromkeys([(u, v), (v, u)]):
            for arc in self.arcs(source, head).tolist():
                found.append(((source, head), self._part(arc)))
        return found

    def _part(self, arc: int) -> dict[str, Any]:
        """Removes an arc; says what it carried."""
        carried = {name: value[arc].copy() for name, value in self.union.values.items()}
        ends = int(self.union.source[arc]), int(self.union.head[arc])
        self.union.part(arc)
        self.now.undoes(self.union.join, *ends, carried)
        self.now.ends.update(ends)
        self.now.heads.add(ends[1])
        return carried

    def _tell(self, u: int, v: int) -> None:
        for watcher in self.watchers:
            watcher(min(u, v), max(u, v))

    # What is given.

    def feature_row(self, event: Event) -> Array:
        """The features of an event as the graph holds them.

        Raises:
            GraphError: They are not one row of finite numbers of the graph's width.
        """
        where = f"features of node {event.node!r:.60}"
        row = _tensor(event.value, where)
        width = self.nodes.x.shape[1]
        if row.shape != (width,):
            raise GraphError(f"{where} have shape {tuple(row.shape)}, but the graph has {width}.")
        kind = _able_to_hold(self.kinds["x"], row)
        numbers = _finite(row.to(kind), self.nodes.x.dtype, where)
        self.kinds["x"] = kind
        return numbers

    def edge_value(self, name: str, given: Any) -> Array:
        """A value of an edge as the graph holds them."""
        where = f"{name} of an edge"
        new, stored = _tensor(given, where), self.union.values[name]
        if new.dim() and tuple(new.shape) != stored.shape[1:]:
            raise GraphError(f"{where} has shape {tuple(new.shape)}, but the graph has {stored.shape[1:]}.")
        kind = _able_to_hold(self.kinds[name], new)
        dtype = np.dtype(np.float32) if kind != self.kinds[name] else stored.dtype
        numbers = np.broadcast_to(_finite(new.to(kind), dtype, where), stored.shape[1:])
        if kind != self.kinds[name]:
            self.now.undoes(self._set_values, name, self.kinds[name], stored)
            self._set_values(name, kind, stored.astype(dtype))
        return numbers

    def _set_values(self, name: str, kind: torch.dtype, values: Array) -> None:
        self.kinds[name], self.union.values[name] = kind, grown(values, len(self.union.source))


_DOES: dict[str, Callable[[Store, Event, int], None]] = {
    "add_edge": Store._add_edge,
    "delete_edge": Store._delete_edge,
    "change_edge": Store._change_edge,
    "add_node": Store._add_node,
    "delete_node": Store._delete_node,
    "change_features": Store._change_features,
}


def plain(value: Any) -> Any:
    """A value in Python's own numbers, rows as tuples, so that values of all types can be compared."""
    listed = np.asarray(value).tolist()
    return tuple(np.asarray(value).ravel().tolist()) if isinstance(listed, list) else listed


def _tensor(given: Any, where: str) -> torch.Tensor:
    try:
        value = as_numbers(given).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise GraphError(f"{where}: expected numbers, found {given!r:.60}.") from error
    if value.is_complex() or value.is_meta:
        raise GraphError(f"{where}: expected real numbers, found {value.dtype}.")
    return value.cpu()


def _able_to_hold(kind: torch.dtype, new: torch.Tensor) -> torch.dtype:
    """As ``Perturbation.apply`` does: whole numbers become floats when a number comes that is not whole."""
    whole = not new.is_floating_point() or bool((new == new.round()).all())
    return kind if kind.is_floating_point or whole else torch.float32


def _finite(value: torch.Tensor, dtype: Any, where: str) -> Array:
    wide = value if value.dtype in WIDE or not value.is_floating_point() else value.float()
    array = wide.numpy().astype(dtype)
    if not np.isfinite(array).all():
        raise GraphError(f"{where} are not finite: replace NaN and infinity.")
    return array
