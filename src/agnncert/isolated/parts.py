"""Sorts training graphs into parts, by their ids alone.

An id is ``graph_id``, or for graphs without one the digest of all that the graph holds. Then the id of an altered graph
is another one, as if it were deleted and another one inserted, and no id depends on the place of a graph in its list.
"""

import hashlib
from collections import Counter
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


def sort_into_parts(data: Any, num_parts: int, hash: str, ids: str = "graph_id") -> list[list[Data]]:
    """Returns the training and validation graphs of each part, in the order of their ids.

    The part of a graph depends on its id, the number of parts and the hash function, and on nothing else: neither on
    its place in the list nor on other graphs that differ from it.

    Args:
        data: Graphs with ``train`` and, if there are any, ``val``.
        num_parts: Number of parts.
        hash: Name of a hash function.
        ids: ``"graph_id"``, which every training graph then has, or ``"content"``. Defaults to ``"graph_id"``.

    Raises:
        DatasetError: A graph has no ``graph_id``, or there is no training part.
        IdError: An id is neither a whole number nor text, or two training graphs have the same one.
    """
    rows = training_rows_of(data)
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


def content_ids(graphs: Sequence[Data]) -> list[str]:
    """Returns an id for each graph: the digest of all that it holds, and how many equal graphs come before it.

    Equal graphs are told apart by numbers alone, so that one more or one less adds or removes one id and leaves the
    graphs of all others as they are.
    """
    seen: Counter[str] = Counter()
    ids = []
    for row, graph in enumerate(graphs):
        digest = _content_digest(graph, row)
        ids.append(f"{digest}/{seen[digest]}")
        seen[digest] += 1
    return ids


def _content_digest(graph: Data, row: int) -> str:
    """Returns the SHA-256 of all that a graph holds, by name. Another order of nodes or edges is another content."""
    digest = hashlib.sha256()
    content = graph.to_dict()
    for name in sorted(content):
        value = content[name]
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
            digest.update(flat.view(torch.uint8).numpy().tobytes())
        elif value is None or isinstance(value, bool | int | float | str):
            digest.update(f"{name}:{type(value).__name__}:{value!r};".encode())
        else:
            raise IdError(
                f"training graph {row} holds {name}, a {type(value).__name__}, whose content has no digest: remove it "
                "from the graph, or give every graph an id that it keeps, graph.graph_id = …"
            )
    return digest.hexdigest()


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
            f"training graph {row} has no graph_id. An id decides to which part a graph belongs; its place in the list "
            "cannot, because it changes when another graph is inserted. Give every graph an id that it keeps, "
            'graph.graph_id = …, or use what it holds as its id: IsolatedModels(ids="content"), or --set '
            "defence.ids=content in a command. An altered graph then counts as two poisoned ones."
        )
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | str | np.integer):
        raise IdError(f"training graph {row} has the graph_id {value!r:.60}: expected a whole number or text.")
    return value if isinstance(value, str) else int(value)
