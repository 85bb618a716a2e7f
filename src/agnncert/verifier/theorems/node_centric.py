"""Node-centric divisions, with and without gated features, stated a second time."""

import numpy as np

from agnncert.verifier.effects import Attack, Limits, everywhere
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.theorem import Recount


class _Node(Recount):
    by_neighbours = True

    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each edge and each node moves one vote.

        Beyond the reached votes each needs a new neighbour, or is the target's.
        Only where features are gated does the target have a listed vote that is not reached: that of its own group.
        """
        joined_nodes = np.where(attack.edges_per_injected > 0, attack.inject_nodes, 0)
        old_neighbours = np.minimum(attack.touched_nodes, piles.num_reached)
        new_neighbours = attack.add_edges + joined_nodes
        return Limits(
            total=attack.edges + joined_nodes + old_neighbours + attack.target_features,
            unreached=new_neighbours + attack.target_features,
            unlisted=new_neighbours,
            covered=everywhere(piles),
        )


class _Gated(_Node):
    covers_target = True


class _Graph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Limits:
        """Each edge and each node moves one vote. An edge needs a reached vote, and an old node a listed one."""
        nodes = attack.touched_nodes + attack.inject_nodes
        return Limits(attack.edges + nodes, nodes, attack.inject_nodes, everywhere(piles))


THEOREMS = {"node": _Node(), "graph": _Graph()}
GATED = {"node": _Gated()}
