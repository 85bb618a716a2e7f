"""Edges between nodes with similar features, which an attacker of edges cannot alter, in every subgraph.

AuditVotes (Lai et al., 2025) lets a certified vote see a cleaned graph: edges between dissimilar nodes are taken out,
edges between similar nodes are put in. In this sound form the edges that are put in depend on features alone. So they
are the same whatever happens to edges, and one changed edge alters one vote.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import DivisionError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.perturbation import Perturbation

_AT_ONCE = 1000  # rows of the table of similarities
_GRID = 1e6  # similarities are compared in steps of 1 / _GRID, ties by row


@dataclass(frozen=True)
class SimilarityEdges(Division):
    """Every subgraph has the edges of one group, and edges from the nodes with the most similar features.

    Node classification. Covers edges that are added, deleted or changed, and nothing else: other features, or other
    nodes, would lead to other similarities. The model should be trained with :meth:`training_graph`.

    Attributes:
        num_groups: Number of subgraphs T.
        neighbours: Edges from similar nodes to each node.
        hash: "md5", "sha1", "sha256" or "blake2b".

    Example:
        >>> SimilarityEdges(30).unit_costs["add_edges"]
        1
    """

    num_groups: int = 30
    neighbours: int = 5
    hash: str = "md5"

    edges_only = True
    unit_costs = MappingProxyType({"add_edges": 1, "delete_edges": 1, "change_edges": 1})

    def __post_init__(self) -> None:
        EdgeCentric(self.num_groups, self.hash)  # says what is wrong with either
        if isinstance(self.neighbours, bool) or not isinstance(self.neighbours, int) or self.neighbours < 1:
            raise DivisionError(f"neighbours={self.neighbours!r}: expected a whole number from 1 on.")

    def __str__(self) -> str:
        return f"similarity-edges(T={self.num_groups}, neighbours={self.neighbours}, hash={self.hash}, key=u64le)"

    def groups(self, graph: CanonicalGraph) -> Tensor:
        """Returns the group of every edge. Both directions of a pair have the same one."""
        return EdgeCentric(self.num_groups, self.hash).groups(graph)

    def subgraph(self, graph: CanonicalGraph, groups: Tensor, index: int) -> CanonicalGraph:
        """Returns the edges of one group and those between similar nodes, each once."""
        if graph.task == "graph":
            raise DivisionError("similarity edges are for node classification: pass one graph and target nodes.")
        if graph.edge_values:
            raise DivisionError(
                f"edges between similar nodes have no {' or '.join(graph.edge_values)}: drop it from the data."
            )
        return self._with_similar(graph, graph.edge_index[:, groups == index])

    def training_graph(self, graph: CanonicalGraph) -> CanonicalGraph:
        """Returns one graph like the subgraphs, to train on: the first group and edges between similar nodes."""
        return self.subgraph(graph, self.groups(graph), 0)

    def votes_moved(self, change: Perturbation, graph: CanonicalGraph, target: int | None) -> int:
        """Returns the number of groups of the changed edges; raises NotCovered for anything but edges."""
        return EdgeCentric(self.num_groups, self.hash, edges_only=True).votes_moved(change, graph, target)

    def _with_similar(self, graph: CanonicalGraph, edge_index: Tensor) -> CanonicalGraph:
        joined = torch.cat([edge_index, similar_pairs(graph.x, self.neighbours)], dim=1)
        return replace(graph, edge_index=coalesce(joined, num_nodes=graph.num_nodes))


def similar_pairs(x: Tensor, neighbours: int) -> Tensor:
    """Returns edges to each node from those with the most similar features, ``[2, num_nodes * neighbours]``.

    Similarities are cosines, rounded. Ties go to the smaller row, so that other machines find the same edges.

    Example:
        >>> similar_pairs(torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]]), 1)
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """
    return _similar_pairs(_ByIdentity(x), neighbours)


class _ByIdentity:
    """A tensor as a key: all subgraphs of one graph have the same features."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __hash__(self) -> int:
        return hash((self.x.data_ptr(), tuple(self.x.shape), self.x._version))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and (self.x is other.x or torch.equal(self.x, other.x))


@lru_cache(maxsize=2)
def _similar_pairs(key: _ByIdentity, neighbours: int) -> Tensor:
    x = key.x.double() if key.x.numel() < 10_000_000 else key.x.float()
    unit = torch.nn.functional.normalize(x, dim=1)
    number = min(neighbours, len(x) - 1)
    rows = []
    for begin in range(0, len(x), _AT_ONCE):
        table = (unit[begin : begin + _AT_ONCE] @ unit.T * _GRID).round_().long()
        table[torch.arange(len(table)), torch.arange(begin, begin + len(table))] = -(2**40)  # not itself
        table = table * len(x) + torch.arange(len(x) - 1, -1, -1)  # the smaller row first
        rows.append(table.topk(number, dim=1).indices)
    source = torch.cat(rows)
    return torch.stack([source.reshape(-1), torch.arange(len(x)).repeat_interleave(number)])
