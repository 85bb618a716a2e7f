"""Sums over the incoming edges of every row, and the same of bounds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.engine.error_bounds import SINGLE, UP, Bounds, Precision, gamma


class Sent(NamedTuple):
    """What rows send along edges.

    Attributes:
        values: Rows that were computed, shape ``[num_rows, width]``.
        bounds: Bounds on the size and the error of each row, float32, shape ``[num_rows, 2]``. They are not rounded up:
            :meth:`Arcs.spread` does that.
    """

    values: Tensor
    bounds: Tensor

    @classmethod
    def of(cls, values: Tensor, bounds: Bounds, scale: Tensor | None = None) -> "Sent":
        """Returns rows with their bounds, these times a factor for each row if there is one."""
        both = torch.stack(bounds, dim=1)
        return cls(values, (both if scale is None else both.mul_(scale[:, None])).float())


class Received(NamedTuple):
    """What the rows of a layer sent.

    Attributes:
        own: The rows that are being computed.
        all: All rows that edges come from.
    """

    own: Sent
    all: Sent


@dataclass(frozen=True)
class Arcs:
    """Edges, sorted by head.

    Attributes:
        source: Row that each edge comes from, among all rows that send.
        degree: Number of incoming edges of each row.
        order: Position of each edge among those that were given; ``None`` if they were sorted.
    """

    source: Tensor
    degree: Tensor
    order: Tensor | None = None
    _relative: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, edge_index: Tensor, num_rows: int) -> "Arcs":
        """Sorts edges by head."""
        source, head = edge_index.long()
        degree = torch.bincount(head, minlength=num_rows)
        if bool((head[1:] >= head[:-1]).all()):
            return cls(source, degree)
        order = torch.argsort(head, stable=True)
        return cls(source[order], degree, order)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.degree)

    @cached_property
    def head(self) -> Tensor:
        """Row that each edge leads to, ascending."""
        return torch.repeat_interleave(torch.arange(self.num_rows), self.degree, output_size=len(self.source))

    def sorted(self, value: Tensor) -> Tensor:
        """Returns what edges carry, in the order of this object."""
        return value if self.order is None else value[self.order]

    @property
    def without_loops(self) -> "Arcs":
        """The edges that lead to another row than they come from. All rows that send must be rows here.

        If there are no loops, this is the object itself. It does not keep itself: it would outlive its last user.
        """
        return self._others if self._has_loops else self

    @cached_property
    def _has_loops(self) -> bool:
        return bool((self.source == self.head).any())

    @cached_property
    def _others(self) -> "Arcs":
        is_edge = self.source != self.head
        return Arcs(self.source[is_edge], torch.bincount(self.head[is_edge], minlength=self.num_rows))

    @cached_property
    def most(self) -> int:
        """The largest number of incoming edges."""
        return int(self.degree.max()) if self.num_rows else 0

    @cached_property
    def starts(self) -> Tensor:
        """Position of the first edge of each row."""
        return torch.cumsum(self.degree, 0) - self.degree

    def relative(self, more: int, precision: Precision) -> Tensor:
        """Returns ``gamma`` of the number of edges of each row and some more operations; it is computed once."""
        key = (more, precision.dtype)
        if key not in self._relative:
            self._relative[key] = gamma(self.degree + more, precision)
        return self._relative[key]

    def total(self, rows: Tensor, weight: Tensor | None = None) -> Tensor:
        """Returns for each row the sum of the rows that its edges come from, each times the weight of its edge."""
        if len(self.source) == 0:
            return rows.new_zeros(self.num_rows, rows.size(1))
        return F.embedding_bag(self.source, rows, self.starts, mode="sum", per_sample_weights=weight)

    @cached_property
    def _rounded_up(self) -> Tensor:
        """What sums of bounds in float32 are multiplied by: bounds and weights are rounded, products and sums, too."""
        return (1 + gamma(self.degree + 4, SINGLE)) * UP

    def spread(self, bounds: Tensor, weight: Tensor | None = None, own: Tensor | None = None) -> Bounds:
        """Returns the sums of bounds, each times the absolute weight of its edge, float64.

        Args:
            bounds: The bounds that are sent, as in :class:`Sent`.
            weight: The weights. By default they are 1.
            own: Bounds that are added to the sum of each row, as in :class:`Sent`. By default none are.
        """
        total = self.total(bounds, None if weight is None else weight.float())
        total = total if own is None else total.add_(own)
        total = total.double().mul_(self._rounded_up[:, None])
        # What float32 takes for zero is less than this for each edge.
        heaviest = 1.0 if weight is None or len(weight) == 0 else max(1.0, float(weight.amax()))
        total.add_(2 * (self.most + 1) * heaviest * SINGLE.tiny)
        return Bounds(total[:, 0], total[:, 1])

    def largest(self, value: Tensor) -> Tensor:
        """Returns for each row the largest value among its edges, given one value that is not negative for each."""
        return value.new_zeros(self.num_rows).scatter_reduce_(0, self.head, value, "amax")
