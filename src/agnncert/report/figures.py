"""The figures and tables of one certificate: ``save_figures`` and ``save_tables``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agnncert.errors import suggests_arguments
from agnncert.proving.domain import title_in_domain
from agnncert.report import text
from agnncert.report.charts import MOST_CURVES, SIZE_ONLY_WORD, accuracy_table, degree_chart
from agnncert.report.drawing import Curve, Level, Panel, draw_panels
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.tables import laid_out

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate


@suggests_arguments
def save_figures(
    certificate: "Certificate", folder: str | Path, context: ReportContext | None = None
) -> tuple[Path, ...]:
    """Writes certified accuracy over the size, recall by class, and accuracy over size divided by degree: SVG and PDF.

    Args:
        certificate: What to draw.
        folder: Where to write; created if it is missing.
        context: As for :func:`~agnncert.report.page.build_report`. Without a truth the figure of the classes is left
            out, without degrees the last one.

    Returns:
        The files written.

    Raises:
        MissingPackage: matplotlib is not installed.
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    figures = [_accuracy_figure(summary)]
    if summary.recalls:
        figures.append(_recall_figure(summary))
    degree_figure = _degree_figure(summary)
    if degree_figure is not None:
        figures.append(degree_figure)
    files = []
    for figure in figures:
        for kind in ("svg", "pdf"):
            path = Path(folder) / f"{figure.name}.{kind}"
            files.append(draw_panels([figure.panel], path, figure.x_label, y_label=figure.y_label, columns=1))
    return tuple(files)


class _Figure(NamedTuple):
    """A figure of one panel."""

    name: str
    panel: Panel
    x_label: str
    y_label: str


def _accuracy_figure(summary: Summary) -> _Figure:
    return _Figure("certified_accuracy", _over_size(summary), _size_label(summary), text.share_word(summary))


def _recall_figure(summary: Summary) -> _Figure:
    classes = list(summary.recalls.items())[:MOST_CURVES]
    curves = [
        Curve(text.class_word(summary, label), look, recall.size.tolist(), recall.share.tolist(), steps="post")
        for look, (label, recall) in enumerate(classes)
    ]
    return _Figure("certified_recall", Panel("", curves), _size_label(summary), "certified recall")


def _degree_figure(summary: Summary) -> _Figure | None:
    chart = degree_chart(summary)
    if chart is None:
        return None
    ratios = [point["x"] for point in chart["points"]]
    shares = [point["y"] for point in chart["points"]]
    curve = Curve(text.share_word(summary), 0, ratios, shares)
    panel = Panel("", [curve], logarithmic=True, divide=1 if chart["ceiling"] else None)
    return _Figure("certified_accuracy_over_degree", panel, chart["ratio_word"], text.share_word(summary))


def _size_label(summary: Summary) -> str:
    return summary.in_domain(f"size of the attack ({summary.words.step.many})")


@suggests_arguments
def save_tables(
    certificate: "Certificate", folder: str | Path, context: ReportContext | None = None
) -> tuple[Path, ...]:
    """Writes certified accuracy at every size, measures of each class, and all targets: CSV, JSON and LaTeX.

    The LaTeX tables need the package booktabs.

    Args:
        certificate: What to write.
        folder: Where to write; created if it is missing.
        context: As for :func:`~agnncert.report.page.build_report`.

    Returns:
        The files written, which are ``certified_accuracy.csv`` and ``.tex``, ``targets.csv``, and ``classes.csv``,
        ``.json`` and ``.tex`` if true classes are known.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = _accuracy_texts(summary)
    if summary.recalls:
        texts |= _class_texts(summary)
    for name, written in texts.items():
        (folder / name).write_text(f"{written}\n", encoding="utf-8", newline="")
    return tuple(folder / name for name in texts)


def _accuracy_texts(summary: Summary) -> dict[str, str]:
    """Returns the tables of sizes and of targets, by file name."""
    short = accuracy_table(summary)
    titles = ["size", *short["names"]]
    return {
        "certified_accuracy.csv": laid_out("csv", *_by_size(summary)),
        "certified_accuracy.tex": laid_out("latex", titles, short["rows"], "r" * len(titles)),
        "targets.csv": laid_out("csv", *_by_target(summary)),
    }


def _class_texts(summary: Summary) -> dict[str, str]:
    """Returns the tables of classes, by file name."""
    sizes = [int(row[0].replace(",", "")) for row in accuracy_table(summary)["rows"]]
    records = [_without_nan(record) for record in text.class_records(summary, [-1, *sizes])]
    titles, rows = text.class_table(summary)
    return {
        "classes.csv": laid_out("csv", list(records[0]), [list(record.values()) for record in records]),
        "classes.json": json.dumps(records, indent=1),
        "classes.tex": laid_out("latex", titles, rows, "l" + "r" * (len(titles) - 1)),
    }


def _without_nan(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record with an empty text in the place of what is no number."""
    return {name: "" if value != value else value for name, value in record.items()}


def _over_size(summary: Summary) -> Panel:
    """Returns the panel of shares over attack sizes, as step functions: a share holds up to the next whole size."""
    listed = [
        (text.share_word(summary), 0, summary.certified),
        (summary.in_domain(text.STRUCTURE_WORDS), 2, summary.certified_structure),
        (summary.in_domain(text.added_words(summary)), 5, summary.certified_additions),
    ]
    curves = [
        Curve(name, look, curve.size.tolist(), curve.share.tolist(), steps="post")
        for name, look, curve in listed
        if curve is not None
    ]
    if summary.context.size_only:
        sizes, shares = zip(*sorted(summary.context.size_only), strict=True)
        curves.append(Curve(SIZE_ONLY_WORD, 4, sizes, shares, envelope=True))
    for name, _, values in summary.possible[:1]:
        curves.append(Curve(name, 3, list(values), list(values.values()), steps="post"))
    if summary.context.attacked:
        # An attack that succeeds at one size succeeds at every larger one.
        sizes, left = zip(*sorted(summary.context.attacked), strict=True)
        curves.append(Curve("under attack", 1, sizes, left, steps="post"))
    return Panel("", curves, [Level(*reference) for reference in summary.references])


def _by_size(summary: Summary) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Returns titles and rows of the curves, size by size."""
    curve = summary.certified
    columns = {
        "size": curve.size.astype(int).tolist(),
        text.share_word(summary).replace(" ", "_"): curve.share.tolist(),
    }
    if summary.certified_structure is not None:
        columns["added_or_deleted_only"] = summary.certified_structure.share.tolist()
    if summary.certified_additions is not None:
        columns[_added_title(summary)] = summary.certified_additions.share.tolist()
    return list(columns), list(zip(*columns.values(), strict=True))


def _by_target(summary: Summary) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Returns titles and rows of what is known about each target."""
    certificate = summary.certificate
    columns = {"target": certificate.target.tolist(), "label": certificate.label.tolist()}
    optional_columns = {
        "truth": summary.truth,
        "degree": summary.degree,
        "radius": certificate.radius,
        "structure_radius": summary.structure,
    }
    for name, values in optional_columns.items():
        if values is not None:
            columns[name] = values.tolist()
    if summary.added is not None:
        columns[_added_title(summary)] = [n if n == float("inf") else int(n) for n in summary.added.tolist()]
    columns |= {name: values.tolist() for name, values in certificate.count_columns().items()}
    return list(columns), list(zip(*columns.values(), strict=True))


def _added_title(summary: Summary) -> str:
    return title_in_domain(text.added_title(summary).lower().replace(" ", "_"), summary.context.words)
