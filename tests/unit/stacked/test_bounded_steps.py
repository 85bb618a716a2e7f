"""A bound on rounding proves that machines agree up to a step of a vote, where all layers are known."""

from dataclasses import replace

import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.stacked import bounded_steps
from agnncert.stacked.bounded_steps import counted_errors, steps_are_proved
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import STEPS
from tests.unit.stacked.exact_stacked import exact_numbers
from tests.unit.stacked.test_numbers import FEATURES, KINDS, Shares, model_of, ring

NO_VALUES = {"edge_weight": None, "edge_attr": None}


def known_model(**settings):
    """Stacked votes on two networks whose layers are all known."""
    data = ring(edge_values="edge_channels" in settings)
    own = [ac.build_model("mlp", data, hidden_channels=8, num_layers=2, seed=seed).eval() for seed in (0, 1)]
    return model_of(own, **settings)


@torch.no_grad()
def off_by(model, x):
    """How far prior, gate and vote are from 60 digits, each divided by its bound."""
    exact = model._in_float64()
    rows = x.double()
    none = torch.zeros((2, 0), dtype=torch.int64)
    logits = exact.own_logits(rows)
    found = (exact.prior(logits), exact.gate(logits), exact.node_votes(logits, none))
    truth = exact_numbers(exact, rows)
    bounds = counted_errors(exact, rows, none, NO_VALUES)
    ratios = []
    for numbers, rows_of_truth, bound in zip(found, truth, bounds, strict=True):
        errors = [
            abs(type(value)(number) - value)
            for row, truth_row in zip(numbers.tolist(), rows_of_truth, strict=True)
            for number, value in zip(row, truth_row, strict=True)
        ]
        ratios.append(float(max(errors)) / bound)
    return ratios


@pytest.mark.parametrize("settings", [{}, {"gated": True}, {"combine": "mean"}, {"refine": True}])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e-3])
def test_no_number_is_further_from_the_truth_than_its_bound(settings, size):
    for seed in range(3):
        model = model_of([torch.nn.Linear(FEATURES, 2) for _ in range(2)], seed=seed, **settings)
        x = size * torch.randn(12, FEATURES, generator=torch.Generator().manual_seed(seed))
        assert max(off_by(model, x)) <= 1.0


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_claim_says_whether_it_is_proved_that_machines_agree(kind, tmp_path):
    data = ring("edge values" in kind)
    model = known_model(**KINDS[kind])
    certificate = ac.certify(model, data, model.defence)
    is_proved = kind != "two levels"
    assert certificate.claim.rounding == ("float64" if is_proved else "")
    (sentence,) = [text for text in certificate.claim.assumes if "steps of one vote" in text]
    assert ("proved by a bound" in sentence) == is_proved
    assert ("computing them again" in sentence) != is_proved
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    assert ac.verify(tmp_path / "a.cert", data=data, model=model).holds


def test_a_module_that_nobody_has_read_is_watched():
    data, model = ring(), model_of([Shares()])
    assert ac.certify(model, data, model.defence).claim.rounding == ""


def test_a_claim_that_is_not_proved_here_is_refused(tmp_path):
    """The file alone cannot tell, the model can."""
    data, model = ring(), model_of([Shares()])
    ac.certify(model, data, model.defence).save(tmp_path / "a.cert")
    contents = read_contents(tmp_path / "a.cert")
    record = ac.load_certificate(tmp_path / "a.cert").evidence
    claim = make_stacked_claim(
        record, digests=contents.claim.digests, locality="test", notes=contents.claim.notes, rounding="float64"
    )
    write_contents(tmp_path / "a.cert", replace(contents, claim=claim))
    verdict = ac.verify(tmp_path / "a.cert", data=data, model=model)
    assert not verdict.holds
    assert "bound on rounding" in verdict.reasons[0]


def test_a_claim_of_another_rounding_is_refused(tmp_path):
    data, model = ring(), known_model()
    ac.certify(model, data, model.defence).save(tmp_path / "a.cert")
    contents = read_contents(tmp_path / "a.cert")
    write_contents(tmp_path / "a.cert", replace(contents, claim=replace(contents.claim, rounding="float32")))
    assert not ac.verify(tmp_path / "a.cert").holds


def test_numbers_that_lose_their_digits_are_not_proved():
    """Features of 1e14 that cancel are known to a few hundredths, which is more than a step."""
    data = ring()
    model = model_of([torch.nn.Linear(FEATURES, 2)])
    assert steps_are_proved(model, data.x, data.edge_index, NO_VALUES)
    with torch.no_grad():
        model.own[0].model.weight[:, 1] = -model.own[0].model.weight[:, 0]
    x = data.x.double().clone()
    x[:, :2] += 1e14
    assert not steps_are_proved(model, x, data.edge_index, NO_VALUES)
    x[0] = torch.inf
    assert not steps_are_proved(model, x, data.edge_index, NO_VALUES)


def test_constants_at_the_edge_of_a_step_are_not_proved():
    data, model = ring(), model_of(combine="mean")
    assert steps_are_proved(model, data.x, data.edge_index, NO_VALUES)
    with torch.no_grad():
        model.double().pseudo.copy_(torch.tensor(1000.5 / STEPS, dtype=torch.float64).log())
    assert not steps_are_proved(model, data.x, data.edge_index, NO_VALUES)


@pytest.mark.parametrize("forgotten", ["_softmax_error", "_log_softmax", "_network"])
def test_a_bound_that_forgets_a_part_is_caught(forgotten, monkeypatch):
    plain = getattr(bounded_steps, forgotten)

    def broken(*args):
        found = plain(*args)
        return 0 * found + 1e-30 if forgotten == "_softmax_error" else found._replace(error=0 * found.error)

    model, x = cancelling()
    assert max(off_by(model, x)) <= 1.0
    monkeypatch.setattr(bounded_steps, forgotten, broken)
    assert max(off_by(model, x)) > 1.0


@torch.no_grad()
def cancelling():
    """A model that adds and takes off features of 1e9, so that its logits lose half of their digits."""
    model = model_of([torch.nn.Linear(FEATURES, 2)], gated=True, refine=True)
    weight = model.own[0].model.weight
    weight[:, 1] = -weight[:, 0]
    x = torch.randn(40, FEATURES, generator=torch.Generator().manual_seed(0)).double()
    x[:, :2] += 1e9
    return model, x
