"""Who is joined to whom inside each subgraph of the node task."""

from collections import defaultdict

from torch_geometric.data import Data

from agnncert.division import EdgeCentric, NodeCentric

Arc = tuple[int, int]  # where it comes from, and which edge of the graph it is


class Neighbours:
    """Arcs by subgraph and node.

    Attributes:
        row_of: Row of every node, by key.
    """

    def __init__(self, graph: Data, division: EdgeCentric | NodeCentric) -> None:
        self.row_of = {key: row for row, key in enumerate(graph.node_key.tolist())}
        self._into: dict[tuple[int, int], list[Arc]] = defaultdict(list)
        self._around: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        both_ways = isinstance(
            division, EdgeCentric
        )  # whose theorem also covers models that read outgoing edges
        source, head = graph.edge_index.tolist()
        for edge, (u, v, group) in enumerate(zip(source, head, division.groups(graph).tolist(), strict=True)):
            self._into[group, v].append((u, edge))
            self._around[group, v].append(u)
            self._groups[v].add(group)
            if both_ways:
                self._around[group, u].append(v)
                self._groups[u].add(group)
        self._reach: dict[int, frozenset[int]] = {}

    def into(self, group: int, node: int) -> list[Arc]:
        """Arcs that end at ``node`` in one subgraph."""
        return self._into.get((group, node), [])

    def groups(self, node: int) -> list[int]:
        """Subgraphs in which something reaches ``node``, ascending."""
        return sorted(self._groups.get(node, ()))

    def within(self, group: int, node: int) -> list[int]:
        """All nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        seen = {node: None}
        for here in (queue := [node]):
            for other in self._around.get((group, here), ()):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return list(seen)

    def reach(self, node: int) -> frozenset[int]:
        """All nodes that can reach ``node`` in some subgraph, itself included."""
        if node not in self._reach:
            self._reach[node] = frozenset(
                {node}.union(*(self.within(group, node) for group in self.groups(node)))
            )
        return self._reach[node]
