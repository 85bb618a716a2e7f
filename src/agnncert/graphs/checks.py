"""``checked_graph``: the parts of a user's ``Data`` that a model may see, checked one by one."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import GraphError
from agnncert.graphs.graph import CanonicalGraph, edge_values_of
from agnncert.graphs.hashing import id_digest, row_digest
from agnncert.graphs.node_ids import exact_ids, has_ids, keys_and_ties

WIDE = (torch.float32, torch.float64)  # other floating-point types are converted to float32


class CheckedGraph(NamedTuple):
    """A checked graph before its edges are sorted.

    Attributes:
        graph: The graph, with edges in their given order.
        ties: What decides the order of nodes that share a key, as in ``keys_and_ties``.
    """

    graph: CanonicalGraph
    ties: Tensor | None


def checked_graph(
    data: object, where: str, ids_where: str = "", compact: bool = False, finite: bool = False
) -> CheckedGraph:
    """Checks the parts of ``data`` that a model may see.

    Args:
        data: The graph.
        where: What errors call it.
        ids_where: What errors about ids begin with.
        compact: Whether edges may stay int32.
        finite: Whether ``x`` is known to be finite, so that the check is skipped.

    Raises:
        GraphError: The graph cannot be used; the message says why.
        IdError: ``node_id`` does not give each node a unique id.
    """
    if not isinstance(data, Data):
        raise GraphError(f"{where} is a {type(data).__name__}, expected a torch_geometric Data.")
    require_tensors(data, where)
    x = _checked_features(data.x, where, finite)
    edge_index = _checked_edges(data, where, x.size(0), compact)
    values = _checked_values(data, where, edge_index.size(1))
    ids = exact_ids(data, ids_where)
    keys, ties = keys_and_ties(ids)
    named = has_ids(data)
    graph = CanonicalGraph(
        x=x,
        edge_index=edge_index,
        node_key=keys,
        edge_weight=values.get("edge_weight"),
        edge_attr=values.get("edge_attr"),
        id_digests=(id_digest(ids) if named else row_digest(len(ids)),),
        has_ids=(named,),
    )
    return CheckedGraph(graph, ties)


_TENSORS = ("x", "edge_index", "edge_weight", "edge_attr")  # of labels and masks, arrays and lists are taken as well


def require_tensors(data: Data, where: str) -> None:
    """Refuses arrays, sparse matrices and lists where PyTorch Geometric has tensors, and says how to convert them.

    Args:
        data: The graph.
        where: What errors call it.

    Raises:
        GraphError: Names all of them at once.
    """
    foreign = {name: getattr(data, name, None) for name in _TENSORS}
    foreign = {name: value for name, value in foreign.items() if value is not None and not isinstance(value, Tensor)}
    if not foreign:
        return
    kinds = ", ".join(f"{name} is a {type(value).__name__}" for name, value in foreign.items())
    conversions = "; ".join(f"data.{name} = {_conversion(name, value)}" for name, value in foreign.items())
    raise GraphError(f"{where}: {kinds}, expected a torch.Tensor. Convert: {conversions}.")


def _conversion(name: str, value: object) -> str:
    """Returns the expression that makes a tensor of a value."""
    if hasattr(value, "toarray"):  # a sparse matrix of scipy
        return f"torch.from_numpy(data.{name}.toarray())"
    if hasattr(value, "to_dense"):  # a SparseTensor of torch_sparse
        return f"data.{name}.to_dense()"
    if hasattr(value, "to_numpy"):  # a table or column of pandas
        return f"torch.from_numpy(data.{name}.to_numpy())"
    if hasattr(value, "__array__"):
        return f"torch.from_numpy(data.{name})"
    return f"torch.tensor(data.{name})"


def _checked_features(x: object, where: str, finite: bool) -> Tensor:
    """Returns the features as finite float32 or float64 in main memory, where graphs stay."""
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
    if x.is_meta:
        raise GraphError(f"{where}: x is on the meta device, so it has no numbers: load the data.")
    x = (x if x.dtype in WIDE else x.float()).cpu()
    if not finite:
        _require_finite(x, f"{where}: features x", "node")
    return x


def require_edge_index(data: Data, where: str = "the graph") -> None:
    """Refuses a graph that does not say which nodes are joined.

    Raises:
        GraphError: It has no ``edge_index``.
    """
    if data.edge_index is not None:
        return
    if getattr(data, "adj_t", None) is not None:
        raise GraphError(
            f"{where} has its edges in adj_t: give them as edge_index (leave out the ToSparseTensor transform)."
        )
    raise GraphError(
        f"{where} has no edge_index, so nothing says which nodes are joined. If there are no edges, say "
        "so: edge_index = torch.empty(2, 0, dtype=torch.long)."
    )


def _checked_edges(data: Data, where: str, num_nodes: int, compact: bool) -> Tensor:
    """Returns the edges, all of which join rows of the graph."""
    require_edge_index(data, where)
    edge_index: object = data.edge_index
    assert isinstance(edge_index, Tensor)  # require_tensors has refused everything else
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
        shape = tuple(edge_index.shape)
        raise GraphError(
            f"{where}: edge_index has shape {shape} and type {edge_index.dtype}, expected integers [2, num_edges]."
        )
    _require_device(data.x, edge_index, f"{where}: edge_index")
    edge_index = edge_index.cpu()
    if not (compact and edge_index.dtype == torch.int32):
        edge_index = edge_index.long()
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes):
        is_outside = (edge_index < 0) | (edge_index >= num_nodes)
        bad = int(is_outside.any(0).nonzero()[0])
        raise GraphError(
            f"{where}: edge {bad} joins rows {edge_index[:, bad].tolist()}, but there are only {num_nodes} nodes (0 to "
            f"{num_nodes - 1}): remove it or add the node."
        )
    return edge_index


def _checked_values(data: Data, where: str, num_edges: int) -> dict[str, Tensor]:
    """Returns edge weights and edge attributes by name, each with one finite row per edge."""
    values: dict[str, Tensor] = {}
    for name, value in edge_values_of(data).items():
        if value.dim() == 0 or value.size(0) != num_edges:
            raise GraphError(
                f"{where}: {name} has shape {tuple(value.shape)} for {num_edges} edges: a tensor with one row per edge "
                "is needed."
            )
        _require_device(data.x, value, f"{where}: {name}")
        value = value.cpu()
        _require_finite(value, f"{where}: {name}", "edge")
        if value.is_floating_point() and value.dtype not in WIDE:
            value = value.float()
        values[name] = value
    return values


def _require_device(x: Tensor, value: Tensor, what: str) -> None:
    if value.device != x.device:
        raise GraphError(f"{what} is on {value.device} and x on {x.device}: bring them together, data.to('cpu').")


def _require_finite(value: Tensor, what: str, unit: str) -> None:
    """Refuses NaN and infinity: in dense arithmetic a single one can spread to every node."""
    if not value.is_floating_point():
        return
    # A finite sum proves that all numbers are finite and is faster to check; the sum of finite numbers may overflow.
    if bool(torch.isfinite(value.sum()) or torch.isfinite(value).all()):
        return
    bad = (~torch.isfinite(value)).view(value.size(0), -1).any(1).nonzero().view(-1)
    raise GraphError(
        f"{what} of {len(bad)} {unit}(s) are not finite (first: row {int(bad[0])}): replace NaN and "
        "infinity before certifying."
    )
