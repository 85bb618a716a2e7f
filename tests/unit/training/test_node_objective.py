"""The fast objective is the sum over T + 1 graphs, in value and gradient, not something like it."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical
from agnncert.training import node_objectives
from agnncert.training.node_objectives import NodeObjective
from tests.support.labelled import assert_same, fit_settings, gradient, labelled_graph, naive_gradient, naive_node_loss

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
DIVISIONS = [ac.EdgeCentric(7), ac.NodeCentric(7), ac.GatedNodeCentric(7)]
OURS = ("gcn", "sage", "gat", "gin")
THEIRS = (GCN, GraphSAGE, GAT, GIN)


def named(division):
    return str(division).replace(", hash=md5, key=u64le", "")


def setting(make, dtype=torch.float64, **kwargs):
    """A model in training mode (there is nothing random in it), the graph, and the nodes to train on."""
    data = labelled_graph(**kwargs)
    data.x = data.x.to(dtype)
    if isinstance(make, str):
        model = ac.build_model(make, data, hidden_channels=8, num_layers=2)
    else:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = make(data.num_features, 8, num_layers=2, out_channels=3)
    graph = canonical(data)
    return model.to(dtype), graph, data.y, data.train_mask.nonzero().view(-1)


def objective(model, graph, y, rows, division, *args, **kwargs):
    call = bind(model.eval(), graph, "node")
    model.train()
    return NodeObjective.of(call, graph, y, rows, division, fit_settings(*args, **kwargs))


def assert_is_the_papers_sum(model, graph, y, rows, division, dtype=torch.float64):
    actual = gradient(model, objective(model, graph, y, rows, division, "paper").backward)
    expected = naive_gradient(model, lambda: naive_node_loss(model, graph, y, rows, division))
    assert_same(actual, expected, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("division", DIVISIONS, ids=named)
@pytest.mark.parametrize("make", [*OURS, *THEIRS], ids=lambda m: m if isinstance(m, str) else f"pyg.{m.__name__}")
def test_value_and_gradient_are_those_of_the_sum_over_all_graphs(make, division, dtype) -> None:
    assert_is_the_papers_sum(*setting(make, dtype), division, dtype)


@pytest.mark.parametrize("division", DIVISIONS, ids=named)
def test_sparse_features_change_nothing(division) -> None:
    model, graph, y, rows = setting("gcn", features=60, sparse=True)
    assert objective(model, graph, y, rows, division).sparse is not None
    assert_is_the_papers_sum(model, graph, y, rows, division)


@pytest.mark.parametrize("division", DIVISIONS, ids=named)
@pytest.mark.parametrize("make", ["gcn", "gat"])
def test_evaluation_in_small_chunks_changes_nothing(make, division, monkeypatch) -> None:
    monkeypatch.setattr(node_objectives, "CHUNK_ROWS", 4)
    case = setting(make)
    assert len(objective(*case, division).terms) > 2 + 3  # the graph, no edges, and chunks
    assert_is_the_papers_sum(*case, division)


@pytest.mark.parametrize("division", DIVISIONS, ids=named)
@pytest.mark.parametrize("make", ["gcn", GCN], ids=["gcn", "pyg.GCN"])
def test_edge_weights_go_with_their_edges(make, division) -> None:
    model, graph, y, rows = setting(make)
    graph = replace(graph, edge_weight=torch.linspace(0.2, 3.0, graph.num_edges, dtype=torch.float64))
    assert_is_the_papers_sum(model, graph, y, rows, division)


def test_self_loops_that_are_kept_are_trained_on() -> None:
    data = labelled_graph()
    data.edge_index = torch.cat([data.edge_index, torch.arange(10).expand(2, -1)], dim=1)
    model = ac.build_model("sage", data, hidden_channels=8, num_layers=2).double()
    division = ac.EdgeCentric(5, self_loops=True)
    graph = canonical(data, keep_self_loops=True)
    assert_is_the_papers_sum(model, graph, data.y, data.train_mask.nonzero().view(-1), division)


def test_features_of_another_type_than_the_model_are_cast() -> None:
    model, graph, y, rows = setting("gcn", torch.float32)
    expected = gradient(model, objective(model, graph, y, rows, ac.EdgeCentric(7)).backward)
    graph = replace(graph, x=graph.x.double())
    assert_same(gradient(model, objective(model, graph, y, rows, ac.EdgeCentric(7)).backward), expected, 1e-6)


class Tied(torch.nn.Module):
    """The first projection is used twice, and once more where no stand-in for the features is left."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(5, 5)
        self.out = torch.nn.Linear(5, 3)

    def forward(self, x, edge_index):
        once = self.conv(x, edge_index).tanh() + self.conv.lin(x)
        return self.out(self.conv(once, edge_index))


def test_weights_that_are_used_in_several_places_collect_all_their_gradients() -> None:
    _, graph, y, rows = setting("gcn")
    torch.manual_seed(0)
    assert_is_the_papers_sum(Tied().double(), graph, y, rows, ac.NodeCentric(7))


@pytest.mark.parametrize("weight", [1.0, 3.0], ids=["equal", "weighted"])
@pytest.mark.parametrize("division", DIVISIONS, ids=named)
def test_the_balanced_objective_averages_each_term_by_itself(division, weight) -> None:
    model, graph, y, rows = setting("gcn")

    def averages():
        with_edge, without, groups = [], [], division.groups(graph)
        for index in range(division.num_groups):
            part = division.subgraph(graph, groups, index)
            logits = model(part.x, part.edge_index)
            # In the edge-centric division an endpoint sees an edge either way it points; the graph is undirected.
            sees = torch.zeros(graph.num_nodes, dtype=torch.bool)
            sees[part.edge_index[1]] = True
            if part.abstain is not None:
                sees = ~part.abstain
            for row in rows.tolist():
                loss = torch.nn.functional.cross_entropy(logits[row : row + 1], y[row : row + 1])
                if sees[row]:
                    with_edge.append(loss)
                elif part.abstain is None:
                    without.append(loss)
        full = torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index)[rows], y[rows])
        no_edge = torch.stack(without).mean() if without else 0
        return full + torch.stack(with_edge).mean() + weight * no_edge

    actual = gradient(model, objective(model, graph, y, rows, division, "balanced", no_edge_weight=weight).backward)
    assert_same(actual, naive_gradient(model, averages), 1e-10)


def test_without_a_division_the_objective_is_the_plain_loss() -> None:
    model, graph, y, rows = setting("gcn")
    actual = gradient(model, objective(model, graph, y, rows, None, "paper", no_edge_weight=9).backward)
    plain = naive_gradient(
        model, lambda: torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index)[rows], y[rows])
    )
    assert_same(actual, plain, 1e-12)


@pytest.mark.parametrize("division", [None, ac.EdgeCentric(7)], ids=str)
def test_balanced_classes_count_the_same_whatever_their_size(division) -> None:
    model, graph, y, rows = setting("gcn")
    rows = torch.cat([(y == 0).nonzero().view(-1)[:6], (y == 1).nonzero().view(-1)[:2]])  # and none of class 2
    weight = torch.tensor([8 / (2 * 6), 8 / (2 * 2), 0], dtype=torch.float64)
    actual = gradient(model, objective(model, graph, y, rows, division, "paper", balance_classes=True).backward)

    def expected():
        if division is not None:
            return naive_node_loss(model, graph, y, rows, division, weight)
        return torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index)[rows], y[rows], weight)

    assert_same(actual, naive_gradient(model, expected), 1e-10)


def test_a_graph_without_edges_can_be_trained_on() -> None:
    model, graph, y, rows = setting("gcn")
    graph = graph.with_edges(torch.arange(0))
    for division in DIVISIONS[:2]:
        assert_is_the_papers_sum(model, graph, y, rows, division)


def test_an_unknown_objective_is_met_with_the_nearest() -> None:
    with pytest.raises(ac.errors.SettingsError, match='did you mean "balanced"'):
        objective(*setting("gcn"), None, "balance")


def test_one_group_per_neighbour_trains_on_one_message_at_a_time() -> None:
    model, graph, y, rows = setting("gcn")
    own = objective(model, graph, y, rows, ac.PerNeighbour(), "balanced")

    def naive():
        alone = model(graph.x[rows], torch.zeros(2, 0, dtype=torch.int64))
        pairs, truth = [], []
        for v in rows.tolist():
            for u in graph.edge_index[0, graph.edge_index[1] == v].tolist():
                pairs.append(model(graph.x[[v, u]], torch.tensor([[1], [0]]))[0])
                truth.append(y[v])
        whole = F.cross_entropy(model(graph.x, graph.edge_index)[rows], y[rows])
        return whole + F.cross_entropy(alone, y[rows]) + F.cross_entropy(torch.stack(pairs), torch.stack(truth))

    assert_same(gradient(model, own.backward), naive_gradient(model, naive), 1e-10)
