"""Sorts training graphs into parts, by their ids alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import Id, encode_ids, order_of
from agnncert.errors import DatasetError, IdError
from agnncert.graphs.hashing import id_keys, node_groups
from agnncert.training.labels import part_rows

Rows = npt.NDArray[np.int64]


def sort_into_parts(data: Any, num_parts: int, hash: str) -> list[list[Data]]:
    """Returns the training and validation graphs of each part, in the order of their ids.

    The part of a graph depends on its ``graph_id``, the number of parts and the hash function, and on nothing else:
    neither on its place in the list nor on the other graphs.

    Args:
        data: Graphs with ``train`` and, if there are any, ``val``, each with a ``graph_id``.
        num_parts: Number of parts.
        hash: Name of a hash function.

    Raises:
        DatasetError: A graph has no ``graph_id``, or there is no training part.
        IdError: An id is neither a whole number nor text, or two training graphs have the same one.
    """
    rows = training_rows_of(data)
    graphs = [data[row] for row in rows]
    ids = [_id_of(graph, row) for graph, row in zip(graphs, rows, strict=True)]
    encoded = encode_ids(ids)
    listed: Sequence[Id] = encoded.tolist() if isinstance(encoded, np.ndarray) else encoded
    groups = node_groups(id_keys(ids), num_parts, hash)
    parts: list[list[Data]] = [[] for _ in range(num_parts)]
    for position in sorted(range(len(ids)), key=lambda position: order_of(listed[position])):
        parts[int(groups[position])].append(graphs[position])
    return parts


def training_rows_of(data: Any) -> list[int]:
    """Returns the rows of the training and validation graphs: whoever alters one of them poisons training."""
    rows = part_rows(data, "train").tolist()
    validation = getattr(data, "val", None)
    if validation is not None:
        rows += [int(row) for row in validation]
    return rows


def _id_of(graph: Data, row: int) -> Id:
    value = getattr(graph, "graph_id", None)
    if value is None:
        raise DatasetError(
            f"training graph {row} has no graph_id. Parts are formed by ids, because a place in a list changes when "
            "another graph is inserted: give every graph an id that it keeps, graph.graph_id = …"
        )
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | str | np.integer):
        raise IdError(f"training graph {row} has the graph_id {value!r:.60}: expected a whole number or text.")
    return value if isinstance(value, str) else int(value)
