"""What an attacker changed between two graphs: the parts of a ``Perturbation``, found by the ids of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.ids import Id
from agnncert.errors import GraphError, IdError
from agnncert.graphs.graph import edge_values_of
from agnncert.graphs.node_ids import exact_ids, has_ids

Pair = tuple[Id, Id]
Arc = tuple[int, int]  # places of source and head in the list of all ids
Line = tuple[float, ...]  # what one arc carries, and how many copies of it there are
Table = npt.NDArray[Any]


@dataclass
class Differences:
    """How an attacked graph differs from a clean one, in the words of ``Perturbation``.

    Attributes:
        add_edges: Pairs that gain a direction which they lacked.
        delete_edges: Pairs that are separated.
        change_edges: Pairs with another value or number of copies, and the new one.
        inject_nodes: New nodes with their features.
        delete_nodes: Nodes that are gone.
        change_features: Nodes with other features, and the new ones.
        directed: Whether ``add_edges`` lists each direction by itself.
        added_values: What each added edge carries.
    """

    add_edges: tuple[Pair, ...] = ()
    delete_edges: tuple[Pair, ...] = ()
    change_edges: tuple[tuple[Id, Id, Any], ...] = ()
    inject_nodes: dict[Id, list[float]] = field(default_factory=dict)
    delete_nodes: tuple[Id, ...] = ()
    change_features: dict[Id, list[float]] = field(default_factory=dict)
    directed: bool = False
    added_values: dict[str, Any] = field(default_factory=dict)


def differences(clean: Data, attacked: Data) -> Differences:
    """Compares two graphs. Nodes with the same id are one node; without ids, nodes of the same row.

    Raises:
        GraphError: One of them is no graph with features, or they differ by what no perturbation does.
        IdError: Only one of the graphs has ids, or nodes are gone from graphs without ids.
    """
    _require_comparable(clean, attacked)
    before = {name: row for row, name in enumerate(_ids(clean, "clean"))}
    after = {name: row for row, name in enumerate(_ids(attacked, "attacked"))}
    if not has_ids(clean) and len(after) < len(before):
        raise IdError(
            f"the graphs have {len(before):,} and {len(after):,} nodes and no node_id, so nothing says which "
            "nodes are gone: give both graphs ids."
        )
    kept = [name for name in before if name in after]
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    found = Differences(delete_nodes=tuple(gone))
    found.inject_nodes = {name: attacked.x[after[name]].tolist() for name in new}
    old_x = clean.x[torch.tensor([before[name] for name in kept], dtype=torch.int64)]
    new_x = attacked.x[torch.tensor([after[name] for name in kept], dtype=torch.int64)]
    altered = (old_x != new_x).flatten(1).any(dim=1).nonzero().view(-1).tolist()
    found.change_features = {kept[k]: new_x[k].tolist() for k in altered}
    _compare_edges(clean, attacked, [*kept, *gone, *new], set(gone), found)
    return found


def _require_comparable(clean: Data, attacked: Data) -> None:
    for which, data in (("clean", clean), ("attacked", attacked)):
        if not isinstance(data, Data) or data.x is None or data.edge_index is None:
            raise GraphError(
                f"the {which} graph is no torch_geometric Data with x and edge_index: two such graphs are compared."
            )
    if clean.x.shape[1:] != attacked.x.shape[1:]:
        raise GraphError(
            f"nodes of the clean graph have features of shape {tuple(clean.x.shape[1:])}, those of the "
            f"attacked graph {tuple(attacked.x.shape[1:])}: no change of a graph does this."
        )
    if has_ids(clean) != has_ids(attacked):
        raise IdError("only one of the two graphs has a node_id: nodes are told by ids, so give both.")
    carried = [sorted(edge_values_of(data)) for data in (clean, attacked)]
    if carried[0] != carried[1]:
        said = [" and ".join(names) or "nothing" for names in carried]
        raise GraphError(
            f"edges of the clean graph carry {said[0]}, those of the attacked graph {said[1]}: give both the same."
        )


def _ids(data: Data, which: str) -> list[Id]:
    ids = exact_ids(data, f"{which} graph: ")
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def _compare_edges(clean: Data, attacked: Data, names: Sequence[Id], gone: set[Id], found: Differences) -> None:
    """Notes how the edges differ; those of nodes that are gone went with them."""
    place = {name: k for k, name in enumerate(names)}
    tables = []
    for which, data in (("clean", clean), ("attacked", attacked)):
        at = np.array([place[name] for name in _ids(data, which)], dtype=np.int64)
        tables.append(_lines(at[data.edge_index.cpu().numpy()], _values(data)))
    before, after = _of_differing_pairs(tables[0], tables[1])
    gained: list[Arc] = []
    deleted: list[Pair] = []
    changed: list[tuple[Id, Id, Any]] = []
    for pair in dict.fromkeys((min(arc), max(arc)) for arc in (*before, *after)):
        u, v = (names[end] for end in pair)
        if gone & {u, v}:
            continue
        arcs = list(dict.fromkeys((pair, pair[::-1])))
        new = [arc for arc in arcs if arc in after and arc not in before]
        old = [arc for arc in arcs if arc in before]
        if old and not any(arc in after for arc in arcs):
            deleted.append((u, v))
        elif any(before[arc] != after.get(arc) for arc in old):
            _require_same_directions(old, new, after, f"{u!r} and {v!r}")
            changed.append((u, v, _new_value(after, old, clean, f"{u!r} and {v!r}")))
        gained += new
    ends = [(names[u], names[v]) for u, v in gained]
    found.directed = any(v != u and (v, u) not in after for u, v in gained)
    found.add_edges = tuple(ends if found.directed else {frozenset(pair): pair for pair in ends}.values())
    found.delete_edges = tuple(deleted)
    found.change_edges = tuple(changed)
    found.added_values = _values_of_added({line for arc in gained for line in after[arc]}, clean)


def _require_same_directions(old: Sequence[Arc], new: Sequence[Arc], after: Mapping[Arc, Any], pair: str) -> None:
    """Refuses a changed edge whose directions are others than before."""
    if new or any(arc not in after for arc in old):
        raise GraphError(
            f"the edge between {pair} has other values or copies, and other directions: a Perturbation cannot say "
            "this. Compare the graphs with edges in both directions."
        )


def _values(data: Data) -> Table:
    """Returns what each arc carries, one line for each, with no column if nothing."""
    carried = [
        value.detach().cpu().flatten(1) if value.dim() > 1 else value.detach().cpu()[:, None]
        for value in edge_values_of(data).values()
    ]
    return np.concatenate([np.zeros((data.edge_index.size(1), 0)), *carried], axis=1)


def _lines(ends: Table, values: Table) -> Table:
    """Returns source, head, values and number of copies of each distinct arc."""
    lines, copies = np.unique(np.column_stack([*ends, values]), axis=0, return_counts=True)
    return np.column_stack([lines, copies])


def _of_differing_pairs(before: Table, after: Table) -> tuple[dict[Arc, list[Line]], ...]:
    """Returns what the arcs of both graphs carry, for all pairs of nodes with any difference."""
    lines, times = np.unique(np.concatenate([before, after]), axis=0, return_counts=True)
    differing = {(min(u, v), max(u, v)) for u, v in lines[times == 1][:, :2].tolist()}
    listed = np.array(sorted(differing), dtype=np.float64).reshape(-1, 2)
    found = []
    for table in (before, after):
        low, high = table[:, :2].min(axis=1), table[:, :2].max(axis=1)
        near = np.isin(low, listed[:, 0]) & np.isin(high, listed[:, 1])
        arcs: dict[Arc, list[Line]] = {}
        for u, v, *line in table[near].tolist():
            if (min(u, v), max(u, v)) in differing:
                arcs.setdefault((int(u), int(v)), []).append(tuple(line))
        found.append(arcs)
    return tuple(found)


def _new_value(after: Mapping[Arc, list[Line]], arcs: Sequence[Arc], data: Data, pair: str) -> Any:
    """Returns the value that all arcs of a pair have now, or their number of copies if edges carry nothing."""
    names = list(edge_values_of(data))
    lines = {line if not names else line[:-1] for arc in arcs for line in after[arc]}
    if len(lines) > 1 or len(names) > 1:
        raise GraphError(
            f"the edges between {pair} have several new values, which a Perturbation cannot say: it gives one "
            "value to all edges of a pair."
        )
    (line,) = lines
    if not names:
        return int(line[-1])
    return line[0] if data[names[0]].dim() == 1 else list(line)


def _values_of_added(added: set[Line], data: Data) -> dict[str, Any]:
    """Returns what added edges carry, by name.

    Raises:
        GraphError: They carry different values, or an edge is added more than once.
    """
    if not added:
        return {}
    if len(added) > 1 or next(iter(added))[-1] != 1:
        raise GraphError(
            "added edges carry different values, or some are added in several copies, which a Perturbation "
            "cannot say: all edges that it adds carry the same. Compare smaller changes one by one."
        )
    (line,) = added
    values: dict[str, Any] = {}
    start = 0
    for name, value in edge_values_of(data).items():
        if value.dim() == 1:
            values[name] = line[start]
            start += 1
            continue
        width = value[0].numel() if len(value) else value.shape[1]
        values[name] = list(line[start : start + width])
        start += width
    return values
