"""``compare``: many defences on the same data, split, base model and kind of attack.

``Threat`` defines what the size of an attack counts, ``entries`` lists what is run, ``runner`` trains and certifies,
``control_rows`` are what every defence should beat, and ``Comparison`` shows the rows as a table and a figure.
"""

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.load import load_dataset
from agnncert.datasets.taught import can_be_taught
from agnncert.defence import GraphData, TargetChoice
from agnncert.engine.arguments import require_kinds
from agnncert.errors import SettingsError, did_you_mean, suggests_arguments
from agnncert.graphs.graph import Task
from agnncert.graphs.task import infer_task
from agnncert.progress import OnProgress, Progress
from agnncert.proving.measures import MEASURES
from agnncert.stacked.settings import StackedSettings
from agnncert.study import BaseModel, Study, fit_model, part_rows
from agnncert.undefended import GRAPH_FREE, MAJORITY, REFERENCES, UNDEFENDED, Reference
from agnncert_peers.bar import Follower, following
from agnncert_peers.ceilings import Changes, ceiling, few_type_counts
from agnncert_peers.common_point import at_one_point
from agnncert_peers.comparison import Comparison, join_seeds
from agnncert_peers.control_rows import (
    bag_row,
    histogram_row,
    no_edges_row,
    score_rows,
    size_row,
    structure_row,
    tree_rows,
)
from agnncert_peers.entries import Choice, Entry, Listed, list_defences, make_entries, usual_defences
from agnncert_peers.exact import exact_robustness
from agnncert_peers.runner import Outcome, Row, key_of, make_study, row_of, run
from agnncert_peers.size_control import SIZE_ONLY, SizedGraphs
from agnncert_peers.threat import CROSS_FITTED, TAUGHT_BY, Threat

log = logging.getLogger(__name__)

SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150)
FURTHER_CONTROLS = "controls beside them"
FEW_SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)  # for edges and features, where every mix is tried


@suggests_arguments
def compare(  # noqa: PLR0913 - every setting is a keyword
    data: str | GraphData,
    defences: Mapping[str, Choice] | Sequence[Choice] | None = None,
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
    scores: Mapping[str, Any] | None = None,
    false_positive_rate: float | None = None,
    exact: int = 0,
    targets: TargetChoice = None,
    sampling: Mapping[str, Any] | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    root: str | Path | None = None,
    folder: str | Path | None = None,
    progress: OnProgress | None = None,
) -> Comparison:
    """Trains and certifies with every defence and compares them.

    Every defence gets a model of the same kind, trained from the same initial weights on the same split: on its
    subgraphs, or under its noise. Where a defence proves nothing about the attack, tables have a dash.

    In a terminal and in a notebook a bar shows how far it is.

    Args:
        data: Name of a dataset, a ``Data`` with masks, or a ``GraphSet``.
        defences: By name, or in a list. Divisions (``EdgeCentric``, ``NodeCentric``, ``ac.baselines.GNNCertE``, or your
            own, which inherits from ``ac.Division``), smoothing defences (``ac.baselines.BiRS``, ``SparseRS``, ``RS``),
            ``StackedVotes(size=…)``, which trains its own MLPs, and any ``agnncert.defence.Defence`` of your own. A
            tuple adds a voting rule, a model, or both: ``(ac.PerNeighbour(), ac.VotingRule(prior=5))``,
            ``(division, model)``, where the model is given as in ``model``. Defaults to those that cover the attack,
            with their usual settings. A division of your own is trained on some of its subgraphs in each step, one
            forward pass for each (see ``fit``, ``groups_per_step``), and scored and certified with one forward pass for
            each subgraph.
        against: ``"edges"``, ``"injection"``, ``"features"`` or ``"edges and features"``.
        sizes: Attack sizes; what a size counts is in ``Comparison.threat.unit``.
        voting_rule: How empty groups vote, and votes that are there from the start, for all divisions.
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
            edges; the majority class, which no attack can change. Nodes: five cross-fitted MLPs together, the best
            prediction of a defended model without edges, and boosted trees, on own features and with aggregates of the
            neighbourhood, and against features trees over the structure. Graphs: a class by number of nodes, or of
            edges, and a vote of all nodes by their features, which are chosen for the design size, or without one for
            each size (an envelope); a classifier of sums of node features, and trees over the structure.
        scores: Controls of your own, by name: a score for each target, as for ``ac.compare_controls``; two classes.
        false_positive_rate: Two classes: all rows are also shown at this rate of false positives, without an attack.
            Defaults to the rate of the first defence.
        exact: Node task, against edges: for this many targets, drawn at random, try every edge that could be added or
            deleted on the undefended model, about which nothing is proved (``exact_robustness``). It takes seconds
            for each on graphs of a few thousand nodes. The remarks state the outcome.
        targets: Mask or row numbers. Defaults to the test part.
        sampling: Settings of all smoothing defences in place of their own, such as ``{"samples": 1000}``.
        seed: Seed of split (of a named dataset), weights, training and samples.
        seeds: Several seeds instead of ``seed``: all of it is done with each, and tables and figures show means and
            standard deviations. Data that is given has one split, so only weights, training and samples differ.
        root: Folder of the datasets.
        folder: Where certificates are kept. An interrupted call that is repeated continues, and another kind of attack
            on the same models, or a further seed, needs no computation for what is there. Outcomes are known by the
            data, the settings, the seed and the printed form of the defence.
        progress: Called before every defence, with its name as detail, and at the end. Defaults to a bar, if somebody
            can see it.

    Raises:
        SettingsError: A name or number is not valid, or a defence does not fit the task.
    """
    require_kinds(data=data, defence=defences)
    threat = Threat(against, edges_per_injected, own_features)
    if measure is not None and measure not in MEASURES:
        raise SettingsError(f'measure="{measure}": {did_you_mean(str(measure), MEASURES)}')
    wanted = _Wanted(
        threat=threat,
        sizes=_checked_sizes(sizes, threat),
        designs=_checked_designs(size),
        defences=defences,
        voting_rule=voting_rule,
        measure=measure,
        model=model,
        model_args=model_args or {},
        fit_args=fit or {},
        references=references,
        scores=scores or {},
        false_positive_rate=_checked_rate(false_positive_rate),
        exact=exact,
        targets=targets,
        sampling=sampling or {},
    )
    kept = None if folder is None else Path(folder)
    plans = []
    for each in _checked_seeds(seed, seeds):
        loaded = load_dataset(data, root=root, seed=each) if isinstance(data, str) else data
        plans.append(_Plan.of(loaded, wanted, each))  # raises errors before any work
    with following(progress) as follower:
        steps = _Steps(follower, sum(plan.num_steps for plan in plans))
        runs = [plan.run(steps, kept) for plan in plans]
        steps.finish()
    return join_seeds(runs)


@dataclass(frozen=True)
class _Wanted:
    """What a comparison was asked for; the arguments of ``compare`` that are the same for all seeds."""

    threat: Threat
    sizes: tuple[int, ...]
    designs: tuple[int, ...]
    defences: Mapping[str, Choice] | Sequence[Choice] | None
    voting_rule: VotingRule | None
    measure: str | None
    model: BaseModel
    model_args: Mapping[str, Any]
    fit_args: Mapping[str, Any]
    references: bool
    scores: Mapping[str, Any]
    false_positive_rate: float | None
    exact: int
    targets: TargetChoice
    sampling: Mapping[str, Any]

    def study(self, data: Any, seed: int, model: BaseModel) -> Study:
        """Returns the data with a model, without a defence."""
        stated = {} if self.measure is None else {"measure": self.measure}
        study = make_study(
            data, self.targets, model, self.model_args, {**stated, **self.fit_args}, seed=seed, samples=self.sampling
        )
        usual = "accuracy" if study.rare is None else "balanced"
        return replace(study, measure=self.measure or usual)

    def listed(self, task: Task) -> dict[str, Listed]:
        """Returns the defences by name; those that have no voting rule of their own get the one for all."""
        if self.defences is None:
            listed = list_defences(usual_defences(task, self.threat))
        else:
            listed = list_defences(self.defences)
        if self.voting_rule is None:
            return listed
        is_asked_for = self.defences is not None  # a defence that was named and cannot have it is refused later
        for name, choice in listed.items():
            if choice.voting_rule is None and (is_asked_for or choice.takes(self.voting_rule, task)):
                listed[name] = replace(choice, voting_rule=self.voting_rule)
        return listed


class _Steps:
    """Says before each step how far the comparison is, and how long the rest will take at this speed."""

    def __init__(self, follower: Follower, total: int) -> None:
        self.follower = follower
        self._total = total
        self._done = 0
        self._begin = time.perf_counter()

    def begin(self, name: str) -> None:
        """Is called before a step."""
        log.info("%d of %d: %s", self._done + 1, self._total, name)
        self._report(name)

    def end(self) -> None:
        """Is called after a step."""
        self._done += 1

    def finish(self) -> None:
        """Is called after the last step."""
        self._report("")

    def _report(self, name: str) -> None:
        left = 0.0
        if self._done:
            left = (time.perf_counter() - self._begin) / self._done * (self._total - self._done)
        self.follower(Progress("comparing", self._done, self._total, left, name))


@dataclass(frozen=True)
class _Plan:
    """What is run with one seed.

    Attributes:
        wanted: What the comparison was asked for.
        study: The data with the model of the comparison.
        controls: Controls that are run like defences.
        entries: The defences.
    """

    wanted: _Wanted
    study: Study
    controls: list[Entry]
    entries: list[Entry]

    @classmethod
    def of(cls, data: Any, wanted: _Wanted, seed: int) -> "_Plan":
        """Checks all settings.

        Raises:
            SettingsError: Something makes no sense with these data.
        """
        task = infer_task(data)
        if wanted.exact and (task == "graph" or wanted.threat.kind != "edges" or not wanted.references):
            raise SettingsError(
                f'exact={wanted.exact} is for target nodes, against="edges" and with references: leave it out.'
            )
        study = wanted.study(data, seed, wanted.model)

        def with_model(model: BaseModel) -> Study:
            return wanted.study(data, seed, model)

        entries = make_entries(study, wanted.listed(task), wanted.threat, wanted.designs, with_model)
        controls = _usual_controls(study) if wanted.references else []
        return cls(wanted, study, controls, entries)

    @property
    def num_steps(self) -> int:
        """Number of steps that progress counts."""
        return len(self.controls) + len(self.entries) + self.wanted.references

    def run(self, steps: _Steps, folder: Path | None) -> Comparison:
        """Trains and certifies; ``folder`` keeps outcomes."""
        wanted = self.wanted
        study = self.study
        outcomes: dict[str, Outcome] = {}
        rows = []
        for entry in [*self.controls, *self.entries]:
            steps.begin(entry.name)
            outcome = run(entry.study, folder, steps.follower.within)
            steps.end()
            if not entry.control:
                outcomes[entry.name] = outcome
            rows.append(self._row(entry, outcome))
        exact, most = "", None
        if wanted.references:
            steps.begin(FURTHER_CONTROLS)
            position = len(self.controls)
            rows[position:position] = self._further_controls(outcomes, folder)
            if wanted.exact:
                exact = _tried(replace(study, defence=REFERENCES[UNDEFENDED]), wanted.exact, folder)
            if study.task == "graph":
                most = _ceiling(study, wanted.threat, wanted.sizes)
            steps.end()
        rows += score_rows(study, wanted.scores, wanted.threat, wanted.sizes)
        point, rows = at_one_point(study.truth, rows, wanted.false_positive_rate)
        return Comparison(
            data=getattr(study.data, "name", None) or "data",
            task=study.task,
            threat=wanted.threat,
            sizes=wanted.sizes,
            targets=len(study.targets),
            rows=tuple(rows),
            measure=study.measure,
            ceiling=most,
            exact=exact,
            seeds=(study.seed,),
            point=point,
        )

    def _row(self, entry: Entry, outcome: Outcome) -> Row:
        return row_of(
            entry.study,
            outcome,
            self.wanted.threat,
            self.wanted.sizes,
            entry.name,
            design_size=entry.study.design_size,
            control=entry.control,
        )

    def _further_controls(self, outcomes: Mapping[str, Outcome], folder: Path | None) -> list[Row]:
        """Returns the rows of the controls that depend on the task."""
        study = self.study
        threat = self.wanted.threat
        sizes = self.wanted.sizes
        if study.task == "node":
            found = [no_edges_row(study, outcomes, threat, sizes)]
            if threat.kind == "features":  # otherwise nothing is proved about structure
                found.append(structure_row(study, threat, sizes, folder))
            return [*(row for row in found if row is not None), *tree_rows(study, threat, sizes)]
        designs = self.wanted.designs or sizes
        graphs = SizedGraphs.of(study.data, study.measure)
        by_size = [size_row(study, graphs, counts, threat, sizes, designs) for counts in SIZE_ONLY]
        of_nodes = [bag_row(study, threat, sizes, designs, folder), histogram_row(study, threat, sizes)]
        structure = structure_row(study, threat, sizes, folder)
        return [*by_size, *of_nodes, *([] if structure is None else [structure])]


def _usual_controls(study: Study) -> list[Entry]:
    """Returns the controls that are run like defences."""
    references = [REFERENCES[UNDEFENDED], REFERENCES[GRAPH_FREE]]
    if study.task == "node" and _enough_to_fold(study):
        references.append(Reference(CROSS_FITTED, base="mlp", reads_edges=False))
        if can_be_taught(study.data, study.targets):
            references += [Reference(name, base="mlp", reads_edges=False) for name in TAUGHT_BY]
    references.append(REFERENCES[MAJORITY])
    return [Entry(each.name, replace(study, defence=each), control=True) for each in references]


def _tried(study: Study, number: int, folder: Path | None) -> str:
    """Says how many of some random targets keep a correct label whichever edge is added or deleted."""
    model = study.new_model()
    fit_model(study, model, None)
    rows = np.random.default_rng(study.seed).permutation(study.targets)[:number]
    kept = None if folder is None else folder / f"{key_of(study)}-exact.checkpoint"
    return str(exact_robustness(model.eval(), study.data, np.sort(rows), checkpoint=kept))


def _ceiling(study: Study, threat: Threat, sizes: tuple[int, ...]) -> tuple[float, ...] | None:
    """Returns the ceiling of classifiers of node types; None if features are no types, as hardly any two are equal."""
    counts = few_type_counts([study.data[int(row)] for row in study.targets])
    if counts is None:
        return None
    changes: dict[str, Changes] = {"edges": "edges", "injection": "injected"}
    return tuple(ceiling(counts, study.truth, sizes, changes.get(threat.kind, "features")))


def _enough_to_fold(study: Study) -> bool:
    rows = part_rows(study.ready, "train")
    if rows is None or part_rows(study.ready, "val") is None:
        return False
    return len(rows) >= 2 * StackedSettings.folds


def _checked_sizes(sizes: Iterable[int] | None, threat: Threat) -> tuple[int, ...]:
    if sizes is None:
        return FEW_SIZES if threat.kind == "edges and features" else SIZES
    ascending = tuple(sorted({int(size) for size in sizes}))
    if not ascending or ascending[0] < 0:
        raise SettingsError(f"sizes={sizes!r}: expected whole numbers from 0 on.")
    return ascending


def _checked_rate(rate: float | None) -> float | None:
    if rate is None or (isinstance(rate, int | float) and 0 <= rate <= 1):
        return rate
    raise SettingsError(f"false_positive_rate={rate!r:.60}: expected a number from 0 to 1.")


def _checked_designs(sizes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Returns target sizes, ascending; raises SettingsError if they are not whole numbers from 0 on."""
    if sizes is None:
        return ()
    listed = [sizes] if isinstance(sizes, int) else list(sizes)
    if not listed or not all(_is_whole(size) for size in listed):
        raise SettingsError(f"size={sizes!r}: expected one or several whole numbers from 0 on.")
    return tuple(sorted(set(listed)))


def _checked_seeds(seed: int, seeds: Sequence[int] | None) -> tuple[int, ...]:
    """Returns the seeds in their order; raises SettingsError if one comes twice or is no whole number from 0 on."""
    if seeds is None:
        return (seed,)
    listed = [int(each) if isinstance(each, np.integer) else each for each in seeds]
    if not listed or not all(_is_whole(each) for each in listed):
        raise SettingsError(f"seeds={seeds!r}: expected one or several whole numbers from 0 on, such as [0, 1, 2].")
    if len(set(listed)) != len(listed):
        raise SettingsError(f"seeds={seeds!r}: the same seed twice gives the same numbers twice. Leave one out.")
    return tuple(listed)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
