"""Scores of a model on the validation set: the accuracy of its vote, or its certified accuracy.

For a smoothing defence the score is the accuracy of the vote on a few noisy graphs. A model that is trained for a size
is scored by the best vote with a prior that its ballots allow.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from agnncert.baselines.smoothing import Smoothing
from agnncert.divisions import Division, is_graph_task
from agnncert.proof.ballots import IntArray
from agnncert.proof.theorems import certified_radius, tally
from agnncert.training.vote_search import BallotTable, best_constants, certified_accuracy, joined, window
from agnncert.voting import fast
from agnncert.voting.call import Caller
from agnncert.voting.cast import cast

Score = tuple[float, float]

SCORED_SAMPLES = 20  # noisy graphs on which a smoothing defence is scored


def scorer(
    call: Caller, graph: Data, division: Division | None, rows: IntArray, truth: IntArray, size: int
) -> Callable[[], Score]:
    """A function that scores the model with its present weights; larger is better, compared from left to right.

    The first number is the certified accuracy of the vote at ``size`` (at 0, the accuracy of the vote); without a
    division, the accuracy on the whole graph. The second breaks ties: the mean share of ballots for the true class, or
    minus the loss.

    Args:
        call: The model, bound to the graph.
        graph: The canonical graph, or the validation graphs joined into one.
        division: How it is divided; the subgraphs are laid out once, for all calls.
        rows: Nodes to score on, or the numbers of all joined graphs.
        truth: Their labels.
        size: Perturbation size.
    """
    if division is None:
        return lambda: _plain_score(call, graph, rows, truth)
    layout = None
    if hasattr(division, "pieces"):
        layout = fast.plan(graph, division, None if is_graph_task(graph) else rows, call.dtype)

    def score() -> Score:
        votes, _ = cast(call, graph, division, rows, layout=layout)
        counts, counted = votes.counts, tally(votes)
        share = counts[np.arange(len(truth)), truth] / np.maximum(counts.sum(1), 1)
        right = (counted.label == truth) & (certified_radius(counted) >= size)
        return float(right.mean()), float(share.mean())

    return score


def design_scorer(
    call: Caller, parts: Sequence[tuple[Data, IntArray]], division: Division, size: int
) -> Callable[[], Score]:
    """A function that scores the model by the best vote with a prior that its ballots allow.

    The first number is the mean certified accuracy around ``size`` on all parts, each of which counts the same; the
    second that on the last part alone.

    Args:
        call: The model, bound to the graphs.
        parts: Training and validation graphs, each part joined into one, and their labels.
        division: How they are divided.
        size: Perturbation size.
    """
    layouts = [fast.plan(graph, division, None, call.dtype) for graph, _ in parts]
    sizes = window(size)

    def score() -> Score:
        tables = [
            BallotTable.of(cast(call, graph, division, np.arange(len(truth)), layout=layout)[0], truth)
            for (graph, truth), layout in zip(parts, layouts, strict=True)
        ]
        best = best_constants(joined(tables), sizes)
        return best.score, float(np.mean([certified_accuracy(tables[-1], best, each) for each in sizes]))

    return score


@torch.no_grad()
def _plain_score(call: Caller, graph: Data, rows: IntArray, truth: IntArray) -> Score:
    batch = graph.batch if is_graph_task(graph) else None
    logits = call(graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph), batch)
    picked = logits if is_graph_task(graph) else logits[torch.from_numpy(rows)]
    loss = F.cross_entropy(picked, torch.from_numpy(truth))
    return float((picked.argmax(1).numpy() == truth).mean()), -float(loss)


def noisy_scorer(
    call: Caller, graph: Data, defence: Smoothing, rows: IntArray, truth: IntArray, seed: int
) -> Callable[[], Score]:
    """A function that scores the model by its vote on a few noisy graphs, which are the same at every evaluation."""

    def score() -> Score:
        counts = defence.count(call, graph, rows, SCORED_SAMPLES, seed)
        right = counts.argmax(axis=1) == truth
        share = counts[np.arange(len(truth)), truth] / SCORED_SAMPLES
        return float(right.mean()), float(share.mean())

    return score
