"""``JoinedFeatures``: feature matrices one below the other, each of which is projected once however often it is used.

A worker holds the features of a range of nodes while it goes from group to group, and those of one group's senders.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import Bounds, Precision, WeightNorms
from agnncert.engine.features import Features
from agnncert.engine.rounding_noise import RoundingNoise

Rows = TypeVar("Rows")


class JoinedFeatures(Features):
    """Feature matrices one below the other.

    Args:
        parts: The matrices, of one type and width, in main memory.
    """

    def __init__(self, parts: Sequence[Features]) -> None:
        width = parts[0].x.size(1)
        self.parts = list(parts)
        sizes = torch.tensor([part.x.size(0) for part in parts])
        self._ends = torch.cumsum(sizes, 0)
        # Only its shape, type and device are looked at.
        stand_in = parts[0].x.new_zeros(1, width).expand(int(self._ends[-1]), width)
        super().__init__(stand_in)

    def copy(self, index: Tensor) -> Tensor:
        """Returns ``x[index]`` as an ordinary tensor of its own."""
        return self._gathered(index, lambda part, rows: part.copy(rows))

    def on(self, device: torch.device) -> "Features":
        """Returns the same matrices, with rows and projections on another device."""
        return self if device == self.device else JoinedFeatures([part.on(device) for part in self.parts])

    def with_noise(self, noise: RoundingNoise) -> "Features":
        """Returns the same matrices, with entries and products moved by rounding noise."""
        if noise not in self._noisy:
            self._noisy[noise] = JoinedFeatures([part.with_noise(noise) for part in self.parts])
        return self._noisy[noise]

    def project(self, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """Returns ``linear(x)``, or ``x @ weight`` if ``transposed``."""
        return torch.cat([part.project(weight, bias, transposed) for part in self.parts])

    def projected(self, index: Tensor, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """Returns rows of :meth:`project`."""
        return self._gathered(index, lambda part, rows: part.projected(rows, weight, bias, transposed))

    def bounded_projection(
        self, index: Tensor, weight: Tensor, norms: WeightNorms, precision: Precision
    ) -> BoundedRows:
        """Returns rows of ``x @ weight.t()`` with bounds on their errors."""
        chosen = self._chosen(index)
        found = [(where, part.bounded_projection(rows, weight, norms, precision)) for where, part, rows in chosen]
        if len(found) == 1:
            return found[0][1]
        count = index.numel()
        values = torch.empty(count, weight.size(0), dtype=precision.dtype)
        size, error = torch.empty(2, count, dtype=torch.float64)
        for where, rows in found:
            values[where], size[where], error[where] = rows.values, rows.bounds.size, rows.bounds.error
        return BoundedRows(values, Bounds(size, error))

    def _padded(self) -> "Features":
        if self._with_blank is None:
            blank = Features(self.x.new_zeros(1, self.x.size(1)), device=self.device)
            self._with_blank = JoinedFeatures([*self.parts, blank])
        return self._with_blank

    def _gathered(self, index: Tensor, take: Callable[[Features, Tensor], Tensor]) -> Tensor:
        chosen = self._chosen(index)
        found = [(where, take(part, rows)) for where, part, rows in chosen]
        if len(found) == 1:
            return found[0][1]
        first = found[0][1]
        gathered = first.new_empty(index.numel(), *first.shape[1:])
        for where, rows in found:
            gathered[where] = rows
        return gathered

    def _chosen(self, index: Tensor) -> list[tuple[Tensor, Features, Tensor]]:
        """Returns for each matrix that is asked for: where its rows are among those wanted, and which they are."""
        number = torch.searchsorted(self._ends, index, right=True)
        chosen = []
        for k, part in enumerate(self.parts):
            where = (number == k).nonzero().view(-1)
            if len(where):
                start = int(self._ends[k - 1]) if k else 0
                chosen.append((where, part, index[where] - start))
        return chosen or [(index, self.parts[0], index)]  # nothing is asked for
