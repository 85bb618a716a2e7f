"""The oracle: one subgraph at a time, exactly as the method is defined. Slow, and meant to be believed."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.call import Caller, Predictions, no_edges
from agnncert.engine.rounding import guarded
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.progress import ReportProgress


def node_table(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    report_progress: ReportProgress | None = None,
) -> Predictions:
    """Ballots of target nodes in all subgraphs, shape ``[num_targets, num_groups]``."""
    groups = division.groups(graph)
    subgraphs = _followed(range(division.num_groups_in(graph)), report_progress)
    columns = [node_ballots(call, graph, division, groups, index, tolerance) for index in subgraphs]
    ballots, stable = zip(*columns, strict=True)
    return np.stack([b[rows] for b in ballots], axis=1), np.stack([s[rows] for s in stable], axis=1)


def node_ballots(
    call: Caller, graph: CanonicalGraph, division: Division, groups: torch.Tensor, index: int, tolerance: float | None
) -> Predictions:
    """Ballot of every node in one subgraph."""
    return ballots_in(call, division.subgraph(graph, groups, index), tolerance)


def ballots_in(call: Caller, part: CanonicalGraph, tolerance: float | None) -> Predictions:
    """Ballot of every node of a subgraph."""
    ballots, stable = guarded(call, tolerance, part.x.to(call.dtype), part.edge_index, call.edge_values(part))
    if part.abstain is not None:
        silent = part.abstain.numpy()
        ballots[silent], stable[silent] = ABSTAIN, True
    return ballots, stable


def edgeless_ballots(call: Caller, graph: CanonicalGraph, tolerance: float | None) -> Predictions:
    """What every node votes where it has no edge."""
    return guarded(call, tolerance, graph.x.to(call.dtype), *no_edges(graph, call.takes))


def _followed(items: Sequence[int] | IntArray, report_progress: ReportProgress | None) -> Iterator[int]:
    for done, item in enumerate(items, start=1):
        yield int(item)
        if report_progress is not None:
            report_progress(done / len(items))


def graph_table(
    call: Caller,
    joined: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    report_progress: ReportProgress | None = None,
) -> Predictions:
    """Ballots of the graphs of a set in all their subgraphs, shape ``[num_targets, num_groups]``."""
    most = division.num_groups_in(joined)
    tables = [
        graph_ballots(call, one_graph(joined, row), division, tolerance, most)
        for row in _followed(rows, report_progress)
    ]
    ballots, stable = zip(*tables, strict=True)
    return np.stack(ballots), np.stack(stable)


def graph_ballots(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    tolerance: float | None,
    most: int,
    only: Collection[int] | None = None,
) -> Predictions:
    """Ballots of one graph in ``most`` subgraphs, some of which it may not have; or in some, and nothing elsewhere."""
    groups = division.groups(graph)
    ballots = np.full(most, ABSTAIN, dtype=np.int16)
    stable = np.ones(most, dtype=bool)
    for index in range(most) if only is None else only:
        part = division.subgraph(graph, groups, index)
        if part.x.size(0) == 0:
            continue  # nothing to read out: no ballot
        alone = torch.zeros(part.x.size(0), dtype=torch.int64)
        vote, sure = guarded(call, tolerance, part.x.to(call.dtype), part.edge_index, call.edge_values(part), alone)
        ballots[index], stable[index] = vote[0], sure[0]
    return ballots, stable
