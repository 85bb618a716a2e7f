"""Programs, started as users start them."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PYTHON = sys.executable
AGNNCERT = Path(sysconfig.get_path("scripts")) / "agnncert"
TIME_LIMIT = 300  # seconds


def start(*words: object, environment: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
    """A program whose output can be read while it runs; more can be put into its environment."""
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(list(map(str, words)), env={**os.environ, **(environment or {})}, **usual | how)


def run(*words: object, folder: Path | None = None, **how: Any) -> subprocess.CompletedProcess[str]:
    """A program that has ended: its exit status and all that it said. The caller checks the status."""
    with start(*words, cwd=folder, **how) as process:
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)
