"""What each division's rule covers, refuses, and makes of special numbers."""

import dataclasses
import math

import numpy as np
import pytest

from agnncert.proof.budget import COUNTS, Budget
from agnncert.proof.rules import RULES
from agnncert.proof.theorems import certified_radius, largest_amount, tally, times

from ...support.certificates import random_budget, random_evidence

INF = math.inf
NODE_RULES = ["edge-centric/node", "node-centric/node", "gated/node"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("rule", RULES)
def test_the_empty_budget_holds_exactly_where_the_radius_is_not_negative(rule, rng):
    proof = random_evidence(rng, rule, unstable=0.2)
    _, radius = proof.label_and_radius()
    assert proof.holds(Budget()).tolist() == (radius >= 0).tolist()
    assert (radius < 0).any()


@pytest.mark.parametrize("rule", RULES)
def test_a_larger_budget_never_holds_where_a_smaller_one_fails(rule, rng):
    proof = random_evidence(rng, rule)
    for _ in range(40):
        small, other = random_budget(rng), random_budget(rng)
        large = Budget(
            **{name: max(getattr(small, name), getattr(other, name)) for name in COUNTS},
            target_features=small.target_features or other.target_features,
        )
        assert (proof.holds(large) <= proof.holds(small)).all()


@pytest.mark.parametrize("rule", RULES)
def test_answers_are_never_not_a_number_and_no_warning_is_raised(rule, rng):
    """Warnings are errors here, so 0·inf or inf-inf anywhere would fail."""
    proof = random_evidence(rng, rule)
    for field in COUNTS:
        found = proof.largest(field, random_budget(rng).but(**{field: 0}))
        assert ((found >= -1) & (found == np.where(np.isinf(found), found, np.floor(found)))).all()
    assert proof.holds(Budget(inject_nodes=0, edges_per_injected=INF)).tolist() == proof.holds(Budget()).tolist()
    assert proof.holds(Budget(inject_nodes=INF, edges_per_injected=0)).dtype == bool


def test_nothing_times_infinity_is_nothing():
    assert times(np.array([0.0, 2.0, 0.0]), np.array([np.inf, 3.0, 0.0])).tolist() == [0, 6, 0]
    assert times(np.array(np.inf), np.array([0.0, 1.0])).tolist() == [0, np.inf]


@pytest.mark.parametrize("rule", RULES)
def test_the_largest_amount_is_the_last_one_that_holds(rule, rng):
    proof = random_evidence(rng, rule)
    for field in COUNTS:
        rest = Budget(edges_per_injected=3) if field != "edges_per_injected" else Budget(inject_nodes=2)
        found = proof.largest(field, rest)
        held = np.array([proof.holds(rest.but(**{field: amount})) for amount in [*range(20), INF]])
        expected = np.where(held[-1], np.inf, held[:-1].sum(axis=0) - 1)
        assert found.tolist() == expected.tolist()
        by_base_class = largest_amount(lambda a: super(type(proof), proof).holds_each(rest, field, a), 30)  # noqa: B023
        assert by_base_class.tolist() == expected.tolist()


@pytest.mark.parametrize("rule", RULES)
def test_whatever_fits_into_the_radius_is_certified(rule, rng):
    """The paper's rule, ballots touched at most the radius, is a special case of every rule here."""
    proof = random_evidence(rng, rule, unstable=0)
    _, radius = proof.label_and_radius()
    for edges in range(4):
        held = proof.holds(Budget(add_edges=edges, delete_edges=1, change_edges=0))
        if rule.startswith(("edge-centric", "node-centric", "gated", "gnncert-e/")):
            assert held[radius >= edges + 1].all()
    if rule == "edge-centric/node":
        assert proof.holds(Budget(inject_nodes=2, edges_per_injected=2))[radius >= 4].all()
    if rule.startswith("node-centric"):
        assert proof.holds(Budget(inject_nodes=1, edges_per_injected=INF, delete_nodes=1))[radius >= 2].all()


@pytest.mark.parametrize("rule", ["edge-centric/node", "node-centric/node"])
def test_new_neighbours_reach_at_least_the_closed_form(rule, rng):
    """If the edgeless prediction is the label, floor((T - 2|S| - [label > 0]) / 2) new neighbours are withstood."""
    proof = random_evidence(rng, rule, num_targets=200, unstable=0)
    label, _ = proof.label_and_radius()
    reached = np.diff(proof.votes.indptr)
    closed = np.floor((12 - 2 * reached - (label > 0)) / 2)
    unlimited = Budget(delete_edges=INF, change_edges=INF, delete_nodes=INF, change_features=INF)
    found = proof.largest("add_edges", unlimited)
    applies = (proof.votes.default == label) & (closed >= 0)
    assert applies.sum() > 50
    assert (found[applies] >= closed[applies]).all()
    injected = proof.largest("inject_nodes", unlimited.but(edges_per_injected=INF))
    assert injected.tolist() == found.tolist()  # a hub of unlimited degree is one new neighbour


@pytest.mark.parametrize("rule", RULES)
def test_own_features_are_refused_unless_the_rule_covers_them(rule, rng):
    proof = random_evidence(rng, rule, unstable=0)
    held = proof.holds(Budget(target_features=True))
    covered = rule in ("gated/node", "gnncert-n/node", "gnncert-en/node")
    assert held.any() == covered
    if rule == "gated/node":
        assert held.tolist() == proof.holds(Budget(target_features=True, add_edges=0)).tolist()


@pytest.mark.parametrize("rule", NODE_RULES)
def test_row_numbers_cover_no_deleted_node(rule, rng):
    proof = random_evidence(rng, rule, ids="row")
    assert not proof.holds(Budget(delete_nodes=1)).any()
    assert proof.largest("delete_nodes", Budget()).max() == 0
    assert proof.holds(Budget(inject_nodes=1, edges_per_injected=1)).any()
    named = dataclasses.replace(proof, ids="node_id")
    assert named.holds(Budget(delete_nodes=1)).any()


def test_injected_nodes_without_edges_reach_nobody_in_the_node_task_but_do_in_a_graph(rng):
    lonely = Budget(inject_nodes=INF)
    for rule in (*NODE_RULES, "edge-centric/graph"):
        proof = random_evidence(rng, rule)
        assert proof.holds(lonely).tolist() == proof.holds(Budget()).tolist()
    assert not random_evidence(rng, "node-centric/graph").holds(lonely).any()


def test_a_users_division_is_believed_as_far_as_it_states_prices(rng):
    proof = random_evidence(rng, "custom/node", unstable=0)
    radius = certified_radius(tally(proof.votes))
    assert proof.holds(Budget(add_edges=1, delete_edges=1)).tolist() == (radius >= 3).tolist()
    assert proof.holds(Budget(inject_nodes=1, edges_per_injected=2)).tolist() == (radius >= 3).tolist()
    assert proof.holds(Budget(change_features=INF)).all()  # it says that features move nothing
    assert not proof.holds(Budget(delete_nodes=1)).any()  # it says nothing about deleted nodes
    silent = dataclasses.replace(proof, parameters={})
    assert silent.holds(Budget()).all()
    assert not silent.holds(Budget(add_edges=1)).any()


def test_gnncert_counts_the_union_of_rows_and_columns(rng):
    """A grid of 3 edge groups and 4 feature groups: r nodes and s edges touch 3r + 4s - rs cells."""
    proof = random_evidence(rng, "gnncert-en/graph", num_targets=100, unstable=0)
    radius = certified_radius(tally(proof.votes))
    for nodes in range(4):
        for edges in range(4):
            cells = len({(i, j) for i in range(3) for j in range(4) if i < edges or j < nodes})
            held = proof.holds(Budget(add_edges=edges, change_features=nodes))
            assert held.tolist() == (radius >= cells).tolist()


@pytest.mark.parametrize("rule", [r for r in RULES if r.startswith("gnncert")])
def test_gnncert_covers_no_injected_or_deleted_nodes(rule, rng):
    proof = random_evidence(rng, rule)
    assert not proof.holds(Budget(inject_nodes=1, edges_per_injected=1)).any()
    assert not proof.holds(Budget(delete_nodes=1)).any()
    assert proof.holds(Budget(add_edges=1)).any() == ("gnncert-n" not in rule)
    assert proof.holds(Budget(change_features=1)).any() == ("gnncert-e/" not in rule)
