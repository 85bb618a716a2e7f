"""Trains a model on each part of the training graphs, so that no model reads anything of another part.

What could carry something from one part to another is made anew for each: the initial weights, the random numbers of
torch, numpy and Python, the optimizer, the batches, class weights and the number of steps. Nothing is measured on
graphs of other parts: no weights are kept by a validation score, features are not scaled, and the number of classes is
that of the given model.

If training on a part diverges or stops with an error, the model of that part abstains, like the model of an empty part.
Otherwise one poisoned graph would stop the training of all parts. Whether a part abstains depends only on its graphs.

A module of somebody else may share state between its copies, or draw random numbers elsewhere. In a process of its own
each part is trained with the memory as it was before any training. Else one part is trained again after all others, and
must come out the same to the bit.
"""

import multiprocessing
import pickle
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.addons import config_of
from agnncert.datasets.splits import GraphSet
from agnncert.defence import FitOptions
from agnncert.divisions.base import Division
from agnncert.errors import MissingPackage, ModelContractError, SettingsError
from agnncert.models.build import fresh_copy
from agnncert.models.wrappers import Scaling
from agnncert.training.loop import DivergedError, Step, train
from agnncert.training.settings import SETTINGS, checked

SEEDS_PER_RUN = 1_000_003  # further apart than there are parts
_BY_VALIDATION = ("measure", "size")
# Recipes and commands have them. Here nothing is evaluated, all epochs are run, and a protocol is about nodes.
_WITHOUT_EFFECT = ("evaluate_every", "patience", "protocol")
_ONCE_MORE: dict[str, Any] = {"checkpoint": None, "progress": None, "voting_rule": None}


@dataclass(frozen=True)
class TrainedPart:
    """What became of one part.

    Attributes:
        model: The model, in eval mode. One that abstains has initial weights.
        failure: What stopped training; ``None`` if nothing did. The model of such a part abstains.
    """

    model: torch.nn.Module
    failure: Exception | None = None


def train_apart(
    model: torch.nn.Module,
    parts: list[list[Data]],
    division: Division | None,
    options: FitOptions,
    own_processes: bool = False,
) -> list[TrainedPart]:
    """Returns one trained model for each part, in eval mode. The given model is not changed.

    Args:
        model: An untrained module, of which each part gets a copy with initial weights of its own.
        parts: The graphs of each part. A part without a graph gets a model that was not trained.
        division: How test graphs are divided; models are trained on such subgraphs too. ``None`` for whole graphs.
        options: The settings of training.
        own_processes: Whether each part is trained in a process of its own. Defaults to False.

    Raises:
        SettingsError: A setting would be decided by a validation score, there are no processes of this kind here, or
            training diverges on every part. If it stops with other errors on every part, the first of them is raised.
        ModelContractError: The model was trained before, scales features as it measured them on all graphs, or carries
            something from one part to another.
    """
    _require_fresh(model)
    settings = _settings_of_one(options.settings)
    seed = int(settings.pop("seed"))

    def train_part(number: int, options: FitOptions) -> TrainedPart:
        its_seed = SEEDS_PER_RUN * seed + number
        with own_random_numbers(its_seed):
            own = fresh_copy(model, its_seed)
            if parts[number]:
                own = train_one(own, parts[number], division, {**settings, "seed": its_seed}, options)
        return TrainedPart(own.eval())

    def train_or_abstain(number: int, options: FitOptions) -> TrainedPart:
        try:
            return train_it(number, options)
        except Exception as error:
            if _is_about_all_parts(error):
                raise
            return TrainedPart(fresh_copy(model, SEEDS_PER_RUN * seed + number).eval(), error)

    train_it = in_own_process(train_part) if own_processes else train_part
    trained = []
    begin = time.perf_counter()
    for number in range(len(parts)):
        trained.append(train_or_abstain(number, _options_of_part(options, number)))
        _report(options.progress, number + 1, len(parts), time.perf_counter() - begin)
    _require_some_trained(trained, parts)
    if not own_processes:
        _require_nothing_carried_over(trained, parts, lambda number: train_part(number, replace(options, **_ONCE_MORE)))
    return trained


@contextmanager
def own_random_numbers(seed: int) -> Iterator[None]:
    """Seeds the global generators of torch, numpy and Python, and puts them back afterwards."""
    of_python = random.getstate()
    of_numpy = np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed % 2**63)
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


def in_own_process(train_part: Callable[[int, FitOptions], TrainedPart]) -> Callable[[int, FitOptions], TrainedPart]:
    """Returns a function that trains a part in a process that is a copy of this one, and ends afterwards.

    Whatever training changes in memory is gone with the process: all parts begin with the same memory.

    Raises:
        SettingsError: This system cannot copy a process.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise SettingsError(
            "own_processes=True needs a system that can copy a process (fork), such as Linux. Leave it out: then one "
            "part is trained twice instead, to see that nothing is carried over."
        )
    context = multiprocessing.get_context("fork")

    def train_elsewhere(number: int, options: FitOptions) -> TrainedPart:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trained"
            process = context.Process(target=_train_and_store, args=(train_part, number, options, file))
            process.start()
            process.join()
            if not file.exists():
                raise ModelContractError(
                    f"the process that trained part {number} ended with status {process.exitcode}."
                )
            outcome = pickle.loads(file.read_bytes())  # written by a copy of this very process
        if isinstance(outcome, Exception):
            raise outcome
        trained: TrainedPart = outcome
        return trained

    return train_elsewhere


def _train_and_store(
    train_part: Callable[[int, FitOptions], TrainedPart], number: int, options: FitOptions, file: Path
) -> None:
    """Runs in a process of its own: trains a part, and stores the model or the error."""
    torch.set_num_threads(1)  # threads of the first process are not in its copy
    try:
        outcome: TrainedPart | Exception = train_part(number, options)
    except Exception as error:
        outcome = error
    try:
        content = pickle.dumps(outcome)
    except Exception as error:  # a lambda in the module, for example
        content = pickle.dumps(
            ModelContractError(f"the trained module cannot be handed back from its process: {error}.")
        )
    file.write_bytes(content)


def _is_about_all_parts(error: Exception) -> bool:
    """Returns whether an error is not about the graphs of one part: wrong settings, a full disk, a missing package."""
    if isinstance(error, DivergedError):
        return False
    return isinstance(error, SettingsError | OSError | MissingPackage)


def _require_some_trained(trained: list[TrainedPart], parts: list[list[Data]]) -> None:
    """Refuses a model, or settings, with which training fails on every part.

    Raises:
        SettingsError: Training diverges on every part that has graphs.
        Exception: What stopped training on the first of them.
    """
    filled = [number for number, graphs in enumerate(parts) if graphs]
    failures = [failure for number in filled if (failure := trained[number].failure) is not None]
    if not filled or len(failures) < len(filled):
        return
    others = [failure for failure in failures if not isinstance(failure, DivergedError)]
    if others:
        raise others[0]
    raise SettingsError(
        f"training diverges on all {len(filled)} parts that have graphs, so that no model votes. "
        f"Part {filled[0]}: {failures[0]}"
    )


def _require_nothing_carried_over(
    trained: list[TrainedPart], parts: list[list[Data]], train_again: Callable[[int], TrainedPart]
) -> None:
    """Trains a part again, after all others, and compares. Models that are built in are not asked.

    Raises:
        ModelContractError: The weights differ.
    """
    filled = [number for number, graphs in enumerate(parts) if graphs]
    is_built_in = config_of(trained[0].model) is not None
    if is_built_in or len(filled) < 2:
        return
    number = next(number for number in filled if trained[number].failure is None)
    again = train_again(number).model.state_dict()
    before = trained[number].model.state_dict()
    if not all(torch.equal(value, before[name]) for name, value in again.items()):
        raise ModelContractError(
            "one part was trained again after all others, and its weights came out different. So something passes from "
            "part to part: state that copies of the module share, or random numbers from a generator other than those "
            "of torch, numpy and Python. Remove it, or train each part in a process of its own: "
            "IsolatedModels(own_processes=True)."
        )


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
