"""Attacks name nodes by their exact ids: large integers stay integers, and two ids with one key are two nodes."""

from typing import Any

import numpy as np
import pytest

import agnncert as ac
from agnncert.attacks import attack
from agnncert.attacks.results import cost_of
from agnncert.attacks.vote_problem import SMALL, VoteProblem
from agnncert.errors import IdError
from tests.support.graphs import twin_of
from tests.support.neighbour_graphs import NodeListener, town

DIVISIONS = [ac.EdgeCentric(4), ac.NodeCentric(4)]


def with_twins(count: int) -> Any:
    """A town in which every name has a twin: an integer with the same key, in the row ``count // 2`` further down."""
    data = town(count)
    names = [f"user {k}" for k in range(count // 2)]
    data.node_id = [*names, *map(twin_of, names)]
    return data


@pytest.mark.parametrize("count", [12, SMALL + 4])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_votes_on_an_attacked_graph_are_those_of_the_node_that_was_asked_for(division: Any, count: int) -> None:
    data = with_twins(count)
    problem = VoteProblem(NodeListener(), data, division)
    rows = list(range(count))
    before = problem.outcomes(np.arange(count))
    assert np.array_equal(problem.outcomes_in_whole_graph(rows, ac.Perturbation()), before)
    far = count // 2
    for row in (0, 1, far, far + 1):
        known = set(data.edge_index[1, data.edge_index[0] == row].tolist())
        other = next(u for u in range(far // 2, count) if u not in known and u != row)
        names = data.node_id[row], data.node_id[other]
        change = ac.Perturbation(add_edges=[names], change_features={names[1]: (10 * data.x[row]).tolist()})
        assert np.array_equal(problem.outcomes_after([(row, change)]), problem.outcomes_in_whole_graph([row], change))


LARGE = [-1, 2**63, 2**64 - 1, *range(2**63 + 1, 2**63 + 10)]
MIXED = [-1, 2**63, 2**64 - 1, 2**90, "a", "a\0", "", "007", *range(4)]
TEXTS = ["a" + "\0" * k for k in range(12)]


@pytest.mark.parametrize("ids", [LARGE, MIXED, TEXTS], ids=["large", "mixed", "texts"])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_targets_of_attacks_are_named_exactly(division: Any, ids: list[int | str]) -> None:
    data = town(12)
    data.node_id = ids
    certificate = ac.certify(NodeListener(), data, division)
    report = attack(
        NodeListener(), data, budget=ac.Budget(inject_nodes=2, edges_per_injected=2), certificate=certificate
    )
    assert [result.target for result in report.results] == data.node_id == certificate.target.tolist()
    assert report.violations == ()
    for result in report.results:
        assert result.perturbed(data).node_id[:12] == data.node_id


def test_features_of_the_twin_of_a_target_are_not_the_targets_own() -> None:
    change = ac.Perturbation(change_features={twin_of("x"): [0.0]})
    assert cost_of(change, "x") == ac.Budget(change_features=1)
    assert cost_of(change, str(twin_of("x"))) == ac.Budget(target_features=True)


def test_an_id_with_the_key_of_a_living_node_is_unused() -> None:
    data = town(4)
    data.node_id = ["x", "a", "b", "c"]
    problem = VoteProblem(NodeListener(), data, ac.EdgeCentric(3))
    row = [9.0] + [0.0] * (data.x.size(1) - 1)
    twin = ac.Perturbation(inject_nodes={twin_of("x"): row}, add_edges=[(twin_of("x"), "a")])
    assert (problem.outcomes_after([(1, twin)]) != problem.outcomes(np.array([1]))).any()
    with pytest.raises(IdError, match="'x'"):
        problem.outcomes_after([(1, ac.Perturbation(inject_nodes={"x": row}))])
