"""Append-only scores as a defence: fit, threshold, certify, verify, and files that say more than is true."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.append.evidence import AppendEvidence
from agnncert.errors import CertificateError
from agnncert.verifier import recount_append
from tests.support.append_graphs import appended, payments

APPENDED = ac.Budget(add_edges=math.inf, inject_nodes=math.inf)
DEFENCE = ac.AppendOnly(threat="ledger", deletions=2, trees=40, ensembles=1)


@pytest.fixture(scope="module")
def data():
    return payments()


@pytest.fixture(scope="module")
def point(data):
    model = ac.fit(None, data, DEFENCE, seed=1)
    return ac.choose_threshold(model, data, DEFENCE, false_positive_rate=0.2)


@pytest.fixture(scope="module")
def certificate(data, point):
    return ac.certify(point.model, data, point, data.test_mask)


def test_what_is_flagged_is_certified_against_any_number_of_appended_rows(certificate):
    flagged = certificate.label == 1
    assert 0 < flagged.sum() < len(flagged)
    assert np.array_equal(certificate.holds_against(APPENDED), flagged)
    assert np.array_equal(certificate.radius >= 0, flagged)
    assert (certificate.holds_against(APPENDED.but(delete_edges=2)) == (certificate.radius == 2)).all()
    assert not certificate.holds_against(ac.Budget(change_features=1)).any()
    assert certificate.holds_against(ac.Budget()).all()


def test_those_who_are_not_flagged_may_get_either_class(certificate):
    possible = certificate.possible(APPENDED)
    assert (possible.sum(axis=1) == np.where(certificate.label == 1, 1, 2)).all()
    assert certificate.broken_at_most(APPENDED) == (certificate.label == 0).sum()


def test_the_score_finds_most_of_the_fraud(certificate):
    fraud = certificate.truth == 1
    assert (certificate.label[fraud] == 1).mean() > 0.6


def test_a_file_is_verified_without_the_graph_and_with_it(certificate, data, point, tmp_path):
    certificate.save(tmp_path / "a.cert")
    alone = ac.verify(tmp_path / "a.cert")
    assert alone.holds
    assert any("features are those of the targets" in text for text in alone.not_checked)
    whole = ac.verify(tmp_path / "a.cert", data=data, model=point.model)
    assert whole.holds
    assert any("row by row" in text for text in whole.checked)
    loaded = ac.load_certificate(tmp_path / "a.cert")
    assert np.array_equal(loaded.radius, certificate.radius)


def test_another_graph_or_model_is_refused(certificate, data, point):
    other = appended(data, [(0, 1, 5.0)])
    assert not ac.verify(certificate, data=other, model=point.model).holds
    strange = ac.fit(None, data, DEFENCE, seed=2)
    assert not ac.verify(certificate, data=data, model=strange).holds


def test_the_claim_says_the_threat_and_that_everybody_can_be_framed(certificate):
    text = str(certificate.claim)
    assert "present payers" in text
    assert "accuse an honest one" in text
    assert "keeping the flag says the same" in text


def test_a_model_is_stored_and_loaded(point, data, tmp_path):
    ac.save_model(point.model, tmp_path / "model.safetensors")
    loaded = ac.load_model(tmp_path / "model.safetensors")
    assert np.array_equal(
        DEFENCE.scores(loaded, data, data.test_mask), DEFENCE.scores(point.model, data, data.test_mask)
    )
    assert ac.verify(ac.certify(loaded, data, DEFENCE, data.test_mask), data=data, model=loaded).holds
    assert ac.verify(ac.certify(point.model, data, DEFENCE, data.test_mask), data=data, model=loaded).holds


def test_weights_bring_their_program_along(point, data):
    empty = DEFENCE.untrained(None, data)
    empty.load_state_dict(point.model.state_dict())
    again = ac.certify(empty, data, DEFENCE, data.test_mask)
    assert again.claim.digests == ac.certify(point.model, data, DEFENCE, data.test_mask).claim.digests


def test_an_altered_model_is_refused(point, data):
    import copy

    altered = copy.deepcopy(point.model)
    altered.forward = lambda *_: torch.zeros(1)
    with pytest.raises(ac.errors.ModelContractError, match="altered"):
        ac.certify(altered, data, DEFENCE)


def test_the_threat_of_the_model_is_that_of_the_certificate(point, data):
    with pytest.raises(ac.errors.ModelContractError, match="made for"):
        ac.certify(point.model, data, ac.AppendOnly(threat="grow"))


def test_a_threshold_may_be_guaranteed(data):
    kept = ac.keep_for_threshold(data, 0.6, positive=1)
    model = ac.fit(None, kept, DEFENCE, seed=1)
    found = ac.choose_threshold(model, kept, DEFENCE, false_positive_rate=0.2, confidence=0.9)
    certificate = ac.certify(found.model, kept, found, kept.test_mask)
    assert certificate.claim.threshold.confidence == 0.9
    assert ac.verify(certificate, data=kept, model=found.model).holds


def test_the_other_class_may_be_flagged_too(data):
    defence = replace(DEFENCE, positive=0)
    model = ac.fit(None, data, defence, seed=1)
    certificate = ac.certify(model, data, defence, data.test_mask)
    assert np.array_equal(certificate.holds_against(APPENDED), certificate.label == 0)
    assert ac.verify(certificate).holds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threat": "everything"}, "threat"),
        ({"deletions": -1}, "deletions"),
        ({"trees": 0}, "trees"),
        ({"scales": {"amount": "cube"}}, "scales"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ac.errors.SettingsError, match=message):
        ac.AppendOnly(**settings)


# Files of a forger.


def forged(certificate, change):
    """Returns what the verifier finds wrong with a changed record."""
    return [*recount_append.refusals(change(certificate.evidence.record))]


def test_a_leaf_in_the_wrong_order_is_found_in_the_file(certificate):
    def swap(record):
        worth = record.trees.worth.copy()
        leaves = np.flatnonzero(record.trees.column < 0)
        worth[leaves] = -worth[leaves]
        return replace(record, trees=replace(record.trees, worth=worth))

    assert "wrong order" in forged(certificate, swap)[0]


def test_a_feature_that_can_fall_is_found_in_the_file(certificate):
    def add(record):
        program = record.program
        feature = ("sum", "in", ("below", ("far", ("sum", "in", ("number", 1))), 3))
        return replace(record, program=program.but(features=(feature, *program.features[1:])))

    assert "can fall" in forged(certificate, add)[0]


@pytest.mark.parametrize("positive", [2, -1, True])
def test_a_flagged_class_that_is_none_of_both_is_refused(certificate, positive):
    with pytest.raises(CertificateError, match=r"the flagged class is .* expected 0 or 1"):
        replace(certificate.evidence.record, positive=positive)


def test_a_file_under_another_threat_is_refused(certificate):
    found = forged(certificate, lambda record: replace(record, threat="grow"))
    assert found


def test_a_lower_threshold_than_that_of_the_model_is_found_with_the_model(certificate, data, point):
    record = certificate.evidence.record
    lower = AppendEvidence(replace(record, threshold=record.threshold - 2**22))
    other = replace(certificate, evidence=lower)
    assert (other.label == 1).sum() > (certificate.label == 1).sum()
    assert ac.verify(other).holds  # it is what these trees say above that threshold
    verdict = ac.verify(other, data=data, model=point.model)
    assert not verdict.holds
    assert "threshold" in str(verdict)


def test_features_that_the_graph_does_not_have_are_found_with_the_graph(certificate, data, point):
    record = certificate.evidence.record
    raised = AppendEvidence(replace(record, features=np.minimum(record.features + 1, 2**36)))
    verdict = ac.verify(replace(certificate, evidence=raised), data=data, model=point.model)
    assert not verdict.holds
