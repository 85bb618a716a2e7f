"""Bounds on class probabilities, and regions of flip noise against linear programs and exact fractions."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from agnncert_peers.bounds import Regions, class_bounds, flip_regions, joint_regions, lower_bound, upper_bound


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


NOISES = [(0.05, 0.3), (0.2, 0.2), (0.3, 0.01), (0.0, 0.6), (0.4, 0.0), (0.1, 0.85)]
PROBABILITIES = [0.03, 0.3, 0.5, 0.77, 0.95, 0.999]


def outcome_masses(added, deleted, p_add, p_delete):
    """Clean and perturbed mass of every noisy outcome of the differing entries, one by one."""
    clean_input, perturbed_input = (0,) * added + (1,) * deleted, (1,) * added + (0,) * deleted

    def mass(start, outcome):
        flip = [p_delete if bit else p_add for bit in start]
        return np.prod([f if a != b else 1 - f for f, a, b in zip(flip, start, outcome, strict=True)])

    outcomes = list(product((0, 1), repeat=added + deleted))
    return np.array([[mass(start, o) for o in outcomes] for start in (clean_input, perturbed_input)])


def program(masses, p, sign):
    """Least (sign 1) or greatest (sign -1) perturbed probability of an event with clean probability ``p``."""
    clean, perturbed = masses
    solved = linprog(sign * perturbed, A_eq=clean[None], b_eq=[p], bounds=(0, 1))
    assert solved.success
    return sign * solved.fun


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sizes", [(1, 0), (0, 1), (2, 1), (1, 3), (3, 3)])
def test_flip_regions_give_the_optimum_of_the_linear_program(sizes, noise):
    regions, masses = flip_regions(*sizes, *noise), outcome_masses(*sizes, *noise)
    for p in PROBABILITIES:
        assert regions.low(np.array(p)) == pytest.approx(program(masses, p, 1), abs=1e-8)
        assert regions.up(np.array(p)) == pytest.approx(program(masses, p, -1), abs=1e-8)


@pytest.mark.parametrize(
    ("first", "second"), [((0.05, 0.3), (0.05, 0.3)), ((0.0, 0.4), (0.1, 0.2)), ((0.01, 0.6), (0.3, 0.0))]
)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 0), (2, 0, 1, 1), (0, 2, 2, 0)])
def test_joint_regions_give_the_optimum_of_the_linear_program(sizes, first, second):
    regions = joint_regions(flip_regions(*sizes[:2], *first), flip_regions(*sizes[2:], *second))
    one, two = outcome_masses(*sizes[:2], *first), outcome_masses(*sizes[2:], *second)
    masses = np.stack([np.multiply.outer(one[k], two[k]).ravel() for k in range(2)])
    for p in PROBABILITIES:
        assert regions.low(np.array(p)) == pytest.approx(program(masses, p, 1), abs=1e-8)
        assert regions.up(np.array(p)) == pytest.approx(program(masses, p, -1), abs=1e-8)


def test_joint_regions_left_unsorted_would_certify_falsely():
    first = second = (0.05, 0.3)
    one, two = flip_regions(3, 0, *first), flip_regions(3, 3, *second)
    products = [np.multiply.outer(getattr(one, side), getattr(two, side)).ravel() for side in ("clean", "perturbed")]
    unsorted = Regions(*products, log_ratio=np.zeros(len(products[0])))
    p = np.array(0.9999)
    assert unsorted.low(p) == pytest.approx(0.657, abs=1e-3)
    assert joint_regions(one, two).low(p) == pytest.approx(0.098, abs=1e-3)


def exact_regions(added, deleted, p_add, p_delete):
    """Masses as fractions, of the very numbers that the floats stand for."""

    def binomial(n, p):
        return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]

    def convolved(a, b):
        result = [Fraction(0)] * (len(a) + len(b) - 1)
        for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
            result[i + j] += x * y
        return result

    p, q = Fraction(p_add), Fraction(p_delete)
    clean = convolved(binomial(added, p), binomial(deleted, q))
    return clean, convolved(binomial(added, 1 - q), binomial(deleted, 1 - p))


@pytest.mark.parametrize(
    ("sizes", "noise"), [((40, 60), (0.125, 0.5)), ((5, 7), (0.01, 0.6)), ((200, 150), (0.25, 0.25))]
)
def test_masses_agree_with_exact_fractions(sizes, noise):
    regions = flip_regions(*sizes, *noise)
    for ours, exact in zip((regions.clean, regions.perturbed), exact_regions(*sizes, *noise), strict=True):
        assert max(abs(Fraction(float(a)) - b) for a, b in zip(ours, exact, strict=True)) < 1e-14
    assert regions.clean.min() >= 0


@pytest.mark.parametrize("noise", [(0.01, 0.6), (0.2, 0.2)])
def test_ratios_follow_the_formula_and_fall(noise):
    regions = flip_regions(4, 3, *noise)
    assert regions.log_ratio == pytest.approx(np.log(regions.clean / regions.perturbed))
    assert (np.diff(regions.log_ratio) < 0).all()


@pytest.mark.parametrize("sizes", [(1000, 1000), (2000, 0), (0, 2000)])
@pytest.mark.parametrize("noise", [(0.001, 0.4), (0.2, 0.2), (0.0, 0.3), (0.6, 0.0)])
def test_tables_of_the_largest_size_neither_overflow_nor_lose_mass(sizes, noise):
    regions = flip_regions(*sizes, *noise)
    assert regions.clean.sum() == pytest.approx(1, abs=1e-12)
    assert regions.perturbed.sum() == pytest.approx(1, abs=1e-12)
    p = np.linspace(0, 1, 11)
    assert (regions.low(p) <= regions.up(p)).all()


def test_thresholds_for_a_flip_rate_of_one_fifth_are_the_published_ones():
    published = [0.875, 0.96875, 0.9921875, 0.99275, 0.99699, 0.99901]
    for flips, threshold in enumerate(published, start=1):
        regions = flip_regions(flips, 0, 0.2, 0.2)
        digits = 1e-9 if flips <= 3 else 6e-6
        assert regions.low(np.array(threshold - digits)) < 0.5 < regions.low(np.array(threshold + digits))


def test_a_threshold_met_exactly_is_not_certified():
    top = np.array([0.875])
    assert not flip_regions(1, 0, 0.2, 0.2).certifies(top, 1 - top)


def test_equal_flip_rates_make_additions_and_deletions_interchangeable():
    p = np.array(PROBABILITIES)
    assert flip_regions(3, 1, 0.2, 0.2).low(p) == pytest.approx(flip_regions(0, 4, 0.2, 0.2).low(p))


@pytest.mark.parametrize("noise", NOISES)
def test_more_flips_never_help(noise):
    p = np.array(PROBABILITIES)
    for added, deleted in product(range(4), repeat=2):
        low = flip_regions(added, deleted, *noise).low(p)
        assert (flip_regions(added + 1, deleted, *noise).low(p) <= low + 1e-12).all()
        assert (flip_regions(added, deleted + 1, *noise).low(p) <= low + 1e-12).all()


def test_probability_beyond_the_mass_of_all_regions_is_held_against_the_target():
    half = Regions(np.array([0.5]), np.array([0.5]), np.array([0.0]))
    assert half.low(np.array(0.7)) == pytest.approx(0.3)
    assert half.up(np.array(0.7)) == pytest.approx(0.7)


def test_rounding_is_conservative_on_both_sides():
    regions, masses = flip_regions(2, 1, 0.2, 0.2), exact_regions(2, 1, 0.2, 0.2)
    first_clean, first_perturbed = masses[0][0], masses[1][0]
    assert Fraction(float(regions.low(np.array(float(first_clean))))) <= first_perturbed
    last_clean, last_perturbed = masses[0][-1], masses[1][-1]
    assert Fraction(float(regions.up(np.array(float(last_clean))))) >= last_perturbed
