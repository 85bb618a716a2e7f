"""Results as rows: one JSON object per line, appended as they come, found again by their settings."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError

Row = dict[str, Any]


def row_key(settings: Mapping[str, Any]) -> str:
    """Short name of a set of settings, the same on every machine.

    Example:
        >>> row_key({"a": 1, "b": None}) == row_key({"b": None, "a": 1})
        True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def read_rows(path: Path) -> Iterator[Row]:
    """All complete rows of a file; a line cut short by an interruption is passed over.

    Raises:
        SettingsError: A line in the middle of the file is not a row.
    """
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            if number < len(lines):
                raise SettingsError(
                    f"{path.name}, line {number} is not a row of results: {error}."
                ) from error


def append_row(path: Path, row: Row) -> None:
    """Adds one row and makes sure that it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_short = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    if cut_short:  # the last run was interrupted in the middle of a line
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())
