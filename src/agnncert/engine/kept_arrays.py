"""``KeptArrays``: arrays that stay while larger ones come and go.

A program can give memory back only in whole stretches. If small arrays that stay were allocated between large ones that
go, the gaps would remain, and at millions of nodes there are as many gigabytes of gaps as of arrays. So what stays is
copied into large blocks that hold nothing else.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 2**26  # more than allocators cut out of a common stretch
ALIGNMENT = 8  # bytes of the largest number


class KeptArrays:
    """Arrays in large blocks. A block lasts as long as any of its arrays."""

    def __init__(self) -> None:
        self._block = np.empty(0, dtype=np.uint8)
        self._used = 0  # bytes of the block

    def copy(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns a copy of an array of one dimension that lies in a block."""
        begin = -(-self._used // ALIGNMENT) * ALIGNMENT
        if begin + array.nbytes > len(self._block):
            self._block = np.empty(max(BLOCK_BYTES, array.nbytes), dtype=np.uint8)
            begin = 0
        self._used = begin + array.nbytes
        kept: npt.NDArray[Any] = self._block[begin : self._used].view(array.dtype)
        kept[:] = array
        return kept
