"""The edge-centric division: every edge goes to the group of its pair of ids."""

from dataclasses import dataclass
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
    touched_edge_groups,
    touched_nodes,
    touched_pairs,
)
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, node_keys
from agnncert.graphs.perturbation import Perturbation

BLOCK = 2**20  # edges whose keys are looked up together


@dataclass(frozen=True)
class EdgeCentric:
    """Every edge goes to the group of its unordered pair of ids (paper, section 3.2).

    One edge touched moves at most one ballot; an injected node moves one per edge it brings.

    Attributes:
        num_groups: Number of subgraphs T. With ``math.inf`` every pair has a group of its own: a target casts one
            ballot for each of its edges, and a graph one for each edge, whatever the hash.
        hash: "md5", "sha1", "sha256" or "blake2b".
        self_loops: Whether self-loops are kept as ordinary edges; dropped otherwise.
    """

    num_groups: Any  # a whole number, or math.inf
    hash: str = "md5"
    self_loops: bool = False

    rule: ClassVar[str] = "edge-centric"

    def __post_init__(self) -> None:
        if not is_per_neighbour(self):
            check_settings(self, "num_groups")

    def __str__(self) -> str:
        loops = ", self-loops kept" if self.self_loops else ""
        if is_per_neighbour(self):
            return f"edge-centric(T=inf{loops})"
        return f"edge-centric(T={self.num_groups}, hash={self.hash}, key=u64le{loops})"

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every directed edge; both directions of a pair share it."""
        if is_per_neighbour(self):
            return self._pairs(graph)[1]
        keys, groups = node_keys(graph), torch.empty(graph.edge_index.size(1), dtype=torch.int64)
        for start in range(0, len(groups), BLOCK):
            part = slice(start, start + BLOCK)
            u, v = keys[graph.edge_index[:, part]].numpy().view(np.uint64)
            groups[part] = torch.from_numpy(hashing.edge_groups(u, v, self.num_groups, self.hash))
        return groups

    def groups_in(self, graph: CanonicalGraph) -> int:
        """Number of edges of the graph, or the most that one of a set has: so many groups ``math.inf`` makes."""
        number = self._pairs(graph)[0]
        return int(number.max()) + 1 if len(number) else 1

    def _pairs(self, graph: CanonicalGraph) -> tuple[Tensor, Tensor]:
        """Number of each pair of nodes within its graph, by ascending ends, and that of the pair of each edge."""
        low, high = graph.edge_index.min(0).values, graph.edge_index.max(0).values
        pair, of_edge = torch.unique(low.long() * graph.num_nodes + high, return_inverse=True)
        number = number_within(graph, torch.div(pair, graph.num_nodes, rounding_mode="floor"))
        return number, number[of_edge]

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Edges of one group; in the graph task only their endpoints stay, so that no isolated node is read out."""
        inside = groups == index
        if not is_graph_task(graph):
            return graph.with_edges(inside)
        return graph.with_nodes(torch.unique(graph.edge_index[:, inside]), inside)

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
        cells = groups
        if is_graph_task(graph):
            source = graph.edge_index[0] if edges is None else graph.edge_index[0, edges]
            cells = graph.graph_of_node[source] * num_groups_in(self, graph) + groups
        cell, node, edge_index, edge = disjoint_union(graph, cells, edges=edges)
        # An endpoint counts whichever way the edge points: a model that also reads outgoing edges is then covered.
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return DisjointUnion(cell, node, edge_index, edge, votes=everyone, reached=everyone)

    def moved_groups(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> set[int]:
        """Groups whose ballot ``change`` can alter: those of touched edges and of all edges of touched nodes."""
        require_covered(change, graph, target, target_features=False)
        nodes, keys = touched_nodes(change), node_keys(graph)
        if is_per_neighbour(self):
            return self._moved_pairs(change, graph, target, nodes)
        at_nodes = torch.isin(keys, torch.tensor(sorted(nodes), dtype=torch.int64))[graph.edge_index].any(0)
        moved = set(self.groups(graph)[at_nodes].tolist())
        return moved | touched_edge_groups(change, self.num_groups, self.hash)

    def _moved_pairs(
        self, change: Perturbation, graph: CanonicalGraph, target: int | None, nodes: set[int]
    ) -> set[Any]:
        """Pairs whose ballot can alter, each named by its two keys: their numbers move when others come and go."""
        keys = node_keys(graph)
        ends = (sorted(pair) for pair in keys[graph.edge_index].t().tolist())
        pairs = {(u, v) for u, v in ends if u in nodes or v in nodes} | set(touched_pairs(change))
        own = None if target is None else int(keys[target])
        return {pair for pair in pairs if own is None or own in pair}

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Number of distinct groups the change touches (paper, Theorems 2 to 5)."""
        return len(self.moved_groups(change, graph, target))
