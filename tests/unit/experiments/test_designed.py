"""Votes designed for a size on the page: division and method are chosen without the test set, controls stand beside."""

from pathlib import Path

import pytest

from experiments.paper import designed
from experiments.paper.page import draw_figures, page_text
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


def node_row(size, at, seed=0, **changes):
    return {
        "dataset": "cora-ml", "protocol": "inductive", "division": "Ninf", "seed": seed, "size": size, "prior": 4,
        "score": 0.8, "accuracy_no_edge": 0.77, "accuracy_whole_graph": 0.86, "sizes": SIZES,
        "test_certified": [0.82, at, at - 0.01], "test_certified_anything": [0.82, at - 0.02, 0.7], **changes,
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
    node_row(1, 0.79), node_row(1, 0.78, seed=1), node_row(2, 0.775),
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
    assert " | .750 | .500 | .500 | – | " in designed.graph_table(known)  # the exact one beside the best
    assert "| designed for | E∞ |\n|---|---:|\n| MUTAG, 1 | .500 (1) |" in designed.groups_table(known, "size only")


def test_of_two_trainings_of_nodes_the_one_is_shown_that_did_better_on_validation_nodes_over_all_seeds() -> None:
    better = [node_row(1, 0.80, score=0.9, objective="certified", accuracy_mlp=0.765)]
    assert "| Cora-ML, 1 | .785 (.780–.790) |" in designed.node_table(results(*DESIGNS, *better), "inductive")
    better.append(node_row(1, 0.82, seed=1, score=0.75, objective="certified", accuracy_mlp=0.775))
    table = designed.node_table(results(*DESIGNS, *better), "inductive")
    assert "| Cora-ML, 1 | .810 (.800–.820) |" in table
    assert "| .760 | .770 | .860 |" in table
    worse = [{**row, "score": 0.7} for row in better]
    assert "| Cora-ML, 1 | .785 (.780–.790) |" in designed.node_table(results(*DESIGNS, *worse), "inductive")


def test_who_answers_without_edges_is_decided_by_validation_nodes_and_named() -> None:
    alone = [node_row(1, 0.9, seed, score=0.85, objective="certified", without_edges="mlp") for seed in (0, 1)]
    assert " | .770 | MLP | " in designed.node_table(results(*DESIGNS, *alone), "inductive")
    worse = [{**row, "score": 0.75} for row in alone]
    assert " | MLP | " not in designed.node_table(results(*DESIGNS, *worse), "inductive").split("Cora-ML, 1", 1)[1]


def test_the_gain_is_counted_graph_by_graph_with_its_standard_error() -> None:
    known = results(*DESIGNS)
    apart = designed.gain(*(designed.chosen(known, "mutag", 1, method) for method in ("trained", "size only")))
    assert apart.mean == pytest.approx(0.25)
    assert apart.error == pytest.approx((2 * 0.75 / 16) ** 0.5 / 2)
    assert str(apart) == "+.250 ± .153"


def test_tables_and_sentences_show_controls_beside_what_is_designed() -> None:
    known = results(*DESIGNS)
    row = "| MUTAG, 1 | .000 | .750 (.750–.750) | .500 (.500–.500) | – | .250 (.250–.250) | +.250 ± .153 |"
    assert row in designed.graph_table(known)
    assert "cannot be told from the size alone on MUTAG at 1 (+.250 ± .153)" in designed.graph_words(known)
    assert "MUTAG at 1: .000 before, .750 now, above the majority class" in designed.repair_words(known)
    assert "Cora-ML .785 at 1 and .765 at 2 (without edges .770, MLP .760)" in designed.node_words(known, "inductive")
    table = designed.node_table(known, "inductive")
    assert "| Cora-ML, 1 | .785 (.780–.790) | .765 (.760–.770) | .770 | GCN | .760 | – | .860 | 4, 4 | 2 |" in table
    assert designed.node_words(known, "transductive") == ""


def test_a_model_that_certifies_less_than_the_size_alone_is_said_to() -> None:
    worse = [
        graph_row("trained", "N1000", 0, 0.7, "1" * 50 + "0" * 50),
        graph_row("size only", "N1000", 0, 0.6, "1" * 100),
    ]
    assert (
        "A model trained for a size certifies fewer than the size alone on MUTAG at 1 (−.500"
        in designed.graph_words(results(*worse))
    )


def test_an_envelope_is_called_one_and_every_other_curve_is_of_one_design_size() -> None:
    known = results(*DESIGNS)
    (nodes,) = designed.node_panels(known, "inductive")
    assert [curve.label for curve in nodes.curves] == ["for 1", "for 2", "envelope"]
    assert nodes.curves[-1].mean == pytest.approx([0.785, 0.765])
    plain, control = designed.graph_panels(known, "mutag")
    assert [curve.label for curve in plain.curves] == ["plain, edge", "for 1"]
    assert [curve.label for curve in control.curves] == ["for 1"]


def test_the_page_has_these_sections_only_if_there_are_rows(tmp_path) -> None:
    known = results(*DESIGNS)
    figures = [figure for figure in draw_figures(known, tmp_path) if figure.name == "designed"]
    assert {figure.subject for figure in figures} == {"mutag", "inductive"}
    text = page_text(known, figures, Path(tmp_path / "page.md"))
    assert "designed-mutag.svg" in text
    assert "nodes, inductive" in text
    assert "designed for a size" not in page_text(results(), [], Path("page.md"))
