"""How far rounding moves what a layer computes: one pure function for each kind of step.

Two numbers go along with each row h of a layer, both in float64:

* ``size``, at least the norm of h in exact arithmetic on the given weights, features and edge values;
* ``error``, at least the norm of the difference between h and what is computed.

Norms are Euclidean, and maximum norms in the layer that returns logits. Every function takes the bounds of its input
and returns those of its output. ``docs/rounding.md`` proves each of them from the standard model of rounding: a sum,
product, quotient or root is the exact one times 1 + d, with d at most ``unit``, plus t, with t at most ``tiny``. A sum
of k products in any order then errs by at most ``gamma(k)`` times the sum of their absolute values, plus ``4 k tiny``.
The last term also covers machines that take subnormal numbers for zero.

A bound that is infinite or NaN decides nothing. It is returned where a number might overflow.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, overload

import torch
from torch import Tensor

FUNCTION_UNITS = 4  # units by which exp, tanh, erf and roots may be wrong: twice what torch's vector library states
MOST_TERMS = 2**22  # terms of a sum from which on nothing is said: the bounds themselves are rounded
UP = 1 + 1e-9  # covers the rounding of the bounds themselves: fewer than MOST_TERMS + 100 operations in float64


@dataclass(frozen=True)
class Precision:
    """How a machine rounds.

    Attributes:
        dtype: Type of the numbers.
        unit: Largest relative error of an operation.
        tiny: At least the smallest normal number, hence the largest error of a number that is taken for zero.
        huge: Nothing that may become larger is bounded. Before a sum is divided by the number of its terms, it may be
            that many times larger, so this is far below the largest number.
    """

    dtype: torch.dtype
    unit: float
    tiny: float
    huge: float


SINGLE = Precision(torch.float32, 2.0**-24, 2.0**-126, 2.0**100)
# Weights and features may be given in float32, and be taken for zero when they are turned into float64.
DOUBLE = Precision(torch.float64, 2.0**-53, SINGLE.tiny, 2.0**990)


class Bounds(NamedTuple):
    """Bounds of the rows of a layer, float64, shape ``[num_rows]`` each.

    Attributes:
        size: At least the norm of each exact row.
        error: At least the norm of the difference between each computed row and the exact one.
    """

    size: Tensor
    error: Tensor

    @property
    def computed(self) -> Tensor:
        """At least the norm of each computed row."""
        return self.size + self.error


class WeightNorms(NamedTuple):
    """Norms of a weight, each rounded up.

    Attributes:
        signed: Largest factor by which the weight stretches a row.
        absolute: The same of the absolute values of its entries.
        inputs: Number of its columns.
        outputs: Number of its rows; 1 if maximum norms are meant.
        is_maximum: Whether its product is measured in the maximum norm, as that of the layer that returns logits.
    """

    signed: float
    absolute: float
    inputs: int
    outputs: int
    is_maximum: bool


@overload
def gamma(terms: Tensor, precision: Precision) -> Tensor: ...
@overload
def gamma(terms: float, precision: Precision) -> float: ...
def gamma(terms: Tensor | float, precision: Precision) -> Tensor | float:
    """Returns the relative error of a sum of k products, ``k u / (1 - k u)``; infinite if k is beyond the theory."""
    if not isinstance(terms, Tensor):
        product = terms * precision.unit
        return product / (1 - product) * UP if product < 0.5 and terms <= MOST_TERMS else math.inf
    products = terms.double() * precision.unit
    is_small = (products < 0.5) & (terms <= MOST_TERMS)
    return torch.where(is_small, products / (1 - products) * UP, torch.inf)


def _finished(size: Tensor, error: Tensor, largest: Tensor, precision: Precision) -> Bounds:
    """Returns bounds rounded up; nothing is bounded where a number in between may reach ``largest`` and overflow.

    The tensors of size and error are written to.
    """
    # Comparisons with NaN are false.
    if largest.numel() and not float(largest.amax()) < precision.huge:
        error = torch.where(largest < precision.huge, error, torch.inf)
    return Bounds(size.mul_(UP), error.mul_(UP))


def _underflow(operations: float, width: int, precision: Precision) -> float:
    """Returns the norm of a row of errors that come from results that are taken for zero."""
    return 4 * operations * math.sqrt(width) * precision.tiny


def after_linear(bounds: Bounds, terms: Tensor | float, norms: WeightNorms, precision: Precision) -> Bounds:
    """Returns the bounds of a product of rows with a weight.

    Args:
        bounds: The bounds of the rows.
        terms: How many entries of a row are not zero, at most.
        norms: The norms of the weight.
        precision: How the product is rounded.
    """
    largest = bounds.computed.mul_(norms.absolute)
    error = (bounds.error * norms.signed).add_(largest * gamma(terms, precision))
    # A weight that is subnormal may be taken for zero.
    lost = math.sqrt(norms.inputs * norms.outputs) * precision.tiny
    error.add_(bounds.computed, alpha=lost).add_(_underflow(norms.inputs, norms.outputs, precision))
    return _finished(bounds.size * norms.signed, error, largest, precision)


def after_rounding(product: Bounds, width: int, precision: Precision) -> Bounds:
    """Returns the bounds of numbers of a higher precision that are rounded once."""
    largest = product.computed
    error = torch.add(product.error, largest, alpha=precision.unit).add_(_underflow(1, width, precision))
    return _finished(product.size.clone(), error, largest, precision)


def after_bias(bounds: Bounds, bias: float, width: int, precision: Precision) -> Bounds:
    """Returns the bounds of rows to which a bias with this norm is added."""
    return after_sum([bounds], precision.unit, width, precision, bias)


def after_sum(
    parts: list[Bounds], relative: Tensor | float, width: int, precision: Precision, constant: float = 0.0
) -> Bounds:
    """Returns the bounds of a sum of rows.

    Each part already is a weighted sum with exact weights: ``sum(weight * size)`` and ``sum(weight * error)``.

    Args:
        parts: The bounds of the parts.
        relative: ``gamma`` of how many operations any term goes through: those that make its weight, its product, and
            all sums.
        width: Number of entries of a row.
        precision: How the sums are rounded.
        constant: Norm of a vector that is added to every row, and given exactly.
    """
    size = parts[0].size + constant
    error = parts[0].error.clone()
    for part in parts[1:]:
        size.add_(part.size)
        error.add_(part.error)
    largest = size + error
    # More terms than this are not bounded anyway. Each goes through fewer than 16 products and quotients.
    error.add_(largest * relative).add_(_underflow(16 * MOST_TERMS, width, precision))
    return _finished(size, error, largest, precision)


def scaled(bounds: Bounds, factor: Tensor | float) -> Bounds:
    """Returns the bounds of rows times an exact factor that is not negative."""
    return Bounds(bounds.size * factor * UP, bounds.error * factor * UP)


def joined(parts: list[Bounds]) -> Bounds:
    """Returns the bounds of rows side by side, or of their largest entries: nothing is rounded."""
    size = torch.stack([part.size for part in parts]).square().sum(dim=0).sqrt()
    error = torch.stack([part.error for part in parts]).square().sum(dim=0).sqrt()
    return Bounds(size * UP, error * UP)


def observed(bounds: Bounds, values: Tensor, precision: Precision) -> Bounds:
    """Returns bounds whose size follows from what was computed, where that says more.

    Args:
        bounds: The bounds.
        values: The rows that were computed.
        precision: How they, and their norms here, are rounded.
    """
    width = values.size(1)
    norm = torch.linalg.vector_norm(values, dim=1).double()
    seen = torch.add(bounds.error, norm, alpha=1 + 2 * (width + 8) * precision.unit)
    # Squares of small numbers are taken for zero.
    seen.add_(math.sqrt(2 * width * precision.tiny)).mul_(UP)
    return Bounds(torch.minimum(bounds.size, seen), bounds.error)


@dataclass(frozen=True)
class Activation:
    """A function that works on each number by itself, for which ``|f(x)| <= |x|``.

    Attributes:
        slope: How much further apart it can move two numbers.
        units: Units of rounding, relative to its argument, by which it errs.
        absolute_units: Units of rounding by which each number errs in addition.
    """

    slope: float = 1.0
    units: float = 0.0
    absolute_units: float = 0.0


RELU = Activation()
LEAKY_RELU = Activation(units=3)
TANH = Activation(units=FUNCTION_UNITS + 2)
ELU = Activation(units=1, absolute_units=FUNCTION_UNITS + 2)
GELU = Activation(slope=1.13, units=FUNCTION_UNITS + 8)
# Where exp(-x) overflows, the result is 0 instead of a number below 2**-120.
SILU = Activation(slope=1.1, units=FUNCTION_UNITS + 4, absolute_units=2.0**-60)


def after_activation(bounds: Bounds, activation: Activation, width: int, precision: Precision) -> Bounds:
    """Returns the bounds of rows after an activation."""
    if activation == RELU:  # which rounds nothing
        return bounds
    local = activation.units * precision.unit * bounds.computed
    local = local + (activation.absolute_units * precision.unit * math.sqrt(width) + _underflow(4, width, precision))
    return _finished(bounds.size.clone(), activation.slope * bounds.error + local, bounds.computed, precision)


def after_affine(bounds: Bounds, factor: float, shift: float, width: int, precision: Precision) -> Bounds:
    """Returns the bounds of ``(x - mean) / sqrt(variance + eps) * weight + bias`` with fixed statistics.

    Args:
        bounds: The bounds of x.
        factor: Largest absolute value of ``weight / sqrt(variance + eps)``.
        shift: Norm of that times the mean, plus the norm of the bias.
        width: Number of entries of a row.
        precision: How it is rounded.
    """
    largest = factor * bounds.computed + shift
    local = gamma(12, precision) * largest + _underflow(12 * max(1.0, factor), width, precision)
    return _finished(factor * bounds.size + shift, factor * bounds.error + local, largest, precision)


class RowStatistics(NamedTuple):
    """Statistics of computed rows, in float64.

    Attributes:
        deviation: At most the standard deviation of each row.
        root_mean_square: At least the root of the mean square of each row.
    """

    deviation: Tensor
    root_mean_square: Tensor

    @classmethod
    def of(cls, values: Tensor) -> "RowStatistics":
        """Measures rows."""
        rows = values.double()
        width = rows.size(1)
        root_mean_square = rows.square().mean(dim=1).sqrt() * UP
        deviation = (rows - rows.mean(dim=1, keepdim=True)).square().mean(dim=1).sqrt()
        slack = 4 * (width + 8) * DOUBLE.unit * root_mean_square + math.sqrt(2 * DOUBLE.tiny)
        return cls((deviation - slack).clamp(min=0.0), root_mean_square + slack)


class NormSettings(NamedTuple):
    """The settings of a norm of rows.

    Attributes:
        weight: Largest absolute value of its weight.
        bias: Norm of its bias.
        eps: What it adds to the variance.
    """

    weight: float
    bias: float
    eps: float


def after_layer_norm(
    bounds: Bounds, statistics: RowStatistics, settings: NormSettings, width: int, precision: Precision
) -> Bounds:
    """Returns the bounds of ``(x - mean) / sqrt(variance + eps) * weight + bias`` with the statistics of each row.

    The mean is computed first, then the mean of the squares of the differences from it.

    Args:
        bounds: The bounds of x.
        statistics: Statistics of the computed rows.
        settings: The settings of the norm.
        width: Number of entries of a row.
        precision: How it is rounded.
    """
    root = math.sqrt(width)
    deviation, mean_square = statistics
    # Along the way from the computed row to the exact one, the deviation moves by at most error / root.
    lowest = torch.sqrt((deviation - bounds.error / root).clamp(min=0.0).square() + settings.eps)
    moved = settings.weight * bounds.error / lowest
    spread = torch.sqrt(deviation.square() + settings.eps)  # of the computed row, at most
    sums = gamma(width + 3, precision)
    off_center = sums * mean_square + precision.unit * mean_square + 2 * precision.tiny
    off_variance = off_center * (2 * mean_square + off_center) + sums * (mean_square + off_center).square()
    relative = (off_variance + 2 * width * precision.tiny) / spread.square() + 3 * precision.unit
    relative = torch.where(relative < 0.5, relative / (1 - relative), torch.inf)
    relative = relative + gamma(FUNCTION_UNITS + 2, precision)
    local = settings.weight * root * (off_center / spread * (1 + relative) + relative)
    size = settings.weight * root + settings.bias
    largest = size + local
    local = local + gamma(4, precision) * largest + _underflow(4 * max(1.0, settings.weight), width, precision)
    largest = largest + width * (mean_square + off_center).square()  # the sum of the squares
    return _finished(torch.full_like(bounds.size, size), moved + local, largest, precision)


def after_readout(bounds: Bounds, count: Tensor, width: int, precision: Precision) -> Bounds:
    """Returns the bounds of sums or means of rows.

    Args:
        bounds: The sums, or means, of the bounds of the rows.
        count: How many rows are summed.
        width: Number of entries of a row.
        precision: How it is rounded.
    """
    return after_sum([bounds], gamma(count + 2, precision), width, precision)
