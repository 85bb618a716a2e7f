"""The first step of a run: train a model that votes well, and the plain ones to compare it with."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.division import Division
from agnncert.graph import infer_task
from agnncert.models import save_model
from agnncert.runs.estimate import duration, estimate
from agnncert.runs.folder import RunFolder, open_run
from agnncert.runs.inputs import (
    copy_tables,
    describe,
    fresh_model,
    load_data,
    make_division,
    run_name,
    targets_of,
)
from agnncert.runs.measure import accuracy_of_majority, accuracy_on_whole_graphs
from agnncert.runs.modules import is_module_spec
from agnncert.runs.progress import OnProgress, Progress
from agnncert.runs.settings import TrainSettings
from agnncert.training import Step, fit
from agnncert.training.recipes import recipe

log = logging.getLogger(__name__)

_USUAL = {
    "epochs": 200, "lr": 0.01, "weight_decay": 5e-4, "batch_size": 64, "evaluate_every": 5, "patience": 20,
}  # fmt: skip
_FIT_FIELDS = (*_USUAL, "objective", "protocol", "seed")


@dataclass(frozen=True)
class Trained:
    """What training left.

    Attributes:
        folder: The run.
        settings: What was done, with nothing left open.
        measured: Accuracies on the test part, epochs and seconds, by name.
    """

    folder: RunFolder
    settings: TrainSettings
    measured: dict[str, float]


def train_run(
    settings: TrainSettings,
    out: str | Path | None = None,
    fresh: bool = False,
    on_progress: OnProgress | None = None,
) -> Trained:
    """Trains a model as settings say and leaves it in a run folder.

    A run that was interrupted is taken up where it stopped; one that has finished is not done again.

    Args:
        settings: What to train, on what.
        out: The run folder; one below ``runs`` when not given.
        fresh: Start anew even if the folder holds this run already.
        on_progress: Told after every epoch.
    """
    data = load_data(settings)
    about, task = describe(data, settings), infer_task(data)
    settings, division = make_division(settings, task)
    settings = _resolved(settings, task)
    table = settings.table()
    folder = open_run(out, run_name(about, settings), "train", table, about["digest"], fresh)
    with folder.recording():
        folder.begin("train", table, about)
        copy_tables(settings, folder)
        rows = folder.rows("train")
        if rows and folder.weights.is_file():
            log.info("%s has been trained already (--fresh trains it again)", folder)
            return Trained(folder, settings, {row["measure"]: row["value"] for row in rows})
        measured = _train_all(settings, data, division, folder, on_progress)
        facts = {
            "data": about["name"],
            "model": settings.model,
            "division": str(division),
            "seed": settings.seed,
        }
        rows = [
            {**facts, "digest": about["digest"], "measure": name, "value": value}
            for name, value in measured.items()
        ]
        folder.put_rows("train", rows)
        for name in ("model", "undefended", "graph_free"):
            folder.checkpoint(name).unlink(missing_ok=True)
    return Trained(folder, settings, measured)


def _resolved(settings: TrainSettings, task: str) -> TrainSettings:
    """The settings with the recipe of the dataset where they leave something open."""
    model_args, fit_args = recipe(settings.data, task)
    known: dict[str, Any] = {**_USUAL, **fit_args}
    chosen = {key: value for key, value in known.items() if getattr(settings, key) is None}
    if is_module_spec(settings.model or ""):
        return replace(settings, **chosen)
    if settings.model == "resgcn":  # has its own depth
        model_args = {key: value for key, value in model_args.items() if key != "num_layers"}
    return replace(settings, set={**model_args, **settings.set}, **chosen)


def _train_all(
    settings: TrainSettings,
    data: Any,
    division: Division,
    folder: RunFolder,
    on_progress: OnProgress | None,
) -> dict[str, float]:
    """Trains the model and what it is compared with; what was measured, by name."""
    targets = targets_of(data, None)
    model = fresh_model(settings, data)
    looks = (settings.epochs or 0) // (settings.evaluate_every or 1)
    expected = estimate(model, data, division, epochs=settings.epochs or 0, looks=looks)
    log.info("training %s for at most %d epochs: %s", settings.model, settings.epochs, expected)
    record = _fit(model, settings, data, division, folder, "model", "training", on_progress)
    save_model(model, folder.weights, {"data": folder.data, "settings": settings.table(), "training": record})
    log.info("trained in %s, best after epoch %d", duration(record["seconds"]), record["best_epoch"])
    measured = {
        "validation accuracy of the vote": record["score"],
        "accuracy on the whole graph": accuracy_on_whole_graphs(model, data, targets),
        "epochs": record["epochs_run"],
        "seconds of training": round(record["seconds"], 2),
    }
    if settings.references:
        plain = fresh_model(settings, data)
        _fit(plain, settings, data, None, folder, "undefended", "training an undefended model", on_progress)
        measured["accuracy, undefended"] = accuracy_on_whole_graphs(plain, data, targets)
        shape = {} if is_module_spec(settings.model or "") else settings.set
        free = fresh_model(replace(settings, model="mlp", set=shape), data)
        _fit(free, settings, data, None, folder, "graph_free", "training a model without edges", on_progress)
        measured["accuracy, no edges"] = accuracy_on_whole_graphs(free, data, targets)
    measured["accuracy, majority class"] = accuracy_of_majority(data, targets)
    return {name: value for name, value in measured.items() if value is not None}


def _fit(
    model: Any,
    settings: TrainSettings,
    data: Any,
    division: Division | None,
    folder: RunFolder,
    name: str,
    what: str,
    on_progress: OnProgress | None,
) -> dict[str, Any]:
    how: dict[str, Any] = {key: getattr(settings, key) for key in _FIT_FIELDS}
    how["select_size"] = settings.select_size if division is not None else 0
    tell = None if on_progress is None else _teller(what, on_progress)
    fit(model, data, division, **how, checkpoint=folder.checkpoint(name), progress=tell)
    record: dict[str, Any] = {k: v for k, v in model.training_record.items() if k != "history"}
    return record


def _teller(what: str, on_progress: OnProgress) -> Callable[[Step], None]:
    def tell(step: Step) -> None:
        on_progress(Progress(what, step.epoch, step.epochs, step.seconds_left, f"loss {step.loss:.3f}"))

    return tell
