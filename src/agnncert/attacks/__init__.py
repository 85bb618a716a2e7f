"""Attacks that try to break certificates. They bound from above what a certificate bounds from below.

``attack`` is the one call; ``Scene`` and the attacks by name are for those who run many on the same model.
"""

from agnncert.attacks.adversarial_features import Arsenal
from agnncert.attacks.attack import KINDS, Curve, attack, attacked_accuracy
from agnncert.attacks.exhaustive import exhaustive
from agnncert.attacks.gradient import gradient
from agnncert.attacks.greedy import greedy
from agnncert.attacks.hubs import hubs
from agnncert.attacks.problem import Scene
from agnncert.attacks.random import random
from agnncert.attacks.results import AttackReport, AttackResult, cost_of, fits

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
