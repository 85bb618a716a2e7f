"""The guard vouches for no vote that a sum of too many terms may reach."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from agnncert.divisions.edge import EdgeCentric
from agnncert.engine import long_sums
from agnncert.engine.features import Features
from agnncert.engine.long_sums import MOST_FEATURES, MOST_MESSAGES, rows_with_long_sums
from tests.support.hubs import OwnMean
from tests.support.rounding_noise import votes_on


def star(num_leaves: int, inwards: bool = True) -> torch.Tensor:
    leaves = torch.arange(1, num_leaves + 1)
    edges = torch.stack([leaves, torch.zeros_like(leaves)])
    return edges if inwards else edges.flip(0)


@pytest.mark.parametrize("inwards", [True, False])
def test_a_hub_may_have_as_many_messages_as_documented_and_no_more(inwards):
    assert rows_with_long_sums(torch.ones(MOST_MESSAGES + 1, 1), star(MOST_MESSAGES, inwards)) is None
    is_long = rows_with_long_sums(torch.ones(MOST_MESSAGES + 2, 1), star(MOST_MESSAGES + 1, inwards))
    assert is_long is not None
    assert is_long.all()


def test_only_what_is_connected_with_a_long_sum_is_given_up(monkeypatch):
    monkeypatch.setattr(long_sums, "MOST_MESSAGES", 2)
    edges = torch.tensor([[1, 2, 3, 0, 6], [0, 0, 0, 4, 5]])
    is_long = rows_with_long_sums(torch.ones(8, 1), edges)
    assert is_long is not None
    assert is_long.tolist() == [True] * 5 + [False] * 3


def test_large_graphs_are_given_up_as_a_whole(monkeypatch):
    monkeypatch.setattr(long_sums, "MOST_MESSAGES", 2)
    batch = torch.tensor([0, 0, 1, 1, 1, 2])
    is_long = rows_with_long_sums(torch.ones(6, 1), torch.empty(2, 0, dtype=torch.int64), batch)
    assert is_long is not None
    assert is_long.tolist() == [False, True, False]


def test_rows_with_too_many_features_are_given_up_however_they_are_stored():
    x = torch.zeros(3, MOST_FEATURES + 1)
    x[0] = 1.0
    x[1, :MOST_FEATURES] = 1.0
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    for rows in (x, Features(x).rows(torch.arange(3))):
        is_long = rows_with_long_sums(rows, no_edges)
        assert is_long is not None
        assert is_long.tolist() == [True, False, False]


@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_votes_near_a_hub_are_unstable_and_all_others_are_not(engine):
    """Two stars, one of them too large, and the votes of the first 40 nodes: a whole star, and part of the other."""
    small = 20
    edges = torch.cat([star(small), star(MOST_MESSAGES + 1) + small + 1], dim=1)
    num_nodes = small + MOST_MESSAGES + 3
    model = OwnMean().eval()
    nn.init.constant_(model.weight[:1], 2.0)
    data = Data(x=torch.full((num_nodes, 1), 0.1), edge_index=edges, node_id=torch.arange(num_nodes))
    votes = votes_on(model, data, EdgeCentric(1), engine)
    hubs = votes.owner[np.isin(votes.owner, [0, small + 1])]
    stable = votes.stable[np.isin(votes.owner, [0, small + 1])]
    assert dict(zip(hubs.tolist(), stable.tolist(), strict=True)) == {0: True, small + 1: False}
