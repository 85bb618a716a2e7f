"""Controls: the proof of the size-only rule against every attack on tiny graphs, and the rule against every threshold."""

import math
from functools import cache
from itertools import chain, combinations, product

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.splits import GraphSet
from agnncert.errors import SettingsError
from agnncert.training.rule_search import window
from agnncert_peers.size_control import GraphSizes, SizedGraphs, SizeRule, one_unit, size_rule
from agnncert_peers.threat import Threat


def graph(num_nodes, pairs, label=0):
    ends = torch.tensor(sorted(pairs), dtype=torch.int64).view(-1, 2).t()
    return Data(
        x=torch.ones(num_nodes, 1), edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([label]),
        node_id=torch.arange(num_nodes),
    )  # fmt: skip


def subsets(things, most):
    things = list(things)
    return chain.from_iterable(combinations(things, k) for k in range(min(int(most), len(things)) + 1))


@cache
def injected_numbers(num_old, num_new, most_each):
    """Numbers of edges that this many injected nodes can bring, found by trying all of them; priced by ``Perturbation``."""
    old, new = range(num_old), [f"new {k}" for k in range(num_new)]
    pairs = [*product(old, new), *combinations(new, 2)]
    features = {name: [0.0] for name in new}
    chosen = (list(edges) for edges in subsets(pairs, len(pairs)))
    return {
        len(edges)
        for edges in chosen
        if ac.Perturbation(add_edges=edges, inject_nodes=features).cost().edges_per_injected <= most_each
    }


def every_size(num_nodes, pairs, budget):
    """Numbers of nodes and of edges of all graphs that an attacker within the budget can make."""
    reached = set()
    for gone in subsets(range(num_nodes), budget.delete_nodes):
        left = [node for node in range(num_nodes) if node not in gone]
        kept = [pair for pair in pairs if not set(pair) & set(gone)]
        free = [pair for pair in combinations(left, 2) if pair not in kept]
        for lost, added in product(subsets(kept, budget.delete_edges), subsets(free, budget.add_edges)):
            old = len(kept) - len(lost) + len(added)
            for num_new in range(int(budget.inject_nodes) + 1):
                new = injected_numbers(len(left), num_new, budget.edges_per_injected) if num_new else {0}
                reached |= {(len(left) + num_new, old + brought) for brought in new}
    return reached


GRAPHS = [(1, ()), (2, ((0, 1),)), (3, ((0, 1), (1, 2))), (4, ((0, 1), (0, 2), (0, 3), (2, 3))), (3, ())]
BUDGETS = [
    ac.Budget(add_edges=1),
    ac.Budget(add_edges=2, delete_edges=2),
    ac.Budget(delete_edges=9),
    ac.Budget(delete_nodes=1),
    ac.Budget(delete_nodes=1, delete_edges=1, add_edges=1),
    ac.Budget(inject_nodes=1, edges_per_injected=2),
    ac.Budget(inject_nodes=2, edges_per_injected=1, add_edges=1),
    ac.Budget(inject_nodes=2, edges_per_injected=3),
    ac.Budget(inject_nodes=2, edges_per_injected=math.inf, delete_nodes=1),
    ac.Budget(change_features=math.inf, change_edges=math.inf),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_exactly_the_sizes_between_both_ends_are_reached(budget):
    for num_nodes, pairs in GRAPHS:
        sizes = GraphSizes.of([graph(num_nodes, pairs)])
        reached = every_size(num_nodes, pairs, budget)
        for place, counts in enumerate(("nodes", "edges")):
            least, most = (int(end[0]) for end in sizes.span(counts, budget))
            assert {pair[place] for pair in reached} == set(range(least, most + 1))


def test_joined_nodes_that_are_deleted_together_are_counted_on_the_safe_side():
    sizes, budget = GraphSizes.of([graph(4, ((0, 1), (1, 2), (2, 3)))]), ac.Budget(delete_nodes=2)
    least, most = sizes.span("edges", budget)
    reached = {edges for _, edges in every_size(4, ((0, 1), (1, 2), (2, 3)), budget)}
    assert least[0] <= min(reached)
    assert most[0] == max(reached)


@pytest.mark.parametrize("counts", ["nodes", "edges"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_class_by_size_is_certified_if_and_only_if_no_attack_changes_it(budget, counts):
    place = ("nodes", "edges").index(counts)
    for (num_nodes, pairs), threshold in product(GRAPHS, range(-1, 8)):
        rule, sizes = SizeRule(counts, threshold, 0, 1, 0.0), GraphSizes.of([graph(num_nodes, pairs)])
        labels = {int(reached[place] > threshold) for reached in every_size(num_nodes, pairs, budget)}
        assert rule.withstands(sizes, budget)[0] == (len(labels) == 1)
        assert rule.label(sizes)[0] in labels


def test_copies_directions_and_self_loops_are_no_edges():
    data = graph(3, ((0, 1),))
    data.edge_index = torch.cat([data.edge_index, data.edge_index, torch.tensor([[2, 1], [2, 2]])], dim=1)
    sizes = GraphSizes.of([data])
    assert (sizes.nodes.tolist(), sizes.edges.tolist()) == ([3], [2])
    assert sizes.degrees[0].tolist() == [2, 1, 1]


def path_set(seed=0, count=40):
    """Paths whose class goes with their length, with exceptions."""
    random = np.random.default_rng(seed)
    made = []
    for length in random.integers(1, 12, count).tolist():
        label = int(length > 5) if random.random() < 0.85 else int(random.integers(3))
        made.append(graph(length + 1, [(k, k + 1) for k in range(length)], label))
    return GraphSet(made, train=range(count // 2), val=range(count // 2, count - 5), test=range(count - 5, count))


@pytest.mark.parametrize(
    "budgets", [None, Threat("edges").budgets, Threat("injection", 2).budgets], ids=["unit", "edges", "injection"]
)
@pytest.mark.parametrize("counts", ["nodes", "edges"])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_no_threshold_and_no_pair_of_classes_does_better(budgets, counts, size):
    graphs = SizedGraphs.of(path_set(seed=size))
    best, ends = 0.0, []
    for near in window(size):
        spans = [graphs.sizes.span(counts, budget) for budget in (budgets or one_unit(counts))(near)]
        ends.append((np.min(spans, axis=0)[0], np.max(spans, axis=0)[1]))
    for threshold, low, high in product(range(-5, 60), range(3), range(3)):
        scores = []
        for least, most in ends:
            sure = (most <= threshold) & (graphs.truth == low) | (least > threshold) & (graphs.truth == high)
            scores.append(graphs.weight @ sure)
        best = max(best, float(np.mean(scores)))
    best = max(best, float(np.bincount(graphs.truth, graphs.weight).max()))
    found = size_rule(graphs, size, counts, budgets)
    assert found.score == pytest.approx(best)


def test_a_constant_is_taken_where_the_size_tells_no_more():
    graphs = path_set()
    for k, each in enumerate(graphs):
        each.y = torch.tensor([int(k % 3 == 0)])
    again = GraphSet(list(graphs), train=graphs.train, val=graphs.val, test=graphs.test)
    rule = size_rule(again, 20)
    assert (rule.low, rule.high) == (0, 0)
    assert str(rule) == "always 0"
    with pytest.raises(SettingsError, match="nodes"):
        size_rule(again, 1, "loops")


@pytest.mark.parametrize("division", [ac.EdgeCentric(2000), ac.NodeCentric(2000)], ids=str)
def test_it_certifies_as_the_vote_of_a_constant_model_does_where_groups_are_many(division):
    """With this many groups hardly two edges share one: counting filled groups is then counting edges, or nodes."""
    from agnncert.models.build import build_constant

    data, counts = path_set(), "edges" if isinstance(division, ac.EdgeCentric) else "nodes"
    rule = SizeRule(counts, 5, 0, 1, 0.0)
    filled = 2 * rule.threshold + 1  # a filled group takes a vote from class 0 and gives one to class 1
    voting_rule = ac.VotingRule(empty=0, prior=[0, division.num_groups - filled])
    cert = ac.certify(
        build_constant(data, 1, 3),
        data,
        division,
        voting_rule=ac.VotingRule(voting_rule.empty, [*voting_rule.prior, -5000]),
    )
    sizes = GraphSizes.of(list(data))
    alone = np.bincount(cert.evidence.votes.owner, minlength=len(data)) == sizes.counted(counts)
    assert alone.mean() > 0.8
    assert (cert.label == rule.label(sizes))[alone].all()
    number = sizes.counted(counts)
    distance = np.where(number <= rule.threshold, rule.threshold - number, number - rule.threshold - 1)
    assert (cert.radius == distance)[alone].all()


def bag(num_zeros, num_ones):
    """A graph whose nodes vote 0 or 1 by their features; edges go all the way round."""
    nodes = num_zeros + num_ones
    kinds = torch.tensor([0] * num_zeros + [1] * num_ones)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.eye(2)[kinds], edge_index=ring, y=torch.tensor([0]), node_id=torch.arange(nodes))


def winners_of(zeros, ones, prior, empty, budget):
    """Classes that some attack on a bag elects, found by trying every number of changes of each kind."""
    found = set()
    gone = ((a, b) for a, b in product(range(zeros + 1), range(ones + 1)) if a + b <= budget.delete_nodes)
    for (lost0, lost1), turned0, turned1 in product(gone, range(zeros + 1), range(ones + 1)):
        if turned0 > zeros - lost0 or turned1 > ones - lost1 or turned0 + turned1 > budget.change_features:
            continue
        for new0, new1 in product(range(int(budget.inject_nodes) + 1), repeat=2):
            if new0 + new1 > budget.inject_nodes:
                continue
            score = [
                prior[0] + zeros - lost0 - turned0 + turned1 + new0,
                prior[1] + ones - lost1 + turned0 - turned1 + new1,
            ]
            if empty != "abstain":  # each node that is there is one empty group less
                score[empty] -= zeros + ones - lost0 - lost1 + new0 + new1
            found.add(int(score[1] > score[0]))
    return found


@pytest.mark.parametrize("empty", ["abstain", 0, 1])
def test_a_bag_of_nodes_is_certified_if_and_only_if_no_attack_changes_its_vote(empty):
    bags = [(zeros, ones) for zeros, ones in product(range(4), repeat=2) if zeros + ones]
    graphs = [bag(*each) for each in bags]
    model = ac.build_model("mlp", graphs, hidden_channels=2, num_layers=1, readout="sum", out_channels=2)
    with torch.no_grad():
        for layer in (model.convs[0], model.lin):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    for prior in ([0, 0], [2, 0], [0, 3], [0, -2]):
        cert = ac.certify(model.eval(), graphs, ac.PerNeighbour(), voting_rule=ac.VotingRule(empty, prior))
        for deleted, turned, new in product(range(3), range(2), range(3)):
            budget = ac.Budget(delete_nodes=deleted, change_features=turned, inject_nodes=new, add_edges=math.inf)
            held = cert.holds_against(budget)
            for place, (zeros, ones) in enumerate(bags):
                winners = winners_of(zeros, ones, prior, empty, budget)
                assert cert.label[place] in winners
                assert held[place] == (len(winners) == 1)
