"""What ``fit`` prepares once: checked labels and splits, the training objective, and the validation score."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from agnncert.addons import addon
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import inductive_view
from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.structure import pair_facts
from agnncert.engine.union import union_of_subgraphs
from agnncert.engine.votes import compute_votes
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.models.wrappers import Scaling, training_rows, uneven_column
from agnncert.proving.evidence import VoteEvidence
from agnncert.proving.measures import rare_class, rate_of, target_weights
from agnncert.proving.theorems import certified_radius, count_votes
from agnncert.training.objectives import (
    GraphObjective,
    NodeObjective,
    Objective,
    SampledGraphObjective,
    SampledNodeObjective,
)
from agnncert.training.rule_search import (
    Empty,
    VoteTable,
    best_no_edge_prior,
    best_threshold,
    certified_accuracy,
    largest_lead,
    thresholds_of,
    window,
)
from agnncert.training.settings import Against, FitSettings

log = logging.getLogger(__name__)

Defence: TypeAlias = Division | RandomDefence | None
Score = tuple[float, float]
Scorer: TypeAlias = Callable[[], Score]

LAID_OUT_EDGES = 1 << 22  # edges of a graph whose subgraphs are kept in memory between evaluations
SCORED_SAMPLES = 20  # noisy graphs on which a smoothing defence is scored


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


def require_possible(division: Defence, settings: FitSettings, voting_rule: VotingRule | None, task: Task) -> None:
    """Raises SettingsError if settings do not go with the defence or with the voting rule."""
    votes_of = division if isinstance(division, Division) else None
    if votes_of is not None:
        require_voting_rule(voting_rule, votes_of, task)
    if votes_of is not None and votes_of.theorem("node") == "custom/node":
        raise SettingsError(
            f"fit does not train on the subgraphs of a division of your own, {type(division).__name__}: train without "
            "a division or with a built-in one, such as EdgeCentric, and certify with your own."
        )
    per_neighbour = votes_of is not None and votes_of.is_per_neighbour
    if voting_rule is not None and votes_of is None:
        raise SettingsError(
            f"{voting_rule}: only the votes of a division are added up; leave it out, or give a division."
        )
    if settings["objective"] == "certified":
        if voting_rule is not None:
            raise SettingsError(
                f'{voting_rule}: objective="certified" scores weights by the best prior, and choose_voting_rule finds '
                "it; leave it out."
            )
        if votes_of is None or not votes_of.knows_empty_groups:
            raise SettingsError(
                f'objective="certified" counts the empty groups of EdgeCentric or NodeCentric, not of {division}: '
                "choose one of these without gated features, or another objective."
            )
    elif not per_neighbour and (voting_rule is None or not voting_rule.prior):
        groups, size = 0 if votes_of is None else votes_of.num_groups, settings["size"]
        if 2 * size > groups:
            reason = f"{groups} votes certify at most size {groups // 2}" if groups else "there is no division"
            raise SettingsError(f"size={size}, but {reason}: choose a smaller size, or more groups.")
    if settings["objective"] == "paper" and per_neighbour:
        raise SettingsError(
            'objective="paper" is a sum over all groups, which are beyond number here: choose "balanced".'
        )
    if isinstance(division, RandomDefence) and settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']}: training under noise sees the whole graph at once; leave it out."
        )


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
    union, known, large = None, None, graph.edge_index.size(1) > LAID_OUT_EDGES
    if isinstance(division, Division) and division.has_disjoint_union and settings["clusters"] is None:
        union = union_of_subgraphs(seen, division, call.dtype)
        known = EdgesByGroup(graph, division, val, union.near(val)) if seen is graph and not large else None

    def on(part: CanonicalGraph, labels: Tensor, part_rows: Tensor) -> NodeObjective | SampledNodeObjective:
        if isinstance(division, Division) and not division.has_disjoint_union:
            return SampledNodeObjective.of(call, part, labels, part_rows, division, settings)
        return NodeObjective.of(call, part, labels, part_rows, division, settings, union)

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


@dataclass(frozen=True)
class Validation:
    """The validation part, and the ways in which a model is scored on it, with the weights that it has at each call.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph, or the validation graphs joined into one.
        task: ``"node"`` or ``"graph"``.
        rows: Nodes to score on, or the numbers of all joined graphs.
        truth: Their labels.
        measure: As in the settings of ``fit``.
        positive: The class whose recall is measured, if that is the measure.
        laid_out: The subgraphs near these rows, if they have been laid out before.
    """

    call: ModelAdapter
    graph: CanonicalGraph
    task: Task
    rows: IntArray
    truth: IntArray
    measure: str | None = "accuracy"
    positive: int = 1
    laid_out: EdgesByGroup | None = None

    @cached_property
    def rate(self) -> float | None:
        """The false positive rate that the measure names, if it does."""
        return rate_of(self.measure or "accuracy")

    def scorer(self, division: Defence, settings: FitSettings, voting_rule: VotingRule | None) -> Scorer:
        """The score that the settings of ``fit`` ask for.

        Raises:
            SettingsError: The division cannot use this voting rule.
        """
        if division is None:
            return self.by_prediction()
        if isinstance(division, RandomDefence):
            return self.by_noise(division, settings["seed"])
        if settings["objective"] == "certified":
            return self.by_best_prior(division, settings["size"], settings["against"])
        return self.by_vote(division, settings["size"], voting_rule)

    def by_vote(self, division: Division, size: int, voting_rule: VotingRule | None = None) -> Scorer:
        """Measure of the vote, certified at ``size``; ties by the mean share of votes for the true class."""
        rate, theorem, num_classes = self.rate, division.theorem(self.task), self.call.num_classes
        spelled = (voting_rule or VotingRule()).under(theorem, num_classes)
        plain = spelled == VotingRule().under(theorem, num_classes) and not division.is_per_neighbour
        edges_by_group = self._laid_out(division)
        if rate is not None and voting_rule is not None:
            raise SettingsError(f'{voting_rule}: measure="{self.measure}" chooses the voting rule; leave it out.')

        def score() -> Score:
            if rate is not None:
                evidence = self._evidence(division, edges_by_group, spelled)
                return self._recall(VoteTable.of(evidence, self.truth), thresholds_of(division, self.task), rate, size)
            if plain:
                votes, _ = compute_votes(self.call, self.graph, division, self.rows, edges_by_group=edges_by_group)
                counts, counted = votes.counts, count_votes(votes)
                label, radius = counted.label, certified_radius(counted)
            else:
                evidence = self._evidence(division, edges_by_group, spelled)
                counts, (label, radius) = evidence.votes.counts, evidence.label_and_radius()
            return self._counted((label == self.truth) & (radius >= size), counts)

        return score

    def by_best_prior(self, division: Division, size: int, against: Against) -> Scorer:
        """Mean certified accuracy around ``size`` with the best prior for the votes; ties by the accuracy."""
        sizes, own = window(size), division.is_per_neighbour
        empties: list[Empty] = ["abstain"] if own else ["no_edge", "abstain"]
        # With one subgraph per neighbour the prediction without edges is a prior.
        voting_rule = VotingRule(prior=int(own)).under(division.theorem("node"), self.call.num_classes)
        edges_by_group = self._laid_out(division)

        def score() -> Score:
            table = VoteTable.of(
                self._evidence(division, edges_by_group, voting_rule), self.truth, against, self.measure
            )
            rules = [best_no_edge_prior(table, sizes, empty) for empty in empties]
            found, best = max(
                ((certified_accuracy(table, voting_rule, *sizes), voting_rule) for voting_rule in rules),
                key=itemgetter(0),
            )
            return found, certified_accuracy(table, best, 0)

        return score

    def by_noise(self, defence: RandomDefence, seed: int) -> Scorer:
        """Accuracy of the vote on a few noisy graphs, the same at every evaluation."""
        defence.count(self.call, self.graph, self.rows, 1, seed)  # errors come now, not after the first epoch

        def score() -> Score:
            counts = defence.count(self.call, self.graph, self.rows, SCORED_SAMPLES, seed)
            return self._counted(counts.argmax(axis=1) == self.truth, counts)

        return score

    def by_prediction(self, clusters: Any = None) -> Scorer:
        """Accuracy on the whole graph, or on clusters if it is too large for one pass; ties by the loss."""
        call, rows, truth = self.call, torch.from_numpy(self.rows), torch.from_numpy(self.truth)

        @torch.no_grad()
        def score() -> Score:
            logits, y = [], []
            for part, chosen, labels in [(self.graph, rows, truth)] if clusters is None else clusters.scored(rows):
                values = call.edge_values(part)
                logits.append(call(part.x.to(call.dtype), part.edge_index, values, part.batch)[chosen])
                y.append(labels)
            predicted, true = torch.cat(logits), torch.cat(y)
            right = (predicted.argmax(1) == true).numpy()
            ordered = replace(self, truth=true.numpy())  # as the clusters are
            return ordered._measured(right, predicted.numpy()), -float(F.cross_entropy(predicted, true))

        return score

    def _counted(self, right: BoolArray, counts: IntArray) -> Score:
        share = counts[np.arange(len(self.truth)), self.truth] / np.maximum(counts.sum(1), 1)
        return self._measured(right, counts), float(share.mean())

    def _measured(self, right: BoolArray, scores: Any) -> float:
        """The measure of predictions without a certificate; ``scores`` of the classes has shape ``[n, C]``."""
        if self.rate is None:
            weights = None if self.measure != "balanced" else target_weights(self.truth, "balanced")
            return float(right.mean() if weights is None else weights @ right)
        leads, is_positive = scores[:, 1 - self.positive] - scores[:, self.positive], self.truth == self.positive
        lead = largest_lead(leads, ~is_positive, int(self.rate * (~is_positive).sum()))
        return float((leads <= lead)[is_positive].mean()) if is_positive.any() else 0.0

    def _recall(self, table: VoteTable, empties: list[Empty], rate: float, size: int) -> Score:
        """Certified recall at a size and recall, with the threshold for a false positive rate without an attack."""
        is_positive = self.truth == self.positive
        most = int(rate * (~is_positive).sum())
        *_, kept = best_threshold(table, empties, self.positive, ~is_positive, most, size)
        return kept[0] / max(1, is_positive.sum()), kept[1] / max(1, is_positive.sum())

    def _laid_out(self, division: Division) -> EdgesByGroup | None:
        """The subgraphs for all evaluations; ``None`` if they are too large to keep."""
        if self.laid_out is not None:
            return self.laid_out
        if not division.has_disjoint_union or self.graph.edge_index.size(1) > LAID_OUT_EDGES:
            return None
        union = union_of_subgraphs(self.graph, division, self.call.dtype).near(self.rows)
        return EdgesByGroup(self.graph, division, self.rows, union)

    def _evidence(
        self, division: Division, edges_by_group: EdgesByGroup | None, voting_rule: VotingRule
    ) -> VoteEvidence:
        """The evidence that ``certify`` would store."""
        votes, reach = compute_votes(self.call, self.graph, division, self.rows, edges_by_group=edges_by_group)
        pairs: dict[str, Any] = pair_facts(self.graph, division, self.rows, votes.indptr, votes.group)
        theorem = division.theorem(self.task)
        return VoteEvidence.from_votes(votes, theorem, voting_rule, reach, parameters=division.parameters, **pairs)


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
            column, most, median,
        )  # fmt: skip


def require_voting_rule(
    voting_rule: VotingRule | None, division: Division, task: Task, num_classes: int | None = None
) -> None:
    """Raises SettingsError if ``vote`` is not a VotingRule that this division can use."""
    if voting_rule is None:
        return
    if not isinstance(voting_rule, VotingRule):
        raise SettingsError(
            f'rule={voting_rule!r:.60}: expected a VotingRule, such as VotingRule(empty="abstain", prior=5).'
        )
    least = max(2, len(voting_rule.class_prior), 0 if voting_rule.constant is None else voting_rule.constant + 1)
    voting_rule.under(division.theorem(task), least if num_classes is None else num_classes)


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
    rows = np.flatnonzero(flags.bool().numpy())
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
