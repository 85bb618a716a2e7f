"""Conversions of a live graph: from and to the user's data, to votes of a certificate, to arrays for the journal."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import INT64, Id
from agnncert.certificates.votes import Votes
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.reach import ReachTable
from agnncert.engine.structure import structure
from agnncert.engine.votes import compute_votes
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import exact_ids
from agnncert.graphs.targets import CanonicalData, Targets, prepared
from agnncert_live.casting import CopyVotes
from agnncert_live.core import Core
from agnncert_live.nodes import Cells, Nodes, Union
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
    return read(*written(store, y), task, given, rows)


Arrays = dict[str, Array]


def written(store: Store, y: Array | None) -> tuple[dict[str, Any], Arrays]:
    """The graph, or graphs, in JSON's terms and arrays: nodes in the order of rows, one graph after the other."""
    nodes, order = store.nodes, store.nodes.in_order()
    row = np.zeros(nodes.count, dtype=np.int64)
    row[order] = np.arange(len(order))
    ends, values = store.all_arcs()
    arrays = {"x": nodes.x[order], "ends": row[ends], **{f"value/{name}": value for name, value in values.items()}}
    if y is not None:
        arrays["y"] = y[order]
    header = {
        "names": [nodes.name[slot] for slot in order.tolist()],
        "sizes": [len(slots) for slots in nodes.slot_of],
        "with_ids": nodes.with_ids,
        "kinds": {name: str(kind).removeprefix("torch.") for name, kind in store.kinds.items()},
    }
    return header, arrays


def read(header: dict[str, Any], arrays: Arrays, task: Task, given: Any, rows: Array) -> Any:
    """The data that :func:`written` described."""
    first = np.cumsum([0, *header["sizes"]])
    of_arc = np.searchsorted(first, arrays["ends"][0], side="right") - 1
    graphs = [given[k] for k in range(len(given))] if task == "graph" else [None]
    for number, place in enumerate(rows.tolist() if task == "graph" else [0]):
        nodes, mine = slice(first[number], first[number + 1]), of_arc == number
        ends = torch.from_numpy(arrays["ends"][:, mine] - first[number])
        one = Data(x=torch.from_numpy(arrays["x"][nodes].copy()), edge_index=ends)
        for name, value in arrays.items():
            if name.startswith("value/"):
                one[name.removeprefix("value/")] = torch.from_numpy(value[mine])
        if header["with_ids"][number]:
            names = header["names"][nodes]
            whole = all(isinstance(name, int) and name in INT64 for name in names)
            one.node_id = torch.tensor(names, dtype=torch.int64) if whole else names
        if task == "graph" and getattr(graphs[place], "y", None) is not None:
            one.y = graphs[place].y
        elif task == "node" and "y" in arrays:
            one.y = torch.from_numpy(arrays["y"].copy())
        graphs[place] = one
    return graphs if task == "graph" else graphs[0]


def _listed(ids: Any) -> list[Id]:
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def write_out(core: Core, data: Any) -> tuple[Targets, Votes, ReachTable]:
    """The targets in canonical form, their votes and their reach tables.

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
    known = structure(chosen.graph, division, chosen.positions)
    for name in ("indptr", "group", "reached"):
        if not np.array_equal(known[name], getattr(votes, name)):
            raise RuntimeError(f"the votes kept are not those of the graph: {name} differs. This is a mistake here.")
    return chosen, votes, ReachTable(known["reach_ptr"], known["reach"])


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
    """Decides close flags with the rounding noise that ``certify`` uses, which follows the numbers of rows."""
    store, caster = core.store, core.caster
    votes, copies = core.counter.votes(order, group, most)
    close = store.close[copies]
    plain = not (store.cells.on_graphs or store.cells.gated)
    alone = store.no_edge_close[order] if plain else np.zeros(len(order), dtype=bool)
    if not close.any() and not alone.any():
        return
    if caster.call.edge_inputs or caster.rough or store.cells.on_graphs:
        # The noise of edge values follows their position among all; further noises are tried for whole chunks.
        fresh, _ = compute_votes(
            caster.call, chosen.graph, store.cells.division, chosen.positions, "fast", caster.tolerance
        )
        listed = CopyVotes(copies[close], fresh.vote[close], fresh.stable[close], close[close])
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
    """All copies of a cell hold its vote; this gives the others that of the one that was listed."""
    live = store.union.live_copies()
    cells = store.union.cell[listed.of]
    by_cell = np.argsort(cells)
    place = np.searchsorted(cells[by_cell], store.union.cell[live])
    same = np.append(cells[by_cell], -2)[place] == store.union.cell[live]
    source = by_cell[place[same]]
    return CopyVotes(live[same], listed.vote[source], listed.stable[source], listed.close[source])
