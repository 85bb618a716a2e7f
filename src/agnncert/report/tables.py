"""The one writer of tables, as text, Markdown, LaTeX or CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from tabulate import TableFormat, tabulate

FORMATS = ("text", "markdown", "csv", "latex")


def laid_out(format: str, titles: Sequence[str], rows: Iterable[Sequence[Any]], sides: str = "") -> str:
    """A table in one of :data:`FORMATS`.

    Args:
        format: The format.
        titles: One title per column.
        rows: One cell per column.
        sides: One letter per column, "l" or "r"; when not given, columns of numbers go to the right.

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
    layout = _MARKDOWN if format == "markdown" else "latex"
    table = str(tabulate(rows, titles, layout, disable_numparse=True, colalign=aligned))
    return table.replace("–", "--").replace("\u00a0", "~") if format == "latex" else table


def _csv_line(cells: Sequence[Any]) -> str:
    # The writer quotes what its own end of line has in it, and a lone "\r" in an id must be quoted too.
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n")


def _sides(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """For each column, "r" if it holds numbers, else "l"."""
    numbers = (bool(rows) and all(row[k][:1].isdigit() for row in rows) for k in range(len(titles)))
    return "".join("r" if number else "l" for number in numbers)


def _markdown_row(cells: Sequence[str], _widths: Sequence[int], _sides: Sequence[str]) -> str:
    escaped = (cell.strip().replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _markdown_rule(_widths: Sequence[int], sides: Sequence[str]) -> str:
    return f"|{'|'.join('---:' if side == 'right' else '---' for side in sides)}|"


# Unlike tabulate's own, without blanks that align columns: one long cell would change every line of a committed page.
_MARKDOWN = TableFormat(
    lineabove=None,
    linebelowheader=_markdown_rule,
    linebetweenrows=None,
    linebelow=None,
    headerrow=_markdown_row,
    datarow=_markdown_row,
    padding=0,
    with_header_hide=None,
)
