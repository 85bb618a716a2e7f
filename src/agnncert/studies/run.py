"""The runner: a model is made and fitted for a defence, its targets are certified, and all of it is measured.

Written once. Commands, comparisons and the paper's experiments describe what they want as a ``Study`` and call the
steps here: ``fit_model``, ``predict``, ``certify_model``, or all of them together, ``run``.
"""

import copy
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from agnncert.baselines.smoothing import Smoothing
from agnncert.certifier import certify
from agnncert.datasets import dataset_digest
from agnncert.divisions import Division
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import Prepared, Targets, target_rows
from agnncert.models import build_model
from agnncert.progress import OnProgress, Progress
from agnncert.proof.ballots import IntArray
from agnncert.proof.certificate import Certificate, load_certificate
from agnncert.storage import write_atomic
from agnncert.training import fit
from agnncert.training.settings import recipe
from agnncert.voting.call import bind, model_digest

BaseModel: TypeAlias = str | torch.nn.Module | Callable[[], torch.nn.Module]
Defence: TypeAlias = Division | Smoothing | str
GRAPH_FREE, UNDEFENDED, MAJORITY = "graph-free MLP", "undefended", "majority class"  # to compare defences with


@dataclass(frozen=True)
class Study:
    """Data, targets, model and defence: everything that a run needs.

    Attributes:
        ready: The data, prepared once for all steps.
        targets: Rows of the targets.
        defence: A division, a defence by random changes, or one of the models to compare with.
        model: Name of the base model, a function that makes an untrained one, or a trained module, used as it is.
        model_args: Settings of a base model that is named.
        fit_args: Settings of its training.
        samples: ``n0``, ``n``, ``alpha`` and ``scope`` of random defences.
        seed: Seed of weights, training and samples.
    """

    ready: Prepared
    targets: IntArray
    defence: Defence = UNDEFENDED
    model: BaseModel = "gcn"
    model_args: Mapping[str, Any] = field(default_factory=dict)
    fit_args: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def data(self) -> Any:
        """The graph, or graphs, as they were loaded."""
        return self.ready.data

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``."""
        return self.ready.task

    @property
    def chosen(self) -> Targets:
        """The targets and the canonical graph in which they stand, without self-loops."""
        return self.ready.targets(self.targets)

    @property
    def division(self) -> Division:
        """The defence, where it can be nothing but a division."""
        if isinstance(self.defence, str | Smoothing):
            raise SettingsError(f"{self.defence} divides no graph: a division is needed here.")
        return self.defence

    @property
    def truth(self) -> IntArray:
        """True classes of the targets."""
        if self.chosen.truth is None:
            raise SettingsError("the data has no labels y: correct labels cannot be counted.")
        return self.chosen.truth

    @property
    def majority(self) -> int | None:
        """The class that most of the training part has; None if no part or no label is known."""
        labels = labels_of(self.ready)
        part = getattr(self.data, "train" if self.task == "graph" else "train_mask", None)
        if labels is None or part is None:
            return None
        train = labels[target_rows(part, self.ready.total)]
        return int(np.bincount(train[train >= 0]).argmax()) if (train >= 0).any() else None

    def new_model(self, name: str | None = None) -> torch.nn.Module:
        """The trained module that was given, or an untrained base model, the same for every defence."""
        name = self.model if name is None and isinstance(self.model, str) else name
        if name is not None:
            return build_model(name, self.data, seed=self.seed, **self.model_args)
        if isinstance(self.model, torch.nn.Module):
            return self.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            made: Any = self.model()  # type: ignore[operator]
        if not isinstance(made, torch.nn.Module):
            raise ModelContractError(
                f"model= returned a {type(made).__name__}: expected a function that returns a torch.nn.Module."
            )
        return copy.deepcopy(made)  # a function may return the same module twice

    def key(self) -> str:
        """A name for the outcome of this study, the same on every machine."""
        told = {
            "data": dataset_digest(self.ready),
            "targets": hashlib.sha256(self.targets.astype("<i8").tobytes()).hexdigest(),
            "defence": str(self.defence),
            "model": self.model if isinstance(self.model, str) else model_digest(self.new_model()),
            "model_args": dict(self.model_args),
            "fit_args": dict(self.fit_args),
            "samples": dict(self.samples) if isinstance(self.defence, Smoothing) else {},
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


def make_study(
    data: Any,
    targets: Any = None,
    model: BaseModel = "gcn",
    model_args: Mapping[str, Any] | None = None,
    fit_args: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Study:
    """A study with the usual settings where none are given: the test part, and the recipe of the data."""
    ready = Prepared.of(data)
    if targets is None:
        targets = data.test if ready.task == "graph" else data.test_mask
    rows = target_rows(targets, ready.total)
    if len(rows) == 0:
        raise SettingsError("there are no targets: a comparison needs at least one.")
    usual_model, usual_fit = recipe(getattr(data, "name", None), ready.task, model if isinstance(model, str) else "")
    return Study(
        ready, rows, model=model, model_args={**usual_model, **(model_args or {})},
        fit_args={**usual_fit, **(fit_args or {})}, **rest,
    )  # fmt: skip


@dataclass(frozen=True)
class Prediction:
    """What a model says about the targets on the whole graph, without a defence.

    Attributes:
        label: The label of each target, shape ``[n]``.
        logits: What the labels were read from, shape ``[n, classes]``.
        seconds: The best time of one forward pass over the whole data.
    """

    label: IntArray
    logits: torch.Tensor
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes:
        defence: The defence as printed.
        guarantee: Begins with ``"deterministic"``, ``"probabilistic"``, or ``"none"``.
        label: Label of each target, shape ``[n]``.
        certificate: The certificate; ``None`` for the models that defences are compared with.
        passes: Forward passes of the base model that the method is defined by.
        seconds_training: Time of training.
        seconds_certification: Time of ``certify`` from beginning to end, or of prediction.
        seconds_forward: Time of one plain forward pass of the same model over the same data.
        seconds_casting: The part of it in which ballots were cast; 0 if taken from a folder.
        plain: Labels of the same model on the whole graph, without the defence; ``None`` if taken from a folder.
        record: How training went; empty if there was none or it was taken from a folder.
    """

    defence: str
    guarantee: str
    label: IntArray
    certificate: Certificate | None
    passes: int
    seconds_training: float
    seconds_certification: float
    seconds_forward: float
    seconds_casting: float = 0.0
    plain: IntArray | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


def fit_model(
    study: Study,
    model: torch.nn.Module,
    fit_for: Division | Smoothing | None,
    checkpoint: Path | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Trains a model as the study says, or goes on with it; returns how it went, without the history."""
    if model is study.model:  # trained already
        return {"seconds": 0.0}
    args = {"seed": study.seed, **study.fit_args}
    fit(model, study.data, fit_for, checkpoint=checkpoint, progress=progress, **args)
    record: Any = model.training_record
    return {name: value for name, value in record.items() if name != "history"}


@torch.no_grad()
def predict(study: Study, model: torch.nn.Module, repeats: int = 1) -> Prediction:
    """One plain pass over the whole data; the best of several times if asked for, of which the first warms up."""
    graph, places = study.chosen.graph, torch.from_numpy(study.chosen.places)
    call = bind(model.eval(), graph, study.ready.task)
    seconds, logits = np.inf, torch.empty(0)
    for _ in range(repeats):
        begin = time.perf_counter()
        logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
        seconds = min(seconds, time.perf_counter() - begin)
    logits = logits[places]
    return Prediction(logits.argmax(1).numpy(), logits, seconds)


@dataclass(frozen=True)
class Certification:
    """A certificate, and what it took.

    Attributes:
        certificate: The certificate.
        seconds: Time of ``certify`` from beginning to end.
        casting: Time of casting the ballots or drawing the samples alone; checks, audit and digests not counted.
    """

    certificate: Certificate
    seconds: float
    casting: float


def certify_model(
    study: Study, model: torch.nn.Module, progress: OnProgress | None = None, **how: Any
) -> Certification:
    """Certifies the targets of a study with a trained model; ``how`` are further arguments of ``certify``."""
    if isinstance(study.defence, str):
        raise SettingsError(f"{study.defence} is no defence: nothing can be certified with it.")
    if isinstance(study.defence, Smoothing):
        how = {**study.samples, "seed": study.seed, **how}
    told = [begin := time.perf_counter()]

    def tell(step: Progress) -> None:
        told.append(time.perf_counter())
        if progress is not None:
            progress(step)

    certificate = certify(model, study.ready, study.defence, study.targets, progress=tell, **how)
    first = told[0] if isinstance(study.defence, Smoothing) else told[1]
    return Certification(certificate, time.perf_counter() - begin, told[-1] - first)


def run(
    study: Study, folder: Path | None = None, progress: OnProgress | None = None, plain_training: bool = False
) -> Outcome:
    """Fits the base model for the defence, certifies the targets and measures what it cost.

    Args:
        study: What to run.
        folder: Where finished outcomes and unfinished work are kept, if anywhere: the same call goes on from there.
        progress: Told how far training and sampling are.
        plain_training: Whether the model is trained like an undefended one, although a defence certifies it.
    """
    if study.defence == MAJORITY:
        if study.majority is None:
            raise SettingsError("the training part has no labels, so no class is the most frequent one.")
        label = np.full(len(study.targets), study.majority)
        return Outcome(MAJORITY, "deterministic: a constant", label, None, 0, 0.0, 0.0, 0.0)
    if folder is None:
        return _run(study, None, progress, plain_training)
    stem = folder / study.key()
    outcome = _load(stem)
    if outcome is None:
        folder.mkdir(parents=True, exist_ok=True)
        outcome = _run(study, stem, progress, plain_training)
        _save(outcome, stem)
        for unfinished in (".training", ".counts"):
            stem.with_suffix(unfinished).unlink(missing_ok=True)
    return outcome


def _run(study: Study, stem: Path | None, progress: OnProgress | None, plain_training: bool) -> Outcome:
    training, counting = (None if stem is None else stem.with_suffix(kind) for kind in (".training", ".counts"))
    model = study.new_model("mlp" if study.defence == GRAPH_FREE else None)
    fit_for = None if plain_training or isinstance(study.defence, str) else study.defence
    record = fit_model(study, model, fit_for, training, progress)
    plain = predict(study, model, repeats=3)
    common: dict[str, Any] = {"seconds_training": float(record["seconds"]), "seconds_forward": plain.seconds}
    common |= {"plain": plain.label, "record": record}
    if isinstance(study.defence, str):
        guarantee = "none"
        if study.defence == GRAPH_FREE:
            _require_graph_free(study, model, plain.logits)
            guarantee = "deterministic: reads no edges"
        return Outcome(study.defence, guarantee, plain.label, None, 1, seconds_certification=plain.seconds, **common)
    sampling = {"checkpoint": counting, "progress": progress}
    how: dict[str, Any] = sampling if isinstance(study.defence, Smoothing) else {}
    certification = certify_model(study, model, **how)
    certificate = certification.certificate
    return Outcome(
        str(study.defence), _guarantee(certificate), certificate.label, certificate, _passes(certificate),
        seconds_certification=certification.seconds, seconds_casting=certification.casting, **common,
    )  # fmt: skip


def labels_of(ready: Prepared) -> IntArray | None:
    """The class of every row of the data, -1 where it is unknown; None if none is known."""
    y = getattr(ready.data, "y", None)
    if y is None and ready.task == "graph":
        y = np.array([-1 if graph.y is None else int(graph.y) for graph in ready.data])
    labels = None if y is None else np.asarray(y)
    return None if labels is None or (labels < 0).all() else labels


def accuracy(study: Study, label: Any) -> float | None:
    """Share of the targets that labels (or one label for all) get right; None where not all are known."""
    known = labels_of(study.ready)
    truth = None if known is None else known[study.targets]
    if label is None or truth is None or not len(truth) or (truth < 0).any():
        return None
    return float((truth == label).mean())


@torch.no_grad()
def _require_graph_free(study: Study, model: torch.nn.Module, logits: torch.Tensor) -> None:
    """What is said of the graph-free model is true only if it reads no edges: seen, not supposed."""
    graph = study.chosen.graph
    call = bind(model, graph, study.ready.task)
    none = {name: value[:0] for name, value in call.edge_values(graph).items()}
    alone = call(graph.x.to(call.dtype), graph.edge_index[:, :0], none, graph.get("batch"))
    if not torch.equal(alone[torch.from_numpy(study.chosen.places)], logits):
        raise ModelContractError("the model that is to be graph-free reads edges.")


def _guarantee(certificate: Certificate) -> str:
    claim = certificate.claim
    if "unsound" in claim.method:  # the released test, run for comparison
        return "none: the test is unsound"
    if claim.alpha is None:
        return claim.guarantee
    return f"{claim.guarantee}, alpha = {claim.alpha:g} for {claim.alpha_scope}"


def _passes(certificate: Certificate) -> int:
    evidence: Any = certificate.evidence
    if certificate.claim.num_groups:
        return certificate.claim.num_groups
    return int(evidence.selection[0].sum() + evidence.estimation[0].sum())


_STORED = ("defence", "guarantee", "passes", "seconds_training", "seconds_certification", "seconds_forward")


def _save(outcome: Outcome, stem: Path) -> None:
    if outcome.certificate is not None:
        outcome.certificate.save(stem.with_suffix(".cert"), budgets=())
    told = {name: getattr(outcome, name) for name in _STORED}
    told["label"] = None if outcome.certificate is not None else outcome.label.tolist()
    write_atomic(stem.with_suffix(".json"), json.dumps(told))


def _load(stem: Path) -> Outcome | None:
    if not stem.with_suffix(".json").is_file():
        return None
    told = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    label = told.pop("label")
    certificate = load_certificate(stem.with_suffix(".cert")) if label is None else None
    label = certificate.label if certificate is not None else np.array(label, dtype=np.int64)
    return Outcome(**told, label=label, certificate=certificate)
