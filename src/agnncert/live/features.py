"""Features of a live graph for the engine: products with a model's first weights are kept, and renewed row by row."""

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.voting.lazy_rows import Features, Shake, SparseRows

Array = npt.NDArray[Any]


class KeptFeatures(Features):
    """As ``Features``, of a matrix whose rows change: what was projected before is renewed for these rows alone.

    How rows are shaken differs from ``certify``, and may: any shaking within some units of rounding serves the guard.
    """

    def __init__(self, x: Tensor, sparse: SparseRows | None = None, shake: Shake | None = None) -> None:
        super().__init__(x, sparse, shake=shake)

    def copy(self, index: Tensor) -> Tensor:
        """``x[index]`` as an ordinary tensor of its own."""
        rows = self.x.index_select(0, index)
        return rows if self._shake is None else self._shake.table(rows)

    def shaken(self, shake: Shake) -> Features:
        """The same matrix, and its products with any weight, moved by a few units of rounding."""
        if shake not in self._shaken:
            self._shaken[shake] = KeptFeatures(self.x, self.sparse, shake)
        return self._shaken[shake]

    def forget_sparse(self) -> None:
        """Lets go of the compressed form, which would not know of rows that change."""
        for one in self._family():
            one.sparse = None

    def renew(self, x: Tensor, rows: Tensor) -> None:
        """Some rows have changed, or were added at the end.

        Args:
            x: The matrix as it is now.
            rows: Which rows are others than before.
        """
        for one in self._family():
            one.x = x
            fresh = Features(x.index_select(0, rows), shake=one._shake)
            for key, (weight, bias, product, _) in list(one._projected.items()):
                if len(product) < len(x):
                    product = torch.cat([product, product.new_zeros(len(x) - len(product), product.size(1))])
                product[rows] = fresh._linear(weight.t() if key[2] else weight, bias)
                one._projected[key] = (weight, bias, product, product)

    def kept(self) -> int:
        """How many numbers are kept besides the matrix."""
        return sum(product.numel() for one in self._family() for _, _, product, _ in one._projected.values())

    def _family(self) -> "list[Features]":
        return [self, *self._shaken.values()]
