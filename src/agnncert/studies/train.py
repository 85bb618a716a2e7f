"""Fitter: trains the models of one run, each with a checkpoint in its folder.

Choose division and number of groups for the attack that counts, and keep the model that did best.

The first step of a run: train a model that votes well, and the plain ones to compare it with.
"""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.divisions.base import Division, EdgeCentric, NodeCentric
from agnncert.graphs.graph import infer_task
from agnncert.models import save_model
from agnncert.progress import OnProgress
from agnncert.studies.estimate import duration, estimate_training
from agnncert.studies.folder import CHOICE, RunFolder, open_run
from agnncert.studies.inputs import copy_tables, describe, fresh_model, load_data, make_division, run_name, targets_of
from agnncert.studies.measure import accuracy_of_majority, accuracy_on_whole_graphs
from agnncert.studies.own_model import is_module_spec
from agnncert.studies.settings import TrainSettings
from agnncert.training import fit
from agnncert.training.choose import Candidate, candidate_groups, choose_groups
from agnncert.training.settings import SETTINGS, checked, recipe, usual_objective

log = logging.getLogger(__name__)


class Fitter:
    """Trains models as the settings of a run say.

    Attributes:
        folder: The run; checkpoints are kept there.
    """

    def __init__(self, settings: TrainSettings, data: Any, folder: RunFolder, on_progress: OnProgress | None) -> None:
        self.settings, self.data, self.folder, self.on_progress = settings, data, folder, on_progress

    def announce(self, model: Any, division: EdgeCentric | NodeCentric) -> None:
        """Says what training is going to take; finds out what is wrong with the settings before it begins."""
        how = checked(self._how(division), infer_task(self.data))
        expected = estimate_training(model, self.data, division, how)
        log.info("training %s for at most %d epochs: %s", self.settings.model, how["epochs"], expected)

    def fit(self, model: Any, division: Division | None, name: str, what: str) -> dict[str, Any]:
        """Trains a model, or goes on with it, and returns how it came about."""
        tell = None if self.on_progress is None else _teller(what, self.on_progress)
        file = self.folder.checkpoint(name)
        fit(model, self.data, division, **self._how(division), checkpoint=file, progress=tell)
        return {key: value for key, value in model.training_record.items() if key != "history"}

    def _how(self, division: Division | None) -> dict[str, Any]:
        """The arguments of ``fit``."""
        how = self.settings.fit_arguments()
        return {**how, "select_size": how["select_size"] if division else 0}

    def clean(self) -> None:
        """Removes the checkpoints, once everything is finished."""
        for file in self.folder.path.glob("*.checkpoint"):
            file.unlink(missing_ok=True)


def _teller(what: str, on_progress: OnProgress) -> OnProgress:
    return lambda step: on_progress(replace(step, what=what))


log = logging.getLogger(__name__)


def choose(settings: TrainSettings, data: Any, fitter: Fitter) -> tuple[Any, EdgeCentric | NodeCentric, dict[str, Any]]:
    """Trains a model for each division in question, lets each vote with several numbers of groups, keeps the best.

    The choice is written to the run folder, where later steps find it.
    """
    size = settings.target_size or 0
    numbers = candidate_groups(size)
    kinds = ("edge", "node") if settings.division is None else (settings.division,)
    tried: list[tuple[Candidate, str, Any, dict[str, Any]]] = []
    for kind in kinds:
        middle = replace(settings, target_size=None, division=kind, groups=numbers[len(numbers) // 2])
        _, division = make_division(middle, infer_task(data))
        model = fresh_model(settings, data)
        fitter.announce(model, division)
        record = fitter.fit(model, division, f"model-{kind}", f"training for the {kind} division")
        found = choose_groups(
            model, data, size, divisions=(kind,), candidates=numbers, hash=settings.hash or "md5",
            protocol=settings.fit["protocol"],
        )  # fmt: skip
        tried += [(candidate, kind, model, record) for candidate in found.candidates]
    best, kind, model, record = min(tried, key=lambda t: (-t[0].certified_accuracy, t[0].division.num_groups))
    groups = best.division.num_groups
    log.info(
        "best against attacks of size %d: %s, %.1f %% certified", size, best.division, 100 * best.certified_accuracy
    )
    candidates = [
        {
            "division": k,
            "groups": c.division.num_groups,
            "accuracy": c.accuracy,
            "certified_accuracy": c.certified_accuracy,
        }
        for c, k, _, _ in tried
    ]
    chosen = {"division": kind, "groups": groups, "size": size, "candidates": candidates}
    fitter.folder.write(CHOICE, json.dumps(chosen, indent=2) + "\n")
    return model, best.division, record


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
    usual = {name: setting.default for name, setting in SETTINGS.items() if setting.help is not None}
    usual |= {"objective": usual_objective(task), **fit_args}
    if settings.target_size is not None:
        usual["select_size"] = settings.target_size
    settings = replace(settings, fit={**usual, **settings.fit})
    if is_module_spec(settings.model or ""):
        return settings
    if settings.model == "resgcn":  # has its own depth
        model_args = {key: value for key, value in model_args.items() if key != "num_layers"}
    return replace(settings, model=settings.model or "gcn", set={**model_args, **settings.set})


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
