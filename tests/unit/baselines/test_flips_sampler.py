import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from agnncert.baselines.bernoulli import stream
from agnncert.baselines.flips import FlipSampler
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert.graphs.graph import canonical, canonical_set
from agnncert.proof.samples import FlipNoise
from agnncert.voting.call import bind

from ...support.small_graphs import WeightedModel, graph_model, node_model, random_graph

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
