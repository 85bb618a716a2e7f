"""Whether a division of one's own keeps its groups: a look at the user's own graph, before anything is certified.

Groups may depend on the ids of an edge's ends alone. A division that reads degrees, rows, features, communities or
random numbers moves edges between groups when something else changes, and its certificates are void. The look refutes;
that the stated costs are true is for the author of the division to prove (``agnncert_peers.testing.check_division``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral

import torch
from torch import Tensor

from agnncert.divisions.base import Division
from agnncert.errors import DivisionError
from agnncert.graphs.graph import CanonicalGraph, one_graph

MOST_GRAPHS = 3  # of a set that are looked at
# An injected node may cost what its edges cost, or cost the same whatever its degree.
PAID_BY = {"inject_nodes": "edges_per_injected", "edges_per_injected": "inject_nodes"}


@dataclass(frozen=True)
class _Changed:
    """A changed graph.

    Attributes:
        what: What was done, to be read after "when".
        graph: The graph after the change.
        kept: Positions of its edges in the graph before.
    """

    what: str
    graph: CanonicalGraph
    kept: Tensor


def is_own(division: Division) -> bool:
    """Returns whether the class of a division is somebody's own, also if it derives from a built-in one."""
    return not type(division).__module__.partition(".")[0].startswith("agnncert")


def require_stable(division: Division, graph: CanonicalGraph) -> None:
    """Raises DivisionError if a division of one's own breaks its contract on a graph. Built-in ones are not looked at.

    Args:
        division: The division.
        graph: The graph, or joined graphs, of which the first three are looked at.

    Raises:
        DivisionError: A stated cost is no whole number from 1 on, a group is none of the division, or an edge changes
            its group when rows are in another order, features change, a lone node is added or other edges are removed,
            or without any change.
    """
    if is_own(division):
        require_contract(division, graph)


def require_contract(division: Division, graph: CanonicalGraph) -> None:
    """Does what ``require_stable`` does, for every division.

    Args:
        division: The division.
        graph: The graph, or joined graphs, of which the first three are looked at.

    Raises:
        DivisionError: As for ``require_stable``.
    """
    _require_costs(division)
    if division.is_per_neighbour:  # groups are numbered anew in each graph
        return
    if graph.batch is None:
        graphs = [graph]
    else:
        graphs = [one_graph(graph, k) for k in range(min(MOST_GRAPHS, len(graph.sizes)))]
    for single in graphs:
        if single.num_edges:
            _require_same_groups(division, single)


def _require_costs(division: Division) -> None:
    costs = division.unit_costs
    for name, cost in costs.items():
        is_whole = isinstance(cost, Integral) and not isinstance(cost, bool)
        is_paid_by_other = cost == 0 and costs.get(PAID_BY.get(name, ""), 0) > 0
        if not is_whole or (cost < 1 and not is_paid_by_other):
            raise DivisionError(
                f"{type(division).__name__}.unit_costs says that one unit of {name} moves {cost!r} votes: nothing "
                "is free. State a whole number from 1 on, or leave the field out if your theorem does not cover it. "
                "(One of inject_nodes and edges_per_injected may be 0 if the other has a cost.)"
            )


def _require_same_groups(division: Division, graph: CanonicalGraph) -> None:
    before = division.groups(graph)
    _require_group_numbers(division, before)
    for changed in _changes(graph):
        after = division.groups(changed.graph)
        if after.shape != (len(changed.kept),):
            raise DivisionError(
                f"{type(division).__name__}.groups returned shape {tuple(after.shape)} for {len(changed.kept)} edges: "
                "expected one group for each."
            )
        moved = (after != before[changed.kept]).nonzero().view(-1)
        if len(moved):
            first = int(moved[0])
            source, head = graph.node_key[graph.edge_index[:, changed.kept[first]]].tolist()
            raise DivisionError(
                f"{type(division).__name__} is no division that can be certified: the edge ({source}, {head}) moved "
                f"from group {int(before[changed.kept[first]])} to {int(after[first])} when {changed.what}, and so did "
                f"{len(moved) - 1:,} others. Groups must depend on the ids of an edge's own ends alone: not on rows, "
                "degrees, features, communities, sizes or random numbers."
            )


def _require_group_numbers(division: Division, groups: Tensor) -> None:
    """Refuses groups of which an edge would be in no subgraph by mistake."""
    name, num_groups = type(division).__name__, int(getattr(division, "num_groups", 0))
    if groups.is_floating_point() or groups.dtype == torch.bool:
        raise DivisionError(f"{name}.groups returned numbers of type {groups.dtype}: expected whole numbers.")
    lowest, highest = int(groups.min()), int(groups.max())
    if lowest < -1 or highest >= num_groups:
        raise DivisionError(
            f"{name}.groups returned groups from {lowest} to {highest}: with {num_groups} groups expected numbers from "
            f"0 to {num_groups - 1}, or -1 for an edge that is in no subgraph."
        )


def _changes(graph: CanonicalGraph) -> Iterator[_Changed]:
    """Yields changes that must leave the group of every other edge as it is."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.arange(graph.num_edges)
    yield _Changed("it was asked twice", graph, edges)
    order = torch.randperm(graph.num_nodes, generator=generator)
    yield _Changed("rows were in another order", graph.with_nodes(order, edges), edges)
    yield _Changed("features of nodes changed", replace(graph, x=graph.x.flip(0) + 1), edges)
    yield _Changed("a lone node was added", _with_lone_node(graph), edges)
    one = int(torch.randint(0, graph.num_edges, (1,), generator=generator))
    both_ways = _same_pair(graph, one)
    for what, is_removed in (
        ("another edge was removed", both_ways),
        ("half of the other edges were removed", torch.rand(graph.num_edges, generator=generator) < 0.5),
        ("nine tenths of the other edges were removed", torch.rand(graph.num_edges, generator=generator) < 0.9),
    ):
        kept = (~is_removed).nonzero().view(-1)
        yield _Changed(what, graph.with_edges(kept), kept)


def _same_pair(graph: CanonicalGraph, edge: int) -> Tensor:
    """Returns which edges join the same two nodes as an edge, in either direction."""
    ends = graph.edge_index.sort(dim=0).values
    return (ends == ends[:, edge : edge + 1]).all(dim=0)


def _with_lone_node(graph: CanonicalGraph) -> CanonicalGraph:
    """Returns the graph with a further node that has an id of its own and no edges."""
    taken = set(graph.node_key.tolist())
    key = next(key for key in range(len(taken) + 1) if key not in taken)
    new_key = torch.tensor([key], dtype=graph.node_key.dtype)
    return replace(graph, x=torch.cat([graph.x, graph.x[-1:]]), node_key=torch.cat([graph.node_key, new_key]))
