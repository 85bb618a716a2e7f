"""Theorems where the number of groups is fixed: votes move from class to class, within three nested limits."""

import math
from abc import abstractmethod

import numpy as np

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.divided.theorems.theorem import PriceOfRival, Theorem
from agnncert.proving.possible import possible_by_number, possible_classes
from agnncert.proving.prices import Offer, PriceOfNumber, Rival, cheapest_in_tiers, cheapest_of_number
from agnncert.proving.theorems import (
    LARGEST_AMOUNT,
    Amounts,
    Counts,
    Facts,
    Limits,
    ahead_within,
    certified_radius,
    neighbours_needed,
    withstands,
)


class MovingVotes(Theorem):
    """A theorem that says how many votes of each tier an attack can move."""

    @abstractmethod
    def limits(self, attack: Amounts, facts: Facts) -> Limits:
        """Returns how many votes of each target an attack can move.

        What is said about targets' own features and about ids is added in :meth:`limits_under`.
        """

    def limits_under(self, attack: Amounts, facts: Facts) -> Limits:
        """Returns the votes that an attack can move. They are not covered where nothing is proved about it."""
        limits = self.limits(attack, facts)
        covered = limits.covered & (self.facts.target_features or not attack.target_features)
        covered = covered & (facts.stable_ids | (attack.delete_nodes == 0))
        return Limits(limits.all, limits.beyond_reached, limits.unlisted, covered)

    def radius(self, counts: Counts, facts: Facts) -> IntArray:
        """Returns how many votes may change before another class can win, shape ``[n]``."""
        return certified_radius(counts)

    def covered(self, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns about which targets something is proved, shape ``[n]``."""
        return self.limits_under(attack, facts).covered

    def stays_ahead(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead, shape ``[n, C]``."""
        return ahead_within(counts, self.limits_under(attack, facts))

    def stays_ahead_of_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead if this many votes change, shape ``[n, C]``."""
        limit = np.full(len(counts.label), min(np.ceil(number), LARGEST_AMOUNT))
        return ahead_within(counts, Limits(limit, limit, limit, np.ones(len(limit), dtype=bool)))

    def withstands(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns whether each target keeps its label, shape ``[n]``."""
        return withstands(counts, self.limits_under(attack, facts))

    def possible(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns which classes an attack can make win, shape ``[n, C]``."""
        return possible_classes(counts, self.limits_under(attack, facts))

    def possible_by_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns which classes can win if this many votes change, shape ``[n, C]``."""
        return possible_by_number(counts, number)

    def neighbours_needed(self, counts: Counts, attack: Amounts, facts: Facts) -> FloatArray:
        """Returns the fewest new neighbours with which each target breaks, shape ``[n]``."""
        limits = self.limits_under(attack, facts)
        if self.facts.by_neighbours:
            return neighbours_needed(counts, limits)
        return np.where(withstands(counts, limits), np.inf, 0.0)  # no edge has to be shared: all may move at once

    def most_withstood(self, counts: Counts, facts: Facts, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target withstands on top of ``rest``, shape ``[n]``."""
        deletes_all = rest.delete_edges == math.inf and not (rest.inject_nodes or rest.target_features)
        if field == "add_edges" and deletes_all and self.facts.by_neighbours:
            # All reached votes can change anyway. An added edge matters only as a new neighbour.
            attack = Amounts.of(rest.but(add_edges=math.inf))
            return neighbours_needed(counts, self.limits_under(attack, facts)) - 1
        return super().most_withstood(counts, facts, field, rest)


class VotesInTiers(MovingVotes):
    """A theorem under which votes of some tiers cost more than others."""

    @abstractmethod
    def offers(self, prices: Prices) -> list[Offer]:
        """Returns all ways to attack. The cheapest attack is one of them."""

    def price_of_rival(self, prices: Prices, record: VoteRecord) -> PriceOfRival:
        """Returns a function that gives the least price of an attack that lets a rival beat the label."""
        offers = self.offers(prices)

        def price_of(rival: Rival, counts: Counts, facts: Facts) -> FloatArray:
            return np.asarray(np.min([cheapest_in_tiers(rival, offer, facts) for offer in offers], axis=0))

        return price_of


class AnyVotes(MovingVotes):
    """A theorem under which any vote may move, whatever its tier."""

    @abstractmethod
    def price_of_number(self, prices: Prices, record: VoteRecord) -> PriceOfNumber:
        """Returns a function that gives the price of moving a number of votes, whichever."""

    def price_of_rival(self, prices: Prices, record: VoteRecord) -> PriceOfRival:
        """Returns a function that gives the least price of an attack that lets a rival beat the label."""
        price_of_number = self.price_of_number(prices, record)
        return lambda rival, counts, facts: cheapest_of_number(rival, price_of_number)
