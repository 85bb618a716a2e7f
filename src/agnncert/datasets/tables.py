"""A user's own data: tables of nodes and edges, checked, and explained where something is off."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets.columns import FORMATS, Table, read_table, shortlist
from agnncert.datasets.graphset import GraphSet
from agnncert.datasets.rows import class_rows, edge_rows, node_ids, node_rows, require_unique, split_rows
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, set_masks
from agnncert.errors import DatasetError

PathLike = str | os.PathLike[str]
_LABEL_NAMES = ("y", "class", "labels", "target", "truth")


@dataclass(frozen=True)
class _Wanted:
    """What the columns are called, and what to make of them."""

    id: str
    label: str | None
    split: str
    graph: str
    source: str
    target: str
    weight: str
    features: Sequence[str] | None
    directed: bool
    seed: int

    @property
    def text(self) -> list[str]:
        """Columns that hold names rather than numbers."""
        names = [self.id, self.split, self.graph, self.source, self.target]
        return [*names, *([self.label] if self.label else [])]


def load_tables(
    folder: PathLike | None = None,
    *,
    nodes: PathLike | None = None,
    edges: PathLike | None = None,
    graphs: PathLike | None = None,
    id: str = "id",
    label: str | None = "label",
    split: str = "split",
    graph: str = "graph",
    source: str = "source",
    target: str = "target",
    weight: str = "weight",
    features: Sequence[str] | None = None,
    directed: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Data | GraphSet:
    """Reads a graph, or many, from tables.

    The table of nodes has an id per row, features, and for node classification a label and a part of the
    split; the table of edges names two ids per row. With a table of graphs the task is graph classification:
    it has a graph id, a label and a part per row, and the other two say which graph each row belongs to.

    Args:
        folder: Holds ``nodes``, ``edges`` and, for graph classification, ``graphs``, each as .csv, .parquet
            or .npz (npz: one array per column; a matrix counts as several columns).
        nodes: Table of nodes, instead of the one in ``folder``.
        edges: Table of edges, likewise.
        graphs: Table of graphs, likewise.
        id: Column of node ids: whole numbers or text, unique (in the graph task, within a graph). Ids are
            what a certificate speaks about, so they should stay the same when the graph changes.
        label: Column of classes, numbers or text; an empty entry is an unlabelled row. ``None``: no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without such a column the split is drawn:
            30/10/60 % of the nodes or 50/20/30 % of the graphs, stratified.
        graph: Column of graph ids.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights; optional.
        features: Columns of features; all remaining ones of the table of nodes if not given.
        directed: Whether an edge goes one way only. If not, each pair is joined in both directions.
        seed: Seed of a split that is drawn.
        name: Name of the dataset; the folder's name if not given.

    Returns:
        A ``Data`` or ``GraphSet`` like those of ``load_dataset``, with ``class_names`` in the order of the
        classes. Without labels a ``Data`` has neither ``y`` nor masks.

    Raises:
        DatasetError: Something is missing, double, unknown or not a number; says what, where and what to do.
    """
    want = _Wanted(id, label, split, graph, source, target, weight, features, directed, seed)
    given = {"nodes": nodes, "edges": edges, "graphs": graphs}
    paths = {kind: _locate(folder, kind, path) for kind, path in given.items()}
    tables = {kind: read_table(path, want.text) for kind, path in paths.items() if path is not None}
    absent = [kind for kind in ("nodes", "edges") if kind not in tables]
    if absent:
        raise DatasetError(
            f"no table of {' and '.join(absent)} was given: pass a folder with nodes.csv and edges.csv (or "
            ".parquet, .npz), or nodes=... and edges=..."
        )
    title = name or Path(folder or tables["nodes"].path.parent).resolve().name
    if "graphs" in tables:
        return _graph_task(tables["nodes"], tables["edges"], tables["graphs"], want, title)
    return _node_task(tables["nodes"], tables["edges"], want, title)


def _locate(folder: PathLike | None, kind: str, given: PathLike | None) -> Path | None:
    """The file of one table: as given, or found in the folder."""
    if given is not None:
        return Path(given)
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise DatasetError(f"{folder} is no folder: expected one with tables of nodes and edges.")
    options = [Path(folder) / (kind + suffix) for suffix in FORMATS]
    found = [path for path in options if path.exists()]
    if len(found) > 1:
        raise DatasetError(f"{folder} has {' and '.join(p.name for p in found)}: say which with {kind}=...")
    if not found and kind != "graphs":
        raise DatasetError(f"{folder} has no {' or '.join(path.name for path in options)}.")
    return found[0] if found else None


def _node_task(nodes: Table, edges: Table, want: _Wanted, title: str) -> Data:
    if want.label not in (None, "label"):
        nodes.require(str(want.label))
    data, keys = _whole(nodes, edges, want, owner=None)
    data.name, data.node_id = title, node_ids([node for _, node in keys])
    if want.label in nodes.columns and want.label not in (want.features or ()):
        data.y, data.class_names = class_rows(nodes, str(want.label))
        data.num_classes = len(data.class_names)
        set_masks(data, split_rows(nodes, want.split, data.y, NODE_FRACTIONS, want.seed))
    return data


def _graph_task(nodes: Table, edges: Table, graphs: Table, want: _Wanted, title: str) -> GraphSet:
    for table in (nodes, edges, graphs):
        table.require(want.graph)
    names = graphs.filled(want.graph)
    require_unique(graphs, want.graph, names)
    whole, keys = _whole(nodes, edges, want, owner=want.graph)
    pieces = _pieces(whole, keys, names, graphs)
    y, class_names = torch.full((len(names),), -1), None
    if want.label is not None:
        graphs.require(want.label)
        y, class_names = class_rows(graphs, want.label)
        for piece, label in zip(pieces, y.tolist(), strict=True):
            piece.y = torch.tensor([label]) if label >= 0 else None
    train, val, test = split_rows(graphs, want.split, y, GRAPH_FRACTIONS, want.seed)
    classes = None if class_names is None else len(class_names)
    return GraphSet(pieces, train, val, test, num_classes=classes, class_names=class_names, name=title)


def _whole(
    nodes: Table, edges: Table, want: _Wanted, owner: str | None
) -> tuple[Data, list[tuple[str, str]]]:
    """All nodes and edges in one graph, and the (graph, id) of every node."""
    row_of = node_rows(nodes, want.id, owner)
    x = _features(nodes, want, labelled=owner is None)
    if want.weight != "weight":
        edges.require(want.weight)
    weight = want.weight if want.weight in edges.columns else None
    edge_index, weights = edge_rows(edges, (want.source, want.target), weight, row_of, owner, want.directed)
    whole = Data(x=x, edge_index=edge_index)
    if weights is not None:
        whole.edge_weight = weights
    return whole, list(row_of)


def _features(table: Table, want: _Wanted, labelled: bool) -> Tensor:
    features = want.features
    if features is None:
        if labelled and want.label is not None:
            table.refuse_lookalikes(want.label, _LABEL_NAMES, "label")
        if labelled:
            table.refuse_lookalikes(want.split, ("part", "fold"), "split")
        features = [c for c in table.columns if c not in (want.id, want.label, want.split, want.graph)]
    for column in features:
        table.require(column)
    if not features:
        raise table.error(
            "there is no column of features. Add what is known about each node, or a column of ones. (Not "
            "the degree: it would carry one changed edge into every subgraph.)"
        )
    return torch.from_numpy(table.numbers(features, "feature"))


def _pieces(whole: Data, keys: list[tuple[str, str]], names: list[str], graphs: Table) -> list[Data]:
    """One ``Data`` per row of the table of graphs."""
    position = {name: k for k, name in enumerate(names)}
    strangers = sorted({graph for graph, _ in keys} - position.keys())
    if strangers:
        raise graphs.error(
            f"there are nodes of {len(strangers)} graph(s) that are not listed here: {shortlist(strangers)}. "
            "Add a row for each, or remove their nodes."
        )
    batch = torch.tensor([position[graph] for graph, _ in keys])
    sizes = torch.bincount(batch, minlength=len(names))
    empty = [names[k] for k in (sizes == 0).nonzero().view(-1).tolist()]
    if empty:
        raise graphs.error(f"{len(empty)} graph(s) have no node: {shortlist(empty)}. Remove them.")
    rows = torch.argsort(batch, stable=True)
    place = torch.empty_like(rows).index_copy_(0, rows, torch.arange(len(rows)))
    place -= (torch.cumsum(sizes, 0) - sizes)[batch]  # position of every row within its graph
    edge_batch = batch[whole.edge_index[0]]
    edge_sizes = torch.bincount(edge_batch, minlength=len(names))
    edge_order = torch.argsort(edge_batch, stable=True)
    pieces = []
    parts = zip(torch.split(rows, sizes.tolist()), torch.split(edge_order, edge_sizes.tolist()), strict=True)
    for name, (inside, edges) in zip(names, parts, strict=True):
        piece = Data(x=whole.x[inside], edge_index=place[whole.edge_index[:, edges]], graph_id=name)
        piece.node_id = node_ids([keys[row][1] for row in inside.tolist()])
        if "edge_weight" in whole:
            piece.edge_weight = whole.edge_weight[edges]
        pieces.append(piece)
    return pieces
