"""Theorems where every neighbour, edge or node has a vote of its own: votes come, go and are altered."""

from abc import abstractmethod

import numpy as np

from agnncert.certificates.budget import Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.divided.theorems.theorem import PriceOfRival, Theorem
from agnncert.proving import per_neighbour
from agnncert.proving.per_neighbour import Touches
from agnncert.proving.possible import possible_by_number, possible_touches
from agnncert.proving.prices import Rival, Touchable
from agnncert.proving.theorems import LARGEST_AMOUNT, REACHED, Amounts, Counts, Facts


class OwnVotes(Theorem):
    """A theorem that says how many votes of each target come, go and are altered."""

    has_structure_radius = True

    @abstractmethod
    def touches(self, attack: Amounts, facts: Facts) -> Touches:
        """Returns the votes that an attack adds, removes and alters."""

    @abstractmethod
    def cheapest(self, votes: Touchable, prices: Prices, facts: Facts) -> FloatArray:
        """Returns the least price at which a rival gains what it lacks, shape ``[n]``.

        Args:
            votes: The votes by whose change it gains.
            prices: What each kind of change costs.
            facts: What is known about the targets.
        """

    def radius(self, counts: Counts, facts: Facts) -> IntArray:
        """Returns how many changes, of any kinds, each target is certified against, shape ``[n]``."""
        return per_neighbour.per_neighbour_radius(counts, facts)

    def structure_radius(self, counts: Counts, facts: Facts) -> IntArray:
        """Returns how many edges and nodes may be added and deleted, shape ``[n]``."""
        return per_neighbour.structure_radius(counts, facts)

    def covered(self, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns about which targets something is proved, shape ``[n]``."""
        return self.touches(attack, facts).covered

    def stays_ahead(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead, shape ``[n, C]``."""
        return per_neighbour.ahead_after_touches(counts, self.touches(attack, facts), facts)

    def stays_ahead_of_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead after this many changes of any kinds, ``[n, C]``."""
        whole_number = int(min(np.ceil(number), LARGEST_AMOUNT))
        listed = counts.votes[REACHED]
        gain = per_neighbour.per_neighbour_gain(counts, facts.absent, listed, whole_number)
        return np.asarray(counts.is_label | (counts.margin >= gain))

    def withstands(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns whether each target keeps its label, shape ``[n]``."""
        return per_neighbour.withstands_touches(counts, self.touches(attack, facts), facts)

    def possible(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns which classes an attack can make win, shape ``[n, C]``."""
        return possible_touches(counts, self.touches(attack, facts), facts)

    def possible_by_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns which classes can win by this many changes of any kinds, shape ``[n, C]``."""
        return possible_by_number(counts, number, facts)

    def price_of_rival(self, prices: Prices, record: VoteRecord) -> PriceOfRival:
        """Returns a function that gives the least price of an attack that lets a rival beat the label."""

        def price_of(rival: Rival, counts: Counts, facts: Facts) -> FloatArray:
            return self.cheapest(Touchable.of(rival, counts, facts), prices, facts)

        return price_of

    def neighbours_needed(self, counts: Counts, attack: Amounts, facts: Facts) -> FloatArray:
        """Returns the fewest new neighbours with which each target breaks if all else is spent on it."""
        return per_neighbour.new_needed(counts, self.touches(attack, facts), facts)

    def touches_needed(self, counts: Counts, attack: Amounts, facts: Facts) -> FloatArray:
        """Returns the fewest new, lost and altered neighbours with which each target breaks."""
        return per_neighbour.touches_needed(counts, self.touches(attack, facts), facts)
