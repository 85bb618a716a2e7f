"""Checks certificate files of models that were trained apart."""

from functools import cached_property

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.isolated.claim import make_isolated_claim
from agnncert.isolated.record import IsolatedRecord
from agnncert.verifier.file_checker import FileChecker
from agnncert.verifier.recount_isolated import Views


class IsolatedFile(FileChecker):
    """A file of votes of isolated models."""

    training_fields = ("poison_graphs",)
    digests = frozenset({"graph", "model", "division", "encoding"})

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = IsolatedRecord.load(contents.evidence, contents.settings)

    @cached_property
    def _views(self) -> Views:
        return Views(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.num_classes

    def expected_claim(self) -> Claim:
        claim = self.contents.claim
        return make_isolated_claim(
            self.record,
            claim.division,
            tolerance=claim.tolerance,
            digests=claim.digests,
            locality=claim.locality,
            rounding=claim.rounding,
        )

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        return {
            "label": stated["label"] != self._views.label(),
            "radius": ~self._views.right_radius(stated["radius"]),
            "number of new neighbours": stated["new_neighbours"] != -1,
        }

    def possible(self, budget: Budget) -> BoolArray:
        return self._views.possible(budget)

    def holds(self, budget: Budget) -> BoolArray:
        return self._views.holds(budget)

    def numbers_broken(self, answers: list[BoolArray]) -> list[int]:
        about = zip(self.contents.budgets, answers, strict=True)
        return [self._views.broken(budget, holds) for budget, holds in about]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, true classes and degrees are those of the test graphs: pass data",
            "whether the models cast these votes, and may be certified: pass data and model",
            "whether each model was trained on its part alone: train again, which gives the same weights to the bit",
        )
