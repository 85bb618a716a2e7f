"""``Perturbation``: a concrete attack, in node ids. It can be applied to a graph, and knows what it costs."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import INT64, Id, encode_id, encode_ids, order_of
from agnncert.errors import GraphError, IdError
from agnncert.graphs.between import differences
from agnncert.graphs.graph import EDGE_VALUES, CanonicalGraph, edge_values_of
from agnncert.graphs.hashing import id_keys, refuse_duplicates
from agnncert.graphs.node_ids import exact_ids, listed_ids

Pair = tuple[Id, Id]
_OtherEnds = defaultdict[Id, dict[int, Id]]  # which edges a node brings, with the other end of each


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
        """Returns the smallest budget that allows this attack.

        No target is known here, so ``target_features`` is not set.
        """
        injected = set(_distinct(self.inject_nodes))
        injected_ends = []
        for pair in distinct_pairs(self.add_edges):
            injected_ends.append([node for node in dict.fromkeys(pair) if node in injected])
        spent = Budget(
            add_edges=injected_ends.count([]),
            delete_edges=len(distinct_pairs(self.delete_edges)),
            change_edges=len(distinct_pairs([(u, v) for u, v, _ in self.change_edges])),
            inject_nodes=len(injected),
            delete_nodes=len(_distinct(self.delete_nodes)),
            change_features=len(_distinct(self.change_features)),
        )
        if not injected:
            return spent
        return spent.but(edges_per_injected=least_load([nodes for nodes in injected_ends if nodes]))

    @classmethod
    def between(cls, clean: Data, attacked: Data) -> "Perturbation":
        """Returns what an attacker changed between two graphs.

        Nodes with the same id are one node. Graphs without ``node_id`` are compared row by row, and new nodes come
        last. Only the graph is compared: features, nodes and edges with their values, not labels or splits.

        Args:
            clean: The graph as it was.
            attacked: The graph as somebody published it, with the same ids or in the same order of rows.

        Raises:
            GraphError: One of them is no graph with features, or they differ by what no perturbation does: a pair that
                loses one of two directions, or added edges with different values.
            IdError: Only one of the graphs has ids, or nodes are gone from graphs without ids.

        Example: ``certificate.holds_against(ac.Perturbation.between(data, attacked))``.
        """
        found = differences(clean, attacked)
        return cls(**vars(found))

    def cost_at(self, target: Id) -> Budget | None:
        """Returns the smallest budget for what this attack does to one node and its edges.

        Edges count if they are at the node, and injected nodes if they are joined to it. Who its neighbours are is not
        known here, so all deleted nodes and all changed features count.

        Returns:
            The budget; ``None`` if the node itself is deleted.
        """
        return self.costs_at([target])[0]

    def costs_at(self, targets: Iterable[Id], *, anywhere: bool = False) -> list[Budget | None]:
        """Returns :meth:`cost_at` of many nodes.

        Args:
            targets: Their ids.
            anywhere: Whether edges and injected nodes count wherever they are. Defaults to False.
        """
        total = self.cost()
        touched = _CountsAt(self)
        return [touched.cost(encode_id(target), total, anywhere) for target in targets]

    def apply(self, data: Data) -> Data:
        """Returns the attacked graph: surviving nodes in their order, then the injected ones.

        Injected nodes get the label −1 and are in no split.

        Raises:
            GraphError: The data is no graph with features, or the change does not fit it.
            IdError: The change names a node that the graph does not have, or injects one that it has.
        """
        if isinstance(data, CanonicalGraph):
            raise GraphError(
                "this graph is in canonical form, without its ids: apply the change to the graph it was made from."
            )
        if not isinstance(data, Data) or data.x is None:
            problem = "it has no node features x" if isinstance(data, Data) else f"got a {type(data).__name__}"
            raise GraphError(f"a change is applied to one torch_geometric Data with features: {problem}.")
        draft = _Draft(data)
        draft.change_features(self.change_features)
        draft.change_edges(self.change_edges)
        draft.delete_edges(self.delete_edges)
        draft.delete_nodes(self.delete_nodes)
        draft.inject(self.inject_nodes)
        draft.add_edges(self.add_edges, self.directed, self.added_values)
        return draft.data


class _CountsAt:
    """How many changes of each kind touch each node that a perturbation names."""

    def __init__(self, change: Perturbation) -> None:
        self.injected = set(_distinct(change.inject_nodes))
        self.deleted = set(_distinct(change.delete_nodes))
        self.altered = set(_distinct(change.change_features))
        self.added: Counter[Id] = Counter()
        self.new_nodes: Counter[Id] = Counter()
        for pair in distinct_pairs(change.add_edges):
            counted = self.new_nodes if self.injected & set(pair) else self.added
            counted.update(set(pair))
        self.lost: Counter[Id] = Counter()
        for pair in distinct_pairs(change.delete_edges):
            self.lost.update(set(pair))
        self.changed: Counter[Id] = Counter()
        for pair in distinct_pairs([(u, v) for u, v, _ in change.change_edges]):
            self.changed.update(set(pair))

    def cost(self, target: Id, total: Budget, anywhere: bool) -> Budget | None:
        """Returns the smallest budget for what is done to a node, of all that is done."""
        if target in self.deleted:
            return None
        own = target in self.altered
        cost = total.but(change_features=total.change_features - own, target_features=own)
        if anywhere:
            return cost
        new_nodes = self.new_nodes[target]
        return cost.but(
            add_edges=self.added[target],
            delete_edges=self.lost[target],
            change_edges=self.changed[target],
            inject_nodes=new_nodes,
            edges_per_injected=1 if new_nodes else math.inf,
        )


def keys_of(ids: Iterable[Id]) -> list[int]:
    """Returns the keys of some ids, as Python integers (the bits of an int64).

    Keys decide groups. Two nodes may share one.
    """
    listed = list(ids)
    return id_keys(listed).view(np.int64).tolist() if listed else []


def distinct_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Returns distinct unordered pairs of ids in canonical form, in order of appearance."""
    encoded = {node: encode_id(node) for pair in pairs for node in pair}  # 7 and "7" may both be used for one node
    distinct: dict[Pair, None] = {}
    for u, v in pairs:
        first, second = sorted((encoded[u], encoded[v]), key=order_of)
        distinct[first, second] = None
    return list(distinct)


def pair_keys(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Returns distinct unordered pairs as pairs of keys, smaller key first.

    Pairs of other nodes may have the same keys.
    """
    distinct = distinct_pairs(pairs)
    nodes = list(dict.fromkeys(node for pair in distinct for node in pair))
    key = dict(zip(nodes, keys_of(nodes), strict=True))
    return [(min(key[u], key[v]), max(key[u], key[v])) for u, v in distinct]


def _distinct(ids: Iterable[Id]) -> list[Id]:
    """Returns ids in canonical form; an id that is given twice is refused."""
    encoded = encode_ids(list(ids))
    refuse_duplicates(encoded)
    return encoded.tolist() if isinstance(encoded, np.ndarray) else encoded


def least_load(injected_ends: list[list[Id]]) -> int:
    """Returns the most edges that one injected node brings, if edges between two of them are shared evenly.

    Args:
        injected_ends: The ends of each added edge that are injected nodes, one or two.
    """
    load = Counter(nodes[0] for nodes in injected_ends if len(nodes) == 1)
    other_end: _OtherEnds = defaultdict(dict)
    for edge, (first, second) in enumerate(nodes for nodes in injected_ends if len(nodes) == 2):
        node, other = (first, second) if load[first] <= load[second] else (second, first)
        other_end[node][edge] = other
        load[node] += 1
    while _hand_on(other_end, load):
        pass
    return max(load.values(), default=0)


def _hand_on(other_end: _OtherEnds, load: Counter[Id]) -> bool:
    """Takes one edge from a node that has the most, if possible. Returns whether it did.

    Along a path from such a node to a node with at least two edges fewer, each edge is given to its other end.
    """
    most = max(load.values(), default=0)
    path_back: dict[Id, tuple[Id, int] | None] = {node: None for node in load if load[node] == most}
    queue = list(path_back)
    for node in queue:
        if load[node] < most - 1:
            _give_along(path_back, node, other_end, load)
            return True
        for edge, other in other_end[node].items():
            if other not in path_back:
                path_back[other] = (node, edge)
                queue.append(other)
    return False


def _give_along(path_back: dict[Id, tuple[Id, int] | None], node: Id, other_end: _OtherEnds, load: Counter[Id]) -> None:
    """Gives each edge of a path to its other end, so that the last node has one more and the first one less.

    Args:
        path_back: For each node of the path, the node before it and the edge between them; ``None`` for the first.
        node: The last node of the path.
        other_end: Which edges each node brings, with the other end of each.
        load: How many edges each node brings.
    """
    load[node] += 1
    while (step := path_back[node]) is not None:
        giver, edge = step
        del other_end[giver][edge]
        other_end[node][edge] = giver
        node = giver
    load[node] -= 1


def as_numbers(value: ArrayLike | Tensor) -> Tensor:
    """Returns a tensor of numbers; Python's own floats, which torch would shorten, stay as they are."""
    return value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))


def _able_to_hold(values: Tensor, new: Tensor) -> Tensor:
    """Returns values as floats if they are integers and the new ones are not whole: none is ever cut off."""
    if values.is_floating_point() or not new.is_floating_point():
        return values
    return values if bool((new == new.round()).all()) else values.float()


class _Draft:
    """A graph being edited; rows are found by the exact id, since keys may be shared.

    Attributes:
        data: The graph as it is now.
        had_ids: Whether it had a ``node_id`` at first.
        names: Id of every node, in canonical form.
        given_ids: The same ids as they were given.
        row: Row of every node, by its name.
        num_deleted: Number of nodes that were deleted.
    """

    def __init__(self, data: Data) -> None:
        self.data = data.clone()
        self.had_ids = getattr(data, "node_id", None) is not None
        encoded = exact_ids(data)
        self.names: list[Id] = encoded.tolist() if isinstance(encoded, np.ndarray) else encoded
        listed = listed_ids(data.node_id) if self.had_ids else encoded
        self.given_ids: list[Any] = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)
        self.row = {name: row for row, name in enumerate(self.names)}
        self.num_deleted = 0
        if self.data.edge_index is None:
            self.data.edge_index = torch.empty(2, 0, dtype=torch.int64)

    def find(self, node: Id) -> int:
        """Returns the row of a node."""
        row = self.row.get(encode_id(node))
        if row is None:
            raise IdError(f"the graph has no node with id {node!r}.")
        return row

    def _between(self, u: Id, v: Id, what: str) -> Tensor:
        """Returns a mask of the edges between two nodes, in both directions; there is at least one."""
        row_u = self.find(u)
        row_v = self.find(v)
        source, head = self.data.edge_index
        between: Tensor = ((source == row_u) & (head == row_v)) | ((source == row_v) & (head == row_u))
        if not bool(between.any()):
            raise GraphError(f"cannot {what} the edge ({u!r}, {v!r}): the graph has no such edge.")
        return between

    def change_features(self, changes: Mapping[Id, Sequence[float]]) -> None:
        for node, features in changes.items():
            row = self._row(node, features)
            self.data.x[self.find(node)] = row

    def _row(self, node: Id, features: Any) -> Tensor:
        """Returns the features of a node; the graph's become floats first if they are integers and these are not."""
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
        self.names = [self.names[row] for row in rows]
        self.given_ids = [self.given_ids[row] for row in rows]
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
            self.given_ids.append(node)
        rows = [self._row(node, features) for node, features in nodes.items()]
        x = torch.cat([self.data.x, torch.stack([row.to(self.data.x.dtype) for row in rows])])

        def grown(value: Tensor) -> Tensor:
            fill = False if value.dtype == torch.bool else -1
            return torch.cat([value, torch.full((len(nodes), *value.shape[1:]), fill, dtype=value.dtype)])

        self._map_node_values(grown, self.data.x.size(0))
        self.data.x = x
        self._write_ids()

    def _map_node_values(self, change: Callable[[Tensor], Tensor], total: int) -> None:
        """Changes every tensor of the data that has one row for each of ``total`` nodes."""
        for name, value in self.data.to_dict().items():
            of_nodes = isinstance(value, Tensor) and value.dim() > 0 and value.size(0) == total
            if of_nodes and name not in ("edge_index", "node_id", *EDGE_VALUES):
                self.data[name] = change(value)

    def _write_ids(self) -> None:
        self.row = {name: row for row, name in enumerate(self.names)}
        # Without ids the row number is a node's identity, so a deletion renames all later nodes: a reason to give ids.
        if self.had_ids:
            if all(isinstance(i, (int, np.integer)) and int(i) in INT64 for i in self.given_ids):
                self.data.node_id = torch.tensor(self.names, dtype=torch.int64)
            else:
                self.data.node_id = self.given_ids.copy()

    def add_edges(self, pairs: Sequence[Pair], directed: bool, values: Mapping[str, Any]) -> None:
        if not pairs:
            return
        present = set(zip(*self.data.edge_index.tolist(), strict=True))
        arcs: list[tuple[int, int]] = []
        for u, v in pairs:
            row_u = self.find(u)
            row_v = self.find(v)
            wanted = {(row_u, row_v)} if directed else {(row_u, row_v), (row_v, row_u)}
            new = wanted - present
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
