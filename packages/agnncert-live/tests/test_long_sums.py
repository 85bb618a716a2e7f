"""Sums of too many terms make votes unstable in their whole component, wherever an event happens."""

from itertools import pairwise

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import agnncert as ac
from agnncert.engine.long_sums import MOST_MESSAGES
from agnncert_live import Event, LiveGraph
from tests.support.live import assert_current

CHAIN = 6


def star(leaves: int) -> Data:
    """A hub with leaves, and a chain that begins at the hub and is longer than messages travel."""
    nodes = 1 + leaves + CHAIN
    chain = [0, *range(1 + leaves, nodes)]
    ends = [(0, leaf) for leaf in range(1, 1 + leaves)] + list(pairwise(chain))
    edge_index = torch.tensor(ends).T
    torch.manual_seed(0)
    return Data(
        x=torch.randn(nodes, 3),
        edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1),
        y=torch.arange(nodes) % 2,
        node_id=torch.arange(nodes),
    )


@pytest.mark.parametrize("kind", [pyg.GCN, pyg.GraphSAGE])
def test_a_hub_that_grows_too_large_and_shrinks_again_is_certified_as_from_scratch(kind) -> None:
    data = star(MOST_MESSAGES - 1)  # and the first node of the chain
    torch.manual_seed(0)
    model = kind(3, 4, 2, 2, act="softsign").eval()  # whose rounding is watched: no bound is known for this activation
    live = LiveGraph(model, data, ac.EdgeCentric(1))
    last = data.num_nodes - 1
    assert live[last].radius >= 0
    assert_current(live)
    live.apply([Event("add_node", "more", value=[0.0, 1.0, 0.0]), Event("add_edge", "more", 0)])
    assert live[last].radius < 0  # its vote counts for nobody, although the hub is further away than messages travel
    assert_current(live)
    live.apply(Event("add_edge", last, last - 2))  # far from the hub
    assert_current(live)
    with pytest.raises(ac.errors.GraphError):
        live.apply([Event("delete_node", "more"), Event("delete_node", "nobody")])
    assert_current(live)
    live.apply(Event("delete_edge", "more", 0))
    assert live[last].radius >= 0
    assert_current(live)


@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_a_large_hub_harms_nobody_where_rounding_is_bounded(kind) -> None:
    data = star(MOST_MESSAGES + 10)
    model = ac.build_model(kind, data, hidden_channels=4, num_layers=2).eval()
    live = LiveGraph(model, data, ac.EdgeCentric(1))
    assert live[data.num_nodes - 1].radius >= 0
    assert live[0].radius >= 0
    assert_current(live)
    live.apply([Event("add_node", "more", value=[0.0, 1.0, 0.0]), Event("add_edge", "more", 0)])
    assert live[data.num_nodes - 1].radius >= 0
    assert_current(live)
