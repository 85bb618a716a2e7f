"""The theorems of the division in which every neighbour, or every node of a graph, has its own group."""

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import FloatArray, VoteRecord
from agnncert.divided.division_words import DivisionWords, own_group_target
from agnncert.divided.theorems.own_votes import OwnVotes
from agnncert.proving.per_neighbour import Touches
from agnncert.proving.prices import Touchable, TouchPrices, cheapest_touches
from agnncert.proving.theorems import Amounts, Facts
from agnncert.proving.words import EDGES_OR_OTHER_NODES, Deed, StepWords

_OWN_NEIGHBOUR = own_group_target(
    "neighbour", "neighbour that sends it messages", "No neighbour sends it messages", "Neighbour, by row"
)
_OWN_NODE = own_group_target("node", "of its nodes", "It has no node", "Node, by row")
_NODES = StepWords(
    "changed node",
    "changed nodes",
    Deed("injects, deletes or alters any one node", "injects, deletes or alters any {size} nodes"),
)


class PerNeighbourNode(OwnVotes):
    """A vote for each neighbour that sends messages. One vote for each edge differs in what can be turned."""

    name = "per-neighbour/node"
    only_target_matters = True
    words = DivisionWords(EDGES_OR_OTHER_NODES, ("edges", "features"), _OWN_NEIGHBOUR)

    def touches(self, attack: Amounts, facts: Facts) -> Touches:
        """In the group of u only u speaks, so v's vote there is a function of v, u and the arcs from u to v.

        A new neighbour adds a vote, a lost one (its pair separated, or the node deleted) removes one. Other features of
        u, and another value or number of copies of the pair, alter one. Nothing else touches v: edges among other
        nodes, and injected nodes that are not joined to v, are not in it. Self-loops are dropped.
        """
        new = attack.joined_nodes + attack.add_edges
        altered = attack.change_edges + attack.change_features
        touched = altered + attack.delete_edges + attack.delete_nodes
        return Touches.of(facts, attack, new=new, touched=touched, altered=altered)

    def touch_prices(self, prices: Prices) -> TouchPrices:
        """Returns what it costs to touch one vote."""
        return TouchPrices(
            new=min(prices.add_edges, prices.inject_nodes + prices.injected_edges),
            lost=min(prices.delete_edges, prices.delete_nodes),
            altered=min(prices.change_edges, prices.change_features),
        )

    def cheapest(self, votes: Touchable, prices: Prices, facts: Facts) -> FloatArray:
        """Returns the least price at which a rival gains what it lacks, shape ``[n]``."""
        return cheapest_touches(votes, self.touch_prices(prices))


class _PerNeighbourGraph(OwnVotes):
    name = "per-neighbour/graph"
    words = DivisionWords(_NODES, ("features",), _OWN_NODE)
    changed_number = "nodes"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is a node, and that edges do not count."""
        return ("any", "structure", "injected")

    def touches(self, attack: Amounts, facts: Facts) -> Touches:
        """The group of a node holds that node and no edge: edges touch nothing."""
        altered = attack.change_features
        return Touches.of(
            facts, attack, new=attack.inject_nodes, touched=altered + attack.delete_nodes, altered=altered
        )

    def cheapest(self, votes: Touchable, prices: Prices, facts: Facts) -> FloatArray:
        """Returns the least price at which a rival gains what it lacks, shape ``[n]``."""
        each = TouchPrices(new=prices.inject_nodes, lost=prices.delete_nodes, altered=prices.change_features)
        return cheapest_touches(votes, each)


THEOREMS = {"node": PerNeighbourNode(), "graph": _PerNeighbourGraph()}
