"""``reproduce`` goes on where it stopped and comes to the same rows again; two results folders are compared."""

import json
from dataclasses import replace

import pytest
import torch

from agnncert.progress import Progress
from agnncert.training.settings import _RECIPES
from experiments.paper import spec
from experiments.paper.reproduce import _Clock, compare_results, reproduce
from experiments.paper.rows import Results, read_rows
from experiments.paper.run import run_all
from experiments.paper.spec import Setting, main_setting
from tests.support.paths import PROJECT
from tests.support.rows import row_of

RUNS = (Setting("digits-knn", division="edge", num_groups=5), Setting("digits-knn", model="mlp"))


@pytest.fixture
def tiny(monkeypatch) -> None:
    """An experiment of two runs of two epochs."""
    monkeypatch.setitem(spec.SMALL, "larger", RUNS)
    monkeypatch.setitem(_RECIPES, "digits-knn", {"fit": {"epochs": 2, "evaluate_every": 1}})


@pytest.mark.usefixtures("tiny")
def test_what_is_there_is_not_run_again_and_a_changed_recipe_is(tmp_path, monkeypatch) -> None:
    told: list[Progress] = []
    threads = torch.get_num_threads()
    first = reproduce(["larger"], tmp_path, small=True, on_progress=told.append)
    assert (first.ran, len(first.rows), first.missing) == (2, 2, ())
    assert torch.get_num_threads() == threads
    assert [(p.done, p.total) for p in told] == [(0, 2)] * 2 + [(1, 2)] * 2
    assert all(p.seconds_left >= 0 for p in told)
    assert first.page == tmp_path / "results.md"

    file = tmp_path / "rows" / "digits-knn.jsonl"
    file.write_text(file.read_text()[:-40])  # the last run was cut short
    again = reproduce(["larger"], tmp_path, small=True)
    assert again.ran == 1
    same = compare_results(Results(again.rows), Results(first.rows), tolerance=0.0)
    assert (same.compared, same.differences) == (2, ())

    monkeypatch.setitem(_RECIPES, "digits-knn", {"fit": {"epochs": 1, "evaluate_every": 1}})
    assert reproduce(["larger"], tmp_path, small=True).ran == 2


@pytest.mark.usefixtures("tiny")
def test_a_page_is_written_without_running_and_datasets_can_be_chosen(tmp_path) -> None:
    page = tmp_path / "docs" / "page.md"
    done = reproduce(["larger"], tmp_path / "results", small=True, run=False, page=page)
    assert (done.ran, done.rows, len(done.missing)) == (0, (), 2)
    assert "2 runs have no row yet" in page.read_text()
    assert reproduce(["larger"], tmp_path, small=True, datasets=["cora-ml"]).missing == ()


@pytest.mark.usefixtures("tiny")
def test_a_row_says_where_and_how_it_was_made(tmp_path) -> None:
    (row,) = run_all(RUNS[:1], tmp_path / "rows.jsonl")
    assert row == json.loads((tmp_path / "rows.jsonl").read_text())
    assert row["environment"]["threads"] == torch.get_num_threads()
    assert {"cpus", "torch", "python", "load"} <= set(row["environment"])
    assert row["recipe"]["fit"]["epochs"] == 2
    assert len(row["certified"]) == len(row["sizes"])


def test_time_left_follows_what_is_known_and_the_pace_so_far() -> None:
    runs = [main_setting("cora-ml", "edge"), Setting("cora-ml", model="mlp"), Setting("cora-ml", seed=1)]
    known = [
        row_of(runs[0], seconds_training=99.95),
        row_of(Setting("cora-ml", model="mlp", seed=2), seconds_training=10.0),
    ]
    clock = _Clock(runs, Results(known))
    assert clock.seconds_left(0.0) == pytest.approx(100 + 10 + 100)
    clock.finished(runs[0], 200.0)  # twice as slow as expected
    assert clock.seconds_left(0.5) == pytest.approx(2 * (5 + 100))


@pytest.mark.data
@pytest.mark.slow
def test_a_first_look_agrees_with_the_committed_results(tmp_path, data_root, monkeypatch) -> None:
    committed = Results.read(PROJECT / "experiments" / "results")
    part = [main_setting("cora-ml", "edge")]
    if any(setting not in committed.rows for setting in part):
        pytest.skip("the committed results do not hold these runs")
    monkeypatch.setitem(spec.SMALL, "accuracy", tuple(part))
    done = reproduce(["accuracy"], tmp_path, small=True, root=data_root)
    assert len(list(read_rows(tmp_path / "rows" / "cora-ml.jsonl"))) == 1
    found = compare_results(Results(done.rows), committed)
    assert (found.compared, found.differences) == (1, ())


E_MAIN = main_setting("cora-ml", "edge")


def test_equal_rows_agree_and_only_common_runs_are_compared() -> None:
    ours = Results([row_of(E_MAIN), row_of(Setting("cora-ml"))])
    theirs = Results([row_of(E_MAIN), row_of(Setting("citeseer"))])
    found = compare_results(ours, theirs)
    assert (found.compared, found.largest, found.differences) == (1, 0.0, ())


@pytest.mark.parametrize(("accuracy", "agrees"), [(0.81, True), (0.83, False)])
def test_accuracies_may_lie_a_little_apart(accuracy, agrees) -> None:
    found = compare_results(Results([row_of(E_MAIN, accuracy)]), Results([row_of(E_MAIN, 0.8)]))
    assert (found.differences == ()) is agrees
    assert found.largest == pytest.approx(accuracy - 0.8)


def test_a_curve_that_falls_elsewhere_is_found_and_named() -> None:
    found = compare_results(Results([row_of(E_MAIN, radius=140)]), Results([row_of(E_MAIN, radius=120)]))
    assert found.differences == (
        "cora-ml division=edge, num_groups=300: certified at size 130 differs by .800, more than .020.",
    )


@pytest.mark.parametrize(("change", "word"), [({"digest": "x"}, "data"), ({"recipe": {}}, "recipe")])
def test_rows_of_other_data_or_another_recipe_are_not_compared(change, word) -> None:
    found = compare_results(Results([row_of(E_MAIN, **change)]), Results([row_of(E_MAIN)]))
    assert f"made with another {word}" in found.differences[0]


def test_a_seed_is_a_run_of_its_own() -> None:
    found = compare_results(Results([row_of(replace(E_MAIN, seed=1))]), Results([row_of(E_MAIN)]))
    assert found.compared == 0
