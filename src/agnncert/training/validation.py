"""The validation part, and the ways in which the weights of a model are scored on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F

from agnncert.certificates.votes import BoolArray, IntArray, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.reach import ReachTable
from agnncert.engine.structure import pair_facts
from agnncert.engine.union import union_of_subgraphs
from agnncert.engine.votes import compute_votes
from agnncert.errors import SettingsError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.proving.measures import rate_of, target_weights
from agnncert.proving.theorems import certified_radius, count_votes
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

Defence: TypeAlias = Division | RandomDefence | None
Score = tuple[float, float]
Scorer: TypeAlias = Callable[[], Score]

LAID_OUT_EDGES = 1 << 22  # edges of a graph whose subgraphs are kept in memory between evaluations
SCORED_SAMPLES = 20  # noisy graphs on which a smoothing defence is scored


def is_large(graph: CanonicalGraph) -> bool:
    """Returns whether a graph has too many edges to keep its subgraphs in memory between evaluations."""
    return graph.edge_index.size(1) > LAID_OUT_EDGES


@dataclass(frozen=True)
class Validation:
    """The validation part, and the ways in which a model is scored on it, with the weights that it has at each call.

    Attributes:
        bound_model: The model, bound to the graph.
        graph: The canonical graph, or the validation graphs joined into one.
        task: ``"node"`` or ``"graph"``.
        rows: Nodes to score on, or the numbers of all joined graphs.
        truth: Their labels.
        measure: As in the settings of ``fit``.
        positive: The class whose recall is measured, if that is the measure.
        laid_out: The subgraphs near these rows, if they have been laid out before.
    """

    bound_model: ModelAdapter
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
        """Returns the score that the settings of ``fit`` ask for.

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
        """Scores by the measure of the vote, certified at ``size``; ties by the mean share of votes for the truth."""
        theorem = division.theorem(self.task)
        num_classes = self.bound_model.num_classes
        complete_rule = (voting_rule or VotingRule()).under(theorem, num_classes)
        is_default_rule = complete_rule == VotingRule().under(theorem, num_classes)
        if self.rate is not None:
            if voting_rule is not None:
                raise SettingsError(f'{voting_rule}: measure="{self.measure}" chooses the voting rule; leave it out.')
            return self._by_recall(division, complete_rule, self.rate, size)
        edges_by_group = self._laid_out(division)

        def score_by_counts() -> Score:
            votes, _ = self._votes(division, edges_by_group)
            counted = count_votes(votes)
            return self._score((counted.label == self.truth) & (certified_radius(counted) >= size), votes.counts)

        def score_by_evidence() -> Score:
            evidence = self._evidence(division, edges_by_group, complete_rule)
            label, radius = evidence.label_and_radius()
            return self._score((label == self.truth) & (radius >= size), evidence.votes.counts)

        return score_by_counts if is_default_rule and not division.is_per_neighbour else score_by_evidence

    def _by_recall(self, division: Division, voting_rule: VotingRule, rate: float, size: int) -> Scorer:
        """Scores by recall at a false positive rate without an attack, certified at ``size``; ties by the recall."""
        edges_by_group = self._laid_out(division)
        empties = thresholds_of(division, self.task)

        def score() -> Score:
            evidence = self._evidence(division, edges_by_group, voting_rule)
            return self._recall(VoteTable.of(evidence, self.truth), empties, rate, size)

        return score

    def by_best_prior(self, division: Division, size: int, against: Against) -> Scorer:
        """Scores by mean certified accuracy around ``size`` with the best prior for the votes; ties by the accuracy."""
        sizes = window(size)
        empties = division.empty_votes_of_nodes
        voting_rule = VotingRule(prior=division.least_prior("node")).under(
            division.theorem("node"), self.bound_model.num_classes
        )
        edges_by_group = self._laid_out(division)

        def score() -> Score:
            evidence = self._evidence(division, edges_by_group, voting_rule)
            table = VoteTable.of(evidence, self.truth, against, self.measure)
            candidates = [best_no_edge_prior(table, sizes, empty) for empty in empties]
            certified = [certified_accuracy(table, candidate, *sizes) for candidate in candidates]
            best = int(np.argmax(certified))
            return certified[best], certified_accuracy(table, candidates[best], 0)

        return score

    def by_noise(self, defence: RandomDefence, seed: int) -> Scorer:
        """Scores by the accuracy of the vote on a few noisy graphs, the same at every evaluation."""
        defence.count(self.bound_model, self.graph, self.rows, 1, seed)  # errors come now, not after the first epoch

        def score() -> Score:
            counts = defence.count(self.bound_model, self.graph, self.rows, SCORED_SAMPLES, seed)
            return self._score(counts.argmax(axis=1) == self.truth, counts)

        return score

    def by_prediction(self, clusters: Any = None) -> Scorer:
        """Scores by accuracy on the whole graph, or on clusters if it is too large for one pass; ties by the loss."""
        rows = torch.from_numpy(self.rows)
        truth = torch.from_numpy(self.truth)

        @torch.no_grad()
        def score() -> Score:
            parts = [(self.graph, rows, truth)] if clusters is None else clusters.scored(rows)
            logits = []
            labels = []
            for part, rows_in_part, labels_in_part in parts:
                logits.append(self._logits(part)[rows_in_part])
                labels.append(labels_in_part)
            predicted = torch.cat(logits)
            true = torch.cat(labels)
            right = (predicted.argmax(1) == true).numpy()
            ordered = replace(self, truth=true.numpy())  # as the clusters are
            return ordered._measured(right, predicted.numpy()), -float(F.cross_entropy(predicted, true))

        return score

    def _logits(self, part: CanonicalGraph) -> torch.Tensor:
        values = self.bound_model.edge_values(part)
        return self.bound_model(part.x.to(self.bound_model.dtype), part.edge_index, values, part.batch)

    def _score(self, right: BoolArray, counts: IntArray) -> Score:
        share = counts[np.arange(len(self.truth)), self.truth] / np.maximum(counts.sum(1), 1)
        return self._measured(right, counts), float(share.mean())

    def _measured(self, right: BoolArray, scores: Any) -> float:
        """Returns the measure of predictions without a certificate; ``scores`` has shape ``[n, C]``."""
        if self.rate is not None:
            return self._plain_recall(scores, self.rate)
        if self.measure == "balanced":
            return float(target_weights(self.truth, "balanced") @ right)
        return float(right.mean())

    def _plain_recall(self, scores: Any, rate: float) -> float:
        """Returns the recall of the positive class with the threshold for a false positive rate."""
        is_positive = self.truth == self.positive
        if not is_positive.any():
            return 0.0
        leads = scores[:, 1 - self.positive] - scores[:, self.positive]
        lead = largest_lead(leads, ~is_positive, int(rate * (~is_positive).sum()))
        return float((leads <= lead)[is_positive].mean())

    def _recall(self, table: VoteTable, empties: list[Empty], rate: float, size: int) -> Score:
        """Returns certified recall at a size, and recall, with the threshold for a rate without an attack."""
        is_positive = self.truth == self.positive
        most = int(rate * (~is_positive).sum())
        threshold = best_threshold(table, empties, self.positive, ~is_positive, most, size)
        num_positive = max(1, is_positive.sum())
        return threshold.num_certified / num_positive, threshold.num_found / num_positive

    def _laid_out(self, division: Division) -> EdgesByGroup | None:
        """Returns the subgraphs for all evaluations; ``None`` if they are too large to keep."""
        if self.laid_out is not None:
            return self.laid_out
        if not division.has_disjoint_union or is_large(self.graph):
            return None
        union = union_of_subgraphs(self.graph, division, self.bound_model.dtype).near(self.rows)
        return EdgesByGroup(self.graph, division, self.rows, union)

    def _evidence(
        self, division: Division, edges_by_group: EdgesByGroup | None, voting_rule: VotingRule
    ) -> VoteEvidence:
        """Returns the evidence that ``certify`` would store."""
        votes, reach = self._votes(division, edges_by_group)
        pairs: dict[str, Any] = pair_facts(self.graph, division, self.rows, votes.indptr, votes.group)
        theorem = division.theorem(self.task)
        return VoteEvidence.from_votes(votes, theorem, voting_rule, reach, parameters=division.parameters, **pairs)

    def _votes(self, division: Division, edges_by_group: EdgesByGroup | None) -> tuple[Votes, ReachTable]:
        return compute_votes(self.bound_model, self.graph, division, self.rows, edges_by_group=edges_by_group)
