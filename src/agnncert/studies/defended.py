"""One defence at work: its model trained, its targets certified, its cost measured."""

import copy
import hashlib
import json
import logging
import os
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
from agnncert.divisions.base import Division
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import canonical, canonical_set, infer_task
from agnncert.graphs.targets import target_rows, target_truth
from agnncert.models import build_model
from agnncert.proof.ballots import IntArray
from agnncert.proof.certificate import Certificate, load_certificate
from agnncert.training import fit
from agnncert.voting.call import Caller, bind, model_digest

log = logging.getLogger(__name__)

Defence: TypeAlias = Division | Smoothing | str
BaseModel = str | torch.nn.Module | Callable[[], torch.nn.Module]
GRAPH_FREE, UNDEFENDED, MAJORITY = "graph-free MLP", "undefended", "majority class"


@dataclass(frozen=True)
class Setup:
    """What all defences of a comparison share.

    Attributes:
        data: The graph, or graphs, with their split.
        targets: Rows of the targets.
        model: Name of the base model, a function that makes an untrained one, or a trained module that all of
            them use as it is.
        model_args: Settings of the base model.
        fit_args: Settings of its training.
        samples: ``n0``, ``n``, ``alpha`` and ``scope`` of random defences.
        seed: Seed of weights, training and samples.
        folder: Where finished certificates and unfinished work are kept, if anywhere.
    """

    data: Any
    targets: IntArray
    model: BaseModel = "gcn"
    model_args: Mapping[str, Any] = field(default_factory=dict)
    fit_args: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    folder: Path | None = None

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``."""
        return infer_task(self.data)

    @property
    def truth(self) -> IntArray:
        """True classes of the targets."""
        truth = target_truth(self.data, self.targets, infer_task(self.data))
        if truth is None:
            raise SettingsError("the data has no labels y: a comparison counts correct labels.")
        return np.asarray(truth)

    @property
    def majority(self) -> int:
        """The class that most of the training part has."""
        mask = self.data.train if self.task == "graph" else self.data.train_mask
        rows = target_rows(mask, len(self.data) if self.task == "graph" else int(self.data.num_nodes))
        known = target_truth(self.data, rows, infer_task(self.data))
        return int(np.bincount(known).argmax())

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

    def bound(self, model: torch.nn.Module) -> tuple[Caller, Any]:
        """The model bound to the graph, or to the target graphs joined into one."""
        if self.task == "graph":
            graph = canonical_set([self.data[int(k)] for k in self.targets])
        else:
            graph = canonical(self.data)
        return bind(model, graph, infer_task(self.data)), graph

    def key(self, defence: Defence) -> str:
        """A name for what a defence gives under this setup, the same on every machine."""
        told = {
            "data": dataset_digest(self.data),
            "targets": hashlib.sha256(self.targets.astype("<i8").tobytes()).hexdigest(),
            "defence": str(defence),
            "model": self.model if isinstance(self.model, str) else model_digest(self.new_model()),
            "model_args": dict(self.model_args),
            "fit_args": dict(self.fit_args),
            "samples": dict(self.samples) if isinstance(defence, Smoothing) else {},
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Defended:
    """What one defence gave.

    Attributes:
        defence: The defence as printed.
        guarantee: Begins with ``"deterministic"``, ``"probabilistic"``, or ``"none"``.
        label: Label of each target, shape ``[n]``.
        certificate: The certificate; ``None`` for the models it is compared with.
        passes: Forward passes of the base model that the method is defined by.
        seconds_training: Time of training.
        seconds_certification: Time of certification, or of prediction.
        seconds_forward: Time of one plain forward pass of the same model over the same data.
    """

    defence: str
    guarantee: str
    label: IntArray
    certificate: Certificate | None
    passes: int
    seconds_training: float
    seconds_certification: float
    seconds_forward: float


def defend(setup: Setup, defence: Defence) -> Defended:
    """Trains the base model for a defence and certifies the targets; finished work is taken from the folder.

    Args:
        setup: What all defences share.
        defence: A division, a smoothing defence, or something to compare with: ``"undefended"``,
            ``"graph-free MLP"`` or ``"majority class"``.
    """
    if defence == MAJORITY:
        label = np.full(len(setup.targets), setup.majority)
        return Defended(MAJORITY, "deterministic: a constant", label, None, 0, 0.0, 0.0, 0.0)
    if setup.folder is None:
        return _defend(setup, defence)
    stem = setup.folder / setup.key(defence)
    found = _load(stem)
    if found is None:
        setup.folder.mkdir(parents=True, exist_ok=True)
        found = _defend(setup, defence)
        _save(found, stem)
        for unfinished in (_training_state(stem), _counts(stem)):
            unfinished.unlink(missing_ok=True)
    return found


def _defend(setup: Setup, defence: Defence) -> Defended:
    stem = None if setup.folder is None else setup.folder / setup.key(defence)
    model = setup.new_model("mlp" if defence == GRAPH_FREE else None)
    training = _train(setup, model, None if isinstance(defence, str) else defence, stem)
    forward, logits = _plain_forward(setup, model)
    if isinstance(defence, str):
        guarantee = "none"
        if defence == GRAPH_FREE:
            _require_graph_free(setup, model, logits)
            guarantee = "deterministic: reads no edges"
        return Defended(defence, guarantee, logits.argmax(1).numpy(), None, 1, training, forward, forward)
    begin = time.perf_counter()
    if isinstance(defence, Smoothing):
        checkpoint = None if stem is None else _counts(stem)
        certificate = defence.certify(
            model, setup.data, setup.targets, seed=setup.seed, checkpoint=checkpoint, **setup.samples
        )
    else:
        certificate = certify(model, setup.data, defence, setup.targets)
    seconds = time.perf_counter() - begin
    return Defended(
        str(defence), _guarantee(certificate), certificate.label, certificate, _passes(certificate),
        training, seconds, forward,
    )  # fmt: skip


def _train(setup: Setup, model: torch.nn.Module, defence: Any, stem: Path | None) -> float:
    if model is setup.model:
        return 0.0
    checkpoint = None if stem is None else _training_state(stem)
    args = {"seed": setup.seed, **setup.fit_args}
    fit(model, setup.data, defence, checkpoint=checkpoint, **args)
    record: Any = model.training_record
    return float(record["seconds"])


@torch.no_grad()
def _plain_forward(setup: Setup, model: torch.nn.Module) -> tuple[float, torch.Tensor]:
    """Seconds of one pass over the whole data, and the logits of the targets."""
    call, graph = setup.bound(model.eval())
    seconds, logits = np.inf, torch.empty(0)
    for _ in range(3):  # the first one also warms up
        begin = time.perf_counter()
        logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, logits if setup.task == "graph" else logits[torch.from_numpy(setup.targets)]


@torch.no_grad()
def _require_graph_free(setup: Setup, model: torch.nn.Module, logits: torch.Tensor) -> None:
    """What is said of the graph-free model is true only if it reads no edges: seen, not supposed."""
    call, graph = setup.bound(model)
    none = {name: value[:0] for name, value in call.edge_values(graph).items()}
    alone = call(graph.x.to(call.dtype), graph.edge_index[:, :0], none, graph.get("batch"))
    alone = alone if setup.task == "graph" else alone[torch.from_numpy(setup.targets)]
    if not torch.equal(alone, logits):
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


def _training_state(stem: Path) -> Path:
    return stem.with_suffix(".training")


def _counts(stem: Path) -> Path:
    return stem.with_suffix(".counts")


_NUMBERS = ("passes", "seconds_training", "seconds_certification", "seconds_forward")


def _save(found: Defended, stem: Path) -> None:
    if found.certificate is not None:
        found.certificate.save(stem.with_suffix(".cert"), budgets=())
    told = {name: getattr(found, name) for name in ("defence", "guarantee", *_NUMBERS)}
    told["label"] = None if found.certificate is not None else found.label.tolist()
    draft = stem.with_suffix(".part")
    draft.write_text(json.dumps(told), encoding="utf-8")
    os.replace(draft, stem.with_suffix(".json"))


def _load(stem: Path) -> Defended | None:
    if not stem.with_suffix(".json").is_file():
        return None
    told = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    label = told.pop("label")
    certificate = load_certificate(stem.with_suffix(".cert")) if label is None else None
    label = certificate.label if certificate is not None else np.array(label, dtype=np.int64)
    return Defended(**told, label=label, certificate=certificate)
