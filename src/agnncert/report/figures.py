"""Figures and tables: of one certificate (``save_figures``, ``save_tables``) and of any curves and rows.

A figure is a list of panels. A panel holds curves, and levels to compare them with, and is legible without colours.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import TableFormat, tabulate

from agnncert.errors import missing
from agnncert.report import text
from agnncert.report.charts import MOST_CURVES, SIZE_ONLY_WORD, accuracy_table, degree_chart
from agnncert.report.summary import ReportContext, Summary, summarise

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

# Okabe and Ito's colours; each curve also has a dash and a marker of its own. Grey is for what needs no proof.
_CURVES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": (0, (5, 1.5)), "marker": "s"},
    {"color": "#009E73", "linestyle": (0, (2, 1.2)), "marker": "^"},
    {"color": "#AA4499", "linestyle": (0, (6, 1.5, 1.5, 1.5)), "marker": "D"},
    {"color": "#8A6D00", "linestyle": (0, (1, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (8, 2)), "marker": "P"},
    {"color": "#E69F00", "linestyle": (0, (4, 1, 1, 1, 1, 1)), "marker": "X"},
    {"color": "#7F3C8D", "linestyle": (0, (3, 3)), "marker": "*"},
)
LEVELS: dict[str, dict[str, Any]] = {
    "undefended": {"color": "#000000", "linestyle": (0, (6, 3))},
    "mlp": {"color": "#444444", "linestyle": (0, (1, 2))},
    "no_edge": {"color": "#444444", "linestyle": (0, (7, 2, 1, 2))},
    "majority": {"color": "#777777", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
    "bag_of_nodes": {"color": "#444444", "linestyle": (0, (1, 2))},
}
_STYLE = {
    "font.size": 8,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "lines.markersize": 3,
    "legend.frameon": False,
    "legend.fontsize": 6,
    "legend.handlelength": 3,
    "legend.columnspacing": 1,
    "svg.hashsalt": "agnncert",  # the same numbers give the same file
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
_LEGEND_LINE = 0.13  # height of one line of a legend, in inches
FORMATS = ("text", "markdown", "csv", "latex")
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|[+-](inf|nan)")


@dataclass(frozen=True)
class Curve:
    """Certified accuracy over size: the mean over seeds, and the range."""

    label: str
    look: int  # number of a colour, dash and marker, so that a curve can look the same in all panels of a figure
    sizes: Sequence[float]  # ascending
    mean: Sequence[float]
    low: Sequence[float] | None = None  # the range at each size, if there is one
    high: Sequence[float] | None = None
    dash: str | None = None  # replaces the one of the look
    # What is drawn between two sizes: the value of the larger one ("pre"), which certified accuracy never falls below,
    # or that of the smaller one ("post").
    steps: str = "pre"
    envelope: bool = False  # each size has another classifier: hollow points and a thin line, as no single one has it

    @property
    def line(self) -> dict[str, Any]:
        """Colour and dash, as matplotlib takes them."""
        look = _CURVES[self.look % len(_CURVES)]
        return {"color": look["color"], "linestyle": self.dash or look["linestyle"]}

    @property
    def marker(self) -> str:
        """Matplotlib's letter for the marker."""
        return str(_CURVES[self.look % len(_CURVES)]["marker"])


@dataclass(frozen=True)
class Level:
    """An accuracy that does not depend on a size, drawn as a horizontal line: of a model without a certificate."""

    kind: str
    label: str
    value: float


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: Sequence[Curve]
    levels: Sequence[Level] = ()  # to compare the curves with
    logarithmic: bool = False  # whether the axis of sizes is, from the first to the last one of the first curve
    divide: float | None = None  # a size to mark with an upright line


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
    over = f"size of the attack ({summary.words.step.many})"
    figures = [("certified_accuracy", _over_size(summary), over, text.share_word(summary))]
    if summary.recalls:
        curves = [
            Curve(text.class_word(summary, k), look, curve.size.tolist(), curve.share.tolist(), steps="post")
            for look, (k, curve) in enumerate(list(summary.recalls.items())[:MOST_CURVES])
        ]
        figures.append(("certified_recall", Panel("", curves), over, "certified recall"))
    chart = degree_chart(summary)
    if chart is not None:
        xs, ys = ([point[c] for point in chart["points"]] for c in "xy")
        curve = Curve(text.share_word(summary), 0, xs, ys)
        panel = Panel("", [curve], logarithmic=True, divide=1 if chart["ceiling"] else None)
        figures.append(("certified_accuracy_over_degree", panel, chart["ratio_word"], text.share_word(summary)))
    return tuple(
        draw_panels([panel], Path(folder) / f"{name}.{kind}", x_label, y_label=y_label, columns=1)
        for name, panel, x_label, y_label in figures
        for kind in ("svg", "pdf")
    )


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
        The files written: ``certified_accuracy.csv`` and ``.tex``, ``targets.csv``, and ``classes.csv``, ``.json`` and
        ``.tex`` if true classes are known.

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
    if summary.recalls:
        records = text.class_records(summary, [-1, *(int(row[0].replace(",", "")) for row in short["rows"])])
        values = [["" if v != v else v for v in record.values()] for record in records]
        by_class, rows = text.class_table(summary)
        texts |= {
            "classes.csv": laid_out("csv", list(records[0]), values),
            "classes.json": json.dumps([dict(zip(records[0], row, strict=True)) for row in values], indent=1),
            "classes.tex": laid_out("latex", by_class, rows, "l" + "r" * (len(by_class) - 1)),
        }
    for name, written in texts.items():
        (folder / name).write_text(f"{written}\n", encoding="utf-8", newline="")
    return tuple(folder / name for name in texts)


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    x_label: str,
    about: str = "",
    *,
    y_label: str = "certified accuracy",
    columns: int = 2,
    width: float = 3.5,
    label: Callable[[Any, Panel], None] | None = None,
) -> Path:
    """Draws panels row by row as one file, and returns its path.

    Args:
        panels: What to draw.
        path: The file, ``.svg``, ``.pdf`` or ``.png``; its folder is created if it is missing.
        x_label: What the size counts.
        about: A description for screen readers, stored in SVG files.
        y_label: Title of the vertical axis.
        columns: Panels in a row.
        width: Width of a panel, in inches.
        label: Writes the names of curves and levels into a panel. By default a legend below names them.

    Raises:
        MissingPackage: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
    except ModuleNotFoundError as error:
        raise missing(error.name, "drawing figures") from None
    rows = -(-len(panels) // columns)
    named = _named(panels) if label is None else {}
    with mpl.rc_context(_STYLE):
        height = 2.3 * rows + 0.2 + _LEGEND_LINE * -(-len(named) // 2)
        figure = Figure(figsize=(width * columns, height), layout="constrained", dpi=200)
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            _draw(axes, panel)
            if label is not None:
                label(axes, panel)
            if number % columns == 0:
                axes.set_ylabel(y_label)
            if number >= len(panels) - columns:
                axes.set_xlabel(x_label)
        if len(named) > 1:
            handles = [Line2D([], [], **look) for look in named.values()]
            figure.legend(handles, list(named), loc="outside lower center", ncols=2)
        path.parent.mkdir(parents=True, exist_ok=True)
        svg = {"Date": None, "Creator": None, "Title": path.stem, "Description": about or None}
        metadata = {".svg": svg, ".pdf": {"CreationDate": None}}  # no date: the same numbers give the same file
        figure.savefig(path, metadata=metadata.get(path.suffix))
    return path


def laid_out(format: str, titles: Sequence[str], rows: Iterable[Sequence[Any]], sides: str = "") -> str:
    """A table in one of :data:`FORMATS`.

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
    return table.replace("–", "--").replace("\u00a0", "~") if format == "latex" else table


def _draw(axes: Any, panel: Panel) -> None:
    end = last_size(panel)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(panel.curves[0].sizes[0], panel.curves[0].sizes[-1])
    else:
        axes.set_xlim(0, 1.1 * end)
    axes.set_ylim(0, 1.02)
    axes.set_title(panel.title)
    for level in panel.levels:
        axes.axhline(level.value, linewidth=0.9, **LEVELS[level.kind])
    if panel.divide is not None:
        axes.axvline(panel.divide, color="black", linewidth=0.6, linestyle=(0, (3, 3)))
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve)
        if not panel.logarithmic:
            marked = _marked(curve.sizes, end, number / len(panel.curves))
            if curve.envelope:
                marked = [k for k, size in enumerate(curve.sizes) if size <= axes.get_xlim()[1]]
            x, y = ([values[k] for k in marked] for values in (curve.sizes, curve.mean))
            filling = {"markerfacecolor": "white"} if curve.envelope else {}
            axes.plot(x, y, curve.marker, color=curve.line["color"], **filling)


def _draw_curve(axes: Any, curve: Curve) -> None:
    x, mean, low, high = _steps(curve, axes.get_xlim()[1])
    if curve.envelope:
        axes.plot(curve.sizes, curve.mean, linewidth=0.4, color=curve.line["color"], linestyle=":")
        return
    axes.plot(x, mean, drawstyle=f"steps-{curve.steps}", linewidth=1.4, **curve.line)
    if low != high:
        axes.fill_between(x, low, high, step=curve.steps, color=curve.line["color"], alpha=0.2, linewidth=0)


def _named(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """How each curve and level of a legend looks."""
    thin = {"linewidth": 0.4, "markerfacecolor": "white", "linestyle": ":"}
    looks = {
        c.label: {"marker": c.marker, "linewidth": 1.4, **c.line, **(thin if c.envelope else {})}
        for panel in panels
        for c in panel.curves
    }
    return looks | {v.label: {"linewidth": 0.9, **LEVELS[v.kind]} for panel in panels for v in panel.levels}


def _steps(curve: Curve, end: float) -> tuple[list[float], ...]:
    """Sizes, mean, low and high, without sizes at which nothing changes and without those beyond the end."""
    ranges = curve.mean if curve.low is None else curve.low, curve.mean if curve.high is None else curve.high
    points = list(zip(curve.sizes, curve.mean, *ranges, strict=True))
    inside = [point for k, point in enumerate(points) if k == 0 or points[k - 1][0] < end]
    beside = 1 if curve.steps == "pre" else -1
    last = len(inside) - 1
    kept = [point for k, point in enumerate(inside) if k in (0, last) or inside[k + beside][1:] != point[1:]]
    return tuple([float(point[c]) for point in kept] for c in range(4))


def _marked(sizes: Sequence[float], end: float, shift: float) -> list[int]:
    """Positions of about six evenly spread sizes; ``shift`` keeps the markers of coinciding curves apart."""
    wanted = [end * (k + shift) / 6 for k in range(6)]
    return sorted({min(range(len(sizes)), key=lambda i: abs(sizes[i] - w)) for w in wanted})


def last_size(panel: Panel) -> float:
    """The first size at which nothing is certified any more."""
    ends = [
        next((size for size, value in zip(c.sizes, c.high or c.mean, strict=True) if value <= 0), c.sizes[-1])
        for c in panel.curves
    ]
    return max([5.0, *map(float, ends)])


def csv_cell(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: a text that begins like one gets an apostrophe in front.

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
    """For each column, "r" if it holds numbers, else "l"."""
    numbers = (bool(rows) and all(row[k][:1].isdigit() for row in rows) for k in range(len(titles)))
    return "".join("r" if number else "l" for number in numbers)


def _markdown_row(cells: Sequence[str], _widths: Sequence[int], _sides: Sequence[str]) -> str:
    escaped = (cell.strip().replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _markdown_rule(_widths: Sequence[int], sides: Sequence[str]) -> str:
    return f"|{'|'.join('---:' if side == 'right' else '---' for side in sides)}|"


# Unlike tabulate's own format, without blanks that align columns: they would change every line of a committed page.
_MARKDOWN = TableFormat(
    None, _markdown_rule, None, None, _markdown_row, _markdown_row, padding=0, with_header_hide=None
)


def _over_size(summary: Summary) -> Panel:
    """The panel of shares over attack sizes, as step functions: a share holds up to the next whole size."""
    listed = [
        (text.share_word(summary), 0, summary.certified),
        (text.STRUCTURE_WORDS, 2, summary.certified_structure),
        (text.added_words(summary), 5, summary.certified_additions),
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
    """Titles and rows: the curves, size by size."""
    curve, added = summary.certified, summary.certified_additions
    columns = {
        "size": curve.size.astype(int).tolist(),
        text.share_word(summary).replace(" ", "_"): curve.share.tolist(),
    }
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
    columns |= {name: values.tolist() for name, values in certificate.count_columns().items()}
    return list(columns), list(zip(*columns.values(), strict=True))


def _added_title(summary: Summary) -> str:
    return text.added_title(summary).lower().replace(" ", "_")
