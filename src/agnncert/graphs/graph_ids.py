"""Ids of graphs that are classified: ``graph_id``, or the digest of all that a graph holds."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import Id
from agnncert.errors import IdError


def stated_id(graph: Data, row: int) -> Id | None:
    """Returns the ``graph_id`` of a graph, or ``None`` if it has none.

    Args:
        graph: The graph.
        row: Its place in the list, for messages.

    Raises:
        IdError: The id is neither a whole number nor text.
    """
    value = getattr(graph, "graph_id", None)
    if value is None:
        return None
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | str | np.integer):
        raise IdError(f"graph {row} has the graph_id {value!r:.60}: expected a whole number or text.")
    return value if isinstance(value, str) else int(value)


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
                f"graph {row} holds {name}, a {type(value).__name__}, whose content has no digest: remove it "
                "from the graph, or give every graph an id that it keeps, graph.graph_id = …"
            )
    return digest.hexdigest()
