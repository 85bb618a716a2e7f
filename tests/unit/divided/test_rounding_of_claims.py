"""What a certificate says about rounding, and how it is recomputed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import agnncert as ac
from agnncert.certificates.claim import Claim, expected_claim
from agnncert.proving.certificate import Certificate
from tests.support.graphs import random_data


def data_and_certificate(model_name: str = "gcn"):
    data = random_data(21, largest=24, smallest=24, density=0.2)
    data.node_id = torch.arange(24)
    model = ac.build_model(model_name, data, hidden_channels=8, out_channels=3).eval()
    return data, model, ac.certify(model, data, ac.EdgeCentric(4))


def restated(certificate: Certificate, rounding: str) -> Certificate:
    """The same votes with another statement about rounding."""
    claim = expected_claim(replace(certificate.claim, rounding=rounding), certificate.evidence)
    return replace(certificate, claim=claim)


@pytest.mark.parametrize("model_name", ["gcn", "gat"])
def test_votes_that_a_bound_decided_are_verified(model_name):
    data, model, certificate = data_and_certificate(model_name)
    verdict = ac.verify(certificate, data=data, model=model)
    assert verdict.holds, verdict
    assert not any("exact arithmetic" in each for each in verdict.not_checked)


def test_a_file_that_does_not_state_how_votes_were_decided_is_read_as_watched():
    data, model, certificate = data_and_certificate()
    old = restated(certificate, "")
    assert "rounding" not in old.claim.to_json()
    assert Claim.from_json(old.claim.to_json()).rounding == ""
    assert any("four times the change observed" in each for each in old.claim.assumes)
    assert ac.verify(old, data=data, model=model).holds


class Own(nn.Module):
    """A class that nobody has read around a known model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.model(x, edge_index)


def test_a_bound_that_is_not_known_here_is_said_not_to_be_checked():
    data, model, _ = data_and_certificate()
    certificate = ac.certify(Own(model).eval(), data, ac.EdgeCentric(4))
    assert certificate.claim.rounding == "watched"
    forged = restated(certificate, "float32")
    verdict = ac.verify(forged, data=data, model=Own(model).eval())
    assert any("exact arithmetic" in each for each in verdict.not_checked)


def test_a_vote_that_is_not_that_of_exact_arithmetic_is_refuted():
    data, model, certificate = data_and_certificate()
    votes = certificate.evidence.votes
    other = votes.vote.copy()
    place = int(np.flatnonzero(votes.stable)[0])
    other[place] = (other[place] + 1) % 3
    evidence = type(certificate.evidence).from_votes(
        replace(votes, vote=other),
        certificate.evidence.theorem,
        certificate.evidence.voting_rule,
        (certificate.evidence.reach_ptr, certificate.evidence.reach),
        ids=certificate.evidence.ids,
        parameters=certificate.evidence.parameters,
    )
    altered = replace(certificate, evidence=evidence)
    assert not ac.verify(altered, data=data, model=model).holds
