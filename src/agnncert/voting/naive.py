"""The oracle: one subgraph at a time, exactly as the method is defined. Slow, and meant to be believed."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.graphs.graph import one_graph
from agnncert.proof.ballots import ABSTAIN
from agnncert.voting.call import Caller, judge, no_edges

Table = tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]


def node_table(call: Caller, graph: Data, division: Division, rows: npt.NDArray[np.int64], tolerance: float) -> Table:
    """Ballots and their stability, both of shape ``[num_targets, num_groups]``."""
    groups = division.groups(graph)
    columns = [node_ballots(call, graph, division, groups, i, tolerance) for i in range(division.num_groups)]
    return (
        np.stack([ballots[rows] for ballots, _ in columns], axis=1),
        np.stack([stable[rows] for _, stable in columns], axis=1),
    )


def node_ballots(
    call: Caller, graph: Data, division: Division, groups: torch.Tensor, index: int, tolerance: float
) -> Table:
    """Ballot of every node in one subgraph."""
    part = division.subgraph(graph, groups, index)
    ballots, stable = judge(call(part.x.to(call.dtype), part.edge_index, call.edge_values(part)), tolerance)
    if "abstain" in part:
        silent = part.abstain.numpy()
        ballots[silent], stable[silent] = ABSTAIN, True
    return ballots, stable


def edgeless_ballots(call: Caller, graph: Data, tolerance: float) -> Table:
    """What every node votes where it has no edge."""
    return judge(call(graph.x.to(call.dtype), *no_edges(graph, call.takes)), tolerance)


def graph_table(call: Caller, joined: Data, division: Division, rows: npt.NDArray[np.int64], tolerance: float) -> Table:
    """Ballots and their stability for a set of graphs, both of shape ``[num_targets, num_groups]``."""
    tables = [graph_ballots(call, graph, division, tolerance) for graph in _graphs(joined, rows)]
    return np.stack([ballots for ballots, _ in tables]), np.stack([stable for _, stable in tables])


def graph_ballots(call: Caller, graph: Data, division: Division, tolerance: float) -> Table:
    """Ballots of one graph in all its subgraphs, both of shape ``[num_groups]``."""
    groups = division.groups(graph)
    ballots = np.full(division.num_groups, ABSTAIN, dtype=np.int16)
    stable = np.ones(division.num_groups, dtype=bool)
    for index in range(division.num_groups):
        part = division.subgraph(graph, groups, index)
        if part.x.size(0) == 0:
            continue  # nothing to read out: no ballot
        alone = torch.zeros(part.x.size(0), dtype=torch.int64)
        vote, sure = judge(call(part.x.to(call.dtype), part.edge_index, call.edge_values(part), alone), tolerance)
        ballots[index], stable[index] = vote[0], sure[0]
    return ballots, stable


def _graphs(joined: Data, rows: npt.NDArray[np.int64]) -> Iterator[Data]:
    for row in rows:
        yield one_graph(joined, int(row))
