"""Lays out tables as text, Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tabulate import TableFormat, tabulate

FORMATS = ("text", "markdown", "csv", "latex")
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|[+-](inf|nan)")


def laid_out(format: str, titles: Sequence[str], rows: Iterable[Sequence[Any]], sides: str = "") -> str:
    """Returns a table in one of :data:`FORMATS`.

    Args:
        format: The format.
        titles: One title per column.
        rows: One cell per column.
        sides: One letter per column, "l" or "r". By default columns of numbers are aligned right.

    Example:
        >>> print(laid_out("text", ["name", "size"], [["a", "10"], ["bc", "7"]]))
        name  size
        a       10
        bc       7
        >>> print(laid_out("markdown", ["name", "size"], [["a", "10"], ["bc", "7"]]))
        | name | size |
        |---|---:|
        | a | 10 |
        | bc | 7 |
    """
    rows = list(rows)
    if format == "csv":
        return "\n".join(_csv_line(row) for row in [titles, *rows])
    aligned = ["right" if side == "r" else "left" for side in sides or _sides(titles, rows)]
    if format == "text":  # titles as a first row: tabulate makes a column wider than its header
        return str(tabulate([titles, *rows], tablefmt="plain", disable_numparse=True, colalign=aligned))
    rows = rows or [[""] * len(titles)]  # an empty line, or tabulate would forget the columns
    layout = _MARKDOWN if format == "markdown" else "latex_booktabs"
    table = str(tabulate(rows, titles, layout, disable_numparse=True, colalign=aligned))
    if format == "latex":
        return table.replace("–", "--").replace("\u00a0", "~")
    return table


def csv_cell(cell: Any) -> Any:
    """Returns a cell that no spreadsheet takes for a formula: a text that begins like one gets an apostrophe.

    Example:
        >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell(-1)
        ("'=1+1", '-1', -1)
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()  # with this end of line "\r" in an id is quoted too
    csv.writer(line, lineterminator="\r\n").writerow(map(csv_cell, cells))
    return line.getvalue().removesuffix("\r\n")


def _sides(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns for each column "r" if it holds numbers, else "l"."""
    if not rows:
        return "l" * len(titles)
    holds_numbers = [all(row[k][:1].isdigit() for row in rows) for k in range(len(titles))]
    return "".join("r" if is_number else "l" for is_number in holds_numbers)


def _markdown_row(cells: Sequence[str], _widths: Sequence[int], _sides: Sequence[str]) -> str:
    escaped = (cell.strip().replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _markdown_rule(_widths: Sequence[int], sides: Sequence[str]) -> str:
    return f"|{'|'.join('---:' if side == 'right' else '---' for side in sides)}|"


# Unlike tabulate's own format, without blanks that align columns: they would change every line of a committed page.
_MARKDOWN = TableFormat(
    None, _markdown_rule, None, None, _markdown_row, _markdown_row, padding=0, with_header_hide=None
)
