"""Every attack on tiny graphs, against an arbitrary in-local function: no certified label ever flips."""

import dataclasses
import math
import random

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.divided.theorems.registry import theorem_of
from agnncert.proving.theorems import Amounts, Counts, Facts, Limits, withstands
from tests.support import tiny
from tests.support.harness import KINDS, Score, changes, evidence, flips, random_table, run, run_cell
from tests.support.tiny import Cell

GRAPHS = {
    "edge-centric/node": 40,
    "node-centric/node": 50,
    "gated/node": 48,
    "edge-centric/graph": 60,
    "node-centric/graph": 90,
}


@pytest.mark.parametrize("theorem", KINDS)
def test_no_mixed_attack_flips_a_certified_label_and_the_bound_is_attained(theorem):
    score = run(KINDS[theorem], seed=7, graphs=GRAPHS[theorem], cells=5)
    assert score.exceeded == 0, score.examples[0]
    assert score.false == 0, score.examples[0]
    assert score.attacks > 10_000
    assert score.attained > 0.8 * score.cells  # some attack does move as many votes as the theorem allows
    assert score.certified > 0.7 * score.robust > 20  # and few labels that no attack can flip are missed


NODE_RULES = ["edge-centric/node", "node-centric/node", "gated/node"]


def on_directed_graphs(theorem: str, graphs: int) -> Score:
    """Changed, deleted and added edges of graphs in which most pairs have one direction."""
    rng, score = random.Random(11), Score()
    for _ in range(graphs):
        graph = tiny.random_tiny(rng, 3, rng.choice([1, 2, 3, 5]), directed=True, loops=False)
        for cell in (Cell(change=1), Cell(change=2), Cell(change=1, add=1), Cell(change=1, delete=1)):
            score += run_cell(KINDS[theorem], graph, cell, rng, tables_each=8)
    return score


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_a_changed_edge_that_gains_no_direction_flips_nothing_on_directed_graphs(theorem):
    score = on_directed_graphs(theorem, 40)
    assert score.exceeded == score.false == 0, score.examples[0]
    assert score.certified > 100


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_if_a_changed_edge_could_gain_a_direction_the_theorems_that_follow_arcs_would_be_false(theorem, monkeypatch):
    """``formal/Counterexamples.v``, changed_pairs_must_not_turn: so a second direction is an added edge."""
    monkeypatch.setattr(tiny, "_changed", lambda state, to_the_letter: [(True, True, state[2]), (*state[:2], 9)])
    score = on_directed_graphs(theorem, 40)
    assert (score.exceeded > 0) == (score.false > 0) == (theorem != "edge-centric/node")


UNLIMITED = ("delete_edges", "change_edges", "delete_nodes", "change_features")


@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node", "gated/node"])
def test_only_new_neighbours_count_when_everything_else_is_unlimited(theorem):
    """Any rewiring elsewhere: all deletions, all changes, all features of others, and a few new neighbours."""
    rng, score = random.Random(3), Score()
    for _ in range(4):
        graph = tiny.random_tiny(rng, 3, rng.choice([2, 3]), directed=False, loops=False)
        for new in (Cell(), Cell(add=1), Cell(inject=1, edges_each=2)):
            cell = dataclasses.replace(new, delete=3, change=0, delete_nodes=2, features=2)
            score += run_cell(KINDS[theorem], graph, cell, rng, unlimited=UNLIMITED, tables_each=10)
    assert score.exceeded == score.false == 0
    assert score.attained > 0.7 * score.cells > 10
    assert score.certified > 0.7 * score.robust > 10


def test_unlimited_edge_attacks_leave_one_node_groups_of_a_graph_alone():
    rng, score = random.Random(4), Score()
    for _ in range(25):
        graph = tiny.random_tiny(rng, rng.choice([3, 4]), rng.choice([3, 5]), directed=False, loops=rng.random() < 0.5)
        everything = Cell(add=2, delete=2, change=2)
        unlimited = ("add_edges", "delete_edges", "change_edges")
        score += run_cell(KINDS["node-centric/graph"], graph, everything, rng, unlimited=unlimited)
    assert score.exceeded == score.false == 0
    assert score.certified > 20


# Broken proofs. Each must be caught by the same harness that the real ones pass.


def without_tie_term(counted: Counts, reach: Limits) -> np.ndarray:
    wins_ties = np.arange(counted.margin.shape[1]) < counted.label[:, None]
    return withstands(dataclasses.replace(counted, margin=counted.margin + wins_ties), reach)


def one_per_outside_vote(counted: Counts, reach: Limits) -> np.ndarray:
    """Forgets that a listed vote outside the reached ones may vote for the winner, and so gains two."""
    votes = counted.votes.copy()
    np.put_along_axis(votes[1], counted.label[:, None], 0, axis=1)
    return withstands(dataclasses.replace(counted, votes=votes), reach)


def abstaining_votes_cannot_move(counted: Counts, reach: Limits) -> np.ndarray:
    """Takes an abstaining vote for one of the rival, so that moving it gains nothing."""
    return withstands(dataclasses.replace(counted, size=counted.votes.sum(axis=2)), reach)


def node_price_in_the_edge_division(attack: Amounts, facts: Facts) -> Limits:
    honest = theorem_of("edge-centric/node").limits(attack, facts)
    return dataclasses.replace(honest, all=honest.all - attack.injected_edges + attack.joined_nodes)


def injected_nodes_are_no_neighbours(attack: Amounts, facts: Facts) -> Limits:
    honest = theorem_of("edge-centric/node").limits(attack, facts)
    fewer = honest.unlisted - attack.joined_nodes
    return dataclasses.replace(honest, unlisted=fewer, beyond_reached=fewer)


def deleted_nodes_are_free(attack: Amounts, facts: Facts) -> Limits:
    return theorem_of("edge-centric/node").limits(dataclasses.replace(attack, delete_nodes=np.zeros(1)), facts)


MUTANTS = {
    "the tie term dropped": ("edge-centric/node", {"decide": without_tie_term}),
    "every outside vote gains one": ("gated/node", {"decide": one_per_outside_vote}),
    "abstaining votes cannot move": ("edge-centric/graph", {"decide": abstaining_votes_cannot_move}),
    "a node price in the edge division": ("edge-centric/node", {"theorem": node_price_in_the_edge_division}),
    "injected nodes are no neighbours": ("edge-centric/node", {"theorem": injected_nodes_are_no_neighbours}),
    "deleted nodes are free": ("edge-centric/node", {"theorem": deleted_nodes_are_free}),
    "the node division's rule for edges": ("edge-centric/node", {"theorem": theorem_of("node-centric/node").limits}),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_proof_is_caught(mutant):
    theorem, broken = MUTANTS[mutant]
    rng, score = random.Random(5), Score()
    for _ in range(40):
        graph = tiny.random_tiny(rng, 3, rng.choice([3, 4, 5]), directed=False, loops=False)
        for cell in (Cell(inject=1, edges_each=2), Cell(add=1), Cell(delete_nodes=1)):
            score += run_cell(KINDS[theorem], graph, cell, rng, tables_each=10, **broken)
        if score.false:
            return
    pytest.fail(f"{score.certified} certificates with {mutant}, none of them false")


def test_a_self_loop_reaches_a_group_of_one_node_so_the_rule_must_know_about_loops():
    kind = KINDS["node-centric/graph"]
    lone = tiny.Tiny({0: 0, 1: 0}, {}, {0: 0, 1: 1}, {}, num_groups=3)
    loops = dataclasses.replace(lone, loops=True)
    _, moved = changes(kind, loops, Cell(add=1), [0])
    assert moved[0] == {frozenset({0}), frozenset({1})}  # the loop at either node changes its vote
    table = [0, 1, -1]
    assert flips(table, frozenset({0}))
    budget = Budget(add_edges=1)
    assert evidence(kind, lone, [0], [table]).holds(budget).tolist() == [True]  # right only where loops are dropped
    assert evidence(kind, loops, [0], [table]).holds(budget).tolist() == [False]


def test_a_vacated_id_may_return_and_stays_within_the_bound():
    """Deleting a node and injecting another under its id is one deletion and one injection."""
    rng, score = random.Random(6), Score()
    for theorem in ("edge-centric/node", "node-centric/node"):
        for _ in range(6):
            graph = tiny.random_tiny(rng, 3, 3, directed=False, loops=False)
            score += run_cell(KINDS[theorem], graph, Cell(inject=1, edges_each=2, delete_nodes=1), rng)
    assert score.exceeded == score.false == 0
    assert score.attained > 0.7 * score.cells


@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node"])
def test_a_label_that_survives_all_deletions_is_the_no_edge_label(theorem):
    """Proposition 0: deleting every edge is such an attack, and leaves the prediction without edges."""
    rng, survived = random.Random(8), 0
    for _ in range(200):
        graph = tiny.random_tiny(rng, 4, rng.choice([3, 5, 9]), directed=False, loops=False)
        table = random_table(rng, KINDS[theorem], graph, 0, 3)
        proof = evidence(KINDS[theorem], graph, [0], [table])
        (label,), (radius,) = proof.label_and_radius()
        degree = sum(0 in pair for pair in graph.pairs)
        if degree < graph.num_groups and (radius >= degree or proof.holds(Budget(delete_edges=math.inf))[0]):
            survived += 1
            assert label == proof.votes.default[0]
    assert survived > 50
