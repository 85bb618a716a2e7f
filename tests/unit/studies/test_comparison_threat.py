"""Kinds of attack: every way to spend a size, and which size each target withstands."""

import math
from collections import Counter

import numpy as np
import pytest

from agnncert.errors import BudgetError, SettingsError
from agnncert.proof.budget import Budget
from agnncert.studies.comparison import Threat

from ...support.certificates import certificate_of, random_evidence


def spent(budget):
    return (
        budget.add_edges + budget.delete_edges + budget.change_features + budget.inject_nodes + budget.target_features
    )


@pytest.mark.parametrize(
    "threat",
    [
        Threat("edges"),
        Threat("injection", 3),
        Threat("features"),
        Threat("features", own_features=True),
        Threat("edges and features"),
        Threat("edges and features", own_features=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_every_budget_spends_the_size_and_none_comes_twice(threat, size):
    budgets = list(threat.budgets(size))
    assert all(spent(budget) == size for budget in budgets)
    assert max(Counter(budgets).values()) == 1


@pytest.mark.parametrize(
    ("threat", "number"),
    [
        (Threat("edges"), 4),
        (Threat("injection", 3), 1),
        (Threat("features"), 1),
        (Threat("features", own_features=True), 2),
        (Threat("edges and features"), 4 + 3 + 2 + 1),
        (Threat("edges and features", own_features=True), 4 + 2 * (3 + 2 + 1)),
    ],
    ids=str,
)
def test_no_way_to_spend_three_changes_is_left_out(threat, number):
    assert len(list(threat.budgets(3))) == number


def test_injected_nodes_bring_the_stated_edges():
    assert list(Threat("injection", 5).budgets(2)) == [Budget(inject_nodes=2, edges_per_injected=5)]
    assert next(Threat("injection").budgets(1)).edges_per_injected == math.inf


@pytest.mark.parametrize("rule", ["edge-centric/node", "gated/node", "gnncert-en/graph", "custom/graph"])
@pytest.mark.parametrize("threat", [Threat("edges"), Threat("injection", 2), Threat("edges and features")], ids=str)
def test_a_target_withstands_a_size_if_it_withstands_every_way_to_spend_it(rule, threat):
    certificate = certificate_of(random_evidence(np.random.default_rng(3), rule, unstable=0.02))
    found = threat.withstood(certificate, (0, 1, 2, 3))
    for target in range(certificate.num_targets):
        held = [all(certificate.holds_against(budget)[target] for budget in threat.budgets(size)) for size in range(4)]
        assert found[target] == held.index(False) - 1 if False in held else found[target] == 3


def test_a_graph_free_model_notices_no_attack_but_on_what_it_reads():
    assert Threat("injection").leaves_graph_free("node")
    assert Threat("features").leaves_graph_free("node")
    assert not Threat("features", own_features=True).leaves_graph_free("node")
    assert Threat("edges").leaves_graph_free("graph")
    assert not Threat("injection").leaves_graph_free("graph")
    assert not Threat("edges and features").leaves_graph_free("graph")


def test_attacks_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="edges"):
        Threat("edge")
    with pytest.raises(BudgetError, match="edges_per_injected"):
        Threat("injection", -1)
