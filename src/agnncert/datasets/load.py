"""``load_dataset``: loads a graph with labels, ids and splits by name.

Missing files of the public datasets are downloaded. The checksum of pickles is checked before they are read, and the
size of a dataset is compared with the published one.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch_geometric.data import Data
from torch_geometric.io import read_npz, read_planetoid_data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.addons import addons
from agnncert.datasets.catalog import FRAUD, SOURCES, DatasetInfo, Source, dataset_info, default_root
from agnncert.datasets.download import check_files, download
from agnncert.datasets.drawn_splits import BY_CLASS, BY_ID, DRAWN_BY
from agnncert.datasets.fraud import read_fraud, split_of_fraud
from agnncert.datasets.generated import accounts, circles, digits_grid, digits_knn
from agnncert.datasets.splits import (
    GRAPH_FRACTIONS,
    NODE_FRACTIONS,
    GraphSet,
    drawn_parts,
    graph_columns,
    node_columns,
    per_class_split,
    set_masks,
)
from agnncert.datasets.tu import read_tu, tu_files
from agnncert.errors import DatasetError, MissingPackage, suggests_arguments

# Features that span orders of magnitude (from -538 to 798 here) are compressed entry by entry. A scaler fitted on the
# whole dataset would let one attacked graph change the features of all others.
_COMPRESSED = ("proteins",)

_GENERATED: dict[str, Callable[[], list[Data]]] = {
    "digits-knn": lambda: [digits_knn()],
    "digits-grid": digits_grid,
    "accounts-generated": lambda: [accounts()],
    "circles-generated": lambda: [circles()],
}


@suggests_arguments
def load_dataset(
    name: str, root: str | os.PathLike[str] | None = None, seed: int = 0, split: str | None = None
) -> Data | GraphSet:
    """Loads a dataset by name. ``agnncert datasets`` lists them.

    Edges are undirected: each pair is there once in both directions, sorted, without self-loops. Direction, sign and
    amounts are in ``edge_attr``, and ``edge_names`` has the names of its columns. Features are as published
    (Cora-ML, Amazon-C and Coauthor-Physics: zeros and ones, as PyG reads them). They are not scaled: with a statistic
    over all nodes, such as a column's mean, one attacked node would change the input of every other.

    Args:
        name: For example ``"cora-ml"`` (node classification) or ``"proteins"`` (graph classification).
        root: Folder with the datasets, in PyTorch Geometric's layout. Defaults to a folder in the user's cache.
            Missing files are downloaded.
        seed: Seed of the split: 30/10/60 % of the nodes or 50/20/30 % of the graphs. ``"tolokers"`` has ten splits, and
            ``"ethereum-phishing"`` a test part of its own. For ``"big-vul"`` 80/10/10 %, and the seed of the sampled
            functions.
        split: ``"by-class"`` draws the same share of each class, as in the paper; ``"by-id"`` draws each node or graph
            by itself, from its id, so that no label and no other graph moves it: for defences against poisoned
            training data, which refuse a split by class. Node task: ``"20-per-class"`` for 20 training and 20
            validation nodes of each class and a tenth of the others to test, as other certified defences are measured
            (any number). The rest is in no part. Meant for ``fit(..., protocol="held-out")``, which sees the rest
            without labels. Defaults to ``"by-class"``.

    Returns:
        A ``Data`` with ``train_mask``, ``val_mask``, ``test_mask``, ``node_id``, ``num_classes`` and ``name``, or a
        ``GraphSet``, whose graphs have a ``node_id`` each.

    Raises:
        DatasetError: The name is unknown, or files are missing and cannot be downloaded.
        MissingPackage: The dataset belongs to an add-on package that is not installed.

    Example:
        >>> data = load_dataset("digits-knn")
        >>> data.num_nodes, data.num_classes, int(data.train_mask.sum())
        (1797, 10, 539)
    """
    info = dataset_info(name)
    way = _way(info, split)
    folder = default_root() if root is None else Path(root)
    if info.addon:
        return _load_by_addon(info, folder, seed)
    graphs = _read_public(info, folder, seed) if info.download else _GENERATED[name]()
    if info.task == "node":
        return _node_task(info, graphs[0], way, seed)
    return _graph_task(info, graphs, way.by, seed)


class _Way(NamedTuple):
    """How a split is drawn: by what, and how many training nodes of each class, or 0 for shares of all."""

    by: str
    per_class: int = 0


def _way(info: DatasetInfo, split: str | None) -> _Way:
    """Returns how a split is drawn that is called so.

    Raises:
        DatasetError: There is no such split, or the dataset has none.
    """
    if split is None:
        return _Way(BY_CLASS)
    by = split.removeprefix("by-")
    if by != split and by in DRAWN_BY:
        if info.addon and by == BY_ID:
            raise DatasetError(
                f"{info.name} is drawn with its parts: load it without split=, then ac.split(data, fractions=(.8, .1, "
                ".1)) draws the parts by ids."
            )
        return _Way(by)
    match = re.fullmatch(r"([1-9]\d*)-per-class", split)
    if match is None:
        raise DatasetError(
            f'no split is called "{split}": expected "by-id", "by-class", or "20-per-class" or another number.'
        )
    if info.task == "graph" or info.addon or info.name in FRAUD:
        raise DatasetError(
            f'{info.name} has no split "{split}": it is for node classification on a graph without own parts.'
        )
    return _Way(BY_CLASS, int(match[1]))


def _load_by_addon(info: DatasetInfo, folder: Path, seed: int) -> Data | GraphSet:
    entry_point = addons("agnncert.datasets").get(info.name)
    if entry_point is None:
        raise MissingPackage(f"{info.name} needs the package {info.addon}, which is not installed.", name=info.addon)
    data: Data | GraphSet = entry_point.load()(folder, seed)
    return data


def _node_task(info: DatasetInfo, data: Data, way: _Way, seed: int) -> Data:
    data.name = info.name
    data.num_classes = info.classes
    if info.name in FRAUD:
        return split_of_fraud(data, seed, way.by)
    if way.per_class:
        parts = per_class_split(data.y, way.per_class, seed)
    else:
        parts = drawn_parts(data.y, NODE_FRACTIONS, seed, way.by, lambda: node_columns(data))
    return set_masks(data, parts, way.by)


def _graph_task(info: DatasetInfo, graphs: list[Data], by: str, seed: int) -> GraphSet:
    y = torch.tensor([int(graph.y) for graph in graphs])
    parts = drawn_parts(y, GRAPH_FRACTIONS, seed, by, lambda: graph_columns(graphs))
    return GraphSet(graphs, num_classes=info.classes, name=info.name).set_split(parts, by)


def _read_public(info: DatasetInfo, root: Path, seed: int) -> list[Data]:
    """Returns the graphs of a public dataset (one, for the node task), downloaded if they are missing.

    Raises:
        DatasetError: Files cannot be downloaded or read, or are not those that were published.
    """
    source = SOURCES[info.name]
    if source.missing(root):
        download(info, source, root)
    try:
        check_files(source.paths(root))
        graphs = _read(info, source, root, seed)
        num_classes = _num_classes(info, graphs)
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(
            f"the files of {info.name} in {source.raw(root)} cannot be read ({type(error).__name__}: {error}). "
            "Delete that folder, then load it again."
        ) from error
    unit = "nodes" if info.task == "node" else "graphs"
    size = graphs[0].num_nodes if info.task == "node" else len(graphs)
    actual = (size, num_classes, graphs[0].num_features)
    expected = (info.size, info.classes, info.features)
    if actual != expected:
        raise DatasetError(
            f"the files in {source.raw(root)} are not {info.name} as published: {unit}, classes, features are "
            f"{actual}, expected {expected}. They may be truncated or a cleaned variant: delete the folder and load "
            "it again."
        )
    if info.name in _COMPRESSED:
        for graph in graphs:
            graph.x = torch.asinh(graph.x)
    return graphs


def _read(info: DatasetInfo, source: Source, root: Path, seed: int) -> list[Data]:
    """Returns the graphs with undirected edges and ids."""
    raw = source.raw(root)
    if source.kind == "fraud":
        return [read_fraud(info.name, source.paths(root), seed)]
    if source.kind == "tu":
        return read_tu(tu_files(raw)).graphs
    if source.kind == "planetoid":
        graph = read_planetoid_data(str(raw), source.folder)
    else:
        graph = read_npz(str(raw / source.files[0]))
    edge_index = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    ids = torch.arange(graph.num_nodes)
    return [Data(x=graph.x.float(), edge_index=edge_index, y=graph.y.long(), node_id=ids)]


def _num_classes(info: DatasetInfo, graphs: list[Data]) -> int:
    """Returns the number of classes that occur."""
    if info.name in FRAUD:  # some are unlabelled; a reader names the classes
        return len(graphs[0].class_names)
    return 1 + max(int(graph.y.max()) for graph in graphs)
