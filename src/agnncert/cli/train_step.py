"""Trains the model of a run, and the models to compare it with."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.cli.folder import RunFolder, open_run, write_card
from agnncert.cli.inputs import (
    copy_tables,
    describe,
    duration,
    estimate_training,
    fresh_model,
    is_module_spec,
    load_data,
    make_division,
    row_origin,
    run_name,
    targets_of,
)
from agnncert.cli.settings import FIT, TrainSettings
from agnncert.comparison.runner import Study, accuracy, fit_model, predict
from agnncert.comparison.threat import UNDEFENDED
from agnncert.divisions.base import Division
from agnncert.graphs.targets import CanonicalData
from agnncert.models.io import save_model
from agnncert.progress import OnProgress
from agnncert.training.recipes import advice_if_worse, usual_arguments
from agnncert.training.settings import SETTINGS, checked, usual_objective

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        folder: The run.
        settings: What was done, with nothing left open.
        measured: Accuracies on the test part, epochs and seconds, by name.
    """

    folder: RunFolder
    settings: TrainSettings
    measured: dict[str, float]


@dataclass(frozen=True)
class Fitted:
    """A trained model, the study that it was trained for, and the record of its training."""

    study: Study
    model: Any
    record: dict[str, Any]

    @property
    def accuracy(self) -> float | None:
        """Share of the test part that the model gets right on the whole graph; None without labels."""
        return accuracy(self.study, predict(self.study, self.model).label)


@dataclass(frozen=True)
class Training:
    """What the models of one run share: settings, data, the folder of their checkpoints, and the callback."""

    settings: TrainSettings
    ready: CanonicalData
    folder: RunFolder
    on_progress: OnProgress | None

    def fit(self, name: str, what: str, division: Division | None, **changes: Any) -> Fitted:
        """Trains one model, from its checkpoint if there is one.

        Args:
            name: Name of the checkpoint.
            what: What a progress bar says.
            division: What the model is trained for; None for a plain model.
            **changes: Settings in which it differs from the model of the run.
        """
        settings, report = replace(self.settings, **changes), self.on_progress
        fit_args = settings.fit_arguments() | ({"select_size": 0} if division is None else {})
        vote = {} if division is None or settings.vote is None else {"rule": settings.vote}
        study = Study(
            self.ready, targets_of(self.ready, None), UNDEFENDED if division is None else division,
            lambda: fresh_model(settings, self.ready.data), fit_args={**fit_args, **vote}, seed=settings.seed,
        )  # fmt: skip
        model = study.new_model()
        if division is not None:  # finds out what is wrong with the settings before training begins
            checked_args = checked(fit_args, study.task)
            expected = estimate_training(model, study.data, division, checked_args)
            log.info("training %s for at most %d epochs: %s", settings.model, checked_args["epochs"], expected)
        file = self.folder.checkpoint(name)
        if file.is_file():
            log.info("going on where an earlier call stopped (%s)", file)
        tell = None if report is None else lambda step: report(replace(step, what=what))
        return Fitted(study, model, fit_model(study, model, division, file, tell))


def train_run(
    settings: TrainSettings, out: str | Path | None = None, fresh: bool = False, on_progress: OnProgress | None = None
) -> Trained:
    """Trains a model as settings say and leaves it in a run folder.

    An interrupted run continues where it stopped; a finished one is not repeated.

    Args:
        settings: What to train, on what.
        out: The run folder; one below ``runs`` when not given.
        fresh: Start from the beginning even if the folder holds this run already.
        on_progress: Called after every epoch.
    """
    ready = CanonicalData.of(load_data(settings))
    about = describe(ready, settings)
    settings = _resolved(settings.with_class_numbers(about["class_names"]), ready)
    settings, division = make_division(settings, ready.task)
    table = settings.table()
    folder = open_run(out, run_name(about, settings), "train", table, about["digest"], fresh)
    with folder.recording():
        folder.begin("train", table, about)
        copy_tables(settings, folder)
        rows = folder.rows("train")
        if rows and folder.weights.is_file():
            log.info("%s has been trained already (--fresh trains it again)", folder)
            return Trained(folder, settings, {row["measure"]: row["value"] for row in rows})
        training = Training(settings, ready, folder, on_progress)
        fitted = training.fit("model", "training", division)
        log.info("trained in %s, best after epoch %d", duration(fitted.record["seconds"]), fitted.record["best_epoch"])
        save_model(fitted.model, folder.weights, {"data": about, "settings": table, "training": fitted.record})
        measured = _measured(training, fitted)
        origin = row_origin(settings, division, about, settings.vote)
        folder.put_rows("train", [{**origin, "measure": name, "value": value} for name, value in measured.items()])
        folder.forget_checkpoints()
        write_card(folder)
    return Trained(folder, settings, measured)


def _resolved(settings: TrainSettings, ready: CanonicalData) -> TrainSettings:
    """The settings with what is usual for the data where they leave something open."""
    task = ready.task
    model_args, fit_args = usual_arguments(
        settings.data, ready.data, settings.model or "", settings.fit.get("objective")
    )
    usual = {name: SETTINGS[name].default for name in FIT}
    usual |= {"objective": usual_objective(task), **fit_args}
    settings = replace(settings, fit={**usual, **settings.fit})
    if is_module_spec(settings.model or ""):
        return settings
    return replace(settings, model=settings.model or "gcn", set={**model_args, **settings.set})


def _measured(training: Training, fitted: Fitted) -> dict[str, float]:
    """The numbers of the run by name; with ``references``, also of a plain model and of one without edges."""
    settings, record = training.settings, fitted.record
    measured = {
        "validation accuracy of the vote": record["score"],
        "accuracy on the whole graph": fitted.accuracy,
        "epochs": record["epochs_run"],
        "seconds of training": round(record["seconds"], 2),
    }
    if settings.references:
        plain = training.fit("undefended", "training an undefended model", None)
        shape = {} if is_module_spec(settings.model or "") else settings.set
        no_edges = training.fit("graph_free", "training a model without edges", None, model="mlp", set=shape)
        measured |= {"accuracy, undefended": plain.accuracy, "accuracy, no edges": no_edges.accuracy}
        vote, config = record["score"], getattr(fitted.model, "config", None)
        advice = None if record["select_size"] else advice_if_worse(vote, no_edges.record["score"], config)
        if advice is not None:
            log.warning("%s", advice)
    measured["accuracy, majority class"] = accuracy(fitted.study, fitted.study.majority)
    return {name: value for name, value in measured.items() if value is not None}
