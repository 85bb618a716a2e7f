"""Graphs in the format of the TU collection: ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and so on."""

import logging
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import one_hot, remove_self_loops, to_undirected, unbatch, unbatch_edge_index

from agnncert.datasets.columns import shortlist
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)
NEEDED = ("A", "graph_indicator", "graph_labels")
FEATURES = ("node_attributes", "node_labels")
MOST_LABELS = 10_000  # of nodes; larger numbers are taken for attributes


class LabelledGraphs(NamedTuple):
    """Graphs with their classes ``y``, and the names of the classes."""

    graphs: list[Data]
    class_names: list[str]


def tu_files(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Returns the files ``NAME_*.txt`` in a folder or its ``raw``, by the end of the name.

    There are none without ``NAME_A.txt``.

    Raises:
        DatasetError: There are several such sets.
    """
    for place in (Path(folder), Path(folder) / "raw"):
        names = sorted(path.name.removesuffix("_A.txt") for path in place.glob("*_A.txt"))
        _require(len(names) < 2, f"{place} holds several sets of graphs, {shortlist(names)}: use a folder for each.")
        if names:
            name = names[0]
            return {path.stem[len(name) + 1 :]: path for path in sorted(place.glob(f"{name}_*.txt"))}
    return {}


def read_tu(files: dict[str, Path]) -> LabelledGraphs:
    """Reads graphs from the files that ``tu_files`` returns.

    Features are ``node_attributes`` and one-hot ``node_labels``, or a single 1 without both. Edge labels and edge
    attributes are ignored. A node's id is its position in its graph. PyG's ``read_tu_data`` checks nothing, drops a
    last line without a line break, and fails if the last graph has no edge.

    Raises:
        DatasetError: A file is missing, or does not fit the others.
    """
    title = files["A"].name.removesuffix("_A.txt")
    for kind in NEEDED:
        _require(kind in files, f"there is no {title}_{kind}.txt beside {title}_A.txt: graph classification needs it.")
    unused = [path.name for kind, path in files.items() if kind not in NEEDED + FEATURES]
    if unused:
        _log.info("%s: left out, because models here see nodes and edges only", ", ".join(unused))
    edges = _numbers(files["A"]).long()
    graph_of_node = _numbers(files["graph_indicator"])[:, 0].long() - 1
    classes, y = torch.unique(_numbers(files["graph_labels"])[:, 0].long(), return_inverse=True)
    _check_graphs(title, graph_of_node, len(y))
    _check_edges(title, edges, graph_of_node)
    num_nodes = len(graph_of_node)
    edge_index = to_undirected(remove_self_loops(edges.t() - 1)[0], num_nodes=num_nodes)
    parts = zip(
        unbatch(_features(files, num_nodes), graph_of_node, batch_size=len(y)),
        unbatch_edge_index(edge_index, graph_of_node, len(y)),
        y.split(1),
        strict=True,
    )
    graphs = [
        Data(x=x, edge_index=edge_index.contiguous(), y=label, node_id=torch.arange(len(x)))
        for x, edge_index, label in parts
    ]
    return LabelledGraphs(graphs, [str(label) for label in classes.tolist()])


def _check_graphs(title: str, graph_of_node: Tensor, num_graphs: int) -> None:
    """Raises DatasetError if nodes are not listed graph by graph."""
    _require(
        torch.equal(torch.unique_consecutive(graph_of_node), torch.arange(num_graphs)),
        f"{title}_graph_labels.txt has {num_graphs} lines, so {title}_graph_indicator.txt must name graphs 1 to "
        f"{num_graphs}, one after the other, each at least once; it names {graph_of_node.min() + 1} to "
        f"{graph_of_node.max() + 1}.",
    )


def _check_edges(title: str, edges: Tensor, graph_of_node: Tensor) -> None:
    """Raises DatasetError if an edge names an unknown node, or nodes of two graphs."""
    _require(edges.size(1) == 2, f"{title}_A.txt has {edges.size(1)} columns: expected two numbers of nodes per line.")
    low = int(edges.min())
    high = int(edges.max())
    _require(
        low >= 1 and high <= len(graph_of_node),
        f"{title}_A.txt names nodes {low} to {high}, but there are {len(graph_of_node)}, numbered from 1.",
    )
    crosses = graph_of_node[edges[:, 0] - 1] != graph_of_node[edges[:, 1] - 1]
    line = int(crosses.int().argmax()) + 1
    _require(not crosses.any(), f"{title}_A.txt: the edge in line {line} joins nodes of two graphs.")


def _features(files: dict[str, Path], num_nodes: int) -> Tensor:
    """Returns the features of all nodes."""
    columns = []
    for kind in FEATURES:
        if kind not in files:
            continue
        values = _numbers(files[kind], whole=kind == "node_labels")
        file = files[kind].name
        _require(len(values) == num_nodes, f"{file} has {len(values)} lines, but there are {num_nodes} nodes.")
        columns.append(_one_hot(values, file) if kind == "node_labels" else values.float())
    if not columns:
        _log.info("nodes have neither attributes nor labels: each gets a single 1 as its feature")
        return torch.ones(num_nodes, 1)
    return torch.cat(columns, dim=1)


def _one_hot(labels: Tensor, file: str) -> Tensor:
    """Returns a column for each number from the smallest to the largest, as PyG makes them."""
    labels = (labels - labels.min(0).values).long()
    _require(int(labels.max()) < MOST_LABELS, f"{file} has too many kinds of nodes. Are they attributes?")
    return torch.cat([one_hot(column) for column in labels.t()], dim=1).float()


def _numbers(file: Path, whole: bool = True) -> Tensor:
    """Returns the numbers of a file, one row per line."""
    _require(file.stat().st_size > 0, f"{file.name} is empty.")
    try:
        values = torch.from_numpy(np.loadtxt(file, delimiter=",", ndmin=2))
    except (ValueError, OSError) as error:
        raise DatasetError(f"{file.name} cannot be read: {error}") from error
    odd = ~values.isfinite().all(1)
    _require(not odd.any(), f"{file.name}: a number is missing or infinite in line {int(odd.int().argmax()) + 1}.")
    _require(not whole or bool((values.trunc() == values).all()), f"{file.name}: expected whole numbers.")
    return values


def _require(holds: bool | Tensor, message: str) -> None:
    if not holds:
        raise DatasetError(message)
