"""Every outcome of a small vote, by trying every vote that an attacker may choose: what ``possible`` is compared with."""

import itertools
import random
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.per_neighbour import Touches
from agnncert.proving.theorems import Counts, Facts, Limits

CLASSES, SIZE = 3, 4
ENDS = np.array(list(itertools.product(range(ABSTAIN, CLASSES), repeat=SIZE)))  # all votes of four votes
COUNTS = (ENDS[:, :, None] == np.arange(CLASSES)).sum(axis=1)


@dataclass(frozen=True)
class Vote:
    """Four votes of one target, the tier of each, which are stable, and the priors that machines may see."""

    votes: np.ndarray
    tier: np.ndarray
    stable: np.ndarray
    priors: list[list[int]]
    rule: VotingRule

    def tally(self) -> Counts:
        return self.evidence()._block(slice(0, 1))[0]

    def evidence(self) -> VoteEvidence:
        """Tiers as in the graph task; a prior that follows the prediction without edges needs all votes reached."""
        task = "node" if self.rule.no_edge_prior else "graph"
        listed = self.tier < 2
        votes = Votes(
            num_groups=SIZE,
            num_classes=CLASSES,
            default=np.array([ABSTAIN], dtype=np.int16),
            default_stable=np.array([True]),
            indptr=np.array([0, listed.sum()]),
            group=np.flatnonzero(listed).astype(np.int32),
            vote=self.votes[listed].astype(np.int16),
            stable=self.stable[listed],
            reached=self.tier[listed] == 0,
        )
        no_edge = {}
        if task == "node":
            own = int(np.flatnonzero(self.priors[0])[0])
            no_edge = {"no_edge": np.array([own], dtype=np.int16), "no_edge_stable": np.array([len(self.priors) == 1])}
        none = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32)
        return VoteEvidence(votes, f"node-centric/{task}", *none, voting_rule=self.rule, **no_edge)

    def outcomes(self, limits: tuple[int, int, int]) -> set[int]:
        """All winners: votes change as they like within the limits, what is unstable is anything."""
        changed = (self.votes != ENDS) & self.stable
        fits = [(changed & (self.tier >= t)).sum(axis=1) <= limit for t, limit in enumerate(limits)]
        allowed = np.logical_and.reduce(fits)
        return {int(k) for prior in self.priors for k in (COUNTS[allowed] + prior).argmax(axis=1)}


def random_vote(rng: random.Random, doubt: bool = True) -> Vote:
    """A vote of the graph task or, if a prior follows the prediction without edges, of the node task."""
    lean = rng.randrange(CLASSES)
    votes = np.array([rng.choice([lean, lean, *range(ABSTAIN, CLASSES)]) for _ in range(SIZE)])
    tier, follows = np.array([rng.choice([0, 0, 1, 2]) for _ in range(SIZE)]), rng.random() < 0.4
    stable = np.array([rng.random() > 0.15 * doubt for _ in range(SIZE)])
    if follows:
        weight, own, sure = rng.choice([1, 1, 2, 3]), rng.randrange(CLASSES), not doubt or rng.random() < 0.6
        seen = [own] if sure else [own, *range(CLASSES)]
        priors = [[weight * (k == f0) for k in range(CLASSES)] for f0 in seen]
        return Vote(votes, np.zeros(SIZE, dtype=np.int64), stable, priors, VotingRule("abstain", weight))
    votes, stable = np.where(tier == 2, ABSTAIN, votes), stable | (tier == 2)
    prior = [rng.choice([-1, 0, 0, 1, 2]) for _ in range(CLASSES)]
    return Vote(votes, tier, stable, [prior], VotingRule("abstain", prior))


def random_limits(rng: random.Random) -> tuple[int, int, int]:
    unlisted, middle, inner = (rng.choice([0, 0, 1, 2]) for _ in range(3))
    return unlisted + middle + inner, unlisted + middle, unlisted


def reach(limits: tuple[int, int, int]) -> Limits:
    return Limits(*(np.array([float(limit)]) for limit in limits), np.array([True]))


# Votes that come and go


KEPT, GONE = 0, 1  # what happens to a vote; then 2 + k: altered to k, 2 + CLASSES + k: turned to k


@dataclass(frozen=True)
class OwnVote:
    """Three votes of one target with a group for each neighbour, and what an attack does to them."""

    votes: tuple[int, ...]
    one_way: tuple[bool, ...]
    prior: tuple[int, ...]
    empty: int  # what empty groups cast, -1 for nothing
    new: int
    touched: int
    altered: int
    turned: int

    def tally(self) -> tuple[Counts, Touches, Facts]:
        votes, listed = np.zeros((3, 1, CLASSES), dtype=np.int64), np.array(self.votes)
        votes[0, 0] = (listed[:, None] == np.arange(CLASSES)).sum(axis=0)
        size, score = votes.sum(axis=2), votes[0] + np.array([self.prior])
        if self.empty >= 0:
            score[0, self.empty] -= len(listed)
        label = score.argmax(axis=1)
        margin = score[:, label] - score - (np.arange(CLASSES) < label[:, None])
        flags = np.array(self.one_way, dtype=bool)
        one_way = (listed[flags][:, None] == np.arange(CLASSES)).sum(axis=0)[None]
        facts = Facts(
            size[0],
            np.zeros(2, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
            {},
            self.empty,
            one_way,
            flags.sum()[None],
        )
        parts = (np.array([float(part)]) for part in (self.new, self.touched, self.altered, self.turned))
        return Counts(len(listed), label, votes, size, votes[0], margin), Touches(*parts, np.array([True])), facts

    def outcomes(self) -> set[int]:
        """All winners: each vote stays, goes, is altered or turned, and new ones are for any class."""
        found = set()
        for fate in itertools.product(range(2 + 2 * CLASSES), repeat=len(self.votes)):
            gone, turned = fate.count(GONE), [f >= 2 + CLASSES for f in fate]
            altered = sum(2 <= f < 2 + CLASSES for f in fate)
            if altered > self.altered or altered + gone > self.touched or sum(turned) > min(self.turned, self.new):
                continue
            if any(t and not one_way for t, one_way in zip(turned, self.one_way, strict=True)):
                continue
            kept = [b if f == KEPT else (f - 2) % CLASSES for b, f in zip(self.votes, fate, strict=True) if f != GONE]
            for number in range(self.new - sum(turned) + 1):
                for come in itertools.combinations_with_replacement(range(CLASSES), number):
                    cast = [*kept, *come]
                    scores = [self.prior[k] + cast.count(k) - len(cast) * (k == self.empty) for k in range(CLASSES)]
                    found.add(scores.index(max(scores)))
        return found


def random_own_vote(rng: random.Random) -> OwnVote:
    size, lean = rng.choice([1, 2, 3, 3]), rng.randrange(CLASSES)
    altered, turned = rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 1])
    return OwnVote(
        votes=tuple(rng.choice([lean, *range(CLASSES)]) for _ in range(size)),
        one_way=tuple(rng.random() < 0.6 for _ in range(size)),
        prior=tuple(rng.choice([-2, -1, 0, 1, 2, 3]) for _ in range(CLASSES)),
        empty=rng.choice([-1, -1, 0, 1, 2]),
        new=turned + rng.choice([0, 0, 1]),
        touched=altered + rng.choice([0, 0, 1, 2]),
        altered=altered,
        turned=turned,
    )


CORNERS = (  # what random votes hardly ever meet
    OwnVote((1, 1), (False, False), (-2, -1, 3), empty=2, new=0, touched=2, altered=2, turned=0),
    OwnVote((0,), (False,), (0, 0, 1), empty=-1, new=1, touched=0, altered=0, turned=1),
)
