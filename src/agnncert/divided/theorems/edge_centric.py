"""The theorems of edge-centric divisions (paper, section 3.2)."""

import math

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import VoteRecord
from agnncert.divided.division_words import DivisionWords
from agnncert.divided.theorems.moving_votes import VotesInTiers
from agnncert.proving.prices import Offer
from agnncert.proving.theorems import Amounts, Facts, Limits
from agnncert.proving.words import EDGES

_WORDS = DivisionWords(EDGES, ("edges",))


class _EdgeCentricNode(VotesInTiers):
    name = "edge-centric/node"
    words = _WORDS

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """A changed edge alters its subgraph; a changed node those in which it reaches v (paper, Theorem 4).

        A vote outside S_v is the prediction from v's features alone until v gains an edge in that subgraph, and each
        such subgraph takes a new neighbour of its own. So nodes injected with any degree, unlimited deletions and any
        features of other nodes leave those votes as they are, as long as v gains no neighbour.
        """
        neighbours = attack.joined_nodes + attack.add_edges
        moved = attack.injected_edges + attack.edges + facts.reached_by(attack.nodes)
        return Limits.of(facts, moved, neighbours, neighbours)

    def offers(self, prices: Prices) -> list[Offer]:
        """Further edges of an injected node move reached votes. The first one makes it a neighbour."""
        node = min(prices.delete_nodes, prices.change_features)
        weak = min(prices.delete_edges, prices.change_edges)
        joined_node = prices.inject_nodes + prices.injected_edges
        strong = min(prices.add_edges, joined_node)
        plain = Offer(strong, weak, node=node)
        if math.isinf(joined_node):
            return [plain]
        by_injected = min(weak, prices.injected_edges)
        return [plain, Offer(strong, by_injected, node=node, fixed=joined_node - strong, least=1)]


class _EdgeCentricGraph(VotesInTiers):
    name = "edge-centric/graph"
    words = _WORDS
    changed_number = "edges"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is an edge."""
        return ("edges",)

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """A subgraph holds the edges of its group and their ends; an empty one changes only by a new edge."""
        new_edges = attack.injected_edges + attack.add_edges
        moved = attack.injected_edges + attack.edges + facts.reached_by(attack.nodes)
        return Limits.of(facts, moved, new_edges, new_edges)

    def offers(self, prices: Prices) -> list[Offer]:
        """Once a node is injected, each of its edges is a new edge."""
        node = min(prices.delete_nodes, prices.change_features)
        weak = min(prices.delete_edges, prices.change_edges)
        by_injected = min(prices.add_edges, prices.injected_edges)
        injecting = Offer(by_injected, weak, node=node, fixed=prices.inject_nodes)
        return [Offer(prices.add_edges, weak, node=node), injecting]


THEOREMS = {"node": _EdgeCentricNode(), "graph": _EdgeCentricGraph()}
