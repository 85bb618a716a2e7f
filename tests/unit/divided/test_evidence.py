"""Votes from outside: what no engine can have produced is refused, with the reason."""

import dataclasses
import math

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.errors import CertificateError
from agnncert.proving.theorems import Limits, count_votes, withstands
from tests.support.certificates import certificate_of, random_evidence, random_vote
from tests.support.theorems import THEOREMS


def evidence(theorem="edge-centric/node", **options) -> VoteEvidence:
    return random_evidence(np.random.default_rng(2), theorem, **options)


@pytest.mark.parametrize("theorem", THEOREMS)
def test_evidence_survives_its_own_arrays_and_settings(theorem):
    proof = evidence(theorem)
    again = VoteEvidence.load(proof.tensors(), proof.settings())
    assert again.settings() == proof.settings()
    assert all(np.array_equal(a, proof.tensors()[name]) for name, a in again.tensors().items())


@pytest.mark.parametrize("theorem", THEOREMS)
def test_evidence_with_a_prior_survives_too(theorem):
    rng = np.random.default_rng(4)
    for _ in range(10):
        proof = evidence(theorem, voting_rule=random_vote(rng, theorem))
        again = VoteEvidence.load(proof.tensors(), proof.settings())
        assert again.voting_rule == proof.voting_rule
        assert all(np.array_equal(a, proof.tensors()[name]) for name, a in again.tensors().items())


WRONG_PRIORS = {
    "predictions that are none": (lambda t: {"no_edge": altered(t["no_edge"], -1)}, '"no_edge" has values'),
    "too few predictions": (lambda t: {"no_edge": t["no_edge"][1:]}, '"no_edge" has'),
    "too few flags": (lambda t: {"no_edge_stable": t["no_edge_stable"][1:]}, '"no_edge_stable" has'),
    "another constant": (lambda t: {"default": altered(t["default"], 1)}, "one and the same vote"),
}


@pytest.mark.parametrize("what", WRONG_PRIORS)
def test_impossible_priors_are_refused(what):
    change, reason = WRONG_PRIORS[what]
    proof = evidence(voting_rule=VotingRule("abstain", 3))
    with pytest.raises(CertificateError, match=reason):
        VoteEvidence.load(proof.tensors() | change(proof.tensors()), proof.settings())


def test_a_prior_that_follows_something_else_than_what_empty_groups_cast_is_refused():
    proof = evidence(voting_rule=VotingRule("no_edge", 3))
    other = altered(proof.no_edge, (proof.no_edge[0] + 1) % 3)
    with pytest.raises(CertificateError, match="but they do not"):
        VoteEvidence.load(proof.tensors() | {"no_edge": other}, proof.settings())


def test_predictions_are_there_exactly_if_the_prior_follows_them():
    plain, prior = evidence(), evidence(voting_rule=VotingRule("abstain", 3))
    with pytest.raises(CertificateError, match="expected"):
        VoteEvidence.load(prior.tensors(), prior.settings() | {"voting_rule": {"empty": "abstain", "prior": 0}})
    with pytest.raises(CertificateError, match="expected"):
        VoteEvidence.load(plain.tensors(), plain.settings() | {"voting_rule": {"empty": "no_edge", "prior": 3}})


def altered(array, value, place=0):
    array = array.copy()
    array[place] = value
    return array


WRONG_ARRAYS = {
    "a class that does not exist": ("vote", lambda a: altered(a, 3), '"vote" has values'),
    "a class below abstaining": ("default", lambda a: altered(a, -2), '"default" has values'),
    "a group that does not exist": ("group", lambda a: altered(a, 12, -1), '"group" has values'),
    "groups out of order": ("group", lambda a: a[::-1].copy(), "does not ascend"),
    "too few votes": ("vote", lambda a: a[:-1], '"vote" has'),
    "too few flags": ("stable", lambda a: a[:-1], '"stable" has'),
    "too few default flags": ("default_stable", lambda a: a[:-1], '"default_stable" has'),
    "rows that start late": ("indptr", lambda a: altered(a, 1), '"indptr" does not divide'),
    "rows that run backwards": ("indptr", lambda a: altered(a, a[-1] + 5, 3), '"indptr" does not divide'),
    "one row too many": ("indptr", lambda a: np.append(a, a[-1]), '"indptr" has'),
    "wide votes": ("vote", lambda a: a.astype(np.int64), '"vote" is int64'),
    "a table of votes": ("vote", lambda a: a[:, None], '"vote" is int16'),
    "an unreached vote": ("reached", lambda a: altered(a, False), "lists only votes that are reached"),
    "a reach table that stops early": ("reach", lambda a: altered(a, a[-1] - 1, -1), "number of reached votes"),
    "a reach table below zero": ("reach", lambda a: altered(a, -1), '"reach"'),
    "cover rows that are too few": ("reach_ptr", lambda a: a[:-1], '"reach_ptr" has'),
}


@pytest.mark.parametrize("what", WRONG_ARRAYS)
def test_impossible_arrays_are_refused(what):
    name, change, reason = WRONG_ARRAYS[what]
    proof = evidence()
    with pytest.raises(CertificateError, match=reason):
        VoteEvidence.load(proof.tensors() | {name: change(proof.tensors()[name])}, proof.settings())


def test_a_decreasing_cover_table_is_refused():
    proof = evidence()
    tensors = proof.tensors()
    row = int(np.argmax(np.diff(tensors["reach_ptr"])))
    start, stop = tensors["reach_ptr"][row : row + 2]
    assert stop - start > 1
    tensors["reach"] = altered(tensors["reach"], tensors["reach"][stop - 1] + 1, start)
    with pytest.raises(CertificateError, match="more nodes cannot reach fewer"):
        VoteEvidence.load(tensors, proof.settings())


WRONG_SETTINGS = {
    "an unknown theorem": ({"theorem": "edge-centric/nodes"}, 'did you mean "edge-centric/node"'),
    "a theorem that is no text": ({"theorem": 3}, "unknown theorem"),
    "unknown ids": ({"ids": "name"}, "unknown kind of ids"),
    "no groups": ({"num_groups": 0}, "num_groups is 0"),
    "more groups than can be laid out": ({"num_groups": 2**30}, "num_groups is 1073741824"),
    "half a class": ({"num_classes": 2.5}, "num_classes is 2.5"),
    "too few groups": ({"num_groups": 3}, '"group" has values'),
    "parameters of another rule": ({"parameters": {"edge_groups": 3}}, "parameters of the theorem"),
    "parameters that are a list": ({"parameters": [1]}, "settings are"),
    "an unknown setting": ({"temperature": 1}, "settings are"),
}


@pytest.mark.parametrize("what", WRONG_SETTINGS)
def test_impossible_settings_are_refused(what):
    change, reason = WRONG_SETTINGS[what]
    proof = evidence()
    with pytest.raises(CertificateError, match=reason):
        VoteEvidence.load(proof.tensors(), proof.settings() | change)


def test_missing_and_surplus_arrays_are_refused():
    proof = evidence()
    tensors = proof.tensors()
    with pytest.raises(CertificateError, match="arrays are"):
        VoteEvidence.load(tensors | {"more": tensors["group"]}, proof.settings())
    del tensors["reached"]
    with pytest.raises(CertificateError, match="arrays are"):
        VoteEvidence.load(tensors, proof.settings())


def test_rules_without_a_cover_table_refuse_one():
    proof, covered = evidence("node-centric/node"), evidence()
    with pytest.raises(CertificateError, match="has no reach table"):
        dataclasses.replace(proof, reach=covered.reach, reach_ptr=covered.reach_ptr)


def test_a_target_has_only_one_group_of_its_own():
    proof = evidence("gated/node")
    with pytest.raises(CertificateError, match="one group of its own"):
        dataclasses.replace(proof, votes=dataclasses.replace(proof.votes, reached=np.zeros_like(proof.votes.reached)))


@pytest.mark.parametrize("parameters", [{}, {"edge_groups": 3}, {"edge_groups": 5, "feature_groups": 4}])
def test_a_grid_must_make_the_groups(parameters):
    with pytest.raises(CertificateError):
        dataclasses.replace(evidence("gnncert-en/graph"), parameters=parameters)


def test_prices_are_whole_numbers_from_zero():
    for price in (-1, 0.5, True):
        with pytest.raises(CertificateError, match="parameters of the theorem"):
            dataclasses.replace(evidence("custom/node"), parameters={"add_edges": price})


def test_targets_are_worked_through_in_blocks_with_the_same_answers(monkeypatch):
    from agnncert.divided import evidence as votes

    proof, budget = evidence(num_targets=50), Budget(add_edges=1, delete_nodes=1)

    def answers():
        return (
            proof.holds(budget),
            proof.max_certified("add_edges", Budget()),
            proof.broken_at_most(budget),
            proof.possible(budget),
            proof.cheapest(Prices(add_edges=1, delete_nodes=2)),
            *proof.label_and_radius(),
        )

    whole = answers()
    monkeypatch.setattr(votes, "ENTRIES_AT_ONCE", 21)  # seven targets at a time
    assert all(np.array_equal(a, b) for a, b in zip(whole, answers(), strict=True))


def test_no_targets_are_no_problem():
    proof = evidence(num_targets=0)
    assert proof.holds(Budget()).shape == (0,)
    assert proof.broken_at_most(Budget(add_edges=1)) == 0
    assert proof.max_certified("add_edges", Budget()).shape == (0,)


BUDGETS = (
    Budget(add_edges=2, delete_edges=1),
    Budget(inject_nodes=1, edges_per_injected=3),
    Budget(delete_edges=math.inf, change_features=math.inf),
    Budget(change_features=1, target_features=True),
)


def test_rivals_without_a_vote_are_spoken_for_by_one_of_them():
    random = np.random.default_rng(7)
    for _ in range(20):
        proof = random_evidence(random, "edge-centric/node", num_targets=20)
        votes = dataclasses.replace(proof.votes, num_classes=int(random.integers(3, 40)))
        counted = count_votes(votes)
        limits = (np.sort(random.integers(0, 8, size=(3, 20)), axis=0)[::-1]).astype(float)
        reach = Limits(*limits, np.ones(20, dtype=bool))
        movable = counted.size[:, :, None] - counted.votes
        unlisted = np.minimum(movable[2], limits[2][:, None])
        beyond = np.minimum(movable[1] + unlisted, limits[1][:, None])
        for_any = np.minimum(movable[0] + beyond, limits[0][:, None])
        own = reach.limit(np.take_along_axis(counted.votes, counted.label[None, :, None], axis=2)[:, :, 0])
        safe = counted.margin >= own[:, None] + for_any
        assert np.array_equal(withstands(counted, reach), (safe | counted.is_label).all(axis=1))
        assert len(counted.rivals.owner) <= 20 * 4


@pytest.mark.parametrize("theorem", THEOREMS)
def test_what_a_file_states_are_the_answers_to_each_question(theorem):
    proof, rest = evidence(theorem, num_targets=25), Budget(delete_edges=math.inf)
    holds, broken, largest = proof.answers(BUDGETS, rest)
    assert all(np.array_equal(row, proof.holds(budget)) for row, budget in zip(holds, BUDGETS, strict=True))
    assert broken == tuple(proof.broken_at_most(budget) for budget in BUDGETS)
    assert np.array_equal(largest, proof.max_certified("add_edges", rest))
    assert proof.answers((), rest)[0].shape == (0, 25)


@pytest.mark.parametrize(("name", "other"), [("task", "graph"), ("ids", "row"), ("num_groups", 5)])
def test_a_claim_that_contradicts_the_votes_is_refused(name, other):
    cert = certificate_of(evidence())
    cert.evidence.check_claim(cert.claim)
    claim = dataclasses.replace(cert.claim, **{name: other})
    with pytest.raises(CertificateError, match=f"the claim says {name}={other!r}, the votes say"):
        cert.evidence.check_claim(claim)
    with pytest.raises(CertificateError, match=f"the claim says {name}"):
        dataclasses.replace(cert, claim=claim)


def test_votes_name_their_voting_rule_and_columns():
    proof = evidence(voting_rule=VotingRule("abstain", prior=2))
    cert = certificate_of(proof)
    assert cert.voting_rule == proof.voting_rule == VotingRule("abstain", prior=2)
    assert list(cert.count_columns()) == ["votes_0", "votes_1", "votes_2"]
    assert np.array_equal(cert.count_columns()["votes_1"], cert.counts[:, 1])


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_step_that_is_an_edge_or_a_neighbour_is_one_against_which_a_radius_holds(theorem):
    """The curve of what is possible at most counts neighbours of a target, so it belongs to these theorems alone."""
    proof = random_evidence(np.random.default_rng(5), theorem, 60, unstable=0)
    counted = {"edge-centric/node", "node-centric/node", "per-neighbour/node", "per-pair/node", "gnncert-e/node"}
    assert proof.counts_neighbours == (theorem in counted)
    if proof.counts_neighbours:
        _, radius = proof.label_and_radius()
        for size in range(4):
            assert proof.holds(Budget(add_edges=size))[radius >= size].all()
            assert not proof.holds(Budget(target_features=True)).any()
