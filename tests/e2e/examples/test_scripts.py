"""Every script in ``examples`` runs, in a folder and a process of its own, and prints something."""

from pathlib import Path

import pytest

from tests.support.warm import FIRST, PROJECT, Warm

SCRIPTS = sorted((PROJECT / "examples").glob("*.py"))


def test_there_are_scripts() -> None:
    assert {PROJECT / "examples" / "the_method.py", FIRST} < set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_runs(script: Path, tmp_path: Path, warm: Warm) -> None:
    ended = warm.first.result() if script == FIRST else warm.run(script, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
