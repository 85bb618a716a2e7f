"""Mistakes in the prover of stacked votes, each of which a law must notice."""

from pathlib import Path

import numpy as np
import pytest

from agnncert.stacked import evidence as stacked
from agnncert.stacked import model as models
from agnncert.stacked.record import STEPS
from agnncert.verifier import recount_stacked as recount
from tests.soundness.laws import test_prices as prices
from tests.soundness.laws import test_stacked_graphs as graphs
from tests.soundness.laws import test_stacked_votes as votes
from tests.unit.verifier import test_recount_stacked as blocks

LAW = votes.test_no_attack_within_the_budget_changes_a_certified_label
RADII = votes.test_radii_are_sound_for_every_attack_of_that_size
EDGES = graphs.test_no_edges_within_the_budget_change_a_certified_label
NODES = graphs.test_no_nodes_within_the_budget_change_a_certified_label


def lost_neighbours_are_free(patch):
    plain = stacked.Leads._sums_of_largest
    patch.setattr(stacked.Leads, "_sums_of_largest", lambda self, delta: 0 * plain(self, delta))


def altered_neighbours_cost_as_lost_ones(patch):
    plain = stacked.Leads.withstands

    def withstands(self, touched):
        lost = np.asarray(touched.lost) + touched.altered
        return plain(self, stacked.Touched(touched.new, lost, 0, touched.shared))

    patch.setattr(stacked.Leads, "withstands", withstands)


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
    plain = stacked.Leads.withstands

    def withstands(self, touched):
        label, self.label = self.label, np.zeros_like(self.label)
        try:
            return plain(self, touched)
        finally:
            self.label = label

    patch.setattr(stacked.Leads, "withstands", withstands)


def any_change_costs_as_a_new_neighbour(patch):
    plain = stacked.Leads.rivals.func

    def rivals(self):
        return [rival._replace(num_positive=0 * rival.num_positive) for rival in plain(self)]

    patch.setattr(stacked.Leads, "rivals", property(rivals))


def directions_vote_apart(patch):
    def mean_by_pair(each, pairs):
        total = each.new_zeros((len(pairs.neighbour), each.size(1))).index_add(0, pairs.pair, each)
        return total  # twice the vote of a pair that has both directions

    patch.setattr(models, "_mean_by_pair", mean_by_pair)
    patch.setattr(models, "_floor", lambda votes: (votes * STEPS).floor().long().clamp(0, STEPS))


def nodes_of_a_second_level_cost_one_vote(patch):
    patch.setattr(stacked, "moved_by_nodes", lambda own, *rest: np.zeros_like(own))


def trusted_edges_vote_with_the_others(patch):
    plain = models.pairs_of
    patch.setattr(models, "pairs_of", lambda index, rows, n, trusted=None: plain(index, rows, n))


BROKEN = [
    (lost_neighbours_are_free, LAW, "sum"),
    (altered_neighbours_cost_as_lost_ones, LAW, "sum"),
    (new_neighbours_change_no_divisor, LAW, "mean"),
    (gates_are_forgotten, LAW, "gated"),
    (gates_are_forgotten, LAW, "sum"),
    (any_change_costs_as_a_new_neighbour, RADII, "sum"),
    (any_change_costs_as_a_new_neighbour, RADII, "mean"),
]


@pytest.mark.parametrize(("mistake", "law", "kind"), BROKEN)
def test_a_law_notices(monkeypatch, mistake, law, kind):
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        law(kind)


def test_a_second_level_that_forgets_what_nodes_move_is_noticed(monkeypatch):
    nodes_of_a_second_level_cost_one_vote(monkeypatch)
    with pytest.raises(AssertionError):
        NODES("two levels")


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
    text = Path(stacked.__file__).read_text()
    assert text.count(old) == 1, f"{old!r} is not there once"
    names = {"__name__": stacked.__name__}
    exec(compile(text.replace(old, new), "broken", "exec"), names)
    for name in ("cheapest", "_possible"):
        monkeypatch.setattr(stacked.StackedEvidence, name, getattr(names["StackedEvidence"], name))
    monkeypatch.setattr(stacked.Leads, "cheapest", names["Leads"].cheapest)
    with pytest.raises(AssertionError):
        law(kind)


RECOUNTED = [
    ("later blocks are left out", "for first in range(0, most + 1, at_once)", "for first in range(0, 1, at_once)"),
    ("the last number of lost neighbours is left out", "min(first + at_once, most + 1)", "min(first + at_once, most)"),
    ("lost neighbours are free", "place = (num_lost + altered)", "place = (0 * num_lost + altered)"),
    ("altered neighbours are free", " - altered[:, None, :] * cost", ""),
    ("new neighbours are free", " - new * use.votes * cost", ""),
]


@pytest.mark.parametrize(("mistake", "old", "new"), RECOUNTED, ids=[one[0] for one in RECOUNTED])
def test_a_broken_line_of_the_recount_is_noticed(monkeypatch, mistake, old, new):
    text = Path(recount.__file__).read_text()
    assert text.count(old) == 1, f"{old!r} is not there once"
    names = {"__name__": recount.__name__}
    exec(compile(text.replace(old, new), "broken", "exec"), names)
    for name in ("survives", "_survives_exactly"):
        monkeypatch.setattr(recount.DegreeTable, name, getattr(names["DegreeTable"], name))
    names["BLOCK"] = 7
    with pytest.raises(AssertionError):
        blocks.test_blocks_change_no_answer(monkeypatch, 7, 0)
