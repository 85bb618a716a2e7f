"""The recount agrees with the library on everything, in code of its own."""

import ast
import itertools
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from agnncert import verdict as verifier
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN, VoteRecord, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.per_neighbour import _most_gain
from agnncert.proving.theorems import Amounts
from agnncert.verdict import verify
from agnncert.verifier import (
    check_votes,
    effects,
    file_checker,
    limits,
    piles,
    recount,
    recount_per_neighbour,
    recount_possible,
)
from agnncert.verifier.effects import Limits
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import sort_votes
from agnncert.verifier.theorems.registry import recount_of
from agnncert_peers import recount_samples
from tests.support.certificates import certificate_of, random_budget, random_evidence, random_vote
from tests.support.theorems import THEOREMS


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize("ids", ["node_id", "row"])
def test_the_recount_agrees_with_the_library_on_every_answer(theorem, ids, rng):
    proof = random_evidence(rng, theorem, num_targets=60, ids=ids, unstable=0.1)
    label, radius = proof.label_and_radius()
    (sorted_votes,) = sort_votes(proof)
    assert sorted_votes.label.tolist() == label.tolist()
    assert recount.radius(sorted_votes).tolist() == radius.tolist()
    held = 0
    for _ in range(60):
        budget = random_budget(rng)
        answer = proof.holds(budget)
        assert recount.holds(sorted_votes, limits_under(sorted_votes, budget)).tolist() == answer.tolist(), budget
        held += answer.sum()
    assert held > 20


@pytest.mark.parametrize("theorem", THEOREMS)
@pytest.mark.parametrize("num_classes", [2, 3, 9])
def test_the_recount_agrees_whatever_the_vote(theorem, num_classes, rng, tmp_path):
    held = 0
    for _ in range(
        6 if THEOREMS[theorem].per_neighbour else 12
    ):  # the former have many more kinds of moves to go through
        voting_rule = random_vote(rng, theorem, num_classes)
        proof = random_evidence(
            rng, theorem, num_targets=40, num_classes=num_classes, unstable=0.1, voting_rule=voting_rule
        )
        label, radius = proof.label_and_radius()
        (sorted_votes,) = sort_votes(proof)
        assert sorted_votes.label.tolist() == label.tolist() == proof.counts.argmax(axis=1).tolist()
        assert recount.radius(sorted_votes).tolist() == radius.tolist(), voting_rule
        for _ in range(8):
            budget = random_budget(rng)
            answer = proof.holds(budget)
            assert recount.holds(sorted_votes, limits_under(sorted_votes, budget)).tolist() == answer.tolist(), (
                voting_rule,
                budget,
            )
            held += answer.sum()
            answers = recount.answers(sorted_votes, budget)
            assert answers.holds.tolist() == answer.tolist()
            needed = recount.new_neighbours_needed(sorted_votes, budget)
            assert answers.new_neighbours_needed.tolist() == needed.tolist()
            broken = recount.broken(proof, budget, answers)
            assert broken == proof.broken_at_most(budget), (voting_rule, budget)
        alone, stated = recount.structure_radius(sorted_votes), proof.structure_radius()
        assert (alone is None) == (stated is None) == (not THEOREMS[theorem].per_neighbour)
        assert alone is None or alone.tolist() == stated.tolist()
    assert held > 20
    certificate_of(proof).save(tmp_path / "a.cert", [random_budget(rng) for _ in range(5)])
    assert verify(tmp_path / "a.cert").holds


def random_limits(rng, n: int, sizes=(0, 1, 2, 5, math.inf)) -> Limits:
    unlisted, middle, inner = (rng.choice(sizes, n) for _ in range(3))
    return Limits(unlisted + middle + inner, unlisted + middle, unlisted, np.ones(n, dtype=bool))


@pytest.mark.parametrize("num_classes", [1, 2, 3, 7, 30])
def test_the_recount_finds_the_same_worst_attack_as_trying_everything(num_classes, rng):
    """Piles suffice: against all splits of the moved votes over the tiers, for every class there is."""
    proof = random_evidence(rng, "node-centric/graph", 40, num_groups=8, num_classes=num_classes, unstable=0.1)
    (sorted_votes,) = sort_votes(proof)
    held = 0
    for _ in range(20):
        bound = random_limits(rng, proof.num_targets)
        answer = [withstands_all_splits(proof.votes, j, bound) for j in range(proof.num_targets)]
        assert recount.holds(sorted_votes, bound).tolist() == answer
        held += sum(answer)
    assert 0 < held < 800 or num_classes == 1


def withstands_all_splits(votes, j: int, bound) -> bool:
    """Every class against every split, from a table with a cell for each subgraph."""
    vote, stable, tier = table(votes, j)
    cast = [int((vote == k).sum()) for k in range(votes.num_classes)]
    label = cast.index(max(cast))
    for k in set(range(votes.num_classes)) - {label}:
        lead = int((stable & (vote == label)).sum()) - int((stable & (vote == k)).sum()) - int((~stable).sum())
        worth = np.where(vote == label, 2, np.where(vote == k, 0, 1))
        gains = [sorted(worth[stable & (tier == t)].tolist(), reverse=True) for t in range(3)]
        for moved in itertools.product(*[range(len(gain) + 1) for gain in gains]):
            allowed = (
                sum(moved) <= bound.total[j] and sum(moved[1:]) <= bound.unreached[j] and moved[2] <= bound.unlisted[j]
            )
            gain = sum(sum(pile[:m]) for pile, m in zip(gains, moved, strict=True))
            if allowed and gain > lead - (k < label):
                return False
    return True


def table(votes, j: int):
    """Vote, stability and tier of target ``j`` in each subgraph."""
    listed = slice(votes.indptr[j], votes.indptr[j + 1])
    vote, stable = np.full(votes.num_groups, votes.default[j]), np.full(votes.num_groups, votes.default_stable[j])
    tier = np.full(votes.num_groups, 2)
    vote[votes.group[listed]], stable[votes.group[listed]] = votes.vote[listed], votes.stable[listed]
    tier[votes.group[listed]] = np.where(votes.reached[listed], 0, 1)
    return vote, stable, tier


@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node", "gated/node"])
def test_prices_are_those_found_by_trying_one_new_neighbour_more_each_time(theorem, rng):
    proof = random_evidence(rng, theorem, num_targets=80, num_groups=30, num_classes=4, unstable=0.01)
    (sorted_votes,) = sort_votes(proof)
    seen = set()
    for _ in range(60):
        budget = random_budget(rng).but(target_features=False)
        full, price = limits_under(sorted_votes, budget), np.full(80, math.inf)
        for x in range(proof.votes.num_groups, -1, -1):
            unreached, unlisted = np.minimum(full.unreached, x), np.minimum(full.unlisted, x)
            price[~recount.holds(sorted_votes, Limits(full.total, unreached, unlisted, full.covered))] = x
        assert recount.new_neighbours_needed(sorted_votes, budget).tolist() == price.tolist(), budget
        seen |= set(price.tolist())
    assert len(seen) > 2


def test_subgraphs_and_classes_that_no_vote_names_cost_nothing():
    """Two targets, 2**24 subgraphs, 32,767 classes: the winner leads the smallest class without votes."""
    votes = Votes(
        2**24,
        32_767,
        default=np.array([5, 0], dtype=np.int16),
        default_stable=np.ones(2, dtype=bool),
        indptr=np.array([0, 2, 2]),
        group=np.array([7, 2**24 - 1], dtype=np.int32),
        vote=np.array([3, 32_766], dtype=np.int16),
        stable=np.ones(2, dtype=bool),
        reached=np.ones(2, dtype=bool),
    )
    (sorted_votes,) = sort_votes(
        VoteRecord(votes, "node-centric/node", np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32))
    )
    assert sorted_votes.label.tolist() == [5, 0]
    assert len(sorted_votes.owner) == 3  # of the first target 0, and 3, which stands for 32766 too; of the second 1
    # Class 3 has one vote and wins ties against class 5; nobody voted for class 1, which does not beat class 0 in a tie.
    assert recount.radius(sorted_votes).tolist() == [(2**24 - 2 - 1 - 1) // 2, 2**24 // 2]


def test_targets_are_recounted_in_blocks_with_the_same_verdict(rng, tmp_path, monkeypatch):
    cert = certificate_of(random_evidence(rng, "edge-centric/node", num_targets=40))
    cert.save(tmp_path / "a.cert")
    monkeypatch.setattr(piles, "VOTES_AT_ONCE", 50)  # four targets at a time
    assert verify(tmp_path / "a.cert").holds


def test_the_recount_shares_no_code_with_the_rules():
    """What is imported through others, the contracts in pyproject.toml forbid."""
    theorems = [import_module(type(recount_of(theorem)).__module__) for theorem in THEOREMS]
    counting = (piles, effects, limits, recount, recount_per_neighbour, recount_possible, *theorems)
    for module in (*counting, recount_samples, check_votes, file_checker, verifier):
        tree = ast.parse(Path(module.__file__).read_text())
        named = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not [name for name in named if name.startswith(("agnncert.proving", "agnncert.divided"))]
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if module in counting:
            assert not calls & {"label_and_radius", "hold_each", "tally", "count_votes", "count_by_class", "counts"}


def test_a_class_without_votes_that_empty_groups_cast_is_a_rival():
    """Five votes for class 0 keep class 3 at -4; when all of them are gone, class 3 has its prior of 1 and wins."""
    n, num = 1, 5
    votes = Votes(
        num, 4, np.full(n, 3, np.int16), np.ones(n, bool), np.array([0, num]), np.arange(num, dtype=np.int32),
        np.zeros(num, np.int16), np.ones(num, bool), np.ones(num, bool),
    )  # fmt: skip
    theorem = VotingRule(empty=3, prior=[0, 0, 0, 1])
    nothing = {
        "reach_ptr": np.zeros(n + 1, np.int64),
        "reach": np.zeros(0, np.int32),
        "targets_per_node": np.zeros(0, np.int32),
    }
    record = VoteRecord(votes, "per-neighbour/node", voting_rule=theorem, **nothing)
    (sorted_votes,) = sort_votes(record)
    assert sorted_votes.label.tolist() == [0]
    assert recount.answers(sorted_votes, Budget(delete_edges=5)).holds.tolist() == [False]
    assert recount.answers(sorted_votes, Budget(delete_edges=4)).holds.tolist() == [True]


@pytest.mark.parametrize("theorem", [theorem for theorem in THEOREMS if theorem.endswith("/node")])
def test_a_number_of_new_neighbours_that_is_one_off_is_refused(theorem, rng):
    proof = random_evidence(rng, theorem, num_targets=60)
    (sorted_votes,) = sort_votes(proof)
    stated = certificate_of(proof).new_neighbours
    assert recount.right_neighbours(sorted_votes, stated).all()
    for off in (-1, 1):
        assert not recount.right_neighbours(sorted_votes, stated + off)[np.isfinite(stated)].any()


@pytest.mark.parametrize("lead", [10, 11, 12, 13, 14])
def test_a_prior_as_large_as_all_votes_is_counted_to_the_last_vote(lead, rng):
    """With 12 votes in two classes, a prior of 12 is the first that no change of votes outweighs."""
    proof = random_evidence(rng, "custom/node", 60, 12, 2, unstable=0, voting_rule=VotingRule(prior=[lead, 0]))
    (sorted_votes,) = sort_votes(proof)
    assert recount.radius(sorted_votes).tolist() == proof.label_and_radius()[1].tolist()
    assert (recount.radius(sorted_votes)[sorted_votes.label == 0] == 12).all() == (lead >= 12)
    for size in (11, 12):
        assert ((proof.possible(size).sum(axis=1) == 1) == (recount.radius(sorted_votes) >= size)).all()


@pytest.mark.parametrize("kind", ["delete_edges", "change_features"])
@pytest.mark.parametrize("lead", [8, 9, 11, 12])
def test_a_grid_of_which_every_row_or_column_is_touched_moves_all_votes(kind, lead, rng):
    """All 12 votes are then free, and a prior of less than 12 does not keep a label that may lose all of them."""
    proof = random_evidence(rng, "gnncert-en/node", 60, 12, 2, unstable=0, voting_rule=VotingRule(prior=[lead, 0]))
    (sorted_votes,) = sort_votes(proof)
    label_0 = sorted_votes.label == 0
    for amount in (*range(7), math.inf):
        budget = Budget(**{kind: amount})
        held = recount.holds(sorted_votes, limits_under(sorted_votes, budget))
        assert held.tolist() == proof.holds(budget).tolist(), budget
    assert held[label_0].tolist() == [lead >= 12] * int(label_0.sum())
    assert label_0.any()


@pytest.mark.parametrize("empty", [0, 1, "abstain"])
@pytest.mark.parametrize("theorem", ["per-pair/node", "per-pair/graph"])
def test_pairs_that_have_one_direction_are_turned_alike(theorem, empty, rng):
    """What added edges gain at each target, and how many changes break it; sums over all targets could hide it."""
    compared = set()
    for _ in range(4):
        voting_rule = VotingRule(empty, rng.integers(-2, 5, 3).tolist())
        proof = random_evidence(rng, theorem, num_targets=40, unstable=0.1, voting_rule=voting_rule)
        (sorted_votes,) = sort_votes(proof)
        tally, facts = proof._block(slice(0, 40))
        for add, delete, alter in itertools.product((1, 2, 4), (0, 1, 3), (0, 2)):
            budget = Budget(add_edges=add, delete_edges=delete, change_edges=alter)
            full = limits_under(sorted_votes, budget)
            gained = recount_per_neighbour.gain(sorted_votes, full)
            most = _most_gain(tally, proof.proof.touches(Amounts.of(budget), facts), facts)
            assert gained.tolist() == most[sorted_votes.owner, sorted_votes.rival].tolist(), (voting_rule, budget)
            needed = recount_per_neighbour.changes_needed(sorted_votes, full)
            assert needed.tolist() == proof.proof.touches_needed(tally, Amounts.of(budget), facts).tolist(), (
                voting_rule,
                budget,
            )
            compared |= set(needed.tolist())
    assert len(compared) > 4


@pytest.mark.parametrize("empty", [0, 1, "abstain"])
def test_votes_that_go_or_are_altered_gain_as_much_as_the_best_of_all_choices(empty):
    """Every choice of the votes that go and are altered, for up to three votes of each kind, of which class 0 has most."""
    sizes = list(itertools.product(range(4), repeat=3))
    groups = max(map(sum, sizes))
    vote = [np.repeat([0, 1, 2], size) for size in sizes]
    indptr = np.concatenate([[0], np.cumsum(list(map(sum, sizes)))])
    votes = Votes(
        num_groups=groups,
        num_classes=3,
        default=np.full(len(sizes), ABSTAIN if empty == "abstain" else empty, np.int16),
        default_stable=np.ones(len(sizes), bool),
        indptr=indptr,
        group=np.concatenate([np.arange(sum(size)) for size in sizes]).astype(np.int32),
        vote=np.concatenate(vote).astype(np.int16),
        stable=np.ones(indptr[-1], bool),
        reached=np.ones(indptr[-1], bool),
    )
    record = VoteRecord(
        votes,
        "per-neighbour/node",
        reach_ptr=np.zeros(len(sizes) + 1, np.int64),
        reach=np.zeros(0, np.int32),
        targets_per_node=np.zeros(0, np.int32),
        voting_rule=VotingRule(empty, [50, 0, 0]),  # so that class 0 wins whatever the votes are
    )
    (sorted_votes,) = sort_votes(record)
    assert (sorted_votes.label == 0).all()
    compared = 0
    for delete, alter in itertools.product(range(6), repeat=2):
        full = limits_under(sorted_votes, Budget(delete_edges=delete, change_edges=alter))
        gained = recount_per_neighbour.gain(sorted_votes, full).tolist()
        for target, rival, gain in zip(sorted_votes.owner, sorted_votes.rival, gained, strict=True):
            assert gain == best_of_all_choices(sizes[target], int(rival), delete, alter, empty), (sizes[target], rival)
            compared += 1
    assert compared > 3000


def best_of_all_choices(size: tuple[int, ...], rival: int, delete: int, alter: int, empty: int | str) -> int:
    """The most that a rival gains on class 0, over all numbers of deleted and altered votes of each class."""

    def worth(choice: int | str) -> int:
        return int(choice == rival) - int(choice == 0)

    best = 0
    for altered in itertools.product(*(range(number + 1) for number in size)):
        left = [number - gone for number, gone in zip(size, altered, strict=True)]
        for gone in itertools.product(*(range(number + 1) for number in left)):
            if sum(altered) <= alter and sum(gone) <= delete:
                by_altered = sum(number * (worth(rival) - worth(k)) for k, number in enumerate(altered))
                by_gone = sum(number * (worth(empty) - worth(k)) for k, number in enumerate(gone))
                best = max(best, by_altered + by_gone)
    return best
