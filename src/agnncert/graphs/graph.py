"""From a user's ``Data`` to the checked, canonical graph that everything else works on.

A graph is checked once, here. From then on it has finite float features, unique ids, no self-loops (unless kept on
purpose) and edges in an order that depends on ids only, so that layers which depend on the order of edges see the same
sequence whenever they see the same neighbours.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import GraphError, IdError
from agnncert.graphs.hashing import id_keys

Task = Literal["node", "graph"]
EDGE_VALUES = ("edge_weight", "edge_attr")


def infer_task(data: object) -> Task:
    """``Data`` means node classification, a list or dataset of ``Data`` graph classification."""
    if isinstance(data, Data):
        return "node"
    if isinstance(data, Sequence) or (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        return "graph"
    raise GraphError(
        f"cannot tell the task from a {type(data).__name__}: pass a torch_geometric Data (node classification) or a "
        "list of Data (graph classification)."
    )


def canonical(data: Data, keep_self_loops: bool = False) -> Data:
    """Checks one graph for the node task and puts it into canonical form.

    The result has ``x``, ``edge_index``, the edge weights and attributes it came with, ``node_key`` (the 64-bit key of
    each node), ``stable_ids`` (whether ``node_id`` was given) and ``task``.
    """
    if not isinstance(data, Data):
        raise GraphError(f"expected a torch_geometric Data, got {type(data).__name__}.")
    graph = _checked(data, "the graph")
    graph.node_key, graph.stable_ids = _keys(data), _has_ids(data)
    graph.task = "node"
    return _ordered(graph, keep_self_loops)


def canonical_set(graphs: Sequence[Data], keep_self_loops: bool = False) -> Data:
    """Checks the graphs of a graph task and joins them into one canonical graph with a ``batch`` vector.

    Ids need to be unique within each graph only.
    """
    if len(graphs) == 0:
        raise GraphError("the dataset has no graphs: nothing to certify.")
    checked = [_checked(g, f"graph {k}") for k, g in enumerate(graphs)]
    widths = {g.x.size(1) for g in checked}
    if len(widths) > 1:
        raise GraphError(f"graphs differ in their number of features: {sorted(widths)}. All need the same.")
    sizes = torch.tensor([g.x.size(0) for g in checked])
    starts = torch.cumsum(sizes, 0) - sizes
    joined = Data(
        x=torch.cat([g.x for g in checked]),
        edge_index=torch.cat([g.edge_index + s for g, s in zip(checked, starts.tolist(), strict=True)], dim=1),
    )
    for name in EDGE_VALUES:
        present = [getattr(g, name, None) is not None for g in checked]
        if any(present) and not all(present):
            k = present.index(False)
            raise GraphError(f"graph {k} has no {name} while others have: give it to all graphs or to none.")
        if all(present):
            joined[name] = torch.cat([g[name] for g in checked])
    joined.batch = torch.repeat_interleave(torch.arange(len(checked)), sizes)
    joined.starts = starts
    joined.node_key = torch.cat([_keys(g, f"graph {k}: ") for k, g in enumerate(graphs)])
    joined.with_ids = torch.tensor([_has_ids(g) for g in graphs])
    joined.stable_ids = bool(joined.with_ids.all())
    joined.task = "graph"
    return _ordered(joined, keep_self_loops)


def one_graph(joined: Data, index: int) -> Data:
    """Graph ``index`` of a joined set, as a graph of its own with the same order of nodes and edges."""
    nodes = (joined.batch == index).nonzero().view(-1)
    start, stop = int(nodes[0]), int(nodes[-1]) + 1
    inside = (joined.edge_index[0] >= start) & (joined.edge_index[0] < stop)
    graph = Data(x=joined.x[start:stop], **select_edges(joined, inside))
    graph.edge_index -= start
    graph.node_key, graph.stable_ids, graph.task = joined.node_key[start:stop], joined.stable_ids, "graph"
    return graph


def select_edges(graph: Data, index: Tensor) -> dict[str, Tensor]:
    """``edge_index`` and the edge values of some edges, by name; ``index`` is a mask or holds their positions."""
    values = {name: graph[name][index] for name in EDGE_VALUES if name in graph}
    return {"edge_index": graph.edge_index[:, index], **values}


def node_keys(graph: Data) -> Tensor:
    """64-bit key of every node (bits of an int64), from ``node_key``, else ``node_id``, else the row number."""
    return graph.node_key if "node_key" in graph else _keys(graph)


def graph_digest(graph: Data, version: int = 2) -> str:
    """sha256 of a canonical graph: ids, features, edges and edge values."""
    digest = hashlib.sha256()
    for name in ("node_key", "x", "edge_index", *EDGE_VALUES, "batch"):
        if name in graph:
            value = np.ascontiguousarray(graph[name].detach().cpu().numpy())
            digest.update(f"{name}:{value.dtype.str}:{value.shape};".encode())
            digest.update(value.tobytes())
    return digest.hexdigest()


def _has_ids(data: Data) -> bool:
    return getattr(data, "node_id", None) is not None


def _keys(data: Data, where: str = "") -> Tensor:
    if not _has_ids(data):
        return torch.arange(data.num_nodes)
    ids = data.node_id
    if isinstance(ids, Tensor):
        ids = ids.cpu().numpy()
    if not hasattr(ids, "__len__"):
        raise IdError(f"{where}node_id is a {type(ids).__name__}: give a list or tensor with one id per node.")
    if len(ids) != data.num_nodes:
        raise IdError(f"{where}node_id has {len(ids)} entries for {data.num_nodes} nodes: one id per node is needed.")
    try:
        return torch.from_numpy(id_keys(ids).view(np.int64))
    except IdError as error:
        raise IdError(f"{where}{error}") from None


def _checked(data: Data, where: str) -> Data:
    """The parts of ``data`` that a model may see, each checked."""
    if not isinstance(data, Data):
        raise GraphError(f"{where} is a {type(data).__name__}, expected a torch_geometric Data.")
    x = data.x
    if x is None:
        raise GraphError(f"{where} has no node features x: give every node a feature row, if only of ones.")
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2:
        raise GraphError(f"{where}: x must be a dense tensor of shape [num_nodes, num_features].")
    if x.size(0) == 0:
        raise GraphError(f"{where} has no nodes: nothing to certify.")
    if x.is_complex():
        raise GraphError(
            f"{where}: x is complex ({x.dtype}): give real features, e.g. torch.view_as_real(x).flatten(1)."
        )
    x = x if x.is_floating_point() else x.float()
    _require_finite(x, f"{where}: features x", "node")
    edge_index = data.edge_index
    if edge_index is None:
        if getattr(data, "adj_t", None) is not None:  # else the graph would count as one without edges
            raise GraphError(
                f"{where} has its edges in adj_t: give them as edge_index (leave out the ToSparseTensor transform)."
            )
        edge_index = torch.empty(2, 0, dtype=torch.int64)
    if not isinstance(edge_index, Tensor):
        raise GraphError(
            f"{where}: edge_index is a {type(edge_index).__name__}, expected an integer tensor [2, num_edges]."
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
        shape = tuple(edge_index.shape)
        raise GraphError(
            f"{where}: edge_index has shape {shape} and type {edge_index.dtype}, expected integers [2, num_edges]."
        )
    edge_index = edge_index.long()
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= x.size(0)):
        bad = int(((edge_index < 0) | (edge_index >= x.size(0))).any(0).nonzero()[0])
        raise GraphError(
            f"{where}: edge {bad} joins rows {edge_index[:, bad].tolist()}, but there are only {x.size(0)} nodes (0 to "
            f"{x.size(0) - 1}): remove it or add the node."
        )
    graph = Data(x=x, edge_index=edge_index)
    for name in EDGE_VALUES:
        value = getattr(data, name, None)
        if value is None:
            continue
        if not isinstance(value, Tensor) or value.dim() == 0 or value.size(0) != edge_index.size(1):
            given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"type {type(value).__name__}"
            raise GraphError(
                f"{where}: {name} has {given} for {edge_index.size(1)} edges: a tensor with one row per edge is needed."
            )
        _require_finite(value, f"{where}: {name}", "edge")
        graph[name] = value
    return graph


def _require_finite(value: Tensor, what: str, unit: str) -> None:
    # A single NaN or infinity can spread to every node in dense arithmetic, and no margin survives it.
    if value.is_floating_point() and not bool(torch.isfinite(value).all()):
        bad = (~torch.isfinite(value)).view(value.size(0), -1).any(1).nonzero().view(-1)
        raise GraphError(
            f"{what} of {len(bad)} {unit}(s) are not finite (first: row {int(bad[0])}): replace NaN and "
            "infinity before certifying."
        )


def _ordered(graph: Data, keep_self_loops: bool) -> Data:
    """Sorts edges by (id of the head, id of the source, values) and drops self-loops."""
    source, head = graph.edge_index
    kept = torch.arange(len(source)) if keep_self_loops else (source != head).nonzero().view(-1)
    rank = torch.empty_like(graph.node_key)
    rank[torch.argsort(graph.node_key, stable=True)] = torch.arange(len(rank))
    if "batch" in graph:  # keep graphs apart: ids are compared within a graph only
        rank += graph.batch * len(rank)
    columns = [rank[head[kept]], rank[source[kept]]]
    for value in (graph[name][kept].detach() for name in EDGE_VALUES if name in graph):
        columns += value.reshape(len(kept), math.prod(value.shape[1:])).unbind(1)
    order = np.lexsort([column.numpy() for column in reversed(columns)])  # lexsort takes the most important key last
    for name, value in select_edges(graph, kept[torch.from_numpy(order)]).items():
        graph[name] = value
    return graph
