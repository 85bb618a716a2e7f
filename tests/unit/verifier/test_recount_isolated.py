"""The recount of models that were trained apart says what the prover says, and notices statements that do not follow."""

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.isolated.evidence import IsolatedEvidence
from agnncert.verifier.recount_isolated import Views
from tests.support.trained_apart import random_record

BUDGETS = [
    Budget(poison_graphs=number, **rest)
    for number in range(4)
    for rest in ({}, {"delete_edges": 1}, {"inject_nodes": 1}, {"change_features": 2}, {"target_features": True})
]


@pytest.mark.parametrize(
    "shape", [{}, {"num_groups": 9, "num_models": 21}, {"num_groups": 1, "num_models": 1}], ids=str
)
def test_both_derive_the_same(shape):
    rng = np.random.default_rng(8)
    for _ in range(12):
        record = random_record(rng, 20, **shape)
        evidence, views = IsolatedEvidence(record), Views(record)
        label, radius = evidence.label_and_radius()
        assert np.array_equal(views.label(), label)
        assert views.right_radius(radius).all()
        assert np.array_equal(views.elected, evidence.elected)
        for budget in BUDGETS:
            holds = evidence.holds(budget)
            assert np.array_equal(views.holds(budget), holds)
            assert np.array_equal(views.possible(budget), evidence.possible(budget))
            assert views.broken(budget, holds) == evidence.broken_at_most(budget)


def test_radii_that_do_not_follow_are_noticed():
    record = random_record(np.random.default_rng(9), 60, num_groups=5, num_models=9)
    radius = IsolatedEvidence(record).label_and_radius()[1]
    views = Views(record)
    assert not views.right_radius(radius + 1).any()
    assert not views.right_radius(radius - 1).any()
    assert not views.right_radius(np.full(60, 10**9)).any()


@pytest.mark.parametrize("stated", [-(10**9), -2, 6, 7, 10**9])
def test_a_radius_outside_of_what_models_allow_is_noticed_even_for_targets_without_a_view(stated):
    record = random_record(np.random.default_rng(9), 60, num_groups=1, num_models=5)
    assert (np.diff(record.indptr) == 0).any()
    assert not Views(record).right_radius(np.full(60, stated)).any()


def test_no_target_at_all_is_no_error():
    record = random_record(np.random.default_rng(1), 0)
    assert len(Views(record).holds(Budget(poison_graphs=1))) == 0
    assert IsolatedEvidence(record).label_and_radius()[1].shape == (0,)
