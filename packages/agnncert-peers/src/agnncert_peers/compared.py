"""``compare``: many defences on the same data, split, base model and kind of attack.

``Threat`` defines what the size of an attack counts, ``runner`` trains and certifies, ``controls`` are what every
defence should beat, and ``Comparison`` shows the rows as a table and a figure.
"""

import json
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.load import load_dataset
from agnncert.defence import Defence, as_defence
from agnncert.engine.arguments import require_kinds
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import Task
from agnncert.graphs.task import infer_task
from agnncert.models.build import count_classes
from agnncert.progress import OnProgress, Progress
from agnncert.proving.measures import MEASURES
from agnncert.report.drawing import Curve, Panel, draw_panels
from agnncert.report.tables import FORMATS, laid_out
from agnncert.stacked.settings import StackedSettings
from agnncert.storage import write_atomic
from agnncert.study import GRAPH_FREE, MAJORITY, UNDEFENDED, BaseModel, Study, fit_model, part_rows
from agnncert_peers.ceilings import Changes, ceiling, few_type_counts
from agnncert_peers.control_rows import ABOUT, bag_row, histogram_row, no_edges_row, size_row
from agnncert_peers.defences import defence_named
from agnncert_peers.exact import exact_robustness
from agnncert_peers.runner import Outcome, Row, key_of, make_study, row_of, run, vote_in_words
from agnncert_peers.size_control import SIZE_ONLY, SizedGraphs
from agnncert_peers.threat import BAG_OF_NODES, CROSS_FITTED, Threat

Voted: TypeAlias = Any  # a defence, or a pair of a division and its voting rule

log = logging.getLogger(__name__)

TIE = 1e-12  # shares that differ by no more are equal
SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150)
FEW_SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)  # for edges and features, where every mix is tried
FIGURES = (".svg", ".pdf", ".png")
# Line and remark in a figure, by guarantee: dashed if it is probabilistic, dotted if there is none.
_WORDS = {
    "accuracy": "% of labels that are correct and certified",
    "balanced": "certified balanced accuracy (mean recall of the classes) in %",
    "recall": "certified recall of class {} in %",
    "precision": "certified precision of class {} in %",
}
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}


@dataclass(frozen=True)
class Entry:
    """One row to run."""

    name: str
    study: Study
    control: bool = False


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
            undefined), ``set_size`` (mean number of labels that an attack of each size could give a target),
            ``control`` (whether it is a control), ``vote`` (the
            voting rule, if it is not the default), ``design_size`` (for which it was chosen), ``decides`` (what decides
            in a chosen rule), ``envelope`` (whether each size has another rule), ``forward_passes`` (in the definition
            of the method), ``seconds_training``, ``seconds_certification``, ``seconds_forward`` (one forward pass of
            the same model) and ``cost_in_forwards`` (the time of certifying, in forward passes).
        measure: What tables and figures show: "accuracy", "balanced", "recall" or "precision".
        label: The class whose recall or precision that is.
        ceiling: Graphs: what any classifier of the types of nodes can certify on these targets at each size, at most
            (``agnncert_peers.ceilings``); None if it is not computed.
        exact: What the undefended model withstands, found by trying everything, in words; empty if nobody asked.
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

    def by(self, measure: str, label: int | None = None) -> "Comparison":
        """The same comparison, shown by another measure: "accuracy", "balanced", or "recall" or "precision" of a class.

        Example: ``print(comparison.by("recall", label=1))``.
        """
        if measure not in _WORDS:
            raise SettingsError(f'measure="{measure}": {did_you_mean(str(measure), _WORDS)}')
        classes = len(self.rows[0]["recall"][0])
        if measure in MEASURES and label is not None:
            raise SettingsError(f'measure="{measure}" is about all classes: leave label={label} out.')
        if measure not in MEASURES and label not in range(classes):
            raise SettingsError(f'measure="{measure}" is about one class: pass label= from 0 to {classes - 1}.')
        return replace(self, measure=measure, label=label)

    def curve(self, row: Row) -> list[float]:
        """The shown measure of a row at each size; 0 where it is undefined."""
        if self.measure in MEASURES:
            return list(row["certified" if self.measure == "accuracy" else "balanced"])
        return [shares[self.label] or 0.0 for shares in row[self.measure]]

    def __str__(self) -> str:
        return "\n".join([self.title, "", self.table(), "", *self.remarks()]).rstrip()

    @property
    def title(self) -> str:
        """What is compared."""
        what = _WORDS[self.measure].format(self.label)
        return f"{self.data}, {self.targets:,} {self.task}s: {what} against so many {self.threat.unit}"

    @property
    def majority(self) -> list[float] | None:
        """The shown measure of the majority class at each size; ``None`` without this control."""
        return next((self.curve(row) for row in self.rows if row["settings"] == MAJORITY), None)

    def remarks(self) -> list[str]:
        """For each defence: where it is below the majority class and above every control; what had not converged."""
        early = [
            f"{row['defence']}: training had not converged, its last epoch was the best. Try more epochs."
            for row in self.rows
            if not row.get("converged", True)
        ]
        judged = [f"{row['defence']}: {self._judged(row)}." for row in self.rows if not row["control"]]
        tried = [f"{self.exact}."] if self.exact else []
        return [*tried, *judged, *self._sets(), *self._possible(), *early]

    def _possible(self) -> list[str]:
        """A sentence about the ceiling, if there is one."""
        if self.ceiling is None or self.measure != "accuracy":
            return []
        most = ", ".join(f"{100 * share:.1f} at {size}" for share, size in zip(self.ceiling, self.sizes, strict=True))
        what = "any classifier that reads how many nodes of each type a graph has, and no edges"
        return [f"At most this % is possible for {what}: {most}."]

    def _sets(self) -> list[str]:
        """A sentence about the labels that an attack could give a target, if rows say how many they are."""
        asked = [row for row in self.rows if not row["control"] and "set_size" in row]
        places = sorted({round(part * (len(self.sizes) - 1) / 3) for part in range(4)})
        sizes = " / ".join(str(self.sizes[place]) for place in places)
        means = [f"{row['defence']} " + " / ".join(f"{row['set_size'][p]:.2f}" for p in places) for row in asked]
        return [f"Possible labels of a target, on average, at size {sizes}: {'; '.join(means)}."] if means else []

    def _notes(self) -> str:
        """The remarks, and what can change each control, as a Markdown list."""
        controls = [f"{row['defence']}: {ABOUT[row['defence']][self.task]}." for row in self.rows if row["control"]]
        return "\n".join(f"- {sentence}" for sentence in [*self.remarks(), *controls])

    def _judged(self, row: Row) -> str:
        controls = [other for other in self.rows if other["control"] and not other["guarantee"].startswith("none")]
        if self.majority is None or not controls:
            return "no controls were run"
        below = [size for size, is_below in zip(self.sizes, self._below(row), strict=True) if is_below]
        first = f"below the majority class from size {below[0]} on" if below else "nowhere below the majority class"
        curves = np.array([self.curve(other) for other in controls])
        best, gains = curves.argmax(axis=0), self.curve(row) - curves.max(axis=0)
        above = [str(size) for size, gain in zip(self.sizes, gains, strict=True) if gain > TIE]
        if not above:
            return f"{first}; above all controls at no size"
        place = int(np.argmax(gains))
        most = (
            f"most at {self.sizes[place]}, by {100 * gains[place]:.1f} points over {controls[best[place]]['defence']}"
        )
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
            cells = [[f"{v:.6g}" for v in (*self.curve(row), *(row[key] for key in costs))] for row in self.rows]
        else:
            costs = ["passes", "seconds", "time / forward"]
            sizes = [str(size) for size in self.sizes]
            numbers = ("forward_passes", ","), ("seconds_certification", ".2f"), ("cost_in_forwards", ",.1f")
            cells = [[*self._shares(row), *(f"{row[key]:{form}}" for key, form in numbers)] for row in self.rows]
        # A column for votes only if there are any.
        more = ["vote"] if any(row["vote"] for row in self.rows) else []
        rows = [
            [row["defence"], row["guarantee"], *(row[key] for key in more), *own]
            for row, own in zip(self.rows, cells, strict=True)
        ]
        return laid_out(format, ["defence", "guarantee", *more, *sizes, *costs], rows)

    def _shares(self, row: Row) -> list[str]:
        """Certified shares in percent, with a star where a defence is below the majority class."""
        stars = ["*" if below and not row["control"] else "" for below in self._below(row)]
        return [f"{100 * share:.1f}{star}" for share, star in zip(self.curve(row), stars, strict=True)]

    def _below(self, row: Row) -> list[bool]:
        """Whether a row is below the majority class, at each size."""
        majority = self.majority or [0.0] * len(self.sizes)
        return [share < constant - TIE for share, constant in zip(self.curve(row), majority, strict=True)]

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
            if row["envelope"]:
                remark = " (envelope)"
            label, certified = row["defence"] + remark, self.curve(row)
            curves.append(Curve(label, looks[id(row)], self.sizes, certified, dash=dash, envelope=row["envelope"]))
        panel = Panel(f"{self.data}, {self.targets:,} {self.task}s", curves)
        return draw_panels([panel], path, f"size of the attack ({self.threat.unit})", columns=1, width=4.6)

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


def compare(
    data: Any,
    defences: Mapping[str, Voted] | Sequence[Voted] | None = None,
    *,
    against: str = "edges",
    sizes: Iterable[int] | None = None,
    voting_rule: VotingRule | None = None,
    size: int | Sequence[int] | None = None,
    measure: str | None = None,
    edges_per_injected: float = math.inf,
    own_features: bool = False,
    model: BaseModel = "gcn",
    model_args: Mapping[str, Any] | None = None,
    fit: Mapping[str, Any] | None = None,
    references: bool = True,
    exact: int = 0,
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
            cover the attack, with their usual settings, when not given. ``StackedVotes(size=…)`` trains its own
            MLPs. A division may come with its vote, as a pair:
            ``(ac.PerNeighbour(), ac.VotingRule(prior=5))``.
        against: ``"edges"``, ``"injection"``, ``"features"`` or ``"edges and features"``.
        sizes: Attack sizes; what a size counts is in ``Comparison.threat.unit``.
        rule: What empty groups cast, and votes that are there from the start, for all divisions.
        size: Have ``choose_voting_rule`` choose these on validation, for ``EdgeCentric`` and ``NodeCentric``.
            Of several sizes each has a row. A size counts here as in ``radius`` (where features stay,
            ``structure_radius``).
        measure: By what weights are kept and votes chosen, and what is shown: "accuracy", or "balanced": every class
            counts the same. Defaults to "balanced" if a class is rare in the training part (see ``fit``).
            ``comparison.by`` shows the rest.
        edges_per_injected: Edges per injected node; ``math.inf`` for any number.
        own_features: Node task: whether the target's own features may be among the changed ones.
        model: Name of the base model; or a function without arguments that makes one of your own, untrained; or a
            trained module, which all defences then use as it is.
        model_args: Settings of a base model that is named, on top of the recipe for the data.
        fit: Settings of training (``ac.fit``), on top of the recipe for the data.
        references: Whether to add controls that every defence should beat: the undefended model; an MLP that reads no
            edges; the majority class, which no attack can change. Nodes: five cross-fitted MLPs together, and the best
            prediction of a defended model without edges. Graphs: a class by number of nodes, or of edges, and a vote of
            all nodes by their features, which are chosen for the design size, or without one for each size (an
            envelope); a classifier of sums of node features.
        exact: Node task, against edges: for so many targets, drawn at random, try every edge that could be added or
            deleted on the undefended model, about which nothing is proved (``exact_robustness``). Takes seconds for
            each on graphs of a few thousand nodes. The remarks state the outcome.
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
    require_kinds(data=data, defence=defences)
    threat = Threat(against, edges_per_injected, own_features)
    data = load_dataset(data, root=root, seed=seed) if isinstance(data, str) else data
    task, name = infer_task(data), getattr(data, "name", None) or "data"
    at, designs = _checked_sizes(sizes, threat), _checked_designs(size)
    if measure is not None and measure not in MEASURES:
        raise SettingsError(f'measure="{measure}": {did_you_mean(str(measure), MEASURES)}')
    if exact and (task == "graph" or against != "edges" or not references):
        raise SettingsError(f'exact={exact} is for target nodes, against="edges" and with references: leave it out.')
    stated = {} if measure is None else {"measure": measure}
    study = make_study(data, targets, model, model_args, {**stated, **(fit or {})}, seed=seed, samples=sampling or {})
    study = replace(study, measure=measure or ("accuracy" if study.rare is None else "balanced"))
    chosen = _named(_usual_defences(task, threat) if defences is None else defences)
    if voting_rule is not None:
        chosen = {
            name: (
                defence,
                voting_rule if own is None and (defences is not None or _accepts(defence, voting_rule, task)) else own,
            )
            for name, (defence, own) in chosen.items()
        }
    entries = _entries(study, chosen, threat, designs)  # raises errors before any work
    if references:
        folds = [CROSS_FITTED] if task == "node" and _enough_to_fold(study) else []
        known = [UNDEFENDED, GRAPH_FREE, *folds, MAJORITY]
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
        size = entry.study.design_size
        rows.append(row_of(entry.study, outcome, threat, at, entry.name, design_size=size, control=entry.control))
        done = len(rows)
    if references:
        if steps[-1] == BAG_OF_NODES:
            report_progress(BAG_OF_NODES)
        rows[len(known) : len(known)] = _controls(study, outcomes, threat, at, designs or at, kept)
        done = len(steps)
    report_progress("")
    most = _ceiling(study, threat, at) if references and task == "graph" else None
    told = _tried(replace(study, defence=UNDEFENDED), exact, kept) if exact else ""
    return Comparison(name, task, threat, at, len(study.targets), tuple(rows), study.measure, None, most, told)


def _tried(study: Study, number: int, folder: Path | None) -> str:
    """How many of some random targets keep a correct label whichever edge is added or deleted, in words."""
    model = study.new_model()
    fit_model(study, model, None)
    rows = np.random.default_rng(study.seed).permutation(study.targets)[:number]
    kept = None if folder is None else folder / f"{key_of(study)}-exact.checkpoint"
    return str(exact_robustness(model.eval(), study.data, np.sort(rows), checkpoint=kept))


def _ceiling(study: Study, threat: Threat, sizes: tuple[int, ...]) -> tuple[float, ...] | None:
    """The ceiling of classifiers of node types; None if features are no types, because hardly any two are equal."""
    counts = few_type_counts([study.data[int(row)] for row in study.targets])
    if counts is None:
        return None
    changes: dict[str, Changes] = {"edges": "edges", "injection": "injected"}
    return tuple(ceiling(counts, study.truth, sizes, changes.get(threat.kind, "features")))


def _enough_to_fold(study: Study) -> bool:
    rows = part_rows(study.ready, "train")
    return rows is not None and len(rows) >= 2 * StackedSettings.folds and part_rows(study.ready, "val") is not None


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
    graphs = SizedGraphs.of(study.data, study.measure)
    by_size = [size_row(study, graphs, counts, threat, sizes, designs) for counts in SIZE_ONLY]
    return [*by_size, bag_row(study, threat, sizes, designs, folder), histogram_row(study, threat, sizes)]


def _checked_sizes(sizes: Iterable[int] | None, threat: Threat) -> tuple[int, ...]:
    if sizes is None:
        return FEW_SIZES if threat.kind == "edges and features" else SIZES
    ascending = tuple(sorted({int(size) for size in sizes}))
    if not ascending or ascending[0] < 0:
        raise SettingsError(f"sizes={sizes!r}: expected whole numbers from 0 on.")
    return ascending


def _entries(
    study: Study, chosen: Mapping[str, tuple[Any, VotingRule | None]], threat: Threat, designs: Sequence[int]
) -> list[Entry]:
    """What to run for each defence: once, or once for each design size.

    Raises:
        SettingsError: A voting rule does not fit its division, or design sizes are given and no defence can use them.
    """
    entries: list[Entry] = []
    num_classes = count_classes(study.data) if isinstance(study.model, str) else None
    for name, (defence, voting_rule) in chosen.items():
        is_reference = isinstance(defence, str)
        if voting_rule is not None and not is_reference:
            defence.with_voting_rule(voting_rule).require_task(study.task, num_classes)
        if voting_rule is not None or is_reference or not defence.chooses_voting_rule:
            entries.append(Entry(name, replace(study, defence=defence, voting_rule=voting_rule)))
            continue
        plain = replace(study, defence=defence)
        for size in designs:
            designed = replace(plain, design_size=size, against=threat.against)
            entries.append(Entry(f"{name}, for size {size}", designed))
        if not designs:
            entries.append(Entry(name, plain))
    if designs and all(entry.study.design_size is None for entry in entries):
        raise SettingsError(
            f"size={list(designs)}: votes are chosen for EdgeCentric and NodeCentric without gated features, "
            "and none of these is among the defences that come without a vote."
        )
    if designs and study.task == "node" and study.fit_args.get("protocol", "transductive") == "transductive":
        log.warning(
            "models are trained with the validation nodes in the graph, so that priors become too large: use "
            'fit={"protocol": "held-out"}.'
        )
    return entries


def _accepts(defence: Any, voting_rule: VotingRule, task: Task) -> bool:
    """Tells whether a defence can be given a voting rule."""
    try:
        defence.with_voting_rule(voting_rule).require_task(task)
    except SettingsError:
        return False
    return True


def _usual_defences(task: Task, threat: Threat) -> list[Defence]:
    """The defences that cover an attack, with their default settings."""
    ours = ("gated",) if threat.own_features and task == "node" else ("edge", "node")
    others = {
        "edges": ("gnncert-e", "sparse-rs"), "injection": ("bi-rs",) if task == "node" else (),
        "features": ("gnncert-n",), "edges and features": ("gnncert-en",),
    }  # fmt: skip
    return [defence_named(name, task, {}) for name in (*ours, *others[threat.kind])]


def _checked_designs(sizes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Target sizes, ascending; raises SettingsError if they are not whole numbers from 0 on."""
    given = [] if sizes is None else [sizes] if isinstance(sizes, int) else list(sizes)
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in given) or sizes == []:
        raise SettingsError(f"size={sizes!r}: expected one or several whole numbers from 0 on.")
    return tuple(sorted(set(given)))


def _named(defences: Mapping[str, Voted] | Sequence[Voted]) -> dict[str, tuple[Any, VotingRule | None]]:
    """Each defence by name, with its voting rule if it has one; raises SettingsError for anything else."""
    given = defences if isinstance(defences, Mapping) else {_full_name(defence): defence for defence in defences}
    listed = {name: defence if isinstance(defence, tuple) else (defence, None) for name, defence in given.items()}
    for name, (defence, *votes) in listed.items():
        if len(votes) != 1 or not isinstance(votes[0], VotingRule | None):
            raise SettingsError(f'"{name}": expected a defence, or a pair of a division and its VotingRule.')
        known = (GRAPH_FREE, UNDEFENDED, MAJORITY)
        if not hasattr(defence, "as_defence") and defence not in known:
            raise SettingsError(
                f'"{name}" is not a defence: expected a division such as NodeCentric(300), or a smoothing defence '
                "such as ac.baselines.BiRS()."
            )
    return {
        name: (as_defence(defence) if hasattr(defence, "as_defence") else defence, voting_rule)
        for name, (defence, voting_rule) in listed.items()
    }


def _full_name(defence: Voted) -> str:
    if not isinstance(defence, tuple):
        return _name(defence)
    votes = [vote_in_words(voting_rule) for voting_rule in defence[1:] if isinstance(voting_rule, VotingRule)]
    return ", ".join([_name(defence[0]), *votes]) if defence else "()"


def _name(defence: Any) -> str:
    """The name of a defence in a table: its printed form without default settings.

    Example:
        >>> _name(defence_named("bi-rs", "node", {"p_edge": 0.7})), _name(defence_named("node", "node", {}))
        ('bi-rs(p_edge=0.7, p_node=0.9)', 'node-centric(T=300)')
    """
    return defence if isinstance(defence, str) else as_defence(defence).short_name()
