"""Arrays as one compressed block that the scripts of a page unpack."""

import gzip
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ALIGNMENT = 8
COMPRESSION = 6  # the highest level takes five times as long for two per cent


def pack(arrays: dict[str, Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Compresses arrays into one block, each in the smallest type that holds its values, and lists their offsets."""
    places, block = [], bytearray()
    for name, array in arrays.items():
        small = _smallest(array)
        block.extend(bytes(-len(block) % ALIGNMENT))
        places.append({"name": name, "type": str(small.dtype), "offset": len(block), "length": small.size})
        block.extend(small.astype(small.dtype.newbyteorder("<")).tobytes())
    return places, gzip.compress(bytes(block), compresslevel=COMPRESSION, mtime=0)


def _smallest(array: Array) -> Array:
    if array.dtype == np.float64:
        return array
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.float64)
