"""Every script in ``examples`` runs, in a folder and a process of its own, and prints something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((PROJECT / "examples").glob("*.py"))
SOURCES = [PROJECT / "src", *sorted(PROJECT.glob("packages/*/src"))]
TIME_LIMIT = 120  # seconds; on two idle cores a script should take less than 20


def test_there_are_scripts() -> None:
    assert PROJECT / "examples" / "the_method.py" in SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_runs(script: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script)]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
