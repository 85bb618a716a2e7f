"""Memory that one range of groups leaves behind, kept for the next one.

Hidden layers of a large subgraph are hundreds of megabytes each. The C library fetches blocks of that size from the
system and gives them back at once, and the system clears every page anew: on the graph of 62 million edges that took
more time than computing. While many large subgraphs are voted on, such blocks come from the heap, and stay there.
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
