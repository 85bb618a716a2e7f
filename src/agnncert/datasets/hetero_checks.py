"""What a graph with several kinds of nodes or edges must have before one graph is made of it."""

from torch import Tensor
from torch_geometric.data import HeteroData

from agnncert.datasets.splits import MASKS
from agnncert.errors import GraphError
from agnncert.graphs.graph import EDGE_VALUES


def require_usable(data: HeteroData) -> None:
    """Refuses features, labels, masks and edges that are absent, of another type, or do not fit.

    Raises:
        GraphError: Names the kind of nodes or the relation, and what it has instead.
    """
    if not isinstance(data, HeteroData):
        raise GraphError(f"expected a torch_geometric HeteroData, got {type(data).__name__}.")
    bare = [kind for kind in data.node_types if "x" not in data[kind]]
    if bare:
        raise GraphError(f"nodes of kind {', '.join(bare)} have no features x: give them some, if only ones.")
    for kind in data.node_types:
        _require_nodes(data, kind)
    for relation in data.edge_types:
        _require_edges(data, relation)


def _require_nodes(data: HeteroData, kind: str) -> None:
    """Refuses nodes of one kind whose features, ids, labels or masks cannot be used."""
    store = data[kind]
    if not isinstance(store.x, Tensor) or store.x.dim() != 2:
        raise GraphError(
            f"x of nodes of kind {kind} is {_described(store.x)}: expected a tensor of shape [num_nodes, num_features]."
        )
    num_nodes = store.x.size(0)
    for name in ("y", *MASKS):
        if name not in store:
            continue
        value = store[name]
        if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != num_nodes:
            raise GraphError(
                f"{name} of nodes of kind {kind} is {_described(value)}: expected a tensor with a row for "
                f"each of the {num_nodes:,} nodes."
            )
    if "node_id" in store and len(store.node_id) != num_nodes:
        raise GraphError(
            f"nodes of kind {kind} have {len(store.node_id):,} ids in node_id, but {num_nodes:,} rows of x."
        )


def _require_edges(data: HeteroData, relation: tuple[str, str, str]) -> None:
    """Refuses edges of one relation that are absent, join no nodes, or whose values do not fit."""
    store = data[relation]
    name = " ".join(relation)
    edge_index = store.get("edge_index", None)
    if not isinstance(edge_index, Tensor):
        raise GraphError(
            f"edge_index of the relation {name} is {_described(edge_index)}: expected a tensor of "
            "integers, shape [2, num_edges]. If it has no edges, give torch.empty(2, 0, dtype=torch.long)."
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
        raise GraphError(
            f"edge_index of the relation {name} is {_described(edge_index)}: expected integers of shape [2, num_edges]."
        )
    for ends, kind in ((edge_index[0], relation[0]), (edge_index[1], relation[2])):
        num_nodes = data[kind].x.size(0) if kind in data.node_types else 0
        if len(ends) and (int(ends.min()) < 0 or int(ends.max()) >= num_nodes):
            raise GraphError(
                f"edges of the relation {name} join rows {int(ends.min())} to {int(ends.max())} of kind "
                f"{kind}, which has only {num_nodes:,} nodes."
            )
    for value_name in EDGE_VALUES:
        if value_name not in store:
            continue
        value = store[value_name]
        if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != edge_index.size(1):
            raise GraphError(
                f"{value_name} of the relation {name} is {_described(value)}: expected a tensor with a "
                f"row for each of its {edge_index.size(1):,} edges."
            )


def _described(value: object) -> str:
    """Returns what a value is, in words of an error."""
    if value is None:
        return "missing"
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)} and type {value.dtype}"
    return f"a {type(value).__name__}"
