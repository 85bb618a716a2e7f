"""Makes a run: ``train_run`` trains its model, ``certify_run`` certifies that model or a user's own."""

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.addons import addons
from agnncert.certificates.file import MOST_EXCLUDED_CLASSES
from agnncert.cli.folder import VOTE, Row, RunFolder, card_text, find_run, open_run
from agnncert.cli.inputs import (
    OWN,
    base_name,
    copy_tables,
    describe,
    fresh_model,
    is_module_spec,
    load_data,
    make_division,
    row_origin,
    run_name,
    study_of_run,
    study_of_settings,
    targets_of,
)
from agnncert.cli.report_step import FALSE_POSITIVES, RECALL, Reported, report_certificate
from agnncert.cli.settings import FIT, CertifySettings, TrainSettings
from agnncert.divided.choose_rule import RuleChoice
from agnncert.divisions.named import STACKED
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.models.io import save_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.proving.measures import measured, own_or_any, rare_class
from agnncert.stacked.defence import StackedVotes
from agnncert.stacked.model import StackedModel
from agnncert.stacked.training import with_threshold
from agnncert.study import (
    UNDEFENDED,
    Prediction,
    Study,
    accuracy,
    advice_if_worse,
    certify_model,
    fit_model,
    measures_of,
    part_rows,
    predict,
    usual_arguments,
)
from agnncert.training.settings import SETTINGS, usual_objective

log = logging.getLogger(__name__)

_SCORES = {None: "accuracy", "accuracy": "accuracy", "balanced": "balanced accuracy"}
MOST_EXCLUDED = 50_000  # targets of files that state who cannot get which label; more would take long to verify
SIZES = (*range(11), 15, 20, 25, 30, 40, 50, 75, 100, 125, 150, 200, 300, 400, 500)


@dataclass(frozen=True)
class Trained:
    """What ``train_run`` returns."""

    folder: RunFolder
    settings: TrainSettings  # with nothing left open
    measured: dict[str, float]  # accuracies on the test part, epochs and seconds, by name


def train_run(
    settings: TrainSettings, out: str | Path | None = None, fresh: bool = False, on_progress: OnProgress | None = None
) -> Trained:
    """Trains a model as settings say and leaves it in a run folder.

    An interrupted run continues where it stopped; a finished one is not repeated.

    Args:
        settings: What to train, on what.
        out: The run folder. Defaults to one below ``runs``.
        fresh: Start from the beginning even if the folder holds this run already.
        on_progress: Called after every epoch.
    """
    asked, ready = settings, CanonicalData.of(load_data(settings))
    about = describe(ready, settings)
    settings, division = make_division(_resolved(settings, ready), ready.task, ready.data)
    table, voting_rule = settings.table(), settings.voting_rule(about["class_names"])
    folder = open_run(out, run_name(about, settings), "train", table, about["digest"], fresh)
    with folder.recording():
        folder.begin("train", table, about)
        copy_tables(settings, folder, ready.data)
        rows = folder.rows("train")
        if rows and folder.weights.is_file():
            log.info("%s has been trained already (--fresh trains it again)", folder)
            return Trained(folder, settings, {row["measure"]: row["value"] for row in rows})
        study = _study(settings, ready, division, voting_rule=voting_rule)
        log.info("training %s for at most %d epochs", settings.model, settings.fit["epochs"])
        model, record = _fit(study, folder, "model", "training", on_progress)
        best = f", best after epoch {record['best_epoch']}" if "best_epoch" in record else ""
        log.info("trained in %.1f s%s", record["seconds"], best)
        if not record.get("uses_edges", True):
            others = "" if settings.trusted is None else " that are not trusted"
            log.warning("neighbours%s have no vote: as much is certified at size %g without", others, record["size"])
        save_model(model, folder.weights, {"data": about, "settings": table, "training": record})
        measure = _SCORES.get(record.get("measure"), record.get("measure"))
        scored = f"validation {measure} of the vote"
        if "uses_edges" in record:  # stacked votes are chosen by what they certify
            scored = f"{measure} certified at about size {record['size']:g}, training and validation part"
        values: dict[str, float | None] = {
            scored: record["score"],
            "accuracy on the whole graph": accuracy(study, predict(study, model).label),
            "epochs": record["epochs_run"],
            "seconds of training": round(record["seconds"], 2),
        }
        if settings.references:
            references, score = _train_references(settings, asked, ready, folder, on_progress, model)
            values |= references
            advice = advice_if_worse(record["score"], score, getattr(model, "config", None))
            if advice is not None and not record["size"]:
                log.warning("%s", advice)
        values["accuracy, majority class"] = accuracy(study, study.majority)
        known = {name: value for name, value in values.items() if value is not None}
        origin = row_origin(settings, study, about)
        folder.put_rows("train", [{**origin, "measure": name, "value": value} for name, value in known.items()])
        folder.forget_checkpoints()
        folder.write("MODEL_CARD.md", card_text(folder))
    return Trained(folder, settings, known)


def _resolved(settings: TrainSettings, ready: CanonicalData) -> TrainSettings:
    """The settings with what is usual for the data where they leave something open."""
    name = base_name(settings)
    objective = STACKED if settings.division == STACKED else settings.fit.get("objective")
    model_args, fit_args = usual_arguments(settings.data, ready.data, name, objective)
    usual = {name: SETTINGS[name].default for name in FIT} | {"objective": usual_objective(ready.task), **fit_args}
    of_model = settings.set if is_module_spec(name) or name == "none" else {**model_args, **settings.set}
    return replace(settings, model=name, fit={**usual, **settings.fit}, set=of_model)


def _study(settings: TrainSettings, ready: CanonicalData, division: Any, **how: Any) -> Study:
    """A study that trains a model for a division or for stacked votes, or (None) a plain model."""
    args = settings.fit_arguments() | (
        {} if division is not None and "voting_rule" in division.certify_options else {"size": 0}
    )
    return Study(
        ready, targets_of(ready, None), UNDEFENDED if division is None else division,
        partial(fresh_model, settings, ready.data), fit_args=args, seed=settings.seed, **how,
    )  # fmt: skip


def _fit(
    study: Study, folder: RunFolder, name: str, what: str, on_progress: OnProgress | None
) -> tuple[Any, dict[str, Any]]:
    """A trained model and the record of its training, from a checkpoint with this name if there is one."""
    model, file = study.new_model(), folder.checkpoint(name)
    if file.is_file():
        log.info("going on where an earlier call stopped (%s)", file)
    tell = None if on_progress is None else lambda step: on_progress(replace(step, what=what))
    return fit_model(study, model, study.defence, file, tell)


def _train_references(
    settings: TrainSettings, asked: TrainSettings, ready: CanonicalData, folder: RunFolder,
    on_progress: OnProgress | None, trained: Any,
) -> tuple[dict[str, float | None], float]:  # fmt: skip
    """Accuracies of an undefended model and of one without edges, and the validation accuracy of the latter.

    The models without edges that stacked votes begin with are not trained again; they have no such accuracy (0). The
    undefended model beside them has its own recipe, with what was ``asked`` for.
    """
    shape, record = {} if is_module_spec(settings.model or "") else settings.set, {"score": 0.0}
    is_stacked = isinstance(trained, StackedModel)
    gcn = replace(asked, model="gcn", division=None, set=asked.set if shape else {})
    plain = _study(_resolved(gcn, ready) if is_stacked else settings, ready, None)
    undefended, _ = _fit(plain, folder, "undefended", "training an undefended model", on_progress)
    found = [("undefended", plain, undefended)]
    if not is_stacked:
        no_edges = _study(replace(settings, model="mlp", set=shape), ready, None)
        graph_free, record = _fit(no_edges, folder, "graph_free", "training a model without edges", on_progress)
        found.append(("no edges", no_edges, graph_free))
    elif len(trained.own):
        graph_free = StackedModel(list(trained.own), trained.num_classes, 0, StackedVotes())
        graph_free.use_votes.zero_()
        found.append(("no edges", plain, graph_free))
    values: dict[str, float | None] = {}
    for word, study, model in found:
        said = predict(study, model)
        values[f"accuracy, {word}"] = accuracy(study, said.label)
        values |= _by_class(study, said, word)
    return values, record["score"]


def _by_class(study: Study, found: Prediction, word: str) -> dict[str, float]:
    """Recall and false positive rate of each class of a model without a defence."""
    truth = study.chosen.truth
    if truth is None or not (truth >= 0).any():
        return {}
    holds = np.ones(len(truth), dtype=bool)
    of_class = measured(own_or_any(found.label, holds, found.logits.shape[1]), truth)
    shares = {RECALL: of_class.recall, FALSE_POSITIVES: of_class.false_positive_rate}
    return {f"{name} {k}, {word}": float(s) for name, each in shares.items() for k, s in enumerate(each) if s == s}


@dataclass(frozen=True)
class Certified:
    """What ``certify_run`` returns."""

    folder: RunFolder
    certificate: Certificate
    seconds: float  # of certify
    reported: Reported  # what is proved, what must be read with it, how to verify it; and the page, if it was written


def certify_run(
    settings: CertifySettings,
    out: str | Path | None = None,
    fresh: bool = False,
    report: bool = True,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> Certified:
    """Certifies what settings name and leaves the certificate in a run folder.

    Args:
        settings: ``data`` is the folder of an earlier run, a dataset, or a folder with tables. ``model`` is
            required if the model of the earlier run is code.
        out: The run folder. Defaults to that of the earlier run, or one below ``runs``.
        fresh: Start from the beginning even if ``out`` holds another run.
        report: Whether to write the report as well.
        on_progress: Called while predictions are computed.
        workers: Where predictions are computed. Defaults to this process.
    """
    earlier = find_run(settings.data) if settings.data and Path(settings.data).is_dir() else None
    if earlier is not None and out is not None:
        raise SettingsError(f"the certificate of {earlier} goes into that folder: leave out --out.")
    settings, study = study_of_settings(settings) if earlier is None else study_of_run(earlier, settings)
    about, table = describe(study.ready, settings), settings.table()
    if earlier is not None and "train" in earlier.settings:  # the other settings are stored with the training
        table = {key: value for key, value in table.items() if key in OWN}
    elif earlier is not None:  # where the data came from stays on record, though it is read from the copies
        places = ("data", "nodes", "edges", "graphs", "name")
        stored = earlier.settings["certify"]
        table = {key: value for key, value in table.items() if key not in places}
        table |= {key: stored[key] for key in places if key in stored}
    folder = earlier or open_run(out, run_name(about, settings), "certify", table, about["digest"], fresh)
    with folder.recording():
        folder.forget("attack")  # an earlier attack was on an earlier certificate
        folder.begin("certify", table, about)
        copy_tables(settings, folder, study.data)
        if "train" not in folder.settings:
            save_model(study.new_model(), folder.weights, {"data": about, "settings": table})
        study = _with_chosen_rule(study, settings, folder)
        log.info("certifying with %s", study.defence)
        certificate, seconds = _certify(study, settings, folder, on_progress, workers)
        origin = row_origin(settings, study, about)
        folder.put_rows("certify", [{**origin, **row} for row in _measured(certificate, study, seconds)])
        reported = report_certificate(certificate, folder.certificate, folder, write=report)
        card = card_text(folder, reported.sentences[:2], reported.table, certificate.claim.not_proved)
        folder.write("MODEL_CARD.md", card)
    return Certified(folder, certificate, seconds, reported)


def _with_chosen_rule(study: Study, settings: CertifySettings, folder: RunFolder) -> Study:
    """The study, with a voting rule that is chosen on validation if a perturbation size is given.

    A choice is written to the run folder, where later steps find it.
    """
    (folder.path / VOTE).unlink(missing_ok=True)
    if not settings.chooses:
        return study
    if isinstance(study.defence, StackedVotes):
        return _with_threshold(study, settings, folder)
    protocol = folder.settings.get("train", {}).get("protocol", "transductive")
    if study.task == "node" and protocol != "held-out":
        log.warning(
            "the vote is chosen on validation nodes that were in the graph of training, or may have been: its prior "
            "may come out too large (train with --set protocol=held-out)"
        )
    size = settings.size or 0
    log.info("choosing the vote for size %d on the validation part, which may take minutes", size)
    if settings.false_positive_rate is not None or settings.alerts is not None:
        limits: dict[str, Any] = {"false_positive_rate": settings.false_positive_rate, "alerts": settings.alerts}
        point = study.seeded_defence.choose_threshold(
            study.new_model(), study.data, size=size, protocol=protocol, **limits
        )
        log.info("%s", point)
        chosen = {
            "decides": "threshold",
            "division": str(point.defence),
            **({} if point.voting_rule is None else point.voting_rule.to_json()),
            "chosen": True,
        }
        about = {"size": size, "text": str(point), "constant": None, "candidates": [chosen]}
        folder.write(VOTE, json.dumps(about, indent=2) + "\n")
        return replace(study, voting_rule=point.voting_rule)
    how: dict[str, Any] = {"against": settings.against or "any", "protocol": protocol}
    how["measure"] = settings.measure or _usual_measure(study)
    choice = study.seeded_defence.choose_voting_rule(study.new_model(), study.data, size, **how)
    log.info("%s", choice)
    folder.write(VOTE, json.dumps(_choice_table(choice), indent=2) + "\n")
    return replace(study, defence=choice.division.as_defence(), model=choice.model, voting_rule=choice.voting_rule)


def _with_threshold(study: Study, settings: CertifySettings, folder: RunFolder) -> Study:
    """Stacked votes with a threshold that is chosen on validation; it is part of the model that is certified."""
    if settings.size is not None:
        raise SettingsError("stacked votes are trained for a size, certified at all: pass --size to agnncert train.")
    model, rows = study.new_model(), part_rows(study.ready, "val")
    held_out = replace(study, targets=study.targets[:0] if rows is None else rows)
    positive = int(2 * (held_out.truth == 1).sum() <= len(held_out.truth))
    limits: dict[str, Any] = {"false_positive_rate": settings.false_positive_rate, "alerts": settings.alerts}
    moved = with_threshold(model, study.data, positive=positive, **limits)
    label = predict(held_out, moved).label
    found = measures_of(held_out, label, np.ones(len(label), dtype=bool))
    prior = [round(score, 3) for score in (moved.constant - model.constant).tolist()]
    text = (
        f"threshold {prior}: {(label == positive).sum()} alerts of class {positive} among {len(label):,}, recall "
        f"{found.recall[positive]:.1%}, false positives {found.false_positive_rate[positive]:.1%}"
    )
    log.info("%s", text)
    chosen = {"decides": "threshold", "division": str(study.defence), "prior": prior, "chosen": True}
    about = {"text": text, "scores": moved.constant.tolist(), "candidates": [chosen]}
    folder.write(VOTE, json.dumps(about, indent=2) + "\n")
    return replace(study, model=moved)


def _usual_measure(study: Study) -> str:
    """Balanced if a class is rare in the training part, so that the vote is not chosen for the others alone."""
    rows, y = part_rows(study.ready, "train"), study.data.y
    known = np.zeros(0, dtype=np.int64) if rows is None or y is None else y.reshape(-1).numpy()[rows]
    return "accuracy" if rare_class(np.bincount(known[known >= 0])) is None else "balanced"


def _choice_table(choice: RuleChoice) -> dict[str, Any]:
    """A choice in JSON's terms; ``constant`` describes the model that votes, if it is not that of the run."""
    best = choice.best
    constant = None if best.label is None else {"label": best.label, "classes": len(best.voting_rule.class_prior)}
    candidates = [
        {
            "decides": one.name, "division": str(one.division), **one.voting_rule.to_json(), "chosen": one is best,
            "accuracy": one.accuracy, "certified_accuracy": one.certified_accuracy,
        }
        for one in choice.candidates
    ]  # fmt: skip
    known = {"size": choice.size, "against": choice.against, "targets": choice.num_targets, "text": str(choice)}
    return {**known, "constant": constant, "given_up": choice.given_up, "candidates": candidates}


def _certify(
    study: Study, settings: CertifySettings, folder: RunFolder, on_progress: OnProgress | None, workers: Workers | None
) -> tuple[Certificate, float]:
    """The certificate, saved in the folder without true classes that are all unknown, and the seconds it took."""
    how: dict[str, Any] = {"engine": settings.engine, "tolerance": settings.tolerance, "workers": workers}
    if settings.memory is not None:
        how["memory_limit"] = 1_000_000 * settings.memory
    keeps = (
        settings.engine == "fast" and not settings.edges_only and "checkpoint" in study.seeded_defence.certify_options
    )
    if keeps:  # finished parts are kept if the command is interrupted
        how["checkpoint"] = folder.path / "votes"
    certificate, seconds, _ = certify_model(study, study.new_model(), on_progress, **how)
    total, known = certificate.num_targets, int(certificate.labelled.sum())
    if certificate.truth is not None and not known:
        log.warning("none of the %d targets has a label, so accuracies are left out", total)
        certificate = replace(certificate, truth=None)
    elif certificate.truth is not None and known < total:
        log.info("%d of %d targets have no label: accuracies are shares of the other %d", total - known, total, known)
    few = total <= MOST_EXCLUDED and certificate.counts.shape[1] <= MOST_EXCLUDED_CLASSES
    certificate.save(folder.certificate, exclusions=few)
    log.info("certified %s %ss in %.1f s", f"{total:,}", certificate.claim.task, seconds)
    return certificate, seconds


def _measured(certificate: Certificate, study: Study, seconds: float) -> list[Row]:
    right = np.ones(certificate.num_targets, dtype=bool)
    word, counted = "certified share", certificate.num_targets
    rows: list[Row] = [{"measure": "seconds of certification", "value": round(seconds, 3)}]
    if certificate.truth is not None:
        right, word = certificate.label == certificate.truth, "certified accuracy"
        counted = int(certificate.labelled.sum())
        whole, majority = accuracy(study, predict(study, study.new_model()).label), accuracy(study, study.majority)
        rows.append({"measure": "accuracy of the vote", "value": float(right.sum() / counted)})
        for name, value in (("accuracy on the whole graph", whole), ("accuracy, majority class", majority)):
            rows += [] if value is None else [{"measure": name, "value": value}]
        sizes = [n for n in SIZES if n <= certificate.radius.max(initial=0) + 1]
        found = [one.load()(study, certificate, sizes).items() for one in addons("agnncert.controls").values()]
        shown = [(name, each) for measures in found for name, by_size in measures for each in by_size.items()]
        rows += [{"measure": name, "size": size, "value": value} for name, (size, value) in shown]
    rows.append({"measure": "median radius", "value": float(np.median(certificate.radius))})
    kinds: dict[str, Any] = {word: certificate.radius}
    if certificate.structure_radius is not certificate.radius:
        median = float(np.median(certificate.structure_radius))
        rows.append({"measure": "median radius, added or deleted only", "value": median})
        kinds[f"{word}, added or deleted only"] = certificate.structure_radius
    if (certificate.new_neighbours >= 0).any():
        kinds[f"{word}, new neighbours"] = certificate.new_neighbours
    for measure, certified in kinds.items():
        last = certified[np.isfinite(certified)].max(initial=0)
        shares = {s: float((right & (certified >= s)).sum() / counted) for s in SIZES if s <= last + 1}
        rows += [{"measure": measure, "size": size, "value": share} for size, share in shares.items()]
    return rows
