"""Amazon2M, read from the folder of ogbn-products (Open Graph Benchmark, 1.4 GB) and written for ``ac.open_graph``:

    python -m experiments.benchmarks.amazon2m ogbn_products amazon2m

Unpack http://snap.stanford.edu/ogb/data/nodeproppred/products.zip first; the package ``ogb`` is not needed. The files
are tables without a header: ``raw/edge.csv.gz`` (two row numbers), ``raw/node-feat.csv.gz``, ``raw/node-label.csv.gz``
and ``split/sales_ranking/{train,valid,test}.csv.gz`` (row numbers). The pickles in ``processed`` are never opened.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from pyarrow import csv

from agnncert.datasets.table_store import TableStore
from agnncert.errors import DatasetError
from agnncert_large.disk import new_graph
from agnncert_large.sorted_pairs import Rows, SortedPairs, write_edges
from experiments.benchmarks.amazon2m_like import CLASSES, EDGES, FEATURES, NODES

PARTS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
BLOCK = 1 << 24  # bytes of text read at a time


def convert_ogb(folder: Path, out: Path, nodes: int = NODES, edges: int = EDGES) -> None:
    """Reads ogbn-products in the layout of ogb (``raw`` and ``split``) and writes the folder ``out``.

    Args:
        folder: The unpacked folder.
        out: The folder to write, for ``open_graph``.
        nodes: Expected number of nodes.
        edges: Expected number of rows in the table of edges.

    Raises:
        DatasetError: A file is missing or damaged, does not fit the others, or is not the published one.
    """
    label, edge, feature = (folder / "raw" / f"{name}.csv.gz" for name in ("node-label", "edge", "node-feat"))
    y = _whole(label)
    if len(y) != nodes or not 0 <= y.min() <= y.max() < CLASSES:
        raise DatasetError(
            f"{label} has {len(y)} labels from {y.min()} to {y.max()}: ogbn-products has {nodes} from 0 to {CLASSES - 1}."
        )
    with new_graph(out) as writer, TableStore.opened("sorting edges", folder=writer.draft) as store:
        pairs, seen = SortedPairs(store, "pairs", nodes, 2 * edges), 0
        for ends in _pieces(edge, np.int64):
            seen += len(ends)
            if ends.shape[1] != 2 or ends.min() < 0 or ends.max() >= nodes:
                raise DatasetError(f"{edge} names rows outside of 0 to {nodes - 1}, near row {seen}.")
            pairs.add(ends[:, 0], ends[:, 1])
            pairs.add(ends[:, 1], ends[:, 0])
        _require_rows(edge, seen, edges)
        write_edges(writer, pairs)
        writer.ids(np.arange(nodes))
        writer.array("y", (nodes,), torch.int64)[:] = y
        x, start = writer.array("x", (nodes, FEATURES), torch.float32), 0
        for rows in _pieces(feature, np.float32):
            end = start + len(rows)
            if end > nodes or rows.shape[1] != FEATURES:
                raise DatasetError(f"{feature}: expected {nodes} rows of {FEATURES} numbers.")
            x[start:end], start = rows, end
        _require_rows(feature, start, nodes)
        for part, mask in PARTS.items():
            file = folder / "split" / "sales_ranking" / f"{part}.csv.gz"
            members = _whole(file)
            if len(members) == 0 or members.min() < 0 or members.max() >= nodes:
                raise DatasetError(f"{file} is empty, or names rows outside of 0 to {nodes - 1}.")
            writer.array(mask, (nodes,), torch.bool)[members] = True
        writer.value("name", "amazon2m")
        writer.value("num_classes", CLASSES)


def _whole(file: Path) -> Rows:
    """A table of one column without a header."""
    return np.concatenate([np.zeros(0, np.int64), *(piece[:, 0] for piece in _pieces(file, np.int64))])


def _pieces(file: Path, kind: Any) -> Iterator[npt.NDArray[Any]]:
    """A table without a header, as a sequence of matrices."""
    try:
        with gzip.open(file, "rt") as text:
            width = text.readline().count(",") + 1
        names = [f"f{k}" for k in range(width)]
        layout = csv.ReadOptions(column_names=names, block_size=BLOCK)
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


def _require_rows(file: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DatasetError(f"{file} has {found} rows, expected {expected}: it is truncated or of another dataset.")


if __name__ == "__main__":
    convert_ogb(Path(sys.argv[1]), Path(sys.argv[2]))
