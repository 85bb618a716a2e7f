"""The theorems of edge-centric divisions."""

from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.tiers import ANY, OF_REACHED, Amounts, VotesInTiers


class _Node(VotesInTiers):
    with_reach = True
    at_target = True

    def amounts(self, record: VoteRecord) -> Amounts:
        """The first edge of a new node may give the target a neighbour in any group, further ones where it is known."""
        return {ANY: ("add_edges", "joined"), OF_REACHED: ("surplus", "delete_edges", "change_edges")}


class _Graph(VotesInTiers):
    with_reach = True

    def amounts(self, record: VoteRecord) -> Amounts:
        """Every new edge may fill a group that is empty."""
        return {ANY: ("add_edges", "injected_edges"), OF_REACHED: ("delete_edges", "change_edges")}


THEOREMS = {"node": _Node(), "graph": _Graph()}
