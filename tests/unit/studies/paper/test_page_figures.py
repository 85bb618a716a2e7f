"""Figures are drawn from rows, say in words what they show, and can be read without colours."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from agnncert.studies.paper.page import draw_figures
from agnncert.studies.paper.rows import Results
from agnncert.studies.paper.spec import Contest, Setting, main_setting

from ....support.rows import contest_of, row_of

E_MAIN = main_setting("cora-ml", "edge")


def texts(path) -> list[str]:
    tree = ElementTree.parse(path)
    return ["".join(node.itertext()).strip() for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_two_rows_make_a_figure_with_direct_labels(tmp_path) -> None:
    results = Results([row_of(E_MAIN), row_of(replace(E_MAIN, num_groups=100), radius=49)])
    figures = {figure.name: figure for figure in draw_figures(results, tmp_path)}
    assert set(figures) == {"groups", "neighbours"}
    found = texts(figures["groups"].path)
    assert {"T=100", "T=300", "Cora-ML, E", "certified accuracy", "edgeless 0.80", "majority class 0.30"} <= set(found)
    assert not any("undefended" in text or "MLP" in text for text in found)  # they have no row
    assert "T=100 .800 at size 0, half of that up to 49" in figures["groups"].about


def test_models_without_a_proof_stand_beside_the_curve(tmp_path) -> None:
    results = Results([row_of(E_MAIN), row_of(Setting("cora-ml")), row_of(Setting("cora-ml", model="mlp"))])
    found = texts(draw_figures(results, tmp_path)[0].path)
    assert {"undefended 0.90", "MLP 0.90"} <= set(found)


@pytest.mark.parametrize(
    ("name", "change", "label"),
    [
        ("hashes", {"hash": "sha1"}, "sha1"),
        ("models", {"model": "gat"}, "GAT"),
        ("subgraphs", {"objective": "full"}, "no subgraphs"),
        ("protocols", {"protocol": "inductive"}, "inductive"),
        ("larger", {"model": "resgcn", "num_layers": 6}, "residual GCN, 6 layers"),
    ],
)
def test_each_experiment_has_its_figure(tmp_path, name, change, label) -> None:
    results = Results([row_of(E_MAIN), row_of(replace(E_MAIN, **change))])
    figure = next(figure for figure in draw_figures(results, tmp_path) if figure.name == name)
    assert label in texts(figure.path)


def test_defences_are_drawn_per_attack_and_a_published_rule_only_where_it_differs(tmp_path) -> None:
    level = {"injection, tau=1": [0.8, 0.8, 0.8]}
    falls = {"injection, tau=1": [0.8, 0.8, 0.0]}
    rows = [
        contest_of(Contest("cora-ml", "edge-centric", 300), {"certified": level, "published rule": falls}),
        contest_of(Contest("cora-ml", "node-centric", 300), {"certified": level, "published rule": level}),
    ]
    (figure,) = draw_figures(Results([], rows), tmp_path)
    found = texts(figure.path)
    assert {"E", "N", "E, published rule", "Cora-ML: injected nodes, 1 edge each"} <= set(found)
    assert "N, published rule" not in found


def test_no_rows_no_figures(tmp_path) -> None:
    assert draw_figures(Results([]), tmp_path) == []
