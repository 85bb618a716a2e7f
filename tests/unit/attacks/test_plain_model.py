"""Attacks on a model without a defence follow the margin of its logits."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.nn import SAGEConv

import agnncert as ac
from agnncert.attacks import attack, greedy, problem_of
from agnncert.attacks.plain_model import PlainProblem, is_plain
from agnncert.defence import as_defence
from tests.support.neighbour_graphs import GraphListener, NodeListener, PlainListener, fits, town, towns

BUDGETS = [ac.Budget(add_edges=2), ac.Budget(delete_edges=2), ac.Budget(add_edges=1, delete_edges=1)]


def falls_by_edges_at(problem, row, budget):
    """Whether some change of edges at a node, of all that the budget allows, changes its label."""
    ids = problem.ids()
    near = {end for end in problem.adjacent([row]) if end != row}
    far = set(range(len(ids))) - near - {row}
    number = {"add_edges": int(budget.add_edges), "delete_edges": int(budget.delete_edges)}
    added = [combo for k in range(number["add_edges"] + 1) for combo in itertools.combinations(sorted(far), k)]
    deleted = [combo for k in range(number["delete_edges"] + 1) for combo in itertools.combinations(sorted(near), k)]
    changes = [
        ac.Perturbation(add_edges=[(ids[row], ids[v]) for v in some], delete_edges=[(ids[row], ids[v]) for v in others])
        for some in added
        for others in deleted
    ]
    label = problem.winner(problem.outcomes(np.array([row]))[0])
    after = problem.outcomes_after([(row, change) for change in changes])
    return any(problem.winner(outcome) != label for outcome in after)


def test_of_all_edges_at_a_node_the_best_one_is_found():
    problem = problem_of(NodeListener(seed=0), town(seed=0), ac.Undefended())
    one_edge = ac.Budget(add_edges=1)
    every = [falls_by_edges_at(problem, row, one_edge) for row in range(12)]
    guided = [result.succeeded for result in greedy(problem, range(12), one_edge)]
    assert guided == every
    assert 0 < sum(every) < len(every)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_two_changes_of_edges_are_found_nearly_as_often_as_by_trying_all(budget):
    problem = problem_of(NodeListener(seed=1), town(12, seed=1), ac.Undefended())
    results = greedy(problem, None, budget)
    assert all(fits(result.cost, budget) for result in results)
    found = sum(result.succeeded for result in results)
    possible = sum(falls_by_edges_at(problem, row, budget) for row in range(12))
    assert possible >= found >= 0.9 * possible > 0


def test_what_is_reported_is_the_models_own_label():
    model, data = NodeListener(seed=1), town(seed=1)
    report = attack(model, data, ac.Undefended(), budget=ac.Budget(add_edges=3, delete_edges=1))
    own = model(data.x, data.edge_index).argmax(dim=1).tolist()
    assert [result.label_before for result in report.results] == own
    for result in report.results:
        attacked = result.perturbed(data)
        assert int(model(attacked.x, attacked.edge_index).argmax(dim=1)[result.row]) == result.label_after
    assert report.succeeded.mean() > 0.7


def test_a_division_into_one_group_is_attacked_as_the_model_itself():
    model, data = NodeListener(seed=2), town(seed=2)
    plain, one_group = (
        attack(model, data, defence, budget=ac.Budget(add_edges=2), targets=range(6)).succeeded
        for defence in (ac.Undefended(), ac.EdgeCentric(1))
    )
    assert (plain == one_group).all()
    assert not is_plain(as_defence(ac.EdgeCentric(2)), data)
    assert not is_plain(as_defence(ac.NodeCentric(1)).with_voting_rule(ac.VotingRule(prior=1)), data)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[0], [0]])], dim=1)
    assert not is_plain(as_defence(ac.EdgeCentric(1)), data)  # which leaves self-loops out


@pytest.mark.parametrize("kind", ["greedy", "gradient"])
def test_layers_without_edge_weights_and_graphs_are_attacked_too(kind):
    model = PlainListener(seed=3, layer=SAGEConv)
    plain = attack(model, town(seed=3), ac.Undefended(), budget=BUDGETS[0], kind=kind, targets=range(5))
    graphs = attack(GraphListener(seed=3), towns(2), ac.Undefended(), budget=ac.Budget(add_edges=4), kind=kind)
    assert plain.succeeded.any()
    assert graphs.succeeded.any() or max(result.moved for result in graphs.results) > 0.2


def test_edges_with_weights_and_models_of_ones_own_are_attacked_by_single_edits():
    weighted = problem_of(NodeListener(seed=1), town(weights=True, seed=1), ac.Undefended())
    function = problem_of(lambda x, edge_index: _mean(x, edge_index), town(seed=1), ac.Undefended())
    for problem in (weighted, function):
        assert isinstance(problem, PlainProblem)
        assert not problem.follows_gradients
        assert any(result.succeeded for result in greedy(problem, range(6), ac.Budget(add_edges=3)))


def _mean(x, edge_index):
    total = x.clone()
    return total.index_add(0, edge_index[1], x[edge_index[0]])


def test_injected_nodes_and_features_are_used_where_the_budget_has_them():
    model, data = NodeListener(seed=1), town(seed=1)
    for budget in (ac.Budget(inject_nodes=2, edges_per_injected=1), ac.Budget(change_features=1, add_edges=1)):
        report = attack(model, data, ac.Undefended(), budget=budget, targets=range(6))
        assert all(fits(result.cost, budget) for result in report.results)
        assert report.succeeded.mean() > 0.5


def test_the_same_seed_finds_the_same_attack():
    first, second = (
        attack(NodeListener(seed=1), town(seed=1), ac.Undefended(), budget=BUDGETS[2], seed=5, targets=[1, 2]).results
        for _ in "ab"
    )
    assert [result.perturbation for result in first] == [result.perturbation for result in second]
    assert np.mean([result.tried for result in first]) >= 1
