"""Digests of canonical graphs: sha256 of ids, features, edges and edge values."""

import hashlib
from typing import Any

import numpy as np
from torch import Tensor

from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph
from agnncert.graphs.hashing import id_digest, row_digest

BLOCK = 2**20  # numbers that are converted at once


def graph_digest(graph: CanonicalGraph) -> str:
    """Returns the sha256 of a graph, or of joined graphs: ids, features, edges and edge values."""
    digest = _hashed(graph)
    digest.update(f"ids:{len(graph.id_digests)};{''.join(graph.id_digests)}".encode())
    return digest.hexdigest()


def digest_by_keys(graph: CanonicalGraph) -> str:
    """Returns the sha256 of a graph, or of joined graphs, with the 64-bit keys of the ids instead of the ids."""
    return _hashed(graph).hexdigest()


def digests_beyond_keys(graph: CanonicalGraph) -> list[str]:
    """Returns ``id_digests`` of the graphs whose ids cannot all be derived from their keys."""
    beyond = []
    for digest, keys in zip(graph.id_digests, graph.node_key.tensor_split(graph.starts[1:]), strict=True):
        if digest not in (id_digest(keys.numpy()), row_digest(len(keys))):
            beyond.append(digest)
    return beyond


def _hashed(graph: CanonicalGraph) -> "hashlib._Hash":
    digest = hashlib.sha256()
    for name in ("node_key", "x", "edge_index", *EDGE_VALUES, "batch"):
        tensor: Tensor | None = getattr(graph, name)
        if tensor is None:
            continue
        value = tensor.detach().cpu().numpy()
        dtype = np.dtype(np.int64) if name == "edge_index" else value.dtype
        digest.update(f"{name}:{dtype.str}:{value.shape};".encode())
        _update(digest, value, dtype)
    return digest


def _update(digest: "hashlib._Hash", value: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Adds the bytes of an array to a digest, in blocks if they must be copied."""
    if value.flags.c_contiguous and value.dtype == dtype:
        digest.update(value.data if value.size else b"")
        return
    for row in value.reshape(1, -1) if value.ndim < 2 else value:
        flat = row.reshape(-1)
        for first in range(0, len(flat), BLOCK):
            digest.update(np.ascontiguousarray(flat[first : first + BLOCK], dtype=dtype).data)
