"""Graphs with directed, signed or typed edges as one ``Data``: what an edge is stands in its row of ``edge_attr``."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce, remove_self_loops

from agnncert.datasets.hetero_checks import require_usable
from agnncert.datasets.splits import MASKS
from agnncert.errors import GraphError, suggests_arguments
from agnncert.graphs.node_ids import listed_ids


def both_directions(edge_index: Tensor, values: Tensor, num_nodes: int, reduce: str = "sum") -> tuple[Tensor, Tensor]:
    """Joins each pair in both directions, and keeps direction and values in the rows of ``edge_attr``.

    Args:
        edge_index: Directed edges, shape ``[2, m]``. Self-loops are left out.
        values: What is known about each, shape ``[m, k]``: a rating, a one-hot relation, or just a 1.
        num_nodes: Number of nodes.
        reduce: How the values of edges with the same src and dst are joined: ``"sum"``, ``"max"``, ``"min"`` or
            ``"mean"``.

    Returns:
        ``edge_index``, each pair once in both directions, and ``edge_attr``, shape ``[num_edges, 2 k]``, with values
        of src → dst, then those of dst → src, zeros where there is no such edge.

    Example:
        >>> edges, rating = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.tensor([[5.0], [-3.0], [1.0]])
        >>> both_directions(edges, rating, num_nodes=3)[1].tolist()
        [[5.0, -3.0], [-3.0, 5.0], [1.0, 0.0], [0.0, 1.0]]
    """
    edge_index, values = coalesce(*remove_self_loops(edge_index, values), num_nodes, reduce=reduce)
    nothing = torch.zeros_like(values)
    forward = torch.cat([values, nothing], dim=1)
    backward = torch.cat([nothing, values], dim=1)
    joined, rows = coalesce(
        torch.cat([edge_index, edge_index.flip(0)], dim=1), torch.cat([forward, backward]), num_nodes, reduce="sum"
    )
    return joined, rows


@suggests_arguments
def from_hetero(data: HeteroData, *, target: str | None = None) -> Data:
    """Makes one graph of a graph with several kinds of nodes or edges, which the model ``"rgcn"`` reads.

    Args:
        data: The graph. Every kind of nodes needs ``x`` and, if one has ``node_id``, that too.
        target: The kind of nodes to classify. Defaults to the only one with labels ``y``.

    Returns:
        A ``Data``. With one kind of nodes, ``x`` and ``node_id`` are as given. With several, ``x`` has a column for
        each kind, which is 1 for its nodes, then the features of each kind in columns of their own, and ids are
        ``"kind:id"``. ``y`` (-1 at other kinds) and masks are those of the target. ``edge_attr`` has a column for each
        relation, then the values of each relation, and all of these again for the other direction, see
        ``both_directions``. ``edge_names`` has the names of the columns.

    Raises:
        GraphError: Features, edges or ids are missing or do not fit, or it cannot be told which nodes to
            classify.
    """
    require_usable(data)
    kinds = data.node_types
    target = target_kind(data, target)
    sizes = torch.tensor([data[kind].x.size(0) for kind in kinds])
    total = int(sizes.sum())
    starts = dict(zip(kinds, (sizes.cumsum(0) - sizes).tolist(), strict=True))
    edges = _typed_edges(data, starts)
    edge_index, edge_attr = both_directions(edges.edge_index, edges.values, total, reduce="max")
    x = _diagonal([data[kind].x.float() for kind in kinds])
    if len(kinds) > 1:
        kind_of_node = torch.repeat_interleave(torch.eye(len(kinds)), sizes, dim=0)
        x = torch.cat([kind_of_node, x], dim=1)
    names = [*edges.names, *(f"{name}, back" for name in edges.names)]
    joined = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, edge_names=names)
    if any("node_id" in data[kind] for kind in kinds):
        joined.node_id = _ids(data)
    for name in ("y", *MASKS):
        if name in data[target]:
            joined[name] = _spread(data[target][name], starts[target], total)
    return joined


def target_kind(data: HeteroData, target: str | None) -> str:
    """Returns the kind of nodes to classify, or raises GraphError if it is unknown, or cannot be told."""
    kinds = data.node_types
    labelled = [kind for kind in kinds if "y" in data[kind]]
    if target is None and len(labelled) == 1:
        return str(labelled[0])
    if target is None or target not in kinds:
        raise GraphError(f"target={target!r}: say which nodes to classify; there are {', '.join(kinds)}.")
    return target


def _spread(values: Tensor, start: int, total: int) -> Tensor:
    """Returns labels or a mask of all nodes: those given from a row on, and -1 or False at others."""
    spread = values.new_full((total, *values.shape[1:]), 0 if values.dtype == torch.bool else -1)
    spread[start : start + len(values)] = values
    return spread


class _TypedEdges(NamedTuple):
    """Edges of all relations, a row of values for each, and the names of the columns."""

    edge_index: Tensor
    values: Tensor
    names: list[str]


def _typed_edges(data: HeteroData, starts: dict[str, int]) -> _TypedEdges:
    """Returns the edges of all relations.

    Args:
        data: The graph.
        starts: Row of the first node of each kind.
    """
    relations = relations_with_edges(data)
    names = [" ".join(relation) for relation in relations]
    ends = []
    values = []
    for relation in relations:
        store = data[relation]
        source, _, head = relation
        ends.append(store.edge_index + torch.tensor([[starts[source]], [starts[head]]]))
        values.append(values_of_relation(store))
        names += [f"{' '.join(relation)}, value {k}" for k in range(values[-1].size(1))]
    counts = torch.tensor([len(value) for value in values])
    relation_of_edge = torch.repeat_interleave(torch.eye(len(relations)), counts, dim=0)
    return _TypedEdges(torch.cat(ends, dim=1), torch.cat([relation_of_edge, _diagonal(values)], dim=1), names)


def relations_with_edges(data: HeteroData) -> list[tuple[str, str, str]]:
    """Returns the relations that have an edge, in the order of the data.

    Raises:
        GraphError: There is none.
    """
    relations = [kind for kind in data.edge_types if data[kind].edge_index.size(1)]
    if not relations:
        raise GraphError("the graph has no edges: there is no relation between nodes.")
    return relations


def values_of_relation(store: Any) -> Tensor:
    """Returns weights and attributes of the edges of one relation, shape ``[num_edges, num_values]``."""
    count = store.edge_index.size(1)
    values = [torch.zeros(count, 0)]
    for name in ("edge_weight", "edge_attr"):
        if name in store:
            values.append(store[name].float().view(count, -1))
    return torch.cat(values, dim=1)


def _diagonal(parts: Sequence[Tensor]) -> Tensor:
    """Returns the matrices one below the other, each in columns of its own."""
    return cast(Tensor, torch.block_diag(*parts))  # type: ignore[no-untyped-call]


def _ids(data: HeteroData) -> Any:
    """Returns the ids of all nodes, with their kind before them if there are several kinds."""
    kinds = data.node_types
    absent = [kind for kind in kinds if "node_id" not in data[kind]]
    if absent:
        raise GraphError(
            f"nodes of kind {', '.join(absent)} have no node_id, and others have: give it to all or to none."
        )
    if len(kinds) == 1:
        return data[kinds[0]].node_id
    return [f"{kind}:{name}" for kind in kinds for name in listed_ids(data[kind].node_id)]
