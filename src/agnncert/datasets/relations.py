"""Graphs with directed, signed or typed edges as one ``Data``: what an edge is stands in its row of ``edge_attr``."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce, remove_self_loops

from agnncert.datasets.splits import MASKS
from agnncert.errors import GraphError
from agnncert.graphs.graph import listed_ids


def both_directions(edge_index: Tensor, values: Tensor, num_nodes: int, reduce: str = "sum") -> tuple[Tensor, Tensor]:
    """Joins each pair in both directions, and keeps direction and values in the rows of ``edge_attr``.

    Args:
        edge_index: Directed edges, shape ``[2, m]``. Self-loops are left out.
        values: What is known about each, shape ``[m, k]``: a rating, a one-hot relation, or just a 1.
        num_nodes: Number of nodes.
        reduce: How the values of edges with the same src and dst are joined: ``"sum"``, ``"max"``, ``"min"`` or
            ``"mean"``.

    Returns:
        ``edge_index``, each pair once in both directions, and ``edge_attr``, shape ``[num_edges, 2 k]``: the values of
        src → dst, then those of dst → src, zeros where there is no such edge.

    Example:
        >>> edges, rating = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.tensor([[5.0], [-3.0], [1.0]])
        >>> both_directions(edges, rating, num_nodes=3)[1].tolist()
        [[5.0, -3.0], [-3.0, 5.0], [1.0, 0.0], [0.0, 1.0]]
    """
    edge_index, values = coalesce(*remove_self_loops(edge_index, values), num_nodes, reduce=reduce)
    nothing = torch.zeros_like(values)
    rows = torch.cat([torch.cat([values, nothing], 1), torch.cat([nothing, values], 1)])
    joined, rows = coalesce(torch.cat([edge_index, edge_index.flip(0)], 1), rows, num_nodes, reduce="sum")
    return joined, rows


def from_hetero(data: HeteroData, *, target: str | None = None) -> Data:
    """Makes one graph of a graph with several kinds of nodes or edges; the model ``"rgcn"`` reads it.

    Args:
        data: The graph. Every kind of nodes needs ``x`` and, if one has ``node_id``, that too.
        target: The kind of nodes to classify. Defaults to the only one with labels ``y``.

    Returns:
        A ``Data``. With one kind of nodes, ``x`` and ``node_id`` are as given. With several, ``x`` has a column for
        each kind, which is 1 for its nodes, then the features of each kind in columns of their own, and ids are
        ``"kind:id"``. ``y`` (-1 at other kinds) and masks are those of the target. ``edge_attr`` has a column for each
        relation, then the values of each relation, and all of these again for the other direction, see
        ``both_directions``; ``edge_names`` has the names of the columns.

    Raises:
        GraphError: Features or ids are missing, or it cannot be told which nodes to classify.
    """
    if not isinstance(data, HeteroData):
        raise GraphError(f"expected a torch_geometric HeteroData, got {type(data).__name__}.")
    kinds = data.node_types
    labelled = [kind for kind in kinds if "y" in data[kind]]
    if target not in (*kinds, None) or (target is None and len(labelled) != 1):
        raise GraphError(f"target={target!r}: say which nodes to classify; there are {', '.join(kinds)}.")
    bare = [kind for kind in kinds if "x" not in data[kind]]
    if bare:
        raise GraphError(f"nodes of kind {', '.join(bare)} have no features x: give them some, if only ones.")
    sizes = torch.tensor([data[kind].x.size(0) for kind in kinds])
    start, total = dict(zip(kinds, (sizes.cumsum(0) - sizes).tolist(), strict=True)), int(sizes.sum())
    edge_index, values, names = _typed_edges(data, start)
    edge_index, edge_attr = both_directions(edge_index, values, total, reduce="max")
    x = _diagonal([data[kind].x.float() for kind in kinds])
    if len(kinds) > 1:
        x = torch.cat([torch.repeat_interleave(torch.eye(len(kinds)), sizes, dim=0), x], 1)
    names = [*names, *(f"{name}, back" for name in names)]
    whole = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, edge_names=names)
    if any("node_id" in data[kind] for kind in kinds):
        whole.node_id = _ids(data)
    chosen = data[target or labelled[0]]
    first = start[target or labelled[0]]
    for name in ("y", *MASKS):
        if name in chosen:
            given = chosen[name]
            whole[name] = given.new_full((total, *given.shape[1:]), 0 if given.dtype == torch.bool else -1)
            whole[name][first : first + len(given)] = given
    return whole


def _typed_edges(data: HeteroData, start: dict[str, int]) -> tuple[Tensor, Tensor, list[str]]:
    """Edges of all relations, a row of values for each, and the names of the columns."""
    relations = [kind for kind in data.edge_types if data[kind].edge_index.size(1)]
    if not relations:
        raise GraphError("the graph has no edges: there is no relation between nodes.")
    names, ends, parts = [" ".join(kind) for kind in relations], [], []
    for kind in relations:
        store = data[kind]
        ends.append(store.edge_index + torch.tensor([[start[kind[0]]], [start[kind[2]]]]))
        count = store.edge_index.size(1)
        own = [store[name].float().view(count, -1) for name in ("edge_weight", "edge_attr") if name in store]
        parts.append(torch.cat([torch.zeros(count, 0), *own], 1))
        names += [f"{' '.join(kind)}, value {k}" for k in range(parts[-1].size(1))]
    counts = torch.tensor([len(part) for part in parts])
    relation = torch.repeat_interleave(torch.eye(len(parts)), counts, dim=0)
    return torch.cat(ends, 1), torch.cat([relation, _diagonal(parts)], 1), names


def _diagonal(parts: Sequence[Tensor]) -> Tensor:
    """The matrices one below the other, each in columns of its own."""
    return cast(Tensor, torch.block_diag(*parts))  # type: ignore[no-untyped-call]


def _ids(data: HeteroData) -> Any:
    """Ids of all nodes, with their kind before them if there are several kinds."""
    kinds = data.node_types
    absent = [kind for kind in kinds if "node_id" not in data[kind]]
    if absent:
        raise GraphError(
            f"nodes of kind {', '.join(absent)} have no node_id, and others have: give it to all or to none."
        )
    if len(kinds) == 1:
        return data[kinds[0]].node_id
    return [f"{kind}:{name}" for kind in kinds for name in listed_ids(data[kind].node_id)]
