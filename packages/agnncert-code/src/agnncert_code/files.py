"""Which files of a source tree are read, and why others are not.

A tree may be anyone's: links in it may lead out of it or in circles, and what is called ``x.c`` may be a pipe, a table
of a gigabyte or no text at all. Such files are named and left out; nothing here waits, or reads without a limit.
"""

import os
import stat
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from agnncert.errors import DatasetError

SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp")
LARGEST_FILE = 20_000_000  # bytes
_NOT_SOURCE = {".git", ".hg", ".svn"}


def source_files(
    folder: Path, suffixes: Sequence[str] = SUFFIXES, exclude: Sequence[str] = ()
) -> tuple[list[Path], dict[str, str]]:
    """The C and C++ files below a folder, in the order of their paths; and why others are left out, by path.

    Links are not followed. One that stays inside the folder leads to what is read anyway; one that leads out of it is
    named among those left out.

    Args:
        folder: The folder, or one file, which is then read whatever it is called.
        suffixes: How names end, in lower or upper case.
        exclude: Patterns of paths below the folder that are passed over: ``"test"`` (a file, or a folder with all that
            is in it), ``"vendor/*/gen*.c"``; ``*`` stands for anything, slashes included.

    Raises:
        DatasetError: There is no such folder, or nothing in it ends so.
    """
    if not folder.exists():
        raise DatasetError(f"{folder} does not exist.")
    if not folder.is_dir():
        return [folder], {}
    home, wanted = folder.resolve(), {suffix.lower() for suffix in suffixes}
    files: list[Path] = []
    skipped: dict[str, str] = {}

    def cannot_be_listed(error: OSError) -> None:
        skipped[str(error.filename)] = error.strerror or str(error)

    for place, folders, names in os.walk(folder, onerror=cannot_be_listed):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(n for n in folders if n not in _NOT_SOURCE and not _fits(inside / n, exclude))
        names = [name for name in names if not _fits(inside / name, exclude)]
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in [*links, *names]:
            path = Path(place, name)
            if name not in links and path.suffix.lower() not in wanted:
                continue
            if not path.is_symlink():
                files.append(path)
            elif not path.resolve().is_relative_to(home):
                skipped[str(path)] = "is a link that leads out of the folder"
    if not files and not skipped:
        but = f", except {', '.join(exclude)}" if exclude else ""
        raise DatasetError(f"there is no C or C++ file below {folder} (looked for {' '.join(suffixes)}{but}).")
    return sorted(files), skipped


def _fits(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a pattern names a path, or the last part of it."""
    return any(fnmatchcase(path.as_posix(), one.rstrip("/")) or fnmatchcase(path.name, one) for one in patterns)


def read_source(file: Path, largest: int = LARGEST_FILE) -> str:
    """The text of a file.

    Args:
        file: The file.
        largest: The most bytes that are read.

    Raises:
        DatasetError: It cannot be read, is no regular file, is too large, or is not UTF-8; the message says which.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
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
