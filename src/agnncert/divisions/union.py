"""``DisjointUnion``: all subgraphs of a division as one graph, in which each subgraph is a part of its own."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agnncert.graphs.graph import CanonicalGraph


@dataclass(frozen=True)
class DisjointUnion:
    """All subgraphs at once, as one disjoint union of ``p`` copies of nodes and ``m`` edges, ordered by subgraph.

    The index of a subgraph is its group in the node task, and ``graph * num_groups + group`` in the graph task. Copies
    that would neither have a vote of their own nor send a message are left out.

    Attributes:
        subgraph_index: Subgraph of each copy, ascending, shape ``[p]``.
        node: Which node it is a copy of, shape ``[p]``.
        edge_index: Edges between copies, shape ``[2, m]``.
        edge: Which edge of the graph each one is, shape ``[m]``.
        votes: Whether the copy has a vote that may differ from the node's default, shape ``[p]``.
        reached: Whether the copy has an edge through which a change can reach it (graph task: whether its subgraph can
            have an edge at all), shape ``[p]``.
        blank: Whether the copy's features are hidden, shape ``[p]``, or ``None`` if none are.
    """

    subgraph_index: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor
    votes: Tensor
    reached: Tensor
    blank: Tensor | None = None


class UnionOfEdges(NamedTuple):
    """Edges and copies of their endpoints; the fields are those of :class:`DisjointUnion`."""

    subgraph_index: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor


def union_of_edges(
    graph: CanonicalGraph, subgraph_of_edge: Tensor, copies: Tensor | None = None, edges: Tensor | None = None
) -> UnionOfEdges:
    """Puts every edge, with copies of its endpoints, into the subgraph of the edge.

    Args:
        graph: The graph.
        subgraph_of_edge: Index of the subgraph of every edge, shape ``[num_edges]``.
        copies: Further copies of nodes to put in, each as ``subgraph * num_nodes + node``.
        edges: Positions of the edges to put in. Defaults to all edges. ``subgraph_of_edge`` is about these edges only.
    """
    num_nodes = graph.x.size(0)
    is_sorted = bool((subgraph_of_edge[1:] >= subgraph_of_edge[:-1]).all())
    order = torch.arange(len(subgraph_of_edge)) if is_sorted else stable_order(subgraph_of_edge)
    edge = order if edges is None else edges[order].long()
    ends = subgraph_of_edge[order] * num_nodes + graph.edge_index[:, edge]
    wanted = ends.view(-1) if copies is None else torch.cat([ends.view(-1), copies])
    copy, position = _distinct(wanted)
    subgraph_index = torch.div(copy, num_nodes, rounding_mode="floor")
    return UnionOfEdges(
        subgraph_index=subgraph_index,
        node=copy - subgraph_index * num_nodes,
        edge_index=position[: ends.numel()].view(2, -1),
        edge=edge,
    )


def stable_order(numbers: Tensor) -> Tensor:
    """Returns ``torch.argsort(numbers, stable=True)``, by counting if the numbers are small."""
    low, high = _bounds(numbers)
    if low >= 0 and high < 2**16:
        return torch.from_numpy(np.argsort(numbers.numpy().astype(np.uint16), kind="stable"))
    return torch.argsort(numbers, stable=True)


def _bounds(numbers: Tensor) -> tuple[int, int]:
    """Returns the smallest and the largest of some numbers; zeros if there are none."""
    if len(numbers) == 0:
        return 0, 0
    low, high = numbers.aminmax()
    return int(low), int(high)


def _distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the distinct ones among whole numbers, ascending, and the position of each value among them.

    The result is that of ``torch.unique``, which takes longer.
    """
    low, high = _bounds(values)
    if high - low > 4 * len(values):
        return _distinct_by_sorting(values)
    # The values are dense enough to tick them off a list of all numbers in between.
    is_present = torch.zeros(high - low + 1, dtype=torch.bool)
    is_present[values - low] = True
    present = is_present.nonzero().view(-1)
    position = torch.empty(len(is_present), dtype=torch.int64)
    position[present] = torch.arange(len(present))
    return present + low, position[values - low]


def _distinct_by_sorting(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the same as :func:`_distinct`; numpy sorts with the processor's widest instructions."""
    order = np.argsort(values.numpy())
    ascending = values.numpy()[order]
    is_first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.cumsum(is_first) - 1
    return torch.from_numpy(ascending[is_first]), torch.from_numpy(position)
