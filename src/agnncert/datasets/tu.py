"""Folders in the format of the TU collection, ``NAME_A.txt`` and its neighbours: most sets of graphs are shared so.

One file per column, without headers; nodes and graphs are numbered from 1 in the order of their lines. The files are
text: nothing in them is run.
"""

import logging
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.datasets.columns import shortlist
from agnncert.datasets.graphs import GRAPH_FRACTIONS, GraphSet, stratified_split
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)

NEEDED = ("A", "graph_indicator", "graph_labels")
FEATURES = ("node_attributes", "node_labels")
MOST_KINDS = 10_000
UNUSED = ("edge_labels", "edge_attributes", "graph_attributes")


def tu_files(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """The files of a set of graphs in this format by what they hold, in the folder or in ``raw`` below; empty if none.

    Raises:
        DatasetError: The folder holds several sets.
    """
    for place in (Path(folder), Path(folder) / "raw"):
        names = sorted(path.name.removesuffix("_A.txt") for path in place.glob("*_A.txt"))
        if len(names) > 1:
            raise DatasetError(
                f"{place} holds several sets of graphs, {shortlist(names)}: keep each in its own folder."
            )
        if names:
            kinds = (*NEEDED, *FEATURES, *UNUSED)
            return {kind: path for kind in kinds if (path := place / f"{names[0]}_{kind}.txt").is_file()}
    return {}


def load_tu(files: dict[str, Path], seed: int = 0, name: str | None = None) -> GraphSet:
    """Reads a set of graphs.

    Features are ``node_attributes`` and, one-hot, ``node_labels``; a single 1 if there are neither. Labels and
    attributes of edges are left out. A node's id is its place within its graph. The split is drawn.

    Args:
        files: As :func:`tu_files` found them.
        seed: Seed of the split.
        name: Name of the set; that of its files if not given.

    Raises:
        DatasetError: A file is missing, or does not fit the others.
    """
    title = files["A"].name.removesuffix("_A.txt")
    for kind in NEEDED:
        if kind not in files:
            raise DatasetError(f"there is no {title}_{kind}.txt beside {title}_A.txt: graph classification needs it.")
    owner = _whole_numbers(files["graph_indicator"])[:, 0] - 1
    labels = _whole_numbers(files["graph_labels"])[:, 0]
    if owner.min() < 0 or owner.max() >= len(labels):
        raise DatasetError(
            f"{files['graph_indicator'].name} names graphs {owner.min() + 1} to {owner.max() + 1}, but "
            f"{files['graph_labels'].name} has {len(labels)} lines: expected one for each graph, from 1 on."
        )
    empty = np.setdiff1d(np.arange(len(labels)), owner) + 1
    if empty.size:
        raise DatasetError(f"{len(empty)} graph(s) of {title} have no node: {shortlist(empty.tolist())}.")
    classes = np.unique(labels)
    y = torch.from_numpy(np.searchsorted(classes, labels))
    graphs = _graphs(owner, _edges(files["A"], owner), _features(files, len(owner)), y)
    unused = [files[kind].name for kind in UNUSED if kind in files]
    if unused:
        _log.info("%s: left out, because models here see nodes and edges only", ", ".join(unused))
    train, val, test = stratified_split(y, GRAPH_FRACTIONS, seed)
    names = [str(label) for label in classes.tolist()]
    return GraphSet(graphs, train, val, test, num_classes=len(names), class_names=names, name=name or title)


def _graphs(
    owner: npt.NDArray[np.int64], edges: npt.NDArray[np.int64], x: npt.NDArray[np.float32], y: torch.Tensor
) -> list[Data]:
    """One ``Data`` per graph. Nodes keep their order; edges are simple, in both directions and sorted."""
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner, minlength=len(y))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within its own graph
    both = np.concatenate([edges, edges[::-1]], axis=1)
    both = both[:, both[0] != both[1]]
    keys = np.unique(np.stack([owner[both[0]], place[both[0]], place[both[1]]]), axis=1)
    ends = np.cumsum(np.bincount(keys[0], minlength=len(y)))[:-1]
    pieces = zip(np.split(order, np.cumsum(sizes)[:-1]), np.split(keys[1:], ends, axis=1), y, strict=True)
    return [
        Data(
            x=torch.from_numpy(x[inside]),
            edge_index=torch.from_numpy(np.ascontiguousarray(pairs)),
            y=label.view(1),
            node_id=torch.arange(len(inside)),
        )
        for inside, pairs, label in pieces
    ]


def _edges(file: Path, owner: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    edges = _whole_numbers(file)
    if edges.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if edges.shape[1] != 2:
        raise DatasetError(f"{file.name} has {edges.shape[1]} columns: expected two numbers of nodes per line.")
    if edges.min() < 1 or edges.max() > len(owner):
        raise DatasetError(
            f"{file.name} names nodes {edges.min()} to {edges.max()}, but there are {len(owner)}, numbered from 1."
        )
    across = np.flatnonzero(owner[edges[:, 0] - 1] != owner[edges[:, 1] - 1])
    if across.size:
        raise DatasetError(f"{file.name}: the edge in line {across[0] + 1} joins nodes of two graphs.")
    return np.ascontiguousarray(edges.T) - 1


def _features(files: dict[str, Path], num_nodes: int) -> npt.NDArray[np.float32]:
    columns = []
    for kind in FEATURES:
        if kind not in files:
            continue
        values = _numbers(files[kind])
        if len(values) != num_nodes:
            raise DatasetError(f"{files[kind].name} has {len(values)} lines, but there are {num_nodes} nodes.")
        if kind == "node_labels":  # names of kinds, not amounts
            values = np.concatenate([_one_hot(column, files[kind].name) for column in values.T], axis=1)
        columns.append(values.astype(np.float32))
    if not columns:
        _log.info("nodes have neither attributes nor labels: each gets a single 1 as its feature")
        return np.ones((num_nodes, 1), dtype=np.float32)
    return np.concatenate(columns, axis=1)


def _one_hot(labels: npt.NDArray[np.float64], file: str) -> npt.NDArray[np.bool_]:
    """A column for each number from the smallest to the largest, as PyG makes them, so that its models fit."""
    low, high = labels.min(), labels.max()
    if high - low >= MOST_KINDS:
        raise DatasetError(f"{file} has labels from {low:g} to {high:g}: too many kinds of nodes. Are they attributes?")
    return np.asarray(labels[:, None] == np.arange(low, high + 1))


def _whole_numbers(file: Path) -> npt.NDArray[np.int64]:
    values = _numbers(file)
    if (np.trunc(values) != values).any():
        raise DatasetError(f"{file.name}: expected whole numbers.")
    return values.astype(np.int64)


def _numbers(file: Path) -> npt.NDArray[np.float64]:
    """The numbers of a file, one row per line."""
    try:
        import pandas as pd
    except ImportError:
        raise DatasetError('reading tables needs pandas: pip install "agnncert[data]".') from None
    if not file.stat().st_size:
        return np.zeros((0, 1))
    try:
        values = pd.read_csv(file, header=None, sep=",", skipinitialspace=True, dtype=np.float64).to_numpy()
    except (ValueError, OSError) as error:
        raise DatasetError(f"{file.name} cannot be read: {error}") from error
    if not np.isfinite(values).all():
        line = int(np.argwhere(~np.isfinite(values))[0][0]) + 1
        raise DatasetError(f"{file.name}: a number is missing or infinite in line {line}.")
    return np.asarray(values)
