"""Which votes are cast again, and that a vote of another class is noticed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine import spot_check as checking
from agnncert.engine.adapter import bind
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.exact_votes import rounding_of
from agnncert.engine.spot_check import choose_few_subgraphs, choose_votes, draw_sample, spot_check_pairs
from agnncert.engine.votes import compute_votes
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.models.build import build_model
from tests.support.graphs import random_data
from tests.support.models import build


@pytest.fixture(params=["node", "graph"])
def voted(request):
    data = [random_data(seed, smallest=8, density=0.4) for seed in range(3)]
    graph = canonical(data[0]) if request.param == "node" else canonical_set(data)
    rows = np.arange(graph.num_nodes if request.param == "node" else 3)
    call, division = bind(build("sage", request.param), graph, request.param), NodeCentric(4)
    return compute_votes(call, graph, division, rows)[0], call, graph, division, rows


def test_votes_that_are_right_do_not_differ_and_wrong_ones_do(voted):
    votes, call, graph, division, rows = voted
    everything = choose_votes(votes, np.inf, np.random.default_rng(0))
    assert len(everything) == len(rows) * 4
    assert not spot_check_pairs(votes, everything, call, graph, division, rows)[0].size
    wrong = replace(votes, vote=(votes.vote + 1) % votes.num_classes)
    found, again = spot_check_pairs(wrong, everything, call, graph, division, rows)
    assert found.size == votes.stable.sum()
    assert (again == votes.dense().reshape(-1)).all()


def test_a_few_votes_are_some_dozens_at_the_price_of_few_passes(voted):
    votes, _, graph, _, rows = voted
    pairs = choose_few_subgraphs(votes, graph.task == "graph", np.random.default_rng(0))
    assert len(np.unique(pairs[:, 1])) <= 3 or graph.task == "graph"
    assert len(pairs) >= min(24, len(rows))
    assert len(np.unique(pairs, axis=0)) == len(pairs)


@pytest.mark.parametrize("division", [EdgeCentric(4), NodeCentric(4), PerEdge()], ids=str)
def test_a_sample_holds_the_subgraphs_that_its_votes_are_cast_in(division):
    graph, rows = canonical(random_data(3, smallest=8, density=0.4)), np.arange(4)
    call = bind(build("sage", "node"), graph, "node")
    votes, _ = compute_votes(call, graph, division, rows)
    edges_by_group = EdgesByGroup(graph, division, rows)
    edges_by_group.sorted_edges()  # from here on, groups are found in the sorted edges
    pairs, subgraphs = draw_sample(votes, graph, division, edges_by_group, np.random.default_rng(0))
    assert sorted(subgraphs) == np.unique(pairs[:, 1]).tolist()
    for index, subgraph in subgraphs.items():
        expected = division.subgraph(graph, division.groups(graph), index)
        assert torch.equal(subgraph.edge_index, expected.edge_index)
    assert not spot_check_pairs(votes, pairs, call, graph, division, rows, subgraphs=subgraphs)[0].size
    wrong = replace(votes, vote=(votes.vote + 1) % votes.num_classes)
    assert spot_check_pairs(wrong, pairs, call, graph, division, rows, subgraphs=subgraphs)[0].size


def test_votes_without_any_edge_can_be_cast_again():
    data = random_data(0, smallest=6, density=0.0)
    graph, division, rows = canonical(data), EdgeCentric(3), np.arange(2)
    call = bind(build("gcn", "node"), graph, "node")
    votes = compute_votes(call, graph, division, rows)[0]
    assert not spot_check_pairs(
        votes, choose_few_subgraphs(votes, False, np.random.default_rng(0)), call, graph, division, rows
    )[0].size


@pytest.mark.parametrize("number", [1, 2, 5, 11, 12, 13, 100])
def test_as_many_votes_are_chosen_as_were_asked_for(voted, number):
    votes, *_, rows = voted
    for seed in range(5):
        pairs = choose_votes(votes, number, np.random.default_rng(seed))
        assert len(np.unique(pairs, axis=0)) == len(pairs) == min(number, 4 * len(rows))


@pytest.fixture(params=["node", "graph"])
def voted_alone(request):
    """One group for each edge."""
    data = [random_data(seed, smallest=8, density=0.4) for seed in range(3)]
    graph = canonical(data[0]) if request.param == "node" else canonical_set(data)
    rows = np.arange(graph.num_nodes if request.param == "node" else 3)
    call, division = bind(build("sage", request.param), graph, request.param), PerEdge()
    return compute_votes(call, graph, division, rows)[0], call, graph, division, rows


def test_where_neighbours_have_groups_of_their_own_all_that_is_cast_is_cast_again(voted_alone):
    votes, call, graph, division, rows = voted_alone
    everything = choose_votes(votes, math.inf, np.random.default_rng(0), per_neighbour=True)
    listed = {(int(v), int(g)) for v, g in zip(votes.owner, votes.group, strict=True)}
    chosen = {(int(v), int(g)) for v, g in everything}
    assert listed <= chosen
    free = set(np.flatnonzero(votes.num_unlisted).tolist())
    assert {v for v, _ in chosen - listed} == free, "one empty group for each target that has one"
    assert len(chosen) == len(listed) + len(free)
    assert not spot_check_pairs(votes, everything, call, graph, division, rows)[0].size
    wrong = replace(votes, vote=(votes.vote + 1) % votes.num_classes)
    assert spot_check_pairs(wrong, everything, call, graph, division, rows)[0].size == votes.stable.sum()


@pytest.mark.parametrize("number", [1, 2, 5, 12, 33])
def test_some_of_them_are_mostly_votes_that_are_cast(voted_alone, number):
    votes, *_ = voted_alone
    listed = {(int(v), int(g)) for v, g in zip(votes.owner, votes.group, strict=True)}
    pairs = choose_votes(votes, number, np.random.default_rng(1), per_neighbour=True)
    number = min(number, len(listed) + int((votes.num_unlisted > 0).sum()))
    assert len(np.unique(pairs, axis=0)) == len(pairs) == number
    assert sum((int(v), int(g)) in listed for v, g in pairs) >= min(len(listed), number - number // 4)


def test_a_few_of_them_are_some_dozens_too(voted_alone):
    votes, _, graph, _, rows = voted_alone
    on_graphs = graph.task == "graph"
    pairs = choose_few_subgraphs(votes, on_graphs, np.random.default_rng(0), per_neighbour=True, num_nodes=len(rows))
    listed = {(int(v), int(g)) for v, g in zip(votes.owner, votes.group, strict=True)}
    assert sum((int(v), int(g)) in listed for v, g in pairs) >= min(24, len(listed))
    few = choose_few_subgraphs(votes, on_graphs, np.random.default_rng(0), per_neighbour=True, num_nodes=10**7)
    assert on_graphs or len(np.unique(few[:, 1])) == 3


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "resgcn"])
@pytest.mark.parametrize("division", [EdgeCentric(2), NodeCentric(2), GatedNodeCentric(2)], ids=str)
def test_of_large_subgraphs_only_the_part_that_matters_is_evaluated(monkeypatch, name, division):
    data = random_data(1, smallest=30, largest=30, density=0.06)
    graph, rows = canonical(data), np.arange(4)
    model = build_model(name, data, hidden_channels=8, num_layers=2, out_channels=3, seed=0).eval()
    call = bind(model, graph, "node")
    call = replace(call, rounding=rounding_of(call, graph, is_known=True))
    assert call.rounding == "float32"
    votes, _ = compute_votes(call, graph, division, rows, tolerance=1e-6)
    everything = choose_votes(votes, math.inf, np.random.default_rng(0))
    sizes = []
    plain = checking.votes_in
    monkeypatch.setattr(checking, "votes_in", lambda *given: sizes.append(given[1].num_nodes) or plain(*given))
    found = []
    for edges_evaluated in (10**6, 0):
        monkeypatch.setattr(checking, "EDGES_EVALUATED", edges_evaluated)
        found.append(spot_check_pairs(votes, everything, call, graph, division, rows))
    whole, part = found
    assert not whole.differing.size
    assert not part.differing.size
    assert part.vote.tolist() == whole.vote.tolist()
    assert sum(sizes[2:]) < sum(sizes[:2])
    wrong = replace(votes, vote=(votes.vote + 1) % votes.num_classes)
    assert spot_check_pairs(wrong, everything, call, graph, division, rows).differing.size


def test_of_many_listed_votes_some_are_chosen(monkeypatch):
    graph = canonical(random_data(0, smallest=8, density=0.4))
    votes, _ = compute_votes(bind(build("sage", "node"), graph, "node"), graph, NodeCentric(4), np.arange(8))
    monkeypatch.setattr(checking, "MOST_LISTED_TARGETS", 2)
    monkeypatch.setattr(checking, "UNLISTED_TARGETS", 1)
    pairs = choose_few_subgraphs(votes, False, np.random.default_rng(0))
    assert 2 <= len(np.unique(pairs[:, 0])) <= 3
