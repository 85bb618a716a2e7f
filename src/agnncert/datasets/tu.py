"""Folders in the format of the TU collection: ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and so on, without headers.

PyG's ``read_tu_data`` checks nothing and drops a last line without a line break, so files are read and checked here.
"""

import logging
import os
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import one_hot, remove_self_loops, to_undirected, unbatch, unbatch_edge_index

from agnncert.datasets.columns import shortlist
from agnncert.datasets.splits import GRAPH_FRACTIONS, GraphSet, stratified_split
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)

NEEDED, FEATURES = ("A", "graph_indicator", "graph_labels"), ("node_attributes", "node_labels")
MOST_LABELS = 10_000  # of nodes; larger numbers are taken for attributes


def tu_files(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """The files ``NAME_*.txt`` in ``folder`` or its ``raw``, by the end of the name; empty without ``NAME_A.txt``."""
    for place in (Path(folder), Path(folder) / "raw"):
        names = sorted(path.name.removesuffix("_A.txt") for path in place.glob("*_A.txt"))
        _require(len(names) < 2, f"{place} holds several sets of graphs, {shortlist(names)}: use a folder for each.")
        if names:
            return {path.stem[len(names[0]) + 1 :]: path for path in sorted(place.glob(f"{names[0]}_*.txt"))}
    return {}


def load_tu(files: dict[str, Path], seed: int = 0, name: str | None = None) -> GraphSet:
    """Reads a set of graphs from the files that ``tu_files`` found.

    Features are ``node_attributes`` and one-hot ``node_labels``, or a single 1 without both. Edge labels and edge
    attributes are ignored. A node's id is its position in its graph. The split is drawn with ``seed``.

    Raises:
        DatasetError: A file is missing, or does not fit the others.
    """
    title = files["A"].name.removesuffix("_A.txt")
    for kind in NEEDED:
        _require(kind in files, f"there is no {title}_{kind}.txt beside {title}_A.txt: graph classification needs it.")
    unused = [path.name for kind, path in files.items() if kind not in NEEDED + FEATURES]
    if unused:
        _log.info("%s: left out, because models here see nodes and edges only", ", ".join(unused))
    edges, owner, labels = (_numbers(files[kind]).long() for kind in NEEDED)
    owner, (classes, y) = owner[:, 0] - 1, torch.unique(labels[:, 0], return_inverse=True)
    _require(
        torch.equal(torch.unique_consecutive(owner), torch.arange(len(y))),
        f"{title}_graph_labels.txt has {len(y)} lines, so {title}_graph_indicator.txt must name graphs 1 to {len(y)}, "
        f"one after the other, each at least once; it names {owner.min() + 1} to {owner.max() + 1}.",
    )
    _require(edges.size(1) == 2, f"{title}_A.txt has {edges.size(1)} columns: expected two numbers of nodes per line.")
    low, high = int(edges.min()), int(edges.max())
    inside = f"{title}_A.txt names nodes {low} to {high}, but there are {len(owner)}, numbered from 1."
    _require(low >= 1 and high <= len(owner), inside)
    across = owner[edges[:, 0] - 1] != owner[edges[:, 1] - 1]
    line = int(across.int().argmax()) + 1
    _require(not across.any(), f"{title}_A.txt: the edge in line {line} joins nodes of two graphs.")
    edge_index = to_undirected(remove_self_loops(edges.t() - 1)[0], num_nodes=len(owner))
    features = unbatch(_features(files, len(owner)), owner, batch_size=len(y))
    parts = zip(features, unbatch_edge_index(edge_index, owner, len(y)), y.split(1), strict=True)
    graphs = [Data(x=x, edge_index=e.contiguous(), y=label, node_id=torch.arange(len(x))) for x, e, label in parts]
    train, val, test = stratified_split(y, GRAPH_FRACTIONS, seed)
    names = [str(label) for label in classes.tolist()]
    return GraphSet(graphs, train, val, test, num_classes=len(names), class_names=names, name=name or title)


def _features(files: dict[str, Path], num_nodes: int) -> torch.Tensor:
    columns = []
    for kind in FEATURES:
        if kind not in files:
            continue
        values, file = _numbers(files[kind], whole=kind == "node_labels"), files[kind].name
        _require(len(values) == num_nodes, f"{file} has {len(values)} lines, but there are {num_nodes} nodes.")
        if kind == "node_labels":  # a column for each number from the smallest to the largest, as PyG makes them
            values = (values - values.min(0).values).long()
            _require(int(values.max()) < MOST_LABELS, f"{file} has too many kinds of nodes. Are they attributes?")
            values = torch.cat([one_hot(column) for column in values.t()], 1)
        columns.append(values.float())
    if not columns:
        _log.info("nodes have neither attributes nor labels: each gets a single 1 as its feature")
    return torch.cat(columns, 1) if columns else torch.ones(num_nodes, 1)


def _numbers(file: Path, whole: bool = True) -> torch.Tensor:
    """The numbers of a file, one row per line."""
    _require(file.stat().st_size > 0, f"{file.name} is empty.")
    try:
        values = torch.from_numpy(np.loadtxt(file, delimiter=",", ndmin=2))
    except (ValueError, OSError) as error:
        raise DatasetError(f"{file.name} cannot be read: {error}") from error
    odd = ~values.isfinite().all(1)
    _require(not odd.any(), f"{file.name}: a number is missing or infinite in line {int(odd.int().argmax()) + 1}.")
    _require(not whole or bool((values.trunc() == values).all()), f"{file.name}: expected whole numbers.")
    return values


def _require(holds: bool | torch.Tensor, message: str) -> None:
    if not holds:
        raise DatasetError(message)
