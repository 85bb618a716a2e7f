import numpy as np
import pytest

from agnncert.proof.claim import Claim
from agnncert.proof.samples import DeletionNoise, FlipNoise, SampleEvidence
from agnncert.proof.samples.evidence import sample_claim

COUNTS = np.array([[90, 10]])


def claim_of(noise, **more):
    return sample_claim(SampleEvidence("defence", noise, COUNTS, COUNTS, 0.05, **more))


def test_a_claim_tells_its_error_probability_and_what_it_is_spent_on():
    claim = claim_of(DeletionNoise(0.8, 0.9), scope="all targets together")
    assert (claim.guarantee, claim.alpha, claim.alpha_scope) == ("probabilistic", 0.05, "all targets together")


@pytest.mark.parametrize(
    ("noise", "covered", "not_covered"),
    [
        (FlipNoise(0.2, 0.2), "between existing nodes, anywhere", "Changed features."),
        (FlipNoise(0.2, 0.2, where="target row"), "at the target", "Edges between other nodes"),
        (FlipNoise(p_add_feature=0.2, num_features=3), "binary features", "Changed edges."),
        (DeletionNoise(0.8, 0.9), "Nodes injected", "Edges added or deleted"),
        (DeletionNoise(0.8, 0.9, "legacy-unsound"), "Nodes injected", "Anything at all"),
    ],
)
def test_a_claim_tells_what_the_noise_covers_and_what_not(noise, covered, not_covered):
    claim = claim_of(noise)
    assert covered in claim.covers[0]
    assert not_covered in claim.not_proved[0]
    assert claim.unit == noise.unit


def test_a_claim_survives_a_file():
    claim = claim_of(FlipNoise(0.01, 0.4, 0.1, 0.2, num_features=3), task="graph")
    assert Claim.from_json(claim.to_json()) == claim
