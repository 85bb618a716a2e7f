"""Forgeries of votes over random samples: noise that was never drawn, counts that were never counted."""

import numpy as np
import pytest

from tests.soundness.forger.forging import derive, seal, select
from tests.soundness.forger.judging import verdict_on
from tests.soundness.forger.refusals import opened, refuse
from tests.soundness.forger.world import SOME, all_cases

SAMPLES = [name for name in SOME if all_cases()[name].theorem is None]


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("rs", {"p_delete": 0.3}),
        ("rs", {"p_add_feature": 0.1, "p_delete_feature": 0.1, "num_features": 3}),
        ("rs-target-row", {"p_delete": 0.4}),
        ("graphs-rs", {"p_delete": 0.35}),
        ("sparse-rs", {"where": "target row"}),
        ("sparse-rs", {"num_features": 7}),
        ("sparse-rs-features", {"num_features": 1}),
        ("sparse-rs-features", {"where": "target row"}),
    ],
)
def test_noise_that_was_never_drawn(name, altered, tmp_path):
    world, draft = opened(name)
    draft.settings["noise"] |= altered
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", ["rs", "graphs-rs"])
def test_samples_of_one_defence_under_the_name_of_another(name, tmp_path):
    world, draft = opened(name)
    draft.settings["method"] = "bi-rs"
    draft.settings["noise"] = {"kind": "deletions", "p_edge": 0.5, "p_node": 0.5, "test": "B2", "edges_per_injected": 2}
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", ["rs", "graphs-rs"])
def test_noise_that_no_defence_has(name, tmp_path):
    world, draft = opened(name)
    draft.settings["noise"]["p_add"] = 0.0
    assert derive(draft)
    refuse(world, draft, tmp_path, "graph")


@pytest.mark.parametrize("name", ["rs", "graphs-rs", "bi-rs"])
def test_a_budget_without_limit_on_features_that_have_no_noise_is_no_crash(name, tmp_path):
    world, draft = opened(name)
    draft.header["statements"] = [{"budget": {"change_features": "inf"}, "broken_at_most": 0}]
    assert derive(draft)
    assert seal(draft, tmp_path / "a.cert")
    assert verdict_on(tmp_path / "a.cert", world, "file").holds


@pytest.mark.parametrize("name", ["rs", "sparse-rs", "bi-rs"])
def test_classes_that_the_model_does_not_have_in_a_file_about_no_target(name, tmp_path):
    world, draft = opened(name)
    select(draft, [])
    for counts in ("selection", "estimation"):
        draft[counts] = np.zeros((0, 4), dtype=np.int64)
    assert derive(draft)
    refuse(world, draft, tmp_path, "model")


@pytest.mark.parametrize("name", SAMPLES)
def test_counts_that_were_never_drawn(name, tmp_path):
    world, draft = opened(name)
    for counts in ("selection", "estimation"):
        draft[counts][0] = draft[counts][0][::-1].copy()
    draft["estimation"][0] = [int(draft["estimation"][0].sum()), 0, 0]
    assert derive(draft)
    refuse(world, draft, tmp_path)


@pytest.mark.parametrize("name", SAMPLES)
def test_ten_times_as_many_samples(name, tmp_path):
    world, draft = opened(name)
    draft["estimation"] = draft["estimation"] * 10
    assert derive(draft)
    refuse(world, draft, tmp_path)
