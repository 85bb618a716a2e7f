"""Checks certificate files that hold votes of a division."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim, expected_claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, VoteRecord
from agnncert.verifier import recount, recount_possible
from agnncert.verifier.file_checker import FileChecker
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import Part, Piles, parts_of, sort_part, sort_votes

AT_ONCE = min(4, os.cpu_count() or 1)  # threads that count votes again


class VotesFile(FileChecker):
    """A file of votes. Its statements are derived for some targets at a time."""

    digests = frozenset({"graph", "model", "division", "encoding"})

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = VoteRecord.load(contents.evidence, contents.settings)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.votes.num_classes

    def expected_claim(self) -> Claim:
        return expected_claim(self.contents.claim, self.record)

    @property
    def has_structure_radius(self) -> bool:
        return self.record.facts.per_neighbour

    def possible(self, budget: Budget) -> BoolArray:
        return recount_possible.of_votes(self.record, budget)

    def holds(self, budget: Budget) -> BoolArray:
        answers = [recount.holds(piles, limits_under(piles, budget)) for piles in self._piles]
        return np.concatenate([np.zeros(0, dtype=bool), *answers])

    def wrong_values(self) -> dict[str, BoolArray]:
        names = self._parts[0].is_wrong if self._parts else ()
        return {name: np.concatenate([part.is_wrong[name] for part in self._parts]) for name in names}

    def answers(self) -> list[BoolArray]:
        return [answers.holds for answers in self._answers]

    def numbers_broken(self, answers: list[BoolArray]) -> list[int]:
        about = zip(self.contents.budgets, self._answers, strict=True)
        return [recount.broken(self.record, budget, each) for budget, each in about]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether a model cast these votes, and may be certified: pass data and model",
        )

    @cached_property
    def _piles(self) -> list[Piles]:
        """All targets, for questions that the file does not answer."""
        return list(sort_votes(self.record))

    @cached_property
    def _parts(self) -> list["CheckedPart"]:
        """What follows about the stated values and budgets. Only a few parts are in piles at the same time."""
        with ThreadPoolExecutor(AT_ONCE) as pool:  # numpy lets other threads run while it works
            return list(pool.map(self._check_part, parts_of(self.record)))

    @cached_property
    def _answers(self) -> list[recount.Answers]:
        """What follows from each stated budget about all targets."""
        return [
            recount.join_answers([part.answers[i] for part in self._parts]) for i in range(len(self.contents.budgets))
        ]

    def _check_part(self, part: Part) -> "CheckedPart":
        """Derives every statement about some targets again."""
        stated = {name: array[..., part.targets] for name, array in self.contents.arrays.items()}
        piles = sort_part(part)
        is_wrong = {
            "label": stated["label"] != piles.label,
            "radius": stated["radius"] != recount.radius(piles),
            "number of new neighbours": ~recount.right_neighbours(piles, stated["new_neighbours"]),
        }
        structure_radius = recount.structure_radius(piles)
        if structure_radius is not None:
            is_wrong["structure radius"] = stated["structure_radius"] != structure_radius
        answers = [recount.answers(piles, budget) for budget in self.contents.budgets]
        return CheckedPart(is_wrong, answers)


@dataclass(frozen=True)
class CheckedPart:
    """What was found about some targets.

    Attributes:
        is_wrong: For which of them each stated value is wrong, by the name of the value.
        answers: What follows for these targets from each stated budget.
    """

    is_wrong: dict[str, BoolArray]
    answers: list[recount.Answers]
