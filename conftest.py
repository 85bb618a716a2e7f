"""Fixtures for all tests, of the library and of its add-ons.

Two workers share two cores, so each of them computes with one thread.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch

import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import economy
from tests.support.paths import PROJECT
from tests.support.warm import Warm

pytest_plugins = ["tests.support.browser", "tests.support.commands"]

settings.register_profile("agnncert", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("agnncert")

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**32:  # a container may have no more than 64 MB
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # a file that is written again does not wait for a disk


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    with economy.importing():
        collected = yield
    economy.begin(session.config)
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts modules that start programs first: then one worker gets them all, and what programs import is loaded once."""
    starting = {item.path for item in items if "warm" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path not in starting)


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


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Starts Python programs whose large imports are there already."""
    server = Warm(tmp_path_factory.mktemp("warm"))
    yield server
    server.close()
