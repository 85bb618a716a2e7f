"""Small probe graphs have their edges in the order in which the library gives edges to a model: by the ids of dst, then of src."""

import pytest
import torch

from agnncert.auditing.probe_graphs import ProbeGraph, Table, one_more, path


def assert_in_order(graph: ProbeGraph) -> None:
    source, head = graph.place[graph.edge_index]
    assert bool(((head * (int(graph.place.max()) + 1) + source).diff() >= 0).all())


@pytest.mark.parametrize("both_ways", [False, True])
def test_edges_of_a_path_and_of_what_is_added_to_it_are_in_order(both_ways) -> None:
    generator = torch.Generator().manual_seed(0)
    table, weights = Table.of(torch.randn(5, 3, generator=generator), generator), {"edge_weight": torch.ones(4)}
    graph = path(table, weights, both_ways, generator)
    assert_in_order(graph)
    larger = dict(one_more(graph, table, weights, True, "node", generator))
    assert len(larger) == 9
    for one in larger.values():
        assert_in_order(one)
        assert len(one.values["edge_weight"]) == one.edge_index.size(1) >= graph.edge_index.size(1)
