"""What the base class derives from the relation of a kind, against every attack on a few votes."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.errors import BudgetError
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence
from tests.support.certificates import certificate_of, random_budget, random_evidence
from tests.support.theorems import THEOREMS

CLASSES = 3


@dataclass(frozen=True)
class Voters(Evidence):
    """Votes of some voters; an added edge alters one that is not firm, and so does each step of a size."""

    votes: np.ndarray  # shape [n, voters]
    firm: np.ndarray  # shape [n, voters]
    kind = "voters"

    @property
    def _cast(self):
        return self.votes[:, :, None] == np.arange(CLASSES)

    @property
    def counts(self):
        return self._cast.sum(axis=1)

    @property
    def largest_radius(self):
        return self.votes.shape[1]

    def covers(self, budget):
        return budget.but(edges_per_injected=math.inf) == Budget(add_edges=budget.add_edges)

    def stays_ahead(self, rows, attack, leader=None):
        altered = attack.add_edges if isinstance(attack, Budget) else attack
        counts, leading = self.counts[rows], self.leaders(rows, leader)[:, None]
        lead = np.take_along_axis(counts, leading, axis=1) - counts - (np.arange(CLASSES) < leading)
        loose = (self._cast & ~self.firm[:, :, None]).sum(axis=1)[rows]
        taken_from_leader = np.minimum(np.take_along_axis(loose, leading, axis=1), altered)
        given_to_rival = np.minimum(loose.sum(axis=1, keepdims=True) - loose, altered)
        return (lead >= taken_from_leader + given_to_rival) | (np.arange(CLASSES) == leading)

    def tensors(self):
        return {"votes": self.votes, "firm": self.firm}

    def settings(self):
        return {}

    @classmethod
    def load(cls, tensors, settings):
        return cls(tensors["votes"], tensors["firm"])

    def winners(self, number):
        """Every class that wins for each target after some change of this many votes, by trying all of them."""
        every = np.array(list(itertools.product(range(CLASSES), repeat=self.votes.shape[1])))
        winner = Voters(every, np.zeros_like(every, dtype=bool)).counts.argmax(axis=1)
        changed = every != self.votes[:, None]
        near = (changed.sum(axis=2) <= number) & ~(changed & self.firm[:, None]).any(axis=2)
        return np.stack([(near & (winner == k)).any(axis=1) for k in range(CLASSES)], axis=1)


EVERY_VOTE = np.array(list(itertools.product(range(CLASSES), repeat=5)))
EVERYBODY = Voters(EVERY_VOTE, np.random.default_rng(0).random(EVERY_VOTE.shape) < 0.3)


@pytest.mark.parametrize("number", range(6))
def test_labels_hold_exactly_where_no_change_of_so_many_votes_makes_another_class_win(number):
    won = EVERYBODY.winners(number)
    only_label = won.sum(axis=1) == 1
    budget = Budget(add_edges=number)
    assert (EVERYBODY.holds(budget) == only_label).all()
    assert EVERYBODY.broken_at_most(budget) == (~only_label).sum()
    label, radius = EVERYBODY.label_and_radius()
    assert (label == EVERYBODY.winners(0).argmax(axis=1)).all()
    assert ((radius >= number) == only_label).all()
    assert (EVERYBODY.max_certified("add_edges", Budget()) >= number).tolist() == only_label.tolist()
    for at in (budget, number):
        named = EVERYBODY.possible(at)
        assert not (won & ~named).any()
        assert ((named.sum(axis=1) == 1) == only_label).all()


def test_of_some_targets_one_graph_breaks_no_others():
    budget = Budget(add_edges=1)
    among = np.arange(EVERYBODY.num_targets) % 3 == 0
    fails = ~EVERYBODY.holds(budget)
    assert fails.sum() > (fails & among).sum() > 0
    assert EVERYBODY.broken_at_most(budget, among) == (fails & among).sum()


def test_no_attack_at_all_leaves_the_label_also_where_nothing_is_proved():
    class Unproved(Voters):
        def stays_ahead(self, rows, attack, leader=None):
            return np.zeros_like(super().stays_ahead(rows, attack, leader))

    proof = Unproved(EVERY_VOTE, np.zeros_like(EVERY_VOTE, dtype=bool))
    assert (proof.possible(-1) == (np.arange(CLASSES) == proof.labels()[:, None])).all()
    assert proof.possible(0).all()


def test_a_class_that_gets_ahead_of_the_label_is_excluded_where_another_one_stays_ahead_of_it():
    """Three votes for 0 and one for 2, and three firm ones for 1: two changes bring 2 ahead of 0, but not of 1."""
    proof = Voters(np.array([[0, 0, 0, 1, 1, 1, 2]]), np.array([[False] * 3 + [True] * 3 + [False]]))
    assert proof.labels().tolist() == [0]
    assert not proof.stays_ahead(slice(None), 2)[0, 2]
    assert proof.stays_ahead(slice(None), 2, leader=1)[0, 2]
    assert proof.possible(2).tolist() == proof.winners(2).tolist() == [[True, True, False]]


def test_the_cheapest_attack_buys_the_fewest_changes_that_succeed():
    _, radius = EVERYBODY.label_and_radius()
    cheapest = EVERYBODY.cheapest(Prices(add_edges=3))
    assert (cheapest == 3 * (radius + 1))[radius < 5].all()
    assert (cheapest > 3 * 5)[radius == 5].all()
    to_two = EVERYBODY.cheapest(Prices(add_edges=3), label=2)
    for number in range(6):
        assert (to_two[EVERYBODY.winners(number)[:, 2]] <= 3 * number).all()
    assert (to_two >= cheapest)[EVERYBODY.labels() != 2].all()


def test_what_nothing_is_proved_about_breaks_every_label_at_its_price():
    beyond = Budget(add_edges=1, delete_nodes=1)
    assert not EVERYBODY.holds(beyond).any()
    assert EVERYBODY.possible(beyond).all()
    assert EVERYBODY.max_certified("add_edges", Budget(delete_nodes=1)).max() == -1
    assert EVERYBODY.answers([beyond], Budget()).broken_at_most == (len(EVERYBODY.votes),)
    assert EVERYBODY.cheapest(Prices(add_edges=3, delete_nodes=2)).max() == 2
    assert EVERYBODY.cheapest(Prices(delete_nodes=2)).min() == 2
    with pytest.raises(BudgetError, match="nothing is proved about flip_labels"):
        EVERYBODY.holds(Budget(flip_labels=1))


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_targets_are_looked_at_in_blocks_with_the_same_answers(at_once, monkeypatch):
    def answers():
        proof = Voters(EVERYBODY.votes[::3], EVERYBODY.firm[::3])
        stated = proof.answers([Budget(add_edges=1), Budget(add_edges=2)], Budget())
        among = np.arange(proof.num_targets) % 2 == 0
        yield from (*stated, *proof.label_and_radius(), proof.possible(1), proof.possible(Budget(add_edges=2)))
        yield from (proof.cheapest(Prices(add_edges=1)), proof.broken_at_most(Budget(add_edges=1), among))

    whole = list(answers())
    monkeypatch.setattr(Voters, "entries_at_once", at_once)
    assert len(Voters(EVERYBODY.votes, EVERYBODY.firm).blocks) >= 243 // at_once
    for parts, all_at_once in zip(answers(), whole, strict=True):
        assert np.array_equal(parts, all_at_once)


@pytest.mark.parametrize("theorem", THEOREMS)
def test_what_follows_from_the_relation_is_what_votes_of_subgraphs_answer_by_themselves(theorem):
    rng, telling = np.random.default_rng(3), 0
    proof = random_evidence(rng, theorem, 40, num_classes=3, unstable=0.05)
    labels, radius = proof.label_and_radius()
    assert (Evidence.labels(proof) == labels).all()
    for attack in (*(random_budget(rng) for _ in range(8)), Budget(add_edges=1), 0, 1, 3):
        ahead = proof.stays_ahead(slice(None), attack)
        holds = proof.holds(attack) if isinstance(attack, Budget) else radius >= attack
        assert (ahead.all(axis=1) == holds).all()
        possible = proof.possible(attack)
        assert not (possible & ~Evidence.possible(proof, attack)).any()  # Theorem 12 is sharper
        for k in range(3):
            led = proof.stays_ahead(np.arange(40), attack, leader=k)
            assert (led[labels == k] == ahead[labels == k]).all()
            never = led & (np.arange(3) != k)
            assert not (possible & never & (np.arange(3) != labels[:, None])).any()
            telling += int(never[labels != k].sum())
    assert telling


class Plain(Evidence):
    """Evidence of a kind that says no more than it must: two targets that nothing is certified about."""

    kind = "plain"
    counts = np.array([[3, 1], [0, 2]])

    def stays_ahead(self, rows, attack, leader=None):
        return np.zeros(self.counts[rows].shape, dtype=bool)

    def tensors(self):
        return {}

    def settings(self):
        return {}

    @classmethod
    def load(cls, tensors, settings):
        return cls()


def test_a_plain_kind_of_evidence_is_enough_for_a_certificate():
    claim = certificate_of(random_evidence(np.random.default_rng(2), "edge-centric/node")).claim
    cert = Certificate(claim, Plain(), [5, 6])
    assert cert.voting_rule is None
    assert {name: column.tolist() for name, column in cert.count_columns().items()} == {
        "votes_0": [3, 0],
        "votes_1": [1, 2],
    }
    assert cert.radius.tolist() == cert.structure_radius.tolist() == [-1, -1]
    assert cert.cheapest(Prices(add_edges=1)).tolist() == [0, 0]
    holds, broken, new_edges = cert.evidence.answers((Budget(), Budget(add_edges=1)), Budget())
    assert holds.tolist() == [[False, False]] * 2
    assert broken == (2, 2)
    assert new_edges.tolist() == [-1, -1]
