"""Certify another defence in the open format: Deep Partition Aggregation (Levine and Feizi, 2021), in plain numpy.

The training set is divided by a hash into parts, and a model is trained on each part. A training sample that is
inserted or deleted changes one part, so it changes one vote. The file says so in the form of a contest, with prices as
proofs. Whoever receives it checks it with `agnncert check dpa.json`, or with a program of their own.
"""

import json
from pathlib import Path

import numpy as np

import agnncert as ac

PARTS, CLASSES = 51, 3
rng = np.random.default_rng(0)

# Three clouds of points. Each model knows the mean of each class in its part, and votes for the nearest one.
centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
labels = rng.integers(CLASSES, size=3_000)
points = centres[labels] + rng.normal(size=(3_000, 2))
part = rng.integers(PARTS, size=3_000)
unseen = centres[rng.integers(CLASSES, size=40)] + rng.normal(size=(40, 2))
votes = np.zeros((40, CLASSES), dtype=int)
for number in range(PARTS):
    means = [points[(part == number) & (labels == k)].mean(axis=0) for k in range(CLASSES)]
    nearest = np.linalg.norm(unseen[:, None] - np.array(means)[None], axis=2).argmin(axis=1)
    votes[np.arange(40), nearest] += 1


def radius(counts: np.ndarray) -> int:
    """The theorem of the paper: half of the lead over the class that comes next, ties counted."""
    label = counts.argmax()
    leads = [counts[label] - counts[k] - (k < label) for k in range(CLASSES) if k != label]
    return int(min(leads) // 2)


def price(counts: np.ndarray, rival: int, moves: int) -> int:
    """A vote that leaves the label for a rival takes 2 from the lead, one that leaves a third class takes 1."""
    label = counts.argmax()
    harm = np.repeat([2 if k == label else 0 if k == rival else 1 for k in range(CLASSES)], counts)
    return int(np.append(np.sort(harm)[::-1], 0)[moves])  # the largest that the attacker cannot afford


targets, statements = [], []
for place, counts in enumerate(votes):
    turned = {"poison": {"adds": [0] * CLASSES, "cap": [1] * CLASSES}}  # a model that votes for anything
    units = [{"count": int(n), "adds": np.eye(CLASSES, dtype=int)[k].tolist()} for k, n in enumerate(counts) if n]
    targets.append(
        {
            "name": f"point {place}",
            "label": int(counts.argmax()),
            "scores": counts.tolist(),
            "fixed": [0] * CLASSES,
            "pools": [{"hit_by": turned, "units": units}],
            "new": {},
        }
    )
    bears = radius(counts)
    prices = [[] if k == counts.argmax() else [price(counts, k, bears)] for k in range(CLASSES)]
    budget = {"poisoned": bears}
    statements.append({"says": "stays", "target": place, "attacker": "poisoner", "budget": budget, "prices": prices})

contest = {
    "format": "contest",
    "version": 1,
    "extensions": [],
    "claim": {
        "defence": f"Deep Partition Aggregation with {PARTS} parts",
        "author": "the author of this example",
        "reference": "Levine and Feizi, 2021, Theorem 1",
        "assumes": ["the part of a sample follows from the sample", "training is deterministic"],
    },
    "classes": ["left", "right", "top"],
    "moves": {"poison": "the model of one part is replaced by any other model"},
    "attackers": {
        "poisoner": {
            "counts": {"poisoned": "training samples inserted or deleted; one that is altered is both"},
            "limits": [{"moves": ["poison"], "at_most": {"poisoned": 1}}],
        }
    },
    "targets": targets,
    "statements": statements,
}
Path("dpa.json").write_text(json.dumps(contest))
print(ac.check_contest("dpa.json"), "\n")

# One more poisoned sample than the theorem allows: a play shows what the attacker does.
statements[0]["budget"]["poisoned"] += 1
Path("false.json").write_text(json.dumps(contest))
print(ac.check_contest("false.json"))
