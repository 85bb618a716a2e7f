"""Sparse smoothing's joint certificate takes the likelihood ratios of two noises to be sorted, which they are not.

Published rule: under noise that adds with probability p+ and deletes with p-, the worst classifier is found by sorting
regions of equal likelihood ratio. For adjacency and attributes together, the regions are all pairs of theirs. The
released program takes these pairs in the order in which it lists them.

The classifier of the example is the worst one, in closed form, so its probabilities are exact.
"""

import itertools
from math import comb, inf

from experiments.unsound.common import Broken

P_ADD, P_DELETE = 0.05, 0.3
ADJACENCY, ATTRIBUTES = (3, 0), (3, 3)  # entries that the attacker adds and deletes
CLEAN = 0.9999
Region = tuple[float, float]  # probability without and with the attack


def _convolved(first: list[float], second: list[float]) -> list[float]:
    sums = [0.0] * (len(first) + len(second) - 1)
    for i, j in itertools.product(range(len(first)), range(len(second))):
        sums[i + j] += first[i] * second[j]
    return sums


def _binomial(trials: int, p: float) -> list[float]:
    return [comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def regions(added: int, deleted: int) -> list[Region]:
    """Returns the regions of one noise: by how many of the changed entries the sample agrees with the attacked graph."""
    clean = _convolved(_binomial(added, P_ADD), _binomial(deleted, P_DELETE))
    attacked = _convolved(_binomial(added, 1 - P_DELETE), _binomial(deleted, 1 - P_ADD))
    return [*zip(clean, attacked, strict=True)]


def least(ordered: list[Region]) -> float:
    """Returns the probability under attack of a classifier that has ``CLEAN`` without it, in the order of regions."""
    left = CLEAN
    attacked = 0.0
    for clean, under_attack in ordered:
        share = min(1.0, left / clean) if clean else 0.0
        attacked += share * under_attack
        left -= share * clean
        if left <= 0:
            break
    return attacked


def demonstrate() -> Broken:
    """Compares the order of the released program with the right one."""
    pairs = itertools.product(regions(*ADJACENCY), regions(*ATTRIBUTES))
    joint = [(first[0] * second[0], first[1] * second[1]) for first, second in pairs]
    released = least(joint)
    assert released > 0.5
    worst = least(sorted(joint, key=lambda region: region[0] / region[1] if region[1] else inf, reverse=True))
    return Broken(
        method="sparse smoothing, joint",
        rule="a label withstands an attack if the worst classifier keeps a probability above 1/2",
        certified=f"3 edges added, 3 attributes added and 3 deleted (bound {released:.3f})",
        attack=f"the same, against a classifier with probability {worst:.3f}",
        before=0,
        after=int(worst < 0.5),
        why="pairs of regions are not sorted by their likelihood ratio, so that the bound is not that of the worst classifier",
    )
