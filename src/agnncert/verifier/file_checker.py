"""``FileChecker``: what the verifier does with a certificate file of any kind.

A kind says what its evidence is, what its claim may say, and which classes a target may get under an attack
(:meth:`FileChecker.possible`). Most kinds say one relation instead, of which classes a label stays ahead
(:class:`LeadChecker`), and the possible classes follow. Answers, excluded classes and numbers of broken targets follow
from these, and every statement of the file is compared with what follows.

``agnncert.proving.evidence`` derives the statements from a relation of its own. The two bases share nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.verifier.check import (
    check_claim,
    check_division_digest,
    check_targets,
    wrong_answers,
    wrong_numbers_broken,
    wrong_values,
)
from agnncert.verifier.leaders import may_win
from agnncert.verifier.recount_threshold import wrong_threshold


class FileChecker(ABC):
    """One certificate file, whose statements are derived a second time.

    Attributes:
        contents: What the file says.
        training_fields: Names of the fields of a budget about training data that something is proved about.
        digests: Names of the digests in its claim that somebody can check.
        evidence: What the statements have to follow from, in words.
    """

    training_fields: ClassVar[tuple[str, ...]] = ()
    digests: ClassVar[frozenset[str]] = frozenset({"graph", "model", "encoding"})
    evidence: ClassVar[str] = "votes"

    def __init__(self, contents: Contents) -> None:
        """Reads the evidence of a file.

        Raises:
            CertificateError: It is damaged or contradicts itself, so that nothing can be derived from it.
        """
        self.contents = contents

    # What a kind says.

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of targets and of classes in the evidence."""

    @abstractmethod
    def expected_claim(self) -> Claim:
        """Returns the claim that the evidence allows.

        Raises:
            CertificateError: The claim says something that no claim of this kind says.
        """

    @abstractmethod
    def wrong_values(self) -> dict[str, BoolArray]:
        """Returns for which targets each stated value is wrong, shape ``[n]`` each, by the name of the value."""

    @abstractmethod
    def possible(self, budget: Budget) -> BoolArray:
        """Returns which classes each target may get under an attack within a budget, shape ``[n, C]``.

        Its own label is among them.

        Raises:
            BudgetError: Nothing follows from the evidence about such a question.
        """

    @abstractmethod
    def not_checked(self) -> tuple[str, ...]:
        """Returns what the file alone cannot show, and what to pass to have it checked."""

    # What a kind says if it differs from the usual.

    @property
    def has_structure_radius(self) -> bool:
        """Whether such a file states a radius against changes of the structure alone."""
        return False

    def wrong_form(self) -> Iterator[str]:
        """Yields what is wrong with the file apart from its claim, its targets and its statements."""
        yield from ()

    def holds(self, budget: Budget) -> BoolArray:
        """Returns which labels stay, shape ``[n]``. A kind may know it without asking about each class."""
        return np.asarray(self.possible(budget).sum(axis=1) == 1)

    def answers(self) -> list[BoolArray]:
        """Returns which labels stay under each stated budget, shape ``[n]`` each."""
        return [self.holds(budget) for budget in self.contents.budgets]

    def numbers_broken(self, answers: list[BoolArray]) -> list[int]:
        """Returns how many targets one attacked graph can break under each stated budget.

        Usually one graph may break all labels that do not stay.

        Args:
            answers: Which labels stay, as :meth:`answers` returns them. All stated values are right.
        """
        return [int(np.count_nonzero(~holds)) for holds in answers]

    # What is the same for all kinds.

    def check(self) -> list[str]:
        """Returns what is wrong with the file; statements are derived only if the rest of it is in order.

        Raises:
            CertificateError: Its claim says something that no claim of this kind says.
        """
        claim = self.contents.claim
        wrong = [
            *check_targets(self.contents, *self.shape),
            *check_claim(claim, self.expected_claim().with_threshold(claim.threshold), self.digests),
            *wrong_threshold(claim.threshold, self.shape[1]),
            *check_division_digest(claim),
            *self._wrong_structure_radius(),
        ]
        wrong += [] if wrong else self.wrong_form()
        return wrong or self.wrong_statements()

    def _wrong_structure_radius(self) -> Iterator[str]:
        """Yields that a radius against structure alone is stated where none is, or missing."""
        is_stated = "structure_radius" in self.contents.arrays
        if is_stated and not self.has_structure_radius:
            yield "a radius against structure alone is stated, which this kind of file does not have"
        if self.has_structure_radius and not is_stated:
            yield "the radius against structure alone is missing"

    def wrong_statements(self) -> list[str]:
        """Derives every statement again. Returns what is wrong."""
        answers = self.answers()
        wrong = [
            *wrong_values(self.wrong_values(), self.evidence),
            *wrong_answers(self.contents, answers, self.evidence),
        ]
        if wrong:
            return wrong
        numbers = self.numbers_broken(answers)
        return wrong_numbers_broken(self.contents, numbers, self.evidence)


class LeadChecker(FileChecker):
    """A file whose kind says of which classes each label stays ahead."""

    @abstractmethod
    def label(self) -> IntArray:
        """Returns the label of each target, shape ``[n]``."""

    @abstractmethod
    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        """Returns of which classes each label stays ahead under an attack within a budget, shape ``[n, C]``.

        A label is ahead of itself, but where nothing is proved about the attack it is ahead of no class.

        Args:
            budget: What the attacker may do.
            leader: Asks about this class of every target instead of its label. All answers are False if nothing follows
                about other classes than the label.

        Raises:
            BudgetError: Nothing follows from the evidence about such a question.
        """

    def possible(self, budget: Budget) -> BoolArray:
        """Returns which classes each target may get under an attack within a budget, shape ``[n, C]``."""
        _, num_classes = self.shape
        return may_win(self.label(), num_classes, lambda leader: self.stays_ahead(budget, leader))

    def holds(self, budget: Budget) -> BoolArray:
        """Returns which labels stay ahead of all classes, shape ``[n]``."""
        return np.asarray(self.stays_ahead(budget).all(axis=1))
