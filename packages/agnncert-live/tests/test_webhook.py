"""Alerts reach a real receiver on the loopback, are tried again, and go nowhere else."""

import gc
import hashlib
import hmac
import threading
import warnings

import pytest

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert_live import Event, LiveGraph, Webhook
from agnncert_live.webhook import _seconds_of
from tests.support.receiver import receiver
from tests.support.small_graphs import plain_model, random_graph


@pytest.fixture
def live():
    return LiveGraph(plain_model(), random_graph(10, 12), ac.NodeCentric(3))


def alarm(live):
    """Adds edges one by one, and returns what became of those that flipped a label."""
    done = [live.apply(Event("add_edge", u, v)) for u, v in new_pairs(live)[:20]]
    told = [one for one in done if one.fell_below(9) or one.flipped]
    assert len(told) >= 3
    return told


def new_pairs(live):
    data = live.data()
    there = {frozenset(pair) for pair in data.node_id[data.edge_index].T.tolist()}
    return [(u, v) for u in range(100, 110) for v in range(u + 1, 110) if {u, v} not in there]


def test_every_alert_arrives_once_with_what_moved(live):
    with receiver() as (url, got):
        hook = Webhook(live, f"{url}/alerts?from=live", below=9, token="s3cret")
        live.apply(Event("add_node", 110, value=live.data().x[0]))  # a new target below 9 is an alert as well
        told = alarm(live)
        hook.close()
        assert live.apply(Event("delete_edge", *first_pair(live))).number  # after the end: nobody hears of it
    assert hook.failed == 0
    assert hook.sent == len(got) == len(told) + 1
    assert {path for path, _, _ in got} == {"/alerts?from=live"}
    assert got[0][1]["authorization"] == "Bearer s3cret"
    last = got[-1][2]
    expected = {one.target: one for one in (*told[-1].fell_below(9), *told[-1].flipped)}
    assert last["number"] == told[-1].number
    assert {one["target"]: tuple(one["radius"]) for one in last["targets"]} == {
        t: m.radius for t, m in expected.items()
    }


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_no_connection_is_left_to_the_garbage_collector(live, version):
    """Also if the receiver would keep it open."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with receiver(503, version=version) as (url, got), Webhook(live, url, below=9, pause=0.01) as hook:
            alarm(live)
            wait_until(lambda: hook.sent >= 3)
        gc.collect()
    assert len(got) > 3
    assert [str(one.message) for one in told if issubclass(one.category, ResourceWarning)] == []


def first_pair(live):
    data = live.data()
    return data.node_id[data.edge_index[:, 0]].tolist()


def test_a_receiver_that_recovers_gets_the_alert(live):
    with receiver(503, 429, 408) as (url, got), Webhook(live, url, below=9, pause=0.01) as hook:
        told = alarm(live)
        wait_until(lambda: hook.sent == len(told))
    assert (hook.sent, hook.failed) == (len(told), 0)
    assert len(got) == len(told) + 3
    assert got[0][2] == got[1][2] == got[2][2] == got[3][2]


@pytest.mark.parametrize("status", [400, 404])
def test_a_refusal_is_not_repeated(live, status):
    with receiver(*[status] * 9) as (url, got), Webhook(live, url, below=9, pause=0.01) as hook:
        told = alarm(live)
        wait_until(lambda: hook.failed == len(told))
    assert len(got) == len(told) == hook.failed


def test_tries_are_bounded(live):
    with receiver(*[500] * 99) as (url, got), Webhook(live, url, below=9, pause=0.001, tries=3) as hook:
        told = alarm(live)
        wait_until(lambda: hook.failed == len(told))
    assert (hook.sent, len(got)) == (0, 3 * len(told))


def test_redirections_are_not_followed(live):
    with receiver() as (elsewhere, visited):
        with receiver(*[302] * 9, location=elsewhere) as (url, _), Webhook(live, url, below=9, pause=0.001) as hook:
            told = alarm(live)
            wait_until(lambda: hook.failed == len(told))
        assert visited == []


def test_a_receiver_that_is_down_delays_no_event(live):
    with receiver() as (url, _):
        pass
    with Webhook(live, url, below=9, pause=60) as hook:  # the first pause alone would be a minute
        told = alarm(live)
    assert told
    assert hook.sent == 0


def test_what_waits_is_bounded(live, monkeypatch):
    monkeypatch.setattr("agnncert_live.webhook.MOST_WAITING", 1)
    with receiver() as (url, _):
        pass
    hook = Webhook(live, url, below=9, pause=60)
    alarm(live)
    assert hook.failed >= 1
    hook.close()


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "file:///etc/passwd", "host/x", "http://", "http://a b/", "http://u:p@h/", "http://h:no/"]
)
def test_other_addresses_are_refused(live, url):
    with pytest.raises(SettingsError, match="address"):
        Webhook(live, url)


def wait_until(condition, seconds=10.0):
    event = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        event.wait(0.005)
    raise AssertionError("it did not happen in time")


def test_alerts_name_classes_as_answers_do_and_are_signed(live):
    with receiver() as (url, got):
        hook = Webhook(live, url, below=9, class_names=["honest", "fraud", "bot"], secret="shared")
        told = alarm(live)
        hook.close()
    assert len(got) == len(told)
    labels = {label for _, _, alert in got for target in alert["targets"] for label in target["label"]}
    assert labels <= {"honest", "fraud", "bot"}
    for _, headers, _ in got:
        seconds, code = (part.partition("=")[2] for part in headers["x-agnncert-signature"].split(","))
        message = seconds.encode() + b"." + headers["body"]
        assert hmac.compare_digest(code, hmac.new(b"shared", message, hashlib.sha256).hexdigest())


def test_a_receiver_gets_the_time_that_it_asks_for(live):
    with receiver(503, retry_after="1") as (url, got):
        hook = Webhook(live, url, below=9, pause=0.001)
        alarm(live)
        while len(got) < 2:
            threading.Event().wait(0.05)
        hook.close()
    assert got[0][2] == got[1][2]
    assert got[1][1]["at"] - got[0][1]["at"] >= 1


@pytest.mark.parametrize(("text", "seconds"), [("7", 7), ("9999", 120), ("", 0), ("soon", 0)])
def test_retry_after_is_read_and_limited(text, seconds):
    assert _seconds_of(text) == seconds
