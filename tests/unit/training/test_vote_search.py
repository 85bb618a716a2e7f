"""The search for the constants of a vote, against trying all of them, and against the theorems."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from agnncert.certificates.votes import ABSTAIN, VoteRecord, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.theorems import certified_radius, count_votes
from agnncert.training.rule_search import (
    VoteTable,
    best_class_prior,
    best_no_edge_prior,
    certified,
    certified_accuracy,
    constant_rule,
    joined,
    majority,
    size_only,
    window,
)


def some_votes(seed: int, num_targets: int = 12, num_groups: int = 5, num_classes: int = 2, task: str = "graph"):
    """Random votes: some groups of each target are empty, a few votes unstable."""
    random = np.random.default_rng(seed)
    listed = random.random((num_targets, num_groups)) < random.random((num_targets, 1))
    owner, group = np.nonzero(listed)
    node = task == "node"
    default = random.integers(0, num_classes, num_targets) if node else np.full(num_targets, ABSTAIN)
    return Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=default.astype(np.int16),
        default_stable=random.random(num_targets) < 0.9 if node else np.ones(num_targets, dtype=bool),
        indptr=np.concatenate([[0], np.cumsum(listed.sum(1))]).astype(np.int64),
        group=group.astype(np.int32),
        vote=random.integers(0, num_classes, len(owner)).astype(np.int16),
        stable=random.random(len(owner)) < 0.9,
        reached=np.ones(len(owner), dtype=bool),
    )


def some_table(seed: int, task: str = "graph", **sizes: int) -> VoteTable:
    votes = some_votes(seed, task=task, **sizes)
    truth = np.random.default_rng(seed + 1000).integers(0, votes.num_classes, votes.num_targets)
    return table_of(votes, truth)


def table_of(votes: Votes, truth) -> VoteTable:
    node = (votes.default >= 0).all()
    covers = np.zeros(votes.num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    theorem = "node-centric/node" if node else "node-centric/graph"
    return VoteTable.of(
        VoteRecord(votes, theorem, *covers, "node_id", voting_rule=VotingRule().under(theorem, votes.num_classes)),
        truth,
    )


def score(table: VoteTable, empty, prior, sizes) -> float:
    theorem = VotingRule(empty, prior)
    counted = table.counts_of_truth(theorem)
    return float(np.mean([table.weight @ certified(table, theorem, size, counted) for size in sizes]))


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("seed", range(8))
def test_without_constants_it_certifies_what_the_theorems_certify(seed, task) -> None:
    votes = some_votes(seed, num_targets=60, num_groups=7, num_classes=3, task=task)
    counted = count_votes(votes)
    table = table_of(votes, counted.label)  # every vote is right, so that only certification decides
    empty = "no_edge" if task == "node" else "abstain"
    for size in range(5):
        assert (certified(table, VotingRule(empty, (0, 0, 0)), size) == (certified_radius(counted) >= size)).all()


@pytest.mark.parametrize("seed", range(30))
def test_two_classes_get_the_best_constants_there_are(seed) -> None:
    table, sizes = some_table(seed), window(seed % 3)
    everything = product(["abstain", 0, 1], range(-14, 15))
    best = max(score(table, empty, (0, lead), sizes) for empty, lead in everything)
    found = best_class_prior(table, sizes)
    assert score(table, found.empty, found.prior, sizes) == pytest.approx(best)
    assert min(found.prior) == 0


@pytest.mark.parametrize("seed", range(6))
def test_three_classes_take_turns_to_within_a_little_of_the_best(seed) -> None:
    table, sizes = some_table(seed, num_classes=3, num_targets=30), (1,)
    priors = [prior for prior in product(range(13), repeat=3) if min(prior) == 0]
    best = max(score(table, empty, prior, sizes) for empty in ["abstain", 0, 1, 2] for prior in priors)
    found = best_class_prior(table, sizes)
    constant = certified_accuracy(table, constant_rule(table, majority(table)), *sizes)
    assert constant <= certified_accuracy(table, found, *sizes) <= best
    assert certified_accuracy(table, found, *sizes) >= 0.9 * best


@pytest.mark.parametrize("empty", ["no_edge", "abstain"])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_votes_for_the_no_edge_prediction_are_found_and_ties_go_to_more_of_them(seed, empty) -> None:
    table, sizes = some_table(seed, task="node", num_classes=3, num_targets=20), window(seed % 3)
    scores = [score(table, empty, prior, sizes) for prior in range(30)]
    found = best_no_edge_prior(table, sizes, empty)
    best = certified_accuracy(table, found, *sizes)
    assert best == pytest.approx(max(scores))
    assert all(score(table, empty, more, sizes) < best - 1e-9 for more in range(found.prior + 1, 30)) or (
        found.prior > table.num_groups
    )


def test_an_unstable_no_edge_prediction_concedes_its_votes() -> None:
    table = some_table(0, task="node", num_targets=1)
    sure = replace(
        table,
        counts=np.array([[4, 0]]),
        empty=np.array([0]),
        conceded=np.array([0]),
        truth=np.array([0]),
        no_edge=np.array([0]),
        no_edge_stable=np.array([True]),
    )
    doubtful = replace(sure, no_edge_stable=np.array([False]))
    assert certified(sure, VotingRule("abstain", 3), 2).all()
    assert certified(doubtful, VotingRule("abstain", 4), 0).all()
    assert not certified(doubtful, VotingRule("abstain", 5), 0).any()


def test_a_prior_of_its_own_makes_the_radius_larger_than_half_the_margin() -> None:
    # Class 0 wins by its prior alone: a vote that turns to class 1 takes nothing away from class 0.
    table = VoteTable.of_graphs(3, np.array([[0, 1]]), np.array([0]))
    assert certified(table, VotingRule("abstain", (3, 0)), 2).all()
    assert not certified(table, VotingRule("abstain", (2, 0)), 2).any()


def test_the_constant_answer_withstands_everything_and_wins_ties() -> None:
    table = some_table(3, num_targets=50)
    best = constant_rule(table, majority(table))
    assert certified_accuracy(table, best, table.num_groups) == pytest.approx(max(np.bincount(table.truth)) / 50)
    blind = replace(table, counts=np.zeros_like(table.counts), empty=np.full(50, 5), conceded=np.zeros(50, dtype=int))
    assert best_class_prior(blind, [1]) == constant_rule(blind, majority(blind))


def test_the_size_alone_finds_the_class_of_larger_graphs() -> None:
    counts = np.array([[filled, 0] for filled in (2, 3, 3, 8, 9, 10)])
    table = VoteTable.of_graphs(20, counts, np.array([0, 0, 0, 1, 1, 1]))
    label, found = size_only(table, [2])
    assert label == 1
    assert certified(
        table.voting(label), found, 2
    ).all()  # between 3 and 8 there is room for two changes on either side
    other, worse = size_only(table, [3])
    assert certified_accuracy(table.voting(other), worse, 3) < 0.99


def test_a_short_table_counts_as_much_as_a_long_one() -> None:
    long, short = some_table(1, num_targets=40), some_table(2, num_targets=10)
    both, theorem = joined([long, short]), VotingRule(0, (0, 2))
    parts = [certified_accuracy(table, theorem, 1) for table in (long, short)]
    assert certified_accuracy(both, theorem, 1) == pytest.approx(np.mean(parts))
    nodes = joined([some_table(1, task="node"), some_table(2, task="node")])
    assert len(nodes.no_edge) == len(nodes.no_edge_stable) == len(nodes.truth) == 24


def test_the_middle_of_the_best_priors_is_taken() -> None:
    # Any lead of class 1 from -6 to 5 separates the two graphs.
    table = VoteTable.of_graphs(10, np.array([[6, 0], [0, 6]]), np.array([0, 1]))
    found = best_class_prior(table, [0], ["abstain"])
    assert certified(table, found, 0).all()
    assert found.prior[1] - found.prior[0] == 0
