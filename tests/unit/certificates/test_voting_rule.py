"""``VotingRule``: what makes sense under which rule, and how it lies in a file."""

import numpy as np
import pytest

from agnncert.certificates.voting_rule import VotingRule
from agnncert.errors import CertificateError, SettingsError
from tests.support.certificates import random_vote
from tests.support.theorems import THEOREMS


def test_the_plain_vote_is_spelled_out_as_it_has_always_been():
    usual = {theorem: VotingRule().under(theorem, 3) for theorem in THEOREMS}
    no_edge = {theorem for theorem, voting_rule in usual.items() if voting_rule.empty == "no_edge"}
    assert no_edge == {"edge-centric/node", "node-centric/node"}
    assert all(voting_rule.prior == 0 for voting_rule in usual.values())
    assert VotingRule(prior=[0, 0, 0]).under("node-centric/node", 3) == usual["node-centric/node"]


def test_numbers_of_numpy_and_arrays_are_taken():
    voting_rule = VotingRule(np.int64(1), np.array([0, 12]))
    assert voting_rule == VotingRule(1, (0, 12))
    assert type(voting_rule.empty) is int
    assert type(voting_rule.prior[0]) is int


@pytest.mark.parametrize("empty", ["nothing", -1, 1.0, True, [0], 2**15])
def test_what_an_empty_group_cannot_cast_is_refused(empty):
    with pytest.raises(SettingsError, match="empty="):
        VotingRule(empty)


@pytest.mark.parametrize("prior", [1.5, "3", None, [], [1, 2.0], True, {0: 1}, 2**31, [[1], [2]]])
def test_what_is_no_prior_is_refused(prior):
    with pytest.raises(SettingsError, match="prior="):
        VotingRule("abstain", prior)


@pytest.mark.parametrize(
    ("theorem", "voting_rule", "why"),
    [
        ("edge-centric/graph", VotingRule("no_edge"), "no prediction without edges"),
        ("node-centric/graph", VotingRule(prior=3), "no prediction without edges"),
        ("gated/node", VotingRule("no_edge"), "hide the target's features"),
        ("gated/node", VotingRule("abstain", 2), "own features, which this division protects"),
        ("custom/node", VotingRule(1), "all votes are cast"),
        ("gnncert-e/node", VotingRule(prior=1), "only the votes are known"),
        ("node-centric/node", VotingRule(3), "classes are 0 to 2"),
        ("node-centric/node", VotingRule(0, [1, 2]), "one for each of 3"),
    ],
)
def test_a_vote_that_does_not_fit_the_rule_is_refused(theorem, voting_rule, why):
    with pytest.raises(SettingsError, match=why):
        voting_rule.under(theorem, 3)


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_vote_survives_json(theorem):
    rng = np.random.default_rng(7)
    for _ in range(20):
        voting_rule = random_vote(rng, theorem).under(theorem, 3)
        assert VotingRule.from_json(voting_rule.to_json(), theorem, 3) == voting_rule


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {"empty": "abstain"},
        {"empty": None, "prior": 0},
        {"empty": "abstain", "prior": [0, 0, 0]},
        {"empty": "abstain", "prior": [1, 2]},
        {"empty": "abstain", "prior": 1.0},
        {"empty": True, "prior": 0},
        {"empty": 1, "prior": [True, 0, 0]},
        {"empty": "abstain", "prior": 0, "w": 1},
    ],
)
def test_a_vote_that_this_library_would_not_write_is_refused(stored):
    with pytest.raises(CertificateError, match="makes no sense"):
        VotingRule.from_json(stored, "node-centric/node", 3)
