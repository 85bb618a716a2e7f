"""``compare``: many defences on the same data, split, base model and kind of attack.

``Threat`` defines what the size of an attack counts. ``rows`` lists the defences and controls to run and makes a row of
each outcome, ``runner`` runs them, and ``Comparison`` shows the rows as a table and a figure.
"""

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.voting_rule import VotingRule
from agnncert.comparison.controls import SIZE_ONLY, SizedGraphs
from agnncert.comparison.rows import (
    Entry,
    Row,
    Voted,
    bag_row,
    checked_designs,
    entries_of,
    envelope_row,
    make_row,
    named,
    no_edges_row,
    size_row,
    usual_defences,
    with_vote,
)
from agnncert.comparison.runner import BaseModel, Outcome, Study, make_study, run
from agnncert.comparison.threat import BAG_OF_NODES, GRAPH_FREE, MAJORITY, UNDEFENDED, Threat
from agnncert.datasets.load import load_dataset
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import infer_task
from agnncert.progress import OnProgress, Progress
from agnncert.report.figures import FORMATS, Curve, Panel, draw_panels, laid_out
from agnncert.storage import write_atomic

log = logging.getLogger(__name__)

TIE = 1e-12  # shares that differ by no more are equal
SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150)
FEW_SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)  # for edges and features, where every mix is tried
FIGURES = (".svg", ".pdf", ".png")
# Line and remark in a figure, by guarantee: dashed if it is probabilistic, dotted if there is none.
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}


@dataclass(frozen=True)
class Comparison:
    """Defences on the same data, split, base model and kind of attack.

    Attributes:
        data: Name of the data.
        task: ``"node"`` or ``"graph"``.
        threat: The kind of attack.
        sizes: Attack sizes, ascending.
        targets: Number of targets.
        rows: One dictionary per defence: ``defence``, ``guarantee``, ``accuracy`` (without an attack), ``certified``
            (share of correct and certified labels at each size), ``control`` (whether it is a control), ``about`` (what
            can change a control), ``vote`` (the voting rule, if it is not the default), ``design_size`` (for which it
            was chosen), ``decides`` (what decides in a chosen rule), ``envelope`` (whether each size has another rule),
            ``forward_passes`` (in the definition of the method), ``seconds_training``, ``seconds_certification``,
            ``seconds_forward`` (one forward pass of the same model) and ``cost_in_forwards`` (the time of certifying,
            in forward passes).
    """

    data: str
    task: str
    threat: Threat
    sizes: tuple[int, ...]
    targets: int
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, "", self.table(), "", *self.remarks()]).rstrip()

    @property
    def title(self) -> str:
        """What is compared."""
        return (
            f"{self.data}, {self.targets:,} {self.task}s: % of labels that are correct and certified against so many "
            f"{self.threat.unit}"
        )

    @property
    def majority(self) -> list[float] | None:
        """Certified accuracy of the majority class at each size; ``None`` without this control."""
        return next((row["certified"] for row in self.rows if row["settings"] == MAJORITY), None)

    def remarks(self) -> list[str]:
        """For each defence: at which sizes it is below the majority class, and above every control."""
        return [f"{row['defence']}: {self._judged(row)}." for row in self.rows if not row["control"]]

    def _notes(self) -> str:
        """The remarks, and what can change each control, as a Markdown list."""
        controls = [f"{row['defence']}: {row['about']}." for row in self.rows if row["control"]]
        return "\n".join(f"- {sentence}" for sentence in [*self.remarks(), *controls])

    def _judged(self, row: Row) -> str:
        controls = [other for other in self.rows if other["control"] and not other["guarantee"].startswith("none")]
        if self.majority is None or not controls:
            return "no controls were run"
        below = [size for place, size in enumerate(self.sizes) if _is_below(row, self.majority, place)]
        first = f"below the majority class from size {below[0]} on" if below else "nowhere below the majority class"
        best = [max(controls, key=_certified_at(place)) for place in range(len(self.sizes))]
        gains = [row["certified"][place] - other["certified"][place] for place, other in enumerate(best)]
        above = [str(size) for size, gain in zip(self.sizes, gains, strict=True) if gain > TIE]
        if not above:
            return f"{first}; above all controls at no size"
        place = int(np.argmax(gains))
        most = f"most at {self.sizes[place]}, by {100 * gains[place]:.1f} points over {best[place]['defence']}"
        return f"{first}; above all controls at size {', '.join(above)}, {most}"

    def table(self, format: str = "text") -> str:
        """The comparison as a table. A star marks values below the majority class.

        Args:
            format: ``"text"``, ``"markdown"``, ``"csv"`` or ``"latex"``.
        """
        if format not in FORMATS:
            raise SettingsError(f'no table format is called "{format}": {did_you_mean(format, FORMATS)}')
        if format == "csv":  # everything, as numbers
            costs = ["accuracy", "forward_passes", "seconds_certification", "cost_in_forwards", "seconds_training"]
            sizes = [f"certified_{size}" for size in self.sizes]
            cells = [[f"{v:.6g}" for v in (*row["certified"], *(row[key] for key in costs))] for row in self.rows]
        else:
            costs = ["passes", "seconds", "time / forward"]
            sizes = [str(size) for size in self.sizes]
            cells = [[*self._shares(row), *_costs(row)] for row in self.rows]
        # A column for votes only if there are any.
        more = ["vote"] if any(row["vote"] for row in self.rows) else []
        rows = [
            [row["defence"], row["guarantee"], *(row[key] for key in more), *own]
            for row, own in zip(self.rows, cells, strict=True)
        ]
        return laid_out(format, ["defence", "guarantee", *more, *sizes, *costs], rows)

    def _shares(self, row: Row) -> list[str]:
        """Certified shares in percent, with a star where a defence is below the majority class."""
        stars = [
            "*" if self.majority is not None and not row["control"] and _is_below(row, self.majority, place) else ""
            for place in range(len(self.sizes))
        ]
        return [f"{100 * share:.1f}{star}" for share, star in zip(row["certified"], stars, strict=True)]

    def figure(self, path: str | Path) -> Path:
        """Draws certified accuracy over the size of the attack, one line per defence.

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
        curves = []
        ordered = sorted(self.rows, key=lambda row: bool(row["control"]))  # defences get the most distinct looks
        looks = {id(row): number for number, row in enumerate(ordered)}
        for row in self.rows:
            dash, remark = _LINES[row["guarantee"].split(",")[0].split(":")[0]]
            if row["envelope"] and "envelope" not in row["defence"]:
                remark = " (envelope)"
            label, certified = row["defence"] + remark, row["certified"]
            curves.append(Curve(label, looks[id(row)], self.sizes, certified, dash=dash, envelope=row["envelope"]))
        panel = Panel(f"{self.data}, {self.targets:,} {self.task}s", curves)
        return draw_panels([panel], path, f"size of the attack ({self.threat.unit})", columns=1, width=4.6, legend=True)

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; an unlimited number of edges is ``"inf"``."""
        threat = {name: "inf" if value == math.inf else value for name, value in asdict(self.threat).items()}
        return {**asdict(self), "threat": threat, "sizes": list(self.sizes), "rows": list(self.rows)}

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
            ".md": f"# {self.title}\n\n{self.table('markdown')}\n\n{self._notes()}",
            ".csv": self.table("csv"),
            ".tex": self.table("latex"),
        }
        for ending, text in texts.items():
            write_atomic(folder / f"{name}{ending}", f"{text}\n")
        figures = (self.figure(folder / f"{name}{ending}") for ending in (".svg", ".pdf"))
        return (*(folder / f"{name}{ending}" for ending in texts), *figures)


def _certified_at(place: int) -> Callable[[Row], float]:
    return lambda row: float(row["certified"][place])


def _is_below(row: Row, majority: Sequence[float], place: int) -> bool:
    return bool(row["certified"][place] < majority[place] - TIE)


def _costs(row: Row) -> tuple[str, str, str]:
    return f"{row['forward_passes']:,}", f"{row['seconds_certification']:.2f}", f"{row['cost_in_forwards']:,.1f}"


def compare(
    data: Any,
    defences: Mapping[str, Voted] | Sequence[Voted] | None = None,
    *,
    against: str = "edges",
    sizes: Iterable[int] | None = None,
    rule: VotingRule | None = None,
    size: int | Sequence[int] | None = None,
    edges_per_injected: float = math.inf,
    own_features: bool = False,
    model: BaseModel = "gcn",
    model_args: Mapping[str, Any] | None = None,
    fit: Mapping[str, Any] | None = None,
    references: bool = True,
    targets: Any = None,
    sampling: Mapping[str, Any] | None = None,
    seed: int = 0,
    root: str | Path | None = None,
    folder: str | Path | None = None,
    progress: OnProgress | None = None,
) -> Comparison:
    """Trains and certifies with every defence and compares them.

    Every defence gets a model of the same kind, trained from the same initial weights on the same split: on its
    subgraphs, or under its noise. What a defence does not cover counts as not certified.

    Args:
        data: Name of a dataset, a ``Data`` with masks, or a ``GraphSet``.
        defences: Divisions (``EdgeCentric``, ``NodeCentric``, ``ac.baselines.GNNCertE``; your own, if
            ``model`` is trained) and
            smoothing defences (``ac.baselines.BiRS``, ``SparseRS``, ``RS``), by name or in a list; those that
            cover the attack, with their usual settings, when not given. A division may come with its vote, as a pair:
            ``(ac.PerNeighbour(), ac.VotingRule(prior=5))``.
        against: ``"edges"``, ``"injection"``, ``"features"`` or ``"edges and features"``.
        sizes: Attack sizes; what a size counts is in ``Comparison.threat.unit``.
        rule: What empty groups cast, and votes that are there from the start, for all divisions.
        size: Have ``choose_voting_rule`` choose these on validation, for ``EdgeCentric`` and ``NodeCentric``.
            Of several sizes each has a row, and all together an envelope. A size counts here as in ``radius`` (where
            features stay, ``structure_radius``).
        edges_per_injected: Edges per injected node; ``math.inf`` for any number.
        own_features: Node task: whether the target's own features may be among the changed ones.
        model: Name of the base model; or a function without arguments that makes one of your own, untrained; or a
            trained module, which all defences then use as it is.
        model_args: Settings of a base model that is named, on top of the recipe for the data.
        fit: Settings of training (``ac.fit``), on top of the recipe for the data.
        references: Whether to add controls that every defence should beat: the undefended model; an MLP that reads no
            edges; the majority class, which no attack can change. Nodes: the best prediction of a defended model
            without edges. Graphs: a class by number of nodes, or of edges, and a vote of all nodes by their features;
            these are chosen for the design size, or without one for each size (an envelope).
        targets: Mask or row numbers. Defaults to the test part.
        sampling: Settings of all smoothing defences in place of their own, such as ``{"samples": 1000}``.
        seed: Seed of split (of a named dataset), weights, training and samples.
        root: Folder of the datasets.
        folder: Where certificates are kept. An interrupted call that is repeated continues, and another kind of attack
            on the same models needs no new computation.
        progress: Called before every defence, with its name as detail, and at the end.

    Raises:
        SettingsError: A name or number is not valid, or a defence does not fit the task.
    """
    threat = Threat(against, edges_per_injected, own_features)
    data = load_dataset(data, root=root, seed=seed) if isinstance(data, str) else data
    task, name = infer_task(data), getattr(data, "name", None) or "data"
    at = _checked_sizes(sizes, threat)
    designs = checked_designs(size)
    study = make_study(data, targets, model, model_args, fit, seed=seed, samples=sampling or {})
    chosen = named(usual_defences(task, threat) if defences is None else defences)
    if rule is not None:
        chosen = with_vote(chosen, rule, everywhere=defences is not None)
    entries = entries_of(study, chosen, threat, designs)  # raises errors before any work
    if references:
        known = (UNDEFENDED, GRAPH_FREE, MAJORITY)
        entries = [*(Entry(name, replace(study, defence=name), control=True) for name in known), *entries]
    kept, begin = None if folder is None else Path(folder), time.perf_counter()
    rows, outcomes, done = list[Row](), dict[str, Outcome](), 0
    steps = [entry.name for entry in entries] + ([BAG_OF_NODES] if references and task == "graph" else [])

    def report_progress(detail: str) -> None:
        if progress is not None:
            left = (time.perf_counter() - begin) / done * (len(steps) - done) if done else 0.0
            progress(Progress("comparing", done, len(steps), left, detail))

    for entry in entries:
        log.info("%d of %d: %s", done + 1, len(steps), entry.name)
        report_progress(entry.name)
        outcome = run(entry.study, kept)
        if not entry.control:
            outcomes[entry.name] = outcome
        rows.append(make_row(entry.study, outcome, threat, at, entry.name, entry.study.design_size, entry.control))
        done = len(rows)
    if len(designs) > 1:
        rows += _envelopes(entries, rows, at)
    if references:
        if steps[-1] == BAG_OF_NODES:
            report_progress(BAG_OF_NODES)
        rows[len(known) : len(known)] = _controls(study, outcomes, threat, at, designs or at, kept)
        done = len(steps)
    report_progress("")
    return Comparison(name, task, threat, at, len(study.targets), tuple(rows))


def _envelopes(entries: Sequence[Entry], rows: Sequence[Row], sizes: tuple[int, ...]) -> list[Row]:
    families: dict[str, dict[int, Row]] = {}
    for entry, row in zip(entries, rows, strict=True):
        if entry.family:
            families.setdefault(entry.family, {})[row["design_size"]] = row
    return [envelope_row(of, sizes, f"{name}, envelope over design sizes") for name, of in families.items()]


def _controls(
    study: Study,
    outcomes: Mapping[str, Outcome],
    threat: Threat,
    sizes: tuple[int, ...],
    designs: Sequence[int],
    folder: Path | None,
) -> list[Row]:
    """The controls that depend on the task."""
    if study.task == "node":
        row = no_edges_row(study, outcomes, threat, sizes)
        return [] if row is None else [row]
    graphs = SizedGraphs.of(study.data)
    by_size = [size_row(study, graphs, counts, threat, sizes, designs) for counts in SIZE_ONLY]
    return [*by_size, bag_row(study, threat, sizes, designs, folder)]


def _checked_sizes(sizes: Iterable[int] | None, threat: Threat) -> tuple[int, ...]:
    if sizes is None:
        return FEW_SIZES if threat.kind == "edges and features" else SIZES
    ascending = tuple(sorted({int(size) for size in sizes}))
    if not ascending or ascending[0] < 0:
        raise SettingsError(f"sizes={sizes!r}: expected whole numbers from 0 on.")
    return ascending
