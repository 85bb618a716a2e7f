"""The training loop: epochs, evaluations, and the weights that are kept."""

import copy
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.addons import config_of
from agnncert.datasets.splits import GraphSet, dataset_digest
from agnncert.defence import FitOptions
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
from agnncert.training.validation import Defence

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


class DivergedError(SettingsError):
    """Training went to numbers that are not finite: the loss, or a weight."""


def train(
    model: torch.nn.Module, data: Data | Sequence[Data], defence: Defence, options: FitOptions
) -> torch.nn.Module:
    """Trains a model in place and returns it in eval mode, with the weights that are best on the validation part.

    Args:
        model: The module.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        defence: A division: train on its subgraphs too. A random defence: train under its noise. ``None`` trains a
            plain, undefended model.
        options: The settings of training, the voting rule, the checkpoint, and who is told about progress.

    Raises:
        DivergedError: The loss or a weight is not finite after an epoch.
    """
    task = infer_task(data)
    settings = checked(dict(options.settings), task)
    _require_trainable(model)
    subgraphs_of = _without_proof_options(defence)
    require_possible(subgraphs_of, settings, options.voting_rule, task)
    if task == "graph" and not isinstance(data, GraphSet):  # any list that has the two parts
        data = GraphSet(list(data), train=part_rows(data, "train"), val=part_rows(data, "val"))
    canonical_data = CanonicalData.of(data, compact=settings["clusters"] is not None)
    setup = prepare(model.eval(), canonical_data, subgraphs_of, settings, options.voting_rule)
    if defence is not None or options.checkpoint is None:  # a run that trains others beside it says it once
        warn_if_uneven(model, data)
        _warn_if_balanced_by_default(settings, setup.settings)
    description = _describe(defence, canonical_data, setup.settings, options)
    optimizer = _optimizer(model, setup.settings)
    state = _run(model, setup, optimizer, description, options)
    model.load_state_dict(state.best)
    log.info("trained %d epochs, best at %d with score %.4f", state.epoch, state.best_epoch, state.best_score[0])
    model.training_record = {  # type: ignore[assignment]
        **description,
        "epochs_run": state.epoch,
        "best_epoch": state.best_epoch,
        "score": state.best_score[0],
        "history": state.history,
        "seconds": state.seconds,
        "seconds_per_epoch": state.seconds / state.epoch,
    }
    return model.eval()


def _require_trainable(model: object) -> None:
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"a {type(model).__name__} cannot be trained: expected a torch.nn.Module.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ModelContractError(f"{type(model).__name__} has no parameters that can be trained.")


def _without_proof_options(defence: Defence) -> Defence:
    """Returns a defence with the same subgraphs, without the option that only changes what is proved."""
    if isinstance(defence, EdgeCentric) and defence.edges_only:
        return replace(defence, edges_only=False)
    return defence


def _warn_if_balanced_by_default(asked: FitSettings, used: FitSettings) -> None:
    """Logs a warning if the labels have decided that classes are balanced."""
    if asked["balance_classes"] is not None or not used["balance_classes"]:
        return
    log.warning(
        "a class is rare in the training part: all classes have the same weight in the loss, and weights are "
        'kept by measure="%s" (balance_classes=False: all targets have the same)',
        used["measure"],
    )


def _describe(
    defence: Defence, canonical_data: CanonicalData, settings: FitSettings, options: FitOptions
) -> dict[str, Any]:
    """Returns what a run is trained with, as JSON values: the start of its record."""
    division = None if defence is None else str(defence)
    description = {"division": division, "data": dataset_digest(canonical_data), **as_json(settings)}
    if options.voting_rule is not None:
        description["voting_rule"] = options.voting_rule.to_json()
    return description


def _optimizer(model: torch.nn.Module, settings: FitSettings) -> torch.optim.Optimizer:
    foreach = True if _is_on_cpu(model) else None  # None: torch chooses
    return torch.optim.Adam(model.parameters(), settings["lr"], weight_decay=settings["weight_decay"], foreach=foreach)


def _is_on_cpu(model: torch.nn.Module) -> bool:
    return next(model.parameters()).device.type == "cpu"


def _run(
    model: torch.nn.Module,
    setup: TrainingSetup,
    optimizer: torch.optim.Optimizer,
    description: dict[str, Any],
    options: FitOptions,
) -> TrainingState:
    """Runs all epochs that are left, from the checkpoint if there is one, and returns the state at the end."""
    identity = {"model": config_of(model) or str(model), **description}
    file = None if options.checkpoint is None else Path(options.checkpoint)
    state = TrainingState()
    if file is not None and file.exists():
        state = load_state(file, identity, model, optimizer)
        log.info("going on from %s, after epoch %d", file.name, state.epoch)
    with torch.random.fork_rng(devices=[]):
        while state.epoch < setup.settings["epochs"] and not state.stopped:
            step = _epoch(model, setup, optimizer, state)
            if step.score is not None and file is not None:
                save_state(file, identity, model, optimizer, state)
            if options.progress is not None:
                options.progress(step)
    return state


def _epoch(
    model: torch.nn.Module, setup: TrainingSetup, optimizer: torch.optim.Optimizer, state: TrainingState
) -> Step:
    """Makes one pass over the training set and, if it is time, an evaluation on the validation set."""
    settings = setup.settings
    begin = time.perf_counter()
    _seed(model, 1_000_003 * settings["seed"] + state.epoch)  # by epoch, so that a resumed run samples the same
    loss = _train(model.train(), setup, optimizer)
    state.epoch += 1
    wrong = f"the loss is {loss}" if not math.isfinite(loss) else _wrong_weight(model)
    if wrong:
        raise DivergedError(
            f"{wrong} in epoch {state.epoch}: training has diverged. Lower lr={settings['lr']}, or set clip=1.0."
        )
    score = None
    if state.epoch % settings["evaluate_every"] == 0 or state.epoch == settings["epochs"]:
        score = _evaluate(model.eval(), setup, state, loss)
    state.seconds += time.perf_counter() - begin
    seconds_left = 0.0
    if not state.stopped:
        seconds_left = state.seconds / state.epoch * (settings["epochs"] - state.epoch)
    return Step("training", state.epoch, settings["epochs"], seconds_left, f"loss {loss:.3f}", loss=loss, score=score)


def _wrong_weight(model: torch.nn.Module) -> str:
    """Returns which weight or running mean is not finite; empty if all are."""
    for name, value in model.state_dict().items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            return f"{name} is not finite"
    return ""


def _seed(model: torch.nn.Module, seed: int) -> None:
    """Seeds torch where the model is. To seed absent devices too would take milliseconds."""
    if _is_on_cpu(model):
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _train(model: torch.nn.Module, setup: TrainingSetup, optimizer: torch.optim.Optimizer) -> float:
    """Takes all steps of one epoch and returns their mean loss."""
    clip = setup.settings["clip"]
    losses = []
    for step in setup.objective.steps():
        optimizer.zero_grad()
        losses.append(step())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(np.mean(losses))


def _evaluate(model: torch.nn.Module, setup: TrainingSetup, state: TrainingState, loss: float) -> float:
    """Scores the model, keeps its weights if they are the best so far, and decides whether to stop."""
    score = setup.score()
    state.history.append({"epoch": state.epoch, "loss": loss, "score": score[0]})
    patience = setup.settings["patience"]
    if score > state.best_score:
        state.best_epoch = state.epoch
        state.best_score = score
        state.best = copy.deepcopy(model.state_dict())
    elif patience is not None:
        epochs_without_improvement = state.epoch - state.best_epoch
        state.stopped = epochs_without_improvement >= patience * setup.settings["evaluate_every"]
    return score[0]
