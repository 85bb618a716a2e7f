"""``compare``: many defences on the same data, split, base model and kind of attack.

``Threat`` says what the size of an attack counts. Each defence is one ``Study`` for the common runner (``run``), and
``Comparison`` turns the outcomes into a table and a figure.
"""

import json
import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.baselines import defence_named
from agnncert.baselines.smoothing import Smoothing
from agnncert.datasets import load_dataset
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import infer_task
from agnncert.progress import OnProgress, Progress
from agnncert.proof.ballots import FloatArray
from agnncert.proof.budget import Budget
from agnncert.proof.certificate import Certificate
from agnncert.report.drawing import Curve, Panel, draw_panels
from agnncert.report.tables import FORMATS, laid_out
from agnncert.storage import write_atomic
from agnncert.studies.run import BaseModel, Defence, Outcome, Study, make_study, run
from agnncert.studies.settings import GRAPH_FREE, MAJORITY, UNDEFENDED

log = logging.getLogger(__name__)

Row = dict[str, Any]
KINDS = ("edges", "injection", "features", "edges and features")
SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150)
FEW_SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)  # for edges and features, where every split between the two is tried
FIGURES = (".svg", ".pdf", ".png")
# Line and remark in a figure, by guarantee: dashed if it is probabilistic, dotted if there is none.
_LINES = {"deterministic": ("-", ""), "probabilistic": ("--", " (random)"), "none": (":", " (no proof)")}


@dataclass(frozen=True)
class Threat:
    """A kind of attack. Its size is a number of changes, spent in whichever way is worst.

    Attributes:
        kind: ``"edges"``: edges added or deleted. ``"injection"``: nodes injected, with any features.
            ``"features"``: nodes given other features. ``"edges and features"``: any mix of the two.
        edges_per_injected: Edges that each injected node may bring; ``math.inf`` for any number.
        own_features: Node task: whether the target may be among the nodes with other features.
    """

    kind: str = "edges"
    edges_per_injected: float = math.inf
    own_features: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f'no kind of attack is called "{self.kind}": {did_you_mean(self.kind, KINDS)}')
        Budget(edges_per_injected=self.edges_per_injected)  # says what is wrong with the number

    @property
    def unit(self) -> str:
        """What a size counts.

        Example:
            >>> Threat("injection", 5).unit
            'injected nodes with up to 5 edges each'
        """
        if self.kind == "injection":
            edges = "any number of" if math.isinf(self.edges_per_injected) else f"up to {self.edges_per_injected:g}"
            return f"injected nodes with {edges} edges each"
        nodes = "nodes with other features" + (", the target's own included" if self.own_features else "")
        return {"edges": "edges added or deleted", "features": nodes}.get(self.kind, f"edges or {nodes}")

    def budgets(self, size: int) -> Iterator[Budget]:
        """Every way to spend ``size`` changes; an attack is withstood if all of them are.

        Example:
            >>> list(Threat("edges").budgets(1))
            [Budget(add_edges=1), Budget(delete_edges=1)]
        """
        if self.kind == "injection":
            yield Budget(inject_nodes=size, edges_per_injected=self.edges_per_injected)
            return
        most_nodes = 0 if self.kind == "edges" else size
        for nodes in range(size if self.kind == "features" else 0, most_nodes + 1):
            for deleted in range(size - nodes + 1):
                spent = Budget(add_edges=size - nodes - deleted, delete_edges=deleted, change_features=nodes)
                yield spent
                if self.own_features and nodes:
                    yield spent.but(change_features=nodes - 1, target_features=True)

    def withstood(self, certificate: Certificate, sizes: tuple[int, ...]) -> FloatArray:
        """The largest of the sizes that each target withstands, -1 for none, shape ``[n]``."""
        largest = np.full(certificate.num_targets, -1.0)
        alive = np.ones(certificate.num_targets, dtype=bool)
        for size in sorted(sizes):
            for budget in self.budgets(size):
                if not alive.any():
                    return largest
                alive &= certificate.holds_against(budget)
            largest[alive] = size
        return largest

    def leaves_graph_free(self, task: str) -> bool:
        """Whether such an attack cannot change the label of a model that reads no edges."""
        if task == "graph":  # its readout sees all nodes and their features
            return self.kind == "edges"
        return not (self.own_features and self.kind in ("features", "edges and features"))

    def withstood_without_certificate(self, model: str, task: str, num_targets: int) -> FloatArray:
        """What ``GRAPH_FREE``, ``MAJORITY`` or ``UNDEFENDED`` withstands: any size (``inf``) or none (0), ``[n]``."""
        immune = model == MAJORITY or (model == GRAPH_FREE and self.leaves_graph_free(task))
        return np.full(num_targets, math.inf if immune else 0.0)


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
            (in the definition of the method), ``seconds_training``, ``seconds_certification``,
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
        if format == "csv":  # everything, as numbers
            costs = ["accuracy", "forward_passes", "seconds_certification", "cost_in_forwards", "seconds_training"]
            sizes = [f"certified_{size}" for size in self.sizes]
            cells = [[f"{v:.6g}" for v in (*row["certified"], *(row[key] for key in costs))] for row in self.rows]
        else:
            costs = ["passes", "seconds", "time / forward"]
            sizes = [str(size) for size in self.sizes]
            cells = [[*(f"{100 * share:.1f}" for share in row["certified"]), *_costs(row)] for row in self.rows]
        rows = [[row["defence"], row["guarantee"], *own] for row, own in zip(self.rows, cells, strict=True)]
        return laid_out(format, ["defence", "guarantee", *sizes, *costs], rows)

    def figure(self, path: str | Path) -> Path:
        """Draws certified accuracy over the size of the attack, one line per defence.

        Args:
            path: Where to write; its ending, ``.svg``, ``.pdf`` or ``.png``, chooses the format.

        Returns:
            The path.

        Raises:
            MissingPackage: matplotlib is not installed.
            SettingsError: The ending is another.
        """
        path = Path(path)
        if path.suffix not in FIGURES:
            raise SettingsError(f'cannot draw "{path.name}": {did_you_mean(path.suffix, FIGURES)}')
        curves = []
        for number, row in enumerate(self.rows):
            dash, remark = _LINES[row["guarantee"].split(",")[0].split(":")[0]]
            curves.append(Curve(row["defence"] + remark, number, self.sizes, row["certified"], dash=dash))
        panel = Panel(f"{self.data}, {self.targets:,} {self.task}s", curves)
        return draw_panels([panel], path, f"size of the attack ({self.threat.unit})", columns=1, width=4.6, legend=True)

    def to_json(self) -> dict[str, Any]:
        """Everything, in JSON's terms; an unlimited number of edges is ``"inf"``."""
        threat = {name: "inf" if value == math.inf else value for name, value in asdict(self.threat).items()}
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
            ".json": json.dumps(self.to_json(), indent=1),
            ".md": f"# {self.title}\n\n{self.table('markdown')}",
            ".csv": self.table("csv"),
            ".tex": self.table("latex"),
        }
        for ending, text in texts.items():
            write_atomic(folder / f"{name}{ending}", f"{text}\n")
        figures = (self.figure(folder / f"{name}{ending}") for ending in (".svg", ".pdf"))
        return (*(folder / f"{name}{ending}" for ending in texts), *figures)


def _costs(row: Row) -> tuple[str, str, str]:
    return f"{row['forward_passes']:,}", f"{row['seconds_certification']:.2f}", f"{row['cost_in_forwards']:,.1f}"


def compare(
    data: Any,
    defences: Mapping[str, Defence] | Sequence[Defence] | None = None,
    attack: str = "edges",
    sizes: Iterable[int] | None = None,
    *,
    edges_per_injected: float = math.inf,
    own_features: bool = False,
    model: BaseModel = "gcn",
    model_args: Mapping[str, Any] | None = None,
    fit_args: Mapping[str, Any] | None = None,
    references: bool = True,
    targets: Any = None,
    n0: int = 100,
    n: int = 10_000,
    alpha: float = 0.01,
    scope: str = "each target",
    seed: int = 0,
    root: str | Path | None = None,
    folder: str | Path | None = None,
    progress: OnProgress | None = None,
) -> Comparison:
    """Trains and certifies with every defence and puts them side by side.

    Every defence gets a model of the same kind, trained for it from the same initial weights on the same
    split: on its subgraphs, or under its noise. What a defence does not cover counts as not certified.

    Args:
        data: Name of a dataset, a ``Data`` with masks, or a ``GraphSet``.
        defences: Divisions (``EdgeCentric``, ``NodeCentric``, ``ac.baselines.GNNCertE``, your own) and
            smoothing defences (``ac.baselines.BiRS``, ``SparseRS``, ``RS``), by name or in a list; those that
            cover the attack, with their usual settings, when not given.
        attack: ``"edges"``, ``"injection"``, ``"features"`` or ``"edges and features"``.
        sizes: Attack sizes; what a size counts is in ``Comparison.threat.unit``.
        edges_per_injected: Edges per injected node; ``math.inf`` for any number.
        own_features: Node task: whether the target's own features may be among the changed ones.
        model: Name of the base model; or a function without arguments that makes one of your own, untrained; or a
            trained module, which all defences then use as it is.
        model_args: Settings of a base model that is named, on top of the recipe for the data.
        fit_args: Settings of training, likewise.
        references: Whether to add what every defence has to beat: the undefended model, an MLP that
            reads no edges, and the majority class, a constant that no attack can change.
        targets: Mask or row numbers; the test part when not given.
        n0: Samples with which smoothing defences choose labels.
        n: Samples with which they bound probabilities.
        alpha: Their error probability.
        scope: ``"each target"`` or ``"all targets together"``.
        seed: Seed of split (of a named dataset), weights, training and samples.
        root: Folder of the datasets.
        folder: Where certificates are kept. The same call, made again, goes on where it was interrupted, and
            another attack on the same models costs nothing.
        progress: Called before every defence, whose name is the detail, and at the end.

    Raises:
        SettingsError: A name or number makes no sense, or a defence does not fit the task.
    """
    threat = Threat(attack, edges_per_injected, own_features)
    data = load_dataset(data, root=root, seed=seed) if isinstance(data, str) else data
    task, name = infer_task(data), getattr(data, "name", None) or "data"
    at = _checked_sizes(sizes, threat)
    chosen = _named(usual_defences(task, threat) if defences is None else defences)
    if references:
        chosen = {UNDEFENDED: UNDEFENDED, GRAPH_FREE: GRAPH_FREE, MAJORITY: MAJORITY, **chosen}
    samples = {"n0": n0, "n": n, "alpha": alpha, "scope": scope}
    study = make_study(data, targets, model, model_args, fit_args, seed=seed, samples=samples)
    begin = time.perf_counter()
    rows: list[Row] = []

    def tell(detail: str) -> None:
        if progress is not None:
            done, total = len(rows), len(chosen)
            left = (time.perf_counter() - begin) / done * (total - done) if done else 0.0
            progress(Progress("comparing", done, total, left, detail))

    for number, (label, defence) in enumerate(chosen.items(), start=1):
        log.info("%d of %d: %s", number, len(chosen), label)
        tell(label)
        outcome = run(replace(study, defence=defence), None if folder is None else Path(folder))
        rows.append(make_row(study, outcome, threat, at, label))
    tell("")
    return Comparison(name, task, threat, at, len(study.targets), tuple(rows))


def usual_defences(task: str, threat: Threat) -> list[Defence]:
    """The defences that cover an attack, with their usual settings."""
    ours = ("gated",) if threat.own_features and task == "node" else ("edge", "node")
    others = {
        "edges": ("gnncert-e", "sparse-rs"), "injection": ("bi-rs",) if task == "node" else (),
        "features": ("gnncert-n",), "edges and features": ("gnncert-en",),
    }  # fmt: skip
    return [defence_named(name, task, {}) for name in (*ours, *others[threat.kind])]


def make_row(study: Study, outcome: Outcome, threat: Threat, sizes: tuple[int, ...], name: str) -> Row:
    """One row of a comparison."""
    right, known = outcome.label == study.truth, int((study.truth >= 0).sum())
    if not known:
        raise SettingsError("none of the targets has a true class: a comparison counts correct labels.")
    if outcome.certificate is not None:
        withstood = threat.withstood(outcome.certificate, sizes)
    else:
        withstood = threat.withstood_without_certificate(outcome.defence, study.task, len(right))
    return {
        "defence": name,
        "settings": outcome.defence,
        "guarantee": outcome.guarantee,
        "accuracy": float(right.sum() / known),
        "certified": [float((right & (withstood >= size)).sum() / known) for size in sizes],
        "forward_passes": outcome.passes,
        "seconds_training": outcome.seconds_training,
        "seconds_certification": outcome.seconds_certification,
        "seconds_forward": outcome.seconds_forward,
        "cost_in_forwards": outcome.seconds_certification / (outcome.seconds_forward or 1.0),
    }


def _checked_sizes(sizes: Iterable[int] | None, threat: Threat) -> tuple[int, ...]:
    if sizes is None:
        return FEW_SIZES if threat.kind == "edges and features" else SIZES
    ascending = tuple(sorted({int(size) for size in sizes}))
    if not ascending or ascending[0] < 0:
        raise SettingsError(f"sizes={sizes!r}: expected whole numbers from 0 on.")
    return ascending


def _named(defences: Mapping[str, Defence] | Sequence[Defence]) -> dict[str, Defence]:
    listed = defences if isinstance(defences, Mapping) else {_name(defence): defence for defence in defences}
    for name, defence in listed.items():
        known = (GRAPH_FREE, UNDEFENDED, MAJORITY)
        if not hasattr(defence, "subgraph") and not hasattr(defence, "noisy") and defence not in known:
            raise SettingsError(
                f'"{name}" is no defence: expected a division such as NodeCentric(300), or a smoothing defence '
                "such as ac.baselines.BiRS()."
            )
    return dict(listed)


def _name(defence: Defence) -> str:
    """What a defence is called in a table: as printed, without settings that have their usual value.

    Example:
        >>> _name(defence_named("bi-rs", "node", {"p_edge": 0.7})), _name(defence_named("node", "node", {}))
        ('bi-rs(p_edge=0.7, p_node=0.9)', 'node-centric(T=300)')
    """
    if isinstance(defence, Smoothing):
        shown = {key: value for key, value in defence.drawn().items() if value}
        test = getattr(defence, "test", "B2")
        shown |= {"test": test} if test != "B2" else {}
        return f"{defence.method}({', '.join(f'{key}={value}' for key, value in shown.items())})"
    return str(defence).replace(", hash=md5", "").replace(", key=u64le", "")
