"""Theorem 16: edges that are changed before training, and stay so, change no certified label."""

import numpy as np
import torch

import agnncert as ac
from tests.unit.stacked.test_edge_blind import BLIND, train
from tests.unit.stacked.test_stacked import sample


def poisoned(data, rng, number):
    """The graph with some pairs joined and some separated; labels, features and ids stay."""
    num_added = int(rng.integers(0, number + 1))
    low, high = data.edge_index.min(dim=0).values, data.edge_index.max(dim=0).values
    pairs = sorted({*zip(low.tolist(), high.tolist(), strict=True)})
    gone = {pairs[place] for place in rng.choice(len(pairs), number - num_added, replace=False)}
    kept = [pair for pair in pairs if pair not in gone]
    while num_added:
        new = tuple(sorted(rng.choice(data.num_nodes, 2, replace=False).tolist()))
        if new not in pairs:
            kept.append(new)
            num_added -= 1
    edges = torch.tensor(kept).T
    data.edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    return data


def test_no_edge_that_is_changed_before_training_changes_a_certified_label():
    rng = np.random.default_rng(6)
    clean = sample(nodes=60)
    certificate = ac.certify(train(clean), clean, BLIND)
    num_flipped = 0
    for number in (1, 2, 4, 60):
        holds = certificate.holds_against(ac.Budget(add_edges=number, delete_edges=number))
        for _ in range(6):
            data = poisoned(sample(nodes=60), rng, number)
            again = BLIND.labels(train(data), data)
            flipped = again != certificate.label
            assert not (flipped & holds).any()
            num_flipped += flipped.sum()
    assert certificate.holds_against(ac.Budget(add_edges=1, delete_edges=1)).any()
    assert num_flipped
