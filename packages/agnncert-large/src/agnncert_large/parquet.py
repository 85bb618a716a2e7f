"""``convert_parquet``: tables of nodes and edges that do not fit into memory, written into a folder for ``open_graph``.

Ids, labels, parts of the split and, while an encoding is fitted, one column are held in memory. Features and edges are
not: ``SortedPairs`` sorts edges on disk.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.drawn_splits import BY_CLASS, BY_ID, RECORD, checked_way
from agnncert.datasets.encoding import FITTED, Encode, Encoding, encoding_named
from agnncert.datasets.encoding_columns import encoded, fit_columns
from agnncert.datasets.splits import MASKS, NODE_FRACTIONS
from agnncert.datasets.table_roles import (
    Columns,
    Names,
    NodeRows,
    Rows,
    checked_classes,
    class_rows,
    feature_columns,
    has_labels,
    split_record,
    split_rows,
)
from agnncert.datasets.table_store import TableStore
from agnncert.datasets.tables import Problems
from agnncert.divisions.base import Division
from agnncert.errors import DatasetError, missing
from agnncert.graphs.labels import CLASSES_COUNTED
from agnncert_large.disk import GraphWriter, PathLike, new_graph, open_graph
from agnncert_large.sorted_pairs import SortedPairs, write_edges

if TYPE_CHECKING:
    from agnncert_large.partitioned.graph import PartitionedGraph

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
    split_by: str = BY_ID,
    classes: Sequence[str] | None = None,
    partition: Division | None = None,
) -> "Data | PartitionedGraph":
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
        split_by: How the split is drawn, ``"id"`` or ``"class"``, see ``load_tables``.
        classes: Names of all classes, in order, see ``load_tables``.
        partition: The graph is written in parts by the groups of this division, as with ``write_graph(partition=…)``.
            DuckDB sorts the tables on disk, so that no column is held in memory. Tables and folder may be addresses of
            object storage, such as ``s3://bucket/folder``. Defaults to None: arrays that are mapped into memory.

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
        split_by=checked_way(split_by),
        classes=checked_classes(classes),
    )
    node_file = ParquetFiles.of(nodes)
    edge_file = ParquetFiles.of(edges)
    labelled = has_labels(node_file.head, columns)
    wanted = feature_columns(node_file.head, columns, labelled=True)
    node_file.head.require(id)
    if partition is not None:
        _write_parts(node_file, edge_file, folder, partition, columns, labelled, wanted, name)
        return open_graph(folder)
    rows = NodeRows(node_file.read([id]), id)
    with new_graph(folder) as writer:
        with TableStore.opened("sorting edges", folder=writer.draft) as store:
            write_edges(writer, _pairs(edge_file, columns, rows, store))
        writer.ids(encode_ids(rows.names))
        training = np.zeros(0, np.int64)
        if labelled:
            training = _write_labels(writer, node_file, columns, rows.names)
        encoding = _encoding(node_file, columns, wanted, training)
        if encoding is not None and not isinstance(encoding_named(encode), Encoding):
            writer.value(FITTED, True)
        _write_features(writer, node_file, wanted, encoding, len(rows.names))
        writer.value("name", name or Path(folder).resolve().name)
    return open_graph(folder)


def _write_parts(  # noqa: PLR0917 - as given
    nodes: "ParquetFiles",
    edges: "ParquetFiles",
    folder: PathLike,
    partition: Division,
    columns: Columns,
    labelled: bool,
    features: Sequence[str],
    name: str | None,
) -> None:
    """Writes tables in parts; the arguments are those of ``convert_parquet``, as it has read them."""
    from agnncert_large.partitioned.from_tables import write_tables
    from agnncert_large.partitioned.places import Place

    if columns.split_by == BY_CLASS and columns.split not in nodes.head.columns and labelled:
        raise DatasetError('a split by class needs all classes at once: with partition=, leave split_by at "id".')
    known = encoding_named(columns.encode)
    if known is not None and not isinstance(known, Encoding):
        raise DatasetError(
            "an encoding is fitted on whole columns, which partition= does not hold: fit it on a sample "
            "(ac.load_tables(…, encode=…).encoding), and pass that."
        )
    place = Place(str(folder))
    named = name or place.address.partition("?")[0].rstrip("/").rpartition("/")[2]
    write_tables(nodes, edges, place, partition, columns, known, features, labelled, named)


@dataclass(frozen=True)
class ParquetFiles:
    """A table on disk, or in object storage; ``head`` holds its first rows."""

    source: Any
    head: Table

    @classmethod
    def of(cls, path: PathLike) -> "ParquetFiles":
        """Opens a file, or a folder of files."""
        try:
            import pyarrow as pa
            from pyarrow import dataset
        except ModuleNotFoundError as error:
            raise missing(error.name, "reading Parquet") from None
        try:
            source = dataset.dataset(path, format="parquet")
            first = islice((batch for batch in source.to_batches(**_in_order()) if batch.num_rows), 1)
            return cls(source, Table(Path(path), pa.Table.from_batches(first, source.schema)[:64].to_pandas()))
        except (OSError, pa.ArrowException, ImportError) as reason:
            raise DatasetError(f"{path} cannot be read as Parquet: {str(reason)[:200]}") from None

    def __len__(self) -> int:
        return int(self.source.count_rows())

    def read(self, columns: Sequence[str], exact: bool = False) -> Table:
        """Reads some columns as a whole; ``exact``: whole numbers are never rounded, wherever entries are missing."""
        found = self.source.to_table(columns=list(columns))
        return Table(self.head.path, found.to_pandas(integer_object_nulls=exact))

    def pieces(self, columns: Sequence[str], rows: int | None = None, exact: bool = False) -> Iterator[Table]:
        """Yields some columns, a number of rows at a time; ``NODE_ROWS`` by default."""
        start = 0
        rows = NODE_ROWS if rows is None else rows
        for batch in self.source.to_batches(columns=list(columns), batch_size=rows, **_in_order()):
            if batch.num_rows:
                yield Table(self.head.path, batch.to_pandas(integer_object_nulls=exact), start)
            start += batch.num_rows


def _in_order() -> dict[str, Any]:
    """Returns how a table is read so that what was read is forgotten: Arrow's readahead keeps whole files."""
    from pyarrow import dataset

    options = dataset.ParquetFragmentScanOptions(pre_buffer=False)
    return {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False, "fragment_scan_options": options}


def _pairs(file: ParquetFiles, columns: Columns, rows: NodeRows, store: TableStore) -> SortedPairs:
    """Reads all edges, by the rows of their nodes."""
    for column in (columns.source, columns.target):
        file.head.require(column)
    weight = columns.weight_in(file.head)
    others = columns.other_in(file.head)
    if others:
        _log.warning("%s: %d column(s) left out: %s", file.head.path.name, len(others), shortlist(others))
    directions = 1 if columns.directed else 2
    pairs = SortedPairs(store, "pairs", len(rows.names), directions * len(file), weight is not None)
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


def _encoding(file: ParquetFiles, columns: Columns, wanted: Sequence[str], training: Rows) -> Encoding | None:
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
    writer: GraphWriter, file: ParquetFiles, names: Sequence[str], encoding: Encoding | None, nodes: int
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


def _write_labels(writer: GraphWriter, file: ParquetFiles, columns: Columns, names_of_rows: Names) -> Rows:
    """Writes classes, their names, and the three parts; returns the rows of the training part."""
    label = str(columns.label)
    wanted = [label]
    if columns.split in file.head.columns:
        wanted.append(columns.split)
    table = file.read(wanted)
    labels = class_rows(table, label, columns.classes)
    y = labels.y
    writer.array("y", tuple(y.shape), torch.int64)[:] = y.numpy()
    writer.value("num_classes", len(labels.names))
    writer.value("class_names", labels.names)
    if labels.are_counted:
        writer.value(CLASSES_COUNTED, True)
    parts = split_rows(table, columns, y, NODE_FRACTIONS, [names_of_rows])
    record = split_record(table, columns)
    if record is not None:
        writer.value(RECORD, record)
    for mask, rows in zip(MASKS, parts, strict=True):
        writer.array(mask, tuple(y.shape), torch.bool)[rows.numpy()] = True
    return parts[0].numpy()
