"""What the columns of a user's tables stand for: ids, classes, parts of a split, features, ends of edges."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.drawn_splits import BY_ID, BY_TIME
from agnncert.datasets.encoding import Encode
from agnncert.datasets.encoding_columns import times
from agnncert.datasets.splits import drawn_parts, split_by_time
from agnncert.errors import DatasetError, did_you_mean
from agnncert.graphs.hashing import Keys, keys_of_encoded
from agnncert.graphs.labels import CLASSES_COUNTED

if TYPE_CHECKING:
    from pandas import Index
else:
    Index = Any

Rows = npt.NDArray[np.int64]
Names = Rows | list[str]  # ids, as numbers if all are stored so, else as text
PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
WHOLE_NUMBER = re.compile(r"-?[0-9]+(\.0+)?")
LABEL_NAMES = ("y", "class", "labels", "target", "truth")


@dataclass(frozen=True)
class Columns:
    """Names of the columns, and how to read them. ``load_tables`` describes them."""

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
    pair_features: Sequence[str] | None = None
    split_by: str = BY_ID
    classes: Sequence[str] | None = None

    @property
    def of_text(self) -> list[str]:
        """Columns that are read as text."""
        columns = [self.id, self.split, self.graph, self.source, self.target]
        if self.label:
            columns.append(self.label)
        return columns

    def weight_in(self, edges: Table) -> str | None:
        """Returns the column of weights, or ``None`` if there is none and none was asked for.

        Raises:
            DatasetError: There is no such column.
        """
        if self.weight != "weight":
            edges.require(self.weight)
        return self.weight if self.weight in edges.columns else None

    def other_in(self, edges: Table) -> list[str]:
        """Returns the columns of the table of edges that are neither ids nor weights nor marks of trusted edges."""
        trusted = (self.trusted or "").partition("<")[0].strip()
        used = (self.source, self.target, self.weight, self.graph, trusted)
        return [column for column in edges.columns if column not in used]

    def attributes_in(self, edges: Table) -> list[str]:
        """Returns the columns of ``edge_attr``.

        Raises:
            DatasetError: A column is neither used nor left out on purpose, or there is no such column.
        """
        others = self.other_in(edges)
        knows_ends = {self.source, self.target} <= set(edges.columns)  # else the ends may be among the others
        if self.edge_features is None and others and knows_ends:
            raise edges.error(
                f"{len(others)} column(s) of the edges are not used: {shortlist(others)}. Keep them as edge_attr with "
                f"edge_features={others[:3]} (--set edge_feature={','.join(others[:3])}), or leave them out with "
                "edge_features=[] (--set edge_feature=none)."
            )
        for column in self.edge_features or ():
            edges.require(column)
        return list(self.edge_features or ())


def has_labels(nodes: Table, columns: Columns) -> bool:
    """Returns whether the table of nodes has labels, or raises DatasetError if it lacks a column that was asked for."""
    if columns.label not in (None, "label"):
        nodes.require(str(columns.label))
    return columns.label in nodes.columns and columns.label not in (columns.features or ())


def feature_columns(table: Table, columns: Columns, labelled: bool) -> Sequence[str]:
    """Returns the columns of features.

    Args:
        table: The table of nodes.
        columns: Names of the columns.
        labelled: Whether the table may have labels and a split, which are no features.

    Raises:
        DatasetError: There is no such column, no column of features, or one that is probably the label.
    """
    features = columns.features
    if features is None:
        features = remaining_columns(table, columns, labelled)
    for column in features:
        table.require(column)
    if not features:
        raise table.error(
            "there is no column of features. Add what is known about each node, or a column of ones. (Not the degree: "
            "one changed edge would then change the features in every subgraph.)"
        )
    return features


def remaining_columns(table: Table, columns: Columns, labelled: bool) -> list[str]:
    """Returns all columns that stand for nothing else, or raises DatasetError if one is probably the label."""
    others = (columns.id, columns.label, columns.split, columns.graph, columns.time)
    features = [column for column in table.columns if column not in others]
    if labelled and columns.label is not None:
        table.refuse_lookalikes(columns.label, LABEL_NAMES, "label")
        if columns.encode is None:
            _refuse_names(table, columns.label, features)
    if labelled:
        table.refuse_lookalikes(columns.split, ("part", "fold"), "split")
    return features


def _refuse_names(table: Table, label: str, features: Sequence[str]) -> None:
    """Raises DatasetError if there is no label and a single column of text, which is probably the label."""
    if label in table.columns:
        return
    first_entries = {column: next(iter(table.frame[column].dropna()), None) for column in features}
    texts = [column for column, entry in first_entries.items() if isinstance(entry, str)]
    if len(texts) == 1:
        raise table.error(
            f'there is no column "{label}", and "{texts[0]}" holds text such as "{first_entries[texts[0]]}". If that '
            f'is the label, pass label="{texts[0]}" (--set column.label={texts[0]}); if it is a feature, pass '
            f'encode="auto" (--set encode=auto); if neither, list all features with features=[...] (--set '
            "feature=NAME,NAME)."
        )


class NodeRows:
    """Row of every node, found by its id or, in the graph task, by its graph and id.

    Args:
        table: The table of nodes.
        column: The column of ids.
        owner: Graph task: the column of graph ids.

    Attributes:
        names: Id of every row.
        owner: The column of graph ids, or ``None``.
        owners: Graph task: graph id of every row.

    Raises:
        DatasetError: There is no row, or an id is missing or occurs twice.
    """

    def __init__(self, table: Table, column: str, owner: str | None = None) -> None:
        table.require(column)
        if len(table) == 0:
            raise table.error("there is a header but no row: a graph needs nodes.")
        self.names: Names = table.ids(column)
        self.owner = owner
        self.owners = [] if owner is None else table.filled(owner)
        self._index = self._indexed(self.names, self.owners)
        if self._index.has_duplicates:
            raise self._duplicates(table, column)

    def _duplicates(self, table: Table, column: str) -> Exception:
        first_row: dict[Any, int] = {}
        shown = []
        for row, key in enumerate(self._index, start=1):
            first = first_row.setdefault(key, row)
            if first < row:
                name = key if self.owner is None else " of ".join(reversed(key))
                shown.append(f'"{name}" (rows {first} and {row})')
        return table.error(
            f'{len(shown)} id(s) in column "{column}" occur twice: {shortlist(shown)}. Ids must be unique.'
        )

    def _indexed(self, names: Names, owners: list[str]) -> Index:
        import pandas as pd

        if self.owner is not None:
            return pd.MultiIndex.from_arrays([owners, [str(name) for name in names]])
        return pd.Index(names, dtype=None if isinstance(names, np.ndarray) else object)

    @cached_property
    def _texts(self) -> Index:
        return self._index.map(str)

    def ends(self, table: Table, columns: Columns, what: str = "edges") -> Rows:
        """Returns the rows of the two ends of every edge in a table, shape ``[2, num_edges]``.

        Args:
            table: The table of edges, or of pairs.
            columns: Names of its columns.
            what: What messages call its rows. Defaults to "edges".

        Raises:
            DatasetError: An end is unknown or missing.
        """
        owners = [] if self.owner is None else table.filled(self.owner)
        for column in (columns.source, columns.target):
            table.require(column)
        names = [table.ids(column) for column in (columns.source, columns.target)]
        rows = np.stack([self._find(of_end, owners) for of_end in names])
        unknown = np.argwhere(rows.T < 0).tolist()
        if unknown:
            where = "the table of nodes" if self.owner is None else "that graph in the table of nodes"
            shown = [f'"{names[end][row]}" (row {table.start + row + 1})' for row, end in unknown]
            raise table.error(
                f"{len(unknown)} end(s) of {what} are ids that are not in {where}: {shortlist(shown)}. Add the nodes, "
                f"or remove the {what}."
            )
        return rows

    def _find(self, names: Names, owners: list[str]) -> Rows:
        """Returns the row of each id, or -1 where it is unknown."""
        is_mixed = isinstance(names, np.ndarray) != isinstance(self.names, np.ndarray)
        if self.owner is None and is_mixed:  # 7 and "7" are one id
            return np.asarray(self._texts.get_indexer([str(name) for name in names]))
        return np.asarray(self._index.get_indexer(self._indexed(names, owners)))


@dataclass(frozen=True)
class ClassRows:
    """Classes as a table lists them.

    Attributes:
        y: Class of every row; -1 where it is unlabelled.
        names: Names of the classes, by their numbers.
        are_counted: Whether these are the names that occur, because nobody stated them.
    """

    y: Tensor
    names: list[str]
    are_counted: bool

    def attach(self, data: Data) -> None:
        """Gives a graph the number of its classes and their names."""
        data.class_names = self.names
        data.num_classes = len(self.names)
        if self.are_counted:
            data[CLASSES_COUNTED] = True


def class_rows(table: Table, column: str, stated: Sequence[str] | None = None) -> ClassRows:
    """Returns the class of every row.

    Whole numbers that were written as ``1.0``, as pandas does where entries are missing, are named ``1``.

    Args:
        table: The table.
        column: The column of classes.
        stated: Names of all classes, in order. Defaults to those that occur.

    Raises:
        DatasetError: The column is empty, or names a class that is none of the stated ones.
    """
    classes = ClassNames(column, stated)
    classes.add(table)
    classes.finish(table)
    return ClassRows(torch.from_numpy(classes.rows(table)), classes.names, are_counted=stated is None)


class ClassNames:
    """Names of the classes in a column, which may come piece by piece.

    Args:
        column: The column.
        stated: Names of all classes, in order. Defaults to those that occur.

    Attributes:
        names: The names, in order, once all pieces were added.
        are_counted: Whether these are the names that occur, because nobody stated them.
    """

    def __init__(self, column: str, stated: Sequence[str] | None = None) -> None:
        self.names: list[str] = []
        self.are_counted = stated is None
        self._column = column
        self._stated = stated
        self._entries: set[str] = set()
        self._are_whole = False

    def add(self, table: Table) -> None:
        """Adds the entries of a piece."""
        self._entries.update(entry for entry in table.text(self._column) if entry)

    def finish(self, table: Table) -> None:
        """Names the classes; ``table`` is what an error is about.

        Raises:
            DatasetError: The column is empty.
        """
        if not self._entries:
            raise table.error(f'column "{self._column}" is empty. Pass label=None if there are no labels.')
        self._are_whole = all(WHOLE_NUMBER.fullmatch(entry) for entry in self._entries)
        classes = set(self._named(self._entries))
        are_numbers = all(entry.isascii() and entry.removeprefix("-").isdigit() for entry in classes)
        self.names = sorted(classes, key=int) if are_numbers else sorted(classes)
        if self._stated is not None:
            self.names = [str(name) for name in self._stated]

    def rows(self, table: Table) -> Rows:
        """Returns the class of every row of a piece, -1 where there is none.

        Raises:
            DatasetError: A row names a class that is none of the stated ones.
        """
        entries = self._named(table.text(self._column))
        if self._stated is not None:
            _require_stated(table, self._column, entries, self._stated)
        number_of = {name: k for k, name in enumerate(self.names)}
        return np.array([number_of.get(entry, -1) for entry in entries], np.int64)

    def _named(self, entries: Iterable[str]) -> list[str]:
        return [entry.partition(".")[0] for entry in entries] if self._are_whole else list(entries)


def checked_classes(stated: Sequence[str] | None) -> Sequence[str] | None:
    """Returns the stated names of classes, or raises DatasetError if they are no list of different names."""
    if stated is None:
        return None
    names = [] if isinstance(stated, str) else [str(name).strip() for name in stated]
    if not names or "" in names or len(set(names)) < len(names):
        raise DatasetError(
            f"classes={stated!r:.99}: expected the names of all classes, each once, as in "
            'classes=["genuine", "spam"] (--set classes=genuine,spam).'
        )
    return names


def _require_stated(table: Table, column: str, entries: Sequence[str], stated: Sequence[str]) -> None:
    known = {"", *stated}
    unknown = [
        f'"{entry:.40}" (row {table.start + row + 1})' for row, entry in enumerate(entries) if entry not in known
    ]
    if unknown:
        raise table.error(
            f'column "{column}" names {len(unknown)} time(s) a class that is none of {", ".join(stated)}: '
            f"{shortlist(unknown)}. Correct these rows, or state all classes."
        )


def split_record(table: Table, columns: Columns) -> str | None:
    """Returns how the split of a table is drawn, or ``None`` if a column states it."""
    if columns.time is not None:
        return BY_TIME
    return None if columns.split in table.columns else columns.split_by


def split_rows(
    table: Table,
    columns: Columns,
    y: Tensor,
    fractions: Sequence[float],
    names: Sequence[Names | range],
) -> tuple[Tensor, ...]:
    """Returns the rows of the training, validation and test part: from the column, by time, or drawn without either.

    Args:
        table: The table with a row for each node, or for each graph in the graph task.
        columns: Names of the columns.
        y: Class of every row, or -1 where it is unlabelled.
        fractions: Share of each part, where there is no column of parts.
        names: Ids of every row: a list for nodes or graphs, two for pairs.

    Raises:
        DatasetError: The column says something else, or contradicts other settings.
    """
    column = columns.split
    if columns.time is not None and column in table.columns:
        raise table.error(
            f'there is a column "{column}", and the split is to be by time: leave out time="{columns.time}" (--set '
            f"column.time), or read the column by another name with split=... (--set column.split)."
        )
    if columns.time is not None:
        return split_by_time(times(table, columns.time), y, fractions)
    if column not in table.columns:
        return drawn_parts(y, fractions, columns.seed, columns.split_by, lambda: _key_columns(names))
    return _stated_parts(table, column, y)


def _key_columns(names: Sequence[Names | range]) -> list[Keys]:
    """Returns a column of keys for each list of ids; of two, the smaller key of each row comes first."""
    columns = [keys_of_encoded(encode_ids(each)) for each in names]
    if len(columns) == 1:
        return columns
    return [np.minimum(*columns), np.maximum(*columns)]


def _stated_parts(table: Table, column: str, y: Tensor) -> tuple[Tensor, ...]:
    """Returns the rows of each part, as a column states them."""
    part_of = stated_part(table, column, y)
    return tuple((part_of == k).nonzero().view(-1) for k in range(3))


def stated_part(table: Table, column: str, y: Tensor) -> Tensor:
    """Returns the part that a column states for every row, -1 for none.

    Raises:
        DatasetError: The column says something else, or a row to train on has no label.
    """
    entries = [entry.strip().lower() for entry in table.text(column)]
    unknown = sorted(set(entries) - PARTS.keys() - {""})
    if unknown:
        raise table.error(
            f'column "{column}" says "{unknown[0]}": {did_you_mean(unknown[0], ("train", "val", "test"))}'
        )
    part_of = torch.tensor([PARTS.get(entry, -1) for entry in entries])
    needs_label = (part_of == 0) | (part_of == 1)
    unlabelled = (needs_label & (y < 0)).nonzero().view(-1) + 1 + table.start
    if len(unlabelled):
        raise table.error(
            f"{shortlist(unlabelled.tolist(), 'row')}: for training or validation but without a label. "
            "Label them, or leave their split empty."
        )
    return part_of


def node_ids(names: Names) -> Tensor | list[str]:
    """Returns ids as a tensor if all of them are whole numbers, else as text."""
    encoded = encode_ids(names)
    return torch.from_numpy(encoded) if isinstance(encoded, np.ndarray) else list(names)
