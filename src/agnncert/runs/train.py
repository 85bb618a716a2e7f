"""The first step of a run: train a model that votes well, and the plain ones to compare it with."""

import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from agnncert.division import Division
from agnncert.graph import infer_task
from agnncert.models import save_model
from agnncert.runs.choosing import choose
from agnncert.runs.estimate import duration
from agnncert.runs.fitting import SHARED, Fitter
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
from agnncert.runs.progress import OnProgress
from agnncert.runs.settings import TrainSettings
from agnncert.training.objective import usual_objective
from agnncert.training.recipes import recipe
from agnncert.training.settings import FitSettings

log = logging.getLogger(__name__)


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
    settings = _resolved(settings, task)
    if settings.target_size is None:
        settings, _ = make_division(settings, task)
    table = settings.table()
    folder = open_run(out, run_name(about, settings), "train", table, about["digest"], fresh)
    with folder.recording():
        folder.begin("train", table, about)
        copy_tables(settings, folder)
        rows = folder.rows("train")
        if rows and folder.weights.is_file():
            log.info("%s has been trained already (--fresh trains it again)", folder)
            return Trained(folder, settings, {row["measure"]: row["value"] for row in rows})
        fitter = Fitter(settings, data, folder, on_progress)
        model, division, record = _defended(settings, data, fitter)
        save_model(model, folder.weights, {"data": about, "settings": table, "training": record})
        measured = _measured(settings, data, model, record, fitter)
        facts = {"data": about["name"], "digest": about["digest"], "model": settings.model}
        facts |= {"division": str(division), "seed": settings.seed}
        folder.put_rows("train", [{**facts, "measure": k, "value": v} for k, v in measured.items()])
        fitter.clean()
    return Trained(folder, settings, measured)


def _resolved(settings: TrainSettings, task: str) -> TrainSettings:
    """The settings with the recipe of the dataset where they leave something open."""
    model_args, fit_args = recipe(settings.data, task)
    known = {f.name: f.default for f in fields(FitSettings)} | {"objective": usual_objective(task)} | fit_args
    if settings.target_size is not None:
        known["select_size"] = settings.target_size
    chosen: dict[str, Any] = {name: known[name] for name in SHARED if getattr(settings, name) is None}
    if is_module_spec(settings.model or ""):
        return replace(settings, **chosen)
    if settings.model == "resgcn":  # has its own depth
        model_args = {key: value for key, value in model_args.items() if key != "num_layers"}
    return replace(settings, model=settings.model or "gcn", set={**model_args, **settings.set}, **chosen)


def _defended(settings: TrainSettings, data: Any, fitter: Fitter) -> tuple[Any, Division, dict[str, Any]]:
    """The model of the run, its division, and how it came about."""
    if settings.target_size is not None:
        return choose(settings, data, fitter)
    _, division = make_division(settings, infer_task(data))
    model = fresh_model(settings, data)
    fitter.announce(model, division)
    record = fitter.fit(model, division, "model", "training")
    log.info("trained in %s, best after epoch %d", duration(record["seconds"]), record["best_epoch"])
    return model, division, record


def _measured(
    settings: TrainSettings, data: Any, model: Any, record: dict[str, Any], fitter: Fitter
) -> dict[str, float]:
    targets = targets_of(data, None)
    measured = {
        "validation accuracy of the vote": record["score"],
        "accuracy on the whole graph": accuracy_on_whole_graphs(model, data, targets),
        "epochs": record["epochs_run"],
        "seconds of training": round(record["seconds"], 2),
    }
    if settings.references:
        plain = fresh_model(settings, data)
        fitter.fit(plain, None, "undefended", "training an undefended model")
        measured["accuracy, undefended"] = accuracy_on_whole_graphs(plain, data, targets)
        shape = {} if is_module_spec(settings.model or "") else settings.set
        free = fresh_model(replace(settings, model="mlp", set=shape), data)
        fitter.fit(free, None, "graph_free", "training a model without edges")
        measured["accuracy, no edges"] = accuracy_on_whole_graphs(free, data, targets)
    measured["accuracy, majority class"] = accuracy_of_majority(data, targets)
    return {name: value for name, value in measured.items() if value is not None}
