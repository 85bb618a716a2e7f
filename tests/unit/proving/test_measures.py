"""Measures per class: against every labelling that an attacker may choose, and against attacks on real graphs."""

from itertools import pairwise, product

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.errors import SettingsError
from agnncert.proving.measures import Measures, measured, own_or_any, rare_class, rate_of, target_weights
from tests.support.certificates import certificate_of, random_evidence

SETS = [np.array(marks, dtype=bool) for marks in product([False, True], repeat=3) if any(marks)]


def plain(label, truth, num_classes=3):
    """Recall, precision, false positive rate of each class, and accuracy, of labels that are known; None if undefined."""
    rows = []
    for k in range(num_classes):
        is_class, gets = truth == k, label == k
        hit = (is_class & gets).sum()
        rows.append(
            (
                hit / is_class.sum() if is_class.any() else None,
                hit / gets.sum() if gets.any() else None,
                (gets & ~is_class).sum() / (~is_class).sum() if (~is_class).any() else None,
            )
        )
    return rows, (label == truth).mean()


@pytest.mark.parametrize("truth", [(0, 0, 0), (0, 0, 1), (0, 1, 2), (2, 2, 0)], ids=str)
def test_every_bound_holds_for_all_labellings_and_is_reached_by_one_that_reaches_all(truth):
    truth = np.array(truth)
    for chosen in product(SETS, repeat=3):
        possible = np.array(chosen)
        found = measured(possible, truth)
        outcomes = [plain(np.array(label), truth) for label in product(*(np.flatnonzero(row) for row in possible))]
        for k in range(3):
            for number, bound, worst in (
                (0, found.recall, min),
                (1, found.precision, min),
                (2, found.false_positive_rate, max),
            ):
                seen = [rows[k][number] for rows, _ in outcomes]
                defined = [value for value in seen if value is not None]
                if np.isnan(bound[k]):
                    assert None in seen  # nothing can be said: there is a labelling for which it is not defined
                else:
                    assert bound[k] == worst(defined)
        assert found.accuracy == min(accuracy for _, accuracy in outcomes)
        lowest = [min(rows[k][0] for rows, _ in outcomes) for k in range(3) if (truth == k).any()]
        assert found.balanced_accuracy == pytest.approx(np.mean(lowest))
        balanced = [np.mean([rows[k][0] for k in range(3) if (truth == k).any()]) for rows, _ in outcomes]
        assert found.balanced_accuracy == pytest.approx(min(balanced))  # one labelling is the worst for all classes


def test_each_class_is_attacked_by_one_labelling_which_is_the_worst_for_recall_precision_and_false_positives():
    rng = np.random.default_rng(0)
    for _ in range(200):
        possible, truth = rng.random((4, 2)) < 0.6, rng.integers(0, 2, 4)
        possible[~possible.any(axis=1), 0] = True
        found = measured(possible, truth)
        # Whoever may be labelled wrongly is labelled wrongly: with two classes that is one labelling.
        wrong = np.where(possible[np.arange(4), 1 - truth], 1 - truth, truth)
        rows, accuracy = plain(wrong, truth, 2)
        assert found.accuracy == accuracy
        for k in range(2):
            for bound, value in zip(
                (found.recall[k], found.precision[k], found.false_positive_rate[k]), rows[k], strict=True
            ):
                assert np.isnan(bound) if value is None else bound == value


def test_targets_without_a_true_class_do_not_count_and_unknown_classes_are_refused():
    possible = np.array([[True, False], [False, True], [True, True]])
    known, all_known = measured(possible, np.array([0, -1, -1])), measured(possible, np.array([0, 1, 1]))
    assert (known.num_targets, known.accuracy, known.support.tolist()) == (1, 1.0, [1, 0])
    assert np.isnan(known.recall[1])
    assert np.isnan(known.false_positive_rate[0])
    assert (all_known.recall.tolist(), all_known.rarest) == ([1.0, 0.5], 0)
    with pytest.raises(SettingsError, match="none of the targets has a true class"):
        measured(possible, np.full(3, -1))
    with pytest.raises(SettingsError, match="true class 2, but there are only 2 classes"):
        measured(possible, np.array([0, 1, 2]))


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        ([0.5] * 6 + [0] * 6, "0.5 was given as a true class"),
        ([None] * 12, "of type object"),
        (["fraud"] * 12, "expected whole numbers"),
        (np.zeros((12, 2)), r"of shape \(12, 2\)"),
        (np.full(12, 2**63, dtype=np.uint64), "whole numbers up to"),
        ([np.inf] * 12, "inf was given"),
    ],
    ids=["halves", "none", "text", "table", "huge", "infinite"],
)
def test_what_is_no_class_is_refused_and_not_left_out(truth, said):
    """A target that was left out would raise the share of all others."""
    certificate = certificate_of(random_evidence(np.random.default_rng(0), "node-centric/node", num_targets=12))
    for ask in (lambda: certificate.measures(0, truth), lambda: certificate.certified_accuracy(truth)):
        with pytest.raises(SettingsError, match=said):
            ask()


def test_a_share_below_that_of_a_constant_is_said():
    rare = measured(own_or_any(np.zeros(100, dtype=int), np.arange(100) < 96, 2), (np.arange(100) >= 97).astype(int))
    assert rare.accuracy == 0.96 < rare.majority_share == 0.97
    assert rare.warning == "below the most frequent class alone (97.0%)"
    assert str(rare).endswith("accuracy 96.0%: below the most frequent class alone (97.0%)")
    constant = measured(own_or_any(np.zeros(100, dtype=int), np.ones(100, dtype=bool), 2), rare_truth())
    assert (constant.accuracy, constant.warning, constant.balanced_accuracy) == (0.97, "", 0.5)
    assert constant.recall.tolist() == [1.0, 0.0]
    assert np.isnan(constant.precision[1])


def rare_truth():
    return (np.arange(100) >= 97).astype(int)


@pytest.mark.parametrize("theorem", ["edge-centric/node", "per-neighbour/node", "node-centric/graph"])
def test_a_certificate_measures_what_its_radii_and_budgets_say(theorem):
    rng = np.random.default_rng(3)
    cert = certificate_of(random_evidence(rng, theorem), truth=rng.integers(-1, 3, 30))
    for at, holds in [(size, cert.radius >= size) for size in (0, 1, 3)] + [
        (budget, cert.holds_against(budget)) for budget in (Budget(add_edges=1), Budget(delete_nodes=2, add_edges=1))
    ]:
        found = cert.measures(at)
        right = holds & (cert.label == cert.truth)
        assert found.accuracy == right.sum() / (cert.truth >= 0).sum()
        for k in range(3):
            assert found.recall[k] == right[cert.truth == k].mean()
            others = (cert.truth >= 0) & (cert.truth != k)
            assert found.false_positive_rate[k] == cert.possible(at)[others, k].mean()
    assert cert.measures(2).accuracy == cert.certified_accuracy(sizes=2)
    assert cert.measures(1, truth=np.zeros(30)).support.tolist() == [30, 0, 0]
    recalls = [cert.measures(size).recall for size in range(6)]
    assert all((less >= more).all() for less, more in pairwise(recalls))


def test_together_the_budget_is_spent_once():
    rng = np.random.default_rng(5)
    evidence = random_evidence(rng, "node-centric/node", num_targets=60, unstable=0)
    cert = certificate_of(evidence, truth=np.where(rng.random(60) < 0.9, evidence.label_and_radius()[0], 1))
    budget = Budget(add_edges=4)
    alone, together = cert.measures(budget), cert.measures(budget, together=True)
    assert isinstance(together, Measures)
    assert (together.true_positives >= alone.true_positives).all()
    assert (together.false_positives <= alone.false_positives).all()
    assert together.accuracy > alone.accuracy
    right = cert.label == cert.truth
    assert together.correct == right.sum() - cert.broken_at_most(budget, right)
    assert cert.measures(Budget(), together=True).accuracy == right.mean()
    with pytest.raises(SettingsError, match="together=True counts one attacked graph: pass a Budget, not 2"):
        cert.measures(2, together=True)


def test_weights_of_targets_make_every_class_count_the_same():
    truth = np.array([0] * 9 + [2])
    assert target_weights(truth, "accuracy").tolist() == [0.1] * 10
    weights = target_weights(truth, "balanced")
    assert [weights[truth == k].sum() for k in (0, 2)] == pytest.approx([0.5, 0.5])
    marks = np.array([1] * 6 + [0] * 3 + [1])
    labels = np.where(marks, truth, 1)
    assert weights @ marks == pytest.approx(measured(own_or_any(labels, marks > 0, 3), truth).balanced_accuracy)


def test_a_class_is_rare_by_its_share_of_those_that_are_there():
    assert rare_class(np.array([1000, 0, 70])) == 2
    assert rare_class(np.array([1000, 0, 90])) is None
    assert rare_class(np.array([100] * 9 + [13])) == 9
    assert rare_class(np.zeros(3, dtype=int)) is None
    assert rare_class(np.array([5])) is None


def test_measures_have_names():
    assert [rate_of(name) for name in ("accuracy", "balanced", "recall@0.01", "recall@.5")] == [None, None, 0.01, 0.5]
    for wrong in ("recall", "recall@2", "recall@0.01x", "f1"):
        with pytest.raises(SettingsError, match="expected"):
            rate_of(wrong)


def test_print_says_when_accuracy_is_below_a_constant_and_what_becomes_of_the_rare_class():
    rng = np.random.default_rng(2)
    evidence = random_evidence(rng, "node-centric/node", num_targets=100)
    text = str(certificate_of(evidence, truth=rare_truth()))
    assert "below the most frequent class alone (97.0%)" in text
    assert "class 1, 3.0% of them: recall" in text
    assert ac.Certificate is type(certificate_of(evidence))


def test_where_nothing_is_counted_no_class_is_rare():
    for count in ([], [0, 0], [5, 5]):
        assert rare_class(np.array(count, dtype=np.int64)) is None
    assert rare_class(np.array([0, 93, 7])) == 2
