"""Bi-RS against exact enumeration of all coins."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from agnncert.certificates.budget import Budget
from agnncert.errors import BudgetError, SettingsError
from agnncert_peers.bounds import ClassBounds
from agnncert_peers.deletion_noise import TESTS, DeletionNoise

SOUND = [name for name in TESTS if name != "legacy-unsound"]


def bounds_of(top, other=None):
    top = np.atleast_1d(np.asarray(top, dtype=float))
    other = 1 - top if other is None else np.atleast_1d(np.asarray(other, dtype=float))
    return ClassBounds(np.zeros(len(top), dtype=np.int64), top, other)


def noisy_graphs(num_nodes, edges, p_edge, p_node):
    """Every outcome of all coins: probability and surviving edges."""
    for alive in product((0, 1), repeat=num_nodes):
        p_alive = math.prod((1 - p_node) if a else p_node for a in alive)
        for coin in product((0, 1), repeat=len(edges)):
            p_coin = math.prod((1 - p_edge) if c else p_edge for c in coin)
            kept = frozenset(e for e, c in zip(edges, coin, strict=True) if c and alive[e[0]] and alive[e[1]])
            yield p_alive * p_coin, kept


@pytest.mark.parametrize(("p_edge", "p_node"), [(0.8, 0.9), (0.3, 0.5), (0.0, 0.5), (0.6, 0.0)])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_the_isolation_of_one_injected_node_is_the_enumerated_one(tau, p_edge, p_node):
    edges = [(k, 3) for k in range(tau)]
    exact = sum(p for p, kept in noisy_graphs(4, edges, p_edge, p_node) if not kept)
    assert DeletionNoise(p_edge, p_node).isolation(1, tau) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    "edges", [[(0, 2), (0, 3)], [(0, 2), (1, 2), (1, 3), (2, 3)], [(0, 2), (1, 2), (0, 3), (1, 3)]]
)
def test_several_injected_nodes_are_isolated_at_least_as_often_as_the_formula_says(edges):
    tau = {2: 1, 4: 2}[len(edges)]  # nodes 2 and 3 are injected; each edge is brought by one of them
    exact = sum(p for p, kept in noisy_graphs(4, edges, 0.4, 0.5) if not kept)
    assert exact >= DeletionNoise(0.4, 0.5).isolation(2, tau) - 1e-12


def test_the_published_counterexample_is_certified_by_the_released_test_alone():
    half = Fraction(1, 2)
    clean_edges = [(0, 1), (0, 2), (0, 3), (4, 5), (5, 6), (6, 7)]  # a star around the target 0, and a path

    def is_other(kept):
        attached, isolated = (0, 8) in kept, not any(0 in edge for edge in kept)
        return attached or (isolated and any(edge[0] >= 4 for edge in kept))

    def top_probability(num_nodes, edges):
        outcomes = product((0, 1), repeat=num_nodes)
        survivors = ([e for e in edges if alive[e[0]] and alive[e[1]]] for alive in outcomes)
        return sum(half**num_nodes for kept in survivors if not is_other(kept))

    top = top_probability(8, clean_edges)
    assert top == Fraction(23, 32)
    attacked = top_probability(9, [*clean_edges, (0, 8)])
    assert attacked < half  # one injected node with one edge does flip the label
    certified = {
        test: bool(DeletionNoise(0.0, 0.5, test=test).withstands(np.ones(1), 1, bounds_of(float(top)))[0])
        for test in TESTS
    }
    assert certified == {"legacy-unsound": True, "B1": False, "B2": False, "sharp": False}


@pytest.mark.parametrize("test", SOUND)
@pytest.mark.parametrize(("p_edge", "p_node"), [(0.5, 0.5), (0.2, 0.7), (0.6, 0.3), (0.0, 0.6)])
def test_no_injected_node_flips_what_a_sound_test_certifies(test, p_edge, p_node):
    """Classifiers that are arbitrary on clean noisy graphs and hostile wherever an injected edge survives."""
    rng = np.random.default_rng(1)
    clean_edges, certified = [(0, 1), (1, 2)], 0
    unharmed, hit = list(noisy_graphs(3, clean_edges, p_edge, p_node)), {}
    for ends in ((0,), (1,), (0, 1), (0, 1, 2)):
        noisy = noisy_graphs(4, [*clean_edges, *[(k, 3) for k in ends]], p_edge, p_node)
        hit[ends] = [(p, kept, any(3 in edge for edge in kept)) for p, kept in noisy]
    keys = [frozenset(k) for size in range(3) for k in combinations(clean_edges, size)]
    for trial in range(30):
        labels = dict(zip(keys, rng.choice(3, size=len(keys), p=[0.8, 0.1, 0.1]), strict=True))
        labels[frozenset()] = 0 if trial % 2 else labels[frozenset()]
        clean = np.zeros(3)
        for p, kept in unharmed:
            clean[labels[kept]] += p
        bounds = bounds_of(clean[0], clean[1:].max())
        for ends, noisy in hit.items():
            noise = DeletionNoise(p_edge, p_node, test=test)
            if not noise.withstands(np.ones(1), len(ends), bounds)[0]:
                continue
            certified += 1
            for rival in (1, 2):
                attacked = np.zeros(3)
                for p, kept, is_hit in noisy:
                    attacked[rival if is_hit else labels[kept]] += p
                assert attacked[0] > np.delete(attacked, 0).max()
    assert certified > 10


def test_the_sharp_test_is_the_linear_program_of_what_is_known():
    rng = np.random.default_rng(2)
    noise = DeletionNoise(0.7, 0.8, test="sharp")
    for _ in range(50):
        top, other, _ = rng.dirichlet([6, 1, 1])
        missing, at_worst = np.sort(rng.random(2))
        masses = np.array([top, other, 1 - top - other])  # of A, B, neither; one conditional probability on each
        solved = linprog(masses * [2, 0, 1], A_ub=-masses[None], b_ub=[missing - 1], bounds=(1 - at_worst, 1))
        margin = noise._margin(bounds_of(top, other), np.array([missing]), np.array([at_worst]))
        assert margin[0] <= solved.fun - 1 + 1e-9
        assert margin[0] == pytest.approx(solved.fun - 1, abs=1e-7)


def test_the_sharp_test_certifies_whatever_the_other_sound_tests_do():
    bounds = bounds_of(np.repeat(np.linspace(0.5, 1, 40), 30))
    rho = np.tile(np.arange(30.0), 40)
    for tau in (1, 5, math.inf):
        answers = {test: DeletionNoise(0.8, 0.9, test=test).withstands(rho, tau, bounds) for test in SOUND}
        assert (answers["sharp"] >= (answers["B1"] | answers["B2"])).all()


def test_the_radius_for_the_published_setting():
    sure = bounds_of([0.9, 1.0, 0.5])
    legacy = DeletionNoise(0.8, 0.9, test="legacy-unsound").radius(sure)
    assert legacy.tolist() == [60, 71, -1]
    assert DeletionNoise(0.8, 0.9).radius(sure).tolist() == [52, 71, -1]


@pytest.mark.parametrize("test", TESTS)
def test_the_radius_is_the_last_size_that_holds(test):
    bounds = bounds_of([0.7, 0.93, 0.999])
    noise = DeletionNoise(0.8, 0.9, test=test, edges_per_injected=3)
    for row, radius in enumerate(noise.radius(bounds).tolist()):
        held = [noise.holds(Budget(inject_nodes=radius + k, edges_per_injected=3), bounds)[row] for k in (0, 1)]
        assert held == [True, False]


def test_an_unlimited_number_of_edges_still_leaves_the_coin_of_the_injected_node():
    noise = DeletionNoise(0.8, 0.9, edges_per_injected=math.inf)
    assert noise.isolation(3, math.inf) == pytest.approx(0.9**3)
    assert noise.radius(bounds_of(0.99)).tolist() == [6]
    assert noise.unit == "node injected with any number of edges"


def test_noise_that_leaves_almost_no_edge_still_leaves_some_of_infinitely_many():
    noise = DeletionNoise(1 - 1e-9, 1 - 1e-9, edges_per_injected=math.inf)
    assert noise.isolation(1, math.inf) == 1 - 1e-9  # rounded to 1, it would certify any number of injected nodes
    assert noise.radius(bounds_of(0.99))[0] < 1e9


def test_injected_nodes_without_edges_change_nothing():
    noise = DeletionNoise(0.8, 0.9)
    without_edges = Budget(inject_nodes=math.inf, edges_per_injected=0)
    assert noise.holds(without_edges, bounds_of([0.51, 0.5])).tolist() == [True, False]


def test_nothing_but_injection_is_covered():
    noise, sure = DeletionNoise(0.8, 0.9), bounds_of(0.9999)
    for budget in (
        Budget(add_edges=1),
        Budget(delete_edges=1),
        Budget(change_edges=1),
        Budget(delete_nodes=1),
        Budget(change_features=1),
        Budget(target_features=True),
        Budget(inject_nodes=math.inf, edges_per_injected=1),
    ):
        assert not noise.holds(budget, sure).any()
    assert noise.holds(Budget(), sure).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p_edge": 1, "p_node": 0.5}, "never be used"),
        ({"p_edge": 0.5, "p_node": 1.0}, "never be used"),
        ({"p_edge": 0, "p_node": 0}, "without noise"),
        ({"p_edge": 1.2, "p_node": 0.5}, "expected a probability"),
        ({"p_edge": 0.5, "p_node": 0.5, "test": "b2"}, 'did you mean "B2"'),
    ],
)
def test_senseless_noise_is_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        DeletionNoise(**settings)


def test_a_senseless_number_of_edges_is_refused():
    with pytest.raises(BudgetError, match="edges_per_injected"):
        DeletionNoise(0.8, 0.9, edges_per_injected=-1)
