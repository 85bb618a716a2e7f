"""``convert_parquet``: tables of nodes and edges that do not fit into memory, written into a folder for ``open_graph``.

Ids, labels, parts of the split and, while an encoding is fitted, one column are held in memory. Features and edges are
not: ``PairFiles`` sorts edges on disk.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.encoding import Encode, Encoding, encoding_named
from agnncert.datasets.encoding_columns import encoded, fit_columns
from agnncert.datasets.splits import MASKS, NODE_FRACTIONS
from agnncert.datasets.table_roles import Columns, NodeRows, Rows, class_rows, feature_columns, has_labels, split_rows
from agnncert.datasets.tables import Problems
from agnncert.errors import DatasetError, missing
from agnncert_large.disk import GraphWriter, PathLike, new_graph, open_graph
from agnncert_large.pair_files import PairFiles, write_edges

_log = logging.getLogger(__name__)

# Rows of the tables of nodes and edges that are read at a time.
NODE_ROWS = 1 << 17
EDGE_ROWS = 1 << 22


def convert_parquet(  # noqa: PLR0913 - every setting is a keyword
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
    columns = Columns(
        id=id,
        label=label,
        split=split,
        graph="",
        source=source,
        target=target,
        weight=weight,
        features=features,
        directed=directed,
        seed=seed,
        encode=encode,
    )
    node_file = _Parquet.of(nodes)
    edge_file = _Parquet.of(edges)
    labelled = has_labels(node_file.head, columns)
    wanted = feature_columns(node_file.head, columns, labelled=True)
    node_file.head.require(id)
    rows = NodeRows(node_file.read([id]), id)
    with new_graph(folder) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        write_edges(writer, _pairs(edge_file, columns, rows, Path(spare) / "pairs"))
        writer.ids(encode_ids(rows.names))
        training = np.zeros(0, np.int64)
        if labelled:
            training = _write_labels(writer, node_file, columns)
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
        """Reads some columns as a whole; ``exact``: whole numbers are never rounded, wherever entries are missing."""
        found = self.source.to_table(columns=list(columns))
        return Table(self.head.path, found.to_pandas(integer_object_nulls=exact))

    def pieces(self, columns: Sequence[str], rows: int, exact: bool = False) -> Iterator[Table]:
        """Yields some columns, a number of rows at a time."""
        start = 0
        for batch in self.source.to_batches(columns=list(columns), batch_size=rows, batch_readahead=1):
            if batch.num_rows:
                yield Table(self.head.path, batch.to_pandas(integer_object_nulls=exact), start)
            start += batch.num_rows


def _pairs(file: _Parquet, columns: Columns, rows: NodeRows, spare: Path) -> PairFiles:
    """Reads all edges, by the rows of their nodes."""
    for column in (columns.source, columns.target):
        file.head.require(column)
    weight = columns.weight_in(file.head)
    others = columns.other_in(file.head)
    if others:
        _log.warning("%s: %d column(s) left out: %s", file.head.path.name, len(others), shortlist(others))
    directions = 1 if columns.directed else 2
    pairs = PairFiles(spare, len(rows.names), directions * len(file), weight is not None)
    wanted = [columns.source, columns.target]
    if weight:
        wanted.append(weight)
    for table in file.pieces(wanted, EDGE_ROWS):
        src, dst = rows.ends(table, columns)
        weights = table.numbers([weight], "weight")[:, 0] if weight else None
        pairs.add(src, dst, weights)
        if not columns.directed:
            pairs.add(dst, src, weights)
    return pairs


def _encoding(file: _Parquet, columns: Columns, wanted: Sequence[str], training: Rows) -> Encoding | None:
    """Returns the encoding that was given, or one fitted on the training rows, a column at a time; None: none."""
    known = encoding_named(columns.encode)
    if isinstance(known, Encoding) and known.edges:
        names = shortlist([column.name for column in known.edges])
        raise DatasetError(f"the encoding has columns of edges, {names}: convert_parquet keeps weights alone.")
    if not isinstance(known, dict):
        return known
    rows = training if len(training) else np.arange(len(file))
    problems = Problems()
    columns_of_encoding: list[Any] = []
    for name in wanted:
        fitted = problems.attempt(fit_columns, file.read([name], exact=True), [name], known, rows)
        columns_of_encoding += fitted or []
    problems.refuse()
    return Encoding(tuple(columns_of_encoding))


def _write_features(
    writer: GraphWriter, file: _Parquet, names: Sequence[str], encoding: Encoding | None, nodes: int
) -> None:
    x = None
    start = 0
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
    """Writes classes, their names, and the three parts; returns the rows of the training part."""
    label = str(columns.label)
    wanted = [label]
    if columns.split in file.head.columns:
        wanted.append(columns.split)
    table = file.read(wanted)
    y, names = class_rows(table, label)
    writer.array("y", tuple(y.shape), torch.int64)[:] = y.numpy()
    writer.value("num_classes", len(names))
    writer.value("class_names", names)
    parts = split_rows(table, columns, y, NODE_FRACTIONS)
    for mask, rows in zip(MASKS, parts, strict=True):
        writer.array(mask, tuple(y.shape), torch.bool)[rows.numpy()] = True
    return parts[0].numpy()
