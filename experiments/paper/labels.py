"""Names of curves and levels beside their lines, without overlap, for the figures of the results page."""

from collections.abc import Sequence
from typing import Any

from agnncert.report.drawing import LEVELS, Curve, Level, Panel, last_size

_APART = 0.062  # least distance between two labels in the margin, in units of the vertical axis


def label_beside(axes: Any, panel: Panel) -> None:
    """Writes the name of each curve beside it, and those of the levels in the right margin."""
    for number in range(len(panel.curves)):
        _label_curve(axes, panel, number, last_size(panel))
    _label_levels(axes, panel.levels)


def spaced(values: Sequence[float], apart: float) -> list[float]:
    """Ascending places near ascending values, at least ``apart`` from each other.

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


def _label_curve(axes: Any, panel: Panel, number: int, end: float) -> None:
    """Writes the name of a curve beside the place where it falls below a height that depends on its number."""
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


def _label_levels(axes: Any, levels: Sequence[Level], apart: float = _APART) -> None:
    """Writes the names of the levels in the right margin, without overlap."""
    ordered = sorted(levels, key=lambda level: level.value)
    for level, place in zip(ordered, spaced([level.value for level in ordered], apart), strict=True):
        axes.annotate(
            f"{level.label} {level.value:.2f}",
            xy=(1.0, level.value), xytext=(1.04, place), xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"), va="center", fontsize=6.5, color=LEVELS[level.kind]["color"],
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#777777", "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def _reach(cluster: list[float], apart: float) -> tuple[float, float]:
    """Lowest and highest place of labels that are centred on the mean of their values."""
    centre, half = sum(cluster) / len(cluster), apart * (len(cluster) - 1) / 2
    return centre - half, centre + half
