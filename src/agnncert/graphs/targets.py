"""Targets: which rows of the data are certified, and what is known about each of them."""

from typing import Any

import numpy as np
import torch

from agnncert.errors import GraphError
from agnncert.graphs.graph import Task


def target_rows(targets: object, total: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Row numbers from a mask, an index, or ``None`` for all."""
    if targets is None:
        return np.arange(total, dtype=np.int64)
    rows = np.asarray(targets)
    if rows.ndim == 0:
        rows = rows.reshape(1)
    if rows.dtype == bool:
        if rows.shape != (total,):
            raise GraphError(f"the target mask has shape {rows.shape}, the data has {total} rows: they must agree.")
        return np.flatnonzero(rows).astype(np.int64)
    if rows.ndim != 1 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        raise GraphError(
            f"targets must be a mask or row numbers, got an array of {rows.dtype} with shape {rows.shape}."
        )
    rows = rows.astype(np.int64)
    outside = rows[(rows < 0) | (rows >= total)]
    if outside.size:
        raise GraphError(f"targets name row {outside[0]}, but the data has rows 0 to {total - 1}.")
    if len(np.unique(rows)) != len(rows):
        raise GraphError("targets name a row twice: give each target once.")
    return rows


def target_ids(data: Any, rows: Any, task: Task) -> Any:
    """Ids of the targets: those of ``node_id`` if there are any, else row numbers."""
    if task == "graph":
        return rows
    ids = getattr(data, "node_id", None)
    if ids is None:
        return rows
    picked = np.asarray(ids)[rows]
    return picked.astype(np.int64) if picked.dtype.kind in "iu" else picked.astype(str)


def target_truth(data: Any, rows: Any, task: Task) -> Any:
    """True classes of the targets, ``None`` where they are not known."""
    if task == "graph":
        labels = [getattr(data[int(k)], "y", None) for k in rows]
        known = [int(y) for y in labels if y is not None]
        return np.array(known, dtype=np.int64) if len(known) == len(labels) else None
    y = getattr(data, "y", None)
    return None if y is None or y.dim() != 1 else y.numpy()[rows].astype(np.int64)


def target_degree(graph: Any, rows: Any, task: Task) -> Any:
    """Distinct neighbours of each target node, or edges of each target graph."""
    source, head = graph.edge_index
    pairs = torch.unique(torch.minimum(source, head) * graph.num_nodes + torch.maximum(source, head))
    low, high = torch.div(pairs, graph.num_nodes, rounding_mode="floor"), pairs % graph.num_nodes
    if task == "graph":
        return torch.bincount(graph.batch[low], minlength=len(rows)).numpy()
    degree = torch.bincount(low, minlength=graph.num_nodes) + torch.bincount(
        high[high != low], minlength=graph.num_nodes
    )
    return degree.numpy()[rows]
