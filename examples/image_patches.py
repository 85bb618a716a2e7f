"""Certify images against patches in the open format, in plain numpy: nothing here is a graph.

Derandomized smoothing (Levine and Feizi, 2020): a classifier sees one band of an image at a time, and each band votes
or abstains. A patch of m columns touches m + s - 1 of the bands of s columns each, whatever it shows. So a patch spends
m + s - 1 moves, and each of them turns a band into any vote.
"""

import json
from pathlib import Path

import numpy as np

import agnncert as ac

SIZE, WIDTH, IMAGES = 24, 3, 25
rng = np.random.default_rng(2)

# Images of stripes that lean to the left, to the right, or stand upright, with noise.
rows, columns = np.mgrid[:SIZE, :SIZE]
shapes = [np.sin((columns + slope * rows) * 0.8) for slope in (-1, 1, 0)]
kinds = rng.integers(3, size=IMAGES)
images = np.stack([shapes[kind] for kind in kinds]) + rng.normal(scale=1.6, size=(IMAGES, SIZE, SIZE))


def vote(image: np.ndarray, first: int) -> int:
    """The shape that a band correlates with most, or -1: the band abstains if none stands out."""
    band = np.arange(first, first + WIDTH) % SIZE
    scores = [float((image[:, band] * shape[:, band]).sum()) for shape in shapes]
    return int(np.argmax(scores)) if max(scores) > 10 else -1


targets, statements = [], []
for place, image in enumerate(images):
    votes = np.array([vote(image, first) for first in range(SIZE)])
    counts = np.array([(votes == k).sum() for k in range(3)])
    label = int(counts.argmax())
    unit_of = {-1: [0, 0, 0], 0: [1, 0, 0], 1: [0, 1, 0], 2: [0, 0, 1]}
    # Bands that abstain add nothing, and are units all the same: a patch makes them vote.
    units = [{"count": int((votes == k).sum()), "adds": unit_of[k]} for k in unit_of if (votes == k).any()]
    turned = {"cover": {"adds": [0, 0, 0], "cap": [1, 1, 1]}}
    targets.append(
        {
            "name": f"image {place}",
            "label": label,
            "scores": counts.tolist(),
            "fixed": [0, 0, 0],
            "pools": [{"hit_by": turned, "units": units}],
            "new": {},
        }
    )
    # The price of a band is the harm of the first one that the patch does not reach: 2, 1 or 0.
    rivals = [k for k in range(3) if k != label]
    harm = {k: sorted([0 if v == k else 2 if v == label else 1 for v in votes], reverse=True) for k in rivals}
    lead = {k: int(counts[label] - counts[k] - (k < label)) for k in rivals}
    wide = [m for m in range(1, SIZE - WIDTH + 1) if all(sum(harm[k][: m + WIDTH - 1]) <= lead[k] for k in rivals)]
    if wide:
        budget = {"patches": 1, "columns": wide[-1]}
        prices = [[harm[k][wide[-1] + WIDTH - 1]] if k != label else [] for k in range(3)]
        statements.append({"says": "stays", "target": place, "attacker": "a patch", "budget": budget, "prices": prices})

contest = {
    "format": "contest",
    "version": 1,
    "extensions": [],
    "claim": {
        "defence": f"a vote of bands of {WIDTH} columns",
        "author": "the author of this example",
        "reference": "Levine and Feizi, 2020, Theorem 1",
        "assumes": ["a band votes by its own pixels"],
    },
    "classes": ["left", "right", "upright"],
    "moves": {"cover": "the pixels of one band are replaced"},
    "attackers": {
        "a patch": {
            "counts": {"patches": "patches", "columns": "columns that they cover together"},
            "limits": [{"moves": ["cover"], "at_most": {"columns": 1, "patches": WIDTH - 1}}],
        }
    },
    "targets": targets,
    "statements": statements,
}
Path("patches.json").write_text(json.dumps(contest))
print(ac.check_contest("patches.json"))
print("columns of a patch that images bear:", sorted(each["budget"]["columns"] for each in statements))
