"""Cluster-GCN: parts of the graph in training, and no trace of them in certificates."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graphs.canonical import canonical
from agnncert_large import clusters
from agnncert_large.clusters import ClusterObjective, Incoming, induced, partition
from agnncert_peers.gnncert import GNNCertE
from tests.support.labelled import labelled_graph
from tests.support.training_cases import graph_case, node_case, same, weights_of

needs_metis = pytest.mark.skipif(find_spec("pymetis") is None, reason="needs pymetis")

DIVISION = ac.NodeCentric(9)


def test_a_part_is_the_graph_on_its_nodes_with_the_groups_they_had() -> None:
    data = labelled_graph(30)
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0))
    graph = canonical(data)
    nodes = torch.tensor([1, 4, 5, 9, 12, 17, 20, 26])
    part, expected = induced(graph, nodes), canonical(data.subgraph(nodes))
    for name in ("x", "edge_index", "edge_weight", "node_key"):
        assert torch.equal(getattr(part, name), getattr(expected, name)), name
    inside = torch.isin(graph.edge_index, nodes).all(0)
    assert 0 < int(inside.sum()) < graph.num_edges
    for division in (ac.EdgeCentric(7), DIVISION):
        assert torch.equal(division.groups(part), division.groups(graph)[inside])


@needs_metis
def test_an_epoch_trains_on_every_training_node_once_and_mixes_the_clusters_anew() -> None:
    data = labelled_graph(60)
    graph, rows = canonical(data), data.train_mask.nonzero().view(-1)
    seen: list[tuple[int, ...]] = []

    class Watched:
        def __init__(self, part, y, mine) -> None:
            place = [graph.node_key.tolist().index(key) for key in part.node_key[mine].tolist()]
            assert torch.equal(y, data.y[[graph.node_key.tolist().index(k) for k in part.node_key.tolist()]])
            seen.append(tuple(place))

        def backward(self) -> float:
            return 0.0

    objective = ClusterObjective(graph, data.y, rows, partition(graph, 6), 2, Watched)
    torch.manual_seed(0)
    epochs = []
    for _ in range(4):
        seen.clear()
        assert sum(step() for step in objective.steps()) == 0
        epochs.append(sorted(seen))
        assert sorted(sum(seen, ())) == rows.tolist()
    assert len(epochs[0]) == 3
    assert any(epoch != epochs[0] for epoch in epochs)


def test_one_cluster_is_the_whole_graph() -> None:
    trained = []
    for number in (None, 1):
        model, data = node_case()
        trained.append(weights_of(ac.fit(model, data, DIVISION, epochs=1, lr=1e-3, clusters=number, objective="paper")))
    for name in trained[0]:
        torch.testing.assert_close(trained[0][name], trained[1][name])


@needs_metis
@pytest.mark.parametrize(
    "division", [None, DIVISION, ac.EdgeCentric(9), GNNCertE(9)], ids=["plain", "N", "E", "gnncert-e"]
)
def test_a_model_learns_from_clusters(division) -> None:
    model, data = node_case()
    ac.fit(model, data, division, epochs=30, clusters=4, clusters_per_step=2, lr=0.02)
    assert model.training_record["score"] > 0.7  # guessing gives a third
    assert (model.training_record["clusters"], model.training_record["clusters_per_step"]) == (4, 2)


@needs_metis
def test_a_certificate_depends_on_the_weights_alone_and_not_on_how_clusters_were_cut(monkeypatch) -> None:
    trained = {}
    for number in (2, 5):
        model, data = node_case()
        trained[number] = ac.fit(model, data, DIVISION, epochs=5, clusters=number)
    assert not same(weights_of(trained[2]), weights_of(trained[5]))
    monkeypatch.setitem(sys.modules, "pymetis", None)  # from here on no graph can be cut
    for model in trained.values():
        fresh, _ = node_case()
        fresh.load_state_dict(model.state_dict())
        mine, theirs = (ac.certify(m.eval(), data, DIVISION) for m in (model, fresh))
        assert np.array_equal(mine.counts, theirs.counts)
        assert mine.claim == theirs.claim
        naive = ac.certify(model, data, DIVISION, engine="naive")
        assert np.array_equal(mine.counts, naive.counts)


def test_clusters_are_for_one_large_graph() -> None:
    model, graphs = graph_case()
    with pytest.raises(ac.errors.SettingsError, match="use batch_size"):
        ac.fit(model, graphs, DIVISION, clusters=3)


def test_a_senseless_number_of_clusters_is_refused() -> None:
    model, data = node_case()
    with pytest.raises(ac.errors.SettingsError, match="expected a number from 1 to 48"):
        ac.fit(model, data, DIVISION, clusters=49)
    with pytest.raises(ac.errors.SettingsError, match="clusters_per_step=0"):
        ac.fit(model, data, DIVISION, clusters=4, clusters_per_step=0)


@pytest.fixture
def two_cliques() -> Data:
    clique = torch.combinations(torch.arange(6)).T
    bridge = torch.tensor([[0], [6]])
    return Data(x=torch.ones(12, 1), edge_index=torch.cat([clique, clique + 6, bridge], dim=1))


@needs_metis
def test_a_partition_cuts_where_it_costs_least(two_cliques) -> None:
    parts = partition(two_cliques, 2)
    assert sorted(part.tolist() for part in parts) == [list(range(6)), list(range(6, 12))]


@needs_metis
def test_every_node_is_in_exactly_one_part() -> None:
    edge_index = torch.randint(0, 50, (2, 120), generator=torch.Generator().manual_seed(0))
    graph = Data(x=torch.ones(53, 1), edge_index=edge_index)  # 3 nodes without an edge, and self-loops
    parts, again = partition(graph, 7), partition(graph, 7)
    assert torch.cat(parts).sort().values.tolist() == list(range(53))
    assert all(map(torch.equal, parts, again))
    assert len(parts) > 1


@needs_metis
def test_a_graph_without_edges_can_be_partitioned() -> None:
    parts = partition(Data(x=torch.ones(4, 1), edge_index=torch.empty(2, 0, dtype=torch.int64)), 2)
    assert torch.cat(parts).sort().values.tolist() == [0, 1, 2, 3]


def test_one_part_is_everything_and_needs_no_pymetis(two_cliques, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert [part.tolist() for part in partition(two_cliques, 1)] == [list(range(12))]
    with pytest.raises(ac.errors.MissingPackage, match=r"agnncert-large\[clusters\]"):
        partition(two_cliques, 2)


@pytest.mark.parametrize("num_parts", [0, 13])
def test_a_senseless_number_of_parts_is_refused(num_parts, two_cliques) -> None:
    with pytest.raises(ac.errors.SettingsError, match="expected a number from 1 to 12"):
        partition(two_cliques, num_parts)


@needs_metis
def test_of_a_graph_with_very_many_edges_metis_sees_a_sample(two_cliques, monkeypatch) -> None:
    assert sorted(zip(*clusters._sample(two_cliques.edge_index.numpy(), 12), strict=True)) == sorted(
        {(u, v) for pair in two_cliques.edge_index.t().tolist() for u, v in (pair, pair[::-1])}
    )
    monkeypatch.setattr(clusters, "METIS_EDGES", 24)
    monkeypatch.setattr(clusters, "_BLOCK", 10)
    tails, heads = clusters._sample(two_cliques.edge_index.numpy(), 12)
    assert 12 < len(tails) < two_cliques.num_edges * 2
    assert set(zip(heads, tails, strict=True)) == set(zip(tails, heads, strict=True))
    assert sorted(torch.cat(partition(two_cliques, 3)).tolist()) == list(range(12))


def test_edges_that_arrive_at_a_node_are_found_where_rows_and_ids_are_in_another_order() -> None:
    data = labelled_graph(30)
    data.node_id = torch.randperm(30, generator=torch.Generator().manual_seed(1)) * 7 - 60
    graph = canonical(data)
    incoming = Incoming.of(graph)
    for nodes in (torch.arange(30), torch.tensor([4, 9, 22]), torch.tensor([], dtype=torch.int64)):
        expected = torch.isin(graph.edge_index[1], nodes).nonzero().view(-1)
        assert torch.equal(incoming.edges(nodes), expected)
        part = induced(graph, nodes, incoming)
        assert (incoming.place == -1).all()
        assert part.num_edges == int(torch.isin(graph.edge_index, nodes).all(0).sum())
