"""Attacks on votes with a prior, and on groups of neighbours: nothing within a certified budget flips, much beyond does."""

import math
from typing import Any

import numpy as np
import pytest

import agnncert as ac
from agnncert.attacks import attack, exhaustive, greedy
from agnncert.attacks.candidates import AdversarialFeatures
from agnncert.attacks.vote_problem import SMALL, VoteProblem
from agnncert.errors import SettingsError
from tests.support.neighbour_graphs import BUDGETS, GraphListener, NodeListener, town, towns

INF = math.inf
NODE_VOTES = [
    (ac.EdgeCentric(3), ac.VotingRule("abstain", 1)),
    (ac.NodeCentric(3), ac.VotingRule(1, 2)),
    (ac.GatedNodeCentric(3), ac.VotingRule("abstain", [0, 1, 0])),
    (ac.PerNeighbour(), ac.VotingRule(prior=1)),
    (ac.PerEdge(), ac.VotingRule(prior=2)),
    (ac.PerNeighbour(), ac.VotingRule(2, [1, 0, 1])),
]
GRAPH_VOTES = [
    (ac.EdgeCentric(4), ac.VotingRule(0, [0, 2, 0])),
    (ac.PerNeighbour(), ac.VotingRule(prior=[1, 0, 0])),
    (ac.PerEdge(), ac.VotingRule(1, [0, 1, 0])),
]


def problems() -> list[tuple[Any, Any, Any, Any]]:
    return [
        *((NodeListener(k), town(5, degree=2.0, seed=k), *theorem) for k, theorem in enumerate(NODE_VOTES)),
        *((GraphListener(k), towns(2, 4, seed=k), *theorem) for k, theorem in enumerate(GRAPH_VOTES)),
    ]


@pytest.mark.slow
def test_nothing_within_a_certified_budget_changes_a_label_and_something_beyond_does() -> None:
    certified = broken = 0
    for model, data, division, voting_rule in problems():
        certificate = ac.certify(model, data, division, voting_rule=voting_rule)
        problem = VoteProblem(model, data, division, voting_rule)
        rows = problem.rows(None)
        features = None if problem.per_neighbour else AdversarialFeatures.of(problem)  # once for all budgets
        assert [problem.winner(votes) for votes in problem.outcomes(rows)] == certificate.label.tolist()
        found: dict[str, list[Any]] = {}  # the results of each change
        for budget in BUDGETS:
            holds = certificate.holds_against(budget)
            for results in (exhaustive(problem, None, budget), greedy(problem, None, budget, features=features)):
                fallen = np.array([result.succeeded for result in results])
                assert not (holds & fallen).any(), (division, voting_rule, budget)
                for result in results:
                    found.setdefault(repr(result.perturbation), []).append(result)
                broken += int(fallen.sum())
            certified += int(holds.sum())
        for shared in found.values():
            targets = list(dict.fromkeys(result.row for result in shared))
            again = problem.outcomes_in_whole_graph(targets, shared[0].perturbation, engine="naive")
            label = {row: problem.winner(votes) for row, votes in zip(targets, again, strict=True)}
            assert all(result.label_after == label[result.row] for result in shared), (division, voting_rule, shared)
    # Otherwise the test above would say nothing.
    assert certified > 40
    assert broken > 60


@pytest.mark.parametrize("division", [ac.PerNeighbour(), ac.PerEdge()], ids=str)
def test_one_step_beyond_the_certified_number_injection_breaks_many_targets(division):
    model, data = NodeListener(1), town(80, degree=4.0, seed=3)
    certificate = ac.certify(model, data, division, voting_rule=ac.VotingRule(prior=3))
    for more, succeeds in ((0, False), (1, True)):
        sizes = np.maximum(certificate.max_certified("inject_nodes", edges_per_injected=1), 0)
        budgets = [ac.Budget(inject_nodes=int(size) + more, edges_per_injected=1) for size in sizes]
        report = attack(model, data, budget=budgets, certificate=certificate)
        assert not report.violations
        if succeeds:
            assert np.mean(report.succeeded) > 0.5
        else:
            assert not (report.succeeded & (certificate.radius >= 0)).any()


def test_attacks_that_do_not_know_such_groups_say_so():
    problem = (NodeListener(1), town(6, degree=2.0, seed=3), ac.PerNeighbour())
    with pytest.raises(SettingsError, match="does not know"):
        attack(*problem, budget=ac.Budget(add_edges=1), kind="gradient")


@pytest.mark.parametrize("division", [ac.PerNeighbour(), ac.PerEdge()], ids=str)
def test_votes_in_a_large_graph_whose_edges_have_a_direction_are_those_of_the_whole_graph(division: Any) -> None:
    data = town(SMALL + 20)
    src, dst = data.edge_index
    data.edge_index = data.edge_index[:, (src < dst) | ((src + dst) % 3 > 0)]  # some lead one way only
    problem = VoteProblem(NodeListener(), data, division)
    names = problem.ids()
    for row in range(0, len(names), 7):
        louder = {names[u]: (10 * data.x[u]).tolist() for u in range(0, len(names), 5) if u != row}
        for change in (ac.Perturbation(), ac.Perturbation(change_features=louder)):
            assert np.array_equal(
                problem.outcomes_after([(row, change)]), problem.outcomes_in_whole_graph([row], change)
            )
