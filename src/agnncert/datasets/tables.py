"""``load_tables``: reads a graph, or many, from a user's tables of nodes and edges."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import one_hot, remove_self_loops, to_undirected, unbatch, unbatch_edge_index

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import FORMATS, Table, read_table, shortlist
from agnncert.datasets.encoding import Encode, Encoding, encoded, encoding_named, fit_columns, times, trusted_rows
from agnncert.datasets.splits import (
    GRAPH_FRACTIONS,
    NODE_FRACTIONS,
    GraphSet,
    set_masks,
    split_by_time,
    stratified_split,
)
from agnncert.errors import DatasetError, did_you_mean

_log = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]
PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
LABEL_NAMES = ("y", "class", "labels", "target", "truth")
REPEATED = ("sum", "mean")  # what becomes of the values of repeated edges
Given = ParamSpec("Given")
Found = TypeVar("Found")


class Problems(list[str]):
    """A list of all errors in tables: a step that fails adds its error, and the next step is tried."""

    def tried(self, step: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found | None:
        """What a step returns, or None if it raises a DatasetError, which is noted."""
        try:
            return step(*args, **kwargs)
        except DatasetError as error:
            self.extend(str(error).split("\n"))
            return None

    def refuse(self) -> None:
        """Raises DatasetError with everything that was noted."""
        if self:
            head = f"{len(self)} problems with the tables:\n- " if len(self) > 1 else ""
            raise DatasetError(head + "\n- ".join(dict.fromkeys(self)))


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
    time: str | None = None
    edge_features: Sequence[str] | None = None
    encode: Encode = None
    repeated: str | None = None
    trusted: str | None = None

    def weight_in(self, edges: Table) -> str | None:
        """The column of weights, or ``None`` if there is no such column; raises DatasetError if it was asked for."""
        if self.weight != "weight":
            edges.require(self.weight)
        return self.weight if self.weight in edges.columns else None

    def other_in(self, edges: Table) -> list[str]:
        """Columns of the table of edges that are neither ids nor weights."""
        known = (self.source, self.target, self.weight, self.graph, (self.trusted or "").partition("<")[0].strip())
        return [column for column in edges.columns if column not in known]

    def attributes_in(self, edges: Table) -> list[str]:
        """The columns of ``edge_attr``; raises DatasetError if a column is neither used nor left out on purpose."""
        others = self.other_in(edges)
        if self.edge_features is None and others:
            raise edges.error(
                f"{len(others)} column(s) of the edges are not used: {shortlist(others)}. Keep them as edge_attr with "
                f"edge_features={others[:3]} (--set edge_feature={','.join(others[:3])}), or leave them out with "
                "edge_features=[] (--set edge_feature=none)."
            )
        for column in self.edge_features or ():
            edges.require(column)
        return list(self.edge_features or ())


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
    time: str | None = None,
    edge_features: Sequence[str] | None = None,
    encode: Encode = None,
    repeated: str | None = None,
    trusted: str | None = None,
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
        time: Column of dates or numbers for a split by time, instead of a drawn one: the earliest rows with a label
            are the training part, then validation, then test. It is a feature only if ``features`` lists it.
        edge_features: Further columns of the table of edges, kept as ``edge_attr``; ``[]`` leaves them out. If there
            are such columns, this must be said.
        encode: ``"auto"``: text becomes categories or dates, and missing entries are filled in, by what the training
            part shows (``data.encoding``). Or the kinds of some columns, as ``{"zip": "category"}``; or an encoding of
            an earlier table, or its file. Defaults to no encoding: all features must be numbers.
        repeated: What becomes of the weights and attributes of edges that are listed several times: ``"sum"`` or
            ``"mean"``. Needed only if they differ. Without values, repeated edges count once.
        trusted: Edges that no attacker can change, for stacked votes: a column of the table of edges that is positive
            for them, or everything before a number or date, as in ``"paid<2018-03-17"``. A mark becomes the last column
            of ``edge_attr``. Rows that join a trusted pair again, and are not trusted, are left out.

    Returns:
        A ``Data`` or ``GraphSet`` like those of ``load_dataset``, with ``class_names`` in the order of the
        classes. Without labels a ``Data`` has neither ``y`` nor masks. ``repeated_edges`` counts the rows of the table
        of edges that join a pair again.

    Raises:
        DatasetError: Something is missing, duplicate, unknown or not a number; names all of it.
    """
    if folder is not None and not (nodes or edges or graphs) and (files := tu_files(folder)):
        if features is not None or directed:
            raise DatasetError(f"{folder} is in the format of the TU collection: features= and directed= do not apply.")
        pieces, names = read_tu(files)
        train, val, test = stratified_split(torch.cat([piece.y for piece in pieces]), GRAPH_FRACTIONS, seed)
        title = name or files["A"].name.removesuffix("_A.txt")
        return GraphSet(pieces, train, val, test, num_classes=len(names), class_names=names, name=title)
    columns = Columns(
        id, label, split, graph, source, target, weight, features, directed, seed, time, edge_features, encode,
        repeated, trusted,
    )  # fmt: skip
    if repeated not in (None, *REPEATED):
        raise DatasetError(f'repeated="{repeated}": {did_you_mean(str(repeated), REPEATED)}')
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
    problems, labels, parts = Problems(), None, None
    rows = problems.tried(NodeRows, nodes, columns.id)
    if problems.tried(has_labels, nodes, columns):
        labels = problems.tried(class_rows, nodes, str(columns.label))
        if labels is not None:
            parts = problems.tried(split_rows, nodes, columns, labels[0], NODE_FRACTIONS)
    elif columns.time is not None:
        problems.append(str(nodes.error(f'time="{columns.time}" splits labelled rows, but there is no label.')))
    data = _whole(nodes, edges, columns, rows, problems, None if parts is None else parts[0].numpy())
    data.name, data.node_id = title, node_ids(rows.names)  # type: ignore[union-attr]
    if labels is not None and parts is not None:
        data.y, data.class_names = labels
        data.num_classes = len(data.class_names)
        set_masks(data, parts)
    return data


def _graph_task(nodes: Table, edges: Table, graphs: Table, columns: Columns, title: str) -> GraphSet:
    problems, labels = Problems(), None
    for table in (nodes, edges, graphs):
        problems.tried(table.require, columns.graph)
    problems.refuse()
    listed = problems.tried(NodeRows, graphs, columns.graph)
    if columns.label is not None:
        problems.tried(graphs.require, columns.label)
        labels = problems.tried(class_rows, graphs, columns.label) if columns.label in graphs.columns else None
    rows = problems.tried(NodeRows, nodes, columns.id, columns.graph)
    y, class_names = labels or (torch.full((len(graphs),), -1), None)
    parts = problems.tried(split_rows, graphs, columns, y, GRAPH_FRACTIONS)
    training = None
    if rows is not None and listed is not None and parts is not None and len(parts[0]):
        seen = {str(listed.names[int(k)]) for k in parts[0]}
        training = np.flatnonzero([owner in seen for owner in rows.owners])
    whole = _whole(nodes, edges, columns, rows, problems, training)
    assert rows is not None
    assert listed is not None
    assert parts is not None
    pieces = _pieces(whole, rows, [str(name) for name in listed.names], graphs)
    for piece, label in zip(pieces, y.tolist(), strict=True):
        if columns.label is not None:
            piece.y = torch.tensor([label]) if label >= 0 else None
    classes = None if class_names is None else len(class_names)
    train, val, test = parts
    found = GraphSet(pieces, train, val, test, num_classes=classes, class_names=class_names, name=title)
    found.encoding, found.repeated_edges = getattr(whole, "encoding", None), whole.repeated_edges
    return found


def _whole(
    nodes: Table, edges: Table, columns: Columns, rows: "NodeRows | None", problems: Problems, training: Rows | None
) -> Data:
    """All nodes and edges in one graph.

    Args:
        nodes: Table of nodes.
        edges: Table of edges.
        columns: Their columns.
        rows: Row of every node; None if that failed.
        problems: What is wrong so far.
        training: Rows of the training part, which encodings are fitted on; None if there is none.

    Raises:
        DatasetError: With all problems.
    """
    on_nodes = rows is None or rows.owner is None
    wanted = problems.tried(feature_columns, nodes, columns, labelled=on_nodes)
    attributes = problems.tried(columns.attributes_in, edges) or []
    weight = problems.tried(columns.weight_in, edges)
    ends = None if rows is None else problems.tried(rows.ends, edges, columns)
    known = problems.tried(encoding_named, columns.encode)
    encoding, x, of_edge = known if isinstance(known, Encoding) else None, None, None
    training = np.arange(len(nodes)) if training is None or not len(training) else training
    if isinstance(known, dict) and wanted is not None and ends is not None:
        among = np.isin(ends, training).all(axis=0)
        of_nodes = problems.tried(fit_columns, nodes, wanted, known, training)
        of_edges = problems.tried(fit_columns, edges, attributes, known, np.flatnonzero(among))
        encoding = None if of_nodes is None or of_edges is None else Encoding(of_nodes, of_edges)
    if encoding is not None:
        x = problems.tried(encoded, nodes, encoding.nodes)
        of_edge = problems.tried(encoded, edges, encoding.edges) if encoding.edges else None
    elif columns.encode is None:
        x = None if wanted is None else problems.tried(nodes.numbers, wanted, "feature")
        of_edge = problems.tried(edges.numbers, attributes, "edge feature") if attributes else None
    weights = problems.tried(edges.numbers, [weight], "weight") if weight else None
    marks = None if columns.trusted is None else problems.tried(trusted_rows, edges, columns.trusted)
    problems.refuse()
    assert ends is not None
    assert x is not None
    parts = [part for part in (weights, of_edge) if part is not None]
    if marks is not None:
        kept = _without_later(edges, ends, marks, len(nodes))
        of_edge = np.hstack([*parts[weights is not None :], marks[:, None].astype(np.float32)])
        ends, parts = ends[:, kept], [part[kept] for part in (weights, of_edge) if part is not None]
    values = np.hstack(parts) if parts else None
    data = _joined(edges, columns, ends, values, len(nodes))
    data.x = torch.from_numpy(x)
    joined = data.pop("values") if values is not None else torch.zeros(0)
    if weights is not None:
        data.edge_weight = joined[:, 0].contiguous()
    if of_edge is not None:
        data.edge_attr = joined[:, -of_edge.shape[1] :].contiguous()
    if marks is not None:
        data.edge_attr[:, -1].clamp_(max=1)  # of edges that are summed
    if encoding is not None:
        data.encoding = encoding
    return data


def _joined(edges: Table, columns: Columns, ends: Rows, values: Weights | None, total: int) -> Data:
    """The edges as a graph, each pair once, with ``values`` of each edge if there are any; says what was left out."""
    loops = int((ends[0] == ends[1]).sum())
    if loops:
        _log.warning("%s: %d self-loop(s) left out", edges.path.name, loops)
    low, high = (ends[0], ends[1]) if columns.directed else (ends.min(axis=0), ends.max(axis=0))
    listed = len(low) - loops
    again = listed - len(np.unique((low * total + high)[low != high]))
    if again:
        how = "count once" if values is None else f"are joined by their {columns.repeated or 'equal values'}"
        _log.warning(
            "%s: %s of %s edges repeat an earlier pair and %s", edges.path.name, f"{again:,}", f"{listed:,}", how
        )
    if not columns.directed:
        ends, values = np.hstack([ends, ends[::-1]]), None if values is None else np.tile(values, (2, 1))
    apart = ends[0] != ends[1]
    keys, values = distinct(
        (ends[0] * total + ends[1])[apart], None if values is None else values[apart], total, columns.repeated
    )
    data = Data(edge_index=torch.from_numpy(np.stack(np.divmod(keys, total))), repeated_edges=again)
    if values is not None:
        data["values"] = torch.from_numpy(values)
    return data


def _without_later(edges: Table, ends: Rows, trusted: npt.NDArray[np.bool_], total: int) -> npt.NDArray[np.bool_]:
    """Which rows to keep: a pair with a trusted edge has no others, so that nobody alters it by joining it again."""
    pair = ends.min(axis=0) * total + ends.max(axis=0)
    kept: npt.NDArray[np.bool_] = trusted | ~np.isin(pair, pair[trusted])
    left, there = int((~kept).sum()), int(trusted.sum())
    _log.info("%s: %s of %s edges are trusted", edges.path.name, f"{there:,}", f"{len(trusted):,}")
    if left:
        _log.warning("%s: %s other edges join a trusted pair again and are left out", edges.path.name, f"{left:,}")
    return kept


def has_labels(nodes: Table, columns: Columns) -> bool:
    """Whether the table of nodes has labels; raises DatasetError if it lacks a column that was asked for."""
    if columns.label not in (None, "label"):
        nodes.require(str(columns.label))
    return columns.label in nodes.columns and columns.label not in (columns.features or ())


def feature_columns(table: Table, columns: Columns, labelled: bool) -> Sequence[str]:
    """The columns of features; ``labelled`` says whether the table may have labels and a split, which are none."""
    features = columns.features
    if features is None:
        others = (columns.id, columns.label, columns.split, columns.graph, columns.time)
        features = [c for c in table.columns if c not in others]
        if labelled and columns.label is not None:
            table.refuse_lookalikes(columns.label, LABEL_NAMES, "label")
            if columns.encode is None:
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
            f'label, pass label="{texts[0]}" (--set column.label={texts[0]}); if it is a feature, pass encode="auto" '
            "(--set encode=auto); if neither, list all features with features=[...] (--set feature=NAME,NAME)."
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
        for key in ("edge_weight", "edge_attr"):
            if key in whole:
                piece[key] = whole[key][kept]
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


def split_rows(table: Table, columns: Columns, y: Tensor, fractions: Sequence[float]) -> tuple[Tensor, ...]:
    """Rows of the training, validation and test part: from the column, or by time, or drawn without either."""
    column = columns.split
    if columns.time is not None and column in table.columns:
        raise table.error(
            f'there is a column "{column}", and the split is to be by time: leave out time="{columns.time}" (--set '
            f"column.time), or read the column by another name with split=... (--set column.split)."
        )
    if columns.time is not None:
        return split_by_time(times(table, columns.time), y, fractions)
    if column not in table.columns:
        return stratified_split(y, fractions, columns.seed)
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


def distinct(
    keys: Rows, weights: Weights | None, total: int, repeated: str | None = None
) -> tuple[Rows, Weights | None]:
    """Pairs of rows in ascending order, each once, with their weights.

    Args:
        keys: Each pair as one number, first row × ``total`` + second row.
        weights: Weight of each pair, or a row of values, or ``None``.
        total: Number of rows.
        repeated: Whether the values of a repeated pair are added up (``"sum"``) or averaged (``"mean"``).

    Raises:
        DatasetError: The same pair has two weights, and ``repeated`` is not given.
    """
    if weights is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weights[order]
    again = keys[1:] == keys[:-1]
    starts = np.flatnonzero(np.append(np.ones(min(1, len(keys)), bool), ~again))
    if weights is not None and repeated is not None and len(keys):
        total_of = np.add.reduceat(weights.astype(np.float64), starts, axis=0)
        copies = np.diff(np.append(starts, len(keys)))
        shape = (-1,) + (1,) * (weights.ndim - 1)
        joined = total_of / copies.reshape(shape) if repeated == "mean" else total_of
        return keys[starts], joined.astype(np.float32)
    if weights is not None:
        differ = (weights[1:] != weights[:-1]).reshape(max(len(keys) - 1, 0), -1).any(axis=1)
        odd = np.flatnonzero(again & differ)
    if weights is not None and odd.size:
        first, second = divmod(int(keys[odd[0]]), total)
        raise DatasetError(
            f"the nodes in rows {first + 1} and {second + 1} of the table of nodes are joined twice, with different "
            'weights or attributes: pass repeated="sum" or "mean" (--set repeated=sum), or directed=True (--set '
            "directed=true) if the two directions differ, or keep one of the edges."
        )
    return keys[starts], None if weights is None else weights[starts]


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
