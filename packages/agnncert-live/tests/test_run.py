"""A service that begins from a run folder, as the command does."""

import re
import signal
from pathlib import Path

import pytest

import agnncert as ac
import agnncert_live
from agnncert.cli import main
from agnncert_live.run import ServedRun, serve_run, service_of_run, token_from
from tests.support import programs


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
    service = service_of_run(run)
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
