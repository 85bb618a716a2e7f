"""Files for papers: ``save_figures`` draws the curves of a certificate, ``save_tables`` writes its numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.report.drawing import Curve, Level, Panel, draw_panels
from agnncert.report.payload import accuracy_table, degree_chart
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.tables import laid_out
from agnncert.report.words import added_words, share_word, step_words, structure_words

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate


def save_figures(
    certificate: "Certificate", folder: str | Path, context: ReportContext | None = None
) -> tuple[Path, ...]:
    """Writes certified accuracy over the size, and over size divided by degree, each as SVG and PDF.

    Args:
        certificate: What to draw.
        folder: Where to write; made if it is missing.
        context: As for :func:`~agnncert.report.build_report`. Without degrees the second figure is left out.

    Returns:
        The files written.

    Raises:
        MissingPackage: matplotlib is not installed.
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    figures = [("certified_accuracy", _over_size(summary), f"size of the attack ({step_words(summary)[1]})")]
    chart = degree_chart(summary)
    if chart is not None:
        xs, ys = ([point[c] for point in chart["points"]] for c in "xy")
        curve = Curve(share_word(summary), 0, xs, ys)
        panel = Panel("", [curve], logarithmic=True, divide=1 if chart["ceiling"] else None)
        figures.append(("certified_accuracy_over_degree", panel, chart["ratio_word"]))
    return tuple(
        draw_panels(
            [panel], Path(folder) / f"{name}.{kind}", x_label, y_label=share_word(summary), columns=1, legend=True
        )
        for name, panel, x_label in figures
        for kind in ("svg", "pdf")
    )


def _over_size(summary: Summary) -> Panel:
    """Every whole size is on these curves, so a value is drawn up to the next one, as on the page."""
    certified, added = summary.certified, summary.certified_additions
    curves = [Curve(share_word(summary), 0, certified.size.tolist(), certified.share.tolist(), steps="post")]
    if summary.certified_structure is not None:
        sizes, shares = summary.certified_structure.size.tolist(), summary.certified_structure.share.tolist()
        curves.append(Curve(structure_words(summary), 2, sizes, shares, steps="post"))
    if added is not None:
        curves.append(Curve(added_words(summary), 5, added.size.tolist(), added.share.tolist(), steps="post"))
    if summary.context.size_only:
        sizes, shares = zip(*sorted(summary.context.size_only), strict=True)
        curves.append(Curve("size alone (envelope)", 4, sizes, shares, envelope=True))
    if summary.context.attacked:
        # An attack that works at one size works at every larger one.
        sizes, left = zip(*sorted(summary.context.attacked), strict=True)
        curves.append(Curve("under attack", 1, sizes, left, steps="post"))
    return Panel("", curves, [Level(*reference) for reference in summary.references])


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
    titles = ["size", *short["names"]]
    texts = {
        "certified_accuracy.csv": laid_out("csv", *_by_size(summary)),
        "certified_accuracy.tex": laid_out("latex", titles, short["rows"], "r" * len(titles)),
        "targets.csv": laid_out("csv", *_by_target(summary)),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8", newline="")
    return tuple(folder / name for name in texts)


def _by_size(summary: Summary) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Titles and rows: the curves, size by size."""
    curve, added = summary.certified, summary.certified_additions
    columns = {"size": curve.size.astype(int).tolist(), share_word(summary).replace(" ", "_"): curve.share.tolist()}
    if summary.certified_structure is not None:
        columns["added_or_deleted_only"] = summary.certified_structure.share.tolist()
    if added is not None:
        columns[_added_title(summary)] = added.share.tolist()
    return list(columns), list(zip(*columns.values(), strict=True))


def _by_target(summary: Summary) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Titles and rows: what is known about each target."""
    certificate = summary.certificate
    columns = {"target": certificate.target.tolist(), "label": certificate.label.tolist()}
    known = {"truth": summary.truth, "degree": summary.degree, "radius": certificate.radius}
    for name, values in {**known, "structure_radius": summary.structure}.items():
        if values is not None:
            columns[name] = values.tolist()
    if summary.added is not None:
        columns[_added_title(summary)] = [n if n == float("inf") else int(n) for n in summary.added.tolist()]
    columns |= {f"votes_{k}": votes.tolist() for k, votes in enumerate(certificate.counts.T)}
    return list(columns), list(zip(*columns.values(), strict=True))


def _added_title(summary: Summary) -> str:
    return "new_neighbours" if summary.certificate.claim.task == "node" else "injected_nodes"
