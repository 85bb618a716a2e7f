"""What ``import agnncert`` offers, where modules have moved from, and that tests lie where the code lies."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import agnncert as ac
from agnncert import _moved

PROJECT = Path(__file__).resolve().parents[2]


def test_rooms_that_users_name_need_no_import_of_their_own() -> None:
    script = (
        "import agnncert as ac, sys; print('torch' in sys.modules);"
        "print(ac.errors.GraphError.__name__, ac.testing.check_division.__name__, ac.attacks.attack.__name__,"
        " ac.baselines.BiRS.__name__)"
    )
    words = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert words == ["False", "GraphError", "check_division", "attack", "BiRS"]


def test_every_public_name_can_be_had_and_a_wrong_one_cannot() -> None:
    for name in ac.__all__:
        assert getattr(ac, name) is not None
    with pytest.raises(AttributeError, match="certfy"):
        ac.certfy  # noqa: B018


@pytest.mark.parametrize("place", sorted(_moved.MOVED))
def test_a_module_that_has_moved_is_found_at_its_documented_place(place: str) -> None:
    old, new = importlib.import_module(place), importlib.import_module(_moved.MOVED[place])
    public = [name for name in vars(new) if not name.startswith("_")]
    assert all(getattr(old, name) is getattr(new, name) for name in public)
    with pytest.raises(AttributeError):
        old.no_such_name  # noqa: B018


def test_a_command_that_has_moved_still_runs() -> None:
    command = [sys.executable, "-m", "agnncert.experiments.comparisons", "--help"]
    assert "--only" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_unit_tests_lie_where_the_modules_lie_that_they_test() -> None:
    unit, source = PROJECT / "tests" / "unit", PROJECT / "src" / "agnncert"
    files = [file for file in unit.rglob("test_*.py") if file != Path(__file__)]
    for file in files:
        room, words = source / file.parent.relative_to(unit), file.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:k]) for k in range(1, len(words) + 1)]
        assert any((room / f"{name}.py").exists() for name in names), f"{file.relative_to(unit)} tests no module"
    assert len(files) > 40


def test_helpers_of_tests_live_in_one_place() -> None:
    tests = PROJECT / "tests"
    helpers = [file for file in tests.rglob("*.py") if not file.name.startswith(("test_", "conftest"))]
    assert {file.parent.name for file in helpers} == {"support", "golden"}  # golden/make.py writes the golden files
