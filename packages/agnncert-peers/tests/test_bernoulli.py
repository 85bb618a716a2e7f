"""Random draws have the stated probabilities, and pairs are numbered without gaps."""

import numpy as np
import pytest

from agnncert_peers.draws import pair_at, place_of_pair, runs, stream, successes


@pytest.mark.parametrize("p", [0.001, 0.1, 0.2, 0.5, 0.9, 0.999])
def test_heads_come_up_at_the_stated_rate(p):
    length = 400_000
    places = successes(np.random.default_rng(0), length, p)
    assert abs(len(places) - length * p) <= 4 * np.sqrt(length * p * (1 - p))
    assert (np.diff(places) > 0).all()
    assert places[0] >= 0
    assert places[-1] < length


@pytest.mark.parametrize("p", [0.2, 0.45, 0.8])
def test_every_outcome_of_three_coins_has_its_probability(p):
    draws, rng = 30_000, np.random.default_rng(1)
    seen = np.zeros(8)
    for _ in range(draws):
        seen[(1 << successes(rng, 3, p)).sum()] += 1
    for outcome, count in enumerate(seen):
        ones = outcome.bit_count()
        exact = p**ones * (1 - p) ** (3 - ones)
        assert abs(count - draws * exact) <= 4 * np.sqrt(draws * exact * (1 - exact))


def test_extreme_coins():
    rng = np.random.default_rng(0)
    assert len(successes(rng, 10, 0.0)) == 0
    assert successes(rng, 3, 1.0).tolist() == [0, 1, 2]
    assert len(successes(rng, 0, 0.5)) == 0
    assert len(successes(rng, 10**15, 1e-18)) == 0


def test_pairs_and_places_are_one_to_one():
    place = np.arange(500 * 499 // 2)
    i, j = pair_at(place)
    assert (i < j).all()
    assert (i >= 0).all()
    assert j.max() == 499
    assert len(np.unique(i * 500 + j)) == len(place)
    assert (place_of_pair(i, j) == place).all()


def test_places_of_huge_graphs_are_exact():
    j = np.array([3, 20_000, 10**6, 10**8, 10**9])
    for i in (np.zeros_like(j), j - 1, j // 2):
        back = pair_at(place_of_pair(i, j))
        assert (back[0] == i).all()
        assert (back[1] == j).all()


def test_a_stream_depends_on_seed_stage_and_batch():
    first = stream(3, 1, 2).random(4)
    assert (first == stream(3, 1, 2).random(4)).all()
    for other in ((4, 1, 2), (3, 0, 2), (3, 1, 3), (1, 3, 2)):
        assert not (first == stream(*other).random(4)).any()


def test_runs_of_length_zero_are_skipped():
    assert runs(np.array([5, 7, 9]), np.array([2, 0, 1])).tolist() == [5, 6, 9]
    assert len(runs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))) == 0
