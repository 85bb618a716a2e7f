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
EXACT = votes.test_the_radius_is_the_largest_size_at_which_every_budget_of_that_size_holds
FORGER = votes.test_a_forger_who_shifts_every_number_by_the_slack_states_nothing_false
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
        return [rival._replace(num_worth=0 * rival.num_worth) for rival in plain(self)]

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
    ("a lost neighbour of a mean costs as an altered one", RADII, "heavy mean", "cost_of_touched = np.maximum(cap, growth)", "cost_of_touched = cap"),
    ("an altered neighbour of a mean costs as a lost one", RADII, "mean", "cost_of_touched = np.maximum(cap, growth)", "cost_of_touched = np.maximum(growth, 0)"),
    ("new neighbours of a mean cost nothing", RADII, "mean", "(number - num_touched) * rival.cost_of_new", "0 * rival.cost_of_new"),
    ("touched neighbours cost their votes only", RADII, "mean", " + num_touched * rival.cost_of_touched", ""),
    ("another machine reads the prior alike", FORGER, "sum", "return prior - 2 * self.record.slack", "return prior"),
    ("another machine reads votes alike", FORGER, "sum", "self.degree * (gates * slack + by_gates)", "self.degree * by_gates"),
    ("other directions of old pairs cost nothing", lambda kind: EXACT(kind, 2), "mean by edge", "np.minimum(slope, -cap)", "slope"),
    ("all touched neighbours are charged, worth it or not", lambda kind: EXACT(kind, 2), "heavy mean", "np.minimum(most_touched, rival.num_worth)", "most_touched"),
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


RECOUNTED_RADII = [
    ("lost neighbours of a mean cost as altered ones", "np.where(by_divisor > self.cost, by_divisor, self.cost)", "self.cost"),
    ("altered neighbours of a mean cost as lost ones", "np.where(by_divisor > self.cost, by_divisor, self.cost)", "by_divisor"),
    ("new neighbours of a mean cost as in a sum", "np.clip(self.cost - by_divisor, ", "np.clip(self.cost, "),
    ("other directions of old pairs cost nothing", "self.cost if self.record.by_edge else 0, None)", "0, None)"),
    ("all touched neighbours are charged, worth it or not", "np.clip(touched - new[:, :, None], 0, None)", "touched - new[:, :, None]"),
    ("a smaller radius passes in a sum", "bool(table.record.pseudo) and not structure", "not structure"),
    ("a smaller structure radius passes in a mean", "bool(table.record.pseudo) and not structure", "bool(table.record.pseudo)"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "old", "new"), RECOUNTED_RADII, ids=[one[0] for one in RECOUNTED_RADII])
def test_a_broken_line_of_recounted_radii_is_noticed(monkeypatch, mistake, old, new):
    def check():
        for kind in ("sum", "mean", "mean by edge", "heavy mean"):
            votes.test_the_verifier_counts_the_same(kind, 2, 1)

    text_turns_red(monkeypatch, recount, old, new, check)


@pytest.mark.parametrize(("mistake", "old", "new"), RECOUNTED, ids=[one[0] for one in RECOUNTED])
def test_a_broken_line_of_the_recount_is_noticed(monkeypatch, mistake, old, new):
    check = blocks.test_blocks_change_no_answer
    text_turns_red(monkeypatch, recount, old, new, lambda: check(monkeypatch, 7, 0))


def one_vote_above_one_is_refused():
    for name in ("one vote above one", "the last vote above one", "one negative part"):
        records.test_one_fault_is_refused_by_its_name(name)


ELSEWHERE = [
    ("only if all votes are above one", one_vote_above_one_is_refused, record, "dtype=np.int64).max() > STEPS", "dtype=np.int64).min() > STEPS"),
    ("only with a negative part as well", one_vote_above_one_is_refused, record, "if len(self.table) and self.table.sum", "if self.table.min(initial=0) < 0 and self.table.sum"),
    ("rounding helps the label in the recount", lambda: votes.test_a_tie_goes_to_the_smaller_class(1), recount, "self.prior_lead - 2 * self.record.slack", "self.prior_lead + 2 * self.record.slack"),
    ("rounding is forgotten in the recount", lambda: votes.test_a_tie_goes_to_the_smaller_class(1), recount, "self.prior_lead - 2 * self.record.slack", "self.prior_lead"),
    ("only marks above one are trusted", lambda: SCORES("trusted"), models, "trusted = attr[:, column] > 0", "trusted = attr[:, column] > 1"),
    ("marks of zero are trusted", lambda: SCORES("trusted"), models, "trusted = attr[:, column] > 0", "trusted = attr[:, column] >= 0"),
]  # fmt: skip


@each_mistake(ELSEWHERE)
def test_a_broken_line_of_record_model_or_recount_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
