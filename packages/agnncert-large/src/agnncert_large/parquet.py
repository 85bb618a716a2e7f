"""``convert_parquet``: tables of nodes and edges that do not fit into memory, written into a folder for ``open_graph``.

Ids, labels, parts of the split and, while an encoding is fitted, one column are held in memory, features and edges are
not. ``PairFiles`` sorts edges on disk: a
pair of rows becomes the number dst × number of nodes + src, and numbers are distributed over files by their range, so
that each file fits into memory. Edges are sorted by dst, then by src.
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

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.encoding import Encode, Encoding, encoded, encoding_named, fit_columns
from agnncert.datasets.splits import MASKS, NODE_FRACTIONS
from agnncert.datasets.table_edges import Values as Weights
from agnncert.datasets.table_edges import distinct
from agnncert.datasets.table_roles import Columns, NodeRows, Rows, class_rows, feature_columns, has_labels, split_rows
from agnncert.datasets.tables import Problems
from agnncert.errors import DatasetError, missing
from agnncert_large.disk import GraphWriter, PathLike, new_graph, open_graph

_log = logging.getLogger(__name__)

PAIRS_IN_MEMORY = 1 << 23
_LARGEST_NODES = 3_000_000_000  # the square of which is below 2 to the power of 63


class PairFiles:
    """Pairs of rows on disk, in files by range.

    Args:
        folder: A new folder for the files, which the caller removes.
        num_nodes: Number of rows.
        expected: Approximate number of pairs.
        weighted: Whether each pair has a weight.
    """

    def __init__(self, folder: Path, num_nodes: int, expected: int, weighted: bool = False) -> None:
        if num_nodes > _LARGEST_NODES:
            raise DatasetError(f"{num_nodes} nodes: at most {_LARGEST_NODES} are supported.")
        folder.mkdir(parents=True)
        parts = max(1, -(-expected // PAIRS_IN_MEMORY))
        self.num_nodes = num_nodes
        self._files = [folder / f"{part}.pairs" for part in range(parts)]
        self._bounds = np.linspace(0, num_nodes, parts + 1).astype(np.int64)[1:-1] * num_nodes
        self._weighted = weighted

    def add(self, src: Rows, dst: Rows, weight: Weights | None = None) -> None:
        """Adds pairs; self-loops are left out."""
        kept = np.flatnonzero(src != dst)
        keys = dst[kept] * self.num_nodes + src[kept]
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, weight = keys[order], weight[kept][order]
        cuts = np.searchsorted(keys, self._bounds)
        for file, start, end in zip(self._files, [0, *cuts], [*cuts, len(keys)], strict=True):
            if start < end:
                self._append(file, keys[start:end])
                if weight is not None:
                    self._append(file.with_suffix(".weights"), weight[start:end])

    def sorted(self) -> Iterator[tuple[Rows, Weights | None]]:
        """The numbers of all pairs in ascending order, each once, a file at a time.

        Raises:
            DatasetError: The same pair has two weights.
        """
        for file in self._files:
            if not file.exists():
                continue
            keys, weights = np.fromfile(file, dtype=np.int64), None
            if self._weighted:
                weights = np.fromfile(file.with_suffix(".weights"), dtype=np.float32)
            yield distinct(keys, weights, self.num_nodes)

    def remove(self) -> None:
        """Deletes the files."""
        for file in self._files:
            file.unlink(missing_ok=True)
            file.with_suffix(".weights").unlink(missing_ok=True)

    @staticmethod
    def _append(file: Path, array: npt.NDArray[np.generic]) -> None:
        with file.open("ab") as opened:
            array.tofile(opened)


def write_edges(writer: GraphWriter, pairs: PairFiles) -> int:
    """Writes ``edge_index``, and ``edge_weight`` if pairs have weights; returns the number of edges."""
    count = sum(len(keys) for keys, _ in pairs.sorted())
    edge_index = writer.array("edge_index", (2, count), torch.int64)
    weight = writer.array("edge_weight", (count,), torch.float32) if pairs._weighted else None
    start = 0
    for keys, weights in pairs.sorted():
        span = slice(start, start + len(keys))
        edge_index[1, span], edge_index[0, span] = np.divmod(keys, pairs.num_nodes)
        if weight is not None and weights is not None:
            weight[span] = weights
        start += len(keys)
    return count


NODE_ROWS, EDGE_ROWS = 1 << 17, 1 << 22  # rows of the tables of nodes and edges that are read at a time


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
    encode: Encode = None,
) -> Data:
    """Reads Parquet tables of nodes and edges, in pieces, into a folder on disk, and opens it.

    Columns, labels and splits are those of ``load_tables``, and so is the graph.

    Args:
        nodes: Table of nodes: a Parquet file, or a folder of Parquet files.
        edges: Table of edges: a Parquet file, or a folder of Parquet files.
        folder: The folder to write, see ``write_graph``.
        id: Column of node ids. The two tables may use different types: 7 and "7" are one id.
        label: Column of classes; ``None``: no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without it the split is drawn.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights; optional.
        features: Columns of features, numbers or lists of numbers of one length. Defaults to all remaining columns.
        directed: Whether edges are directed. If not, each pair is joined in both directions.
        seed: Seed of the split, if it is drawn.
        name: Name of the dataset. Defaults to the name of the folder.
        encode: How categories, dates and missing entries of the table of nodes become features, see ``load_tables``.
            Defaults to no encoding: all features must be numbers.

    Returns:
        What ``open_graph(folder)`` returns.

    Raises:
        DatasetError: Something is missing, unknown or not a number.
        IdError: An id occurs twice.
        GraphError: The folder is not empty.
    """
    columns = Columns(id, label, split, "", source, target, weight, features, directed, seed, encode=encode)
    node_file, edge_file = _Parquet.of(nodes), _Parquet.of(edges)
    labelled = has_labels(node_file.head, columns)
    wanted = feature_columns(node_file.head, columns, labelled=True)
    node_file.head.require(id)
    rows = NodeRows(node_file.read([id]), id)
    with new_graph(folder) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        write_edges(writer, _pairs(edge_file, columns, rows, Path(spare) / "pairs"))
        writer.ids(encode_ids(rows.names))
        training = _write_labels(writer, node_file, columns) if labelled else np.zeros(0, np.int64)
        encoding = _encoding(node_file, columns, wanted, training)
        _write_features(writer, node_file, wanted, encoding, len(rows.names))
        writer.value("name", name or Path(folder).resolve().name)
    return open_graph(folder)


@dataclass(frozen=True)
class _Parquet:
    """A table on disk; ``head`` holds its first rows."""

    source: Any
    head: Table

    @classmethod
    def of(cls, path: PathLike) -> "_Parquet":
        try:
            import pyarrow as pa
            from pyarrow import dataset
        except ModuleNotFoundError as error:
            raise missing(error.name, "reading Parquet") from None
        try:
            source = dataset.dataset(path, format="parquet")
            return cls(source, Table(Path(path), source.head(64).to_pandas()))
        except (OSError, pa.ArrowException, ImportError) as reason:
            raise DatasetError(f"{path} cannot be read as Parquet: {str(reason)[:200]}") from None

    def __len__(self) -> int:
        return int(self.source.count_rows())

    def read(self, columns: Sequence[str], exact: bool = False) -> Table:
        """Some columns as a whole; ``exact``: whole numbers are never rounded, wherever entries are missing."""
        found = self.source.to_table(columns=list(columns))
        return Table(self.head.path, found.to_pandas(integer_object_nulls=exact))

    def pieces(self, columns: Sequence[str], rows: int, exact: bool = False) -> Iterator[Table]:
        """Some columns, a number of rows at a time."""
        start = 0
        for batch in self.source.to_batches(columns=list(columns), batch_size=rows, batch_readahead=1):
            if batch.num_rows:
                yield Table(self.head.path, batch.to_pandas(integer_object_nulls=exact), start)
            start += batch.num_rows


def _pairs(file: _Parquet, columns: Columns, rows: NodeRows, spare: Path) -> PairFiles:
    """All edges, by rows."""
    for column in (columns.source, columns.target):
        file.head.require(column)
    weight, others = columns.weight_in(file.head), columns.other_in(file.head)
    if others:
        _log.warning("%s: %d column(s) left out: %s", file.head.path.name, len(others), shortlist(others))
    pairs = PairFiles(spare, len(rows.names), len(file) * (1 if columns.directed else 2), weight is not None)
    for table in file.pieces([columns.source, columns.target, *([weight] if weight else [])], EDGE_ROWS):
        src, dst = rows.ends(table, columns)
        weights = table.numbers([weight], "weight")[:, 0] if weight else None
        pairs.add(src, dst, weights)
        if not columns.directed:
            pairs.add(dst, src, weights)
    return pairs


def _encoding(file: _Parquet, columns: Columns, wanted: Sequence[str], training: Rows) -> Encoding | None:
    """The encoding that was given, or one that is fitted on the training rows, a column at a time; None: none."""
    known = encoding_named(columns.encode)
    if isinstance(known, Encoding) and known.edges:
        names = shortlist([column.name for column in known.edges])
        raise DatasetError(f"the encoding has columns of edges, {names}: convert_parquet keeps weights alone.")
    if not isinstance(known, dict):
        return known
    rows, problems = training if len(training) else np.arange(len(file)), Problems()
    found = [problems.attempt(fit_columns, file.read([name], exact=True), [name], known, rows) for name in wanted]
    problems.refuse()
    return Encoding(tuple(column for fitted in found if fitted for column in fitted))


def _write_features(
    writer: GraphWriter, file: _Parquet, names: Sequence[str], encoding: Encoding | None, nodes: int
) -> None:
    x, start = None, 0
    if encoding is not None:
        writer.value("encoding", encoding.to_json())
        names = [column.name for column in encoding.nodes]
    for name in names:
        file.head.require(name)
    for table in file.pieces(names, NODE_ROWS, exact=encoding is not None):
        rows = table.numbers(names, "feature") if encoding is None else encoded(table, encoding.nodes)
        if x is None:
            x = writer.array("x", (nodes, rows.shape[1]), torch.float32)
        if rows.shape[1] != x.shape[1]:
            raise table.error(f"lists of features differ in length, near row {start + 1}: all need the same.")
        x[start : start + len(rows)] = rows
        start += len(rows)


def _write_labels(writer: GraphWriter, file: _Parquet, columns: Columns) -> Rows:
    """Classes, their names, and the three parts; returns the rows of the training part."""
    label = str(columns.label)
    table = file.read([label, *([columns.split] if columns.split in file.head.columns else [])])
    y, names = class_rows(table, label)
    writer.array("y", tuple(y.shape), torch.int64)[:] = y.numpy()
    writer.value("num_classes", len(names))
    writer.value("class_names", names)
    parts = split_rows(table, columns, y, NODE_FRACTIONS)
    for mask, rows in zip(MASKS, parts, strict=True):
        writer.array(mask, tuple(y.shape), torch.bool)[rows.numpy()] = True
    return parts[0].numpy()
