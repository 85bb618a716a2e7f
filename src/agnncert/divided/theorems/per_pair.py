"""The theorems of the division in which every edge has its own group, which holds both directions of its pair."""

import math
from dataclasses import replace

import numpy as np

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import FloatArray, VoteRecord
from agnncert.divided.division_words import DivisionWords, own_group_target
from agnncert.divided.theorems.own_votes import OwnVotes
from agnncert.divided.theorems.per_neighbour import PerNeighbourNode
from agnncert.proving.per_neighbour import Touches
from agnncert.proving.prices import Touchable, TouchPrices, cheapest_touches, numbers_to_try, pay
from agnncert.proving.theorems import Amounts, Facts
from agnncert.proving.words import EDGES, EDGES_OR_OTHER_NODES

_OWN_EDGE = own_group_target("edge", "of its edges", "There is no edge", "Edge, by number")


class _PerPairNode(PerNeighbourNode):
    name = "per-pair/node"
    words = DivisionWords(EDGES_OR_OTHER_NODES, ("edges", "features"), _OWN_EDGE)

    def touches(self, attack: Amounts, facts: Facts) -> Touches:
        """As for neighbours, but where a pair has one direction, the attacker can also add the other one.

        That counts as an added edge, brings no new vote, and alters the vote of the pair.
        """
        turned = np.zeros(facts.num_reached.shape) + attack.add_edges
        return replace(super().touches(attack, facts), turned=turned)

    def touch_prices(self, prices: Prices) -> TouchPrices:
        """Returns what it costs to touch one vote. A pair is turned by an added edge."""
        return replace(super().touch_prices(prices), turned=prices.add_edges)


class _PerPairGraph(OwnVotes):
    name = "per-pair/graph"
    words = DivisionWords(EDGES, ("edges",), _OWN_EDGE)
    changed_number = "edges"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is an edge."""
        return ("edges",)

    def touches(self, attack: Amounts, facts: Facts) -> Touches:
        """The group of a pair holds its two ends; a node is in as many as it has neighbours."""
        new = attack.injected_edges + attack.add_edges
        altered = attack.change_edges + facts.reached_by(attack.change_features)
        touched = attack.change_edges + attack.delete_edges + facts.reached_by(attack.nodes)
        turned = np.zeros(facts.num_reached.shape) + attack.add_edges
        return replace(Touches.of(facts, attack, new=new, touched=touched, altered=altered), turned=turned)

    def cheapest(self, votes: Touchable, prices: Prices, facts: Facts) -> FloatArray:
        """Returns the least price, where a node touches as many votes as the reach table says, shape ``[n]``.

        A pair is touched by its nodes, too. Where both can be paid, and deleting a node is cheaper than to give it
        other features, it is taken for the latter, which makes the price a bound.
        """
        node = min(prices.delete_nodes, prices.change_features)
        without_injected = TouchPrices(prices.add_edges, prices.delete_edges, prices.change_edges, prices.add_edges)
        with_injected = replace(without_injected, new=min(prices.add_edges, prices.injected_edges))
        best = np.full(len(votes.lacking), np.inf)
        nodes_in_table = np.diff(facts.reach_ptr)
        for nodes in numbers_to_try(node, nodes_in_table.max(initial=0)):
            price_of_nodes = pay(node, nodes)
            if (price_of_nodes >= best).all():
                break
            touched = facts.reached_by(np.full(len(nodes_in_table), float(nodes)))
            only_deleted = math.isinf(prices.change_features)
            left = votes.after_removing(touched) if only_deleted else votes.after_altering(touched)
            reach_more = (nodes_in_table >= nodes) | (node == 0)
            for price_of_injected, each in ((0.0, without_injected), (prices.inject_nodes, with_injected)):
                price = np.where(reach_more, cheapest_touches(left, each), np.inf)
                best = np.minimum(best, price + price_of_nodes + price_of_injected)
        return best


THEOREMS = {"node": _PerPairNode(), "graph": _PerPairGraph()}
