"""Arrays that are kept in large blocks."""

import numpy as np
import pytest

from agnncert.engine import kept_arrays
from agnncert.engine.kept_arrays import KeptArrays


@pytest.mark.parametrize("block_bytes", [1, 24, 1000])
def test_kept_arrays_are_copies_that_do_not_touch_each_other(monkeypatch, block_bytes):
    monkeypatch.setattr(kept_arrays, "BLOCK_BYTES", block_bytes)
    random = np.random.default_rng(0)
    types = [np.int32, np.bool_, np.int16, np.int64]
    arrays = [random.integers(0, 2, size).astype(dtype) for size in (3, 0, 1, 7, 2) for dtype in types]
    kept = KeptArrays()
    copies = [kept.copy(array) for array in arrays]
    for array, copy in zip(arrays, copies, strict=True):
        assert copy.dtype == array.dtype
        assert np.array_equal(copy, array)
        assert not np.shares_memory(copy, array)
        assert copy.flags.aligned
    for number, copy in enumerate(copies):
        copy[:] = number % 2
    for number, copy in enumerate(copies):
        assert (copy == number % 2).all()


def test_arrays_that_fit_share_a_block():
    kept = KeptArrays()
    first, second = kept.copy(np.arange(3)), kept.copy(np.arange(5, dtype=np.int16))
    assert first.base is second.base
    assert first.base.nbytes == kept_arrays.BLOCK_BYTES
