"""A vote for each edge, stated a second time."""

from dataclasses import replace

from agnncert.verifier.effects import Attack, Changes, everywhere, votes_reached
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.per_neighbour import PerNeighbourNode
from agnncert.verifier.theorems.theorem import Recount


class _Node(PerNeighbourNode):
    def effect(self, piles: Piles, attack: Attack) -> Changes:
        """As where votes belong to neighbours, but an added edge may turn a pair that has one direction only."""
        return replace(super().effect(piles, attack), turned=attack.add_edges)


class _Graph(Recount):
    def effect(self, piles: Piles, attack: Attack) -> Changes:
        """Each pair of nodes has one vote, so a node is in as many votes as it has pairs."""
        touched = attack.delete_edges + attack.change_edges + votes_reached(piles, attack.touched_nodes)
        return Changes(
            new=attack.add_edges + attack.injected_edges,
            removed=touched,  # as many as are not altered
            altered=attack.change_edges + votes_reached(piles, attack.change_features),
            touched=touched,
            turned=attack.add_edges,
            covered=everywhere(piles),
        )


THEOREMS = {"node": _Node(), "graph": _Graph()}
