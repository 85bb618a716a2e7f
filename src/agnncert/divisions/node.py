"""Node-centric divisions: all edges that leave a node go to the group of its id."""

import itertools
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from agnncert.divisions.base import BuiltInDivision, check_settings, is_graph_task, number_within
from agnncert.divisions.changes import require_covered, touched_nodes, touched_pairs
from agnncert.divisions.union import DisjointUnion, UnionOfEdges, stable_order, union_of_edges
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import node_keys
from agnncert.graphs.perturbation import Perturbation


class NodeDivision(BuiltInDivision):
    """What :class:`NodeCentric`, :class:`GatedNodeCentric` and :class:`PerNeighbour` share: nodes have groups."""

    divides_nodes = True
    has_disjoint_union = True

    @abstractmethod
    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of every node, shape ``[num_nodes]``."""

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of the node each edge comes from; in the graph task −1 if its two ends differ in group."""
        group_of_node = self.node_groups(graph)
        source, head = graph.edge_index
        source_group = group_of_node[source]
        if is_graph_task(graph):
            return torch.where(source_group == group_of_node[head], source_group, -1)
        return source_group

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Returns the edges that leave the nodes of one group.

        In the graph task the subgraph has just those nodes, and the edges between them.
        """
        is_inside = groups == index
        if is_graph_task(graph):
            nodes = (self.node_groups(graph) == index).nonzero().view(-1)
            return graph.with_nodes(nodes, is_inside)
        return graph.with_edges(is_inside)

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """Returns the disjoint union of all subgraphs, or of some; the arguments are those of ``Division``."""
        if is_graph_task(graph):
            return self._graph_union(graph, groups, edges, within)
        union = union_of_edges(graph, groups, edges=edges)
        has_edge = _has_incoming_edge(union)
        return DisjointUnion(*union, votes=has_edge, reached=has_edge)

    def _graph_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None, within: range | None
    ) -> DisjointUnion:
        """Returns the disjoint union in the graph task, where every node is in one subgraph."""
        group_of_node = self.node_groups(graph)
        subgraph_of_node = graph.graph_of_node * self.num_groups_in(graph) + group_of_node
        nodes = _nodes_within(group_of_node, within)
        node = nodes[stable_order(subgraph_of_node[nodes])]
        position = torch.full_like(subgraph_of_node, -1)
        position[node] = torch.arange(len(node))
        kept = (groups >= 0).nonzero().view(-1)
        kept = kept if edges is None else edges[kept].long()
        edge = kept[stable_order(subgraph_of_node[graph.edge_index[0, kept]])]
        subgraph_index = subgraph_of_node[node]
        _, subgraph, sizes = torch.unique_consecutive(subgraph_index, return_inverse=True, return_counts=True)
        # A lone node has no edge to lose or gain, unless it may be joined to itself.
        least_size = 1 if self.self_loops or self.is_per_neighbour else 2
        return DisjointUnion(
            subgraph_index=subgraph_index,
            node=node,
            edge_index=position[graph.edge_index[:, edge]],
            edge=edge,
            votes=torch.ones_like(subgraph_index, dtype=torch.bool),
            reached=sizes[subgraph] >= least_size,
        )


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
        """Returns the node-centric theorem of the task."""
        return f"node-centric/{task}"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of every node, shape ``[num_nodes]``: the hash of its id."""
        keys = node_keys(graph).numpy().view(np.uint64)
        return torch.from_numpy(hashing.node_groups(keys, self.num_groups, self.hash))

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Returns the groups whose vote ``change`` can alter for ``target``."""
        require_covered(change, graph, target, target_features=self.gates_features)
        target_key = _target_key(graph, target)
        nodes = touched_nodes(change)
        pairs = touched_pairs(change)
        group = self._groups_of_keys([*nodes, *itertools.chain.from_iterable(pairs)])
        moved = {group[key] for key in nodes}
        for u, v in pairs:
            # Across groups, u -> v alters only v's vote in u's group, and v -> u only u's vote in v's group.
            if group[u] == group[v]:
                moved.add(group[u])
            elif target_key in (u, v):
                moved.add(group[v if target_key == u else u])
        return moved

    def _groups_of_keys(self, keys: list[int]) -> dict[int, int]:
        """Returns the group of each key."""
        unsigned = np.array(keys, dtype=np.int64).view(np.uint64)
        groups = hashing.node_groups(unsigned, self.num_groups, self.hash)
        return dict(zip(keys, groups.tolist(), strict=True))


@dataclass(frozen=True)
class GatedNodeCentric(NodeCentric):
    """Node-centric, and a subgraph shows the features of its own group's nodes alone. For the node task.

    This protects the target's own features too, at the price of at most degree + 1 votes per target. Settings as in
    :class:`NodeCentric`. In the graph task, where a subgraph has no other nodes, the division is the node-centric one.
    """

    gates_features = True

    def theorem(self, task: Task) -> str:
        """Returns the theorem for gated features in the node task, and the node-centric one in the graph task."""
        return "gated/node" if task == "node" else super().theorem(task)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Returns the subgraph of :class:`NodeCentric` without the features of other groups' nodes.

        Nodes of other groups abstain where they have no edge.
        """
        part = super().subgraph(graph, groups, index)
        if is_graph_task(graph):
            return part
        is_own = self.node_groups(graph) == index
        has_edge = torch.zeros_like(is_own)
        has_edge[part.edge_index[1]] = True
        return replace(part.with_features_of(is_own), abstain=~(is_own | has_edge))

    def disjoint_union(
        self, graph: CanonicalGraph, groups: Tensor, edges: Tensor | None = None, within: range | None = None
    ) -> DisjointUnion:
        """Returns the disjoint union of all subgraphs, or of some; the arguments are those of ``Division``."""
        if is_graph_task(graph):
            return self._graph_union(graph, groups, edges, within)
        group_of_node = self.node_groups(graph)
        nodes = _nodes_within(group_of_node, within)
        own_copies = group_of_node[nodes] * graph.num_nodes + nodes
        union = union_of_edges(graph, groups, own_copies, edges)
        has_edge = _has_incoming_edge(union)
        is_own = group_of_node[union.node] == union.subgraph_index
        return DisjointUnion(*union, votes=has_edge | is_own, reached=has_edge, blank=~is_own)


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
        """Returns the theorem for one vote per neighbour."""
        return f"per-neighbour/{task}"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the row of every node in its graph, shape ``[num_nodes]``."""
        return number_within(graph, torch.arange(graph.num_nodes))

    def num_groups_in(self, graph: CanonicalGraph) -> int:
        """Returns the number of nodes; of a joined set, that of its largest graph."""
        return int(self.node_groups(graph).max()) + 1 if graph.num_nodes else 1

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Returns the keys of the nodes whose group's vote can change.

        Rows move when nodes are deleted, and keys do not.
        """
        require_covered(change, graph, target, target_features=False)
        target_key = _target_key(graph, target)
        moved = touched_nodes(change)
        for u, v in touched_pairs(change):
            if target_key in (u, v):
                moved.add(v if target_key == u else u)
        return moved


def _target_key(graph: CanonicalGraph, target: int | None) -> int | None:
    """Returns the key of the target node; ``None`` in the graph task."""
    return None if target is None else int(node_keys(graph)[target])


def _has_incoming_edge(union: UnionOfEdges) -> Tensor:
    """Tells which copies of a union have an edge that points to them."""
    has_edge = torch.zeros_like(union.subgraph_index, dtype=torch.bool)
    has_edge[union.edge_index[1]] = True
    return has_edge


def _nodes_within(group_of_node: Tensor, groups: range | None) -> Tensor:
    """Returns the nodes of some groups, or all nodes if ``groups`` is ``None``."""
    if groups is None:
        return torch.arange(len(group_of_node))
    return ((group_of_node >= groups.start) & (group_of_node < groups.stop)).nonzero().view(-1)
