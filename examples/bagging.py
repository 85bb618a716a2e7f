"""Certify a bagging ensemble in the open format, in plain numpy: each training sample is in several bags.

Each sample is in 3 of 60 bags, which follow from its number, and a model is trained on each bag (as in finite
aggregation by Wang et al., 2022). A sample that is altered may change 3 votes, but only those of its own bags. A
*table* of the worst samples says how many votes for the label they reach together.
"""

import json
from pathlib import Path

import numpy as np

import agnncert as ac

BAGS, EACH, SAMPLES, POINTS = 60, 3, 240, 30
rng = np.random.default_rng(1)

centres = np.array([[0.0, 0.0], [2.5, 0.0]])
labels = rng.integers(2, size=SAMPLES)
samples = centres[labels] + rng.normal(size=(SAMPLES, 2))
bags = np.array([rng.choice(BAGS, EACH, replace=False) for _ in range(SAMPLES)])
unseen = centres[rng.integers(2, size=POINTS)] + rng.normal(size=(POINTS, 2))

vote = np.zeros((POINTS, BAGS), dtype=int)
for bag in range(BAGS):
    inside = (bags == bag).any(axis=1)
    means = np.array([samples[inside & (labels == k)].mean(axis=0) for k in range(2)])
    vote[:, bag] = np.linalg.norm(unseen[:, None] - means[None], axis=2).argmin(axis=1)


def reach(label: int, votes: np.ndarray) -> list[int]:
    """How many votes for the label the worst 1, 2, 3, ... samples reach at most.

    Other votes need not be counted: there are two classes, and turning a vote of the other one only helps the label.
    """
    hit = np.sort((votes == label)[bags].sum(axis=1))[::-1]
    return np.minimum(hit.cumsum(), (votes == label).sum()).tolist()


targets, statements = [], []
for place, votes in enumerate(vote):
    counts = np.bincount(votes, minlength=2)
    label = int(counts.argmax())
    table = reach(label, votes)
    lead = int(counts[label] - counts[1 - label] - (1 - label < label))
    # Two classes: only votes for the label can be turned against it, and each takes 2 from the lead.
    bears = max(n for n in range(SAMPLES) if n == 0 or 2 * table[n - 1] <= lead)
    turned = {"alter": {"adds": [0, 0], "cap": [1, 1]}}
    units = [{"count": int(counts[k]), "adds": [int(k == 0), int(k == 1)]} for k in range(2) if counts[k]]
    targets.append(
        {
            "name": f"point {place}",
            "label": label,
            "scores": counts.tolist(),
            "fixed": [0, 0],
            "tables": {"reach": table},
            "pools": [{"hit_by": turned, "units": units}],
            "new": {},
        }
    )
    prices = [[] if k == label else [2] for k in range(2)]
    budget = {"altered": bears}
    statements.append({"says": "stays", "target": place, "attacker": "poisoner", "budget": budget, "prices": prices})

contest = {
    "format": "contest",
    "version": 1,
    "extensions": ["tables"],
    "claim": {
        "defence": f"a vote of {BAGS} models, each sample in {EACH} bags",
        "author": "the author of this example",
        "reference": "the docstring of reach",
        "assumes": ["the bags of a sample follow from its number", "training is deterministic"],
    },
    "classes": ["left", "right"],
    "moves": {"alter": "the model of a bag is replaced by any other model"},
    "attackers": {
        "poisoner": {
            "counts": {"altered": "training samples whose features or labels are altered"},
            "limits": [{"moves": ["alter"], "at_most": {}, "tables": {"reach": {"altered": 1}}}],
        }
    },
    "targets": targets,
    "statements": statements,
}
Path("bagging.json").write_text(json.dumps(contest))
print(ac.check_contest("bagging.json"))
print("altered samples that labels bear:", sorted(each["budget"]["altered"] for each in statements))
