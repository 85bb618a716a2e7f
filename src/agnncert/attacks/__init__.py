"""Attacks that try to break certificates. A certificate bounds the accuracy under attack from below, they from above.

How one attack flows through the files, which is also the order to read them in:

- ``api``: ``attack`` runs attacks by name and keeps the best result for each target; reports.
- ``problem``: model, data and defence; what becomes of targets on changed graphs, which changes are possible, and
  results that are never beyond their budget. ``score_problem`` asks any defence for labels and scores,
  ``vote_problem`` computes the votes of a division.
- ``plain_search``: random and exhaustive attacks, which look at labels alone.
- ``greedy_search``: for any defence it tries single edits on whole graphs (``single_edits``). Where it knows the
  subgraphs of a division it uses ``candidates`` (which edits to try, what to give to injected nodes and under which
  ids) and ``edits`` (which votes each edit would lead to).
- ``plain_model``: a model without a defence; the greedy attack follows the margin of its logits by gradient.
- ``gradient_search``: PyG's PRBCD on the vote of a division, or on such a model. ``edge_weights`` serves both.

Most users need ``attack`` alone. ``problem_of`` and the attacks by name are for those who run many on the same model.
"""

from agnncert.attacks.api import KINDS, AttackReport, attack, problem_of
from agnncert.attacks.candidates import AdversarialFeatures
from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import Problem
from agnncert.attacks.results import AttackResult, cost_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.attacks.vote_problem import VoteProblem

__all__ = [
    "KINDS",
    "AdversarialFeatures",
    "AttackReport",
    "AttackResult",
    "Problem",
    "ScoreProblem",
    "VoteProblem",
    "attack",
    "cost_of",
    "exhaustive",
    "gradient",
    "greedy",
    "problem_of",
    "random",
]
