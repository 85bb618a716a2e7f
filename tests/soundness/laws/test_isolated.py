"""Theorem 15 against brute force: every alteration of some models, every change of the test graph, every poisoned set."""

import itertools

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.isolated.evidence import IsolatedEvidence
from agnncert.isolated.parts import sort_into_parts
from agnncert.isolated.record import IsolatedRecord
from agnncert.verifier.recount_isolated import Views
from tests.support.trained_apart import nearest_class, random_record, reachable_labels, small_set, winner

ROUNDS = 25
BUDGETS = [
    Budget(),
    Budget(poison_graphs=1),
    Budget(poison_graphs=2),
    Budget(poison_graphs=1, delete_nodes=1),
    Budget(poison_graphs=1, inject_nodes=1, edges_per_injected=0),
    Budget(poison_graphs=1, add_edges=1),
    Budget(change_features=1, delete_edges=1),
    Budget(inject_nodes=1),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_altered_models_and_no_changed_test_graph_change_a_certified_label(budget):
    rng = np.random.default_rng(3)
    num_certified = num_exact = 0
    for _ in range(ROUNDS):
        record = random_record(rng)
        evidence = IsolatedEvidence(record)
        label, holds, possible = evidence.label_and_radius()[0], evidence.holds(budget), evidence.possible(budget)
        for target in range(record.num_targets):
            reached = reachable_labels(record, target, budget)
            assert reached <= set(np.flatnonzero(possible[target])) | {int(label[target])}
            if holds[target]:
                assert reached == {int(label[target])}
                num_certified += 1
            num_exact += holds[target] == (reached == {int(label[target])})
    assert num_certified > 20  # else nothing was tried
    assert num_exact > 0.8 * ROUNDS * record.num_targets


def test_the_radius_is_the_largest_number_of_poisoned_graphs():
    rng = np.random.default_rng(4)
    for _ in range(40):
        evidence = IsolatedEvidence(random_record(rng))
        _, radius = evidence.label_and_radius()
        for number in range(evidence.record.num_models + 2):
            holds = evidence.holds(Budget(poison_graphs=number))
            assert np.array_equal(holds, radius >= number) or number > evidence.record.num_models


def test_one_view_is_exact():
    """With one view there is nothing to be too careful about."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        record = random_record(rng, num_groups=1, num_models=5)
        evidence = IsolatedEvidence(record)
        label, radius = evidence.label_and_radius()
        for target in np.flatnonzero(np.diff(record.indptr)):
            for number in range(4):
                reached = reachable_labels(record, target, Budget(poison_graphs=number))
                assert (reached == {int(label[target])}) == (radius[target] >= number)


@pytest.mark.parametrize("num_classes", [3, 4, 5])
def test_of_all_rivals_the_one_that_needs_the_fewest_models_decides(num_classes):
    """Prover and verifier both name the radius that brute force finds, and the verifier refuses every other one."""
    rng = np.random.default_rng([6, num_classes])
    num_unlike = 0
    for _ in range(12):
        record = random_record(rng, 8, num_groups=1, num_models=4, num_classes=num_classes)
        label, radius = IsolatedEvidence(record).label_and_radius()
        views = Views(record)
        for target in np.flatnonzero(np.diff(record.indptr)):
            largest, beyond = largest_number_withstood(record, target)
            assert label[target] == views.label()[target]
            assert radius[target] == largest
            for stated in range(-1, record.num_models + 1):
                assert views.right_radius(np.full(record.num_targets, stated))[target] == (stated == largest)
            num_unlike += len(beyond) < num_classes
    assert num_unlike > 20  # some rival needs more models than another, else nothing was told apart


def largest_number_withstood(record, target):
    """The most altered models that leave a target its label, -1 if none do; and what one more can make of it."""
    for number in range(record.num_models + 1):
        reached = reachable_labels(record, target, Budget(poison_graphs=number))
        if len(reached) > 1:
            return number - 1, reached
    raise AssertionError("models that may all be altered elect any class")


@pytest.mark.parametrize("budget", [budget for budget in BUDGETS if budget.poison_graphs], ids=str)
@pytest.mark.parametrize("num_classes", [3, 4, 5])
def test_the_verifier_keeps_no_label_that_an_attack_changes(num_classes, budget):
    rng = np.random.default_rng([7, num_classes])
    num_kept = 0
    for _ in range(8):
        record = random_record(rng, num_groups=3, num_classes=num_classes)
        views = Views(record)
        label, holds, possible = views.label(), views.holds(budget), views.possible(budget)
        for target in range(record.num_targets):
            reached = reachable_labels(record, target, budget)
            assert reached <= set(np.flatnonzero(possible[target])) | {int(label[target])}
            assert reached == {int(label[target])} or not holds[target]
        assert np.array_equal(holds, IsolatedEvidence(record).holds(budget))
        num_kept += holds.sum()
    assert num_kept > 3  # else nothing was tried


# Training sets: a model says the class of the nearest training graph of its part.

IDS = [3, "ann", 14, 15, "bob", 92, 65, 35, "eve", 89, 79, 32]
FEATURES = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.15, 0.85, 0.05, 0.95, 0.25, 0.45]
CLASSES = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
NEW = [(name, value, label) for name in (7, "mallory", 1000) for value in (0.0, 0.5) for label in (0, 1)]
TARGETS = [0.0, 0.12, 0.3, 0.48, 0.6, 0.88]


def votes_of(training, num_models):
    """The votes of all models on all targets, shape [targets, models]."""
    parts = sort_into_parts(training, num_models, "md5")
    return np.array([[nearest_class(part, value) for part in parts] for value in TARGETS], dtype=np.int16)


def record_of(votes):
    num_targets, num_models = votes.shape
    return IsolatedRecord(
        theorem="node-centric/graph",
        num_groups=1,
        num_classes=2,
        num_models=num_models,
        hash="md5",
        indptr=np.arange(num_targets + 1, dtype=np.int64),
        group=np.zeros(num_targets, dtype=np.int32),
        reached=np.zeros(num_targets, dtype=bool),
        reach_ptr=np.zeros(num_targets + 1, dtype=np.int64),
        reach=np.zeros(0, dtype=np.int32),
        vote=votes,
        stable=np.ones(votes.shape, dtype=bool),
    )


def changes():
    """Every change of one training graph: deleted, given the other class or a strange feature, or inserted."""
    for row in range(len(IDS)):
        yield "delete", row, None
        for value in (FEATURES[row], 0.5):
            yield "alter", row, (value, 1 - CLASSES[row])
    for new in NEW:
        yield "insert", -1, new


def poisoned_set(chosen):
    """The training set after some changes; None if two of them are about one graph, or insert one id twice."""
    samples = {own_id: (value, label) for own_id, value, label in zip(IDS, FEATURES, CLASSES, strict=True)}
    touched = set()
    for what, row, new in chosen:
        own_id = new[0] if what == "insert" else IDS[row]
        if own_id in touched:
            return None
        touched.add(own_id)
        if what == "delete":
            del samples[own_id]
        else:
            samples[own_id] = new[1:] if what == "insert" else new
    order = sorted(samples, key=str)  # another order than before: places in the list must not matter
    return small_set(order, [samples[key][0] for key in order], [samples[key][1] for key in order])


@pytest.mark.parametrize("num_models", [3, 7])
def test_no_poisoned_training_set_changes_a_certified_label(num_models):
    evidence = IsolatedEvidence(record_of(votes_of(small_set(IDS, FEATURES, CLASSES), num_models)))
    label, radius = evidence.label_and_radius()
    assert (radius >= 1).any()
    num_flipped = 0
    for number in (1, 2):
        for chosen in itertools.combinations(list(changes()), number):
            training = poisoned_set(chosen)
            if training is None:
                continue
            again = [winner(votes, 2) for votes in votes_of(training, num_models).tolist()]
            flipped = np.array(again) != label
            assert not (flipped & (radius >= number)).any(), chosen
            num_flipped += flipped.sum()
    assert num_flipped  # some changes beyond the radius do flip a label
