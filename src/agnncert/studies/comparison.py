"""``compare``: many defences on the same data, split, base model and kind of attack.

Each defence is one ``Study`` for the common runner (``run``); ``threat`` says what a size counts, ``comparison_result``
turns the rows into tables and figures.
"""

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agnncert.baselines import BiRS, GNNCertE, GNNCertEN, GNNCertN, SparseRS
from agnncert.baselines.smoothing import Smoothing
from agnncert.datasets import load_dataset
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.errors import SettingsError
from agnncert.graphs.graph import infer_task
from agnncert.progress import OnProgress, Progress
from agnncert.studies.comparison_result import Comparison, Row
from agnncert.studies.run import GRAPH_FREE, MAJORITY, UNDEFENDED, BaseModel, Defence, Outcome, Study, make_study, run
from agnncert.studies.threat import Threat

log = logging.getLogger(__name__)

__all__ = ["Comparison", "Threat", "compare", "make_row", "usual_defences"]

SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150)
FEW_SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)  # where every split between edges and nodes is tried


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
        references: Whether to add what every defence must be measured by: the undefended model, an MLP that
            reads no edges, and the majority class, a constant that no attack can change.
        targets: Mask or row numbers; the test part when not given.
        n0: Samples with which random defences choose labels.
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
    begin, rows = time.perf_counter(), []
    for number, (label, defence) in enumerate(chosen.items()):
        log.info("%d of %d: %s", number + 1, len(chosen), label)
        _tell(progress, begin, number, len(chosen), label)
        outcome = run(replace(study, defence=defence), None if folder is None else Path(folder))
        rows.append(make_row(study, outcome, threat, at, label))
    _tell(progress, begin, len(chosen), len(chosen), "")
    return Comparison(name, task, threat, at, len(study.targets), tuple(rows))


def _tell(progress: OnProgress | None, begin: float, done: int, total: int, detail: str) -> None:
    if progress is not None:
        left = (time.perf_counter() - begin) / done * (total - done) if done else 0.0
        progress(Progress("comparing", done, total, left, detail))


def usual_defences(task: str, threat: Threat) -> list[Defence]:
    """The defences that cover an attack, with their usual settings."""
    groups = 300 if task == "node" else 30
    own = threat.own_features and task == "node"
    ours: list[Defence] = [EdgeCentric(groups), NodeCentric(groups)]
    ours = [NodeCentric(groups, gate_features=True)] if own else ours
    others: dict[str, list[Defence]] = {
        "edges": [GNNCertE(groups), SparseRS()],
        "injection": [BiRS()] if task == "node" else [],
        "features": [GNNCertN(groups)],
        "edges and features": [GNNCertEN(30, 30)],
    }
    return [*ours, *others[threat.kind]]


def make_row(study: Study, outcome: Outcome, threat: Threat, sizes: tuple[int, ...], name: str) -> Row:
    """What a comparison tells about one defence."""
    right = outcome.label == study.truth
    if outcome.certificate is not None:
        withstood = threat.withstood(outcome.certificate, sizes)
    else:
        withstood = threat.withstood_without_certificate(outcome.defence, study.task, len(right))
    return {
        "defence": name,
        "settings": outcome.defence,
        "guarantee": outcome.guarantee,
        "accuracy": float(right.mean()),
        "certified": [float((right & (withstood >= size)).mean()) for size in sizes],
        "forward_passes": outcome.passes,
        "seconds_training": outcome.seconds_training,
        "seconds_certification": outcome.seconds_certification,
        "seconds_forward": outcome.seconds_forward,
        "cost_in_forwards": outcome.seconds_certification / (outcome.seconds_forward or 1.0),
    }


def _checked_sizes(sizes: Iterable[int] | None, threat: Threat) -> tuple[int, ...]:
    if sizes is None:
        return FEW_SIZES if threat.kind == "edges and features" else SIZES
    found = tuple(sorted({int(size) for size in sizes}))
    if not found or found[0] < 0:
        raise SettingsError(f"sizes={sizes!r}: expected whole numbers from 0 on.")
    return found


def _named(defences: Mapping[str, Defence] | Sequence[Defence]) -> dict[str, Defence]:
    listed = defences if isinstance(defences, Mapping) else {_name(one): one for one in defences}
    for name, defence in listed.items():
        known = (GRAPH_FREE, UNDEFENDED, MAJORITY)
        if not hasattr(defence, "subgraph") and not hasattr(defence, "noisy") and defence not in known:
            raise SettingsError(
                f'"{name}" is no defence: expected a division such as NodeCentric(300), or a smoothing defence '
                "such as ac.baselines.BiRS()."
            )
    return dict(listed)


def _name(defence: Defence) -> str:
    """What a defence is called in a table: as printed, without what hardly matters.

    Example:
        >>> _name(BiRS(0.7, 0.9)), _name(NodeCentric(300))
        ('bi-rs(p_edge=0.7, p_node=0.9)', 'node-centric(T=300)')
    """
    if isinstance(defence, Smoothing):
        shown = {key: value for key, value in defence.drawn().items() if value}
        test = getattr(defence, "test", "B2")
        shown |= {"test": test} if test != "B2" else {}
        return f"{defence.method}({', '.join(f'{key}={value}' for key, value in shown.items())})"
    return str(defence).replace(", hash=md5", "").replace(", key=u64le", "")
