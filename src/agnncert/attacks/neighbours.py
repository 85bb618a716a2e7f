"""Who is joined to whom inside each subgraph of the node task, and what an attack adds to that."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from torch_geometric.data import Data

from agnncert import hashing
from agnncert.division import EdgeCentric, NodeCentric

Arc = tuple[int, int]  # where it comes from, and which edge of the graph it is
Place = tuple[int, int]  # a group, and a node in it
KeyPair = tuple[int, int]


class Neighbours:
    """Arcs by subgraph and node.

    Attributes:
        row_of: Row of every node, by key.
    """

    def __init__(self, graph: Data, division: EdgeCentric | NodeCentric) -> None:
        self.division = division
        self.row_of = {key: row for row, key in enumerate(graph.node_key.tolist())}
        self._into: dict[Place, list[Arc]] = defaultdict(list)
        self._around: dict[Place, list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        self._group_of: dict[KeyPair, int] = {}
        source, head = graph.edge_index.tolist()
        for edge, (u, v, group) in enumerate(zip(source, head, division.groups(graph).tolist(), strict=True)):
            self._into[group, v].append((u, edge))
            for tail, end in self._hears(u, v):
                self._around[group, end].append(tail)
                self._groups[end].add(group)

    def _hears(self, u: int, v: int) -> Sequence[tuple[int, int]]:
        """Who hears whom along an arc; the edge-centric theorem also covers models that listen both ways."""
        return [(u, v), (v, u)] if isinstance(self.division, EdgeCentric) else [(u, v)]

    def into(self, group: int, node: int) -> list[Arc]:
        """Arcs that end at ``node`` in one subgraph."""
        return self._into.get((group, node), [])

    def heard(self, group: int, node: int) -> list[int]:
        """Where those arcs come from, each node once."""
        return list(dict.fromkeys(u for u, _ in self.into(group, node)))

    def groups(self, node: int) -> list[int]:
        """Subgraphs in which something reaches ``node``, ascending."""
        return sorted(self._groups.get(node, ()))

    def within(self, group: int, node: int, added: Mapping[Place, Sequence[int]] | None = None) -> list[int]:
        """All nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        seen = {node: None}
        for here in (queue := [node]):
            for other in (*self._around.get((group, here), ()), *(added or {}).get((group, here), ())):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return list(seen)

    def reach(self, node: int, pairs: Sequence[KeyPair] = ()) -> set[int]:
        """Rows of all nodes that can reach ``node`` in some subgraph once pairs of keys have been joined."""
        added = self._places(pairs)
        groups = {*self.groups(node), *(group for group, end in added if end == node)}
        seen = {node}.union(*(self.within(group, node, added) for group in groups))
        return {row for row in seen if row >= 0}  # nodes without a row have negative stand-ins

    def learn(self, pairs: Sequence[KeyPair]) -> None:
        """Looks up the groups of many pairs at once, which is much cheaper than one by one."""
        arcs = [arc for u, v in pairs for arc in ((u, v), (v, u)) if arc not in self._group_of]
        if not arcs:
            return
        keys = np.array(arcs, dtype=np.int64).view(np.uint64)
        settings = self.division.num_groups, self.division.hash
        if isinstance(self.division, NodeCentric):
            groups = hashing.node_groups(keys[:, 0].copy(), *settings)
        else:
            groups = hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), *settings)
        self._group_of.update(zip(arcs, groups.tolist(), strict=True))

    def _places(self, pairs: Sequence[KeyPair]) -> dict[Place, list[int]]:
        """Where new pairs, joined in both directions, let whom be heard."""
        self.learn(pairs)
        new = dict.fromkeys(key for pair in pairs for key in pair if key not in self.row_of)
        stand_in = {key: -1 - k for k, key in enumerate(new)}
        found: dict[Place, list[int]] = defaultdict(list)
        for pair in pairs:
            for tail, head in (pair, pair[::-1]):
                ends = [self.row_of.get(key, stand_in.get(key, -1)) for key in (tail, head)]
                found[self._group_of[tail, head], ends[1]].append(ends[0])
        return found
