"""Rows of text as a table for people, for documents and for further work.

Comparison: many defences side by side, as rows, as a table and as a figure.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError, did_you_mean
from agnncert.storage import write_atomic
from agnncert.studies.threat import Threat

FORMATS = ("text", "markdown", "csv", "latex")

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def laid_out(format: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table in one of :data:`FORMATS`.

    Example:
        >>> print(laid_out("text", ["name", "size"], [["a", "10"], ["bc", "7"]]))
        name  size
        a       10
        bc       7
    """
    if format == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([titles, *rows])
        return text.getvalue().rstrip("\n")
    if format == "latex":
        body = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in [titles, *rows]]
        head = [rf"\begin{{tabular}}{{{_sides(titles, rows)}}}", r"\hline", body[0], r"\hline"]
        return "\n".join([*head, *body[1:], r"\hline", r"\end{tabular}"])
    if format == "markdown":
        lines = [titles, ["---:" if side == "r" else "---" for side in _sides(titles, rows)], *rows]
        return "\n".join("| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines)
    widths = [max(len(row[k]) for row in [titles, *rows]) for k in range(len(titles))]
    sides = _sides(titles, rows)
    return "\n".join(
        "  ".join(c.rjust(w) if s == "r" else c.ljust(w) for c, w, s in zip(row, widths, sides, strict=True)).rstrip()
        for row in [titles, *rows]
    )


def _sides(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """For each column, "r" if it holds numbers, else "l"."""
    numbers = (bool(rows) and all(row[k][:1].isdigit() for row in rows) for k in range(len(titles)))
    return "".join("r" if number else "l" for number in numbers)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


Row = dict[str, Any]

# Okabe and Ito's colours. Dashes tell a guarantee by chance from a certain one, dots mark what has none.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7400", "#7F3C8D")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}
_STYLE = {
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "legend.frameon": False, "svg.hashsalt": "agnncert", "svg.fonttype": "none", "pdf.fonttype": 42,
}  # fmt: skip
FIGURES = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Comparison:
    """Defences on the same data, split, base model and kind of attack.

    Attributes:
        data: Name of the data.
        task: ``"node"`` or ``"graph"``.
        threat: The kind of attack.
        sizes: Attack sizes, ascending.
        targets: Number of targets.
        rows: One dictionary per defence: ``defence``, ``guarantee``, ``accuracy`` (of its labels, without any
            attack), ``certified`` (share of correct and certified labels at each size), ``forward_passes``
            (those the method is defined by), ``seconds_training``, ``seconds_certification``,
            ``seconds_forward`` (one plain pass of the same model) and ``cost_in_forwards`` (what certifying
            took, in such passes).
    """

    data: str
    task: str
    threat: Threat
    sizes: tuple[int, ...]
    targets: int
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return f"{self.title}\n\n{self.table()}"

    @property
    def title(self) -> str:
        """What is compared."""
        return (
            f"{self.data}, {self.targets:,} {self.task}s: % of labels that are correct and certified against so many "
            f"{self.threat.unit}"
        )

    def table(self, format: str = "text") -> str:
        """The comparison as a table.

        Args:
            format: ``"text"``, ``"markdown"``, ``"csv"`` or ``"latex"``.
        """
        if format not in FORMATS:
            raise SettingsError(f'no table format is called "{format}": {did_you_mean(format, FORMATS)}')
        costs = ["passes", "seconds", "time / forward"]
        titles = ["defence", "guarantee", *(str(size) for size in self.sizes), *costs]
        if format == "csv":  # everything, as numbers
            keys = ("accuracy", "forward_passes", "seconds_certification", "cost_in_forwards", "seconds_training")
            titles = ["defence", "guarantee", *(f"certified_{s}" for s in self.sizes), *keys]
            return laid_out(format, titles, [self._numbers(row, keys) for row in self.rows])
        return laid_out(format, titles, [list(self._cells(row)) for row in self.rows])

    def _numbers(self, row: Row, keys: tuple[str, ...]) -> list[str]:
        return [row["defence"], row["guarantee"], *(f"{v:.6g}" for v in [*row["certified"], *map(row.get, keys)])]

    def _cells(self, row: Row) -> Iterator[str]:
        yield row["defence"]
        yield row["guarantee"]
        yield from (f"{100 * share:.1f}" for share in row["certified"])
        yield f"{row['forward_passes']:,}"
        yield f"{row['seconds_certification']:.2f}"
        yield f"{row['cost_in_forwards']:,.1f}"

    def figure(self, path: str | Path) -> Path:
        """Draws certified accuracy over the size of the attack, one line per defence.

        Args:
            path: Where to write; its ending, ``.svg``, ``.pdf`` or ``.png``, chooses the format.

        Returns:
            The path.

        Raises:
            SettingsError: matplotlib is not installed, or the ending is another.
        """
        path = Path(path)
        if path.suffix not in FIGURES:
            raise SettingsError(f'cannot draw "{path.name}": {did_you_mean(path.suffix, FIGURES)}')
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError:
            raise SettingsError(
                'figures are drawn with matplotlib, which is not installed: pip install "agnncert[report]".'
            ) from None
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(_STYLE):
            figure = Figure(figsize=(4.6, 3.0), layout="constrained", dpi=200)
            self._draw(figure.add_subplot())
            date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
            figure.savefig(path, metadata=date)
        return path

    def _draw(self, axes: Any) -> None:
        for number, row in enumerate(self.rows):
            line, remark = _LINES[row["guarantee"].split(",")[0].split(":")[0]]
            axes.plot(  # between two sizes only what holds at the larger one is known
                self.sizes, row["certified"], linestyle=line, drawstyle="steps-pre", linewidth=1.2,
                label=row["defence"] + remark,
                color=_COLOURS[number % len(_COLOURS)], marker=_MARKS[number % len(_MARKS)], markersize=3.5,
            )  # fmt: skip
        axes.set_xlim(self.sizes[0], max(self.sizes[-1], self.sizes[0] + 1))
        axes.set_ylim(0, 1)
        axes.set_xlabel(f"size of the attack ({self.threat.unit})")
        axes.set_ylabel("certified accuracy")
        axes.set_title(f"{self.data}, {self.targets:,} {self.task}s", fontsize=8)
        axes.legend(fontsize=5.5, handlelength=3)

    def to_json(self) -> dict[str, Any]:
        """Everything, in JSON's terms; an unlimited number of edges is ``"inf"``."""
        threat = {k: "inf" if v == float("inf") else v for k, v in asdict(self.threat).items()}
        return {**asdict(self), "threat": threat, "sizes": list(self.sizes), "rows": list(self.rows)}

    def save(self, folder: str | Path, name: str = "comparison") -> tuple[Path, ...]:
        """Writes rows, tables and figures into a folder.

        Args:
            folder: Where to write; made if it is missing.
            name: What the files are called.

        Returns:
            The files written, with the endings ``.json``, ``.md``, ``.csv``, ``.tex``, ``.svg`` and ``.pdf``.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "json": json.dumps(self.to_json(), indent=1) + "\n",
            "md": f"# {self.title}\n\n{self.table('markdown')}\n",
            "csv": self.table("csv") + "\n",
            "tex": self.table("latex") + "\n",
        }
        written = []
        for ending, text in texts.items():
            path = folder / f"{name}.{ending}"
            write_atomic(path, text)
            written.append(path)
        return (*written, *(self.figure(folder / f"{name}{ending}") for ending in (".svg", ".pdf")))
