"""A vote for each neighbour, or for each node of a graph, stated a second time."""

import numpy as np

from agnncert.verifier.effects import Attack, Changes, everywhere
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.theorem import Recount


class PerNeighbourNode(Recount):
    """A vote for each neighbour of a node."""

    def effect(self, piles: Piles, attack: Attack) -> Changes:
        """Each change is about the vote of one neighbour, so an added edge is a new vote."""
        removed = attack.delete_edges + attack.delete_nodes
        altered = attack.change_edges + attack.change_features
        return Changes(
            new=attack.add_edges + np.minimum(attack.injected_edges, attack.inject_nodes),
            removed=removed,
            altered=altered,
            touched=removed + altered,
            turned=np.zeros(piles.num_targets),
            covered=everywhere(piles),
        )


class _Graph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Changes:
        """Each node has one vote, which depends on its features alone."""
        return Changes(
            new=attack.inject_nodes,
            removed=attack.delete_nodes,
            altered=attack.change_features,
            touched=attack.touched_nodes,
            turned=np.zeros(piles.num_targets),
            covered=everywhere(piles),
        )


THEOREMS = {"node": PerNeighbourNode(), "graph": _Graph()}
