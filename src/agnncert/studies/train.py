"""The first step of a run: train a model that votes well, and the plain ones to compare it with."""

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agnncert.divisions import Division
from agnncert.graphs.targets import Prepared
from agnncert.models import save_model
from agnncert.progress import OnProgress, Progress
from agnncert.studies.estimate import duration, estimate_training
from agnncert.studies.folder import CHOICE, RunFolder, open_run
from agnncert.studies.inputs import (
    copy_tables,
    describe,
    facts,
    fresh_model,
    load_data,
    make_division,
    run_name,
    targets_of,
)  # fmt: skip
from agnncert.studies.own_model import is_module_spec
from agnncert.studies.run import UNDEFENDED, Study, accuracy, fit_model, predict
from agnncert.studies.settings import TrainSettings
from agnncert.training.choose import Candidate, candidate_groups, choose_groups
from agnncert.training.settings import SETTINGS, checked, recipe, usual_objective

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """The models of one run, each trained as its settings say and with a checkpoint in its folder.

    Attributes:
        settings: How to train.
        ready: The data.
        folder: The run.
        on_progress: Told after every epoch.
    """

    settings: TrainSettings
    ready: Prepared
    folder: RunFolder
    on_progress: OnProgress | None

    def study(self, defence: Division | None, **changes: Any) -> Study:
        """What is trained: the base model of the settings, or a changed one, for a defence or for none."""
        settings = replace(self.settings, **changes)
        how = settings.fit_arguments()
        how |= {"select_size": how["select_size"] if defence else 0}
        return Study(
            self.ready, targets_of(self.ready, None), UNDEFENDED if defence is None else defence,
            lambda: fresh_model(settings, self.ready.data), fit_args=how, seed=settings.seed,
        )  # fmt: skip

    def fit(self, name: str, what: str, defence: Division | None, **changes: Any) -> "Fitted":
        """Trains a model, or goes on with it."""
        study = self.study(defence, **changes)
        model = study.new_model()
        if defence is not None:  # finds out what is wrong with the settings before training begins
            how = checked(study.fit_args, study.task)
            expected = estimate_training(model, study.data, defence, how)
            log.info("training %s for at most %d epochs: %s", self.settings.model, how["epochs"], expected)
        tell = None if self.on_progress is None else partial(_tell, self.on_progress, what)
        record = fit_model(study, model, defence, self.folder.checkpoint(name), tell)
        return Fitted(study, model, record)


@dataclass(frozen=True)
class Fitted:
    """A trained model, what it was trained for, and how it came about."""

    study: Study
    model: Any
    record: dict[str, Any]

    @property
    def accuracy(self) -> float | None:
        """Share of the test part that the model gets right on the whole graph; None without labels."""
        return accuracy(self.study, predict(self.study, self.model).label)


def _tell(on_progress: OnProgress, what: str, step: Progress) -> None:
    on_progress(replace(step, what=what))


def _best_fit(training: Training) -> tuple[Fitted, Division]:
    """Trains a model for each division in question, lets each vote with several numbers of groups, keeps the best.

    The choice is written to the run folder, where later steps find it.
    """
    settings, size = training.settings, training.settings.target_size or 0
    numbers = candidate_groups(size)
    kinds = ("edge", "node") if settings.division is None else (settings.division,)
    tried: list[tuple[Candidate, str, Fitted]] = []
    for kind in kinds:
        middle = replace(settings, target_size=None, division=kind, groups=numbers[len(numbers) // 2])
        _, division = make_division(middle, training.ready.task)
        fitted = training.fit(f"model-{kind}", f"training for the {kind} division", division)
        choice = choose_groups(
            fitted.model, training.ready.data, size, divisions=(kind,), candidates=numbers,
            hash=settings.hash or "md5", protocol=settings.fit["protocol"],
        )  # fmt: skip
        tried += [(candidate, kind, fitted) for candidate in choice.candidates]
    best, kind, fitted = min(tried, key=lambda one: (-one[0].certified_accuracy, one[0].division.num_groups))
    share = 100 * best.certified_accuracy
    log.info("best against attacks of size %d: %s, %.1f %% certified", size, best.division, share)
    candidates = [
        {"division": k, "groups": c.division.num_groups, "accuracy": c.accuracy}
        | {"certified_accuracy": c.certified_accuracy}
        for c, k, _ in tried
    ]
    chosen = {"division": kind, "groups": best.division.num_groups, "size": size, "candidates": candidates}
    training.folder.write(CHOICE, json.dumps(chosen, indent=2) + "\n")
    return fitted, best.division


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
    settings: TrainSettings, out: str | Path | None = None, fresh: bool = False, on_progress: OnProgress | None = None
) -> Trained:
    """Trains a model as settings say and leaves it in a run folder.

    A run that was interrupted is taken up where it stopped; one that has finished is not done again.

    Args:
        settings: What to train, on what.
        out: The run folder; one below ``runs`` when not given.
        fresh: Start anew even if the folder holds this run already.
        on_progress: Told after every epoch.
    """
    ready = Prepared.of(load_data(settings))
    about = describe(ready, settings)
    settings = _resolved(settings, ready.task)
    if settings.target_size is None:
        settings, _ = make_division(settings, ready.task)
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
        fitted, division = _defended(training)
        save_model(fitted.model, folder.weights, {"data": about, "settings": table, "training": fitted.record})
        measured = _measured(training, fitted)
        origin = facts(settings, division, about)
        folder.put_rows("train", [{**origin, "measure": name, "value": value} for name, value in measured.items()])
        folder.forget_checkpoints()
    return Trained(folder, settings, measured)


def _resolved(settings: TrainSettings, task: str) -> TrainSettings:
    """The settings with the recipe of the dataset where they leave something open."""
    model_args, fit_args = recipe(settings.data, task, settings.model or "")
    usual = {name: setting.default for name, setting in SETTINGS.items() if setting.help is not None}
    usual |= {"objective": usual_objective(task), **fit_args}
    if settings.target_size is not None:
        usual["select_size"] = settings.target_size
    settings = replace(settings, fit={**usual, **settings.fit})
    if is_module_spec(settings.model or ""):
        return settings
    return replace(settings, model=settings.model or "gcn", set={**model_args, **settings.set})


def _defended(training: Training) -> tuple[Fitted, Division]:
    """The model of the run and its division."""
    if training.settings.target_size is not None:
        return _best_fit(training)
    _, division = make_division(training.settings, training.ready.task)
    fitted = training.fit("model", "training", division)
    log.info("trained in %s, best after epoch %d", duration(fitted.record["seconds"]), fitted.record["best_epoch"])
    return fitted, division


def _measured(training: Training, fitted: Fitted) -> dict[str, float]:
    settings, record = training.settings, fitted.record
    measured = {
        "validation accuracy of the vote": record["score"],
        "accuracy on the whole graph": fitted.accuracy,
        "epochs": record["epochs_run"],
        "seconds of training": round(record["seconds"], 2),
    }
    if settings.references:
        plain = training.fit("undefended", "training an undefended model", None)
        measured["accuracy, undefended"] = plain.accuracy
        shape = {} if is_module_spec(settings.model or "") else settings.set
        free = training.fit("graph_free", "training a model without edges", None, model="mlp", set=shape)
        measured["accuracy, no edges"] = free.accuracy
    measured["accuracy, majority class"] = accuracy(fitted.study, fitted.study.majority)
    return {name: value for name, value in measured.items() if value is not None}
