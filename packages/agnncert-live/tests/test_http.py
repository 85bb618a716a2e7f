"""The service over real HTTP: events, decisions, the certificate, and what it refuses."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest

import agnncert as ac
import agnncert_live
from agnncert_live import connections
from agnncert_live.client import ServiceError
from agnncert_live.guard import Limits
from tests.support.serving import NODES, TOKEN, a_graph, a_model, a_service, sent, served


@pytest.fixture(scope="module")
def running():
    service = a_service()
    with served(service) as address:
        yield service, agnncert_live.LiveClient(address), address


@pytest.fixture
def guarded():
    limits = Limits(body=5_000, stream=20_000, line=2_000, rate=10_000, patience=0.5)
    service = a_service()
    with served(service, TOKEN, limits) as address:
        yield service, address


def test_events_are_applied_and_decisions_are_those_of_certify(running, tmp_path) -> None:
    service, client, _ = running
    before = client.summary()["events"]
    answer = client.apply(
        [
            agnncert_live.Event("add_edge", "user-1", "user-2"),
            {"kind": "add_node", "node": "new", "value": [0, 0, 1, 1]},
        ]
    )
    assert (answer["applied"], answer["number"], answer["refused"]) == (2, before + 2, [])
    data = service.live.data()
    expected = ac.certify(service.live.model, data, service.live.defence)
    for name in ("user-1", "new"):
        one, asked = expected[name], client.decision(name, add_edges=1)
        assert (asked["label"], asked["radius"]) == (["honest", "fake", "bot"][one.label], one.radius)
        assert asked["votes"] == one.votes.tolist()
        assert asked["holds"] == one.holds_against(ac.Budget(add_edges=1))
    assert client.decision("user-1")["since_reference"]["new_neighbours"] <= 1
    assert client.decision("new")["since_reference"] is None
    file = client.certificate(tmp_path / "now.cert")
    assert ac.verify(file, data=data, model=service.live.model).holds


def test_bad_events_are_refused_one_by_one(running) -> None:
    service, client, _ = running
    before = service.live.number
    answer = client.apply([
        {"kind": "add_edge", "node": "user-3", "other": "user-9"},
        {"kind": "add_edge", "node": "nobody", "other": "user-4"},
        {"kind": "explode", "node": 1},
        "text",
        {"kind": "change_features", "node": "user-3", "value": [1, 2]},
        {"kind": "delete_edge", "node": "user-3", "other": "user-9"},
    ])  # fmt: skip
    assert answer["applied"] == 2
    assert [one["event"] for one in answer["refused"]] == [1, 2, 3, 4]
    assert all(one["reason"] for one in answer["refused"])
    assert service.live.number == before + 2


def test_a_batch_that_is_sent_again_counts_once(tmp_path) -> None:
    service = a_service(tmp_path / "journal")
    with served(service) as address:
        client = agnncert_live.LiveClient(address)
        event = agnncert_live.Event("add_node", "again", value=[1, 1, 1, 1])
        first, second = (client.apply([event], id="topic-0:17") for _ in range(2))
        assert (first["repeated"], second["repeated"], service.live.number) == (False, True, 1)
        lines = [agnncert_live.Event("add_node", f"n{k}", value=[1, 1, 1, 1]) for k in range(3)]
        assert client.stream(lines, id="s")["applied"] == 3
        assert client.stream(lines, id="s")["repeated"] == 1
        assert service.live.number == 4
    service.live.close()


def test_a_stream_is_applied_line_by_line(running, monkeypatch) -> None:
    service, client, address = running
    monkeypatch.setattr("agnncert_live.event_stream.LINES", 4)
    before = service.live.number
    lines = [json.dumps({"kind": "add_node", "node": f"s{k}", "value": [1, 0, 0, 0]}) for k in range(9)]
    body = "\n".join(
        [*lines[:3], "{nonsense", *lines[3:], "", json.dumps({"kind": "add_node", "node": "s0", "value": [0] * 4})]
    )
    status, text = sent(address, "/events", body.encode() + b"\n", {"Content-Type": "application/x-ndjson"})
    answer = json.loads(text)
    assert status == 200
    assert (answer["applied"], answer["refused_in_all"], answer["batches"]) == (9, 3, 3)
    assert [one["event"] for one in answer["refused"]] == [3, 10, 11]
    assert service.live.number == before + 9
    assert client.summary()["events"] == before + 9


def test_the_closest_and_what_changed(running) -> None:
    service, client, _ = running
    rows = client.closest(5)
    assert [row["radius"] for row in rows] == sorted(service.live.radius.tolist())[:5]
    since = client.summary()["events"]
    events = [
        agnncert_live.Event("change_features", f"user-{k}", value=[9.0 * (-1) ** k, 5, -9, 3]) for k in range(NODES)
    ]
    flipped = client.apply(events)["flipped"]
    assert flipped
    told = [one["target"] for one in client.changes(since) if one["flipped"]]
    assert sorted(told) == sorted(one["target"] for one in flipped)
    assert client.changes(client.summary()["events"]) == []


def test_metrics_and_the_interface(running) -> None:
    service, client, address = running
    lines = dict(line.rsplit(" ", 1) for line in client.metrics().splitlines() if not line.startswith("#"))
    assert float(lines["agnncert_events_total"]) == service.live.number
    assert float(lines["agnncert_refused_total"]) == service.counts.refused
    assert float(lines["agnncert_targets"]) == len(service.live)
    paths = json.loads(sent(address, "/openapi.json")[1])["paths"]
    status, page = sent(address, "/api")
    assert status == 200
    assert {"/events", "/decision", "/closest", "/changes", "/certificate", "/metrics", "/health"} <= paths.keys()
    assert all(f"{method.upper()} {path}" in page.decode() for path, methods in paths.items() for method in methods)
    for page in ("/", "/api"):  # nothing is loaded from elsewhere
        assert b"http://" not in sent(address, page)[1].replace(b"http://www.w3.org", b"")
        assert b"https://" not in sent(address, page)[1]


@pytest.mark.parametrize(
    ("path", "status"),
    [("/decision?target=nobody", 404), ("/decision", 422), ("/decision?target=user-1&add_edges=-1", 422),
     ("/decision?target=user-1&spells=3", 422), ("/decision?target=user-1&flip_labels=1", 400), ("/closest?limit=x", 422), ("/nothing", 404), ("/../../etc/passwd", 404),
     ("/%2e%2e/%2e%2e/etc/passwd", 404), ("/static/..%2f..%2fetc", 404)],
)  # fmt: skip
def test_questions_that_make_no_sense(running, path, status) -> None:
    assert sent(running[2], path)[0] == status


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"events": 3}', b'{"events": [], "more": 1}', b'{"events": [NaN]}', b'{"events": [], "id": "a", "id": "b"}', b"[" * 100_000, b"\xff\xfe",
     b'{"events": [], "id": 7}'],
)  # fmt: skip
def test_bodies_that_are_no_events(running, body) -> None:
    service, _, address = running
    before = service.live.number
    status, text = sent(address, "/events", body, {"Content-Type": "application/json"})
    assert status == (422 if b'"id": 7' in body else 400)
    assert json.loads(text)["error"]
    assert service.live.number == before


def test_a_web_page_elsewhere_cannot_send_events(running) -> None:
    """Browsers send these kinds of content without asking first, so they are not taken."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert sent(running[2], "/events", b'{"events": []}', {"Content-Type": kind})[0] == 415
    # … nor can it make its own name lead here.
    assert sent(running[2], "/summary", headers={"Host": "evil.example"})[0] == 403
    assert sent(running[2], "/summary", headers={"Host": "evil.example:80"})[0] == 403


def test_no_token_no_answer(guarded) -> None:
    service, address = guarded
    body = json.dumps({"events": [{"kind": "add_node", "node": "x", "value": [1, 1, 1, 1]}]}).encode()
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": "Basic " + TOKEN},
    ):
        for path in (
            "/summary",
            "/decision?target=user-1",
            "/closest",
            "/certificate",
            "/metrics",
            "/openapi.json",
            "/api",
            "/x",
        ):
            assert sent(address, path, headers=headers)[0] == 401
        assert sent(address, "/events", body, {**headers, "Content-Type": "application/json"})[0] == 401
    assert service.live.number == 0
    assert sent(address, "/health") == (200, b'{"ok":true,"events":0}')
    page = sent(address, "/")[1].decode()
    assert "user-1" not in page  # the page holds no data
    assert agnncert_live.LiveClient(address, TOKEN).apply(json.loads(body)["events"])["applied"] == 1
    with pytest.raises(ServiceError, match="send the token"):
        agnncert_live.LiveClient(address, "wrong").closest()


def test_bodies_that_are_too_large(guarded) -> None:
    service, address = guarded
    key = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    assert sent(address, "/events", b" " * 5_001, key)[0] == 413
    assert sent(address, "/events", b" " * 2_001, {**key, "Content-Type": "application/x-ndjson"})[0] == 413
    assert sent(address, "/events", b"\n" * 20_001, {**key, "Content-Type": "application/x-ndjson"})[0] == 413
    host, port = address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)

    def pieces():
        for _ in range(100):
            yield b" " * 1_000

    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not wait for the last piece to refuse
        connection.request("POST", "/events", pieces(), {**key, "Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    assert service.live.number == 0


def test_clients_that_are_too_slow(guarded, monkeypatch) -> None:
    _, address = guarded
    monkeypatch.setattr(connections.IdleLimit, "patience", 0.4)
    host, port = address.removeprefix("http://").split(":")
    head = f"POST /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as slow:  # a body that never comes
        slow.sendall(f"{head}Content-Length: 10\r\n\r\n".encode())
        slow.settimeout(20)
        assert b" 408 " in slow.recv(4_096)
    with socket.create_connection((host, int(port))) as slower:  # a head that never ends
        slower.sendall(head.encode())
        slower.settimeout(20)
        assert slower.recv(4_096) == b""
    assert agnncert_live.LiveClient(address, TOKEN).closest(1)


def test_clients_that_ask_too_often() -> None:
    service = a_service()
    with served(service, limits=Limits(rate=5)) as address:
        answers = [sent(address, "/health")[0] for _ in range(30)]
        assert answers[:15] == [200] * 15
        assert 429 in answers
        time.sleep(0.5)
        assert sent(address, "/health")[0] == 200
        assert agnncert_live.LiveClient(address, tries=6).summary()["events"] == 0  # waits and asks again


def test_many_clients_at_once_lose_nothing(tmp_path) -> None:
    service = a_service(tmp_path / "journal")
    failed: list[BaseException] = []
    with served(service) as address:

        def work(number: int) -> None:
            try:
                client = agnncert_live.LiveClient(address)
                for k in range(10):
                    name = f"client-{number}-{k}"
                    client.apply(
                        [
                            agnncert_live.Event("add_node", name, value=[1, 0, number, k]),
                            agnncert_live.Event("add_edge", name, "user-0"),
                        ],
                        id=name,
                    )
                    assert client.decision(name)["target"] == name
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert service.live.number == 80
    certificate = service.live.certificate()
    expected = ac.certify(service.live.model, service.live.data(), service.live.defence)
    assert (certificate.label == expected.label).all()
    assert (certificate.radius == expected.radius).all()
    service.live.close()
    data = a_graph()
    with agnncert_live.LiveGraph(a_model(data), data, ac.NodeCentric(8), journal=tmp_path / "journal") as again:
        assert again.number == 80


def test_health_says_that_nothing_can_be_written_until_it_can(tmp_path) -> None:
    service = a_service(tmp_path / "journal")
    database = service.live._journal._database
    with served(service) as address:
        client = agnncert_live.LiveClient(address, tries=1)
        assert sent(address, "/health")[0] == 200
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (most,) = database.execute("PRAGMA max_page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")  # as if the disk were full
        refused = None
        for k in range(50):
            try:
                names = [f"new-{k}-{number}" for number in range(100)]
                client.apply([agnncert_live.Event("add_node", name, value=[1, 0, 0, 0]) for name in names])
            except ServiceError as error:
                refused = error
                break
        assert refused is not None
        assert refused.status == 503
        status, body = sent(address, "/health")
        assert status == 503
        assert "full" in json.loads(body)["error"]
        before = service.live.number
        database.execute(f"PRAGMA max_page_count = {most}")
        assert sent(address, "/health")[0] == 200  # it tried again
        client.apply([agnncert_live.Event("add_node", "last", value=[1, 0, 0, 0])])
        assert service.live.number == before + 1
    service.live.close()


def test_a_connection_that_is_used_stays_open(running, monkeypatch) -> None:
    """Short requests are over whenever the clock is looked at; they count all the same."""
    monkeypatch.setattr(connections.IdleLimit, "patience", 0.6)
    host, port = running[2].removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.connect()
    used = connection.sock
    for _ in range(8):  # for longer than patience
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        assert connection.sock is used
        time.sleep(0.25)
    time.sleep(2.0)
    used.settimeout(5)
    assert used.recv(1) == b""  # it was not used, so it was closed
    connection.close()
