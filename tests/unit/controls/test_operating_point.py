"""Scores at the operating point of another model: ties, ends of the curve, areas, and intervals that tell the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from agnncert.controls.operating_point import (
    alerts_like,
    average_precision,
    interval_of_mean,
    roc_auc,
    variance_of_difference,
)


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Few different scores, so that many are tied, and targets of both classes."""
    n = draw(st.integers(2, 30))
    score = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    positive = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    positive[0], positive[1] = True, False
    return np.array(score, dtype=float), np.array(positive)


@given(scored())
def test_areas_are_those_of_scikit_learn(drawn):
    score, positive = drawn
    assert roc_auc(score, positive) == pytest.approx(roc_auc_score(positive, score))
    assert average_precision(score, positive) == pytest.approx(average_precision_score(positive, score))


@given(scored(), st.floats(0, 1))
def test_as_many_of_the_group_are_alerts_as_asked_for(drawn, share):
    score, positive = drawn
    group = ~positive
    count = share * group.sum()
    weight = alerts_like(score, group, count)
    assert weight[group].sum() == pytest.approx(count)
    assert ((weight >= 0) & (weight <= 1)).all()
    assert (np.diff(weight[np.argsort(score, kind="stable")]) >= -1e-12).all(), "a larger score is no smaller alert"


def test_tied_scores_get_what_a_random_order_gives_them_on_average():
    rng = np.random.default_rng(0)
    score = np.array([3.0, 2, 2, 2, 1, 1, 0])
    everyone = np.ones(7, dtype=bool)
    for count in range(8):
        total = np.zeros(7)
        for _ in range(2000):
            order = np.lexsort((rng.random(7), -score))
            total[order[:count]] += 1
        assert np.allclose(total / 2000, alerts_like(score, everyone, count), atol=0.05), count


def test_without_a_false_positive_those_above_every_other_are_still_found():
    score = np.array([5.0, 4.0, 3.0, 1.0])
    positive = np.array([True, False, True, False])
    assert alerts_like(score, ~positive, 0).tolist() == [1, 0, 0, 0]
    assert alerts_like(score, ~positive, 1).tolist() == [1, 1, 1, 0]
    assert alerts_like(score, ~positive, 2).tolist() == [1, 1, 1, 1]


def test_a_constant_score_finds_as_much_as_it_accuses():
    positive = np.arange(100) < 10
    assert alerts_like(np.zeros(100), ~positive, 9)[positive].mean() == pytest.approx(0.1)
    assert roc_auc(np.zeros(100), positive) == 0.5


def test_two_models_that_never_differ_are_not_known_to_be_equal():
    for n, width in ((5, 0.2), (50, 0.03), (5000, 0.0003)):
        low, high = interval_of_mean(np.zeros(n))
        assert low == -high
        assert high > width, "few targets leave room for a difference"


def test_intervals_hold_the_true_difference_about_as_often_as_they_say():
    """Drawn again and again from models whose difference in recall is known: 95 % of the intervals hold it."""
    rng = np.random.default_rng(0)
    many = 400_000
    positive = rng.random(many) < 0.1
    hidden = rng.normal(size=many)
    certified = hidden + rng.normal(size=many) + 2.0 * positive > 3.0
    other = hidden + rng.normal(size=many) + 1.5 * positive
    group = ~positive
    weight = alerts_like(other, group, float(certified[group].sum()))
    truth = (certified - weight)[positive].mean()
    held = 0
    rounds = 200
    for number in range(rounds):
        rows = rng.integers(0, many, 1500)
        drawn, alerts, score = positive[rows], certified[rows], other[rows]
        weight = alerts_like(score, ~drawn, float(alerts[~drawn].sum()))
        variance = variance_of_difference(alerts, score, drawn, ~drawn, seed=number)
        low, high = interval_of_mean((alerts - weight)[drawn], variance)
        held += low <= truth <= high
    assert 0.92 <= held / rounds <= 0.99


def test_the_threshold_of_the_other_model_is_uncertain_too():
    """Pairs alone would call a difference certain that hangs on where two of 40 others happen to lie."""
    rng = np.random.default_rng(3)
    positive = np.arange(1040) < 1000
    score = np.where(positive, rng.normal(1, 0.3, 1040), rng.normal(0, 1, 1040))
    alerts = np.where(positive, rng.random(1040) < 0.5, np.arange(1040) >= 1038)
    weight = alerts_like(score, ~positive, 2)
    of_pairs = (alerts - weight)[positive].var() / 1000
    assert variance_of_difference(alerts, score, positive, ~positive) > 10 * of_pairs
