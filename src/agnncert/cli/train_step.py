"""The step that trains: ``train_run`` trains the model of a run and the models that it is compared with."""

import logging
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.addons import config_of
from agnncert.auditing.model_audit import inspect_data
from agnncert.certificates.votes import FloatArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.cli.ages import busiest_days
from agnncert.cli.controls_step import store_controls
from agnncert.cli.data import copy_tables, describe, load_training, require_classes, targets_of
from agnncert.cli.defences import (
    NO_MODEL,
    defence_class,
    make_defence,
    usual_model,
    with_usual_for_events,
    with_usual_split,
)
from agnncert.cli.folder import RunFolder, open_run
from agnncert.cli.model_card import card_text
from agnncert.cli.models import fresh_model
from agnncert.cli.report_step import FALSE_POSITIVES, RECALL
from agnncert.cli.settings import FIT, TrainSettings
from agnncert.cli.studies import row_origin, run_name
from agnncert.cli.tables_of import table_file
from agnncert.cli.user_code import is_module_spec
from agnncert.controls.edge_values import WITH_VALUES, undefended_name, with_edge_values
from agnncert.controls.pair_controls import pair_controls
from agnncert.controls.table import Control
from agnncert.controls.trees import tree_controls
from agnncert.datasets.encoding import encoding_of
from agnncert.datasets.events import made_of_events
from agnncert.defence import Defence
from agnncert.errors import MissingPackage, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import task_of_targets
from agnncert.models.io import save_model
from agnncert.pairs.targets import choose_pairs
from agnncert.progress import OnProgress
from agnncert.proving.measures import measured, own_or_any
from agnncert.recipes import usual_arguments
from agnncert.study import Prediction, Study, accuracy, advice_if_worse, fit_model, labels_on_whole_graph, predict
from agnncert.teaching import teach
from agnncert.training.settings import SETTINGS, usual_objective
from agnncert.undefended import REFERENCES, UNDEFENDED

log = logging.getLogger(__name__)

_NO_EDGES = {"node": "MLP, no graph", "graph": "bag of nodes"}  # what the control is called, by task
_LEAVE_OUT = "List the other columns with --set feature=NAME,NAME; edges can vote instead."
_WORDS = {None: "accuracy", "balanced": "balanced accuracy"}  # measures in words, if they are not called so


@dataclass(frozen=True)
class Trained:
    """What ``train_run`` returns.

    Attributes:
        folder: The run folder.
        settings: The settings, with nothing left open.
        measured: Accuracies on the test part, epochs and seconds, by name.
    """

    folder: RunFolder
    settings: TrainSettings
    measured: dict[str, float]


@dataclass(frozen=True)
class _Reference:
    """A model without a defence, which is shown beside the trained one.

    Attributes:
        word: What it is called in results.
        name: What it is called as a control.
        study: The study that trained it, or with which it is measured.
        model: The model.
        score: Its score on the validation part; 0 if it has none.
        reads_edges: Whether edges can alter its labels.
    """

    word: str
    name: str
    study: Study
    model: Any
    score: float = 0.0
    reads_edges: bool = False


def train_run(
    settings: TrainSettings, out: str | Path | None = None, fresh: bool = False, on_progress: OnProgress | None = None
) -> Trained:
    """Trains a model as settings say and leaves it in a run folder.

    An interrupted run continues where it stopped; a finished one is not repeated.

    Args:
        settings: What to train, on what.
        out: The run folder. Defaults to one below ``runs``.
        fresh: Start from the beginning even if the folder holds this run already.
        on_progress: Called while a table of events is read, and after every epoch.
    """
    settings = with_usual_split(settings, [settings.division])
    seen, whole = load_training(settings, on_progress)
    canonical_data = CanonicalData.of(whole)
    training_data = canonical_data if seen is whole else CanonicalData.of(seen)
    _warn_of_counted(training_data)
    about = describe(canonical_data, settings)
    if task_of_targets(canonical_data.data) == "pair":
        settings = _for_pairs(settings)
    settings = with_usual_for_events(settings, training_data.data)
    if made_of_events(whole):  # what is sought in events is rarely half of them, and has a threshold of its own
        settings = replace(settings, fit={"balance_classes": True, **settings.fit})
    complete, defence = make_defence(
        _resolved(settings, canonical_data), task_of_targets(canonical_data.data), canonical_data.data
    )
    require_classes(whole)
    if defence is not None:
        defence.require_data(training_data.data)
    voting_rule = complete.voting_rule(about["class_names"])
    table = complete.table()
    folder = open_run(out, run_name(about, complete), "train", table, about["digest"], fresh)
    with folder.recording():
        folder.begin("train", table, about)
        copy_tables(complete, folder, canonical_data.data)
        rows = folder.rows("train")
        if rows and folder.weights.is_file():
            log.info("%s has been trained already (--fresh trains it again)", folder)
            return Trained(folder, complete, {row["measure"]: row["value"] for row in rows})
        run = _Run(folder, settings, complete, canonical_data, training_data, about, on_progress)
        measured_values = _train(run, defence, voting_rule)
        folder.forget_checkpoints()
        folder.write("MODEL_CARD.md", card_text(folder))
    return Trained(folder, complete, measured_values)


def _warn_of_counted(training_data: CanonicalData) -> None:
    """Warns of features that were computed from edges, before a model is trained that certify refuses."""
    if training_data.task != "node":
        return
    encoding = encoding_of(training_data.data)
    names = [] if encoding is None else encoding.features
    for finding in inspect_data(training_data.data):
        numbers = [int(number) for number in re.findall(r"\d+", finding.what.partition(" and ")[0])]
        called = ", ".join(f'"{names[number]}"' for number in numbers if number < len(names))
        named = f"{called} ({finding.what})" if called else finding.what
        log.warning("%s of the features %s: certify refuses a model that reads it. %s", named, finding.why, _LEAVE_OUT)


@dataclass(frozen=True)
class _Run:
    """What a run trains on, and where it leaves what it trained.

    Attributes:
        folder: The run folder.
        asked: The settings as they were given.
        settings: The settings with nothing left open.
        data: The data, with given labels alone.
        training: What training may see of it: the data itself, unless there is a cut-off in time.
        about: The description of the data.
        on_progress: Called after every epoch.
    """

    folder: RunFolder
    asked: TrainSettings
    settings: TrainSettings
    data: CanonicalData
    training: CanonicalData
    about: dict[str, Any]
    on_progress: OnProgress | None


def _train(run: _Run, defence: Defence | None, voting_rule: VotingRule | None) -> dict[str, float]:
    """Trains the model of a run and its references, stores them, and returns what was measured, by name."""
    settings = run.settings
    training_data = run.training if settings.teach is None else _taught(run)
    training = replace(_study(settings, training_data, defence), voting_rule=voting_rule)
    study = training if run.training is run.data else replace(training, ready=run.data, targets=_targets(run))
    if study.task == "pair":
        log.info("training a model of pairs")
    elif settings.model == NO_MODEL:
        log.info("training %s", defence)
    else:
        log.info("training %s for at most %d epochs", settings.model, settings.fit["epochs"])
    model, record = _fit(run, training, "model", "training")
    _log_outcome(record)
    save_model(model, run.folder.weights, {"data": run.about, "settings": settings.table(), "training": record})
    values = _values(study, model, record)
    if settings.references and study.task == "pair":
        values |= _compare_pairs(run, study, model)
    elif settings.references:
        references = _train_references(run, study, training_data, model)
        values |= _values_of_references(references)
        _store_controls(run, study, references)
        _log_advice(record, references, model)
    values["accuracy, majority class"] = accuracy(study, study.majority)
    known = {name: value for name, value in values.items() if value is not None}
    origin = row_origin(settings, study, run.about)
    run.folder.put_rows("train", [{**origin, "measure": name, "value": value} for name, value in known.items()])
    return known


def _for_pairs(settings: TrainSettings) -> TrainSettings:
    """Returns the settings as a model of pairs is trained by them: epochs are those of its prior.

    Raises:
        SettingsError: A setting is for models of nodes or graphs.
    """
    fit = dict(settings.fit)
    epochs = {"epochs": fit.pop("epochs")} if "epochs" in fit else {}
    foreign = [*fit, *(name for name in ("teach", "teachers", "class_shares") if getattr(settings, name) is not None)]
    if foreign:
        raise SettingsError(
            f"{foreign[0]} is for models of nodes and graphs, and the targets are pairs of nodes, because there is a "
            "table of pairs. Their model has --epochs, --size, and --set defence.hidden, defence.weight_decay and "
            "defence.balanced."
        )
    if settings.model not in (None, NO_MODEL) and not is_module_spec(settings.model):
        raise SettingsError(
            f"--model {settings.model} classifies nodes or graphs, and the targets are pairs of nodes, because "
            "there is a table of pairs: leave it out. A model of your own is called as model(x_u, x_v, values)."
        )
    return replace(settings, fit={}, defence={**epochs, **settings.defence})


def _resolved(settings: TrainSettings, canonical_data: CanonicalData) -> TrainSettings:
    """Returns the settings with what is usual for the data where they leave something open."""
    if task_of_targets(canonical_data.data) == "pair":
        return replace(settings, model=settings.model or NO_MODEL)
    name = settings.model or usual_model(defence_class(settings.division))
    objective = settings.fit.get("objective")
    _, defence = make_defence(settings, task_of_targets(canonical_data.data), canonical_data.data)
    model_args, fit_args = usual_arguments(settings.data, canonical_data.data, name, objective, defence)
    usual = {key: SETTINGS[key].default for key in FIT}
    usual |= {"objective": usual_objective(canonical_data.task), **fit_args}
    if settings.teach is not None:
        usual["protocol"] = "held-out"
    if is_module_spec(name) or name == NO_MODEL:
        model_args = {}
    return replace(settings, model=name, fit={**usual, **settings.fit}, set={**model_args, **settings.set})


def _taught(run: _Run) -> CanonicalData:
    """Returns the data with the labels of a teacher, which is trained from checkpoints if there are some."""
    settings = run.settings
    assert settings.teach is not None
    log.info("training a teacher, %s, that reads edges and labels the training graph", settings.teach)
    taught = teach(
        run.training.data,
        settings.teach,
        **settings.teaching_arguments(),
        protocol=settings.fit["protocol"],
        seed=settings.seed,
        checkpoint=run.folder.checkpoint("teacher"),
        progress=run.on_progress,
    )
    log.info(
        "the teacher is right for %.1f %% of the validation nodes and has labelled %s nodes",
        100 * taught.teaching.accuracy,
        f"{taught.teaching.num_taught:,}",
    )
    return CanonicalData.of(taught)


def _study(settings: TrainSettings, canonical_data: CanonicalData, defence: Defence | None) -> Study:
    """Returns a study that trains a model for a defence, or (``None``) a plain model."""
    name = settings.division or ""
    arguments = settings.fit_arguments()
    if defence is not None and "pair" in defence.tasks:
        arguments = {"seed": settings.seed}
    elif defence is None or "size" in defence.setting_names(name):  # the defence knows the size already
        arguments["size"] = 0
    return Study(
        canonical_data,
        targets_of(canonical_data, None),
        REFERENCES[UNDEFENDED] if defence is None else defence,
        partial(fresh_model, settings, canonical_data.data, defence),
        fit_args=arguments,
        seed=settings.seed,
    )


def _targets(run: _Run) -> Any:
    return targets_of(run.data, None)


def _fit(run: _Run, study: Study, name: str, what: str) -> tuple[Any, dict[str, Any]]:
    """Returns a trained model and the record of its training, from a checkpoint with this name if there is one."""
    model = study.new_model()
    file = run.folder.checkpoint(name)
    if file.is_file():
        log.info("going on where an earlier call stopped (%s)", file)
    on_progress = run.on_progress
    report = None if on_progress is None else lambda step: on_progress(replace(step, what=what))
    return fit_model(study, model, study.defence, file, report)


def _log_outcome(record: dict[str, Any]) -> None:
    best = f", best after epoch {record['best_epoch']}" if "best_epoch" in record else ""
    log.info("trained in %.1f s%s", record["seconds"], best)
    for warning in record.get("warnings", ()):
        log.warning("%s", warning)


def _values(study: Study, model: Any, record: dict[str, Any]) -> dict[str, float | None]:
    """Returns what is measured of the trained model, by name."""
    measure = record.get("measure")
    score_name = record.get("score_name", f"validation {_WORDS.get(measure, measure)} of the vote")
    return {
        "validation accuracy of the teacher": record.get("teaching", {}).get("accuracy"),
        score_name: record.get("score"),
        "accuracy on the whole graph": accuracy(study, labels_on_whole_graph(study, model)),
        "epochs": record.get("epochs_run") or None,  # none where nothing is trained by epochs
        "seconds of training": round(record["seconds"], 2),
    }


def _compare_pairs(run: _Run, study: Study, model: Any) -> dict[str, float | None]:
    """Stores what controls say about pairs, and returns their accuracies: own features alone, and trees on all."""
    try:
        found = pair_controls(model, run.data, study.targets, run.settings.seed)
    except MissingPackage as error:
        log.info("controls are left out: %s", error)
        return {}
    store_controls(run.folder, found.controls, choose_pairs(run.data, study.targets).ids.tolist())
    return {"accuracy, no edges": accuracy(study, found.own), "accuracy, undefended": accuracy(study, found.trees)}


def _train_references(run: _Run, study: Study, training_data: CanonicalData, trained: Any) -> list[_Reference]:
    """Trains an undefended model and one without edges, to compare with.

    The undefended model learns from given labels alone, and the one without edges from the same as the trained model.
    A defence that makes a model of its own has a part that reads no edges, which is not trained again. The undefended
    model beside it is a graph neural network with its own recipe, and with what was asked for, which reads the values
    of edges as features of nodes.
    """
    settings = run.settings
    shape = {} if is_module_spec(settings.model or "") else settings.set
    undefended_settings, whole, seen = settings, run.data, run.training
    if study.defence.own_model is not None:
        gnn = replace(run.asked, model="gcn", division=None, defence={}, set=run.asked.set if shape else {})
        whole, seen = _with_edge_values(run)
        undefended_settings = _resolved(gnn, whole)
    plain = _study(undefended_settings, whole, None)
    plain_training = _study(undefended_settings, seen, None)
    undefended, _ = _fit(run, plain_training, "undefended", "training an undefended model")
    graph = whole.data if whole.task == "node" else whole.data[0]
    name = undefended_name(graph, undefended) if whole is run.data else WITH_VALUES
    references = [_Reference("undefended", name, plain, undefended, reads_edges=True)]
    if study.defence.own_model is not None:
        without_edges = study.defence.without_edges(trained)
        if without_edges is not None:
            own = _study(undefended_settings, run.data, None)
            references.append(_Reference("no edges", _NO_EDGES[study.task], own, without_edges))
        return references
    without_edges_settings = replace(settings, model="mlp", set=shape)
    no_edges = _study(without_edges_settings, study.ready, None)
    no_edges_training = _study(without_edges_settings, training_data, None)
    mlp, record = _fit(run, no_edges_training, "graph_free", "training a model without edges")
    return [*references, _Reference("no edges", _NO_EDGES[study.task], no_edges, mlp, record["score"])]


def _with_edge_values(run: _Run) -> tuple[CanonicalData, CanonicalData]:
    """Returns the data, and what training may see of it, with what edges say as features, if they say something."""
    if run.data.task != "node":
        return run.data, run.training
    richer = [with_edge_values(each.data) for each in (run.data, run.training)]
    if richer[0] is None or richer[1] is None:
        return run.data, run.training
    whole = CanonicalData.of(richer[0])
    return whole, whole if run.training is run.data else CanonicalData.of(richer[1])


def _values_of_references(references: list[_Reference]) -> dict[str, float | None]:
    """Returns the accuracies of references, and what is measured of each class, by name."""
    values: dict[str, float | None] = {}
    for reference in references:
        prediction = predict(reference.study, reference.model)
        values[f"accuracy, {reference.word}"] = accuracy(reference.study, prediction.label)
        values |= _by_class(reference.study, prediction, reference.word)
    return values


def _by_class(study: Study, prediction: Prediction, word: str) -> dict[str, float]:
    """Returns recall and false positive rate of each class of a model without a defence, as far as they exist."""
    truth = study.chosen.truth
    if truth is None or not (truth >= 0).any():
        return {}
    holds = np.ones(len(truth), dtype=bool)
    of_class = measured(own_or_any(prediction.label, holds, prediction.logits.shape[1]), truth)
    values = {}
    for name, shares in ((RECALL, of_class.recall), (FALSE_POSITIVES, of_class.false_positive_rate)):
        for label, share in enumerate(shares):
            if not np.isnan(share):
                values[f"{name} {label}, {word}"] = float(share)
    return values


def _store_controls(run: _Run, study: Study, references: list[_Reference]) -> None:
    """Stores scores, or labels, of references and boosted trees for the test part, to compare them later."""
    controls = []
    for reference in references:
        logits = predict(reference.study, reference.model).logits.double().numpy()
        name = reference.name
        reads_graph = reference.reads_edges or study.task == "graph"
        if logits.shape[1] == 2:
            controls.append(Control(name, score=logits[:, 1] - logits[:, 0], reads_graph=reads_graph))
        else:
            controls.append(Control(name, label=logits.argmax(axis=1), reads_graph=reads_graph))
    num_classes = predict(references[0].study, references[0].model).logits.shape[1]
    try:
        log.info("training boosted trees to compare with")
        controls += tree_controls(
            run.data, study.targets, num_classes, run.settings.seed, run.training, _busiest_days(run)
        )
    except MissingPackage as error:
        log.info("boosted trees are left out: %s", error)
    store_controls(run.folder, controls, study.chosen.ids.tolist())


def _busiest_days(run: _Run) -> tuple[FloatArray, FloatArray] | None:
    """Returns what each node did on its busiest days, in what training may see and in the data; None without dates."""
    if not made_of_events(run.data.data):
        return None
    encoding = encoding_of(run.data.data)
    assert encoding is not None
    columns = [column.name for column in encoding.edges if column.kind == "number"]
    ids = [str(name) for name in run.data.targets(None).ids.tolist()]
    file = table_file(run.settings, "events")
    whole = busiest_days(run.settings, file, columns, ids)
    if whole is None or run.settings.cut_off is None:
        return None if whole is None else (whole, whole)
    seen = busiest_days(replace(run.settings, as_of=run.settings.cut_off), file, columns, ids)
    return None if seen is None else (seen, whole)


def _log_advice(record: dict[str, Any], references: list[_Reference], model: Any) -> None:
    """Warns if a model without edges does better than the defended one, unless that was chosen for a size."""
    if record.get("size") or "score" not in record:
        return
    score = max(reference.score for reference in references)
    advice = advice_if_worse(record["score"], score, config_of(model))
    if advice is not None:
        log.warning("%s", advice)
