"""Everything that a budget allows, on graphs of a handful of nodes, with random networks."""

import math
from typing import Any

import numpy as np
import pytest

import agnncert as ac
from agnncert.attacks import attack, exhaustive, greedy
from agnncert.attacks.vote_problem import VoteProblem
from tests.support.neighbour_graphs import BUDGETS, GraphListener, NodeListener, town, towns


def problems() -> list[tuple[Any, Any, Any]]:
    nodes = (ac.EdgeCentric(3), ac.NodeCentric(3), ac.GatedNodeCentric(3))
    return [
        *((NodeListener(seed), town(5, degree=2.0, seed=seed), division) for seed, division in enumerate(nodes)),
        *(
            (GraphListener(seed), towns(2, 4, seed=seed), kind(4))
            for seed, kind in enumerate((ac.EdgeCentric, ac.NodeCentric))
        ),
    ]


def test_nothing_within_a_certified_budget_changes_a_label_and_something_beyond_does() -> None:
    certified = broken = tried = 0
    for model, data, division in problems():
        certificate = ac.certify(model, data, division)
        problem = VoteProblem(model, data, division)
        for budget in BUDGETS:
            results = exhaustive(problem, None, budget)
            holds = certificate.holds_against(budget)
            fallen = np.array([result.succeeded for result in results])
            assert not (holds & fallen).any(), (division, budget)
            certified, broken = certified + int(holds.sum()), broken + int(fallen.sum())
            tried += sum(result.tried for result in results)
    # Otherwise the test above would say nothing.
    assert certified > 20
    assert broken > 20
    assert tried > 3000


def test_own_features_are_tried_where_the_budget_allows_it() -> None:
    data = town(5, seed=1)
    model = NodeListener()
    own = ac.Budget(target_features=True)
    open_division, gated = ac.NodeCentric(4), ac.GatedNodeCentric(4)
    for division in (open_division, gated):
        results = exhaustive(VoteProblem(model, data, division), None, own)
        assert all(result.cost in (ac.Budget(), own) for result in results)
        assert not (ac.certify(model, data, division).holds_against(own) & [r.succeeded for r in results]).any()
    assert any(result.succeeded for result in exhaustive(VoteProblem(model, data, open_division), None, own))
    assert max(result.moved for result in exhaustive(VoteProblem(model, data, gated), None, own)) <= 1


def test_greedy_finds_what_exhaustive_finds_most_of_the_time() -> None:
    missed = found = 0
    for model, data, division in problems():
        problem = VoteProblem(model, data, division)
        for budget in (BUDGETS[1], BUDGETS[4]):
            for everything, quick in zip(exhaustive(problem, None, budget), greedy(problem, None, budget), strict=True):
                assert everything.succeeded or not quick.succeeded
                found += quick.succeeded
                missed += everything.succeeded and not quick.succeeded
    assert found > missed


def test_too_many_attacks_are_refused_with_their_number() -> None:
    problem = VoteProblem(NodeListener(), town(12), ac.EdgeCentric(3))
    with pytest.raises(ac.errors.BudgetError, match=r"attacks on this graph, more than the limit of 20,000"):
        exhaustive(problem, [0], ac.Budget(add_edges=6))
    with pytest.raises(ac.errors.BudgetError, match="infinitely many"):
        exhaustive(problem, [0], ac.Budget(inject_nodes=math.inf, edges_per_injected=1))


def test_it_is_one_of_the_kinds() -> None:
    report = attack(NodeListener(), town(5), ac.EdgeCentric(3), budget=ac.Budget(delete_edges=1), kind="exhaustive")
    assert {result.kind for result in report.results} == {"exhaustive"}
