"""Attacks that try to break certificates. They bound from above what a certificate bounds from below.

``attack`` is the one call; ``Scene`` and the attacks by name are for those who run many on the same model.
"""

from agnncert.attacks.arsenal import Arsenal
from agnncert.attacks.by_votes import greedy
from agnncert.attacks.drawn import random
from agnncert.attacks.entry import KINDS, Curve, attack, attacked_accuracy
from agnncert.attacks.every import exhaustive
from agnncert.attacks.hubs import hubs
from agnncert.attacks.prbcd import gradient
from agnncert.attacks.results import AttackReport, AttackResult, cost_of, fits
from agnncert.attacks.scene import Scene

__all__ = [
    "KINDS",
    "Arsenal",
    "AttackReport",
    "AttackResult",
    "Curve",
    "Scene",
    "attack",
    "attacked_accuracy",
    "cost_of",
    "exhaustive",
    "fits",
    "gradient",
    "greedy",
    "hubs",
    "random",
]
