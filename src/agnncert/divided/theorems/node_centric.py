"""The theorems of node-centric divisions (paper, section 3.3)."""

import numpy as np

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import VoteRecord
from agnncert.divided.division_words import DivisionWords
from agnncert.divided.theorems.moving_votes import VotesInTiers
from agnncert.proving.prices import Offer
from agnncert.proving.theorems import Amounts, Facts, Limits
from agnncert.proving.words import EDGES_OR_NODES, EDGES_OR_OTHER_NODES


class NodeCentricNode(VotesInTiers):
    """Node-centric divisions, for nodes. Gated features differ in one vote."""

    name = "node-centric/node"
    words = DivisionWords(EDGES_OR_OTHER_NODES, ("edges",))

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """An edge, or a node of any degree, alters one vote of v (paper, Theorems 7 to 9).

        All edges leaving a node are in that node's subgraph, so it sends v messages in no other. An edge between groups
        carries messages to its two ends only. Votes outside S_v: as in edge-centric divisions.
        """
        neighbours = attack.joined_nodes + attack.add_edges
        moved = attack.joined_nodes + attack.edges + np.minimum(attack.nodes, facts.num_reached)
        return Limits.of(facts, moved, neighbours, neighbours)

    def offers(self, prices: Prices) -> list[Offer]:
        """A new neighbour moves any vote, and any change a reached one."""
        node = min(prices.delete_nodes, prices.change_features)
        weak = min(prices.delete_edges, prices.change_edges)
        strong = min(prices.add_edges, prices.inject_nodes + prices.injected_edges)
        return [Offer(strong, min(weak, node, strong))]


class _NodeCentricGraph(VotesInTiers):
    name = "node-centric/graph"
    words = DivisionWords(EDGES_OR_NODES, ("edges",))
    changed_number = "nodes"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is any change; without ids none that deletes a node."""
        return ("any" if record.ids == "node_id" else "kept", "injected")

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """A subgraph holds the nodes of its group and the edges among them, and no edge between groups.

        A subgraph without a node changes only by an injected one. A subgraph with a single node (without self-loops)
        holds no edge, so only injected, deleted or altered nodes change it.
        """
        nodes = attack.inject_nodes + attack.nodes
        return Limits.of(facts, nodes + attack.edges, nodes, attack.inject_nodes)

    def offers(self, prices: Prices) -> list[Offer]:
        """An injected node moves any vote, any other node a listed one, and an edge a reached one."""
        weak = min(prices.delete_edges, prices.change_edges)
        middle = min(prices.delete_nodes, prices.change_features, prices.inject_nodes)
        return [Offer(prices.inject_nodes, min(weak, prices.add_edges, middle), middle=middle)]


THEOREMS = {"node": NodeCentricNode(), "graph": _NodeCentricGraph()}
