"""Writes a graph in memory in parts."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions.base import Division
from agnncert.errors import GraphError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import CanonicalData, Targets
from agnncert_large.disk import checked_value
from agnncert_large.partitioned.graph import MASKS, NodeRange
from agnncert_large.partitioned.places import Place, spare_folder
from agnncert_large.partitioned.writing import PartsWriter, rows_of_range


def write_data(data: Data, place: Place, division: Division) -> None:
    """Writes a graph in memory in parts.

    Args:
        data: One graph, for node classification.
        place: Where; nothing may lie there.
        division: By whose groups.
    """
    if not isinstance(data, Data):
        raise GraphError(
            f"a place holds one graph, a torch_geometric Data; this is a {type(data).__name__}. Graphs of "
            "the graph task are parts already: certify them some at a time."
        )
    with spare_folder(None) as spare:
        writer = PartsWriter(place, division, spare)
        chosen = CanonicalData.of(data).targets(None, division.self_loops)
        _write_nodes(writer, data, chosen)
        _write_arcs(writer, chosen.graph)
        writer.finish(_facts(data, chosen))


def _write_nodes(writer: PartsWriter, data: Data, chosen: Targets) -> None:
    graph = chosen.graph
    total = graph.num_nodes
    source, target = graph.edge_index.numpy()
    whole = NodeRange(
        first=0,
        key=graph.node_key.numpy(),
        id=chosen.ids,
        degree=chosen.degree,
        incoming=np.bincount(target, minlength=total),
        outgoing=np.bincount(source, minlength=total),
        y=chosen.truth,
        masks={name: _mask(data, name) for name in MASKS if getattr(data, name, None) is not None},
    )
    groups = None
    if writer.division.divides_nodes:
        groups = writer.division.node_groups(graph).numpy()  # type: ignore[attr-defined]
    x = graph.x.numpy()
    step = rows_of_range(x.shape[1], x.itemsize)
    for first in range(0, total, step):
        rows = slice(first, min(first + step, total))
        part = replace(
            whole,
            first=first,
            **{name: getattr(whole, name)[rows] for name in ("key", "id", "degree", "incoming", "outgoing")},
            y=None if whole.y is None else whole.y[rows],
            masks={name: mask[rows] for name, mask in whole.masks.items()},
        )
        writer.nodes(part, chosen.id_kind == "node_id")
        writer.features(first, x[rows])
        if groups is not None:
            write_senders(writer, groups[rows], first, part.key, x[rows])


def write_senders(writer: PartsWriter, groups: Any, first: int, key: Any, x: Any) -> None:
    """Appends the nodes of a range to the senders of their groups.

    Args:
        writer: Where they go.
        groups: Group of each.
        first: Row of the first.
        key: Key of each.
        x: Features of each.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=writer.division.num_groups)
    ends = np.cumsum(sizes)
    for group in np.flatnonzero(sizes).tolist():
        mine = order[ends[group] - sizes[group] : ends[group]]
        writer.senders(group, mine + first, key[mine], x[mine])


def _write_arcs(writer: PartsWriter, graph: CanonicalGraph) -> None:
    """Writes arcs by group, by target, and in canonical order at each target, in which the graph has them."""
    division = writer.division
    groups = division.groups(graph).numpy()
    source, target = graph.edge_index.numpy().astype(np.int64)
    values = {name: value.numpy() for name, value in graph.edge_values.items()}
    order = np.lexsort([np.arange(len(groups)), target, groups])
    sizes = np.bincount(groups, minlength=division.num_groups)
    ends = np.cumsum(sizes)
    of_target = None
    if division.divides_nodes:
        of_target = division.node_groups(graph).numpy()  # type: ignore[attr-defined]
    for group in range(division.num_groups):
        mine = order[ends[group] - sizes[group] : ends[group]]
        inner = mine[:0]
        if of_target is not None:
            inner = mine[of_target[target[mine]] == group]
        for kind, chosen in (("arcs", mine), ("inner", inner)):
            some = {name: value[chosen] for name, value in values.items()}
            writer.arcs(kind, group, source[chosen], target[chosen], some)
            writer.end_group(kind, group)


def _facts(data: Data, chosen: Targets) -> dict[str, Any]:
    """Returns what the manifest says about the graph as a whole."""
    graph = chosen.graph
    tensors = {"x", "edge_index", "node_id", "y", "edge_weight", "edge_attr", *MASKS}
    values = {}
    for name, value in data:
        if name in tensors or name == "graph_folder" or isinstance(value, Tensor):
            continue
        values[name] = checked_value(name, value.to_json() if hasattr(value, "to_json") else value)
    if chosen.truth is not None:
        values.setdefault("num_classes", int(chosen.truth.max()) + 1)
    columns = [name for name in ("y", *MASKS) if getattr(data, name, None) is not None]
    if chosen.truth is None and "y" in columns:
        columns.remove("y")
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.x.size(1),
        "x_type": str(graph.x.dtype).removeprefix("torch."),
        "edge_values": {
            name: {"type": str(value.dtype).removeprefix("torch."), "shape": list(value.shape[1:])}
            for name, value in graph.edge_values.items()
        },
        "ids": chosen.id_kind,
        "id_digest": graph.id_digests[0],
        "graph": chosen.digest,
        "values": values,
        "columns": columns,
    }


def _mask(data: Data, name: str) -> Any:
    value: Tensor = data[name]
    if value.dtype != torch.bool or value.shape != (data.num_nodes,):
        raise GraphError(f"{name} has shape {tuple(value.shape)} and type {value.dtype}: expected a mask.")
    return value.cpu().numpy()
