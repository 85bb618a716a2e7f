"""Upper bounds on the norms of weights, which hold although they are computed in floating point."""

import math

import torch
from torch import Tensor

from agnncert.engine.error_bounds import UP, WeightNorms

SQUARINGS = 7  # after which the bound is at most the 512th root of the number of rows too large


def weight_norms(weight: Tensor, is_output: bool) -> WeightNorms:
    """Returns the norms of a weight.

    Args:
        weight: The weight, shape ``[outputs, inputs]``.
        is_output: Whether its product is measured in the maximum norm, as that of the layer that returns logits.
    """
    exact = weight.detach().double()
    outputs, inputs = exact.shape
    if is_output:
        largest_row = largest_row_norm(exact)
        return WeightNorms(largest_row, largest_row, inputs, 1, is_maximum=True)
    return WeightNorms(spectral_norm(exact), spectral_norm(exact.abs()), inputs, outputs, is_maximum=False)


def largest_row_norm(weight: Tensor) -> float:
    """Returns at least the largest Euclidean norm of a row."""
    return float(weight.double().norm(dim=1).amax()) * UP if weight.numel() else 0.0


def vector_norm(vector: Tensor | None, is_output: bool) -> float:
    """Returns at least the Euclidean norm of a vector, or its maximum norm; 0 if there is none."""
    if vector is None or vector.numel() == 0:
        return 0.0
    exact = vector.detach().double()
    return float(exact.abs().amax()) if is_output else float(exact.norm()) * UP


def spectral_norm(weight: Tensor) -> float:
    """Returns at least the largest factor by which a matrix stretches a vector.

    For a symmetric matrix A, the norm of A is the root of that of A A, and at most its Frobenius norm.
    """
    exact = weight.double()
    if exact.numel() == 0:
        return 0.0
    tall = exact if exact.size(0) >= exact.size(1) else exact.t()
    gram = _symmetric(tall.t() @ tall)
    total = float(exact.norm()) * UP
    rounding = _product_error(tall.size(0)) * total**2
    return math.sqrt(_symmetric_norm(gram, SQUARINGS) + rounding) * UP


def _symmetric_norm(matrix: Tensor, squarings: int) -> float:
    """Returns at least the norm of a symmetric matrix."""
    size = float(matrix.norm()) * UP
    if squarings == 0 or not 0 < size < math.inf:
        return size
    part = matrix / size
    square = _symmetric(part @ part)
    return size * math.sqrt(_symmetric_norm(square, squarings - 1) + _product_error(len(matrix))) * UP


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.t()) / 2


def _product_error(terms: int) -> float:
    """Returns at least the Frobenius norm of the rounding of a product of matrices of Frobenius norm 1."""
    return (terms + 8) * torch.finfo(torch.float64).eps
