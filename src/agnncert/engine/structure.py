"""What ``compute_votes`` finds out about the graph alone, without a model."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.range_votes import all_listed, list_range_votes, merge_ranges, no_reach, reach_of_ranges
from agnncert.graphs.graph import CanonicalGraph


def structure(
    graph: CanonicalGraph, division: Division, rows: IntArray, memory_limit: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Returns what the graph alone decides about votes, by the names that evidence uses.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: How to divide it.
        rows: Node task: rows of the targets. Graph task: all graphs of ``graph``, in order.
        memory_limit: As in ``compute_votes``.

    Returns:
        ``indptr``, ``group``, ``reached``, ``reach_ptr`` and ``reach``, and the arrays of :func:`pair_facts`.
    """
    if division.has_disjoint_union:
        edges_by_group = EdgesByGroup(graph, division, rows)
        ranges = [list_range_votes(edges_by_group, groups) for groups in edges_by_group.ranges(memory_limit)]
        votes = merge_ranges(ranges, edges_by_group)
        reach_ptr, reach = reach_of_ranges(ranges, edges_by_group, votes)
    else:
        votes = all_listed(len(rows), division.num_groups)
        reach_ptr, reach = no_reach(len(rows))
    return {
        "indptr": votes.indptr,
        "group": votes.group,
        "reached": votes.reached,
        "reach_ptr": reach_ptr,
        "reach": reach,
        **pair_facts(graph, division, rows, votes.indptr, votes.group),
    }


def pair_facts(
    graph: CanonicalGraph, division: Division, rows: IntArray, indptr: IntArray, group: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays ``one_way`` and ``targets_per_node`` of the evidence, as far as its theorem needs them.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: How it is divided.
        rows: Node task: rows of the targets.
        indptr: Where the listed votes of each target begin.
        group: Group of each listed vote.
    """
    facts: dict[str, npt.NDArray[Any]] = {}
    if not division.is_per_neighbour:
        return facts
    if division.divides_edges:
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        facts["one_way"] = _one_way(graph, division, owner, group.astype(np.int64))
    if graph.task == "node":
        facts["targets_per_node"] = _targets_per_node(graph, division.divides_edges, torch.from_numpy(rows))
    return facts


def _one_way(graph: CanonicalGraph, division: Division, owner: IntArray, group: IntArray) -> BoolArray:
    """Tells whether the pair of each vote has arcs in one direction only, so that a new direction would alter it.

    Args:
        graph: A canonical graph.
        division: A division with one group per pair of nodes.
        owner: Target of each vote.
        group: Group of each vote.
    """
    source, head = graph.edge_index
    pair_of_edge = division.groups(graph)
    pair_of_vote = torch.from_numpy(group)
    if graph.task == "graph":  # pairs are numbered within each graph
        num_groups = division.num_groups_in(graph)
        pair_of_edge = graph.graph_of_node[source] * num_groups + pair_of_edge
        pair_of_vote = torch.from_numpy(owner) * num_groups + pair_of_vote
    num_pairs = int(pair_of_edge.max()) + 1 if len(pair_of_edge) else 1
    goes_up = torch.zeros(num_pairs, dtype=torch.bool)
    goes_up[pair_of_edge[source <= head]] = True
    goes_down = torch.zeros(num_pairs, dtype=torch.bool)
    goes_down[pair_of_edge[source >= head]] = True
    return (goes_up ^ goes_down)[pair_of_vote].numpy()


def _targets_per_node(graph: CanonicalGraph, both_ways: bool, targets: Tensor) -> npt.NDArray[np.int32]:
    """Returns of how many targets each other node is a neighbour, the largest numbers first; zeros are left out.

    If the attacker spares the targets, only the other nodes can be deleted or given other features.

    Args:
        graph: A canonical graph.
        both_ways: Whether a node is a neighbour whichever way the edge points; else only edges to the target count.
        targets: Rows of the targets.
    """
    num_nodes = len(graph.x)
    is_target = torch.zeros(num_nodes, dtype=torch.bool)
    is_target[targets] = True
    source, head = graph.edge_index
    if both_ways:
        source, head = torch.cat([source, head]), torch.cat([head, source])
    reaches_target = ~is_target[source] & is_target[head]
    pairs = torch.unique(source[reaches_target].long() * num_nodes + head[reaches_target])
    counts = torch.bincount(torch.div(pairs, num_nodes, rounding_mode="floor"))
    return torch.sort(counts[counts > 0], descending=True).values.numpy().astype(np.int32)
