"""Events from elsewhere: change data capture of Neo4j, and a Kafka topic."""

import base64
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from agnncert.certificates.ids import Id
from agnncert.errors import AgnncertError, GraphError
from agnncert.storage import flush_folder, parse_json
from agnncert_live.events import Applied, Event
from agnncert_live.graph import LiveGraph
from agnncert_live.journal import JournalError

log = logging.getLogger(__name__)

Json: TypeAlias = Any  # what json.loads returns
EventReader: TypeAlias = Callable[[Json], list[Event]]
_State: TypeAlias = Mapping[str, Any] | None  # of a node or relationship, before or after a change


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
        [Event(kind='add_edge', node='ann', other='bob', value=None, directed=False, graph=None, columns=None)]
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
        self.key = key
        self.features = list(features)
        self.values = list(values)
        self.directed = directed
        self.types = None if types is None else set(types)

    def __call__(self, message: Json) -> list[Event]:
        """Returns the events of one change; none if it alters nothing that the live graph knows.

        Raises:
            GraphError: It is not a change event, or lacks the key or a property.
        """
        try:
            change = message["event"]
            kind = change["eventType"]
            if kind == "n":
                return self._events_of_node(change)
            if kind == "r":
                return self._events_of_relationship(change)
        except (KeyError, TypeError, AttributeError) as error:
            raise GraphError(
                f"this is no change event of Neo4j: {error!s:.100} is missing or of another kind."
            ) from None
        raise GraphError(f"a change event of Neo4j is about a node or a relationship, not {kind!r:.60}.")

    def _id(self, entity: Mapping[str, Any]) -> Id:
        for keys_of_label in entity["keys"].values():
            for key in keys_of_label:
                if self.key in key:
                    node_id: Id = key[self.key]
                    return node_id
        raise GraphError(
            f"a node has no key {self.key!r}: CREATE CONSTRAINT FOR (n:LABEL) REQUIRE n.{self.key} IS NODE KEY."
        )

    def _events_of_node(self, change: Mapping[str, Any]) -> list[Event]:
        node = self._id(change)
        operation = change["operation"]
        if operation == "d":
            return [Event("delete_node", node)]
        row = _numbers(change["state"]["after"], self.features)
        if operation == "c":
            return [Event("add_node", node, value=row)]
        if operation == "u" and row == _numbers(change["state"]["before"], self.features):
            return []
        return [Event("change_features", node, value=row)]

    def _events_of_relationship(self, change: Mapping[str, Any]) -> list[Event]:
        if self.types is not None and change["type"] not in self.types:
            return []
        start = self._id(change["start"])
        end = self._id(change["end"])
        operation = change["operation"]
        before = change["state"]["before"]
        after = change["state"]["after"]
        if operation == "d":
            return [Event("delete_edge", start, end)]
        row = _numbers(after, self.values) if self.values else None
        if operation == "c":
            return [Event("add_edge", start, end, value=row, directed=self.directed)]
        if row is None or row == _numbers(before, self.values):
            return []
        return [Event("change_edge", start, end, value=row)]


def _numbers(state: _State, names: Sequence[str]) -> list[float]:
    """Returns properties as numbers.

    Raises:
        GraphError: One of them is no number.
        TypeError: There is no state.
    """
    if state is None:
        raise TypeError("the state")
    properties = state["properties"]
    numbers = []
    for name in names:
        value = properties.get(name)
        if value is None or isinstance(value, str | list | dict):
            raise GraphError(f"the property {name!r} is not a number: it is {value!r:.60}.")
        try:
            numbers.append(float(value))
        except OverflowError:
            raise GraphError(f"the property {name!r} is too large for a number of the graph.") from None
    return numbers


def plain_events(message: Json) -> list[Event]:
    """Returns the events of a message that holds one event as ``Event.to_json`` writes it, or a list of them."""
    stated = message if isinstance(message, list) else [message]
    return [Event.from_json(stated_event) for stated_event in stated]


class TableRows:
    """Turns rows of the table that a graph was made of into events: one more row of edges or events.

    A message is one row, or a list of rows, as JSON objects with the names of the columns. Columns that the encoding
    does not know are ignored. A message that has a ``"kind"`` is an event as it is.

    Args:
        source: Column of the id that a row goes out from.
        target: Column of the id that it goes to.
        columns: Columns that the encoding reads.

    Example:
        >>> read = TableRows("payer", "payee", ["amount"])
        >>> read({"payment": "p7", "payer": "ann", "payee": "bob", "amount": 9.5})[0].to_json()
        {'kind': 'record_edge', 'node': 'ann', 'other': 'bob', 'columns': {'amount': 9.5}}
    """

    def __init__(self, source: str, target: str, columns: Sequence[str]) -> None:
        self.source = source
        self.target = target
        self.columns = list(columns)

    def __call__(self, message: Json) -> list[Event]:
        """Returns the events of one message.

        Raises:
            GraphError: It is no row, or lacks a column.
        """
        rows = message if isinstance(message, list) else [message]
        return [self._event(row) for row in rows]

    def _event(self, row: Json) -> Event:
        if isinstance(row, Mapping) and "kind" not in row:
            lacking = [name for name in (self.source, self.target, *self.columns) if name not in row]
            if lacking:
                raise GraphError(f"a row lacks the column {lacking[0]!r}: null stands for a missing entry.")
            columns = {name: row[name] for name in self.columns}
            return Event("record_edge", row[self.source], row[self.target], columns=columns)
        return Event.from_json(row)


class Message(Protocol):
    """A message of a topic, as ``confluent_kafka.Message`` is one."""

    def error(self) -> Any:
        """Returns the error that the broker reports instead of a message, or ``None``."""

    def topic(self) -> str | None:
        """Returns the name of the topic."""

    def partition(self) -> int | None:
        """Returns the number of the partition."""

    def offset(self) -> int | None:
        """Returns the place in the partition."""

    def value(self) -> Any:
        """Returns the content."""


class Consumer(Protocol):
    """Whatever yields messages, as ``confluent_kafka.Consumer`` does."""

    def poll(self, timeout: float) -> Message | None:
        """Returns the next message, or ``None`` if there is none in ``timeout`` seconds."""

    def commit(self, message: Any = None, *, asynchronous: bool = True) -> Any:
        """Tells the broker that everything up to a message is done."""


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be applied.

    Attributes:
        place: Where it stands, as ``topic-partition:offset``.
        reason: Why it could not be applied.
        value: Its content.
        time: When that was, in seconds since 1970.
    """

    place: str
    reason: str
    value: bytes | str | None
    time: float

    def to_json(self) -> dict[str, Any]:
        """Returns the record as JSON values. A content that is no text of UTF-8 is written in base 64."""
        record: dict[str, Any] = {"place": self.place, "time": round(self.time, 3), "reason": self.reason}
        if isinstance(self.value, bytes):
            try:
                record["value"] = self.value.decode()
            except UnicodeDecodeError:
                record["value_base64"] = base64.b64encode(self.value).decode()
        else:
            record["value"] = self.value
        return record


class DeadLetterFile:
    """Appends dead letters to a file, one JSON object per line, each on disk before the call returns.

    Args:
        path: The file. It is made when the first dead letter comes.

    Raises:
        JournalError: A record cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self, letter: DeadLetter) -> None:
        """Writes one record."""
        line = json.dumps(letter.to_json()) + "\n"
        is_new = not self.path.exists()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                flush_folder(self.path.parent)
        except OSError as error:
            raise JournalError(f"a dead letter cannot be written to {self.path}: {error.strerror or error}.") from error


def consume(
    consumer: Consumer,
    live: LiveGraph,
    *,
    read: EventReader = plain_events,
    on_applied: Callable[[Applied], None] = lambda applied: None,
    dead_letters: str | Path | Callable[[DeadLetter], None] | None = None,
    running: Callable[[], bool] = lambda: True,
    timeout: float = 1.0,
) -> int:
    """Applies the messages of a Kafka topic, and commits each offset after its events are applied and told.

    A batch has the id ``topic-partition:offset``. If the process ends between two steps, the broker delivers the
    message again, and the live graph says that it counts already, so no event is lost or counts twice. ``on_applied``
    is called again then, with ``repeated`` and with what the message did, so no alert is lost.

    A message that cannot be read or applied becomes a dead letter, and is committed after its record is on disk. If a
    step fails for another reason (``on_applied`` raises, the journal or the record cannot be written), nothing is
    committed, and the error is raised.

    Args:
        consumer: A ``confluent_kafka.Consumer`` that is subscribed to the topic and made with
            ``"enable.auto.commit": False``; or anything with its methods ``poll`` and ``commit``.
        live: The live graph; with a journal, events are on disk before the offset is committed.
        read: Returns the events of a message, from its JSON; :class:`Neo4jChanges` is such a function.
        on_applied: Called with what became of each message.
        dead_letters: File to which messages are appended that cannot be applied, or a function that keeps them. When
            not given, it is the file ``JOURNAL.dead-letters`` beside the journal. Without a journal, such a message
            raises its error.
        running: Asked before each message; ends when it says False.
        timeout: Seconds to wait for a message before asking again.

    Returns:
        How many messages were applied.
    """
    keep_letter = _keeper(dead_letters, live)
    num_applied = 0
    while running():
        message = consumer.poll(timeout)
        if message is None:
            continue
        if message.error() is not None:
            log.warning("the broker reports: %s", message.error())
            continue
        place = f"{message.topic()}-{message.partition()}:{message.offset()}"
        try:
            applied = live.apply(read(parse_json(message.value())), id=place)
        except (JournalError, MemoryError, OSError):
            raise
        except Exception as error:  # of a message, which may be anybody's, and of a reader, which may be anybody's too
            if keep_letter is None:
                raise
            reason = str(error) if isinstance(error, AgnncertError) else f"{type(error).__name__}: {error!s:.200}"
            keep_letter(DeadLetter(place, reason, message.value(), time.time()))
            log.warning("message %s is a dead letter: %s", place, reason)
        else:
            num_applied += 1
            on_applied(applied)
        consumer.commit(message=message, asynchronous=False)
    return num_applied


def _keeper(
    dead_letters: str | Path | Callable[[DeadLetter], None] | None, live: LiveGraph
) -> Callable[[DeadLetter], None] | None:
    """Returns what keeps dead letters; None if nothing does."""
    if callable(dead_letters):
        return dead_letters
    if dead_letters is not None:
        return DeadLetterFile(dead_letters)
    if live.journal_path is not None:
        return DeadLetterFile(dead_letters_beside(live.journal_path))
    return None


def dead_letters_beside(journal: Path) -> Path:
    """Returns the file of dead letters that belongs to a journal."""
    return journal.with_name(journal.name + ".dead-letters")
