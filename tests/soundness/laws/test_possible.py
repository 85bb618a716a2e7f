"""Theorem 12: no attack makes a class win that is not named as possible, and every class that is named can win."""

import random

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.proving import possible
from agnncert.verifier import recount_possible
from tests.soundness.laws.outcomes import CORNERS, random_limits, random_own_vote, random_vote, reach
from tests.support import own_groups, voted
from tests.support.certificates import random_budget, random_evidence
from tests.support.certificates import random_vote as random_rule
from tests.support.harness import KINDS
from tests.support.theorems import THEOREMS

# The votes alone: named is exactly what some choice of votes makes win


def named(marks: np.ndarray) -> set[int]:
    return set(np.flatnonzero(marks[0]).tolist())


def in_tiers(cases: int = 700, seed: int = 1) -> int:
    """Four votes in three tiers, every choice of votes within the limits; how many sets were neither one nor all."""
    rng, telling = random.Random(seed), 0
    for _ in range(cases):
        vote, limits = random_vote(rng), random_limits(rng)
        won = vote.outcomes(limits) | {int(vote.tally().label[0])}
        assert named(possible.possible_classes(vote.tally(), reach(limits))) == won, (vote, limits)
        telling += len(won) == 2
    return telling


def of_own_groups(cases: int = 600, seed: int = 2) -> int:
    """Votes that come, go, are altered and turned, every choice of them."""
    rng, telling = random.Random(seed), 0
    for vote in (*CORNERS, *(random_own_vote(rng) for _ in range(cases))):
        tally, touches, facts = vote.tally()
        won = vote.outcomes()
        assert named(possible.possible_touches(tally, touches, facts)) == won, vote
        telling += len(won) == 2
    return telling


def test_in_three_tiers_the_possible_classes_are_exactly_those_that_can_win():
    assert in_tiers() > 80


def test_with_a_group_for_each_neighbour_the_possible_classes_are_exactly_those_that_can_win():
    assert of_own_groups() > 40


def test_a_class_that_can_beat_the_label_need_not_be_possible():
    """Five votes 0 0 1 1 2: one change lets 2 beat the label 0, but then class 1 beats it."""
    proof = random_evidence(np.random.default_rng(0), "gnncert-e/node", num_targets=1, num_groups=5, unstable=0)
    object.__setattr__(proof.votes, "vote", np.array([0, 0, 1, 1, 2], dtype=np.int16))
    assert proof.holds(Budget(add_edges=1)).tolist() == [False]
    assert proof.possible(Budget(add_edges=1)).tolist() == [[True, True, False]]
    assert proof.possible(Budget(add_edges=2)).tolist() == [[True, True, True]]


def test_a_negative_prior_in_doubt_makes_the_answer_a_bound():
    """Nothing is missed; what is named beyond is rare."""
    rng, spare = random.Random(4), 0
    for _ in range(150):
        vote = random_vote(rng)
        if vote.rule.no_edge_prior:
            lower = [[-number for number in prior] for prior in vote.priors]
            vote = type(vote)(vote.votes, vote.tier, vote.stable, lower, voted.VotingRule("abstain", -vote.rule.prior))
        limits = random_limits(rng)
        won = vote.outcomes(limits) | {int(vote.tally().label[0])}
        found = named(possible.possible_classes(vote.tally(), reach(limits)))
        assert won <= found
        spare += len(found - won)
    assert spare < 10


# Graphs: every attack on tiny ones, for arbitrary local functions


@pytest.mark.parametrize("theorem", KINDS)
def test_no_attack_on_a_graph_makes_another_class_win_or_costs_less_than_stated(theorem):
    score = voted.run(KINDS[theorem], seed=61, graphs=8, cells=3, all_answers=True)
    assert score.escaped == score.dearer == 0, score.examples[:1]
    assert score.won > 0.9 * score.named > 80  # and nearly all that is named does win


@pytest.mark.parametrize("theorem", own_groups.THEOREMS)
def test_no_attack_on_a_graph_with_a_group_for_each_neighbour_makes_another_class_win(theorem):
    score = own_groups.run(theorem, seed=62, graphs=20, cells=3, all_answers=True)
    assert score.escaped == score.dearer == 0, score.examples[:1]
    assert score.won > 0.9 * score.named > 300


# Every rule, against the verifier's own code


@pytest.mark.parametrize("theorem", THEOREMS)
def test_the_verifier_names_the_same_classes(theorem):
    rng, telling = np.random.default_rng(7), 0
    for num_classes in (2, 3, 6):
        vote = random_rule(rng, theorem, num_classes)
        proof = random_evidence(rng, theorem, 40, num_classes=num_classes, unstable=0.1, voting_rule=vote)
        few = [Budget(add_edges=1), Budget(change_features=1), Budget(change_features=2)]
        for budget in [*few, *(random_budget(rng) for _ in range(5))]:
            found = proof.possible(budget)
            assert (recount_possible.of_votes(proof, budget) == found).all(), (vote, budget)
            assert ((found.sum(axis=1) == 1) == proof.holds(budget)).all()
            assert found[np.arange(40), proof.label_and_radius()[0]].all()
            telling += int(((found.sum(axis=1) > 1) & ~found.all(axis=1)).sum())
    assert telling


@pytest.mark.parametrize("theorem", THEOREMS)
def test_sizes_name_at_least_what_budgets_of_that_size_do(theorem):
    rng = np.random.default_rng(8)
    proof = random_evidence(rng, theorem, 40, unstable=0.05)
    radius = proof.label_and_radius()[1]
    assert (proof.possible(-1).sum(axis=1) == 1).all()
    for size in range(4):
        found = proof.possible(size)
        assert ((found.sum(axis=1) == 1) == (radius >= size)).all()
        assert (proof.possible(size + 0.5) == proof.possible(size + 1)).all()
        assert (found <= proof.possible(size + 1)).all()
        if not theorem.startswith(("gnncert-en", "custom")):
            for field in ("add_edges", "delete_edges", "change_features"):
                covered = proof.possible(Budget(**{field: size}))
                nodes = field == "change_features" and theorem.startswith(("edge-centric", "per-pair/graph"))
                assert nodes or not (covered & ~found)[~covered.all(axis=1)].any()
