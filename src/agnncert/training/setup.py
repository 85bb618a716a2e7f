"""What ``fit`` prepares once: checked labels and splits, the training objective, and the validation score."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agnncert.addons import addon
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import inductive_view
from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import bind
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.union import union_of_subgraphs
from agnncert.errors import SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.labels import graph_classes
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.models.wrappers import Scaling, training_rows, uneven_column
from agnncert.proving.measures import rare_class, rate_of
from agnncert.training.labels import checked_labels, masked_rows, part_rows
from agnncert.training.objectives import (
    GraphObjective,
    NodeObjective,
    Objective,
    SampledGraphObjective,
    SampledNodeObjective,
)
from agnncert.training.settings import FitSettings
from agnncert.training.validation import Defence, Scorer, Validation, is_large

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSetup:
    """The objective on the training part, and a function that scores the model on the validation part.

    Scores are compared from left to right; larger is better. The first number is the measure of the settings, of the
    labels that are correct (and certified, if a size is given); the second breaks ties. ``settings`` leave nothing
    open.
    """

    objective: Objective
    score: Scorer
    settings: FitSettings


def prepare(
    model: torch.nn.Module,
    ready: CanonicalData,
    division: Defence,
    settings: FitSettings,
    voting_rule: VotingRule | None = None,
) -> TrainingSetup:
    """Checks labels and splits and computes the subgraphs, once for all epochs.

    Args:
        model: The module, in eval mode.
        ready: A ``Data`` with masks, or a ``GraphSet`` with splits, in canonical form.
        division: A division, to train on its subgraphs; a smoothing defence, to train under its noise; or ``None``.
        settings: All settings of ``fit``, from ``checked``; ``require_possible`` has looked at them.
        vote: The voting rule under which weights are scored. Defaults to ``VotingRule()``.

    Raises:
        DatasetError: Labels or splits are missing or do not fit the model.
        SettingsError: Settings do not fit the data or the division.
    """
    on = _on_graphs if ready.task == "graph" else _on_nodes
    return on(model, ready, division, settings, voting_rule)


def _on_nodes(
    model: torch.nn.Module,
    ready: CanonicalData,
    division: Defence,
    settings: FitSettings,
    voting_rule: VotingRule | None,
) -> TrainingSetup:
    if settings["objective"] == "vote":
        raise SettingsError(
            'objective="vote" trains graph classifiers; for nodes choose "balanced" or "paper", which have a '
            "separate term for the prediction without edges."
        )
    if settings["protocol"] != "transductive":
        ready = prepared(inductive_view(ready.data), compact=settings["clusters"] is not None)
    data, loops = ready.data, isinstance(division, Division) and division.self_loops
    graph = ready.targets(self_loops=loops).graph
    train, val = masked_rows(data, "train_mask"), masked_rows(data, "val_mask")
    call = bind(model, graph, "node")
    y = checked_labels(getattr(data, "y", None), ready.total, np.concatenate([train, val]), call.num_classes)
    settings = with_measure(settings, y[torch.from_numpy(train)], call.num_classes)
    seen, labels, rows = graph, y, torch.from_numpy(train)
    if settings["protocol"] == "held-out":  # validation nodes come in when weights are scored, not before
        keep = ~data.val_mask.bool()  # test nodes are gone already
        seen, labels = canonical(inductive_view(data, validation=False), loops), y[keep]
        rows = data.train_mask[keep].nonzero().view(-1)
    union, known, large = None, None, is_large(graph)
    if isinstance(division, Division) and division.has_disjoint_union and settings["clusters"] is None:
        union = union_of_subgraphs(seen, division, call.dtype)
        known = EdgesByGroup(graph, division, val, union.near(val)) if seen is graph and not large else None

    def on(part: CanonicalGraph, labels: Tensor, part_rows: Tensor) -> NodeObjective | SampledNodeObjective:
        if isinstance(division, Division) and not division.has_disjoint_union:
            return SampledNodeObjective.of(call, part, labels, part_rows, division, settings)
        return NodeObjective.of(call, part, labels, part_rows, division, settings, union=union)

    truth, rarest = y.numpy()[val], _rarest(labels[rows])
    validation = Validation(call, graph, "node", val, truth, settings["measure"], rarest, known)
    if settings["clusters"] is None:
        return TrainingSetup(on(seen, labels, rows), validation.scorer(division, settings, voting_rule), settings)
    make: Any = addon("agnncert.training", "clusters", "agnncert_large", "clusters=")
    objective = make(seen, labels, rows, settings["clusters"], settings["clusters_per_step"], on)
    by_clusters = division is None and large and seen is graph
    score = validation.by_prediction(objective) if by_clusters else validation.scorer(division, settings, voting_rule)
    return TrainingSetup(objective, score, settings)


def _on_graphs(
    model: torch.nn.Module,
    ready: CanonicalData,
    division: Defence,
    settings: FitSettings,
    voting_rule: VotingRule | None,
) -> TrainingSetup:
    if settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']} cuts one large graph, but these are many: use batch_size."
        )
    loops = isinstance(division, Division) and division.self_loops
    train, val = (part_rows(ready.data, name) for name in ("train", "val"))
    joined, held_out = (ready.targets(part, loops).graph for part in (train, val))
    call = bind(model, joined, "graph")
    y = checked_labels(graph_classes(ready.data), ready.total, torch.cat([train, val]).numpy(), call.num_classes)
    if settings["no_edge_weight"] != 1:
        raise SettingsError(
            f"no_edge_weight={settings['no_edge_weight']}: a graph has no prediction without edges; leave it out."
        )
    labels = y[train]
    settings = with_measure(settings, labels, call.num_classes)
    rows, truth = np.arange(len(val)), y[val].numpy()
    part = Validation(call, held_out, "graph", rows, truth, settings["measure"], _rarest(labels))
    score = part.scorer(division, settings, voting_rule)
    objective: Objective
    if isinstance(division, RandomDefence):
        objective = SampledGraphObjective.of_noise(call, joined, labels, division, settings)
    elif division is None or division.has_disjoint_union:
        objective = GraphObjective.of(call, joined, labels, division, settings)
    else:
        objective = SampledGraphObjective.of(call, joined, labels, division, settings)
    return TrainingSetup(objective, score, settings)


def with_measure(settings: FitSettings, y: Tensor, num_classes: int) -> FitSettings:
    """The settings with what the labels of the training part decide: whether classes are balanced, and the measure."""
    balance = settings["balance_classes"]
    if balance is None:
        balance = rare_class(torch.bincount(y).numpy()) is not None
    measure = settings["measure"] or ("balanced" if balance else "accuracy")
    if rate_of(measure) is not None and num_classes != 2:
        raise SettingsError(f'measure="{measure}" is for two classes, and there are {num_classes}: choose "balanced".')
    return {**settings, "balance_classes": balance, "measure": measure}


def _rarest(y: Tensor) -> int:
    """The rarest class of the training part; with ties, and two classes, class 1."""
    count = np.bincount(y.numpy())
    return min(np.flatnonzero(count).tolist(), key=lambda label: (count[label], -label))


def warn_if_uneven(model: torch.nn.Module, data: Any) -> None:
    """Logs a warning if a column varies far more than others and the model does not scale its inputs."""
    if any(isinstance(layer, Scaling) for layer in model.modules()):
        return
    found = uneven_column(training_rows(data))
    if found is not None:
        column, most, median = found
        log.warning(
            "features have very different scales: column %d varies by %.3g, the median column by %.3g. Scale them "
            'within the model: build_model(..., scale="standard"), --set scale=standard, or in a module of your own '
            "agnncert.Scaling.of(x).",
            column,
            most,
            median,
        )
