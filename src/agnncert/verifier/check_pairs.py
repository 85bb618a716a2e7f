"""Checks certificate files about pairs of nodes."""

from collections.abc import Iterator
from functools import cached_property

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import CertificateError
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.record import PairRecord
from agnncert.verifier import recount_stacked
from agnncert.verifier.file_checker import LeadChecker
from agnncert.verifier.recount_pairs import in_votes, right_additions, right_radius
from agnncert.verifier.recount_stacked import DegreeTable


class PairsFile(LeadChecker):
    """A file of votes about pairs. An edge may be a part of many pairs, so that one graph may break them all."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = PairRecord.load(contents.evidence, contents.settings)

    @cached_property
    def _tables(self) -> list[DegreeTable]:
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
                "the claim does not say how it is known that the prior reads a pair's own features alone"
            )
        return make_pair_claim(self.record, digests=claim.digests, locality=claim.locality)

    def wrong_form(self) -> Iterator[str]:
        if "degree" in self.contents.arrays:
            yield "degrees are stated, which pairs do not have"

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        record, tables = self.record, self._tables
        return {
            "label": stated["label"] != self.label(),
            "radius": ~right_radius(record, tables, stated["radius"], altering=not record.blind),
            "structure radius": ~right_radius(record, tables, stated["structure_radius"], altering=False),
            "number of new neighbours": ~right_additions(record, tables, stated["new_neighbours"]),
        }

    def label(self) -> IntArray:
        return recount_stacked.label_is(self.record, self._tables)

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        return recount_stacked.stays_ahead(self.record, self._tables, in_votes(self.record, budget), leader)

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the pairs, their ids, places and true classes are those of a graph: pass data",
            "whether a model computed these scores and votes, and may be certified: pass data and model",
        )
