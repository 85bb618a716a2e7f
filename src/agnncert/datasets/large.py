"""Graphs that do not fit into memory, written in pieces into a folder for ``open_graph``.

- ``convert_parquet`` reads tables of nodes and edges. Ids, labels and parts are held in memory, features and edges are
  not.
- ``load_amazon2m`` reads Amazon2M from the folder ``ogbn_products`` of the Open Graph Benchmark, without ``ogb``. The
  files are tables without a header: ``raw/edge.csv.gz`` (two row numbers), ``raw/node-feat.csv.gz``,
  ``raw/node-label.csv.gz``, ``raw/num-node-list.csv.gz``, ``raw/num-edge-list.csv.gz`` (expected numbers), and
  ``split/sales_ranking/{train,valid,test}.csv.gz`` (row numbers). The pickles in ``processed`` are never opened.
- ``generate_amazon2m_like`` generates a synthetic graph with as many nodes, edges, classes and features, most edges
  within communities and classes, and degrees with a heavy tail. It serves to measure the cost of that size; it says
  nothing about the accuracy on the real graph.

``PairFiles`` sorts edges on disk: a pair of rows becomes the number dst × number of nodes + src, and numbers are
distributed over files by their range, so that each file fits into memory. Edges are sorted by dst, then by src.
"""

import gzip
import logging
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.catalog import OGB_PARTS, SOURCES, dataset_info
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.splits import NODE_FRACTIONS, stratified_split
from agnncert.datasets.tables import LABEL_NAMES, names_in_order, stated_parts
from agnncert.errors import DatasetError, missing
from agnncert.graphs.disk import GraphWriter, PathLike, is_graph_folder, new_graph, open_graph
from agnncert.graphs.hashing import refuse_duplicates

Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

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
            keys = np.fromfile(file, dtype=np.int64)
            weights = None
            if self._weighted:
                order = np.argsort(keys, kind="stable")
                keys, weights = keys[order], np.fromfile(file.with_suffix(".weights"), dtype=np.float32)[order]
            else:
                keys.sort()
            fresh = np.ones(len(keys), dtype=bool)
            fresh[1:] = keys[1:] != keys[:-1]
            if weights is not None and (odd := np.flatnonzero(~fresh[1:] & (weights[1:] != weights[:-1]))).size:
                dst, src = divmod(int(keys[odd[0]]), self.num_nodes)
                raise DatasetError(
                    f"nodes {src} and {dst} (counted from 0) are joined twice, with different weights: keep one of "
                    "the rows, or pass directed=True if the two directions differ."
                )
            yield keys[fresh], None if weights is None else weights[fresh]

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


_log = logging.getLogger(__name__)

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
) -> Data:
    """Reads Parquet tables of nodes and edges, in pieces, into a folder on disk, and opens it.

    Args:
        nodes: Table of nodes: a Parquet file, or a folder of Parquet files.
        edges: Table of edges: a Parquet file, or a folder of Parquet files.
        folder: The folder to write, see ``write_graph``.
        id: Column of node ids: unique integers or text. The two tables may use different types: 7 and "7" are one id.
        label: Column of classes, numbers or text; an empty entry is an unlabelled node. ``None``: no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without it the split is drawn: 30/10/60 %,
            stratified.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights; optional.
        features: Columns of features, numbers or lists of numbers of one length. Defaults to all remaining columns.
        directed: Whether edges are directed. If not, each pair is joined in both directions.
        seed: Seed of the split, if it is drawn.
        name: Name of the dataset. Defaults to the name of the folder.

    Returns:
        What ``open_graph(folder)`` returns.

    Raises:
        DatasetError: Something is missing, unknown or not a number.
        IdError: An id is missing or occurs twice.
        GraphError: The folder is not empty.
    """
    node_table, edge_table = _Parquet.of(nodes), _Parquet.of(edges)
    for table, column in ((node_table, id), (edge_table, source), (edge_table, target)):
        table.about.require(column)
    if label not in (None, "label"):
        node_table.about.require(str(label))
    labelled = label in node_table.about.columns and label not in (features or ())
    wanted = features or _feature_columns(node_table, id, label, split)
    ids = _Ids.of(node_table, id, edge_table.is_whole(source) and edge_table.is_whole(target))
    with new_graph(folder) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        write_edges(writer, _pairs(edge_table, (source, target), weight, ids, directed, Path(spare) / "pairs"))
        writer.ids(ids.encoded)
        _write_features(writer, node_table, wanted, len(ids.encoded))
        if labelled:
            _write_labels(writer, node_table, str(label), split, seed)
        writer.value("name", name or Path(folder).resolve().name)
    return open_graph(folder)


@dataclass(frozen=True)
class _Parquet:
    """A table on disk that is read in batches; ``about`` has its name and columns."""

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
        """Whether the column holds int64 numbers."""
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
        """A column of ids: an int64 array if it is stored as integers, else text; entries must not be missing."""
        values = batch.column(column)
        if not self.is_whole(column):
            values = self.texts(batch, column, "ids")
        if values.null_count:
            raise self.about.error(f'column "{column}" is empty in {values.null_count} row(s): fill it in.')
        return values.to_numpy(zero_copy_only=False).astype(np.int64) if self.is_whole(column) else values


@dataclass(frozen=True)
class _Ids:
    """Ids of all nodes, with an index of their rows."""

    encoded: Any  # in canonical form
    ordered: Rows | None  # whole numbers, ascending …
    rows: Rows | None  # … and the row of each
    texts: Any  # or all ids as text

    @classmethod
    def of(cls, table: _Parquet, column: str, whole: bool) -> "_Ids":
        """Reads the ids of all nodes; ``whole`` says whether the edges refer to them by int64 numbers."""
        import pyarrow as pa

        parts = [table.ids(batch, column) for batch in table.pieces([column], NODE_ROWS)]
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
        """Row of every id in a column of edges, and some ids that no node has."""
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
    for batch in table.pieces([*ends, *([weight] if weighted else [])], EDGE_ROWS):
        (src, unknown), (dst, others) = (ids.find(table, batch, column) for column in ends)
        if unknown or others:
            raise table.about.error(
                f"ends of edges are ids that are not in the table of nodes: {shortlist([*unknown, *others])}. Add the "
                "nodes, or remove the edges."
            )
        weights = _numbers(table, batch, weight, "weight")[:, 0] if weighted else None
        pairs.add(src, dst, weights)
        if not directed:
            pairs.add(dst, src, weights)
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
    for batch in table.pieces(columns, NODE_ROWS):
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

    texts = pa.chunked_array([table.texts(batch, label, "classes") for batch in table.pieces([label], NODE_ROWS)])
    names = names_in_order({text for text in pc.unique(texts).to_pylist() if text})
    if not names:
        raise table.about.error(f'column "{label}" is empty. Pass label=None if there are no labels.')
    known = pc.index_in(texts, value_set=pa.array(names, pa.large_string()))
    y = torch.from_numpy(pc.fill_null(known, -1).to_numpy().astype(np.int64))
    writer.array("y", tuple(y.shape), torch.int64)[:] = y.numpy()
    writer.value("num_classes", len(names))
    writer.value("class_names", names)
    if split in table.about.columns:
        stated = (table.texts(batch, split, "parts").to_pylist() for batch in table.pieces([split], NODE_ROWS))
        parts = stated_parts(table.about, split, (text or "" for batch in stated for text in batch), y)
    else:
        parts = stratified_split(y, NODE_FRACTIONS, seed)
    for mask, rows in zip(("train_mask", "val_mask", "test_mask"), parts, strict=True):
        writer.array(mask, tuple(y.shape), torch.bool)[rows.numpy()] = True


CONVERTED = "agnncert"  # name of the converted folder
_BLOCK = 1 << 24  # bytes of text read at a time


def load_amazon2m(root: Path) -> Data:
    """The real graph, with the published split by sales ranking.

    Raises:
        DatasetError: Files are missing, truncated or not those of ogbn-products.
    """
    source = SOURCES["amazon2m"]
    folder = root / source.folder
    converted = folder / CONVERTED
    if not is_graph_folder(converted):
        absent = source.missing(root)
        if absent:
            raise DatasetError(
                "amazon2m (ogbn-products) is not on this machine; its 1.4 GB are not downloaded automatically.\n"
                f"  missing: {', '.join(str(Path('raw') / name).replace('raw/../', '') for name in absent)}\n"
                f"  folder:  {folder}\n"
                f"  source:  {source.url}\n"
                "Unpack the archive so that this folder has raw/ and split/ in it, or pass root=... with the folder "
                'that holds it. "amazon2m-like" is a synthetic graph of the same size that needs no files.'
            )
        _log.info("reading %s for the first time, which takes some minutes", folder)
        convert_ogb(folder, converted, "amazon2m")
    data = open_graph(converted)
    info = dataset_info("amazon2m")
    found, expected = (data.num_nodes, data.num_features), (info.size, info.features)
    if found != expected or int(data.y.max()) >= info.classes:
        raise DatasetError(
            f"{folder} is not ogbn-products as published: nodes and features are {found}, expected {expected}. Delete "
            f"{converted}, put the published files in place and load it again."
        )
    data.num_classes = info.classes
    return data


def convert_ogb(folder: Path, out: Path, name: str) -> None:
    """Reads a node classification graph in the layout of ogb (``raw`` and ``split``) and writes the folder ``out``.

    Raises:
        DatasetError: A file is missing, damaged, or does not fit the others.
    """
    raw = folder / "raw"
    nodes, edges = (_count(raw / f"num-{kind}-list.csv.gz") for kind in ("node", "edge"))
    with new_graph(out) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        pairs = PairFiles(Path(spare) / "pairs", nodes, 2 * edges)
        seen = 0
        for ends in _pieces(raw / "edge.csv.gz", np.int64):
            seen += len(ends)
            if ends.shape[1] != 2 or ends.min() < 0 or ends.max() >= nodes:
                raise DatasetError(f"{raw / 'edge.csv.gz'} names rows outside of 0 to {nodes - 1}, near row {seen}.")
            pairs.add(ends[:, 0], ends[:, 1])
            pairs.add(ends[:, 1], ends[:, 0])
        _require(raw / "edge.csv.gz", seen, edges)
        write_edges(writer, pairs)
        writer.ids(np.arange(nodes))
        _fill(writer, "x", raw / "node-feat.csv.gz", nodes, np.float32)
        y = _fill(writer, "y", raw / "node-label.csv.gz", nodes, np.int64)
        for part, mask in OGB_PARTS.items():
            file = folder / "split" / "sales_ranking" / f"{part}.csv.gz"
            rows = np.concatenate([np.zeros((0, 1), np.int64), *_pieces(file, np.int64)])[:, 0]
            if len(rows) == 0 or rows.min() < 0 or rows.max() >= nodes:
                raise DatasetError(f"{file} is empty, or names rows outside of 0 to {nodes - 1}.")
            writer.array(mask, (nodes,), torch.bool)[rows] = True
        writer.value("name", name)
        writer.value("num_classes", int(y.max()) + 1)


def _fill(writer: GraphWriter, name: str, file: Path, nodes: int, kind: Any) -> npt.NDArray[Any]:
    """Features or labels: one row per node."""
    array, start = None, 0
    for rows in _pieces(file, kind):
        if array is None:
            shape = (nodes,) if name == "y" else (nodes, rows.shape[1])
            array = writer.array(name, shape, torch.int64 if name == "y" else torch.float32)
        if start + len(rows) > nodes:
            _require(file, start + len(rows), nodes)
        array[start : start + len(rows)] = rows[:, 0] if name == "y" else rows
        start += len(rows)
    _require(file, start, nodes)
    assert array is not None
    return array


def _pieces(file: Path, kind: Any) -> Iterator[npt.NDArray[Any]]:
    """A table without a header, as a sequence of matrices."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading the tables of ogb") from None
    try:
        with gzip.open(file, "rt") as text:
            width = text.readline().count(",") + 1
        names = [f"f{k}" for k in range(width)]
        layout = csv.ReadOptions(column_names=names, block_size=_BLOCK)
        types = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.from_numpy_dtype(kind)))
        with csv.open_csv(file, layout, convert_options=types) as batches:
            for batch in batches:
                if any(column.null_count for column in batch.columns):
                    raise DatasetError(f"{file} has an empty entry: it is damaged.")
                yield np.stack([column.to_numpy() for column in batch.columns], axis=1)
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing.") from None
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError) as reason:
        raise DatasetError(f"{file} cannot be read: {str(reason)[:200]}") from None


def _count(file: Path) -> int:
    counts = np.concatenate([np.zeros((0, 1), np.int64), *_pieces(file, np.int64)])
    if counts.shape != (1, 1) or counts[0, 0] < 1:
        raise DatasetError(f"{file} must contain one number, but contains {counts.tolist()!r:.60}.")
    return int(counts[0, 0])


def _require(file: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DatasetError(f"{file} has {found} rows, expected {expected}: it is truncated or of another dataset.")


NODES, EDGES, CLASSES, FEATURES = 2_449_029, 61_859_140, 47, 100  # of Amazon2M, each pair of nodes once
TRAIN, VAL = 196_615 / NODES, 39_323 / NODES  # shares of the published split

# Chosen so that a model without edges is correct for about 60 % of the nodes, and one with edges for more.
_IN_COMMUNITY, _IN_CLASS = 0.55, 0.25  # shares of edges; the rest go anywhere
_COMMUNITY = 600  # nodes on average
_TAIL = 2.0  # exponent of the degrees' tail, minus one
_HUB = 346.0  # largest expected degree over the mean one, as in the real graph
_OTHER_LABEL = 0.1  # share of nodes with the label of a random node
_OF_CLASS, _OF_COMMUNITY = 0.26, 0.10  # how far classes and communities lie apart, in units of the noise
_NODE_BLOCK, _EDGE_BLOCK = 1 << 16, 1 << 22

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Plan:
    """Communities, classes and weights of the nodes, which are sorted by class and community here."""

    seed: int
    edges: int
    weight: Floats  # expected degree of each node, up to a factor
    communities: Rows  # where each community begins, and the end
    community: Rows  # of each node
    classes: Rows  # where each class begins, and the end
    label: Rows  # of each node
    row: Rows  # row of each node in the graph, shuffled

    def random(self, what: int, block: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, what, block])


def generate_amazon2m_like(folder: PathLike, scale: float = 1.0, seed: int = 0) -> None:
    """Writes a synthetic graph of the size of Amazon2M, or of a part of it, into a new folder for ``open_graph``.

    Args:
        folder: Where to write it.
        scale: Factor of the numbers of nodes and edges; the mean degree stays the same.
        seed: Seed of graph and split.

    Raises:
        DatasetError: The scale is not valid.
        GraphError: The folder is not empty.
    """
    if not (scale <= 64 and NODES * scale >= 20 * CLASSES):  # false for NaN
        raise DatasetError(f"scale={scale!r}: expected a number up to 64 that leaves at least {20 * CLASSES} nodes.")
    plan = _planned(round(NODES * scale), round(EDGES * scale), seed)
    place = Path(folder)
    with new_graph(place) as writer, TemporaryDirectory(dir=writer.draft) as spare:
        write_edges(writer, _both_ways(plan, Path(spare)))
        _write_nodes(writer, plan)
        size = "" if scale == 1 else f", {Fraction(scale).limit_denominator(10_000)} of the size"
        writer.value("name", f"amazon2m-like (synthetic{size})")
        writer.value("num_classes", CLASSES)
        writer.value("synthetic", f"generated with seed {seed}: nothing about the real Amazon2M follows from it")


def _planned(nodes: int, edges: int, seed: int) -> _Plan:
    random = np.random.default_rng([seed, 0])
    share = 1 / np.arange(2, CLASSES + 2) ** 1.2
    classes = np.concatenate([[0], np.rint(np.cumsum(share) / share.sum() * nodes)]).astype(np.int64)
    starts = [np.zeros(0, dtype=np.int64)]
    for begin, end in pairwise(classes):
        sizes = random.lognormal(0, 0.6, max(1, round((end - begin) / _COMMUNITY)))
        inside = np.concatenate([[0], np.cumsum(sizes)[:-1]]) / sizes.sum()
        starts.append(np.unique(begin + np.floor(inside * (end - begin)).astype(np.int64)))
    communities = np.concatenate([*starts, [nodes]])
    weight = (1 - random.random(nodes)) ** (-1 / _TAIL) - 0.9
    weight = np.minimum(weight, _HUB * weight.mean())
    return _Plan(
        seed=seed, edges=edges, weight=weight, communities=communities, classes=classes,
        community=np.repeat(np.arange(len(communities) - 1), np.diff(communities)),
        label=np.repeat(np.arange(CLASSES), np.diff(classes)), row=random.permutation(nodes),
    )  # fmt: skip


def _both_ways(plan: _Plan, spare: Path) -> PairFiles:
    """The planned number of distinct pairs, each in both directions."""
    nodes = len(plan.weight)
    once = PairFiles(spare / "once", nodes, plan.edges)
    found, rounds = 0, 0
    while found < plan.edges:
        if rounds == 8 or 4 * plan.edges > nodes * nodes:
            raise DatasetError(f"{nodes} nodes have no room for {plan.edges} edges: choose a larger scale.")
        missing = plan.edges - found
        for first, second in _drawn(plan, round(missing * (1.2 + 0.3 * rounds)) + 100, rounds):
            once.add(np.minimum(first, second), np.maximum(first, second))
        found = sum(len(keys) for keys, _ in once.sorted())
        rounds += 1
    both = PairFiles(spare / "both", nodes, 2 * plan.edges)
    surplus = found - plan.edges
    for block, (keys, _) in enumerate(once.sorted()):
        random = plan.random(2, block)
        dropped = int(random.hypergeometric(len(keys), found - len(keys), surplus)) if surplus else 0
        found, surplus = found - len(keys), surplus - dropped
        kept = np.delete(keys, random.choice(len(keys), dropped, replace=False))
        for piece in np.array_split(kept, max(1, -(-len(kept) // _EDGE_BLOCK))):
            high, low = np.divmod(piece, nodes)
            both.add(low, high)
            both.add(high, low)
    once.remove()
    return both


def _drawn(plan: _Plan, count: int, turn: int) -> Iterator[tuple[Rows, Rows]]:
    """About ``count`` pairs of rows, with repetitions, in blocks.

    Each node draws a number of partners proportional to its weight. A partner is drawn with a probability proportional
    to its weight, from the community of the node, from its class, or from all nodes.
    """
    nodes = len(plan.weight)
    total = np.concatenate([[0.0], np.cumsum(plan.weight)])
    wanted = np.floor(np.cumsum(plan.weight) / total[-1] * count + plan.random(3, turn).random()).astype(np.int64)
    for block, begin in enumerate(range(0, int(wanted[-1]), _EDGE_BLOCK)):
        end = min(begin + _EDGE_BLOCK, int(wanted[-1]))
        node = np.searchsorted(wanted, np.arange(begin, end), side="right")
        random = plan.random(4 + turn, block)
        kind, place = random.random(end - begin), random.random(end - begin)
        low, high = np.zeros(end - begin), np.full(end - begin, total[-1])
        near, alike = np.flatnonzero(kind < _IN_COMMUNITY), np.flatnonzero(kind >= 1 - _IN_CLASS)
        for some, starts, of in ((near, plan.communities, plan.community), (alike, plan.classes, plan.label)):
            mine = of[node[some]]
            low[some], high[some] = total[starts[mine]], total[starts[mine + 1]]
        partner = np.searchsorted(total[1:], low + place * (high - low), side="right")
        yield plan.row[node], plan.row[np.minimum(partner, nodes - 1)]


def _write_nodes(writer: GraphWriter, plan: _Plan) -> None:
    nodes = len(plan.row)
    node_of = np.empty(nodes, dtype=np.int64)
    node_of[plan.row] = np.arange(nodes)
    writer.ids(np.arange(nodes))
    random = plan.random(19)
    labelled = np.where(random.random(nodes) < _OTHER_LABEL, random.integers(0, nodes, nodes), node_of)
    writer.array("y", (nodes,), torch.int64)[:] = plan.label[labelled]
    centre = _OF_CLASS * plan.random(20).standard_normal((CLASSES, FEATURES), dtype=np.float32)
    offset = _OF_COMMUNITY * plan.random(21).standard_normal((len(plan.communities), FEATURES), dtype=np.float32)
    x = writer.array("x", (nodes, FEATURES), torch.float32)
    for block, begin in enumerate(range(0, nodes, _NODE_BLOCK)):
        here = node_of[begin : begin + _NODE_BLOCK]
        noise = plan.random(22, block).standard_normal((len(here), FEATURES), dtype=np.float32)
        x[begin : begin + len(here)] = centre[plan.label[here]] + offset[plan.community[here]] + noise
    part = plan.random(23).random(nodes)
    cuts = (0.0, TRAIN, TRAIN + VAL, 1.0)
    for name, (low, high) in zip(("train_mask", "val_mask", "test_mask"), pairwise(cuts), strict=True):
        writer.array(name, (nodes,), torch.bool)[:] = (part >= low) & (part < high)
