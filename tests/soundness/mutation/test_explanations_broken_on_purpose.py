"""Mistakes in explanations, each of which a law must notice."""

import pytest

from agnncert import explanation
from agnncert.divided import explain as of_divisions
from agnncert.graphs import voting_edges
from agnncert.stacked import explain as of_stacked_votes
from tests.soundness.laws import test_explanations as laws
from tests.support.mutations import RED, text_turns_red

ADDS_UP = laws.test_votes_add_up_to_the_counts_of_the_certificate
FLIPS = laws.test_deleting_what_is_named_as_enough_changes_the_label
SMALLEST = laws.test_no_smaller_number_of_voters_is_enough_and_none_is_where_none_is_named
TURNED = laws.test_votes_that_have_to_turn_are_one_more_than_the_radius
OWN_EDGES = laws.test_edges_have_their_own_values_and_are_edges_of_the_target


def to_come(kind):
    laws.test_so_many_whole_votes_and_no_fewer_make_another_class_win()


def any_choice(kind):
    laws.test_the_smallest_choice_is_found_among_all()


BROKEN = [
    ("gates are forgotten", of_stacked_votes, "votes = gate * evidence.table", "votes = evidence.table", ADDS_UP, "stacked gated"),
    ("the prior is not divided like votes", of_stacked_votes, "evidence.prior[0] * divisor", "evidence.prior[0]", ADDS_UP, "sum"),
    ("votes given in advance are left out", of_stacked_votes, "    if evidence.pseudo:\n        pseudo", "    if False:\n        pseudo", ADDS_UP, "mean"),
    ("the divisor stays when neighbours go", of_stacked_votes, "-(votes + prior_per_neighbour)", "-votes", SMALLEST, "mean"),
    ("the divisor stays when neighbours come", of_stacked_votes, " + int(prior_per_neighbour[k] - prior_per_neighbour[label])", "", to_come, ""),
    ("the prior is left out", of_divisions, "if prior.any():", "if False:", ADDS_UP, "edge-centric abstain"),
    ("empty subgraphs are left out", of_divisions, "if any(empty) else []", "if False else []", ADDS_UP, "node-centric"),
    ("empty subgraphs abstain", of_divisions, "effects = default - ", "effects = 0 * default - ", SMALLEST, "node-centric class"),
    ("votes against the label are taken away", of_divisions, "effects = default - np", "effects = np", FLIPS, "edge-centric abstain"),
    ("one vote less has to turn", of_divisions, "needed = lead + (k > label)", "needed = lead - 1", TURNED, "node-centric"),
    ("one neighbour too few goes", explanation, "order[: int(reached[0]) + 1]", "order[: int(reached[0])]", any_choice, ""),
    ("one neighbour too many goes", explanation, "order[: int(reached[0]) + 1]", "order[: int(reached[0]) + 2]", any_choice, ""),
    ("a tie is enough for a larger class", explanation, "int(total[label] - total[k]) + (k > label)", "int(total[label] - total[k])", any_choice, ""),
    ("the smallest gains are taken", explanation, "costs, -gains))", "costs, gains))", any_choice, ""),
    ("values are those of another edge", voting_edges, "value[position]", "value[position - 1]", OWN_EDGES, "sum"),
    ("edges are named backwards", voting_edges, "VotingEdge(ids[source], ids[head]", "VotingEdge(ids[head], ids[source]", OWN_EDGES, "sum"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "module", "old", "new", "law", "kind"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_law_notices(monkeypatch, mistake, module, old, new, law, kind):
    laws.explained_all.cache_clear()
    try:
        text_turns_red(monkeypatch, module, old, new, lambda: law(kind), (*RED, IndexError, ValueError))
    finally:
        laws.explained_all.cache_clear()
