"""Node classifiers on GNNCert's divisions: a few subgraphs per step, which stand for all."""

import pytest
import torch

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical
from agnncert.training.node_objectives import SampledNodeObjective
from agnncert_peers.gnncert import GNNCertE, GNNCertEN
from tests.support.labelled import (
    ThreeMethods,
    assert_same,
    fit_settings,
    gradient,
    labelled_graph,
    labelled_graphs,
    naive_gradient,
    naive_node_loss,
)

DIVISIONS = [GNNCertE(6), GNNCertEN(3, 2)]


def setting(weighted=False):
    data = labelled_graph()
    if weighted:
        data.edge_weight = torch.linspace(0.2, 3.0, data.num_edges, dtype=torch.float64)
    model = ac.build_model("gcn", data, hidden_channels=8, num_layers=2).double()
    graph = canonical(data)
    return model, bind(model, graph, "node"), graph, data.y, data.train_mask.nonzero().view(-1)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "EN"])
def test_all_subgraphs_together_are_the_papers_sum(division) -> None:
    model, call, graph, y, rows = setting(weighted=True)
    drawn = SampledNodeObjective.of(call, graph, y, rows, division, fit_settings("paper", groups_per_step=6))
    expected = naive_gradient(model, lambda: naive_node_loss(model, graph, y, rows, division))
    assert_same(gradient(model, drawn.backward), expected, 1e-10)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "EN"])
def test_drawn_subgraphs_stand_for_all_on_average(division, monkeypatch) -> None:
    model, call, graph, y, rows = setting()
    drawn = SampledNodeObjective.of(call, graph, y, rows, division, fit_settings("paper", groups_per_step=2))
    actual = []
    for group in range(6):  # each pair of neighbours once, so each group equally often
        monkeypatch.setattr(torch, "randperm", lambda n, group=group: (torch.arange(n) + group) % n)
        actual.append(gradient(model, drawn.backward))
    values, grads = zip(*actual, strict=True)
    mean = sum(values) / 6, [sum(g) / 6 for g in zip(*grads, strict=True)]
    assert len({round(value, 9) for value in values}) > 1
    expected = naive_gradient(model, lambda: naive_node_loss(model, graph, y, rows, division))
    assert_same(mean, expected, 1e-10)


def test_the_balanced_objective_averages_over_subgraphs() -> None:
    model, call, graph, y, rows = setting()
    division = DIVISIONS[1]
    drawn = SampledNodeObjective.of(call, graph, y, rows, division, fit_settings(groups_per_step=6))

    def expected():
        groups = division.groups(graph)
        loss = torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index)[rows], y[rows])
        for index in range(6):
            part = division.subgraph(graph, groups, index)
            here = torch.nn.functional.cross_entropy(model(part.x, part.edge_index)[rows], y[rows])
            loss = loss + here / 6
        return loss

    assert_same(gradient(model, drawn.backward), naive_gradient(model, expected), 1e-10)


def test_a_new_draw_is_made_in_every_step() -> None:
    model, call, graph, y, rows = setting()
    drawn = SampledNodeObjective.of(call, graph, y, rows, DIVISIONS[0], fit_settings(groups_per_step=1))
    torch.manual_seed(0)
    assert len({round(gradient(model, drawn.backward)[0], 9) for _ in range(10)}) > 1


def test_fit_learns_from_a_division_that_offers_only_subgraphs() -> None:
    data = labelled_graph(60, dtype=torch.float32)
    model = ac.build_model("gcn", data, hidden_channels=16, num_layers=2)
    ac.fit(model, data, GNNCertE(12), epochs=30, groups_per_step=3)
    cert = ac.certify(model, data, GNNCertE(12), targets=data.test_mask)
    assert cert.certified_accuracy(data.y) > 0.7
    assert model.training_record["score"] > 0.7


@pytest.mark.parametrize("make", [labelled_graph, labelled_graphs])
def test_a_division_of_ones_own_is_trained_on_its_subgraphs(make) -> None:
    data = make()
    weights = []
    for division in (ThreeMethods(GNNCertE(5)), GNNCertE(5), None):
        model = ac.build_model("gcn", data, hidden_channels=8, seed=0)
        ac.fit(model, data, division, epochs=3, seed=0)
        weights.append(torch.cat([value.reshape(-1).double() for value in model.state_dict().values()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
