"""Votes: the ballot of every target in every subgraph, stored as "all alike, except these".

A target without an edge in a subgraph casts the same ballot there as in every other such subgraph. So a
target's ``num_groups`` ballots are one *default* and a short list of exceptions; a graph of millions of nodes
with hundreds of subgraphs stays small. Knows no torch: certificates and their verifier read it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ABSTAIN = -1


@dataclass(frozen=True)
class Votes:
    """One ballot per target and subgraph; ``n`` targets, ``m`` listed ballots.

    Attributes:
        num_groups: Number of subgraphs T, hence ballots per target.
        num_classes: Number of classes.
        default: Ballot cast in every group that is not listed (a class, or ``ABSTAIN``), shape ``[n]``.
        default_stable: Whether that ballot is far enough from a tie to be the same on every machine, ``[n]``.
        indptr: Listed ballots of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        group: Subgraph of each listed ballot, ascending within a target, shape ``[m]``.
        ballot: The class voted for, or ``ABSTAIN``, shape ``[m]``.
        stable: As ``default_stable``, shape ``[m]``.
        reached: Whether the graph as it is reaches this ballot, shape ``[m]``: in the node task the target
            has an edge in that subgraph (``S_v``); in the node-centric graph task the subgraph can hold an
            edge. A ballot not reached moves only when something is *added*.
    """

    num_groups: int
    num_classes: int
    default: npt.NDArray[np.int16]
    default_stable: BoolArray
    indptr: IntArray
    group: npt.NDArray[np.int32]
    ballot: npt.NDArray[np.int16]
    stable: BoolArray
    reached: BoolArray

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.default)

    @property
    def owner(self) -> IntArray:
        """Target of each listed ballot, shape ``[m]``."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.indptr))

    def tally(self, listed: BoolArray | None = None, default: BoolArray | None = None) -> IntArray:
        """Votes per target and class (abstentions left out), shape ``[n, num_classes]``.

        Args:
            listed: Which listed ballots to count, shape ``[m]``; all when not given.
            default: Whether to count each target's unlisted ballots, shape ``[n]``; all when not given.
        """
        listed = np.ones(len(self.ballot), dtype=bool) if listed is None else listed
        default = np.ones(self.num_targets, dtype=bool) if default is None else default
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        cast = listed & (self.ballot >= 0)
        np.add.at(counts, (self.owner[cast], self.ballot[cast]), 1)
        voting = np.flatnonzero(default & (self.default >= 0))
        counts[voting, self.default[voting]] += self.num_unlisted[voting]
        return counts

    @property
    def counts(self) -> IntArray:
        """All votes as cast, shape ``[n, num_classes]``."""
        return self.tally()

    @property
    def num_unlisted(self) -> IntArray:
        """How many groups cast the default ballot, shape ``[n]``."""
        return self.num_groups - np.diff(self.indptr)

    def dense(self) -> npt.NDArray[np.int16]:
        """The full table of ballots, shape ``[n, num_groups]``; meant for tests and small graphs."""
        table = np.repeat(self.default[:, None], self.num_groups, axis=1)
        table[self.owner, self.group] = self.ballot
        return table
