"""GNNCert-E, -N and -EN (Xia et al., ICLR 2024), as divisions: ``ac.certify(model, data, GNNCertE(30))``.

They divide edges, features, or both, and nothing else: every subgraph keeps all nodes, and in the graph task all of
them are read out. That is sound only because GNNCert's attacker neither injects nor deletes nodes; such budgets are
refused. (``EdgeCentric`` reads out the ends of a subgraph's edges alone, which is why it may cover nodes.)

Unlike the released code: features are blanked in a copy, where the original overwrites the one tensor that all
subgraphs share; blank means 0, not -99; an edge has one group whichever way it is written; hashes are the same in every
process. GNNCert is for graph classification; its counting holds for the votes of a node as well.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from agnncert.divisions.base import Division, check_settings
from agnncert.divisions.changes import touched_edge_groups, touched_pairs
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import node_keys
from agnncert.graphs.perturbation import Perturbation, keys_of


@dataclass(frozen=True)
class _GNNCert(Division):
    """What GNNCert-E and -N share: the number of subgraphs T, and the hash that assigns groups."""

    num_groups: int
    hash: str = "md5"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_settings(self, "num_groups")

    def __str__(self) -> str:
        return f"{self.name}(T={self.num_groups}, hash={self.hash}, key=u64le)"

    def theorem(self, task: Task) -> str:
        """The theorem of GNNCert for the task."""
        return f"{self.name}/{task}"


class GNNCertE(_GNNCert):
    """Edges are divided: a subgraph has all nodes, all features and the edges of one group.

    Covers edges between existing nodes: one that is added, deleted or changed moves one vote.

    Attributes:
        num_groups: Number of subgraphs T.
        hash: "md5", "sha1", "sha256" or "blake2b".

    Example:
        >>> print(GNNCertE(30))
        gnncert-e(T=30, hash=md5, key=u64le)
    """

    name = "gnncert-e"

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every edge; both directions of a pair share it."""
        return EdgeCentric(self.num_groups, self.hash).groups(graph)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """All nodes, and the edges of one group."""
        return graph.with_edges(groups == index)

    def same_as(self, graph: CanonicalGraph, groups: Tensor) -> Tensor:
        """For each subgraph, the first that is the very same graph: all without an edge are alike."""
        return _first_empty(groups, self.num_groups)

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Number of distinct groups among the edges touched."""
        _require_same_nodes(change)
        if change.change_features:
            raise NotCovered(
                "GNNCert-E divides edges only: changed features reach every subgraph. GNNCert-EN covers both."
            )
        return len(touched_edge_groups(change, self.num_groups, self.hash))


class GNNCertN(_GNNCert):
    """Features are divided: a subgraph has all nodes and edges, and the features of one group of nodes.

    Covers features of existing nodes, in the node task the target's own included: a changed node moves one vote.
    Settings as in :class:`GNNCertE`.
    """

    name = "gnncert-n"

    def node_groups(self, graph: CanonicalGraph) -> Tensor:
        """Group of every node, shape ``[num_nodes]``."""
        return _hashed(node_keys(graph).numpy().tobytes(), self.num_groups, self.hash)

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """All edges are in group 0, and every subgraph has them."""
        return torch.zeros(graph.num_edges, dtype=torch.int64)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """The whole graph, but features of other groups are zero."""
        return graph.with_edges(groups == 0).with_features_of(self.node_groups(graph) == index)

    def same_as(self, graph: CanonicalGraph, groups: Tensor) -> Tensor:
        """For each subgraph, the first that is the very same graph: all that show no node's features are alike."""
        return _first_empty(self.node_groups(graph), self.num_groups)

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Number of distinct groups among the nodes whose features change."""
        _require_same_nodes(change)
        if touched_pairs(change):
            raise NotCovered(
                "GNNCert-N divides features only: changed edges reach every subgraph. GNNCert-EN covers both."
            )
        return len(_changed_groups(change, self.num_groups, self.hash))


@dataclass(frozen=True)
class GNNCertEN(Division):
    """Edges and features are divided, and every pair of an edge group and a feature group is a subgraph.

    Covers edges between existing nodes and features of existing nodes together. An edge moves a row of the grid, the
    features of a node a column: r nodes and s edges move at most ``r * edge_groups + s * node_groups - r * s`` votes.

    Attributes:
        edge_groups: Number of edge groups, the rows of the grid.
        node_groups: Number of groups of nodes by which features are divided, the columns.
        hash: "md5", "sha1", "sha256" or "blake2b".

    Example:
        >>> GNNCertEN(30, 30).num_groups
        900
    """

    edge_groups: int
    node_groups: int
    hash: str = "md5"

    def __post_init__(self) -> None:
        check_settings(self, "edge_groups", "node_groups")

    def __str__(self) -> str:
        return f"gnncert-en(T={self.edge_groups}x{self.node_groups}, hash={self.hash}, key=u64le)"

    def theorem(self, task: Task) -> str:
        """The theorem of GNNCert-EN for the task."""
        return f"gnncert-en/{task}"

    @property
    def num_groups(self) -> int:  # type: ignore[override]
        """Number of subgraphs: the cells of the grid, row by row."""
        return self.edge_groups * self.node_groups

    @property
    def _parts(self) -> tuple[GNNCertE, GNNCertN]:
        return GNNCertE(self.edge_groups, self.hash), GNNCertN(self.node_groups, self.hash)

    @property
    def parameters(self) -> dict[str, int]:
        """The sides of the grid, as a certificate stores them."""
        return {"edge_groups": self.edge_groups, "feature_groups": self.node_groups}

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """The row of the grid that each edge belongs to."""
        return self._parts[0].groups(graph)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """All nodes, the edges of one group and the features of another."""
        row, column = divmod(index, self.node_groups)
        return graph.with_edges(groups == row).with_features_of(self._parts[1].node_groups(graph) == column)

    def same_as(self, graph: CanonicalGraph, groups: Tensor) -> Tensor:
        """For each subgraph, the first that is the very same graph: empty rows are alike, and so are empty columns."""
        row, column = (part.same_as(graph, groups) for part in self._parts)
        return (row[:, None] * self.node_groups + column).view(-1)

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Cells in the rows of touched edges or in the columns of changed nodes, each counted once."""
        _require_same_nodes(change)
        rows = len(touched_edge_groups(change, self.edge_groups, self.hash))
        columns = len(_changed_groups(change, self.node_groups, self.hash))
        return columns * self.edge_groups + rows * self.node_groups - rows * columns


@lru_cache(maxsize=4)  # subgraph() is asked for every subgraph of a graph in turn
def _hashed(keys: bytes, num_groups: int, name: str) -> Tensor:
    return torch.from_numpy(hashing.node_groups(np.frombuffer(keys, dtype=np.uint64), num_groups, name))


def _first_empty(groups: Tensor, num_groups: int) -> Tensor:
    """The number of each group or, for an empty one, of the first empty group."""
    empty = torch.bincount(groups, minlength=num_groups) == 0
    same = torch.arange(num_groups)
    return torch.where(empty, same[empty][:1].sum(), same)


def _changed_groups(change: Perturbation, num_groups: int, name: str) -> set[int]:
    keys = np.array(keys_of(change.change_features), dtype=np.int64).view(np.uint64)
    return set(hashing.node_groups(keys, num_groups, name).tolist())


def _require_same_nodes(change: Perturbation) -> None:
    if change.inject_nodes or change.delete_nodes:
        raise NotCovered(
            "the change injects or deletes nodes: in GNNCert every subgraph has all nodes, so each of them "
            "changes. EdgeCentric and NodeCentric cover this."
        )
