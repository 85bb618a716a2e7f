"""``TableStore``: a database of DuckDB for one piece of work, which joins and sorts what does not fit into memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, cast

from agnncert.errors import AgnncertError, missing

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = "600MB"  # of DuckDB; what does not fit goes to the disk
BATCH = 2**18  # rows that are taken from it at a time


@dataclass
class TableStore:
    """A database of DuckDB."""

    connection: Any

    @classmethod
    def connected(cls, where: str, memory: str, spare: str, purpose: str) -> Self:
        """Opens a database.

        Args:
            where: A file, or ``":memory:"``, which goes to the disk as well once it is full.
            memory: How much memory it may take, as in ``"2GB"``.
            spare: A folder for what does not fit.
            purpose: What needs it, for the message if DuckDB is not installed.
        """
        try:
            import duckdb
        except ModuleNotFoundError as error:
            raise missing(error.name, purpose) from None
        return cls(duckdb.connect(where, config={"memory_limit": memory, "temp_directory": spare}))

    @classmethod
    @contextmanager
    def opened(cls, purpose: str, memory: str = MEMORY, folder: Path | None = None) -> Iterator[Self]:
        """Yields a new database, of which nothing stays.

        Args:
            purpose: What needs it, for the message if DuckDB is not installed.
            memory: How much memory it may take.
            folder: Where it may put what does not fit. Defaults to the system's folder of temporary files.

        Raises:
            MissingPackage: DuckDB is not installed.
        """
        with TemporaryDirectory(prefix="agnncert-", dir=folder) as spare:
            store = cls.connected(":memory:", memory, spare, purpose)
            try:
                yield store
            finally:
                store.connection.close()

    def run(self, statement: str, **tables: Any) -> None:
        """Runs a statement about tables of this store, and others that are given by name.

        Raises:
            AgnncertError: What making a row of a ``Stream`` has raised; DuckDB would say it in other words.
        """
        with self.connection.cursor() as cursor:
            for name, table in tables.items():
                cursor.register(name, table.reader if isinstance(table, Stream) else table)
            try:
                cursor.execute(statement).fetchall()
            except Exception:
                for table in tables.values():
                    if isinstance(table, Stream) and table.failure is not None:
                        raise table.failure from None
                raise
            for name in tables:
                cursor.unregister(name)

    def one(self, statement: str) -> Any:
        """Returns the only number that a question has as its answer."""
        return self.rows(statement)[0][0]

    def rows(self, statement: str) -> list[Any]:
        """Returns a few rows."""
        with self.connection.cursor() as cursor:
            return cast(list[Any], cursor.execute(statement).fetchall())

    def batches(self, statement: str) -> Iterator[Any]:
        """Yields what a question has as its answer, some rows at a time."""
        with self.connection.cursor() as cursor:
            yield from cursor.sql(statement).to_arrow_reader(BATCH)

    def table(self, statement: str) -> Any:
        """Returns what a question has as its answer, as a table of Arrow."""
        with self.connection.cursor() as cursor:
            return cursor.sql(statement).to_arrow_table()


@dataclass
class Stream:
    """Rows that are made while DuckDB reads them.

    Attributes:
        reader: What DuckDB reads.
        failure: What making a row has raised.
    """

    reader: "pa.RecordBatchReader | None" = None
    failure: AgnncertError | None = None


def reader_of(schema: dict[str, str], rows: Iterator[dict[str, Any]]) -> Stream:
    """Returns rows as a stream that DuckDB reads.

    Args:
        schema: Type of each column: ``i64``, ``i32``, ``f32``, ``f64``, ``text`` or ``bytes``.
        rows: Columns of some rows at a time.
    """
    import pyarrow as pa

    types = {
        "i64": pa.int64(),
        "i32": pa.int32(),
        "f32": pa.float32(),
        "f64": pa.float64(),
        "text": pa.string(),
        "bytes": pa.binary(),
    }
    stated = pa.schema([(name, types[kind]) for name, kind in schema.items()])

    stream = Stream()

    def batches() -> Iterator[Any]:
        try:
            for columns in rows:
                arrays = [pa.array(columns[name], type=types[kind]) for name, kind in schema.items()]
                yield pa.record_batch(arrays, schema=stated)
        except AgnncertError as failure:
            stream.failure = failure
            raise

    stream.reader = pa.RecordBatchReader.from_batches(stated, batches())
    return stream
