"""Figures for papers: the two curves as SVG and PDF."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.errors import SettingsError
from agnncert.report.charts import degree_chart
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.words import added_words, share_word, step_words

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate

# Okabe and Ito's colours; each line also has a dash or a marker of its own.
_LOOK: dict[str, dict[str, Any]] = {
    "certified": {"color": "#0072B2", "linewidth": 1.8},
    "added": {"color": "#56B4E9", "linewidth": 1.4, "linestyle": (0, (1, 1.5))},
    "attacked": {"color": "#D55E00", "linewidth": 1.0, "marker": "D", "markersize": 3.5},
    "undefended": {"color": "#000000", "linewidth": 1.0, "linestyle": (0, (6, 3))},
    "mlp": {"color": "#009E73", "linewidth": 1.0, "linestyle": (0, (2, 2))},
    "edgeless": {"color": "#CC79A7", "linewidth": 1.2, "linestyle": (0, (7, 2, 1, 2))},
    "majority": {"color": "#8A7400", "linewidth": 1.0, "linestyle": (0, (4, 1, 1, 1, 1, 1))},
    "bag_of_nodes": {"color": "#E69F00", "linewidth": 1.2, "linestyle": (0, (1, 3))},
}
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "agnncert",  # the same certificate gives the same file
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


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
        SettingsError: matplotlib is not installed, or the context does not fit the certificate.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError(
            'save_figures draws with matplotlib, which is not installed: pip install "agnncert[report]".'
        ) from None
    summary = summarise(certificate, context)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with mpl.rc_context(_STYLE):
        for name, draw in (("certified_accuracy", _draw_sizes), ("certified_accuracy_over_degree", _draw_degrees)):
            figure = Figure(figsize=(3.4, 2.4), layout="constrained")
            if draw(figure.add_subplot(), summary):
                written += [_save(figure, folder / f"{name}.{kind}") for kind in ("svg", "pdf")]
    return tuple(written)


def _save(figure: Any, path: Path) -> Path:
    date = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None}
    figure.savefig(path, metadata=date)
    return path


def _draw_sizes(axes: Any, summary: Summary) -> bool:
    curve, added = summary.certified, summary.certified_additions
    axes.step(curve.size, curve.share, where="post", label=share_word(summary), **_LOOK["certified"])
    if added is not None:
        axes.step(added.size, added.share, where="post", label=added_words(summary), **_LOOK["added"])
    if summary.context.attacked:
        sizes, left = zip(*sorted(summary.context.attacked), strict=True)
        # An attack that works at one size works at every larger one: steps, never a slope between measurements.
        axes.plot(sizes, left, label="under attack", drawstyle="steps-post", **_LOOK["attacked"])
    for key, name, value in summary.references:
        axes.axhline(value, label=name, **_LOOK[key])
    axes.set_xlim(0, summary.last_size)
    axes.set_xlabel(f"size of the attack ({step_words(summary)[1]})")
    _finish(axes, summary)
    return True


def _draw_degrees(axes: Any, summary: Summary) -> bool:
    chart = degree_chart(summary)
    if chart is None:
        return False
    xs, ys = ([point[c] for point in chart["points"]] for c in "xy")
    axes.step(xs, ys, where="pre", label=share_word(summary), **_LOOK["certified"])
    axes.set_xscale("log")
    axes.set_xlim(*chart["domain"])
    axes.set_xlabel(chart["ratio_word"])
    if chart["ceiling"]:
        axes.axvline(1, color="black", linewidth=0.6, linestyle=(0, (3, 3)))
    _finish(axes, summary)
    return True


def _finish(axes: Any, summary: Summary) -> None:
    axes.set_ylim(0, 1)
    axes.set_ylabel(share_word(summary))
    if len(axes.lines) > 1:
        axes.legend(fontsize=6, handlelength=3)
