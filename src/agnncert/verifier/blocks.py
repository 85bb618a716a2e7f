"""Cuts targets into blocks that are worked on one after the other, so that memory is bounded."""

import numpy as np

from agnncert.certificates.votes import IntArray


def cut(entries: IntArray, at_once: int) -> list[slice]:
    """Returns consecutive targets with up to ``at_once`` entries together, or one target if it has more.

    Args:
        entries: Number of entries of each target, shape ``[n]``.
        at_once: The most entries of a block.
    """
    ends = np.concatenate([[0], np.cumsum(entries)])
    blocks = []
    start = 0
    while start < len(entries):
        last = int(np.searchsorted(ends, ends[start] + at_once, side="right")) - 1
        stop = min(max(last, start + 1), len(entries))
        blocks.append(slice(start, stop))
        start = stop
    return blocks
