"""A service that begins from a run folder, as the command does."""

import random
import re
import shutil
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import agnncert as ac
import agnncert_live
from agnncert.cli import main
from agnncert.progress import Progress
from agnncert_live import run as run_module
from agnncert_live.run import ServedRun, listen, serve_run, service_of_run, token_from
from tests.support import programs
from tests.support.live import assert_current
from tests.support.serving import sent


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert main(["certify", "digits-knn", "--weights", "pretrained", "--out", str(folder), "--no-report"]) == 0
    return folder


@pytest.mark.slow
def test_it_is_killed_and_goes_on(run, tmp_path) -> None:
    words = [programs.AGNNCERT, "serve", run, "--host", "127.0.0.1", "--port", 0]
    token = {"AGNNCERT_TOKEN": "x" * 20}
    with (tmp_path / "err").open("w") as err, programs.start(*words, environment=token, stderr=err) as process:
        try:
            line = process.stdout.readline()
            address = re.search(r"http://[\d.:]+", line)
            assert address, line + (tmp_path / "err").read_text()
            client = agnncert_live.LiveClient(address[0], "x" * 20)
            assert client.summary()["data"] == "digits-knn"
            events = [agnncert_live.Event("add_edge", 3, 1500), agnncert_live.Event("add_edge", 3, 1501)]
            answer = client.apply(events, id="one")
            assert answer["applied"] == 2
            before = client.decision(3)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    service = service_of_run(ServedRun(run))
    with service.live:
        assert service.live.number == 2
        again = service.decision("3", {})
        assert again == before
        assert again["since_reference"]["new_neighbours"] == 2
        assert "2 have come" in again["since_reference"]["text"]


def test_what_would_be_open_to_all_is_refused(run) -> None:
    with pytest.raises(ac.errors.SettingsError, match="can be reached from elsewhere: set a token"):
        serve_run(ServedRun(run), host="0.0.0.0")
    with pytest.raises(ac.errors.SettingsError, match="at least 16"):
        serve_run(ServedRun(run), host="0.0.0.0", token="short")


def test_a_folder_that_has_no_certificate(tmp_path) -> None:
    with pytest.raises(ac.errors.SettingsError, match="not the folder of a certified run"):
        serve_run(ServedRun(tmp_path), port=0)


def test_a_port_that_is_taken(run) -> None:
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ac.errors.SettingsError, match="cannot listen at"),
    ):
        serve_run(ServedRun(run), port=taken.getsockname()[1])


def test_where_the_token_comes_from(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("AGNNCERT_TOKEN", "from the environment")
    (tmp_path / "token").write_text("from a file\n")
    assert token_from(None) == "from the environment"
    assert token_from(tmp_path / "token") == "from a file"
    with pytest.raises(ac.errors.SettingsError, match="cannot read the token"):
        token_from(tmp_path / "missing")


def write_payments(folder: Path) -> Path:
    """Accounts that pay their own kind, some pairs several times."""
    rng = random.Random(0)
    folder.mkdir()
    kinds = [rng.randrange(2) for _ in range(60)]
    nodes = [f"n{k},{kind + rng.gauss(0, 2):.3f},{('good', 'bad')[kind]}" for k, kind in enumerate(kinds)]
    pairs = [rng.sample(range(60), 2) for _ in range(500)]
    edges = [f"n{a},n{b},{rng.random():.2f}" for a, b in pairs if kinds[a] == kinds[b]]
    (folder / "nodes.csv").write_text("\n".join(["id,a,label", *nodes]) + "\n")
    (folder / "edges.csv").write_text("\n".join(["source,target,amount", *edges]) + "\n")
    return folder


@pytest.fixture(scope="module")
def stacked_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stacked")
    tables = write_payments(folder / "payments")
    words = [
        "train",
        tables,
        "--division",
        "stacked",
        "--epochs",
        3,
        "--size",
        1,
        "--no-references",
        "--out",
        folder / "run",
    ]
    for setting in (
        "edge_feature=amount",
        "repeated=sum",
        "defence.edge_values=true",
        "defence.folds=2",
        "defence.epochs=30",
    ):
        words += ["--set", setting]
    assert main(list(map(str, words))) == 0
    assert main(["certify", str(folder / "run"), "--no-report"]) == 0
    return folder / "run"


def test_a_run_of_stacked_votes_is_served_killed_and_goes_on(stacked_run, tmp_path) -> None:
    words = [programs.AGNNCERT, "serve", stacked_run, "--port", 0]
    with (tmp_path / "err").open("w") as err, programs.start(*words, stderr=err) as process:
        try:
            line = process.stdout.readline()
            address = re.search(r"http://[\d.:]+", line)
            assert address, line + (tmp_path / "err").read_text()
            client = agnncert_live.LiveClient(address[0])
            assert client.summary()["defence"].startswith("stacked-votes")
            first = (stacked_run / "data" / "edges.csv").read_text().splitlines()[1].split(",")
            events = [
                {"kind": "add_node", "node": "eve", "value": [0.5]},
                {"kind": "record_edge", "node": "eve", "other": "n3", "value": 0.25},
                {"kind": "record_edge", "node": "eve", "other": "n3", "value": 0.5},
                {"kind": "record_edge", "node": first[0], "other": first[1], "value": 10.0},
                {"kind": "record_edge", "node": "eve", "other": "nobody", "value": 0.5},
            ]
            answer = client.apply(events, id="one")
            assert (answer["applied"], len(answer["refused"])) == (4, 1)
            before = client.decision("n3", add_edges=1)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    service = service_of_run(ServedRun(stacked_run))
    with service.live:
        assert service.live.number == 4
        assert service.decision("n3", {"add_edges": "1"}) == before
        assert before["since_reference"]["new_neighbours"] == 1
        data = service.live.data()
        ends = data.edge_index.T.tolist()
        eve, other = data.node_id.index("eve"), data.node_id.index("n3")
        assert data.edge_attr[ends.index([eve, other])].tolist() == [0.75]  # the sum, as in training
        assert_current(service.live)
        (stacked_run / "now.cert").write_bytes(service.certificate())
        verdict = ac.verify(stacked_run / "now.cert", data=service.live.data(), model=service.live.model)
        assert verdict.holds


def copied(run: Path, place: Path) -> Path:
    """A copy of a run without what a service left there."""
    shutil.copytree(run, place / "run", ignore=shutil.ignore_patterns("live*"))
    return place / "run"


def test_a_restart_reads_no_tables(stacked_run, tmp_path) -> None:
    run = copied(stacked_run, tmp_path)
    with service_of_run(ServedRun(run)).live as live:
        live.apply(agnncert_live.Event("record_edge", "n1", "n2", 2.0))
        before = live.label.tolist(), live.radius.tolist()
        reference = live.reference_again(None)
    shutil.rmtree(run / "data")
    service = service_of_run(ServedRun(run))
    with service.live as live:
        assert (live.label.tolist(), live.radius.tolist()) == before
        assert service.reference is not None
        assert service.reference.claim.digests["graph"] == reference.claim.digests["graph"]
        assert service.decision("n1", {})["since_reference"]["new_neighbours"] == 1
        assert_current(live)


def test_a_journal_of_another_run_is_refused(stacked_run, tmp_path) -> None:
    run = copied(stacked_run, tmp_path)
    service_of_run(ServedRun(run)).live.close()
    with sqlite3.connect(run / "live.journal") as database:
        database.execute("UPDATE about SET value = 'x' WHERE name = 'graph'")
    database.close()
    with pytest.raises(agnncert_live.JournalError, match="belongs to another graph: it says x"):
        service_of_run(ServedRun(run))


class Enough(Exception):
    """Ends a service that a test has seen."""


def test_while_it_loads_it_is_alive_and_says_how_far_it_is(stacked_run, tmp_path, monkeypatch) -> None:
    go, seen, is_ready, ended = (threading.Event() for _ in range(4))
    real, stages = run_module.service_of_run, []
    run = ServedRun(copied(stacked_run, tmp_path))
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]

    def held(run, progress):
        progress(Progress("reading the run", 0, 1, 0.0))
        assert go.wait(60)
        return real(run, progress)

    def on_ready(address, service):
        is_ready.set()
        assert seen.wait(60)
        raise Enough

    def serve():
        with pytest.raises(Enough):
            serve_run(run, port=port, on_ready=on_ready, progress=lambda progress: stages.append(progress.what))
        ended.set()

    monkeypatch.setattr(run_module, "service_of_run", held)
    threading.Thread(target=serve, daemon=True).start()
    address = f"http://127.0.0.1:{port}"
    answer = (0, b"")
    deadline = time.monotonic() + 60
    while answer[0] != 200 or not stages:
        assert time.monotonic() < deadline, answer
        with suppress(OSError):
            answer = sent(address, "/live")
    for path in ("/ready", "/health", "/summary", "/decision?target=n1"):
        status, text = sent(address, path)
        assert status == 503, path
        assert b"starting: reading the run" in text
    assert sent(address, "/events", b"{}", {"content-type": "application/json"})[0] == 503
    go.set()
    assert is_ready.wait(60)
    assert sent(address, "/ready")[0] == 200
    assert sent(address, "/decision?target=n1")[0] == 200
    assert stages[:2] == ["reading the run"] * 2
    assert "certifying the reference" in stages
    seen.set()
    assert ended.wait(60)


def test_what_goes_wrong_while_it_loads_ends_it(stacked_run, tmp_path) -> None:
    run = copied(stacked_run, tmp_path)
    (run / "live.journal").write_text("no journal")
    # in a thread: a browser of another test may have left an event loop in this one
    with ThreadPoolExecutor(1) as pool, pytest.raises(agnncert_live.JournalError, match="no journal"):
        pool.submit(serve_run, ServedRun(run), port=0).result(60)
