"""The check that authors of divisions run: it passes ours and catches each kind of broken promise."""

import numpy as np
import pytest
import torch

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.errors import DivisionError, NotCovered, SettingsError
from agnncert.graphs.node_ids import node_keys
from agnncert_peers.testing import check_division, random_change, random_graph

FEW = 40  # attacked graphs; enough for the faults below


@pytest.mark.parametrize(
    ("division", "task"),
    [
        (EdgeCentric(5), "node"),
        (EdgeCentric(5), "graph"),
        (EdgeCentric(5, self_loops=True), "graph"),
        (NodeCentric(5), "node"),
        (NodeCentric(5), "graph"),
        (NodeCentric(5, self_loops=True), "graph"),
        (GatedNodeCentric(5), "node"),
    ],
    ids=str,
)
def test_built_in_divisions_keep_their_promise(division, task):
    check_division(division, task, trials=FEW)


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", [PerEdge(), PerNeighbour()], ids=str)
def test_one_group_per_neighbour_keeps_its_promise(division, task):
    check_division(division, task, trials=FEW // 2, voting_rule=VotingRule(empty=1, prior=[0, 3]))


@pytest.mark.parametrize(
    ("division", "voting_rule"),
    [
        (EdgeCentric(5), VotingRule(empty="abstain", prior=2)),
        (EdgeCentric(5, self_loops=True), VotingRule(empty=0)),
        (NodeCentric(5), VotingRule(empty=2, prior=-1)),
        (GatedNodeCentric(5), VotingRule(empty=1)),
    ],
    ids=str,
)
def test_constants_of_empty_groups_move_no_more_votes(division, voting_rule):
    check_division(division, trials=FEW // 2, voting_rule=voting_rule)


class SharedGroups(PerNeighbour):
    """Says that every neighbour has a group of its own, and shows what comes from the next one too."""

    def subgraph(self, graph, groups, index):
        return super().subgraph(graph, torch.where(groups == index + 1, index, groups), index)


class ForgetsPairs(PerEdge):
    def votes_moved(self, change, graph, target):
        return len(super().moved_groups(change, graph, target)) - len(change.add_edges)


class OneAtMost(NodeCentric):
    """Promises that no attack moves more than one vote."""

    def votes_moved(self, change, graph, target):
        return min(1, super().votes_moved(change, graph, target))


@pytest.mark.parametrize("division", [SharedGroups(), ForgetsPairs(), OneAtMost(3)], ids=repr)
def test_broken_promises_are_caught_with_votes_and_groups_of_their_own(division):
    with pytest.raises(DivisionError, match="but votes_moved promised"):
        check_division(division, trials=200, voting_rule=VotingRule(empty="abstain"))


def test_a_vote_that_makes_no_sense_is_refused():
    for division, voting_rule in ((PerNeighbour(), VotingRule(empty="no_edge")), (Mine(), VotingRule(empty=1))):
        with pytest.raises(SettingsError):
            check_division(division, voting_rule=voting_rule)
    check_division(Mine(), trials=5, voting_rule=VotingRule(prior=[0, 5]))


class Mine(Division):
    """A correct division of one's own: the smaller end decides; features are not covered."""

    num_groups = 4
    unit_costs = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}  # noqa: RUF012

    def groups(self, graph):
        return node_keys(graph)[graph.edge_index].amin(0) % 4

    def subgraph(self, graph, groups, index):
        inside = groups == index
        return graph.with_edges(inside)

    def votes_moved(self, change, graph, target):
        if change.inject_nodes or change.delete_nodes or change.change_features:
            raise NotCovered("nodes")
        return len(change.add_edges) + len(change.delete_edges) + len(change.change_edges)


def test_a_correct_division_of_ones_own_passes():
    check_division(Mine(), trials=FEW)
    assert isinstance(Mine().num_groups, int)


class Optimist(Mine):
    def votes_moved(self, change, graph, target):
        return 0


class OwnFeatures(NodeCentric):
    """Forgets that the target's own features are in every vote."""

    def votes_moved(self, change, graph, target):
        return len(change.change_features) + 3 * (change.cost().inject_nodes + 1) if not change.delete_nodes else 9


class BySize(Mine):
    """Its groups depend on the number of nodes."""

    def groups(self, graph):
        return (graph.edge_index.sum(0) * graph.num_nodes) % 4


class KeepsSilentNodes(EdgeCentric):
    """Graph task: every subgraph has all nodes."""

    subgraph = Mine.subgraph


class ForgetsReborn(EdgeCentric):
    """Looks up touched nodes among the edges that the change names, not in the graph."""

    def votes_moved(self, change, graph, target):
        if change.delete_nodes or change.change_features:
            super().votes_moved(change, graph, target)
            return len(change.add_edges) + len(change.delete_edges) + len(change.change_edges)
        return super().votes_moved(change, graph, target)


class CheapNodes(Mine):
    """Prices an injected node like an edge, but it moves several votes."""

    unit_costs = {**Mine.unit_costs, "inject_nodes": 1, "edges_per_injected": 0}  # noqa: RUF012


class FreeOwnFeatures(Mine):
    unit_costs = {**Mine.unit_costs, "change_features": 4, "target_features": 1}  # noqa: RUF012


@pytest.mark.parametrize(
    ("division", "task", "message"),
    [
        (Optimist(), "node", "moved 1 votes of target .* but votes_moved promised at most 0"),
        (OwnFeatures(12), "node", r"change_features=.*but votes_moved promised at most"),
        (BySize(), "node", "moved from group . to . when something else changed .*depend on ids only"),
        (KeepsSilentNodes(12), "graph", "votes of the graph .* but votes_moved promised"),
        (ForgetsReborn(12), "node", "but votes_moved promised at most"),
        (CheapNodes(), "node", "but unit_costs promised at most"),
        (FreeOwnFeatures(), "node", "but unit_costs promised at most"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_broken_promises_are_caught_with_the_attack_that_shows_it(division, task, message):
    with pytest.raises(DivisionError, match=message):
        check_division(division, task, trials=200)


class WrongShape(Mine):
    def groups(self, graph):
        return torch.zeros(3 + graph.num_edges, dtype=torch.int64)


class TooLarge(Mine):
    def groups(self, graph):
        return torch.full((graph.num_edges,), 4)


class TooSmall(Mine):
    def groups(self, graph):
        return torch.full((graph.num_edges,), -2)


class Fractions(Mine):
    def groups(self, graph):
        return torch.zeros(graph.num_edges)


class Drops(Mine):
    def subgraph(self, graph, groups, index):
        return graph.with_nodes(torch.arange(1, graph.num_nodes), torch.arange(0))


@pytest.mark.parametrize(
    ("division", "message"),
    [
        (WrongShape(), r"groups\(\) returned shape .* expected one group from 0 to 3"),
        (TooLarge(), r"groups\(\) returned"),
        (TooSmall(), r"groups\(\) returned"),
        (Fractions(), r"groups\(\) returned"),
        (Drops(), r"subgraph\(\) dropped nodes: in the node task all nodes stay"),
        (object(), r"a object is no division.*inherits from ac\.Division"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_methods_that_return_something_else_are_named(division, message):
    with pytest.raises(DivisionError, match=message):
        check_division(division, trials=FEW)


def test_the_attacks_tried_are_of_every_kind():
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(150):
        graph = random_graph(random)
        change = random_change(graph, random)
        change.apply(graph)
        cost = change.cost()
        seen |= {name for name in cost.__dataclass_fields__ if getattr(cost, name)}
        if set(change.delete_nodes) & set(change.inject_nodes):
            seen.add("vacated id")
        if "edge_weight" in graph:
            seen.add("weights")
        arcs = set(map(tuple, graph.edge_index.t().tolist()))
        if any((v, u) not in arcs for u, v in arcs):
            seen.add("one-way")
    everything = {
        "add_edges",
        "delete_edges",
        "change_edges",
        "inject_nodes",
        "edges_per_injected",
        "delete_nodes",
        "change_features",
    }
    assert seen == everything | {"vacated id", "weights", "one-way"}


def test_the_same_seed_tries_the_same_attacks():
    changes = [random_change(random_graph(r), r) for r in (np.random.default_rng(3), np.random.default_rng(3))]
    assert changes[0] == changes[1]


class LargeGraphsOnly(EdgeCentric):
    """Behaves well in graphs of at most 50 nodes."""

    def groups(self, graph):
        groups = super().groups(graph)
        return groups if graph.num_nodes <= 50 else (groups + graph.num_edges) % self.num_groups


class ByDirection(EdgeCentric):
    """Both directions of an edge may lie in different groups, which costs two votes."""

    def groups(self, graph):
        source, head = graph.node_key[graph.edge_index]
        return (3 * source + head).abs() % self.num_groups


class ByChance(EdgeCentric):
    def groups(self, graph):
        return torch.randint(0, self.num_groups, (graph.num_edges,))


class ByLargeId(EdgeCentric):
    """Reads the degree of nodes with ids that no random graph has."""

    def groups(self, graph):
        degree = torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)[graph.edge_index[1]]
        is_large = (graph.node_key[graph.edge_index] > 2000).all(dim=0)
        return torch.where(is_large, degree % self.num_groups, super().groups(graph))


def test_a_division_that_misbehaves_in_larger_graphs_alone_is_caught():
    with pytest.raises(DivisionError, match="groups must depend on ids only"):
        check_division(LargeGraphsOnly(7))


def test_a_division_by_direction_is_caught_with_twelve_groups():
    with pytest.raises(DivisionError, match="votes_moved promised"):
        check_division(ByDirection(12))


def test_a_division_by_chance_is_caught():
    with pytest.raises(DivisionError, match="groups must depend on ids only"):
        check_division(ByChance(7))


def own_graph():
    graph = random_graph(np.random.default_rng(3), num_nodes=80)
    graph.node_id = graph.node_id + 5000
    return graph


def test_a_division_that_misbehaves_on_the_users_graph_alone_is_caught():
    check_division(ByLargeId(7), trials=20)
    with pytest.raises(DivisionError, match=r"when another edge was removed|when half of the other edges"):
        check_division(ByLargeId(7), trials=20, data=own_graph())


@pytest.mark.parametrize("division", [EdgeCentric(7), NodeCentric(7), PerNeighbour()], ids=str)
def test_built_in_divisions_keep_their_promise_on_a_users_graph(division):
    check_division(division, trials=20, data=own_graph())
