"""``CanonicalGraph``: a checked graph in canonical form.

A canonical graph has finite float features, unique ids, no self-loops (unless the division keeps them) and edges in an
order that depends on ids only. Layers that depend on the order of edges therefore see the same sequence whenever they
see the same neighbours.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.task import Task as Task

EDGE_VALUES = ("edge_weight", "edge_attr")


@dataclass(frozen=True, eq=False)
class CanonicalGraph:
    """A checked graph in canonical form, several such graphs joined into one, or a subgraph that a division made.

    Attributes:
        x: Node features, finite float32 or float64, shape ``[num_nodes, num_features]``.
        edge_index: Directed edges as (src, dst), int64 or, for large graphs, int32, shape ``[2, num_edges]``.
        node_key: 64-bit key of each node (the bits of an int64), shape ``[num_nodes]``.
        edge_weight: One row per edge, or ``None``.
        edge_attr: One row per edge, or ``None``.
        task: ``"node"`` or ``"graph"``.
        id_digests: sha256 of the exact ids, which keys do not determine; one entry for each joined graph.
        has_ids: Whether the data has a ``node_id``; one entry for each joined graph.
        batch: Graph of each node, ascending, shape ``[num_nodes]``; ``None`` unless graphs are joined.
        abstain: In a subgraph: nodes that abstain, shape ``[num_nodes]``; ``None`` if all nodes vote.
    """

    x: Tensor
    edge_index: Tensor
    node_key: Tensor
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    task: Task = "node"
    id_digests: tuple[str, ...] = ()
    has_ids: tuple[bool, ...] = (False,)
    batch: Tensor | None = None
    abstain: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def stable_ids(self) -> bool:
        """Whether every node has an id that stays the same when other nodes are deleted."""
        return all(self.has_ids)

    @property
    def edge_values(self) -> dict[str, Tensor]:
        """Edge weights and edge attributes by name, as far as the graph has them."""
        return edge_values_of(self)

    @property
    def graph_of_node(self) -> Tensor:
        """``batch``, or zeros if no graphs are joined."""
        if self.batch is None:
            return torch.zeros(self.num_nodes, dtype=torch.int64)
        return self.batch

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each joined graph, shape ``[num_graphs]``."""
        if self.batch is None:
            return torch.tensor([self.num_nodes])
        return torch.bincount(self.batch)

    @property
    def starts(self) -> Tensor:
        """First node of each joined graph, shape ``[num_graphs]``."""
        return torch.cumsum(self.sizes, 0) - self.sizes

    def with_edges(self, edges: Tensor) -> "CanonicalGraph":
        """Returns all nodes, and some edges with their values.

        Args:
            edges: A mask, or positions of the edges.
        """
        return self._with_edges(self.edge_index[:, edges], edges)

    def with_nodes(self, nodes: Tensor, edges: Tensor) -> "CanonicalGraph":
        """Returns some nodes, renumbered from 0, and some edges with their values.

        Args:
            nodes: Rows of the nodes.
            edges: A mask, or positions of the edges, which must join these nodes.
        """
        position = torch.full((self.num_nodes,), -1, dtype=torch.int64)
        position[nodes] = torch.arange(len(nodes))
        return replace(
            self._with_edges(position[self.edge_index[:, edges]], edges),
            x=self.x[nodes],
            node_key=self.node_key[nodes],
            batch=None if self.batch is None else self.batch[nodes],
            abstain=None if self.abstain is None else self.abstain[nodes],
        )

    def with_other_edges(self, edge_index: Tensor) -> "CanonicalGraph":
        """Returns the same nodes with other edges, which have no values."""
        return replace(self, edge_index=edge_index, edge_weight=None, edge_attr=None)

    def with_features_of(self, visible: Tensor) -> "CanonicalGraph":
        """Returns the same graph with the features of the visible nodes, and zeros for all other nodes.

        Args:
            visible: A mask, shape ``[num_nodes]``.
        """
        zero = torch.zeros((), dtype=self.x.dtype)
        return replace(self, x=torch.where(visible[:, None], self.x, zero))

    def without_self_loops(self) -> "CanonicalGraph":
        """Returns the same graph without edges from a node to itself."""
        is_kept = self.edge_index[0] != self.edge_index[1]
        return self if bool(is_kept.all()) else self.with_edges(is_kept)

    def select(self, graphs: Tensor) -> "CanonicalGraph":
        """Returns some of the joined graphs, joined in the order given.

        The order within each graph stays the same.

        Args:
            graphs: Numbers of the graphs.
        """
        graph_of_edge = self.graph_of_node[self.edge_index[1]]  # ascending: edges are sorted by graph
        num_edges = torch.bincount(graph_of_edge, minlength=len(self.sizes))
        nodes = _ranges(self.starts, self.sizes, graphs)
        edges = _ranges(torch.cumsum(num_edges, 0) - num_edges, num_edges, graphs)
        sizes = self.sizes[graphs]
        new_starts = torch.cumsum(sizes, 0) - sizes
        shift = torch.repeat_interleave(new_starts - self.starts[graphs], num_edges[graphs])
        return replace(
            self._with_edges(self.edge_index[:, edges] + shift, edges),
            x=self.x[nodes],
            node_key=self.node_key[nodes],
            batch=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
            id_digests=tuple(self.id_digests[k] for k in graphs.tolist()),
            has_ids=tuple(self.has_ids[k] for k in graphs.tolist()),
        )

    def _with_edges(self, edge_index: Tensor, edges: Tensor) -> "CanonicalGraph":
        weight = None if self.edge_weight is None else self.edge_weight[edges]
        attr = None if self.edge_attr is None else self.edge_attr[edges]
        return replace(self, edge_index=edge_index, edge_weight=weight, edge_attr=attr)


def _ranges(starts: Tensor, sizes: Tensor, wanted: Tensor) -> Tensor:
    """Returns the numbers ``starts[k]`` to ``starts[k] + sizes[k] - 1`` for each wanted k, range after range."""
    length = sizes[wanted]
    begin = torch.cumsum(length, 0) - length
    shift = torch.repeat_interleave(starts[wanted] - begin, length)
    return shift + torch.arange(int(length.sum()))


def edge_values_of(data: Data | CanonicalGraph) -> dict[str, Any]:
    """Returns edge weights and edge attributes by name, as far as a graph has them."""
    values = {name: getattr(data, name, None) for name in EDGE_VALUES}
    return {name: value for name, value in values.items() if value is not None}


def one_graph(joined: CanonicalGraph, index: int) -> CanonicalGraph:
    """Returns graph ``index`` of a joined set alone, with the same order of nodes and edges."""
    return replace(joined.select(torch.tensor([index])), batch=None)
