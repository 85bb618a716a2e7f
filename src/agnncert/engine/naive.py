"""The oracle: one subgraph at a time, exactly as the method is defined. Slow, and meant to be believed."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.rounding import Predictions, predict
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.progress import ReportProgress


def table(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    report_progress: ReportProgress | None = None,
) -> Predictions:
    """Votes of all targets in all subgraphs, shape ``[num_targets, num_groups]``; arguments as in ``compute_votes``."""
    most, columns = division.num_groups_in(graph), []
    if graph.task == "graph":
        for row in _followed(rows, report_progress):
            columns.append(graph_votes(call, one_graph(graph, row), division, tolerance, most))
        return np.stack([b for b, _ in columns]), np.stack([s for _, s in columns])
    groups = division.groups(graph)
    for index in _followed(range(most), report_progress):
        columns.append(node_votes(call, graph, division, groups, index, tolerance))
    return np.stack([b[rows] for b, _ in columns], axis=1), np.stack([s[rows] for _, s in columns], axis=1)


def _followed(items: Sequence[int] | IntArray, report_progress: ReportProgress | None) -> Iterator[int]:
    for done, item in enumerate(items, start=1):
        yield int(item)
        if report_progress is not None:
            report_progress(done / len(items))


def node_votes(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    groups: torch.Tensor,
    index: int,
    tolerance: float | None,
) -> Predictions:
    """Vote of every node in one subgraph."""
    return votes_in(call, division.subgraph(graph, groups, index), tolerance)


def votes_in(call: ModelAdapter, part: CanonicalGraph, tolerance: float | None) -> Predictions:
    """Vote of every node of a subgraph."""
    votes, stable = predict(call, tolerance, part.x.to(call.dtype), part.edge_index, call.edge_values(part))
    if part.abstain is not None:
        silent = part.abstain.numpy()
        votes[silent], stable[silent] = ABSTAIN, True
    return votes, stable


def no_edge_votes(call: ModelAdapter, graph: CanonicalGraph, tolerance: float | None) -> Predictions:
    """What every node votes where it has no edge."""
    return predict(call, tolerance, graph.x.to(call.dtype), *no_edges(graph, call.takes))


def graph_votes(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    tolerance: float | None,
    most: int,
    only: Collection[int] | None = None,
) -> Predictions:
    """Votes of one graph in ``most`` subgraphs, some of which it may not have; or in some, and nothing elsewhere."""
    groups = division.groups(graph)
    votes = np.full(most, ABSTAIN, dtype=np.int16)
    stable = np.ones(most, dtype=bool)
    for index in range(most) if only is None else only:
        part = division.subgraph(graph, groups, index)
        if part.x.size(0) == 0:
            continue  # nothing to read out: no vote
        alone = torch.zeros(part.x.size(0), dtype=torch.int64)
        vote, sure = predict(call, tolerance, part.x.to(call.dtype), part.edge_index, call.edge_values(part), alone)
        votes[index], stable[index] = vote[0], sure[0]
    return votes, stable


def look_again(*args: Any) -> None:
    """Checks some votes again; the former name of ``spot_check``."""
    from agnncert.engine.spot_check import spot_check

    spot_check(*args)


def differing(*args: Any) -> Any:
    """Checks the votes of some pairs again; the former name of ``spot_check_pairs``."""
    from agnncert.engine.spot_check import spot_check_pairs

    return spot_check_pairs(*args)


def choose_votes(*args: Any) -> Any:
    """Chooses pairs; the former place of ``spot_check.choose_votes``."""
    from agnncert.engine import spot_check

    return spot_check.choose_votes(*args)
