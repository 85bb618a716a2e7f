"""With a guard against the files of others broken on purpose, the named test must turn red.

A mutation is an edit of a function's text. The edited function takes the place of the original for one call of the test.
"""

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agnncert import storage, verdict
from agnncert.cli.folder import RunFolder
from agnncert.errors import AgnncertError
from agnncert.report import tables
from agnncert.report.summary import ReportContext
from tests.e2e.cli import test_hostile_files as hostile
from tests.soundness.forger import test_repeated_names as repeated
from tests.support.mutations import edited


def refused_at_once(read: Callable[[Path], object], folder: Path) -> None:
    """Nobody writes into the pipe, so who reads it waits."""
    os.mkfifo(folder / "pipe")
    with hostile.at_once(0.5), pytest.raises(AgnncertError):
        read(folder / "pipe")


def a_pipe_is_no_certificate(folder: Path) -> None:
    refused_at_once(lambda path: storage.read_sealed(path, "agnncert-certificate", 1), folder)


def a_pipe_is_not_verified(folder: Path) -> None:
    refused_at_once(verdict.verify, folder)


def pipes_of_a_run_are_passed_over(folder: Path) -> None:
    for name in ("data.json", "results.jsonl"):
        os.mkfifo(folder / name)
    with hostile.at_once(0.5):
        assert RunFolder(folder).read_json("data.json") == {}
        assert RunFolder(folder).rows() == []


def names_of_a_run_are_visible(folder: Path) -> None:
    (folder / "data.json").write_text('{"name": "a\\u001b[2Jb\\u202ec"}', encoding="utf-8")
    assert RunFolder(folder).data["name"] == r"a\x1b[2Jb\u202ec"


PIPE = "path.exists() and not path.is_file()"
MUTATIONS = {
    "pipe": (storage._read_file, PIPE, f"False and {PIPE}", a_pipe_is_no_certificate),
    "pipe verified": (
        inspect.unwrap(verdict.verify), "not Path(file).is_file()", "not Path(file).exists()", a_pipe_is_not_verified,
    ),
    "pipe as rows": (RunFolder.rows, "file.is_file()", "file.exists()", pipes_of_a_run_are_passed_over),
    "pipe as JSON": (RunFolder.read_json, "file.is_file()", "file.exists()", pipes_of_a_run_are_passed_over),
    "a name twice": (
        storage._without_repetition, "len(mapping) < len(pairs)", "False",
        repeated.test_json_of_a_run_folder_says_nothing_twice,
    ),
    "escapes of a run": (RunFolder.read_json, "visible(", "(", names_of_a_run_are_visible),
    "escapes": (storage.is_command, '"Cc", ', "", names_of_a_run_are_visible),
    "turned text": (storage.is_command, '"Cf", ', "", names_of_a_run_are_visible),
    "escapes of a context": (
        ReportContext.__post_init__, "visible(getattr(self, name))", "getattr(self, name)",
        hostile.test_a_context_is_shown_with_visible_escapes,
    ),
    "escapes inside lists": (
        storage.visible, "[visible(entry) for entry in value]", "list(value)",
        hostile.test_a_context_is_shown_with_visible_escapes,
    ),
    "escapes of keys": (
        storage.visible, "{visible(name): ", "{name: ", hostile.test_a_context_is_shown_with_visible_escapes,
    ),
    "formulas": (tables._csv_line, "map(csv_cell, cells)", "cells", hostile.test_tables_of_a_certificate_hold_no_formula),
    "formulas with a sign": (tables.csv_cell, '"+", "-", ', "", hostile.test_a_table_holds_no_formula),
    "formulas behind a tab": (tables.csv_cell, ', "\\t", "\\r"', "", hostile.test_a_table_holds_no_formula),
    "numbers are no formulas": (
        tables.csv_cell, "cell if _NUMBER.fullmatch(cell) else ", "", hostile.test_a_table_holds_no_formula,
    ),
    "formulas of results": (
        RunFolder.put_rows, "csv_cell(cell)", "cell", hostile.test_the_results_of_a_run_hold_no_formula,
    ),
}  # fmt: skip


def called(test: Callable[..., None], folder: Path) -> None:
    """A test with the folder that it asks for, if it does."""
    test(*([folder] if inspect.signature(test).parameters else []))


@pytest.mark.parametrize(
    "test", list(dict.fromkeys(mutation[3] for mutation in MUTATIONS.values())), ids=lambda test: test.__name__
)
def test_as_it_is_every_check_passes(test, tmp_path) -> None:
    called(test, tmp_path)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_guard_turns_its_test_red(name, tmp_path, monkeypatch) -> None:
    function, old, new, test = MUTATIONS[name]
    monkeypatch.setattr(function, "__code__", inspect.unwrap(edited(function, old, new)).__code__)
    with pytest.raises((AssertionError, pytest.fail.Exception, hostile.Waits, Exception)):
        called(test, tmp_path)
