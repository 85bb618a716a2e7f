"""The edges at some nodes of a live graph, and their neighbours."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert_live.store import Store

Array = npt.NDArray[Any]


class Edges(NamedTuple):
    """Some edges: the slots of the nodes that they join, shape ``[2, m]``, and what they carry, by name."""

    ends: Array
    values: dict[str, Array]


def edges_at(store: Store, slots: Array) -> Edges:
    """Returns all edges at some nodes."""
    union = store.union
    copies = union.of_node.gather(slots)[0]
    arriving = union.arriving.gather(copies)[0]
    leaving = union.leaving.gather(copies)[0]
    arcs = np.unique(np.concatenate([arriving, leaving]))
    return Edges(union.ends(arcs), {name: value[arcs] for name, value in union.values.items()})


def with_neighbours(store: Store, slots: Array) -> Array:
    """Returns some nodes and their neighbours, sorted."""
    return np.union1d(slots, edges_at(store, slots).ends.ravel())
