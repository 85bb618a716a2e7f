"""Checks certificate files of append-only scores."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agnncert.append.claim import make_append_claim
from agnncert.append.record import AppendRecord
from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.verifier import recount_append
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.file_checker import LeadChecker


class AppendFile(LeadChecker):
    """A file of features and monotone trees."""

    evidence = "features and trees"

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = AppendRecord.load(contents.evidence, contents.settings)

    @cached_property
    def _scores(self) -> list[npt.NDArray[np.int64]]:
        return recount_append.scores(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, 2

    def expected_claim(self) -> Claim:
        return make_append_claim(self.record, digests=self.contents.claim.digests)

    def wrong_form(self) -> Iterator[str]:
        yield from recount_append.refusals(self.record)

    def label(self) -> IntArray:
        flagged = self._scores[0] > self.record.threshold
        return np.where(flagged, self.record.positive, 1 - self.record.positive)

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        return {
            "label": stated["label"] != self.label(),
            "radius": stated["radius"] != self._radius(),
            "number of new neighbours": stated["new_neighbours"] != self._new_neighbours(),
        }

    def _radius(self) -> IntArray:
        """Returns how many deletions each flag withstands; -1 for a target that is not flagged."""
        radius = np.full(self.record.num_targets, -1, dtype=np.int64)
        stays = np.ones(self.record.num_targets, dtype=bool)
        for number, score in enumerate(self._scores):
            stays &= score > self.record.threshold
            radius[stays] = number
        return radius

    def _new_neighbours(self) -> IntArray:
        return np.full(self.record.num_targets, -1, dtype=np.int64)

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        require_trusted_training(budget)
        labels = self.label()
        ahead = np.zeros(self.shape, dtype=bool)
        other_kinds = (budget.change_edges, budget.delete_nodes, budget.change_features, budget.target_features)
        if any(other_kinds) or budget.delete_edges > self.record.deletions:
            return ahead
        kept = self._scores[int(budget.delete_edges)] > self.record.threshold
        if not (budget.add_edges or budget.inject_nodes or budget.delete_edges):
            kept = np.ones_like(kept)
        for k in range(2):
            ahead[:, k] = kept | (labels == k)
        return ahead if leader is None else ahead & (labels == leader)[:, None]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, true classes and degrees are those of the graph: pass data",
            "whether the features are those of the targets in the graph: pass data and model",
            "whether the accounts that chose the threshold were kept out of training: train again",
        )
