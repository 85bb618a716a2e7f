"""Edges by group, and subgraphs laid out range by range."""

import itertools

import numpy as np
import pytest
import torch

from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.engine import edges_by_group as sorting
from agnncert.engine.edges_by_group import EdgesByGroup, sort_by_group
from agnncert.graphs.canonical import canonical, canonical_set
from tests.support.graphs import random_data

DIVISIONS = [EdgeCentric(7), NodeCentric(7), PerEdge(), PerNeighbour()]
CASES = [*itertools.product(["node", "graph"], DIVISIONS), ("node", GatedNodeCentric(7))]


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("num_groups", [4, 70_000])
def test_edges_are_sorted_by_group_and_keep_their_order_within(monkeypatch, block, num_groups):
    monkeypatch.setattr(sorting, "BLOCK", block)
    groups = torch.tensor([2, 0, -1, 2, 3, 0, 2])
    edges, start = sort_by_group(groups, num_groups)
    assert edges.tolist() == [1, 5, 0, 3, 6, 4]
    assert start[:5].tolist() == [0, 2, 2, 5, 6]
    assert len(start) == num_groups + 1


@pytest.mark.parametrize("num_groups", [7, 40_000])
def test_groups_of_edges_are_read_back_in_the_order_of_the_graph(monkeypatch, num_groups):
    graph, division = canonical(random_data(3, smallest=12, largest=12, density=0.6)), EdgeCentric(num_groups)
    expected = division.groups(graph)
    few = np.unique(expected)[-3:].tolist()
    monkeypatch.setattr(sorting, "EDGES_AT_ONCE", 10)
    found = EdgesByGroup(graph, division, np.arange(12)).groups_of(few)
    assert torch.equal(found.long(), torch.where(torch.isin(expected, torch.tensor(few)), expected, -1))


def test_ranges_hold_as_many_edges_as_fit_and_one_group_at_least():
    graph = canonical(random_data(3, smallest=12, largest=12, density=0.6))
    edges_by_group = EdgesByGroup(graph, EdgeCentric(7), np.arange(12))
    assert edges_by_group.ranges() == [range(7)]
    assert edges_by_group.ranges(1) == [range(k, k + 1) for k in range(7)]
    some = edges_by_group.ranges(sorting.BYTES_PER_EDGE * 30)
    assert 1 < len(some) < 7
    assert [k for groups in some for k in groups] == list(range(7))
    sizes = [len(edges_by_group.union(groups).edge) for groups in some]
    assert sum(sizes) == graph.num_edges
    assert all(size <= 30 for size, groups in zip(sizes, some, strict=True) if len(groups) > 1)


@pytest.mark.parametrize(("task", "division"), CASES, ids=str)
def test_the_ranges_together_are_the_union_of_all_subgraphs(task, division):
    data = [random_data(seed, smallest=5, density=0.5) for seed in range(3)]
    graph = canonical(data[0]) if task == "node" else canonical_set(data)
    rows = np.arange(graph.num_nodes if task == "node" else 3)
    whole = division.disjoint_union(graph, division.groups(graph))
    edges_by_group = EdgesByGroup(graph, division, rows)
    seen = []
    for groups in edges_by_group.ranges(1):
        union = edges_by_group.union(groups)
        assert all(int(cell) % edges_by_group.num_groups in groups for cell in union.subgraph_index)
        ends = torch.stack([union.node[union.edge_index[0]], union.node[union.edge_index[1]]])
        assert torch.equal(ends, graph.edge_index[:, union.edge])
        seen += list(
            zip(
                union.subgraph_index.tolist(),
                union.node.tolist(),
                union.votes.tolist(),
                union.reached.tolist(),
                strict=True,
            )
        )
    expected = zip(
        whole.subgraph_index.tolist(), whole.node.tolist(), whole.votes.tolist(), whole.reached.tolist(), strict=True
    )
    assert sorted(seen) == sorted(expected)
