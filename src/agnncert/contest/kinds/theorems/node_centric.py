"""The theorems of node-centric divisions, also of those that show the features of a group's own nodes only."""

from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.kind import GRAPH_FIELDS
from agnncert.contest.kinds.tiers import ANY, EDGES, OF_LISTED, OF_REACHED, OLD_NODES, Amounts, VotesInTiers

_NEIGHBOURS = ("add_edges", "joined")
_OLD = ("delete_edges", "change_edges", *OLD_NODES)


class _Node(VotesInTiers):
    at_target = True

    def amounts(self, record: VoteRecord) -> Amounts:
        """A new neighbour alters any vote, whatever its degree; the groups of old ones are reached."""
        return {ANY: _NEIGHBOURS, OF_REACHED: _OLD}


class _Gated(_Node):
    covers = (*GRAPH_FIELDS, "target_features")

    def amounts(self, record: VoteRecord) -> Amounts:
        """The target's features alter the vote of its own group, which is listed."""
        return {ANY: _NEIGHBOURS, OF_LISTED: ("target_features",), OF_REACHED: _OLD}


class _Graph(VotesInTiers):
    def amounts(self, record: VoteRecord) -> Amounts:
        """A new node may fill any group; the group of an old node is listed, and that of an old edge is reached."""
        return {ANY: ("inject_nodes",), OF_LISTED: OLD_NODES, OF_REACHED: EDGES}


THEOREMS = {"node": _Node(), "graph": _Graph()}
GATED = {"node": _Gated()}
