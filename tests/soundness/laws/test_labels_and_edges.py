"""Theorem 17 against brute force: every change of some labels together with every change of some neighbours.

The certificates are those of the library. What an attack does to a label is counted here, one vote after the other.
"""

import math

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.labels.joint_record import JointRecord
from agnncert.verifier import recount_joint
from agnncert.verifier.leaders import may_win
from tests.support.joint_worlds import World, random_joint

# Changed labels, new neighbours and lost ones.
AMOUNTS = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 1, 0), (1, 1, 1), (2, 0, 2), (0, 0, 4)]


def budget_of(labels, added, deleted):
    return Budget(flip_labels=labels, add_edges=added, delete_edges=deleted)


def look_for_a_broken_label(labels, added, deleted, rounds=150):
    """Every attack on every certified target; returns how many of them the certificate and how many the truth keeps."""
    rng = np.random.default_rng([labels, added, deleted])
    num_certified = num_safe = 0
    for _ in range(rounds):
        world = World.random(rng)
        evidence = world.evidence()
        possible = evidence.possible(budget_of(labels, added, deleted))[0]
        holds = evidence.holds(budget_of(labels, added, deleted))[0]
        won = world.winners(labels, added, deleted)
        assert evidence.label_and_radius()[0][0] == world.plain_winner(world.y, world.near)
        assert set(np.flatnonzero(possible)) >= won - {World.ABSTAINED}, (world, won)
        safe = len(won) == 1 and World.ABSTAINED not in won
        assert safe or not holds, (world, won)
        num_certified += bool(holds)
        num_safe += safe
    assert num_certified > rounds / 20
    return num_certified, num_safe


@pytest.mark.parametrize(("labels", "added", "deleted"), AMOUNTS)
def test_no_changed_labels_and_neighbours_change_a_certified_label(labels, added, deleted):
    look_for_a_broken_label(labels, added, deleted)


@pytest.mark.parametrize(("labels", "added", "deleted"), [(0, 1, 0), (0, 0, 1), (1, 0, 0)])
def test_most_labels_that_withstand_one_change_are_certified(labels, added, deleted):
    num_certified, num_safe = look_for_a_broken_label(labels, added, deleted)
    assert num_certified > 0.6 * num_safe


def test_no_mix_of_as_many_changes_as_the_radius_changes_a_label():
    rng = np.random.default_rng(4)
    num_certified = 0
    for _ in range(150):
        world = World.random(rng)
        radius = int(world.evidence().label_and_radius()[1][0])
        if radius < 1:
            continue
        num_certified += 1
        before = world.plain_winner(world.y, world.near)
        for labels in range(min(radius, 2) + 1):
            for added in range(min(radius, 2) - labels + 1):
                deleted = min(radius, 2) - labels - added
                assert world.winners(labels, added, deleted) == {before}
    assert num_certified > 50


def test_no_attack_is_cheaper_than_stated():
    rng = np.random.default_rng(9)
    prices = Prices(flip_labels=3, add_labels=3, remove_labels=3, add_edges=2, delete_edges=1)
    for _ in range(100):
        world = World.random(rng)
        stated = world.evidence().cheapest(prices)[0]
        before = {world.plain_winner(world.y, world.near)}
        for labels, added, deleted in AMOUNTS:
            if world.winners(labels, added, deleted) != before:
                assert stated <= 3 * labels + 2 * added + deleted


def test_if_each_change_costs_one_the_price_is_the_number_of_changes():
    rng = np.random.default_rng(10)
    for _ in range(60):
        record = random_joint(rng)
        for amounts in (
            {"flip_labels": 1, "add_labels": 1, "remove_labels": 1, "add_edges": 1, "delete_edges": 1},
            {"add_edges": 1},
            {"delete_edges": 1},
        ):
            stated = record.cheapest(Prices(**amounts))
            fields = [name for name in amounts if "_labels" not in name]
            if len(fields) == 2:  # any mix: the radius
                radius = record.label_and_radius()[1]
                assert (stated[np.isfinite(stated)] == radius[np.isfinite(stated)] + 1).all()
                continue
            for number in range(6):
                holds = record.holds(Budget(**{fields[0]: number}))
                assert (holds == (stated > number)).all()


def test_prover_and_recount_agree():
    rng = np.random.default_rng(8)
    seen = set()
    attacks = [(f, s, d) for f in (0, 1, 2, 5, math.inf) for s in (0, 1, 3, math.inf) for d in (0, 1, math.inf)]
    for _ in range(60):
        record = random_joint(rng)
        elected = recount_joint.elect(record)
        label, radius = record.label_and_radius()
        assert (label == elected.label).all()
        needed = recount_joint.needed_changes(record, elected)
        most = math.inf if record.neighbour_steps else record.voters.num_candidates
        assert (radius == np.minimum(needed.min(axis=1) - 1, most)).all()
        seen |= set(radius.tolist())
        budgets = [budget_of(*amounts) for amounts in attacks]
        ahead = recount_joint.stays_ahead(record, elected, [recount_joint.attack_of(record, b) for b in budgets])
        for budget, answer in zip(budgets, ahead, strict=True):
            assert (record.holds(budget) == answer.all(axis=1)).all(), budget
            own = np.arange(record.num_classes) == label[:, None]
            assert (record.stays_ahead(slice(None), budget) == answer | own).all(), budget
            assert (record.possible(budget) == recounted_possible(record, elected, budget)).all(), budget
        assert (record.answers(budgets, Budget(change_features=1)).holds == ahead.all(axis=2)).all()
        for size in (0, 1, 2, 5):
            assert ((record.possible(size).sum(axis=1) == 1) == (radius >= size)).all()
    assert {-1, 0, 1} <= seen
    assert max(seen) > 5


def ahead_of(record, elected, leader, budget):
    """Of which classes this one stays ahead by the recount, or each label."""
    elected = elected if leader is None else elected.led_by(leader)
    return recount_joint.stays_ahead(record, elected, [recount_joint.attack_of(record, budget)])[0]


def recounted_possible(record, elected, budget):
    return may_win(elected.label, record.num_classes, lambda leader: ahead_of(record, elected, leader, budget))


def test_prover_and_recount_agree_of_which_classes_any_class_stays_ahead():
    rng = np.random.default_rng(18)
    attacks = [(f, s, d) for f in (0, 1, 2, math.inf) for s in (0, 1, math.inf) for d in (0, 1, math.inf)]
    outcomes = []
    for _ in range(40):
        record = random_joint(rng)
        elected = recount_joint.elect(record)
        for leader in range(record.num_classes):
            needed = recount_joint.needed_changes(record, elected.led_by(leader))
            for size in (0, 2):
                others = np.arange(record.num_classes) != leader
                assert (record.stays_ahead(slice(None), size, leader) == (needed > size))[:, others].all()
            for budget in (budget_of(*amounts) for amounts in attacks):
                ahead = record.stays_ahead(slice(None), budget, leader)
                assert (ahead == ahead_of(record, elected, leader, budget)).all(), (budget, leader)
                outcomes += ahead[:, np.arange(record.num_classes) != leader].ravel().tolist()
    assert 0.02 < np.mean(outcomes) < 0.98


@pytest.mark.parametrize(("labels", "added", "deleted"), AMOUNTS)
def test_no_changed_labels_and_neighbours_bring_a_class_past_one_that_stays_ahead_of_it(labels, added, deleted):
    look_for_an_overtaken_leader(labels, added, deleted)


def look_for_an_overtaken_leader(labels, added, deleted, rounds=60):
    """Every attack on every pair of classes of which one is said to stay ahead of the other."""
    rng = np.random.default_rng([9, labels, added, deleted])
    said = 0
    for _ in range(rounds):
        world = World.random(rng)
        evidence, budget = world.evidence(), budget_of(labels, added, deleted)
        near = list(world.changed_neighbours(added, deleted))
        totals = [world.total(y, some) for y in world.changed_labels(labels) for some in near]
        for leader in range(world.num_classes):
            ahead = evidence.stays_ahead(slice(None), budget, leader)[0]
            for k in np.flatnonzero(ahead):
                if k != leader:
                    assert all((total[leader], -leader) > (total[k], -k) for total in totals), (world, leader, k)
                    said += 1
    assert said > rounds / 20


def test_if_neighbours_have_no_weight_theorem_14_remains():
    rng = np.random.default_rng(21)
    for _ in range(30):
        record = random_joint(rng, neighbour_steps=0, least_lead=0)
        label, radius = record.voters.label_and_radius()
        assert (record.label_and_radius()[0] == label[record.target]).all()
        assert (record.label_and_radius()[1] == radius[record.target]).all()
        any_edges = Budget(flip_labels=2, add_edges=math.inf, delete_edges=math.inf)
        assert (record.holds(any_edges) == (radius[record.target] >= min(2, record.voters.num_candidates))).all()


def test_if_neighbours_have_no_weight_the_price_is_the_number_of_labels():
    rng = np.random.default_rng(23)
    num_even = 0
    for _ in range(300):
        world = World.random(rng)
        world.each = 0
        evidence = world.evidence()
        stated = evidence.cheapest(Prices(flip_labels=1, add_labels=1, remove_labels=1))[0]
        for number in range(4):
            holds = evidence.holds(Budget(flip_labels=number))[0]
            assert holds == (stated > number), (world, number)
            assert not holds or len(world.winners(number, 0, 0)) == 1
        total = world.total(world.y, world.near)
        num_even += int(np.sort(total)[-1] == np.sort(total)[-2])
    assert num_even > 10  # a label that is ahead by the rule for ties alone


def test_all_edges_can_be_lost_only_where_labels_alone_decide():
    rng = np.random.default_rng(22)
    outcomes = []
    for _ in range(40):
        record = random_joint(rng, least_lead=0)
        alone = record.no_edge_labels() == record.label_and_radius()[0]
        holds = record.holds(Budget(delete_edges=math.inf))
        assert (alone | ~holds).all()
        outcomes += holds.tolist()
    assert 0.05 < np.mean(outcomes) < 0.95


def test_a_larger_budget_never_holds_where_a_smaller_one_does_not():
    rng = np.random.default_rng(5)
    for _ in range(40):
        record = random_joint(rng)
        for labels, added, deleted in AMOUNTS:
            before = record.holds(budget_of(labels, added, deleted))
            for more in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
                larger = budget_of(labels + more[0], added + more[1], deleted + more[2])
                assert (before | ~record.holds(larger)).all()


def test_a_record_is_stored_and_loaded():
    record = random_joint(np.random.default_rng(1))
    again = JointRecord.load(record.tensors(), record.settings())
    assert again.settings() == record.settings()
    assert all(np.array_equal(array, record.tensors()[name]) for name, array in again.tensors().items())
