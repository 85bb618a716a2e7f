"""The same cells in every format, with what the format would misread escaped."""

import csv
import io

import pytest

from agnncert.report.tables import FORMATS, laid_out

TITLES, ROWS = ["name", "size"], [["a|b", "1,000"], ["50% & c_d – ~", "7\u00a0%"]]


def test_cells_survive_each_format() -> None:
    assert list(csv.reader(io.StringIO(laid_out("csv", TITLES, ROWS)))) == [TITLES, *ROWS]
    assert r"| a\|b | 1,000 |" in laid_out("markdown", TITLES, ROWS).splitlines()
    assert r" 50\% \& c\_d -- \textasciitilde{} &    7~\% \\" in laid_out("latex", TITLES, ROWS).splitlines()
    assert laid_out("text", TITLES, ROWS).splitlines()[1] == "a|b            1,000"


def test_numbers_stand_to_the_right_unless_sides_are_given() -> None:
    assert "|---|---:|" in laid_out("markdown", TITLES, ROWS)
    assert "|---:|---|" in laid_out("markdown", TITLES, ROWS, "rl")
    assert r"\begin{tabular}{lr}" in laid_out("latex", TITLES, ROWS)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_without_rows_keeps_its_columns(format) -> None:
    text = laid_out(format, TITLES, [])
    assert all(title in text for title in TITLES)
    assert r"\begin{tabular}{}" not in text
    assert "||" not in text
