"""Conversions of a live graph: from the user's data and back to it, and to the arrays that a journal keeps."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import INT64, Id
from agnncert.datasets.event_keys import CountedEvents
from agnncert.defence import TargetChoice
from agnncert.errors import GraphError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import exact_ids
from agnncert.graphs.targets import CanonicalData, Targets
from agnncert_live.edge_rules import KEPT_BESIDE, TOTALS, EdgeRules
from agnncert_live.nodes import Nodes
from agnncert_live.store import Store
from agnncert_live.subgraphs import Subgraphs
from agnncert_live.union import Union

Array = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Array]
GraphData: TypeAlias = Data | list[Data]

EVENT_KEYS = "event_keys"  # of the data: which events have counted
_VALUE = "value/"  # before the names of edge values among arrays
_ATTRIBUTES = _VALUE + "edge_attr"


@dataclass(frozen=True)
class WrittenGraph:
    """A graph, or graphs, as JSON values and arrays: nodes in the order of rows, one graph after the other.

    Attributes:
        header: ``names`` of all nodes, ``sizes`` of the graphs, ``with_ids``, and ``kinds`` of numbers by name.
        arrays: ``x``, ``ends`` of all arcs as rows, ``value/NAME`` for each edge value, and, if there are any, ``y``
            and ``event_keys``.
    """

    header: dict[str, Any]
    arrays: Arrays


def store_of(canonical_data: CanonicalData, chosen: Targets, targets: TargetChoice, subgraphs: Subgraphs) -> Store:
    """Returns the graph, or graphs, of data in slots. Slots are rows."""
    graph = chosen.graph
    parts = [canonical_data.data]
    if subgraphs.of_graphs:
        parts = [canonical_data.data[int(row)] for row in chosen.rows]
    names = [_listed(exact_ids(part)) for part in parts]
    with_ids = [getattr(part, "node_id", None) is not None for part in parts]
    x = graph.x.detach().cpu().numpy().copy()
    nodes = Nodes(names, graph.node_key.numpy(), x, with_ids)
    if not subgraphs.by_pair and not subgraphs.is_per_neighbour:
        division: Any = subgraphs.division
        nodes.home[:] = division.node_groups(graph).numpy()
    layout = subgraphs.layout(graph)
    edge_values = {name: value.detach().cpu().numpy() for name, value in graph.edge_values.items()}
    if not subgraphs.of_graphs:
        edge_values |= {name: _kept_beside(parts[0], graph, name) for name in _names_beside(parts[0])}
    values = {name: value[layout.edge] for name, value in edge_values.items()}
    num_subgraphs = 0
    if subgraphs.of_graphs and not subgraphs.is_per_neighbour:
        num_subgraphs = len(parts) * subgraphs.num_groups
    union = Union(
        layout.subgraph_index, layout.node, layout.ends, values, num_nodes=nodes.count, num_subgraphs=num_subgraphs
    )
    store = Store(subgraphs, nodes, union, _dtypes(parts, graph, list(values)))
    event_keys = getattr(parts[0], EVENT_KEYS, None)
    if event_keys is not None:
        store.counted = CountedEvents(_read_keys(event_keys))
    if not subgraphs.keeps_loops:
        _add_loops(store, canonical_data.targets(targets, True).graph)
    return store


def _read_keys(event_keys: Any) -> Array:
    keys: Array = torch.as_tensor(event_keys).detach().cpu().numpy()
    if keys.ndim != 2 or keys.shape[1] != 3 or keys.dtype != np.int64:
        raise GraphError("data.event_keys needs three whole numbers for each event, as load_events makes them.")
    return keys


def _add_loops(store: Store, graph: CanonicalGraph) -> None:
    source, head = graph.edge_index
    for edge in (source == head).nonzero().view(-1).tolist():
        values = {name: graph.edge_values[name][edge].numpy() for name in store.union.values if name not in KEPT_BESIDE}
        store.loops.setdefault(int(source[edge]), []).append(values)


def _names_beside(data: Data) -> list[str]:
    """Returns what the data keeps of each edge beside its values."""
    return [name for name in KEPT_BESIDE if getattr(data, name, None) is not None]


def _kept_beside(data: Data, graph: CanonicalGraph, name: str) -> Array:
    """Returns what the data keeps of each edge of the canonical graph.

    Raises:
        GraphError: It does not fit the edges, or edges are repeated.
    """
    rows = torch.as_tensor(data[name]).detach().cpu().numpy()
    num_nodes = max(1, graph.x.size(0))
    given = data.edge_index.detach().cpu().numpy()
    keys = given[0].astype(np.int64) * num_nodes + given[1]
    if len(rows) != len(keys) or len(np.unique(keys)) != len(keys):
        raise GraphError(f"data.{name} needs one entry for each edge, and each edge once.")
    order = np.argsort(keys)
    wanted = graph.edge_index.numpy()
    wanted_keys = wanted[0].astype(np.int64) * num_nodes + wanted[1]
    return np.asarray(rows[order][np.searchsorted(keys[order], wanted_keys)])


def _dtypes(parts: list[Data], graph: CanonicalGraph, names: list[str]) -> dict[str, torch.dtype]:
    """Returns types of numbers as the user gave them; where graphs differ, the type in which they are joined."""
    joined = {"x": graph.x, **graph.edge_values}
    joined |= {name: torch.as_tensor(parts[0][name]) for name in names if name in KEPT_BESIDE}
    dtypes = {}
    for name in ("x", *names):
        given = {torch.as_tensor(part[name]).dtype for part in parts}
        dtypes[name] = given.pop() if len(given) == 1 else joined[name].dtype
    return dtypes


def data_of(store: Store, task: Task, y: Array | None, given: Any, rows: Array) -> GraphData:
    """Returns the graph, or graphs, as they are: what ``certify`` and ``verify`` may be called with.

    Args:
        store: The graph.
        task: ``"node"`` or ``"graph"``.
        y: Node task: labels by slot, if there are any.
        given: Graph task: the data that it began with. Graphs that are not in ``rows`` are as they were.
        rows: Graph task: rows of the graphs in the store.
    """
    written = write_graph(store, y if task == "node" else None)
    if task == "node":
        return read_node_data(written)
    return read_graphs(written, given, rows)


def write_graph(store: Store, y: Array | None) -> WrittenGraph:
    """Returns the graph, or graphs, as a journal keeps them."""
    nodes = store.nodes
    order = nodes.in_order()
    ends, values = store.all_arcs()
    arrays = {"x": nodes.x[order], "ends": nodes.rows()[ends]}
    for name, value in values.items():
        arrays[_VALUE + name] = value
    if y is not None:
        arrays["y"] = y[order]
    if len(store.counted):
        arrays[EVENT_KEYS] = store.counted.rows()
    header = {
        "names": [nodes.name(slot) for slot in order.tolist()],
        "sizes": [len(slots) for slots in nodes.slot_of],
        "with_ids": nodes.with_ids,
        "kinds": {name: str(dtype).removeprefix("torch.") for name, dtype in store.dtypes.items()},
    }
    return WrittenGraph(header, arrays)


def without_derived(written: WrittenGraph, rules: EdgeRules) -> WrittenGraph:
    """Returns a graph without the values of edges that follow from what their events add up to."""
    derived = _derived_values(written.arrays, rules)
    stated = written.arrays.get(_ATTRIBUTES)
    if derived is None or stated is None or stated.dtype != derived.dtype or stated.tobytes() != derived.tobytes():
        return written
    return replace(written, arrays={name: each for name, each in written.arrays.items() if name != _ATTRIBUTES})


def with_derived(written: WrittenGraph, rules: EdgeRules) -> WrittenGraph:
    """Returns a graph with the values of edges that :func:`without_derived` left out."""
    if _ATTRIBUTES in written.arrays:
        return written
    derived = _derived_values(written.arrays, rules)
    return written if derived is None else replace(written, arrays={_ATTRIBUTES: derived, **written.arrays})


def _derived_values(arrays: Arrays, rules: EdgeRules) -> Array | None:
    """Returns the values of edges that stand for events, as they follow from the totals; None if they do not."""
    totals = arrays.get(_VALUE + TOTALS)
    if totals is None or rules.events is None:
        return None
    values = rules.events.edge_values(totals)
    if not rules.halves:
        return values
    source, head = arrays["ends"]
    num_nodes = len(arrays["x"])
    key = source * num_nodes + head
    order = np.argsort(key)
    way_back = head * num_nodes + source
    place = np.searchsorted(key[order], way_back).clip(max=max(0, len(key) - 1))
    back = order[place]
    if not np.array_equal(key[back], way_back):
        return None
    return np.concatenate([values, values[back]], axis=1)


def value_names(arrays: Arrays) -> list[str]:
    """Returns the names of the edge values among the arrays of a written graph."""
    return [name.removeprefix(_VALUE) for name in arrays if name.startswith(_VALUE)]


def read_node_data(written: WrittenGraph) -> Data:
    """Returns the one graph that :func:`write_graph` described."""
    data = _read_one(written, 0)
    if "y" in written.arrays:
        data.y = torch.from_numpy(written.arrays["y"].copy())
    if EVENT_KEYS in written.arrays:
        data[EVENT_KEYS] = torch.from_numpy(written.arrays[EVENT_KEYS].copy())
    return data


def read_graphs(written: WrittenGraph, given: Any, rows: Array) -> list[Data]:
    """Returns the given graphs, with those in ``rows`` as :func:`write_graph` described them."""
    graphs = [given[k] for k in range(len(given))]
    for number, row in enumerate(rows.tolist()):
        data = _read_one(written, number)
        y = getattr(graphs[row], "y", None)
        if y is not None:
            data.y = y
        graphs[row] = data
    return graphs


def _read_one(written: WrittenGraph, number: int) -> Data:
    """Returns one of the graphs, without labels."""
    header = written.header
    arrays = written.arrays
    first_row = np.cumsum([0, *header["sizes"]])
    nodes = slice(first_row[number], first_row[number + 1])
    graph_of_arc = np.searchsorted(first_row, arrays["ends"][0], side="right") - 1
    is_mine = graph_of_arc == number
    edge_index = torch.from_numpy(arrays["ends"][:, is_mine] - first_row[number])
    data = Data(x=torch.from_numpy(arrays["x"][nodes].copy()), edge_index=edge_index)
    for name in value_names(arrays):
        data[name] = torch.from_numpy(arrays[_VALUE + name][is_mine])
    if header["with_ids"][number]:
        names = header["names"][nodes]
        all_whole = all(isinstance(name, int) and name in INT64 for name in names)
        data.node_id = torch.tensor(names, dtype=torch.int64) if all_whole else names
    return data


def _listed(ids: Any) -> list[Id]:
    if isinstance(ids, np.ndarray):
        return list(ids.tolist())
    return list(ids)
