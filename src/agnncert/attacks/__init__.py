"""Attacks that try to break certificates. A certificate bounds the accuracy under attack from below, they from above.

How one attack flows through the files, which is also the order to read them in:

- ``attack``: the one call; runs the attacks by name and keeps the best result for each target.
- ``problem``: model, data and division; casts the ballots of attacked graphs and makes results of them.
- ``results``: what an attack did to one target, and the report that sets it beside what is certified.
- ``random`` and ``exhaustive``: attacks for any division, which they do not look into.
- ``greedy``: knows division and votes. It uses ``adversarial_features`` (what to give to injected nodes), ``moves``
  (which edits to try), ``edits`` (which ballots each edit would lead to) and ``injected_ids`` (under which ids).
- ``hubs``: injected nodes that attack many target nodes at once.
- ``gradient``: PyG's PRBCD, on the vote or on the undefended model.

Most users need ``attack`` alone. ``Problem`` and the attacks by name are for those who run many on the same model.
"""

from agnncert.attacks.adversarial_features import AdversarialFeatures
from agnncert.attacks.attack import KINDS, Curve, attack, attacked_accuracy
from agnncert.attacks.exhaustive import exhaustive
from agnncert.attacks.gradient import gradient
from agnncert.attacks.greedy import greedy
from agnncert.attacks.hubs import hubs
from agnncert.attacks.problem import Problem
from agnncert.attacks.random import random
from agnncert.attacks.results import AttackReport, AttackResult, cost_of, fits

__all__ = [
    "KINDS",
    "AdversarialFeatures",
    "AttackReport",
    "AttackResult",
    "Curve",
    "Problem",
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
