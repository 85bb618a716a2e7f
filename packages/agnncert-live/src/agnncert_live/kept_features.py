"""``KeptFeatures``: products of the features with the model's first weights, which are updated row by row."""

import torch
from torch import Tensor

from agnncert.engine.bounded_rows import project_rows, rounded_rows
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.rounding_noise import RoundingNoise


class KeptFeatures(Features):
    """The ``Features`` of a matrix whose rows change: products that were computed are renewed for these rows alone.

    The noise of rows differs from that of ``certify``, and may: any within some units of rounding serves the guard.
    """

    def __init__(self, x: Tensor, sparse: SparseRows | None = None, noise: RoundingNoise | None = None) -> None:
        super().__init__(x, sparse, noise=noise)

    def copy(self, index: Tensor) -> Tensor:
        """Returns ``x[index]`` as an ordinary tensor."""
        rows = self.x.index_select(0, index)
        if self.noise is None:
            return rows
        return self.noise.perturb_table(rows)

    def with_noise(self, noise: RoundingNoise) -> Features:
        """Returns the same matrix, and its products with any weight, moved by a few units of rounding."""
        if noise not in self._noisy:
            self._noisy[noise] = KeptFeatures(self.x, self.sparse, noise)
        return self._noisy[noise]

    def forget_sparse(self) -> None:
        """Lets go of the compressed form, which would not know of rows that change."""
        for features in self._all_noises():
            features.sparse = None

    def renew(self, x: Tensor, rows: Tensor) -> None:
        """Replaces some rows, or adds rows at the end.

        Args:
            x: The matrix as it is now.
            rows: Which rows differ from before.
        """
        for features in self._all_noises():
            features.x = x
            changed = Features(x.index_select(0, rows), noise=features.noise)
            for key, projection in list(features._projections.items()):
                weight = projection.weight.t() if projection.transposed else projection.weight
                product = projection.product
                missing = len(x) - len(product)
                if missing > 0:
                    product = torch.cat([product, product.new_zeros(missing, product.size(1))])
                product[rows] = changed._linear(weight, projection.bias)
                features._projections[key] = projection._replace(product=product, leaf=product)
            for bounded_key, bounded in list(features._bounded.items()):
                changed_product = project_rows(changed.x, None, bounded.weight, bounded.norms)
                new = rounded_rows(changed_product, bounded.norms, bounded.precision)
                features._bounded[bounded_key] = bounded._replace(rows=bounded.rows.renewed(rows, new, len(x)))

    def num_kept(self) -> int:
        """Returns how many numbers are kept in addition to the matrix."""
        products = [
            projection.product for features in self._all_noises() for projection in features._projections.values()
        ]
        products += [bounded.rows.values for bounded in self._bounded.values()]
        return sum(product.numel() for product in products)

    def _all_noises(self) -> list[Features]:
        return [self, *self._noisy.values()]
