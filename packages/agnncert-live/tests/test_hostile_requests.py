"""What hostile clients send: it is refused with a reason, nothing else suffers, and no traceback is left behind."""

import asyncio
import json
import logging
import socket
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

import agnncert as ac
import agnncert_live
from agnncert_live import Event
from agnncert_live.connections import MOST_CONNECTIONS, IdleLimit
from agnncert_live.guard import MOST_AT_WORK, Guard, Limits
from agnncert_live.http import make_app
from agnncert_live.service import Service
from tests.support.live import assert_current
from tests.support.serving import TOKEN, a_service, run_elsewhere, sent, served

JSON = {"Content-Type": "application/json"}
GOOD = [
    {"kind": "add_edge", "node": "user-3", "other": "user-9"},
    {"kind": "add_edge", "node": "user-4", "other": "user-8"},
]


class Complaints(logging.Handler):
    """What a server logs while it is listened to, tracebacks included."""

    names = ("uvicorn.error", "asyncio")

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def listen(self) -> None:
        for name in self.names:
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(logging.Formatter().format(record))


@contextmanager
def without_complaints(service: Service) -> Iterator[tuple[str, Complaints]]:
    """The address of a server that must not complain about anything that it is sent."""
    complaints = Complaints()
    with served(service) as address:
        complaints.listen()  # now: starting a server takes handlers away
        yield address, complaints
    for name in complaints.names:
        logging.getLogger(name).removeHandler(complaints)
    assert complaints.heard == []


@pytest.fixture
def running() -> Iterator[tuple[Service, str]]:
    service = a_service()
    with without_complaints(service) as (address, _):
        yield service, address


@pytest.fixture(scope="module")
def one_service() -> Iterator[tuple[Service, str, Complaints]]:
    service = a_service()
    with without_complaints(service) as (address, complaints):
        yield service, address, complaints


@pytest.fixture
def asked(one_service) -> Iterator[tuple[Service, str]]:
    """As ``running``, for tests that send no events: one service answers all of them."""
    service, address, complaints = one_service
    complaints.listen()  # again, as another server may have been started
    yield service, address
    assert complaints.heard == []
    assert service.live.number == 0


@pytest.mark.parametrize(
    "query",
    ["target_features=on", "target_features=maybe", "target_features=", "target_features=2", "target_features=None",
     "target_features=true&target_features=false", "add_edges=", "add_edges=+1", "add_edges=1e3", "add_edges=-1",
     "add_edges=%D9%A3", "add_edges=NaN", "add_edges=Infinity", "add_edges=1&add_edges=9", "add_edges=true",
     "delete_nodes=0x10", "spells=3", "target=user-2"],
)  # fmt: skip
def test_a_strange_value_of_a_budget_is_refused(asked, query) -> None:
    status, text = sent(asked[1], f"/decision?target=user-1&{query}")
    assert status == 422, text
    assert json.loads(text)["error"]


@pytest.mark.parametrize(
    ("text", "meant"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_whether_the_target_itself_may_change_is_read_as_it_is_meant(asked, text, meant) -> None:
    service, address = asked
    status, answer = sent(address, f"/decision?target=user-1&target_features={text}")
    assert status == 200
    assert json.loads(answer)["holds"] == service.live["user-1"].holds_against(ac.Budget(target_features=meant))


@pytest.mark.parametrize(
    "path", ["/closest?limit=-1", "/closest?limit=x", "/closest?limt=5", "/changes?since=-1", "/changes?since=1.5",
             "/closest?limit=1&limit=2", "/decision", "/decision?traget=user-1"],
)  # fmt: skip
def test_a_strange_question_is_refused_with_our_words(asked, path) -> None:
    status, text = sent(asked[1], path)
    assert status == 422
    assert json.loads(text)["error"]


def deep(levels: int) -> str:
    return "[" * levels + "1" + "]" * levels


def event(**fields: str) -> str:
    """An event whose fields are given in JSON."""
    usual = {"kind": '"add_node"', "node": '"n"', "value": "[1, 1, 1, 1]"}
    return "{" + ", ".join(f'"{name}": {text}' for name, text in {**usual, **fields}.items()) + "}"


BAD = {
    "nested value": event(value=deep(400)),
    "very nested value": event(value=deep(900)),
    "nested weight": event(kind='"change_edge"', node='"user-1"', other='"user-2"', value=deep(400)),
    "nested node": event(node=deep(400)),
    "nested kind": event(kind=deep(400)),
    "nested field": event(more=deep(400)),
    "lone surrogate": r'{"kind": "add_node", "node": "\ud800", "value": [1, 1, 1, 1]}',
    "lone surrogate at the other end": r'{"kind": "add_edge", "node": "user-1", "other": "x\udfff"}',
    "lone surrogate as a field": r'{"kind": "add_node", "node": "n", "\ud800": 1}',
    "lone surrogate as a kind": r'{"kind": "\ud800", "node": "n"}',
    "huge number": event(value="[1, 1, 1, 1" + "0" * 400 + "]"),
    "huge id": event(node="1" + "0" * 4_000),
    "a million copies": '{"kind": "change_edge", "node": "user-3", "other": "user-9", "value": 1000000}',
    "a list": "[]",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("form", ["json", "stream"])
def test_a_hostile_event_is_refused_alone(running, bad, form) -> None:
    service, address = running
    lines = [json.dumps(GOOD[0]), bad, json.dumps(GOOD[1])]
    body, kind = f'{{"events": [{", ".join(lines)}]}}', "application/json"
    if form == "stream":
        body, kind = "\n".join(lines), "application/x-ndjson"
    status, text = sent(address, "/events", body.encode(), {"Content-Type": kind})
    answer = json.loads(text)
    assert (status, answer["applied"], answer["refused_in_all"]) == (200, 2, 1), answer
    assert answer["refused"][0]["event"] == 1
    assert answer["refused"][0]["reason"]
    assert service.live.number == 2


@pytest.mark.parametrize("batch_id", ['"\\ud800"', '"a\\u0000b"', '""', "[]", '"' + "x" * 300 + '"'])
def test_a_hostile_batch_id_refuses_the_batch(running, batch_id) -> None:
    status, text = sent(running[1], "/events", f'{{"events": [], "id": {batch_id}}}'.encode(), JSON)
    assert status in (400, 422)
    assert "id=" in json.loads(text)["error"]


def test_copies_of_edges_in_one_batch_are_bounded() -> None:
    """Each event alone is allowed; all of them together would take minutes."""
    service = a_service()
    service.live.apply(
        [Event("add_edge", f"user-{u}", f"user-{v}") for u in range(30) for v in range(u)], skip_bad=True
    )
    many = [Event("change_edge", f"user-{u}", f"user-{v}", 900) for u in range(30) for v in range(u)]
    done = service.live.apply(many, skip_bad=True)
    assert done.events == 50_000 // 1_800  # 900 copies in both directions
    assert "arcs" in done.refused[0].reason
    assert service.live.num_edges < 300_000


def test_what_was_refused_for_its_size_left_nothing_behind() -> None:
    service = a_service()
    before = service.live.num_edges
    done = service.live.apply(
        [Event("add_edge", "user-3", "user-9"), Event("change_edge", "user-3", "user-9", 1_001)], skip_bad=True
    )
    assert "1,000" in done.refused[0].reason
    assert service.live.num_edges == before + 2
    service.live.apply(Event("change_edge", "user-3", "user-9", 1_000))
    assert_current(service.live)


def test_ids_of_batches_do_not_collide_with_those_of_streams(running) -> None:
    service, address = running
    client = agnncert_live.LiveClient(address)
    assert client.apply([GOOD[0]], id="a#0")["applied"] == 1
    for name in ("part 0 of a", "batch a", "stream a 0", "a:0"):
        client.apply([], id=name)
    assert client.stream([GOOD[1]], id="a")["applied"] == 1
    assert client.stream([GOOD[1]], id="a")["repeated"] == 1
    assert client.apply([GOOD[0]], id="a#0")["repeated"]
    assert client.apply([], id="a")["repeated"] is False
    assert service.live.number == 2


@pytest.mark.parametrize(
    "host", ["localhost:80@evil.com", "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "evil.com:localhost",
             "localhost:80:80", "[::1]evil.com", "localhost@evil.com", "", "localhost:", "localhost:x", "[localhost]"],
)  # fmt: skip
def test_a_host_of_another_name_is_refused(asked, host) -> None:
    assert sent(asked[1], "/health", headers={"Host": host})[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]", "[::1]:8470"])
def test_a_host_of_this_machine_is_answered(asked, host) -> None:
    assert sent(asked[1], "/health", headers={"Host": host})[0] == 200


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_idle_connections_shut_nobody_out() -> None:
    service = a_service()
    with served(service, TOKEN, Limits(rate=10_000)) as address, ExitStack() as stack:
        opened = []
        for number in range(2 * MOST_CONNECTIONS + 20):
            idle = stack.enter_context(connected(address))
            opened.append(idle)
            if number % 2:
                idle.sendall(b"GET /closest HTTP/1.1\r\nHost: x\r\n")  # a head that does not end
            if number % 50 == 49:
                assert agnncert_live.LiveClient(address, TOKEN, timeout=5, tries=1).closest(1)
        assert agnncert_live.LiveClient(address, TOKEN, timeout=5, tries=1).closest(1)
        assert sum(map(is_closed, opened[:MOST_CONNECTIONS])) >= MOST_CONNECTIONS - 20  # the oldest ones went
        assert not any(map(is_closed, opened[-20:]))


def is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_connections_without_a_token_that_send_bodies_shut_nobody_out() -> None:
    service = a_service()
    head = b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    with served(service, TOKEN, Limits(rate=10_000)) as address, ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS + 50):
            stack.enter_context(connected(address)).sendall(head)
        assert agnncert_live.LiveClient(address, TOKEN, timeout=5, tries=1).closest(1)


class Line(asyncio.Transport):
    """A connection that is closed when the server says so, and not lost before its loop goes on."""

    closing = False

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        pass


def test_a_newcomer_is_let_in_while_many_are_being_refused() -> None:
    head = b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"

    async def crowd() -> None:
        app = make_app(a_service(), TOKEN, Limits(rate=10_000))
        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        state = ServerState()

        def comes() -> IdleLimit:
            one = IdleLimit(config, state, {})
            one.connection_made(Line())
            return one

        hostile = []
        for _ in range(MOST_CONNECTIONS + 50):
            hostile.append(comes())
            hostile[-1].data_received(head)
        first = comes()  # no request was looked at yet
        assert not first.transport.is_closing()
        assert [one.transport.is_closing() for one in hostile] == [True] * 51 + [False] * (MOST_CONNECTIONS - 1)
        while not all(one.transport.is_closing() for one in hostile):
            await asyncio.sleep(0.01)
        second = comes()  # all are refused, none is gone
        assert not first.transport.is_closing()
        assert not second.transport.is_closing()
        for one in (*hostile, first, second):
            one.connection_lost(None)

    run_elsewhere(crowd)
    assert MOST_AT_WORK < MOST_CONNECTIONS  # else there may be nobody to hang up on


def test_a_request_that_is_being_answered_is_not_hung_up_on() -> None:
    async def crowd() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            begun.set()
            await go_on.wait()

        config = uvicorn.Config(Guard(slow, TOKEN, Limits(rate=10_000)), ws="none", lifespan="off", log_config=None)
        state = ServerState()
        lines = [IdleLimit(config, state, {}) for _ in range(MOST_CONNECTIONS + 2)]
        lines[0].connection_made(Line())
        lines[0].data_received(f"GET /closest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        await begun.wait()
        for one in lines[1:]:
            one.connection_made(Line())
        assert [k for k, one in enumerate(lines) if one.transport.is_closing()] == [1, 2]
        go_on.set()
        for one in lines:
            one.connection_lost(None)

    run_elsewhere(crowd)


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_client_that_hangs_up_leaves_no_traceback(running, kind) -> None:
    address = running[1]
    head = f"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 1000\r\n\r\n"
    with ExitStack() as stack:
        for rest in ("", '{"events": [', json.dumps(GOOD[0]) + "\n{"):
            stack.enter_context(connected(address)).sendall((head + rest).encode())
        time.sleep(0.1)
    for _ in range(3):  # asks, and does not wait for the answer
        with connected(address) as gone:
            gone.sendall(b"GET /certificate HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(0.3)
    assert agnncert_live.LiveClient(address).closest(1)


def test_names_that_can_be_printed_reach_the_answers_and_others_are_refused(running) -> None:
    address = running[1]
    names = ["</script>", "\U0001f600", "user 1&target=user-2", "\u00e9'; --"]
    unprintable = ["\u202eevil", "a\x00b", "\x1b[31m"]
    client = agnncert_live.LiveClient(address)
    answer = client.apply([Event("add_node", name, value=[1, 0, 0, 0]) for name in (*names, *unprintable)])
    assert (answer["applied"], len(answer["refused"])) == (len(names), len(unprintable))
    for name in names:
        status, text = sent(address, f"/decision?{urllib.parse.urlencode({'target': name})}")
        assert status == 200
        assert text.isascii()
        assert json.loads(text)["target"] == name
