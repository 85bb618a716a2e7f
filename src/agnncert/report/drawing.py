"""Draws curves over sizes. A figure is a list of panels, and each panel is legible without colours."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from agnncert.errors import missing

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
    "trees": {"color": "#AA4499", "linestyle": (0, (6, 2, 1, 2))},
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
    bottom: float = 0.0  # where the vertical axis begins


class Spoken(NamedTuple):
    """A picture for those who do not see it: what it is called, and what it shows."""

    title: str
    description: str


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    x_label: str,
    about: Spoken | None = None,
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
        about: Title and description for screen readers, stored in SVG files. By default the title is what the axes
            show, and the description says both ends of all curves.
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
    rows = math.ceil(len(panels) / columns)
    named = _named(panels) if label is None else {}
    with mpl.rc_context(_STYLE):
        height = 2.3 * rows + 0.2 + _LEGEND_LINE * math.ceil(len(named) / 2)
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
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # the same numbers give the same file
        figure.savefig(path, metadata=metadata.get(path.suffix))
    if path.suffix == ".svg":
        usual = Spoken(f"{y_label} over {x_label}", " ".join(_spoken(panel) for panel in panels))
        path.write_text(described(path.read_text(encoding="utf-8"), *(about or usual)), encoding="utf-8")
    return path


def described(svg: str, title: str, about: str) -> str:
    """Returns an SVG text with role, title and description in its first element, and without matplotlib's metadata.

    Example:
        >>> described('<svg width="9">…</svg>', "recall", "It falls.")
        '<svg role="img" width="9"><title>recall</title><desc>It falls.</desc>…</svg>'
    """
    words = f"<title>{escape(title)}</title><desc>{escape(about)}</desc>"
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
    return re.sub(r"<svg ([^>]*)>", lambda first: f'<svg role="img" {first[1]}>{words}', svg, count=1)


def _spoken(panel: Panel) -> str:
    """Returns the ends of all curves and the levels of a panel, in words."""
    parts = []
    for curve in panel.curves:
        first, last = (f"{100 * mean:.1f} % at {size:g}" for mean, size in _ends(curve))
        parts.append(f"{curve.label}: {first}, {last}")
    parts += [f"{level.label}: {100 * level.value:.1f} %" for level in panel.levels]
    prefix = f"{panel.title}. " if panel.title else ""
    return f"{prefix}{'; '.join(parts)}."


def _ends(curve: Curve) -> list[tuple[float, float]]:
    """Returns mean and size at both ends of a curve."""
    return [(curve.mean[place], curve.sizes[place]) for place in (0, -1)]


def _draw(axes: Any, panel: Panel) -> None:
    end = last_size(panel)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(panel.curves[0].sizes[0], panel.curves[0].sizes[-1])
    else:
        axes.set_xlim(0, 1.1 * end)
    axes.set_ylim(panel.bottom, 1.02)
    axes.set_title(panel.title)
    for level in panel.levels:
        axes.axhline(level.value, linewidth=0.9, **LEVELS[level.kind])
    if panel.divide is not None:
        axes.axvline(panel.divide, color="black", linewidth=0.6, linestyle=(0, (3, 3)))
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve)
        if not panel.logarithmic:
            _draw_markers(axes, curve, _marked(curve, end, axes.get_xlim()[1], number / len(panel.curves)))


def _draw_curve(axes: Any, curve: Curve) -> None:
    if curve.envelope:
        axes.plot(curve.sizes, curve.mean, linewidth=0.4, color=curve.line["color"], linestyle=":")
        return
    steps = _steps(curve, axes.get_xlim()[1])
    axes.plot(steps.sizes, steps.mean, drawstyle=f"steps-{curve.steps}", linewidth=1.4, **curve.line)
    if steps.low != steps.high:
        color = curve.line["color"]
        axes.fill_between(steps.sizes, steps.low, steps.high, step=curve.steps, color=color, alpha=0.2, linewidth=0)


def _draw_markers(axes: Any, curve: Curve, positions: Sequence[int]) -> None:
    sizes = [curve.sizes[k] for k in positions]
    means = [curve.mean[k] for k in positions]
    filling = {"markerfacecolor": "white"} if curve.envelope else {}
    axes.plot(sizes, means, curve.marker, color=curve.line["color"], **filling)


def _named(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Returns how each curve and level of a legend looks, by its name."""
    curves: dict[str, dict[str, Any]] = {}
    levels: dict[str, dict[str, Any]] = {}
    for panel in panels:
        for curve in panel.curves:
            curves[curve.label] = {"marker": curve.marker, "linewidth": 1.4, **curve.line}
            if curve.envelope:
                curves[curve.label] |= {"linewidth": 0.4, "markerfacecolor": "white", "linestyle": ":"}
        for level in panel.levels:
            levels[level.label] = {"linewidth": 0.9, **LEVELS[level.kind]}
    return curves | levels


class _Steps(NamedTuple):
    """The sizes at which a curve changes, and its mean and range there."""

    sizes: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def _steps(curve: Curve, end: float) -> _Steps:
    """Returns a curve without sizes at which nothing changes and without those beyond the end."""
    low = curve.mean if curve.low is None else curve.low
    high = curve.mean if curve.high is None else curve.high
    points = list(zip(curve.sizes, curve.mean, low, high, strict=True))
    inside = [point for k, point in enumerate(points) if k == 0 or points[k - 1][0] < end]
    beside = 1 if curve.steps == "pre" else -1
    last = len(inside) - 1
    kept = [point for k, point in enumerate(inside) if k in (0, last) or inside[k + beside][1:] != point[1:]]
    return _Steps(*([float(value) for value in column] for column in zip(*kept, strict=True)))


def _marked(curve: Curve, end: float, right_edge: float, shift: float) -> list[int]:
    """Returns the positions of about six evenly spread sizes; of an envelope all sizes that are shown.

    ``shift`` keeps the markers of coinciding curves apart.
    """
    if curve.envelope:
        return [k for k, size in enumerate(curve.sizes) if size <= right_edge]
    wanted = [end * (k + shift) / 6 for k in range(6)]
    return sorted({_nearest(curve.sizes, size) for size in wanted})


def _nearest(sizes: Sequence[float], wanted: float) -> int:
    return min(range(len(sizes)), key=lambda k: abs(sizes[k] - wanted))


def last_size(panel: Panel) -> float:
    """Returns the first size at which nothing is certified any more in any curve, and at least 5."""
    return max(5.0, *(_end_of(curve) for curve in panel.curves))


def _end_of(curve: Curve) -> float:
    for size, value in zip(curve.sizes, curve.high or curve.mean, strict=True):
        if value <= 0:
            return float(size)
    return float(curve.sizes[-1])
