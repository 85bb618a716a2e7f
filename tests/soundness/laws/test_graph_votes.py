"""Theorems 22 and 23 against brute force: every change of tiny graphs, scored by the definition."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.graph_votes.evidence import GraphEvidence
from agnncert.graph_votes.record import TRUSTED
from agnncert.verifier.recount_graph_votes import Recount
from tests.support.graph_vote_worlds import attacked, attacked_by, evidence_of, random_world

BUDGETS = {
    "structure": [Budget(change_features=k) for k in (0, 1, 2, 3, math.inf)],
    "nodes": [
        *(Budget(add_edges=a, delete_edges=d) for a, d in ((1, 0), (0, 1), (1, 1), (2, 1), (0, 3))),
        Budget(add_edges=math.inf, delete_edges=math.inf),
        Budget(delete_edges=math.inf, change_edges=math.inf),
    ],
    "count": [Budget(change_features=k, add_edges=math.inf, delete_edges=3) for k in (0, 1, 2, math.inf)],
    "none": [
        Budget(inject_nodes=1),
        Budget(delete_nodes=1),
        Budget(change_features=1),
        Budget(inject_nodes=1, delete_nodes=1, change_features=1),
        Budget(inject_nodes=2, delete_nodes=1),
        Budget(delete_nodes=2, change_features=1),
        Budget(delete_nodes=math.inf, change_features=math.inf),
        Budget(inject_nodes=3, delete_nodes=math.inf, edges_per_injected=0),
    ],
}
CASES = [(trusted, budget) for trusted in TRUSTED for budget in BUDGETS[trusted]]
ROUNDS = 60


def mistakes(evidence_type, trusted, seed, rounds=ROUNDS):
    """Compares radii and answers with brute force; returns false statements, and those that are too weak."""
    rng = np.random.default_rng(seed)
    false = weak = certified = 0
    for _ in range(rounds):
        world = random_world(rng, trusted, num_classes=int(rng.integers(2, 4)))
        evidence = evidence_of([world], evidence_type)
        label, radius = evidence.label_and_radius()
        assert label[0] == world.label()
        for changes in range(4):
            stays = all(other.label() == label[0] for other in attacked_by(world, changes))
            says = radius[0] >= changes
            false += says and not stays
            weak += stays and not says
            certified += says
        for budget in BUDGETS[trusted]:
            stays = all(other.label() == label[0] for other in attacked(world, budget))
            says = bool(evidence.holds(budget)[0])
            false += says and not stays
            weak += stays and not says
    assert certified > rounds / 4  # else nothing was tried
    return false, weak


@pytest.mark.parametrize("trusted", TRUSTED)
def test_statements_are_true_and_none_is_too_weak(trusted):
    assert mistakes(GraphEvidence, trusted, 3) == (0, 0)


@pytest.mark.parametrize("trusted", TRUSTED)
def test_prover_and_verifier_say_the_same_of_every_class(trusted):
    rng = np.random.default_rng(5)
    for _ in range(40):
        evidence = evidence_of([random_world(rng, trusted, 6, num_classes=3, largest=6)])
        recount = Recount(evidence)
        label, radius = evidence.label_and_radius()
        assert np.array_equal(recount.label(), label)
        assert recount.right_radius(radius).all()
        assert not recount.right_radius(radius + 1).any()
        assert not recount.right_radius(radius - 1).any()
        for budget in BUDGETS[trusted]:
            for leader in (None, 0, 1, 2):
                ahead = evidence.stays_ahead(slice(None), budget, leader)
                assert np.array_equal(recount.stays_ahead(budget, leader), ahead), (budget, leader)


@pytest.mark.parametrize("trusted", TRUSTED)
def test_each_class_that_an_attack_reaches_is_possible(trusted):
    rng = np.random.default_rng(6)
    for _ in range(25):
        world = random_world(rng, trusted, num_classes=3)
        evidence = evidence_of([world])
        for budget in BUDGETS[trusted]:
            reached = {other.label() for other in attacked(world, budget)}
            assert reached <= set(np.flatnonzero(evidence.possible(budget)[0]))


def test_what_is_said_of_a_graph_does_not_depend_on_others():
    rng = np.random.default_rng(9)
    for trusted in (*TRUSTED, *["none"] * 12):
        first = random_world(rng, trusted, 6)
        worlds = [
            replace(random_world(rng, trusted, size), table=first.table, by_size=first.by_size) for size in (1, 2, 6)
        ]
        together = evidence_of(worlds)
        for place, world in enumerate(worlds):
            alone = evidence_of([world])
            assert together.radius()[place] == alone.radius()[0]
            for changes in range(1, 6):
                ahead = together.lead_left(np.arange(3), 0, 1, changes)[place]
                assert ahead == alone.lead_left(np.zeros(1, dtype=np.int64), 0, 1, changes)[0]
            for budget in BUDGETS[trusted]:
                assert together.holds(budget)[place] == alone.holds(budget)[0]


@pytest.mark.parametrize("trusted", ["structure", "nodes", "count"])
def test_nothing_is_proved_about_changes_of_what_is_trusted(trusted):
    evidence = evidence_of([random_world(np.random.default_rng(7), trusted)])
    refused = {
        "structure": (Budget(add_edges=1), Budget(delete_edges=1), Budget(inject_nodes=1, edges_per_injected=0)),
        "nodes": (Budget(change_features=1), Budget(delete_nodes=1), Budget(inject_nodes=1, edges_per_injected=0)),
        "count": (Budget(delete_nodes=1), Budget(inject_nodes=1, edges_per_injected=0)),
    }
    for budget in refused[trusted]:
        assert not evidence.covers(budget)
        assert not evidence.holds(budget).any()
        assert not Recount(evidence).stays_ahead(budget, None).any()


def test_changes_of_what_is_trusted_do_alter_labels():
    """Without this, the test above might refuse what is true."""
    rng = np.random.default_rng(8)
    flipped = 0
    for _ in range(60):
        world = random_world(rng, "structure", num_nodes=3)
        others = (replace_edges(world, edges) for edges in _all_edges(world))
        flipped += any(other.label() != world.label() for other in others)
    assert flipped > 5


def replace_edges(world, edges):
    return replace(world, edges=frozenset(edges))


def _all_edges(world):
    for number in range(len(world.pairs) + 1):
        yield from combinations(world.pairs, number)
