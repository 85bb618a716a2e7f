"""``load_tables``: reads a graph, or many, from a user's tables of nodes and edges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import unbatch_edge_index

from agnncert.datasets.columns import PathLike, Table, locate, read_table, shortlist
from agnncert.datasets.drawn_splits import BY_ID, checked_way
from agnncert.datasets.encoding import FITTED, Encode, Encoding, encoding_named, trusted_rows
from agnncert.datasets.encoding_columns import encoded, fit_columns
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, GraphSet, drawn_parts, graph_columns, set_masks
from agnncert.datasets.table_edges import REPEATED, TRUSTED, EdgeRows, Values, joined_edges, without_repeated_trusted
from agnncert.datasets.table_pairs import fit_values, read_pairs, values_of_pairs
from agnncert.datasets.table_roles import (
    ClassRows,
    Columns,
    NodeRows,
    Rows,
    checked_classes,
    class_rows,
    feature_columns,
    has_labels,
    node_ids,
    split_record,
    split_rows,
)
from agnncert.datasets.tu import read_tu, tu_files
from agnncert.errors import DatasetError, did_you_mean, suggests_arguments

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Problems(list[str]):
    """A list of all errors in tables: a step that fails adds its error, and the next step is tried.

    Attributes:
        cause: What may lie behind later ones, and its place. It is no error by itself.
    """

    cause: tuple[int, str] | None = None

    def attempt(
        self, step: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        """Returns what a step returns, or None if it raises a DatasetError, which is noted."""
        try:
            return step(*args, **kwargs)
        except DatasetError as error:
            self.extend(str(error).split("\n"))
            return None

    def refuse(self) -> None:
        """Raises DatasetError with everything that was noted."""
        if self:
            if self.cause is not None:
                self.insert(*self.cause)
            said = [*dict.fromkeys(self)]
            head = f"{len(said)} problems with the tables:\n- " if len(said) > 1 else ""
            raise DatasetError(head + "\n- ".join(said))


@suggests_arguments
def load_tables(  # noqa: PLR0913 - every setting is a keyword
    folder: PathLike | None = None,
    *,
    nodes: PathLike | None = None,
    edges: PathLike | None = None,
    graphs: PathLike | None = None,
    pairs: PathLike | None = None,
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
    pair_features: Sequence[str] | None = None,
    split_by: str = BY_ID,
    classes: Sequence[str] | None = None,
) -> Data | GraphSet:
    """Reads a graph, or many, from tables.

    The table of nodes has an id and features per row, and for node classification a label and a part of the split. The
    table of edges has two ids per row. With a table of graphs the task is graph classification: that table has a graph
    id, a label and a part per row, and the other two have a column with the graph of each row. With a table of pairs
    the targets are pairs of nodes, such as payments: that table has two ids, a label, a part and values per row.

    Args:
        folder: Holds ``nodes``, ``edges`` and, for graph classification, ``graphs``, or for decisions about pairs
            ``pairs``, each as .csv or .parquet. Or a set of graphs in the format of the TU collection, ``NAME_A.txt``
            and so on.
        nodes: Table of nodes, instead of the one in ``folder``.
        edges: Table of edges, instead of the one in ``folder``.
        graphs: Table of graphs, instead of the one in ``folder``.
        pairs: Table of pairs, instead of the one in ``folder``. Each pair has one row. The edges of the graph are those
            of the table of edges alone: a pair need not be one.
        id: Column of node ids: whole numbers or text, unique (in the graph task, within a graph). Certificates name
            nodes by their ids, so ids should stay the same when the graph changes. ``007`` is not ``7``. Floats that
            may have been rounded are refused.
        label: Column of classes, numbers or text. An empty entry is an unlabelled row. ``None`` for no labels.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without such a column the split is drawn:
            30/10/60 % of the nodes or 50/20/30 % of the graphs or pairs.
        graph: Column of graph ids.
        source: Column of the id an edge starts from.
        target: Column of the id an edge ends at.
        weight: Column of edge weights. It may be absent.
        features: Columns of features, numbers or (in Parquet) lists of numbers of one length. Defaults to all remaining
            columns of the table of nodes.
        directed: Whether edges are directed. If not, each pair is joined in both directions.
        seed: Seed of the split, if it is drawn.
        name: Name of the dataset. Defaults to the folder's name.
        time: Column of dates or numbers for a split by time, instead of a drawn one: the earliest rows with a label
            are the training part, then validation, then test. It is a feature only if ``features`` lists it.
        edge_features: Further columns of the table of edges, kept as ``edge_attr``. ``[]`` leaves them out. If there
            are such columns, this must be said.
        encode: ``"auto"``: text becomes categories or dates, and missing entries are filled in, by what the training
            part shows (``data.encoding``). Or the kinds of some columns, as ``{"zip": "category"}``, or an encoding of
            an earlier table, or its file. Defaults to no encoding: all features must be numbers.
        repeated: What becomes of the weights and attributes of edges that are listed several times: ``"sum"`` or
            ``"mean"``. Needed only if they differ. Without values, repeated edges count once.
        trusted: Edges that no attacker can change, for stacked votes: a column of the table of edges that is positive
            for them, or everything before a number or date, as in ``"paid<2018-03-17"``. A mark becomes the last column
            of ``edge_attr``. Rows that join a trusted pair again, and are not trusted, are left out. For decisions
            about pairs these edges make their second node a contact of their first one, edges are directed, and no row
            is left out.
        pair_features: Columns of the table of pairs that are the pair's own values, ``edge_label_attr``. Defaults to
            all remaining ones.
        split_by: How the split is drawn where the table does not state it: ``"id"``, each row by the hash of its id, so
            that no change of another row moves it; or ``"class"``, with exactly these shares of each class, so that one
            changed label moves other rows too. Defaults to ``"id"``.
        classes: Names of all classes, in order. A label that names none of them is an error. Defaults to the names
            that occur in the column, which defences against poisoned training data refuse: one label could add a class.

    Returns:
        A ``Data`` or ``GraphSet`` like those of ``load_dataset``, with ``class_names`` in the order of the classes.
        ``split_by`` says how the split was drawn. With pairs, a ``Data`` with ``edge_label_index``, ``edge_label`` and
        ``edge_label_attr``, whose masks have an entry for each pair. Without labels a ``Data`` has neither ``y`` nor
        masks. ``repeated_edges`` counts the rows of the table of edges that join a pair again. With ``repeated``,
        ``edge_count`` says how many rows each edge stands for.

    Raises:
        DatasetError: Something is missing, duplicate, unknown or not a number. The message names all of it.
    """
    if folder is not None and not (nodes or edges or graphs or pairs):
        files = tu_files(folder)
        if files:
            if features is not None or directed:
                raise DatasetError(
                    f"{folder} is in the format of the TU collection: features= and directed= do not apply."
                )
            return _load_tu(files, seed, name, checked_way(split_by), checked_classes(classes))
    if repeated not in (None, *REPEATED):
        raise DatasetError(f'repeated="{repeated}": {did_you_mean(str(repeated), REPEATED)}')
    columns = Columns(
        id=id,
        label=label,
        split=split,
        graph=graph,
        source=source,
        target=target,
        weight=weight,
        features=features,
        directed=directed,
        seed=seed,
        time=time,
        edge_features=edge_features,
        encode=encode,
        repeated=repeated,
        trusted=trusted,
        pair_features=pair_features,
        split_by=checked_way(split_by),
        classes=checked_classes(classes),
    )
    paths = {
        "nodes": locate(folder, "nodes", nodes),
        "edges": locate(folder, "edges", edges),
        "graphs": locate(folder, "graphs", graphs, is_required=False),
        "pairs": locate(folder, "pairs", pairs, is_required=False),
    }
    tables = {kind: read_table(path, columns.of_text) for kind, path in paths.items() if path is not None}
    absent = [kind for kind in ("nodes", "edges") if kind not in tables]
    if absent:
        raise DatasetError(
            f"no table of {' and '.join(absent)} was given: pass a folder with nodes.csv and edges.csv (or "
            ".parquet), or nodes=... and edges=..."
        )
    title = name or Path(folder or tables["nodes"].path.parent).resolve().name
    reader = _GraphReader(tables["nodes"], tables["edges"], columns)
    if "graphs" in tables and "pairs" in tables:
        raise DatasetError(
            "there are a table of graphs and one of pairs: pairs are of nodes of one graph. Leave one of the two out."
        )
    if "graphs" in tables:
        return reader.graph_task(tables["graphs"], title)
    if "pairs" in tables:
        return reader.pair_task(tables["pairs"], title)
    return reader.node_task(title)


def _load_tu(files: dict[str, Path], seed: int, name: str | None, by: str, classes: Sequence[str] | None) -> GraphSet:
    graphs, names = read_tu(files)
    if classes is not None:
        _renumber(graphs, names, classes)
    y = torch.cat([graph.y for graph in graphs])
    parts = drawn_parts(y, GRAPH_FRACTIONS, seed, by, lambda: graph_columns(graphs))
    title = name or files["A"].name.removesuffix("_A.txt")
    labels = ClassRows(y, names if classes is None else list(classes), are_counted=classes is None)
    graph_set = _graph_set(graphs, labels, title).set_split(parts, by)
    graph_set.encoding_fitted = "node_labels" in files  # a column for each kind of node that occurs
    return graph_set


def _renumber(graphs: Sequence[Data], names: Sequence[str], classes: Sequence[str]) -> None:
    """Numbers classes as somebody stated them; raises DatasetError if others occur."""
    unknown = [name for name in names if name not in classes]
    if unknown:
        raise DatasetError(f"the graphs have classes {shortlist(unknown)}, which are none of {', '.join(classes)}.")
    for graph in graphs:
        graph.y = torch.tensor([classes.index(names[int(graph.y)])])


def _graph_set(graphs: list[Data], labels: ClassRows | None, title: str) -> GraphSet:
    """Returns graphs as a set, without a split."""
    if labels is None:
        return GraphSet(graphs, name=title)
    stated = None if labels.are_counted else len(labels.names)
    return GraphSet(graphs, num_classes=stated, class_names=labels.names, name=title)


@dataclass(frozen=True)
class _Encoded:
    """Features of the nodes, attributes of the edges with their names, and the encoding that made them, if any.

    ``is_fitted`` says whether the encoding was fitted to this table.
    """

    x: Values | None = None
    attributes: Values | None = None
    encoding: Encoding | None = None
    edge_names: tuple[str, ...] = ()
    is_fitted: bool = False

    def attach(self, data: Data) -> Data:
        """Gives a graph with edges its features, the names of its values, and the encoding."""
        assert self.x is not None
        data.x = torch.from_numpy(self.x)
        if self.edge_names and len(self.edge_names) == data.num_edge_features:
            data.edge_names = list(self.edge_names)  # but a column of lists has one name for several numbers
        if self.encoding is not None:
            data.encoding = self.encoding
        if self.is_fitted:
            data[FITTED] = True
        return data


class _GraphReader:
    """Reads a table of nodes and a table of edges, and notes all problems before it raises an error.

    Args:
        nodes: The table of nodes.
        edges: The table of edges.
        columns: Names of their columns.
    """

    def __init__(self, nodes: Table, edges: Table, columns: Columns) -> None:
        self.nodes = nodes
        self.edges = edges
        self.columns = columns
        self.problems = Problems()
        for role in (columns.source, columns.target):  # what is missing is said first
            self.problems.attempt(edges.require, role)

    def node_task(self, title: str) -> Data:
        """Returns a graph for node classification."""
        columns = self.columns
        labels = None
        parts = None
        rows = self.problems.attempt(NodeRows, self.nodes, columns.id)
        if self.problems.attempt(has_labels, self.nodes, columns):
            labels = self.problems.attempt(class_rows, self.nodes, str(columns.label), columns.classes)
            if labels is not None:
                names = range(len(self.nodes)) if rows is None else rows.names
                parts = self.problems.attempt(split_rows, self.nodes, columns, labels.y, NODE_FRACTIONS, [names])
        elif columns.time is not None:
            error = self.nodes.error(f'time="{columns.time}" splits labelled rows, but there is no label.')
            self.problems.append(str(error))
        elif columns.label == "label" and columns.label not in self.nodes.columns:  # another one is required
            words = f'there is no column "{columns.label}": name the column of classes with label="…"'
            error = self.nodes.error(f"{words} (--set column.label=…), or pass label=None.")
            self.problems.cause = (len(self.problems), str(error))
        data = self._whole(rows, None if parts is None else parts[0].numpy())
        assert rows is not None
        data.name = title
        data.node_id = node_ids(rows.names)
        if labels is not None and parts is not None:
            data.y = labels.y
            labels.attach(data)
            set_masks(data, parts, split_record(self.nodes, columns))
        return data

    def pair_task(self, table: Table, title: str) -> Data:
        """Returns a graph with the pairs of a table, which are to be classified."""
        columns = self.columns
        if columns.trusted is not None and not columns.directed:
            error = self.edges.error(
                f'trusted="{columns.trusted}": what a node does itself is trusted, so edges must have a direction. '
                "Pass directed=True (--set directed=true)."
            )
            self.problems.append(str(error))
        rows = self.problems.attempt(NodeRows, self.nodes, columns.id)
        pairs = None if rows is None else self.problems.attempt(read_pairs, table, columns, rows)
        encoding = self.problems.attempt(encoding_named, columns.encode)
        values = value_columns = training = None
        if pairs is not None:
            if pairs.parts is not None and len(pairs.parts[0]):
                training = np.unique(pairs.ends[:, pairs.parts[0].numpy()])
            if isinstance(encoding, Encoding):
                value_columns = encoding.pairs
            elif encoding is not None:
                value_columns = self.problems.attempt(fit_values, table, pairs, encoding)
            values = self.problems.attempt(values_of_pairs, table, pairs, value_columns)
        data = self._whole(rows, training, is_for_pairs=True)
        assert rows is not None
        assert pairs is not None
        data.name = title
        data.node_id = node_ids(rows.names)
        if value_columns:
            data.encoding = replace(data.encoding, pairs=value_columns)
        return pairs.attach(data, values)

    def graph_task(self, graphs: Table, title: str) -> GraphSet:
        """Returns graphs for graph classification, one for each row of the table of graphs."""
        columns = self.columns
        for table in (self.nodes, self.edges, graphs):
            self.problems.attempt(table.require, columns.graph)
        self.problems.refuse()
        listed = self.problems.attempt(NodeRows, graphs, columns.graph)
        labels = self._classes_of_graphs(graphs)
        y = torch.full((len(graphs),), -1) if labels is None else labels.y
        rows = self.problems.attempt(NodeRows, self.nodes, columns.id, columns.graph)
        ids = range(len(graphs)) if listed is None else listed.names
        parts = self.problems.attempt(split_rows, graphs, columns, y, GRAPH_FRACTIONS, [ids])
        training = None
        if rows is not None and listed is not None and parts is not None and len(parts[0]):
            training_graphs = {str(listed.names[int(k)]) for k in parts[0]}
            training = np.flatnonzero([owner in training_graphs for owner in rows.owners])
        whole = self._whole(rows, training)
        assert rows is not None
        assert listed is not None
        assert parts is not None
        data = _separate_graphs(whole, rows, [str(name) for name in listed.names], graphs)
        if columns.label is not None:
            for graph, label in zip(data, y.tolist(), strict=True):
                graph.y = torch.tensor([label]) if label >= 0 else None
        graph_set = _graph_set(data, labels, title)
        graph_set.set_split(parts, split_record(graphs, columns))
        graph_set.encoding = getattr(whole, "encoding", None)
        graph_set.encoding_fitted = getattr(whole, FITTED, False)
        graph_set.edge_names = getattr(whole, "edge_names", None)
        graph_set.repeated_edges = whole.repeated_edges
        return graph_set

    def _classes_of_graphs(self, graphs: Table) -> ClassRows | None:
        """Returns the classes of graphs, or None if there are none."""
        label = self.columns.label
        if label is None:
            return None
        self.problems.attempt(graphs.require, label)
        if label not in graphs.columns:
            return None
        return self.problems.attempt(class_rows, graphs, label, self.columns.classes)

    def _whole(self, rows: NodeRows | None, training: Rows | None, is_for_pairs: bool = False) -> Data:
        """Returns all nodes and edges in one graph.

        Args:
            rows: Row of every node. None if that failed.
            training: Rows of the training part, which encodings are fitted on. None if there is none.
            is_for_pairs: Whether pairs of nodes are classified: then nodes have no labels, and each trusted edge is
                trusted by itself. Defaults to False.

        Raises:
            DatasetError: With all problems.
        """
        columns = self.columns
        has_node_labels = not is_for_pairs and (rows is None or rows.owner is None)
        features = self.problems.attempt(feature_columns, self.nodes, columns, labelled=has_node_labels)
        attributes = self.problems.attempt(columns.attributes_in, self.edges) or []
        weight = self.problems.attempt(columns.weight_in, self.edges)
        ends = None if rows is None else self.problems.attempt(rows.ends, self.edges, columns)
        if columns.encode is None:
            columns_read = self._read_plain(features, attributes)
        else:
            columns_read = self._read_encoded(features, attributes, ends, training)
        weights = self.problems.attempt(self.edges.numbers, [weight], "weight") if weight else None
        trusted = None
        if columns.trusted is not None:
            trusted = self.problems.attempt(trusted_rows, self.edges, columns.trusted)
        self.problems.refuse()
        assert ends is not None
        assert columns_read.x is not None
        edges = EdgeRows(ends, weights, columns_read.attributes)
        if trusted is not None and is_for_pairs:
            edges = edges.with_marks(trusted)
        elif trusted is not None:
            edges = without_repeated_trusted(self.edges, edges, trusted, len(self.nodes))
        data = self._with_edges(edges)
        if trusted is not None:
            data.edge_attr[:, -1].clamp_(max=1)  # of edges that are summed
            columns_read = replace(columns_read, edge_names=(*columns_read.edge_names, TRUSTED))
        return columns_read.attach(data)

    def _read_plain(self, features: Sequence[str] | None, attributes: list[str]) -> _Encoded:
        """Returns columns of numbers as they are."""
        x = None
        values = None
        if features is not None:
            x = self.problems.attempt(self.nodes.numbers, features, "feature")
        if attributes:
            values = self.problems.attempt(self.edges.numbers, attributes, "edge feature")
        return _Encoded(x, values, edge_names=tuple(attributes))

    def _read_encoded(
        self, features: Sequence[str] | None, attributes: list[str], ends: Rows | None, training: Rows | None
    ) -> _Encoded:
        """Returns columns as an encoding makes features of them. It is fitted to the training part unless given."""
        encoding = self.problems.attempt(encoding_named, self.columns.encode)
        is_fitted = isinstance(encoding, dict)
        if isinstance(encoding, dict):
            encoding = self._fit(features, attributes, encoding, ends, training)
        if encoding is None:
            return _Encoded()
        x = self.problems.attempt(encoded, self.nodes, encoding.nodes)
        values = None
        if encoding.edges:
            values = self.problems.attempt(encoded, self.edges, encoding.edges)
        return _Encoded(x, values, encoding, tuple(encoding.edge_names), is_fitted)

    def _fit(
        self,
        features: Sequence[str] | None,
        attributes: list[str],
        kinds: dict[str, str],
        ends: Rows | None,
        training: Rows | None,
    ) -> Encoding | None:
        """Returns the encoding that the training part shows, or all rows without one, or None if something is wrong."""
        if features is None or ends is None:
            return None
        if training is None or not len(training):
            training = np.arange(len(self.nodes))
        training_edges = np.flatnonzero(np.isin(ends, training).all(axis=0))
        nodes = self.problems.attempt(fit_columns, self.nodes, features, kinds, training)
        edges = self.problems.attempt(fit_columns, self.edges, attributes, kinds, training_edges)
        if nodes is None or edges is None:
            return None
        return Encoding(nodes, edges)

    def _with_edges(self, edges: EdgeRows) -> Data:
        """Returns a graph with each pair once, weights and attributes."""
        columns = self.columns
        joined = joined_edges(self.edges, edges, len(self.nodes), directed=columns.directed, repeated=columns.repeated)
        data = Data(edge_index=torch.from_numpy(joined.edge_index), repeated_edges=joined.num_repeated)
        if joined.values is None:
            return data
        if columns.repeated is not None:
            data.repeated = columns.repeated
            data.edge_count = torch.from_numpy(joined.count)
        values = torch.from_numpy(joined.values)
        if edges.weights is not None:
            data.edge_weight = values[:, 0].contiguous()
        if edges.attributes is not None:
            data.edge_attr = values[:, -edges.attributes.shape[1] :].contiguous()
        return data


def _separate_graphs(whole: Data, rows: NodeRows, names: list[str], graphs: Table) -> list[Data]:
    """Returns one ``Data`` per row of the table of graphs.

    Args:
        whole: All nodes and edges in one graph.
        rows: The graph and id of every node.
        names: Ids of the graphs.
        graphs: The table of graphs.

    Raises:
        DatasetError: A graph is not listed, or has no node.
    """
    graph_of_node = _graph_numbers(rows, names, graphs)
    sizes = torch.bincount(graph_of_node, minlength=len(names))
    empty = [names[k] for k in (sizes == 0).nonzero().view(-1).tolist()]
    if empty:
        raise graphs.error(f"{len(empty)} graph(s) have no node: {shortlist(empty)}. Remove them.")
    order = torch.argsort(graph_of_node, stable=True)
    new_row = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)))
    edge_order = torch.argsort(graph_of_node[whole.edge_index[0]], stable=True)
    edges = unbatch_edge_index(new_row[whole.edge_index[:, edge_order]], graph_of_node[order], len(names))
    edge_rows = torch.split(edge_order, [edge_index.size(1) for edge_index in edges])
    node_rows = torch.split(order, sizes.tolist())
    separate = []
    for name, nodes, edge_index, kept in zip(names, node_rows, edges, edge_rows, strict=True):
        graph = Data(x=whole.x[nodes], edge_index=edge_index.contiguous(), graph_id=name)
        graph.node_id = node_ids([rows.names[row] for row in nodes.tolist()])
        for key in ("edge_weight", "edge_attr"):
            if key in whole:
                graph[key] = whole[key][kept]
        separate.append(graph)
    return separate


def _graph_numbers(rows: NodeRows, names: list[str], graphs: Table) -> Tensor:
    """Returns the graph of each node as its row in the table of graphs."""
    number_of = {name: k for k, name in enumerate(names)}
    unlisted = sorted(set(rows.owners) - number_of.keys())
    if unlisted:
        raise graphs.error(
            f"there are nodes of {len(unlisted)} graph(s) that are not listed here: {shortlist(unlisted)}. "
            "Add a row for each, or remove their nodes."
        )
    return torch.tensor([number_of[graph] for graph in rows.owners])
