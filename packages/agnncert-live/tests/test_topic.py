"""A topic that a service reads: how it is named, which messages are rows, and what happens when it cannot be read."""

import json
import threading

import pytest

import agnncert as ac
from agnncert.errors import GraphError, SettingsError
from agnncert_live import Event, LiveGraph, TableRows
from agnncert_live.service import Service
from agnncert_live.topic import Topic, consuming
from tests.support.serving import sent, served
from tests.support.small_graphs import plain_model, random_graph

READ = TableRows("payer", "payee", ["amount", "paid_at"])
ROW = {"payment": "p1", "payer": "ann", "payee": "bob", "amount": 9.0, "paid_at": None}


def test_rows_are_events_and_events_stay_as_they_are() -> None:
    expected = Event("record_edge", "ann", "bob", columns={"amount": 9.0, "paid_at": None})
    assert READ(ROW) == [expected]
    assert READ([ROW, ROW]) == [expected, expected]
    deletion = Event("delete_edge", "ann", "bob", directed=True)
    assert READ(deletion.to_json()) == [deletion]
    for message, words in (({"payer": "ann"}, "lacks the column 'payee'"), (7, "JSON object"), ([None], "JSON object")):
        with pytest.raises(GraphError, match=words):
            READ(message)


def test_a_topic_is_named_by_its_broker(tmp_path) -> None:
    file = tmp_path / "client"
    file.write_text("# secrets\n\nsasl.username = bank\ngroup.id=risk\n", encoding="utf-8")
    topic = Topic.parse("one:9092,two:9092/payments", file)
    assert (topic.servers, topic.name) == ("one:9092,two:9092", "payments")
    assert topic.settings == {"sasl.username": "bank", "group.id": "risk"}
    for text in ("payments", "broker/payments", "broker:9092/", "/payments"):
        with pytest.raises(SettingsError, match="expected HOST:PORT/TOPIC"):
            Topic.parse(text)
    for content, words in (("enable.auto.commit=true", "set by the service"), ("colour", "expected NAME=VALUE")):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(SettingsError, match=words):
            Topic.parse("one:9092/payments", file)
    with pytest.raises(SettingsError, match="cannot read"):
        Topic.parse("one:9092/payments", tmp_path / "nothing")


def test_a_setting_that_the_client_does_not_know_is_refused() -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(SettingsError, match="does not take its settings"):
        Topic("127.0.0.1:1", "payments", {"colour": "red"}).consumer()


class OneMessage:
    """A consumer with one message, after which the journal cannot be written."""

    def __init__(self, live):
        self.live = live
        self.is_closed = False

    def poll(self, timeout):
        raise OSError("the disk is full")

    def close(self):
        self.is_closed = True


def test_a_service_ends_instead_of_missing_events(monkeypatch) -> None:
    with LiveGraph(plain_model(), random_graph(10, 12), ac.NodeCentric(3)) as live:
        service = Service(live, live.reference(), "graph", None)
        consumer = OneMessage(live)
        monkeypatch.setattr(Topic, "consumer", lambda topic: consumer)
        stop = threading.Event()
        with pytest.raises(OSError, match="disk is full"), consuming(service, Topic("h:1", "t"), READ, stop):
            assert stop.wait(20)
        assert consumer.is_closed


def test_what_comes_from_a_topic_is_counted() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    graph = random_graph(10, 12)
    u = graph.node_id.tolist()[0]
    events = [Event("add_node", "new", value=[0.0] * graph.x.size(1)), Event("add_edge", "new", u)]
    producer.produce("graph", json.dumps([event.to_json() for event in events]).encode(), partition=0)
    assert producer.flush(10) == 0
    with LiveGraph(plain_model(), graph, ac.NodeCentric(3)) as live:
        service = Service(live, live.reference(), "graph", None)
        told = threading.Event()
        live.subscribe(lambda applied: told.set())
        topic = Topic.parse(f"{broker.host}:{broker.port}/graph")
        with consuming(service, topic, READ, threading.Event()):
            assert told.wait(60)
        assert live.number == 2
        assert service.counts.applied == 2


def test_dead_letters_are_counted_and_noted_until_their_file_is_taken_away(tmp_path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    event = Event("add_node", "new", value=[0.0] * random_graph(10, 12).x.size(1))
    for content in (b"nonsense", json.dumps(event.to_json()).encode()):
        producer.produce("graph", content, partition=0)
    assert producer.flush(10) == 0
    with LiveGraph(plain_model(), random_graph(10, 12), ac.NodeCentric(3), journal=tmp_path / "j") as live:
        service = Service(live, live.reference(), "graph", None)
        told = threading.Event()
        live.subscribe(lambda applied: told.set())
        topic = Topic.parse(f"{broker.host}:{broker.port}/graph")
        with consuming(service, topic, READ, threading.Event()), served(service) as address:
            assert told.wait(60)
            status, body = sent(address, "/dead-letters")
            assert (status, json.loads(body)["waiting"]) == (503, 1)
            assert sent(address, "/ready")[0] == 200  # events are accepted all the same
            assert "agnncert_dead_letters_total 1" in service.metrics()
            (tmp_path / "j.dead-letters").rename(tmp_path / "looked at")
            assert sent(address, "/dead-letters")[0] == 200
            assert "agnncert_dead_letters_waiting 0" in service.metrics()
