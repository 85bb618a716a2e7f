"""Divisions of one's own that read more than ids, or promise what is free, are refused by certify and verify."""

import re
from dataclasses import dataclass

import networkx as nx
import pytest
import torch

import agnncert as ac
from agnncert.divisions import stability
from agnncert.divisions.stability import require_stable
from agnncert.errors import DivisionError
from agnncert.graphs.canonical import canonical
from tests.zoo.local import zoo_data

EDGES = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}
DATA = zoo_data()


@dataclass(frozen=True)
class Own(ac.Division):
    """An honest division: the edge-centric groups, with costs."""

    num_groups: int = 7

    @property
    def unit_costs(self):
        return EDGES

    def groups(self, graph):
        return ac.EdgeCentric(self.num_groups).groups(graph)

    def subgraph(self, graph, groups, index):
        return graph.with_edges(groups == index)

    def votes_moved(self, change, graph, target):
        return len(change.add_edges) + len(change.delete_edges) + len(change.change_edges)


class ByDegree(Own):
    def groups(self, graph):
        return torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)[graph.edge_index].sum(0) % self.num_groups


class ByRow(Own):
    def groups(self, graph):
        return graph.edge_index.sum(0) % self.num_groups


class BySize(Own):
    def groups(self, graph):
        return (super().groups(graph) + graph.num_nodes) % self.num_groups


class ByFeatures(Own):
    def groups(self, graph):
        return (graph.x[graph.edge_index[0], 0] > 0).long()


class ByChance(Own):
    def groups(self, graph):
        return torch.randint(0, self.num_groups, (graph.num_edges,))


class BySeed(Own):
    """The same numbers each time, by the place of an edge in the list."""

    def groups(self, graph):
        generator = torch.Generator().manual_seed(0)
        return torch.randint(0, self.num_groups, (graph.num_edges,), generator=generator)


class ByCommunity(Own):
    def groups(self, graph):
        net = nx.Graph()
        net.add_nodes_from(range(graph.num_nodes))
        net.add_edges_from(graph.edge_index.t().tolist())
        found = nx.community.louvain_communities(net, seed=0)
        of_node = torch.zeros(graph.num_nodes, dtype=torch.int64)
        for number, members in enumerate(found):
            of_node[list(members)] = number
        return of_node[graph.edge_index].sum(0) % self.num_groups


class DerivedByDegree(ac.EdgeCentric):
    """Derives from a built-in division, whose theorem it would borrow."""

    def groups(self, graph):
        return torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)[graph.edge_index].sum(0) % self.num_groups


UNSTABLE = {
    "degrees": (ByDegree(), "edges were removed|edge was removed"),
    "rows": (ByRow(), "rows were in another order"),
    "number of nodes": (BySize(), "a lone node was added"),
    "features": (ByFeatures(), "features of nodes changed"),
    "chance": (ByChance(), "it was asked twice"),
    "a seed": (BySeed(), "edges were removed|edge was removed"),
    "communities": (ByCommunity(), "."),
    "degrees, derived": (DerivedByDegree(7), "edges were removed|edge was removed"),
}


def model():
    return ac.build_model("gcn", DATA, out_channels=3).eval()


@pytest.mark.parametrize("name", UNSTABLE)
def test_certify_refuses_groups_that_depend_on_more_than_ids(name):
    division, when = UNSTABLE[name]
    with pytest.raises(DivisionError, match=f"moved from group .* when .*({when})"):
        ac.certify(model(), DATA, division, targets=[0, 1])


class Free(Own):
    @property
    def unit_costs(self):
        return EDGES | {"add_edges": 0}


class Half(Own):
    @property
    def unit_costs(self):
        return EDGES | {"add_edges": 0.5}


class FreeNodes(Own):
    @property
    def unit_costs(self):
        return EDGES | {"inject_nodes": 0}


class NodesByEdges(Own):
    @property
    def unit_costs(self):
        return EDGES | {"inject_nodes": 0, "edges_per_injected": 1}


class NodesOfAnyDegree(Own):
    @property
    def unit_costs(self):
        return EDGES | {"inject_nodes": 2, "edges_per_injected": 0}


class FreeEdges(Own):
    @property
    def unit_costs(self):
        return EDGES | {"edges_per_injected": 0}


class NothingForNodes(Own):
    @property
    def unit_costs(self):
        return EDGES | {"inject_nodes": 0, "edges_per_injected": 0}


NOT_COSTS = [Free(), Half(), FreeNodes(), FreeEdges(), NothingForNodes()]


@pytest.mark.parametrize("division", NOT_COSTS, ids=lambda division: type(division).__name__)
def test_certify_refuses_a_cost_of_nothing(division):
    with pytest.raises(DivisionError, match="nothing is free"):
        ac.certify(model(), DATA, division, targets=[0, 1])


@pytest.mark.parametrize(
    "division", [Own(), NodesByEdges(), NodesOfAnyDegree(), ac.EdgeCentric(7, edges_only=True), ac.NodeCentric(7)]
)
def test_an_honest_division_is_accepted(division):
    require_stable(division, canonical(DATA))


def test_a_node_of_any_degree_costs_what_is_stated(tmp_path):
    trained = model()
    file = tmp_path / "own.cert"
    certificate = ac.certify(trained, DATA, NodesOfAnyDegree(), targets=range(DATA.num_nodes))
    certificate.save(file)
    assert ac.verify(file, model=trained, data=DATA, defence=NodesOfAnyDegree()).holds
    kept = []
    for nodes in range(4):
        holds = certificate.holds_against(ac.Budget(inject_nodes=nodes))  # each with any number of edges
        assert (holds == certificate.holds_against(ac.Budget(add_edges=2 * nodes))).all()
        kept.append(int(holds.sum()))
    assert kept[0] > kept[1] > 0
    for target, cost in enumerate(certificate.cheapest(ac.Prices(inject_nodes=1))):
        assert cost == certificate.radius[target] // 2 + 1, target


def test_verify_refuses_a_division_that_is_not_stable(tmp_path):
    trained = model()
    file = tmp_path / "own.cert"
    ac.certify(trained, DATA, Own(), targets=[0, 1]).save(file)

    @dataclass(frozen=True)
    class Renamed(ByDegree):
        def __str__(self):
            return str(Own())

    verdict = ac.verify(file, data=DATA, model=trained, defence=Renamed())
    assert not verdict.holds
    assert "Groups must depend on the ids" in str(verdict)


def test_the_first_line_of_a_verdict_says_whose_word_it_rests_on(tmp_path):
    trained = model()
    for name, division in (("own", Own()), ("edges", ac.EdgeCentric(7, edges_only=True)), ("node", ac.NodeCentric(7))):
        file = tmp_path / f"{name}.cert"
        ac.certify(trained, DATA, division, targets=[0, 1]).save(file)
        for verdict in (ac.verify(file), ac.verify(file, data=DATA, model=trained, defence=division)):
            assert verdict.holds
            first = str(verdict).splitlines()[0]
            assert ("rests on the word of the author of the division Own" in first) == (name == "own")


def no_stability(patch):
    patch.setattr(stability, "_require_same_groups", lambda division, graph: None)


def any_cost(patch):
    patch.setattr(stability, "_require_costs", lambda division: None)


def only_costs_of_the_library(patch):
    patch.setattr(stability, "is_own", lambda division: not (division.divides_edges or division.divides_nodes))


@pytest.mark.parametrize(
    ("mistake", "division"),
    [(no_stability, ByDegree()), (any_cost, Free()), (only_costs_of_the_library, DerivedByDegree(7))],
    ids=lambda part: getattr(part, "__name__", type(part).__name__),
)
def test_a_broken_look_would_let_it_pass(monkeypatch, mistake, division):
    graph = canonical(DATA)
    with pytest.raises(DivisionError):
        require_stable(division, graph)
    mistake(monkeypatch)
    require_stable(division, graph)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda groups: groups + 1, "from 1 to 5: with 5 groups expected numbers from 0 to 4, or -1"),
        (lambda groups: groups - 2, "from -2 to 2"),
        (lambda groups: groups.double(), "torch.float64: expected whole numbers"),
    ],
)
def test_certify_refuses_groups_that_are_none_of_the_division(make, words):
    class Misnumbered(Own):
        def groups(self, graph):
            return make(super().groups(graph))

    with pytest.raises(DivisionError, match=re.escape(words)):
        ac.certify(model(), DATA, Misnumbered(5), targets=[0, 1])
