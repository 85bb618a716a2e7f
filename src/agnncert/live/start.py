"""From a user's data to the store of a live graph, and back."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.graphs.graph import EDGE_VALUES, Task, exact_ids
from agnncert.graphs.targets import Prepared, Targets
from agnncert.live.cells import Cells
from agnncert.live.nodes import Nodes
from agnncert.live.store import Store
from agnncert.live.union import Union
from agnncert.proof.ids import INT64, Id

Array = npt.NDArray[Any]


def store_of(ready: Prepared, chosen: Targets, targets: Any, cells: Cells) -> Store:
    """The graph, or graphs, of data in slots; slots are rows."""
    graph = chosen.graph
    parts = [ready.data[int(row)] for row in chosen.rows] if cells.on_graphs else [ready.data]
    names = [_listed(exact_ids(part)) for part in parts]
    with_ids = [getattr(part, "node_id", None) is not None for part in parts]
    nodes = Nodes(names, graph.node_key.numpy(), graph.x.detach().cpu().numpy().copy(), with_ids)
    if not cells.by_pair and not cells.own_groups:
        nodes.home[:] = cells.division.node_groups(graph).numpy()
    cell, node, ends, edge = cells.layout(graph)
    values = {name: graph[name].detach().cpu().numpy()[edge] for name in EDGE_VALUES if name in graph}
    fixed = cells.on_graphs and not cells.own_groups
    num_cells = len(parts) * int(cells.division.num_groups) if fixed else 0
    union = Union(cell, node, ends, values, nodes.count, num_cells)
    store = Store(cells, nodes, union, _kinds(parts, graph, values))
    if not cells.keeps_loops:
        _keep_loops(store, ready.targets(targets, True).graph)
    return store


def _keep_loops(store: Store, graph: Data) -> None:
    source, head = graph.edge_index
    for edge in (source == head).nonzero().view(-1).tolist():
        carried = {name: graph[name][edge].numpy() for name in store.union.values}
        store.loops.setdefault(int(source[edge]), []).append(carried)


def _kinds(parts: list[Data], graph: Data, values: dict[str, Array]) -> dict[str, torch.dtype]:
    """Types of numbers as the user gave them; where graphs differ, the type in which they are joined."""
    found = {}
    for name in ("x", *values):
        given = {part[name].dtype for part in parts}
        found[name] = given.pop() if len(given) == 1 else graph[name].dtype
    return found


def data_of(store: Store, task: Task, y: Array | None, given: Any, rows: Array) -> Any:
    """The graph, or graphs, as they are: what ``certify`` and ``verify`` may be called with.

    Args:
        store: The graph.
        task: ``"node"`` or ``"graph"``.
        y: Node task: labels by slot, if there are any.
        given: Graph task: the data that it began with; graphs that are not in ``rows`` are as they were.
        rows: Graph task: rows of the graphs in the store.
    """
    order = store.nodes.in_order()
    ends, values = _arcs(store)
    if task == "node":
        return _one(store, 0, order, ends, values, y)
    graphs = [given[k] for k in range(len(given))]
    of_node, of_arc = store.nodes.graph[order], store.nodes.graph[ends[0]]
    for number, row in enumerate(rows.tolist()):
        mine = of_arc == number
        carried = {name: value[mine] for name, value in values.items()}
        one = _one(store, number, order[of_node == number], ends[:, mine], carried, None)
        if getattr(graphs[row], "y", None) is not None:
            one.y = graphs[row].y
        graphs[row] = one
    return graphs


def _one(store: Store, graph: int, order: Array, ends: Array, values: dict[str, Array], y: Array | None) -> Data:
    row = np.zeros(store.nodes.count, dtype=np.int64)
    row[order] = np.arange(len(order))
    data = Data(x=torch.from_numpy(store.nodes.x[order]), edge_index=torch.from_numpy(row[ends]))
    for name, value in values.items():
        data[name] = torch.from_numpy(value)
    if store.nodes.with_ids[graph]:
        names: list[Any] = [store.nodes.name[slot] for slot in order.tolist()]
        whole = all(isinstance(name, int) and name in INT64 for name in names)
        data.node_id = torch.tensor(names, dtype=torch.int64) if whole else names
    if y is not None:
        data.y = torch.from_numpy(y[order])
    return data


def _arcs(store: Store) -> tuple[Array, dict[str, Array]]:
    """The nodes that every arc joins and what it carries, self-loops that the division drops included."""
    union = store.union
    live = union.live_arcs()
    ends = union.node[np.stack([union.source[live], union.head[live]])].astype(np.int64)
    loops = [(node, carried) for node, listed in store.loops.items() for carried in listed]
    at = np.array([node for node, _ in loops], dtype=np.int64)
    values = {}
    for name, value in union.values.items():
        more = np.zeros((len(loops), *value.shape[1:]), dtype=value.dtype)
        for k, (_, carried) in enumerate(loops):
            more[k] = carried[name]
        values[name] = np.concatenate([value[live], more])
    return np.concatenate([ends, np.stack([at, at])], axis=1), values


def _listed(ids: Any) -> list[Id]:
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
