"""Ids for injected nodes. Groups are hashes of ids, so an attacker who may choose ids chooses groups."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from agnncert import hashing
from agnncert.attacks.edits import Edit
from agnncert.division import EdgeCentric, NodeCentric
from agnncert.votes import IntArray


class FreshIds:
    """Unused ids of one graph.

    Args:
        keys: Keys of its nodes.
        chosen: Whether nodes have ids of their own, so that new ones can be chosen; else row numbers go on.
        count: How many to look at.
    """

    def __init__(self, keys: Tensor, chosen: bool, count: int) -> None:
        self.chosen = chosen
        first = len(keys)
        some = np.arange(first, first + count + len(keys) if chosen else first + count, dtype=np.int64)
        self.ids: IntArray = some[~np.isin(some, keys.numpy())][:count]

    def node_groups(self, division: NodeCentric) -> IntArray:
        """Group of every id in the node-centric division, shape ``[count]``."""
        return hashing.node_groups(self.ids.view(np.uint64), division.num_groups, division.hash)

    def pair_groups(self, division: EdgeCentric, keys: Tensor) -> npt.NDArray[np.int64]:
        """Group of the pair of every id and every given key, shape ``[count, len(keys)]``."""
        mine = np.repeat(self.ids, len(keys)).view(np.uint64)
        theirs = np.tile(keys.numpy(), len(self.ids)).view(np.uint64)
        return hashing.edge_groups(mine, theirs, division.num_groups, division.hash).reshape(
            len(self.ids), len(keys)
        )

    def complete(self, edits: Sequence[Edit]) -> list[Edit]:
        """The edits in an order in which their nodes can be injected; row numbers that were left out get a node too."""
        ordered = sorted(edits, key=lambda edit: int(edit.new_id or 0) if edit.new is not None else -1)
        used = {edit.new_id for edit in edits if edit.new is not None}
        if self.chosen or not used:
            return ordered
        gaps = [
            int(i) for i in self.ids if i < max(int(u) for u in used if u is not None) and int(i) not in used
        ]
        ordered += [Edit("inject_nodes", new=0, new_id=i) for i in gaps]
        return sorted(ordered, key=lambda edit: int(edit.new_id or 0) if edit.new is not None else -1)


def pair_groups_of(division: EdgeCentric, key: Tensor, others: Tensor) -> IntArray:
    """Group of the pairs of one key and others in the edge-centric division, shape ``[len(others)]``."""
    theirs = others.contiguous().numpy().view(np.uint64)
    mine = np.repeat(key.reshape(1).numpy().view(np.uint64), len(theirs))
    return hashing.edge_groups(mine, theirs, division.num_groups, division.hash)
