"""The theorems of the division in which every pair of nodes has its own group."""

from agnncert.contest.kinds.kind import Limits
from agnncert.contest.kinds.own import ADD, ALTER, JOIN, REMOVE, VotesThatComeAndGo
from agnncert.contest.kinds.theorems.per_neighbour import OfNodes
from agnncert.contest.kinds.tiers import OLD_NODES


class _OfNodes(OfNodes):
    by_pair = True


class _OfGraphs(VotesThatComeAndGo):
    of_nodes = False
    by_pair = True
    with_reach = True

    def limits(self) -> Limits:
        """Returns that an edge changes one vote, and a node those of its edges."""
        limits = Limits().allow([ALTER], ["change_edges"], reach=["change_features"])
        limits.allow([ALTER, REMOVE], ["change_edges", "delete_edges"], reach=OLD_NODES)
        return limits.allow([ADD], ["add_edges"]).allow([JOIN], ["injected_edges"])


THEOREMS = {"node": _OfNodes(), "graph": _OfGraphs()}
