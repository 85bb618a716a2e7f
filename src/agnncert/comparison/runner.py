"""The runner: builds a model, trains it for a defence, certifies its targets and measures the cost.

Commands, comparisons and experiments describe their input as a ``Study`` and call ``fit_model``, ``predict``,
``certify_model``, or ``run`` for all of them.
"""

import copy
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from agnncert.baselines.smoothing import Smoothing
from agnncert.certificates.rules import VotingRule
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.certifier import certify
from agnncert.comparison.threat import GRAPH_FREE, MAJORITY, UNDEFENDED, Threat
from agnncert.datasets.splits import dataset_digest
from agnncert.divisions.base import Division
from agnncert.engine.call import bind
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import CanonicalData, Targets, target_rows
from agnncert.models.build import build_model
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress, Progress
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.measures import Measures, measured, own_or_any, rare_class, target_weights
from agnncert.storage import write_atomic
from agnncert.training.choose_rule import choose_voting_rule, prior_text, require_choice
from agnncert.training.loop import fit
from agnncert.training.recipes import usual_arguments
from agnncert.training.settings import Against
from agnncert.training.setup import require_vote

BaseModel: TypeAlias = str | torch.nn.Module | Callable[[], torch.nn.Module]
Defence: TypeAlias = Division | Smoothing | str
Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Data, targets, model and defence of a run.

    Attributes:
        ready: The data, prepared once for all steps.
        targets: Rows of the targets.
        defence: A division, a smoothing defence, or what both are compared with: ``UNDEFENDED``, ``GRAPH_FREE`` or
            ``MAJORITY``.
        model: Name of the base model, a function that makes an untrained one, or a trained module, used as it is.
        model_args: Settings of a base model that is named.
        fit_args: Settings of its training.
        samples: Settings of sampling that differ from those of the defence.
        seed: Seed of weights, training and samples.
        vote: What empty groups of a division cast, and its prior; as usual if ``None``.
        design_size: Have the vote chosen on validation for this size; ``None`` if it is given, or as usual.
        against: What that size counts, as ``choose_voting_rule`` says.
        measure: By which votes are chosen: "accuracy" or "balanced".
    """

    ready: CanonicalData
    targets: IntArray
    defence: Defence = UNDEFENDED
    model: BaseModel = "gcn"
    model_args: Mapping[str, Any] = field(default_factory=dict)
    fit_args: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    vote: VotingRule | None = None
    design_size: int | None = None
    against: Against = "any"
    measure: str = "accuracy"

    def __post_init__(self) -> None:
        if self.vote is None and self.design_size is None:
            return
        if self.vote is not None and self.design_size is not None:
            raise SettingsError("a vote is given, or chosen for a design size: leave one of the two out.")
        if isinstance(self.defence, str | Smoothing):
            raise SettingsError(f"{self.defence} adds up no ballots: a vote, or a design size, needs a division.")
        if self.design_size is not None:
            require_choice(self.defence, self.design_size)
        require_vote(self.vote, self.defence, self.task)

    @property
    def data(self) -> Any:
        """The graph or graphs, as given."""
        return self.ready.data

    @property
    def task(self) -> Task:
        """``"node"`` or ``"graph"``."""
        return self.ready.task

    @property
    def chosen(self) -> Targets:
        """The targets and their canonical graph, without self-loops."""
        return self.ready.targets(self.targets)

    @property
    def division(self) -> Division:
        """The defence; raises SettingsError if it is not a division."""
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
        """The most frequent class of the training part; None without a training part or labels."""
        count = self._training_classes
        return int(count.argmax()) if count.any() else None

    @property
    def rare(self) -> int | None:
        """The rarest class of the training part if it is rare, as ``fit`` understands it; else None."""
        return rare_class(self._training_classes)

    @property
    def _training_classes(self) -> IntArray:
        rows, y = part_rows(self.ready, "train"), getattr(self.data, "y", None)
        labels = np.zeros(0, dtype=np.int64) if rows is None or y is None else np.asarray(y)[rows]
        return np.bincount(labels[labels >= 0])

    def new_model(self, name: str | None = None) -> torch.nn.Module:
        """The given trained module, or an untrained base model, the same for every defence."""
        name = self.model if name is None and isinstance(self.model, str) else name
        if name is not None:
            return build_model(name, self.data, seed=self.seed, **self.model_args)
        if isinstance(self.model, torch.nn.Module):
            return self.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            module: Any = self.model()  # type: ignore[operator]
        if not isinstance(module, torch.nn.Module):
            raise ModelContractError(
                f"model= returned a {type(module).__name__}: expected a function that returns a torch.nn.Module."
            )
        return copy.deepcopy(module)  # a function may return the same module twice

    def sampling(self) -> dict[str, Any]:
        """How a smoothing defence draws samples, which its printed form does not say."""
        if not isinstance(self.defence, Smoothing):
            return {}
        own = {name: getattr(self.defence, name) for name in ("samples", "selection", "alpha", "scope", "seed")}
        return {**own, "seed": self.seed, **self.samples}

    def key(self) -> str:
        """A digest that names the outcome of this study, the same on every machine."""
        parts = {
            "data": dataset_digest(self.ready),
            "targets": hashlib.sha256(self.targets.astype("<i8").tobytes()).hexdigest(),
            "defence": str(self.defence),
            "model": self.model if isinstance(self.model, str) else model_digest(self.new_model()),
            "model_args": dict(self.model_args),
            "fit_args": dict(self.fit_args),
            "samples": self.sampling(),
            "seed": self.seed,
        }
        if self.vote is not None:
            parts["vote"] = self.vote.to_json()
        if self.design_size is not None:
            parts["design_size"] = [self.design_size, self.against, self.measure]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def make_study(
    data: Any,
    targets: Any = None,
    model: BaseModel = "gcn",
    model_args: Mapping[str, Any] | None = None,
    fit_args: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Study:
    """A study with defaults: the test part as targets, and the recipe of the dataset."""
    ready = CanonicalData.of(data)
    rows = part_rows(ready, "test") if targets is None else target_rows(targets, ready.total)
    if rows is None or not len(rows):
        raise SettingsError("there are no targets: a comparison needs at least one.")
    usual_model, usual_fit = usual_arguments(
        getattr(data, "name", None), ready.data, model if isinstance(model, str) else ""
    )
    return Study(
        ready, rows, model=model, model_args={**usual_model, **(model_args or {})},
        fit_args={**usual_fit, **(fit_args or {})}, **rest,
    )  # fmt: skip


def part_rows(ready: CanonicalData, part: str) -> IntArray | None:
    """Rows of the ``"train"``, ``"val"`` or ``"test"`` part of the data; None if it has no such part."""
    rows = getattr(ready.data, part if ready.task == "graph" else f"{part}_mask", None)
    return None if rows is None else target_rows(rows, ready.total)


class Prediction(NamedTuple):
    """What a model says about the targets on the whole graph, without a defence."""

    label: IntArray
    logits: torch.Tensor
    seconds: float  # the shortest time that a forward pass over the whole data took


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes:
        defence: The defence as printed.
        guarantee: Begins with ``"deterministic"``, ``"probabilistic"``, or ``"none"``.
        label: Label of each target, shape ``[n]``.
        certificate: The certificate; ``None`` for the models that defences are compared with.
        passes: Forward passes of the base model in the definition of the method, which engines may save.
        seconds_training: Time of training.
        seconds_certification: Time of ``certify`` from beginning to end, or of prediction.
        seconds_forward: Time of one plain forward pass of the same model over the same data.
        seconds_casting: Time of casting ballots within ``certify``; 0 if the outcome was read from a folder.
        plain: Labels of the same model on the whole graph, without the defence; ``None`` if read from a folder.
        record: How training went; empty if there was none, or if read from a folder.
        edgeless: Labels of the same model without edges (divisions, node task), shape ``[n]``, or ``None``.
        edgeless_score: Share of the validation part that these get right, by which the best of several is chosen.
        decides: If the vote was chosen for a size: what decides, as in ``VoteCandidate.name``.
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
    edgeless: IntArray | None = None
    edgeless_score: float | None = None
    decides: str = ""


def fit_model(
    study: Study,
    model: torch.nn.Module,
    fit_for: Division | Smoothing | None,
    checkpoint: Path | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Trains a model with the settings of the study, from a checkpoint if there is one; returns the record."""
    if model is study.model:  # a trained module was given
        return {"seconds": 0.0}
    args = {"seed": study.seed, **study.fit_args}
    if fit_for is not None and study.vote is not None:
        args["rule"] = study.vote
    fit(model, study.data, fit_for, checkpoint=checkpoint, progress=progress, **args)
    record: Any = model.training_record
    return {name: value for name, value in record.items() if name != "history"}


@torch.no_grad()
def predict(study: Study, model: torch.nn.Module, repeats: int = 1, without_edges: bool = False) -> Prediction:
    """Labels from a forward pass over the whole data without a defence, and the shortest of ``repeats`` times."""
    graph, places = study.chosen.graph, torch.from_numpy(study.chosen.places)
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
    if isinstance(study.defence, str):
        raise SettingsError(f"{study.defence} is not a defence: nothing can be certified with it.")
    defence = study.defence
    if isinstance(defence, Smoothing):
        defence = replace(defence, **study.sampling())
    elif study.vote is not None:
        how = {"rule": study.vote, **how}
    times = [begin := time.perf_counter()]

    def note(step: Progress) -> None:
        times.append(time.perf_counter())
        if progress is not None:
            progress(step)

    certificate = certify(model, study.ready, defence, study.targets, progress=note, **how)
    first = times[0] if isinstance(study.defence, Smoothing) else times[1]  # divisions report when casting begins
    return certificate, time.perf_counter() - begin, times[-1] - first


def run(
    study: Study, folder: Path | None = None, progress: OnProgress | None = None, plain_training: bool = False
) -> Outcome:
    """Trains the base model for the defence, certifies the targets and measures the cost.

    Args:
        study: What to run.
        folder: Where outcomes and checkpoints are kept; a repeated call continues from there.
        progress: Progress of training and sampling.
        plain_training: Train the model without the defence that certifies it.
    """
    if study.defence == MAJORITY:
        if study.majority is None:
            raise SettingsError("the training part has no labels, so there is no most frequent class.")
        label = np.full(len(study.targets), study.majority)
        return Outcome(MAJORITY, "deterministic: a constant", label, None, 0, 0.0, 0.0, 0.0)
    if folder is None:
        return _run(study, None, progress, plain_training)
    stem = folder / (study.key() + ("-plain" if plain_training else ""))  # trained otherwise: another outcome
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
        if study.defence == GRAPH_FREE:  # the guarantee needs the same output without edges
            if not torch.equal(predict(study, model, without_edges=True).logits, plain.logits):
                raise ModelContractError("the model should be graph-free but reads edges.")
            guarantee = "deterministic: reads no edges"
        return Outcome(study.defence, guarantee, plain.label, None, 1, seconds_certification=plain.seconds, **common)
    sampling = {"checkpoint": counting, "progress": progress}
    how: dict[str, Any] = sampling if isinstance(study.defence, Smoothing) else {}
    if not isinstance(study.defence, Smoothing) and study.task == "node":
        common |= _without_edges(study, model)
    if study.design_size is not None:
        study, model, common["decides"] = _with_chosen_vote(study, model)
    certificate, seconds, casting = certify_model(study, model, **how)
    return Outcome(
        str(study.defence), _guarantee(certificate), certificate.label, certificate, _passes(certificate),
        seconds_certification=seconds, seconds_casting=casting, **common,
    )  # fmt: skip


def _without_edges(study: Study, model: torch.nn.Module) -> dict[str, Any]:
    """Labels of the targets without edges, and their accuracy on the validation part."""
    found: dict[str, Any] = {"edgeless": predict(study, model, without_edges=True).label}
    rows = part_rows(study.ready, "val")
    if rows is not None and len(rows):
        validation = replace(study, targets=rows)
        truth = validation.chosen.truth
        known = np.zeros(0, dtype=bool) if truth is None else truth >= 0
        if truth is not None and known.any():
            right = predict(validation, model, without_edges=True).label == truth
            found["edgeless_score"] = float(target_weights(truth[known], study.measure) @ right[known])
    return found


def _with_chosen_vote(study: Study, model: torch.nn.Module) -> tuple[Study, torch.nn.Module, str]:
    """The study with the vote that is best for its design size, the model that casts it, and what decides."""
    division: Any = study.defence
    candidates = None if division.is_per_neighbour else [division.num_groups]
    choice = choose_voting_rule(
        model, study.data, division, study.design_size or 0, candidates=candidates, against=study.against,
        measure=study.measure, protocol=study.fit_args.get("protocol", "transductive"),
    )  # fmt: skip
    chosen = replace(study, defence=choice.division, vote=choice.rule, design_size=None)
    return chosen, choice.model, choice.best.name


def accuracy(study: Study, label: Any) -> float | None:
    """Accuracy of labels (or of one label for all) on the targets with a true class; None if there are none."""
    truth = study.chosen.truth
    if label is None or truth is None or not (truth >= 0).any():
        return None
    return float((truth == label)[truth >= 0].mean())


def row_of(
    study: Study,
    outcome: Outcome,
    threat: Threat,
    sizes: tuple[int, ...],
    name: str,
    design_size: int | None = None,
    control: bool = False,
) -> Row:
    """The row of an outcome in a comparison; ``design_size`` is the size for which its voting rule was chosen."""
    label = np.asarray(outcome.label)
    if outcome.certificate is not None:
        withstood = threat.withstood(outcome.certificate, sizes)
    else:
        withstood = threat.withstood_without_certificate(outcome.defence, study.task, len(label))
    chosen = outcome.certificate is not None and (study.vote is not None or design_size is not None)
    return {
        "defence": name,
        "settings": outcome.defence,
        "guarantee": outcome.guarantee,
        "control": control,
        "vote": vote_in_words(outcome.certificate.voting_rule) if chosen and outcome.certificate is not None else "",
        "design_size": design_size,
        "decides": outcome.decides,
        "envelope": False,
        "accuracy": measures_of(study, label, np.ones(len(label), dtype=bool)).accuracy,
        **measured_columns([measures_of(study, label, withstood >= size) for size in sizes]),
        "forward_passes": outcome.passes,
        "seconds_training": outcome.seconds_training,
        "seconds_certification": outcome.seconds_certification,
        "seconds_forward": outcome.seconds_forward,
        "cost_in_forwards": outcome.seconds_certification / (outcome.seconds_forward or 1.0),
    }


def measures_of(study: Study, label: IntArray, holds: BoolArray) -> Measures:
    """The measures of labels of the targets, some of which hold against an attack."""
    return measured(own_or_any(label, holds, int(study.truth.max(initial=0)) + 1), study.truth)


def measured_columns(found: Sequence[Measures]) -> Row:
    """The columns of a row that have one value for each size, or one for each size and class."""

    def by_class(shares: FloatArray) -> list[float | None]:
        return [None if np.isnan(share) else float(share) for share in shares]

    return {
        "certified": [one.accuracy for one in found],
        "balanced": [one.balanced_accuracy for one in found],
        "recall": [by_class(one.recall) for one in found],
        "precision": [by_class(one.precision) for one in found],
        "false_positive_rate": [by_class(one.false_positive_rate) for one in found],
    }


def vote_in_words(vote: VotingRule | None) -> str:
    """A voting rule as a table shows it; empty for the default rule.

    Example:
        >>> vote_in_words(VotingRule(empty="abstain", prior=5)), vote_in_words(VotingRule(empty=1, prior=[0, 12]))
        ('empty abstain, prior 5', 'empty 1, prior 0/12')
    """
    if vote is None or vote == VotingRule():
        return ""
    empty = "" if vote.empty is None else f"empty {vote.empty}, "
    return f"{empty}prior {prior_text(vote)}"


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


_STORED = (
    "defence", "guarantee", "passes", "seconds_training", "seconds_certification", "seconds_forward", "edgeless_score",
    "decides",
)  # fmt: skip


def _save(outcome: Outcome, stem: Path) -> None:
    if outcome.certificate is not None:
        outcome.certificate.save(stem.with_suffix(".cert"), budgets=())
    stored = {name: getattr(outcome, name) for name in _STORED}
    stored["label"] = None if outcome.certificate is not None else outcome.label.tolist()
    stored["edgeless"] = None if outcome.edgeless is None else outcome.edgeless.tolist()
    write_atomic(stem.with_suffix(".json"), json.dumps(stored))


def _load(stem: Path) -> Outcome | None:
    if not stem.with_suffix(".json").is_file():
        return None
    stored = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    label, edgeless = stored.pop("label"), stored.pop("edgeless", None)
    certificate = load_certificate(stem.with_suffix(".cert")) if label is None else None
    label = certificate.label if certificate is not None else np.array(label, dtype=np.int64)
    edgeless = None if edgeless is None else np.array(edgeless, dtype=np.int64)
    return Outcome(**stored, label=label, certificate=certificate, edgeless=edgeless)
