"""``EventFiles``: tables of events, CSV or Parquet, read piece by piece, so that none of them has to fit into memory.

DuckDB reads the files. A CSV table that it takes for irregular is read again by pandas, as small tables are, which
knows more dialects and says what is wrong with a row.
"""

import csv
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.datasets.columns import FORMATS, GAPS, Table, csv_layout, refuse_nul, refuse_short_rows, shortlist
from agnncert.datasets.table_store import BATCH, TableStore
from agnncert.errors import DatasetError, missing

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
_INDEX = "__index_level_"  # how Parquet files of pandas call a column that is no column


@dataclass(frozen=True)
class Piece:
    """Some rows of one file.

    Attributes:
        path: The file.
        start: Number of rows of the file before them.
        entries: Columns as Arrow holds them.
        is_csv: Whether they are from a CSV table, so that all entries are text, and some texts are gaps.
    """

    path: Path
    start: int
    entries: "pa.Table"
    is_csv: bool

    def __len__(self) -> int:
        return int(self.entries.num_rows)

    def table(self, name: str, with_gaps: bool = False) -> Table:
        """Returns one column as a table, to be checked.

        Args:
            name: The column.
            with_gaps: Whether texts such as NA stand for a missing entry in a CSV table.
        """
        frame = self.entries.select([name]).to_pandas(integer_object_nulls=True)
        if self.is_csv:
            frame[name] = frame[name].astype("str")
            if with_gaps:
                frame[name] = frame[name].mask(frame[name].isin(GAPS))
        return Table(self.path, frame, self.start)


@dataclass(frozen=True)
class _File:
    """One file: its columns as the file calls them, and the separator of a CSV table."""

    path: Path
    columns: list[str]
    separator: str | None
    rows: int
    is_regular: bool = True

    @property
    def is_csv(self) -> bool:
        return self.separator is not None


class EventFiles:
    """The files of one table of events, which all have the same columns.

    Args:
        store: What reads them.
        path: A file, or a folder of files, which are read in the order of their names.

    Raises:
        DatasetError: There is no such file, or it holds no table.
        MissingPackage: pandas or pyarrow is not installed.
    """

    def __init__(self, store: TableStore, path: Path) -> None:
        try:
            import pandas  # noqa: F401
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise missing(error.name, "reading tables") from None
        self.path = path
        self._store = store
        self._files = [self._opened(file) for file in files_of(path)]
        self.columns = [name.strip() for name in self._files[0].columns]
        self._refuse_other_columns()

    @property
    def rows(self) -> int:
        """About how many events there are: blank lines and line breaks within a text count, too."""
        return sum(file.rows for file in self._files)

    def head(self) -> Table:
        """Returns a table without rows that has these columns, to be asked for them."""
        import pandas as pd

        return Table(self.path, pd.DataFrame(columns=self.columns))

    def error(self, message: str) -> DatasetError:
        """Returns an error about these files, to be raised."""
        return self.head().error(message)

    def stores_whole_numbers(self, name: str) -> bool:
        """Returns whether all files store a column as whole numbers that int64 holds."""
        return all(not file.is_csv and self._type(file, name) for file in self._files)

    def _type(self, file: _File, name: str) -> bool:
        import pyarrow as pa

        kind = self._store.table(f"SELECT {_quoted(_titled(file, name))} FROM {_parquet(file.path)} LIMIT 0")
        stored = kind.schema.field(0).type
        return bool(pa.types.is_integer(stored) and stored != pa.uint64())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """Yields some columns of all files, in order."""
        for file in self._files:
            start = 0
            for entries in self._entries(file, names):
                yield Piece(file.path, start, entries, file.is_csv)
                start += entries.num_rows

    def _opened(self, path: Path) -> _File:
        if path.suffix == ".csv":
            return _opened_csv(path)
        import duckdb

        try:
            described = self._store.rows(f"DESCRIBE SELECT * FROM {_parquet(path)}")
            rows = self._store.one(f"SELECT count(*) FROM {_parquet(path)}")
        except duckdb.Error as reason:
            raise DatasetError(f"{path.name} cannot be read: {_first_line(reason)}") from None
        return _File(path, [str(row[0]) for row in described if not row[0].startswith(_INDEX)], None, rows)

    def _refuse_other_columns(self) -> None:
        for file in self._files[1:]:
            columns = [name.strip() for name in file.columns]
            if set(columns) != set(self.columns):
                differ = sorted(set(columns) ^ set(self.columns))
                raise DatasetError(
                    f"{file.path.name} has other columns than {self._files[0].path.name}: they differ in "
                    f"{shortlist(differ)}. All files of a folder need the same ones."
                )

    def _entries(self, file: _File, names: Sequence[str]) -> Iterator["pa.Table"]:
        """Yields some columns of a file, in order."""
        import duckdb
        import pyarrow as pa

        titles = [_titled(file, name) for name in names]
        done = 0
        if file.is_regular:
            source = _parquet(file.path) if file.separator is None else _csv(file)
            wanted = titles if file.separator is None else [f"c{file.columns.index(title)}" for title in titles]
            try:
                for batch in self._store.batches(f"SELECT {', '.join(map(_quoted, wanted))} FROM {source}"):
                    yield pa.Table.from_batches([batch]).rename_columns(list(names))
                    done += batch.num_rows
                return
            except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException) as reason:
                if file.separator is None:
                    raise DatasetError(f"{file.path.name} cannot be read: {_first_line(reason)}") from None
        for frame in _by_pandas(file, titles):
            entries = pa.Table.from_pandas(frame[titles], preserve_index=False).rename_columns(list(names))
            known = min(done, entries.num_rows)  # what DuckDB has read of it
            done -= known
            yield entries.slice(known)


def files_of(path: Path) -> list[Path]:
    """Returns the files of a table: itself, or those of a folder, in the order of their names.

    Raises:
        DatasetError: There is none, or it is neither CSV nor Parquet.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in FORMATS)
        if not files:
            raise DatasetError(
                f"{path} holds no file of {' or '.join(FORMATS)}: expected the parts of a table of events."
            )
    for file in files:
        if file.suffix not in FORMATS:
            raise DatasetError(f"{file.name} is none of {', '.join(FORMATS)}: convert the table to one of these.")
        if not file.is_file():
            raise DatasetError(f"{file} does not exist.")
        if file.stat().st_size == 0:
            raise DatasetError(f"{file.name} is empty: expected a table with a header.")
    return files


def _opened_csv(path: Path) -> _File:
    """Looks through a file once, for its size, for NUL characters, and for blanks that DuckDB would keep."""
    try:
        columns, separator = csv_layout(path)
    except (ValueError, OSError) as error:
        raise DatasetError(f"{path.name} cannot be read: {error}") from error
    rows = 0
    has_blanks = False
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            if b"\0" in chunk:
                refuse_nul(path)
            rows += chunk.count(b"\n")
            has_blanks = has_blanks or f"{separator} ".encode() in last + chunk
            last = chunk[-1:]
    rows -= last == b"\n"  # the header; the last row may end without a line break
    return _File(path, columns, separator, rows, is_regular=not has_blanks)


def _by_pandas(file: _File, titles: Sequence[str]) -> Iterator[Any]:
    """Yields a CSV table as texts, some rows at a time, or raises DatasetError with what is wrong in it."""
    import warnings

    import pandas as pd

    assert file.separator is not None
    try:
        refuse_short_rows(file.path, file.separator, len(file.columns))
        with warnings.catch_warnings():  # rows longer than the header would be cut in silence
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield from pd.read_csv(
                file.path,
                sep=file.separator,
                encoding="utf-8-sig",
                skipinitialspace=True,
                index_col=False,
                dtype=str,
                keep_default_na=False,
                chunksize=BATCH,
            )
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as error:
        raise DatasetError(f"{file.path.name} cannot be read: {error}") from error


def _titled(file: _File, name: str) -> str:
    """Returns what a file calls a column, blanks around it included."""
    return next(title for title in file.columns if title.strip() == name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    """Returns a path for DuckDB, to which some characters stand for others."""
    escaped = "".join(f"[{letter}]" if letter in "[*?" else letter for letter in str(path))
    return "'" + escaped.replace("'", "''") + "'"


def _parquet(path: Path) -> str:
    return f"read_parquet({_literal(path)}, hive_partitioning = false)"


def _csv(file: _File) -> str:
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(file.columns)))
    separator = "\\t" if file.separator == "\t" else file.separator
    return (
        f"read_csv({_literal(file.path)}, auto_detect = false, header = true, delim = '{separator}', quote = '\"', "
        f"escape = '\"', hive_partitioning = false, columns = {{{columns}}})"
    )


def _first_line(reason: Exception) -> str:
    return str(reason).partition("\n")[0][:200]
