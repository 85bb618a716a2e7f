"""``convert_parquet``: tables of nodes and edges that are more than memory, read in pieces into a folder on disk.

``load_tables`` reads small tables of any format at once; this reads Parquet of any size, a file or a folder of files.
The ids of all nodes, their labels and parts are held in memory; features and edges pass through it piece by piece.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.graphs import NODE_FRACTIONS, stratified_split
from agnncert.datasets.pairs import PairFiles, write_edges
from agnncert.datasets.tables import LABEL_NAMES, PARTS, names_in_order
from agnncert.errors import DatasetError, did_you_mean
from agnncert.extras import missing
from agnncert.graphs.disk import GraphWriter, PathLike, new_graph, open_graph
from agnncert.proof.ids import encode_ids, refuse_duplicates

_log = logging.getLogger(__name__)

ROWS = 1 << 17  # of the table of nodes at a time
EDGES = 1 << 22  # of the table of edges

Rows = npt.NDArray[np.int64]


def convert_parquet(
    nodes: PathLike,
    edges: PathLike,
    folder: PathLike,
    *,
    id: str = "id",
    label: str | None = "label",
    split: str = "split",
    source: str = "source",
    target: str = "target",
    weight: str = "weight",
    features: Sequence[str] | None = None,
    directed: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Data:
    """Reads Parquet tables of nodes and edges, in pieces, into a folder on disk, and opens it.

    Args:
        nodes: Table of nodes: a Parquet file, or a folder of such files that belong together.
        edges: Table of edges, likewise.
        folder: The folder to write, see ``write_graph``.
        id: Column of node ids: integers or text of any type and length, unique. Both tables may differ in type: 7 and
            "7" are one id.
        label: Column of classes, numbers or text; an empty entry is an unlabelled node. ``None``: no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without it the split is drawn: 30/10/60 %,
            stratified.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights; optional.
        features: Columns of features, numbers or lists of numbers of one length; all remaining ones if not given.
        directed: Whether an edge goes one way only. If not, each pair is joined in both directions.
        seed: Seed of a split that is drawn.
        name: Name of the dataset; the name of the folder if not given.

    Returns:
        What ``open_graph(folder)`` returns.

    Raises:
        DatasetError: Something is missing, double, unknown or not a number; says what, where and what to do.
        IdError: An id is none, or stands twice.
        GraphError: The folder is not empty.
    """
    people, pairs = _Parquet.of(nodes), _Parquet.of(edges)
    for table, columns in ((people, (id,)), (pairs, (source, target))):
        for column in columns:
            table.about.require(column)
    if label not in (None, "label"):
        people.about.require(str(label))
    labelled = label in people.about.columns and label not in (features or ())
    wanted = features or _feature_columns(people, id, label, split)
    ids = _Ids.of(people, id, pairs.is_whole(source) and pairs.is_whole(target))
    with new_graph(folder) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        write_edges(writer, _pairs(pairs, (source, target), weight, ids, directed, Path(spare) / "pairs"))
        writer.ids(ids.encoded)
        _write_features(writer, people, wanted, len(ids.encoded))
        if labelled:
            _write_labels(writer, people, str(label), split, seed)
        writer.value("name", name or Path(folder).resolve().name)
    return open_graph(folder)


@dataclass(frozen=True)
class _Parquet:
    """A table on disk that is read in pieces; ``about`` knows its columns and its name."""

    source: Any
    about: Table

    @classmethod
    def of(cls, path: PathLike) -> "_Parquet":
        try:
            import pyarrow as pa
            from pyarrow import dataset
        except ModuleNotFoundError as error:
            raise missing(error.name, "reading Parquet") from None
        try:
            source = dataset.dataset(path, format="parquet")
            return cls(source, Table(Path(path), source.schema.empty_table().to_pandas()))
        except (OSError, pa.ArrowException, ImportError) as reason:
            raise DatasetError(f"{path} cannot be read as Parquet: {str(reason)[:200]}") from None

    def __len__(self) -> int:
        return int(self.source.count_rows())

    def pieces(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Batches of some columns, in the order of rows."""
        for batch in self.source.to_batches(columns=list(columns), batch_size=rows, batch_readahead=1):
            if batch.num_rows:
                yield batch

    def is_whole(self, column: str) -> bool:
        """Whether the column holds integers of the int64 range."""
        import pyarrow as pa

        kind = self.source.schema.field(column).type
        return bool(pa.types.is_integer(kind)) and kind != pa.uint64()

    def texts(self, batch: Any, column: str, what: str) -> Any:
        """A column of ids, classes or parts as text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = batch.column(column)
        kind = values.type
        if pa.types.is_dictionary(kind):
            values, kind = values.dictionary_decode(), kind.value_type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise self.about.error(f'column "{column}" is of type {kind}: {what} are whole numbers or text.')
        return pc.cast(values, pa.large_string())

    def ids(self, batch: Any, column: str) -> Any:
        """A column of ids: an array of int64 if it is stored as such, else text; none may be empty."""
        values = batch.column(column)
        if not self.is_whole(column):
            values = self.texts(batch, column, "ids")
        if values.null_count:
            raise self.about.error(f'column "{column}" is empty in {values.null_count} row(s): fill it in.')
        return values.to_numpy(zero_copy_only=False).astype(np.int64) if self.is_whole(column) else values


@dataclass(frozen=True)
class _Ids:
    """Ids of all nodes, and how their rows are found."""

    encoded: Any  # in canonical form
    ordered: Rows | None  # whole numbers, ascending …
    rows: Rows | None  # … and the row of each
    texts: Any  # or all ids as text

    @classmethod
    def of(cls, table: _Parquet, column: str, whole: bool) -> "_Ids":
        """Reads the ids of all nodes; ``whole``: whether edges name them by numbers of the int64 range."""
        import pyarrow as pa

        parts = [table.ids(batch, column) for batch in table.pieces([column], ROWS)]
        if not parts:
            raise table.about.error("there is no row: a graph needs nodes.")
        if table.is_whole(column):
            encoded: Any = np.concatenate(parts)
        else:
            encoded = encode_ids(pa.chunked_array(parts).to_pylist())
        refuse_duplicates(encoded)
        if whole and isinstance(encoded, np.ndarray):
            order = np.argsort(encoded, kind="stable")
            return cls(encoded, encoded[order], order, None)
        return cls(encoded, None, None, pa.array([str(one) for one in encoded], pa.large_string()))

    def find(self, table: _Parquet, batch: Any, column: str) -> tuple[Rows, list[str]]:
        """Row of every id in a column of edges, and the ids that no node has."""
        import pyarrow.compute as pc

        if self.ordered is not None and self.rows is not None:
            wanted = table.ids(batch, column)
            place = np.minimum(np.searchsorted(self.ordered, wanted), len(self.ordered) - 1)
            unknown = self.ordered[place] != wanted
            return self.rows[place], [str(one) for one in wanted[unknown][:6]]
        named = table.ids(batch, column)
        named = table.texts(batch, column, "ids") if isinstance(named, np.ndarray) else named
        found = pc.index_in(named, value_set=self.texts)
        strange = pc.filter(named, pc.is_null(found))[:6].to_pylist()
        return pc.fill_null(found, 0).to_numpy(zero_copy_only=False).astype(np.int64), strange


def _pairs(table: _Parquet, ends: tuple[str, str], weight: str, ids: _Ids, directed: bool, spare: Path) -> PairFiles:
    """All edges, by rows."""
    weighted = weight in table.about.columns
    if weight != "weight":
        table.about.require(weight)
    pairs = PairFiles(spare, len(ids.encoded), len(table) * (1 if directed else 2), weighted)
    for batch in table.pieces([*ends, *([weight] if weighted else [])], EDGES):
        (source, odd), (head, odder) = (ids.find(table, batch, column) for column in ends)
        if odd or odder:
            raise table.about.error(
                f"ends of edges are ids that are not in the table of nodes: {shortlist([*odd, *odder])}. Add the "
                "nodes, or remove the edges."
            )
        weights = _numbers(table, batch, weight, "weight")[:, 0] if weighted else None
        pairs.add(source, head, weights)
        if not directed:
            pairs.add(head, source, weights)
    return pairs


def _feature_columns(table: _Parquet, id: str, label: str | None, split: str) -> list[str]:
    if label is not None:
        table.about.refuse_lookalikes(label, LABEL_NAMES, "label")
    table.about.refuse_lookalikes(split, ("part", "fold"), "split")
    columns = [column for column in table.about.columns if column not in (id, label, split)]
    if not columns:
        raise table.about.error(
            "there is no column of features. Add what is known about each node, or a column of ones."
        )
    return columns


def _write_features(writer: GraphWriter, table: _Parquet, columns: Sequence[str], nodes: int) -> None:
    for column in columns:
        table.about.require(column)
    x, start = None, 0
    for batch in table.pieces(columns, ROWS):
        rows = np.concatenate([_numbers(table, batch, column, "feature") for column in columns], axis=1)
        if x is None:
            x = writer.array("x", (nodes, rows.shape[1]), torch.float32)
        if rows.shape[1] != x.shape[1]:
            raise table.about.error(f"lists of features differ in length, near row {start + 1}: all need the same.")
        x[start : start + len(rows)] = rows
        start += len(rows)


def _numbers(table: _Parquet, batch: Any, column: str, what: str) -> npt.NDArray[np.float32]:
    """A column as a matrix: of width 1, or as wide as its lists are long."""
    import pyarrow as pa

    values = batch.column(column)
    kind, width = values.type, 1
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        flat = values.flatten()
        width, rest = divmod(len(flat), len(values))
        lengths = {width} if pa.types.is_fixed_size_list(kind) else set(values.value_lengths().to_pylist())
        if rest or values.null_count or lengths != {width} or width == 0:
            raise table.about.error(f'column "{column}" holds lists of several lengths, or none: all need the same.')
        values, kind = flat, kind.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise table.about.error(f'{what} column "{column}" is of type {kind}: encode it as numbers.')
    numbers: npt.NDArray[np.float32] = values.to_numpy(zero_copy_only=False).astype(np.float32).reshape(-1, width)
    if values.null_count or not np.isfinite(numbers).all():
        raise table.about.error(
            f'a {what} is missing or infinite in column "{column}". One such value can spread: fill it in.'
        )
    return numbers


def _write_labels(writer: GraphWriter, table: _Parquet, label: str, split: str, seed: int) -> None:
    """Classes, their names, and the three parts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.chunked_array([table.texts(batch, label, "classes") for batch in table.pieces([label], ROWS)])
    names = names_in_order({text for text in pc.unique(texts).to_pylist() if text})
    if not names:
        raise table.about.error(f'column "{label}" is empty. Pass label=None if there are no labels.')
    known = pc.index_in(texts, value_set=pa.array(names, pa.large_string()))
    y = torch.from_numpy(pc.fill_null(known, -1).to_numpy().astype(np.int64))
    writer.array("y", tuple(y.shape), torch.int64)[:] = y.numpy()
    writer.value("num_classes", len(names))
    writer.value("class_names", names)
    if split in table.about.columns:
        parts = _stated_parts(table, split, y)
    else:
        parts = [rows.numpy() for rows in stratified_split(y, NODE_FRACTIONS, seed)]
    for mask, rows in zip(("train_mask", "val_mask", "test_mask"), parts, strict=True):
        writer.array(mask, tuple(y.shape), torch.bool)[rows] = True


def _stated_parts(table: _Parquet, split: str, y: torch.Tensor) -> list[Rows]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.chunked_array([table.texts(batch, split, "parts") for batch in table.pieces([split], ROWS)])
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(texts, "")))
    odd = sorted({text for text in pc.unique(texts).to_pylist() if text} - PARTS.keys())
    if odd:
        raise table.about.error(f'column "{split}" says "{odd[0]}": {did_you_mean(odd[0], ("train", "val", "test"))}')
    names = list(PARTS)
    found = pc.fill_null(pc.index_in(texts, value_set=pa.array(names, pa.large_string())), -1).to_numpy()
    part = np.array([*PARTS.values(), -1])[found]
    unlabelled = np.flatnonzero((part >= 0) & (part < 2) & (y.numpy() < 0))
    if len(unlabelled):
        raise table.about.error(
            f"{shortlist((unlabelled + 1).tolist(), 'row')}: for training or validation but without a label. "
            "Label them, or leave their split empty."
        )
    return [np.flatnonzero(part == k) for k in range(3)]
