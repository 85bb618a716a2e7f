"""The validation part, and the ways in which the weights of a model are scored on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, RandomDefence
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.structure import pair_facts
from agnncert.engine.union import union_of_subgraphs
from agnncert.engine.votes import compute_votes
from agnncert.errors import SettingsError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.proving.evidence import VoteEvidence
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
        if not division.has_disjoint_union or is_large(self.graph):
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
