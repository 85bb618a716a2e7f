"""The runner: builds a model, trains it for a defence, certifies its targets and measures the cost.

``run`` calls the steps of a ``Study`` (``agnncert.study``) and keeps the outcome in a folder.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import dataset_digest
from agnncert.divided.choose_rule import prior_text
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData, target_rows
from agnncert.graphs.task import task_of_targets
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.measures import Measures, measured, own_or_any, target_weights
from agnncert.recipes import usual_arguments
from agnncert.stacked.defence import StackedVotes
from agnncert.storage import parse_json, write_atomic
from agnncert.study import BaseModel, Prediction, Study, certify_model, fit_model, measures_of, part_rows, predict
from agnncert.teaching import EPOCHS, teach, usual_epochs
from agnncert.undefended import Reference
from agnncert_peers.own_code import digest_of_own_code
from agnncert_peers.threat import CROSS_FITTED, TAUGHT_BY, Threat

Row = dict[str, Any]


def key_of(study: Study) -> str:
    """A digest that names the outcome of this study, the same on every machine."""
    parts = {
        "data": dataset_digest(study.ready),
        "targets": hashlib.sha256(study.targets.astype("<i8").tobytes()).hexdigest(),
        "defence": str(study.defence),
        "model": study.model if isinstance(study.model, str) else model_digest(study.new_model()),
        "model_args": dict(study.model_args),
        "fit_args": dict(study.fit_args),
        "samples": study.sampling(),
        "seed": study.seed,
    }
    if study.voting_rule is not None:
        parts["voting_rule"] = study.voting_rule.to_json()
    if own_code := digest_of_own_code(study.defence):
        parts["own_code"] = own_code
    if study.design_size is not None:
        parts["design_size"] = [study.design_size, study.against, study.measure]
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
    if task_of_targets(ready.data) == "pair":
        raise SettingsError(
            "a comparison trains classifiers of nodes or graphs, and the targets of this data are pairs of nodes: run "
            "agnncert train and agnncert certify, whose report shows controls for pairs. Folders of runs can be "
            "compared."
        )
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
        seconds_casting: Time of casting votes within ``certify``; 0 if the outcome was read from a folder.
        plain: Labels of the same model on the whole graph, without the defence; ``None`` if read from a folder.
        record: How training went; empty if there was none, or if read from a folder.
        no_edge: Labels of the same model without edges (divisions, node task), shape ``[n]``, or ``None``.
        no_edge_score: Share of the validation part that these get right, by which the best of several is chosen.
        decides: If the vote was chosen for a size: what decides, as in ``VoteCandidate.name``.
        score: Two classes: how much speaks for class 1 without an attack, shape ``[n]``; ``None`` if it is not known.
        converged: Whether an earlier epoch than the last was the best one, so that more epochs would hardly help.
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
    no_edge: IntArray | None = None
    no_edge_score: float | None = None
    decides: str = ""
    score: FloatArray | None = None
    converged: bool = True


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
    if isinstance(study.defence, Reference) and study.defence.is_constant:
        if study.majority is None:
            raise SettingsError("the training part has no labels, so there is no most frequent class.")
        label = np.full(len(study.targets), study.majority)
        return Outcome(str(study.defence), "deterministic: a constant", label, None, 0, 0.0, 0.0, 0.0)
    if folder is None:
        return _run(study, None, progress, plain_training)
    stem = folder / (key_of(study) + ("-plain" if plain_training else ""))  # trained otherwise: another outcome
    outcome = kept(stem, lambda: _run(study, stem, progress, plain_training))
    checkpoints = [stem.with_suffix(kind) for kind in (".training", ".counts")]
    for unfinished in (*checkpoints, *folder.glob(f"{stem.name}-[0-9]*.training")):
        unfinished.unlink(missing_ok=True)
    return outcome


def kept(stem: Path | None, make: Callable[[], Outcome]) -> Outcome:
    """Returns the outcome in files of this stem; if there are none, makes it and writes them."""
    if stem is None:
        return make()
    outcome = _load(stem)
    if outcome is None:
        stem.parent.mkdir(parents=True, exist_ok=True)
        outcome = make()
        _save(outcome, stem)
    return outcome


def _run(study: Study, stem: Path | None, progress: OnProgress | None, plain_training: bool) -> Outcome:
    training = None if stem is None else stem.with_suffix(".training")
    if isinstance(study.defence, Reference):
        run_it = _RUNS.get(study.defence.name, _run_reference)
        return run_it(study, training, progress)
    model = study.new_model(study.defence.base_model)
    trained, record = fit_model(study, model, None if plain_training else study.defence, training, progress)
    plain = predict(study, trained, repeats=3)
    common = _common(record, plain)
    del common["score"]  # that of the certified votes counts
    if study.task == "node":
        common |= _without_edges(study, trained)
    if study.design_size is not None:
        study, trained, common["decides"] = _with_chosen_rule(study, trained)
    options: dict[str, Any] = {}
    if study.sampling():  # drawing samples takes long, and goes on where it stopped
        options = {"checkpoint": None if stem is None else stem.with_suffix(".counts")}
    certificate, seconds, computing = certify_model(study, trained, progress, **options)
    return Outcome(
        str(study.defence),
        _guarantee(certificate),
        certificate.label,
        certificate,
        certificate.evidence.num_predictions,
        score=_lead_of_class_1(certificate.counts),
        seconds_certification=seconds,
        seconds_casting=computing,
        **common,
    )


def _common(record: Mapping[str, Any], plain: Prediction) -> dict[str, Any]:
    """Returns what every outcome says about training and about one forward pass."""
    return {
        "seconds_training": float(record["seconds"]),
        "seconds_forward": plain.seconds,
        "plain": plain.label,
        "score": _lead_of_class_1(plain.logits.double().numpy()),
        "record": record,
        "converged": record.get("best_epoch", -1) < record.get("epochs_run", 0),
    }


def _lead_of_class_1(scores: FloatArray | IntArray) -> FloatArray | None:
    """Returns by how much class 1 leads, shape ``[n]``; None if there are not two classes."""
    if scores.shape[1] != 2:
        return None
    return np.asarray(scores[:, 1] - scores[:, 0], dtype=np.float64)


def _run_reference(study: Study, training: Path | None, progress: OnProgress | None) -> Outcome:
    """Trains a model without a defence, beside which defences are shown."""
    reference: Reference = study.defence
    model = study.new_model(reference.base)
    _, record = fit_model(study, model, None, training, progress)
    plain = predict(study, model, repeats=3)
    guarantee = "none"
    if not reference.reads_edges:
        if not torch.equal(predict(study, model, without_edges=True).logits, plain.logits):
            raise ModelContractError("the model should be graph-free but reads edges.")
        guarantee = "deterministic: reads no edges"
    common = _common(record, plain)
    return Outcome(str(reference), guarantee, plain.label, None, 1, seconds_certification=plain.seconds, **common)


def _run_cross_fitted(study: Study, training: Path | None, progress: OnProgress | None) -> Outcome:
    """Trains the cross-fitted models without edges that stacked votes begin with, and nothing on top of them."""
    defence = StackedVotes(epochs=1)
    model, record = fit_model(study, study.new_model("mlp"), defence, training, progress)
    alone = predict(study, defence.without_edges(model))
    guarantee = "deterministic: reads no edges"
    seconds = record["seconds"]
    return Outcome(
        CROSS_FITTED,
        guarantee,
        alone.label,
        None,
        len(model.own),
        seconds,
        alone.seconds,
        alone.seconds,
        score=_lead_of_class_1(alone.logits.double().numpy()),
    )


def _run_taught(study: Study, training: Path | None, progress: OnProgress | None) -> Outcome:
    """Trains the same models as the cross-fitted control, on given labels and those of a teacher.

    The teacher is trained for as many epochs as all models here, but for no more than usual.
    """
    name = str(study.defence)
    checkpoint = None if training is None else training.with_name(f"{training.stem}-0{training.suffix}")
    epochs = min(usual_epochs(study.data), study.fit_args.get("epochs", EPOCHS))
    taught = teach(
        study.data, TAUGHT_BY[name], seed=study.seed, epochs=epochs, checkpoint=checkpoint, progress=progress
    )
    fit_args = {**study.fit_args, "protocol": taught.teaching.protocol}
    with_teacher = replace(study, ready=CanonicalData.of(taught), fit_args=fit_args)
    outcome = _run_cross_fitted(with_teacher, training, progress)
    seconds = outcome.seconds_training + taught.teaching.seconds
    return replace(outcome, defence=name, seconds_training=seconds)


_RUNS = {CROSS_FITTED: _run_cross_fitted, **dict.fromkeys(TAUGHT_BY, _run_taught)}  # of further references, by name


def _without_edges(study: Study, model: torch.nn.Module) -> dict[str, Any]:
    """Returns the labels of the targets without edges, and their share of right ones on the validation part."""
    alone = study.seeded_defence.without_edges(model)
    if alone is None:
        return {}
    outcome: dict[str, Any] = {"no_edge": predict(study, alone).label}
    rows = part_rows(study.ready, "val")
    if rows is None or not len(rows):
        return outcome
    validation = replace(study, targets=rows)
    truth = validation.chosen.truth
    if truth is None or not (truth >= 0).any():
        return outcome
    labelled = truth >= 0
    right = predict(validation, alone).label == truth
    outcome["no_edge_score"] = float(target_weights(truth[labelled], study.measure) @ right[labelled])
    return outcome


def _with_chosen_rule(study: Study, model: torch.nn.Module) -> tuple[Study, torch.nn.Module, str]:
    """Returns the study with the voting rule that is best for its size, the model that votes, and what decides."""
    choice = study.seeded_defence.choose_voting_rule(
        model,
        study.data,
        study.design_size or 0,
        keep_groups=True,
        against=study.against,
        measure=study.measure,
        protocol=study.fit_args.get("protocol", "transductive"),
    )
    chosen = replace(study, defence=choice.division, voting_rule=choice.voting_rule, design_size=None)
    return chosen, choice.model, choice.best.name


def row_of(
    study: Study,
    outcome: Outcome,
    threat: Threat,
    sizes: tuple[int, ...],
    name: str,
    *,
    design_size: int | None = None,
    control: bool = False,
) -> Row:
    """The row of an outcome in a comparison; ``design_size`` is the size for which its voting rule was chosen."""
    label = np.asarray(outcome.label)
    if outcome.certificate is not None:
        withstood = threat.withstood(outcome.certificate, sizes)
    else:
        withstood = threat.withstood_without_certificate(outcome.defence, study.task, len(label))
    covered = [_is_covered(outcome, threat, size, withstood) for size in sizes]
    possible = list(possible_labels(study, outcome, threat, sizes, withstood))
    columns = measured_columns([measured(of_size, study.truth) for of_size in possible])
    chosen = outcome.certificate is not None and (study.voting_rule is not None or design_size is not None)
    return {
        "defence": name,
        "settings": outcome.defence,
        "guarantee": outcome.guarantee,
        "control": control,
        "vote": vote_in_words(outcome.certificate.voting_rule) if chosen and outcome.certificate is not None else "",
        "design_size": design_size,
        "decides": outcome.decides,
        "converged": outcome.converged,
        "envelope": False,
        "accuracy": measures_of(study, label, np.ones(len(label), dtype=bool)).accuracy,
        **{column: _where_covered(values, covered) for column, values in columns.items()},
        "not_covered": "" if all(covered) else f"nothing is proved about {threat.unit}",
        "score": outcome.score,
        "set_size": [float(of_size.sum(axis=1).mean()) for of_size in possible],
        "forward_passes": outcome.passes,
        "seconds_training": outcome.seconds_training,
        "seconds_certification": outcome.seconds_certification,
        "seconds_forward": outcome.seconds_forward,
        "cost_in_forwards": outcome.seconds_certification / (outcome.seconds_forward or 1.0),
    }


def _is_covered(outcome: Outcome, threat: Threat, size: int, withstood: FloatArray) -> bool:
    """Tells whether anything is proved about attacks of a size; size 0 is no attack."""
    if size == 0:
        return True
    if outcome.certificate is None:
        return bool((withstood > 0).any())
    return threat.is_covered(outcome.certificate, size)


def _where_covered(values: Sequence[Any], covered: Sequence[bool]) -> list[Any]:
    """Returns the value at each size, ``None`` where nothing is proved."""
    return [value if is_covered else None for value, is_covered in zip(values, covered, strict=True)]


def possible_labels(
    study: Study, outcome: Outcome, threat: Threat, sizes: Sequence[int], withstood: FloatArray
) -> Iterator[BoolArray]:
    """Which labels an attack of each size could give each target, shape ``[n, C]``, size by size.

    Without a certificate, and for stacked votes, where it would take long: the own label if it holds, else all.
    """
    certificate = outcome.certificate
    label = np.asarray(outcome.label)
    asked = certificate is not None and not certificate.evidence.possible_takes_long
    num_classes = int(max(study.truth.max(initial=0), label.max(initial=0))) + 1
    if certificate is not None:
        num_classes = max(num_classes, certificate.counts.shape[1])
    for size in sizes:
        found = own_or_any(label, withstood >= size, num_classes)
        if asked and certificate is not None and (withstood < size).any():
            known = certificate.counts.shape[1]
            found[:, :known] &= np.any([certificate.possible(budget) for budget in threat.budgets(size)], axis=0)
            found[:, known:] = False
        yield found


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


def vote_in_words(voting_rule: VotingRule | None) -> str:
    """A voting rule as a table shows it; empty for the default rule.

    Example:
        >>> vote_in_words(VotingRule(empty="abstain", prior=5)), vote_in_words(VotingRule(empty=1, prior=[0, 12]))
        ('empty abstain, prior 5', 'empty 1, prior 0/12')
    """
    if voting_rule is None or voting_rule == VotingRule():
        return ""
    empty = "" if voting_rule.empty is None else f"empty {voting_rule.empty}, "
    return f"{empty}prior {prior_text(voting_rule)}"


def _guarantee(certificate: Certificate) -> str:
    claim = certificate.claim
    if "unsound" in claim.method:  # the released test, run for comparison
        return "none: the test is unsound"
    if claim.alpha is None:
        return claim.guarantee
    return f"{claim.guarantee}, alpha = {claim.alpha:g} for {claim.alpha_scope}"


_STORED = (
    "defence", "guarantee", "passes", "seconds_training", "seconds_certification", "seconds_forward", "no_edge_score",
    "decides", "converged",
)  # fmt: skip


def _save(outcome: Outcome, stem: Path) -> None:
    if outcome.certificate is not None:
        outcome.certificate.save(stem.with_suffix(".cert"), budgets=())
    stored = {name: getattr(outcome, name) for name in _STORED}
    stored["label"] = None if outcome.certificate is not None else outcome.label.tolist()
    stored["no_edge"] = None if outcome.no_edge is None else outcome.no_edge.tolist()
    stored["score"] = None if outcome.score is None or outcome.certificate is not None else outcome.score.tolist()
    write_atomic(stem.with_suffix(".json"), json.dumps(stored))


def _load(stem: Path) -> Outcome | None:
    if not stem.with_suffix(".json").is_file():
        return None
    stored = parse_json(stem.with_suffix(".json").read_text(encoding="utf-8"))
    label = stored.pop("label")
    no_edge = stored.pop("no_edge", None)
    score = stored.pop("score", None)
    if no_edge is not None:
        no_edge = np.array(no_edge, dtype=np.int64)
    if label is None:
        certificate = load_certificate(stem.with_suffix(".cert"))
        lead = _lead_of_class_1(certificate.counts)
        return Outcome(**stored, label=certificate.label, certificate=certificate, no_edge=no_edge, score=lead)
    if score is not None:
        score = np.array(score, dtype=np.float64)
    return Outcome(**stored, label=np.array(label, dtype=np.int64), certificate=None, no_edge=no_edge, score=score)
