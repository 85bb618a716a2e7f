"""Says what an attack can do to the votes of each target, by the theorem of their record.

This module shares no code with ``proving``.
"""

from dataclasses import replace

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, FloatArray
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.effects import Attack, Changes, Limits
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.registry import recount_of


def limits_under(piles: Piles, budget: Budget, add_edges: FloatArray | None = None) -> Limits | Changes:
    """Returns what an attacker can do to the votes, by the theorem of the record.

    Args:
        piles: The targets.
        budget: What the attacker may do.
        add_edges: Numbers of added edges to use instead of that of the budget, one for each target, shape ``[n]``.
    """
    require_trusted_training(budget)
    counts = {name: np.full(piles.num_targets, float(getattr(budget, name))) for name in COUNTS}
    if add_edges is not None:
        counts["add_edges"] = add_edges
    attack = Attack(**counts, target_features=budget.target_features)
    limits = recount_of(piles.record.theorem).effect(piles, attack)
    return replace(limits, covered=limits.covered & _is_covered(piles, attack))


def _is_covered(piles: Piles, attack: Attack) -> BoolArray:
    """Tells where an attack neither changes a target that must not change, nor deletes nodes without ids, ``[n]``."""
    target_is_covered = not attack.target_features or recount_of(piles.record.theorem).covers_target
    covered = np.full(piles.num_targets, target_is_covered)
    if piles.record.ids == "row" and not piles.record.facts.per_neighbour:
        covered &= attack.delete_nodes == 0  # a deletion renumbers rows, and groups follow their numbers
    return covered
