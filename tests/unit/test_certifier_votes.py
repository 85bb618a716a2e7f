"""``certify(rule=...)``: votes stay what they are; what empty groups cast and the prior are added afterwards."""

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.errors import SettingsError
from agnncert_peers.deletions import BiRS
from agnncert_peers.gnncert import GNNCertE
from tests.support.small_graphs import graph_model, known_model, random_graph
from tests.support.woken_subgraphs import Constant, check_waking

NODE = [ac.EdgeCentric(7), ac.NodeCentric(7)]
GATED = ac.GatedNodeCentric(7)


@pytest.fixture(scope="module")
def graph():
    return random_graph(12, 16)


@pytest.fixture(scope="module")
def graphs():
    return [random_graph(size, size, seed=size) for size in (4, 7, 9)]


@pytest.mark.parametrize("division", [*NODE, GATED, GNNCertE(5)], ids=str)
def test_the_plain_vote_changes_nothing(graph, division, tmp_path):
    for name, options in {
        "a": {},
        "b": {"voting_rule": ac.VotingRule()},
        "c": {"voting_rule": ac.VotingRule(prior=[0, 0, 0])},
    }.items():
        ac.certify(known_model(), graph, division, **options).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("engine", ["fast", "naive"])
@pytest.mark.parametrize("division", NODE, ids=str)
@pytest.mark.parametrize("empty", ["no_edge", "abstain", 2])
def test_listed_votes_stay_and_empty_groups_cast_the_constant(graph, division, empty, engine):
    plain = ac.certify(known_model(), graph, division, engine=engine).evidence
    voted = ac.certify(known_model(), graph, division, engine=engine, voting_rule=ac.VotingRule(empty, 4)).evidence
    assert np.array_equal(plain.votes.vote, voted.votes.vote)
    assert np.array_equal(voted.no_edge, plain.votes.default)
    expected = {"no_edge": plain.votes.default, "abstain": np.full(12, -1), 2: np.full(12, 2)}[empty]
    assert np.array_equal(voted.votes.default, expected)
    score = voted.votes.counts + 4 * np.eye(3, dtype=int)[plain.votes.default]
    assert np.array_equal(voted.counts, score)
    assert np.array_equal(voted.label_and_radius()[0], score.argmax(axis=1))


@pytest.mark.parametrize("division", NODE, ids=str)
def test_the_prior_of_a_graph_is_added_for_each_class(graphs, division):
    plain = ac.certify(graph_model(), graphs, division)
    voted = ac.certify(graph_model(), graphs, division, voting_rule=ac.VotingRule(1, [0, -2, 5]))
    empty = plain.evidence.votes.num_unlisted
    assert empty.any()
    assert np.array_equal(voted.counts, plain.counts + [0, -2, 5] + empty[:, None] * [0, 1, 0])


def test_with_gated_features_a_prior_for_classes_leaves_own_features_covered(graph):
    cert = ac.certify(known_model(), graph, GATED, voting_rule=ac.VotingRule("abstain", [0, 9, 0]))
    assert cert.holds_against(Budget(target_features=True)).any()
    with pytest.raises(SettingsError, match="own features"):
        ac.certify(known_model(), graph, GATED, voting_rule=ac.VotingRule(prior=3))


def test_an_overwhelming_prior_is_the_graph_free_answer(graph):
    cert = ac.certify(known_model(), graph, ac.NodeCentric(7), voting_rule=ac.VotingRule("abstain", 100))
    assert np.array_equal(cert.label, cert.evidence.no_edge)
    everything = Budget(add_edges=math.inf, delete_edges=math.inf, delete_nodes=math.inf, change_features=math.inf)
    assert cert.holds_against(everything).all()
    assert (cert.radius == 7).all()  # all votes there are
    assert np.isinf(cert.new_neighbours).all()


def test_a_prediction_too_close_to_a_tie_gives_no_prior():
    data = Data(x=torch.zeros(2, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
    for voting_rule in (ac.VotingRule("abstain", 5), ac.VotingRule("abstain", -5)):
        cert = ac.certify(Constant([0.0, 0.0, -1.0]), data, ac.NodeCentric(3), voting_rule=voting_rule)
        assert not cert.evidence.no_edge_stable.any()
        assert cert.radius.tolist() == [-1, -1]
        assert not cert.holds_against(Budget()).any()


def test_what_is_no_vote_and_votes_of_random_defences_are_refused(graph):
    with pytest.raises(SettingsError, match="expected a VotingRule"):
        ac.certify(known_model(), graph, ac.NodeCentric(7), voting_rule=5)
    with pytest.raises(SettingsError, match="has no such setting"):
        ac.certify(known_model(), graph, BiRS(), voting_rule=ac.VotingRule("abstain", 5))
    with pytest.raises(SettingsError, match="classes are 0 to 2"):
        ac.certify(known_model(), graph, ac.NodeCentric(7), voting_rule=ac.VotingRule(3))


def test_emptiness_is_a_matter_of_the_target():
    check_waking()
