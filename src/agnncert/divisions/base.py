"""Divisions: a graph split into ``num_groups`` subgraphs so that a small change reaches few of them.

``EdgeCentric`` puts every edge into the group of its pair of ids; ``NodeCentric`` puts all outgoing edges of
a node into the group of its id. Groups depend on ids alone, so whatever an attacker does elsewhere leaves
them where they are.
"""

import re
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import DivisionError, NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import EDGE_VALUES, Task, node_keys
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys


@runtime_checkable
class Division(Protocol):
    """What ``certify`` asks of a division; a user's own needs nothing more.

    A user's division may also state ``unit_costs``, a mapping from a field of ``Budget`` to the ballots that
    one unit of it moves at most; budgets with other fields are then refused. If many of its subgraphs are
    alike, ``same_as(graph, groups)`` may name for each the first that is the very same graph, shape
    ``[num_groups]``; the fast engine evaluates only those.
    """

    @property
    def num_groups(self) -> int:
        """Number of subgraphs T."""

    def groups(self, graph: Data) -> Tensor:
        """Group of every directed edge, shape ``[num_edges]``; −1 for an edge in no subgraph. Depends on ids
        only.
        """

    def subgraph(self, graph: Data, groups: Tensor, index: int) -> Data:
        """What the model sees when casting ballot ``index``.

        In the node task all nodes stay, in their order, and ``abstain`` may mark nodes that cast no ballot
        here. In the graph task (``graph.task == "graph"``) nodes may be dropped; a subgraph without nodes
        casts no ballot.
        """

    def votes_moved(self, change: Perturbation, graph: Data, target: int | None) -> int:
        """Upper bound on the ballots of ``target`` (a row; ``None`` in the graph task) that ``change`` can
        alter.

        Raises:
            NotCovered: ``change`` touches something this division proves nothing about.
        """


@dataclass(frozen=True)
class Pieces:
    """All subgraphs at once: their disjoint union, without nodes that no edge of theirs reaches.

    ``p`` copies of nodes and ``m`` edges, ordered by cell. A *cell* is one subgraph: its group in the node
    task, ``graph * num_groups + group`` in the graph task.

    Attributes:
        cell: Subgraph of each copy, ascending, shape ``[p]``.
        node: Which node it is a copy of, shape ``[p]``.
        edge_index: Edges between copies, shape ``[2, m]``.
        edge: Which edge of the graph each one is, shape ``[m]``.
        votes: Whether the copy casts a ballot that may differ from the node's default, shape ``[p]``.
        reached: Whether the node has an edge there that counts for it, shape ``[p]``.
        blank: Whether the copy's features are hidden, shape ``[p]``, or ``None`` if none are.
    """

    cell: Tensor
    node: Tensor
    edge_index: Tensor
    edge: Tensor
    votes: Tensor
    reached: Tensor
    blank: Tensor | None = None


@dataclass(frozen=True)
class EdgeCentric:
    """Every edge goes to the group of its unordered pair of ids (paper, section 3.2).

    One edge touched moves at most one ballot; an injected node moves one per edge it brings.

    Attributes:
        num_groups: Number of subgraphs T.
        hash: "md5", "sha1", "sha256" or "blake2b".
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    num_groups: int
    hash: str = "md5"
    self_loops: bool = False

    def __post_init__(self) -> None:
        hashing.check_settings(self.num_groups, self.hash)
        object.__setattr__(self, "num_groups", int(self.num_groups))  # numpy's integers print otherwise

    def __str__(self) -> str:
        return f"edge-centric(T={self.num_groups}, hash={self.hash}, key=u64le{_loops(self)})"

    def groups(self, graph: Data) -> Tensor:
        """Group of every directed edge; both directions of a pair share it."""
        keys = node_keys(graph)[graph.edge_index].numpy().view(np.uint64)
        return torch.from_numpy(hashing.edge_groups(keys[0], keys[1], self.num_groups, self.hash))

    def subgraph(self, graph: Data, groups: Tensor, index: int) -> Data:
        """Edges of one group; in the graph task only their endpoints stay, so that no silent node is read
        out.
        """
        inside = groups == index
        if not is_graph_task(graph):
            return _with_edges(graph, inside)
        return _induced(graph, torch.unique(graph.edge_index[:, inside]), inside)

    def pieces(self, graph: Data, groups: Tensor) -> Pieces:
        """The disjoint union of all subgraphs."""
        cells = groups
        if is_graph_task(graph):
            cells = graph.batch[graph.edge_index[0]] * self.num_groups + groups
        cell, node, edge_index, edge = _union(graph, cells)
        # An endpoint counts whichever way the edge points: a model that also reads outgoing edges is then covered.
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return Pieces(cell, node, edge_index, edge, votes=everyone, reached=everyone)

    def moved_groups(self, change: Perturbation, graph: Data, target: int | None) -> set[int]:
        """Groups whose ballot ``change`` can alter: those of touched edges and of all edges of touched
        nodes.
        """
        _require_covered(change, graph, target, own_features=False)
        nodes, keys = _touched_nodes(change), node_keys(graph)
        at_nodes = torch.isin(keys, torch.tensor(sorted(nodes), dtype=torch.int64))[graph.edge_index].any(0)
        moved = set(self.groups(graph)[at_nodes].tolist())
        pairs = _touched_pairs(change)
        return moved | set(self._pair_groups(pairs))

    def _pair_groups(self, pairs: list[tuple[int, int]]) -> list[int]:
        if not pairs:
            return []
        keys = np.array(pairs, dtype=np.int64).view(np.uint64)
        groups = hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), self.num_groups, self.hash)
        return [int(group) for group in groups]

    def votes_moved(self, change: Perturbation, graph: Data, target: int | None) -> int:
        """Number of distinct groups the change touches (paper, Theorems 2 to 5)."""
        return len(self.moved_groups(change, graph, target))


@dataclass(frozen=True)
class NodeCentric:
    """Every node's outgoing edges go to the group of that node (paper, section 3.3).

    One edge or one node touched, whatever its degree, moves at most one ballot of a target.

    Attributes:
        num_groups: Number of subgraphs T.
        hash: "md5", "sha1", "sha256" or "blake2b".
        gate_features: Node task only: a subgraph shows the features of its own group's nodes alone. This
            protects the target's own features too, at the price of at most degree + 1 ballots per target.
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    num_groups: int
    hash: str = "md5"
    gate_features: bool = False
    self_loops: bool = False

    def __post_init__(self) -> None:
        hashing.check_settings(self.num_groups, self.hash)
        object.__setattr__(self, "num_groups", int(self.num_groups))  # numpy's integers print otherwise

    def __str__(self) -> str:
        gated = ", gated features" if self.gate_features else ""
        return f"node-centric(T={self.num_groups}, hash={self.hash}, key=u64le{gated}{_loops(self)})"

    def node_groups(self, graph: Data) -> Tensor:
        """Group of every node, shape ``[num_nodes]``."""
        keys = node_keys(graph).numpy().view(np.uint64)
        return torch.from_numpy(hashing.node_groups(keys, self.num_groups, self.hash))

    def groups(self, graph: Data) -> Tensor:
        """Group of the node each edge comes from; in the graph task −1 when its two ends differ in group."""
        of_node = self.node_groups(graph)
        source, head = of_node[graph.edge_index]
        return torch.where(source == head, source, -1) if is_graph_task(graph) else source

    def subgraph(self, graph: Data, groups: Tensor, index: int) -> Data:
        """Edges that leave the nodes of one group; in the graph task just those nodes and the edges between
        them.
        """
        inside = groups == index
        if is_graph_task(graph):
            return _induced(graph, (self.node_groups(graph) == index).nonzero().view(-1), inside)
        part = _with_edges(graph, inside)
        if self.gate_features:
            own = self.node_groups(graph) == index
            part.x = torch.where(own[:, None], graph.x, torch.zeros((), dtype=graph.x.dtype))
            has_edge = torch.zeros_like(own)
            has_edge[part.edge_index[1]] = True
            part.abstain = ~(own | has_edge)
        return part

    def pieces(self, graph: Data, groups: Tensor) -> Pieces:
        """The disjoint union of all subgraphs."""
        own = self.node_groups(graph) if is_graph_task(graph) or self.gate_features else None
        if is_graph_task(graph):
            assert own is not None
            return self._graph_pieces(graph, groups, graph.batch * self.num_groups + own)
        copies = None if own is None else own * graph.num_nodes + torch.arange(graph.num_nodes)
        cell, node, edge_index, edge = _union(graph, groups, copies)
        has_edge = torch.zeros_like(cell, dtype=torch.bool)
        has_edge[edge_index[1]] = True
        if own is None:
            return Pieces(cell, node, edge_index, edge, votes=has_edge, reached=has_edge)
        at_home = own[node] == cell
        return Pieces(cell, node, edge_index, edge, votes=has_edge | at_home, reached=has_edge, blank=~at_home)

    def _graph_pieces(self, graph: Data, groups: Tensor, cell_of_node: Tensor) -> Pieces:
        node = torch.argsort(cell_of_node, stable=True)
        position = torch.empty_like(node)
        position[node] = torch.arange(len(node))
        kept = (groups >= 0).nonzero().view(-1)
        edge = kept[torch.argsort(cell_of_node[graph.edge_index[0, kept]], stable=True)]
        cell = cell_of_node[node]
        _, where, sizes = torch.unique_consecutive(cell, return_inverse=True, return_counts=True)
        # A lone node has no edge to lose or gain, unless it may be joined to itself.
        reached = sizes[where] >= (1 if self.self_loops else 2)
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return Pieces(cell, node, position[graph.edge_index[:, edge]], edge, votes=everyone, reached=reached)

    def moved_groups(self, change: Perturbation, graph: Data, target: int | None) -> set[int]:
        """Groups whose ballot ``change`` can alter for ``target``."""
        _require_covered(change, graph, target, own_features=self.gate_features)
        own_key = None if target is None else int(node_keys(graph)[target])
        nodes, pairs = _touched_nodes(change), _touched_pairs(change)
        group = self._groups_of([*nodes, *(key for pair in pairs for key in pair)])
        moved = {group[key] for key in nodes}
        for u, v in pairs:
            # Across groups, u -> v alters only v's ballot in u's group, and v -> u only u's ballot in v's group.
            if group[u] == group[v]:
                moved.add(group[u])
            elif own_key in (u, v):
                moved.add(group[v if own_key == u else u])
        return moved

    def _groups_of(self, keys: list[int]) -> dict[int, int]:
        hashed = hashing.node_groups(np.array(keys, dtype=np.int64).view(np.uint64), self.num_groups, self.hash)
        return dict(zip(keys, hashed.tolist(), strict=True))

    def votes_moved(self, change: Perturbation, graph: Data, target: int | None) -> int:
        """Number of distinct groups the change touches for this target (paper, Theorems 7 to 10)."""
        return len(self.moved_groups(change, graph, target))


def rule_of(division: Division, task: Task) -> tuple[str, dict[str, int]]:
    """Which theorem speaks about a division, and the numbers it needs."""
    if isinstance(division, EdgeCentric):
        return f"edge-centric/{task}", {}
    if isinstance(division, NodeCentric):
        return ("gated/node" if division.gate_features and task == "node" else f"node-centric/{task}"), {}
    if hasattr(division, "rule"):
        return f"{division.rule}/{task}", dict(getattr(division, "parameters", {}))
    return f"custom/{task}", dict(getattr(division, "unit_costs", {}))


def parse_division(text: str) -> EdgeCentric | NodeCentric:
    """The built-in division that prints as ``text``.

    Raises:
        DivisionError: It is a user's own, or of a version that hashes otherwise.

    Example:
        >>> parse_division("node-centric(T=60, hash=sha1, key=u64le)")
        NodeCentric(num_groups=60, hash='sha1', gate_features=False, self_loops=False)
    """
    found = re.fullmatch(
        r"(edge|node)-centric\(T=(\d+), hash=(\w+), key=u64le(, gated features)?(, self-loops kept)?\)", text
    )
    if found is None or (found[1] == "edge" and found[4]):
        raise DivisionError(f'cannot rebuild the division "{text}": it is not one of the built-in ones.')
    if found[1] == "edge":
        return EdgeCentric(int(found[2]), found[3], self_loops=bool(found[5]))
    return NodeCentric(int(found[2]), found[3], gate_features=bool(found[4]), self_loops=bool(found[5]))


def is_graph_task(graph: Data) -> bool:
    """Whether ``graph`` (checked) belongs to a graph classification task."""
    return getattr(graph, "task", "node") == "graph"


def _loops(division: EdgeCentric | NodeCentric) -> str:
    return ", self-loops kept" if division.self_loops else ""


def _with_edges(graph: Data, inside: Tensor) -> Data:
    part = Data(x=graph.x, edge_index=graph.edge_index[:, inside])
    for name in EDGE_VALUES:
        if name in graph:
            part[name] = graph[name][inside]
    return part


def _induced(graph: Data, nodes: Tensor, inside: Tensor) -> Data:
    part = _with_edges(graph, inside)
    position = torch.full((graph.num_nodes,), -1, dtype=torch.int64)
    position[nodes] = torch.arange(len(nodes))
    part.x, part.edge_index = graph.x[nodes], position[part.edge_index]
    return part


def _union(graph: Data, cells: Tensor, copies: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Copies the endpoints of every edge into the edge's cell; ``copies`` (cell * num_nodes + node) are
    added.
    """
    edge = torch.argsort(cells, stable=True)
    ends = cells[edge] * graph.num_nodes + graph.edge_index[:, edge]
    wanted = ends.view(-1) if copies is None else torch.cat([ends.view(-1), copies])
    copy, where = torch.unique(wanted, return_inverse=True)
    cell = torch.div(copy, graph.num_nodes, rounding_mode="floor")
    return cell, copy - cell * graph.num_nodes, where[: ends.numel()].view(2, -1), edge


def _touched_nodes(change: Perturbation) -> set[int]:
    return {*keys_of(change.inject_nodes), *keys_of(change.delete_nodes), *keys_of(change.change_features)}


def _touched_pairs(change: Perturbation) -> list[tuple[int, int]]:
    altered = [(u, v) for u, v, _ in change.change_edges]
    return pair_keys([*change.add_edges, *change.delete_edges, *altered])


def _require_covered(change: Perturbation, graph: Data, target: int | None, own_features: bool) -> None:
    """Raises NotCovered for changes that no division speaks about; ``own_features`` says whether one of the
    target's does.
    """
    if change.delete_nodes and not getattr(graph, "stable_ids", getattr(graph, "node_id", None) is not None):
        raise NotCovered(
            "the change deletes nodes of a graph whose ids are row numbers: all later nodes are renamed. "
            "Give it node_id."
        )
    if target is None:
        return
    own = int(node_keys(graph)[target])
    if own in keys_of(change.delete_nodes):
        raise NotCovered("the change deletes the target itself: no certificate speaks of a node that is gone.")
    if own in keys_of(change.change_features) and not own_features:
        raise NotCovered(
            "the change alters the target's own features, which take part in every ballot of the target. "
            "NodeCentric(gate_features=True) covers this."
        )
