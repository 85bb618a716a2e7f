"""Mistakes in the prover of stacked votes, each of which a law must notice."""

import numpy as np
import pytest

from agnncert.errors import CertificateError
from agnncert.stacked import evidence as stacked
from agnncert.stacked import model as models
from agnncert.stacked import record
from agnncert.verifier import recount_stacked as recount
from tests.soundness.laws import test_prices as prices
from tests.soundness.laws import test_stacked_graphs as graphs
from tests.soundness.laws import test_stacked_votes as votes
from tests.support.mutations import each_mistake, text_turns_red, turns_red
from tests.unit.stacked import test_record as records
from tests.unit.verifier import test_recount_stacked as blocks

LAW = votes.test_no_attack_within_the_budget_changes_a_certified_label
RADII = votes.test_radii_are_sound_for_every_attack_of_that_size
SCORES = graphs.test_scores_are_those_of_the_definition_in_plain_loops
NODES = graphs.test_no_nodes_within_the_budget_change_a_certified_label


def lost_neighbours_are_free(patch):
    plain = stacked.Leads._sums_of_largest
    patch.setattr(stacked.Leads, "_sums_of_largest", lambda self, delta: 0 * plain(self, delta))


def altered_neighbours_cost_as_lost_ones(patch):
    plain = stacked.Leads.stays_ahead

    def stays_ahead(self, touched):
        lost = np.asarray(touched.lost) + touched.altered
        return plain(self, stacked.Touched(touched.new, lost, 0, touched.shared))

    patch.setattr(stacked.Leads, "stays_ahead", stays_ahead)


def new_neighbours_change_no_divisor(patch):
    def growths(self, num_new):
        none = 0 * num_new
        return [stacked.Growth(none, none if self.record.pseudo else num_new)]

    patch.setattr(stacked.Leads, "_growths", growths)


def gates_are_forgotten(patch):
    plain = stacked.Leads.rivals.func

    def rivals(self):
        return [rival._replace(cap=rival.cap // 2) for rival in plain(self)]

    patch.setattr(stacked.Leads, "rivals", property(rivals))


def a_tie_goes_to_the_label(patch):
    patch.text(stacked, "wins_ties = self.label <= k", "wins_ties = self.label <= len(self.label) + k")


def any_change_costs_as_a_new_neighbour(patch):
    plain = stacked.Leads.rivals.func

    def rivals(self):
        return [rival._replace(num_positive=0 * rival.num_positive) for rival in plain(self)]

    patch.setattr(stacked.Leads, "rivals", property(rivals))


def directions_vote_apart(patch):
    """A pair that has both directions votes twice."""
    patch.text(models, "sum(dim=1) / ways", "sum(dim=1)")


def nodes_of_a_second_level_cost_one_vote(patch):
    patch.setattr(stacked, "moved_by_nodes", lambda own, *rest: np.zeros_like(own))


def trusted_edges_vote_with_the_others(patch):
    plain = models.pairs_of
    patch.setattr(models, "pairs_of", lambda index, rows, n, trusted=None: plain(index, rows, n))


def both_directions_of_a_trusted_pair_vote(patch):
    """The direction that is not trusted votes, too, and an attacker chooses what it says."""
    patch.text(models, "kept = marked | ~safe[pair]", "kept = marked | True")


BROKEN = [
    (lost_neighbours_are_free, LAW, "sum"),
    (altered_neighbours_cost_as_lost_ones, LAW, "sum"),
    (new_neighbours_change_no_divisor, LAW, "mean"),
    (gates_are_forgotten, LAW, "gated"),
    (gates_are_forgotten, LAW, "sum"),
    (any_change_costs_as_a_new_neighbour, RADII, "sum"),
    (any_change_costs_as_a_new_neighbour, RADII, "mean"),
    (a_tie_goes_to_the_label, lambda kind: votes.test_a_tie_goes_to_the_smaller_class(1), "sum"),
    (directions_vote_apart, SCORES, "edge values"),
    (trusted_edges_vote_with_the_others, SCORES, "trusted"),
    (both_directions_of_a_trusted_pair_vote, SCORES, "trusted edge values"),
]


@pytest.mark.parametrize(("mistake", "law", "kind"), BROKEN)
def test_a_law_notices(monkeypatch, mistake, law, kind):
    turns_red(monkeypatch, mistake, lambda: law(kind), (AssertionError, CertificateError))


def test_a_second_level_that_forgets_what_nodes_move_is_noticed(monkeypatch):
    turns_red(monkeypatch, nodes_of_a_second_level_cost_one_vote, lambda: NODES("two levels"))


PRICES = prices.test_no_attack_on_stacked_votes_costs_less_and_the_bound_of_theorem_10_is_met
LINES = [
    ("lost neighbours cost nothing", PRICES, "sum", "pay(lost, touched - num_altered)", "0"),
    ("altered neighbours come with new ones", PRICES, "sum", "pay(new, needed - num_altered)", "0"),
    ("a rival needs one more", PRICES, "sum", "surplus // -np.minimum(slope, -1) + 1.0", "surplus // -np.minimum(slope, -1) + 2.0"),
    ("rounding is forgotten", lambda kind: prices.near_a_tie(), "sum", "(rival.votes - self._slack(k))[owner]", "rival.votes[owner]"),
    ("only as many are altered as are needed", PRICES, "sum", "np.minimum(most_altered, needed), most_altered)", "np.zeros(len(owner)))"),
    ("the divisor stays", PRICES, "mean", "self.divisor(self.degree[owner] - touched)", "self.divisor(self.degree[owner])"),
    ("a class that is ahead of the label need not be ahead", LAW, "sum", "may_win = ~stays_ahead(leads) | leads.is_label", "may_win = leads.is_label.copy()"),
    ("a class is behind itself", LAW, "sum", " & (np.arange(self.num_classes) != k)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "law", "kind", "old", "new"), LINES, ids=[one[0] for one in LINES])
def test_a_law_notices_a_broken_line(monkeypatch, mistake, law, kind, old, new):
    text_turns_red(monkeypatch, stacked, old, new, lambda: law(kind))


RECOUNTED = [
    ("later blocks are left out", "for first in range(0, most + 1, at_once)", "for first in range(0, 1, at_once)"),
    ("the last number of lost neighbours is left out", "min(first + at_once, most + 1)", "min(first + at_once, most)"),
    ("lost neighbours are free", "place = (num_lost + altered)", "place = (0 * num_lost + altered)"),
    ("altered neighbours are free", " - altered[:, None, :] * cost", ""),
    ("new neighbours are free", " - new * use.votes * cost", ""),
]


@pytest.mark.parametrize(("mistake", "old", "new"), RECOUNTED, ids=[one[0] for one in RECOUNTED])
def test_a_broken_line_of_the_recount_is_noticed(monkeypatch, mistake, old, new):
    check = blocks.test_blocks_change_no_answer
    text_turns_red(monkeypatch, recount, old, new, lambda: check(monkeypatch, 7, 0))


def one_vote_above_one_is_refused():
    for name in ("one vote above one", "the last vote above one", "one negative part"):
        records.test_one_fault_is_refused_by_its_name(name)


ELSEWHERE = [
    ("only if all votes are above one", one_vote_above_one_is_refused, record, "dtype=np.int64).max() > STEPS", "dtype=np.int64).min() > STEPS"),
    ("only with a negative part as well", one_vote_above_one_is_refused, record, "self.table.min() < 0 or self.table.sum", "self.table.min() < 0 and self.table.sum"),
    ("rounding helps the label in the recount", lambda: votes.test_a_tie_goes_to_the_smaller_class(1), recount, "self.prior_lead - 2 * self.record.slack", "self.prior_lead + 2 * self.record.slack"),
    ("rounding is forgotten in the recount", lambda: votes.test_a_tie_goes_to_the_smaller_class(1), recount, "self.prior_lead - 2 * self.record.slack", "self.prior_lead"),
    ("only marks above one are trusted", lambda: SCORES("trusted"), models, "trusted = attr[:, column] > 0", "trusted = attr[:, column] > 1"),
    ("marks of zero are trusted", lambda: SCORES("trusted"), models, "trusted = attr[:, column] > 0", "trusted = attr[:, column] >= 0"),
]  # fmt: skip


@each_mistake(ELSEWHERE)
def test_a_broken_line_of_record_model_or_recount_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
