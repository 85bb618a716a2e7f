"""The words of a claim: they say exactly what the evidence answers, for votes and for samples."""

import json
import math

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim, make_claim
from agnncert.errors import CertificateError
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.samples import SampleEvidence, sample_claim
from tests.support.certificates import certificate_of, random_evidence
from tests.support.theorems import THEOREMS


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def cert(rng):
    return certificate_of(random_evidence(rng, "edge-centric/node"))


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize("ids", ["node_id", "row"])
def test_the_words_of_every_rule_say_exactly_what_its_answers_say(theorem, ids, rng):
    """The claim must not promise what holds_against refuses, nor the other way round."""
    proof = random_evidence(rng, theorem, ids=ids, unstable=0)
    claim = certificate_of(proof).claim
    own = proof.holds(Budget(target_features=True)).any()
    assert ("The target's own features are unchanged." in claim.assumes) == (not own and claim.task == "node")
    deleted = proof.holds(Budget(delete_nodes=1)).any()
    if THEOREMS[theorem].per_neighbour:  # groups are told without ids
        assert any("deleted with all" in words for words in claim.covers)
        assert deleted
    elif theorem.startswith(("edge-centric", "node-centric", "gated")):
        assert any("deleted with all" in words for words in claim.covers) == deleted == (ids == "node_id")
    assert any("Row numbers" in words for words in claim.assumes) == (ids == "row")
    assert len(claim.unit) > 10
    assert claim.task == theorem.split("/")[1]


def test_a_claim_survives_json(cert):
    stored = json.loads(json.dumps(cert.claim.to_json()))
    assert Claim.from_json(stored) == cert.claim


@pytest.mark.parametrize(
    ("field", "value"),
    [("task", "edge"), ("num_groups", -1), ("num_groups", 1.5), ("tolerance", math.nan), ("alpha", 1.0), ("covers", "all"),
     ("digests", ["x"]), ("guarantee", "certain"), ("ids", None), ("division", 3)],
)  # fmt: skip
def test_a_senseless_claim_is_refused(cert, field, value):
    with pytest.raises(CertificateError, match=field):
        Claim.from_json(cert.claim.to_json() | {field: value})


@pytest.mark.parametrize("value", [[[]], {"a": [1]}, [{}]])
def test_nested_values_are_refused_in_every_field(value, cert):
    for field in cert.claim.to_json():
        with pytest.raises(CertificateError, match="makes no sense"):
            Claim.from_json(cert.claim.to_json() | {field: value})


def test_a_claim_with_missing_or_unknown_fields_is_refused(cert):
    stored = cert.claim.to_json()
    with pytest.raises(CertificateError, match="fields"):
        Claim.from_json(stored | {"extra": 1})
    del stored["unit"]
    with pytest.raises(CertificateError, match="fields"):
        Claim.from_json(stored)
    with pytest.raises(CertificateError, match="fields"):
        Claim.from_json([1])


def test_without_a_tolerance_evaluations_must_agree_exactly():
    claim = make_claim(random_evidence(np.random.default_rng(0), "node-centric/node"), "d")
    assert any("the same vote" in words for words in claim.assumes)
    assert claim.library_version


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
        (DeletionNoise(0.8, 0.9, "legacy-unsound"), "Nodes injected", "Anything: the legacy test is unsound"),
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
