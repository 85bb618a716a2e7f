"""``canonical`` and ``canonical_set``: a user's ``Data``, checked and put into canonical form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import GraphError
from agnncert.graphs.checks import CheckedGraph, checked_graph
from agnncert.graphs.graph import CanonicalGraph

IntArray = npt.NDArray[np.int64]
BLOCK = 2**20  # edges that are processed at once
COMPACT_FROM = 2**22  # number of edges from which on they may be stored as int32


def canonical(data: Data, keep_self_loops: bool = False, compact: bool = False, finite: bool = False) -> CanonicalGraph:
    """Checks one graph for the node task and puts it into canonical form.

    Args:
        data: The graph.
        keep_self_loops: Whether self-loops stay.
        compact: Whether millions of edges may be stored as int32 instead of int64. Edges that are already in canonical
            order are then not copied.
        finite: Whether ``x`` is known to be finite, so that the check is skipped.

    Raises:
        GraphError: The graph cannot be used; the message says why.
        IdError: ``node_id`` does not give each node a unique id.
    """
    if not isinstance(data, Data):
        raise GraphError(f"expected a torch_geometric Data, got {type(data).__name__}.")
    checked = checked_graph(data, "the graph", compact=compact, finite=finite)
    return _ordered(checked.graph, keep_self_loops, checked.ties, compact)


def canonical_set(graphs: Sequence[Data], keep_self_loops: bool = False) -> CanonicalGraph:
    """Checks the graphs of a graph task and joins them into one canonical graph with a ``batch`` vector.

    Ids must be unique within each graph only.

    Args:
        graphs: The graphs.
        keep_self_loops: Whether self-loops stay.

    Raises:
        GraphError: A graph cannot be used, graphs do not fit each other, or there are none.
        IdError: ``node_id`` does not give each node of a graph a unique id.
    """
    if len(graphs) == 0:
        raise GraphError("the dataset has no graphs: nothing to certify.")
    checked = [checked_graph(graph, f"graph {k}", f"graph {k}: ") for k, graph in enumerate(graphs)]
    joined = _joined([part.graph for part in checked])
    return _ordered(joined, keep_self_loops, _joined_ties(checked))


def _joined(graphs: Sequence[CanonicalGraph]) -> CanonicalGraph:
    """Joins checked graphs into one."""
    widths = {graph.x.size(1) for graph in graphs}
    if len(widths) > 1:
        raise GraphError(f"graphs differ in their number of features: {sorted(widths)}. All need the same.")
    sizes = torch.tensor([graph.num_nodes for graph in graphs])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    return CanonicalGraph(
        x=torch.cat([graph.x for graph in graphs]),
        edge_index=torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)], dim=1),
        node_key=torch.cat([graph.node_key for graph in graphs]),
        edge_weight=_joined_values(graphs, "edge_weight"),
        edge_attr=_joined_values(graphs, "edge_attr"),
        task="graph",
        id_digests=tuple(graph.id_digests[0] for graph in graphs),
        has_ids=tuple(graph.has_ids[0] for graph in graphs),
        batch=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
    )


def _joined_values(graphs: Sequence[CanonicalGraph], name: str) -> Tensor | None:
    """Joins the edge values of graphs, which either all have or all lack them."""
    values = [graph.edge_values.get(name) for graph in graphs]
    present = [value for value in values if value is not None]
    if not present:
        return None
    if len(present) < len(graphs):
        without = next(k for k, value in enumerate(values) if value is None)
        raise GraphError(f"graph {without} has no {name} while others have: give it to all graphs or to none.")
    return torch.cat(present)


def _joined_ties(checked: Sequence[CheckedGraph]) -> Tensor | None:
    """Joins the ties of graphs; zeros stand for those of a graph in which no key is shared."""
    if all(part.ties is None for part in checked):
        return None
    return torch.cat([torch.zeros_like(part.graph.node_key) if part.ties is None else part.ties for part in checked])


@dataclass(frozen=True)
class _IdOrder:
    """The order of nodes by id.

    Attributes:
        nodes: The nodes, in this order.
        rank: Rank of each node.
        head_rank: Rank of each node as the head of an edge: edges of joined graphs are sorted by graph first, because
            ids are compared within a graph only.
    """

    nodes: Tensor
    rank: Tensor
    head_rank: Tensor


def _ordered(
    graph: CanonicalGraph, keep_self_loops: bool, ties: Tensor | None, compact: bool = False
) -> CanonicalGraph:
    """Sorts edges by (id of dst, id of src, values) and drops self-loops.

    Nodes are ranked by key, and nodes that share a key by their ids. If nodes were ranked by row, two neighbours with
    the same key would change places when the rows of the data are sorted differently; a layer that depends on the
    order of edges would then see another sequence in a subgraph that no change has reached. With ranks by id, an
    injected node, whatever its key, leaves the order of all other nodes unchanged.

    Args:
        graph: A checked graph, or several joined ones.
        keep_self_loops: Whether self-loops stay.
        ties: What decides the order of nodes that share a key, as in ``keys_and_ties``.
        compact: As in ``canonical``.
    """
    order = _id_order(graph, ties)
    num_nodes = len(order.rank)
    keys_overflow = (int(order.head_rank.max()) + 1) * num_nodes >= 2**63
    if graph.edge_values or keys_overflow:
        return _sorted_by_columns(graph, order, keep_self_loops)
    keys = _edge_keys(graph.edge_index, order, keep_self_loops)
    return graph.with_other_edges(_sorted_ends(graph.edge_index, keys, order, compact))


def _id_order(graph: CanonicalGraph, ties: Tensor | None) -> _IdOrder:
    """Ranks nodes by key, and nodes that share a key by their ids."""
    if ties is None:
        nodes = torch.argsort(graph.node_key, stable=True)
    else:
        nodes = torch.from_numpy(np.lexsort([ties.numpy(), graph.node_key.numpy()]))
    rank = torch.empty_like(nodes)
    rank[nodes] = torch.arange(len(rank))
    head_rank = rank if graph.batch is None else rank + graph.batch * len(rank)
    return _IdOrder(nodes, rank, head_rank)


def _edge_keys(edge_index: Tensor, order: _IdOrder, keep_self_loops: bool) -> IntArray:
    """Returns the number by which each kept edge is sorted: the rank of dst, then the rank of src."""
    rank = order.rank.numpy()
    head_rank = order.head_rank.numpy()
    keys = np.empty(edge_index.size(1), dtype=np.int64)
    num_kept = 0
    for first in range(0, len(keys), BLOCK):
        src, dst = edge_index[:, first : first + BLOCK].numpy()
        if not keep_self_loops:
            is_kept = src != dst
            src, dst = src[is_kept], dst[is_kept]
        keys[num_kept : num_kept + len(src)] = head_rank[dst] * len(rank) + rank[src]
        num_kept += len(src)
    return keys[:num_kept]


def _sorted_ends(edge_index: Tensor, keys: IntArray, order: _IdOrder, compact: bool) -> Tensor:
    """Returns the edges in the order of their keys, from which alone they are computed."""
    is_sorted = bool((keys[1:] >= keys[:-1]).all())
    if is_sorted and compact and len(keys) == edge_index.size(1):
        return edge_index
    if not is_sorted:
        keys.sort()
    nodes = order.nodes.numpy()
    fits_int32 = compact and len(keys) >= COMPACT_FROM and len(nodes) < 2**31
    result = np.empty((2, len(keys)), dtype=np.int32 if fits_int32 else np.int64)
    for first in range(0, len(keys), BLOCK):
        part = slice(first, first + BLOCK)
        head_rank, src_rank = np.divmod(keys[part], len(nodes))
        result[0, part] = nodes[src_rank]
        result[1, part] = nodes[head_rank % len(nodes)]
    return torch.from_numpy(result)


def _sorted_by_columns(graph: CanonicalGraph, order: _IdOrder, keep_self_loops: bool) -> CanonicalGraph:
    """Sorts edges column by column, for edges with values and for graphs whose keys exceed 63 bits."""
    src, dst = graph.edge_index
    kept = torch.arange(len(src)) if keep_self_loops else (src != dst).nonzero().view(-1)
    columns = [order.head_rank[dst[kept]], order.rank[src[kept]]]
    for value in graph.edge_values.values():
        rows = value[kept].detach()
        columns += rows.reshape(len(kept), math.prod(rows.shape[1:])).unbind(1)
    # lexsort takes the most important key last.
    by_columns = np.lexsort([column.numpy() for column in reversed(columns)])
    return graph.with_edges(kept[torch.from_numpy(by_columns)])
