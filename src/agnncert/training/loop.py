"""``fit``: trains a model, and writes checkpoints from which an interrupted run continues."""

import copy
import json
import logging
import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from agnncert.datasets.splits import GraphSet, dataset_digest
from agnncert.defence import FitOptions
from agnncert.divisions.base import Division, RandomDefence
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import infer_task
from agnncert.progress import Progress
from agnncert.storage import Arrays, read_sealed, write_sealed
from agnncert.training.settings import FitSettings, as_json, checked
from agnncert.training.setup import TrainingSetup, part_rows, prepare, require_possible, warn_if_uneven

StateDict = dict[str, Tensor]

FORMAT = "agnncert-training"
VERSION = 1
_NUMBERS = ("epoch", "best_epoch", "best_score", "history", "stopped", "seconds")


@dataclass
class TrainingState:
    """The state of a training run.

    Attributes:
        epoch: Epochs finished.
        best_epoch: Epoch of the best weights so far.
        best_score: Their score on the validation set, compared from left to right.
        best: The best weights so far.
        history: One entry per evaluation on the validation set.
        stopped: Whether the run has ended before its last epoch.
        seconds: Training time so far, interruptions not counted.
    """

    epoch: int = 0
    best_epoch: int = -1
    best_score: tuple[float, ...] = (-1.0,)
    best: StateDict = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False
    seconds: float = 0.0


def save_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: TrainingState
) -> None:
    """Writes everything that resuming needs, atomically; ``identity`` holds the settings that must be the same."""
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in state.best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": torch.as_tensor(v) for k, v in values.items()}
    numbers = {name: getattr(state, name) for name in _NUMBERS}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "state": json.dumps({"identity": identity, **numbers}),  # as text: a header cannot hold infinite scores
        "bfloat16": [name for name, value in tensors.items() if value.dtype == torch.bfloat16],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, header, {name: _to_array(value) for name, value in tensors.items()}, SettingsError)


def load_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> TrainingState:
    """Restores model and optimizer from the file, and returns the state of the run.

    Raises:
        SettingsError: The file is damaged, or belongs to another run.
    """
    try:
        header, arrays = read_sealed(path, FORMAT, VERSION, "checkpoint of this version", SettingsError)
        numbers = json.loads(header["state"])
        stored = numbers.pop("identity")
        changed = sorted(k for k in identity.keys() | stored.keys() if identity.get(k) != stored.get(k))
        if not changed:
            tensors = _to_tensors(arrays, header["bfloat16"])
            _restore(model, optimizer, tensors)
            numbers["best_score"] = tuple(numbers["best_score"])
            return TrainingState(best=_part(tensors, "best."), **numbers)
    except (SettingsError, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise SettingsError(
            f"cannot resume from {path.name}, which is damaged or not a checkpoint ({error}): delete it to start again."
        ) from error
    raise SettingsError(
        f"{path.name} belongs to another run (other {', '.join(changed)}): use the same settings, or another file."
    )


def _to_array(value: Tensor) -> Any:
    value = value.detach().cpu()
    return (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()  # numpy has no bfloat16


def _to_tensors(arrays: Arrays, bfloat16: list[str]) -> StateDict:
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    return tensors | {name: tensors[name].view(torch.bfloat16) for name in bfloat16}


def _restore(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: StateDict) -> None:
    averages: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        averages.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": averages, "param_groups": optimizer.state_dict()["param_groups"]})
    model.load_state_dict(_part(tensors, "model."))


def _part(tensors: StateDict, prefix: str) -> StateDict:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


log = logging.getLogger(__name__)

Module = TypeVar("Module", bound=torch.nn.Module)


@dataclass(frozen=True, kw_only=True)
class Step(Progress):
    """Progress after an epoch. ``seconds_left`` is the expected time until the last epoch; training may stop earlier.

    Attributes:
        loss: Mean loss of the epoch.
        score: Score on the validation set, if the model was evaluated after this epoch.
    """

    loss: float
    score: float | None


def train(
    model: torch.nn.Module, data: Any, defence: Division | RandomDefence | None, options: FitOptions
) -> torch.nn.Module:
    """Trains a model in place and returns it in eval mode, with the weights that are best on the validation part.

    Args:
        model: The module.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        defence: A division: train on its subgraphs too. A random defence: train under its noise. ``None`` trains a
            plain, undefended model.
        options: The settings of training, the voting rule, the checkpoint, and who is told about progress.
    """
    name = None if defence is None else str(defence)
    if isinstance(defence, EdgeCentric) and defence.edges_only:
        defence = replace(defence, edges_only=False)  # the subgraphs are the same: only what is proved differs
    task = infer_task(data)
    how = checked(dict(options.settings), task)
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"a {type(model).__name__} cannot be trained: expected a torch.nn.Module.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ModelContractError(f"{type(model).__name__} has no parameters that can be trained.")
    require_possible(defence, how, options.voting_rule, task)
    if task == "graph" and not isinstance(data, GraphSet):  # any list that has the two parts
        data = GraphSet(list(data), train=part_rows(data, "train"), val=part_rows(data, "val"))
    ready = CanonicalData.of(data, compact=how["clusters"] is not None)
    setup = prepare(model.eval(), ready, defence, how, options.voting_rule)
    if defence is not None or options.checkpoint is None:  # a run that trains others beside it says it once
        warn_if_uneven(model, data)
        if how["balance_classes"] is None and setup.settings["balance_classes"]:
            log.warning(
                "a class is rare in the training part: all classes have the same weight in the loss, and weights are "
                'kept by measure="%s" (balance_classes=False: all targets have the same)', setup.settings["measure"],
            )  # fmt: skip
    how = setup.settings
    about = {"division": name, "data": dataset_digest(ready), **as_json(how)}
    if options.voting_rule is not None:
        about["voting_rule"] = options.voting_rule.to_json()
    at_once = next(model.parameters()).device.type == "cpu" or None  # None: torch chooses
    optimizer = torch.optim.Adam(model.parameters(), how["lr"], weight_decay=how["weight_decay"], foreach=at_once)
    state, identity = TrainingState(), {"model": getattr(model, "config", None) or str(model), **about}
    file = None if options.checkpoint is None else Path(options.checkpoint)
    if file is not None and file.exists():
        state = load_state(file, identity, model, optimizer)
        log.info("going on from %s, after epoch %d", file.name, state.epoch)
    with torch.random.fork_rng(devices=[]):
        while state.epoch < how["epochs"] and not state.stopped:
            step = _epoch(model, setup, optimizer, how, state)
            if step.score is not None and file is not None:
                save_state(file, identity, model, optimizer, state)
            if options.progress is not None:
                options.progress(step)
    model.load_state_dict(state.best)
    log.info("trained %d epochs, best at %d with score %.4f", state.epoch, state.best_epoch, state.best_score[0])
    model.training_record = {  # type: ignore[assignment]
        **about, "epochs_run": state.epoch, "best_epoch": state.best_epoch, "score": state.best_score[0],
        "history": state.history, "seconds": state.seconds, "seconds_per_epoch": state.seconds / state.epoch,
    }  # fmt: skip
    return model.eval()


def _epoch(
    model: torch.nn.Module,
    setup: TrainingSetup,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    state: TrainingState,
) -> Step:
    """One pass over the training set and, if it is time, an evaluation on the validation set."""
    begin = time.perf_counter()
    # Seeded by epoch, so that a resumed run samples the same. To seed absent devices too would take milliseconds.
    on_cpu = next(model.parameters()).device.type == "cpu"
    (torch.default_generator if on_cpu else torch).manual_seed(1_000_003 * settings["seed"] + state.epoch)
    loss = _train(model.train(), setup, optimizer, settings["clip"])
    state.epoch += 1
    if not math.isfinite(loss):
        raise SettingsError(
            f"the loss is {loss} in epoch {state.epoch}: training has diverged. Lower lr={settings['lr']}, or "
            "set clip=1.0."
        )
    score = None
    if state.epoch % settings["evaluate_every"] == 0 or state.epoch == settings["epochs"]:
        score = _evaluate(model.eval(), setup, state, loss, settings)
    state.seconds += time.perf_counter() - begin
    left = 0.0 if state.stopped else state.seconds / state.epoch * (settings["epochs"] - state.epoch)
    return Step("training", state.epoch, settings["epochs"], left, f"loss {loss:.3f}", loss=loss, score=score)


def _train(model: torch.nn.Module, setup: TrainingSetup, optimizer: torch.optim.Optimizer, clip: float | None) -> float:
    """All steps of one epoch; returns their mean loss."""
    losses = []
    for step in setup.objective.steps():
        optimizer.zero_grad()
        losses.append(step())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(np.mean(losses))


def _evaluate(
    model: torch.nn.Module, setup: TrainingSetup, state: TrainingState, loss: float, settings: FitSettings
) -> float:
    """Scores the model, keeps its weights if they are the best so far, and decides whether to stop."""
    score = setup.score()
    state.history.append({"epoch": state.epoch, "loss": loss, "score": score[0]})
    if score > state.best_score:
        state.best_epoch, state.best_score = state.epoch, score
        state.best = copy.deepcopy(model.state_dict())
    elif settings["patience"] is not None:
        state.stopped = state.epoch - state.best_epoch >= settings["patience"] * settings["evaluate_every"]
    return score[0]
