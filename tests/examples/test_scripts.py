"""Every script in ``examples`` runs, in a folder and a process of its own, and prints something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.warm import PROJECT, SOURCES, TIME_LIMIT, Warm

SCRIPTS = sorted((PROJECT / "examples").glob("*.py"))
FROM_NOTHING = PROJECT / "examples" / "own_graph.py"  # this one starts as a user starts it; the others save the imports


def test_there_are_scripts() -> None:
    assert {PROJECT / "examples" / "the_method.py", FROM_NOTHING} < set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_runs(script: Path, tmp_path: Path, warm: Warm) -> None:
    if script == FROM_NOTHING:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "OMP_NUM_THREADS": "1"}
        command, how = [sys.executable, str(script)], {"capture_output": True, "text": True, "check": False}
        ended = subprocess.run(command, cwd=tmp_path, env=environment, timeout=TIME_LIMIT, **how)
    else:
        ended = warm.run(script, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
