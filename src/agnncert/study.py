"""A study: data, targets, model and defence of a run, and the steps of the run: train, predict, certify.

Commands, comparisons and experiments describe their input as a ``Study`` and call ``fit_model``, ``predict`` and
``certify_model``; ``agnncert.recipes`` says how to build and train a model for their data.
"""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.defence import Defence, OperatingPoint, as_defence
from agnncert.engine.adapter import bind
from agnncert.errors import ModelContractError, SettingsError
from agnncert.fitting import fit
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import CanonicalData, Targets, target_rows
from agnncert.graphs.task import task_of_targets
from agnncert.models.build import build_model
from agnncert.pairs.targets import choose_pairs
from agnncert.progress import AUDITING, CHECKING, OnProgress, Progress
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import Measures, measured, own_or_any, rare_class
from agnncert.training.settings import Against
from agnncert.undefended import REFERENCES, UNDEFENDED

BaseModel: TypeAlias = str | torch.nn.Module | Callable[[], torch.nn.Module]
WITHOUT_MODEL = "none"  # in place of the name of a model, for defences that need none


@dataclass(frozen=True)
class Study:
    """Data, targets, model and defence of a run.

    Attributes:
        ready: The data, prepared once for all steps.
        targets: Rows of the targets.
        defence: A defence; it may be a ``Reference``, which defences are compared with, or the name of one.
        model: Name of the base model, a function that makes an untrained one, or a trained module, used as it is.
        model_args: Settings of a base model that is named.
        fit_args: Settings of its training.
        samples: Settings of sampling that differ from those of the defence.
        seed: Seed of weights, training and samples.
        voting_rule: How votes are added up; as usual if ``None``.
        design_size: Have the voting rule chosen on validation for this size; ``None`` if it is given, or as usual.
        against: What that size counts, as ``choose_voting_rule`` says.
        measure: By which votes are chosen: "accuracy" or "balanced".
        point: The threshold that was chosen for this model and defence; ``None`` if none was.
    """

    ready: CanonicalData
    targets: IntArray
    defence: Any = REFERENCES[UNDEFENDED]  # a ``Defence`` from here on
    model: BaseModel = "gcn"
    model_args: Mapping[str, Any] = field(default_factory=dict)
    fit_args: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    voting_rule: VotingRule | None = None
    design_size: int | None = None
    against: Against = "any"
    measure: str = "accuracy"
    point: OperatingPoint | None = None

    def __post_init__(self) -> None:
        named = REFERENCES.get(self.defence) if isinstance(self.defence, str) else None
        object.__setattr__(self, "defence", as_defence(self.defence if named is None else named))
        if self.voting_rule is None and self.design_size is None:
            return
        if self.voting_rule is not None and self.design_size is not None:
            raise SettingsError("a voting rule is given, or chosen for a design size: leave one of the two out.")
        if self.design_size is not None:
            self.defence.require_size(self.design_size)
        self.defence.with_voting_rule(self.voting_rule).require_task(self.task)

    @property
    def data(self) -> Any:
        """The graph or graphs, as given."""
        return self.ready.data

    @property
    def task(self) -> Task:
        """What the targets are. The rows of pairs are places in ``edge_label_index``."""
        return task_of_targets(self.data)

    @property
    def chosen(self) -> Targets:
        """The targets and their canonical graph, without self-loops."""
        return self.ready.targets(self.targets)

    @property
    def known_truth(self) -> IntArray | None:
        """True classes of the targets, negative where one is unknown; None if the data has no classes."""
        if self.task == "pair":
            return choose_pairs(self.ready, self.targets).truth
        return self.chosen.truth

    @property
    def truth(self) -> IntArray:
        """True classes of the targets."""
        truth = self.known_truth
        if truth is None:
            raise SettingsError("the data has no labels y: correct labels cannot be counted.")
        return truth

    @property
    def majority(self) -> int | None:
        """The most frequent class of the training part; None without a training part or labels."""
        count = self._training_classes
        return int(count.argmax()) if count.any() else None

    @property
    def rare(self) -> int | None:
        """The rarest class of the training part if it is rare, as ``fit`` understands it; else None."""
        return rare_class(self._training_classes)

    @property
    def _training_classes(self) -> IntArray:
        """How many training targets each class has; empty without a training part or labels."""
        rows = part_rows(self.ready, "train")
        y = getattr(self.data, "edge_label" if self.task == "pair" else "y", None)
        if rows is None or y is None:
            return np.zeros(0, dtype=np.int64)
        labels = np.asarray(y).reshape(-1)[rows]
        return np.bincount(labels[labels >= 0])

    def new_model(self, name: str | None = None) -> Any:
        """The given trained module, or an untrained base model, the same for every defence.

        None if a function returns None, for defences that need no model.
        """
        name = self.model if name is None and isinstance(self.model, str) else name
        if name == WITHOUT_MODEL and self.defence.model_is_optional:
            return None
        if name is not None:
            return build_model(name, self.data, seed=self.seed, **self.model_args)
        if isinstance(self.model, torch.nn.Module):
            return self.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            module: Any = self.model()  # type: ignore[operator]
        if module is None and self.defence.model_is_optional:
            return None
        if not isinstance(module, torch.nn.Module):
            raise ModelContractError(
                f"model= returned a {type(module).__name__}: expected a function that returns a torch.nn.Module."
            )
        return copy.deepcopy(module)  # a function may return the same module twice

    @property
    def seeded_defence(self) -> Defence:
        """The defence, with the seed and the sampling settings of this study in place of its own."""
        defence: Defence = self.defence
        return defence.seeded(self.seed, **self.samples)

    def sampling(self) -> dict[str, Any]:
        """Returns the settings that random numbers of the defence depend on; empty if it draws none."""
        return self.seeded_defence.random_settings()


def part_rows(ready: CanonicalData, part: str) -> IntArray | None:
    """Rows of the ``"train"``, ``"val"`` or ``"test"`` part of the data; None if it has no such part."""
    rows = getattr(ready.data, part if ready.task == "graph" else f"{part}_mask", None)
    return None if rows is None else target_rows(rows, num_targets(ready))


def num_targets(ready: CanonicalData) -> int:
    """Returns how many nodes, graphs or listed pairs the data has."""
    return int(ready.data.edge_label_index.size(1)) if task_of_targets(ready.data) == "pair" else ready.total


class Prediction(NamedTuple):
    """What a model says about the targets on the whole graph, without a defence."""

    label: IntArray
    logits: torch.Tensor
    seconds: float  # the shortest time that a forward pass over the whole data took


def fit_model(
    study: Study,
    model: Any,
    fit_for: Defence | None,
    checkpoint: Path | None = None,
    progress: OnProgress | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Trains a model with the settings of the study, from a checkpoint if there is one.

    Returns:
        The trained model (the same module, unless the defence makes one of its own), and the record of its training.
    """
    if model is study.model:  # a trained module was given
        return model, {"seconds": 0.0}
    args = {"seed": study.seed, **study.fit_args}
    if fit_for is not None and study.voting_rule is not None:
        args["voting_rule"] = study.voting_rule
    begin = time.perf_counter()
    trained = fit(model, study.data, fit_for, checkpoint=checkpoint, progress=progress, **args)
    record: Any = {"seconds": time.perf_counter() - begin, **getattr(trained, "training_record", {})}
    return trained, {name: value for name, value in record.items() if name != "history"}


@torch.no_grad()
def predict(study: Study, model: torch.nn.Module, repeats: int = 1, without_edges: bool = False) -> Prediction:
    """Labels from a forward pass over the whole data without a defence, and the shortest of ``repeats`` times."""
    graph, places = study.chosen.graph, torch.from_numpy(study.chosen.positions)
    call = bind(model.eval(), graph, study.ready.task)
    edge_index, values = graph.edge_index, call.edge_values(graph)
    if without_edges:
        edge_index, values = edge_index[:, :0], {name: value[:0] for name, value in values.items()}
    seconds, logits = np.inf, torch.empty(0)
    for _ in range(repeats):
        begin = time.perf_counter()
        logits = call(graph.x.to(call.dtype), edge_index, values, graph.batch)
        seconds = min(seconds, time.perf_counter() - begin)
    logits = logits[places]
    return Prediction(logits.argmax(1).numpy(), logits, seconds)


def certify_model(
    study: Study, model: torch.nn.Module, progress: OnProgress | None = None, **how: Any
) -> tuple[Certificate, float, float]:
    """Certifies the targets of a study with a trained model; ``how`` are further arguments of ``certify``.

    Returns:
        The certificate, the seconds of ``certify``, and the seconds of computing votes or samples without checks, audit
        and digests.
    """
    if study.voting_rule is not None:
        how = {"voting_rule": study.voting_rule, **how}
    begin = time.perf_counter()
    started = begin
    last = begin

    def note(step: Progress) -> None:
        nonlocal started, last
        if step.what not in (AUDITING, CHECKING):
            last = time.perf_counter()
            if step.done == 0:  # the work begins after the checks
                started = last
        if progress is not None:
            progress(step)

    defence: Any = study.seeded_defence
    if study.point is not None:
        defence = replace(study.point, defence=defence)
    certificate = certify(model, study.ready, defence, study.targets, progress=note, **how)
    return certificate, time.perf_counter() - begin, last - started


def labels_on_whole_graph(study: Study, model: Any) -> IntArray:
    """Labels of the targets by one look at the whole graph; those of pairs are what their defence decides."""
    if study.task == "pair":
        return study.seeded_defence.labels(model, study.ready, study.targets)
    return predict(study, model).label


def accuracy(study: Study, label: Any) -> float | None:
    """Accuracy of labels (or of one label for all) on the targets with a true class; None if there are none."""
    truth = study.known_truth
    if label is None or truth is None or not (truth >= 0).any():
        return None
    return float((truth == label)[truth >= 0].mean())


def measures_of(study: Study, label: IntArray, holds: BoolArray) -> Measures:
    """The measures of labels of the targets, some of which hold against an attack."""
    return measured(own_or_any(label, holds, int(study.truth.max(initial=0)) + 1), study.truth)


def advice_if_worse(of_vote: float, without_edges: float, config: dict[str, Any] | None) -> str | None:
    """Returns what to try if edges do not help, or ``None`` if they do.

    Args:
        of_vote: Validation accuracy of the vote.
        without_edges: Validation accuracy of a model without edges.
        config: How the model was built, or ``None`` for a model of the user's own, which has no such settings.
    """
    if of_vote >= without_edges:
        return None
    ideas = []
    if config and not config.get("norm"):
        ideas.append("--set norm=batch_norm")
    if config and not config.get("scale"):
        ideas.append("--set scale=standard")
    ideas += ["more --epochs", "fewer --groups", "another --model, such as sage"]
    return (
        f"On the validation part the vote is right for {100 * of_vote:.1f} %, a model without edges for "
        f"{100 * without_edges:.1f} %: the edges do not help. Try {', '.join(ideas)}."
    )
