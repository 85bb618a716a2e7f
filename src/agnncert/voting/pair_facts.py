"""What is to be known about pairs of nodes where every neighbour has a group of its own, besides the ballots."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import EdgeCentric, has_own_groups, is_graph_task, num_groups_in
from agnncert.proof.ballots import IntArray


def pair_facts(
    graph: Data, division: Any, rows: IntArray, indptr: IntArray, group: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays ``one_way`` and ``hubs`` of the evidence, as far as its rule needs them.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: How it is divided.
        rows: Node task: rows of the targets.
        indptr: Where the listed ballots of each target begin.
        group: Group of each listed ballot.
    """
    if not has_own_groups(division):
        return {}
    facts: dict[str, npt.NDArray[Any]] = {}
    if isinstance(division, EdgeCentric):
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        facts["one_way"] = _one_way(graph, division, owner, group.astype(np.int64))
    if not is_graph_task(graph):
        facts["hubs"] = _hubs(graph, isinstance(division, EdgeCentric), torch.from_numpy(rows))
    return facts


def _one_way(graph: Data, division: EdgeCentric, owner: IntArray, group: IntArray) -> npt.NDArray[np.bool_]:
    """Whether the pair of each ballot has arcs in one direction only, so that a new direction would alter it."""
    source, head = graph.edge_index
    cell, most = division.groups(graph), num_groups_in(division, graph)
    wanted = torch.from_numpy(group)
    if is_graph_task(graph):
        cell, wanted = graph.batch[source] * most + cell, torch.from_numpy(owner) * most + wanted
    size = int(cell.max()) + 1 if len(cell) else 1
    up, down = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
    up[cell[source <= head]] = True
    down[cell[source >= head]] = True
    return (up ^ down)[wanted].numpy()


def _hubs(graph: Data, both_ways: bool, targets: Tensor) -> npt.NDArray[np.int32]:
    """Of how many targets each other node is a neighbour, the largest numbers first; zeros are left out.

    If the attacker spares the targets, only the other nodes can be deleted or given other features.
    """
    is_target = torch.zeros(graph.num_nodes, dtype=torch.bool)
    is_target[targets] = True
    source, head = graph.edge_index
    if both_ways:
        source, head = torch.cat([source, head]), torch.cat([head, source])
    reaches = ~is_target[source] & is_target[head]
    pairs = torch.unique(source[reaches].long() * graph.num_nodes + head[reaches])
    counts = torch.bincount(torch.div(pairs, graph.num_nodes, rounding_mode="floor"))
    return torch.sort(counts[counts > 0], descending=True).values.numpy().astype(np.int32)
