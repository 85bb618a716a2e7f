"""Ceilings: no classifier of a statistic certifies more, by trying all of them; and the reference of votes."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert_peers.ceilings import ceiling, type_counts, votes_reference

MOST = 3  # nodes of one type


def reached(counts, size, changes):
    """Every histogram that an attacker reaches with at most this many changes, one after the other."""
    found = {counts}
    for _ in range(size):
        new = set()
        for one in found:
            for k in range(len(one)):
                up = tuple(c + (j == k) for j, c in enumerate(one))
                if changes in ("injected", "structure", "kept", "any"):
                    new.add(up)
                if changes in ("structure", "any") and one[k]:
                    new.add(tuple(c - (j == k) for j, c in enumerate(one)))
                if changes in ("features", "kept", "any"):
                    new |= {
                        tuple(c - (j == other) for j, c in enumerate(up)) for other in range(len(one)) if one[other]
                    }
        found |= new
    return found


@pytest.mark.parametrize("changes", ["injected", "features", "structure", "kept", "any", "edges"])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_set_of_graphs_without_a_conflict_is_larger(changes, classes):
    rng, exact = np.random.default_rng(classes), 0
    for _ in range(25):
        counts = rng.integers(0, MOST, (6, 2))
        y, size = rng.integers(0, classes, 6), int(rng.integers(0, 3))
        near = [reached(tuple(row), size, changes) for row in counts.tolist()]
        most = max(
            len(chosen)
            for number in range(7)
            for chosen in itertools.combinations(range(6), number)
            if all(y[a] == y[b] or not near[a] & near[b] for a, b in itertools.combinations(chosen, 2))
        )
        found = ceiling(counts, y, [size], changes)[0]
        assert found >= most / 6 - 1e-12
        exact += bool(np.isclose(found, most / 6))
    assert exact == 25 if classes == 2 else exact > 12


def test_types_are_equal_rows():
    graphs = [Data(x=torch.tensor([[1.0, 0], [0, 1], [1, 0]])), Data(x=torch.tensor([[0.0, 1], [2, 2]]))]
    assert type_counts(graphs).tolist() == [[1, 2, 0], [1, 0, 1]]


def test_votes_that_know_the_truth_hold_as_long_as_they_are_more():
    own, y = np.log(np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4]])), np.array([0, 0, 1])
    votes = np.array([[0, 0], [3, 1], [0, 4]])
    assert votes_reference(own, votes, y, [0]) == [1.0]
    assert votes_reference(own, votes, y, [1]) == [1.0]
    assert votes_reference(own, votes, y, [1000]) == [pytest.approx(1 / 3)]
