"""The edge-centric division: every edge goes to the group of its pair of ids."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions.base import (
    Pieces,
    check_settings,
    disjoint_union,
    is_graph_task,
    require_covered,
    touched_edge_groups,
    touched_nodes,
    with_edges,
    with_nodes_and_edges,
)
from agnncert.graphs import hashing
from agnncert.graphs.graph import node_keys
from agnncert.graphs.perturbation import Perturbation


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

    rule: ClassVar[str] = "edge-centric"

    def __post_init__(self) -> None:
        check_settings(self, "num_groups")

    def __str__(self) -> str:
        loops = ", self-loops kept" if self.self_loops else ""
        return f"edge-centric(T={self.num_groups}, hash={self.hash}, key=u64le{loops})"

    def groups(self, graph: Data) -> Tensor:
        """Group of every directed edge; both directions of a pair share it."""
        keys = node_keys(graph)[graph.edge_index].numpy().view(np.uint64)
        return torch.from_numpy(hashing.edge_groups(keys[0], keys[1], self.num_groups, self.hash))

    def subgraph(self, graph: Data, groups: Tensor, index: int) -> Data:
        """Edges of one group; in the graph task only their endpoints stay, so that no isolated node is read out."""
        inside = groups == index
        if not is_graph_task(graph):
            return with_edges(graph, inside)
        return with_nodes_and_edges(graph, torch.unique(graph.edge_index[:, inside]), inside)

    def pieces(self, graph: Data, groups: Tensor) -> Pieces:
        """The disjoint union of all subgraphs."""
        cells = groups
        if is_graph_task(graph):
            cells = graph.batch[graph.edge_index[0]] * self.num_groups + groups
        cell, node, edge_index, edge = disjoint_union(graph, cells)
        # An endpoint counts whichever way the edge points: a model that also reads outgoing edges is then covered.
        everyone = torch.ones_like(cell, dtype=torch.bool)
        return Pieces(cell, node, edge_index, edge, votes=everyone, reached=everyone)

    def moved_groups(self, change: Perturbation, graph: Data, target: int | None) -> set[int]:
        """Groups whose ballot ``change`` can alter: those of touched edges and of all edges of touched nodes."""
        require_covered(change, graph, target, target_features=False)
        nodes, keys = touched_nodes(change), node_keys(graph)
        at_nodes = torch.isin(keys, torch.tensor(sorted(nodes), dtype=torch.int64))[graph.edge_index].any(0)
        moved = set(self.groups(graph)[at_nodes].tolist())
        return moved | touched_edge_groups(change, self.num_groups, self.hash)

    def votes_moved(self, change: Perturbation, graph: Data, target: int | None) -> int:
        """Number of distinct groups the change touches (paper, Theorems 2 to 5)."""
        return len(self.moved_groups(change, graph, target))
