"""Events from elsewhere: change data capture of Neo4j, and a Kafka topic."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agnncert.certificates.ids import Id
from agnncert.errors import GraphError
from agnncert_live.events import Applied, Event
from agnncert_live.graph import LiveGraph

log = logging.getLogger(__name__)


class Neo4jChanges:
    """Turns change events of Neo4j into events of a live graph.

    The form is that of ``db.cdc.query`` in Neo4j 5.15 or newer with ``captureMode`` ``FULL``: ``event`` has
    ``eventType`` ``"n"`` or ``"r"``, ``operation`` ``"c"``, ``"u"`` or ``"d"``, ``keys``, and ``state`` before and
    after. Nodes are known by a property with a node key constraint, because the database may use an ``elementId`` again
    for another node. A pair of nodes is one edge, so two nodes should have one relationship of these types at most.

    Args:
        key: The property that is the id of a node in the live graph. It must be part of a node key.
        features: Properties of nodes that are their features, in the order of the columns.
        values: Properties of relationships that are the values of an edge; none if edges have no values.
        directed: Whether an edge carries messages from its start to its end only.
        types: Types of relationships that are edges; all when not given. Others are ignored.

    Example:
        >>> read = Neo4jChanges(key="id", features=["age"])
        >>> ends = {"start": {"keys": {"User": [{"id": "ann"}]}}, "end": {"keys": {"User": [{"id": "bob"}]}}}
        >>> change = {"eventType": "r", "operation": "c", "type": "FOLLOWS", "keys": [], **ends,
        ...           "state": {"before": None, "after": {"properties": {}}}}
        >>> read({"id": "A3x", "txId": 12, "seq": 0, "event": change})
        [Event(kind='add_edge', node='ann', other='bob', value=None, directed=False, graph=None)]
    """

    def __init__(
        self,
        key: str,
        features: Sequence[str],
        values: Sequence[str] = (),
        *,
        directed: bool = False,
        types: Iterable[str] | None = None,
    ) -> None:
        self.key, self.features, self.values, self.directed = key, list(features), list(values), directed
        self.types = None if types is None else set(types)

    def __call__(self, message: Any) -> list[Event]:
        """The events of one change; none if it alters nothing that the live graph knows.

        Raises:
            GraphError: It is not a change event, or lacks the key or a property.
        """
        try:
            change = message["event"]
            kind, operation = change["eventType"], change["operation"]
            before, after = change["state"]["before"], change["state"]["after"]
            if kind == "n":
                return self._node(self._id(change), operation, before, after)
            if kind == "r":
                if self.types is not None and change["type"] not in self.types:
                    return []
                return self._edge(self._id(change["start"]), self._id(change["end"]), operation, before, after)
        except (KeyError, TypeError, AttributeError) as error:
            raise GraphError(
                f"this is no change event of Neo4j: {error!s:.100} is missing or of another kind."
            ) from None
        raise GraphError(f"a change event of Neo4j is about a node or a relationship, not {kind!r:.60}.")

    def _id(self, entity: Mapping[str, Any]) -> Id:
        for keys in entity["keys"].values():
            for one in keys:
                if self.key in one:
                    known: Id = one[self.key]
                    return known
        raise GraphError(
            f"a node has no key {self.key!r}: CREATE CONSTRAINT FOR (n:LABEL) REQUIRE n.{self.key} IS NODE KEY."
        )

    def _node(self, node: Id, operation: str, before: Any, after: Any) -> list[Event]:
        if operation == "d":
            return [Event("delete_node", node)]
        row = self._row(after["properties"], self.features)
        if operation == "c":
            return [Event("add_node", node, value=row)]
        same = operation == "u" and row == self._row(before["properties"], self.features)
        return [] if same else [Event("change_features", node, value=row)]

    def _edge(self, start: Id, end: Id, operation: str, before: Any, after: Any) -> list[Event]:
        if operation == "d":
            return [Event("delete_edge", start, end)]
        row = self._row(after["properties"], self.values) if self.values else None
        if operation == "c":
            return [Event("add_edge", start, end, value=row, directed=self.directed)]
        same = row is None or row == self._row(before["properties"], self.values)
        return [] if same else [Event("change_edge", start, end, value=row)]

    @staticmethod
    def _row(properties: Mapping[str, Any], names: Sequence[str]) -> list[float]:
        lacking = [name for name in names if isinstance(properties.get(name), (type(None), str, list, dict))]
        if lacking:
            raise GraphError(f"the property {lacking[0]!r} is not a number: it is {properties.get(lacking[0])!r:.60}.")
        return [float(properties[name]) for name in names]


def plain_events(message: Any) -> list[Event]:
    """The events of a message that holds one event as ``Event.to_json`` writes it, or a list of them."""
    return [Event.from_json(one) for one in (message if isinstance(message, list) else [message])]


def consume(
    consumer: Any,
    live: LiveGraph,
    *,
    read: Callable[[Any], list[Event]] = plain_events,
    on_applied: Callable[[Applied], None] = lambda applied: None,
    running: Callable[[], bool] = lambda: True,
    timeout: float = 1.0,
) -> int:
    """Applies the messages of a Kafka topic, and commits each offset after its events are applied.

    A batch has the id ``topic-partition:offset``. If the process ends between the two steps, the broker delivers the
    message again, and the live graph says that it counts already, so no event is lost or counts twice. A message that
    cannot be read or applied is logged and passed over. If events cannot be written to the journal, nothing is
    committed, and the error is raised.

    Args:
        consumer: A ``confluent_kafka.Consumer`` that is subscribed to the topic and made with
            ``"enable.auto.commit": False``; or anything with its methods ``poll`` and ``commit``.
        live: The live graph; with a journal, events are on disk before the offset is committed.
        read: Events of a message, from its JSON; :class:`Neo4jChanges` is such a function.
        on_applied: Called with what became of each message.
        running: Asked before each message; ends when it says False.
        timeout: Seconds to wait for a message before asking again.

    Returns:
        How many messages were applied.
    """
    applied = 0
    while running():
        message = consumer.poll(timeout)
        if message is None:
            continue
        if message.error() is not None:
            log.warning("the broker reports: %s", message.error())
            continue
        place = f"{message.topic()}-{message.partition()}:{message.offset()}"
        try:
            events = read(json.loads(message.value()))
            done = live.apply(events, id=place)
            applied += 1
            on_applied(done)
        except (GraphError, ValueError, TypeError, RecursionError) as error:
            log.warning("message %s is passed over: %s", place, error)
        consumer.commit(message=message, asynchronous=False)
    return applied
