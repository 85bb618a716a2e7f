"""``comparison.plot()``: the certified measure of each defence over the perturbation size, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from agnncert.errors import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from agnncert_peers.comparison import Comparison


def plot_comparison(comparison: "Comparison", ax: "Axes | None" = None) -> "Axes":
    """Draws a comparison; the arguments are those of ``Comparison.plot``."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError as error:
            raise missing(error.name, "comparison.plot()") from error
        ax = pyplot.subplots(layout="constrained")[1]
    sizes = np.array(comparison.sizes)
    for row in comparison.rows:
        shares = np.array(comparison.curve(row), dtype=np.float64)  # NaN, hence no point, where nothing is proved
        if np.isnan(shares).all():
            continue
        style: dict[str, Any] = {"linestyle": "--", "color": "grey"} if row["control"] else {}
        (line,) = ax.plot(sizes, shares, marker="o", markersize=3, label=row["defence"], **style)
        spread = np.array(comparison.deviations(row), dtype=np.float64)
        if not np.isnan(spread).all():
            ax.fill_between(sizes, shares - spread, shares + spread, color=line.get_color(), alpha=0.15, linewidth=0)
    ax.set_title(comparison.title, loc="left", fontsize="small", wrap=True)
    ax.set_xlabel(f"perturbation size: {comparison.threat.unit}")
    ax.set_ylabel(f"certified {comparison.measure}")
    ax.set_ylim(0, 1)
    if ax.lines:
        ax.legend(fontsize="small")
    return ax
