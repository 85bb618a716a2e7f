"""Trains a model on each part of the training graphs, so that no model reads anything of another part.

What could carry something from one part to another is made anew for each: the initial weights, the random numbers, the
optimizer, the batches, class weights and the number of steps. Nothing is measured on graphs of other parts: no weights
are kept by a validation score, features are not scaled, and the number of classes is that of the given model.
"""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.datasets.splits import GraphSet
from agnncert.defence import FitOptions
from agnncert.divisions.base import Division
from agnncert.errors import ModelContractError, SettingsError
from agnncert.models.build import fresh_copy
from agnncert.models.wrappers import Scaling
from agnncert.training.loop import Step, train
from agnncert.training.settings import SETTINGS, checked

SEEDS_PER_RUN = 1_000_003  # further apart than there are parts
_BY_VALIDATION = ("measure", "size")
# Recipes and commands have them. Here nothing is evaluated, all epochs are run, and a protocol is about nodes.
_WITHOUT_EFFECT = ("evaluate_every", "patience", "protocol")


def train_apart(
    model: torch.nn.Module, parts: list[list[Data]], division: Division | None, options: FitOptions
) -> list[torch.nn.Module]:
    """Returns one trained model for each part, in eval mode. The given model is not changed.

    Args:
        model: An untrained module, of which each part gets a copy with initial weights of its own.
        parts: The graphs of each part. A part without a graph gets a model that was not trained.
        division: How test graphs are divided; models are trained on such subgraphs too. ``None`` for whole graphs.
        options: The settings of training.

    Raises:
        SettingsError: A setting would be decided by a validation score.
        ModelContractError: The model was trained before, or scales features as it measured them on all graphs.
    """
    _require_fresh(model)
    settings = _settings_of_one(options.settings)
    seed = int(settings.pop("seed"))
    trained = []
    begin = time.perf_counter()
    for number, graphs in enumerate(parts):
        its_seed = SEEDS_PER_RUN * seed + number
        own = _fresh_model(model, its_seed)
        if graphs:
            own = train_one(own, graphs, division, {**settings, "seed": its_seed}, _options_of_part(options, number))
        trained.append(own.eval())
        _report(options.progress, number + 1, len(parts), time.perf_counter() - begin)
    return trained


def train_one(
    model: torch.nn.Module,
    graphs: list[Data],
    division: Division | None,
    settings: Mapping[str, Any],
    options: FitOptions,
) -> torch.nn.Module:
    """Trains a model in place on the graphs of one part, for all epochs, and keeps the last weights."""
    every = range(len(graphs))
    part = GraphSet(graphs, train=every, num_classes=None, name="part")
    part.val = part.train  # asked for once, after the last epoch: it decides nothing
    epochs = checked(settings, "graph")["epochs"]
    last_weights = {**settings, "evaluate_every": epochs, "patience": None, "measure": "accuracy"}
    return train(model, part, division, replace(options, settings=last_weights))


def _settings_of_one(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of training, with the defaults that do not depend on data."""
    for name in _BY_VALIDATION:
        if given.get(name, SETTINGS[name].default) != SETTINGS[name].default:
            raise SettingsError(
                f"{name}={given[name]!r:.60}: models that are trained apart have no validation score, because it would "
                "be measured on graphs of all parts. Each is trained for all epochs: leave it out."
            )
    complete = checked(given, "graph")
    balance = bool(given.get("balance_classes", False))  # by default a part would decide it
    kept = {name: value for name, value in given.items() if name not in (*_BY_VALIDATION, *_WITHOUT_EFFECT)}
    return {**kept, "epochs": complete["epochs"], "seed": complete["seed"], "balance_classes": balance}


def _require_fresh(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"a {type(model).__name__} cannot be trained: expected a torch.nn.Module.")
    if getattr(model, "training_record", None) is not None:
        raise ModelContractError(
            "the model was trained before, perhaps on graphs that are poisoned, and every part would start from its "
            "weights: pass an untrained one."
        )
    scaled = [name or "the model" for name, layer in model.named_modules() if isinstance(layer, Scaling)]
    if scaled:
        raise ModelContractError(
            f"{scaled[0]} scales features by numbers that were measured on all training graphs, so that one of them "
            'alters every model: leave scale="standard" out, or scale by constants beforehand.'
        )


def _fresh_model(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    if getattr(model, "config", None):
        return fresh_copy(model, seed)
    return copy.deepcopy(model)


def _options_of_part(options: FitOptions, number: int) -> FitOptions:
    """Returns the options for one part, with a checkpoint of its own; nobody is told about single epochs."""
    checkpoint = None
    if options.checkpoint is not None:
        file = Path(options.checkpoint)
        checkpoint = file.with_name(f"{file.stem}-part-{number}{file.suffix}")
    return replace(options, voting_rule=None, checkpoint=checkpoint, progress=None)


def _report(progress: Callable[[Any], None] | None, done: int, total: int, seconds: float) -> None:
    if progress is None:
        return
    seconds_left = seconds / done * (total - done)
    progress(Step("training apart", done, total, seconds_left, loss=float("nan"), score=None))
