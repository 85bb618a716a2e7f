"""GNNCert's divisions: what a subgraph shows, how many votes a change moves, and what is refused."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.divisions.named import parse_division
from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import one_graph
from agnncert.graphs.perturbation import Perturbation
from agnncert_peers.gnncert import GNNCertE, GNNCertEN, GNNCertN
from agnncert_peers.testing import check_division
from tests.support.small_graphs import known_graph_model, known_model, random_graph

SMALL = (GNNCertE(5), GNNCertN(5), GNNCertEN(3, 4))


def path(num_nodes=6):
    ends = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    return Data(
        x=torch.arange(1.0, 2 * num_nodes + 1).view(num_nodes, 2).double(),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        node_id=torch.arange(num_nodes) + 50,
    )


def parts(division, data, task):
    graph = canonical(data) if task == "node" else one_graph(canonical_set([data]), 0)
    groups = division.groups(graph)
    return graph, [division.subgraph(graph, groups, i) for i in range(division.num_groups)]


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", SMALL, ids=str)
def test_every_subgraph_keeps_all_nodes(division, task):
    _, subgraphs = parts(division, path(), task)
    assert all(part.x.shape == (6, 2) for part in subgraphs)


def test_every_edge_is_in_one_subgraph_of_e_and_features_are_in_all():
    graph, subgraphs = parts(GNNCertE(5), path(), "graph")
    assert sum(part.num_edges for part in subgraphs) == graph.num_edges
    assert all(torch.equal(part.x, graph.x) for part in subgraphs)
    for part in subgraphs:  # both directions share a subgraph
        assert {(u, v) for u, v in part.edge_index.t().tolist()} == {(v, u) for u, v in part.edge_index.t().tolist()}


def test_every_node_shows_its_features_in_exactly_one_subgraph_of_n_and_edges_are_in_all():
    graph, subgraphs = parts(GNNCertN(3), path(), "graph")
    shown = torch.stack([(part.x != 0).any(1) for part in subgraphs])
    assert (shown.sum(0) == 1).all()
    assert torch.equal(torch.stack([part.x for part in subgraphs]).sum(0), graph.x)
    assert all(torch.equal(part.edge_index, graph.edge_index) for part in subgraphs)


@pytest.mark.parametrize("division", [GNNCertN(3), GNNCertEN(2, 3)], ids=str)
def test_blanking_features_leaves_the_graph_and_other_subgraphs_as_they_are(division):
    data = path()
    before = data.x.clone()
    graph, subgraphs = parts(division, data, "graph")
    copies = [part.x.clone() for part in subgraphs]
    subgraphs[0].x.fill_(-99)  # what the released code does to the tensor that all subgraphs share
    assert torch.equal(data.x, before)
    assert torch.equal(graph.x, before)
    assert all(torch.equal(part.x, x) for part, x in zip(subgraphs[1:], copies[1:], strict=True))
    assert any((x != 0).any() for x in copies)


def test_the_grid_pairs_every_edge_group_with_every_feature_group():
    data, both = path(), GNNCertEN(2, 3)
    _, cells = parts(both, data, "graph")
    (_, rows), (_, columns) = parts(GNNCertE(2), data, "graph"), parts(GNNCertN(3), data, "graph")
    assert both.num_groups == 6
    for index, cell in enumerate(cells):
        assert torch.equal(cell.edge_index, rows[index // 3].edge_index)
        assert torch.equal(cell.x, columns[index % 3].x)


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", SMALL, ids=str)
def test_no_change_moves_more_votes_than_promised(division, task):
    check_division(division, task, trials=20)


def test_the_cells_that_edges_and_nodes_move_are_counted_as_a_union():
    """Every choice of edges and nodes on a path of five, cells compared one by one."""
    data, division = path(5), GNNCertEN(3, 4)
    graph, before = parts(division, data, "graph")
    row_of = {
        tuple(sorted(pair)): int(g)
        for pair, g in zip((graph.edge_index.t() + 50).tolist(), division.groups(graph), strict=True)
    }
    column_of = dict(zip(range(50, 55), GNNCertN(4).node_groups(graph).tolist(), strict=True))
    edges = list(row_of)
    for s, r in itertools.product(range(3), range(3)):
        for deleted in itertools.combinations(edges, s):
            for changed in itertools.combinations(range(50, 55), r):
                change = Perturbation(delete_edges=deleted, change_features={n: [-1.0, -1.0] for n in changed})
                _, after = parts(division, change.apply(data), "graph")
                moved = sum(not same(a, b) for a, b in zip(before, after, strict=True))
                rows, columns = {row_of[e] for e in deleted}, {column_of[n] for n in changed}
                by_hand = len({(i, j) for i in range(3) for j in range(4) if i in rows or j in columns})
                assert moved == by_hand == division.votes_moved(change, graph, None)
                assert by_hand <= r * 3 + s * 4 - r * s


def same(a, b):
    return torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index)


@pytest.fixture(scope="module")
def unanimous():
    return ac.certify(AlwaysOne(), [path()], GNNCertEN(4, 4))


@pytest.mark.parametrize(("edges", "nodes"), list(itertools.product(range(5), range(5))))
def test_a_budget_of_edges_and_nodes_is_charged_the_union(edges, nodes, unanimous):
    """All votes agree, so the label holds exactly up to half of the grid."""
    certificate = unanimous
    assert certificate.counts.tolist() == [[0, 16]]
    s, r = min(edges, 4), min(nodes, 4)
    moved = r * 4 + s * 4 - r * s
    held = certificate.holds_against(ac.Budget(delete_edges=edges, change_features=nodes))
    assert held.tolist() == [16 - 2 * moved > 0]  # class 0 wins ties


class AlwaysOne(torch.nn.Module):
    def forward(self, x, edge_index, batch):
        return torch.tensor([[0.0, 1.0]]).repeat(int(batch.max()) + 1, 1)


@pytest.mark.parametrize("division", SMALL, ids=str)
def test_nodes_injected_or_deleted_are_refused(division):
    graph = canonical(path())
    for change in (Perturbation(inject_nodes={9: [0, 0]}), Perturbation(delete_nodes=[50])):
        with pytest.raises(NotCovered, match="injects or deletes"):
            division.votes_moved(change, graph, 0)


def test_each_division_refuses_what_it_does_not_divide():
    graph = canonical(path())
    with pytest.raises(NotCovered, match="changed features"):
        GNNCertE(5).votes_moved(Perturbation(change_features={50: [0, 0]}), graph, None)
    with pytest.raises(NotCovered, match="changed edges"):
        GNNCertN(5).votes_moved(Perturbation(delete_edges=[(50, 51)]), graph, None)


@pytest.mark.parametrize(
    ("division", "covered"),
    [
        (GNNCertE(5), ("add_edges", "delete_edges", "change_edges")),
        (GNNCertN(5), ("change_features",)),
        (GNNCertEN(3, 3), ("add_edges", "delete_edges", "change_edges", "change_features")),
    ],
    ids=str,
)
def test_certificates_hold_against_covered_budgets_only(division, covered):
    certificate = ac.certify(AlwaysOne(), [path()], division)
    for name in ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features"):
        assert certificate.holds_against(ac.Budget(**{name: 1})).all() == (name in covered), name
    assert "Any change that is not listed as covered." in certificate.claim.not_proved


@pytest.mark.parametrize("division", SMALL, ids=str)
def test_both_engines_cast_the_same_votes_of_graphs(division):
    model = known_graph_model(seed=1)
    graphs = [random_graph(4 + k, 3 * k, seed=k) for k in range(6)]
    fast, naive = (ac.certify(model, graphs, division, engine=engine) for engine in ("fast", "naive"))
    assert any(len(set(votes)) > 1 for votes in fast.evidence.votes.dense().tolist())
    np.testing.assert_array_equal(fast.evidence.votes.dense(), naive.evidence.votes.dense())
    np.testing.assert_array_equal(fast.radius, naive.radius)


@pytest.mark.parametrize("division", SMALL, ids=str)
def test_both_engines_cast_the_same_votes_of_nodes(division):
    model, data = known_model(), random_graph(12, 8)
    fast, naive = (ac.certify(model, data, division, [0, 5, 7], engine=engine) for engine in ("fast", "naive"))
    np.testing.assert_array_equal(fast.evidence.votes.dense(), naive.evidence.votes.dense())


@pytest.mark.parametrize("division", [GNNCertE(40), GNNCertN(40), GNNCertEN(9, 9)], ids=str)
def test_subgraphs_said_to_be_the_same_are(division):
    graph, subgraphs = parts(division, path(), "graph")
    first = division.same_as(graph, division.groups(graph)).tolist()
    assert len(set(first)) < division.num_groups
    assert all(same(subgraphs[i], subgraphs[k]) and k <= i for i, k in enumerate(first))


def test_the_targets_own_features_count_like_those_of_any_node():
    model = known_model()
    with torch.no_grad():  # else a vote without any features is a tie, which is conceded
        model.convs[1].bias.copy_(torch.tensor([0.0, 0.1, 0.2]))
    certificate = ac.certify(model, random_graph(12, 8), GNNCertN(7))
    own, other = ac.Budget(target_features=True), ac.Budget(change_features=1)
    np.testing.assert_array_equal(certificate.holds_against(own), certificate.holds_against(other))
    assert certificate.holds_against(own).any()
    assert not ac.certify(known_model(), random_graph(12, 8), GNNCertE(7)).holds_against(own).any()


@pytest.mark.parametrize("division", SMALL, ids=str)
def test_a_saved_certificate_verifies_with_graph_and_model(division, tmp_path):
    model, graphs = known_graph_model(), [random_graph(6, 5, seed=k) for k in range(4)]
    ac.certify(model, graphs, division).save(tmp_path / "gnncert.cert")
    verdict = ac.verify(tmp_path / "gnncert.cert", data=graphs, model=model, recheck=math.inf)
    assert verdict.holds, verdict.reasons
    verdict = ac.verify(tmp_path / "gnncert.cert", data=graphs, model=known_graph_model(seed=1), recheck=9)
    assert not verdict.holds


def test_numbers_of_groups_may_be_integers_of_numpy(tmp_path):
    five = np.int64(5)
    assert (GNNCertE(five), GNNCertN(five), GNNCertEN(five, five)) == (GNNCertE(5), GNNCertN(5), GNNCertEN(5, 5))
    ac.certify(known_model(), random_graph(6, 5), GNNCertEN(five, five)).save(tmp_path / "gnncert.cert")
    assert ac.verify(tmp_path / "gnncert.cert").holds


@pytest.mark.parametrize("division", SMALL, ids=str)
def test_the_printed_division_can_be_read_back(division):
    assert parse_division(str(division)) == division


@pytest.mark.parametrize("text", ["gnncert-e(T=3x3, hash=md5, key=u64le)", "gnncert-en(T=9, hash=md5, key=u64le)"])
def test_a_division_that_makes_no_sense_cannot_be_read(text):
    with pytest.raises(DivisionError, match="cannot rebuild"):
        parse_division(text)


@pytest.mark.parametrize("make", [lambda: GNNCertE(0), lambda: GNNCertN(3, "md6"), lambda: GNNCertEN(3, 0)])
def test_numbers_of_groups_and_hashes_that_make_no_sense_are_refused(make):
    with pytest.raises(DivisionError):
        make()
