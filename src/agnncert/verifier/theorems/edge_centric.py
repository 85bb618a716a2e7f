"""Edge-centric divisions, stated a second time."""

import numpy as np

from agnncert.verifier.effects import Attack, Limits, everywhere, votes_reached
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.theorem import Recount


class _Node(Recount):
    by_neighbours = True

    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each edge moves one vote, each node those of its edges.

        Beyond the reached votes each needs a new neighbour.
        """
        total = attack.edges + attack.injected_edges + votes_reached(piles, attack.touched_nodes)
        new_neighbours = attack.add_edges + np.minimum(attack.injected_edges, attack.inject_nodes)
        return Limits(total, new_neighbours, new_neighbours, everywhere(piles))


class _Graph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each edge moves one vote, each node those of its edges.

        Beyond the reached votes each needs a new edge.
        """
        total = attack.edges + attack.injected_edges + votes_reached(piles, attack.touched_nodes)
        new_edges = attack.add_edges + attack.injected_edges
        return Limits(total, new_edges, new_edges, everywhere(piles))


THEOREMS = {"node": _Node(), "graph": _Graph()}
