"""Rows survive interruptions."""

import pytest

from agnncert.errors import SettingsError
from agnncert.studies.paper.rows import append_row, read_rows, row_key


def test_rows_come_back_in_order(tmp_path) -> None:
    file = tmp_path / "deep" / "rows.jsonl"
    append_row(file, {"key": "a", "accuracy": 0.5})
    append_row(file, {"key": "b", "accuracy": None})
    assert [row["key"] for row in read_rows(file)] == ["a", "b"]


def test_a_file_that_is_not_there_has_no_rows(tmp_path) -> None:
    assert list(read_rows(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize("cut", ['{"key": "b", "acc', '{"key": "b"', "{"])
def test_a_line_cut_short_is_passed_over_and_then_replaced(tmp_path, cut) -> None:
    file = tmp_path / "rows.jsonl"
    append_row(file, {"key": "a"})
    with file.open("a") as open_file:
        open_file.write(cut)
    assert [row["key"] for row in read_rows(file)] == ["a"]
    append_row(file, {"key": "c"})
    assert [row["key"] for row in read_rows(file)] == ["a", "c"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"key": "a"}\n{"key": \n{"key": "c"}\n')
    with pytest.raises(SettingsError, match=r"rows\.jsonl, line 2"):
        list(read_rows(file))


def test_a_key_depends_on_values_and_not_on_their_order() -> None:
    assert row_key({"a": 1, "b": 2}) == row_key({"b": 2, "a": 1})
    assert row_key({"a": 1, "b": 2}) != row_key({"a": 2, "b": 1})
