"""Certifies a model, of an earlier step or of the user's own, and writes the report of a certificate."""

import json
import logging
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.addons import addons
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
from agnncert.cli.settings import CertifySettings
from agnncert.comparison.rows import size_alone
from agnncert.comparison.runner import Study, accuracy, certify_model, predict
from agnncert.comparison.threat import BY_SIZE
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError
from agnncert.models.io import save_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.report.figures import save_figures, save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.text import headline, percent, things
from agnncert.training.choose_rule import RuleChoice, choose_voting_rule

log = logging.getLogger(__name__)

UNDER_ATTACK = "accuracy under attack"
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


@dataclass(frozen=True)
class Reported:
    """A report.

    Attributes:
        page: The HTML file.
        files: Figures and tables for papers, if they were asked for.
        sentences: What is proved, how that compares with models that need no proof, how to verify it.
    """

    page: Path
    files: tuple[Path, ...]
    sentences: tuple[str, str, str]


def report_run(source: str | Path, out: str | Path | None = None, papers: str | Path | None = None) -> Reported:
    """Writes the report of a certificate or of the run that holds one.

    Args:
        source: A certificate, or a run folder. What else the folder knows is shown beside the certificate.
        out: The page to write; ``report.html`` beside the certificate when not given.
        papers: A folder for figures (SVG, PDF) and tables (CSV, LaTeX).
    """
    folder = find_run(source)
    file = folder.certificate if folder is not None and Path(source).is_dir() else Path(source)
    return report_certificate(load_certificate(file), file, folder, out, papers)


def report_certificate(
    certificate: Certificate,
    file: Path,
    folder: RunFolder | None,
    out: str | Path | None = None,
    papers: str | Path | None = None,
) -> Reported:
    """Writes the report of a certificate that is loaded already; ``file`` is where it is stored."""
    context = ReportContext() if folder is None else context_of(folder, certificate)
    context = replace(context, certificate_path=str(file), run_path="" if folder is None else str(folder))
    page = build_report(certificate, out or file.with_name("report.html"), context=context)
    files: tuple[Path, ...] = ()
    if papers is not None:
        files = (*save_figures(certificate, papers, context), *save_tables(certificate, papers, context))
    return Reported(page, files, sentences(certificate, context))


def context_of(folder: RunFolder, certificate: Certificate) -> ReportContext:
    """What a run folder knows beyond its certificate."""
    rows, data, steps = folder.rows(), folder.data, folder.settings
    known = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    attacks = [row for row in rows if row["measure"].startswith(UNDER_ATTACK)]
    plain = known.get("accuracy, undefended", known.get("accuracy on the whole graph"))
    on_graphs = certificate.claim.task == "graph"
    no_edges = known.get("accuracy, no edges")
    names = data.get("class_names")
    unit = addons("agnncert.attack_units").get(str(data.get("name")))
    times = {name: known[name] for name in ("seconds of training", "seconds of certification") if name in known}
    return ReportContext(
        class_names=names if names and len(names) == certificate.counts.shape[1] else None,
        dataset=str(data.get("name", "")),
        undefended=plain,
        mlp=None if on_graphs else no_edges,
        bag_of_nodes=no_edges if on_graphs else None,
        majority=known.get("accuracy, majority class"),
        size_only=[
            (row["size"], row["value"]) for row in rows if row["measure"] == BY_SIZE and row["size"] is not None
        ],
        attacked=[(row["size"], row["value"]) for row in attacks],
        attack=attacks[0]["measure"].removeprefix(UNDER_ATTACK).strip(" ()") if attacks else "",
        environment={**folder.read_json("environment.json"), **times},
        commands=[f"agnncert {step} --settings settings.toml" for step in steps],
        choice=str(folder.read_json(VOTE).get("text", "")),
        unit=None if unit is None else unit.load()(certificate),
    )


def sentences(certificate: Certificate, context: ReportContext) -> tuple[str, str, str]:
    """What is proved, how it compares, how to check it."""
    summary = summarise(certificate, context)
    check = f"agnncert verify {shlex.quote(context.certificate_path or 'certificate.cert')}"
    return (
        f"{headline(summary)}.".replace("\u00a0", " "),
        _comparison(summary).replace("\u00a0", " "),
        f"Anyone can check this without trusting the program that made it: {check}",
    )


# What is said of each model beside the vote; {} is its accuracy.
_BESIDE = {
    "undefended": "an undefended GNN for {}, about which nothing is proved",
    "mlp": "an MLP that sees no edges for {}, which needs no proof",
    "majority": "the most frequent class for {}, which needs no proof",
    "bag_of_nodes": "a model that sees no edges for {}",
}


def _comparison(summary: Summary) -> str:
    """The vote without an attack beside the models that need no proof, on the same targets."""
    if summary.truth is None:
        return f"The {things(summary)} have no known labels, so nothing is said about being right."
    right = percent(float(summary.counted.sum() / summary.num_judged))
    vote = f"Without an attack the vote is right for {right} of the"
    known = {key: percent(value) for key, _, value in summary.references}
    others = [words.format(known[key]) for key, words in _BESIDE.items() if key in known]
    if summary.context.size_only:
        others.append(f"the number of nodes or edges alone for {percent(min(summary.context.size_only)[1])}")
    return "; ".join([f"{vote} {things(summary)}", *others]) + "."
