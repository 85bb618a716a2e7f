"""Altered features and edge values: what an attacker could give one node or edge, beyond the data's range.

A model that asks about all values at once (is the largest above 2, as of bytes; is one column much larger than the
others) answers otherwise when a single lone node has such a row.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

SCALES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
FEW_SCALES = (2, 10, 100)  # for large graphs, where each row costs an evaluation
STEP = 1.03  # from size to size: a band that is narrower lies between two of them
SMALLEST = 1e-40  # a number so small that float32 keeps it with fewer digits
MOST_TIMES = 1e5  # the largest number of the data


@dataclass(frozen=True)
class AlteredRow:
    """A row of features, and how it was made of the data's.

    Attributes:
        name: How it was made, to be read after "features".
        row: The features, shape ``[num_features]``.
    """

    name: str
    row: Tensor


def altered_rows(x: Tensor, generator: torch.Generator, scales: tuple[int, ...] = SCALES) -> Iterator[AlteredRow]:
    """Yields altered rows: larger, negated, shifted, in one column alone, in another order of columns, zero, constant.

    Args:
        x: Rows of the data, shape ``[num_rows, num_features]``, finite.
        generator: Source of randomness.
        scales: How many times the largest number of ``x`` the largest number of a row is.
    """
    largest = _largest(x)
    row = x[int(x.abs().sum(dim=1).argmax())]
    unit = row / _largest(row)
    order = torch.randperm(x.size(1), generator=generator)
    column = int(torch.randint(0, x.size(1), (1,), generator=generator))
    yield AlteredRow("in another order of columns", row[order])
    yield AlteredRow("negated", -row)
    yield AlteredRow("of zeros", torch.zeros_like(row))
    yield AlteredRow("of negative zeros", -torch.zeros_like(row))
    yield AlteredRow("of the smallest numbers", torch.full_like(row, SMALLEST))
    yield AlteredRow("of one small number", torch.full_like(row, 1e-6 * largest))
    yield AlteredRow("of ones", torch.ones_like(row))
    yield AlteredRow("of whole numbers", torch.arange(1, len(row) + 1).to(row.dtype))
    yield AlteredRow("of one 1 and zeros", torch.zeros_like(row).index_fill(0, torch.tensor(column), 1.0))
    for scale in scales:
        size = scale * largest
        yield AlteredRow(f"{scale} times as large", unit.abs() * size)
        yield AlteredRow(f"negated and {scale} times as large", -unit.abs() * size)
        yield AlteredRow(f"shifted by {scale} times the largest", row + size)
        yield AlteredRow(f"shifted by {scale} times the largest, downwards", row - size)
        only = torch.zeros_like(row)
        only[column] = size
        yield AlteredRow(f"{scale} times the largest in one column", row + only)


def bands(x: Tensor) -> Iterator[Tensor]:
    """Yields pairs of rows of all sizes, one after the other: from the data's largest number to 100,000 times it.

    Args:
        x: Rows of the data, shape ``[num_rows, num_features]``, finite.

    Yields:
        Two rows, shape ``[2, num_features]``: one of the size, and a negative one of half the size.
    """
    row = x[int(x.abs().sum(dim=1).argmax())].abs()
    unit = row / _largest(row)
    for size in sizes(_largest(x)):
        yield torch.stack([unit * size, unit * (-size / 2)])


def sizes(largest: float) -> Iterator[float]:
    """Yields sizes from a number to 100,000 times it, each a little larger than the one before."""
    for k in range(math.ceil(math.log(MOST_TIMES) / math.log(STEP)) + 1):
        yield largest * STEP**k


def altered_values(values: Tensor, scales: tuple[int, ...] = SCALES) -> Iterator[Tensor]:
    """Yields values of one edge: several times the largest of the given values, positive and negative.

    Args:
        values: Values of edges, floating-point, shape ``[num_edges, ...]``, finite.
        scales: How many times the largest of ``values`` they are.
    """
    ones = torch.ones_like(values[0])
    largest = _largest(values)
    yield -largest * ones
    for scale in scales:
        yield scale * largest * ones
        yield -scale * largest * ones


def bands_of_values(values: Tensor) -> Iterator[Tensor]:
    """Yields values of one edge, of all sizes from the largest of the given values to 100,000 times it."""
    for size in sizes(_largest(values)):
        yield size * torch.ones_like(values[0])


def _largest(numbers: Tensor) -> float:
    """Returns the largest absolute value, or 1 if all are zero."""
    largest = float(numbers.abs().max()) if numbers.numel() else 0.0
    return largest or 1.0
