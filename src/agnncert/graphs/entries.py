"""The entries of a feature matrix that are not zero, if these are few: found in one walk through the matrix.

Bag-of-words features are zeros but for one per cent. What is done with the others alone, a check or a product, costs
next to nothing; to find them takes as long as to read the matrix, so that is done once.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

# Below this share of non-zeros a sparse product beats the dense one on a CPU.
SPARSE_BELOW = 0.1
BLOCK = 2**18  # numbers that are looked at together: they stay in the processor's cache
_OF_NUMPY = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Entries:
    """What is not zero in a matrix, or nothing if that is too much.

    Attributes:
        place: Where, counted row by row, ascending.
        value: What stands there.
        few: Whether these are all of them; else there are too many, and none is listed.
    """

    place: npt.NDArray[np.int64]
    value: Tensor
    few: bool = True

    @classmethod
    def of(cls, x: Tensor) -> Self:
        """The entries of a matrix, if they are few enough to gain from it."""
        most = int(SPARSE_BELOW * x.numel())
        some = x[:: max(1, x.size(0) // 64)] if x.numel() else x
        crowded = torch.count_nonzero(some) > SPARSE_BELOW / 2 * some.numel() and _are_more(x, most)
        found = cls.all_of(x[:0] if crowded else x, most)
        return found if x.numel() and not crowded and len(found.place) <= most else cls.all_of(x[:0], few=False)

    @classmethod
    def all_of(cls, x: Tensor, most: float = math.inf, few: bool = True) -> Self:
        """All entries, however many; the search ends when they are more than ``most``."""
        flat, count = x.detach().cpu().contiguous().view(-1), 0
        places, values = [np.zeros(0, dtype=np.int64)], [flat[:0]]
        for first in range(0, len(flat), BLOCK):
            part = flat[first : first + BLOCK]
            # numpy compares twice as fast as torch, but does not have all of its types
            here = np.flatnonzero(part.numpy() != 0 if part.dtype in _OF_NUMPY else (part != 0).numpy())
            values.append(part.index_select(0, torch.from_numpy(here)))  # as long as the block is in the cache
            places.append(here + first)
            count += len(here)
            if count > most:
                break
        return cls(np.concatenate(places), torch.cat(values), few)

    @property
    def finite(self) -> bool:
        """Whether the matrix is known to hold nothing but numbers: no NaN, no infinity."""
        return self.few and bool(torch.isfinite(self.value).all())


def _are_more(x: Tensor, most: int) -> bool:
    """Whether more than so many entries are not zero: counted, which is much faster than to list them."""
    flat, count = x.detach().cpu().contiguous().view(-1), 0
    for part in torch.split(flat, BLOCK):
        here = part.numpy() != 0 if part.dtype in _OF_NUMPY else (part != 0).numpy()
        count += int(np.count_nonzero(here))
        if count > most:
            return True
    return False


def sought(x: Any) -> Entries | None:
    """The entries of features as a user gave them, if they can be used as they are."""
    usable = isinstance(x, Tensor) and x.layout == torch.strided and x.dim() == 2 and x.dtype in _OF_NUMPY
    return Entries.of(x) if usable and x.device.type == "cpu" else None
