"""The node-centric division: all edges that leave a node go to the group of its id."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agnncert.divisions.base import (
    DisjointUnion,
    check_settings,
    disjoint_union,
    is_graph_task,
    is_per_neighbour,
    num_groups_in,
    number_within,
    require_covered,
    stable_order,
    touched_nodes,
    touched_pairs,
)
from agnncert.errors import DivisionError
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, node_keys
from agnncert.graphs.perturbation import Perturbation


@dataclass(frozen=True)
class NodeCentric:
    """Every node's outgoing edges go to the group of that node (paper, section 3.3).

    One edge or one node touched, whatever its degree, moves at most one ballot of a target.

    Attributes:
        num_groups: Number of subgraphs T. With ``math.inf`` every node has a group of its own: a target casts one
            ballot for each neighbour that sends it messages, and a graph one for each node, whatever the hash.
        hash: "md5", "sha1", "sha256" or "blake2b".
        gate_features: Node task only: a subgraph shows the features of its own group's nodes alone. This
            protects the target's own features too, at the price of at most degree + 1 ballots per target.
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    num_groups: Any  # a whole number, or math.inf
    hash: str = "md5"
    gate_features: bool = False
    self_loops: bool = False

    rule: ClassVar[str] = "node-centric"

    def __post_init__(self) -> None:
        if not is_per_neighbour(self):
            check_settings(self, "num_groups")
        elif self.gate_features or self.self_loops:
            raise DivisionError(
                "NodeCentric(num_groups=math.inf) takes neither gate_features nor self_loops: a ballot shows the "
                "target and one neighbour, and a self-loop at that neighbour would let an edge elsewhere alter it."
            )

    def __str__(self) -> str:
        if is_per_neighbour(self):
            return "node-centric(T=inf)"
        loops = ", self-loops kept" if self.self_loops else ""
        gated = ", gated features" if self.gate_features else ""
        return f"node-centric(T={self.num_groups}, hash={self.hash}, key=u64le{gated}{loops})"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every node, shape ``[num_nodes]``; its row in its graph if every node has its own."""
        if is_per_neighbour(self):
            return number_within(graph, torch.arange(graph.num_nodes))
        keys = node_keys(graph).numpy().view(np.uint64)
        return torch.from_numpy(hashing.node_groups(keys, self.num_groups, self.hash))

    def groups_in(self, graph: CanonicalGraph) -> int:
        """Number of nodes of the graph, or of the largest one of a set: as many groups there are with ``math.inf``."""
        return int(self.node_groups(graph).max()) + 1 if graph.num_nodes else 1

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of the node each edge comes from; in the graph task −1 when its two ends differ in group."""
        of_node = self.node_groups(graph)
        source, head = of_node[graph.edge_index]
        return torch.where(source == head, source, -1) if is_graph_task(graph) else source

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Edges that leave the nodes of one group; in the graph task just those nodes and the edges between them."""
        inside = groups == index
        if is_graph_task(graph):
            return graph.with_nodes((self.node_groups(graph) == index).nonzero().view(-1), inside)
        part = graph.with_edges(inside)
        if self.gate_features:
            own = self.node_groups(graph) == index
            has_edge = torch.zeros_like(own)
            has_edge[part.edge_index[1]] = True
            part = replace(part.with_features_of(own), abstain=~(own | has_edge))
        return part

    def pieces(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """The disjoint union of all subgraphs, or of some.

        Args:
            graph: The graph.
            groups: Group of every edge.
            edges: Positions of the edges of some groups, if these are not all; ``groups`` is then about these edges.
            within: The groups that these are.
        """
        if is_graph_task(graph):
            return self._graph_pieces(graph, groups, edges, within)
        own = self.node_groups(graph) if self.gate_features else None
        copies = None
        if own is not None:
            at_home = _within(own, within)
            copies = own[at_home] * graph.num_nodes + at_home
        cell, node, edge_index, edge = disjoint_union(graph, groups, copies, edges)
        has_edge = torch.zeros_like(cell, dtype=torch.bool)
        has_edge[edge_index[1]] = True
        if own is None:
            return DisjointUnion(cell, node, edge_index, edge, votes=has_edge, reached=has_edge)
        home = own[node] == cell
        return DisjointUnion(cell, node, edge_index, edge, votes=has_edge | home, reached=has_edge, blank=~home)

    def _graph_pieces(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None, within: range | None
    ) -> DisjointUnion:
        of_node = self.node_groups(graph)
        cell_of_node = graph.graph_of_node * num_groups_in(self, graph) + of_node
        nodes = _within(of_node, within)
        node = nodes[stable_order(cell_of_node[nodes])]
        position = torch.full_like(cell_of_node, -1)
        position[node] = torch.arange(len(node))
        kept = (groups >= 0).nonzero().view(-1)
        kept = kept if edges is None else edges[kept].long()
        edge = kept[stable_order(cell_of_node[graph.edge_index[0, kept]])]
        cell = cell_of_node[node]
        _, where, sizes = torch.unique_consecutive(cell, return_inverse=True, return_counts=True)
        # A lone node has no edge to lose or gain, unless it may be joined to itself.
        reached = sizes[where] >= (1 if self.self_loops or is_per_neighbour(self) else 2)
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return DisjointUnion(cell, node, position[graph.edge_index[:, edge]], edge, votes=everyone, reached=reached)

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Groups whose ballot ``change`` can alter for ``target``."""
        require_covered(change, graph, target, target_features=self.gate_features)
        own_key = None if target is None else int(node_keys(graph)[target])
        nodes, pairs = touched_nodes(change), touched_pairs(change)
        if is_per_neighbour(self):  # rows move when nodes are deleted, so a group is named by the key of its node
            return nodes | {v if own_key == u else u for u, v in pairs if own_key in (u, v)}
        keys = [*nodes, *(key for pair in pairs for key in pair)]
        hashed = hashing.node_groups(np.array(keys, dtype=np.int64).view(np.uint64), self.num_groups, self.hash)
        group = dict(zip(keys, hashed.tolist(), strict=True))
        moved = {group[key] for key in nodes}
        for u, v in pairs:
            # Across groups, u -> v alters only v's ballot in u's group, and v -> u only u's ballot in v's group.
            if group[u] == group[v]:
                moved.add(group[u])
            elif own_key in (u, v):
                moved.add(group[v if own_key == u else u])
        return moved

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Number of distinct groups the change touches for this target (paper, Theorems 7 to 10)."""
        return len(self.moved_groups(change, graph, target))


def _within(groups: Tensor, wanted: range | None) -> Tensor:
    """Positions of the nodes whose group is wanted."""
    if wanted is None:
        return torch.arange(len(groups))
    return ((groups >= wanted.start) & (groups < wanted.stop)).nonzero().view(-1)
