"""Node-centric divisions: all edges that leave a node go to the group of its id."""

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from agnncert.divisions.base import (
    BuiltInDivision,
    DisjointUnion,
    check_settings,
    is_graph_task,
    number_within,
    require_covered,
    stable_order,
    touched_nodes,
    touched_pairs,
    union_of_edges,
)
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task, node_keys
from agnncert.graphs.perturbation import Perturbation


class NodeDivision(BuiltInDivision):
    """What :class:`NodeCentric`, :class:`GatedNodeCentric` and :class:`PerNeighbour` share: nodes have groups."""

    family = "node-centric"
    has_disjoint_union = True

    @abstractmethod
    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every node, shape ``[num_nodes]``."""

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
        return graph.with_edges(inside)

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """The disjoint union of all subgraphs, or of some; arguments as in ``Division``."""
        if is_graph_task(graph):
            return self._graph_union(graph, groups, edges, within)
        cell, node, edge_index, edge = union_of_edges(graph, groups, edges=edges)
        has_edge = torch.zeros_like(cell, dtype=torch.bool)
        has_edge[edge_index[1]] = True
        return DisjointUnion(cell, node, edge_index, edge, votes=has_edge, reached=has_edge)

    def _graph_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None, within: range | None
    ) -> DisjointUnion:
        of_node = self.node_groups(graph)
        cell_of_node = graph.graph_of_node * self.num_groups_in(graph) + of_node
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
        reached = sizes[where] >= (1 if self.self_loops or self.is_per_neighbour else 2)
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return DisjointUnion(cell, node, position[graph.edge_index[:, edge]], edge, votes=everyone, reached=reached)


@dataclass(frozen=True)
class NodeCentric(NodeDivision):
    """Every node's outgoing edges go to the group of that node (paper, section 3.3).

    One edge or one node touched, whatever its degree, moves at most one vote of a target.

    Attributes:
        num_groups: Number of subgraphs T.
        hash: "md5", "sha1", "sha256" or "blake2b".
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    num_groups: int
    hash: str = "md5"
    self_loops: bool = False

    def __post_init__(self) -> None:
        check_settings(self, "num_groups")

    def __str__(self) -> str:
        gated = ", gated features" if self.gates_features else ""
        loops = ", self-loops kept" if self.self_loops else ""
        return f"node-centric(T={self.num_groups}, hash={self.hash}, key=u64le{gated}{loops})"

    def theorem(self, task: Task) -> str:
        """The node-centric theorem of the task."""
        return f"node-centric/{task}"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every node, shape ``[num_nodes]``: the hash of its id."""
        keys = node_keys(graph).numpy().view(np.uint64)
        return torch.from_numpy(hashing.node_groups(keys, self.num_groups, self.hash))

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Groups whose vote ``change`` can alter for ``target``."""
        require_covered(change, graph, target, target_features=self.gates_features)
        own_key = None if target is None else int(node_keys(graph)[target])
        nodes, pairs = touched_nodes(change), touched_pairs(change)
        keys = [*nodes, *(key for pair in pairs for key in pair)]
        hashed = hashing.node_groups(np.array(keys, dtype=np.int64).view(np.uint64), self.num_groups, self.hash)
        group = dict(zip(keys, hashed.tolist(), strict=True))
        moved = {group[key] for key in nodes}
        for u, v in pairs:
            # Across groups, u -> v alters only v's vote in u's group, and v -> u only u's vote in v's group.
            if group[u] == group[v]:
                moved.add(group[u])
            elif own_key in (u, v):
                moved.add(group[v if own_key == u else u])
        return moved


@dataclass(frozen=True)
class GatedNodeCentric(NodeCentric):
    """Node-centric, and a subgraph shows the features of its own group's nodes alone. For the node task.

    This protects the target's own features too, at the price of at most degree + 1 votes per target. Settings as in
    :class:`NodeCentric`. In the graph task, where a subgraph has no other nodes, the division is the node-centric one.
    """

    gates_features = True

    def theorem(self, task: Task) -> str:
        """The theorem for gated features, which is about nodes."""
        return "gated/node" if task == "node" else super().theorem(task)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """As in :class:`NodeCentric`, without features of other groups; nodes of those that have no edge abstain."""
        part = super().subgraph(graph, groups, index)
        if is_graph_task(graph):
            return part
        own = self.node_groups(graph) == index
        has_edge = torch.zeros_like(own)
        has_edge[part.edge_index[1]] = True
        return replace(part.with_features_of(own), abstain=~(own | has_edge))

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """The disjoint union of all subgraphs, or of some; arguments as in ``Division``."""
        if is_graph_task(graph):
            return self._graph_union(graph, groups, edges, within)
        own = self.node_groups(graph)
        at_home = _within(own, within)
        copies = own[at_home] * graph.num_nodes + at_home
        cell, node, edge_index, edge = union_of_edges(graph, groups, copies, edges)
        has_edge = torch.zeros_like(cell, dtype=torch.bool)
        has_edge[edge_index[1]] = True
        home = own[node] == cell
        return DisjointUnion(cell, node, edge_index, edge, votes=has_edge | home, reached=has_edge, blank=~home)


@dataclass(frozen=True)
class PerNeighbour(NodeDivision):
    """One subgraph, hence one vote, per neighbour that sends the target messages; nothing is hashed.

    In the graph task there is one vote per node. Self-loops are dropped: a vote depends on the target and one
    neighbour, and a self-loop at that neighbour would let an edge elsewhere alter it.
    """

    is_per_neighbour = True

    def __str__(self) -> str:
        return "node-centric(T=inf)"

    def theorem(self, task: Task) -> str:
        """The theorem for one vote per neighbour."""
        return f"per-neighbour/{task}"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Row of every node in its graph, shape ``[num_nodes]``."""
        return number_within(graph, torch.arange(graph.num_nodes))

    def num_groups_in(self, graph: CanonicalGraph) -> int:
        """Number of nodes; of a joined set, those of its largest graph."""
        return int(self.node_groups(graph).max()) + 1 if graph.num_nodes else 1

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Keys of the nodes whose group's vote can alter: rows move when nodes are deleted, keys do not."""
        require_covered(change, graph, target, target_features=False)
        own_key = None if target is None else int(node_keys(graph)[target])
        pairs = touched_pairs(change)
        return touched_nodes(change) | {v if own_key == u else u for u, v in pairs if own_key in (u, v)}


def _within(groups: Tensor, wanted: range | None) -> Tensor:
    """Positions of the nodes whose group is wanted."""
    if wanted is None:
        return torch.arange(len(groups))
    return ((groups >= wanted.start) & (groups < wanted.stop)).nonzero().view(-1)
