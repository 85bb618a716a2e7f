"""``ProbeGraph`` and ``FeatureTable``: what a model is probed on.

A probe graph has two *sides* that no edge joins. A change on one side must not change outputs on the other. Each node
names a row of a feature table that ends with corrupt rows: corrupting a node means naming another row.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

HUGE = 1e30
EdgeValues = dict[str, Tensor]  # edge weights and attributes, by name


@dataclass(frozen=True)
class ProbeGraph:
    """A graph on which a model is probed.

    Attributes:
        rows: Row of each node in the feature table, shape ``[n]``.
        edge_index: Edges, shape ``[2, m]``, sorted by the positions of their ends, as canonical graphs are by ids.
        values: Edge weights and attributes, by name.
        side: Which of two unconnected sides each node is on, shape ``[n]``.
        position: Node task: a number for each node, by which edges are sorted. Graph task: its graph, ascending.
    """

    rows: Tensor
    edge_index: Tensor
    values: EdgeValues
    side: Tensor
    position: Tensor

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.rows)

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    def nodes_of(self, side: int) -> Tensor:
        """Returns the nodes of a side, ascending."""
        return (self.side == side).nonzero().view(-1)

    def edges_of(self, side: int) -> Tensor:
        """Returns a mask of the edges of a side."""
        return self.side[self.edge_index[0]] == side

    def selected(self, nodes: Tensor) -> "ProbeGraph":
        """Returns the subgraph of the given nodes in the given order, with its edges in their present order."""
        new_row = torch.full_like(self.rows, -1)
        new_row[nodes] = torch.arange(len(nodes))
        renumbered = new_row[self.edge_index]
        kept = (renumbered >= 0).all(0)
        values = {name: value[kept] for name, value in self.values.items()}
        return ProbeGraph(self.rows[nodes], renumbered[:, kept], values, self.side[nodes], self.position[nodes])

    def with_edges(self, edges: Tensor | slice) -> "ProbeGraph":
        """Returns the graph with some of its edges, given by positions, a mask or a slice."""
        values = {name: value[edges] for name, value in self.values.items()}
        return replace(self, edge_index=self.edge_index[:, edges], values=values)

    def sorted(self) -> "ProbeGraph":
        """Returns the same graph with its edges sorted by the positions of dst, then of src."""
        size = self.num_nodes
        source, head = self.edge_index.numpy()  # numpy sorts the few edges of a probe in half the time
        rank = np.empty(size, dtype=np.int64)
        rank[torch.argsort(self.position).numpy()] = np.arange(size)
        order = torch.from_numpy(np.argsort(rank[head] * size + rank[source], kind="stable"))
        values = {name: value.index_select(0, order) for name, value in self.values.items()}
        return replace(self, edge_index=self.edge_index.index_select(1, order), values=values)

    def sorted_by_graph(self) -> "ProbeGraph":
        """Returns the same graphs with edges sorted by graph (graph task)."""
        return self.with_edges(torch.argsort(self.position[self.edge_index[1]], stable=True))

    def joined(self, other: "ProbeGraph") -> "ProbeGraph":
        """Returns the disjoint union of this graph and another one."""
        return ProbeGraph(
            torch.cat([self.rows, other.rows]),
            torch.cat([self.edge_index, other.edge_index + self.num_nodes], dim=1),
            {name: torch.cat([value, other.values[name]]) for name, value in self.values.items()},
            torch.cat([self.side, other.side]),
            torch.cat([self.position, other.position]),
        )

    def components(self) -> Tensor:
        """Returns the connected component of every node, edges taken in both directions."""
        size = self.num_nodes
        ones = torch.ones(self.num_edges, dtype=torch.int8).numpy()
        matrix = coo_matrix((ones, tuple(self.edge_index.numpy())), (size, size))
        return torch.from_numpy(connected_components(matrix, directed=False)[1]).long()


@dataclass(frozen=True)
class FeatureTable:
    """Rows of features: ordinary rows, then rows that are not finite, then finite rows of all magnitudes.

    Attributes:
        x: The rows, shape ``[num_rows, num_features]``.
        num_ordinary: Number of ordinary rows.
        num_not_finite: Number of rows that are not finite.
        num_large: Number of rows with large random numbers, which come last.
    """

    x: Tensor
    num_ordinary: int
    num_not_finite: int = 3
    num_large: int = 4

    @classmethod
    def of(cls, x: Tensor, generator: torch.Generator) -> "FeatureTable":
        """Returns a table of the rows ``x``, with corrupt rows added at its end."""
        extremes = [torch.full_like(x[:1], value) for value in (math.nan, math.inf, -math.inf, HUGE, -HUGE, 0.0)]
        low, high = x.aminmax()  # the largest absolute value, without a second matrix of absolute values
        largest = torch.maximum(-low, high).clamp(max=HUGE)
        normal = torch.randn(cls.num_large, x.size(1), generator=generator).to(x.dtype)
        return cls(torch.cat([x, *extremes, 1000 * (1 + largest) * normal]), x.size(0))

    def draw_corrupt(self, count: int, finite: bool, generator: torch.Generator) -> Tensor:
        """Draws indices of corrupt rows, either of finite ones or of those that are not finite."""
        first_finite = self.num_ordinary + self.num_not_finite
        if finite:
            return torch.randint(first_finite, self.x.size(0), (count,), generator=generator)
        return torch.randint(self.num_ordinary, first_finite, (count,), generator=generator)

    def draw_ordinary(self, count: int, generator: torch.Generator) -> Tensor:
        """Draws indices of ordinary rows."""
        return torch.randint(0, self.num_ordinary, (count,), generator=generator)

    def draw_large(self, count: int, generator: torch.Generator) -> Tensor:
        """Draws indices of rows with large random numbers."""
        return torch.randint(self.x.size(0) - self.num_large, self.x.size(0), (count,), generator=generator)
