"""Theorem 14 against every change of the labels of small cases, both ways, and against code that counts one by one."""

from itertools import pairwise

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.labels.record import STEPS
from agnncert.verifier import recount_labels
from tests.support.label_cases import evidence_of, factored, random_case

CASES = 400


def answers_of(case):
    evidence = evidence_of([case])
    counted = recount_labels.recount(evidence)
    return evidence, counted


@pytest.mark.parametrize("abstains", [False, True], ids=["decides", "abstains"])
@pytest.mark.parametrize("flips_only", [False, True], ids=["any change", "flips"])
def test_a_label_withstands_a_number_of_changes_exactly_where_it_is_certified(flips_only, abstains):
    rng = np.random.default_rng(11)
    outcomes = []
    for _ in range(CASES):
        case = random_case(rng, flips_only, abstains)
        evidence, counted = answers_of(case)
        label, radius = evidence.label_and_radius()
        assert label[0] == case.plain_winner(case.labels)
        for changes in range(4):
            truth = case.withstands(changes)
            assert (radius[0] >= min(changes, len(case.labels))) == truth, (case, changes)
            assert evidence.holds(Budget(flip_labels=changes))[0] == truth
            assert recount_labels.stays_ahead(counted, changes)[0].all() == truth
            outcomes.append(truth)
    assert 0.05 < np.mean(outcomes) < 0.95


def test_no_class_wins_that_is_not_called_possible():
    rng = np.random.default_rng(5)
    for _ in range(CASES):
        case = random_case(rng, abstains=bool(rng.random() < 0.3))
        evidence, counted = answers_of(case)
        for changes in range(4):
            possible = evidence.possible(Budget(flip_labels=changes))
            assert set(np.flatnonzero(possible[0])) >= case.winners(changes)
            ahead = recount_labels.stays_ahead(counted, changes)
            assert (ahead == evidence.stays_ahead(slice(None), Budget(flip_labels=changes))).all()
            if case.classes == 2 and not case.least_lead:
                assert set(np.flatnonzero(possible[0])) == case.winners(changes)


def test_a_class_stays_ahead_of_another_one_exactly_where_no_change_brings_it_past():
    rng = np.random.default_rng(6)
    outcomes = []
    for _ in range(CASES):
        case = random_case(rng, abstains=bool(rng.random() < 0.3))
        evidence = evidence_of([case])
        for changes in range(3):
            budget = Budget(flip_labels=changes)
            scores = [case.scores(labels) for labels in case.attacks(changes)]
            for leader in range(case.classes):
                ahead = evidence.stays_ahead(slice(None), budget, leader)[0]
                again = recount_labels.stays_ahead(recount_labels.recount(evidence, leader), changes)[0]
                for k in set(range(case.classes)) - {leader}:
                    truth = all((score[leader], -leader) > (score[k], -k) for score in scores)
                    assert ahead[k] == again[k] == truth, (case, changes, leader, k)
                    outcomes.append(truth)
    assert 0.05 < np.mean(outcomes) < 0.95


def test_classes_are_excluded_that_are_behind_another_one_than_the_label():
    rng = np.random.default_rng(7)
    excluded = 0
    for _ in range(30):
        evidence = factored(rng, 6, 20, classes=4)
        for changes in (0, 1, 3):
            at = Budget(flip_labels=changes)
            possible = evidence.possible(at)
            excluded += int((~possible & ~evidence.stays_ahead(slice(None), at)).sum())
            assert ((possible.sum(axis=1) == 1) == evidence.holds(at)).all()
    assert excluded > 10


def test_no_attack_is_cheaper_than_stated_and_with_one_price_some_attack_costs_as_much():
    rng = np.random.default_rng(3)
    for _ in range(150):
        case = random_case(rng)
        m = len(case.labels)
        price = rng.integers(1, 4, m).astype(np.int32)
        evidence = evidence_of([case], price=price)
        prices = Prices(flip_labels=2, add_labels=1, remove_labels=3)
        stated = evidence.cheapest(prices)[0]
        single = evidence_of([case]).cheapest(Prices(flip_labels=1, add_labels=1, remove_labels=1))[0]
        before = case.plain_winner(case.labels)
        least, least_single = np.inf, np.inf
        for labels in case.attacks(min(m, 3)):
            if case.plain_winner(labels) == before:
                continue
            changed = [u for u in range(m) if labels[u] != case.labels[u]]
            kinds = [1 if case.labels[u] < 0 else 3 if labels[u] < 0 else 2 for u in changed]
            least = min(least, sum(kind * int(price[u]) for kind, u in zip(kinds, changed, strict=True)))
            least_single = min(least_single, len(changed))
        assert stated <= least
        assert single == least_single or single > 3


def test_prover_and_recount_agree_on_factors():
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(60):
        evidence = factored(rng, int(rng.integers(1, 9)), int(rng.integers(1, 30)), classes=int(rng.integers(2, 6)))
        counted = recount_labels.recount(evidence)
        label, radius = evidence.label_and_radius()
        again = np.minimum(counted.needed.min(axis=1) - 1, evidence.num_candidates)
        assert (label == counted.label).all()
        assert (radius == again).all()
        rows = np.arange(evidence.num_targets)
        assert (evidence._weights(slice(0, None)) == recount_labels.weights_of(evidence, rows)).all()
        seen |= set(radius.tolist())
        for number in (0, 1, 2, 5, np.inf):
            at = Budget(flip_labels=number)
            changed = recount_labels.changed_labels(evidence, at)
            ahead = recount_labels.stays_ahead(counted, changed)
            assert (evidence.holds(at) == ahead.all(axis=1)).all()
            assert (evidence.stays_ahead(slice(None), at) == ahead).all()
            for leader in range(evidence.num_classes):
                ahead = recount_labels.stays_ahead(recount_labels.recount(evidence, leader), changed)
                assert (evidence.stays_ahead(slice(None), at, leader) == ahead).all()
    assert {-1, 0, 1} <= seen
    assert max(seen) > 5


def test_weights_are_the_floor_of_a_quotient_within_one_vote_and_none_for_oneself():
    rng = np.random.default_rng(2)
    evidence = factored(rng, 5, 7)
    for t in range(5):
        for u in range(7):
            product = sum(int(a) * int(b) for a, b in zip(evidence.left[t], evidence.right[u], strict=True))
            weight = max(-STEPS, min(STEPS, product * STEPS // int(evidence.cap[t])))
            assert evidence._weights(slice(t, t + 1))[0, u] == (0 if t == u else weight)


def test_a_larger_budget_never_holds_where_a_smaller_one_does_not():
    evidence = factored(np.random.default_rng(4), 8, 25)
    held = [evidence.holds(Budget(flip_labels=number)) for number in range(26)]
    for smaller, larger in pairwise(held):
        assert not (larger & ~smaller).any()
