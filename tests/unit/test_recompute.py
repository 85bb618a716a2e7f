"""``verify`` with graph and model: the prior that a file states is the one that follows from them."""

import dataclasses

import numpy as np
import pytest

import agnncert as ac
from agnncert.proving.certificate import Certificate

from ..support.small_graphs import node_model, random_graph


@pytest.fixture(scope="module")
def graph():
    return random_graph(12, 16)


def forged(certificate: Certificate, **evidence) -> Certificate:
    """A certificate whose statements all follow from altered evidence."""
    return Certificate(
        certificate.claim,
        dataclasses.replace(certificate.evidence, **evidence),
        certificate.target,
        certificate.row,
        certificate.truth,
        certificate.degree,
    )


def flipped(array, place=0):
    array = array.copy()
    array[place] = ~array[place] if array.dtype == bool else (array[place] + 1) % 3
    return array


@pytest.mark.parametrize("name", ["edgeless", "edgeless_stable"])
@pytest.mark.parametrize("division", [ac.EdgeCentric(6), ac.NodeCentric(6)], ids=str)
def test_an_invented_prior_is_found(graph, division, name, tmp_path):
    model = node_model()
    honest = ac.certify(model, graph, division, rule=ac.VotingRule("abstain", 4))
    lie = forged(honest, **{name: flipped(getattr(honest.evidence, name))})
    for cert, holds in ((honest, True), (lie, False)):
        cert.save(tmp_path / "a.cert")
        assert ac.verify(tmp_path / "a.cert").holds
        verdict = ac.verify(tmp_path / "a.cert", data=graph, model=model, recheck=40)
        assert verdict.holds == holds, verdict
    assert any("prior follows" in reason or "flags" in reason for reason in verdict.reasons)


def test_an_invented_vote_contradicts_the_claim(graph, tmp_path):
    honest = ac.certify(node_model(), graph, ac.NodeCentric(6), rule=ac.VotingRule("abstain", [0, 1, 0]))
    forged(honest, vote=ac.VotingRule("abstain", [0, 50, 0])).save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert")
    assert not verdict.holds
    assert any("claim" in reason for reason in verdict.reasons)


def test_ballots_of_empty_groups_are_compared_under_the_vote(graph, tmp_path):
    """A file that counts the edgeless ballots of a plain vote, although it says that empty groups abstain."""
    plain = ac.certify(node_model(), graph, ac.NodeCentric(6))
    voted = ac.certify(node_model(), graph, ac.NodeCentric(6), rule=ac.VotingRule(0))
    assert not np.array_equal(plain.evidence.votes.default, voted.evidence.votes.default)
    lie = Certificate(plain.claim, dataclasses.replace(plain.evidence, votes=voted.evidence.votes), plain.target)
    lie.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    verdict = ac.verify(tmp_path / "a.cert", data=graph, model=node_model())
    assert any("default ballots" in reason for reason in verdict.reasons)
