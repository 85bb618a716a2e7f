"""The exact control tries every change of one or two edges, and nothing that it leaves out matters."""

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv

import agnncert as ac
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert_peers.exact import exact_robustness
from experiments.benchmarks.exact_gcn import TwoLayers
from tests.support.small_graphs import random_graph


class Network(torch.nn.Module):
    """Two random layers, of one kind or another."""

    def __init__(self, width: int, layer: type[torch.nn.Module] = GCNConv, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = layer(width, 8), layer(8, 3)
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.8)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@torch.no_grad()
def robust_by_hand(model, data, size):
    """Whether each node keeps its label in every graph with at most ``size`` pairs joined or separated."""
    n = data.num_nodes
    pairs = list(itertools.combinations(range(n), 2))
    joined = {tuple(sorted(edge)) for edge in data.edge_index.t().tolist()}
    clean = model(data.x, data.edge_index).argmax(1)
    robust = torch.ones(n, dtype=torch.bool)
    changes = (flips for count in range(1, size + 1) for flips in itertools.combinations(pairs, count))
    while some := list(itertools.islice(changes, 200)):  # graphs side by side
        edges = [(u + k * n, v + k * n) for k, flips in enumerate(some) for u, v in joined.symmetric_difference(flips)]
        ends = torch.tensor(sorted(edges), dtype=torch.int64).view(-1, 2).t()
        logits = model(data.x.repeat(len(some), 1), torch.cat([ends, ends.flip(0)], dim=1))
        robust &= (logits.argmax(1).view(-1, n) == clean).all(0)
    return robust.tolist()


@cache
def searched(size, nodes, layer, seed):
    """A graph, a model and what was found; two tests ask about the same."""
    data = random_graph(nodes, nodes, seed=seed)
    model = Network(data.x.size(1), layer, seed).to(data.x.dtype).eval()
    return data, model, exact_robustness(model, data, size=size)


@pytest.mark.parametrize(
    ("size", "nodes", "layer"), [(1, 40, GCNConv), (1, 40, SAGEConv), (2, 9, GCNConv), (2, 9, SAGEConv)]
)
def test_outcomes_are_those_of_trying_everything_on_the_whole_graph(size, nodes, layer):
    found = []
    for seed in range(2):
        data, model, result = searched(size, nodes, layer, seed)
        assert [outcome == "robust" for outcome in result.outcome] == robust_by_hand(model, data, size)
        found += result.outcome
    assert {"robust", "broken"} == set(found)


def test_the_sentence_says_what_was_found():
    data = random_graph(20, 20)
    data.y = torch.arange(20) % 3
    model = Network(data.x.size(1)).to(data.x.dtype).eval()
    result = exact_robustness(model, data, [3, 5, 7])
    share = np.mean([a == "robust" and b for a, b in zip(result.outcome, result.correct, strict=True)])
    assert str(result) == (
        f"undefended: correct and exactly robust against 1 edge added or deleted for {share:.1%} of 3 targets"
    )
    few = exact_robustness(model, data, size=2, limit=30)
    assert "undecided" in few.outcome
    assert "exactly robust against 2 edges added or deleted for between" in str(few)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    data = random_graph(20, 20)
    model = Network(data.x.size(1)).to(data.x.dtype).eval()
    file = tmp_path / "outcomes.json"

    def stop(step):
        if step.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exact_robustness(model, data, checkpoint=file, progress=stop)
    stored = file.read_text()
    assert stored.count("robust") + stored.count("broken") == 3
    whole = exact_robustness(model, data, checkpoint=file)
    assert whole.outcome == exact_robustness(model, data).outcome
    with pytest.raises(SettingsError, match="of another run: size differ"):
        exact_robustness(model, data, size=2, checkpoint=file)
    file.write_text("[]")
    with pytest.raises(SettingsError, match="no outcomes"):
        exact_robustness(model, data, checkpoint=file)


class Far(Network):
    """Looks farther than its two layers tell."""

    def forward(self, x, edge_index):
        return super().forward(x - x.mean(0), edge_index)


class NoEdge(torch.nn.Module):
    """Has no layer that passes messages."""

    def forward(self, x, edge_index):
        return x


def test_what_cannot_be_decided_exactly_is_refused():
    data = random_graph(30, 40)
    model = Network(data.x.size(1)).to(data.x.dtype).eval()
    with pytest.raises(ModelContractError, match="more than what is 2 hops away"):
        exact_robustness(Far(data.x.size(1)).to(data.x.dtype).eval(), data)
    with pytest.raises(ModelContractError, match="more than what is 1 hops away"):
        exact_robustness(model, data, hops=1)
    with pytest.raises(ModelContractError, match="training mode"):
        exact_robustness(Network(data.x.size(1)).train(), data)
    with pytest.raises(SettingsError, match="1 or 2 edges"):
        exact_robustness(model, data, size=3)
    with pytest.raises(SettingsError, match="target nodes of one graph"):
        exact_robustness(model, [data])
    with pytest.raises(SettingsError, match="how many hops"):
        exact_robustness(NoEdge().eval(), data)
    one_way = data.clone()
    one_way.edge_index = data.edge_index[:, 1:]
    with pytest.raises(GraphError, match="one direction"):
        exact_robustness(model, one_way)


def test_a_robust_label_survives_the_attacks_of_the_library():
    data = random_graph(30, 40)
    model = Network(data.x.size(1)).to(data.x.dtype).eval()
    outcome = np.array(exact_robustness(model, data).outcome)
    for budget in (ac.Budget(add_edges=1), ac.Budget(delete_edges=1)):
        fallen = ac.attack(model, data, ac.EdgeCentric(1), budget=budget, kind=["greedy", "random"]).succeeded
        assert not (fallen & (outcome == "robust")).any()


@pytest.mark.parametrize(("size", "nodes"), [(1, 40), (2, 9)])
def test_the_formula_of_a_gcn_finds_what_calls_of_the_model_find(size, nodes):
    found = []
    for seed in range(3):
        data, model, result = searched(size, nodes, GCNConv, seed)
        layers = (model.first.lin.weight, model.first.bias, model.second.lin.weight, model.second.bias)
        scan = TwoLayers(data.x.numpy(), data.edge_index.numpy(), tuple(one.detach().numpy() for one in layers))
        with torch.no_grad():
            logits = model(data.x, data.edge_index).numpy()
        np.testing.assert_allclose([scan.logits(node) for node in range(nodes)], logits, atol=1e-9)
        outcomes = [scan.outcome(node, int(logits[node].argmax()), size, 10**6) for node in range(nodes)]
        assert outcomes == list(result.outcome)
        found += outcomes
    assert {"robust", "broken"} <= set(found)


def test_logits_by_the_formula_are_those_of_the_model_after_every_change():
    data = random_graph(12, 14, seed=3)
    data.x = data.x.double()
    model = Network(data.x.size(1), GCNConv, 3).double().eval()
    layers = (model.first.lin.weight, model.first.bias, model.second.lin.weight, model.second.bias)
    scan = TwoLayers(data.x.numpy(), data.edge_index.numpy(), tuple(one.detach().numpy() for one in layers))
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    joined = {tuple(sorted(edge)) for edge in data.edge_index.t().tolist()}
    expected = []
    for pair in pairs.tolist():
        ends = torch.tensor(sorted(joined ^ {tuple(pair)}), dtype=torch.int64).view(-1, 2).t()
        with torch.no_grad():
            expected.append(model(data.x, torch.cat([ends, ends.flip(0)], dim=1)).numpy())
    for target in range(12):
        np.testing.assert_allclose(scan.after(target, pairs), np.stack(expected)[:, target], atol=1e-9)
