"""Finds and reads the C and C++ files below a folder.

A source tree may come from anyone: links in it may lead out of it or in circles, and a file called ``x.c`` may be a
pipe, a table of a gigabyte or binary. Such files are named and skipped. Nothing here waits, or reads without a limit.
"""

import os
import stat
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from agnncert.errors import DatasetError

SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp")
LARGEST_FILE = 20_000_000  # bytes
_NOT_SOURCE = {".git", ".hg", ".svn"}


class SourceFiles(NamedTuple):
    """Files below a folder, in the order of their paths, and why others are left out, by path."""

    files: list[Path]
    skipped: dict[str, str]


def source_files(folder: Path, suffixes: Sequence[str] = SUFFIXES, exclude: Sequence[str] = ()) -> SourceFiles:
    """Returns the C and C++ files below a folder.

    Links are not followed. One that stays inside the folder leads to what is read anyway. One that leads out of it is
    named among those left out.

    Args:
        folder: The folder, or one file, which is then read whatever it is called.
        suffixes: How names end, in lower or upper case.
        exclude: Patterns of paths below the folder that are passed over: ``"test"`` (a file, or a folder with all that
            is in it), ``"vendor/*/gen*.c"``. ``*`` stands for anything, slashes included.

    Raises:
        DatasetError: There is no such folder, or nothing in it ends so.
    """
    if not folder.exists():
        raise DatasetError(f"{folder} does not exist.")
    if not folder.is_dir():
        return SourceFiles([folder], {})
    home = folder.resolve()
    files: list[Path] = []
    skipped: dict[str, str] = {}

    def cannot_be_listed(error: OSError) -> None:
        skipped[str(error.filename)] = error.strerror or str(error)

    for place, folders, names in os.walk(folder, onerror=cannot_be_listed):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCE and not _fits(inside / name, exclude))
        linked_folders = [Path(place, name) for name in folders if os.path.islink(os.path.join(place, name))]
        sources = [Path(place, name) for name in names if _is_source(inside / name, suffixes, exclude)]
        for path in [*linked_folders, *sources]:
            if not path.is_symlink():
                files.append(path)
                continue
            why = _leads_astray(path, home)
            if why:
                skipped[str(path)] = why
    if not files and not skipped:
        but = f", except {', '.join(exclude)}" if exclude else ""
        raise DatasetError(f"there is no C or C++ file below {folder} (looked for {' '.join(suffixes)}{but}).")
    return SourceFiles(sorted(files), skipped)


def _is_source(path: Path, suffixes: Sequence[str], exclude: Sequence[str]) -> bool:
    is_wanted = path.suffix.lower() in {suffix.lower() for suffix in suffixes}
    return is_wanted and not _fits(path, exclude)


def _leads_astray(link: Path, home: Path) -> str:
    """Returns why a link leads nowhere in the folder, or empty if it leads to something inside."""
    try:
        return "" if link.resolve().is_relative_to(home) else "is a link that leads out of the folder"
    except (OSError, RuntimeError):
        return "is a link that leads to itself"


def _fits(path: Path, patterns: Sequence[str]) -> bool:
    """Returns whether a pattern names a path, or the last part of it."""
    for pattern in patterns:
        if fnmatchcase(path.as_posix(), pattern.rstrip("/")) or fnmatchcase(path.name, pattern):
            return True
    return False


def read_source(file: Path, largest: int = LARGEST_FILE) -> str:
    """Returns the text of a file.

    Args:
        file: The file.
        largest: The most bytes that are read.

    Raises:
        DatasetError: It cannot be read, is no regular file, is too large, or is not UTF-8. The message says which.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise DatasetError("is no regular file")
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        raise DatasetError(error.strerror or str(error)) from error
    except ValueError as error:
        raise DatasetError(str(error)) from error
    if len(content) > largest:
        raise DatasetError(f"is larger than {largest:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"is not UTF-8 (byte 0x{content[error.start]:02x} in line {line})") from error
