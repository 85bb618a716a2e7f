"""Changes of probe graphs: what an attack could do elsewhere, on one side of a graph or beyond its nodes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from agnncert.auditing.probe_graphs import HUGE, EdgeValues, FeatureTable, ProbeGraph

SINKS = 120  # nodes that only receive


@dataclass(frozen=True)
class Corruption:
    """What becomes corrupt on one side of a graph.

    Attributes:
        side: The side.
        finite: Whether the corrupt numbers are finite.
        features: Whether features become corrupt.
        values: Whether edge values become corrupt.
        rewire: Whether the side also gets other edges.
    """

    side: int
    finite: bool
    features: bool = True
    values: bool = True
    rewire: bool = False


def corrupted(graph: ProbeGraph, table: FeatureTable, how: Corruption, generator: torch.Generator) -> ProbeGraph:
    """Returns the graph with corrupt features and edge values on one side.

    Args:
        graph: The graph.
        table: Its features.
        how: The side, and what becomes corrupt.
        generator: Source of randomness.
    """
    rows = graph.rows
    values = graph.values
    if how.features:
        corrupt_rows = table.draw_corrupt(graph.num_nodes, how.finite, generator)
        rows = torch.where(graph.side == how.side, corrupt_rows, rows)
    if how.values:
        values = _with_corrupt_values(values, graph.edges_of(how.side), how.finite, generator)
    change = replace(graph, rows=rows, values=values)
    return rewired(change, how.side, generator) if how.rewire else change


def _with_corrupt_values(values: EdgeValues, edges: Tensor, finite: bool, generator: torch.Generator) -> EdgeValues:
    """Returns a copy of edge values that are corrupt at some edges, given by a mask."""
    copied = {name: value.clone() for name, value in values.items()}
    for value in copied.values():
        value[edges] = corrupt_values(value[edges], finite, generator)
    return copied


def corrupt_values(value: Tensor, finite: bool, generator: torch.Generator) -> Tensor:
    """Returns corrupt values for the same edges. Integers, which may be category numbers, are only permuted."""
    if not value.is_floating_point():
        return value[torch.randperm(value.size(0), generator=generator)]
    numbers = [HUGE, -HUGE, 0.0, 1e3, 1e-3] if finite else [math.nan, math.inf, -math.inf]
    drawn = torch.randint(0, len(numbers), value.shape, generator=generator)
    return torch.tensor(numbers, dtype=value.dtype)[drawn]


def rewired(graph: ProbeGraph, side: int, generator: torch.Generator) -> ProbeGraph:
    """Returns the graph with other edges on one side: half of them at one hub, the others at random."""
    edges = graph.edges_of(side).nonzero().view(-1)
    nodes = graph.nodes_of(side)
    if not len(edges) or len(nodes) < 2:
        return graph
    ends = nodes[torch.randint(1, len(nodes), (2, len(edges)), generator=generator)]
    ends[1, ::2] = nodes[0]
    ends[0, ::2] = nodes[1 + torch.arange(len(edges))[::2] % (len(nodes) - 1)]
    edge_index = graph.edge_index.clone()
    edge_index[:, edges] = ends
    return replace(graph, edge_index=edge_index)


def with_other_sinks(
    graph: ProbeGraph, table: FeatureTable, is_sender: Tensor, generator: torch.Generator
) -> Iterator[ProbeGraph]:
    """Yields the graph with other features for nodes without outgoing edges, and other sources of their edges.

    Args:
        graph: The graph.
        table: Its features.
        is_sender: Which nodes have an outgoing edge.
        generator: Source of randomness.
    """
    senders = is_sender.nonzero().view(-1)
    to_sink = ~is_sender[graph.edge_index[1]]
    edge_index = graph.edge_index.clone()
    edge_index[0, to_sink] = senders[(torch.arange(int(to_sink.sum())) ** 2) % len(senders)]
    values = _with_corrupt_values(graph.values, to_sink, True, generator)
    count = graph.num_nodes
    for rows in (table.draw_corrupt(count, True, generator), table.draw_ordinary(count, generator)):
        yield replace(graph, rows=torch.where(is_sender, graph.rows, rows), edge_index=edge_index, values=values)


def with_new_sinks(graph: ProbeGraph, rows: Tensor, generator: torch.Generator) -> ProbeGraph:
    """Returns the graph with new nodes that only receive: one, three or a hundred edges from some nodes.

    Args:
        graph: The graph.
        rows: Row of each new node in the feature table.
        generator: Source of randomness.
    """
    count = graph.num_nodes
    num_new = len(rows)
    leaving = torch.tensor([1, 0, 3, 0])[torch.arange(count) % 4]
    leaving[::70] = 100
    source = torch.repeat_interleave(torch.arange(count), leaving)
    arcs = torch.stack([source, count + torch.arange(len(source)) % num_new])
    borrowed = torch.arange(len(source)) % graph.num_edges
    return ProbeGraph(
        torch.cat([graph.rows, rows]),
        torch.cat([graph.edge_index, arcs], dim=1),
        {name: torch.cat([value, value[borrowed]]) for name, value in graph.values.items()},
        torch.cat([graph.side, torch.full((num_new,), 2)]),
        torch.cat([graph.position, torch.rand(num_new, generator=generator)]),
    ).sorted()
