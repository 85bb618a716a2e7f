"""The oracle: one subgraph at a time, exactly as the method is defined. Slow, and meant to be believed."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.rounding import Predictions, predict
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.progress import ReportProgress


def table(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    report_progress: ReportProgress | None = None,
) -> Predictions:
    """Computes the votes of all targets in all subgraphs, shape ``[num_targets, num_groups]``.

    The arguments are those of ``compute_votes``.
    """
    num_groups = division.num_groups_in(graph)
    if graph.task == "graph":
        graphs = []
        for row in _with_progress(rows, report_progress):
            graphs.append(graph_votes(bound_model, one_graph(graph, row), division, tolerance, num_groups))
        return Predictions(np.stack([votes.vote for votes in graphs]), np.stack([votes.stable for votes in graphs]))
    groups = division.groups(graph)
    columns = []
    for index in _with_progress(range(num_groups), report_progress):
        votes = node_votes(bound_model, graph, division, groups, index, tolerance)
        columns.append(Predictions(votes.vote[rows], votes.stable[rows]))
    return Predictions(
        np.stack([column.vote for column in columns], axis=1), np.stack([column.stable for column in columns], axis=1)
    )


def _with_progress(items: Sequence[int] | IntArray, report_progress: ReportProgress | None) -> Iterator[int]:
    """Yields items, and reports after each one which fraction of them is done."""
    for done, item in enumerate(items, start=1):
        yield int(item)
        if report_progress is not None:
            report_progress(done / len(items))


def node_votes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    groups: torch.Tensor,
    index: int,
    tolerance: float | None,
) -> Predictions:
    """Computes the vote of every node in one subgraph.

    Args:
        bound_model: The model, bound to the graph.
        graph: The graph.
        division: How it is divided.
        groups: Group of every edge.
        index: Group of the subgraph.
        tolerance: As in ``compute_votes``.
    """
    return votes_in(bound_model, division.subgraph(graph, groups, index), tolerance)


def votes_in(bound_model: ModelAdapter, subgraph: CanonicalGraph, tolerance: float | None) -> Predictions:
    """Computes the vote of every node of a subgraph."""
    x = subgraph.x.to(bound_model.dtype)
    votes = predict(bound_model, tolerance, x, subgraph.edge_index, bound_model.edge_values(subgraph))
    if subgraph.abstain is not None:
        abstain = subgraph.abstain.numpy()
        votes.vote[abstain] = ABSTAIN
        votes.stable[abstain] = True
    return votes


def no_edge_votes(bound_model: ModelAdapter, graph: CanonicalGraph, tolerance: float | None) -> Predictions:
    """Computes what every node votes where it has no edge."""
    edge_index, values = no_edges(graph, bound_model.edge_inputs)
    return predict(bound_model, tolerance, graph.x.to(bound_model.dtype), edge_index, values)


def graph_votes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    tolerance: float | None,
    num_groups: int,
    only: Iterable[int] | None = None,
) -> Predictions:
    """Computes the votes of one graph, shape ``[num_groups]``.

    Args:
        bound_model: The model, bound to the graph.
        graph: The graph.
        division: How it is divided.
        tolerance: As in ``compute_votes``.
        num_groups: Number of votes. The graph may have fewer subgraphs; those that it does not have abstain.
        only: The groups whose votes are wanted; all others abstain. Defaults to all groups.
    """
    groups = division.groups(graph)
    votes = np.full(num_groups, ABSTAIN, dtype=np.int16)
    stable = np.ones(num_groups, dtype=bool)
    for index in range(num_groups) if only is None else only:
        subgraph = division.subgraph(graph, groups, index)
        if subgraph.x.size(0) == 0:
            continue  # nothing to read out: no vote
        x = subgraph.x.to(bound_model.dtype)
        batch = torch.zeros(subgraph.x.size(0), dtype=torch.int64)
        prediction = predict(bound_model, tolerance, x, subgraph.edge_index, bound_model.edge_values(subgraph), batch)
        votes[index] = prediction.vote[0]
        stable[index] = prediction.stable[0]
    return Predictions(votes, stable)
