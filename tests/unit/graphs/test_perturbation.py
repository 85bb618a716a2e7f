"""A concrete attack: what it makes of a graph, and what it costs."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.errors import GraphError, IdError
from agnncert.graphs.canonical import canonical
from agnncert.graphs.perturbation import Perturbation, least_load
from tests.support.graphs import twin_of


def data(**changes):
    """A path 10 - 11 - 12 and a lone 13."""
    values = {
        "x": torch.arange(8.0).view(4, 2),
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "node_id": torch.tensor([10, 11, 12, 13]),
        "y": torch.tensor([0, 1, 0, 1]),
        "train_mask": torch.tensor([True, False, True, False]),
    }
    return Data(**(values | changes))


def arcs(graph):
    ids = np.asarray(graph.node_id).tolist()
    return sorted((ids[u], ids[v]) for u, v in graph.edge_index.t().tolist())


def test_added_edges_go_both_ways_unless_directed():
    assert arcs(Perturbation(add_edges=[(10, 13)]).apply(data())) == sorted([*arcs(data()), (10, 13), (13, 10)])
    assert arcs(Perturbation(add_edges=[(10, 13)], directed=True).apply(data())) == sorted([*arcs(data()), (10, 13)])


def test_an_added_edge_completes_a_one_way_edge():
    one_way = data(edge_index=torch.tensor([[0], [1]]))
    assert arcs(Perturbation(add_edges=[(11, 10)]).apply(one_way)) == [(10, 11), (11, 10)]
    assert arcs(Perturbation(add_edges=[(10, 11)]).apply(one_way)) == [(10, 11), (11, 10)]


def test_a_self_loop_is_added_once():
    assert arcs(Perturbation(add_edges=[(13, 13)]).apply(data())).count((13, 13)) == 1


def test_deleted_edges_lose_both_directions_and_all_copies():
    doubled = data(edge_index=torch.tensor([[0, 0, 1, 1, 2], [1, 1, 0, 2, 1]]), edge_weight=torch.arange(5.0))
    left = Perturbation(delete_edges=[(11, 10)]).apply(doubled)
    assert arcs(left) == [(11, 12), (12, 11)]
    assert left.edge_weight.tolist() == [3.0, 4.0]


def test_deleted_nodes_leave_with_their_edges_and_others_keep_ids_labels_and_splits():
    left = Perturbation(delete_nodes=[11]).apply(data())
    assert left.node_id.tolist() == [10, 12, 13]
    assert left.edge_index.shape == (2, 0)
    assert left.x.tolist() == [[0, 1], [4, 5], [6, 7]]
    assert left.y.tolist() == [0, 0, 1]
    assert left.train_mask.tolist() == [True, True, False]


def test_injected_nodes_come_last_with_no_label_and_in_no_split():
    grown = Perturbation(inject_nodes={99: [7.0, 7.0], 98: [8.0, 8.0]}, add_edges=[(99, 10), (98, 99)]).apply(data())
    assert grown.node_id.tolist() == [10, 11, 12, 13, 99, 98]
    assert grown.x[4:].tolist() == [[7, 7], [8, 8]]
    assert grown.y.tolist() == [0, 1, 0, 1, -1, -1]
    assert grown.train_mask.tolist() == [True, False, True, False, False, False]
    assert {(99, 10), (10, 99), (98, 99), (99, 98)} <= set(arcs(grown))


def test_features_change_by_id():
    assert Perturbation(change_features={12: [5.0, 6.0]}).apply(data()).x[2].tolist() == [5.0, 6.0]


def test_changed_edges_get_another_weight_attribute_or_number_of_copies():
    weighted = Perturbation(change_edges=[(11, 10, 9.0)]).apply(data(edge_weight=torch.ones(4)))
    assert weighted.edge_weight.tolist() == [9.0, 9.0, 1.0, 1.0]
    valued = Perturbation(change_edges=[(11, 10, [3.0, 4.0])]).apply(data(edge_attr=torch.zeros(4, 2)))
    assert valued.edge_attr[:2].tolist() == [[3.0, 4.0], [3.0, 4.0]]
    copied = Perturbation(change_edges=[(10, 11, 3)]).apply(data())
    assert arcs(copied) == sorted(3 * [(10, 11), (11, 10)] + [(11, 12), (12, 11)])


def test_new_edges_of_a_weighted_graph_have_weight_one():
    grown = Perturbation(add_edges=[(10, 13)]).apply(
        data(edge_weight=torch.full((4,), 5.0), edge_attr=torch.zeros(4, 2))
    )
    assert grown.edge_weight.tolist() == [5, 5, 5, 5, 1, 1]
    assert grown.edge_attr[4:].tolist() == [[1, 1], [1, 1]]


def test_new_edges_carry_what_is_stated_and_else_one():
    weighted = data(edge_weight=torch.full((4,), 5.0), edge_attr=torch.zeros(4, 2))
    grown = Perturbation(add_edges=[(10, 13)], added_values={"edge_attr": [7.0, 0.0]}).apply(weighted)
    assert grown.edge_weight.tolist() == [5, 5, 5, 5, 1, 1]
    assert grown.edge_attr[4:].tolist() == [[7, 0], [7, 0]]
    whole = data(edge_weight=torch.full((4,), 5))
    grown = Perturbation(add_edges=[(10, 13)], added_values={"edge_weight": 0.5}, directed=True).apply(whole)
    assert grown.edge_weight.tolist() == [5, 5, 5, 5, 0.5]
    with pytest.raises(GraphError, match=r"edge_attr of added edges has shape \(1,\), but the graph's has \(2,\)"):
        Perturbation(add_edges=[(10, 13)], added_values={"edge_attr": [7.0]}).apply(weighted)


def test_the_graph_it_is_applied_to_stays_as_it_was():
    given = data(edge_weight=torch.ones(4))
    before = given.clone()
    Perturbation(
        add_edges=[(10, 13)], delete_edges=[(11, 12)], change_edges=[(10, 11, 4.0)], inject_nodes={99: [0.0, 0.0]},
        delete_nodes=[12], change_features={10: [9.0, 9.0]},
    ).apply(given)  # fmt: skip
    for name in before.keys():  # noqa: SIM118 - Data is no dict
        assert torch.equal(given[name], before[name]), name


def test_string_ids_and_ids_beyond_64_bits_survive():
    named = data(node_id=["a", "b", "7", "d"])
    grown = Perturbation(inject_nodes={"new": [0.0, 0.0]}, add_edges=[("new", 7)]).apply(named)
    assert grown.node_id == ["a", "b", "7", "d", "new"]
    assert (4, 2) in {tuple(arc) for arc in grown.edge_index.t().tolist()}
    huge = Perturbation(inject_nodes={2**70: [0.0, 0.0]}).apply(data())
    assert canonical(huge).node_key.tolist()[:4] == [10, 11, 12, 13]
    assert huge.node_id == [10, 11, 12, 13, 2**70]


@pytest.mark.parametrize(
    "ids", [[1, 2**63, -5, 2**64 - 1], np.array([1, 2**63, 5, 2**64 - 1], dtype=np.uint64), ["a", "a\0", "", 2**200]]
)
def test_the_ids_of_untouched_nodes_stay_exactly_as_they_were(ids):
    named = data(node_id=ids)
    grown = Perturbation(inject_nodes={-7: [0.0, 0.0]}).apply(named)
    assert list(grown.node_id) == [*ids, -7]
    assert canonical(grown).node_key[:4].tolist() == canonical(named).node_key.tolist()


def test_two_ids_with_one_key_are_two_nodes():
    text, twin = "x", twin_of("x")
    named = data(node_id=[text, twin, "b", "c"])
    assert canonical(named).node_key[0] == canonical(named).node_key[1]
    for row, name in enumerate(named.node_id):
        left = Perturbation(delete_nodes=[name]).apply(named)
        assert left.node_id == [other for other in named.node_id if other != name]
        changed = Perturbation(change_features={name: [50.0, 50.0]}).apply(named)
        assert (changed.x == 50).all(1).nonzero().view(-1).tolist() == [row]
    assert Perturbation(delete_edges=[(twin, "b")]).apply(named).edge_index.tolist() == [[0, 1], [1, 0]]


def test_a_node_may_be_injected_under_another_id_with_the_key_of_a_living_one():
    named = data(node_id=["x", "a", "b", "c"])
    grown = Perturbation(inject_nodes={twin_of("x"): [0.0, 0.0]}, add_edges=[(twin_of("x"), "x")]).apply(named)
    assert grown.node_id == ["x", "a", "b", "c", twin_of("x")]
    assert grown.edge_index[:, -2:].tolist() == [[0, 4], [4, 0]]


def test_a_vacated_id_may_be_taken_by_another_node():
    reborn = Perturbation(delete_nodes=[11], inject_nodes={11: [9.0, 9.0]}, add_edges=[(11, 13)]).apply(data())
    assert reborn.node_id.tolist() == [10, 12, 13, 11]
    assert arcs(reborn) == [(11, 13), (13, 11)]


def test_nodes_without_ids_are_named_by_row():
    rows = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0], [1]]))
    grown = Perturbation(inject_nodes={3: [1.0], 4: [2.0]}, add_edges=[(4, 0)]).apply(rows)
    assert grown.x.view(-1).tolist() == [0, 0, 0, 1, 2]
    assert grown.edge_index.t().tolist() == [[0, 1], [0, 4], [4, 0]]
    assert "node_id" not in grown
    assert Perturbation(delete_nodes=[0]).apply(rows).num_nodes == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delete_nodes": [99]}, IdError, "no node with id 99"),
        ({"change_features": {"x": [0, 0]}}, IdError, "no node with id 'x'"),
        ({"add_edges": [(10, 99)]}, IdError, "no node with id 99"),
        ({"add_edges": [(10, 11)]}, GraphError, r"cannot add the edge \(10, 11\): it is there already"),
        ({"add_edges": [(10, 13), (13, 10)]}, GraphError, "there already"),
        ({"delete_edges": [(10, 13)]}, GraphError, r"cannot delete the edge \(10, 13\): the graph has no such edge"),
        ({"change_edges": [(10, 13, 2)]}, GraphError, "cannot change the edge"),
        ({"change_edges": [(10, 11, 0)]}, GraphError, "0 copies: expected a whole number from 1 on"),
        ({"change_edges": [(10, 11, 1.5)]}, GraphError, r"1.5 copies"),
        ({"inject_nodes": {11: [0, 0]}}, IdError, "under the id 11: a living node has it"),
        ({"inject_nodes": {"11": [0, 0]}}, IdError, "under the id '11': a living node has it"),
        ({"inject_nodes": {5: [0, 0], "5": [0, 0]}}, IdError, "not unique"),
    ],
)
def test_attacks_that_make_no_sense_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        Perturbation(**change).apply(data())


def test_a_row_that_is_not_the_next_cannot_be_injected_because_it_would_get_another_identity():
    rows = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(IdError, match=r"row numbers are the ids and the next one is 3"):
        Perturbation(inject_nodes={77: [1.0]}).apply(rows)


def test_a_canonical_graph_has_lost_its_ids_and_is_refused():
    with pytest.raises(GraphError, match="the graph it was made from"):
        Perturbation(delete_nodes=[10]).apply(canonical(data()))


# Costs


def test_each_kind_is_counted_once_however_it_is_written():
    change = Perturbation(
        add_edges=[(10, 13), (13, 10)],
        delete_edges=[(10, 11), (11, 10), ("10", 11)],
        change_edges=[(11, 12, 2), (12, 11, 3)],
        delete_nodes=[13],
        change_features={10: [0, 0], 12: [0, 0]},
    )
    assert change.cost() == Budget(add_edges=1, delete_edges=1, change_edges=1, delete_nodes=1, change_features=2)
    assert Perturbation().cost() == Budget()


def test_nodes_and_pairs_that_share_keys_are_counted_apart():
    text, twin = "x", twin_of("x")
    assert Perturbation(delete_nodes=[text, twin]).cost() == Budget(delete_nodes=2)
    assert Perturbation(change_features={text: [0], twin: [0]}).cost() == Budget(change_features=2)
    assert Perturbation(delete_edges=[(text, 1), (1, twin)]).cost() == Budget(delete_edges=2)
    assert Perturbation(change_edges=[(text, 1, 2), (1, twin, 2)]).cost() == Budget(change_edges=2)
    assert Perturbation(add_edges=[(text, 1), (twin, 1), (text, twin)]).cost() == Budget(add_edges=3)
    injected = Perturbation(inject_nodes={twin: [0]}, add_edges=[(text, 1), (twin, 1)])
    assert injected.cost() == Budget(inject_nodes=1, edges_per_injected=1, add_edges=1)


def test_edges_of_injected_nodes_are_theirs_and_not_added_edges():
    change = Perturbation(inject_nodes={90: [0], 91: [0]}, add_edges=[(90, 10), (90, 11), (91, 10), (10, 12)])
    assert change.cost() == Budget(add_edges=1, inject_nodes=2, edges_per_injected=2)
    assert Perturbation(inject_nodes={90: [0]}).cost() == Budget(inject_nodes=1, edges_per_injected=0)


def test_edges_between_injected_nodes_are_shared_out_as_well_as_possible():
    random = np.random.default_rng(0)
    nodes = [90, 91, 92, 93]
    possible = list(itertools.combinations(nodes, 2)) + [(n, old) for n in nodes for old in (10, 11)]
    for _ in range(60):
        chosen = [possible[k] for k in random.permutation(len(possible))[: random.integers(1, 9)]]
        owners = [[n for n in pair if n in nodes] for pair in chosen]
        best = min(max(taken.count(n) for n in nodes) for taken in itertools.product(*owners))
        change = Perturbation(inject_nodes={n: [0.0] for n in nodes}, add_edges=chosen)
        assert change.cost().edges_per_injected == best


def test_integer_features_become_floats_when_an_attacker_writes_fractions():
    codes = data(x=torch.arange(8).view(4, 2))
    for change in (Perturbation(inject_nodes={14: [0.5, 1.5]}), Perturbation(change_features={13: [0.5, 1.5]})):
        attacked = change.apply(codes)
        assert attacked.x[-1].tolist() == [0.5, 1.5]
        assert attacked.x[0].tolist() == [0.0, 1.0]
    whole = Perturbation(inject_nodes={14: [3.0, 1]}).apply(codes)
    assert (whole.x.dtype, whole.x[-1].tolist()) == (torch.int64, [3, 1])
    weighted = Perturbation(change_edges=[(10, 11, 0.5)]).apply(data(edge_weight=torch.ones(4, dtype=torch.int64)))
    assert weighted.edge_weight.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_one_injected_row_of_fractions_is_enough_for_all():
    attacked = Perturbation(inject_nodes={14: [1, 2], 15: [0.5, 0.5]}).apply(data(x=torch.arange(8).view(4, 2)))
    assert attacked.x[-2:].tolist() == [[1.0, 2.0], [0.5, 0.5]]


@pytest.mark.parametrize("features", [[1.0], [1.0, 2.0, 3.0], 1.0, [[1.0, 2.0]]])
def test_features_of_another_width_are_refused_instead_of_spread(features):
    for change in (Perturbation(inject_nodes={14: features}), Perturbation(change_features={13: features})):
        with pytest.raises(GraphError, match=r"features of node 1. have shape"):
            change.apply(data())


@pytest.mark.parametrize(("thing", "found"), [(data(x=None), "no node features x"), ([data()], "got a list")])
def test_a_change_is_applied_to_one_graph_with_features(thing, found):
    with pytest.raises(GraphError, match=found):
        Perturbation(delete_nodes=[12]).apply(thing)


def test_edges_between_injected_nodes_are_shared_as_evenly_as_any_sharing_can():
    draw = random.Random(0)
    for _ in range(300):
        ends = [draw.sample(range(4), draw.choice([1, 2, 2])) for _ in range(draw.randint(0, 7))]
        takers = itertools.product(*ends)
        assert least_load(ends) == min(max(Counter(taken).values(), default=0) for taken in takers)
