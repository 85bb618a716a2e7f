"""Attacks that try to break certificates. A certificate bounds the accuracy under attack from below, they from above.

How one attack flows through the files, which is also the order to read them in:

- ``api``: ``attack`` runs attacks by name and keeps the best result for each target; reports.
- ``problem``: model, data and division; casts the votes of attacked graphs and makes results of them.
- ``plain_search``: random and exhaustive attacks, which do not look into the division.
- ``greedy_search``: knows the division and the votes. It uses ``candidates`` (which edits to try, what to give to
  injected nodes and under which ids) and ``edits`` (which votes each edit would lead to).
- ``gradient_search``: PyG's PRBCD on the vote.

Most users need ``attack`` alone. ``Problem`` and the attacks by name are for those who run many on the same model.
"""

from agnncert.attacks.api import KINDS, AttackReport, attack
from agnncert.attacks.candidates import AdversarialFeatures
from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import AttackResult, Problem, cost_of

__all__ = [
    "KINDS",
    "AdversarialFeatures",
    "AttackReport",
    "AttackResult",
    "Problem",
    "attack",
    "cost_of",
    "exhaustive",
    "gradient",
    "greedy",
    "random",
]
