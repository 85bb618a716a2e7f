import numpy as np
import pytest
from scipy.stats import binom

from agnncert.proof.samples.bounds import class_bounds, lower_bound, upper_bound


@pytest.mark.parametrize("trials", [1, 10, 57, 300])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_the_lower_bound_fails_with_probability_alpha_at_most_whatever_the_true_probability(trials, alpha):
    successes = np.arange(trials + 1)
    bound = lower_bound(successes, trials, alpha)
    truth = np.linspace(0.0005, 0.9995, 400)[:, None]
    failure = (binom.pmf(successes, trials, truth) * (bound > truth)).sum(axis=1)
    assert failure.max() <= alpha
    assert failure.max() > alpha / 4  # and it is no weaker than it must be


def test_the_lower_bound_solves_the_binomial_tail_equation():
    bound = lower_bound(np.array([1, 7, 50, 100]), 100, 0.01)
    assert binom.sf(np.array([0, 6, 49, 99]), 100, bound) == pytest.approx(0.01, rel=1e-8)


def test_no_success_gives_no_lower_bound_and_only_successes_no_upper_bound():
    assert lower_bound(np.array([0]), 50, 0.1) == 0
    assert upper_bound(np.array([50]), 50, 0.1) == 1


def test_two_classes_spend_all_of_alpha_on_one_bound():
    bounds = class_bounds(np.array([[3, 7]]), np.array([[100, 900]]), alpha=0.01)
    assert bounds.label == [1]
    assert bounds.top == lower_bound(np.array([900]), 1000, 0.01)
    assert bounds.other == 1 - bounds.top


def test_the_rival_is_the_worst_class_of_the_estimation_not_the_runner_up_of_the_selection():
    bounds = class_bounds(np.array([[6, 4, 0]]), np.array([[500, 100, 400]]), alpha=0.03)
    assert bounds.other == pytest.approx(upper_bound(np.array([400]), 1000, 0.01))


def test_the_label_comes_from_the_selection_even_where_the_estimation_disagrees():
    bounds = class_bounds(np.array([[6, 4]]), np.array([[10, 990]]), alpha=0.01)
    assert bounds.label == [0]
    assert bounds.abstains.all()


def test_selection_ties_go_to_the_smaller_class():
    assert class_bounds(np.array([[5, 5, 5]]), np.array([[1, 1, 1]]), alpha=0.1).label == [0]


def test_the_bounds_of_one_target_hold_together_with_the_stated_probability():
    rng = np.random.default_rng(0)
    truth, alpha, runs = np.array([0.45, 0.4, 0.15]), 0.1, 4000
    selection, estimation = rng.multinomial(20, truth, size=runs), rng.multinomial(200, truth, size=runs)
    bounds = class_bounds(selection, estimation, alpha)
    chosen = np.arange(3) == bounds.label[:, None]
    rival = np.where(chosen, 0, truth).max(axis=1)
    wrong = (bounds.top > truth[bounds.label]) | (bounds.other < rival)
    assert wrong.mean() <= alpha
