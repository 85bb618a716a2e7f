"""``locate``, ``read_table`` and ``Table``: one table of a user (CSV or Parquet), with checks of its columns."""

import csv
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.ids import LONGEST_NEW_ID, is_odd
from agnncert.errors import DatasetError, missing

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any

PathLike = str | os.PathLike[str]
FORMATS = (".csv", ".parquet")
EVENTS = "events"
ROLES = ("id", "label", "split", "graph", "source", "target", "weight", "time")  # by the names of settings
GAPS = ["", "NA", "NaN", "nan", "null", "None"]


class Table:
    """Rows of one file. Errors name the file, and rows are counted from 1 below the header.

    Args:
        path: The file.
        frame: The rows.
        start: Number of rows of the file before them.
    """

    def __init__(self, path: Path, frame: DataFrame, start: int = 0) -> None:
        self.path = path
        self.frame = frame
        self.start = start
        self.columns: list[str] = list(frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def error(self, message: str) -> DatasetError:
        """Returns an error about this table, to be raised."""
        return DatasetError(f"{self.path.name}: {message}")

    def require(self, column: str) -> None:
        """Raises DatasetError with the nearest name if there is no column of this name."""
        if column in self.columns:
            return
        lowered = {name.lower(): name for name in reversed(self.columns)}
        near = get_close_matches(column.lower(), lowered, n=1, cutoff=0.5)
        hint = f' Did you mean "{lowered[near[0]]}"?' if near else ""
        remedy = "Correct the name, or rename the column."
        if column in ROLES:
            remedy = (
                f'Rename the column, or pass its name ({column}="…" in Python, --set column.{column}=… as an option).'
            )
        raise self.error(f'there is no column "{column}".{hint} There are: {shortlist(self.columns)}. {remedy}')

    def refuse_lookalikes(self, column: str, others: Iterable[str], keyword: str) -> None:
        """Raises DatasetError if ``column`` is absent but a column with a similar meaning exists.

        Otherwise a label with another name would be used as a feature.
        """
        if column in self.columns:
            return
        similar = {column.lower(), *others}
        lookalikes = [name for name in self.columns if name.lower() in similar]
        if not lookalikes:
            lookalikes = get_close_matches(column, self.columns, n=1, cutoff=0.75)
        if lookalikes:
            raise self.error(
                f'there is no column "{column}" but one called "{lookalikes[0]}". If that is the {keyword}, pass '
                f'{keyword}="{lookalikes[0]}"; if it is a feature, list all features with features=[...].'
            )

    def text(self, column: str) -> list[str]:
        """Returns a column as text: whole numbers without a decimal point, missing entries as ``""``."""
        values = self.frame[column]
        if values.dtype.kind == "f":
            return self._whole(column)
        if _holds_text(values):
            return list(values.fillna("").tolist())
        texts = []
        for row, (value, gap) in enumerate(zip(values, values.isna(), strict=True), start=self.start + 1):
            try:
                texts.append("" if gap is True else _decoded(value))
            except UnicodeDecodeError:
                raise self._not_an_id(column, value, row) from None
        return texts

    def _whole(self, column: str) -> list[str]:
        """Returns a column of floats as text, since whole numbers with a missing entry are stored as floats."""
        values = self.frame[column]
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        # From here on a float stands for several whole numbers.
        exact = 2.0 ** (np.finfo(values.dtype.name.lower()).nmant + 1)
        is_gap = np.isnan(numbers)
        is_whole = (np.abs(numbers) < exact) & (np.trunc(numbers) == numbers)
        odd = np.flatnonzero(~is_gap & ~is_whole)
        if len(odd):
            raise self._not_an_id(column, float(numbers[odd[0]]), self.start + int(odd[0]) + 1)
        return ["" if gap else str(int(number)) for number, gap in zip(numbers.tolist(), is_gap.tolist(), strict=True)]

    def _not_an_id(self, column: str, value: object, row: int) -> DatasetError:
        return self.error(
            f'column "{column}" says {value!r:.60} in row {row}: expected whole numbers, stored as such (large floats '
            "are rounded), or text."
        )

    def filled(self, column: str) -> list[str]:
        """Returns a column of ids as text.

        Raises:
            DatasetError: An entry is missing, or neither a whole number nor text.
        """
        values = self.frame[column]
        if values.dtype.kind not in "iuf" and not _holds_text(values):
            for row, (value, gap) in enumerate(zip(values, values.isna(), strict=True), start=self.start + 1):
                if gap is not True and not _is_id(value):
                    raise self._not_an_id(column, value, row)
        entries = self.text(column)
        gaps = [row for row, entry in enumerate(entries, start=self.start + 1) if not entry]
        if gaps:
            raise self.error(f'column "{column}" is empty in {shortlist(gaps, "row")}: fill it in or remove the row.')
        return entries

    def refuse_odd(self, column: str, entries: Sequence[str]) -> None:
        """Raises DatasetError if there are ids that no event may have: empty, endless, or with blanks around them."""
        odd = [row for row, entry in enumerate(entries, start=self.start + 1) if is_odd(entry)]
        if odd:
            first = entries[odd[0] - self.start - 1]
            raise self.error(
                f'column "{column}" says {first!r:.60} in {shortlist(odd, "row")}: an id of events has at most '
                f"{LONGEST_NEW_ID:,} characters that can be printed, and no blanks around it. Correct it."
            )

    def ids(self, column: str) -> npt.NDArray[np.int64] | list[str]:
        """Returns a column of ids: int64 if it is stored as such numbers, else as ``filled`` returns it."""
        dtype = self.frame[column].dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "iu" and np.can_cast(dtype, np.int64):
            return np.asarray(self.frame[column], np.int64)
        return self.filled(column)

    def numbers(self, columns: Sequence[str], what: str) -> npt.NDArray[np.float32]:
        """Returns some columns as a matrix, in which a column of lists has the width of its lists.

        Args:
            columns: The columns.
            what: What messages call an entry, such as ``"feature"`` or ``"weight"``.

        Raises:
            DatasetError: An entry is not a finite number, or lists differ in length.
        """
        lists = [column for column in columns if len(self) and isinstance(self.frame[column].iloc[0], np.ndarray)]
        if lists:
            parts = [self._matrix(column) if column in lists else self.numbers([column], what) for column in columns]
            return np.hstack(parts)
        texts = [column for column in columns if self.frame[column].dtype.kind not in "iufb"]
        plain = [column for column in columns if column not in texts]
        matrix: npt.NDArray[np.float32] = self.frame[plain].to_numpy(np.float32, copy=True)
        errors = [*self._errors_of_texts(texts, what), *self._errors_of_gaps(matrix, plain, what)]
        if errors:
            raise DatasetError("\n".join(map(str, errors)))
        return matrix

    def _errors_of_texts(self, columns: Sequence[str], what: str) -> Iterator[DatasetError]:
        """Yields an error if there are columns that do not hold numbers."""
        if not columns:
            return
        tail = ", or list the features with features=[...] (--set feature=NAME,NAME)" if what == "feature" else ""
        yield self.error(
            f"{len(columns)} {what} column(s) are not numbers: {shortlist(columns)} (for example "
            f'"{self._example(columns[0])}" in "{columns[0]}"). Encode them as numbers{_encode_hint(what)}{tail}.'
        )

    def _errors_of_gaps(
        self, matrix: npt.NDArray[np.float32], columns: Sequence[str], what: str
    ) -> Iterator[DatasetError]:
        """Yields an error if numbers are missing or infinite."""
        bad = np.argwhere(~np.isfinite(matrix))
        if not len(bad):
            return
        rows = sorted({self.start + int(row) + 1 for row, _ in bad})
        yield self.error(
            f"a {what} is missing or infinite in {shortlist(rows, 'row')} (first: column "
            f'"{columns[bad[0][1]]}"). One such value can spread to every node: fill it in first{_encode_hint(what)}.'
        )

    def _matrix(self, column: str) -> npt.NDArray[np.float32]:
        """Returns a column of lists as a matrix."""
        try:
            return np.stack(self.frame[column]).astype(np.float32)
        except ValueError:
            raise self.error(f'column "{column}" holds lists of several lengths: all need the same.') from None

    def _example(self, column: str) -> object:
        """Returns an entry of the column that is not a number, if there is one."""
        import pandas as pd

        values = self.frame[column].dropna()
        if not len(values):
            return ""
        texts = values[pd.to_numeric(values, errors="coerce").isna()]
        return texts.iloc[0] if len(texts) else values.iloc[0]


def _holds_text(values: Any) -> bool:
    """Returns whether a column is stored as text, so that all entries are texts or missing."""
    import pandas as pd

    return isinstance(values.dtype, pd.StringDtype)


def _decoded(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _encode_hint(what: str) -> str:
    return "" if what == "weight" else ', or pass encode="auto" (--set encode=auto)'


def read_table(path: Path, text: Sequence[str]) -> Table:
    """Reads a table.

    Args:
        path: A .csv or .parquet file.
        text: Columns that are read from a CSV file as text, so that ``007`` and ``NA`` are valid ids.

    Raises:
        DatasetError: There is no such file, or it holds no table.
        MissingPackage: pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading tables") from None
    if path.suffix not in FORMATS:
        raise DatasetError(f"{path.name} is none of {', '.join(FORMATS)}: convert the table to one of these.")
    if not path.is_file():
        raise DatasetError(f"{path} does not exist.")
    if path.stat().st_size == 0:
        raise DatasetError(f"{path.name} is empty: expected a table with a header.")
    try:
        frame = _read_csv(path, text) if path.suffix == ".csv" else _read_parquet(path, text)
    except (ValueError, OSError, ImportError, csv.Error, pd.errors.ParserWarning) as error:
        raise DatasetError(f"{path.name} cannot be read: {error}") from error
    frame.columns = [str(column).strip() for column in frame.columns]
    return Table(path, frame)


def shortlist(items: Sequence[object], unit: str = "", limit: int = 5) -> str:
    """Returns the first ``limit`` items as text, and how many more there are.

    Example:
        >>> shortlist([3, 5, 8], "row", limit=2)
        'row 3, row 5 and 1 more'
    """
    shown = ", ".join(f"{unit} {item}".strip() for item in items[:limit])
    if len(items) <= limit:
        return shown
    return f"{shown} and {len(items) - limit} more"


def _read_csv(path: Path, text: Sequence[str]) -> DataFrame:
    import pandas as pd

    header, separator = csv_layout(path)
    refuse_nul(path)
    texts = {column: str for column in header if column.strip() in text}
    with warnings.catch_warnings():  # rows longer than the header would be cut in silence
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            path,
            sep=separator,
            encoding="utf-8-sig",
            skipinitialspace=True,
            index_col=False,
            low_memory=False,
            dtype=texts,
            keep_default_na=False,
            na_values={column: GAPS for column in header if column not in texts},
        )
    last = frame.iloc[:, -1]
    if (last.isna() | last.isin([""])).any():  # as in a row that ends before
        refuse_short_rows(path, separator, len(header))
    return frame


def csv_layout(path: Path) -> tuple[list[str], str]:
    """Returns the header of a CSV table, and its separator."""
    import pandas as pd

    with path.open(encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
        first = file.readline()
    separator = max(",;\t", key=first.count)
    header = pd.read_csv(path, nrows=0, sep=separator, encoding="utf-8-sig", skipinitialspace=True, index_col=False)
    return [str(column) for column in header.columns], separator


def refuse_short_rows(path: Path, separator: str, width: int) -> None:
    """Raises DatasetError if a row has fewer fields than the header: its label would be taken for an unknown one."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=separator, skipinitialspace=True)
        rows = (fields for fields in lines if len(fields) > 1 or "".join(fields).strip())  # blank lines are no rows
        for row, fields in enumerate(rows):
            if len(fields) < width:
                number = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
                raise DatasetError(
                    f"{path.name}: row {row} has {number}, the header {width}. Entries may be empty, but not left out: "
                    "complete the row or remove it."
                )


def refuse_nul(path: Path) -> None:
    """Raises DatasetError if there is a NUL character, at which some readers end a text."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if b"\0" in line:
                raise DatasetError(
                    f"{path.name}: there is a NUL character in line {number}. Remove it, or write the table as "
                    "Parquet, which can hold such text."
                )


def _read_parquet(path: Path, text: Sequence[str]) -> DataFrame:
    import pandas as pd

    frame = pd.read_parquet(path)
    floats = [column for column in frame.columns if str(column).strip() in text and frame[column].dtype.kind == "f"]
    if floats:  # whole numbers with a missing entry become floats, unless nullable types are requested
        exact = pd.read_parquet(path, columns=floats, dtype_backend="numpy_nullable")
        for column in floats:
            if exact[column].dtype.kind in "iu":
                frame[column] = exact[column].to_numpy(object)
    return frame


def _is_id(value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value() and str(value) == str(int(value))
    return isinstance(value, (str, bytes, int, np.integer)) and not isinstance(value, bool)


def locate(folder: PathLike | None, kind: str, path: PathLike | None, is_required: bool = True) -> Path | None:
    """Returns the file of one table: as given, or found in the folder, or None without a folder.

    Args:
        folder: The folder.
        kind: What the table is about, hence its name.
        path: The file, if it is named.
        is_required: Whether a folder without such a table is an error. If not, None is returned.
    """
    if path is not None:
        return Path(path)
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise DatasetError(f"{folder} is not a folder: expected one with tables of nodes and edges.")
    options = [Path(folder) / (kind + suffix) for suffix in FORMATS]
    if kind == EVENTS:
        options.append(Path(folder) / EVENTS)  # a folder of files
    present = [option for option in options if option.exists()]
    if len(present) > 1:
        raise DatasetError(f"{folder} has {' and '.join(file.name for file in present)}: say which with {kind}=...")
    if present:
        return present[0]
    if is_required:
        raise DatasetError(
            f"{folder} has no {' or '.join(option.name for option in options)}: if the table is called otherwise, name "
            f"its file ({kind}=…; in commands --set {kind}=FILE). Payments, and other events: --set events=FILE."
        )
    return None
