"""Keeps freed memory in the process while a large graph is certified in several ranges of groups.

glibc gets large blocks from the operating system and returns them as soon as they are freed; the system then has to
clear every page again for the next block. ``kept_heap`` changes this for the whole process (``mallopt``) until the last
range is done, because it saved 20 to 36 % of the CPU time of ``certify``, mostly system time: 6.7 to 7.6 instead of
9.5 to 11.4 seconds (three runs each) on a random graph of 120,000 nodes and 3 million directed edges; 2.7 instead of
3.4 (one run each) on one of 40,000 nodes and 1 million, with ``memory_limit`` at 64 MB so that it takes several ranges.
Measured with NodeCentric, T = 80, and a GCN of two layers and 128 channels, one thread, on a machine with other work.
Graphs that fit into one range (2 million directed edges without a memory limit) do not use it.
"""

import contextlib
import ctypes
from collections.abc import Iterator

# Parameters of mallopt(3), and what glibc arrives at by itself in a process that has freed a few large blocks.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_USUAL = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 2**25, _TRIM_THRESHOLD: 2**26}


@contextlib.contextmanager
def kept_heap() -> Iterator[None]:
    """Has the C library keep freed memory until the end. With another one than glibc nothing happens."""
    try:
        libc = ctypes.CDLL(None)
        mallopt, trim = libc.mallopt, libc.malloc_trim
    except (OSError, AttributeError, TypeError):  # musl, macOS; Windows
        yield
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        for parameter, value in _USUAL.items():
            mallopt(parameter, value)
        trim(0)
