"""Divisions by example: small graphs whose groups are known."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import one_graph
from agnncert.graphs.hashing import edge_groups, id_keys, node_groups
from agnncert.graphs.perturbation import Perturbation
from tests.support import reference
from tests.support.graphs import ids_of, make_data, random_data
from tests.support.labelled import labelled_graph

BOTH = [EdgeCentric, NodeCentric]


# Settings


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("groups", [0, -3, 1.5, True, "7", None, 2**31])
def test_a_senseless_number_of_groups_is_refused(kind, groups):
    with pytest.raises(DivisionError, match=r"num_groups=.*: expected a whole number from 1"):
        kind(groups)


@pytest.mark.parametrize("kind", BOTH)
def test_an_unknown_hash_is_met_with_the_nearest(kind):
    with pytest.raises(DivisionError, match="unknown hash 'md6': did you mean \"md5\""):
        kind(3, hash="md6")
    with pytest.raises(DivisionError, match="Valid: md5, sha1, sha256, blake2b"):
        kind(3, hash="crc")


def test_divisions_say_what_they_are():
    assert str(EdgeCentric(300)) == "edge-centric(T=300, hash=md5, key=u64le)"
    gated = GatedNodeCentric(60, "sha1", self_loops=True)
    assert str(gated) == "node-centric(T=60, hash=sha1, key=u64le, gated features, self-loops kept)"
    assert isinstance(gated, Division)
    assert hash(EdgeCentric(5)) == hash(EdgeCentric(5))


# Groups


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "blake2b"])
def test_groups_are_those_of_hashlib(name):
    data = make_data([(0, 1), (1, 2), (2, 0)], 3, ids=["a", 5, "-12"])
    graph, edges, nodes = canonical(data), EdgeCentric(11, name), NodeCentric(11, name)
    ids = ["a", 5, "-12"]
    pairs = [(ids[u], ids[v]) for u, v in graph.edge_index.t().tolist()]
    assert edges.groups(graph).tolist() == [reference.edge_group(u, v, edges) for u, v in pairs]
    assert nodes.groups(graph).tolist() == [reference.node_group(u, nodes) for u, _ in pairs]
    assert nodes.node_groups(graph).tolist() == [reference.node_group(u, nodes) for u in ids]


def test_both_directions_of_a_pair_share_a_group_in_the_edge_centric_division():
    graph = canonical(random_data(3, density=0.6))
    group = dict(zip(map(tuple, graph.edge_index.t().tolist()), EdgeCentric(50).groups(graph).tolist(), strict=True))
    assert all(group[u, v] == group[v, u] for u, v in group)


def test_edges_between_groups_are_nowhere_in_the_node_centric_graph_task():
    data = random_data(3, density=0.6)
    division = NodeCentric(3)
    nodes, graph = division.node_groups(canonical(data)), one_graph(canonical_set([data]), 0)
    source, head = nodes[graph.edge_index]
    assert division.groups(graph).tolist() == torch.where(source == head, source, -1).tolist()
    assert -1 not in division.groups(canonical(data))


def test_groups_need_no_canonical_graph():
    data = random_data(3)
    keys = id_keys(ids_of(data))
    u, v = data.edge_index.numpy()
    assert EdgeCentric(7).groups(data).tolist() == edge_groups(keys[u], keys[v], 7).tolist()
    assert NodeCentric(7).groups(data).tolist() == node_groups(keys, 7)[u].tolist()


# Subgraphs


@pytest.mark.parametrize("division", [EdgeCentric(3), NodeCentric(3), GatedNodeCentric(3)], ids=str)
def test_in_the_node_task_every_node_is_in_every_subgraph_and_every_edge_in_one(division):
    data = random_data(5, density=0.5)
    data.edge_attr = torch.rand(data.num_edges, 2)
    graph = canonical(data)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, i) for i in range(3)]
    assert all(part.num_nodes == graph.num_nodes for part in parts)
    assert torch.cat([part.edge_index for part in parts], dim=1).size(1) == graph.num_edges
    together = sorted(torch.cat([torch.cat([p.edge_index.t(), p.edge_attr], 1) for p in parts]).tolist())
    assert together == sorted(torch.cat([graph.edge_index.t(), graph.edge_attr], 1).tolist())


def test_in_the_edge_centric_graph_task_only_ends_of_edges_are_read():
    graph = one_graph(canonical_set([make_data([(0, 1), (1, 2)], 5)]), 0)
    division = EdgeCentric(50)
    groups = division.groups(graph)
    sizes = [division.subgraph(graph, groups, i).num_nodes for i in range(50)]
    assert sorted(sizes, reverse=True)[:3] == [2, 2, 0]


def test_in_the_node_centric_graph_task_only_nodes_of_the_group_are_read():
    data = random_data(4, largest=8)
    graph, division = one_graph(canonical_set([data]), 0), NodeCentric(3)
    groups = division.groups(graph)
    parts = [division.subgraph(graph, groups, i) for i in range(3)]
    assert torch.cat([part.x for part in parts]).size(0) == len(data.x)
    assert [part.num_nodes for part in parts] == torch.bincount(division.node_groups(graph), minlength=3).tolist()


def test_gated_features_show_the_groups_own_nodes_and_silence_who_hears_nothing():
    data = make_data([(0, 1)], 3)
    data.x = torch.ones(3, 3)
    graph, division = canonical(data), GatedNodeCentric(40)
    own, groups = division.node_groups(graph), division.groups(graph)
    assert len(set(own.tolist())) == 3, "three nodes in three groups"
    part = division.subgraph(graph, groups, int(own[0]))
    assert part.x.sum(1).tolist() == [3, 0, 0]
    assert part.abstain.tolist() == [False, False, True], "0 is at home, 1 hears it, 2 hears nothing"
    assert division.subgraph(graph, groups, int(own[2])).abstain.tolist() == [True, True, False]
    assert torch.equal(graph.x, torch.ones(3, 3)), "the graph's own features stay"


# Pieces


def every_case():
    for seed in range(6):
        data = random_data(seed, directed=seed % 2 == 1)
        data.edge_weight = torch.rand(data.num_edges, dtype=torch.float64)
        for division in (EdgeCentric(4), NodeCentric(4), GatedNodeCentric(4)):
            yield data, division, "node"
            if not division.gates_features:
                yield data, division, "graph"


def test_pieces_are_the_subgraphs_side_by_side():
    for data, division, task in every_case():
        graph = canonical(data) if task == "node" else canonical_set([data])
        union = division.disjoint_union(graph, division.groups(graph))
        assert union.subgraph_index.tolist() == sorted(union.subgraph_index.tolist())
        for index, part in enumerate(reference.subgraphs(data, division, task)):
            inside = (union.subgraph_index == index).nonzero().view(-1)
            nodes = union.node[inside].tolist()
            arcs = [k for k, copy in enumerate(union.edge_index[0].tolist()) if copy in inside.tolist()]
            ends_of_arcs = sorted(tuple(union.node[union.edge_index[:, k]].tolist()) for k in arcs)
            assert ends_of_arcs == sorted(tuple(data.edge_index[:, k].tolist()) for k in part.arcs)
            assert len(nodes) == len(set(nodes))
            if task == "graph":
                assert nodes == part.nodes
            else:
                ends = set(data.edge_index[:, part.arcs].view(-1).tolist())
                at_home = set(part.nodes) - part.hidden if part.hidden else set()
                assert set(nodes) >= ends | at_home
            for k in arcs:
                assert (
                    union.subgraph_index[union.edge_index[0, k]]
                    == union.subgraph_index[union.edge_index[1, k]]
                    == index
                )
                edge = graph.edge_index[:, union.edge[k]].tolist()
                assert edge == union.node[union.edge_index[:, k]].tolist()


def test_graphs_of_a_set_have_cells_of_their_own():
    graphs = [random_data(1), make_data([], 3), random_data(2)]
    joined = canonical_set(graphs)
    for division in (EdgeCentric(4), NodeCentric(4)):
        union = division.disjoint_union(joined, division.groups(joined))
        assert torch.equal(union.subgraph_index // 4, joined.batch[union.node])


# Promises


DATA = make_data([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)], 5, ids=[10, 11, 12, 13, 14])


@pytest.mark.parametrize(
    ("change", "edge_centric", "node_centric"),
    [
        (Perturbation(), 0, 0),
        (Perturbation(add_edges=[(10, 14)]), 1, 0),
        (Perturbation(add_edges=[(12, 14)]), 1, 1),
        (Perturbation(delete_edges=[(11, 12)]), 1, 1),
        (Perturbation(change_edges=[(11, 12, 2)]), 1, 1),
        (Perturbation(inject_nodes={99: [0, 0, 0]}), 0, 1),
        (Perturbation(inject_nodes={99: [0, 0, 0]}, add_edges=[(99, k) for k in (10, 11, 13, 14)]), 4, 1),
        (Perturbation(inject_nodes={99: [0, 0, 0]}, add_edges=[(99, k) for k in (10, 11, 12, 13, 14)]), 5, 1),
        (Perturbation(delete_nodes=[11]), 2, 1),
        (Perturbation(delete_nodes=[14]), 0, 1),
        (Perturbation(change_features={13: [0, 0, 0]}), 1, 1),
        (Perturbation(change_features={13: [0, 0, 0], 11: [0, 0, 0]}, delete_nodes=[10]), 3, 3),
    ],
)
def test_what_is_promised_to_a_target_when_all_groups_differ(change, edge_centric, node_centric):
    graph = canonical(DATA)
    assert EdgeCentric(10**6).votes_moved(change, graph, 2) == edge_centric
    assert NodeCentric(10**6).votes_moved(change, graph, 2) == node_centric
    assert GatedNodeCentric(10**6).votes_moved(change, graph, 2) == node_centric
    assert EdgeCentric(1).votes_moved(change, graph, 2) == min(1, edge_centric), "one group cannot move twice"


@pytest.mark.parametrize("division", [EdgeCentric(9), NodeCentric(9), GatedNodeCentric(9)], ids=str)
def test_nothing_is_promised_about_a_deleted_target(division):
    with pytest.raises(NotCovered, match="deletes the target itself"):
        division.votes_moved(Perturbation(delete_nodes=[12, 10]), canonical(DATA), 2)
    assert division.votes_moved(Perturbation(delete_nodes=[10]), canonical(DATA), 2) <= 1


def test_own_features_are_covered_by_the_gate_only():
    change = Perturbation(change_features={12: [0, 0, 0]})
    for division in (EdgeCentric(9), NodeCentric(9)):
        with pytest.raises(NotCovered, match=r"own features.*GatedNodeCentric"):
            division.votes_moved(change, canonical(DATA), 2)
    gated = GatedNodeCentric(9)
    assert gated.moved_groups(change, canonical(DATA), 2) == {int(gated.node_groups(canonical(DATA))[2])}


@pytest.mark.parametrize("division", [EdgeCentric(9), NodeCentric(9)], ids=str)
def test_deletions_are_not_covered_where_row_numbers_are_ids(division):
    rows = Data(x=DATA.x, edge_index=DATA.edge_index)
    for graph in (canonical(rows), canonical_set([rows])):
        with pytest.raises(NotCovered, match="Give it node_id"):
            division.votes_moved(Perturbation(delete_nodes=[0]), graph, None)
    assert division.votes_moved(Perturbation(inject_nodes={5: [0, 0, 0]}), canonical(rows), 2) <= 1


def test_edges_between_groups_cost_nothing_in_the_node_centric_graph_task():
    graph, division = canonical_set([DATA]), NodeCentric(10**6)
    assert division.votes_moved(Perturbation(add_edges=[(10, 14)]), graph, None) == 0
    assert NodeCentric(1).votes_moved(Perturbation(add_edges=[(10, 14)]), graph, None) == 1
    hub = Perturbation(inject_nodes={99: [0, 0, 0]}, add_edges=[(99, k) for k in range(10, 15)])
    assert division.votes_moved(hub, graph, None) == 1


def test_a_hub_is_hashed_at_once_and_not_edge_by_edge(monkeypatch):
    data = make_data([(0, 1)], 2, ids=[0, 1])
    graph, calls = canonical(data), []
    for name in ("node_groups", "edge_groups"):
        plain = getattr(hashing, name)
        monkeypatch.setattr(hashing, name, lambda *args, plain=plain: calls.append(1) or plain(*args))
    hub = Perturbation(inject_nodes={9: [0, 0, 0]}, add_edges=[(9, k) for k in range(100, 5100)])
    assert NodeCentric(10**6).votes_moved(hub, graph, 0) == 1
    assert EdgeCentric(10**6).votes_moved(hub, graph, 0) > 4900
    assert len(calls) == 3


@pytest.mark.parametrize("kind", [EdgeCentric, NodeCentric])
def test_a_number_of_groups_from_numpy_is_an_ordinary_one(kind):
    assert str(kind(np.int64(5))) == str(kind(5))
    assert type(kind(np.int64(5)).num_groups) is int


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("node", r"'node' is no defence: expected a division such as ac\.NodeCentric\(num_groups=60\)"),
        (None, "None is no defence"),
        (60, "60 is no defence"),
        (NodeCentric, "NodeCentric is a class"),
        (ac.baselines.BiRS, "BiRS is a class"),
        (ac.Budget(), r"Budget\(\) is no defence.*inherits from ac.Division"),
    ],
    ids=["name", "None", "number", "class", "smoothing", "other"],
)
def test_what_is_no_division_is_refused_by_name(thing, message):
    data = labelled_graph(12)
    model = ac.build_model("gcn", data, hidden_channels=4).eval()
    calls = [lambda: ac.certify(model, data, thing)]
    if thing is not None:  # where None means something
        calls += [lambda: ac.audit(model, defence=thing), lambda: ac.fit(model, data, thing, epochs=1)]
    for call in calls:
        with pytest.raises(ac.errors.SettingsError, match=message):
            call()
