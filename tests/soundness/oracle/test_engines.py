"""The fast engine casts the votes of the naive one, and both cast those of a reference written without the library."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import models as pyg

from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine import union
from agnncert.engine.adapter import bind
from agnncert.graphs.canonical import canonical
from tests.support.checks import check_engines_agree, checked, votes_of
from tests.support.graphs import make_data, random_data
from tests.support.models import CLASSES, FEATURES, KINDS, Once, build, settled
from tests.zoo import user_modules as modules

NODE_DIVISIONS = [EdgeCentric(5), NodeCentric(5), GatedNodeCentric(5)]
GRAPH_DIVISIONS = [EdgeCentric(5), NodeCentric(5)]
models = cache(build)


def of_size(division, num_groups):
    return type(division)(**{**division.__dict__, "num_groups": num_groups})


def situations():
    """Graphs that are easily got wrong, and the number of groups to divide them into."""
    big = random_data(2, largest=12, density=0.4)
    strings = make_data([(0, 1), (1, 0), (1, 2), (3, 1)], 5, ids=["a", "7", "b b", "ü", "-0"])
    isolated = make_data([(0, 1), (1, 0)], 9)
    parallel = make_data([(0, 1), (0, 1), (1, 0), (1, 2), (1, 2), (1, 2)], 4)
    loops = make_data([(0, 0), (0, 1), (1, 0), (2, 2), (3, 1)], 4)
    rows = Data(x=big.x, edge_index=big.edge_index)
    return {
        "undirected": (big, 5),
        "directed": (random_data(3, directed=True, largest=12, density=0.4), 5),
        "string ids": (strings, 3),
        "row numbers": (rows, 5),
        "isolated nodes": (isolated, 3),
        "more groups than edges": (random_data(4), 200),
        "one group": (big, 1),
        "no edge": (make_data([], 4), 3),
        "one node": (make_data([], 1), 3),
        "parallel edges": (parallel, 3),
        "self-loops dropped": (loops, 3),
    }


SITUATIONS = situations()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_nodes(situation, division, kind):
    data, num_groups = SITUATIONS[situation]
    model = models(kind, "node")
    check_engines_agree(Once(model) if num_groups > 100 else model, data, of_size(division, num_groups))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_the_comparison_is_not_between_constants(division, kind):
    votes = votes_of(models(kind, "node"), SITUATIONS["undirected"][0], division)
    assert len(set(votes.vote.tolist())) > 1
    assert (votes.vote != votes.default[votes.owner]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("division", GRAPH_DIVISIONS, ids=str)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_graphs(situation, division, kind):
    data, num_groups = SITUATIONS[situation]
    others = [make_data([], 2, seed=7), random_data(8)]
    readout = {"gcn": "mean", "sage": "sum", "gat": "max", "gin": "mean"}[kind]
    check_engines_agree(
        models(kind, "graph", readout=readout), [others[0], data, others[1]], of_size(division, num_groups)
    )


@pytest.mark.parametrize("division", [EdgeCentric(3, self_loops=True), NodeCentric(3, self_loops=True)], ids=str)
def test_self_loops_that_are_kept(division):
    data = SITUATIONS["self-loops dropped"][0]
    check_engines_agree(models("sage", "node"), data, division)
    check_engines_agree(models("sage", "graph"), [data, make_data([(0, 0)], 1)], division)


@pytest.mark.parametrize("hash", ["md5", "sha1", "sha256", "blake2b"])
@pytest.mark.parametrize("kind", [EdgeCentric, NodeCentric])
def test_every_hash(kind, hash):
    check_engines_agree(models("gcn", "node"), random_data(5), kind(7, hash))


# Some targets, small memory, sparse features: where the fast engine takes shortcuts


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("rows", [[0], [3, 1], [11, 0, 5, 2]], ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_some_targets_only(division, rows, directed):
    data = random_data(11, smallest=12, largest=12, directed=directed, density=0.2)
    check_engines_agree(models("gat", "node"), data, division, rows=rows)
    check_engines_agree(Once(models("gcn", "node")), data, of_size(division, 40), rows=rows, memory_limit=1)


def test_parts_without_a_target_are_left_out():
    data = make_data([(k, k + 1) for k in range(0, 20, 2)], 20)
    everything = union.union_of_subgraphs(canonical(data), EdgeCentric(3))
    near = everything.near(np.array([4]))
    assert len(everything.union.node) == 20
    assert sorted(near.union.node.tolist()) == [4, 5]


@pytest.mark.parametrize("limit", [1, 3000, 10**9])
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_node_votes_do_not_depend_on_the_memory_limit(division, limit):
    check_engines_agree(models("gin", "node"), random_data(6, largest=12), of_size(division, 9), memory_limit=limit)


@pytest.mark.parametrize("limit", [1, 3000, 10**9])
@pytest.mark.parametrize("division", GRAPH_DIVISIONS, ids=str)
def test_graph_votes_do_not_depend_on_the_memory_limit(division, limit):
    check_engines_agree(models("gin", "graph"), [random_data(k) for k in range(6)], division, memory_limit=limit)


def test_a_small_limit_makes_one_chunk_of_every_subgraph_and_a_large_one_a_single_chunk():
    graph, division = canonical(random_data(6, largest=12, density=0.5)), EdgeCentric(9)
    layout, call = union.union_of_subgraphs(graph, division), bind(models("gcn", "node"), graph, "node")
    used = len(torch.unique(layout.union.subgraph_index))
    assert len(list(layout.chunks(union.chunk_rows(call, graph, 1)))) == used > 3
    whole = list(layout.chunks(union.chunk_rows(call, graph, 10**9)))
    assert [(c.copies, c.edges) for c in whole] == [(slice(0, len(layout.union.node)), slice(0, graph.num_edges))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_sparse_features(division, kind):
    data = random_data(9, largest=12, density=0.4)
    data.x = torch.zeros(len(data.x), 40, dtype=torch.float64)
    data.x[torch.arange(len(data.x)), torch.arange(len(data.x)) * 3 % 40] = 1.0
    assert union.union_of_subgraphs(canonical(data), division, dtype=torch.float64).sparse is not None
    check_engines_agree(models(kind, "node", width=40), data, division)
    if not division.gates_features:
        check_engines_agree(models(kind, "graph", width=40), [data, data], division)


def test_features_of_another_type_than_the_model():
    data = random_data(2, largest=12, density=0.4)
    small = build("gcn", "node").float()
    check_engines_agree(small, Data(x=data.x.float(), edge_index=data.edge_index, node_id=data.node_id), EdgeCentric(5))
    for x in (data.x, (3 * data.x).long()):
        mixed = Data(x=x, edge_index=data.edge_index, node_id=data.node_id)
        fast_votes, slow = (votes_of(small, mixed, EdgeCentric(5), engine).dense() for engine in ("fast", "naive"))
        np.testing.assert_array_equal(fast_votes, slow)


def test_inside_inference_mode():
    with torch.inference_mode():
        check_engines_agree(models("gcn", "node"), random_data(2), EdgeCentric(5))
        check_engines_agree(models("gcn", "node"), random_data(2), GatedNodeCentric(5))


# Edge values


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_edge_weights_and_attributes_reach_the_model(division):
    data = random_data(12, largest=10, directed=True, density=0.4)
    random = np.random.default_rng(0)
    data.edge_weight = torch.from_numpy(random.random(data.num_edges) + 0.2)
    data.edge_attr = torch.from_numpy(random.normal(size=(data.num_edges, 2)))
    for module in (modules.Weighted, modules.Attributed):
        model = settled(module)
        check_engines_agree(model, data, division)
        check_engines_agree(model, data, division, rows=[1, 2], memory_limit=1)
    heavier = data.clone()
    heavier.edge_weight = 5 * data.edge_weight[torch.randperm(data.num_edges)]
    plain, other = (votes_of(settled(modules.Weighted), d, division).dense() for d in (data, heavier))
    assert (plain != other).any(), "weights take part"


@pytest.mark.parametrize("division", GRAPH_DIVISIONS, ids=str)
def test_edge_weights_in_the_graph_task(division):
    graphs = [random_data(k, largest=10, density=0.5) for k in range(3)]
    for graph in graphs:
        graph.edge_weight = torch.linspace(0.1, 3.0, graph.num_edges).double()
    check_engines_agree(settled(modules.WeightedReadout), graphs, division)


def test_float_weights_of_another_type_are_cast_like_features():
    data = random_data(12, largest=10, density=0.4)
    data.edge_weight = torch.rand(data.num_edges, dtype=torch.float32)
    check_engines_agree(
        settled(modules.Weighted), data.clone().apply(lambda v: v.double(), "edge_weight"), EdgeCentric(4)
    )
    votes_of(settled(modules.Weighted), data, EdgeCentric(4))


# Modules as users write them


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("module", modules.NODE_MODULES, ids=lambda m: m.__name__)
def test_user_modules(module, division):
    data = random_data(2, largest=12, density=0.4)
    before = data.x.clone()
    check_engines_agree(settled(module), data, division)
    check_engines_agree(settled(module), data, of_size(division, 20), rows=[0, 2], memory_limit=1)
    assert torch.equal(data.x, before), "the caller's graph is left as it was"


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("network", [pyg.GCN, pyg.GraphSAGE, pyg.GAT, pyg.GIN], ids=lambda n: n.__name__)
@pytest.mark.parametrize(
    "options", [{}, {"jk": "cat", "dropout": 0.5}, {"norm": "batch_norm", "act_first": True}], ids=str
)
def test_networks_of_pyg_as_they_are(network, options, division):
    model = settled(network, FEATURES, 4, 2, CLASSES, **options)
    check_engines_agree(model, random_data(2, largest=12, density=0.4), division)


def test_a_plain_function_is_a_model_too():
    weight = torch.randn(FEATURES, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def model(x, edge_index):
        hidden = x @ weight
        return hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]].sin())

    check_engines_agree(model, random_data(2), EdgeCentric(5))


# A user's own division


class ByParity(Division):
    """Edges between ids of the same parity, edges between others, and everything; the smaller id abstains in the last."""

    num_groups = 3

    def groups(self, graph):
        parity = graph.node_key[graph.edge_index] % 2
        return (parity[0] != parity[1]).long()

    def subgraph(self, graph, groups, index):
        inside = (groups == index) | (index == 2)
        if graph.task == "node":
            return replace(graph.with_edges(inside), abstain=(graph.node_key % 2 == 0) & (index == 2))
        if index == 1:  # shows only nodes with an edge; perhaps none
            return graph.with_nodes(torch.unique(graph.edge_index[:, inside]), inside)
        return graph.with_edges(inside)

    def votes_moved(self, change, graph, target):
        return 3


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_division_with_three_methods(kind, limit):
    data = [random_data(2, directed=True), make_data([], 2), random_data(5)]
    check_engines_agree(models(kind, "node"), data[0], ByParity(), memory_limit=limit)
    check_engines_agree(models(kind, "node"), data[0], ByParity(), rows=[2, 0], memory_limit=limit)
    check_engines_agree(models(kind, "graph"), data, ByParity(), memory_limit=limit)


@torch.no_grad()
def test_votes_of_a_users_division_are_those_of_its_subgraphs():
    data, model = random_data(2), models("gcn", "node")
    graph, division = checked(data, ByParity()), ByParity()
    groups = division.groups(graph)
    expected = []
    for index in range(3):
        part = division.subgraph(graph, groups, index)
        vote = model(part.x, part.edge_index).argmax(dim=1)
        expected.append(torch.where(part.abstain, -1, vote).tolist())
    assert votes_of(model, data, division).dense().T.tolist() == expected
    without_edges = votes_of(models("gcn", "graph"), [make_data([], 2)], division).dense()
    assert without_edges[0, 1] == -1, "a subgraph without nodes casts no vote"


def test_edge_weights_in_a_users_division():
    data = random_data(12, largest=10, density=0.4)
    data.edge_weight = torch.rand(data.num_edges, dtype=torch.float64)
    check_engines_agree(settled(modules.Weighted), data, ByParity())
    check_engines_agree(settled(modules.WeightedReadout), [data, data], ByParity(), memory_limit=1)
