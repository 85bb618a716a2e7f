"""How many ballots of a target the worst k other nodes can reach, in the edge-centric division.

A node whose features change, or that is deleted, matters to a target only in subgraphs where both lie in one component;
their number is the node's *reach*. The exact worst case over sets of k nodes is a maximum-coverage problem; the sum of
the k largest reaches bounds it from above.

What is to be known about pairs of nodes where every neighbour has a group of its own, besides the ballots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.divisions.base import DisjointUnion, Division, is_graph_task
from agnncert.engine.fast import components
from agnncert.graphs.graph import CanonicalGraph

Cover = tuple[IntArray, IntArray]

# At most so many pairs of nodes in one component are enumerated, small components first. In the components that are
# left, any one node counts as reaching every target.
MAX_PAIRS = 20_000_000
PAIRS_AT_ONCE = 2**21


@dataclass(frozen=True)
class SmallComponents:
    """Components of some subgraphs that are small enough to have their pairs enumerated, as far as these can tell.

    Attributes:
        size: Number of nodes of each, in the order of subgraphs and of nodes, shape ``[k]``.
        node: Their nodes, component by component.
    """

    size: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]


def small_components(pieces: DisjointUnion) -> SmallComponents:
    """The small components of some subgraphs.

    Which ones are small is decided over all subgraphs together, smallest first. Those that go beyond the limit among
    some of the subgraphs do so among all of them, and whatever comes after them does, too: they need not be kept.
    """
    label = components(pieces)
    size = np.bincount(label)
    small = _small_enough(size)
    by_label = np.argsort(label, kind="stable")
    kept = small[label[by_label]]
    node = pieces.node.numpy()[by_label[kept]]
    return SmallComponents(size[small].astype(np.int32), node.astype(np.int32))


def node_cover(pieces: DisjointUnion, rows: IntArray, num_nodes: int) -> Cover:
    """Cover table of each target: ``cover[ptr[j] + k - 1]`` bounds the ballots that k nodes reach.

    Args:
        pieces: The union of all subgraphs (at least where targets are).
        rows: Targets.
        num_nodes: Number of nodes of the graph.
    """
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    owner = target_of[pieces.node.numpy()]
    cap = np.bincount(owner[owner >= 0], minlength=len(rows))
    return cover_of_nodes([small_components(pieces)], target_of, cap)


def cover_of_nodes(parts: Sequence[SmallComponents], target_of: npt.NDArray[np.int32], cap: IntArray) -> Cover:
    """As ``node_cover``, from the small components of all subgraphs.

    Args:
        parts: These, some subgraphs at a time, in their order.
        target_of: Which target each node is, -1 if it is none.
        cap: Number of reached ballots of each target.
    """
    size = np.concatenate([np.zeros(0, dtype=np.int32), *(part.size for part in parts)])
    node = np.concatenate([np.zeros(0, dtype=np.int32), *(part.node for part in parts)])
    small = _small_enough(size)
    node, size = node[np.repeat(small, size)], size[small]
    owner = target_of[node]
    base = cap - np.bincount(owner[owner >= 0], minlength=len(cap))  # ballots in components that are not looked into
    owner, reach = _reaches(size, node, owner, len(target_of))
    return sums_of_largest(owner, reach, cap, base)


def graph_cover(pieces: DisjointUnion, batch: torch.Tensor) -> Cover:
    """Cover table of each graph: a node reaches the subgraphs in which it has an edge."""
    reach = np.bincount(pieces.node.numpy(), minlength=len(batch))
    cell = torch.unique_consecutive(pieces.cell)
    owner_of_cell = batch[pieces.node][torch.searchsorted(pieces.cell, cell)].numpy()
    return cover_of_graphs(reach, batch.numpy(), np.bincount(owner_of_cell, minlength=int(batch[-1]) + 1))


def cover_of_graphs(reach: npt.NDArray[np.integer], batch: IntArray, cap: IntArray) -> Cover:
    """As ``graph_cover``, from the number of subgraphs in which each node, and each graph, has an edge."""
    seen = reach > 0
    return sums_of_largest(batch[seen], reach[seen].astype(np.int64), cap, np.zeros(len(cap), dtype=np.int64))


def _small_enough(size: npt.NDArray[np.integer]) -> BoolArray:
    """Which components have all their pairs enumerated, given the size of each: the smallest, and the first of them."""
    number = np.bincount(size)
    pairs = np.cumsum(number * np.arange(len(number)) ** 2)
    beyond = int(np.searchsorted(pairs, MAX_PAIRS, side="right"))  # the first size of which not all fit
    small = np.asarray(size < beyond)
    if beyond < len(number):
        room = (MAX_PAIRS - int(pairs[beyond - 1])) // beyond**2
        small[np.flatnonzero(size == beyond)[:room]] = True
    return small


def _reaches(
    size: npt.NDArray[np.int32], node: npt.NDArray[np.int32], owner: npt.NDArray[np.int32], num_nodes: int
) -> tuple[IntArray, IntArray]:
    """For every pair (target, other node) that meets somewhere: the target, and in how many subgraphs they meet.

    Args:
        size: Number of nodes of each component.
        node: Their nodes, component by component.
        owner: Which target each of these is, -1 if it is none.
        num_nodes: Number of nodes of the graph.
    """
    start = np.cumsum(size, dtype=np.int64) - size
    found = [np.zeros(0, dtype=np.int64)]
    for members in np.flatnonzero(np.bincount(size)).tolist():
        apart, alike = ~np.eye(members, dtype=bool), start[size == members]
        for part in np.array_split(alike, 1 + len(alike) * members**2 // PAIRS_AT_ONCE):
            entry = part[:, None] + np.arange(members)
            me, mates = owner[entry].astype(np.int64)[:, :, None], node[entry][:, None, :]
            found.append((me * num_nodes + mates)[(me >= 0) & apart])
    pair = np.concatenate(found)
    del found
    pair.sort()
    first = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])[: len(pair)])
    return pair[first] // num_nodes, np.diff(first, append=len(pair))


def sums_of_largest(owner: IntArray, reach: IntArray, cap: IntArray, base: IntArray) -> Cover:
    """Sums of the k largest reaches of each owner, at most ``cap``; a row ends where it stops growing, at ``cap``."""
    most = int(reach.max(initial=0))
    key = owner * (most + 1) + (most - reach)  # by owner, and the largest reach first
    key.sort()
    owner, total = key // (most + 1), np.cumsum(most - key % (most + 1))
    del key
    count = np.bincount(owner, minlength=len(cap))
    start = np.cumsum(count) - count
    total += np.repeat(base - np.concatenate([[0], total])[start], count)
    np.minimum(total, np.repeat(cap, count), out=total)
    grows = np.ones(len(total), dtype=bool)
    grows[1:] = total[1:] > total[:-1]
    grows[start[count > 0]] = True
    total = total[grows]
    # Files promise that a row ends with the number of ballots. Some do not yet: where all components are large (one
    # node may reach them all), and where there is only a self-loop (no other node reaches the target).
    count = np.bincount(owner[grows], minlength=len(cap))
    end = np.cumsum(count)
    last = np.where(count > 0, np.append(total, 0)[end - 1], 0)
    short = last < cap
    total = np.insert(total, end[short], cap[short])
    return np.concatenate([[0], np.cumsum(count + short)]).astype(np.int64), total.astype(np.int64, copy=False)


def pair_facts(
    graph: CanonicalGraph, division: Division, rows: IntArray, indptr: IntArray, group: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays ``one_way`` and ``hubs`` of the evidence, as far as its rule needs them.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: How it is divided.
        rows: Node task: rows of the targets.
        indptr: Where the listed ballots of each target begin.
        group: Group of each listed ballot.
    """
    if not division.is_per_neighbour:
        return {}
    facts: dict[str, npt.NDArray[Any]] = {}
    edge_centric = division.family == "edge-centric"
    if edge_centric:
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        facts["one_way"] = _one_way(graph, division, owner, group.astype(np.int64))
    if not is_graph_task(graph):
        facts["hubs"] = _hubs(graph, edge_centric, torch.from_numpy(rows))
    return facts


def _one_way(graph: CanonicalGraph, division: Division, owner: IntArray, group: IntArray) -> npt.NDArray[np.bool_]:
    """Whether the pair of each ballot has arcs in one direction only, so that a new direction would alter it."""
    source, head = graph.edge_index
    cell, most = division.groups(graph), division.num_groups_in(graph)
    wanted = torch.from_numpy(group)
    if is_graph_task(graph):
        cell, wanted = graph.graph_of_node[source] * most + cell, torch.from_numpy(owner) * most + wanted
    size = int(cell.max()) + 1 if len(cell) else 1
    up, down = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
    up[cell[source <= head]] = True
    down[cell[source >= head]] = True
    return (up ^ down)[wanted].numpy()


def _hubs(graph: CanonicalGraph, both_ways: bool, targets: Tensor) -> npt.NDArray[np.int32]:
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
