"""Voting rules designed for a size: division and method are chosen without the test set."""

import pytest

from experiments.paper import designed
from experiments.paper.rows import Results
from experiments.paper.spec import Setting, main_setting
from tests.support.rows import row_of

SIZES = [0, 1, 2]


def graph_row(method, division, seed, score, marks, **changes):
    share = marks.count("1") / len(marks)
    return {
        "dataset": "mutag", "division": division, "seed": seed, "size": 1, "method": method, "score": score,
        "sizes": SIZES, "test_certified": [0.9, share, 0.1], "marks": marks, **changes,
    }  # fmt: skip


def results(*designs) -> Results:
    plain = row_of(main_setting("mutag", "edge"), 0.65, radius=0, accuracy_majority=0.55)
    mlp = row_of(Setting("cora-ml", model="mlp"), accuracy_whole_graph=0.76)
    return Results([plain, mlp], designs=designs)


DESIGNS = (
    graph_row("trained", "N1000", 0, 0.7, "1110"), graph_row("trained", "E300", 0, 0.6, "1111"),
    graph_row("trained", "N1000", 1, 0.6, "1100"), graph_row("trained", "E300", 1, 0.7, "1110"),
    graph_row("size only", "N1000", 0, 0.6, "1100"), graph_row("size only", "N1000", 1, 0.6, "1100"),
    graph_row("majority", "N1000", 0, 0.5, "1000"), graph_row("majority", "N1000", 1, 0.5, "1000"),
)  # fmt: skip


def test_the_division_of_each_seed_is_the_one_that_did_best_without_the_test_graphs() -> None:
    picked = designed.chosen(results(*DESIGNS), "mutag", 1, "trained")
    assert [(row["seed"], row["division"]) for row in picked] == [(0, "N1000"), (1, "E300")]


def test_of_all_methods_the_best_one_is_taken_and_a_tie_goes_to_the_simpler() -> None:
    tied = [graph_row("size only", "E300", seed, score, "1100") for seed, score in ((1, 0.7), (0, 0.5))]
    picked = designed.winner(results(*DESIGNS, *tied), "mutag", 1)
    assert [(row["seed"], row["method"]) for row in picked] == [(0, "trained"), (1, "size only")]
    picked = designed.winner(results(*DESIGNS, tied[0]), "mutag", 1)
    assert {row["method"] for row in picked} == {"trained"}, "a division with one seed of two was chosen"


def test_a_model_that_could_know_training_graphs_by_heart_must_do_no_worse_on_validation_graphs() -> None:
    learnt = graph_row("trained", "E30", 0, 0.9, "1000", val_certified=[0.5, 0.5, 0.5])  # by heart
    honest = graph_row("trained", "N1000", 0, 0.7, "1110", val_certified=[0.7, 0.5, 0.5])
    by_size = graph_row("size only", "Einf", 0, 0.65, "1100", val_certified=[0.6, 0.6, 0.6])
    known = results(learnt, honest, by_size)
    assert [row["division"] for row in designed.chosen(known, "mutag", 1, "trained")] == ["N1000"]
    assert [row["method"] for row in designed.winner(known, "mutag", 1)] == ["trained"]
    assert [row["method"] for row in designed.winner(results(learnt, by_size), "mutag", 1)] == ["size only"]
    better = {**learnt, "val_certified": [0.8, 0.7, 0.7]}
    assert [row["division"] for row in designed.winner(results(better, honest, by_size), "mutag", 1)] == ["E30"]


def test_the_gain_is_counted_graph_by_graph_with_its_standard_error() -> None:
    known = results(*DESIGNS)
    apart = designed.gain(*(designed.chosen(known, "mutag", 1, method) for method in ("trained", "size only")))
    assert apart.mean == pytest.approx(0.25)
    assert apart.error == pytest.approx((2 * 0.75 / 16) ** 0.5 / 2)
    assert str(apart) == "+.250 ± .153"
