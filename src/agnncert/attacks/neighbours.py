"""``Neighbours``: which node gets messages from which inside each subgraph of a division."""

from collections import defaultdict

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.graphs.graph import CanonicalGraph

InEdge = tuple[int, int]  # the node that an edge comes from, and the number of the edge in the graph
GroupNode = tuple[int, int]  # a group, and a node in its subgraph


class Neighbours:
    """Which node gets messages from which inside each subgraph (node task).

    A node *hears* the nodes that send it messages. All nodes that can reach it over any hops can change its vote.
    """

    def __init__(self, graph: CanonicalGraph, division: EdgeCentric | NodeCentric) -> None:
        self._edges_into: dict[GroupNode, list[InEdge]] = defaultdict(list)
        self._heard_by: dict[GroupNode, list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        # The edge-centric theorem also covers models that send messages against the direction of edges.
        both_ways = division.divides_edges
        edges = zip(*graph.edge_index.tolist(), division.groups(graph).tolist(), strict=True)
        for edge, (u, v, group) in enumerate(edges):
            self._edges_into[group, v].append((u, edge))
            self._hear(group, u, v)
            if both_ways:
                self._hear(group, v, u)

    def _hear(self, group: int, sender: int, listener: int) -> None:
        self._heard_by[group, listener].append(sender)
        self._groups[listener].add(group)

    def edges_into(self, group: int, node: int) -> list[InEdge]:
        """Returns the edges that end at ``node`` in one subgraph."""
        return self._edges_into.get((group, node), [])

    def senders(self, group: int, node: int) -> list[int]:
        """Returns where those edges come from, each node once."""
        return list(dict.fromkeys(u for u, _ in self.edges_into(group, node)))

    def groups(self, node: int) -> list[int]:
        """Returns the subgraphs in which something reaches ``node``, ascending."""
        return sorted(self._groups.get(node, ()))

    def reaching_in(self, group: int, node: int) -> list[int]:
        """Returns all nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        reaching = [node]
        seen = {node}
        for here in reaching:
            for other in self._heard_by.get((group, here), ()):
                if other not in seen:
                    seen.add(other)
                    reaching.append(other)
        return reaching

    def reaching(self, node: int) -> set[int]:
        """Returns all nodes that can reach ``node`` in some subgraph, itself included."""
        reaching = {node}
        for group in self.groups(node):
            reaching.update(self.reaching_in(group, node))
        return reaching
