import math
from itertools import product

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.errors import SettingsError
from agnncert_peers.bounds import LARGEST_FLIPS, ClassBounds, flip_regions, joint_regions
from agnncert_peers.flip_noise import FlipNoise


def bounds_of(*top):
    top = np.array(top, dtype=float)
    return ClassBounds(np.zeros(len(top), dtype=np.int64), top, 1 - top)


SURE = bounds_of(0.5, 0.88, 0.97, 0.9995)


def test_the_radius_of_equal_flip_rates_follows_the_thresholds():
    noise = FlipNoise(p_add=0.2, p_delete=0.2)
    assert noise.radius(bounds_of(0.5, 0.86, 0.88, 0.97, 0.993, 0.9991)).tolist() == [-1, 0, 1, 2, 4, 6]


def test_additions_and_deletions_share_one_budget():
    noise = FlipNoise(p_add=0.2, p_delete=0.2)
    for budget in (Budget(add_edges=2), Budget(delete_edges=2), Budget(add_edges=1, delete_edges=1)):
        assert noise.holds(budget, SURE).tolist() == [False, False, True, True]


def test_the_radius_withstands_every_mix_and_the_next_size_does_not():
    noise = FlipNoise(p_add=0.01, p_delete=0.4)
    radius = noise.radius(SURE)
    for row, r in enumerate(radius.tolist()):
        one = ClassBounds(SURE.label[[row]], SURE.top[[row]], SURE.other[[row]])
        assert r < 0 or all(noise.holds(Budget(add_edges=a, delete_edges=r - a), one)[0] for a in range(r + 1))
        assert not all(noise.holds(Budget(add_edges=a, delete_edges=r + 1 - a), one)[0] for a in range(r + 2))
    assert radius.tolist() == sorted(radius.tolist())


def test_additions_and_deletions_are_certified_separately():
    noise = FlipNoise(p_add=0.001, p_delete=0.6)
    sure = bounds_of(0.9999)
    assert not noise.holds(Budget(add_edges=20), sure).any()
    assert noise.holds(Budget(delete_edges=5), sure).all()


@pytest.mark.parametrize(
    "budget",
    [
        Budget(change_edges=1),
        Budget(inject_nodes=1),
        Budget(inject_nodes=1, edges_per_injected=3),
        Budget(delete_nodes=1),
        Budget(change_features=1),
        Budget(target_features=True),
        Budget(add_edges=math.inf),
        Budget(delete_edges=10**9),
        Budget(add_edges=1, delete_nodes=1),
    ],
    ids=repr,
)
def test_what_edge_noise_proves_nothing_about_does_not_hold(budget):
    assert not FlipNoise(p_add=0.2, p_delete=0.2).holds(budget, SURE).any()


def test_edges_of_injected_nodes_say_nothing_without_injected_nodes():
    noise = FlipNoise(p_add=0.2, p_delete=0.2)
    assert noise.holds(Budget(edges_per_injected=math.inf), SURE).tolist() == [False, True, True, True]


def test_noise_on_the_target_row_proves_nothing_about_edges_elsewhere():
    noise = FlipNoise(p_add=0.2, p_delete=0.2, where="target row")
    assert not noise.holds(Budget(add_edges=1), SURE).any()
    assert noise.holds(Budget(), SURE).tolist() == [False, True, True, True]
    assert noise.radius(SURE).tolist() == FlipNoise(p_add=0.2, p_delete=0.2).radius(SURE).tolist()
    assert noise.unit == "edge added or deleted at the target"
    assert noise.withstands(SURE, add_edges=1).tolist() == [False, True, True, True]


def test_arbitrary_features_of_a_node_cost_as_many_flips_as_it_has_entries():
    noise = FlipNoise(p_add_feature=0.2, p_delete_feature=0.2, num_features=2)
    assert noise.holds(Budget(change_features=1), SURE).tolist() == [False, False, True, True]
    assert noise.holds(Budget(change_features=2), SURE).tolist() == [False, False, False, True]
    assert noise.holds(Budget(target_features=True), SURE).tolist() == [False, False, True, True]
    assert not noise.holds(Budget(add_edges=1), SURE).any()
    assert noise.unit == "feature entry flipped"


def test_with_many_entries_arbitrary_features_do_not_hold():
    noise = FlipNoise(p_add_feature=0.01, p_delete_feature=0.6, num_features=1433)
    assert not noise.holds(Budget(change_features=1), bounds_of(0.99999)).any()
    assert not noise.holds(Budget(change_features=math.inf), bounds_of(0.99999)).any()


def test_edges_and_features_together_use_the_joint_regions():
    noise = FlipNoise(0.05, 0.3, 0.05, 0.3, num_features=3)
    regions = joint_regions(flip_regions(3, 0, 0.05, 0.3), flip_regions(3, 3, 0.05, 0.3))
    sure = bounds_of(0.9, 0.9999, 0.9999999)
    expected = regions.certifies(sure.top, sure.other)
    assert noise.withstands(sure, 3, 0, 3, 3).tolist() == expected.tolist()
    assert not expected[1]  # what regions left unsorted certify falsely
    assert noise.withstands(sure, 1, 0, 0, 0)[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "without noise nothing"),
        ({"p_add": -0.1}, "expected a probability"),
        ({"p_add": float("nan")}, "expected a probability"),
        ({"p_add": True}, "expected a probability"),
        ({"p_add": 0.4, "p_delete": 0.6}, "worthless"),
        ({"p_add_feature": 0.5, "p_delete_feature": 0.7, "num_features": 3}, "p_add_feature"),
        ({"p_add_feature": 0.1}, "num_features"),
        ({"p_add": 0.1, "where": "row"}, "target row"),
    ],
)
def test_senseless_noise_is_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        FlipNoise(**settings)


@pytest.mark.parametrize(("p_add", "p_delete"), [(0.2, 0.2), (0.05, 0.4), (0.0, 0.5), (0.3, 0.0)])
def test_no_attack_flips_what_is_certified_from_exact_probabilities(p_add, p_delete):
    """Arbitrary classifiers of four pairs: every clean graph, every attack, all noise enumerated."""
    graphs = np.array(list(product((0, 1), repeat=4)))
    differs = graphs[:, None] != graphs[None]
    flip = np.where(graphs[:, None] == 1, p_delete, p_add)
    law = np.where(differs, flip, 1 - flip).prod(axis=2)  # law[clean, noisy]
    assert law.sum(axis=1) == pytest.approx(1)
    noise, rng, certified = FlipNoise(p_add, p_delete), np.random.default_rng(0), 0
    for _ in range(40):
        label_of = rng.choice(3, size=16, p=[0.9, 0.05, 0.05])
        smoothed = law @ np.eye(3)[label_of]
        order = np.sort(smoothed, axis=1)
        bounds = ClassBounds(smoothed.argmax(axis=1), order[:, -1], order[:, -2])
        added = (differs & (graphs[None] == 1)).sum(axis=2)
        deleted = (differs & (graphs[None] == 0)).sum(axis=2)
        for add, delete in product(range(3), repeat=2):
            safe = noise.holds(Budget(add_edges=add, delete_edges=delete), bounds)
            reach = (added <= add) & (deleted <= delete)
            kept = bounds.label[None] == bounds.label[:, None]
            assert (kept | ~reach)[safe].all()
            certified += int(safe.sum()) if add + delete else 0
    assert certified > 100


def test_more_flips_than_are_computed_are_not_withstood_on_edges_or_on_features():
    rate = 0.499  # so that even this many flips would be certified if they were computed
    noise = FlipNoise(rate, rate, rate, rate, num_features=5)
    certain = bounds_of(1.0)
    for kind in ("add_edges", "delete_edges", "add_entries", "delete_entries"):
        assert noise.withstands(certain, **{kind: LARGEST_FLIPS}).all()
        assert not noise.withstands(certain, **{kind: LARGEST_FLIPS + 1}).any()
    assert FlipNoise(p_add=0.3, p_delete=0.3).num_features == 0
