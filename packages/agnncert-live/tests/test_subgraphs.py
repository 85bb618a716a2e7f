"""One arc at a time a division does what it does with a whole graph."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.graphs.hashing import edge_groups, node_groups
from agnncert.graphs.targets import prepared
from agnncert_live.conversion import store_of
from agnncert_live.subgraphs import Subgraphs
from tests.support.small_graphs import random_graph


@pytest.mark.parametrize("hash", ["md5", "sha1", "sha256", "blake2b"])
def test_groups_are_those_of_the_division(hash):
    keys = np.random.default_rng(0).integers(-(2**63), 2**63, size=20, dtype=np.int64)
    nodes = Subgraphs(ac.NodeCentric(7, hash=hash), "node")
    assert [nodes.group_of_key(int(key)) for key in keys] == node_groups(keys.view(np.uint64), 7, hash).tolist()
    ready = prepared(random_graph(20, 30))
    store = store_of(ready, ready.targets(), None, Subgraphs(ac.EdgeCentric(7, hash=hash), "node"))
    u, v = np.arange(20), np.roll(np.arange(20), 3)
    keys = store.nodes.key.view(np.uint64)
    assert [store.subgraphs.of_arc(store.nodes, a, b) for a, b in zip(u, v, strict=True)] == edge_groups(
        keys[u], keys[v], 7, hash
    ).tolist()


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", [ac.EdgeCentric(4), ac.NodeCentric(3), ac.PerEdge()], ids=str)
def test_every_arc_of_the_layout_lies_where_a_single_one_would(division, task):
    data = random_graph(12, 20) if task == "node" else [random_graph(6, 8, seed=k) for k in range(3)]
    ready = prepared(data)
    store = store_of(ready, ready.targets(), None, Subgraphs(division, task))
    union = store.union
    assert union.num_arcs == ready.targets().graph.num_edges
    for arc in range(union.num_arcs):
        source, head = int(union.source[arc]), int(union.head[arc])
        subgraph = store.subgraphs.of_arc(store.nodes, int(union.node[source]), int(union.node[head]))
        assert subgraph == union.subgraph_index[source] == union.subgraph_index[head]
