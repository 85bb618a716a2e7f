"""The step that certifies: ``certify_run`` certifies the model of an earlier run, or any model on any graph."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.addons import addons
from agnncert.certificates.file import MOST_EXCLUDED_CLASSES
from agnncert.certificates.theorem_facts import division_words
from agnncert.certifier import choose_threshold
from agnncert.cli.controls_step import add_scores, rows_of_controls
from agnncert.cli.data import copy_tables, describe
from agnncert.cli.folder import CHOICE, Row, RunFolder, find_run, open_run
from agnncert.cli.model_card import Proved, card_text
from agnncert.cli.report_step import Reported, report_certificate
from agnncert.cli.settings import CertifySettings
from agnncert.cli.studies import CERTIFY_ONLY, row_origin, run_name, study_of_run, study_of_settings
from agnncert.defence import OperatingPoint
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError
from agnncert.models.io import save_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.study import Study, accuracy, certify_model, labels_on_whole_graph

log = logging.getLogger(__name__)

MOST_EXCLUDED = 50_000  # targets of files that state who cannot get which label; more would take long to verify
SIZES = (*range(11), 15, 20, 25, 30, 40, 50, 75, 100, 125, 150, 200, 300, 400, 500)
# Where data came from stays on record, though it is read from copies.
_PLACES = ("data", "nodes", "edges", "graphs", "pairs", "name")


@dataclass(frozen=True)
class Certified:
    """What ``certify_run`` returns.

    Attributes:
        folder: The run folder.
        certificate: The certificate.
        seconds: The seconds that ``certify`` took.
        reported: What is proved, what must be read with it, how to verify it, and the page, if it was written.
    """

    folder: RunFolder
    certificate: Certificate
    seconds: float
    reported: Reported


def certify_run(
    settings: CertifySettings,
    out: str | Path | None = None,
    fresh: bool = False,
    report: bool = True,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
    *,
    scores: Path | None = None,
) -> Certified:
    """Certifies what settings name and leaves the certificate in a run folder.

    Args:
        settings: ``data`` is the folder of an earlier run, a dataset, or a folder with tables. ``model`` is
            required if the model of the earlier run is code.
        out: The run folder. Defaults to that of the earlier run, or one below ``runs``.
        fresh: Start from the beginning even if ``out`` holds another run.
        report: Whether to write the report as well.
        on_progress: Called while a table of events is read, and while predictions are computed.
        workers: Where predictions are computed. Defaults to this process.
        scores: A table with the user's own scores, which become one more control. None by default.
    """
    earlier = find_run(settings.data) if settings.data and Path(settings.data).is_dir() else None
    if earlier is not None and out is not None:
        raise SettingsError(f"the certificate of {earlier} goes into that folder: leave out --out.")
    if earlier is None:
        settings, study = study_of_settings(settings, on_progress)
    else:
        settings, study = study_of_run(earlier, settings, on_progress)
    about = describe(study.ready, settings)
    table = _table(settings, earlier)
    folder = earlier or open_run(out, run_name(about, settings), "certify", table, about["digest"], fresh)
    with folder.recording():
        folder.forget("attack")  # an earlier attack was on an earlier certificate
        folder.begin("certify", table, about)
        copy_tables(settings, folder, study.data)
        if "train" not in folder.settings:
            save_model(study.new_model(), folder.weights, {"data": about, "settings": table})
        folder.forget_choice()
        if settings.chooses:
            study = _with_choice(study, settings, folder)
        log.info("certifying with %s", division_words(str(study.defence)))
        certificate, seconds = _certify(study, settings, folder, on_progress, workers)
        origin = row_origin(settings, study, about, certificate)
        if scores is not None:
            add_scores(folder, certificate, scores, settings.positive)
        rows = [{**origin, **row} for row in _measured(certificate, study, seconds)]
        reported = _report(certificate, folder, rows, write=report)
        folder.put_rows("certify", rows + [{**origin, **row} for row in rows_of_controls(reported.controls)])
    return Certified(folder, certificate, seconds, reported)


def _report(certificate: Certificate, folder: RunFolder, rows: list[Row], write: bool) -> Reported:
    """Stores what was measured, and writes the report and the card of the model, which read it."""
    folder.put_rows("certify", rows)
    reported = report_certificate(certificate, folder.certificate, folder, write=write)
    proved = Proved(reported.sentences[:2], reported.table, certificate.claim.not_proved)
    folder.write("MODEL_CARD.md", card_text(folder, proved))
    return reported


def _table(settings: CertifySettings, earlier: RunFolder | None) -> dict[str, Any]:
    """Returns the settings as the run folder stores them, beside those of an earlier step."""
    table = settings.table()
    if earlier is None:
        return table
    steps = earlier.settings
    if "train" in steps:  # the other settings are stored with the training
        return {key: value for key, value in table.items() if key in CERTIFY_ONLY}
    others = {key: value for key, value in table.items() if key not in _PLACES}
    return others | {key: value for key, value in steps["certify"].items() if key in _PLACES}


def _with_choice(study: Study, settings: CertifySettings, folder: RunFolder) -> Study:
    """Returns the study with the voting rule or threshold that is chosen on the validation part.

    The choice is written to the run folder. If it changes the model, the certified model is too, for later steps.

    Raises:
        SettingsError: The defence has no voting rule, or no threshold, or was trained for a size.
    """
    defence = study.seeded_defence
    if settings.size is not None and "size" in defence.setting_names(settings.division or ""):
        raise SettingsError(f"{defence} is trained for a size, and certified at all: pass --size to agnncert train.")
    protocol = folder.settings.get("train", {}).get("protocol", "transductive")
    if study.task == "node" and protocol != "held-out" and "voting_rule" in defence.certify_options:
        log.warning(
            "the vote is chosen on validation nodes that were in the graph of training, or may have been: its prior "
            "may come out too large (train with --set protocol=held-out)"
        )
    log.info("choosing on the validation part for size %d, which may take minutes", settings.size or 0)
    model = study.new_model()
    choice = _choose(study, settings, model, protocol)
    log.info("%s", choice)
    folder.write(CHOICE, json.dumps(choice.to_json(), indent=2) + "\n")
    if choice.model is not model:
        save_model(choice.model, folder.certified_weights, {"choice": str(choice)})
    point = choice if isinstance(choice, OperatingPoint) else None
    return replace(study, defence=choice.as_defence(), model=choice.model, voting_rule=None, point=point)


def _choose(study: Study, settings: CertifySettings, model: Any, protocol: str) -> Any:
    """Returns what the defence chooses: a threshold if a limit is given, else a voting rule."""
    size = settings.size or 0
    if settings.false_positive_rate is not None or settings.alerts is not None:
        positive = settings.positive
        return choose_threshold(
            model,
            study.data,
            study.seeded_defence,
            false_positive_rate=settings.false_positive_rate,
            confidence=settings.confidence,
            alerts=settings.alerts,
            days=settings.days,
            positive=int(positive) if positive is not None and positive.isdecimal() else positive,
            as_of=settings.as_of,
            size=size,
            protocol=protocol,
        )
    usual_measure = "accuracy" if study.rare is None else "balanced"  # so that a rare class counts too
    return study.seeded_defence.choose_voting_rule(
        model,
        study.data,
        size,
        against=settings.against or "any",
        protocol=protocol,
        measure=settings.measure or usual_measure,
    )


def _certify(
    study: Study, settings: CertifySettings, folder: RunFolder, on_progress: OnProgress | None, workers: Workers | None
) -> tuple[Certificate, float]:
    """Saves the certificate in the folder, without true classes that are all unknown; returns it and its seconds."""
    options: dict[str, Any] = {"tolerance": settings.tolerance, "workers": workers}
    if settings.engine != "fast":  # which is the default, also of defences that have no other
        options["engine"] = settings.engine
    if settings.memory is not None:
        options["memory_limit"] = 1_000_000 * settings.memory
    checkpoint = folder.path / "votes"
    if study.seeded_defence.keeps_checkpoint("naive" if settings.engine == "naive" else "fast"):
        options["checkpoint"] = checkpoint  # an interrupted command goes on from there
    certificate, seconds, _ = certify_model(study, study.new_model(), on_progress, **options)
    if checkpoint.is_file():
        checkpoint.unlink()
    certificate = _without_unknown_truth(certificate)
    is_small = certificate.num_targets <= MOST_EXCLUDED and certificate.counts.shape[1] <= MOST_EXCLUDED_CLASSES
    certificate.save(folder.certificate, exclusions=is_small)
    log.info("certified %s %ss in %.1f s", f"{certificate.num_targets:,}", certificate.claim.task, seconds)
    return certificate, seconds


def _without_unknown_truth(certificate: Certificate) -> Certificate:
    """Returns the certificate without true classes if all of them are unknown, and logs how many are."""
    if certificate.truth is None:
        return certificate
    total = certificate.num_targets
    known = int(certificate.labelled.sum())
    if not known:
        log.warning("none of the %d targets has a label, so accuracies are left out", total)
        return replace(certificate, truth=None)
    if known < total:
        log.info("%d of %d targets have no label: accuracies are shares of the other %d", total - known, total, known)
    return certificate


def _measured(certificate: Certificate, study: Study, seconds: float) -> list[Row]:
    """Returns what is certified, as rows of results."""
    rows: list[Row] = [{"measure": "seconds of certification", "value": round(seconds, 3)}]
    right = np.ones(certificate.num_targets, dtype=bool)
    counted = certificate.num_targets
    word = "certified share"
    if certificate.truth is not None:
        right = certificate.label == certificate.truth
        counted = int(certificate.labelled.sum())
        word = "certified accuracy"
        rows.append({"measure": "accuracy of the vote", "value": float(right.sum() / counted)})
        rows += _rows_of_references(study)
        rows += [] if study.task == "pair" else _rows_of_controls(certificate, study)
    rows.append({"measure": "median radius", "value": float(np.median(certificate.radius))})
    radii: dict[str, Any] = {word: certificate.radius}
    if certificate.structure_radius is not certificate.radius:
        median = float(np.median(certificate.structure_radius))
        rows.append({"measure": "median radius, added or deleted only", "value": median})
        radii[f"{word}, added or deleted only"] = certificate.structure_radius
    if (certificate.new_neighbours >= 0).any():
        radii[f"{word}, new neighbours"] = certificate.new_neighbours
    for measure, radius in radii.items():
        last = radius[np.isfinite(radius)].max(initial=0)
        for size in SIZES:
            if size <= last + 1:
                share = float((right & (radius >= size)).sum() / counted)
                rows.append({"measure": measure, "size": size, "value": share})
    return rows


def _rows_of_references(study: Study) -> list[Row]:
    """Returns the accuracies of the model without a defence, and of the most frequent class."""
    values = {
        "accuracy on the whole graph": accuracy(study, labels_on_whole_graph(study, study.new_model())),
        "accuracy, majority class": accuracy(study, study.majority),
    }
    return [{"measure": name, "value": value} for name, value in values.items() if value is not None]


def _rows_of_controls(certificate: Certificate, study: Study) -> list[Row]:
    """Returns the measures that packages show beside the certified ones."""
    sizes = [size for size in SIZES if size <= certificate.radius.max(initial=0) + 1]
    rows = []
    for control in addons("agnncert.controls").values():
        for name, by_size in control.load()(study, certificate, sizes).items():
            rows += [{"measure": name, "size": size, "value": value} for size, value in by_size.items()]
    return rows
