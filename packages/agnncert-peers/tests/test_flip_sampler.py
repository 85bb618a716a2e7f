"""Flips: every noisy graph has its probability, and the fast count is that of one forward pass per noisy graph."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from agnncert.engine.adapter import bind
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert_peers.draws import stream
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.flip_sampler import FlipSampler
from agnncert_peers.flippable import Flippable
from agnncert_peers.pairs import Pairs, require_simple
from tests.support.small_graphs import WeightedModel, graph_model, node_model, random_graph


def adjacency(edge_index, num_nodes):
    dense = np.zeros((num_nodes, num_nodes), dtype=int)
    np.add.at(dense, tuple(np.asarray(edge_index)), 1)
    return dense


def noisy_matrices(flippable, flips, copies):
    size = flippable.pairs.num_nodes
    edge_index, _ = flippable.edges(flips, copies)
    union = adjacency(edge_index, size * copies)
    blocks = union.reshape(copies, size, copies, size)
    assert union.sum() == sum(blocks[k, :, k].sum() for k in range(copies))  # nothing between copies
    return np.stack([blocks[k, :, k] for k in range(copies)])


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.05, 0.4), (0.2, 0.2), (0.0, 0.5), (0.3, 0.0)])
def test_edges_are_added_and_deleted_at_the_stated_rates(p_add, p_delete):
    flippable = Flippable(canonical(random_graph(12, 20)), FlipNoise(p_add, p_delete))
    clean, copies = adjacency(flippable.graph.edge_index, 12), 400
    noisy = np.concatenate(
        [noisy_matrices(flippable, flippable.draw(np.random.default_rng(k), 40), 40) for k in range(10)]
    )
    assert (noisy == noisy.transpose(0, 2, 1)).all()
    assert noisy.max() == 1
    assert (noisy[:, range(12), range(12)] == 0).all()
    upper = np.triu(np.ones((12, 12), dtype=bool), 1)
    for where, p in ((upper & (clean == 0), p_add), (upper & (clean == 1), p_delete)):
        flipped = (noisy != clean)[:, where]
        assert abs(flipped.mean() - p) <= 4 * np.sqrt(p * (1 - p) / (copies * where.sum()))
        assert (np.abs(flipped.mean(axis=0) - p) <= 5 * np.sqrt(p * (1 - p) / copies)).all()


def test_every_noisy_version_of_a_small_graph_has_its_probability():
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    flippable, draws = Flippable(canonical(data), FlipNoise(0.2, 0.4)), 20_000
    flips = flippable.draw(np.random.default_rng(0), draws)
    state = np.zeros((draws, 3), dtype=int)
    state[flips.deleted[0], 0] = 1
    added, low, high = flips.added
    assert not ((low == 0) & (high == 1)).any()  # joined already
    state[added, low + high - 1] = 1
    seen = np.bincount(state @ [1, 2, 4], minlength=8)
    for outcome, count in enumerate(seen):
        bits = [outcome >> k & 1 for k in range(3)]
        exact = np.prod([p if bit else 1 - p for p, bit in zip((0.4, 0.2, 0.2), bits, strict=True)])
        assert abs(count - draws * exact) <= 4 * np.sqrt(draws * exact * (1 - exact))


def test_graphs_of_a_set_are_never_joined_to_each_other():
    graphs = [random_graph(n, n, seed=n) for n in (3, 1, 6, 2)]
    joined = canonical_set(graphs)
    flippable = Flippable(joined, FlipNoise(0.5, 0.2))
    assert flippable.num_places == 3 + 0 + 15 + 1
    _, low, high = flippable.draw(np.random.default_rng(0), 500).added
    batch = joined.batch.numpy()
    assert (batch[low] == batch[high]).all()
    clean = adjacency(joined.edge_index, 12)
    free = np.triu((batch[:, None] == batch) & (clean == 0), 1)
    assert len(np.unique(low * 12 + high)) == free.sum()


def test_row_noise_flips_pairs_with_the_target_only_and_at_the_stated_rate():
    flippable = Flippable(canonical(random_graph(15, 30)), FlipNoise(0.2, 0.3, where="target row"))
    rows, samples = np.array([4, 11]), 3000
    flips = flippable.draw_rows(np.random.default_rng(0), samples, rows)
    clean = adjacency(flippable.graph.edge_index, 15)
    copy, low, high = flips.added
    target = rows[copy % 2]
    assert ((low == target) ^ (high == target)).all()
    assert (clean[low, high] == 0).all()
    gone_copy, pair = flips.deleted
    ends = np.stack([flippable.pairs.low[pair], flippable.pairs.high[pair]])
    assert (ends == rows[gone_copy % 2]).any(axis=0).all()
    for index, row in enumerate(rows):
        degree = clean[row].sum()
        for is_flip, number, p in ((target == row, 14 - degree, 0.2), (gone_copy % 2 == index, degree, 0.3)):
            total = samples * number
            assert abs(is_flip.sum() - total * p) <= 4 * np.sqrt(total * p * (1 - p))


def test_noisy_edges_are_in_the_order_of_a_canonical_graph():
    data = random_graph(12, 20)
    flippable = Flippable(canonical(data), FlipNoise(0.2, 0.3))
    edge_index, arc = flippable.edges(flippable.draw(np.random.default_rng(0), 1), 1)
    order = np.random.default_rng(1).permutation(edge_index.shape[1])
    shuffled = Data(x=data.x, edge_index=torch.from_numpy(edge_index[:, order]), node_id=data.node_id)
    assert (canonical(shuffled).edge_index.numpy() == edge_index).all()
    old = arc >= 0
    assert (flippable.graph.edge_index.numpy()[:, arc[old]] == edge_index[:, old]).all()


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.02, 0.6), (0.3, 0.0), (0.0, 0.3)])
def test_feature_entries_flip_at_the_stated_rates(p_add, p_delete):
    graph = canonical(random_graph(20, 10, features=7, binary=True))
    noise = FlipNoise(p_add_feature=p_add, p_delete_feature=p_delete, num_features=7)
    copies = 300
    flippable = Flippable(graph, noise)
    noisy = flippable.features(flippable.draw(np.random.default_rng(0), copies), copies, torch.float64)
    flipped = (noisy.view(copies, 20, 7) != graph.x).numpy()
    assert set(noisy.unique().tolist()) <= {0.0, 1.0}
    for where, p in (((graph.x == 0).numpy(), p_add), ((graph.x == 1).numpy(), p_delete)):
        rate = flipped[:, where].mean()
        assert abs(rate - p) <= 4 * np.sqrt(p * (1 - p) / (copies * where.sum()))
    assert (graph.x == canonical(random_graph(20, 10, features=7, binary=True)).x).all()  # the input is untouched


def test_parts_of_the_flips_are_those_of_the_copies():
    flippable = Flippable(canonical(random_graph(12, 20)), FlipNoise(0.2, 0.3))
    flips = flippable.draw(np.random.default_rng(0), 9)
    whole = noisy_matrices(flippable, flips, 9)
    assert (noisy_matrices(flippable, flips.part(3, 7), 4) == whole[3:7]).all()


def test_features_other_than_zero_and_one_are_refused():
    noise = FlipNoise(p_add_feature=0.1, p_delete_feature=0.1, num_features=5)
    with pytest.raises(GraphError, match="row 0, column 0"):
        Flippable(canonical(random_graph(5, 5)), noise)


@pytest.mark.parametrize("edges", [[[0, 1, 2], [1, 0, 0]], [[0, 1, 0, 1], [1, 0, 1, 0]]])
def test_graphs_that_are_no_symmetric_matrix_are_refused(edges):
    graph = canonical(Data(x=torch.ones(3, 1), edge_index=torch.tensor(edges)))
    with pytest.raises(GraphError, match="ToUndirected"):
        require_simple(graph, Pairs.of(graph), "RS")


ROWS = np.array([2, 9, 5])


def node_sampler(model, data, noise, rows=ROWS, naive=False):
    graph = canonical(data)
    return FlipSampler(bind(model, graph, "node"), graph, rows, noise, naive)


def graph_sampler(model, graphs, noise, naive=False):
    joined = canonical_set(graphs)
    return FlipSampler(bind(model, joined, "graph"), joined, np.arange(len(graphs)), noise, naive)


def flipped(data, flippable, flips, copy):
    """One noisy graph, built entry by entry from sets."""
    edges = {(u, v) for u, v in flippable.graph.edge_index.T.tolist()}
    for pair in flips.deleted[1][flips.deleted[0] == copy]:
        u, v = int(flippable.pairs.low[pair]), int(flippable.pairs.high[pair])
        edges -= {(u, v), (v, u)}
    for u, v in flips.added[1:, flips.added[0] == copy].T.tolist():
        assert (u, v) not in edges
        edges |= {(u, v), (v, u)}
    x = data.x.clone()
    for entry in flips.entries[1][flips.entries[0] == copy]:
        x.view(-1)[entry] = 1 - x.view(-1)[entry]
    return Data(x=x, edge_index=torch.tensor(sorted(edges), dtype=torch.int64).reshape(-1, 2).T, node_id=data.node_id)


NODE_NOISES = [
    FlipNoise(0.2, 0.2),
    FlipNoise(0.01, 0.4),
    FlipNoise(0.0, 0.5),
    FlipNoise(0.05, 0.3, 0.1, 0.4, num_features=5),
    FlipNoise(0.0, 0.0, 0.1, 0.4, num_features=5),
]


@pytest.mark.parametrize("noise", NODE_NOISES, ids=repr)
@pytest.mark.parametrize("conv", [GCNConv, SAGEConv, GATConv], ids=lambda c: c.__name__)
def test_nodes_vote_as_the_plain_model_on_each_noisy_graph(noise, conv):
    data, model, samples = random_graph(14, 22, binary=True), node_model(conv), 25
    sampler = node_sampler(model, data, noise)
    flips = sampler._flippable.draw(stream(0, 1, 0), sampler.batch)
    expected = np.zeros((3, 3), dtype=int)
    for copy in range(samples):
        noisy = canonical(flipped(data, sampler._flippable, flips, copy))
        with torch.no_grad():
            label = model(noisy.x, noisy.edge_index).argmax(1).numpy()
        expected[np.arange(3), label[ROWS]] += 1
    assert (sampler.counts(stream(0, 1, 0), 0, samples) == expected).all()
    assert (node_sampler(model, data, noise, naive=True).counts(stream(0, 1, 0), 0, samples) == expected).all()


def test_row_noise_votes_as_the_plain_model_with_each_targets_row_flipped():
    data, model, samples = random_graph(14, 22), node_model(), 20
    sampler = node_sampler(model, data, FlipNoise(0.2, 0.2, where="target row"))
    flips = sampler._flippable.draw_rows(stream(0, 1, 0), sampler.batch, ROWS)
    expected = np.zeros((3, 3), dtype=int)
    for copy in range(3 * samples):
        noisy = canonical(flipped(data, sampler._flippable, flips, copy))
        with torch.no_grad():
            label = model(noisy.x, noisy.edge_index).argmax(1).numpy()
        expected[copy % 3, label[ROWS[copy % 3]]] += 1
    assert (sampler.counts(stream(0, 1, 0), 0, samples) == expected).all()


@pytest.mark.parametrize("noise", [FlipNoise(0.1, 0.3), FlipNoise(0.1, 0.3, 0.1, 0.4, num_features=5)], ids=repr)
def test_graphs_vote_together_as_one_by_one(noise):
    graphs = [random_graph(n, n + 2, seed=n, binary=True) for n in (4, 7, 5, 1)]
    model = graph_model()
    together, alone = (
        graph_sampler(model, graphs, noise, naive).counts(stream(0, 1, 0), 0, 30) for naive in (False, True)
    )
    assert (together == alone).all()
    assert (together.sum(axis=1) == 30).all()


def test_a_part_of_a_batch_counts_the_same_samples():
    sampler = node_sampler(node_model(), random_graph(14, 22), FlipNoise(0.1, 0.3))
    whole = sampler.counts(stream(2, 1, 0), 0, 40)
    assert (sampler.counts(stream(2, 1, 0), 0, 13) + sampler.counts(stream(2, 1, 0), 13, 40) == whole).all()


def test_edge_values_are_refused_where_noise_adds_edges_and_kept_where_it_only_deletes():
    data = random_graph(14, 22)
    data.edge_weight = torch.rand(data.num_edges).double()
    model = WeightedModel(5, 3).double().eval()
    with pytest.raises(GraphError, match="edge_weight"):
        node_sampler(model, data, FlipNoise(0.1, 0.3))
    together, alone = (
        node_sampler(model, data, FlipNoise(0.0, 0.3), naive=n).counts(stream(0, 1, 0), 0, 20) for n in (False, True)
    )
    assert (together == alone).all()


def test_row_noise_is_refused_for_graphs():
    with pytest.raises(SettingsError, match="node classification"):
        graph_sampler(graph_model(), [random_graph(4, 4)], FlipNoise(0.2, 0.2, where="target row"))


def test_noise_that_would_add_too_many_edges_is_refused_before_anything_is_drawn():
    data = Data(x=torch.ones(40_000, 5).double(), edge_index=torch.empty(2, 0, dtype=torch.int64))
    with pytest.raises(SettingsError, match="too many"):
        node_sampler(node_model(), data, FlipNoise(0.2, 0.2))


def test_directed_graphs_are_refused():
    data = Data(x=torch.ones(3, 5).double(), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(GraphError, match="ToUndirected"):
        node_sampler(node_model(), data, FlipNoise(0.2, 0.2), rows=np.array([0]))


def test_logits_that_are_not_finite_are_refused():
    class Dividing(torch.nn.Module):
        def forward(self, x, edge_index):
            degree = torch.bincount(edge_index[1], minlength=x.size(0))
            return x[:, :3] / degree[:, None]

    with pytest.raises(ModelContractError, match="not finite"):
        node_sampler(Dividing(), random_graph(14, 22), FlipNoise(0.0, 0.9)).counts(stream(0, 1, 0), 0, 20)
