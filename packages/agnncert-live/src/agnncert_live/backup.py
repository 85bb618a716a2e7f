"""Copies of a journal: made, checked and put back."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from agnncert.cli.folder import find_run
from agnncert.storage import flush_folder
from agnncert_live.journal import NOW, Journal, JournalError

JOURNAL = "live.journal"


@dataclass(frozen=True)
class JournalSummary:
    """What is in a journal that was read and compared with its digests.

    Attributes:
        path: The file.
        events: How many events there have been.
        batches: Batches since the snapshot.
        ids: Batches that are remembered by their ids.
        references: Graphs of references.
        bytes: Size of the file.
    """

    path: Path
    events: int
    batches: int
    ids: int
    references: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.path} is whole: {self.events:,} events, {self.batches:,} batches since its snapshot, {self.ids:,} "
            f"ids, {self.references:,} references, {self.bytes:,} bytes."
        )


def journal_of(source: str | Path) -> Path:
    """Returns the journal of a run folder, or the file itself."""
    folder = find_run(source)
    return Path(source) if folder is None else folder.path / JOURNAL


def check_journal(path: Path) -> JournalSummary:
    """Reads a journal and compares everything with its digests.

    Raises:
        JournalError: It is missing, damaged or in use.
    """
    if not path.exists():
        raise JournalError(f"there is no journal {path}.")
    journal = Journal(path, {})
    try:
        contents = journal.load()
        if contents is None:
            raise JournalError(f"the journal {path} holds no graph yet.")
        number = contents.batches[-1].number if contents.batches else int(contents.graphs[NOW][0]["number"])
        return JournalSummary(
            path=path,
            events=number,
            batches=len(contents.batches),
            ids=len(contents.acknowledged),
            references=len(contents.graphs) - 1,
            bytes=path.stat().st_size,
        )
    finally:
        journal.close()


def backup_journal(path: Path, copy: Path) -> JournalSummary:
    """Copies a journal that is not in use, after a check. A service makes a copy itself: ``GET /journal``.

    Raises:
        JournalError: The journal is missing, damaged or in use, or there is a file in the place of the copy.
    """
    check_journal(path)
    if copy.exists():
        raise JournalError(f"{copy} exists: name another file for the copy.")
    journal = Journal(path, {})
    try:
        journal.copy_to(copy)
    finally:
        journal.close()
    return check_journal(copy)


def restore_journal(copy: Path, path: Path, replace: bool = False) -> JournalSummary:
    """Puts a copy in the place of a journal, after a check of the copy.

    Args:
        copy: The copy.
        path: The journal.
        replace: Whether a journal that is there may be replaced. It is kept beside it, as ``NAME.before``.

    Raises:
        JournalError: The copy is damaged, the journal is in use, or there is one already.
    """
    check_journal(copy)
    beside = path.with_name(path.name + "-journal")
    before = path.with_name(path.name + ".before")
    if path.exists():
        if not replace:
            raise JournalError(f"{path} exists: it is replaced with --replace alone, and kept as {before.name}.")
        _require_unused(path)
    draft = path.with_name(path.name + ".draft")
    shutil.copyfile(copy, draft)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    if path.exists():
        os.replace(path, before)
    beside.unlink(missing_ok=True)
    os.replace(draft, path)
    flush_folder(path.parent)  # else a crash may leave the journal that was there before
    return check_journal(path)


def _require_unused(path: Path) -> None:
    """Refuses to replace a journal that another process has open. A damaged one may be replaced."""
    try:
        Journal(path, {}).close()
    except JournalError as error:
        if "in use" in str(error):
            raise
