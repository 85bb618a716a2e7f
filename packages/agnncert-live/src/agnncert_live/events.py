"""Events (single changes of a graph, in node ids), and the result of applying them.

A :class:`~agnncert.graphs.perturbation.Perturbation` stands for several events, in the order in which it applies them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from agnncert.certificates.ids import Id, encode_id
from agnncert.errors import AgnncertError, GraphError, did_you_mean
from agnncert.graphs.perturbation import Perturbation, as_numbers

KINDS = ("add_edge", "delete_edge", "change_edge", "record_edge", "add_node", "delete_node", "change_features")
_KINDS_OF_EDGES = KINDS[:4]
_WITH_DIRECTION = _KINDS_OF_EDGES
_WITHOUT_VALUE = ("delete_edge", "delete_node")
_NEED_VALUE = ("change_edge", "add_node", "change_features")


@dataclass(frozen=True)
class Event:
    """One change. ``Event.from_json`` and ``to_json`` are its form in streams and journals.

    Attributes:
        kind: ``"add_edge"``, ``"delete_edge"``, ``"change_edge"``, ``"record_edge"``, ``"add_node"``,
            ``"delete_node"`` or ``"change_features"``. ``record_edge`` is one more row of a table of edges, such as a
            payment: the edge is added or, if it is there, its values are combined with the new ones as in training.
        node: Id of the node, or of one end of the edge.
        other: Id of the other end.
        value: ``add_edge``, ``change_edge`` and ``record_edge``: its weight or attribute row (1 when not given), or, on
            a graph with neither, ``change_edge``'s number of copies. ``add_node`` and ``change_features``: the feature
            row. On a graph whose rows hold both directions, the values of one direction are those of
            ``node -> other``, and a whole row is the one of ``node -> other``.
        directed: Kinds of edges: only ``node -> other`` instead of both directions. ``delete_edge`` on a graph whose
            rows hold both directions then clears the values of ``node -> other``, and deletes the edge if the other
            direction has none.
        graph: Row of the graph in a set of graphs; None for the one graph of a node task.
        columns: Instead of ``value``: entries by the names of the table's columns, which the encoding of the training
            table turns into values. Where edges stand for events with keys, the key is one of them, and an event
            whose key has counted changes nothing.

    Example:
        >>> Event("add_edge", 7, "alice").to_json()
        {'kind': 'add_edge', 'node': 7, 'other': 'alice'}
        >>> Event.from_json({"kind": "add_edge", "node": "7", "other": "alice"}) == Event("add_edge", 7, "alice")
        True
    """

    kind: str
    node: Id
    other: Id | None = None
    value: Any = None
    directed: bool = False
    graph: int | None = None
    columns: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise GraphError(f"unknown kind of event {self.kind!r:.60}: {did_you_mean(str(self.kind)[:40], KINDS)}")
        self._require_nodes()
        self._require_value()
        if not isinstance(self.directed, bool) or (self.directed and self.kind not in _WITH_DIRECTION):
            kinds = ", ".join(_WITH_DIRECTION)
            raise GraphError(f"directed={self.directed!r:.60}: expected True or False, and True for {kinds} alone.")
        is_row = isinstance(self.graph, int) and not isinstance(self.graph, bool)
        if self.graph is not None and not is_row:
            raise GraphError(f"graph={self.graph!r:.60}: expected the row of a graph.")

    def _require_nodes(self) -> None:
        object.__setattr__(self, "node", encode_id(self.node))
        if self.kind in _KINDS_OF_EDGES:
            if self.other is None:
                raise GraphError(f"an event {self.kind} is about two nodes, node and other.")
            object.__setattr__(self, "other", encode_id(self.other))
        elif self.other is not None:
            raise GraphError(f"an event {self.kind} is about one node.")

    def _require_value(self) -> None:
        has_value = self.value is not None or self.columns is not None
        if has_value and self.kind in _WITHOUT_VALUE:
            raise GraphError(f"an event {self.kind} has no value.")
        if not has_value and self.kind in _NEED_VALUE:
            raise GraphError(f"an event {self.kind} needs a value.")
        if self.value is not None and self.columns is not None:
            raise GraphError("an event has a value or columns, not both.")
        if self.columns is not None and not _is_columns(self.columns):
            raise GraphError("the columns of an event are numbers, texts or null, by the names of columns.")

    def to_json(self) -> dict[str, Any]:
        """Returns this event as JSON. Default values are left out."""
        stated: dict[str, Any] = {"kind": self.kind, "node": self.node}
        if self.other is not None:
            stated["other"] = self.other
        if self.value is not None:
            stated["value"] = as_numbers(self.value).tolist()
        if self.directed:
            stated["directed"] = True
        if self.graph is not None:
            stated["graph"] = self.graph
        if self.columns is not None:
            stated["columns"] = dict(self.columns)
        return stated

    @classmethod
    def from_json(cls, stated: Any) -> "Event":
        """Returns the event that a JSON object describes, which is not trusted.

        Raises:
            GraphError: It describes none. The message says why.
        """
        if not isinstance(stated, Mapping):
            raise GraphError(f"an event is a JSON object, found {type(stated).__name__}.")
        for name in stated:
            if name not in cls.__dataclass_fields__:
                hint = did_you_mean(str(name)[:40], cls.__dataclass_fields__)
                raise GraphError(f"an event has no {name!r:.60}: {hint}")
        for name in ("kind", "node"):
            if name not in stated:
                raise GraphError(f"an event needs {name!r}.")
        value = stated.get("value")
        if value is not None and not _is_numbers(value):
            raise GraphError("the value of an event is a number, or a list of numbers.")
        return cls(**dict(stated))


def events_of(changes: Any, graph: int | None = None) -> Iterator[Event]:
    """Yields single events, in order, out of a perturbation, an event, or several of either."""
    if isinstance(changes, Event):
        yield changes
    elif isinstance(changes, Perturbation):
        yield from _events_of_perturbation(changes, graph)
    elif isinstance(changes, Iterable) and not isinstance(changes, (str, bytes, Mapping)):
        for change in changes:
            if not isinstance(change, (Event, Perturbation)):
                raise GraphError(f"expected an Event or a Perturbation, found a {type(change).__name__}.")
            yield from events_of(change, graph)
    else:
        raise GraphError(f"expected a Perturbation, an Event or several, found a {type(changes).__name__}.")


def _events_of_perturbation(change: Perturbation, graph: int | None) -> Iterator[Event]:
    """Yields the changes of a perturbation in the order of ``Perturbation.apply``."""
    if change.added_values:
        raise GraphError('a live graph is told what an added edge carries by Event("add_edge", u, v, value).')
    for node, row in change.change_features.items():
        yield Event("change_features", node, value=row, graph=graph)
    for u, v, value in change.change_edges:
        yield Event("change_edge", u, v, value, graph=graph)
    for u, v in change.delete_edges:
        yield Event("delete_edge", u, v, graph=graph)
    for node in change.delete_nodes:
        yield Event("delete_node", node, graph=graph)
    for node, row in change.inject_nodes.items():
        yield Event("add_node", node, value=row, graph=graph)
    for u, v in change.add_edges:
        yield Event("add_edge", u, v, directed=change.directed, graph=graph)


def _is_numbers(value: Any, levels: int = 4) -> bool:
    """Whether a value is a number, or a list of numbers that is at most ``levels`` lists deep."""
    if isinstance(value, list):
        return levels > 0 and all(_is_numbers(entry, levels - 1) for entry in value)
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_columns(columns: Any) -> bool:
    """Whether columns are numbers, texts or nothing, by names."""
    if not isinstance(columns, Mapping):
        return False
    are_names = all(isinstance(name, str) for name in columns)
    return are_names and all(entry is None or isinstance(entry, str | int | float) for entry in columns.values())


class AlreadyCounted(AgnncertError):  # noqa: N818 - reads as a statement where it is raised
    """An event that has counted already, by its key: it changes nothing, and is no mistake."""


@dataclass(frozen=True)
class Refused:
    """An event that was refused: its place in the batch, and why."""

    index: int
    event: Event
    reason: str


@dataclass(frozen=True)
class Moved:
    """A target whose label or radius is another than before a batch.

    Attributes:
        target: Its id (graph task: its row).
        label: Label before and after; None before if the target is new.
        radius: Radius before and after; None before if the target is new.
    """

    target: Id
    label: tuple[int | None, int]
    radius: tuple[int | None, int]

    @property
    def flipped(self) -> bool:
        """Whether the label is another."""
        before, after = self.label
        return before is not None and before != after

    def to_json(self, class_names: Sequence[str] | None) -> dict[str, Any]:
        """Returns what moved as JSON values, with names of classes if there are any."""
        labels = [None if label is None else class_name(label, class_names) for label in self.label]
        return {"target": self.target, "label": labels, "radius": list(self.radius), "flipped": self.flipped}

    def fell_below(self, threshold: float) -> bool:
        """Whether the radius was at or above a threshold (or the target was not there) and is now below it."""
        before, after = self.radius
        return after < threshold and (before is None or before >= threshold)


@dataclass(frozen=True)
class Applied:
    """What became of a batch.

    Attributes:
        number: How many events have been applied since the live graph began, this batch included.
        events: How many events of this batch were applied.
        repeated: Whether a batch of this id had been acknowledged before: nothing was done now. The other fields then
            say what the batch did when it was applied, if it is one of the last 100, also after a restart.
        moved: Targets whose label or radius changed, new ones included.
        gone: Ids of targets that were deleted.
        refused: Events that were left out, and why.
        known: How many events had counted before, by their keys. They changed nothing.
    """

    number: int
    events: int
    repeated: bool = False
    moved: tuple[Moved, ...] = ()
    gone: tuple[Id, ...] = ()
    refused: tuple[Refused, ...] = ()
    known: int = 0

    @property
    def flipped(self) -> tuple[Moved, ...]:
        """Targets whose label is another than before."""
        return tuple(moved for moved in self.moved if moved.flipped)

    def fell_below(self, threshold: float) -> tuple[Moved, ...]:
        """Targets whose radius is below a threshold now and was not before."""
        return tuple(moved for moved in self.moved if moved.fell_below(threshold))

    def alerts(self, threshold: float) -> tuple[Moved, ...]:
        """Targets whose label flipped or whose radius fell below a threshold, each once."""
        by_target = {moved.target: moved for moved in (*self.fell_below(threshold), *self.flipped)}
        return tuple(by_target.values())


def class_name(label: int, class_names: Sequence[str] | None) -> str | int:
    """Returns the name of a class, or its number if it has no name."""
    return class_names[label] if class_names and label < len(class_names) else label


def joined(parts: Sequence[Applied]) -> Applied:
    """Returns what became of a batch that was applied in parts."""
    if len(parts) == 1:
        return parts[0]
    moved: dict[Id, Moved] = {}
    for each in (each for part in parts for each in part.moved):
        first = moved.get(each.target, each)
        moved[each.target] = Moved(each.target, (first.label[0], each.label[1]), (first.radius[0], each.radius[1]))
    gone = tuple(name for part in parts for name in part.gone)
    return Applied(
        number=parts[-1].number,
        events=sum(part.events for part in parts),
        moved=tuple(
            each for each in moved.values() if each.label[0] != each.label[1] or each.radius[0] != each.radius[1]
        ),
        gone=gone,
        refused=tuple(refused for part in parts for refused in part.refused),
        known=sum(part.known for part in parts),
    )
