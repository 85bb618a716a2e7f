"""The one drawer of curves: certified accuracy over the size of an attack, in figures legible without colours.

A figure is a list of panels; a panel holds curves, and levels to compare them with. The names of curves stand beside
them, or in a legend below where they are many or long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert.extras import missing

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
_LEVELS: dict[str, dict[str, Any]] = {
    "undefended": {"color": "#000000", "linestyle": (0, (6, 3))},
    "mlp": {"color": "#444444", "linestyle": (0, (1, 2))},
    "edgeless": {"color": "#444444", "linestyle": (0, (7, 2, 1, 2))},
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
_APART = 0.062  # least distance between two labels in the margin, in units of the vertical axis
_LEGEND_LINE = 0.13  # height of one line of a legend, in inches


@dataclass(frozen=True)
class Curve:
    """Certified accuracy over size: the mean over seeds, and the range.

    Attributes:
        label: What it is called.
        look: Number of a colour, dash and marker, so that a curve can look the same in all panels of a figure.
        sizes: Sizes, ascending.
        mean: The value at each size.
        low: The lowest value at each size; None without a range.
        high: The highest value at each size, likewise.
        dash: A dash to use instead of the look's own.
        steps: What is drawn between two sizes: the value of the larger one (``"pre"``), which certified accuracy never
            falls below, or that of the smaller one (``"post"``).
        envelope: Whether each size has a classifier of its own. Then points are drawn, hollow, and hardly a line
            between them, because no single classifier has this curve.
    """

    label: str
    look: int
    sizes: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dash: str | None = None
    steps: str = "pre"
    envelope: bool = False

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
    """One pair of axes.

    Attributes:
        title: What stands above it.
        curves: The curves.
        levels: Levels to compare them with.
        logarithmic: Whether sizes are drawn on a logarithmic axis, from the first to the last one of the first curve.
        divide: A size to mark with an upright line.
    """

    title: str
    curves: Sequence[Curve]
    levels: Sequence[Level] = ()
    logarithmic: bool = False
    divide: float | None = None


def draw_panels(
    panels: Sequence[Panel],
    path: Path,
    x_label: str,
    about: str = "",
    *,
    y_label: str = "certified accuracy",
    columns: int = 2,
    width: float = 3.5,
    legend: bool = False,
) -> Path:
    """Draws panels row by row as one file, and returns its path.

    Args:
        panels: What to draw.
        path: The file, ``.svg``, ``.pdf`` or ``.png``; its folder is made if it is missing.
        x_label: What the size counts.
        about: The figure in words, stored in an SVG file for those who cannot see it.
        y_label: What is drawn over the size.
        columns: Panels in a row.
        width: Width of a panel, in inches.
        legend: Whether curves and levels are named in a legend below, instead of beside each one.

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
    named = _named(panels) if legend else {}
    with mpl.rc_context(_STYLE):
        height = 2.3 * rows + 0.2 + _LEGEND_LINE * -(-len(named) // 2)
        figure = Figure(figsize=(width * columns, height), layout="constrained", dpi=200)
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            _draw(axes, panel)
            if not legend:
                _label(axes, panel)
            if number % columns == 0:
                axes.set_ylabel(y_label)
            if number >= len(panels) - columns:
                axes.set_xlabel(x_label)
        if len(named) > 1:
            handles = [Line2D([], [], **look) for look in named.values()]
            figure.legend(handles, list(named), loc="outside lower center", ncols=2)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata=_metadata(path, about))
    return path


def _metadata(path: Path, about: str) -> dict[str, str | None] | None:
    """What the file says about itself; no date, so that the same numbers give the same file."""
    if path.suffix == ".svg":
        return {"Date": None, "Creator": None, "Title": path.stem, "Description": about or None}
    return {"CreationDate": None} if path.suffix == ".pdf" else None


def _draw(axes: Any, panel: Panel) -> None:
    end = _last_size(panel)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(panel.curves[0].sizes[0], panel.curves[0].sizes[-1])
    else:
        axes.set_xlim(0, 1.1 * end)
    axes.set_ylim(0, 1.02)
    axes.set_title(panel.title)
    for level in panel.levels:
        axes.axhline(level.value, linewidth=0.9, **_LEVELS[level.kind])
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
    looks = {c.label: {"marker": c.marker, **_stroke(c)} for panel in panels for c in panel.curves}
    return looks | {v.label: {"linewidth": 0.9, **_LEVELS[v.kind]} for panel in panels for v in panel.levels}


def _stroke(curve: Curve) -> dict[str, Any]:
    """How the line of a curve looks in a legend."""
    if curve.envelope:
        return {"linewidth": 0.4, "markerfacecolor": "white", "color": curve.line["color"], "linestyle": ":"}
    return {"linewidth": 1.4, **curve.line}


def _label(axes: Any, panel: Panel) -> None:
    end = _last_size(panel)
    for number in range(len(panel.curves)):
        _label_curve(axes, panel, number, end)
    _label_levels(axes, panel.levels)


def _label_curve(axes: Any, panel: Panel, number: int, end: float) -> None:
    """Names a curve where it falls through a height of its own, beside those that fall nearby."""
    curve, count = panel.curves[number], len(panel.curves)
    color = curve.line["color"]
    width = axes.get_xlim()[1]
    height = curve.mean[0] * (count - number) / (count + 1)
    if curve.mean[-1] >= height:  # it does not fall that far: its label goes below its end
        height = curve.mean[-1] - 0.05
    fall = _fall(curve, height)
    left = fall > 0.7 * width
    nearby = (
        [fall] if left else [f for f in (_fall(c, height) for c in panel.curves) if fall <= f < fall + 0.15 * width]
    )
    axes.annotate(
        curve.label,
        xy=(fall, height), xytext=(max(nearby) + (-0.03 if left else 0.03) * end, height), color=color, fontsize=7,
        va="center", ha="right" if left else "left",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": color, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip


def _fall(curve: Curve, height: float) -> float:
    """The largest size at which a curve is as high as this."""
    return max((size for size, value in zip(curve.sizes, curve.mean, strict=True) if value >= height), default=0)


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


def _last_size(panel: Panel) -> float:
    """The first size at which nothing is certified any more."""
    ends = [
        next((size for size, value in zip(c.sizes, c.high or c.mean, strict=True) if value <= 0), c.sizes[-1])
        for c in panel.curves
    ]
    return max([5.0, *map(float, ends)])


def _label_levels(axes: Any, levels: Sequence[Level]) -> None:
    """Names the levels in the right margin, moved apart where they would overlap."""
    ordered = sorted(levels, key=lambda level: level.value)
    for level, place in zip(ordered, spaced([level.value for level in ordered], _APART), strict=True):
        axes.annotate(
            f"{level.label} {level.value:.2f}",
            xy=(1.0, level.value), xytext=(1.04, place), xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"), va="center", fontsize=6.5, color=_LEVELS[level.kind]["color"],
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#777777", "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def spaced(values: Sequence[float], apart: float) -> list[float]:
    """Ascending places near ascending values, none nearer to the next than ``apart``.

    Example:
        >>> [round(v, 2) for v in spaced([0.5, 0.5, 0.9], 0.1)]
        [0.45, 0.55, 0.9]
    """
    clusters: list[list[float]] = []
    for value in values:
        clusters.append([value])
        while len(clusters) > 1 and _reach(clusters[-2], apart)[1] + apart > _reach(clusters[-1], apart)[0]:
            last = clusters.pop()
            clusters[-1] += last
    return [_reach(c, apart)[0] + apart * k for c in clusters for k in range(len(c))]


def _reach(cluster: list[float], apart: float) -> tuple[float, float]:
    """Lowest and highest place of labels that are centred on the mean of their values."""
    centre, half = sum(cluster) / len(cluster), apart * (len(cluster) - 1) / 2
    return centre - half, centre + half
