"""How far a change reaches within a subgraph: which ballots it may alter, and what these depend on.

A model that is local *by construction* is a stack of layers that were read: messages follow arcs, so after ``hops``
layers nothing is known of what lies further up the arcs, nor does it reach further down them. Of any other model that
passed the audit it is known only that it looks along edges: there the connected component is what counts.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

from agnncert.live.rows import Rows
from agnncert.live.union import Union
from agnncert.models import gnn

Array = npt.NDArray[Any]

_STACKS = (gnn.NodeGNN, gnn.WeightedNodeGNN, pyg.GCN, pyg.GraphSAGE, pyg.GIN, pyg.GAT)
_SEVERAL = (pyg.SGConv, pyg.TAGConv, pyg.APPNP)  # pass messages K times


def hops_of(model: Any, locality: str) -> int | None:
    """How many arcs a message can travel before the ballot is cast; None if nobody has counted.

    Args:
        model: The module.
        locality: What the audit says: ``"construction"`` if every layer of it was read.
    """
    if locality != "construction":
        return None
    if isinstance(model, MessagePassing):
        return _hops_of_layer(model)
    if type(model) not in _STACKS:
        return None
    return sum(_hops_of_layer(layer) for layer in model.convs if isinstance(layer, MessagePassing))


def _hops_of_layer(layer: Any) -> int:
    return int(layer.K) if isinstance(layer, _SEVERAL) else 1


class Reach:
    """Walks through a union, many copies at a time. What one walk has seen is marked with its number."""

    def __init__(self, union: Union, hops: int | None) -> None:
        self.union, self.hops = union, hops
        self._seen, self._place = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._walk = 0

    def downstream(self, changed: Array) -> Array:
        """Copies whose ballots may alter, the changed ones first, given those whose features or arcs have changed.

        One hop more than messages travel after it: layers may divide by the degree of the node that sends.
        """
        if self.hops is None:
            return self.component(changed)
        return self._spread(changed, [(self.union.leaving, self.union.head)], self.hops)

    def upstream(self, asked: Array) -> tuple[Array, int]:
        """Copies that some copies' ballots depend on, and how many of them, the first ones, need all their arcs.

        Those that are as far away as messages come from need their arcs too, because layers may divide by the degree of
        the node that sends; so the copies at the other end of these arcs have to be there, without arcs of their own.
        """
        if self.hops is None:
            everything = self.component(asked)
            return everything, len(everything)
        inner = self._spread(asked, [(self.union.arriving, self.union.source)], self.hops)
        border = self._fresh(self.union.source[self.union.arriving.gather(inner)[0]])
        return np.concatenate([inner, border]), len(inner)

    def component(self, start: Array) -> Array:
        """All copies connected with some, whichever way arcs point."""
        both = [(self.union.leaving, self.union.head), (self.union.arriving, self.union.source)]
        return self._spread(start, both, None)

    def _spread(self, start: Array, along: list[tuple[Rows, Array]], hops: int | None) -> Array:
        self._walk += 1
        if len(self._seen) < self.union.num_copies:
            self._seen, self._place = (np.zeros(len(self.union.cell), dtype=np.int64) for _ in range(2))
        levels = [self._fresh(start)]
        while len(levels[-1]) and (hops is None or len(levels) <= hops):
            ends = [end[arcs.gather(levels[-1])[0]] for arcs, end in along]
            levels.append(self._fresh(ends[0] if len(ends) == 1 else np.concatenate(ends)))
        return np.concatenate(levels)

    def _fresh(self, copies: Array) -> Array:
        """Those that this walk has not seen, each once; from now on it has."""
        new = copies[self._seen[copies] != self._walk].astype(np.int64)
        if len(new) > 1:  # of a copy that is named twice, the last place wins
            place = np.arange(len(new))
            self._place[new] = place
            new = new[self._place[new] == place]
        self._seen[new] = self._walk
        return np.asarray(new)
