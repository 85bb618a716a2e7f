"""Change events of Neo4j become events, and a Kafka consumer commits after it applied, against a broker too."""

import base64
import json
import os
from types import SimpleNamespace

import pytest

import agnncert as ac
from agnncert.errors import GraphError
from agnncert_live import Event, JournalError, LiveGraph, Neo4jChanges, consume
from agnncert_live.streams import DeadLetter, DeadLetterFile, plain_events
from tests.support.flushes import inode, noted_flushes
from tests.support.small_graphs import plain_model, random_graph

READ = Neo4jChanges("id", ["age", "posts"], ["amount"], types=["PAID"])


def node(key, operation, before=None, after=None, **keys):
    """A change of a node in the documented form, captureMode FULL."""
    wrap = [None if one is None else {"properties": one, "labels": ["User"]} for one in (before, after)]
    return {
        "id": "A7fjWXMK_0L6hztd4xhoy0oAAAAAAAAADAAAAAAAAAAA", "txId": 12, "seq": 0,
        "metadata": {"captureMode": "FULL", "executingUser": "neo4j"},
        "event": {
            "elementId": "4:b7e35973:1", "eventType": "n", "operation": operation, "labels": ["User"],
            "keys": keys or {"Person": [{"ssn": "1"}], "User": [{"mail": "m"}, {"id": key}]},
            "state": {"before": wrap[0], "after": wrap[1]},
        },
    }  # fmt: skip


def relationship(start, end, operation, before=None, after=None, kind="PAID"):
    ends = [{"elementId": f"4:{key}", "keys": {"User": [{"id": key}]}, "labels": ["User"]} for key in (start, end)]
    wrap = [None if one is None else {"properties": one} for one in (before, after)]
    return {"event": {
        "elementId": "5:1", "eventType": "r", "operation": operation, "type": kind, "keys": [],
        "start": ends[0], "end": ends[1], "state": {"before": wrap[0], "after": wrap[1]},
    }}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "events"),
    [
        (node("ann", "c", None, {"age": 3, "posts": 1.5, "id": "ann"}), [Event("add_node", "ann", value=[3.0, 1.5])]),
        (node("ann", "u", {"age": 3, "posts": 1}, {"age": 4, "posts": 1}),
         [Event("change_features", "ann", value=[4.0, 1.0])]),
        (node("ann", "u", {"age": 3, "posts": 1, "city": "a"}, {"age": 3, "posts": 1, "city": "b"}), []),
        (node(7, "d", {"age": 3, "posts": 1}), [Event("delete_node", 7)]),
        (relationship("ann", "bob", "c", None, {"amount": 2}), [Event("add_edge", "ann", "bob", [2.0])]),
        (relationship("ann", "bob", "u", {"amount": 2}, {"amount": 5}), [Event("change_edge", "ann", "bob", [5.0])]),
        (relationship("ann", "bob", "u", {"amount": 2, "note": 1}, {"amount": 2, "note": 2}), []),
        (relationship("ann", "bob", "d", {"amount": 2}), [Event("delete_edge", "ann", "bob")]),
        (relationship("ann", "bob", "c", None, {}, kind="KNOWS"), []),
    ],
)  # fmt: skip
def test_a_change_of_neo4j_is_an_event(message, events):
    assert READ(json.loads(json.dumps(message))) == events


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ([], "no change event"),
        ({"event": {"eventType": "x", "operation": "c", "state": {"before": None, "after": None}}}, "node or a rel"),
        (node("ann", "c", None, {"age": 3}), "'posts' is not a number"),
        (node("ann", "c", None, {"age": "3", "posts": 1}), "'age' is not a number"),
        (node("ann", "c", None, {"age": 3, "posts": 1}, User=[{"mail": "m"}]), "NODE KEY"),
        (node("ann", "c", None, None), "no change event"),
    ],
)
def test_what_is_no_change_is_refused(message, words):
    with pytest.raises(GraphError, match=words):
        READ(message)


class MemoryConsumer:
    """Messages in memory, with the two methods of ``confluent_kafka.Consumer`` that are used."""

    def __init__(self, *values, fail_at=None):
        self.values, self.position, self.committed, self.fail_at = values, 0, 0, fail_at

    def poll(self, timeout):
        if self.position == len(self.values):
            return None
        value, offset = self.values[self.position], self.position
        self.position += 1
        is_error = isinstance(value, RuntimeError)
        return SimpleNamespace(
            error=lambda: value if is_error else None, topic=lambda: "t", partition=lambda: 0,
            offset=lambda: offset, value=lambda: value,
        )  # fmt: skip

    def commit(self, *, message, asynchronous):
        assert asynchronous is False
        if message.offset() == self.fail_at:
            raise ConnectionError("the process dies between applying and committing")
        self.committed = message.offset() + 1

    def running(self):
        return self.position < len(self.values)


@pytest.fixture
def make(tmp_path):
    return lambda: LiveGraph(plain_model(), random_graph(10, 12), ac.NodeCentric(3), journal=tmp_path / "live.journal")


def payload(*events):
    return json.dumps([event.to_json() for event in events]).encode()


ADD = payload(Event("add_node", "new", value=[0.0] * 5), Event("add_edge", "new", 100))


def test_each_offset_is_committed_after_its_events(make):
    seen = []
    with make() as live:
        consumer = MemoryConsumer(ADD, json.dumps(Event("delete_edge", "new", 100).to_json()))
        number = consume(
            consumer, live, running=consumer.running, on_applied=lambda done: seen.append((consumer.committed, done))
        )
        assert (number, consumer.committed) == (2, 2)
        assert [(before, done.events) for before, done in seen] == [(0, 2), (1, 1)]
        assert "new" in live


def test_what_was_applied_and_not_committed_counts_once(make):
    with make() as live:
        consumer = MemoryConsumer(ADD, fail_at=0)
        with pytest.raises(ConnectionError):
            consume(consumer, live, running=consumer.running)
        assert (live.number, consumer.committed) == (2, 0)
    with make() as live:
        again = MemoryConsumer(ADD)
        assert consume(again, live, running=again.running) == 1
        assert (live.number, again.committed) == (2, 1)


def letters_in(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_bad_messages_are_dead_letters_and_the_rest_goes_on(make, tmp_path):
    edge = b'{"kind": "add_edge", "node": 100, "other": 99}'
    bad = [b"{", b"null", edge, b"\xff\xfe", RuntimeError("broker")]
    with make() as live:
        consumer = MemoryConsumer(*bad, ADD)
        assert consume(consumer, live, running=consumer.running) == 1
        assert (live.number, consumer.committed) == (2, 6)
    letters = letters_in(tmp_path / "live.journal.dead-letters")
    assert [letter["place"] for letter in letters] == ["t-0:0", "t-0:1", "t-0:2", "t-0:3"]
    assert letters[2]["value"] == edge.decode()
    assert "no node with id 99" in letters[2]["reason"]
    assert base64.b64decode(letters[3]["value_base64"]) == b"\xff\xfe"


def test_a_dead_letter_is_on_the_disk_when_it_was_kept_and_so_is_the_name_of_its_file(tmp_path, monkeypatch):
    keep = DeadLetterFile(tmp_path / "letters")
    calls = noted_flushes(monkeypatch)
    sizes, fsync = [], os.fsync

    def measuring(handle):
        sizes.append(os.fstat(handle).st_size)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", measuring)
    keep(DeadLetter("t-0:0", "it is bad", b"{", 1.0))
    file, folder = inode(tmp_path / "letters"), inode(tmp_path)
    assert calls == [("flush", file), ("flush", folder)]
    assert sizes[0] == (tmp_path / "letters").stat().st_size > 0
    keep(DeadLetter("t-0:1", "it is bad", b"{", 2.0))
    assert calls[2:] == [("flush", file)]
    assert sizes[2] == (tmp_path / "letters").stat().st_size


HUGE = 10**400
GRAPH = random_graph(10, 12)
JOINED = GRAPH.node_id[GRAPH.edge_index[:, 0]].tolist()  # two nodes with an edge


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (plain_events, {"kind": "change_edge", "node": JOINED[0], "other": JOINED[1], "value": HUGE}),
        (plain_events, {"kind": "add_node", "node": "new", "value": [HUGE] * 5}),
        (plain_events, {"kind": "add_node", "node": HUGE, "value": [0.0] * 4}),
        (plain_events, {"kind": "add_edge", "node": 100, "other": HUGE}),
        (plain_events, {"kind": "add_edge", "node": 100, "other": 103, "graph": HUGE}),
        (Neo4jChanges("id", ["age"]), node("ann", "c", None, {"age": HUGE})),
        (Neo4jChanges("id", [], ["amount"]), relationship("ann", "bob", "c", None, {"amount": HUGE})),
        (lambda message: 1 / 0, {}),
    ],
    ids=["copies", "features", "id", "other id", "graph", "property", "value", "reader"],
)
def test_a_number_that_is_too_large_stops_nobody(make, tmp_path, read, message):
    with make() as live:
        consumer = MemoryConsumer(json.dumps(message).encode())
        assert consume(consumer, live, read=read, running=consumer.running) == 0
        assert (live.number, consumer.committed) == (0, 1)
    [letter] = letters_in(tmp_path / "live.journal.dead-letters")
    assert letter["value"] == json.dumps(message)


def test_without_a_dead_letter_record_nothing_is_committed(make, tmp_path):
    with LiveGraph(plain_model(), random_graph(10, 12), ac.NodeCentric(3)) as live:
        consumer = MemoryConsumer(b"null")
        with pytest.raises(GraphError):  # no journal, so there is no place for dead letters
            consume(consumer, live, running=consumer.running)
        assert consumer.committed == 0
    with make() as live:
        consumer = MemoryConsumer(b"null")
        with pytest.raises(JournalError, match="dead letter cannot be written"):
            consume(consumer, live, running=consumer.running, dead_letters=tmp_path / "no folder" / "letters")
        assert consumer.committed == 0
        kept = []
        consumer = MemoryConsumer(b"null")
        consume(consumer, live, running=consumer.running, dead_letters=kept.append)
        assert [(letter.place, letter.value) for letter in kept] == [("t-0:0", b"null")]
        assert consumer.committed == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_an_alert_that_could_not_be_sent_is_sent_when_the_message_comes_again(make, restarted):
    told = []

    def fails(applied):
        raise ValueError("the receiver is down")

    live = make()
    consumer = MemoryConsumer(ADD)
    with pytest.raises(ValueError, match="receiver is down"):
        consume(consumer, live, running=consumer.running, on_applied=fails)
    assert (live.number, consumer.committed) == (2, 0)
    if restarted:
        live.close()
        live = make()
    again = MemoryConsumer(ADD)
    with live:
        consume(again, live, running=again.running, on_applied=told.append)
    assert (live.number, again.committed) == (2, 1)
    assert told[0].repeated
    assert "new" in {moved.target for moved in told[0].moved}


def test_a_listener_that_fails_does_not_make_a_dead_letter_of_what_was_applied(make, tmp_path, caplog):
    with make() as live:

        def fails(applied):
            raise ValueError("the listener is broken")

        live.subscribe(fails)
        consumer = MemoryConsumer(ADD)
        assert consume(consumer, live, running=consumer.running) == 1
        assert live.number == 2
    assert not (tmp_path / "live.journal.dead-letters").exists()
    assert "the events count all the same" in caplog.text


def test_nothing_is_committed_if_the_journal_cannot_be_written(make, monkeypatch):
    with make() as live:

        def full(*_):
            raise JournalError("the disk is full")

        monkeypatch.setattr(live._journal, "write", full)
        consumer = MemoryConsumer(ADD)
        with pytest.raises(JournalError):
            consume(consumer, live, running=consumer.running)
        assert (live.number, consumer.committed) == (0, 0)


def test_with_a_broker(tmp_path):
    """librdkafka brings a broker for tests, which speaks Kafka's protocol over TCP."""
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    changes = [
        node("ann", "c", None, {"age": 0, "posts": 0}),
        relationship("ann", 100, "c", None, {}, kind="FOLLOWS"),
        {"odd": 1},
        relationship("ann", 103, "c", None, {}, kind="FOLLOWS"),
    ]
    for change in changes:
        producer.produce("graph", json.dumps(change).encode(), partition=0)
    assert producer.flush(10) == 0

    def consumer():
        made = kafka.Consumer({
            "bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": "live", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "log_level": 0,
        })  # fmt: skip
        partition = kafka.TopicPartition("graph", 0)
        [place] = made.committed([partition], timeout=10)
        made.assign([kafka.TopicPartition("graph", 0, max(place.offset, 0))])
        return made, partition

    read = Neo4jChanges("id", ["age", "posts"])
    graph = random_graph(10, 12)
    graph.x = graph.x[:, :2].float().contiguous()
    model = ac.build_model("gcn", graph, out_channels=3, hidden_channels=4).eval()
    with LiveGraph(model, graph, ac.NodeCentric(3)) as live:
        first, partition = consumer()
        assert consume(first, live, read=read, running=lambda: live.number < 2, timeout=0.2) == 2
        assert first.committed([partition], timeout=10)[0].offset == 2
        first.close()
        second, _ = consumer()  # goes on at the committed offset
        letters = tmp_path / "letters"
        count = consume(second, live, read=read, dead_letters=letters, running=lambda: live.number < 3, timeout=0.2)
        assert count == 1
        assert [letter["place"] for letter in letters_in(letters)] == ["graph-0:2"]
        assert second.committed([partition], timeout=10)[0].offset == 4
        second.close()
        assert live.number == 3
        assert "ann" in live


def test_a_message_may_hold_one_event_or_several():
    one = Event("add_edge", 1, 2)
    assert plain_events(one.to_json()) == [one]
    assert plain_events([one.to_json(), one.to_json()]) == [one, one]


def test_a_message_that_says_something_twice_is_not_applied(make, caplog):
    with make() as live:
        consumer = MemoryConsumer(b'[{"kind": "delete_node", "node": 100, "node": 101}]')
        assert consume(consumer, live, running=consumer.running) == 0
        assert 101 in live
        assert '"node" stands twice' in caplog.text
