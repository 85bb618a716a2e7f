"""The prior of a vote: with how many votes each class starts, target by target.

``recount`` does this a second time, in code that imports nothing from here.
"""

from dataclasses import dataclass

import numpy as np

from agnncert.proof.ballots import Ballots, IntArray
from agnncert.proof.rules import RULES


@dataclass(frozen=True)
class Prior:
    """Votes that are there before any ballot is cast, and that no attack can move.

    Attributes:
        certain: For each class, the same on every machine, shape ``[n, C]`` or ``[n, 1]``.
        followed: For each target's edgeless prediction, where another machine may see another one, ``[n, C]``.
        in_doubt: How many those are, shape ``[n]``.
    """

    certain: IntArray
    followed: IntArray
    in_doubt: IntArray

    @classmethod
    def none(cls, num_targets: int) -> "Prior":
        """No votes."""
        nothing = np.zeros((num_targets, 1), dtype=np.int64)
        return cls(nothing, nothing, np.zeros(num_targets, dtype=np.int64))

    @classmethod
    def of(cls, ballots: Ballots, part: slice) -> "Prior":
        """The prior of some targets."""
        n, vote = part.stop - part.start, ballots.vote
        own_constant = RULES[ballots.rule].own_groups and vote.constant is not None and vote.constant >= 0
        if not vote.class_prior and not own_constant and ballots.edgeless is None:
            return cls.none(n)
        certain, followed = (np.zeros((n, ballots.votes.num_classes), dtype=np.int64) for _ in range(2))
        in_doubt = np.zeros(n, dtype=np.int64)
        if vote.class_prior:
            certain += np.array(vote.class_prior)
        if own_constant:
            # Empty groups are beyond number: what counts is how many of them are not empty.
            certain[:, vote.constant] -= ballots.votes.num_groups
        if ballots.edgeless is not None and ballots.edgeless_stable is not None:
            stable = ballots.edgeless_stable[part]
            for votes, where in ((certain, stable), (followed, ~stable)):
                votes[np.flatnonzero(where), ballots.edgeless[part][where]] += vote.edgeless_prior
            in_doubt[~stable] = abs(vote.edgeless_prior)
        return cls(certain, followed, in_doubt)

    @property
    def votes(self) -> IntArray:
        """All of them as seen here."""
        return self.certain + self.followed
