"""``fit``: train a model on a graph, alone or with its subgraphs, and keep the weights that vote best."""

import copy
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from agnncert.baselines.smoothing import Smoothing
from agnncert.datasets import GraphSet, dataset_digest
from agnncert.divisions import Division
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import infer_task
from agnncert.training.checkpoint import TrainingState, load_state, save_state
from agnncert.training.node_objective import ObjectiveName, Weights, usual_objective
from agnncert.training.settings import FitSettings, Protocol
from agnncert.training.workload import Workload, prepare

log = logging.getLogger(__name__)

Module = TypeVar("Module", bound=torch.nn.Module)


@dataclass(frozen=True)
class Step:
    """What a progress callback is told after each epoch.

    Attributes:
        epoch: Epochs finished.
        epochs: Epochs at most.
        loss: Mean loss of the epoch.
        score: Score on the validation set, if this epoch was followed by a look at it.
        seconds_left: Time until the last epoch, at the pace so far; training may stop earlier.
    """

    epoch: int
    epochs: int
    loss: float
    score: float | None
    seconds_left: float


def fit(
    model: Module,
    data: Any,
    division: Division | Smoothing | None = None,
    *,
    epochs: int = 200,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    clip: float | None = None,
    batch_size: int = 64,
    objective: ObjectiveName | None = None,
    weights: Weights | None = None,
    balance_classes: bool = False,
    groups_per_step: int | None = None,
    clusters: int | None = None,
    clusters_per_step: int = 1,
    protocol: Protocol = "transductive",
    select_size: int = 0,
    evaluate_every: int = 5,
    patience: int | None = 20,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Module:
    """Trains a model in place and returns it in eval mode, with the weights that did best on validation.

    How the weights came about is left in ``model.training_record``, a dictionary for ``save_model``.

    Args:
        model: Any module; see ``certify`` for how it is called.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and
            ``val``.
        division: Train on its subgraphs too; ``None`` trains a plain, undefended model. A smoothing defence,
            such as ``ac.baselines.BiRS()``: train under its noise, drawn anew for each step.
        epochs: Passes over the training set.
        lr: Learning rate of Adam.
        weight_decay: Its weight decay.
        clip: Largest norm of the gradient, if any.
        batch_size: Graphs per step (graph task).
        objective: "balanced" averages each of the terms by itself; "paper" is the paper's sum over T + 1
            graphs; "vote", for graphs, is the loss of the vote that all subgraphs of a graph cast together.
            When not given, "balanced" for nodes and "vote" for graphs.
        weights: How much whole graph, ballots with an edge and edgeless prediction count.
        balance_classes: Let every class count the same, however many members it has.
        groups_per_step: Subgraphs, drawn anew for each step, that stand for all. Graph task: all of them when
            not given. A division of your own: 8 when not given; such a division has no edgeless term.
            Otherwise not needed: all subgraphs of a node classifier together cost a few plain steps.
        clusters: Node task, for a graph that does not fit one pass: cut it into about this many clusters
            (Cluster-GCN; needs pymetis) and let each step see a few. Certificates do not depend on it.
        clusters_per_step: How many clusters a step puts together, with the edges among them.
        protocol: "inductive" hides the test nodes and their edges while training (node task).
        select_size: Keep the weights with the best *certified* accuracy at this size; 0 for the accuracy of
            the vote.
        evaluate_every: Epochs between two looks at the validation set.
        patience: Stop after this many looks without improvement; ``None`` never stops early.
        seed: Seed of everything random in training; torch's own random state is left as it is.
        checkpoint: File to which the state is written at every look. A run that was interrupted, and is
            started again with the same arguments, goes on from there and ends with the same weights.
        progress: Called after every epoch.

    Raises:
        SettingsError: A setting is senseless, the checkpoint belongs to another run, or the loss diverges.
        DatasetError: Labels or splits are missing or do not fit the model.
        ModelContractError: The model cannot be called as documented, or has nothing to train.
    """
    settings = FitSettings(
        epochs=epochs, lr=lr, weight_decay=weight_decay, clip=clip, batch_size=batch_size,
        objective=objective or usual_objective(infer_task(data)),
        weights=Weights() if weights is None else weights,
        balance_classes=balance_classes, groups_per_step=groups_per_step, clusters=clusters,
        clusters_per_step=clusters_per_step, protocol=protocol, select_size=select_size,
        evaluate_every=evaluate_every, patience=patience, seed=seed,
    )  # fmt: skip
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ModelContractError(f"{type(model).__name__} has no parameters that can be trained.")
    work = prepare(model.eval(), data, division, settings)
    about = {"division": division_name(division), "data": _digest(data), **settings.table()}
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    state, identity = TrainingState(), {"model": getattr(model, "config", None) or str(model), **about}
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None and file.exists():
        state = load_state(file, identity, model, optimizer)
        log.info("going on from %s, after epoch %d", file.name, state.epoch)
    with torch.random.fork_rng(devices=[]):
        while state.epoch < epochs and not state.stopped:
            step = _epoch(model, work, optimizer, settings, state)
            if step.score is not None and file is not None:
                save_state(file, identity, model, optimizer, state)
            if progress is not None:
                progress(step)
    model.load_state_dict(state.best)
    log.info("trained %d epochs, best at %d with score %.4f", state.epoch, state.best_epoch, state.best_score[0])
    model.training_record = {  # type: ignore[assignment]
        **about, "epochs_run": state.epoch, "best_epoch": state.best_epoch, "score": state.best_score[0],
        "history": state.history, "seconds": state.seconds, "seconds_per_epoch": state.seconds / state.epoch,
    }  # fmt: skip
    return model.eval()


def division_name(division: Division | Smoothing | None) -> str | None:
    """What a division is called: what it prints as, unless that is an address in memory."""
    if division is None or isinstance(division, Smoothing):
        return None if division is None else str(division)
    cls = type(division)
    told = cls.__str__ is not object.__str__ or cls.__repr__ is not object.__repr__
    return str(division) if told else f"{cls.__qualname__}(T={division.num_groups})"


def _epoch(
    model: torch.nn.Module,
    work: Workload,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    state: TrainingState,
) -> Step:
    """One pass over the training set and, if it is time, a look at the validation set."""
    begin = time.perf_counter()
    # Seeded by epoch, a resumed run draws what the uninterrupted one would have drawn.
    torch.manual_seed(1_000_003 * settings.seed + state.epoch)
    loss = _train(model.train(), work, optimizer, settings.clip)
    state.epoch += 1
    if not math.isfinite(loss):
        raise SettingsError(
            f"the loss is {loss} in epoch {state.epoch}: training has diverged. Lower lr={settings.lr}, or "
            "set clip=1.0."
        )
    score = None
    if state.epoch % settings.evaluate_every == 0 or state.epoch == settings.epochs:
        score = _look(model.eval(), work, state, loss, settings)
    state.seconds += time.perf_counter() - begin
    left = 0.0 if state.stopped else state.seconds / state.epoch * (settings.epochs - state.epoch)
    return Step(state.epoch, settings.epochs, loss, score, left)


def _train(model: torch.nn.Module, work: Workload, optimizer: torch.optim.Optimizer, clip: float | None) -> float:
    losses = []
    for step in work.objective.steps():
        optimizer.zero_grad()
        losses.append(step())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(np.mean(losses))


def _look(model: torch.nn.Module, work: Workload, state: TrainingState, loss: float, settings: FitSettings) -> float:
    score = work.score()
    state.history.append({"epoch": state.epoch, "loss": loss, "score": score[0]})
    if score > state.best_score:
        state.best_epoch, state.best_score = state.epoch, score
        state.best = copy.deepcopy(model.state_dict())
    elif settings.patience is not None:
        state.stopped = state.epoch - state.best_epoch >= settings.patience * settings.evaluate_every
    return score[0]


def _digest(data: Any) -> str:
    """Digest of graph and split, whatever the graphs are kept in."""
    if infer_task(data) == "graph" and not isinstance(data, GraphSet):
        data = GraphSet(list(data), train=data.train, val=data.val)
    return dataset_digest(data)
