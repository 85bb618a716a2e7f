"""Data prepared once gives the same targets as data prepared for each question."""

import numpy as np
import pytest
import torch

from agnncert.errors import GraphError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.targets import CanonicalData, prepared, target_rows
from tests.support.graphs import make_data, random_data


def graphs_of(count: int, seed: int) -> list:
    """Graphs with ids, edge weights, parallel edges and self-loops, in no order."""
    random = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        graph = random_data(10 * seed + number, directed=True, smallest=1)
        loops = torch.arange(graph.num_nodes).repeat(2, 1)
        graph.edge_index = torch.cat([graph.edge_index, loops, graph.edge_index[:, :2]], dim=1)
        graph.edge_index = graph.edge_index[:, torch.randperm(graph.edge_index.size(1), generator=random)]
        graph.edge_weight = torch.rand(graph.edge_index.size(1), generator=random)
        graph.node_id = torch.randperm(1000, generator=random)[: graph.num_nodes]
        graphs.append(graph)
    return graphs


def same(a, b) -> None:
    for name, value in vars(a).items():
        other = getattr(b, name)
        assert torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other, name
    assert graph_digest(a) == graph_digest(b)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_some_graphs_of_a_prepared_set_are_those_graphs_prepared_alone(seed: int, loops: bool) -> None:
    graphs = graphs_of(7, seed)
    ready = CanonicalData.of(graphs)
    for rows in ([3], [5, 0, 2], [6, 5, 4, 3, 2, 1, 0], list(range(7))):
        same(ready.targets(rows, loops).graph, canonical_set([graphs[k] for k in rows], loops))


def test_ids_are_stable_if_those_of_the_chosen_graphs_are() -> None:
    graphs = graphs_of(3, 0)
    del graphs[1].node_id
    ready = CanonicalData.of(graphs)
    assert ready.targets([0, 2]).id_kind == "node_id"
    assert ready.targets([0, 1]).id_kind == "row"


@pytest.mark.parametrize("loops", [False, True])
def test_a_prepared_graph_is_the_canonical_one_and_is_made_once(loops: bool) -> None:
    (graph,) = graphs_of(1, 3)
    ready = CanonicalData.of(graph)
    targets = ready.targets(None, loops)
    same(targets.graph, canonical(graph, loops))
    assert ready.targets(np.arange(graph.num_nodes), loops) is targets
    assert prepared(ready) is ready


@pytest.mark.parametrize(
    "ids",
    [[-1, 2**63, 5], ["a", "a\0", "a\0\0"], [7, "seven", 2**80], np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)],
    ids=repr,
)
def test_the_ids_of_targets_are_those_of_the_data(ids) -> None:
    graph = make_data([(0, 1), (1, 0)], 3, ids=ids)
    assert CanonicalData.of(graph).targets([2, 1]).ids.tolist() == [ids[2], ids[1]]


def test_ids_of_whole_numbers_are_an_array_of_them_however_they_are_spelled() -> None:
    for ids in ([5, "6", -7], ["5", "6", "-7"], torch.tensor([5, 6, -7], dtype=torch.int16), (5, 6, -7)):
        found = CanonicalData.of(make_data([], 3, ids=ids)).targets().ids
        assert found.dtype == np.int64
        assert found.tolist() == [5, 6, -7]


def test_of_a_set_only_the_targets_need_to_be_prepared() -> None:
    graphs = graphs_of(4, 1)
    graphs[2].x[0] = torch.nan
    with pytest.raises(GraphError, match="not finite"):
        CanonicalData.of(graphs)
    ready = CanonicalData.of(graphs, [0, 3])
    same(ready.targets([3]).graph, canonical_set([graphs[3]]))
    with pytest.raises(GraphError, match="not finite"):
        ready.targets([2])


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("test_mask", "pass the mask itself, such as data.test_mask"),
        (torch.ones(4), r"float32 .*If it is a mask, make it one: targets\.bool\(\)"),
        (torch.ones(4, dtype=torch.bfloat16, requires_grad=True), r"targets\.bool\(\)"),
        (torch.tensor([0, 1, 0, 1]), r"a row twice.*If 0 and 1 are meant as a mask"),
        (torch.tensor([0, 1, 0, 1], dtype=torch.uint8), r"a row twice.*If 0 and 1 are meant as a mask"),
    ],
)
def test_targets_that_are_nearly_a_mask_are_answered_with_how_to_make_one(targets, message):
    with pytest.raises(GraphError, match=message):
        target_rows(targets, 4)
