"""``Perturbation``: a concrete attack, in node ids. It can be applied to a graph, and knows what it costs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import GraphError, IdError
from agnncert.graphs.graph import EDGE_VALUES, node_keys, select_edges
from agnncert.graphs.hashing import id_keys
from agnncert.proof.budget import Budget

Id = int | str
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
    """

    add_edges: Sequence[Pair] = ()
    delete_edges: Sequence[Pair] = ()
    change_edges: Sequence[tuple[Id, Id, Any]] = ()
    inject_nodes: Mapping[Id, Sequence[float]] = field(default_factory=dict)
    delete_nodes: Sequence[Id] = ()
    change_features: Mapping[Id, Sequence[float]] = field(default_factory=dict)
    directed: bool = False

    def cost(self) -> Budget:
        """The smallest budget that allows this attack; no target is known here, so ``target_features`` is not set."""
        injected = set(keys_of(self.inject_nodes))
        ends = [[w for w in dict.fromkeys(pair) if w in injected] for pair in pair_keys(self.add_edges)]
        return Budget(
            add_edges=ends.count([]),
            delete_edges=len(pair_keys(self.delete_edges)),
            change_edges=len(pair_keys([(u, v) for u, v, _ in self.change_edges])),
            inject_nodes=len(injected),
            edges_per_injected=_least_load([new for new in ends if new]),
            delete_nodes=len(set(keys_of(self.delete_nodes))),
            change_features=len(set(keys_of(self.change_features))),
        )

    def apply(self, data: Data) -> Data:
        """The attacked graph: surviving nodes in their order, then the injected ones.

        Injected nodes get the label −1 and are in no split.
        """
        draft = _Draft(data)
        draft.change_features(self.change_features)
        draft.change_edges(self.change_edges)
        draft.delete_edges(self.delete_edges)
        draft.delete_nodes(self.delete_nodes)
        draft.inject(self.inject_nodes)
        draft.add_edges(self.add_edges, self.directed)
        return draft.data


def keys_of(ids: Any) -> list[int]:
    """Keys of some ids, as Python integers (the bits of an int64)."""
    listed = list(ids)
    return id_keys(listed).view(np.int64).tolist() if listed else []


def pair_keys(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Distinct unordered pairs as pairs of keys, smaller key first, in order of appearance."""
    known = {w: keys_of([w])[0] for pair in pairs for w in pair}  # one by one: 7 and "7" may both be used for one node
    return list(dict.fromkeys(tuple(sorted((known[u], known[v]))) for u, v in pairs))  # type: ignore[misc]


def _least_load(ends: list[list[int]]) -> int:
    """The most edges that one node brings, if edges between two of these nodes are shared as evenly as possible."""
    load = Counter(nodes[0] for nodes in ends if len(nodes) == 1)
    shared = [nodes for nodes in ends if len(nodes) == 2]
    taker: list[int] = []
    for nodes in shared:
        taker.append(min(nodes, key=load.__getitem__))
        load[taker[-1]] += 1
    while _hand_on(shared, taker, load):
        pass
    return max(load.values(), default=0)


def _hand_on(shared: list[list[int]], taker: list[int], load: Counter[int]) -> bool:
    """Relieves one of the nodes with the most edges, if that is possible; says whether it was.

    Each edge of a chain goes to its other end, from one of these nodes to one that has at least two edges less.
    """
    most = max(load.values(), default=0)
    via: dict[int, int | None] = {node: None for node in load if load[node] == most}
    queue = list(via)
    for node in queue:
        if load[node] < most - 1:
            load[node] += 1
            while (edge := via[node]) is not None:
                taker[edge], node = node, taker[edge]
            load[node] -= 1
            return True
        for edge, nodes in enumerate(shared):
            new = [other for other in nodes if taker[edge] == node and other not in via]
            via.update(dict.fromkeys(new, edge))
            queue += new
    return False


class _Draft:
    """A graph being edited; rows are found by key."""

    def __init__(self, data: Data) -> None:
        self.data = data.clone()
        for derived in ("node_key", "stable_ids", "task", "batch"):
            if derived in self.data:
                del self.data[derived]
        self.had_ids = getattr(data, "node_id", None) is not None
        if getattr(data, "stable_ids", False) and not self.had_ids:
            raise GraphError(
                "this graph is in canonical form, without its ids: apply the change to the graph it was made from."
            )
        self.keys: list[int] = node_keys(data).tolist()
        self.ids: list[Any] = list(np.asarray(data.node_id).tolist()) if self.had_ids else list(range(len(self.keys)))
        self.row = {key: row for row, key in enumerate(self.keys)}
        self.num_deleted = 0
        if self.data.edge_index is None:
            self.data.edge_index = torch.empty(2, 0, dtype=torch.int64)

    def find(self, node: Id) -> int:
        row = self.row.get(keys_of([node])[0])
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
        self.data.x = self.data.x.clone()
        for node, features in changes.items():
            self.data.x[self.find(node)] = torch.as_tensor(features, dtype=self.data.x.dtype)

    def change_edges(self, changes: Sequence[tuple[Id, Id, Any]]) -> None:
        for u, v, value in changes:
            between = self._between(u, v, "change")
            name = next((name for name in EDGE_VALUES if name in self.data), None)
            if name is not None:
                self.data[name] = self.data[name].clone()
                self.data[name][between] = torch.as_tensor(value, dtype=self.data[name].dtype)
                continue
            if value != int(value) or value < 1:
                raise GraphError(
                    f"cannot give the edge ({u!r}, {v!r}) {value!r} copies: expected a whole number from 1 on."
                )
            arcs = torch.unique(self.data.edge_index[:, between], dim=1).repeat(1, int(value))
            self.data.edge_index = torch.cat([self.data.edge_index[:, ~between], arcs], dim=1)

    def _keep_edges(self, keep: Tensor) -> None:
        for name, value in select_edges(self.data, keep).items():
            self.data[name] = value

    def delete_edges(self, pairs: Sequence[Pair]) -> None:
        for u, v in pairs:
            self._keep_edges(~self._between(u, v, "delete"))

    def delete_nodes(self, nodes: Sequence[Id]) -> None:
        if not nodes:
            return
        total = len(self.keys)
        keep = torch.ones(total, dtype=torch.bool)
        keep[[self.find(n) for n in nodes]] = False
        self._keep_edges(keep[self.data.edge_index].all(0))
        renumber = torch.cumsum(keep, 0) - 1
        self.data.edge_index = renumber[self.data.edge_index]
        self._map_node_values(lambda value: value[keep.to(value.device)], total)
        rows = keep.nonzero().view(-1).tolist()
        self.keys, self.ids = [self.keys[r] for r in rows], [self.ids[r] for r in rows]
        self.num_deleted = total - len(rows)
        self._write_ids()

    def inject(self, nodes: Mapping[Id, Sequence[float]]) -> None:
        if not nodes:
            return
        for node, key in zip(nodes, keys_of(nodes), strict=True):
            if key in self.row:
                raise IdError(
                    f"cannot inject a node under the id {node!r}: a living node has it. Delete that node first."
                )
            if not self.had_ids and key != len(self.keys) + self.num_deleted:
                raise IdError(
                    f"cannot inject a node under the id {node!r}: the graph has no node_id, so row numbers are the ids "
                    f"and the next one is {len(self.keys) + self.num_deleted}. Use that, or give the graph ids."
                )
            self.keys.append(key)
            self.ids.append(node)
        total, new = self.data.x.size(0), len(nodes)
        features = torch.stack([torch.as_tensor(f, dtype=self.data.x.dtype) for f in nodes.values()])

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
        self.row = {key: row for row, key in enumerate(self.keys)}
        # Without ids the row number is a node's identity, so a deletion renames all later nodes: a reason to give ids.
        if self.had_ids:
            whole = all(isinstance(i, int) and -(2**63) <= i < 2**63 for i in self.ids)
            self.data.node_id = torch.tensor(self.ids) if whole else [str(i) for i in self.ids]

    def add_edges(self, pairs: Sequence[Pair], directed: bool) -> None:
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
        for name in [name for name in EDGE_VALUES if name in self.data]:
            value = self.data[name]
            self.data[name] = torch.cat([value, torch.ones(len(arcs), *value.shape[1:], dtype=value.dtype)])
