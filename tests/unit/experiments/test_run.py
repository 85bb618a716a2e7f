"""The remade comparisons: rows that can be resumed, curves that follow from certificates, tables from rows."""

import json

import numpy as np
import pytest

import agnncert as ac
from experiments.paper import run as comparisons
from experiments.paper.rows import Results
from experiments.paper.run import EvenSplit, make_defence, run_all, threats
from experiments.paper.spec import Contest, contests


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    wanted = [
        Contest("digits-knn", "graph-free MLP"),
        Contest("digits-knn", "edge-centric", num_groups=40),
        Contest("digits-knn", "bi-rs", p_edge=0.7, p_node=0.8, samples=200),
    ]
    with pytest.MonkeyPatch.context() as patch:
        quick = {"epochs": 6, "evaluate_every": 3}
        patch.setattr(comparisons, "FIT", dict.fromkeys(("graph-free MLP", "edge-centric", "bi-rs"), quick))
        found = run_all(wanted, folder / "rows.jsonl", folder=folder / "kept")
        patch.setattr(comparisons, "run_contest", lambda *_: pytest.fail("run again"))
        assert run_all(wanted, folder / "rows.jsonl") == found
    return found, folder


def test_rows_hold_what_the_certificates_prove(rows):
    for row in rows[0]:
        assert row["certified"]["certified"]["injection, tau=5"][0] == pytest.approx(row["accuracy"], abs=0.02)
    kept = {ac.load_certificate(file).claim.method: file for file in (rows[1] / "kept").glob("*.cert")}
    certificate = ac.load_certificate(kept["agnncert"])
    right = certificate.label == certificate.truth
    row = rows[0][1]
    for size, ours, published in zip(
        row["sizes"],
        row["certified"]["certified"]["injection, tau=5"],
        row["certified"]["published rule"]["injection, tau=5"],
        strict=True,
    ):
        held = certificate.holds_against(ac.Budget(inject_nodes=size, edges_per_injected=5))
        assert ours == pytest.approx((right & held).mean(), abs=1e-4)
        assert published == pytest.approx((right & (certificate.radius >= 5 * size)).mean(), abs=1e-4)
        assert ours >= published


def test_the_released_test_of_bi_rs_never_certifies_less_and_the_sharp_one_lies_between(rows):
    certified = rows[0][2]["certified"]
    for attack in threats("node"):
        sound, sharp, released = (
            np.array(certified[rule][attack]) for rule in ("certified", "sharp", "legacy-unsound")
        )
        assert (sound <= sharp).all()
        assert (sharp <= released).all()


def test_a_row_says_where_it_comes_from(rows):
    for row in rows[0]:
        assert len(row["digests"]["data"]) == 64
        assert row["setting"]["seed"] == 0
        assert row["seconds_certification"] >= 0
        json.dumps(row, allow_nan=False)


def test_every_contest_names_a_defence_that_can_be_made():
    for dataset in ("cora-ml", "aids"):
        made = [make_defence(contest) for contest in contests(dataset)]
        assert len({str(defence) for defence in made}) == len(made)
    assert len(list(contests("cora-ml"))) == 4 + 9


def test_an_even_split_spends_edges_and_nodes_alike():
    for size in range(6):
        for budget in EvenSplit("edges and features").budgets(size):
            edges = budget.add_edges + budget.delete_edges
            assert (edges, budget.change_features) == ((size + 1) // 2, size // 2)


def test_a_contest_is_run_again_when_its_recipe_has_changed(rows, monkeypatch):
    found, folder = rows
    contest = Contest("digits-knn", "edge-centric", num_groups=40)
    ran = []
    monkeypatch.setattr(comparisons, "run_contest", lambda one, *_: ran.append(one) or {"new": True})
    monkeypatch.setattr(comparisons, "FIT", {"edge-centric": {"epochs": 7, "evaluate_every": 3}})
    copy = folder / "copy.jsonl"
    copy.write_text((folder / "rows.jsonl").read_text())
    (row,) = run_all([contest], copy)
    assert (ran, row) == ([contest], {"key": found[1]["key"], "new": True})


def test_of_a_contest_that_was_run_again_the_later_row_counts(rows):
    old = rows[0][1]
    better = {**old, "accuracy": 1.0}
    for given, accuracy in (([better, old], old["accuracy"]), ([old, better], 1.0)):
        (kept,) = Results([], comparisons=given).comparisons.values()
        assert kept["accuracy"] == accuracy
