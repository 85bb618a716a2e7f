"""Runs settings and leaves rows: train, certify, compare with the models that need no proof."""

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert import __version__
from agnncert.datasets import dataset_digest, load_dataset
from agnncert.datasets.catalog import dataset_info
from agnncert.divisions import Division, EdgeCentric, NodeCentric, rule_of
from agnncert.graphs.graph import canonical, canonical_set, infer_task
from agnncert.models import build_model
from agnncert.proof.budget import Budget
from agnncert.proof.evidence import BallotEvidence
from agnncert.studies.folder import environment
from agnncert.studies.paper.rows import Row, append_row, read_rows, row_key
from agnncert.studies.paper.spec import Setting
from agnncert.training import Step, fit
from agnncert.training.settings import recipe
from agnncert.voting.call import bind
from agnncert.voting.cast import cast

# Sizes at which certified accuracy is stored: every one up to 50, then every tenth up to half of the largest T.
SIZES = (*range(50), *range(50, 210, 10))


def run_all(
    settings: Iterable[Setting],
    file: Path,
    root: str | Path | None = None,
    each: Callable[[int, int, Setting, Row | None], None] | None = None,
    progress: Callable[[Step], None] | None = None,
) -> list[Row]:
    """Rows of all settings: those that the file has already, and the others, run and appended one by one.

    A row that was made with another recipe than today's is made again.

    Args:
        settings: What to run.
        file: The file of rows.
        root: Folder that holds the datasets.
        each: Told of every setting before it is run: number, how many, setting, and its row if there is one.
        progress: Told of every epoch.
    """
    wanted = list(dict.fromkeys(settings))
    done = {row["key"]: row for row in read_rows(file)}
    rows = []
    for number, setting in enumerate(wanted, start=1):
        key = row_key(setting.to_json())
        row = done.get(key)
        row = row if row is not None and is_current(row, setting) else None
        if each is not None:
            each(number, len(wanted), setting, row)
        if row is None:
            row = {"key": key, **run_setting(setting, root, progress)}
            append_row(file, row)
        rows.append(row)
    return rows


def is_current(row: Row, setting: Setting) -> bool:
    """Whether a row was made with the recipe that its setting has today."""
    model_args, fit_args = recipe_of(setting)
    return bool(row["recipe"] == {"model": model_args, "fit": fit_args})


def recipe_of(setting: Setting) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for ``build_model`` and for ``fit``."""
    model_args, fit_args = recipe(setting.dataset, dataset_info(setting.dataset).task)
    if setting.num_layers is not None:
        model_args = {**model_args, "num_layers": setting.num_layers}
    elif setting.model == "resgcn":
        model_args.pop("num_layers", None)
    return model_args, fit_args


def division_of(setting: Setting) -> EdgeCentric | NodeCentric | None:
    """The division that a setting names."""
    if setting.division == "none":
        return None
    kind = EdgeCentric if setting.division == "edge" else NodeCentric
    return kind(setting.num_groups, setting.hash)


def run_setting(
    setting: Setting, root: str | Path | None = None, progress: Callable[[Step], None] | None = None
) -> Row:
    """Trains and certifies one model; everything measured in one row."""
    data = load_dataset(setting.dataset, root=root, seed=setting.seed)
    task = infer_task(data)
    model_args, fit_args = recipe_of(setting)
    model = build_model(setting.model, data, seed=setting.seed, **model_args)
    division = division_of(setting)
    in_training = None if setting.objective == "full" else division
    begin = time.perf_counter()
    fit(
        model,
        data,
        in_training,
        objective=None if in_training is None else setting.objective,  # type: ignore[arg-type]
        protocol=setting.protocol,  # type: ignore[arg-type]
        seed=setting.seed,
        progress=progress,
        **fit_args,
    )
    trained = time.perf_counter() - begin
    record: Any = model.training_record
    row: Row = {
        "setting": setting.to_json(),
        "recipe": {"model": model_args, "fit": fit_args},
        "digest": dataset_digest(data),
        "version": __version__,
        "environment": machine(),
        "seconds_training": round(trained, 2),
        "seconds_per_epoch": round(record["seconds_per_epoch"], 4),
        "epochs": record["epochs_run"],
        "best_epoch": record["best_epoch"],
    }
    return {**row, **_test(model, data, task, division)}


def machine() -> dict[str, Any]:
    """What the seconds of a row depend on, with how busy the machine was."""
    load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    return {**environment(), "threads": torch.get_num_threads(), **load}


@torch.no_grad()
def _test(model: Any, data: Any, task: str, division: Division | None) -> Row:
    if task == "graph":
        picked = np.asarray(data.test)
        graph = canonical_set([data[int(k)] for k in picked])
        truth = np.array([int(data[int(k)].y) for k in picked])
        train_y = np.array([int(data[int(k)].y) for k in np.asarray(data.train)])
        rows = np.arange(len(picked))
    else:
        graph, picked = canonical(data), np.flatnonzero(data.test_mask.numpy())
        truth, train_y, rows = data.y.numpy()[picked], data.y.numpy()[data.train_mask.numpy()], picked
    call = bind(model, graph, task)  # type: ignore[arg-type]
    begin = time.perf_counter()
    logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
    plain = time.perf_counter() - begin
    label = logits.argmax(1).numpy()
    label = label if task == "graph" else label[rows]
    result: Row = {
        "targets": len(truth),
        "accuracy_whole_graph": round(float((label == truth).mean()), 4),
        "accuracy_majority": round(float((truth == np.bincount(train_y).argmax()).mean()), 4),
        "seconds_plain_forward": round(plain, 4),
    }
    return result if division is None else {**result, **_certified(call, graph, division, rows, truth, task)}


def _certified(call: Any, graph: Any, division: Division, rows: Any, truth: Any, task: str) -> Row:
    begin = time.perf_counter()
    votes, (cover_ptr, cover) = cast(call, graph, division, rows, tolerance=1e-6)
    rule, parameters = rule_of(division, task)  # type: ignore[arg-type]
    evidence = BallotEvidence(votes, rule, cover_ptr, cover.astype(np.int32), "node_id", parameters)
    label, radius = evidence.label_and_radius()
    seconds = time.perf_counter() - begin
    right = label == truth
    result: Row = {
        "seconds_certification": round(seconds, 4),
        "accuracy": round(float(right.mean()), 4),
        "sizes": list(SIZES),
        "certified": [round(float((right & (radius >= size)).mean()), 4) for size in SIZES],
        "median_radius": float(np.median(radius)),
        "unstable_ballots": int((~votes.stable).sum() + (votes.num_unlisted * ~votes.default_stable).sum()),
        "reached_ballots": round(float(votes.reached.sum() / (votes.num_groups * max(1, votes.num_targets))), 5),
    }
    if task == "node":
        neighbours = evidence.largest(
            "add_edges",
            Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=math.inf, change_features=math.inf),
        )
        result |= {
            "accuracy_edgeless": round(float((votes.default == truth).mean()), 4),
            "vote_differs_from_edgeless": round(float((votes.default != label).mean()), 4),
            "certified_neighbours": [round(float((right & (neighbours >= size)).mean()), 4) for size in SIZES],
        }
    else:
        unlimited_edges = evidence.holds(Budget(add_edges=math.inf, delete_edges=math.inf))
        result |= {"certified_unlimited_edges": round(float((right & unlimited_edges).mean()), 4)}
    return result
