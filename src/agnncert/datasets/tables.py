"""``load_tables``: reads a graph, or many, from a user's tables of nodes and edges."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import one_hot, remove_self_loops, to_undirected, unbatch, unbatch_edge_index

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import FORMATS, Table, read_table, shortlist
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, GraphSet, set_masks, stratified_split
from agnncert.errors import DatasetError, did_you_mean

_log = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]
PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
LABEL_NAMES = ("y", "class", "labels", "target", "truth")


@dataclass(frozen=True)
class Columns:
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

    def weight_in(self, edges: Table) -> str | None:
        """The column of weights, or ``None`` if there is no such column; raises DatasetError if it was asked for."""
        if self.weight != "weight":
            edges.require(self.weight)
        return self.weight if self.weight in edges.columns else None


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
        folder: Holds ``nodes``, ``edges`` and, for graph classification, ``graphs``, each as .csv or .parquet. Or a set
            of graphs in the format of the TU collection, ``NAME_A.txt`` and so on.
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
        features: Columns of features, numbers or (in Parquet) lists of numbers of one length. Defaults to all remaining
            columns of the table of nodes.
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
        pieces, names = read_tu(files)
        train, val, test = stratified_split(torch.cat([piece.y for piece in pieces]), GRAPH_FRACTIONS, seed)
        title = name or files["A"].name.removesuffix("_A.txt")
        return GraphSet(pieces, train, val, test, num_classes=len(names), class_names=names, name=title)
    columns = Columns(id, label, split, graph, source, target, weight, features, directed, seed)
    given = {"nodes": nodes, "edges": edges, "graphs": graphs}
    text = [columns.id, columns.split, columns.graph, columns.source, columns.target, *([label] if label else [])]
    paths = {kind: _locate(folder, kind, path) for kind, path in given.items()}
    tables = {kind: read_table(path, text) for kind, path in paths.items() if path is not None}
    absent = [kind for kind in ("nodes", "edges") if kind not in tables]
    if absent:
        raise DatasetError(
            f"no table of {' and '.join(absent)} was given: pass a folder with nodes.csv and edges.csv (or "
            ".parquet), or nodes=... and edges=..."
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


def _node_task(nodes: Table, edges: Table, columns: Columns, title: str) -> Data:
    labelled = has_labels(nodes, columns)
    rows, data = _whole(nodes, edges, columns)
    data.name, data.node_id = title, node_ids(rows.names)
    if labelled:
        data.y, data.class_names = class_rows(nodes, str(columns.label))
        data.num_classes = len(data.class_names)
        set_masks(data, split_rows(nodes, columns.split, data.y, NODE_FRACTIONS, columns.seed))
    return data


def _graph_task(nodes: Table, edges: Table, graphs: Table, columns: Columns, title: str) -> GraphSet:
    for table in (nodes, edges, graphs):
        table.require(columns.graph)
    names = list(NodeRows(graphs, columns.graph).names)
    rows, whole = _whole(nodes, edges, columns, owner=columns.graph)
    pieces = _pieces(whole, rows, [str(name) for name in names], graphs)
    y, class_names = torch.full((len(names),), -1), None
    if columns.label is not None:
        graphs.require(columns.label)
        y, class_names = class_rows(graphs, columns.label)
        for piece, label in zip(pieces, y.tolist(), strict=True):
            piece.y = torch.tensor([label]) if label >= 0 else None
    train, val, test = split_rows(graphs, columns.split, y, GRAPH_FRACTIONS, columns.seed)
    classes = None if class_names is None else len(class_names)
    return GraphSet(pieces, train, val, test, num_classes=classes, class_names=class_names, name=title)


def _whole(nodes: Table, edges: Table, columns: Columns, owner: str | None = None) -> tuple["NodeRows", Data]:
    """All nodes and edges in one graph."""
    rows = NodeRows(nodes, columns.id, owner)
    x = nodes.numbers(feature_columns(nodes, columns, labelled=owner is None), "feature")
    ends, weight = rows.ends(edges, columns), columns.weight_in(edges)
    loops = int((ends[0] == ends[1]).sum())
    if loops:
        _log.warning("%s: %d self-loop(s) left out", edges.path.name, loops)
    weights = edges.numbers([weight], "weight")[:, 0] if weight else None
    if not columns.directed:
        ends, weights = np.hstack([ends, ends[::-1]]), None if weights is None else np.tile(weights, 2)
    apart, total = ends[0] != ends[1], len(rows.names)
    keys, weights = distinct((ends[0] * total + ends[1])[apart], None if weights is None else weights[apart], total)
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(np.stack(np.divmod(keys, total))))
    if weights is not None:
        data.edge_weight = torch.from_numpy(weights)
    return rows, data


def has_labels(nodes: Table, columns: Columns) -> bool:
    """Whether the table of nodes has labels; raises DatasetError if it lacks a column that was asked for."""
    if columns.label not in (None, "label"):
        nodes.require(str(columns.label))
    return columns.label in nodes.columns and columns.label not in (columns.features or ())


def feature_columns(table: Table, columns: Columns, labelled: bool) -> Sequence[str]:
    """The columns of features; ``labelled`` says whether the table may have labels and a split, which are none."""
    features = columns.features
    if features is None:
        features = [c for c in table.columns if c not in (columns.id, columns.label, columns.split, columns.graph)]
        if labelled and columns.label is not None:
            table.refuse_lookalikes(columns.label, LABEL_NAMES, "label")
            _refuse_names(table, columns.label, features)
        if labelled:
            table.refuse_lookalikes(columns.split, ("part", "fold"), "split")
    for column in features:
        table.require(column)
    if not features:
        raise table.error(
            "there is no column of features. Add what is known about each node, or a column of ones. (Not the degree: "
            "one changed edge would then change the features in every subgraph.)"
        )
    return features


def _refuse_names(table: Table, label: str, features: Sequence[str]) -> None:
    """Raises DatasetError if there is no label and a single column of text, which is probably the label."""
    first = {column: next(iter(table.frame[column].dropna()), None) for column in features}
    texts = [column for column, entry in first.items() if isinstance(entry, str)]
    if label not in table.columns and len(texts) == 1:
        raise table.error(
            f'there is no column "{label}", and "{texts[0]}" holds text such as "{first[texts[0]]}". If that is the '
            f'label, pass label="{texts[0]}" (--set column.label={texts[0]}); if it is a feature, encode it as '
            "numbers; if neither, list all features with features=[...] (--set feature=NAME,NAME)."
        )


def _pieces(whole: Data, rows: "NodeRows", names: list[str], graphs: Table) -> list[Data]:
    """One ``Data`` per row of the table of graphs."""
    position = {name: k for k, name in enumerate(names)}
    unlisted = sorted(set(rows.owners) - position.keys())
    if unlisted:
        raise graphs.error(
            f"there are nodes of {len(unlisted)} graph(s) that are not listed here: {shortlist(unlisted)}. "
            "Add a row for each, or remove their nodes."
        )
    batch = torch.tensor([position[graph] for graph in rows.owners])
    sizes = torch.bincount(batch, minlength=len(names))
    empty = [names[k] for k in (sizes == 0).nonzero().view(-1).tolist()]
    if empty:
        raise graphs.error(f"{len(empty)} graph(s) have no node: {shortlist(empty)}. Remove them.")
    order = torch.argsort(batch, stable=True)
    place = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)))
    edge_order = torch.argsort(batch[whole.edge_index[0]], stable=True)
    edges = unbatch_edge_index(place[whole.edge_index[:, edge_order]], batch[order], len(names))
    positions = torch.split(edge_order, [part.size(1) for part in edges])
    pieces = []
    for name, inside, part, kept in zip(names, torch.split(order, sizes.tolist()), edges, positions, strict=True):
        piece = Data(x=whole.x[inside], edge_index=part.contiguous(), graph_id=name)
        piece.node_id = node_ids([rows.names[row] for row in inside.tolist()])
        if "edge_weight" in whole:
            piece.edge_weight = whole.edge_weight[kept]
        pieces.append(piece)
    return pieces


class NodeRows:
    """Row of every node, found by its id or, in the graph task, by its graph and id.

    Args:
        table: The table of nodes.
        column: The column of ids.
        owner: Graph task: the column of graph ids.

    Raises:
        DatasetError: There is no row, or an id is missing or occurs twice.
    """

    def __init__(self, table: Table, column: str, owner: str | None = None) -> None:
        table.require(column)
        if len(table) == 0:
            raise table.error("there is a header but no row: a graph needs nodes.")
        self.names = table.ids(column)
        self.owner, self.owners = owner, [] if owner is None else table.filled(owner)
        self._index = self._indexed(self.names, self.owners)
        if self._index.has_duplicates:
            first: dict[Any, int] = {}
            rows = [(key, first.setdefault(key, row), row) for row, key in enumerate(self._index, start=1)]
            shown = [
                f'"{key if owner is None else " of ".join(key[::-1])}" (rows {known} and {row})'
                for key, known, row in rows
                if known < row
            ]
            raise table.error(
                f'{len(shown)} id(s) in column "{column}" occur twice: {shortlist(shown)}. Ids must be unique.'
            )

    def _indexed(self, names: Any, owners: list[str]) -> Any:
        import pandas as pd

        if self.owner is not None:
            return pd.MultiIndex.from_arrays([owners, [str(name) for name in names]])
        return pd.Index(names, dtype=None if isinstance(names, np.ndarray) else object)

    @cached_property
    def _texts(self) -> Any:
        return self._index.map(str)

    def ends(self, table: Table, columns: Columns) -> Rows:
        """Rows of the two ends of every edge in a table, shape ``[2, num_edges]``; raises DatasetError if unknown."""
        owners = [] if self.owner is None else table.filled(self.owner)
        for column in (columns.source, columns.target):
            table.require(column)
        named = [table.ids(column) for column in (columns.source, columns.target)]
        rows = np.stack([self._find(names, owners) for names in named])
        unknown = np.argwhere(rows.T < 0).tolist()
        if unknown:
            where = "the table of nodes" if self.owner is None else "that graph in the table of nodes"
            shown = [f'"{named[end][row]}" (row {table.start + row + 1})' for row, end in unknown]
            raise table.error(
                f"{len(unknown)} end(s) of edges are ids that are not in {where}: {shortlist(shown)}. Add the nodes, "
                "or remove the edges."
            )
        return rows

    def _find(self, names: Any, owners: list[str]) -> Rows:
        mixed = isinstance(names, np.ndarray) != isinstance(self.names, np.ndarray)
        if self.owner is None and mixed:  # 7 and "7" are one id
            return np.asarray(self._texts.get_indexer([str(name) for name in names]))
        return np.asarray(self._index.get_indexer(self._indexed(names, owners)))


def class_rows(table: Table, column: str) -> tuple[Tensor, list[str]]:
    """Class of every row (-1: unlabelled) and the names of the classes, in order."""
    entries = table.text(column)
    stated = {entry for entry in entries if entry}
    if not stated:
        raise table.error(f'column "{column}" is empty. Pass label=None if there are no labels.')
    numeric = all(entry.isascii() and entry.removeprefix("-").isdigit() for entry in stated)
    names = sorted(stated, key=int) if numeric else sorted(stated)
    index = {entry: k for k, entry in enumerate(names)}
    return torch.tensor([index.get(entry, -1) for entry in entries]), names


def split_rows(table: Table, column: str, y: Tensor, fractions: Sequence[float], seed: int) -> tuple[Tensor, ...]:
    """Rows of the training, validation and test part: from the column, or drawn if there is no such column."""
    if column not in table.columns:
        return stratified_split(y, fractions, seed)
    entries = [entry.strip().lower() for entry in table.text(column)]
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


def node_ids(names: Rows | list[str]) -> Tensor | list[str]:
    """Ids as a tensor if all of them are whole numbers, else as text."""
    encoded = encode_ids(names)
    return torch.from_numpy(encoded) if isinstance(encoded, np.ndarray) else list(names)


def distinct(keys: Rows, weights: Weights | None, total: int) -> tuple[Rows, Weights | None]:
    """Pairs of rows in ascending order, each once, with their weights.

    Args:
        keys: Each pair as one number, first row × ``total`` + second row.
        weights: Weight of each pair, or ``None``.
        total: Number of rows.

    Raises:
        DatasetError: The same pair has two weights.
    """
    if weights is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
    again = keys[1:] == keys[:-1]
    if weights is not None and (odd := np.flatnonzero(again & (weights[1:] != weights[:-1]))).size:
        first, second = divmod(int(keys[odd[0]]), total)
        raise DatasetError(
            f"the nodes in rows {first + 1} and {second + 1} of the table of nodes are joined twice, with different "
            "weights: keep one of the edges, or pass directed=True if the two directions differ."
        )
    kept = np.append(np.ones(min(1, len(keys)), bool), ~again)
    return keys[kept], None if weights is None else weights[kept]


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


def read_tu(files: dict[str, Path]) -> tuple[list[Data], list[str]]:
    """Reads the graphs, and the names of their classes, from the files that ``tu_files`` found.

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
    return graphs, [str(label) for label in classes.tolist()]


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
