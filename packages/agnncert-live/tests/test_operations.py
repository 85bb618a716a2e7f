"""What operators use: readiness, metrics, logs, copies of the journal, the unit of systemd, the description of the API."""

import json
import logging
import os
import re
import subprocess
from pathlib import Path

import pytest
import typer
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import agnncert as ac
from agnncert_live import Event, JournalError, LiveClient, LiveGraph
from agnncert_live.backup import backup_journal, restore_journal
from agnncert_live.command import journal
from agnncert_live.logs import JsonLines
from agnncert_live.metrics import RequestMetrics, as_text
from tests.support import programs
from tests.support.flushes import inode, noted_flushes
from tests.support.live import assert_current
from tests.support.serving import TOKEN, a_graph, a_model, a_service, sent, served

SCHEMATHESIS = programs.AGNNCERT.with_name("schemathesis")


def test_alive_is_not_ready(tmp_path) -> None:
    service = a_service(tmp_path / "j")
    with served(service, TOKEN) as address:
        assert [sent(address, path)[0] for path in ("/live", "/ready", "/health")] == [200, 200, 200]
        (tmp_path / "j").rename(tmp_path / "elsewhere")
        with pytest.raises(ac.errors.AgnncertError):
            LiveClient(address, TOKEN, tries=1).apply([Event("add_edge", "user-1", "user-2")])
        assert [sent(address, path)[0] for path in ("/live", "/ready", "/health")] == [200, 503, 503]
        (tmp_path / "elsewhere").rename(tmp_path / "j")
        assert sent(address, "/ready")[0] == 200
    service.live.close()


def parsed(text: str) -> tuple[dict[str, dict[str, str]], dict[str, float]]:
    """Metadata and samples of a text of metrics."""
    about, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, value = line.split(" ", 3)
            assert word not in about.setdefault(name, {}), line
            about[name][word] = value
        else:
            name, value = re.fullmatch(r"([a-z0-9_]+(?:\{[^}]*\})?) (\S+)", line).groups()
            assert name not in samples
            samples[name] = float(value)
    return about, samples


def test_metrics_say_what_they_are(tmp_path) -> None:
    service = a_service(tmp_path / "j")
    with served(service) as address:
        client = LiveClient(address)
        client.apply([Event("add_edge", "user-1", "user-2"), Event("add_edge", "user-1", "nobody")])
        for path in ("/decision?target=nobody", "/nowhere", "/nowhere/else", "/live"):
            sent(address, path)
        about, samples = parsed(client.metrics())
        status, text = sent(address, "/metrics", headers={"Accept": "application/openmetrics-text; version=x, */*"})
    assert status == 200
    for name in samples:
        family = re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name)
        assert {"HELP", "TYPE"} <= about[family].keys(), name
    open_metrics = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert {re.sub("_total$", "", family) for family in about} == open_metrics.keys()
    for name, family in open_metrics.items():
        if name.startswith("agnncert_") and name.endswith(("_seconds", "_bytes")):
            assert family.unit == name.rsplit("_", 1)[1]
    assert samples["process_cpu_seconds_total"] > 0
    assert samples['agnncert_http_requests_total{path="/events",status="200"}'] == 1
    assert samples['agnncert_http_requests_total{path="/decision",status="404"}'] == 1
    assert samples['agnncert_http_requests_total{path="other",status="404"}'] == 2  # nobody makes up labels
    buckets = [value for name, value in samples.items() if "_duration_seconds_bucket" in name]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples["agnncert_http_request_duration_seconds_count"] == 5
    assert samples["agnncert_journal_bytes"] == (tmp_path / "j").stat().st_size
    live = service.live
    is_class = live.truth == 1
    for size in (0, 1, 3):
        share = ((live.label == 1) & (live.radius >= size))[is_class].mean()
        assert samples[f'agnncert_certified_recall{{class="fake",size="{size}"}}'] == pytest.approx(share, abs=1e-6)
    live.close()


def test_the_histogram_of_latencies_is_in_seconds_and_sums_them() -> None:
    requests = RequestMetrics(frozenset({"/events"}))
    for seconds in (0.005, 0.25, 0.5, 60.0):
        requests.note("/events", 200, seconds)
    _, samples = parsed(as_text(requests.metrics()))
    name = "agnncert_http_request_duration_seconds"
    assert samples[f"{name}_sum"] == pytest.approx(60.755)
    assert samples[f"{name}_count"] == 4
    below = {limit: samples[f'{name}_bucket{{le="{limit}"}}'] for limit in ("0.005", "0.1", "0.25", "0.5", "10.0")}
    assert below == {"0.005": 1, "0.1": 1, "0.25": 2, "0.5": 3, "10.0": 3}  # a limit belongs to its own bucket
    assert samples[f'{name}_bucket{{le="+Inf"}}'] == 4


def test_logs_are_json_with_fields(caplog) -> None:
    caplog.set_level(logging.INFO, "agnncert_live.service")
    a_service().post([{"kind": "add_edge", "node": "user-1", "other": "user-2"}])
    [record] = [record for record in caplog.records if record.message == "a batch of events"]
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["logger"], line["applied"], line["number"]) == ("info", "agnncert_live.service", 1, 1)
    try:
        raise ValueError("bad")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed\n", None, __import__("sys").exc_info())
    assert "ValueError: bad" in json.loads(JsonLines().format(record))["error"]


def begin(path):
    data = a_graph()
    return LiveGraph(a_model(data), data, ac.NodeCentric(8), journal=path)


def test_a_journal_is_copied_checked_and_put_back(tmp_path, capsys) -> None:
    path, copy = tmp_path / "j", tmp_path / "copy"
    with begin(path) as live:
        live.apply([Event("add_edge", "user-1", f"user-{k}") for k in range(20, 24)], id="one", skip_bad=True)
        number = live.number
        with pytest.raises(typer.Exit):  # a service has it open
            journal("check", path)
        assert "in use" in capsys.readouterr().err
        live.backup(tmp_path / "hot")  # while it is in use
    journal("check", tmp_path / "hot")
    journal("backup", path, copy)
    assert f"{number:,} events" in capsys.readouterr().out
    with begin(path) as live:
        live.apply(Event("delete_node", "user-5"), id="two")
    with pytest.raises(typer.Exit):
        journal("restore", copy, path)
    assert "--replace" in capsys.readouterr().err
    journal("restore", copy, path, replace=True)
    with begin(path) as live:
        assert (live.number, "user-5" in live) == (number, True)
        assert live.apply([], id="one").repeated
        assert_current(live)
    journal("check", tmp_path / "j.before")
    content = bytearray(copy.read_bytes())
    place = content.find(b"user-22")
    content[place : place + 7] = b"user-29"
    copy.write_bytes(content)
    with pytest.raises(typer.Exit) as ended:
        journal("restore", copy, tmp_path / "new")
    assert ended.value.exit_code == 1
    assert not (tmp_path / "new").exists()
    with pytest.raises(ac.errors.SettingsError, match="needs a destination"):
        journal("backup", path)


@pytest.mark.parametrize("replace", [False, True])
def test_a_restored_journal_is_on_the_disk_before_it_has_its_name_and_so_is_its_name(tmp_path, monkeypatch, replace):
    (tmp_path / "there").mkdir()
    copy, path = tmp_path / "copy", tmp_path / "there" / "j"
    begin(copy).close()
    if replace:
        begin(path).close()
    calls = noted_flushes(monkeypatch)
    restore_journal(copy, path, replace=replace)
    moved = [("rename", inode(tmp_path / "there" / "j.before"))] if replace else []
    restored, folder = inode(path), inode(tmp_path / "there")
    assert calls == [("flush", restored), *moved, ("rename", restored), ("flush", folder)]


def test_nothing_is_put_in_the_place_of_a_journal_in_use_or_of_a_copy(tmp_path) -> None:
    path, copy = tmp_path / "j", tmp_path / "copy"
    begin(copy).close()
    with begin(path) as live:
        with pytest.raises(JournalError, match="in use"):
            restore_journal(copy, path, replace=True)
        live.apply(Event("delete_node", "user-5"), id="one")  # the service has its journal as before
        assert_current(live)
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.endswith("-journal")) == ["copy", "j"]
    before = copy.read_bytes()
    with pytest.raises(JournalError, match="copy exists"):
        backup_journal(path, copy)
    assert copy.read_bytes() == before
    path.write_bytes(b"damaged")
    restore_journal(copy, path, replace=True)  # for which copies are made
    assert (tmp_path / "j.before").read_bytes() == b"damaged"


def test_a_copy_that_fails_holds_no_file_open(tmp_path) -> None:
    """Whoever keeps the error would else keep the file open, too."""
    (tmp_path / "copy").write_bytes(b"this is no database, and long enough to be read as one" * 100)
    with begin(tmp_path / "j") as live:
        with pytest.raises(JournalError, match="cannot be copied") as failure:
            live._journal.copy_to(tmp_path / "copy")
        assert failure.value.__cause__ is not None
        opened = [os.readlink(handle) for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink()]
        assert str(tmp_path / "j") in opened
        assert str(tmp_path / "copy") not in opened


def test_a_service_gives_a_copy_of_its_journal(tmp_path) -> None:
    service = a_service(tmp_path / "j")
    with served(service, TOKEN) as address:
        assert sent(address, "/journal")[0] == 401
        LiveClient(address, TOKEN).apply([Event("add_edge", "user-1", "user-2")])
        status, body = sent(address, "/journal", headers={"Authorization": f"Bearer {TOKEN}"})
        assert status == 200
        (tmp_path / "copy").write_bytes(body)
        journal("check", tmp_path / "copy")
        assert_current(service.live)
    service.live.close()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_description_says_who_may_ask(token) -> None:
    service = a_service()
    with served(service, token) as address:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        schema = json.loads(sent(address, "/openapi.json", headers=headers)[1])
        schemes = schema.get("components", {}).get("securitySchemes", {})
        assert (schemes.get("token", {}).get("scheme") == "bearer") == (token is not None)
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                asks = token is not None and path not in ("/health", "/live", "/ready")
                assert bool(operation.get("security")) == asks, path
                if asks:
                    assert sent(address, path)[0] in (401, 405)


@pytest.mark.slow
@pytest.mark.skipif(not SCHEMATHESIS.is_file(), reason="schemathesis is not installed")
def test_schemathesis_finds_no_answer_that_the_description_does_not_have(tmp_path) -> None:
    service = a_service(tmp_path / "j")
    with served(service, TOKEN) as address:
        words = [str(SCHEMATHESIS), "run", f"{address}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}"]
        words += [
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ]
        found = subprocess.run(
            [*words, "--max-examples", "30", "--seed", "1"], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stdout[-3000:]
        assert_current(service.live)
    service.live.close()
