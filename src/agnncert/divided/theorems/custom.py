"""The theorems of a user's own division, which states how many votes one unit of each budget field moves at most."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from agnncert.certificates.budget import COUNTS, PRICED, Prices
from agnncert.certificates.theorem_facts import EDGES_ONLY
from agnncert.certificates.votes import FloatArray, IntArray, VoteRecord
from agnncert.divided.division_words import (
    ALL_LISTED,
    CHANGES_EDGES,
    CHANGES_FEATURES,
    MOVES_VOTES,
    VOTES,
    DivisionWords,
)
from agnncert.divided.theorems.moving_votes import AnyVotes
from agnncert.proving.prices import PriceOfNumber, pay
from agnncert.proving.theorems import Amounts, Facts, Limits, times
from agnncert.proving.words import Deed

_WORDS = DivisionWords(VOTES, ("edges",), ALL_LISTED)
# By the field of a budget that the division states a price for.
_STATED_PRICES = MappingProxyType(
    {
        "add_edges": Deed("adds any one edge", "adds any {size} edges"),
        "delete_edges": Deed("deletes any one edge", "deletes any {size} edges"),
        "inject_nodes": Deed("injects any one node", "injects any {size} nodes"),
        "delete_nodes": Deed("deletes any one node", "deletes any {size} nodes"),
        "change_features": CHANGES_FEATURES,
    }
)


class _CustomNode(AnyVotes):
    name = "custom/node"
    words = _WORDS

    def deed(self, record: VoteRecord) -> Deed:
        """Returns an action that the division states a price for: changing edges, if these cost alike."""
        parameters = record.parameters
        edges = {int(parameters.get(name, 0)) for name in EDGES_ONLY}
        if len(edges) == 1 and edges != {0}:
            return replace(CHANGES_EDGES, price=edges.pop())
        for name, stated in _STATED_PRICES.items():
            price = int(parameters.get(name, 0))
            if price:
                return replace(stated, price=price)
        return MOVES_VOTES

    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Each change moves as many votes as the division says.

        ``edges_per_injected`` is the price of one edge of an injected node. What has no price is not covered.
        """
        units = {name: getattr(attack, name) for name in COUNTS}
        units["edges_per_injected"] = attack.injected_edges
        units["target_features"] = np.asarray(float(attack.target_features))
        moved = np.zeros(len(facts.num_reached))
        covered = np.ones(len(facts.num_reached), dtype=bool)
        for name, amount in units.items():
            if name in facts.parameters:
                moved = moved + times(amount, np.asarray(float(facts.parameters[name])))
            else:
                covered = covered & (amount == 0)
        return Limits.of(facts, moved, moved, moved, covered)

    def price_of_number(self, prices: Prices, record: VoteRecord) -> PriceOfNumber:
        """Returns the price of a number of votes: that of the best mix of kinds of changes."""
        return _price_of_mixes(prices, record.parameters, record.votes.num_groups)


class _CustomGraph(_CustomNode):
    name = "custom/graph"

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns that a step is an edge, if the division says that one vote moves by one edge and nothing else."""
        return ("edges",) if dict(record.parameters) == EDGES_ONLY else ()


THEOREMS = {"node": _CustomNode(), "graph": _CustomGraph()}

LARGEST_TABLE = 2**16  # votes; beyond, a change may be bought in part, which makes the price a bound


class _Kind(NamedTuple):
    """A kind of change that can be bought any number of times.

    Attributes:
        price: Price of one change.
        moves: Votes that it moves.
    """

    price: float
    moves: int


class _Start(NamedTuple):
    """What is bought once, before any number of other changes.

    Attributes:
        price: Its price.
        moves: Votes that it moves.
        kinds: What can be bought then.
    """

    price: float
    moves: int
    kinds: list[_Kind]


def _price_of_mixes(prices: Prices, parameters: Mapping[str, int], most: int) -> PriceOfNumber:
    """Returns the price of a number of votes where each kind of change moves some: that of the best mix of kinds."""
    starts = [start for start in _starts(prices, parameters) if math.isfinite(start.price)]
    tables = [_table_of_mixes(start.kinds, most) for start in starts]

    def price_of(number: IntArray) -> FloatArray:
        ways = []
        for start, table in zip(starts, tables, strict=True):
            ways.append(start.price + table(np.maximum(number - start.moves, 0)))
        return np.asarray(np.min(ways, axis=0))

    return price_of


def _starts(prices: Prices, parameters: Mapping[str, int]) -> list[_Start]:
    """Returns all choices of what is bought once: nothing, an injected node, the target's own features, or both."""
    kinds = [_Kind(getattr(prices, name), parameters[name]) for name in PRICED if parameters.get(name)]
    starts = [_Start(0.0, 0, kinds)]
    moved_by_edge = parameters.get("edges_per_injected", 0)
    if moved_by_edge:  # a node is injected before it has edges
        with_edges = [*kinds, _Kind(prices.injected_edges, moved_by_edge)]
        starts.append(_Start(prices.inject_nodes, parameters.get("inject_nodes", 0), with_edges))
    moved_by_target = parameters.get("target_features", 0)
    if not moved_by_target:
        return starts
    with_target = []
    for start in starts:
        with_target.append(_Start(start.price + prices.target_features, start.moves + moved_by_target, start.kinds))
    return starts + with_target


def _table_of_mixes(kinds: list[_Kind], most: int) -> PriceOfNumber:
    """Returns the price of a number of votes if all of them are moved by changes of these kinds."""
    kinds = [kind for kind in kinds if math.isfinite(kind.price)]
    if most > LARGEST_TABLE:
        rate = min((kind.price / kind.moves for kind in kinds), default=math.inf)
        return lambda number: pay(rate, number)
    prices = [0.0]
    for number in range(1, most + 1):
        ways = (kind.price + prices[max(number - kind.moves, 0)] for kind in kinds)
        prices.append(min(ways, default=math.inf))
    table = np.asarray(prices)
    return lambda number: np.asarray(table[number])
