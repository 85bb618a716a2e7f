"""``load_tables``: reads a graph, or many, from a user's tables of nodes and edges."""

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import FORMATS, Table, read_table, shortlist
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, GraphSet, set_masks, stratified_split
from agnncert.datasets.tu import load_tu, tu_files
from agnncert.errors import DatasetError, did_you_mean

_log = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
Key = tuple[str, str]  # graph and node; in the node task the graph is ""
PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
LABEL_NAMES = ("y", "class", "labels", "target", "truth")


@dataclass(frozen=True)
class _Columns:
    """Names of the columns, and how to read them."""

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

    The table of nodes has an id and features per row, and for node classification a label and a part of the split. The
    table of edges has two ids per row. With a table of graphs the task is graph classification: that table has a graph
    id, a label and a part per row, and the other two have a column with the graph of each row.

    Args:
        folder: Holds ``nodes``, ``edges`` and, for graph classification, ``graphs``, each as .csv, .parquet
            or .npz (npz: one array per column; a matrix counts as several columns). Or a set of graphs in the format
            of the TU collection, ``NAME_A.txt`` and so on.
        nodes: Table of nodes, instead of the one in ``folder``.
        edges: Table of edges, instead of the one in ``folder``.
        graphs: Table of graphs, instead of the one in ``folder``.
        id: Column of node ids: whole numbers or text, unique (in the graph task, within a graph). Certificates name
            nodes by their ids, so ids should stay the same when the graph changes. ``007`` is not ``7``. Floats that
            may have been rounded are refused.
        label: Column of classes, numbers or text; an empty entry is an unlabelled row. ``None``: no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without such a column the split is drawn:
            30/10/60 % of the nodes or 50/20/30 % of the graphs, stratified.
        graph: Column of graph ids.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights; optional.
        features: Columns of features. Defaults to all remaining columns of the table of nodes.
        directed: Whether edges are directed. If not, each pair is joined in both directions.
        seed: Seed of the split, if it is drawn.
        name: Name of the dataset. Defaults to the folder's name.

    Returns:
        A ``Data`` or ``GraphSet`` like those of ``load_dataset``, with ``class_names`` in the order of the
        classes. Without labels a ``Data`` has neither ``y`` nor masks.

    Raises:
        DatasetError: Something is missing, duplicate, unknown or not a number.
    """
    if folder is not None and not (nodes or edges or graphs) and (files := tu_files(folder)):
        if features is not None or directed:
            raise DatasetError(f"{folder} is in the format of the TU collection: features= and directed= do not apply.")
        return load_tu(files, seed, name)
    columns = _Columns(id, label, split, graph, source, target, weight, features, directed, seed)
    given = {"nodes": nodes, "edges": edges, "graphs": graphs}
    text = [columns.id, columns.split, columns.graph, columns.source, columns.target, *([label] if label else [])]
    paths = {kind: _locate(folder, kind, path) for kind, path in given.items()}
    tables = {kind: read_table(path, text) for kind, path in paths.items() if path is not None}
    absent = [kind for kind in ("nodes", "edges") if kind not in tables]
    if absent:
        raise DatasetError(
            f"no table of {' and '.join(absent)} was given: pass a folder with nodes.csv and edges.csv (or "
            ".parquet, .npz), or nodes=... and edges=..."
        )
    title = name or Path(folder or tables["nodes"].path.parent).resolve().name
    if "graphs" in tables:
        return _graph_task(tables["nodes"], tables["edges"], tables["graphs"], columns, title)
    return _node_task(tables["nodes"], tables["edges"], columns, title)


def _locate(folder: PathLike | None, kind: str, given: PathLike | None) -> Path | None:
    """The file of one table: as given, or found in the folder."""
    if given is not None:
        return Path(given)
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise DatasetError(f"{folder} is not a folder: expected one with tables of nodes and edges.")
    options = [Path(folder) / (kind + suffix) for suffix in FORMATS]
    present = [path for path in options if path.exists()]
    if len(present) > 1:
        raise DatasetError(f"{folder} has {' and '.join(p.name for p in present)}: say which with {kind}=...")
    if not present and kind != "graphs":
        raise DatasetError(f"{folder} has no {' or '.join(path.name for path in options)}.")
    return present[0] if present else None


def _node_task(nodes: Table, edges: Table, columns: _Columns, title: str) -> Data:
    if columns.label not in (None, "label"):
        nodes.require(str(columns.label))
    data, keys = _whole(nodes, edges, columns, owner=None)
    data.name, data.node_id = title, node_ids([node for _, node in keys])
    if columns.label in nodes.columns and columns.label not in (columns.features or ()):
        data.y, data.class_names = class_rows(nodes, str(columns.label))
        data.num_classes = len(data.class_names)
        set_masks(data, split_rows(nodes, columns.split, data.y, NODE_FRACTIONS, columns.seed))
    return data


def _graph_task(nodes: Table, edges: Table, graphs: Table, columns: _Columns, title: str) -> GraphSet:
    for table in (nodes, edges, graphs):
        table.require(columns.graph)
    names = graphs.filled(columns.graph)
    require_unique(graphs, columns.graph, names)
    whole, keys = _whole(nodes, edges, columns, owner=columns.graph)
    pieces = _pieces(whole, keys, names, graphs)
    y, class_names = torch.full((len(names),), -1), None
    if columns.label is not None:
        graphs.require(columns.label)
        y, class_names = class_rows(graphs, columns.label)
        for piece, label in zip(pieces, y.tolist(), strict=True):
            piece.y = torch.tensor([label]) if label >= 0 else None
    train, val, test = split_rows(graphs, columns.split, y, GRAPH_FRACTIONS, columns.seed)
    classes = None if class_names is None else len(class_names)
    return GraphSet(pieces, train, val, test, num_classes=classes, class_names=class_names, name=title)


def _whole(nodes: Table, edges: Table, columns: _Columns, owner: str | None) -> tuple[Data, list[Key]]:
    """All nodes and edges in one graph, and the (graph, id) of every node."""
    row_of = node_rows(nodes, columns.id, owner)
    x = _features(nodes, columns, labelled=owner is None)
    if columns.weight != "weight":
        edges.require(columns.weight)
    weight = columns.weight if columns.weight in edges.columns else None
    edge_index, weights = edge_rows(edges, (columns.source, columns.target), weight, row_of, owner, columns.directed)
    whole = Data(x=x, edge_index=edge_index)
    if weights is not None:
        whole.edge_weight = weights
    return whole, list(row_of)


def _features(table: Table, columns: _Columns, labelled: bool) -> Tensor:
    features = columns.features
    if features is None:
        if labelled and columns.label is not None:
            table.refuse_lookalikes(columns.label, LABEL_NAMES, "label")
        if labelled:
            table.refuse_lookalikes(columns.split, ("part", "fold"), "split")
        features = [c for c in table.columns if c not in (columns.id, columns.label, columns.split, columns.graph)]
        if labelled and columns.label is not None and columns.label not in table.columns:
            _refuse_names(table, columns.label, features)
    for column in features:
        table.require(column)
    if not features:
        raise table.error(
            "there is no column of features. Add what is known about each node, or a column of ones. (Not the degree: "
            "one changed edge would then change the features in every subgraph.)"
        )
    return torch.from_numpy(table.numbers(features, "feature"))


def _refuse_names(table: Table, label: str, features: Sequence[str]) -> None:
    """Raises DatasetError if there is no label and a single column of text, which is probably the label."""
    texts = [column for column in features if table.frame[column].dtype.kind not in "iufb"]
    if len(texts) == 1:
        name, example = texts[0], table.text(texts[0])[0]
        raise table.error(
            f'there is no column "{label}", and "{name}" holds text such as "{example}". If that is the label, pass '
            f'label="{name}" (--set column.label={name}); if it is a feature, encode it as numbers; if neither, list '
            "all features with features=[...] (--set feature=NAME,NAME)."
        )


def _pieces(whole: Data, keys: list[Key], names: list[str], graphs: Table) -> list[Data]:
    """One ``Data`` per row of the table of graphs."""
    position = {name: k for k, name in enumerate(names)}
    unlisted = sorted({graph for graph, _ in keys} - position.keys())
    if unlisted:
        raise graphs.error(
            f"there are nodes of {len(unlisted)} graph(s) that are not listed here: {shortlist(unlisted)}. "
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


def node_rows(table: Table, column: str, owner: str | None) -> dict[Key, int]:
    """Row of every node; in the graph task ``owner`` is the column of graph ids."""
    if len(table) == 0:
        raise table.error("there is a header but no row: a graph needs nodes.")
    table.require(column)
    keys = list(zip(_owners(table, owner), table.filled(column), strict=True))
    require_unique(table, column, [node if owner is None else f"{node} of {graph}" for graph, node in keys])
    return {key: row for row, key in enumerate(keys)}


def edge_rows(
    table: Table, ends: tuple[str, str], weight: str | None, row_of: dict[Key, int], owner: str | None, directed: bool
) -> tuple[Tensor, Tensor | None]:
    """Edges as row numbers, sorted and without duplicates, and their weights if there is such a column."""
    owners = _owners(table, owner)
    pairs, unknown = [], []
    for column in ends:
        table.require(column)
        keys = list(zip(owners, table.filled(column), strict=True))
        unknown += [(k, f'"{key[1]}" (row {k})') for k, key in enumerate(keys, start=1) if key not in row_of]
        pairs.append([row_of.get(key, -1) for key in keys])
    if unknown:
        where = "the table of nodes" if owner is None else "that graph in the table of nodes"
        raise table.error(
            f"{len(unknown)} end(s) of edges are ids that are not in {where}: "
            f"{shortlist([text for _, text in sorted(unknown)])}. Add the nodes, or remove the edges."
        )
    weights = table.numbers([weight], "weight")[:, 0] if weight else np.ones(len(table), np.float32)
    edges, weights = _simple(table, np.array(pairs, dtype=np.int64), weights, directed)
    return torch.from_numpy(edges), torch.from_numpy(weights) if weight else None


def class_rows(table: Table, column: str) -> tuple[Tensor, list[str]]:
    """Class of every row (-1: unlabelled) and the names of the classes, in order."""
    entries = table.text(column)
    stated = {entry for entry in entries if entry}
    if not stated:
        raise table.error(f'column "{column}" is empty. Pass label=None if there are no labels.')
    names = names_in_order(stated)
    index = {entry: k for k, entry in enumerate(names)}
    return torch.tensor([index.get(entry, -1) for entry in entries]), names


def names_in_order(stated: set[str]) -> list[str]:
    """Names of classes in order: sorted as numbers if all are numbers, else as text."""
    numeric = all(entry.isascii() and entry.removeprefix("-").isdigit() for entry in stated)
    return sorted(stated, key=int) if numeric else sorted(stated)


def split_rows(table: Table, column: str, y: Tensor, fractions: Sequence[float], seed: int) -> tuple[Tensor, ...]:
    """Rows of the training, validation and test part: from the column, or drawn if there is no such column."""
    if column not in table.columns:
        return stratified_split(y, fractions, seed)
    return stated_parts(table, column, table.text(column), y)


def stated_parts(table: Table, column: str, texts: Iterable[str], y: Tensor) -> tuple[Tensor, ...]:
    """Rows of the training, validation and test part, from the entries of a column."""
    entries = [entry.strip().lower() for entry in texts]
    odd = sorted(set(entries) - PARTS.keys() - {""})
    if odd:
        raise table.error(f'column "{column}" says "{odd[0]}": {did_you_mean(odd[0], ("train", "val", "test"))}')
    part_of = torch.tensor([PARTS.get(entry, -1) for entry in entries])
    unlabelled = (((part_of == 0) | (part_of == 1)) & (y < 0)).nonzero().view(-1) + 1
    if len(unlabelled):
        raise table.error(
            f"{shortlist(unlabelled.tolist(), 'row')}: for training or validation but without a label. "
            "Label them, or leave their split empty."
        )
    return tuple((part_of == k).nonzero().view(-1) for k in range(3))


def require_unique(table: Table, column: str, entries: Sequence[str]) -> None:
    """Raises DatasetError if an entry occurs twice."""
    first: dict[str, int] = {}
    double = [(entry, row) for row, entry in enumerate(entries, start=1) if first.setdefault(entry, row) != row]
    if double:
        shown = [f'"{entry}" (rows {first[entry]} and {row})' for entry, row in double]
        raise table.error(
            f'{len(double)} id(s) in column "{column}" occur twice: {shortlist(shown)}. Ids must be unique.'
        )


def node_ids(names: list[str]) -> Tensor | list[str]:
    """Ids as a tensor if all of them are whole numbers, else as text."""
    encoded = encode_ids(names)
    return torch.from_numpy(encoded) if isinstance(encoded, np.ndarray) else names


def _owners(table: Table, owner: str | None) -> list[str]:
    return [""] * len(table) if owner is None else table.filled(owner)


def _simple(
    table: Table, pairs: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], directed: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Edges without self-loops and repetitions, in both directions unless directed, sorted."""
    rows = np.flatnonzero(pairs[0] != pairs[1])
    if len(rows) < len(table):
        _log.warning("%s: %d self-loop(s) left out", table.path.name, len(table) - len(rows))
    pairs, weights = pairs[:, rows], weights[rows]
    if not directed:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
        weights, rows = np.tile(weights, 2), np.tile(rows, 2)
    order = np.lexsort([rows, pairs[1], pairs[0]])
    pairs, weights, rows = pairs[:, order], weights[order], rows[order]
    repeated = (pairs[:, 1:] == pairs[:, :-1]).all(axis=0)
    conflict = np.flatnonzero(repeated & (weights[1:] != weights[:-1]))
    if len(conflict):
        first = int(conflict[0])
        tail = "" if directed else ", or pass directed=True if the two directions differ"
        raise table.error(
            f"rows {rows[first] + 1} and {rows[first + 1] + 1} join the same two nodes with different "
            f"weights. Keep one of them{tail}."
        )
    keep = np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), bool), ~repeated]))
    return np.ascontiguousarray(pairs[:, keep]), weights[keep]
