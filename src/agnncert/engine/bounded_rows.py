"""``BoundedRows``: rows that were computed, with bounds on their errors; and products of features, in float64."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from agnncert.engine.error_bounds import DOUBLE, UP, Bounds, Precision, WeightNorms, after_linear, after_rounding

NUMBERS_AT_A_TIME = 2**17  # numbers that are turned into float64 together: they stay in the processor's cache


@dataclass(frozen=True)
class BoundedRows:
    """Rows of a layer.

    Attributes:
        values: What was computed, shape ``[num_rows, width]``.
        bounds: Bounds on the size and on the error of each row.
    """

    values: Tensor
    bounds: Bounds

    @property
    def width(self) -> int:
        """Number of entries of a row."""
        return self.values.size(1)

    def select(self, index: Tensor) -> "BoundedRows":
        """Returns some of the rows."""
        size, error = self.bounds
        return BoundedRows(
            self.values.index_select(0, index), Bounds(size.index_select(0, index), error.index_select(0, index))
        )

    def renewed(self, index: Tensor, rows: "BoundedRows", num_rows: int) -> "BoundedRows":
        """Returns the same with some rows replaced, and more rows at the end if there are to be more.

        Args:
            index: Which rows are replaced.
            rows: What by.
            num_rows: How many rows there are then, at least as many as now.
        """
        more = num_rows - len(self.values)
        values = torch.cat([self.values, self.values.new_zeros(more, self.width)])
        values[index] = rows.values
        size = torch.cat([self.bounds.size, self.bounds.size.new_zeros(more)])
        size[index] = rows.bounds.size
        error = torch.cat([self.bounds.error, self.bounds.error.new_zeros(more)])
        error[index] = rows.bounds.error
        return BoundedRows(values, Bounds(size, error))


def exact_rows(x: Tensor, precision: Precision) -> BoundedRows:
    """Returns rows that are given, not computed; a subnormal entry may still be taken for zero."""
    size = x.double().norm(dim=1) * UP
    lost = math.sqrt(x.size(1)) * precision.tiny
    return BoundedRows(x.to(precision.dtype), Bounds(size, torch.full_like(size, lost)))


def project_rows(
    x: Tensor, compressed: Tensor | None, weight: Tensor, norms: WeightNorms, precision: Precision = DOUBLE
) -> BoundedRows:
    """Returns ``x @ weight.t()``, computed in float64 and rounded once, with bounds.

    Args:
        x: Features, shape ``[num_rows, num_features]``.
        compressed: The same in compressed rows, if they are sparse.
        weight: The weight.
        norms: Its norms, which say whether errors are measured in the maximum norm.
        precision: What the product is rounded to. By default it stays in float64.
    """
    factor = weight.detach().double().t().contiguous()
    if compressed is not None:
        product, length, terms = _sparse_product(compressed, factor)
        return rounded_rows(_bounded_product(product, length, terms, x.size(1), norms), norms, precision)
    values = torch.empty(x.size(0), factor.size(1), dtype=precision.dtype)
    size, error = torch.empty(2, x.size(0), dtype=torch.float64)
    step = max(1, NUMBERS_AT_A_TIME // max(1, x.size(1)))
    for first in range(0, x.size(0), step):
        some = slice(first, first + step)
        rows = x[some].double()
        length = torch.linalg.vector_norm(rows, dim=1)
        product_of_some = _bounded_product(rows @ factor, length, x.size(1), x.size(1), norms)
        block = rounded_rows(product_of_some, norms, precision)
        values[some] = block.values
        size[some], error[some] = block.bounds
    return BoundedRows(values, Bounds(size, error))


def _bounded_product(
    product: Tensor, length: Tensor, terms: Tensor | float, num_features: int, norms: WeightNorms
) -> BoundedRows:
    """Returns a product in float64 with its bounds.

    Args:
        product: The product.
        length: Norms of the rows that were multiplied.
        terms: How many entries of each of these are not zero, at most.
        num_features: Number of entries of each of these.
        norms: Norms of the weight.
    """
    lost = math.sqrt(num_features) * DOUBLE.tiny
    bounds = after_linear(Bounds(length * UP, torch.full_like(length, lost)), terms, norms, DOUBLE)
    seen = product.abs().amax(dim=1) if norms.is_maximum else torch.linalg.vector_norm(product, dim=1)
    return BoundedRows(
        product, Bounds(torch.minimum(bounds.size, (seen + bounds.error) * UP + 2.0**-500), bounds.error)
    )


def rounded_rows(rows: BoundedRows, norms: WeightNorms, precision: Precision) -> BoundedRows:
    """Returns rows in float64, rounded once to a precision.

    Args:
        rows: The rows.
        norms: Norms of the weight that they are a product with.
        precision: What they are rounded to.
    """
    if precision is DOUBLE:
        return rows
    return BoundedRows(rows.values.to(precision.dtype), after_rounding(rows.bounds, norms.outputs, precision))


def _sparse_product(compressed: Tensor, factor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the product of compressed rows with a matrix, and the norm and number of entries of each row."""
    rows = compressed.double()
    terms = torch.diff(compressed.crow_indices())
    owner = torch.repeat_interleave(torch.arange(len(terms)), terms)
    squares = torch.zeros(len(terms), dtype=torch.float64).index_add_(0, owner, rows.values().square())
    return rows @ factor, squares.sqrt(), terms
