"""From a user's ``Data`` to the checked, canonical graph that everything else works on.

A graph is checked once, here. From then on it has finite float features, unique ids, no self-loops (unless kept on
purpose) and edges in an order that depends on ids only, so that layers which depend on the order of edges see the same
sequence whenever they see the same neighbours.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
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
WIDE = (torch.float32, torch.float64)  # numbers in other types become float32: nothing is lost
BLOCK = 2**20  # edges that are looked at together
COMPACT_FROM = 2**22  # edges, from which on their ends may be kept as int32


def infer_task(data: object) -> Task:
    """``Data`` means node classification, a list or dataset of ``Data`` graph classification.

    Raises:
        GraphError: It is neither, or a single graph in a list whose labels or masks are those of nodes.
    """
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
    """What to do instead, if something looks like data and is none."""
    if isinstance(data, Batch):
        return (
            "A batch is several graphs at once: batch.to_data_list() is such a list. To classify nodes of all of them "
            "as one graph, make a Data of its tensors, without batch and ptr."
        )
    if isinstance(data, HeteroData):
        return "Models here see one kind of nodes and edges: data.to_homogeneous() makes a Data."
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
    """A dataset such as Cora is a list of one graph, whose nodes are to be classified."""
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


def canonical(data: Data, keep_self_loops: bool = False, compact: bool = False, finite: bool = False) -> Data:
    """Checks one graph for the node task and puts it into canonical form.

    Args:
        data: The graph.
        keep_self_loops: Whether they stay.
        compact: Whether millions of edges may be kept as int32 in place of int64 and, if they are in order already, be
            those of ``data`` itself.
        finite: Whether ``x`` is known to be.

    The result has ``x``, ``edge_index``, the edge weights and attributes it came with, ``node_key`` (the 64-bit key of
    each node), ``id_digests`` (sha256 of the exact ids, which keys do not tell), ``stable_ids`` (whether there is a
    ``node_id``) and ``task``.
    """
    if not isinstance(data, Data):
        raise GraphError(f"expected a torch_geometric Data, got {type(data).__name__}.")
    graph = _checked(data, "the graph", compact, finite)
    who = _identity(data)
    graph.node_key, graph.stable_ids, graph.id_digests = who.keys, _has_ids(data), (who.digest,)
    graph.task = "node"
    return _ordered(graph, keep_self_loops, [who], compact)


def canonical_set(graphs: Sequence[Data], keep_self_loops: bool = False) -> Data:
    """Checks the graphs of a graph task and joins them into one canonical graph with a ``batch`` vector.

    Ids need to be unique within each graph only; ``id_digests`` has an entry for each graph.
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
    who = [_identity(g, f"graph {k}: ") for k, g in enumerate(graphs)]
    joined.node_key, joined.id_digests = torch.cat([one.keys for one in who]), tuple(one.digest for one in who)
    joined.with_ids = torch.tensor([_has_ids(g) for g in graphs])
    joined.stable_ids = bool(joined.with_ids.all())
    joined.task = "graph"
    return _ordered(joined, keep_self_loops, who)


def one_graph(joined: Data, index: int) -> Data:
    """Graph ``index`` of a joined set, as a graph of its own with the same order of nodes and edges."""
    nodes = (joined.batch == index).nonzero().view(-1)
    start, stop = int(nodes[0]), int(nodes[-1]) + 1
    inside = (joined.edge_index[0] >= start) & (joined.edge_index[0] < stop)
    graph = Data(x=joined.x[start:stop], **select_edges(joined, inside))
    graph.edge_index -= start
    graph.node_key, graph.stable_ids, graph.task = joined.node_key[start:stop], joined.stable_ids, "graph"
    graph.id_digests = joined.id_digests[index : index + 1]
    return graph


def select_edges(graph: Data, index: Tensor) -> dict[str, Tensor]:
    """``edge_index`` and the edge values of some edges, by name; ``index`` is a mask or holds their positions."""
    values = {name: graph[name][index] for name in EDGE_VALUES if name in graph}
    return {"edge_index": graph.edge_index[:, index], **values}


def node_keys(graph: Data) -> Tensor:
    """64-bit key of every node (bits of an int64), from ``node_key``, else ``node_id``, else the row number."""
    return graph.node_key if "node_key" in graph else _identity(graph).keys


def exact_ids(data: Data, where: str = "") -> EncodedIds:
    """Id of every node, from ``node_id``, else the row number: checked, unique and in canonical form.

    Raises:
        IdError: There is not one id for each node, or an id is no integer and no text, or occurs twice.
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
    """``node_id`` as it was given, but a tensor as an array."""
    if not isinstance(node_id, Tensor):
        return node_id
    if node_id.is_floating_point() or node_id.dim() == 0:  # never ids, and some of these types numpy does not have
        return node_id.tolist()
    return node_id.detach().cpu().numpy()


def graph_digest(graph: Data) -> str:
    """sha256 of a canonical graph, or of joined graphs: ids, features, edges and edge values."""
    digest = _hashed(graph)
    digest.update(f"ids:{len(graph.id_digests)};{''.join(graph.id_digests)}".encode())
    return digest.hexdigest()


def digest_by_keys(graph: Data) -> str:
    """sha256 of a canonical graph, or of joined graphs, with the 64-bit keys of the ids in place of the ids."""
    return _hashed(graph).hexdigest()


def _hashed(graph: Data) -> "hashlib._Hash":
    digest = hashlib.sha256()
    for name in ("node_key", "x", "edge_index", *EDGE_VALUES, "batch"):
        if name in graph:
            value = graph[name].detach().cpu().numpy()
            kind = np.dtype(np.int64).str if name == "edge_index" else value.dtype.str
            digest.update(f"{name}:{kind}:{value.shape};".encode())
            _update(digest, value, np.dtype(kind))
    return digest


def _update(digest: Any, value: np.ndarray[Any, Any], kind: np.dtype[Any]) -> None:
    """Adds the bytes of an array, some at a time where they have to be copied."""
    if value.flags.c_contiguous and value.dtype == kind:
        digest.update(value.data if value.size else b"")
        return
    for row in value.reshape(1, -1) if value.ndim < 2 else value:
        flat = row.reshape(-1)
        for first in range(0, len(flat), BLOCK):
            digest.update(np.ascontiguousarray(flat[first : first + BLOCK], dtype=kind).data)


def digests_beyond_keys(graph: Data) -> list[str]:
    """``id_digests`` of those of the joined graphs, or of the graph, whose ids cannot all be told from their keys."""
    keys = [graph.node_key] if "starts" not in graph else graph.node_key.tensor_split(graph.starts[1:])
    told = [{id_digest(part.numpy()), row_digest(len(part))} for part in keys]
    return [digest for digest, known in zip(graph.id_digests, told, strict=True) if digest not in known]


@dataclass(frozen=True)
class _Identity:
    """Who the nodes of one graph are.

    Attributes:
        keys: Their keys (bits of int64), shape ``[n]``.
        ties: Number of each node among those that have its key, in the order of ids, shape ``[n]``; ``None`` if no two
            nodes share a key.
        digest: sha256 of the exact ids.
    """

    keys: Tensor
    ties: Tensor | None
    digest: str


def _has_ids(data: Data) -> bool:
    return getattr(data, "node_id", None) is not None


def _identity(data: Data, where: str = "") -> _Identity:
    ids = exact_ids(data, where)
    keys = torch.from_numpy(keys_of_encoded(ids).view(np.int64))
    digest = id_digest(ids) if _has_ids(data) else row_digest(len(ids))
    return _Identity(keys, None if isinstance(ids, np.ndarray) else _ties(ids, keys.tolist()), digest)


def _ties(ids: list[int | str], keys: list[int]) -> Tensor | None:
    if len(set(keys)) == len(keys):
        return None
    sharing: dict[int, list[int]] = {}
    for row in sorted(range(len(ids)), key=lambda row: order_of(ids[row])):
        sharing.setdefault(keys[row], []).append(row)
    ties = torch.zeros(len(ids), dtype=torch.int64)
    for rows in sharing.values():
        ties[rows] = torch.arange(len(rows))
    return ties


def _checked(data: Data, where: str, compact: bool = False, finite: bool = False) -> Data:
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
    if x.is_meta:
        raise GraphError(f"{where}: x is on the meta device, so it has no numbers: load the data.")
    x = (x if x.dtype in WIDE else x.float()).cpu()  # all that is done with a graph is done in main memory
    if not finite:
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
    _require_device(data.x, edge_index, f"{where}: edge_index")
    edge_index = edge_index.cpu()
    edge_index = edge_index if compact and edge_index.dtype == torch.int32 else edge_index.long()
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
        _require_device(data.x, value, f"{where}: {name}")
        value = value.cpu()
        _require_finite(value, f"{where}: {name}", "edge")
        graph[name] = value.float() if value.is_floating_point() and value.dtype not in WIDE else value
    return graph


def _require_device(x: Tensor, value: Tensor, what: str) -> None:
    if value.device != x.device:
        raise GraphError(f"{what} is on {value.device} and x on {x.device}: bring them together, data.to('cpu').")


def _require_finite(value: Tensor, what: str, unit: str) -> None:
    # A single NaN or infinity can spread to every node in dense arithmetic, and no margin survives it.
    # The sum is finite only if all numbers are, and much faster to look at; it may overflow where they are.
    if value.is_floating_point() and not bool(torch.isfinite(value.sum()) or torch.isfinite(value).all()):
        bad = (~torch.isfinite(value)).view(value.size(0), -1).any(1).nonzero().view(-1)
        raise GraphError(
            f"{what} of {len(bad)} {unit}(s) are not finite (first: row {int(bad[0])}): replace NaN and "
            "infinity before certifying."
        )


def _ordered(graph: Data, keep_self_loops: bool, who: Sequence[_Identity], compact: bool = False) -> Data:
    """Sorts edges by (id of the head, id of the source, values) and drops self-loops.

    Nodes are ranked by key, and those that share one by their ids. Ranked by row, two neighbours with one key would
    change places when rows do, as in a table that is sorted anew; a layer that depends on the order would then see
    another sequence in a subgraph that no change has reached. By ids, whoever is injected, under whatever key, leaves
    the order of all others as it was.
    """
    by_id = _by_id(graph.node_key, who)
    rank = torch.empty_like(by_id)
    rank[by_id] = torch.arange(len(rank))
    # Graphs of a set are kept apart: ids are compared within a graph only.
    of_head = rank if "batch" not in graph else rank + graph.batch * len(rank)
    if (int(of_head.max()) + 1) * len(rank) >= 2**63:
        return _sorted_by_columns(graph, keep_self_loops, of_head, rank)
    keys = _pair_keys(graph.edge_index, of_head.numpy(), rank.numpy(), keep_self_loops)
    if not any(name in graph for name in EDGE_VALUES):
        graph.edge_index = _sorted_ends(graph.edge_index, keys, by_id.numpy(), compact)
        return graph
    if len(keys) < graph.edge_index.size(1):
        return _sorted_by_columns(graph, keep_self_loops, of_head, rank)
    order = np.argsort(keys, kind="stable")
    if (keys[order[1:]] == keys[order[:-1]]).any():  # parallel edges: values decide
        return _sorted_by_columns(graph, keep_self_loops, of_head, rank)
    for name, value in select_edges(graph, torch.from_numpy(order)).items():
        graph[name] = value
    return graph


def _pair_keys(ends: Tensor, of_head: Whole, rank: Whole, keep_self_loops: bool) -> Whole:
    """One number for each edge that is kept, by which they are sorted: rank of the head, then of the source."""
    keys = np.empty(ends.size(1), dtype=np.int64)
    filled = 0
    for first in range(0, len(keys), BLOCK):
        source, head = ends[:, first : first + BLOCK].numpy()
        if not keep_self_loops:
            apart = source != head
            source, head = source[apart], head[apart]
        keys[filled : filled + len(source)] = of_head[head] * len(rank) + rank[source]
        filled += len(source)
    return keys[:filled]


def _sorted_ends(ends: Tensor, keys: Whole, by_id: Whole, compact: bool) -> Tensor:
    """The ends of edges without values, which their keys tell, in order."""
    in_order = bool((keys[1:] >= keys[:-1]).all())
    if in_order and compact and len(keys) == ends.size(1):
        return ends
    if not in_order:
        keys.sort()
    small = compact and len(keys) >= COMPACT_FROM and len(by_id) < 2**31
    result = np.empty((2, len(keys)), dtype=np.int32 if small else np.int64)
    for first in range(0, len(keys), BLOCK):
        part = slice(first, first + BLOCK)
        head, source = np.divmod(keys[part], len(by_id))
        result[0, part], result[1, part] = by_id[source], by_id[head % len(by_id)]
    return torch.from_numpy(result)


def _sorted_by_columns(graph: Data, keep_self_loops: bool, of_head: Tensor, rank: Tensor) -> Data:
    """The same, column by column, where one number does not tell all: values decide, or numbers would be too large."""
    source, head = graph.edge_index
    kept = torch.arange(len(source)) if keep_self_loops else (source != head).nonzero().view(-1)
    columns = [of_head[head[kept]], rank[source[kept]]]
    for value in (graph[name][kept].detach() for name in EDGE_VALUES if name in graph):
        columns += value.reshape(len(kept), math.prod(value.shape[1:])).unbind(1)
    order = np.lexsort([column.numpy() for column in reversed(columns)])  # lexsort takes the most important key last
    for name, value in select_edges(graph, kept[torch.from_numpy(order)]).items():
        graph[name] = value
    return graph


def _by_id(keys: Tensor, who: Sequence[_Identity]) -> Tensor:
    """Rows in the order of keys and, where these are the same within a graph, of ids."""
    if all(one.ties is None for one in who):
        return torch.argsort(keys, stable=True)
    ties = torch.cat([torch.zeros_like(one.keys) if one.ties is None else one.ties for one in who])
    return torch.from_numpy(np.lexsort([ties.numpy(), keys.numpy()]))
