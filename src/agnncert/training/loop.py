"""The training loop: epochs, evaluations, and the weights that are kept."""

import copy
import logging
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agnncert.datasets.splits import GraphSet, dataset_digest
from agnncert.defence import FitOptions
from agnncert.divisions.base import Division, RandomDefence
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import infer_task
from agnncert.progress import Progress
from agnncert.training.checkpoint import TrainingState, load_state, save_state
from agnncert.training.labels import part_rows
from agnncert.training.requirements import require_possible
from agnncert.training.settings import FitSettings, as_json, checked
from agnncert.training.setup import TrainingSetup, prepare, warn_if_uneven

log = logging.getLogger(__name__)


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
