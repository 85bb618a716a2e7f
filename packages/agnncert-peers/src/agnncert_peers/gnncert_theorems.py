"""GNNCert's theorems: divisions in which every subgraph has all nodes, so that a change may move any vote."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import FloatArray, VoteRecord
from agnncert.divided.division_words import ALL_LISTED, CHANGES_EDGES, CHANGES_FEATURES, VOTES, DivisionWords
from agnncert.divided.theorems.moving_votes import AnyVotes
from agnncert.proving.prices import PriceOfNumber, pay
from agnncert.proving.theorems import Amounts, Facts, Limits
from agnncert.proving.words import EDGES, Deed, StepWords

_FEATURES = StepWords("node with changed features", "nodes with changed features", CHANGES_FEATURES)


class _EdgesNode(AnyVotes):
    name = "gnncert-e/node"
    words = DivisionWords(EDGES, ("edges",), ALL_LISTED)

    @property
    def counts_neighbours(self) -> bool:
        """A step of the radius is an edge."""
        return True

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Edges are divided, every subgraph has all nodes. Only edges are covered."""
        covered = (attack.nodes == 0) & (attack.inject_nodes == 0)
        return Limits.of(facts, attack.edges, attack.edges, attack.edges, covered)

    def price_of_number(self, prices: Prices, record: VoteRecord) -> PriceOfNumber:
        """Returns the price of a number of edges."""
        edge = _price_of_edge(prices)
        return lambda number: pay(edge, number)


class _EdgesGraph(_EdgesNode):
    name = "gnncert-e/graph"

    @property
    def counts_neighbours(self) -> bool:
        """A graph has no neighbours."""
        return False

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is an edge."""
        return ("edges",)


class _FeaturesNode(AnyVotes):
    name = "gnncert-n/node"
    words = DivisionWords(_FEATURES, ("features",), ALL_LISTED)

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Features are divided, every subgraph has all edges. Only features are covered."""
        nodes = attack.change_features + float(attack.target_features)
        covered = (attack.edges == 0) & (attack.delete_nodes == 0) & (attack.inject_nodes == 0)
        return Limits.of(facts, nodes, nodes, nodes, covered)

    def price_of_number(self, prices: Prices, record: VoteRecord) -> PriceOfNumber:
        """Returns the price of a number of nodes, of which the target may be one."""
        by_features = _price_of_features(prices.change_features, prices.target_features, record.votes.num_groups)
        return lambda number: np.asarray(by_features[number])


class _FeaturesGraph(_FeaturesNode):
    name = "gnncert-n/graph"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is a node with other features."""
        return ("features",)


class _BothNode(AnyVotes):
    name = "gnncert-en/node"
    words = DivisionWords(VOTES, ("edges", "features"), ALL_LISTED)

    def deed(self, record: VoteRecord) -> Deed:
        """Returns that an edge is changed, which moves a row of the grid."""
        return replace(CHANGES_EDGES, price=int(record.parameters["feature_groups"]))

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """A grid of edge and feature groups. An edge alters a row, a changed node a column."""
        rows = facts.parameters["edge_groups"]
        columns = facts.parameters["feature_groups"]
        edges = np.minimum(attack.edges, rows)
        nodes = np.minimum(attack.change_features + float(attack.target_features), columns)
        moved = nodes * rows + edges * columns - nodes * edges
        covered = (attack.delete_nodes == 0) & (attack.inject_nodes == 0)
        return Limits.of(facts, moved, moved, moved, covered)

    def price_of_number(self, prices: Prices, record: VoteRecord) -> PriceOfNumber:
        """Returns the price of a number of votes: that of the best mix of rows and columns."""
        by_features = _price_of_features(prices.change_features, prices.target_features, record.votes.num_groups)
        return _price_in_grid(_price_of_edge(prices), by_features, record.parameters)


class _BothGraph(_BothNode):
    name = "gnncert-en/graph"


GNNCERT_E = {"node": _EdgesNode(), "graph": _EdgesGraph()}
GNNCERT_N = {"node": _FeaturesNode(), "graph": _FeaturesGraph()}
GNNCERT_EN = {"node": _BothNode(), "graph": _BothGraph()}


def _price_of_edge(prices: Prices) -> float:
    return min(prices.add_edges, prices.delete_edges, prices.change_edges)


def _price_of_features(others: float, target: float, most: int) -> FloatArray:
    """Returns the least price of other features of 0, 1, … nodes, of which the target may be one, ``[most + 1]``."""
    number = np.arange(most + 1)
    with_target = np.where(number > 0, target, 0) + pay(others, number - 1)
    return np.minimum(pay(others, number), with_target)


def _price_in_grid(edge: float, by_features: FloatArray, parameters: Mapping[str, int]) -> PriceOfNumber:
    """Returns the price of a number of votes in a grid, where an edge moves a row and a changed node a column."""
    height = parameters["edge_groups"]
    width = parameters["feature_groups"]
    rows = np.arange(height + 1)[:, None]
    columns = np.arange(width + 1)
    moved = (rows * width + columns * height - rows * columns).ravel()
    price = (pay(edge, rows) + by_features[columns]).ravel()
    order = np.argsort(moved, kind="stable")
    moved = moved[order]
    from_here = np.minimum.accumulate(price[order][::-1])[::-1]  # moving more than asked for does no harm
    return lambda number: np.asarray(from_here[np.searchsorted(moved, number)])
