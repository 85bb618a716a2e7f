"""Checks certificate files that hold graph votes."""

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graph_votes.claim import make_graph_claim
from agnncert.graph_votes.record import GraphRecord
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.file_checker import LeadChecker
from agnncert.verifier.recount_graph_votes import Recount


class GraphVotesFile(LeadChecker):
    """A file of graph votes."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = GraphRecord.load(contents.evidence, contents.settings)
        self._recount = Recount(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.num_classes

    def expected_claim(self) -> Claim:
        return make_graph_claim(self.record, digests=self.contents.claim.digests)

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        return {
            "label": stated["label"] != self.label(),
            "radius": ~self._recount.right_radius(stated["radius"]),
            "number of new neighbours": stated["new_neighbours"] != -1,
        }

    def label(self) -> IntArray:
        return self._recount.label()

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        require_trusted_training(budget)
        return self._recount.stays_ahead(budget, leader)

    def numbers_broken(self, answers: list[BoolArray]) -> list[int]:
        lost = [int(np.count_nonzero(~holds)) for holds in answers]
        return lost if self.record.task == "node" else [min(number, 1) for number in lost]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether items and numbers of nodes follow from the graph: pass data and model",
            "whether a model computed the scores of what is trusted, and reads nothing else: pass data and model",
        )
