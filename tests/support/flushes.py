"""What is flushed to the disk, and in which order: calls are made for real, and noted."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Call = tuple[str, int]  # what was done, and the inode of the file or folder


def inode(path: Path) -> int:
    return path.stat().st_ino


def noted_flushes(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls that flush a file, an array that is mapped to one, or a folder, and those that rename, from now on."""
    calls: list[Call] = []
    fsync, replace, flush_map = os.fsync, os.replace, np.memmap.flush

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        calls.append(("flush", os.fstat(handle).st_ino))

    def noted_replace(source: Any, target: Any) -> None:
        calls.append(("rename", inode(Path(source))))
        replace(source, target)

    def noted_flush_map(array: Any) -> None:
        flush_map(array)
        calls.append(("flush map", inode(Path(array.filename))))

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(np.memmap, "flush", noted_flush_map)
    return calls
