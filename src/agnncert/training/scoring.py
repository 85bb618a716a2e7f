"""Scores of a model on the validation set: the accuracy of its vote, or its certified accuracy.

For a smoothing defence the score is the accuracy of the vote on a few noisy graphs. With objective="certified" a node
classifier is scored with the best prior.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.baselines.smoothing import Smoothing
from agnncert.certificates.votes import IntArray, under_vote
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, is_graph_task
from agnncert.engine import fast
from agnncert.engine.call import Caller
from agnncert.engine.cover import pair_facts
from agnncert.engine.ranges import cast
from agnncert.graphs.graph import CanonicalGraph
from agnncert.proving.evidence import BallotEvidence
from agnncert.proving.theorems import certified_radius, tally
from agnncert.training.rule_search import BallotTable, Empty, best_edgeless_prior, certified_accuracy, window
from agnncert.training.settings import Against

Score = tuple[float, float]

LAID_OUT_EDGES = 1 << 22  # edges of a graph whose subgraphs are kept in memory between evaluations
SCORED_SAMPLES = 20  # noisy graphs on which a smoothing defence is scored


def scorer(
    call: Caller,
    graph: CanonicalGraph,
    division: Division | None,
    rows: IntArray,
    truth: IntArray,
    size: int,
    vote: VotingRule | None = None,
) -> Callable[[], Score]:
    """A function that scores the model with its current weights; larger is better, compared from left to right.

    The first number is the certified accuracy of the vote at ``size`` (at 0, the accuracy of the vote); without a
    division, the accuracy on the whole graph. The second breaks ties: the mean share of ballots for the true class, or
    minus the loss.

    Args:
        call: The model, bound to the graph.
        graph: The canonical graph, or the validation graphs joined into one.
        division: The division. Subgraphs are computed once for all calls, or in each call for a large graph.
        rows: Nodes to score on, or the numbers of all joined graphs.
        truth: Their labels.
        size: Perturbation size.
        vote: The voting rule. Defaults to ``VotingRule()``.

    Raises:
        SettingsError: The division cannot use this voting rule.
    """
    if division is None:
        return lambda: _plain_score(call, graph, rows, truth)
    rule = division.rule("graph" if is_graph_task(graph) else "node")
    spelled = (vote or VotingRule()).under(rule, call.num_classes)
    plain = spelled == VotingRule().under(rule, call.num_classes) and not division.is_per_neighbour
    layout = _layout(call, graph, division, rows)

    def score() -> Score:
        if plain:
            votes, _ = cast(call, graph, division, rows, layout=layout)
            counts, counted = votes.counts, tally(votes)
            label, radius = counted.label, certified_radius(counted)
        else:
            evidence = _evidence(call, graph, division, rows, layout, spelled)
            counts, (label, radius) = evidence.votes.counts, evidence.label_and_radius()
        share = counts[np.arange(len(truth)), truth] / np.maximum(counts.sum(1), 1)
        right = (label == truth) & (radius >= size)
        return float(right.mean()), float(share.mean())

    return score


def _layout(call: Caller, graph: CanonicalGraph, division: Division, rows: IntArray) -> fast.Plan | None:
    """The subgraphs for all evaluations; ``None`` if they are too large to keep."""
    if not division.has_disjoint_union or graph.num_edges > LAID_OUT_EDGES:
        return None
    return fast.plan(graph, division, None if is_graph_task(graph) else rows, call.dtype)


def _evidence(
    call: Caller, graph: CanonicalGraph, division: Division, rows: IntArray, layout: fast.Plan | None, vote: VotingRule
) -> BallotEvidence:
    """The evidence that ``certify`` would store."""
    rule, parameters = division.rule("graph" if is_graph_task(graph) else "node"), division.parameters
    votes, cover = cast(call, graph, division, rows, layout=layout)
    added, edgeless = under_vote(votes, vote)
    pairs = pair_facts(graph, division, rows, votes.indptr, votes.group)
    widths = cover[1].astype(np.int32)
    return BallotEvidence(added, rule, cover[0], widths, "node_id", parameters, vote, **edgeless, **pairs)


def node_design_scorer(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    truth: IntArray,
    size: int,
    against: Against,
) -> Callable[[], Score]:
    """A function that scores a node classifier with the best prior for its votes; arguments as for :func:`scorer`.

    The first number is the mean certified accuracy around ``size``, the second the accuracy.
    """
    sizes, own = window(size), division.is_per_neighbour
    empties: list[Empty] = ["abstain"] if own else ["edgeless", "abstain"]
    # With one subgraph per neighbour the prediction without edges is a prior.
    vote = VotingRule(prior=int(own)).under(division.rule("node"), call.num_classes)
    layout = _layout(call, graph, division, rows)

    def score() -> Score:
        ballots = _evidence(call, graph, division, rows, layout, vote)
        table = BallotTable.of_own_groups(ballots, truth, against) if own else BallotTable.of(ballots.votes, truth)
        best = max((best_edgeless_prior(table, sizes, empty) for empty in empties), key=lambda found: found.score)
        return best.score, certified_accuracy(table, best, 0)

    return score


@torch.no_grad()
def _plain_score(call: Caller, graph: CanonicalGraph, rows: IntArray, truth: IntArray) -> Score:
    batch = graph.batch if is_graph_task(graph) else None
    logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), batch)
    picked = logits if is_graph_task(graph) else logits[torch.from_numpy(rows)]
    loss = F.cross_entropy(picked, torch.from_numpy(truth))
    return float((picked.argmax(1).numpy() == truth).mean()), -float(loss)


def part_scorer(
    call: Caller, parts: Callable[[], Iterable[tuple[CanonicalGraph, Tensor]]], truth: IntArray
) -> Callable[[], Score]:
    """A function that scores a model without a division on parts of a graph, each with the rows that are scored.

    ``truth`` has the labels of these rows over all parts.
    """

    @torch.no_grad()
    def score() -> Score:
        logits = torch.cat([
            call(part.x.to(call.dtype), part.edge_index, call.edge_values(part))[rows] for part, rows in parts()
        ])  # fmt: skip
        loss = F.cross_entropy(logits, torch.from_numpy(truth))
        return float((logits.argmax(1).numpy() == truth).mean()), -float(loss)

    return score


def noisy_scorer(
    call: Caller, graph: CanonicalGraph, defence: Smoothing, rows: IntArray, truth: IntArray, seed: int
) -> Callable[[], Score]:
    """A function that scores the model by its vote on a few noisy graphs, the same at every evaluation."""

    def score() -> Score:
        counts = defence.count(call, graph, rows, SCORED_SAMPLES, seed)
        right = counts.argmax(axis=1) == truth
        share = counts[np.arange(len(truth)), truth] / SCORED_SAMPLES
        return float(right.mean()), float(share.mean())

    return score
