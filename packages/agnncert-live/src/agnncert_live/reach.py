"""How far the effect of a change reaches in the union of subgraphs, and what a vote depends on."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert_live.rows import Rows
from agnncert_live.union import Union

Array = npt.NDArray[Any]


class Way(NamedTuple):
    """One way to walk: the arcs at each copy, and the copy to which each arc leads."""

    arcs: Rows
    end: Array


class Upstream(NamedTuple):
    """What the votes of some copies depend on.

    Attributes:
        inner: Copies that need all their arriving arcs. The copies that were asked for come first.
        border: Copies at the other end of these arcs, which need no arcs of their own.
    """

    inner: Array
    border: Array


class Reach:
    """Walks through a union, many copies at a time.

    Args:
        union: The union.
        hops: How many edges messages travel over; None if that is unknown, so that whole components count.
    """

    def __init__(self, union: Union, hops: int | None) -> None:
        self.union = union
        self.hops = hops
        self._seen = np.zeros(0, dtype=np.int64)  # number of the last walk that has seen each copy
        self._place = np.zeros(0, dtype=np.int64)
        self._walk = 0

    def downstream(self, changed: Array) -> Array:
        """Returns the copies whose votes may alter, given those whose features or arcs have changed, these first.

        This is one hop more than messages travel after it, because layers may divide by the degree of the sender.
        """
        if self.hops is None:
            return self.component(changed)
        return self._spread(changed, [self._along_arcs], self.hops)

    def upstream(self, copies: Array) -> Upstream:
        """Returns the copies that some copies' votes depend on.

        Copies as far away as messages come from need their arcs too, because layers may divide by the degree of the
        sender. So the copies at the other end of these arcs have to be there, without arcs of their own.
        """
        if self.hops is None:
            everything = self.component(copies)
            return Upstream(everything, everything[:0])
        inner = self._spread(copies, [self._against_arcs], self.hops)
        senders = self.union.source[self.union.arriving.gather(inner)[0]]
        return Upstream(inner, self._not_seen(senders))

    def component(self, start: Array) -> Array:
        """Returns all copies connected with some, whichever way arcs point."""
        return self._spread(start, [self._along_arcs, self._against_arcs], None)

    @property
    def _along_arcs(self) -> Way:
        return Way(self.union.leaving, self.union.head)

    @property
    def _against_arcs(self) -> Way:
        return Way(self.union.arriving, self.union.source)

    def _spread(self, start: Array, ways: list[Way], hops: int | None) -> Array:
        self._walk += 1
        if len(self._seen) < self.union.num_copies:
            self._seen = np.zeros(len(self.union.subgraph_index), dtype=np.int64)
            self._place = np.zeros(len(self.union.subgraph_index), dtype=np.int64)
        level = self._not_seen(start)
        levels = [level]
        while len(level) and (hops is None or len(levels) <= hops):
            ends = [way.end[way.arcs.gather(level)[0]] for way in ways]
            level = self._not_seen(np.concatenate(ends))
            levels.append(level)
        return np.concatenate(levels)

    def _not_seen(self, copies: Array) -> Array:
        """Returns the copies that this walk has not seen, each once. From now on it has seen them."""
        new = copies[self._seen[copies] != self._walk].astype(np.int64)
        if len(new) > 1:  # of a copy that is named twice, the last place wins
            place = np.arange(len(new))
            self._place[new] = place
            new = new[self._place[new] == place]
        self._seen[new] = self._walk
        return np.asarray(new)
