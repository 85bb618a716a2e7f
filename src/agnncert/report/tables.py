"""The one writer of tables, as text, Markdown, LaTeX or CSV; and save_tables: what a certificate proves, for papers."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import TableFormat, tabulate

from agnncert.report.charts import accuracy_table
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.words import share_word

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate

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
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([titles, *rows])
        return text.getvalue().rstrip("\n")
    aligned = ["right" if side == "r" else "left" for side in sides or _sides(titles, rows)]
    if format == "text":  # as a row like the others: tabulate makes columns wider than their titles
        return str(tabulate([titles, *rows], tablefmt="plain", disable_numparse=True, colalign=aligned))
    layout = _MARKDOWN if format == "markdown" else "latex"
    table = str(tabulate(rows, titles, layout, disable_numparse=True, colalign=aligned))
    return table.replace("–", "--").replace("\u00a0", "~") if format == "latex" else table


def _sides(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """For each column, "r" if it holds numbers, else "l"."""
    numbers = (bool(rows) and all(row[k][:1].isdigit() for row in rows) for k in range(len(titles)))
    return "".join("r" if number else "l" for number in numbers)


def _markdown_row(cells: Sequence[str], _widths: Sequence[int], _sides: Sequence[str]) -> str:
    return f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in cells)} |"


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


def save_tables(
    certificate: "Certificate", folder: str | Path, context: ReportContext | None = None
) -> tuple[Path, ...]:
    """Writes the certified accuracy at every size and all targets as CSV, and a short table as LaTeX.

    Args:
        certificate: What to write down.
        folder: Where to write; made if it is missing.
        context: As for :func:`~agnncert.report.build_report`.

    Returns:
        The files written: ``certified_accuracy.csv``, ``certified_accuracy.tex``, ``targets.csv``.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    short = accuracy_table(summary)
    latex = folder / "certified_accuracy.tex"
    titles = ["size", *short["names"]]
    latex.write_text(laid_out("latex", titles, short["rows"], "r" * len(titles)) + "\n", encoding="utf-8")
    return (
        _write_csv(folder / "certified_accuracy.csv", *_curve_rows(summary)),
        latex,
        _write_csv(folder / "targets.csv", *_target_rows(summary)),
    )


def _write_csv(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    path.write_text(laid_out("csv", titles, rows) + "\n", encoding="utf-8", newline="")
    return path


def _curve_rows(summary: Summary) -> tuple[list[str], list[list[Any]]]:
    curve, added = summary.certified, summary.certified_additions
    names = ["size", share_word(summary).replace(" ", "_")]
    columns = [curve.size.astype(int).tolist(), curve.share.tolist()]
    if added is not None:
        names.append("new_neighbours" if summary.certificate.claim.task == "node" else "injected_nodes")
        columns.append(added.share.tolist())
    return names, [list(row) for row in zip(*columns, strict=True)]


def _target_rows(summary: Summary) -> tuple[list[str], list[list[Any]]]:
    certificate = summary.certificate
    names, columns = ["target", "label"], [certificate.target.tolist(), certificate.label.tolist()]
    for name, values in (("truth", summary.truth), ("degree", summary.degree)):
        if values is not None:
            names.append(name)
            columns.append(values.tolist())
    names.append("radius")
    columns.append(certificate.radius.tolist())
    if summary.added is not None:
        names.append("new_neighbours" if certificate.claim.task == "node" else "injected_nodes")
        columns.append([value if value == float("inf") else int(value) for value in summary.added.tolist()])
    for k, votes in enumerate(certificate.counts.T):
        names.append(f"votes_{k}")
        columns.append(votes.tolist())
    return names, [list(row) for row in zip(*columns, strict=True)]
