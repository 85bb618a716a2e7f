"""A service that begins from a run folder, as the command does."""

import random
import re
import signal
from pathlib import Path

import pytest

import agnncert as ac
import agnncert_live
from agnncert.cli import main
from agnncert_live.run import ServedRun, serve_run, service_of_run, token_from
from tests.support import programs
from tests.support.live import assert_current


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
