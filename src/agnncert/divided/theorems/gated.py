"""The theorem of node-centric divisions that show the features of a group's own nodes only."""

from dataclasses import replace
from types import MappingProxyType

from agnncert.certificates.budget import Prices
from agnncert.divided.division_words import DivisionWords
from agnncert.divided.theorems.node_centric import NodeCentricNode
from agnncert.proving.prices import Offer
from agnncert.proving.theorems import Amounts, Facts, Limits
from agnncert.proving.words import EDGES_OR_NODES

_TARGET = MappingProxyType(
    {
        "listed_short": "in subgraphs that know it",
        "listed_sentence": "Its neighbours and itself fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "It is heard in none of the subgraphs.",
        "default_sentence": "{count} further subgraphs know nothing about it and abstain.",
    }
)


class _GatedNode(NodeCentricNode):
    name = "gated/node"
    words = DivisionWords(EDGES_OR_NODES, ("edges",), _TARGET)

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Features are visible in a node's own group only, so v's own features alter one vote more.

        Besides S_v only v's own group votes. Its vote is listed but not reached. The others abstain.
        """
        own = float(attack.target_features)
        others = super().limits(attack, facts)
        return Limits.of(facts, others.all + own, others.beyond_reached + own, others.unlisted)

    def offers(self, prices: Prices) -> list[Offer]:
        """The target's own features can be paid for besides, once."""
        (plain,) = super().offers(prices)
        return [plain, replace(plain, fixed=prices.target_features, own_group=True)]


THEOREMS = {"node": _GatedNode()}
