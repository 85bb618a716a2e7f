"""What the claim of stacked votes says, and what a verifier does not let it leave out."""

from dataclasses import replace

import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import ModelContractError
from agnncert.proving.words import Subject
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import STEPS
from agnncert.stacked.words import stacked_words
from tests.unit.stacked.test_numbers import FEATURES, Shares, model_of, ring


def weakened(path, locality):
    """The same file with another word for how locality is known, and the sentences that go with it."""
    contents = read_contents(path)
    record = ac.load_certificate(path).evidence
    claim = make_stacked_claim(record, digests=contents.claim.digests, locality=locality, notes=contents.claim.notes)
    write_contents(path, replace(contents, claim=claim))


def test_a_claim_that_does_not_say_how_locality_is_known_is_refused(tmp_path):
    data, model = ring(), model_of([Shares()])
    certificate = ac.certify(model, data, model.defence)
    assert certificate.claim.locality == "test"
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    weakened(tmp_path / "a.cert", "")
    verdict = ac.verify(tmp_path / "a.cert")
    assert not verdict.holds
    assert "does not say how it is known" in verdict.reasons[0]
    assert not ac.verify(tmp_path / "a.cert", data=data, model=model).holds


def test_models_of_layers_that_were_read_are_local_by_construction():
    model = model_of()
    assert ac.certify(model, ring(), model.defence).claim.locality == "construction"
    mixed = model_of([torch.nn.Linear(FEATURES, 2), Shares()])
    assert ac.certify(mixed, ring(), mixed.defence).claim.locality == "test"


def test_features_that_were_computed_from_edges_are_refused():
    data, model = ring(), model_of()
    data.edge_index = torch.triu_indices(len(data.x), len(data.x), offset=1)
    data.x[:, 1] = torch.bincount(data.edge_index[1], minlength=len(data.x))
    with pytest.raises(ModelContractError, match=r"column 1.*follows the number of edges"):
        ac.certify(model, data, model.defence)


def without_votes(**settings):
    model = model_of(**settings)
    model.use_votes.zero_()
    return model


@pytest.mark.parametrize("settings", [{}, {"levels": 2}, {"gated": True}, {"combine": "mean"}], ids=str)
def test_a_model_that_ignores_edges_is_called_what_it_is(settings):
    data, model = ring(), without_votes(**settings)
    certificate = ac.certify(model, data, model.defence)
    claim = str(certificate.claim)
    assert "plus the" not in claim
    assert "one vote for each neighbour" not in claim
    assert "the votes of neighbours have the factor 0" in claim
    assert "Edges have no vote in this model, so all that is proved is about a model without edges" in claim
    text = str(ac.certify(model_of(**settings), data, model.defence).claim)
    assert "one vote for each neighbour" in text
    assert "no vote in this model" not in text


def test_trusted_edges_are_named_where_others_have_no_vote():
    data, model = ring(True), without_votes(trusted=0)
    claim = ac.certify(model, data, model.defence).claim
    assert "sees no edge but the trusted ones" in claim.not_proved[-1]
    assert any("own features and on its trusted edges alone" in sentence for sentence in claim.assumes)


def test_no_size_is_named_where_any_number_of_edges_leaves_the_label():
    data = ring()
    certificate = ac.certify(without_votes(), data, ac.StackedVotes())
    words = stacked_words(certificate.evidence, Subject(certificate.claim))
    assert words.deed.times(9_999) == words.deed.times(1) == "changes any number of edges or other nodes"


def test_the_claim_says_how_rounding_is_known():
    data, model = ring(), model_of([Shares()])
    claim = ac.certify(model, data, model.defence).claim
    assert claim.assumes[-1] == (
        "Computing a score, a factor or a vote again in float64, on any machine, changes it by at most 1 of "
        f"{STEPS:,} steps of one vote; known by computing them again in another order of rows, which could have refuted "
        "it but cannot prove it."
    )


def test_factors_are_part_of_the_claim_where_they_are_computed():
    data = ring()
    for settings, is_said in (({}, False), ({"gated": True}, True), ({"combine": "mean"}, True)):
        model = model_of(**settings)
        with torch.no_grad():
            model.mean_scale.fill_(0.5)
        claim = str(ac.certify(model, data, model.defence).claim)
        assert ("times a factor for each class" in claim) == is_said
