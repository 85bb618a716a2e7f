"""Choosing a vote for a size: what is reported is what ``certify`` then certifies, and simple answers win ties."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import agnncert as ac
from agnncert.datasets.splits import GraphSet
from agnncert.divided.choose_rule import CONSTANT, MODEL, NO_EDGES, PLAIN, SIZE_ONLY
from agnncert.errors import SettingsError
from agnncert.models.build import build_constant
from agnncert_peers.size_control import size_rule
from tests.support.labelled import labelled_graph, labelled_graphs

QUICK = {"epochs": 40, "evaluate_every": 5, "lr": 0.03}


def path(length: int, label: int) -> Data:
    ends = torch.stack([torch.arange(length), torch.arange(1, length + 1)])
    graph = Data(x=torch.ones(length + 1, 2), edge_index=to_undirected(ends), y=torch.tensor([label]))
    graph.node_id = torch.arange(length + 1)
    return graph


def paths(sizes_tell: bool) -> GraphSet:
    """Paths of 2 to 30 edges; the longer ones are of class 1, or length tells nothing."""
    random = np.random.default_rng(0)
    lengths = random.integers(2, 30, 60)
    graphs = [path(int(length), int(length > 15) if sizes_tell else k % 3 // 2) for k, length in enumerate(lengths)]
    return GraphSet(graphs, train=range(30), val=range(30, 50), test=range(50, 60))


@pytest.fixture(scope="module")
def graphs():
    made = labelled_graphs(60, dtype=torch.float32)
    return made


@pytest.fixture(scope="module")
def for_graphs(graphs):
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, readout="sum")
    return ac.fit(model, graphs, ac.EdgeCentric(20), **QUICK)


@pytest.mark.parametrize("against", ["any", "structure"])
@pytest.mark.parametrize("division", [ac.PerEdge(), ac.PerNeighbour()], ids=str)
def test_groups_of_their_own_are_chosen_for_as_they_are_certified(
    graphs, nodes, for_graphs, for_nodes, division, against
):
    nodes = nodes.clone()
    nodes.edge_index = nodes.edge_index[:, torch.arange(nodes.num_edges) % 5 > 0]  # some pairs have one direction
    for model, data, parts in ((for_graphs, graphs, [graphs.train, graphs.val]), (for_nodes, nodes, [nodes.val_mask])):
        choice = ac.choose_voting_rule(model, data, division, size=1, against=against)
        for one in (one for one in choice.candidates if one.label is None):
            shares = []
            for part in parts:
                cert = ac.certify(model, data, one.division, targets=part, voting_rule=one.voting_rule)
                radius = cert.radius if against == "any" else cert.structure_radius
                shares.append([((cert.label == cert.truth) & (radius >= size)).mean() for size in (0, 1)])
            assert np.mean(shares, axis=0) == pytest.approx([one.accuracy, one.certified_accuracy])
        score = {one.name: one.score for one in choice.candidates}
        assert score[MODEL] >= score[PLAIN]


@pytest.mark.parametrize("division", [ac.EdgeCentric(20), ac.NodeCentric(20)], ids=str)
def test_every_candidate_certifies_as_much_as_it_says(graphs, for_graphs, division) -> None:
    choice = ac.choose_voting_rule(for_graphs, graphs, division, size=2)
    *fixed, exact = choice.candidates[::4]
    assert [one.division.num_groups for one in fixed] == [20, 60, 200]
    assert exact.division.is_per_neighbour
    for one in choice.candidates:
        assert one.voting_rule == ac.VotingRule(one.voting_rule.empty, one.voting_rule.prior)
        if one.label is not None:
            continue
        shares = []
        for part in (graphs.train, graphs.val):
            cert = ac.certify(for_graphs, graphs, one.division, targets=part, voting_rule=one.voting_rule)
            shares.append(cert.certified_accuracy(graphs.y, sizes=[0, 2]))
        assert np.mean(shares, axis=0) == pytest.approx([one.accuracy, one.certified_accuracy])
    assert choice.best.score >= max(one.score for one in choice.candidates if one.name == CONSTANT)


def test_a_model_that_has_learnt_something_is_taken(graphs, for_graphs) -> None:
    choice = ac.choose_voting_rule(for_graphs, graphs, ac.EdgeCentric(20), size=2, candidates=[20])
    assert choice.best.name == MODEL
    assert choice.model is for_graphs
    assert choice.num_targets == 60
    assert "* with a prior" in str(choice)


def test_where_the_size_tells_as_much_the_size_alone_decides_and_is_certified_by_the_same_code() -> None:
    graphs = paths(sizes_tell=True)
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, readout="sum", seed=3)
    choice = ac.choose_voting_rule(model, graphs, ac.EdgeCentric(500), size=2, candidates=[500])
    assert choice.best.name == SIZE_ONLY
    assert choice.model is not model
    parts = [
        ac.certify(
            choice.model, graphs, choice.division, targets=part, voting_rule=choice.voting_rule
        ).certified_accuracy(graphs.y, sizes=[0, 2])
        for part in (graphs.train, graphs.val)
    ]
    assert np.mean(parts, axis=0) == pytest.approx([choice.best.accuracy, choice.best.certified_accuracy])
    assert choice.best.certified_accuracy > 0.7


@pytest.mark.parametrize(
    ("division", "counts"), [(ac.EdgeCentric(20), "edges"), (ac.NodeCentric(20), "nodes")], ids=str
)
def test_size_alone_is_also_counted_exactly_and_no_rule_by_size_certifies_more(division, counts) -> None:
    graphs = paths(sizes_tell=True)
    model = ac.build_model("mlp", graphs, hidden_channels=8, num_layers=2)  # any: the size alone is asked for
    choice = ac.choose_voting_rule(model, graphs, division, size=2)
    exact = choice.candidates[-1]
    assert (exact.name, exact.division.is_per_neighbour) == (SIZE_ONLY, True)
    assert exact.score == pytest.approx(size_rule(graphs, 2, counts).score)
    assert exact.score > min(one.score for one in choice.candidates if one.name == SIZE_ONLY)
    voting = build_constant(graphs, exact.label, 2)
    shares = [
        ac.certify(voting, graphs, exact.division, targets=part, voting_rule=exact.voting_rule).certified_accuracy(
            graphs.y, sizes=2
        )
        for part in (graphs.train, graphs.val)
    ]
    assert np.mean(shares) == pytest.approx(exact.certified_accuracy)


def test_where_nothing_can_be_told_the_constant_answer_is_taken() -> None:
    graphs = paths(sizes_tell=False)
    model = ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2)
    choice = ac.choose_voting_rule(model, graphs, ac.NodeCentric(9), size=6)
    assert choice.best.name == CONSTANT
    cert = ac.certify(choice.model, graphs, choice.division, voting_rule=choice.voting_rule)
    for given in ({"defence": choice}, {"defence": choice.division, "voting_rule": choice}):
        assert ac.certify(choice.model, graphs, **given).claim == cert.claim
    with pytest.raises(ac.AgnncertError, match="voting rule was chosen for"):
        ac.certify(choice.model, graphs, ac.NodeCentric(123), voting_rule=choice)
    with pytest.raises(ac.AgnncertError, match="leave the other one out"):
        ac.certify(choice.model, graphs, choice, voting_rule=ac.VotingRule())
    if choice.best.label is not None:
        with pytest.raises(ac.AgnncertError, match=r"pass choice\.model"):
            ac.certify(model, graphs, choice)
    assert set(cert.label.tolist()) == {0}
    assert (cert.radius >= 9).all()
    assert choice.given_up == pytest.approx(max(one.accuracy for one in choice.candidates) - choice.best.accuracy)


@pytest.fixture(scope="module")
def nodes():
    return labelled_graph(80, dtype=torch.float32)


@pytest.fixture(scope="module")
def for_nodes(nodes):
    model = ac.build_model("gcn", nodes, hidden_channels=8, num_layers=2)
    return ac.fit(model, nodes, ac.NodeCentric(15), **QUICK)


@pytest.mark.parametrize("division", [ac.EdgeCentric(15), ac.NodeCentric(15), ac.PerNeighbour(), ac.PerEdge()], ids=str)
def test_nodes_choose_between_their_vote_and_the_prediction_without_edges(nodes, for_nodes, division) -> None:
    choice = ac.choose_voting_rule(for_nodes, nodes, division, size=1)
    assert {one.name for one in choice.candidates} == {NO_EDGES, PLAIN, MODEL}
    for one in choice.candidates:
        cert = ac.certify(for_nodes, nodes, one.division, targets=nodes.val_mask, voting_rule=one.voting_rule)
        found = cert.certified_accuracy(nodes.y, sizes=[0, 1])
        assert found.tolist() == pytest.approx([one.accuracy, one.certified_accuracy])
    without_edges = next(one for one in choice.candidates if one.name == NO_EDGES)
    assert choice.best.score >= without_edges.score


def test_test_nodes_can_be_left_out(nodes, for_nodes) -> None:
    seen = ac.choose_voting_rule(for_nodes, nodes, ac.NodeCentric(15), size=0)
    hidden = ac.choose_voting_rule(for_nodes, nodes, ac.NodeCentric(15), size=0, protocol="inductive")
    assert [one.accuracy for one in seen.candidates] != [one.accuracy for one in hidden.candidates]


def memorable(seed: int = 0) -> Data:
    """Neighbours tell the class of a node; its own features tell nothing, but are unlike all others."""
    random = np.random.default_rng(seed)
    y = np.arange(90) % 2
    ends = random.integers(0, 90, size=(2, 700))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) & (ends[0] != ends[1])]
    part = random.permutation(np.arange(90) % 3)
    masks = {f"{name}_mask": torch.from_numpy(part == k) for k, name in enumerate(("train", "val", "test"))}
    x = torch.eye(90)
    return Data(x=x, edge_index=to_undirected(torch.from_numpy(ends), num_nodes=90), y=torch.from_numpy(y), **masks)


def test_validation_nodes_in_the_training_graph_bias_the_choice_and_held_out_ones_do_not() -> None:
    """One feature for each node: a node that was in the training graph is known by heart through its neighbours.

    So without edges the model seems to be right about validation nodes, and cannot be about nodes that it never saw.
    """
    data, division = memorable(), ac.PerNeighbour()
    without_edges = {}
    for protocol in ("inductive", "held-out"):
        model = ac.build_model("gcn", data, hidden_channels=16, num_layers=2)
        ac.fit(model, data, division, protocol=protocol, epochs=60, lr=0.03, weight_decay=0.0, patience=None)
        choice = ac.choose_voting_rule(model, data, division, size=1, protocol=protocol)
        on_validation = next(one for one in choice.candidates if one.name == NO_EDGES)
        cert = ac.certify(model, data, division, targets=data.test_mask, voting_rule=on_validation.voting_rule)
        without_edges[protocol] = on_validation.accuracy - cert.certified_accuracy(data.y)
    assert without_edges["inductive"] > 0.2
    assert abs(without_edges["held-out"]) < 0.15


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"size": -1}, "whole number"),
        ({"size": 1.5}, "whole number"),
        ({"against": "edges"}, "any"),
        ({"protocol": "unseen"}, "held-out"),
        ({"candidates": []}, "at least one"),
    ],
)
def test_senseless_calls_are_refused(graphs, for_graphs, changed, complaint) -> None:
    call = {"division": ac.EdgeCentric(9), "size": 1, **changed}
    with pytest.raises(SettingsError, match=complaint):
        ac.choose_voting_rule(for_graphs, graphs, **call)


def test_gated_features_are_refused(nodes, for_nodes) -> None:
    with pytest.raises(SettingsError, match="gated"):
        ac.choose_voting_rule(for_nodes, nodes, ac.GatedNodeCentric(9), size=1)


def hubs_and_leaves(listen: float) -> tuple[torch.nn.Module, Data]:
    """Leaves, which know their class and have three neighbours of the other one, and hubs, whose leaves know theirs."""
    random = np.random.default_rng(2)
    y = torch.from_numpy(np.repeat([0, 1], 40))
    known = torch.arange(80) % 40 >= 2  # the others are hubs, with six neighbours of their class each
    pairs = [(hub, leaf) for hub in (~known).nonzero().view(-1).tolist()
             for leaf in random.choice(np.flatnonzero(known & (y == y[hub])), 6, replace=False)]  # fmt: skip
    pairs += [(leaf, 42 + (leaf + step) % 38) for leaf in range(2, 40) for step in range(3)]
    x = torch.nn.functional.one_hot(y, 2).float() * known[:, None]
    x[~known] = torch.nn.functional.one_hot(1 - y[~known], 2).float()  # misleads
    everyone = torch.ones(80, dtype=torch.bool)
    edges = to_undirected(torch.tensor(pairs).t(), num_nodes=80)
    data = Data(x=x, y=y, edge_index=edges, train_mask=everyone, val_mask=everyone, test_mask=everyone)

    class Listener(torch.nn.Module):
        def forward(self, x, edge_index):
            return x + listen * torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])

    return Listener(), data


def test_where_no_edges_win_over_all_what_nodes_with_many_neighbours_lose_is_said():
    model, data = hubs_and_leaves(listen=2.0)
    choice = ac.choose_voting_rule(model, data, ac.PerNeighbour(), size=1)
    assert choice.best.name == NO_EDGES
    many = choice.many
    has_many = torch.bincount(data.edge_index[1], minlength=80) >= 6
    assert (many.least, many.num_targets) == (6, int(has_many.sum()))
    for voting_rule, said in ((many.voting_rule, many.certified_accuracy), (choice.voting_rule, many.without_edges)):
        cert = ac.certify(model, data, ac.PerNeighbour(), targets=has_many, voting_rule=voting_rule)
        assert cert.certified_accuracy(data.y, sizes=[1]).tolist() == pytest.approx([said])
    assert many.certified_accuracy > many.without_edges
    assert "No edge decides anything now" in str(choice)
    assert f"with 6 neighbours or more, prior {many.voting_rule.prior} certifies" in str(choice)


def test_where_votes_of_many_neighbours_certify_no_more_nothing_is_said_about_them():
    model, data = hubs_and_leaves(listen=0.0)
    choice = ac.choose_voting_rule(model, data, ac.PerNeighbour(), size=1)
    assert choice.best.name == NO_EDGES
    assert choice.many is None
