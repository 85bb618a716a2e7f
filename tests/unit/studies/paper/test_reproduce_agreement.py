"""Two results folders are compared run for run."""

from dataclasses import replace

import pytest

from agnncert.studies.paper import Results, compare_results
from agnncert.studies.paper.spec import Setting, main_setting

from ....support.rows import row_of

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
