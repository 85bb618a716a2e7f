"""Small probe graphs have their edges in the order in which the library gives edges to a model: by the ids of dst, then of src."""

from dataclasses import replace

import pytest
import torch

from agnncert.auditing.probe_graphs import ProbeGraph, Table, made_up, one_more, path


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


def test_edges_of_constructed_graphs_are_in_order_and_keep_their_values():
    graph = made_up(torch.Generator().manual_seed(0), 5, {}, loops=True)
    place = torch.argsort(torch.argsort(graph.place))
    assert_in_order(replace(graph, place=place))
    ends = graph.edge_index[:, torch.randperm(graph.edge_index.size(1), generator=torch.Generator().manual_seed(1))]
    again = replace(graph, edge_index=ends, values={"edge_attr": ends.T}, place=place.flip(0)).sorted()
    assert_in_order(again)
    assert torch.equal(again.values["edge_attr"].T, again.edge_index)
