"""Checks certificate files that hold stacked votes."""

from functools import cached_property

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import CertificateError
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import StackedRecord
from agnncert.verifier import recount_stacked
from agnncert.verifier.file_checker import LeadChecker
from agnncert.verifier.recount_stacked import DegreeTable


class StackedFile(LeadChecker):
    """A file of stacked votes."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = StackedRecord.load(contents.evidence, contents.settings)

    @cached_property
    def tables(self) -> list[DegreeTable]:
        """The targets by the number of their votes."""
        return recount_stacked.tables_of(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.num_classes

    @property
    def has_structure_radius(self) -> bool:
        return True

    def expected_claim(self) -> Claim:
        claim = self.contents.claim
        if claim.locality not in ("construction", "test"):
            raise CertificateError(
                "the claim does not say how it is known that the models without edges read a node's own features alone"
            )
        if claim.rounding not in ("", "float64"):
            raise CertificateError(
                f"the claim says that rounding is {claim.rounding!r:.20}, which stacked votes do not know"
            )
        return make_stacked_claim(self.record, digests=claim.digests, locality=claim.locality, rounding=claim.rounding)

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        rest = recount_stacked.but_additions(self.record)
        return {
            "label": stated["label"] != self.label(),
            "radius": ~recount_stacked.right_radius(self.tables, stated["radius"], structure=False),
            "structure radius": ~recount_stacked.right_radius(self.tables, stated["structure_radius"], structure=True),
            "number of new neighbours": ~recount_stacked.right_neighbours(
                self.record, self.tables, rest, stated["new_neighbours"]
            ),
        }

    def label(self) -> IntArray:
        return recount_stacked.label_is(self.record, self.tables)

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        return recount_stacked.stays_ahead(self.record, self.tables, budget, leader)

    def numbers_broken(self, answers: list[BoolArray]) -> list[int]:
        stated = self.contents.arrays  # the price of a target follows from its radii, which are right
        about = zip(self.contents.budgets, answers, strict=True)
        return [
            recount_stacked.broken(self.record, budget, ~holds, stated["radius"], stated["structure_radius"])
            for budget, holds in about
        ]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether a model computed these scores and votes, and may be certified: pass data and model",
        )
