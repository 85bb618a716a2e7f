"""Sums over the incoming edges of every node, and the same of bounds."""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.engine.error_bounds import UP, Bounds


@dataclass(frozen=True)
class Arcs:
    """Edges, sorted by head.

    Attributes:
        source: Row that each edge comes from.
        head: Row that it leads to, ascending.
        num_rows: Number of rows.
        order: Position of each edge among those that were given; ``None`` if they were sorted.
    """

    source: Tensor
    head: Tensor
    num_rows: int
    order: Tensor | None

    @classmethod
    def of(cls, edge_index: Tensor, num_rows: int) -> "Arcs":
        """Sorts edges by head."""
        source, head = edge_index.long()
        if bool((head[1:] >= head[:-1]).all()):
            return cls(source.contiguous(), head.contiguous(), num_rows, None)
        order = torch.argsort(head, stable=True)
        return cls(source[order], head[order], num_rows, order)

    def sorted(self, value: Tensor) -> Tensor:
        """Returns what edges carry, in the order of this object."""
        return value if self.order is None else value[self.order]

    @cached_property
    def degree(self) -> Tensor:
        """Number of incoming edges of each row."""
        return torch.bincount(self.head, minlength=self.num_rows)

    @cached_property
    def most(self) -> int:
        """The largest number of incoming edges."""
        return int(self.degree.max()) if self.num_rows else 0

    @cached_property
    def _starts(self) -> Tensor:
        return torch.cumsum(self.degree, 0) - self.degree

    def total(self, rows: Tensor, weight: Tensor | None = None) -> Tensor:
        """Returns for each row the sum of the rows that its edges come from, each times the weight of its edge."""
        if len(self.source) == 0:
            return rows.new_zeros(self.num_rows, rows.size(1))
        return F.embedding_bag(self.source, rows, self._starts, mode="sum", per_sample_weights=weight)

    def spread(self, bounds: Bounds, weight: Tensor | None = None) -> Bounds:
        """Returns the sums of bounds, each times the absolute weight of its edge, float64."""
        total = self.total(torch.stack(bounds, dim=1), weight)
        return Bounds(total[:, 0] * UP, total[:, 1] * UP)

    def largest(self, value: Tensor) -> Tensor:
        """Returns for each row the largest value among its edges, given one value that is not negative for each."""
        return value.new_zeros(self.num_rows).scatter_reduce_(0, self.head, value, "amax")
