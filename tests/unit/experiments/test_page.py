"""The page says what the rows say; its figures say it in words, too, and can be read without colours."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiments.paper import prose, tables
from experiments.paper import tables as paper
from experiments.paper.page import draw_figures, page_text, write_page
from experiments.paper.rows import Results
from experiments.paper.spec import EXPERIMENTS, GRAPH_SETS, NODE_SETS, Contest, Setting, main_setting
from tests.support.rows import contest_of, row_of

E_MAIN, N_MAIN = main_setting("cora-ml", "edge"), main_setting("cora-ml", "node")
E_GRAPH = main_setting("aids", "edge")


def rows(accuracy: float = 0.8, **changes) -> list:
    """A small set of results for both tasks."""
    graph = {"certified_unlimited_edges": 0.2, "accuracy_majority": 0.6}
    return [
        row_of(E_MAIN, accuracy, **changes), row_of(N_MAIN, 0.81), row_of(Setting("cora-ml")),
        row_of(Setting("cora-ml", model="mlp"), accuracy_whole_graph=0.75),
        row_of(E_GRAPH, 0.97, radius=5, **graph), row_of(Setting("aids", model="mlp"), accuracy_whole_graph=0.98),
    ]  # fmt: skip


def page_of(found, **arguments) -> str:
    return page_text(Results(found), [], Path("page.md"), **arguments)


def test_the_text_follows_the_rows() -> None:
    before, after = page_of(rows()), page_of(rows(accuracy=0.65))
    assert "reaches the paper's accuracy in 2 of 3 cases; not on AIDS, E (.970 against .98)" in before
    assert "in 1 of 3 cases; not on Cora-ML, E (.650 against .70)" in after
    assert ".800 ✓ | .70" in before
    assert ".650 | .70" in after


def test_every_number_of_a_row_on_the_page_changes_with_it() -> None:
    changed = {"seconds_training": 77.0, "epochs": 66, "seconds_certification": 8.8, "vote_differs_from_no_edge": 0.123}
    before, after = page_of(rows()), page_of(rows(**changed))
    for told in ("77 s", "| 66 |", "8.8 s", "12.30 %"):
        assert told not in before
        assert told in after


def test_curves_are_held_against_the_majority_class_and_models_without_edges() -> None:
    page = page_of(rows())
    assert "| AIDS, E | .600 | .980 | .970 |" in page
    assert "| size 5 |" in page


def test_figures_are_linked_and_written(tmp_path) -> None:
    page = write_page(Results(rows()), tmp_path / "page.md").read_text()
    links = re.findall(r"\]\((\S+\.svg)\)", page)
    assert "page/groups-cora-ml.svg" in links
    assert all((tmp_path / link).is_file() for link in links)


def test_what_is_missing_is_listed_and_complete_results_say_so() -> None:
    page = page_of(rows(), names=["hashes"])
    assert "**Not complete.** 27 runs have no row yet" in page
    assert "- Citeseer: 6 (hashes 6)" in page
    full = [row_of(run) for run in Results([]).missing(["hashes"])]
    assert "Nothing: every run of hashes has its row." in page_of(full, names=["hashes"])


def test_the_machine_is_told_from_the_rows() -> None:
    page = page_of(rows())
    assert "2 CPU cores (Linux), 1 of them used, torch 2.13, Python 3.11.7" in page
    silent = [{k: v for k, v in row.items() if k != "environment"} for row in rows()]
    assert f"{len(silent)} rows do not say where they were made." in page_of(silent)


def test_other_defences_and_benchmarks_appear_when_they_are_there() -> None:
    assert "## Other defences" not in page_of(rows())
    contests = [
        contest_of(Contest("cora-ml", "bi-rs", p_edge=p, p_node=0.9, samples=9), {"certified": {"edges": [0.8, c, 0]}})
        for p, c in ((0.7, 0.1), (0.8, 0.3), (0.9, 0.2))
    ]
    bench = {"dataset": "cora-ml", "division": "E", "fast_in_plain_forwards": 3.21, "naive_over_fast": 55.0}
    results = Results(rows(), contests, {"engines": {"rows": [bench]}})
    page = page_text(results, [], Path("page.md"))
    assert "edges: Bi-RS (edges 0.8, nodes 0.9) | .300 |" in page  # the noise that certifies most
    assert "Bi-RS (edges 0.7" not in page
    assert "| Cora-ML, E | 3.2 | 55 |" in page


def test_claims_of_the_paper_need_the_rows_that_answer_them() -> None:
    big = [row_of(replace(one, num_groups=400), 0.82, radius=190) for one in (E_MAIN, N_MAIN)]
    assert prose.claim_words(Results(rows()[:4])) == ""
    told = prose.claim_words(Results(big))
    assert "about 70 % are certified at size 200" in told
    assert ".820 / .820 at 190 and .000 / .000 at 200 on Cora-ML" in told


def test_variations_compare_the_same_seed() -> None:
    found = [row_of(E_MAIN, 0.8), row_of(replace(E_MAIN, seed=1), 0.5), row_of(replace(E_MAIN, hash="sha1"), 0.79)]
    results = Results(found)
    assert "−.010 (Cora-ML, E)" in prose.variation_words(results, "hash", ("md5", "sha1"), "sha1")
    table = tables.variation_table(results, "hash", ("md5", "sha1", "sha256"), str)
    assert "| Cora-ML, E | .800 / .800 | .790 / .790 | – |" in table


def test_all_numbers_of_the_paper_are_there_and_are_shares() -> None:
    for model in ("gcn", "sage", "gat"):
        for dataset in (*NODE_SETS, *GRAPH_SETS):
            assert all(0.5 < (paper.accuracy(dataset, model, d) or 0) < 1 for d in ("none", "edge", "node"))
    assert set(paper.CERTIFICATION_SECONDS) == set(paper.EPOCH_SECONDS) == {*NODE_SETS, *GRAPH_SETS}
    assert paper.accuracy("digits-knn", "gcn", "edge") is None


def test_a_page_can_be_written_before_anything_has_run() -> None:
    page = page_of([])
    assert "0 runs" in page
    total = len({run for name in EXPERIMENTS for run in Results([]).missing([name])})
    assert f"{total} runs have no row yet" in page


@pytest.mark.parametrize(("ours", "reached"), [(0.6951, True), (0.6949, False), (0.70, True)])
def test_an_accuracy_is_reached_with_the_papers_two_digits(ours, reached) -> None:
    assert tables.reaches(ours, 0.70) is reached


def texts(path) -> list[str]:
    tree = ElementTree.parse(path)
    return ["".join(node.itertext()).strip() for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_two_rows_make_a_figure_with_direct_labels(tmp_path) -> None:
    results = Results([row_of(E_MAIN), row_of(replace(E_MAIN, num_groups=100), radius=49)])
    figures = {figure.name: figure for figure in draw_figures(results, tmp_path)}
    assert set(figures) == {"groups", "neighbours"}
    found = texts(figures["groups"].path)
    assert {"T=100", "T=300", "Cora-ML, E", "certified accuracy", "no_edge 0.80", "majority class 0.30"} <= set(found)
    assert not any("undefended" in text or "MLP" in text for text in found)  # they have no row
    assert "T=100 .800 at size 0, half of that up to 49" in figures["groups"].about


def test_models_without_a_proof_stand_beside_the_curve(tmp_path) -> None:
    results = Results([row_of(E_MAIN), row_of(Setting("cora-ml")), row_of(Setting("cora-ml", model="mlp"))])
    found = texts(draw_figures(results, tmp_path)[0].path)
    assert {"undefended 0.90", "MLP 0.90"} <= set(found)


VARIED = [
    ("hashes", {"hash": "sha1"}, "sha1"),
    ("models", {"model": "gat"}, "GAT"),
    ("subgraphs", {"objective": "full"}, "no subgraphs"),
    ("protocols", {"protocol": "inductive"}, "inductive"),
    ("larger", {"model": "resgcn", "num_layers": 6}, "residual GCN, 6 layers"),
]


@pytest.fixture(scope="module")
def of_experiments(tmp_path_factory) -> dict:
    """Words of each figure of a main run and one run of every experiment."""
    results = Results([row_of(E_MAIN), *(row_of(replace(E_MAIN, **change)) for _, change, _ in VARIED)])
    return {figure.name: texts(figure.path) for figure in draw_figures(results, tmp_path_factory.mktemp("figures"))}


@pytest.mark.parametrize(("name", "change", "label"), VARIED)
def test_each_experiment_has_its_figure(of_experiments, name, change, label) -> None:
    assert set(of_experiments) == {"groups", "neighbours", *(one for one, _, _ in VARIED)}
    assert label in of_experiments[name]
    others = {other for one, _, other in VARIED if one != name}
    assert not others & set(of_experiments[name])


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
