"""Tables for papers and for further work: CSV and LaTeX."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.report.charts import accuracy_table
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.words import share_word

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "\u00a0": "~",
}


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
    latex.write_text(_latex_table(["size", *short["names"]], short["rows"]), encoding="utf-8")
    return (
        _write_csv(folder / "certified_accuracy.csv", *_curve_rows(summary)),
        latex,
        _write_csv(folder / "targets.csv", *_target_rows(summary)),
    )


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
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


def _latex_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = [" & ".join(_for_latex(cell) for cell in row) + r" \\" for row in [names, *rows]]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'r' * len(names)}}}",
            r"\hline",
            body[0],
            r"\hline",
            *body[1:],
            r"\hline",
            r"\end{tabular}",
            "",
        ]
    )


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
