"""``Entries``: the non-zero features of sparse data, which are found in one pass."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.graphs.checks import WIDE

SPARSE_BELOW = 0.1  # share of non-zeros below which a sparse product is faster than a dense one on a CPU
CHUNK = 2**18  # numbers that are searched at once: they stay in the processor's cache


@dataclass(frozen=True)
class Entries:
    """The non-zero entries of a matrix, unless there are too many.

    Attributes:
        position: Position of each entry, counted row by row, ascending.
        value: Value of each entry.
        is_sparse: Whether all non-zero entries are listed; otherwise there are too many, and none is listed.
    """

    position: npt.NDArray[np.int64]
    value: Tensor
    is_sparse: bool = True

    @classmethod
    def of(cls, x: Tensor) -> Self:
        """Finds the non-zero entries of a matrix, if a sparse product is worth it."""
        most = int(SPARSE_BELOW * x.numel()) if x.numel() else -1
        return cls.all_of(x, most)

    @classmethod
    def all_of(cls, x: Tensor, most: float = math.inf) -> Self:
        """Finds all non-zero entries of a matrix.

        Args:
            x: The matrix.
            most: How many there may be; if there are more, none is listed. Defaults to no limit.
        """
        flat = x.detach().cpu().contiguous().view(-1)
        positions = [np.zeros(0, dtype=np.int64)]
        values = [flat[:0]]
        count = 0
        for first in range(0, len(flat), CHUNK):
            chunk = flat[first : first + CHUNK]
            inside = np.flatnonzero(_is_nonzero(chunk))
            values.append(chunk.index_select(0, torch.from_numpy(inside)))  # while the chunk is in the cache
            positions.append(inside + first)
            count += len(inside)
            if count > most:
                return cls(positions[0], values[0], is_sparse=False)
        return cls(np.concatenate(positions), torch.cat(values), is_sparse=count <= most)

    @property
    def finite(self) -> bool:
        """Whether all entries are listed and finite, so that the matrix is known to be finite."""
        return self.is_sparse and bool(torch.isfinite(self.value).all())


def _is_nonzero(chunk: Tensor) -> npt.NDArray[np.bool_]:
    """Tells which numbers are not zero; numpy compares twice as fast as torch, but it does not have all types."""
    if chunk.dtype in WIDE:
        return np.asarray(chunk.numpy() != 0)
    return (chunk != 0).numpy()


def find_entries(x: object) -> Entries | None:
    """Finds the non-zero entries of features as the user gave them.

    Returns:
        The entries, or ``None`` if the features are not a dense matrix of wide floats in main memory.
    """
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2:
        return None
    if x.dtype not in WIDE or x.device.type != "cpu":
        return None
    return Entries.of(x)
