"""Small cases of label votes, and every attack on them, in code that shares nothing with the library."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from agnncert.labels.evidence import LabelEvidence


@dataclass(frozen=True)
class Case:
    """One target: weights of entries, their labels (-1 for none), and the settings of the vote."""

    weights: tuple[int, ...]
    labels: tuple[int, ...]
    classes: int
    advance: tuple[int, ...]
    audited: tuple[bool, ...]
    least_lead: int = 0
    flips_only: bool = False

    def scores(self, labels):
        """What each class has in advance, and what labels add to it."""
        score = list(self.advance)
        for weight, label in zip(self.weights, labels, strict=True):
            if label >= 0:
                score[label] += weight
        return score

    def decision(self, labels):
        """The class that wins, or None for an abstention: written out, entry by entry."""
        score = self.scores(labels)
        best = max(range(self.classes), key=lambda k: (score[k], -k))
        for k in range(self.classes):
            lead = score[best] - score[k] - (1 if k < best else 0)
            if k != best and lead < self.least_lead:
                return None
        return best

    def plain_winner(self, labels):
        """The class with the best score, whether or not the target abstains."""
        without = Case(self.weights, self.labels, self.classes, self.advance, self.audited)
        return without.decision(labels)

    def attacks(self, changes):
        """Every list of labels that differs in at most so many entries, audited ones not."""
        open_entries = [u for u in range(len(self.labels)) if not self.audited[u]]
        choices = range(0 if self.flips_only else -1, self.classes)
        for number in range(changes + 1):
            for rows in combinations(open_entries, number):
                for values in product(choices, repeat=number):
                    poisoned = list(self.labels)
                    for row, value in zip(rows, values, strict=True):
                        poisoned[row] = value
                    yield tuple(poisoned)

    def withstands(self, changes):
        """Whether no attack changes the decision; False if there is none to begin with."""
        before = self.decision(self.labels)
        if before is None:
            return False
        return all(self.decision(labels) == before for labels in self.attacks(changes))

    def winners(self, changes):
        return {self.plain_winner(labels) for labels in self.attacks(changes)}


def random_case(rng, flips_only=False, abstains=False):
    m = int(rng.integers(1, 6))
    classes = int(rng.integers(2, 4))
    largest = int(rng.choice([1, 3, 127]))
    return Case(
        weights=tuple(int(w) for w in rng.integers(-largest, largest + 1, m)),
        labels=tuple(int(k) for k in rng.integers(0 if flips_only else -1, classes, m)),
        classes=classes,
        advance=tuple(int(p) for p in rng.integers(-2, 3, classes) * int(rng.integers(0, 2))),
        audited=tuple(bool(b) for b in rng.random(m) < rng.choice([0, 0.3])),
        least_lead=int(rng.integers(0, 1 + largest)) if abstains else 0,
        flips_only=flips_only,
    )


def evidence_of(cases, **other):
    """The evidence about several targets that have the same entries: one case for each, with weights as they are."""
    first = cases[0]
    n, m = len(cases), len(first.labels)
    fields = {
        "left": np.zeros((n, 0), dtype=np.int16),
        "right": np.zeros((m, 0), dtype=np.int16),
        "cap": np.ones(n, dtype=np.int64),
        "weights": np.array([case.weights for case in cases], dtype=np.int8).reshape(n, m),
        "candidate": np.arange(m),
        "own": np.full(n, -1),
        "label_of": np.array(first.labels, dtype=np.int16),
        "audited": np.array(first.audited, dtype=bool),
        "price": np.ones(m, dtype=np.int32),
        "classes": first.classes,
        "advance": first.advance,
        "least_lead": first.least_lead,
        "candidates": "labelled" if first.flips_only else "all",
    }
    return LabelEvidence(**{**fields, **other})


def factored(rng, n, m, d=3, classes=3, **other):
    """Random evidence with factors, some targets of which are candidates themselves."""
    fields = {
        "left": rng.integers(-40, 41, (n, d)).astype(np.int16),
        "right": rng.integers(-40, 41, (m, d)).astype(np.int16),
        "cap": rng.integers(1, 3000, n),
        "weights": np.zeros((n, 0), dtype=np.int8),
        "candidate": np.arange(m),
        "own": np.where(np.arange(n) < m, np.arange(n), -1),
        "label_of": rng.integers(-1, classes, m).astype(np.int16),
        "audited": rng.random(m) < 0.2,
        "price": np.ones(m, dtype=np.int32),
        "classes": classes,
        "advance": tuple(int(p) for p in rng.integers(-50, 50, classes)),
        "least_lead": int(rng.integers(0, 60)),
        "candidates": "all",
    }
    return LabelEvidence(**{**fields, **other})
