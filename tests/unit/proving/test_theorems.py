"""The theorems: every rule against its laws, and the vote against brute force over all changes of votes."""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.theorems import (
    Limits,
    certified_radius,
    count_votes,
    gain_of_changes,
    neighbours_needed,
    times,
    withstands,
)
from tests.support.certificates import random_budget, random_evidence
from tests.support.theorems import THEOREMS

INF = math.inf
NODE_RULES = ["edge-centric/node", "node-centric/node", "gated/node"]
VOTES = [VotingRule(), VotingRule(empty="abstain", prior=(1, 4, 0)), VotingRule(empty=1, prior=(0, 9, 3))]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("theorem", THEOREMS)
def test_the_empty_budget_holds_exactly_where_the_radius_is_not_negative(theorem, rng):
    proof = random_evidence(rng, theorem, unstable=0.2)
    _, radius = proof.label_and_radius()
    assert proof.holds(Budget()).tolist() == (radius >= 0).tolist()
    assert (radius < 0).any()


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_larger_budget_never_holds_where_a_smaller_one_fails(theorem, rng):
    proof = random_evidence(rng, theorem)
    for _ in range(40):
        small, other = random_budget(rng), random_budget(rng)
        large = Budget(
            **{name: max(getattr(small, name), getattr(other, name)) for name in COUNTS},
            target_features=small.target_features or other.target_features,
        )
        assert (proof.holds(large) <= proof.holds(small)).all()


@pytest.mark.parametrize("theorem", THEOREMS)
def test_answers_are_never_not_a_number_and_no_warning_is_raised(theorem, rng):
    """Warnings are errors here, so 0·inf or inf-inf anywhere would fail."""
    proof = random_evidence(rng, theorem)
    for field in COUNTS:
        largest = proof.max_certified(field, random_budget(rng).but(**{field: 0}))
        assert ((largest >= -1) & (largest == np.where(np.isinf(largest), largest, np.floor(largest)))).all()
    assert proof.holds(Budget(inject_nodes=0, edges_per_injected=INF)).tolist() == proof.holds(Budget()).tolist()
    assert proof.holds(Budget(inject_nodes=INF, edges_per_injected=0)).dtype == bool


def test_nothing_times_infinity_is_nothing():
    assert times(np.array([0.0, 2.0, 0.0]), np.array([np.inf, 3.0, 0.0])).tolist() == [0, 6, 0]
    assert times(np.array(np.inf), np.array([0.0, 1.0])).tolist() == [0, np.inf]


@pytest.mark.parametrize("theorem", THEOREMS)
def test_the_largest_amount_is_the_last_one_that_holds(theorem, rng):
    proof = random_evidence(rng, theorem)
    for field in COUNTS:
        rest = Budget(edges_per_injected=3) if field != "edges_per_injected" else Budget(inject_nodes=2)
        largest = proof.max_certified(field, rest)
        held = np.array([proof.holds(rest.but(**{field: amount})) for amount in [*range(20), INF]])
        expected = np.where(held[-1], np.inf, held[:-1].sum(axis=0) - 1)
        assert largest.tolist() == expected.tolist()
        by_base_class = super(type(proof), proof).max_certified(field, rest)
        assert by_base_class.tolist() == expected.tolist()


@pytest.mark.parametrize("theorem", THEOREMS)
def test_whatever_fits_into_the_radius_is_certified(theorem, rng):
    """The paper's rule, votes touched at most the radius, is a special case of every rule here."""
    proof = random_evidence(rng, theorem, unstable=0)
    _, radius = proof.label_and_radius()
    for edges in range(4):
        held = proof.holds(Budget(add_edges=edges, delete_edges=1, change_edges=0))
        if theorem.startswith(("edge-centric", "node-centric", "gated", "gnncert-e/")):
            assert held[radius >= edges + 1].all()
    if theorem == "edge-centric/node":
        assert proof.holds(Budget(inject_nodes=2, edges_per_injected=2))[radius >= 4].all()
    if theorem.startswith("node-centric"):
        assert proof.holds(Budget(inject_nodes=1, edges_per_injected=INF, delete_nodes=1))[radius >= 2].all()


@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node"])
def test_new_neighbours_reach_at_least_the_closed_form(theorem, rng):
    """If the prediction without edges is the label, floor((T - 2|S| - [label > 0]) / 2) new neighbours are withstood."""
    proof = random_evidence(rng, theorem, num_targets=200, unstable=0)
    label, _ = proof.label_and_radius()
    reached = np.diff(proof.votes.indptr)
    closed = np.floor((12 - 2 * reached - (label > 0)) / 2)
    unlimited = Budget(delete_edges=INF, change_edges=INF, delete_nodes=INF, change_features=INF)
    largest = proof.max_certified("add_edges", unlimited)
    applies = (proof.votes.default == label) & (closed >= 0)
    assert applies.sum() > 50
    assert (largest[applies] >= closed[applies]).all()
    injected = proof.max_certified("inject_nodes", unlimited.but(edges_per_injected=INF))
    assert injected.tolist() == largest.tolist()  # a hub of unlimited degree is one new neighbour


@pytest.mark.parametrize("theorem", THEOREMS)
def test_own_features_are_refused_unless_the_rule_covers_them(theorem, rng):
    proof = random_evidence(rng, theorem, unstable=0)
    held = proof.holds(Budget(target_features=True))
    covered = theorem in ("gated/node", "gnncert-n/node", "gnncert-en/node")
    assert held.any() == covered
    if theorem == "gated/node":
        assert held.tolist() == proof.holds(Budget(target_features=True, add_edges=0)).tolist()


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_row_numbers_cover_no_deleted_node(theorem, rng):
    proof = random_evidence(rng, theorem, ids="row")
    assert not proof.holds(Budget(delete_nodes=1)).any()
    assert proof.max_certified("delete_nodes", Budget()).max() == 0
    assert proof.holds(Budget(inject_nodes=1, edges_per_injected=1)).any()
    named = dataclasses.replace(proof, ids="node_id")
    assert named.holds(Budget(delete_nodes=1)).any()


def test_injected_nodes_without_edges_reach_nobody_in_the_node_task_but_do_in_a_graph(rng):
    lonely = Budget(inject_nodes=INF, edges_per_injected=0)
    for theorem in (*NODE_RULES, "edge-centric/graph"):
        proof = random_evidence(rng, theorem)
        assert proof.holds(lonely).tolist() == proof.holds(Budget()).tolist()
    assert not random_evidence(rng, "node-centric/graph").holds(lonely).any()


def test_a_users_division_is_believed_as_far_as_it_states_prices(rng):
    proof = random_evidence(rng, "custom/node", unstable=0)
    radius = certified_radius(count_votes(proof.votes))
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
    radius = certified_radius(count_votes(proof.votes))
    for nodes in range(4):
        for edges in range(4):
            cells = len({(i, j) for i in range(3) for j in range(4) if i < edges or j < nodes})
            held = proof.holds(Budget(add_edges=edges, change_features=nodes))
            assert held.tolist() == (radius >= cells).tolist()


@pytest.mark.parametrize("theorem", [r for r in THEOREMS if r.startswith("gnncert")])
def test_gnncert_covers_no_injected_or_deleted_nodes(theorem, rng):
    proof = random_evidence(rng, theorem)
    assert not proof.holds(Budget(inject_nodes=1, edges_per_injected=1)).any()
    assert not proof.holds(Budget(delete_nodes=1)).any()
    assert proof.holds(Budget(add_edges=1)).any() == ("gnncert-n" not in theorem)
    assert proof.holds(Budget(change_features=1)).any() == ("gnncert-e/" not in theorem)


ABSTAIN = -1


def votes_of(votes: list[int], tiers: list[int], stable: list[bool], num_classes: int) -> Votes:
    """One target. Tier 2 votes must be alike: they are stored as the default."""
    listed = [i for i, tier in enumerate(tiers) if tier < 2]
    unlisted = [i for i, tier in enumerate(tiers) if tier == 2]
    assert len({(votes[i], stable[i]) for i in unlisted}) <= 1
    return Votes(
        num_groups=len(votes),
        num_classes=num_classes,
        default=np.array([votes[unlisted[0]] if unlisted else ABSTAIN], dtype=np.int16),
        default_stable=np.array([stable[unlisted[0]] if unlisted else True]),
        indptr=np.array([0, len(listed)]),
        group=np.array(listed, dtype=np.int32),
        vote=np.array([votes[i] for i in listed], dtype=np.int16),
        stable=np.array([stable[i] for i in listed], dtype=bool),
        reached=np.array([tiers[i] == 0 for i in listed], dtype=bool),
    )


def joined(votes: list[Votes]) -> Votes:
    """The targets of all of them, which have as many groups and classes."""
    parts = {
        name: np.concatenate([getattr(one, name) for one in votes])
        for name in ("default", "default_stable", "group", "vote", "stable", "reached")
    }
    indptr = np.cumsum([0, *(len(one.group) for one in votes)])
    return Votes(num_groups=votes[0].num_groups, num_classes=votes[0].num_classes, indptr=indptr, **parts)


def all_stable(votes: list[int], num_classes: int) -> Votes:
    return votes_of(votes, [0] * len(votes), [True] * len(votes), num_classes)


def winner(votes: tuple[int, ...] | list[int], num_classes: int) -> int:
    counts = [sum(b == k for b in votes) for k in range(num_classes)]
    return counts.index(max(counts))


def every_change(votes: list[int], movable: tuple[int, ...], num_classes: int) -> Iterator[list[int]]:
    for new in itertools.product(range(ABSTAIN, num_classes), repeat=len(movable)):
        changed = list(votes)
        for place, vote in zip(movable, new, strict=True):
            changed[place] = vote
        yield changed


def can_flip(votes: list[int], label: int, movable: tuple[int, ...], num_classes: int) -> bool:
    return any(winner(changed, num_classes) != label for changed in every_change(votes, movable, num_classes))


def reach(moved: float, beyond: float, unlisted: float) -> Limits:
    limits = (np.array([float(x)]) for x in (moved, beyond, unlisted))
    return Limits(*limits, covered=np.array([True]))


def test_the_radius_of_three_small_votes():
    votes = [[0, 0, 0, 0, 0, 1], [0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]]
    label_and_radius = [
        (int(t.label[0]), int(certified_radius(t)[0])) for t in (count_votes(all_stable(b, 2)) for b in votes)
    ]
    assert label_and_radius == [(0, 2), (1, 1), (0, 0)]


@pytest.mark.parametrize(("num_groups", "num_classes"), [(1, 2), (4, 3), (5, 2), (5, 3), (7, 2)])
def test_the_radius_is_exact_for_every_vote_with_abstentions(num_groups, num_classes):
    for votes in itertools.combinations_with_replacement(range(ABSTAIN, num_classes), num_groups):
        counted = count_votes(all_stable(list(votes), num_classes))
        label, radius = int(counted.label[0]), int(certified_radius(counted)[0])
        assert label == winner(votes, num_classes)
        for size, flips in ((radius, False), (radius + 1, True)):
            moves = itertools.combinations(range(num_groups), size)
            assert any(can_flip(list(votes), label, m, num_classes) for m in moves) == flips


def test_without_a_rival_every_vote_may_change():
    assert certified_radius(count_votes(all_stable([0, 0, 0], 1))).tolist() == [3]
    assert withstands(count_votes(all_stable([0, 0, 0], 1)), reach(np.inf, np.inf, np.inf)).tolist() == [True]


@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_guarded_radius_is_exact_when_unstable_votes_may_be_read_as_anything(num_classes):
    negative = 0
    for votes in itertools.combinations_with_replacement(range(ABSTAIN, num_classes), 4):
        for stable in itertools.product([True, False], repeat=4):
            counted = count_votes(votes_of(list(votes), [0] * 4, list(stable), num_classes))
            label, radius = int(counted.label[0]), int(certified_radius(counted)[0])
            unstable = tuple(i for i in range(4) if not stable[i])
            firm = [i for i in range(4) if stable[i]]
            negative += radius == -1
            for size, flips in ((radius, False), (radius + 1, True)):
                moves = itertools.combinations(firm, size) if 0 <= size <= len(firm) else []
                assert any(can_flip(list(votes), label, unstable + m, num_classes) for m in moves) == flips
    assert negative > 20  # the guard does refuse to certify anything at all


def test_an_unstable_default_concedes_every_unlisted_vote():
    votes = votes_of([0, 0, 0, 0, 0], [0, 0, 0, 2, 2], [True, True, True, False, False], 2)
    counted = count_votes(votes)
    assert counted.size[:, 0].tolist() == [3, 0, 0]
    assert counted.margin[0, 1] == 3 - 2
    assert certified_radius(counted).tolist() == [0]


def tiered_votes(num_classes: int, num_groups: int) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    """Every small vote in three tiers, the unlisted votes alike; the order within a tier does not matter."""
    for sizes in itertools.product(range(num_groups + 1), repeat=3):
        if sum(sizes) != num_groups:
            continue
        options = [(b, s) for b in range(ABSTAIN, num_classes) for s in (True, False)]
        for first in itertools.combinations_with_replacement(options, sizes[0]):
            for second in itertools.combinations_with_replacement(options, sizes[1]):
                for third in options if sizes[2] else [(ABSTAIN, True)]:
                    cast = [*first, *second, *[third] * sizes[2]]
                    tiers = [0] * sizes[0] + [1] * sizes[1] + [2] * sizes[2]
                    yield [b for b, _ in cast], tiers, [s for _, s in cast]


def flips_within(votes, tiers, stable, num_classes, limits):
    """Brute force: can some allowed set of moved votes, with the unstable ones read at will, change the winner?"""
    label = winner(votes, num_classes)
    firm = [i for i in range(len(votes)) if stable[i]]
    loose = tuple(i for i in range(len(votes)) if not stable[i])
    for size in range(min(len(firm), int(min(limits[0], len(firm)))) + 1):
        for moved in itertools.combinations(firm, size):
            beyond = sum(tiers[i] > 0 for i in moved)
            unlisted = sum(tiers[i] == 2 for i in moved)
            if beyond <= limits[1] and unlisted <= limits[2]:
                # the best move is to give everything to one rival
                for rival in range(num_classes):
                    changed = [rival if i in moved or i in loose else b for i, b in enumerate(votes)]
                    if winner(changed, num_classes) != label:
                        return True
    return False


def test_giving_every_moved_vote_to_one_rival_is_the_strongest_attack():
    """The brute force below relies on it, so it is checked against all changes."""
    for votes in itertools.product(range(ABSTAIN, 3), repeat=4):
        for size in range(4):
            for moved in itertools.combinations(range(4), size):
                label = winner(votes, 3)
                simple = any(
                    winner([rival if i in moved else b for i, b in enumerate(votes)], 3) != label for rival in range(3)
                )
                assert simple == can_flip(list(votes), label, moved, 3)


@pytest.mark.parametrize(("num_classes", "num_groups", "share"), [(2, 4, 1.0), (3, 4, 0.4), (2, 6, 0.05)])
def test_the_tiered_test_is_exact_with_the_guard(num_classes, num_groups, share):
    random = np.random.default_rng(0)
    drawn = [voting_rule for voting_rule in tiered_votes(num_classes, num_groups) if random.random() <= share]
    # Most small votes are close calls; leave room for the others.
    close = certified_radius(count_votes(joined([votes_of(*voting_rule, num_classes) for voting_rule in drawn]))) < 1
    drawn = [
        voting_rule
        for voting_rule, leave_out in zip(drawn, close & (random.random(len(drawn)) < 0.88), strict=True)
        if not leave_out
    ]
    counted = count_votes(joined([votes_of(*voting_rule, num_classes) for voting_rule in drawn]))
    unlisted = random.choice([0, 0, 0, 1, 2, np.inf], len(drawn))
    beyond = unlisted + random.choice([0, 0, 1, 2], len(drawn))
    held = broke = 0
    for extra in (0, 1, 2, np.inf):
        limits = (beyond + extra, beyond, unlisted)
        answer = withstands(counted, Limits(*limits, covered=np.ones(len(drawn), dtype=bool))).tolist()
        for voting_rule, holds, *each in zip(drawn, answer, *(limit.tolist() for limit in limits), strict=True):
            assert holds == (not flips_within(*voting_rule, num_classes, each))
        held, broke = held + sum(answer), broke + len(answer) - sum(answer)
    assert held > 100
    assert broke > 200


def test_limits_need_not_be_nested_by_the_caller():
    counted = count_votes(votes_of([0, 0, 0, 1], [0, 0, 2, 1], [True] * 4, 2))
    wide = withstands(counted, reach(1, np.inf, np.inf))
    assert wide.tolist() == withstands(counted, reach(1, 1, 1)).tolist()


def test_needed_neighbours_are_the_first_number_that_breaks():
    votes = votes_of([0] * 6 + [1], [2] * 6 + [0], [True] * 7, 2)  # margin 6 - 1 = 5, the reached vote is lost
    counted = count_votes(votes)
    assert neighbours_needed(counted, reach(np.inf, np.inf, np.inf)).tolist() == [3]
    assert neighbours_needed(counted, reach(np.inf, 2, 2)).tolist() == [np.inf]
    assert not withstands(counted, reach(np.inf, 3, 3))[0]
    assert withstands(counted, reach(np.inf, 2, 2))[0]


@pytest.mark.parametrize("theorem", NODE_RULES)
def test_needed_neighbours_are_those_found_by_trying_one_more_each_time(theorem, rng):
    proof = random_evidence(rng, theorem, num_targets=80, num_groups=20, num_classes=4, unstable=0.02)
    counted, seen = count_votes(proof.votes), set()
    for _ in range(40):
        whole, beyond, unlisted = rng.choice([0, 1, 3, 8, np.inf], (3, 80))
        covered, first = rng.random(80) < 0.9, np.full(80, np.inf)
        for x in range(20, -1, -1):
            within = Limits(whole, np.minimum(beyond, x), np.minimum(unlisted, x), covered)
            first[~withstands(counted, within)] = x
        assert neighbours_needed(counted, Limits(whole, beyond, unlisted, covered)).tolist() == first.tolist()
        seen |= set(first.tolist())
    assert len(seen) > 2


@pytest.mark.parametrize("theorem", NODE_RULES)
@pytest.mark.parametrize("ids", ["node_id", "row"])
def test_new_neighbours_beside_unlimited_deletions_are_found_without_a_search(theorem, ids, rng):
    besides = ({}, {"change_features": INF}, {"delete_nodes": 1}, {"inject_nodes": 1, "edges_per_injected": 1})
    found = set()
    for voting_rule, more, target_features in itertools.product(VOTES, besides, (False, True)):
        proof = random_evidence(
            rng, theorem, num_targets=40, num_groups=20, ids=ids, unstable=0.02, voting_rule=voting_rule
        )
        rest = Budget(delete_edges=INF, target_features=target_features).but(**more)
        searched = super(VoteEvidence, proof).max_certified("add_edges", rest)
        assert proof.max_certified("add_edges", rest).tolist() == searched.tolist(), (voting_rule, rest)
        found |= set(searched.tolist())
    assert len(found) > 4


def test_the_radius_is_the_largest_number_whose_gain_closes_no_margin(rng):
    """Also with a prior that no change of all 12 votes outweighs: votes for the rival gain it nothing."""
    for prior in (0, 5, 11, 12, 13):
        proof = random_evidence(rng, "custom/node", 60, 12, 2, unstable=0, voting_rule=VotingRule(prior=[prior, 0]))
        counted, _ = proof._block(slice(0, 60))
        radius = certified_radius(counted)
        for number in range(13):
            safe = (counted.margin >= gain_of_changes(counted, number)) | counted.is_label
            assert safe.all(axis=1).tolist() == (radius >= number).tolist(), (prior, number)
