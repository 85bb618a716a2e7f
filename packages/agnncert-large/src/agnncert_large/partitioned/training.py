"""Training on a graph in parts: a step sees what the votes of some nodes in one group depend on.

The loss is that of votes as they will be cast: cross entropy of training nodes in a subgraph, and
without edges. A step holds the senders of one group and one range of nodes (node-centric), or one
group's subgraph (edge-centric), and nothing of the rest.
"""

import copy
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.addons import config_of
from agnncert.defence import FitOptions
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.errors import DatasetError, DivisionError, SettingsError
from agnncert.training.checkpoint import TrainingState, load_state, save_state
from agnncert.training.loop import DivergedError, Step
from agnncert.training.settings import SETTINGS, FitSettings, as_json, checked
from agnncert_large.partitioned.graph import NodeRange, PartitionedGraph
from agnncert_large.partitioned.local_graphs import (
    LocalGraph,
    around_span,
    read_span,
    subgraphs_of,
)

log = logging.getLogger(__name__)

STEPS = 64  # of an epoch, at most: each sees another group, and other nodes
SCORED = 8  # steps on which weights are compared
MOST_TARGETS = 2**14  # training nodes of a step
USED = ("epochs", "lr", "weight_decay", "clip", "no_edge_weight", "evaluate_every", "patience", "seed")


def train_on_parts(model: Any, graph: PartitionedGraph, division: Division, options: FitOptions) -> Any:
    """Trains a model in place on a graph in parts, in bounded memory; returns it in eval mode.

    Args:
        model: The module.
        graph: The graph, with classes and a split.
        division: The division, by whose groups it is stored.
        options: Settings, of which ``epochs``, ``lr``, ``weight_decay``, ``clip``, ``no_edge_weight``,
            ``evaluate_every``, ``patience`` and ``seed`` are used, and the checkpoint.
    """
    if division != graph.division:
        raise DivisionError(f"{graph.place} is stored by the groups of {graph.division}: train with these.")
    settings = _settings(options)
    if "y" not in graph.manifest["columns"]:
        raise DatasetError(f"{graph.place} has no classes: nothing can be learnt from it.")
    run = _Run(model, graph, settings, bind(model.eval(), _canonical_head(graph), "node"))
    rate, decay = settings["lr"], settings["weight_decay"]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    identity = {
        "model": config_of(model) or str(model),
        "graph": graph.digest,
        "division": str(division),
        **as_json(settings),
    }
    file = None if options.checkpoint is None else Path(options.checkpoint)
    state = TrainingState()
    if file is not None and file.exists():
        state = load_state(file, identity, model, optimizer)
    with torch.random.fork_rng(devices=[]):
        while state.epoch < settings["epochs"] and not state.stopped:
            step = run.epoch(optimizer, state)
            if step.score is not None and file is not None:
                save_state(file, identity, model, optimizer, state)
            if options.progress is not None:
                options.progress(step)
    if state.best:
        model.load_state_dict(state.best)
    return model.eval()


def _settings(options: FitOptions) -> FitSettings:
    given = dict(options.settings)
    unused = [name for name in given if name in SETTINGS and name not in USED]
    if unused or options.voting_rule is not None:
        named = ", ".join(unused) or "voting_rule"
        raise SettingsError(
            f"{named}: a graph in parts is trained on its groups with {', '.join(USED)}; leave the rest out."
        )
    return checked(given, "node")


def _canonical_head(graph: PartitionedGraph) -> Any:
    from agnncert_large.partitioned.certify import head_of

    return head_of(graph)


@dataclass
class _Run:
    """A model that is trained on the parts of a graph."""

    model: Any
    graph: PartitionedGraph
    settings: FitSettings
    bound_model: ModelAdapter

    def epoch(self, optimizer: torch.optim.Optimizer, state: TrainingState) -> Step:
        """Makes the steps of an epoch and, if it is time, compares the weights with the best so far."""
        begun = time.perf_counter()
        random = np.random.default_rng([self.settings["seed"], state.epoch])
        torch.default_generator.manual_seed(1_000_003 * self.settings["seed"] + state.epoch)
        losses = [self._step(optimizer, local, rows, y) for local, rows, y in self._drawn(random, "train_mask", STEPS)]
        if not losses:
            raise DatasetError("no training node lies where it was looked for: the split has no training part.")
        loss = float(np.mean(losses))
        state.epoch += 1
        if not math.isfinite(loss):
            raise DivergedError(f"the loss is {loss} in epoch {state.epoch}: lower lr, or set clip=1.0.")
        score = None
        if state.epoch % self.settings["evaluate_every"] == 0 or state.epoch == self.settings["epochs"]:
            score = self._compare(state, loss)
        state.seconds += time.perf_counter() - begun
        left = state.seconds / state.epoch * (self.settings["epochs"] - state.epoch)
        return Step(
            "training",
            state.epoch,
            self.settings["epochs"],
            0.0 if state.stopped else left,
            f"loss {loss:.3f}",
            loss=loss,
            score=score,
        )

    def _step(self, optimizer: torch.optim.Optimizer, local: LocalGraph, rows: Tensor, y: Tensor) -> float:
        self.model.train()
        optimizer.zero_grad()
        weight = self.settings["no_edge_weight"]
        inside, alone = self._logits(local, rows)
        loss = (F.cross_entropy(inside, y) + weight * F.cross_entropy(alone, y)) / (1 + weight)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings["clip"])
        optimizer.step()
        return float(loss.detach())

    def _logits(self, local: LocalGraph, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of some nodes in a subgraph, and without edges."""
        edges = local.graph.edge_index
        nodes, position = torch.unique(torch.cat([edges.view(-1), rows]), return_inverse=True)
        x = local.features.copy(nodes)
        gated = self.graph.division.gates_features
        if gated:
            groups: Any = self.graph.division
            x = x * (groups.node_groups(local.graph)[nodes] == local.group)[:, None]
        values = self.bound_model.edge_values(local.graph)
        edge_index = position[: edges.numel()].view(2, -1)
        inside = self.bound_model(x, edge_index, values)[position[edges.numel() :]]
        none = {name: value[:0] for name, value in values.items()}
        alone = self.bound_model(local.features.copy(rows), edges[:, :0], none)
        return inside, inside if gated else alone

    def _compare(self, state: TrainingState, loss: float) -> float:
        """Scores the weights on validation nodes, the same ones every time, and keeps the best."""
        self.model.eval()
        hits, total = 0, 0
        random = np.random.default_rng(self.settings["seed"])
        with torch.no_grad():
            for local, rows, y in self._drawn(random, "val_mask", SCORED):
                for logits in self._logits(local, rows):
                    hits += int((logits.argmax(1) == y).sum())
                    total += len(y)
        score = hits / total if total else 0.0
        state.history.append({"epoch": state.epoch, "loss": loss, "score": score})
        patience = self.settings["patience"]
        if (score,) > state.best_score:
            state.best_epoch, state.best_score = state.epoch, (score,)
            state.best = copy.deepcopy(self.model.state_dict())
        elif patience is not None:
            waited = state.epoch - state.best_epoch
            state.stopped = waited >= patience * self.settings["evaluate_every"]
        return score

    def _drawn(self, random: np.random.Generator, mask: str, most: int) -> Iterator[tuple[LocalGraph, Tensor, Tensor]]:
        """Yields what votes of some nodes depend on, with these nodes and their classes."""
        groups, ranges = self.graph.division.num_groups, len(self.graph.ranges)
        if not self.graph.by_sender:
            for group in random.permutation(groups)[:most].tolist():
                [local] = subgraphs_of(self.graph, range(group, group + 1), self.bound_model.dtype)
                yield from self._chosen(local, self._classes(local, mask), random)
            return
        pairs = random.permutation(groups * ranges)[:most]
        for number in range(ranges):  # a range is read once
            mine = np.sort(pairs[pairs % ranges == number] // ranges).tolist()
            if not mine:
                continue
            span = read_span(self.graph, range(number, number + 1), self.bound_model.dtype)
            classes = _of_range(self.graph.nodes(number), mask)
            for group in mine:
                local = around_span(self.graph, group, span, self.bound_model.dtype)
                y = np.full(len(local.row), -1)
                y[: len(classes)] = classes
                yield from self._chosen(local, y, random)

    def _classes(self, local: LocalGraph, mask: str) -> Any:
        """Returns the class of each node of a subgraph that is in a part of the split, -1 for others."""
        y = np.full(len(local.row), -1)
        for number, part in enumerate(self.graph.ranges):
            begin, end = np.searchsorted(local.row, [part.first, part.last + 1])
            if begin < end:
                rows = local.row[begin:end] - part.first
                y[begin:end] = _of_range(self.graph.nodes(number), mask)[rows]
        return y

    def _chosen(
        self, local: LocalGraph, y: Any, random: np.random.Generator
    ) -> Iterator[tuple[LocalGraph, Tensor, Tensor]]:
        receives = np.zeros(len(y), dtype=bool)
        receives[local.graph.edge_index[1].numpy()] = True
        rows = np.flatnonzero(receives & (y >= 0))
        if len(rows) > MOST_TARGETS:
            rows = np.sort(random.choice(rows, MOST_TARGETS, replace=False))
        if len(rows):
            yield local, torch.from_numpy(rows), torch.from_numpy(y[rows])


def _of_range(nodes: NodeRange, mask: str) -> Any:
    """Returns the class of each node of a range that is in a part of the split, -1 for others."""
    if nodes.y is None or mask not in nodes.masks:
        raise DatasetError(f"the graph has no {mask}, or no classes: write it from data with a split.")
    return np.where(nodes.masks[mask], nodes.y, -1)
