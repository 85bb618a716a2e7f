"""Checks certificate files that hold votes of training labels."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.labels.claim import make_label_claim
from agnncert.labels.record import LabelRecord
from agnncert.verifier import recount_labels
from agnncert.verifier.check import refused_budgets
from agnncert.verifier.file_checker import LeadChecker
from agnncert.verifier.recount_labels import Recounted, changed_labels


class LabelsFile(LeadChecker):
    """A file of label votes."""

    training_fields = ("flip_labels", "add_labels", "remove_labels")

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = LabelRecord.load(contents.evidence, contents.settings)

    @cached_property
    def _counted(self) -> Recounted:
        return recount_labels.recount(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.num_classes

    def expected_claim(self) -> Claim:
        return make_label_claim(self.record, digests=self.contents.claim.digests)

    def wrong_form(self) -> Iterator[str]:
        yield from refused_budgets(self.contents.budgets, lambda budget: changed_labels(self.record, budget))
        if positions_among_candidates(self.record, self.contents.arrays["row"]) != self.record.own.tolist():
            yield "a target is not at its position among the candidates"

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        needed = self._counted.needed.min(axis=1, initial=np.inf)
        return {
            "label": stated["label"] != self._counted.label,
            "radius": stated["radius"] != np.minimum(needed - 1, self.record.num_candidates),
            "number of new neighbours": stated["new_neighbours"] != -1,
        }

    def label(self) -> IntArray:
        return self._counted.label

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        number = changed_labels(self.record, budget)
        counted = self._counted if leader is None else recount_labels.recount(self.record, leader)
        return recount_labels.stays_ahead(counted, number)

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether the weights follow from the graph, so that no label is in them: pass data",
            "whether these are the training labels and the settings of a model: pass data and model",
        )


def positions_among_candidates(record: LabelRecord, rows: IntArray) -> list[int]:
    """Returns at which position among the candidates each row of the data is, -1 if it is none."""
    position = {row: place for place, row in enumerate(record.candidate.tolist())}
    return [position.get(row, -1) for row in rows.tolist()]
