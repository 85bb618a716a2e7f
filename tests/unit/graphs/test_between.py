"""What an attacker changed between two graphs, and what that costs at a node."""

import math

import pytest
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.errors import GraphError, IdError
from agnncert.graphs.perturbation import Perturbation
from tests.support.graphs import CHANGES, random_change, random_data


def data(**changes):
    """A path 10 - 11 - 12 and a lone 13."""
    values = {
        "x": torch.arange(8.0).view(4, 2),
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "node_id": torch.tensor([10, 11, 12, 13]),
    }
    return Data(**(values | changes))


def described(graph):
    """Nodes with their features, and arcs with their values, whatever the order."""
    ids = graph.node_id if isinstance(graph.node_id, list) else graph.node_id.tolist()
    values = graph.edge_weight.tolist() if "edge_weight" in graph else [None] * graph.edge_index.size(1)
    arcs = [(ids[u], ids[v], value) for (u, v), value in zip(graph.edge_index.t().tolist(), values, strict=True)]
    return dict(zip(ids, graph.x.tolist(), strict=True)), sorted(arcs, key=str)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", CHANGES)
def test_the_change_between_a_graph_and_itself_under_attack_is_that_attack(kind, weighted, directed):
    found = 0
    for seed in range(12):
        clean = random_data(seed, directed=directed)
        if weighted:
            clean.edge_weight = torch.arange(1.0, clean.edge_index.size(1) + 1).double()
        change = random_change(kind, clean, seed)
        if change is None or (kind == "reuse id" and directed):  # its edges may lose a direction
            continue
        attacked = change.apply(clean)
        again = Perturbation.between(clean, attacked)
        assert described(again.apply(clean)) == described(attacked)
        if kind != "reuse id":  # whoever comes back under the same id has other features and edges
            assert again.cost() == change.cost()
        found += 1
    assert found > 5 or (kind == "reuse id" and directed)


def test_nodes_are_told_by_ids_and_not_by_rows():
    order = torch.tensor([3, 1, 0, 2])
    shuffled = Data(
        x=data().x[order],
        edge_index=torch.tensor([[1, 2, 1, 3], [2, 1, 3, 1]]),
        node_id=torch.tensor([13, 11, 10, 12]),
    )
    assert Perturbation.between(data(), shuffled) == Perturbation()
    assert Perturbation.between(data(), data(x=data().x[order])).change_features


def test_graphs_without_ids_are_compared_row_by_row_and_new_nodes_come_last():
    clean = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    grown = Perturbation(inject_nodes={2: [5.0, 6.0]}, add_edges=[(2, 0)]).apply(clean)
    assert Perturbation.between(clean, grown) == Perturbation(inject_nodes={2: [5.0, 6.0]}, add_edges=((2, 0),))
    with pytest.raises(IdError, match="2 and 1 nodes and no node_id"):
        Perturbation.between(clean, Data(x=torch.eye(2)[:1], edge_index=torch.zeros(2, 0, dtype=torch.int64)))


def test_a_second_direction_is_an_added_edge_and_a_lost_one_is_refused():
    one_way = data(edge_index=torch.tensor([[0], [1]]))
    both_ways = data(edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert Perturbation.between(one_way, both_ways).cost() == Budget(add_edges=1)
    with pytest.raises(GraphError, match="between 10 and 11 has other values or copies, and other directions"):
        Perturbation.between(both_ways, one_way)


def test_an_edge_that_leads_one_way_is_added_one_way():
    attacked = data(edge_index=torch.tensor([[0, 1, 1, 2, 3, 3, 0], [1, 0, 2, 1, 2, 0, 3]]))
    change = Perturbation.between(data(), attacked)
    assert change.directed
    assert change.cost() == Budget(add_edges=2)
    assert described(change.apply(data())) == described(attacked)


@pytest.mark.parametrize(
    ("attacked", "error", "words"),
    [
        ("no graph", GraphError, "the attacked graph is no torch_geometric Data"),
        (data(x=torch.zeros(4, 3)), GraphError, r"shape \(2,\), those of the attacked graph \(3,\)"),
        (data(node_id=None), IdError, "only one of the two graphs has a node_id"),
        (data(node_id=[10, 10, 12, 13]), IdError, "attacked graph"),
        (data(edge_weight=torch.ones(4)), GraphError, "clean graph carry nothing, those of the attacked graph edge_w"),
        (data(edge_index=torch.tensor([[0, 1, 1, 2, 0, 0], [1, 0, 2, 1, 3, 3]])), GraphError, "several copies"),
    ],
)
def test_what_no_perturbation_does_is_refused(attacked, error, words):
    with pytest.raises(error, match=words):
        Perturbation.between(data(), attacked)


def test_added_edges_with_different_weights_are_refused():
    clean = data(edge_weight=torch.ones(4))
    more = torch.tensor([[0, 1, 1, 2, 0, 3, 2, 3], [1, 0, 2, 1, 3, 0, 3, 2]])
    same = data(edge_index=more, edge_weight=torch.tensor([1.0] * 4 + [2.0] * 4))
    assert Perturbation.between(clean, same).added_values == {"edge_weight": 2.0}
    with pytest.raises(GraphError, match="different values"):
        Perturbation.between(clean, data(edge_index=more, edge_weight=torch.tensor([1.0] * 4 + [2.0] * 2 + [3.0] * 2)))


def test_a_changed_weight_and_number_of_copies_are_changed_edges():
    clean = data(edge_weight=torch.ones(4))
    heavier = data(edge_weight=torch.tensor([1.0, 1.0, 4.0, 4.0]))
    assert Perturbation.between(clean, heavier) == Perturbation(change_edges=((11, 12, 4.0),))
    copied = data(edge_index=torch.tensor([[0, 1, 1, 2, 1, 2], [1, 0, 2, 1, 2, 1]]))
    assert Perturbation.between(data(), copied) == Perturbation(change_edges=((11, 12, 2),))
    lopsided = data(edge_weight=torch.tensor([1.0, 1.0, 4.0, 5.0]))
    with pytest.raises(GraphError, match="several new values"):
        Perturbation.between(clean, lopsided)


def test_the_cost_at_a_node_counts_its_edges_and_all_that_may_be_its_neighbours():
    change = Perturbation(
        add_edges=[(10, 13), ("13", 12), ("new", 10), ("new", 11)],
        delete_edges=[(11, 12)],
        change_edges=[(10, 11, 3)],
        inject_nodes={"new": [0.0, 0.0]},
        delete_nodes=[14],
        change_features={12: [1.0, 1.0], 10: [2.0, 2.0]},
    )
    other = {"delete_nodes": 1}
    at = {10: Budget(add_edges=1, change_edges=1, inject_nodes=1, edges_per_injected=1, change_features=1,
                     target_features=True, **other),
          11: Budget(delete_edges=1, change_edges=1, inject_nodes=1, edges_per_injected=1, change_features=2, **other),
          "13": Budget(add_edges=2, change_features=2, **other),
          99: Budget(change_features=2, **other)}  # fmt: skip
    for node, cost in at.items():
        assert change.cost_at(node) == cost, node
    assert change.cost_at(14) is None
    assert change.costs_at([10, 14], anywhere=True) == [
        change.cost().but(change_features=1, target_features=True),
        None,
    ]
    assert Perturbation().cost_at(10) == Budget(edges_per_injected=math.inf)
