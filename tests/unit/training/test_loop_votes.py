"""``fit`` with a vote, with one group per neighbour, and without seeing the validation nodes."""

import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from tests.support.labelled import labelled_graph, labelled_graphs

QUICK = {"epochs": 6, "evaluate_every": 3, "lr": 0.03}


@pytest.fixture
def nodes():
    return labelled_graph(60, dtype=torch.float32)


@pytest.fixture
def graphs():
    made = labelled_graphs(24, dtype=torch.float32)
    return made


def small(data):
    return ac.build_model("gcn", data, hidden_channels=8, num_layers=2)


@pytest.mark.parametrize(
    ("task", "division", "voting_rule"),
    [
        ("node", ac.NodeCentric(9), ac.VotingRule(empty="abstain", prior=4)),
        ("node", ac.PerNeighbour(), ac.VotingRule(prior=3)),
        ("node", ac.PerEdge(), None),
        ("graph", ac.EdgeCentric(9), ac.VotingRule(empty=1, prior=[0, 2])),
        ("graph", ac.PerNeighbour(), ac.VotingRule(prior=[0, 2])),
        ("graph", ac.PerEdge(), None),
    ],
    ids=str,
)
def test_weights_are_kept_that_are_best_under_the_vote(nodes, graphs, task, division, voting_rule):
    data, part = (nodes, nodes.val_mask) if task == "node" else (graphs, graphs.val)
    model = ac.fit(small(data), data, division, voting_rule=voting_rule, size=1, **QUICK)
    cert = ac.certify(model, data, division, targets=part, voting_rule=voting_rule)
    assert model.training_record["score"] == pytest.approx(cert.certified_accuracy(data.y, sizes=1))
    assert model.training_record.get("voting_rule") == (None if voting_rule is None else voting_rule.to_json())


@pytest.mark.parametrize(
    ("division", "against"),
    [(ac.NodeCentric(9), "any"), (ac.PerNeighbour(), "structure"), (ac.PerEdge(), "any")],
    ids=str,
)
def test_nodes_are_trained_for_a_size_by_what_the_best_prior_certifies(nodes, division, against):
    how = {"objective": "certified", "size": 2, "against": against, "no_edge_weight": 3.0}
    seen = []
    model = ac.fit(small(nodes), nodes, division, **how, **QUICK, progress=lambda step: seen.append(step.score))
    choice = ac.choose_voting_rule(model, nodes, division, 2, against=against)
    best = max(one.score for one in choice.candidates if one.name == "with a prior")
    assert model.training_record["score"] == pytest.approx(best) == max(score for score in seen if score is not None)
    voting_rule = next(one.voting_rule for one in choice.candidates if one.score == best)
    cert = ac.certify(model, nodes, division, nodes.val_mask, voting_rule=voting_rule)
    radius = cert.structure_radius if against == "structure" else cert.radius
    right = cert.label == nodes.y[nodes.val_mask].numpy()
    assert best == pytest.approx(sum((right & (radius >= size)).mean() for size in (1, 2, 3)) / 3)


@pytest.mark.parametrize(
    ("division", "settings", "complaint"),
    [
        (ac.GatedNodeCentric(9), {"objective": "certified"}, "without gated features"),
        (None, {"objective": "certified"}, "not of None"),
        (ac.NodeCentric(9), {"against": "structure"}, 'against="structure" belongs to'),
    ],
    ids=str,
)
def test_what_cannot_be_trained_for_a_size_is_refused(nodes, division, settings, complaint):
    with pytest.raises(SettingsError, match=complaint):
        ac.fit(small(nodes), nodes, division, **settings, **QUICK)


def test_a_prior_certifies_more_than_half_the_votes(nodes):
    voting_rule = ac.VotingRule(empty="abstain", prior=50)
    with pytest.raises(SettingsError, match="at most size 4"):
        ac.fit(small(nodes), nodes, ac.NodeCentric(9), size=9, **QUICK)
    model = ac.fit(small(nodes), nodes, ac.NodeCentric(9), voting_rule=voting_rule, size=9, **QUICK)
    assert model.training_record["score"] > 0


@pytest.mark.parametrize(
    ("division", "settings", "said"),
    [
        (None, {"voting_rule": ac.VotingRule(prior=3)}, "votes of a division"),
        (ac.baselines.BiRS(), {"voting_rule": ac.VotingRule(prior=3)}, "votes of a division"),
        (ac.GatedNodeCentric(9), {"voting_rule": ac.VotingRule(prior=3)}, "own features"),
        (ac.PerNeighbour(), {"voting_rule": ac.VotingRule(empty="no_edge")}, "one group per neighbour"),
        (ac.NodeCentric(9), {"voting_rule": 3}, "expected a VotingRule"),
        (ac.PerNeighbour(), {"objective": "paper"}, "beyond number"),
    ],
    ids=str,
)
def test_votes_that_make_no_sense_are_refused_before_training(nodes, division, settings, said):
    with pytest.raises(SettingsError, match=said):
        ac.fit(small(nodes), nodes, division, progress=lambda _: pytest.fail("trained"), **QUICK, **settings)


def test_training_for_a_size_finds_its_own_prior_and_is_for_nodes(nodes, graphs):
    how = {"objective": "certified", "size": 1, **QUICK}
    with pytest.raises(SettingsError, match='objective="certified" scores weights by the best prior'):
        ac.fit(small(nodes), nodes, ac.EdgeCentric(9), voting_rule=ac.VotingRule(prior=1), **how)
    with pytest.raises(SettingsError, match="is for node classification: train graph classifiers with"):
        ac.fit(small(graphs), graphs, ac.EdgeCentric(9), **how)


@pytest.mark.parametrize(("protocol", "is_seen"), [("transductive", True), ("inductive", True), ("held-out", False)])
def test_held_out_nodes_are_in_no_training_step(nodes, protocol, is_seen):
    once = {"epochs": 3, "evaluate_every": 3, "protocol": protocol}  # one evaluation: nothing is chosen by it
    first = ac.fit(small(nodes), nodes, ac.NodeCentric(9), **once)
    nodes.x[nodes.val_mask] += 3
    second = ac.fit(small(nodes), nodes, ac.NodeCentric(9), **once)
    same = all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert same is not is_seen


def test_held_out_nodes_are_there_when_weights_are_scored(nodes):
    model = ac.fit(small(nodes), nodes, ac.NodeCentric(9), protocol="held-out", **QUICK)
    seen = ac.inductive_view(nodes)
    cert = ac.certify(model, seen, ac.NodeCentric(9), targets=seen.val_mask)
    assert model.training_record["score"] == pytest.approx(cert.certified_accuracy(seen.y))


def test_nodes_in_no_part_take_part_in_training_without_their_labels(nodes):
    once = {"epochs": 3, "evaluate_every": 3, "protocol": "held-out"}
    some = nodes.train_mask.nonzero().view(-1)[::2]
    nodes.train_mask[some] = False  # in no part now
    first = ac.fit(small(nodes), nodes, ac.NodeCentric(9), **once)
    nodes.y[some] = -1
    unlabelled = ac.fit(small(nodes), nodes, ac.NodeCentric(9), **once)
    nodes.x[some] += 3
    moved = ac.fit(small(nodes), nodes, ac.NodeCentric(9), **once)

    def same(one, other):
        return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))

    assert same(first, unlabelled)
    assert not same(first, moved)


def test_a_view_without_validation_nodes_is_the_training_part(nodes):
    view = ac.inductive_view(nodes, validation=False)
    assert view.num_nodes == int(nodes.train_mask.sum())
    assert view.node_id.tolist() == nodes.node_id[nodes.train_mask].tolist()
    inside = nodes.train_mask[nodes.edge_index].all(0)
    assert view.edge_index.size(1) == int(inside.sum()) > 0
