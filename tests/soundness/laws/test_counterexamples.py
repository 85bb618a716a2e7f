"""Where the method as usually read is wrong: each reading is written out and broken here, and ours is not.

The readings are the obvious ones, most of them those of the released code: pooling over all nodes, hashing row
numbers, leaving out empty subgraphs, charging nothing for the target's own features.
"""

import hashlib
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from agnncert.certificates.budget import Budget
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.engine.adapter import bind
from agnncert.errors import GraphError, IdError, NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.perturbation import Perturbation
from agnncert.proving.theorems import certified_radius, count_votes
from tests.support.checks import all_listed, check_change, differ, outputs, votes_of, winner
from tests.support.graphs import ids_of, make_data, random_data
from tests.support.models import KINDS, build


def both_ways(pairs):
    return [*pairs, *((v, u) for u, v in pairs)]


def radius_of(votes, num_classes):
    return int(certified_radius(count_votes(all_listed(tuple(votes), num_classes)))[0])


# Normalisation


def test_gcn_weighs_a_message_by_the_in_degrees_of_both_ends():
    """So in the node-centric division an edge that leaves a node alters no weight of its other messages."""
    arcs = torch.tensor([[0, 0, 0, 3], [1, 2, 3, 1]])
    _, weight = gcn_norm(arcs, num_nodes=4, add_self_loops=True)
    inside = 1 + torch.tensor([0.0, 2, 1, 1])  # the layer's own loop counts
    expected = (inside[arcs[0]] * inside[arcs[1]]) ** -0.5
    torch.testing.assert_close(weight[:4], expected)
    out_degree = 1 + torch.tensor([3.0, 0, 0, 1])
    assert not torch.allclose(weight[:4], (out_degree[arcs[0]] * inside[arcs[1]]) ** -0.5)


# Directions


class HearsAny(nn.Module):
    """Class 1 if a node hears anybody, else class 0."""

    def forward(self, x, edge_index):
        heard = torch.zeros(len(x)).index_fill(0, edge_index[1], 1.0)
        return torch.stack([1 - heard, heard], dim=1)


@pytest.mark.parametrize("division", [NodeCentric(1), PerNeighbour()], ids=str)
def test_a_second_direction_is_an_added_edge_although_the_pair_was_joined_before(division):
    """Two nodes, one arc away from the target. Read as a changed edge, its reverse would flip a certified label."""
    before = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), node_id=torch.arange(2))
    change = Perturbation(add_edges=[(1, 0)], directed=True)
    after = change.apply(before)
    assert after.edge_index.t().tolist() == [[0, 1], [1, 0]]
    theorem = VotingRule(prior=[1, 1]) if division.is_per_neighbour else None
    certificate, attacked = (
        certify(HearsAny(), graph, division, targets=[0], voting_rule=theorem) for graph in (before, after)
    )
    assert certificate.label.tolist() == [0]
    assert attacked.label.tolist() == [1]
    assert certificate.holds_against(Budget(change_edges=5, delete_edges=5)).tolist() == [True]
    assert certificate.holds_against(Budget(add_edges=1)).tolist() == [False]
    assert change.cost() == Budget(add_edges=1)


# The target's own features


class Sign(nn.Module):
    """Votes by the sign of a node's first feature."""

    def forward(self, x, edge_index):
        return torch.stack([x[:, 0], -x[:, 0]], dim=1)


@pytest.mark.parametrize("division", [EdgeCentric(20), NodeCentric(20)], ids=str)
def test_own_features_move_every_vote_so_they_are_not_covered(division):
    data = make_data(both_ways([(0, v) for v in range(1, 10)]), 10)
    data.x[0, 0] = 1.0
    change = Perturbation(change_features={ids_of(data)[0]: [-1.0, 0.0, 0.0]})
    votes, then = votes_of(Sign(), data, division), votes_of(Sign(), change.apply(data), division)
    assert (votes.dense()[0] != then.dense()[0]).all(), "20 of 20, where the paper counts 9 or 1"
    with pytest.raises(NotCovered, match="own features"):
        division.votes_moved(change, canonical(data), 0)
    theorem = "edge-centric/node" if isinstance(division, EdgeCentric) else "node-centric/node"
    evidence = evidence_of(votes, theorem)
    assert evidence.holds(Budget())[0]
    assert not evidence.holds(Budget(target_features=True)).any()
    assert (evidence.max_certified("add_edges", Budget(target_features=True)) == -1).all()


def evidence_of(votes, theorem, ids="node_id"):
    """Evidence whose reach table says that one node may reach every listed vote: sound, and enough here."""
    reached = np.bincount(votes.owner[votes.reached], minlength=votes.num_targets)
    rows = (reached > 0) & theorem.startswith("edge-centric")
    ptr = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    return VoteEvidence(votes, theorem, ptr, reached[rows].astype(np.int32), ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_with_gated_features_own_features_move_one_vote(kind, seed):
    division, model = GatedNodeCentric(8), build(kind, "node", seed)
    data = random_data(seed, density=0.5)
    target = ids_of(data)[0]
    change = Perturbation(change_features={target: [5.0, -5.0, 5.0]})
    before, after = (outputs(model, d, division, "node")[target] for d in (data, change.apply(data)))
    assert sum(differ(a, b) for a, b in zip(before, after, strict=True)) == 1
    plain = NodeCentric(8)
    before, after = (outputs(model, d, plain, "node")[target] for d in (data, change.apply(data)))
    assert sum(differ(a, b) for a, b in zip(before, after, strict=True)) > 4, "most of them without the gate"
    check_change(model, data, division, change, "node")


# Isolated nodes and readouts


class MeanSign(nn.Module):
    """Votes by the sign of the mean of the first feature."""

    def forward(self, x, edge_index, batch):
        mean = global_mean_pool(x[:, :1], batch)
        return torch.cat([mean, -mean], dim=1)


def pool_over_all_nodes(data, division):
    """The paper's text: every subgraph keeps all nodes, and the readout sees them."""
    graph = canonical_set([data])
    groups = division.groups(graph)
    batch = torch.zeros(len(data.x), dtype=torch.int64)
    return [
        int(MeanSign()(data.x, graph.edge_index[:, groups == i], batch).argmax()) for i in range(division.num_groups)
    ]


def test_no_edge_nodes_flip_the_vote_when_all_nodes_are_pooled_and_move_nothing_here():
    data = make_data(both_ways([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]), 6)
    data.x[:, 0] = 1.0
    division = EdgeCentric(15)
    change = Perturbation(inject_nodes={20_000 + k: [-2.0, 0.0, 0.0] for k in range(4)})
    naive, attacked = pool_over_all_nodes(data, division), pool_over_all_nodes(change.apply(data), division)
    assert radius_of(naive, 2) == 7
    assert division.votes_moved(change, canonical_set([data]), None) == 0, "no edge is touched, so nothing is charged"
    assert winner(attacked, 2) != winner(naive, 2)
    ours = [votes_of(MeanSign(), [d], division).dense().tolist() for d in (data, change.apply(data))]
    assert ours[0] == ours[1]


def test_features_of_an_isolated_node_move_nothing():
    data = make_data(both_ways([(0, 1), (1, 2)]), 4)
    data.x[:, 0] = 1.0
    division = EdgeCentric(6)
    change = Perturbation(change_features={ids_of(data)[3]: [-9.0, 0.0, 0.0]})
    assert division.votes_moved(change, canonical_set([data]), None) == 0
    assert pool_over_all_nodes(data, division) != pool_over_all_nodes(change.apply(data), division)
    ours = [votes_of(MeanSign(), [d], division).dense().tolist() for d in (data, change.apply(data))]
    assert ours[0] == ours[1]


# Identity


def released_hash(data, num_groups):
    """MD5 of hex(V*u + v) of row numbers, as in the released code."""
    size = len(data.x)
    codes = [hex(size * min(pair) + max(pair)) for pair in data.edge_index.t().tolist()]
    return [int(hashlib.md5(code.encode()).hexdigest(), 16) % num_groups for code in codes]


@pytest.mark.parametrize("division", [EdgeCentric(300), NodeCentric(300)], ids=str)
def test_growing_the_graph_moves_edges_when_the_hash_sees_its_size_and_none_here(division):
    random = np.random.default_rng(0)
    data = make_data(random.integers(0, 60, size=(200, 2)).tolist(), 60)
    grown = Perturbation(inject_nodes={20_000: [0.0, 0.0, 0.0]}).apply(data)
    legacy, after = released_hash(data, 300), released_hash(grown, 300)
    assert np.mean(np.array(legacy) == after) < 0.1, "nearly all edges change their subgraph"
    assert torch.equal(division.groups(canonical(data)), division.groups(canonical(grown)))


@pytest.mark.parametrize("division", [EdgeCentric(300), NodeCentric(300)], ids=str)
def test_deleting_a_node_moves_edges_when_row_numbers_are_hashed_and_none_with_ids(division):
    data = make_data(both_ways([(k, k + 1) for k in range(1, 20)]), 21)
    shrunk = Perturbation(delete_nodes=[ids_of(data)[0]]).apply(data)
    assert torch.equal(division.groups(canonical(data)), division.groups(canonical(shrunk)))
    anonymous = [Data(x=d.x, edge_index=d.edge_index) for d in (data, shrunk)]
    by_row = [division.groups(canonical(d)) for d in anonymous]
    assert (by_row[0] != by_row[1]).float().mean() > 0.9
    change = Perturbation(delete_nodes=[0])
    with pytest.raises(NotCovered, match="row numbers"):
        division.votes_moved(change, canonical(anonymous[0]), 3)


def test_a_budget_with_deleted_nodes_is_refused_where_row_numbers_are_the_ids():
    votes = votes_of(Sign(), make_data(both_ways([(0, 1)]), 3), NodeCentric(9))
    assert evidence_of(votes, "node-centric/node", "node_id").holds(Budget(delete_nodes=1)).all()
    assert not evidence_of(votes, "node-centric/node", "row").holds(Budget(delete_nodes=1)).any()
    assert (
        evidence_of(votes, "node-centric/node", "row").holds(Budget(inject_nodes=1, edges_per_injected=math.inf)).all()
    )


@pytest.mark.parametrize("ids", [[7, 7, 8], [1, "1", 2], ["1", "2", "1"]], ids=str)
def test_two_nodes_under_one_id_are_refused(ids):
    data = make_data([(0, 1)], 3, ids=ids)
    with pytest.raises(IdError, match="not unique"):
        canonical(data)
    with pytest.raises(IdError, match=r"graph 1: .*not unique"):
        canonical_set([make_data([(0, 1)], 3), data])


def test_injecting_under_a_living_id_is_refused_because_it_would_be_an_uncounted_change():
    data = make_data(both_ways([(0, v) for v in range(1, 6)]), 6)
    target = ids_of(data)[0]
    data.x[0, 0] = 1.0
    division = NodeCentric(20)
    attack = Perturbation(inject_nodes={target: [-1.0, 0.0, 0.0]})
    merged = data.clone()  # what a store keyed by id makes of it
    merged.x[0] = torch.tensor([-1.0, 0.0, 0.0])
    votes, then = votes_of(Sign(), data, division).dense(), votes_of(Sign(), merged, division).dense()
    assert (votes[0] != then[0]).all()
    with pytest.raises(IdError, match="living node"):
        attack.apply(data)
    with pytest.raises(IdError, match="living node"):
        Perturbation(inject_nodes={str(target): [-1.0, 0.0, 0.0]}).apply(data)


@pytest.mark.parametrize("division", [EdgeCentric(6), NodeCentric(6)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_another_node_under_a_vacated_id_is_accepted_and_within_the_bound(division, kind):
    data = make_data(both_ways([(0, 1), (1, 2), (2, 3), (3, 0)]), 5)
    ids = ids_of(data)
    change = Perturbation(
        delete_nodes=[ids[1]],
        inject_nodes={ids[1]: [4.0, -4.0, 4.0]},
        add_edges=[(ids[1], u) for u in ids if u != ids[1]],
    )
    assert change.cost() == Budget(delete_nodes=1, inject_nodes=1, edges_per_injected=4)
    check_change(build(kind, "node"), data, division, change, "node")


# Empty subgraphs


class HasNeighbour(nn.Module):
    """Class 1 for nodes with an incoming edge, class 0 for others."""

    def forward(self, x, edge_index):
        heard = torch.zeros(len(x), dtype=x.dtype).index_fill(0, edge_index[1], 1.0)
        return torch.stack([1 - heard, heard], dim=1)


def ids_of_distinct_groups(division, count):
    """Small ids, each in a group of its own."""
    chosen = {}
    for k in range(10_000):
        group = int(division.node_groups(canonical(make_data([], 1, ids=[k])))[0])
        chosen.setdefault(group, k)
        if len(chosen) == count:
            return list(chosen.values())
    raise AssertionError


def vote_without_empty_subgraphs(data, division, target):
    graph = canonical(data)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, i) for i in range(division.num_groups)]
    return [int(HasNeighbour()(p.x, p.edge_index)[target].argmax()) for p in parts if p.num_edges]


def test_skipping_empty_subgraphs_lets_one_node_break_a_certificate_and_ours_does_not_move():
    division = NodeCentric(20)
    ids = ids_of_distinct_groups(division, 20)
    data = make_data(both_ways([(0, v) for v in range(1, 7)]), 20, ids=ids)
    change = Perturbation(inject_nodes={20_000: [0.0, 0.0, 0.0]}, add_edges=[(20_000, u) for u in ids[7:]])
    assert division.votes_moved(change, canonical(data), 0) == 1
    skipping, attacked = (vote_without_empty_subgraphs(d, division, 0) for d in (data, change.apply(data)))
    assert sorted(skipping) == [0] + 6 * [1]
    assert radius_of(skipping, 2) == 2, "certified against two units, and one breaks it"
    assert winner(tuple(attacked), 2) != winner(tuple(skipping), 2)
    ours = [votes_of(HasNeighbour(), d, division).dense()[0] for d in (data, change.apply(data))]
    assert np.array_equal(ours[0], ours[1])


def test_an_empty_subgraph_votes_without_edges_in_the_node_task_and_abstains_in_the_graph_task():
    data = make_data([], 3)
    assert (votes_of(HasNeighbour(), data, NodeCentric(5)).dense() == 0).all()
    assert (votes_of(HasNeighbour(), data, EdgeCentric(5)).dense() == 0).all()
    assert (votes_of(MeanSign(), [data], EdgeCentric(5)).dense() == -1).all()


# Self-loops


class CountsEdges(nn.Module):
    """Graph task: class 1 if there is an edge."""

    def forward(self, x, edge_index, batch):
        many = torch.zeros(int(batch[-1]) + 1, dtype=x.dtype).index_fill(0, batch[edge_index[1]], 1.0)
        return torch.stack([1 - many, many], dim=1)


def test_a_self_loop_moves_the_vote_of_a_lone_node_which_counting_pairs_of_nodes_forgets():
    data = make_data([], 1)
    node = ids_of(data)[0]
    change = Perturbation(add_edges=[(node, node)])
    kept, dropped = NodeCentric(3, self_loops=True), NodeCentric(3)
    before, after = (votes_of(CountsEdges(), [d], kept) for d in (data, change.apply(data)))
    assert (before.dense() != after.dense()).sum() == 1
    subgraphs_with_two_nodes = 0  # what an edge between different nodes could alter
    assert subgraphs_with_two_nodes < 1
    assert before.reached.tolist() == [True], "with self-loops, a subgraph with one node counts as reachable"
    assert kept.votes_moved(change, canonical_set([data], keep_self_loops=True), None) == 1
    before, after = (votes_of(CountsEdges(), [d], dropped) for d in (data, change.apply(data)))
    assert before.reached.tolist() == [False]
    assert np.array_equal(before.dense(), after.dense()), "without, the loop is dropped at the door"


# Numbers that are not numbers


def test_one_isolated_nan_spoils_every_row_of_a_dense_product_so_it_is_refused():
    data = make_data(both_ways([(0, 1)]), 5)
    data.x[4, 0] = math.nan
    dense = torch.zeros(5, 5, dtype=torch.float64).index_put(
        (data.edge_index[1], data.edge_index[0]), torch.tensor(1.0).double()
    )
    assert torch.isnan(dense @ data.x).any(dim=1).all()
    with pytest.raises(GraphError, match=r"1 node\(s\) are not finite \(first: row 4\)"):
        canonical(data)


def test_a_number_that_the_model_cannot_hold_is_refused_like_an_infinite_one():
    data = make_data(both_ways([(0, 1)]), 3)
    data.x[2, 0] = 1e300
    canonical(data)
    with pytest.raises(GraphError, match="float32"):
        bind(build("gcn", "node").float(), canonical(data), "node")
    bind(build("gcn", "node"), canonical(data), "node")


def test_no_injected_nodes_bring_no_edges_however_many_each_might():
    assert math.isnan(0 * math.inf)
    assert Budget(inject_nodes=0, edges_per_injected=math.inf).injected_edges == 0
    assert Budget(inject_nodes=3, edges_per_injected=0).injected_edges == 0
    assert Budget(inject_nodes=math.inf, edges_per_injected=2).injected_edges == math.inf


class HearsWeights(nn.Module):
    """Adds up what neighbours say, times the weight of the edge."""

    def forward(self, x, edge_index, edge_weight):
        heard = torch.zeros(len(x)).index_add(0, edge_index[1], edge_weight * x[edge_index[0], 0])
        return torch.stack([heard, -heard], dim=1)


def star_with_weights_from_both_ends(own: float) -> Data:
    x = torch.ones(9, 1).index_fill(0, torch.tensor([0]), own)
    out = torch.tensor([[0] * 8, list(range(1, 9))])
    edges = torch.cat([out, out.flip(0)], dim=1)
    weights = (x[edges[0]] * x[edges[1]]).view(-1)
    return Data(x=x, edge_index=edges, edge_weight=weights, node_id=torch.arange(9))


def test_weights_from_both_ends_void_gated_features():
    gated = GatedNodeCentric(20)
    before, after = (
        certify(HearsWeights(), star_with_weights_from_both_ends(own), gated, targets=[0]) for own in (1.0, -1.0)
    )
    assert before.counts.tolist() == [[7, 0]]
    assert before.holds_against(Budget(target_features=True)).tolist() == [True]
    assert after.counts.tolist() == [[1, 6]]  # why the weights belong into the model
