"""The objective of a graph classifier, batch by batch, against one subgraph after the other."""

from itertools import chain

import pytest
import torch

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical_set
from agnncert.graphs.graph import one_graph
from agnncert.training.graph_objectives import GraphObjective, SampledGraphObjective
from agnncert.training.losses import class_weights
from tests.support.labelled import (
    ThreeMethods,
    assert_same,
    fit_settings,
    gradient,
    labelled_graphs,
    naive_gradient,
    naive_graph_losses,
)

DIVISIONS = [ac.EdgeCentric(4), ac.NodeCentric(4)]
BATCH = torch.tensor([0, 2, 3, 5, 8])  # among them the graph without edges and the one with a single node


def setting(name="gcn", dtype=torch.float64, weighted=False, **model):
    graphs = labelled_graphs()
    for graph in graphs:
        graph.x = graph.x.to(dtype)
        if weighted:
            graph.edge_weight = torch.linspace(0.2, 3.0, graph.num_edges, dtype=dtype)
    model = ac.build_model(name, graphs, hidden_channels=8, num_layers=2, **model).to(dtype)
    joined = canonical_set(graphs)
    return model, bind(model, joined, "graph"), joined, graphs.y


def naive(model, joined, y, division, combine):
    losses = [naive_graph_losses(model, joined, y, division, k) for k in BATCH.tolist()]
    return sum(combine(*pair) for pair in losses) / len(BATCH)


def papers_sum(whole, parts):
    return whole + sum(parts)


def balanced(whole, parts):
    return whole + sum(parts) / max(1, len(parts))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "N"])
@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gin"])
def test_a_batch_costs_what_its_graphs_and_subgraphs_cost_one_by_one(name, division, dtype) -> None:
    model, call, joined, y = setting(name, dtype)
    actual = gradient(
        model, lambda: GraphObjective.of(call, joined, y, division, fit_settings("paper")).backward(BATCH)
    )
    expected = naive_gradient(model, lambda: naive(model, joined, y, division, papers_sum))
    assert_same(actual, expected, 1e-5 if dtype == torch.float32 else 1e-10)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "N"])
@pytest.mark.parametrize("readout", ["sum", "max"])
def test_edge_weights_and_readouts_are_those_of_each_subgraph(readout, division) -> None:
    model, call, joined, y = setting(weighted=True, readout=readout)
    actual = gradient(
        model, lambda: GraphObjective.of(call, joined, y, division, fit_settings("paper")).backward(BATCH)
    )
    assert_same(actual, naive_gradient(model, lambda: naive(model, joined, y, division, papers_sum)), 1e-10)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "N"])
def test_the_balanced_objective_averages_over_the_subgraphs_of_each_graph(division) -> None:
    model, call, joined, y = setting()
    actual = gradient(model, lambda: GraphObjective.of(call, joined, y, division, fit_settings()).backward(BATCH))
    assert_same(actual, naive_gradient(model, lambda: naive(model, joined, y, division, balanced)), 1e-10)


def test_without_a_division_only_whole_graphs_count() -> None:
    model, call, joined, y = setting()
    actual = gradient(model, lambda: GraphObjective.of(call, joined, y, None, fit_settings()).backward(BATCH))
    expected = naive_gradient(model, lambda: naive(model, joined, y, DIVISIONS[0], lambda whole, _: whole))
    assert_same(actual, expected, 1e-10)


def test_balanced_classes_weigh_every_graph_by_its_class() -> None:
    model, call, joined, y = setting()
    y = torch.tensor([0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0])
    actual = gradient(
        model, lambda: GraphObjective.of(call, joined, y, None, fit_settings(balance_classes=True)).backward(BATCH)
    )

    def expected():
        weight = torch.tensor([12 / (2 * 9), 12 / (2 * 3)], dtype=torch.float64)
        losses = [naive_graph_losses(model, joined, y, DIVISIONS[0], k)[0] for k in BATCH.tolist()]
        return sum(weight[y[k]] * loss for k, loss in zip(BATCH, losses, strict=True)) / len(BATCH)

    assert_same(actual, naive_gradient(model, expected), 1e-10)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "N"])
@pytest.mark.parametrize("make", [GraphObjective, SampledGraphObjective])
def test_drawn_groups_stand_for_all_on_average(make, division, monkeypatch) -> None:
    model, call, joined, y = setting()
    own = division if make is GraphObjective else ThreeMethods(division)
    drawn = make.of(call, joined, y, own, fit_settings("paper", groups_per_step=1))
    actual = []
    for group in range(division.num_groups):  # every draw is equally likely
        monkeypatch.setattr(torch, "randperm", lambda n, group=group: (torch.arange(n) + group) % n)
        actual.append(gradient(model, lambda: drawn.backward(BATCH)))
    values, grads = zip(*actual, strict=True)
    mean = sum(values) / len(values), [sum(g) / len(values) for g in zip(*grads, strict=True)]
    assert len({round(value, 9) for value in values}) > 1
    assert_same(mean, naive_gradient(model, lambda: naive(model, joined, y, division, papers_sum)), 1e-10)


@pytest.mark.parametrize("division", DIVISIONS, ids=["E", "N"])
@pytest.mark.parametrize("make", [GraphObjective, SampledGraphObjective])
def test_the_vote_is_trained_as_a_whole_and_graphs_without_a_vote_count_nothing(make, division) -> None:
    model, call, joined, y = setting()
    own = division if make is GraphObjective else ThreeMethods(division)
    terms = make.of(call, joined, y, own, fit_settings("vote", balance_classes=True, groups_per_step=100))

    def expected():
        weight = class_weights(y, call, fit_settings(balance_classes=True))
        total = 0
        for k in BATCH.tolist():
            graph = one_graph(joined, k)
            parts = [division.subgraph(graph, division.groups(graph), i) for i in range(division.num_groups)]
            shares = [
                model(part.x, part.edge_index, torch.zeros(part.x.size(0), dtype=torch.int64)).softmax(1)
                for part in parts
                if part.x.size(0)
            ]
            if shares:
                mean = 10 * sum(shares) / len(shares)
                total = total + weight[y[k]] * (mean.exp().sum().log() - mean[0, y[k]])
        return total / len(BATCH)

    assert_same(gradient(model, lambda: terms.backward(BATCH)), naive_gradient(model, expected), 1e-10)


def test_the_vote_without_a_division_is_the_plain_loss() -> None:
    model, call, joined, y = setting()
    plain, voting_rule = (
        gradient(model, lambda name=name: GraphObjective.of(call, joined, y, None, fit_settings(name)).backward(BATCH))
        for name in ("balanced", "vote")
    )
    assert_same(voting_rule, plain, 0)


@pytest.mark.parametrize("objective", ["paper", "balanced"])
def test_sampled_subgraphs_are_trained_on_like_all_of_them(objective) -> None:
    model, call, joined, y = setting(weighted=True)
    how = fit_settings(objective, groups_per_step=100)
    fast, drawn = (
        make.of(call, joined, y, division, how)
        for make, division in ((GraphObjective, DIVISIONS[0]), (SampledGraphObjective, ThreeMethods(DIVISIONS[0])))
    )
    expected = gradient(model, lambda: fast.backward(BATCH))
    assert_same(gradient(model, lambda: drawn.backward(BATCH)), expected, 1e-10)


@pytest.mark.parametrize("make", [GraphObjective, SampledGraphObjective])
def test_an_epoch_sees_every_graph_once_in_random_batches(make) -> None:
    _, call, joined, y = setting()
    own = ThreeMethods(DIVISIONS[0]) if make is SampledGraphObjective else DIVISIONS[0]
    objective = make.of(call, joined, y, own, fit_settings(batch_size=5))
    seen = []
    object.__setattr__(objective, "backward", lambda batch: seen.append(batch.tolist()) or 0.0)
    for _ in range(2):
        for step in objective.steps():
            step()
    first, second = seen[:3], seen[3:]
    assert [len(batch) for batch in first] == [5, 5, 2]
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(12))
    assert first != second
