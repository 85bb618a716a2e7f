"""``UnusedIds``: ids that injected nodes can have."""

import numpy as np
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.divisions.node import NodeCentric
from agnncert.graphs import hashing


class UnusedIds:
    """The first ``count`` ids that no node of one graph has, ascending, as ``ids``.

    ``keys`` are the keys of its nodes. An id that equals the key of a string is left out too. With ``any_order`` a new
    node may have any of them. Otherwise row numbers are the ids, and a new node gets the next one.
    """

    def __init__(self, keys: Tensor, any_order: bool, count: int) -> None:
        self.any_order = any_order
        first = len(keys)
        last = first + count
        if any_order:
            last += len(keys)  # this many of them may be used
        ids = np.arange(first, last, dtype=np.int64)
        self.ids: IntArray = ids[~np.isin(ids, keys.numpy())][:count]

    def node_groups(self, division: NodeCentric) -> IntArray:
        """Returns the group of every id in the node-centric division, shape ``[count]``."""
        return hashing.node_groups(self.ids.view(np.uint64), division.num_groups, division.hash)
