"""``CanonicalGraph``, and how a user's ``Data`` is checked and converted to it.

A canonical graph has finite float features, unique ids, no self-loops (unless the division keeps them) and edges in an
order that depends on ids only. Layers that depend on the order of edges therefore see the same sequence whenever they
see the same neighbours.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from agnncert.certificates.ids import EncodedIds, encode_ids, order_of
from agnncert.errors import GraphError, IdError
from agnncert.graphs.hashing import id_digest, keys_of_encoded, refuse_duplicates, row_digest

Task = Literal["node", "graph"]
Whole = npt.NDArray[np.int64]
EDGE_VALUES = ("edge_weight", "edge_attr")
WIDE = (torch.float32, torch.float64)  # other types are converted to float32
BLOCK = 2**20  # edges that are processed at once
COMPACT_FROM = 2**22  # number of edges from which on they may be stored as int32


def infer_task(data: object) -> Task:
    """``"node"`` for a ``Data``, ``"graph"`` for a list or dataset of ``Data``; raises GraphError for anything else."""
    if isinstance(data, Data) and not isinstance(data, Batch):
        return "node"
    listed = isinstance(data, Sequence) or (hasattr(data, "__len__") and hasattr(data, "__getitem__"))
    reason = _no_data(data)
    if reason is None and listed:
        _refuse_nodes(data)
        return "graph"
    raise GraphError(
        f"cannot tell the task from a {type(data).__name__}: pass a torch_geometric Data (node classification) or a "
        f"list of Data (graph classification).{f' {reason}' if reason else ''}"
    )


def _no_data(data: object) -> str | None:
    """A hint for objects that resemble data but are not supported; ``None`` for all others."""
    if isinstance(data, Batch):
        return (
            "A batch is several graphs at once: batch.to_data_list() is such a list. To classify nodes of all of them "
            "as one graph, make a Data of its tensors, without batch and ptr."
        )
    if isinstance(data, HeteroData):
        return "ac.from_hetero(data) makes one graph of it, with the relation of each edge in edge_attr."
    if isinstance(data, str):
        return f'Load it first: load_dataset("{data}").'
    if isinstance(data, Tensor):
        return "Data(x=…, edge_index=…) makes one of tensors."
    if isinstance(data, torch.nn.Module) or hasattr(data, "num_groups"):
        return "The order is model, data, defence."
    if type(data).__module__.partition(".")[0] == "networkx":
        return "torch_geometric.utils.from_networkx makes one of it."
    if hasattr(data, "dataset") and hasattr(data, "batch_size"):
        return "Of a loader, pass the dataset: loader.dataset."
    return None


def _refuse_nodes(graphs: Any) -> None:
    """Raises GraphError for a dataset such as Cora: a list of one graph whose nodes are to be classified."""
    if len(graphs) != 1 or not isinstance(graphs[0], Data):
        return
    graph: Any = graphs[0]
    masks = [name for name in ("train_mask", "val_mask", "test_mask") if getattr(graph, name, None) is not None]
    y = getattr(graph, "y", None)
    of_nodes = isinstance(y, Tensor) and y.dim() > 0 and y.size(0) == graph.num_nodes > 1
    if masks or of_nodes:
        what = masks[0] if masks else "a label for each node"
        raise GraphError(
            f"this {type(graphs).__name__} holds one graph, which has {what}: to classify its nodes, pass the graph "
            "itself, dataset[0]. (A list means that graphs are classified, each with one label.)"
        )


@dataclass(frozen=True, eq=False)
class CanonicalGraph:
    """A checked graph in canonical form, several such graphs joined into one, or a subgraph that a division made.

    Attributes:
        x: Node features, finite float32 or float64, shape ``[num_nodes, num_features]``.
        edge_index: Directed edges as (src, dst), int64 or, for large graphs, int32, shape ``[2, num_edges]``.
        node_key: 64-bit key of each node (the bits of an int64), shape ``[num_nodes]``.
        edge_weight: One row per edge, or ``None``.
        edge_attr: One row per edge, or ``None``.
        task: ``"node"`` or ``"graph"``.
        id_digests: sha256 of the exact ids, which keys do not determine; one entry for each joined graph.
        has_ids: Whether the data has a ``node_id``; one entry for each joined graph.
        batch: Graph of each node, ascending, shape ``[num_nodes]``; ``None`` unless graphs are joined.
        abstain: In a subgraph: nodes that cast no vote, shape ``[num_nodes]``; ``None`` if all nodes vote.
    """

    x: Tensor
    edge_index: Tensor
    node_key: Tensor
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    task: Task = "node"
    id_digests: tuple[str, ...] = ()
    has_ids: tuple[bool, ...] = (False,)
    batch: Tensor | None = None
    abstain: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def stable_ids(self) -> bool:
        """Whether every node has an id that stays the same when other nodes are deleted."""
        return all(self.has_ids)

    @property
    def edge_values(self) -> dict[str, Tensor]:
        """Edge weights and edge attributes by name, as far as the graph has them."""
        return edge_values_of(self)

    @property
    def graph_of_node(self) -> Tensor:
        """``batch``, or zeros if no graphs are joined."""
        return torch.zeros(self.num_nodes, dtype=torch.int64) if self.batch is None else self.batch

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each joined graph, shape ``[num_graphs]``."""
        return torch.tensor([self.num_nodes]) if self.batch is None else torch.bincount(self.batch)

    @property
    def starts(self) -> Tensor:
        """First node of each joined graph, shape ``[num_graphs]``."""
        return torch.cumsum(self.sizes, 0) - self.sizes

    def with_edges(self, edges: Tensor) -> "CanonicalGraph":
        """All nodes, and some edges with their values; ``edges`` is a mask or holds positions."""
        return self._with_edges(self.edge_index[:, edges], edges)

    def with_nodes(self, nodes: Tensor, edges: Tensor) -> "CanonicalGraph":
        """Some nodes, renumbered from 0, and some edges with their values, which must join these nodes."""
        position = torch.full((self.num_nodes,), -1, dtype=torch.int64)
        position[nodes] = torch.arange(len(nodes))
        part = self._with_edges(position[self.edge_index[:, edges]], edges)
        batch = None if self.batch is None else self.batch[nodes]
        abstain = None if self.abstain is None else self.abstain[nodes]
        return replace(part, x=self.x[nodes], node_key=self.node_key[nodes], batch=batch, abstain=abstain)

    def with_other_edges(self, edge_index: Tensor) -> "CanonicalGraph":
        """The same nodes with other edges, which have no values."""
        return replace(self, edge_index=edge_index, edge_weight=None, edge_attr=None)

    def with_features_of(self, visible: Tensor) -> "CanonicalGraph":
        """The same graph with the features of the visible nodes, and zeros for all other nodes."""
        return replace(self, x=torch.where(visible[:, None], self.x, torch.zeros((), dtype=self.x.dtype)))

    def without_self_loops(self) -> "CanonicalGraph":
        """The same graph without edges from a node to itself."""
        kept = self.edge_index[0] != self.edge_index[1]
        return self if bool(kept.all()) else self.with_edges(kept)

    def select(self, graphs: Tensor) -> "CanonicalGraph":
        """Some of the joined graphs, joined in the order given; the order within each graph stays the same."""
        owner = self.graph_of_node[self.edge_index[1]]  # ascending: edges are sorted by graph
        edges = torch.bincount(owner, minlength=len(self.sizes))
        nodes = _ranges(self.starts, self.sizes, graphs)
        kept = _ranges(torch.cumsum(edges, 0) - edges, edges, graphs)
        sizes, chosen = self.sizes[graphs], graphs.tolist()
        shift = torch.repeat_interleave(torch.cumsum(sizes, 0) - sizes - self.starts[graphs], edges[graphs])
        return replace(
            self._with_edges(self.edge_index[:, kept] + shift, kept),
            x=self.x[nodes],
            node_key=self.node_key[nodes],
            batch=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
            id_digests=tuple(self.id_digests[k] for k in chosen),
            has_ids=tuple(self.has_ids[k] for k in chosen),
        )

    def _with_edges(self, edge_index: Tensor, edges: Tensor) -> "CanonicalGraph":
        weight = None if self.edge_weight is None else self.edge_weight[edges]
        attr = None if self.edge_attr is None else self.edge_attr[edges]
        return replace(self, edge_index=edge_index, edge_weight=weight, edge_attr=attr)


def _ranges(starts: Tensor, sizes: Tensor, chosen: Tensor) -> Tensor:
    """Numbers ``starts[k]`` to ``starts[k] + sizes[k] - 1`` for each chosen k, one range after the other."""
    length = sizes[chosen]
    shift = torch.repeat_interleave(starts[chosen] - (torch.cumsum(length, 0) - length), length)
    return shift + torch.arange(int(length.sum()))


def edge_values_of(data: Data | CanonicalGraph) -> dict[str, Any]:
    """Edge weights and edge attributes by name, as far as a graph has them."""
    values = {name: getattr(data, name, None) for name in EDGE_VALUES}
    return {name: value for name, value in values.items() if value is not None}


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
    graph, ties = _checked(data, "the graph", compact=compact, finite=finite)
    return _ordered(graph, keep_self_loops, ties, compact)


def canonical_set(graphs: Sequence[Data], keep_self_loops: bool = False) -> CanonicalGraph:
    """Checks the graphs of a graph task and joins them into one canonical graph with a ``batch`` vector.

    Ids must be unique within each graph only.
    """
    if len(graphs) == 0:
        raise GraphError("the dataset has no graphs: nothing to certify.")
    checked = [_checked(g, f"graph {k}", f"graph {k}: ") for k, g in enumerate(graphs)]
    parts = [graph for graph, _ in checked]
    widths = {g.x.size(1) for g in parts}
    if len(widths) > 1:
        raise GraphError(f"graphs differ in their number of features: {sorted(widths)}. All need the same.")
    sizes = torch.tensor([g.num_nodes for g in parts])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    joined = CanonicalGraph(
        x=torch.cat([g.x for g in parts]),
        edge_index=torch.cat([g.edge_index + start for g, start in zip(parts, starts, strict=True)], dim=1),
        node_key=torch.cat([g.node_key for g in parts]),
        edge_weight=_joined_values(parts, "edge_weight"),
        edge_attr=_joined_values(parts, "edge_attr"),
        task="graph",
        id_digests=tuple(g.id_digests[0] for g in parts),
        has_ids=tuple(g.has_ids[0] for g in parts),
        batch=torch.repeat_interleave(torch.arange(len(parts)), sizes),
    )
    tied = any(ties is not None for _, ties in checked)
    ties = [torch.zeros_like(graph.node_key) if ties is None else ties for graph, ties in checked] if tied else []
    return _ordered(joined, keep_self_loops, torch.cat(ties) if tied else None)


def _joined_values(graphs: Sequence[CanonicalGraph], name: str) -> Tensor | None:
    values = [graph.edge_values.get(name) for graph in graphs]
    present = [value for value in values if value is not None]
    if present and len(present) < len(graphs):
        k = next(k for k, value in enumerate(values) if value is None)
        raise GraphError(f"graph {k} has no {name} while others have: give it to all graphs or to none.")
    return torch.cat(present) if present else None


def one_graph(joined: CanonicalGraph, index: int) -> CanonicalGraph:
    """Graph ``index`` of a joined set alone, with the same order of nodes and edges."""
    return replace(joined.select(torch.tensor([index])), batch=None)


def node_keys(graph: Data | CanonicalGraph) -> Tensor:
    """64-bit key of every node (the bits of an int64); of a ``Data``, computed from ``node_id`` or the row number."""
    return graph.node_key if isinstance(graph, CanonicalGraph) else _keys_and_ties(exact_ids(graph))[0]


def exact_ids(data: Data, where: str = "") -> EncodedIds:
    """Id of every node in canonical form: ``node_id`` if the data has it, else the row number.

    Raises:
        IdError: The number of ids is wrong, an id is neither an integer nor text, or an id occurs twice.
    """
    if not _has_ids(data):
        return np.arange(data.num_nodes)
    ids = listed_ids(data.node_id)
    if not hasattr(ids, "__len__"):
        raise IdError(f"{where}node_id is a {type(ids).__name__}: give a list or tensor with one id per node.")
    try:
        encoded = encode_ids(ids)
        if len(encoded) != data.num_nodes:
            raise IdError(f"node_id has {len(encoded)} entries for {data.num_nodes} nodes: one id per node is needed.")
        refuse_duplicates(encoded)
    except IdError as error:
        raise IdError(f"{where}{error}") from None
    return encoded


def listed_ids(node_id: Any) -> Any:
    """``node_id`` as given, but a tensor is converted to an array."""
    if not isinstance(node_id, Tensor):
        return node_id
    if node_id.is_floating_point() or node_id.dim() == 0:  # not valid as ids; numpy does not have all of these types
        return node_id.tolist()
    return node_id.detach().cpu().numpy()


def graph_digest(graph: CanonicalGraph) -> str:
    """sha256 of a graph, or of joined graphs: ids, features, edges and edge values."""
    digest = _hashed(graph)
    digest.update(f"ids:{len(graph.id_digests)};{''.join(graph.id_digests)}".encode())
    return digest.hexdigest()


def digest_by_keys(graph: CanonicalGraph) -> str:
    """sha256 of a graph, or of joined graphs, with the 64-bit keys of the ids instead of the ids."""
    return _hashed(graph).hexdigest()


def _hashed(graph: CanonicalGraph) -> "hashlib._Hash":
    digest = hashlib.sha256()
    for name in ("node_key", "x", "edge_index", *EDGE_VALUES, "batch"):
        tensor: Tensor | None = getattr(graph, name)
        if tensor is not None:
            value = tensor.detach().cpu().numpy()
            kind = np.dtype(np.int64).str if name == "edge_index" else value.dtype.str
            digest.update(f"{name}:{kind}:{value.shape};".encode())
            _update(digest, value, np.dtype(kind))
    return digest


def _update(digest: Any, value: np.ndarray[Any, Any], kind: np.dtype[Any]) -> None:
    """Adds the bytes of an array to a digest, in blocks if they must be copied."""
    if value.flags.c_contiguous and value.dtype == kind:
        digest.update(value.data if value.size else b"")
        return
    for row in value.reshape(1, -1) if value.ndim < 2 else value:
        flat = row.reshape(-1)
        for first in range(0, len(flat), BLOCK):
            digest.update(np.ascontiguousarray(flat[first : first + BLOCK], dtype=kind).data)


def digests_beyond_keys(graph: CanonicalGraph) -> list[str]:
    """``id_digests`` of the graphs whose ids cannot all be derived from their keys."""
    keys = graph.node_key.tensor_split(graph.starts[1:])
    derived = [{id_digest(part.numpy()), row_digest(len(part))} for part in keys]
    return [digest for digest, known in zip(graph.id_digests, derived, strict=True) if digest not in known]


def _has_ids(data: Data) -> bool:
    return getattr(data, "node_id", None) is not None


def _keys_and_ties(ids: EncodedIds) -> tuple[Tensor, Tensor | None]:
    """Key of each node, and its number in id order among nodes with the same key; ``None`` if no key is shared."""
    keys = torch.from_numpy(keys_of_encoded(ids).view(np.int64))
    if isinstance(ids, np.ndarray) or len(torch.unique(keys)) == len(keys):
        return keys, None
    ties, seen = torch.zeros_like(keys), Counter[int]()
    for row in sorted(range(len(ids)), key=lambda row: order_of(ids[row])):
        ties[row] = seen[int(keys[row])]
        seen[int(keys[row])] += 1
    return keys, ties


def _checked(
    data: Data, where: str, ids_where: str = "", compact: bool = False, finite: bool = False
) -> tuple[CanonicalGraph, Tensor | None]:
    """The parts of ``data`` that a model may see, checked, with edges in their given order; and ties of keys.

    Errors name the graph ``where``; errors about ids begin with ``ids_where``.
    """
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
    if x.is_meta:
        raise GraphError(f"{where}: x is on the meta device, so it has no numbers: load the data.")
    x = (x if x.dtype in WIDE else x.float()).cpu()  # graphs stay in main memory
    if not finite:
        _require_finite(x, f"{where}: features x", "node")
    edge_index = data.edge_index
    if edge_index is None:
        if getattr(data, "adj_t", None) is not None:  # without this check the graph would have no edges
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
    _require_device(data.x, edge_index, f"{where}: edge_index")
    edge_index = edge_index.cpu()
    edge_index = edge_index if compact and edge_index.dtype == torch.int32 else edge_index.long()
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= x.size(0)):
        bad = int(((edge_index < 0) | (edge_index >= x.size(0))).any(0).nonzero()[0])
        raise GraphError(
            f"{where}: edge {bad} joins rows {edge_index[:, bad].tolist()}, but there are only {x.size(0)} nodes (0 to "
            f"{x.size(0) - 1}): remove it or add the node."
        )
    values: dict[str, Tensor] = {}
    for name, value in edge_values_of(data).items():
        if not isinstance(value, Tensor) or value.dim() == 0 or value.size(0) != edge_index.size(1):
            given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"type {type(value).__name__}"
            raise GraphError(
                f"{where}: {name} has {given} for {edge_index.size(1)} edges: a tensor with one row per edge is needed."
            )
        _require_device(data.x, value, f"{where}: {name}")
        value = value.cpu()
        _require_finite(value, f"{where}: {name}", "edge")
        values[name] = value.float() if value.is_floating_point() and value.dtype not in WIDE else value
    ids, has_ids = exact_ids(data, ids_where), _has_ids(data)
    keys, ties = _keys_and_ties(ids)
    graph = CanonicalGraph(
        x=x,
        edge_index=edge_index,
        node_key=keys,
        edge_weight=values.get("edge_weight"),
        edge_attr=values.get("edge_attr"),
        id_digests=(id_digest(ids) if has_ids else row_digest(len(ids)),),
        has_ids=(has_ids,),
    )
    return graph, ties


def _require_device(x: Tensor, value: Tensor, what: str) -> None:
    if value.device != x.device:
        raise GraphError(f"{what} is on {value.device} and x on {x.device}: bring them together, data.to('cpu').")


def _require_finite(value: Tensor, what: str, unit: str) -> None:
    # In dense arithmetic a single NaN or infinity can spread to every node.
    # A finite sum proves that all numbers are finite and is faster to check; the sum of finite numbers may overflow.
    if value.is_floating_point() and not bool(torch.isfinite(value.sum()) or torch.isfinite(value).all()):
        bad = (~torch.isfinite(value)).view(value.size(0), -1).any(1).nonzero().view(-1)
        raise GraphError(
            f"{what} of {len(bad)} {unit}(s) are not finite (first: row {int(bad[0])}): replace NaN and "
            "infinity before certifying."
        )


def _ordered(
    graph: CanonicalGraph, keep_self_loops: bool, ties: Tensor | None, compact: bool = False
) -> CanonicalGraph:
    """Sorts edges by (id of dst, id of src, values) and drops self-loops.

    Nodes are ranked by key, and nodes that share a key by their ids. If nodes were ranked by row, two neighbours with
    the same key would change places when the rows of the data are sorted differently; a layer that depends on the
    order of edges would then see another sequence in a subgraph that no change has reached. With ranks by id, an
    injected node, whatever its key, leaves the order of all other nodes unchanged.
    """
    by_id = torch.argsort(graph.node_key, stable=True)
    if ties is not None:
        by_id = torch.from_numpy(np.lexsort([ties.numpy(), graph.node_key.numpy()]))
    rank = torch.empty_like(by_id)
    rank[by_id] = torch.arange(len(rank))
    # Ids are compared within a graph only, so the edges of joined graphs are sorted by graph first.
    of_dst = rank if graph.batch is None else rank + graph.batch * len(rank)
    if graph.edge_values or (int(of_dst.max()) + 1) * len(rank) >= 2**63:
        return _sorted_by_columns(graph, keep_self_loops, of_dst, rank)
    pairs = _pair_keys(graph.edge_index, of_dst.numpy(), rank.numpy(), keep_self_loops)
    return graph.with_other_edges(_sorted_ends(graph.edge_index, pairs, by_id.numpy(), compact))


def _pair_keys(ends: Tensor, of_dst: Whole, rank: Whole, keep_self_loops: bool) -> Whole:
    """The number by which each kept edge is sorted: the rank of dst, then the rank of src."""
    keys = np.empty(ends.size(1), dtype=np.int64)
    filled = 0
    for first in range(0, len(keys), BLOCK):
        src, dst = ends[:, first : first + BLOCK].numpy()
        if not keep_self_loops:
            apart = src != dst
            src, dst = src[apart], dst[apart]
        keys[filled : filled + len(src)] = of_dst[dst] * len(rank) + rank[src]
        filled += len(src)
    return keys[:filled]


def _sorted_ends(ends: Tensor, keys: Whole, by_id: Whole, compact: bool) -> Tensor:
    """Sorted edges without values, which are computed from their keys alone."""
    in_order = bool((keys[1:] >= keys[:-1]).all())
    if in_order and compact and len(keys) == ends.size(1):
        return ends
    if not in_order:
        keys.sort()
    small = compact and len(keys) >= COMPACT_FROM and len(by_id) < 2**31
    result = np.empty((2, len(keys)), dtype=np.int32 if small else np.int64)
    for first in range(0, len(keys), BLOCK):
        part = slice(first, first + BLOCK)
        dst, src = np.divmod(keys[part], len(by_id))
        result[0, part], result[1, part] = by_id[src], by_id[dst % len(by_id)]
    return torch.from_numpy(result)


def _sorted_by_columns(graph: CanonicalGraph, keep_self_loops: bool, of_dst: Tensor, rank: Tensor) -> CanonicalGraph:
    """Sorts edges column by column, for edges with values and for graphs whose pair keys exceed 63 bits."""
    src, dst = graph.edge_index
    kept = torch.arange(len(src)) if keep_self_loops else (src != dst).nonzero().view(-1)
    columns = [of_dst[dst[kept]], rank[src[kept]]]
    for value in (value[kept].detach() for value in graph.edge_values.values()):
        columns += value.reshape(len(kept), math.prod(value.shape[1:])).unbind(1)
    order = np.lexsort([column.numpy() for column in reversed(columns)])  # lexsort takes the most important key last
    return graph.with_edges(kept[torch.from_numpy(order)])
