"""Defences as the command line names them, with their votes."""

import pytest

import agnncert as ac
from agnncert.cli.compare_step import _with_vote
from agnncert.errors import SettingsError


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"num_groups": 9}, ac.NodeCentric(9)),
        ({"num_groups": 9, "empty": "abstain"}, (ac.NodeCentric(9), ac.VotingRule(empty="abstain"))),
        ({"num_groups": 9, "empty": 1, "prior": "0/-3"}, (ac.NodeCentric(9), ac.VotingRule(empty=1, prior=[0, -3]))),
        ({"num_groups": 9, "empty": "toxic"}, (ac.NodeCentric(9), ac.VotingRule(empty=1))),
    ],
)
def test_a_vote_may_stand_among_the_settings_of_a_division(values, expected):
    assert _with_vote("node", values, "node", ["safe", "toxic"]) == expected


def test_a_division_without_groups_takes_a_vote_too():
    assert _with_vote("per-neighbour", {"prior": 5}, "node", None) == (ac.PerNeighbour(), ac.VotingRule(prior=5))


def test_a_prior_that_is_no_number_is_refused():
    with pytest.raises(SettingsError, match="such as 0/12"):
        _with_vote("node", {"prior": "many"}, "node", None)
