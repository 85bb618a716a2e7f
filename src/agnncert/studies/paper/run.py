"""From a setting of the paper's experiments to its row: run by the common runner, measured, stored."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert import __version__
from agnncert.datasets import dataset_digest, load_dataset
from agnncert.datasets.catalog import dataset_info
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.progress import OnProgress
from agnncert.proof.budget import Budget
from agnncert.proof.certificate import Certificate
from agnncert.proof.evidence import BallotEvidence
from agnncert.studies.folder import environment
from agnncert.studies.paper.rows import Row, append_row, read_rows, row_key
from agnncert.studies.paper.spec import Run, Setting
from agnncert.studies.run import UNDEFENDED, Outcome, Study, accuracy, make_study, run
from agnncert.training.settings import recipe

# Sizes at which certified accuracy is stored: every one up to 50, then every tenth up to half of the largest T.
SIZES = (*range(50), *range(50, 210, 10))


def make_rows(
    wanted: Iterable[Run],
    file: Path,
    is_current: Callable[[Row, Any], bool],
    make: Callable[[Any], Row],
    each: Callable[[int, int, Any, Row | None], None] | None = None,
) -> list[Row]:
    """Rows of all runs: those that the file has already, and the others, made and appended one by one.

    Args:
        wanted: What to run.
        file: The file of rows.
        is_current: Whether a row was made with the recipe that its run has today; if not it is made again.
        make: Runs one and returns its row.
        each: Told of every run before it is made: number, how many, the run, and its row if there is one.
    """
    runs = list(dict.fromkeys(wanted))
    stored = {row["key"]: row for row in read_rows(file)}
    rows = []
    for number, one in enumerate(runs, start=1):
        key = row_key(one.to_json())
        row = stored.get(key)
        row = row if row is not None and is_current(row, one) else None
        if each is not None:
            each(number, len(runs), one, row)
        if row is None:
            row = {"key": key, **make(one)}
            append_row(file, row)
        rows.append(row)
    return rows


def run_all(
    settings: Iterable[Setting], file: Path, root: str | Path | None = None, progress: OnProgress | None = None
) -> list[Row]:
    """Rows of all settings; those that the file has already are not run again.

    Args:
        settings: What to run.
        file: The file of rows.
        root: Folder that holds the datasets.
        progress: Told of every epoch.
    """
    return make_rows(settings, file, is_current, lambda setting: run_setting(setting, root, progress))


def is_current(row: Row, setting: Setting) -> bool:
    """Whether a row was made with the recipe that its setting has today."""
    model_args, fit_args = recipe_of(setting)
    return bool(row["recipe"] == {"model": model_args, "fit": fit_args})


def recipe_of(setting: Setting) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit``."""
    model_args, fit_args = recipe(setting.dataset, dataset_info(setting.dataset).task, setting.model)
    if setting.num_layers is not None:
        model_args["num_layers"] = setting.num_layers
    return model_args, fit_args


def division_of(setting: Setting) -> EdgeCentric | NodeCentric | None:
    """The division that a setting names."""
    if setting.division == "none":
        return None
    kind = EdgeCentric if setting.division == "edge" else NodeCentric
    return kind(setting.num_groups, setting.hash)


def run_setting(setting: Setting, root: str | Path | None = None, progress: OnProgress | None = None) -> Row:
    """Trains and certifies one model; everything measured in one row."""
    data = load_dataset(setting.dataset, root=root, seed=setting.seed)
    model_args, fit_args = recipe_of(setting)
    division = division_of(setting)
    on_subgraphs = division is not None and setting.objective != "full"
    how = {**fit_args, "protocol": setting.protocol, "objective": setting.objective if on_subgraphs else None}
    study = make_study(
        data, model=setting.model, model_args=model_args, fit_args=how, seed=setting.seed,
        defence=UNDEFENDED if division is None else division,
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
    """What the seconds of a row depend on, with how busy the machine was."""
    load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    return {**environment(), "threads": torch.get_num_threads(), **load}


def _certified(study: Study, outcome: Outcome, certificate: Certificate) -> Row:
    evidence: Any = certificate.evidence
    assert isinstance(evidence, BallotEvidence)  # settings name divisions alone
    votes, right = evidence.votes, certificate.label == study.truth
    row: Row = {
        "seconds_certification": round(outcome.seconds_casting, 4),  # of a prepared graph and an audited model
        "seconds_end_to_end": round(outcome.seconds_certification, 4),
        "accuracy": _share(right.mean()),
        "sizes": list(SIZES),
        "certified": [_share((right & (certificate.radius >= size)).mean()) for size in SIZES],
        "median_radius": float(np.median(certificate.radius)),
        "unstable_ballots": int((~votes.stable).sum() + (votes.num_unlisted * ~votes.default_stable).sum()),
        "reached_ballots": round(float(votes.reached.sum() / (votes.num_groups * max(1, votes.num_targets))), 5),
    }
    if study.task == "node":
        neighbours = certificate.new_neighbours
        return row | {
            **edgeless_facts(study, certificate),
            "certified_neighbours": [_share((right & (neighbours >= size)).mean()) for size in SIZES],
        }
    unlimited_edges = certificate.holds_against(Budget(add_edges=math.inf, delete_edges=math.inf))
    return row | {"certified_unlimited_edges": _share((right & unlimited_edges).mean())}


def edgeless_facts(study: Study, certificate: Certificate | None) -> Row:
    """How much of the vote on nodes is the prediction without edges; empty where there is no such vote."""
    evidence = None if certificate is None else certificate.evidence
    if certificate is None or not isinstance(evidence, BallotEvidence) or study.task != "node":
        return {}
    edgeless = evidence.votes.default
    return {
        "accuracy_edgeless": _share((edgeless == study.truth).mean()),
        "vote_differs_from_edgeless": _share((edgeless != certificate.label).mean()),
    }


def _share(value: Any) -> float:
    return round(float(value), 4)
