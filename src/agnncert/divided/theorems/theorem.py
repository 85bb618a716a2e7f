"""What a theorem says about the votes of each target: the base of all of them.

A theorem says what an attack can do to votes. All statements about labels follow from that in
:class:`~agnncert.divided.theorems.moving_votes.MovingVotes`, where the number of groups is fixed and votes move from
class to class, and in :class:`~agnncert.divided.theorems.own_votes.OwnVotes`, where every neighbour has a vote of its
own, so that votes come and go. One object per theorem also has its words.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.theorem_facts import TheoremFacts, facts_of
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.divided.division_words import MOVES_VOTES, DivisionWords
from agnncert.proving.prices import Rival
from agnncert.proving.theorems import Amounts, Counts, Facts, largest_amount
from agnncert.proving.words import Deed

PriceOfRival = Callable[[Rival, Counts, Facts], FloatArray]  # the least price at which a rival wins, [n]


class Theorem(ABC):
    """What one theorem proves about votes, and how its statements are told.

    Attributes:
        name: Name of the division and of the task, as it stands in files.
        words: The words for the division.
        changed_number: What one step of the radius changes the number of in a graph by one, or None.
        only_target_matters: Whether changes of edges that are not at the target leave all its votes as they are.
        has_structure_radius: Whether fewer votes can change if edges and nodes are only added and deleted.
        page_rule: The theorem in JavaScript, with which a report answers budgets of its reader if the checker in the
            page does not know the theorem. Without it such a report has no sliders. ``report/assets/rules.js`` says
            what the function gets and returns: votes move in tiers.
    """

    name: ClassVar[str]
    words: ClassVar[DivisionWords]
    changed_number: ClassVar[Literal["edges", "nodes"] | None] = None
    only_target_matters: ClassVar[bool] = False
    has_structure_radius: ClassVar[bool] = False
    page_rule: ClassVar[str] = ""

    @property
    def facts(self) -> TheoremFacts:
        """What files and claims say about the theorem."""
        return facts_of(self.name)

    @property
    def counts_neighbours(self) -> bool:
        """Whether a step of the radius is an edge or a neighbour of the target, whose own features stay."""
        return self.facts.by_neighbours and not self.facts.target_features

    def counted_changes(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns which changes of a graph one step of the radius counts (graph task), none by default."""
        return ()

    def deed(self, record: VoteRecord) -> Deed:
        """Returns the action of an attacker that the sizes of a certificate count."""
        return self.words.step.deed or MOVES_VOTES

    @abstractmethod
    def radius(self, counts: Counts, facts: Facts) -> IntArray:
        """Returns how many changes each target withstands, shape ``[n]``; -1 if nothing is certified."""

    def structure_radius(self, counts: Counts, facts: Facts) -> IntArray:
        """Returns how many edges and nodes may be added and deleted, shape ``[n]``. By default that is the radius."""
        return self.radius(counts, facts)

    @abstractmethod
    def covered(self, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns about which targets something is proved, shape ``[n]``."""

    @abstractmethod
    def stays_ahead(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead, shape ``[n, C]``: of none where nothing is proved."""

    @abstractmethod
    def stays_ahead_of_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns of which classes each label stays ahead after this many steps of the radius, shape ``[n, C]``."""

    @abstractmethod
    def withstands(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns whether each target stays ahead of all classes, ``[n]``; faster, as few rivals matter."""

    @abstractmethod
    def possible(self, counts: Counts, attack: Amounts, facts: Facts) -> BoolArray:
        """Returns which classes an attack can make win, shape ``[n, C]``."""

    @abstractmethod
    def possible_by_number(self, counts: Counts, number: float, facts: Facts) -> BoolArray:
        """Returns which classes can win by this many steps of the radius, shape ``[n, C]``."""

    @abstractmethod
    def price_of_rival(self, prices: Prices, record: VoteRecord) -> PriceOfRival:
        """Returns a function that gives the least price of an attack that lets a rival beat the label."""

    @abstractmethod
    def neighbours_needed(self, counts: Counts, attack: Amounts, facts: Facts) -> FloatArray:
        """Returns the fewest new neighbours with which each target breaks, shape ``[n]`` (node task).

        The number is infinite where the attack does not break it, and 0 where no new neighbour is needed.
        """

    def touches_needed(self, counts: Counts, attack: Amounts, facts: Facts) -> FloatArray | None:
        """Returns the fewest new, lost and altered neighbours with which each target breaks, shape ``[n]``.

        None where a change can alter votes of targets that it does not touch.
        """
        return None

    def most_withstood(self, counts: Counts, facts: Facts, field: str, rest: Budget) -> FloatArray:
        """Returns the largest amount of ``field`` that each target withstands on top of ``rest``, shape ``[n]``."""

        def holds(amounts: FloatArray) -> BoolArray:
            return self.withstands(counts, Amounts.of(rest, field, amounts), facts)

        return largest_amount(holds, len(counts.label))
