"""Pairs of nodes to be classified, from a user's table, as PyG names them: ``edge_label_index`` and so on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.drawn_splits import RECORD
from agnncert.datasets.encoding_columns import Column, Matrix, encoded, fit_columns
from agnncert.datasets.splits import MASKS
from agnncert.datasets.table_roles import Columns, NodeRows, Rows, class_rows, has_labels, split_record, split_rows

PAIR_FRACTIONS = (0.5, 0.2, 0.3)  # of pairs that are drawn for training, validation and test
LABEL_NAMES = ("y", "class", "labels", "truth")


@dataclass(frozen=True)
class PairRows:
    """Pairs as a table lists them.

    Attributes:
        ends: Rows of both nodes, shape ``[2, n]``.
        label: Class of each pair, negative where it is unknown, shape ``[n]``; None without labels.
        class_names: Names of the classes; None without labels.
        parts: Places of the training, validation and test pairs; None without labels.
        split_by: How these were drawn, or None.
        features: Columns that are values of the pairs.
    """

    ends: Rows
    label: Tensor | None
    class_names: list[str] | None
    parts: tuple[Tensor, ...] | None
    split_by: str | None
    features: Sequence[str]

    def attach(self, data: Data, values: Matrix | None) -> Data:
        """Gives a graph these pairs, with their values, classes and split, and returns it."""
        data.edge_label_index = torch.from_numpy(self.ends)
        if values is not None and values.shape[1]:
            data.edge_label_attr = torch.from_numpy(values)
        if self.label is None or self.parts is None or self.class_names is None:
            return data
        data.edge_label = self.label
        data.class_names = self.class_names
        data.num_classes = len(self.class_names)
        for name, part in zip(MASKS, self.parts, strict=True):
            data[name] = torch.zeros(self.ends.shape[1], dtype=torch.bool).index_fill_(0, part, True)
        data[RECORD] = self.split_by
        return data


def read_pairs(table: Table, columns: Columns, nodes: NodeRows) -> PairRows:
    """Returns the pairs of a table.

    Args:
        table: The table of pairs, with columns for both ids, and usually one of labels.
        columns: Names of the columns.
        nodes: Row of every node.

    Raises:
        DatasetError: A pair is listed twice or joins a node to itself, or a column is missing or not what it should be.
    """
    if len(table) == 0:
        raise table.error("there is a header but no row: list the pairs of nodes to classify.")
    ends = nodes.ends(table, columns, "pairs")
    _require_distinct(table, ends, nodes)
    label = class_names = parts = None
    if has_labels(table, columns):
        classes = class_rows(table, str(columns.label), columns.classes)
        label, class_names = classes.y, classes.names
        parts = _parts(table, columns, ends, label, nodes)
    elif columns.time is not None:
        raise table.error(f'time="{columns.time}" splits labelled rows, but there is no label.')
    split_by = None if parts is None else split_record(table, columns)
    return PairRows(ends, label, class_names, parts, split_by, _value_columns(table, columns))


def _parts(table: Table, columns: Columns, ends: Rows, label: Tensor, nodes: NodeRows) -> tuple[Tensor, ...]:
    """Returns the places of the pairs of each part: as a column or times say, or drawn.

    If parts are drawn, (u, v) and (v, u) are in the same one. Both are about the same two nodes, so that a training
    pair would else give away the label of a test pair.
    """
    ids = [[nodes.names[row] for row in of_end] for of_end in ends.tolist()]
    if columns.time is not None or columns.split in table.columns:
        return split_rows(table, columns, label, PAIR_FRACTIONS, ids)
    pair_of_row = np.unique(np.sort(ends, axis=0), axis=1, return_inverse=True)[1].reshape(-1)
    labelled = np.flatnonzero(label.numpy() >= 0)
    first = labelled[np.unique(pair_of_row[labelled], return_index=True)[1]]
    label_of_first = torch.full_like(label, -1)
    label_of_first[first] = label[first]
    part_of_pair = np.full(len(label), -1)
    for number, part in enumerate(split_rows(table, columns, label_of_first, PAIR_FRACTIONS, ids)):
        part_of_pair[pair_of_row[part]] = number
    part_of_labelled = part_of_pair[pair_of_row[labelled]]
    return tuple(torch.from_numpy(labelled[part_of_labelled == number]) for number in range(len(PAIR_FRACTIONS)))


def _value_columns(table: Table, columns: Columns) -> Sequence[str]:
    """Returns the columns that are values of the pairs, such as amounts: those that are named, or all others."""
    for column in columns.pair_features or ():
        table.require(column)
    if columns.pair_features is not None:
        return columns.pair_features
    if columns.label is not None:
        table.refuse_lookalikes(columns.label, LABEL_NAMES, "label")
    others = (columns.source, columns.target, columns.label, columns.split, columns.time)
    return [column for column in table.columns if column not in others]


def fit_values(table: Table, pairs: PairRows, kinds: dict[str, str]) -> tuple[Column, ...]:
    """Returns how the values of pairs are encoded, as the training pairs show it, or all of them without a split."""
    training = np.arange(len(table))
    if pairs.parts is not None and len(pairs.parts[0]):
        training = pairs.parts[0].numpy()
    return fit_columns(table, pairs.features, kinds, training)


def values_of_pairs(table: Table, pairs: PairRows, encoding: Sequence[Column] | None) -> Matrix:
    """Returns the values of each pair: encoded, or numbers as they are without an encoding."""
    if encoding is None:
        return table.numbers(pairs.features, "value")
    return encoded(table, encoding)


def _require_distinct(table: Table, ends: Rows, nodes: NodeRows) -> None:
    loops = np.flatnonzero(ends[0] == ends[1])
    if len(loops):
        name = nodes.names[ends[0, loops[0]]]
        raise table.error(
            f'row {loops[0] + 1} pairs "{name}" with itself: a decision is about two nodes. Leave such rows out.'
        )
    first_row: dict[tuple[int, int], int] = {}
    again = []
    for row, pair in enumerate(map(tuple, ends.T.tolist()), start=1):
        first = first_row.setdefault(pair, row)
        if first < row:
            again.append(f'"{nodes.names[pair[0]]}" and "{nodes.names[pair[1]]}" (rows {first} and {row})')
    if again:
        raise table.error(
            f"{len(again)} pair(s) are listed twice: {shortlist(again)}. A decision is about a pair of nodes, so that "
            "each has one row. Join the rows of a pair, or keep the last one."
        )
