"""What a file states is accepted exactly if it follows from the evidence in the file."""

import dataclasses

import numpy as np
import pytest

from agnncert.certificates.claim import PREMISES
from agnncert.verdict import verify
from tests.support.certificates import certificate_of, random_budget, random_evidence
from tests.support.theorems import THEOREMS


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("theorem", THEOREMS)
def test_any_stated_budget_verifies(theorem, rng, tmp_path):
    cert = certificate_of(random_evidence(rng, theorem, num_targets=40))
    cert.save(tmp_path / "a.cert", budgets=[random_budget(rng) for _ in range(25)])
    verdict = verify(tmp_path / "a.cert")
    assert verdict.holds, verdict.reasons
    assert "25 stated budgets" in verdict.checked


def test_votes_altered_by_someone_who_seals_again_do_not_support_the_statements(rng, tmp_path):
    """Handing the winner's votes to a rival must show, whichever target it is."""
    proof = random_evidence(rng, "node-centric/node", num_targets=12)
    cert = certificate_of(proof)
    for target in range(12):
        listed = slice(proof.votes.indptr[target], proof.votes.indptr[target + 1])
        vote, default = proof.votes.vote.copy(), proof.votes.default.copy()
        rival = (cert.label[target] + 1) % 3
        vote[listed] = default[target] = rival
        changed = dataclasses.replace(proof, votes=dataclasses.replace(proof.votes, vote=vote, default=default))
        forged = certificate_of(changed)
        for name in ("label", "radius"):
            object.__setattr__(forged, name, getattr(cert, name))
        forged.save(tmp_path / "a.cert")
        assert any("does not follow from the votes" in reason for reason in verify(tmp_path / "a.cert").reasons)


@pytest.mark.parametrize("change", [{"unit": "one thing"}, {"assumes": PREMISES}, {"locality": "construction"}])
def test_the_words_of_another_version_of_the_library_must_be_ours(rng, tmp_path, change):
    cert = certificate_of(random_evidence(rng, "gated/node"))
    older = dataclasses.replace(cert.claim, library_version="0.0.1")
    dataclasses.replace(cert, claim=older).save(tmp_path / "a.cert")
    assert verify(tmp_path / "a.cert").holds
    dataclasses.replace(cert, claim=dataclasses.replace(older, **change)).save(tmp_path / "a.cert")
    assert "is not what its evidence allows it to say" in verify(tmp_path / "a.cert").reasons[0]


def test_the_rule_must_be_that_of_the_division(rng, tmp_path):
    """With the gated rule, the votes of a node-centric division would cover the target's own features."""
    cert = certificate_of(random_evidence(rng, "gated/node"))
    ungated = dataclasses.replace(cert.claim, division="node-centric(T=12, hash=md5, key=u64le)")
    dataclasses.replace(cert, claim=ungated).save(tmp_path / "a.cert")
    assert 'has the theorem "node-centric/node"' in verify(tmp_path / "a.cert").reasons[0]


def test_the_digest_of_the_division_must_be_that_of_its_text(rng, tmp_path):
    cert = certificate_of(random_evidence(rng, "gated/node"))
    claim = dataclasses.replace(cert.claim, digests={**cert.claim.digests, "division": "00" * 32})
    dataclasses.replace(cert, claim=claim).save(tmp_path / "a.cert")
    assert "digest of the division" in verify(tmp_path / "a.cert").reasons[0]
