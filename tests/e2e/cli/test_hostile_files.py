"""Files that somebody else made to hang, to fool a reader or to run in a spreadsheet.

Each was red before: pipes without the check in ``read_sealed`` and ``is_file`` in ``RunFolder``, escapes without
``visible`` in ``ReportContext`` and ``RunFolder.read_json``, formulas without ``csv_cell``.
"""

import csv
import io
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from agnncert.certificates.ids import id_array
from agnncert.cli.folder import DATA, RunFolder
from agnncert.report.figures import save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext
from agnncert.report.tables import laid_out
from tests.support.synthetic import made_up_certificate

ESCAPES = "\x1b[2J\x9b31m\u202egnitset\u2066\x07\u200f\u2028\U000e0041"
FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=1"]


class Waits(BaseException):
    """Raised in what waits; no handler of errors takes it for one of a file."""


@contextmanager
def at_once(seconds: float = 20) -> Iterator[None]:
    """Fails what waits for a pipe."""

    def late(*_: object) -> None:
        raise Waits

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("command", ["report", "verify", "show"])
def test_a_certificate_that_is_a_pipe_is_refused_at_once(agnncert, command) -> None:
    os.mkfifo("pipe.cert")
    with at_once():
        answer = agnncert(command, "pipe.cert")
    assert answer.status in (1, 2)
    assert "pipe.cert" in answer.err + answer.out


@pytest.mark.parametrize(
    "name",
    [
        "certificate.cert",
        "results.jsonl",
        "data.json",
        "voting_rule.json",
        "certified.safetensors",
        "certified.json",
        "environment.json",
    ],
)
def test_a_run_folder_with_a_pipe_in_it_keeps_nobody_waiting(agnncert, certified, name) -> None:
    (certified / name).unlink(missing_ok=True)
    os.mkfifo(certified / name)
    with at_once(60):
        for command in ("report", "verify"):
            assert agnncert(command, certified).status in (0, 1, 2)


def shown_by(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_names_in_a_run_folder_reach_report_and_screen_with_visible_escapes(agnncert, certified) -> None:
    file = certified / DATA
    data = json.loads(file.read_text(encoding="utf-8"))
    data["name"], data["class_names"] = f"name{ESCAPES}", [f"cat{ESCAPES}", "dog"]
    file.write_text(json.dumps(data), encoding="utf-8")
    assert (
        RunFolder(certified).data["class_names"][0] == r"cat\x1b[2J\x9b31m\u202egnitset\u2066\x07\u200f\u2028\U000e0041"
    )
    answer = agnncert("report", certified)
    assert answer.status == 0, answer.err
    for text in (shown_by(certified / "report.html"), answer.out, answer.err):
        assert not re.search("[\x1b\x9b\u202e\u2066\x07\u200f\u2028\U000e0041]", text)
    assert r"\u202e" in shown_by(certified / "report.html")


def test_a_context_is_shown_with_visible_escapes(tmp_path) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "edge-centric/node", 6, 5, 3)
    object.__setattr__(certificate, "target", id_array([f"id{k}{ESCAPES}" for k in range(6)]))
    context = ReportContext(
        class_names=[f"a{ESCAPES}", "b", "c"], dataset=ESCAPES, commands=[f"run {ESCAPES}"], attack=ESCAPES,
        environment={f"key{ESCAPES}": [ESCAPES]}, choice=ESCAPES, certificate_path=ESCAPES, run_path=ESCAPES,
    )  # fmt: skip
    page = build_report(certificate, tmp_path / "page.html", context=context)
    assert not re.search("[\x1b\x9b\u202e\u2066\x07\u200f\u2028\U000e0041]", shown_by(page))


def test_a_table_holds_no_formula() -> None:
    table = laid_out("csv", ["name", "=title"], [[text, "-1"] for text in FORMULAS])
    titles, *rows = csv.reader(io.StringIO(table, newline=""))
    assert titles == ["name", "'=title"]
    assert [row[0] for row in rows] == [f"'{text}" for text in FORMULAS]
    assert {row[1] for row in rows} == {"-1"}  # a number stays one


def test_tables_of_a_certificate_hold_no_formula(tmp_path) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(0), "edge-centric/node", 7, 5, 3)
    object.__setattr__(certificate, "target", id_array(FORMULAS))
    context = ReportContext(truth=certificate.label, degree=degree, class_names=["=a", "+b", "@c"])
    for file in save_tables(certificate, tmp_path, context):
        if file.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(file.read_bytes().decode(), newline="")) for cell in row]
            assert not [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t", "\r") or cell.startswith("-2+")]


def test_the_results_of_a_run_hold_no_formula(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    folder.put_rows("certify", [{"measure": "=1+1", "value": -1.5, "data": "@x", "model": "+y"}])
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as table:
        (row,) = csv.DictReader(table)
    assert (row["measure"], row["value"], row["data"], row["model"]) == ("'=1+1", "-1.5", "'@x", "'+y")
    assert folder.rows()[0]["measure"] == "=1+1"  # what programs read is as it was
