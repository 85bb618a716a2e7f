"""A live graph in arrays, and back: what a journal keeps so that a restart need not cast every ballot again."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.live.cells import Cells
from agnncert.live.nodes import Nodes
from agnncert.live.store import Store
from agnncert.live.union import OUTSIDE, Union

Array = npt.NDArray[Any]
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
