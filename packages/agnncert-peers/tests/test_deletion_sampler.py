"""Deletions: every set of surviving edges has its probability, and the fast count is that of full forward passes."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.deletion_sampler import DeletionSampler, draw_survivors
from agnncert_peers.draws import stream
from agnncert_peers.pairs import Pairs
from tests.support.small_graphs import WeightedModel, node_model, random_graph


@pytest.fixture
def graph():
    return random_graph(30, 60)


@pytest.fixture(params=[GCNConv, SAGEConv, GATConv], ids=lambda conv: conv.__name__)
def model(request):
    return node_model(request.param)


def sampler_of(model, data, noise, rows=None, naive=False):
    graph = canonical(data)
    rows = np.arange(graph.num_nodes) if rows is None else rows
    return DeletionSampler(bind(model, graph, "node"), graph, rows, noise, naive)


@pytest.mark.parametrize(("p_edge", "p_node"), [(0.8, 0.9), (0.5, 0.3), (0.0, 0.5), (0.6, 0.0)])
def test_the_fast_sampler_votes_as_full_forward_passes_on_the_same_coins(model, graph, p_edge, p_node):
    noise = DeletionNoise(p_edge, p_node)
    fast, naive = sampler_of(model, graph, noise), sampler_of(model, graph, noise, naive=True)
    for batch in range(2):
        ours, theirs = (s.counts(stream(0, 1, batch), 0, 60) for s in (fast, naive))
        assert (ours == theirs).all()
        assert (ours.sum(axis=1) == 60).all()


def test_full_forward_passes_are_those_of_the_plain_model(graph):
    model, noise = node_model(), DeletionNoise(0.5, 0.3)
    sampler, whole = sampler_of(model, graph, noise), canonical(graph)
    expected = np.zeros((30, 3), dtype=int)
    sample, pair = sampler.draw(stream(0, 1, 0))
    pairs = Pairs.of(whole)
    for index in range(40):
        kept = {(int(pairs.low[p]), int(pairs.high[p])) for p in pair[sample == index]}
        mask = [(min(u, v), max(u, v)) in kept for u, v in whole.edge_index.T.tolist()]
        with torch.no_grad():
            label = model(whole.x, whole.edge_index[:, torch.tensor(mask)]).argmax(1)
        expected[np.arange(30), label.numpy()] += 1
    assert (sampler.counts(stream(0, 1, 0), 0, 40) == expected).all()


def test_some_targets_get_the_same_counts_as_among_all(graph):
    model, noise, rows = node_model(), DeletionNoise(0.5, 0.3), np.array([17, 3, 8])
    everyone = sampler_of(model, graph, noise).counts(stream(1, 1, 0), 0, 100)
    assert (sampler_of(model, graph, noise, rows).counts(stream(1, 1, 0), 0, 100) == everyone[rows]).all()


def test_a_part_of_a_batch_counts_the_same_samples(graph):
    sampler = sampler_of(node_model(), graph, DeletionNoise(0.5, 0.3))
    whole = sampler.counts(stream(2, 1, 0), 0, 50)
    parts = [sampler.counts(stream(2, 1, 0), *span) for span in ((0, 7), (7, 30), (30, 50))]
    assert (sum(parts) == whole).all()


def test_directed_edges_and_several_copies_share_the_coin_of_their_pair():
    data = Data(x=torch.randn(4, 5).double(), edge_index=torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 0, 1, 2, 2]]))
    pairs = Pairs.of(canonical(data))
    assert len(pairs) == 3
    assert pairs.arc_count.tolist() == [3, 1, 2]
    model, noise = node_model(), DeletionNoise(0.3, 0.2)
    ours, theirs = (sampler_of(model, data, noise, naive=n).counts(stream(0, 1, 0), 0, 80) for n in (False, True))
    assert (ours == theirs).all()


def test_edge_weights_stay_with_their_edges(graph):
    torch.manual_seed(0)
    graph.edge_weight = torch.rand(graph.num_edges).double()
    model, noise = WeightedModel(5, 3).double().eval(), DeletionNoise(0.4, 0.3)
    ours, theirs = (sampler_of(model, graph, noise, naive=n).counts(stream(0, 1, 0), 0, 60) for n in (False, True))
    assert (ours == theirs).all()
    graph.edge_weight = graph.edge_weight.flip(0)
    assert (sampler_of(model, graph, noise).counts(stream(0, 1, 0), 0, 60) != ours).any()


def test_a_graph_without_edges_votes_as_without_edges():
    data = Data(x=torch.randn(4, 5).double(), edge_index=torch.empty(2, 0, dtype=torch.int64))
    counts = sampler_of(node_model(), data, DeletionNoise(0.5, 0.5)).counts(stream(0, 1, 0), 0, 9)
    assert sorted(counts.max(axis=1).tolist()) == [9] * 4


@pytest.mark.parametrize(("p_edge", "p_node"), [(0.8, 0.9), (0.5, 0.3), (0.0, 0.5), (0.6, 0.0)])
def test_every_set_of_surviving_edges_has_its_enumerated_probability(p_edge, p_node):
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor(edges + [e[::-1] for e in edges]).T)
    pairs, draws = Pairs.of(canonical(data)), 40_000
    sample, pair = draw_survivors(np.random.default_rng(0), pairs, DeletionNoise(p_edge, p_node), draws)
    seen = np.bincount(np.bincount(sample, weights=2.0**pair, minlength=draws).astype(int), minlength=16)
    exact = np.zeros(16)
    for alive in range(16):
        possible = [k for k in range(4) if alive >> pairs.low[k] & 1 and alive >> pairs.high[k] & 1]
        p_alive = (1 - p_node) ** alive.bit_count() * p_node ** (4 - alive.bit_count())
        for size in range(len(possible) + 1):
            for kept in combinations(possible, size):
                p_coins = (1 - p_edge) ** size * p_edge ** (len(possible) - size)
                exact[sum(1 << k for k in kept)] += p_alive * p_coins
    assert exact.sum() == pytest.approx(1)
    assert (np.abs(seen - draws * exact) <= 4 * np.sqrt(draws * exact * (1 - exact)) + 1e-9).all()


def test_an_injected_node_is_isolated_as_often_as_the_formula_says():
    star = Data(x=torch.ones(6, 1), edge_index=torch.tensor([[5, 5, 5, 5, 5], [0, 1, 2, 3, 4]]))
    noise, draws = DeletionNoise(0.8, 0.9), 100_000
    sample, _ = draw_survivors(np.random.default_rng(3), Pairs.of(canonical(star)), noise, draws)
    exact = noise.isolation(1, 5)
    assert exact == pytest.approx(0.9904, abs=5e-5)
    isolated = 1 - len(np.unique(sample)) / draws
    assert abs(isolated - exact) <= 4 * np.sqrt(exact * (1 - exact) / draws)


def test_survivors_of_a_larger_graph_come_at_the_stated_rate():
    data = random_graph(300, 900, seed=4)
    pairs, noise, draws = Pairs.of(canonical(data)), DeletionNoise(0.7, 0.6), 2000
    sample, pair = draw_survivors(np.random.default_rng(5), pairs, noise, draws)
    rate, expected = np.bincount(pair, minlength=len(pairs)) / draws, 0.3 * 0.4**2
    assert (np.abs(rate - expected) <= 5 * np.sqrt(expected / draws)).all()
    assert (np.diff(sample) >= 0).all()
