"""``verify`` with graph and model: the prior that a file states is the one that follows from them."""

import dataclasses

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.proving.certificate import Certificate
from tests.support.small_graphs import known_model, random_graph


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


@pytest.mark.parametrize("name", ["no_edge", "no_edge_stable"])
@pytest.mark.parametrize("division", [ac.EdgeCentric(6), ac.NodeCentric(6)], ids=str)
def test_an_invented_prior_is_found(graph, division, name, tmp_path):
    model = known_model()
    honest = ac.certify(model, graph, division, voting_rule=ac.VotingRule("abstain", 4))
    lie = forged(honest, **{name: flipped(getattr(honest.evidence, name))})
    for cert, holds in ((honest, True), (lie, False)):
        cert.save(tmp_path / "a.cert")
        assert ac.verify(tmp_path / "a.cert").holds
        verdict = ac.verify(tmp_path / "a.cert", data=graph, model=model, recheck=40)
        assert verdict.holds == holds, verdict
    assert any("prior follows" in reason or "flags" in reason for reason in verdict.reasons)


def test_an_invented_vote_contradicts_the_claim(graph, tmp_path):
    honest = ac.certify(known_model(), graph, ac.NodeCentric(6), voting_rule=ac.VotingRule("abstain", [0, 1, 0]))
    forged(honest, voting_rule=ac.VotingRule("abstain", [0, 50, 0])).save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert")
    assert not verdict.holds
    assert any("claim" in reason for reason in verdict.reasons)


def test_votes_of_empty_groups_are_compared_under_the_vote(graph, tmp_path):
    """A file that counts the no-edge votes of a plain vote, although it says that empty groups abstain."""
    plain = ac.certify(known_model(), graph, ac.NodeCentric(6))
    voted = ac.certify(known_model(), graph, ac.NodeCentric(6), voting_rule=ac.VotingRule(0))
    assert not np.array_equal(plain.evidence.votes.default, voted.evidence.votes.default)
    lie = Certificate(plain.claim, dataclasses.replace(plain.evidence, votes=voted.evidence.votes), plain.target)
    lie.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    verdict = ac.verify(tmp_path / "a.cert", data=graph, model=known_model())
    assert any("default votes" in reason for reason in verdict.reasons)


class Torn(torch.nn.Module):
    """Cannot tell the last two classes apart wherever it hears something."""

    def forward(self, x, edge_index):
        heard = x.new_zeros(len(x)).index_add(0, edge_index[1], x[edge_index[0], 0].abs() + 1)
        return torch.stack([1.0 - heard.sign(), heard, heard], dim=1)


def test_a_tie_called_an_abstention_is_found(graph, tmp_path):
    """Which class a tie is read as, machines may disagree about; that a vote was cast, they do not."""
    model = Torn()
    honest = ac.certify(model, graph, ac.EdgeCentric(6))
    votes = honest.evidence.votes
    torn = ~votes.stable & (votes.vote == 1)
    assert torn.any()
    lie = forged(honest, votes=dataclasses.replace(votes, vote=np.where(torn, -1, votes.vote).astype(np.int16)))
    for cert, holds in ((honest, True), (lie, False)):
        cert.save(tmp_path / "a.cert")
        verdict = ac.verify(tmp_path / "a.cert", data=graph, model=model)
        assert verdict.holds == holds, verdict
    assert "listed votes are not those that the model casts" in verdict.reasons[0]
