"""Probe graphs made of the user's data: a part of what the fast engine evaluates, small enough for an audit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.auditing.probe_graphs import EdgeValues, ProbeGraph
from agnncert.divisions.base import Division
from agnncert.graphs.canonical import BLOCK, canonical, canonical_set
from agnncert.graphs.checks import WIDE
from agnncert.graphs.graph import EDGE_VALUES

# Limits of a part of the user's graph, in rows and in numbers: an audit should cost a few plain forward passes.
MOST_ROWS = 12288
MOST_NUMBERS = 3 * 2**22
LEAST_ROWS = 1024
# The same for models whose layers are all known.
BRIEF_ROWS = 256
BRIEF_NUMBERS = 2**19


@dataclass(frozen=True)
class UserGraph:
    """A probe graph of the user's data.

    Attributes:
        x: Features, to which the rows of the graph refer.
        graph: The graph.
    """

    x: Tensor
    graph: ProbeGraph


def keeps_loops(division: Division | None) -> bool:
    """Returns whether a division keeps self-loops."""
    return division is not None and division.self_loops


def is_edge_centric(division: Division | None) -> bool:
    """Returns whether a division is edge-centric. ``None`` stands for every division, and is not."""
    return division is not None and division.divides_edges


def union_of_subgraphs(
    data: Data, division: Division | None, generator: torch.Generator, most: int = MOST_ROWS
) -> UserGraph:
    """Returns a part of the disjoint union of subgraphs that the fast engine evaluates.

    Groups are random instead of hashed, and there may be more of them: a model must be local in every subgraph.

    Args:
        data: The user's graph.
        division: The division that will be used. ``None`` stands for every division.
        generator: Source of randomness.
        most: Approximate number of nodes.
    """
    checked = _checked(data, keeps_loops(division))
    count = checked.x.size(0)
    limit = _row_limit(checked.x.size(1), most)
    num_groups = _enough_groups(checked, division, limit)
    group_of = _random_groups(count, num_groups, division, generator)
    if checked.edge_index.size(1) > limit:
        checked = checked.with_edges(_edges_of_first_groups(checked.edge_index, group_of, num_groups, limit))
    checked = replace(checked, edge_index=checked.edge_index.long())
    group = group_of(checked.edge_index)
    order = torch.argsort((group * count + checked.edge_index[1]) * count + checked.edge_index[0])
    checked = checked.with_edges(order)
    group = group[order]
    if checked.edge_index.size(1):
        copies, edge_index = torch.unique(group * count + checked.edge_index, return_inverse=True)
        nodes, rows = torch.unique(copies % count, return_inverse=True)
    else:
        nodes = torch.arange(min(count, limit))
        rows = nodes
        edge_index = checked.edge_index
    position = torch.arange(len(rows), dtype=torch.float64)
    graph = ProbeGraph(rows, edge_index, checked.values, torch.zeros_like(rows), position)
    side_of_component = torch.randint(0, 2, (len(rows),), generator=generator)
    return UserGraph(checked.x[nodes], replace(graph, side=side_of_component[graph.components()]))


def one_subgraph(data: Data, division: Division | None, generator: torch.Generator) -> UserGraph | None:
    """Returns all nodes of the user's graph with the edges of one group, or ``None`` if the graph is large."""
    checked = _checked(data, keeps_loops(division))
    count = checked.x.size(0)
    if count > _row_limit(checked.x.size(1), MOST_ROWS):
        return None
    num_groups = 2
    if division is not None and not division.is_per_neighbour:
        num_groups = max(2, division.num_groups)
    group_of = _random_groups(count, num_groups, division, generator)
    inside = checked.with_edges((group_of(checked.edge_index) == 0).nonzero().view(-1))
    rows = torch.arange(count)
    graph = ProbeGraph(rows, inside.edge_index.long(), inside.values, torch.zeros_like(rows), rows)
    return UserGraph(checked.x, graph.sorted())


def batch_of_graphs(
    data: Sequence[Data], division: Division | None, generator: torch.Generator, most: int = MOST_ROWS
) -> UserGraph:
    """Returns some of the user's graphs in one batch, on the two sides in turn.

    Args:
        data: The user's graphs.
        division: The division that will be used. ``None`` stands for every division.
        generator: Source of randomness.
        most: Approximate number of nodes.
    """
    limit = _row_limit(num_features(data), most)
    selected: list[Data] = []
    num_rows = 0
    for k in torch.randperm(len(data), generator=generator).tolist():
        if selected and num_rows + data[k].num_nodes > limit:
            break
        selected.append(data[k])
        num_rows += data[k].num_nodes
    batch = canonical_set(selected, keeps_loops(division))
    rows = torch.arange(batch.num_nodes)
    owner = batch.graph_of_node
    return UserGraph(batch.x, ProbeGraph(rows, batch.edge_index, batch.edge_values, owner % 2, owner))


def num_features(data: Data | Sequence[Data]) -> int:
    """Returns the number of features of a graph, or of the first of several graphs, or 1 if there are no features."""
    if not isinstance(data, Data):
        if not len(data):
            return 1
        data = data[0]
    x = getattr(data, "x", None)
    return int(x.size(1)) if isinstance(x, Tensor) and x.dim() == 2 else 1


def brief_rows(width: int) -> int:
    """Returns the approximate number of nodes for models whose layers are all known."""
    return min(LEAST_ROWS, max(BRIEF_ROWS, BRIEF_NUMBERS // max(1, width)))


def _row_limit(width: int, most: int) -> int:
    return max(min(LEAST_ROWS, most), min(most, MOST_NUMBERS // max(1, width)))


@dataclass(frozen=True)
class _CheckedGraph:
    """Features, edges and edge values that a model may see, in main memory."""

    x: Tensor
    edge_index: Tensor
    values: EdgeValues

    def with_edges(self, edges: Tensor) -> "_CheckedGraph":
        values = {name: value[edges] for name, value in self.values.items()}
        return replace(self, edge_index=self.edge_index[:, edges], values=values)


def _checked(data: Data, loops: bool) -> _CheckedGraph:
    """Returns the graph as it is where that is allowed, else in canonical form, or raises GraphError if it has none."""
    if _is_usable(data):
        graph = _CheckedGraph(data.x, data.edge_index, _edge_values(data))
    else:
        converted = canonical(data, loops)  # raises an error, or casts types
        graph = _CheckedGraph(converted.x, converted.edge_index, converted.edge_values)
    if not loops and graph.edge_index.numel():
        is_loop = graph.edge_index[0] == graph.edge_index[1]
        if bool(is_loop.any()):
            graph = graph.with_edges(~is_loop)
    values = {name: value.cpu() for name, value in graph.values.items()}
    return _CheckedGraph(graph.x.cpu(), graph.edge_index.cpu(), values)


def _edge_values(data: Data) -> EdgeValues:
    return {name: data[name] for name in EDGE_VALUES if getattr(data, name, None) is not None}


def _is_usable(data: Data) -> bool:
    """Returns whether features, edges and edge values need no conversion."""
    x = data.x
    edge_index = data.edge_index
    if not isinstance(x, Tensor) or x.dim() != 2 or x.dtype not in WIDE or x.size(0) == 0:
        return False
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2:
        return False
    if edge_index.dtype not in (torch.int32, torch.int64) or x.device != edge_index.device or x.is_meta:
        return False
    if not all(_is_usable_value(value, edge_index.size(1)) for value in _edge_values(data).values()):
        return False
    return not edge_index.numel() or (int(edge_index.min()) >= 0 and int(edge_index.max()) < x.size(0))


def _is_usable_value(value: object, num_edges: int) -> bool:
    if not isinstance(value, Tensor) or value.dim() == 0 or value.size(0) != num_edges:
        return False
    return value.dtype in WIDE or not value.is_floating_point()


def _enough_groups(graph: _CheckedGraph, division: Division | None, limit: int) -> int:
    """Returns a number of groups with which subgraphs are as sparse as those of the division, and small enough."""
    count = graph.x.size(0)
    num_edges = graph.edge_index.size(1)
    if division is None:
        of_division = 1
    elif division.is_per_neighbour:
        of_division = num_edges + count
    else:
        of_division = division.num_groups
    return max(of_division, 2 * num_edges // count + 2, 2 * num_edges // limit + 2)


def _random_groups(
    count: int, num_groups: int, division: Division | None, generator: torch.Generator
) -> Callable[[Tensor], Tensor]:
    """Returns a function from edges to groups: by both ends if the division is edge-centric, else by the source."""
    draw = torch.randint(0, 2**31, (count,), generator=generator)
    by_both_ends = is_edge_centric(division)

    def group_of(edge_index: Tensor) -> Tensor:
        key = draw[edge_index[0]]
        if by_both_ends:
            key = key + draw[edge_index[1]]
        return key % num_groups

    return group_of


def _edges_of_first_groups(
    edge_index: Tensor, group_of: Callable[[Tensor], Tensor], num_groups: int, limit: int
) -> Tensor:
    """Returns the positions of the edges of the first groups, as many groups as have at most ``limit`` edges."""
    blocks = torch.split(edge_index, BLOCK, dim=1)
    sizes = torch.zeros(num_groups, dtype=torch.int64)
    for block in blocks:
        sizes += torch.bincount(group_of(block), minlength=num_groups)
    fits = torch.cumsum(sizes, 0) <= limit
    inside = [fits[group_of(block)].nonzero().view(-1) + k * BLOCK for k, block in enumerate(blocks)]
    return torch.cat(inside)
