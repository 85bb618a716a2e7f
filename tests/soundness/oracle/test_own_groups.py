"""A group for each neighbour: both engines cast what the model says of the two-node graph alone."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.divisions.edge import PerEdge
from agnncert.divisions.node import PerNeighbour
from agnncert.graphs.graph import one_graph
from tests.support.checks import checked, votes_of
from tests.support.graphs import make_data, random_data
from tests.support.models import KINDS, build

SITUATIONS = {
    "undirected": random_data(2, largest=12, density=0.4),
    "directed": random_data(3, directed=True, largest=12, density=0.4),
    "row numbers": Data(x=random_data(2).x, edge_index=random_data(2).edge_index),
    "parallel edges": make_data([(0, 1), (0, 1), (1, 0), (1, 2), (1, 2), (1, 2)], 4),
    "self-loops dropped": make_data([(0, 0), (0, 1), (1, 0), (2, 2), (3, 1)], 4),
    "no edge": make_data([], 4),
    "one node": make_data([], 1),
}
DIVISIONS = [PerNeighbour(), PerEdge()]


def part(graph: Data, nodes: list[int], arcs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    place = {u: i for i, u in enumerate(nodes)}
    ends = [[place[int(u)] for u in row] for row in graph.edge_index[:, arcs]]
    return graph.x[nodes], torch.tensor(ends, dtype=torch.int64).reshape(2, -1)


def expected(graph: Data, division) -> dict[tuple[int, int], tuple[list[int], torch.Tensor]]:
    """Nodes and arcs of every vote of the node task, by target and group; the target comes first."""
    source, head = graph.edge_index
    found = {}
    if isinstance(division, PerNeighbour):
        for u, v in {(int(u), int(v)) for u, v in zip(source, head, strict=True)}:
            found[v, u] = [v, u], (source == u) & (head == v)
        return found
    pairs = sorted({(min(int(u), int(v)), max(int(u), int(v))) for u, v in zip(source, head, strict=True)})
    for group, (u, v) in enumerate(pairs):
        arcs = ((source == u) & (head == v)) | ((source == v) & (head == u))
        found[u, group] = [u, v], arcs
        found[v, group] = [v, u], arcs
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_nodes(situation, division, kind):
    data, model = SITUATIONS[situation], build(kind, "node")
    graph = checked(data, division)
    fast, naive = (votes_of(model, data, division, engine) for engine in ("fast", "naive"))
    alone = {
        place: int(model(*part(graph, nodes, arcs))[0].argmax())
        for place, (nodes, arcs) in expected(graph, division).items()
    }
    for votes in (fast, naive):
        listed = zip(votes.owner.tolist(), votes.group.tolist(), votes.vote.tolist(), strict=True)
        assert {(v, group): vote for v, group, vote in listed} == alone
        assert votes.reached.all()
        assert votes.num_groups >= max(1, votes.group.max(initial=0) + 1)
    assert np.array_equal(fast.default, naive.default)


@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_graphs(division, kind):
    data, model = list(SITUATIONS.values()), build(kind, "graph")
    joined = checked(data, division)
    fast, naive = (votes_of(model, data, division, engine) for engine in ("fast", "naive"))
    alone = {}
    for row in range(len(data)):
        graph = one_graph(joined, row)
        if isinstance(division, PerNeighbour):
            cells = {u: ([u], torch.zeros(graph.edge_index.size(1), dtype=torch.bool)) for u in range(graph.num_nodes)}
        else:
            cells = {group: two for (_, group), two in expected(graph, division).items()}
        for group, (nodes, arcs) in cells.items():
            batch = torch.zeros(len(nodes), dtype=torch.int64)
            alone[row, group] = int(model(*part(graph, nodes, arcs), batch)[0].argmax())
    for votes in (fast, naive):
        listed = zip(votes.owner.tolist(), votes.group.tolist(), votes.vote.tolist(), strict=True)
        assert {(v, group): vote for v, group, vote in listed} == alone


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_votes_of_some_targets_are_those_of_all(division):
    data, model = SITUATIONS["undirected"], build("gcn", "node")
    every, some = votes_of(model, data, division), votes_of(model, data, division, rows=[0, 3])
    for place, row in enumerate([0, 3]):
        mine, theirs = slice(*some.indptr[place : place + 2]), slice(*every.indptr[row : row + 2])
        assert np.array_equal(some.group[mine], every.group[theirs])
        assert np.array_equal(some.vote[mine], every.vote[theirs])
