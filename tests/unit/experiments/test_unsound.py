"""Every published rule that ``experiments.unsound`` breaks is broken, and within what it certifies."""

import importlib
from pathlib import Path

import pytest

from experiments.unsound import birs_sampler, birs_test, common, pgnncert_clipping, sparse_joint
from experiments.unsound.__main__ import MODULES


def test_every_module_is_listed() -> None:
    written = {file.stem for file in Path(common.__file__).parent.glob("*.py")}
    assert written - {"__init__", "__main__", "common"} == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_certified_label_changes(name: str) -> None:
    broken = importlib.import_module(f"experiments.unsound.{name}").demonstrate()
    assert broken.is_false
    assert not broken.certified.startswith("0 ")


def test_the_radius_of_a_vote_is_exact() -> None:
    assert common.radius([1, 1, 1, 0], 2) == 0  # a tie goes to the smaller class
    assert common.radius([0, 0, 0, 1], 2) == 1
    assert common.radius([2, 2, 2, 2, 0, 1], 3) == 1


def test_figures_of_the_random_ones_are_those_of_an_exact_count() -> None:
    assert birs_test.probability_of_0(False) == 0.71875
    assert birs_test.probability_of_0(True) < 0.5
    assert birs_sampler.isolated(1, is_released=True) < birs_sampler.isolated(1, is_released=False)
    joint = sparse_joint.regions(3, 3)
    assert sum(clean for clean, _ in joint) == pytest.approx(1)
    assert sum(attacked for _, attacked in joint) == pytest.approx(1)


def test_without_a_common_clip_poisoned_data_alter_one_vote(monkeypatch) -> None:
    monkeypatch.setattr(pgnncert_clipping, "CLIP", float("inf"))
    before = pgnncert_clipping.votes([1.0] * 5)
    after = pgnncert_clipping.votes([-1.0, 1.0, 1.0, 1.0, 1.0])
    assert sum(first != second for first, second in zip(before, after, strict=True)) == 1
