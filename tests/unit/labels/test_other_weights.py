"""Weights that differ by less than machines do must not let a file state more than the weights computed here prove."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import agnncert as ac
from agnncert.labels.defence import LABELS_PER_STEP, STEPS_APART
from agnncert.labels.evidence import LabelEvidence
from agnncert.labels.statements import _withstands_more
from agnncert.proving.certificate import Certificate
from agnncert.verifier.recount_joint import Left

TARGETS = 150  # those whose label leads by least
DEFENCES = {
    "box": ac.LabelVotes(box=True),
    "cut": ac.LabelVotes(),
    "any label": ac.LabelVotes(candidates="all", num_labels=700),
    "labels and edges": ac.LabelVotes(neighbour_votes=0.02),
}


@pytest.fixture(scope="module")
def data():
    return ac.load_dataset("digits-knn", split="by-id")


@pytest.fixture(scope="module", params=DEFENCES, ids=str)
def made(request, data):
    model = ac.fit(None, data, DEFENCES[request.param])
    rows = data.test_mask.nonzero().view(-1)
    first, second = np.sort(model.defence.scores(model, data, rows), axis=1)[:, :-3:-1].T
    is_ahead = np.flatnonzero(first - second > 1)
    closest = is_ahead[np.argsort((first - second)[is_ahead])[:TARGETS]]
    return model, ac.certify(model, data, model.defence, rows[np.sort(closest)])


def with_weights(certificate, weights):
    """Returns the certificate with other weights of label votes, which stand in a table of their own."""
    evidence = certificate.evidence
    votes = getattr(evidence, "voters", evidence)
    number, candidates = weights.shape
    none = {"left": np.zeros((number, 0), np.int16), "right": np.zeros((candidates, 0), np.int16)}
    none |= {"cap": np.ones(number, dtype=np.int64)}
    forged = replace(votes, **none, weights=weights.astype(np.int8))
    known = (certificate.target, certificate.row, certificate.truth, certificate.degree)
    return Certificate(certificate.claim, forged if votes is evidence else replace(evidence, voters=forged), *known)


def votes_of(certificate):
    evidence = certificate.evidence
    return getattr(evidence, "voters", evidence)


def pushed(votes: LabelEvidence, toward_second: bool):
    """Returns weights that differ by as much as is let pass, all of it for one class and against another one."""
    weights = votes._weights(slice(None)).astype(np.int64)
    order = np.argsort(votes.counts, axis=1)
    best, second = order[:, -1], order[:, -2]
    raised, lowered = (second, best) if toward_second else (best, second)
    for row, weight in enumerate(weights):
        room = STEPS_APART + votes.num_candidates // LABELS_PER_STEP
        side = (votes.label_of == raised[row]).astype(int) - (votes.label_of == lowered[row])
        for place in np.flatnonzero(side * (np.arange(len(side)) != votes.own[row])):
            step = np.clip(weight[place] + side[place] * min(STEPS_APART, room), -127, 127) - weight[place]
            weight[place] += step
            room -= abs(step)
    return weights


@pytest.mark.parametrize("toward_second", [True, False], ids=["other labels", "larger radii"])
def test_a_forger_who_uses_all_that_machines_may_differ_by_is_refused(toward_second, data, made, tmp_path):
    model, certificate = made
    forged = with_weights(certificate, pushed(votes_of(certificate), toward_second))
    is_lie = (forged.label != certificate.label) | (forged.radius > certificate.radius)
    assert is_lie.any()
    forged.save(tmp_path / "forged.cert")
    assert ac.verify(tmp_path / "forged.cert").holds  # nothing is wrong with its arithmetic
    for given in ({"data": data}, {"data": data, "model": model}):
        verdict = ac.verify(tmp_path / "forged.cert", **given)
        assert not verdict.holds
        assert all("with the weights that are computed here" in reason for reason in verdict.reasons)


def test_one_target_whose_radius_is_too_large_is_enough(data, made, tmp_path):
    model, certificate = made
    votes = votes_of(certificate)
    raised = pushed(votes, toward_second=False)
    of_target = getattr(certificate.evidence, "target", np.arange(TARGETS))
    for target in np.flatnonzero(with_weights(certificate, raised).radius > certificate.radius):
        weights = votes._weights(slice(None)).astype(np.int64)
        weights[of_target[target]] = raised[of_target[target]]
        forged = with_weights(certificate, weights)
        if forged.radius[target] > certificate.radius[target]:
            break
    assert (forged.radius > certificate.radius).any()
    forged.save(tmp_path / "forged.cert")
    verdict = ac.verify(tmp_path / "forged.cert", data=data, model=model)
    assert not verdict.holds
    assert "fewer changes withstood" in verdict.reasons[-1]


def test_a_file_of_another_machine_that_proves_no_more_holds_and_says_what_was_not_checked(data, made, tmp_path):
    model, certificate = made
    votes = votes_of(certificate)
    weights = votes._weights(slice(None)).astype(np.int64)
    evidence = certificate.evidence
    rows = np.arange(len(weights))
    if evidence is not votes:  # a neighbour that turns sooner is not always worse for a target
        rows = np.setdiff1d(evidence.target, evidence.neighbour)
    assert len(rows)
    label = votes.counts.argmax(axis=1)
    label[getattr(evidence, "target", rows)] = certificate.label
    may_fall = (weights > 0) & (votes.label_of == label[:, None])
    for row in rows:
        places = np.flatnonzero(may_fall[row])
        weights[row, places[np.argmin(weights[row, places])]] -= 1  # the one that an attacker would change last
    other = with_weights(certificate, weights)
    assert (other.label == certificate.label).all()
    other.save(tmp_path / "other.cert")
    verdict = ac.verify(tmp_path / "other.cert", data=data, model=model)
    assert verdict.holds, verdict
    assert any("prices of attacks" in what for what in verdict.not_checked)


def test_more_is_withstood_exactly_if_some_attack_is():
    """All small numbers of edges, tried one by one."""
    numbers = range(5)
    for lead, sure, lead_here, sure_here, each in itertools.product(
        range(-4, 6), range(3), range(-4, 6), range(3), (0, 2)
    ):
        tables = [np.array([[number]]) for number in (lead, sure, lead_here, sure_here)]
        stated = Left(np.array([0]), tables[0], tables[1])
        known = Left(np.array([0]), tables[2], tables[3])

        def withstands(table, added, deleted, each=each):
            return int(table.lead[0, 0]) >= each * (added + min(deleted, int(table.sure[0, 0])))

        tried = any(withstands(stated, a, d) and not withstands(known, a, d) for a in numbers for d in numbers)
        assert _withstands_more(stated, known, each).tolist() == [tried]
