"""``Store``: a graph in numbered slots with its union of subgraphs. Events are checked, applied and rolled back."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.ids import Id, encode_ids, order_of
from agnncert.certificates.votes import ABSTAIN
from agnncert.datasets.event_keys import CountedEvents
from agnncert.datasets.event_summary import Events
from agnncert.errors import DatasetError, GraphError, IdError
from agnncert.graphs.checks import WIDE
from agnncert.graphs.hashing import keys_of_encoded
from agnncert.graphs.perturbation import as_numbers
from agnncert_live.edge_rules import COUNT, KEPT_BESIDE, TOTALS, EdgeRules, swap_halves
from agnncert_live.events import AlreadyCounted, Event
from agnncert_live.nodes import NewNodes, Nodes
from agnncert_live.rows import grown
from agnncert_live.subgraphs import Subgraphs, pair_of_subgraph
from agnncert_live.union import Union

Array = npt.NDArray[Any]
EdgeValues = dict[str, Any]  # what one arc carries, by name

MOST_COPIES = 1_000  # of one edge that an event can ask for
MOST_ARCS = 50_000  # that events of one batch can make by asking for copies: no batch holds up others for long


class UndoStep(NamedTuple):
    """A call that undoes one step."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Arc(NamedTuple):
    """A directed edge: the slots of its two nodes, and what it carries."""

    source: int
    head: int
    values: EdgeValues


class DirectedValues(NamedTuple):
    """An arc between two nodes of one pair: which way it points, and what it carries in plain numbers."""

    from_smaller_id: bool
    values: tuple[Any, ...]


@dataclass
class Batch:
    """What the present batch of events has touched so far, and how to undo it.

    Attributes:
        heads: Copies whose incoming arcs changed.
        ends: Copies at either end of a changed arc.
        features: Nodes that are new or have new features, in order.
        added: Nodes that were added, in order.
        maybe_dead: Nodes that were added or deleted, so that they may be dead in the end.
        undo: How to undo it, the first step first.
        arcs_made: How many arcs were made.
    """

    heads: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    features: dict[int, None] = field(default_factory=dict)
    added: dict[int, None] = field(default_factory=dict)
    maybe_dead: dict[int, None] = field(default_factory=dict)
    undo: list[UndoStep] = field(default_factory=list)
    arcs_made: int = 0

    def undone_by(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Notes how to undo the step that is taken."""
        self.undo.append(UndoStep(function, arguments))


class Store:
    """The graph as it is, and the votes of all copies.

    Attributes:
        subgraphs: What the division does.
        nodes: The nodes and their features.
        union: Copies and arcs.
        rules: How the values of edges were made.
        dtypes: Types of numbers in the user's data, for "x" and for the names of edge values.
        loops: Values of self-loops that the division drops, by node. They belong to the data all the same.
        new_nodes: Which nodes events may add.
        counted: Events with a key that have counted.
        has_vote: Whether each copy has a vote (graph task: that of its subgraph).
        vote: The vote of each copy.
        stable: Whether it is beyond numerical doubt.
        noise_decides: Whether other rounding noise might decide that differently.
        no_edge: The prediction of each node without edges.
        no_edge_stable: Whether it is beyond numerical doubt.
        no_edge_noise_decides: Whether other rounding noise might decide that differently.
        num_pairs: How many pairs are joined in each graph, where each pair has a group of its own; else None.
        batch: The present batch.
        pair_listeners: They are told of two nodes before these are joined differently.
        node_listeners: They are told of a node that is new (True), or that is about to change or to go (False).
    """

    def __init__(self, subgraphs: Subgraphs, nodes: Nodes, union: Union, dtypes: dict[str, torch.dtype]) -> None:
        self.rules = EdgeRules()
        self.subgraphs = subgraphs
        self.nodes = nodes
        self.union = union
        self.dtypes = dtypes
        self.loops: dict[int, list[EdgeValues]] = {}
        self.new_nodes = NewNodes()
        self.counted = CountedEvents(np.empty((0, 3), dtype=np.int64))
        copies = len(union.subgraph_index)
        self.has_vote = np.zeros(copies, dtype=bool)
        self.vote = np.full(copies, ABSTAIN, dtype=np.int16)
        self.stable = np.zeros(copies, dtype=bool)
        self.noise_decides = np.zeros(copies, dtype=bool)
        slots = len(nodes.alive)
        self.no_edge = np.zeros(slots, dtype=np.int16)
        self.no_edge_stable = np.zeros(slots, dtype=bool)
        self.no_edge_noise_decides = np.zeros(slots, dtype=bool)
        self.num_pairs: Array | None = None
        if subgraphs.by_pair and subgraphs.is_per_neighbour:
            smaller_slots, _ = pair_of_subgraph(np.unique(union.subgraph_index))
            graphs = nodes.graph[smaller_slots]
            self.num_pairs = np.bincount(graphs, minlength=len(nodes.slot_of)).astype(np.float64)
        self.batch = Batch()
        self.pair_listeners: list[Callable[[int, int], None]] = []
        self.node_listeners: list[Callable[[int, bool], None]] = []

    def apply(self, event: Event, graph: int) -> None:
        """Applies one event to the graph of a number, or raises an error and changes nothing.

        Raises:
            GraphError: It cannot be done. The message says why.
            AlreadyCounted: It has counted before, by its key.
        """
        if graph < 0:
            raise GraphError(self._wrong_graph(event))
        if self.rules.events is not None and event.kind in _EVENTS_OF_EDGES:
            self._apply_event(event, graph)
            return
        if event.columns is not None:
            event = replace(event, columns=None, value=self.rules.encode(event.kind, event.columns))
        _ACTIONS[event.kind](self, event, graph)

    def _wrong_graph(self, event: Event) -> str:
        if not self.subgraphs.of_graphs:
            return "the event names a graph, but there is one graph only: leave it out."
        found = "names no graph"
        if event.graph is not None:
            found = f"names graph {event.graph}, which is not among them"
        return f"the event {found}: give the row of one of the {len(self.nodes.slot_of)} graphs."

    def rollback(self, mark: int = 0) -> None:
        """Undoes what was done since the batch had ``mark`` steps to undo."""
        steps = self.batch.undo
        while len(steps) > mark:
            step = steps.pop()
            step.function(*step.arguments)

    def end_batch(self) -> None:
        """Ends a batch, kept or rolled back: forgets copies without arcs, and the dead."""
        batch = self.batch
        self.batch = Batch()
        for node in batch.maybe_dead:
            if not self.nodes.alive[node]:
                self._forget_node(node)
        ends = np.fromiter(batch.ends, dtype=np.int64, count=len(batch.ends))
        ends = ends[self.nodes.alive[self.union.node[ends]]]
        empty = ends[self.union.is_empty(ends)]
        for copy in empty.tolist():
            if not self._is_kept_at_home(copy):
                self._remove_copy(copy)

    def _forget_node(self, node: int) -> None:
        for copy in self.union.of_node[node].tolist():
            self._remove_copy(copy)
        self.nodes.release(node)
        self.loops.pop(node, None)

    def _is_kept_at_home(self, copy: int) -> bool:
        """Whether a copy stays although it has no edges, because it lies in its node's own subgraph."""
        if not self.subgraphs.keeps_home_copies:
            return False
        home = self.subgraphs.of_node(self.nodes, int(self.union.node[copy]))
        return home == int(self.union.subgraph_index[copy])

    def _add_copy(self, subgraph: int, node: int) -> int:
        copy = self.union.add_copy(subgraph, node)
        if copy >= len(self.has_vote):
            for name in ("has_vote", "vote", "stable", "noise_decides"):
                setattr(self, name, grown(getattr(self, name), len(self.union.subgraph_index)))
        self.has_vote[copy] = False
        if self.num_pairs is not None:
            self.num_pairs[self.nodes.graph[node]] += _share_of_pair(subgraph)
        return copy

    def _remove_copy(self, copy: int) -> None:
        if self.num_pairs is not None:
            graph = self.nodes.graph[self.union.node[copy]]
            self.num_pairs[graph] -= _share_of_pair(int(self.union.subgraph_index[copy]))
        self.union.remove_copy(copy)

    # What events do. Each checks everything first.

    def _find(self, graph: int, name: Id | None) -> int:
        slot = None if name is None else self.nodes.find(graph, name)
        if slot is None:
            raise IdError(f"the graph has no node with id {name!r:.60}.")
        return slot

    def _find_pair(self, event: Event, graph: int) -> tuple[int, int]:
        return self._find(graph, event.node), self._find(graph, event.other)

    def arcs(self, source: int, head: int) -> Array:
        """Returns the arcs from one node to another, unless the division drops them."""
        subgraph = self.subgraphs.of_arc(self.nodes, source, head)
        source_copy = self.union.find_copy(subgraph, source)
        head_copy = self.union.find_copy(subgraph, head)
        return self.union.arcs_between(source_copy, head_copy)

    def values_between(self, u: int, v: int) -> Iterator[DirectedValues]:
        """Yields the arcs between two nodes in plain numbers, dropped self-loops included."""
        u_is_smaller = order_of(self.nodes.name(u)) <= order_of(self.nodes.name(v))
        if u == v and not self.subgraphs.keeps_loops:
            for carried in self.loops.get(u, ()):
                values = tuple(plain(value) for name, value in carried.items() if name not in KEPT_BESIDE)
                yield DirectedValues(u_is_smaller, values)
            return
        for source, head in dict.fromkeys([(u, v), (v, u)]):
            from_smaller_id = (source == u) == u_is_smaller
            for arc in self.arcs(source, head).tolist():
                columns = self.union.values.items()
                values = tuple(plain(column[arc]) for name, column in columns if name not in KEPT_BESIDE)
                yield DirectedValues(from_smaller_id, values)

    def all_arcs(self) -> tuple[Array, dict[str, Array]]:
        """Returns the nodes that every arc joins, shape ``[2, m]``, and what it carries; dropped loops included."""
        union = self.union
        live = union.live_arcs()
        loops = [(node, values) for node, values_of_node in self.loops.items() for values in values_of_node]
        loop_nodes = np.array([node for node, _ in loops], dtype=np.int64)
        ends = np.concatenate([union.ends(live), np.stack([loop_nodes, loop_nodes])], axis=1)
        values = {}
        for name, column in union.values.items():
            of_loops = np.zeros((len(loops), *column.shape[1:]), dtype=column.dtype)
            for k, (_, carried) in enumerate(loops):
                of_loops[k] = carried[name]
            values[name] = np.concatenate([column[live], of_loops])
        return ends, values

    def neighbours(self, slot: int) -> Array:
        """Returns the nodes that an arc joins to a node, in either direction; itself if it has a self-loop."""
        union = self.union
        copies = union.of_node[slot]
        heads = union.node[union.head[union.leaving.gather(copies)[0]]]
        sources = union.node[union.source[union.arriving.gather(copies)[0]]]
        own = [slot] if self.loops.get(slot) else []
        return np.unique(np.concatenate([heads, sources, np.array(own, dtype=heads.dtype)]))

    def _has_arc(self, source: int, head: int) -> bool:
        if source == head and not self.subgraphs.keeps_loops:
            return bool(self.loops.get(source))
        return len(self.arcs(source, head)) > 0

    def _add_edge(self, event: Event, graph: int) -> None:
        u, v = self._find_pair(event, graph)
        if self.rules.halves and u != v:
            self._add_half(event, u, v)
            return
        ways = [(u, v)]
        if not event.directed and u != v:
            ways.append((v, u))
        missing = [(source, head) for source, head in ways if not self._has_arc(source, head)]
        if not missing:
            raise GraphError(f"cannot add the edge ({event.node!r:.60}, {event.other!r:.60}): it is there already.")
        values = self._values_of_new_edge(event)
        self._tell_pair(u, v)
        for source, head in missing:
            self._add_arc(Arc(source, head, values))

    def _values_of_new_edge(self, event: Event) -> EdgeValues:
        names = list(self.union.values)
        first = self._first_value
        if event.value is not None and first is None:
            raise GraphError("the graph has neither edge_weight nor edge_attr: an added edge takes no value.")
        given = {name: 1 for name in names}
        if first is not None and event.value is not None:
            given[first] = event.value
        return {name: self.edge_value(name, value) for name, value in given.items()}

    @property
    def _first_value(self) -> str | None:
        """The name of the values that events carry: weights if there are any, else attributes; None without both."""
        return next((name for name in self.union.values if name not in KEPT_BESIDE), None)

    def _delete_edge(self, event: Event, graph: int) -> None:
        u, v = self._find_pair(event, graph)
        self._require_edge(event, u, v, "delete")
        if event.directed:
            self._delete_direction(event, u, v)
            return
        self._tell_pair(u, v)
        self._remove_arcs_between(u, v)

    def _delete_direction(self, event: Event, u: int, v: int) -> None:
        """Deletes what leads from one node to another, and leaves what leads back."""
        has_halves = self.rules.halves > 0 and u != v
        row = self._row_between(u, v)
        is_there = not self._is_half_empty(row) if has_halves else self._has_arc(u, v)
        if not is_there:
            raise GraphError(
                f"cannot delete the edge from {event.node!r:.60} to {event.other!r:.60}: none leads in this direction."
            )
        if self.rules.events is not None and not has_halves and u != v:
            raise GraphError("edges of this graph have no direction: leave out directed.")
        back = self._swapped(row)
        if has_halves and not self._is_half_empty(back):
            self._put_both(self._without_half(row))
            return
        removed = self._remove_told(u, v)
        if not has_halves:
            for arc in removed:
                if (arc.source, arc.head) != (u, v):
                    self._add_arc(arc)

    def _remove_told(self, u: int, v: int) -> list[Arc]:
        self._tell_pair(u, v)
        return self._remove_arcs_between(u, v)

    def _without_half(self, arc: Arc) -> Arc:
        """Returns an edge without the values of its own direction."""
        values = {name: value.copy() for name, value in arc.values.items()}
        values["edge_attr"][: self.rules.halves] = 0
        if COUNT in values:
            values[COUNT][: len(values[COUNT]) // 2] = 0
        if TOTALS in values:
            values[TOTALS][:] = 0
        return arc._replace(values=values)

    def _change_edge(self, event: Event, graph: int) -> None:
        u, v = self._find_pair(event, graph)
        self._require_edge(event, u, v, "change")
        first = self._first_value
        if first is None:
            self._set_copies_of_edge(event, u, v)
            return
        if self.rules.halves and u != v:
            self._change_half(event, u, v)
            return
        if event.directed and not self._has_arc(u, v):
            raise GraphError(
                f"cannot change the edge from {event.node!r:.60} to {event.other!r:.60}: none leads in this direction."
            )
        value = self.edge_value(first, event.value)
        keeps_mark = self._lacks_mark(first, _tensor(event.value, "the value of an edge"))
        self._tell_pair(u, v)
        for arc in self._remove_arcs_between(u, v):
            if event.directed and (arc.source, arc.head) != (u, v):
                self._add_arc(arc)
                continue
            new = np.array(value)
            if keeps_mark:
                new[-1] = arc.values[first][-1]
            self._add_arc(arc._replace(values={**arc.values, first: new}))

    # Rows that hold both directions: the values of one's own direction, then those of the other one.

    def _row_between(self, u: int, v: int) -> Arc:
        """Returns the edge from one node to another; zeros if the two are not joined."""
        arcs = self.arcs(u, v)
        if len(arcs):
            return Arc(u, v, {name: column[arcs[0]].copy() for name, column in self.union.values.items()})
        zeros = {name: np.zeros(column.shape[1:], dtype=column.dtype) for name, column in self.union.values.items()}
        return Arc(u, v, zeros)

    def _is_half_empty(self, arc: Arc) -> bool:
        if TOTALS in arc.values:
            return bool(arc.values[TOTALS][0] == 0)  # the number of events
        half = arc.values["edge_attr"][: self.rules.halves]
        return not half.any() and not (COUNT in arc.values and arc.values[COUNT][0])

    def _row_or_half(self, event: Event, old: Arc) -> Array:
        """Returns the whole row of an edge after an event that has the values of one direction, or of both."""
        halves = self.rules.halves
        row = old.values["edge_attr"].copy()
        given = 1 if event.value is None else event.value
        value = _tensor(given, "edge_attr of an edge")
        if tuple(value.shape) in ((), (halves,)):
            half = _finite(value.to(self.dtypes["edge_attr"]), row.dtype, "edge_attr of an edge")
            row[:halves] = half
            return np.asarray(row)
        return np.array(self.edge_value("edge_attr", given))

    def _add_half(self, event: Event, u: int, v: int) -> None:
        old = self._row_between(u, v)
        is_whole_row = event.value is not None and np.size(event.value) > self.rules.halves
        is_there = self._has_arc(u, v) if is_whole_row else not self._is_half_empty(old)
        if is_there:
            raise GraphError(f"cannot add the edge ({event.node!r:.60}, {event.other!r:.60}): it is there already.")
        values = {**old.values, "edge_attr": self._row_or_half(event, old)}
        if COUNT in values:
            values[COUNT] = self._counts_after(old, is_whole_row)
        self._put_both(Arc(u, v, values))

    def _counts_after(self, old: Arc, is_whole_row: bool) -> Array:
        counts = old.values[COUNT].copy()
        counts[0] = 1
        if is_whole_row:
            counts[1] = 1
        return np.asarray(counts)

    def _change_half(self, event: Event, u: int, v: int) -> None:
        old = self._row_between(u, v)
        self._put_both(old._replace(values={**old.values, "edge_attr": self._row_or_half(event, old)}))

    def _put_both(self, arc: Arc) -> None:
        """Writes an edge and the edge of the other direction, whose halves are swapped."""
        back = self._swapped(arc)
        self._remove_told(arc.source, arc.head)
        self._add_arc(arc)
        self._add_arc(back)

    def _swapped(self, arc: Arc) -> Arc:
        """Returns the edge of the other direction: the same values, with the halves of rows exchanged.

        What events add up to is kept of each direction by itself, and stays as it is.
        """
        values = dict(arc.values)
        if self.rules.halves:
            values["edge_attr"] = swap_halves(arc.values["edge_attr"], self.rules.halves)
            if COUNT in values:
                values[COUNT] = swap_halves(values[COUNT], len(values[COUNT]) // 2)
            if TOTALS in values:
                values[TOTALS] = self._row_between(arc.head, arc.source).values[TOTALS]
        return Arc(arc.head, arc.source, values)

    # Edges that stand for events: their values are computed from what the events add up to.

    def _apply_event(self, event: Event, graph: int) -> None:
        """Adds an event to an edge, or has it take the place of all earlier ones of its direction (change_edge)."""
        summary = self.rules.events
        assert summary is not None
        if event.columns is None:
            names = summary.column_names
            raise GraphError(
                f"edges of this graph stand for events: send the columns of the event ({', '.join(names[:5])}) instead "
                "of a value."
            )
        if event.node == event.other:
            raise GraphError(f"cannot join the node {event.node!r:.60} with itself: such events are left out.")
        read = self.rules.read_event(event.columns)
        self._count_once(event, read)
        u, v = self._find_or_add_pair(event, graph) if event.kind == "record_edge" else self._find_pair(event, graph)
        self._require_room(event, u, v)
        self._put_event(read, u, v, keeps_earlier=event.kind != "change_edge")

    def _count_once(self, event: Event, read: Events) -> None:
        """Notes the key of an event.

        Raises:
            AlreadyCounted: It has counted.
            GraphError: Another event has this key.
        """
        summary = self.rules.events
        assert summary is not None
        assert event.columns is not None
        key = self.rules.key_of(event.columns)
        if key is None:
            return
        names = [name for name in (event.node, event.other) if name is not None]
        ends = keys_of_encoded(encode_ids(names)).view(np.int64).reshape(2, 1)
        digest = int(summary.digests(read, ends)[0])
        before = self.counted.find(key)
        if before == digest:
            raise AlreadyCounted(f"the event {key!r:.60} has counted already.")
        if before is not None:
            raise GraphError(
                f"the event {key!r:.60} has counted already, and said something else: a key stands for one event. Send "
                "a correction under a key of its own."
            )
        self.counted.add(key, digest)
        self.batch.undone_by(self.counted.remove, key)

    def _require_room(self, event: Event, u: int, v: int) -> None:
        """Refuses an event of a trusted pair, an edge that is to be added and is there, or to be changed and is not."""
        if event.kind == "change_edge":
            self._require_edge(event, u, v, "change")
            return
        if event.kind == "add_edge" and not self._is_half_empty(self._row_between(u, v)):
            raise GraphError(f"cannot add the edge ({event.node!r:.60}, {event.other!r:.60}): it is there already.")
        if event.kind == "record_edge":
            self._refuse_trusted(u, v)

    def _refuse_trusted(self, u: int, v: int) -> None:
        if self._is_trusted(u, v) or self._is_trusted(v, u):
            raise GraphError("the pair is trusted: rows that join it again are left out, as in training.")

    def _put_event(self, read: Events, u: int, v: int, *, keeps_earlier: bool) -> None:
        summary = self.rules.events
        assert summary is not None
        old = self._row_between(u, v)
        before = old.values[TOTALS] if keeps_earlier else np.zeros_like(old.values[TOTALS])
        try:
            totals = summary.with_event(before, read)
        except DatasetError as error:
            raise GraphError(str(error)) from error
        attributes = old.values["edge_attr"].copy()
        attributes[: summary.width] = _finite(
            torch.from_numpy(summary.edge_values(totals)), attributes.dtype, "edge_attr of an edge"
        )
        self._put_both(old._replace(values={**old.values, TOTALS: totals, "edge_attr": attributes}))

    def _find_or_add_pair(self, event: Event, graph: int) -> tuple[int, int]:
        """Returns the nodes of an event. Nodes that nobody has named before are added, as in training."""
        row = self.rules.unlisted_row
        if row is not None:
            for name in (event.node, event.other):
                if name is not None and self.nodes.find(graph, name) is None:
                    self._add_node(Event("add_node", name, value=row), graph)
        return self._find_pair(event, graph)

    # One more row of a table of edges.

    def _record_edge(self, event: Event, graph: int) -> None:
        if event.node == event.other:
            raise GraphError(f"cannot record an edge of the node {event.node!r:.60} with itself.")
        u, v = self._find_or_add_pair(event, graph)
        self._refuse_trusted(u, v)
        if self._first_value is not None and event.value is None:
            raise GraphError("an event record_edge needs a value, or columns: edges of this graph have values.")
        if self.rules.halves:
            self._record_half(event, u, v)
            return
        ways = [(u, v)] if event.directed else [(u, v), (v, u)]
        values = self._values_of_new_edge(event)
        recorded = [self._recorded(source, head, values) for source, head in ways]
        self._tell_pair(u, v)
        for arc in recorded:
            for slot in self.arcs(arc.source, arc.head).tolist():
                self._remove_arc(slot)
            self._add_arc(arc)

    def _is_trusted(self, source: int, head: int) -> bool:
        if not self.rules.has_mark:
            return False
        marks = self.union.values["edge_attr"][self.arcs(source, head), -1]
        return bool((marks > 0).any())

    def _recorded(self, source: int, head: int, values: EdgeValues) -> Arc:
        """Returns an edge after one more row of the table."""
        arcs = self.arcs(source, head)
        if len(arcs) > 1:
            raise GraphError(f"there are {len(arcs)} copies of the edge, so no row can be combined with it.")
        first = self._first_value
        if not len(arcs) or first is None:
            return Arc(source, head, values)
        old = {name: column[arcs[0]].copy() for name, column in self.union.values.items()}
        count = float(old[COUNT]) if COUNT in old else math.nan
        combined = {**old, first: self.rules.combine(np.asarray(old[first]), count, np.asarray(values[first]))}
        if COUNT in old:
            combined[COUNT] = old[COUNT] + 1
        return Arc(source, head, combined)

    def _record_half(self, event: Event, u: int, v: int) -> None:
        old = self._row_between(u, v)
        if np.size(event.value) > self.rules.halves:
            raise GraphError("an event record_edge has the values of one direction, from node to other.")
        if self._is_half_empty(old):
            self._add_half(event, u, v)
            return
        halves = self.rules.halves
        new = self._row_or_half(event, old)[:halves]
        row = old.values["edge_attr"].copy()
        values = {**old.values, "edge_attr": row}
        count = math.nan
        if COUNT in values:
            count = float(old.values[COUNT][0])
            values[COUNT] = old.values[COUNT] + np.array([1, 0], dtype=old.values[COUNT].dtype)
        row[:halves] = self.rules.combine(row[:halves], count, new)
        self._put_both(Arc(u, v, values))

    def _set_copies_of_edge(self, event: Event, u: int, v: int) -> None:
        number = _tensor(event.value, "the number of copies of an edge").numpy()
        if number.shape != () or not np.isfinite(number) or number != int(number) or number < 1:
            raise GraphError(
                f"cannot give the edge ({event.node!r:.60}, {event.other!r:.60}) {event.value!r:.60} copies: expected "
                "a whole number from 1 on."
            )
        if int(number) > MOST_COPIES:
            raise GraphError(f"{int(number):,} copies of an edge are more than {MOST_COPIES:,}.")
        if self.batch.arcs_made + 2 * int(number) > MOST_ARCS:
            raise GraphError(f"a batch makes at most {MOST_ARCS:,} arcs: send the rest in another one.")
        self._tell_pair(u, v)
        ways = sorted({(arc.source, arc.head) for arc in self._remove_arcs_between(u, v)})
        for source, head in ways:
            for _ in range(int(number)):
                self._add_arc(Arc(source, head, {}))

    def _add_node(self, event: Event, graph: int) -> None:
        self._require_new_id(event, graph)
        row = self.feature_row(event)
        slot = self.nodes.add(graph, event.node, row)
        if len(self.nodes.alive) > len(self.no_edge):
            self.union.of_node.grow(len(self.nodes.alive))
            for name in ("no_edge", "no_edge_stable", "no_edge_noise_decides"):
                setattr(self, name, grown(getattr(self, name), len(self.nodes.alive)))
        self.nodes.home[slot] = self.subgraphs.group_of_key(int(self.nodes.key[slot]))
        for listener in self.node_listeners:
            listener(slot, True)
        self.batch.added[slot] = None
        self.batch.maybe_dead[slot] = None  # if it is undone, it is gone like a deleted one
        self.batch.undone_by(self.nodes.hide, slot)
        if self.subgraphs.keeps_home_copies:
            copy = self._add_copy(self.subgraphs.of_node(self.nodes, slot), slot)
            self.batch.ends.add(copy)
            self.batch.heads.add(copy)
        self.batch.features[slot] = None

    def _require_new_id(self, event: Event, graph: int) -> None:
        self.new_nodes.require(event.node)
        if self.nodes.find(graph, event.node) is not None:
            raise IdError(f"cannot add a node under the id {event.node!r:.60}: a living node has it.")
        living = len(self.nodes.slot_of[graph])
        if not self.nodes.with_ids[graph] and event.node != living:
            raise IdError(
                f"cannot add a node under the id {event.node!r:.60}: the graph has no node_id, so row numbers are the "
                f"ids and the next one is {living}. Use that, or give the graph ids."
            )

    def _delete_node(self, event: Event, graph: int) -> None:
        slot = self._find(graph, event.node)
        self._require_deletable(event, graph)
        for listener in self.node_listeners:
            listener(slot, False)
        if self.pair_listeners:
            for neighbour in self.neighbours(slot).tolist():
                self._tell_pair(slot, neighbour)
        self._remove_arcs_between(slot, slot)
        copies = self.union.of_node[slot]
        arriving = self.union.arriving.gather(copies)[0]
        leaving = self.union.leaving.gather(copies)[0]
        for arc in np.concatenate([arriving, leaving]).tolist():  # a self-loop, which would stand here twice, is gone
            self._remove_arc(arc)
        self.nodes.hide(slot)
        self.batch.undone_by(self.nodes.show, slot)
        self.batch.maybe_dead[slot] = None
        self.batch.ends.update(self.union.of_node[slot].tolist())
        if self.subgraphs.keeps_home_copies:
            self.batch.heads.update(self.union.of_node[slot].tolist())

    def _require_deletable(self, event: Event, graph: int) -> None:
        if not self.nodes.with_ids[graph]:
            raise IdError(
                "cannot delete a node of a graph whose ids are row numbers: all later nodes would be renamed. Give it "
                "node_id."
            )
        if len(self.nodes.slot_of[graph]) == 1:
            raise GraphError(
                f"cannot delete the node {event.node!r:.60}: it is the last one, and a graph needs a node."
            )

    def _change_features(self, event: Event, graph: int) -> None:
        slot = self._find(graph, event.node)
        row = self.feature_row(event)
        for listener in self.node_listeners:
            listener(slot, False)
        self.batch.undone_by(self._set_row, slot, self.nodes.x[slot].copy())
        self._set_row(slot, row)
        self.batch.features[slot] = None

    def _set_row(self, slot: int, row: Array) -> None:
        self.nodes.x[slot] = row

    def _require_edge(self, event: Event, u: int, v: int, verb: str) -> None:
        if not self._has_arc(u, v) and not self._has_arc(v, u):
            raise GraphError(
                f"cannot {verb} the edge ({event.node!r:.60}, {event.other!r:.60}): the graph has no such edge."
            )

    # Steps that can be undone.

    def _add_arc(self, arc: Arc) -> None:
        if arc.source == arc.head and not self.subgraphs.keeps_loops:
            self.loops.setdefault(arc.source, []).append(arc.values)
            self.batch.undone_by(self.loops[arc.source].pop)
            return
        subgraph = self.subgraphs.of_arc(self.nodes, arc.source, arc.head)
        source_copy = self._copy_in(subgraph, arc.source)
        head_copy = self._copy_in(subgraph, arc.head)
        slot = self.union.add_arc(source_copy, head_copy, arc.values)
        self.batch.arcs_made += 1
        self.batch.undone_by(self.union.remove_arc, slot)  # undone last to first, arcs find back into their slots
        self.batch.ends.update((source_copy, head_copy))
        self.batch.heads.add(head_copy)

    def _copy_in(self, subgraph: int, node: int) -> int:
        copy = self.union.find_copy(subgraph, node)
        if copy < 0:
            return self._add_copy(subgraph, node)
        return copy

    def _remove_arcs_between(self, u: int, v: int) -> list[Arc]:
        """Removes all arcs between two nodes, and returns them."""
        if u == v and not self.subgraphs.keeps_loops:
            loops = self.loops.pop(u, [])
            self.batch.undone_by(self.loops.__setitem__, u, loops)
            return [Arc(u, u, values) for values in loops]
        removed = []
        for source, head in dict.fromkeys([(u, v), (v, u)]):
            for arc in self.arcs(source, head).tolist():
                removed.append(Arc(source, head, self._remove_arc(arc)))
        return removed

    def _remove_arc(self, arc: int) -> EdgeValues:
        """Removes an arc, and returns what it carried."""
        values = {name: column[arc].copy() for name, column in self.union.values.items()}
        source = int(self.union.source[arc])
        head = int(self.union.head[arc])
        self.union.remove_arc(arc)
        self.batch.undone_by(self.union.add_arc, source, head, values)
        self.batch.ends.update((source, head))
        self.batch.heads.add(head)
        return values

    def _tell_pair(self, u: int, v: int) -> None:
        for listener in self.pair_listeners:
            listener(min(u, v), max(u, v))

    # Values that events carry.

    def feature_row(self, event: Event) -> Array:
        """Returns the features of an event as the graph holds them.

        Raises:
            GraphError: They are not one row of finite numbers of the graph's width.
        """
        where = f"features of node {event.node!r:.60}"
        row = _tensor(event.value, where)
        width = self.nodes.x.shape[1]
        if row.shape != (width,):
            raise GraphError(f"{where} have shape {tuple(row.shape)}, but the graph has {width}.")
        dtype = _dtype_that_holds(self.dtypes["x"], row)
        numbers = _finite(row.to(dtype), self.nodes.x.dtype, where)
        self.dtypes["x"] = dtype
        return numbers

    def edge_value(self, name: str, given: Any) -> Array:
        """Returns a value of an edge as the graph holds it.

        Raises:
            GraphError: It is no finite number, or no row of the right width.
        """
        where = f"{name} of an edge"
        value = _tensor(given, where)
        column = self.union.values[name]
        if self._lacks_mark(name, value):
            value = torch.cat([value, value.new_zeros(1)])
        if value.dim() and tuple(value.shape) != column.shape[1:]:
            raise GraphError(f"{where} has shape {tuple(value.shape)}, but the graph has {column.shape[1:]}.")
        old_dtype = self.dtypes[name]
        dtype = _dtype_that_holds(old_dtype, value)
        array_dtype = column.dtype if dtype == old_dtype else np.dtype(np.float32)
        numbers = np.broadcast_to(_finite(value.to(dtype), array_dtype, where), column.shape[1:])
        if dtype != old_dtype:
            self.batch.undone_by(self._set_column, name, old_dtype, column)
            self._set_column(name, dtype, column.astype(array_dtype))
        return numbers

    def _lacks_mark(self, name: str, value: torch.Tensor) -> bool:
        """Whether a row of attributes does not say whether the edge is trusted."""
        width = self.union.values[name].shape[-1]
        return self.rules.has_mark and name == "edge_attr" and tuple(value.shape) == (width - 1,)

    def _set_column(self, name: str, dtype: torch.dtype, column: Array) -> None:
        self.dtypes[name] = dtype
        self.union.values[name] = grown(column, len(self.union.source))


_EVENTS_OF_EDGES = ("add_edge", "change_edge", "record_edge")
_ACTIONS: dict[str, Callable[[Store, Event, int], None]] = {
    "add_edge": Store._add_edge,
    "delete_edge": Store._delete_edge,
    "change_edge": Store._change_edge,
    "record_edge": Store._record_edge,
    "add_node": Store._add_node,
    "delete_node": Store._delete_node,
    "change_features": Store._change_features,
}


def _share_of_pair(subgraph: int) -> float:
    """Returns the part of a pair that one copy stands for: a pair has two copies, and that of a self-loop one."""
    smaller, larger = pair_of_subgraph(np.asarray(subgraph))
    return 1.0 if smaller == larger else 0.5


def plain(value: Any) -> Any:
    """Returns a value in Python's own numbers, rows as tuples, so that values of all types can be compared."""
    array = np.asarray(value)
    if array.ndim:
        return tuple(array.ravel().tolist())
    return array.item()


def _tensor(given: Any, where: str) -> torch.Tensor:
    try:
        value = as_numbers(given).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise GraphError(f"{where}: expected numbers, found {given!r:.60}.") from error
    if value.is_complex() or value.is_meta:
        raise GraphError(f"{where}: expected real numbers, found {value.dtype}.")
    return value.cpu()


def _dtype_that_holds(dtype: torch.dtype, value: torch.Tensor) -> torch.dtype:
    """Returns the type as ``Perturbation.apply`` does: whole numbers become floats for a number that is not whole."""
    is_whole = not value.is_floating_point() or bool((value == value.round()).all())
    if dtype.is_floating_point or is_whole:
        return dtype
    return torch.float32


def _finite(value: torch.Tensor, dtype: Any, where: str) -> Array:
    needs_float = value.is_floating_point() and value.dtype not in WIDE
    wide = value.float() if needs_float else value
    array = wide.numpy().astype(dtype)
    if not np.isfinite(array).all():
        raise GraphError(f"{where} are not finite: replace NaN and infinity.")
    return array
