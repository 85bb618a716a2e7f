"""Stacked votes, controls and ceilings on the results page say what their rows say."""

from pathlib import Path

import pytest

from experiments.benchmarks import stacked
from experiments.paper import votes
from experiments.paper.page import draw_figures, page_text
from experiments.paper.rows import Results
from tests.support.rows import row_of
from tests.unit.experiments.test_page import rows

ONE, TWO = "stacked-votes(levels=1, sum)", "stacked-votes(levels=2, sum)"


def stacked_row(rule=ONE, size=1, seed=0, first=0.9, alone=0.8, **changes):
    fallen = [first - 0.02 * k for k in range(6)]
    return {
        "dataset": "cora-ml", "seed": seed, "rule": rule, "size": size, "protocol": "inductive", "trusted": None,
        "without edges": alone, "structure": fallen, "edges": [value + 0.01 for value in fallen], **changes,
    }  # fmt: skip


REFERENCE = {"dataset": "cora-ml", "what": votes.REFERENCE, "reference": [0.95, 0.9, 0.8, 0.8, 0.8, 0.8]}
CEILINGS = [
    {**REFERENCE, "without edges": 0.8},
    {"dataset": "aids", "what": "number of nodes", "possible": [0.999, 0.997, 0.992, 0.987, 0.948, 0.905]},
    *({"dataset": "aids", "what": votes.CONTROL, "seed": k, "accuracy": 0.9 + 0.02 * k} for k in range(2)),
]


def results_of(*stacked, designs=(), ceilings=CEILINGS):
    return Results(rows(), designs=designs, stacked=stacked, ceilings=ceilings)


def test_each_level_is_held_against_what_it_is_proved_for_and_seeds_are_averaged():
    found = results_of(stacked_row(), stacked_row(seed=1, first=0.94), stacked_row(rule=TWO, first=0.85))
    table = votes.node_table(found)
    assert "| Cora-ML, one level, inductive | 1 | .920 | **.900** | .880 | .860 | .840 | .820 | 2 |" in table
    assert "| Cora-ML, two levels, inductive | 1 | .860 | **.840** |" in table
    assert "| Cora-ML, five MLPs | – | .800 |" in table
    assert "reference, not a bound | – | .950 | .900 | .800 |" in table


@pytest.mark.parametrize(("first", "alone", "told"), [
    (0.9, 0.8, "Edges pay on Cora-ML (.880 at 1; without edges .800)."),
    (0.82, 0.8, "They do not on Cora-ML (.800 at 1; without edges .800)."),
])  # fmt: skip
def test_the_words_follow_the_rows(first, alone, told):
    words = votes.node_words(results_of(stacked_row(first=first, alone=alone)))
    assert words.startswith(told)
    assert "certify no more than models without edges from 2 on (seed 0)" in words


def test_the_best_model_without_edges_is_the_one_to_beat():
    design = {"dataset": "cora-ml", "seed": 0, "accuracy_mlp": 0.885}
    found = results_of(stacked_row(), designs=[design])
    assert [name for name, _ in votes.without_edges(found, "cora-ml")][1] == "five MLPs"
    assert "They do not on Cora-ML (.880 at 1; without edges .885)" in votes.node_words(found)


def test_shares_of_trusted_edges_have_a_table_of_their_own():
    rule = "stacked-votes(levels=1, sum, edges trusted by column 0)"
    found = results_of(stacked_row(), stacked_row(rule=rule, trusted=0.5, first=0.93))
    assert "| Cora-ML, 50 % | .930 | .910 |" in votes.trusted_table(found)
    assert "trusted" not in votes.node_table(found)


def test_the_control_of_graphs_and_what_is_possible_stand_on_the_page(tmp_path):
    found = results_of(stacked_row())
    assert "| AIDS | .910 (.900–.920) | 2 | .980 |" in votes.graph_table(found)
    page = page_text(found, [], Path("page.md"))
    assert "AIDS: number of nodes | .999 | .997 |" in page
    assert "## Beyond the paper: where edges pay, and where they cannot" in page
    drawn = {figure.name: figure.about for figure in draw_figures(found, tmp_path) if figure.subject == "cora-ml"}
    assert "one level, for 1 .900 at size 0" in drawn["stacked"]
    assert "reference .950" in drawn["stacked"]
    assert "five MLPs .800" in drawn["groups"]


def test_without_rows_nothing_is_said():
    page = page_text(Results([row_of(votes.Setting("cora-ml"))]), [], Path("page.md"))
    assert "where edges pay" not in page
    assert "What is possible" not in page


def test_a_table_of_few_labels_is_of_these_rows_alone():
    assert stacked.page(stacked.FEW_ROWS).count("20-per-class") == 1
    assert "20-per-class" not in stacked.page()
