"""Sorts training graphs into parts, by their ids alone.

An id is ``graph_id``, or for graphs without one the digest of all that the graph holds. Then the id of an altered graph
is another one, as if it were deleted and another one inserted, and no id depends on the place of a graph in its list.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from agnncert.certificates.ids import Id, encode_ids, order_of
from agnncert.errors import DatasetError
from agnncert.graphs.graph_ids import content_ids, stated_id
from agnncert.graphs.hashing import id_keys, node_groups
from agnncert.training.labels import part_rows

Rows = npt.NDArray[np.int64]


def sort_into_parts(
    data: Any, num_parts: int, hash: str, ids: str = "graph_id", left_out: Collection[int] = ()
) -> list[list[Data]]:
    """Returns the training and validation graphs of each part, in the order of their ids.

    The part of a graph depends on its id, the number of parts and the hash function, and on nothing else: neither on
    its place in the list nor on other graphs that differ from it.

    Args:
        data: Graphs with ``train`` and, if there are any, ``val``.
        num_parts: Number of parts.
        hash: Name of a hash function.
        ids: ``"graph_id"``, which every training graph then has, or ``"content"``. Defaults to ``"graph_id"``.
        left_out: Rows of graphs that are in no part. Defaults to none.

    Raises:
        DatasetError: A graph has no ``graph_id``, or there is no training part.
        IdError: An id is neither a whole number nor text, or two training graphs have the same one.
    """
    rows = [row for row in training_rows_of(data) if row not in left_out]
    graphs = [data[row] for row in rows]
    if ids == "content":
        named: list[Id] = [*content_ids(graphs)]
    else:
        named = [_id_of(graph, row) for graph, row in zip(graphs, rows, strict=True)]
    encoded = encode_ids(named)
    listed: Sequence[Id] = encoded.tolist() if isinstance(encoded, np.ndarray) else encoded
    groups = node_groups(id_keys(named), num_parts, hash)
    parts: list[list[Data]] = [[] for _ in range(num_parts)]
    for position in sorted(range(len(named)), key=lambda position: order_of(listed[position])):
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
    stated = stated_id(graph, row)
    if stated is None:
        raise DatasetError(
            f"training graph {row} has no graph_id. An id decides to which part a graph belongs; its place in the list "
            "cannot, because it changes when another graph is inserted. Give every graph an id that it keeps, "
            'graph.graph_id = …, or use what it holds as its id: IsolatedModels(ids="content"), or --set '
            "defence.ids=content in a command. An altered graph then counts as two poisoned ones."
        )
    return stated
