"""``fit``: train a model on a graph, or on the graph and all its subgraphs, and keep the weights that vote best."""

import copy
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets import inductive_view
from agnncert.division import Division
from agnncert.engines import cast, fast
from agnncert.engines.call import Caller, bind
from agnncert.errors import DatasetError, SettingsError, did_you_mean
from agnncert.graph import canonical, canonical_set, infer_task, target_rows
from agnncert.rules import certified_radius, tally
from agnncert.training.objective import GraphObjective, NodeObjective, ObjectiveName, Weights
from agnncert.training.state import Progress, load_state, save_state
from agnncert.votes import IntArray

log = logging.getLogger(__name__)

Module = TypeVar("Module", bound=torch.nn.Module)
Protocol = Literal["transductive", "inductive"]
PROTOCOLS: tuple[Protocol, ...] = ("transductive", "inductive")


@dataclass(frozen=True)
class Step:
    """What a progress callback is told after each epoch."""

    epoch: int
    epochs: int
    loss: float
    score: float | None
    seconds_left: float


def fit(
    model: Module,
    data: Any,
    division: Division | None = None,
    *,
    epochs: int = 200,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    clip: float | None = None,
    batch_size: int = 64,
    objective: ObjectiveName = "balanced",
    weights: Weights | None = None,
    balance_classes: bool = False,
    groups_per_step: int | None = None,
    protocol: Protocol = "transductive",
    select_size: int = 0,
    evaluate_every: int = 5,
    patience: int | None = 20,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Module:
    """Trains a model in place and returns it in eval mode, with the weights that did best on the validation set.

    Args:
        model: Any module; see ``certify`` for how it is called.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        division: Train on all its subgraphs too; ``None`` trains a plain, undefended model.
        epochs: Passes over the training set.
        lr: Learning rate of Adam.
        weight_decay: Its weight decay.
        clip: Largest norm of the gradient, if any.
        batch_size: Graphs per step (graph task).
        objective: "balanced" averages the terms each for itself; "paper" is the paper's sum over T + 1 graphs.
        weights: How much whole graph, ballots and edgeless prediction count.
        balance_classes: Let every class count the same, however many members it has.
        groups_per_step: Graph task: subgraphs, drawn anew for each step, that stand for all; all of them when not given.
        protocol: "inductive" hides the test nodes and their edges while training (node task).
        select_size: Keep the weights with the best *certified* accuracy at this size; 0 for the accuracy of the vote.
        evaluate_every: Epochs between two looks at the validation set.
        patience: Stop after this many looks without improvement; ``None`` never stops early.
        seed: Seed of everything random in training.
        checkpoint: File to which the state is written at every look; a run that was interrupted goes on from there and
            ends with the same weights.
        progress: Called after every epoch.
    """
    _check_settings(epochs, lr, batch_size, evaluate_every, protocol)
    torch.manual_seed(seed)
    terms = {"objective": objective, "weights": weights, "balance_classes": balance_classes}
    run = _Run.of(model.eval(), data, division, terms, groups_per_step, protocol, select_size, batch_size)
    settings = {
        "division": str(division), "epochs": epochs, "lr": lr, "weight_decay": weight_decay, "clip": clip,
        "batch_size": batch_size, "objective": objective, "weights": str(weights),
        "balance_classes": balance_classes, "groups_per_step": groups_per_step, "protocol": protocol,
        "select_size": select_size, "evaluate_every": evaluate_every, "patience": patience, "seed": seed,
    }  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    file = None if checkpoint is None else Path(checkpoint)
    state = load_state(file, settings, model, optimizer) if file is not None and file.exists() else Progress()
    begin, first = time.perf_counter(), state.epoch
    while state.epoch < epochs and not state.stopped:
        # Seeded by epoch, a resumed run draws what the uninterrupted one would have drawn.
        torch.manual_seed(1_000_003 * seed + state.epoch)
        loss = _epoch(model, run, optimizer, clip)
        state.epoch += 1
        score = None
        if state.epoch % evaluate_every == 0 or state.epoch == epochs:
            score = _look(model, run, state, loss, evaluate_every, patience)
            if file is not None:
                save_state(file, settings, model, optimizer, state)
        if progress is not None:
            left = (time.perf_counter() - begin) / (state.epoch - first) * (epochs - state.epoch)
            progress(Step(state.epoch, epochs, loss, score, 0.0 if state.stopped else left))
    model.load_state_dict(state.best)
    log.info("trained %d epochs, best at %d with score %.4f", state.epoch, state.best_epoch, state.best_score[0])
    seconds = time.perf_counter() - begin
    model.training_record = {  # type: ignore[assignment]
        **settings, "epochs_run": state.epoch, "best_epoch": state.best_epoch, "score": state.best_score[0],
        "history": state.history, "seconds": seconds, "seconds_per_epoch": seconds / max(1, state.epoch - first),
    }  # fmt: skip
    return model.eval()


@dataclass(frozen=True)
class _Run:
    """What one training run works on."""

    objective: NodeObjective | GraphObjective
    batch_size: int
    score: Callable[[], tuple[float, ...]]

    @classmethod
    def of(
        cls,
        model: torch.nn.Module,
        data: Any,
        division: Division | None,
        terms: dict[str, Any],
        groups_per_step: int | None,
        protocol: Protocol,
        select_size: int,
        batch_size: int,
    ) -> "_Run":
        loops = getattr(division, "self_loops", False)
        if division is not None and not hasattr(division, "pieces"):
            log.warning("%s offers no union of its subgraphs: training on whole graphs only", division)
        trained = division if hasattr(division, "pieces") else None
        if infer_task(data) == "graph":
            train, val = (_split(data, name) for name in ("train", "val"))
            y = torch.tensor([int(g.y) for g in data])
            joined = canonical_set([data[int(k)] for k in train], loops)
            held_out = canonical_set([data[int(k)] for k in val], loops)
            call = bind(model, joined, "graph")
            of_graphs = GraphObjective.of(call, joined, y[train], trained, **terms, groups_per_step=groups_per_step)
            rows = np.arange(len(val))
            return cls(of_graphs, batch_size, _scorer(call, held_out, division, rows, y[val].numpy(), select_size))
        data = inductive_view(data) if protocol == "inductive" else data
        graph = canonical(data, loops)
        rows = target_rows(_mask(data, "train_mask"), graph.num_nodes)
        val = target_rows(_mask(data, "val_mask"), graph.num_nodes)
        call = bind(model, graph, "node")
        of_nodes = NodeObjective.of(call, graph, data.y, torch.from_numpy(rows), trained, **terms)
        return cls(of_nodes, batch_size, _scorer(call, graph, division, val, data.y.numpy()[val], select_size))

    def steps(self) -> Iterator[Callable[[], float]]:
        """The steps of one epoch, each a function that adds a gradient."""
        if isinstance(self.objective, NodeObjective):
            yield self.objective.backward
            return
        objective = self.objective
        for batch in torch.randperm(len(objective.y)).split(self.batch_size):
            yield lambda batch=batch: objective.backward(batch.sort().values)  # type: ignore[misc]


def _epoch(model: torch.nn.Module, run: _Run, optimizer: torch.optim.Optimizer, clip: float | None) -> float:
    model.train()
    losses = []
    for step in run.steps():
        optimizer.zero_grad()
        losses.append(step())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(np.mean(losses))


def _look(
    model: torch.nn.Module, run: _Run, state: Progress, loss: float, evaluate_every: int, patience: int | None
) -> float:
    model.eval()
    score = run.score()
    state.history.append({"epoch": state.epoch, "loss": loss, "score": score[0]})
    if score > state.best_score:
        state.best_epoch, state.best_score = state.epoch, score
        state.best = copy.deepcopy(model.state_dict())
    elif patience is not None and state.epoch - state.best_epoch >= patience * evaluate_every:
        state.stopped = True
    return score[0]


def _scorer(
    call: Caller, graph: Data, division: Division | None, rows: IntArray, truth: IntArray, size: int
) -> Callable[[], tuple[float, ...]]:
    """A function that scores the model as it is; the subgraphs are laid out once."""
    layout = None
    if division is not None and hasattr(division, "pieces"):
        layout = fast.plan(graph, division, None if "batch" in graph else rows, call.dtype)
    return lambda: _score(call, graph, division, rows, truth, size, layout)


@torch.no_grad()
def _score(
    call: Caller,
    graph: Data,
    division: Division | None,
    rows: IntArray,
    truth: IntArray,
    size: int,
    layout: fast.Plan | None,
) -> tuple[float, ...]:
    """Accuracy of the vote (certified, at a size above 0), then mean margin in favour of the truth, to break ties."""
    if division is None:
        logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), graph.get("batch"))
        picked = logits if "batch" in graph else logits[torch.from_numpy(rows)]
        loss = torch.nn.functional.cross_entropy(picked, torch.from_numpy(truth))
        return float((picked.argmax(1).numpy() == truth).mean()), -float(loss)
    votes, _ = cast(call, graph, division, rows, layout=layout)
    counts, counted = votes.counts, tally(votes)
    label, radius = counted.label, certified_radius(counted)
    share = counts[np.arange(len(truth)), truth] / np.maximum(counts.sum(1), 1)
    return float(((label == truth) & (radius >= size)).mean()), float(share.mean())


def _check_settings(epochs: int, lr: float, batch_size: int, evaluate_every: int, protocol: str) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("evaluate_every", evaluate_every)):
        if not isinstance(value, int) or value < 1:
            raise SettingsError(f"{name}={value!r}: expected a whole number from 1 on.")
    if not lr > 0:
        raise SettingsError(f"lr={lr!r}: expected a positive number.")
    if protocol not in PROTOCOLS:
        raise SettingsError(f'unknown protocol "{protocol}": {did_you_mean(str(protocol), PROTOCOLS)}')


def _mask(data: Data, name: str) -> Tensor:
    mask = getattr(data, name, None)
    if mask is None or not bool(mask.any()):
        raise DatasetError(f"the graph has no {name}, or an empty one: training needs train_mask and val_mask.")
    if getattr(data, "y", None) is None:
        raise DatasetError("the graph has no labels y: training needs them.")
    return mask  # type: ignore[no-any-return]


def _split(data: Any, name: str) -> Tensor:
    rows = getattr(data, name, None)
    if rows is None or len(rows) == 0:
        raise DatasetError(f'the graphs have no "{name}" split: training needs train and val, as load_dataset gives.')
    return torch.as_tensor(np.asarray(rows), dtype=torch.int64)
