"""Conversions of a live graph: from and to the user's data, to votes of a certificate, to arrays for the journal."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import INT64, Id
from agnncert.certificates.votes import Votes
from agnncert.engine.cover import Cover
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.ranges import cast, structure
from agnncert.graphs.graph import CanonicalGraph, Task, exact_ids
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert_live.casting import CopyVotes
from agnncert_live.core import Core
from agnncert_live.nodes import OUTSIDE, Cells, Nodes, Union
from agnncert_live.store import Store

Array = npt.NDArray[Any]


def store_of(ready: CanonicalData, chosen: Targets, targets: Any, cells: Cells) -> Store:
    """The graph, or graphs, of data in slots; slots are rows."""
    graph = chosen.graph
    parts = [ready.data[int(row)] for row in chosen.rows] if cells.on_graphs else [ready.data]
    names = [_listed(exact_ids(part)) for part in parts]
    with_ids = [getattr(part, "node_id", None) is not None for part in parts]
    nodes = Nodes(names, graph.node_key.numpy(), graph.x.detach().cpu().numpy().copy(), with_ids)
    if not cells.by_pair and not cells.own_groups:
        nodes.home[:] = cells.division.node_groups(graph).numpy()
    cell, node, ends, edge = cells.layout(graph)
    values = {name: value.detach().cpu().numpy()[edge] for name, value in graph.edge_values.items()}
    fixed = cells.on_graphs and not cells.own_groups
    num_cells = len(parts) * int(cells.division.num_groups) if fixed else 0
    union = Union(cell, node, ends, values, nodes.count, num_cells)
    store = Store(cells, nodes, union, _kinds(parts, graph, values))
    if not cells.keeps_loops:
        _keep_loops(store, ready.targets(targets, True).graph)
    return store


def _keep_loops(store: Store, graph: CanonicalGraph) -> None:
    source, head = graph.edge_index
    for edge in (source == head).nonzero().view(-1).tolist():
        carried = {name: graph.edge_values[name][edge].numpy() for name in store.union.values}
        store.loops.setdefault(int(source[edge]), []).append(carried)


def _kinds(parts: list[Data], graph: CanonicalGraph, values: dict[str, Array]) -> dict[str, torch.dtype]:
    """Types of numbers as the user gave them; where graphs differ, the type in which they are joined."""
    found = {}
    joined = {"x": graph.x, **graph.edge_values}
    for name in ("x", *values):
        given = {part[name].dtype for part in parts}
        found[name] = given.pop() if len(given) == 1 else joined[name].dtype
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


def write_out(core: Core, data: Any) -> tuple[Targets, Votes, Cover]:
    """The targets in canonical form, their votes and their cover tables.

    Args:
        core: The live graph.
        data: It as data.
    """
    store, order, rows, most = core.store, core.order(), core.rows, core.num_groups()
    on_graphs, division = store.cells.on_graphs, store.cells.division
    row = np.zeros(store.nodes.count, dtype=np.int64)
    living = store.nodes.in_order()
    row[living] = np.arange(len(living))
    ready = prepared(data, rows if on_graphs else None)
    chosen = ready.targets(rows if on_graphs else row[order], store.cells.keeps_loops)
    group = _numbers(store, row, most)
    _settle_close(core, chosen, order, row, group, most)
    votes, _ = core.counter.votes(order, group, most)
    known = structure(chosen.graph, division, chosen.places)
    for name in ("indptr", "group", "reached"):
        if not np.array_equal(known[name], getattr(votes, name)):
            raise RuntimeError(f"the ballots kept are not those of the graph: {name} differs. This is a mistake here.")
    return chosen, votes, (known["cover_ptr"], known["cover"])


def _numbers(store: Store, row: Array, most: int) -> Array:
    """Number of the group of every copy, as the graph is numbered now."""
    cell = store.union.cell
    if not store.cells.own_groups:
        return cell % most if store.cells.on_graphs else cell
    sizes = [len(slots) for slots in store.nodes.slot_of]
    first = np.cumsum([0, *sizes[:-1]])  # row at which each graph begins
    number = np.zeros(len(cell), dtype=np.int64)
    live = store.union.live_copies()
    live = live[cell[live] >= 0]
    if not store.cells.by_pair:
        number[live] = row[cell[live]] - first[store.nodes.graph[cell[live]]]
        return number
    low, high = np.sort(np.stack([row[cell[live] >> 32], row[cell[live] & 0xFFFFFFFF]]), axis=0)
    pairs, where = np.unique(low * len(row) + high, return_inverse=True)
    graph = np.searchsorted(first, pairs // len(row), side="right") - 1
    counts = np.bincount(graph, minlength=len(first))
    number[live] = (np.arange(len(pairs)) - (np.cumsum(counts) - counts)[graph])[where]
    return number


def _settle_close(core: Core, chosen: Targets, order: Array, row: Array, group: Array, most: int) -> None:
    """Decides close flags by the shaking that ``certify`` uses, which follows the numbers of rows."""
    store, caster = core.store, core.caster
    votes, copies = core.counter.votes(order, group, most)
    close = store.close[copies]
    plain = not (store.cells.on_graphs or store.cells.gated)
    alone = store.edgeless_close[order] if plain else np.zeros(len(order), dtype=bool)
    if not close.any() and not alone.any():
        return
    if caster.call.takes or caster.rough or store.cells.on_graphs:
        # Values of edges are shaken by their place among all; further looks are taken for whole chunks.
        fresh, _ = cast(caster.call, chosen.graph, store.cells.division, chosen.places, "fast", caster.tolerance)
        listed = CopyVotes(copies[close], fresh.ballot[close], fresh.stable[close], close[close])
        default = CopyVotes(order[alone], fresh.default[alone], fresh.default_stable[alone], alone[alone])
    else:
        x = chosen.graph.x.to(caster.call.dtype)
        listed, default = caster.decide(copies[close], order[alone], Features(x, SparseRows.of(x)), row)
    listed.close[:] = default.close[:] = True  # close they stay: another numbering may decide otherwise
    core.revise(_of_whole_cells(store, listed) if store.cells.on_graphs else listed, default)
    touched = alone.copy()
    touched[votes.owner[close]] = True
    core.count(order[touched])


def _of_whole_cells(store: Store, listed: CopyVotes) -> CopyVotes:
    """All copies of a cell hold its ballot; this gives the others that of the one that was listed."""
    live = store.union.live_copies()
    cells = store.union.cell[listed.of]
    by_cell = np.argsort(cells)
    place = np.searchsorted(cells[by_cell], store.union.cell[live])
    same = np.append(cells[by_cell], -2)[place] == store.union.cell[live]
    source = by_cell[place[same]]
    return CopyVotes(live[same], listed.ballot[source], listed.stable[source], listed.close[source])


Arrays = dict[str, Array]

_OF_NODES = ("key", "home", "graph", "x")
_OF_COPIES = ("cast", "ballot", "stable", "close")
_OF_TARGETS = ("edgeless", "edgeless_stable", "edgeless_close")


def written(store: Store) -> tuple[dict[str, Any], Arrays, Array]:
    """The store in JSON's terms and arrays, nodes in the order of rows, and the slot of each.

    Slots, copies and arcs that are free are left out, so what is read back is as compact as at the beginning.
    """
    nodes, union = store.nodes, store.union
    order = nodes.in_order()
    row = np.zeros(nodes.count, dtype=np.int64)
    row[order] = np.arange(len(order))
    copies, arcs = union.live_copies(), union.live_arcs()
    place = np.zeros(union.num_copies, dtype=np.int64)
    place[copies] = np.arange(len(copies))
    arrays = {name: getattr(nodes, name)[order] for name in _OF_NODES}
    arrays |= {name: getattr(store, name)[order] for name in _OF_TARGETS}
    arrays |= {name: getattr(store, name)[copies] for name in _OF_COPIES}
    arrays["cell"], arrays["node"] = _renumbered(store.cells, union.cell[copies], row), row[union.node[copies]]
    arrays["ends"] = place[np.stack([union.source[arcs], union.head[arcs]])]
    arrays |= {f"value/{name}": value[arcs] for name, value in union.values.items()}
    loops = [(int(row[slot]), one) for slot, carried in store.loops.items() for one in carried]
    header = {
        "names": [nodes.name[slot] for slot in order.tolist()],
        "sizes": [len(slots) for slots in nodes.slot_of],
        "with_ids": nodes.with_ids,
        "kinds": {name: str(kind).removeprefix("torch.") for name, kind in store.kinds.items()},
        "loops": [[at, {name: np.asarray(value).tolist() for name, value in one.items()}] for at, one in loops],
    }
    return header, arrays, order


def read(header: dict[str, Any], arrays: Arrays, cells: Cells) -> Store:
    """The store that :func:`written` described."""
    cuts = np.cumsum(header["sizes"])[:-1].tolist()
    names = [header["names"][start:stop] for start, stop in zip([0, *cuts], [*cuts, None], strict=True)]
    nodes = Nodes(names, arrays["key"], arrays["x"].copy(), list(header["with_ids"]))
    nodes.home[:] = arrays["home"]
    values = {name.removeprefix("value/"): array for name, array in arrays.items() if name.startswith("value/")}
    fixed = cells.on_graphs and not cells.own_groups
    num_cells = len(names) * int(cells.division.num_groups) if fixed else 0
    union = Union(arrays["cell"], arrays["node"], arrays["ends"], values, nodes.count, num_cells)
    store = Store(cells, nodes, union, {name: getattr(torch, kind) for name, kind in header["kinds"].items()})
    for name in (*_OF_COPIES, *_OF_TARGETS):
        setattr(store, name, arrays[name].copy())
    for at, carried in header["loops"]:
        numbers = {name: np.asarray(value, dtype=values[name].dtype) for name, value in carried.items()}
        store.loops.setdefault(at, []).append(numbers)
    return store


def _renumbered(cells: Cells, cell: Array, row: Array) -> Array:
    """Cells under the new numbers of nodes, where these number them."""
    if not cells.own_groups:
        return cell
    inside = cell != OUTSIDE
    renumbered = cell.copy()
    if cells.by_pair:
        low, high = np.sort(np.stack([row[cell >> 32], row[cell & 0xFFFFFFFF]]), axis=0)
        return np.asarray((low << 32) | high)
    renumbered[inside] = row[cell[inside]]
    return renumbered
