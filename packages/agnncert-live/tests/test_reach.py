"""How many hops are known of a model, and that what lies within them is all that counts."""

import numpy as np
import pytest
from torch_geometric import nn as pyg

import agnncert as ac
from agnncert_live.reach import Reach, hops_of
from agnncert_live.union import Union
from tests.support.small_graphs import node_model, random_graph


@pytest.mark.parametrize(
    ("model", "hops"),
    [
        (pyg.GCN(3, 4, num_layers=3, out_channels=2), 3),
        (pyg.GraphSAGE(3, 4, num_layers=2, out_channels=2, jk="cat"), 2),
        (pyg.SGConv(3, 2, K=4), 4),
        (pyg.APPNP(K=5, alpha=0.1), 5),
        (pyg.GATConv(3, 2), 1),
        (node_model(), None),
        (ac.build_model("mlp", random_graph(5, 5), out_channels=2), 0),
        (ac.build_model("resgcn", random_graph(5, 5), out_channels=2), 6),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "forward") else str(value),
)
def test_hops_are_counted_where_layers_were_read(model, hops):
    assert hops_of(model, "construction") == hops
    assert hops_of(model, "test") is None


def test_a_path_is_walked_as_far_as_messages_go():
    count = 8
    ends = np.stack([np.arange(count - 1), np.arange(1, count)])  # 0 -> 1 -> … -> 7
    union = Union(np.zeros(count), np.arange(count), ends, {}, num_nodes=count)
    reach = Reach(union, 2)
    assert sorted(reach.downstream(np.array([2])).tolist()) == [2, 3, 4]
    needed = reach.upstream(np.array([5]))
    assert sorted(needed.inner.tolist()) == [3, 4, 5]
    assert needed.border.tolist() == [2]  # for its arc, because 3 may be divided by its degree
    everything = Reach(union, None)
    assert sorted(everything.downstream(np.array([2])).tolist()) == list(range(count))
    assert len(everything.upstream(np.array([5, 5])).inner) == count
