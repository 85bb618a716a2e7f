"""Certificate: what a user asks, and what is printed."""

import dataclasses
import math

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.errors import BudgetError, CertificateError, SettingsError
from agnncert.proving.certificate import Certificate
from tests.support.certificates import certificate_of, random_evidence

INF = math.inf


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def cert(rng) -> Certificate:
    rows = rng.permutation(100)[:30]
    return certificate_of(random_evidence(rng, "edge-centric/node"), row=rows, truth=rng.integers(0, 3, 30))


def test_labels_radii_and_counts_are_those_of_the_evidence(cert):
    label, radius = cert.evidence.label_and_radius()
    assert cert.label.tolist() == label.tolist() == cert.counts.argmax(axis=1).tolist()
    assert cert.radius.tolist() == radius.tolist()
    assert cert.target[0] == 7


def test_certified_accuracy_counts_labels_that_are_correct_and_proved(cert):
    by_hand = [np.mean((cert.label == cert.truth) & (cert.radius >= size)) for size in (0, 1, 3)]
    assert cert.certified_accuracy(sizes=[0, 1, 3]).tolist() == by_hand
    assert cert.certified_accuracy(cert.truth, sizes=1) == by_hand[1]
    assert isinstance(cert.certified_accuracy(), float)
    assert cert.certified_accuracy(sizes=INF) == 0


def test_true_classes_of_the_whole_data_are_picked_by_row(cert):
    whole = np.full(100, 99)
    whole[cert.row] = cert.truth
    assert cert.certified_accuracy(whole, sizes=[0, 2]).tolist() == cert.certified_accuracy(sizes=[0, 2]).tolist()
    assert cert.certified_accuracy(whole.tolist()) == cert.certified_accuracy()


def test_targets_of_no_known_class_count_neither_as_correct_nor_as_wrong(cert):
    some = cert.truth.copy()
    some[::3] = -1
    known = dataclasses.replace(cert, truth=some)
    by_hand = np.mean((cert.label == some)[some >= 0])
    certified = np.mean(((cert.label == some) & (cert.radius >= 1))[some >= 0])
    assert known.certified_accuracy(sizes=1) == certified == cert.certified_accuracy(some, sizes=1)
    assert known.labelled.tolist() == (some >= 0).tolist()
    assert f"{by_hand:.1%} of the 20 targets whose class is known" in str(known)
    with pytest.raises(SettingsError, match="none of the 30 targets has a true class"):
        cert.certified_accuracy(np.full(30, -1))
    assert "correct" not in str(dataclasses.replace(cert, truth=np.full(30, -1))).split("Covered")[0]


def test_missing_or_misshapen_true_classes_are_refused(cert):
    with pytest.raises(SettingsError, match="holds no true classes"):
        dataclasses.replace(cert, truth=None).certified_accuracy()
    with pytest.raises(SettingsError, match="29 true classes were given for 30 targets"):
        cert.certified_accuracy([0] * 29)


def test_budgets_are_answered_by_the_evidence(cert):
    budget = Budget(add_edges=1, delete_edges=INF)
    assert cert.holds_against(budget).tolist() == cert.evidence.holds(budget).tolist()
    with pytest.raises(BudgetError, match="expected a Budget, got int"):
        cert.holds_against(3)


def test_the_largest_of_one_kind_takes_the_rest_of_the_budget_as_fields(cert):
    largest = cert.max_certified("inject_nodes", edges_per_injected=INF)
    assert largest.tolist() == cert.evidence.max_certified("inject_nodes", Budget(edges_per_injected=INF)).tolist()
    with pytest.raises(BudgetError, match='did you mean "add_edges"'):
        cert.max_certified("add_edge")
    with pytest.raises(BudgetError, match='did you mean "delete_edges"'):
        cert.max_certified("add_edges", delete_edgs=3)
    with pytest.raises(BudgetError, match="what is searched for"):
        cert.max_certified("add_edges", add_edges=3)
    with pytest.raises(BudgetError, match="target_features"):
        cert.max_certified("target_features")


def test_new_neighbours_are_what_is_withstood_when_all_else_is_unlimited(cert, rng):
    everything = {"delete_edges": INF, "change_edges": INF, "change_features": INF}
    assert cert.new_neighbours.tolist() == cert.max_certified("add_edges", **everything, delete_nodes=INF).tolist()
    by_row = certificate_of(random_evidence(rng, "node-centric/node", ids="row"))
    assert by_row.new_neighbours.tolist() == by_row.max_certified("add_edges", **everything).tolist()
    assert (by_row.new_neighbours >= 0).any()
    graphs = certificate_of(random_evidence(rng, "node-centric/graph"))
    assert set(graphs.new_neighbours) == {-1.0}


def test_new_neighbours_alone_come_without_any_other_change(cert, rng):
    assert cert.new_neighbours_alone.tolist() == cert.max_certified("add_edges").tolist()
    assert (cert.new_neighbours_alone >= cert.new_neighbours).all()
    assert (cert.new_neighbours_alone > cert.new_neighbours).any()
    assert cert.columns()["new_neighbours_alone"].tolist() == cert.new_neighbours_alone.tolist()
    by_any = dataclasses.replace(cert, evidence=random_evidence(rng, "custom/node", num_targets=30))
    assert "new_neighbours" not in by_any.columns()  # of unlimited deletions nothing is proved here
    assert "new_neighbours_alone" in by_any.columns()
    assert "new_neighbours_alone" not in certificate_of(random_evidence(rng, "node-centric/graph")).columns()


def test_broken_targets_can_be_counted_among_the_correct_ones(cert):
    budget = Budget(add_edges=100)
    correct = cert.label == cert.truth
    some = cert.broken_at_most(budget, targets=correct)
    assert some == cert.broken_at_most(budget, targets=np.flatnonzero(correct))
    assert some <= min(correct.sum(), cert.broken_at_most(budget))
    with pytest.raises(SettingsError, match="mask of shape"):
        cert.broken_at_most(budget, targets=np.ones(3, dtype=bool))


def test_a_target_named_twice_is_refused(rng):
    proof = random_evidence(rng, "edge-centric/node", num_targets=2)
    with pytest.raises(CertificateError, match='"target" names 5 more than once'):
        certificate_of(proof, target=[5, 5])
    with pytest.raises(CertificateError, match="expected one entry for each target"):
        certificate_of(proof, target=[5])
    with pytest.raises(CertificateError, match="expected integers or strings"):
        certificate_of(proof, target=[0.5, 1.5])
    with pytest.raises(CertificateError, match='"target" names 5 more than once'):
        certificate_of(proof, target=[5, "5"])
    with pytest.raises(CertificateError, match="not valid Unicode"):
        certificate_of(proof, target=["a", "\udc80"])
    assert certificate_of(proof, target=["a", "b"]).target.tolist() == ["a", "b"]
    assert certificate_of(proof, target=["a", "a\0"]).target.tolist() == ["a", "a\0"]
    assert certificate_of(proof, target=np.array([1, 2**63], dtype=np.uint64)).target.tolist() == [1, 2**63]


def test_a_claim_that_contradicts_its_votes_is_refused(cert):
    with pytest.raises(CertificateError, match="task='graph', the votes say 'node'"):
        Certificate(dataclasses.replace(cert.claim, task="graph"), cert.evidence, cert.target)


def test_printing_says_what_is_proved_assumed_and_not_proved(cert):
    text = str(cert)
    for phrase in ("30 nodes in 3 classes", "deterministic", "radius", "new neighbours", "Covered:", "Assumed:"):
        assert phrase in text
    assert "The target's own features are unchanged." in text
    assert "23" * 32 in text  # the model is named by its digest
    assert "without any edges" in text  # what a radius above the degree means
    assert len(repr(cert)) < 80


def test_possible_labels_and_what_is_excluded(rng):
    cert = certificate_of(random_evidence(rng, "node-centric/node", num_classes=4))
    budget = Budget(add_edges=2)
    possible = cert.possible(budget)
    assert possible.shape == (cert.num_targets, 4)
    assert (cert.excluded(2, budget) == ~possible[:, 2]).all()
    assert not cert.excluded(2, budget)[cert.label == 2].any()
    assert (cert.possible(2) == possible).all()  # two edges move any two votes
    assert cert.possible(Budget(target_features=True)).all()  # nothing is proved about it
    with pytest.raises(SettingsError, match=r"label=4: the classes are 0 to 3"):
        cert.excluded(4, budget)
    for wrong in ("3 edges", None, True):
        with pytest.raises(BudgetError, match="expected a Budget"):
            cert.possible(wrong)


def test_prices_of_targets_and_of_labels(rng):
    cert = certificate_of(random_evidence(rng, "node-centric/node", num_classes=3, unstable=0))
    prices = Prices(add_edges=2, delete_edges=3)
    cost = cert.cheapest(prices)
    alone = cert.max_certified("add_edges")
    assert (cost <= 2 * (alone + 1)).all()
    assert (cert.cheapest(Prices(add_edges=2)) == 2 * (alone + 1)).all()
    each = np.stack([cert.cheapest(prices, label) for label in range(3)], axis=1)
    assert (each[np.arange(30), cert.label] == 0).all()
    assert (np.where(each == 0, INF, each).min(axis=1) == cost).all()
    for total in (0, 3, 7.5):
        held = cert.holds_against(Prices(add_edges=2, delete_edges=3, total=total))
        assert (held == (cost > total)).all()
        possible = cert.possible(Prices(add_edges=2, delete_edges=3, total=total))
        assert ((possible.sum(axis=1) == 1) == held).all()
        assert (cert.excluded(1, Prices(add_edges=2, delete_edges=3, total=total)) == ~possible[:, 1]).all()
    assert not cert.holds_against(Prices(add_edges=0.1, total=0.1 * 3))[alone == 2].any()  # 0.1 * 3 > 0.3
    assert np.isinf(cert.cheapest(Prices())).all()
    assert (cert.cheapest(Prices(add_edges=0)) == np.where(np.isinf(alone), INF, 0)).all()
    with pytest.raises(BudgetError, match="add total="):
        cert.holds_against(prices)
    with pytest.raises(BudgetError, match="expected Prices, got Budget"):
        cert.cheapest(Budget(add_edges=1))
    with pytest.raises(SettingsError, match="label=3: the classes are 0 to 2"):
        cert.cheapest(prices, label=3)


@pytest.mark.parametrize("wrong", [-1, math.nan, "2", True, None])
def test_a_price_is_a_number_from_0_on(wrong):
    with pytest.raises(BudgetError, match=r"Prices\(add_edges=.*expected a number from 0 on"):
        Prices(add_edges=wrong)
