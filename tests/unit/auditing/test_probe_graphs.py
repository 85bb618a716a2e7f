"""Small probe graphs have their edges in the order in which the library gives edges to a model: by the ids of dst, then of src."""

from dataclasses import replace

import pytest
import torch

from agnncert.auditing.constructed_graphs import GraphBuilder
from agnncert.auditing.probe_graphs import FeatureTable, ProbeGraph


def assert_in_order(graph: ProbeGraph) -> None:
    source, head = graph.position[graph.edge_index]
    assert bool(((head * (int(graph.position.max()) + 1) + source).diff() >= 0).all())


@pytest.mark.parametrize("both_ways", [False, True])
def test_edges_of_a_path_and_of_what_is_added_to_it_are_in_order(both_ways) -> None:
    generator = torch.Generator().manual_seed(0)
    table = FeatureTable.of(torch.randn(5, 3, generator=generator), generator)
    builder = GraphBuilder(generator, {"edge_weight": torch.ones(4)}, loops=True)
    graph = builder.path(table, both_ways)
    assert_in_order(graph)
    larger = list(builder.one_more(graph, table, "node", many_sizes=True))
    assert len({name for name, _ in larger}) == 10
    for _, one in larger:
        assert_in_order(one)
        assert len(one.values["edge_weight"]) == one.edge_index.size(1) >= graph.edge_index.size(1)


def test_edges_of_constructed_graphs_are_in_order_and_keep_their_values():
    graph = GraphBuilder(torch.Generator().manual_seed(0), {}, loops=True).graph(5)
    place = torch.argsort(torch.argsort(graph.position))
    assert_in_order(replace(graph, position=place))
    ends = graph.edge_index[:, torch.randperm(graph.edge_index.size(1), generator=torch.Generator().manual_seed(1))]
    again = replace(graph, edge_index=ends, values={"edge_attr": ends.T}, position=place.flip(0)).sorted()
    assert_in_order(again)
    assert torch.equal(again.values["edge_attr"].T, again.edge_index)
