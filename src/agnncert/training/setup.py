"""What ``fit`` prepares once: checked labels and splits, the training objective, and the validation score."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.baselines.smoothing import Smoothing
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import inductive_view
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.call import Caller, bind
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.graph import CanonicalGraph, Task, canonical, canonical_set, infer_task
from agnncert.graphs.targets import class_numbers, graph_classes, target_rows
from agnncert.training.clusters import ClusterObjective, partition
from agnncert.training.objectives import (
    GraphObjective,
    NodeObjective,
    NoisyNodeObjective,
    Objective,
    SampledGraphObjective,
    SampledNodeObjective,
    noisy_graphs,
)
from agnncert.training.scoring import LAID_OUT_EDGES, Score, node_design_scorer, noisy_scorer, part_scorer, scorer
from agnncert.training.settings import FitSettings

Defence: TypeAlias = Division | Smoothing | None


@dataclass(frozen=True)
class TrainingSetup:
    """The objective on the training part, and a function that scores the model on the validation part."""

    objective: Objective
    score: Callable[[], Score]


def prepare(
    model: torch.nn.Module, data: Any, division: Defence, settings: FitSettings, vote: VotingRule | None = None
) -> TrainingSetup:
    """Checks data and settings and computes the subgraphs, once for all epochs.

    Args:
        model: The module, in eval mode.
        data: A ``Data`` with masks or a ``GraphSet`` with splits.
        division: A division, to train on its subgraphs; a smoothing defence, to train under its noise; or ``None``.
        settings: All settings of ``fit``, from ``checked``.
        vote: The voting rule under which weights are scored. Defaults to ``VotingRule()``.

    Raises:
        DatasetError: Labels or splits are missing or do not fit the model.
        SettingsError: Settings do not fit the data or the division.
    """
    if isinstance(division, EdgeCentric) and division.edges_only:
        division = replace(division, edges_only=False)  # the subgraphs are the same: only what is proved differs
    _require_possible(division, settings, vote)
    if infer_task(data) == "graph":
        return _on_graphs(model, data, division, settings, vote)
    if settings["objective"] == "vote":
        raise SettingsError(
            'objective="vote" trains graph classifiers; for nodes choose "balanced" or "paper", which have a '
            "separate term for the prediction without edges."
        )
    data = data if settings["protocol"] == "transductive" else inductive_view(data)
    loops = isinstance(division, Division) and division.self_loops
    in_parts = settings["clusters"] is not None and not isinstance(division, Smoothing)  # no model sees the whole graph
    graph = canonical(data, loops, compact=in_parts)
    train, val = (masked_rows(data, name) for name in ("train_mask", "val_mask"))
    call = bind(model, graph, "node")
    y = checked_labels(getattr(data, "y", None), graph.num_nodes, np.concatenate([train, val]), call.num_classes)
    seen, labels, rows = graph, y, torch.from_numpy(train)
    if settings["protocol"] == "held-out":  # validation nodes come in when weights are scored, not before
        seen, labels = canonical(inductive_view(data, validation=False), loops), y[rows]
        rows = torch.arange(len(rows))
    objective = _node_objective(call, seen, labels, rows, division, settings)
    large = graph.num_edges > LAID_OUT_EDGES
    if division is None and isinstance(objective, ClusterObjective) and large and seen is graph:
        parts, scored = objective.scored(torch.from_numpy(val))
        return TrainingSetup(objective, part_scorer(call, parts, y[scored].numpy()))
    return TrainingSetup(objective, _scorer(call, graph, division, val, y.numpy()[val], settings, vote))


def _require_possible(division: Defence, settings: FitSettings, vote: VotingRule | None) -> None:
    if isinstance(division, Division) and division.rule("node") == "custom/node":
        raise SettingsError(
            f"fit does not train on the subgraphs of a division of your own, {type(division).__name__}: train without "
            "a division or with a built-in one, such as EdgeCentric, and certify with your own."
        )
    size = settings["select_size"]
    per_neighbour = isinstance(division, Division) and division.is_per_neighbour
    groups = division.num_groups if isinstance(division, Division) and not per_neighbour else 0
    if vote is not None and not isinstance(division, Division):
        raise SettingsError(f"{vote}: only the ballots of a division are added up; leave it out, or give a division.")
    if vote is not None and settings["objective"] == "certified":
        raise SettingsError(
            f'{vote}: objective="certified" scores weights by the best prior, and choose_vote finds it; leave it out.'
        )
    if 2 * size > groups and not per_neighbour and (vote is None or not vote.prior):
        reason = f"{groups} ballots certify at most size {groups // 2}" if groups else "there is no division"
        raise SettingsError(f"select_size={size}, but {reason}: choose a smaller size, or more groups.")
    if settings["objective"] == "certified":
        _require_designed(division)
    if settings["objective"] == "paper" and per_neighbour:
        raise SettingsError(
            'objective="paper" is a sum over all groups, which are beyond number here: choose "balanced".'
        )
    if isinstance(division, Smoothing) and settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']}: training under noise sees the whole graph at once; leave it out."
        )


def _require_designed(division: Defence) -> None:
    """Refuses a division for which ``choose_voting_rule`` chooses no prior."""
    if not isinstance(division, Division) or not division.knows_empty_groups:
        raise SettingsError(
            f'objective="certified" counts the empty groups of EdgeCentric or NodeCentric, not of {division}: '
            "choose one of these without gated features, or another objective."
        )


def _scorer(
    call: Caller,
    graph: CanonicalGraph,
    division: Defence,
    rows: Any,
    truth: Any,
    settings: FitSettings,
    vote: VotingRule | None,
) -> Callable[[], Score]:
    if isinstance(division, Smoothing):
        division.count(call, graph, rows, 1, settings["seed"])  # errors come now, not after the first epoch
        return noisy_scorer(call, graph, division, rows, truth, settings["seed"])
    if settings["objective"] == "certified" and division is not None:
        return node_design_scorer(call, graph, division, rows, truth, settings["design_size"], settings["against"])
    return scorer(call, graph, division, rows, truth, settings["select_size"], vote)


def _on_graphs(
    model: torch.nn.Module, data: Any, division: Defence, settings: FitSettings, vote: VotingRule | None
) -> TrainingSetup:
    if settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']} cuts one large graph, but these are many: use batch_size."
        )
    loops = isinstance(division, Division) and division.self_loops
    train, val = (part_rows(data, name) for name in ("train", "val"))
    joined, held_out = (canonical_set([data[int(k)] for k in part], loops) for part in (train, val))
    call = bind(model, joined, "graph")
    y = checked_labels(graph_classes(data), len(data), torch.cat([train, val]).numpy(), call.num_classes)
    score = _scorer(call, held_out, division, np.arange(len(val)), y[val].numpy(), settings, vote)
    objective: Objective
    if isinstance(division, Smoothing):
        objective = noisy_graphs(call, joined, y[train], division, settings)
    elif division is None or division.has_disjoint_union:
        objective = GraphObjective.of(call, joined, y[train], division, settings)
    else:
        objective = SampledGraphObjective.of(call, joined, y[train], division, settings)
    return TrainingSetup(objective, score)


def _node_objective(
    call: Caller, graph: CanonicalGraph, y: Tensor, rows: Tensor, division: Defence, settings: FitSettings
) -> Objective:
    if isinstance(division, Smoothing):
        return NoisyNodeObjective(NodeObjective.of(call, graph, y, rows, None, settings), division)

    def on(part: CanonicalGraph, labels: Tensor, part_rows: Tensor) -> NodeObjective | SampledNodeObjective:
        if division is None or division.has_disjoint_union:
            return NodeObjective.of(call, part, labels, part_rows, division, settings)
        return SampledNodeObjective.of(call, part, labels, part_rows, division, settings)

    if settings["clusters"] is None:
        return on(graph, y, rows)
    clusters = partition(graph, settings["clusters"])
    return ClusterObjective(graph, y, rows, clusters, settings["clusters_per_step"], on)


def require_vote(vote: VotingRule | None, division: Division, task: Task, num_classes: int | None = None) -> None:
    """Raises SettingsError if ``vote`` is not a VotingRule that this division can use."""
    if vote is None:
        return
    if not isinstance(vote, VotingRule):
        raise SettingsError(f'rule={vote!r:.60}: expected a VotingRule, such as VotingRule(empty="abstain", prior=5).')
    least = max(2, len(vote.class_prior), 0 if vote.constant is None else vote.constant + 1)
    vote.under(division.rule(task), least if num_classes is None else num_classes)


def checked_labels(y: Any, total: int, rows: np.ndarray[Any, Any], num_classes: int) -> Tensor:
    """Labels of all rows as int64; those of ``rows`` are checked.

    Raises:
        DatasetError: There are none, or one of them is not a class of the model.
    """
    if y is None:
        raise DatasetError("the graph has no labels y: training needs them.")
    labels = class_numbers(y, total)
    if labels is None:
        raise DatasetError(
            f"labels y have shape {tuple(torch.as_tensor(y).shape)}: expected one class number per row, integers of "
            f"shape [{total}]. Of one-hot rows, y.argmax(1) is the class."
        )
    used = labels[torch.from_numpy(rows)]
    wrong = rows[((used < 0) | (used >= num_classes)).numpy()]
    if len(wrong):
        raise DatasetError(
            f"row {wrong[0]} has label {int(labels[wrong[0]])}, but the model has classes 0 to {num_classes - 1}: "
            "leave rows without a label out of training and validation, and give the model as many classes as the data."
        )
    return labels


def masked_rows(data: Data, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of the nodes in a mask; raises ``DatasetError`` if it is missing or empty."""
    mask = getattr(data, name, None)
    if mask is None:
        raise DatasetError(
            f"the graph has no {name}: training needs train_mask and val_mask, such as load_dataset gives."
        )
    flags = torch.as_tensor(mask)
    if flags.shape != (data.num_nodes,):
        splits = f" It holds several splits: choose one, {name}[:, 0]." if flags.dim() == 2 else ""
        raise DatasetError(
            f"{name} has shape {tuple(flags.shape)}, but there are {data.num_nodes} nodes: a mask says True or False "
            f"for each.{splits}"
        )
    if not bool(((flags == 0) | (flags == 1)).all()):
        raise DatasetError(f"{name} holds other numbers than 0 and 1: a mask says True or False for each node.")
    rows = target_rows(flags.bool().numpy(), int(data.num_nodes))
    if len(rows) == 0:
        raise DatasetError(f"{name} is empty: training needs at least one node in train_mask and one in val_mask.")
    return rows


def part_rows(data: Any, name: str) -> Tensor:
    """Positions of the graphs in a part of a graph set; raises ``DatasetError`` if it is missing or empty."""
    rows = getattr(data, name, None)
    if rows is None or len(rows) == 0:
        raise DatasetError(
            f'the graphs have no "{name}" part: training needs GraphSet(graphs, train=…, val=…), such as '
            "load_dataset gives."
        )
    return torch.as_tensor(np.asarray(rows), dtype=torch.int64)
