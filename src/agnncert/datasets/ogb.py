"""Amazon2M, from the folder that the Open Graph Benchmark unpacks (``ogbn_products``); ``ogb`` itself is not needed.

The files are tables without a header: ``raw/edge.csv.gz`` (two row numbers, each pair once), ``raw/node-feat.csv.gz``
and ``raw/node-label.csv.gz`` (a row per node), ``raw/num-node-list.csv.gz`` and ``raw/num-edge-list.csv.gz`` (how many
of each there should be), and ``split/sales_ranking/{train,valid,test}.csv.gz`` (row numbers). They are read once, in
pieces, and become a folder of ``graphs/disk`` beside them. The ``processed`` folder of ogb is a pickle and is not
opened.
"""

import gzip
import logging
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.datasets.catalog import OGB_PARTS, SOURCES, dataset_info
from agnncert.datasets.pairs import PairFiles, write_edges
from agnncert.errors import DatasetError
from agnncert.extras import missing
from agnncert.graphs.disk import GraphWriter, is_graph_folder, new_graph, open_graph

_log = logging.getLogger(__name__)

CONVERTED = "agnncert"  # the folder beside the files, in ours
_BLOCK = 1 << 24  # bytes of text read at a time


def load_amazon2m(root: Path) -> Data:
    """The real graph, with the published split by sales ranking.

    Raises:
        DatasetError: Files are missing, cut short or not those of ogbn-products; says which and where they belong.
    """
    source = SOURCES["amazon2m"]
    folder = root / source.folder
    converted = folder / CONVERTED
    if not is_graph_folder(converted):
        absent = source.missing(root)
        if absent:
            raise DatasetError(
                "amazon2m (ogbn-products) is not on this machine, and too large to be fetched unasked (1.4 GB).\n"
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
    """Reads a node classification graph in the layout of ogb, in pieces, into a folder for ``open_graph``.

    Args:
        folder: Holds ``raw`` and ``split``.
        out: The folder to write.
        name: What to call the graph.

    Raises:
        DatasetError: A file is missing, damaged, or does not fit the others; says which.
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
    """A table without a header as matrices, one after the other."""
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
        raise DatasetError(f"{file} has to say one number, of one graph, and says {counts.tolist()!r:.60}.")
    return int(counts[0, 0])


def _require(file: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DatasetError(f"{file} has {found} rows, expected {expected}: it was cut short, or belongs elsewhere.")
