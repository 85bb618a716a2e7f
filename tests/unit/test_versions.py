"""The version stands in one place, and every other place follows."""

import subprocess
import sys

import agnncert
from tests.support.paths import PROJECT


def test_every_file_states_the_version_of_the_library() -> None:
    script = PROJECT / ".ci" / "versions.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"version {agnncert.__version__} in ")
    number_of_files = int(done.stdout.split()[-2])
    assert number_of_files == 4 + 2 * len([*(PROJECT / "packages").glob("agnncert-*")])
