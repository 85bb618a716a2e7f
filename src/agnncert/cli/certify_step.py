"""Certifies a model, of an earlier step or of the user's own."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.cli.folder import VOTE, Row, RunFolder, find_run, open_run, write_card
from agnncert.cli.inputs import (
    OWN,
    copy_tables,
    describe,
    estimate_certification,
    row_origin,
    run_name,
    study_of_run,
    study_of_settings,
)
from agnncert.cli.report_step import report_certificate
from agnncert.cli.settings import CertifySettings
from agnncert.comparison.rows import size_alone
from agnncert.comparison.runner import Study, accuracy, certify_model, predict
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError
from agnncert.models.io import save_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.training.choose_rule import RuleChoice, choose_voting_rule

log = logging.getLogger(__name__)

BALLOTS = "ballots"  # folder of a run that keeps ballots while they are cast

SIZES = (*range(11), 15, 20, 25, 30, 40, 50, 75, 100, 125, 150, 200, 300, 400, 500)


@dataclass(frozen=True)
class Certified:
    """A finished certification.

    Attributes:
        folder: The run.
        certificate: The certificate, as it was saved.
        seconds: Time of ``certify``.
        page: The report; None if it was not written.
        sentences: What is proved, how it compares, how to verify it.
    """

    folder: RunFolder
    certificate: Certificate
    seconds: float
    page: Path | None
    sentences: tuple[str, ...]


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
        out: The run folder. When not given, that of the earlier run, or one below ``runs``.
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
        copy_tables(settings, folder)
        if "train" not in folder.settings:
            save_model(study.new_model(), folder.weights, {"data": about, "settings": table})
        study, vote = _choose(study, settings, folder)
        origin = row_origin(settings, study.defence, about, vote)
        certificate, seconds = _certify(study, settings, folder, origin, on_progress, vote, workers)
        reported = report_certificate(certificate, folder.certificate, folder) if report else None
    page, sentences = (None, ()) if reported is None else (reported.page, reported.sentences)
    return Certified(folder, certificate, seconds, page, sentences)


def _choose(study: Study, settings: CertifySettings, folder: RunFolder) -> tuple[Study, VotingRule | None]:
    """The study and the voting rule: as set, or chosen on validation for a perturbation size.

    A choice is written to the run folder, where later steps find it.
    """
    (folder.path / VOTE).unlink(missing_ok=True)
    if settings.size is None:
        return study, settings.vote
    protocol = folder.settings.get("train", {}).get("protocol", "transductive")
    if study.task == "node" and protocol != "held-out":
        log.warning(
            "the vote is chosen on validation nodes that were in the graph of training, or may have been: its prior "
            "may come out too large (train with --set protocol=held-out)"
        )
    division, how = study.division, {"against": settings.kind or "any", "protocol": protocol}
    choice = choose_voting_rule(study.new_model(), study.data, division, settings.size, **how)  # type: ignore[arg-type]
    log.info("%s", choice)
    folder.write(VOTE, json.dumps(_choice_table(choice), indent=2) + "\n")
    return replace(study, defence=choice.division, model=choice.model), choice.rule


def _choice_table(choice: RuleChoice) -> dict[str, Any]:
    """A choice in JSON's terms; ``constant`` describes the model that votes, if it is not that of the run."""
    best = choice.best
    constant = None if best.label is None else {"label": best.label, "classes": len(best.rule.class_prior)}
    candidates = [
        {
            "decides": one.name, "division": str(one.division), **one.rule.to_json(), "chosen": one is best,
            "accuracy": one.accuracy, "certified_accuracy": one.certified_accuracy,
        }
        for one in choice.candidates
    ]  # fmt: skip
    known = {"size": choice.size, "against": choice.against, "targets": choice.num_targets, "text": str(choice)}
    return {**known, "constant": constant, "given_up": choice.given_up, "candidates": candidates}


def _certify(
    study: Study,
    settings: CertifySettings,
    folder: RunFolder,
    origin: Row,
    on_progress: OnProgress | None,
    vote: VotingRule | None,
    workers: Workers | None,
) -> tuple[Certificate, float]:
    model = study.new_model()
    log.info("certifying with %s: %s", study.defence, estimate_certification(study, settings.engine))
    memory = None if settings.memory is None else 1_000_000 * settings.memory
    how: dict[str, Any] = {"engine": settings.engine, "tolerance": settings.tolerance}
    if settings.engine == "fast" and not settings.edges_only:  # finished parts are kept if the command is interrupted
        how["checkpoint"] = folder.path / BALLOTS
    certificate, seconds, _ = certify_model(
        study, model, on_progress, memory_limit=memory, rule=vote, workers=workers, **how
    )
    certificate = _with_known_truth(certificate)
    certificate.save(folder.certificate)
    log.info("certified %s %ss in %.1f s", f"{certificate.num_targets:,}", certificate.claim.task, seconds)
    folder.put_rows("certify", [{**origin, **row} for row in _measured(certificate, study, model, seconds)])
    write_card(folder)
    return certificate, seconds


def _with_known_truth(certificate: Certificate) -> Certificate:
    """Drops the true classes if all are unknown; says so if some are."""
    total, known = certificate.num_targets, int(certificate.labelled.sum())
    if certificate.truth is None or known == total:
        return certificate
    if known:
        log.info("%d of %d targets have no label: accuracies are shares of the other %d", total - known, total, known)
        return certificate
    log.warning("none of the %d targets has a label, so accuracies are left out", total)
    return replace(certificate, truth=None)


def _measured(certificate: Certificate, study: Study, model: Any, seconds: float) -> list[Row]:
    right = np.ones(certificate.num_targets, dtype=bool)
    word, counted = "certified share", certificate.num_targets
    rows: list[Row] = [{"measure": "seconds of certification", "value": round(seconds, 3)}]
    if certificate.truth is not None:
        right, word = certificate.label == certificate.truth, "certified accuracy"
        counted = int(certificate.labelled.sum())
        whole, majority = accuracy(study, predict(study, model).label), accuracy(study, study.majority)
        rows.append({"measure": "accuracy of the vote", "value": float(right.sum() / counted)})
        for name, value in (("accuracy on the whole graph", whole), ("accuracy, majority class", majority)):
            rows += [] if value is None else [{"measure": name, "value": value}]
        rows += size_alone(study, [size for size in SIZES if size <= certificate.radius.max(initial=0) + 1])
    rows.append({"measure": "median radius", "value": _median(certificate.radius)})
    kinds: dict[str, Any] = {word: certificate.radius}
    if certificate.structure_radius is not certificate.radius:
        rows.append({"measure": "median radius, added or deleted only", "value": _median(certificate.structure_radius)})
        kinds[f"{word}, added or deleted only"] = certificate.structure_radius
    if (certificate.new_neighbours >= 0).any():
        kinds[f"{word}, new neighbours"] = certificate.new_neighbours
    for measure, certified in kinds.items():
        last = certified[np.isfinite(certified)].max(initial=0)
        shares = {s: float((right & (certified >= s)).sum() / counted) for s in SIZES if s <= last + 1}
        rows += [{"measure": measure, "size": size, "value": share} for size, share in shares.items()]
    return rows


def _median(radii: IntArray) -> float:
    return float(np.median(radii))
