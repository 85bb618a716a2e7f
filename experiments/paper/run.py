"""Runs of the paper's experiments: the runner does them, and each becomes a row in a file.

A *setting* trains and certifies one model. A *contest* is one defence among several, as in the paper's comparisons:
with Bi-RS under node injection on the node datasets; with GNNCert-E under changes of edges, and with GNNCert-EN under
changes of edges and features, on the graph datasets. Contests have a command of their own, which goes on where it
stopped:

    python -m experiments.paper.run [--root FOLDER] [--only DATASET ...]
"""

import argparse
import logging
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert import __version__
from agnncert.certificates.budget import Budget
from agnncert.cli.folder import environment
from agnncert.datasets.catalog import dataset_info
from agnncert.datasets.load import load_dataset
from agnncert.datasets.splits import dataset_digest
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.named import division_named, named_divisions
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.study import Study, accuracy
from agnncert.training.settings import tuned_arguments
from agnncert.undefended import UNDEFENDED
from agnncert_peers.deletions import BiRS
from agnncert_peers.runner import Outcome, make_study, run
from agnncert_peers.samples import SampleEvidence
from agnncert_peers.threat import Threat
from experiments.paper.rows import Row, append_row, read_rows, row_key
from experiments.paper.spec import NODE_SETS, Contest, Run, Setting, contests

log = logging.getLogger(__name__)

# Sizes at which certified accuracy is stored: every one up to 50, then every tenth up to half of the largest T.
SIZES = (*range(50), *range(50, 210, 10))
ROWS = Path("experiments/results/comparisons.jsonl")
NODE_SIZES = (*range(4), 5, 7, *range(10, 61, 5), *range(70, 101, 10), 120, 140, 150, 200)
GRAPH_SIZES = tuple(range(21))
EDGES_PER_INJECTED = (1, 5, 20, float("inf"))
TESTS = ("B2", "sharp", "legacy-unsound")

# GNNCert's votes read all nodes of a graph, so each can be right by itself: on the validation set of PROTEINS the
# balanced objective did better than the loss of the vote. Its epochs cost many plain ones, and scoring 900 votes of
# every validation graph costs more than an epoch; hence fewer epochs and fewer evaluations.
_ALL_NODES = {"objective": "balanced", "epochs": 20, "groups_per_step": 4}
FIT: dict[str, dict[str, Any]] = {
    "gnncert-e": {**_ALL_NODES, "evaluate_every": 4},
    "gnncert-en": {**_ALL_NODES, "evaluate_every": 20, "patience": None},
}


def run_all(
    wanted: Iterable[Run],
    file: Path,
    root: str | Path | None = None,
    progress: OnProgress | None = None,
    folder: Path | None = None,
) -> list[Row]:
    """Rows of all runs: those that the file has already, and the others, run and appended one by one.

    A row that was made with another recipe than today's is made again.

    Args:
        wanted: What to run.
        file: The file of rows.
        root: Folder that holds the datasets.
        progress: Called after every epoch of a setting.
        folder: Where certificates and unfinished work of contests are kept, if anywhere.
    """
    stored: dict[str, Row] = {row["key"]: row for row in read_rows(file)}
    rows = []
    for job in dict.fromkeys(wanted):
        key = row_key(job.to_json())
        row = stored.get(key)
        if row is None or not is_current(row, job):
            log.debug("running %s", job)
            row = run_one(job, root, progress, folder)
            append_row(file, row)
        rows.append(row)
    return rows


def run_one(
    job: Run, root: str | Path | None = None, progress: OnProgress | None = None, folder: Path | None = None
) -> Row:
    """The row of one run; arguments as in ``run_all``."""
    new = run_setting(job, root, progress) if isinstance(job, Setting) else run_contest(job, root, folder)
    return {"key": row_key(job.to_json()), **new}


def is_current(row: Row, job: Run) -> bool:
    """Whether a row was made with the recipe that its run has today."""
    model_args, fit_args = recipe_of(job)
    return bool(row["recipe"] == {"model": model_args, "fit": fit_args})


def recipe_of(job: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit``."""
    task = dataset_info(job.dataset).task
    if isinstance(job, Contest):
        model_args, fit_args = tuned_arguments(job.dataset, task)
        return model_args, fit_args | FIT.get(job.defence, {})
    model_args, fit_args = tuned_arguments(job.dataset, task, job.model)
    if job.num_layers is not None:
        model_args["num_layers"] = job.num_layers
    return model_args, fit_args


def run_setting(setting: Setting, root: str | Path | None = None, progress: OnProgress | None = None) -> Row:
    """Trains and certifies one model; everything measured in one row."""
    data = load_dataset(setting.dataset, root=root, seed=setting.seed, split="by-class")
    model_args, fit_args = recipe_of(setting)
    defence: Any = UNDEFENDED
    if setting.division != "none":
        defence = division_named(setting.division, setting.num_groups, setting.hash)
    on_subgraphs = defence != UNDEFENDED and setting.objective != "full"
    how = {**fit_args, "protocol": setting.protocol, "objective": setting.objective if on_subgraphs else None}
    study = make_study(
        data, model=setting.model, model_args=model_args, fit_args=how, seed=setting.seed, defence=defence,
    )  # fmt: skip
    outcome = run(study, progress=progress, plain_training=not on_subgraphs)
    record = outcome.record
    row: Row = {
        "setting": setting.to_json(),
        "recipe": {"model": model_args, "fit": fit_args},
        "digest": dataset_digest(study.ready),
        "version": __version__,
        "environment": machine(),
        "seconds_training": round(outcome.seconds_training, 2),
        "seconds_per_epoch": round(record["seconds_per_epoch"], 4),
        "epochs": record["epochs_run"],
        "best_epoch": record["best_epoch"],
        "targets": len(study.targets),
        "accuracy_whole_graph": _share(accuracy(study, outcome.plain)),
        "accuracy_majority": _share(accuracy(study, study.majority)),
        "seconds_plain_forward": round(outcome.seconds_forward, 4),
    }
    return row if outcome.certificate is None else {**row, **_certified(study, outcome, outcome.certificate)}


def machine() -> dict[str, Any]:
    """What the seconds of a row depend on: versions, kind of machine, threads, and how busy the machine was."""
    load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    return {**environment(), "threads": torch.get_num_threads(), **load}


def _certified(study: Study, outcome: Outcome, certificate: Certificate) -> Row:
    evidence: Any = certificate.evidence
    assert isinstance(evidence, VoteEvidence)  # settings name divisions alone
    votes, right = evidence.votes, certificate.label == study.truth
    row: Row = {
        "seconds_certification": round(outcome.seconds_casting, 4),  # of a prepared graph and an audited model
        "seconds_end_to_end": round(outcome.seconds_certification, 4),
        "accuracy": _share(right.mean()),
        "sizes": list(SIZES),
        "certified": [_share((right & (certificate.radius >= size)).mean()) for size in SIZES],
        "median_radius": float(np.median(certificate.radius)),
        "unstable_votes": int((~votes.stable).sum() + (votes.num_unlisted * ~votes.default_stable).sum()),
        "reached_votes": round(float(votes.reached.sum() / (votes.num_groups * max(1, votes.num_targets))), 5),
    }
    if study.task == "node":
        neighbours = certificate.new_neighbours
        return row | {
            **no_edge_facts(study, certificate),
            "certified_neighbours": [_share((right & (neighbours >= size)).mean()) for size in SIZES],
        }
    unlimited_edges = certificate.holds_against(Budget(add_edges=math.inf, delete_edges=math.inf))
    return row | {"certified_unlimited_edges": _share((right & unlimited_edges).mean())}


def no_edge_facts(study: Study, certificate: Certificate | None) -> Row:
    """How much of the vote on nodes is the prediction without edges; empty where there is no such vote."""
    evidence = None if certificate is None else certificate.evidence
    if certificate is None or not isinstance(evidence, VoteEvidence) or study.task != "node":
        return {}
    no_edge = evidence.votes.default
    return {
        "accuracy_no_edge": _share((no_edge == study.truth).mean()),
        "vote_differs_from_no_edge": _share((no_edge != certificate.label).mean()),
    }


def _share(value: Any) -> float:
    return round(float(value), 4)


def make_defence(contest: Contest) -> Any:
    """The defence that a contest names."""
    if contest.defence == "bi-rs":
        return BiRS(contest.p_edge, contest.p_node)
    name = contest.defence.removesuffix("-centric")
    return division_named(name, contest.num_groups) if name in named_divisions() else contest.defence


@dataclass(frozen=True)
class EvenSplit(Threat):
    """Edges and features in equal parts; one edge more where the size is odd."""

    def budgets(self, size: int) -> Iterator[Budget]:
        """Every way to add and delete the edges."""
        for deleted in range((size + 1) // 2 + 1):
            yield Budget(add_edges=(size + 1) // 2 - deleted, delete_edges=deleted, change_features=size // 2)


def threats(task: str) -> dict[str, Threat]:
    """The attacks of the three comparisons, by name."""
    if task == "node":
        return {f"injection, tau={tau:g}": Threat("injection", tau) for tau in EDGES_PER_INJECTED}
    both = "edges and features"
    return {"edges": Threat("edges"), both: Threat(both), f"{both}, even": EvenSplit(both)}


def run_contest(contest: Contest, root: str | Path | None = None, folder: Path | None = None) -> Row:
    """Trains, certifies and measures one defence; everything in one row."""
    data = load_dataset(contest.dataset, root=root, seed=contest.seed, split="by-class")
    study = make_study(
        data, fit_args=FIT.get(contest.defence), seed=contest.seed, defence=make_defence(contest),
        samples={"selection": 100, "samples": contest.samples or 1, "alpha": 0.01, "scope": "each target"},
    )  # fmt: skip
    outcome = run(study, folder)
    certificate = outcome.certificate
    sizes = NODE_SIZES if study.task == "node" else GRAPH_SIZES
    return {
        "setting": contest.to_json(),
        "recipe": {"model": dict(study.model_args), "fit": dict(study.fit_args)},
        "version": __version__,
        "environment": machine(),
        "digests": {"data": dataset_digest(study.ready), **(certificate.claim.digests if certificate else {})},
        "targets": len(study.targets),
        "guarantee": outcome.guarantee,
        "accuracy": _share((outcome.label == study.truth).mean()),
        "accuracy_majority": _share((study.truth == study.majority).mean()),
        "sizes": list(sizes),
        "certified": _curves(study, outcome, sizes),
        "forward_passes": outcome.passes,
        "seconds_training": round(outcome.seconds_training, 2),
        "seconds_certification": round(outcome.seconds_certification, 3),
        "seconds_forward": round(outcome.seconds_forward, 5),
        **no_edge_facts(study, certificate),
    }


def _curves(study: Study, outcome: Outcome, sizes: tuple[int, ...]) -> dict[str, dict[str, list[float]]]:
    """Share of correct and certified labels by rule, attack and size."""
    right, curves = outcome.label == study.truth, dict[str, dict[str, list[float]]]()
    for name, threat in threats(study.task).items():
        for rule, withstood in _withstood(study, outcome, threat, sizes):
            curves.setdefault(rule, {})[name] = [_share((right & (withstood >= size)).mean()) for size in sizes]
    return curves


def _withstood(study: Study, outcome: Outcome, threat: Threat, sizes: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Name of a rule, and what each target withstands by it: as we certify it, and as it was published."""
    certificate = outcome.certificate
    if certificate is None:
        yield "certified", threat.withstood_without_certificate(outcome.defence, study.task, len(study.targets))
        return
    for rule, retested in _by_test(certificate):
        yield rule, threat.withstood(retested, sizes)
    published = _published(certificate, threat)
    if published is not None:
        yield "published rule", published


def _by_test(certificate: Certificate) -> Iterator[tuple[str, Certificate]]:
    """The same samples of Bi-RS under its different tests."""
    evidence = certificate.evidence
    if not isinstance(evidence, SampleEvidence):
        yield "certified", certificate
        return
    bi_rs: Any = evidence.noise
    for test in TESTS:
        noise = replace(bi_rs, test=test)
        yield ("certified" if test == "B2" else test, replace(certificate, evidence=replace(evidence, noise=noise)))


def _published(certificate: Certificate, threat: Threat) -> Any:
    """What each target withstands by the paper's own rule; None for defences and attacks without such a rule.

    Edge-centric: every edge of an injected node counts, so the radius is divided by tau. GNNCert-EN: an edge
    or a node moves T votes of T * T, so the radius is divided by T.
    """
    rule = getattr(certificate.evidence, "theorem", "")
    if rule == "edge-centric/node":
        tau = threat.edges_per_injected
        return np.where(certificate.radius < 0, -1, 0 if np.isinf(tau) else certificate.radius // tau)
    if rule == "node-centric/node":
        return certificate.radius
    if rule == "gnncert-en/graph" and threat.kind == "edges and features":
        return certificate.radius // int(np.sqrt(certificate.claim.num_groups))
    return None


def main() -> None:
    """Entry point of ``python -m experiments.paper.run``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="folder that holds the datasets")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--keep", type=Path, help="folder for certificates and unfinished work")
    parser.add_argument("--only", nargs="*", default=[*NODE_SETS, "aids", "proteins", "mutag", "dd"])
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s")
    log.setLevel(logging.DEBUG)  # `python -m experiments` announces runs in words of its own
    for dataset in options.only:
        run_all(contests(dataset), options.rows, options.root, folder=options.keep)


if __name__ == "__main__":
    main()
