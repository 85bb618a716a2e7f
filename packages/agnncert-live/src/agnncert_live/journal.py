"""The journal of a live graph: every batch is on disk before it is acknowledged, and a restart restores all batches.

A journal is one SQLite file. It holds the identity of the live graph, the graph at the last snapshot, the graphs of
references (one that is the snapshot is not written twice), the batches since the snapshot, and the ids of acknowledged
batches. It holds no votes: what is proved is computed again from graph and model when a journal is opened, so that
nobody can write a label or a radius into it. Nor does it hold values of edges that follow from what events add up to.

*Durability.* A commit is in the file itself when it returns, not in a write-ahead log: one damaged byte in such a log
drops all later commits without an error.

*Damage.* The row ``state`` states the number of events, the digest of every graph, a chained digest of all batches and
a sum of digests of all ids. What the file holds must match it, so lost or altered rows are noticed. The digests have no
key: whoever can write the file can write events.
"""

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from agnncert.errors import AgnncertError
from agnncert.storage import parse_json
from agnncert_live.events import Event

FORMAT = 5
READABLE = (4, 5)  # format 4 holds values of edges that follow from totals, and each graph by itself
REMEMBERED = 200_000  # ids of this many batches are kept, so that a client can send one again
PART = 2**25  # bytes of a graph in one row: SQLite's rows have a limit
PROBE = 2**16  # bytes that are written to find out whether there is space
NOW = "now"  # the name of the snapshot; other graphs are named by their digest

_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE batch (number INTEGER PRIMARY KEY, id TEXT, events TEXT NOT NULL)",
    "CREATE TABLE acknowledged (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, events INTEGER NOT NULL, "
    "applied TEXT NOT NULL)",
    "CREATE TABLE graph (place INTEGER PRIMARY KEY, name TEXT NOT NULL, content BLOB NOT NULL)",
)

Arrays = dict[str, npt.NDArray[Any]]
Graph = tuple[dict[str, Any], Arrays]  # what is said about it in JSON, and its arrays
# What reading a hostile file can raise. The digests are compared first, so chance damage does not come this far.
UNREADABLE = (
    AgnncertError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)
_SETTINGS = (
    "locking_mode=EXCLUSIVE",
    "journal_mode=PERSIST",
    "synchronous=FULL",
    "journal_size_limit=1000000",
    "trusted_schema=OFF",
    "cell_size_check=ON",
)


class JournalError(AgnncertError):
    """The journal of a live graph is damaged, in use, or belongs to another graph, model or division."""


class Acknowledged(NamedTuple):
    """What was applied of a batch.

    Attributes:
        events: How many events.
        applied: Digests of these events, if others of the batch were refused: sent again, the batch is then applied as
            far as it has not been. None if the whole batch was applied.
    """

    events: int
    applied: tuple[str, ...] | None = None


class StoredBatch(NamedTuple):
    """A batch of events, the number of all events up to its last one, and the id that it was sent with, if any."""

    number: int
    events: list[Event]
    batch_id: str | None


class AcknowledgedRow(NamedTuple):
    """A row of the table of acknowledged batches.

    Attributes:
        place: Its key.
        batch_id: The id of the batch.
        events: How many of its events were applied.
        applied: Digests of these, if others of the batch were refused; else empty.
    """

    place: int
    batch_id: str
    events: int
    applied: str


@dataclass(frozen=True)
class JournalContents:
    """Everything that a journal holds.

    Attributes:
        graphs: The snapshot under ``NOW``, and the graphs of references under their digests.
        batches: The batches since the snapshot, in order.
        acknowledged: What was applied of each acknowledged batch, by its id. The oldest comes first.
    """

    graphs: dict[str, Graph]
    batches: list[StoredBatch]
    acknowledged: dict[str, Acknowledged]


class Journal:
    """An open journal. No other process can open the same file until it is closed.

    Args:
        path: The file; made if it does not exist.
        identity: What the live graph is made of, by name. A journal of another one is refused.

    Raises:
        JournalError: It is something else, damaged, belongs to another live graph, or is in use.
    """

    def __init__(self, path: str | Path, identity: dict[str, str]) -> None:
        self.path = Path(path)
        self.since_snapshot = 0  # events
        self.write_error: str | None = None  # why the last write failed; None if it did not
        self._next_place = 1  # in the table of acknowledged batches
        self._process = os.getpid()
        self._state: dict[str, Any] = {"number": 0, "chain": "", "acknowledged": 0, "graphs": {}}
        exists = self._exists()
        with self._explained():
            self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
        try:
            with self._explained():
                for setting in _SETTINGS:
                    self._database.execute(f"PRAGMA {setting}")
                self._database.execute("BEGIN EXCLUSIVE")
                if exists:
                    self._check(identity)
                else:
                    self._begin(identity)
                self._database.execute("COMMIT")
            self._file = _file_at(self.path)
        except BaseException:
            self._database.close()
            raise

    def _exists(self) -> bool:
        """Whether there is a journal already. An empty file is refused: it is neither a journal nor a new one."""
        beside = self.path.with_name(self.path.name + "-journal")
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if beside.exists():
                raise JournalError(
                    f"the journal {self.path} is missing, but {beside.name} shows that there was one: put it back, or "
                    f"delete {beside.name} to begin anew."
                ) from None
            return False
        except (OSError, ValueError) as error:
            raise JournalError(f"the journal {self.path} cannot be used: {error}.") from error
        if not stat.S_ISREG(found.st_mode):
            raise JournalError(f"{self.path} is no journal: it is not a file.")
        if found.st_size == 0:
            raise JournalError(
                f"the journal {self.path} is empty, which a journal never is: put back what was in it, or delete it to "
                "begin anew."
            )
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns errors of SQLite into ours, and undoes what was begun."""
        try:
            yield
        except BaseException as error:
            self._abandon()
            if isinstance(error, (sqlite3.Error, MemoryError)):
                raise JournalError(self._words(error)) from error
            raise

    def _words(self, error: BaseException) -> str:
        if "locked" in str(error) or "busy" in str(error):
            return f"the journal {self.path} is in use by another process: only one live graph can write it."
        if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError) and "decode" not in str(error):
            return f"the journal {self.path} cannot be used: {error}."
        return self._damaged(str(error))

    def _damaged(self, how: str) -> str:
        return f"{self.path} is no journal, or was damaged: {how.rstrip('.')}. Put back a copy, or begin anew."

    def _begin(self, identity: dict[str, str]) -> None:
        for table in _TABLES:
            self._database.execute(table)
        rows = {"format": str(FORMAT), **identity}.items()
        self._database.executemany("INSERT INTO about VALUES (?, ?)", rows)
        self._write_state(self._state)

    def _check(self, identity: dict[str, str]) -> None:
        """Checks an existing file, and reads its state.

        Raises:
            JournalError: It is no journal, damaged, or belongs to another live graph.
        """
        answer = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != ("ok",):
            raise JournalError(self._damaged(str(answer and answer[0])))
        schema = {sql for (sql,) in self._database.execute("SELECT sql FROM sqlite_schema") if sql is not None}
        if schema != set(_TABLES):  # a trigger or a view would be somebody else's code
            raise JournalError(self._damaged("its tables are others than those of a journal"))
        stored = dict(self._database.execute("SELECT name, value FROM about"))
        if stored.pop("format", None) not in map(str, READABLE):
            raise JournalError(f"the journal {self.path} is of another version of this library's format.")
        for name, value in identity.items():
            if stored.get(name) != value:
                raise JournalError(
                    f"the journal {self.path} belongs to another {name}: it says {stored.get(name, 'nothing')!s:.99}, "
                    f"here it is {value:.100}. Use another file, or what it was begun with."
                )
        self._state = self._read_state(stored)
        self._database.execute("UPDATE about SET value = ?1 WHERE name = 'format' AND value != ?1", [str(FORMAT)])

    def _read_state(self, stored: dict[str, str]) -> dict[str, Any]:
        try:
            state: dict[str, Any] = parse_json(stored["state"])
            numbers = (state["number"], state["acknowledged"], len(state["graphs"]), len(state["chain"]))
        except UNREADABLE as error:
            raise JournalError(self._damaged("its state cannot be read")) from error
        if not all(type(number) is int for number in numbers):
            raise JournalError(self._damaged("its state cannot be read"))
        return state

    def _write_state(self, state: dict[str, Any]) -> None:
        self._database.execute("INSERT OR REPLACE INTO about VALUES ('state', ?)", [json.dumps(state)])

    @contextmanager
    def _committed(self) -> Iterator[dict[str, Any]]:
        """Opens a transaction and yields the state to change. At its end everything is on disk, or nothing is."""
        state = {**self._state, "graphs": dict(self._state["graphs"])}
        try:
            self._require_own_file()
            with self._explained():
                self._database.execute("BEGIN IMMEDIATE")
                yield state
                self._write_state(state)
                self._database.execute("COMMIT")
        except JournalError as error:
            self.write_error = str(error)
            raise
        self.write_error = None
        self._state = state

    def _require_own_file(self) -> None:
        """Refuses to write what nobody would find again, or what another process may write at the same time."""
        if os.getpid() != self._process:
            raise JournalError(
                f"the journal {self.path} was opened by another process, and locks are not inherited: open it again in "
                "this process, after the other one has closed it."
            )
        if _file_at(self.path) != self._file:
            raise JournalError(
                f"the journal {self.path} was moved, deleted or replaced while it was in use: what is written now "
                "would be lost. Put it back, or begin anew."
            )

    def check_writable(self) -> None:
        """Writes some thousand bytes, flushed to disk, and deletes them again.

        Raises:
            JournalError: They cannot be written.
        """
        for space in ("0" * PROBE, ""):
            with self._committed():
                self._database.execute("INSERT OR REPLACE INTO about VALUES ('space', ?)", [space])

    def write(
        self, number: int, events: list[Event], batch_id: str | None, acknowledged: Acknowledged | None = None
    ) -> None:
        """Writes a batch to disk; it is flushed when this method returns.

        Args:
            number: How many events there have been, these included.
            events: The events.
            batch_id: Under which the client may send the batch again.
            acknowledged: What was applied of the batch, this time and before. None for one that is not remembered.
        """
        text = json.dumps([event.to_json() for event in events], separators=(",", ":"))
        with self._committed() as state:
            if events:
                self._database.execute("INSERT INTO batch VALUES (?, ?, ?)", [number, batch_id, text])
                state["number"] = number
                state["chain"] = _linked(state["chain"], number, batch_id, text)
            if batch_id is not None and acknowledged is not None:
                self._acknowledge(state, batch_id, acknowledged)
        self.since_snapshot += len(events)

    def remember(self, acknowledged: dict[str, Acknowledged]) -> None:
        """Writes what was applied of many batches, by their ids, the oldest first."""
        with self._committed() as state:
            for batch_id, applied in acknowledged.items():
                self._acknowledge(state, batch_id, applied)

    def _acknowledge(self, state: dict[str, Any], batch_id: str, acknowledged: Acknowledged) -> None:
        """Writes the id of a batch, and now and then deletes the oldest ids."""
        self._forget(state, "id = ?", batch_id)
        applied = "" if acknowledged.applied is None else " ".join(acknowledged.applied)
        insert = "INSERT INTO acknowledged (place, id, events, applied) VALUES (?, ?, ?, ?)"
        row = AcknowledgedRow(self._next_place, batch_id, acknowledged.events, applied)
        self._database.execute(insert, row)
        self._next_place += 1
        state["acknowledged"] = _summed(state["acknowledged"], 1, [row])
        if row.place % 1000 == 0:
            self._forget(state, "place <= ?", row.place - REMEMBERED)

    def _forget(self, state: dict[str, Any], which: str, value: str | int) -> None:
        """Deletes rows of acknowledged batches."""
        select = f"SELECT place, id, events, applied FROM acknowledged WHERE {which}"
        rows = [AcknowledgedRow(*row) for row in self._database.execute(select, [value])]
        state["acknowledged"] = _summed(state["acknowledged"], -1, rows)
        self._database.execute(f"DELETE FROM acknowledged WHERE {which}", [value])

    def save(self, header: dict[str, Any], arrays: Arrays, name: str = NOW) -> None:
        """Writes a graph. The snapshot replaces the one before it, and the batches that are in it."""
        contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
        blob = safetensors.numpy.save(contiguous, {"header": json.dumps(header)})
        digest = hashlib.sha256(blob).hexdigest()
        with self._committed() as state:
            if name == NOW:
                self._leave_to_references(state)
            self._database.execute("DELETE FROM graph WHERE name = ?", [name])
            if name == NOW or state["graphs"].get(NOW) != digest:
                for start in range(0, len(blob), PART):
                    part = [name, blob[start : start + PART]]
                    self._database.execute("INSERT INTO graph (name, content) VALUES (?, ?)", part)
            state["graphs"][name] = digest
            if name == NOW:
                self._database.execute("DELETE FROM batch")
                state["number"] = header["number"]
                state["chain"] = state["graphs"][NOW]
        if name == NOW:
            self.since_snapshot = 0

    def _leave_to_references(self, state: dict[str, Any]) -> None:
        """Leaves the snapshot, which is about to be replaced, to the references that are this graph."""
        has_rows = {name for (name,) in self._database.execute("SELECT DISTINCT name FROM graph")}
        for name, digest in state["graphs"].items():
            if name not in has_rows and digest == state["graphs"].get(NOW):
                select = "SELECT ?, content FROM graph WHERE name = ? ORDER BY place"
                self._database.execute(f"INSERT INTO graph (name, content) {select}", [name, NOW])

    def began_with(self) -> str | None:
        """Returns the digest of the graph that the journal was begun with; None if it took over another journal."""
        with self._explained():
            row = self._database.execute("SELECT value FROM about WHERE name = 'graph'").fetchone()
        return None if row is None else str(row[0])

    def drop(self, name: str) -> None:
        """Deletes the graph of a reference."""
        with self._committed() as state:
            self._database.execute("DELETE FROM graph WHERE name = ?", [name])
            state["graphs"].pop(name, None)

    def load(self) -> JournalContents | None:
        """Returns everything in the journal, compared with its digests; None if it holds no graph yet.

        Raises:
            JournalError: Something is missing or damaged.
        """
        parts: dict[str, list[bytes]] = {}
        with self._explained():
            for name, content in self._database.execute("SELECT name, content FROM graph ORDER BY place"):
                parts.setdefault(name, []).append(content)
            batch_rows = self._database.execute("SELECT number, id, events FROM batch ORDER BY number").fetchall()
            select = "SELECT place, id, events, applied FROM acknowledged ORDER BY place"
            id_rows = self._database.execute(select).fetchall()
        try:
            blobs = {name: b"".join(parts_of_graph) for name, parts_of_graph in parts.items()}
            for name, digest in self._state["graphs"].items():
                if name not in blobs and NOW in blobs and digest == self._state["graphs"].get(NOW):
                    blobs[name] = blobs[NOW]
            acknowledged = [AcknowledgedRow(*row) for row in id_rows]
            digests = {name: hashlib.sha256(blob).hexdigest() for name, blob in blobs.items()}
            self._compare_digests(digests, acknowledged)
            self._next_place = 1 + max((row.place for row in acknowledged), default=0)
            if not blobs:
                return None
            graphs = {name: _parsed(blob) for name, blob in blobs.items()}
            number = graphs[NOW][0]["number"]
            return JournalContents(
                graphs=graphs,
                batches=self._batches(batch_rows, number, digests[NOW]),
                acknowledged={str(row.batch_id): _read_acknowledged(row) for row in acknowledged},
            )
        except JournalError:
            raise
        except UNREADABLE as error:
            raise JournalError(self._damaged(f"its content cannot be read ({error!s:.100})")) from error

    def _compare_digests(self, digests: dict[str, str], acknowledged: list[AcknowledgedRow]) -> None:
        if digests != self._state["graphs"] or (digests and NOW not in digests):
            raise JournalError(self._damaged("a graph in it does not match its digest"))
        if _summed(0, 1, acknowledged) != self._state["acknowledged"]:
            raise JournalError(self._damaged("the ids of acknowledged batches do not match their digest"))

    def _batches(self, rows: list[tuple[int, str | None, str]], number: int, chain: str) -> list[StoredBatch]:
        """Returns the batches, each of which must begin where the one before it ended.

        Args:
            rows: The rows of the table of batches.
            number: How many events there had been at the snapshot.
            chain: Digest of the snapshot.
        """
        batches = []
        for stated, batch_id, text in rows:
            events = [Event.from_json(stated_event) for stated_event in parse_json(text)]
            number += len(events)
            chain = _linked(chain, stated, batch_id, text)
            if number != stated:
                raise JournalError(
                    self._damaged(f"batch {stated} does not follow the one before it: events are missing")
                )
            batches.append(StoredBatch(number, events, batch_id))
        expected = self._state["number"]
        if number != expected:
            raise JournalError(self._damaged(f"{expected:,} events were acknowledged, and it holds {number:,} of them"))
        if chain != self._state["chain"]:
            raise JournalError(self._damaged("its batches do not match their digest"))
        self.since_snapshot = sum(len(batch.events) for batch in batches)
        return batches

    def copy_to(self, path: Path) -> None:
        """Writes a copy of the journal, as it is between two batches.

        Raises:
            JournalError: The copy cannot be written.
        """
        try:
            copy = sqlite3.connect(path)
            try:
                self._database.backup(copy)
            finally:
                copy.close()
        except sqlite3.Error as error:
            raise JournalError(f"the journal cannot be copied to {path}: {error}.") from error

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def _abandon(self) -> None:
        with suppress(sqlite3.Error, AttributeError):  # it may be closed, or not open yet
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")


def _parsed(blob: bytes) -> Graph:
    """Returns the statements about a graph, and its arrays."""
    length = int.from_bytes(blob[:8], "little")
    header = parse_json(parse_json(blob[8 : 8 + length])["__metadata__"]["header"])
    if not isinstance(header, dict):
        raise TypeError("no statements about a graph")
    return header, safetensors.numpy.load(blob)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Returns which file is at a path, by its numbers in the file system; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _linked(chain: str, number: int, batch_id: str | None, text: str) -> str:
    """Returns the digest of a batch together with all batches before it."""
    return hashlib.sha256(json.dumps([chain, number, batch_id, text]).encode()).hexdigest()


def _read_acknowledged(row: AcknowledgedRow) -> Acknowledged:
    applied = tuple(str(row.applied).split())
    return Acknowledged(int(row.events), applied or None)


def _summed(total: int, sign: int, rows: list[AcknowledgedRow]) -> int:
    """Returns a digest of rows, with some rows added (or removed, if ``sign`` is -1) without reading the others."""
    for row in rows:
        text = f"{row.place}:{row.events}:{row.applied}:{row.batch_id}"
        total += sign * int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
    return total % 2**256
