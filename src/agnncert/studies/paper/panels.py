"""Draws certified accuracy over size: small panels with direct labels, legible without colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError

# Okabe and Ito's colours; each curve also has a dash and a marker of its own. Grey is for what needs no proof.
_CURVES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": (0, (5, 1.5)), "marker": "s"},
    {"color": "#009E73", "linestyle": (0, (2, 1.2)), "marker": "^"},
    {"color": "#AA4499", "linestyle": (0, (6, 1.5, 1.5, 1.5)), "marker": "D"},
    {"color": "#8A6D00", "linestyle": (0, (1, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (8, 2)), "marker": "P"},
)
_LEVELS: dict[str, dict[str, Any]] = {
    "undefended": {"color": "#000000", "linestyle": (0, (6, 3))},
    "mlp": {"color": "#444444", "linestyle": (0, (1, 2))},
    "edgeless": {"color": "#444444", "linestyle": (0, (7, 2, 1, 2))},
    "majority": {"color": "#777777", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
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
    "svg.hashsalt": "agnncert",  # the same rows give the same file
    "svg.fonttype": "none",
}
_APART = 0.062  # least distance between two labels in the margin, in units of the vertical axis


@dataclass(frozen=True)
class Curve:
    """Certified accuracy over size: the mean over seeds, and the range.

    Curves with the same ``look`` look the same in all panels of a figure.
    """

    label: str
    look: int
    sizes: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Level:
    """An accuracy without a size: what a model reaches that needs no proof, or has none."""

    kind: str
    label: str
    value: float


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: Sequence[Curve]
    levels: Sequence[Level]


def draw_panels(panels: Sequence[Panel], path: Path, x_label: str, about: str) -> Path:
    """Draws panels, two in a row, as an SVG file and returns its path.

    Args:
        panels: What to draw, row by row.
        path: The file; its folder is made if it is missing.
        x_label: What the size counts.
        about: The figure in words, stored in the file for those who cannot see it.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError(
            'figures are drawn with matplotlib, which is not installed: pip install "agnncert[report]".'
        ) from None
    columns = 2
    rows = -(-len(panels) // columns)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(3.5 * columns, 2.3 * rows + 0.2), layout="constrained")
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            _draw(axes, panel)
            if number % columns == 0:
                axes.set_ylabel("certified accuracy")
            if number >= len(panels) - columns:
                axes.set_xlabel(x_label)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None, "Title": path.stem, "Description": about})
    return path


def _draw(axes: Any, panel: Panel) -> None:
    end = _last_size(panel)
    axes.set_xlim(0, 1.1 * end)
    axes.set_ylim(0, 1.02)
    axes.set_title(panel.title)
    for level in panel.levels:
        axes.axhline(level.value, linewidth=0.9, **_LEVELS[level.kind])
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve, number / len(panel.curves), end)
    for number in range(len(panel.curves)):
        _label_curve(axes, panel, number, end)
    _label_levels(axes, panel.levels)


def _draw_curve(axes: Any, curve: Curve, shift: float, end: float) -> None:
    look = dict(_CURVES[curve.look % len(_CURVES)])
    marker = look.pop("marker")
    # Between two stored sizes the value of the larger one is drawn: certified accuracy is no lower than that.
    x, mean, low, high = _steps(curve, axes.get_xlim()[1])
    axes.plot(x, mean, drawstyle="steps-pre", linewidth=1.4, **look)
    if low != high:
        axes.fill_between(x, low, high, step="pre", color=look["color"], alpha=0.2, linewidth=0)
    marked = _marked(curve.sizes, end, shift)
    axes.plot(
        [curve.sizes[k] for k in marked], [curve.mean[k] for k in marked], marker, color=look["color"]
    )  # fmt: skip


def _label_curve(axes: Any, panel: Panel, number: int, end: float) -> None:
    """Names a curve where it falls through a height of its own, beside those that fall nearby."""
    curve, count = panel.curves[number], len(panel.curves)
    color = _CURVES[curve.look % len(_CURVES)]["color"]
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
    """Sizes, mean, low and high without the sizes at which nothing happens, and none far beyond the end."""
    points = list(zip(curve.sizes, curve.mean, curve.low, curve.high, strict=True))
    inside = [point for k, point in enumerate(points) if k == 0 or points[k - 1][0] < end]
    kept = [point for k, point in enumerate(inside) if k in (0, len(inside) - 1) or inside[k + 1][1:] != point[1:]]
    return tuple([float(point[c]) for point in kept] for c in range(4))


def _marked(sizes: Sequence[float], end: float, shift: float) -> list[int]:
    """About six stored sizes that lie evenly, so that curves on top of each other show different markers."""
    wanted = [end * (k + shift) / 6 for k in range(6)]
    return sorted({min(range(len(sizes)), key=lambda i: abs(sizes[i] - w)) for w in wanted})


def _last_size(panel: Panel) -> float:
    """The first size at which nothing is certified any more."""
    ends = [
        next((size for size, value in zip(c.sizes, c.high, strict=True) if value <= 0), c.sizes[-1])
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
