"""Comparison: many defences side by side, as rows, as a table and as a figure."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError, did_you_mean
from agnncert.report.drawing import Curve, Panel, draw_panels
from agnncert.report.tables import FORMATS, laid_out
from agnncert.storage import write_atomic
from agnncert.studies.threat import Threat

Row = dict[str, Any]

# Dashes tell a guarantee by chance from a certain one, dots mark what has none.
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}
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
        panel = Panel(f"{self.data}, {self.targets:,} {self.task}s", list(self._curves()))
        return draw_panels([panel], path, f"size of the attack ({self.threat.unit})", columns=1, width=4.6, legend=True)

    def _curves(self) -> Iterator[Curve]:
        for number, row in enumerate(self.rows):
            dash, remark = _LINES[row["guarantee"].split(",")[0].split(":")[0]]
            yield Curve(row["defence"] + remark, number, self.sizes, row["certified"], dash=dash)

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
