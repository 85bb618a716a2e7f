"""The theorems of the division in which every neighbour, or every node of a graph, has its own group."""

from agnncert.contest.kinds.kind import Limits
from agnncert.contest.kinds.own import ADD, ALTER, JOIN, REMOVE, VotesThatComeAndGo


class OfNodes(VotesThatComeAndGo):
    """Votes of the neighbours of a node."""

    def limits(self) -> Limits:
        """Returns that an edge or a neighbour changes one vote."""
        limits = Limits().allow([ALTER], ["change_edges", "change_features"])
        limits.allow([REMOVE], ["delete_edges", "delete_nodes"])
        return limits.allow([ADD], ["add_edges"]).allow([JOIN], ["joined"])


class _OfGraphs(VotesThatComeAndGo):
    of_nodes = False
    adds = False

    def limits(self) -> Limits:
        """Returns that a node changes one vote, and an edge none."""
        limits = Limits().allow([ALTER], ["change_features"])
        return limits.allow([REMOVE], ["delete_nodes"]).allow([JOIN], ["inject_nodes"])


THEOREMS = {"node": OfNodes(), "graph": _OfGraphs()}
