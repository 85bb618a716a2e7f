"""Divisions of a user's own, which state prices, stated a second time."""

import numpy as np

from agnncert.certificates.budget import COUNTS
from agnncert.verifier.effects import Attack, Limits, everywhere
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.theorem import Recount, of_any_tier


class _Graph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each change moves as many votes as are stated for its kind. Kinds without a number must not occur."""
        amounts = {name: getattr(attack, name) for name in COUNTS}
        amounts["edges_per_injected"] = attack.injected_edges
        amounts["target_features"] = np.full(piles.num_targets, float(attack.target_features))
        moved = np.zeros(piles.num_targets)
        covered = everywhere(piles)
        for name, amount in amounts.items():
            price = piles.record.parameters.get(name)
            if price is None:
                covered &= amount == 0
            elif price > 0:  # asked because 0 times infinity is NaN
                moved += amount * price
        return of_any_tier(moved, covered)


class _Node(_Graph):
    covers_target = True


THEOREMS = {"node": _Node(), "graph": _Graph()}
