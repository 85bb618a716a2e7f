"""Training for a size: the loss on batches of subgraphs, equal ones evaluated once, against one graph after the other."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import agnncert as ac
from agnncert.divisions import GNNCertE
from agnncert.errors import SettingsError
from agnncert.graphs.graph import canonical_set, one_graph
from agnncert.training import certified_objective
from agnncert.training.certified_objective import CertifiedObjective
from agnncert.training.vote_search import BallotTable, best_constants, joined, size_only, window
from agnncert.voting.call import bind

from ...support.labelled import assert_same, fit_settings, gradient, labelled_graphs, naive_gradient
from .test_checkpoint import Interrupted, interrupt_at, without_time
from .test_loop import same, weights_of

DIVISIONS = [ac.EdgeCentric(30), ac.NodeCentric(4)]


def setting(coarse=True, **model):
    graphs = labelled_graphs()
    for graph in graphs:
        graph.x = (graph.x > 1).double() if coarse else graph.x.double()
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, readout="sum", **model).double().eval()
    joined = canonical_set(graphs)
    return model, bind(model, joined, "graph"), joined, graphs.y


def objective(call, joined, y, division, **settings) -> CertifiedObjective:
    how = fit_settings("certified", **{"design_size": 2, **settings})
    return CertifiedObjective.of(call, joined, y, division, how)


def naive_margins(model, graphs, y, division, constants, size):
    """Each graph and each of its subgraphs in turn."""
    margins, casts = [], constants.casts.softmax(0)[:-1].detach()
    for k in range(len(y)):
        graph = one_graph(graphs, k)
        groups, filled, scores = division.groups(graph), 0, torch.zeros(2, dtype=torch.float64)
        for index in range(division.num_groups):
            part = division.subgraph(graph, groups, index)
            if part.x.size(0):
                batch = torch.zeros(part.x.size(0), dtype=torch.int64)
                scores = scores + model(part.x, part.edge_index, batch)[0].softmax(0)
                filled += 1
        scores = scores + certified_objective.UNIT * constants.start.detach() - filled * casts
        margins.append(scores[y[k]] - scores[1 - y[k]] - 2 * size)
    return torch.stack(margins)


def star(leaves, label):
    edges = to_undirected(torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)]))
    return Data(x=torch.ones(leaves + 1, 3, dtype=torch.float64), edge_index=edges, y=torch.tensor([label]))


@pytest.mark.parametrize("batch_size", [1, 5, 100])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_the_loss_is_that_of_the_margin_that_is_left_after_the_worst_changes(division, batch_size) -> None:
    model, call, graphs, y = setting()
    certified = objective(call, graphs, y, division, batch_size=batch_size)
    certified.constants.steps += certified_objective.FIRST_STEPS
    actual = gradient(model, certified.backward)
    assert certified.constants.slope == 0.2
    expected = naive_gradient(
        model,
        lambda: 2 * torch.sigmoid(-0.2 * naive_margins(model, graphs, y, division, certified.constants, 2)).mean(),
    )
    assert_same(actual, expected, 1e-10)


@pytest.mark.parametrize("batch_size", [1, 100])
def test_at_first_the_ballots_to_start_from_are_learnt_each_as_often_as_it_occurs(batch_size) -> None:
    model, call, graphs, y = setting()
    division = ac.EdgeCentric(30)
    certified = objective(call, graphs, y, division, batch_size=batch_size)
    certified.first[::2] = 1 - certified.first[::2]

    def naive():
        losses, cell = [], 0
        for k in range(len(y)):
            graph = one_graph(graphs, k)
            groups = division.groups(graph)
            for index in range(division.num_groups):
                part = division.subgraph(graph, groups, index)
                if part.x.size(0):
                    logits = model(part.x, part.edge_index, torch.zeros(part.x.size(0), dtype=torch.int64))
                    target = certified.first[certified.subgraphs.kind[cell]][None]
                    losses.append(F.cross_entropy(logits, target, label_smoothing=certified_objective.DOUBT))
                    cell += 1
        return torch.stack(losses).mean()

    assert_same(gradient(model, certified.backward), naive_gradient(model, naive), 1e-10)


@pytest.mark.parametrize("regular", [{"dropout": 0.5}, {"norm": "batch_norm"}, {}], ids=str)
def test_equal_subgraphs_are_evaluated_once_unless_training_treats_them_differently(regular) -> None:
    _, call, graphs, y = setting(**regular)
    certified = objective(call, graphs, y, ac.EdgeCentric(30))
    assert (certified.subgraphs.num_kinds == len(certified.subgraphs.kind)) == bool(regular)


def test_the_first_constants_are_a_vote_by_size() -> None:
    y = torch.tensor([1, 1, 1, 0, 0, 0])
    graphs = [star(leaves, label) for leaves, label in zip((2, 3, 4, 12, 13, 14), y.tolist(), strict=True)]
    model = ac.build_model("gcn", graphs, hidden_channels=4, num_layers=1).double()
    joined_graphs = canonical_set(graphs)
    certified = objective(bind(model, joined_graphs, "graph"), joined_graphs, y, ac.EdgeCentric(1000))
    added = certified.constants(certified.subgraphs.num_filled)
    sure = 1 - certified_objective.DOUBT
    ballots = torch.nn.functional.one_hot(certified.first, 2) * sure + certified_objective.DOUBT / 2
    scores = added + certified.subgraphs.num_filled[:, None] * ballots[certified.subgraphs.kind[0]]
    assert torch.equal(scores.argmax(1), y)
    assert certified.constants.slope == pytest.approx(0.2)
    assert certified.constants.casts.argmax() == 1  # small graphs have more empty groups, and are of class 1


def test_constants_are_trained_too_and_come_back_after_an_interruption(tmp_path) -> None:
    def run(file=None, progress=None):
        graphs = labelled_graphs(20)
        for graph in graphs:
            graph.x = graph.x.float()
        model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2)
        how = {"objective": "certified", "design_size": 1, "epochs": 9, "evaluate_every": 2, "weight_decay": 0.1}
        return ac.fit(model, graphs, ac.EdgeCentric(20), **how, checkpoint=file, progress=progress)

    whole = run()
    file = tmp_path / "run.safetensors"
    with pytest.raises(Interrupted):
        run(file, interrupt_at(5))
    resumed = run(file)
    assert same(weights_of(whole), weights_of(resumed))
    assert without_time(whole.training_record) == without_time(resumed.training_record)


def test_the_score_is_that_of_the_best_constants_for_both_parts() -> None:
    graphs = labelled_graphs(30)
    for graph in graphs:
        graph.x = graph.x.float()
    division = ac.EdgeCentric(20)
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, readout="sum")
    ac.fit(model, graphs, division, objective="certified", design_size=1, epochs=60, evaluate_every=5, lr=0.05)
    tables = [
        BallotTable.of(ac.certify(model, graphs, division, part).evidence.votes, graphs.y.numpy()[part])
        for part in (graphs.train.numpy(), graphs.val.numpy())
    ]
    best = best_constants(joined(tables), window(1))
    assert model.training_record["score"] == pytest.approx(best.score)
    assert best.score > size_only(joined(tables), window(1))[1].score  # classes show in features, not in sizes
    assert model.training_record["design_size"] == 1


def test_more_than_two_classes_have_the_strongest_rival_to_beat() -> None:
    graphs = labelled_graphs(12, classes=3)
    for graph in graphs:
        graph.x = graph.x.float()
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2)
    ac.fit(model, graphs, ac.NodeCentric(9), objective="certified", design_size=1, epochs=60, evaluate_every=10)
    assert np.isfinite(model.training_record["score"])


@pytest.mark.parametrize(
    ("division", "settings", "complaint"),
    [
        (None, {}, "EdgeCentric or NodeCentric"),
        (GNNCertE(9), {}, "EdgeCentric or NodeCentric"),
        (ac.EdgeCentric(9), {"select_size": 1}, "select_size"),
        (ac.EdgeCentric(9), {"weights": ac.Weights(full=0.5)}, "weights"),
        (ac.EdgeCentric(math.inf), {}, "with a number of groups"),
        (ac.EdgeCentric(9), {"objective": "vote", "design_size": 1}, "belongs to"),
    ],
)
def test_settings_that_make_no_sense_are_refused(division, settings, complaint) -> None:
    graphs = labelled_graphs()
    model = ac.build_model("gcn", graphs, hidden_channels=8).double()
    with pytest.raises(SettingsError, match=complaint):
        ac.fit(model, graphs, division, **{"objective": "certified", **settings})
