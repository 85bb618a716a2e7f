"""The journal of a live graph: every batch is on disk before it is acknowledged, and a restart restores all batches.

A journal is one SQLite file with a write-ahead log; every commit is flushed to disk. The file holds the identity of the
live graph, one snapshot, the batches since the snapshot, and the ids of acknowledged batches. A snapshot replaces the
batches before it in one transaction, so the file is complete whenever the process ends.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from agnncert.errors import AgnncertError
from agnncert_live.events import Event

FORMAT = 1
REMEMBERED = 200_000  # ids of so many batches are kept, so that a client can send one again
PART = 2**25  # bytes of a snapshot in one row: SQLite's rows have a limit

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batch (number INTEGER PRIMARY KEY, events TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS acknowledged (place INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, events INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS snapshot (part INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""

Arrays = dict[str, npt.NDArray[Any]]


class JournalError(AgnncertError):
    """The journal of a live graph is damaged, in use, or belongs to another graph, model or division."""


class Journal:
    """An open journal. No other process can open the same file until it is closed.

    Args:
        path: The file; made if it does not exist.
        identity: What the live graph is made of, by name. A journal of another one is refused.

    Raises:
        JournalError: It is something else, belongs to another live graph, or is in use.
    """

    def __init__(self, path: str | Path, identity: dict[str, str]) -> None:
        self.path = Path(path)
        self.since_snapshot = 0  # events
        try:
            self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
            self._check(identity)
        except sqlite3.DatabaseError as error:
            raise JournalError(self._words(error)) from error
        except BaseException:
            self._database.close()
            raise

    def _words(self, error: sqlite3.Error) -> str:
        if "locked" in str(error) or "busy" in str(error):
            return f"the journal {self.path} is in use by another process: only one live graph can write it."
        if "not a database" in str(error) or "malformed" in str(error):
            return f"{self.path} is no journal, or was damaged: {error}."
        return f"the journal {self.path} cannot be used: {error}."

    def _check(self, identity: dict[str, str]) -> None:
        stored = dict(self._database.execute("SELECT name, value FROM about"))
        if not stored:
            rows = {"format": str(FORMAT), **identity}.items()
            self._database.executemany("INSERT INTO about VALUES (?, ?)", rows)
            return
        if stored.pop("format", None) != str(FORMAT):
            raise JournalError(f"the journal {self.path} is of another version of this library's format.")
        for name, value in identity.items():
            if stored.get(name) != value:
                raise JournalError(
                    f"the journal {self.path} belongs to another {name}: it says {stored.get(name, 'nothing'):.99}, "
                    f"here it is {value:.100}. Use another file, or what it was begun with."
                )

    def seen(self, batch_id: str) -> int | None:
        """How many events a batch of this id had, if it was acknowledged."""
        found = self._database.execute("SELECT events FROM acknowledged WHERE id = ?", [batch_id]).fetchone()
        return None if found is None else int(found[0])

    def write(self, number: int, events: list[Event], batch_id: str | None) -> None:
        """Writes a batch to disk; it is flushed when this method returns.

        Args:
            number: How many events there have been, these included.
            events: The events.
            batch_id: Under which the client may send the batch again.
        """
        text = json.dumps([event.to_json() for event in events], separators=(",", ":"))
        try:
            self._database.execute("BEGIN IMMEDIATE")
            if events:
                self._database.execute("INSERT INTO batch VALUES (?, ?)", [number, text])
            if batch_id is not None:
                cursor = self._database.execute(
                    "INSERT INTO acknowledged (id, events) VALUES (?, ?)", [batch_id, len(events)]
                )
                last = cursor.lastrowid or 0
                if last % 1000 == 0:
                    self._database.execute("DELETE FROM acknowledged WHERE place <= ?", [last - REMEMBERED])
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon()
            raise JournalError(self._words(error)) from error
        self.since_snapshot += len(events)

    def save(self, header: dict[str, Any], arrays: Arrays) -> None:
        """Replaces the snapshot, and forgets the batches that are in it."""
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        blob = safetensors.numpy.save(contiguous, {"header": json.dumps(header)})
        digest = hashlib.sha256(blob).hexdigest()
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM snapshot")
            for part, start in enumerate(range(0, len(blob), PART)):
                self._database.execute("INSERT INTO snapshot VALUES (?, ?)", [part, blob[start : start + PART]])
            self._database.execute("INSERT OR REPLACE INTO about VALUES ('snapshot', ?)", [digest])
            self._database.execute("DELETE FROM batch")
            self._database.execute("COMMIT")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            self._abandon()
            raise JournalError(self._words(error)) from error
        self.since_snapshot = 0

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """The snapshot, if there is one."""
        parts = [content for (content,) in self._database.execute("SELECT content FROM snapshot ORDER BY part")]
        if not parts:
            return None
        blob = b"".join(parts)
        stated = self._database.execute("SELECT value FROM about WHERE name = 'snapshot'").fetchone()
        if stated is None or hashlib.sha256(blob).hexdigest() != stated[0]:
            raise JournalError(f"the snapshot in {self.path} was damaged: its content does not match its digest.")
        length = int.from_bytes(blob[:8], "little")
        header = json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["header"])
        return header, safetensors.numpy.load(blob)

    def batches(self) -> Iterator[tuple[int, list[Event]]]:
        """The batches since the snapshot, in order: how many events there had been then, and the events."""
        for number, text in self._database.execute("SELECT number, events FROM batch ORDER BY number").fetchall():
            yield int(number), [Event.from_json(stated) for stated in json.loads(text)]

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def _abandon(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
