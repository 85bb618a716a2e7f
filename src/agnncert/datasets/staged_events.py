"""``StagedEvents``: all events of a table as numbers in a store, from which they come back in any order.

Reading takes one pass over the files. What then needs all events (which keys repeat, who takes part, what comes in the
order of pairs) is asked of the store, which keeps on the disk what does not fit into memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import LONGEST_NEW_ID, is_odd
from agnncert.datasets.encoding_columns import Column
from agnncert.datasets.event_entries import EntryColumn, OtherKindError, refuse_infinite
from agnncert.datasets.event_files import EventFiles, Piece
from agnncert.datasets.event_keys import key_digests
from agnncert.datasets.table_store import TableStore
from agnncert.progress import OnProgress, follow

if TYPE_CHECKING:
    import pyarrow as pa

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_SQL_TYPES = {"i64": "BIGINT", "f64": "DOUBLE", "text": "VARCHAR"}


@dataclass(frozen=True)
class WantedColumns:
    """Columns of a table of events that are read.

    Attributes:
        source: Ids that events go out from.
        target: Ids that they go to.
        key: Their keys, or None.
        entries: All others.
    """

    source: str
    target: str
    key: str | None
    entries: tuple[EntryColumn, ...]

    @property
    def names(self) -> list[str]:
        """Their names, each once."""
        names = [self.source, self.target, *([self.key] if self.key else [])]
        return list(dict.fromkeys([*names, *(entry.name for entry in self.entries)]))


class StagedEvents:
    """Events in a store.

    Args:
        store: The store.
        files: Where the events are read from.
        wanted: The columns that are read.
        known: Ids of nodes that are known before, as text. Their codes are their places.
        progress: Called while files are read.

    Attributes:
        total: How many events there are.

    Raises:
        DatasetError: An entry is not what its column is to hold.
    """

    def __init__(
        self,
        store: TableStore,
        files: EventFiles,
        wanted: WantedColumns,
        known: Sequence[str],
        progress: OnProgress | None = None,
    ) -> None:
        self.files = files
        self.wanted = wanted
        self.total = 0
        self._store = store
        self._known = known
        self._progress = progress
        self._until = "true"  # which events are read at all
        self._starts: list[tuple[str, int]] = []  # name and first event of each file
        while not self._read_all():
            pass  # a column holds something else than it seemed: all is read again

    @property
    def places(self) -> list[str]:
        """What the store calls the entries."""
        return [entry.place for entry in self.wanted.entries]

    def _read_all(self) -> bool:
        """Reads all pieces; returns whether all columns were what they were taken for."""
        self._codes = _Codes(self._known)
        self._starts = []
        self.total = 0
        report = follow(self._progress, f"reading {self.files.path.name}", self.files.rows)
        for piece in self.files.pieces(self.wanted.names):
            if piece.start == 0:
                self._starts.append((piece.path.name, self.total))
            try:
                columns = self._columns(piece)
            except OtherKindError:
                return False
            if self.total == 0:
                self._store.run(f"CREATE OR REPLACE TABLE events ({self._schema()})")
            self._store.run("INSERT INTO events SELECT * FROM piece", piece=columns)
            self.total += len(piece)
            report(min(1.0, self.total / max(1, self.files.rows)))
        if not self.total:
            raise self.files.error("there is a header but no event.")
        report(1.0)
        return True

    @property
    def names(self) -> list[str]:
        """Ids of all nodes by their codes, as text: those that are known, and then those that events name."""
        return list(self._codes.names.to_pylist())

    def _schema(self) -> str:
        columns = ["number BIGINT", "s INTEGER", "t INTEGER"]
        if self.wanted.key is not None:
            columns += ["k1 BIGINT", "k2 BIGINT"]
        columns += [f"{entry.place} {_SQL_TYPES[entry.stored]}" for entry in self.wanted.entries]
        return ", ".join(columns)

    def _columns(self, piece: Piece) -> "pa.Table":
        """Returns a piece as the store keeps it, or raises OtherKindError."""
        import pyarrow as pa

        columns: dict[str, Any] = {"number": np.arange(self.total, self.total + len(piece))}
        for place, name in (("s", self.wanted.source), ("t", self.wanted.target)):
            columns[place] = self._codes.of(piece, name)
        if self.wanted.key is not None:
            columns["k1"], columns["k2"] = _keys(piece, self.wanted.key).T
        for entry in self.wanted.entries:
            while True:
                try:
                    columns[entry.place] = entry.read(piece)
                    break
                except OtherKindError:
                    if self.total:
                        raise
        return pa.table({place: pa.array(values, from_pandas=True) for place, values in columns.items()})

    def row(self, number: int) -> str:
        """Returns which row an event is, for messages."""
        name, start = next(file for file in reversed(self._starts) if file[1] <= number)
        return f"row {number - start + 1}" + (f" of {name}" if len(self._starts) > 1 else "")

    def refuse_infinite(self, columns: Sequence[EntryColumn]) -> None:
        """Raises DatasetError if an entry of some columns of numbers is infinite."""
        for entry in columns:
            if entry.stored != "f64":
                continue
            rows = self._store.rows(
                f"SELECT number + 1, {entry.place} FROM events WHERE isinf({entry.place}) ORDER BY 1"
            )
            refuse_infinite(self.files.head(), entry, rows)

    def read_before(self, place: str, limit: int) -> bool:
        """Leaves out events at and after a moment, and returns whether others are left."""
        self._until = f"{place} < {limit}"
        return bool(self._store.one(f"SELECT count(*) > 0 FROM events WHERE {self._until}"))

    def find_repeats(self) -> int:
        """Finds the events that repeat the key of an earlier one, and returns how many there are."""
        if self.wanted.key is None:
            self._store.run("CREATE TABLE repeats (number BIGINT, original BIGINT)")
            return 0
        self._store.run(
            "CREATE TABLE repeats AS SELECT e.number, a.original FROM events e JOIN (SELECT k1, k2, min(number) AS "
            f"original FROM events WHERE {self._until} GROUP BY k1, k2 HAVING count(*) > 1) a USING (k1, k2) "
            f"WHERE {self._until} AND e.number <> a.original"
        )
        return int(self._store.one("SELECT count(*) FROM repeats"))

    @property
    def counted(self) -> str:
        """Which events count, as a condition for the store: those that were not left out, and no repeats."""
        without = " AND number NOT IN (SELECT number FROM repeats)"
        has_repeats = self._store.one("SELECT count(*) FROM repeats")
        return f"{self._until}{without if has_repeats else ''}"

    def count_loops(self) -> int:
        """Returns how many events of a node with itself there are."""
        return int(self._store.one(f"SELECT count(*) FROM events WHERE {self.counted} AND s = t"))

    def taking_part(self) -> Whole:
        """Returns the codes of the nodes that an event with another node names, in order."""
        where = f"FROM events WHERE {self.counted} AND s <> t"
        found = self._store.table(f"SELECT s AS code {where} UNION SELECT t {where} ORDER BY 1")
        return np.asarray(found["code"].to_numpy(), dtype=np.int64)

    def keep(self, rows: Whole, place: str | None, limit: int | None) -> int:
        """Keeps the events that count, with rows of nodes instead of codes, and returns how many there are.

        Args:
            rows: Row of each code, -1 for a node that is not in the graph.
            place: A column of moments.
            limit: Events at and after this moment are not kept.
        """
        import pyarrow as pa

        numbered = pa.table({"code": np.arange(len(rows), dtype=np.int32), "node": rows.astype(np.int32)})
        self._store.run("CREATE TABLE nodes AS SELECT * FROM numbered", numbered=numbered)
        others = [*(["k1", "k2"] if self.wanted.key is not None else []), *self.places]
        cut = "" if limit is None else f" AND {place} < {limit}"
        self._store.run(
            f"CREATE TABLE kept AS SELECT {', '.join(['number', 'a.node AS s', 'b.node AS t', *others])}, "
            "true AS is_training, false AS is_trusted FROM "
            f"(SELECT * FROM events WHERE {self.counted} AND s <> t{cut}) e "
            "JOIN nodes a ON e.s = a.code JOIN nodes b ON e.t = b.code"
        )
        return self.num_kept

    @property
    def num_kept(self) -> int:
        """How many events count."""
        return int(self._store.one("SELECT count(*) FROM kept"))

    def mark_training(self, rows: Whole) -> None:
        """Marks the events of training nodes, by which columns are fitted: all of them, if there are none."""
        import pyarrow as pa

        known = pa.table({"node": rows.astype(np.int32)})
        either = "s IN (SELECT node FROM training) OR t IN (SELECT node FROM training)"
        self._store.run("CREATE TABLE training AS SELECT * FROM known", known=known)
        if self._store.one(f"SELECT count(*) > 0 FROM kept WHERE {either}"):
            self._store.run(f"UPDATE kept SET is_training = ({either})")

    def fitted(self, entry: EntryColumn) -> Column:
        """Returns a column as the training events show it; raises DatasetError if it is text, but no category."""
        if entry.kind == "category":
            counts = self._store.rows(
                f"SELECT coalesce({entry.place}, ''), count(*) FROM kept WHERE is_training GROUP BY 1"
            )
            return Column.of_counts(self.files.head(), entry.name, dict(counts))
        return Column.of_numbers(entry.name, entry.kind, self.training_numbers(entry.place))

    def training_numbers(self, place: str) -> Numbers:
        """Returns a column of numbers of the training events, NaN where an entry is missing."""
        found = self._store.table(f"SELECT {place} FROM kept WHERE is_training")
        return _doubles(found[place])

    def leave_out_untrusted(self, condition: str) -> int:
        """Marks trusted events, leaves out others that join their pairs again, and returns how many these were."""
        pair = "least(s, t), greatest(s, t)"
        self._store.run(f"UPDATE kept SET is_trusted = ({condition})")
        self._store.run(f"CREATE TABLE trusted AS SELECT DISTINCT {pair} FROM kept WHERE is_trusted")
        again = f"NOT is_trusted AND ({pair}) IN (SELECT * FROM trusted)"
        number = int(self._store.one(f"SELECT count(*) FROM kept WHERE {again}"))
        if number:
            self._store.run(f"DELETE FROM kept WHERE {again}")
        return number

    def count_pairs(self) -> int:
        """Returns how many pairs of nodes have events."""
        return int(self._store.one("SELECT count(*) FROM (SELECT DISTINCT least(s, t), greatest(s, t) FROM kept)"))

    def by_edge(self) -> "Iterator[EventRows]":
        """Yields each event twice, once for each of its nodes, in the order of directed edges."""
        others = ", ".join(["number", "is_trusted", *self.places])
        yield from self._rows(
            f"SELECT * FROM (SELECT s, t, 0 AS back, {others} FROM kept UNION ALL SELECT t, s, 1, {others} FROM kept) "
            "ORDER BY s, t, back"
        )

    def by_key(self) -> "Iterator[EventRows]":
        """Yields all events that count in the order of their keys."""
        yield from self._rows("SELECT * FROM kept ORDER BY k1, k2")

    def repeated(self) -> "Iterator[EventRows]":
        """Yields the events whose keys occur several times, by the first of them; ``original`` is its number."""
        others = ", ".join(["k1", "k2", *self.places])
        yield from self._rows(
            f"SELECT e.number, r.original, coalesce(a.node, -1) AS s, coalesce(b.node, -1) AS t, {others} "
            "FROM events e JOIN (SELECT * FROM repeats UNION SELECT original, original FROM repeats) r USING (number) "
            "LEFT JOIN nodes a ON e.s = a.code LEFT JOIN nodes b ON e.t = b.code ORDER BY r.original, e.number"
        )

    def _rows(self, statement: str) -> "Iterator[EventRows]":
        for batch in self._store.batches(statement):
            yield EventRows({name: batch[name] for name in batch.schema.names})

    def key_of(self, number: int) -> str:
        """Returns the key of an event, which is read again."""
        assert self.wanted.key is not None
        seen = 0
        for piece in self.files.pieces([self.wanted.key]):
            if number < seen + len(piece):
                return piece.table(self.wanted.key).filled(self.wanted.key)[number - seen]
            seen += len(piece)
        raise AssertionError(number)


@dataclass(frozen=True)
class EventRows:
    """Some events, by columns of the store."""

    columns: Mapping[str, "pa.Array"]

    def __len__(self) -> int:
        return len(self.columns["number"])

    def whole(self, name: str) -> Whole:
        """Returns a column of whole numbers, or of marks."""
        return np.asarray(self.columns[name].to_numpy(zero_copy_only=False)).astype(np.int64)

    def features(self, column: Column, place: str) -> Numbers:
        """Returns the features of a column, as ``Column.encode_exactly`` does."""
        import pyarrow as pa

        if column.kind != "category":
            return column.encode_numbers(_doubles(self.columns[place]))
        coded = self.columns[place].dictionary_encode()
        known = [*coded.dictionary.to_pylist(), ""]
        places = np.array([column.place(text) for text in known])
        return column.marks(places[coded.indices.fill_null(pa.scalar(len(known) - 1, pa.int32())).to_numpy()])


class _Codes:
    """Numbers of ids, in the order in which they come."""

    def __init__(self, known: Sequence[str]) -> None:
        import pyarrow as pa

        self.names = pa.array(known, pa.string())

    def of(self, piece: Piece, column: str) -> Any:
        """Returns the number of each id of a column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = _ids(piece, column)
        codes = pc.index_in(ids, self.names)
        if codes.null_count:
            is_new = pc.is_null(codes)
            new = pc.unique(ids.filter(is_new))
            if any(is_odd(name) for name in new.to_pylist()):
                piece.table(column).refuse_odd(column, ids.to_pylist())
            first = pa.scalar(len(self.names), pa.int32())
            of_new = pc.add(pc.index_in(ids.filter(is_new), new), first)
            codes = pc.replace_with_mask(codes, is_new, of_new)
            self.names = pa.concat_arrays([self.names, new])
        return codes


def _ids(piece: Piece, column: str) -> "pa.Array":
    """Returns a column of ids as text, or raises DatasetError if one is missing, or neither number nor text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = piece.entries[column].combine_chunks()
    if ids.null_count == 0 and pa.types.is_integer(ids.type):
        return ids.cast(pa.string())
    if pa.types.is_string(ids.type) and ids.null_count == 0 and not pc.any(pc.equal(ids, "")).as_py():
        return ids
    return pa.array([str(name) for name in piece.table(column).ids(column)], pa.string())


def _keys(piece: Piece, column: str) -> Whole:
    """Returns the digests of the keys of events, or raises DatasetError if one is missing or odd."""
    import pyarrow.compute as pc

    keys = _ids(piece, column)
    plain = pc.and_(pc.ascii_is_printable(keys), pc.less_equal(pc.binary_length(keys), LONGEST_NEW_ID))
    plain = pc.and_(plain, pc.equal(keys, pc.ascii_trim_whitespace(keys)))
    if any(is_odd(key) for key in keys.filter(pc.invert(plain)).to_pylist()):
        piece.table(column).refuse_odd(column, keys.to_pylist())
    return key_digests(keys.to_pylist())


def _doubles(column: "pa.Array") -> Numbers:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
