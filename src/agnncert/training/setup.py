"""What ``fit`` prepares once: checked labels and splits, the training objective, and the validation score."""

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

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
from agnncert.training.graph_objectives import GraphObjective, SampledGraphObjective
from agnncert.training.labels import checked_labels, masked_rows, part_rows
from agnncert.training.losses import Objective
from agnncert.training.node_objectives import NodeObjective, SampledNodeObjective
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
    canonical_data: CanonicalData,
    division: Defence,
    settings: FitSettings,
    voting_rule: VotingRule | None = None,
) -> TrainingSetup:
    """Checks labels and splits and computes the subgraphs, once for all epochs.

    Args:
        model: The module, in eval mode.
        canonical_data: A ``Data`` with masks, or a ``GraphSet`` with splits, in canonical form.
        division: A division, to train on its subgraphs; a smoothing defence, to train under its noise; or ``None``.
        settings: All settings of ``fit``, from ``checked``; ``require_possible`` has looked at them.
        voting_rule: The voting rule under which weights are scored. Defaults to ``VotingRule()``.

    Raises:
        DatasetError: Labels or splits are missing or do not fit the model.
        SettingsError: Settings do not fit the data or the division.
    """
    if canonical_data.task == "graph":
        return _on_graphs(model, canonical_data, division, settings, voting_rule)
    return _on_nodes(model, canonical_data, division, settings, voting_rule)


class _TrainingPart(NamedTuple):
    """What a node classifier may see in training.

    Attributes:
        graph: The canonical graph.
        y: Label of every node of it.
        rows: Nodes to train on.
    """

    graph: CanonicalGraph
    y: Tensor
    rows: Tensor


def _on_nodes(
    model: torch.nn.Module,
    canonical_data: CanonicalData,
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
        canonical_data = prepared(inductive_view(canonical_data.data), compact=settings["clusters"] is not None)
    data = canonical_data.data
    keeps_loops = _keeps_self_loops(division)
    graph = canonical_data.targets(self_loops=keeps_loops).graph
    train = masked_rows(data, "train_mask")
    val = masked_rows(data, "val_mask")
    bound_model = bind(model, graph, "node")
    labelled = np.concatenate([train, val])
    y = checked_labels(getattr(data, "y", None), canonical_data.total, labelled, bound_model.num_classes)
    settings = with_measure(settings, y[torch.from_numpy(train)], bound_model.num_classes)
    seen = _TrainingPart(graph, y, torch.from_numpy(train))
    if settings["protocol"] == "held-out":
        seen = _without_validation(data, y, keeps_loops)
    union = None
    laid_out = None
    if isinstance(division, Division) and division.has_disjoint_union and settings["clusters"] is None:
        union = union_of_subgraphs(seen.graph, division, bound_model.dtype)
        if seen.graph is graph and not is_large(graph):
            laid_out = EdgesByGroup(graph, division, val, union.near(val))

    def objective_on(part: CanonicalGraph, labels: Tensor, rows: Tensor) -> NodeObjective | SampledNodeObjective:
        if isinstance(division, Division) and not division.has_disjoint_union:
            return SampledNodeObjective.of(bound_model, part, labels, rows, division, settings)
        return NodeObjective.of(bound_model, part, labels, rows, division, settings, union=union)

    rarest = _rarest(seen.y[seen.rows])
    validation = Validation(bound_model, graph, "node", val, y.numpy()[val], settings["measure"], rarest, laid_out)
    if settings["clusters"] is None:
        return TrainingSetup(objective_on(*seen), validation.scorer(division, settings, voting_rule), settings)
    make: Any = addon("agnncert.training", "clusters", "agnncert_large", "clusters=")
    objective = make(*seen, settings["clusters"], settings["clusters_per_step"], objective_on)
    if division is None and is_large(graph) and seen.graph is graph:
        return TrainingSetup(objective, validation.by_prediction(objective), settings)
    return TrainingSetup(objective, validation.scorer(division, settings, voting_rule), settings)


def _keeps_self_loops(division: Defence) -> bool:
    return isinstance(division, Division) and division.self_loops


def _without_validation(data: Data, y: Tensor, keeps_loops: bool) -> _TrainingPart:
    """Returns the training part without validation nodes, which come in when weights are scored, not before.

    Test nodes are gone from the data already.
    """
    keep = ~data.val_mask.bool()
    graph = canonical(inductive_view(data, validation=False), keeps_loops)
    return _TrainingPart(graph, y[keep], data.train_mask[keep].nonzero().view(-1))


def _on_graphs(
    model: torch.nn.Module,
    canonical_data: CanonicalData,
    division: Defence,
    settings: FitSettings,
    voting_rule: VotingRule | None,
) -> TrainingSetup:
    if settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']} cuts one large graph, but these are many: use batch_size."
        )
    keeps_loops = _keeps_self_loops(division)
    train = part_rows(canonical_data.data, "train")
    val = part_rows(canonical_data.data, "val")
    train_graphs = canonical_data.targets(train, keeps_loops).graph
    val_graphs = canonical_data.targets(val, keeps_loops).graph
    bound_model = bind(model, train_graphs, "graph")
    labelled = torch.cat([train, val]).numpy()
    y = checked_labels(graph_classes(canonical_data.data), canonical_data.total, labelled, bound_model.num_classes)
    if settings["no_edge_weight"] != 1:
        raise SettingsError(
            f"no_edge_weight={settings['no_edge_weight']}: a graph has no prediction without edges; leave it out."
        )
    settings = with_measure(settings, y[train], bound_model.num_classes)
    rows = np.arange(len(val))
    rarest = _rarest(y[train])
    validation = Validation(bound_model, val_graphs, "graph", rows, y[val].numpy(), settings["measure"], rarest)
    score = validation.scorer(division, settings, voting_rule)
    objective: Objective
    if isinstance(division, RandomDefence):
        objective = SampledGraphObjective.of_noise(bound_model, train_graphs, y[train], division, settings)
    elif division is None or division.has_disjoint_union:
        objective = GraphObjective.of(bound_model, train_graphs, y[train], division, settings)
    else:
        objective = SampledGraphObjective.of(bound_model, train_graphs, y[train], division, settings)
    return TrainingSetup(objective, score, settings)


def with_measure(settings: FitSettings, y: Tensor, num_classes: int) -> FitSettings:
    """Returns the settings with what the labels of the training part decide: class weights and the measure."""
    balance = settings["balance_classes"]
    if balance is None:
        balance = rare_class(torch.bincount(y).numpy()) is not None
    measure = settings["measure"] or ("balanced" if balance else "accuracy")
    if rate_of(measure) is not None and num_classes != 2:
        raise SettingsError(f'measure="{measure}" is for two classes, and there are {num_classes}: choose "balanced".')
    return {**settings, "balance_classes": balance, "measure": measure}


def _rarest(y: Tensor) -> int:
    """Returns the rarest class of the training part; with ties, and two classes, class 1."""
    count = np.bincount(y.numpy())
    return min(np.flatnonzero(count).tolist(), key=lambda label: (count[label], -label))


def warn_if_uneven(model: torch.nn.Module, data: Any) -> None:
    """Logs a warning if a column varies far more than others and the model does not scale its inputs."""
    if any(isinstance(layer, Scaling) for layer in model.modules()):
        return
    uneven = uneven_column(training_rows(data))
    if uneven is None:
        return
    column, most, median = uneven
    log.warning(
        "features have very different scales: column %d varies by %.3g, the median column by %.3g. Scale them "
        'within the model: build_model(..., scale="standard"), --set scale=standard, or in a module of your own '
        "agnncert.Scaling.of(x).",
        column,
        most,
        median,
    )
