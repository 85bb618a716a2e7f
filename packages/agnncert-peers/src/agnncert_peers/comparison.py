"""``Comparison``: defences on the same data, as rows, tables and figures."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agnncert import notebook
from agnncert.certificates.votes import FloatArray
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import Task
from agnncert.proving.measures import MEASURES
from agnncert.report.drawing import Curve, Panel, draw_panels
from agnncert.report.tables import FORMATS, laid_out
from agnncert.storage import write_atomic
from agnncert.undefended import MAJORITY
from agnncert_peers.common_point import COLUMNS, CommonPoint
from agnncert_peers.control_rows import ABOUT, NOTHING_PROVED
from agnncert_peers.plot import plot_comparison
from agnncert_peers.runner import Row
from agnncert_peers.threat import Threat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIE = 1e-12  # shares that differ by no more are equal
FIGURES = (".svg", ".pdf", ".png")
DASH = "–"  # stands where nothing is proved
RANDOM = "‡"  # stands behind a defence whose guarantee has a probability of error
_WORDS = {
    "accuracy": "% of labels that are correct and certified",
    "balanced": "certified balanced accuracy (mean recall of the classes) in %",
    "recall": "certified recall of class {} in %",
    "precision": "certified precision of class {} in %",
}
# Line and remark in a figure, by guarantee: dashed if it is probabilistic, dotted if there is none.
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}
_COSTS = {"passes": ("forward_passes", ","), "seconds": ("seconds_certification", ".2f")}
_COSTS_IN_CSV = ("accuracy", "forward_passes", "seconds_certification", "cost_in_forwards", "seconds_training")
_DIFFERS = "differs by seed"


@dataclass(frozen=True)
class Comparison:
    """Defences on the same data, split, base model and kind of attack.

    A control may have an *envelope*: at every size the classifier that was chosen for this size. Each of its points is
    another classifier, so no single classifier has this curve.

    Attributes:
        data: Name of the data.
        task: ``"node"`` or ``"graph"``.
        threat: The kind of attack.
        sizes: Attack sizes, ascending.
        targets: Number of targets.
        rows: One dictionary per defence: ``defence``, ``guarantee``, ``accuracy`` (without an attack), ``certified``
            (share of correct and certified labels at each size), ``balanced`` (certified balanced accuracy at each
            size), ``recall``, ``precision`` and ``false_positive_rate`` (at each size, for each class; None if
            undefined). All of these are None at sizes about which nothing is proved, and ``not_covered`` says so.
            ``set_size`` (mean number of labels that an attack of each size could give a target), ``control`` (whether
            it is a control), ``vote`` (the voting rule, if it is not the default), ``design_size`` (for which it was
            chosen), ``decides`` (what decides in a chosen rule), ``envelope`` (whether each size has another rule),
            ``forward_passes`` (in the definition of the method), ``seconds_training``, ``seconds_certification``,
            ``seconds_forward`` (one forward pass of the same model) and ``cost_in_forwards`` (the time of certifying,
            in forward passes). With several seeds numbers are means over these.
        measure: What tables and figures show: "accuracy", "balanced", "recall" or "precision".
        label: The class whose recall or precision that is.
        ceiling: Graphs: what any classifier of the types of nodes can certify on these targets at each size, at most
            (``agnncert_peers.ceilings``); None if it is not computed.
        exact: What the undefended model withstands, found by trying everything, in words; empty if nobody asked.
        seeds: The seeds.
        runs: With several seeds, the comparison of each.
        point: Two classes: the operating point at which ``recall_at_point`` of each row is the recall without an
            attack. ``roc_auc`` and ``average_precision`` need no point. They are None without scores.
    """

    data: str
    task: Task
    threat: Threat
    sizes: tuple[int, ...]
    targets: int
    rows: tuple[Row, ...]
    measure: str = "accuracy"
    label: int | None = None
    ceiling: tuple[float, ...] | None = None
    exact: str = ""
    seeds: tuple[int, ...] = ()
    runs: tuple["Comparison", ...] = ()
    point: CommonPoint | None = None

    def by(self, measure: str, label: int | None = None) -> "Comparison":
        """Returns the same comparison by another measure: "accuracy", "balanced", "recall" or "precision" of a class.

        Example: ``print(comparison.by("recall", label=1))``.
        """
        if measure not in _WORDS:
            raise SettingsError(f'measure="{measure}": {did_you_mean(str(measure), _WORDS)}')
        num_classes = len(self.rows[0]["recall"][0])
        if measure in MEASURES and label is not None:
            raise SettingsError(f'measure="{measure}" is about all classes: leave label={label} out.')
        if measure not in MEASURES and label not in range(num_classes):
            raise SettingsError(f'measure="{measure}" is about one class: pass label= from 0 to {num_classes - 1}.')
        runs = tuple(run.by(measure, label) for run in self.runs)
        return replace(self, measure=measure, label=label, runs=runs)

    def curve(self, row: Row) -> list[float | None]:
        """Returns the shown measure of a row at each size.

        It is None where nothing is proved, and 0 where the measure is undefined.
        """
        if self.measure == "accuracy":
            return list(row["certified"])
        if self.measure == "balanced":
            return list(row["balanced"])
        return [None if shares is None else shares[self.label] or 0.0 for shares in row[self.measure]]

    def deviations(self, row: Row) -> list[float | None]:
        """Returns the standard deviation of the shown measure over the seeds at each size.

        It divides by the number of seeds less one. It is None where nothing is proved, and with one seed.
        """
        if not self.runs:
            return [None] * len(self.sizes)
        curves = [run.curve(run.row(row["defence"])) for run in self.runs]
        return [None if None in shares else float(np.std(shares, ddof=1)) for shares in zip(*curves, strict=True)]

    def row(self, defence: str) -> Row:
        """Returns the row of a defence by its name.

        Raises:
            SettingsError: There is no such row.
        """
        for row in self.rows:
            if row["defence"] == defence:
                return row
        names = [row["defence"] for row in self.rows]
        raise SettingsError(f'no row is called "{defence}": {did_you_mean(defence, names)}')

    def __str__(self) -> str:
        parts = [self.title, "", self.table(), "", *self.footnotes(), *self.remarks()]
        if self.point is not None:
            parts += ["", self.point_title, "", self.point_table()]
        return "\n".join(parts).rstrip()

    @property
    def point_title(self) -> str:
        """What :meth:`point_table` shows; empty without two classes."""
        return "" if self.point is None else f"Without an attack, all at {self.point}"

    def point_table(self, format: str = "text") -> str:
        """Returns recall at the same false positive rate, ROC AUC and average precision of each row; two classes.

        Args:
            format: As for :meth:`table`.
        """
        if self.point is None:
            raise SettingsError("one operating point for all needs two classes: this comparison has none.")
        rows = []
        for row in self.rows:
            numbers = [row.get(name) for name in COLUMNS]
            rows.append([row["defence"], *(DASH if number is None else f"{number:.3f}" for number in numbers)])
        return laid_out(format, ["model", "recall", "ROC AUC", "average precision"], rows, "lrrr")

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the shown measure of each row over the perturbation size.

        Controls are grey and dashed. With several seeds, a band shows the standard deviation. A row has no point where
        nothing is proved.

        Args:
            ax: Axes of matplotlib to draw into. Defaults to those of a new figure.

        Raises:
            MissingPackage: matplotlib is not installed.
        """
        return plot_comparison(self, ax)

    def _repr_html_(self) -> str:
        head, rows = self._cells()
        notes = [notebook.paragraph(note) for note in [*self.footnotes(), *self.remarks()]]
        return notebook.framed("".join([notebook.paragraph(self.title), notebook.table(head, rows), *notes]))

    @property
    def title(self) -> str:
        """What is compared."""
        what = _WORDS[self.measure].format(self.label)
        return f"{self.data}, {self.targets:,} {self.task}s: {what} against this many {self.threat.unit}"

    @property
    def majority(self) -> list[float | None] | None:
        """The shown measure of the majority class at each size; ``None`` without this control."""
        for row in self.rows:
            if row["settings"] == MAJORITY:
                return self.curve(row)
        return None

    def footnotes(self) -> list[str]:
        """Explains the signs in the table: the dash, the star, and the deviation."""
        notes = []
        uncovered = [row["defence"] for row in self.rows if None in self.curve(row)]
        if uncovered:
            notes.append(f"{DASH} nothing is proved about {self.threat.unit}: {', '.join(uncovered)}.")
        if any(self._starred(row) for row in self.rows):
            notes.append("* below the majority class, a constant.")
        if self.runs:
            seeds = ", ".join(map(str, self.seeds))
            notes.append(f"Mean ± standard deviation over the seeds {seeds}.")
        return notes

    def remarks(self) -> list[str]:
        """Says of each defence where it is below the majority class and above every control; and what to mistrust."""
        remarks = [f"{self.exact}."] if self.exact else []
        remarks += [f"{row['defence']}: {self._judged(row)}." for row in self.rows if not row["control"]]
        remarks += [*self._bar(), *self._sets(), *self._possible()]
        early = [row["defence"] for row in self.rows if not row.get("converged", True)]
        if early:
            remarks.append(
                f"Training had not converged, its last epoch was the best: {', '.join(early)}. Try more epochs."
            )
        return remarks

    def _bar(self) -> list[str]:
        """Names the strongest control under attack, which every defence has to beat, and the sizes at which it is."""
        controls = self._proved_controls()
        places = [place for place, size in enumerate(self.sizes) if size]
        if not controls or not places:
            return []
        curves = np.array([_with_gaps(self.curve(row)) for row in controls])
        best: dict[str, list[str]] = {}
        for place in places:
            if not np.isnan(curves[:, place]).all():
                strongest = int(np.nanargmax(curves[:, place]))
                share = f"{100 * curves[strongest, place]:.1f} at {self.sizes[place]}"
                best.setdefault(controls[strongest]["defence"], []).append(share)
        named = "; ".join(f"{name}, {', '.join(shares)}" for name, shares in best.items())
        return [f"The bar under attack, the strongest control: {named}."] if named else []

    def _proved_controls(self) -> list[Row]:
        """Returns the controls about which something is proved."""
        return [row for row in self.rows if row["control"] and not row["guarantee"].startswith("none")]

    def _possible(self) -> list[str]:
        """Returns a sentence about the ceiling, if there is one."""
        if self.ceiling is None or self.measure != "accuracy":
            return []
        most = ", ".join(f"{100 * share:.1f} at {size}" for share, size in zip(self.ceiling, self.sizes, strict=True))
        what = "any classifier that reads how many nodes of each type a graph has, and no edges"
        return [f"At most this % is possible for {what}: {most}."]

    def _sets(self) -> list[str]:
        """Returns a sentence about the labels that an attack could give a target, if rows say how many they are."""
        last = len(self.sizes) - 1
        places = sorted({round(part * last / 3) for part in range(4)})
        means = []
        for row in self.rows:
            if not row["control"] and "set_size" in row:
                numbers = " / ".join(f"{row['set_size'][place]:.2f}" for place in places)
                means.append(f"{row['defence']} {numbers}")
        if not means:
            return []
        sizes = " / ".join(str(self.sizes[place]) for place in places)
        return [f"Possible labels of a target, on average, at size {sizes}: {'; '.join(means)}."]

    def _notes(self) -> str:
        """Returns footnotes, remarks, and what can change each control, as a Markdown list."""
        controls = []
        for row in self.rows:
            if row["control"]:
                about = ABOUT.get(row["defence"], {}).get(self.task, NOTHING_PROVED)
                controls.append(f"{row['defence']}: {about}.")
        return "\n".join(f"- {sentence}" for sentence in [*self.footnotes(), *self.remarks(), *controls])

    def _point_in_markdown(self) -> str:
        if self.point is None:
            return ""
        return f"\n\n## {self.point_title}\n\n{self.point_table('markdown')}"

    def _judged(self, row: Row) -> str:
        """Says where a defence is below the majority class, and where above all controls."""
        controls = self._proved_controls()
        if self.majority is None or not controls:
            return "no controls were run"
        if not any(share is not None for share, size in zip(self.curve(row), self.sizes, strict=True) if size):
            return f"nothing is proved about {self.threat.unit}"
        below = [size for size, is_below in zip(self.sizes, self._below(row), strict=True) if is_below]
        first = f"below the majority class from size {below[0]} on" if below else "nowhere below the majority class"
        curves = np.array([_with_gaps(self.curve(other)) for other in controls])
        gains = _with_gaps(self.curve(row)) - np.nanmax(curves, axis=0)
        above = [str(size) for size, gain in zip(self.sizes, gains, strict=True) if gain > TIE]
        if not above:
            return f"{first}; above all controls at no size"
        place = int(np.nanargmax(gains))
        best = controls[int(np.nanargmax(curves[:, place]))]["defence"]
        most = f"most at {self.sizes[place]}, by {100 * gains[place]:.1f} points over {best}"
        return f"{first}; above all controls at size {', '.join(above)}, {most}"

    def table(self, format: str = "text") -> str:
        """Returns the comparison as a table.

        A star marks values below the majority class, and a dash what nothing is proved about.

        Args:
            format: ``"text"``, ``"markdown"``, ``"csv"`` (numbers; empty where nothing is proved) or ``"latex"``
                (booktabs and tabularx, as wide as a column, with the footnotes below it: long names are broken, costs
                and some of many sizes are left out).
        """
        if format not in FORMATS:
            raise SettingsError(f'no table format is called "{format}": {did_you_mean(format, FORMATS)}')
        if format == "csv":
            return laid_out(format, *self._numbers())
        if format == "latex":
            return self._latex()
        head, rows = self._cells()
        num_words = 3 if "vote" in head else 2
        sides = "l" * num_words + "r" * (len(head) - num_words)
        return laid_out(format, head, rows, sides)

    def _latex(self) -> str:
        """Returns a table that is as wide as a column."""
        most = 4 if self.runs else 6  # sizes for which there is room beside the names
        places = sorted({round(k * (len(self.sizes) - 1) / (most - 1)) for k in range(most)})
        rows = []
        for row in self.rows:
            vote = f", {row['vote']}" if row["vote"] else ""
            mark = RANDOM if row["guarantee"].startswith("probabilistic") else ""
            shares = self._shares(row)
            rows.append([f"{row['defence']}{vote}{mark}", *(shares[place] for place in places)])
        sizes = [str(self.sizes[place]) for place in places]
        lines = laid_out("latex", ["defence", *sizes], rows, "l" + "r" * len(sizes)).splitlines()
        columns = r"@{}>{\raggedright\arraybackslash}X" + "r" * len(sizes) + "@{}"
        notes = " ".join(self._notes_in_column()).replace("%", r"\%").replace("_", r"\_")
        left_out = [str(size) for place, size in enumerate(self.sizes) if place not in places]
        text = "\n".join(
            [
                r"% Needs \usepackage{booktabs, tabularx}.",
                *([f"% Left out for want of room: sizes {', '.join(left_out)}."] if left_out else []),
                r"{\footnotesize\setlength{\tabcolsep}{3pt}%",
                rf"\begin{{tabularx}}{{\columnwidth}}{{{columns}}}",
                *lines[1:-1],
                r"\end{tabularx}",
                *([rf"\par\smallskip {notes}"] if notes else []),
                r"\par}",
            ]
        )
        text = re.sub(r"([\d.]+) ± ([\d.]+)", r"$\1_{\\pm \2}$", text)
        return text.replace(RANDOM, r"$^\ddagger$").replace(DASH, "--").replace("±", r"$\pm$")

    def _notes_in_column(self) -> list[str]:
        """Returns the footnotes, and what the mark behind a name means."""
        random = sorted({row["guarantee"] for row in self.rows if row["guarantee"].startswith("probabilistic")})
        return [*self.footnotes(), *(f"{RANDOM} {guarantee}." for guarantee in random)]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Returns the titles and the rows that people read."""
        words = ["guarantee"]
        if any(row["vote"] for row in self.rows):  # a column for votes only if there are any
            words.append("vote")
        rows = []
        for row in self.rows:
            costs = [f"{row[key]:{form}}" for key, form in _COSTS.values()]
            costs.append(f"{row['cost_in_forwards']:,.1f}")
            rows.append([row["defence"], *(str(row[word]) for word in words), *self._shares(row), *costs])
        sizes = [str(size) for size in self.sizes]
        return ["defence", *words, *sizes, *_COSTS, "time / forward"], rows

    def _numbers(self) -> tuple[list[str], list[list[str]]]:
        """Returns the titles and the rows of a CSV file: everything, as numbers."""
        words = ["guarantee"]
        if any(row["vote"] for row in self.rows):
            words.append("vote")
        head = ["defence", *words, *(f"certified_{size}" for size in self.sizes)]
        if self.runs:
            head += [f"deviation_{size}" for size in self.sizes]
        rows = []
        for row in self.rows:
            numbers = self.curve(row)
            if self.runs:
                numbers += self.deviations(row)
            numbers += [row[key] for key in _COSTS_IN_CSV]
            cells = ["" if number is None else f"{number:.6g}" for number in numbers]
            rows.append([row["defence"], *(str(row[word]) for word in words), *cells])
        return [*head, *_COSTS_IN_CSV], rows

    def _shares(self, row: Row) -> list[str]:
        """Returns certified shares in percent, with deviations and stars; a dash where nothing is proved."""
        cells = []
        stars = self._starred(row)
        for position, (share, deviation) in enumerate(zip(self.curve(row), self.deviations(row), strict=True)):
            if share is None:
                cells.append(DASH)
                continue
            spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
            star = "*" if position in stars else ""
            cells.append(f"{100 * share:.1f}{spread}{star}")
        return cells

    def _starred(self, row: Row) -> set[int]:
        """Returns the positions of the sizes at which a defence is below the majority class."""
        if row["control"]:
            return set()
        return {position for position, is_below in enumerate(self._below(row)) if is_below}

    def _below(self, row: Row) -> list[bool]:
        """Tells whether a row is below the majority class, at each size; nowhere where nothing is proved."""
        if self.majority is None:
            return [False] * len(self.sizes)
        below = _with_gaps(self.curve(row)) < _with_gaps(self.majority) - TIE
        return [bool(is_below) for is_below in below]

    def figure(self, path: str | Path) -> Path:
        """Draws certified accuracy over the size of the attack, one line per defence.

        With several seeds a band shows one standard deviation around the mean. Sizes about which nothing is proved have
        no point.

        Args:
            path: Where to write; its ending, ``.svg``, ``.pdf`` or ``.png``, chooses the format.

        Returns:
            The path.

        Raises:
            MissingPackage: matplotlib is not installed.
            SettingsError: The ending is not supported.
        """
        path = Path(path)
        if path.suffix not in FIGURES:
            raise SettingsError(f'cannot draw "{path.name}": {did_you_mean(path.suffix, FIGURES)}')
        # Defences get the most distinct looks.
        ordered = sorted(self.rows, key=lambda row: bool(row["control"]))
        looks = {row["defence"]: number for number, row in enumerate(ordered)}
        curves = [self._drawn(row, looks[row["defence"]]) for row in self.rows]
        panel = Panel(f"{self.data}, {self.targets:,} {self.task}s", curves)
        return draw_panels([panel], path, f"size of the attack ({self.threat.unit})", columns=1, width=4.6)

    def _drawn(self, row: Row, look: int) -> Curve:
        """Returns the line of a row."""
        dash, remark = _LINES[row["guarantee"].split(",")[0].split(":")[0]]
        if row["envelope"]:
            remark = " (envelope)"
        shares = _with_gaps(self.curve(row))
        shown = ~np.isnan(shares)
        sizes = np.array(self.sizes)[shown].tolist()
        low = high = None
        if self.runs:
            deviations = _with_gaps(self.deviations(row))[shown]
            low = (shares[shown] - deviations).clip(0, 1).tolist()
            high = (shares[shown] + deviations).clip(0, 1).tolist()
        return Curve(
            row["defence"] + remark,
            look,
            sizes,
            shares[shown].tolist(),
            low=low,
            high=high,
            dash=dash,
            envelope=row["envelope"],
        )

    def to_json(self) -> dict[str, Any]:
        """Returns all fields as JSON values; an unlimited number of edges is ``"inf"``."""
        threat = {name: "inf" if value == math.inf else value for name, value in asdict(self.threat).items()}
        rows = list(self.rows)
        if self.runs:
            rows = [{**row, "deviations": self.deviations(row)} for row in rows]
        return {
            "data": self.data,
            "task": self.task,
            "threat": threat,
            "sizes": list(self.sizes),
            "targets": self.targets,
            "rows": rows,
            "measure": self.measure,
            "label": self.label,
            "ceiling": None if self.ceiling is None else list(self.ceiling),
            "exact": self.exact,
            "seeds": list(self.seeds),
            "runs": [run.to_json() for run in self.runs],
            "point": None if self.point is None else asdict(self.point),
        }

    def save(self, folder: str | Path, name: str = "comparison") -> tuple[Path, ...]:
        """Writes rows, tables and figures into a folder.

        Args:
            folder: Where to write; created if it is missing.
            name: Name of the files.

        Returns:
            The files written, with the endings ``.json``, ``.md``, ``.csv``, ``.tex``, ``.svg`` and ``.pdf``.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            ".json": json.dumps(self.to_json(), indent=1),
            ".md": f"# {self.title}\n\n{self.table('markdown')}\n\n{self._notes()}{self._point_in_markdown()}",
            ".csv": self.table("csv"),
            ".tex": self.table("latex"),
        }
        written = []
        for ending, text in texts.items():
            file = folder / f"{name}{ending}"
            write_atomic(file, f"{text}\n")
            written.append(file)
        written += [self.figure(folder / f"{name}{ending}") for ending in (".svg", ".pdf")]
        return tuple(written)


def join_seeds(runs: Sequence[Comparison]) -> Comparison:
    """Joins comparisons with different seeds into one that shows means and deviations.

    Args:
        runs: Comparisons of the same defences on the same data, one for each seed.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    names = [row["defence"] for row in first.rows if all(_has_row(run, row["defence"]) for run in runs)]
    rows = tuple(_mean_row([run.row(name) for run in runs]) for name in names)
    seeds = tuple(seed for run in runs for seed in run.seeds)
    ceilings = [run.ceiling for run in runs if run.ceiling is not None]
    ceiling = tuple(np.mean(ceilings, axis=0).tolist()) if len(ceilings) == len(runs) else None
    exact = "; ".join(f"seed {seed}: {run.exact}" for seed, run in zip(seeds, runs, strict=True) if run.exact)
    points = [run.point for run in runs if run.point is not None]
    point = None
    if len(points) == len(runs):
        point = CommonPoint(points[0].positive, float(np.mean([each.false_positive_rate for each in points])))
    return replace(first, rows=rows, ceiling=ceiling, exact=exact, seeds=seeds, runs=tuple(runs), point=point)


def _has_row(comparison: Comparison, defence: str) -> bool:
    return any(row["defence"] == defence for row in comparison.rows)


def _mean_row(rows: Sequence[Row]) -> Row:
    return {name: _mean([row[name] for row in rows]) for name in rows[0]}


def _mean(values: Sequence[Any]) -> Any:
    """Returns the mean of numbers, entry by entry for lists; words that differ become "differs by seed"."""
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, list):
        return [_mean(entries) for entries in zip_longest(*values)]
    if isinstance(first, bool):
        return all(values)
    if isinstance(first, str):
        return _DIFFERS
    known = [value for value in values if value is not None]
    return float(np.mean(known))


def _with_gaps(shares: Sequence[float | None]) -> FloatArray:
    """Returns shares as an array, with NaN where there is none."""
    return np.array([math.nan if share is None else share for share in shares], dtype=np.float64)
