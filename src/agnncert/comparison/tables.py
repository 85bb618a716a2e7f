"""Rows of text as a table for people, for documents and for further work."""

import csv
import io
from collections.abc import Sequence

FORMATS = ("text", "markdown", "csv", "latex")

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def laid_out(format: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table in one of :data:`FORMATS`.

    Example:
        >>> print(laid_out("text", ["name", "size"], [["a", "10"], ["bc", "7"]]))
        name  size
        a       10
        bc       7
    """
    if format == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([titles, *rows])
        return text.getvalue().rstrip("\n")
    if format == "latex":
        body = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in [titles, *rows]]
        head = [rf"\begin{{tabular}}{{{_sides(titles, rows)}}}", r"\hline", body[0], r"\hline"]
        return "\n".join([*head, *body[1:], r"\hline", r"\end{tabular}"])
    if format == "markdown":
        lines = [titles, ["---:" if side == "r" else "---" for side in _sides(titles, rows)], *rows]
        return "\n".join("| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines)
    widths = [max(len(row[k]) for row in [titles, *rows]) for k in range(len(titles))]
    sides = _sides(titles, rows)
    return "\n".join(
        "  ".join(
            c.rjust(w) if s == "r" else c.ljust(w) for c, w, s in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in [titles, *rows]
    )


def _sides(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """For each column, "r" if it holds numbers, else "l"."""
    numbers = (bool(rows) and all(row[k][:1].isdigit() for row in rows) for k in range(len(titles)))
    return "".join("r" if number else "l" for number in numbers)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
