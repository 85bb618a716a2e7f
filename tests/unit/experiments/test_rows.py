"""Rows survive interruptions, and are found by their settings."""

from dataclasses import replace

import pytest

from agnncert.errors import SettingsError
from experiments.paper.rows import Results, append_row, certified_at, read_rows, row_key, share
from experiments.paper.spec import main_setting
from tests.support.rows import row_of


def test_rows_come_back_in_order(tmp_path) -> None:
    file = tmp_path / "deep" / "rows.jsonl"
    append_row(file, {"key": "a", "accuracy": 0.5})
    append_row(file, {"key": "b", "accuracy": None})
    assert [row["key"] for row in read_rows(file)] == ["a", "b"]


def test_a_row_keeps_the_order_of_its_fields_which_are_columns_of_tables(tmp_path):
    file = tmp_path / "rows.jsonl"
    append_row(file, {"method": "b", "dataset": "a"})
    (row,) = read_rows(file)
    assert list(row) == ["method", "dataset"]


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


E_MAIN = main_setting("cora-ml", "edge")


def test_seeds_belong_together_and_the_spread_is_over_them() -> None:
    rows = [row_of(replace(E_MAIN, seed=s), accuracy=a) for s, a in ((0, 0.7), (1, 0.8), (2, 0.9))]
    results = Results([*rows, row_of(replace(E_MAIN, num_groups=100), accuracy=0.1)])
    spread = results.spread(E_MAIN, "accuracy")
    assert spread is not None
    assert str(spread) == ".800 (.700–.900)"
    assert set(results.varied(E_MAIN, "num_groups")) == {100, 300}
    assert results.spread(E_MAIN, "nothing of the kind") is None


def test_the_later_of_two_rows_counts(tmp_path) -> None:
    for accuracy in (0.1, 0.6):
        append_row(tmp_path / "rows" / "cora-ml.jsonl", row_of(E_MAIN, accuracy))
    assert Results.read(tmp_path).rows[E_MAIN]["accuracy"] == 0.6


def test_between_two_stored_sizes_the_value_of_the_larger_one_counts() -> None:
    rows = [row_of(E_MAIN, accuracy=0.8, radius=140)]
    found = [certified_at(rows, size) for size in (0, 139, 140, 141, 205)]
    assert [one.mean for one in found if one] == [0.8, 0.8, 0.8, 0.0, 0.0]


def test_what_is_missing_is_what_has_no_row() -> None:
    all_missing = Results([]).missing(["hashes"])
    some = Results([row_of(E_MAIN)]).missing(["hashes"])
    assert set(all_missing) - set(some) == {E_MAIN}


def test_a_row_that_does_not_say_how_it_was_made_is_refused() -> None:
    with pytest.raises(SettingsError, match="how it was made"):
        Results([{"key": "x", "setting": {"dataset": "cora-ml", "colour": "red"}}])


def test_shares_are_printed_like_the_papers() -> None:
    assert [share(0.8179), share(1.0), share(0.0)] == [".818", "1.000", ".000"]
