"""``Perturbation``: a concrete attack, in node ids. It can be applied to a graph, and knows what it costs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import INT64, Id, encode_id, encode_ids, order_of
from agnncert.errors import GraphError, IdError
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, edge_values_of
from agnncert.graphs.hashing import id_keys, refuse_duplicates
from agnncert.graphs.node_ids import exact_ids, listed_ids

Pair = tuple[Id, Id]


@dataclass(frozen=True)
class Perturbation:
    """What an attacker changed. Nodes are named by id, an edge is an unordered pair.

    Attributes:
        add_edges: Pairs to join; pairs with an injected node belong here too.
        delete_edges: Pairs to separate, in both directions and all copies.
        change_edges: ``(u, v, value)``: a new edge weight or attribute row; on a graph with neither, a number
            of copies.
        inject_nodes: New nodes and their features. An id is free when no node has it, or when its node is deleted.
        delete_nodes: Nodes removed with all their edges.
        change_features: New feature rows of existing nodes.
        directed: Whether ``add_edges`` adds only ``u -> v`` instead of both directions.
        added_values: What added edges carry, by name: a weight (``"edge_weight"``) or an attribute row
            (``"edge_attr"``). Whatever is not named, and the graph has, is 1 for an added edge.
    """

    add_edges: Sequence[Pair] = ()
    delete_edges: Sequence[Pair] = ()
    change_edges: Sequence[tuple[Id, Id, Any]] = ()
    inject_nodes: Mapping[Id, Sequence[float]] = field(default_factory=dict)
    delete_nodes: Sequence[Id] = ()
    change_features: Mapping[Id, Sequence[float]] = field(default_factory=dict)
    directed: bool = False
    added_values: Mapping[str, Any] = field(default_factory=dict)

    def cost(self) -> Budget:
        """The smallest budget that allows this attack; no target is known here, so ``target_features`` is not set."""
        injected = set(_distinct(self.inject_nodes))
        ends = [[w for w in dict.fromkeys(pair) if w in injected] for pair in distinct_pairs(self.add_edges)]
        return Budget(
            add_edges=ends.count([]),
            delete_edges=len(distinct_pairs(self.delete_edges)),
            change_edges=len(distinct_pairs([(u, v) for u, v, _ in self.change_edges])),
            inject_nodes=len(injected),
            edges_per_injected=least_load([new for new in ends if new]),
            delete_nodes=len(_distinct(self.delete_nodes)),
            change_features=len(_distinct(self.change_features)),
        )

    def apply(self, data: Data) -> Data:
        """The attacked graph: surviving nodes in their order, then the injected ones.

        Injected nodes get the label −1 and are in no split.
        """
        if isinstance(data, CanonicalGraph):
            raise GraphError(
                "this graph is in canonical form, without its ids: apply the change to the graph it was made from."
            )
        if not isinstance(data, Data) or data.x is None:
            found = "it has no node features x" if isinstance(data, Data) else f"got a {type(data).__name__}"
            raise GraphError(f"a change is applied to one torch_geometric Data with features: {found}.")
        draft = _Draft(data)
        draft.change_features(self.change_features)
        draft.change_edges(self.change_edges)
        draft.delete_edges(self.delete_edges)
        draft.delete_nodes(self.delete_nodes)
        draft.inject(self.inject_nodes)
        draft.add_edges(self.add_edges, self.directed, self.added_values)
        return draft.data


def keys_of(ids: Any) -> list[int]:
    """Keys of some ids, as Python integers (the bits of an int64). They tell groups; two nodes may share one."""
    listed = list(ids)
    return id_keys(listed).view(np.int64).tolist() if listed else []


def distinct_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Distinct unordered pairs of ids in canonical form, in order of appearance."""
    known = {w: encode_id(w) for pair in pairs for w in pair}  # 7 and "7" may both be used for one node
    named = (sorted((known[u], known[v]), key=order_of) for u, v in pairs)
    return list(dict.fromkeys((first, second) for first, second in named))


def pair_keys(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Distinct unordered pairs as pairs of keys, smaller key first; pairs of other nodes may have the same keys."""
    distinct = distinct_pairs(pairs)
    names = list(dict.fromkeys(w for pair in distinct for w in pair))
    key = dict(zip(names, keys_of(names), strict=True))
    return [(min(key[u], key[v]), max(key[u], key[v])) for u, v in distinct]


def _distinct(ids: Any) -> list[Id]:
    """Ids in canonical form; an id that is given twice is refused."""
    encoded = encode_ids(list(ids))
    refuse_duplicates(encoded)
    return encoded.tolist() if isinstance(encoded, np.ndarray) else encoded


def least_load(ends: list[list[Id]]) -> int:
    """The most edges that one node brings, if edges between two of these nodes are shared as evenly as possible."""
    load = Counter(nodes[0] for nodes in ends if len(nodes) == 1)
    held: dict[Id, dict[int, Id]] = defaultdict(dict)  # which edges a node brings, with the other end of each
    for edge, (first, second) in enumerate(nodes for nodes in ends if len(nodes) == 2):
        node, other = (first, second) if load[first] <= load[second] else (second, first)
        held[node][edge] = other
        load[node] += 1
    while _hand_on(held, load):
        pass
    return max(load.values(), default=0)


def _hand_on(held: dict[Id, dict[int, Id]], load: Counter[Id]) -> bool:
    """Takes one edge from a node that has the most, if possible. Returns whether it did.

    Along a path from such a node to a node with at least two edges fewer, each edge is given to its other end.
    """
    most = max(load.values(), default=0)
    via: dict[Id, tuple[Id, int] | None] = {node: None for node in load if load[node] == most}
    queue = list(via)
    for node in queue:
        if load[node] < most - 1:
            load[node] += 1
            while (step := via[node]) is not None:
                giver, edge = step
                del held[giver][edge]
                held[node][edge] = giver
                node = giver
            load[node] -= 1
            return True
        new = {other: (node, edge) for edge, other in held[node].items() if other not in via}
        via.update(new)
        queue += new
    return False


def as_numbers(value: Any) -> Tensor:
    """A tensor of the numbers that were given; Python's own floats, which torch would shorten, stay as they are."""
    return value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))


def _able_to_hold(values: Tensor, new: Tensor) -> Tensor:
    """The same values as floats, if they are integers and the new ones are not whole: none is ever cut off."""
    whole = not new.is_floating_point() or bool((new == new.round()).all())
    return values if values.is_floating_point() or whole else values.float()


class _Draft:
    """A graph being edited; rows are found by the exact id, since keys may be shared.

    Attributes:
        names: Id of every node, in canonical form.
        given: The same ids as they were given.
        row: Row of every node, by its name.
    """

    def __init__(self, data: Data) -> None:
        self.data = data.clone()
        self.had_ids = getattr(data, "node_id", None) is not None
        encoded = exact_ids(data)
        self.names: list[Id] = encoded.tolist() if isinstance(encoded, np.ndarray) else encoded
        listed = listed_ids(data.node_id) if self.had_ids else encoded
        self.given: list[Any] = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)
        self.row = {name: row for row, name in enumerate(self.names)}
        self.num_deleted = 0
        if self.data.edge_index is None:
            self.data.edge_index = torch.empty(2, 0, dtype=torch.int64)

    def find(self, node: Id) -> int:
        row = self.row.get(encode_id(node))
        if row is None:
            raise IdError(f"the graph has no node with id {node!r}.")
        return row

    def _between(self, u: Id, v: Id, what: str) -> Tensor:
        a, b = self.find(u), self.find(v)
        source, head = self.data.edge_index
        between: Tensor = ((source == a) & (head == b)) | ((source == b) & (head == a))
        if not bool(between.any()):
            raise GraphError(f"cannot {what} the edge ({u!r}, {v!r}): the graph has no such edge.")
        return between

    def change_features(self, changes: Mapping[Id, Sequence[float]]) -> None:
        for node, features in changes.items():
            row = self._row(node, features)
            self.data.x[self.find(node)] = row

    def _row(self, node: Id, features: Any) -> Tensor:
        """Features of a node; the graph's become floats first if they are integers and these are not."""
        row = as_numbers(features)
        width = self.data.x.size(1)
        if row.shape != (width,):
            raise GraphError(f"features of node {node!r} have shape {tuple(row.shape)}, but the graph has {width}.")
        self.data.x = _able_to_hold(self.data.x, row)
        return row.to(self.data.x.dtype)

    def change_edges(self, changes: Sequence[tuple[Id, Id, Any]]) -> None:
        for u, v, value in changes:
            between = self._between(u, v, "change")
            name = next(iter(edge_values_of(self.data)), None)
            if name is not None:
                new = as_numbers(value)
                self.data[name] = _able_to_hold(self.data[name].clone(), new)
                self.data[name][between] = new.to(self.data[name].dtype)
                continue
            if value != int(value) or value < 1:
                raise GraphError(
                    f"cannot give the edge ({u!r}, {v!r}) {value!r} copies: expected a whole number from 1 on."
                )
            arcs = torch.unique(self.data.edge_index[:, between], dim=1).repeat(1, int(value))
            self.data.edge_index = torch.cat([self.data.edge_index[:, ~between], arcs], dim=1)

    def _keep_edges(self, keep: Tensor) -> None:
        for name, value in edge_values_of(self.data).items():
            self.data[name] = value[keep]
        self.data.edge_index = self.data.edge_index[:, keep]

    def delete_edges(self, pairs: Sequence[Pair]) -> None:
        for u, v in pairs:
            self._keep_edges(~self._between(u, v, "delete"))

    def delete_nodes(self, nodes: Sequence[Id]) -> None:
        if not nodes:
            return
        total = len(self.names)
        keep = torch.ones(total, dtype=torch.bool)
        keep[[self.find(n) for n in nodes]] = False
        self._keep_edges(keep[self.data.edge_index].all(0))
        renumber = torch.cumsum(keep, 0) - 1
        self.data.edge_index = renumber[self.data.edge_index]
        self._map_node_values(lambda value: value[keep.to(value.device)], total)
        rows = keep.nonzero().view(-1).tolist()
        self.names, self.given = [self.names[r] for r in rows], [self.given[r] for r in rows]
        self.num_deleted = total - len(rows)
        self._write_ids()

    def inject(self, nodes: Mapping[Id, Sequence[float]]) -> None:
        if not nodes:
            return
        for node, name in zip(nodes, _distinct(nodes), strict=True):
            if name in self.row:
                raise IdError(
                    f"cannot inject a node under the id {node!r}: a living node has it. Delete that node first."
                )
            if not self.had_ids and name != len(self.names) + self.num_deleted:
                raise IdError(
                    f"cannot inject a node under the id {node!r}: the graph has no node_id, so row numbers are the ids "
                    f"and the next one is {len(self.names) + self.num_deleted}. Use that, or give the graph ids."
                )
            self.names.append(name)
            self.given.append(node)
        total, new = self.data.x.size(0), len(nodes)
        rows = [self._row(node, features) for node, features in nodes.items()]
        features = torch.stack([row.to(self.data.x.dtype) for row in rows])

        def grown(value: Tensor) -> Tensor:
            fill = False if value.dtype == torch.bool else -1
            return torch.cat([value, torch.full((new, *value.shape[1:]), fill, dtype=value.dtype)])

        x = torch.cat([self.data.x, features])
        self._map_node_values(grown, total)
        self.data.x = x
        self._write_ids()

    def _map_node_values(self, change: Callable[[Tensor], Tensor], total: int) -> None:
        for name, value in self.data.to_dict().items():
            of_nodes = isinstance(value, Tensor) and value.dim() > 0 and value.size(0) == total
            if of_nodes and name not in ("edge_index", "node_id", *EDGE_VALUES):
                self.data[name] = change(value)

    def _write_ids(self) -> None:
        self.row = {name: row for row, name in enumerate(self.names)}
        # Without ids the row number is a node's identity, so a deletion renames all later nodes: a reason to give ids.
        if self.had_ids:
            whole = all(isinstance(i, (int, np.integer)) and int(i) in INT64 for i in self.given)
            self.data.node_id = torch.tensor(self.names, dtype=torch.int64) if whole else self.given.copy()

    def add_edges(self, pairs: Sequence[Pair], directed: bool, values: Mapping[str, Any]) -> None:
        if not pairs:
            return
        present = set(zip(*self.data.edge_index.tolist(), strict=True))
        arcs: list[tuple[int, int]] = []
        for u, v in pairs:
            a, b = self.find(u), self.find(v)
            new = ({(a, b)} if directed else {(a, b), (b, a)}) - present
            if not new:
                raise GraphError(f"cannot add the edge ({u!r}, {v!r}): it is there already.")
            arcs += sorted(new)
            present |= new
        self.data.edge_index = torch.cat([self.data.edge_index, torch.tensor(arcs).t()], dim=1)
        for name, known in edge_values_of(self.data).items():
            ones = torch.ones(known.shape[1:], dtype=known.dtype)
            value = as_numbers(values[name]) if name in values else ones
            if value.shape != ones.shape:
                raise GraphError(
                    f"{name} of added edges has shape {tuple(value.shape)}, but the graph's has {tuple(ones.shape)}."
                )
            able = _able_to_hold(known, value)
            rows = value.to(able.dtype).expand(len(arcs), *value.shape)
            self.data[name] = torch.cat([able, rows])
