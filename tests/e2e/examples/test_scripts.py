"""Every script in ``examples`` runs, in a folder and a process of its own, ends well and prints something."""

from pathlib import Path

import pytest

from tests.support import programs
from tests.support.paths import PROJECT

SCRIPTS = sorted((PROJECT / "examples").glob("*.py"))


def test_there_are_scripts() -> None:
    assert {"the_method.py", "own_graph.py"} < {script.name for script in SCRIPTS}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_runs(script: Path, tmp_path: Path) -> None:
    ended = programs.run(programs.PYTHON, script, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
