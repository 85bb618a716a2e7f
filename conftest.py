"""Fixtures for all tests, of the library and of its add-ons.

Two workers share two cores, so each of them computes with one thread.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.paths import PROJECT

pytest_plugins = ["tests.support.browser", "tests.support.commands"]

settings.register_profile("agnncert", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("agnncert")

SHARED = PROJECT.parent / "shared" / "data"
LAST_FILE = "MUTAG/raw/MUTAG_graph_labels.txt"  # among the last that the layout writes


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder with the real datasets, laid out for PyTorch Geometric; skips where they cannot be had."""
    root = PROJECT / ".cache" / "data"
    if not (root / LAST_FILE).exists():
        if not (SHARED / "seed_raw.py").exists():
            pytest.skip(f"the real datasets are neither in {root} nor in {SHARED}")
        subprocess.run([sys.executable, SHARED / "seed_raw.py", root], check=True)
    return root
