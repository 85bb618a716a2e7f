"""Training under the noise of a smoothing defence."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.errors import SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import one_graph
from agnncert.training.graph_objectives import SampledGraphObjective
from agnncert.training.node_objectives import NodeObjective
from agnncert.training.validation import SCORED_SAMPLES, Validation
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from tests.support.labelled import assert_same, fit_settings, gradient, labelled_graph, labelled_graphs, naive_gradient

BINARY = SparseRS(0.02, 0.3, 0.05, 0.2)


def small_model(data, name="gcn", seed=0):
    return ac.build_model(name, data, hidden_channels=6, num_layers=2, seed=seed)


def binary(data):
    data.x = (data.x > 0).to(data.x.dtype)
    return data


@pytest.mark.parametrize("defence", [BiRS(0.3, 0.2), SparseRS(0.01, 0.3), BINARY, RS(0.9)], ids=repr)
def test_a_step_is_the_gradient_on_a_noisy_graph(defence):
    graph = canonical(binary(labelled_graph(sparse=defence is BINARY)))
    y, rows = labelled_graph().y, torch.arange(0, 30, 2)
    model = small_model(labelled_graph()).double().eval()
    objective = NodeObjective.of(bind(model, graph, "node"), graph, y, rows, defence, fit_settings())
    for seed in range(3):
        torch.manual_seed(seed)
        actual = gradient(model, objective.backward)
        torch.manual_seed(seed)
        noisy = defence.noisy(graph)
        assert noisy.num_edges != graph.num_edges
        expected = naive_gradient(
            model, lambda noisy=noisy: F.cross_entropy(model(noisy.x, noisy.edge_index)[rows], y[rows])
        )
        assert_same(actual, expected, 1e-9)


def test_weights_are_scored_by_the_vote_under_noise():
    data = labelled_graph()
    graph, model, defence = canonical(data), small_model(data).double().eval(), BiRS(0.3, 0.2)
    call, rows = bind(model, graph, "node"), np.arange(30)
    accuracy, share = Validation(call, graph, "node", rows, data.y.numpy()).by_noise(defence, seed=4)()
    counts = defence.count(call, graph, rows, SCORED_SAMPLES, seed=4)
    assert (counts.sum(axis=1) == SCORED_SAMPLES).all()
    assert accuracy == (counts.argmax(axis=1) == data.y.numpy()).mean()
    assert share == pytest.approx(counts[rows, data.y.numpy()].mean() / SCORED_SAMPLES)


def test_counting_some_samples_counts_each_once():
    data = labelled_graph()
    graph, defence, rows = canonical(data), BiRS(0.3, 0.2), np.arange(30)
    call = bind(small_model(data).double().eval(), graph, "node")
    many, batch = 2500, defence._sampler(call, graph, rows, False).batch
    assert batch < many  # several batches
    assert (defence.count(call, graph, rows, many, seed=1).sum(axis=1) == many).all()


def edges_in_training(model) -> list[int]:
    """Fills up with the number of edges that the model sees in each step of its training."""
    seen = []

    def note(module, arguments):
        if module.training:
            seen.append(arguments[1].size(1))

    model.register_forward_pre_hook(note)
    return seen


def test_every_step_of_training_is_on_new_noise():
    data = labelled_graph()
    model = small_model(data).double()
    seen = edges_in_training(model)
    ac.fit(model, data, BiRS(0.5, 0.0), epochs=10, evaluate_every=5)
    assert len(seen) == 10
    assert len(set(seen)) > 3
    assert 0.3 * data.num_edges < min(seen) <= max(seen) < 0.7 * data.num_edges


def test_training_under_noise_makes_the_smoothed_vote_better():
    data = labelled_graph(num_nodes=60, noise=1.5)
    defence = BiRS(0.5, 0.5, selection=10, samples=200)
    model = small_model(data).double()
    untrained = ac.certify(model.eval(), data, defence, data.val_mask)
    ac.fit(model, data, defence, epochs=30, lr=0.02, evaluate_every=5)
    trained = ac.certify(model, data, defence, data.val_mask)
    right = [(c.label == c.truth).mean() for c in (untrained, trained)]
    assert right[1] > right[0] + 0.2
    assert model.training_record["division"] == repr(defence)


def test_a_graph_classifier_is_trained_under_noise_too():
    graphs = labelled_graphs()
    model = small_model(graphs).double()
    seen = edges_in_training(model)
    ac.fit(model, graphs, SparseRS(0.0, 0.5), epochs=12, lr=0.02, evaluate_every=4, batch_size=6)
    edges = sum(graphs[k].num_edges for k in graphs.train)
    assert len(seen) == 12
    assert len(set(seen)) > 3
    assert 0.3 * edges < min(seen) <= max(seen) < 0.7 * edges
    assert model.training_record["score"] > 0.8


def test_a_step_of_a_graph_classifier_is_the_gradient_on_noisy_graphs():
    graphs, defence = labelled_graphs(), SparseRS(0.02, 0.3)
    joined, y = canonical_set(list(graphs)), torch.cat([graph.y for graph in graphs])
    model = small_model(graphs).double().eval()
    objective = SampledGraphObjective.of_noise(bind(model, joined, "graph"), joined, y, defence, fit_settings())
    batch = torch.tensor([0, 3, 4])
    for seed in range(3):
        torch.manual_seed(seed)
        actual = gradient(model, lambda: objective.backward(batch))
        torch.manual_seed(seed)
        noisy = [defence.noisy(one_graph(joined, k)) for k in batch.tolist()]
        assert [graph.num_edges for graph in noisy] != [graphs[k].num_edges for k in batch.tolist()]

        def loss(noisy=noisy):
            logits = [model(g.x, g.edge_index, torch.zeros(len(g.x), dtype=torch.int64)) for g in noisy]
            return F.cross_entropy(torch.cat(logits), y[batch])

        assert_same(actual, naive_gradient(model, loss), 1e-9)


@pytest.mark.parametrize(
    ("settings", "message"), [({"size": 1}, "there is no division"), ({"clusters": 2}, "whole graph at once")]
)
def test_settings_that_make_no_sense_under_noise_are_refused(settings, message):
    data = labelled_graph()
    with pytest.raises(SettingsError, match=message):
        ac.fit(small_model(data).double(), data, BiRS(), epochs=1, **settings)


def test_a_defence_that_does_not_fit_the_task_is_refused_before_training():
    graphs = labelled_graphs()
    with pytest.raises(SettingsError, match="node classification"):
        ac.fit(small_model(graphs).double(), graphs, BiRS(), epochs=1)
