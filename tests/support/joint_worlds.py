"""Small worlds of training labels and neighbours, in which every attack can be tried; and larger records at random."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agnncert.labels.joint_evidence import JointEvidence
from tests.support.label_cases import factored

NO_LABEL = -1


def best(values):
    """The first of the largest numbers."""
    return int(np.flatnonzero(values == values.max())[0])


@dataclass
class World:
    """One target with its own weights, and other nodes with theirs, some of which are neighbours."""

    weights: np.ndarray  # of the target
    theirs: np.ndarray  # of the other nodes
    y: np.ndarray
    num_classes: int
    each: int
    near: list
    audited: np.ndarray
    advance: tuple
    least_lead: int = 0

    ABSTAINED: ClassVar[str] = "abstained"

    @classmethod
    def random(cls, rng):
        num_classes = int(rng.integers(2, 4))
        num_labels, num_others = int(rng.integers(4, 8)), 4
        favourite = int(rng.integers(0, num_classes))  # most labels agree, else nothing is certified
        strays = rng.random(num_labels) < 0.2
        return cls(
            weights=rng.choice([-1, 1, 1, 1, 2], num_labels),
            theirs=rng.choice([-1, 1, 1, 1, 2], (num_others, num_labels)),
            y=np.where(strays, rng.integers(NO_LABEL, num_classes, num_labels), favourite),
            num_classes=num_classes,
            each=int(rng.integers(0, 4)),
            near=np.flatnonzero(rng.random(num_others) < 0.6).tolist(),
            audited=rng.random(num_labels) < rng.choice([0, 0.3]),
            advance=tuple(int(p) for p in rng.integers(-1, 2, num_classes) * int(rng.integers(0, 2))),
            least_lead=int(rng.integers(0, 3)) * int(rng.random() < 0.2),
        )

    def scores(self, weights, y):
        """What each class has in advance, and what labels add to it."""
        return np.array([self.advance[k] + weights[y == k].sum() for k in range(self.num_classes)])

    def total(self, y, near):
        total = self.scores(self.weights, y)
        for other in near:
            total[best(self.scores(self.theirs[other], y))] += self.each
        return total

    def plain_winner(self, y, near):
        return best(self.total(y, near))

    def decision(self, y, near):
        """The label, or that the target abstains because it leads by too little."""
        total = self.total(y, near)
        label = best(total)
        leads = [total[label] - total[k] - (k < label) for k in range(self.num_classes) if k != label]
        return label if min(leads) >= self.least_lead else self.ABSTAINED

    def changed_labels(self, number):
        """Every list of labels that differs in at most so many places, none of which was audited."""
        places = np.flatnonzero(~self.audited).tolist()
        for chosen in itertools.combinations(places, min(number, len(places))):
            for values in itertools.product(range(NO_LABEL, self.num_classes), repeat=len(chosen)):
                y = self.y.copy()
                y[list(chosen)] = values
                yield y

    def changed_neighbours(self, added, deleted):
        """Every set of neighbours after at most so many came and went."""
        others = [other for other in range(len(self.theirs)) if other not in self.near]
        for lost in _up_to(self.near, deleted):
            for new in _up_to(others, added):
                yield sorted({*self.near, *new} - {*lost})

    def winners(self, labels, added, deleted):
        """What attacks can make of the decision."""
        near = list(self.changed_neighbours(added, deleted))
        return {self.decision(y, some) for y in self.changed_labels(labels) for some in near}

    def evidence(self):
        """What the library counts: voter 0 is the target, voter j + 1 is node number j of the others."""
        weights = np.concatenate([self.weights[None], self.theirs]).astype(np.int8)
        number, m = weights.shape
        voters = {
            "left": np.zeros((number, 0), dtype=np.int16),
            "right": np.zeros((m, 0), dtype=np.int16),
            "cap": np.ones(number, dtype=np.int64),
            "weights": weights,
            "candidate": np.arange(m),
            "own": np.full(number, -1),
            "label_of": self.y.astype(np.int16),
            "audited": self.audited,
            "price": np.ones(m, dtype=np.int32),
            "classes": self.num_classes,
            "advance": self.advance,
            "candidates": "all",
        }
        return JointEvidence(
            voters=JointEvidence.class_of_voters(**voters),
            voter=np.arange(number),
            target=np.zeros(1, dtype=np.int64),
            indptr=np.array([0, len(self.near)]),
            neighbour=np.array(self.near, dtype=np.int64) + 1,
            neighbour_steps=self.each,
            least_lead=self.least_lead,
        )


def _up_to(things, number):
    """Every set of at most so many of some things."""
    for size in range(min(number, len(things)) + 1):
        yield from itertools.combinations(things, size)


def random_joint(rng, **other):
    """Random evidence about several targets whose neighbours are drawn among all voters; weights have factors."""
    num_voters, num_labels = int(rng.integers(2, 14)), int(rng.integers(1, 30))
    num_targets = int(rng.integers(1, num_voters))
    audited = rng.random(num_labels) < rng.choice([0.2, 0.95])
    voters = factored(rng, num_voters, num_labels, classes=int(rng.integers(2, 6)), least_lead=0, audited=audited)
    joined = rng.random((num_targets, num_voters)) < 0.5
    target = rng.permutation(num_voters)[:num_targets]
    joined[np.arange(num_targets), target] = False
    fields = {
        "voters": voters,
        "voter": np.arange(num_voters),
        "target": target,
        "indptr": np.concatenate([[0], joined.sum(axis=1).cumsum()]),
        "neighbour": np.nonzero(joined)[1],
        "neighbour_steps": int(rng.choice([1, 40, 127, 300])),
        "least_lead": int(rng.integers(0, 60)),
    }
    return JointEvidence(**{**fields, **other})
