"""Budgets: what they accept, and how they read."""

import copy
import math
import pickle

import numpy as np
import pytest

from agnncert.certificates.budget import COUNTS, TRAINING, Budget, Prices
from agnncert.errors import AgnncertError, BudgetError


def test_everything_is_zero_unless_said_otherwise():
    assert all(getattr(Budget(), name) == 0 for name in (*COUNTS, *TRAINING) if name != "edges_per_injected")
    assert Budget().target_features is False


def test_injected_nodes_have_any_number_of_edges_unless_said_otherwise():
    assert Budget(inject_nodes=2) == Budget(inject_nodes=2, edges_per_injected=math.inf)
    assert Budget().but(inject_nodes=2).injected_edges == math.inf
    assert Budget(inject_nodes=2, edges_per_injected=0) != Budget(inject_nodes=2)
    assert repr(Budget(inject_nodes=2, edges_per_injected=0)) == "Budget(inject_nodes=2, edges_per_injected=0)"


@pytest.mark.parametrize(
    ("budget", "cost", "allowed"),
    [
        (Budget(add_edges=2), Budget(add_edges=2), True),
        (Budget(add_edges=2), Budget(add_edges=3), False),
        (Budget(add_edges=2, edges_per_injected=0), Budget(add_edges=2), True),
        (Budget(inject_nodes=2, edges_per_injected=1), Budget(inject_nodes=2), False),
        (Budget(inject_nodes=2), Budget(inject_nodes=1, edges_per_injected=7), True),
        (Budget(change_features=1), Budget(target_features=True), False),
        (Budget(flip_labels=2, add_edges=1), Budget(flip_labels=2), True),
        (Budget(flip_labels=2), Budget(flip_labels=1, add_labels=1), False),
        (Budget(), Budget(poison_graphs=1), False),
    ],
)
def test_a_budget_allows_what_costs_no_more_in_any_field(budget, cost, allowed):
    assert budget.allows(cost) == allowed


@pytest.mark.parametrize("name", [*COUNTS, *TRAINING])
@pytest.mark.parametrize("value", [-1, 0.5, math.nan, -math.inf, "3", None, True, 1 + 0j])
def test_amounts_that_no_attacker_can_have_are_refused_by_name(name, value):
    with pytest.raises(BudgetError, match=rf"Budget\({name}=.*whole number from 0 on, or math.inf"):
        Budget(**{name: value})


@pytest.mark.parametrize("value", [0, 3, 3.0, math.inf, 10**12])
def test_whole_numbers_and_infinity_are_accepted(value):
    assert Budget(add_edges=value).add_edges == value


@pytest.mark.parametrize("value", [1, 0, None, "yes", math.inf])
def test_target_features_is_yes_or_no(value):
    with pytest.raises(BudgetError, match=r"target_features=.*True or False"):
        Budget(target_features=value)


@pytest.mark.parametrize(
    ("nodes", "each", "edges"),
    [(0, math.inf, 0), (math.inf, 0, 0), (2, 3, 6), (2, math.inf, math.inf), (math.inf, 1, math.inf)],
)
def test_injected_nodes_bring_their_edges_and_none_bring_none(nodes, each, edges):
    assert Budget(inject_nodes=nodes, edges_per_injected=each).injected_edges == edges


def test_fields_can_be_replaced_and_unknown_ones_are_met_with_the_nearest():
    assert Budget(add_edges=2).but(delete_edges=3) == Budget(add_edges=2, delete_edges=3)
    with pytest.raises(AgnncertError, match='unknown budget field "ad_edges": did you mean "add_edges"'):
        Budget().but(ad_edges=1)
    with pytest.raises(BudgetError, match="add_edges=-1"):
        Budget().but(add_edges=-1)


def test_it_prints_as_it_is_written_and_shows_only_what_is_set():
    budget = Budget(add_edges=3, delete_nodes=math.inf, target_features=True)
    assert repr(budget) == "Budget(add_edges=3, delete_nodes=inf, target_features=True)"
    assert eval(repr(budget), {"Budget": Budget, "inf": math.inf}) == budget
    assert repr(Budget()) == "Budget()"


def test_numbers_of_numpy_count_as_numbers():
    assert Budget(add_edges=np.float64(2), delete_edges=np.int32(3)) == Budget(add_edges=2, delete_edges=3)
    assert type(Budget(add_edges=np.int64(2)).add_edges) is int


def test_a_field_that_does_not_exist_suggests_the_nearest_in_budgets_and_prices() -> None:
    with pytest.raises(BudgetError, match='unknown budget field "edges_add": did you mean "add_edges"'):
        Budget(edges_add=1)
    with pytest.raises(BudgetError, match='unknown prices field "add_edge": did you mean "add_edges"'):
        Prices(add_edge=1)
    assert pickle.loads(pickle.dumps(Budget(3, delete_nodes=2))) == Budget(add_edges=3, delete_nodes=2)
    assert copy.deepcopy(Prices(add_edges=1)) == Prices(add_edges=1)


def test_changes_in_all_are_prices_of_one_with_a_total():
    assert Prices.in_all(3) == Prices(add_edges=1, delete_edges=1, change_edges=1, total=3)
    assert Prices.in_all(2, "inject_nodes") == Prices(inject_nodes=1, total=2)
    with pytest.raises(BudgetError, match="add_edges"):
        Prices.in_all(2, "add_edge")
    with pytest.raises(BudgetError, match="total"):
        Prices.in_all(-1)
